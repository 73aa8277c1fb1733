/*
 * POPLAR_ENGINE_OPTIONS: what is accepted, what follows from it, and what is refused in which
 * words.
 */
#include "support/support.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "trainer/auto/train_auto.h"

/* Which reports are on, as letters: graph, execution, lowered, archive, serialized, debug. */
static const char *reports_on(const struct train_options *o, char out[8])
{
	const bool flags[] = {o->graph_profile, o->execution_profile, o->lowered_vars,
			      o->archive,       o->serialized_graph,  o->debug_info};
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		if (flags[i])
			out[n++] = "gelasd"[i];
	out[n] = '\0';
	return out;
}

static const struct {
	const char *text, *on;
} combinations[] = {
	{NULL, ""},
	{"", ""},
	{"  \n", ""},
	{"{}", ""},
	{"{\"autoReport.all\":\"true\"}", "gelad"},
	{"{\"autoReport.all\":true}", "gelad"},
	{"{\"autoReport.all\":1}", "gelad"},
	{"{\"autoReport.all\":\"1\"}", "gelad"},
	{"{\"autoReport.all\":\"false\"}", ""},
	{"{\"autoReport.all\":false}", ""},
	{"{\"autoReport.all\":0}", ""},
	{"{\"autoReport.all\":true,\"autoReport.outputArchive\":\"false\"}", "geld"},
	{"{\"autoReport.outputArchive\":false,\"autoReport.all\":true}", "geld"},
	{"{\"autoReport.all\":true,\"autoReport.outputExecutionProfile\":false}", "glad"},
	{"{\"autoReport.all\":true,\"autoReport.outputSerializedGraph\":true}", "gelasd"},
	{"{\"autoReport.outputGraphProfile\":\"true\"}", "g"},
	{"{\"autoReport.outputExecutionProfile\":true,\"autoReport.outputDebugInfo\":1}", "ed"},
	{"{\"autoReport.all\":false,\"autoReport.outputGraphProfile\":true}", "g"},
	{"{\"autoReport.directory\":\"x\"}", ""},
	{"{\"debug.instrument\":true,\"profiler.format\":\"v3\"}", ""},
};

static void test_all_less_what_is_turned_off_and_singles_only_themselves(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(combinations); i++) {
		struct train_options options;
		struct err err = {0};
		char on[8];

		if (train_options_parse(&options, combinations[i].text, &err) != ST_OK)
			fail_msg("%s: %s", combinations[i].text, err.text);
		if (strcmp(reports_on(&options, on), combinations[i].on) != 0)
			fail_msg("%s: reports \"%s\", not \"%s\"", combinations[i].text, on,
				 combinations[i].on);
		assert_int_equal(options.any, *combinations[i].on != '\0');
		train_options_free(&options);
	}
}

static void test_defaults_are_the_documented_ones(void **state)
{
	struct train_options options;

	(void)state;
	assert_int_equal(train_options_parse(&options, NULL, NULL), ST_OK);
	assert_int_equal(options.execution_profile_program_run_count, 2);
	assert_int_equal(options.replica_to_profile, -1);
	assert_true(options.stream_at_each_run);
	assert_true(options.allow_out_of_memory);
	assert_string_equal(options.directory, ".");
	assert_null(options.text);
	assert_null(options.notes);
	train_options_free(&options);
}

static const struct {
	const char *value;
	int64_t count;
} counts[] = {{"2", 2}, {"\"2\"", 2}, {"\"0x10\"", 16}, {"1000", 1000}, {"10.0", 10}};

static void test_whole_numbers_may_be_texts_and_hexadecimal(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		struct train_options options;
		char text[128];

		snprintf(text, sizeof(text), "{\"autoReport.executionProfileProgramRunCount\":%s}",
			 counts[i].value);
		assert_int_equal(train_options_parse(&options, text, NULL), ST_OK);
		assert_int_equal(options.execution_profile_program_run_count, counts[i].count);
		train_options_free(&options);
	}
}

static const struct {
	const char *text, *error;
	enum status status;
} refused[] = {
	{"{\"autoReport.outputGraphProfil\":true}",
	 "POPLAR_ENGINE_OPTIONS: unknown option \"autoReport.outputGraphProfil\" (did you mean "
	 "\"autoReport.outputGraphProfile\"?)",
	 ST_INVALID},
	{"{\"zebra\":true}", "POPLAR_ENGINE_OPTIONS: unknown option \"zebra\"", ST_INVALID},
	{"{\"autoReport.all\":\"maybe\"}",
	 "POPLAR_ENGINE_OPTIONS: autoReport.all: must be true or false, not \"maybe\"", ST_INVALID},
	{"{\"autoReport.all\":2}",
	 "POPLAR_ENGINE_OPTIONS: autoReport.all: must be true or false, not 2", ST_INVALID},
	{"{\"autoReport.all\":null}",
	 "POPLAR_ENGINE_OPTIONS: autoReport.all: must be true or false, not null", ST_INVALID},
	{"{\"autoReport.all\":{}}",
	 "POPLAR_ENGINE_OPTIONS: autoReport.all: must be true or false, not an object", ST_INVALID},
	{"{\"profiler.replicaToProfile\":-1}",
	 "POPLAR_ENGINE_OPTIONS: profiler.replicaToProfile: must be at least 0, not -1",
	 ST_INVALID},
	{"{\"profiler.replicaToProfile\":\"1x\"}",
	 "POPLAR_ENGINE_OPTIONS: profiler.replicaToProfile: must be a whole number, not \"1x\"",
	 ST_INVALID},
	{"{\"profiler.replicaToProfile\":1.5}",
	 "POPLAR_ENGINE_OPTIONS: profiler.replicaToProfile: must be a whole number, not 1.5",
	 ST_INVALID},
	{"{\"profiler.format\":\"v9\"}",
	 "POPLAR_ENGINE_OPTIONS: profiler.format: must be one of v1|v2|v3|experimental|unstable, "
	 "not "
	 "\"v9\"",
	 ST_INVALID},
	{"{\"autoReport.directory\":7}",
	 "POPLAR_ENGINE_OPTIONS: autoReport.directory: must be a text, not a number", ST_INVALID},
	{"{\"autoReport.directory\":true}",
	 "POPLAR_ENGINE_OPTIONS: autoReport.directory: must be a text, not true", ST_INVALID},
	{"[1]",
	 "POPLAR_ENGINE_OPTIONS: must be a JSON object, like '{\"autoReport.all\":\"true\"}'",
	 ST_INVALID},
	{"{\"autoReport.all\":\"true\"", "POPLAR_ENGINE_OPTIONS:1:25: ", ST_FORMAT},
	{"{\n\"autoReport.all\" true}", "POPLAR_ENGINE_OPTIONS:2:18: ", ST_FORMAT},
	{"true false", "POPLAR_ENGINE_OPTIONS:1:6: ", ST_FORMAT},
	{"{\"autoReport.all\":1,\"autoReport.all\":0}",
	 "POPLAR_ENGINE_OPTIONS: the key \"autoReport.all\" is there twice", ST_INVALID},
};

static void test_what_is_wrong_is_named_with_its_place_and_remedy(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		struct train_options options;
		struct err err = {0};
		enum status status = train_options_parse(&options, refused[i].text, &err);

		if (status != refused[i].status)
			fail_msg("%s: status %d: %s", refused[i].text, (int)status, err.text);
		assert_contains(err.text, refused[i].error);
		assert_int_equal(err.text - strstr(err.text, refused[i].error), 0);
		assert_int_equal(status_exit_code(status), 2);
		assert_false(options.any);
		assert_null(options.text);
	}
}

static void test_options_are_kept_as_normalised_json(void **state)
{
	struct train_options options;

	(void)state;
	assert_int_equal(
		train_options_parse(&options,
				    "{\"profiler.replicaToProfile\":\"0x1\",\"autoReport.all\":"
				    "\"true\",\"target.hostSyncTimeout\":\"2.5\","
				    "\"streamCallbacks.numWorkerThreads\":4}",
				    NULL),
		ST_OK);
	assert_string_equal(
		options.text,
		"{\"autoReport.all\":true,\"profiler.replicaToProfile\":1,"
		"\"target.hostSyncTimeout\":2.5,\"streamCallbacks.numWorkerThreads\":4}");
	assert_int_equal(options.replica_to_profile, 1);
	train_options_free(&options);
}

static void test_private_formats_and_idle_options_are_noted_once(void **state)
{
	struct train_options options;

	(void)state;
	assert_int_equal(train_options_parse(&options,
					     "{\"autoReport.all\":true,\"debug.instrument\":true,"
					     "\"opt.enableInlining\":false}",
					     NULL),
			 ST_OK);
	assert_string_equal(
		options.notes,
		"POPLAR_ENGINE_OPTIONS: profile.db stands in for profile.pop, archive.a, "
		"formats this program does not write.\n"
		"POPLAR_ENGINE_OPTIONS: accepted without effect here: debug.instrument, "
		"opt.enableInlining.\n");
	train_options_free(&options);

	assert_int_equal(train_options_parse(&options,
					     "{\"autoReport.outputGraphProfile\":true,"
					     "\"autoReport.outputExecutionProfile\":false,"
					     "\"autoReport.outputLoweredVars\":false}",
					     NULL),
			 ST_OK);
	assert_contains(options.notes,
			"accepted without effect here: autoReport.outputLoweredVars.\n");
	train_options_free(&options);

	assert_int_equal(train_options_parse(&options, "{\"autoReport.all\":false}", NULL), ST_OK);
	assert_null(options.notes);
	train_options_free(&options);
}

static void test_every_option_takes_its_own_fallback(void **state)
{
	const struct train_option_entry *entries;
	int count;

	(void)state;
	entries = train_option_entries(&count);
	assert_true(count > 30);
	for (int i = 0; i < count; i++) {
		struct train_options options;
		struct err err = {0};
		char text[256];

		assert_true(*entries[i].help && *entries[i].type && *entries[i].fallback);
		if (!strcmp(entries[i].name, "profiler.replicaToProfile"))
			continue; /* "all replicas" is said by leaving it out */
		snprintf(text, sizeof(text), "{\"%s\":\"%s\"}", entries[i].name,
			 entries[i].fallback);
		if (train_options_parse(&options, text, &err) != ST_OK)
			fail_msg("%s: %s", text, err.text);
		train_options_free(&options);
	}
}

/* docs/engine-options.md has one row per option, as the table of the program says. */
static void test_every_option_is_documented_as_it_is(void **state)
{
	static const char *const effects[] = {
		[TRAIN_OPTION_WORKS] = "yes",
		[TRAIN_OPTION_STOOD_IN] = "profile.db stands in",
		[TRAIN_OPTION_ACCEPTED] = "accepted, none",
	};
	char path[SUPPORT_PATH_SIZE + 64], row[1024], *text;
	const struct train_option_entry *entries;
	int count;

	(void)state;
	snprintf(path, sizeof(path), "%s/docs/engine-options.md", support_source_dir());
	text = support_read_file(path, NULL);
	entries = train_option_entries(&count);
	for (int i = 0; i < count; i++) {
		char type[128] = "";

		for (const char *at = entries[i].type; *at; at++)
			snprintf(type + strlen(type), sizeof(type) - strlen(type), "%s%c",
				 *at == '|' ? "\\" : "", *at);
		snprintf(row, sizeof(row), "| `%s` | %s | %s | %s | %s |\n", entries[i].name, type,
			 entries[i].fallback, effects[entries[i].effect], entries[i].help);
		assert_contains(text, row);
	}
	free(text);
}

static void test_a_path_that_does_not_fit_is_refused(void **state)
{
	struct train_options options;
	char text[FS_PATH_SIZE + 64];
	struct err err = {0};

	(void)state;
	snprintf(text, sizeof(text), "{\"autoReport.directory\":\"%*s\"}", FS_PATH_SIZE, "x");
	assert_int_equal(train_options_parse(&options, text, &err), ST_INVALID);
	assert_contains(err.text, "too long");
}

static void test_no_memory_leaves_nothing_behind(void **state)
{
	bool failed = true;

	(void)state;
	for (long n = 0; failed; n++) {
		struct train_options options;
		enum status status;

		support_fail_alloc(n);
		status = train_options_parse(
			&options, "{\"autoReport.all\":true,\"debug.instrument\":1}", NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
		train_options_free(&options);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_less_what_is_turned_off_and_singles_only_themselves),
		cmocka_unit_test(test_defaults_are_the_documented_ones),
		cmocka_unit_test(test_whole_numbers_may_be_texts_and_hexadecimal),
		cmocka_unit_test(test_what_is_wrong_is_named_with_its_place_and_remedy),
		cmocka_unit_test(test_options_are_kept_as_normalised_json),
		cmocka_unit_test(test_private_formats_and_idle_options_are_noted_once),
		cmocka_unit_test(test_every_option_takes_its_own_fallback),
		cmocka_unit_test(test_every_option_is_documented_as_it_is),
		cmocka_unit_test(test_a_path_that_does_not_fit_is_refused),
		cmocka_unit_test(test_no_memory_leaves_nothing_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
