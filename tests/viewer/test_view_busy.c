/*
 * Jobs that take long: keys wait, Esc and other screens end them, closing ends them.
 *
 * The Timeline asks the view `executions`; here it counts very far before it answers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "profiler/prof_db_internal.h"
#include "support/view_fixture.h"
#include "support/view_rig.h"
#include "viewer/summary/view_summary_internal.h"
#include "viewer/timeline/view_timeline_internal.h"

#define FOREVER    INT64_C(1000000000000)
#define A_WHILE    100000
#define PATIENCE_S 600

#define MOMENT_NS   UINT64_C(100000000)     /* less than what it waits before it says so */
#define LONG_AGO_NS UINT64_C(1234000000000) /* nobody is so busy that it is a minute more */
#define LONG_AGO    "reading ... 12"

/* Put a count up to @steps before every answer of the view. */
static void slow_down(struct prof_db *db, int64_t steps)
{
	char *sql = sqlite3_mprintf(
		"PRAGMA query_only=0;"
		"CREATE TEMP VIEW executions AS SELECT q.* FROM main.executions q WHERE "
		"(WITH RECURSIVE far(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM far WHERE i < "
		"%lld) SELECT max(i) FROM far) > 0;"
		"PRAGMA query_only=1",
		(long long)steps);

	assert_non_null(sql);
	assert_int_equal(sqlite3_exec(db->handle, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_free(sql);
}

/* A session with a worker, on its Timeline, whose load takes @steps. */
static struct view_rig *open_slow(int64_t steps)
{
	struct view_rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	support_tempdir(rig->folder);
	snprintf(rig->path, sizeof(rig->path), "%s/run.db", rig->folder);
	assert_true(view_fixture_write(rig->path, 0));
	assert_int_equal(view_session_open(&rig->session, rig->path, NULL, false, NULL), ST_OK);
	slow_down(rig->session.source.db, steps);
	assert_int_equal(view_session_background(&rig->session, -1, NULL), ST_OK);
	view_session_show(&rig->session, VIEW_TIMELINE);
	view_rig_size(rig, 80, 24);
	alarm(PATIENCE_S);
	return rig;
}

static void close_slow(struct view_rig *rig)
{
	view_session_close(&rig->session);
	support_tempdir_remove(rig->folder);
	free(rig);
	alarm(0);
}

static void doze(long ms)
{
	const struct timespec time = {0, ms * 1000000};

	nanosleep(&time, NULL);
}

/* What the terminal's loop does, until nothing is left to do. */
static void wait_until_idle(struct view_rig *rig)
{
	do {
		doze(2);
		view_session_tick(&rig->session, clock_ns());
		view_session_draw(&rig->session);
	} while (view_session_busy(&rig->session) || rig->session.stale);
}

static void test_the_screen_says_that_it_waits_and_for_how_long(void **state)
{
	struct view_rig *rig = open_slow(FOREVER);

	(void)state;
	assert_true(view_session_busy(&rig->session));
	rig->session.job_since_ns -= LONG_AGO_NS;
	assert_true(view_session_tick(&rig->session, clock_ns()));
	view_session_draw(&rig->session);
	assert_shows(rig, LONG_AGO);
	assert_shows(rig, "Esc stops it");
	close_slow(rig);
}

static void test_the_key_of_the_screen_that_is_read_waits_for_it(void **state)
{
	struct view_rig *rig = open_slow(A_WHILE);

	(void)state;
	assert_true(view_session_busy(&rig->session));
	view_session_key(&rig->session, '7');
	wait_until_idle(rig);
	assert_hides(rig, "stopped");
	assert_shows(rig, "device (sim)");
	close_slow(rig);
}

static void test_the_body_of_another_screen_does_not_stay(void **state)
{
	struct view_rig *rig = open_slow(FOREVER);

	(void)state;
	view_rig_press(rig, "9");
	wait_until_idle(rig);
	assert_shows(rig, "No metrics have been recorded");
	view_rig_press(rig, "7");
	assert_true(view_session_busy(&rig->session));
	/* Until no busy machine has let the moment pass that it stays for. */
	do {
		rig->session.job_since_ns = clock_ns();
		view_session_draw(&rig->session);
	} while (clock_ns() - rig->session.job_since_ns > MOMENT_NS);
	assert_shows(rig, "No metrics have been recorded");
	rig->session.job_since_ns -= LONG_AGO_NS;
	view_session_draw(&rig->session);
	assert_shows(rig, LONG_AGO);
	assert_hides(rig, "No metrics have been recorded");
	close_slow(rig);
}

/* Of a large run the Summary comes without what takes long to be looked for, and then with it. */
static void test_what_there_is_comes_before_what_takes_longer(void **state)
{
	struct view_rig *rig = open_slow(1);
	bool first = false;

	(void)state;
	wait_until_idle(rig);
	((struct view_summary *)rig->session.state[VIEW_SUMMARY])->large_bytes = 0;
	view_session_show(&rig->session, VIEW_SUMMARY);
	while (!first) {
		view_session_tick(&rig->session, clock_ns());
		view_session_draw(&rig->session);
		first = !view_session_busy(&rig->session);
	}
	assert_shows(rig, "a moment ...");
	assert_shows(rig, "slowest");
	wait_until_idle(rig);
	assert_hides(rig, "a moment ...");
	close_slow(rig);
}

static void test_escape_stops_it_and_r_begins_again(void **state)
{
	struct view_rig *rig = open_slow(FOREVER);

	(void)state;
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	wait_until_idle(rig);
	assert_shows(rig, "stopped: r reads it again");
	assert_false(rig->session.quit);
	view_rig_key(rig, 'r');
	assert_true(view_session_busy(&rig->session));
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	wait_until_idle(rig);
	assert_shows(rig, "stopped: r reads it again");
	close_slow(rig);
}

static void test_another_screen_does_not_wait_for_this_one(void **state)
{
	static const uint32_t keys[] = {'8', '?', VIEW_KEY_TAB, VIEW_KEY_BACK_TAB};
	static const char *const shown[] = {"Dense_128/kernel:0_grad", "The screen Timeline",
					    "Dense_128/kernel:0_grad", "No operations"};

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct view_rig *rig = open_slow(FOREVER);

		view_session_key(&rig->session, keys[i]);
		assert_true(view_cancelled(&rig->session.context));
		wait_until_idle(rig);
		assert_shows(rig, shown[i]);
		close_slow(rig);
	}
}

/* Each key says more than "not on this screen" as soon as there is a screen for it. */
static void test_keys_wait_for_a_screen_that_is_read_for_the_first_time(void **state)
{
	struct view_rig *rig = open_slow(A_WHILE);
	enum view_way way;

	(void)state;
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	wait_until_idle(rig);
	/* Nothing draws in between. */
	for (const char *key = "87v"; *key; key++)
		view_session_key(&rig->session, (unsigned char)*key);
	wait_until_idle(rig);
	way = ((const struct view_timeline *)rig->session.state[VIEW_TIMELINE])->choice.way;
	assert_int_equal(way, VIEW_FLAME);
	close_slow(rig);
}

static void test_keys_wait_for_the_job_and_come_in_order(void **state)
{
	static const char keys[] = "g++++]]";
	struct view_rig *slow = open_slow(A_WHILE), *plain = open_slow(1);
	char *got, *wanted;

	(void)state;
	for (const char *key = keys; *key; key++) {
		wait_until_idle(plain);
		view_rig_key(plain, (uint32_t)*key);
		view_session_key(&slow->session, (uint32_t)*key);
	}
	wait_until_idle(plain);
	wait_until_idle(slow);
	got = view_rig_text(&slow->session);
	wanted = view_rig_text(&plain->session);
	assert_string_equal(got, wanted);
	free(got);
	free(wanted);
	close_slow(slow);
	close_slow(plain);
}

static void test_more_keys_than_there_is_room_for_are_dropped(void **state)
{
	struct view_rig *rig = open_slow(FOREVER);

	(void)state;
	for (int i = 0; i < 2 * VIEW_QUEUE; i++)
		view_rig_key(rig, 'l');
	assert_int_equal(rig->session.queued, VIEW_QUEUE);
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	wait_until_idle(rig);
	assert_int_equal(rig->session.queued, 0);
	close_slow(rig);
}

static void test_the_terminal_may_change_its_size_meanwhile(void **state)
{
	struct view_rig *rig = open_slow(A_WHILE);
	struct view_rig *plain = open_slow(1);
	char *got, *wanted;

	(void)state;
	for (int width = 60; width <= 120; width += 20)
		view_rig_size(rig, width, 30);
	view_rig_size(plain, 120, 30);
	wait_until_idle(rig);
	wait_until_idle(plain);
	got = view_rig_text(&rig->session);
	wanted = view_rig_text(&plain->session);
	assert_string_equal(got, wanted);
	free(got);
	free(wanted);
	close_slow(rig);
	close_slow(plain);
}

static void test_quitting_and_closing_end_what_runs(void **state)
{
	struct view_rig *rig = open_slow(FOREVER);

	(void)state;
	view_rig_key(rig, 'Q');
	wait_until_idle(rig);
	assert_true(rig->session.quit);
	close_slow(rig);
	close_slow(open_slow(FOREVER));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_screen_says_that_it_waits_and_for_how_long),
		cmocka_unit_test(test_the_key_of_the_screen_that_is_read_waits_for_it),
		cmocka_unit_test(test_the_body_of_another_screen_does_not_stay),
		cmocka_unit_test(test_what_there_is_comes_before_what_takes_longer),
		cmocka_unit_test(test_escape_stops_it_and_r_begins_again),
		cmocka_unit_test(test_another_screen_does_not_wait_for_this_one),
		cmocka_unit_test(test_keys_wait_for_a_screen_that_is_read_for_the_first_time),
		cmocka_unit_test(test_keys_wait_for_the_job_and_come_in_order),
		cmocka_unit_test(test_more_keys_than_there_is_room_for_are_dropped),
		cmocka_unit_test(test_the_terminal_may_change_its_size_meanwhile),
		cmocka_unit_test(test_quitting_and_closing_end_what_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
