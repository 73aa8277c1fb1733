/*
 * Insights: each is said of a small recorded run that has what it looks for, with the right subject
 * and number, and is not said of the same run without.
 */
#include "support/support.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "ipuscope/profiler.h"
#include "reports/insights/report_insights_internal.h"
#include "reports/report_registry.h"

#define US         INT64_C(1000)
#define MS         INT64_C(1000000)
#define CAPACITY   638976
#define STAGES     2
#define EXECUTIONS 3
#define OPERATIONS 6

/* A run in which all is well; each insight's case changes what it looks at. */
struct plan {
	bool trained, device, trace;
	int microbatches;
	int64_t work_ns[STAGES], update_ns[STAGES]; /* of a micro-batch; of an update */
	int64_t exchange, sync, host_io, idle;      /* of 1,000, on the device, IPU 0 */
	int64_t host_idle, host_data;               /* on the host, IPU 1 */
	double cpu, balance, loss;
	int64_t gap_cycles, first_ns; /* between executions; of the first on the host */
	int64_t operation_cycles;     /* of the first operation */
	int64_t tile_bytes, fifo_bytes;
	bool nonfinite, broken, lowered, oversubscribed, spans, tensors;
	int64_t exchange_bytes; /* between two ranks; 0: there is but one */
	bool taking_turns;      /* the ranks enter exchanges last in turn */
};

static const struct plan well = {
	.trained = true,
	.device = true,
	.trace = true,
	.microbatches = 16,
	.work_ns = {3 * MS, 3 * MS},
	.update_ns = {1 * MS, 1 * MS},
	.exchange = 50,
	.sync = 50,
	.host_io = 20,
	.idle = 80,
	.host_idle = 100,
	.host_data = 20,
	.cpu = 1,
	.balance = 0.9,
	.loss = 1.5,
	.gap_cycles = 1000,
	.first_ns = 100 * MS,
	.operation_cycles = 100,
	.tile_bytes = 100000,
};

/* ---- recording it ---------------------------------------------------------------------------- */

static struct ips_keys keys_of(int execution, int stage, int microbatch, char phase)
{
	struct ips_keys keys = IPS_KEYS_NULL;

	keys.mode = IPS_TRAIN;
	keys.epoch = 1;
	keys.execution = execution;
	keys.weight_update = execution;
	keys.replica = 0;
	keys.stage = stage;
	keys.ipu = stage;
	keys.phase = phase;
	if (phase != 'U') {
		keys.microbatch = microbatch;
		keys.step = microbatch;
	}
	return keys;
}

static void record_facts(struct ips_recording *r, const struct plan *plan)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", plan->microbatches);
	ips_meta_set(r, "model", "sequential");
	ips_meta_set(r, "schedule", "Grouped");
	ips_meta_set(r, "stages", "2");
	ips_meta_set(r, "ipus", "2");
	ips_meta_set(r, "replicas", "1");
	ips_meta_set(r, "batch_size", "32");
	ips_meta_set(r, "clock_hz", "1000000000");
	ips_meta_set(r, "gradient_accumulation", number);
	ips_meta_set(r, "oversubscribed", plan->oversubscribed ? "1" : "0");
	ips_meta_set(r, "run", "{\"compile\":{\"steps_per_execution\":160}}");
	ips_append_layer(r, &(struct ips_layer){"a", "Dense", 0, 0, "(32, 10)", 10, 10, 100});
	ips_append_layer(r, &(struct ips_layer){"b", "Dense", 1, 1, "(32, 10)", 10, 10, 100});
	ips_append_metric(
		r, &(struct ips_metric){IPS_TRAIN, 1, IPS_NULL, IPS_NULL, 0, "loss", plan->loss});
}

static void record_timing(struct ips_recording *r, const struct plan *plan, struct ips_keys keys,
			  int64_t dur_ns)
{
	for (int clock = 0; clock < 1 + plan->device; clock++) {
		struct ips_stage_timing row = {
			.keys = keys,
			.clock = clock,
			.start_ns = keys.execution * 100 * MS,
			.dur_ns = dur_ns,
			.cpu_ns = clock ? IPS_NULL : (int64_t)((double)dur_ns * plan->cpu)};

		assert_int_equal(ips_append_stage_timing(r, &row), 0);
	}
}

static void record_bubble(struct ips_recording *r, const struct plan *plan, int execution)
{
	struct ips_bubble row = {.keys = IPS_KEYS_NULL,
				 .clock = plan->device,
				 .schedule = "Grouped",
				 .stages = STAGES,
				 .microbatches = plan->microbatches,
				 .makespan_ns = 60 * MS,
				 .busy_ns = 100 * MS,
				 .idle_fraction = 1.0 / 6,
				 .bubble_rate = 1.0 / 6,
				 .bubble_over_ideal = 0.2,
				 .theory_idle_fraction = 0.1,
				 .theory_bubble_rate = 0.1,
				 .theory_bubble_over_ideal = 0.1,
				 .ramp_up_ns = 5 * MS,
				 .ramp_down_ns = 5 * MS,
				 .imbalance_ns = 5 * MS,
				 .communication_ns = 5 * MS,
				 .oversubscribed = 0};

	row.keys.mode = IPS_TRAIN;
	row.keys.epoch = 1;
	row.keys.execution = row.keys.weight_update = execution;
	assert_int_equal(ips_append_bubble(r, &row), 0);
}

static void record_executions(struct ips_recording *r, const struct plan *plan)
{
	for (int e = 0; e < EXECUTIONS; e++) {
		struct ips_execution row = {.mode = IPS_TRAIN,
					    .epoch = 1,
					    .execution = e,
					    .first_step = e * plan->microbatches,
					    .steps = plan->microbatches,
					    .updates = 1,
					    .start_ns = e * 1000 * MS,
					    .dur_ns = e ? 100 * MS : plan->first_ns,
					    .start_cycle = IPS_NULL,
					    .cycles = IPS_NULL,
					    .traced = plan->trace};

		if (plan->device) {
			row.start_cycle = e * (1000000 + plan->gap_cycles);
			row.cycles = 1000000;
		}
		assert_int_equal(ips_append_execution(r, &row), 0);
		record_bubble(r, plan, e);
		for (int s = 0; s < STAGES; s++) {
			for (int m = 0; m < plan->microbatches; m++) {
				record_timing(r, plan, keys_of(e, s, m, 'F'), plan->work_ns[s] / 3);
				record_timing(r, plan, keys_of(e, s, m, 'B'),
					      plan->work_ns[s] - plan->work_ns[s] / 3);
			}
			record_timing(r, plan, keys_of(e, s, 0, 'U'), plan->update_ns[s]);
		}
	}
}

static void record_times(struct ips_recording *r, const struct plan *plan)
{
	for (int e = 0; e < EXECUTIONS; e++) {
		struct ips_time_split row = {0, e, 0, 1, 0, 0, 0, plan->host_data, plan->host_idle};

		row.compute_ns = 1000 - plan->host_data - plan->host_idle;
		ips_append_time_split(r, &row);
		if (!plan->device)
			continue;
		row = (struct ips_time_split){
			1, e, 0, 0, 0, plan->exchange, plan->sync, plan->host_io, plan->idle};
		row.compute_ns = 1000 - plan->exchange - plan->sync - plan->host_io - plan->idle;
		ips_append_time_split(r, &row);
	}
}

static void record_trace(struct ips_recording *r, const struct plan *plan)
{
	static const char *const types[] = {"StreamCopyBegin", "StreamCopyMid", "OnTileExecute"};
	const struct ips_device_trace trace = {.clock_hz = 1e9, .name = "train"};
	const struct ips_device_run run = {.mode = IPS_TRAIN, .epoch = 1};

	ips_append_device_trace(r, &trace);
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		struct ips_device_step step = {.type = types[i],
					       .cycles = i == 2 ? 8000 : 1000 * (int64_t)i + 100,
					       .tile_balance = NAN,
					       .active_tile_balance = i == 2 ? plan->balance : NAN,
					       .phase = "F"};

		ips_append_device_step(r, &step);
	}
	ips_append_device_run(r, &run);
}

static void record_device(struct ips_recording *r, const struct plan *plan)
{
	for (int i = 0; i < OPERATIONS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "a/op%d", i);
		ips_append_operation(r,
				     &(struct ips_operation){name, "a", "matmul", i % 2 ? "B" : "F",
							     0, 1, i ? 100 : plan->operation_cycles,
							     1, 1, 1, 1, 1, 0.5, 1});
	}
	ips_append_plan(r, &(struct ips_plan){"a/op0", "AMP", 1, 2, 3, 4, 1, 1, 0, 100});
	for (int ipu = 0; ipu < STAGES; ipu++) {
		ips_append_tile_memory(
			r, &(struct ips_tile_memory){ipu, 3, "variables", "interleaved",
						     ipu ? 50000 : plan->tile_bytes, CAPACITY, 1});
		ips_append_liveness(r, &(struct ips_liveness){ipu, 0, 0, 90000, 10000});
		ips_append_liveness(r, &(struct ips_liveness){ipu, 1, 1, 90000, 20000});
	}
	ips_append_program(r, &(struct ips_program){0, IPS_NULL, 0, "Sequence", "Stage0/F", NULL,
						    IPS_NULL, IPS_NULL});
	ips_append_program(r, &(struct ips_program){1, 0, 0, "OnTileExecute", "a/op0", "a/op0",
						    IPS_NULL, IPS_NULL});
	if (plan->fifo_bytes)
		ips_append_variable(r, &(struct ips_variable){0, "a/output/fifo", "a", "fifo",
							      "(1,)", "float32", plan->fifo_bytes,
							      0, 1, IPS_NULL, IPS_NULL});
	/* The input of a stage is stashed with recomputation as well, and so are random numbers. */
	ips_append_variable(r,
			    &(struct ips_variable){1, "infeed/fifo", NULL, "fifo", "(1,)",
						   "float32", 1 << 20, 0, 1, IPS_NULL, IPS_NULL});
	ips_append_variable(r, &(struct ips_variable){2, "a/random/fifo", "a", "fifo", "(1,)",
						      "int32", 1 << 20, 0, 1, IPS_NULL, IPS_NULL});
}

static void record_health(struct ips_recording *r, const struct plan *plan)
{
	const struct ips_tensor tensor = {"q",    "a/kernel:0_grad", "gradient", "a", 0,
					  "(3,)", "float32",         NULL,       NULL};
	int64_t id = ips_tensor_add(r, &tensor);
	struct ips_tensor_tier tier = {.keys = IPS_KEYS_NULL,
				       .tensor_id = id,
				       .tier = "stats",
				       .every = 1,
				       .keep = IPS_NULL,
				       .time_ns = 4 * MS,
				       .why = "budget"};

	if (plan->nonfinite)
		ips_append_first_nonfinite(r, &(struct ips_first_nonfinite){keys_of(1, 0, 7, 'B'),
									    id, 7 * MS, 17, "nan"});
	if (plan->broken)
		ips_append_health(r, &(struct ips_health){keys_of(1, 0, 5, 'B'), "vanishing", id,
							  NULL, 5 * MS, 1e-9, 1e-7, NULL});
	if (plan->lowered)
		ips_append_tensor_tier(r, &tier);
}

static void record_spans(struct ips_recording *r)
{
	IPS_SITE(outer, "work", "outer");
	IPS_SITE(inner, "work", "inner");
	struct ips_track *track = ips_track_open(r, "worker 0", NULL);

	for (int i = 0; i < 100; i++) {
		ips_span_at(track, &outer, i * MS, 900 * US);
		ips_span_at(track, &inner, i * MS, 800 * US);
	}
}

/* One of each weight update. Rank 1 enters 3 ms later; with plan->taking_turns one of the ranks
 * enters 6 ms later. */
static void record_exchanges(struct ips_recording *r, const struct plan *plan)
{
	IPS_SITE(exchange, "mpi", "MPI_Allreduce");
	const int delay = plan->taking_turns ? 6 : 3;

	for (int rank = 0; rank < 2; rank++) {
		struct ips_track *track =
			ips_track_open(r, rank ? "rank 1/exchange" : "exchange", NULL);

		for (int i = 0; i < 10; i++) {
			struct ips_keys keys = keys_of(i, 0, 0, 'U');
			const bool late = rank == (plan->taking_turns ? i % 2 : 1);

			ips_track_set_keys(track, &keys);
			ips_span_at(track, &exchange, (10 * i + late * delay) * MS,
				    (late ? 1 : 1 + delay) * MS);
			ips_span_arg_int(track, "size", plan->exchange_bytes);
			ips_span_arg_int(track, "ranks", 2);
		}
	}
}

static void execute(const char *path, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void record(const char *path, const struct plan *plan)
{
	struct ips_recording_params params;
	struct ips_recording *r;
	char message[1024] = "";

	ips_recording_params_defaults(&params);
	if (ips_recording_open(&r, path, &params, message, sizeof(message)))
		fail_msg("%s", message);
	if (plan->trained) {
		record_facts(r, plan);
		record_executions(r, plan);
		record_times(r, plan);
		record_health(r, plan);
	}
	if (plan->trained && plan->device)
		record_device(r, plan);
	if (plan->trained && plan->trace)
		record_trace(r, plan);
	if (plan->spans)
		record_spans(r);
	if (plan->tensors)
		record_health(r, plan);
	if (plan->exchange_bytes)
		record_exchanges(r, plan);
	if (ips_recording_close(r, message, sizeof(message)))
		fail_msg("%s", message);
	/* What recording costs is the machine's matter. */
	execute(path, "UPDATE overhead_sum_rows SET write_ns = 0, record_ns_estimate = 0;"
		      "UPDATE track_rows SET rank = 1 WHERE track LIKE 'rank 1/%'");
}

/* ---- the cases ------------------------------------------------------------------------------- */

#define CHANGE(name, ...)                                                                          \
	static void name(struct plan *plan)                                                        \
	{                                                                                          \
		__VA_ARGS__;                                                                       \
	}

CHANGE(few_microbatches, plan->microbatches = 4)
CHANGE(ramps_long, plan->microbatches = 8)
CHANGE(stage_0_slow, plan->work_ns[0] = 6 * MS)
CHANGE(stage_1_slow, plan->work_ns[1] = 6 * MS)
CHANGE(idle, plan->idle = 600)
CHANGE(streams, plan->host_io = 300)
CHANGE(syncs, plan->sync = 300)
CHANGE(updates, plan->update_ns[1] = 16 * MS)
CHANGE(one_operation, plan->operation_cycles = 500)
CHANGE(unbalanced, plan->balance = 0.25)
CHANGE(full, plan->tile_bytes = 600000)
CHANGE(too_full, plan->tile_bytes = 700000)
CHANGE(stashes, plan->fifo_bytes = 50000)
CHANGE(gaps, plan->gap_cycles = 1000000)
CHANGE(slow_start, plan->first_ns = 300 * MS)
CHANGE(host_idle, plan->host_idle = 700)
CHANGE(host_data, plan->host_data = 200)
CHANGE(small_exchanges, plan->exchange_bytes = 1000)
CHANGE(great_exchanges, plan->exchange_bytes = 1 << 20)
CHANGE(half_a_core, plan->cpu = 0.5)
CHANGE(many_workers, plan->oversubscribed = true)
CHANGE(no_device, plan->device = plan->trace = false)
CHANGE(untraced, plan->trace = false)
CHANGE(nan_loss, plan->loss = NAN)
CHANGE(nan_tensor, plan->nonfinite = true)
CHANGE(broken, plan->broken = true)
CHANGE(lowered, plan->lowered = true)
CHANGE(foreign, plan->trained = false; plan->spans = true)
CHANGE(empty, plan->trained = false)

#define STATE "UPDATE meta_facts SET value = 'recording' WHERE key = 'state';"
#define DEAD  "UPDATE meta_facts SET value = '999999999' WHERE key = 'pid';"
/* A merged run: rank 1 executed at the same time. */
#define RANK_1                                                                                     \
	"INSERT INTO execution_rows SELECT NULL, 1, mode, epoch, execution, first_step, steps, "   \
	"updates, start_ns, dur_ns, start_cycle, cycles, traced FROM execution_rows;"              \
	"INSERT INTO execution_sum_rows SELECT NULL, 1, mode, epoch, executions, steps, updates, " \
	"traced, untraced, first_start_ns, last_end_ns, total_ns, cycles FROM execution_sum_rows;"

static const struct {
	const char *id, *subject, *number;
	double value;
	void (*change)(struct plan *plan);
	const char *sql;
} cases[] = {
	{"writer_failed", NULL, NULL, 0, NULL,
	 STATE DEAD "INSERT INTO meta_facts VALUES ('failure', 'disk full')"},
	{"killed", NULL, NULL, 0, NULL, STATE DEAD},
	{"still_recording", NULL, NULL, 0, NULL, STATE},
	{"repaired", NULL, NULL, 0, NULL, "INSERT INTO meta_facts VALUES ('repaired', '1')"},
	{"lost_events", NULL, "dropped", 7, NULL, "UPDATE overhead_sum_rows SET dropped = 7"},
	{"lost_events", NULL, "names_cut", 3, NULL,
	 "INSERT INTO meta_facts VALUES ('names_cut', '3')"},
	{"recording_cost", NULL, "record_ns", 1e9, NULL,
	 "UPDATE overhead_sum_rows SET record_ns_estimate = 1000000000;"
	 "UPDATE execution_sum_rows SET last_end_ns = 4000000000"},
	{"first_nonfinite", "a/kernel:0_grad", "time_ns", 7e6, nan_tensor, NULL},
	{"loss_nonfinite", "loss", "epoch", 1, nan_loss, NULL},
	{"rule_broken", "vanishing", "hits", 1, broken, NULL},
	{"tiers_lowered", NULL, "tensors_lowered", 1, lowered, NULL},
	{"out_of_memory", "0", "tiles_over", 2, too_full, NULL},
	{"tile_memory", "0", "used_share", 600000.0 / CAPACITY, full, NULL},
	{"memory_peak", "0", "peak_bytes", 110000, too_full, NULL},
	{"recomputation", "0", "saved_bytes", 50000 - 2 * 16, stashes, NULL},
	{"ramps", NULL, "theory_ramp_idle_fraction", 0.2, few_microbatches, NULL},
	{"ramps", NULL, "theory_ramp_idle_fraction", 1.0 / 9, ramps_long, NULL},
	{"slow_stage", "1", "imbalance", 1.0 / 3, stage_1_slow, NULL},
	{"idle_ipu", "0", "waiting_share", 0.6, idle, NULL},
	{"stream_copies", "0", "host_io_share", 0.3, streams, NULL},
	{"communication", "0", "sync_share", 0.3, syncs, NULL},
	{"weight_update", "1", "update_share", 0.25, updates, NULL},
	{"operation", "a/op0", "share", 0.5, one_operation, NULL},
	{"tile_balance", NULL, "active_tile_balance", 0.25, unbalanced, NULL},
	{"engine_run", NULL, "host_share", 0.5, gaps, NULL},
	{"engine_run", NULL, "host_share", 0.5, gaps, RANK_1},
	/* The cycles of the last execution are not in the time from start to start. */
	{"engine_run", NULL, "host_share", 0.625, gaps,
	 "UPDATE execution_rows SET cycles = 500000 WHERE execution = 0"},
	{"engine_run", NULL, "host_share", 0.5, gaps,
	 "UPDATE execution_rows SET cycles = 500000 WHERE execution = 2"},
	{"host_waits", "1", "waiting_share", 0.7, host_idle, NULL},
	{"host_data", "1", "host_io_share", 0.2, host_data, NULL},
	{"host_data", "1", "host_io_share", 0.2, host_data,
	 "INSERT INTO meta_facts VALUES ('decoding', 'as needed')"},
	{"slow_rank", "1", "waited_ns", 30e6, great_exchanges, NULL},
	{"small_buckets", NULL, "exposed_share", 50.0 / 185, small_exchanges, NULL},
	{"busy_machine", NULL, "cpu_share", 0.5, half_a_core, NULL},
	{"oversubscribed", NULL, NULL, 0, many_workers, NULL},
	{"first_execution", "0", "first_ns", 3e8, slow_start, NULL},
	{"first_execution", "0", "mean_ns", 1e8, slow_start, RANK_1},
	/* An evaluation came before the training. */
	{"first_execution", "4", "first_ns", 3e8, slow_start,
	 "UPDATE execution_rows SET execution = execution + 4"},
	{"no_trace", NULL, NULL, 0, untraced, NULL},
	{"host_only", NULL, NULL, 0, no_device, NULL},
	{"hot_span", "inner", "track_share", 8.0 / 9, foreign, NULL},
	{"nothing", NULL, NULL, 0, empty, NULL},
};

/* Said of every run that has the data. */
static const char *const always[] = {"memory_peak"};
/* Need the traces of a real run (report_insights.sh) or of a GPU (report_insights_gpu.sh). */
static const char *const by_script[] = {
	"other_schedule",        "one_ipu",       "device_idle", "device_copies",
	"exposed_communication", "short_kernels", "hot_kernel",  "critical_path"};

static bool is_among(const char *id, const char *const *ids, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(ids[i], id))
			return true;
	return false;
}

static void get(struct report_insights *out, struct prof_db **db, const char *path)
{
	struct err err = {0};

	if (prof_db_open(db, path, &err) != ST_OK)
		fail_msg("%s", err.text);
	if (report_insights_get(out, *db, &err) != ST_OK)
		fail_msg("%s", err.text);
}

static const struct report_insight *find(const struct report_insights *insights, const char *id)
{
	for (int i = 0; i < insights->count; i++)
		if (!strcmp(insights->items[i].id, id))
			return &insights->items[i];
	return NULL;
}

static double number_of(const struct report_insight *insight, const char *name)
{
	for (int i = 0; i < insight->number_count; i++)
		if (!strcmp(insight->numbers[i].name, name))
			return insight->numbers[i].value;
	fail_msg("%s has no number %s", insight->id, name);
	return NAN;
}

static void check_case(const char *path, size_t i)
{
	const struct report_insight *insight;
	struct report_insights insights;
	struct report_table table;
	struct prof_db *db;
	struct err err = {0};

	get(&insights, &db, path);
	insight = find(&insights, cases[i].id);
	if (!insight)
		fail_msg("%s is not said", cases[i].id);
	if (cases[i].subject)
		assert_string_equal(insight->subject, cases[i].subject);
	if (cases[i].number)
		assert_close(number_of(insight, cases[i].number), cases[i].value,
			     1e-9 * (1 + fabs(cases[i].value)));
	assert_true(strlen(insight->sentence) > 20);
	if (cases[i].sql && strstr(cases[i].sql, "decoding"))
		assert_contains(insight->remedy, "`data.cache_bytes`");
	if (report_table_query(&table, db, "sql", insight->sql, 0, &err) != ST_OK)
		fail_msg("%s: %s", insight->id, err.text);
	if (table.row_count == 0)
		fail_msg("%s: its query has no rows", insight->id);
	report_table_free(&table);
	report_insights_free(&insights);
	prof_db_close(db);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void each_is_said_of_a_run_that_has_it(void **state)
{
	char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 32];

	(void)state;
	support_tempdir(folder);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct plan plan = well;

		snprintf(path, sizeof(path), "%s/%zu.db", folder, i);
		if (cases[i].change)
			cases[i].change(&plan);
		record(path, &plan);
		if (cases[i].sql)
			execute(path, cases[i].sql);
		check_case(path, i);
	}
	support_tempdir_remove(folder);
}

/* Whoever records tensors from a program of his own has no ipu-train to run. */
static void without_times_the_advice_fits_what_there_is(void **state)
{
	char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 32];
	const struct report_insight *insight;
	struct report_insights insights;
	struct plan plan = well;
	struct prof_db *db;

	(void)state;
	empty(&plan);
	for (int tensors = 0; tensors < 2; tensors++) {
		support_tempdir(folder);
		snprintf(path, sizeof(path), "%s/own.db", folder);
		plan.tensors = tensors;
		record(path, &plan);
		get(&insights, &db, path);
		insight = find(&insights, "nothing");
		assert_non_null(insight);
		assert_int_equal(strstr(insight->sentence, "Tensors were recorded") != NULL,
				 tensors);
		/* Another's program, whose trainer is not ours to run. */
		assert_null(strstr(insight->remedy, "ipu-train"));
		assert_non_null(strstr(insight->remedy, "Spans"));
		report_insights_free(&insights);
		prof_db_close(db);
		support_tempdir_remove(folder);
	}
}

static void the_words_fit_the_run(void **state)
{
	static const struct {
		const char *id;
		void (*change)(struct plan *plan);
		const char *sql, *sentence, *remedy; /* parts of what is said; NULL: any */
	} said[] = {
		/* 4 times as many, 16, do not divide 120 steps; 12 do. */
		{"ramps", few_microbatches,
		 "UPDATE meta_facts SET value = '{\"compile\":{\"steps_per_execution\":120}}' "
		 "WHERE key = 'run'",
		 NULL, "`--gradient_accumulation.steps_per_replica 12`"},
		{"slow_stage", stage_1_slow, NULL, "Stage 1 (b) is the slowest", NULL},
		{"slow_stage", stage_0_slow, NULL, "Stage 0 (a) is the slowest", NULL},
		{"slow_stage", stage_1_slow, "DELETE FROM layer_rows WHERE stage = 1",
		 "Stage 1 (its layers) is the slowest", NULL},
		{"killed", NULL, STATE DEAD "UPDATE overhead_sum_rows SET time_ns = NULL",
		 "how much of the run is missing is not known", NULL},
		{"killed", NULL, STATE DEAD "UPDATE overhead_sum_rows SET time_ns = 4000000",
		 "what came after the last commit, at 4 ms, is missing", NULL},
	};
	char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 32];

	(void)state;
	support_tempdir(folder);
	for (size_t i = 0; i < ARRAY_LEN(said); i++) {
		const struct report_insight *insight;
		struct report_insights insights;
		struct plan plan = well;
		struct prof_db *db;

		snprintf(path, sizeof(path), "%s/%zu.db", folder, i);
		if (said[i].change)
			said[i].change(&plan);
		record(path, &plan);
		if (said[i].sql)
			execute(path, said[i].sql);
		get(&insights, &db, path);
		insight = find(&insights, said[i].id);
		assert_non_null(insight);
		if (said[i].sentence)
			assert_contains(insight->sentence, said[i].sentence);
		if (said[i].remedy)
			assert_contains(insight->remedy, said[i].remedy);
		report_insights_free(&insights);
		prof_db_close(db);
	}
	support_tempdir_remove(folder);
}

/* Without the clock's rate a gap has no length. */
static void a_gap_of_an_unknown_clock_is_not_said(void **state)
{
	char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 32];
	struct report_insights insights;
	struct plan plan = well;
	struct prof_db *db;

	(void)state;
	gaps(&plan);
	support_tempdir(folder);
	snprintf(path, sizeof(path), "%s/run.db", folder);
	record(path, &plan);
	execute(path, "DELETE FROM meta_facts WHERE key = 'clock_hz'");
	get(&insights, &db, path);
	assert_null(find(&insights, "engine_run"));
	report_insights_free(&insights);
	prof_db_close(db);
	support_tempdir_remove(folder);
}

static void none_is_said_of_a_run_in_which_all_is_well(void **state)
{
	char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 32];
	struct report_insights insights;
	struct plan plan = well;
	struct prof_db *db;

	(void)state;
	for (int ranks = 1; ranks <= 2; ranks++) {
		if (ranks == 2) {
			great_exchanges(&plan);
			plan.taking_turns = true;
		}
		support_tempdir(folder);
		snprintf(path, sizeof(path), "%s/well.db", folder);
		record(path, &plan);
		get(&insights, &db, path);
		for (int i = 0; i < insights.count; i++)
			if (!is_among(insights.items[i].id, always, ARRAY_LEN(always)))
				fail_msg("%s: %s", insights.items[i].id,
					 insights.items[i].sentence);
		report_insights_free(&insights);
		prof_db_close(db);
		support_tempdir_remove(folder);
	}
}

static void every_insight_has_a_case(void **state)
{
	(void)state;
	for (int at = 0; report_insight_id(at); at++) {
		bool found = is_among(report_insight_id(at), by_script, ARRAY_LEN(by_script));

		for (size_t i = 0; i < ARRAY_LEN(cases); i++)
			found |= !strcmp(cases[i].id, report_insight_id(at));
		if (!found)
			fail_msg("%s has no case", report_insight_id(at));
	}
}

static void problems_come_first_then_what_is_most_at_stake(void **state)
{
	char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 32];
	struct report_insights insights;
	struct plan plan = well;
	struct prof_db *db;

	(void)state;
	idle(&plan);
	few_microbatches(&plan);
	too_full(&plan);
	broken(&plan);
	support_tempdir(folder);
	snprintf(path, sizeof(path), "%s/order.db", folder);
	record(path, &plan);
	get(&insights, &db, path);
	assert_string_equal(insights.items[0].id, "out_of_memory");
	for (int i = 1; i < insights.count; i++) {
		const struct report_insight *a = &insights.items[i - 1], *b = &insights.items[i];

		assert_true(a->severity <= b->severity);
		assert_true(a->severity < b->severity || a->share >= b->share);
	}
	report_insights_free(&insights);
	prof_db_close(db);
	support_tempdir_remove(folder);
}

static char *ask(const char *path, const struct report_request *asked)
{
	const struct report_entry *entry;
	struct report_request request = *asked;
	struct err err = {0};
	size_t size;
	char *text;

	request.out = open_memstream(&text, &size);
	assert_int_equal(report_entry_find(&entry, "insights", &err), ST_OK);
	if (prof_db_open(&request.db, path, &err) != ST_OK ||
	    entry->run(entry, &request, &err) != ST_OK)
		fail_msg("%s", err.text);
	prof_db_close(request.db);
	fclose(request.out);
	return text;
}

static void columns_and_conditions_choose_among_them(void **state)
{
	const struct report_request choice = {.render = {.format = REPORT_AS_CSV, .tool = "test"},
					      .choice = {.columns = "id,subject,share",
							 .where = {"severity = 'advice'"},
							 .where_count = 1}};
	const struct report_request prose = {
		.render = {.width = 80},
		.choice = {.where = {"id = 'idle_ipu'"}, .where_count = 1}};
	const struct report_request first = {
		.render = choice.render, .choice = choice.choice, .limit = 1};
	const struct report_request sql = {.choice = {.sql = true}};
	char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 32], *text;
	struct plan plan = well;

	(void)state;
	idle(&plan);
	few_microbatches(&plan);
	support_tempdir(folder);
	snprintf(path, sizeof(path), "%s/choice.db", folder);
	record(path, &plan);
	text = ask(path, &choice);
	assert_string_equal(text,
			    "id,subject,share\r\nidle_ipu,0,0.6\r\nramps,,0.08333333333333333\r\n");
	free(text);
	text = ask(path, &first);
	assert_string_equal(text, "id,subject,share\r\nidle_ipu,0,0.6\r\n");
	free(text);
	text = ask(path, &prose);
	assert_non_null(strstr(text, "Insights: 0 problems, 1 piece of advice, 0 notes\n"));
	assert_null(strstr(text, "ramps"));
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		assert_true(strlen(line) <= 80);
	free(text);
	text = ask(path, &sql);
	assert_non_null(strstr(text, "-- idle_ipu\nSELECT"));
	free(text);
	support_tempdir_remove(folder);
}

static void a_failing_allocation_is_told(void **state)
{
	char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 32];
	struct report_insights insights;
	struct plan plan = well;
	struct prof_db *db;
	bool failed = true;

	(void)state;
	idle(&plan);
	broken(&plan);
	stashes(&plan);
	support_tempdir(folder);
	snprintf(path, sizeof(path), "%s/alloc.db", folder);
	record(path, &plan);
	assert_int_equal(prof_db_open(&db, path, NULL), ST_OK);
	for (long n = 0; failed && n < 2000; n++) {
		enum status status;

		support_fail_alloc(n);
		status = report_insights_get(&insights, db, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		/* An arena may do with a smaller block, and what-if without its inputs. */
		assert_true(status == ST_OK || (failed && status == ST_NOMEM));
		report_insights_free(&insights);
	}
	prof_db_close(db);
	support_tempdir_remove(folder);
}

static void the_page_names_every_insight_and_limit(void **state)
{
	static const char *const names[] = {
#define LIMIT_NAME(id, name, value, why) name,
		REPORT_INSIGHT_LIMIT_MAP(LIMIT_NAME)
#undef LIMIT_NAME
	};
	char path[SUPPORT_PATH_SIZE + 64], word[160], *page;

	(void)state;
	snprintf(path, sizeof(path), "%s/docs/insights.md", support_source_dir());
	page = support_read_file(path, NULL);
	for (int at = 0; report_insight_id(at); at++) {
		snprintf(word, sizeof(word), "| `%s` |", report_insight_id(at));
		if (!strstr(page, word))
			fail_msg("docs/insights.md lacks %s", word);
	}
	for (int i = 0; i < REPORT_INSIGHT_LIMITS; i++) {
		snprintf(word, sizeof(word), "| `%s` | %g |", names[i],
			 report_insight_limit((enum report_insight_limit)i));
		if (!strstr(page, word))
			fail_msg("docs/insights.md lacks %s", word);
	}
	free(page);
}

static void numbers_are_finite_and_no_more_than_have_room(void **state)
{
	struct report_insight insight = {.share = 0.25};

	(void)state;
	report__insight_number(&insight, "nan", (double)NAN, REPORT_REAL);
	report__insight_number(&insight, "infinite", (double)-INFINITY, REPORT_REAL);
	assert_int_equal(insight.number_count, 0);
	for (int i = 0; i < 2 * REPORT_INSIGHT_NUMBERS; i++)
		report__insight_number(&insight, "number", i, REPORT_NUMBER);
	assert_int_equal(insight.number_count, REPORT_INSIGHT_NUMBERS);
	for (int i = 0; i < REPORT_INSIGHT_NUMBERS; i++)
		assert_true(insight.numbers[i].value == i);
	assert_true(insight.share == 0.25);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_said_of_a_run_that_has_it),
		cmocka_unit_test(without_times_the_advice_fits_what_there_is),
		cmocka_unit_test(the_words_fit_the_run),
		cmocka_unit_test(a_gap_of_an_unknown_clock_is_not_said),
		cmocka_unit_test(none_is_said_of_a_run_in_which_all_is_well),
		cmocka_unit_test(every_insight_has_a_case),
		cmocka_unit_test(numbers_are_finite_and_no_more_than_have_room),
		cmocka_unit_test(problems_come_first_then_what_is_most_at_stake),
		cmocka_unit_test(columns_and_conditions_choose_among_them),
		cmocka_unit_test(a_failing_allocation_is_told),
		cmocka_unit_test(the_page_names_every_insight_and_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
