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

#include "common/minmax.h"
#include "common/sat.h"
#include "common/sorted.h"
#include "common/str.h"
#include "reports/named/report_floor.h"
#include "reports/table/report_axis.h"
#include "viewer/draw/view_chart.h"

/* ---- series ---------------------------------------------------------------------------------- */

int64_t view__memory_all(const struct view_memory *screen, int side, int number)
{
	const int64_t first = view__memory_first(screen), shown = view__memory_shown(screen);
	const int64_t *bytes = screen->side[side].bytes[number];
	int64_t sum = 0;

	for (int64_t i = first; bytes && i < first + shown; i++)
		sum = sat_add(sum, bytes[i]);
	return sum;
}

static void memory_add_series(struct view_memory *screen, const char *name, int number)
{
	const int64_t sum =
		sat_add(view__memory_all(screen, 0, number), view__memory_all(screen, 1, number));

	/* Keep the selected series even if the shown IPU has none of it. */
	if ((sum > 0 || strcmp(name, screen->part) == 0) &&
	    screen->series_count < VIEW_MEMORY_CATEGORIES)
		screen->series[screen->series_count++] =
			(struct view_memory_series){name, number, sum};
}

static int memory_larger_series_first(const void *left, const void *right)
{
	const struct view_memory_series *a = left, *b = right;

	return a->sum != b->sum ? SORTED_BY(b, a, sum) : strcmp(a->name, b->name);
}

void view__memory_series(struct view_memory *screen)
{
	screen->series_count = 0;
	if (screen->breakdown == VIEW_MEMORY_BY_CATEGORY) {
		for (int c = 0; c < screen->categories; c++)
			memory_add_series(screen, screen->category[c], VIEW_MEMORY_CATEGORY + c);
	} else if (screen->breakdown == VIEW_MEMORY_BY_REGION) {
		for (int r = 0; r < VIEW_MEMORY_REGIONS; r++)
			memory_add_series(screen, view__memory_regions[r], VIEW_MEMORY_REGION + r);
	} else if (screen->breakdown == VIEW_MEMORY_BY_LIVENESS) {
		memory_add_series(screen, "always live", VIEW_MEMORY_ALWAYS_LIVE);
		memory_add_series(screen, "not always live", VIEW_MEMORY_NOT_ALWAYS_LIVE);
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
	return view__memory_bytes(screen, side,
				  screen->subject.name[0] ? VIEW_MEMORY_SUBJECT
				  : screen->chosen >= 0   ? screen->series[screen->chosen].number
							  : VIEW_MEMORY_TOTAL,
				  index);
}

const char *view__memory_what(const struct view_memory *screen)
{
	if (screen->subject.name[0])
		return screen->subject.name;
	return screen->chosen >= 0 ? screen->series[screen->chosen].name : "all memory";
}

/* ---- sums ------------------------------------------------------------------------------------ */

int64_t view__memory_excess(const struct view_memory *screen, int side, int64_t index)
{
	int64_t *const *bytes = screen->side[side].bytes;
	const int64_t more =
		sat_sub(bytes[VIEW_MEMORY_TOTAL][index], bytes[VIEW_MEMORY_CAPACITY][index]);

	return more > 0 ? more : bytes[VIEW_MEMORY_OVERFLOWED][index];
}

double view__memory_share(int64_t bytes, int64_t of)
{
	return of > 0 ? (double)bytes / (double)of : (double)NAN;
}

void view__memory_sum(const struct view_memory *screen, int side, int64_t first, int64_t count,
		      struct view_memory_sums *sums)
{
	int64_t *const *bytes = screen->side[side].bytes;

	*sums = (struct view_memory_sums){.fullest = -1, .least = INT64_MAX};
	for (int64_t i = first; i < first + count; i++) {
		const int64_t total = bytes[VIEW_MEMORY_TOTAL][i];
		const int64_t excess = view__memory_excess(screen, side, i);

		sums->greatest = max(view__memory_value(screen, side, i), sums->greatest);
		if (total <= 0)
			continue;
		sums->tiles++;
		sums->bytes = sat_add(sums->bytes, total);
		sums->capacity = sat_add(sums->capacity, bytes[VIEW_MEMORY_CAPACITY][i]);
		sums->always = sat_add(sums->always, bytes[VIEW_MEMORY_ALWAYS_LIVE][i]);
		sums->not_always = sat_add(sums->not_always, bytes[VIEW_MEMORY_NOT_ALWAYS_LIVE][i]);
		sums->over += excess > 0;
		sums->excess = max(excess, sums->excess);
		sums->shrink = sat_add(sums->shrink, excess);
		sums->least = min(total, sums->least);
		if (sums->fullest < 0 || total > bytes[VIEW_MEMORY_TOTAL][sums->fullest])
			sums->fullest = i;
	}
}

int64_t view__memory_top(const struct view_memory *screen)
{
	int64_t top = 1;

	for (int s = 0; s < screen->sides; s++) {
		const struct view_memory_sums *sums = &screen->sums[s];

		top = max(sums->greatest, top);
		if (screen->capacity && sums->fullest >= 0)
			top = max(screen->side[s].bytes[VIEW_MEMORY_CAPACITY][sums->fullest], top);
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

/* Allocate the curve: for each column its fullest tile, and the numbers of both reports and of the
 * stacked areas. Without memory it has no columns. */
static void memory_make_curve(struct view_memory *screen, int columns)
{
	struct view_memory_curve *curve = &screen->curve;
	const int lines = screen->sides + screen->stack_count;
	double *numbers;

	*curve = (struct view_memory_curve){.from = screen->from, .span = screen->span};
	if (columns < 1)
		return;
	curve->index = view_alloc(&screen->picture_arena, (size_t)columns, sizeof(*curve->index),
				  &screen->err);
	numbers = view_alloc(&screen->picture_arena, (size_t)lines * (size_t)columns,
			     sizeof(*numbers), &screen->err);
	if (err_stuck(&screen->err))
		return;
	for (int s = 0; s < screen->sides; s++, numbers += columns)
		curve->bytes[s] = numbers;
	for (int i = 0; i < screen->stack_count; i++, numbers += columns)
		curve->part[i] = numbers;
	curve->parts = screen->stack_count;
	curve->count = columns;
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

		curve->part[part][x] += (double)view__memory_bytes(
			screen, 0, screen->series[i].number, curve->index[x]);
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
	const int64_t cursor = view__memory_cursor(screen);
	int64_t low = INT64_MAX, high = 0, base;

	screen->bin_count = screen->bin_at = 0;
	rows = min(rows, VIEW_MEMORY_BINS);
	if (rows < 1 || shown == 0)
		return;
	for (int s = 0; s < screen->sides; s++)
		for (int64_t i = first; i < first + shown; i++) {
			const int64_t value = view__memory_value(screen, s, i);

			low = min(value, low);
			high = max(value, high);
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
	bool known[VIEW_MEMORY_SIDES];
	double bytes[VIEW_MEMORY_SIDES];

	for (int s = 0; s < VIEW_MEMORY_SIDES; s++) {
		known[s] = view__memory_bytes(screen, s, VIEW_MEMORY_CAPACITY, index) > 0;
		bytes[s] = (double)view__memory_value(screen, s, index);
	}
	if (layer == LAYER_DIFFERENCE)
		return known[0] || known[1] ? bytes[1] - bytes[0] : (double)NAN;
	return known[layer] ? bytes[layer] : (double)NAN;
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

static void memory_make_floor(struct view_memory *screen)
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
	floor->values = view_alloc(&screen->picture_arena, each * (size_t)floor->count,
				   sizeof(*floor->values), &screen->err);
	if (!floor->values)
		floor->count = 0;
	for (int plan = 0; plan < floor->count; plan++)
		for (size_t i = 0; i < each; i++)
			floor->values[(size_t)plan * each + i] =
				(int64_t)i < screen->tiles
					? memory_floor_shade(
						  screen, memory_floor_layer(screen, plan),
						  memory_floor_base(screen, plan) + (int64_t)i)
					: (double)NAN;
}

void view__memory_picture(struct view_memory *screen)
{
	const struct view_rect *area = &screen->areas.picture;

	arena_reset(&screen->picture_arena);
	for (int s = 0; s < screen->sides; s++)
		view__memory_sum(screen, s, view__memory_first(screen), view__memory_shown(screen),
				 &screen->sums[s]);
	view__memory_window(screen);
	memory_make_curve(screen, area->width - VIEW_MEMORY_SCALE);
	for (int x = 0; x < screen->curve.count; x++)
		memory_fill_column(screen, x);
	memory_make_bins(screen, (area->height - 1) / screen->sides);
	if (!err_stuck(&screen->err) && screen->view == VIEW_MEMORY_CHIP)
		memory_make_floor(screen);
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
	static const char *const names[] = {", Source", ", Target", ", Target less Source"};
	const struct view_memory_floor *floor = &screen->floor;
	const double *values =
		floor->values + (size_t)plan * (size_t)(floor->columns * floor->rows);
	const struct view_rect rect = memory_plan_rect(screen, plan);
	struct view_pane map = view_pane_sub(pane, rect);
	const enum view_layer layer = memory_floor_layer(screen, plan);
	const int64_t base = memory_floor_base(screen, plan);
	const int64_t cursor = view__memory_cursor(screen);
	char title[128];

	if (floor->title) {
		/* "IPU 1, Target: a row has 16 islands of 4 tiles" */
		snprintf(title, sizeof(title), "IPU %" PRId64 "%s%s",
			 view__memory_ipu_of(screen, base), screen->sides > 1 ? names[layer] : "",
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
			if (view__memory_excess(screen, (int)layer, i) > 0)
				memory_floor_mark_tile(screen, &map, i - base, VIEW_BAD, '!');
	}
	for (int i = 0; i < screen->marks; i++) {
		const int64_t index = view__memory_mark(screen, i);

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
