/*
 * Axes: map values to fractions of a length, choose round tick values, and format them.
 *
 * Charts use them for x and y, heat maps for the colour scale. Pure functions.
 */
#ifndef REPORT_AXIS_H
#define REPORT_AXIS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/fmt.h"
#include "reports/table/report_table.h"

#define REPORT_AXIS_TICKS 64

struct report_axis {
	double low, high;
	bool logarithmic; /* values <= 0 map to the low end, unless linear > 0: */
	double linear; /* a power of ten; logarithmic on both sides of 0, linear within +-linear */
	enum report_quantity quantity;
	const char *title; /* "step"; NULL: none */
};

/* Find the ends: begin, include all values (non-finite ones are ignored), finish. Equal ends are
 * moved apart. report_axis_finish() returns false if there was no value; the axis then spans 0 to 1
 * (logarithmic: 1 to 10). */
void report_axis_begin(struct report_axis *axis);
void report_axis_include(struct report_axis *axis, const double *values, int64_t count);
bool report_axis_finish(struct report_axis *axis);

/* Position of @value as a fraction 0 .. 1, clamped to the ends. NaN stays NaN. */
double report_axis_part(const struct report_axis *axis, double value);

/* Write at most @most (2 .. REPORT_AXIS_TICKS) round values between low and high, ascending. Bytes
 * are round in units of 1,024. Return their number: 0 if there is none in the range. */
int report_axis_ticks(const struct report_axis *axis, int most, double out[REPORT_AXIS_TICKS]);

const char *report_axis_text(const struct report_axis *axis, double value, char out[FMT_SIZE]);

/*
 * Choose between a linear and a logarithmic axis, by the user's choice or by the spread of values.
 *
 * If all values are positive, a logarithmic axis is plain. Otherwise it is logarithmic on both
 * sides of 0 and linear in between, so that every value has a position.
 *
 * Pure functions.
 */

#define REPORT_SCALE_TEXT 64

/* Statistics of absolute values; zero-initialised: no values. */
struct report_spread {
	double least, greatest; /* nonzero values only */
	double sum, squares;    /* of their decimal logarithms */
	int64_t count;
	bool above, zero, below; /* values > 0, == 0, < 0 exist */
};

/* The user's choice. */
enum report_scale {
	REPORT_SCALE_BY_SPREAD,
	REPORT_SCALE_LINEAR,
	REPORT_SCALE_LOGARITHMIC
};

/* Non-finite values are ignored. */
void report_spread_include(struct report_spread *spread, const double *values, int64_t count);

/* Make the axis linear or logarithmic as @scale and @spread require. Call this after
 * report_axis_include() and before report_axis_finish(). A logarithmic axis gets the title
 * "log". */
void report_axis_scale(struct report_axis *axis, const struct report_spread *spread,
		       enum report_scale scale);

/* Switch @scale to the opposite of what @axis is; use REPORT_SCALE_BY_SPREAD if the spread leads to
 * that anyway. Return the message for the user. */
const char *report_scale_turn(enum report_scale *scale, const struct report_axis *axis,
			      const struct report_spread *spread);

/* ", log axis" or ", log axis, linear up to 0.001"; "" for a linear axis. */
const char *report_scale_text(const struct report_axis *axis, char out[REPORT_SCALE_TEXT]);

#endif /* REPORT_AXIS_H */
