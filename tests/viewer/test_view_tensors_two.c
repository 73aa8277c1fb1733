/*
 * The screen Tensors on two reports, and on a report of several replicas: what is shown of each is
 * what SQL says of it, and whatever one of them lacks is said.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/str.h"
#include "support/view_fixture_tensors.h"
#include "support/view_rig.h"
#include "viewer/tensors/view_tensors_internal.h"

#define STEPS 40

static const struct view_fixture_tensors usual = {.steps = STEPS, .hits = 9, .scale = 1};
static const struct view_fixture_tensors larger = {
	.steps = STEPS / 2, .hits = 9, .scale = 3, .more = 5};
static const struct view_fixture_tensors exploded = {.steps = STEPS, .hits = 9, .scale = 1e9};
static const struct view_fixture_tensors replicated = {
	.steps = STEPS, .hits = 9, .scale = 1, .replicas = 2};

static bool write_tensors(const char *path, const void *params)
{
	return view_fixture_tensors_write(path, params);
}

static int setup_two(void **state)
{
	return view_rig_setup_with(state, write_tensors, &usual, &larger, "8");
}

static int setup_far(void **state)
{
	return view_rig_setup_with(state, write_tensors, &usual, &exploded, "8");
}

static int setup_same(void **state)
{
	return view_rig_setup_with(state, write_tensors, &usual, &usual, "8");
}

static int setup_replicas(void **state)
{
	return view_rig_setup_with(state, write_tensors, &replicated, NULL, "8");
}

static int setup_both_replicated(void **state)
{
	return view_rig_setup_with(state, write_tensors, &replicated, &replicated, "8");
}

static struct view_tensors *screen_of(struct view_rig *rig)
{
	return rig->session.state[VIEW_TENSORS];
}

static double target_real(struct view_rig *rig, const char *sql)
{
	struct prof_query *query;
	bool row = false;
	double value;

	assert_int_equal(prof_query_open(&query, rig->session.target.db, sql, NULL), ST_OK);
	assert_int_equal(prof_query_step(query, &row, NULL), ST_OK);
	assert_true(row);
	value = prof_column_real(query, 0);
	prof_query_close(query);
	return value;
}

/* ---- curves and histograms ------------------------------------------------------------------- */

static void test_the_readout_has_source_target_and_difference(void **state)
{
	struct view_rig *rig = *state;
	const char *sql = "SELECT std FROM tensor_stats WHERE key LIKE 'Dense_0%' AND step = 5";
	const double source = view_rig_sql_real(rig, sql), target = target_real(rig, sql);
	char wanted[200], numbers[3][FMT_SIZE];

	view_rig_size(rig, 120, 30);
	view_rig_press(rig, "j");
	view_rig_key(rig, VIEW_KEY_ENTER);
	view_rig_press(rig, "glllll");
	snprintf(wanted, sizeof(wanted), "step 5: std Source %s  Target %s  Diff +%s",
		 fmt_real(numbers[0], source), fmt_real(numbers[1], target),
		 fmt_real(numbers[2], target - source));
	assert_shows(rig, wanted);
	view_rig_press(rig, "v");
	assert_shows(rig, wanted);
	/* The Target has half as many steps. */
	view_rig_press(rig, "G");
	assert_shows(rig, "step 39: std Source");
	assert_shows(rig, "Target -");
	view_rig_size(rig, 40, 12);
	assert_shows(rig, "step 39: S");
}

static void test_curves_far_apart_are_on_a_logarithmic_axis(void **state)
{
	struct view_rig *rig = *state;
	const struct report_axis *y = &screen_of(rig)->y;

	assert_true(y->logarithmic);
	assert_true(y->low < 5 && y->high > 1e9);
	assert_shows(rig, "statistic std, log axis, row");
	assert_shows(rig, "1e+07 ");
	view_rig_press(rig, "t");
	assert_shows(rig, "a linear axis");
	assert_false(y->logarithmic);
	/* It is of the curve: other pages have none. */
	view_rig_press(rig, "vt");
	assert_shows(rig, "for the curve of a statistic (v)");
	assert_false(y->logarithmic);
	view_rig_press(rig, "Vt");
	assert_true(y->logarithmic);
}

static void test_histograms_of_both_share_bins_columns_and_shades(void **state)
{
	struct view_rig *rig = *state;
	const struct view_tensor_histogram *h = &screen_of(rig)->histogram;
	double sums[2] = {0, 0};

	view_rig_press(rig, "jv");
	assert_int_equal(h->bins, 4);
	assert_int_equal(h->columns, STEPS);
	assert_int_equal(h->side[0].columns, STEPS);
	assert_int_equal(h->side[1].columns, STEPS / 2);
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < h->bins * h->columns; i++)
			if (!isnan(h->side[side].count[i]))
				sums[side] += h->side[side].count[i];
	assert_true(sums[0] == view_rig_sql_real(rig, "SELECT sum(count) FROM tensor_histograms"));
	assert_true(sums[1] == target_real(rig, "SELECT sum(count) FROM tensor_histograms"));
	/* The second column of both is step 1's; the Target has 5 more in each bin. */
	assert_true(h->side[1].count[1] == h->side[0].count[1] + 5);
	view_rig_key(rig, VIEW_KEY_ENTER);
	assert_shows(rig, "Source run.db: steps 0 to 39, 40 histograms");
	assert_shows(rig, "Target other.db: steps 0 to 19, 20 histograms");
	assert_shows(rig, "elements of a bin");
}

static void test_equal_histograms_are_left_out_on_demand(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "jv");
	view_rig_key(rig, VIEW_KEY_ENTER);
	assert_shows(rig, "Source run.db");
	view_rig_press(rig, "D");
	assert_shows(rig, "Nothing differs: D shows all.");
	view_rig_press(rig, "v");
	assert_shows(rig, "No values were kept of it");
	view_rig_press(rig, "DV");
	assert_shows(rig, "Source run.db");
}

/* ---- values ---------------------------------------------------------------------------------- */

static void test_values_of_both_stand_beside_each_other_with_the_difference(void **state)
{
	struct view_rig *rig = *state;
	const struct view_tensor_values *v = &screen_of(rig)->values;
	const int cells[] = {0, 1, 6};

	view_rig_press(rig, "jjvv");
	view_rig_key(rig, VIEW_KEY_ENTER);
	/* Steps 0, 10, 20 and 30; the Target has the first two. */
	assert_int_equal(v->both.count, 4);
	view_rig_press(rig, "sss");
	assert_shows(rig, "step 20: float32 (3, 4, 5)");
	assert_shows(rig, "No Target at this step: Source alone");
	view_rig_press(rig, "S");
	assert_shows(rig, "step 10: float32 (3, 4, 5)");
	assert_shows(rig, "Diff");
	for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
		const int at = cells[i] / v->shown_columns * v->shown_columns +
			       cells[i] % v->shown_columns;
		const int element = at / v->shown_columns * 5 + at % v->shown_columns;

		assert_true(v->part[VIEW_OF_SOURCE].cell[at] == 10000 + element || element == 3 ||
			    element == 7);
		if (element != 3 && element != 7)
			assert_true(v->part[VIEW_OF_TARGET].cell[at] == 3 * (10000 + element) &&
				    v->part[VIEW_OF_DIFF].cell[at] == 2 * (10000 + element));
	}
	assert_shows(rig, "1e+04");
	assert_shows(rig, "3e+04");
	assert_shows(rig, "+2e+04");
	view_rig_press(rig, "b");
	assert_shows(rig, "Diff");
	assert_true(v->diff_scale.high == 2 * 10019);
}

static void test_equal_values_are_left_out_on_demand(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "jjvv");
	view_rig_key(rig, VIEW_KEY_ENTER);
	assert_shows(rig, "[0]");
	view_rig_press(rig, "D");
	assert_shows(rig, "Nothing of what is shown differs: D shows all.");
	view_rig_press(rig, "D");
	assert_shows(rig, "[0]");
}

static void check_table(struct view_rig *rig, const char *column, int64_t rows)
{
	struct report_table table;
	bool found = false;

	assert_int_equal(
		view_tensors_ops.table(screen_of(rig), &rig->session.context, &table, NULL), ST_OK);
	assert_true(rows < 0 || table.row_count == rows);
	assert_true(table.row_count > 0);
	for (int i = 0; i < table.column_count; i++)
		found = found || strcmp(table.columns[i].name, column) == 0;
	assert_true(found);
	report_table_free(&table);
}

static void test_pages_are_tables_with_target_and_difference(void **state)
{
	struct view_rig *rig = *state;
	const struct view_tensor_values *v = &screen_of(rig)->values;

	check_table(rig, "greatest_diff", -1);
	view_rig_press(rig, "jv");
	view_rig_key(rig, VIEW_KEY_ENTER);
	check_table(rig, "count_diff", 4 * STEPS);
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	view_rig_press(rig, "jv");
	view_rig_key(rig, VIEW_KEY_ENTER);
	check_table(rig, "value_diff", (int64_t)v->shown_rows * v->shown_columns);
}

/* The same step is another micro-batch where more of them are accumulated. */
static void test_rows_of_a_step_pair_up_whatever_their_microbatch(void **state)
{
	const struct view_fixture_tensors four = {.steps = 16, .scale = 1, .microbatches = 4};
	const struct view_fixture_tensors eight = {.steps = 16, .scale = 2, .microbatches = 8};
	struct view_rig *rig;
	const struct view_grid *grid;

	assert_int_equal(view_rig_setup_with(state, write_tensors, &four, &eight, "8vvvv"), 0);
	rig = *state;
	view_rig_key(rig, VIEW_KEY_ENTER);
	grid = &screen_of(rig)->grid;
	assert_int_equal(grid->count, 16);
	view_rig_press(rig, "G");
	assert_true(view_grid_cell(grid, "std_target")->real ==
		    2 * view_grid_cell(grid, "std")->real);
}

/* Every statement runs in both, and the first says what the page does. */
static void test_the_statements_are_for_both_reports(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "jj");
	view_rig_key(rig, VIEW_KEY_ENTER);
	for (int page = 0; page < VIEW_TENSOR_PAGE_COUNT; page++) {
		struct prof_db *dbs[] = {rig->session.source.db, rig->session.target.db};
		struct str sql = {0};
		char *at;

		view_tensors_ops.query(screen_of(rig), &rig->session.context, &sql);
		at = sql.text;
		for (char *end = strstr(at, ";\n"); end; at = end + 2, end = strstr(at, ";\n")) {
			*end = '\0';
			for (int side = 0; side < 2; side++) {
				struct prof_query *query;
				struct err err = {0};
				bool row = false;

				if (prof_query_open(&query, dbs[side], at, &err) != ST_OK)
					fail_msg("%s: %s", at, err.text);
				assert_int_equal(prof_query_step(query, &row, NULL), ST_OK);
				assert_true(row || side || page == VIEW_TENSOR_HISTOGRAM);
				prof_query_close(query);
			}
		}
		assert_int_equal(*at, 0);
		str_free(&sql);
		view_rig_press(rig, "v");
	}
}

/* ---- replicas -------------------------------------------------------------------------------- */

static void test_replicas_are_told_apart_and_chosen(void **state)
{
	struct view_rig *rig = *state;
	const struct view_tensors *screen = screen_of(rig);
	const struct view_tensor_curve *curve = &screen->curve[0];

	view_rig_size(rig, 140, 30);
	view_rig_key(rig, VIEW_KEY_ENTER);
	assert_int_equal(curve->line_count, 2);
	assert_int_equal(curve->rows.count, 2 * STEPS);
	assert_int_equal(screen->by, VIEW_BY_STEP);
	assert_shows(rig, "replica 0");
	assert_shows(rig, "replica 1");
	assert_shows(rig, "all 2 replicas");
	for (int i = 0; i < STEPS; i++) {
		assert_true(curve->line_at[i] == i && curve->line_at[STEPS + i] == i);
		assert_true(curve->line_values[STEPS + i] == 2 * curve->line_values[i]);
	}
	view_rig_press(rig, "i");
	assert_shows(rig, "replica 0 of 2");
	assert_int_equal(curve->rows.count, STEPS);
	view_rig_press(rig, "i");
	assert_int_equal(curve->rows.count, STEPS);
	assert_true(curve->values[0] ==
		    view_rig_sql_real(rig, "SELECT std FROM tensor_stats WHERE replica = 1 AND "
					   "key LIKE 'it%' AND step = 0"));
	view_rig_press(rig, "i");
	assert_int_equal(curve->rows.count, 2 * STEPS);
}

static void test_a_step_has_one_column_of_all_replicas_histograms(void **state)
{
	struct view_rig *rig = *state;
	const struct view_tensor_histogram *h = &screen_of(rig)->histogram;

	view_rig_press(rig, "jv");
	view_rig_key(rig, VIEW_KEY_ENTER);
	assert_int_equal(h->columns, STEPS);
	assert_shows(rig, "steps 0 to 39, 80 histograms");
	assert_true(h->side[0].count[2] ==
		    view_rig_sql_real(rig, "SELECT sum(count) FROM tensor_histograms WHERE "
					   "step = 2 AND bin = 128"));
	view_rig_press(rig, "ii");
	assert_shows(rig, "replica 1");
	assert_shows(rig, "steps 0 to 39, 40 histograms");
	assert_true(h->side[0].count[2] ==
		    view_rig_sql_real(rig, "SELECT sum(count) FROM tensor_histograms WHERE "
					   "step = 2 AND bin = 128 AND replica = 1"));
}

static void test_values_and_rows_are_the_chosen_replicas(void **state)
{
	struct view_rig *rig = *state;
	const struct view_tensor_values *v = &screen_of(rig)->values;

	view_rig_press(rig, "jjvv");
	view_rig_key(rig, VIEW_KEY_ENTER);
	assert_int_equal(v->both.count, 8);
	view_rig_press(rig, "ii");
	assert_int_equal(v->both.count, 4);
	assert_shows(rig, "step 30: float32");
	assert_true(v->part[0].cell[0] == 30000.5);
	view_rig_press(rig, "vv");
	assert_int_equal(screen_of(rig)->grid.count, STEPS);
	assert_int_equal(view_grid_cell(&screen_of(rig)->grid, "replica")->integer, 1);
}

static void test_one_replica_says_that_there_is_nothing_to_choose(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "i");
	assert_shows(rig, "tensors are of one replica");
}

/* ---- what one of them lacks ------------------------------------------------------------------ */

static void check_lacking(const struct view_fixture_tensors *source,
			  const struct view_fixture_tensors *target, const char *keys,
			  const char *wanted)
{
	void *state = NULL;
	struct view_rig *rig;

	assert_int_equal(view_rig_setup_with(&state, write_tensors, source, target, "8"), 0);
	rig = state;
	view_rig_size(rig, 120, 40);
	view_rig_press(rig, keys);
	assert_int_equal(rig->session.trouble.status, ST_OK);
	if (wanted)
		assert_shows(rig, wanted);
	view_rig_key(rig, VIEW_KEY_ENTER);
	for (int page = 0; page < VIEW_TENSOR_PAGE_COUNT; page++) {
		view_rig_press(rig, "hjklgGsSibiDbDv");
		assert_int_equal(rig->session.trouble.status, ST_OK);
	}
	view_rig_teardown(&state);
}

static void test_what_one_report_lacks_is_said(void **state)
{
	struct view_fixture_tensors other = usual;

	(void)state;
	other.histograms_none = true;
	check_lacking(&usual, &other, "jv", "No histograms were kept of it");
	check_lacking(&other, &usual, "jv", "No histograms were kept of it");
	check_lacking(&other, &other, "jv", "No histograms were kept of it");
	other = usual;
	other.captures_none = true;
	check_lacking(&usual, &other, "jjvv", "No Target captures: Source alone");
	check_lacking(&other, &usual, "jjvv", "No Source captures: Target alone");
	other = usual;
	other.shape = "(4, 3, 5)";
	check_lacking(&usual, &other, "jjvv", "No Diff: Target's shape is (4, 3, 5)");
	other.shape = "(60,)";
	check_lacking(&usual, &other, "jjvv", "No Diff: Target's shape is (60,)");
	check_lacking(&other, &usual, "jjvv", "No Diff: Target's shape is (3, 4, 5)");
	other.shape = "(0, -1, 99999999999999999999)";
	check_lacking(&usual, &other, "jjvv", "No Diff");
}

static void test_damaged_and_strange_targets_are_shown_as_far_as_they_go(void **state)
{
	struct view_fixture_tensors other = usual;

	(void)state;
	other.nan = true;
	check_lacking(&usual, &other, "", NULL);
	check_lacking(&other, &usual, "", NULL);
	check_lacking(&other, &other, "", NULL);
	other = usual;
	other.captures_empty = true;
	check_lacking(&usual, &other, "jjvv", "Diff");
	other = usual;
	other.suffix = "/other";
	check_lacking(&usual, &other, "", "Source");
	other.steps = other.hits = 0;
	check_lacking(&usual, &other, "", NULL);
	check_lacking(&other, &usual, "", NULL);
	other = replicated;
	other.replicas = 300;
	other.steps = 2;
	check_lacking(&other, &replicated, "", NULL);
}

/* ---- everywhere ------------------------------------------------------------------------------ */

static void test_any_size_and_every_page_can_be_drawn(void **state)
{
	static const int sizes[][2] = {{40, 10}, {40, 12}, {80, 24}, {132, 43}, {250, 60}};
	struct view_rig *rig = *state;

	for (int ascii = 0; ascii < 4; ascii++)
		for (size_t i = (size_t)ascii % support_stride(); i < ARRAY_LEN(sizes);
		     i += support_stride()) {
			rig->session.canvas.ascii = ascii & 1;
			rig->session.canvas.plain = ascii & 2;
			view_rig_size(rig, sizes[i][0], sizes[i][1]);
			for (int page = 0; page < VIEW_TENSOR_PAGE_COUNT; page++) {
				view_rig_press(rig, "vjkhlb");
				view_rig_key(rig, VIEW_KEY_ENTER);
				view_rig_press(rig, "hjklgGsSibDbD");
				view_rig_key(rig, VIEW_KEY_ESCAPE);
				view_rig_key(rig, VIEW_KEY_ESCAPE);
			}
		}
	assert_int_equal(rig->session.trouble.status, ST_OK);
}

static void test_failing_allocations_leave_it_usable(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "jj");
	view_rig_key(rig, VIEW_KEY_ENTER);
	for (int page = 0; page < VIEW_TENSOR_PAGE_COUNT; page++) {
		for (long nth = 0; nth < 60; nth++) {
			support_fail_alloc(nth);
			view_rig_press(rig, "r");
			support_fail_alloc(-1);
		}
		view_rig_press(rig, "vr");
		assert_int_equal(rig->session.trouble.status, ST_OK);
	}
	assert_shows(rig, "Source");
}

int main(void)
{
#define CASE(name, set) cmocka_unit_test_setup_teardown(name, setup_##set, view_rig_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_the_readout_has_source_target_and_difference, two),
		CASE(test_curves_far_apart_are_on_a_logarithmic_axis, far),
		CASE(test_histograms_of_both_share_bins_columns_and_shades, two),
		CASE(test_equal_histograms_are_left_out_on_demand, same),
		CASE(test_values_of_both_stand_beside_each_other_with_the_difference, two),
		CASE(test_equal_values_are_left_out_on_demand, same),
		CASE(test_pages_are_tables_with_target_and_difference, two),
		cmocka_unit_test_setup_teardown(
			test_rows_of_a_step_pair_up_whatever_their_microbatch, NULL,
			view_rig_teardown),
		CASE(test_the_statements_are_for_both_reports, two),
		CASE(test_replicas_are_told_apart_and_chosen, replicas),
		CASE(test_a_step_has_one_column_of_all_replicas_histograms, replicas),
		CASE(test_values_and_rows_are_the_chosen_replicas, replicas),
		CASE(test_one_replica_says_that_there_is_nothing_to_choose, two),
		cmocka_unit_test(test_what_one_report_lacks_is_said),
		cmocka_unit_test(test_damaged_and_strange_targets_are_shown_as_far_as_they_go),
		CASE(test_any_size_and_every_page_can_be_drawn, both_replicated),
		CASE(test_failing_allocations_leave_it_usable, two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
