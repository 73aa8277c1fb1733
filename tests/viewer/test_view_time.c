/*
 * Windows of time: zooming, panning, ticks, and the way between the clocks.
 */
#include <stdlib.h>
#include <string.h>

#include "support/support.h"
#include "viewer/draw/view_time.h"

static const struct view_window extent = {1000, 9000001000};

static void assert_window(struct view_window window)
{
	assert_true(window.from >= extent.from && window.to <= extent.to);
	assert_true(window.to - window.from >= VIEW_WINDOW_LEAST);
}

static void test_a_window_never_leaves_its_extent(void **state)
{
	struct view_window window = extent;

	(void)state;
	srand(7);
	for (int i = 0; i < 100000; i++) {
		const int64_t about = window.from + (int64_t)((double)(window.to - window.from) *
							      rand() / RAND_MAX);

		switch (rand() % 4) {
		case 0:
			window = view_window_zoom(window, about, 1, 2, extent);
			break;
		case 1:
			window = view_window_zoom(window, about, 2, 1, extent);
			break;
		case 2:
			window = view_window_pan(window, rand() % 2 ? 1 : -1, 1 + rand() % 8,
						 extent);
			break;
		default:
			window = view_window_show(window, extent.from + rand(), extent);
			break;
		}
		assert_window(window);
	}
}

static void test_zooming_keeps_the_cursor_in_its_column(void **state)
{
	const struct view_window window = {1000000, 2000000};
	const struct view_window in = view_window_zoom(window, 1250000, 1, 2, extent);

	(void)state;
	assert_int_equal(in.to - in.from, 500000);
	assert_int_equal(view_window_column(window, 80, 1250000),
			 view_window_column(in, 80, 1250000));
}

static void test_columns_and_times_agree(void **state)
{
	const struct view_window windows[] = {
		{0, 100}, {-50, 31}, {INT64_MAX / 2 - 977, INT64_MAX / 2}};

	(void)state;
	for (int w = 0; w < 3; w++)
		for (int columns = 1; columns < 300; columns += 13)
			for (int x = 0; x < columns; x++) {
				const int64_t time = view_window_time(windows[w], columns, x);

				assert_true(view_window_column(windows[w], columns, time) >= x);
				assert_true(view_window_column(windows[w], columns, time - 1) < x);
			}
}

static void test_ticks_are_round_and_apart(void **state)
{
	char text[VIEW_TICK_SIZE];

	(void)state;
	assert_int_equal(view_tick_step((struct view_window){0, 1000}, 100, 10), 100);
	assert_int_equal(view_tick_step((struct view_window){0, 1000}, 100, 11), 200);
	assert_int_equal(view_tick_step((struct view_window){0, 1}, 100, 10), 1);
	assert_string_equal(view_tick_text(text, 1240350000, 50000,
					   (struct view_window){1240000000, 1241000000}),
			    "1.24035 s");
	assert_string_equal(view_tick_text(text, 20000, 10000, (struct view_window){0, 60000}),
			    "20 us");
	assert_string_equal(view_tick_text(text, 0, 5, (struct view_window){0, 60}), "0 ns");
}

static void test_clocks_map_there_and_back(void **state)
{
	const struct view_link links[] = {{0, 0}, {100, 10}, {300, 20}, {400, 120}};

	(void)state;
	assert_int_equal(view_link_map(links, 4, 50, 1), 5);
	assert_int_equal(view_link_map(links, 4, 200, 1), 15);
	assert_int_equal(view_link_map(links, 4, 15, 0), 200);
	assert_int_equal(view_link_map(links, 4, 120, 0), 400);
	/* Beyond the ends the nearest line goes on. */
	assert_int_equal(view_link_map(links, 4, -100, 1), -10);
	assert_int_equal(view_link_map(links, 4, 500, 1), 220);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_window_never_leaves_its_extent),
		cmocka_unit_test(test_zooming_keeps_the_cursor_in_its_column),
		cmocka_unit_test(test_columns_and_times_agree),
		cmocka_unit_test(test_ticks_are_round_and_apart),
		cmocka_unit_test(test_clocks_map_there_and_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
