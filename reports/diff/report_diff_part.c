/*
 * Find where two runs diverge: iterate over the rows of tensors, captures and metrics of both in
 * order of execution.
 *
 * SQLite sorts the rows by point of execution (execution, step, a weight update after its steps)
 * and name. Among differences at the same point, the earliest in execution wins: forward in the
 * order of the layers, the loss, backward in reverse order, updates.
 *
 * Threading: none. Ownership: texts of the result belong to the comparison's arena.
 */
#include "reports/diff/report_diff.h"

#include <math.h>
#include <string.h>

#include "common/dtype.h"
#include "common/mem.h"
#include "common/sorted.h"
#include "common/str.h"
#include "reports/table/report_internal.h"

/* ---- pairing rows ---------------------------------------------------------------------------- */

/* The first columns of each query: the sort keys. */
enum {
	BY_EXECUTION,
	BY_STEP,
	BY_UPDATE,
	BY_RANK,
	BY_QUEUE,
	BY_KEY,
	BY_REPLICA,
	BY_MICROBATCH,
	BY_PHASE,
	BY_CHUNK,
	SORTED,
	/* Keys as in the views; kind; the layer and its position in the model. */
	AT_MODE = SORTED,
	AT_EPOCH,
	AT_UPDATE,
	AT_STEP,
	AT_MICROBATCH,
	AT_REPLICA,
	AT_KIND,
	AT_LAYER,
	AT_POSITION,
	VALUES
};

#define SQL_WHEN                                                                                   \
	"coalesce(c.execution, -1), coalesce(c.step, (c.weight_update + 1) * CAST(coalesce("       \
	"(SELECT value FROM meta_facts WHERE key = 'gradient_accumulation'), 1) AS INTEGER) - 1, " \
	"-1), c.step IS NULL, coalesce(c.rank, 0), coalesce(t.queue, ''), coalesce(t.key, ''), "   \
	"coalesce(c.replica, -1), coalesce(c.microbatch, -1), coalesce(c.phase, ''), "
#define SQL_WHERE                                                                                  \
	"c.mode, c.epoch, c.weight_update, c.step, c.microbatch, c.replica, t.kind, t.layer, "     \
	"(SELECT max(position) FROM layer_rows l WHERE l.layer = t.layer), "
#define SQL_SORTED " ORDER BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10"

static const char sql_stats[] =
	"SELECT " SQL_WHEN "0, " SQL_WHERE
	"s.l2, s.l1, s.mean, s.std, s.min, s.max, s.abs_max, s.abs_min_nonzero, s.n, s.n_nan, "
	"s.n_pos_inf, s.n_neg_inf, s.n_zero, s.n_neg, s.n_pos FROM tensor_stat_rows s "
	"JOIN tensor_rows t ON t.tensor_id = s.tensor_id "
	"LEFT JOIN contexts c ON c.context_id = s.context_id" SQL_SORTED;
static const char sql_captures[] =
	"SELECT " SQL_WHEN "coalesce(s.chunk, 0), " SQL_WHERE
	"s.dtype, s.data FROM capture_rows s JOIN tensor_rows t ON t.tensor_id = s.tensor_id "
	"LEFT JOIN contexts c ON c.context_id = s.context_id" SQL_SORTED;
static const char sql_metrics[] =
	"SELECT coalesce(m.execution, -1), coalesce(m.step, -1), 0, coalesce(m.rank, 0), '', "
	"coalesce(n.value, ''), -1, -1, coalesce(m.mode, ''), 0, m.mode, m.epoch, NULL, m.step, "
	"NULL, NULL, 'metric', "
	"NULL, NULL, m.value FROM metric_rows m LEFT JOIN strings n ON n.string_id = m.name_id "
	"WHERE m.step IS NOT NULL" SQL_SORTED;

/* Iteration over two queries, one per run. */
struct walk {
	struct report_diff *diff;
	const char *what;
	struct prof_query *query[2]; /* source, target */
	bool row[2];
	int64_t best[3]; /* sort keys of the stored part: BY_EXECUTION to BY_UPDATE */
	double order;    /* its order at that point, see walk_order() */
	int64_t equal;   /* of a capture: equal elements in its chunks so far */
	struct err *err; /* sticky */
};

static int compare_sort_keys(const struct walk *walk)
{
	for (int i = 0; i < SORTED; i++) {
		int order;

		if (prof_column_type(walk->query[0], i) == PROF_TEXT &&
		    prof_column_type(walk->query[1], i) == PROF_TEXT) {
			order = strcmp(prof_column_text(walk->query[0], i),
				       prof_column_text(walk->query[1], i));
		} else {
			const int64_t a = prof_column_int(walk->query[0], i);
			const int64_t b = prof_column_int(walk->query[1], i);

			order = SORTED_ORDER(a, b);
		}
		if (order != 0)
			return order;
	}
	return 0;
}

/* Order within a point of execution: forward by position, losses, backward by reverse position,
 * updates. */
static double walk_order(const struct prof_query *query)
{
	static const char phases[] = "FLBWU";
	const char *kind = prof_column_text(query, AT_KIND),
		   *phase = prof_column_text(query, BY_PHASE);
	const int64_t position = prof_column_int(query, AT_POSITION);
	const double place = position == IPS_NULL ? 0 : (double)position / 1e6;
	const bool metric = kind && !strcmp(kind, "metric");
	const bool gradient = kind && !strcmp(kind, "gradient");
	const char letter = metric            ? 'L'
			    : gradient        ? IPS_BACKWARD
			    : phase && *phase ? *phase
					      : IPS_UPDATE;
	const char *at = strchr(phases, letter);

	return (at ? (double)(at - phases) : 0) + (letter == IPS_FORWARD ? place : 1 - place) / 2;
}

/* Return true if the current row precedes the stored part in execution. */
static bool precedes_part(const struct walk *walk)
{
	if (!walk->diff->part.known)
		return true;
	for (int i = 0; i < 3; i++) {
		const int64_t at = prof_column_int(walk->query[0], i);

		if (at != walk->best[i])
			return at < walk->best[i];
	}
	return walk_order(walk->query[0]) < walk->order;
}

/* Store the current row as the part if it is the earliest. @column: of the values, or -1. */
static void store_part(struct walk *walk, int column, int64_t element, double source, double target)
{
	const struct prof_query *query = walk->query[0];

	if (!precedes_part(walk))
		return;
	for (int i = 0; i < 3; i++)
		walk->best[i] = prof_column_int(query, i);
	walk->order = walk_order(query);
	walk->diff->part = (struct report_diff_part){
		.known = true,
		.what = walk->what,
		.column = column < 0 ? NULL
				     : report__copy(&walk->diff->arena,
						    prof_column_name(query, column), walk->err),
		.key = report__copy(&walk->diff->arena, prof_column_text(query, BY_KEY), walk->err),
		.layer = report__copy(&walk->diff->arena, prof_column_text(query, AT_LAYER),
				      walk->err),
		.kind = report__copy(&walk->diff->arena, prof_column_text(query, AT_KIND),
				     walk->err),
		.mode = report__copy(&walk->diff->arena, prof_column_text(query, AT_MODE),
				     walk->err),
		.phase = !strcmp(walk->what, "metric")
				 ? NULL
				 : report__copy(&walk->diff->arena,
						prof_column_text(query, BY_PHASE), walk->err),
		.epoch = prof_column_int(query, AT_EPOCH),
		.weight_update = prof_column_int(query, AT_UPDATE),
		.step = prof_column_int(query, AT_STEP),
		.microbatch = prof_column_int(query, AT_MICROBATCH),
		.replica = prof_column_int(query, AT_REPLICA),
		.element = element,
		.source = source,
		.target = target,
	};
}

/* ---- statistics and metrics ------------------------------------------------------------------ */

/* Sums over all rows of a tensor that both runs have. */
struct tensor_sum {
	const char *key; /* "key (queue)": the key comes first, since the end may be cut */
	int64_t compared, parted;
	double l2[2], bad[2]; /* sums; source, target */
};

struct tensor_sums {
	struct tensor_sum *at;
	size_t count, capacity;
	struct str key; /* of the current row */
};

static struct tensor_sum *get_tensor_sum(struct tensor_sums *sums, struct walk *walk)
{
	const char *key;

	str_clear(&sums->key);
	str_addf(&sums->key, "%s (%s)", prof_column_text(walk->query[0], BY_KEY),
		 prof_column_text(walk->query[0], BY_QUEUE));
	for (size_t i = 0; !sums->key.failed && i < sums->count; i++)
		if (!strcmp(sums->at[i].key, str_peek(&sums->key)))
			return &sums->at[i];
	key = sums->key.failed ? NULL : arena_strdup(&walk->diff->arena, str_peek(&sums->key));
	if (!key || mem_grow(&sums->at, &sums->capacity, sums->count + 1, sizeof(*sums->at)))
		return NULL;
	sums->at[sums->count] = (struct tensor_sum){.key = key};
	return &sums->at[sums->count++];
}

/* Return the first value that differs and that both runs have; -1: none. */
static int find_difference(const struct walk *walk)
{
	const int count = prof_column_count(walk->query[0]);

	for (int i = VALUES; i < count; i++) {
		if (prof_column_type(walk->query[0], i) == PROF_NULL ||
		    prof_column_type(walk->query[1], i) == PROF_NULL)
			continue;
		if (prof_column_real(walk->query[0], i) != prof_column_real(walk->query[1], i))
			return i;
	}
	return -1;
}

static void compare_values(struct walk *walk, struct tensor_sums *sums)
{
	const int column = find_difference(walk);
	struct tensor_sum *sum = sums ? get_tensor_sum(sums, walk) : NULL;

	if (sums && !sum) {
		err_nomem(walk->err);
		return;
	}
	walk->diff->compared++;
	walk->diff->parted += column >= 0;
	for (int side = 0; sum && side < 2; side++) {
		const double l2 = prof_column_real(walk->query[side], VALUES);

		sum->l2[side] += isnan(l2) ? 0 : l2;
	}
	if (sum) {
		sum->compared++;
		sum->parted += column >= 0;
	}
	if (column >= 0)
		store_part(walk, column, IPS_NULL, prof_column_real(walk->query[0], column),
			   prof_column_real(walk->query[1], column));
}

/* ---- captures -------------------------------------------------------------------------------- */

/* Chunks have a fixed size in bytes, so those of different types after the first do not hold the
 * same elements: do not compare them. */
static void compare_captures(struct walk *walk, struct tensor_sums *sums)
{
	const int64_t chunk = prof_column_int(walk->query[0], BY_CHUNK);
	const unsigned char *data[2];
	double values[2] = {0, 0};
	size_t width[2], count[2], at = 0;
	enum dtype dtype[2];
	bool equal = true;

	(void)sums;
	for (int side = 0; side < 2; side++) {
		dtype[side] = dtype_find(prof_column_text(walk->query[side], VALUES));
		if (dtype[side] == DTYPES)
			return;
		width[side] = (size_t)dtype_bytes(dtype[side]);
		data[side] = prof_column_blob(walk->query[side], VALUES + 1, &count[side]);
		count[side] = data[side] ? count[side] / width[side] : 0;
	}
	if (width[0] != width[1] && chunk != 0)
		return;
	walk->diff->compared++;
	walk->equal = chunk == 0 ? 0 : walk->equal;
	while (equal && at < count[0] && at < count[1]) {
		equal = dtype[0] == dtype[1] &&
			!memcmp(data[0] + at * width[0], data[1] + at * width[0], width[0]);
		for (int side = 0; !equal && side < 2; side++)
			values[side] = dtype_read(dtype[side], data[side] + at * width[side]);
		if (dtype[0] != dtype[1])
			equal = values[0] == values[1] || (isnan(values[0]) && isnan(values[1]));
		at += equal;
	}
	walk->equal += (int64_t)at;
	if (equal)
		return;
	walk->diff->parted++;
	store_part(walk, -1, walk->equal, values[0], values[1]);
}

/* ---- iteration ------------------------------------------------------------------------------- */

/* Pair the rows of both sides. */
static void run_walk(struct walk *walk, struct prof_db *source, struct prof_db *target,
		     const char *what, const char *sql, struct tensor_sums *sums,
		     void (*compare)(struct walk *walk, struct tensor_sums *sums))
{
	struct err *err = walk->err;
	int order = 0; /* at first both sides step */

	if (err_stuck(err))
		return;
	walk->what = what;
	prof_query_open(&walk->query[0], source, sql, err);
	prof_query_open(&walk->query[1], target, sql, err);
	while (!err_stuck(err)) {
		if (order <= 0)
			walk->row[0] = prof_query_next(walk->query[0], &err->status, err);
		if (order >= 0)
			walk->row[1] = prof_query_next(walk->query[1], &err->status, err);
		if (err_stuck(err) || (!walk->row[0] && !walk->row[1]))
			break;
		order = !walk->row[0] ? 1 : !walk->row[1] ? -1 : compare_sort_keys(walk);
		walk->diff->only_source += order < 0;
		walk->diff->only_target += order > 0;
		if (order == 0)
			compare(walk, sums);
	}
	prof_query_close(walk->query[0]);
	prof_query_close(walk->query[1]);
}

void report__diff_part(struct report_diff *diff, struct prof_db *source, struct prof_db *target,
		       struct err *err)
{
	struct walk walk = {.diff = diff, .err = err};
	struct tensor_sums sums = {0};

	run_walk(&walk, source, target, "capture", sql_captures, NULL, compare_captures);
	run_walk(&walk, source, target, "tensor", sql_stats, &sums, compare_values);
	run_walk(&walk, source, target, "metric", sql_metrics, NULL, compare_values);
	for (size_t i = 0; i < sums.count; i++) {
		const struct tensor_sum *sum = &sums.at[i];
		const struct {
			const char *name;
			enum report_quantity quantity;
			double from, to;
		} values[] = {
			{"mean_l2", REPORT_REAL, sum->l2[0] / (double)sum->compared,
			 sum->l2[1] / (double)sum->compared},
			{"rows_equal", REPORT_COUNT, (double)sum->compared,
			 (double)(sum->compared - sum->parted)},
		};

		for (size_t v = 0; v < ARRAY_LEN(values); v++) {
			struct report_diff_row *row = report__diff_add(diff, err);

			if (row)
				*row = (struct report_diff_row){
					.section = "tensors",
					.key = sum->key,
					.name = values[v].name,
					.quantity = values[v].quantity,
					.in_source = true,
					.in_target = true,
					.source = {.known = true, .number = values[v].from},
					.target = {.known = true, .number = values[v].to},
				};
		}
	}
	mem_free(sums.at);
	str_free(&sums.key);
}
