/*
 * Windows of time: zooming, panning, ticks, and the way from one clock to the other. Pure
 * functions.
 *
 * Times are ns, int64_t; a window is never shorter than VIEW_WINDOW_LEAST and never leaves its
 * extent by more than it is longer.
 */
#ifndef VIEW_TIME_H
#define VIEW_TIME_H

#include <stdint.h>

#define VIEW_WINDOW_LEAST 20 /* ns */

struct view_window {
	int64_t from, to; /* ns; to > from */
};

/* Keep length, shift into @extent; a window longer than the extent becomes the extent. */
struct view_window view_window_clamp(struct view_window window, struct view_window extent);

/* Length times @numerator / @denominator, @about staying where it is. */
struct view_window view_window_zoom(struct view_window window, int64_t about, int numerator,
				    int denominator, struct view_window extent);

/* Shift by @numerator / @denominator of the length. */
struct view_window view_window_pan(struct view_window window, int numerator, int denominator,
				   struct view_window extent);

/* Shift as little as needed to hold @time, not nearer to an edge than an eighth. */
struct view_window view_window_show(struct view_window window, int64_t time,
				    struct view_window extent);

/* The column of @time in @columns (may be negative or beyond), and the first ns of a column. */
int64_t view_window_column(struct view_window window, int columns, int64_t time);
int64_t view_window_time(struct view_window window, int columns, int64_t column);

/*
 * Distance of ticks: 1, 2 or 5 times a power of ten, so that @columns have at least @apart between.
 */
int64_t view_tick_step(struct view_window window, int columns, int apart);

/* @time with as many decimals as @step needs, in the unit that fits @window: "1.2403 s". */
#define VIEW_TICK_SIZE 40
const char *view_tick_text(char out[VIEW_TICK_SIZE], int64_t time, int64_t step,
			   struct view_window window);

/*
 * The same moment on two clocks: points in order, straight lines between them, the ends' slopes
 * beyond. Without two points there is no way across.
 */
struct view_link {
	int64_t host_ns, device_ns;
};

/* @to_device: from host to device. @links has @count >= 2, both clocks increasing. */
int64_t view_link_map(const struct view_link *links, int count, int64_t time, int to_device);

#endif /* VIEW_TIME_H */
