/*
 * The writer closes the file, and the viewer has let go of it: every key, word and place is
 * survived, what was shown stays, and what needs the file says why it cannot be.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "support/report_sample.h"
#include "support/support.h"
#include "support/view_rig.h"

#define CLOSED "the run is being closed"

static int setup_for(void **state, bool compared)
{
	struct view_rig *rig = view_rig_new(state);

	report_sample_write(rig->path);
	view_rig_open(rig, rig->path, compared ? rig->path : NULL, 100, 30);
	return 0;
}

static int setup(void **state)
{
	return setup_for(state, false);
}

static int setup_compared(void **state)
{
	return setup_for(state, true);
}

static void show(struct view_rig *rig, int screen)
{
	view_session_show(&rig->session, (enum view_screen)screen);
	view_session_draw(&rig->session);
}

static void show_all(struct view_rig *rig)
{
	for (int screen = 0; screen < VIEW_SCREENS; screen++)
		show(rig, screen);
}

static void let_go(struct view_rig *rig)
{
	struct view_source *const sources[] = {&rig->session.source, &rig->session.target};

	for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
		if (!sources[i]->path[0])
			continue;
		view_source_close(sources[i]);
		sources[i]->state = VIEW_CLOSING;
		sources[i]->retry_ns = UINT64_MAX;
	}
}

/* All requests of the screen but those that leave or look for news no more. */
static void request_all(struct view_rig *rig, int screen)
{
	for (int i = VIEW_NONE + 1; i < VIEW_REQUESTS; i++) {
		const struct view_request_info *info = view_request_info((enum view_request)i);

		if (i == VIEW_QUIT_REQUEST || i == VIEW_CLOSE_REQUEST || i == VIEW_PAUSE_REQUEST)
			continue;
		show(rig, screen);
		view_rig_key(rig, info->keys[0]);
		for (int escape = 0; escape < 3; escape++)
			view_rig_key(rig, VIEW_KEY_ESCAPE);
	}
	show(rig, screen);
}

static void test_every_request_is_survived(void **state)
{
	struct view_rig *rig = *state;

	show_all(rig);
	let_go(rig);
	for (int screen = 0; screen < VIEW_SCREENS; screen++) {
		request_all(rig, screen);
		view_rig_press(rig, "/e\rnN\\d\r\\\rm\r'\x1b>Wx.csv\r");
		for (int y = 0; y < 30; y += 3)
			view_session_click(&rig->session, 20, y);
		view_rig_key(rig, VIEW_KEY_ESCAPE);
		view_rig_key(rig, VIEW_KEY_ESCAPE);
	}
	assert_false(rig->session.quit);
}

static void test_what_was_shown_stays(void **state)
{
	struct view_rig *rig = *state;

	show_all(rig);
	let_go(rig);
	for (int screen = 0; screen < VIEW_SCREENS; screen++) {
		show(rig, screen);
		assert_true(rig->session.fresh[screen]);
		assert_int_equal(rig->session.trouble.status, ST_OK);
	}
}

static void test_what_needs_the_file_says_why_not(void **state)
{
	struct view_rig *rig = *state;
	int gone = 0;

	let_go(rig);
	show(rig, VIEW_MEMORY);
	show(rig, VIEW_OPERATIONS);
	assert_shows(rig, CLOSED);
	rig->session.source.retry_ns = rig->session.target.retry_ns = 0;
	view_session_tick(&rig->session, clock_ns());
	assert_non_null(rig->session.source.db);
	show_all(rig);
	show(rig, VIEW_OPERATIONS);
	let_go(rig);
	/* Sorting wants rows afresh, and so does every place. */
	view_rig_press(rig, ">");
	view_rig_press(rig, "o");
	assert_int_equal(rig->session.popup.kind, VIEW_JOIN_POPUP);
	for (int item = 0; item < rig->session.popup.count; item++) {
		rig->session.popup.at = item;
		view_rig_key(rig, VIEW_KEY_ENTER);
		gone += strstr(rig->session.context.message, CLOSED) != NULL;
		view_rig_key(rig, VIEW_KEY_BACKSPACE);
		show(rig, VIEW_OPERATIONS);
		view_rig_press(rig, "o");
		assert_int_equal(rig->session.popup.kind, VIEW_JOIN_POPUP);
	}
	assert_true(gone > 0);
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	view_rig_press(rig, "W");
	view_rig_key(rig, VIEW_CTRL('U'));
	view_rig_press(rig, "/nowhere/x.csv\r");
	assert_shows(rig, CLOSED);
}

static void test_all_of_it_comes_back(void **state)
{
	struct view_rig *rig = *state;

	show_all(rig);
	let_go(rig);
	for (int screen = 0; screen < VIEW_SCREENS; screen++)
		request_all(rig, screen);
	rig->session.source.retry_ns = rig->session.target.retry_ns = 0;
	view_session_tick(&rig->session, clock_ns());
	assert_non_null(rig->session.source.db);
	assert_true(rig->session.target.db || !rig->session.context.target);
	for (int screen = 0; screen < VIEW_SCREENS; screen++) {
		show(rig, screen);
		assert_int_equal(rig->session.trouble.status, ST_OK);
		assert_true(rig->session.fresh[screen]);
	}
}

#define ALONE(name) cmocka_unit_test_setup_teardown(test_##name, setup, view_rig_teardown)
#define COMPARED(name)                                                                             \
	cmocka_unit_test_setup_teardown(test_##name, setup_compared, view_rig_teardown)
#define BOTH(name) ALONE(name), COMPARED(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(every_request_is_survived),
		BOTH(what_was_shown_stays),
		BOTH(what_needs_the_file_says_why_not),
		BOTH(all_of_it_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
