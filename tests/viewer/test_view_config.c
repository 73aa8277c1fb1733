/*
 * The user's settings: what is missing stays, what is wrong is named with its place.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "support/support.h"
#include "viewer/view_config.h"

static char folder[] = "/tmp/view_config_XXXXXX";
static char path[128];

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/ipuscope", folder);
	if (mkdir(path, 0700))
		return -1;
	snprintf(path, sizeof(path), "%s/ipuscope/view.json", folder);
	return setenv("XDG_CONFIG_HOME", folder, 1);
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	snprintf(path, sizeof(path), "%s/ipuscope", folder);
	rmdir(path);
	return rmdir(folder);
}

static void write_config(const char *text)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static void assert_refused(const char *text, const char *place, const char *why)
{
	struct view_config config;
	struct err err = {0};

	write_config(text);
	view_config_defaults(&config);
	assert_int_not_equal(view_config_load(&config, NULL, &err), ST_OK);
	if (!strstr(err.text, place) || !strstr(err.text, why) || !strstr(err.text, "view.json"))
		fail_msg("%s: %s", text, err.text);
	/* Nothing is taken of a file that is wrong somewhere. */
	assert_string_equal(config.theme, "auto");
	assert_false(config.mouse);
}

static void test_a_missing_file_leaves_the_defaults(void **state)
{
	struct view_config config;
	struct err err = {0};

	(void)state;
	view_config_defaults(&config);
	assert_int_equal(view_config_load(&config, NULL, &err), ST_OK);
	assert_string_equal(config.theme, "auto");
	assert_string_equal(config.color, "auto");
	assert_string_equal(config.ascii, "auto");
	assert_false(config.mouse || config.follow);
	assert_int_equal(config.screen, VIEW_SUMMARY);
	/* One that was asked for must be there. */
	assert_int_equal(view_config_load(&config, "/nowhere/view.json", &err), ST_NOTFOUND);
}

static void test_all_settings_are_taken(void **state)
{
	struct view_config config;

	(void)state;
	write_config(
		"{\"theme\": \"light\", \"color\": \"never\", \"ascii\": true, \"mouse\": true,"
		"\"screen\": \"timeline\", \"follow\": true}");
	view_config_defaults(&config);
	assert_int_equal(view_config_load(&config, NULL, NULL), ST_OK);
	assert_string_equal(config.theme, "light");
	assert_string_equal(config.color, "never");
	assert_string_equal(config.ascii, "always");
	assert_true(config.mouse && config.follow);
	assert_int_equal(config.screen, VIEW_TIMELINE);
	write_config("{\"ascii\": false}");
	assert_int_equal(view_config_load(&config, NULL, NULL), ST_OK);
	assert_string_equal(config.ascii, "never");
	assert_string_equal(config.theme, "light");
	write_config("{\"ascii\": \"auto\"}");
	assert_int_equal(view_config_load(&config, path, NULL), ST_OK);
	assert_string_equal(config.ascii, "auto");
}

static void test_what_is_wrong_is_named_with_its_place(void **state)
{
	(void)state;
	assert_refused("{\"mouse\": true, \"them\": \"dark\"}", "them", "theme");
	assert_refused("{\"mouse\": true, \"theme\": \"drak\"}", "theme", "dark");
	assert_refused("{\"screen\": \"timelin\", \"mouse\": true}", "screen", "timeline");
	assert_refused("{\"mouse\": \"yes\"}", "mouse", "");
	assert_refused("{\"mouse\": true, \"ascii\": \"maybe\"}", "ascii", "true, false or");
	assert_refused("{\"mouse\": true, \"follow\": 3}", "follow", "");
	assert_refused("{\"mouse\": true, \"color\": \"allways\"}", "color", "always");
	assert_refused("[]", "view.json", "");
	assert_refused("{\"mouse\": true", "view.json", "");
	assert_refused("{\"mouse\": true, \"mouse\": true}", "mouse", "");
}

static void test_the_theme_follows_the_ground(void **state)
{
	static const struct {
		const char *theme, *colorfgbg;
		enum view_theme expected;
	} cases[] = {
		{"auto", NULL, VIEW_DARK},     {"auto", "15;0", VIEW_DARK},
		{"auto", "0;15", VIEW_LIGHT},  {"auto", "0;default;15", VIEW_LIGHT},
		{"auto", "0;7", VIEW_LIGHT},   {"auto", "7;8", VIEW_DARK},
		{"auto", "", VIEW_DARK},       {"auto", "0;default", VIEW_DARK},
		{"auto", "0;99", VIEW_DARK},   {"auto", "0;15x", VIEW_DARK},
		{"light", "15;0", VIEW_LIGHT}, {"dark", "0;15", VIEW_DARK},
		{"auto", "7;;;", VIEW_DARK},
	};
	struct view_config config;

	(void)state;
	view_config_defaults(&config);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		config.theme = cases[i].theme;
		assert_int_equal(view_config_theme(&config, cases[i].colorfgbg), cases[i].expected);
	}
}

static void end_sleep(int number)
{
	(void)number;
}

/* A lock that another viewer keeps is waited for, but not for ever; signals shorten the sleep
 * between two tries. */
static void test_a_lock_that_another_keeps_is_given_up(void **state)
{
	const struct sigaction action = {.sa_handler = end_sleep};
	const struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
	struct sigaction before;
	char lock[160];
	int kept;

	(void)state;
	setenv("XDG_STATE_HOME", folder, 1);
	kept = view_own_lock();
	assert_true(kept >= 0);
	assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	assert_int_equal(view_own_lock(), -1);
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
	view_own_unlock(-1);
	view_own_unlock(kept);
	kept = view_own_lock();
	assert_true(kept >= 0);
	view_own_unlock(kept);
	/* Where no file can be made there is no lock. */
	snprintf(lock, sizeof(lock), "%s/ipuscope/lock", folder);
	assert_int_equal(unlink(lock), 0);
	setenv("XDG_STATE_HOME", "/dev/null", 1);
	assert_int_equal(view_own_lock(), -1);
	unsetenv("XDG_STATE_HOME");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_missing_file_leaves_the_defaults),
		cmocka_unit_test(test_all_settings_are_taken),
		cmocka_unit_test(test_what_is_wrong_is_named_with_its_place),
		cmocka_unit_test(test_the_theme_follows_the_ground),
		cmocka_unit_test(test_a_lock_that_another_keeps_is_given_up),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
