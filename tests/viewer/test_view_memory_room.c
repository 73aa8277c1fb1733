/*
 * The screen Memory: what its room is used for, and what keys say that can do no more.
 */
#include "support/view_fixture_memory.h"
#include "support/view_rig.h"
#include "viewer/memory/view_memory_internal.h"

struct memory_params {
	enum view_fixture_memory what;
	int ipus;
};

static bool write_memory(const char *path, const void *params)
{
	const struct memory_params *memory = params;

	return view_fixture_memory_write(path, memory->what, memory->ipus);
}

static int setup(void **state)
{
	const struct memory_params params = {VIEW_FIXTURE_FITS, 2};

	return view_rig_setup_with(state, write_memory, &params, NULL, "3bbb");
}

static int setup_large(void **state)
{
	const struct memory_params params = {VIEW_FIXTURE_LARGE, 2};

	return view_rig_setup_with(state, write_memory, &params, NULL, "3bbb");
}

static void test_every_part_has_its_name_in_the_legend(void **state)
{
	static const int widths[] = {80, 100, 132, 250};
	struct view_rig *rig = *state;

	view_rig_press(rig, "b");
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		view_rig_size(rig, widths[i], 24);
		assert_shows(rig, "category15");
		assert_shows(rig, "category11");
		assert_shows(rig, "the others");
	}
}

/* As wide as a floor plan, bars and the table's columns need it, and no wider. */
static void test_details_have_the_width_that_pictures_leave(void **state)
{
	struct view_rig *rig = *state;
	const struct view_memory *screen = rig->session.state[VIEW_MEMORY];

	view_rig_size(rig, 132, 43);
	view_rig_press(rig, "v");
	assert_int_equal(screen->areas.picture.width, 66);
	assert_shows(rig, "a row has 16 islands of 4 tiles");
	view_rig_press(rig, "v");
	assert_int_equal(screen->areas.picture.width, 66);
	for (int i = 0; i < 2; i++) {
		view_rig_press(rig, "v");
		assert_int_equal(screen->areas.picture.width,
				 view_grid_used(i == 0 ? &screen->grid : &screen->ipu_grid));
	}
	assert_int_equal(screen->areas.details.x + screen->areas.details.width, 132);
	view_rig_size(rig, 300, 43);
	assert_true(screen->areas.details.width <= 120);
}

static void test_the_ends_of_names_are_kept(void **state)
{
	struct view_rig *rig = *state;

	view_rig_size(rig, 43, 60);
	assert_hides(rig, "Dense_128/kernel:0");
	assert_line_shows(rig, "Den\xe2\x80\xa6", "kernel:0", "8,192");
}

static void test_what_is_not_recorded_by_tile_is_said(void **state)
{
	static const char note[] = "vertices, exchanges: not by tile; see Programs";
	struct view_rig *rig = *state;

	view_rig_press(rig, "C\rGk");
	assert_line_shows(rig, "curve of all memory, tile 0,40, ", note);
	view_rig_size(rig, 132, 43);
	view_rig_press(rig, "k");
	assert_shows(rig, note);
}

static void test_the_status_keeps_what_matters(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "/out\rvvvf(\r");
	assert_line_shows(rig, " filter: ");
	assert_hides(rig, "table of");
	view_rig_press(rig, "f\x15\r");
	assert_shows(rig, "table of Dense_128/out");
	view_rig_size(rig, 40, 12);
	assert_hides(rig, "table of");
	assert_shows(rig, " of 300, +6 columns: l");
}

static void test_keys_that_can_do_no_more_say_so(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "-");
	assert_shows(rig, "all tiles are shown");
	view_rig_press(rig, "+-");
	assert_hides(rig, "all tiles are shown");
	view_rig_press(rig, "++++++++++");
	assert_shows(rig, "as close as it gets");
}

static void test_sorting_goes_to_the_table(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, ">");
	assert_shows(rig, "table of all memory");
	assert_shows(rig, "by of tile");
	view_rig_press(rig, "vvv\rI");
	assert_shows(rig, "by of tile reversed");
	view_rig_press(rig, "j");
	assert_shows(rig, "row 2 of");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define EACH(name) cmocka_unit_test_setup_teardown(name, setup, view_rig_teardown)
		cmocka_unit_test_setup_teardown(test_every_part_has_its_name_in_the_legend,
						setup_large, view_rig_teardown),
		EACH(test_details_have_the_width_that_pictures_leave),
		EACH(test_the_ends_of_names_are_kept),
		EACH(test_what_is_not_recorded_by_tile_is_said),
		EACH(test_the_status_keeps_what_matters),
		EACH(test_keys_that_can_do_no_more_say_so),
		EACH(test_sorting_goes_to_the_table),
#undef EACH
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
