/*
 * Linear or logarithmic: what an axis is made, by what is chosen or by how far its numbers spread.
 *
 * A logarithmic axis of numbers above 0 alone is just that. Where there are others it is
 * logarithmic on both sides of 0, and linear between them, so that all numbers have a place.
 *
 * Pure functions.
 */
#ifndef VIEW_SCALE_H
#define VIEW_SCALE_H

#include "viewer/draw/view_axis.h"

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
void view_spread_take(struct view_spread *spread, const double *values, int64_t count);

/* Would a linear axis show little but the greatest? Numbers on one side of 0: they span more than 6
 * decades. On both sides, where some are always near to 0: the greatest is 3 decades above their
 * geometric mean. */
bool view_spread_is_wide(const struct view_spread *spread);

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

#endif /* VIEW_SCALE_H */
