/*
 * Drawing histograms over the run as heat maps: time from left to right, values upwards; of two
 * reports one beside or above the other.
 *
 * Threading: the terminal's thread. Nothing is loaded here.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <math.h>
#include <stdio.h>

#include "viewer/draw/view_heat.h"

#define LABEL_WIDTH 11

static struct view_pane take_row(struct view_rect *area, struct view_canvas *canvas, bool bottom)
{
	struct view_rect row = *area;

	row.height = area->height > 0;
	if (bottom)
		row.y += area->height - row.height;
	else
		area->y += row.height;
	area->height -= row.height;
	return view_pane_at(canvas, row);
}

/* ---- one map --------------------------------------------------------------------------------- */

static void draw_label(const struct view_tensor_histogram *h, int at, struct view_pane *pane, int y)
{
	const int bin = h->bin[at];
	char text[32];

	if (bin == 257)
		snprintf(text, sizeof(text), "NaN");
	else if (bin == 256 || bin == -256)
		snprintf(text, sizeof(text), bin > 0 ? "Inf" : "-Inf");
	else
		snprintf(text, sizeof(text), "%.3g", bin >= 0 ? h->low[at] : h->high[at]);
	view_text_right(pane, 0, y, LABEL_WIDTH - 1, bin > 255 || bin == -256 ? VIEW_BAD : VIEW_DIM,
			text);
}

/* A label wherever another bin begins and the label above has left room. */
static void draw_labels(const struct view_tensor_histogram *h, const struct view_pane *map,
			struct view_pane *pane)
{
	int last = -1, above = -1;

	for (int y = 0; y < map->rect.height; y++) {
		int column, at;

		if (!view_heat_find(map, h->columns, h->bins, 0, y, &column, &at) || at == last)
			continue;
		if (above >= 0 && y - above < 2 && h->bin[at] > -256 && h->bin[at] < 256)
			continue;
		draw_label(h, at, pane, y);
		above = y;
		last = at;
	}
}

static struct view_axis colours(const struct view_tensor_histogram *h)
{
	return (struct view_axis){.low = 1,
				  .high = fmax(h->greatest, 2),
				  .logarithmic = true,
				  .quantity = REPORT_COUNT};
}

static void draw_map(const struct view_tensors *screen, const struct view_context *context,
		     int side, struct view_rect area, struct view_canvas *canvas)
{
	const struct view_tensor_histogram *h = &screen->histogram;
	const struct view_axis scale = colours(h);
	const int column = view__histogram_column(screen, side);
	struct view_pane labels = view_pane_at(canvas, area), map;

	area.x += LABEL_WIDTH;
	area.width -= LABEL_WIDTH + 1;
	map = view_pane_at(canvas, area);
	view_heat_map(&map, h->side[side].count, h->columns, h->bins, &scale);
	draw_labels(h, &map, &labels);
	if (screen->opened && !context->whole && column >= 0)
		view_chart_marker(&map, view_heat_place(&map, h->columns, h->bins, column, 0).x);
}

/* ---- what they are of ------------------------------------------------------------------------ */

/* "steps 0 to 39, 40 histograms" */
static void tell_side(const struct view_tensor_histograms *side, char *out, size_t size)
{
	const bool steps = side->step[0] != IPS_NULL && side->last_step != IPS_NULL;
	const int64_t first = steps ? side->step[0] : side->update[0];
	const int64_t last = steps ? side->last_step : side->last_update;
	char count[FMT_SIZE];
	int used = 0;

	if (first != IPS_NULL && last != IPS_NULL)
		used = snprintf(out, size, "%s %lld to %lld, ", steps ? "steps" : "weight updates",
				(long long)first, (long long)last);
	used += snprintf(out + used, size - (size_t)used, "%s histogram%s",
			 fmt_count(count, side->found), side->found == 1 ? "" : "s");
	if (side->looked < side->all)
		snprintf(out + used, size - (size_t)used, " (%.0f %% looked at)",
			 100.0 * (double)side->looked / (double)side->all);
}

static const char *tell_none(const struct view_tensors *screen,
			     const struct view_tensor_histograms *side)
{
	if (side->looked < side->all)
		return "None of its histograms is among the rows looked at.";
	return screen->replica >= 0 ? "No histograms of it are this replica's: i shows another."
				    : "No histograms were kept of it (outfeed.capture histogram).";
}

static void draw_title(const struct view_tensors *screen, const struct view_context *context,
		       int side, struct view_pane *pane)
{
	const struct view_tensor_histograms *h = &screen->histogram.side[side];
	const struct view_source *report = side ? context->target : context->source;
	char text[160];
	int x = 1 +
		view_text(pane, 1, 0, side ? VIEW_TARGET : VIEW_SOURCE, side ? "Target" : "Source");

	/* The run's name, where it leaves room for what is said of it. */
	if (pane->rect.width >= 60)
		x += 1 +
		     view_text_cut(pane, x + 1, 0, pane->rect.width / 3, VIEW_BOLD, report->name);
	x += view_text(pane, x, 0, VIEW_DIM, ":");
	if (h->columns > 0)
		tell_side(h, text, sizeof(text));
	else
		snprintf(text, sizeof(text), "%s", tell_none(screen, h));
	view_text_cut(pane, x + 1, 0, pane->rect.width - x - 2, VIEW_DIM, text);
}

static void draw_legend(const struct view_tensors *screen, const struct view_context *context,
			struct view_pane *pane)
{
	const struct view_axis scale = colours(&screen->histogram);
	const int width = pane->rect.width - LABEL_WIDTH;
	char text[160] = "elements of a bin";
	int used = 0;

	if (!context->target)
		tell_side(&screen->histogram.side[0], text, sizeof(text));
	/* Of two reports the titles say the rest: where there is no room, the shades go first. */
	if (!context->target || width > 48)
		used = view_text_cut(pane, LABEL_WIDTH, 0, width, VIEW_DIM, text) + 2;
	if (used < width)
		view_heat_legend(pane, LABEL_WIDTH + used, 0, width - used, &scale);
}

/* ---- both ------------------------------------------------------------------------------------ */

static void draw_sides(const struct view_tensors *screen, const struct view_context *context,
		       struct view_rect area, struct view_canvas *canvas)
{
	for (int side = 0; side < VIEW_TENSORS_SIDES; side++) {
		struct view_rect share = view__tensors_share(area, VIEW_TENSORS_SIDES, side);
		struct view_pane title = take_row(&share, canvas, false);

		draw_title(screen, context, side, &title);
		if (screen->histogram.side[side].columns > 0 && share.height > 0)
			draw_map(screen, context, side, share, canvas);
	}
}

void view__histogram_draw(const struct view_tensors *screen, const struct view_context *context,
			  struct view_pane *pane)
{
	const struct view_tensor_histogram *h = &screen->histogram;
	struct view_canvas *canvas = pane->canvas;
	struct view_rect area = pane->rect;
	struct view_pane row;

	if (h->columns == 0 || h->bins == 0) {
		view_text_cut(pane, 1, 0, pane->rect.width - 2, VIEW_DIM,
			      tell_none(screen, &h->side[0]));
		return;
	}
	if (context->target && context->differ && !h->differs) {
		view_text_cut(pane, 1, 0, pane->rect.width - 2, VIEW_DIM,
			      "Nothing differs: D shows all.");
		return;
	}
	if (screen->opened && !context->whole && area.height > 4) {
		row = take_row(&area, canvas, false);
		view__curve_readout(screen, context, &row);
	}
	row = take_row(&area, canvas, true);
	draw_legend(screen, context, &row);
	if (context->target)
		draw_sides(screen, context, area, canvas);
	else
		draw_map(screen, context, 0, area, canvas);
}
