/*
 * Arrows from launches to kernels, and the critical path, on the timeline.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "support/view_fixture.h"
#include "support/view_fixture_gpu.h"
#include "support/view_rig.h"
#include "viewer/timeline/view_timeline_internal.h"

static int setup(void **state)
{
	return view_rig_setup_with(state, view_fixture_gpu_write, NULL, NULL, "7");
}

static struct view_timeline *timeline_of(struct view_rig *rig)
{
	return rig->session.state[VIEW_TIMELINE];
}

static void search(struct view_rig *rig, const char *text)
{
	view_rig_press(rig, "/");
	view_rig_press(rig, text);
	view_rig_key(rig, VIEW_KEY_ENTER);
}

static void assert_selected(struct view_rig *rig, const char *lane, const char *name)
{
	struct view_timeline *tl = timeline_of(rig);

	assert_string_equal(view__lane(tl)->track->name, lane);
	assert_int_not_equal(tl->under.selected, IPS_NULL);
	assert_string_equal(tl->under.span.name, name);
}

static void test_a_key_goes_from_a_launch_to_its_kernel_and_back(void **state)
{
	struct view_rig *rig = *state;
	int64_t call;

	search(rig, "mask");
	assert_selected(rig, "GPU 0 stream 7", "mask");
	assert_int_equal(timeline_of(rig)->arrows.count, 1);
	assert_shows(rig, "a arrow");
	view_rig_press(rig, "a");
	assert_selected(rig, "python", "cudaLaunchKernel");
	call = timeline_of(rig)->under.selected;
	view_rig_press(rig, "a");
	assert_selected(rig, "GPU 0 stream 7", "mask");
	view_rig_press(rig, "a");
	assert_int_equal(timeline_of(rig)->under.selected, call);
	search(rig, "forward");
	assert_int_equal(timeline_of(rig)->arrows.count, 0);
	assert_hides(rig, "a arrow");
	view_rig_press(rig, "a");
	assert_shows(rig, "no arrow leads from or to this span");
}

static void test_an_arrow_brings_a_hidden_lane_back(void **state)
{
	struct view_rig *rig = *state;
	const int all = timeline_of(rig)->lane_count;

	search(rig, "mask");
	view_rig_press(rig, "C");
	assert_int_equal(timeline_of(rig)->lane_count, 1);
	view_rig_press(rig, "a");
	assert_selected(rig, "python", "cudaLaunchKernel");
	assert_int_equal(timeline_of(rig)->lane_count, all);
}

/* A graph's launch leads to many. */
static bool write_graph(const char *path, const void *params)
{
	IPS_SITE(launch, "cuda_runtime", "cudaGraphLaunch");
	IPS_SITE(work, "kernel", "node");
	struct ips_recording *recording = view_fixture_record(path, NULL);
	struct ips_track *thread, *stream;

	(void)params;
	if (!recording)
		return false;
	thread = ips_track_open(recording, "python", NULL);
	stream = ips_track_open(recording, "GPU 0 stream 7", NULL);
	ips_span_at(thread, &launch, 0, 5000);
	ips_span_row(thread, IPS_TABLE_call, &(struct ips_call){1});
	for (int i = 0; i < 3; i++) {
		ips_span_at(stream, &work, 10000 + 5000 * i, 3000);
		ips_span_row(stream, IPS_TABLE_kernel,
			     &(struct ips_kernel){"GPU 0", 1, 7, "compute", 1, 1, 1, 1, 1, 1, 1, 1,
						  0, 0.5, 3, i});
	}
	return ips_recording_close(recording, NULL, 0) == 0;
}

static int setup_graph(void **state)
{
	return view_rig_setup_with(state, write_graph, NULL, NULL, "7");
}

static void test_a_launch_of_many_goes_on_to_the_next_each_time(void **state)
{
	struct view_rig *rig = *state;

	search(rig, "cudaGraph");
	assert_int_equal(timeline_of(rig)->arrows.count, 3);
	for (int i = 0; i < 4; i++) {
		char text[32];

		view_rig_press(rig, "a");
		assert_selected(rig, "GPU 0 stream 7", "node");
		assert_int_equal(timeline_of(rig)->under.span.start_ns, 10000 + 5000 * (i % 3));
		snprintf(text, sizeof(text), "arrow %d of 3", i % 3 + 1);
		assert_shows(rig, text);
		view_rig_press(rig, "a");
		assert_selected(rig, "python", "cudaGraphLaunch");
	}
}

/* The arrow is drawn in a column of its own between the two lanes, and not over bars. */
static void test_the_arrows_of_the_selected_span_are_drawn(void **state)
{
	struct view_rig *rig = *state;
	const struct view_canvas *canvas = &rig->session.canvas;
	int cells = 0, heads = 0;

	view_rig_size(rig, 120, 40);
	search(rig, "softmax_scores");
	view_rig_press(rig, "z-");
	for (int i = 0; i < canvas->width * canvas->height; i++) {
		cells += canvas->cells[i].style == VIEW_SELECT_MARK &&
			 (canvas->cells[i].character == 0x2502 ||
			  canvas->cells[i].character == 0x2500 ||
			  canvas->cells[i].character == 0x250c ||
			  canvas->cells[i].character == 0x2514);
		heads += canvas->cells[i].style == VIEW_SELECT_MARK &&
			 canvas->cells[i].character == 0x25b6;
	}
	assert_true(cells >= 3);
	assert_int_equal(heads, 1);
}

/* Where the launch and what it launched are in one column, the arrow's head is above the bar. */
static bool write_narrow(const char *path, const void *params)
{
	IPS_SITE(launch, "cuda_runtime", "cudaLaunchKernel");
	IPS_SITE(work, "kernel", "node");
	struct ips_recording *recording = view_fixture_record(path, NULL);
	struct ips_track *thread, *stream, *other;

	(void)params;
	if (!recording)
		return false;
	thread = ips_track_open(recording, "python", NULL);
	other = ips_track_open(recording, "worker", NULL);
	stream = ips_track_open(recording, "worker GPU", NULL);
	ips_span_at(thread, &launch, 500000000, 50);
	ips_span_row(thread, IPS_TABLE_call, &(struct ips_call){1});
	ips_span_at(other, &work, 0, 1000000000);
	ips_span_at(stream, &work, 500000100, 50);
	ips_span_row(stream, IPS_TABLE_kernel,
		     &(struct ips_kernel){"GPU 0", 1, 7, "compute", 1, 1, 1, 1, 1, 1, 1, 1, 0, 0.5,
					  3, 0});
	return ips_recording_close(recording, NULL, 0) == 0;
}

static int setup_narrow(void **state)
{
	return view_rig_setup_with(state, write_narrow, NULL, NULL, "7");
}

static void test_an_arrow_within_a_column_has_its_head_at_the_bar(void **state)
{
	struct view_rig *rig = *state;
	const struct view_canvas *canvas = &rig->session.canvas;
	int lines = 0, heads = 0;

	view_rig_size(rig, 120, 40);
	search(rig, "cudaLaunch");
	view_rig_press(rig, "0");
	assert_int_equal(timeline_of(rig)->arrows.count, 1);
	for (int i = 0; i < canvas->width * canvas->height; i++) {
		const bool marked = canvas->cells[i].style == VIEW_SELECT_MARK;

		lines += marked && canvas->cells[i].character == 0x2502;
		heads += marked && canvas->cells[i].character == 0x25bc;
	}
	assert_int_equal(heads, 1);
	assert_true(lines >= 1);
}

static bool is_lit(struct view_rig *rig, const char *name)
{
	const struct view_timeline *tl = timeline_of(rig);

	for (int i = 0; i < tl->lane_count; i++) {
		const struct view_lane *lane = &tl->lanes[i];

		for (int c = 0; lane->columns && c < lane->rows * tl->width; c++) {
			const struct view_lane_cell *cell = &lane->columns[c];
			const struct view_site *site =
				cell->bar < 0 ? NULL
					      : view__site(tl, lane->bars[cell->bar].site_id);

			if (site && strcmp(site->name, name) == 0 && !cell->left_out)
				return true;
		}
	}
	return false;
}

/* In a step the kernels follow each other on two streams: the path is the launch of the last
 * kernel, or those of the first stream, whichever is longer. */
static void test_b_lights_the_critical_path(void **state)
{
	static const char *const names[] = {"mask", "gemm_values", "ncclDevKernel_AllReduce",
					    "ProfilerStep"};
	struct view_rig *rig = *state;
	char sql[160];

	view_rig_size(rig, 120, 40);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_true(is_lit(rig, names[i]));
	view_rig_press(rig, "b");
	assert_shows(rig, "the critical path; other spans are thin lines");
	assert_shows(rig, "off the path");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(sql, sizeof(sql), "SELECT count(*) FROM critical_path WHERE name = '%s'",
			 names[i]);
		assert_int_equal(is_lit(rig, names[i]), view_rig_sql_int(rig, sql) > 0);
	}
	assert_false(is_lit(rig, "ProfilerStep"));
	view_rig_press(rig, "b");
	assert_shows(rig, "sums by name, of this lane");
	assert_true(is_lit(rig, "ProfilerStep"));
	view_rig_press(rig, "b");
	assert_shows(rig, "the bubble as a whole");
}

#define WITH(test, before) cmocka_unit_test_setup_teardown(test, before, view_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(test_a_key_goes_from_a_launch_to_its_kernel_and_back, setup),
		WITH(test_an_arrow_brings_a_hidden_lane_back, setup),
		WITH(test_a_launch_of_many_goes_on_to_the_next_each_time, setup_graph),
		WITH(test_the_arrows_of_the_selected_span_are_drawn, setup),
		WITH(test_an_arrow_within_a_column_has_its_head_at_the_bar, setup_narrow),
		WITH(test_b_lights_the_critical_path, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
