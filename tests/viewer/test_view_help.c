/*
 * The Help: it is about the screen that it was asked on, says every word once, and no line of it is
 * cut.
 */
#include <stdlib.h>
#include <string.h>

#include "support/support.h"
#include "support/view_rig.h"
#include "viewer/view_screen.h"

/* Press the key of @screen, then ?. */
static void ask_on(struct view_rig *rig, enum view_screen screen)
{
	/* SQL takes keys as text until Esc. */
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	view_rig_key(rig, view_screen(screen)->key);
	if (screen == VIEW_SQL)
		view_rig_key(rig, VIEW_KEY_ESCAPE);
	view_rig_key(rig, '?');
}

static void test_it_is_about_the_screen_that_it_was_asked_on(void **state)
{
	struct view_rig *rig = *state;

	view_rig_size(rig, 100, 200);
	for (int i = 0; i < VIEW_HELP_SCREEN; i++) {
		const struct view_help_told *told = view_help_told((enum view_screen)i);

		ask_on(rig, (enum view_screen)i);
		assert_shows(rig, view_screen((enum view_screen)i)->title);
		assert_shows(rig, told->words[0].word);
		assert_shows(rig, told->keys[0].text);
		view_rig_key(rig, '?');
		assert_int_equal(rig->session.screen, i);
	}
}

/* Its page begins anew on another screen, and stays where it was on the same. */
static void test_it_begins_at_its_top(void **state)
{
	struct view_rig *rig = *state;

	ask_on(rig, VIEW_METRICS);
	view_rig_press(rig, "G?");
	view_rig_press(rig, "?");
	assert_shows(rig, "Leave the program");
	view_rig_press(rig, "?");
	ask_on(rig, VIEW_HEALTH);
	assert_shows(rig, "The screen Health");
}

/* Only keys that do something there. */
static void test_keys_of_other_screens_are_left_out(void **state)
{
	struct view_rig *rig = *state;
	char *text;

	view_rig_size(rig, 100, 200);
	ask_on(rig, VIEW_SUMMARY);
	text = view_rig_text(&rig->session);
	assert_null(strstr(text, "longest child"));
	assert_non_null(strstr(text, "Write the screen to a file"));
	free(text);
	ask_on(rig, VIEW_TIMELINE);
	assert_shows(rig, "The longest span inside");
}

static void test_every_screen_is_told(void **state)
{
	(void)state;
	for (int i = 0; i < VIEW_HELP_SCREEN; i++) {
		const struct view_help_told *told = view_help_told((enum view_screen)i);

		assert_true(told->answers[0] && told->shows[0]);
		for (const struct view_help_word *word = told->words; word->text; word++)
			assert_true(strlen(word->word) < 20);
		for (const struct view_help_key *key = told->keys; key->text; key++)
			assert_true(view_request_info(key->request)->screens &
				    view_screen((enum view_screen)i)->where);
	}
}

static void test_no_line_is_cut_at_any_width(void **state)
{
	struct view_rig *rig = *state;

	for (int width = 40; width <= 250; width += 15)
		for (int i = 0; i < VIEW_HELP_SCREEN; i++) {
			char *text, *body;

			view_rig_size(rig, width, 220);
			ask_on(rig, (enum view_screen)i);
			text = view_rig_text(&rig->session);
			body = strchr(text, '\n');
			*strstr(body, " of ") = '\0'; /* the status line */
			assert_null(strstr(body, "\xe2\x80\xa6"));
			free(text);
		}
}

#define HELP_TEST(test) cmocka_unit_test_setup_teardown(test, view_rig_setup, view_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		HELP_TEST(test_it_is_about_the_screen_that_it_was_asked_on),
		HELP_TEST(test_it_begins_at_its_top),
		HELP_TEST(test_keys_of_other_screens_are_left_out),
		cmocka_unit_test(test_every_screen_is_told),
		HELP_TEST(test_no_line_is_cut_at_any_width),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
