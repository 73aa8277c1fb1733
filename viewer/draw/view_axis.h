/*
 * Axes: from numbers to a part of a length, round numbers to mark, and how they are written.
 *
 * Used by charts for x and y and by heat maps for the colour. Pure functions.
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
	bool logarithmic; /* numbers of 0 and less stand at the low end, but where there is: */
	double linear;    /* a power of ten: on both sides of 0 logarithmic, linear up to that */
	enum report_quantity quantity;
	const char *title; /* "step"; NULL: none */
};

/* To find the ends: begin, include all numbers (those that are finite count), finish:
 * equal ends are moved apart. False: there was none; the axis goes from 0 to 1. */
void view_axis_begin(struct view_axis *axis);
void view_axis_include(struct view_axis *axis, const double *values, int64_t count);
bool view_axis_finish(struct view_axis *axis);

/* Where @value is: 0 .. 1; beyond the ends it is at the end; NaN stays. */
double view_axis_part(const struct view_axis *axis, double value);

/* At most @most (2 .. VIEW_AXIS_TICKS) round numbers from low to high, rising; bytes are round in
 * units of 1,024. Returns how many: 0 where none lies between. */
int view_axis_ticks(const struct view_axis *axis, int most, double out[VIEW_AXIS_TICKS]);

const char *view_axis_text(const struct view_axis *axis, double value, char out[FMT_SIZE]);

/*
 * Linear or logarithmic: what an axis is made, by what is chosen or by how far its numbers spread.
 *
 * A logarithmic axis of numbers above 0 alone is just that. Where there are others it is
 * logarithmic on both sides of 0, and linear between them, so that all numbers have a place.
 *
 * Pure functions.
 */

#define VIEW_SCALE_TEXT 64

/* The magnitudes of numbers; zeroed: of none. */
struct view_spread {
	double least, greatest; /* without 0 */
	double sum, squares;    /* of their decimal logarithms */
	int64_t count;
	bool above, zero, below; /* are there numbers above 0, ...? */
};

/* What is chosen. */
enum view_scale {
	VIEW_SCALE_BY_SPREAD,
	VIEW_SCALE_LINEAR,
	VIEW_SCALE_LOGARITHMIC
};

/* Numbers that are finite count. */
void view_spread_include(struct view_spread *spread, const double *values, int64_t count);

/* Make an axis that has taken its numbers what is chosen; before it is settled. What is logarithmic
 * has the title "log". */
void view_axis_scale(struct view_axis *axis, const struct view_spread *spread,
		     enum view_scale scale);

/* Choose the other one than @axis is: nothing where the spread says so anyway. Returns what to tell
 * the user. */
const char *view_scale_turn(enum view_scale *scale, const struct view_axis *axis,
			    const struct view_spread *spread);

/* ", log axis", ", log axis, linear up to 0.001"; of a linear axis "". */
const char *view_scale_text(const struct view_axis *axis, char out[VIEW_SCALE_TEXT]);

/*
 * Sharing out many things among few cells, and few among many.
 */

/* @count * @at / @cells, of any count. */
static inline int64_t view_share_begin(int64_t count, int cells, int at)
{
	return count / cells * at + count % cells * at / cells;
}

/* The things @from .. @to - 1 of @count that fall on cell @at of @cells: at least one, and each on
 * one cell at least. */
static inline void view_share(int64_t count, int cells, int at, int64_t *from, int64_t *to)
{
	*from = view_share_begin(count, cells, at);
	*to = view_share_begin(count, cells, at + 1);
	if (*to <= *from)
		*to = *from + 1;
}

/* The first cell of @cells that thing @index of @count falls on. */
static inline int view_share_cell(int64_t count, int cells, int64_t index)
{
	/* The least cell whose share ends beyond the thing; of very many, about that. */
	if (count > INT64_MAX / cells)
		return (int)(index / (count / cells + 1));
	return count >= cells ? (int)(((index + 1) * cells - 1) / count)
			      : (int)((index * cells + count - 1) / count);
}

#endif /* VIEW_AXIS_H */
