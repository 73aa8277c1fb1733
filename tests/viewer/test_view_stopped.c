/*
 * Loads that are stopped half way: whatever a screen has read by then, it is survived, and what is
 * read afterwards shows the same as if nothing had been stopped. On recordings of every kind, alone
 * and compared.
 *
 * IPUSCOPE_TEST_ROUNDS=n stops each load at n places.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "support/support.h"
#include "support/view_recordings.h"
#include "support/view_rig.h"
#include "support/view_stop.h"
#include "viewer/timeline/view_timeline_internal.h"

#define PLACES 3
#define WIDTH  100
#define HEIGHT 30

struct stopped {
	char folder[SUPPORT_PATH_SIZE];
	int stops; /* loads that ended as stopped */
};

static int places(void)
{
	return (int)support_rounds(PLACES);
}

static int setup(void **state)
{
	struct stopped *stopped = calloc(1, sizeof(*stopped));

	assert_non_null(stopped);
	support_tempdir(stopped->folder);
	setenv("XDG_STATE_HOME", stopped->folder, 1);
	view_stop_watch();
	*state = stopped;
	return 0;
}

static int teardown(void **state)
{
	struct stopped *stopped = *state;

	support_tempdir_remove(stopped->folder);
	free(stopped);
	return 0;
}

/* A session on the recording @which, compared or not, that has been drawn on @screen; its load is
 * stopped at look @at (0: never). Returns the looks it took. */
static int64_t open_on(struct stopped *stopped, struct view_rig *rig, size_t which, bool compared,
		       int screen, int64_t at)
{
	const char *source = view_recording(stopped->folder, which);
	const char *target = compared ? view_recording(stopped->folder, which + 1) : NULL;

	assert_int_equal(view_session_open(&rig->session, source, target, false, NULL), ST_OK);
	view_session_show(&rig->session, (enum view_screen)screen);
	view_stop_after(at, &rig->session.context.cancel);
	view_rig_size(rig, WIDTH, HEIGHT);
	return view_stop_never();
}

/* All that may be asked of a screen, whatever it has. */
static void ask_all(struct view_rig *rig)
{
	static const char keys[] = "jk+yo";

	for (const char *key = keys; *key; key++) {
		view_rig_key(rig, (unsigned char)*key);
		if (rig->session.popup.kind != VIEW_NO_POPUP)
			view_rig_key(rig, VIEW_KEY_ESCAPE);
	}
}

static void compare(struct view_rig *rig, const char *wanted, size_t which, int screen, int64_t at)
{
	char *got = view_rig_text(&rig->session);

	if (strcmp(got, wanted) != 0)
		print_error("recording %zu, screen %s, stopped at look %lld:\n%s\ninstead of\n%s\n",
			    which, view_screen((enum view_screen)screen)->name, (long long)at, got,
			    wanted);
	assert_string_equal(got, wanted);
	free(got);
}

/* Stopped at @at; then read again because the size is another. */
static void stop_at(struct stopped *stopped, size_t which, bool compared, int screen, int64_t at,
		    const char *wanted)
{
	struct view_rig rig;

	open_on(stopped, &rig, which, compared, screen, at);
	assert_int_equal(rig.session.fresh[screen], !view_cancelled(&rig.session.context));
	if (!rig.session.fresh[screen]) {
		stopped->stops++;
		assert_shows(&rig, "stopped: r reads it again");
	}
	view_rig_size(&rig, WIDTH, HEIGHT);
	compare(&rig, wanted, which, screen, at);
	ask_all(&rig);
	view_rig_close(&rig);
}

static void stop_everywhere(struct stopped *stopped, bool compared)
{
	for (size_t which = 0; which < view_recordings_count; which++)
		for (int screen = (int)(which % support_stride()); screen < VIEW_SCREENS;
		     screen += (int)support_stride()) {
			struct view_rig rig;
			int64_t looks = open_on(stopped, &rig, which, compared, screen, 0);
			char *wanted = view_rig_text(&rig.session);

			view_rig_close(&rig);
			for (int i = 0; i < places(); i++)
				stop_at(stopped, which, compared, screen, 1 + looks * i / places(),
					wanted);
			free(wanted);
		}
	assert_true(stopped->stops > (int)view_recordings_count);
}

static void test_a_load_that_was_stopped_is_read_again_in_full(void **state)
{
	stop_everywhere(*state, false);
}

static void test_comparing_too(void **state)
{
	stop_everywhere(*state, true);
}

/* What is read of the target alone hears between its queries that nobody waits, too. */
static void test_the_target_alone_is_stopped(void **state)
{
	struct stopped *stopped = *state;
	int stops = 0;

	for (size_t which = 0; which < view_recordings_count; which++) {
		struct view_rig rig;
		struct view_context *context = &rig.session.context, its;
		struct view_timeline *target;
		struct err err;

		open_on(stopped, &rig, which, true, VIEW_TIMELINE, 0);
		target = ((struct view_timeline *)rig.session.state[VIEW_TIMELINE])->target;
		its = view_context_of_target(context);
		if (target->lane_count > 0)
			assert_int_equal(view__timeline_load(target, &its, true, &err), ST_OK);
		view__picture_reset(target);
		atomic_store(&context->cancel, true);
		stops += target->lane_count > 0 &&
			 view__timeline_load(target, &its, true, &err) == ST_INTERRUPTED;
		view_rig_close(&rig);
	}
	assert_true(stops > 0);
}

/* Every key of the screen is stopped at look @at, then everything is asked. */
static void stop_keys(struct stopped *stopped, size_t which, bool compared, int screen, int64_t at)
{
	struct view_rig rig;

	open_on(stopped, &rig, which, compared, screen, 0);
	for (int i = VIEW_NONE + 1; i < VIEW_REQUESTS; i++) {
		const struct view_request_info *info = view_request_info((enum view_request)i);

		if (i == VIEW_QUIT_REQUEST || i == VIEW_CLOSE_REQUEST)
			continue;
		view_stop_after(at, &rig.session.context.cancel);
		view_rig_key(&rig, info->keys[0]);
		view_stop_never();
		view_rig_key(&rig, VIEW_KEY_ESCAPE);
		ask_all(&rig);
		view_session_show(&rig.session, (enum view_screen)screen);
		view_rig_size(&rig, i % 2 ? WIDTH : WIDTH / 2, HEIGHT - i % 3);
	}
	view_rig_close(&rig);
}

static void test_keys_that_are_stopped_are_survived(void **state)
{
	struct stopped *stopped = *state;

	for (size_t which = 0; which < view_recordings_count; which += support_stride())
		for (int screen = (int)(which / support_stride() % support_stride());
		     screen < VIEW_SCREENS; screen += (int)support_stride())
			for (int i = 0; i < places(); i += 2)
				stop_keys(stopped, which, i % 4 == 2, screen, 1 + 7 * i * i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_load_that_was_stopped_is_read_again_in_full),
		cmocka_unit_test(test_comparing_too),
		cmocka_unit_test(test_the_target_alone_is_stopped),
		cmocka_unit_test(test_keys_that_are_stopped_are_survived),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
