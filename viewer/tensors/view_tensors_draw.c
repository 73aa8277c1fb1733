/*
 * Drawing the screen Tensors: the table above, the selected tensor's curve below.
 *
 * Threading: one thread. Ownership: none; nothing is loaded here.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <math.h>
#include <stdio.h>

static const char *view_cell_text(const struct view_tensor *row, int column, char out[FMT_SIZE])
{
	const struct report_tensor *tensor = row->tensor;

	switch (column) {
	case VIEW_COLUMN_KEY:
		return tensor->key ? tensor->key : "-";
	case VIEW_COLUMN_KIND:
		return tensor->kind ? tensor->kind : "-";
	case VIEW_COLUMN_SHAPE:
		return tensor->shape ? tensor->shape : "-";
	case VIEW_COLUMN_STAGE:
		if (tensor->stage == INT64_MIN)
			return "-";
		snprintf(out, FMT_SIZE, "%lld", (long long)tensor->stage);
		return out;
	case VIEW_COLUMN_ROWS:
		return fmt_count(out, tensor->rows);
	case VIEW_COLUMN_NAN:
		return fmt_count(out, tensor->n_nan);
	case VIEW_COLUMN_INF:
		return fmt_count(out, tensor->n_inf);
	default:
		break;
	}
	if (!row->loaded || isnan(view__sort_number(row, column)))
		return "-";
	snprintf(out, FMT_SIZE, "%.4g", view__sort_number(row, column));
	return out;
}

static enum view_style view_cell_style(const struct view_tensor *row, int column)
{
	const struct report_tensor *tensor = row->tensor;

	if (column == VIEW_COLUMN_NAN)
		return tensor->n_nan > 0 ? VIEW_BAD : VIEW_DIM;
	if (column == VIEW_COLUMN_INF)
		return tensor->n_inf > 0 ? VIEW_BAD : VIEW_DIM;
	if (column == VIEW_COLUMN_KIND || column == VIEW_COLUMN_SHAPE ||
	    column == VIEW_COLUMN_STAGE)
		return VIEW_DIM;
	return VIEW_NORMAL;
}

static void view_draw_titles(const struct view_tensors *screen, struct view_pane *pane)
{
	const int width = pane->rect.width;
	char title[32];
	int x = 1;

	view_fill(pane, 0, 0, width, VIEW_BOLD);
	for (int column = 0; column < VIEW_COLUMNS; column++) {
		const int cells = view__column_width(column, width);
		const bool sorted = column == screen->sort;

		if (!view__column_shown(column, width))
			continue;
		snprintf(title, sizeof(title), "%s%s", view__columns[column].title,
			 !sorted           ? ""
			 : screen->reverse ? " ^"
					   : " v");
		if (view__columns[column].right)
			view_text_right(pane, x, 0, cells, sorted ? VIEW_KEY : VIEW_DIM, title);
		else
			view_text_cut(pane, x, 0, cells, sorted ? VIEW_KEY : VIEW_DIM, title);
		x += cells + 1;
	}
}

static void view_draw_tensor(const struct view_tensor *row, int y, bool selected,
			     struct view_pane *pane)
{
	const int width = pane->rect.width;
	char text[FMT_SIZE];
	int x = 1;

	if (selected) {
		view_fill(pane, 0, y, width, VIEW_CURSOR);
		view_glyphs(pane, 0, y, VIEW_CURSOR, VIEW_GLYPH_SELECT, 1);
	}
	for (int column = 0; column < VIEW_COLUMNS; column++) {
		const int cells = view__column_width(column, width);
		const enum view_style style = selected ? VIEW_CURSOR : view_cell_style(row, column);

		if (!view__column_shown(column, width))
			continue;
		if (column == VIEW_COLUMN_TREND)
			view_chart_spark(pane, x, y, cells, selected ? VIEW_CURSOR : VIEW_CURVE,
					 row->points, row->point_count);
		else if (view__columns[column].right)
			view_text_right(pane, x, y, cells, style,
					view_cell_text(row, column, text));
		else
			view_text_cut(pane, x, y, cells, style, view_cell_text(row, column, text));
		x += cells + 1;
	}
}

static struct view_pane view_sub(struct view_pane *pane, struct view_rect rect)
{
	rect.x += pane->rect.x;
	rect.y += pane->rect.y;
	return view_pane_at(pane->canvas, rect);
}

static void view_draw_heading(const struct view_tensors *screen, struct view_pane *pane)
{
	const struct report_tensor *tensor = &screen->tensors[screen->order[screen->at]];
	char text[256];
	int x = 2;

	view_glyphs(pane, 0, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, pane->rect.width);
	snprintf(text, sizeof(text), " %s of %s ", view__statistic(screen),
		 tensor->key ? tensor->key : "?");
	x += view_text_cut(pane, x, 0, pane->rect.width - 4, VIEW_BOLD, text);
	snprintf(text, sizeof(text), " %s%s%s ", tensor->kind ? tensor->kind : "",
		 tensor->shape ? " " : "", tensor->shape ? tensor->shape : "");
	if (x + 10 < pane->rect.width)
		x += view_text_cut(pane, x + 1, 0, pane->rect.width - x - 3, VIEW_DIM, text) + 1;
	if (screen->bad > 0 && x + 12 < pane->rect.width) {
		snprintf(text, sizeof(text), " %lld NaN, %lld Inf ", (long long)tensor->n_nan,
			 (long long)tensor->n_inf);
		view_text_cut(pane, x + 1, 0, pane->rect.width - x - 3, VIEW_BAD, text);
	}
}

static void view_draw_scale(const struct view_tensors *screen, struct view_pane *pane)
{
	const int height = pane->rect.height;
	char text[FMT_SIZE];

	for (int y = 0; y < height; y++) {
		/* A number every few rows, the first and the last always. */
		const bool edge = y == 0 || y == height - 1;
		const double part = height > 1 ? (double)y / (height - 1) : 0;

		const bool number = edge || (y % 4 == 0 && height - 1 - y >= 2);

		view_glyphs(pane, pane->rect.width - 1, y, VIEW_DIM,
			    number ? VIEW_GLYPH_TEE : VIEW_GLYPH_VERTICAL, 1);
		if (!number)
			continue;
		snprintf(text, sizeof(text), "%.4g",
			 screen->high - part * (screen->high - screen->low));
		view_text_right(pane, 0, y, pane->rect.width - 2, VIEW_DIM, text);
	}
}

static void view_draw_axis(const struct view_tensors *screen, struct view_pane *pane)
{
	const bool steps = screen->first_step != INT64_MIN && screen->last_step != INT64_MIN;
	const int64_t first = steps ? screen->first_step : screen->first_update;
	const int64_t last = steps ? screen->last_step : screen->last_update;
	const int left = screen->areas.scale.width - 1;
	char text[FMT_SIZE];

	view_glyphs(pane, left, 0, VIEW_DIM, VIEW_GLYPH_CORNER, 1);
	view_glyphs(pane, left + 1, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL,
		    pane->rect.width - left - 1);
	if (first == INT64_MIN || last == INT64_MIN) {
		view_text(pane, left + 2, 0, VIEW_DIM, " in order of time ");
		return;
	}
	snprintf(text, sizeof(text), " %s %lld ", steps ? "step" : "update", (long long)first);
	view_text(pane, left + 2, 0, VIEW_DIM, text);
	snprintf(text, sizeof(text), " %lld ", (long long)last);
	view_text_right(pane, left + 2, 0, pane->rect.width - left - 4, VIEW_DIM, text);
}

void view__tensors_draw(const void *state, const struct view_context *context,
			struct view_pane *pane)
{
	const struct view_tensors *screen = state;
	struct view_pane table = view_sub(pane, screen->areas.table);
	struct view_pane heading = view_sub(pane, screen->areas.heading);
	struct view_pane scale = view_sub(pane, screen->areas.scale);
	struct view_pane curve = view_sub(pane, screen->areas.curve);
	struct view_pane axis = view_sub(pane, screen->areas.axis);

	if (screen->count == 0) {
		view_text(pane, 2, 1, VIEW_DIM,
			  screen->all > 0 ? "No key contains that text: Esc shows all."
					  : "No tensors have been recorded.");
		return;
	}
	view_draw_titles(screen, &table);
	for (int i = 0; i + 1 < table.rect.height && screen->scroll + i < screen->count; i++)
		view_draw_tensor(&screen->rows[screen->order[screen->scroll + i]], i + 1,
				 screen->scroll + i == screen->at && !context->whole, &table);
	if (heading.rect.height < 1)
		return;
	view_draw_heading(screen, &heading);
	if (screen->curve_count == 0) {
		/* A scale would be the tensor's that was shown before. */
		view_text(&curve, 1, 0, VIEW_DIM, "no rows were recorded of it");
		return;
	}
	view_draw_scale(screen, &scale);
	view_draw_axis(screen, &axis);
	view_chart_curve(&curve, VIEW_CURVE, screen->curve, screen->curve_count, screen->low,
			 screen->high);
}
