/*
 * The chart of live bytes: one point per program step of the window, or per column if there are
 * more steps; the overview; the facts of the step under the cursor; and the drawing of everything.
 *
 * Threading: the session's; drawing is the terminal's. Ownership: the screen's arenas.
 */
#include "viewer/liveness/view_liveness_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/minmax.h"
#include "common/str.h"
#include "reports/table/report_axis.h"

#define BAND_LEAST 3 /* rows of an IPU's chart, without axis */
#define LIMIT_FROM                                                                                 \
	0.5 /* least peak relative to the limit: below, the line would flatten the curve */
#define HEADROOM 1.02

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
static const struct view_live_step *liveness_highest_in(const struct view_live_curve *curve,
							int64_t from, int64_t to)
{
	const struct view_live_step *best = view__live_at(curve, from);
	const struct view_live_step *end = curve->steps + curve->count;

	/* @from may be before the first step. */
	if (!best && (curve->steps->step >= to || from > end[-1].step))
		return NULL;
	if (!best)
		best = curve->steps;
	for (const struct view_live_step *at = best; at < end && at->step < to; at++)
		if (view__live_all(at) > view__live_all(best))
			best = at;
	return best;
}

/* Compute a report's points, and the Target's line. The line has steps; connecting the points
 * directly would slope where bytes jump. */
static void liveness_fill_points(struct view_liveness *live, struct view_live_band *band,
				 int report)
{
	const struct view_live_curve *curve = view__live_curve(live, report, band->ipu);
	const int count = live->points;
	double *values, *line = NULL;

	if (!curve)
		return;
	values = view_alloc(&live->arena, 3 * (size_t)count, sizeof(*values), &live->err);
	if (report == 1)
		line = view_alloc(&live->arena, 2 * (size_t)live->plot, sizeof(*line), &live->err);
	if (err_stuck(&live->err))
		return;
	band->always[report] = values;
	band->rest[report] = values + count;
	band->total[report] = values + 2 * count;
	for (int p = 0; p < count; p++) {
		const struct view_live_step *best;
		int64_t from, to;

		view__live_point(live, p, &from, &to);
		best = liveness_highest_in(curve, from, to);
		band->always[report][p] = best ? (double)best->always : (double)NAN;
		band->rest[report][p] = best ? (double)best->rest : (double)NAN;
		band->total[report][p] = best ? (double)view__live_bytes(live, best) : (double)NAN;
	}
	if (report == 0 || count == 0)
		return;
	band->line = line;
	for (int i = 0; i < 2 * live->plot; i++)
		line[i] = band->total[1][(int64_t)(i / 2) * count / live->plot];
}

/* Scale from 0 to the peak of the whole program, so that all windows have the same scale. */
static void liveness_set_scale(const struct view_liveness *live, struct view_live_band *band)
{
	const double zero = 0;
	const struct view_live_curve *source = view__live_curve(live, 0, band->ipu);

	report_axis_begin(&band->y);
	band->y.quantity = REPORT_BYTES;
	report_axis_include(&band->y, &zero, 1);
	for (int r = 0; r < 2; r++) {
		const struct view_live_step *peak =
			view__live_peak(live, r, band->ipu, live->always_live);
		const double bytes = peak ? (double)view__live_bytes(live, peak) : 0;

		report_axis_include(&band->y, &bytes, 1);
	}
	report_axis_finish(&band->y);
	band->y.low = 0;
	band->limit = (double)NAN;
	if (source && source->capacity > 0 && live->always_live &&
	    band->y.high >= LIMIT_FROM * (double)source->capacity) {
		band->limit = (double)source->capacity;
		band->y.high = fmax(band->y.high, band->limit * HEADROOM);
	}
}

static void liveness_make_bands(struct view_liveness *live)
{
	const struct view_rect *chart = &live->areas.chart;
	const int rows = chart->height, room = max(rows / BAND_LEAST, 1);
	const int64_t steps = live->window.to - live->window.from;
	const int count = live->ipu != VIEW_LIVE_ALL ? (live->ipu_count > 0)
						     : min((int)live->ipu_count, room);

	live->scale = 0;
	live->bands = view_alloc(&live->arena, (size_t)count, sizeof(*live->bands), &live->err);
	if (!live->bands)
		return;
	live->band_count = count;
	for (int b = 0; b < count; b++) {
		struct view_live_band *band = &live->bands[b];
		const int y = rows * b / count, end = rows * (b + 1) / count;
		int scale;

		band->ipu = live->ipus[live->ipu == VIEW_LIVE_ALL ? b : live->ipu];
		band->rect = (struct view_rect){0, y, chart->width, end - y};
		liveness_set_scale(live, band);
		scale = view_chart_scale_width(&band->y, band->rect.height);
		live->scale = max(scale, live->scale);
	}
	live->plot = view_chart_areas(chart->width, rows, live->scale, true).plot.width;
	live->points = live->plot < 1 ? 0 : (int)min(steps, (int64_t)live->plot);
	for (int b = 0; b < count; b++)
		for (int r = 0; r < 2 && !err_stuck(&live->err); r++)
			liveness_fill_points(live, &live->bands[b], r);
}

/* ---- the overview ---------------------------------------------------------------------------- */

/* Compute the highest bytes of the shown IPUs over the whole program. */
static void liveness_make_overview(struct view_liveness *live)
{
	const int64_t steps = live->extent.to - live->extent.from;
	const int count = live->areas.overview.height > 0 ? live->plot : 0;

	live->overview =
		view_alloc(&live->arena, (size_t)count, sizeof(*live->overview), &live->err);
	if (!live->overview)
		return;
	for (int x = 0; x < count; x++) {
		double value = (double)NAN;
		int64_t from, to;

		view_share(steps, count, x, &from, &to);
		for (size_t i = 0; i < live->report[0].curve_count; i++) {
			const struct view_live_curve *curve = &live->report[0].curves[i];
			const struct view_live_step *best =
				view__live_shown(live, curve->ipu)
					? liveness_highest_in(curve, live->extent.from + from,
							      live->extent.from + to)
					: NULL;

			if (best)
				value = fmax(value, (double)best->rest);
		}
		live->overview[x] = (struct view_chart_point){value, value, value, false};
	}
	live->overview_count = count;
}

/* ---- the step -------------------------------------------------------------------------------- */

void view__live_picture(struct view_liveness *live)
{
	const bool one = live->ipu != VIEW_LIVE_ALL && live->ipu_count > 0;
	struct prof_db *db = live->context->source->db;
	struct prof_query *query;

	arena_reset(&live->arena);
	live->band_count = live->points = live->overview_count = 0;
	liveness_make_bands(live);
	liveness_make_overview(live);
	if (err_stuck(&live->err)) {
		live->band_count = live->points = 0;
		return;
	}
	/* The bytes and the program of the cursor's step. */
	for (int r = 0; r < 2; r++) {
		const struct view_live_step *at =
			one ? view__live_at(view__live_curve(live, r, live->ipus[live->ipu]),
					    live->cursor)
			    : NULL;

		live->facts[r] = (struct view_live_facts){.program_id = IPS_NULL};
		if (at)
			live->facts[r] = (struct view_live_facts){true, at->program_id, at->always,
								  at->rest};
	}
	live->program[0] = '\0';
	if (live->facts[0].program_id == IPS_NULL || !db)
		return;
	query = view_query_open(db,
				"SELECT coalesce(name, operation, type) FROM programs "
				"WHERE program_id = :program_id",
				&live->err);
	prof_query_int(query, ":program_id", live->facts[0].program_id);
	if (view_query_next(query, &live->err))
		view_place_text(live->program, prof_column_text(query, 0));
	prof_query_close(query);
}

/* ---- drawing --------------------------------------------------------------------------------- */

#define STYLE_ALWAYS  VIEW_SERIES_1
#define STYLE_REST    VIEW_SERIES_2
#define LABEL_FROM    70   /* columns */
#define HEADING_WHOLE 110  /* least columns of a heading without abbreviations */
#define PROGRAM_LEAST 20   /* shorter names are useless */
#define STEP_END      0.01 /* ticks are at the begin of steps, and the last step has a width */

static const char *liveness_bytes_text(int64_t bytes, char out[FMT_SIZE])
{
	return fmt_bytes(out, bytes > 0 ? (uint64_t)bytes : 0);
}

/* Columns left of the plot; the parts above and below align with it. */
static int liveness_left(const struct view_liveness *live)
{
	return live->areas.chart.width - live->plot;
}

/* The first column of the plot that shows @step; -1: outside. */
static int liveness_cell(const struct view_liveness *live, int64_t step)
{
	const int point = view__live_point_of(live, step);

	return point < 0 ? -1 : view_share_cell(live->points, live->plot, point);
}

/* ---- above the chart ------------------------------------------------------------------------- */

/* Format both reports' peaks; @brief abbreviates Source and Target. */
static void liveness_peaks_text(const struct view_liveness *live, bool brief, char *out,
				size_t size)
{
	char text[2][FMT_SIZE + 32] = {"-", "-"}, bytes[FMT_SIZE];

	for (int r = 0; r < 2; r++) {
		const struct view_live_step *peak =
			view__live_peak(live, r, live->bands[0].ipu, true);

		if (peak)
			snprintf(text[r], sizeof(text[r]), "%s at %lld",
				 liveness_bytes_text(view__live_all(peak), bytes),
				 (long long)peak->step);
	}
	snprintf(out, size, "peak %s %s, %s %s", brief ? "S" : "Source", text[0],
		 brief ? "T" : "Target", text[1]);
}

/* Format the peak and, unless @brief, its share of the tiles' memory. */
static void liveness_peak_text(const struct view_liveness *live, bool brief, char *out, size_t size)
{
	const int64_t ipu = live->bands[0].ipu;
	const struct view_live_curve *curve = view__live_curve(live, 0, ipu);
	const struct view_live_step *peak = view__live_peak(live, 0, ipu, true);
	char bytes[FMT_SIZE], limit[FMT_SIZE], part[FMT_SIZE], of[2 * FMT_SIZE + 8] = "";

	out[0] = '\0';
	if (!peak)
		return;
	if (!brief && curve->capacity > 0)
		snprintf(of, sizeof(of), ", %s of %s",
			 fmt_percent(part, (double)view__live_all(peak) / (double)curve->capacity),
			 liveness_bytes_text(curve->capacity, limit));
	snprintf(out, size, "peak %s at program step %lld%s",
		 liveness_bytes_text(view__live_all(peak), bytes), (long long)peak->step, of);
}

static void liveness_draw_legend(const struct view_liveness *live, struct view_pane *pane)
{
	const int width = pane->rect.width;
	const char *label = width >= LABEL_FROM ? " (simulated)" : "";
	char text[48], peak[160];
	int x = 1, room;

	if (live->ipu == VIEW_LIVE_ALL)
		snprintf(text, sizeof(text), "%d of %zu IPUs%s", live->band_count, live->ipu_count,
			 label);
	else if (live->ipus[live->ipu] == IPS_NULL)
		snprintf(text, sizeof(text), "no IPU%s", label);
	else
		snprintf(text, sizeof(text), "IPU %lld%s", (long long)live->ipus[live->ipu], label);
	x += view_text(pane, x, 0, VIEW_BOLD, text) + 2;
	if (live->always_live)
		x += view_chart_key(pane, x, 0, width - x, STYLE_ALWAYS, "always live");
	x += view_chart_key(pane, x, 0, width - x, STYLE_REST, "not always live");
	if (live->compared)
		x += view_chart_key(pane, x, 0, width - x, VIEW_TARGET, "Target");
	/* The peak is described as completely as fits. */
	room = pane->rect.width - x - 1;
	for (int brief = 0; brief < 2 && live->band_count == 1; brief++) {
		(live->compared ? liveness_peaks_text : liveness_peak_text)(live, brief, peak,
									    sizeof(peak));
		if (utf8_columns(peak) > room)
			continue;
		view_text_right(pane, x, 0, room, VIEW_DIM, peak);
		return;
	}
}

/* Draw the whole program on one row; brackets enclose the window. */
static void liveness_draw_overview(const struct view_liveness *live, struct view_pane *pane)
{
	const int64_t steps = live->extent.to - live->extent.from;
	const int left = liveness_left(live);
	int from, to;

	view_text(pane, 1, 0, VIEW_DIM, left > 10 ? "all steps" : "all");
	view_chart_spark(pane, left, 0, live->overview_count, STYLE_REST, live->overview,
			 live->overview_count);
	if (view__live_shows_all(live) || live->overview_count < 2)
		return;
	from = view_share_cell(steps, live->overview_count, live->window.from - live->extent.from);
	to = view_share_cell(steps, live->overview_count, live->window.to - 1 - live->extent.from);
	from = min(live->overview_count - 2, from);
	view_put(pane, left + from, 0, VIEW_KEY, '[');
	view_put(pane, left + (to > from ? to : from + 1), 0, VIEW_KEY, ']');
}

/* ---- the chart ------------------------------------------------------------------------------- */

static void liveness_draw_band(const struct view_liveness *live, int at, bool whole,
			       struct view_pane *chart)
{
	const struct view_live_band *band = &live->bands[at];
	const struct report_axis x = {.low = (double)live->window.from,
				      .high = (double)live->window.to - STEP_END,
				      .quantity = REPORT_NUMBER,
				      .title = "program step"};
	struct view_pane pane = view_pane_sub(chart, band->rect);
	struct view_pane plot = view_chart_axes(&pane, at == live->band_count - 1 ? &x : NULL,
						&band->y, live->scale);
	struct view_series series[2];
	int count = 0;

	if (band->rest[0]) {
		if (live->always_live)
			series[count++] = (struct view_series){.values = band->always[0],
							       .count = live->points,
							       .style = STYLE_ALWAYS};
		series[count++] = (struct view_series){
			.values = band->rest[0], .count = live->points, .style = STYLE_REST};
		view_chart_stack(&plot, series, count, &band->y);
	}
	if (band->line) {
		series[0] = (struct view_series){
			.values = band->line, .count = 2 * live->plot, .style = VIEW_TARGET};
		view_chart_line(&plot, series, NULL, &band->y);
	}
	if (isfinite(band->limit)) {
		const double part = report_axis_part(&band->y, band->limit);
		const int y = (int)lrint((1 - part) * (plot.rect.height - 1));

		view_glyphs(&plot, 0, y, VIEW_BAD, VIEW_GLYPH_HORIZONTAL, plot.rect.width);
		view_text(&plot, 1, y, VIEW_BAD, " limit ");
	}
	if (!whole) {
		int column;

		/* Mark selected steps at the top of the chart, and the cursor's with a vertical
		 * line. */
		for (int i = 0; i < live->mark_count; i++) {
			column = liveness_cell(live, live->marks[i]);
			if (column >= 0)
				view_put(&plot, column, 0, VIEW_SELECTED, 'x');
		}
		column = liveness_cell(live, live->cursor);
		if (column >= 0)
			view_chart_marker(&plot, column);
	}
	if (live->ipu == VIEW_LIVE_ALL)
		view_textf(&plot, plot.rect.width - 8, 0, VIEW_BOLD, "IPU %lld",
			   (long long)band->ipu);
}

/* ---- below the chart ------------------------------------------------------------------------- */

/* Draw the lifetime of the variable under the cursor, as far as it is in the window. */
static void liveness_draw_life(const struct view_liveness *live, struct view_pane *pane)
{
	const int64_t first = view_grid_int(&live->grid, "first_program_step");
	const int64_t last = view_grid_int(&live->grid, "last_program_step");
	const int64_t always = view_grid_int(&live->grid, "always_live");
	const int left = liveness_left(live);
	int from = 0, to = live->plot - 1;

	if (live->show != VIEW_LIVE_VARIABLES || always == IPS_NULL)
		return;
	view_text(pane, 1, 0, VIEW_DIM, left > 9 ? "lifetime" : "life");
	if (!always && first != IPS_NULL && last != IPS_NULL) {
		if (last < live->window.from || first >= live->window.to)
			return;
		if (first >= live->window.from)
			from = liveness_cell(live, first);
		if (last < live->window.to - 1)
			to = liveness_cell(live, last + 1) - 1;
	}
	view_glyphs(pane, left + from, 0, VIEW_KEY, VIEW_GLYPH_WINDOW,
		    to > from ? to - from + 1 : 1);
}

static void liveness_compared_text(const struct view_liveness *live, char *out, size_t size)
{
	const int64_t source = live->facts[0].always + live->facts[0].rest,
		      target = live->facts[1].always + live->facts[1].rest,
		      most = max(source, target);
	char a[FMT_SIZE], b[FMT_SIZE], c[FMT_SIZE], part[FMT_SIZE];

	if (!live->facts[0].known || !live->facts[1].known || most == 0)
		snprintf(out, size, " Source %s, Target %s ",
			 live->facts[0].known ? liveness_bytes_text(source, a) : "-",
			 live->facts[1].known ? liveness_bytes_text(target, b) : "-");
	else
		snprintf(
			out, size, " Source %s, Target %s, Diff %s%s (%s) ",
			liveness_bytes_text(source, a), liveness_bytes_text(target, b),
			target < source ? "-" : "+",
			liveness_bytes_text(target < source ? source - target : target - source, c),
			fmt_percent(part, fabs((double)(target - source)) / (double)most));
}

/* @brief: without the sum, which the table's total has, too. */
static void liveness_facts_text(const struct view_liveness *live, bool brief, char *out,
				size_t size)
{
	const struct view_live_facts *facts = &live->facts[0];
	char all[FMT_SIZE], always[FMT_SIZE], rest[FMT_SIZE];

	if (live->compared)
		liveness_compared_text(live, out, size);
	else if (!facts->known)
		snprintf(out, size, " nothing ");
	else
		snprintf(out, size, " %s%s%s always live + %s not ",
			 brief ? "" : liveness_bytes_text(facts->always + facts->rest, all),
			 brief ? "" : " = ", liveness_bytes_text(facts->always, always),
			 liveness_bytes_text(facts->rest, rest));
}

static const char *liveness_step_bytes_text(const struct view_liveness *live, int report,
					    int64_t ipu, char out[FMT_SIZE])
{
	const struct view_live_step *at =
		view__live_at(view__live_curve(live, report, ipu), live->cursor);

	return at ? liveness_bytes_text(view__live_all(at), out) : "-";
}

/* Each IPU numbers the steps of its own program, so bytes at equal numbers are not live at the same
 * time, and there is no sum. Show only complete numbers, of the IPUs that fit. */
static void liveness_draw_each(const struct view_liveness *live, struct view_pane *pane, int x)
{
	char text[3 * FMT_SIZE], source[FMT_SIZE], target[FMT_SIZE];

	x += view_text_cut(pane, x, 0, pane->rect.width - x - 1, VIEW_NORMAL, " of each IPU's own");
	for (int b = 0; b < live->band_count; b++) {
		const int64_t ipu = live->bands[b].ipu;

		snprintf(text, sizeof(text),
			 live->compared ? "%s IPU %lld S %s T %s" : "%s IPU %lld %s", b ? "," : ":",
			 (long long)ipu, liveness_step_bytes_text(live, 0, ipu, source),
			 liveness_step_bytes_text(live, 1, ipu, target));
		if (x + utf8_columns(text) + 2 > pane->rect.width)
			break;
		x += view_text(pane, x, 0, VIEW_NORMAL, text);
	}
	view_text_cut(pane, x, 0, pane->rect.width - x - 1, VIEW_NORMAL, " ");
}

static void liveness_draw_heading(const struct view_liveness *live, struct view_pane *pane)
{
	const int width = pane->rect.width;
	char text[VIEW_PLACE_NAME + 4], program[VIEW_PLACE_NAME + 4];
	int x = 2;

	view_glyphs(pane, 0, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, width);
	/* On narrow screens the program's name needs the room. */
	snprintf(text, sizeof(text), width < HEADING_WHOLE ? " at %lld " : " program step %lld ",
		 (long long)live->cursor);
	x += view_text_cut(pane, x, 0, width - x - 1, VIEW_BOLD, text);
	if (live->ipu == VIEW_LIVE_ALL) {
		liveness_draw_each(live, pane, x - 1);
		return;
	}
	snprintf(program, sizeof(program), " %s ", live->program);
	liveness_facts_text(live, false, text, sizeof(text));
	if (x + utf8_columns(text) + utf8_columns(program) + 2 > width)
		liveness_facts_text(live, true, text, sizeof(text));
	x += view_text_cut(pane, x, 0, width - x - 1, VIEW_NORMAL, text);
	if (live->program[0] && x + PROGRAM_LEAST < width)
		view_text_middle(pane, x + 1, 0, width - x - 2, VIEW_DIM, program);
}

void view__live_draw(const void *state, const struct view_context *context, struct view_pane *pane)
{
	const struct view_liveness *live = state;
	struct view_pane part;

	if (live->ipu_count == 0) {
		view_nothing(pane, "No liveness has been recorded:",
			     "the run had no simulated device, or its plan is not written yet.",
			     context->source->none);
		return;
	}
	part = view_pane_sub(pane, live->areas.legend);
	liveness_draw_legend(live, &part);
	part = view_pane_sub(pane, live->areas.overview);
	liveness_draw_overview(live, &part);
	part = view_pane_sub(pane, live->areas.chart);
	for (int b = 0; b < live->band_count; b++)
		liveness_draw_band(live, b, context->whole, &part);
	part = view_pane_sub(pane, live->areas.life);
	liveness_draw_life(live, &part);
	part = view_pane_sub(pane, live->areas.heading);
	liveness_draw_heading(live, &part);
	if (live->areas.table.height > 0) {
		const struct view_rect table = live->areas.table;
		const int used = 1 + (int)min(live->grid.count, table.height);
		struct view_pane below =
			view_pane_sub(pane, (struct view_rect){table.x, table.y + used, table.width,
							       table.height - used});

		/* If rows remain below the table, show the cut cells of the cursor's row there. */
		view_grid_draw(&live->grid, pane, !context->whole);
		if (!context->whole && live->grid.count > 0 && view_grid_is_cut(&live->grid))
			view_grid_draw_whole(&live->grid, &below);
	}
}
