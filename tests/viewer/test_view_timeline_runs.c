/*
 * The timeline of runs of several modes, traced in part, and of very many works: two reports step
 * by step, what was not traced, causes of any number of works; against what SQL says.
 */
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "support/view_fixture.h"
#include "support/view_fixture_runs.h"
#include "support/view_rig.h"
#include "viewer/timeline/view_timeline_internal.h"

static char parts[SUPPORT_PATH_SIZE + 16], other[SUPPORT_PATH_SIZE + 16];
static char large[SUPPORT_PATH_SIZE + 16];

static const struct view_runs_execution parts_plan[] = {
	{true, true, 6, 8},  {false, true, 1, 40}, {true, false, 6, 8}, {false, false, 1, 40},
	{true, false, 6, 8}, {false, true, 1, 40}, {true, true, 6, 8},  {true, false, 6, 8},
};
/* Evaluations of another length, and fewer. */
static const struct view_runs_execution other_plan[] = {
	{true, true, 4, 8},
	{false, true, 1, 30},
	{true, true, 4, 8},
};
static const struct view_runs_execution large_plan[] = {{true, true, 3, 1500}};

static struct view_rig *open_rig(const char *path, const char *target)
{
	struct view_rig *rig = calloc(1, sizeof(*rig));

	view_rig_open(rig, path, target, 160, 44);
	view_rig_press(rig, "7");
	return rig;
}

static int setup(void **state)
{
	*state = open_rig(parts, NULL);
	return 0;
}

static int setup_pair(void **state)
{
	*state = open_rig(parts, other);
	return 0;
}

static int setup_large(void **state)
{
	*state = open_rig(large, NULL);
	return 0;
}

static struct view_timeline *timeline_of(struct view_rig *rig)
{
	return rig->session.state[VIEW_TIMELINE];
}

/* One number of the database at @path. */
static int64_t ask(const char *path, const char *sql)
{
	struct prof_query *query;
	struct prof_db *db;
	bool row = false;
	int64_t value;

	assert_int_equal(prof_db_open(&db, path, NULL), ST_OK);
	assert_int_equal(prof_query_open(&query, db, sql, NULL), ST_OK);
	assert_int_equal(prof_query_step(query, &row, NULL), ST_OK);
	assert_true(row);
	value = prof_column_int(query, 0);
	prof_query_close(query);
	prof_db_close(db);
	return value;
}

/* Show [@from, @to) of the device's first lane, the cursor at @from. */
static void show(struct view_rig *rig, int64_t from, int64_t to)
{
	struct view_timeline *tl = timeline_of(rig);

	tl->cursor.lane = 0;
	tl->cursor.track_id = tl->lanes[0].track->track_id;
	tl->clock[1].window = (struct view_window){from, to};
	tl->cursor.ns = from;
	view_rig_press(rig, "r");
}

/* ---- comparing ------------------------------------------------------------------------------- */

static int64_t step_start(const char *path, int execution, int64_t step)
{
	char sql[256];

	snprintf(sql, sizeof(sql),
		 "SELECT min(start_ns) FROM spans WHERE clock = 'device' AND ipu = 0 AND execution "
		 "= %d AND step = %lld",
		 execution, (long long)step);
	return ask(path, sql);
}

static void test_evaluations_stand_beside_each_other_step_by_step(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl = timeline_of(rig);

	for (int step = 3; step < 40; step += 13) {
		const int64_t from = step_start(parts, 1, step) + 2;
		const int its = step < 30 ? step : 29;

		show(rig, from, from + 20000);
		assert_int_equal(tl->beside.at.nth, 1);
		assert_int_equal(tl->target->beside.at.number, its);
		assert_int_equal(tl->target->clock[1].window.from - step_start(other, 1, its),
				 from - step_start(parts, 1, tl->beside.at.number));
		assert_int_equal(tl->target->clock[1].window.to - tl->target->clock[1].window.from,
				 20000);
	}
	show(rig, step_start(parts, 1, 3) + 2, step_start(parts, 1, 3) + 20000);
	assert_shows(rig, "S and T from step 3 of evaluate 1");
}

/* The target has one evaluation, the source a third. */
static void test_an_evaluation_that_the_target_has_not_is_beside_its_last(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl = timeline_of(rig);
	const int64_t from = step_start(parts, 5, 85) + 2;

	show(rig, from, from + 20000);
	assert_int_equal(tl->beside.at.nth, 3);
	assert_int_equal(tl->target->beside.at.nth, 1);
	assert_int_equal(tl->target->beside.at.number, 5);
	assert_shows(rig, "S from step 85 of evaluate 3, T from step 5 of its 1");
}

/* Two weight updates from *@params on: a copy that tells of none, a work, and what has no step. */
static bool write_updates(const char *path, const void *params)
{
	IPS_SITE(copy, "copy", "copy to the device");
	IPS_SITE(forward, "stage", "forward");
	IPS_SITE(update, "stage", "weight update");
	const struct ips_track_params lane = {.ipu = 0, .clock = IPS_DEVICE};
	const int64_t *start = params;
	struct ips_recording *recording = view_fixture_record(path, NULL);
	struct ips_track *track;

	if (!recording)
		return false;
	track = ips_track_open(recording, "IPU 0", &lane);
	for (int i = 0; i < 2; i++) {
		const int64_t at = *start + 200000 * i;
		struct ips_keys keys = IPS_KEYS_NULL;

		ips_track_set_keys(track, &keys);
		ips_span_at(track, &copy, at, 20000);
		keys.mode = IPS_TRAIN;
		keys.execution = 0;
		keys.weight_update = keys.step = i;
		keys.phase = 'F';
		ips_track_set_keys(track, &keys);
		ips_span_at(track, &forward, at + 20000, 30000);
		keys.step = IPS_NULL;
		keys.phase = 'U';
		ips_track_set_keys(track, &keys);
		ips_span_at(track, &update, at + 50000, 100000);
	}
	ips_meta_set(recording, "clock_hz", "1000000000");
	ips_append_execution(recording, &(struct ips_execution){.mode = IPS_TRAIN,
								.epoch = 1,
								.start_ns = *start,
								.dur_ns = 350000,
								.start_cycle = *start,
								.cycles = 350000,
								.steps = 2,
								.updates = 2,
								.traced = 1});
	return ips_recording_close(recording, NULL, 0) == 0;
}

static int setup_late(void **state)
{
	static const int64_t first = 1000, late = 501000;

	return view_rig_setup_with(state, write_updates, &first, &late, "7");
}

/* What the window begins in has no weight update, or no step: the target is half a ms later. */
static void test_windows_beside_each_other_begin_in_any_span(void **state)
{
	static const struct view_window windows[] = {
		{6000, 41000}, {206000, 241000}, {61000, 141000}, {261000, 341000}};
	struct view_rig *rig = *state;
	const struct view_timeline *tl = timeline_of(rig);

	for (size_t i = 0; i < ARRAY_LEN(windows); i++) {
		show(rig, windows[i].from, windows[i].to);
		assert_int_equal(tl->beside.at.number, i % 2);
		assert_int_equal(tl->target->clock[1].window.from, windows[i].from + 500000);
		assert_int_equal(tl->target->clock[1].window.to, windows[i].to + 500000);
	}
}

static void test_both_files_have_statements_of_their_own(void **state)
{
	struct view_rig *rig = *state;
	const char *paths[] = {parts, other};
	struct str out = {0};
	char *text, *at;

	view_screen(VIEW_TIMELINE)->query(timeline_of(rig), &rig->session.context, &out);
	assert_contains(str_peek(&out), "-- Source: ");
	text = strdup(str_peek(&out));
	at = strstr(text, "-- Target: ");
	assert_non_null(at);
	at[-1] = '\0';
	for (int i = 0; i < 2; i++) {
		char *half = i ? at : text, *end;
		int statements = 0;

		assert_contains(half, paths[i]);
		for (; (end = strchr(half, ';')); half = end + 1, statements++) {
			*end = '\0';
			(void)ask(paths[i], half);
		}
		assert_int_equal(statements, 4);
	}
	free(text);
	str_free(&out);
}

/* ---- what was not traced --------------------------------------------------------------------- */

/* Executions 2 to 4, as one stretch; 7 is after the last that was traced. */
static struct view_window untraced(void)
{
	return (struct view_window){
		2 * ask(parts, "SELECT start_cycle FROM executions WHERE execution = 2"),
		2 * ask(parts, "SELECT start_cycle + cycles FROM executions WHERE execution = 4")};
}

static void check_idle(struct view_rig *rig, struct view_window of)
{
	static const char sql[] =
		"SELECT ifnull(sum(min(start_ns + dur_ns, %lld) - max(start_ns, %lld)), 0) FROM "
		"spans WHERE "
		"clock = 'device' AND ipu = %lld AND start_ns < %lld AND start_ns + dur_ns > %lld";
	const struct view_window dark = untraced();
	const struct view_timeline *tl = timeline_of(rig);
	const int64_t first = ask(parts, "SELECT min(start_ns) FROM spans WHERE clock = 'device'");
	const int64_t last = ask(parts, "SELECT max(start_ns + dur_ns) FROM spans WHERE clock = "
					"'device'");
	int64_t all;

	of.from = of.from > first ? of.from : first;
	of.to = of.to < last ? of.to : last;
	all = of.to - of.from;
	if (dark.from < of.to && dark.to > of.from)
		all -= (dark.to < of.to ? dark.to : of.to) -
		       (dark.from > of.from ? dark.from : of.from);
	for (int i = 0; i < tl->lane_count; i++) {
		const struct view_lane *lane = &tl->lanes[i];
		char text[512];

		if (lane->track->clock != 1)
			continue;
		snprintf(text, sizeof(text), sql, (long long)of.to, (long long)of.from,
			 (long long)lane->track->ipu, (long long)of.to, (long long)of.from);
		assert_true(fabs(lane->idle - (1 - (double)ask(parts, text) / (double)all)) < 1e-9);
	}
}

static void test_executions_that_were_not_traced_are_not_idle(void **state)
{
	struct view_rig *rig = *state;
	const struct view_window dark = untraced();

	view_rig_press(rig, "0");
	assert_shows(rig, " not traced ");
	assert_shows(rig, "\u00b7\u00b7\u00b7\u00b7");
	check_idle(rig, timeline_of(rig)->clock[1].window);
	/* Every span in sight; a part of the stretch. */
	show(rig, dark.from - 200000, dark.from + 30000);
	check_idle(rig, (struct view_window){dark.from - 200000, dark.from + 30000});
	show(rig, dark.to - 30000, dark.to + 100000);
	check_idle(rig, (struct view_window){dark.to - 30000, dark.to + 100000});
	/* Nothing else in sight. */
	show(rig, dark.from + 1000, dark.from + 30000);
	assert_true(isnan(timeline_of(rig)->lanes[0].idle));
	assert_shows(rig, "untraced from");
	assert_shows(rig, "execution 2 has no device lanes");
}

/* From the first gap to the last and back, at several zooms. */
static void test_jumps_over_what_was_not_traced(void **state)
{
	static const int lengths[] = {20000, 150000, 900000};
	struct view_rig *rig = *state;
	struct view_timeline *tl = timeline_of(rig);
	const struct view_window dark = untraced();

	for (size_t n = 0; n < ARRAY_LEN(lengths); n++) {
		int64_t before = 0;
		bool beyond = false;

		for (int back = 0; back < 2; back++) {
			const int64_t at = back ? dark.to + 9000 : dark.from - 9000;

			show(rig, at - lengths[n] / 2, at + lengths[n] / 2);
			tl->cursor.ns = at;
			for (int i = 0; i < 30; i++) {
				before = tl->cursor.ns;
				view_rig_press(rig, back ? "{" : "}");
				assert_false(tl->under.in_gap && tl->under.gap.dark);
				assert_true(!tl->under.in_gap || tl->under.gap.at.to <= dark.from ||
					    tl->under.gap.at.from >= dark.to);
				beyond |= (before < dark.from) != (tl->cursor.ns < dark.from);
			}
			assert_true(beyond);
		}
	}
	/* The longest is none of it, either. */
	show(rig, dark.from - 50000, dark.to + 50000);
	view_rig_press(rig, "w");
	assert_true(tl->under.in_gap && !tl->under.gap.dark);
	assert_true(tl->under.gap.at.to - tl->under.gap.at.from < dark.to - dark.from);
}

static void test_other_ways_to_look_know_it_too(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "0v");
	assert_shows(rig, " not traced ");
	view_rig_press(rig, "v");
	assert_shows(rig, " not traced ");
}

/* ---- causes ---------------------------------------------------------------------------------- */

/* All windows of @length side by side add up to what the rows of the runs say. */
static void check_sums(struct view_rig *rig, const char *path, int clock, int64_t length)
{
	static const char *const columns[VIEW_CAUSES] = {"", "ramp_up_ns", "ramp_down_ns",
							 "imbalance_ns", "communication_ns"};
	struct view_timeline *tl = timeline_of(rig);
	const struct view_window all = tl->clock[clock].extent;
	int64_t sums[VIEW_CAUSES] = {0};

	for (int64_t at = all.from; at < all.to; at += length) {
		tl->cursor.lane = 0;
		while (tl->lanes[tl->cursor.lane].track->clock != clock)
			tl->cursor.lane++;
		tl->cursor.track_id = tl->lanes[tl->cursor.lane].track->track_id;
		tl->clock[clock].window =
			(struct view_window){at, at + length < all.to ? at + length : all.to};
		tl->cursor.ns = at;
		view_rig_press(rig, "r");
		assert_true(tl->bubbles.split[clock]);
		for (int c = VIEW_CAUSE_RAMP_UP; c < VIEW_CAUSES; c++)
			sums[c] += tl->bubbles.cause_ns[clock][c];
	}
	for (int c = VIEW_CAUSE_RAMP_UP; c < VIEW_CAUSES; c++) {
		char sql[256];

		snprintf(sql, sizeof(sql),
			 "SELECT sum(%s) FROM bubbles WHERE clock = '%s' AND (clock = 'host' OR "
			 "execution IN (SELECT execution FROM executions WHERE traced))",
			 columns[c], clock ? "device" : "host");
		assert_int_equal(sums[c], ask(path, sql));
	}
}

static void test_causes_of_any_window_add_up(void **state)
{
	static const int lengths[] = {19000, 250000, 100000000};
	struct view_rig *rig = *state;

	view_rig_press(rig, "b");
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
		for (int clock = 0; clock < 2; clock++)
			check_sums(rig, parts, clock, lengths[i] * (int)support_stride());
}

/* Runs of 9000 works, whole and in parts. */
static void test_causes_of_very_many_works_add_up(void **state)
{
	struct view_rig *rig = *state;
	char *expected;

	view_rig_press(rig, "b0");
	assert_true(timeline_of(rig)->bubbles.split[0] && timeline_of(rig)->bubbles.split[1]);
	for (int clock = 0; clock < 2; clock++) {
		check_sums(rig, large, clock, 1000000000);
		check_sums(rig, large, clock, 900000 * (int)support_stride());
	}
	show(rig, 3000000, 3030000);
	assert_int_equal(timeline_of(rig)->run_count > 0, 1);
	expected = view_rig_sql_text(
		rig,
		"SELECT printf('bubble %.1f %%', 100 * idle_fraction) FROM bubbles WHERE clock "
		"= 'device' AND weight_update = 0");
	assert_shows(rig, expected);
	free(expected);
}

/* ---- one span -------------------------------------------------------------------------------- */

static void test_time_is_measured_from_a_mark(void **state)
{
	struct view_rig *rig = *state;
	struct view_timeline *tl = timeline_of(rig);

	show(rig, 10000, 30000);
	view_rig_press(rig, "x");
	assert_int_equal(tl->cursor.x_ns, 10000);
	tl->cursor.ns = 22340;
	view_rig_press(rig, "r");
	assert_shows(rig, "12.3 us from x to the cursor");
	view_rig_press(rig, "x");
	assert_int_equal(tl->cursor.x_ns, IPS_NULL);
}

static const char *field_of(const struct view_timeline *tl, const char *name)
{
	for (int i = 0; i < tl->under.count; i++)
		if (strcmp(tl->under.fields[i].name, name) == 0)
			return tl->under.fields[i].value;
	return NULL;
}

static void test_arrows_lead_to_a_span_and_away(void **state)
{
	struct view_rig *rig = *state;
	struct view_timeline *tl = timeline_of(rig);
	int in = 0, out = 0;

	tl->cursor.lane = VIEW_RUNS_STAGES + 1; /* the host's IPU 1 */
	view_rig_press(rig, "g");
	for (int i = 0; i < 12; i++) {
		char sql[256], *name;
		const bool forward = tl->under.selected != IPS_NULL && tl->under.span.phase == 'F';

		snprintf(sql, sizeof(sql),
			 "SELECT (SELECT s.name || ' on ' || s.track FROM flows f JOIN spans s ON "
			 "s.span_id = f.from_span_id WHERE f.to_span_id = %lld)",
			 (long long)(forward ? tl->under.selected : -1));
		name = view_rig_sql_text(rig, sql);
		if (name)
			assert_string_equal(field_of(tl, "waits for"), name);
		in += name != NULL;
		out += forward && field_of(tl, "leads to");
		free(name);
		view_rig_press(rig, "]");
	}
	assert_true(in >= 6 && out >= 6);
}

/* Beyond the ranges that are retained the last one does not grow over what was traced. */
static void test_very_many_untraced_ranges_stay_apart(void **state)
{
	static const char sql[] =
		"WITH n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 200000) "
		"INSERT INTO execution_rows (rank, mode, execution, start_cycle, cycles, traced) "
		"SELECT 0, 'evaluate', 100 + i, 100000000 + 100 * i, 100, i % 3 = 2 FROM n";
	const struct view_timeline *tl;
	struct view_rig *rig;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(parts, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	rig = open_rig(parts, NULL);
	*state = rig;
	tl = timeline_of(rig);
	assert_true(tl->dark.count > 60000);
	for (size_t i = 0; i < tl->dark.count; i++)
		if (tl->dark.all[i].first >= 100)
			assert_int_equal(tl->dark.all[i].first + 1, tl->dark.all[i].last);
}

#define WITH(name, open) cmocka_unit_test_setup_teardown(name, open, view_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(test_executions_that_were_not_traced_are_not_idle, setup),
		WITH(test_jumps_over_what_was_not_traced, setup),
		WITH(test_other_ways_to_look_know_it_too, setup),
		WITH(test_causes_of_any_window_add_up, setup),
		WITH(test_arrows_lead_to_a_span_and_away, setup),
		WITH(test_time_is_measured_from_a_mark, setup),
		WITH(test_causes_of_very_many_works_add_up, setup_large),
		WITH(test_evaluations_stand_beside_each_other_step_by_step, setup_pair),
		WITH(test_an_evaluation_that_the_target_has_not_is_beside_its_last, setup_pair),
		WITH(test_windows_beside_each_other_begin_in_any_span, setup_late),
		WITH(test_both_files_have_statements_of_their_own, setup_pair),
		cmocka_unit_test_teardown(test_very_many_untraced_ranges_stay_apart,
					  view_rig_teardown),
	};
	char folder[SUPPORT_PATH_SIZE];
	int failed;

	support_tempdir(folder);
	snprintf(parts, sizeof(parts), "%s/parts.db", folder);
	snprintf(other, sizeof(other), "%s/other.db", folder);
	snprintf(large, sizeof(large), "%s/large.db", folder);
	if (!view_fixture_runs_write(parts, parts_plan, ARRAY_LEN(parts_plan)) ||
	    !view_fixture_runs_write(other, other_plan, ARRAY_LEN(other_plan)) ||
	    !view_fixture_runs_write(large, large_plan, ARRAY_LEN(large_plan)))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	support_tempdir_remove(folder);
	return failed;
}
