/*
 * The reader of captured values: which captures a database has, stacked into arrays, and their
 * values. See outfeed_captures.h.
 *
 * The reader trusts nothing in the file: it derives sizes from the rows' data, and counts captures
 * whose pieces do not fit together as incomplete. One thread per reader. It owns its index and a
 * buffer for one piece.
 */
#include "outfeed/outfeed_captures.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "outfeed/outfeed_captures_internal.h"

#define SLICE_ROWS 2000 /* of one read transaction */
#define LANES      4096 /* most replicas of a tensor */

/* ---- the index: shapes ----------------------------------------------------------------------- */

/* Parse the number at *@at and advance *@at past it. false: no number, or overflow. */
static bool shape_number(const char **at, int64_t *out)
{
	int64_t value = 0;

	if (**at < '0' || **at > '9')
		return false;
	for (; **at >= '0' && **at <= '9'; (*at)++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, **at - '0', &value))
			return false;
	*out = value;
	return true;
}

static const char *skip_spaces(const char *at)
{
	while (*at == ' ')
		at++;
	return at;
}

bool captures__shape(struct captures_shape *out, const char *dtype, const char *shape)
{
	bool empty = false;
	const char *at;

	*out = (struct captures_shape){.dtype = dtype_find(dtype)};
	if (out->dtype == DTYPES || !shape)
		return false;
	at = skip_spaces(shape);
	if (*at++ != '(')
		return false;
	for (at = skip_spaces(at); *at != ')'; at = skip_spaces(at)) {
		if (out->ndim == OUTFEED_NDIM_MAX || !shape_number(&at, &out->dim[out->ndim]))
			return false;
		out->ndim++;
		at = skip_spaces(at);
		if (*at == ',')
			at++;
		else if (*at != ')')
			return false;
	}
	if (*skip_spaces(at + 1) != '\0')
		return false;

	out->bytes = dtype_bytes(out->dtype);
	for (int i = 0; i < out->ndim; i++)
		empty |= out->dim[i] == 0;
	for (int i = 0; i < out->ndim && !empty; i++)
		if (__builtin_mul_overflow(out->bytes, out->dim[i], &out->bytes))
			return false;
	if (empty)
		out->bytes = 0;
	return true;
}

static bool shape_equal(const struct captures_shape *a, const struct captures_shape *b)
{
	return a->dtype == b->dtype && a->ndim == b->ndim &&
	       memcmp(a->dim, b->dim, (size_t)a->ndim * sizeof(a->dim[0])) == 0;
}

/* Find or add @shape. *@out is -1 if the tensor has OUTFEED_SHAPES others. */
static enum status find_shape(struct captures_tensor *tensor, const struct captures_shape *shape,
			      int32_t *out, struct err *err)
{
	for (size_t i = 0; i < tensor->shape_count; i++) {
		*out = (int32_t)i;
		if (shape_equal(&tensor->shapes[i], shape))
			return ST_OK;
	}
	*out = -1;
	if (tensor->shape_count == OUTFEED_SHAPES)
		return ST_OK;
	if (mem_grow(&tensor->shapes, &tensor->shape_capacity, tensor->shape_count + 1,
		     sizeof(*tensor->shapes)) != 0)
		return err_nomem(err);
	*out = (int32_t)tensor->shape_count;
	tensor->shapes[tensor->shape_count++] = *shape;
	return ST_OK;
}

/* ---- the index: tensors ---------------------------------------------------------------------- */

/* Find or add a replica. *@out is NULL if the tensor has LANES others. */
static enum status get_lane(struct captures_tensor *tensor, int64_t rank, int64_t replica,
			    struct captures_lane **out, struct err *err)
{
	for (size_t i = 0; i < tensor->lane_count; i++) {
		*out = &tensor->lanes[i];
		if ((*out)->rank == rank && (*out)->replica == replica)
			return ST_OK;
	}
	*out = NULL;
	if (tensor->lane_count == LANES)
		return ST_OK;
	if (mem_grow(&tensor->lanes, &tensor->lane_capacity, tensor->lane_count + 1,
		     sizeof(*tensor->lanes)) != 0)
		return err_nomem(err);
	*out = &tensor->lanes[tensor->lane_count++];
	**out = (struct captures_lane){.rank = rank, .replica = replica};
	return ST_OK;
}

/* ---- the index: captures --------------------------------------------------------------------- */

/* A row of capture_rows. */
struct piece {
	int64_t row_id, tensor_id, rank, replica, step, bytes, chunk;
	const char *dtype, *shape;
};

static void abandon_capture(struct captures_tensor *tensor, struct captures_lane *lane)
{
	tensor->incomplete++;
	lane->row_count = lane->start;
	lane->state = CAPTURES_SKIP;
}

static enum status end_capture(struct captures_tensor *tensor, struct captures_lane *lane,
			       struct err *err)
{
	int32_t shape;
	enum status status = find_shape(tensor, &lane->shape, &shape, err);

	if (status != ST_OK)
		return status;
	if (shape < 0) {
		abandon_capture(tensor, lane);
		return ST_OK;
	}
	if (mem_grow(&lane->captures, &lane->capacity, lane->count + 1, sizeof(*lane->captures)) !=
	    0)
		return err_nomem(err);
	lane->captures[lane->count++] = (struct captures_one){
		.rows = (int64_t)(lane->row_count - lane->start),
		.step = lane->step,
		.shape = shape,
	};
	lane->state = CAPTURES_IDLE;
	lane->start = lane->row_count;
	return ST_OK;
}

static enum status add_piece(struct outfeed_captures *captures, const struct piece *piece,
			     struct err *err)
{
	struct captures_tensor *tensor;
	const size_t at =
		sorted_place(captures->tensors, captures->tensor_count, sizeof(*captures->tensors),
			     offsetof(struct captures_tensor, tensor_id), piece->tensor_id);
	struct captures_lane *lane;
	enum status status;

	tensor = at < captures->tensor_count && captures->tensors[at].tensor_id == piece->tensor_id
			 ? &captures->tensors[at]
			 : NULL;
	if (!tensor) {
		captures->incomplete += piece->chunk == 0;
		return ST_OK;
	}
	status = get_lane(tensor, piece->rank, piece->replica, &lane, err);
	if (status != ST_OK)
		return status;
	if (!lane) {
		tensor->incomplete += piece->chunk == 0;
		return ST_OK;
	}

	if (piece->chunk == 0) {
		if (lane->state == CAPTURES_OPEN)
			abandon_capture(tensor, lane);
		lane->state = CAPTURES_OPEN;
		lane->start = lane->row_count;
		lane->received = lane->next = 0;
		lane->step = piece->step;
		if (!captures__shape(&lane->shape, piece->dtype, piece->shape))
			abandon_capture(tensor, lane);
	} else if (lane->state == CAPTURES_IDLE ||
		   (lane->state == CAPTURES_SKIP && piece->chunk < lane->next)) {
		abandon_capture(tensor, lane); /* its first piece is missing */
	}
	if (lane->state == CAPTURES_OPEN && (piece->chunk != lane->next || piece->bytes < 0 ||
					     piece->bytes > lane->shape.bytes - lane->received))
		abandon_capture(tensor, lane);
	lane->next = piece->chunk < INT64_MAX ? piece->chunk + 1 : INT64_MAX;
	if (lane->state != CAPTURES_OPEN)
		return ST_OK;
	if (mem_grow(&lane->row, &lane->row_capacity, lane->row_count + 1, sizeof(*lane->row)) != 0)
		return err_nomem(err);
	lane->row[lane->row_count++] = piece->row_id;
	lane->received += piece->bytes;
	return lane->received == lane->shape.bytes ? end_capture(tensor, lane, err) : ST_OK;
}

/* The size of the row's data if the row states the same size, otherwise -1. Data of no bytes may be
 * NULL. */
#define TRUE_SIZE                                                                                  \
	"CASE WHEN typeof(p.bytes) = 'integer' AND p.bytes = CASE typeof(p.data) "                 \
	"WHEN 'blob' THEN length(p.data) WHEN 'null' THEN 0 ELSE -1 END THEN p.bytes ELSE -1 END"

/* Read pieces after *@at and advance *@at to the last one. *@more is false if there were none. */
static enum status read_slice(struct outfeed_captures *captures, int64_t *at, bool *more,
			      struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(
		&query, captures->db,
		"SELECT p.row_id, p.tensor_id, c.rank, c.replica, coalesce(c.step, "
		"c.weight_update), " TRUE_SIZE ", p.chunk, p.dtype, p.shape FROM capture_rows p "
		"LEFT JOIN contexts c ON c.context_id = p.context_id WHERE p.row_id > :at "
		"ORDER BY p.row_id LIMIT :count",
		err);

	*more = false;
	prof_query_int(query, ":at", *at);
	prof_query_int(query, ":count", SLICE_ROWS);
	while (prof_query_next(query, &status, err)) {
		*more = true;
		*at = prof_column_int(query, 0);
		status = add_piece(captures,
				   &(struct piece){.row_id = *at,
						   .tensor_id = prof_column_int(query, 1),
						   .rank = prof_column_int(query, 2),
						   .replica = prof_column_int(query, 3),
						   .step = prof_column_int(query, 4),
						   .bytes = prof_column_int(query, 5),
						   .chunk = prof_column_int(query, 6),
						   .dtype = prof_column_text(query, 7),
						   .shape = prof_column_text(query, 8)},
				   err);
	}
	prof_query_close(query);
	return status;
}

static enum status read_index(struct outfeed_captures *captures, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(
		&query, captures->db,
		"SELECT tensor_id, queue, key FROM tensor_rows ORDER BY tensor_id", err);
	int64_t at = INT64_MIN + 1; /* IPS_NULL means no row */
	bool more = true;

	while (prof_query_next(query, &status, err)) {
		const char *queue = prof_column_text(query, 1), *key = prof_column_text(query, 2);
		struct captures_tensor *tensor;

		if (mem_grow(&captures->tensors, &captures->tensor_capacity,
			     captures->tensor_count + 1, sizeof(*captures->tensors)) != 0) {
			status = err_nomem(err);
			break;
		}
		tensor = &captures->tensors[captures->tensor_count++];
		*tensor = (struct captures_tensor){.tensor_id = prof_column_int(query, 0),
						   .queue = mem_strdup(!queue ? "" : queue),
						   .key = mem_strdup(!key ? "" : key)};
		if (!tensor->queue || !tensor->key)
			status = err_nomem(err);
	}
	prof_query_close(query);
	while (status == ST_OK && more)
		status = read_slice(captures, &at, &more, err);
	for (size_t i = 0; i < captures->tensor_count; i++) {
		for (size_t j = 0; j < captures->tensors[i].lane_count; j++) {
			struct captures_lane *lane = &captures->tensors[i].lanes[j];
			const int64_t *row = lane->row; /* grows no more */

			if (lane->state == CAPTURES_OPEN)
				abandon_capture(&captures->tensors[i], lane);
			for (size_t k = 0; k < lane->count; k++) {
				lane->captures[k].row = row;
				row += lane->captures[k].rows;
			}
		}
	}
	return status;
}

/* ---- stacking -------------------------------------------------------------------------------- */

static int compare_lanes(const void *a, const void *b)
{
	const struct captures_lane *p = a, *q = b;

	return SORTED_BY(p, q, rank, replica);
}

static int compare_rows(const void *a, const void *b)
{
	const struct captures_one *p = *(const struct captures_one *const *)a;
	const struct captures_one *q = *(const struct captures_one *const *)b;

	return SORTED_ORDER(p->row[0], q->row[0]);
}

/* Count the captures of @shape in all replicas; *@lanes is the number of replicas that have any. */
static size_t count_all(const struct captures_tensor *tensor, int32_t shape, size_t *lanes)
{
	size_t all = 0;

	*lanes = 0;
	for (size_t i = 0; i < tensor->lane_count; i++) {
		const struct captures_lane *lane = &tensor->lanes[i];
		size_t count = 0;

		for (size_t j = 0; j < lane->count; j++)
			count += lane->captures[j].shape == shape;
		*lanes += count > 0;
		all += count;
	}
	return all;
}

/* Stack the captures of @shape with an axis of @lanes replicas. Return false if replicas differ in
 * their number of captures or in their steps. */
static bool stack_replicas(struct captures_array *array, int32_t shape, size_t count, size_t lanes)
{
	const struct captures_tensor *tensor = array->tensor;
	size_t at = 0;

	for (size_t i = 0; i < tensor->lane_count; i++) {
		const struct captures_lane *lane = &tensor->lanes[i];
		size_t enqueue = 0;

		for (size_t j = 0; j < lane->count; j++) {
			const struct captures_one *one = &lane->captures[j];

			if (one->shape != shape)
				continue;
			if (enqueue * lanes >= count ||
			    (at > 0 && array->captures[enqueue * lanes]->step != one->step))
				return false;
			array->captures[enqueue++ * lanes + at] = one;
		}
		if (enqueue > 0 && enqueue * lanes != count)
			return false;
		at += enqueue > 0;
	}
	return true;
}

static void stack_by_time(struct captures_array *array, int32_t shape)
{
	const struct captures_tensor *tensor = array->tensor;
	size_t at = 0;

	for (size_t i = 0; i < tensor->lane_count; i++) {
		const struct captures_lane *lane = &tensor->lanes[i];

		for (size_t j = 0; j < lane->count; j++)
			if (lane->captures[j].shape == shape)
				array->captures[at++] = &lane->captures[j];
	}
	qsort(array->captures, at, sizeof(array->captures[0]), compare_rows);
}

static enum status add_array(struct outfeed_captures *captures,
			     const struct captures_tensor *tensor, int32_t shape, bool main,
			     struct err *err)
{
	struct captures_array *array;
	struct outfeed_array *shown;
	size_t lanes, count = count_all(tensor, shape, &lanes);

	if (count == 0)
		return ST_OK;
	if (mem_grow(&captures->arrays, &captures->array_capacity, captures->array_count + 1,
		     sizeof(*captures->arrays)) != 0)
		return err_nomem(err);
	array = &captures->arrays[captures->array_count++];
	*array = (struct captures_array){.tensor = tensor,
					 .shape = &tensor->shapes[shape],
					 .main = main,
					 .shown = {.queue = tensor->queue,
						   .key = tensor->key,
						   .incomplete = main ? tensor->incomplete : 0}};
	array->captures = mem_calloc(count, sizeof(array->captures[0]));
	if (!array->captures)
		return err_nomem(err);
	shown = &array->shown;
	shown->uneven = !stack_replicas(array, shape, count, lanes);
	if (shown->uneven)
		stack_by_time(array, shape);
	shown->replicas = shown->uneven ? 1 : (int)lanes;
	shown->dtype = array->shape->dtype;
	shown->shape[shown->ndim++] = (int64_t)count / shown->replicas;
	if (shown->replicas > 1)
		shown->shape[shown->ndim++] = shown->replicas;
	for (int i = 0; i < array->shape->ndim; i++)
		shown->shape[shown->ndim++] = array->shape->dim[i];
	if (__builtin_mul_overflow((int64_t)count, array->shape->bytes, &shown->bytes))
		return err_set(err, ST_LIMIT, "captures of \"%.64s\" have too many bytes",
			       tensor->key);
	return ST_OK;
}

static enum status stack_arrays(struct outfeed_captures *captures, struct err *err)
{
	enum status status = ST_OK;

	for (size_t i = 0; i < captures->tensor_count && status == ST_OK; i++) {
		struct captures_tensor *tensor = &captures->tensors[i];
		const size_t before = captures->array_count;
		size_t most = 0, lanes;
		int32_t best = 0;

		/* The main shape is the most frequent one; if several are, the first. */
		for (size_t k = 0; k < tensor->shape_count; k++) {
			size_t count = count_all(tensor, (int32_t)k, &lanes);

			if (count > most) {
				most = count;
				best = (int32_t)k;
			}
		}
		if (tensor->lane_count > 0)
			qsort(tensor->lanes, tensor->lane_count, sizeof(*tensor->lanes),
			      compare_lanes);
		if (tensor->shape_count > 0)
			status = add_array(captures, tensor, best, true, err);
		for (size_t j = 0; j < tensor->shape_count && status == ST_OK; j++)
			if ((int32_t)j != best)
				status = add_array(captures, tensor, (int32_t)j, false, err);
		if (captures->array_count == before)
			captures->incomplete += tensor->incomplete;
	}
	return status;
}

/* ---- opening and closing --------------------------------------------------------------------- */

typedef enum status (*open_step)(struct outfeed_captures *captures, struct err *err);

enum status outfeed_captures_open(struct outfeed_captures **out, struct prof_db *db,
				  struct err *err)
{
	static const open_step steps[] = {read_index, stack_arrays, captures__names};
	struct outfeed_captures *captures = mem_calloc(1, sizeof(*captures));
	enum status status = ST_OK;

	*out = NULL;
	if (!captures)
		return err_nomem(err);
	captures->db = db;
	for (size_t i = 0; i < ARRAY_LEN(steps) && status == ST_OK; i++)
		status = steps[i](captures, err);
	if (status != ST_OK) {
		outfeed_captures_close(captures);
		return status;
	}
	*out = captures;
	return ST_OK;
}

void outfeed_captures_close(struct outfeed_captures *captures)
{
	if (!captures)
		return;
	for (size_t i = 0; i < captures->array_count; i++) {
		mem_free(captures->arrays[i].name);
		mem_free(captures->arrays[i].captures);
	}
	mem_free(captures->arrays);
	for (size_t i = 0; i < captures->tensor_count; i++) {
		struct captures_tensor *tensor = &captures->tensors[i];

		for (size_t j = 0; j < tensor->lane_count; j++) {
			mem_free(tensor->lanes[j].row);
			mem_free(tensor->lanes[j].captures);
		}
		mem_free(tensor->lanes);
		mem_free(tensor->shapes);
		mem_free(tensor->queue);
		mem_free(tensor->key);
	}
	mem_free(captures->tensors);
	mem_free(captures);
}

int outfeed_captures_count(const struct outfeed_captures *captures)
{
	return captures->array_count > INT32_MAX ? INT32_MAX : (int)captures->array_count;
}

static const struct captures_array *array_at(const struct outfeed_captures *captures, int index)
{
	assert(index >= 0 && (size_t)index < captures->array_count);
	return &captures->arrays[index];
}

const struct outfeed_array *outfeed_captures_at(const struct outfeed_captures *captures, int index)
{
	return &array_at(captures, index)->shown;
}

int64_t outfeed_captures_incomplete(const struct outfeed_captures *captures)
{
	int64_t all = captures->incomplete;

	for (size_t i = 0; i < captures->array_count; i++)
		all += captures->arrays[i].shown.incomplete;
	return all;
}

int64_t outfeed_captures_step(const struct outfeed_captures *captures, int index, int64_t enqueue)
{
	const struct captures_array *array = array_at(captures, index);

	assert(enqueue >= 0 && enqueue < array->shown.shape[0]);
	return array->captures[enqueue * array->shown.replicas]->step;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* A piece of a capture, copied from the database, because the sink may be slow. */
struct piece_buffer {
	char *bytes;
	size_t size, capacity;
};

static enum status piece_copy(struct piece_buffer *piece, const struct prof_query *query,
			      int64_t room, struct err *err)
{
	const void *blob = prof_column_blob(query, 0, &piece->size);

	if (prof_column_type(query, 0) != PROF_BLOB && prof_column_type(query, 0) != PROF_NULL)
		return err_set(err, ST_FORMAT, "a captured piece is no longer what it was");
	if (piece->size > (uint64_t)room)
		return err_set(err, ST_FORMAT, "a captured piece has grown");
	if (piece->size == 0)
		return ST_OK;
	if (!blob || mem_grow(&piece->bytes, &piece->capacity, piece->size, 1) != 0)
		return err_nomem(err);
	memcpy(piece->bytes, blob, piece->size);
	return ST_OK;
}

/* Query row @row_id of capture_rows by @sql. The caller closes *@out, after a failure too. */
static enum status row_open(struct prof_query **out, struct prof_db *db, const char *sql,
			    int64_t row_id, struct err *err)
{
	enum status status = prof_query_open(out, db, sql, err);

	if (status != ST_OK)
		return status;
	prof_query_int(*out, ":row", row_id);
	if (!prof_query_next(*out, &status, err) && status == ST_OK)
		status = err_set(err, ST_FORMAT, "a captured piece is gone");
	return status;
}

enum status outfeed_captures_read_part(struct outfeed_captures *captures, int index, int64_t first,
				       int64_t count, outfeed_captures_sink sink, void *user,
				       struct err *err)
{
	const struct captures_array *array = array_at(captures, index);
	const int64_t end = (first + count) * array->shown.replicas;
	struct piece_buffer piece = {0};
	enum status status = ST_OK;

	assert(first >= 0 && count >= 0 && first + count <= array->shown.shape[0]);
	for (int64_t i = first * array->shown.replicas; i < end && status == ST_OK; i++) {
		int64_t bytes = array->shape->bytes;

		for (int64_t j = 0; j < array->captures[i]->rows && status == ST_OK; j++) {
			struct prof_query *query;

			status = row_open(&query, captures->db,
					  "SELECT data FROM capture_rows WHERE row_id = :row",
					  array->captures[i]->row[j], err);
			if (status == ST_OK)
				status = piece_copy(&piece, query, bytes, err);
			prof_query_close(query);
			if (status != ST_OK || piece.size == 0)
				continue;
			bytes -= (int64_t)piece.size;
			status = sink(user, piece.bytes, piece.size, err);
		}
		if (status == ST_OK && bytes != 0)
			status = err_set(err, ST_FORMAT, "a captured piece has shrunk");
	}
	mem_free(piece.bytes);
	return status;
}

enum status outfeed_captures_read(struct outfeed_captures *captures, int index,
				  outfeed_captures_sink sink, void *user, struct err *err)
{
	return outfeed_captures_read_part(captures, index, 0,
					  outfeed_captures_at(captures, index)->shape[0], sink,
					  user, err);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static enum status keys_read(struct ips_keys *out, struct prof_db *db, int64_t row_id,
			     struct err *err)
{
	static const char *const modes[] = {
		[IPS_TRAIN] = "train", [IPS_EVALUATE] = "evaluate", [IPS_PREDICT] = "predict"};
	struct prof_query *query;
	const char *mode, *phase;
	enum status status = row_open(
		&query, db,
		"SELECT c.epoch, c.execution, c.weight_update, c.step, c.microbatch, c.replica, "
		"c.ipu, c.stage, c.mode, c.phase FROM capture_rows p "
		"LEFT JOIN contexts c ON c.context_id = p.context_id WHERE p.row_id = :row",
		row_id, err);

	if (status == ST_OK) {
		*out = (struct ips_keys){
			.epoch = prof_column_int(query, 0),
			.execution = prof_column_int(query, 1),
			.weight_update = prof_column_int(query, 2),
			.step = prof_column_int(query, 3),
			.microbatch = prof_column_int(query, 4),
			.replica = prof_column_int(query, 5),
			.ipu = prof_column_int(query, 6),
			.stage = prof_column_int(query, 7),
			.mode = IPS_MODE_NULL,
		};
		mode = prof_column_text(query, 8);
		for (uint8_t i = 1; mode && i < ARRAY_LEN(modes); i++)
			if (strcmp(mode, modes[i]) == 0)
				out->mode = i;
		phase = prof_column_text(query, 9);
		if (phase && phase[0] != 0 && strchr("FBWRU", phase[0]))
			out->phase = phase[0];
	}
	prof_query_close(query);
	return status;
}

enum status outfeed_captures_keys(struct outfeed_captures *captures, int index,
				  struct ips_keys *keys, struct err *err)
{
	const struct captures_array *array = array_at(captures, index);
	const int64_t count = array->shown.shape[0] * array->shown.replicas;
	enum status status = ST_OK;

	for (int64_t i = 0; i < count && status == ST_OK; i++)
		status = keys_read(&keys[i], captures->db, array->captures[i]->row[0], err);
	return status;
}
