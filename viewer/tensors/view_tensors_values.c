/*
 * The values of a capture: which captures there are, which slice of one is shown, and moving in it.
 *
 * Threading: the session's worker.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"

/* --- the list of captures --------------------------------------------------------------------- */

struct finding {
	struct view_tensors *screen;
	struct prof_db *db;
};

static enum status find_take(struct view_tensor_values *values, const struct prof_query *query,
			     struct err *err)
{
	if (mem_grow(&values->list, &values->capacity, (size_t)values->count + 1,
		     sizeof(*values->list)))
		return err_nomem(err);
	values->list[values->count++] = (struct view_tensor_capture){
		.row_id = prof_column_int(query, 0),
		.context_id = prof_column_int(query, 1),
		.step = prof_column_int(query, 2),
		.weight_update = prof_column_int(query, 3),
		.time_ns = INT64_MIN,
	};
	return ST_OK;
}

/* Only first pieces: each is a capture. Its data is not read. */
static enum status find_range(void *user, int64_t from, int64_t to, struct err *err)
{
	struct finding *finding = user;
	struct prof_query *query;
	enum status status = prof_query_open(
		&query, finding->db,
		"SELECT p.row_id, p.context_id, c.step, c.weight_update FROM capture_rows p "
		"LEFT JOIN contexts c ON c.context_id = p.context_id "
		"WHERE p.row_id >= :from AND p.row_id < :to AND p.tensor_id = :tensor "
		"AND coalesce(p.chunk, 0) = 0 AND (:rank IS NULL OR c.rank = :rank)",
		err);
	bool row = true;

	if (status != ST_OK)
		return status;
	prof_query_int(query, ":from", from);
	prof_query_int(query, ":to", to);
	prof_query_int(query, ":tensor", finding->screen->id);
	if (finding->screen->rank != INT64_MIN)
		prof_query_int(query, ":rank", finding->screen->rank);
	while ((status = prof_query_step(query, &row, err)) == ST_OK && row) {
		status = find_take(&finding->screen->values, query, err);
		if (status != ST_OK)
			break;
	}
	prof_query_close(query);
	finding->screen->values.looked += to - from;
	return status;
}

enum status view__last_row(struct prof_db *db, const char *sql, int64_t *out, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql, err);
	bool row = false;

	*out = 0;
	if (status != ST_OK)
		return status;
	status = prof_query_step(query, &row, err);
	if (status == ST_OK && row && prof_column_type(query, 0) == PROF_INT)
		*out = prof_column_int(query, 0);
	prof_query_close(query);
	return status;
}

/* --- its shape -------------------------------------------------------------------------------- */

/* "(125, 256, 128)"; a scalar has one axis of 1. Axes beyond the last one kept are not shown. */
static void shape_read(struct view_tensor_values *values, const char *shape)
{
	const char *at = shape ? shape : "";

	values->ndim = 0;
	str_copy(values->shape_text, sizeof(values->shape_text), at);
	while (*at && values->ndim < VIEW_TENSORS_NDIM) {
		char *end;
		const long long size = strtoll(at, &end, 10);

		if (end == at) {
			at++;
			continue;
		}
		values->shape[values->ndim++] = size > 0 && size < INT64_C(1) << 40 ? size : 0;
		at = end;
	}
	if (values->ndim == 0)
		values->shape[values->ndim++] = 1;
	values->columns = values->shape[values->ndim - 1];
	values->rows = values->ndim > 1 ? values->shape[values->ndim - 2] : 1;
	for (int i = 0; i < VIEW_TENSORS_NDIM; i++)
		if (i >= values->ndim - 2 || values->first[i] >= values->shape[i])
			values->first[i] = 0;
}

static enum status values_about(struct view_tensors *screen, struct prof_db *db, struct err *err)
{
	struct view_tensor_values *values = &screen->values;
	struct prof_query *query;
	enum status status = prof_query_open(
		&query, db, "SELECT dtype, shape FROM capture_rows WHERE row_id = :row", err);
	bool row = false;

	values->dtype[0] = '\0';
	values->rows = values->columns = 0;
	if (status != ST_OK)
		return status;
	prof_query_int(query, ":row", values->list[values->at].row_id);
	status = prof_query_step(query, &row, err);
	if (status == ST_OK && row) {
		const char *dtype = prof_column_text(query, 0);

		str_copy(values->dtype, sizeof(values->dtype), dtype ? dtype : "");
		shape_read(values, prof_column_text(query, 1));
	}
	prof_query_close(query);
	return status;
}

static void values_nearest(struct view_tensor_values *values, int64_t step)
{
	for (int i = 0; i < values->count; i++)
		if (values->list[i].step != INT64_MIN && values->list[i].step <= step)
			values->at = i;
}

enum status view__values_load(struct view_tensors *screen, struct view_context *context,
			      struct err *err)
{
	struct finding finding = {screen, context->source->db};
	struct view_tensor_values *values = &screen->values;
	const struct report_tensor_row *row = view__curve_row(screen);
	const bool fresh = values->at < 0;
	enum status status;

	values->count = 0;
	values->looked = 0;
	values->rows = values->columns = 0;
	if (screen->id == INT64_MIN)
		return ST_OK;
	status = view__last_row(finding.db, "SELECT max(row_id) FROM capture_rows", &values->all,
				err);
	if (status == ST_OK)
		status = report_ranges(values->all, VIEW_TENSORS_CAPTURES, 64, find_range, &finding,
				       err);
	if (status != ST_OK || values->count == 0)
		return status;
	if (fresh || context->follow)
		values->at = values->count - 1;
	if (fresh && row && row->step != INT64_MIN && !context->follow)
		values_nearest(values, row->step);
	if (values->at >= values->count)
		values->at = values->count - 1;
	status = values_about(screen, finding.db, err);
	return status == ST_OK ? view__matrix_load(screen, context, err) : status;
}

/* --- moving ----------------------------------------------------------------------------------- */

static void values_move(int64_t *at, int64_t by, int64_t count, int shown)
{
	*at += by;
	if (*at > count - shown)
		*at = count - shown;
	if (*at < 0)
		*at = 0;
}

/* The next slice of the axes above the last two: the last of those turns first. */
static bool next_slice(struct view_tensor_values *values)
{
	for (int axis = values->ndim - 3; axis >= 0; axis--) {
		if (++values->first[axis] < values->shape[axis])
			return true;
		values->first[axis] = 0;
	}
	return values->ndim > 2;
}

static enum view_answer values_capture(struct view_tensor_values *values, int by)
{
	if (values->count > 0)
		values->at = (values->at + by + values->count) % values->count;
	return VIEW_LOAD;
}

enum view_answer view__values_request(struct view_tensors *screen, struct view_context *context,
				      enum view_request request)
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
		values_move(&v->row, moves[i].rows + moves[i].pages * page, v->rows, v->shown_rows);
		values_move(&v->column, moves[i].columns, v->columns, v->shown_columns);
		return VIEW_LOAD;
	}
	switch (request) {
	case VIEW_HOME_REQUEST:
		v->row = v->column = 0;
		return VIEW_LOAD;
	case VIEW_END_REQUEST:
		values_move(&v->row, v->rows, v->rows, v->shown_rows);
		return VIEW_LOAD;
	case VIEW_STATISTIC_REQUEST:
	case VIEW_STATISTIC_BACK_REQUEST:
		return values_capture(v, request == VIEW_STATISTIC_REQUEST ? 1 : -1);
	case VIEW_BREAKDOWN_REQUEST:
		v->picture = !v->picture;
		return VIEW_LOAD;
	case VIEW_SELECT_REQUEST:
		if (!next_slice(v))
			snprintf(context->message, sizeof(context->message),
				 "a shape of two axes has one slice");
		return VIEW_LOAD;
	default:
		return VIEW_UNHANDLED;
	}
}

void view__values_status(const struct view_tensors *screen, char *out, size_t size)
{
	const struct view_tensor_values *v = &screen->values;
	const bool partial = v->looked < v->all;

	if (v->count == 0) {
		snprintf(out, size, "no captures of %s", screen->key);
		return;
	}
	snprintf(out, size, "capture %d of %d%s: s next%s, b %s", v->at + 1, v->count,
		 partial ? " found" : "", v->ndim > 2 ? ", i next slice" : "",
		 v->picture ? "numbers" : "picture");
}
