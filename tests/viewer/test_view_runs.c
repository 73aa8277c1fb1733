/*
 * The second run, chosen from inside: the screens are those of a viewer that was opened on the same
 * runs, and what cannot be opened changes nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "support/prof_testing.h"
#include "support/support.h"
#include "support/view_fixture_model.h"
#include "support/view_rig.h"

static int setup(void **state)
{
	struct view_rig *rig = view_rig_new(state);

	if (!view_fixture_model_write(rig->path, false) ||
	    !view_fixture_model_write(rig->other, true) || chdir(rig->folder))
		return -1;
	view_rig_start(rig, false, 132, 43, "");
	return 0;
}

/* Every screen shows what one opened on @path and @target shows. */
static void assert_looks_as_opened(struct view_rig *rig, const char *path, const char *target)
{
	static const char keys[] = "123456789HXP:";
	struct view_rig opened = {.folder = ""};

	view_rig_open(&opened, path, target, 132, 43);
	for (const char *key = keys; *key; key++) {
		char *here, *there;

		view_rig_press(rig, (const char[]){*key, '\0'});
		view_rig_press(&opened, (const char[]){*key, '\0'});
		/* Out of the line of SQL. */
		view_rig_key(rig, VIEW_KEY_ESCAPE);
		view_rig_key(&opened, VIEW_KEY_ESCAPE);
		here = view_rig_text(&rig->session);
		there = view_rig_text(&opened.session);
		assert_string_equal(here, there);
		free(here);
		free(there);
	}
	view_rig_close(&opened);
}

static void test_a_run_is_chosen_from_the_list(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "R");
	assert_shows(rig, "Compare with");
	assert_line_shows(rig, "20", "complete", "other.db");
	assert_hides(rig, "run.db   ");
	view_rig_press(rig, "\r");
	assert_shows(rig, "compared with other.db");
	assert_looks_as_opened(rig, rig->path, "other.db");
}

static void test_the_two_are_swapped_and_parted(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "6Rother\rRswap\r");
	assert_shows(rig, "the source is now other.db");
	assert_looks_as_opened(rig, "other.db", rig->path);
	view_rig_press(rig, "DRnone\r");
	assert_shows(rig, "alone: other.db");
	assert_looks_as_opened(rig, "other.db", NULL);
	/* The one that was left can be taken again. */
	view_rig_press(rig, "Rrun.db\r");
	assert_looks_as_opened(rig, "other.db", rig->path);
}

static void test_what_is_typed_filters(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "ROTHER");
	assert_shows(rig, "compare with: OTHER");
	assert_line_shows(rig, "complete", "other.db");
	view_rig_press(rig, "x");
	assert_hides(rig, "other.db");
	assert_shows(rig, "Enter opens OTHERx");
	view_rig_key(rig, VIEW_KEY_BACKSPACE);
	assert_line_shows(rig, "complete", "other.db");
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	assert_hides(rig, "Compare with");
	assert_looks_as_opened(rig, rig->path, NULL);
}

/* What was typed and taken back is no path: Enter takes none, whether it says so or not. */
static void test_without_another_run_a_path_is_asked_for(void **state)
{
	struct view_rig *rig = *state;
	char text[SUPPORT_PATH_SIZE + 32];

	snprintf(text, sizeof(text), "%s/x", rig->folder);
	assert_int_equal(rename(rig->other, text), 0);
	view_rig_press(rig, "R");
	assert_shows(rig, "No other report here");
	for (int typed = 0; typed < 2; typed++) {
		if (typed) {
			view_rig_press(rig, "Rx");
			assert_shows(rig, "Enter opens x");
			view_rig_key(rig, VIEW_KEY_BACKSPACE);
		}
		view_rig_press(rig, "\r");
		assert_hides(rig, "Compare with");
		assert_null(rig->session.context.target);
		assert_null(strstr(rig->session.context.message, "not compared"));
	}
	view_rig_press(rig, "Rx\r");
	assert_shows(rig, "compared with x");
}

static void test_where_one_was_and_what_one_typed_stays(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, ":SELECT count(*) AS found FROM layers;\r");
	assert_shows(rig, "found");
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	view_rig_press(rig, "6/Softmax\r");
	assert_shows(rig, "\xe2\x96\xb6"
			  "Dense_B/Softmax");
	view_rig_press(rig, "Rother\r");
	assert_shows(rig, "\xe2\x96\xb6"
			  "Dense_B/Softmax");
	assert_line_shows(rig, "operation", "cycles", "Target");
	/* The statement is asked of both. */
	view_rig_press(rig, ":");
	assert_shows(rig, "SELECT count(*) AS found FROM layers");
	assert_line_shows(rig, "found Source", "Target");
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	view_rig_press(rig, "Rnone\r");
	assert_shows(rig, "SELECT count(*) AS found FROM layers");
	assert_hides(rig, "Target");
}

static void test_what_cannot_be_opened_changes_nothing(void **state)
{
	static const struct {
		const char *typed, *said;
	} bad[] = {{"broken.db", "not compared: broken.db: not a recorded database"},
		   {"/no/such/run", "not compared: /no/such/run: No such file"},
		   {"empty_folder", "not compared: empty_folder"}};
	struct view_rig *rig = *state;
	char *before, *after;

	assert_int_equal(system("echo nonsense >broken.db; mkdir empty_folder"), 0);
	view_rig_press(rig, "Rbroken");
	assert_line_shows(rig, "unreadable", "broken.db");
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	view_rig_press(rig, "6");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		before = view_rig_text(&rig->session);
		view_rig_press(rig, "R");
		view_rig_press(rig, bad[i].typed);
		view_rig_press(rig, "\r");
		assert_shows(rig, bad[i].said);
		/* The next key takes the line away. */
		view_rig_press(rig, "g");
		after = view_rig_text(&rig->session);
		assert_string_equal(before, after);
		free(before);
		free(after);
	}
	/* A comparison stays one. */
	view_rig_press(rig, "Rother\rR/no/such/run\r");
	assert_shows(rig, "not compared");
	assert_looks_as_opened(rig, rig->path, "other.db");
}

static void test_reports_of_both_folders_the_newest_first(void **state)
{
	struct view_rig *rig = *state;
	char *text;

	assert_int_equal(system("mkdir -p else/tf_report__1 sub; cp run.db sub/run2.db; "
				"cp run.db else/tf_report__1/profile.db; "
				"mkdir -p else/tf_report__2/profile.db"),
			 0);
	prof_change(
		"else/tf_report__1/profile.db",
		"UPDATE meta_facts SET value = '4000000000000000000' WHERE key = 'start_epoch_ns'");
	assert_int_equal(chdir("else"), 0);
	view_rig_press(rig, "R");
	text = view_rig_text(&rig->session);
	assert_non_null(strstr(text, "tf_report__1"));
	assert_non_null(strstr(text, "other.db"));
	assert_true(strstr(text, "tf_report__1") < strstr(text, "other.db"));
	assert_null(strstr(text, "run2.db"));
	assert_null(strstr(text, "tf_report__2")); /* a folder of this name is no run */
	free(text);
	/* Keys move, and what is under the cursor is taken. */
	view_rig_key(rig, VIEW_KEY_DOWN);
	view_rig_press(rig, "\r");
	assert_shows(rig, "compared with other.db");
	assert_int_equal(chdir(rig->folder), 0);
}

static void test_a_click_takes_a_run(void **state)
{
	struct view_rig *rig = *state;
	const struct view_popup *popup = &rig->session.popup;

	view_rig_press(rig, "R");
	view_session_click(&rig->session, 0, 1);
	view_session_draw(&rig->session);
	assert_hides(rig, "Compare with");
	view_rig_press(rig, "R");
	view_session_click(&rig->session, popup->rect.x + 2, popup->rect.y + 1);
	view_session_draw(&rig->session);
	assert_shows(rig, "compared with other.db");
}

static void test_short_memory_changes_nothing(void **state)
{
	struct view_rig *rig = *state;
	bool failed = true;

	for (long n = 0; failed; n += 1 + n / 4) {
		view_rig_press(rig, rig->session.context.target ? "Rnone\r6" : "6");
		support_fail_alloc(n);
		view_session_key(&rig->session, 'R');
		for (const char *key = "other\r"; *key; key++)
			view_session_key(&rig->session, (unsigned char)*key);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		view_rig_key(rig, VIEW_KEY_ESCAPE);
		view_rig_press(rig, "1r6r");
		assert_int_equal(rig->session.trouble.status, ST_OK);
	}
	view_rig_press(rig, "g");
	assert_looks_as_opened(rig, rig->path, "other.db");
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, view_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(test_a_run_is_chosen_from_the_list),
		EACH(test_the_two_are_swapped_and_parted),
		EACH(test_what_is_typed_filters),
		EACH(test_without_another_run_a_path_is_asked_for),
		EACH(test_where_one_was_and_what_one_typed_stays),
		EACH(test_what_cannot_be_opened_changes_nothing),
		EACH(test_reports_of_both_folders_the_newest_first),
		EACH(test_a_click_takes_a_run),
		EACH(test_short_memory_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
