/*
 * The run file: keys, types, ranges and places in every error; defaults; help; the document.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fs.h"
#include "common/str.h"
#include "common/mem.h"
#include "support/run_sample.h"
#include "support/run_checks.h"
#include "support/support.h"

static void refuses_text(const char *text, enum status status, const char *part)
{
	struct run_file *run;
	struct err err = {0};

	assert_int_equal(run_file_parse(&run, "run.json", text, strlen(text), 0, NULL,
					&support_run_checks, &err),
			 status);
	assert_null(run);
	assert_contains(err.text, part);
}

static void test_sample_fills_every_part(void **state)
{
	struct run_file *run;

	(void)state;
	assert_int_equal(run_sample_load(&run, "", NULL), ST_OK);
	assert_string_equal(run->path, "run.json");
	assert_string_equal(run->model_place, "model");
	assert_string_equal(run->compile.loss->valuestring, "sparse_categorical_crossentropy");
	assert_null(run->compile.optimizer);
	assert_int_equal(cJSON_GetArraySize(run->compile.metrics), 1);
	assert_string_equal(run->compile.metrics->child->valuestring, "accuracy");
	assert_null(run->evaluate.loss);
	assert_null(run->evaluate.metrics);
	assert_int_equal(run->compile.steps_per_execution, 20);
	assert_int_equal(run->fit.epochs, 2);
	assert_int_equal(run->fit.seed, 7);
	assert_true(run->evaluate.wanted);
	assert_true(run->ipu.wanted);
	assert_int_equal(run->accumulation.steps_per_replica, 4);
	assert_true(run->pipeline.wanted && run->pipeline.stages);
	assert_int_equal(run->pipeline.schedule, IPU_GROUPED);
	run_file_free(run);
}

static void test_defaults_hold_where_keys_are_absent_or_null(void **state)
{
	static const char text[] = "{\"model\": {}, \"compile\": {\"loss\": \"x\"}, \"data\": null,"
				   "\"fit\": {\"epochs\": null}}";
	struct run_file *run;

	(void)state;
	assert_int_equal(
		run_file_parse(&run, "r", text, strlen(text), 0, NULL, &support_run_checks, NULL),
		ST_OK);
	assert_string_equal(run->data.name, "mnist");
	assert_null(run->data.path);
	assert_int_equal(run->data.batch_size, 32);
	assert_int_equal(run->data.shuffle, -1);
	assert_int_equal(run->data.limit, 0);
	assert_true(run->data.repeat);
	assert_int_equal(run->data.resize[0], 0);
	assert_false(run->data.one_hot.given);
	assert_true(run->data.drop_remainder);
	assert_int_equal(run->data.prefetch, -1);
	assert_int_equal(run->fit.epochs, 1);
	assert_int_equal(run->fit.steps_per_epoch, 0);
	assert_int_equal(run->fit.seed, 1);
	assert_true(run->fit.wanted);
	assert_false(run->fit.validation || run->fit.asynchronous_callbacks);
	assert_false(run->predict.wanted || run->callbacks || run->weights.by_name);
	assert_null(run->weights.load);
	assert_null(run->weights.save);
	assert_int_equal(run->compile.steps_per_execution, 1);
	assert_false(run->evaluate.wanted || run->accumulation.wanted || run->pipeline.wanted);
	assert_true(run->ipu.wanted);
	assert_string_equal(run->ipu.target, "ipu2");
	assert_int_equal(run->ipu.auto_select_ipus, 1);
	assert_int_equal(run->host.threads, 0);
	assert_false(run->outfeed.wanted || run->outfeed.last || run->outfeed.gradients.given);
	assert_false(run->outfeed.off);
	assert_int_equal(run->outfeed.budget, 1 << 30);
	assert_int_equal(run->outfeed.optimizer_mode, RUN_BEFORE_APPLY);
	run_file_free(run);
}

static void test_new_sections_are_read(void **state)
{
	static const char text[] =
		"{\"model\": {}, \"compile\": {\"loss\": \"x\", \"steps_per_execution\": "
		"\"epoch\"},"
		"\"fit\": {\"validation\": true, \"asynchronous_callbacks\": true},"
		"\"predict\": {\"steps\": 4, \"steps_per_execution\": \"epoch\", \"output\": "
		"\"o.npz\"},"
		"\"callbacks\": [{\"class_name\": \"EarlyStopping\"}],"
		"\"weights\": {\"load\": \"a.npz\", \"by_name\": true, \"save\": \"b.npz\"}}";
	struct run_file *run;

	(void)state;
	assert_int_equal(
		run_file_parse(&run, "r", text, strlen(text), 0, NULL, &support_run_checks, NULL),
		ST_OK);
	assert_int_equal(run->compile.steps_per_execution, RUN_WHOLE_EPOCH);
	assert_true(run->fit.validation && run->fit.asynchronous_callbacks);
	assert_true(run->predict.wanted);
	assert_int_equal(run->predict.steps, 4);
	assert_int_equal(run->predict.steps_per_execution, RUN_WHOLE_EPOCH);
	assert_string_equal(run->predict.output, "o.npz");
	assert_int_equal(cJSON_GetArraySize(run->callbacks), 1);
	assert_string_equal(run->weights.load, "a.npz");
	assert_string_equal(run->weights.save, "b.npz");
	assert_true(run->weights.by_name);
	run_file_free(run);
}

static void test_images_have_a_size(void **state)
{
	struct run_file *run;

	(void)state;
	assert_int_equal(run_sample_load(&run,
					 "--data.resize [224,112] --data.one_hot true "
					 "--data.prefetch 0",
					 NULL),
			 ST_OK);
	assert_int_equal(run->data.resize[0], 224);
	assert_int_equal(run->data.resize[1], 112);
	assert_true(run->data.one_hot.given);
	assert_int_equal(run->data.prefetch, 0);
	run_file_free(run);
}

static void test_null_fit_has_no_epochs(void **state)
{
	static const char text[] = "{\"model\": {}, \"compile\": {\"loss\": \"x\"}, \"fit\": null}";
	struct run_file *run;

	(void)state;
	assert_int_equal(
		run_file_parse(&run, "r", text, strlen(text), 0, NULL, &support_run_checks, NULL),
		ST_OK);
	assert_false(run->fit.wanted);
	assert_int_equal(run->fit.epochs, 0);
	run_file_free(run);
}

static void test_unknown_keys_name_place_and_nearest(void **state)
{
	(void)state;
	refuses_text("{\"fit\": {\"epoch\": 1}}", ST_INVALID,
		     "run.json: fit.epoch: unknown key (did you mean \"epochs\"?)");
	refuses_text("{\"epochs\": 1}", ST_INVALID, "did you mean \"fit.epochs\"?");
	refuses_text("{\"pipelin\": {}}", ST_INVALID, "did you mean \"pipeline\"?");
	refuses_text("{\"//\": \"a comment\"}", ST_INVALID, "unknown key");
	refuses_text("{\"_note\": 1}", ST_INVALID, "unknown key");
}

static void test_names_of_other_versions_name_their_replacement(void **state)
{
	(void)state;
	refuses_text("{\"gradient_accumulation_count\": 16}", ST_INVALID,
		     "run.json: gradient_accumulation_count: is "
		     "\"gradient_accumulation.steps_per_replica\" in a run file");
	refuses_text("{\"pipeline\": {\"gradient_accumulation_steps_per_replica\": 16}}",
		     ST_INVALID, "is \"gradient_accumulation.steps_per_replica\" in a run file");
	refuses_text("{\"compile\": {\"gradient_accumulation_dtype\": \"float16\"}}", ST_INVALID,
		     "is \"gradient_accumulation.dtype\" in a run file");
	refuses_text(
		"{\"device_mapping\": [0, 0, 1, 1]}", ST_INVALID,
		"is \"pipeline.stages\" (of layers) or \"pipeline.device_mapping\" in a run file");
	refuses_text("{\"allow_recompute\": true}", ST_INVALID, "is \"ipu.allow_recompute\"");
	refuses_text("{\"recomputation_mode\": \"Auto\"}", ST_INVALID,
		     "is \"pipeline.recomputation_mode\" in a run file");
	refuses_text("{\"replication_factor\": 2}", ST_INVALID,
		     "was removed after TensorFlow 2.1: the replicas are ipu.auto_select_ipus");
	run_sample_refuses("--gradient_accumulation_count 4",
			   "--gradient_accumulation_count is "
			   "\"gradient_accumulation.steps_per_replica\" in a run file");
}

/* What pipelining_ops.pipeline() takes but set_pipelining_options() does not. */
static void test_arguments_that_keras_refuses_say_what_is_done(void **state)
{
	static const struct {
		const char *name, *part;
	} cases[] = {
		{"batch_serialization_iterations",
		 "cannot be given for a Keras model: a micro-batch is computed whole"},
		{"computational_stages", "as pipeline.stages says"},
		{"experimental_normalize_gradients", "is \"gradient_accumulation.reduction\""},
		{"gradient_accumulation_count", "is \"gradient_accumulation.steps_per_replica\""},
		{"infeed_queue", "its batches come from \"data\""},
		{"inputs", "what the stages before it send on"},
		{"optimizer_function", "updated by compile.optimizer"},
		{"outfeed_loss", "those of \"compile\", and are sent always"},
		{"outfeed_mask", "\"outfeed\" says which tensors are sent"},
		{"outfeed_queue", "its results are sent by themselves"},
		{"repeat_count", "as often as compile.steps_per_execution needs"},
	};
	char text[256], word[128];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(text, sizeof(text), "{\"pipeline\": {\"%s\": 2}}", cases[i].name);
		refuses_text(text, ST_INVALID, cases[i].part);
		snprintf(word, sizeof(word), "--pipeline.%s 2", cases[i].name);
		run_sample_refuses(word, cases[i].part);
	}
}

static void test_missing_keys_are_named(void **state)
{
	(void)state;
	refuses_text("{}", ST_INVALID, "\"model\" is missing");
	refuses_text("{\"model\": {}}", ST_INVALID, "compile.loss: is missing");
	refuses_text("{\"model\": {}, \"compile\": {}}", ST_INVALID,
		     "compile: \"loss\" is missing");
	refuses_text("{\"model\": {}, \"compile\": {\"loss\": \"x\"}, \"pipeline\": {}}",
		     ST_INVALID, "pipeline: \"stages\" is missing");
	refuses_text(
		"{\"model\": {}, \"compile\": {\"loss\": \"x\"},\"gradient_accumulation\": {}}",
		ST_INVALID, "\"steps_per_replica\" is missing");
}

static void test_syntax_errors_have_line_and_column(void **state)
{
	(void)state;
	refuses_text("{\n  \"fit\": {,}\n}", ST_FORMAT, "run.json:2:11: ");
	refuses_text("{\"fit\": {\"epochs\": 1", ST_FORMAT, "unexpected end");
	refuses_text("", ST_FORMAT, "empty");
	refuses_text("{\"fit\": {}, \"fit\": {}}", ST_INVALID, "twice");
	refuses_text("[1]", ST_INVALID, "must be an object");
}

static void test_deep_nesting_is_refused(void **state)
{
	enum {
		DEEP = 100000
	};
	char *text = malloc(DEEP + 1);

	(void)state;
	assert_non_null(text);
	memset(text, '[', DEEP);
	text[DEEP] = '\0';
	refuses_text(text, ST_FORMAT, "nested deeper");
	free(text);
}

static void test_values_have_types_and_ranges(void **state)
{
	static const struct {
		const char *line, *part;
	} cases[] = {
		{"--fit.epochs many", "run.json: fit.epochs: must be a whole number, not a text"},
		{"--fit.epochs 0", "fit.epochs: must be from 1"},
		{"--fit.epochs 1.5", "fit.epochs: must be a whole number"},
		{"--fit.epochs 1e300", "fit.epochs: "},
		{"--fit.seed -1", "fit.seed: must be from 0"},
		{"--data.batch_size 0", "data.batch_size: must be from 1"},
		{"--data.resize 224", "data.resize: must be null or [height, width]"},
		{"--data.resize [224]", "data.resize: must be null or [height, width]"},
		{"--data.resize [224,0]", "data.resize[1]: "},
		{"--data.shuffle \"x\"", "data.shuffle: must be true, false or a number"},
		{"--data.repeat 1", "data.repeat: must be true or false"},
		{"--data.name minst",
		 "data.name: unknown value \"minst\" (did you mean \"mnist\"?)"},
		{"--outfeed.gradients [1]", "outfeed.gradients[0]: must be a text"},
		{"--callbacks {}", "callbacks: must be an array"},
		{"--pipeline.schedule Group", "pipeline.schedule: unknown value"},
		{"--outfeed.capture all",
		 "outfeed.capture: unknown tier \"all\" (one of: off, health, counts, stats, "
		 "histogram, last, full)"},
		{"--outfeed.capture {}", "outfeed.capture: must be a tier such as"},
		{"--outfeed.capture [{\"tier\":\"stats\",\"kind\":[\"gradient\",\"wight\"]}]",
		 "outfeed.capture[0].kind[1]: unknown kind \"wight\" (did you mean \"weight\"?)"},
		{"--outfeed.capture [{\"tier\":\"stats\"},{\"tensor\":\"a\",\"tier\":\"full\"}]",
		 "outfeed.capture[1]: unknown key \"tensor\" (did you mean \"tensors\"?)"},
		{"--outfeed.budget lots", "outfeed.budget: must be bytes, or a text as"},
		{"--outfeed.budget 5MX", "outfeed.budget: must be bytes, or a text as"},
		{"--outfeed.budget -1", "outfeed.budget: must be from 0 to "},
		{"--outfeed.budget true", "outfeed.budget: must be a number"},
		{"--outfeed {\"gradients\":{}}", "outfeed.gradients: must be an array"},
		{"--gradient_accumulation.reduction max", "gradient_accumulation.reduction: "},
		{"--ipu.target ipu9", "run.json: ipu.target: "},
		{"--ipu.tiles_per_ipu 99999", "ipu.tiles_per_ipu: ipu2 has 1472 tiles"},
		{"--compile.steps_per_execution epochs",
		 "compile.steps_per_execution: must be a whole number or \"epoch\", not "
		 "\"epochs\""},
		{"--evaluate.steps_per_execution 0",
		 "evaluate.steps_per_execution: must be from 1"},
		{"--predict.steps 0", "predict.steps: must be from 1"},
		{"--callbacks {}", "callbacks: must be an array"},
		{"--weights.load 1.5 --weights.by_name 3",
		 "weights.by_name: must be true or false"},
		{"--fit 3", "run.json: fit: must be an object"},
		{"--health.watch weights",
		 "health.watch: unknown value \"weights\" (there is: none gradients all)"},
		{"--health.stop nonfinit",
		 "health.stop[0]: unknown value \"nonfinit\" (did you mean \"nonfinite\"?)"},
		{"--health {\"stop\":\"over_fit\"}",
		 "health.stop: unknown value \"over_fit\" (did you mean \"overfit\"?)"},
		{"--health.rules [1]", "run.json: health.rules: must be an object"},
		{"--health.rules.vanish.threshold 1",
		 "run.json: health.rules: unknown health rule \"vanish\" (did you mean "
		 "\"vanishing\"?)"},
		{"--health.rules.vanishing.threshold -1",
		 "run.json: health.rules.vanishing.threshold: must not be negative"},
		{"--health.rule {}", "--health.rules"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		run_sample_refuses(cases[i].line, cases[i].part);
}

static void test_filters_tell_none_from_empty_and_absent(void **state)
{
	struct run_file *run;

	(void)state;
	assert_int_equal(run_sample_load(&run, "--outfeed.gradients NONE", NULL), ST_OK);
	assert_true(run->outfeed.gradients.given);
	assert_null(run->outfeed.gradients.items);
	run_file_free(run);

	assert_int_equal(run_sample_load(&run, "--outfeed.gradients []", NULL), ST_OK);
	assert_true(run->outfeed.gradients.given);
	assert_non_null(run->outfeed.gradients.items);
	assert_int_equal(run->outfeed.gradients.count, 0);
	run_file_free(run);

	assert_int_equal(run_sample_load(&run, "--outfeed.gradients [\"none\",\"a\"]", NULL),
			 ST_OK);
	assert_int_equal(run->outfeed.gradients.count, 2);
	run_file_free(run);

	assert_int_equal(run_sample_load(&run, "--outfeed.gradients null", NULL), ST_OK);
	assert_false(run->outfeed.gradients.given);
	run_file_free(run);
}

/* The capture as who looks at tensors reads it. */
static struct outfeed_policy policy_of(const struct run_file *run)
{
	const struct json_at at = json_root(run->path, run->outfeed.capture);
	struct outfeed_policy policy;

	assert_int_equal(outfeed_policy_read(&policy, &at, NULL), ST_OK);
	return policy;
}

static void test_captures_are_a_tier_or_rules(void **state)
{
	struct outfeed_policy policy;
	struct outfeed_choice choice;
	struct run_file *run;

	(void)state;
	assert_int_equal(run_sample_load(&run, "--outfeed.capture off", NULL), ST_OK);
	assert_true(run->outfeed.off);
	run_file_free(run);

	assert_int_equal(run_sample_load(&run, "--outfeed.capture histogram", NULL), ST_OK);
	assert_false(run->outfeed.off);
	policy = policy_of(run);
	choice = outfeed_policy_choose(&policy, "a", OUTFEED_WEIGHT, OUTFEED_WATCHED);
	assert_int_equal(choice.tier, OUTFEED_OFF);
	choice = outfeed_policy_choose(&policy, "a", OUTFEED_GRADIENT, OUTFEED_SENT);
	assert_int_equal(choice.tier, OUTFEED_HISTOGRAM);
	outfeed_policy_fini(&policy);
	run_file_free(run);

	/* A rule that is off leaves the queues alone. */
	assert_int_equal(run_sample_load(&run,
					 "--outfeed.capture [{\"tensors\":\"b*\",\"tier\":\"off\"},"
					 "{\"kind\":\"weight\",\"tier\":\"full\",\"every\":7}]",
					 NULL),
			 ST_OK);
	assert_false(run->outfeed.off);
	policy = policy_of(run);
	choice = outfeed_policy_choose(&policy, "b1", OUTFEED_WEIGHT, OUTFEED_WATCHED);
	assert_int_equal(choice.tier, OUTFEED_OFF);
	choice = outfeed_policy_choose(&policy, "c", OUTFEED_WEIGHT, OUTFEED_WATCHED);
	assert_int_equal(choice.tier, OUTFEED_FULL);
	assert_int_equal(choice.every, 7);
	outfeed_policy_fini(&policy);
	run_file_free(run);
	/* A place below the key is a rule's. */
	assert_int_equal(run_sample_load(&run,
					 "--outfeed.capture [{\"tier\":\"off\"}] "
					 "--outfeed.capture.0.tier counts",
					 NULL),
			 ST_OK);
	policy = policy_of(run);
	assert_int_equal(policy.rules[0].tier, OUTFEED_COUNTS);
	outfeed_policy_fini(&policy);
	run_file_free(run);
}

static void test_a_budget_is_bytes_or_has_a_unit(void **state)
{
	static const struct {
		const char *line;
		int64_t bytes;
	} cases[] = {
		{"", 1 << 30},
		{"--outfeed.budget null", INT64_MAX},
		{"--outfeed.budget 0", 0},
		{"--outfeed.budget 1.5e9", 1500000000},
		{"--outfeed.budget 500MB", 500 << 20},
		{"--outfeed.budget 0.5kB", 512},
		{"--outfeed.budget 17B", 17},
		{"--outfeed {\"budget\":null}", INT64_MAX},
		{"--outfeed null", 1 << 30},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct run_file *run;

		assert_int_equal(run_sample_load(&run, cases[i].line, NULL), ST_OK);
		assert_int_equal(run->outfeed.budget, cases[i].bytes);
		run_file_free(run);
	}
}

static struct outfeed_health_rules rules_of(const struct run_file *run)
{
	const struct json_at at = json_root(run->path, run->health.rules);
	struct outfeed_health_rules rules;

	outfeed_health_defaults(&rules);
	assert_int_equal(outfeed_health_read(&rules, &at, NULL), ST_OK);
	return rules;
}

static void stops_at(const struct run_file *run, const char *rule)
{
	assert_int_equal(run->health.stop.count, 1);
	assert_string_equal(run->health.stop.items[0], rule);
}

static void test_health_has_rules_what_stops_and_what_is_watched(void **state)
{
	struct outfeed_health_rules rules;
	struct run_file *run;

	(void)state;
	assert_int_equal(run_sample_load(&run, "", NULL), ST_OK);
	assert_true(run->health.wanted);
	assert_null(run->health.rules);
	assert_int_equal(run->health.stop.count, 0);
	assert_int_equal(run->health.watch, RUN_WATCH_ALL);
	run_file_free(run);

	assert_int_equal(run_sample_load(&run,
					 "--health.rules.vanishing.threshold 1e-9 "
					 "--health.rules.overfit false --health.watch gradients "
					 "--health.stop [\"nonfinite\",\"exploding\"]",
					 NULL),
			 ST_OK);
	rules = rules_of(run);
	assert_true(rules.rule[OUTFEED_HEALTH_vanishing].threshold == 1e-9);
	assert_false(rules.rule[OUTFEED_HEALTH_overfit].enabled);
	assert_true(rules.rule[OUTFEED_HEALTH_nonfinite].enabled);
	assert_int_equal(run->health.stop.count, 2);
	assert_string_equal(run->health.stop.items[0], "nonfinite");
	assert_string_equal(run->health.stop.items[1], "exploding");
	assert_int_equal(run->health.watch, RUN_WATCH_GRADIENTS);
	run_file_free(run);

	assert_int_equal(run_sample_load(&run, "--health.stop class_imbalance", NULL), ST_OK);
	stops_at(run, "class_imbalance");
	run_file_free(run);
	assert_int_equal(run_sample_load(&run, "--health {\"stop\":\"overfit\"}", NULL), ST_OK);
	stops_at(run, "overfit");
	run_file_free(run);

	assert_int_equal(run_sample_load(&run, "--health null", NULL), ST_OK);
	assert_false(run->health.wanted);
	assert_null(run->health.rules);
	run_file_free(run);
}

/* model/ knows no rule, but its table of keys has their names. */
static void test_what_stops_a_run_is_any_health_rule(void **state)
{
	struct str names = {0};
	int count, found = 0;
	const struct run_key *keys = run_file_keys(&count);

	(void)state;
	for (int i = 0; i < OUTFEED_HEALTH_RULES; i++)
		str_addf(&names, "%s%s", i > 0 ? " " : "",
			 outfeed_health_describe((enum outfeed_health_id)i)->name);
	for (int i = 0; i < count; i++) {
		if (strcmp(keys[i].path, "health.stop") != 0)
			continue;
		assert_string_equal(keys[i].choices, str_peek(&names));
		found++;
	}
	assert_int_equal(found, 1);
	str_free(&names);
}

static void test_health_rules_may_stand_in_a_file_beside_the_run_file(void **state)
{
	static const char text[] = "{\"model\": {}, \"compile\": {\"loss\": \"x\"}}";
	static const char good[] = "{\"exploding\": {\"threshold\": 5}}", bad[] = "{\"x\": 1}";
	char folder[SUPPORT_PATH_SIZE], path[FS_PATH_SIZE], rules[FS_PATH_SIZE];
	char *beside[] = {"--health.rules", "rules.json"}, *whole[] = {"--health.rules", rules};
	struct run_file *run;
	struct err err = {0};

	(void)state;
	support_tempdir(folder);
	assert_true(fs_path(path, "%s/run.json", folder));
	assert_true(fs_path(rules, "%s/rules.json", folder));
	support_write_file(path, text, strlen(text));
	assert_int_equal(run_file_load(&run, path, 2, beside, &support_run_checks, &err),
			 ST_INVALID);
	assert_contains(err.text, "run.json: health.rules: ");
	assert_contains(err.text, "rules.json");

	support_write_file(rules, good, strlen(good));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			run_file_load(&run, path, 2, i ? whole : beside, &support_run_checks, NULL),
			ST_OK);
		assert_true(rules_of(run).rule[OUTFEED_HEALTH_exploding].threshold == 5);
		run_file_free(run);
	}
	support_write_file(rules, bad, strlen(bad));
	assert_int_equal(run_file_load(&run, path, 2, beside, &support_run_checks, &err),
			 ST_INVALID);
	assert_contains(err.text, "rules.json: unknown health rule \"x\"");
	support_tempdir_remove(folder);

	assert_int_equal(
		run_file_parse(&run, "r", text, strlen(text), 2, beside, &support_run_checks, &err),
		ST_UNSUPPORTED);
	assert_contains(err.text, "cannot be read from here");
}

static void test_model_is_read_beside_the_run_file(void **state)
{
	static const char text[] = "{\"model\": \"model.json\", \"compile\": {\"loss\": \"x\"}}";
	/* TensorFlow.js's. */
	static const char wrapped[] = "{\"format\": \"layers-model\", \"modelTopology\": "
				      "{\"class_name\": \"Sequential\"}}";
	char folder[SUPPORT_PATH_SIZE], path[FS_PATH_SIZE], model[FS_PATH_SIZE];
	struct run_file *run;
	struct err err = {0};

	(void)state;
	support_tempdir(folder);
	assert_true(fs_path(path, "%s/run.json", folder));
	assert_true(fs_path(model, "%s/model.json", folder));
	support_write_file(path, text, strlen(text));
	assert_int_equal(run_file_load(&run, path, 0, NULL, &support_run_checks, &err), ST_INVALID);
	assert_contains(err.text, "run.json: model: ");
	assert_contains(err.text, "model.json");

	support_write_file(model, "{\"class_name\": \"Sequential\"}", 28);
	assert_int_equal(run_file_load(&run, path, 0, NULL, &support_run_checks, &err), ST_OK);
	assert_string_equal(run->model_file, model);
	assert_string_equal(run->model_place, "");
	assert_non_null(cJSON_GetObjectItem(run->model, "class_name"));
	run_file_free(run);

	support_write_file(model, wrapped, strlen(wrapped));
	assert_int_equal(run_file_load(&run, path, 0, NULL, &support_run_checks, &err), ST_OK);
	assert_non_null(cJSON_GetObjectItem(run->model, "class_name"));
	run_file_free(run);

	support_write_file(model, "{\"class_name\":", 14);
	assert_int_equal(run_file_load(&run, path, 0, NULL, &support_run_checks, &err), ST_INVALID);
	assert_contains(err.text, "model.json:1:");
	support_tempdir_remove(folder);
}

#define LAYERS                                                                                     \
	"{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": ["             \
	"{\"class_name\": \"InputLayer\", \"config\": {\"batch_input_shape\": [4, 3]}},"           \
	"{\"class_name\": \"Dense\", \"config\": {\"units\": 2}}]}"

static struct run_file *parse_words(const char *text, int count, char **words)
{
	struct run_file *run;
	struct err err = {0};

	if (run_file_parse(&run, "r", text, strlen(text), count, words, &support_run_checks,
			   &err) != ST_OK)
		fail_msg("%s", err.text);
	return run;
}

/* Keras's to_json() and TensorFlow.js's model.json, as run file and within one. */
static void test_a_keras_model_is_known_in_whatever_it_comes(void **state)
{
	static const char *const models[] = {
		LAYERS "}",
		LAYERS ", \"keras_version\": \"2.6.0\", \"backend\": \"tensorflow\"}",
		"{\"format\": \"layers-model\", \"modelTopology\": {\"keras_version\": \"2.6.0\", "
		"\"model_config\": " LAYERS "}}, \"weightsManifest\": []}",
		"{\"format\": \"layers-model\", \"modelTopology\": " LAYERS "}}",
	};
	char *words[] = {"--compile.loss", "mse", "--data.name", "mnist"}, text[1024];
	struct run_file *run;
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(models); i++) {
		run = parse_words(models[i], 4, words);
		assert_string_equal(cJSON_GetObjectItem(run->model, "class_name")->valuestring,
				    "Sequential");
		assert_string_equal(run->model_place, "model");
		run_file_free(run);
		snprintf(text, sizeof(text), "{\"model\": %s, \"compile\": {\"loss\": \"mse\"}}",
			 models[i]);
		run = parse_words(text, 0, NULL);
		assert_non_null(cJSON_GetObjectItem(run->model, "config"));
		run_file_free(run);
	}
	assert_int_equal(run_file_parse(&run, "r", models[0], strlen(models[0]), 0, NULL,
					&support_run_checks, &err),
			 ST_INVALID);
	assert_contains(err.text, "is a Keras model, not a run file");
	snprintf(text, sizeof(text), "{\"format\": \"graph-model\", \"modelTopology\": {}}");
	assert_int_not_equal(
		run_file_parse(&run, "r", text, strlen(text), 0, NULL, &support_run_checks, &err),
		ST_OK);
	assert_contains(err.text, "graph model of TensorFlow.js");
}

static int64_t input_batch(const struct run_file *run)
{
	const cJSON *config = cJSON_GetObjectItem(run->model, "config");
	const cJSON *input = cJSON_GetArrayItem(cJSON_GetObjectItem(config, "layers"), 0);
	const cJSON *shape =
		cJSON_GetObjectItem(cJSON_GetObjectItem(input, "config"), "batch_input_shape");

	return cJSON_GetArrayItem(shape, 0)->valueint;
}

/* data.batch_size and the input layer's batch: what the command line changes, the other follows. */
static void test_sizes_of_a_batch_go_together(void **state)
{
	static const char with[] = "{\"model\": " LAYERS "}, \"compile\": {\"loss\": \"mse\"}, "
				   "\"data\": {\"batch_size\": 4}, \"flags\": {\"--batch-size\": "
				   "{\"data\": {\"batch_size\": \"$value\"}}}}";
	static const char without[] = "{\"model\": " LAYERS "}, \"compile\": {\"loss\": \"mse\"}}";
	static const char apart[] = "{\"model\": " LAYERS "}, \"compile\": {\"loss\": \"mse\"}, "
				    "\"data\": {\"batch_size\": 5}}";
	/* The model that a flag brings follows, too; the words begin with the flag. */
	static const char flagged[] =
		"{\"model\": {\"class_name\": \"Sequential\", \"config\": {\"layers\": []}}, "
		"\"compile\": {\"loss\": \"mse\"}, \"data\": {\"batch_size\": 4}, "
		"\"flags\": {\"--type\": {\"model\": " LAYERS "}}}}";
	static const struct {
		const char *text, *word, *value;
		int64_t data, input;
	} rows[] = {
		{with, "--fit.epochs", "1", 4, 4},
		{with, "--data.batch_size", "6", 6, 6},
		{with, "--batch-size", "7", 7, 7},
		{with, "--model.config.layers.0.config.batch_input_shape.0", "8", 8, 8},
		{without, "--fit.epochs", "1", 4, 4},
		{without, "--data.batch_size", "9", 9, 9},
		{flagged, "--fit.epochs", "1", 4, 4},
		{flagged, "--data.batch_size", "6", 6, 6},
		{apart, "--fit.epochs", "1", 5, 4}, /* which run_layout_new() refuses */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char word[64], value[8];
		char flag[] = "--type";
		char *words[] = {flag, word, value};
		const int without_flag = rows[i].text != flagged;
		struct run_file *run;

		snprintf(word, sizeof(word), "%s", rows[i].word);
		snprintf(value, sizeof(value), "%s", rows[i].value);
		run = parse_words(rows[i].text, 3 - without_flag, words + without_flag);
		assert_int_equal(run->data.batch_size, rows[i].data);
		assert_int_equal(input_batch(run), rows[i].input);
		run_file_free(run);
	}
}

static void test_missing_run_file_is_named(void **state)
{
	struct run_file *run;
	struct err err = {0};

	(void)state;
	assert_int_equal(run_file_load(&run, "no/such.json", 0, NULL, &support_run_checks, &err),
			 ST_NOTFOUND);
	assert_null(run);
	assert_contains(err.text, "no/such.json");
}

static void test_help_shows_flags_and_every_key(void **state)
{
	struct run_file *run;
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	assert_non_null(out);
	assert_int_equal(run_sample_load(&run, "", NULL), ST_OK);
	assert_int_equal(run_file_help(run, out), ST_OK);
	fclose(out);
	assert_contains(text, "  --steps VALUE\n");
	assert_contains(text, "  --filters VALUE...\n");
	assert_contains(text, "      sets ipu.auto_select_ipus = 1\n");
	run_file_free(run);
	free(text);
}

static void test_document_lists_every_key_with_its_default(void **state)
{
	char path[FS_PATH_SIZE], row[512], *text;
	int count;
	const struct run_key *keys = run_file_keys(&count);

	(void)state;
	assert_true(fs_path(path, "%s/docs/run-file.md", support_source_dir()));
	text = support_read_file(path, NULL);
	for (int i = 0; i < count; i++) {
		snprintf(row, sizeof(row), "| `%s` | %s | ", keys[i].path, run_key_type(&keys[i]));
		assert_contains(text, row);
		snprintf(row, sizeof(row), "%s%s%s | %s |\n", keys[i].fallback ? "`" : "",
			 keys[i].fallback ? keys[i].fallback : "required",
			 keys[i].fallback ? "`" : "", keys[i].help);
		assert_contains(text, row);
	}
	free(text);
}

static void test_examples_load(void **state)
{
	static const char *const lines[][3] = {
		{NULL},
		{"--no-pipelining"},
		{"--no-pipelining", "--use-gradient-accumulation"},
		{"--model-type", "Model"},
		{"--model-type=Model", "--no-pipelining"},
		{"--model-type=Sequential", "--no-pipelining"},
		{"--gradients-filters", "Dense_10", "Dense_256"},
		{"--activations-filters", "none"},
		{"--outfeed-pre-accumulated-gradients"},
		{"--steps-per-epoch", "2000", "--epochs=1"},
	};
	char path[FS_PATH_SIZE];
	struct err err = {0};
	struct run_file *run;

	(void)state;
	assert_true(fs_path(path, "%s/examples/inspect-tensors.json", support_source_dir()));
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char *argv[3] = {NULL};
		int argc = 0;

		for (; argc < 3 && lines[i][argc]; argc++) {
			argv[argc] = strdup(lines[i][argc]);
			assert_non_null(argv[argc]);
		}
		if (run_file_load(&run, path, argc, argv, &support_run_checks, &err) != ST_OK)
			print_error("%s\n", err.text);
		assert_non_null(run);
		model_free(run_sample_model(run));
		run_file_free(run);
		while (argc > 0)
			free(argv[--argc]);
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
		status = run_file_parse(&run, "r", run_sample, strlen(run_sample), 0, NULL,
					&support_run_checks, NULL);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sample_fills_every_part),
		cmocka_unit_test(test_defaults_hold_where_keys_are_absent_or_null),
		cmocka_unit_test(test_new_sections_are_read),
		cmocka_unit_test(test_images_have_a_size),
		cmocka_unit_test(test_null_fit_has_no_epochs),
		cmocka_unit_test(test_unknown_keys_name_place_and_nearest),
		cmocka_unit_test(test_names_of_other_versions_name_their_replacement),
		cmocka_unit_test(test_arguments_that_keras_refuses_say_what_is_done),
		cmocka_unit_test(test_missing_keys_are_named),
		cmocka_unit_test(test_syntax_errors_have_line_and_column),
		cmocka_unit_test(test_deep_nesting_is_refused),
		cmocka_unit_test(test_values_have_types_and_ranges),
		cmocka_unit_test(test_filters_tell_none_from_empty_and_absent),
		cmocka_unit_test(test_captures_are_a_tier_or_rules),
		cmocka_unit_test(test_a_budget_is_bytes_or_has_a_unit),
		cmocka_unit_test(test_health_has_rules_what_stops_and_what_is_watched),
		cmocka_unit_test(test_what_stops_a_run_is_any_health_rule),
		cmocka_unit_test(test_health_rules_may_stand_in_a_file_beside_the_run_file),
		cmocka_unit_test(test_model_is_read_beside_the_run_file),
		cmocka_unit_test(test_a_keras_model_is_known_in_whatever_it_comes),
		cmocka_unit_test(test_sizes_of_a_batch_go_together),
		cmocka_unit_test(test_missing_run_file_is_named),
		cmocka_unit_test(test_help_shows_flags_and_every_key),
		cmocka_unit_test(test_document_lists_every_key_with_its_default),
		cmocka_unit_test(test_examples_load),
		cmocka_unit_test(test_no_memory_is_undone_everywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
