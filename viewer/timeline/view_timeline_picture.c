/*
 * The timeline's picture: lanes' places, bars as columns of cells, bubbles, the overview.
 *
 * A load costs a few bounded queries per visible lane, whatever the size of the file. Bars become
 * columns here, so that drawing looks at cells only.
 *
 * Threading: one thread. Ownership: all of it lives in the arena of the picture, until the next.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <string.h>

#define VIEW_LABEL_LEAST 13 /* "DEVICE (sim)" */
#define MOST_THICK       3  /* rows of a bar */

/* --- the picture ------------------------------------------------------------------------------ */

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
	view_lane_heights(depths, count, rows, VIEW_MOST_DEPTH, heights);
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

enum status view__place_lanes(struct view_timeline *tl, const struct view_context *context,
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

		status = view__learn_site(tl, db, bar, err);
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

/* --- the whole -------------------------------------------------------------------------------- */

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
		status = view__learn_site(tl, db, &tl->overview_bars[i], err);
		if (tl->overview_bars[i].depth == lane->work_depth)
			view_lay(tl->overview, tl->width, extent, &tl->overview_bars[i], i);
	}
	return status;
}

enum status view__picture_load(struct view_timeline *tl, struct prof_db *db, struct err *err)
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
