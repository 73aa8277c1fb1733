/*
 * Styles: both themes can be read, and every role can be told without colours.
 */
#include <math.h>
#include <string.h>

#include "support/support.h"
#include "viewer/draw/view_canvas.h"

/* The relative luminance of WCAG 2. */
static double luminance(uint32_t rgb)
{
	static const double weights[] = {0.2126, 0.7152, 0.0722};
	double sum = 0;

	for (int i = 0; i < 3; i++) {
		const double part = (double)(rgb >> (16 - 8 * i) & 0xff) / 255;

		sum += weights[i] *
		       (part <= 0.04045 ? part / 12.92 : pow((part + 0.055) / 1.055, 2.4));
	}
	return sum;
}

static double contrast(uint32_t a, uint32_t b)
{
	const double x = luminance(a), y = luminance(b);

	return (fmax(x, y) + 0.05) / (fmin(x, y) + 0.05);
}

static bool is_shade(unsigned style)
{
	return style == VIEW_COOL || style == VIEW_WARM || style == VIEW_HOT;
}

static void check_theme(enum view_theme theme, uint32_t ground)
{
	for (unsigned style = 0; style < VIEW_STYLES; style++) {
		const struct view_paint paint = view_style_paint(style, theme, 256);
		const uint32_t text = view_palette(paint.text, theme, true);
		const uint32_t under =
			paint.ground < 0 ? ground : view_palette(paint.ground, theme, false);

		if (!is_shade(style) && contrast(text, under) < 4.5)
			fail_msg("style %u, theme %d: contrast %.2f", style, theme,
				 contrast(text, under));
	}
}

static void test_text_has_a_contrast_of_at_least_4_5(void **state)
{
	(void)state;
	check_theme(VIEW_LIGHT, 0xffffff);
	check_theme(VIEW_DARK, 0x000000);
	check_theme(VIEW_LIGHT, view_palette(-1, VIEW_LIGHT, false));
}

static void test_shades_move_away_from_the_ground(void **state)
{
	(void)state;
	for (int theme = VIEW_DARK; theme <= VIEW_LIGHT; theme++)
		for (unsigned i = 1; i < VIEW_HEAT_STEPS; i++) {
			const struct view_paint less = view_style_paint(
				VIEW_HEAT_HALF + i - 1, (enum view_theme)theme, 256);
			const struct view_paint more =
				view_style_paint(VIEW_HEAT_HALF + i, (enum view_theme)theme, 256);
			const double from =
				luminance(view_palette(less.text, (enum view_theme)theme, true));
			const double to =
				luminance(view_palette(more.text, (enum view_theme)theme, true));

			assert_true(theme == VIEW_DARK ? to > from : to < from);
		}
}

static void test_pairs_are_the_two_shades(void **state)
{
	(void)state;
	for (unsigned up = 0; up < VIEW_HEAT_STEPS; up++)
		for (unsigned low = 0; low < VIEW_HEAT_STEPS; low++) {
			const struct view_paint pair = view_style_paint(
				VIEW_HEAT_PAIR + up * VIEW_HEAT_STEPS + low, VIEW_DARK, 256);

			assert_int_equal(
				pair.text,
				view_style_paint(VIEW_HEAT_HALF + up, VIEW_DARK, 256).text);
			assert_int_equal(
				pair.ground,
				view_style_paint(VIEW_HEAT_HALF + low, VIEW_DARK, 256).text);
		}
}

static void test_few_colours_stay_among_them(void **state)
{
	static const int counts[] = {0, 8, 16, 256};

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		for (unsigned style = 0; style < VIEW_STYLES; style++)
			for (int theme = VIEW_DARK; theme <= VIEW_LIGHT; theme++) {
				const struct view_paint paint =
					view_style_paint(style, (enum view_theme)theme, counts[i]);

				assert_in_range(paint.text + 1, 0, counts[i]);
				assert_in_range(paint.ground + 1, 0, counts[i]);
				assert_non_null(paint.attributes);
			}
}

static void test_series_and_causes_have_their_own_glyphs(void **state)
{
	struct view_canvas canvas = {0};

	(void)state;
	for (int ascii = 0; ascii < 2; ascii++) {
		canvas.ascii = ascii != 0;
		for (unsigned a = VIEW_SERIES_1; a <= VIEW_SERIES_6; a++)
			for (unsigned b = VIEW_SERIES_1; b < a; b++)
				assert_int_not_equal(view_fill_char(&canvas, (enum view_style)a),
						     view_fill_char(&canvas, (enum view_style)b));
		for (unsigned a = VIEW_RAMP_UP; a <= VIEW_COMMUNICATION; a++)
			for (unsigned b = VIEW_RAMP_UP; b < a; b++)
				assert_int_not_equal(view_fill_char(&canvas, (enum view_style)a),
						     view_fill_char(&canvas, (enum view_style)b));
		assert_int_not_equal(view_fill_char(&canvas, VIEW_SOURCE),
				     view_fill_char(&canvas, VIEW_TARGET));
	}
}

/* The 256 colours of xterm: 16 by name, a cube of six levels, and greys. */
static void test_the_palette_is_the_one_of_xterm(void **state)
{
	(void)state;
	assert_int_equal(view_palette(0, VIEW_LIGHT, true), 0x000000);
	assert_int_equal(view_palette(7, VIEW_LIGHT, true), 0xc0c0c0);
	assert_int_equal(view_palette(8, VIEW_DARK, false), 0x808080);
	assert_int_equal(view_palette(15, VIEW_DARK, true), 0xffffff);
	for (int i = 0; i < 216; i++) {
		const int parts[] = {i / 36, i / 6 % 6, i % 6};
		uint32_t rgb = 0;

		for (int p = 0; p < 3; p++)
			rgb = rgb << 8 | (parts[p] ? 55U + 40U * (uint32_t)parts[p] : 0U);
		assert_int_equal(view_palette(16 + i, VIEW_DARK, true), rgb);
	}
	for (int i = 0; i < 24; i++)
		assert_int_equal(view_palette(232 + i, VIEW_DARK, true), 0x010101 * (8 + 10 * i));
	assert_true(view_palette(-1, VIEW_DARK, true) > view_palette(-1, VIEW_DARK, false));
	assert_true(view_palette(-1, VIEW_LIGHT, true) < view_palette(-1, VIEW_LIGHT, false));
}

/* The columns of VIEW_STYLE_MAP, and what has them. */
static const struct {
	enum view_theme theme;
	int colours, column;
} paints[] = {{VIEW_DARK, 256, 0}, {VIEW_DARK, 1000, 0}, {VIEW_LIGHT, 256, 2}, {VIEW_DARK, 255, 4},
	      {VIEW_DARK, 16, 4},  {VIEW_DARK, 15, 8},   {VIEW_DARK, 8, 8},    {VIEW_LIGHT, 255, 6},
	      {VIEW_LIGHT, 8, 6},  {VIEW_LIGHT, 16, 6}};

static void test_a_style_has_the_paint_of_its_theme_and_colours(void **state)
{
#define COLUMNS_OF(name, a, b, c, d, e, f, g, h, i, j, attributes, mono)                           \
	{{a, b, c, d, e, f, g, h, i, j}, attributes, mono},
	static const struct {
		short paint[10];
		const char *attributes, *mono;
	} styles[] = {VIEW_STYLE_MAP(COLUMNS_OF)};

	(void)state;
	for (unsigned s = 0; s < VIEW_STYLES; s++) {
		for (size_t p = 0; p < sizeof(paints) / sizeof(paints[0]); p++) {
			const struct view_paint got =
				view_style_paint(s, paints[p].theme, paints[p].colours);

			assert_int_equal(got.text, styles[s].paint[paints[p].column]);
			assert_int_equal(got.ground, styles[s].paint[paints[p].column + 1]);
			assert_string_equal(got.attributes, styles[s].attributes);
		}
		for (int colours = 0; colours < 8; colours += 7) {
			const struct view_paint got = view_style_paint(s, VIEW_DARK, colours);

			assert_int_equal(got.text, -1);
			assert_int_equal(got.ground, -1);
			assert_string_equal(got.attributes, styles[s].mono);
		}
	}
}

static void test_pairs_of_series_are_the_two(void **state)
{
	(void)state;
	for (unsigned over = 0; over < VIEW_SERIES; over++)
		for (unsigned under = 0; under < VIEW_SERIES; under++) {
			const struct view_paint pair = view_style_paint(
				VIEW_SERIES_PAIR + over * VIEW_SERIES + under, VIEW_LIGHT, 256);

			assert_int_equal(
				pair.text,
				view_style_paint(VIEW_SERIES_1 + over, VIEW_LIGHT, 256).text);
			assert_int_equal(
				pair.ground,
				view_style_paint(VIEW_SERIES_1 + under, VIEW_LIGHT, 256).text);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_has_a_contrast_of_at_least_4_5),
		cmocka_unit_test(test_shades_move_away_from_the_ground),
		cmocka_unit_test(test_pairs_are_the_two_shades),
		cmocka_unit_test(test_few_colours_stay_among_them),
		cmocka_unit_test(test_the_palette_is_the_one_of_xterm),
		cmocka_unit_test(test_a_style_has_the_paint_of_its_theme_and_colours),
		cmocka_unit_test(test_pairs_of_series_are_the_two),
		cmocka_unit_test(test_series_and_causes_have_their_own_glyphs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
