/*
 * The timeline's picture: areas and positions of lanes, bars as columns of cells, pipeline runs,
 * the overview; and under the lanes counters, a strip each, on the axis of the track's clock.
 *
 * A load costs a few bounded queries per visible lane, whatever the size of the file. Bars become
 * columns here, so that drawing reads cells only.
 *
 * Bars are retained from one load to the next, so that panning or moving the cursor reads only what
 * is new. Bars of one level are the same for every window, and the bars of a window are those of
 * its parts. So while the level is unchanged, the retained bars are cut to the new window, and the
 * missing parts to the left and to the right are read.
 *
 * A load reads a few buckets or samples of a counter per column and strip, however large the file
 * is. Between two samples a counter has the value of the first; before the first sample nothing is
 * drawn.
 *
 * Threading: one thread. Ownership: the timeline owns retained bars, until the next load or news;
 * series of counters are in the tracks' arena, all else in the picture's, until the next load.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "common/sorted.h"
#include "common/str.h"

#define MOST_PARTS   4  /* of a name */
#define MOST_FLAME   24 /* rows of a lane */
#define LABEL_LEAST  13 /* fits "device (sim)" */
#define MOST_BSP     24 /* rows of a lane in VIEW_BSP */
#define HEADING_FROM 12 /* least rows of a body with a heading */
#define LEGEND_FROM  20 /* least rows of a body with a legend */
#define FEW_SPANS    64 /* a cut bucket of so few is read as spans */
#define MOST_SERIES  256
#define TALL_FROM    20 /* least lane rows for strips of two rows */
#define MOST_ROWS    4  /* of a strip, if lanes leave rows free */
#define PART         3  /* strips get at most 1/3 of the lanes' rows */

/* ---- strips of counters ---------------------------------------------------------------------- */

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
		view__say(tl, "no counters");
	return true;
}

/* Cut the strips' area from the bottom of the lanes' areas. */
static void view_layout_strips(struct view_timeline *tl)
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

/* ---- samples of counters --------------------------------------------------------------------- */

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

static void view_strips_load(struct view_timeline *tl)
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
		view__say(tl, "no counters were recorded");
	} else if (all->asked && all->strip_count < all->count) {
		const int last = all->first + all->strip_count;

		snprintf(text, sizeof(text), "counters %d to %d of %d", all->first + 1, last,
			 all->count);
		view_message(tl->context, text, last < all->count ? ": p shows the next" : "");
	}
	all->asked = false;
}

/* ---- areas ----------------------------------------------------------------------------------- */

/* Cut @above rows off the top of the lanes and their side columns, and @below off the bottom. */
static void view_shrink_lanes(struct view_timeline_layout *areas, int above, int below)
{
	struct view_rect *columns[] = {&areas->labels, &areas->lanes, &areas->idle};

	for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
		columns[i]->y += above;
		columns[i]->height -= above + below;
	}
}

/* Rows of the lanes' area without the axes. */
static int view_lane_rows(const struct view_timeline *tl)
{
	return tl->areas.lanes.height - tl->clock[IPS_HOST].present - tl->clock[IPS_DEVICE].present;
}

void view__layout(struct view_timeline *tl)
{
	const struct view_context *context = tl->context;
	struct view_rect body = {0, 0, context->body.width, context->body.height};
	const bool details = tl->under.wanted && !context->whole && !tl->mark;
	int rows, label = LABEL_LEAST + (tl->mark ? 2 : 0);

	for (int i = 0; i < tl->lane_count; i++) {
		label = max(utf8_columns(view__lane_name(tl, i)) + (tl->mark ? 5 : 3), label);
		tl->lanes[i].rows = 0;
	}
	label = min(label, max(body.width / 6, VIEW_LABEL_WIDTH));
	if (tl->counters.shown)
		label = max(label, VIEW_LABEL_WIDTH);
	if (tl->mark)
		body = tl->beside.half;
	tl->heading =
		(struct view_rect){0, 0, body.width, !tl->mark && body.height >= HEADING_FROM};
	/* In VIEW_BSP the first line of the heading is the legend. */
	tl->heading.height += !tl->mark && body.height >= LEGEND_FROM && tl->choice.way != VIEW_BSP;
	body.y += tl->heading.height;
	body.height -= tl->heading.height;
	tl->areas = view_timeline_areas(body, label, details);
	if (tl->choice.by_name && tl->areas.details.height > 0) {
		/* Sums by name get half of the body. */
		const int more = max(body.height / 2 - tl->areas.details.height, 0);

		view_shrink_lanes(&tl->areas, 0, more);
		tl->areas.details.y -= more;
		tl->areas.details.height += more;
	}
	if (tl->mark)
		tl->areas.details = tl->beside.foot;
	if (tl->mark == 'T') {
		/* The lower timeline uses the overview's row for lanes. */
		view_shrink_lanes(&tl->areas, -tl->areas.overview.height, 0);
		tl->areas.overview.height = 0;
	}
	tl->width = tl->areas.lanes.width;
	view_layout_strips(tl);
	rows = view_lane_rows(tl);
	tl->clock[IPS_HOST].axis_y = tl->clock[IPS_DEVICE].axis_y = -1;
	if (rows < 1 || tl->lane_count == 0)
		return;
	if (tl->cursor.lane < tl->scroll)
		tl->scroll = tl->cursor.lane;
	if (tl->cursor.lane >= tl->scroll + rows)
		tl->scroll = tl->cursor.lane - rows + 1;
	if (tl->scroll > tl->lane_count - rows)
		tl->scroll = max(tl->lane_count - rows, 0);
	for (int i = tl->scroll; i < tl->lane_count && i < tl->scroll + rows; i++)
		tl->lanes[i].rows = 1;
}

/* ---- retained bars --------------------------------------------------------------------------- */

/* Read the bars from @from to @to into @kept and restrict it to the clock's window; an empty range
 * reads nothing. */
static void view_read_bars(struct view_timeline *tl, struct view_bars *kept,
			   const struct view_clock *clock, int64_t from, int64_t to)
{
	struct prof_bar *bars = NULL, *all;
	int count = 0, used = 0;

	if (tl->status != ST_OK)
		return;
	if (from < to)
		tl->status = prof_timeline_bars_at(tl->db, kept->track_id, kept->level, from, to,
						   clock->extent.to, &tl->picture, &bars, &count,
						   &tl->err);
	if (tl->status != ST_OK)
		return;
	/* They are merged with those of @kept; equal bars become one. */
	all = mem_calloc((size_t)kept->count + (size_t)count + 1, sizeof(*all));
	if (!all) {
		tl->status = err_nomem(&tl->err);
		return;
	}
	for (int a = 0, b = 0; a < kept->count || b < count;) {
		const int order = a == kept->count ? 1
				  : b == count     ? -1
						   : prof_timeline_order(&kept->bars[a], &bars[b]);
		const struct prof_bar *bar = order <= 0 ? &kept->bars[a] : &bars[b];

		a += order <= 0;
		b += order >= 0;
		/* As in prof_timeline_bars(): a bar without length counts at its start. */
		if (bar->start_ns < clock->window.to &&
		    (bar->start_ns >= clock->window.from ||
		     bar->start_ns + bar->dur_ns > clock->window.from))
			all[used++] = *bar;
	}
	mem_free(kept->bars);
	kept->bars = all;
	kept->count = used;
}

/* The bars of @track in the window; NULL on failure. */
static const struct view_bars *view_load_track(struct view_timeline *tl,
					       const struct prof_track *track)
{
	const struct view_clock *clock = &tl->clock[track->clock];
	const struct view_window window = clock->window;
	const int level = prof_timeline_level(window.to - window.from, tl->width);
	struct view_kept_bars *all = &tl->kept;
	struct view_bars *kept = NULL;

	for (size_t i = 0; i < all->count && !kept; i++)
		if (all->lanes[i].track_id == track->track_id)
			kept = &all->lanes[i];
	if (!kept) {
		if (mem_grow(&all->lanes, &all->capacity, all->count + 1, sizeof(*all->lanes))) {
			tl->status = err_nomem(&tl->err);
			return NULL;
		}
		kept = &all->lanes[all->count++];
		*kept = (struct view_bars){.track_id = track->track_id};
	}
	if (!kept->bars || kept->level != level || kept->window.to <= window.from ||
	    kept->window.from >= window.to) {
		kept->count = 0;
		kept->level = level;
		view_read_bars(tl, kept, clock, window.from, window.to);
	} else if (kept->window.from != window.from || kept->window.to != window.to) {
		view_read_bars(tl, kept, clock, window.from, kept->window.from);
		if (window.to > kept->window.to)
			view_read_bars(tl, kept, clock, kept->window.to, window.to);
	}
	if (tl->status != ST_OK) {
		/* Drop partially read bars. */
		mem_free(kept->bars);
		kept->bars = NULL;
		return NULL;
	}
	kept->window = window;
	kept->used = true;
	return kept;
}

struct view_member_bar {
	struct prof_bar bar;
	int member;
};

static int view_member_order(const void *a, const void *b)
{
	const struct view_member_bar *x = a, *y = b;
	const int order = prof_timeline_order(&x->bar, &y->bar);

	return order ? order : SORTED_BY(x, y, member);
}

/* Is the track aside of the work: waits of a stream, Python's frames around a thread's calls, or
 * the one span of PyTorch's profiler that is as long as the recording? */
static bool view_is_aside(const struct prof_track *track)
{
	static const char *const aside[] = {" (sync)", " (python)", "PyTorch Profiler"};
	bool found = false;

	for (size_t i = 0; i < ARRAY_LEN(aside) && track->name; i++)
		found |= strstr(track->name, aside[i]) != NULL;
	return found;
}

/* Load the bars of a lane: of a folded one those of all its members, in one order, but none of
 * those aside of the work if there are others. */
static void view_load_bars(struct view_timeline *tl, struct view_lane *lane)
{
	const struct view_bars *kept = NULL;
	struct view_member_bar *all = NULL;
	struct prof_bar *bars;
	size_t capacity = 0, count = 0;
	bool works = false;

	for (int m = 0; m < lane->member_count; m++)
		works |= !view_is_aside(lane->members[m]);
	for (int m = 0; m < lane->member_count && tl->status == ST_OK; m++) {
		if (view__stopped(tl))
			break;
		if (works && view_is_aside(lane->members[m]))
			continue;
		kept = view_load_track(tl, lane->members[m]);
		if (!kept || lane->member_count == 1)
			break;
		if (mem_grow(&all, &capacity, count + (size_t)kept->count, sizeof(*all)))
			tl->status = err_nomem(&tl->err);
		for (int i = 0; i < kept->count && tl->status == ST_OK; i++)
			all[count++] = (struct view_member_bar){kept->bars[i], m};
	}
	if (kept && lane->member_count == 1) {
		lane->bars = kept->bars;
		lane->bar_count = kept->count;
		return;
	}
	bars = view__alloc(tl, &tl->picture, count + 1, sizeof(*bars));
	lane->bar_member = view__alloc(tl, &tl->picture, count + 1, sizeof(*lane->bar_member));
	if (bars && lane->bar_member) {
		if (count > 0)
			qsort(all, count, sizeof(*all), view_member_order);
		for (size_t i = 0; i < count; i++) {
			bars[i] = all[i].bar;
			lane->bar_member[i] = all[i].member;
		}
		lane->bars = bars;
		lane->bar_count = (int)count;
	}
	mem_free(all);
}

/* ---- rows of a lane -------------------------------------------------------------------------- */

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

/* The last of MOST_PARTS parts contains the rest of the name. */
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
	length = min(length, size - 1);
	memcpy(out, name, length);
	out[length] = '\0';
}

/* The number of parts of the bar's name, which is its rows in a flame. */
static int view_bar_parts(const struct view_timeline *tl, const struct prof_bar *bar)
{
	const struct view_site *site = view__site(tl, bar->site_id);
	int parts = 1;

	for (const char *at = site ? site->name : NULL; at && *at; at++)
		parts += *at == '/' && at[1] != '\0';
	return min(parts, MOST_PARTS);
}

/* Assign each bar a row below the name parts of the bar around it. Bars are sorted by depth, then
 * start. Return the number of rows wanted. */
static int view_assign_flame_rows(struct view_timeline *tl, struct view_lane *lane)
{
	int above = 0, first = 0, rows = 1;

	lane->bar_row =
		view__alloc(tl, &tl->picture, (size_t)lane->bar_count + 1, sizeof(*lane->bar_row));
	for (int i = 0; i < lane->bar_count && lane->bar_row; i++) {
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
		rows = max(row + view_bar_parts(tl, bar), rows);
	}
	return min(rows, MOST_FLAME);
}

/* Make the main lanes' work rows, or their other rows, thicker, one screen row at a time, up to
 * @most; return the rest of @spare. Main lanes are those of IPUs; in VIEW_FLAT all. */
static int view_grow_rows(struct view_timeline *tl, int first, int count, int spare, int most,
			  bool work)
{
	for (bool grown = true; grown;) {
		int wanted = 0;

		grown = false;
		for (int pass = 0; pass < 2; pass++) {
			if (pass == 1 && (wanted == 0 || wanted > spare))
				return spare;
			for (int i = first; i < first + count; i++) {
				struct view_lane *lane = &tl->lanes[i];
				const int rows = work ? lane->work_row >= 0
						      : lane->rows - (lane->work_row >= 0);
				int *thick = work ? &lane->thick : &lane->thin;

				if (!lane->pipeline && tl->choice.way != VIEW_FLAT)
					continue;
				if (pass == 0) {
					wanted += rows;
				} else if (*thick < most && (!work || rows > 0)) {
					spare -= rows;
					++*thick;
					grown = true;
				}
			}
		}
	}
	return spare;
}

/* Assign rows to the visible lanes: one per depth first, then thicker ones if rows are left. */
static void view_assign_rows(struct view_timeline *tl, int first, int count, int rows)
{
	/* Work rows and other rows become thicker in turns, up to `most` screen rows. */
	static const struct {
		int most;
		bool work;
	} turns[] = {{3, true}, {2, false}, {6, true}, {4, false}, {12, true}, {6, false}};
	const enum view_way way = tl->choice.way;
	int *wanted = view__alloc(tl, &tl->picture, (size_t)count, sizeof(*wanted));
	int *heights = view__alloc(tl, &tl->picture, (size_t)count, sizeof(*heights));
	int spare = rows;

	for (int i = 0; i < count && tl->status == ST_OK; i++) {
		struct view_lane *lane = &tl->lanes[first + i];

		lane->bar_row = NULL;
		wanted[i] = lane->fold          ? 1
			    : way == VIEW_FLAME ? view_assign_flame_rows(tl, lane)
			    : way == VIEW_GANTT ? min(lane->track->depth, VIEW_MOST_DEPTH)
						: 1;
	}
	if (tl->status != ST_OK)
		return;
	view_lane_heights(wanted, count, rows, rows, heights);
	for (int i = 0; i < count; i++) {
		struct view_lane *lane = &tl->lanes[first + i];

		lane->rows = heights[i];
		lane->thick = lane->thin = 1;
		lane->first_depth = 0;
		if (way == VIEW_GANTT && !lane->fold && heights[i] < wanted[i])
			lane->first_depth = min(lane->work_depth, wanted[i] - heights[i]);
		lane->work_row = way == VIEW_FLAME ? -1 : 0;
		if (way == VIEW_GANTT)
			lane->work_row = lane->work_depth - lane->first_depth;
		if (lane->work_row >= lane->rows)
			lane->work_row = -1;
		spare -= heights[i];
	}
	/* In VIEW_BSP lanes have work rows only. */
	if (way == VIEW_BSP)
		view_grow_rows(tl, first, count, spare, MOST_BSP, true);
	for (size_t i = 0; way != VIEW_BSP && i < ARRAY_LEN(turns) && spare > 0; i++) {
		spare = view_grow_rows(tl, first, count, spare, turns[i].most, turns[i].work);
		if (i == 0)
			spare -= count - 1; /* a blank row between lanes */
	}
}

/* Position the lanes from @first on: an axis above each clock's, a blank row between if all fit. */
static void view_position_lanes(struct view_timeline *tl, int first, int count, int rows)
{
	int used = 0, y = 0, clock = -1;
	bool spaced;

	for (int i = first; i < first + count; i++)
		used += view__lane_height(&tl->lanes[i]);
	spaced = used + count - 1 <= rows;
	for (int i = first; i < first + count; i++) {
		struct view_lane *lane = &tl->lanes[i];

		if (lane->track->clock != clock)
			tl->clock[lane->track->clock].axis_y = y++;
		else if (spaced)
			y++;
		clock = lane->track->clock;
		lane->y = y;
		y += view__lane_height(lane);
	}
}

/* ---- columns --------------------------------------------------------------------------------- */

/* Is the bar a thin line: not of the filter, or not on the critical path? */
static bool view_is_left_out(const struct view_timeline *tl, const struct prof_track *track,
			     const struct prof_bar *bar)
{
	return view__is_filtered_out(tl, bar) || view__is_off_path(tl, track->track_id, bar);
}

/* The track of a lane's bar @index. */
static const struct prof_track *view_bar_track(const struct view_lane *lane, int index)
{
	return lane->bar_member ? lane->members[lane->bar_member[index]] : lane->track;
}

/* Add @bar, which has index @index, to the @width columns. A bar that is @left_out shows only in
 * cells without others. */
static void view_fill_columns(struct view_lane_cell *columns, int width, struct view_window window,
			      const struct prof_bar *bar, int32_t index, bool left_out)
{
	const int64_t end = bar->start_ns + max(bar->dur_ns, 1);
	const int64_t from = view_window_column(window, width, bar->start_ns);
	const int64_t to = view_window_column(window, width, end - 1);

	for (int64_t x = max(0, from); x <= to && x < width; x++) {
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

/*
 * Return the time of work within @at from the @count bars of @level that overlap it. A bucket does
 * not say on which side of a cut its time lies: a bucket that an end of @at cuts is read again at a
 * finer level, or as spans if it has few.
 */
static double view_busy_ns(struct view_timeline *tl, const struct view_lane *lane,
			   const struct prof_bar *bars, int count, int level, struct view_window at)
{
	const struct view_clock *clock = &tl->clock[lane->track->clock];
	struct view_window whole = at, cut[2];
	int64_t begun[2] = {0, 0};
	double busy = 0;

	for (int i = 0; i < count; i++) {
		const int64_t start = bars[i].start_ns, end = start + bars[i].dur_ns;

		if (bars[i].depth != lane->work_depth || bars[i].span_id != IPS_NULL ||
		    start >= at.to || end <= at.from)
			continue;
		if (start < at.from) {
			whole.from = min(end, at.to);
			begun[0] = bars[i].count;
		} else if (end > at.to) {
			whole.to = start;
			begun[1] = bars[i].count;
		}
	}
	for (int i = 0; i < count; i++) {
		const int64_t end = bars[i].start_ns + bars[i].dur_ns;
		const int64_t ns = min(end, whole.to) - max(bars[i].start_ns, whole.from);

		if (bars[i].depth == lane->work_depth && ns > 0)
			busy += (double)(bars[i].span_id == IPS_NULL ? bars[i].busy_ns : ns);
	}
	cut[0] = (struct view_window){at.from, whole.from};
	cut[1] = (struct view_window){whole.to, at.to};
	for (int i = 0; i < 2 && tl->status == ST_OK; i++) {
		const int finer = begun[i] <= FEW_SPANS ? -1 : level - 1;
		struct prof_bar *more = NULL;
		int found = 0;

		if (cut[i].from >= cut[i].to)
			continue;
		tl->status = prof_timeline_bars_at(tl->db, lane->track->track_id, finer,
						   cut[i].from, cut[i].to, clock->extent.to,
						   &tl->picture, &more, &found, &tl->err);
		if (tl->status == ST_OK)
			busy += view_busy_ns(tl, lane, more, found, finer, cut[i]);
	}
	return busy;
}

/* The idle share of the traced time; untraced time is not idle. */
static double view_idle_part(struct view_timeline *tl, const struct view_lane *lane,
			     struct view_window window)
{
	const int64_t all = view__traced_ns(tl, lane, window);
	const int level = prof_timeline_level(window.to - window.from, tl->width);
	double busy;

	if (all <= 0)
		return NAN;
	busy = view_busy_ns(tl, lane, lane->bars, lane->bar_count, level, window) / (double)all;
	return busy > 1 ? 0 : 1 - busy;
}

/* The share of the window in which no member of a folded lane works; NaN: some bars are buckets,
 * which do not say when. */
static double view_fold_idle(const struct view_lane *lane, struct view_window window)
{
	int64_t until = window.from, idle = 0;

	for (int i = 0; i < lane->bar_count && lane->bars[i].depth == 0; i++) {
		const struct prof_bar *bar = &lane->bars[i];

		if (bar->span_id == IPS_NULL)
			return NAN;
		idle += max(min(bar->start_ns, window.to) - until, 0);
		until = max(until, bar->start_ns + bar->dur_ns);
	}
	idle += max(window.to - until, 0);
	return (double)idle / (double)(window.to - window.from);
}

static void view_clear_columns(struct view_lane_cell *columns, size_t count)
{
	for (size_t i = 0; i < count; i++)
		columns[i] = (struct view_lane_cell){.bar = -1};
}

/* Does a cell of a depth hide that of the depths above? */
static bool view_cell_hides(const struct view_lane_cell *cell, const struct view_lane_cell *above,
			    int64_t column_ns)
{
	if (cell->bar < 0 || above->bar < 0)
		return cell->bar >= 0;
	if (cell->left_out != above->left_out)
		return above->left_out;
	return cell->busy_ns * 4 >= column_ns;
}

/* Fill each cell with the innermost bar: a depth hides the one above if it has a quarter of the
 * cell. */
static void view_fill_flat(struct view_timeline *tl, struct view_lane *lane,
			   struct view_window window)
{
	const int64_t column_ns = (window.to - window.from) / tl->width;
	struct view_lane_cell *depth =
		view__alloc(tl, &tl->picture, (size_t)tl->width, sizeof(*depth));

	for (int i = 0; i < lane->bar_count && depth;) {
		const int of = lane->bars[i].depth;

		view_clear_columns(depth, (size_t)tl->width);
		for (; i < lane->bar_count && lane->bars[i].depth == of; i++)
			view_fill_columns(
				depth, tl->width, window, &lane->bars[i], i,
				view_is_left_out(tl, view_bar_track(lane, i), &lane->bars[i]));
		for (int x = 0; x < tl->width; x++)
			if (view_cell_hides(&depth[x], &lane->columns[x], column_ns))
				lane->columns[x] = depth[x]; /* it has a bar, dark or not */
	}
}

static void view_fill_lane(struct view_timeline *tl, struct view_lane *lane)
{
	const struct view_window window = tl->clock[lane->track->clock].window;
	const size_t width = (size_t)tl->width, cells = (size_t)lane->rows * width;

	lane->columns = view__alloc(tl, &tl->picture, cells + 1, sizeof(*lane->columns));
	if (!lane->columns)
		return;
	view_clear_columns(lane->columns, cells);
	lane->idle = lane->member_count > 1 ? view_fold_idle(lane, window)
					    : view_idle_part(tl, lane, window);
	for (size_t r = 0; r < (size_t)lane->rows; r++)
		view__mark_untraced(tl, lane, window, &lane->columns[r * width]);
	if (tl->choice.way == VIEW_FLAT || lane->fold) {
		view_fill_flat(tl, lane, window);
		return;
	}
	for (int i = 0; i < lane->bar_count; i++) {
		const struct prof_bar *bar = &lane->bars[i];
		const int row = lane->bar_row ? lane->bar_row[i] : bar->depth - lane->first_depth;
		const int parts = lane->bar_row ? view_bar_parts(tl, bar) : 1;
		const bool left_out = view_is_left_out(tl, lane->track, bar);

		for (int r = row; r >= 0 && r < row + parts && r < lane->rows; r++)
			view_fill_columns(&lane->columns[(size_t)r * width], tl->width, window, bar,
					  i, left_out);
	}
}

/* Keys and details of a folded lane are about the span that a jump selected, or that the cursor's
 * cell shows. */
static void view_follow_member(struct view_timeline *tl)
{
	struct view_lane *lane = view__lane(tl);
	const int x = view__cursor_column(tl, lane->track->clock);
	struct prof_span span;

	if (!lane->fold || !lane->columns || x < 0 || x >= tl->width)
		return;
	if (tl->cursor.pinned != IPS_NULL &&
	    prof_timeline_span(tl->db, tl->cursor.pinned, &tl->picture, &span, NULL) == ST_OK) {
		for (int m = 0; m < lane->member_count; m++)
			if (lane->members[m]->track_id == span.track_id)
				lane->track = lane->members[m];
	} else if (lane->columns[x].bar >= 0) {
		lane->track = view_bar_track(lane, lane->columns[x].bar);
		tl->cursor.depth = lane->bars[lane->columns[x].bar].depth;
	}
	tl->cursor.track_id = lane->track->track_id;
}

static void view_load_lanes(struct view_timeline *tl)
{
	const int rows = view_lane_rows(tl), first = tl->scroll;
	size_t used = 0;
	int shown = 0;

	for (int i = first; i < tl->lane_count && tl->lanes[i].rows > 0; i++, shown++) {
		struct view_lane *lane = &tl->lanes[i];
		const struct prof_bar *last = NULL;

		if (view__stopped(tl))
			return;
		view_load_bars(tl, lane);
		for (int b = 0; b < lane->bar_count && tl->status == ST_OK; b++) {
			const struct prof_bar *bar = &lane->bars[b];

			if (last && last->site_id == bar->site_id && last->phase == bar->phase &&
			    lane->work_known)
				continue;
			last = bar;
			view__read_site(tl, bar);
			if (!lane->work_known && bar->busy_ns > 0 && view__phase(tl, bar)) {
				lane->work_known = true;
				lane->work_depth = bar->depth;
			}
		}
		if (tl->status != ST_OK)
			return;
	}
	/* Free the bars of lanes that are no longer visible. */
	for (size_t i = 0; i < tl->kept.count; i++) {
		if (!tl->kept.lanes[i].used) {
			mem_free(tl->kept.lanes[i].bars);
			continue;
		}
		tl->kept.lanes[i].used = false;
		tl->kept.lanes[used++] = tl->kept.lanes[i];
	}
	tl->kept.count = used;
	if (shown == 0)
		return;
	view_assign_rows(tl, first, shown, rows);
	for (int i = first; i < first + shown && tl->status == ST_OK; i++)
		view_fill_lane(tl, &tl->lanes[i]);
	if (tl->status != ST_OK)
		return;
	view_position_lanes(tl, first, shown, rows);
	view_follow_member(tl);
}

/* ---- pipeline runs --------------------------------------------------------------------------- */

static void view_add_run(struct view_timeline *tl, int64_t group, const struct prof_bar *bar)
{
	const int64_t end = bar->start_ns + bar->dur_ns;

	/* Search from the newest: bars are in order of time. */
	for (int i = tl->run_count - 1; i >= 0; i--) {
		struct view_pipeline_run *run = &tl->runs[i];

		if (run->weight_update != bar->weight_update || run->execution != bar->execution ||
		    run->group != group)
			continue;
		run->from = min(bar->start_ns, run->from);
		run->to = max(end, run->to);
		return;
	}
	tl->runs[tl->run_count++] = (struct view_pipeline_run){
		bar->execution, bar->weight_update, group, bar->start_ns, end, {0}};
}

/* Mark the cells of the lane's work row that are within a pipeline run. */
static void view_mark_runs(const struct view_timeline *tl, const struct view_lane *lane)
{
	const struct view_window window = tl->clock[lane->track->clock].window;
	struct view_lane_cell *row = &lane->columns[(size_t)lane->work_row * (size_t)tl->width];
	const int64_t group = view__group(tl, lane);

	for (int r = 0; r < tl->run_count; r++) {
		const struct view_pipeline_run *run = &tl->runs[r];
		const int64_t to = view_window_column(window, tl->width, run->to - 1);
		int64_t x = view_window_column(window, tl->width, run->from);

		if (run->group != group)
			continue;
		for (x = max(0, x); x <= to && x < tl->width; x++)
			row[x].run = true;
	}
}

/* Collect the runs in the window, and mark their cells in the work rows. */
static void view_load_runs(struct view_timeline *tl)
{
	size_t most = 1;

	for (int i = 0; i < tl->lane_count; i++)
		if (tl->lanes[i].rows > 0)
			most += (size_t)tl->lanes[i].bar_count;
	tl->runs = view__alloc(tl, &tl->picture, most, sizeof(*tl->runs));
	for (int i = 0; i < tl->lane_count && tl->runs; i++) {
		const struct view_lane *lane = &tl->lanes[i];
		const int64_t group = lane->rows > 0 && lane->pipeline ? view__group(tl, lane) : -1;

		for (int b = 0; b < lane->bar_count && group >= 0; b++)
			if (view__is_work(tl, lane, &lane->bars[b]))
				view_add_run(tl, group, &lane->bars[b]);
	}
	for (int i = 0; i < tl->lane_count && tl->choice.way == VIEW_GANTT; i++)
		if (tl->lanes[i].rows > 0 && tl->lanes[i].pipeline && tl->lanes[i].work_row >= 0)
			view_mark_runs(tl, &tl->lanes[i]);
}

/* ---- the whole picture ----------------------------------------------------------------------- */

void view__picture_reset(struct view_timeline *tl)
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
		lane->bar_member = NULL;
		lane->bar_row = NULL;
		lane->columns = NULL;
		lane->bsp = NULL;
		lane->cause_ns = NULL;
	}
}

/* Load the cursor's lane over the whole run; again after news, or for another lane. */
static void view_load_overview(struct view_timeline *tl)
{
	const struct view_lane *lane = view__lane(tl);
	const struct view_window extent = view__clock(tl)->extent;
	struct view_overview *all = &tl->overview;
	int count = 0;

	if (tl->status != ST_OK || tl->areas.overview.height == 0 || tl->width < 1 ||
	    (all->track_id == lane->track->track_id && all->width == tl->width))
		return;
	arena_reset(&all->arena);
	all->columns = NULL;
	all->track_id = IPS_NULL;
	tl->status =
		prof_timeline_bars(tl->db, lane->track->track_id, extent.from, extent.to, tl->width,
				   extent.to, &all->arena, &all->bars, &count, &tl->err);
	all->columns = view__alloc(tl, &all->arena, (size_t)tl->width, sizeof(*all->columns));
	if (!all->columns)
		return;
	view_clear_columns(all->columns, (size_t)tl->width);
	for (int i = 0; i < count && tl->status == ST_OK; i++) {
		view__read_site(tl, &all->bars[i]);
		if (all->bars[i].depth == lane->work_depth)
			view_fill_columns(all->columns, tl->width, extent, &all->bars[i], i,
					  view_is_left_out(tl, lane->track, &all->bars[i]));
	}
	view__mark_untraced(tl, lane, extent, all->columns);
	if (tl->status != ST_OK)
		return;
	all->track_id = lane->track->track_id;
	all->width = tl->width;
}

void view__picture_load(struct view_timeline *tl)
{
	view_load_lanes(tl);
	if (tl->status == ST_OK)
		view_load_runs(tl);
	view__bubble_load(tl);
	view__device_load(tl);
	view_load_overview(tl);
	view_strips_load(tl);
}
