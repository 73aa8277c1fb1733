/*
 * Time windows: zoom, pan, ticks, and conversion between two clocks. Pure functions.
 *
 * Times are ns in int64_t. A window is never shorter than VIEW_WINDOW_LEAST and leaves its extent
 * at most by its excess length.
 */
#ifndef VIEW_TIME_H
#define VIEW_TIME_H

#include <stdint.h>

#define VIEW_WINDOW_LEAST 20 /* ns */

struct view_window {
	int64_t from, to; /* ns; to > from */
};

/* Keep the length and shift the window into @extent; a longer window becomes the extent. */
struct view_window view_window_clamp(struct view_window window, struct view_window extent);

/* Multiply the length by @numerator / @denominator; @about keeps its relative position. */
struct view_window view_window_zoom(struct view_window window, int64_t about, int numerator,
				    int denominator, struct view_window extent);

/* Shift by @numerator / @denominator of the length. */
struct view_window view_window_pan(struct view_window window, int numerator, int denominator,
				   struct view_window extent);

/* Shift as little as needed for @time to be inside, at least an eighth away from both edges. */
struct view_window view_window_show(struct view_window window, int64_t time,
				    struct view_window extent);

/* The column of @time (may be negative or >= @columns), and the first ns of a column. */
int64_t view_window_column(struct view_window window, int columns, int64_t time);
int64_t view_window_time(struct view_window window, int columns, int64_t column);

/* Distance of ticks: 1, 2 or 5 times a power of ten, with at least @apart columns between ticks. */
int64_t view_tick_step(struct view_window window, int columns, int apart);

/* @time with the decimals that @step needs, in the unit that fits @window: "1.2403 s". */
#define VIEW_TICK_SIZE 40
const char *view_tick_text(char out[VIEW_TICK_SIZE], int64_t time, int64_t step,
			   struct view_window window);

/*
 * A point in time on two clocks. Between links, times are interpolated linearly; beyond the ends,
 * the nearest slope continues. At least two links are needed.
 */
struct view_link {
	int64_t host_ns, device_ns;
};

/* @to_device: convert from host to device. @links has @count >= 2, increasing on both clocks. */
int64_t view_link_map(const struct view_link *links, int count, int64_t time, int to_device);

#endif /* VIEW_TIME_H */
