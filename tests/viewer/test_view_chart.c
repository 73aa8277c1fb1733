/*
 * Axes and charts: nothing outside at any size, extremes are there, ticks are round and rise.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"
#include "support/view_pane.h"
#include "viewer/draw/view_chart.h"
#include "reports/table/report_axis.h"

static const struct view_canvas modes[] = {
	{.colours = 256},
	{.colours = 8},
	{.plain = true},
	{.ascii = true, .colours = 256},
	{.ascii = true, .plain = true},
};
#define MODES (sizeof(modes) / sizeof(modes[0]))

static const double wild[] = {NAN, 1e308, -1e308, INFINITY, 0, -INFINITY, 5e-324, 3, -7, 1e9};
#define WILD ((int)(sizeof(wild) / sizeof(wild[0])))

static void draw_all(struct view_pane *pane, const double *values, int count)
{
	struct report_axis y = {.quantity = REPORT_REAL}, x = {.low = 0, .high = count};
	struct view_series series[3];
	struct view_pane plot;

	report_axis_begin(&y);
	report_axis_include(&y, values, count);
	report_axis_finish(&y);
	for (int i = 0; i < 3; i++) {
		series[i] = (struct view_series){.values = values,
						 .at = i == 1 ? values : NULL,
						 .count = count,
						 .style = view_series_style(i)};
	}
	plot = view_chart_axes(pane, &x, &y, 0);
	assert_true(plot.rect.width > 0 && plot.rect.height > 0);
	view_chart_stack(&plot, series, 3, &y);
	view_chart_columns(&plot, VIEW_CURVE, values, count, &y);
	for (int i = 0; i < 3; i++)
		view_chart_line(&plot, &series[i], &x, &y);
	view_chart_marker(&plot, plot.rect.width / 2);
	view_chart_bar(pane, 0, 0, pane->rect.width, VIEW_RAMP_UP, values[0]);
	view_chart_key(pane, 0, 0, pane->rect.width, VIEW_TARGET, "target");
}

static void test_charts_stay_inside_whatever_the_values(void **state)
{
	(void)state;
	for (size_t mode = 0; mode < MODES; mode++) {
		struct view_canvas canvas = modes[mode];

		for (int w = 1; w <= 300; w += w < 24 ? 1 : 69)
			for (int h = 1; h <= 100; h += h < 12 ? 1 : 22) {
				struct view_pane pane = view_pane_framed(&canvas, w, h);

				draw_all(&pane, wild, WILD);
				draw_all(&pane, wild + 6, 4);
				view_pane_assert_inside(&canvas);
			}
		view_canvas_fini(&canvas);
	}
}

/* A title that the scale is too narrow for is one of whole words. */
static void test_titles_are_whole_words(void **state)
{
	const struct report_axis y = {.high = 1, .quantity = REPORT_REAL};
	const char *const titles[] = {"step", "weight update", "execution"};
	const char *const shown[] = {"step ", "update ", "execution "};

	(void)state;
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++) {
		const struct report_axis x = {.high = 9, .title = titles[i]};
		struct view_canvas canvas = modes[0];
		struct view_pane pane = view_pane_framed(&canvas, 80, 12);
		char *text;
		size_t size;
		FILE *out = open_memstream(&text, &size);

		(void)view_chart_axes(&pane, &x, &y, 0);
		assert_int_equal(view_canvas_print(&canvas, 0, 14, out, NULL), ST_OK);
		fclose(out);
		assert_non_null(strstr(text, shown[i]));
		assert_null(strstr(text, "weight"));
		free(text);
		view_canvas_fini(&canvas);
	}
}

static void test_areas_never_overlap(void **state)
{
	(void)state;
	for (int w = 1; w <= 300; w++)
		for (int h = 1; h <= 100; h++)
			for (int scale = 0; scale < 14; scale += 4) {
				const struct view_chart_layout a =
					view_chart_areas(w, h, scale, scale != 4);

				assert_true(a.plot.width > 0 && a.plot.height > 0);
				assert_int_equal(a.scale.width + a.plot.width, w);
				assert_int_equal(a.plot.height + a.axis.height, h);
				assert_int_equal(a.plot.x, a.scale.width);
				assert_true(a.scale.height == 0 || a.scale.height == a.plot.height);
				assert_true(a.axis.height == 0 || a.axis.y == a.plot.height);
			}
}

/* Dots of braille, or whole cells, set in column @x of cells. */
static bool column_has(const struct view_pane *pane, int x, int row)
{
	return view_char_at(pane, x, row) != ' ';
}

static void test_a_spike_among_many_points_is_drawn(void **state)
{
	enum {
		COUNT = 5000
	};
	static double values[COUNT];
	const struct report_axis y = {.low = 0, .high = 1};
	const struct view_series series = {.values = values, .count = COUNT, .style = VIEW_CURVE};

	(void)state;
	for (size_t mode = 0; mode < MODES; mode++) {
		struct view_canvas canvas = modes[mode];

		for (int at = 0; at < COUNT; at += 307) {
			struct view_pane pane;
			int x;

			assert_int_equal(view_canvas_resize(&canvas, 40, 10, NULL), ST_OK);
			pane = view_pane_all(&canvas);
			values[at] = 1;
			view_chart_line(&pane, &series, NULL, &y);
			x = view_chart_column(40, COUNT, at);
			assert_true(column_has(&pane, x, 0));
			for (int row = 0; row < 10; row++)
				assert_true(column_has(&pane, x, row));
			view_canvas_clear(&canvas);
			view_chart_columns(&pane, VIEW_CURVE, values, COUNT, &y);
			assert_true(column_has(&pane, view_share_cell(COUNT, 40, at), 0));
			view_canvas_clear(&canvas);
			view_chart_stack(&pane, &series, 1, &y);
			assert_true(column_has(&pane, view_share_cell(COUNT, 40, at), 0));
			values[at] = 0;
		}
		view_canvas_fini(&canvas);
	}
}

static void test_two_curves_can_be_told_apart_without_colours(void **state)
{
	const double low[] = {0.2, 0.2}, high[] = {0.8, 0.8};
	const struct report_axis y = {.low = 0, .high = 1};
	const struct view_series source = {.values = low, .count = 2, .style = VIEW_SOURCE};
	const struct view_series target = {.values = high, .count = 2, .style = VIEW_TARGET};

	(void)state;
	for (size_t mode = 2; mode < MODES; mode++) {
		struct view_canvas canvas = modes[mode];
		struct view_pane pane;

		assert_int_equal(view_canvas_resize(&canvas, 10, 10, NULL), ST_OK);
		pane = view_pane_all(&canvas);
		view_chart_line(&pane, &source, NULL, &y);
		view_chart_line(&pane, &target, NULL, &y);
		assert_int_equal(view_char_at(&pane, 4, 2), 'o');
		assert_int_not_equal(view_char_at(&pane, 4, 7), 'o');
		assert_int_not_equal(view_char_at(&pane, 4, 7), ' ');
		view_canvas_fini(&canvas);
	}
}

static void test_curves_of_two_lengths_share_an_axis(void **state)
{
	const double values[] = {1, 1, 1}, first[] = {0, 10, 20}, last[] = {80, 90, 100};
	const struct report_axis x = {.low = 0, .high = 100}, y = {.low = 0, .high = 1};
	struct view_series series = {
		.values = values, .at = first, .count = 3, .style = VIEW_SOURCE};
	struct view_canvas canvas = {.ascii = true};
	struct view_pane pane;

	(void)state;
	assert_int_equal(view_canvas_resize(&canvas, 51, 2, NULL), ST_OK);
	pane = view_pane_all(&canvas);
	view_chart_line(&pane, &series, &x, &y);
	series.at = last;
	series.style = VIEW_TARGET;
	view_chart_line(&pane, &series, &x, &y);
	for (int at = 0; at < 51; at++)
		assert_int_equal(view_char_at(&pane, at, 0), at <= 10 ? '*' : at >= 40 ? 'o' : ' ');
	view_canvas_fini(&canvas);
}

static int count_of(const struct view_canvas *canvas, uint32_t character)
{
	int count = 0;

	for (int i = 0; i < canvas->width * canvas->height; i++)
		count += canvas->cells[i].character == character;
	return count;
}

static void test_stacks_give_each_series_its_share(void **state)
{
	const double a[] = {2, 2}, b[] = {3, 3}, c[] = {5, 0};
	const struct report_axis y = {.low = 0, .high = 10};
	const struct view_series series[] = {{.values = a, .count = 2, .style = VIEW_SERIES_1},
					     {.values = b, .count = 2, .style = VIEW_SERIES_2},
					     {.values = c, .count = 2, .style = VIEW_SERIES_3}};
	struct view_canvas canvas = {.ascii = true};
	struct view_pane pane;

	(void)state;
	assert_int_equal(view_canvas_resize(&canvas, 8, 10, NULL), ST_OK);
	pane = view_pane_all(&canvas);
	view_chart_stack(&pane, series, 3, &y);
	assert_int_equal(count_of(&canvas, '#'), 16);
	assert_int_equal(count_of(&canvas, '='), 24);
	assert_int_equal(count_of(&canvas, ':'), 20);
	assert_int_equal(view_char_at(&pane, 0, 9), '#');
	assert_int_equal(view_char_at(&pane, 7, 4), ' ');
	view_canvas_fini(&canvas);
}

static void test_a_cell_shows_two_series_where_colours_allow(void **state)
{
	const double a[] = {3}, b[] = {5};
	const struct report_axis y = {.low = 0, .high = 8};
	const struct view_series series[] = {{.values = a, .count = 1, .style = VIEW_SERIES_1},
					     {.values = b, .count = 1, .style = VIEW_SERIES_4}};
	struct view_canvas canvas = {.colours = 256};
	struct view_pane pane;

	(void)state;
	assert_int_equal(view_canvas_resize(&canvas, 1, 1, NULL), ST_OK);
	pane = view_pane_all(&canvas);
	view_chart_stack(&pane, series, 2, &y);
	assert_int_equal(canvas.cells[0].style, VIEW_SERIES_PAIR + 3);
	assert_int_equal(canvas.cells[0].character, 0x2583);
	canvas.colours = 8;
	view_chart_stack(&pane, series, 2, &y);
	assert_int_equal(canvas.cells[0].style, VIEW_SERIES_4);
	view_canvas_fini(&canvas);
}

static void test_bars_grow_with_their_part(void **state)
{
	(void)state;
	for (size_t mode = 0; mode < MODES; mode++) {
		struct view_canvas canvas = modes[mode];
		struct view_pane pane;
		int before = 0;

		assert_int_equal(view_canvas_resize(&canvas, 20, 1, NULL), ST_OK);
		pane = view_pane_all(&canvas);
		assert_int_equal(view_chart_bar(&pane, 0, 0, 20, VIEW_CURVE, 0), 0);
		assert_int_equal(view_chart_bar(&pane, 0, 0, 20, VIEW_CURVE, NAN), 0);
		for (int i = 1; i <= 1000; i++) {
			const int used = view_chart_bar(&pane, 0, 0, 20, VIEW_CURVE, i / 1000.0);

			assert_true(used >= before && used >= 1);
			before = used;
		}
		assert_int_equal(before, 20);
		view_canvas_fini(&canvas);
	}
}

/* Eighths of a cell, whatever the colours; whole cells in ASCII. */
static void test_bars_have_eighths_with_and_without_colours(void **state)
{
	(void)state;
	for (size_t mode = 0; mode < MODES; mode++)
		for (int eighths = 1; eighths <= 3 * 8; eighths++) {
			struct view_canvas canvas = modes[mode];
			int cells = canvas.ascii ? (int)lrint(eighths / 8.0) : (eighths + 7) / 8;
			struct view_pane pane;

			if (cells == 0)
				cells = 1;
			assert_int_equal(view_canvas_resize(&canvas, 3, 1, NULL), ST_OK);
			pane = view_pane_all(&canvas);
			assert_int_equal(
				view_chart_bar(&pane, 0, 0, 3, VIEW_BUBBLE, eighths / 24.0), cells);
			for (int i = 0; i < 3; i++) {
				const int rest = eighths - 8 * i;
				uint32_t character = ' ';

				if (canvas.ascii && i < cells)
					character = '#';
				else if (!canvas.ascii && rest > 0)
					character = rest >= 8 ? 0x2588 : 0x2590 - (uint32_t)rest;
				assert_int_equal(view_char_at(&pane, i, 0), character);
			}
			view_canvas_fini(&canvas);
		}
}

/* ---- axes ------------------------------------------------------------------------------------ */

static void test_ticks_are_few_and_rise_between_the_ends(void **state)
{
	double ticks[REPORT_AXIS_TICKS];

	(void)state;
	srand(7);
	for (int round = 0; round < 20000; round++) {
		const int most = 2 + rand() % 20, kind = rand() % 3;
		struct report_axis axis = {.quantity = (enum report_quantity)(1 + rand() % 7),
					   .logarithmic = kind == 2};
		int count;

		axis.low = ldexp(rand() % 2001 - 1000.0, rand() % 60 - 30);
		axis.high = axis.low + ldexp(1.0 + rand() % 1000, rand() % 60 - 30);
		if (kind == 2)
			axis.low = fabs(axis.low) + 1e-9;
		if (!(axis.high > axis.low))
			continue;
		count = report_axis_ticks(&axis, most, ticks);
		assert_in_range(count, 0, most);
		for (int i = 0; i < count; i++) {
			const double slack = (axis.high - axis.low) * 1e-6 + fabs(axis.low) * 1e-14;

			assert_true(ticks[i] >= axis.low - slack && ticks[i] <= axis.high + slack);
			assert_true(i == 0 || ticks[i] > ticks[i - 1]);
		}
	}
}

static void assert_ticks(struct report_axis axis, int most, const char *expected)
{
	double ticks[REPORT_AXIS_TICKS];
	const int count = report_axis_ticks(&axis, most, ticks);
	char text[FMT_SIZE], all[512] = "";

	for (int i = 0; i < count; i++) {
		strcat(all, i ? ", " : "");
		strcat(all, report_axis_text(&axis, ticks[i], text));
	}
	assert_string_equal(all, expected);
}

static void test_ticks_are_round(void **state)
{
	(void)state;
	assert_ticks((struct report_axis){.low = 0, .high = 97, .quantity = REPORT_COUNT}, 5,
		     "0, 20, 40, 60, 80");
	assert_ticks((struct report_axis){.low = 0, .high = 600000, .quantity = REPORT_BYTES}, 6,
		     "0 B, 128 kB, 256 kB, 384 kB, 512 kB");
	assert_ticks((struct report_axis){.low = 3, .high = 5, .quantity = REPORT_NUMBER}, 9,
		     "3, 4, 5");
	assert_ticks((struct report_axis){.low = -0.1, .high = 0.1, .quantity = REPORT_REAL}, 5,
		     "-0.1, -0.05, 0, 0.05, 0.1");
	assert_ticks((struct report_axis){.low = 0, .high = 1, .quantity = REPORT_FRACTION}, 3,
		     "0 %, 50 %, 100 %");
	assert_ticks((struct report_axis){.low = 0, .high = 5e6, .quantity = REPORT_NS}, 4,
		     "0 ns, 2 ms, 4 ms");
	assert_ticks((struct report_axis){.low = 0, .high = 4e7, .quantity = REPORT_CYCLES}, 5,
		     "0, 10 M, 20 M, 30 M, 40 M");
	assert_ticks(
		(struct report_axis){
			.low = 1e-3, .high = 1e4, .logarithmic = true, .quantity = REPORT_REAL},
		4, "0.001, 0.1, 10, 1000");
}

static void test_parts_of_an_axis_rise(void **state)
{
	struct report_axis axis = {.low = 1, .high = 1000, .logarithmic = true};

	(void)state;
	for (int log = 0; log < 2; log++) {
		double before = -1;

		axis.logarithmic = log != 0;
		for (double value = -10; value < 1100; value += 7) {
			const double part = report_axis_part(&axis, value);

			assert_true(part >= before && part >= 0 && part <= 1);
			before = part;
		}
	}
	assert_true(fabs(report_axis_part(&axis, 10) - 1.0 / 3) < 1e-12);
	assert_true(isnan(report_axis_part(&axis, NAN)));
	assert_true(report_axis_part(&axis, INFINITY) == 1);
	axis = (struct report_axis){.low = -1e308, .high = 1e308};
	assert_true(fabs(report_axis_part(&axis, 0) - 0.5) < 1e-12);
}

static void test_an_axis_takes_what_is_finite(void **state)
{
	const double none[] = {NAN, INFINITY}, one[] = {NAN, 4, INFINITY}, some[] = {-2, 0, 8};
	struct report_axis axis = {0};

	(void)state;
	report_axis_begin(&axis);
	report_axis_include(&axis, none, 2);
	assert_false(report_axis_finish(&axis));
	assert_true(axis.low == 0 && axis.high == 1);
	report_axis_begin(&axis);
	report_axis_include(&axis, one, 3);
	assert_true(report_axis_finish(&axis));
	assert_true(axis.low < 4 && axis.high > 4);
	report_axis_begin(&axis);
	axis.logarithmic = true;
	report_axis_include(&axis, some, 3);
	report_axis_include(&axis, one, 3);
	assert_true(report_axis_finish(&axis));
	assert_true(axis.low == 4 && axis.high == 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_charts_stay_inside_whatever_the_values),
		cmocka_unit_test(test_titles_are_whole_words),
		cmocka_unit_test(test_areas_never_overlap),
		cmocka_unit_test(test_a_spike_among_many_points_is_drawn),
		cmocka_unit_test(test_two_curves_can_be_told_apart_without_colours),
		cmocka_unit_test(test_curves_of_two_lengths_share_an_axis),
		cmocka_unit_test(test_stacks_give_each_series_its_share),
		cmocka_unit_test(test_a_cell_shows_two_series_where_colours_allow),
		cmocka_unit_test(test_bars_grow_with_their_part),
		cmocka_unit_test(test_bars_have_eighths_with_and_without_colours),
		cmocka_unit_test(test_ticks_are_few_and_rise_between_the_ends),
		cmocka_unit_test(test_ticks_are_round),
		cmocka_unit_test(test_parts_of_an_axis_rise),
		cmocka_unit_test(test_an_axis_takes_what_is_finite),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
