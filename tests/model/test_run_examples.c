/*
 * The run files of examples/: each loads with each of its flags, and is laid out as its tutorial
 * is.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "support/run_checks.h"
#include "support/support.h"
#include "model/run/run_rules.h"

#define WORDS_MOST 16

/* A command line, and what its tutorial's numbers are. */
struct example {
	const char *line; /* "keras-mnist.json --use-ipu" */
	int replicas, stages;
	int64_t accumulation, steps, execution, evaluate, evaluate_execution;
};

static const struct example examples[] = {
	/* The Keras tutorial's completed example. */
	{"keras-mnist.json", 1, 1, 1, 750, 1, 125, 1},
	{"keras-mnist.json --batch-size 50", 1, 1, 1, 1200, 1, 200, 1},
	{"keras-mnist.json --use-ipu", 2, 1, 1, 375, 375, 62, 62},
	{"keras-mnist.json --use-ipu --pipelining", 1, 2, 8, 744, 744, 124, 124},
	{"keras-mnist.json --use-ipu --pipelining --gradient-accumulation-count 24", 1, 2, 24, 744,
	 744, 124, 124},
	{"keras-mnist.json --use-ipu --pipelining --gradient-accumulation-steps-per-replica 4", 1,
	 2, 4, 748, 748, 124, 124},
	{"keras-mnist.json --pipelining --gradient-accumulation-count 8", 1, 1, 1, 750, 1, 125, 1},

	/* The steps of its text. */
	{"keras-mnist-demo.json", 1, 1, 1, 938, 1, 157, 1},
	{"keras-mnist-demo.json --use-ipu", 1, 1, 1, 937, 1, 156, 1},
	{"keras-mnist-demo.json --steps-per-execution", 1, 1, 1, 937, 937, 156, 156},
	{"keras-mnist-demo.json --replication", 2, 1, 1, 468, 468, 78, 78},
	{"keras-mnist-demo.json --pipelining Grouped", 1, 2, 8, 936, 936, 152, 152},
	{"keras-mnist-demo.json --pipelining Interleaved", 1, 2, 8, 936, 936, 152, 152},

	/* The Keras chapter, section by section. */
	{"keras-chapter.json", 1, 1, 1, 100, 1, 0, 0},
	{"keras-chapter.json --steps-per-execution 50", 1, 1, 1, 100, 50, 0, 0},
	{"keras-chapter.json --steps-per-execution 50 "
	 "--gradient-accumulation-steps-per-replica 10",
	 1, 1, 10, 100, 50, 0, 0},
	{"keras-chapter-stages.json", 1, 2, 16, 128, 128, 0, 0},
	{"keras-chapter-stages.json --functional", 1, 2, 16, 128, 128, 0, 0},
	{"keras-chapter-resnet50.json", 1, 2, 4, 4, 4, 0, 0},
	{"keras-chapter.json --num-ipus 2 --steps-per-execution 50 "
	 "--gradient-accumulation-steps-per-replica 10",
	 2, 1, 10, 50, 50, 0, 0},
	{"keras-chapter.json --steps-per-execution 50 --asynchronous-callbacks", 1, 1, 1, 100, 50,
	 0, 0},
	{"keras-chapter.json --pipelined", 1, 2, 16, 128, 128, 0, 0},

	/* ResNet50 on CIFAR-10: its code's images, and those that its printed output shows. */
	{"cifar10-resnet50.json", 1, 1, 1, 500, 500, 500, 500},
	{"cifar10-resnet50.json --max-img 100", 1, 1, 1, 50, 50, 50, 50},
	{"cifar10-resnet50.json --num-epochs 1", 1, 1, 1, 500, 500, 500, 500},

	{"mnist-starter.json", 1, 1, 1, 2000, 100, 0, 0},

	/* Texts. */
	{"gpt.json", 1, 4, 8, 1600, 8, 256, 256},
	{"gpt.json --cpu", 1, 1, 8, 1600, 8, 256, 256},
	{"imdb-lstm.json", 1, 1, 1, 1875, 1875, 312, 312},
	{"imdb-lstm.json --cpu --texts reviews", 1, 1, 1, 1875, 1875, 312, 312},
	{"bert.json", 4, 5, 1020, 1020, 1020, 0, 0},
	{"bert-large.json", 2, 9, 4104, 4104, 4104, 0, 0},
	{"bert-large.json --one-replica", 1, 9, 8208, 8208, 8208, 0, 0},
	{"bert-large.json --four-ipus", 4, 5, 2040, 2040, 2040, 0, 0},
	{"bert-small.json", 1, 3, 6, 600, 60, 3, 3},
	{"bert-small.json --cpu", 1, 1, 6, 600, 60, 3, 3},

	/* The tensor tutorial's four models, and its other flags. */
	{"inspect-tensors.json", 1, 2, 4, 500, 500, 312, 312},
	{"inspect-tensors.json --model-type Model", 1, 2, 4, 500, 500, 312, 312},
	{"inspect-tensors.json --data.batch_size 16", 1, 2, 4, 500, 500, 624, 624},
	{"inspect-tensors.json --no-pipelining --data.batch_size 4", 1, 1, 1, 500, 500, 2500, 2500},
	{"inspect-tensors.json --no-pipelining", 1, 1, 1, 500, 500, 312, 312},
	{"inspect-tensors.json --no-pipelining --model-type Model", 1, 1, 1, 500, 500, 312, 312},
	{"inspect-tensors.json --no-pipelining --use-gradient-accumulation", 1, 1, 4, 500, 500, 312,
	 312},
	{"inspect-tensors.json --steps-per-epoch 2000 --epochs 1", 1, 2, 4, 2000, 2000, 312, 312},
	{"inspect-tensors.json --outfeed-pre-accumulated-gradients", 1, 2, 4, 500, 500, 312, 312},
	{"inspect-tensors.json --gradients-filters Dense_10 Dense_256 --activations-filters none",
	 1, 2, 4, 500, 500, 312, 312},
};

static enum status load(struct run_file **out, const char *folder, const char *line,
			struct err *err)
{
	char words[512], path[FS_PATH_SIZE], *argv[WORDS_MOST], *rest = NULL;
	int argc = 0;

	str_copy(words, sizeof(words), line);
	for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		assert_true(argc < WORDS_MOST);
		argv[argc++] = word;
	}
	assert_true(argc > 0);
	assert_true(fs_path(path, "%s/%s/%s", support_source_dir(), folder, argv[0]));
	return run_file_load(out, path, argc - 1, argv + 1, &support_run_checks, err);
}

/* The shape of the data's items, and the items of both parts; npz has what the model takes. */
static struct model_shape data_of(const struct run_file *run, int64_t *train, int64_t *test)
{
	bool cifar = !strcmp(run->data.name, "cifar10");
	struct model_shape shape = {3, {28, 28, 1}};

	*train = cifar ? 50000 : 60000;
	*test = 10000;
	if (run->data.limit && run->data.limit < *train)
		*train = run->data.limit;
	if (run->data.limit && run->data.limit < *test)
		*test = run->data.limit;
	if (cifar)
		shape = (struct model_shape){3, {32, 32, 3}};
	if (!strcmp(run->data.name, "text") || !strcmp(run->data.name, "imdb"))
		shape = (struct model_shape){1, {run->data.sequence_length}};
	if (!strcmp(run->data.name, "npz"))
		shape.ndim = 0;
	if (run->data.resize[0]) {
		shape.dim[0] = run->data.resize[0];
		shape.dim[1] = run->data.resize[1];
	}
	return shape;
}

static enum status build(struct model **out, const struct run_file *run,
			 const struct model_shape *shape, struct err *err)
{
	const struct json_at root = json_root(run->path, run->json);
	struct json_at at;

	assert_true(json_child(&root, "model", &at));
	return model_new(out, &at, shape->ndim ? shape : NULL, err);
}

static void check(const struct example *example)
{
	struct run_layout *layout = NULL;
	struct model *model = NULL;
	struct model_shape shape;
	struct run_file *run;
	struct err err = {0};
	int64_t train, test;

	if (load(&run, "examples", example->line, &err) != ST_OK)
		fail_msg("%s: %s", example->line, err.text);
	shape = data_of(run, &train, &test);
	if (build(&model, run, &shape, &err) != ST_OK ||
	    run_layout_new(&layout, run, model, train, test, NULL, &err) != ST_OK)
		fail_msg("%s: %s", example->line, err.text);

	assert_int_equal(layout->replicas, example->replicas);
	assert_int_equal(layout->stages, example->stages);
	assert_int_equal(layout->accumulation, example->accumulation);
	assert_int_equal(layout->steps_per_epoch, example->steps);
	assert_int_equal(layout->steps_per_execution, example->execution);
	assert_int_equal(layout->evaluate_steps, example->evaluate);
	assert_int_equal(layout->evaluate_steps_per_execution, example->evaluate_execution);
	run_layout_free(layout);
	model_free(model);
	run_file_free(run);
}

static void test_examples_are_laid_out_as_their_tutorials(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(examples); i++)
		check(&examples[i]);
}

/* A run file that nobody listed would be tested by nobody. */
static void test_every_run_file_is_listed(void **state)
{
	char path[FS_PATH_SIZE];
	struct dirent *entry;
	DIR *folder;

	(void)state;
	assert_true(fs_path(path, "%s/examples", support_source_dir()));
	folder = opendir(path);
	assert_non_null(folder);
	while ((entry = readdir(folder))) {
		const char *dot = strrchr(entry->d_name, '.');
		bool listed = !dot || strcmp(dot, ".json") != 0;

		for (size_t i = 0; i < ARRAY_LEN(examples) && !listed; i++)
			listed = str_starts_with(examples[i].line, entry->d_name);
		if (!listed)
			fail_msg("%s is in no line of this test", entry->d_name);
	}
	closedir(folder);
}

/* Each flag of each example is used by a line, and each line stands in docs/run-file.md. */
static void test_document_names_the_commands(void **state)
{
	char path[FS_PATH_SIZE], *text;

	(void)state;
	assert_true(fs_path(path, "%s/docs/run-file.md", support_source_dir()));
	text = support_read_file(path, NULL);
	for (size_t i = 0; i < ARRAY_LEN(examples); i++) {
		char name[128];

		snprintf(name, sizeof(name), "`ipu-train examples/%.*s",
			 (int)strcspn(examples[i].line, " "), examples[i].line);
		assert_contains(text, name);
	}
	free(text);
}

static void test_stages_of_resnet50_split_after_conv4_block2_add(void **state)
{
	struct run_layout *layout;
	struct model *model;
	struct model_shape shape;
	struct run_file *run;
	int64_t train, test;
	int seen = 0;

	(void)state;
	assert_int_equal(load(&run, "examples", "keras-chapter-resnet50.json", NULL), ST_OK);
	shape = data_of(run, &train, &test);
	assert_int_equal(build(&model, run, &shape, NULL), ST_OK);
	assert_int_equal(run_layout_new(&layout, run, model, train, test, NULL, NULL), ST_OK);
	for (int i = 0; i < model->layer_count; i++) {
		if (!strcmp(model->layers[i].name, "conv4_block2_add"))
			seen += layout->stage[i] == 0;
		if (!strcmp(model->layers[i].name, "conv4_block2_out"))
			seen += layout->stage[i] == 1;
	}
	assert_int_equal(seen, 2);
	run_layout_free(layout);
	model_free(model);
	run_file_free(run);
}

static void test_form_of_tensorflow_2_1_names_its_replacement(void **state)
{
	const struct model_shape shape = {3, {28, 28, 1}};
	struct model *model;
	struct run_file *run;
	struct err err = {0};

	(void)state;
	assert_int_equal(load(&run, "tests/golden", "tf21-pipeline.json", NULL), ST_OK);
	assert_int_not_equal(build(&model, run, &shape, &err), ST_OK);
	assert_contains(err.text, "PipelineSequential");
	assert_contains(err.text, "use \"Sequential\"");
	assert_contains(err.text, "pipeline.stages");
	run_file_free(run);

	assert_int_equal(load(&run, "tests/golden",
			      "tf21-pipeline.json --model.class_name Sequential", NULL),
			 ST_OK);
	assert_int_not_equal(build(&model, run, &shape, &err), ST_OK);
	assert_contains(err.text, "gradient_accumulation.steps_per_replica");
	run_file_free(run);
}

/* ---- by name --------------------------------------------------------------------------------- */

static void print_list(FILE *out)
{
	assert_int_equal(run_example_list(out, NULL), ST_OK);
}

static void test_the_list_has_all_examples_in_their_order(void **state)
{
	(void)state;
	support_check_golden("examples.txt", print_list);
}

static void check_found(const char *word, const char *path)
{
	char found[FS_PATH_SIZE];
	struct err err = {0};

	if (run_example_find(found, word, &err) != ST_OK)
		fail_msg("%s: %s", word, err.text);
	assert_string_equal(found, path);
}

/* A path or a file is itself, with or without its suffix; another word is an example's name. */
static void test_a_word_is_a_file_or_an_example(void **state)
{
	static const char text[] = "{}";
	char folder[FS_PATH_SIZE], path[FS_PATH_SIZE];

	(void)state;
	support_enter();
	assert_true(fs_shared(folder, "examples"));
	assert_true(fs_path(path, "%s/keras-mnist.json", folder));
	check_found("keras-mnist", path);
	check_found("keras-mnist.json", path);
	check_found("./keras-mnist", "./keras-mnist");
	check_found("no/such.json", "no/such.json");
	support_write_file("test_run_examples.json", text, strlen(text));
	check_found("test_run_examples.json", "test_run_examples.json");
	check_found("test_run_examples", "test_run_examples.json");
	/* What is called as an example is a file, too, comes first. */
	support_write_file("keras-mnist", text, strlen(text));
	check_found("keras-mnist", "keras-mnist");
	assert_int_equal(unlink("keras-mnist"), 0);
	/* A folder is no run file. */
	assert_int_equal(mkdir("keras-mnist.json", 0777), 0);
	check_found("keras-mnist", path);
	check_found("keras-mnist.json", path);
	support_leave();
}

static void test_a_word_that_is_neither_names_the_nearest_example(void **state)
{
	static const struct {
		const char *word, *says;
	} rows[] = {
		{"keras-mnis", "keras-mnis: there is no such file, and no example of that name; "
			       "did you mean \"keras-mnist\"? (`ipu-train --list` lists them)"},
		{"mnist-starterr.json",
		 "mnist-starterr.json: there is no such file, and no example of that name; did "
		 "you mean \"mnist-starter\"? (`ipu-train --list` lists them)"},
		{"xyzzy", "xyzzy: there is no such file, and no example of that name "
			  "(`ipu-train --list` lists them)"},
		{".json", ".json: there is no such file, and no example of that name "
			  "(`ipu-train --list` lists them)"},
		{"keras", "keras: there is no such file, and no example of that name "
			  "(`ipu-train --list` lists them)"},
	};
	char found[FS_PATH_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = {0};

		assert_int_equal(run_example_find(found, rows[i].word, &err), ST_NOTFOUND);
		assert_string_equal(err.text, rows[i].says);
	}
}

static void test_a_path_has_a_greatest_length(void **state)
{
	char word[FS_PATH_SIZE + 1], found[FS_PATH_SIZE];
	struct err err = {0};

	(void)state;
	memset(word, '/', sizeof(word) - 1);
	word[FS_PATH_SIZE] = '\0';
	assert_int_equal(run_example_find(found, word, &err), ST_INVALID);
	assert_contains(err.text, "////...: the path is too long");
	word[FS_PATH_SIZE - 1] = '\0';
	check_found(word, word);
}

static void test_lacking_memory_is_said_of_a_name(void **state)
{
	char found[FS_PATH_SIZE];
	struct err err = {0};

	(void)state;
	support_fail_alloc(0);
	assert_int_equal(run_example_find(found, "xyzzy", &err), ST_NOMEM);
	support_fail_alloc(-1);
	assert_int_equal(err.status, ST_NOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_examples_are_laid_out_as_their_tutorials),
		cmocka_unit_test(test_every_run_file_is_listed),
		cmocka_unit_test(test_document_names_the_commands),
		cmocka_unit_test(test_stages_of_resnet50_split_after_conv4_block2_add),
		cmocka_unit_test(test_form_of_tensorflow_2_1_names_its_replacement),
		cmocka_unit_test(test_the_list_has_all_examples_in_their_order),
		cmocka_unit_test(test_a_word_is_a_file_or_an_example),
		cmocka_unit_test(test_a_word_that_is_neither_names_the_nearest_example),
		cmocka_unit_test(test_a_path_has_a_greatest_length),
		cmocka_unit_test(test_lacking_memory_is_said_of_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
