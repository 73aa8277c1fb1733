/*
 * Axes: map values to fractions of a length, choose round tick values, and format them.
 *
 * Charts use them for x and y, heat maps for the colour scale. Pure functions.
 */
#ifndef VIEW_AXIS_H
#define VIEW_AXIS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/fmt.h"
#include "reports/table/report_table.h"

#define VIEW_AXIS_TICKS 64

struct view_axis {
	double low, high;
	bool logarithmic; /* values <= 0 map to the low end, unless linear > 0: */
	double linear; /* a power of ten; logarithmic on both sides of 0, linear within +-linear */
	enum report_quantity quantity;
	const char *title; /* "step"; NULL: none */
};

/* Find the ends: begin, include all values (non-finite ones are ignored), finish. Equal ends are
 * moved apart. view_axis_finish() returns false if there was no value; the axis then spans 0 to 1
 * (logarithmic: 1 to 10). */
void view_axis_begin(struct view_axis *axis);
void view_axis_include(struct view_axis *axis, const double *values, int64_t count);
bool view_axis_finish(struct view_axis *axis);

/* Position of @value as a fraction 0 .. 1, clamped to the ends. NaN stays NaN. */
double view_axis_part(const struct view_axis *axis, double value);

/* Write at most @most (2 .. VIEW_AXIS_TICKS) round values between low and high, ascending. Bytes
 * are round in units of 1,024. Return their number: 0 if there is none in the range. */
int view_axis_ticks(const struct view_axis *axis, int most, double out[VIEW_AXIS_TICKS]);

const char *view_axis_text(const struct view_axis *axis, double value, char out[FMT_SIZE]);

/*
 * Choose between a linear and a logarithmic axis, by the user's choice or by the spread of values.
 *
 * If all values are positive, a logarithmic axis is plain. Otherwise it is logarithmic on both
 * sides of 0 and linear in between, so that every value has a position.
 *
 * Pure functions.
 */

#define VIEW_SCALE_TEXT 64

/* Statistics of absolute values; zero-initialised: no values. */
struct view_spread {
	double least, greatest; /* nonzero values only */
	double sum, squares;    /* of their decimal logarithms */
	int64_t count;
	bool above, zero, below; /* values > 0, == 0, < 0 exist */
};

/* The user's choice. */
enum view_scale {
	VIEW_SCALE_BY_SPREAD,
	VIEW_SCALE_LINEAR,
	VIEW_SCALE_LOGARITHMIC
};

/* Non-finite values are ignored. */
void view_spread_include(struct view_spread *spread, const double *values, int64_t count);

/* Make the axis linear or logarithmic as @scale and @spread require. Call this after
 * view_axis_include() and before view_axis_finish(). A logarithmic axis gets the title "log". */
void view_axis_scale(struct view_axis *axis, const struct view_spread *spread,
		     enum view_scale scale);

/* Switch @scale to the opposite of what @axis is; use VIEW_SCALE_BY_SPREAD if the spread leads to
 * that anyway. Return the message for the user. */
const char *view_scale_turn(enum view_scale *scale, const struct view_axis *axis,
			    const struct view_spread *spread);

/* ", log axis" or ", log axis, linear up to 0.001"; "" for a linear axis. */
const char *view_scale_text(const struct view_axis *axis, char out[VIEW_SCALE_TEXT]);

/*
 * Distribute items over cells, whichever are more.
 */

/* @count * @at / @cells without overflow. */
static inline int64_t view_share_begin(int64_t count, int cells, int at)
{
	return count / cells * at + count % cells * at / cells;
}

/* The items @from .. @to - 1 of @count that belong to cell @at of @cells. Every cell has at least
 * one item and every item at least one cell. */
static inline void view_share(int64_t count, int cells, int at, int64_t *from, int64_t *to)
{
	*from = view_share_begin(count, cells, at);
	*to = view_share_begin(count, cells, at + 1);
	if (*to <= *from)
		*to = *from + 1;
}

/* The first of @cells cells that item @index of @count belongs to. */
static inline int view_share_cell(int64_t count, int cells, int64_t index)
{
	/* The least cell whose share ends beyond the item; approximate for very large counts. */
	if (count > INT64_MAX / cells)
		return (int)(index / (count / cells + 1));
	return count >= cells ? (int)(((index + 1) * cells - 1) / count)
			      : (int)((index * cells + count - 1) / count);
}

#endif /* VIEW_AXIS_H */
