/*
 * Reading metrics: sums, ranges of rows, ends of epochs; and the trend of a metric.
 *
 * Threading: the caller's. Ownership: the caller's arena.
 */
#include "viewer/metrics/view_metrics_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"

/* ---- trends ---------------------------------------------------------------------------------- */

#define QUARTERS_FROM 8 /* values; of fewer the last two are compared */
#define ERRORS        2 /* standard errors that tell a way from noise */

/* The mean of @count points and the square of its standard error. */
static double metrics_mean(const struct view_metric_point *points, size_t count, double *error)
{
	double sum = 0, squares = 0, mean;

	for (size_t i = 0; i < count; i++)
		sum += points[i].value;
	mean = sum / (double)count;
	for (size_t i = 0; i < count; i++)
		squares += (points[i].value - mean) * (points[i].value - mean);
	*error = count > 1 ? squares / (double)(count - 1) / (double)count : 0;
	return mean;
}

struct view_trend view_metrics_trend(const struct view_metric *metric)
{
	const size_t quarter = metric->point_count >= QUARTERS_FROM ? metric->point_count / 4 : 1;
	struct view_trend out = {.first = NAN, .before = NAN, .last = NAN};
	const struct view_metric_point *end;
	double errors[2], change;

	if (metric->point_count < 2)
		return out;
	end = metric->points + metric->point_count;
	out.first = metric->points[0].value;
	out.before = metrics_mean(end - 2 * quarter, quarter, &errors[0]);
	out.last = metrics_mean(end - quarter, quarter, &errors[1]);
	out.risen = out.last - out.first > ERRORS * sqrt(errors[1] * (double)quarter);
	change = out.last - out.before;
	if (!isfinite(change))
		return out;
	if (fabs(change) <= ERRORS * sqrt(errors[0] + errors[1]))
		out.way = VIEW_TREND_LEVEL;
	else
		out.way = change < 0 ? VIEW_TREND_FALLING : VIEW_TREND_RISING;
	return out;
}

const char *view_trend_text(enum view_trend_way way)
{
	static const char *const texts[] = {[VIEW_TREND_UNKNOWN] = "",
					    [VIEW_TREND_FALLING] = "falling",
					    [VIEW_TREND_LEVEL] = "level",
					    [VIEW_TREND_RISING] = "rising"};

	return texts[way];
}

/* ---- rows ------------------------------------------------------------------------------------ */

#define METRICS_READ_LIST_MOST  500
#define METRICS_READ_WHOLE_ROWS 20000 /* a table up to that long is read whole */
#define STRETCHES               400
#define STRETCH                 48 /* rows */
#define EPOCHS_MOST             300

static const char metrics_sql_sums[] =
	"SELECT rank, mode, name, per_step, count, least, greatest, last_value FROM metric_sums "
	"ORDER BY mode IS NOT 'train', mode, per_step DESC, name IS NOT 'loss', name, rank "
	"LIMIT 500";

static const char metrics_sql_rows[] =
	"SELECT m.row_id, m.rank, m.mode, m.epoch, m.execution, m.step, m.time_ns, n.value, "
	"m.value FROM metric_rows m LEFT JOIN strings n ON n.string_id = m.name_id "
	"WHERE m.row_id BETWEEN :from AND :to ORDER BY m.row_id";

/* ---- the list -------------------------------------------------------------------------------- */

static const char *metrics_retain(struct view_metrics_list *list, const char *text, struct err *err)
{
	const char *kept = text ? arena_strdup(&list->arena, text) : NULL;

	if (text && !kept)
		err_nomem(err);
	return kept;
}

static void metrics_read_sum(struct view_metrics_list *list, const struct prof_query *query,
			     struct err *err)
{
	struct view_metric *item = &list->items[list->count];

	item->rank = prof_column_int(query, 0);
	item->mode = metrics_retain(list, prof_column_text(query, 1), err);
	item->name = metrics_retain(list, prof_column_text(query, 2), err);
	item->per_step = prof_column_int(query, 3) == 1;
	item->count = prof_column_int(query, 4);
	item->least = prof_column_real(query, 5);
	item->greatest = prof_column_real(query, 6);
	item->last = prof_column_real(query, 7);
	list->count += !err_stuck(err);
}

void view_metrics_fini(struct view_metrics_list *list)
{
	for (int i = 0; i < list->count; i++)
		mem_free(list->items[i].points);
	arena_fini(&list->arena);
	memset(list, 0, sizeof(*list));
}

void view_metrics_list(struct view_metrics_list *list, struct prof_db *db, struct err *err)
{
	struct prof_query *query;

	view_metrics_fini(list);
	list->items = view_alloc(&list->arena, METRICS_READ_LIST_MOST, sizeof(*list->items), err);
	list->rows = max(view_query_number(db, "SELECT max(row_id) FROM metric_rows", err), 0);
	query = view_query_open(db, metrics_sql_sums, err);
	while (view_query_next(query, err))
		metrics_read_sum(list, query, err);
	prof_query_close(query);
	if (err_stuck(err))
		view_metrics_fini(list);
}

static bool metrics_is_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

struct view_metric *view_metrics_find(const struct view_metrics_list *list, int64_t rank,
				      const char *mode, const char *name, bool per_step)
{
	for (int i = 0; i < list->count; i++) {
		struct view_metric *item = &list->items[i];

		if (item->rank == rank && item->per_step == per_step &&
		    metrics_is_same(item->name, name) && metrics_is_same(item->mode, mode))
			return item;
	}
	return NULL;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void metrics_read_row(struct view_metrics_list *list, const struct prof_query *query,
			     struct err *err)
{
	struct view_metric *item = view_metrics_find(
		list, prof_column_int(query, 1), prof_column_text(query, 2),
		prof_column_text(query, 7), prof_column_type(query, 5) != PROF_NULL);
	struct view_metric_point *point;

	if (!item)
		return; /* newer than the sums */
	if (mem_grow(&item->points, &item->capacity, item->point_count + 1, sizeof(*point))) {
		err_nomem(err);
		return;
	}
	point = &item->points[item->point_count++];
	point->row = prof_column_int(query, 0);
	point->epoch = prof_column_int(query, 3);
	point->execution = prof_column_int(query, 4);
	point->step = prof_column_int(query, 5);
	point->time_ns = prof_column_int(query, 6);
	point->value = prof_column_real(query, 8);
}

static void metrics_read_stretch(struct view_metrics_list *list, struct prof_db *db,
				 const struct view_context *context, int64_t from, int64_t to,
				 struct err *err)
{
	struct prof_query *query;

	if (!err_stuck(err) && view_cancelled(context))
		err_set(err, ST_INTERRUPTED, "interrupted");
	query = view_query_open(db, metrics_sql_rows, err);
	prof_query_int(query, ":from", from);
	prof_query_int(query, ":to", to);
	while (view_query_next(query, err))
		metrics_read_row(list, query, err);
	prof_query_close(query);
}

static void metrics_read_epochs(struct view_metrics_list *list, struct prof_db *db,
				const struct view_context *context, int64_t from, int64_t to,
				struct err *err)
{
	static const char sql[] = "SELECT time_ns FROM metric_rows WHERE row_id = :row";
	int64_t ends[EPOCHS_MOST], at = from;
	int count = 0;
	struct prof_query *query =
		view_query_open(db,
				"SELECT last_end_ns FROM execution_sums WHERE last_end_ns IS NOT "
				"NULL ORDER BY last_end_ns DESC LIMIT 300",
				err);

	/* When epochs end, at most EPOCHS_MOST of them. */
	while (count < EPOCHS_MOST && view_query_next(query, err))
		ends[count++] = prof_column_int(query, 0);
	prof_query_close(query);
	for (int i = 0; i < count && !err_stuck(err); i++) {
		/* The first row at or after the epoch's end; rows are in order of time. */
		SORTED_FIRST(at, from, to, view_query_at(db, sql, at, err) < ends[i]);
		at = min(at, INT64_MAX - STRETCH / 2);
		metrics_read_stretch(list, db, context, at - STRETCH / 2, at + STRETCH / 2, err);
	}
}

static void metrics_read_spread(struct view_metrics_list *list, struct prof_db *db,
				const struct view_context *context, int64_t from, int64_t to,
				struct err *err)
{
	for (int64_t i = 0; i < STRETCHES && !err_stuck(err); i++) {
		/* The last stretch ends with the last row. */
		const int64_t at = from + (to - from - STRETCH + 1) / (STRETCHES - 1) * i;
		const bool last = i == STRETCHES - 1;

		metrics_read_stretch(list, db, context, last ? to - STRETCH + 1 : at,
				     last ? to : at + STRETCH - 1, err);
	}
}

static int metrics_row_order(const void *a, const void *b)
{
	const struct view_metric_point *one = a, *two = b;

	return SORTED_BY(one, two, row);
}

void view_metrics_read(struct view_metrics_list *list, struct prof_db *db,
		       const struct view_context *context, int64_t from, int64_t to,
		       struct err *err)
{
	for (int i = 0; i < list->count; i++)
		list->items[i].point_count = 0;
	list->sampled = to - from >= METRICS_READ_WHOLE_ROWS;
	if (!list->sampled) {
		metrics_read_stretch(list, db, context, from, to, err);
		return;
	}
	metrics_read_spread(list, db, context, from, to, err);
	metrics_read_epochs(list, db, context, from, to, err);
	for (int i = 0; i < list->count; i++) {
		struct view_metric *item = &list->items[i];
		size_t kept = 0;

		/* Sort the points and remove duplicates: ranges may overlap. */
		if (item->point_count < 2)
			continue;
		qsort(item->points, item->point_count, sizeof(*item->points), metrics_row_order);
		for (size_t p = 1; p < item->point_count; p++)
			if (item->points[p].row != item->points[kept].row)
				item->points[++kept] = item->points[p];
		item->point_count = kept + 1;
	}
}
