/*
 * Reading which captures a database holds, without their values. See outfeed_captures_internal.h.
 *
 * Nothing in the file is believed: sizes are those that the rows really have, and what does not fit
 * together is counted as incomplete. On the reader's thread.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "outfeed/outfeed_captures_internal.h"

#define SLICE_ROWS 2000 /* of one read transaction */
#define LANES      4096 /* replicas of a tensor at the most */

/* ---- shapes ---------------------------------------------------------------------------------- */

/*
 * The number at *@at, which is moved behind it; false: there is none, or a greater one than fits.
 */
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

static bool shape_parse(struct captures_shape *out, const char *text)
{
	const char *at = skip_spaces(text);

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
	return *skip_spaces(at + 1) == '\0';
}

bool captures__shape(struct captures_shape *out, const char *dtype, const char *shape)
{
	bool empty = false;
	int dtypes = 0;

	*out = (struct captures_shape){0};
	if (!dtype || !shape)
		return false;
	while (dtypes < OUTFEED_DTYPES &&
	       strcmp(dtype, outfeed_dtype_text((enum outfeed_dtype)dtypes)) != 0)
		dtypes++;
	if (dtypes == OUTFEED_DTYPES || !shape_parse(out, shape))
		return false;
	out->dtype = (enum outfeed_dtype)dtypes;
	out->bytes = outfeed_dtype_bytes(out->dtype);
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

/* *@out -1: one shape too many. */
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

/* ---- tensors --------------------------------------------------------------------------------- */

static char *column_copy(const struct prof_query *query, int column)
{
	const char *text = prof_column_text(query, column);

	return mem_strdup(!text ? "" : text);
}

static enum status add_tensor(struct outfeed_captures *captures, const struct prof_query *query,
			      struct err *err)
{
	struct captures_tensor *tensor;

	if (mem_grow(&captures->tensors, &captures->tensor_capacity, captures->tensor_count + 1,
		     sizeof(*captures->tensors)) != 0)
		return err_nomem(err);
	tensor = &captures->tensors[captures->tensor_count++];
	*tensor = (struct captures_tensor){.tensor_id = prof_column_int(query, 0),
					   .queue = column_copy(query, 1),
					   .key = column_copy(query, 2)};
	return !tensor->queue || !tensor->key ? err_nomem(err) : ST_OK;
}

static enum status read_tensors(struct outfeed_captures *captures, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(
		&query, captures->db,
		"SELECT tensor_id, queue, key FROM tensor_rows ORDER BY tensor_id", err);

	while (prof_query_next(query, &status, err))
		status = add_tensor(captures, query, err);
	prof_query_close(query);
	return status;
}

static int compare_ids(const void *key, const void *element)
{
	const int64_t id = *(const int64_t *)key;
	const int64_t other = ((const struct captures_tensor *)element)->tensor_id;

	return id < other ? -1 : id > other;
}

static struct captures_tensor *find_tensor(const struct outfeed_captures *captures, int64_t id)
{
	if (captures->tensor_count == 0)
		return NULL;
	return bsearch(&id, captures->tensors, captures->tensor_count, sizeof(*captures->tensors),
		       compare_ids);
}

/* *@out NULL: one replica too many. */
static enum status find_lane(struct captures_tensor *tensor, int64_t rank, int64_t replica,
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

/* ---- captures -------------------------------------------------------------------------------- */

/* A row of capture_rows. */
struct piece {
	int64_t row_id, tensor_id, rank, replica, step, bytes, chunk;
	const char *dtype, *shape;
};

static void break_off(struct captures_tensor *tensor, struct captures_lane *lane)
{
	tensor->incomplete++;
	lane->row_count = lane->start;
	lane->state = CAPTURES_SKIP;
}

static void begin_capture(struct captures_tensor *tensor, struct captures_lane *lane,
			  const struct piece *piece)
{
	if (lane->state == CAPTURES_OPEN)
		break_off(tensor, lane);
	lane->state = CAPTURES_OPEN;
	lane->start = lane->row_count;
	lane->received = lane->next = 0;
	lane->step = piece->step;
	if (!captures__shape(&lane->shape, piece->dtype, piece->shape))
		break_off(tensor, lane);
}

static enum status end_capture(struct captures_tensor *tensor, struct captures_lane *lane,
			       struct err *err)
{
	int32_t shape;
	enum status status = find_shape(tensor, &lane->shape, &shape, err);

	if (status != ST_OK)
		return status;
	if (shape < 0) {
		break_off(tensor, lane);
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

static enum status add_to_lane(struct captures_tensor *tensor, struct captures_lane *lane,
			       const struct piece *piece, struct err *err)
{
	if (piece->chunk == 0)
		begin_capture(tensor, lane, piece);
	else if (lane->state == CAPTURES_IDLE ||
		 (lane->state == CAPTURES_SKIP && piece->chunk < lane->next))
		break_off(tensor, lane); /* one without its beginning */
	if (lane->state == CAPTURES_OPEN && (piece->chunk != lane->next || piece->bytes < 0 ||
					     piece->bytes > lane->shape.bytes - lane->received))
		break_off(tensor, lane);
	lane->next = piece->chunk < INT64_MAX ? piece->chunk + 1 : INT64_MAX;
	if (lane->state != CAPTURES_OPEN)
		return ST_OK;
	if (mem_grow(&lane->row, &lane->row_capacity, lane->row_count + 1, sizeof(*lane->row)) != 0)
		return err_nomem(err);
	lane->row[lane->row_count++] = piece->row_id;
	lane->received += piece->bytes;
	return lane->received == lane->shape.bytes ? end_capture(tensor, lane, err) : ST_OK;
}

static enum status add_piece(struct outfeed_captures *captures, const struct piece *piece,
			     struct err *err)
{
	struct captures_tensor *tensor = find_tensor(captures, piece->tensor_id);
	struct captures_lane *lane;
	enum status status;

	if (!tensor) {
		captures->incomplete += piece->chunk == 0;
		return ST_OK;
	}
	status = find_lane(tensor, piece->rank, piece->replica, &lane, err);
	if (status != ST_OK)
		return status;
	if (!lane) {
		tensor->incomplete += piece->chunk == 0;
		return ST_OK;
	}
	return add_to_lane(tensor, lane, piece, err);
}

/* The size that the row has where that is the one it says it has; -1: not so. What has no bytes may
 * be NULL. */
#define TRUE_SIZE                                                                                  \
	"CASE WHEN typeof(p.bytes) = 'integer' AND p.bytes = CASE typeof(p.data) "                 \
	"WHEN 'blob' THEN length(p.data) WHEN 'null' THEN 0 ELSE -1 END THEN p.bytes ELSE -1 END"

/* Pieces after *@at, which is moved to the last one; *@more false: there were none. */
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

/* Rows do not move any more: point to them. */
static void close_lane(struct captures_tensor *tensor, struct captures_lane *lane)
{
	const int64_t *row = lane->row;

	if (lane->state == CAPTURES_OPEN)
		break_off(tensor, lane);
	for (size_t i = 0; i < lane->count; i++) {
		lane->captures[i].row = row;
		row += lane->captures[i].rows;
	}
}

enum status captures__index(struct outfeed_captures *captures, struct err *err)
{
	enum status status = read_tensors(captures, err);
	int64_t at = INT64_MIN + 1; /* IPS_NULL is none */
	bool more = true;

	while (status == ST_OK && more)
		status = read_slice(captures, &at, &more, err);
	for (size_t i = 0; i < captures->tensor_count; i++)
		for (size_t j = 0; j < captures->tensors[i].lane_count; j++)
			close_lane(&captures->tensors[i], &captures->tensors[i].lanes[j]);
	return status;
}
