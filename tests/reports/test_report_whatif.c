/*
 * What-if is the recorded run file, planned again: names for keys, what they may be, what a
 * recording must have. tests/reports/report_whatif.sh compares predictions with runs that were
 * trained.
 */
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "ipuscope/profiler.h"
#include "model/plan/plan_run.h"
#include "reports/whatif/report_whatif.h"
#include "support/run_checks.h"
#include "support/verb_out.h"

#define PATH (SUPPORT_PATH_SIZE + 64)

#define DENSE(name, units)                                                                         \
	"{\"class_name\":\"Dense\",\"config\":{\"name\":\"" name "\",\"units\":" #units "}}"
#define LAYERS                                                                                     \
	"{\"class_name\":\"Sequential\",\"config\":{\"name\":\"m\",\"layers\":[" DENSE(            \
		"a", 64) "," DENSE("b", 32) "," DENSE("c", 32) "," DENSE("d", 10) "]}}"
/* Everything of a run but its layout. */
#define RUN(model, rest)                                                                           \
	"{\"model\":" model ",\"compile\":{\"loss\":\"sparse_categorical_crossentropy\","          \
	"\"steps_per_execution\":16},\"data\":{\"name\":\"mnist\",\"batch_size\":4},"              \
	"\"fit\":{\"steps_per_epoch\":32}," rest "}"
#define TWO                                                                                        \
	"\"ipu\":{\"auto_select_ipus\":2},\"gradient_accumulation\":{\"steps_per_replica\":8},"    \
	"\"pipeline\":{\"stages\":[0,0,1,1]}"
#define DATA                                                                                       \
	"{\"train_items\":1000,\"test_items\":200,\"item\":[16],"                                  \
	"\"train\":{\"classes\":10,\"width\":0},\"test\":{\"classes\":10,\"width\":0}}"

static char folder[SUPPORT_PATH_SIZE], path[PATH];

/* ---- a recording ----------------------------------------------------------------------------- */

/* The cycles of a weight update of such a run, by the planner itself. */
static int64_t planned_cycles(const char *text)
{
	struct plan_run plan = {0};
	struct run_data data;
	struct err err = {0};
	int64_t cycles;

	if (run_data_read(&data, DATA, "data", &err) != ST_OK ||
	    run_file_parse(&plan.run, "run", text, strlen(text), 0, NULL, &support_run_checks,
			   &err) != ST_OK ||
	    plan_run_build(&plan, &data, false, &err) != ST_OK ||
	    plan_run_compile(&plan, &data, &err) != ST_OK)
		fail_msg("%s", err.text);
	cycles = plan.device->timeline[RUN_TRAIN]->cycles;
	plan_run_fini(&plan);
	return cycles;
}

/* On the device's clock: a bubble, and how long two stages worked in eight micro-batches. */
static void record_device(struct ips_recording *recording)
{
	struct ips_bubble bubble = {.keys = IPS_KEYS_NULL,
				    .clock = IPS_DEVICE,
				    .schedule = "Grouped",
				    .stages = 2,
				    .microbatches = 8,
				    .makespan_ns = 700000,
				    .busy_ns = 210000,
				    .idle_fraction = 0.85,
				    .bubble_rate = 0.85,
				    .bubble_over_ideal = 5.67,
				    .theory_idle_fraction = 0.11,
				    .theory_bubble_rate = 0.11,
				    .theory_bubble_over_ideal = 0.125,
				    .ramp_up_ns = 100000,
				    .ramp_down_ns = 90000,
				    .imbalance_ns = 50000,
				    .communication_ns = 950000};

	assert_int_equal(ips_meta_set(recording, "stages", "2"), 0);
	bubble.keys.mode = IPS_TRAIN;
	bubble.keys.epoch = 1;
	bubble.keys.execution = bubble.keys.weight_update = bubble.keys.replica = 0;
	assert_int_equal(ips_append_bubble(recording, &bubble), 0);
	ips_append_device_trace(recording,
				&(struct ips_device_trace){.clock_hz = 1.33e9, .name = "train"});
	ips_append_device_step(recording, &(struct ips_device_step){.phase = "F",
								    .type = "OnTileExecute",
								    .name = "a",
								    .cycles = 1000,
								    .active_tiles = 1472,
								    .tile_balance = 0.9,
								    .active_tile_balance = 0.9});
	ips_append_device_run(recording, &(struct ips_device_run){.mode = IPS_TRAIN, .epoch = 1});
	for (int i = 0; i < 8 * 2 * 2; i++) {
		struct ips_stage_timing timing = {.keys = bubble.keys,
						  .clock = IPS_DEVICE,
						  .start_ns = i * 20000,
						  .dur_ns = i % 2 ? 9000 : 3000};

		timing.keys.stage = timing.keys.ipu = i % 2;
		timing.keys.step = timing.keys.microbatch = i / 4;
		timing.keys.phase = "FB"[i / 2 % 2];
		assert_int_equal(ips_append_stage_timing(recording, &timing), 0);
	}
}

/* What ipu-train records of such a run, as far as what-if asks; NULLs and 0 are left out. */
static void record(const char *text, const char *data, int64_t cycles)
{
	const struct ips_execution row = {.mode = IPS_TRAIN,
					  .epoch = 1,
					  .steps = 16,
					  .updates = 2,
					  .dur_ns = 1000,
					  .start_cycle = 0,
					  .cycles = 2 * cycles,
					  .traced = 0};
	struct ips_recording *recording;

	remove(path);
	assert_int_equal(ips_recording_open(&recording, path, NULL, NULL, 0), 0);
	if (text)
		assert_int_equal(ips_meta_set(recording, "run", text), 0);
	if (data)
		assert_int_equal(ips_meta_set(recording, "data", data), 0);
	if (cycles > 0) {
		assert_int_equal(ips_append_execution(recording, &row), 0);
		record_device(recording);
	}
	assert_int_equal(ips_recording_close(recording, NULL, 0), 0);
}

static enum status open_it(struct report_whatif **out, struct err *err)
{
	struct prof_db *db;
	enum status status;

	assert_int_equal(prof_db_open(&db, path, NULL), ST_OK);
	status = report_whatif_open(out, db, REPORT_WHATIF_DEVICE, err);
	prof_db_close(db);
	return status;
}

static struct report_whatif *recorded(const char *text)
{
	struct report_whatif *whatif;
	struct err err = {0};

	record(text, DATA, planned_cycles(text));
	if (open_it(&whatif, &err) != ST_OK)
		fail_msg("%s", err.text);
	return whatif;
}

static struct report_whatif_prediction predicted(const struct report_whatif *whatif,
						 const struct report_whatif_change *change)
{
	struct report_whatif_prediction out;
	struct err err = {0};

	if (report_whatif_predict(&out, whatif, change, &err) != ST_OK)
		fail_msg("%s", err.text);
	return out;
}

/* ---- predictions ----------------------------------------------------------------------------- */

static void nothing_changed_is_what_was_measured(void **state)
{
	const struct report_whatif_change none = {0};
	struct report_whatif_prediction out;
	struct report_whatif *whatif = recorded(RUN(LAYERS, TWO));

	(void)state;
	out = predicted(whatif, &none);
	assert_int_equal(out.run_ns, report_whatif_measured(whatif)->run_ns);
	assert_int_equal(out.memory_ipu_bytes, report_whatif_measured(whatif)->memory_ipu_bytes);
	assert_int_equal(out.microbatches, 8);
	assert_int_equal(out.stages, 2);
	assert_true(out.memory_ipu_bytes > 0 && out.memory_fits && out.pipelined);
	assert_string_equal(out.split, "");
	assert_int_equal(out.assumptions, 1u << REPORT_WHATIF_NO_EXECUTION_HOST);
	report_whatif_close(whatif);
}

static void a_recording_of_another_model_is_told(void **state)
{
	const struct report_whatif_change none = {0};
	struct report_whatif *whatif;

	(void)state;
	record(RUN(LAYERS, TWO), DATA, 2 * planned_cycles(RUN(LAYERS, TWO)));
	assert_int_equal(open_it(&whatif, NULL), ST_OK);
	assert_true(predicted(whatif, &none).assumptions & 1u << REPORT_WHATIF_PLAN_DIFFERS);
	report_whatif_close(whatif);
}

/* Each named change beside the words that it stands for; both beside the run as it would be. */
static void options_are_names_of_keys(void **state)
{
	static const struct {
		struct report_whatif_change named;
		const char *words[12];
		const char *rest; /* of the run file that is meant */
	} cases[] = {
		{{.schedule = "Sequential"},
		 {"--pipeline.schedule", "Sequential"},
		 "\"ipu\":{\"auto_select_ipus\":2},\"gradient_accumulation\":{\"steps_per_"
		 "replica\":8},"
		 "\"pipeline\":{\"stages\":[0,0,1,1],\"schedule\":\"Sequential\"}"},
		{{.microbatches = 16},
		 {"--gradient_accumulation.steps_per_replica", "16"},
		 "\"ipu\":{\"auto_select_ipus\":2},\"gradient_accumulation\":{\"steps_per_"
		 "replica\":16},"
		 "\"pipeline\":{\"stages\":[0,0,1,1]}"},
		{{.target = "bow"},
		 {"--ipu.target", "ipu21"},
		 "\"ipu\":{\"auto_select_ipus\":2,\"target\":\"ipu21\"},\"gradient_accumulation\":"
		 "{\"steps_per_replica\":8},\"pipeline\":{\"stages\":[0,0,1,1]}"},
		{{.target = "ipu1", .schedule = "Interleaved"},
		 {"--ipu.target", "ipu1", "--pipeline.schedule", "Interleaved"},
		 "\"ipu\":{\"auto_select_ipus\":2,\"target\":\"ipu1\"},\"gradient_accumulation\":"
		 "{\"steps_per_replica\":8},\"pipeline\":{\"stages\":[0,0,1,1],\"schedule\":"
		 "\"Interleaved\"}"},
		{{.replicas = 2},
		 {"--ipu.auto_select_ipus", "4"},
		 "\"ipu\":{\"auto_select_ipus\":4},\"gradient_accumulation\":{\"steps_per_"
		 "replica\":8},"
		 "\"pipeline\":{\"stages\":[0,0,1,1]}"},
		{{.split = "b"},
		 {"--pipeline.stages", "[0,1,1,1]"},
		 "\"ipu\":{\"auto_select_ipus\":2},\"gradient_accumulation\":{\"steps_per_"
		 "replica\":8},"
		 "\"pipeline\":{\"stages\":[0,1,1,1]}"},
		{{.split = "0,1,1,1"},
		 {"--pipeline.stages", "{\"b\":1}"},
		 "\"ipu\":{\"auto_select_ipus\":2},\"gradient_accumulation\":{\"steps_per_"
		 "replica\":8},"
		 "\"pipeline\":{\"stages\":[0,1,1,1]}"},
		{{.stages = 1},
		 {"--pipeline", "null", "--ipu.auto_select_ipus", "1"},
		 "\"ipu\":{\"auto_select_ipus\":1},\"gradient_accumulation\":{\"steps_per_"
		 "replica\":8}"},
		{{.stages = 4},
		 {"--pipeline.stages", "auto", "--ipu.auto_select_ipus", "4"},
		 "\"ipu\":{\"auto_select_ipus\":4},\"gradient_accumulation\":{\"steps_per_"
		 "replica\":8},"
		 "\"pipeline\":{\"stages\":[0,1,2,3]}"},
	};
	struct report_whatif *whatif = recorded(RUN(LAYERS, TWO));
	const struct report_whatif_change none = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct report_whatif_change words = {0};
		struct report_whatif_prediction named, said, meant;
		struct report_whatif *other;
		char text[2048];

		while (words.count < 12 && cases[i].words[words.count])
			words.count++;
		words.words = (char **)(uintptr_t)cases[i].words;
		named = predicted(whatif, &cases[i].named);
		said = predicted(whatif, &words);
		snprintf(text, sizeof(text), RUN(LAYERS, "%s"), cases[i].rest);
		other = recorded(text);
		meant = predicted(other, &none);
		assert_int_equal(named.run_ns, said.run_ns);
		assert_int_equal(named.run_ns, meant.run_ns);
		assert_int_equal(named.memory_tile_bytes, meant.memory_tile_bytes);
		assert_int_equal(named.stages, meant.stages);
		assert_int_equal(named.replicas, meant.replicas);
		assert_string_equal(named.target, meant.target);
		assert_string_equal(named.split, said.split);
		report_whatif_close(other);
	}
	report_whatif_close(whatif);
}

/* 16 steps of an execution are none of 24 micro-batches; who gives steps gets no others. */
static void steps_suit_the_change_unless_they_are_given(void **state)
{
	static char *words[] = {(char *)(uintptr_t) "--compile.steps_per_execution",
				(char *)(uintptr_t) "16"};
	const struct report_whatif_change more = {.microbatches = 24};
	const struct report_whatif_change given = {.microbatches = 24, .count = 2, .words = words};
	struct report_whatif *whatif = recorded(RUN(LAYERS, TWO));
	struct report_whatif_prediction out = predicted(whatif, &more);
	struct err err = {0};

	(void)state;
	assert_int_equal(out.microbatches, 24);
	assert_true(out.assumptions & 1u << REPORT_WHATIF_STEPS_SUITED);
	assert_int_equal(report_whatif_predict(&out, whatif, &given, &err), ST_INVALID);
	assert_contains(err.text, "steps_per_execution");
	report_whatif_close(whatif);
}

static void flags_are_words_of_the_shell(void **state)
{
	static char *words[] = {(char *)(uintptr_t) "--description",
				(char *)(uintptr_t) "it's $HOME"};
	const struct report_whatif_change change = {.count = 2, .words = words};
	struct report_whatif *whatif = recorded(RUN(LAYERS, TWO));
	const struct report_whatif_prediction out = predicted(whatif, &change);

	(void)state;
	assert_contains(out.flags, "--description 'it'\\''s $HOME'");
	report_whatif_close(whatif);
}

static void memory_that_does_not_do_is_said(void **state)
{
	static char *words[] = {(char *)(uintptr_t) "--ipu.tiles_per_ipu", (char *)(uintptr_t) "1"};
	const struct report_whatif_change one_tile = {.count = 2, .words = words};
	struct report_whatif *whatif =
		recorded(RUN("{\"class_name\":\"Sequential\",\"config\":{\"name\":\"m\",\"layers\":"
			     "[" DENSE("a", 20000) "," DENSE("b", 10) "]}}",
			     "\"ipu\":{\"auto_select_ipus\":1}"));
	const struct report_whatif_prediction out = predicted(whatif, &one_tile);

	(void)state;
	assert_false(out.memory_fits);
	assert_true(report_whatif_measured(whatif)->memory_fits);
	report_whatif_close(whatif);
}

/* Every schedule is planned, and one without bubbles is not slower than one stage at a time. */
static void every_schedule_is_planned(void **state)
{
	const struct report_whatif_change sequential = {.schedule = "Sequential"};
	struct report_whatif *whatif = recorded(RUN(LAYERS, TWO));
	const int64_t slowest = predicted(whatif, &sequential).run_ns;

	(void)state;
	for (int k = 0; k < (int)IPU_SCHEDULE_KINDS; k++) {
		const struct report_whatif_change change = {
			.schedule = ipu_schedule_name((enum ipu_schedule_kind)k)};
		const struct report_whatif_prediction out = predicted(whatif, &change);

		assert_int_equal(out.schedule, k);
		assert_int_equal(out.stages, k == IPU_1F1B_INTERLEAVED ? 4 : 2);
		assert_true(out.run_ns > 0 && out.memory_ipu_bytes > 0);
		assert_true(k == IPU_1F1B_INTERLEAVED || out.run_ns <= slowest);
	}
	report_whatif_close(whatif);
}

/* ---- more instances -------------------------------------------------------------------------- */

#define US 1000

/*
 * A step of one process: the last backward pass of layer a, which comes first, ends after 7 us,
 * when the weight update of stage @stage begins.
 */
static void record_process(int stage)
{
	const struct ips_execution execution = {.mode = IPS_TRAIN,
						.epoch = 1,
						.steps = 1,
						.updates = 1,
						.dur_ns = 10 * US,
						.start_cycle = IPS_NULL,
						.cycles = IPS_NULL};
	IPS_SITE(layer, "layer", "a");
	IPS_SITE(update, "stage", "update");
	struct ips_keys keys = IPS_KEYS_NULL;
	struct ips_recording *recording;
	struct ips_track *track;

	keys.mode = IPS_TRAIN;
	keys.epoch = 1;
	keys.execution = keys.weight_update = keys.replica = keys.stage = 0;
	remove(path);
	assert_int_equal(ips_recording_open(&recording, path, NULL, NULL, 0), 0);
	assert_int_equal(ips_meta_set(recording, "run", RUN(LAYERS, "\"ipu\":null")), 0);
	assert_int_equal(ips_meta_set(recording, "data", DATA), 0);
	assert_int_equal(ips_append_execution(recording, &execution), 0);
	track = ips_track_open(recording, "worker 0", NULL);
	for (int i = 0; i < 3; i++) {
		struct ips_stage_timing timing = {.start_ns = i * 3 * US, .dur_ns = 3 * US};

		keys.phase = "FBU"[i];
		keys.step = keys.microbatch = keys.phase == 'U' ? IPS_NULL : 0;
		timing.keys = keys;
		assert_int_equal(ips_append_stage_timing(recording, &timing), 0);
	}
	keys.phase = 'B';
	keys.step = keys.microbatch = 0;
	ips_track_set_keys(track, &keys);
	ips_span_at(track, &layer, 5 * US, 2 * US);
	keys.phase = 'U';
	keys.stage = stage;
	keys.step = keys.microbatch = IPS_NULL;
	ips_track_set_keys(track, &keys);
	ips_span_at(track, &update, 7 * US, 3 * US);
	assert_int_equal(ips_recording_close(recording, NULL, 0), 0);
}

/* Two stages on the host's clock: schedules that split a backward pass split its time. */
static void a_split_backward_pass_takes_as_long(void **state)
{
	const struct report_whatif_change none = {0}, split = {.schedule = "zb-h1"};
	const struct ips_execution execution = {.mode = IPS_TRAIN,
						.epoch = 1,
						.steps = 8,
						.updates = 1,
						.dur_ns = 1000 * US,
						.start_cycle = IPS_NULL,
						.cycles = IPS_NULL};
	struct report_whatif_prediction whole, halves;
	struct ips_keys keys = IPS_KEYS_NULL;
	struct ips_recording *recording;
	struct report_whatif *whatif;
	struct err err = {0};
	struct prof_db *db;

	(void)state;
	keys.mode = IPS_TRAIN;
	keys.epoch = 1;
	keys.execution = keys.weight_update = keys.replica = 0;
	remove(path);
	assert_int_equal(ips_recording_open(&recording, path, NULL, NULL, 0), 0);
	assert_int_equal(ips_meta_set(recording, "run", RUN(LAYERS, TWO)), 0);
	assert_int_equal(ips_meta_set(recording, "data", DATA), 0);
	assert_int_equal(ips_append_execution(recording, &execution), 0);
	for (int i = 0; i < 8 * 2 * 2; i++) {
		struct ips_stage_timing timing = {.start_ns = i * 10 * US};

		keys.step = keys.microbatch = i / 4;
		keys.stage = i / 2 % 2;
		keys.phase = "FB"[i % 2];
		timing.keys = keys;
		timing.dur_ns = (i % 2 ? 6 : 3) * US;
		assert_int_equal(ips_append_stage_timing(recording, &timing), 0);
	}
	assert_int_equal(ips_recording_close(recording, NULL, 0), 0);
	assert_int_equal(prof_db_open(&db, path, NULL), ST_OK);
	if (report_whatif_open(&whatif, db, REPORT_WHATIF_HOST, &err) != ST_OK)
		fail_msg("%s", err.text);
	prof_db_close(db);
	whole = predicted(whatif, &none);
	halves = predicted(whatif, &split);
	assert_int_equal(whole.busy_ns, 2 * 8 * 9 * US);
	assert_int_equal(halves.busy_ns, whole.busy_ns);
	assert_true(halves.makespan_ns < whole.makespan_ns);
	assert_true(halves.assumptions & 1u << REPORT_WHATIF_HOST_HALF);
	assert_false(whole.assumptions & 1u << REPORT_WHATIF_HOST_HALF);
	report_whatif_close(whatif);
}

/*
 * Two instances exchange halves of the gradients and of the weights. There are 16 x 64 + 64 +
 * 64 x 32 + 32 + 32 x 32 + 32 + 32 x 10 + 10 = 4,554 numbers, which are 18,216 bytes and one
 * bucket. Where a link carries a byte a nanosecond, a half takes 9,108 ns each time and arrives
 * 1,000 ns later; the sum, of 5 bytes a nanosecond, takes 3,643.2 ns. All of it is waited for.
 */
static void instances_wait_for_what_their_links_carry(void **state)
{
	/* Of 1,538 bytes on the wire, 1,448 are the program's. */
	const struct report_whatif_change two = {
		.instances = 2, .network = {.bits_ns = 8 * 1538.0 / 1448.0, .latency_ns = 1000}};
	struct report_whatif_prediction out;
	struct report_whatif *whatif;
	struct err err = {0};
	struct prof_db *db;

	(void)state;
	record_process(0);
	assert_int_equal(prof_db_open(&db, path, NULL), ST_OK);
	if (report_whatif_open(&whatif, db, REPORT_WHATIF_HOST, &err) != ST_OK ||
	    report_whatif_read_ranks(whatif, db, &err) != ST_OK)
		fail_msg("%s", err.text);
	prof_db_close(db);
	out = predicted(whatif, &two);
	assert_int_equal(out.instances, 2);
	assert_int_equal(out.link_ns, 2 * 9108);
	assert_int_equal(out.exposed_ns, 23859); /* 2 x (9,108 + 1,000) + 3,643.2 */
	assert_int_equal(out.run_ns, report_whatif_measured(whatif)->run_ns + 23859);
	report_whatif_close(whatif);
}

/* A call of @rank's thread for a bucket of a stage; @bucket negative: of shares. */
struct call {
	int rank, update, stage, bucket;
	bool gathers;
	int64_t start_ns, dur_ns, before_ns, length_ns, size;
};

/* Two weight updates of two ranks and two stages; a sharded optimizer's stage 1 has no gathers of
 * its own but one of shares. */
static const struct call calls[] = {
	{0, 0, 0, 0, false, 9000, 4000, 3000, 5000, 70000},
	{0, 0, 0, 0, true, 13000, 3000, 500, 2000, 35000},
	{0, 0, 0, 1, false, 16000, 1000, 8000, 6000, 20000},
	{0, 0, 0, 1, true, 17000, 500, 100, 400, 10000},
	{0, 0, 1, 0, false, 18000, 1500, 500, 1500, 1000},
	{0, 0, 1, -1, true, 20000, 9000, 0, 700, 900},
	{1, 0, 0, 0, false, 9500, 4500, 3200, 5100, 70000},
	{1, 0, 0, 0, true, 14000, 3000, 600, 2000, 35000},
	{1, 0, 0, 1, false, 17000, 900, 8100, 6000, 20000},
	{1, 0, 0, 1, true, 17900, 600, 100, 400, 10000},
	{1, 0, 1, 0, false, 18500, 1400, 400, 1500, 1000},
	{1, 0, 1, -1, true, 20500, 8000, 0, 700, 900},
	{0, 1, 0, 0, false, 30000, 4000, 2000, 5000, 70000},
	{0, 1, 0, 0, true, 34000, 3000, 500, 2000, 35000},
	{0, 1, 1, 0, false, 38000, 1500, 500, 1500, 1000},
	{1, 1, 0, 0, false, 30500, 4000, 2500, 5000, 70000},
	{1, 1, 0, 0, true, 34500, 3000, 500, 2000, 35000},
	{1, 1, 1, 0, false, 38500, 1500, 500, 1500, 1000},
};

static void put_call(struct ips_track *track, const struct call *call)
{
	IPS_SITE(exchange, "mpi", "MPI_Ialltoallv");
	IPS_SITE(gather, "mpi", "MPI_Iallgatherv");
	struct ips_keys keys = IPS_KEYS_NULL;

	keys.mode = IPS_TRAIN;
	keys.epoch = 1;
	keys.execution = 0;
	keys.weight_update = call->update;
	keys.stage = call->stage;
	ips_track_set_keys(track, &keys);
	ips_span_at(track, call->gathers ? &gather : &exchange, call->start_ns, call->dur_ns);
	if (call->bucket >= 0)
		ips_span_arg_int(track, "bucket", call->bucket);
	ips_span_arg_int(track, "size", call->size);
	ips_span_arg_int(track, "before_ns", call->before_ns);
	ips_span_arg_int(track, "length_ns", call->length_ns);
}

/* What one of two ranks records, each of @each replicas. */
static void record_rank(const char *name, int rank, int each)
{
	const struct ips_execution execution = {.mode = IPS_TRAIN,
						.epoch = 1,
						.steps = 16,
						.updates = 2,
						.dur_ns = 42 * US,
						.start_cycle = IPS_NULL,
						.cycles = IPS_NULL};
	struct ips_recording_params params;
	struct ips_recording *recording;
	struct ips_keys keys = IPS_KEYS_NULL;
	struct ips_track *track;
	char run[2048];

	snprintf(run, sizeof(run),
		 RUN(LAYERS, "\"ipu\":{\"auto_select_ipus\":%d},"
			     "\"gradient_accumulation\":{\"steps_per_replica\":8},"
			     "\"pipeline\":{\"stages\":[0,0,1,1]},"
			     "\"distribution\":{\"replicas\":%d}"),
		 4 * each, 2 * each);
	/* As many steps as divide by the replicas. */
	memcpy(strstr(run, "_epoch\":32") + 8, each == 3 ? "96" : "32", 2);
	ips_recording_params_defaults(&params);
	params.rank = rank;
	assert_int_equal(ips_recording_open(&recording, name, &params, NULL, 0), 0);
	assert_int_equal(ips_meta_set(recording, "run", run), 0);
	assert_int_equal(ips_meta_set(recording, "data", DATA), 0);
	assert_int_equal(ips_append_execution(recording, &execution), 0);
	keys.mode = IPS_TRAIN;
	keys.epoch = 1;
	keys.execution = keys.weight_update = 0;
	for (int i = 0; i < each * 2 * 8 * 2; i++) {
		struct ips_stage_timing timing = {.start_ns = i % 32 * 500, .dur_ns = 400 + i % 3};

		keys.replica = rank * each + i / 32;
		keys.stage = i % 2;
		keys.step = keys.microbatch = i / 4 % 8;
		keys.phase = "FB"[i / 2 % 2];
		timing.keys = keys;
		assert_int_equal(ips_append_stage_timing(recording, &timing), 0);
	}
	track = ips_track_open(recording, "worker 0", NULL);
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (calls[i].rank == rank)
			put_call(track, &calls[i]);
	assert_int_equal(ips_recording_close(recording, NULL, 0), 0);
}

#define FIGURES                                                                                    \
	" --csv --columns instances,replicas,weight_update_ns,samples_second,speedup,exposed_ns,"  \
	"link_ns,efficiency"

static const char *const commands[] = {
	"what-if two.db --columns all --width 0",
	"what-if two.db --schedule Interleaved --micro-batches 16",
	"what-if two.db --chunks 2 --schedule 1f1b-interleaved --csv",
	"what-if two.db --target bow --stages 4 --json",
	"what-if two.db --schedule Interleaved --micro-batches 3",
	"what-if two.db --replicas 2 --columns change,kind,replicas,flags --width 0",
	"what-if two.db --fit.steps_per_epoch 64 --compile.steps_per_execution 32 --columns all",
	"what-if two.db --csv --ipu.allow_recompute true",
	"what-if two.db --columns flags,kind --fit.steps_per_epoch 64",
	"what-if two.db --columns kind --ipu.target",
	"what-if two.db --clock host",
	"what-if two.db --columns none",
	"what-if two.db two.db",
	"what-if one.db --clock host --csv",
	"two.db insights --csv",
	"slow.db insights --csv",
	"what-if one.db --instances 1..16 --network 10Gbit,20us",
	"what-if one.db --instances 1..5 --network 10Gbit,20us" FIGURES,
	"what-if one.db --instances 2 --network 500kbit,1s,0ns" FIGURES,
	"what-if one.db --instances 2 --network 5e10bit,1ms,3us" FIGURES,
	"what-if one.db --instances 2 --network recorded",
	"what-if one.db --instances 2",
	"what-if one.db --network 1Gbit,1us",
	"what-if one.db --instances 2 --network 1Gbit,20us --clock device",
	"what-if one.db --instances 2 --network 25,20us",
	"what-if one.db --instances 2 --network 1Gbit",
	"what-if one.db --instances 2 --network 0Gbit,1us",
	"what-if one.db --instances 2 --network 1Gbit,1us,1us,1us",
	"what-if one.db --instances 2 --network recordeds",
	"what-if one.db --instances 8..2 --network 1Gbit,20us",
	"what-if one.db --instances 2..x --network 1Gbit,20us",
	"what-if one.db --instances 65537 --network 1Gbit,20us",
	"what-if one.db --instances 2 --network 1Gbit,20us --replicas 2",
	"what-if ranks.db --instances 2..32 --network 1Gbit,50us,2us" FIGURES,
	"what-if ranks.db --instances 3 --network 100Gbit,1us,20ns" FIGURES,
	"what-if ranks.db --instances 2..4 --network recorded,1ns,0ns" FIGURES,
	"what-if ranks.db --instances 2 --network recorded,1us --columns instances,exposed_ns",
	"what-if ranks.db --instances 2 --network recorded,1ns,0ns --columns instances,exposed_ns",
	"what-if rank1.db --instances 2 --network 1Gbit,20us",
	"what-if more.db --instances 2..8 --network 1Gbit,50us" FIGURES,
	"what-if third.db --instances 2..8 --network 1Gbit,50us",
};

/* Stages after each other, of which the first has most of the work. */
#define SLOW                                                                                       \
	"\"ipu\":{\"auto_select_ipus\":2},\"gradient_accumulation\":{\"steps_per_replica\":8},"    \
	"\"pipeline\":{\"stages\":[0,0,0,1],\"schedule\":\"Sequential\"}"

static void print_commands(FILE *out)
{
	record(RUN(LAYERS, TWO), DATA, planned_cycles(RUN(LAYERS, TWO)));
	support_enter();
	assert_int_equal(rename(path, "two.db"), 0);
	record(RUN(LAYERS, SLOW), DATA, planned_cycles(RUN(LAYERS, SLOW)));
	assert_int_equal(rename(path, "slow.db"), 0);
	record_process(0);
	assert_int_equal(rename(path, "one.db"), 0);
	record_rank("rank0.db", 0, 1);
	record_rank("rank1.db", 1, 1);
	record_rank("more0.db", 0, 3);
	record_rank("more1.db", 1, 3);
	free(verb_out("merge rank0.db rank1.db -o ranks.db --align none", NULL));
	free(verb_out("merge more0.db more1.db -o more.db --align none", NULL));
	free(verb_out("merge rank0.db rank1.db more0.db -o third.db --align none --ranks order",
		      NULL));
	verb_print(out, commands, ARRAY_LEN(commands));
	support_leave();
}

static void the_command_prints_what_was_predicted(void **state)
{
	(void)state;
	support_check_golden("report_whatif.txt", print_commands);
}

static void a_stage_that_the_run_does_not_have_is_refused(void **state)
{
	static const int stages[] = {-1, 1, 1000000};
	struct report_whatif *whatif;
	struct prof_db *db;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(stages); i++) {
		struct err err = {0};
		char text[64];

		record_process(stages[i]);
		snprintf(text, sizeof(text), "a weight update has rank 0, stage %d", stages[i]);
		assert_int_equal(prof_db_open(&db, path, NULL), ST_OK);
		assert_int_equal(report_whatif_open(&whatif, db, REPORT_WHATIF_HOST, NULL), ST_OK);
		assert_int_equal(report_whatif_read_ranks(whatif, db, &err), ST_FORMAT);
		assert_contains(err.text, text);
		report_whatif_close(whatif);
		prof_db_close(db);
	}
}

/* ---- what is wrong --------------------------------------------------------------------------- */

static void a_change_that_is_not_legal_says_what_is(void **state)
{
	static const struct {
		struct report_whatif_change change;
		const char *text;
	} cases[] = {
		{{.schedule = "Groupd"}, "Grouped"},
		{{.microbatches = 6}, "multiple of 2 x stages (= 4)"},
		{{.target = "ipu3"}, "did you mean"},
		{{.split = "nowhere"}, "nowhere"},
		{{.split = "0,0,2,2"}, "stage"},
		{{.split = "0,0,1,1073741825"}, "stage"},
		{{.split = "0,0,1,99999999999999999999"}, "stage"},
		{{.stages = 9}, "stages"},
	};
	struct report_whatif *whatif = recorded(RUN(LAYERS, TWO));

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct report_whatif_prediction out;
		struct err err = {0};

		if (report_whatif_predict(&out, whatif, &cases[i].change, &err) != ST_INVALID)
			fail_msg("%zu is legal, or: %s", i, err.text);
		assert_contains(err.text, cases[i].text);
	}
	report_whatif_close(whatif);
}

static void what_is_missing_is_said(void **state)
{
	static const struct {
		const char *run, *data;
		int64_t cycles;
		const char *text;
	} cases[] = {
		{NULL, NULL, 1000, "no run of ipu-train"},
		{RUN(LAYERS, TWO), NULL, 1000, "no run of ipu-train"},
		{NULL, DATA, 1000, "no run of ipu-train"},
		{RUN(LAYERS, TWO), DATA, 0, "no execution of a training was finished"},
		{RUN(LAYERS, "\"ipu\":null"), DATA, 1000, "--clock host"},
		{"{\"model\":" LAYERS
		 ",\"data\":{\"name\":\"mnist\"},\"compile\":{\"loss\":\"mse\"},"
		 "\"fit\":null,\"predict\":{}}",
		 DATA, 1000, "trained nothing"},
		{"{\"model\":1", DATA, 1000, "run.db"},
		{RUN("{\"class_name\":\"Sequentiel\"}", TWO), DATA, 1000, "Sequential"},
		{RUN(LAYERS, TWO), "[]", 1000, "train_items"},
		{RUN(LAYERS, TWO), "{\"train_items\":1000,\"test_items\":0,\"item\":[-1]}", 1000,
		 "item"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct report_whatif *whatif;
		struct err err = {0};

		record(cases[i].run, cases[i].data, cases[i].cycles);
		if (open_it(&whatif, &err) == ST_OK)
			fail_msg("%zu is predicted from", i);
		assert_null(whatif);
		assert_contains(err.text, cases[i].text);
		assert_null(strchr(err.text, '\n'));
		/* The recording is named once, at the front. */
		assert_int_equal(strncmp(err.text, path, strlen(path)), 0);
		assert_null(strstr(err.text + 1, path));
	}
}

static void without_memory_it_says_so(void **state)
{
	static char *words[] = {(char *)(uintptr_t) "--ipu.target", (char *)(uintptr_t) "ipu21"};
	const struct report_whatif_change change = {
		.split = "b", .microbatches = 24, .count = 2, .words = words};
	struct report_whatif *whatif = recorded(RUN(LAYERS, TWO));
	struct report_whatif_prediction out;
	bool failed = true;

	(void)state;
	for (long n = 0; failed && n < 100000; n += 1 + n / 8) {
		enum status status;

		support_fail_alloc(n);
		status = report_whatif_predict(&out, whatif, &change, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_true(status == ST_OK || (failed && status == ST_NOMEM));
	}
	assert_false(failed);
	report_whatif_close(whatif);
}

static int setup(void **state)
{
	(void)state;
	support_tempdir(folder);
	snprintf(path, sizeof(path), "%s/run.db", folder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	support_tempdir_remove(folder);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_changed_is_what_was_measured),
		cmocka_unit_test(a_recording_of_another_model_is_told),
		cmocka_unit_test(options_are_names_of_keys),
		cmocka_unit_test(steps_suit_the_change_unless_they_are_given),
		cmocka_unit_test(flags_are_words_of_the_shell),
		cmocka_unit_test(memory_that_does_not_do_is_said),
		cmocka_unit_test(every_schedule_is_planned),
		cmocka_unit_test(a_split_backward_pass_takes_as_long),
		cmocka_unit_test(instances_wait_for_what_their_links_carry),
		cmocka_unit_test(the_command_prints_what_was_predicted),
		cmocka_unit_test(a_stage_that_the_run_does_not_have_is_refused),
		cmocka_unit_test(a_change_that_is_not_legal_says_what_is),
		cmocka_unit_test(what_is_missing_is_said),
		cmocka_unit_test(without_memory_it_says_so),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
