/*
 * The timeline's idle times and axis: edges against what SQL says, ticks whole and round, steps
 * that lead nowhere.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "support/view_fixture.h"
#include "support/view_fixture_device.h"
#include "support/view_fixture_runs.h"
#include "support/view_rig.h"
#include "viewer/timeline/view_timeline_internal.h"

static bool write_device(const char *path, const void *params)
{
	(void)params;
	return view_fixture_device_write(path);
}

/* Two executions that were traced, then two that were not. */
static bool write_runs(const char *path, const void *params)
{
	static const struct view_runs_execution plan[] = {
		{true, true, 6, 8}, {true, true, 300, 8}, {true, false, 6, 8}, {true, false, 6, 8}};

	(void)params;
	return view_fixture_runs_engine_write(path, plan, ARRAY_LEN(plan));
}

static int setup_device(void **state)
{
	return view_rig_setup_with(state, write_device, "", NULL, "7");
}

static int setup_runs(void **state)
{
	return view_rig_setup_with(state, write_runs, "", NULL, "7");
}

static struct view_timeline *timeline_of(struct view_rig *rig)
{
	return rig->session.state[VIEW_TIMELINE];
}

/* ---- edges ----------------------------------------------------------------------------------- */

/* The lane's work before and after the cursor, as a scan finds it. */
static void check_edges(struct view_rig *rig)
{
	const struct view_timeline *tl = timeline_of(rig);
	const struct view_lane *lane = &tl->lanes[tl->cursor.lane];
	char sql[512], number[FMT_SIZE], text[64];

	snprintf(sql, sizeof(sql),
		 "SELECT ifnull(max(start_ns + dur_ns), %lld) FROM span_rows WHERE track_id = %lld "
		 "AND depth = %d AND start_ns <= %lld",
		 (long long)tl->clock[view__lead(tl)].extent.from, (long long)lane->track->track_id,
		 lane->work_depth, (long long)tl->cursor.ns);
	assert_int_equal(tl->under.gap.at.from, view_rig_sql_int(rig, sql));
	snprintf(sql, sizeof(sql),
		 "SELECT ifnull(min(start_ns), %lld) FROM span_rows WHERE track_id = %lld AND "
		 "depth = %d AND start_ns > %lld",
		 (long long)tl->clock[view__lead(tl)].extent.to, (long long)lane->track->track_id,
		 lane->work_depth, (long long)tl->cursor.ns);
	assert_int_equal(tl->under.gap.at.to, view_rig_sql_int(rig, sql));
	snprintf(text, sizeof(text), "(%s ns)",
		 fmt_count(number, tl->under.gap.at.to - tl->under.gap.at.from));
	if (tl->under.gap.at.to - tl->under.gap.at.from >= 1000)
		assert_line_shows(rig, "idle for", text);
}

/* Whatever the zoom: buckets, spans, or a window within the gap. */
static void test_idle_times_reach_from_span_to_span(void **state)
{
	static const char *const zooms[] = {"0", "0++", "0+++++", "0++++++++", "0++++++++++++"};
	struct view_rig *rig = *state;
	int checked = 0, cut = 0;

	for (size_t z = 0; z < ARRAY_LEN(zooms); z++) {
		view_rig_press(rig, zooms[z]);
		view_rig_press(rig, "g");
		for (int i = 0; i < 20; i++) {
			const struct view_timeline *tl = timeline_of(rig);
			const struct view_window *window = &tl->clock[view__lead(tl)].window;

			view_rig_press(rig, i % 3 ? "}" : i % 2 ? "j" : ".");
			if (!tl->under.in_gap)
				continue;
			check_edges(rig);
			checked++;
			cut += tl->under.gap.at.from < window->from ||
			       tl->under.gap.at.to > window->to;
		}
	}
	assert_true(checked > 20 && cut > 3);
}

static void test_the_longest_is_what_the_details_say(void **state)
{
	static const char sql[] =
		"WITH s AS (SELECT start_ns, start_ns + dur_ns AS end_ns, lead(start_ns) OVER "
		"(ORDER BY start_ns) AS next_ns FROM spans WHERE track LIKE '%IPU 0%' AND ipu = 0 "
		"AND clock = 'device' AND depth = 0) SELECT max(next_ns - end_ns) FROM s";
	struct view_rig *rig = *state;
	const int64_t longest = view_rig_sql_int(rig, sql);
	const struct view_timeline *tl = timeline_of(rig);
	char text[FMT_SIZE];

	for (int i = 0; i < 12; i++) {
		view_rig_press(rig, i ? "+w" : "0w");
		assert_true(tl->under.in_gap);
		check_edges(rig);
		fmt_ns(text, tl->under.gap.at.to - tl->under.gap.at.from);
		assert_line_shows(rig, "the longest idle time of IPU 0", text);
		/* Closer than the gap there is nothing else. */
		if (i == 0)
			assert_int_equal(tl->under.gap.at.to - tl->under.gap.at.from, longest);
	}
}

static void test_what_follows_the_traced_executions_is_not_idle(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl = timeline_of(rig);
	const int64_t from = 2 * view_rig_sql_int(rig, "SELECT start_cycle FROM executions "
						       "WHERE execution = 2");

	assert_string_equal(tl->lanes[tl->cursor.lane].track->name, "IPU 0");
	view_rig_press(rig, "0G");
	for (int i = 0; i < 8; i++) {
		view_rig_press(rig, "+G");
		assert_int_equal(tl->cursor.ns, tl->clock[1].extent.to - 1);
		assert_true(tl->under.in_gap && tl->under.gap.dark);
		assert_int_equal(tl->under.gap.at.from, from);
		assert_int_equal(tl->under.gap.at.to, tl->clock[1].extent.to);
		assert_shows(rig, "untraced from");
		assert_hides(rig, "idle for");
	}
}

/* In any window, of the time from the IPUs' first span to their last: buckets that an end of the
 * window cuts have their time on either side. */
static void test_lanes_are_idle_as_sql_says(void **state)
{
	static const char *const windows[] = {"0",       "0+",         "0+>",      "g0+>>",
					      "g0+++>>", "g0+++++>>>", "0G+++++<", "0w++++++"};
	struct view_rig *rig = *state;
	int compared = 0, cut = 0;

	for (size_t i = 0; i < 3 * ARRAY_LEN(windows); i++) {
		const struct view_timeline *tl = timeline_of(rig);

		view_rig_size(rig, 80 + 47 * (int)(i % 3), 40);
		view_rig_press(rig, windows[i / 3]);
		for (int l = 0; l < tl->lane_count; l++) {
			const struct view_lane *lane = &tl->lanes[l];
			const struct view_window at = tl->clock[lane->track->clock].window;
			char sql[768];

			if (lane->rows == 0 || lane->track->clock != 1 || !lane->pipeline)
				continue;
			snprintf(
				sql, sizeof(sql),
				"WITH w AS (SELECT max(min(start_ns), %lld) AS a, min(max(start_ns "
				"+ dur_ns), %lld) AS b FROM spans WHERE clock = 'device' AND ipu "
				"IS NOT NULL) SELECT 1 "
				"- ifnull(sum(min(start_ns + dur_ns, b) - max(start_ns, a)), 0) * "
				"1.0 / (SELECT b - a FROM w) FROM span_rows, w WHERE track_id = "
				"%lld AND depth = %d AND start_ns < b AND start_ns + dur_ns > a",
				(long long)at.from, (long long)at.to,
				(long long)lane->track->track_id, lane->work_depth);
			assert_true(fabs(lane->idle - view_rig_sql_real(rig, sql)) < 1e-9);
			compared++;
			for (int b = 0; b < lane->bar_count; b++)
				cut += lane->bars[b].span_id == IPS_NULL &&
				       lane->bars[b].depth == lane->work_depth &&
				       (lane->bars[b].start_ns < at.from ||
					lane->bars[b].start_ns + lane->bars[b].dur_ns > at.to);
		}
	}
	assert_true(compared > 30 && cut > 0);
}

/* A lane's column and the line above count the same. */
static void test_steps_are_idle_as_the_heading_says(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl = timeline_of(rig);
	double lanes = 0, all = 0;
	char sql[256];

	view_rig_press(rig, "0vvv");
	for (int i = 0; i < tl->lane_count; i++) {
		const struct view_lane *lane = &tl->lanes[i];

		snprintf(sql, sizeof(sql),
			 "SELECT 1 - sum(dur_ns) * 1.0 / %lld FROM device_steps WHERE ipu = %lld",
			 (long long)(tl->clock[1].extent.to - tl->clock[1].extent.from),
			 (long long)lane->track->ipu);
		assert_true(fabs(lane->idle - view_rig_sql_real(rig, sql)) < 0.01);
		lanes += lane->idle / tl->lane_count;
	}
	for (int k = 0; k < VIEW_KINDS; k++)
		all += tl->device.share[k];
	assert_true(fabs(tl->device.share[VIEW_KIND_IDLE] / all - lanes) < 1e-3);
	view_rig_press(rig, "++++w");
	assert_shows(rig, "time without stage work of IPU 0");
}

/* ---- the axis -------------------------------------------------------------------------------- */

/* The line of the screen with @part, up to its end; the caller's. */
static char *line_with(struct view_rig *rig, const char *part)
{
	char *text = view_rig_text(&rig->session), *line = strstr(text, part);

	assert_non_null(line);
	line = strdup(line + strlen(part));
	line[strcspn(line, "\n")] = '\0';
	free(text);
	return line;
}

/* Each number of @line, between characters of other kinds, is in @known too. */
static int check_labels(const char *line, const char *known)
{
	int count = 0;

	while (*line) {
		const size_t length = strspn(line, "0123456789.,");
		char label[64];

		snprintf(label, sizeof(label), "%.*s", (int)length, line);
		if (length > 0 && !strstr(known, label))
			fail_msg("\"%s\" is not on the axis \"%s\"", label, known);
		/* Whole: what is before and after it is the same. */
		if (length > 0) {
			const char *at = strstr(known, label);

			while (at && ((at > known && strchr("0123456789.,", at[-1])) ||
				      (at[length] && strchr("0123456789.,", at[length]))))
				at = strstr(at + 1, label);
			if (!at)
				fail_msg("\"%s\" is a part of a label on \"%s\"", label, known);
			count++;
		}
		line += length ? length : 1;
	}
	return count;
}

static void test_marks_leave_numbers_whole(void **state)
{
	struct view_rig *rig = *state;
	char *plain, *line;
	int labels = 0;

	view_rig_size(rig, 120, 40);
	view_rig_press(rig, "0++g");
	rig->session.canvas.plain = true;
	view_rig_press(rig, "r");
	plain = line_with(rig, "device (sim)");
	rig->session.canvas.plain = false;
	for (int i = 0; i < 90; i++) {
		view_rig_press(rig, i == 40 ? "x" : ".");
		line = line_with(rig, "device (sim)");
		labels += check_labels(line, plain);
		free(line);
	}
	assert_true(labels > 90 * 3);
	free(plain);
}

static void test_ticks_are_round_in_cycles(void **state)
{
	struct view_rig *rig = *state;
	char *line;

	timeline_of(rig)->facts.hertz = 1.7e9;
	view_rig_press(rig, "t0g");
	line = line_with(rig, "device cycles");
	assert_contains(line, "000,000");
	assert_null(strstr(line, "001"));
	assert_null(strstr(line, "999"));
	free(line);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void test_steps_that_lead_nowhere_say_why(void **state)
{
	static const struct {
		const char *keys, *says;
	} limits[] = {
		{"0-", "this is the whole run"},
		{"0g(", "this is the beginning of the run"},
		{"++g,", "this is the beginning of the run"},
		{"h", "this is the beginning of the run"},
		{"G)", "this is the end of the run"},
		{".", "this is the end of the run"},
		{"l", "this is the end of the run"},
		{"++++++++++++++++++++++", "this is as close as it goes"},
	};
	struct view_rig *rig = *state;

	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		view_rig_press(rig, limits[i].keys);
		assert_shows(rig, limits[i].says);
	}
	view_rig_press(rig, "0M-g+.");
	assert_hides(rig, "this is ");
}

static void test_a_second_mark_ends_measuring(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "x}");
	view_rig_press(rig, "r");
	assert_shows(rig, "from x to the cursor");
	view_rig_press(rig, "x");
	assert_shows(rig, "no longer counted");
	view_rig_press(rig, "M");
	assert_hides(rig, "from x to the cursor");
	assert_shows(rig, " cursor ");
	view_rig_press(rig, "xM");
	assert_shows(rig, "from x to the cursor");
}

/* Where the line above has no room. */
static void test_small_screens_have_the_bubble(void **state)
{
	static const char sql[] = "SELECT printf('bubble %.1f', 100.0 * sum(total_ns - "
				  "total_busy_ns) / sum(total_ns)) FROM bubble_sums WHERE clock = "
				  "'device'";
	struct view_rig *rig = *state;
	char *expected = view_rig_sql_text(rig, sql);

	for (int height = 10; height <= 24; height++) {
		view_rig_size(rig, 40, height);
		view_rig_press(rig, "0");
		assert_shows(rig, expected);
	}
	free(expected);
}

/* Four IPUs whose works are inside a span of the whole run, with idle time between them. */
static bool write_within(const char *path, const void *params)
{
	IPS_SITE(whole, "engine", "Engine::run");
	IPS_SITE(forward, "stage", "forward");
	IPS_SITE(backward, "stage", "backward");
	struct ips_recording *recording = view_fixture_record(path, NULL);
	char name[16];

	(void)params;
	if (!recording)
		return false;
	for (int ipu = 0; ipu < 4; ipu++) {
		struct ips_keys keys = IPS_KEYS_NULL;
		struct ips_track *track;

		snprintf(name, sizeof(name), "IPU %d", ipu);
		track = ips_track_open(recording, name,
				       &(struct ips_track_params){.ipu = ipu, .clock = IPS_DEVICE});
		ips_span_at(track, &whole, 0, 100000);
		keys.mode = IPS_TRAIN;
		keys.weight_update = keys.step = 0;
		for (int back = 0; back < 2; back++) {
			keys.phase = back ? 'B' : 'F';
			ips_track_set_keys(track, &keys);
			ips_span_at(track, back ? &backward : &forward, back ? 60000 : 10000,
				    30000);
		}
	}
	return ips_recording_close(recording, NULL, 0) == 0;
}

static int setup_within(void **state)
{
	return view_rig_setup_with(state, write_within, "", NULL, "70");
}

/* Cells of the lane that are in the bubble's colour. */
static int bubble_cells(struct view_rig *rig, int number)
{
	const struct view_timeline *tl = timeline_of(rig);
	const struct view_lane *lane = &tl->lanes[number];
	const struct view_canvas *canvas = &rig->session.canvas;
	const int top = rig->session.frame.body.y + tl->areas.lanes.y + lane->y;
	int cells = 0;

	for (int y = top; y < top + view__lane_height(lane); y++)
		for (int x = tl->areas.lanes.x; x < tl->areas.lanes.x + tl->width; x++)
			cells += canvas->cells[y * canvas->width + x].style == VIEW_BUBBLE;
	return cells;
}

/* The works leave 40 to 60 us of 100 us idle, also in a lane without a row for what is around. */
static void test_lanes_of_one_row_show_the_bubble_of_their_works(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl = timeline_of(rig);
	int alone = 0;

	for (int height = 10; height < 24; height++) {
		view_rig_size(rig, 120, height);
		assert_int_equal(tl->width, 100);
		assert_int_equal(tl->lane_count, 4);
		for (int i = 0; i < tl->lane_count; i++) {
			assert_int_equal(bubble_cells(rig, i), 20);
			alone += tl->lanes[i].rows == 1;
		}
	}
	assert_true(alone > 3);
}

#define WITH(name, open) cmocka_unit_test_setup_teardown(name, open, view_rig_teardown)

static int setup_usual(void **state)
{
	const int status = view_rig_setup(state);

	view_rig_press(*state, "7");
	return status;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(test_idle_times_reach_from_span_to_span, setup_device),
		WITH(test_idle_times_reach_from_span_to_span, setup_usual),
		WITH(test_the_longest_is_what_the_details_say, setup_usual),
		WITH(test_the_longest_is_what_the_details_say, setup_device),
		WITH(test_what_follows_the_traced_executions_is_not_idle, setup_runs),
		WITH(test_lanes_are_idle_as_sql_says, setup_usual),
		WITH(test_lanes_are_idle_as_sql_says, setup_device),
		WITH(test_steps_are_idle_as_the_heading_says, setup_device),
		WITH(test_marks_leave_numbers_whole, setup_usual),
		WITH(test_ticks_are_round_in_cycles, setup_usual),
		WITH(test_steps_that_lead_nowhere_say_why, setup_usual),
		WITH(test_a_second_mark_ends_measuring, setup_usual),
		WITH(test_small_screens_have_the_bubble, setup_device),
		WITH(test_lanes_of_one_row_show_the_bubble_of_their_works, setup_within),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
