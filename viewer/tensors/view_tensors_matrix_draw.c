/*
 * Drawing a capture's slice: as numbers under their indexes, or as a heat map; of two reports
 * beside each other with the difference.
 *
 * Threading: the terminal's thread. Nothing is loaded here.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <math.h>
#include <stdio.h>

#include "viewer/draw/view_heat.h"

static const char *const part_names[] = {"Source", "Target", "Diff"};
static const enum view_style part_styles[] = {VIEW_SOURCE, VIEW_TARGET, VIEW_BOLD};

int view__values_above(const struct view_tensor_values *values)
{
	const bool names = view__values_parts(values) > 1;

	return 1 + (values->note[0] != '\0') + names + !values->picture;
}

/* The matrix that stands at place @at of those that are shown. */
static int part_at(const struct view_tensor_values *v, int at)
{
	return v->part[VIEW_OF_SOURCE].ndim > 0 ? at : VIEW_OF_TARGET;
}

/* ---- as numbers ------------------------------------------------------------------------------ */

static void draw_cell(const struct view_tensor_values *v, int part, int row, int column, int x,
		      int y, struct view_pane *pane)
{
	const struct view_tensor_matrix *matrix = &v->part[part];
	const int64_t at = (int64_t)row * v->shown_columns + column;
	const double value = matrix->cell[at];
	const bool diff = part == VIEW_OF_DIFF;
	const enum view_style finite = !diff                    ? VIEW_NORMAL
				       : value < 0 || value > 0 ? VIEW_WARN
								: VIEW_DIM;
	char text[32];

	if (!view__values_has(v, matrix, row, column))
		return;
	if (v->equal && v->equal[at])
		snprintf(text, sizeof(text), "=");
	else
		snprintf(text, sizeof(text), diff && value > 0 ? "+%.4g" : "%.4g", value);
	view_text_right(pane, x, y, VIEW_MATRIX_CELL - 1,
			v->equal && v->equal[at] ? VIEW_DIM
			: isfinite(value)        ? finite
						 : VIEW_BAD,
			text);
}

static void draw_part(const struct view_tensor_values *v, int part, int x, int y,
		      struct view_pane *pane)
{
	for (int c = 0; c < v->shown_columns; c++) {
		char text[32];

		snprintf(text, sizeof(text), "[%lld]", (long long)(v->column + c));
		view_text_right(pane, x + c * VIEW_MATRIX_CELL, y, VIEW_MATRIX_CELL - 1, VIEW_DIM,
				text);
	}
	for (int r = 0; r < v->shown_rows && v->part[part].cell; r++)
		for (int c = 0; c < v->shown_columns; c++)
			draw_cell(v, part, r, c, x + c * VIEW_MATRIX_CELL, y + 1 + r, pane);
}

static void draw_numbers(const struct view_tensor_values *v, int y, struct view_pane *pane)
{
	const int parts = view__values_parts(v);
	const int width = v->shown_columns * VIEW_MATRIX_CELL;

	for (int r = 0; r < v->shown_rows; r++) {
		char text[32];

		snprintf(text, sizeof(text), "[%lld]", (long long)(v->row + r));
		view_text_right(pane, 0, y + (parts > 1) + 1 + r, VIEW_MATRIX_INDEX - 1, VIEW_DIM,
				text);
	}
	for (int i = 0; i < parts; i++) {
		const int part = part_at(v, i), x = VIEW_MATRIX_INDEX + i * width;

		if (parts > 1)
			view_text_right(pane, x, y, VIEW_MATRIX_CELL - 1, part_styles[part],
					part_names[part]);
		draw_part(v, part, x, y + (parts > 1), pane);
	}
}

/* ---- as pictures ----------------------------------------------------------------------------- */

/* NaN and infinities would be holes in the map: they are marked over it. With D what is equal is a
 * hole. */
static void draw_marks(const struct view_tensor_values *v, const struct view_tensor_matrix *matrix,
		       struct view_pane *map)
{
	for (int r = 0; r < v->shown_rows; r++)
		for (int c = 0; c < v->shown_columns; c++) {
			const int64_t at = (int64_t)r * v->shown_columns + c;
			struct view_rect place;

			if (isfinite(matrix->cell[at]) || !view__values_has(v, matrix, r, c) ||
			    (v->equal && v->equal[at]))
				continue;
			place = view_heat_place(map, v->shown_columns, v->shown_rows, c, r);
			view_put(map, place.x, place.y, VIEW_BAD, '!');
		}
}

static void draw_map(const struct view_tensor_values *v, int part, struct view_rect area,
		     struct view_canvas *canvas, bool named)
{
	const struct view_tensor_matrix *matrix = &v->part[part];
	struct view_pane map = view_pane_at(canvas, area);

	if (named) {
		view_text(&map, 1, 0, part_styles[part], part_names[part]);
		area.y++;
		area.height--;
		map = view_pane_at(canvas, area);
	}
	if (!matrix->cell || area.height < 1)
		return;
	if (part == VIEW_OF_DIFF && !v->differs) {
		view_text_cut(&map, 1, 0, area.width - 2, VIEW_DIM, "nothing differs");
		return;
	}
	view_heat_map(&map, matrix->cell, v->shown_columns, v->shown_rows,
		      part == VIEW_OF_DIFF ? &v->diff_scale : &v->scale);
	draw_marks(v, matrix, &map);
}

static void draw_legends(const struct view_tensor_values *v, int parts, struct view_pane *pane)
{
	const int y = pane->rect.height - 1;
	const bool diff = parts > VIEW_OF_DIFF && v->differs;
	const int width = diff ? pane->rect.width / 2 : pane->rect.width;
	int x = 1;

	view_heat_legend(pane, x, y, width - 2, &v->scale);
	if (!diff)
		return;
	x = width + view_text(pane, width, y, VIEW_BOLD, "Diff ");
	view_heat_legend(pane, x, y, pane->rect.width - x - 1, &v->diff_scale);
}

static void draw_pictures(const struct view_tensor_values *v, int y, struct view_pane *pane)
{
	const int parts = view__values_parts(v);
	struct view_rect area = pane->rect;

	area.y += y;
	area.height -= y + 1;
	for (int i = 0; i < parts && area.height > 0; i++) {
		struct view_rect share = view__tensors_share(area, parts, i);

		share.width -= i + 1 < parts; /* a gap */
		draw_map(v, part_at(v, i), share, pane->canvas, parts > 1);
	}
	draw_legends(v, parts, pane);
}

/* ---- both ------------------------------------------------------------------------------------ */

/* "step 30: float32 (3, 4, 5)  [0, :, :]" */
static void draw_slice(const struct view_tensors *screen, struct view_pane *pane)
{
	const struct view_tensor_values *v = &screen->values;
	const struct view_tensor_capture *capture = view__values_capture(screen);
	const struct view_tensor_matrix *first = &v->part[part_at(v, 0)];
	int x = 1;

	if (capture->step != IPS_NULL)
		x += view_textf(pane, x, 0, VIEW_BOLD, "step %lld", (long long)capture->step);
	else if (capture->weight_update != IPS_NULL)
		x += view_textf(pane, x, 0, VIEW_BOLD, "weight update %lld",
				(long long)capture->weight_update);
	if (screen->replica < 0 && screen->replicas > 1)
		x += view_textf(pane, x, 0, VIEW_BOLD, ", replica %lld",
				(long long)capture->replica);
	x += view_textf(pane, x, 0, VIEW_NORMAL, ": %s %s", first->dtype, first->shape_text);
	if (first->ndim > 2) {
		x += view_text(pane, x, 0, VIEW_KEY, "  [");
		for (int i = 0; i < first->ndim - 2; i++)
			x += view_textf(pane, x, 0, VIEW_KEY, "%lld, ", (long long)v->first[i]);
		x += view_text(pane, x, 0, VIEW_KEY, ":, :]");
	}
	if (v->cut > 0)
		view_text(pane, x + 2, 0, VIEW_WARN, "only its beginning is in the picture");
}

static const char *tell_none(const struct view_tensors *screen)
{
	const struct view_tensor_captures *both = &screen->values.both;

	if (both->looked < both->all)
		return "None of its captures is among those looked at.";
	return screen->replica >= 0 ? "No values of this replica were kept: i shows another."
				    : "No values were kept of it (outfeed.capture full).";
}

void view__values_draw(const struct view_tensors *screen, struct view_pane *pane)
{
	const struct view_tensor_values *v = &screen->values;
	int y = 1;

	if (!view__values_capture(screen)) {
		view_text_cut(pane, 1, 0, pane->rect.width - 2, VIEW_DIM, tell_none(screen));
		return;
	}
	draw_slice(screen, pane);
	if (v->note[0])
		view_text_cut(pane, 1, y++, pane->rect.width - 2, VIEW_WARN, v->note);
	if (!v->part[VIEW_OF_SOURCE].cell && !v->part[VIEW_OF_TARGET].cell)
		view_text_cut(pane, 1, y, pane->rect.width - 2, VIEW_WARN,
			      "values of this type or shape cannot be shown");
	else if (v->equal && !v->differs)
		view_text_cut(pane, 1, y, pane->rect.width - 2, VIEW_DIM,
			      "Nothing of what is shown differs: D shows all.");
	else if (v->picture)
		draw_pictures(v, y, pane);
	else
		draw_numbers(v, y, pane);
}
