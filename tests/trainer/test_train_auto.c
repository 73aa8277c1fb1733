/*
 * The report directory and the JSON files in it.
 */
#include "support/support.h"

#include <cjson/cJSON.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/mem.h"
#include "trainer/auto/train_auto.h"

static int setup(void **state)
{
	static char folder[SUPPORT_PATH_SIZE];

	support_tempdir(folder);
	*state = folder;
	return 0;
}

static int teardown(void **state)
{
	support_tempdir_remove(*state);
	return 0;
}

static void options_in(struct train_options *options, const char *directory)
{
	*options = (struct train_options){.any = true};
	snprintf(options->directory, sizeof(options->directory), "%s", directory);
}

static void test_the_directory_is_named_by_local_time_and_process(void **state)
{
	char directory[FS_PATH_SIZE], pattern[512];
	struct train_options options;
	regex_t regex;

	options_in(&options, *state);
	assert_int_equal(train_auto_directory(&options, directory, NULL), ST_OK);
	snprintf(pattern, sizeof(pattern),
		 "/tf_report__[0-9]{4}-[0-9]{2}-[0-9]{2}__[0-9]{2}-[0-9]{2}-[0-9]{2}[.][0-9]{3}__%"
		 "ld$",
		 (long)getpid());
	assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
	assert_int_equal(regexec(&regex, directory, 0, NULL, 0), 0);
	regfree(&regex);
	assert_true(fs_is_dir(directory));
	assert_int_equal(strncmp(directory, *state, strlen(*state)), 0);
}

static void test_two_in_a_row_are_two_directories(void **state)
{
	char a[FS_PATH_SIZE], b[FS_PATH_SIZE];
	struct train_options options;

	options_in(&options, *state);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(train_auto_directory(&options, a, NULL), ST_OK);
		assert_int_equal(train_auto_directory(&options, b, NULL), ST_OK);
		assert_string_not_equal(a, b);
	}
}

/* A process id that is no longer in use. */
static long ended_process(void)
{
	const pid_t child = fork();

	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	return (long)child;
}

/* No other file is removed, and nothing of a process that is alive. */
static void test_what_killed_runs_left_is_removed(void **state)
{
	static const struct {
		const char *name, *file;
		bool alive, removed;
	} cases[] = {
		{"tf_report__2026-01-01__00-00-00.001", "profile.db.7-0.tmp", false, true},
		{"tf_report__2026-01-01__00-00-00.002", "profile.db.7-0.tmp", true, false},
		{"tf_report__2026-01-01__00-00-00.003", "profile.db", false, false},
		{"tf_report__2026-01-01__00-00-00.004", "notes.txt", false, false},
		{"my_report__2026-01-01__00-00-00.005", "profile.db.7-0.tmp", false, false},
	};
	char folder[ARRAY_LEN(cases)][FS_PATH_SIZE], file[FS_PATH_SIZE], made[FS_PATH_SIZE];
	const long ended = ended_process();
	struct train_options options;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_true(fs_path(folder[i], "%s/%s__%ld", (char *)*state, cases[i].name,
				    cases[i].alive ? (long)getpid() : ended));
		assert_int_equal(mkdir(folder[i], 0777), 0);
		assert_true(fs_path(file, "%s/%s", folder[i], cases[i].file));
		support_write_file(file, "x", 1);
	}
	options_in(&options, *state);
	assert_int_equal(train_auto_directory(&options, made, NULL), ST_OK);
	assert_true(fs_is_dir(made));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_true(fs_path(file, "%s/%s", folder[i], cases[i].file));
		assert_int_equal(fs_exists(file), !cases[i].removed);
		assert_int_equal(fs_is_dir(folder[i]), !cases[i].removed);
	}
}

static void test_missing_parents_are_made(void **state)
{
	char parent[FS_PATH_SIZE], directory[FS_PATH_SIZE];
	struct train_options options;

	assert_true(fs_path(parent, "%s/a/b/c", (char *)*state));
	options_in(&options, parent);
	assert_int_equal(train_auto_directory(&options, directory, NULL), ST_OK);
	assert_true(fs_is_dir(directory));
}

static void test_an_unwritable_place_is_an_invalid_request(void **state)
{
	static const char *const below[] = {"/proc/ipuscope/reports", NULL};
	char directory[FS_PATH_SIZE] = "x", file[FS_PATH_SIZE], inside[FS_PATH_SIZE];
	struct train_options options;
	struct err err = {0};

	assert_true(fs_path(file, "%s/file", (char *)*state));
	assert_true(fs_path(inside, "%s/sub", file));
	support_write_file(file, "x", 1);
	for (int i = 0; i < 2; i++) {
		options_in(&options, below[i] ? below[i] : inside);
		assert_int_equal(train_auto_directory(&options, directory, &err), ST_INVALID);
		assert_int_equal(err.status, ST_INVALID);
		assert_contains(err.text, "autoReport.directory: ");
		assert_contains(err.text, options.directory);
		assert_string_equal(directory, "");
	}
}

/* A component that is too long fails after its parents were made. */
static void test_a_failure_leaves_no_folder_behind(void **state)
{
	char parent[FS_PATH_SIZE], first[FS_PATH_SIZE], directory[FS_PATH_SIZE];
	struct train_options options;

	assert_true(fs_path(first, "%s/new", (char *)*state));
	assert_true(fs_path(parent, "%s/below/%0300d", first, 1));
	options_in(&options, parent);
	assert_int_equal(train_auto_directory(&options, directory, NULL), ST_INVALID);
	assert_false(fs_exists(first));
	assert_true(fs_exists(*state));
}

static const char *member(const cJSON *object, const char *key)
{
	const cJSON *node = cJSON_GetObjectItemCaseSensitive(object, key);

	assert_true(cJSON_IsString(node));
	return node->valuestring;
}

static void test_framework_json_has_the_documented_keys_on_one_line(void **state)
{
	char path[FS_PATH_SIZE];
	const cJSON *tensorflow, *system, *cpus;
	const char *ghz;
	regex_t regex;
	cJSON *root;
	char *text;

	assert_int_equal(train_auto_write_framework(*state, "cluster_\"7\"", NULL), ST_OK);
	assert_true(fs_path(path, "%s/framework.json", (char *)*state));
	text = support_read_file(path, NULL);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);

	root = cJSON_Parse(text);
	tensorflow = cJSON_GetObjectItemCaseSensitive(root, "TensorFlow");
	system = cJSON_GetObjectItemCaseSensitive(root, "System Information");
	assert_contains(member(tensorflow, "Version"), "ipuscope ");
	assert_non_null(member(tensorflow, "Githash"));
	assert_string_equal(member(tensorflow, "Cluster"), "cluster_\"7\"");
	assert_int_equal(cJSON_GetArraySize(tensorflow), 3);

	assert_string_equal(member(system, "Operating system"), "Linux");
	assert_true(*member(system, "Operating system version"));
	assert_true(*member(system, "Machine"));
	ghz = member(system, "Nominal CPU frequency [GHz]");
	assert_int_equal(regcomp(&regex, "^[0-9]+[.][0-9]{2}$", REG_EXTENDED | REG_NOSUB), 0);
	assert_int_equal(regexec(&regex, ghz, 0, NULL, 0), 0);
	regfree(&regex);
	cpus = cJSON_GetObjectItemCaseSensitive(system, "Number of total cpus");
	assert_true(cJSON_IsNumber(cpus) && cpus->valueint >= 1);
	assert_int_equal(cJSON_GetArraySize(system), 5);
	cJSON_Delete(root);
	free(text);
}

static void test_app_json_is_the_run_file_as_given(void **state)
{
	static const char run[] = "{\n  \"fit\": { \"epochs\": 3 }\n}\n";
	char path[FS_PATH_SIZE], *text;

	assert_int_equal(train_auto_write_app(*state, run, NULL), ST_OK);
	assert_true(fs_path(path, "%s/app.json", (char *)*state));
	text = support_read_file(path, NULL);
	assert_string_equal(text, run);
	free(text);
}

static void test_files_into_a_missing_directory_are_errors(void **state)
{
	struct err err = {0};

	(void)state;
	assert_int_not_equal(train_auto_write_framework("/nonexistent", "c", &err), ST_OK);
	assert_contains(err.text, "/nonexistent/framework.json");
	assert_int_not_equal(train_auto_write_app("/nonexistent", "{}", &err), ST_OK);
	assert_contains(err.text, "/nonexistent/app.json");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_directory_is_named_by_local_time_and_process),
		TEST(test_two_in_a_row_are_two_directories),
		TEST(test_what_killed_runs_left_is_removed),
		TEST(test_missing_parents_are_made),
		TEST(test_an_unwritable_place_is_an_invalid_request),
		TEST(test_a_failure_leaves_no_folder_behind),
		TEST(test_framework_json_has_the_documented_keys_on_one_line),
		TEST(test_app_json_is_the_run_file_as_given),
		TEST(test_files_into_a_missing_directory_are_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
