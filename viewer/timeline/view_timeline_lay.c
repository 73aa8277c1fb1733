/*
 * The timeline's bars as columns of cells, in each way to look at them. Drawing then looks at
 * cells only.
 *
 * Threading: one thread. Ownership: the arena of the picture.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "common/minmax.h"

#define MOST_PARTS 4  /* of a name */
#define MOST_FLAME 24 /* rows of a lane */

/* ---- rows ------------------------------------------------------------------------------------ */

int view__row_thick(const struct view_lane *lane, int row)
{
	return row == lane->work_row ? lane->thick : lane->thin;
}

int view__row_y(const struct view_lane *lane, int row)
{
	return lane->y + row * lane->thin +
	       (lane->work_row >= 0 && row > lane->work_row ? lane->thick - lane->thin : 0);
}

int view__lane_height(const struct view_lane *lane)
{
	return lane->rows * lane->thin + (lane->work_row >= 0 ? lane->thick - lane->thin : 0);
}

int view__row_of_depth(const struct view_timeline *tl, const struct view_lane *lane, int depth)
{
	int row = depth - lane->first_depth;

	if (tl->way == VIEW_FLAME)
		for (int i = 0; i < lane->bar_count && lane->bar_row; i++)
			if (lane->bars[i].span_id == tl->selected && lane->bars[i].depth == depth) {
				row = lane->bar_row[i];
				break;
			}
	return row < 0 ? 0 : row >= lane->rows ? lane->rows - 1 : row;
}

/* ---- names that '/' parts -------------------------------------------------------------------- */

static int view_name_parts(const char *name)
{
	int parts = 1;

	for (; name && *name; name++)
		parts += *name == '/' && name[1] != '\0';
	return min(parts, MOST_PARTS);
}

/* The last of MOST_PARTS parts has all of the rest. */
void view__name_part(const char *name, int part, char *out, size_t size)
{
	const char *end;
	size_t length;

	for (int i = 0; i < part && name; i++) {
		name = strchr(name, '/');
		name += name != NULL;
	}
	if (!name)
		name = "";
	end = part + 1 < MOST_PARTS ? strchr(name, '/') : NULL;
	length = end && end[1] ? (size_t)(end - name) : strlen(name);
	if (length >= size)
		length = size - 1;
	memcpy(out, name, length);
	out[length] = '\0';
}

static int view_bar_parts(const struct view_timeline *tl, const struct prof_bar *bar)
{
	const struct view_site *site = view__site(tl, bar->site_id);

	return site ? view_name_parts(site->name) : 1;
}

/* Each bar below the names of the one around it. Bars come by depth, then start. */
static int view_place_flame(struct view_timeline *tl, struct view_lane *lane)
{
	int above = 0, first = 0, rows = 1;

	lane->bar_row =
		arena_alloc(&tl->picture, (size_t)lane->bar_count + 1, sizeof(*lane->bar_row));
	if (!lane->bar_row)
		return -1;
	for (int i = 0; i < lane->bar_count; i++) {
		const struct prof_bar *bar = &lane->bars[i];
		int row = bar->depth;

		if (i == 0 || bar->depth != lane->bars[i - 1].depth) {
			above = first;
			first = i;
		}
		while (above + 1 < first && lane->bars[above + 1].start_ns <= bar->start_ns)
			above++;
		if (above < first && lane->bars[above].depth == bar->depth - 1)
			row = lane->bar_row[above] + view_bar_parts(tl, &lane->bars[above]);
		lane->bar_row[i] = (int16_t)(min(row, SHRT_MAX));
		row += view_bar_parts(tl, bar);
		rows = max(row, rows);
	}
	return min(rows, MOST_FLAME);
}

int view__rows_wanted(struct view_timeline *tl, struct view_lane *lane)
{
	const int depth = lane->track->depth;

	lane->bar_row = NULL;
	switch (tl->way) {
	case VIEW_FLAME:
		return view_place_flame(tl, lane);
	case VIEW_FLAT:
	case VIEW_BSP:
		return 1;
	default:
		return min(depth, VIEW_MOST_DEPTH);
	}
}

/* ---- columns --------------------------------------------------------------------------------- */

void view__lay(struct view_column *columns, int width, struct view_window window,
	       const struct prof_bar *bar, int32_t index, bool left_out)
{
	const int64_t end = bar->start_ns + (bar->dur_ns > 0 ? bar->dur_ns : 1);
	int64_t from = view_window_column(window, width, bar->start_ns);
	int64_t to = view_window_column(window, width, end - 1);

	from = max(0, from);
	to = to >= width ? width - 1 : to;
	for (int64_t x = from; x <= to; x++) {
		const int64_t left = view_window_time(window, width, x);
		const int64_t right = view_window_time(window, width, x + 1);
		int64_t ns = min(end, right) - max(bar->start_ns, left);

		if (bar->span_id == IPS_NULL && bar->dur_ns > 0)
			ns = (int64_t)((double)ns * (double)bar->busy_ns / (double)bar->dur_ns);
		if (ns <= 0)
			ns = bar->count > 0 ? 1 : 0;
		if (ns == 0 || (left_out && columns[x].bar >= 0 && !columns[x].left_out))
			continue;
		if (columns[x].left_out != left_out)
			columns[x].busy_ns = columns[x].best_ns = 0;
		columns[x].left_out = left_out;
		columns[x].busy_ns += ns;
		if (ns > columns[x].best_ns) {
			columns[x].best_ns = ns;
			columns[x].bar = index;
		}
	}
}

/* Of what was recorded: executions that were not traced are not idle. */
static double view_idle(const struct view_timeline *tl, const struct view_lane *lane,
			struct view_window window)
{
	const int64_t all = view__traced_ns(tl, lane, window);
	double busy = 0;

	if (all <= 0)
		return NAN;
	for (int i = 0; i < lane->bar_count; i++) {
		const struct prof_bar *bar = &lane->bars[i];
		const int64_t end = bar->start_ns + bar->dur_ns;
		const int64_t from = max(bar->start_ns, window.from);
		const int64_t to = min(end, window.to);

		if (bar->depth != lane->work_depth || to <= from || bar->dur_ns <= 0)
			continue;
		busy += (double)bar->busy_ns * (double)(to - from) / (double)bar->dur_ns;
	}
	busy /= (double)all;
	return busy > 1 ? 0 : 1 - busy;
}

static void view_clear(struct view_column *columns, size_t count)
{
	memset(columns, 0, count * sizeof(*columns));
	for (size_t i = 0; i < count; i++)
		columns[i].bar = -1;
}

/* Does a cell of a depth cover that of the depths above? */
static bool view_covers(const struct view_column *cell, const struct view_column *above,
			int64_t column_ns)
{
	if (cell->bar < 0 || above->bar < 0)
		return cell->bar >= 0;
	if (cell->left_out != above->left_out)
		return above->left_out;
	return cell->busy_ns * 4 >= column_ns;
}

/* The innermost of each cell: a depth covers the one above where it has a quarter of the cell. */
static enum status view_lay_flat(struct view_timeline *tl, struct view_lane *lane,
				 struct view_window window, struct err *err)
{
	const int64_t column_ns = (window.to - window.from) / tl->width;
	struct view_column *depth = arena_alloc(&tl->picture, (size_t)tl->width, sizeof(*depth));

	if (!depth)
		return err_nomem(err);
	for (int i = 0; i < lane->bar_count;) {
		const int of = lane->bars[i].depth;

		view_clear(depth, (size_t)tl->width);
		for (; i < lane->bar_count && lane->bars[i].depth == of; i++)
			view__lay(depth, tl->width, window, &lane->bars[i], i,
				  view__left_out(tl, &lane->bars[i]));
		for (int x = 0; x < tl->width; x++)
			if (view_covers(&depth[x], &lane->columns[x], column_ns))
				lane->columns[x] = depth[x]; /* dark or not: it has a bar */
	}
	return ST_OK;
}

static void view_lay_rows(struct view_timeline *tl, struct view_lane *lane,
			  struct view_window window)
{
	for (int i = 0; i < lane->bar_count; i++) {
		const struct prof_bar *bar = &lane->bars[i];
		const int row = lane->bar_row ? lane->bar_row[i] : bar->depth - lane->first_depth;
		const int parts = lane->bar_row ? view_bar_parts(tl, bar) : 1;
		const bool left_out = view__left_out(tl, bar);

		for (int r = row; r >= 0 && r < row + parts && r < lane->rows; r++)
			view__lay(&lane->columns[(size_t)r * (size_t)tl->width], tl->width, window,
				  bar, i, left_out);
	}
}

enum status view__lay_lane(struct view_timeline *tl, struct view_lane *lane, struct err *err)
{
	const struct view_window window = tl->clock[lane->track->clock == IPS_DEVICE].window;
	const size_t cells = (size_t)lane->rows * (size_t)tl->width;

	lane->columns = arena_alloc(&tl->picture, cells + 1, sizeof(*lane->columns));
	if (!lane->columns)
		return err_nomem(err);
	view_clear(lane->columns, cells);
	lane->idle = view_idle(tl, lane, window);
	for (int r = 0; r < lane->rows; r++)
		view__mark_dark(tl, lane, window, &lane->columns[(size_t)r * (size_t)tl->width]);
	if (tl->way == VIEW_FLAT)
		return view_lay_flat(tl, lane, window, err);
	view_lay_rows(tl, lane, window);
	return ST_OK;
}
