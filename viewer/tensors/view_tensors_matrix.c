/*
 * The numbers of a capture's slice: read piece by piece, shown as a matrix or as a heat map.
 *
 * Values lie in C order in pieces of a size that all but the last share; only pieces that hold
 * something shown are read, one at a time.
 *
 * Threading: the session's worker; drawing on the terminal's thread.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "viewer/draw/view_heat.h"

#define CELL_WIDTH  10
#define INDEX_WIDTH 7
#define PIECES_MOST 4096

/* --- one value -------------------------------------------------------------------------------- */

static double of_float16(const unsigned char *data)
{
	const unsigned bits = data[0] | (unsigned)data[1] << 8, exponent = bits >> 10 & 31;
	const double mantissa = bits & 1023, sign = bits >> 15 ? -1 : 1;

	if (exponent == 31)
		return mantissa > 0 ? (double)NAN : sign * (double)INFINITY;
	return exponent == 0 ? sign * ldexp(mantissa, -24)
			     : sign * ldexp(1024 + mantissa, (int)exponent - 25);
}

static double of_float32(const unsigned char *data)
{
	float value;

	memcpy(&value, data, sizeof(value));
	return (double)value;
}

static double of_float64(const unsigned char *data)
{
	double value;

	memcpy(&value, data, sizeof(value));
	return value;
}

static double of_int32(const unsigned char *data)
{
	int32_t value;

	memcpy(&value, data, sizeof(value));
	return value;
}

static double of_int64(const unsigned char *data)
{
	int64_t value;

	memcpy(&value, data, sizeof(value));
	return (double)value;
}

static double of_uint8(const unsigned char *data)
{
	return data[0];
}

struct value_type {
	const char *name;
	int64_t size; /* bytes */
	double (*read)(const unsigned char *data);
};

static const struct value_type *value_type(const char *name)
{
	static const struct value_type types[] = {
		{"float16", 2, of_float16}, {"float32", 4, of_float32}, {"float64", 8, of_float64},
		{"int32", 4, of_int32},     {"int64", 8, of_int64},     {"uint8", 1, of_uint8},
		{"bool", 1, of_uint8}};

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (strcmp(types[i].name, name) == 0)
			return &types[i];
	return NULL;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* What is wanted: elements @base + row * pitch + column. */
struct window {
	int64_t base, pitch, rows, columns;
	double *out; /* rows x columns */
	const struct value_type *type;
};

/* The elements @from .. @from + @count - 1 are in @data: those that are wanted. */
static void window_take(const struct window *w, int64_t from, int64_t count,
			const unsigned char *data)
{
	const int64_t first = from - w->base;
	int64_t row = first > 0 ? first / w->pitch : 0;

	for (; row < w->rows && w->base + row * w->pitch < from + count; row++)
		for (int64_t c = 0; c < w->columns; c++) {
			const int64_t at = w->base + row * w->pitch + c - from;

			if (at >= 0 && at < count)
				w->out[row * w->columns + c] =
					w->type->read(data + at * w->type->size);
		}
}

static bool window_wants(const struct window *w, int64_t from, int64_t to)
{
	const int64_t row = from > w->base ? (from - w->base) / w->pitch : 0;

	for (int64_t r = row; r < w->rows && r <= row + 1; r++) {
		const int64_t at = w->base + r * w->pitch;

		if (at < to && at + w->columns > from)
			return true;
	}
	return false;
}

/* A piece of the capture by its number: their row ids rise, other tensors' may lie between. */
static enum status window_piece(const struct window *w, struct prof_db *db,
				const struct view_tensors *screen, int64_t piece, int64_t *each,
				struct err *err)
{
	const struct view_tensor_capture *capture = &screen->values.list[screen->values.at];
	struct prof_query *query;
	enum status status = prof_query_open(
		&query, db,
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
	prof_query_int(query, ":row", capture->row_id);
	prof_query_int(query, ":most", PIECES_MOST);
	prof_query_int(query, ":tensor", screen->id);
	if (capture->context_id != INT64_MIN)
		prof_query_int(query, ":context", capture->context_id);
	prof_query_int(query, ":piece", piece);
	status = prof_query_step(query, &row, err);
	data = status == ST_OK && row ? prof_column_blob(query, 0, &size) : NULL;
	if (data) {
		const int64_t count = (int64_t)size / w->type->size;

		if (piece == 0)
			*each = count;
		window_take(w, piece * *each, count, data);
	}
	prof_query_close(query);
	return status;
}

static enum status window_read(const struct window *w, struct view_tensors *screen,
			       struct view_context *context, struct err *err)
{
	const int64_t end = w->base + (w->rows - 1) * w->pitch + w->columns;
	struct prof_db *db = context->source->db;
	int64_t each = 0;
	enum status status = window_piece(w, db, screen, 0, &each, err);

	for (int64_t piece = 1; status == ST_OK && each > 0 && piece * each < end; piece++) {
		if (!window_wants(w, piece * each, (piece + 1) * each))
			continue;
		if (view_cancelled(context))
			return err_set(err, ST_INTERRUPTED, "interrupted");
		status = window_piece(w, db, screen, piece, &each, err);
	}
	return status;
}

static int64_t slice_base(const struct view_tensor_values *v)
{
	int64_t at = 0;

	for (int i = 0; i < v->ndim - 2; i++)
		at = at * v->shape[i] + v->first[i];
	return at * v->rows * v->columns;
}

/* Elements of the whole shape; false: it is not to be believed. */
static bool shape_fits(const struct view_tensor_values *v)
{
	int64_t all = 1;

	for (int i = 0; i < v->ndim; i++)
		if (v->shape[i] < 1 || __builtin_mul_overflow(all, v->shape[i], &all) ||
		    all > INT64_C(1) << 50)
			return false;
	return true;
}

static void values_window(struct view_tensors *screen, struct window *w)
{
	struct view_tensor_values *v = &screen->values;

	v->cut = 0;
	if (v->picture) {
		v->row = v->column = 0;
		w->columns = v->columns < VIEW_TENSORS_SLICE ? v->columns : VIEW_TENSORS_SLICE;
		w->rows = VIEW_TENSORS_SLICE / w->columns;
		w->rows = v->rows < w->rows ? v->rows : w->rows;
		v->cut = v->rows * v->columns - w->rows * w->columns;
	} else {
		const int rows = screen->body.height - 2;
		const int columns = (screen->body.width - INDEX_WIDTH) / CELL_WIDTH;

		v->shown_rows = rows > 1 ? rows : 1;
		v->shown_columns = columns > 1 ? columns : 1;
		v->row = v->row > v->rows - v->shown_rows ? v->rows - v->shown_rows : v->row;
		v->row = v->row < 0 ? 0 : v->row;
		v->column = v->column > v->columns - v->shown_columns
				    ? v->columns - v->shown_columns
				    : v->column;
		v->column = v->column < 0 ? 0 : v->column;
		w->rows = v->rows < v->shown_rows ? v->rows : v->shown_rows;
		w->columns = v->columns < v->shown_columns ? v->columns : v->shown_columns;
	}
	v->shown_rows = (int)w->rows;
	v->shown_columns = (int)w->columns;
	w->pitch = v->columns;
	w->base = slice_base(v) + v->row * v->columns + v->column;
}

enum status view__matrix_load(struct view_tensors *screen, struct view_context *context,
			      struct err *err)
{
	struct view_tensor_values *v = &screen->values;
	struct window w = {.type = value_type(v->dtype)};
	enum status status;
	size_t count;

	v->cell = NULL;
	if (!w.type || !shape_fits(v))
		return ST_OK;
	values_window(screen, &w);
	count = (size_t)w.rows * (size_t)w.columns;
	if (mem_grow(&v->numbers, &v->number_capacity, count + 1, sizeof(*v->numbers)))
		return err_nomem(err);
	for (size_t i = 0; i < count; i++)
		v->numbers[i] = (double)NAN;
	w.out = v->numbers;
	status = window_read(&w, screen, context, err);
	v->cell = v->numbers;
	v->scale = (struct view_axis){.quantity = REPORT_REAL};
	view_axis_begin(&v->scale);
	view_axis_take(&v->scale, v->cell, (int64_t)count);
	view_axis_settle(&v->scale);
	return status;
}

/* --- drawing ---------------------------------------------------------------------------------- */

static void draw_matrix(const struct view_tensor_values *v, struct view_pane *pane)
{
	for (int c = 0; c < v->shown_columns; c++) {
		char text[32];

		snprintf(text, sizeof(text), "[%lld]", (long long)(v->column + c));
		view_text_right(pane, INDEX_WIDTH + c * CELL_WIDTH, 1, CELL_WIDTH - 1, VIEW_DIM,
				text);
	}
	for (int r = 0; r < v->shown_rows; r++) {
		char text[32];

		snprintf(text, sizeof(text), "[%lld]", (long long)(v->row + r));
		view_text_right(pane, 0, 2 + r, INDEX_WIDTH - 1, VIEW_DIM, text);
		for (int c = 0; c < v->shown_columns; c++) {
			const double value = v->cell[r * v->shown_columns + c];

			snprintf(text, sizeof(text), "%.4g", value);
			view_text_right(pane, INDEX_WIDTH + c * CELL_WIDTH, 2 + r, CELL_WIDTH - 1,
					isfinite(value) ? VIEW_NORMAL : VIEW_BAD, text);
		}
	}
}

/* NaN and infinities would be holes in the map: they are marked over it. */
static void draw_picture(const struct view_tensor_values *v, struct view_pane *pane)
{
	struct view_rect area = pane->rect;
	struct view_pane map;

	area.y += 1;
	area.height -= 2;
	map = view_pane_at(pane->canvas, area);
	view_heat_map(&map, v->cell, v->shown_columns, v->shown_rows, &v->scale);
	for (int r = 0; r < v->shown_rows; r++)
		for (int c = 0; c < v->shown_columns; c++) {
			struct view_rect at;

			if (isfinite(v->cell[(int64_t)r * v->shown_columns + c]))
				continue;
			at = view_heat_place(&map, v->shown_columns, v->shown_rows, c, r);
			view_put(&map, at.x, at.y, VIEW_BAD, '!');
		}
	view_heat_legend(pane, 1, pane->rect.height - 1, pane->rect.width - 2, &v->scale);
}

static void draw_slice(const struct view_tensor_values *v, struct view_pane *pane)
{
	const struct view_tensor_capture *capture = &v->list[v->at];
	int x = 1;

	if (capture->step != INT64_MIN)
		x += view_textf(pane, x, 0, VIEW_BOLD, "step %lld: ", (long long)capture->step);
	else if (capture->weight_update != INT64_MIN)
		x += view_textf(pane, x, 0, VIEW_BOLD,
				"weight update %lld: ", (long long)capture->weight_update);
	x += view_textf(pane, x, 0, VIEW_NORMAL, "%s %s", v->dtype, v->shape_text);
	if (v->ndim > 2) {
		x += view_text(pane, x, 0, VIEW_KEY, "  [");
		for (int i = 0; i < v->ndim - 2; i++)
			x += view_textf(pane, x, 0, VIEW_KEY, "%lld, ", (long long)v->first[i]);
		x += view_text(pane, x, 0, VIEW_KEY, ":, :]");
	}
	if (v->cut > 0)
		view_text(pane, x + 2, 0, VIEW_WARN, "only its beginning is in the picture");
}

void view__values_draw(const struct view_tensors *screen, struct view_pane *pane)
{
	const struct view_tensor_values *v = &screen->values;

	if (v->count == 0) {
		view_text_cut(pane, 1, 0, pane->rect.width - 2, VIEW_DIM,
			      v->looked < v->all
				      ? "None of its captures is among those looked at."
				      : "No values were kept of it (outfeed.capture full).");
		return;
	}
	draw_slice(v, pane);
	if (!v->cell)
		view_text(pane, 1, 1, VIEW_WARN, "values of this type or shape cannot be shown");
	else if (v->picture)
		draw_picture(v, pane);
	else
		draw_matrix(v, pane);
}
