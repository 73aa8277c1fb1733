/*
 * The tiles on the chip's floor plan: as many IPUs' plans as there is room for, the cursor's among
 * them.
 *
 * A tile is a cell wide and half a cell high, or a multiple of that.
 *
 * Threading: the worker's; drawing the terminal's. Ownership: values are picture_arena's.
 */
#include "viewer/draw/view_heat.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/minmax.h"
#include "reports/named/report_floor.h"
#include "viewer/memory/view_memory_internal.h"

#define SCALE_MOST 6 /* cells that a tile may be wide */
#define GAP        2 /* columns between two plans */

/* ---- where everything is --------------------------------------------------------------------- */

/* What a plan shows. */
enum view_layer {
	LAYER_SOURCE,
	LAYER_TARGET,
	LAYER_DIFFERENCE
};

static int view_each(const struct view_memory *screen)
{
	const int fit = (screen->areas.picture.width + GAP) / (screen->floor.columns + GAP);

	return screen->sides == 1 || screen->differ || fit < 2 ? 1 : min(fit, 3);
}

/* The largest scale at which @plans all fit; else the least, and what fits of them. An IPU's plans
 * stand beside each other. */
static void view_lay_out(struct view_memory *screen, int plans, int at)
{
	const struct view_rect *area = &screen->areas.picture;
	struct view_memory_floor *floor = &screen->floor;
	const int high = area->height - 1; /* the legend's row is below */
	int down = 1, scale = SCALE_MOST;

	floor->title = high > 2;
	floor->each = view_each(screen);
	plans *= floor->each;
	at *= floor->each;
	for (; scale >= 1; scale--) {
		floor->width = floor->columns * scale;
		floor->height = (floor->rows * scale + 1) / 2;
		floor->across = (area->width + GAP) / (floor->width + GAP);
		floor->across -= floor->across % floor->each;
		down = high / (floor->height + floor->title);
		if (floor->across * down >= plans)
			break;
	}
	floor->across = max(floor->each, floor->across);
	down = max(1, down);
	floor->width = min(floor->width, area->width);
	floor->height = max(1, min(floor->height, high - floor->title));
	floor->first = at / (floor->across * down) * (floor->across * down);
	floor->count = min(floor->across * down, plans - floor->first);
}

/* A plan of the page, in the picture's coordinates; its title is above. */
struct view_rect view__memory_plan(const struct view_memory *screen, int plan)
{
	const struct view_memory_floor *floor = &screen->floor;

	return (struct view_rect){plan % floor->across * (floor->width + GAP),
				  plan / floor->across * (floor->height + floor->title) +
					  floor->title,
				  floor->width, floor->height};
}

static int64_t view_base(const struct view_memory *screen, int plan)
{
	const struct view_memory_floor *floor = &screen->floor;

	return view__memory_first(screen) + (floor->first + plan) / floor->each * screen->tiles;
}

static enum view_layer view_layer_of(const struct view_memory *screen, int plan)
{
	const struct view_memory_floor *floor = &screen->floor;

	return screen->sides > 1 && floor->each == 1
		       ? LAYER_DIFFERENCE
		       : (enum view_layer)((floor->first + plan) % floor->each);
}

int64_t view__memory_floor_find(const struct view_memory *screen, int x, int y)
{
	for (int plan = 0; plan < screen->floor.count; plan++) {
		const struct view_rect rect = view__memory_plan(screen, plan);
		const struct view_pane pane = {.rect = rect};
		int column, row;
		int64_t tile;

		if (!view_heat_find(&pane, screen->floor.columns, screen->floor.rows, x - rect.x,
				    y - rect.y, &column, &row))
			continue;
		tile = row * REPORT_FLOOR_ACROSS + column;
		if (tile < screen->tiles)
			return view_base(screen, plan) + tile;
	}
	return -1;
}

/* ---- values ---------------------------------------------------------------------------------- */

static double view_shade(const struct view_memory *screen, enum view_layer layer, int64_t index)
{
	const bool source = screen->side[0].capacity[index] > 0;
	const bool target = screen->sides > 1 && screen->side[1].capacity[index] > 0;

	switch (layer) {
	case LAYER_SOURCE:
		return source ? (double)view__memory_value(screen, 0, index) : (double)NAN;
	case LAYER_TARGET:
		return target ? (double)view__memory_value(screen, 1, index) : (double)NAN;
	case LAYER_DIFFERENCE:
		break;
	}
	return source || target ? (double)view__memory_value(screen, 1, index) -
					  (double)view__memory_value(screen, 0, index)
				: (double)NAN;
}

/* From the least to the greatest, so that little differences show; on demand from nothing to what a
 * tile has. The same for both reports. */
static void view_colours(struct view_memory *screen)
{
	const int64_t first = view__memory_first(screen), shown = view__memory_shown(screen);
	struct view_memory_floor *floor = &screen->floor;

	floor->high = floor->most = 1;
	floor->low = INFINITY;
	for (int64_t i = first; i < first + shown; i++) {
		for (int s = 0; s < screen->sides; s++) {
			const double shade = view_shade(screen, (enum view_layer)s, i);

			floor->high = fmax(floor->high, shade);
			floor->low = fmin(floor->low, shade);
		}
		if (screen->sides > 1)
			floor->most =
				fmax(floor->most, fabs(view_shade(screen, LAYER_DIFFERENCE, i)));
	}
	if (screen->capacity || !(floor->low < floor->high))
		floor->low = 0;
	if (screen->capacity)
		floor->high = (double)view__memory_top(screen);
}

enum status view__memory_floor(struct view_memory *screen, struct err *err)
{
	struct view_memory_floor *floor = &screen->floor;
	const int plans = (int)(view__memory_shown(screen) / screen->tiles);
	const int64_t at = view__memory_cursor(screen) - view__memory_first(screen);
	size_t each;

	memset(floor, 0, sizeof(*floor));
	floor->columns = REPORT_FLOOR_ACROSS;
	floor->rows = (int)report_floor_rows(screen->tiles);
	view_lay_out(screen, plans, (int)(at / screen->tiles));
	view_colours(screen);
	each = (size_t)floor->columns * (size_t)floor->rows;
	floor->values = arena_alloc(&screen->picture_arena, each * (size_t)floor->count + 1,
				    sizeof(*floor->values));
	if (!floor->values) {
		floor->count = 0;
		return err_nomem(err);
	}
	for (int plan = 0; plan < floor->count; plan++)
		for (size_t i = 0; i < each; i++)
			floor->values[(size_t)plan * each + i] =
				(int64_t)i < screen->tiles
					? view_shade(screen, view_layer_of(screen, plan),
						     view_base(screen, plan) + (int64_t)i)
					: (double)NAN;
	return ST_OK;
}

/* ---- drawing --------------------------------------------------------------------------------- */

static void view_point_at(const struct view_memory *screen, struct view_pane *plan, int64_t tile,
			  enum view_style style, uint32_t character)
{
	const struct view_rect place = view_heat_place(
		plan, screen->floor.columns, screen->floor.rows, (int)(tile % REPORT_FLOOR_ACROSS),
		(int)(tile / REPORT_FLOOR_ACROSS));

	for (int y = 0; y < place.height; y++)
		for (int x = 0; x < place.width; x++)
			view_put(plan, place.x + x, place.y + y, style, character);
}

/* Tiles that hold more than they have: in red, and with a glyph. */
static void view_draw_over(const struct view_memory *screen, struct view_pane *plan, int side,
			   int64_t base)
{
	if (screen->sums[side].over == 0)
		return;
	for (int64_t i = base; i < base + screen->tiles; i++)
		if (view__memory_excess(&screen->side[side], i) > 0)
			view_point_at(screen, plan, i - base, VIEW_BAD, '!');
}

static void view_draw_points(const struct view_memory *screen, const struct view_context *context,
			     struct view_pane *plan, int64_t base)
{
	const int64_t cursor = view__memory_cursor(screen);

	for (int i = 0; i < screen->marks; i++) {
		const int64_t index =
			view__memory_index(screen, screen->mark[i].ipu, screen->mark[i].tile);

		if (index >= base && index < base + screen->tiles)
			view_point_at(screen, plan, index - base, VIEW_SELECTED,
				      (uint32_t)('1' + i));
	}
	if (cursor >= base && cursor < base + screen->tiles && !context->whole)
		view_point_at(screen, plan, cursor - base, VIEW_CURSOR, 'X');
}

/* "IPU 1, Target: a row has 16 islands of 4 tiles" */
static void view_draw_title(const struct view_memory *screen, struct view_pane *pane, int plan)
{
	static const char *const names[] = {", Source", ", Target", ", Target less Source"};
	const struct view_rect rect = view__memory_plan(screen, plan);
	char title[128];

	snprintf(title, sizeof(title), "IPU %" PRId64 "%s%s",
		 view__memory_ipu_of(screen, view_base(screen, plan)),
		 screen->sides > 1 ? names[view_layer_of(screen, plan)] : "",
		 plan == 0 ? ": a row has 16 islands of 4 tiles" : "");
	view_text_cut(pane, rect.x, rect.y - 1, rect.width, VIEW_DIM, title);
}

static void view_draw_plan(const struct view_memory *screen, const struct view_context *context,
			   struct view_pane *pane, int plan, const struct view_axis *scale)
{
	const struct view_memory_floor *floor = &screen->floor;
	const double *values =
		floor->values + (size_t)plan * (size_t)(floor->columns * floor->rows);
	struct view_pane map = view_pane_sub(pane, view__memory_plan(screen, plan));
	const enum view_layer layer = view_layer_of(screen, plan);
	const int64_t base = view_base(screen, plan);

	if (floor->title)
		view_draw_title(screen, pane, plan);
	if (layer == LAYER_DIFFERENCE) {
		view_heat_signed_map(&map, values, floor->columns, floor->rows, floor->most);
	} else {
		view_heat_map(&map, values, floor->columns, floor->rows, scale);
		view_draw_over(screen, &map, (int)layer, base);
	}
	view_draw_points(screen, context, &map, base);
}

/* What the shades mean; returns where there is room for more. */
static int view_draw_scales(const struct view_memory *screen, struct view_pane *pane,
			    const struct view_axis *scale, int y)
{
	const struct view_memory_floor *floor = &screen->floor;
	const bool difference = screen->sides > 1 && floor->each != 2;
	int x = 0;

	if (screen->sides == 1 || floor->each > 1)
		x = view_heat_legend(pane, 0, y, pane->rect.width, scale);
	x += x > 0 ? 2 : 0;
	if (difference)
		x += view_heat_signed_legend(pane, x, y, pane->rect.width - x, floor->most,
					     REPORT_BYTES) +
		     2;
	return x;
}

void view__memory_draw_floor(const struct view_memory *screen, const struct view_context *context,
			     struct view_pane *pane)
{
	const struct view_memory_floor *floor = &screen->floor;
	const struct view_axis scale = {
		.low = floor->low, .high = floor->high, .quantity = REPORT_BYTES};
	const int64_t ipus = view__memory_shown(screen) / screen->tiles;
	const bool over = screen->sums[0].over > 0 || screen->sums[1].over > 0;
	const int y = pane->rect.height - 1;
	char more[VIEW_PLACE_NAME + 96];
	int x;

	for (int plan = 0; plan < floor->count; plan++)
		view_draw_plan(screen, context, pane, plan, &scale);
	x = view_draw_scales(screen, pane, &scale, y);
	snprintf(more, sizeof(more), "%s%s  X the cursor%s%s",
		 screen->sides > 1 && floor->each == 1 ? "Target less Source, " : "",
		 view__memory_what(screen),
		 over && (screen->sides == 1 || floor->each > 1) ? ", ! out of memory" : "",
		 floor->count < ipus * floor->each ? ", ( ) other IPUs" : "");
	if (x < pane->rect.width)
		view_text_cut(pane, x, y, pane->rect.width - x, VIEW_DIM, more);
}
