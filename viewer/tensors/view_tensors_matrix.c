/*
 * A slice of a capture: reading its values chunk by chunk, the difference of two slices, and
 * drawing them as numbers under their indexes or as a heat map.
 *
 * Threading: that of the session; drawing on the terminal's thread. Ownership: the screen's.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/dtype.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "viewer/draw/view_heat.h"

#define PIECES_MOST 4096

/* ---- reading --------------------------------------------------------------------------------- */

/* The elements of the slice are at @base + row * pitch + column. */
struct window {
	int64_t base, pitch, rows, columns;
	double *out; /* rows x stride */
	int64_t stride;
	enum dtype type;
};

/* Copy the window's elements from @data, which has the elements @from to @from + @count - 1. */
static void tensors_window_copy(const struct window *w, int64_t from, int64_t count,
				const unsigned char *data)
{
	const int64_t first = from - w->base;
	int64_t row = first > 0 ? first / w->pitch : 0;

	for (; row < w->rows && w->base + row * w->pitch < from + count; row++)
		for (int64_t c = 0; c < w->columns; c++) {
			const int64_t at = w->base + row * w->pitch + c - from;

			if (at >= 0 && at < count)
				w->out[row * w->stride + c] =
					dtype_read(w->type, data + at * dtype_bytes(w->type));
		}
}

static bool tensors_window_overlaps(const struct window *w, int64_t from, int64_t to)
{
	const int64_t row = from > w->base ? (from - w->base) / w->pitch : 0;

	for (int64_t r = row; r < w->rows && r <= row + 1; r++) {
		const int64_t at = w->base + r * w->pitch;

		if (at < to && at + w->columns > from)
			return true;
	}
	return false;
}

/* The capture being read: its tensor, and the row of its first piece. */
struct reading {
	struct prof_db *db;
	int64_t tensor_id, row_id, context_id;
};

/* Read a piece of the capture by its number. Row ids of pieces rise, with other tensors'
 * between. */
static enum status tensors_window_piece(const struct window *w, const struct reading *reading,
					int64_t piece, int64_t *each, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(
		&query, reading->db,
		"SELECT data FROM capture_rows WHERE row_id >= :row AND row_id < :row + :most "
		"AND tensor_id = :tensor AND context_id IS :context AND coalesce(chunk, 0) = "
		":piece "
		"LIMIT 1",
		err);
	const void *data;
	bool row = false;
	size_t size = 0;

	if (status != ST_OK)
		return status;
	prof_query_int(query, ":row", reading->row_id);
	prof_query_int(query, ":most", PIECES_MOST);
	prof_query_int(query, ":tensor", reading->tensor_id);
	if (reading->context_id != IPS_NULL)
		prof_query_int(query, ":context", reading->context_id);
	prof_query_int(query, ":piece", piece);
	status = prof_query_step(query, &row, err);
	data = status == ST_OK && row ? prof_column_blob(query, 0, &size) : NULL;
	if (data) {
		const int64_t count = (int64_t)size / dtype_bytes(w->type);

		if (piece == 0)
			*each = count;
		tensors_window_copy(w, piece * *each, count, data);
	}
	prof_query_close(query);
	return status;
}

static enum status tensors_window_read(const struct window *w, const struct reading *reading,
				       struct view_context *context, struct err *err)
{
	const int64_t end = w->base + (w->rows - 1) * w->pitch + w->columns;
	int64_t each = 0;
	enum status status = tensors_window_piece(w, reading, 0, &each, err);

	for (int64_t piece = 1; status == ST_OK && each > 0 && piece * each < end; piece++) {
		if (!tensors_window_overlaps(w, piece * each, (piece + 1) * each))
			continue;
		if (view_cancelled(context))
			return err_set(err, ST_INTERRUPTED, "interrupted");
		status = tensors_window_piece(w, reading, piece, &each, err);
	}
	return status;
}

/* ---- the slice ------------------------------------------------------------------------------- */

/* Is the shape valid, and the number of elements within the limit of a capture? */
static bool tensors_shape_fits(const struct view_tensor_matrix *matrix)
{
	int64_t all = 1;

	for (int i = 0; i < matrix->ndim; i++)
		if (matrix->shape[i] < 1 || __builtin_mul_overflow(all, matrix->shape[i], &all) ||
		    all > INT64_C(1) << 50)
			return false;
	return matrix->rows > 0 && matrix->columns > 0;
}

static int64_t tensors_clamp_offset(int64_t at, int64_t most)
{
	return at > most ? max(most, 0) : at < 0 ? 0 : at;
}

/* Rows above the numbers: the title, a note, names, indexes. */
static int tensors_rows_above(const struct view_tensor_values *values)
{
	const bool names = view__values_parts(values) > 1;

	return 1 + (values->note[0] != '\0') + names + !values->picture;
}

/* Choose the part of the slice to read: as much as fits the screen, or for a picture all of it up
 * to VIEW_TENSORS_SLICE values. */
static void tensors_values_window(struct view_tensors *screen)
{
	struct view_tensor_values *v = &screen->values;
	const int parts = view__values_parts(v);
	int64_t rows, columns;

	if (v->picture) {
		const int64_t most = VIEW_TENSORS_SLICE / (parts > 1 ? 4 : 1);

		columns = min(v->columns, most);
		rows = min(v->rows, most / columns);
		v->row = v->column = 0;
	} else {
		rows = screen->body.height - tensors_rows_above(v);
		columns = (screen->body.width - VIEW_MATRIX_INDEX) / parts / VIEW_MATRIX_CELL;
		rows = min(v->rows, max(rows, 1));
		columns = min(v->columns, max(columns, 1));
		v->row = tensors_clamp_offset(v->row, v->rows - rows);
		v->column = tensors_clamp_offset(v->column, v->columns - columns);
	}
	v->shown_rows = (int)rows;
	v->shown_columns = (int)columns;
	v->cut = v->picture ? v->rows * v->columns - rows * columns : 0;
}

static size_t tensors_values_count(const struct view_tensor_values *v)
{
	return (size_t)v->shown_rows * (size_t)v->shown_columns;
}

static enum status tensors_part_cells(const struct view_tensor_values *v,
				      struct view_tensor_matrix *matrix, struct err *err)
{
	const size_t count = tensors_values_count(v);

	if (mem_grow(&matrix->numbers, &matrix->capacity, count + 1, sizeof(*matrix->numbers)))
		return err_nomem(err);
	for (size_t i = 0; i < count; i++)
		matrix->numbers[i] = (double)NAN;
	return ST_OK;
}

static enum status tensors_part_read(struct view_tensors *screen, struct view_context *context,
				     int side, struct err *err)
{
	struct view_tensor_values *v = &screen->values;
	struct view_tensor_matrix *matrix = &v->part[side];
	const struct view_tensor_capture *capture = view__values_capture(screen);
	const struct reading reading = {view__tensors_db(context, side), screen->id[side],
					capture->row_id[side], capture->context_id[side]};
	struct window w = {.type = dtype_find(matrix->dtype),
			   .pitch = matrix->columns,
			   .stride = v->shown_columns,
			   .rows = min(v->shown_rows, matrix->rows - v->row),
			   .columns = min(v->shown_columns, matrix->columns - v->column)};
	enum status status;

	if (matrix->ndim == 0 || w.type == DTYPES || !tensors_shape_fits(matrix))
		return ST_OK;
	status = tensors_part_cells(v, matrix, err);
	if (status != ST_OK)
		return status;
	for (int i = 0; i < matrix->ndim - 2; i++)
		w.base = w.base * matrix->shape[i] + v->first[i];
	w.base = (w.base * matrix->rows + v->row) * matrix->columns + v->column;
	w.out = matrix->numbers;
	if (w.rows > 0 && w.columns > 0)
		status = tensors_window_read(&w, &reading, context, err);
	matrix->cell = status == ST_OK ? matrix->numbers : NULL;
	return status;
}

/* ---- the difference -------------------------------------------------------------------------- */

static enum status tensors_diff_make(struct view_tensor_values *v, bool differ, struct err *err)
{
	const double *source = v->part[VIEW_OF_SOURCE].cell, *target = v->part[VIEW_OF_TARGET].cell;
	struct view_tensor_matrix *diff = &v->part[VIEW_OF_DIFF];
	const size_t count = tensors_values_count(v);
	enum status status;

	if (!source || !target || view__values_parts(v) < VIEW_TENSOR_SHARES)
		return ST_OK;
	status = tensors_part_cells(v, diff, err);
	if (status != ST_OK)
		return status;
	if (mem_grow(&v->equals, &v->equal_capacity, count + 1, sizeof(*v->equals)))
		return err_nomem(err);
	for (size_t i = 0; i < count; i++) {
		const bool nan = isnan(source[i]) || isnan(target[i]);

		v->equals[i] = nan ? isnan(source[i]) && isnan(target[i])
				   : !(source[i] < target[i] || source[i] > target[i]);
		v->differs |= !v->equals[i];
		/* Equal infinities differ by 0. */
		diff->numbers[i] = v->equals[i] && !isnan(source[i]) ? 0 : target[i] - source[i];
	}
	diff->rows = v->rows;
	diff->columns = v->columns;
	diff->cell = diff->numbers;
	v->equal = differ ? v->equals : NULL;
	return ST_OK;
}

static void tensors_scale_over(struct report_axis *scale, const struct view_tensor_values *v,
			       int from, int to)
{
	*scale = (struct report_axis){.quantity = REPORT_REAL};
	report_axis_begin(scale);
	for (int i = from; i <= to; i++)
		if (v->part[i].cell)
			report_axis_include(scale, v->part[i].cell,
					    (int64_t)tensors_values_count(v));
	report_axis_finish(scale);
}

void view__matrix_scale(struct view_tensor_values *values)
{
	tensors_scale_over(&values->scale, values, VIEW_OF_SOURCE, VIEW_OF_TARGET);
}

enum status view__matrix_load(struct view_tensors *screen, struct view_context *context,
			      struct err *err)
{
	struct view_tensor_values *v = &screen->values;
	enum status status = ST_OK;

	v->equal = NULL;
	v->differs = false;
	v->shown_rows = v->shown_columns = 0;
	v->cut = 0;
	if (v->rows < 1 || v->columns < 1)
		return ST_OK;
	tensors_values_window(screen);
	for (int side = 0; side < VIEW_TENSORS_SIDES && status == ST_OK; side++)
		status = tensors_part_read(screen, context, side, err);
	if (status == ST_OK)
		status = tensors_diff_make(v, context->target && context->differ, err);
	view__matrix_scale(v);
	tensors_scale_over(&v->diff_scale, v, VIEW_OF_DIFF, VIEW_OF_DIFF);
	if (v->picture && v->equal) {
		/* With D a picture has holes where both are equal. */
		for (int i = 0; i < VIEW_TENSOR_SHARES; i++)
			for (size_t at = 0; v->part[i].cell && at < tensors_values_count(v); at++)
				if (v->equal[at])
					v->part[i].cell[at] = (double)NAN;
	}
	return status;
}

/* ---- drawing --------------------------------------------------------------------------------- */

static const char *const tensors_part_names[] = {"Source", "Target", "Diff"};

static const enum view_style tensors_part_styles[] = {VIEW_SOURCE, VIEW_TARGET, VIEW_BOLD};

/* The index of the @at-th shown matrix. */
static int tensors_part_at(const struct view_tensor_values *v, int at)
{
	return v->part[VIEW_OF_SOURCE].ndim > 0 ? at : VIEW_OF_TARGET;
}

/* ---- as numbers ------------------------------------------------------------------------------ */

static void tensors_draw_cell(const struct view_tensor_values *v, int part, int row, int column,
			      int x, int y, struct view_pane *pane)
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

static void tensors_draw_part(const struct view_tensor_values *v, int part, int x, int y,
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
			tensors_draw_cell(v, part, r, c, x + c * VIEW_MATRIX_CELL, y + 1 + r, pane);
}

static void tensors_draw_numbers(const struct view_tensor_values *v, int y, struct view_pane *pane)
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
		const int part = tensors_part_at(v, i), x = VIEW_MATRIX_INDEX + i * width;

		if (parts > 1)
			view_text_right(pane, x, y, VIEW_MATRIX_CELL - 1, tensors_part_styles[part],
					tensors_part_names[part]);
		tensors_draw_part(v, part, x, y + (parts > 1), pane);
	}
}

/* ---- as pictures ----------------------------------------------------------------------------- */

/* Mark NaN and infinities, which are holes in the map. With D equal cells stay holes. */
static void tensors_draw_marks(const struct view_tensor_values *v,
			       const struct view_tensor_matrix *matrix, struct view_pane *map)
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

static void tensors_draw_heat(const struct view_tensor_values *v, int part, struct view_rect area,
			      struct view_canvas *canvas, bool named)
{
	const struct view_tensor_matrix *matrix = &v->part[part];
	struct view_pane map = view_pane_at(canvas, area);

	if (named) {
		view_text(&map, 1, 0, tensors_part_styles[part], tensors_part_names[part]);
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
	tensors_draw_marks(v, matrix, &map);
}

static void tensors_draw_legends(const struct view_tensor_values *v, int parts,
				 struct view_pane *pane)
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

static void tensors_draw_pictures(const struct view_tensor_values *v, int y, struct view_pane *pane)
{
	const int parts = view__values_parts(v);
	struct view_rect area = pane->rect;

	area.y += y;
	area.height -= y + 1;
	if (parts == 1)
		area = view__sequence_sides(v, area, pane);
	for (int i = 0; i < parts && area.height > 0; i++) {
		struct view_rect share = view__tensors_share(area, parts, i);

		share.width -= i + 1 < parts; /* a gap */
		tensors_draw_heat(v, tensors_part_at(v, i), share, pane->canvas, parts > 1);
	}
	tensors_draw_legends(v, parts, pane);
}

/* ---- both ------------------------------------------------------------------------------------ */

/* Draw "step 30: float32 (3, 4, 5)  [0, :, :]". */
static void tensors_draw_slice(const struct view_tensors *screen, struct view_pane *pane)
{
	const struct view_tensor_values *v = &screen->values;
	const struct view_tensor_capture *capture = view__values_capture(screen);
	const struct view_tensor_matrix *first = &v->part[tensors_part_at(v, 0)];
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
	if (v->sequence.dims[0] && v->cut == 0)
		view_text_cut(pane, x + 2, 0, pane->rect.width - x - 3, VIEW_DIM, v->sequence.dims);
	if (v->cut > 0)
		view_text(pane, x + 2, 0, VIEW_WARN, "only its beginning is in the picture");
}

static const char *tensors_missing_text(const struct view_tensors *screen)
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
		view_text_cut(pane, 1, 0, pane->rect.width - 2, VIEW_DIM,
			      tensors_missing_text(screen));
		return;
	}
	tensors_draw_slice(screen, pane);
	if (v->note[0])
		view_text_cut(pane, 1, y++, pane->rect.width - 2, VIEW_WARN, v->note);
	if (!v->part[VIEW_OF_SOURCE].cell && !v->part[VIEW_OF_TARGET].cell)
		view_text_cut(pane, 1, y, pane->rect.width - 2, VIEW_WARN,
			      "values of this type or shape cannot be shown");
	else if (v->equal && !v->differs)
		view_text_cut(pane, 1, y, pane->rect.width - 2, VIEW_DIM,
			      "Nothing of what is shown differs: D shows all.");
	else if (v->paged)
		view__sequence_draw(screen, pane, y);
	else if (v->picture) {
		if (v->sequence.headed)
			view__sequence_draw_head(v, pane, y++);
		tensors_draw_pictures(v, y, pane);
	} else
		tensors_draw_numbers(v, y, pane);
}
