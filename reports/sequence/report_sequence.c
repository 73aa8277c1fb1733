/*
 * Read captured values of sequences and compute statistics. See report_sequence.h.
 */
#include "reports/sequence/report_sequence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/dtype.h"
#include "common/json.h"
#include "common/mem.h"
#include "common/str.h"
#include "reports/table/report_internal.h"

/* ---- a captured value ------------------------------------------------------------------------ */

static const char kept_sql[] =
	"SELECT p.row_id, p.tensor_id, p.context_id, p.dtype, p.shape, coalesce(t.key, '?'), "
	"t.dims, coalesce(c.step, c.weight_update), c.replica, c.rank, c.step IS NULL "
	"FROM capture_rows p JOIN tensor_rows t ON t.tensor_id = p.tensor_id "
	"LEFT JOIN contexts c ON c.context_id = p.context_id "
	"WHERE (t.key = :key OR (t.dims LIKE :dims AND t.kind IN ('activation', 'weight'))) "
	"AND coalesce(p.chunk, 0) = 0 "
	"AND (:step IS NULL OR coalesce(c.step, c.weight_update) = :step) "
	"AND (:replica IS NULL OR coalesce(c.replica, 0) = :replica) "
	"AND (:rank IS NULL OR c.rank = :rank) "
	"AND (:below IS NULL OR p.row_id < :below) "
	"AND (:near IS NULL OR p.row_id BETWEEN :near - 4096 AND :near + 4096) "
	"ORDER BY p.row_id DESC LIMIT 1";

static void bind(struct prof_query *query, const char *name, int64_t value)
{
	if (value != IPS_NULL)
		prof_query_int(query, name, value);
}

/* Parse "(32, 128)"; false: too many axes or values. */
static bool read_shape(struct report_kept *out, const char *text)
{
	out->ndim = 0;
	out->count = 1;
	while (*text) {
		char *end;
		const long long size = strtoll(text, &end, 10);

		if (end == text) {
			text++;
			continue;
		}
		if (out->ndim == REPORT_KEPT_NDIM || size < 1 || size > REPORT_KEPT_MOST ||
		    out->count * size > REPORT_KEPT_MOST)
			return false;
		out->count *= size;
		out->shape[out->ndim++] = size;
		text = end;
	}
	return true;
}

static void read_pieces(struct report_kept *out, struct prof_db *db, enum dtype dtype,
			int64_t tensor_id, int64_t context_id, struct err *err)
{
	const size_t wanted = (size_t)out->count, width = (size_t)dtype_bytes(dtype);
	struct prof_query *query;
	size_t had = 0;
	int64_t next = 0;

	prof_query_open(&query, db,
			"SELECT coalesce(chunk, 0), data FROM capture_rows WHERE row_id >= :row "
			"AND tensor_id = :tensor AND context_id IS :context ORDER BY row_id",
			err);
	bind(query, ":row", out->row_id);
	bind(query, ":tensor", tensor_id);
	bind(query, ":context", context_id);
	while (had < wanted && prof_query_next(query, &err->status, err)) {
		size_t size;
		const void *data = prof_column_blob(query, 1, &size);

		if (prof_column_int(query, 0) != next++ || size / width > wanted - had)
			break;
		dtype_to_float(dtype, out->values + had, data, size / width);
		had += size / width;
	}
	prof_query_close(query);
	if (!err_stuck(err) && had < wanted)
		err_set(err, ST_FORMAT, "%s: its values of step %lld are not all there", out->key,
			(long long)out->step);
}

static enum status not_found(const struct report_kept_at *at, struct err *err)
{
	if (at->key && at->step != IPS_NULL)
		return err_set(err, ST_NOTFOUND, "no values of \"%s\" were kept at step %lld",
			       at->key, (long long)at->step);
	if (at->key)
		return err_set(err, ST_NOTFOUND,
			       "no values of \"%s\" were kept (outfeed.capture: tier full)",
			       at->key);
	return err_set(err, ST_NOTFOUND,
		       "no such values were kept (outfeed.capture names them, tier full)");
}

enum status report_kept_read(struct report_kept *out, struct arena *arena, struct prof_db *db,
			     const struct report_kept_at *at, struct err *err)
{
	struct prof_query *query;
	int64_t tensor_id = IPS_NULL, context_id = IPS_NULL;
	enum dtype dtype = DTYPES;
	struct err own;
	bool fits = true;

	err = err_start(err, &own);
	prof_query_open(&query, db, kept_sql, err);
	*out = (struct report_kept){.row_id = IPS_NULL};
	if (at->key)
		prof_query_text(query, ":key", at->key);
	if (at->dims)
		prof_query_text(query, ":dims", at->dims);
	bind(query, ":step", at->step);
	bind(query, ":replica", at->replica);
	bind(query, ":rank", at->rank);
	bind(query, ":below", at->below);
	bind(query, ":near", at->near);
	if (prof_query_next(query, &err->status, err)) {
		const char *shape = prof_column_text(query, 4);

		shape = shape ? shape : "";
		out->row_id = prof_column_int(query, 0);
		tensor_id = prof_column_int(query, 1);
		context_id = prof_column_int(query, 2);
		dtype = dtype_find(prof_column_text(query, 3));
		out->key = report__copy(arena, prof_column_text(query, 5), err);
		out->shape_text = report__copy(arena, shape, err);
		out->dims = report__copy(arena, prof_column_text(query, 6), err);
		out->step = prof_column_int(query, 7);
		out->replica = prof_column_int(query, 8);
		out->rank = prof_column_int(query, 9);
		out->by_update = prof_column_int(query, 10) != 0;
		fits = dtype != DTYPES && read_shape(out, shape);
		if (fits)
			out->values = arena_alloc(arena, (size_t)out->count, sizeof(*out->values));
		if (fits && !out->values)
			err_nomem(err);
	}
	prof_query_close(query);
	if (err_stuck(err))
		return err->status;
	if (out->row_id == IPS_NULL)
		return not_found(at, err);
	if (!fits)
		return err_set(err, ST_LIMIT,
			       "%s: values of an unknown type, or more than %lld of them, "
			       "are not read here",
			       out->key, (long long)REPORT_KEPT_MOST);
	read_pieces(out, db, dtype, tensor_id, context_id, err);
	return err->status;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static void read_names(struct report_tokens *out, struct arena *arena, const struct json_at *root,
		       struct err *err)
{
	struct json_at names, item = {0};
	const char *text;

	if (err_stuck(err) || !json_child(root, "names", &names))
		return;
	if (cJSON_IsString(names.node)) {
		out->bytes = true;
		return;
	}
	out->names = arena_alloc(arena, (size_t)json_count(&names) + 1, sizeof(*out->names));
	if (!out->names)
		err_nomem(err);
	while (!err_stuck(err) && json_next(&names, &item) && json_text(&item, &text, err) == ST_OK)
		out->names[out->count++] = report__copy(arena, text, err);
}

enum status report_tokens_read(struct report_tokens *out, struct arena *arena, struct prof_db *db,
			       struct err *err)
{
	const char *text, *key;
	struct json_at root, at;
	struct err own;
	cJSON *node;

	*out = (struct report_tokens){0};
	err = err_start(err, &own);
	report__fact(&text, arena, db, "tokens", err);
	if (!text || json_parse(&node, text, strlen(text), "meta tokens", err) != ST_OK)
		return err->status;
	root = json_root("meta tokens", node);
	if (json_child(&root, "key", &at) && json_text(&at, &key, err) == ST_OK)
		out->key = report__copy(arena, key, err);
	read_names(out, arena, &root, err);
	cJSON_Delete(node);
	return err->status;
}

/* Copy a name, with control characters and invalid UTF-8 escaped. */
static void escape_name(const char *name, size_t length, char out[REPORT_TOKEN_SIZE])
{
	size_t to = 0;

	for (size_t i = 0; i < length && to + 6 < REPORT_TOKEN_SIZE;) {
		const unsigned char c = (unsigned char)name[i];
		uint32_t character;
		const size_t wide = (size_t)utf8_read(name + i, &character);

		if (c == '\n' || c == '\t') {
			to += (size_t)snprintf(out + to, REPORT_TOKEN_SIZE - to, "\\%c",
					       c == '\n' ? 'n' : 't');
		} else if (wide == 0 || utf8_is_hidden(character)) {
			to += (size_t)snprintf(out + to, REPORT_TOKEN_SIZE - to, "\\x%02x", c);
			i++;
			continue;
		} else {
			memcpy(out + to, name + i, wide);
			to += wide;
		}
		i += wide;
	}
	out[to] = '\0';
}

const char *report_token_text(const struct report_tokens *tokens, double number,
			      char out[REPORT_TOKEN_SIZE])
{
	const char byte[2] = {number >= 0 && number < 256 ? (char)(unsigned char)number : '\0',
			      '\0'};

	if (tokens->bytes && number >= 0 && number < 256)
		escape_name(byte, 1, out);
	else if (number >= 0 && number < tokens->count)
		escape_name(tokens->names[(int)number], strlen(tokens->names[(int)number]), out);
	else
		snprintf(out, REPORT_TOKEN_SIZE, "%.0f", number);
	return out;
}

enum status report_tokens_of(const float **out, struct arena *arena, struct prof_db *db,
			     const struct report_tokens *tokens, const struct report_kept *kept,
			     const char *key, int64_t sample, int64_t length, struct err *err)
{
	const struct report_kept_at at = {.key = key ? key : tokens->key,
					  .step = kept->step,
					  .replica = kept->replica,
					  .rank = kept->rank,
					  .near = kept->row_id,
					  .below = IPS_NULL};
	struct report_kept found;
	struct err why;

	*out = NULL;
	if (!at.key || report_kept_read(&found, arena, db, &at, &why) == ST_NOTFOUND)
		return ST_OK;
	if (err_stuck(&why)) {
		*err = why;
		return why.status;
	}
	if (found.ndim == 2 && found.shape[1] == length && sample < found.shape[0])
		*out = found.values + sample * length;
	return ST_OK;
}

/* ---- statistics ------------------------------------------------------------------------------ */

struct report_head report_head_of(const float *scores, int64_t count, int64_t stride,
				  int64_t queries, int64_t keys)
{
	const double rows = (double)(count * queries);
	struct report_head out = {0.0, 0.0, 0.0};

	for (int64_t m = 0; m < count; m++)
		for (int64_t q = 0; q < queries; q++) {
			const float *row = scores + m * stride + q * keys;
			double most = 0.0;

			for (int64_t k = 0; k < keys; k++) {
				const double p = (double)row[k];

				out.entropy -= p > 0.0 ? p * log(p) : 0.0;
				out.distance += p * fabs((double)(q - k));
				most = p > most ? p : most;
			}
			out.greatest += most;
		}
	return (struct report_head){out.entropy / rows, out.distance / rows, out.greatest / rows};
}

static double row_norm(const float *values, const float *first, int64_t columns)
{
	double sum = 0.0;

	for (int64_t c = 0; c < columns; c++) {
		const double x = (double)values[c] - (first ? (double)first[c] : 0.0);

		sum += x * x;
	}
	return sqrt(sum);
}

enum status report_rows_of(struct report_row **out, struct arena *arena, struct prof_db *db,
			   const struct report_kept *kept, struct err *err)
{
	const int64_t columns = kept->shape[1];
	int64_t first_row = kept->row_id;
	struct report_kept first;
	bool known;
	struct report_kept_at at = REPORT_KEPT_ANY;
	struct prof_query *query;
	struct err own;

	err = err_start(err, &own);
	if (kept->ndim != 2)
		return err_set(err, ST_INVALID,
			       "%s is %s: a kernel of an Embedding has rows and features",
			       kept->key, kept->shape_text);
	*out = arena_alloc(arena, (size_t)kept->shape[0], sizeof(**out));
	if (!*out)
		return err_nomem(err);
	/* The first capture of the tensor; it may be @kept itself. */
	prof_query_open(&query, db,
			"SELECT min(p.row_id) FROM capture_rows p JOIN tensor_rows t "
			"ON t.tensor_id = p.tensor_id WHERE t.key = :key",
			err);
	first = *kept;
	at.key = kept->key;
	prof_query_text(query, ":key", kept->key);
	if (prof_query_next(query, &err->status, err))
		first_row = prof_column_int(query, 0);
	prof_query_close(query);
	if (!err_stuck(err) && first_row < kept->row_id) {
		at.below = first_row + 1;
		report_kept_read(&first, arena, db, &at, err);
	}
	known = !err_stuck(err) && first.row_id != kept->row_id && first.count == kept->count;
	for (int64_t r = 0; r < kept->shape[0] && !err_stuck(err); r++) {
		const float *row = kept->values + r * columns;

		(*out)[r] = (struct report_row){
			r, row_norm(row, NULL, columns),
			known ? row_norm(row, first.values + r * columns, columns) : (double)NAN};
	}
	return err->status;
}

static int by_norm(const void *left, const void *right)
{
	const struct report_row *a = left, *b = right;

	if (a->norm < b->norm || a->norm > b->norm)
		return a->norm < b->norm ? 1 : -1;
	return a->row < b->row ? -1 : 1;
}

void report_rows_sort(struct report_row *rows, int64_t count)
{
	qsort(rows, (size_t)count, sizeof(*rows), by_norm);
}
