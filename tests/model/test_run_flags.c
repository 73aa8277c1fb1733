/*
 * The command line's part: flags as merge patches, overrides, and what is refused.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "model/run/run_words.h"
#include "support/run_sample.h"
#include "support/run_checks.h"
#include "support/support.h"

static void test_flags_apply_in_the_file_s_order(void **state)
{
	struct run_file *run = run_sample_get("--second --first");

	(void)state;
	assert_int_equal(run->fit.epochs, 4);
	assert_true(run->outfeed.off);
	/* A merge: what the patch does not name stays. */
	assert_int_equal(run->outfeed.gradients.count, 1);
	run_file_free(run);
}

static void test_overrides_come_after_flags_and_the_last_wins(void **state)
{
	struct run_file *run = run_sample_get("--fit.epochs 9 --second --fit.seed=5 --fit.seed 6");

	(void)state;
	assert_int_equal(run->fit.epochs, 9);
	assert_int_equal(run->fit.seed, 6);
	run_file_free(run);
}

static void test_value_stands_for_one_argument(void **state)
{
	struct run_file *run = run_sample_get("--steps 80");

	(void)state;
	assert_int_equal(run->fit.steps_per_epoch, 80);
	assert_int_equal(run->compile.steps_per_execution, 80);
	run_file_free(run);

	run = run_sample_get("--steps=120 --steps 160");
	assert_int_equal(run->fit.steps_per_epoch, 160);
	run_file_free(run);
	run_sample_refuses("--steps", "--steps needs a value");
	run_sample_refuses("--steps 1 2", "--steps takes one value: unexpected word \"2\"");
	run_sample_refuses("--steps --second", "--steps needs a value");
	run_sample_refuses("--steps x", "compile.steps_per_execution: must be a whole number");
}

static void test_values_stand_for_all_arguments_up_to_the_next_option(void **state)
{
	struct run_file *run = run_sample_get("--filters a 128 null --second");

	(void)state;
	assert_int_equal(run->outfeed.gradients.count, 3);
	assert_string_equal(run->outfeed.gradients.items[0], "a");
	assert_string_equal(run->outfeed.gradients.items[1], "128");
	assert_string_equal(run->outfeed.gradients.items[2], "null");
	assert_int_equal(run->fit.epochs, 4);
	run_file_free(run);

	run = run_sample_get("--filters=x");
	assert_int_equal(run->outfeed.gradients.count, 1);
	run_file_free(run);
	run_sample_refuses("--filters", "--filters needs a value");
}

static void test_null_is_set_by_flags_and_overrides(void **state)
{
	struct run_file *run = run_sample_get("--cpu");

	(void)state;
	assert_false(run->ipu.wanted || run->pipeline.wanted);
	run_file_free(run);
	run = run_sample_get("--pipeline null --ipu null");
	assert_false(run->ipu.wanted || run->pipeline.wanted);
	run_file_free(run);
	run = run_sample_get("--pipeline=null");
	assert_true(run->ipu.wanted);
	run_file_free(run);
}

static void test_overrides_make_objects_on_the_way(void **state)
{
	struct run_file *run =
		run_sample_get("--data.batch_size 16 --compile.optimizer.config.x 1");
	const cJSON *config = cJSON_GetObjectItem(run->compile.optimizer, "config");

	(void)state;
	assert_int_equal(run->data.batch_size, 16);
	assert_int_equal(cJSON_GetObjectItem(config, "x")->valueint, 1);
	run_file_free(run);
}

static void test_overrides_reach_into_lists(void **state)
{
	struct run_file *run =
		run_sample_get("--model.config.layers.1.config.units 8 --pipeline.stages.1 1");
	struct model *model = run_sample_model(run);

	(void)state;
	assert_int_equal(model->layers[1].units, 8);
	assert_int_equal(cJSON_GetArrayItem(run->pipeline.stages, 1)->valueint, 1);
	model_free(model);
	run_file_free(run);
	run_sample_refuses("--model.config.layers.9.config 1", "is not an index of a list of 3");
	run_sample_refuses("--pipeline.stages.9 1", "there is no \"9\" to set");
	run_sample_refuses("--data.name.config.x 1", "unknown option");
	run_sample_refuses("--compile.loss.name.x 1", "in a plain value");
}

/* "sgd" and {"class_name": "sgd"} are one: a config joins either, by overrides and by flags. */
static void test_a_config_joins_a_name(void **state)
{
	struct run_file *run = run_sample_get("--compile.optimizer rmsprop "
					      "--compile.optimizer.config.learning_rate 0.5 "
					      "--compile.metrics.0.config.name right");
	const cJSON *metric = cJSON_GetArrayItem(run->compile.metrics, 0);
	struct optimizer optimizer;
	struct err err = {0};

	(void)state;
	assert_int_equal(run_optimizer(&optimizer, run, &err), ST_OK);
	assert_int_equal(optimizer.kind, OPTIMIZER_RMSPROP);
	assert_true(optimizer_rate(&optimizer, 0) == 0.5);
	assert_string_equal(cJSON_GetObjectItem(metric, "class_name")->valuestring, "accuracy");
	run_file_free(run);

	run = run_sample_get("--compile.optimizer adam --rate 0.25");
	assert_int_equal(run_optimizer(&optimizer, run, &err), ST_OK);
	assert_int_equal(optimizer.kind, OPTIMIZER_ADAM); /* flags come first */
	run_file_free(run);
	run = run_sample_get("--named --rate 0.25");
	assert_int_equal(run_optimizer(&optimizer, run, &err), ST_OK);
	assert_int_equal(optimizer.kind, OPTIMIZER_ADAM);
	assert_true(optimizer_rate(&optimizer, 0) == 0.25);
	run_file_free(run);
}

static void test_a_flag_without_effect_says_what_it_lacks(void **state)
{
	static const struct {
		const char *line, *notes;
	} rows[] = {
		{"", ""},
		{"--first", ""},
		{"--base --more", ""},
		{"--base", ""},
		{"--more", "--more has no effect without --base.\n"},
		{"--most --more", "--most has no effect without --base.\n"
				  "--more has no effect without --base.\n"},
		{"--base --most", "--most has no effect without --more.\n"},
		{"--base --more --most", ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct run_file *run = run_sample_get(rows[i].line);

		assert_string_equal(run->notes, rows[i].notes);
		run_file_free(run);
	}
}

static void test_an_unknown_option_s_dashes_are_a_key_s_underscores(void **state)
{
	(void)state;
	run_sample_refuses("--batch-size 4", "did you mean --data.batch_size?");
}

static void test_words_are_texts_where_texts_are_wanted(void **state)
{
	struct run_file *run = run_sample_get("--data.path 123 --outfeed.gradients 7");

	(void)state;
	assert_string_equal(run->data.path, "123");
	assert_string_equal(run->outfeed.gradients.items[0], "7");
	run_file_free(run);
}

static void test_broken_json_is_not_taken_for_a_text(void **state)
{
	struct run_file *run;
	struct err err = {0};

	(void)state;
	assert_int_equal(run_sample_load(&run, "--pipeline.stages [0,0", &err), ST_FORMAT);
	assert_null(run);
	assert_contains(err.text, "--pipeline.stages:1:");
}

static void test_the_tree_is_the_run_as_it_is_run(void **state)
{
	struct run_file *run = run_sample_get("--second --steps 80");
	const cJSON *fit = cJSON_GetObjectItem(run->json, "fit");

	(void)state;
	assert_int_equal(cJSON_GetObjectItem(fit, "epochs")->valueint, 4);
	assert_int_equal(cJSON_GetObjectItem(fit, "steps_per_epoch")->valueint, 80);
	run_file_free(run);
}

static void test_unknown_options_name_the_nearest_flag_or_key(void **state)
{
	(void)state;
	run_sample_refuses("--secnd", "unknown option --secnd (did you mean --second?)");
	run_sample_refuses("--fit.epoch 3", "did you mean --fit.epochs?");
	run_sample_refuses("--epochs 3", "did you mean --fit.epochs?");
	run_sample_refuses("--flags {}", "unknown option --flags");
	run_sample_refuses("--qqqqqqq", "ipu-train --help RUN` lists flags and keys");
	run_sample_refuses("word", "unexpected word \"word\"");
	run_sample_refuses("--second yes", "--second takes no value: unexpected word \"yes\"");
	run_sample_refuses("--second=yes", "--second takes no value");
	run_sample_refuses("--fit.seed=1 2", "unexpected word \"2\"");
}

static void refuses_flags(const char *flags, const char *part)
{
	struct run_file *run;
	struct err err = {0};
	char text[1024];

	snprintf(text, sizeof(text), "{\"flags\": %s}", flags);
	assert_int_equal(
		run_file_parse(&run, "r", text, strlen(text), 0, NULL, &support_run_checks, &err),
		ST_INVALID);
	assert_contains(err.text, part);
}

static void test_bad_flags_are_refused_even_unused(void **state)
{
	(void)state;
	refuses_flags("[]", "flags: must be an object");
	refuses_flags("{\"--x\": 1}", "flags.--x: must be an object");
	refuses_flags("{\"x\": {}}", "a flag's name is");
	refuses_flags("{\"--\": {}}", "a flag's name is");
	refuses_flags("{\"--fit.epochs\": {}}", "is a key of the run file already");
	refuses_flags("{\"--ipu\": {}}", "is a key of the run file already");
	refuses_flags("{\"--x\": {\"fit\": {\"epoch\": 1}}}",
		      "fit.epoch: unknown key (did you mean \"epochs\"?)");
	refuses_flags("{\"--x\": {\"flags\": {}}}", "cannot change the flags");
	refuses_flags("{\"--x\": {\"fit\": {\"epochs\": \"$value\", \"seed\": \"$values\"}}}",
		      "holds both");
}

/* A file with the flags @flags, loaded with the words of @line. */
static enum status load_flags(struct run_file **out, const char *flags, const char *line,
			      struct err *err)
{
	char text[2048], words[256], *argv[16], *rest = NULL;
	int argc = 0;

	snprintf(text, sizeof(text),
		 "{\"model\": {}, \"compile\": {\"loss\": \"x\"}, \"flags\": %s}", flags);
	snprintf(words, sizeof(words), "%s", line);
	for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		argv[argc++] = word;
	return run_file_parse(out, "r", text, strlen(text), argc, argv, &support_run_checks, err);
}

/* The tutorial's two switches and a choice. */
#define COMBINED                                                                                   \
	"{\"--single\": {\"fit\": {\"epochs\": 2}},"                                               \
	" \"--type\": {\"$choice\": {\"Sequential\": {}, \"Model\": {\"fit\": {\"epochs\": 3}}}}," \
	" \"--single --type=Model\": {\"fit\": {\"epochs\": 4}},"                                  \
	" \"--single --count\": {\"data\": {\"batch_size\": \"$value\"}},"                         \
	" \"--kind=odd\": {\"data\": {\"limit\": 7}}}"

static int64_t epochs_of(const char *line)
{
	struct run_file *run;
	struct err err = {0};
	int64_t epochs;

	if (load_flags(&run, COMBINED, line, &err) != ST_OK)
		print_error("%s: %s\n", line, err.text);
	assert_non_null(run);
	epochs = run->fit.epochs;
	run_file_free(run);
	return epochs;
}

static void test_several_words_apply_when_all_are_given(void **state)
{
	(void)state;
	assert_int_equal(epochs_of(""), 1);
	assert_int_equal(epochs_of("--single"), 2);
	assert_int_equal(epochs_of("--type Model"), 3);
	assert_int_equal(epochs_of("--type=Model --single"), 4);
	assert_int_equal(epochs_of("--single --type Sequential"), 2);
	assert_int_equal(epochs_of("--type Model --single --type Sequential"), 2);
}

static void test_the_last_word_s_argument_may_depend_on_the_others(void **state)
{
	struct run_file *run;

	(void)state;
	assert_int_equal(load_flags(&run, COMBINED, "--count 5 --single", NULL), ST_OK);
	assert_int_equal(run->data.batch_size, 5);
	run_file_free(run);
	assert_int_equal(load_flags(&run, COMBINED, "--count 5", NULL), ST_OK);
	assert_int_equal(run->data.batch_size, 32);
	run_file_free(run);
	assert_int_equal(load_flags(&run, COMBINED, "--kind odd", NULL), ST_OK);
	assert_int_equal(run->data.limit, 7);
	run_file_free(run);
}

static void refuses_line(const char *line, const char *part)
{
	struct run_file *run;
	struct err err = {0};

	assert_int_equal(load_flags(&run, COMBINED, line, &err), ST_INVALID);
	assert_null(run);
	assert_contains(err.text, part);
}

/* A name's words are copied to where 256 bytes with the terminator have room. */
static void test_a_flags_name_may_have_255_bytes(void **state)
{
	(void)state;
	for (int length = 255; length <= 256; length++) {
		char flags[512], line[300];
		struct run_file *run = NULL;
		struct err err = {0};

		snprintf(line, sizeof(line), "--%0*d", length - 2, 0);
		snprintf(flags, sizeof(flags), "{\"%s\": {\"fit\": {\"epochs\": 7}}}", line);
		if (length == 255) {
			assert_int_equal(load_flags(&run, flags, "", &err), ST_OK);
			assert_int_equal(run->fit.epochs, 1);
			run_file_free(run);
			continue;
		}
		assert_int_equal(load_flags(&run, flags, "", &err), ST_INVALID);
		assert_contains(err.text, "a flag's name is too long");
	}
}

static void test_choices_refuse_other_values(void **state)
{
	(void)state;
	refuses_line("--type Modle", "--type: unknown value \"Modle\" (did you mean \"Model\"?)");
	refuses_line("--type x", "--type: unknown value \"x\" (there is: Sequential Model)");
	refuses_line("--type", "--type needs a value");
	refuses_line("--type Model Sequential", "takes one value");
	refuses_line("--kind even", "--kind: unknown value \"even\" (there is: odd)");
	refuses_line("--single --count", "--count needs a value");
	refuses_line("--singel", "did you mean --single?");
	refuses_line("--cuont 1", "did you mean --count?");
}

static void test_bad_combinations_are_refused(void **state)
{
	(void)state;
	refuses_flags("{\"--a b\": {}}", "a flag's name is");
	refuses_flags("{\" \": {}}", "a flag's name is");
	refuses_flags("{\"--a=\": {}}", "a flag's name is");
	refuses_flags("{\"--a --a=1\": {}}", "names --a twice");
	refuses_flags("{\"--a --fit\": {}}", "--fit is a key of the run file already");
	refuses_flags("{\"--a=1\": {\"fit\": {\"epochs\": \"$value\"}}}", "has its value already");
	refuses_flags("{\"--a\": {\"$choice\": []}}", "must be an object");
	refuses_flags("{\"--a\": {\"$choice\": {}}}", "no value to choose");
	refuses_flags("{\"--a\": {\"$choice\": {\"x\": {}}, \"fit\": {}}}", "must stand alone");
	refuses_flags("{\"--a\": {\"$choice\": {\"x\": {\"fti\": {}}}}}",
		      "flags.--a.$choice.x.fti: unknown key");
	refuses_flags("{\"--a\": {\"outfeed\": {\"gradients\": \"$values\"}}, \"--a=1\": {}}",
		      "takes one value here and a list elsewhere");
}

static void test_help_shows_combinations_and_choices(void **state)
{
	struct run_file *run;
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	assert_non_null(out);
	assert_int_equal(load_flags(&run, COMBINED, "", NULL), ST_OK);
	assert_int_equal(run_file_help(run, out), ST_OK);
	fclose(out);
	assert_contains(text, "  --type Sequential|Model\n    Model\n      sets fit.epochs = 3\n");
	assert_contains(text, "  --single --type=Model\n      sets fit.epochs = 4\n");
	assert_contains(text, "  --single --count VALUE\n");
	run_file_free(run);
	free(text);
}

static void test_no_memory_leaves_choices_undone(void **state)
{
	(void)state;
	for (long n = 0;; n++) {
		struct run_file *run;
		enum status status;
		bool failed;

		support_fail_alloc(n);
		status = load_flags(&run, COMBINED, "--type Model --single --count 3", NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		/* The arena may do with less than it asked for first. */
		if (status != ST_OK) {
			assert_int_equal(status, ST_NOMEM);
			assert_null(run);
		}
		run_file_free(run);
		if (!failed)
			break;
	}
}

static void test_no_memory_is_undone_everywhere(void **state)
{
	(void)state;
	for (long n = 0;; n++) {
		struct run_file *run;
		enum status status;
		bool failed;

		support_fail_alloc(n);
		status = run_sample_load(&run, "--steps 80 --filters a b --cpu --fit.seed 3", NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		/* The arena may do with less than it asked for first. */
		if (status != ST_OK) {
			assert_int_equal(status, ST_NOMEM);
			assert_null(run);
		}
		run_file_free(run);
		if (!failed)
			break;
	}
}

/* ---- whole runs ------------------------------------------------------------------------------ */

/* Words of a command line over the sample, and what becomes of it. */
static const char *const lines[] = {
	"",
	"--first",
	"--second",
	"--first --second",
	"--second --second",
	"--steps 80",
	"--steps=80",
	"--steps=",
	"--steps",
	"--steps 80 --steps 90",
	"--steps 80 81",
	"--steps x",
	"--steps {\"a\":",
	"--filters a",
	"--filters",
	"--filters a b",
	"--filters=a",
	"--filters= x",
	"--filters null",
	"--filters [\"a\"]",
	"--filters 1 2",
	"--named",
	"--named --rate 0.5",
	"--rate 0.5",
	"--rate \"x\"",
	"--rate null",
	"--base",
	"--more",
	"--base --more",
	"--base --more --most",
	"--most --more --base",
	"--base=1",
	"--single",
	"--cpu",
	"--cpu --single",
	"--fit.epochs 9",
	"--fit.epochs=9",
	"--fit.epochs",
	"--fit.epochs 9 10",
	"--fit.epochs null",
	"--fit null",
	"--fit {}",
	"--fit.epochs {}",
	"--fit.epochz 9",
	"--fit 3",
	"--fit.epochs.x 3",
	"--data.name fashion_mnist",
	"--data.name \"mnist\"",
	"--data.name null",
	"--data.name mnisst",
	"--data.path 3",
	"--data.path null",
	"--data.batch_size 16",
	"--data {\"batch_size\":16}",
	"--pipeline.stages [0,1,1]",
	"--pipeline.stages.2 0",
	"--pipeline.stages.3 0",
	"--pipeline.stages.x 0",
	"--pipeline.stages.-1 0",
	"--pipeline.stages auto",
	"--pipeline.stages \"auto\"",
	"--outfeed.gradients a",
	"--outfeed.gradients [\"a\",\"b\"]",
	"--outfeed.gradients null",
	"--outfeed.gradients a b",
	"--outfeed.capture off",
	"--compile.optimizer adam",
	"--compile.optimizer.config.learning_rate 0.5",
	"--compile.optimizer.class_name adam",
	"--compile.loss.config.from_logits true",
	"--compile.metrics accuracy",
	"--compile.metrics [\"mae\"]",
	"--compile.metrics.0 mae",
	"--compile.metrics.1 mae",
	"--compile.metrics.0.config.name x",
	"--evaluate.metrics [[],[]]",
	"--model.config.name n",
	"--model.config.layers.1.config.units 8",
	"--model.config.layers.9.config.units 8",
	"--model.config.layers.1.x.units 8",
	"word",
	"-x",
	"--",
	"--=3",
	"--nosuch",
	"--frist",
	"--fit.seed=1=2",
	"--ipu.matmuls.partialsType half",
};

static void print_lines(FILE *out)
{
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct run_file *run;
		struct err err = {0};
		char *text = NULL;

		if (run_sample_load(&run, lines[i], &err) != ST_OK) {
			fprintf(out, "%s => %s\n", lines[i], err.text);
			continue;
		}
		assert_int_equal(run_file_text(&text, run, &err), ST_OK);
		fprintf(out, "%s => %016" PRIx64 ", %lld epochs, batch %lld, %d gradients\n",
			lines[i], support_digest_text(SUPPORT_DIGEST, text, strlen(text)),
			(long long)run->fit.epochs, (long long)run->data.batch_size,
			run->outfeed.gradients.count);
		cJSON_free(text);
		run_file_free(run);
	}
}

static void test_no_line_means_something_else_unseen(void **state)
{
	(void)state;
	support_check_golden("run_lines.txt", print_lines);
}

static void test_a_word_may_have_as_many_bytes_as_a_name(void **state)
{
	char line[600];

	(void)state;
	memset(line, '-', sizeof(line));
	memset(line + 2, 'a', sizeof(line) - 2);
	line[RUN_WORD_SIZE] = '\0';
	run_sample_refuses(line, "... is too long");
	line[RUN_WORD_SIZE - 1] = '\0';
	run_sample_refuses(line, "unknown option --aaaa");
	line[40] = '=';
	run_sample_refuses(line, "unknown option --aaaa");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flags_apply_in_the_file_s_order),
		cmocka_unit_test(test_overrides_come_after_flags_and_the_last_wins),
		cmocka_unit_test(test_value_stands_for_one_argument),
		cmocka_unit_test(test_values_stand_for_all_arguments_up_to_the_next_option),
		cmocka_unit_test(test_null_is_set_by_flags_and_overrides),
		cmocka_unit_test(test_overrides_make_objects_on_the_way),
		cmocka_unit_test(test_overrides_reach_into_lists),
		cmocka_unit_test(test_a_config_joins_a_name),
		cmocka_unit_test(test_a_flag_without_effect_says_what_it_lacks),
		cmocka_unit_test(test_an_unknown_option_s_dashes_are_a_key_s_underscores),
		cmocka_unit_test(test_words_are_texts_where_texts_are_wanted),
		cmocka_unit_test(test_broken_json_is_not_taken_for_a_text),
		cmocka_unit_test(test_the_tree_is_the_run_as_it_is_run),
		cmocka_unit_test(test_unknown_options_name_the_nearest_flag_or_key),
		cmocka_unit_test(test_bad_flags_are_refused_even_unused),
		cmocka_unit_test(test_several_words_apply_when_all_are_given),
		cmocka_unit_test(test_the_last_word_s_argument_may_depend_on_the_others),
		cmocka_unit_test(test_a_flags_name_may_have_255_bytes),
		cmocka_unit_test(test_choices_refuse_other_values),
		cmocka_unit_test(test_bad_combinations_are_refused),
		cmocka_unit_test(test_help_shows_combinations_and_choices),
		cmocka_unit_test(test_no_memory_leaves_choices_undone),
		cmocka_unit_test(test_no_memory_is_undone_everywhere),
		cmocka_unit_test(test_no_line_means_something_else_unseen),
		cmocka_unit_test(test_a_word_may_have_as_many_bytes_as_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
