/*
 * What-if on a pipeline made by hand: every stage's F and B are known, so every prediction has a
 * closed form.
 */
#include "support/support.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "ipuscope/profiler.h"
#include "ipu/compile/ipu_program.h"
#include "reports/whatif/report_whatif.h"

#define PATH    (SUPPORT_PATH_SIZE + 64)
#define FORWARD 3000
#define BATCH   16

/* A run of @stages stages of a layer each, F and B as given, nothing streamed, nothing updated. */
struct made {
	const char *schedule;
	int stages, microbatches;
	int64_t forward[8], backward[8];
	int64_t sent; /* bytes over each cut */
	bool fifo;    /* a tensor of 32 bytes is stashed in each stage */
};

static char path[PATH];
static struct ipu_target target;

/* ---- making ---------------------------------------------------------------------------------- */

static sqlite3 *made_db;

static void sql(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void sql(const char *format, ...)
{
	va_list args;
	char *text, *why = NULL;

	va_start(args, format);
	text = sqlite3_vmprintf(format, args);
	va_end(args);
	if (sqlite3_exec(made_db, text, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s: %s", text, why);
	sqlite3_free(text);
}

/* Names of steps are strings 1001.. so that they meet nobody's. */
static const char *const types[] = {"OnTileExecute", "Sync", "GlobalExchange"};

static void make_texts(const struct made *made)
{
	static const char *const names[] = {"F", "B"};

	for (int i = 0; i < 3; i++)
		sql("INSERT INTO strings VALUES (%d, '%s')", 1001 + i, types[i]);
	for (int s = 0; s < made->stages; s++) {
		sql("INSERT INTO layer_rows (layer, class, position, stage, output_shape, params, "
		    "trainable_params) VALUES ('layer%d', 'Dense', %d, %d, '(%d, 2)', 8, 8)",
		    s, s, s, BATCH);
		for (int f = 0; f < 2; f++) {
			const int root = 4 * s + 2 * f;

			sql("INSERT INTO program_rows (program_id, parent_id, position, type, "
			    "name) "
			    "VALUES (%d, NULL, 0, 'Sequence', 'Stage%d/%s')",
			    root, s, names[f]);
			sql("INSERT INTO program_rows (program_id, parent_id, position, type, "
			    "name, "
			    "operation) VALUES (%d, %d, 0, 'OnTileExecute', 'layer%d/%s', "
			    "'layer%d/%s')",
			    root + 1, root, s, names[f], s, names[f]);
			sql("INSERT INTO operation_rows (operation, layer, kind, phase, stage) "
			    "VALUES ('layer%d/%s', 'layer%d', 'matmul', '%s', %d)",
			    s, names[f], s, names[f], s);
			sql("INSERT INTO strings VALUES (%d, 'layer%d/%s')", 1010 + root, s,
			    names[f]);
		}
	}
}

static void make_step(const struct ipu_event *event)
{
	const int program = 4 * event->stage + (event->function == IPU_FUNCTION_B ? 3 : 1);

	sql("INSERT INTO device_step_rows (trace_id, ipu, stage, phase, microbatch, program_id, "
	    "type_id, operation_id, start_cycle, cycles, bytes_in, bytes_out) VALUES "
	    "(0, %d, %d, '%c', %d, %d, 1001, %d, %lld, %lld, 0, 0)",
	    event->ipu, event->stage, event->phase, event->microbatch, program, 1009 + program,
	    (long long)event->start_cycle, (long long)event->cycles);
}

static void make_transfer(const struct ipu_transfer *transfer)
{
	if (transfer->kind != IPU_TRANSFER_SYNC && transfer->kind != IPU_TRANSFER_GLOBAL)
		return;
	sql("INSERT INTO device_step_rows (trace_id, ipu, program_id, type_id, start_cycle, "
	    "cycles, "
	    "bytes_in, bytes_out) VALUES (0, %d, NULL, %d, %lld, %lld, %lld, %lld)",
	    transfer->ipu, transfer->kind == IPU_TRANSFER_SYNC ? 1002 : 1003,
	    (long long)transfer->start_cycle, (long long)transfer->cycles,
	    (long long)transfer->bytes_in, (long long)transfer->bytes_out);
}

/* As the trainer writes it: functions and transfers by IPU, then start. */
static void make_trace(const struct ipu_timeline *timeline)
{
	int e = 0, t = 0;

	sql("INSERT INTO device_traces VALUES (0, %f, 'train')", target.clock_hz);
	sql("INSERT INTO device_run_rows (trace_id, rank, mode, execution, weight_update, "
	    "first_step, "
	    "first_microbatch, replica, first_ipu, start_cycle) "
	    "VALUES (0, 0, 'train', 0, 0, 0, 0, 0, 0, 0)");
	while (e < timeline->count || t < timeline->transfer_count) {
		const struct ipu_event *event = &timeline->events[e];
		const struct ipu_transfer *transfer = &timeline->transfers[t];
		const bool first =
			t == timeline->transfer_count ||
			(e < timeline->count && (event->ipu < transfer->ipu ||
						 (event->ipu == transfer->ipu &&
						  event->start_cycle < transfer->start_cycle)));

		if (first)
			make_step(&timeline->events[e++]);
		else
			make_transfer(&timeline->transfers[t++]);
	}
}

static struct ipu_timeline *run(const struct made *made)
{
	struct ipu_stage_cost costs[8] = {0};
	struct ipu_send sends[8];
	struct ipu_schedule *schedule;
	struct ipu_timeline *timeline;
	struct ipu_schedule_params params = {
		.stages = made->stages, .microbatches = made->microbatches, .training = true};
	struct ipu_timeline_params timing = {
		.target = &target, .stages = costs, .sends = sends, .prefetch_depth = 3};

	assert_int_equal(ipu_schedule_kind_get(made->schedule, &params.kind, NULL), ST_OK);
	assert_int_equal(ipu_schedule_new(&schedule, &params, NULL), ST_OK);
	for (int s = 0; s < made->stages; s++) {
		costs[s].function[IPU_FUNCTION_F].cycles = made->forward[s];
		costs[s].function[IPU_FUNCTION_B].cycles = made->backward[s];
		if (s + 1 < made->stages && made->sent > 0)
			sends[timing.send_count++] = (struct ipu_send){s, s + 1, made->sent};
	}
	timing.schedule = schedule;
	assert_int_equal(ipu_timeline_new(&timeline, &timing, NULL), ST_OK);
	ipu_schedule_free(schedule);
	return timeline;
}

static void make(const struct made *made)
{
	struct ipu_timeline *timeline = run(made);
	struct ips_recording *recording;

	remove(path);
	assert_int_equal(ips_recording_open(&recording, path, NULL, NULL, 0), 0);
	assert_int_equal(ips_recording_close(recording, NULL, 0), 0);
	assert_int_equal(sqlite3_open(path, &made_db), SQLITE_OK);
	sql("BEGIN");
	sql("INSERT INTO meta_facts VALUES ('schedule', '%s'), ('stages', '%d'), ('replicas', "
	    "'1'), "
	    "('batch_size', '%d'), ('gradient_accumulation', '%d'), ('target', 'ipu2')",
	    made->schedule, made->stages, BATCH, made->microbatches);
	sql("INSERT INTO execution_rows (rank, mode, execution, updates, cycles, start_ns, dur_ns) "
	    "VALUES (0, 'train', 0, 2, %lld, 0, 1)",
	    (long long)(2 * timeline->cycles));
	make_texts(made);
	make_trace(timeline);
	sql("COMMIT");
	ipu_timeline_free(timeline);
}

static void made_close(void)
{
	assert_int_equal(sqlite3_close(made_db), SQLITE_OK);
	made_db = NULL;
}

/* ---- looking --------------------------------------------------------------------------------- */

static struct report_whatif *open_made(struct err *err)
{
	struct report_whatif *whatif = NULL;
	struct prof_db *db;

	made_close();
	assert_int_equal(prof_db_open(&db, path, err), ST_OK);
	report_whatif_open(&whatif, db, REPORT_WHATIF_DEVICE, err);
	prof_db_close(db);
	return whatif;
}

static struct report_whatif *open_well(void)
{
	struct err err = {0};
	struct report_whatif *whatif = open_made(&err);

	if (!whatif)
		fail_msg("%s", err.text);
	return whatif;
}

static int64_t sync_of(int stages)
{
	return ipu_sync_cycles(&target, stages);
}

static int64_t predicted(const struct report_whatif *whatif,
			 const struct report_whatif_change *change)
{
	struct report_whatif_prediction out;
	struct err err = {0};

	if (report_whatif_predict(&out, whatif, change, &err) != ST_OK)
		fail_msg("%s", err.text);
	return out.run_ns;
}

static struct made equal_stages(const char *schedule, int stages, int microbatches)
{
	struct made made = {.schedule = schedule, .stages = stages, .microbatches = microbatches};

	for (int s = 0; s < stages; s++)
		made.forward[s] = made.backward[s] = FORWARD;
	return made;
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Of equal stages with F = B: (G + N - 1)(F + B) Grouped, twice as many steps of F Interleaved, all
 * in turn Sequential; a sync for each step, and one after the update. */
static void every_schedule_from_every_other_has_its_closed_form(void **state)
{
	static const char *const names[] = {"Grouped", "Interleaved", "Sequential"};

	(void)state;
	for (int from = 0; from < 3; from++)
		for (int n = 2; n <= 4; n++) {
			const int g = 2 * n * 3;
			const struct made made = equal_stages(names[from], n, g);
			const int64_t steps[] = {g + 2 * n - 1, 2 * g + 2 * n - 2, 2 * n * g};
			const int64_t work[] = {(int64_t)(g + n - 1) * 2 * FORWARD,
						(int64_t)steps[1] * FORWARD,
						(int64_t)steps[2] * FORWARD};
			struct report_whatif *whatif;

			make(&made);
			whatif = open_well();
			for (int to = 0; to < 3; to++) {
				const struct report_whatif_change change = {.schedule = names[to]};

				assert_int_equal(
					predicted(whatif, &change),
					ipu_target_ns(&target,
						      work[to] + (steps[to] + 1) * sync_of(n)));
			}
			report_whatif_close(whatif);
		}
}

static void nothing_changed_is_what_was_measured(void **state)
{
	struct made made = equal_stages("Grouped", 4, 8);
	const struct report_whatif_change none = {0};
	struct report_whatif_prediction again;
	struct report_whatif *whatif;

	(void)state;
	made.sent = 65536;
	made.forward[2] = 9000;
	make(&made);
	whatif = open_well();
	assert_int_equal(report_whatif_predict(&again, whatif, &none, NULL), ST_OK);
	assert_int_equal(again.run_ns, report_whatif_measured(whatif)->run_ns);
	assert_int_equal(again.slowest, 2);
	assert_false(again.assumptions & 1u << REPORT_WHATIF_REPLAY_DIFFERS);
	assert_true(fabs(again.samples_second * (double)again.run_ns * 1e-9 - 8 * BATCH) < 1e-6);
	report_whatif_close(whatif);
}

/* What goes between IPUs is read off the trace, and goes as often under another schedule. */
static void copies_between_ipus_are_kept(void **state)
{
	struct made made = equal_stages("Grouped", 3, 12), other;

	(void)state;
	made.sent = 1 << 20;
	other = made;
	other.schedule = "Interleaved";
	for (int back = 0; back < 2; back++) {
		const struct made *from = back ? &other : &made, *to = back ? &made : &other;
		const struct report_whatif_change change = {.schedule = to->schedule};
		struct ipu_timeline *truth = run(to);
		struct report_whatif *whatif;

		make(from);
		whatif = open_well();
		assert_int_equal(predicted(whatif, &change), ipu_target_ns(&target, truth->cycles));
		report_whatif_close(whatif);
		ipu_timeline_free(truth);
	}
}

static void comparisons_are_the_pipelines_of_the_stages(void **state)
{
	struct made made = equal_stages("Grouped", 4, 16);
	struct report_whatif *whatif;
	int64_t times[4], zero[4] = {0};

	(void)state;
	make(&made);
	whatif = open_well();
	for (int s = 0; s < 4; s++)
		times[s] = llround(FORWARD * 1e9 / target.clock_hz);
	for (int k = 0; k < IPU_GROUPED; k++) {
		const struct ipu_pipeline_params params = {
			.kind = (enum ipu_schedule_kind)k,
			.stages = 4,
			.microbatches = 16,
			.chunks = k == IPU_1F1B_INTERLEAVED ? 2 : 0,
			.forward_ns = times,
			.backward_input_ns = times,
			.backward_weight_ns = zero,
			.communication_ns = llround((double)sync_of(4) * 1e9 / target.clock_hz)};
		const struct report_whatif_change change = {
			.schedule = ipu_schedule_name((enum ipu_schedule_kind)k)};
		struct report_whatif_prediction out;
		struct ipu_pipeline *pipeline;

		assert_int_equal(ipu_pipeline_new(&pipeline, &params, NULL), ST_OK);
		assert_int_equal(report_whatif_predict(&out, whatif, &change, NULL), ST_OK);
		assert_true(out.comparison && out.assumptions & 1u << REPORT_WHATIF_COMPARISON);
		assert_int_equal(out.makespan_ns, pipeline->bubble.makespan_ns);
		assert_true(out.bubble_rate == pipeline->bubble.bubble_rate);
		assert_true(out.bubble_over_ideal == pipeline->bubble.bubble_over_ideal);
		ipu_pipeline_free(pipeline);
	}
	report_whatif_close(whatif);
}

/* Two stages of layers 0 | 1, 2, 3 made one each: sums of layers, and what they hand on. */
static void a_split_moves_layers_with_their_cycles(void **state)
{
	struct made made = equal_stages("Sequential", 4, 4);
	const struct report_whatif_change change = {.split = "0,0,1,1"};
	struct report_whatif_prediction out;
	struct report_whatif *whatif;
	int64_t cycles;

	(void)state;
	make(&made);
	whatif = open_well();
	assert_int_equal(report_whatif_predict(&out, whatif, &change, NULL), ST_OK);
	/*
	 * Each half sends the output of its last layer, 16 x 2 floats, there and its gradient back.
	 */
	cycles = 4 * (8 * FORWARD + 2 * (int64_t)ceil(BATCH * 2 * 4 / target.link_bytes_second *
						      target.clock_hz)) +
		 (16 + 1) * sync_of(2);
	assert_int_equal(out.run_ns, ipu_target_ns(&target, cycles));
	assert_string_equal(out.split, "layer0,layer2");
	assert_int_equal(out.slowest_ns, ipu_target_ns(&target, 4 * FORWARD));
	report_whatif_close(whatif);
}

static void names_numbers_and_auto_say_the_same_split(void **state)
{
	struct made made = equal_stages("Grouped", 4, 8);
	const struct report_whatif_change changes[] = {{.split = "0,0,1,1"},
						       {.split = "layer2"},
						       {.stages = 2},
						       {.stages = 2, .split = "auto"}};
	struct report_whatif *whatif;

	(void)state;
	make(&made);
	whatif = open_well();
	for (size_t i = 1; i < ARRAY_LEN(changes); i++)
		assert_int_equal(predicted(whatif, &changes[i]), predicted(whatif, &changes[0]));
	report_whatif_close(whatif);
}

/* Sums over replicas come to each layer's gradient, which was guessed from its parameters. */
static void replicas_add_the_sums_of_gradients(void **state)
{
	struct made made = equal_stages("Grouped", 2, 4);
	const struct report_whatif_change none = {0}, change = {.replicas = 4};
	const struct ipu_function_cost sum = ipu_all_reduce_cost(&target, 4, 8 * 4);
	struct report_whatif_prediction out, before;
	struct report_whatif *whatif;

	(void)state;
	make(&made);
	whatif = open_well();
	assert_int_equal(report_whatif_predict(&before, whatif, &none, NULL), ST_OK);
	assert_int_equal(report_whatif_predict(&out, whatif, &change, NULL), ST_OK);
	assert_int_equal(out.update_ns, ipu_target_ns(&target, sum.cycles));
	assert_true(llabs(out.run_ns - before.run_ns - out.update_ns) <= 1);
	assert_true(out.assumptions & 1u << REPORT_WHATIF_REDUCE_LAYERS);
	report_whatif_close(whatif);
}

static void only_the_clock_of_bow_is_another(void **state)
{
	struct made made = equal_stages("Sequential", 2, 2);
	const struct report_whatif_change bow = {.target = "bow"}, ipu21 = {.target = "ipu21"};
	struct report_whatif *whatif;
	struct ipu_target other;

	(void)state;
	make(&made);
	whatif = open_well();
	assert_int_equal(ipu_target_get("ipu21", 0, &other, NULL), ST_OK);
	assert_int_equal(predicted(whatif, &bow), predicted(whatif, &ipu21));
	assert_int_equal(predicted(whatif, &bow),
			 ipu_target_ns(&other, 8 * FORWARD + 9 * ipu_sync_cycles(&other, 2)));
	report_whatif_close(whatif);
}

static void a_change_that_is_not_legal_says_what_is(void **state)
{
	static const struct {
		struct report_whatif_change change;
		const char *text;
	} cases[] = {
		{{.microbatches = 6}, "multiple of 2 x stages (= 4)"},
		{{.schedule = "Interleaved", .microbatches = 3}, "multiple of"},
		{{.schedule = "Groped"}, "did you mean \"Grouped\""},
		{{.schedule = "1f1b-interleaved", .microbatches = 3}, "multiple"},
		{{.target = "ipu3"}, "did you mean"},
		{{.microbatches = INT64_MAX}, "--micro-batches"},
		{{.microbatches = 1 << 20}, "--micro-batches"},
		{{.replicas = -1}, "--replicas"},
		{{.split = "0,1,1"}, "2 layers"},
		{{.split = "0,2"}, "next"},
		{{.split = "1,1"}, "first in 0"},
		{{.split = "layer7"}, "did you mean"},
		{{.split = ""}, "--split"},
		{{.split = "layer1,layer0"}, "after"},
		{{.stages = 3}, "stages"},
		{{.split = "0,1", .stages = 3}, "--stages"},
		{{.split = "0,0", .schedule = "Grouped"}, "no pipeline"},
	};
	struct made made = equal_stages("Grouped", 2, 4);
	struct report_whatif *whatif;

	(void)state;
	make(&made);
	whatif = open_well();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct report_whatif_prediction out;
		struct err err = {0};

		assert_int_not_equal(report_whatif_predict(&out, whatif, &cases[i].change, &err),
				     ST_OK);
		assert_contains(err.text, cases[i].text);
	}
	report_whatif_close(whatif);
}

static void what_is_missing_is_said(void **state)
{
	static const struct {
		const char *sql, *text;
	} cases[] = {
		{"DELETE FROM meta_facts WHERE key = 'schedule'", "no run of ipu-train"},
		{"DELETE FROM meta_facts WHERE key = 'target'", "--clock host"},
		{"DELETE FROM device_step_rows", "was traced"},
		{"DELETE FROM execution_rows", "no execution of a training was finished"},
		{"DELETE FROM layer_rows", "no layers"},
		{"DELETE FROM device_step_rows WHERE stage = 1", "stage 1"},
		{"DELETE FROM program_rows", "stage 0"},
		{"UPDATE meta_facts SET value = 'ipu9' WHERE key = 'target'", "ipu9"},
		{"UPDATE meta_facts SET value = '-2' WHERE key = 'stages'", "does not say"},
		{"UPDATE device_step_rows SET cycles = -5", "-5 cycles"},
		{"UPDATE device_step_rows SET cycles = 9223372036854775807", "cycles"},
		{"UPDATE device_step_rows SET ipu = -1 WHERE ipu = 0", "IPU -1"},
		{"UPDATE device_step_rows SET ipu = 100000", "IPUs"},
		{"UPDATE execution_rows SET cycles = 9223372036854775807", "cycles"},
		{"UPDATE device_step_rows SET bytes_in = 9223372036854775807", "bytes"},
	};
	struct made made = equal_stages("Grouped", 2, 4);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct report_whatif *whatif;
		struct err err = {0};

		make(&made);
		sql("%s", cases[i].sql);
		whatif = open_made(&err);
		if (whatif)
			fail_msg("%s: was read", cases[i].sql);
		if (!strstr(err.text, cases[i].text))
			fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].sql, err.text,
				 cases[i].text);
	}
}

/* Nothing takes any time; whatever is odd but harmless. */
static void odd_recordings_are_predicted_from(void **state)
{
	static const char *const odd[] = {
		"UPDATE device_step_rows SET cycles = 0 WHERE stage IS NOT NULL",
		"UPDATE meta_facts SET value = '9999999999' WHERE key = 'batch_size' AND 0",
		"INSERT INTO meta_facts VALUES ('run', '{\"model\": [1')",
		"INSERT INTO meta_facts VALUES ('run', '{\"ipu\": {\"tiles_per_ipu\": \"x\"}}')",
		"UPDATE layer_rows SET output_shape = '(99999999999999999999, 99999999999)'",
		"UPDATE operation_rows SET layer = 'nobody'",
		"UPDATE program_rows SET parent_id = program_id WHERE parent_id IS NULL AND "
		"program_id > 100",
		"UPDATE device_step_rows SET microbatch = NULL",
	};
	const struct report_whatif_change change = {.schedule = "Interleaved"};
	struct made made = equal_stages("Grouped", 2, 4);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		struct report_whatif *whatif;

		make(&made);
		sql("%s", odd[i]);
		whatif = open_well();
		assert_true(predicted(whatif, &change) > 0);
		report_whatif_close(whatif);
	}
}

/* Reading, and a prediction with every part, without memory: said, and nothing leaks. */
static void without_memory_it_says_so(void **state)
{
	static const struct report_whatif_change changes[] = {
		{.schedule = "Interleaved", .replicas = 2, .split = "layer2", .target = "bow"},
		{.schedule = "zb-h1", .split = "auto", .stages = 2},
	};
	struct made made = equal_stages("Grouped", 4, 8);
	struct report_whatif_prediction out;
	struct report_whatif *whatif = NULL;
	struct prof_db *db;
	bool failed = true;

	(void)state;
	make(&made);
	made_close();
	assert_int_equal(prof_db_open(&db, path, NULL), ST_OK);
	for (long n = 0; failed; n++) {
		enum status status;

		support_fail_alloc(n);
		status = report_whatif_open(&whatif, db, REPORT_WHATIF_DEVICE, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		/* A fact that cannot be read is one that is not there. */
		assert_true((status == ST_OK) == (whatif != NULL) && (failed || whatif));
		if (failed)
			report_whatif_close(whatif);
	}
	prof_db_close(db);
	for (size_t c = 0; c < ARRAY_LEN(changes); c++) {
		failed = true;
		for (long n = 0; failed; n++) {
			enum status status;

			support_fail_alloc(n);
			status = report_whatif_predict(&out, whatif, &changes[c], NULL);
			failed = support_alloc_failed();
			support_fail_alloc(-1);
			/* An arena tries again with less. */
			assert_true(status == ST_OK || (failed && status == ST_NOMEM));
		}
	}
	report_whatif_close(whatif);
}

static char folder[SUPPORT_PATH_SIZE];

static int setup(void **state)
{
	(void)state;
	support_tempdir(folder);
	snprintf(path, sizeof(path), "%s/run.db", folder);
	return ipu_target_get("ipu2", 0, &target, NULL) == ST_OK ? 0 : -1;
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
		cmocka_unit_test(every_schedule_from_every_other_has_its_closed_form),
		cmocka_unit_test(nothing_changed_is_what_was_measured),
		cmocka_unit_test(copies_between_ipus_are_kept),
		cmocka_unit_test(comparisons_are_the_pipelines_of_the_stages),
		cmocka_unit_test(a_split_moves_layers_with_their_cycles),
		cmocka_unit_test(names_numbers_and_auto_say_the_same_split),
		cmocka_unit_test(replicas_add_the_sums_of_gradients),
		cmocka_unit_test(only_the_clock_of_bow_is_another),
		cmocka_unit_test(a_change_that_is_not_legal_says_what_is),
		cmocka_unit_test(what_is_missing_is_said),
		cmocka_unit_test(odd_recordings_are_predicted_from),
		cmocka_unit_test(without_memory_it_says_so),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
