/*
 * The timeline by name: its filter, and sums by name; against what SQL says.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "support/view_fixture.h"
#include "support/view_fixture_runs.h"
#include "support/view_rig.h"
#include "viewer/draw/view_table.h"
#include "viewer/timeline/view_timeline_internal.h"

/* On each lane 12,000 works and more: not all are summed one by one. */
static const struct view_runs_execution large_plan[] = {{true, true, 1, 6000}};

struct plan {
	const struct view_runs_execution *executions;
	int count;
};

static bool write_plan(const char *path, const void *params)
{
	const struct plan *plan = params;

	return view_fixture_runs_write(path, plan->executions, plan->count);
}

static int setup_large(void **state)
{
	static const struct plan plan = {large_plan, ARRAY_LEN(large_plan)};

	return view_rig_setup_with(state, write_plan, &plan, NULL, "7");
}

static bool write_usual(const char *path, const void *params)
{
	return view_fixture_write(path, *(const int *)params);
}

static int setup(void **state)
{
	static const int usual = 0;
	const int failed = view_rig_setup_with(state, write_usual, &usual, NULL, "7");

	if (!failed)
		view_rig_size(*state, 160, 44);
	return failed;
}

static int setup_pair(void **state)
{
	static const int usual = 0, few = 24;
	const int failed = view_rig_setup_with(state, write_usual, &usual, &few, "7");

	if (!failed)
		view_rig_size(*state, 160, 44);
	return failed;
}

static struct view_timeline *timeline_of(struct view_rig *rig)
{
	return rig->session.state[VIEW_TIMELINE];
}

/* The number that the first statement behind the screen makes of @what ("count(*)"). */
static double query_number(struct view_rig *rig, const char *what)
{
	struct str text = {0}, sql = {0};
	char *end;
	double number;

	view_screen(VIEW_TIMELINE)->query(timeline_of(rig), &rig->session.context, &text);
	end = strstr(str_peek(&text), ";\n");
	assert_non_null(end);
	*end = '\0';
	str_addf(&sql, "SELECT %s FROM (%s)", what, text.text);
	number = view_rig_sql_real(rig, str_peek(&sql));
	str_free(&text);
	str_free(&sql);
	return number;
}

/* ---- the filter ------------------------------------------------------------------------------ */

static int cells(const struct view_timeline *tl, bool left_out)
{
	int count = 0;

	for (int i = 0; i < tl->lane_count; i++)
		for (int x = 0; x < tl->width * tl->lanes[i].rows; x++)
			count += tl->lanes[i].columns[x].bar >= 0 &&
				 tl->lanes[i].columns[x].left_out == left_out;
	return count;
}

static void test_what_a_filter_leaves_out_is_a_thin_line(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl = timeline_of(rig);
	double idle;

	rig->session.canvas.ascii = true;
	assert_hides(rig, ",,,,");
	idle = tl->lanes[0].idle;
	view_rig_press(rig, "\\BACKWARD\r");
	/* It is named between the ways to look and the bubble, as well as at the foot. */
	assert_line_shows(rig, "[Gantt]", " BSP ", "filter BACKWARD  ", "bubble ");
	assert_shows(rig, "filter BACKWARD: ");
	assert_shows(rig, ",,,,");
	assert_true(tl->lanes[0].idle == idle);
	assert_true(cells(tl, true) > 0 && cells(tl, false) > 0);
	for (int i = 0; i < tl->lane_count; i++)
		for (int x = 0; x < tl->width * tl->lanes[i].rows; x++) {
			const struct view_lane_cell *column = &tl->lanes[i].columns[x];

			if (column->bar >= 0 && tl->lanes[i].bars[column->bar].phase == 'F')
				assert_true(column->left_out);
		}
	view_rig_press(rig, "\x1b");
	assert_int_equal(cells(tl, true), 0);
}

static void test_a_filter_counts_and_lists_what_passes(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl = timeline_of(rig);
	char part[96], scan[320];
	double lead, other = 0;

	view_rig_press(rig, "\\^stage 1 back|nothing\r");
	assert_false(tl->filter.rough);
	lead = query_number(rig, "count(*)");
	for (int c = 0; c < 2; c++) {
		double number;

		snprintf(scan, sizeof(scan),
			 "SELECT count(*) FROM spans WHERE name LIKE 'stage 1 back%%' AND clock = "
			 "'%s' AND start_ns < %lld AND start_ns + dur_ns > %lld",
			 c ? "device" : "host", (long long)tl->clock[c].window.to,
			 (long long)tl->clock[c].window.from);
		number = view_rig_sql_real(rig, scan);
		if (c == view__lead(tl))
			assert_true(number == lead && number > 0);
		else
			other = number;
	}
	snprintf(part, sizeof(part), "filter ^stage 1 back|nothing: %.0f of ", lead + other);
	assert_shows(rig, part);
}

static void test_a_filter_may_be_of_a_category_or_say_what_not(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl = timeline_of(rig);
	const double all = query_number(rig, "count(*)");
	double stages;

	view_rig_press(rig, "\\^stage$\r");
	stages = query_number(rig, "count(*)");
	assert_true(stages > 0 && stages < all);
	assert_true(query_number(rig, "sum(category = 'stage')") == stages);
	view_rig_press(rig, "\\!^stage$\r");
	assert_true(query_number(rig, "count(*)") == all - stages);
	view_rig_press(rig, "\\no such name\r");
	assert_true(query_number(rig, "count(*)") == 0);
	assert_int_equal(cells(tl, false), 0);
	view_rig_press(rig, "\\(\r");
	assert_shows(rig, "filter: ");
	assert_int_equal(cells(tl, true), 0);
	for (int i = 0; i < VIEW_WAYS; i++)
		view_rig_press(rig, "v\\backward\r0+l");
}

/* A load that was stopped has not looked up the names: the statement stays one. */
static void test_the_statement_of_a_filter_that_was_not_loaded_runs(void **state)
{
	struct view_rig *rig = *state;
	const double all = query_number(rig, "count(*)");

	view_screen(VIEW_TIMELINE)->filter(timeline_of(rig), "backward");
	assert_true(query_number(rig, "count(*)") == all);
	view_rig_press(rig, "r");
	assert_true(query_number(rig, "count(*)") < all);
}

static void test_a_filter_on_buckets_says_that_it_is_rough(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "0\\backward\r");
	assert_true(timeline_of(rig)->filter.rough);
	assert_shows(rig, "about ");
	assert_shows(rig, "a cell by its most");
}

/* ---- sums ------------------------------------------------------------------------------------ */

static double cell(const struct report_table *table, int64_t row, const char *column)
{
	const struct report_cell *at =
		&table->cells[row * table->column_count + view_table_column(table, column)];

	return at->type == PROF_INT ? (double)at->integer : at->real;
}

/* The rows on the screen are the statement's. */
static void check_sums(struct view_rig *rig)
{
	const struct report_table *table = &timeline_of(rig)->sums.grid.table;

	assert_true(table->row_count > 0);
	assert_true(query_number(rig, "count(*)") == (double)table->row_count);
	for (int64_t i = 0; i < table->row_count; i++) {
		static const char *const columns[] = {"count", "total_ns", "share", "mean_ns",
						      "longest_ns"};
		const char *name = table->cells[i * table->column_count].text;

		for (size_t c = 0; c < ARRAY_LEN(columns); c++) {
			char what[160];

			snprintf(what, sizeof(what), "sum(CASE WHEN name = '%s' THEN %s END)", name,
				 columns[c]);
			assert_true(fabs(query_number(rig, what) - cell(table, i, columns[c])) <
				    1e-9);
		}
	}
}

static void test_sums_by_name_are_those_of_the_window(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl = timeline_of(rig);
	char scan[400];

	view_rig_press(rig, "bb");
	assert_shows(rig, "by name: IPU 0");
	assert_int_equal(tl->sums.bucket_ns, 0);
	assert_true(tl->sums.grid.table.row_count > 1);
	check_sums(rig);
	snprintf(scan, sizeof(scan),
		 "SELECT sum(min(start_ns + dur_ns, %lld) - max(start_ns, %lld)) FROM spans WHERE "
		 "clock = 'device' AND track LIKE '%%IPU 0' AND start_ns < %lld AND start_ns + "
		 "dur_ns > %lld",
		 (long long)tl->clock[1].window.to, (long long)tl->clock[1].window.from,
		 (long long)tl->clock[1].window.to, (long long)tl->clock[1].window.from);
	assert_true(query_number(rig, "sum(total_ns)") == view_rig_sql_real(rig, scan));
	view_rig_press(rig, "0");
	check_sums(rig);
	view_rig_press(rig, "+++l");
	check_sums(rig);
	view_rig_press(rig, "\\backward\r");
	assert_true(query_number(rig, "sum(name NOT LIKE '%backward%')") == 0 &&
		    tl->sums.grid.table.row_count > 0);
	view_rig_press(rig, "\x1b"
			    "b");
	assert_shows(rig, "the bubble as a whole");
	assert_hides(rig, "by name:");
}

static void test_sums_are_of_what_is_measured(void **state)
{
	struct view_rig *rig = *state;
	struct view_timeline *tl = timeline_of(rig);
	int64_t from;

	view_rig_press(rig, "bbx");
	from = tl->cursor.ns;
	for (int i = 0; i < 30; i++)
		view_rig_press(rig, ".");
	assert_shows(rig, "x and cursor");
	assert_int_equal(tl->sums.range.from, from);
	assert_int_equal(tl->sums.range.to, tl->cursor.ns);
	check_sums(rig);
	/* Backwards it is the same. */
	view_rig_press(rig, "xx");
	tl->cursor.ns = from;
	view_rig_press(rig, "r");
	assert_int_equal(tl->sums.range.from, from);
	check_sums(rig);
}

static void test_sums_of_very_many_spans_are_of_buckets(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl = timeline_of(rig);
	const struct report_table *table = &tl->sums.grid.table;
	double sum = 0, exact;

	view_rig_press(rig, "0bb");
	assert_shows(rig, "about: from buckets of ");
	assert_true(tl->sums.bucket_ns > 0);
	exact = query_number(rig, "sum(total_ns)");
	for (int64_t i = 0; i < table->row_count; i++)
		sum += cell(table, i, "total_ns");
	assert_true(fabs(sum / exact - 1) < 0.01);
	/* Closer they are exact. */
	for (int i = 0; i < 8 && tl->sums.bucket_ns > 0; i++)
		view_rig_press(rig, "+");
	assert_hides(rig, "about: from buckets");
	check_sums(rig);
}

static void test_sums_of_two_runs_stand_side_by_side(void **state)
{
	struct view_rig *rig = *state;
	const struct report_table *table = &timeline_of(rig)->sums.grid.table;

	view_rig_press(rig, "bb");
	assert_true(table->row_count > 1);
	assert_true(view_table_column(table, "total_ns_target") > 0);
	for (int64_t i = 0; i < table->row_count; i++)
		if (strncmp(table->cells[i * table->column_count].text, "stage 0", 7) == 0)
			assert_true(cell(table, i, "total_ns_diff") ==
				    cell(table, i, "total_ns_target") - cell(table, i, "total_ns"));
	view_rig_press(rig, "\\stage\rDD0+v");
}

static void test_any_size_shows_sums(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "bb\\stage\r");
	for (int width = 1; width < 300; width = width * 2 + 1)
		for (int height = 1; height < 100; height = height * 2 + 1)
			view_rig_size(rig, width, height);
	view_rig_press(rig, "vvvv0jx..b");
}

#define WITH(name, open) cmocka_unit_test_setup_teardown(name, open, view_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(test_what_a_filter_leaves_out_is_a_thin_line, setup),
		WITH(test_a_filter_counts_and_lists_what_passes, setup),
		WITH(test_a_filter_may_be_of_a_category_or_say_what_not, setup),
		WITH(test_the_statement_of_a_filter_that_was_not_loaded_runs, setup),
		WITH(test_a_filter_on_buckets_says_that_it_is_rough, setup_large),
		WITH(test_sums_by_name_are_those_of_the_window, setup),
		WITH(test_sums_are_of_what_is_measured, setup),
		WITH(test_sums_of_very_many_spans_are_of_buckets, setup_large),
		WITH(test_sums_of_two_runs_stand_side_by_side, setup_pair),
		WITH(test_any_size_shows_sums, setup),
		WITH(test_any_size_shows_sums, setup_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
