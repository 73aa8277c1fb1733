/*
 * The values of a tensor: the captures of both reports, the choice of a capture and a slice, and
 * moving in it.
 *
 * Threading: that of the session. Ownership: the screen's.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "common/str.h"

#define TEXT_MOVE     16  /* tokens */
#define PICTURE_ROWS  100 /* in text output; with more rows cells are shared */
#define ROUND_PICTURE 3   /* figures of a head, tokens, the legend */
#define ABOVE_VALUES  4   /* title, note, names, indexes */

/* ---- captures -------------------------------------------------------------------------------- */

struct finding {
	struct view_tensors *screen;
	struct view_tensor_captures *found;
	struct prof_db *db;
	int side;
};

static void tensors_capture_add(struct view_tensor_captures *captures,
				const struct view_tensor_capture *capture, struct err *err)
{
	if (err_stuck(err))
		return;
	if (mem_grow(&captures->list, &captures->capacity, (size_t)captures->count + 1,
		     sizeof(*captures->list)))
		err_nomem(err);
	else
		captures->list[captures->count++] = *capture;
}

/* Collect captures by their first pieces. The data is not read. */
static enum status tensors_find_range(void *user, int64_t from, int64_t to, struct err *err)
{
	const struct finding *finding = user;
	struct prof_query *query = view__tensors_rows(
		finding->screen, finding->side, finding->db,
		"SELECT p.row_id, p.context_id, c.step, c.weight_update, c.microbatch, c.replica, "
		"c.mode FROM capture_rows p LEFT JOIN contexts c ON c.context_id = p.context_id "
		"WHERE p.row_id >= :from AND p.row_id < :to AND p.tensor_id = :tensor "
		"AND coalesce(p.chunk, 0) = 0 AND (:rank IS NULL OR c.rank = :rank)",
		from, to, err);

	while (view_query_next(query, err)) {
		const char *mode = prof_column_text(query, 6);
		struct view_tensor_capture capture = {
			.row_id = {IPS_NULL, IPS_NULL},
			.context_id = {IPS_NULL, IPS_NULL},
			.step = prof_column_int(query, 2),
			.weight_update = prof_column_int(query, 3),
			.microbatch = prof_column_int(query, 4),
			.replica = prof_column_int(query, 5),
		};

		if (!view__replica_shows(finding->screen, capture.replica))
			continue;
		str_copy(capture.mode, sizeof(capture.mode), mode ? mode : "");
		capture.row_id[finding->side] = prof_column_int(query, 0);
		capture.context_id[finding->side] = prof_column_int(query, 1);
		tensors_capture_add(finding->found, &capture, err);
	}
	prof_query_close(query);
	finding->found->looked += to - from;
	return err->status;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* Are they of the same time? Activations have a step, gradients a weight update. */
static bool tensors_same_moment(const struct view_tensor_capture *a,
				const struct view_tensor_capture *b)
{
	if (a->replica != b->replica || a->step != b->step || strcmp(a->mode, b->mode) != 0)
		return false;
	return a->step != IPS_NULL ||
	       (a->weight_update == b->weight_update && a->microbatch == b->microbatch);
}

/* Add the captures before @end that only the Target has. */
static void tensors_pair_others(struct view_tensor_captures *both,
				const struct view_tensor_captures *target, const bool *taken,
				int *from, int end, struct err *err)
{
	for (; *from < end; (*from)++)
		if (!taken[*from])
			tensors_capture_add(both, &target->list[*from], err);
}

/* Merge the captures of both in order; those of the Source get their partners in the Target. */
static void tensors_pair_up(struct view_tensor_values *values, int *partner, bool *taken,
			    struct err *err)
{
	const struct view_tensor_captures *source = &values->found[0], *target = &values->found[1];
	int near = 0, from = 0;

	for (int i = 0; i < source->count; i++) {
		partner[i] = -1;
		/* Two runs mostly have the same order, so start the search after the last
		 * partner. */
		for (int k = 0; k < target->count && partner[i] < 0; k++) {
			const int at = (near + k) % target->count;

			if (!taken[at] && tensors_same_moment(&target->list[at], &source->list[i]))
				partner[i] = at;
		}
		if (partner[i] >= 0) {
			taken[partner[i]] = true;
			near = partner[i] + 1;
		}
	}
	for (int i = 0; i < source->count; i++) {
		struct view_tensor_capture capture = source->list[i];

		if (partner[i] >= 0) {
			tensors_pair_others(&values->both, target, taken, &from, partner[i], err);
			capture.row_id[1] = target->list[partner[i]].row_id[1];
			capture.context_id[1] = target->list[partner[i]].context_id[1];
		}
		tensors_capture_add(&values->both, &capture, err);
	}
	tensors_pair_others(&values->both, target, taken, &from, target->count, err);
}

/* Load the list of captures of both reports. */
static void captures_load(struct view_tensors *screen, struct view_context *context,
			  struct err *err)
{
	struct view_tensor_values *values = &screen->values;
	bool *taken;
	int *partner;

	values->both.count = 0;
	arena_reset(&screen->page_arena);
	for (int side = 0; side < VIEW_TENSORS_SIDES && !err_stuck(err); side++) {
		struct finding finding = {screen, &values->found[side],
					  view__tensors_db(context, side), side};

		if (view_cancelled(context)) {
			err_set(err, ST_INTERRUPTED, "interrupted");
			return;
		}
		finding.found->count = 0;
		finding.found->looked = finding.found->all = 0;
		if (!finding.db || screen->id[side] == IPS_NULL)
			continue;
		finding.found->all = view_query_number(
			finding.db, "SELECT ifnull(max(row_id), 0) FROM capture_rows", err);
		if (!err_stuck(err))
			report_ranges(finding.found->all, VIEW_TENSORS_CAPTURES, 64,
				      tensors_find_range, &finding, err);
	}
	partner = view_alloc(&screen->page_arena, (size_t)values->found[0].count, sizeof(*partner),
			     err);
	taken = view_alloc(&screen->page_arena, (size_t)values->found[1].count, sizeof(*taken),
			   err);
	if (err_stuck(err))
		return;
	values->both.looked = values->found[0].looked + values->found[1].looked;
	values->both.all = sat_add(values->found[0].all, values->found[1].all);
	tensors_pair_up(values, partner, taken, err);
}

/* ---- the shape of the slice ------------------------------------------------------------------ */

/* Parse a shape like "(125, 256, 128)"; a scalar has one axis of 1. Axes beyond VIEW_TENSORS_NDIM
 * are ignored. */
static void tensors_shape_load(struct view_tensors *screen, struct view_context *context, int side,
			       struct err *err)
{
	struct view_tensor_matrix *matrix = &screen->values.part[side];
	const struct view_tensor_capture *capture = view__values_capture(screen);
	struct prof_query *query;

	matrix->dtype[0] = matrix->shape_text[0] = '\0';
	matrix->ndim = 0;
	if (!capture || capture->row_id[side] == IPS_NULL)
		return;
	query = view_query_open(view__tensors_db(context, side),
				"SELECT dtype, shape FROM capture_rows WHERE row_id = :row", err);
	prof_query_int(query, ":row", capture->row_id[side]);
	if (view_query_next(query, err)) {
		const char *dtype = prof_column_text(query, 0), *shape = prof_column_text(query, 1);

		const char *at = shape ? shape : "";

		str_copy(matrix->dtype, sizeof(matrix->dtype), dtype ? dtype : "");
		str_copy(matrix->shape_text, sizeof(matrix->shape_text), at);
		while (*at && matrix->ndim < VIEW_TENSORS_NDIM) {
			char *end;
			const long long size = strtoll(at, &end, 10);

			if (end == at) {
				at++;
				continue;
			}
			matrix->shape[matrix->ndim++] =
				size > 0 && size < INT64_C(1) << 40 ? size : 0;
			at = end;
		}
		if (matrix->ndim == 0)
			matrix->shape[matrix->ndim++] = 1;
	}
	prof_query_close(query);
}

/* The matrix whose axes movements refer to: the Source's, if it has the capture. */
static const struct view_tensor_matrix *
tensors_first_matrix(const struct view_tensor_values *values)
{
	return &values->part[values->part[VIEW_OF_SOURCE].ndim > 0 ? VIEW_OF_SOURCE
								   : VIEW_OF_TARGET];
}

/* Compute rows and columns of the slice; 0 if the matrix has other axes or no such slice. */
static void tensors_slice_size(struct view_tensor_values *values, struct view_tensor_matrix *matrix)
{
	const int ndim = matrix->ndim;

	matrix->rows = matrix->columns = 0;
	if (ndim == 0 || ndim != tensors_first_matrix(values)->ndim)
		return;
	for (int i = 0; i < ndim - 2; i++)
		if (values->first[i] >= matrix->shape[i])
			return;
	matrix->columns = matrix->shape[ndim - 1];
	matrix->rows = ndim > 1 ? matrix->shape[ndim - 2] : 1;
	values->rows = max(matrix->rows, values->rows);
	values->columns = max(matrix->columns, values->columns);
}

/* ---- loading --------------------------------------------------------------------------------- */

static void tensors_values_note(struct view_tensors *screen, const struct view_context *context)
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
	else if (view__values_parts(values) < VIEW_TENSOR_SHARES)
		snprintf(values->note, sizeof(values->note), "No Diff: Target's shape is %s",
			 target->shape_text);
}

/* Choose the last capture at or before the step under the cursor, or the newest. */
static void tensors_values_choose(struct view_tensors *screen, const struct view_context *context)
{
	struct view_tensor_values *values = &screen->values;
	const struct report_tensor_row *row = view__curve_row(screen);

	if (values->wanted == IPS_NULL && row && values->at < 0)
		values->wanted = row->step != IPS_NULL ? row->step : row->weight_update;
	/* Steps of an evaluation follow those of a training and restart at 0. */
	for (int exact = 1; exact >= 0 && values->wanted != IPS_NULL; exact--)
		for (int i = values->both.count - 1; i >= 0 && values->at < 0; i--) {
			const struct view_tensor_capture *capture = &values->both.list[i];
			const int64_t at =
				capture->step != IPS_NULL ? capture->step : capture->weight_update;

			if (at == values->wanted ||
			    (!exact && at != IPS_NULL && at < values->wanted))
				values->at = i;
		}
	if (context->follow || values->at < 0 || values->at >= values->both.count)
		values->at = values->both.count - 1;
	values->wanted = IPS_NULL;
}

void view__values_load(struct view_tensors *screen, struct view_context *context, struct err *err)
{
	struct view_tensor_values *values = &screen->values;
	const struct view_tensor_matrix *first;

	view__sequence_reset(&values->sequence);
	captures_load(screen, context, err);
	values->rows = values->columns = 0;
	for (int i = 0; i < VIEW_TENSOR_SHARES; i++) {
		values->part[i].ndim = 0;
		values->part[i].cell = NULL;
	}
	if (err_stuck(err) || values->both.count == 0) {
		values->both.count = 0;
		values->note[0] = '\0';
		return;
	}
	tensors_values_choose(screen, context);
	for (int side = 0; side < VIEW_TENSORS_SIDES; side++)
		tensors_shape_load(screen, context, side, err);
	if (err_stuck(err))
		return;
	first = tensors_first_matrix(values);
	for (int i = 0; i < VIEW_TENSORS_NDIM; i++)
		if (i >= first->ndim - 2 || values->first[i] >= first->shape[i])
			values->first[i] = 0;
	values->rows = values->columns = 0;
	tensors_slice_size(values, &values->part[VIEW_OF_SOURCE]);
	tensors_slice_size(values, &values->part[VIEW_OF_TARGET]);
	tensors_values_note(screen, context);
	view__matrix_load(screen, context, err);
	view__sequence_load(screen, context, err);
}

/* ---- moving ---------------------------------------------------------------------------------- */

static bool tensors_values_move(int64_t *at, int64_t by, int64_t count, int shown)
{
	const int64_t before = *at;

	*at += by;
	if (*at > count - shown)
		*at = count - shown;
	if (*at < 0)
		*at = 0;
	return *at != before;
}

/* Move to the next or previous slice: the last of the leading axes changes fastest. */
static bool tensors_slice_move(struct view_tensor_values *values, int by)
{
	const struct view_tensor_matrix *first = tensors_first_matrix(values);

	for (int axis = first->ndim - 3; axis >= 0; axis--) {
		values->first[axis] += by;
		if (values->first[axis] >= 0 && values->first[axis] < first->shape[axis])
			return true;
		values->first[axis] = by > 0 ? 0 : first->shape[axis] - 1;
	}
	return false;
}

/* Move by rows, continuing in the next slice. */
static void tensors_rows_move(struct view_tensor_values *v, int64_t by)
{
	int64_t before[VIEW_TENSORS_NDIM];

	if (tensors_values_move(&v->row, by, v->rows, v->shown_rows))
		return;
	memcpy(before, v->first, sizeof(before));
	if (tensors_slice_move(v, by > 0 ? 1 : -1))
		v->row = by > 0 ? 0 : v->rows;
	else
		memcpy(v->first, before, sizeof(before));
}

enum view_answer view__values_request(struct view_tensors *screen, enum view_request request)
{
	struct view_tensor_values *v = &screen->values;
	const struct view_tensor_matrix *first = tensors_first_matrix(v);
	const int64_t page = v->shown_rows > 1 ? v->shown_rows - 1 : 1;
	const bool last = request == VIEW_END_REQUEST, before = v->paged;
	static const struct {
		enum view_request request;
		int rows, columns, pages;
	} moves[] = {{VIEW_UP_REQUEST, -1, 0, 0},      {VIEW_DOWN_REQUEST, 1, 0, 0},
		     {VIEW_LEFT_REQUEST, 0, -1, 0},    {VIEW_RIGHT_REQUEST, 0, 1, 0},
		     {VIEW_PAGE_UP_REQUEST, 0, 0, -1}, {VIEW_PAGE_DOWN_REQUEST, 0, 0, 1}};

	for (size_t i = 0; i < ARRAY_LEN(moves); i++) {
		if (moves[i].request != request)
			continue;
		if (v->paged && moves[i].columns)
			tensors_values_move(&v->token, moves[i].columns * TEXT_MOVE, v->columns, 1);
		else if (v->paged)
			tensors_values_move(&v->sample, moves[i].rows + moves[i].pages, v->rows, 1);
		else if (moves[i].columns && v->picture && first->ndim > 3)
			tensors_values_move(&v->first[0], moves[i].columns, first->shape[0], 1);
		else if (moves[i].columns)
			tensors_values_move(&v->column, moves[i].columns, v->columns,
					    v->shown_columns);
		else
			tensors_rows_move(v, moves[i].rows + moves[i].pages * page);
		return VIEW_LOAD;
	}
	switch (request) {
	case VIEW_HOME_REQUEST:
	case VIEW_END_REQUEST:
		for (int i = 0; i < first->ndim - 2; i++)
			v->first[i] = last ? first->shape[i] - 1 : 0;
		v->row = last ? v->rows : 0;
		v->column = last ? v->column : 0;
		return VIEW_LOAD;
	case VIEW_STATISTIC_REQUEST:
	case VIEW_STATISTIC_BACK_REQUEST:
		if (v->both.count > 0)
			v->at = view_next_choice(v->at, v->both.count, request);
		return VIEW_LOAD;
	case VIEW_BREAKDOWN_REQUEST:
		v->paged = v->picture && view__sequence_has_page(v);
		v->picture = !v->picture && !before;
		return VIEW_LOAD;
	default:
		return VIEW_UNHANDLED;
	}
}

const char *view__values_next(const struct view_tensor_values *v)
{
	static const char *const pages[] = {"", "", "text", "norms"};

	return v->both.count == 0                         ? ""
	       : v->picture && view__sequence_has_page(v) ? pages[v->sequence.kind]
	       : v->picture || v->paged                   ? "numbers"
							  : "picture";
}

int view__values_height(const struct view_tensor_values *v, int width)
{
	const int64_t rows = v->paged     ? view__sequence_height(&v->sequence, width)
			     : v->picture ? min(v->rows, PICTURE_ROWS) + ROUND_PICTURE
					  : v->rows;

	return (int)min(rows, 1000000) + ABOVE_VALUES;
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
		 v->paged && v->sequence.kind == VIEW_SEQUENCE_LOSSES ? ", j next sample, l later"
		 : tensors_first_matrix(v)->ndim <= 2                 ? ""
		 : v->picture && tensors_first_matrix(v)->ndim > 3    ? ", j next slice, l sample"
								   : ", j past the end next slice",
		 view__values_next(v));
}
