/*
 * The run that is looked at ends: whatever the viewer is about, it lets go in time for the writer
 * to leave one plain file, and says that it is complete.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "profiler/ipuscope/profiler.h"
#include "profiler/prof_internal.h"
#include "profiler/prof_process.h"
#include "support/support.h"
#include "support/view_fixture.h"
#include "support/view_rig.h"

struct live {
	struct view_rig rig;
	struct ips_recording *recording;
	int closed; /* atomic */
};

#define PATIENCE_NS UINT64_C(600000000000) /* no busy machine lets go of a file later than that */

static void record_some(struct live *live)
{
	static struct ips_site site = {.category = "execution", .name = "Engine::run"};
	struct ips_track *track = ips_track_open(live->recording, "host", NULL);

	for (int i = 0; i < 100; i++) {
		ips_span_begin(track, &site);
		ips_span_end(track);
	}
	assert_int_equal(ips_recording_flush(live->recording), 0);
}

static int setup(void **state)
{
	struct live *live = calloc(1, sizeof(*live));

	assert_non_null(live);
	support_tempdir(live->rig.folder);
	snprintf(live->rig.path, sizeof(live->rig.path), "%s/run.db", live->rig.folder);
	assert_int_equal(ips_recording_open(&live->recording, live->rig.path, NULL, NULL, 0), 0);
	live->recording->writer.leave_ns = PATIENCE_NS;
	record_some(live);
	view_rig_open(&live->rig, live->rig.path, NULL, 100, 30);
	*state = live;
	return 0;
}

static int teardown(void **state)
{
	struct live *live = *state;

	view_rig_close(&live->rig);
	support_tempdir_remove(live->rig.folder);
	free(live);
	return 0;
}

static void *close_recording(void *user)
{
	struct live *live = user;
	const int status = ips_recording_close(live->recording, NULL, 0);

	__atomic_store_n(&live->closed, 1, __ATOMIC_RELEASE);
	return status == 0 ? live : NULL;
}

/* The recording is closed while the session sees time pass, and no clock but the writer's. */
static void end_run(struct live *live)
{
	const struct timespec pause = {0, 1000000};
	pthread_t thread;
	void *closed;

	assert_int_equal(pthread_create(&thread, NULL, close_recording, live), 0);
	while (!__atomic_load_n(&live->closed, __ATOMIC_ACQUIRE)) {
		view_session_tick(&live->rig.session, clock_ns());
		nanosleep(&pause, NULL);
	}
	assert_int_equal(pthread_join(thread, &closed), 0);
	assert_ptr_equal(closed, live);
}

static void assert_one_plain_file(struct live *live)
{
	char log[SUPPORT_PATH_SIZE + 32];

	snprintf(log, sizeof(log), "%s-wal", live->rig.path);
	assert_int_not_equal(access(log, F_OK), 0);
}

/* The writer's last nudge has it looked at again at once. */
static void assert_seen_complete(struct live *live)
{
	view_session_tick(&live->rig.session, clock_ns());
	assert_int_equal(live->rig.session.source.state, VIEW_COMPLETE);
	view_session_draw(&live->rig.session);
	assert_shows(&live->rig, "the run has ended");
}

static void test_a_run_that_is_followed_leaves_one_file(void **state)
{
	struct live *live = *state;

	end_run(live);
	assert_one_plain_file(live);
	assert_seen_complete(live);
}

/* Of two runs the title says which one goes on, whichever it is. */
static void test_the_title_has_the_states_of_both(void **state)
{
	struct live *live = *state;
	struct view_rig two = {0};
	char other[SUPPORT_PATH_SIZE + 16];

	snprintf(other, sizeof(other), "%s/other.db", live->rig.folder);
	assert_true(view_fixture_write(other, 0));
	view_rig_open(&two, other, live->rig.path, 140, 30);
	assert_shows(&two, "S complete, T recording");
	view_rig_size(&two, 40, 12); /* no room in the title */
	assert_shows(&two, "S complete, T recording");
	view_rig_close(&two);
	view_rig_open(&two, live->rig.path, other, 140, 30);
	assert_shows(&two, "S recording, T complete");
	view_rig_close(&two);
	view_rig_open(&two, other, other, 140, 30);
	assert_hides(&two, "S complete");
	view_rig_close(&two);
	end_run(live);
}

static void test_so_does_one_whose_news_wait(void **state)
{
	struct live *live = *state;

	view_rig_press(&live->rig, "Z");
	end_run(live);
	assert_one_plain_file(live);
	assert_seen_complete(live);
}

/* Until the session has nothing more to do. */
static void settle(struct view_session *session)
{
	do
		view_session_draw(session);
	while (view_session_busy(session) || session->queued > 0);
}

/* As the terminal has it: what is asked runs beside the drawing. */
static void test_so_does_one_that_is_asked_something_endless(void **state)
{
	struct live *live = *state;
	struct view_session *session = &live->rig.session;
	char folder[SUPPORT_PATH_SIZE + 16];

	if (session->source.watch < 0)
		skip(); /* no inotify here */
	snprintf(folder, sizeof(folder), "%s/state", live->rig.folder);
	setenv("XDG_STATE_HOME", folder, 1);
	assert_int_equal(view_session_background(session, -1, NULL), ST_OK);
	view_rig_press(&live->rig, ":");
	settle(session);
	for (const char *c = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
			     "SELECT max(i), (SELECT count(*) FROM spans) FROM n;";
	     *c; c++) {
		view_session_key(session, (uint32_t)*c);
		settle(session);
	}
	view_session_key(session, '\r');
	assert_true(view_session_busy(session));
	end_run(live);
	assert_one_plain_file(live);
	settle(session);
	assert_shows(&live->rig, "stopped, as the run is being closed: Enter runs it again");
}

/* The writer has said that it is complete, and waits for the last reader; or has given up. */
static void test_it_is_not_taken_again_before_its_log_is_gone_or_stays(void **state)
{
	struct live *live = *state;
	struct view_source *source = &live->rig.session.source;
	char log[SUPPORT_PATH_SIZE + 32];
	const uint64_t now_ns = clock_ns();
	FILE *file;

	end_run(live);
	view_source_close(source);
	source->state = VIEW_CLOSING;
	source->let_go_ns = now_ns;
	source->retry_ns = 0;
	snprintf(log, sizeof(log), "%s-wal", live->rig.path);
	file = fopen(log, "w");
	assert_non_null(file);
	fclose(file);
	assert_false(view_source_poll(source, now_ns));
	assert_null(source->db);
	assert_int_equal(source->state, VIEW_CLOSING);
	assert_true(view_source_poll(source, now_ns + UINT64_C(4000000000)));
	assert_int_equal(source->state, VIEW_COMPLETE);
}

static void test_recording_nudges_nobody_but_at_its_end(void **state)
{
	struct live *live = *state;
	const int watch = prof_nudge_watch(live->rig.path);

	if (watch < 0)
		skip(); /* no inotify here */
	for (int i = 0; i < 10; i++)
		record_some(live);
	assert_false(prof_nudge_taken(watch));
	end_run(live);
	assert_int_equal(poll(&(struct pollfd){watch, POLLIN, 0}, 1, 0), 1);
	assert_true(prof_nudge_taken(watch));
	assert_false(prof_nudge_taken(watch));
	close(watch);
}

/* By the clocks that it has. */
static void test_up_to_when_it_is_written_is_said(void **state)
{
	struct live *live = *state;
	struct view_rig *rig = &live->rig;

	assert_line_shows(rig, "written", "up to host ");
	assert_hides(rig, "(sim)");
	ips_meta_set(live->recording, "clock_hz", "1000000000");
	ips_append_execution(live->recording, &(struct ips_execution){IPS_TRAIN, 1, 0, 0, 8, 2, 0,
								      9000, 1000, 2499000, 1});
	record_some(live);
	view_rig_close(rig);
	view_rig_open(rig, rig->path, NULL, 100, 30);
	assert_line_shows(rig, "written", "up to host ", ", device (sim) 2.5 ms");
	end_run(live);
}

static void test_what_cannot_be_watched_is_not(void **state)
{
	(void)state;
	assert_int_equal(prof_nudge_watch("/nonexistent/run.db"), -1);
	assert_false(prof_nudge_taken(-1));
	prof_nudge_send("/nonexistent/run.db");
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_a_run_that_is_followed_leaves_one_file),
		CASE(test_the_title_has_the_states_of_both),
		CASE(test_so_does_one_whose_news_wait),
		CASE(test_so_does_one_that_is_asked_something_endless),
		CASE(test_it_is_not_taken_again_before_its_log_is_gone_or_stays),
		CASE(test_recording_nudges_nobody_but_at_its_end),
		CASE(test_up_to_when_it_is_written_is_said),
		cmocka_unit_test(test_what_cannot_be_watched_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
