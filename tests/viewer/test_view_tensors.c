/*
 * The screen Tensors: what it shows is what SQL says, at any size, of any names and numbers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fmt.h"
#include "common/str.h"
#include "support/view_fixture_tensors.h"
#include "support/view_rig.h"
#include "viewer/tensors/view_tensors_internal.h"

#define STEPS 40

static const struct view_fixture_tensors usual = {.steps = STEPS, .hits = 9, .scale = 1};

static bool write_tensors(const char *path, const void *params)
{
	return view_fixture_tensors_write(path, params);
}

static int setup_with(void **state, const struct view_fixture_tensors *params,
		      const struct view_fixture_tensors *other)
{
	return view_rig_setup_with(state, write_tensors, params, other, "8");
}

static int setup(void **state)
{
	return setup_with(state, &usual, NULL);
}

static int setup_two(void **state)
{
	const struct view_fixture_tensors other = {.steps = STEPS, .hits = 9, .scale = 3};

	return setup_with(state, &usual, &other);
}

static int setup_rows(void **state)
{
	const struct view_fixture_tensors rows = {
		.steps = STEPS, .hits = 9, .scale = 1, .shape = "(6, 1, 10)"};

	return setup_with(state, &rows, NULL);
}

static int setup_none(void **state)
{
	return view_rig_setup(state);
}

static struct view_tensors *screen_of(struct view_rig *rig)
{
	return rig->session.state[VIEW_TENSORS];
}

static void test_the_list_has_the_sums_of_all_tensors_the_greatest_first(void **state)
{
	struct view_rig *rig = *state;
	char *text, *first, *second;

	assert_shows(rig, "max std");
	assert_shows_real(rig, "SELECT max(std) FROM tensor_stats WHERE key LIKE 'Dense_0%'");
	assert_shows_real(rig, "SELECT max(std) FROM tensor_stats WHERE key LIKE 'Dense_1%'");
	text = view_rig_text(&rig->session);
	first = strstr(text, "it's ");
	second = strstr(text, "Dense_0/kernel");
	assert_non_null(first);
	assert_non_null(second);
	assert_true(first < second && second < strstr(text, "Dense_1/kernel"));
	assert_true(strstr(text, "Dense_1/kernel") < strstr(text, "Watched"));
	assert_null(strchr(text, 27));
	free(text);
}

static void test_every_statistic_has_its_columns(void **state)
{
	struct view_rig *rig = *state;
	const char *const *names;
	int count;

	names = report_tensor_columns(&count);
	for (int i = 0; i < count; i++) {
		char title[64], sql[128];

		snprintf(title, sizeof(title), "statistic %s, ", view__statistic(screen_of(rig)));
		assert_shows(rig, title);
		snprintf(sql, sizeof(sql),
			 "SELECT coalesce(max(%s), 0) FROM tensor_stats WHERE key LIKE 'Dense_1%%'",
			 view__statistic(screen_of(rig)));
		if (view_rig_sql_real(rig, sql) > 0)
			assert_shows_real(rig, sql);
		view_rig_press(rig, "s");
	}
	assert_int_equal(count, 10);
	assert_non_null(names);
}

static void test_a_watched_tensor_says_that_it_has_no_rows(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "G");
	assert_shows(rig, "only its health is watched");
}

static void test_the_curve_reads_values_out_under_its_cursor(void **state)
{
	struct view_rig *rig = *state;
	char wanted[128], value[FMT_SIZE];
	struct view_place place;

	view_rig_key(rig, VIEW_KEY_ENTER);
	view_rig_press(rig, "glll");
	fmt_real(value, view_rig_sql_real(rig, "SELECT std FROM tensor_stats WHERE step = 3 AND "
					       "key LIKE 'it%'"));
	snprintf(wanted, sizeof(wanted), "step 3: std %s", value);
	assert_shows(rig, wanted);
	assert_shows(rig, "all 40 rows");
	assert_true(view_tensors_ops.place(screen_of(rig), &place));
	assert_int_equal(place.step, 3);
	assert_int_equal(place.weight_update, 1);
	assert_int_equal(place.time_ns, 3000002);
	assert_string_equal(place.clock, "host");
	assert_string_equal(place.layer, "odd");
	view_rig_press(rig, "llll");
	assert_shows(rig, "7 NaN or Inf");
	assert_shows(rig, "!");
}

/* The heading names all pages, or where these leave no room for the tensor's name the shown one. */
static void test_a_narrow_heading_names_the_shown_page_alone(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "j");
	assert_line_shows(rig, "[curve] histograms  values  rules broken  rows ",
			  "Dense_0/kernel:0_grad");
	view_rig_size(rig, 60, 24);
	assert_line_shows(rig, "[curve] Dense_0/kernel:0_grad");
	view_rig_press(rig, "v");
	assert_line_shows(rig, "[histograms] Dense_0/kernel:0_grad");
}

static void test_it_goes_to_a_tensor_at_a_step(void **state)
{
	struct view_rig *rig = *state;
	struct view_place place;
	char text[128];

	view_place_clear(&place);
	view_place_text(place.key, "Dense_0/kernel:0_grad");
	view_place_text(place.queue, "gradients");
	place.step = 17;
	assert_true(view_tensors_ops.offers(&place, text, sizeof(text)));
	assert_string_equal(text, "Dense_0/kernel:0_grad at step 17");
	assert_int_equal(view_tensors_ops.go(screen_of(rig), &rig->session.context, &place, NULL),
			 ST_OK);
	rig->session.stale = true;
	view_session_draw(&rig->session);
	assert_shows(rig, "step 17: std");
	place.step = IPS_NULL;
	place.weight_update = 4;
	assert_int_equal(view_tensors_ops.go(screen_of(rig), &rig->session.context, &place, NULL),
			 ST_OK);
	rig->session.stale = true;
	view_session_draw(&rig->session);
	assert_shows(rig, "step 9: std"); /* the last one of that update */
	view_place_text(place.key, "nobody");
	assert_int_equal(view_tensors_ops.go(screen_of(rig), &rig->session.context, &place, NULL),
			 ST_NOTFOUND);
}

static void test_histograms_count_what_sql_counts(void **state)
{
	struct view_rig *rig = *state;
	const struct view_tensor_histogram *h = &screen_of(rig)->histogram;
	double sum = 0;

	view_rig_press(rig, "jv");
	assert_hides(rig, "\xe2\x96\x88\xe2\x96\xbc");
	view_rig_key(rig, VIEW_KEY_ENTER);
	/* The cursor has a mark above the last step's histogram. */
	assert_line_shows(rig, " 1 ", "\xe2\x96\x88\xe2\x96\xbc");
	assert_int_equal(h->columns, STEPS);
	assert_int_equal(h->bins, 4);
	assert_int_equal(h->bin[0], 128);
	assert_int_equal(h->bin[3], -128);
	for (int i = 0; i < h->columns * h->bins; i++)
		sum += h->side[0].count[i] > 0 ? h->side[0].count[i] : 0;
	assert_int_equal((int64_t)sum,
			 view_rig_sql_int(rig,
					  "SELECT sum(count) FROM tensor_histograms WHERE key LIKE "
					  "'Dense_0%'"));
	assert_shows(rig, "steps 0 to 39, 40 histograms");
	assert_int_equal((int64_t)h->greatest,
			 view_rig_sql_int(rig, "SELECT max(count) FROM tensor_histograms"));
}

static void test_values_are_those_of_the_capture_bad_ones_too(void **state)
{
	struct view_rig *rig = *state;
	const struct view_tensor_values *v = &screen_of(rig)->values;

	view_rig_press(rig, "jjvv");
	view_rig_key(rig, VIEW_KEY_ENTER);
	assert_int_equal(v->both.count, 4);
	assert_shows(rig, "step 30: float32 (3, 4, 5)  [0, :, :]");
	assert_int_equal(v->shown_rows, 4);
	assert_int_equal(v->shown_columns, 5);
	for (int i = 0; i < 20; i++)
		if (i != 3 && i != 7)
			assert_true(v->part[0].cell[i] == 30000 + i);
	assert_true(v->part[0].cell[3] != v->part[0].cell[3]);
	assert_shows(rig, "nan");
	assert_shows(rig, "-inf");
	/* Rows go on in the next slice. */
	view_rig_press(rig, "jj");
	assert_shows(rig, "[2, :, :]");
	/* A row that lies in two pieces. */
	for (int i = 0; i < 20; i++)
		assert_true(v->part[0].cell[i] == 30040 + i);
	view_rig_press(rig, "s");
	assert_shows(rig, "capture 1 of 4");
	assert_true(v->part[0].cell[19] == 59);
	view_rig_press(rig, "b");
	assert_true(v->picture);
	assert_shows(rig, "59");
}

/* A slice of one row is a page: the next page is the next slice. */
static void test_pages_of_one_row_go_on(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "jjvv");
	view_rig_key(rig, VIEW_KEY_ENTER);
	assert_shows(rig, "[0, :, :]");
	view_rig_key(rig, VIEW_KEY_PAGE_DOWN);
	assert_shows(rig, "[1, :, :]");
	view_rig_key(rig, VIEW_KEY_PAGE_DOWN);
	assert_shows(rig, "[2, :, :]");
	view_rig_key(rig, VIEW_KEY_PAGE_UP);
	assert_shows(rig, "[1, :, :]");
}

static void test_gradients_alone_are_one_key_away(void **state)
{
	struct view_rig *rig = *state;
	const struct view_screen_ops *ops = view_screen(VIEW_TENSORS);
	const struct view_grid *list = &screen_of(rig)->list;
	const int64_t all = list->count;
	struct view_place place;
	struct str sql = {0};
	struct err err;
	char *key;

	view_rig_press(rig, "jb");
	assert_int_equal(list->at, 0);
	assert_true(list->count < all);
	assert_int_equal(list->count,
			 view_rig_sql_int(rig, "SELECT count(*) FROM tensors WHERE kind = "
					       "'gradient'"));
	assert_shows(rig, "std, kind gradient, row 1 of ");
	ops->query(screen_of(rig), &rig->session.context, &sql);
	assert_non_null(strstr(sql.text, "kind = 'gradient'"));
	str_free(&sql);
	/* The other kinds, one by one, and in the end all. */
	for (int i = 0; i < 10 && list->count < all; i++)
		view_rig_press(rig, "b");
	assert_int_equal(list->count, all);
	view_rig_press(rig, "b");
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	assert_int_equal(list->count, all);
	/* Who comes from elsewhere is not kept from what is of another kind. */
	view_rig_press(rig, "b");
	view_place_clear(&place);
	key = view_rig_sql_text(rig, "SELECT key FROM tensors WHERE kind <> 'gradient' LIMIT 1");
	view_place_text(place.key, key);
	free(key);
	assert_int_equal(ops->go(screen_of(rig), &rig->session.context, &place, &err), ST_OK);
	assert_int_equal(list->count, all);
}

static void test_rules_and_rows_are_those_of_the_tensor(void **state)
{
	struct view_rig *rig = *state;
	const struct view_grid *grid = &screen_of(rig)->grid;

	view_rig_press(rig, "vvv");
	view_rig_key(rig, VIEW_KEY_ENTER);
	assert_int_equal(grid->count, view_rig_sql_int(rig, "SELECT count(*) FROM health WHERE "
							    "key LIKE 'it%'"));
	assert_shows(rig, "nonfinite");
	view_rig_press(rig, "v");
	assert_int_equal(grid->count, STEPS);
	assert_shows_real(rig, "SELECT std FROM tensor_stats WHERE key LIKE 'it%' AND step = 2");
}

static void test_its_table_is_all_statistics_in_the_lists_order(void **state)
{
	struct view_rig *rig = *state;
	struct report_table table;

	assert_int_equal(
		view_tensors_ops.table(screen_of(rig), &rig->session.context, &table, NULL), ST_OK);
	assert_int_equal(table.row_count, 3);
	assert_string_equal(table.columns[1].name, "key");
	assert_true(strncmp(table.cells[1].text, "it's", 4) == 0);
	assert_string_equal(table.cells[table.column_count + 1].text, "Dense_0/kernel:0_grad");
	assert_true(table.column_count > 50);
	report_table_free(&table);
}

static void test_its_queries_run_as_they_are(void **state)
{
	struct view_rig *rig = *state;

	for (int i = 0; i < 2 * VIEW_TENSOR_PAGE_COUNT; i++) {
		struct str sql = {0};
		char *at;

		view_tensors_ops.query(screen_of(rig), &rig->session.context, &sql);
		at = sql.text;
		for (char *end = strstr(at, ";\n"); end; at = end + 2, end = strstr(at, ";\n")) {
			struct prof_query *query;
			struct err err = {0};

			*end = '\0';
			if (prof_query_open(&query, rig->session.source.db, at, &err) != ST_OK)
				fail_msg("%s: %s", at, err.text);
			prof_query_close(query);
		}
		assert_int_equal(*at, 0);
		str_free(&sql);
		view_rig_press(rig, "v");
		if (i == VIEW_TENSOR_PAGE_COUNT)
			view_rig_key(rig, VIEW_KEY_ENTER);
	}
}

static void test_two_reports_have_three_columns_and_two_curves(void **state)
{
	struct view_rig *rig = *state;
	const struct view_tensors *screen = screen_of(rig);
	double source, target;

	view_rig_size(rig, 200, 40);
	source = view_grid_cell(&screen->list, "greatest")->real;
	target = view_grid_cell(&screen->list, "greatest_target")->real;
	assert_true(target == 3 * source);
	assert_true(view_grid_cell(&screen->list, "greatest_diff")->real == target - source);
	assert_int_equal(screen->curve[0].rows.count, STEPS);
	assert_int_equal(screen->curve[1].rows.count, STEPS);
	assert_shows(rig, "Source");
	assert_shows(rig, "Target");
	assert_true(screen->y.high >= target);
}

static void press_on_every_page(struct view_rig *rig)
{
	for (int page = 0; page < VIEW_TENSOR_PAGE_COUNT; page++) {
		view_rig_press(rig, "vjkhlb");
		view_rig_key(rig, VIEW_KEY_ENTER);
		view_rig_press(rig, "hjklgGsSib");
		view_rig_key(rig, VIEW_KEY_ESCAPE);
		view_rig_key(rig, VIEW_KEY_ESCAPE);
	}
}

static void test_any_size_and_every_page_can_be_drawn(void **state)
{
	view_rig_each_look(*state, press_on_every_page);
}

static void test_no_tensors_are_said_to_be_none(void **state)
{
	struct view_rig *rig = *state;
	char path[SUPPORT_PATH_SIZE + 32];
	const struct view_fixture_tensors none = {.steps = 0, .hits = 0, .scale = 1};

	snprintf(path, sizeof(path), "%s/none.db", rig->folder);
	assert_true(view_fixture_tensors_write(path, &none));
	view_rig_close(rig);
	view_rig_open(rig, path, NULL, 80, 24);
	for (int page = 0; page < VIEW_TENSOR_PAGE_COUNT; page++) {
		view_rig_press(rig, "8v");
		view_rig_key(rig, VIEW_KEY_ENTER);
		view_rig_press(rig, "hjkl");
		view_rig_key(rig, VIEW_KEY_ESCAPE);
	}
	assert_int_equal(rig->session.trouble.status, ST_OK);
}

static void test_every_key_does_something_or_says_why_not(void **state)
{
	view_rig_press_every_key(*state, VIEW_TENSORS);
}

static void test_failing_allocations_leave_it_usable(void **state)
{
	struct view_rig *rig = *state;

	view_rig_key(rig, VIEW_KEY_ENTER);
	for (int page = 0; page < VIEW_TENSOR_PAGE_COUNT; page++) {
		for (long nth = 0; nth < 40; nth++) {
			support_fail_alloc(nth);
			view_rig_press(rig, "r");
			support_fail_alloc(-1);
		}
		view_rig_press(rig, "vr");
		assert_int_equal(rig->session.trouble.status, ST_OK);
	}
	assert_shows(rig, "all 40 rows");
}

int main(void)
{
#define CASE(name)     cmocka_unit_test_setup_teardown(name, setup, view_rig_teardown)
#define CASE_TWO(name) cmocka_unit_test_setup_teardown(name, setup_two, view_rig_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_the_list_has_the_sums_of_all_tensors_the_greatest_first),
		CASE(test_every_statistic_has_its_columns),
		CASE(test_a_watched_tensor_says_that_it_has_no_rows),
		CASE(test_the_curve_reads_values_out_under_its_cursor),
		CASE(test_a_narrow_heading_names_the_shown_page_alone),
		CASE(test_it_goes_to_a_tensor_at_a_step),
		CASE(test_histograms_count_what_sql_counts),
		CASE(test_values_are_those_of_the_capture_bad_ones_too),
		cmocka_unit_test_setup_teardown(test_pages_of_one_row_go_on, setup_rows,
						view_rig_teardown),
		CASE(test_gradients_alone_are_one_key_away),
		CASE(test_rules_and_rows_are_those_of_the_tensor),
		CASE(test_its_table_is_all_statistics_in_the_lists_order),
		CASE(test_its_queries_run_as_they_are),
		CASE_TWO(test_two_reports_have_three_columns_and_two_curves),
		CASE(test_any_size_and_every_page_can_be_drawn),
		CASE_TWO(test_any_size_and_every_page_can_be_drawn),
		cmocka_unit_test_setup_teardown(test_no_tensors_are_said_to_be_none, setup_none,
						view_rig_teardown),
		CASE(test_every_key_does_something_or_says_why_not),
		CASE(test_failing_allocations_leave_it_usable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
