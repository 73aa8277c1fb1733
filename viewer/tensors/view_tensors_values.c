/*
 * The values of a capture: which capture and which slice of it is shown, and moving in it.
 *
 * Threading: the session's worker.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"

enum status view__last_row(struct prof_db *db, const char *sql, int64_t *out, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql, err);

	*out = 0;
	if (prof_query_next(query, &status, err) && prof_column_type(query, 0) == PROF_INT)
		*out = prof_column_int(query, 0);
	prof_query_close(query);
	return status;
}

const struct view_tensor_capture *view__values_capture(const struct view_tensors *screen)
{
	const struct view_tensor_values *values = &screen->values;

	return values->at >= 0 && values->at < values->both.count ? &values->both.list[values->at]
								  : NULL;
}

/* ---- its shape ------------------------------------------------------------------------------- */

/* "(125, 256, 128)"; a scalar has one axis of 1. Axes beyond the last one kept are not shown. */
static void shape_read(struct view_tensor_matrix *matrix, const char *shape)
{
	const char *at = shape ? shape : "";

	str_copy(matrix->shape_text, sizeof(matrix->shape_text), at);
	while (*at && matrix->ndim < VIEW_TENSORS_NDIM) {
		char *end;
		const long long size = strtoll(at, &end, 10);

		if (end == at) {
			at++;
			continue;
		}
		matrix->shape[matrix->ndim++] = size > 0 && size < INT64_C(1) << 40 ? size : 0;
		at = end;
	}
	if (matrix->ndim == 0)
		matrix->shape[matrix->ndim++] = 1;
}

static enum status shape_load(struct view_tensors *screen, struct view_context *context, int side,
			      struct err *err)
{
	struct view_tensor_matrix *matrix = &screen->values.part[side];
	const struct view_tensor_capture *capture = view__values_capture(screen);
	struct prof_query *query;
	enum status status;

	matrix->dtype[0] = matrix->shape_text[0] = '\0';
	matrix->ndim = 0;
	if (!capture || capture->row_id[side] == IPS_NULL)
		return ST_OK;
	status = prof_query_open(&query, view__tensors_db(context, side),
				 "SELECT dtype, shape FROM capture_rows WHERE row_id = :row", err);
	prof_query_int(query, ":row", capture->row_id[side]);
	if (prof_query_next(query, &status, err)) {
		const char *dtype = prof_column_text(query, 0);

		str_copy(matrix->dtype, sizeof(matrix->dtype), dtype ? dtype : "");
		shape_read(matrix, prof_column_text(query, 1));
	}
	prof_query_close(query);
	return status;
}

/* The one whose axes count: the Source's, where there is one. */
static const struct view_tensor_matrix *first_matrix(const struct view_tensor_values *values)
{
	return &values->part[values->part[VIEW_OF_SOURCE].ndim > 0 ? VIEW_OF_SOURCE
								   : VIEW_OF_TARGET];
}

/* The slice's rows and columns; a matrix of other axes may not have that slice: 0. */
static void slice_take(struct view_tensor_values *values, struct view_tensor_matrix *matrix)
{
	const int ndim = matrix->ndim;

	matrix->rows = matrix->columns = 0;
	if (ndim == 0 || ndim != first_matrix(values)->ndim)
		return;
	for (int i = 0; i < ndim - 2; i++)
		if (values->first[i] >= matrix->shape[i])
			return;
	matrix->columns = matrix->shape[ndim - 1];
	matrix->rows = ndim > 1 ? matrix->shape[ndim - 2] : 1;
	values->rows = max(matrix->rows, values->rows);
	values->columns = max(matrix->columns, values->columns);
}

static void slice_choose(struct view_tensor_values *values)
{
	const struct view_tensor_matrix *first = first_matrix(values);

	for (int i = 0; i < VIEW_TENSORS_NDIM; i++)
		if (i >= first->ndim - 2 || values->first[i] >= first->shape[i])
			values->first[i] = 0;
	values->rows = values->columns = 0;
	slice_take(values, &values->part[VIEW_OF_SOURCE]);
	slice_take(values, &values->part[VIEW_OF_TARGET]);
}

/* ---- loading --------------------------------------------------------------------------------- */

static bool same_shape(const struct view_tensor_matrix *a, const struct view_tensor_matrix *b)
{
	return a->ndim == b->ndim &&
	       memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof(a->shape[0])) == 0;
}

static void values_note(struct view_tensors *screen, const struct view_context *context)
{
	static const char *const names[] = {"Source", "Target"};
	struct view_tensor_values *values = &screen->values;
	const struct view_tensor_matrix *source = &values->part[VIEW_OF_SOURCE];
	const struct view_tensor_matrix *target = &values->part[VIEW_OF_TARGET];
	const int missing = source->ndim > 0;
	const char *when = screen->replicas > 1 ? "at this step of the replica" : "at this step";

	values->note[0] = '\0';
	if (!context->target || values->both.count == 0)
		return;
	if (source->ndim == 0 || target->ndim == 0)
		snprintf(values->note, sizeof(values->note), "No %s %s: %s alone", names[missing],
			 values->found[missing].count > 0 ? when : "captures", names[!missing]);
	else if (!same_shape(source, target))
		snprintf(values->note, sizeof(values->note), "No Diff: Target's shape is %s",
			 target->shape_text);
}

int view__values_parts(const struct view_tensor_values *values)
{
	const struct view_tensor_matrix *source = &values->part[VIEW_OF_SOURCE];
	const struct view_tensor_matrix *target = &values->part[VIEW_OF_TARGET];

	if (source->ndim == 0 || target->ndim == 0)
		return source->ndim > 0 || target->ndim > 0;
	return same_shape(source, target) ? 3 : 2;
}

bool view__values_has(const struct view_tensor_values *values,
		      const struct view_tensor_matrix *matrix, int row, int column)
{
	return values->row + row < matrix->rows && values->column + column < matrix->columns;
}

static void values_nearest(struct view_tensor_values *values, int64_t wanted)
{
	values->at = values->both.count - 1;
	for (int i = values->both.count - 1; i >= 0 && wanted != IPS_NULL; i--) {
		const struct view_tensor_capture *capture = &values->both.list[i];
		const int64_t at =
			capture->step != IPS_NULL ? capture->step : capture->weight_update;

		if (at == IPS_NULL || at > wanted)
			continue;
		values->at = i;
		return;
	}
}

/* Which one: that of the step that the cursor is on, or the newest. */
static void values_choose(struct view_tensors *screen, const struct view_context *context)
{
	struct view_tensor_values *values = &screen->values;
	const struct report_tensor_row *row = view__curve_row(screen);

	if (values->wanted == IPS_NULL && row && values->at < 0)
		values->wanted = row->step != IPS_NULL ? row->step : row->weight_update;
	if (values->at < 0)
		values_nearest(values, context->follow ? IPS_NULL : values->wanted);
	if (context->follow || values->at >= values->both.count)
		values->at = values->both.count - 1;
	values->wanted = IPS_NULL;
}

enum status view__values_load(struct view_tensors *screen, struct view_context *context,
			      struct err *err)
{
	struct view_tensor_values *values = &screen->values;
	enum status status = view__captures_load(screen, context, err);

	values->rows = values->columns = 0;
	for (int i = 0; i < VIEW_TENSOR_SHARES; i++) {
		values->part[i].ndim = 0;
		values->part[i].cell = NULL;
	}
	if (status != ST_OK || values->both.count == 0) {
		values->both.count = 0;
		values->note[0] = '\0';
		return status;
	}
	values_choose(screen, context);
	for (int side = 0; side < VIEW_TENSORS_SIDES && status == ST_OK; side++)
		status = shape_load(screen, context, side, err);
	if (status != ST_OK)
		return status;
	slice_choose(values);
	values_note(screen, context);
	return view__matrix_load(screen, context, err);
}

/* ---- moving ---------------------------------------------------------------------------------- */

static bool values_move(int64_t *at, int64_t by, int64_t count, int shown)
{
	const int64_t before = *at;

	*at += by;
	if (*at > count - shown)
		*at = count - shown;
	if (*at < 0)
		*at = 0;
	return *at != before;
}

/*
 * The next slice of the axes above the last two, or the one before: the last of those turns first.
 */
static bool slice_move(struct view_tensor_values *values, int by)
{
	const struct view_tensor_matrix *first = first_matrix(values);

	for (int axis = first->ndim - 3; axis >= 0; axis--) {
		values->first[axis] += by;
		if (values->first[axis] >= 0 && values->first[axis] < first->shape[axis])
			return true;
		values->first[axis] = by > 0 ? 0 : first->shape[axis] - 1;
	}
	return false;
}

/* Rows go on in the next slice. */
static void rows_move(struct view_tensor_values *v, int64_t by)
{
	int64_t before[VIEW_TENSORS_NDIM];

	if (values_move(&v->row, by, v->rows, v->shown_rows))
		return;
	memcpy(before, v->first, sizeof(before));
	if (slice_move(v, by > 0 ? 1 : -1))
		v->row = by > 0 ? 0 : v->rows;
	else
		memcpy(v->first, before, sizeof(before));
}

static void values_end(struct view_tensor_values *v, bool last)
{
	const struct view_tensor_matrix *first = first_matrix(v);

	for (int i = 0; i < first->ndim - 2; i++)
		v->first[i] = last ? first->shape[i] - 1 : 0;
	v->row = last ? v->rows : 0;
	v->column = last ? v->column : 0;
}

static void capture_move(struct view_tensor_values *values, int by)
{
	if (values->both.count > 0)
		values->at = (values->at + by + values->both.count) % values->both.count;
}

enum view_answer view__values_request(struct view_tensors *screen, enum view_request request)
{
	struct view_tensor_values *v = &screen->values;
	const int64_t page = v->shown_rows > 1 ? v->shown_rows - 1 : 1;
	static const struct {
		enum view_request request;
		int rows, columns, pages;
	} moves[] = {{VIEW_UP_REQUEST, -1, 0, 0},      {VIEW_DOWN_REQUEST, 1, 0, 0},
		     {VIEW_LEFT_REQUEST, 0, -1, 0},    {VIEW_RIGHT_REQUEST, 0, 1, 0},
		     {VIEW_PAGE_UP_REQUEST, 0, 0, -1}, {VIEW_PAGE_DOWN_REQUEST, 0, 0, 1}};

	for (size_t i = 0; i < ARRAY_LEN(moves); i++) {
		if (moves[i].request != request)
			continue;
		if (moves[i].columns)
			values_move(&v->column, moves[i].columns, v->columns, v->shown_columns);
		else
			rows_move(v, moves[i].rows + moves[i].pages * page);
		return VIEW_LOAD;
	}
	switch (request) {
	case VIEW_HOME_REQUEST:
	case VIEW_END_REQUEST:
		values_end(v, request == VIEW_END_REQUEST);
		return VIEW_LOAD;
	case VIEW_STATISTIC_REQUEST:
	case VIEW_STATISTIC_BACK_REQUEST:
		capture_move(v, request == VIEW_STATISTIC_REQUEST ? 1 : -1);
		return VIEW_LOAD;
	case VIEW_BREAKDOWN_REQUEST:
		v->picture = !v->picture;
		return VIEW_LOAD;
	default:
		return VIEW_UNHANDLED;
	}
}

void view__values_status(const struct view_tensors *screen, char *out, size_t size)
{
	const struct view_tensor_values *v = &screen->values;
	char replica[48];

	view__replica_text(screen, replica, sizeof(replica));
	if (v->both.count == 0) {
		snprintf(out, size, "no captures of %s", screen->key);
		return;
	}
	snprintf(out, size, "capture %d of %d%s%s: s next%s, b %s", v->at + 1, v->both.count,
		 v->both.looked < v->both.all ? " found" : "", replica,
		 first_matrix(v)->ndim > 2 ? ", j past the end next slice" : "",
		 v->picture ? "numbers" : "picture");
}
