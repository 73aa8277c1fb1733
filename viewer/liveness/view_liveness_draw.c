/*
 * Drawing live bytes: the chart of each IPU, the whole program above, the step's facts, the
 * lifetime of the variable under the cursor.
 *
 * Threading: the terminal's thread. Ownership: draws what the last load made.
 */
#include <math.h>
#include <stdio.h>

#include "common/fmt.h"
#include "common/minmax.h"
#include "common/str.h"
#include "viewer/draw/view_share.h"
#include "viewer/liveness/view_liveness_internal.h"

#define STYLE_ALWAYS  VIEW_SERIES_1
#define STYLE_REST    VIEW_SERIES_2
#define LABEL_FROM    70   /* columns */
#define PROGRAM_LEAST 20   /* less of a name tells nothing */
#define STEP_END      0.01 /* a step's tick is where it begins; the last has a width, too */

static const char *view_bytes(int64_t bytes, char out[FMT_SIZE])
{
	return fmt_bytes(out, bytes > 0 ? (uint64_t)bytes : 0);
}

/* Columns left of the chart itself, in all that stands over and under it. */
static int view_live_left(const struct view_liveness *live)
{
	return live->areas.chart.width - live->plot;
}

/* The first cell of the plot that @step is drawn in. */
static int view_live_cell(const struct view_liveness *live, int64_t step)
{
	const int point = view__live_point_of(live, step);

	return point < 0 ? -1 : view_share_cell(live->points, live->plot, point);
}

/* ---- above the chart ------------------------------------------------------------------------- */

/* Both reports' peaks; @brief: of each what is needed to tell them. */
static void view_peaks_text(const struct view_liveness *live, bool brief, char *out, size_t size)
{
	char text[2][FMT_SIZE + 32], bytes[FMT_SIZE];

	for (int r = 0; r < 2; r++) {
		const struct view_live_curve *curve =
			view__live_curve(&live->report[r], live->bands[0].ipu);
		const struct view_live_step *peak = curve ? &curve->steps[curve->peak[1]] : NULL;

		str_copy(text[r], sizeof(text[r]), "-");
		if (peak)
			snprintf(text[r], sizeof(text[r]), "%s at %s%lld",
				 view_bytes(peak->always + peak->rest, bytes), brief ? "" : "step ",
				 (long long)peak->step);
	}
	snprintf(out, size, "peak %s %s, %s %s", brief ? "S" : "Source", text[0],
		 brief ? "T" : "Target", text[1]);
}

static void view_peak_text(const struct view_liveness *live, bool brief, char *out, size_t size)
{
	const struct view_live_curve *curve =
		view__live_curve(&live->report[0], live->bands[0].ipu);
	const struct view_live_step *peak = curve ? &curve->steps[curve->peak[1]] : NULL;
	char bytes[FMT_SIZE], limit[FMT_SIZE], part[FMT_SIZE];
	int64_t all;

	out[0] = '\0';
	if (!peak)
		return;
	all = peak->always + peak->rest;
	snprintf(out, size, "peak %s at step %lld", view_bytes(all, bytes), (long long)peak->step);
	if (!brief && curve->capacity > 0)
		snprintf(out, size, "peak %s at step %lld, %s of %s", bytes, (long long)peak->step,
			 fmt_percent(part, (double)all / (double)curve->capacity),
			 view_bytes(curve->capacity, limit));
}

static void view_draw_peak(const struct view_liveness *live, struct view_pane *pane, int from)
{
	const int room = pane->rect.width - from - 1;
	char text[160];

	for (int brief = 0; brief < 2 && live->band_count == 1; brief++) {
		(live->compared ? view_peaks_text : view_peak_text)(live, brief, text,
								    sizeof(text));
		if (view_text_width(text) > room)
			continue;
		view_text_right(pane, from, 0, room, VIEW_DIM, text);
		return;
	}
}

static void view_draw_legend(const struct view_liveness *live, struct view_pane *pane)
{
	const int width = pane->rect.width;
	const char *label = width >= LABEL_FROM ? " (simulated)" : "";
	char text[48];
	int x = 1;

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
	view_draw_peak(live, pane, x);
}

/* The whole program on one row; brackets hold the window. */
static void view_draw_overview(const struct view_liveness *live, struct view_pane *pane)
{
	const int64_t steps = live->extent.to - live->extent.from;
	const int left = view_live_left(live);
	int from, to;

	view_text(pane, 1, 0, VIEW_DIM, left > 10 ? "all steps" : "all");
	view_chart_spark(pane, left, 0, live->overview_count, STYLE_REST, live->overview,
			 live->overview_count);
	if ((live->window.from == live->extent.from && live->window.to == live->extent.to) ||
	    live->overview_count < 2)
		return;
	from = view_share_cell(steps, live->overview_count, live->window.from - live->extent.from);
	to = view_share_cell(steps, live->overview_count, live->window.to - 1 - live->extent.from);
	from = min(live->overview_count - 2, from);
	view_put(pane, left + from, 0, VIEW_KEY, '[');
	view_put(pane, left + (to > from ? to : from + 1), 0, VIEW_KEY, ']');
}

/* ---- the chart ------------------------------------------------------------------------------- */

static void view_draw_limit(const struct view_live_band *band, struct view_pane *plot)
{
	const double part = view_axis_part(&band->y, band->limit);
	const int y = (int)lrint((1 - part) * (plot->rect.height - 1));

	view_glyphs(plot, 0, y, VIEW_BAD, VIEW_GLYPH_HORIZONTAL, plot->rect.width);
	view_text(plot, 1, y, VIEW_BAD, " limit ");
}

static void view_draw_series(const struct view_liveness *live, const struct view_live_band *band,
			     struct view_pane *plot)
{
	struct view_series series[2];
	int count = 0;

	if (band->rest[0]) {
		if (live->always_live)
			series[count++] = (struct view_series){.values = band->always[0],
							       .count = live->points,
							       .style = STYLE_ALWAYS};
		series[count++] = (struct view_series){
			.values = band->rest[0], .count = live->points, .style = STYLE_REST};
		view_chart_stack(plot, series, count, &band->y);
	}
	if (band->line) {
		series[0] = (struct view_series){
			.values = band->line, .count = 2 * live->plot, .style = VIEW_TARGET};
		view_chart_line(plot, series, NULL, &band->y);
	}
	if (isfinite(band->limit))
		view_draw_limit(band, plot);
}

/* Selected steps and the cursor's, by marks at the top of the chart and a line down to the area. */
static void view_draw_marks(const struct view_liveness *live, struct view_pane *plot)
{
	int x;

	for (int i = 0; i < live->mark_count; i++) {
		x = view_live_cell(live, live->marks[i]);
		if (x >= 0)
			view_put(plot, x, 0, VIEW_SELECTED, 'x');
	}
	x = view_live_cell(live, live->cursor);
	if (x >= 0)
		view_chart_marker(plot, x);
}

static void view_draw_band(const struct view_liveness *live, int at, bool whole,
			   struct view_pane *chart)
{
	const struct view_live_band *band = &live->bands[at];
	const struct view_axis x = {.low = (double)live->window.from,
				    .high = (double)live->window.to - STEP_END,
				    .quantity = REPORT_NUMBER,
				    .title = "step"};
	struct view_pane pane = view_pane_sub(chart, band->rect);
	struct view_pane plot = view_chart_axes(&pane, at == live->band_count - 1 ? &x : NULL,
						&band->y, live->scale);

	view_draw_series(live, band, &plot);
	if (!whole)
		view_draw_marks(live, &plot);
	if (live->ipu == VIEW_LIVE_ALL)
		view_textf(&plot, plot.rect.width - 8, 0, VIEW_BOLD, "IPU %lld",
			   (long long)band->ipu);
}

/* ---- below the chart ------------------------------------------------------------------------- */

/* From when to when the variable under the cursor lives; what of it is in the window. */
static void view_draw_life(const struct view_liveness *live, struct view_pane *pane)
{
	const struct report_cell *first = view_grid_cell(&live->grid, "first_program_step");
	const struct report_cell *last = view_grid_cell(&live->grid, "last_program_step");
	const struct report_cell *always = view_grid_cell(&live->grid, "always_live");
	const int left = view_live_left(live);
	int from = 0, to = live->plot - 1;

	if (live->show != VIEW_LIVE_VARIABLES || !always || always->type != PROF_INT)
		return;
	view_text(pane, 1, 0, VIEW_DIM, left > 9 ? "lifetime" : "life");
	if (!always->integer && first && last && first->type == PROF_INT &&
	    last->type == PROF_INT) {
		if (last->integer < live->window.from || first->integer >= live->window.to)
			return;
		if (first->integer >= live->window.from)
			from = view_live_cell(live, first->integer);
		if (last->integer < live->window.to - 1)
			to = view_live_cell(live, last->integer + 1) - 1;
	}
	view_glyphs(pane, left + from, 0, VIEW_KEY, VIEW_GLYPH_WINDOW,
		    to > from ? to - from + 1 : 1);
}

static void view_compared_text(const struct view_liveness *live, char *out, size_t size)
{
	const int64_t source = live->facts[0].always + live->facts[0].rest,
		      target = live->facts[1].always + live->facts[1].rest,
		      most = max(source, target);
	char a[FMT_SIZE], b[FMT_SIZE], c[FMT_SIZE], part[FMT_SIZE];

	if (!live->facts[0].known || !live->facts[1].known || most == 0)
		snprintf(out, size, " Source %s, Target %s ",
			 live->facts[0].known ? view_bytes(source, a) : "-",
			 live->facts[1].known ? view_bytes(target, b) : "-");
	else
		snprintf(out, size, " Source %s, Target %s, Diff %s%s (%s) ", view_bytes(source, a),
			 view_bytes(target, b), target < source ? "-" : "+",
			 view_bytes(target < source ? source - target : target - source, c),
			 fmt_percent(part, fabs((double)(target - source)) / (double)most));
}

/* @brief: without the sum, which the last line but one has, too. */
static void view_facts_text(const struct view_liveness *live, bool brief, char *out, size_t size)
{
	const struct view_live_facts *facts = &live->facts[0];
	char all[FMT_SIZE], always[FMT_SIZE], rest[FMT_SIZE];

	if (live->compared)
		view_compared_text(live, out, size);
	else if (!facts->known)
		snprintf(out, size, " nothing ");
	else
		snprintf(out, size, " %s%s%s always live + %s not ",
			 brief ? "" : view_bytes(facts->always + facts->rest, all),
			 brief ? "" : " = ", view_bytes(facts->always, always),
			 view_bytes(facts->rest, rest));
}

static const char *view_at_step(const struct view_liveness *live, int report, int64_t ipu,
				char out[FMT_SIZE])
{
	const struct view_live_curve *curve = view__live_curve(&live->report[report], ipu);
	const struct view_live_step *at = curve ? view__live_at(curve, live->cursor) : NULL;

	return at ? view_bytes(at->always + at->rest, out) : "-";
}

/* Each IPU numbers the steps of its own program: what they hold at one number is not held at one
 * time, so there is no sum. Whole numbers of as many IPUs as there is room for. */
static void view_draw_each(const struct view_liveness *live, struct view_pane *pane, int x)
{
	char text[3 * FMT_SIZE], source[FMT_SIZE], target[FMT_SIZE];

	x += view_text_cut(pane, x, 0, pane->rect.width - x - 1, VIEW_NORMAL, " of each IPU's own");
	for (int b = 0; b < live->band_count; b++) {
		const int64_t ipu = live->bands[b].ipu;

		snprintf(text, sizeof(text),
			 live->compared ? "%s IPU %lld S %s T %s" : "%s IPU %lld %s", b ? "," : ":",
			 (long long)ipu, view_at_step(live, 0, ipu, source),
			 view_at_step(live, 1, ipu, target));
		if (x + view_text_width(text) + 2 > pane->rect.width)
			break;
		x += view_text(pane, x, 0, VIEW_NORMAL, text);
	}
	view_text_cut(pane, x, 0, pane->rect.width - x - 1, VIEW_NORMAL, " ");
}

static void view_draw_heading(const struct view_liveness *live, struct view_pane *pane)
{
	const int width = pane->rect.width;
	char text[VIEW_PLACE_NAME + 4], program[VIEW_PLACE_NAME + 4];
	int x = 2;

	view_glyphs(pane, 0, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, width);
	snprintf(text, sizeof(text), " step %lld ", (long long)live->cursor);
	x += view_text_cut(pane, x, 0, width - x - 1, VIEW_BOLD, text);
	if (live->ipu == VIEW_LIVE_ALL) {
		view_draw_each(live, pane, x - 1);
		return;
	}
	snprintf(program, sizeof(program), " %s ", live->program);
	view_facts_text(live, false, text, sizeof(text));
	if (x + view_text_width(text) + view_text_width(program) + 2 > width)
		view_facts_text(live, true, text, sizeof(text));
	x += view_text_cut(pane, x, 0, width - x - 1, VIEW_NORMAL, text);
	if (live->program[0] && x + PROGRAM_LEAST < width)
		view_text_middle(pane, x + 1, 0, width - x - 2, VIEW_DIM, program);
}

/* Where rows end before the pane does, the cursor's stands there whole. */
static void view_draw_table(const struct view_liveness *live, const struct view_context *context,
			    struct view_pane *pane)
{
	const int used = 1 + (int)min(live->grid.count, pane->rect.height);
	struct view_pane below = view_pane_sub(
		pane, (struct view_rect){0, used, pane->rect.width, pane->rect.height - used});

	view_grid_draw(&live->grid, pane, !context->whole);
	if (!context->whole && live->grid.count > 0 && view_grid_is_cut(&live->grid))
		view_grid_draw_whole(&live->grid, &below);
}

void view__live_draw(const void *state, const struct view_context *context, struct view_pane *pane)
{
	const struct view_liveness *live = state;
	struct view_pane part;

	if (live->ipu_count == 0) {
		view_nothing(pane, "No liveness has been recorded: the run had no",
			     "simulated device, or its plan is not written yet.");
		return;
	}
	part = view_pane_sub(pane, live->areas.legend);
	view_draw_legend(live, &part);
	part = view_pane_sub(pane, live->areas.overview);
	view_draw_overview(live, &part);
	part = view_pane_sub(pane, live->areas.chart);
	for (int b = 0; b < live->band_count; b++)
		view_draw_band(live, b, context->whole, &part);
	part = view_pane_sub(pane, live->areas.life);
	view_draw_life(live, &part);
	part = view_pane_sub(pane, live->areas.heading);
	view_draw_heading(live, &part);
	part = view_pane_sub(pane, live->areas.table);
	if (part.rect.height > 0)
		view_draw_table(live, context, &part);
}
