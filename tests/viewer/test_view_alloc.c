/*
 * Memory that cannot be had, the viewer's own and SQLite's: in whatever key of whatever screen that
 * happens, it is an error of one line or a key without an effect, nothing is lost of the session,
 * and the next look shows all again. Sanitizers see leaks.
 *
 * One allocation fails in each walk through a screen, another one each time, the later
 * the rarer: the one after n is n + 1 + n / 2. IPUSCOPE_TEST_ROUNDS=r has n + 1 + n / r instead.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/mem.h"
#include "support/sqlite_alloc.h"
#include "support/support.h"
#include "support/view_recordings.h"
#include "support/view_rig.h"

static char folder[SUPPORT_PATH_SIZE];

/* ---- whose allocations ----------------------------------------------------------------------- */

static const struct memory {
	const char *name;
	void (*fail_at)(long n); /* as support_fail_alloc() */
	bool (*failed)(void);
} memories[] = {{"the viewer's", support_fail_alloc, support_alloc_failed},
		{"SQLite's", sqlite_alloc_fail, sqlite_alloc_failed}};

/* ---- a walk ---------------------------------------------------------------------------------- */

struct walk {
	enum view_screen screen;
	size_t source; /* of view_recording() */
	int target;    /* -1: it is not compared */
};

static void escape(struct view_session *session)
{
	while (!session->quit &&
	       (session->prompt != VIEW_NO_PROMPT || session->popup.kind != VIEW_NO_POPUP))
		view_session_key(session, VIEW_KEY_ESCAPE);
}

static void press(struct view_session *session, const char *keys)
{
	for (; *keys; keys++)
		view_session_key(session, (unsigned char)*keys);
	view_session_draw(session);
}

static bool is_left_out(int request)
{
	return request == VIEW_QUIT_REQUEST || request == VIEW_CLOSE_REQUEST ||
	       request == VIEW_PAUSE_REQUEST || request == VIEW_WRITE_REQUEST;
}

/* Every key of the screen, and what it asks for answered. */
static void press_all(struct view_session *session, enum view_screen screen)
{
	for (int r = VIEW_NONE + 1; r < VIEW_REQUESTS; r++) {
		const struct view_request_info *info = view_request_info((enum view_request)r);

		if (!(info->screens & view_screen(screen)->where) || is_left_out(r))
			continue;
		view_session_show(session, screen);
		view_session_key(session, info->keys[0]);
		view_session_draw(session);
		if (session->prompt != VIEW_NO_PROMPT)
			press(session, "e\r");
		escape(session);
	}
	view_session_show(session, screen);
	view_session_draw(session);
}

static void write_screen(struct view_session *session, const char *name)
{
	char keys[SUPPORT_PATH_SIZE + 16];

	snprintf(keys, sizeof(keys), "%s/%s", folder, name);
	unlink(keys);
	snprintf(keys, sizeof(keys), "W%c%s/%s\r", VIEW_CTRL('U'), folder, name);
	press(session, keys);
	escape(session);
}

/* The error, where there is no session to be had. */
static enum status take(struct view_session *session, const struct walk *walk, bool keys,
			struct err *err)
{
	const char *target = walk->target < 0 ? NULL : view_recording(folder, (size_t)walk->target);
	enum status status;

	status = view_session_open(session, view_recording(folder, walk->source), target, false,
				   err);
	if (status != ST_OK)
		return status;
	status = view_session_size(session, 80, 24, err);
	if (status != ST_OK) {
		view_session_close(session);
		return status;
	}
	view_session_show(session, walk->screen);
	view_session_draw(session);
	if (!keys)
		return ST_OK;
	if (walk->screen == VIEW_SQL)
		press(session, "SELECT * FROM strings;\r");
	press_all(session, walk->screen);
	write_screen(session, "rows.csv");
	write_screen(session, "picture.svg");
	return ST_OK;
}

static void assert_one_line(const struct err *err)
{
	assert_true(err->text[0] != '\0');
	assert_null(strchr(err->text, '\n'));
}

/* There is memory again: the screen is read afresh and drawn. @what has failed. */
static void look_again(struct view_session *session, const struct walk *walk, const char *what)
{
	escape(session);
	view_session_show(session, walk->screen);
	if (session->trouble.status != ST_OK)
		assert_one_line(&session->trouble);
	session->news[walk->screen] = true;
	session->stale = true;
	view_session_draw(session);
	if (session->trouble.status != ST_OK || !session->fresh[walk->screen] || session->quit)
		fail_msg("after %s: %s", what, session->trouble.text);
}

/* The @n-th allocation of the walk fails. False: there are not so many. */
static bool walk_with(const struct walk *walk, bool keys, const struct memory *memory, long n,
		      char **picture)
{
	static struct view_session session;
	struct err err = {0};
	char what[128];
	enum status status;
	bool failed;

	snprintf(what, sizeof(what), "%s allocation %ld on %s of %zu, %d", memory->name, n,
		 view_screen(walk->screen)->name, walk->source, walk->target);
	memory->fail_at(n);
	status = take(&session, walk, keys, &err);
	failed = n >= 0 && memory->failed();
	memory->fail_at(-1);
	if (status != ST_OK) {
		assert_one_line(&err);
		return failed;
	}
	look_again(&session, walk, what);
	/* Where the timeline begins is a guess, which may fail; all of it, from its first lane on,
	 * is all of it. */
	if (walk->screen == VIEW_TIMELINE)
		press(&session, "kkkkkkkkkkkk0g");
	if (picture)
		*picture = view_rig_text(&session);
	view_session_close(&session);
	return failed;
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Each screen on the recording that has most to show there; the second one is compared with it. */
static const struct walk walks[] = {
	{VIEW_SUMMARY, 0, -1},   {VIEW_SUMMARY, 5, 6},      {VIEW_INSIGHTS, 0, -1},
	{VIEW_MEMORY, 7, -1},    {VIEW_MEMORY, 7, 0},       {VIEW_LIVENESS, 8, -1},
	{VIEW_LIVENESS, 8, 0},   {VIEW_PROGRAMS, 5, -1},    {VIEW_PROGRAMS, 5, 6},
	{VIEW_OPERATIONS, 5, 6}, {VIEW_TIMELINE, 10, -1},   {VIEW_TIMELINE, 4, 10},
	{VIEW_TENSORS, 12, -1},  {VIEW_TENSORS, 12, 0},     {VIEW_METRICS, 9, -1},
	{VIEW_METRICS, 9, 0},    {VIEW_HEALTH, 12, -1},     {VIEW_HEALTH, 12, 0},
	{VIEW_SQL, 4, -1},       {VIEW_HELP_SCREEN, 0, -1},
};

/* The allocation after @n that fails next: all of the first few, then @growth times as far each
 * time, and under sanitizers farther. */
static long next_of(long n, double growth)
{
	const char *rounds = getenv("IPUSCOPE_TEST_ROUNDS");

	growth = rounds && atoi(rounds) > 0 ? 1.0 / atoi(rounds) : growth * support_stride();
	return n + 1 + (long)((double)n * growth);
}

/* What a screen shows is what it would have shown, but for times that were taken. */
static void assert_same_picture(const char *a, const char *b, const char *what, long n)
{
	while (*a && *b) {
		const size_t left = strcspn(a, "\n"), right = strcspn(b, "\n");

		if ((left != right || strncmp(a, b, left) != 0) && !memmem(a, left, "cost", 4))
			fail_msg("after %s allocation %ld: %.*s\nelse: %.*s", what, n, (int)left, a,
				 (int)right, b);
		a += left + (a[left] == '\n');
		b += right + (b[right] == '\n');
	}
}

/* A sample has one walk's SQLite fail, and the next one's allocations of our own. */
static void test_a_load_that_fails_is_said_and_the_next_one_shows_all(void **state)
{
	const bool both = support_stride() == 1;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(walks); i++) {
		char *whole = NULL;

		walk_with(&walks[i], false, &memories[0], -1, &whole);
		for (size_t m = both ? 0 : (i + 1) % 2; m < ARRAY_LEN(memories); m += both ? 1 : 2)
			for (long n = 0, more = 1; more; n = next_of(n, 1.0 / 2)) {
				char *picture = NULL;

				more = walk_with(&walks[i], false, &memories[m], n, &picture);
				if (picture)
					assert_same_picture(picture, whole, memories[m].name, n);
				free(picture);
			}
		free(whole);
	}
}

static void test_a_key_that_fails_ends_nothing(void **state)
{
	const bool both = support_stride() == 1;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(walks); i++)
		for (size_t m = both ? 0 : i % 2; m < ARRAY_LEN(memories); m += both ? 1 : 2)
			for (long n = 0; walk_with(&walks[i], true, &memories[m], n, NULL);)
				n = next_of(n, 1);
}

static int setup(void **state)
{
	(void)state;
	support_tempdir(folder);
	setenv("XDG_STATE_HOME", folder, 1);
	for (size_t i = 0; i < view_recordings_count; i++)
		view_recording(folder, i);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	support_tempdir_remove(folder);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_load_that_fails_is_said_and_the_next_one_shows_all),
		cmocka_unit_test(test_a_key_that_fails_ends_nothing),
	};

	sqlite_alloc_hook();
	return cmocka_run_group_tests(tests, setup, teardown);
}
