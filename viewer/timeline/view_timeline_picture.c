/*
 * The timeline's picture: lanes' places, bars as columns of cells, pipeline runs, the overview.
 *
 * A load costs a few bounded queries per visible lane, whatever the size of the file. Bars become
 * columns here, so that drawing looks at cells only.
 *
 * Bars are retained from one picture to the next: who pans, or moves the cursor, waits only for
 * what is new. Bars of one level are the same whatever window they are read for, and the bars of a
 * window are those of its parts. So as long as the level stays, what is retained is cut to the new
 * window, and what it lacks is read to the left and to the right.
 *
 * Threading: one thread. Ownership: retained bars are the timeline's, until the next picture or
 * news; all else lives in the arena of the picture, until the next.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"

#define MOST_PARTS       4  /* of a name */
#define MOST_FLAME       24 /* rows of a lane */
#define VIEW_LABEL_LEAST 13 /* "DEVICE (sim)" */
#define MOST_BSP         24 /* of a picture of tiles */
#define HEADING_FROM     12 /* rows of a body that has one */

static struct view_bars *view_bars_of(struct view_timeline *tl, int64_t track_id)
{
	for (size_t i = 0; i < tl->kept.count; i++)
		if (tl->kept.lanes[i].track_id == track_id)
			return &tl->kept.lanes[i];
	if (mem_grow(&tl->kept.lanes, &tl->kept.capacity, tl->kept.count + 1,
		     sizeof(*tl->kept.lanes)))
		return NULL;
	tl->kept.lanes[tl->kept.count] = (struct view_bars){.track_id = track_id};
	return &tl->kept.lanes[tl->kept.count++];
}

/* As prof_timeline_bars() has it: what has no length is where it starts. */
static bool view_overlaps(const struct prof_bar *bar, struct view_window window)
{
	return bar->start_ns < window.to &&
	       (bar->start_ns >= window.from || bar->start_ns + bar->dur_ns > window.from);
}

/* Merge the @count bars at @more into those of @kept that are in @window; bars of both are one. */
static enum status view_merge(struct view_bars *kept, struct view_window window,
			      const struct prof_bar *more, int count, struct err *err)
{
	struct prof_bar *all = mem_calloc((size_t)kept->count + (size_t)count + 1, sizeof(*all));
	int used = 0;

	if (!all)
		return err_nomem(err);
	for (int a = 0, b = 0; a < kept->count || b < count;) {
		const int order = a == kept->count ? 1
				  : b == count     ? -1
						   : prof_timeline_order(&kept->bars[a], &more[b]);
		const struct prof_bar *bar = order <= 0 ? &kept->bars[a] : &more[b];

		a += order <= 0;
		b += order >= 0;
		if (view_overlaps(bar, window))
			all[used++] = *bar;
	}
	mem_free(kept->bars);
	kept->bars = all;
	kept->count = used;
	return ST_OK;
}

/* Read @part of the track, which leaves @kept with the bars of @window as far as they are known. */
static enum status view_read_part(struct view_timeline *tl, struct view_bars *kept,
				  struct view_window part, struct view_window window,
				  int64_t now_ns, struct prof_db *db, struct err *err)
{
	struct prof_bar *bars;
	int count;
	enum status status =
		prof_timeline_bars_at(db, kept->track_id, kept->level, part.from, part.to, now_ns,
				      &tl->picture, &bars, &count, err);

	return status == ST_OK ? view_merge(kept, window, bars, count, err) : status;
}

static enum status view_bars_read(struct view_timeline *tl, struct view_bars *kept,
				  const struct view_clock *clock, struct prof_db *db,
				  struct err *err)
{
	const struct view_window window = clock->window, had = kept->window;
	const int level = prof_timeline_level(window.to - window.from, tl->width);
	const int64_t now_ns = clock->extent.to;
	enum status status = ST_OK;

	if (!kept->bars || kept->level != level || had.to <= window.from || had.from >= window.to) {
		kept->count = 0;
		kept->level = level;
		return view_read_part(tl, kept, window, window, now_ns, db, err);
	}
	if (had.from == window.from && had.to == window.to)
		return ST_OK;
	if (window.from < had.from)
		status = view_read_part(tl, kept, (struct view_window){window.from, had.from},
					window, now_ns, db, err);
	if (status == ST_OK && window.to > had.to)
		status = view_read_part(tl, kept, (struct view_window){had.to, window.to}, window,
					now_ns, db, err);
	if (status == ST_OK && window.from >= had.from && window.to <= had.to)
		status = view_merge(kept, window, NULL, 0, err);
	return status;
}

static enum status view_bars_load(struct view_timeline *tl, struct view_lane *lane,
				  struct prof_db *db, struct err *err)
{
	const struct view_clock *clock = &tl->clock[lane->track->clock == IPS_DEVICE];
	struct view_bars *kept = view_bars_of(tl, lane->track->track_id);
	enum status status;

	lane->bars = NULL;
	lane->bar_count = 0;
	if (!kept)
		return err_nomem(err);
	status = view_bars_read(tl, kept, clock, db, err);
	if (status != ST_OK) {
		/* What is half read is as good as nothing. */
		mem_free(kept->bars);
		kept->bars = NULL;
		return status;
	}
	kept->window = clock->window;
	kept->used = true;
	lane->bars = kept->bars;
	lane->bar_count = kept->count;
	return ST_OK;
}

static void view_bars_trim(struct view_timeline *tl)
{
	size_t used = 0;

	for (size_t i = 0; i < tl->kept.count; i++) {
		if (!tl->kept.lanes[i].used) {
			mem_free(tl->kept.lanes[i].bars);
			continue;
		}
		tl->kept.lanes[i].used = false;
		tl->kept.lanes[used++] = tl->kept.lanes[i];
	}
	tl->kept.count = used;
}

void view__bars_forget(struct view_timeline *tl)
{
	for (size_t i = 0; i < tl->kept.count; i++)
		mem_free(tl->kept.lanes[i].bars);
	tl->kept.count = 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

int view__row_thick(const struct view_lane *lane, int row)
{
	return row == lane->work_row ? lane->thick : lane->thin;
}

int view__row_y(const struct view_lane *lane, int row)
{
	return lane->y + row * lane->thin +
	       (lane->work_row >= 0 && row > lane->work_row ? lane->thick - lane->thin : 0);
}

int view__lane_height(const struct view_lane *lane)
{
	return lane->rows * lane->thin + (lane->work_row >= 0 ? lane->thick - lane->thin : 0);
}

int view__row_of_depth(const struct view_timeline *tl, const struct view_lane *lane, int depth)
{
	int row = depth - lane->first_depth;

	if (tl->choice.way == VIEW_FLAME)
		for (int i = 0; i < lane->bar_count && lane->bar_row; i++)
			if (lane->bars[i].span_id == tl->under.selected &&
			    lane->bars[i].depth == depth) {
				row = lane->bar_row[i];
				break;
			}
	return row < 0 ? 0 : row >= lane->rows ? lane->rows - 1 : row;
}

/* ---- names that '/' parts -------------------------------------------------------------------- */

static int view_name_parts(const char *name)
{
	int parts = 1;

	for (; name && *name; name++)
		parts += *name == '/' && name[1] != '\0';
	return min(parts, MOST_PARTS);
}

/* The last of MOST_PARTS parts has all of the rest. */
void view__name_part(const char *name, int part, char *out, size_t size)
{
	const char *end;
	size_t length;

	for (int i = 0; i < part && name; i++) {
		name = strchr(name, '/');
		name += name != NULL;
	}
	if (!name)
		name = "";
	end = part + 1 < MOST_PARTS ? strchr(name, '/') : NULL;
	length = end && end[1] ? (size_t)(end - name) : strlen(name);
	if (length >= size)
		length = size - 1;
	memcpy(out, name, length);
	out[length] = '\0';
}

static int view_bar_parts(const struct view_timeline *tl, const struct prof_bar *bar)
{
	const struct view_site *site = view__site(tl, bar->site_id);

	return site ? view_name_parts(site->name) : 1;
}

/* Each bar below the names of the one around it. Bars come by depth, then start. */
static int view_place_flame(struct view_timeline *tl, struct view_lane *lane)
{
	int above = 0, first = 0, rows = 1;

	lane->bar_row =
		arena_alloc(&tl->picture, (size_t)lane->bar_count + 1, sizeof(*lane->bar_row));
	if (!lane->bar_row)
		return -1;
	for (int i = 0; i < lane->bar_count; i++) {
		const struct prof_bar *bar = &lane->bars[i];
		int row = bar->depth;

		if (i == 0 || bar->depth != lane->bars[i - 1].depth) {
			above = first;
			first = i;
		}
		while (above + 1 < first && lane->bars[above + 1].start_ns <= bar->start_ns)
			above++;
		if (above < first && lane->bars[above].depth == bar->depth - 1)
			row = lane->bar_row[above] + view_bar_parts(tl, &lane->bars[above]);
		lane->bar_row[i] = (int16_t)(min(row, SHRT_MAX));
		row += view_bar_parts(tl, bar);
		rows = max(row, rows);
	}
	return min(rows, MOST_FLAME);
}

static int view_rows_wanted(struct view_timeline *tl, struct view_lane *lane)
{
	const int depth = lane->track->depth;

	lane->bar_row = NULL;
	switch (tl->choice.way) {
	case VIEW_FLAME:
		return view_place_flame(tl, lane);
	case VIEW_FLAT:
	case VIEW_BSP:
		return 1;
	default:
		return min(depth, VIEW_MOST_DEPTH);
	}
}

/* ---- columns --------------------------------------------------------------------------------- */

static void view_lay(struct view_column *columns, int width, struct view_window window,
		     const struct prof_bar *bar, int32_t index, bool left_out)
{
	const int64_t end = bar->start_ns + (bar->dur_ns > 0 ? bar->dur_ns : 1);
	int64_t from = view_window_column(window, width, bar->start_ns);
	int64_t to = view_window_column(window, width, end - 1);

	from = max(0, from);
	to = to >= width ? width - 1 : to;
	for (int64_t x = from; x <= to; x++) {
		const int64_t left = view_window_time(window, width, x);
		const int64_t right = view_window_time(window, width, x + 1);
		int64_t ns = min(end, right) - max(bar->start_ns, left);

		if (bar->span_id == IPS_NULL && bar->dur_ns > 0)
			ns = (int64_t)((double)ns * (double)bar->busy_ns / (double)bar->dur_ns);
		if (ns <= 0)
			ns = bar->count > 0 ? 1 : 0;
		if (ns == 0 || (left_out && columns[x].bar >= 0 && !columns[x].left_out))
			continue;
		if (columns[x].left_out != left_out)
			columns[x].busy_ns = columns[x].best_ns = 0;
		columns[x].left_out = left_out;
		columns[x].busy_ns += ns;
		if (ns > columns[x].best_ns) {
			columns[x].best_ns = ns;
			columns[x].bar = index;
		}
	}
}

/* Of what was recorded: executions that were not traced are not idle. */
static double view_idle(const struct view_timeline *tl, const struct view_lane *lane,
			struct view_window window)
{
	const int64_t all = view__traced_ns(tl, lane, window);
	double busy = 0;

	if (all <= 0)
		return NAN;
	for (int i = 0; i < lane->bar_count; i++) {
		const struct prof_bar *bar = &lane->bars[i];
		const int64_t end = bar->start_ns + bar->dur_ns;
		const int64_t from = max(bar->start_ns, window.from);
		const int64_t to = min(end, window.to);

		if (bar->depth != lane->work_depth || to <= from || bar->dur_ns <= 0)
			continue;
		busy += (double)bar->busy_ns * (double)(to - from) / (double)bar->dur_ns;
	}
	busy /= (double)all;
	return busy > 1 ? 0 : 1 - busy;
}

static void view_clear(struct view_column *columns, size_t count)
{
	memset(columns, 0, count * sizeof(*columns));
	for (size_t i = 0; i < count; i++)
		columns[i].bar = -1;
}

/* Does a cell of a depth cover that of the depths above? */
static bool view_covers(const struct view_column *cell, const struct view_column *above,
			int64_t column_ns)
{
	if (cell->bar < 0 || above->bar < 0)
		return cell->bar >= 0;
	if (cell->left_out != above->left_out)
		return above->left_out;
	return cell->busy_ns * 4 >= column_ns;
}

/* The innermost of each cell: a depth covers the one above where it has a quarter of the cell. */
static enum status view_lay_flat(struct view_timeline *tl, struct view_lane *lane,
				 struct view_window window, struct err *err)
{
	const int64_t column_ns = (window.to - window.from) / tl->width;
	struct view_column *depth = arena_alloc(&tl->picture, (size_t)tl->width, sizeof(*depth));

	if (!depth)
		return err_nomem(err);
	for (int i = 0; i < lane->bar_count;) {
		const int of = lane->bars[i].depth;

		view_clear(depth, (size_t)tl->width);
		for (; i < lane->bar_count && lane->bars[i].depth == of; i++)
			view_lay(depth, tl->width, window, &lane->bars[i], i,
				 view__left_out(tl, &lane->bars[i]));
		for (int x = 0; x < tl->width; x++)
			if (view_covers(&depth[x], &lane->columns[x], column_ns))
				lane->columns[x] = depth[x]; /* dark or not: it has a bar */
	}
	return ST_OK;
}

static void view_lay_rows(struct view_timeline *tl, struct view_lane *lane,
			  struct view_window window)
{
	for (int i = 0; i < lane->bar_count; i++) {
		const struct prof_bar *bar = &lane->bars[i];
		const int row = lane->bar_row ? lane->bar_row[i] : bar->depth - lane->first_depth;
		const int parts = lane->bar_row ? view_bar_parts(tl, bar) : 1;
		const bool left_out = view__left_out(tl, bar);

		for (int r = row; r >= 0 && r < row + parts && r < lane->rows; r++)
			view_lay(&lane->columns[(size_t)r * (size_t)tl->width], tl->width, window,
				 bar, i, left_out);
	}
}

static enum status view_lay_lane(struct view_timeline *tl, struct view_lane *lane, struct err *err)
{
	const struct view_window window = tl->clock[lane->track->clock == IPS_DEVICE].window;
	const size_t cells = (size_t)lane->rows * (size_t)tl->width;

	lane->columns = arena_alloc(&tl->picture, cells + 1, sizeof(*lane->columns));
	if (!lane->columns)
		return err_nomem(err);
	view_clear(lane->columns, cells);
	lane->idle = view_idle(tl, lane, window);
	for (int r = 0; r < lane->rows; r++)
		view__mark_dark(tl, lane, window, &lane->columns[(size_t)r * (size_t)tl->width]);
	if (tl->choice.way == VIEW_FLAT)
		return view_lay_flat(tl, lane, window, err);
	view_lay_rows(tl, lane, window);
	return ST_OK;
}

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
	const bool details = tl->under.wanted && !context->whole && !tl->mark;
	int rows, label = VIEW_LABEL_LEAST + (tl->mark ? 2 : 0);

	for (int i = 0; i < tl->lane_count; i++) {
		const int width = view_text_width(tl->lanes[i].track->name) + (tl->mark ? 5 : 3);

		label = max(width, label);
		tl->lanes[i].rows = 0;
	}
	if (label > VIEW_LABEL_WIDTH || tl->counters.shown)
		label = VIEW_LABEL_WIDTH;
	if (tl->mark)
		body = tl->beside.half;
	tl->heading =
		(struct view_rect){0, 0, body.width, !tl->mark && body.height >= HEADING_FROM};
	body.y += tl->heading.height;
	body.height -= tl->heading.height;
	tl->areas = view_timeline_areas(body, label, details);
	if (view__shows_sums(tl))
		view_grow_details(&tl->areas, body.height / 2);
	if (tl->mark)
		tl->areas.details = tl->beside.foot;
	if (tl->mark == 'T')
		view_drop_overview(&tl->areas);
	tl->width = tl->areas.lanes.width;
	view__place_strips(tl);
	rows = tl->areas.lanes.height - (tl->clock[IPS_HOST].present ? 1 : 0) -
	       (tl->clock[IPS_DEVICE].present ? 1 : 0);
	tl->clock[IPS_HOST].axis_y = tl->clock[IPS_DEVICE].axis_y = -1;
	if (rows < 1 || tl->lane_count == 0)
		return;
	if (tl->cursor.lane < tl->scroll)
		tl->scroll = tl->cursor.lane;
	if (tl->cursor.lane >= tl->scroll + rows)
		tl->scroll = tl->cursor.lane - rows + 1;
	if (tl->scroll > tl->lane_count - rows)
		tl->scroll = tl->lane_count > rows ? tl->lane_count - rows : 0;
	for (int i = tl->scroll; i < tl->lane_count && i < tl->scroll + rows; i++)
		tl->lanes[i].rows = 1;
}

/* Lanes that may be thicker than a row: those of IPUs, where there are any. */
static bool view_is_main(const struct view_timeline *tl, const struct view_lane *lane)
{
	return lane->pipeline || tl->choice.way == VIEW_FLAT;
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

	if (tl->choice.way == VIEW_BSP) {
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
		if ((wanted[i] = view_rows_wanted(tl, &tl->lanes[first + i])) < 0)
			return err_nomem(err);
	view_lane_heights(wanted, count, rows, rows, heights);
	for (int i = 0; i < count; i++) {
		struct view_lane *lane = &tl->lanes[first + i];

		lane->rows = heights[i];
		lane->thick = lane->thin = 1;
		lane->first_depth = 0;
		if (tl->choice.way == VIEW_GANTT && heights[i] < wanted[i])
			lane->first_depth = min(lane->work_depth, wanted[i] - heights[i]);
		lane->work_row = tl->choice.way == VIEW_FLAME ? -1 : 0;
		if (tl->choice.way == VIEW_GANTT)
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
	enum status status = view_bars_load(tl, lane, db, err);

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
	view_bars_trim(tl);
	if (shown == 0)
		return ST_OK;
	status = view_fit_rows(tl, tl->scroll, shown, rows, err);
	for (int i = tl->scroll; i < tl->scroll + shown && status == ST_OK; i++)
		status = view_lay_lane(tl, &tl->lanes[i], err);
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

	if (row < 0 || tl->choice.way != VIEW_GANTT)
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
	tl->under.gap_run = -1;
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
	    (tl->overview.track_id == lane->track->track_id && tl->overview.width == tl->width))
		return ST_OK;
	arena_reset(&tl->overview.arena);
	tl->overview.columns = NULL;
	tl->overview.track_id = IPS_NULL;
	status =
		prof_timeline_bars(db, lane->track->track_id, extent.from, extent.to, tl->width,
				   extent.to, &tl->overview.arena, &tl->overview.bars, &count, err);
	if (status != ST_OK)
		return status;
	tl->overview.columns =
		arena_alloc(&tl->overview.arena, (size_t)tl->width, sizeof(*tl->overview.columns));
	if (!tl->overview.columns)
		return err_nomem(err);
	for (int x = 0; x < tl->width; x++)
		tl->overview.columns[x].bar = -1;
	for (int i = 0; i < count && status == ST_OK; i++) {
		status = view__learn_site(tl, db, &tl->overview.bars[i], err);
		if (tl->overview.bars[i].depth == lane->work_depth)
			view_lay(tl->overview.columns, tl->width, extent, &tl->overview.bars[i], i,
				 view__left_out(tl, &tl->overview.bars[i]));
	}
	view__mark_dark(tl, lane, extent, tl->overview.columns);
	if (status == ST_OK) {
		tl->overview.track_id = lane->track->track_id;
		tl->overview.width = tl->width;
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
