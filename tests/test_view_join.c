/*
 * Screens lead to each other: what one has under its cursor the others go to, and back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report_sample.h"
#include "support/support.h"
#include "support/view_rig.h"

static int setup(void **state)
{
	struct view_rig *rig = calloc(1, sizeof(*rig));

	support_tempdir(rig->folder);
	setenv("XDG_STATE_HOME", rig->folder, 1);
	snprintf(rig->path, sizeof(rig->path), "%s/run.db", rig->folder);
	report_sample_write(rig->path);
	view_rig_open(rig, rig->path, NULL, 120, 40);
	*state = rig;
	return 0;
}

static void show(struct view_rig *rig, int screen)
{
	view_session_show(&rig->session, (enum view_screen)screen);
	view_session_draw(&rig->session);
	view_session_draw(&rig->session);
}

/* From @screen, @steps rows down, to what the item @item of the list offers. The last offered: -1.
 */
static bool go_to_item(struct view_rig *rig, int screen, int steps, int item)
{
	show(rig, screen);
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	show(rig, screen);
	view_rig_key(rig, 'g');
	for (int i = 0; i < steps; i++)
		view_rig_key(rig, 'j');
	view_rig_key(rig, 'o');
	if (rig->session.popup.kind != VIEW_JOIN_POPUP || item >= rig->session.popup.count) {
		view_rig_key(rig, VIEW_KEY_ESCAPE);
		return false;
	}
	for (int i = 0; i < item; i++)
		view_rig_key(rig, 'j');
	return true;
}

/* What is offered can be gone to, and Backspace leads back. */
static void test_what_is_offered_is_there(void **state)
{
	struct view_rig *rig = *state;
	int ways = 0, lost = 0;

	for (int screen = 0; screen < VIEW_SCREENS; screen++) {
		if (!view_screen((enum view_screen)screen)->place)
			continue;
		for (int steps = 0; steps < 4; steps++)
			for (int item = 0; go_to_item(rig, screen, steps, item); item++) {
				const int to = rig->session.popup.items[item].tag;
				const char *text = rig->session.popup.items[item].text;
				char what[512];

				snprintf(what, sizeof(what), "%s > %s: %s",
					 view_screen((enum view_screen)screen)->name,
					 view_screen((enum view_screen)to)->name, text);
				rig->session.context.message[0] = '\0';
				view_rig_key(rig, VIEW_KEY_ENTER);
				if (rig->session.trouble.status != ST_OK ||
				    (int)rig->session.screen != to)
					fail_msg("%s: %s %s", what, rig->session.context.message,
						 rig->session.trouble.text);
				/* What one screen knows need not be on another: it is said. */
				if (rig->session.context.message[0])
					printf("%s: %s\n", what, rig->session.context.message);
				lost += rig->session.context.message[0] != '\0';
				view_rig_key(rig, VIEW_KEY_ESCAPE);
				if ((int)rig->session.screen != screen)
					view_rig_key(rig, VIEW_KEY_BACKSPACE);
				if ((int)rig->session.screen != screen)
					fail_msg("%s: no way back", what);
				ways++;
			}
	}
	printf("%d ways, %d of them end in a message\n", ways, lost);
	assert_true(ways > 0 && 4 * lost <= ways);
}

/* A place under the cursor of a screen is one that the screen itself can go to. */
static void test_a_screen_goes_to_its_own_places(void **state)
{
	struct view_rig *rig = *state;

	for (int s = 0; s < VIEW_SCREENS; s++) {
		const struct view_screen_ops *ops = view_screen((enum view_screen)s);
		struct view_place place, after;
		struct err err = {0};

		if (!ops->place || !ops->go)
			continue;
		show(rig, s);
		view_rig_key(rig, 'j');
		view_place_clear(&place);
		if (!ops->place(rig->session.state[s], &rig->session.context, &place))
			continue;
		view_rig_key(rig, 'G');
		if (ops->go(rig->session.state[s], &rig->session.context, &place, &err) != ST_OK)
			fail_msg("%s: %s", ops->name, err.text);
		rig->session.stale = true;
		view_session_draw(&rig->session);
		view_place_clear(&after);
		assert_true(ops->place(rig->session.state[s], &rig->session.context, &after));
	}
}

static void test_a_span_and_an_operation_are_completed(void **state)
{
	struct view_rig *rig = *state;
	struct view_place place;
	char *operation = view_rig_sql_text(rig, "SELECT operation FROM operations WHERE layer IS "
						 "NOT NULL LIMIT 1");
	char *layer = view_rig_sql_text(rig, "SELECT layer FROM operations WHERE layer IS NOT NULL "
					     "LIMIT 1");

	view_place_clear(&place);
	place.span_id = view_rig_sql_int(rig, "SELECT span_id FROM spans WHERE stage IS NOT NULL "
					      "ORDER BY span_id LIMIT 1");
	assert_int_equal(view_place_complete(&place, rig->session.source.db, NULL), ST_OK);
	assert_int_equal(place.stage,
			 view_rig_sql_int(rig, "SELECT stage FROM spans WHERE stage IS "
					       "NOT NULL ORDER BY span_id LIMIT 1"));
	assert_int_equal(place.time_ns,
			 view_rig_sql_int(rig, "SELECT start_ns FROM spans WHERE stage IS NOT NULL "
					       "ORDER BY span_id LIMIT 1"));
	view_place_clear(&place);
	view_place_text(place.operation, operation);
	assert_int_equal(view_place_complete(&place, rig->session.source.db, NULL), ST_OK);
	assert_string_equal(place.layer, layer);
	assert_true(place.key[0]);
	free(operation);
	free(layer);
}

/* The statements behind every screen are statements. */
static void test_every_query_runs(void **state)
{
	struct view_rig *rig = *state;

	for (int s = 0; s < VIEW_SCREENS; s++) {
		const struct view_screen_ops *ops = view_screen((enum view_screen)s);
		struct support_result result;
		struct str text = {0};
		char path[SUPPORT_PATH_SIZE + 16];

		if (!ops->query || !support_has_program("sqlite3"))
			continue;
		show(rig, s);
		ops->query(rig->session.state[s], &rig->session.context, &text);
		snprintf(path, sizeof(path), "%s/q.sql", rig->folder);
		support_write_file(path, str_peek(&text), strlen(str_peek(&text)));
		support_shell(&result, "sqlite3 -bail %s < %s 2>&1 >/dev/null", rig->path, path);
		if (result.out[0])
			fail_msg("%s: %s\n%s", ops->name, result.out, str_peek(&text));
		support_result_free(&result);
		str_free(&text);
	}
}

#define JOIN_TEST(test) cmocka_unit_test_setup_teardown(test, setup, view_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		JOIN_TEST(test_what_is_offered_is_there),
		JOIN_TEST(test_a_screen_goes_to_its_own_places),
		JOIN_TEST(test_a_span_and_an_operation_are_completed),
		JOIN_TEST(test_every_query_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
