/*
 * The screen Timeline: what it shows, loaded by range.
 *
 * A load costs a few bounded queries per visible lane, whatever the size of the file. Bars become
 * columns of cells here, so that drawing looks at cells only.
 *
 * Threading: one thread. Ownership: four arenas: tracks (until the next news), call sites (for
 * good), the picture (until the next load), the details (until the next selection).
 */
#include "viewer/view_timeline_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/str.h"
#include "viewer/view_table.h"

#define MOST_DEPTH       8    /* rows of a lane */
#define VIEW_LABEL_LEAST 13   /* "DEVICE (sim)" */
#define MOST_THICK       3    /* rows of a bar */
#define MOST_LINKS       2000 /* points between the clocks */
#define TABLE_LIMIT      100000

/* What is known of a lane and stays so when the tracks are read afresh. */
struct view_kept {
	int64_t track_id;
	int work_depth;
	bool work_known;
};

int view__lead(const struct view_timeline *tl)
{
	return tl->lane < tl->lane_count && tl->lanes[tl->lane].track->clock == 1 ? 1 : 0;
}

struct view_clock *view__clock(struct view_timeline *tl)
{
	return &tl->clock[view__lead(tl)];
}

struct view_lane *view__lane(struct view_timeline *tl)
{
	return tl->lane >= 0 && tl->lane < tl->lane_count ? &tl->lanes[tl->lane] : NULL;
}

int view__lane_of(const struct view_timeline *tl, int64_t track_id)
{
	for (int i = 0; i < tl->lane_count; i++)
		if (tl->lanes[i].track->track_id == track_id)
			return i;
	return -1;
}

/* --- call sites ------------------------------------------------------------------------------- */

/* Where @site_id is in the order of the sites, or would be. */
static size_t view_site_place(const struct view_timeline *tl, int64_t site_id)
{
	size_t low = 0, high = tl->site_count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (tl->sites[middle].site_id < site_id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct view_site *view__site(const struct view_timeline *tl, int64_t site_id)
{
	const size_t place = view_site_place(tl, site_id);

	if (place == tl->site_count || tl->sites[place].site_id != site_id)
		return NULL;
	return &tl->sites[place];
}

/* Buckets have no phase of their own; the name of their site tells it where it is one of ours. */
static char view_phase_of_name(const char *category, const char *name)
{
	static const struct {
		const char *word;
		char phase;
	} words[] = {{"forward", 'F'}, {"backward", 'B'},  {"weight update", 'U'},
		     {"update", 'U'},  {"recompute", 'R'}, {"weight", 'W'}};

	if (!name || !category || strcmp(category, "stage") != 0)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strstr(name, words[i].word))
			return words[i].phase;
	return 0;
}

static enum status view_learn_site(struct view_timeline *tl, struct prof_db *db,
				   const struct prof_bar *bar, struct err *err)
{
	const size_t place = view_site_place(tl, bar->site_id);
	struct view_site site = {.site_id = bar->site_id};
	enum status status;

	if (bar->site_id == VIEW_NONE_ID)
		return ST_OK;
	if (place < tl->site_count && tl->sites[place].site_id == bar->site_id) {
		if (bar->phase)
			tl->sites[place].phase = bar->phase;
		return ST_OK;
	}
	status = prof_timeline_site(db, bar->site_id, &tl->sites_arena, &site.category, &site.name,
				    err);
	if (status != ST_OK)
		return status;
	site.phase = bar->phase ? bar->phase : view_phase_of_name(site.category, site.name);
	if (mem_grow(&tl->sites, &tl->site_capacity, tl->site_count + 1, sizeof(*tl->sites)))
		return err_nomem(err);
	memmove(&tl->sites[place + 1], &tl->sites[place],
		(tl->site_count - place) * sizeof(*tl->sites));
	tl->sites[place] = site;
	tl->site_count++;
	return ST_OK;
}

char view__phase(const struct view_timeline *tl, const struct prof_bar *bar)
{
	const struct view_site *site;

	if (bar->phase)
		return bar->phase;
	site = view__site(tl, bar->site_id);
	return site ? site->phase : 0;
}

/* --- tracks ----------------------------------------------------------------------------------- */

/* Executions, which both clocks know: points where they meet. Device ns follow from cycles. */
static enum status view_read_links(struct view_timeline *tl, struct prof_db *db, struct err *err)
{
	static const char sql[] =
		"SELECT start_ns, start_ns + dur_ns, start_cycle, start_cycle + cycles "
		"FROM executions WHERE start_ns IS NOT NULL AND dur_ns > 0 AND cycles > 0 "
		"AND start_cycle IS NOT NULL "
		"AND execution % (1 + (SELECT max(execution) FROM executions) / 900) = 0 "
		"ORDER BY start_ns LIMIT 1000";
	struct prof_query *query;
	bool row = false;
	enum status status = prof_query_open(&query, db, sql, err);

	tl->link_count = 0;
	if (status != ST_OK)
		return status;
	while ((status = prof_query_step(query, &row, err)) == ST_OK && row &&
	       tl->link_count + 2 <= MOST_LINKS)
		for (int end = 0; end < 2; end++) {
			const struct view_link link = {prof_column_int(query, end),
						       prof_column_int(query, 2 + end)};
			const struct view_link *last =
				tl->link_count ? &tl->links[tl->link_count - 1] : NULL;

			if (!last ||
			    (link.host_ns > last->host_ns && link.device_ns > last->device_ns))
				tl->links[tl->link_count++] = link;
		}
	prof_query_close(query);
	return status;
}

static enum status view_load_links(struct view_timeline *tl, struct prof_db *db, struct err *err)
{
	const struct view_window host = tl->clock[0].extent, device = tl->clock[1].extent;
	enum status status;
	double ns_per_cycle, hertz;
	char text[64];

	tl->links = arena_alloc(&tl->tracks_arena, MOST_LINKS, sizeof(*tl->links));
	if (!tl->links)
		return err_nomem(err);
	status = view_read_links(tl, db, err);
	if (status != ST_OK)
		return status;
	if (tl->link_count < 2) {
		tl->links[0] = (struct view_link){host.from, device.from};
		tl->links[1] = (struct view_link){host.to, device.to};
		tl->link_count = 2;
		return ST_OK;
	}
	/* A recording that does not tell its clock: the last execution ends where the lanes end. */
	if (prof_db_meta(db, "clock_hz", text, sizeof(text)) && str_to_double(text, &hertz) &&
	    hertz > 0)
		ns_per_cycle = 1e9 / hertz;
	else
		ns_per_cycle = (double)device.to / (double)tl->links[tl->link_count - 1].device_ns;
	for (int i = 0; i < tl->link_count; i++)
		tl->links[i].device_ns = (int64_t)((double)tl->links[i].device_ns * ns_per_cycle);
	return ST_OK;
}

static void view_measure_clocks(struct view_timeline *tl)
{
	for (int c = 0; c < 2; c++)
		tl->clock[c].present = false;
	for (int i = 0; i < tl->lane_count; i++) {
		const struct prof_track *track = tl->lanes[i].track;
		struct view_clock *clock = &tl->clock[track->clock == 1];
		struct view_window *extent = &clock->extent;

		if (!clock->present)
			*extent = (struct view_window){track->first_ns, track->last_ns};
		if (track->first_ns < extent->from)
			extent->from = track->first_ns;
		if (track->last_ns > extent->to)
			extent->to = track->last_ns;
		clock->present = true;
	}
	for (int c = 0; c < 2; c++) {
		struct view_window *extent = &tl->clock[c].extent;

		if (extent->to - extent->from < VIEW_WINDOW_LEAST)
			extent->to = extent->from + VIEW_WINDOW_LEAST;
	}
}

static bool view_shows_all(const struct view_clock *clock)
{
	return clock->window.from <= clock->extent.from && clock->window.to >= clock->extent.to;
}

/* Lanes are the tracks with spans. What is known of a lane stays with its track_id. */
static enum status view_make_lanes(struct view_timeline *tl, int count,
				   const struct view_kept *kept, int kept_count, struct err *err)
{
	tl->lane_count = 0;
	tl->lanes = arena_alloc(&tl->tracks_arena, (size_t)count + 1, sizeof(*tl->lanes));
	if (!tl->lanes)
		return err_nomem(err);
	for (int i = 0; i < count; i++) {
		const struct prof_track *track = &tl->tracks[i];
		struct view_lane *lane = &tl->lanes[tl->lane_count];

		if (track->depth < 1 || track->first_ns > track->last_ns)
			continue;
		lane->track = track;
		lane->pipeline = track->ipu != VIEW_NONE_ID;
		for (int j = 0; j < kept_count; j++)
			if (kept[j].track_id == track->track_id) {
				lane->work_depth = kept[j].work_depth;
				lane->work_known = kept[j].work_known;
			}
		tl->lane_count++;
	}
	return ST_OK;
}

/* Where stages are on a lane: looked for in a short window around a span in its middle. */
static enum status view_sample(struct view_timeline *tl, struct view_lane *lane, struct prof_db *db,
			       struct err *err)
{
	const struct prof_track *track = lane->track;
	const int64_t middle = track->first_ns + (track->last_ns - track->first_ns) / 2;
	struct prof_bar *bars;
	struct prof_span span;
	int64_t id;
	int count;
	enum status status;

	status =
		prof_timeline_find(db, track->track_id, track->clock, NULL, middle, true, &id, err);
	if (status != ST_OK || id == VIEW_NONE_ID)
		return status;
	status = prof_timeline_span(db, id, &tl->picture, &span, err);
	if (status != ST_OK)
		return status;
	status = prof_timeline_bars(db, track->track_id, span.start_ns,
				    span.start_ns + (span.dur_ns > 0 ? span.dur_ns : 1), 64,
				    track->last_ns, &tl->picture, &bars, &count, err);
	for (int i = 0; i < count && status == ST_OK; i++) {
		status = view_learn_site(tl, db, &bars[i], err);
		if (view__phase(tl, &bars[i]) && !lane->work_known) {
			lane->work_known = true;
			lane->work_depth = bars[i].depth;
		}
	}
	return status;
}

/* In the picture's arena, since the arena of tracks is about to be emptied. NULL: no memory. */
static struct view_kept *view_keep(struct view_timeline *tl)
{
	struct view_kept *kept =
		arena_alloc(&tl->picture, (size_t)tl->lane_count + 1, sizeof(*kept));

	for (int i = 0; kept && i < tl->lane_count; i++)
		kept[i] = (struct view_kept){tl->lanes[i].track->track_id, tl->lanes[i].work_depth,
					     tl->lanes[i].work_known};
	return kept;
}

static void view_first_window(struct view_timeline *tl, const struct view_context *context)
{
	struct view_clock *clock;

	for (int c = 0; c < 2; c++)
		tl->clock[c].window = tl->clock[c].extent;
	/* The first IPU is what one comes for. */
	tl->lane = 0;
	for (int i = tl->lane_count - 1; i >= 0; i--)
		if (tl->lanes[i].pipeline)
			tl->lane = i;
	tl->depth = tl->lanes[tl->lane].work_depth;
	clock = view__clock(tl);
	if (context->ranged) {
		if (context->from_ns > clock->extent.from && context->from_ns < clock->extent.to)
			clock->window.from = context->from_ns;
		if (context->to_ns < clock->extent.to && context->to_ns > clock->window.from)
			clock->window.to = context->to_ns;
		if (clock->window.to - clock->window.from < VIEW_WINDOW_LEAST)
			clock->window.to = clock->window.from + VIEW_WINDOW_LEAST;
	}
	tl->cursor_ns = clock->window.from;
	tl->started = true;
}

static enum status view_load_tracks(struct view_timeline *tl, struct view_context *context,
				    struct err *err)
{
	struct prof_db *db = context->source->db;
	const int kept_count = tl->lane_count;
	const bool first = !tl->started;
	const bool all[2] = {view_shows_all(&tl->clock[0]), view_shows_all(&tl->clock[1])};
	const struct view_kept *kept = view_keep(tl);
	enum status status;
	int count;

	if (!kept)
		return err_nomem(err);
	arena_reset(&tl->tracks_arena);
	tl->lane_count = 0;
	status = prof_timeline_tracks(db, &tl->tracks_arena, &tl->tracks, &count, err);
	if (status == ST_OK)
		status = view_make_lanes(tl, count, kept, kept_count, err);
	if (status != ST_OK)
		return status;
	view_measure_clocks(tl);
	status = view_load_links(tl, db, err);
	for (int i = 0; i < tl->lane_count && status == ST_OK; i++)
		if (!tl->lanes[i].work_known)
			status = view_sample(tl, &tl->lanes[i], db, err);

	tl->lane = view__lane_of(tl, tl->lane_id);
	if (!tl->started && tl->lane_count > 0)
		view_first_window(tl, context);
	if (tl->lane < 0)
		tl->lane = 0;
	for (int c = 0; c < 2; c++) {
		struct view_clock *clock = &tl->clock[c];
		const int64_t length = clock->window.to - clock->window.from;

		if (first)
			continue;
		if (all[c])
			clock->window = clock->extent;
		else if (context->follow)
			clock->window = view_window_clamp(
				(struct view_window){clock->extent.to - length, clock->extent.to},
				clock->extent);
	}
	return status;
}

/* --- the picture ------------------------------------------------------------------------------ */

/* The window of the other clock shows the same executions. */
static void view_link_windows(struct view_timeline *tl)
{
	const int lead = view__clock(tl) == &tl->clock[1], other = !lead;
	const struct view_window from = tl->clock[lead].window;
	struct view_window to;

	if (!tl->clock[0].present || !tl->clock[1].present)
		return;
	if (view_shows_all(&tl->clock[lead])) {
		tl->clock[other].window = tl->clock[other].extent;
		return;
	}
	to.from = view_link_map(tl->links, tl->link_count, from.from, other);
	to.to = view_link_map(tl->links, tl->link_count, from.to, other);
	if (to.to - to.from < VIEW_WINDOW_LEAST)
		to.to = to.from + VIEW_WINDOW_LEAST;
	tl->clock[other].window = view_window_clamp(to, tl->clock[other].extent);
}

/* Rows of the visible lanes: depths first, then thicker bars where there is room. */
static enum status view_fit_rows(struct view_timeline *tl, int first, int count, int rows,
				 struct err *err)
{
	int *depths = arena_alloc(&tl->picture, (size_t)count, sizeof(*depths));
	int *heights = arena_alloc(&tl->picture, (size_t)count, sizeof(*heights));
	int used = 0, thick;

	if (!depths || !heights)
		return err_nomem(err);
	for (int i = 0; i < count; i++)
		depths[i] = tl->lanes[first + i].track->depth;
	view_lane_heights(depths, count, rows, MOST_DEPTH, heights);
	for (int i = 0; i < count; i++)
		used += heights[i];
	thick = used > 0 ? (rows - count + 1) / used : 1;
	thick = thick < 1 ? 1 : thick > MOST_THICK ? MOST_THICK : thick;
	for (int i = 0; i < count; i++) {
		struct view_lane *lane = &tl->lanes[first + i];

		lane->rows = heights[i];
		lane->thick = thick;
		lane->first_depth = 0;
		if (heights[i] < depths[i])
			lane->first_depth = lane->work_depth < depths[i] - heights[i]
						    ? lane->work_depth
						    : depths[i] - heights[i];
	}
	return ST_OK;
}

/* Give lanes their rows from @first on: an axis above each clock's, a blank between where it fits.
 */
static void view_place_rows(struct view_timeline *tl, int first, int rows)
{
	int used = 0, lanes = 0, y = 0, clock = -1;
	bool spaced;

	for (int i = first; i < tl->lane_count && tl->lanes[i].rows > 0; i++, lanes++)
		used += tl->lanes[i].rows * tl->lanes[i].thick;
	spaced = used + lanes - 1 <= rows;
	for (int i = first; i < first + lanes; i++) {
		struct view_lane *lane = &tl->lanes[i];
		const int of = lane->track->clock == 1;

		if (of != clock)
			tl->clock[of].axis_y = y++;
		else if (spaced)
			y++;
		clock = of;
		lane->y = y;
		y += lane->rows * lane->thick;
	}
}

static enum status view_place_lanes(struct view_timeline *tl, const struct view_context *context,
				    struct err *err)
{
	enum status status;
	int rows, label = VIEW_LABEL_LEAST;

	for (int i = 0; i < tl->lane_count; i++) {
		const int width = view_text_width(tl->lanes[i].track->name) + 3;

		label = width > label ? width : label;
		tl->lanes[i].rows = 0;
	}
	label = label > VIEW_LABEL_WIDTH ? VIEW_LABEL_WIDTH : label;
	tl->areas = view_timeline_areas(
		(struct view_rect){0, 0, context->body.width, context->body.height}, label,
		tl->details && !context->whole);
	tl->width = tl->areas.lanes.width;
	rows = tl->areas.lanes.height - (tl->clock[0].present ? 1 : 0) -
	       (tl->clock[1].present ? 1 : 0);
	tl->clock[0].axis_y = tl->clock[1].axis_y = -1;
	if (rows < 1 || tl->lane_count == 0)
		return ST_OK;
	if (tl->lane < tl->scroll)
		tl->scroll = tl->lane;
	if (tl->lane >= tl->scroll + rows)
		tl->scroll = tl->lane - rows + 1;
	if (tl->scroll > tl->lane_count - rows)
		tl->scroll = tl->lane_count > rows ? tl->lane_count - rows : 0;
	status = view_fit_rows(tl, tl->scroll, tl->lane_count - tl->scroll, rows, err);
	if (status == ST_OK)
		view_place_rows(tl, tl->scroll, rows);
	return status;
}

/* Lay @bar over the @width columns at @columns. */
static void view_lay(struct view_column *columns, int width, struct view_window window,
		     const struct prof_bar *bar, int32_t index)
{
	const int64_t end = bar->start_ns + (bar->dur_ns > 0 ? bar->dur_ns : 1);
	int64_t from = view_window_column(window, width, bar->start_ns);
	int64_t to = view_window_column(window, width, end - 1);

	from = from < 0 ? 0 : from;
	to = to >= width ? width - 1 : to;
	for (int64_t x = from; x <= to; x++) {
		const int64_t left = view_window_time(window, width, x);
		const int64_t right = view_window_time(window, width, x + 1);
		int64_t ns =
			(end < right ? end : right) - (bar->start_ns > left ? bar->start_ns : left);

		if (bar->span_id == VIEW_NONE_ID && bar->dur_ns > 0)
			ns = (int64_t)((double)ns * (double)bar->busy_ns / (double)bar->dur_ns);
		if (ns <= 0)
			ns = bar->count > 0 ? 1 : 0;
		columns[x].busy_ns += ns;
		if (ns > columns[x].best_ns) {
			columns[x].best_ns = ns;
			columns[x].bar = index;
		}
	}
}

static double view_idle(const struct view_lane *lane, struct view_window window)
{
	double busy = 0;

	for (int i = 0; i < lane->bar_count; i++) {
		const struct prof_bar *bar = &lane->bars[i];
		const int64_t end = bar->start_ns + bar->dur_ns;
		const int64_t from = bar->start_ns > window.from ? bar->start_ns : window.from;
		const int64_t to = end < window.to ? end : window.to;

		if (bar->depth != lane->work_depth || to <= from || bar->dur_ns <= 0)
			continue;
		busy += (double)bar->busy_ns * (double)(to - from) / (double)bar->dur_ns;
	}
	busy /= (double)(window.to - window.from);
	return busy > 1 ? 0 : 1 - busy;
}

static enum status view_load_lane(struct view_timeline *tl, struct view_lane *lane,
				  struct prof_db *db, struct err *err)
{
	const struct view_clock *clock = &tl->clock[lane->track->clock == 1];
	const size_t cells = (size_t)lane->rows * (size_t)tl->width;
	enum status status;

	status = prof_timeline_bars(db, lane->track->track_id, clock->window.from, clock->window.to,
				    tl->width, clock->extent.to, &tl->picture, &lane->bars,
				    &lane->bar_count, err);
	if (status != ST_OK)
		return status;
	lane->columns = arena_alloc(&tl->picture, cells + 1, sizeof(*lane->columns));
	if (!lane->columns)
		return err_nomem(err);
	for (size_t i = 0; i < cells; i++)
		lane->columns[i].bar = -1;
	for (int i = 0; i < lane->bar_count && status == ST_OK; i++) {
		const struct prof_bar *bar = &lane->bars[i];
		const int row = bar->depth - lane->first_depth;

		status = view_learn_site(tl, db, bar, err);
		if (!lane->work_known && view__phase(tl, bar)) {
			lane->work_known = true;
			lane->work_depth = bar->depth;
		}
		if (row >= 0 && row < lane->rows)
			view_lay(&lane->columns[(size_t)row * (size_t)tl->width], tl->width,
				 clock->window, bar, i);
	}
	lane->idle = view_idle(lane, clock->window);
	return status;
}

/* --- the bubble ------------------------------------------------------------------------------- */

/* Lanes whose pipelines are one: same clock, process and parent. */
static int64_t view_group(const struct view_timeline *tl, const struct view_lane *lane)
{
	for (int i = 0; i < tl->lane_count; i++) {
		const struct prof_track *a = tl->lanes[i].track, *b = lane->track;

		if (a->clock == b->clock && a->rank == b->rank && tl->lanes[i].pipeline &&
		    strcmp(a->parent ? a->parent : "", b->parent ? b->parent : "") == 0)
			return i;
	}
	return -1;
}

static bool view_is_pipeline_work(const struct view_timeline *tl, const struct view_lane *lane,
				  const struct prof_bar *bar)
{
	const char phase = view__phase(tl, bar);

	return bar->span_id != VIEW_NONE_ID && bar->weight_update != VIEW_NONE_ID &&
	       bar->depth == lane->work_depth && phase && strchr("FBWR", phase);
}

static void view_add_run(struct view_timeline *tl, int64_t group, const struct prof_bar *bar)
{
	const int64_t end = bar->start_ns + bar->dur_ns;
	struct view_run *run;

	/* The newest first: bars come in order of time. */
	for (int i = tl->run_count - 1; i >= 0; i--) {
		run = &tl->runs[i];
		if (run->weight_update != bar->weight_update || run->group != group)
			continue;
		run->from = bar->start_ns < run->from ? bar->start_ns : run->from;
		run->to = end > run->to ? end : run->to;
		return;
	}
	tl->runs[tl->run_count++] =
		(struct view_run){bar->weight_update, group, bar->start_ns, end};
}

static void view_shade_lane(struct view_timeline *tl, struct view_lane *lane)
{
	const struct view_window window = tl->clock[lane->track->clock == 1].window;
	const int64_t group = view_group(tl, lane);
	const int row = lane->work_depth - lane->first_depth;

	if (row < 0 || row >= lane->rows)
		return;
	for (int i = 0; i < tl->run_count; i++) {
		int64_t from, to;

		if (tl->runs[i].group != group)
			continue;
		from = view_window_column(window, tl->width, tl->runs[i].from);
		to = view_window_column(window, tl->width, tl->runs[i].to - 1);
		for (int64_t x = from < 0 ? 0 : from; x <= to && x < tl->width; x++)
			lane->columns[(size_t)row * (size_t)tl->width + (size_t)x].run = true;
	}
}

static enum status view_load_runs(struct view_timeline *tl, struct err *err)
{
	size_t most = 1;

	for (int i = 0; i < tl->lane_count; i++)
		if (tl->lanes[i].rows > 0)
			most += (size_t)tl->lanes[i].bar_count;
	tl->run_count = 0;
	tl->runs = arena_alloc(&tl->picture, most, sizeof(*tl->runs));
	if (!tl->runs)
		return err_nomem(err);
	for (int i = 0; i < tl->lane_count; i++) {
		const struct view_lane *lane = &tl->lanes[i];

		int64_t group;

		if (lane->rows == 0 || !lane->pipeline)
			continue;
		group = view_group(tl, lane);
		for (int b = 0; b < lane->bar_count; b++)
			if (view_is_pipeline_work(tl, lane, &lane->bars[b]))
				view_add_run(tl, group, &lane->bars[b]);
	}
	for (int i = 0; i < tl->lane_count; i++)
		if (tl->lanes[i].rows > 0 && tl->lanes[i].pipeline)
			view_shade_lane(tl, &tl->lanes[i]);
	return ST_OK;
}

/* The cursor's lane over the whole run. */
static enum status view_load_overview(struct view_timeline *tl, struct prof_db *db, struct err *err)
{
	const struct view_lane *lane = view__lane(tl);
	const struct view_window extent = view__clock(tl)->extent;
	enum status status;
	int count;

	tl->overview = NULL;
	if (tl->areas.overview.height == 0 || tl->width < 1)
		return ST_OK;
	status = prof_timeline_bars(db, lane->track->track_id, extent.from, extent.to, tl->width,
				    extent.to, &tl->picture, &tl->overview_bars, &count, err);
	if (status != ST_OK)
		return status;
	tl->overview = arena_alloc(&tl->picture, (size_t)tl->width, sizeof(*tl->overview));
	if (!tl->overview)
		return err_nomem(err);
	for (int x = 0; x < tl->width; x++)
		tl->overview[x].bar = -1;
	for (int i = 0; i < count && status == ST_OK; i++) {
		status = view_learn_site(tl, db, &tl->overview_bars[i], err);
		if (tl->overview_bars[i].depth == lane->work_depth)
			view_lay(tl->overview, tl->width, extent, &tl->overview_bars[i], i);
	}
	return status;
}

static enum status view_load_picture(struct view_timeline *tl, struct prof_db *db, struct err *err)
{
	enum status status = ST_OK;

	for (int i = 0; i < tl->lane_count && status == ST_OK; i++)
		if (tl->lanes[i].rows > 0)
			status = view_load_lane(tl, &tl->lanes[i], db, err);
	if (status == ST_OK)
		status = view_load_runs(tl, err);
	if (status == ST_OK)
		status = view_load_overview(tl, db, err);
	if (status == ST_OK)
		status = view__detail_load(tl, db, err);
	return status;
}

static enum status view_timeline_load(void *state, struct view_context *context, bool news,
				      struct err *err)
{
	struct view_timeline *tl = state;
	struct prof_db *db = context->source->db;
	struct view_clock *clock;
	enum status status = ST_OK;

	arena_reset(&tl->picture);
	if (news)
		status = view_load_tracks(tl, context, err);
	if (status != ST_OK) {
		tl->lane_count = 0;
		return status;
	}
	if (tl->lane_count == 0)
		return view_place_lanes(tl, context, err);
	clock = view__clock(tl);
	if (context->follow)
		tl->cursor_ns = clock->window.to - 1;
	if (tl->cursor_ns < clock->window.from)
		tl->cursor_ns = clock->window.from;
	if (tl->cursor_ns >= clock->window.to)
		tl->cursor_ns = clock->window.to - 1;
	tl->lane_id = view__lane(tl)->track->track_id;
	view_link_windows(tl);
	status = view_place_lanes(tl, context, err);
	if (status == ST_OK && tl->width > 0)
		status = view_load_picture(tl, db, err);
	if (status != ST_OK)
		for (int i = 0; i < tl->lane_count; i++)
			tl->lanes[i].rows = 0;
	return status;
}

/* --- requests --------------------------------------------------------------------------------- */

void view__go(struct view_timeline *tl, int lane, int depth, int64_t time, int64_t span_id)
{
	struct view_clock *clock;

	tl->lane = lane;
	tl->lane_id = tl->lanes[lane].track->track_id;
	tl->depth = depth;
	clock = view__clock(tl);
	tl->cursor_ns = time;
	clock->window = view_window_show(clock->window, time, clock->extent);
	tl->pinned = span_id;
}

static void view_pan(struct view_timeline *tl, int numerator, int denominator)
{
	struct view_clock *clock = view__clock(tl);
	const int64_t before = clock->window.from;
	int64_t shift;

	clock->window = view_window_pan(clock->window, numerator, denominator, clock->extent);
	shift = clock->window.from - before;
	/* At the end of the run the window stays and the cursor goes on. */
	if (shift == 0)
		shift = (int64_t)((double)(clock->window.to - clock->window.from) * numerator /
				  denominator / 2);
	tl->cursor_ns += shift;
	tl->pinned = VIEW_NONE_ID;
}

static void view_step_column(struct view_timeline *tl, int by)
{
	struct view_clock *clock = view__clock(tl);
	int64_t step = (clock->window.to - clock->window.from) / (tl->width > 0 ? tl->width : 1);

	if (step < 1)
		step = 1;
	tl->cursor_ns += by * step;
	if (tl->cursor_ns < clock->extent.from)
		tl->cursor_ns = clock->extent.from;
	if (tl->cursor_ns >= clock->extent.to)
		tl->cursor_ns = clock->extent.to - 1;
	clock->window = view_window_show(clock->window, tl->cursor_ns, clock->extent);
	tl->pinned = VIEW_NONE_ID;
}

/* From lane to lane by way of the rows of each. On a change of clock the cursor keeps its column.
 */
static void view_step_lane(struct view_timeline *tl, int by)
{
	const struct view_lane *lane = view__lane(tl);
	const struct view_clock *from = view__clock(tl), *to;
	const int depth = tl->depth + by;
	int next = tl->lane;

	if (depth >= lane->first_depth && depth < lane->first_depth + lane->rows) {
		tl->depth = depth;
		tl->pinned = VIEW_NONE_ID;
		return;
	}
	next += by;
	if (next < 0 || next >= tl->lane_count)
		return;
	tl->lane = next;
	lane = view__lane(tl);
	tl->depth = lane->work_depth;
	to = view__clock(tl);
	if (to != from)
		tl->cursor_ns =
			to->window.from + (int64_t)((double)(tl->cursor_ns - from->window.from) /
						    (double)(from->window.to - from->window.from) *
						    (double)(to->window.to - to->window.from));
	tl->pinned = VIEW_NONE_ID;
}

static void view_go_end(struct view_timeline *tl, bool last)
{
	struct view_clock *clock = view__clock(tl);
	const int64_t length = clock->window.to - clock->window.from;

	clock->window =
		last ? (struct view_window){clock->extent.to - length, clock->extent.to}
		     : (struct view_window){clock->extent.from, clock->extent.from + length};
	clock->window = view_window_clamp(clock->window, clock->extent);
	tl->cursor_ns = last ? clock->extent.to - 1 : clock->extent.from;
	tl->pinned = VIEW_NONE_ID;
}

static void view_zoom_span(struct view_timeline *tl, struct view_context *context)
{
	struct view_clock *clock = view__clock(tl);
	struct view_window to;

	if (tl->selected == VIEW_NONE_ID && !tl->in_gap) {
		snprintf(context->message, sizeof(context->message), "no span under the cursor");
		return;
	}
	if (tl->in_gap) {
		to = tl->gap;
	} else {
		to.from = tl->span.start_ns;
		to.to = tl->span.dur_ns == VIEW_NONE_ID ? clock->extent.to
							: to.from + tl->span.dur_ns;
	}
	/* A little of what is around it. */
	to.from -= (to.to - to.from) / 8;
	to.to += (to.to - to.from) / 8;
	if (to.to - to.from < VIEW_WINDOW_LEAST)
		to.to = to.from + VIEW_WINDOW_LEAST;
	clock->window = view_window_clamp(to, clock->extent);
}

static void view_zoom(struct view_timeline *tl, int numerator, int denominator)
{
	struct view_clock *clock = view__clock(tl);

	clock->window = view_window_zoom(clock->window, tl->cursor_ns, numerator, denominator,
					 clock->extent);
}

static void view_centre(struct view_timeline *tl)
{
	struct view_clock *clock = view__clock(tl);
	const int64_t half = (clock->window.to - clock->window.from) / 2;

	clock->window = view_window_clamp(
		(struct view_window){tl->cursor_ns - half,
				     tl->cursor_ns - half +
					     (clock->window.to - clock->window.from)},
		clock->extent);
}

/* Jumps ask the database; @done tells whether the request was one. */
static bool view_jump(struct view_timeline *tl, struct view_context *context,
		      enum view_request request)
{
	switch (request) {
	case VIEW_NEXT_SPAN_REQUEST:
	case VIEW_PREVIOUS_SPAN_REQUEST:
		view__jump_span(tl, context, request == VIEW_NEXT_SPAN_REQUEST);
		return true;
	case VIEW_NEXT_GAP_REQUEST:
	case VIEW_PREVIOUS_GAP_REQUEST:
		view__jump_gap(tl, context, request == VIEW_NEXT_GAP_REQUEST);
		return true;
	case VIEW_LONGEST_CHILD_REQUEST:
		view__jump_child(tl, context);
		return true;
	case VIEW_PARENT_REQUEST:
		view__jump_parent(tl, context);
		return true;
	default:
		return false;
	}
}

static bool view_move(struct view_timeline *tl, struct view_context *context,
		      enum view_request request)
{
	switch (request) {
	case VIEW_UP_REQUEST:
	case VIEW_DOWN_REQUEST:
		view_step_lane(tl, request == VIEW_UP_REQUEST ? -1 : 1);
		return true;
	case VIEW_PAGE_UP_REQUEST:
	case VIEW_PAGE_DOWN_REQUEST:
		for (int i = 0; i < tl->areas.lanes.height; i++)
			view_step_lane(tl, request == VIEW_PAGE_UP_REQUEST ? -1 : 1);
		return true;
	case VIEW_LEFT_REQUEST:
	case VIEW_RIGHT_REQUEST:
		view_pan(tl, request == VIEW_LEFT_REQUEST ? -1 : 1, 8);
		return true;
	case VIEW_PAGE_LEFT_REQUEST:
	case VIEW_PAGE_RIGHT_REQUEST:
		view_pan(tl, request == VIEW_PAGE_LEFT_REQUEST ? -1 : 1, 1);
		return true;
	case VIEW_CURSOR_LEFT_REQUEST:
	case VIEW_CURSOR_RIGHT_REQUEST:
		view_step_column(tl, request == VIEW_CURSOR_LEFT_REQUEST ? -1 : 1);
		return true;
	case VIEW_HOME_REQUEST:
	case VIEW_END_REQUEST:
		view_go_end(tl, request == VIEW_END_REQUEST);
		return true;
	case VIEW_ZOOM_IN_REQUEST:
	case VIEW_ZOOM_OUT_REQUEST:
		view_zoom(tl, request == VIEW_ZOOM_IN_REQUEST ? 1 : 2,
			  request == VIEW_ZOOM_IN_REQUEST ? 2 : 1);
		return true;
	case VIEW_ZOOM_ALL_REQUEST:
		view__clock(tl)->window = view__clock(tl)->extent;
		return true;
	case VIEW_ZOOM_SPAN_REQUEST:
		view_zoom_span(tl, context);
		return true;
	case VIEW_CENTRE_REQUEST:
		view_centre(tl);
		return true;
	case VIEW_DETAILS_REQUEST:
		tl->details = !tl->details;
		return true;
	default:
		return false;
	}
}

/* The timeline's own requests; the rest are the session's. */
static bool view_is_movement(enum view_request request)
{
	const char *group = view_request_info(request)->group;

	return strcmp(group, "Moving") == 0 || strcmp(group, "Timeline") == 0;
}

static enum view_answer view_timeline_request(void *state, struct view_context *context,
					      enum view_request request)
{
	struct view_timeline *tl = state;

	if (!(view_request_info(request)->screens & VIEW_ON_TIMELINE))
		return VIEW_UNHANDLED;
	if (tl->lane_count == 0) {
		if (!view_is_movement(request))
			return VIEW_UNHANDLED;
		snprintf(context->message, sizeof(context->message), "no spans recorded");
		return VIEW_DRAW;
	}
	if (view_move(tl, context, request))
		return VIEW_LOAD;
	if (!context->source->db && view_is_movement(request)) {
		snprintf(context->message, sizeof(context->message),
			 "the run is being closed: a moment");
		return VIEW_DRAW;
	}
	return view_jump(tl, context, request) ? VIEW_LOAD : VIEW_UNHANDLED;
}

static bool view_timeline_search(void *state, struct view_context *context, const char *text,
				 bool forward)
{
	struct view_timeline *tl = state;

	if (tl->lane_count == 0 || !context->source->db)
		return false;
	return view__jump_name(tl, context, text, forward);
}

/* --- the rest of the row ---------------------------------------------------------------------- */

static enum status view_timeline_open(void **state, struct view_context *context, struct err *err)
{
	struct view_timeline *tl = mem_calloc(1, sizeof(*tl));

	(void)context;
	*state = NULL;
	if (!tl)
		return err_nomem(err);
	/* An arena of capacity 0 allocates nothing and cannot fail. */
	(void)arena_init(&tl->tracks_arena, 0);
	(void)arena_init(&tl->sites_arena, 0);
	(void)arena_init(&tl->picture, 0);
	(void)arena_init(&tl->detail, 0);
	tl->details = true;
	tl->selected = tl->pinned = tl->lane_id = tl->gap_run = VIEW_NONE_ID;
	*state = tl;
	return ST_OK;
}

static void view_timeline_close(void *state)
{
	struct view_timeline *tl = state;

	if (!tl)
		return;
	arena_fini(&tl->tracks_arena);
	arena_fini(&tl->sites_arena);
	arena_fini(&tl->picture);
	arena_fini(&tl->detail);
	mem_free(tl->sites);
	mem_free(tl);
}

static void view_timeline_status(const void *state, const struct view_context *context, char *out,
				 size_t size)
{
	const struct view_timeline *tl = state;
	const struct view_clock *clock = &tl->clock[view__lead(tl)];
	char from[VIEW_TICK_SIZE], to[VIEW_TICK_SIZE], cursor[VIEW_TICK_SIZE], shown[FMT_SIZE],
		all[FMT_SIZE];
	const int64_t step = view_tick_step(clock->window, 100, 1);

	(void)context;
	if (tl->lane_count == 0) {
		snprintf(out, size, "no spans recorded");
		return;
	}
	snprintf(out, size, "%s %s to %s (%s of %s) cursor %s",
		 clock == &tl->clock[1] ? "device" : "host",
		 view_tick_text(from, clock->window.from, step, clock->window),
		 view_tick_text(to, clock->window.to, step, clock->window),
		 fmt_ns(shown, clock->window.to - clock->window.from),
		 fmt_ns(all, clock->extent.to - clock->extent.from),
		 view_tick_text(cursor, tl->cursor_ns, step, clock->window));
}

static int view_timeline_height(const void *state, const struct view_context *context)
{
	const struct view_timeline *tl = state;
	int rows = 3;

	(void)context;
	for (int i = 0; i < tl->lane_count; i++)
		rows += 1 + (tl->lanes[i].track->depth < MOST_DEPTH ? tl->lanes[i].track->depth
								    : MOST_DEPTH);
	return rows;
}

static const struct report_column view_span_columns[] = {
	{"clock", REPORT_TEXT},
	{"track", REPORT_TEXT},
	{"span_id", REPORT_NUMBER},
	{"parent_id", REPORT_NUMBER},
	{"depth", REPORT_NUMBER},
	{"category", REPORT_TEXT},
	{"name", REPORT_TEXT},
	{"start_ns", REPORT_NS},
	{"dur_ns", REPORT_NS},
	{"mode", REPORT_TEXT},
	{"epoch", REPORT_NUMBER},
	{"execution", REPORT_NUMBER},
	{"weight_update", REPORT_NUMBER},
	{"step", REPORT_NUMBER},
	{"microbatch", REPORT_NUMBER},
	{"replica", REPORT_NUMBER},
	{"ipu", REPORT_NUMBER},
	{"stage", REPORT_NUMBER},
	{"phase", REPORT_TEXT},
	{"operation", REPORT_TEXT},
};

/* The spans that overlap the windows, device first. */
static enum status view_timeline_table(void *state, struct view_context *context,
				       struct report_table *out, struct err *err)
{
	static const char sql[] =
		"SELECT clock, track, span_id, parent_id, depth, category, name, start_ns, dur_ns, "
		"mode, epoch, execution, weight_update, step, microbatch, replica, ipu, stage, "
		"phase, operation FROM spans WHERE clock = :clock AND start_ns < :to "
		"AND coalesce(start_ns + dur_ns, :to) > :from";
	const struct view_timeline *tl = state;
	struct view_rows rows = {0};
	enum status status = ST_OK;

	for (int c = 1; c >= 0 && status == ST_OK; c--) {
		struct prof_query *query;

		if (!tl->clock[c].present)
			continue;
		status = prof_query_open(&query, context->source->db, sql, err);
		if (status != ST_OK)
			break;
		prof_query_text(query, ":clock", c ? "device" : "host");
		prof_query_int(query, ":from", tl->clock[c].window.from);
		prof_query_int(query, ":to", tl->clock[c].window.to);
		status = view_rows_add(&rows, query, (int)ARRAY_LEN(view_span_columns), TABLE_LIMIT,
				       err);
		prof_query_close(query);
	}
	if (status == ST_OK)
		status = view_rows_table(&rows, out, "timeline", view_span_columns,
					 (int)ARRAY_LEN(view_span_columns), err);
	view_rows_fini(&rows);
	return status;
}

const struct view_screen_ops view_timeline_ops = {
	.name = "timeline",
	.title = "Timeline",
	.where = VIEW_ON_TIMELINE,
	.least_ns = 250 * UINT64_C(1000000),
	.open = view_timeline_open,
	.close = view_timeline_close,
	.load = view_timeline_load,
	.draw = view__timeline_draw,
	.request = view_timeline_request,
	.search = view_timeline_search,
	.status = view_timeline_status,
	.height = view_timeline_height,
	.table = view_timeline_table,
};
