/*
 * The page of HTML: curves keep what they were made of, axes have round steps, texts of a run
 * cannot become markup, and a page is written of every kind of file.
 */
#include "support/report_sample.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "reports/html/report_html.h"
#include "reports/import/report_import.h"

static char folder[SUPPORT_PATH_SIZE];

static int setup(void **state)
{
	(void)state;
	support_tempdir(folder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	support_tempdir_remove(folder);
	return 0;
}

/* ---- curves ---------------------------------------------------------------------------------- */

static double value_at(size_t i)
{
	return sin((double)i * 0.37) * (double)(i % 97);
}

static void test_a_curve_of_any_length_keeps_mean_and_range(void **state)
{
	static const size_t lengths[] = {0, 1, 2, 479, 480, 481, 961, 10007};
	static struct html_curve curve;

	(void)state;
	for (size_t l = 0; l < ARRAY_LEN(lengths); l++) {
		double sum = 0, low = INFINITY, high = -INFINITY, points_sum = 0;
		double points_low = INFINITY, points_high = -INFINITY;
		int64_t held = 0;

		html_curve_begin(&curve);
		for (size_t i = 0; i < lengths[l]; i++) {
			html_curve_add(&curve, (double)i, value_at(i));
			sum += value_at(i);
			low = fmin(low, value_at(i));
			high = fmax(high, value_at(i));
		}
		assert_true(curve.count <= HTML_POINTS);
		assert_true(lengths[l] < 2 || curve.count >= HTML_POINTS / 2 ||
			    curve.count == lengths[l]);
		for (size_t i = 0; i < curve.count; i++) {
			assert_true(curve.points[i].x == (double)held);
			held += curve.points[i].held;
			points_sum += curve.points[i].sum;
			points_low = fmin(points_low, curve.points[i].low);
			points_high = fmax(points_high, curve.points[i].high);
		}
		assert_int_equal(held, lengths[l]);
		assert_true(fabs(points_sum - sum) <= 1e-9 * (1 + fabs(sum)));
		assert_true(points_low == low && points_high == high);
	}
}

static void test_what_is_not_finite_is_a_gap(void **state)
{
	static struct html_curve curve;
	static const double values[] = {1, NAN, INFINITY, -INFINITY, 1e301, 3};
	struct html_series series;

	(void)state;
	html_curve_begin(&curve);
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		html_curve_add(&curve, (double)i, values[i]);
	html_curve_series(&curve, "x", true, &series);
	assert_int_equal(series.count, ARRAY_LEN(values));
	assert_true(series.y[0] == 1 && series.y[5] == 3);
	for (size_t i = 1; i < 5; i++)
		assert_true(isnan(series.y[i]) && isnan(series.low[i]) && isnan(series.high[i]));
}

static int count_of(const char *text, const char *part)
{
	int count = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		count++;
	return count;
}

/* ---- charts ---------------------------------------------------------------------------------- */

static const char *written(const char *name, void (*write)(struct report_html *page))
{
	static char path[SUPPORT_PATH_SIZE + 64];
	struct report_sink sink;
	struct err err = {0};
	struct report_html page = {.out = &sink, .err = &err};

	snprintf(path, sizeof(path), "%s/%s.html", folder, name);
	assert_int_equal(report_sink_open(&sink, path, &err), ST_OK);
	write(&page);
	assert_int_equal(report_sink_close(&sink, ST_OK), ST_OK);
	return path;
}

static void write_exploding(struct report_html *page)
{
	static const double x[] = {0, 1, 2, 3, 4}, y[] = {0.014, 7e4, 3e16, NAN, NAN};
	const struct html_series series = {.name = "std", .x = x, .y = y, .count = ARRAY_LEN(x)};

	html_chart(page, &(struct html_chart){.title = "a gradient",
					      .x_name = "update",
					      .note = "2 rows with NaN",
					      .quantity = REPORT_REAL,
					      .series = &series,
					      .count = 1});
}

/* Every value has a height of its own, and what is no number is marked. */
static void test_an_exploding_curve_does_not_lie_on_zero(void **state)
{
	char *text = support_read_file(written("exploding", write_exploding), NULL);
	const char *line = strstr(text, "class=\"line s0\" d=\"M");
	float x[3], y[3];

	(void)state;
	assert_contains(text, "a gradient, log axis</figcaption>");
	assert_non_null(line);
	assert_int_equal(sscanf(line, "class=\"line s0\" d=\"M%f %fh.1L%f %fL%f %f\"", &x[0], &y[0],
				&x[1], &y[1], &x[2], &y[2]),
			 6);
	assert_true(y[0] > y[1] + 30 && y[1] > y[2] + 30);
	assert_int_equal(count_of(strstr(text, "class=\"gaps\""), "v-6"), 2);
	assert_contains(text, "2 rows with NaN</p>\n</figure>");
	free(text);
}

static void write_even(struct report_html *page)
{
	static const double x[] = {0, 10}, y[] = {1, 3};
	const struct html_series series = {.name = "loss", .x = x, .y = y, .count = ARRAY_LEN(x)};

	html_chart(page, &(struct html_chart){.title = "loss",
					      .x_name = "step",
					      .quantity = REPORT_REAL,
					      .series = &series,
					      .count = 1});
}

/* At most eight ticks from 0 to 10 are one every 2; at most five from 1 to 3, one every 0.5. */
static void test_axes_have_their_ticks_and_no_more(void **state)
{
	static const char *const across[] = {">0<", ">2<", ">4<", ">6<", ">8<", ">10<"};
	static const char *const up[] = {">1<", ">1.5<", ">2<", ">2.5<", ">3<"};
	char *text = support_read_file(written("even", write_even), NULL), *line;
	size_t ticks = 0, grid = 0;

	(void)state;
	for (line = text; (line = strstr(line, "<text class=\"mid\"")); line++, ticks++) {
		assert_true(ticks < ARRAY_LEN(across));
		assert_int_equal(strncmp(strchr(line, '>'), across[ticks], strlen(across[ticks])),
				 0);
	}
	assert_int_equal(ticks, ARRAY_LEN(across));
	for (line = text; (line = strstr(line, "class=\"grid\"")); line++, grid++) {
		assert_true(grid < ARRAY_LEN(up));
		assert_int_equal(
			strncmp(strchr(strstr(line, "<text"), '>'), up[grid], strlen(up[grid])), 0);
	}
	assert_int_equal(grid, ARRAY_LEN(up));
	free(text);
}

static void write_nothing(struct report_html *page)
{
	static const double x[] = {0, 1}, y[] = {NAN, INFINITY};
	const struct html_series series = {.name = "loss", .x = x, .y = y, .count = ARRAY_LEN(x)};

	html_chart(page, &(struct html_chart){.title = "loss",
					      .x_name = "step",
					      .note = "NaN or infinite: 2 of 2 values",
					      .quantity = REPORT_REAL,
					      .series = &series,
					      .count = 1});
}

static void test_without_a_number_there_is_a_sentence_and_no_picture(void **state)
{
	char *text = support_read_file(written("nothing", write_nothing), NULL);

	(void)state;
	assert_null(strstr(text, "<svg"));
	assert_contains(text, "NaN or infinite: 2 of 2 values");
	free(text);
}

/* From one point to many, from minus to plus, of all sizes, with gaps and bands, of one series and
 * more than there are colours. */
static const struct {
	double x, x_by, y, y_by, bend; /* the i-th: x + i * x_by, y + i * y_by + i * i * bend */
	size_t count;
	int series;
	bool range, area, from_zero;
	enum report_quantity quantity;
} charts[] = {
	{0, 1, 5, 0, 0, 1, 1, false, false, false, REPORT_REAL},
	{0, 1, 5, 1, 0, 2, 1, false, false, false, REPORT_REAL},
	{0, 1, -5, 1, 0, 11, 1, true, false, false, REPORT_REAL},
	{3, 7, 0, 0, 0, 9, 1, true, false, false, REPORT_REAL},
	{0, 1000, 1e-9, 1e-9, 0, 20, 2, true, false, false, REPORT_REAL},
	{0, 1e6, 1e9, 1e7, 1e9, 30, 7, false, false, false, REPORT_REAL},
	{-10, 1, 1e-3, 0, 1e3, 12, 1, true, false, false, REPORT_REAL},
	{0, 1, 0, 4096, 0, 8, 2, false, true, true, REPORT_BYTES},
	{0, 1, 1024, 0, 1 << 20, 16, 1, false, true, true, REPORT_BYTES},
	{0, 10, 500, 250, 7, 13, 1, false, false, true, REPORT_NS},
	{0, 10, 1.5e9, 2.5e8, 0, 13, 1, true, false, false, REPORT_NS},
	{0, 1, 0.1, 0.05, 0, 10, 1, true, false, false, REPORT_FRACTION},
	{0, 1, 1, 2, 3, 40, 1, true, true, false, REPORT_COUNT},
	{5, 0, 1, 1, 0, 4, 1, false, false, false, REPORT_COUNT},
	{0, 1, -1e-3, 0, -1e4, 9, 3, true, false, false, REPORT_REAL},
	{0, 1, 99.9, 0.01, 0, 5, 1, false, false, false, REPORT_REAL},
};

static void write_charts(struct report_html *page)
{
	double x[40], y[7][40], low[7][40], high[7][40];

	for (size_t c = 0; c < ARRAY_LEN(charts); c++) {
		struct html_series series[7];

		for (int s = 0; s < charts[c].series; s++) {
			series[s] = (struct html_series){.name = "a & b",
							 .x = x,
							 .y = y[s],
							 .low = charts[c].range ? low[s] : NULL,
							 .high = charts[c].range ? high[s] : NULL,
							 .count = charts[c].count,
							 .area = charts[c].area};
			for (size_t i = 0; i < charts[c].count; i++) {
				const double at = (double)i;

				x[i] = charts[c].x + at * charts[c].x_by;
				y[s][i] = (charts[c].y + at * charts[c].y_by +
					   at * at * charts[c].bend) *
					  (1 + s);
				low[s][i] = y[s][i] - (double)(i % 3);
				high[s][i] = y[s][i] + (double)(i % 2);
				if (i % 8 == 6)
					y[s][i] = low[s][i] = NAN;
			}
		}
		html_chart(page, &(struct html_chart){.title = "chart",
						      .x_name = "x",
						      .note = c % 2 ? "note" : NULL,
						      .quantity = charts[c].quantity,
						      .from_zero = charts[c].from_zero,
						      .series = series,
						      .count = charts[c].series});
	}
}

/* The digest of each chart. */
static void print_charts(FILE *out)
{
	char *text = support_read_file(written("charts", write_charts), NULL);

	for (char *at = text, *end; (end = strstr(at, "</figure>")); at = end + 1)
		fprintf(out, "%016llx\n",
			(unsigned long long)support_digest_text(SUPPORT_DIGEST, at,
								(size_t)(end - at)));
	free(text);
}

static void test_charts_of_all_ranges_are_the_golden_ones(void **state)
{
	(void)state;
	support_check_golden("report_charts.txt", print_charts);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static char *page_of(const char *database)
{
	struct report_export_request request = {.path = database};
	struct report_sink sink;
	char path[SUPPORT_PATH_SIZE + 64];
	struct err err = {0};
	char *text;

	snprintf(path, sizeof(path), "%s/page.html", folder);
	assert_int_equal(prof_db_open(&request.db, database, &err), ST_OK);
	assert_int_equal(report_sink_open(&sink, path, &err), ST_OK);
	assert_int_equal(report_sink_close(&sink, report_html_write(&request, &sink, &err)), ST_OK);
	prof_db_close(request.db);
	text = support_read_file(path, NULL);
	return text;
}

static void assert_whole(const char *text)
{
	static const char *const elements[] = {"svg", "figure", "section", "table", "g",
					       "div", "title",  "text",    "pre"};
	char open[32], spaced[32], close[32];

	for (size_t i = 0; i < ARRAY_LEN(elements); i++) {
		snprintf(open, sizeof(open), "<%s>", elements[i]);
		snprintf(spaced, sizeof(spaced), "<%s ", elements[i]);
		snprintf(close, sizeof(close), "</%s>", elements[i]);
		assert_int_equal(count_of(text, open) + count_of(text, spaced),
				 count_of(text, close));
	}
	assert_contains(text, "</html>\n");
	/* Nothing is fetched: the one address is a name space. */
	assert_int_equal(count_of(text, "http"), count_of(text, "http://www.w3.org/2000/svg"));
	assert_null(strstr(text, "src="));
	assert_null(strstr(text, "@import"));
	assert_null(strstr(text, "url("));
	assert_null(strstr(text, "nan\""));
}

static void test_a_page_is_whole_and_twice_the_same(void **state)
{
	char path[SUPPORT_PATH_SIZE + 64];
	char *first, *second;

	(void)state;
	snprintf(path, sizeof(path), "%s/run.db", folder);
	report_sample_write(path);
	first = page_of(path);
	second = page_of(path);
	assert_string_equal(first, second);
	assert_whole(first);
	assert_contains(first, "Device (simulated)");
	assert_contains(first, "Host (measured)");
	assert_contains(first, "class=\"heat\"");
	assert_contains(first, "live bytes by program step");
	assert_contains(first, "train loss by step");
	free(first);
	free(second);
}

/* "F3" in the middle of its rectangle; one that is too narrow to be seen is widened a little. */
static void test_work_has_its_name_in_its_middle(void **state)
{
	char path[SUPPORT_PATH_SIZE + 64], *text, *work;
	bool lanes[1000] = {false}; /* by the height of a work's name */
	int count = 0, named = 0;

	(void)state;
	snprintf(path, sizeof(path), "%s/names.db", folder);
	report_sample_write(path);
	text = page_of(path);
	for (work = text; (work = strstr(work, "<g class=\"w\"")); work++, count++) {
		int height;
		const char *rect = strstr(work, " x=\""), *name = strstr(work, "<text");
		float x, width, middle;
		int y;

		assert_int_equal(sscanf(rect, " x=\"%f\" y=\"%d\" width=\"%f\"", &x, &y, &width),
				 3);
		assert_int_equal(sscanf(strstr(name, " x="), " x=\"%f\"", &middle), 1);
		assert_int_equal(sscanf(strstr(name, " y="), " y=\"%d\"", &height), 1);
		assert_in_range(height, 0, ARRAY_LEN(lanes) - 1);
		lanes[height] = true;
		assert_true(middle > x - 0.02F && middle < x + width + 0.02F);
		if (width > 0.5F)
			assert_true(fabsf(middle - (x + width / 2)) < 0.02F);
	}
	assert_true(count > 0);
	/* An IPU's name is at the height of its works'. */
	for (work = text; (work = strstr(work, "<text class=\"end\"")); work++) {
		int height;

		if (sscanf(strstr(work, " y="), " y=\"%d\">IPU", &height) != 1 ||
		    strncmp(strchr(work, '>'), ">IPU ", 5) != 0)
			continue;
		assert_in_range(height, 0, ARRAY_LEN(lanes) - 1);
		assert_true(lanes[height]);
		named++;
	}
	assert_true(named > 1);
	free(text);
}

static void test_files_without_an_end_or_rows_have_pages(void **state)
{
	static const char *const absent[] = {"\"pipeline\"", "\"memory\"",    "\"liveness\"",
					     "\"metrics\"",  "\"tensors\"",   "\"stages\"",
					     "\"timeline\"", "\"operations\""};
	char path[SUPPORT_PATH_SIZE + 64];
	char *text;

	(void)state;
	snprintf(path, sizeof(path), "%s/killed.db", folder);
	report_sample_write_killed(path);
	text = page_of(path);
	assert_whole(text);
	free(text);

	snprintf(path, sizeof(path), "%s/empty.db", folder);
	report_sample_write_empty(path);
	text = page_of(path);
	assert_whole(text);
	/* What was not recorded has no section. */
	assert_contains(text, "<section id=\"glance\">");
	assert_contains(text, "<section id=\"facts\">");
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		assert_null(strstr(text, absent[i]));
	free(text);
}

/* A trace of two threads, of which one has two levels: a name and a line for each thread, and no
 * more, at the height of its first level. */
static void test_a_timeline_has_a_lane_for_each_thread(void **state)
{
	static const char trace[] =
		"[{\"ph\":\"X\",\"ts\":0,\"dur\":8,\"tid\":1,\"name\":\"outer\"},"
		"{\"ph\":\"X\",\"ts\":1,\"dur\":2,\"tid\":1,\"name\":\"inner\"},"
		"{\"ph\":\"X\",\"ts\":2,\"dur\":3,\"tid\":2,\"name\":\"other\"}]";
	char json[SUPPORT_PATH_SIZE + 64], path[SUPPORT_PATH_SIZE + 64], *text, *chart;
	const struct report_import_params params = {.trace = json, .output = path, .force = true};
	struct report_import_counts counts;
	struct err err = {0};

	(void)state;
	snprintf(json, sizeof(json), "%s/lanes.json", folder);
	snprintf(path, sizeof(path), "%s/lanes.db", folder);
	support_write_file(json, trace, strlen(trace));
	if (report_import(&params, &counts, &err) != ST_OK)
		fail_msg("%s", err.text);
	text = page_of(path);
	assert_whole(text);
	chart = strstr(text, "<figure class=\"gantt\">");
	assert_non_null(chart);
	*strstr(chart, "</figure>") = 0;
	assert_int_equal(count_of(chart, "class=\"w\""), 3);
	assert_int_equal(count_of(chart, "class=\"end\""), 2);
	/* Gaps of 6 pixels above lanes of 36 and 18; a name is 12 below its lane's top. */
	assert_contains(chart, "y=\"18\"><title>thread 1</title>");
	assert_contains(chart, "y=\"60\"><title>thread 2</title>");
	free(text);
}

static void test_texts_of_a_run_stay_texts(void **state)
{
	char path[SUPPORT_PATH_SIZE + 64], *text;
	struct report_sink sink;
	struct report_html page = {.out = &sink};
	struct err err = {0};

	(void)state;
	snprintf(path, sizeof(path), "%s/text.html", folder);
	assert_int_equal(report_sink_open(&sink, path, &err), ST_OK);
	html_text(&page, "<script>alert('\"&\"')</script>\x01\xff\xc3\xa4\xe2\x82");
	assert_int_equal(report_sink_close(&sink, ST_OK), ST_OK);
	text = support_read_file(path, NULL);
	assert_string_equal(text, "&lt;script&gt;alert(&#39;&quot;&amp;&quot;&#39;)&lt;/script&gt;"
				  "??\xc3\xa4??");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_curve_of_any_length_keeps_mean_and_range),
		cmocka_unit_test(test_what_is_not_finite_is_a_gap),
		cmocka_unit_test(test_an_exploding_curve_does_not_lie_on_zero),
		cmocka_unit_test(test_axes_have_their_ticks_and_no_more),
		cmocka_unit_test(test_without_a_number_there_is_a_sentence_and_no_picture),
		cmocka_unit_test(test_charts_of_all_ranges_are_the_golden_ones),
		cmocka_unit_test(test_a_page_is_whole_and_twice_the_same),
		cmocka_unit_test(test_work_has_its_name_in_its_middle),
		cmocka_unit_test(test_files_without_an_end_or_rows_have_pages),
		cmocka_unit_test(test_a_timeline_has_a_lane_for_each_thread),
		cmocka_unit_test(test_texts_of_a_run_stay_texts),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
