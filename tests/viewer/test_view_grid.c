/*
 * The grid: orders, filters, searches, compares; never draws outside its pane nor over itself.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/mem.h"
#include "support/support.h"
#include "viewer/draw/view_grid.h"
#include "viewer/draw/view_table.h"

static const struct report_column columns[] = {
	{"name", REPORT_TEXT},      {"tile", REPORT_NUMBER},        {"cycles", REPORT_CYCLES},
	{"share", REPORT_FRACTION}, {"memory_bytes", REPORT_BYTES}, {"kind", REPORT_TEXT}};

static const struct view_grid_column looks[] = {
	{.name = "name", .importance = 9, .least = 8},
	{.name = "tile", .importance = 1},
	{.name = "cycles", .importance = 8, .bar = true},
	{.name = "share", .importance = 5},
	{.name = "memory_bytes", .title = "memory", .importance = 6},
	{.name = "kind", .importance = 0},
};

struct row {
	const char *name;
	int64_t tile, cycles;
	double share;
	int64_t bytes;
	const char *kind;
};

static const struct row some[] = {
	{"Dense_128/MatMul", 3, 4000, 0.5, 1024, "matmul"},
	{"conv/Forward", 1, 9000, 0.25, 4096, "conv"},
	{"Relu", 2, INT64_MIN, NAN, 512, "relu"},
	{"dense/Bias", 0, 4000, 0.125, INT64_MIN, NULL},
};

static struct report_table table_of(const struct row *rows, int64_t count)
{
	struct report_table table;

	assert_int_equal(
		view_table_new(&table, "rows", columns, (int)ARRAY_LEN(columns), count, NULL),
		ST_OK);
	for (int64_t i = 0; i < count; i++) {
		const struct report_cell cells[] = {
			view_text_cell(rows[i].name), view_int(rows[i].tile),
			view_int(rows[i].cycles),     view_real(rows[i].share),
			view_int(rows[i].bytes),      view_text_cell(rows[i].kind)};

		assert_int_equal(view_table_row(&table, i, cells, NULL), ST_OK);
	}
	return table;
}

static void set(struct view_grid *grid, const struct row *rows, int64_t count)
{
	struct report_table table = table_of(rows, count);

	assert_int_equal(
		view_grid_set(grid, NULL, &table, looks, (int)ARRAY_LEN(looks), "name", NULL),
		ST_OK);
	assert_null(table.cells);
}

static char *picture(const struct view_grid *grid, int width, int height, bool ascii, bool active)
{
	struct view_canvas canvas = {.ascii = ascii, .plain = true};
	struct view_pane pane;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(view_canvas_resize(&canvas, width, height, NULL), ST_OK);
	pane = view_pane_all(&canvas);
	view_grid_draw(grid, &pane, active);
	assert_int_equal(view_canvas_print(&canvas, 0, height, out, NULL), ST_OK);
	fclose(out);
	view_canvas_fini(&canvas);
	return text;
}

static void assert_picture(struct view_grid *grid, int width, int height, const char *expected)
{
	char *text;

	view_grid_layout(grid, (struct view_rect){0, 0, width, height});
	text = picture(grid, width, height, true, true);
	assert_string_equal(text, expected);
	free(text);
}

/* The names in their order: "conv/Forward Relu ". */
static void assert_order(const struct view_grid *grid, const char *expected)
{
	char text[256] = "";

	for (int64_t i = 0; i < grid->count; i++) {
		const char *name =
			grid->table.cells[grid->order[i] * grid->table.column_count].text;

		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%.1s", name);
	}
	assert_string_equal(text, expected);
}

static void assert_status(const struct view_grid *grid, const char *part)
{
	char text[256];

	view_grid_status(grid, text, sizeof(text));
	assert_contains(text, part);
}

static void test_it_looks_like_a_table(void **state)
{
	struct view_grid grid = {0};

	(void)state;
	set(&grid, some, 4);
	assert_picture(&grid, 64, 6,
		       " name             tile cycles                share memory\n"
		       ">Dense_128/MatMul    3  4,000 #####        50.00 %   1 kB\n"
		       " conv/Forward        1  9,000 ############ 25.00 %   4 kB\n"
		       " Relu                2      -                    -  512 B\n"
		       " dense/Bias          0  4,000 #####        12.50 %      -\n"
		       "\n");
	view_grid_fini(&grid);
}

static void test_what_matters_least_goes_first_and_comes_back_sideways(void **state)
{
	struct view_grid grid = {0};

	(void)state;
	set(&grid, some, 4);
	assert_picture(&grid, 40, 4,
		       " name       tile cycles   share memory\n"
		       ">Dense_128~    3  4,000 50.00 %   1 kB #\n"
		       " conv/Forw~    1  9,000 25.00 %   4 kB #\n"
		       " Relu          2      -       -  512 B |\n");
	assert_picture(&grid, 28, 3,
		       " name        cycles memory >\n"
		       ">Dense_128/~  4,000   1 kB #\n"
		       " conv/Forwa~  9,000   4 kB |\n");
	assert_int_equal(view_grid_request(&grid, VIEW_RIGHT_REQUEST), VIEW_DRAW);
	view_grid_request(&grid, VIEW_RIGHT_REQUEST);
	view_grid_request(&grid, VIEW_RIGHT_REQUEST);
	assert_false(grid.after);
	assert_true(grid.before);
	assert_int_equal(grid.places[0].column, 0);
	assert_int_equal(grid.places[grid.place_count - 1].column, 3);
	for (int i = 0; i < 5; i++)
		view_grid_request(&grid, VIEW_LEFT_REQUEST);
	assert_false(grid.before);
	view_grid_fini(&grid);
}

static void test_orders_are_stable_and_empty_cells_are_last(void **state)
{
	struct view_grid grid = {0};

	(void)state;
	set(&grid, some, 4);
	view_grid_layout(&grid, (struct view_rect){0, 0, 80, 6});
	view_grid_sort(&grid, "cycles", false);
	assert_order(&grid, "cDdR");
	view_grid_sort(&grid, "cycles", true);
	assert_order(&grid, "DdcR");
	view_grid_sort(&grid, "name", false);
	assert_order(&grid, "cdDR");
	view_grid_sort(&grid, "name", true);
	assert_order(&grid, "RDdc");
	/* An identifier from the least. */
	view_grid_sort(&grid, "tile", false);
	assert_order(&grid, "dcRD");
	view_grid_sort(&grid, "share", false);
	assert_order(&grid, "DcdR");
	view_grid_sort(&grid, "kind", true);
	assert_order(&grid, "RDcd");
	view_grid_sort(&grid, "", true);
	assert_order(&grid, "dRcD");
	view_grid_sort(&grid, "no such column", false);
	assert_order(&grid, "DcRd");
	view_grid_fini(&grid);
}

static void test_keys_walk_orders_and_say_so(void **state)
{
	struct view_grid grid = {0};

	(void)state;
	set(&grid, some, 4);
	view_grid_layout(&grid, (struct view_rect){0, 0, 80, 6});
	view_grid_request(&grid, VIEW_SORT_NEXT_REQUEST);
	assert_order(&grid, "cdDR");
	assert_status(&grid, "row 1 of 4, +1 column: |, by name");
	view_grid_request(&grid, VIEW_SORT_BACK_REQUEST);
	assert_order(&grid, "DcRd");
	/* Backwards: the hidden kind is skipped. */
	view_grid_request(&grid, VIEW_SORT_BACK_REQUEST);
	assert_status(&grid, "by memory");
	view_grid_request(&grid, VIEW_REVERSE_REQUEST);
	assert_status(&grid, "row 1 of 4, +1 column: |, by memory reversed");
	assert_order(&grid, "RDcd");
	view_grid_fini(&grid);
}

/* Choose columns: so many are on the screen then, and this is said. */
static void assert_columns(struct view_grid *grid, int count, const char *said)
{
	grid->context->message[0] = '\0';
	view_grid_request(grid, VIEW_COLUMNS_REQUEST);
	assert_int_equal(grid->place_count, count);
	assert_contains(grid->context->message, said);
}

static void test_columns_are_hidden_and_all_come_back(void **state)
{
	struct view_context context = {0};
	struct view_grid grid = {0};

	(void)state;
	set(&grid, some, 4);
	grid.context = &context;
	view_grid_layout(&grid, (struct view_rect){0, 0, 120, 6});
	assert_int_equal(grid.place_count, 5);
	assert_status(&grid, "+1 column: |");
	view_grid_sort(&grid, "share", false);
	assert_columns(&grid, 6, "all columns are shown; | again: fewer");
	assert_null(strchr(context.message, '+'));
	assert_columns(&grid, 5, "share is hidden");
	view_grid_sort(&grid, "tile", false);
	assert_columns(&grid, 4, "tile is hidden");
	assert_status(&grid, "+2 columns: |");
	assert_order(&grid, "dcRD");
	/* The order's column is hidden by now: what is usual comes back. */
	assert_columns(&grid, 5, "the usual columns again");
	view_grid_fini(&grid);
}

static void test_what_is_off_the_screen_and_how_to_see_it_is_said(void **state)
{
	struct view_context context = {0};
	struct view_grid grid = {0};

	(void)state;
	set(&grid, some, 4);
	grid.context = &context;
	view_grid_layout(&grid, (struct view_rect){0, 0, 28, 6});
	assert_status(&grid, "row 1 of 4, +2 columns: l, +1: |");
	view_grid_request(&grid, VIEW_RIGHT_REQUEST);
	assert_status(&grid, ": h l, +1: |");
	assert_columns(&grid, 3, "all columns are shown: l and h go sideways");
	assert_status(&grid, "row 1 of 4, +3 columns: l");
	view_grid_fini(&grid);
}

static void test_where_no_column_is_hidden_it_says_so(void **state)
{
	struct view_context context = {0};
	struct view_grid grid = {0};
	struct report_table table = table_of(some, 4);

	(void)state;
	assert_int_equal(view_grid_set(&grid, &context, &table, NULL, 0, NULL, NULL), ST_OK);
	view_grid_layout(&grid, (struct view_rect){0, 0, 120, 6});
	assert_columns(&grid, 6, "all columns are shown; > orders by one, and | hides it");
	view_grid_fini(&grid);
}

static void test_filters_are_expressions_over_what_is_shown(void **state)
{
	struct view_grid grid = {0};

	(void)state;
	set(&grid, some, 4);
	view_grid_layout(&grid, (struct view_rect){0, 0, 80, 6});
	view_grid_filter(&grid, "^(dense|conv)");
	assert_order(&grid, "Dcd");
	assert_status(&grid, "row 1 of 3 (4 in all), filter ^(dense|conv)");
	view_grid_filter(&grid, "!dense");
	assert_order(&grid, "cR");
	view_grid_filter(&grid, "4,000");
	assert_order(&grid, "Dd");
	/* The kind is not shown. */
	view_grid_filter(&grid, "matmul$");
	assert_order(&grid, "D");
	view_grid_filter(&grid, "^matmul$");
	assert_order(&grid, "");
	view_grid_filter(&grid, "!");
	assert_order(&grid, "DcRd");
	view_grid_filter(&grid, "R");
	view_grid_filter(&grid, "(unclosed");
	assert_contains(grid.trouble, "(");
	assert_status(&grid, "filter: ");
	assert_string_equal(grid.filter, "R");
	assert_int_equal(view_grid_request(&grid, VIEW_BACK_REQUEST), VIEW_DRAW);
	assert_order(&grid, "DcRd");
	assert_string_equal(grid.trouble, "");
	assert_int_equal(view_grid_request(&grid, VIEW_BACK_REQUEST), VIEW_UNHANDLED);
	view_grid_fini(&grid);
}

/* The hit that a search comes to, of how many, and the row it is on. */
static void assert_search(struct view_grid *grid, const char *text, bool forward, int at,
			  int64_t hit, int64_t hits)
{
	struct view_context context = {0};

	assert_int_equal(view_grid_search(grid, &context, text, forward), hits > 0);
	assert_int_equal(grid->at, at);
	assert_int_equal(context.hit, hit);
	assert_int_equal(context.hits, hits);
}

static void test_searching_goes_around_the_end_and_counts(void **state)
{
	struct view_grid grid = {0};

	(void)state;
	set(&grid, some, 4);
	view_grid_layout(&grid, (struct view_rect){0, 0, 80, 6});
	assert_search(&grid, "DENSE", true, 3, 2, 2);
	assert_search(&grid, "dense", true, 0, 1, 2);
	assert_search(&grid, "dense", false, 3, 2, 2);
	assert_search(&grid, "dense", false, 0, 1, 2);
	assert_search(&grid, "9,000", false, 1, 1, 1);
	assert_search(&grid, "nowhere", true, 1, 0, 0);
	view_grid_fini(&grid);
}

static void test_new_rows_keep_cursor_order_filter_and_columns(void **state)
{
	static const struct row news[] = {
		{"Zero", 9, 1, 0.5, 7, NULL},
		{"Relu", 2, INT64_MIN, NAN, 512, "relu"},
		{"conv/Forward", 1, 1, 0.25, 4096, "conv"},
		{"Dense_128/MatMul", 3, 4000, 0.5, 1024, "matmul"},
	};
	struct view_grid grid = {0};

	(void)state;
	set(&grid, some, 4);
	view_grid_layout(&grid, (struct view_rect){0, 0, 80, 6});
	view_grid_sort(&grid, "share", false);
	view_grid_request(&grid, VIEW_COLUMNS_REQUEST);
	view_grid_request(&grid, VIEW_COLUMNS_REQUEST);
	view_grid_sort(&grid, "cycles", false);
	view_grid_filter(&grid, "!relu");
	assert_order(&grid, "cDd");
	assert_true(view_grid_go(&grid, "name", "Dense_128/MatMul", 0));
	set(&grid, news, 4);
	view_grid_layout(&grid, (struct view_rect){0, 0, 80, 6});
	assert_order(&grid, "DZc");
	assert_int_equal(grid.at, 0);
	assert_int_equal(grid.place_count, 5);
	/* The cursor stays on its row wherever that is now, not where it was. */
	set(&grid, some, 4);
	view_grid_layout(&grid, (struct view_rect){0, 0, 80, 6});
	assert_order(&grid, "cDd");
	assert_int_equal(grid.at, 1);
	/* What a filter hides is found all the same. */
	assert_true(view_grid_go(&grid, "tile", NULL, 2));
	assert_string_equal(view_grid_cell(&grid, "name")->text, "Relu");
	assert_string_equal(grid.filter, "");
	assert_false(view_grid_go(&grid, "tile", NULL, 77));
	assert_false(view_grid_go(&grid, "no column", NULL, 2));
	assert_null(view_grid_cell(&grid, "no column"));
	view_grid_fini(&grid);
}

static void test_clicks_choose_rows_and_orders(void **state)
{
	struct view_grid grid = {0};

	(void)state;
	set(&grid, some, 4);
	view_grid_layout(&grid, (struct view_rect){0, 0, 64, 6});
	assert_int_equal(view_grid_click(&grid, 5, 3), VIEW_DRAW);
	assert_int_equal(grid.at, 2);
	assert_int_equal(view_grid_click(&grid, 5, 5), VIEW_UNHANDLED);
	assert_int_equal(view_grid_click(&grid, 30, 0), VIEW_DRAW);
	assert_order(&grid, "cDdR");
	view_grid_click(&grid, 30, 0);
	assert_order(&grid, "DdcR");
	view_grid_fini(&grid);
}

static void test_the_rows_are_handed_out_as_shown(void **state)
{
	struct view_grid grid = {0};
	struct report_table out;

	(void)state;
	set(&grid, some, 4);
	view_grid_sort(&grid, "name", true);
	view_grid_filter(&grid, "!conv");
	assert_int_equal(view_grid_table(&grid, &out, NULL), ST_OK);
	view_grid_fini(&grid);
	assert_int_equal(out.row_count, 3);
	assert_int_equal(out.column_count, 6);
	assert_string_equal(out.cells[0].text, "Relu");
	assert_string_equal(out.columns[5].name, "kind");
	assert_int_equal(out.cells[1 * 6 + 1].integer, 3);
	report_table_free(&out);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void compare(struct report_table *out, const struct row *a, int64_t a_count,
		    const struct row *b, int64_t b_count, const char *keys)
{
	struct report_table source = table_of(a, a_count), target = table_of(b, b_count);

	assert_int_equal(view_grid_compare(out, NULL, &source, &target, keys, NULL), ST_OK);
	report_table_free(&source);
	report_table_free(&target);
}

static const struct row other[] = {
	{"Relu", 2, 10, NAN, 512, "relu"},
	{"new", 8, 5, 0.5, 1, "matmul"},
	{"Dense_128/MatMul", 3, 1000, 0.5, 2048, "matmul"},
	{"dense/Bias", 0, 4000, 0.125, INT64_MIN, NULL},
};

/* A grid of two reports. */
static void set_compared(struct view_grid *grid, const char *keys)
{
	struct report_table table;

	compare(&table, some, 4, other, 4, keys);
	assert_int_equal(
		view_grid_set(grid, NULL, &table, looks, (int)ARRAY_LEN(looks), keys, NULL), ST_OK);
}

static void test_two_reports_stand_side_by_side(void **state)
{
	struct view_grid grid = {0};
	struct report_table table;

	(void)state;
	compare(&table, some, 4, other, 4, "name,tile");
	/* Two keys, three numbers of three, kind, verdict. */
	assert_int_equal(table.column_count, 2 + 9 + 1 + 1);
	assert_int_equal(table.row_count, 5);
	assert_string_equal(table.columns[4].name, "cycles_diff");
	assert_int_equal(table.cells[4].integer, -3000);
	assert_string_equal(table.cells[4 * 13].text, "new");
	assert_string_equal(table.cells[4 * 13 + 11].text, "matmul");
	assert_string_equal(table.cells[4 * 13 + 12].text, "only target");
	assert_int_equal(table.cells[4 * 13 + 4].type, PROF_NULL);
	assert_int_equal(
		view_grid_set(&grid, NULL, &table, looks, (int)ARRAY_LEN(looks), "name,tile", NULL),
		ST_OK);
	assert_true(grid.compared);
	assert_picture(
		&grid, 80, 7,
		" name         tile cycles S       Target             Diff memory S Target  Diff>\n"
		">Den~8/MatMul    3    4,000 ##     1,000 -3,000 (75.00 %)     1 kB   2 kB +1 kB\n"
		"-conv/Forward    1    9,000 #####      -                -     4 kB      -     -\n"
		" Relu            2        -           10                -    512 B  512 B   0 B\n"
		" dense/Bias      0    4,000 ##     4,000                0        -      -     -\n"
		"+new             8        -            5                -        -    1 B     -\n"
		"\n");
	view_grid_fini(&grid);
}

/* By the first time that differs, else by whether anything does. */
static void test_each_row_has_a_verdict(void **state)
{
	static const struct row a[] = {
		{"faster", 1, 2000, 0.5, 10, "x"},  {"slower", 1, 1000, 0.5, 10, "x"},
		{"changed", 1, 1000, 0.5, 10, "x"}, {"changed", 2, 1000, 0.5, 10, "x"},
		{"same", 1, 1000, 0.5, 10, "x"},    {"equal", 1, 1000, 0.5, 10, "x"},
		{"only source", 1, 5, 0.5, 1, "x"}};
	static const struct row b[] = {
		{"faster", 1, 1000, 0.6, 20, "y"},      {"slower", 1, 1001, 0.5, 10, "x"},
		{"changed", 1, 1000, 0.5, 11, "x"},     {"changed", 2, 1000, 0.5, 10, "y"},
		{"same", 1, 1000, 0.50000001, 10, "x"}, {"equal", 1, 1000, 0.5, 10, "x"},
		{"only target", 1, 5, 0.5, 1, "x"}};
	struct view_grid grid = {0};
	struct report_table table;

	(void)state;
	compare(&table, a, (int)ARRAY_LEN(a), b, (int)ARRAY_LEN(b), "name,tile");
	assert_int_equal(table.row_count, 8);
	for (int64_t row = 0; row < table.row_count; row++) {
		const struct report_cell *cells = &table.cells[row * table.column_count];

		assert_string_equal(cells[table.column_count - 1].text, cells[0].text);
	}
	/* Sorted and filtered by it as by any text. */
	assert_int_equal(view_grid_set(&grid, NULL, &table, NULL, 0, "name,tile", NULL), ST_OK);
	assert_true(view_grid_sort(&grid, VIEW_GRID_VERDICT, false));
	assert_string_equal(view_grid_cell(&grid, "name")->text, "changed");
	view_grid_filter(&grid, "^slower$");
	assert_int_equal(grid.count, 1);
	view_grid_fini(&grid);
}

/* A moment that is later is no slower; a row that others have moved is the same. */
static void test_moments_and_positions_are_no_durations(void **state)
{
	const struct row a = {"changed", 1, 1000, 0.5, 10, "x"},
			 b = {"changed", 2, 2000, 0.5, 10, "x"};
	struct report_table source = table_of(&a, 1), target = table_of(&b, 1), table;

	(void)state;
	source.columns[1].name = target.columns[1].name = "position";
	source.columns[2].name = target.columns[2].name = "at_cycles";
	assert_int_equal(view_grid_compare(&table, NULL, &source, &target, "name", NULL), ST_OK);
	assert_string_equal(table.cells[table.column_count - 1].text, "changed");
	report_table_free(&table);
	target.cells[2].integer = source.cells[2].integer;
	assert_int_equal(view_grid_compare(&table, NULL, &source, &target, "name", NULL), ST_OK);
	assert_string_equal(table.cells[table.column_count - 1].text, "equal");
	report_table_free(&table);
	report_table_free(&source);
	report_table_free(&target);
}

static void test_values_have_room_before_names(void **state)
{
	struct view_grid grid = {0};

	(void)state;
	set_compared(&grid, "name");
	assert_picture(&grid, 36, 3,
		       " name       cycles S Target   Diff >\n"
		       ">Dense_128~    4,000  1,000 -3,000 #\n"
		       "-conv/Forw~    9,000      -      - |\n");
	/* A number is whole or not there. */
	assert_picture(&grid, 28, 3,
		       " name      cycles S Target >\n"
		       ">Dense_12~    4,000  1,000 #\n"
		       "-conv/For~    9,000      - |\n");
	view_grid_fini(&grid);
}

/* A name is cut to eight columns where the values then fit, and not beyond that. */
static void test_names_are_cut_for_values(void **state)
{
	struct view_grid_column wider[ARRAY_LEN(looks)];
	struct view_grid grid = {0};
	struct report_table table;

	(void)state;
	memcpy(wider, looks, sizeof(wider));
	wider[0].least = 12;
	compare(&table, some, 4, other, 4, "name");
	assert_int_equal(
		view_grid_set(&grid, NULL, &table, wider, (int)ARRAY_LEN(wider), "name", NULL),
		ST_OK);
	assert_picture(&grid, 34, 3,
		       " name     cycles S Target   Diff >\n"
		       ">Dense_1~    4,000  1,000 -3,000 #\n"
		       "-conv/Fo~    9,000      -      - |\n");
	assert_picture(&grid, 33, 3,
		       " name           cycles S Target >\n"
		       ">Den~128/MatMul    4,000  1,000 #\n"
		       "-conv/Forward      9,000      - |\n");
	view_grid_fini(&grid);
}

/* As narrow as it may be: what orders the rows comes first, and Right leads to its Diff. */
static void test_narrow_screens_reach_target_and_diff(void **state)
{
	struct view_grid grid = {0};

	(void)state;
	set_compared(&grid, "name,tile");
	view_grid_sort(&grid, "memory_bytes", false);
	assert_picture(&grid, 28, 7,
		       " name      memory Sv Target>\n"
		       ">conv/For~      4 kB      -\n"
		       " Dense_12~      1 kB   2 kB\n"
		       " Relu          512 B  512 B\n"
		       " dense/Bi~         -      -\n"
		       "+new               -    1 B\n"
		       "\n");
	view_grid_request(&grid, VIEW_RIGHT_REQUEST);
	assert_picture(&grid, 28, 6,
		       "<name     Target  Diff tile>\n"
		       ">conv/Fo~      -     -    1\n"
		       " Dense_1~   2 kB +1 kB    3\n"
		       " Relu      512 B   0 B    2\n"
		       " dense/B~      -     -    0\n"
		       "+new         1 B     -    8\n");
	/* An order by what is off the screen shows it. */
	view_grid_sort(&grid, "cycles", false);
	view_grid_layout(&grid, (struct view_rect){0, 0, 28, 6});
	for (int i = 0; i < 2; i++)
		view_grid_request(&grid, VIEW_SORT_NEXT_REQUEST);
	assert_picture(&grid, 28, 6,
		       "<name         Target  Diffv>\n"
		       ">dense/Bias    4,000      0\n"
		       " Den~8/MatMul  1,000 -3,000\n"
		       "-conv/Forward      -      -\n"
		       " Relu             10      -\n"
		       "+new               5      -\n");
	view_grid_fini(&grid);
}

static void test_only_what_differs(void **state)
{
	struct view_grid grid = {.differ = true};
	struct report_table table;

	(void)state;
	compare(&table, some, 4, other, 4, "name,tile");
	assert_int_equal(
		view_grid_set(&grid, NULL, &table, looks, (int)ARRAY_LEN(looks), "name,tile", NULL),
		ST_OK);
	assert_order(&grid, "DcRn");
	compare(&table, some, 4, some, 4, "name,tile");
	assert_int_equal(
		view_grid_set(&grid, NULL, &table, looks, (int)ARRAY_LEN(looks), "name,tile", NULL),
		ST_OK);
	assert_int_equal(grid.count, 0);
	view_grid_fini(&grid);
}

static void test_equal_keys_pair_up_in_order(void **state)
{
	enum {
		ROWS = 60000
	};
	struct row *a = calloc(ROWS, sizeof(*a)), *b = calloc(ROWS, sizeof(*b));
	struct report_table table;

	(void)state;
	for (int i = 0; i < ROWS; i++) {
		a[i] = (struct row){"same", 1, i, 0, 0, "x"};
		b[i] = (struct row){i < ROWS - 2 ? "same" : "less", 1, i + 1, 0, 0, "x"};
	}
	compare(&table, a, ROWS, b, ROWS, "name");
	assert_int_equal(table.row_count, ROWS + 2);
	for (int i = 0; i < ROWS - 2; i++)
		assert_int_equal(table.cells[i * table.column_count + 4].integer, 1);
	report_table_free(&table);
	free(a);
	free(b);
}

static void test_texts_that_differ_have_two_columns(void **state)
{
	struct row a[4], b[4];
	struct report_table table;

	(void)state;
	memcpy(a, some, sizeof(a));
	memcpy(b, some, sizeof(b));
	b[1].kind = "other";
	compare(&table, a, 4, b, 4, "name");
	assert_int_equal(table.column_count, 1 + 1 + 9 + 2 + 1);
	assert_string_equal(table.columns[12].name, "kind_target");
	report_table_free(&table);
	/* The identifier, too. */
	b[0].tile = 99;
	compare(&table, a, 4, b, 4, "name");
	assert_string_equal(table.columns[2].name, "tile_target");
	report_table_free(&table);
}

/* ---- any size, any rows ---------------------------------------------------------------------- */

static void assert_places(const struct view_grid *grid, int width)
{
	int x = 1;

	for (int i = 0; i < grid->place_count; i++) {
		const struct view_grid_place *place = &grid->places[i];

		assert_true(place->x >= x);
		assert_true(place->width > 0);
		x = place->x + place->width + 1;
		assert_true(x <= width);
	}
}

/* In the middle of a larger canvas: what is around it must not be touched. */
static void assert_inside(const struct view_grid *grid, struct view_canvas *canvas, int width,
			  int height, bool ascii)
{
	struct view_pane pane;

	canvas->ascii = ascii;
	assert_int_equal(view_canvas_resize(canvas, width + 4, height + 4, NULL), ST_OK);
	pane = view_pane_at(canvas, (struct view_rect){2, 2, width, height});
	view_grid_draw(grid, &pane, true);
	for (int y = 0; y < height + 4; y++)
		for (int x = 0; x < width + 4; x++) {
			const struct view_cell *cell = &canvas->cells[y * (width + 4) + x];

			if (x < 2 || y < 2 || x >= width + 2 || y >= height + 2)
				assert_true(cell->character == ' ' && cell->style == VIEW_NORMAL);
			else if (ascii)
				assert_true(cell->character >= ' ' && cell->character <= 126);
		}
}

static void each_size(struct view_grid *grid)
{
	static const enum view_request requests[] = {VIEW_RIGHT_REQUEST, VIEW_SORT_NEXT_REQUEST,
						     VIEW_END_REQUEST,   VIEW_COLUMNS_REQUEST,
						     VIEW_LEFT_REQUEST,  VIEW_PAGE_UP_REQUEST,
						     VIEW_DOWN_REQUEST,  VIEW_REVERSE_REQUEST};
	struct view_canvas canvas = {0};
	int turn = 0;

	for (int width = 1; width <= 300; width += width < 60 ? 1 : 7)
		for (int height = 1; height <= 60; height += height < 8 ? 1 : 13) {
			view_grid_layout(grid, (struct view_rect){0, 0, width, height});
			assert_places(grid, width);
			assert_inside(grid, &canvas, width, height, turn % 2 == 0);
			view_grid_request(grid, requests[turn++ % (int)ARRAY_LEN(requests)]);
			assert_places(grid, width);
			assert_inside(grid, &canvas, width, height, turn % 2 == 0);
			assert_true(grid->at >= grid->scroll);
			assert_true(height < 2 || grid->at < grid->scroll + height - 1);
		}
	view_canvas_fini(&canvas);
}

static void test_nothing_leaves_the_pane_at_any_size(void **state)
{
	struct row rows[40];
	struct view_grid grid = {0};
	struct report_table table;

	(void)state;
	for (int i = 0; i < 40; i++)
		rows[i] = some[i % 4];
	rows[7].name = "\x1b[31mred\x1b[0m \xe4\xb8\xad\xe6\x96\x87\xff and a name that goes on "
		       "and on and on";
	rows[8].cycles = INT64_MAX;
	each_size(&grid); /* nothing in it yet */
	set(&grid, rows, 40);
	each_size(&grid);
	compare(&table, rows, 40, other, 4, "name,tile");
	assert_int_equal(
		view_grid_set(&grid, NULL, &table, looks, (int)ARRAY_LEN(looks), "name,tile", NULL),
		ST_OK);
	each_size(&grid);
	compare(&table, rows, 0, other, 4, "name,tile");
	assert_int_equal(view_grid_set(&grid, NULL, &table, NULL, 0, NULL, NULL), ST_OK);
	each_size(&grid);
	set(&grid, rows, 0);
	each_size(&grid);
	view_grid_fini(&grid);
}

static void test_many_rows_are_ordered_and_filtered(void **state)
{
	enum {
		ROWS = 200000
	};
	struct row *rows = calloc(ROWS, sizeof(*rows));
	struct view_grid grid = {0};
	uint32_t random = 1;

	(void)state;
	for (int i = 0; i < ROWS; i++) {
		random = random * 1664525u + 1013904223u;
		rows[i] = (struct row){some[random >> 30].name, i, random >> 20, 0.5, i, NULL};
	}
	set(&grid, rows, ROWS);
	view_grid_layout(&grid, (struct view_rect){0, 0, 80, 24});
	for (int reverse = 0; reverse < 2; reverse++) {
		view_grid_sort(&grid, "cycles", reverse);
		assert_int_equal(grid.count, ROWS);
		for (int64_t i = 1; i < ROWS; i++) {
			const struct row *a = &rows[grid.order[i - 1]], *b = &rows[grid.order[i]];

			assert_true(a->cycles == b->cycles ? grid.order[i - 1] < grid.order[i]
				    : reverse              ? a->cycles < b->cycles
							   : a->cycles > b->cycles);
		}
	}
	view_grid_filter(&grid, "^conv");
	assert_true(grid.count > ROWS / 5 && grid.count < ROWS / 3);
	view_grid_request(&grid, VIEW_END_REQUEST);
	assert_int_equal(grid.at, grid.count - 1);
	assert_int_equal(grid.scroll, grid.count - 23);
	view_grid_fini(&grid);
	free(rows);
}

/* As a plain comparison has it, whatever texts have in common. */
static void test_texts_of_any_length_are_ordered(void **state)
{
	enum {
		ROWS = 3000,
		LONG = 300
	};
	struct row *rows = calloc(ROWS, sizeof(*rows));
	char(*names)[LONG + 32] = calloc(ROWS, sizeof(*names));
	struct view_grid grid = {0};
	uint32_t random = 7;

	(void)state;
	for (int i = 0; i < ROWS; i++) {
		random = random * 1664525u + 1013904223u;
		memset(names[i], i % 2 ? 'x' : 'X', (random >> 20) % 5 ? 3 : LONG);
		snprintf(names[i] + strlen(names[i]), 32, "/%u%s", random >> 26,
			 (random >> 8) % 3 ? "/Dense_128/MatMul" : "");
		rows[i] = (struct row){names[i], i, 0, 0, 0, NULL};
	}
	set(&grid, rows, ROWS);
	for (int reverse = 0; reverse < 2; reverse++) {
		view_grid_sort(&grid, "name", reverse);
		for (int64_t i = 1; i < ROWS; i++) {
			const int64_t a = grid.order[i - 1], b = grid.order[i];
			const int order = strcasecmp(names[a], names[b]);

			assert_true(order == 0 ? a < b : reverse ? order > 0 : order < 0);
		}
	}
	view_grid_fini(&grid);
	free(names);
	free(rows);
}

static void test_what_is_cut_or_off_the_screen_is_shown_whole(void **state)
{
	struct view_canvas canvas = {.ascii = true, .plain = true};
	struct view_grid grid = {0};
	struct view_pane pane;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	set(&grid, some, 4);
	assert_int_equal(view_canvas_resize(&canvas, 28, 3, NULL), ST_OK);
	pane = view_pane_all(&canvas);
	view_grid_layout(&grid, (struct view_rect){0, 0, 100, 6});
	assert_false(view_grid_is_cut(&grid));
	assert_false(view_grid_draw_row(&grid, &pane));
	view_grid_layout(&grid, (struct view_rect){0, 0, 28, 6});
	assert_true(view_grid_is_cut(&grid));
	assert_true(view_grid_draw_row(&grid, &pane));
	assert_int_equal(view_canvas_print(&canvas, 0, 3, out, NULL), ST_OK);
	fclose(out);
	assert_string_equal(text, " name Dense_128/MatMul\n"
				  " tile 3  share 50.00 %\n"
				  "\n");
	free(text);
	view_canvas_fini(&canvas);
	view_grid_fini(&grid);
}

/* ---- stopped --------------------------------------------------------------------------------- */

/* What must be as before where something was stopped. */
static uint64_t mark_of(const struct view_grid *grid)
{
	uint64_t mark = (uint64_t)grid->sort * 31 + grid->reverse + 2 * (uint64_t)grid->place_count;

	for (int64_t i = 0; i < grid->count; i++)
		mark = (mark ^ (uint64_t)grid->order[i]) * UINT64_C(0x100000001b3);
	for (const char *c = grid->filter; *c; c++)
		mark = mark * 31 + (uint64_t)*c;
	return mark;
}

static void test_what_is_stopped_leaves_all_as_it_was(void **state)
{
	struct view_context context = {0};
	struct view_grid grid = {0};
	struct report_table table, out, source = table_of(some, 4), target = table_of(other, 4);
	uint64_t before;

	(void)state;
	set(&grid, some, 4);
	grid.context = &context;
	view_grid_layout(&grid, (struct view_rect){0, 0, 80, 6});
	view_grid_sort(&grid, "cycles", false);
	view_grid_filter(&grid, "[a-z]");
	before = mark_of(&grid);
	context.cancel = true;
	view_grid_request(&grid, VIEW_SORT_NEXT_REQUEST);
	assert_contains(context.message, "stopped: the order");
	view_grid_request(&grid, VIEW_REVERSE_REQUEST);
	assert_false(view_grid_sort(&grid, "name", true));
	view_grid_click(&grid, 5, 0);
	view_grid_filter(&grid, "conv");
	assert_contains(context.message, "stopped: the rows");
	view_grid_request(&grid, VIEW_BACK_REQUEST);
	view_grid_request(&grid, VIEW_COLUMNS_REQUEST);
	assert_contains(context.message, "stopped: the columns");
	assert_int_equal(view_grid_table(&grid, &out, NULL), ST_INTERRUPTED);
	table = table_of(other, 4);
	assert_int_equal(view_grid_set(&grid, &context, &table, NULL, 0, NULL, NULL),
			 ST_INTERRUPTED);
	assert_null(table.cells);
	assert_int_equal(view_grid_compare(&table, &context, &source, &target, "name", NULL),
			 ST_INTERRUPTED);
	assert_null(table.cells);
	assert_true(mark_of(&grid) == before);
	context.cancel = false;
	view_grid_request(&grid, VIEW_BACK_REQUEST);
	assert_order(&grid, "cDdR");
	report_table_free(&source);
	report_table_free(&target);
	view_grid_fini(&grid);
}

/* Sets the flag when it has had some time. */
struct stopper {
	struct view_context *context;
	struct timespec wait;
};

static void *stop_soon(void *user)
{
	struct stopper *stopper = user;

	nanosleep(&stopper->wait, NULL);
	atomic_store(&stopper->context->cancel, true);
	return NULL;
}

/* Have @grid sorted by @column, and stop it after @us. Returns whether it was. */
static bool stopped_within(struct view_grid *grid, const char *column, long us)
{
	struct stopper stopper = {grid->context, {0, us * 1000}};
	const uint64_t before = mark_of(grid);
	pthread_t thread;
	bool sorted;

	assert_int_equal(pthread_create(&thread, NULL, stop_soon, &stopper), 0);
	sorted = view_grid_sort(grid, column, false);
	pthread_join(thread, NULL);
	grid->context->cancel = false;
	assert_true(sorted || mark_of(grid) == before);
	/* All rows are there, once: what a filter lets through follows from the order. */
	view_grid_filter(grid, "a");
	view_grid_filter(grid, "");
	assert_int_equal(grid->count, grid->table.row_count);
	assert_true(sorted || mark_of(grid) == before);
	return !sorted;
}

static void test_an_order_can_be_stopped_at_any_moment(void **state)
{
	enum {
		ROWS = 60000
	};
	struct row *rows = calloc(ROWS, sizeof(*rows));
	char(*names)[16] = calloc(ROWS, sizeof(*names));
	struct view_context context = {0};
	struct view_grid grid = {0};
	int stopped = 0;
	uint32_t random = 3;

	(void)state;
	for (int i = 0; i < ROWS; i++) {
		random = random * 1664525u + 1013904223u;
		snprintf(names[i], sizeof(names[i]), "%u", random);
		rows[i] = (struct row){names[i], i, random >> 4, 0.5, i, NULL};
	}
	set(&grid, rows, ROWS);
	grid.context = &context;
	view_grid_layout(&grid, (struct view_rect){0, 0, 80, 24});
	for (long us = 0; us < 8000; us = us * 3 + 100) {
		assert_true(view_grid_sort(&grid, "tile", true));
		stopped += stopped_within(&grid, "cycles", us);
		stopped += stopped_within(&grid, "name", us);
	}
	/* Chance may have it that all were too late. */
	for (int i = 0; i < 1000 && stopped == 0; i++) {
		assert_true(view_grid_sort(&grid, "tile", true));
		stopped += stopped_within(&grid, "name", 0);
	}
	assert_true(stopped > 0);
	view_grid_fini(&grid);
	free(names);
	free(rows);
}

static void test_whole_numbers_of_any_size_are_told_apart(void **state)
{
	static const struct row big[] = {{"a", 0, INT64_C(9007199254740993), 0, 0, NULL},
					 {"b", 0, INT64_C(9007199254740992), 0, 0, NULL},
					 {"c", 0, INT64_C(9007199254740994), 0, 0, NULL},
					 {"d", 0, -INT64_C(9007199254740993), 0, 0, NULL},
					 {"e", 0, -INT64_C(9007199254740992), 0, 0, NULL}};
	struct view_grid grid = {0};

	(void)state;
	set(&grid, big, 5);
	view_grid_sort(&grid, "cycles", false);
	assert_order(&grid, "cabed");
	view_grid_fini(&grid);
}

static void test_failing_allocations_leave_the_grid_as_it_was(void **state)
{
	struct view_grid grid = {0};
	bool failed = true;

	(void)state;
	set(&grid, some, 4);
	for (long n = 0; failed; n++) {
		struct report_table source = table_of(some, 4), target = table_of(other, 4);
		struct report_table joined = {0}, out = {0};
		enum status status;

		support_fail_alloc(n);
		status = view_grid_compare(&joined, NULL, &source, &target, "name", NULL);
		if (status == ST_OK)
			status = view_grid_set(&grid, NULL, &joined, looks, (int)ARRAY_LEN(looks),
					       "name", NULL);
		if (status == ST_OK)
			status = view_grid_table(&grid, &out, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		/* An arena that gets no large block tries a smaller one. */
		assert_true(status == ST_OK || (failed && status == ST_NOMEM));
		assert_null(joined.cells);
		assert_true(grid.count == (grid.compared ? 5 : 4));
		report_table_free(&source);
		report_table_free(&target);
		report_table_free(&out);
	}
	view_grid_fini(&grid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_looks_like_a_table),
		cmocka_unit_test(test_what_matters_least_goes_first_and_comes_back_sideways),
		cmocka_unit_test(test_orders_are_stable_and_empty_cells_are_last),
		cmocka_unit_test(test_keys_walk_orders_and_say_so),
		cmocka_unit_test(test_columns_are_hidden_and_all_come_back),
		cmocka_unit_test(test_what_is_off_the_screen_and_how_to_see_it_is_said),
		cmocka_unit_test(test_where_no_column_is_hidden_it_says_so),
		cmocka_unit_test(test_filters_are_expressions_over_what_is_shown),
		cmocka_unit_test(test_searching_goes_around_the_end_and_counts),
		cmocka_unit_test(test_new_rows_keep_cursor_order_filter_and_columns),
		cmocka_unit_test(test_clicks_choose_rows_and_orders),
		cmocka_unit_test(test_the_rows_are_handed_out_as_shown),
		cmocka_unit_test(test_two_reports_stand_side_by_side),
		cmocka_unit_test(test_names_are_cut_for_values),
		cmocka_unit_test(test_narrow_screens_reach_target_and_diff),
		cmocka_unit_test(test_each_row_has_a_verdict),
		cmocka_unit_test(test_moments_and_positions_are_no_durations),
		cmocka_unit_test(test_only_what_differs),
		cmocka_unit_test(test_values_have_room_before_names),
		cmocka_unit_test(test_equal_keys_pair_up_in_order),
		cmocka_unit_test(test_texts_that_differ_have_two_columns),
		cmocka_unit_test(test_nothing_leaves_the_pane_at_any_size),
		cmocka_unit_test(test_many_rows_are_ordered_and_filtered),
		cmocka_unit_test(test_texts_of_any_length_are_ordered),
		cmocka_unit_test(test_what_is_cut_or_off_the_screen_is_shown_whole),
		cmocka_unit_test(test_what_is_stopped_leaves_all_as_it_was),
		cmocka_unit_test(test_an_order_can_be_stopped_at_any_moment),
		cmocka_unit_test(test_whole_numbers_of_any_size_are_told_apart),
		cmocka_unit_test(test_failing_allocations_leave_the_grid_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
