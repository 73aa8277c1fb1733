/*
 * The canvas and the charts: text is made harmless, nothing leaves its pane.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/str.h"
#include "support/support.h"
#include "viewer/draw/view_canvas.h"
#include "viewer/draw/view_chart.h"

static char *print(const struct view_canvas *canvas)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(view_canvas_print(canvas, 0, canvas->height, out, NULL), ST_OK);
	fclose(out);
	return text;
}

static void assert_drawn(bool ascii, int width, const char *text, const char *expected)
{
	struct view_canvas canvas = {.ascii = ascii};
	struct view_pane pane;
	char *printed;

	assert_int_equal(view_canvas_resize(&canvas, width, 1, NULL), ST_OK);
	pane = view_pane_all(&canvas);
	view_text(&pane, 0, 0, VIEW_NORMAL, text);
	printed = print(&canvas);
	assert_string_equal(printed, expected);
	free(printed);
	view_canvas_fini(&canvas);
}

static void test_hostile_text_becomes_harmless(void **state)
{
	(void)state;
	assert_drawn(false, 20, "a\x1b[31mb\x07\x7f", "a?[31mb??\n");
	assert_drawn(false, 20, "\xff\xfe\xc0\xaf x", "???? x\n");
}

static void test_characters_take_their_columns(void **state)
{
	(void)state;
	assert_drawn(false, 20, "\xe4\xb8\xad\xe6\x96\x87.", "\xe4\xb8\xad\xe6\x96\x87.\n");
	assert_int_equal(utf8_columns("\xe4\xb8\xad\xe6\x96\x87."), 5);
	/* A combining mark is dropped, a right-to-left override seen. */
	assert_drawn(false, 20, "e\xcc\x81\xe2\x80\xaeg", "e?g\n");
	assert_drawn(true, 20, "\xe4\xb8\xad-\xc3\xa9",
		     "?"
		     "?-?\n");
	/* What was cut says so in ASCII, too. */
	assert_drawn(true, 20, "a long na\xe2\x80\xa6", "a long na~\n");
}

static void test_folded_lines_fit_in_columns(void **state)
{
	static const char wide[] = "\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad\xe6\x96\x87";

	(void)state;
	assert_int_equal(view_text_fold("one two three", 8), 7);
	assert_int_equal(view_text_fold("one two three", 7), 7);
	assert_int_equal(view_text_fold("onetwothree", 8), 8);
	assert_int_equal(view_text_fold(wide, 8), 12);
	assert_int_equal(view_text_fold(wide, 7), 9);
	assert_int_equal(view_text_fold(wide, 4), 6);
	/* A combining mark takes no column. */
	assert_int_equal(view_text_fold("e\xcc\x81"
					"ab",
					2),
			 4);
	/* Every line has something, or folding would not end. */
	assert_int_equal(view_text_fold(wide, 1), 3);
}

static void test_cut_text_ends_in_an_ellipsis(void **state)
{
	(void)state;
	assert_drawn(false, 6, "abcdefgh", "abcde\xe2\x80\xa6\n");
	assert_drawn(true, 6, "abcdefgh", "abcde~\n");
	assert_drawn(true, 3, "abcdefgh", "ab~\n");
	assert_drawn(false, 8, "abcdefgh", "abcdefgh\n");
	assert_drawn(false, 6, "abcd\xe4\xb8\xad\xe6\x96\x87", "abcd\xe2\x80\xa6\n");
}

static void test_nothing_leaves_its_pane(void **state)
{
	struct view_canvas canvas = {0};
	struct view_pane pane;

	(void)state;
	assert_int_equal(view_canvas_resize(&canvas, 20, 6, NULL), ST_OK);
	pane = view_pane_at(&canvas, (struct view_rect){5, 2, 8, 2});
	for (int y = -3; y < 8; y++)
		for (int x = -9; x < 30; x++) {
			view_text(&pane, x, y, VIEW_BOLD, "abc\xe4\xb8\xad");
			view_glyphs(&pane, x, y, VIEW_BOLD, VIEW_GLYPH_FULL, 9);
			view_text_right(&pane, x, y, 7, VIEW_BOLD, "abcdefghijk");
		}
	for (int y = 0; y < 6; y++)
		for (int x = 0; x < 20; x++)
			if (x < 5 || x >= 13 || y < 2 || y >= 4)
				assert_int_equal(canvas.cells[y * 20 + x].character, ' ');
	view_canvas_fini(&canvas);
}

static void test_random_bytes_decode_to_printable_columns(void **state)
{
	char text[65];

	(void)state;
	srand(1);
	for (int round = 0; round < 20000; round++) {
		uint32_t character;
		int columns, bytes;
		const char *at = text;

		for (int i = 0; i < 64; i++)
			text[i] = (char)(1 + rand() % 255);
		text[64] = '\0';
		while ((bytes = utf8_decode(at, &character, &columns)) > 0) {
			assert_true(columns == 0 || character >= ' ');
			assert_false(character >= 0x7f && character < 0xa0);
			at += bytes;
		}
		assert_ptr_equal(at, text + 64);
	}
}

static void test_encode_and_decode_agree(void **state)
{
	static const uint32_t characters[] = {'a', 0xa0, 0x7ff, 0x800, 0x2588, 0xffee, 0x10000};

	(void)state;
	for (size_t i = 0; i < sizeof(characters) / sizeof(characters[0]); i++) {
		char bytes[5];
		uint32_t character;
		int columns;

		const int length = view_encode(characters[i], bytes);

		assert_int_equal(utf8_decode(bytes, &character, &columns), length);
		assert_int_equal(character, characters[i]);
	}
}

static void test_a_failed_resize_keeps_the_canvas(void **state)
{
	struct view_canvas canvas = {0};

	(void)state;
	assert_int_equal(view_canvas_resize(&canvas, 4, 4, NULL), ST_OK);
	support_fail_alloc(0);
	assert_int_equal(view_canvas_resize(&canvas, 400, 400, NULL), ST_NOMEM);
	support_fail_alloc(-1);
	assert_int_equal(canvas.width, 4);
	assert_int_equal(view_canvas_resize(&canvas, 0, 4, NULL), ST_LIMIT);
	view_canvas_fini(&canvas);
}

static void assert_spark(bool ascii, const double *values, int count, const char *expected)
{
	struct view_chart_point points[16];
	struct view_canvas canvas = {.ascii = ascii};
	struct view_pane pane;
	char *printed;

	for (int i = 0; i < count; i++)
		points[i] = (struct view_chart_point){values[i], values[i], values[i],
						      isinf(values[i])};
	assert_int_equal(view_canvas_resize(&canvas, 8, 1, NULL), ST_OK);
	pane = view_pane_all(&canvas);
	view_chart_spark(&pane, 0, 0, 8, VIEW_CURVE, points, count);
	printed = print(&canvas);
	assert_string_equal(printed, expected);
	free(printed);
	view_canvas_fini(&canvas);
}

static void test_sparklines_rise_with_their_values(void **state)
{
	const double rising[] = {0, 1, 2, 3, 4, 5, 6, 7};
	const double holes[] = {1, NAN, INFINITY, 2};

	(void)state;
	assert_spark(false, rising, 8,
		     "\xe2\x96\x81\xe2\x96\x82\xe2\x96\x83\xe2\x96\x84\xe2\x96\x85\xe2\x96\x86"
		     "\xe2\x96\x87\xe2\x96\x88\n");
	assert_spark(true, rising, 8, ".:-=+*%#\n");
	assert_spark(true, holes, 4, "..  !!##\n");
	assert_spark(true, rising, 0, "\n");
}

static void test_curves_stay_inside_whatever_the_values(void **state)
{
	const double values[] = {NAN, 1e308, -1e308, INFINITY, 0, -INFINITY, 5e-324, 3};
	struct view_chart_point points[8];
	struct view_canvas canvas = {0};
	double low, high;

	(void)state;
	for (int i = 0; i < 8; i++)
		points[i] = (struct view_chart_point){values[i], values[7 - i], values[i], false};
	assert_true(view_chart_range(points, 8, &low, &high));
	for (int w = 1; w < 30; w += 7)
		for (int h = 1; h < 10; h += 4) {
			struct view_pane pane;

			assert_int_equal(view_canvas_resize(&canvas, w, h, NULL), ST_OK);
			pane = view_pane_all(&canvas);
			view_chart_curve(&pane, VIEW_CURVE, points, 8, low, high);
			view_chart_curve(&pane, VIEW_CURVE, points, 1, 3, 4);
			view_chart_curve(&pane, VIEW_CURVE, points, 0, 3, 4);
		}
	view_canvas_fini(&canvas);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hostile_text_becomes_harmless),
		cmocka_unit_test(test_characters_take_their_columns),
		cmocka_unit_test(test_folded_lines_fit_in_columns),
		cmocka_unit_test(test_cut_text_ends_in_an_ellipsis),
		cmocka_unit_test(test_nothing_leaves_its_pane),
		cmocka_unit_test(test_random_bytes_decode_to_printable_columns),
		cmocka_unit_test(test_encode_and_decode_agree),
		cmocka_unit_test(test_a_failed_resize_keeps_the_canvas),
		cmocka_unit_test(test_sparklines_rise_with_their_values),
		cmocka_unit_test(test_curves_stay_inside_whatever_the_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
