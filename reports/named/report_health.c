/*
 * The report `health --reevaluate`: read the rules, evaluate them on recorded rows, and return the
 * hits as a table. See report_named.h.
 */
#include "reports/named/report_named.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/fmt.h"
#include "common/json.h"
#include "common/jsonw.h"
#include "common/map.h"
#include "common/mem.h"
#include "common/sorted.h"
#include "outfeed/outfeed_health.h"
#include "reports/table/report_internal.h"
#include "reports/report_registry.h"

#define COUNT_MOST ((int64_t)1 << 53)

/* A tensor of one replica of one process; texts belong to the arena and are NULL as in the file. */
struct health_tensor {
	const char *queue, *key, *layer;
	int64_t rank, replica, stage;
	struct outfeed_health_tensor *state; /* NULL: a kind without rules */
};

/* The state machine of one process. */
struct health_process {
	struct health_evaluation *evaluation;
	int64_t rank;
	struct outfeed_health *health;
};

struct health_found {
	struct outfeed_hit hit; /* texts belong to the arena */
	int64_t rank;
	int64_t order; /* breaks ties of equal times */
};

struct health_evaluation {
	struct prof_db *db;
	const struct outfeed_health_rules *rules;
	struct arena arena;
	struct health_process **processes;
	size_t process_count, process_capacity;
	struct health_tensor *tensors; /* indexed by a hit's tensor_id */
	size_t tensor_count, tensor_capacity;
	struct map map; /* index of the tensors */
	struct health_found *hits;
	size_t hit_count, hit_capacity;
	struct err *err; /* sticky: every step returns at once after a failure */
};

/* ---- rules ----------------------------------------------------------------------------------- */

/* Apply the recorded rules; those of other programs are ignored. */
static void read_recorded_rules(struct outfeed_health_rules *rules, struct prof_db *db,
				struct err *err)
{
	struct prof_query *query;

	prof_query_open(&query, db,
			"SELECT rule, threshold, patience, enabled, parameters FROM health_rules",
			err);
	while (prof_query_next(query, &err->status, err)) {
		const char *name = prof_column_text(query, 0);
		const double threshold = prof_column_real(query, 1);
		const int64_t patience = prof_column_int(query, 2);
		enum outfeed_health_id id;

		if (!name || !outfeed_health_find(&id, name))
			continue;
		if (isfinite(threshold) && threshold >= 0)
			rules->rule[id].threshold = threshold;
		if (patience >= 1)
			rules->rule[id].patience = patience;
		rules->rule[id].enabled = prof_column_int(query, 3) != 0;
		if (prof_column_text(query, 4)) {
			const char *known = outfeed_health_describe(id)->name;
			char text[2 * OUTFEED_HEALTH_TEXT];
			struct json_at root;
			cJSON *tree;

			snprintf(text, sizeof(text), "{\"%s\": %s}", known,
				 prof_column_text(query, 4));
			if (json_parse(&tree, text, strlen(text), "health_rules", err) == ST_OK) {
				root = json_root("health_rules", tree);
				outfeed_health_read(rules, &root, err);
				cJSON_Delete(tree);
			}
		}
	}
	prof_query_close(query);
}

enum status report_health_rules(struct outfeed_health_rules *out, struct prof_db *db,
				const char *file, struct err *err)
{
	struct json_at root;
	struct err own;
	cJSON *tree;

	err = err_start(err, &own);
	outfeed_health_defaults(out);
	if (strcmp(file, "default") == 0)
		return ST_OK;
	read_recorded_rules(out, db, err);
	if (err_stuck(err) || strcmp(file, "recorded") == 0 || json_load(&tree, file, err) != ST_OK)
		return err->status;
	root = json_root(file, tree);
	outfeed_health_read(out, &root, err);
	cJSON_Delete(tree);
	return err->status;
}

/* ---- hits ------------------------------------------------------------------------------------ */

static void add_hit(struct health_evaluation *j, int64_t rank, const struct outfeed_hit *hit)
{
	struct health_found *found;

	if (mem_grow(&j->hits, &j->hit_capacity, j->hit_count + 1, sizeof(*j->hits)) != 0) {
		err_nomem(j->err);
		return;
	}
	found = &j->hits[j->hit_count];
	*found = (struct health_found){*hit, rank, (int64_t)j->hit_count};
	found->hit.key = report__copy(&j->arena, hit->key, j->err);
	found->hit.layer = report__copy(&j->arena, hit->layer, j->err);
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
	tensor->queue = report__copy(&j->arena, wanted->queue, j->err);
	tensor->key = report__copy(&j->arena, wanted->key, j->err);
	tensor->layer = report__copy(&j->arena, wanted->layer, j->err);
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

static const char *const modes[] = {
	[IPS_TRAIN] = "train", [IPS_EVALUATE] = "evaluate", [IPS_PREDICT] = "predict"};

static struct ips_keys read_keys(const struct prof_query *query)
{
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
	/* The file has the maximum of the finite values; the rules expect that of all values. */
	if (row.n_nan > 0)
		row.abs_max = (double)NAN;
	else
		row.abs_max =
			row.n_inf > 0 ? (double)INFINITY : prof_column_real(query, AT_ABS_MAX);
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

/* Evaluate the rules on all rows of the database and collect the hits, ordered by time. */
static void evaluate(struct health_evaluation *j)
{
	for (size_t i = 0; i < ARRAY_LEN(passes) && !err_stuck(j->err); i++) {
		struct prof_query *query;

		prof_query_open(&query, j->db, passes[i].sql, j->err);
		while (prof_query_next(query, &j->err->status, j->err))
			passes[i].evaluate(j, query);
		prof_query_close(query);
	}
	for (size_t i = 0; i < j->process_count && !err_stuck(j->err); i++)
		outfeed_health_evaluate(j->processes[i]->health);
	if (j->hit_count > 1)
		qsort(j->hits, j->hit_count, sizeof(*j->hits), compare_hits);
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* A row in the form of the view `health`. */
static void put_hit(struct report_table *table, const struct health_evaluation *j,
		    const struct health_found *found)
{
	const struct outfeed_hit *hit = &found->hit;
	const struct health_tensor *tensor =
		hit->tensor_id == IPS_NULL ? NULL : &j->tensors[hit->tensor_id];
	const struct ips_keys *keys = &hit->keys;
	const char phase[2] = {keys->phase, '\0'};
	const struct report_value values[] = {
		{{"rule", REPORT_TEXT},
		 report_cell_of_text(outfeed_health_describe(hit->rule)->name)},
		{{"queue", REPORT_TEXT}, report_cell_of_text(tensor ? tensor->queue : NULL)},
		{{"key", REPORT_TEXT}, report_cell_of_text(hit->key)},
		{{"layer", REPORT_TEXT}, report_cell_of_text(hit->layer)},
		{{"stage", REPORT_NUMBER}, report_cell_of_int(tensor ? tensor->stage : IPS_NULL)},
		{{"phase", REPORT_TEXT}, report_cell_of_text(keys->phase ? phase : NULL)},
		{{"rank", REPORT_NUMBER}, report_cell_of_int(found->rank)},
		{{"mode", REPORT_TEXT}, report_cell_of_text(modes[keys->mode])},
		{{"epoch", REPORT_NUMBER}, report_cell_of_int(keys->epoch)},
		{{"execution", REPORT_NUMBER}, report_cell_of_int(keys->execution)},
		{{"weight_update", REPORT_NUMBER}, report_cell_of_int(keys->weight_update)},
		{{"step", REPORT_NUMBER}, report_cell_of_int(keys->step)},
		{{"microbatch", REPORT_NUMBER}, report_cell_of_int(keys->microbatch)},
		{{"replica", REPORT_NUMBER}, report_cell_of_int(keys->replica)},
		{{"time_ns", REPORT_COUNT}, report_cell_of_int(hit->time_ns)},
		{{"value", REPORT_REAL}, report_cell_of_real(hit->value)},
		{{"threshold", REPORT_REAL}, report_cell_of_real(hit->threshold)},
	};

	report_table_put(table, values, ARRAY_LEN(values), j->err);
}

enum status report_health_hits(struct report_table *out, struct prof_db *db,
			       const struct outfeed_health_rules *rules, struct err *err)
{
	static const struct health_found none = {.hit = {.tensor_id = IPS_NULL}};
	struct err own;
	struct health_evaluation j = {.db = db, .rules = rules, .err = err_start(err, &own)};

	*out = (struct report_table){0};
	if (arena_init(&j.arena, 0))
		return err_nomem(err);
	evaluate(&j);
	if (!err_stuck(j.err))
		report_table_begin(out, "health", (int64_t)j.hit_count, j.err);
	for (size_t i = 0; i < j.hit_count; i++)
		put_hit(out, &j, &j.hits[i]);
	if (j.hit_count == 0) {
		/* The columns of a table without rows. */
		put_hit(out, &j, &none);
		out->row_count = 0;
	}
	if (err_stuck(j.err))
		report_table_free(out);
	for (size_t i = 0; i < j.process_count; i++)
		outfeed_health_free(j.processes[i]->health);
	mem_free(j.processes);
	mem_free(j.tensors);
	map_fini(&j.map);
	mem_free(j.hits);
	arena_fini(&j.arena);
	return j.err->status;
}

static enum status rules_table(struct report_table *out, const struct outfeed_health_rules *rules,
			       struct err *err)
{
	report_table_begin(out, "health_rules", OUTFEED_HEALTH_RULES, err);
	for (int i = 0; i < OUTFEED_HEALTH_RULES; i++) {
		const struct outfeed_health_rule *rule = &rules->rule[i];
		const char *name = outfeed_health_describe((enum outfeed_health_id)i)->name;
		char parameters[OUTFEED_HEALTH_TEXT];
		const struct report_value values[] = {
			{{"rule", REPORT_TEXT}, report_cell_of_text(name)},
			{{"threshold", REPORT_REAL}, report_cell_of_real(rule->threshold)},
			{{"patience", REPORT_NUMBER}, report_cell_of_int(rule->patience)},
			{{"enabled", REPORT_BOOL}, report_cell_of_int(rule->enabled)},
			{{"parameters", REPORT_TEXT}, report_cell_of_text(parameters)},
		};

		outfeed_health_parameters(parameters, rules, (enum outfeed_health_id)i);
		report_table_put(out, values, ARRAY_LEN(values), err);
	}
	return err->status;
}

/* ---- the report ------------------------------------------------------------------------------ */

/* Set the note of JSON: the rules, in the form that --reevaluate reads. */
static enum status add_rules_note(struct report_table *table,
				  const struct outfeed_health_rules *rules, struct err *err)
{
	struct str text = {0};
	struct jsonw w;

	jsonw_init_str(&w, &text, 0);
	jsonw_begin_object(&w);
	for (int i = 0; i < OUTFEED_HEALTH_RULES; i++) {
		const struct outfeed_health_rule *rule = &rules->rule[i];
		const struct outfeed_health_about *about =
			outfeed_health_describe((enum outfeed_health_id)i);

		jsonw_key_object(&w, about->name);
		jsonw_key_real(&w, "threshold", rule->threshold);
		jsonw_key_int(&w, "patience", rule->patience);
		jsonw_key_bool(&w, "enabled", rule->enabled);
		for (int p = 0; p < OUTFEED_HEALTH_PARAMETERS && about->parameter[p]; p++)
			jsonw_key_real(&w, about->parameter[p], rule->parameter[p]);
		jsonw_end_object(&w);
	}
	jsonw_end_object(&w);
	table->note = text.failed ? NULL : arena_strdup(&table->arena, str_peek(&text));
	str_free(&text);
	return table->note ? ST_OK : err_nomem(err);
}

static enum status apply_limit(struct report_table *table, const struct report_request *request,
			       struct err *err)
{
	const bool text = request->render.format == REPORT_AS_TEXT;
	char shown[FMT_SIZE], whole[FMT_SIZE];
	int64_t limit = request->limit;

	if (limit == REPORT_LIMIT_DEFAULT)
		limit = text ? REPORT_TEXT_LIMIT : 0;
	if (limit == 0 || limit >= table->row_count)
		return ST_OK;
	if (text)
		table->note = arena_printf(&table->arena, "%s rows of %s", fmt_count(shown, limit),
					   fmt_count(whole, table->row_count));
	table->row_count = limit;
	return text && !table->note ? err_nomem(err) : ST_OK;
}

enum status report_run_reevaluate(const struct report_request *request, struct err *err)
{
	struct outfeed_health_rules rules;
	struct report_table table;
	struct err own;

	err = err_start(err, &own);
	if (report_health_rules(&rules, request->db, request->reevaluate, err) != ST_OK ||
	    report_health_hits(&table, request->db, &rules, err) != ST_OK)
		return err->status;
	if (request->render.format == REPORT_AS_JSON)
		add_rules_note(&table, &rules, err);
	if (!err_stuck(err) && apply_limit(&table, request, err) == ST_OK)
		report_render(&table, &request->render, request->out, err);
	report_table_free(&table);
	if (err_stuck(err) || request->render.format != REPORT_AS_TEXT)
		return err->status;
	if (rules_table(&table, &rules, err) == ST_OK) {
		fprintf(request->out, "\n");
		report_render(&table, &request->render, request->out, err);
	}
	report_table_free(&table);
	return err->status;
}
