/*
 * Heat maps: nothing outside, more is never shown as less, peaks are never lost.
 */
#include <math.h>
#include <string.h>

#include "reports/table/report_axis.h"
#include "support/support.h"
#include "support/view_pane.h"
#include "viewer/draw/view_chart.h"

#define MOST_WIDTH  300
#define MOST_HEIGHT 100

/* The ways a canvas can be shown. */
static const struct view_canvas modes[] = {
	{.colours = 256},
	{.colours = 16},
	{.colours = 8},
	{.colours = 0},
	{.plain = true, .colours = 256},
	{.ascii = true, .colours = 256},
	{.ascii = true, .colours = 8},
	{.ascii = true, .plain = true},
};
#define MODES (sizeof(modes) / sizeof(modes[0]))

static const struct report_axis unit = {.low = 0, .high = 1, .quantity = REPORT_BYTES};

static void test_maps_stay_inside_at_every_size(void **state)
{
	double values[7 * 5];

	(void)state;
	for (int i = 0; i < 35; i++)
		values[i] = i % 9 == 4 ? NAN : i % 11 == 3 ? INFINITY : i % 7 - 1.0;
	for (size_t mode = 0; mode < MODES; mode++) {
		struct view_canvas canvas = modes[mode];

		for (int w = 1; w <= MOST_WIDTH; w += w < 20 ? 1 : 67)
			for (int h = 1; h <= MOST_HEIGHT; h += h < 10 ? 1 : 29) {
				struct view_pane pane = view_pane_framed(&canvas, w, h);

				view_heat_map(&pane, values, 7, 5, &unit);
				view_heat_map(&pane, values, 35, 1, &unit);
				view_heat_map(&pane, values, 0, 5, &unit);
				view_heat_signed_map(&pane, values, 7, 5, 5);
				view_heat_signed_map(&pane, values, 35, 1, 0);
				view_heat_signed_legend(&pane, 0, 0, w, 388, REPORT_BYTES);
				view_heat_legend(&pane, 0, h - 1, w, &unit);
				view_heat(&pane, -1, 0, 1, 1);
				view_heat(&pane, w, h, 1, 1);
				view_pane_assert_inside(&canvas);
			}
		view_canvas_fini(&canvas);
	}
}

/* Order of what is drawn for one value: the number of the step. */
static int step_of(const struct view_canvas *canvas, double part)
{
	static const char ramp[] = " .:-=+*#%@";
	static const uint32_t shades[] = {' ', 0x2591, 0x2592, 0x2593, 0x2588};
	struct view_pane pane = view_pane_all((struct view_canvas *)canvas);
	const struct view_cell *cell = &canvas->cells[0];
	int shade = -1;

	view_heat(&pane, 0, 0, part, part);
	if (cell->style >= VIEW_HEAT_PAIR)
		return (cell->style - VIEW_HEAT_PAIR) % VIEW_HEAT_STEPS;
	if (canvas->ascii)
		return (int)(strchr(ramp, (int)cell->character) - ramp);
	for (int i = 0; i < 5; i++)
		if (shades[i] == cell->character)
			shade = i;
	assert_true(shade >= 0);
	return cell->style == VIEW_HOT ? 20 + shade : cell->style == VIEW_WARM ? 10 + shade : shade;
}

static void test_more_is_never_shown_as_less(void **state)
{
	(void)state;
	for (size_t mode = 0; mode < MODES; mode++) {
		struct view_canvas canvas = modes[mode];
		int least, before = -1;

		assert_int_equal(view_canvas_resize(&canvas, 1, 1, NULL), ST_OK);
		least = step_of(&canvas, 0);
		for (int i = 0; i <= 1000; i++) {
			const int step = step_of(&canvas, i / 1000.0);

			assert_true(step >= before);
			before = step;
		}
		/* Above 0 shows, and the ends are apart. */
		assert_true(step_of(&canvas, 1e-9) > least);
		assert_true(before >= least + 4);
		view_canvas_fini(&canvas);
	}
}

static void test_a_peak_among_many_is_seen(void **state)
{
	double values[64 * 46] = {0};
	const struct report_axis scale = {.low = 0, .high = 9};

	(void)state;
	for (size_t mode = 0; mode < MODES; mode++) {
		struct view_canvas canvas = modes[mode];

		for (int at = 0; at < 64 * 46; at += 401) {
			struct view_cell plain;
			struct view_pane pane;
			struct view_rect place;
			int differing = 0;

			assert_int_equal(view_canvas_resize(&canvas, 20, 6, NULL), ST_OK);
			pane = view_pane_all(&canvas);
			view_heat(&pane, 0, 0, 0, 0);
			plain = canvas.cells[0];
			values[at] = 9;
			view_heat_map(&pane, values, 64, 46, &scale);
			values[at] = 0;
			place = view_heat_place(&pane, 64, 46, at % 64, at / 64);
			for (int i = 0; i < 20 * 6; i++)
				if (memcmp(&canvas.cells[i].character, &plain.character, 4) != 0 ||
				    canvas.cells[i].style != plain.style) {
					differing++;
					assert_int_equal(i % 20, place.x);
					assert_int_equal(i / 20, place.y);
				}
			assert_int_equal(differing, 1);
		}
		view_canvas_fini(&canvas);
	}
}

static void test_halves_are_two_values(void **state)
{
	struct view_canvas canvas = {.colours = 256};
	struct view_pane pane;

	(void)state;
	assert_int_equal(view_canvas_resize(&canvas, 4, 1, NULL), ST_OK);
	pane = view_pane_all(&canvas);
	view_heat(&pane, 0, 0, 1, 0);
	view_heat(&pane, 1, 0, NAN, 1);
	view_heat(&pane, 2, 0, 0.5, NAN);
	view_heat(&pane, 3, 0, NAN, NAN);
	assert_int_equal(canvas.cells[0].character, 0x2580);
	assert_int_equal(canvas.cells[0].style, VIEW_HEAT_PAIR + 11 * VIEW_HEAT_STEPS);
	assert_int_equal(canvas.cells[1].character, 0x2584);
	assert_int_equal(canvas.cells[1].style, VIEW_HEAT_HALF + 11);
	assert_int_equal(canvas.cells[2].character, 0x2580);
	assert_in_range(canvas.cells[2].style, VIEW_HEAT_HALF + 5, VIEW_HEAT_HALF + 6);
	assert_int_equal(canvas.cells[3].character, ' ');
	assert_int_equal(canvas.cells[3].style, VIEW_NORMAL);
	view_canvas_fini(&canvas);
}

static void test_places_and_cells_agree(void **state)
{
	static const int sizes[][2] = {{1, 1}, {3, 2}, {20, 12}, {64, 46}, {301, 7}};
	struct view_canvas canvas = {0};

	(void)state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (int w = 1; w < 90; w += 8)
			for (int h = 1; h < 40; h += 5) {
				const int columns = sizes[s][0], rows = sizes[s][1];
				struct view_pane pane = view_pane_framed(&canvas, w, h);
				int column, row;

				for (int y = 0; y < h; y++)
					for (int x = 0; x < w; x++) {
						struct view_rect place;

						assert_true(view_heat_find(&pane, columns, rows, x,
									   y, &column, &row));
						assert_in_range(column, 0, columns - 1);
						assert_in_range(row, 0, rows - 1);
						place = view_heat_place(&pane, columns, rows,
									column, row);
						assert_true(place.x <= x &&
							    x < place.x + place.width);
						assert_true(place.y <= y &&
							    y < place.y + place.height);
						assert_true(place.x + place.width <= w &&
							    place.y + place.height <= h);
					}
				assert_false(
					view_heat_find(&pane, columns, rows, w, 0, &column, &row));
			}
	view_canvas_fini(&canvas);
}

static void test_no_pane_has_no_places(void **state)
{
	static const int sizes[][2] = {{0, 0}, {0, 9}, {40, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const struct view_pane pane = {.rect = {0, 0, sizes[i][0], sizes[i][1]}};
		const struct view_rect place = view_heat_place(&pane, 64, 23, 63, 22);

		assert_int_equal(place.width, 0);
		assert_int_equal(place.height, 0);
	}
}

static void test_shares_cover_everything_once(void **state)
{
	(void)state;
	for (int cells = 1; cells < 60; cells++)
		for (int64_t count = 1; count < 200; count += 3)
			for (int64_t i = 0; i < count; i++) {
				const int cell = view_share_cell(count, cells, i);
				int64_t from, to;

				assert_in_range(cell, 0, cells - 1);
				view_share(count, cells, cell, &from, &to);
				assert_true(from <= i && i < to && to <= count);
				if (cell > 0) {
					view_share(count, cells, cell - 1, &from, &to);
					assert_true(to <= i);
				}
			}
}

/* In every mode less, the same and more look different, and the greater change of a cell's two. */
static void test_signs_can_be_told_apart(void **state)
{
	const double values[2 * 5] = {-5, 0, 5, 1, NAN, 0, 0, -1, -2, NAN};

	(void)state;
	for (size_t mode = 0; mode < MODES; mode++) {
		struct view_canvas canvas = modes[mode];
		struct view_pane pane = view_pane_framed(&canvas, 5, 1);
		const struct view_cell *row = &canvas.cells[7 + 1];

		view_heat_signed_map(&pane, values, 5, 2, 5);
		for (int a = 0; a < 3; a++)
			for (int b = a + 1; b < 3; b++)
				assert_true(row[a].character != row[b].character ||
					    row[a].style != row[b].style);
		assert_int_equal(row[3].style, row[0].style);
		assert_int_not_equal(row[3].character, row[0].character); /* two fifths of it */
		assert_int_equal(row[4].character, ' ');
		view_canvas_fini(&canvas);
	}
}

static void test_any_number_of_things_is_shared_out(void **state)
{
	int64_t from, to, next = 0;

	(void)state;
	for (int cell = 0; cell < 7; cell++) {
		view_share(INT64_MAX, 7, cell, &from, &to);
		assert_int_equal(from, next);
		assert_int_equal(view_share_cell(INT64_MAX, 7, from + (to - from) / 2), cell);
		next = to;
	}
	assert_int_equal(next, INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_maps_stay_inside_at_every_size),
		cmocka_unit_test(test_more_is_never_shown_as_less),
		cmocka_unit_test(test_a_peak_among_many_is_seen),
		cmocka_unit_test(test_halves_are_two_values),
		cmocka_unit_test(test_signs_can_be_told_apart),
		cmocka_unit_test(test_places_and_cells_agree),
		cmocka_unit_test(test_no_pane_has_no_places),
		cmocka_unit_test(test_shares_cover_everything_once),
		cmocka_unit_test(test_any_number_of_things_is_shared_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
