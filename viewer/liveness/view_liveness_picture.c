/*
 * What the chart shows: a point for each program step of the window, or for each column where these
 * are more; the overview; the facts of the step under the cursor.
 *
 * A column of several steps shows the highest of them: a peak is never averaged away.
 *
 * Threading: the session's worker. Ownership: the picture's arena.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "viewer/draw/view_share.h"
#include "viewer/liveness/view_liveness_internal.h"

#define BAND_LEAST 3   /* rows of an IPU's chart, axis aside */
#define LIMIT_FROM 0.5 /* of the limit: where the peak is below, the line would flatten the curve */
#define HEADROOM   1.02

void view__live_point(const struct view_liveness *live, int point, int64_t *from, int64_t *to)
{
	const int64_t steps = live->window.to - live->window.from;

	view_share(steps, live->points > 0 ? live->points : 1, point, from, to);
	*from += live->window.from;
	*to += live->window.from;
}

int view__live_point_of(const struct view_liveness *live, int64_t step)
{
	if (step < live->window.from || step >= live->window.to || live->points == 0)
		return -1;
	return view_share_cell(live->window.to - live->window.from, live->points,
			       step - live->window.from);
}

/* ---- the bands ------------------------------------------------------------------------------- */

/* The highest step of @from .. @to - 1; NULL: the program has none there. */
static const struct view_live_step *view_live_best(const struct view_live_curve *curve,
						   int64_t from, int64_t to)
{
	const struct view_live_step *best = view__live_at(curve, from), *at = best;
	const struct view_live_step *end = curve->steps + curve->count;

	if (!at) {
		/* Before its first step there is nothing. */
		at = curve->steps;
		if (at->step >= to || from > curve->steps[curve->count - 1].step)
			return NULL;
		best = at;
	}
	for (; at < end && at->step < to; at++)
		if (at->always + at->rest > best->always + best->rest)
			best = at;
	return best;
}

static enum status view_live_points(struct view_liveness *live, struct view_live_band *band,
				    int report, struct err *err)
{
	const struct view_live_curve *curve = view__live_curve(&live->report[report], band->ipu);
	const size_t count = (size_t)live->points;
	double *values;

	if (!curve)
		return ST_OK;
	values = arena_alloc(&live->arena, 3 * count + 1, sizeof(*values));
	if (!values)
		return err_nomem(err);
	band->always[report] = values;
	band->rest[report] = values + count;
	band->total[report] = values + 2 * count;
	for (int p = 0; p < live->points; p++) {
		const struct view_live_step *best;
		int64_t from, to;

		view__live_point(live, p, &from, &to);
		best = view_live_best(curve, from, to);
		band->always[report][p] = best ? (double)best->always : (double)NAN;
		band->rest[report][p] = best ? (double)best->rest : (double)NAN;
		band->total[report][p] =
			best ? (double)(best->rest + (live->always_live ? best->always : 0))
			     : (double)NAN;
	}
	return ST_OK;
}

/* A line between points would slope where bytes jump. */
static enum status view_live_line(struct view_liveness *live, struct view_live_band *band,
				  struct err *err)
{
	const int count = 2 * live->plot;

	if (!band->total[1] || live->points == 0)
		return ST_OK;
	band->line = arena_alloc(&live->arena, (size_t)count, sizeof(*band->line));
	if (!band->line)
		return err_nomem(err);
	for (int i = 0; i < count; i++)
		band->line[i] = band->total[1][(int64_t)(i / 2) * live->points / live->plot];
	return ST_OK;
}

static void view_live_limit(const struct view_liveness *live, struct view_live_band *band)
{
	const struct view_live_curve *curve = view__live_curve(&live->report[0], band->ipu);

	band->limit = (double)NAN;
	if (curve && curve->capacity > 0 && live->always_live &&
	    band->y.high >= LIMIT_FROM * (double)curve->capacity)
		band->limit = (double)curve->capacity;
	if (isfinite(band->limit) && band->y.high < band->limit * HEADROOM)
		band->y.high = band->limit * HEADROOM;
}

/* From 0 to the highest of the whole program, so that another window is to the same scale. */
static void view_live_scale(const struct view_liveness *live, struct view_live_band *band)
{
	const double zero = 0;
	const bool with = live->always_live;

	view_axis_begin(&band->y);
	band->y.quantity = REPORT_BYTES;
	view_axis_take(&band->y, &zero, 1);
	for (int r = 0; r < 2; r++) {
		const struct view_live_curve *curve = view__live_curve(&live->report[r], band->ipu);
		const struct view_live_step *peak = curve ? &curve->steps[curve->peak[with]] : NULL;
		const double bytes = peak ? (double)(peak->rest + (with ? peak->always : 0)) : 0;

		view_axis_take(&band->y, &bytes, 1);
	}
	view_axis_settle(&band->y);
	band->y.low = 0;
	view_live_limit(live, band);
}

static enum status view_live_make_bands(struct view_liveness *live, struct err *err)
{
	const int rows = live->areas.chart.height;
	const int room = rows / BAND_LEAST > 0 ? rows / BAND_LEAST : 1;
	int y = 0;

	live->band_count = live->ipu != VIEW_LIVE_ALL ? (live->ipu_count > 0)
						      : min((int)live->ipu_count, room);
	live->bands = arena_alloc(&live->arena, (size_t)live->band_count + 1, sizeof(*live->bands));
	if (!live->bands) {
		live->band_count = 0;
		return err_nomem(err);
	}
	live->scale = 0;
	for (int b = 0; b < live->band_count; b++) {
		struct view_live_band *band = &live->bands[b];
		const int end = rows * (b + 1) / live->band_count;
		int scale;

		band->ipu = live->ipus[live->ipu == VIEW_LIVE_ALL ? b : live->ipu];
		band->rect = (struct view_rect){0, y, live->areas.chart.width, end - y};
		y = end;
		view_live_scale(live, band);
		scale = view_chart_scale_width(&band->y, band->rect.height);
		live->scale = max(scale, live->scale);
	}
	return ST_OK;
}

static enum status view_live_fill_bands(struct view_liveness *live, struct err *err)
{
	const int64_t steps = live->window.to - live->window.from;
	enum status status = ST_OK;

	live->plot = view_chart_areas(live->areas.chart.width, live->areas.chart.height,
				      live->scale, true)
			     .plot.width;
	live->points = live->plot < 1 ? 0 : steps < live->plot ? (int)steps : live->plot;
	for (int b = 0; b < live->band_count && status == ST_OK; b++) {
		for (int r = 0; r < 2 && status == ST_OK; r++)
			status = view_live_points(live, &live->bands[b], r, err);
		if (status == ST_OK)
			status = view_live_line(live, &live->bands[b], err);
	}
	return status;
}

/* ---- the overview ---------------------------------------------------------------------------- */

/* The highest of what is shown, over the whole program. */
static enum status view_live_overview(struct view_liveness *live, struct err *err)
{
	const int64_t steps = live->extent.to - live->extent.from;
	const int count = live->areas.overview.height > 0 ? live->plot : 0;

	live->overview_count = 0;
	live->overview = arena_alloc(&live->arena, (size_t)count + 1, sizeof(*live->overview));
	if (!live->overview)
		return err_nomem(err);
	for (int x = 0; x < count; x++) {
		double value = (double)NAN;
		int64_t from, to;

		view_share(steps, count, x, &from, &to);
		for (size_t i = 0; i < live->report[0].curve_count; i++) {
			const struct view_live_curve *curve = &live->report[0].curves[i];
			const struct view_live_step *best =
				view__live_shown(live, curve->ipu)
					? view_live_best(curve, live->extent.from + from,
							 live->extent.from + to)
					: NULL;

			if (best)
				value = fmax(value, (double)best->rest);
		}
		live->overview[x] = (struct view_chart_point){value, value, value, false};
	}
	live->overview_count = count;
	return ST_OK;
}

/* ---- the step -------------------------------------------------------------------------------- */

static void view_live_fact(struct view_liveness *live, int report)
{
	const struct view_live_curve *curve =
		live->ipu == VIEW_LIVE_ALL || live->ipu_count == 0
			? NULL
			: view__live_curve(&live->report[report], live->ipus[live->ipu]);
	const struct view_live_step *at = curve ? view__live_at(curve, live->cursor) : NULL;

	live->facts[report] = (struct view_live_facts){.program_id = IPS_NULL};
	if (at)
		live->facts[report] =
			(struct view_live_facts){true, at->program_id, at->always, at->rest};
}

static enum status view_live_program(struct view_liveness *live, struct prof_db *db,
				     struct err *err)
{
	struct prof_query *query;
	enum status status;

	live->program[0] = '\0';
	if (live->facts[0].program_id == IPS_NULL || !db)
		return ST_OK;
	status = prof_query_open(&query, db,
				 "SELECT coalesce(name, operation, type) FROM programs "
				 "WHERE program_id = :program_id",
				 err);
	prof_query_int(query, ":program_id", live->facts[0].program_id);
	if (prof_query_next(query, &status, err))
		view_place_text(live->program, prof_column_text(query, 0));
	prof_query_close(query);
	return status;
}

enum status view__live_picture(struct view_liveness *live, struct view_context *context,
			       struct err *err)
{
	enum status status;

	arena_reset(&live->arena);
	live->band_count = live->points = live->overview_count = 0;
	status = view_live_make_bands(live, err);
	if (status == ST_OK)
		status = view_live_fill_bands(live, err);
	if (status == ST_OK)
		status = view_live_overview(live, err);
	if (status != ST_OK) {
		live->band_count = live->points = 0;
		return status;
	}
	for (int r = 0; r < 2; r++)
		view_live_fact(live, r);
	return view_live_program(live, context->source->db, err);
}
