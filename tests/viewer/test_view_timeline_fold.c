/*
 * Lanes folded by what they are under: threads, processes and devices, ranks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/prof_merge.h"
#include "support/view_fixture.h"
#include "support/view_rig.h"
#include "viewer/timeline/view_timeline_internal.h"

#define US 1000

/* A process with two threads, one with Python's frames; a device with two streams and a wait, one
 * with one stream. Stream 7 works from 20 to 60 us and from 80 to 90, stream 13 from 50 to 70.
 * @whole: with the track that PyTorch's profiler has for the whole recording. */
static bool write_process(const char *path, bool whole)
{
	static const struct {
		const char *name, *parent;
	} tracks[] = {
		{"train", NULL},
		{"main (python)", "main"},
		{"main", "train"},
		{"backward", "train"},
		{"GPU 0", NULL},
		{"GPU 0 stream 7", "GPU 0"},
		{"GPU 0 stream 13", "GPU 0"},
		{"GPU 0 stream 7 (sync)", "GPU 0 stream 7"},
		{"GPU 1", NULL},
		{"GPU 1 stream 9", "GPU 1"},
		{"PyTorch Profiler", "Spans"},
	};
	IPS_SITE(frame, "python_function", "train.py(1): main");
	IPS_SITE(call, "cuda_runtime", "launch");
	IPS_SITE(wait, "sync", "Stream Sync");
	IPS_SITE(gemm, "kernel", "gemm");
	IPS_SITE(scale, "kernel", "scale");
	IPS_SITE(trace, "Trace", "PyTorch Profiler (0)");
	struct ips_track *track[ARRAY_LEN(tracks)];
	struct ips_recording *recording = view_fixture_record(path, NULL);

	if (!recording)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(tracks); i++)
		track[i] = ips_track_open(
			recording, tracks[i].name,
			&(struct ips_track_params){.parent = tracks[i].parent, .ipu = IPS_NULL});
	ips_span_at(track[1], &frame, 0, 100 * US);
	ips_span_at(track[2], &call, 10 * US, 5 * US);
	ips_span_at(track[3], &call, 30 * US, 5 * US);
	ips_span_at(track[5], &gemm, 20 * US, 40 * US);
	ips_span_at(track[5], &gemm, 80 * US, 10 * US);
	ips_span_at(track[6], &scale, 50 * US, 20 * US);
	ips_span_at(track[7], &wait, 0, 95 * US);
	ips_span_at(track[9], &scale, 85 * US, 5 * US);
	if (whole)
		ips_span_at(track[10], &trace, 0, 100 * US);
	return ips_recording_close(recording, NULL, 0) == 0;
}

static bool write_ranks(const char *path, const void *params)
{
	const struct prof_merge_params how = {0};
	char names[2][SUPPORT_PATH_SIZE + 32];
	struct prof_merge_source sources[2] = {{0}};

	if (!*(const bool *)params)
		return write_process(path, false);
	for (int i = 0; i < 2; i++) {
		snprintf(names[i], sizeof(names[i]), "%s.rank%d", path, i);
		sources[i].path = names[i];
		if (!write_process(names[i], true))
			return false;
	}
	support_write_file(path, "", 0);
	return prof_merge(path, sources, 2, &how, NULL) == ST_OK;
}

static const bool one = false, several = true;

static int setup(void **state)
{
	return view_rig_setup_with(state, write_ranks, &one, NULL, "70");
}

static int setup_ranks(void **state)
{
	return view_rig_setup_with(state, write_ranks, &several, NULL, "70");
}

static int setup_pair(void **state)
{
	const int failed = view_rig_setup_with(state, write_ranks, &one, &one, "70");

	if (!failed)
		view_rig_size(*state, 120, 44);
	return failed;
}

static struct view_timeline *timeline_of(struct view_rig *rig)
{
	return rig->session.state[VIEW_TIMELINE];
}

static void assert_lanes(const struct view_timeline *tl, const char *names)
{
	char all[256] = "";

	for (int i = 0; i < tl->lane_count; i++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? ", " : "",
			 view__lane_name(tl, i));
	assert_string_equal(all, names);
}

static void search(struct view_rig *rig, const char *text)
{
	view_rig_press(rig, "/");
	view_rig_press(rig, text);
	view_rig_key(rig, VIEW_KEY_ENTER);
}

#define EVERY_LANE                                                                                 \
	"main (python), main, backward, GPU 0 stream 7, GPU 0 stream 7 (sync), GPU 0 stream 13, "  \
	"GPU 1 stream 9"

static void test_a_key_folds_threads_then_processes_and_devices(void **state)
{
	struct view_rig *rig = *state;

	/* In the file's order, what belongs together side by side. */
	assert_lanes(timeline_of(rig), EVERY_LANE);
	assert_shows(rig, "e fold");
	view_rig_press(rig, "e");
	assert_shows(rig, "one lane for each thread and stream");
	assert_lanes(timeline_of(rig),
		     "+main, backward, +GPU 0 stream 7, GPU 0 stream 13, GPU 1 stream 9");
	view_rig_press(rig, "e");
	assert_shows(rig, "folded by process and device");
	assert_lanes(timeline_of(rig), "+train, +GPU 0, +GPU 1");
	view_rig_press(rig, "e"); /* there are no several ranks to fold */
	assert_shows(rig, "all lanes are shown");
	assert_lanes(timeline_of(rig), EVERY_LANE);
}

static void test_a_folded_lane_shows_the_work_of_all_in_it(void **state)
{
	struct view_rig *rig = *state;
	const struct view_lane *gpu;

	view_rig_press(rig, "eej");
	gpu = view__lane(timeline_of(rig));
	assert_string_equal(gpu->fold, "+GPU 0");
	/* Waits are left out: idle is all but 20 to 70 and 80 to 90 us. */
	assert_int_equal(gpu->bar_count, 3);
	assert_close(gpu->idle, 0.4, 1e-9);
	assert_line_shows(rig, "+GPU 0", "gemm", "scale", "gemm", "40.0%");
	/* And Python's frames. */
	assert_line_shows(rig, "+train", "90.0%");
	assert_hides(rig, "train.py");
}

static void test_keys_are_about_the_lane_of_the_span_under_the_cursor(void **state)
{
	struct view_rig *rig = *state;
	struct view_timeline *tl = timeline_of(rig);

	view_rig_press(rig, "ee");
	search(rig, "scale");
	assert_string_equal(view__lane(tl)->fold, "+GPU 0");
	assert_string_equal(view__lane(tl)->track->name, "GPU 0 stream 13");
	assert_string_equal(tl->under.span.name, "scale");
	search(rig, "gemm");
	view_rig_press(rig, "]");
	assert_string_equal(view__lane(tl)->track->name, "GPU 0 stream 7");
	assert_int_equal(tl->under.span.start_ns, 80 * US);
	/* The cursor stays on it when lanes are unfolded, and is read again. */
	view_rig_press(rig, "er");
	assert_null(view__lane(tl)->fold);
	assert_string_equal(view__lane(tl)->track->name, "GPU 0 stream 7");
}

static void test_a_folded_lane_is_hidden_as_one(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "eec");
	assert_shows(rig, "+train is hidden");
	assert_lanes(timeline_of(rig), "+GPU 0, +GPU 1");
	view_rig_press(rig, "EC");
	assert_lanes(timeline_of(rig), "+GPU 0");
	/* Unfolded, the device's lanes alone are shown. */
	view_rig_press(rig, "e");
	assert_lanes(timeline_of(rig), "GPU 0 stream 7, GPU 0 stream 7 (sync), GPU 0 stream 13");
	assert_int_equal(timeline_of(rig)->hiding.lanes, 4);
}

static void test_ranks_are_side_by_side(void **state)
{
	struct view_rig *rig = *state;
	char *parents = view_rig_sql_text(rig, "SELECT group_concat(parent) FROM tracks WHERE "
					       "name LIKE '%stream 13'");

	assert_string_equal(parents, "rank 0/GPU 0,rank 1/GPU 0");
	free(parents);
	view_rig_press(rig, "ee");
	assert_lanes(timeline_of(rig),
		     "+rank 0/train, +rank 0/GPU 0, +rank 0/GPU 1, rank 0/PyTorch Profiler, "
		     "+rank 1/train, +rank 1/GPU 0, +rank 1/GPU 1, rank 1/PyTorch Profiler");
	view_rig_press(rig, "e");
	assert_lanes(timeline_of(rig), "+rank 0, +rank 1");
	assert_hides(rig, "PyTorch Profiler");
}

static void test_two_reports_are_folded_alike(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "ee");
	assert_lanes(timeline_of(rig), "+train, +GPU 0, +GPU 1");
	assert_lanes(timeline_of(rig)->target, "+train, +GPU 0, +GPU 1");
	view_rig_press(rig, "j");
	assert_string_equal(view__lane(timeline_of(rig)->target)->fold, "+GPU 0");
	view_rig_press(rig, "C");
	assert_lanes(timeline_of(rig)->target, "+GPU 0");
}

static void press_folded(struct view_rig *rig)
{
	view_rig_press(rig, "7eev]v[VbpcCE}{wLuMzx(e)0e");
}

static void test_folded_lanes_fit_every_terminal(void **state)
{
	view_rig_each_look(*state, press_folded);
}

#define WITH(test, before) cmocka_unit_test_setup_teardown(test, before, view_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(test_a_key_folds_threads_then_processes_and_devices, setup),
		WITH(test_a_folded_lane_shows_the_work_of_all_in_it, setup),
		WITH(test_keys_are_about_the_lane_of_the_span_under_the_cursor, setup),
		WITH(test_a_folded_lane_is_hidden_as_one, setup),
		WITH(test_ranks_are_side_by_side, setup_ranks),
		WITH(test_two_reports_are_folded_alike, setup_pair),
		WITH(test_folded_lanes_fit_every_terminal, setup_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
