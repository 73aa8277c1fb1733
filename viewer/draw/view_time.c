/*
 * Time windows.
 *
 * Threading: pure functions. Ownership: none. Products use 128 bits or double: a run of days in ns
 * times a width overflows 64 bits.
 */
#include "viewer/draw/view_time.h"

#include <stddef.h>
#include <stdio.h>

#include "common/mem.h"
#include "common/sat.h"

struct view_window view_window_clamp(struct view_window window, struct view_window extent)
{
	const int64_t length = sat_sub(window.to, window.from);

	if (length >= sat_sub(extent.to, extent.from))
		return extent;
	if (window.from < extent.from)
		return (struct view_window){extent.from, extent.from + length};
	if (window.to > extent.to)
		return (struct view_window){extent.to - length, extent.to};
	return window;
}

struct view_window view_window_zoom(struct view_window window, int64_t about, int numerator,
				    int denominator, struct view_window extent)
{
	const double length = (double)(window.to - window.from);
	const double part = (double)(about - window.from) / length;
	double next = length * numerator / denominator;
	struct view_window out;

	if (next < VIEW_WINDOW_LEAST)
		next = VIEW_WINDOW_LEAST;
	if (next > (double)(extent.to - extent.from))
		return extent;
	out.from = about - (int64_t)(part * next);
	out.to = out.from + (int64_t)next;
	return view_window_clamp(out, extent);
}

struct view_window view_window_pan(struct view_window window, int numerator, int denominator,
				   struct view_window extent)
{
	int64_t shift = (int64_t)((double)(window.to - window.from) * numerator / denominator);

	if (shift == 0)
		shift = numerator < 0 ? -1 : 1;
	return view_window_clamp((struct view_window){window.from + shift, window.to + shift},
				 extent);
}

struct view_window view_window_show(struct view_window window, int64_t time,
				    struct view_window extent)
{
	const int64_t length = sat_sub(window.to, window.from), margin = length / 8;

	if (time >= sat_add(window.from, margin) && time < sat_sub(window.to, margin))
		return window;
	if (time < window.from || time >= window.to)
		window.from = sat_sub(time, length / 2);
	else if (time < window.from + margin)
		window.from = time - margin;
	else
		window.from = time + margin - length;
	window.to = sat_add(window.from, length);
	return view_window_clamp(window, extent);
}

int64_t view_window_column(struct view_window window, int columns, int64_t time)
{
	__extension__ __int128 at = time;
	const int64_t length = window.to - window.from;
	int64_t column;

	at = (at - window.from) * columns;
	column = (int64_t)(at / length);
	return at < 0 && at % length != 0 ? column - 1 : column;
}

int64_t view_window_time(struct view_window window, int columns, int64_t column)
{
	__extension__ __int128 at = window.to;

	at = (at - window.from) * column;
	/* Round up: the first ns that view_window_column() maps to the column. */
	return window.from + (int64_t)((at + columns - 1) / columns);
}

int64_t view_tick_step(struct view_window window, int columns, int apart)
{
	static const int factors[] = {1, 2, 5};
	const double least =
		(double)(window.to - window.from) * apart / (double)(columns > 0 ? columns : 1);

	for (int64_t power = 1; power < INT64_MAX / 100; power *= 10)
		for (size_t i = 0; i < ARRAY_LEN(factors); i++)
			if ((double)(factors[i] * power) >= least)
				return factors[i] * power;
	return INT64_MAX / 4;
}

const char *view_tick_text(char out[VIEW_TICK_SIZE], int64_t time, int64_t step,
			   struct view_window window)
{
	static const struct {
		int64_t ns;
		const char *name;
	} units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}, {1, "ns"}};
	int64_t greatest = window.to > -window.from ? window.to : -window.from;
	size_t unit = 0;
	int decimals = 0;

	while (unit + 1 < ARRAY_LEN(units) && greatest < units[unit].ns)
		unit++;
	for (int64_t digit = units[unit].ns; digit > step && decimals < 9; digit /= 10)
		decimals++;
	snprintf(out, VIEW_TICK_SIZE, "%.*f %s", decimals, (double)time / (double)units[unit].ns,
		 units[unit].name);
	return out;
}

int64_t view_link_map(const struct view_link *links, int count, int64_t time, int to_device)
{
	int at = 0;
	int64_t from[2], to[2];

	while (at + 2 < count &&
	       time >= (to_device ? links[at + 1].host_ns : links[at + 1].device_ns))
		at++;
	for (int i = 0; i < 2; i++) {
		from[i] = to_device ? links[at + i].host_ns : links[at + i].device_ns;
		to[i] = to_device ? links[at + i].device_ns : links[at + i].host_ns;
	}
	if (from[1] <= from[0])
		return to[0];
	return sat_add(to[0], sat_real(((double)time - (double)from[0]) /
				       ((double)from[1] - (double)from[0]) *
				       ((double)to[1] - (double)to[0])));
}
