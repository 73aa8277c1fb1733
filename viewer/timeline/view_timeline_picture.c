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

#include "common/mem.h"
#include "common/minmax.h"

#define VIEW_LABEL_LEAST 13 /* "DEVICE (sim)" */
#define MOST_BSP         24 /* of a picture of tiles */
#define HEADING_FROM     12 /* rows of a body that has one */

/* ---- rows ------------------------------------------------------------------------------------ */

/* Below another timeline the row is better spent on lanes. */
static void view_drop_overview(struct view_timeline_layout *areas)
{
	struct view_rect *columns[] = {&areas->labels, &areas->lanes, &areas->idle};

	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		columns[i]->y -= areas->overview.height;
		columns[i]->height += areas->overview.height;
	}
	areas->overview.height = 0;
}

/* Sums by name get half of the body. */
static void view_grow_details(struct view_timeline_layout *areas, int half)
{
	struct view_rect *columns[] = {&areas->labels, &areas->lanes, &areas->idle};
	const int more = half - areas->details.height;

	if (areas->details.height == 0 || more <= 0)
		return;
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		columns[i]->height -= more;
	areas->details.y -= more;
	areas->details.height += more;
}

void view__place_lanes(struct view_timeline *tl, const struct view_context *context)
{
	struct view_rect body = {0, 0, context->body.width, context->body.height};
	const bool details = tl->details && !context->whole && !tl->mark;
	int rows, label = VIEW_LABEL_LEAST + (tl->mark ? 2 : 0);

	for (int i = 0; i < tl->lane_count; i++) {
		const int width = view_text_width(tl->lanes[i].track->name) + (tl->mark ? 5 : 3);

		label = max(width, label);
		tl->lanes[i].rows = 0;
	}
	if (label > VIEW_LABEL_WIDTH || tl->counters.shown)
		label = VIEW_LABEL_WIDTH;
	if (tl->mark)
		body = tl->half;
	tl->heading =
		(struct view_rect){0, 0, body.width, !tl->mark && body.height >= HEADING_FROM};
	body.y += tl->heading.height;
	body.height -= tl->heading.height;
	tl->areas = view_timeline_areas(body, label, details);
	if (view__shows_sums(tl))
		view_grow_details(&tl->areas, body.height / 2);
	if (tl->mark)
		tl->areas.details = tl->foot;
	if (tl->mark == 'T')
		view_drop_overview(&tl->areas);
	tl->width = tl->areas.lanes.width;
	view__place_strips(tl);
	rows = tl->areas.lanes.height - (tl->clock[IPS_HOST].present ? 1 : 0) -
	       (tl->clock[IPS_DEVICE].present ? 1 : 0);
	tl->clock[IPS_HOST].axis_y = tl->clock[IPS_DEVICE].axis_y = -1;
	if (rows < 1 || tl->lane_count == 0)
		return;
	if (tl->lane < tl->scroll)
		tl->scroll = tl->lane;
	if (tl->lane >= tl->scroll + rows)
		tl->scroll = tl->lane - rows + 1;
	if (tl->scroll > tl->lane_count - rows)
		tl->scroll = tl->lane_count > rows ? tl->lane_count - rows : 0;
	for (int i = tl->scroll; i < tl->lane_count && i < tl->scroll + rows; i++)
		tl->lanes[i].rows = 1;
}

/* Lanes that may be thicker than a row: those of IPUs, where there are any. */
static bool view_is_main(const struct view_timeline *tl, const struct view_lane *lane)
{
	return lane->pipeline || tl->way == VIEW_FLAT;
}

/* One row more for each main lane's row of work, or each of its other rows; what is left of
 * @spare. */
static int view_thicken(struct view_timeline *tl, int first, int count, int spare, int most,
			bool work)
{
	bool grown = true;

	while (grown) {
		int wanted = 0;

		grown = false;
		for (int i = first; i < first + count; i++)
			if (view_is_main(tl, &tl->lanes[i]))
				wanted += work ? tl->lanes[i].work_row >= 0
					       : tl->lanes[i].rows - (tl->lanes[i].work_row >= 0);
		if (wanted == 0 || wanted > spare)
			break;
		for (int i = first; i < first + count; i++) {
			struct view_lane *lane = &tl->lanes[i];
			int *thick = work ? &lane->thick : &lane->thin;

			if (!view_is_main(tl, lane) || *thick >= most ||
			    (work && lane->work_row < 0))
				continue;
			spare -= work ? 1 : lane->rows - (lane->work_row >= 0);
			++*thick;
			grown = true;
		}
	}
	return spare;
}

/* Rows of work and the others by turns, as far as @spare goes. A picture of tiles has rows of work
 * alone. */
static void view_use_spare(struct view_timeline *tl, int first, int count, int spare)
{
	static const struct {
		int most; /* screen rows of a bar */
		bool work;
	} turns[] = {{3, true}, {2, false}, {6, true}, {4, false}, {12, true}, {6, false}};

	if (tl->way == VIEW_BSP) {
		view_thicken(tl, first, count, spare, MOST_BSP, true);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(turns) && spare > 0; i++) {
		spare = view_thicken(tl, first, count, spare, turns[i].most, turns[i].work);
		if (i == 0)
			spare -= count - 1; /* a blank row between lanes */
	}
}

/* Rows of the visible lanes: depths first, then thicker bars where there is room. */
static enum status view_fit_rows(struct view_timeline *tl, int first, int count, int rows,
				 struct err *err)
{
	int *wanted = arena_alloc(&tl->picture, (size_t)count, sizeof(*wanted));
	int *heights = arena_alloc(&tl->picture, (size_t)count, sizeof(*heights));
	int spare = rows;

	if (!wanted || !heights)
		return err_nomem(err);
	for (int i = 0; i < count; i++)
		if ((wanted[i] = view__rows_wanted(tl, &tl->lanes[first + i])) < 0)
			return err_nomem(err);
	view_lane_heights(wanted, count, rows, rows, heights);
	for (int i = 0; i < count; i++) {
		struct view_lane *lane = &tl->lanes[first + i];

		lane->rows = heights[i];
		lane->thick = lane->thin = 1;
		lane->first_depth = 0;
		if (tl->way == VIEW_GANTT && heights[i] < wanted[i])
			lane->first_depth = min(lane->work_depth, wanted[i] - heights[i]);
		lane->work_row = tl->way == VIEW_FLAME ? -1 : 0;
		if (tl->way == VIEW_GANTT)
			lane->work_row = lane->work_depth - lane->first_depth;
		if (lane->work_row >= lane->rows)
			lane->work_row = -1;
		spare -= heights[i];
	}
	view_use_spare(tl, first, count, spare);
	return ST_OK;
}

/*
 * Give lanes their rows from @first on: an axis above each clock's, a blank between where it fits.
 */
static void view_place_rows(struct view_timeline *tl, int first, int rows)
{
	int used = 0, lanes = 0, y = 0, clock = -1;
	bool spaced;

	for (int i = first; i < tl->lane_count && tl->lanes[i].rows > 0; i++, lanes++)
		used += view__lane_height(&tl->lanes[i]);
	spaced = used + lanes - 1 <= rows;
	for (int i = first; i < first + lanes; i++) {
		struct view_lane *lane = &tl->lanes[i];
		const int of = lane->track->clock == IPS_DEVICE;

		if (of != clock)
			tl->clock[of].axis_y = y++;
		else if (spaced)
			y++;
		clock = of;
		lane->y = y;
		y += view__lane_height(lane);
	}
}

/* ---- bars ------------------------------------------------------------------------------------ */

static enum status view_load_lane(struct view_timeline *tl, struct view_lane *lane,
				  struct prof_db *db, struct err *err)
{
	const struct prof_bar *last = NULL;
	enum status status = view__bars_load(tl, lane, db, err);

	for (int i = 0; i < lane->bar_count && status == ST_OK; i++) {
		const struct prof_bar *bar = &lane->bars[i];

		if (last && last->site_id == bar->site_id && last->phase == bar->phase &&
		    lane->work_known)
			continue;
		last = bar;
		status = view__learn_site(tl, db, bar, err);
		if (!lane->work_known && view__phase(tl, bar)) {
			lane->work_known = true;
			lane->work_depth = bar->depth;
		}
	}
	return status;
}

static enum status view_load_lanes(struct view_timeline *tl, struct view_context *context,
				   struct err *err)
{
	const int rows = tl->areas.lanes.height - (tl->clock[IPS_HOST].present ? 1 : 0) -
			 (tl->clock[IPS_DEVICE].present ? 1 : 0);
	int shown = 0;
	enum status status = ST_OK;

	for (int i = tl->scroll; i < tl->lane_count && tl->lanes[i].rows > 0; i++, shown++) {
		if (view_cancelled(context))
			return err_set(err, ST_INTERRUPTED, "interrupted");
		status = view_load_lane(tl, &tl->lanes[i], context->source->db, err);
		if (status != ST_OK)
			return status;
	}
	view__bars_trim(tl);
	if (shown == 0)
		return ST_OK;
	status = view_fit_rows(tl, tl->scroll, shown, rows, err);
	for (int i = tl->scroll; i < tl->scroll + shown && status == ST_OK; i++)
		status = view__lay_lane(tl, &tl->lanes[i], err);
	if (status == ST_OK)
		view_place_rows(tl, tl->scroll, rows);
	return status;
}

/* ---- the bubble ------------------------------------------------------------------------------ */

/* Lanes whose pipelines are one: same clock, process, replica and parent. */
int64_t view__group(const struct view_timeline *tl, const struct view_lane *lane)
{
	for (int i = 0; i < tl->all_lanes; i++) {
		const struct prof_track *a = tl->lanes[i].track, *b = lane->track;

		if (a->clock == b->clock && a->rank == b->rank && tl->lanes[i].pipeline &&
		    view__replica_of(tl, a->ipu) == view__replica_of(tl, b->ipu) &&
		    strcmp(a->parent ? a->parent : "", b->parent ? b->parent : "") == 0)
			return i;
	}
	return -1;
}

bool view__is_work(const struct view_timeline *tl, const struct view_lane *lane,
		   const struct prof_bar *bar)
{
	const char phase = view__phase(tl, bar);

	return bar->span_id != IPS_NULL &&
	       (bar->weight_update != IPS_NULL || bar->execution != IPS_NULL) &&
	       bar->depth == lane->work_depth && phase && strchr("FBWR", phase);
}

static void view_add_run(struct view_timeline *tl, int64_t group, const struct prof_bar *bar)
{
	const int64_t end = bar->start_ns + bar->dur_ns;
	struct view_run *run;

	/* The newest first: bars come in order of time. */
	for (int i = tl->run_count - 1; i >= 0; i--) {
		run = &tl->runs[i];
		if (run->weight_update != bar->weight_update || run->execution != bar->execution ||
		    run->group != group)
			continue;
		run->from = min(bar->start_ns, run->from);
		run->to = max(end, run->to);
		return;
	}
	tl->runs[tl->run_count++] = (struct view_run){
		bar->execution, bar->weight_update, group, bar->start_ns, end, {0}};
}

static void view_shade_lane(struct view_timeline *tl, struct view_lane *lane)
{
	const struct view_window window = tl->clock[lane->track->clock == IPS_DEVICE].window;
	const int64_t group = view__group(tl, lane);
	const int row = lane->work_row;

	if (row < 0 || tl->way != VIEW_GANTT)
		return;
	for (int i = 0; i < tl->run_count; i++) {
		int64_t from, to;

		if (tl->runs[i].group != group)
			continue;
		from = view_window_column(window, tl->width, tl->runs[i].from);
		to = view_window_column(window, tl->width, tl->runs[i].to - 1);
		for (int64_t x = max(0, from); x <= to && x < tl->width; x++)
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
		group = view__group(tl, lane);
		for (int b = 0; b < lane->bar_count; b++)
			if (view__is_work(tl, lane, &lane->bars[b]))
				view_add_run(tl, group, &lane->bars[b]);
	}
	for (int i = 0; i < tl->lane_count; i++)
		if (tl->lanes[i].rows > 0 && tl->lanes[i].pipeline)
			view_shade_lane(tl, &tl->lanes[i]);
	return ST_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

void view__picture_forget(struct view_timeline *tl)
{
	arena_reset(&tl->picture);
	tl->runs = NULL;
	tl->run_count = 0;
	tl->counters.strips = NULL;
	tl->counters.strip_count = 0;
	tl->gap_run = -1;
	for (int i = 0; i < tl->all_lanes; i++) {
		struct view_lane *lane = &tl->lanes[i];

		lane->rows = lane->bar_count = 0;
		lane->bars = NULL;
		lane->bar_row = NULL;
		lane->columns = NULL;
		lane->bsp = NULL;
		lane->cause_ns = NULL;
	}
}

/* The cursor's lane over the whole run; read again when there are news, or for another lane. */
static enum status view_load_overview(struct view_timeline *tl, struct prof_db *db, struct err *err)
{
	const struct view_lane *lane = view__lane(tl);
	const struct view_window extent = view__clock(tl)->extent;
	enum status status;
	int count;

	if (tl->areas.overview.height == 0 || tl->width < 1 ||
	    (tl->overview_lane == lane->track->track_id && tl->overview_width == tl->width))
		return ST_OK;
	arena_reset(&tl->overview_arena);
	tl->overview = NULL;
	tl->overview_lane = IPS_NULL;
	status =
		prof_timeline_bars(db, lane->track->track_id, extent.from, extent.to, tl->width,
				   extent.to, &tl->overview_arena, &tl->overview_bars, &count, err);
	if (status != ST_OK)
		return status;
	tl->overview = arena_alloc(&tl->overview_arena, (size_t)tl->width, sizeof(*tl->overview));
	if (!tl->overview)
		return err_nomem(err);
	for (int x = 0; x < tl->width; x++)
		tl->overview[x].bar = -1;
	for (int i = 0; i < count && status == ST_OK; i++) {
		status = view__learn_site(tl, db, &tl->overview_bars[i], err);
		if (tl->overview_bars[i].depth == lane->work_depth)
			view__lay(tl->overview, tl->width, extent, &tl->overview_bars[i], i,
				  view__left_out(tl, &tl->overview_bars[i]));
	}
	view__mark_dark(tl, lane, extent, tl->overview);
	if (status == ST_OK) {
		tl->overview_lane = lane->track->track_id;
		tl->overview_width = tl->width;
	}
	return status;
}

enum status view__picture_load(struct view_timeline *tl, struct view_context *context,
			       struct err *err)
{
	struct prof_db *db = context->source->db;
	enum status status = view_load_lanes(tl, context, err);

	if (status == ST_OK)
		status = view_load_runs(tl, err);
	if (status == ST_OK)
		status = view__bubble_load(tl, db, err);
	if (status == ST_OK)
		status = view__causes_load(tl, context, err);
	if (status == ST_OK)
		status = view__bsp_load(tl, context, err);
	if (status == ST_OK)
		status = view_load_overview(tl, db, err);
	if (status == ST_OK)
		status = view__strips_load(tl, context, err);
	if (status == ST_OK)
		status = view__rows_load(tl, context, err);
	if (status == ST_OK)
		status = view__detail_load(tl, db, err);
	return status;
}
