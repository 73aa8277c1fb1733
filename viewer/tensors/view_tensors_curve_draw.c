/*
 * Drawing a statistic over the run: a line of each report, or of each replica, marks where numbers
 * were bad, and what the cursor is on.
 *
 * Threading: the terminal's thread. Nothing is loaded here.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <math.h>
#include <stdio.h>

#define NAMES_FROM 76 /* columns that have room for "Source", not "S" */

/* ---- what the cursor is on ------------------------------------------------------------------- */

static int draw_moment(const struct view_tensors *screen, struct view_pane *pane)
{
	const struct report_tensor_row *row = view__curve_row(screen);
	const double at = screen->curve[view__curve_side(screen)].at[screen->cursor];
	int x = view_textf(pane, 1, 0, VIEW_BOLD, "%s %.0f", screen->x.title, at);

	/* Where rows of several are shown: of whom this one is. */
	if (screen->replica < 0 && screen->replicas > 1)
		x += view_textf(pane, 1 + x, 0, VIEW_BOLD, ", replica %lld",
				(long long)row->replica);
	return 1 + x + view_text(pane, 1 + x, 0, VIEW_BOLD, ": ");
}

static int draw_bad_count(const struct report_tensor_row *row, int x, struct view_pane *pane)
{
	char bad[FMT_SIZE];

	if (row->n_bad <= 0)
		return 0;
	return view_textf(pane, x, 0, VIEW_BAD, ", %s NaN or Inf", fmt_count(bad, row->n_bad));
}

/* "+0.012 (3.1 %)": the share is of the larger of the two, as in tables. */
static int draw_diff(double source, double target, int x, struct view_pane *pane, bool wide)
{
	const double diff = target - source, larger = fmax(fabs(source), fabs(target));
	char number[FMT_SIZE], share[FMT_SIZE];
	int used = view_text(pane, x, 0, VIEW_DIM, wide ? "Diff " : "D ");

	if (isnan(diff))
		return used + view_text(pane, x + used, 0, VIEW_BOLD, "-");
	used += view_textf(pane, x + used, 0, diff < 0 || diff > 0 ? VIEW_WARN : VIEW_DIM, "%s%s",
			   diff > 0 ? "+" : "", fmt_real(number, diff));
	if (wide && (diff < 0 || diff > 0))
		used += view_textf(pane, x + used, 0, VIEW_DIM, " (%s)",
				   fmt_percent(share, fabs(diff) / larger));
	return used;
}

static int draw_side(const struct report_tensor_row *row, enum view_style style, const char *name,
		     int x, struct view_pane *pane)
{
	char value[FMT_SIZE];
	int used = view_text(pane, x, 0, style, name);

	if (!row)
		return used + view_text(pane, x + used, 0, VIEW_DIM, " -  ");
	used += view_textf(pane, x + used, 0, VIEW_BOLD, " %s", fmt_real(value, row->value));
	used += draw_bad_count(row, x + used, pane);
	return used + 2;
}

int view__curve_readout(const struct view_tensors *screen, const struct view_context *context,
			struct view_pane *pane)
{
	const struct report_tensor_row *row = view__curve_row(screen);
	const struct report_tensor_row *partner = view__curve_partner(screen);
	const bool wide = pane->rect.width >= NAMES_FROM, target = view__curve_side(screen) == 1;
	char value[FMT_SIZE];
	int x;

	if (!screen->opened || !row || context->whole)
		return 1;
	x = draw_moment(screen, pane);
	if (!context->target || wide)
		x += view_textf(pane, x, 0, VIEW_BOLD, "%s ", view__statistic(screen));
	if (!context->target) {
		x += view_text(pane, x, 0, VIEW_BOLD, fmt_real(value, row->value));
		return x + draw_bad_count(row, x, pane) + 2;
	}
	x += draw_side(target ? NULL : row, VIEW_SOURCE, wide ? "Source" : "S", x, pane);
	x += draw_side(target ? row : partner, VIEW_TARGET, wide ? "Target" : "T", x, pane);
	if (partner)
		x += draw_diff(row->value, partner->value, x, pane, wide) + 2;
	return x;
}

/* ---- the legend ------------------------------------------------------------------------------ */

static enum view_style line_style(const struct view_tensors *screen,
				  const struct view_context *context, int side, int line)
{
	if (context->target)
		return side == 0 ? VIEW_SOURCE : VIEW_TARGET;
	if (screen->curve[side].line_count < 2)
		return VIEW_CURVE;
	return (enum view_style)(VIEW_SERIES_1 + line % VIEW_SERIES);
}

/* The reports where there are two, or else the replicas where there are several. */
static int draw_names(const struct view_tensors *screen, const struct view_context *context, int x,
		      struct view_pane *pane)
{
	const struct view_tensor_curve *curve = &screen->curve[0];
	const int width = pane->rect.width, first = x;

	if (context->target) {
		x += view_chart_key(pane, x, 0, width - x, VIEW_SOURCE, "Source");
		x += view_chart_key(pane, x, 0, width - x, VIEW_TARGET, "Target");
		return x - first;
	}
	for (int i = 0; i < curve->line_count && curve->line_count > 1; i++) {
		char name[32];

		snprintf(name, sizeof(name), "replica %lld", (long long)curve->lines[i].replica);
		x += view_chart_key(pane, x, 0, width - x, line_style(screen, context, 0, i), name);
	}
	return x - first;
}

static void draw_legend(const struct view_tensors *screen, const struct view_context *context,
			struct view_pane *pane)
{
	const struct report_tensor_rows *rows = &screen->curve[0].rows;
	char all[FMT_SIZE], some[FMT_SIZE], text[2 * FMT_SIZE + 32];
	int x = view__curve_readout(screen, context, pane);

	x += draw_names(screen, context, x, pane);
	if (context->target)
		snprintf(text, sizeof(text), "%s and %s rows", fmt_count(some, rows->count),
			 fmt_count(all, screen->curve[1].rows.count));
	else if (rows->looked < rows->all || screen->replica >= 0)
		snprintf(text, sizeof(text), "%s of %s rows", fmt_count(some, rows->count),
			 fmt_count(all, screen->row_count));
	else
		snprintf(text, sizeof(text), "all %s rows", fmt_count(some, rows->count));
	if (x + view_text_width(text) <= pane->rect.width)
		view_text(pane, x, 0, VIEW_DIM, text);
}

/* ---- the lines ------------------------------------------------------------------------------- */

static void draw_bad(const struct view_tensors *screen, const struct view_tensor_curve *curve,
		     struct view_pane *plot)
{
	for (int i = 0; i < curve->rows.count; i++) {
		const double part = view_axis_part(&screen->x, curve->at[i]);

		if (curve->rows.row[i].n_bad > 0 || isinf(curve->values[i]))
			view_put(plot, (int)(part * (plot->rect.width - 1)), plot->rect.height - 1,
				 VIEW_BAD, '!');
	}
}

static void draw_lines(const struct view_tensors *screen, const struct view_context *context,
		       int side, struct view_pane *plot)
{
	const struct view_tensor_curve *curve = &screen->curve[side];

	for (int i = 0; i < curve->line_count; i++) {
		const struct view_tensor_line *line = &curve->lines[i];
		const struct view_series series = {curve->line_values + line->first,
						   curve->line_at + line->first, line->count,
						   line_style(screen, context, side, i)};

		view_chart_line(plot, &series, &screen->x, &screen->y);
	}
}

static bool draw_nothing(const struct view_tensors *screen, struct view_pane *pane)
{
	const int width = pane->rect.width - 2;

	if (screen->curve[0].rows.count + screen->curve[1].rows.count == 0) {
		if (screen->replica >= 0)
			view_text_cut(pane, 1, 0, width, VIEW_DIM,
				      "No rows of it are this replica's: i shows another.");
		else
			view_text_cut(pane, 1, 0, width, VIEW_DIM,
				      screen->row_count > 0
					      ? "None of its rows is among those looked at."
					      : "No rows are kept of it: only its health is "
						"watched.");
		return true;
	}
	if (!screen->known)
		view_textf(pane, 1, 0, VIEW_DIM,
			   "Its rows do not say %s: s shows another statistic.",
			   view__statistic(screen));
	return !screen->known;
}

void view__curve_draw(const struct view_tensors *screen, const struct view_context *context,
		      struct view_pane *pane)
{
	struct view_rect area = pane->rect;
	struct view_pane chart, plot;

	if (draw_nothing(screen, pane))
		return;
	draw_legend(screen, context, pane);
	area.y++;
	area.height--;
	chart = view_pane_at(pane->canvas, area);
	plot = view_chart_axes(&chart, &screen->x, &screen->y, 0);
	for (int side = 0; side < VIEW_TENSORS_SIDES; side++)
		draw_lines(screen, context, side, &plot);
	for (int side = 0; side < VIEW_TENSORS_SIDES; side++)
		draw_bad(screen, &screen->curve[side], &plot);
	if (screen->opened && !context->whole && view__curve_row(screen))
		view_chart_marker(&plot,
				  view__curve_column(screen, screen->cursor, plot.rect.width));
}
