/*
 * Lowering a model for a test: the run file is read and its compile section taken as ipu-train
 * does, then the model goes to the device's graph.
 */
#include "support/lowering.h"

#include <stdlib.h>
#include <string.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "support/run_checks.h"
#include "support/support.h"

#define WORDS_MOST 16
#define ITEMS      60000
#define TEST_ITEMS 10000

static void must(enum status status, const struct err *err, const char *what)
{
	if (status != ST_OK)
		fail_msg("%s: %s", what, err->text);
}

/* compile's value of @key; false where there is none. */
static bool compile_value(const struct lowered *lowered, const char *key, struct json_at *out)
{
	const struct json_at root = json_root(lowered->run->path, lowered->run->json);
	struct json_at within;

	return json_child(&root, "compile", &within) && !json_is_null(&within) &&
	       json_child(&within, key, out) && !json_is_null(out);
}

static void read_compile(struct lowered *lowered)
{
	const struct model *model = lowered->model;
	const int width = (int)model_shape_count(&model->layers[model->layer_count - 1].output);
	struct lower_request *from = &lowered->from;
	struct json_at at;
	struct err err = {0};

	from->targets = lowered->run->data.one_hot.given ? (struct target_kind){.width = width}
							 : (struct target_kind){.classes = width};
	must(optimizer_get(&lowered->optimizer,
			   compile_value(lowered, "optimizer", &at) ? &at : NULL, &err),
	     &err, "optimizer");
	from->optimizer = &lowered->optimizer;
	if (!lowered->run->fit.wanted && !lowered->run->evaluate.wanted)
		return;
	assert_true(compile_value(lowered, "loss", &at));
	lowered->losses = (struct loss_list){
		.items = {{.given = true, .weight = 1.0f, .targets = from->targets}}, .count = 1};
	must(loss_get(&lowered->losses.items[0].loss, &at, &err), &err, "loss");
	must(metric_list_add(&lowered->metrics, compile_value(lowered, "metrics", &at) ? &at : NULL,
			     false, model, 0, &from->targets, &err),
	     &err, "metrics");
	from->losses = &lowered->losses;
	from->metrics = &lowered->metrics;
}

static void lower(struct lowered *lowered, const struct model_shape *shape)
{
	const struct json_at root = json_root(lowered->run->path, lowered->run->json);
	struct json_at at;
	struct err err = {0};

	assert_true(json_child(&root, "model", &at));
	must(model_new(&lowered->model, &at, shape, &err), &err, "model");
	model_set_policy(lowered->model, run_policy(lowered->run));
	must(run_layout_new(&lowered->layout, lowered->run, lowered->model, ITEMS, TEST_ITEMS, NULL,
			    &err),
	     &err, "layout");
	lowered->from = (struct lower_request){
		.run = lowered->run, .layout = lowered->layout, .model = lowered->model};
	read_compile(lowered);
	assert_int_equal(arena_init(&lowered->arena, 0), 0);
	must(lower_model(&lowered->graph, &lowered->from, &lowered->arena, &err), &err, "lower");
}

void lowered_open_example(struct lowered *out, const char *line)
{
	char words[512], path[FS_PATH_SIZE], *argv[WORDS_MOST], *rest = NULL;
	struct model_shape shape = {3, {28, 28, 1}};
	struct err err = {0};
	int argc = 0;

	*out = (struct lowered){0};
	str_copy(words, sizeof(words), line);
	for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		assert_true(argc < WORDS_MOST);
		argv[argc++] = word;
	}
	assert_true(argc > 0);
	assert_true(fs_path(path, "%s/examples/%s", support_source_dir(), argv[0]));
	must(run_file_load(&out->run, path, argc - 1, argv + 1, &support_run_checks, &err), &err,
	     line);
	if (!strcmp(out->run->data.name, "cifar10"))
		shape = (struct model_shape){3, {32, 32, 3}};
	if (out->run->data.resize[0]) {
		shape.dim[0] = out->run->data.resize[0];
		shape.dim[1] = out->run->data.resize[1];
	}
	lower(out, &shape);
}

void lowered_open_text(struct lowered *out, const char *text, const struct model_shape *shape)
{
	char *json = strdup(text);
	struct err err = {0};

	*out = (struct lowered){0};
	assert_non_null(json);
	for (char *c = json; *c; c++)
		if (*c == '\'')
			*c = '"';
	must(run_file_parse(&out->run, "run.json", json, strlen(json), 0, NULL, &support_run_checks,
			    &err),
	     &err, text);
	free(json);
	lower(out, shape);
}

void lowered_close(struct lowered *lowered)
{
	metric_list_free(&lowered->metrics);
	run_layout_free(lowered->layout);
	model_free(lowered->model);
	run_file_free(lowered->run);
	arena_fini(&lowered->arena);
}
