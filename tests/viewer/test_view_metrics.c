/*
 * The screen Metrics: what it lists and draws is what was recorded, however much that is.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "support/report_sample.h"
#include "support/view_fixture.h"
#include "support/view_fixture_metrics.h"
#include "support/view_rig.h"
#include "viewer/metrics/view_metrics_internal.h"
#include "viewer/metrics/view_metrics_read.h"

static const struct view_fixture_metrics usual = {3, 100, 1, 0};

static void open_on(struct view_rig *rig, const struct view_fixture_metrics *params,
		    const struct view_fixture_metrics *target)
{
	assert_true(view_fixture_metrics_write(rig->path, params));
	if (target)
		assert_true(view_fixture_metrics_write(rig->other, target));
	view_rig_start(rig, target, 100, 30, "9");
}

static int setup(void **state)
{
	view_rig_new(state);
	return 0;
}

static struct view_metrics *screen_of(struct view_rig *rig)
{
	return rig->session.state[VIEW_METRICS];
}

static void test_the_list_is_what_the_sums_say(void **state)
{
	struct view_rig *rig = *state;

	open_on(rig, &usual, NULL);
	assert_shows(rig, "train    loss     step");
	assert_shows(rig, "evaluate accuracy epoch");
	assert_shows_real(rig, "SELECT last_value FROM metric_sums WHERE per_step = 1");
	assert_shows_real(rig, "SELECT least FROM metric_sums WHERE per_step = 1");
	assert_shows_real(rig, "SELECT greatest FROM metric_sums WHERE name = 'accuracy' AND "
			       "mode = 'evaluate'");
	assert_shows(rig, "300 of 300 rows shown");
}

static void test_the_list_and_its_pictures_have_the_whole_width(void **state)
{
	struct view_rig *rig = *state;
	const struct view_metrics *screen;

	open_on(rig, &usual, NULL);
	screen = screen_of(rig);
	for (int width = 64; width < 140; width += 7) {
		const struct view_rect *list = &screen->areas.list, *sparks = &screen->areas.sparks;

		view_rig_size(rig, width, 30);
		assert_int_equal(sparks->x, list->width + 1);
		assert_int_equal(sparks->x + sparks->width, width);
		assert_int_equal(list->width, view_grid_used(&screen->grid));
		assert_shows(rig, " trend");
	}
	/* Nothing is cut where there are blank columns. */
	view_rig_size(rig, 200, 30);
	assert_shows(rig, "evaluate accuracy");
}

static void test_the_cursor_reads_the_curve(void **state)
{
	struct view_rig *rig = *state;
	struct view_place place;

	open_on(rig, &usual, NULL);
	assert_shows(rig, "step 299: ");
	assert_shows_real(rig, "SELECT value FROM metrics WHERE step = 299");
	view_rig_press(rig, "g");
	assert_shows(rig, "step 0: 1 ");
	/* The mark stands in the chart's first column, where the axis says 1. */
	assert_shows(rig, "1 ┤▼");
	view_rig_press(rig, "lll");
	assert_true(view_metrics_ops.place(screen_of(rig), &place));
	assert_string_equal(place.metric, "loss");
	assert_string_equal(place.mode, "train");
	assert_int_equal(place.epoch, 1);
	assert_true(place.step > 0 && place.step < 20);
	assert_int_equal(place.time_ns, place.step * 1000);
	assert_string_equal(place.clock, "host");
	view_rig_press(rig, "G");
	assert_true(isnan(screen_of(rig)->cursor));
	assert_hides(rig, "▼");
}

static void test_zooming_shows_less_and_all_again(void **state)
{
	struct view_rig *rig = *state;

	open_on(rig, &usual, NULL);
	view_rig_press(rig, "g+");
	assert_shows(rig, "150 of 300 rows shown");
	view_rig_press(rig, ")");
	assert_true(screen_of(rig)->from > 100);
	view_rig_press(rig, "((((");
	assert_true(screen_of(rig)->from == 0);
	view_rig_press(rig, "-");
	assert_shows(rig, "300 of 300 rows shown");
	view_rig_press(rig, "++++++++++++++++");
	assert_true(screen_of(rig)->curves[0].count >= 1);
	view_rig_press(rig, "0");
	assert_shows(rig, "300 of 300 rows shown");
}

static void test_what_a_metric_has_it_is_drawn_over(void **state)
{
	struct view_rig *rig = *state;

	open_on(rig, &usual, NULL);
	assert_int_equal(screen_of(rig)->x, VIEW_METRICS_STEP);
	view_rig_press(rig, "v");
	assert_int_equal(screen_of(rig)->x, VIEW_METRICS_TIME);
	assert_shows(rig, "host time");
	view_rig_press(rig, "v");
	assert_int_equal(screen_of(rig)->x, VIEW_METRICS_ORDER);
	view_rig_press(rig, "vs");
	assert_int_equal(screen_of(rig)->x, VIEW_METRICS_EPOCH);
	assert_shows(rig, "epoch 3: ");
	/* Evaluations have neither. */
	view_rig_press(rig, "S");
	view_rig_press(rig, "S");
	assert_shows(rig, "accuracy, evaluate, by epoch: host time");
	assert_int_equal(screen_of(rig)->x, VIEW_METRICS_TIME);
}

static void test_means_are_means(void **state)
{
	const struct view_fixture_metrics noisy = {1, 50, 1, 7};
	struct view_rig *rig = *state;
	const struct view_metrics_curve *curve;
	double sum = 0;

	open_on(rig, &noisy, NULL);
	curve = &screen_of(rig)->curves[0];
	assert_shows(rig, "13 NaN or Inf (!)");
	assert_shows(rig, "!");
	/* The last step's is none. */
	assert_shows(rig, "0  nan");
	/* It opens smoothed, by means of ten. Steps 31 .. 40: 35 is NaN, 36 is Inf. */
	for (int step = 31; step <= 40; step++)
		if (step != 35 && step != 36)
			sum += 1.0 / (1 + step);
	assert_close(curve->smooth[40], sum / 8, 1e-12);
	view_rig_press(rig, "bb");
	assert_null(curve->smooth);
	view_rig_press(rig, "b");
	assert_non_null(curve->smooth);
}

/* The mean of ten epochs would say of three that they are one. */
static void test_few_points_stay_as_they_are(void **state)
{
	const struct view_fixture_metrics brief = {1, 20, 20, 0};
	struct view_rig *rig = *state;

	open_on(rig, &brief, NULL);
	assert_null(screen_of(rig)->curves[0].smooth);
	view_rig_press(rig, "bb");
	assert_null(screen_of(rig)->curves[0].smooth);
	view_rig_press(rig, "b");
	assert_non_null(screen_of(rig)->curves[0].smooth);
}

static void test_a_long_run_is_sampled_and_zoomed_into(void **state)
{
	const struct view_fixture_metrics longer = {5, 20000, 1000, 0};
	struct view_rig *rig = *state;
	struct view_metrics *screen;

	open_on(rig, &longer, NULL);
	screen = screen_of(rig);
	assert_true(screen->lists[0].sampled);
	assert_true(screen->curves[0].count < 25000);
	assert_shows(rig, "of 100,000 rows shown");
	/* Both ends are among them, and every epoch. */
	assert_close(screen->curves[0].values[0], 1000, 1e-12);
	assert_close(screen->curves[0].values[screen->curves[0].count - 1], 1000.0 / 100000, 1e-12);
	view_rig_press(rig, "j");
	assert_shows(rig, "5 of 5 rows shown");
	/* A window of it is whole again. */
	view_rig_press(rig, "kg++++");
	assert_true(screen->curves[0].count > 6000);
	for (int64_t i = 1; i < screen->curves[0].count; i++)
		assert_true(screen->curves[0].at[i] == screen->curves[0].at[i - 1] + 1);
}

static void test_two_runs_are_two_curves(void **state)
{
	const struct view_fixture_metrics target = {4, 100, 3, 0};
	struct view_rig *rig = *state;
	const struct view_metrics *screen;
	const struct report_cell *cell;

	open_on(rig, &usual, &target);
	screen = screen_of(rig);
	assert_int_equal(screen->curves[0].count, 300);
	assert_int_equal(screen->curves[1].count, 400);
	assert_shows(rig, "Source");
	assert_shows(rig, "Target");
	/* Trends stand beside each other. */
	assert_line_shows(rig, "Diff> Source ", " Target");
	assert_true(screen->sparks[0][0].count > 0 && screen->sparks[1][0].count > 0);
	assert_true(screen->sparks[1][0].points[0].value > screen->sparks[0][0].points[0].value);
	cell = view_grid_cell(&screen->grid, "greatest_diff");
	assert_non_null(cell);
	assert_close(cell->real, 2.0, 1e-12);
	view_rig_press(rig, "D");
	assert_true(screen->grid.count > 0);
	assert_true(screen->grid.count < screen->grid.table.row_count ||
		    screen->grid.table.row_count == 4);
}

/* What one run has not got, it does not borrow from another moment. */
static void test_a_run_that_ended_has_no_value(void **state)
{
	const struct view_fixture_metrics shorter = {2, 100, 3, 0};
	struct view_rig *rig = *state;
	struct view_place place;
	double at;

	open_on(rig, &usual, &shorter);
	assert_shows(rig, "step 299: ");
	assert_line_shows(rig, "step 299: ", "Source 0.00333333", "Target - ");
	assert_null(view__metrics_point(screen_of(rig), 1, &at));
	view_rig_press(rig, "g");
	assert_line_shows(rig, "step 0: ", "Source 1 ", "Target 3 ");
	/* Host times are never the same: each value has its own. */
	view_rig_press(rig, "v");
	assert_line_shows(rig, "host time ", "Source 0.00333333", "Target 0.015 at 199 us");
	/* The other way round the longer run is the one that the cursor is in. */
	view_rig_close(rig);
	view_rig_open(rig, rig->other, rig->path, 100, 30);
	view_rig_press(rig, "9");
	assert_line_shows(rig, "step 299: ", "Source - ", "Target 0.00333333");
	view_rig_press(rig, "h");
	assert_line_shows(rig, "step 296: ", "Source - ", "Target 0.003367");
	assert_true(view_metrics_ops.place(screen_of(rig), &place));
	assert_int_equal(place.step, IPS_NULL);
}

/* In little room the values are what stays. */
static void test_a_narrow_heading_has_the_values(void **state)
{
	const struct view_fixture_metrics shorter = {2, 100, 3, 0};
	struct view_rig *rig = *state;

	open_on(rig, &usual, &shorter);
	view_rig_size(rig, 40, 12);
	view_rig_press(rig, "g");
	assert_line_shows(rig, "step 0: ", "S 1 ", "T 3 ");
	assert_line_shows(rig, " mode ", "last S", "last T");
	assert_line_shows(rig, "train ", "0.00333333", "0.015 ");
	view_rig_press(rig, "G");
	assert_line_shows(rig, "step 299: ", "S 0.003333 ", "T - ");
	view_rig_close(rig);
	view_rig_open(rig, rig->path, NULL, 40, 12);
	view_rig_press(rig, "9");
	assert_line_shows(rig, "loss, train, step 299: ", "0.00333333 ");
}

/* The curve is said as completely as there is room for beside its value. */
static void test_the_heading_says_as_much_as_fits(void **state)
{
	static const char *const whats[] = {" loss, train, by step: ", " loss, train, ", " loss, ",
					    " "};
	static const char value[] = "step 299: 0.00333333 ";
	struct view_rig *rig = *state;
	const struct view_canvas *canvas = &rig->session.canvas;
	int headings[ARRAY_LEN(whats)] = {0};

	open_on(rig, &usual, NULL);
	for (int width = 24; width <= 120; width++) {
		const int room = width - 1 - (int)strlen(value);
		char expected[64], cells[128];
		size_t what = 0;
		int rows = 0;

		while (what + 1 < ARRAY_LEN(whats) && (int)strlen(whats[what]) > room)
			what++;
		snprintf(expected, sizeof(expected), "%s%s", whats[what], value);
		view_rig_size(rig, width, 24);
		if (rig->session.frame.too_small)
			continue;
		for (int y = 0; y < canvas->height; y++) {
			const struct view_cell *row = &canvas->cells[y * width];

			for (int x = 0; x < width; x++)
				cells[x] = row[x].character < 128 ? (char)row[x].character : '?';
			cells[width] = '\0';
			rows += strncmp(cells + 1, expected, strlen(expected)) == 0;
		}
		if (rows != 1)
			fail_msg("%d columns: \"%s\" is in %d rows", width, expected, rows);
		headings[what]++;
	}
	assert_true(headings[0] > 0 && headings[1] > 0);
}

static void test_a_run_that_exploded_leaves_the_other_to_be_seen(void **state)
{
	const struct view_fixture_metrics exploded = {3, 100, 1e9, 0};
	struct view_rig *rig = *state;
	const struct report_axis *y;

	open_on(rig, &usual, &exploded);
	y = &screen_of(rig)->axis_y;
	assert_true(y->logarithmic);
	assert_shows(rig, "log axis");
	assert_shows(rig, "1e+08 ");
	/* Both curves on the same axis, from its foot to its top. */
	assert_true(y->low < 0.01 && y->high > 9e8);
	view_rig_press(rig, "t");
	assert_shows(rig, "a linear axis");
	assert_false(y->logarithmic);
	assert_hides(rig, "log");
	/* An accuracy spans less. */
	view_rig_press(rig, "tjj");
	assert_false(y->logarithmic);
	view_rig_press(rig, "t");
	assert_shows(rig, "a logarithmic axis");
	assert_true(y->logarithmic);
}

static void test_places_lead_to_their_curve(void **state)
{
	struct view_rig *rig = *state;
	struct view_place place;
	char text[128];
	double at;

	open_on(rig, &usual, NULL);
	view_place_clear(&place);
	assert_false(view_metrics_ops.offers(&place, text, sizeof(text)));
	view_place_text(place.metric, "loss");
	place.step = 42;
	assert_true(view_metrics_ops.offers(&place, text, sizeof(text)));
	assert_string_equal(text, "loss at step 42");
	assert_int_equal(view_metrics_ops.go(screen_of(rig), &rig->session.context, &place, NULL),
			 ST_OK);
	assert_int_equal(view__metrics_point(screen_of(rig), 0, &at)->step, 42);
	view_place_text(place.metric, "nothing");
	assert_int_equal(view_metrics_ops.go(screen_of(rig), &rig->session.context, &place, NULL),
			 ST_NOTFOUND);
}

static void test_the_query_finds_the_points(void **state)
{
	struct view_rig *rig = *state;
	struct str query = {0};
	char *count, sql[1024];
	char *second;

	open_on(rig, &usual, NULL);
	view_metrics_ops.query(screen_of(rig), &rig->session.context, &query);
	assert_false(query.failed);
	second = strstr(query.text, ";\n");
	assert_non_null(second);
	snprintf(sql, sizeof(sql), "SELECT count(*) FROM (%.*s)", (int)strlen(second + 2) - 2,
		 second + 2);
	count = view_rig_sql_text(rig, sql);
	assert_string_equal(count, "300");
	free(count);
	str_free(&query);
}

static void test_any_size_and_no_metrics_at_all(void **state)
{
	static const int widths[] = {1, 40, 63, 64, 80, 139, 140, 250, 300};
	static const int heights[] = {1, 10, 11, 12, 24, 43, 60, 100};
	const struct view_fixture_metrics odd = {2, 3, INFINITY, 0};
	struct view_rig *rig = *state;

	open_on(rig, &odd, NULL);
	for (int pass = 0; pass < 2; pass++) {
		for (size_t w = 0; w < ARRAY_LEN(widths); w++)
			for (size_t h = 0; h < ARRAY_LEN(heights); h++) {
				rig->session.canvas.ascii = (w + h) % 2 == 0;
				rig->session.canvas.plain = (w + h) % 3 == 0;
				view_rig_size(rig, widths[w], heights[h]);
				view_rig_press(rig, "ljv\r+h-b0k");
			}
		if (pass == 1)
			break;
		view_rig_close(rig);
		snprintf(rig->path, sizeof(rig->path), "%s/empty.db", rig->folder);
		report_sample_write_empty(rig->path);
		view_rig_open(rig, rig->path, NULL, 80, 24);
		view_rig_press(rig, "9");
		assert_shows(rig, "No metrics have been recorded");
	}
}

static void test_no_memory_is_said_and_got_over(void **state)
{
	struct view_rig *rig = *state;
	struct err err;

	open_on(rig, &usual, NULL);
	for (long n = 0;; n++) {
		enum status status;
		bool failed;

		support_fail_alloc(n);
		status = view_metrics_ops.load(screen_of(rig), &rig->session.context, true, &err);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		if (!failed) {
			assert_int_equal(status, ST_OK);
			break;
		}
		assert_true(status == ST_NOMEM || status == ST_OK);
	}
	view_rig_size(rig, 100, 30);
	assert_shows(rig, "300 of 300 rows shown");
}

static void test_news_keep_the_place(void **state)
{
	struct view_rig *rig = *state;
	struct view_metrics *screen;

	open_on(rig, &usual, NULL);
	screen = screen_of(rig);
	view_rig_press(rig, "g+l");
	{
		const double from = screen->from, to = screen->to, cursor = screen->cursor;

		view_rig_press(rig, "r");
		assert_true(screen->from == from && screen->to == to);
		assert_true(screen->cursor == cursor);
	}
	rig->session.source.state = VIEW_RECORDING;
	view_rig_press(rig, "F");
	assert_true(screen->to == 299);
}

static void test_a_trend_is_not_a_comparison(void **state)
{
	struct view_rig *rig = *state;

	open_on(rig, &usual, NULL);
	view_rig_size(rig, 120, 30);
	assert_shows(rig, " falling, mean from 0.00539");
	assert_line_shows(rig, " falling, mean from 0.00539", " to 0.0038");
	assert_hides(rig, " > 0.");
}

/* Noise about a level is level; what goes on beyond it falls or rises. */
static void test_a_trend_is_more_than_noise(void **state)
{
	struct view_metric_point points[64];
	struct view_metric metric = {.points = points, .point_count = 64};
	static const double slopes[] = {-0.01, 0, 0.01};
	static const char *const texts[] = {"falling", "level", "rising"};

	(void)state;
	for (size_t s = 0; s < 3; s++) {
		for (int i = 0; i < 64; i++)
			points[i].value = 1 + slopes[s] * i + (i % 2 ? 0.02 : -0.02);
		assert_string_equal(view_trend_text(view_metrics_trend(&metric).way), texts[s]);
	}
	/* It falls at the end, and is above its first value all the same; the noise is no rise. */
	assert_true(view_metrics_trend(&metric).risen);
	for (int i = 0; i < 64; i++)
		points[i].value = 36 - 0.1 * i + (i % 2 ? 0.02 : -0.02);
	assert_false(view_metrics_trend(&metric).risen);
	points[0].value = 2.8;
	assert_string_equal(view_trend_text(view_metrics_trend(&metric).way), "falling");
	assert_true(view_metrics_trend(&metric).risen);
	for (int i = 0; i < 64; i++)
		points[i].value = i % 2 ? 1.02 : 0.98;
	assert_false(view_metrics_trend(&metric).risen);
	points[60].value = NAN;
	assert_int_equal(view_metrics_trend(&metric).way, VIEW_TREND_UNKNOWN);
	metric.point_count = 2;
	assert_int_equal(view_metrics_trend(&metric).way, VIEW_TREND_RISING);
	assert_true(view_metrics_trend(&metric).last == points[1].value);
	metric.point_count = 1;
	assert_int_equal(view_metrics_trend(&metric).way, VIEW_TREND_UNKNOWN);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, view_rig_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_trend_is_more_than_noise),
		TEST(test_the_list_is_what_the_sums_say),
		TEST(test_the_list_and_its_pictures_have_the_whole_width),
		TEST(test_the_cursor_reads_the_curve),
		TEST(test_zooming_shows_less_and_all_again),
		TEST(test_what_a_metric_has_it_is_drawn_over),
		TEST(test_means_are_means),
		TEST(test_few_points_stay_as_they_are),
		TEST(test_a_long_run_is_sampled_and_zoomed_into),
		TEST(test_two_runs_are_two_curves),
		TEST(test_a_run_that_ended_has_no_value),
		TEST(test_a_narrow_heading_has_the_values),
		TEST(test_a_trend_is_not_a_comparison),
		TEST(test_the_heading_says_as_much_as_fits),
		TEST(test_a_run_that_exploded_leaves_the_other_to_be_seen),
		TEST(test_places_lead_to_their_curve),
		TEST(test_the_query_finds_the_points),
		TEST(test_any_size_and_no_metrics_at_all),
		TEST(test_no_memory_is_said_and_got_over),
		TEST(test_news_keep_the_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
