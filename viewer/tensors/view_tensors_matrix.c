/*
 * Reading the numbers of a capture's slice piece by piece, and their difference to another's.
 *
 * Values lie in C order in pieces of a size that all but the last share; only pieces that hold
 * something shown are read, one at a time.
 *
 * Threading: the session's worker.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"

#define PIECES_MOST 4096

/* ---- one value ------------------------------------------------------------------------------- */

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

/* ---- reading --------------------------------------------------------------------------------- */

/* What is wanted: elements @base + row * pitch + column. */
struct window {
	int64_t base, pitch, rows, columns;
	double *out; /* rows x stride */
	int64_t stride;
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
				w->out[row * w->stride + c] =
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

/* The capture that is read: of whom, and its first piece. */
struct reading {
	struct prof_db *db;
	int64_t tensor_id, row_id, context_id;
};

/* A piece of the capture by its number: their row ids rise, other tensors' may lie between. */
static enum status window_piece(const struct window *w, const struct reading *reading,
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
		const int64_t count = (int64_t)size / w->type->size;

		if (piece == 0)
			*each = count;
		window_take(w, piece * *each, count, data);
	}
	prof_query_close(query);
	return status;
}

static enum status window_read(const struct window *w, const struct reading *reading,
			       struct view_context *context, struct err *err)
{
	const int64_t end = w->base + (w->rows - 1) * w->pitch + w->columns;
	int64_t each = 0;
	enum status status = window_piece(w, reading, 0, &each, err);

	for (int64_t piece = 1; status == ST_OK && each > 0 && piece * each < end; piece++) {
		if (!window_wants(w, piece * each, (piece + 1) * each))
			continue;
		if (view_cancelled(context))
			return err_set(err, ST_INTERRUPTED, "interrupted");
		status = window_piece(w, reading, piece, &each, err);
	}
	return status;
}

/* ---- the slice ------------------------------------------------------------------------------- */

/* Elements before row 0 of the slice. */
static int64_t slice_base(const struct view_tensor_values *v,
			  const struct view_tensor_matrix *matrix)
{
	int64_t at = 0;

	for (int i = 0; i < matrix->ndim - 2; i++)
		at = at * matrix->shape[i] + v->first[i];
	return at * matrix->rows * matrix->columns;
}

/* Elements of the whole shape; false: it is not to be believed. */
static bool shape_fits(const struct view_tensor_matrix *matrix)
{
	int64_t all = 1;

	for (int i = 0; i < matrix->ndim; i++)
		if (matrix->shape[i] < 1 || __builtin_mul_overflow(all, matrix->shape[i], &all) ||
		    all > INT64_C(1) << 50)
			return false;
	return matrix->rows > 0 && matrix->columns > 0;
}

static int64_t within(int64_t at, int64_t most)
{
	return at > most ? max(most, 0) : at < 0 ? 0 : at;
}

/* What of the slice is on the screen, or for a picture all that may be looked at. */
static void values_window(struct view_tensors *screen)
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
		rows = screen->body.height - view__values_above(v);
		columns = (screen->body.width - VIEW_MATRIX_INDEX) / parts / VIEW_MATRIX_CELL;
		rows = min(v->rows, max(rows, 1));
		columns = min(v->columns, max(columns, 1));
		v->row = within(v->row, v->rows - rows);
		v->column = within(v->column, v->columns - columns);
	}
	v->shown_rows = (int)rows;
	v->shown_columns = (int)columns;
	v->cut = v->picture ? v->rows * v->columns - rows * columns : 0;
}

static size_t values_count(const struct view_tensor_values *v)
{
	return (size_t)v->shown_rows * (size_t)v->shown_columns;
}

static enum status part_cells(const struct view_tensor_values *v, struct view_tensor_matrix *matrix,
			      struct err *err)
{
	const size_t count = values_count(v);

	if (mem_grow(&matrix->numbers, &matrix->capacity, count + 1, sizeof(*matrix->numbers)))
		return err_nomem(err);
	for (size_t i = 0; i < count; i++)
		matrix->numbers[i] = (double)NAN;
	return ST_OK;
}

static enum status part_read(struct view_tensors *screen, struct view_context *context, int side,
			     struct err *err)
{
	struct view_tensor_values *v = &screen->values;
	struct view_tensor_matrix *matrix = &v->part[side];
	const struct view_tensor_capture *capture = view__values_capture(screen);
	const struct reading reading = {view__tensors_db(context, side), screen->id[side],
					capture->row_id[side], capture->context_id[side]};
	struct window w = {.type = value_type(matrix->dtype),
			   .pitch = matrix->columns,
			   .stride = v->shown_columns,
			   .rows = min(v->shown_rows, matrix->rows - v->row),
			   .columns = min(v->shown_columns, matrix->columns - v->column)};
	enum status status;

	if (matrix->ndim == 0 || !w.type || !shape_fits(matrix))
		return ST_OK;
	status = part_cells(v, matrix, err);
	if (status != ST_OK)
		return status;
	w.base = slice_base(v, matrix) + v->row * v->part[side].columns + v->column;
	w.out = matrix->numbers;
	if (w.rows > 0 && w.columns > 0)
		status = window_read(&w, &reading, context, err);
	matrix->cell = status == ST_OK ? matrix->numbers : NULL;
	return status;
}

/* ---- the difference -------------------------------------------------------------------------- */

static bool same_number(double a, double b)
{
	return isnan(a) || isnan(b) ? isnan(a) && isnan(b) : !(a < b || a > b);
}

static enum status diff_make(struct view_tensor_values *v, bool differ, struct err *err)
{
	const double *source = v->part[VIEW_OF_SOURCE].cell, *target = v->part[VIEW_OF_TARGET].cell;
	struct view_tensor_matrix *diff = &v->part[VIEW_OF_DIFF];
	const size_t count = values_count(v);
	enum status status;

	if (!source || !target || view__values_parts(v) < VIEW_TENSOR_SHARES)
		return ST_OK;
	status = part_cells(v, diff, err);
	if (status != ST_OK)
		return status;
	if (mem_grow(&v->equals, &v->equal_capacity, count + 1, sizeof(*v->equals)))
		return err_nomem(err);
	for (size_t i = 0; i < count; i++) {
		v->equals[i] = same_number(source[i], target[i]);
		v->differs |= !v->equals[i];
		/* Infinity on both sides is no difference. */
		diff->numbers[i] = v->equals[i] && !isnan(source[i]) ? 0 : target[i] - source[i];
	}
	diff->rows = v->rows;
	diff->columns = v->columns;
	diff->cell = diff->numbers;
	v->equal = differ ? v->equals : NULL;
	return ST_OK;
}

static void scale_over(struct view_axis *scale, const struct view_tensor_values *v, int from,
		       int to)
{
	*scale = (struct view_axis){.quantity = REPORT_REAL};
	view_axis_begin(scale);
	for (int i = from; i <= to; i++)
		if (v->part[i].cell)
			view_axis_take(scale, v->part[i].cell, (int64_t)values_count(v));
	view_axis_settle(scale);
}

/* In pictures what is equal is a hole, with D. */
static void picture_differ(struct view_tensor_values *v)
{
	for (int i = 0; i < VIEW_TENSOR_SHARES; i++)
		for (size_t at = 0; v->part[i].cell && at < values_count(v); at++)
			if (v->equal[at])
				v->part[i].cell[at] = (double)NAN;
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
	values_window(screen);
	for (int side = 0; side < VIEW_TENSORS_SIDES && status == ST_OK; side++)
		status = part_read(screen, context, side, err);
	if (status == ST_OK)
		status = diff_make(v, context->target && context->differ, err);
	scale_over(&v->scale, v, VIEW_OF_SOURCE, VIEW_OF_TARGET);
	scale_over(&v->diff_scale, v, VIEW_OF_DIFF, VIEW_OF_DIFF);
	if (v->picture && v->equal)
		picture_differ(v);
	return status;
}
