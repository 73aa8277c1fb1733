/*
 * The reader of kept values. See outfeed_captures.h; what is kept where: outfeed_captures_index.c.
 *
 * One thread per reader. It owns its index and a buffer for one piece.
 */
#include "outfeed/outfeed_captures.h"

#include <assert.h>
#include <string.h>

#include "common/mem.h"
#include "outfeed/outfeed_captures_internal.h"

enum status outfeed_captures_open(struct outfeed_captures **out, struct prof_db *db,
				  struct err *err)
{
	struct outfeed_captures *captures = mem_calloc(1, sizeof(*captures));
	enum status status;

	*out = NULL;
	if (!captures)
		return err_nomem(err);
	captures->db = db;
	status = captures__index(captures, err);
	if (status == ST_OK)
		status = captures__arrays(captures, err);
	if (status == ST_OK)
		status = captures__names(captures, err);
	if (status != ST_OK) {
		outfeed_captures_close(captures);
		return status;
	}
	*out = captures;
	return ST_OK;
}

static void tensor_fini(struct captures_tensor *tensor)
{
	for (size_t i = 0; i < tensor->lane_count; i++) {
		mem_free(tensor->lanes[i].row);
		mem_free(tensor->lanes[i].captures);
	}
	mem_free(tensor->lanes);
	mem_free(tensor->shapes);
	mem_free(tensor->queue);
	mem_free(tensor->key);
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
	for (size_t i = 0; i < captures->tensor_count; i++)
		tensor_fini(&captures->tensors[i]);
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

/* A piece of a capture, copied out of the database: what is done with it may take long. */
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

/* Row @row_id of capture_rows by @sql, ready in *@out; to be closed after a failure too. */
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

/* The piece of row @row_id, of at most @room bytes. */
static enum status piece_read(struct piece_buffer *piece, struct prof_db *db, int64_t row_id,
			      int64_t room, struct err *err)
{
	struct prof_query *query;
	enum status status = row_open(
		&query, db, "SELECT data FROM capture_rows WHERE row_id = :row", row_id, err);

	if (status == ST_OK)
		status = piece_copy(piece, query, room, err);
	prof_query_close(query);
	return status;
}

static enum status read_one(const struct captures_one *one, int64_t bytes, struct prof_db *db,
			    struct piece_buffer *piece, outfeed_captures_take take, void *user,
			    struct err *err)
{
	enum status status = ST_OK;

	for (int64_t i = 0; i < one->rows && status == ST_OK; i++) {
		status = piece_read(piece, db, one->row[i], bytes, err);
		if (status != ST_OK || piece->size == 0)
			continue;
		bytes -= (int64_t)piece->size;
		status = take(user, piece->bytes, piece->size, err);
	}
	if (status == ST_OK && bytes != 0)
		status = err_set(err, ST_FORMAT, "a captured piece has shrunk");
	return status;
}

enum status outfeed_captures_read_part(struct outfeed_captures *captures, int index, int64_t first,
				       int64_t count, outfeed_captures_take take, void *user,
				       struct err *err)
{
	const struct captures_array *array = array_at(captures, index);
	const int64_t end = (first + count) * array->shown.replicas;
	struct piece_buffer piece = {0};
	enum status status = ST_OK;

	assert(first >= 0 && count >= 0 && first + count <= array->shown.shape[0]);
	for (int64_t i = first * array->shown.replicas; i < end && status == ST_OK; i++)
		status = read_one(array->captures[i], array->shape->bytes, captures->db, &piece,
				  take, user, err);
	mem_free(piece.bytes);
	return status;
}

enum status outfeed_captures_read(struct outfeed_captures *captures, int index,
				  outfeed_captures_take take, void *user, struct err *err)
{
	return outfeed_captures_read_part(captures, index, 0,
					  outfeed_captures_at(captures, index)->shape[0], take,
					  user, err);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static uint8_t mode_of(const char *text)
{
	static const char *const modes[] = {
		[IPS_TRAIN] = "train", [IPS_EVALUATE] = "evaluate", [IPS_PREDICT] = "predict"};

	for (uint8_t i = 1; text && i < ARRAY_LEN(modes); i++)
		if (strcmp(text, modes[i]) == 0)
			return i;
	return IPS_MODE_NULL;
}

static enum status keys_read(struct ips_keys *out, struct prof_db *db, int64_t row_id,
			     struct err *err)
{
	struct prof_query *query;
	const char *phase;
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
			.mode = mode_of(prof_column_text(query, 8)),
		};
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
