/*
 * Select the shown numbers of tiles, sum them, and compute the pictures: columns of the curve, bins
 * of the histogram, floor plans of the IPUs.
 *
 * Threading: the session's. Ownership: the screen's picture arena.
 */
#include "viewer/memory/view_memory_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "common/sorted.h"
#include "common/str.h"
#include "reports/named/report_floor.h"
#include "reports/table/report_axis.h"
#include "viewer/draw/view_chart.h"

/* ---- series ---------------------------------------------------------------------------------- */

static int64_t memory_sum_tiles(const struct view_memory *screen, const int64_t *bytes)
{
	const int64_t first = view__memory_first(screen), shown = view__memory_shown(screen);
	int64_t sum = 0;

	for (int64_t i = first; bytes && i < first + shown; i++)
		sum = sat_add(sum, bytes[i]);
	return sum;
}

static void memory_add_series(struct view_memory *screen, const char *name, const int64_t *source,
			      const int64_t *target)
{
	const int64_t sum =
		sat_add(memory_sum_tiles(screen, source), memory_sum_tiles(screen, target));

	/* Keep the selected series even if the shown IPU has none of it. */
	if ((sum > 0 || strcmp(name, screen->part) == 0) &&
	    screen->series_count < VIEW_MEMORY_CATEGORIES)
		screen->series[screen->series_count++] =
			(struct view_memory_series){name, {source, target}, sum};
}

static int memory_larger_series_first(const void *left, const void *right)
{
	const struct view_memory_series *a = left, *b = right;

	return a->sum != b->sum ? SORTED_BY(b, a, sum) : strcmp(a->name, b->name);
}

void view__memory_series(struct view_memory *screen)
{
	const struct view_memory_side *s = &screen->side[0], *t = &screen->side[1];

	screen->series_count = 0;
	if (screen->breakdown == VIEW_MEMORY_BY_CATEGORY) {
		for (int c = 0; c < screen->categories; c++)
			memory_add_series(screen, screen->category[c], s->category[c],
					  t->category[c]);
	} else if (screen->breakdown == VIEW_MEMORY_BY_REGION) {
		for (int r = 0; r < VIEW_MEMORY_REGIONS; r++)
			memory_add_series(screen, view__memory_regions[r], s->region[r],
					  t->region[r]);
	} else if (screen->breakdown == VIEW_MEMORY_BY_LIVENESS) {
		memory_add_series(screen, "always live", s->always, t->always);
		memory_add_series(screen, "not always live", s->not_always, t->not_always);
	}
	qsort(screen->series, (size_t)screen->series_count, sizeof(screen->series[0]),
	      memory_larger_series_first);
	screen->chosen = -1;
	for (int i = 0; i < screen->series_count; i++)
		if (strcmp(screen->series[i].name, screen->part) == 0)
			screen->chosen = i;
	screen->stack_count = min(screen->series_count, VIEW_MEMORY_STACK);
	if (screen->chosen >= 0 || screen->sides > 1 || screen->subject.name[0])
		screen->stack_count = 0;
}

void view__memory_choose(struct view_memory *screen, int at)
{
	screen->chosen = at;
	str_copy(screen->part, sizeof(screen->part), at < 0 ? "" : screen->series[at].name);
}

int64_t view__memory_value(const struct view_memory *screen, int side, int64_t index)
{
	const int64_t *bytes = screen->subject.name[0] ? screen->side[side].subject
			       : screen->chosen >= 0   ? screen->series[screen->chosen].bytes[side]
						       : screen->side[side].total;

	return bytes ? bytes[index] : 0;
}

const char *view__memory_what(const struct view_memory *screen)
{
	if (screen->subject.name[0])
		return screen->subject.name;
	return screen->chosen >= 0 ? screen->series[screen->chosen].name : "all memory";
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Bytes beyond the tile's capacity; if there are none, the bytes recorded as overflowed. */
int64_t view__memory_excess(const struct view_memory_side *side, int64_t index)
{
	const int64_t more = sat_sub(side->total[index], side->capacity[index]);

	return more > 0 ? more : side->region[VIEW_MEMORY_OVERFLOWED][index];
}

double view__memory_share(int64_t bytes, int64_t of)
{
	return of > 0 ? (double)bytes / (double)of : (double)NAN;
}

static void memory_sum_side(const struct view_memory *screen, int side,
			    struct view_memory_sums *sums)
{
	const struct view_memory_side *from = &screen->side[side];
	const int64_t first = view__memory_first(screen), shown = view__memory_shown(screen);

	*sums = (struct view_memory_sums){.fullest = -1, .least = INT64_MAX};
	sums->bytes = memory_sum_tiles(screen, from->total);
	sums->capacity = memory_sum_tiles(screen, from->capacity);
	for (int64_t i = first; i < first + shown; i++) {
		const int64_t value = view__memory_value(screen, side, i);
		const int64_t excess = view__memory_excess(from, i);

		sums->greatest = max(value, sums->greatest);
		if (from->total[i] <= 0)
			continue;
		sums->tiles++;
		sums->over += excess > 0;
		sums->excess = max(excess, sums->excess);
		sums->least = min(from->total[i], sums->least);
		if (sums->fullest < 0 || from->total[i] > from->total[sums->fullest])
			sums->fullest = i;
	}
}

int64_t view__memory_top(const struct view_memory *screen)
{
	int64_t top = 1;

	for (int s = 0; s < screen->sides; s++) {
		if (screen->sums[s].greatest > top)
			top = screen->sums[s].greatest;
		if (screen->capacity && screen->sums[s].fullest >= 0 &&
		    screen->side[s].capacity[screen->sums[s].fullest] > top)
			top = screen->side[s].capacity[screen->sums[s].fullest];
	}
	return top;
}

/* ---- the curve's columns --------------------------------------------------------------------- */

int view__memory_column_of(const struct view_memory *screen, int64_t position)
{
	const int64_t span = screen->span > 0 ? screen->span : view__memory_shown(screen);
	const int64_t at = position - screen->from;

	return at < 0 || at >= span || screen->curve.count == 0
		       ? -1
		       : view_share_cell(span, screen->curve.count, at);
}

static double *memory_alloc_numbers(struct view_memory *screen, int count)
{
	return arena_alloc(&screen->picture_arena, (size_t)count, sizeof(double));
}

static enum status memory_make_curve(struct view_memory *screen, int columns, struct err *err)
{
	struct view_memory_curve *curve = &screen->curve;

	*curve = (struct view_memory_curve){.from = screen->from, .span = screen->span};
	if (columns < 1)
		return ST_OK;
	curve->index = arena_alloc(&screen->picture_arena, (size_t)columns, sizeof(*curve->index));
	if (!curve->index)
		return err_nomem(err);
	for (int s = 0; s < screen->sides; s++)
		if (!(curve->bytes[s] = memory_alloc_numbers(screen, columns)))
			return err_nomem(err);
	for (int i = 0; i < screen->stack_count; i++)
		if (!(curve->part[i] = memory_alloc_numbers(screen, columns)))
			return err_nomem(err);
	curve->parts = screen->stack_count;
	curve->count = columns;
	return ST_OK;
}

static void memory_fill_column(struct view_memory *screen, int x)
{
	struct view_memory_curve *curve = &screen->curve;
	const int64_t span = screen->span > 0 ? screen->span : view__memory_shown(screen);
	int64_t from, to, most = -1;

	/* The positions that the column covers, at least one. */
	view_share(span, curve->count, x, &from, &to);
	from += screen->from;
	to += screen->from;
	for (; from < to; from++) {
		const int64_t index = view__memory_at(screen, from);

		for (int s = 0; s < screen->sides; s++) {
			const int64_t value = view__memory_value(screen, s, index);

			curve->bytes[s][x] = fmax(curve->bytes[s][x], (double)value);
			if (value <= most)
				continue;
			most = value;
			curve->index[x] = index;
		}
	}
	for (int i = 0; i < screen->series_count && screen->stack_count > 0; i++) {
		const int part = i < screen->stack_count ? i : screen->stack_count - 1;
		const int64_t *bytes = screen->series[i].bytes[0];

		curve->part[part][x] += bytes ? (double)bytes[curve->index[x]] : 0;
	}
}

/* ---- the histogram's bins -------------------------------------------------------------------- */

/* The least of 1, 2, 3, 4, 6, 8, 12 ... that is at least @least. */
static int64_t memory_round_up(int64_t least)
{
	int64_t power = 1;

	while (power < least && power < INT64_MAX / 4)
		power *= 2;
	return power >= 4 && power / 4 * 3 >= least ? power / 4 * 3 : power;
}

static void memory_make_bins(struct view_memory *screen, int rows)
{
	const int64_t first = view__memory_first(screen), shown = view__memory_shown(screen);
	int64_t low, high, base, cursor;

	screen->bin_count = screen->bin_at = 0;
	if (rows > VIEW_MEMORY_BINS)
		rows = VIEW_MEMORY_BINS;
	if (rows < 1 || view__memory_shown(screen) == 0)
		return;
	low = INT64_MAX;
	high = 0;
	for (int s = 0; s < screen->sides; s++)
		for (int64_t i = first; i < first + shown; i++) {
			const int64_t value = view__memory_value(screen, s, i);

			low = value < low ? value : low;
			high = value > high ? value : high;
		}
	screen->bin_bytes = memory_round_up((high - low) / rows + 1);
	base = low / screen->bin_bytes * screen->bin_bytes;
	while ((high - base) / screen->bin_bytes >= rows) {
		screen->bin_bytes = memory_round_up(screen->bin_bytes + 1);
		base = low / screen->bin_bytes * screen->bin_bytes;
	}
	screen->bin_base = base;
	screen->bin_count = (int)((high - base) / screen->bin_bytes) + 1;
	for (int i = 0; i < screen->bin_count; i++)
		screen->bins[i] = (struct view_memory_bin){.fullest = -1};
	cursor = view__memory_cursor(screen);
	for (int64_t position = 0; position < shown; position++) {
		const int64_t index = view__memory_at(screen, position);

		for (int s = 0; s < screen->sides; s++) {
			const int64_t value = view__memory_value(screen, s, index);
			const int at = (int)((value - base) / screen->bin_bytes);
			struct view_memory_bin *bin = &screen->bins[at];

			bin->tiles[s]++;
			if (s == 0 && index == cursor)
				screen->bin_at = at;
			if (s == 0 && (bin->fullest < 0 ||
				       value > view__memory_value(screen, s, bin->fullest)))
				bin->fullest = index;
		}
	}
}

/* ---- floor plans: values --------------------------------------------------------------------- */

#define SCALE_MOST 6 /* most cells across a tile */
#define GAP        2 /* columns between two plans */

/* Find the largest scale at which all @plans fit; if none does, use the least scale and the page
 * with plan @at. Plans of one IPU stay side by side. */
static void memory_fit_plans(struct view_memory *screen, int plans, int at)
{
	const struct view_rect *area = &screen->areas.picture;
	struct view_memory_floor *floor = &screen->floor;
	const int high = area->height - 1; /* without the legend's row */
	const int fit = (area->width + GAP) / (floor->columns + GAP);
	int down = 1, scale = SCALE_MOST;

	floor->title = high > 2;
	floor->each = screen->sides == 1 || screen->differ || fit < 2 ? 1 : min(fit, 3);
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

static int64_t memory_floor_base(const struct view_memory *screen, int plan)
{
	const struct view_memory_floor *floor = &screen->floor;

	return view__memory_first(screen) + (floor->first + plan) / floor->each * screen->tiles;
}

/* The content of a plan. */
enum view_layer {
	LAYER_SOURCE,
	LAYER_TARGET,
	LAYER_DIFFERENCE
};

static enum view_layer memory_floor_layer(const struct view_memory *screen, int plan)
{
	const struct view_memory_floor *floor = &screen->floor;

	return screen->sides > 1 && floor->each == 1
		       ? LAYER_DIFFERENCE
		       : (enum view_layer)((floor->first + plan) % floor->each);
}

static double memory_floor_shade(const struct view_memory *screen, enum view_layer layer,
				 int64_t index)
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

/* Colours range from the least to the greatest value of both reports, so that small differences are
 * visible. If the user asks for it (0), they range from 0 to the capacity of a tile. */
static void memory_find_floor_range(struct view_memory *screen)
{
	const int64_t first = view__memory_first(screen), shown = view__memory_shown(screen);
	struct view_memory_floor *floor = &screen->floor;

	floor->high = floor->most = 1;
	floor->low = INFINITY;
	for (int64_t i = first; i < first + shown; i++) {
		for (int s = 0; s < screen->sides; s++) {
			const double shade = memory_floor_shade(screen, (enum view_layer)s, i);

			floor->high = fmax(floor->high, shade);
			floor->low = fmin(floor->low, shade);
		}
		if (screen->sides > 1)
			floor->most = fmax(floor->most,
					   fabs(memory_floor_shade(screen, LAYER_DIFFERENCE, i)));
	}
	if (screen->capacity || !(floor->low < floor->high))
		floor->low = 0;
	if (screen->capacity)
		floor->high = (double)view__memory_top(screen);
}

static enum status memory_make_floor(struct view_memory *screen, struct err *err)
{
	struct view_memory_floor *floor = &screen->floor;
	const int plans = (int)(view__memory_shown(screen) / screen->tiles);
	const int64_t at = view__memory_cursor(screen) - view__memory_first(screen);
	size_t each;

	memset(floor, 0, sizeof(*floor));
	floor->columns = REPORT_FLOOR_ACROSS;
	floor->rows = (int)report_floor_rows(screen->tiles);
	memory_fit_plans(screen, plans, (int)(at / screen->tiles));
	memory_find_floor_range(screen);
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
					? memory_floor_shade(
						  screen, memory_floor_layer(screen, plan),
						  memory_floor_base(screen, plan) + (int64_t)i)
					: (double)NAN;
	return ST_OK;
}

enum status view__memory_picture(struct view_memory *screen, struct err *err)
{
	const struct view_rect *area = &screen->areas.picture;
	enum status status;

	arena_reset(&screen->picture_arena);
	for (int s = 0; s < screen->sides; s++)
		memory_sum_side(screen, s, &screen->sums[s]);
	view__memory_window(screen);
	status = memory_make_curve(screen, area->width - VIEW_MEMORY_SCALE, err);
	for (int x = 0; x < screen->curve.count && status == ST_OK; x++)
		memory_fill_column(screen, x);
	memory_make_bins(screen, (area->height - 1) / screen->sides);
	if (status == ST_OK && screen->view == VIEW_MEMORY_CHIP)
		status = memory_make_floor(screen, err);
	return status;
}

/* ---- floor plans: positions ------------------------------------------------------------------ */

/* The rectangle of a plan, in the picture's coordinates; its title is above. */
static struct view_rect memory_plan_rect(const struct view_memory *screen, int plan)
{
	const struct view_memory_floor *floor = &screen->floor;

	return (struct view_rect){plan % floor->across * (floor->width + GAP),
				  plan / floor->across * (floor->height + floor->title) +
					  floor->title,
				  floor->width, floor->height};
}

int64_t view__memory_floor_find(const struct view_memory *screen, int x, int y)
{
	for (int plan = 0; plan < screen->floor.count; plan++) {
		const struct view_rect rect = memory_plan_rect(screen, plan);
		const struct view_pane pane = {.rect = rect};
		int column, row;
		int64_t tile;

		if (!view_heat_find(&pane, screen->floor.columns, screen->floor.rows, x - rect.x,
				    y - rect.y, &column, &row))
			continue;
		tile = row * REPORT_FLOOR_ACROSS + column;
		if (tile < screen->tiles)
			return memory_floor_base(screen, plan) + tile;
	}
	return -1;
}

/* ---- drawing --------------------------------------------------------------------------------- */

static void memory_floor_mark_tile(const struct view_memory *screen, struct view_pane *plan,
				   int64_t tile, enum view_style style, uint32_t character)
{
	const struct view_rect place = view_heat_place(
		plan, screen->floor.columns, screen->floor.rows, (int)(tile % REPORT_FLOOR_ACROSS),
		(int)(tile / REPORT_FLOOR_ACROSS));

	for (int y = 0; y < place.height; y++)
		for (int x = 0; x < place.width; x++)
			view_put(plan, place.x + x, place.y + y, style, character);
}

static void memory_floor_draw_plan(const struct view_memory *screen,
				   const struct view_context *context, struct view_pane *pane,
				   int plan, const struct report_axis *scale)
{
	const struct view_memory_floor *floor = &screen->floor;
	const double *values =
		floor->values + (size_t)plan * (size_t)(floor->columns * floor->rows);
	struct view_pane map = view_pane_sub(pane, memory_plan_rect(screen, plan));
	const enum view_layer layer = memory_floor_layer(screen, plan);
	const int64_t base = memory_floor_base(screen, plan);
	const int64_t cursor = view__memory_cursor(screen);

	if (floor->title) {
		static const char *const names[] = {", Source", ", Target", ", Target less Source"};
		const struct view_rect rect = memory_plan_rect(screen, plan);
		char title[128];

		/* "IPU 1, Target: a row has 16 islands of 4 tiles" */
		snprintf(title, sizeof(title), "IPU %" PRId64 "%s%s",
			 view__memory_ipu_of(screen, memory_floor_base(screen, plan)),
			 screen->sides > 1 ? names[memory_floor_layer(screen, plan)] : "",
			 plan == 0 ? ": a row has 16 islands of 4 tiles" : "");
		view_text_cut(pane, rect.x, rect.y - 1, rect.width, VIEW_DIM, title);
	}
	if (layer == LAYER_DIFFERENCE) {
		view_heat_signed_map(&map, values, floor->columns, floor->rows, floor->most);
	} else {
		view_heat_map(&map, values, floor->columns, floor->rows, scale);
		/* Mark tiles that are out of memory in red and with a glyph. */
		for (int64_t i = base; screen->sums[layer].over > 0 && i < base + screen->tiles;
		     i++)
			if (view__memory_excess(&screen->side[layer], i) > 0)
				memory_floor_mark_tile(screen, &map, i - base, VIEW_BAD, '!');
	}
	for (int i = 0; i < screen->marks; i++) {
		const int64_t index =
			view__memory_index(screen, screen->mark[i].ipu, screen->mark[i].tile);

		if (index >= base && index < base + screen->tiles)
			memory_floor_mark_tile(screen, &map, index - base, VIEW_SELECTED,
					       (uint32_t)('1' + i));
	}
	if (cursor >= base && cursor < base + screen->tiles && !context->whole)
		memory_floor_mark_tile(screen, &map, cursor - base, VIEW_CURSOR, 'X');
}

void view__memory_draw_floor(const struct view_memory *screen, const struct view_context *context,
			     struct view_pane *pane)
{
	const struct view_memory_floor *floor = &screen->floor;
	const struct report_axis scale = {
		.low = floor->low, .high = floor->high, .quantity = REPORT_BYTES};
	const int64_t ipus = view__memory_shown(screen) / screen->tiles;
	const bool over = screen->sums[0].over > 0 || screen->sums[1].over > 0;
	const int y = pane->rect.height - 1;
	char more[VIEW_PLACE_NAME + 96];
	int x = 0;

	for (int plan = 0; plan < floor->count; plan++)
		memory_floor_draw_plan(screen, context, pane, plan, &scale);
	if (screen->sides == 1 || floor->each > 1)
		x = view_heat_legend(pane, 0, y, pane->rect.width, &scale);
	x += x > 0 ? 2 : 0;
	if (screen->sides > 1 && floor->each != 2)
		x += view_heat_signed_legend(pane, x, y, pane->rect.width - x, floor->most,
					     REPORT_BYTES) +
		     2;
	snprintf(more, sizeof(more), "%s%s  X the cursor%s%s",
		 screen->sides > 1 && floor->each == 1 ? "Target less Source, " : "",
		 view__memory_what(screen),
		 over && (screen->sides == 1 || floor->each > 1) ? ", ! out of memory" : "",
		 floor->count < ipus * floor->each ? ", ( ) other IPUs" : "");
	if (x < pane->rect.width)
		view_text_cut(pane, x, y, pane->rect.width - x, VIEW_DIM, more);
}
