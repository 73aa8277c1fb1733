/*
 * Evaluate health rules on recorded rows. See report_health.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "reports/named/report_health_internal.h"

#define COUNT_MOST ((int64_t)1 << 53)

/* ---- hits ------------------------------------------------------------------------------------ */

static const char *copy_text(struct health_evaluation *j, const char *text)
{
	char *copy = !text ? NULL : arena_strdup(&j->arena, text);

	if (text && !copy)
		err_nomem(j->err);
	return copy;
}

static void add_hit(struct health_evaluation *j, int64_t rank, const struct outfeed_hit *hit)
{
	struct health_found *found;

	if (mem_grow(&j->hits, &j->hit_capacity, j->hit_count + 1, sizeof(*j->hits)) != 0) {
		err_nomem(j->err);
		return;
	}
	found = &j->hits[j->hit_count];
	*found = (struct health_found){*hit, rank, (int64_t)j->hit_count};
	found->hit.key = copy_text(j, hit->key);
	found->hit.layer = copy_text(j, hit->layer);
	j->hit_count++;
}

static void on_hit(void *user, const struct outfeed_hit *hit)
{
	const struct health_process *process = user;

	add_hit(process->evaluation, process->rank, hit);
}

static int compare_hits(const void *a, const void *b)
{
	const struct health_found *left = a, *right = b;

	return SORTED_BY(left, right, hit.time_ns, order);
}

/* ---- processes and tensors ------------------------------------------------------------------- */

/* Find or add the process of @rank; NULL after a failure. */
static struct health_process *get_process(struct health_evaluation *j, int64_t rank)
{
	struct outfeed_health_params params = {.rules = j->rules, .hit = on_hit};
	struct health_process *process;

	for (size_t i = 0; i < j->process_count; i++)
		if (j->processes[i]->rank == rank)
			return j->processes[i];
	process = arena_alloc(&j->arena, 1, sizeof(*process));
	if (!process || mem_grow(&j->processes, &j->process_capacity, j->process_count + 1,
				 sizeof(*j->processes)) != 0) {
		err_nomem(j->err);
		return NULL;
	}
	*process = (struct health_process){.evaluation = j, .rank = rank};
	params.user = process;
	if (outfeed_health_new(&process->health, &params, j->err) != ST_OK)
		return NULL;
	j->processes[j->process_count++] = process;
	return process;
}

static bool same_text(const char *a, const char *b)
{
	return !a || !b ? a == b : strcmp(a, b) == 0;
}

static bool same_tensor(const struct health_tensor *a, const struct health_tensor *b)
{
	return a->rank == b->rank && a->replica == b->replica && same_text(a->key, b->key) &&
	       same_text(a->queue, b->queue);
}

static uint64_t tensor_hash(const struct health_tensor *tensor)
{
	const int64_t numbers[] = {tensor->rank, tensor->replica};

	return map_text(map_text(map_bytes(MAP_SEED, numbers, sizeof(numbers)), tensor->queue),
			tensor->key);
}

/* Number of axes of a shape like "(2, 3)"; @last: size of the last axis. */
static int shape_axes(const char *shape, int64_t *last)
{
	int axes = 0;
	char *end;

	*last = 0;
	while (shape && *shape != '\0') {
		long long size = strtoll(shape, &end, 10);

		if (end == shape) {
			shape++;
			continue;
		}
		*last = size > 0 ? size : 0;
		axes++;
		shape = end;
	}
	return axes;
}

/* Read shape and activity, which are stored with the tensor, not in its rows. */
static void read_tensor_details(struct health_evaluation *j, const struct health_tensor *tensor,
				struct outfeed_health_about_tensor *about)
{
	struct prof_query *query;
	const char *activity;

	prof_query_open(&query, j->db,
			"SELECT shape, activity FROM tensors WHERE queue IS :queue AND key IS :key",
			j->err);
	if (tensor->queue)
		prof_query_text(query, ":queue", tensor->queue);
	if (tensor->key)
		prof_query_text(query, ":key", tensor->key);
	if (prof_query_next(query, &j->err->status, j->err)) {
		about->matrix = shape_axes(prof_column_text(query, 0), &about->neurons) >= 2;
		activity = prof_column_text(query, 1);
		if (activity)
			outfeed_activity_of(&about->activity, activity);
	}
	prof_query_close(query);
}

static void add_tensor(struct health_evaluation *j, const struct health_tensor *wanted,
		       const char *kind)
{
	struct outfeed_health_about_tensor about = {
		.tensor_id = (int64_t)j->tensor_count,
		.replica = wanted->replica == IPS_NULL ? 0 : wanted->replica,
		.key = wanted->key,
		.layer = wanted->layer};
	struct health_tensor *tensor;

	if (mem_grow(&j->tensors, &j->tensor_capacity, j->tensor_count + 1, sizeof(*j->tensors)) !=
	    0) {
		err_nomem(j->err);
		return;
	}
	tensor = &j->tensors[j->tensor_count];
	*tensor = *wanted;
	tensor->queue = copy_text(j, wanted->queue);
	tensor->key = copy_text(j, wanted->key);
	tensor->layer = copy_text(j, wanted->layer);
	if (!err_stuck(j->err) && kind && outfeed_kind_of(&about.kind, kind)) {
		const struct health_process *process;

		read_tensor_details(j, tensor, &about);
		process = err_stuck(j->err) ? NULL : get_process(j, tensor->rank);
		if (process)
			outfeed_health_tensor(process->health, &tensor->state, &about, j->err);
	}
	if (!err_stuck(j->err) && map_add(&j->map, tensor_hash(tensor), j->tensor_count) != 0)
		err_nomem(j->err);
	j->tensor_count += !err_stuck(j->err);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The first columns of every query below. */
#define KEYS "rank, mode, epoch, execution, step, time_ns, "
enum {
	AT_RANK,
	AT_MODE,
	AT_EPOCH,
	AT_EXECUTION,
	AT_STEP,
	AT_TIME,
	AT_KEYS
};

static struct ips_keys read_keys(const struct prof_query *query)
{
	static const char *const modes[] = {
		[IPS_TRAIN] = "train", [IPS_EVALUATE] = "evaluate", [IPS_PREDICT] = "predict"};
	const char *mode = prof_column_text(query, AT_MODE);
	struct ips_keys keys = IPS_KEYS_NULL;

	for (uint8_t m = IPS_TRAIN; mode && m <= IPS_PREDICT; m++)
		if (strcmp(mode, modes[m]) == 0)
			keys.mode = m;
	keys.epoch = prof_column_int(query, AT_EPOCH);
	keys.execution = prof_column_int(query, AT_EXECUTION);
	keys.step = prof_column_int(query, AT_STEP);
	return keys;
}

/* Rows come in the order they were written: the view has only left joins. */
#define STATS_SQL                                                                                  \
	"SELECT " KEYS "weight_update, microbatch, replica, phase, queue, key, kind, layer, "      \
	"stage, n, n_nan, n_pos_inf, n_neg_inf, n_zero, n_changed, abs_max, min, max, mean, "      \
	"std, l1, l2, inactive, update_ratio FROM tensor_stats"
enum {
	AT_UPDATE = AT_KEYS,
	AT_MICROBATCH,
	AT_REPLICA,
	AT_PHASE,
	AT_QUEUE,
	AT_KEY,
	AT_KIND,
	AT_LAYER,
	AT_STAGE,
	AT_N,
	AT_NAN,
	AT_POS_INF,
	AT_NEG_INF,
	AT_ZERO,
	AT_CHANGED,
	AT_ABS_MAX,
	AT_MIN,
	AT_MAX,
	AT_MEAN,
	AT_STD,
	AT_L1,
	AT_L2,
	AT_INACTIVE,
	AT_RATIO
};

/* A damaged file may hold any number; sums of counts must not overflow. */
static int64_t read_count(const struct prof_query *query, int column)
{
	const int64_t count = prof_column_int(query, column);

	return count >= 0 && count <= COUNT_MOST ? count : IPS_NULL;
}

/* Number of infinities of both signs; IPS_NULL: unknown. */
static int64_t read_inf(const struct prof_query *query)
{
	const int64_t positive = read_count(query, AT_POS_INF);
	const int64_t negative = read_count(query, AT_NEG_INF);

	return positive == IPS_NULL || negative == IPS_NULL ? IPS_NULL : positive + negative;
}

/* The file has the maximum of the finite values; the rules expect that of all values. */
static double read_abs_max(const struct prof_query *query, int64_t n_nan, int64_t n_inf)
{
	if (n_nan > 0)
		return (double)NAN;
	return n_inf > 0 ? (double)INFINITY : prof_column_real(query, AT_ABS_MAX);
}

static struct outfeed_health_row read_row(const struct prof_query *query)
{
	const char *phase = prof_column_text(query, AT_PHASE);
	struct outfeed_health_row row = {
		.keys = read_keys(query),
		.time_ns = prof_column_int(query, AT_TIME),
		.n = read_count(query, AT_N),
		.n_nan = read_count(query, AT_NAN),
		.n_inf = read_inf(query),
		.n_zero = read_count(query, AT_ZERO),
		.n_changed = read_count(query, AT_CHANGED),
		.min = prof_column_real(query, AT_MIN),
		.max = prof_column_real(query, AT_MAX),
		.mean = prof_column_real(query, AT_MEAN),
		.std = prof_column_real(query, AT_STD),
		.l1 = prof_column_real(query, AT_L1),
		.l2 = prof_column_real(query, AT_L2),
		.inactive = prof_column_real(query, AT_INACTIVE),
		.update_ratio = prof_column_real(query, AT_RATIO),
	};

	row.keys.weight_update = prof_column_int(query, AT_UPDATE);
	row.keys.microbatch = prof_column_int(query, AT_MICROBATCH);
	row.keys.replica = prof_column_int(query, AT_REPLICA);
	row.keys.phase = (char)(phase ? phase[0] : '\0');
	row.abs_max = read_abs_max(query, row.n_nan, row.n_inf);
	return row;
}

static void evaluate_row(struct health_evaluation *j, const struct prof_query *query)
{
	const struct health_tensor wanted = {
		.queue = prof_column_text(query, AT_QUEUE),
		.key = prof_column_text(query, AT_KEY),
		.layer = prof_column_text(query, AT_LAYER),
		.rank = prof_column_int(query, AT_RANK),
		.replica = prof_column_int(query, AT_REPLICA),
		.stage = prof_column_int(query, AT_STAGE),
	};
	const struct outfeed_health_row row = read_row(query);
	size_t at;

	MAP_FIND(at, &j->map, tensor_hash(&wanted), same_tensor(&j->tensors[at], &wanted));
	if (at == MAP_NONE) {
		at = j->tensor_count;
		add_tensor(j, &wanted, prof_column_text(query, AT_KIND));
	}
	if (!err_stuck(j->err) && j->tensors[at].state)
		outfeed_health_row(j->tensors[at].state, &row);
}

static void evaluate_step(struct health_evaluation *j, const struct prof_query *query)
{
	const struct ips_keys keys = read_keys(query);
	const struct health_process *process = get_process(j, prof_column_int(query, AT_RANK));

	if (process)
		outfeed_health_loss(process->health, &keys, prof_column_int(query, AT_TIME),
				    prof_column_real(query, AT_KEYS));
}

/* Columns after the keys: the loss, whether there was a validation, and its loss. */
static void evaluate_epoch(struct health_evaluation *j, const struct prof_query *query)
{
	const struct ips_keys keys = read_keys(query);
	const struct health_process *process = get_process(j, prof_column_int(query, AT_RANK));

	if (process)
		outfeed_health_epoch(process->health, &keys, prof_column_int(query, AT_TIME),
				     prof_column_real(query, AT_KEYS),
				     prof_column_real(query, AT_KEYS + 2),
				     prof_column_int(query, AT_KEYS + 1) > 0);
}

/* Copy hits of class imbalance: classes are not recorded, so they cannot be evaluated. */
static void copy_class_hits(struct health_evaluation *j, const struct prof_query *query)
{
	const struct outfeed_health_rule *rule = &j->rules->rule[OUTFEED_HEALTH_class_imbalance];
	const double value = prof_column_real(query, AT_KEYS);

	if (rule->enabled && value > rule->threshold)
		add_hit(j, prof_column_int(query, AT_RANK),
			&(struct outfeed_hit){.rule = OUTFEED_HEALTH_class_imbalance,
					      .tensor_id = IPS_NULL,
					      .key = prof_column_text(query, AT_KEYS + 1),
					      .keys = read_keys(query),
					      .time_ns = prof_column_int(query, AT_TIME),
					      .value = value,
					      .threshold = rule->threshold});
}

static const struct {
	const char *sql;
	void (*evaluate)(struct health_evaluation *j, const struct prof_query *query);
} passes[] = {
	{STATS_SQL, evaluate_row},
	{"SELECT " KEYS "value FROM metrics WHERE mode = 'train' AND name = 'loss' "
	 "AND step IS NOT NULL",
	 evaluate_step},
	/* A validation is recorded as an evaluation that belongs to an epoch. */
	{"SELECT m.rank, m.mode, m.epoch, m.execution, m.step, m.time_ns, m.value, "
	 "v.epoch IS NOT NULL, v.value FROM metrics m LEFT JOIN "
	 "(SELECT rank, epoch, value FROM metrics WHERE mode = 'evaluate' AND name = 'loss' AND "
	 "step IS NULL AND execution IS NULL AND epoch IS NOT NULL GROUP BY rank, epoch) v "
	 "ON v.rank = m.rank AND v.epoch = m.epoch "
	 "WHERE m.mode = 'train' AND m.name = 'loss' AND m.step IS NULL AND "
	 "m.execution IS NULL AND m.epoch IS NOT NULL",
	 evaluate_epoch},
	{"SELECT " KEYS "value, key FROM health WHERE rule = 'class_imbalance'", copy_class_hits},
};

void report__health_evaluate(struct health_evaluation *j)
{
	for (size_t i = 0; i < ARRAY_LEN(passes) && !err_stuck(j->err); i++) {
		struct prof_query *query;

		prof_query_open(&query, j->db, passes[i].sql, j->err);
		while (prof_query_next(query, &j->err->status, j->err))
			passes[i].evaluate(j, query);
		prof_query_close(query);
	}
	for (size_t i = 0; i < j->process_count && !err_stuck(j->err); i++)
		outfeed_health_settle(j->processes[i]->health);
	if (j->hit_count > 1)
		qsort(j->hits, j->hit_count, sizeof(*j->hits), compare_hits);
}

void report__health_fini(struct health_evaluation *j)
{
	for (size_t i = 0; i < j->process_count; i++)
		outfeed_health_free(j->processes[i]->health);
	mem_free(j->processes);
	mem_free(j->tensors);
	map_fini(&j->map);
	mem_free(j->hits);
	arena_fini(&j->arena);
}
