/*
 * Counters under the timeline's lanes: one strip each, on the axis of the track's clock.
 *
 * A load reads a few buckets or samples per column and strip, however large the file is. Between
 * two samples a counter has the value of the first; before the first sample nothing is drawn.
 *
 * Threading: one thread. Ownership: series are in the tracks' arena, strips in the picture's.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"

#define MOST_SERIES 256
#define TALL_FROM   20 /* least lane rows for strips of two rows */
#define MOST_ROWS   4  /* of a strip, if lanes leave rows free */
#define PART        3  /* strips get at most 1/3 of the lanes' rows */

/* ---- selection ------------------------------------------------------------------------------- */

/* Each key press shows the next counters; after the last ones it hides them. */
bool view__counters_request(struct view_timeline *tl, enum view_request request)
{
	struct view_counters *all = &tl->counters;
	const int next = all->shown ? all->first + all->strip_count : 0;

	if (request != VIEW_COUNTERS_REQUEST)
		return false;
	all->asked = !all->shown || (all->strip_count > 0 && next < all->count);
	all->shown = all->asked;
	all->first = all->asked ? next : 0;
	if (!all->asked)
		view_message(tl->context, "no counters", NULL);
	return true;
}

void view__layout_strips(struct view_timeline *tl)
{
	struct view_counters *all = &tl->counters;
	struct view_rect *columns[] = {&tl->areas.labels, &tl->areas.lanes, &tl->areas.idle};
	const int room = tl->areas.lanes.height;
	int height;

	if (all->shown && !all->known && tl->status == ST_OK) {
		tl->status = prof_timeline_counters(tl->db, MOST_SERIES, &tl->tracks.arena,
						    &all->series, &all->count, &tl->err);
		all->known = tl->status == ST_OK;
	}
	all->area = (struct view_rect){0};
	all->rows = room >= TALL_FROM ? 2 : 1;
	if (!all->shown || !all->known || all->first >= all->count)
		return;
	height = min(all->count - all->first, room / PART / all->rows) * all->rows;
	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		columns[i]->height -= columns[i]->height > height ? height : 0;
	all->area = (struct view_rect){
		tl->areas.labels.x, tl->areas.lanes.y + tl->areas.lanes.height,
		tl->areas.labels.width + tl->areas.lanes.width + tl->areas.idle.width, height};
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Return the last sample up to @time; NaN: none. */
static double view_read_sample(struct view_timeline *tl, const struct prof_counter *counter,
			       int64_t time)
{
	struct prof_samples_cell cell;

	if (tl->status == ST_OK)
		tl->status = prof_timeline_sample_at(tl->db, counter, time, &cell, &tl->err);
	return tl->status == ST_OK && cell.count > 0 ? cell.last : NAN;
}

static void view_load_strip(struct view_timeline *tl, struct view_strip *strip)
{
	const struct prof_counter *counter = strip->counter;
	const struct view_window window = tl->clock[counter->clock].window;
	const struct view_window lead = tl->clock[view__lead(tl)].window;
	const int count = 2 * tl->width;
	int64_t at = tl->cursor.ns;
	struct prof_samples_cell *cells =
		view__alloc(tl, &tl->picture, (size_t)count, sizeof(*cells));
	double held = view_read_sample(tl, counter, window.from - 1);

	strip->points = view__alloc(tl, &tl->picture, (size_t)count, sizeof(*strip->points));
	/* Map the cursor's column to the counter's clock. */
	if (counter->clock != view__lead(tl))
		at = sat_add(window.from,
			     sat_real((double)(at - lead.from) / (double)(lead.to - lead.from) *
				      (double)(window.to - window.from)));
	strip->at_cursor = view_read_sample(tl, counter, at);
	if (tl->status == ST_OK)
		tl->status = prof_timeline_samples(tl->db, counter, window.from, window.to, count,
						   cells, &tl->err);
	if (tl->status != ST_OK)
		return;
	for (int i = 0; i < count; i++) {
		const struct prof_samples_cell *cell = &cells[i];

		strip->points[i] = (struct view_chart_point){held, held, held, false};
		if (cell->count < 1)
			continue;
		strip->points[i].value = cell->total / (double)cell->count;
		strip->points[i].least = cell->least;
		strip->points[i].greatest = cell->greatest;
		held = cell->last;
	}
	if (!view_chart_range(strip->points, count, &strip->low, &strip->high))
		strip->low = strip->high + 1;
	/* flat: all values are one value, which the scale surrounds. */
	strip->flat = true;
	for (int i = 0; i < count; i++)
		strip->flat &= strip->points[i].least != strip->low;
}

void view__strips_load(struct view_timeline *tl)
{
	struct view_counters *all = &tl->counters;
	const int count = all->area.height / all->rows;
	int used = 0, spare;
	char text[64];

	if (tl->status != ST_OK)
		return;
	/* If the lanes leave rows free, move the strips up to them and make them higher. */
	for (int i = 0; i < tl->lane_count; i++)
		if (tl->lanes[i].rows > 0)
			used = max(used, tl->lanes[i].y + view__lane_height(&tl->lanes[i]));
	spare = tl->areas.lanes.height - used - 1;
	if (count > 0 && spare >= 0) {
		const int more = min(spare / count, MOST_ROWS - all->rows);

		all->area.y = tl->areas.lanes.y + used + 1;
		all->area.height += more * count;
		all->rows += more;
	}
	all->strips = view__alloc(tl, &tl->picture, (size_t)count + 1, sizeof(*all->strips));
	for (int i = 0; i < count && !view__stopped(tl); i++) {
		all->strips[i] = (struct view_strip){.counter = &all->series[all->first + i]};
		view_load_strip(tl, &all->strips[i]);
		all->strip_count += tl->status == ST_OK;
	}
	if (tl->status != ST_OK)
		return;
	/* A key asked for counters: report that there are none, or which of them these are. */
	if (all->asked && all->count == 0) {
		all->shown = false;
		view_message(tl->context, "no counters were recorded", NULL);
	} else if (all->asked && all->strip_count < all->count) {
		const int last = all->first + all->strip_count;

		snprintf(text, sizeof(text), "counters %d to %d of %d", all->first + 1, last,
			 all->count);
		view_message(tl->context, text, last < all->count ? ": p shows the next" : "");
	}
	all->asked = false;
}

void view__strips_match(struct view_timeline *tl)
{
	struct view_counters *mine = &tl->counters, *its = &tl->target->counters;

	for (int i = 0; i < mine->strip_count; i++)
		for (int j = 0; j < its->strip_count; j++) {
			struct view_strip *a = &mine->strips[i], *b = &its->strips[j];

			if (strcmp(a->counter->name, b->counter->name) != 0 ||
			    strcmp(a->counter->track, b->counter->track) != 0 || a->low > a->high ||
			    b->low > b->high)
				continue;
			a->low = b->low = fmin(a->low, b->low);
			a->high = b->high = fmax(a->high, b->high);
		}
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* Format a counter's value in the unit that its name ends in. */
static const char *view_counter_text(const char *name, double value, char out[FMT_SIZE])
{
	const size_t length = strlen(name);

	if (isnan(value)) {
		snprintf(out, FMT_SIZE, "-");
		return out;
	}
	if (length >= 5 && strcmp(name + length - 5, "bytes") == 0 && value >= 0 && value < 1e18)
		return fmt_bytes(out, (uint64_t)value);
	if (length >= 3 && strcmp(name + length - 3, "_ns") == 0 && fabs(value) < 1e18)
		return fmt_ns(out, (int64_t)value);
	if (fabs(value) < 1e9 && value == floor(value))
		return fmt_count(out, (int64_t)value);
	return fmt_real(out, value);
}

/* Return the counter's name, prefixed with its track if another counter has the same name. */
static const char *view_strip_name(const struct view_counters *all, int i, char *out, size_t size)
{
	const struct prof_counter *counter = all->strips[i].counter;

	for (int j = 0; j < all->count; j++)
		if (&all->series[j] != counter && strcmp(all->series[j].name, counter->name) == 0) {
			snprintf(out, size, "%s %s", counter->track, counter->name);
			return out;
		}
	return counter->name;
}

/* Draw a curve of Braille dots; in ASCII fill the cells from below instead. */
static void view_draw_strip(const struct view_strip *strip, struct view_pane *plot)
{
	const int height = plot->rect.height, count = 2 * plot->rect.width;

	if (!plot->canvas->ascii) {
		view_chart_curve(plot, VIEW_CURVE, strip->points, count, strip->low, strip->high);
		return;
	}
	for (int i = 0; i < count; i++) {
		const struct view_chart_point *a = &strip->points[i & ~1], *b = a + 1;
		const double most = fmax(a->greatest, b->greatest);
		const double level = (most - strip->low) / (strip->high - strip->low);

		for (int y = 0; y < height && isfinite(most); y++)
			view_put(plot, i / 2, y, VIEW_CURVE,
				 view_level_char(plot->canvas,
						 fmax(level * height - (height - 1 - y),
						      y == height - 1 ? 0.01 : 0)));
	}
}

static void view_draw_strip_texts(const struct view_timeline *tl, int i, struct view_pane *pane)
{
	const struct view_strip *strip = &tl->counters.strips[i];
	const char *name = strip->counter->name;
	const int label = tl->areas.labels.width, x = tl->mark ? 3 : 1;
	char text[VIEW_PATH_SIZE], low[FMT_SIZE], high[FMT_SIZE];

	if (tl->mark)
		view_put(pane, 1, 0, tl->mark == 'S' ? VIEW_SOURCE : VIEW_TARGET,
			 (uint32_t)tl->mark);
	view_text_cut(pane, x, 0, label - x - 1, VIEW_NORMAL,
		      view_strip_name(&tl->counters, i, text, sizeof(text)));
	if (tl->areas.idle.width > 0)
		view_text_right(pane, pane->rect.width - tl->areas.idle.width, 0,
				tl->areas.idle.width, VIEW_BOLD,
				view_counter_text(name, strip->at_cursor, low));
	if (pane->rect.height < 2 || strip->flat)
		return;
	snprintf(text, sizeof(text), "%s to %s", view_counter_text(name, strip->low, low),
		 view_counter_text(name, strip->high, high));
	view_text_cut(pane, x, 1, label - x - 1, VIEW_DIM, text);
}

void view__draw_strips(const struct view_timeline *tl, struct view_pane *pane)
{
	const struct view_counters *all = &tl->counters;
	struct view_rect rect = all->area;

	rect.height = all->rows;
	for (int i = 0; i < all->strip_count; i++, rect.y += all->rows) {
		struct view_pane strip = view_pane_sub(pane, rect);
		struct view_pane plot =
			view_pane_sub(pane, (struct view_rect){tl->areas.lanes.x, rect.y, tl->width,
							       rect.height});
		const int x = view__cursor_column(tl, all->strips[i].counter->clock);

		view_draw_strip_texts(tl, i, &strip);
		if (all->strips[i].low <= all->strips[i].high)
			view_draw_strip(&all->strips[i], &plot);
		for (int y = 0; y < rect.height && x >= 0 && !pane->canvas->plain; y++)
			view_restyle(&plot, x, y, VIEW_SELECTED);
	}
}

/* The statements that read the samples of the windows. */
void view__strips_query(const struct view_timeline *tl, struct str *out)
{
	for (int i = 0; i < tl->counters.strip_count; i++) {
		const struct prof_counter *counter = tl->counters.strips[i].counter;
		const struct view_window window = tl->clock[counter->clock].window;

		str_add(out, "SELECT time_ns, value FROM counters WHERE track = ");
		str_add_sql(out, counter->track);
		str_add(out, " AND name = ");
		str_add_sql(out, counter->name);
		str_addf(out, " AND time_ns >= %lld AND time_ns < %lld;\n", (long long)window.from,
			 (long long)window.to);
	}
}
