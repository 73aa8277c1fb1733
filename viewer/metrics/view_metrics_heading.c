/*
 * The line above the curves of a metric: what it is, the values under the cursor, its trend.
 *
 * Threading: where screens draw. Ownership: none.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "viewer/metrics/view_metrics_internal.h"
#include "viewer/metrics/view_metrics_trend.h"

#define NAMES_FROM 76 /* columns that have room for "Source", not "S" */

static const char *view_cell(const struct view_grid *grid, const char *column)
{
	const struct report_cell *cell = view_grid_cell(grid, column);

	return cell && cell->type == PROF_TEXT ? cell->text : "-";
}

/* ---- the values under the cursor ------------------------------------------------------------- */

struct view_metrics_value {
	enum view_style style;
	const char *name;
	bool finite;
	char text[2 * FMT_SIZE + 8]; /* "0.25", of another moment "0.25 at 12 ms", "-" */
};

static bool view_is_compared(const struct view_metrics *screen)
{
	return screen->curves[VIEW_METRICS_TARGET].recorded > 0;
}

static void view_value_text(const struct view_metrics *screen, int side, double moment,
			    struct view_metrics_value *out)
{
	const struct view_metric_point *point;
	char text[FMT_SIZE];
	double at;

	point = view__metrics_point(screen, side, &at);
	out->finite = !point || isfinite(point->value);
	if (!point)
		snprintf(out->text, sizeof(out->text), "-");
	else if (screen->areas.heading.width >= NAMES_FROM || !view_is_compared(screen))
		snprintf(out->text, sizeof(out->text), "%s", fmt_real(text, point->value));
	else
		snprintf(out->text, sizeof(out->text), "%.4g", point->value);
	if (point && (at < moment || at > moment)) {
		const size_t used = strlen(out->text);

		snprintf(out->text + used, sizeof(out->text) - used, " at %s",
			 view_axis_text(&screen->axis_x, at, text));
	}
}

/* Those that there are: of one report, or of two. Returns how many. */
static int view_values(const struct view_metrics *screen, double moment,
		       struct view_metrics_value out[VIEW_METRICS_SIDES])
{
	static const char *const names[VIEW_METRICS_SIDES] = {"Source", "Target"};
	static const char *const letters[VIEW_METRICS_SIDES] = {"S", "T"};
	static const enum view_style styles[VIEW_METRICS_SIDES] = {VIEW_SOURCE, VIEW_TARGET};
	const bool wide = screen->areas.heading.width >= NAMES_FROM;
	const int count = view_is_compared(screen) ? VIEW_METRICS_SIDES : 1;

	for (int side = 0; side < count; side++) {
		out[side].style = styles[side];
		out[side].name = wide ? names[side] : letters[side];
		view_value_text(screen, side, moment, &out[side]);
	}
	return count;
}

static int view_draw_values(const struct view_metrics *screen, double moment,
			    struct view_pane *pane, int x)
{
	struct view_metrics_value values[VIEW_METRICS_SIDES];
	const int count = view_values(screen, moment, values);

	for (int i = 0; i < count; i++) {
		const enum view_style style = values[i].finite ? VIEW_BOLD : VIEW_BAD;

		/* A blank less than beside other names: the value belongs to its own. */
		if (count > 1 && x < pane->rect.width)
			x += view_chart_key(pane, x, 0, pane->rect.width - x, values[i].style,
					    values[i].name) -
			     1;
		x += view_textf(pane, x, 0, style, "%s ", values[i].text);
	}
	return x;
}

static int view_values_width(const struct view_metrics *screen, double moment)
{
	struct view_metrics_value values[VIEW_METRICS_SIDES];
	const int count = view_values(screen, moment, values);
	int width = 0;

	for (int i = 0; i < count; i++) {
		width += view_text_width(values[i].text) + 1;
		width += count > 1 ? view_text_width(values[i].name) + 3 : 0;
	}
	return width;
}

/* ---- the trend ------------------------------------------------------------------------------- */

/* Which way the metric goes at its end, at the right edge; nothing where there is no room. */
static void view_draw_trend(const struct view_metrics *screen, struct view_pane *pane, int x)
{
	static const char *const names[VIEW_METRICS_SIDES] = {"Source ", "Target "};
	char line[160] = "", before[FMT_SIZE], last[FMT_SIZE];

	for (int side = 0; side < VIEW_METRICS_SIDES; side++) {
		const struct view_metric *metric =
			view__metrics_at(screen, side, screen->grid.order[screen->grid.at]);
		const struct view_trend trend =
			metric ? view_metrics_trend(metric) : (struct view_trend){0};
		const size_t used = strlen(line);

		if (trend.way == VIEW_TREND_UNKNOWN)
			continue;
		if (view_is_compared(screen))
			snprintf(line + used, sizeof(line) - used, "%s%s%s", used ? ", " : " ",
				 names[side], view_trend_text(trend.way));
		else
			snprintf(line, sizeof(line), " %s, mean from %s to %s",
				 view_trend_text(trend.way), fmt_real(before, trend.before),
				 fmt_real(last, trend.last));
	}
	if (!line[0] || x + view_text_width(line) + 4 > pane->rect.width)
		return;
	strcat(line, " ");
	view_text_right(pane, x, 0, pane->rect.width - x - 1, VIEW_BOLD, line);
}

/* ---- the line -------------------------------------------------------------------------------- */

/* What the curve is of: as much of it as fits into @room. */
static void view_what(const struct view_metrics *screen, int room, char *out, size_t size)
{
	const char *metric = view_cell(&screen->grid, "metric");
	const char *mode = view_cell(&screen->grid, "mode");

	snprintf(out, size, " %s, %s, by %s: ", metric, mode, view_cell(&screen->grid, "per"));
	if (view_text_width(out) > room)
		snprintf(out, size, " %s, %s, ", metric, mode);
	if (view_text_width(out) > room)
		snprintf(out, size, " %s, ", metric);
	if (view_text_width(out) > room)
		snprintf(out, size, " ");
}

void view__metrics_heading(const struct view_metrics *screen, struct view_pane *pane)
{
	char what[2 * VIEW_PLACE_NAME], moment[FMT_SIZE + 32] = "", text[FMT_SIZE];
	double at = 0;
	const bool any = view__metrics_moment(screen, &at);
	int x = 1, room = pane->rect.width - x;

	view_glyphs(pane, 0, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, 1);
	if (any) {
		snprintf(moment, sizeof(moment),
			 "%s%s %s: ", screen->x == VIEW_METRICS_TIME ? "host " : "",
			 screen->axis_x.title, view_axis_text(&screen->axis_x, at, text));
		room -= view_text_width(moment) + view_values_width(screen, at);
	}
	view_what(screen, room, what, sizeof(what));
	x += view_text_cut(pane, x, 0, pane->rect.width - 2, VIEW_BOLD, what);
	if (any) {
		x += view_text(pane, x, 0, VIEW_DIM, moment);
		x = view_draw_values(screen, at, pane, x);
	}
	view_glyphs(pane, x, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, pane->rect.width - x);
	view_draw_trend(screen, pane, x);
}
