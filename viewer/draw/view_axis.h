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

/* To find the ends: begin with nothing, take all numbers (those that are finite count), settle:
 * equal ends are moved apart. False: there was none; the axis goes from 0 to 1. */
void view_axis_begin(struct view_axis *axis);
void view_axis_take(struct view_axis *axis, const double *values, int64_t count);
bool view_axis_settle(struct view_axis *axis);

/* Where @value is: 0 .. 1; beyond the ends it is at the end; NaN stays. */
double view_axis_part(const struct view_axis *axis, double value);

/* At most @most (2 .. VIEW_AXIS_TICKS) round numbers from low to high, rising; bytes are round in
 * units of 1,024. Returns how many: 0 where none lies between. */
int view_axis_ticks(const struct view_axis *axis, int most, double out[VIEW_AXIS_TICKS]);

const char *view_axis_text(const struct view_axis *axis, double value, char out[FMT_SIZE]);

#endif /* VIEW_AXIS_H */
