/*
 * Run files for tests. See run_sample.h.
 */
#include "support/run_sample.h"

#include <stdlib.h>
#include <string.h>

#include "support/run_checks.h"
#include "support/support.h"

#define WORDS_MOST 32

const char run_sample[] =
	"{\"model\": {\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [\n"
	"  {\"class_name\": \"Flatten\", \"config\": {\"name\": \"flatten\"}},\n"
	"  {\"class_name\": \"Dense\", \"config\": {\"name\": \"hidden\", \"units\": 16}},\n"
	"  {\"class_name\": \"Dense\", \"config\": {\"name\": \"out\", \"units\": 10,\n"
	"   \"activation\": \"softmax\"}}]}},\n"
	" \"compile\": {\"loss\": \"sparse_categorical_crossentropy\",\n"
	"  \"metrics\": [\"accuracy\"], \"steps_per_execution\": 20},\n"
	" \"fit\": {\"epochs\": 2, \"steps_per_epoch\": 40, \"seed\": 7},\n"
	" \"evaluate\": {\"steps\": 30, \"steps_per_execution\": 10},\n"
	" \"ipu\": {\"auto_select_ipus\": 2},\n"
	" \"gradient_accumulation\": {\"steps_per_replica\": 4},\n"
	" \"pipeline\": {\"stages\": [0, 0, 1]},\n"
	" \"outfeed\": {\"gradients\": [\"hidden\"]},\n"
	" \"flags\": {\n"
	"  \"--first\": {\"fit\": {\"epochs\": 3}, \"outfeed\": {\"capture\": \"off\"}},\n"
	"  \"--second\": {\"fit\": {\"epochs\": 4}},\n"
	"  \"--steps\": {\"fit\": {\"steps_per_epoch\": \"$value\"},\n"
	"               \"compile\": {\"steps_per_execution\": \"$value\"}},\n"
	"  \"--filters\": {\"outfeed\": {\"gradients\": \"$values\"}},\n"
	"  \"--named\": {\"compile\": {\"optimizer\": \"adam\"}},\n"
	"  \"--rate\": {\"compile\": {\"optimizer\": {\"config\":\n"
	"             {\"learning_rate\": \"$value\"}}}},\n"
	"  \"--base\": {\"fit\": {\"seed\": 8}},\n"
	"  \"--base --more\": {\"fit\": {\"seed\": 9}},\n"
	"  \"--base --more --most\": {\"fit\": {\"seed\": 10}},\n"
	"  \"--single\": {\"pipeline\": null, \"ipu\": {\"auto_select_ipus\": 1}},\n"
	"  \"--cpu\": {\"pipeline\": null, \"ipu\": null}}}\n";

enum status run_sample_load(struct run_file **out, const char *line, struct err *err)
{
	char *argv[WORDS_MOST], *copy = strdup(line), *rest = NULL;
	enum status status;
	int argc = 0;

	assert_non_null(copy);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		assert_true(argc < WORDS_MOST);
		argv[argc++] = word;
	}
	status = run_file_parse(out, "run.json", run_sample, strlen(run_sample), argc, argv,
				&support_run_checks, err);
	free(copy);
	return status;
}

struct run_file *run_sample_get(const char *line)
{
	struct run_file *run;
	struct err err = {0};

	if (run_sample_load(&run, line, &err) != ST_OK)
		fail_msg("%s: %s", line, err.text);
	return run;
}

void run_sample_refuses(const char *line, const char *part)
{
	struct run_file *run;
	struct err err = {0};

	assert_int_equal(run_sample_load(&run, line, &err), ST_INVALID);
	assert_null(run);
	assert_contains(err.text, part);
}

struct run_file *run_sample_of(const char *text)
{
	struct run_file *run;
	struct err err = {0};

	if (run_file_parse(&run, "run.json", text, strlen(text), 0, NULL, &support_run_checks,
			   &err) != ST_OK)
		fail_msg("%s", err.text);
	return run;
}

struct model *run_sample_model_of(const struct run_file *run, const struct model_shape *input)
{
	struct json_at at = json_root(run->model_file, run->model);
	struct model *model;
	struct err err = {0};

	if (model_new(&model, &at, input, &err) != ST_OK)
		fail_msg("%s", err.text);
	return model;
}

struct model *run_sample_model(const struct run_file *run)
{
	return run_sample_model_of(run, &(struct model_shape){3, {28, 28, 1}});
}
