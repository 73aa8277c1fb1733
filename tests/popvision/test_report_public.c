/*
 * The public report (ipuscope/report.h) of the run of report_sample.c: every list, memory, liveness
 * and cursor against what was recorded.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <inttypes.h>
#include <ipuscope/report.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/report_sample.h"
#include "support/support.h"

struct sample {
	char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 16];
	struct ips_report *report;
};

static struct sample sample;

static int make_sample(void **state)
{
	char message[256];

	(void)state;
	support_tempdir(sample.folder);
	snprintf(sample.path, sizeof(sample.path), "%s/profile.db", sample.folder);
	report_sample_write(sample.path);
	if (ips_report_open(&sample.report, sample.folder, message, sizeof(message)) != 0)
		fail_msg("%s", message);
	return 0;
}

static int remove_sample(void **state)
{
	(void)state;
	assert_int_equal(ips_report_status(sample.report, NULL, 0), 0);
	ips_report_close(sample.report);
	support_tempdir_remove(sample.folder);
	return 0;
}

static void test_facts_of_the_run_are_told(void **state)
{
	const struct ips_report_info *info = ips_report_info(sample.report);

	(void)state;
	assert_string_equal(info->path, sample.path);
	assert_int_equal(info->state, IPS_REPORT_COMPLETE);
	assert_string_equal(info->command, "ipu-train sample.json");
	assert_string_equal(info->schedule, "Grouped");
	assert_string_equal(info->cost_model, "planner");
	assert_int_equal(info->library_major, 0);
	assert_true(info->library_minor >= 1);
	assert_int_equal(info->compute, IPS_REPORT_INSTRUMENTATION_TILE);
	assert_string_equal(ips_report_fact(sample.report, "batch_size"), "32");
	assert_null(ips_report_fact(sample.report, "no such fact"));
	assert_null(ips_report_fact(sample.report, NULL));
	assert_null(ips_report_fact(NULL, "batch_size"));
}

/* What the facts say of an ipu2, four of them in two replicas. */
static void test_the_target_is_that_of_the_facts(void **state)
{
	const struct ips_report_target *target = ips_report_target(sample.report);

	(void)state;
	assert_int_equal(target->type, IPS_REPORT_TARGET_IPU_MODEL);
	assert_string_equal(target->architecture, "Mk2");
	assert_int_equal(target->num_ipus, 4);
	assert_int_equal(target->tiles_per_ipu, 1472);
	assert_int_equal(target->num_tiles, 5888);
	assert_int_equal(target->bytes_per_tile, 638976);
	assert_int_equal(target->bytes_per_ipu, 940572672);
	assert_int_equal(target->total_memory, 4 * INT64_C(940572672));
	assert_true(isnan(target->clock_frequency)); /* it has no such fact */
	assert_int_equal(target->num_replicas, 2);
	assert_int_equal(target->ipus_per_replica, 2);
	assert_int_equal(target->tiles_per_replica, 2944);
	assert_int_equal(target->memory_per_replica, 2 * INT64_C(940572672));
}

static void test_the_graph_counts_its_lists(void **state)
{
	const struct ips_report_graph *graph = ips_report_graph(sample.report);

	(void)state;
	assert_int_equal(graph->num_compute_sets, 1);
	assert_int_equal(graph->num_vertices, 1472);
	assert_int_equal(graph->num_variables, 2);
	assert_int_equal(graph->num_programs, 3);
	assert_int_equal(graph->num_operations, 2);
	assert_int_equal(graph->num_layers, 3);
	assert_true(graph->num_edges == IPS_NULL);
}

static void test_programs_are_a_tree(void **state)
{
	const struct ips_report_program *root, *child;

	(void)state;
	assert_int_equal(ips_report_program_count(sample.report), 3);
	root = ips_report_program(sample.report, ips_report_program_first_root(sample.report));
	assert_string_equal(root->name, "main");
	assert_int_equal(root->kind, IPS_REPORT_SEQUENCE);
	assert_int_equal(root->num_children, 2);
	assert_int_equal(root->next_sibling, IPS_REPORT_NONE);
	assert_int_equal(root->parent, IPS_REPORT_NONE);
	assert_null(root->operation);
	assert_true(root->repeat_count == IPS_NULL && root->call_target == IPS_NULL);
	child = ips_report_program(sample.report, root->first_child);
	assert_string_equal(child->name, "Dense_128/fwd");
	assert_int_equal(child->kind, IPS_REPORT_ON_TILE_EXECUTE);
	assert_int_equal(child->depth, 1);
	assert_int_equal(child->compute_set, 0);
	assert_int_equal(child->operation_index, 0);
	child = ips_report_program(sample.report, child->next_sibling);
	assert_string_equal(child->name, "Dense_10/fwd");
	assert_int_equal(child->compute_set, IPS_REPORT_NONE);
	assert_int_equal(child->next_sibling, IPS_REPORT_NONE);
	assert_ptr_equal(child, ips_report_program_by_id(sample.report, 2));
	assert_null(ips_report_program_by_id(sample.report, 3));
	assert_null(ips_report_program(sample.report, 3));
	assert_null(ips_report_program(sample.report, -1));
}

/* What a visitor was called for, in letters. */
struct seen {
	char text[64];
	enum ips_report_visit answer;
};

static enum ips_report_visit see_sequence(void *user, const struct ips_report_program *program)
{
	struct seen *seen = user;

	(void)program;
	strcat(seen->text, "(");
	return seen->answer;
}

static enum ips_report_visit see_other(void *user, const struct ips_report_program *program)
{
	struct seen *seen = user;

	strncat(seen->text, program->type, 1);
	return IPS_REPORT_VISIT_ON;
}

static void see_leave(void *user, const struct ips_report_program *program)
{
	struct seen *seen = user;

	strcat(seen->text, program->kind == IPS_REPORT_SEQUENCE ? ")" : ".");
}

static void test_a_visitor_sees_parents_before_children(void **state)
{
	struct ips_report_visitor visitor = {.other = see_other, .leave = see_leave};
	struct seen seen = {"", IPS_REPORT_VISIT_ON};

	(void)state;
	visitor.visit[IPS_REPORT_SEQUENCE] = see_sequence;
	visitor.user = &seen;
	assert_int_equal(ips_report_program_accept(sample.report, IPS_REPORT_NONE, &visitor), 0);
	assert_string_equal(seen.text, "(O.O.)");
	seen = (struct seen){"", IPS_REPORT_VISIT_SKIP};
	assert_int_equal(ips_report_program_accept(sample.report, 0, &visitor), 0);
	assert_string_equal(seen.text, "()");
	seen = (struct seen){"", IPS_REPORT_VISIT_STOP};
	assert_int_equal(ips_report_program_accept(sample.report, 0, &visitor), 0);
	assert_string_equal(seen.text, "(");
	seen = (struct seen){"", IPS_REPORT_VISIT_ON};
	assert_int_equal(ips_report_program_accept(sample.report, 1, &visitor), 0);
	assert_string_equal(seen.text, "O.");
}

static void test_operations_know_layers_programs_and_compute_sets(void **state)
{
	const struct ips_report_operation *operation = ips_report_operation(sample.report, 0);
	const struct ips_report_compute_set *set = ips_report_compute_set(sample.report, 0);
	const struct ips_report_layer *layer;

	(void)state;
	assert_string_equal(operation->name, "Dense_128/fwd");
	assert_string_equal(operation->kind, "matmul");
	assert_string_equal(operation->phase, "F");
	assert_int_equal(operation->flops, 6422528);
	assert_int_equal(operation->cycles, 1800);
	assert_int_equal(operation->exchange_cycles, 200);
	assert_int_equal(operation->code_bytes, 4096);
	assert_true(operation->tile_balance == 0.9);
	assert_int_equal(operation->num_programs, 1);
	assert_int_equal(operation->first_program, 1);
	layer = ips_report_layer(sample.report, operation->layer_index);
	assert_string_equal(layer->name, "Dense_128");
	assert_string_equal(layer->class_name, "Dense");
	assert_int_equal(layer->params, 100480);
	assert_string_equal(set->name, "Dense_128/fwd/cs");
	assert_int_equal(set->operation_index, 0);
	assert_int_equal(set->program, 1);
	assert_int_equal(set->max_cycles, 1500);
	assert_true(set->mean_cycles == 1400.5);
}

static void test_variables_and_where_they_lie(void **state)
{
	const struct ips_report_variable *kernel = ips_report_variable(sample.report, 0);
	const struct ips_report_variable *out = ips_report_variable_by_id(sample.report, 1);
	const struct ips_report_lowered_variable *row;
	struct ips_report_lowered_variables *cursor;

	(void)state;
	assert_int_equal(ips_report_variable_count(sample.report), 2);
	assert_string_equal(kernel->name, "Dense_128/kernel:0");
	assert_int_equal(kernel->always_live, 1);
	assert_true(ips_report_variable_alive(kernel, 1000));
	assert_false(ips_report_variable_alive(out, 0));
	assert_true(ips_report_variable_alive(out, 1));
	assert_true(ips_report_variable_alive(out, 2));
	assert_false(ips_report_variable_alive(out, 3));
	assert_int_equal(ips_report_lowered_variables_open(sample.report, &cursor, 0, IPS_NULL,
							   IPS_NULL, NULL, 0),
			 0);
	for (int64_t tile = 3; tile <= 4; tile++) {
		row = ips_report_lowered_variables_next(cursor);
		assert_non_null(row);
		assert_int_equal(row->variable, 0);
		assert_int_equal(row->tile, tile);
		assert_int_equal(row->bytes, 200704);
	}
	assert_null(ips_report_lowered_variables_next(cursor));
	assert_null(ips_report_lowered_variables_next(cursor));
	assert_int_equal(ips_report_lowered_variables_close(cursor), 0);
	assert_int_equal(
		ips_report_lowered_variables_open(sample.report, &cursor, IPS_NULL, 0, 4, NULL, 0),
		0);
	row = ips_report_lowered_variables_next(cursor);
	assert_int_equal(row->tile, 4);
	assert_null(ips_report_lowered_variables_next(cursor));
	assert_int_equal(ips_report_lowered_variables_close(cursor), 0);
}

static void test_memory_of_tiles_adds_up(void **state)
{
	const struct ips_report_memory *all, *tile;

	(void)state;
	assert_int_equal(ips_report_ipu_count(sample.report), 1);
	assert_int_equal(ips_report_tile_count(sample.report), 1472);
	tile = ips_report_tile_memory(sample.report, 0, 3);
	assert_int_equal(tile->total_excluding_gaps, 200704);
	assert_int_equal(tile->total_including_gaps, 200704);
	assert_int_equal(tile->overflowed_including_gaps, 0);
	assert_int_equal(tile->interleaved, 200704);
	assert_int_equal(tile->capacity, 638976);
	assert_int_equal(tile->num_categories, 1);
	assert_string_equal(tile->categories[0].name, "variables");
	assert_int_equal(tile->categories[0].interleaved, 200704);
	tile = ips_report_tile_memory(sample.report, 0, 5);
	assert_int_equal(tile->total_excluding_gaps, 0);
	assert_int_equal(tile->capacity, 638976);
	all = ips_report_ipu_memory(sample.report, IPS_NULL);
	assert_int_equal(all->total_excluding_gaps, 401408);
	assert_int_equal(all->always_live_bytes, 401408);
	assert_int_equal(all->not_always_live_bytes, 0);
	assert_int_equal(all->num_tiles, 1472);
	assert_int_equal(all->capacity, 940572672);
	assert_int_equal(ips_report_ipu_memory(sample.report, 0)->total_excluding_gaps, 401408);
	assert_null(ips_report_ipu_memory(sample.report, 1));
	assert_null(ips_report_tile_memory(sample.report, 0, 1472));
	assert_null(ips_report_tile_memory(sample.report, -1, 0));
}

static void test_liveness_peaks_where_most_lives(void **state)
{
	const struct ips_report_liveness *peak = ips_report_liveness_peak(sample.report, IPS_NULL);
	int64_t always, others;

	(void)state;
	assert_int_equal(ips_report_liveness_count(sample.report, 0), 3);
	assert_int_equal(ips_report_liveness_count(sample.report, 1), 0);
	assert_int_equal(ips_report_liveness(sample.report, 0, 2)->not_always_live_bytes, 1024);
	assert_null(ips_report_liveness(sample.report, 0, 3));
	assert_null(ips_report_liveness(sample.report, -1, 0));
	assert_int_equal(peak->program_step, 1);
	assert_int_equal(peak->always_live_bytes, 401408);
	assert_int_equal(peak->not_always_live_bytes, 16384);
	assert_int_equal(peak->program, 1);
	assert_ptr_equal(peak, ips_report_liveness_peak(sample.report, 0));
	assert_null(ips_report_liveness_peak(sample.report, 1));
	assert_int_equal(
		ips_report_liveness_tile(sample.report, 0, 1, 3, &always, &others, NULL, 0), 0);
	assert_int_equal(always, 200704);
	assert_int_equal(others, 0);
}

static void test_runs_are_measured_and_simulated(void **state)
{
	const struct ips_report_run *run = ips_report_run(sample.report, 0);

	(void)state;
	assert_int_equal(ips_report_run_count(sample.report), 2);
	assert_int_equal(run->mode, IPS_TRAIN);
	assert_int_equal(run->num_steps, 8);
	assert_int_equal(run->updates, 2);
	assert_true(run->microseconds.start == 0 && run->microseconds.end == 9000);
	assert_int_equal(run->cycles, 1197000);
	assert_int_equal(run->traced, 1);
	run = ips_report_run(sample.report, 1);
	assert_int_equal(run->mode, IPS_EVALUATE);
	assert_true(run->epoch == IPS_NULL);
	assert_int_equal(ips_report_total_cycles(sample.report), 1330000);
}

static void test_steps_of_an_ipu_are_walked(void **state)
{
	struct ips_report_step_filter filter = ips_report_step_filter_all();
	const struct ips_report_step *step;
	struct ips_report_steps *cursor;

	(void)state;
	filter.ipu = 0;
	assert_int_equal(ips_report_steps_open(sample.report, &cursor, &filter, NULL, 0), 0);
	step = ips_report_steps_next(cursor);
	assert_int_equal(step->kind, IPS_REPORT_ON_TILE_EXECUTE);
	assert_string_equal(step->name, "Dense_128/fwd");
	assert_int_equal(step->program, 1);
	assert_int_equal(step->phase, 'F');
	assert_int_equal(step->cycles, 1800);
	assert_int_equal(step->cycles_from, 0);
	assert_int_equal(step->cycles_to, 1800);
	assert_int_equal(step->dur_ns, 1353);
	assert_true(step->tile_balance == 0.9);
	assert_int_equal(step->data_in, 65536);
	assert_int_equal(step->data_out, 16384);
	assert_null(ips_report_steps_next(cursor));
	assert_int_equal(ips_report_steps_close(cursor), 0);
	filter.ipu = 1;
	assert_int_equal(ips_report_steps_open(sample.report, &cursor, &filter, NULL, 0), 0);
	assert_null(ips_report_steps_next(cursor));
	assert_int_equal(ips_report_steps_close(cursor), 0);
}

static int64_t count_spans(const struct ips_report_span_filter *filter)
{
	struct ips_report_spans *cursor;
	int64_t count = 0;

	assert_int_equal(ips_report_spans_open(sample.report, &cursor, filter, NULL, 0), 0);
	while (ips_report_spans_next(cursor))
		count++;
	assert_int_equal(ips_report_spans_close(cursor), 0);
	return count;
}

static void test_spans_have_tracks_and_children(void **state)
{
	struct ips_report_span_filter filter = ips_report_span_filter_all();
	const struct ips_report_span *span;
	struct ips_report_spans *cursor, *children;

	(void)state;
	assert_int_equal(ips_report_track_count(sample.report), 4);
	assert_string_equal(ips_report_track(sample.report, 0)->track, "worker 0");
	assert_int_equal(ips_report_track(sample.report, 2)->clock, IPS_DEVICE);
	assert_int_equal(ips_report_track(sample.report, 2)->ipu, 0);
	assert_int_equal(count_spans(NULL), 6);
	filter.max_depth = 0;
	assert_int_equal(count_spans(&filter), 5);
	filter.track = 0;
	assert_int_equal(count_spans(&filter), 1);

	assert_int_equal(ips_report_spans_open(sample.report, &cursor, &filter, NULL, 0), 0);
	span = ips_report_spans_next(cursor);
	assert_string_equal(span->category, "data");
	assert_string_equal(span->name, "load, \"batch\"");
	assert_int_equal(span->track, 0);
	assert_int_equal(span->keys.step, 1);
	assert_int_equal(span->keys.mode, IPS_TRAIN);
	assert_int_equal(span->keys.phase, 'F');
	assert_int_equal(ips_report_span_children(sample.report, &children, span->span_id, NULL, 0),
			 0);
	assert_string_equal(ips_report_spans_next(children)->name, "forward");
	assert_null(ips_report_spans_next(children));
	assert_int_equal(ips_report_spans_close(children), 0);
	assert_int_equal(ips_report_spans_close(cursor), 0);
}

static void test_what_is_not_there_is_said(void **state)
{
	struct ips_report_span_filter filter = ips_report_span_filter_all();
	struct ips_report *report;
	struct ips_report_spans *cursor;
	char message[256];

	(void)state;
	assert_int_not_equal(ips_report_open(&report, "/no/such", message, sizeof(message)), 0);
	assert_null(report);
	assert_non_null(strstr(message, "/no/such"));
	assert_int_equal(ips_report_open(&report, sample.path, message, sizeof(message)), 0);
	assert_string_equal(message, "");
	filter.track = 4;
	assert_int_not_equal(
		ips_report_spans_open(report, &cursor, &filter, message, sizeof(message)), 0);
	assert_non_null(strstr(message, "track 4, where there are 4"));
	assert_null(cursor);
	assert_int_not_equal(
		ips_report_span_children(report, &cursor, 1000, message, sizeof(message)), 0);
	assert_non_null(strstr(message, "1000"));
	assert_int_equal(ips_report_status(report, message, sizeof(message)), 0);
	ips_report_close(report);
	ips_report_close(NULL);
	assert_int_equal(ips_report_steps_close(NULL), 0);
	assert_int_equal(ips_report_program_count(NULL), -1);
	assert_null(ips_report_target(NULL));
}

static void test_an_empty_recording_has_nothing(void **state)
{
	char path[SUPPORT_PATH_SIZE + 16];
	struct ips_report *report;

	(void)state;
	snprintf(path, sizeof(path), "%s/empty.db", sample.folder);
	report_sample_write_empty(path);
	assert_int_equal(ips_report_open(&report, path, NULL, 0), 0);
	assert_int_equal(ips_report_target(report)->type, IPS_REPORT_TARGET_UNKNOWN);
	assert_true(ips_report_target(report)->num_ipus == IPS_NULL);
	assert_true(ips_report_target(report)->total_memory == IPS_NULL);
	assert_true(isnan(ips_report_target(report)->clock_frequency));
	assert_int_equal(ips_report_graph(report)->num_programs, 0);
	assert_true(ips_report_graph(report)->num_vertices == IPS_NULL);
	assert_int_equal(ips_report_program_first_root(report), IPS_REPORT_NONE);
	assert_int_equal(ips_report_ipu_count(report), 0);
	assert_null(ips_report_ipu_memory(report, IPS_NULL));
	assert_null(ips_report_liveness_peak(report, IPS_NULL));
	assert_true(ips_report_total_cycles(report) == IPS_NULL);
	assert_int_equal(ips_report_info(report)->compute, IPS_REPORT_INSTRUMENTATION_UNKNOWN);
	assert_int_equal(ips_report_status(report, NULL, 0), 0);
	ips_report_close(report);
}

static void test_a_killed_run_is_read(void **state)
{
	char path[SUPPORT_PATH_SIZE + 16];
	struct ips_report *report;

	(void)state;
	snprintf(path, sizeof(path), "%s/killed.db", sample.folder);
	report_sample_write_killed(path);
	assert_int_equal(ips_report_open(&report, path, NULL, 0), 0);
	assert_int_equal(ips_report_info(report)->state, IPS_REPORT_KILLED);
	assert_int_equal(ips_report_program_count(report), 3);
	assert_int_equal(ips_report_status(report, NULL, 0), 0);
	ips_report_close(report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_facts_of_the_run_are_told),
		cmocka_unit_test(test_the_target_is_that_of_the_facts),
		cmocka_unit_test(test_the_graph_counts_its_lists),
		cmocka_unit_test(test_programs_are_a_tree),
		cmocka_unit_test(test_a_visitor_sees_parents_before_children),
		cmocka_unit_test(test_operations_know_layers_programs_and_compute_sets),
		cmocka_unit_test(test_variables_and_where_they_lie),
		cmocka_unit_test(test_memory_of_tiles_adds_up),
		cmocka_unit_test(test_liveness_peaks_where_most_lives),
		cmocka_unit_test(test_runs_are_measured_and_simulated),
		cmocka_unit_test(test_steps_of_an_ipu_are_walked),
		cmocka_unit_test(test_spans_have_tracks_and_children),
		cmocka_unit_test(test_what_is_not_there_is_said),
		cmocka_unit_test(test_an_empty_recording_has_nothing),
		cmocka_unit_test(test_a_killed_run_is_read),
	};

	return cmocka_run_group_tests(tests, make_sample, remove_sample);
}
