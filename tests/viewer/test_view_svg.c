/*
 * Pictures: well-formed whatever the canvas holds, the same bytes for the same canvas, and all of
 * it.
 */
#include <stdlib.h>
#include <string.h>

#include "support/support.h"
#include "viewer/draw/view_canvas.h"
#include "viewer/draw/view_chart.h"

static char *picture(const struct view_canvas *canvas, enum view_theme theme, const char *title)
{
	static char *text; /* written by the stream, which the compiler does not see */
	static size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(view_svg_write(canvas, 0, canvas->height, theme, title, out, NULL), ST_OK);
	fclose(out);
	return text;
}

static int count_of(const char *text, const char *word)
{
	int count = 0;

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
		count++;
	return count;
}

/* Every tag is closed, in order; nothing but text, tags and known entities. */
static void assert_well_formed(const char *text)
{
	static const char *const entities[] = {"&amp;", "&lt;", "&gt;"};
	int depth = 0;

	for (const char *at = text; *at; at++) {
		const char *end = *at == '<' ? strchr(at, '>') : NULL;
		bool known = *at != '&';

		for (size_t i = 0; i < 3 && !known; i++)
			known = strncmp(at, entities[i], strlen(entities[i])) == 0;
		assert_true(known);
		assert_true((unsigned char)*at >= ' ' || *at == '\n');
		if (*at != '<')
			continue;
		assert_non_null(end);
		assert_true(!memchr(at + 1, '<', (size_t)(end - at - 1)));
		if (at[1] == '/')
			depth--;
		else if (end[-1] != '/')
			depth++;
		assert_true(depth >= 0);
		at = end;
	}
	assert_int_equal(depth, 0);
}

static void test_hostile_text_is_escaped(void **state)
{
	struct view_canvas canvas = {.colours = 256};
	struct view_pane pane;
	char *text;

	(void)state;
	assert_int_equal(view_canvas_resize(&canvas, 60, 2, NULL), ST_OK);
	pane = view_pane_all(&canvas);
	view_text(&pane, 0, 0, VIEW_NORMAL, "</text><script>alert(1)</script>&amp;\x1b[0m");
	view_text(&pane, 0, 1, VIEW_BOLD, "\xe4\xb8\xad\xe6\x96\x87 \xef\xbf\xbe \"quoted\"");
	text = picture(&canvas, VIEW_DARK, "<b>&\x07");
	assert_well_formed(text);
	assert_null(strstr(text, "<script"));
	assert_non_null(strstr(text, "&lt;/text&gt;&lt;script&gt;alert(1)"));
	assert_non_null(strstr(text, "&amp;amp;"));
	assert_non_null(strstr(text, "<title>&lt;b&gt;&amp;"));
	assert_non_null(strstr(text, "\xe4\xb8\xad\xe6\x96\x87"));
	free(text);
	view_canvas_fini(&canvas);
}

static void fill_at_random(struct view_canvas *canvas)
{
	static const uint32_t characters[] = {' ',    ' ',    'a',    '<',    '&',    0x2500,
					      0x2502, 0x253c, 0x2580, 0x2583, 0x2588, 0x258d,
					      0x2592, 0x28ff, 0x2801, 0x25b6, 0x00e9};

	for (int i = 0; i < canvas->width * canvas->height; i++)
		canvas->cells[i] = (struct view_cell){
			characters[rand() % (int)(sizeof(characters) / sizeof(characters[0]))],
			(uint16_t)(rand() % VIEW_STYLES_ALL)};
}

static void test_any_canvas_is_well_formed_and_the_same_again(void **state)
{
	struct view_canvas canvas = {.colours = 256};

	(void)state;
	srand(3);
	for (int round = 0; round < 40; round++) {
		const enum view_theme theme = round % 2 ? VIEW_LIGHT : VIEW_DARK;
		char *once, *again;

		assert_int_equal(
			view_canvas_resize(&canvas, 1 + rand() % 300, 1 + rand() % 60, NULL),
			ST_OK);
		fill_at_random(&canvas);
		once = picture(&canvas, theme, "run");
		again = picture(&canvas, theme, "run");
		assert_well_formed(once);
		assert_string_equal(once, again);
		free(once);
		free(again);
	}
	view_canvas_fini(&canvas);
}

static void test_heat_maps_keep_both_colours_of_a_cell(void **state)
{
	struct view_canvas canvas = {.colours = 256};
	struct view_pane pane;
	char wanted[64], *text;

	(void)state;
	assert_int_equal(view_canvas_resize(&canvas, 1, 1, NULL), ST_OK);
	pane = view_pane_all(&canvas);
	view_heat(&pane, 0, 0, 1, 0);
	for (int theme = VIEW_DARK; theme <= VIEW_LIGHT; theme++) {
		const enum view_theme as = (enum view_theme)theme;
		const struct view_paint paint = view_style_paint(canvas.cells[0].style, as, 256);

		text = picture(&canvas, as, NULL);
		snprintf(wanted, sizeof(wanted), "height=\"16\" fill=\"#%06x\"",
			 view_palette(paint.ground, as, false));
		assert_int_equal(count_of(text, wanted), 1);
		snprintf(wanted, sizeof(wanted), "height=\"8\" fill=\"#%06x\"",
			 view_palette(paint.text, as, true));
		assert_int_equal(count_of(text, wanted), 1);
		free(text);
	}
	view_canvas_fini(&canvas);
}

static void test_neighbours_are_drawn_together(void **state)
{
	struct view_canvas canvas = {.colours = 256};
	struct view_pane pane;
	char *text;

	(void)state;
	assert_int_equal(view_canvas_resize(&canvas, 80, 2, NULL), ST_OK);
	pane = view_pane_all(&canvas);
	view_glyphs(&pane, 0, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, 80);
	view_text(&pane, 0, 1, VIEW_NORMAL, "two words   and more");
	text = picture(&canvas, VIEW_LIGHT, NULL);
	assert_int_equal(count_of(text, "<rect"), 2); /* the ground and the line */
	assert_int_equal(count_of(text, "<text"), 2);
	assert_non_null(strstr(text, "width=\"640\" height=\"1\""));
	assert_non_null(strstr(text, "textLength=\"72\""));
	free(text);
	view_canvas_fini(&canvas);
}

static void test_a_refused_output_is_an_error(void **state)
{
	struct view_canvas canvas = {.colours = 256};
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(full);
	assert_int_equal(view_canvas_resize(&canvas, 300, 100, NULL), ST_OK);
	for (int i = 0; i < 30000; i++)
		canvas.cells[i] = (struct view_cell){'x', (uint16_t)(i % VIEW_STYLES)};
	assert_int_equal(view_svg_write(&canvas, 0, 100, VIEW_DARK, NULL, full, NULL), ST_IO);
	fclose(full);
	view_canvas_fini(&canvas);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hostile_text_is_escaped),
		cmocka_unit_test(test_any_canvas_is_well_formed_and_the_same_again),
		cmocka_unit_test(test_heat_maps_keep_both_colours_of_a_cell),
		cmocka_unit_test(test_neighbours_are_drawn_together),
		cmocka_unit_test(test_a_refused_output_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
