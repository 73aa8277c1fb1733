/*
 * Counters under the timeline's lanes: a strip each, on the axis of the track's clock.
 *
 * A load reads a few buckets or samples per column and strip, whatever the file holds. Between two
 * samples a counter has the value of the first; before the first there is nothing.
 *
 * Threading: one thread. Ownership: series are the tracks' arena's, strips the picture's.
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
#define TALL_FROM   20 /* rows of lanes that have strips of two rows */
#define MOST_ROWS   4  /* of a strip, where lanes leave room */
#define PART        3  /* of the lanes' rows that are given to strips: one of so many */

/* ---- which ----------------------------------------------------------------------------------- */

enum status view__series_load(struct view_timeline *tl, struct prof_db *db, struct err *err)
{
	struct view_counters *all = &tl->counters;
	enum status status;

	if (!all->shown || all->known)
		return ST_OK;
	status = prof_timeline_counters(db, MOST_SERIES, &tl->tracks.arena, &all->series,
					&all->count, err);
	all->known = status == ST_OK;
	return status;
}

static int view_strips_at(const struct view_timeline *tl)
{
	const struct view_counters *all = &tl->counters;
	const int rows = tl->areas.lanes.height / PART / all->rows;
	const int left = all->count - all->first;

	return min(left, rows);
}

void view__place_strips(struct view_timeline *tl)
{
	struct view_counters *all = &tl->counters;
	struct view_rect *columns[] = {&tl->areas.labels, &tl->areas.lanes, &tl->areas.idle};
	int height;

	all->area = (struct view_rect){0};
	all->rows = tl->areas.lanes.height >= TALL_FROM ? 2 : 1;
	if (!all->shown || !all->known || all->first >= all->count)
		return;
	height = view_strips_at(tl) * all->rows;
	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		columns[i]->height -= columns[i]->height > height ? height : 0;
	all->area = (struct view_rect){
		tl->areas.labels.x, tl->areas.lanes.y + tl->areas.lanes.height,
		tl->areas.labels.width + tl->areas.lanes.width + tl->areas.idle.width, height};
}

/* None, the first ones, the next ones, ... none. */
bool view__counters_request(struct view_timeline *tl, struct view_context *context,
			    enum view_request request)
{
	struct view_counters *all = &tl->counters;
	int more = 0;

	if (request != VIEW_COUNTERS_REQUEST)
		return false;
	if (!all->shown) {
		all->shown = all->tell = true;
		all->first = 0;
		return true;
	}
	more = all->first + all->strip_count;
	if (all->strip_count > 0 && more < all->count) {
		all->first = more;
		all->tell = true;
		return true;
	}
	all->shown = false;
	all->first = 0;
	view_message(context, "no counters", NULL);
	return true;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* The moment of @clock that is in the cursor's column. */
static int64_t view_cursor_on(const struct view_timeline *tl, int clock)
{
	const struct view_window from = tl->clock[view__lead(tl)].window;
	const struct view_window to = tl->clock[clock].window;

	if (clock == view__lead(tl))
		return tl->cursor.ns;
	return sat_add(to.from,
		       sat_real((double)(tl->cursor.ns - from.from) /
				(double)(from.to - from.from) * (double)(to.to - to.from)));
}

/* The last sample until @time; NaN: none. */
static enum status view_sample(struct prof_db *db, const struct prof_counter *counter, int64_t time,
			       double *out, struct err *err)
{
	struct prof_samples_cell cell;
	enum status status = prof_timeline_sample_at(db, counter, time, &cell, err);

	*out = status == ST_OK && cell.count > 0 ? cell.last : NAN;
	return status;
}

static void view_fill_points(struct view_strip *strip, const struct prof_samples_cell *cells,
			     int count, double held)
{
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
	/* Where there is but one value the scale is around it. */
	strip->flat = true;
	for (int i = 0; i < count; i++)
		strip->flat &= strip->points[i].least != strip->low;
}

static enum status view_load_strip(struct view_timeline *tl, struct view_strip *strip,
				   struct prof_db *db, struct err *err)
{
	const struct prof_counter *counter = strip->counter;
	const struct view_window window = tl->clock[counter->clock].window;
	const int count = 2 * tl->width;
	struct prof_samples_cell *cells = arena_alloc(&tl->picture, (size_t)count, sizeof(*cells));
	double held = NAN;
	enum status status;

	strip->points = arena_alloc(&tl->picture, (size_t)count, sizeof(*strip->points));
	if (!cells || !strip->points)
		return err_nomem(err);
	status = view_sample(db, counter, window.from - 1, &held, err);
	if (status == ST_OK)
		status = view_sample(db, counter, view_cursor_on(tl, counter->clock),
				     &strip->at_cursor, err);
	if (status == ST_OK)
		status = prof_timeline_samples(db, counter, window.from, window.to, count, cells,
					       err);
	if (status == ST_OK)
		view_fill_points(strip, cells, count, held);
	return status;
}

/* Right under the lanes, and higher, where these leave room. */
static void view_settle_strips(struct view_timeline *tl, int count)
{
	struct view_counters *all = &tl->counters;
	int used = 0, spare, more;

	for (int i = 0; i < tl->lane_count; i++) {
		const struct view_lane *lane = &tl->lanes[i];

		if (lane->rows > 0 && lane->y + view__lane_height(lane) > used)
			used = lane->y + view__lane_height(lane);
	}
	spare = tl->areas.lanes.height - used - 1;
	if (spare < 0)
		return;
	more = min(spare / count, MOST_ROWS - all->rows);
	all->area.y = tl->areas.lanes.y + used + 1;
	all->area.height += more * count;
	all->rows += more;
}

/* Of what a key has asked for: that there are none, or which of many these are. */
static void view_tell(struct view_timeline *tl, struct view_context *context)
{
	struct view_counters *all = &tl->counters;
	char text[64];

	if (all->tell && all->count == 0) {
		all->shown = false;
		view_message(context, "no counters were recorded", NULL);
	} else if (all->tell && all->strip_count < all->count) {
		snprintf(text, sizeof(text), "counters %d to %d of %d", all->first + 1,
			 all->first + all->strip_count, all->count);
		view_message(context, text,
			     all->first + all->strip_count < all->count ? ": p shows the next"
									: "");
	}
	all->tell = false;
}

enum status view__strips_load(struct view_timeline *tl, struct view_context *context,
			      struct err *err)
{
	struct view_counters *all = &tl->counters;
	const int count = all->area.height / all->rows;
	enum status status = ST_OK;

	if (count > 0)
		view_settle_strips(tl, count);
	all->strips = arena_alloc(&tl->picture, (size_t)count + 1, sizeof(*all->strips));
	if (!all->strips)
		return err_nomem(err);
	for (int i = 0; i < count && status == ST_OK; i++) {
		if (view_cancelled(context))
			return err_set(err, ST_INTERRUPTED, "interrupted");
		all->strips[i] = (struct view_strip){.counter = &all->series[all->first + i]};
		status = view_load_strip(tl, &all->strips[i], context->source->db, err);
		all->strip_count += status == ST_OK;
	}
	view_tell(tl, context);
	return status;
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

/* ---- showing --------------------------------------------------------------------------------- */

/* With the unit that the counter's name ends in. */
static const char *view_value_text(const char *name, double value, char out[FMT_SIZE])
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

/* Two counters may have one name: those that have stand with their tracks'. */
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

/* Curves need dots; in ASCII cells filled from below have more to tell. */
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
				view_value_text(name, strip->at_cursor, low));
	if (pane->rect.height < 2 || strip->flat)
		return;
	snprintf(text, sizeof(text), "%s to %s", view_value_text(name, strip->low, low),
		 view_value_text(name, strip->high, high));
	view_text_cut(pane, x, 1, label - x - 1, VIEW_DIM, text);
}

void view__draw_strips(const struct view_timeline *tl, struct view_pane *pane)
{
	const struct view_counters *all = &tl->counters;
	struct view_rect rect = all->area;

	rect.height = all->rows;
	for (int i = 0; i < all->strip_count; i++, rect.y += all->rows) {
		struct view_pane strip = view__sub(pane, rect);
		struct view_pane plot =
			view__sub(pane, (struct view_rect){tl->areas.lanes.x, rect.y, tl->width,
							   rect.height});
		const int x = view__cursor_column(tl, all->strips[i].counter->clock);

		view_draw_strip_texts(tl, i, &strip);
		if (all->strips[i].low <= all->strips[i].high)
			view_draw_strip(&all->strips[i], &plot);
		for (int y = 0; y < rect.height && x >= 0 && !pane->canvas->plain; y++)
			view_restyle(&plot, x, y, VIEW_SELECTED);
	}
}

/* The samples of the windows. */
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
