/*
 * Tensor statistics by key, read in ranges of rows so that no transaction is long.
 *
 * Threading: none. Ownership: what is handed out is the caller's arena's.
 */
#include "reports/named/report_tensors.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"

#define RANGE_ROWS 20000 /* rows looked at in one transaction */

/* The columns a curve can have. SQL names cannot be bound: each has its statement. */
#define COLUMN_MAP(X)                                                                              \
	X(mean)                                                                                    \
	X(std)                                                                                     \
	X(min)                                                                                     \
	X(max)                                                                                     \
	X(abs_max)                                                                                 \
	X(abs_min_nonzero)                                                                         \
	X(l1)                                                                                      \
	X(l2)                                                                                      \
	X(n)                                                                                       \
	X(n_nan)                                                                                   \
	X(n_pos_inf)                                                                               \
	X(n_neg_inf)                                                                               \
	X(n_zero)                                                                                  \
	X(n_neg)                                                                                   \
	X(n_pos)

static const char *const column_names[] = {
#define COLUMN_NAME(name) #name,
	COLUMN_MAP(COLUMN_NAME)
#undef COLUMN_NAME
};

static const char *const column_sql[] = {
#define COLUMN_SQL(name)                                                                           \
	"SELECT s.time_ns, c.step, c.weight_update, c.epoch, s." #name                             \
	", coalesce(s.n_nan, 0) + coalesce(s.n_pos_inf, 0) + coalesce(s.n_neg_inf, 0) "            \
	"FROM tensor_stat_rows s LEFT JOIN contexts c ON c.context_id = s.context_id "             \
	"WHERE s.tensor_id = :tensor AND s.row_id >= :from AND s.row_id < :to ORDER BY s.row_id",
	COLUMN_MAP(COLUMN_SQL)
#undef COLUMN_SQL
};

const char *const *report_tensor_columns(int *count)
{
	*count = (int)ARRAY_LEN(column_names);
	return column_names;
}

/* --- ranges ------------------------------------------------------------------------------------
 */

static enum status tensors_last_row(struct prof_db *db, int64_t *out, struct err *err)
{
	struct prof_query *query;
	enum status status =
		prof_query_open(&query, db, "SELECT max(row_id) FROM tensor_stat_rows", err);
	bool row;

	*out = 0;
	if (status != ST_OK)
		return status;
	status = prof_query_step(query, &row, err);
	if (status == ST_OK && row && prof_column_type(query, 0) != PROF_NULL)
		*out = prof_column_int(query, 0);
	prof_query_close(query);
	return status;
}

typedef enum status (*range_fn)(void *user, const struct prof_query *query, struct err *err);

/* Run @sql over rows 1 .. @last, a range at a time, @take for each row. @tensor_id is bound unless
 * negative. */
static enum status tensors_ranges(struct prof_db *db, const char *sql, int64_t tensor_id,
				  int64_t last, range_fn take, void *user, struct err *err)
{
	enum status status = ST_OK;

	for (int64_t from = 1; from <= last && status == ST_OK; from += RANGE_ROWS) {
		int64_t to = from + RANGE_ROWS <= last ? from + RANGE_ROWS : last + 1;
		struct prof_query *query;
		bool row = true;

		status = prof_query_open(&query, db, sql, err);
		if (status != ST_OK)
			return status;
		if (tensor_id >= 0)
			prof_query_int(query, ":tensor", tensor_id);
		prof_query_int(query, ":from", from);
		prof_query_int(query, ":to", to);
		while (status == ST_OK && row) {
			status = prof_query_step(query, &row, err);
			if (status == ST_OK && row)
				status = take(user, query, err);
		}
		prof_query_close(query);
	}
	return status;
}

/* --- the list ----------------------------------------------------------------------------------
 */

struct tensor_list {
	struct report_tensor *items;
	int count;
	size_t capacity;
	struct arena *arena;
};

static enum status tensor_text(struct arena *arena, const struct prof_query *query, int column,
			       const char **out, struct err *err)
{
	const char *text = prof_column_text(query, column);

	*out = NULL;
	if (!text)
		return ST_OK;
	*out = arena_strdup(arena, text);
	return *out ? ST_OK : err_nomem(err);
}

static enum status tensor_add(struct tensor_list *list, const struct prof_query *query,
			      struct err *err)
{
	struct report_tensor item = {.tensor_id = prof_column_int(query, 0),
				     .stage = prof_column_int(query, 1)};
	const char **texts[] = {&item.queue, &item.key, &item.kind, &item.layer, &item.shape};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		enum status status = tensor_text(list->arena, query, 2 + (int)i, texts[i], err);

		if (status != ST_OK)
			return status;
	}
	if (mem_grow(&list->items, &list->capacity, (size_t)list->count + 1, sizeof(*list->items)))
		return err_nomem(err);
	list->items[list->count++] = item;
	return ST_OK;
}

static enum status tensors_read(struct prof_db *db, struct tensor_list *list, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(
		&query, db,
		"SELECT tensor_id, stage, queue, key, kind, layer, shape FROM tensor_rows "
		"ORDER BY tensor_id",
		err);
	bool row = true;

	if (status != ST_OK)
		return status;
	while (status == ST_OK && row) {
		status = prof_query_step(query, &row, err);
		if (status == ST_OK && row)
			status = tensor_add(list, query, err);
	}
	prof_query_close(query);
	return status;
}

static enum status tensors_sum(void *user, const struct prof_query *query, struct err *err)
{
	struct tensor_list *list = user;
	int64_t id = prof_column_int(query, 0);
	int low = 0, high = list->count - 1;

	(void)err;
	while (low <= high) {
		int middle = low + (high - low) / 2;
		struct report_tensor *item = &list->items[middle];

		if (item->tensor_id == id) {
			item->rows += prof_column_int(query, 1);
			item->n_nan += prof_column_int(query, 2);
			item->n_inf += prof_column_int(query, 3);
			return ST_OK;
		}
		if (item->tensor_id < id)
			low = middle + 1;
		else
			high = middle - 1;
	}
	return ST_OK; /* of a tensor that came after the list was read */
}

enum status report_tensors_list(struct prof_db *db, struct arena *arena, struct report_tensor **out,
				int *count, struct err *err)
{
	static const char sql[] =
		"SELECT tensor_id, count(*), coalesce(sum(n_nan), 0), "
		"coalesce(sum(n_pos_inf), 0) + coalesce(sum(n_neg_inf), 0) FROM tensor_stat_rows "
		"WHERE row_id >= :from AND row_id < :to GROUP BY tensor_id";
	struct tensor_list list = {.arena = arena};
	int64_t last = 0;
	enum status status = tensors_read(db, &list, err);

	*out = NULL;
	*count = 0;
	if (status == ST_OK)
		status = tensors_last_row(db, &last, err);
	if (status == ST_OK)
		status = tensors_ranges(db, sql, -1, last, tensors_sum, &list, err);
	if (status == ST_OK) {
		*out = arena_alloc(arena, (size_t)list.count + 1, sizeof(**out));
		status = *out ? ST_OK : err_nomem(err);
	}
	if (status == ST_OK && list.count) {
		memcpy(*out, list.items, (size_t)list.count * sizeof(**out));
		*count = list.count;
	}
	mem_free(list.items);
	return status;
}

/* --- curves ------------------------------------------------------------------------------------
 */

struct curve {
	struct report_point *points;
	int64_t rows, row; /* all, and the one to come */
	int count;         /* points in all */
	int64_t finite;    /* values of the present point */
	double sum;
};

static enum status curve_count(void *user, const struct prof_query *query, struct err *err)
{
	(void)err;
	*(int64_t *)user += prof_column_int(query, 0);
	return ST_OK;
}

static void curve_value(struct curve *curve, struct report_point *point, double value)
{
	if (isnan(value))
		return;
	curve->sum += value;
	curve->finite++;
	point->mean = curve->sum / (double)curve->finite;
	if (isnan(point->least) || value < point->least)
		point->least = value;
	if (isnan(point->greatest) || value > point->greatest)
		point->greatest = value;
}

static enum status curve_row(void *user, const struct prof_query *query, struct err *err)
{
	struct curve *curve = user;
	struct report_point *point;

	(void)err;
	if (curve->row >= curve->rows)
		return ST_OK; /* written since they were counted */
	/* Points share the rows evenly; no product overflows for fewer than 2^31 points and rows.
	 */
	point = &curve->points[curve->row * curve->count / curve->rows];
	curve->row++;
	if (!point->rows) {
		*point = (struct report_point){.first_row_time_ns = prof_column_int(query, 0),
					       .step = prof_column_int(query, 1),
					       .weight_update = prof_column_int(query, 2),
					       .epoch = prof_column_int(query, 3),
					       .mean = NAN,
					       .least = NAN,
					       .greatest = NAN};
		curve->sum = 0;
		curve->finite = 0;
	}
	point->rows++;
	point->n_bad += prof_column_int(query, 5);
	curve_value(curve, point, prof_column_real(query, 4));
	return ST_OK;
}

static int curve_column(const char *column)
{
	for (size_t i = 0; i < ARRAY_LEN(column_names); i++)
		if (!strcmp(column_names[i], column))
			return (int)i;
	return -1;
}

enum status report_tensor_curve(struct prof_db *db, int64_t tensor_id, const char *column,
				int points, struct arena *arena, struct report_point **out,
				int *count, struct err *err)
{
	static const char sql_count[] =
		"SELECT count(*) FROM tensor_stat_rows "
		"WHERE tensor_id = :tensor AND row_id >= :from AND row_id < :to";
	int at = curve_column(column);
	struct curve curve = {0};
	int64_t last = 0;
	enum status status;

	assert(points > 0);
	*out = NULL;
	*count = 0;
	if (at < 0)
		return err_set(err, ST_NOTFOUND, "no column \"%s\" in tensor_stats", column);
	status = tensors_last_row(db, &last, err);
	if (status == ST_OK)
		status = tensors_ranges(db, sql_count, tensor_id, last, curve_count, &curve.rows,
					err);
	if (status != ST_OK || !curve.rows)
		return status;

	curve.count = curve.rows < points ? (int)curve.rows : points;
	curve.points = arena_alloc(arena, (size_t)curve.count, sizeof(*curve.points));
	if (!curve.points)
		return err_nomem(err);
	status = tensors_ranges(db, column_sql[at], tensor_id, last, curve_row, &curve, err);
	if (status != ST_OK)
		return status;
	*out = curve.points;
	*count = curve.count;
	return ST_OK;
}
