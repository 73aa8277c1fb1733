/*
 * The screen Accelerators, on a training on a GPU, on two of them, and on a run without one.
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
	const int failed = view_rig_setup_with(state, view_fixture_gpu_write, NULL, NULL, "A");

	if (!failed)
		view_rig_size(*state, 120, 40);
	return failed;
}

static int setup_two(void **state)
{
	static const bool apart = false, fused = true;
	const int failed = view_rig_setup_with(state, view_fixture_gpu_write, &apart, &fused, "A");

	if (!failed)
		view_rig_size(*state, 160, 40);
	return failed;
}

static bool write_usual(const char *path, const void *params)
{
	(void)params;
	return view_fixture_write(path, 0);
}

static int setup_other(void **state)
{
	return view_rig_setup_with(state, write_usual, NULL, NULL, "A");
}

static void test_the_reports_are_shown_one_by_one(void **state)
{
	struct view_rig *rig = *state;

	assert_shows(rig, "[kernels]");
	assert_line_shows(rig, "gemm_values", "3", "180 us", "60 us", "35.29 %");
	view_rig_press(rig, "b");
	assert_line_shows(rig, "communication", "3", "150 us", "29.41 %");
	view_rig_press(rig, "v");
	assert_shows(rig, "[temporal] ");
	assert_line_shows(rig, "GPU 0", "150 us");
	view_rig_press(rig, "v");
	assert_line_shows(rig, "cudaLaunchKernel", "12", "60 us", "5 us");
	view_rig_press(rig, "v");
	assert_shows(rig, "[critical path]");
	assert_shows(rig, "ncclDevKernel_AllReduce");
	view_rig_press(rig, "v");
	assert_line_shows(rig, "ProfilerStep", "200 us", "4", "170 us");
	view_rig_press(rig, "v");
	assert_line_shows(rig, "nvtx", "forward", "3", "180 us", "12", "510 us");
	view_rig_press(rig, "v");
	assert_shows(rig, "[memory]");
	assert_line_shows(rig, "GPU 0", "6", "6", "16 MB");
	assert_shows(rig, " \xe2\x94\xa4"); /* an axis */
	view_rig_press(rig, "b");
	assert_line_shows(rig, "free", "-4194304");
	view_rig_press(rig, "v");
	assert_line_shows(rig, "communication", "3", "150 us");
	view_rig_press(rig, "V");
	assert_shows(rig, "[memory]");
}

static void assert_leads_to(struct view_rig *rig, const char *name)
{
	const struct view_timeline *tl;

	view_rig_key(rig, VIEW_KEY_ENTER);
	assert_int_equal(rig->session.screen, VIEW_TIMELINE);
	tl = rig->session.state[VIEW_TIMELINE];
	assert_int_not_equal(tl->under.selected, IPS_NULL);
	assert_string_equal(tl->under.span.name, name);
	view_rig_key(rig, VIEW_KEY_BACKSPACE);
	assert_int_equal(rig->session.screen, VIEW_ACCELERATORS);
}

static void test_enter_leads_from_a_row_to_its_span(void **state)
{
	struct view_rig *rig = *state;

	assert_leads_to(rig, "gemm_values");
	view_rig_press(rig, "j");
	assert_leads_to(rig, "ncclDevKernel_AllReduce");
	view_rig_press(rig, "vv");
	assert_leads_to(rig, "cudaLaunchKernel");
	view_rig_press(rig, "vvj");
	assert_leads_to(rig, "ProfilerStep");
	assert_int_equal(
		((struct view_timeline *)rig->session.state[VIEW_TIMELINE])->under.span.step, 1);
	view_rig_press(rig, "v");
	assert_shows(rig, "[ranges]");
	view_rig_press(rig, "/forward");
	view_rig_key(rig, VIEW_KEY_ENTER);
	assert_leads_to(rig, "forward");
}

static void test_two_recordings_are_paired_by_name(void **state)
{
	struct view_rig *rig = *state;

	assert_line_shows(rig, "+", "flash_fwd");
	assert_line_shows(rig, "-", "mask");
	assert_line_shows(rig, "ncclDevKernel_AllReduce", "3", "3");
}

static void test_other_runs_say_why_it_is_empty(void **state)
{
	struct view_rig *rig = *state;

	assert_shows(rig, "Nothing ran on a GPU or another accelerator.");
	assert_shows(rig, "no kernels, ranges or allocations recorded");
	view_rig_press(rig, "vbjk");
}

static void press_all(struct view_rig *rig)
{
	view_rig_press(rig, "AvvvvvvvbbjjG>I");
}

static void test_it_fits_every_terminal(void **state)
{
	view_rig_each_look(*state, press_all);
}

static void test_no_key_is_refused(void **state)
{
	view_rig_press_every_key(*state, VIEW_ACCELERATORS);
}

#define WITH(test, before) cmocka_unit_test_setup_teardown(test, before, view_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(test_the_reports_are_shown_one_by_one, setup),
		WITH(test_enter_leads_from_a_row_to_its_span, setup),
		WITH(test_two_recordings_are_paired_by_name, setup_two),
		WITH(test_other_runs_say_why_it_is_empty, setup_other),
		WITH(test_it_fits_every_terminal, setup),
		WITH(test_no_key_is_refused, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
