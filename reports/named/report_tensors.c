/*
 * Read tensor statistics by ranges of rows. See report_tensors.h.
 *
 * Threading: none. Ownership: the caller owns the rows.
 */
#include "reports/named/report_tensors.h"

#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"

#define RANGES_MOST 256

/* SQLite cannot bind column names: each column has its statement. */
#define COLUMN_MAP(X)                                                                              \
	X(mean)                                                                                    \
	X(std)                                                                                     \
	X(min)                                                                                     \
	X(max)                                                                                     \
	X(abs_max)                                                                                 \
	X(abs_min_nonzero)                                                                         \
	X(l1)                                                                                      \
	X(l2)                                                                                      \
	X(inactive)                                                                                \
	X(update_ratio)

static const char *const column_names[] = {
#define COLUMN_NAME(name) #name,
	COLUMN_MAP(COLUMN_NAME)
#undef COLUMN_NAME
};

static const char *const column_sql[] = {
#define COLUMN_SQL(name)                                                                           \
	"SELECT s.tensor_id, c.rank, s.row_id, s.time_ns, c.epoch, c.weight_update, c.step, "      \
	"coalesce(s.n_nan, 0) + coalesce(s.n_pos_inf, 0) + coalesce(s.n_neg_inf, 0), s." #name     \
	", c.replica FROM tensor_stat_rows s LEFT JOIN contexts c ON c.context_id = s.context_id " \
	"WHERE s.row_id >= :from AND s.row_id < :to "                                              \
	"AND (:tensor IS NULL OR s.tensor_id = :tensor) "                                          \
	"AND (:rank IS NULL OR c.rank = :rank) ORDER BY s.row_id",
	COLUMN_MAP(COLUMN_SQL)
#undef COLUMN_SQL
};

const char *const *report_tensor_columns(int *count)
{
	*count = (int)ARRAY_LEN(column_names);
	return column_names;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

enum status report_ranges(int64_t last, int64_t most, int64_t least, report_range_fn take,
			  void *user, struct err *err)
{
	int64_t ranges = least > 0 ? most / least : RANGES_MOST, each;
	enum status status = ST_OK;

	if (last < 1)
		return ST_OK;
	if (last == INT64_MAX) /* of a damaged file: last + 1 must not overflow */
		last--;
	if (last <= most)
		return take(user, 1, last + 1, err);
	ranges = min(RANGES_MOST, ranges);
	ranges = min(most, ranges);
	ranges = max(2, ranges);
	each = most / ranges;
	for (int64_t i = 0; i < ranges && status == ST_OK; i++) {
		/* The last range ends with the last row; a double is exact enough for the
		 * others. */
		const double part = (double)i / (double)(ranges - 1);
		const int64_t from = i == ranges - 1 ? last - each + 1
						     : 1 + (int64_t)((double)(last - each) * part);

		status = take(user, from, from + each, err);
	}
	return status;
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct reading {
	struct report_tensor_rows *out;
	struct prof_db *db;
	int64_t tensor_id, rank;
	int column;
};

static enum status read_range(void *user, int64_t from, int64_t to, struct err *err)
{
	const struct reading *reading = user;
	struct report_tensor_rows *out = reading->out;
	struct prof_query *query;
	enum status status = prof_query_open(&query, reading->db, column_sql[reading->column], err);

	prof_query_int(query, ":from", from);
	prof_query_int(query, ":to", to);
	if (reading->tensor_id != IPS_NULL)
		prof_query_int(query, ":tensor", reading->tensor_id);
	if (reading->rank != IPS_NULL)
		prof_query_int(query, ":rank", reading->rank);
	while (prof_query_next(query, &status, err)) {
		if (mem_grow(&out->row, &out->capacity, (size_t)out->count + 1,
			     sizeof(*out->row))) {
			status = err_nomem(err);
			break;
		}
		out->row[out->count++] = (struct report_tensor_row){
			.tensor_id = prof_column_int(query, 0),
			.rank = prof_column_int(query, 1),
			.row_id = prof_column_int(query, 2),
			.time_ns = prof_column_int(query, 3),
			.epoch = prof_column_int(query, 4),
			.weight_update = prof_column_int(query, 5),
			.step = prof_column_int(query, 6),
			.n_bad = prof_column_int(query, 7),
			.value = prof_column_real(query, 8),
			.replica = prof_column_int(query, 9),
		};
	}
	prof_query_close(query);
	out->looked += to - from;
	return status;
}

enum status report_tensor_rows_read(struct report_tensor_rows *out, struct prof_db *db,
				    int64_t tensor_id, int64_t rank, const char *column,
				    int64_t most, struct err *err)
{
	struct reading reading = {out, db, tensor_id, rank, 0};
	const int columns = (int)ARRAY_LEN(column_names);
	int64_t rows, tensors;
	enum status status;

	out->count = 0;
	out->looked = out->all = 0;
	while (reading.column < columns && strcmp(column_names[reading.column], column) != 0)
		reading.column++;
	if (reading.column == columns)
		return err_set(err, ST_NOTFOUND, "no column \"%s\" in tensor_stats", column);
	status = prof_db_number(db, "SELECT ifnull(max(row_id), 0) FROM tensor_stat_rows", &rows,
				err);
	if (status == ST_OK)
		status = prof_db_number(db, "SELECT count(*) FROM tensor_rows", &tensors, err);
	/* At least two steps' rows per range, over all tensors. */
	if (status != ST_OK)
		return status;
	out->all = rows;
	return report_ranges(rows, most, 2 * tensors + 1, read_range, &reading, err);
}

void report_tensor_rows_free(struct report_tensor_rows *rows)
{
	mem_free(rows->row);
	memset(rows, 0, sizeof(*rows));
}

enum status report_tensor_find(struct prof_db *db, const char *queue, const char *key, int64_t *out,
			       struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db,
					     "SELECT tensor_id FROM tensor_rows WHERE key IS :key "
					     "ORDER BY queue IS NOT :queue LIMIT 1",
					     err);

	*out = IPS_NULL;
	if (queue)
		prof_query_text(query, ":queue", queue);
	if (key)
		prof_query_text(query, ":key", key);
	if (prof_query_next(query, &status, err))
		*out = prof_column_int(query, 0);
	prof_query_close(query);
	return status;
}
