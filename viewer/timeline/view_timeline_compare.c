/*
 * Two timelines one above the other, which view_timeline_align.c brings to the same moment of
 * training.
 *
 * The target is a timeline of its own that follows the source's window, cursor and way to look at
 * it; keys move the source.
 *
 * Threading: one thread. Ownership: the source's timeline owns the target's.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"

#define TABLE_ROWS  4  /* the table above, with its head */
#define TABLE_FROM  20 /* rows of a body that has it; else a line */
#define DETAIL_ROWS 6
#define DETAIL_FROM 24

/* ---- loading --------------------------------------------------------------------------------- */

static void view_place_halves(struct view_timeline *tl, const struct view_context *context)
{
	const int width = context->body.width, height = context->body.height;
	const int head = height >= TABLE_FROM ? TABLE_ROWS : height >= 4 ? 1 : 0;
	const bool sums = view__shows_sums(tl);
	const int wanted = sums ? height / 3 : DETAIL_ROWS;
	const int details = tl->details && !context->whole &&
					    height >= (sums ? VIEW_SUMS_FROM_TWO : DETAIL_FROM)
				    ? wanted
				    : 0;
	const int rest = height - head - details, upper = (rest + 1) / 2;

	tl->head = (struct view_rect){0, 0, width, head};
	tl->half = (struct view_rect){0, head, width, upper};
	tl->foot = (struct view_rect){0, head + rest, width, details};
	tl->target->half = (struct view_rect){0, head + upper, width, rest - upper};
	tl->target->foot = (struct view_rect){0, head + rest, 0, 0};
}

/* What keys have chosen holds for both. */
static void view_follow(struct view_timeline *tl)
{
	struct view_timeline *target = tl->target;

	target->relane |= target->way != tl->way || target->only_ipu != tl->only_ipu ||
			  target->only_replica != tl->only_replica;
	target->way = tl->way;
	target->only_ipu = tl->only_ipu;
	target->only_replica = tl->only_replica;
	target->cycles = tl->cycles;
	target->by_cause = tl->by_cause;
	target->by_name = tl->by_name;
	target->bsp_balance = tl->bsp_balance;
	target->counters.shown = tl->counters.shown;
	target->counters.first = tl->counters.first;
}

enum status view__timeline_compare(struct view_timeline *tl, struct view_context *context,
				   bool news, struct err *err)
{
	struct view_context its = view_context_of_target(context);
	struct view_timeline *target = tl->target;
	enum status status;

	view_place_halves(tl, context);
	view_follow(tl);
	target->filter.stale |= news;
	status = view__timeline_load(tl, context, news, err);
	if (status != ST_OK || tl->lane_count == 0)
		return status;
	view__picture_forget(target);
	if (news || target->relane || !target->started)
		status = view__tracks_load(target, &its, err);
	if (status != ST_OK || target->lane_count == 0)
		return status;
	view__align(tl, context);
	status = view__timeline_load(target, &its, false, err);
	view__strips_match(tl);
	return status;
}

/* ---- going ----------------------------------------------------------------------------------- */

/* The source's window begins with the update that @its, the target's work, is of, and holds as much
 * of it as lies before the work; the target's follows (view_timeline_align.c). */
static enum status view_go_beside(struct view_timeline *tl, struct view_context *context,
				  const struct prof_span *its, struct err *err)
{
	struct view_timeline *target = tl->target;
	const int c = view__lead(target);
	const int lane = view__same_lane(tl, view__lane(target)->track);
	const int64_t last = its->start_ns + max(its->dur_ns, 0);
	struct view_window window;
	struct view_place update;
	int64_t mine, begin;

	view_place_clear(&update);
	update.weight_update = its->weight_update;
	if (lane < 0 || its->weight_update == IPS_NULL ||
	    !view__place_start(tl, context->source->db, c, &update, &mine) ||
	    !view__place_start(target, context->target->db, c, &update, &begin))
		return err_set(err, ST_NOTFOUND,
			       "only the target has it: the source has no lane "
			       "or weight update to be beside it");
	window = (struct view_window){mine, sat_add(mine, (last - begin) / 4 * 5)};
	if (window.to - window.from < VIEW_WINDOW_LEAST)
		window.to = window.from + VIEW_WINDOW_LEAST;
	tl->clock[c].window = window;
	tl->lane = lane;
	tl->lane_id = tl->lanes[lane].track->track_id;
	tl->depth = its->depth;
	tl->cursor_ns = mine + its->start_ns - begin;
	tl->pinned = IPS_NULL;
	return ST_OK;
}

enum status view__go_to_target(struct view_timeline *tl, struct view_context *context,
			       const struct view_place *place, struct err *err)
{
	struct view_context its = {.source = context->target, .body = context->body};
	struct view_timeline *target = tl->target;
	enum status status = ST_OK;
	struct prof_span span;

	view_follow(tl);
	if (target->relane)
		status = view__tracks_load(target, &its, err);
	if (status != ST_OK)
		return status;
	if (!its.source->db || !view__go_to_work(target, its.source->db, place) ||
	    prof_timeline_span(its.source->db, target->pinned, &target->picture, &span, NULL) !=
		    ST_OK)
		return err_set(err, ST_NOTFOUND, "only the target has it, and not on the timeline");
	status = view_go_beside(tl, context, &span, err);
	if (status == ST_OK)
		snprintf(context->message, sizeof(context->message),
			 "only T has it, and there the cursor is: S is beside it");
	return status;
}

/* ---- the table above ------------------------------------------------------------------------- */

static double view_figure(const struct view_bubble *bubble, int column)
{
	if (bubble->runs < 1)
		return NAN;
	if (column == 0)
		return (double)bubble->mean_makespan_ns;
	if (column == 1)
		return bubble->idle * 100;
	if (column == 2)
		return bubble->theory * 100;
	return bubble->part[column - 3 + VIEW_CAUSE_RAMP_UP] * 100;
}

#define FIGURES 7

static void view_figure_text(double value, int column, bool sign, char *out, size_t size)
{
	char ns[FMT_SIZE];

	if (isnan(value))
		snprintf(out, size, "-");
	else if (column == 0)
		snprintf(out, size, "%s%s", sign && value > 0 ? "+" : "",
			 fmt_ns(ns, (int64_t)value));
	else
		snprintf(out, size, sign ? "%+.1f" : "%.1f", value);
}

/* Source, Target, Diff of the runs in the windows: makespan, and idle time in % of IPUs x it. */
static void view_draw_table(const struct view_timeline *tl, struct view_pane *pane)
{
	static const char *const titles[FIGURES] = {"makespan",  "idle %",    "theory", "ramp-up",
						    "ramp-down", "imbalance", "comm."};
	static const char *const rows[] = {"Source", "Target", "Diff"};
	const int c = view__lead(tl), left = 9;
	const int width = (pane->rect.width - left - 1) / FIGURES;
	const int cells = width < 9 ? 9 : width > 16 ? 16 : width;
	char text[FMT_SIZE + 8];

	for (int i = 0; i < FIGURES; i++) {
		const double mine = view_figure(&tl->bubble[c], i);
		const double its = view_figure(&tl->target->bubble[c], i);
		const double values[] = {mine, its, its - mine};

		if (left + (i + 1) * cells > pane->rect.width)
			break;
		view_text_right(pane, left + i * cells, 0, cells, VIEW_DIM, titles[i]);
		for (int r = 0; r < 3; r++) {
			view_figure_text(values[r], i, r == 2, text, sizeof(text));
			view_text_right(pane, left + i * cells, r + 1, cells,
					r == 2 ? VIEW_BOLD : VIEW_NORMAL, text);
		}
	}
	view_text(pane, 1, 0, VIEW_TITLE, view__way_names[tl->way]);
	for (int r = 0; r < 3; r++)
		view_text(pane, 1, r + 1,
			  r == 0   ? VIEW_SOURCE
			  : r == 1 ? VIEW_TARGET
				   : VIEW_BOLD,
			  rows[r]);
}

static void view_draw_line(const struct view_timeline *tl, struct view_pane *pane)
{
	const int c = view__lead(tl);
	const double mine = view_figure(&tl->bubble[c], 1);
	const double its = view_figure(&tl->target->bubble[c], 1);

	if (isnan(mine) || isnan(its))
		view_text(pane, 1, 0, VIEW_DIM, "no pipeline runs to compare");
	else
		view_textf(pane, 1, 0, VIEW_BOLD, "idle: S %.1f %% T %.1f %% diff %+.1f", mine, its,
			   its - mine);
}

void view__timeline_compared(const struct view_timeline *tl, struct view_pane *pane)
{
	struct view_pane head = view__sub(pane, tl->head);

	if (head.rect.height >= TABLE_ROWS)
		view_draw_table(tl, &head);
	else if (head.rect.height > 0)
		view_draw_line(tl, &head);
}
