/*
 * From sizes to rectangles.
 *
 * Threading: pure functions. Ownership: none.
 */
#include "viewer/view_layout.h"

#include "common/minmax.h"

#define IDLE_WIDTH     7
#define DETAILS_HEIGHT 6
#define COLUMN_WIDTH   66  /* widest column of text that still reads easily */
#define TENSORS_WIDE   100 /* least width for two pictures side by side */
#define TENSORS_HIGH   12  /* below this height side by side as well */

struct view_frame view_frame_layout(int width, int height)
{
	struct view_frame frame = {0};

	width = max(width, 0);
	height = max(height, 0);
	if (width < VIEW_MIN_WIDTH || height < VIEW_MIN_HEIGHT) {
		frame.too_small = true;
		frame.line = (struct view_rect){0, 0, width, min(height, 1)};
		return frame;
	}
	frame.title = (struct view_rect){0, 0, width, 1};
	frame.body = (struct view_rect){0, 1, width, height - 3};
	frame.status = (struct view_rect){0, height - 2, width, 1};
	frame.keys = (struct view_rect){0, height - 1, width, 1};
	return frame;
}

struct view_rect view_cut_top(struct view_rect *rect, int rows)
{
	struct view_rect taken = *rect;

	taken.height = max(0, min(rows, rect->height));
	rect->y += taken.height;
	rect->height -= taken.height;
	return taken;
}

/* Cut @rows from the bottom of *@rect and return them. */
static struct view_rect layout_cut_bottom(struct view_rect *rect, int rows)
{
	struct view_rect taken = *rect;

	*rect = view_cut_top(&taken, rect->height - max(0, min(rows, rect->height)));
	return taken;
}

static struct view_rect layout_cut_left(struct view_rect *rect, int columns)
{
	struct view_rect taken = *rect;

	taken.width = max(0, min(columns, rect->width));
	rect->x += taken.width;
	rect->width -= taken.width;
	return taken;
}

struct view_rect view_popup_area(struct view_rect body, int columns, int rows)
{
	const int width = max(0, min(columns, body.width));
	const int height = max(0, min(rows, body.height));

	return (struct view_rect){body.x + (body.width - width) / 2,
				  body.y + (body.height - height) / 2, width, height};
}

void view_list_scroll(int64_t *at, int64_t *scroll, int64_t count, int64_t rows)
{
	*at = max(min(*at, count - 1), 0);
	*scroll = max(min(*scroll, *at), *at - rows + 1);
	*scroll = max(min(*scroll, count - rows), 0);
}

struct view_split view_split_rows(struct view_rect body, int upper, int fewest)
{
	struct view_split out = {.upper = body};

	if (body.height < 2 * fewest + 1 || fewest < 1)
		return out;
	upper = max(fewest, min(upper, body.height - 1 - fewest));
	out.lower = layout_cut_bottom(&out.upper, body.height - upper - 1);
	out.heading = layout_cut_bottom(&out.upper, 1);
	return out;
}

struct view_sides view_split_sides(struct view_rect body, int columns, int fewest)
{
	struct view_sides out = {.left = body};

	if (columns < 1 || body.width < columns + 1 + fewest)
		return out;
	out.left = layout_cut_left(&body, body.width - columns - 1);
	layout_cut_left(&body, 1);
	out.right = body;
	return out;
}

struct view_timeline_layout view_timeline_areas(struct view_rect body, int label_width,
						bool details)
{
	struct view_timeline_layout out = {0};
	struct view_rect rest = body;

	if (details && body.height >= VIEW_DETAILS_FROM)
		out.details = layout_cut_bottom(&rest, body.height >= 30 ? DETAILS_HEIGHT + 3
									 : DETAILS_HEIGHT);
	if (rest.height >= 8)
		out.overview = view_cut_top(&rest, 1);
	out.labels = layout_cut_left(&rest, min(label_width, rest.width / 3));
	if (rest.width >= 3 * IDLE_WIDTH) {
		out.idle = rest;
		out.idle.width = IDLE_WIDTH;
		out.idle.x = rest.x + rest.width - IDLE_WIDTH;
		rest.width -= IDLE_WIDTH;
	}
	out.lanes = rest;
	return out;
}

struct view_tensors_layout view_tensors_areas(struct view_rect body, int rows)
{
	struct view_tensors_layout out = {0};
	struct view_rect rest = body;
	const int wanted = max(body.height * 2 / 5, body.height - rows - 2);

	if (body.height >= 12) {
		struct view_rect foot = layout_cut_bottom(&rest, min(wanted, body.height - 6));

		out.heading = view_cut_top(&foot, 1);
		out.body = foot;
	}
	out.table = rest;
	return out;
}

struct view_rect view_tensors_share(struct view_rect area, int count, int at)
{
	const bool above = area.width < TENSORS_WIDE && area.height >= TENSORS_HIGH;
	const int whole = above ? area.height : area.width;
	const int from = whole * at / count, to = whole * (at + 1) / count;

	if (above) {
		area.y += from;
		area.height = to - from;
	} else {
		area.x += from;
		area.width = to - from;
	}
	return area;
}

/* Lay the blocks out in at most @columns columns; *@used: the columns that have a block. */
static int blocks_in_columns(int width, int columns, const int *heights, int count,
			     struct view_rect *places, int *used)
{
	const int share = (width - 2 * (columns - 1)) / columns;
	const int column_width = columns > 1 ? min(share, COLUMN_WIDTH + 20) : width;
	int filled = 0, highest = 0, total = 0, column = 0, before = 0;

	for (int i = 0; i < count; i++)
		total += heights[i] + 1;
	for (int i = 0; i < count; i++) {
		/* Blocks keep their order: a column ends when it has its share of the total
		 * height. */
		if (column + 1 < columns && filled > 0 &&
		    columns * (before + filled + heights[i] / 2) >= (column + 1) * total) {
			before += filled;
			filled = 0;
			column++;
		}
		places[i] = (struct view_rect){column * (column_width + 2), filled, column_width,
					       heights[i]};
		filled += heights[i] + 1;
		highest = max(highest, filled);
	}
	*used = column + 1;
	return max(0, highest - 1);
}

int view_blocks_layout(int width, int two_from, const int *heights, int count,
		       struct view_rect *places)
{
	int columns = width >= two_from * 7 / 4 ? 3 : width >= two_from ? 2 : 1, used;
	int height = blocks_in_columns(width, columns, heights, count, places, &used);

	while (used < columns) {
		columns = used;
		height = blocks_in_columns(width, columns, heights, count, places, &used);
	}
	return height;
}

void view_lane_heights(const int *depths, int count, int rows, int most, int *heights)
{
	bool grown = true;

	for (int i = 0; i < count; i++) {
		heights[i] = rows > 0 ? 1 : 0;
		rows -= heights[i];
	}
	while (rows > 0 && grown) {
		grown = false;
		for (int i = 0; i < count && rows > 0; i++)
			if (heights[i] > 0 && heights[i] < min(depths[i], most)) {
				heights[i]++;
				rows--;
				grown = true;
			}
	}
}
