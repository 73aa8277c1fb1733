/*
 * Which numbers of a tile are shown, their sums, and the columns and bins that pictures are drawn
 * from.
 *
 * Threading: the worker's. Ownership: points are picture_arena's.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "common/str.h"
#include "viewer/draw/view_share.h"
#include "viewer/memory/view_memory_internal.h"

/* ---- series ---------------------------------------------------------------------------------- */

static int64_t view_sum(const struct view_memory *screen, const int64_t *bytes)
{
	const int64_t first = view__memory_first(screen), shown = view__memory_shown(screen);
	int64_t sum = 0;

	for (int64_t i = first; bytes && i < first + shown; i++)
		if (__builtin_add_overflow(sum, bytes[i], &sum))
			sum = INT64_MAX;
	return sum;
}

static void view_add_series(struct view_memory *screen, const char *name, const int64_t *source,
			    const int64_t *target)
{
	struct view_memory_series series = {name, {source, target}, view_sum(screen, source)};

	if (__builtin_add_overflow(series.sum, view_sum(screen, target), &series.sum))
		series.sum = INT64_MAX;
	/* What is chosen stays, though an IPU may have none of it. */
	if ((series.sum > 0 || strcmp(name, screen->part) == 0) &&
	    screen->series_count < VIEW_MEMORY_CATEGORIES)
		screen->series[screen->series_count++] = series;
}

static int view_more(const void *a, const void *b)
{
	const struct view_memory_series *x = a, *y = b;

	return x->sum != y->sum ? (x->sum < y->sum) - (x->sum > y->sum) : strcmp(x->name, y->name);
}

void view__memory_series(struct view_memory *screen)
{
	const struct view_memory_side *s = &screen->side[0], *t = &screen->side[1];

	screen->series_count = 0;
	if (screen->breakdown == VIEW_MEMORY_BY_CATEGORY) {
		for (int c = 0; c < screen->categories; c++)
			view_add_series(screen, screen->category[c], s->category[c],
					t->category[c]);
	} else if (screen->breakdown == VIEW_MEMORY_BY_REGION) {
		for (int r = 0; r < VIEW_MEMORY_REGIONS; r++)
			view_add_series(screen, view__memory_regions[r], s->region[r],
					t->region[r]);
	} else if (screen->breakdown == VIEW_MEMORY_BY_LIVENESS) {
		view_add_series(screen, "always live", s->always, t->always);
		view_add_series(screen, "not always live", s->not_always, t->not_always);
	}
	qsort(screen->series, (size_t)screen->series_count, sizeof(screen->series[0]), view_more);
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

static const int64_t *view_shown(const struct view_memory *screen, int side)
{
	if (screen->subject.name[0])
		return screen->side[side].subject;
	return screen->chosen >= 0 ? screen->series[screen->chosen].bytes[side]
				   : screen->side[side].total;
}

int64_t view__memory_value(const struct view_memory *screen, int side, int64_t index)
{
	const int64_t *bytes = view_shown(screen, side);

	return bytes ? bytes[index] : 0;
}

const char *view__memory_what(const struct view_memory *screen)
{
	if (screen->subject.name[0])
		return screen->subject.name;
	return screen->chosen >= 0 ? screen->series[screen->chosen].name : "all memory";
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* More than there is room for; or some is said to have overflowed all the same. */
int64_t view__memory_excess(const struct view_memory_side *side, int64_t index)
{
	const int64_t more = sat_sub(side->total[index], side->capacity[index]);

	return more > 0 ? more : side->region[VIEW_MEMORY_OVERFLOWED][index];
}

double view__memory_share(int64_t bytes, int64_t of)
{
	return of > 0 ? (double)bytes / (double)of : (double)NAN;
}

static void view_sum_up(const struct view_memory *screen, int side, struct view_memory_sums *sums)
{
	const struct view_memory_side *from = &screen->side[side];
	const int64_t first = view__memory_first(screen), shown = view__memory_shown(screen);

	*sums = (struct view_memory_sums){.fullest = -1, .least = INT64_MAX};
	sums->bytes = view_sum(screen, from->total);
	sums->capacity = view_sum(screen, from->capacity);
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

void view__memory_column(const struct view_memory *screen, int column, int64_t *from, int64_t *to)
{
	const int64_t span = screen->span > 0 ? screen->span : view__memory_shown(screen);

	view_share(span, screen->curve.count, column, from, to);
	*from += screen->from;
	*to += screen->from;
}

int view__memory_column_of(const struct view_memory *screen, int64_t position)
{
	const int64_t span = screen->span > 0 ? screen->span : view__memory_shown(screen);
	const int64_t at = position - screen->from;

	return at < 0 || at >= span || screen->curve.count == 0
		       ? -1
		       : view_share_cell(span, screen->curve.count, at);
}

static double *view_numbers(struct view_memory *screen, int count)
{
	return arena_alloc(&screen->picture_arena, (size_t)count, sizeof(double));
}

static enum status view_make_curve(struct view_memory *screen, int columns, struct err *err)
{
	struct view_memory_curve *curve = &screen->curve;

	*curve = (struct view_memory_curve){.from = screen->from, .span = screen->span};
	if (columns < 1)
		return ST_OK;
	curve->index = arena_alloc(&screen->picture_arena, (size_t)columns, sizeof(*curve->index));
	if (!curve->index)
		return err_nomem(err);
	for (int s = 0; s < screen->sides; s++)
		if (!(curve->bytes[s] = view_numbers(screen, columns)))
			return err_nomem(err);
	for (int i = 0; i < screen->stack_count; i++)
		if (!(curve->part[i] = view_numbers(screen, columns)))
			return err_nomem(err);
	curve->parts = screen->stack_count;
	curve->count = columns;
	return ST_OK;
}

static void view_fill_column(struct view_memory *screen, int x)
{
	struct view_memory_curve *curve = &screen->curve;
	int64_t from, to, most = -1;

	view__memory_column(screen, x, &from, &to);
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

/* The least of 1, 2, 3, 4, 6, 8, 12 ... that is @least or more. */
static int64_t view_round_up(int64_t least)
{
	int64_t power = 1;

	while (power < least && power < INT64_MAX / 4)
		power *= 2;
	return power >= 4 && power / 4 * 3 >= least ? power / 4 * 3 : power;
}

static void view_range(const struct view_memory *screen, int64_t *low, int64_t *high)
{
	const int64_t first = view__memory_first(screen), shown = view__memory_shown(screen);

	*low = INT64_MAX;
	*high = 0;
	for (int s = 0; s < screen->sides; s++)
		for (int64_t i = first; i < first + shown; i++) {
			const int64_t value = view__memory_value(screen, s, i);

			*low = value < *low ? value : *low;
			*high = value > *high ? value : *high;
		}
}

static void view_count(struct view_memory *screen, int64_t base)
{
	const int64_t cursor = view__memory_cursor(screen), shown = view__memory_shown(screen);

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

static void view_make_bins(struct view_memory *screen, int rows)
{
	int64_t low, high, base;

	screen->bin_count = screen->bin_at = 0;
	if (rows > VIEW_MEMORY_BINS)
		rows = VIEW_MEMORY_BINS;
	if (rows < 1 || view__memory_shown(screen) == 0)
		return;
	view_range(screen, &low, &high);
	screen->bin_bytes = view_round_up((high - low) / rows + 1);
	base = low / screen->bin_bytes * screen->bin_bytes;
	while ((high - base) / screen->bin_bytes >= rows) {
		screen->bin_bytes = view_round_up(screen->bin_bytes + 1);
		base = low / screen->bin_bytes * screen->bin_bytes;
	}
	screen->bin_base = base;
	screen->bin_count = (int)((high - base) / screen->bin_bytes) + 1;
	for (int i = 0; i < screen->bin_count; i++)
		screen->bins[i] = (struct view_memory_bin){.fullest = -1};
	view_count(screen, base);
}

enum status view__memory_picture(struct view_memory *screen, struct err *err)
{
	const struct view_rect *area = &screen->areas.picture;
	enum status status;

	arena_reset(&screen->picture_arena);
	for (int s = 0; s < screen->sides; s++)
		view_sum_up(screen, s, &screen->sums[s]);
	view__memory_window(screen);
	status = view_make_curve(screen, area->width - VIEW_MEMORY_SCALE, err);
	for (int x = 0; x < screen->curve.count && status == ST_OK; x++)
		view_fill_column(screen, x);
	view_make_bins(screen, (area->height - 1) / screen->sides);
	if (status == ST_OK && screen->view == VIEW_MEMORY_CHIP)
		status = view__memory_floor(screen, err);
	return status;
}
