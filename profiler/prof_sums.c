/*
 * Sums: the keys by which rows of each kind are grouped, what a row adds to its group, and writing
 * the changed groups. See prof_sums.h. On the writer's thread.
 */
#include "profiler/prof_sums.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "profiler/prof_internal.h"

/* ---- sums ------------------------------------------------------------------------------------ */

/* A sum that would overflow stays unchanged. */
static void add(union prof_sum_value *sum, int64_t value)
{
	int64_t out;

	if (value == IPS_NULL)
		return;
	if (sum->i == IPS_NULL)
		sum->i = value;
	else if (!__builtin_add_overflow(sum->i, value, &out) && out != IPS_NULL)
		sum->i = out;
}

static void set_least(union prof_sum_value *sum, int64_t value)
{
	if (value != IPS_NULL && (sum->i == IPS_NULL || value < sum->i))
		sum->i = value;
}

static void set_greatest(union prof_sum_value *sum, int64_t value)
{
	if (value > sum->i)
		sum->i = value;
}

/* Return IPS_NULL if an operand is unknown or the sum overflows. */
static int64_t add_or_null(int64_t a, int64_t b)
{
	int64_t out;

	if (a == IPS_NULL || b == IPS_NULL || __builtin_add_overflow(a, b, &out))
		return IPS_NULL;
	return out;
}

/* ---- stages ---------------------------------------------------------------------------------- */

enum {
	STAGE_COUNT,
	STAGE_TOTAL,
	STAGE_LEAST,
	STAGE_GREATEST,
	STAGE_FIRST,
	STAGE_LAST,
	STAGE_CPU,
	STAGE_VALUES
};

static const struct prof_sum_column stage_columns[] = {
	{"clock", PROF_SUM_INT},
	{"mode", PROF_SUM_MODE},
	{"replica", PROF_SUM_INT},
	{"ipu", PROF_SUM_INT},
	{"stage", PROF_SUM_INT},
	{"phase", PROF_SUM_PHASE},
	[6 + STAGE_COUNT] = {"count", PROF_SUM_INT},
	[6 + STAGE_TOTAL] = {"total_ns", PROF_SUM_INT},
	[6 + STAGE_LEAST] = {"least_ns", PROF_SUM_INT},
	[6 + STAGE_GREATEST] = {"greatest_ns", PROF_SUM_INT},
	[6 + STAGE_FIRST] = {"first_start_ns", PROF_SUM_INT},
	[6 + STAGE_LAST] = {"last_end_ns", PROF_SUM_INT},
	[6 + STAGE_CPU] = {"cpu_ns", PROF_SUM_INT},
};

static void stage_key(struct prof_writer *writer, const void *row, int64_t *key)
{
	const struct ips_stage_timing *timing = row;

	(void)writer;
	key[0] = timing->clock;
	key[1] = timing->keys.mode;
	key[2] = timing->keys.replica;
	key[3] = timing->keys.ipu;
	key[4] = timing->keys.stage;
	key[5] = timing->keys.phase;
}

static void stage_add(struct prof_writer *writer, union prof_sum_value *sum, const void *row)
{
	const struct ips_stage_timing *timing = row;

	(void)writer;
	add(&sum[STAGE_COUNT], 1);
	add(&sum[STAGE_TOTAL], timing->dur_ns);
	set_least(&sum[STAGE_LEAST], timing->dur_ns);
	set_greatest(&sum[STAGE_GREATEST], timing->dur_ns);
	set_least(&sum[STAGE_FIRST], timing->start_ns);
	set_greatest(&sum[STAGE_LAST], add_or_null(timing->start_ns, timing->dur_ns));
	add(&sum[STAGE_CPU], timing->cpu_ns);
}

/* ---- bubbles --------------------------------------------------------------------------------- */

enum {
	BUBBLE_RUNS,
	BUBBLE_MAKESPAN,
	BUBBLE_LEAST,
	BUBBLE_GREATEST,
	BUBBLE_BUSY,
	BUBBLE_RAMP_UP,
	BUBBLE_RAMP_DOWN,
	BUBBLE_IMBALANCE,
	BUBBLE_COMMUNICATION,
	BUBBLE_ALL, /* sum of the five before */
	BUBBLE_OVERSUBSCRIBED,
	BUBBLE_SUMS, /* of each fraction; then the number of known values */
	BUBBLE_KNOWN = BUBBLE_SUMS + 6,
	BUBBLE_VALUES = BUBBLE_KNOWN + 6
};

_Static_assert(BUBBLE_VALUES <= PROF_SUM_VALUES, "a group has room for a bubble");

static const struct prof_sum_column bubble_columns[] = {
	{"clock", PROF_SUM_INT},
	{"mode", PROF_SUM_MODE},
	{"replica", PROF_SUM_INT},
	{"schedule_id", PROF_SUM_INT},
	{"stages", PROF_SUM_INT},
	{"microbatches", PROF_SUM_INT},
	[6 + BUBBLE_RUNS] = {"runs", PROF_SUM_INT},
	[6 + BUBBLE_MAKESPAN] = {"makespan_ns", PROF_SUM_INT},
	[6 + BUBBLE_LEAST] = {"least_makespan_ns", PROF_SUM_INT},
	[6 + BUBBLE_GREATEST] = {"greatest_makespan_ns", PROF_SUM_INT},
	[6 + BUBBLE_BUSY] = {"busy_ns", PROF_SUM_INT},
	[6 + BUBBLE_RAMP_UP] = {"ramp_up_ns", PROF_SUM_INT},
	[6 + BUBBLE_RAMP_DOWN] = {"ramp_down_ns", PROF_SUM_INT},
	[6 + BUBBLE_IMBALANCE] = {"imbalance_ns", PROF_SUM_INT},
	[6 + BUBBLE_COMMUNICATION] = {"communication_ns", PROF_SUM_INT},
	[6 + BUBBLE_ALL] = {"all_ns", PROF_SUM_INT},
	[6 + BUBBLE_OVERSUBSCRIBED] = {"oversubscribed", PROF_SUM_INT},
	[6 + BUBBLE_SUMS] = {"idle_fraction", PROF_SUM_REAL},
	{"bubble_rate", PROF_SUM_REAL},
	{"bubble_over_ideal", PROF_SUM_REAL},
	{"theory_idle_fraction", PROF_SUM_REAL},
	{"theory_bubble_rate", PROF_SUM_REAL},
	{"theory_bubble_over_ideal", PROF_SUM_REAL},
	[6 + BUBBLE_KNOWN] = {"idle_fractions", PROF_SUM_INT},
	{"bubble_rates", PROF_SUM_INT},
	{"bubbles_over_ideal", PROF_SUM_INT},
	{"theory_idle_fractions", PROF_SUM_INT},
	{"theory_bubble_rates", PROF_SUM_INT},
	{"theory_bubbles_over_ideal", PROF_SUM_INT},
};

static void bubble_key(struct prof_writer *writer, const void *row, int64_t *key)
{
	const struct ips_bubble *bubble = row;

	key[0] = bubble->clock;
	key[1] = bubble->keys.mode;
	key[2] = bubble->keys.replica;
	key[4] = bubble->stages;
	key[5] = bubble->microbatches;
	key[3] = prof__writer_text(writer, bubble->schedule);
}

static void bubble_add(struct prof_writer *writer, union prof_sum_value *sum, const void *row)
{
	const struct ips_bubble *b = row;
	const double fractions[] = {
		b->idle_fraction,        b->bubble_rate,        b->bubble_over_ideal,
		b->theory_idle_fraction, b->theory_bubble_rate, b->theory_bubble_over_ideal,
	};

	(void)writer;
	add(&sum[BUBBLE_RUNS], 1);
	add(&sum[BUBBLE_MAKESPAN], b->makespan_ns);
	set_least(&sum[BUBBLE_LEAST], b->makespan_ns);
	set_greatest(&sum[BUBBLE_GREATEST], b->makespan_ns);
	add(&sum[BUBBLE_BUSY], b->busy_ns);
	add(&sum[BUBBLE_RAMP_UP], b->ramp_up_ns);
	add(&sum[BUBBLE_RAMP_DOWN], b->ramp_down_ns);
	add(&sum[BUBBLE_IMBALANCE], b->imbalance_ns);
	add(&sum[BUBBLE_COMMUNICATION], b->communication_ns);
	add(&sum[BUBBLE_ALL],
	    add_or_null(add_or_null(add_or_null(b->busy_ns, b->ramp_up_ns),
				    add_or_null(b->ramp_down_ns, b->imbalance_ns)),
			b->communication_ns));
	add(&sum[BUBBLE_OVERSUBSCRIBED],
	    b->oversubscribed == IPS_NULL ? IPS_NULL : b->oversubscribed > 0);
	for (size_t i = 0; i < ARRAY_LEN(fractions); i++) {
		union prof_sum_value *of = &sum[BUBBLE_SUMS + i];

		if (!isnan(fractions[i]))
			of->r = isnan(of->r) ? fractions[i] : of->r + fractions[i];
		add(&sum[BUBBLE_KNOWN + i], !isnan(fractions[i]));
	}
}

/* ---- executions ------------------------------------------------------------------------------ */

static const struct prof_sum_column execution_columns[] = {
	{"mode", PROF_SUM_MODE},    {"epoch", PROF_SUM_INT},          {"executions", PROF_SUM_INT},
	{"steps", PROF_SUM_INT},    {"updates", PROF_SUM_INT},        {"traced", PROF_SUM_INT},
	{"untraced", PROF_SUM_INT}, {"first_start_ns", PROF_SUM_INT}, {"last_end_ns", PROF_SUM_INT},
	{"total_ns", PROF_SUM_INT}, {"cycles", PROF_SUM_INT},
};

static void execution_key(struct prof_writer *writer, const void *row, int64_t *key)
{
	const struct ips_execution *execution = row;

	(void)writer;
	key[0] = execution->mode;
	key[1] = execution->epoch;
}

static void execution_add(struct prof_writer *writer, union prof_sum_value *sum, const void *row)
{
	const struct ips_execution *execution = row;

	(void)writer;
	add(&sum[0], 1);
	add(&sum[1], execution->steps);
	add(&sum[2], execution->updates);
	add(&sum[3], execution->traced == 1);
	add(&sum[4], execution->traced == 0);
	set_least(&sum[5], execution->start_ns);
	set_greatest(&sum[6], add_or_null(execution->start_ns, execution->dur_ns));
	add(&sum[7], execution->dur_ns);
	add(&sum[8], execution->cycles);
}

/* ---- metrics --------------------------------------------------------------------------------- */

enum {
	METRIC_COUNT,
	METRIC_LEAST,
	METRIC_GREATEST,
	METRIC_EPOCH,
	METRIC_EXECUTION,
	METRIC_STEP,
	METRIC_TIME,
	METRIC_VALUE,
	METRIC_VALUES
};

static const struct prof_sum_column metric_columns[] = {
	{"mode", PROF_SUM_MODE},
	{"name_id", PROF_SUM_INT},
	{"per_step", PROF_SUM_INT},
	[3 + METRIC_COUNT] = {"count", PROF_SUM_INT},
	[3 + METRIC_LEAST] = {"least", PROF_SUM_REAL},
	[3 + METRIC_GREATEST] = {"greatest", PROF_SUM_REAL},
	[3 + METRIC_EPOCH] = {"last_epoch", PROF_SUM_INT},
	[3 + METRIC_EXECUTION] = {"last_execution", PROF_SUM_INT},
	[3 + METRIC_STEP] = {"last_step", PROF_SUM_INT},
	[3 + METRIC_TIME] = {"last_time_ns", PROF_SUM_INT},
	[3 + METRIC_VALUE] = {"last_value", PROF_SUM_REAL},
};

static void metric_key(struct prof_writer *writer, const void *row, int64_t *key)
{
	const struct ips_metric *metric = row;

	key[0] = metric->mode;
	key[2] = metric->step != IPS_NULL;
	key[1] = prof__writer_text(writer, metric->name);
}

/* A metric of a whole epoch or evaluation is preferred, then the later one. The epoch does not
 * decide: an evaluation after the training has none. */
static bool is_later(const struct ips_metric *a, const union prof_sum_value *b)
{
	if ((a->execution == IPS_NULL) != (b[METRIC_EXECUTION].i == IPS_NULL))
		return a->execution == IPS_NULL;
	if (a->time_ns != b[METRIC_TIME].i)
		return a->time_ns > b[METRIC_TIME].i;
	return a->epoch > b[METRIC_EPOCH].i;
}

static void metric_add(struct prof_writer *writer, union prof_sum_value *sum, const void *row)
{
	const struct ips_metric *metric = row;
	const double value = metric->value;

	(void)writer;
	if (sum[METRIC_COUNT].i == IPS_NULL || is_later(metric, sum)) {
		sum[METRIC_EPOCH].i = metric->epoch;
		sum[METRIC_EXECUTION].i = metric->execution;
		sum[METRIC_STEP].i = metric->step;
		sum[METRIC_TIME].i = metric->time_ns;
		sum[METRIC_VALUE].r = value;
	}
	add(&sum[METRIC_COUNT], 1);
	sum[METRIC_LEAST].r = fmin(sum[METRIC_LEAST].r, value); /* fmin() ignores a NaN */
	sum[METRIC_GREATEST].r = fmax(sum[METRIC_GREATEST].r, value);
}

/* ---- rules broken ---------------------------------------------------------------------------- */

enum {
	HEALTH_HITS,
	HEALTH_TIME,
	HEALTH_ROW,
	HEALTH_VALUES
};

static const struct prof_sum_column health_columns[] = {
	{"rule_id", PROF_SUM_INT},
	[1 + HEALTH_HITS] = {"hits", PROF_SUM_INT},
	[1 + HEALTH_TIME] = {"first_ns", PROF_SUM_INT},
	[1 + HEALTH_ROW] = {"first_row", PROF_SUM_INT},
};

static void health_key(struct prof_writer *writer, const void *row, int64_t *key)
{
	key[0] = prof__writer_text(writer, ((const struct ips_health *)row)->rule);
}

static void health_add(struct prof_writer *writer, union prof_sum_value *sum, const void *row)
{
	const struct ips_health *health = row;
	const int64_t before = sum[HEALTH_TIME].i;

	add(&sum[HEALTH_HITS], 1);
	set_least(&sum[HEALTH_TIME], health->time_ns);
	if (sum[HEALTH_ROW].i == IPS_NULL || sum[HEALTH_TIME].i != before)
		sum[HEALTH_ROW].i = prof_insert_last(&writer->rows[IPS_TABLE_health]);
}

/* ---- overhead of recording ------------------------------------------------------------------- */

static const struct prof_sum_column overhead_columns[] = {
	{"commits", PROF_SUM_INT},
	{"time_ns", PROF_SUM_INT},
	{"events", PROF_SUM_INT},
	{"rows", PROF_SUM_INT},
	{"bytes", PROF_SUM_INT},
	{"dropped", PROF_SUM_INT},
	{"record_ns_estimate", PROF_SUM_INT},
	{"write_ns", PROF_SUM_INT},
};

static void overhead_key(struct prof_writer *writer, const void *row, int64_t *key)
{
	(void)writer;
	(void)row;
	(void)key;
}

static void overhead_add(struct prof_writer *writer, union prof_sum_value *sum, const void *row)
{
	const struct prof_sum_overhead *cost = row;

	(void)writer;
	add(&sum[0], 1);
	set_greatest(&sum[1], cost->time_ns);
	add(&sum[2], cost->events);
	add(&sum[3], cost->rows);
	add(&sum[4], cost->bytes);
	add(&sum[5], cost->dropped);
	add(&sum[6], cost->record_ns);
	add(&sum[7], cost->write_ns);
}

/* ---- statistics of tensors ------------------------------------------------------------------- */

enum {
	TENSOR_ROWS,
	TENSOR_BAD,
	TENSOR_NAN,
	TENSOR_POS_INF,
	TENSOR_NEG_INF,
	TENSOR_FIRST,
	TENSOR_LAST,
	TENSOR_FIRST_ROW,
	TENSOR_LAST_ROW,
	TENSOR_REALS /* minimum and maximum of each */
};

static const struct prof_sum_column tensor_columns[] = {
	{"tensor_id", PROF_SUM_INT},
	[1 + TENSOR_ROWS] = {"rows", PROF_SUM_INT},
	[1 + TENSOR_BAD] = {"nonfinite_rows", PROF_SUM_INT},
	[1 + TENSOR_NAN] = {"n_nan", PROF_SUM_INT},
	[1 + TENSOR_POS_INF] = {"n_pos_inf", PROF_SUM_INT},
	[1 + TENSOR_NEG_INF] = {"n_neg_inf", PROF_SUM_INT},
	[1 + TENSOR_FIRST] = {"first_ns", PROF_SUM_INT},
	[1 + TENSOR_LAST] = {"last_ns", PROF_SUM_INT},
	[1 + TENSOR_FIRST_ROW] = {"first_row", PROF_SUM_INT},
	[1 + TENSOR_LAST_ROW] = {"last_row", PROF_SUM_INT},
#define TENSOR_COLUMN(name) {"least_" #name, PROF_SUM_REAL}, {"greatest_" #name, PROF_SUM_REAL},
	PROF_SUM_TENSOR_MAP(TENSOR_COLUMN)
#undef TENSOR_COLUMN
};

_Static_assert(ARRAY_LEN(tensor_columns) - 1 <= PROF_SUM_VALUES, "a group has room for a tensor");

static void tensor_key(struct prof_writer *writer, const void *row, int64_t *key)
{
	(void)writer;
	key[0] = ((const struct ips_tensor_stats *)row)->tensor_id;
}

static void tensor_add(struct prof_writer *writer, union prof_sum_value *sum, const void *row)
{
	const struct ips_tensor_stats *stats = row;
	const int64_t id = prof_insert_last(&writer->rows[IPS_TABLE_tensor_stats]);
	union prof_sum_value *real = &sum[TENSOR_REALS];

	if (sum[TENSOR_ROWS].i == IPS_NULL || stats->time_ns < sum[TENSOR_FIRST].i) {
		sum[TENSOR_FIRST].i = stats->time_ns;
		sum[TENSOR_FIRST_ROW].i = id;
	}
	if (sum[TENSOR_ROWS].i == IPS_NULL || stats->time_ns >= sum[TENSOR_LAST].i) {
		sum[TENSOR_LAST].i = stats->time_ns;
		sum[TENSOR_LAST_ROW].i = id;
	}
	add(&sum[TENSOR_ROWS], 1);
	add(&sum[TENSOR_BAD], stats->n_nan > 0 || stats->n_pos_inf > 0 || stats->n_neg_inf > 0);
	add(&sum[TENSOR_NAN], stats->n_nan);
	add(&sum[TENSOR_POS_INF], stats->n_pos_inf);
	add(&sum[TENSOR_NEG_INF], stats->n_neg_inf);
#define TENSOR_RANGE(name)                                                                         \
	real[0].r = fmin(real[0].r, stats->name);                                                  \
	real[1].r = fmax(real[1].r, stats->name);                                                  \
	real += 2;
	PROF_SUM_TENSOR_MAP(TENSOR_RANGE)
#undef TENSOR_RANGE
}

/* ---- the kinds ------------------------------------------------------------------------------- */

const struct prof_sum_type prof_sum_types[PROF_SUM_KINDS] = {
#define TYPE(name, key_count, many)                                                                \
	{                                                                                          \
		.table = #name "_sum_rows", .columns = name##_columns, .keys = (key_count),        \
		.values = ARRAY_LEN(name##_columns) - (key_count), .forget = (many),               \
		.key = name##_key, .add = name##_add                                               \
	}
	[PROF_SUM_STAGE] = TYPE(stage, 6, true),
	[PROF_SUM_BUBBLE] = TYPE(bubble, 6, true),
	[PROF_SUM_EXECUTION] = TYPE(execution, 2, true),
	[PROF_SUM_METRIC] = TYPE(metric, 3, false),
	[PROF_SUM_HEALTH] = TYPE(health, 1, false),
	[PROF_SUM_OVERHEAD] = TYPE(overhead, 0, false),
	[PROF_SUM_TENSOR] = TYPE(tensor, 1, false),
#undef TYPE
};

/* ---- groups ---------------------------------------------------------------------------------- */

static uint64_t hash_key(const int64_t *key)
{
	return map_bytes(MAP_SEED, key, PROF_SUM_KEYS * sizeof(*key));
}

static struct prof_sum_group *group_new(struct prof_sums *sums, const struct prof_sum_type *type,
					const int64_t *key)
{
	struct prof_sum_group *group;

	if (mem_grow(&sums->groups, &sums->capacity, sums->count + 1, sizeof(*group)) != 0 ||
	    map_add(&sums->map, hash_key(key), sums->count) != 0)
		return NULL;
	group = &sums->groups[sums->count];
	memcpy(group->key, key, sizeof(group->key));
	for (size_t i = 0; i < type->values; i++) {
		if (type->columns[type->keys + i].kind == PROF_SUM_REAL)
			group->value[i].r = (double)NAN;
		else
			group->value[i].i = IPS_NULL;
	}
	group->changed = false;
	sums->count++;
	return group;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void set_cell(struct prof_cell *cell, enum prof_sum_column_kind kind,
		     union prof_sum_value value)
{
	switch (kind) {
	case PROF_SUM_INT:
		prof_cell_int(cell, value.i);
		break;
	case PROF_SUM_REAL:
		prof_cell_real(cell, value.r);
		break;
	case PROF_SUM_MODE:
		prof_cell_text(cell, prof_mode_text(value.i));
		break;
	case PROF_SUM_PHASE:
		prof_cell_text(cell, prof__phase_text(value.i));
		break;
	}
}

static void write_group(struct prof_writer *writer, struct prof_sums *sums,
			const struct prof_sum_type *type, uint32_t index)
{
	struct prof_sum_group *group = &sums->groups[index];
	struct prof_cell *cells = prof__writer_cells(writer, &sums->insert);

	group->changed = false;
	prof_cell_int(&cells[0], sums->forgotten + index + 1);
	prof_cell_int(&cells[1], writer->rank);
	for (size_t i = 0; i < type->keys; i++)
		set_cell(&cells[2 + i], type->columns[i].kind,
			 (union prof_sum_value){.i = group->key[i]});
	for (size_t i = type->keys; i < type->keys + type->values; i++)
		set_cell(&cells[2 + i], type->columns[i].kind, group->value[i - type->keys]);
}

static void flush(struct prof_writer *writer, struct prof_sums *sums,
		  const struct prof_sum_type *type)
{
	if (sums->changed_count == 0 || !prof__writer_ok(writer))
		return;
	if (!sums->insert.cells) {
		size_t columns = type->keys + type->values;
		struct str head = {0};

		str_addf(&head, "INSERT OR REPLACE INTO %s (sum_id, rank", type->table);
		for (size_t i = 0; i < columns; i++)
			str_addf(&head, ", %s", type->columns[i].name);
		str_add(&head, ")");
		if (head.failed)
			err_nomem(&writer->err);
		else
			prof_insert_init(&sums->insert, writer->db, str_peek(&head), columns + 2,
					 NULL, &writer->err);
		str_free(&head);
	}
	prof__writer_begin(writer);
	for (size_t i = 0; i < sums->changed_count && prof__writer_ok(writer); i++)
		write_group(writer, sums, type, sums->changed[i]);
	sums->changed_count = 0;
	prof__writer_flush(writer, &sums->insert);
}

/* ---- interface ------------------------------------------------------------------------------- */

void prof__sums_add(struct prof_writer *writer, enum prof_sum_kind kind, const void *row)
{
	const struct prof_sum_type *type = &prof_sum_types[kind];
	struct prof_sums *sums = &writer->sums[kind];
	struct prof_sum_group *group;
	int64_t key[PROF_SUM_KEYS] = {0};
	size_t at;

	type->key(writer, row, key);
	MAP_FIND(at, &sums->map, hash_key(key),
		 memcmp(sums->groups[at].key, key, sizeof(sums->groups->key)) == 0);
	if (at == MAP_NONE && type->forget && sums->count == PROF_SUM_GROUPS) {
		flush(writer, sums, type);
		sums->forgotten += (int64_t)sums->count;
		sums->count = 0;
		map_clear(&sums->map);
	}
	group = at == MAP_NONE ? group_new(sums, type, key) : &sums->groups[at];
	if (!group ||
	    (!group->changed && mem_grow(&sums->changed, &sums->changed_capacity,
					 sums->changed_count + 1, sizeof(*sums->changed)) != 0)) {
		prof__writer_nomem(writer);
		return;
	}
	if (!group->changed)
		sums->changed[sums->changed_count++] = (uint32_t)(group - sums->groups);
	group->changed = true;
	type->add(writer, group->value, row);
}

void prof__sums_row(struct prof_writer *writer, unsigned table, const void *row)
{
	static const unsigned char kind_of[PROF_TABLES] = {
		[IPS_TABLE_stage_timing] = 1 + PROF_SUM_STAGE,
		[IPS_TABLE_bubble] = 1 + PROF_SUM_BUBBLE,
		[IPS_TABLE_execution] = 1 + PROF_SUM_EXECUTION,
		[IPS_TABLE_metric] = 1 + PROF_SUM_METRIC,
		[IPS_TABLE_health] = 1 + PROF_SUM_HEALTH,
		[IPS_TABLE_tensor_stats] = 1 + PROF_SUM_TENSOR,
	};

	if (kind_of[table] != 0)
		prof__sums_add(writer, (enum prof_sum_kind)(kind_of[table] - 1), row);
}

void prof__sums_flush(struct prof_writer *writer)
{
	for (size_t i = 0; i < PROF_SUM_KINDS; i++)
		flush(writer, &writer->sums[i], &prof_sum_types[i]);
}

void prof__sums_fini(struct prof_writer *writer)
{
	for (size_t i = 0; i < PROF_SUM_KINDS; i++) {
		struct prof_sums *sums = &writer->sums[i];

		prof_insert_fini(&sums->insert);
		mem_free(sums->groups);
		map_fini(&sums->map);
		mem_free(sums->changed);
		memset(sums, 0, sizeof(*sums));
	}
}
