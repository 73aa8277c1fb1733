/*
 * Run files: the text, and after a 0 byte the words of the command line, each ended by one. What
 * loads is read on as a model and laid out.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"
#include "model/model.h"
#include "model/run/run_file.h"
#include "model/run/run_rules.h"
#include "../support/run_checks.h"

#define WORDS_MOST 16

static void lay_out(const struct run_file *run)
{
	const struct model_shape shape = {3, {28, 28, 1}};
	struct json_at at = json_root(run->model_file, run->model);
	struct run_layout *layout;
	struct model *model;
	struct err err;

	if (model_new(&model, &at, &shape, &err) != ST_OK)
		return;
	if (run_layout_new(&layout, run, model, 60000, 10000, NULL, &err) == ST_OK)
		run_layout_free(layout);
	model_free(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1), *argv[WORDS_MOST];
	struct run_file *run;
	struct err err;
	size_t length;
	int argc = 0;

	if (!copy)
		return 0;
	if (size)
		memcpy(copy, data, size);
	copy[size] = '\0';
	length = strlen(copy);
	for (size_t at = length + 1; at < size && argc < WORDS_MOST; at += strlen(copy + at) + 1)
		argv[argc++] = copy + at;

	if (run_file_parse(&run, "fuzz", copy, length, argc, argv, &support_run_checks, &err) ==
	    ST_OK) {
		lay_out(run);
		run_file_free(run);
	}
	free(copy);
	return 0;
}
