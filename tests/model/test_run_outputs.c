/*
 * What a run file states for a model's outputs: what is read of it, and what is said against it,
 * are those of before, in tests/golden/run_outputs.txt, which UPDATE_GOLDEN=1 rewrites.
 */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "model/learn/metric.h"
#include "model/plan/plan_run.h"
#include "support/run_checks.h"
#include "support/run_sample.h"
#include "support/support.h"

#define SEQUENTIAL(shape)                                                                          \
	"'class_name': 'Sequential', 'config': {'name': 's', 'layers': [{'class_name': "           \
	"'InputLayer', 'config': {'batch_input_shape': " shape                                     \
	"}}, {'class_name': 'Dense', 'config': {'name': 'out', 'units': 3, 'activation': "         \
	"'softmax'}}]}"
#define LAYER(class_name, name, config, from)                                                      \
	", {'class_name': '" class_name "', 'config': {'name': '" name "'" config                  \
	"}, 'inbound_nodes': [[['" from "', 0, 0, {}]]]}"

/* The output a has four positions. */
static const char *const models[][2] = {
	{"one", SEQUENTIAL("[null, 4]")},
	{"steps", SEQUENTIAL("[null, 5, 4]")},
	{"three", "'class_name': 'Functional', 'config': {'name': 'f', 'layers': [{'class_name': "
		  "'InputLayer', 'config': {'name': 'x', 'batch_input_shape': [null, 4, 3]}, "
		  "'inbound_nodes': []}" LAYER("Dense", "a", ", 'units': 3",
					       "x") LAYER("Flatten", "flat", "", "x")
			  LAYER("Dense", "b", ", 'units': 5, 'activation': 'sigmoid'", "flat")
				  LAYER("Dense", "c", ", 'units': 2",
					"flat") "], 'input_layers': [['x', 0, 0]], "
						"'output_layers': [['a', 0, 0], ['b', 0, 0], "
						"['c', 0, 0]]}"},
};

#define MIXED "'loss': ['sparse_categorical_crossentropy', 'binary_crossentropy', 'mse']"
#define NAMED "'data': {'outputs': ['b', 'a', 'c']}"
#define SPARSE(class)                                                                              \
	"{'class_name': 'SparseCategoricalCrossentropy', 'config': {'ignore_class': " class "}}"

/* ' stands for a quotation mark. */
/* clang-format off */
static const struct {
	int model;   /* of `models` */
	int classes; /* that the data have; 0: what the loss needs */
	int weights; /* of an item */
	const char *text;
} samples[] = {
	{0, 0, 0, "'compile': {'loss': 'sparse_categorical_crossentropy', 'metrics': ['accuracy']}"},
	{0, 0, 0, "'compile': {'loss': ['mse'], 'metrics': ['mae', 'mse']}, 'fit': {}"},
	{0, 0, 1, "'compile': {'loss': {'out': 'mse'}, 'loss_weights': [2], 'weighted_metrics': ['mae']}"},
	{0, 0, 0, "'compile': {'loss': 'mse', 'loss_weights': [0.5]}, 'data': {'pad_remainder': true}"},
	{0, 0, 1, "'compile': {'loss': 'mse', 'loss_weights': {'out': 3e38}}, 'data': {'pad_remainder': true}"},
	{0, 0, 0, "'compile': {'loss': 'mse', 'loss_weights': {'out': 3.1e38}}"},
	{0, 0, 0, "'compile': {'loss': 'mse', 'loss_weights': [-3.1e38]}"},
	{0, 0, 0, "'compile': {'loss': 'mse', 'loss_weights': ['x']}"},
	{0, 0, 0, "'compile': {'loss': 'mse', 'loss_weights': {'in': 1}}"},
	{0, 0, 0, "'compile': {'metrics': ['accuracy']}"},
	{0, 0, 0, "'compile': {'loss': []}"},
	{0, 0, 0, "'compile': {'loss': ['mse', 'mse']}"},
	{0, 0, 0, "'compile': {'loss': [null]}"},
	{0, 0, 0, "'compile': {'loss': {'class_name': 'Huber', 'config': {'delta': 2}}}"},
	{0, 0, 0, "'compile': {'loss': 'nse'}"},
	{0, 0, 0, "'compile': {'loss': {'aut': 'mse'}}"},
	{0, 0, 0, "'compile': {'loss': 'mse', 'metrics': ['precission']}"},
	{0, 0, 0, "'compile': {'loss': 'mse', 'metrics': [['mae'], ['mae']]}"},
	{0, 0, 0, "'compile': {'loss': 'mse', 'metrics': [['mae', null]]}"},
	{0, 0, 0, "'compile': {'loss': 'mse', 'weighted_metrics': {'uot': 'mae'}}"},
	{0, 0, 0, "'compile': {'loss': 'mse', 'metrics': ['mae'], 'weighted_metrics': ['mae', 'mse']}"},
	{0, 0, 0, "'compile': {'loss': 'mse'}, 'evaluate': {'loss': 'mea'}"},
	{0, 0, 0, "'compile': {'loss': 'mse'}, 'evaluate': {'metrics': ['mea']}"},
	{0, 0, 0, "'compile': {'loss': 'mse'}, 'data': {'one_hot': ['out']}"},
	{0, 0, 0, "'compile': {'loss': 'mse'}, 'data': {'one_hot': true}"},
	{0, 4, 0, "'compile': {'loss': 'sparse_categorical_crossentropy'}"},
	{0, 0, 0, "'compile': {'loss': " SPARSE("1") "}, 'fit': {'class_weight': {'0': 1, '1': 0.5}}"},
	{0, 0, 0, "'compile': {'loss': [" SPARSE("2") "]}, 'fit': {'class_weight': {'0': 3e38}}"},
	{0, 0, 0, "'compile': {'loss': 'mse'}, 'fit': {'class_weight': {'0': 1, '2': 1}}"},
	{0, 0, 0, "'compile': {'loss': 'mse'}, 'fit': {'class_weight': {'0': -3.1e38}}"},
	{0, 0, 0, "'compile': {'loss': 'mse'}, 'fit': {'class_weight': {}}"},
	{0, 0, 0, "'compile': {'loss': 'mse'}, 'fit': {'class_weight': {'0': 'x'}}"},
	{1, 0, 0, "'compile': {'loss': 'sparse_categorical_crossentropy', 'metrics': ['accuracy']}, "
	 "'fit': {'class_weight': {'0': 1, '1': 2, '2': 3}}"},
	{1, 0, 5, "'compile': {'loss': 'mse'}, 'data': {'pad_remainder': true}"},
	{2, 0, 0, "'compile': {" MIXED ", 'metrics': ['mae']}, " NAMED ", 'fit': {}"},
	{2, 0, 1, "'compile': {" MIXED ", 'metrics': [['accuracy'], null, []], 'weighted_metrics': {'b': ['mae', 'mse']}, "
	 "'loss_weights': [1, null, 0.25]}, " NAMED},
	{2, 0, 3, "'compile': {" MIXED ", 'loss_weights': {'c': 7}}, 'data': {'pad_remainder': true, 'outputs': ['c', 'b', "
	 "'a']}"},
	{2, 0, 0, "'compile': {'loss': {'b': 'mse', 'c': null}}, 'data': {'outputs': ['b']}, 'evaluate': {}"},
	{2, 0, 0, "'compile': {'loss': {'b': 'mse'}, 'metrics': ['mae']}, 'data': {'outputs': ['c', 'b']}"},
	{2, 0, 0, "'compile': {'loss': {'b': 'mse'}, 'metrics': {'c': 'mae'}}, 'data': {'outputs': ['b']}"},
	{2, 0, 0, "'compile': {'loss': {'b': 'mse', 'c': 'mse'}}, 'data': {'outputs': ['b']}"},
	{2, 0, 0, "'compile': {'loss': [null, null, null]}, " NAMED},
	{2, 0, 0, "'compile': {'loss': ['mse', 'mse']}, " NAMED},
	{2, 0, 0, "'compile': {'loss': ['mse', 'mse', 'nse']}, " NAMED},
	{2, 0, 0, "'compile': {'loss': 'mse', 'metrics': {'d': 'mae'}}, " NAMED},
	{2, 0, 0, "'compile': {'loss': 'mse', 'metrics': {'b': 'mea'}}, " NAMED},
	{2, 0, 0, "'compile': {'loss': 'mse', 'metrics': [[], [null, 'mea'], []]}, " NAMED},
	{2, 0, 0, "'compile': {'loss': 'mse', 'metrics': [[], 'mae']}, " NAMED},
	{2, 0, 0, "'compile': {'loss': 'mse'}, 'data': {'outputs': ['a', 'd']}"},
	{2, 0, 0, "'compile': {'loss': 'mse'}, 'data': {'outputs': ['a', 'b', 'a']}"},
	{2, 0, 0, "'compile': {'loss': 'mse'}, 'data': {'outputs': ['a', 'b', 'c'], 'one_hot': ['b', 'd']}"},
	{2, 0, 0, "'compile': {'loss': 'mse'}, 'fit': {}"},
	{2, 0, 0, "'compile': {'loss': 'mse'}, 'fit': null, 'evaluate': {}"},
	{2, 0, 0, "'compile': {'loss': 'mse'}, 'fit': null, 'predict': {}"},
	{2, 0, 0, "'compile': {'loss': {'a': " SPARSE( "0") ", 'b': 'mse'}}, 'data': {'outputs': ['b', 'a']}"},
	{2, 0, 0, "'compile': {'loss': 'sparse_categorical_crossentropy'}, 'data': {'outputs': ['b', 'c']}, "
	 "'fit': {'class_weight': {'b': {'0': 1}}}"},
	{2, 0, 0, "'compile': {'loss': [null, 'sparse_categorical_crossentropy', " SPARSE( "1") "]}, "
	 "'data': {'outputs': ['c', 'b']}, 'fit': {'class_weight': [null, {'0': 4}, {'0': 1, '1': 2}]}"},
	{2, 0, 0, "'compile': {" MIXED "}, " NAMED ", 'fit': {'class_weight': {'a': {'0': 1}}}"},
	{2, 0, 0, "'compile': {" MIXED "}, " NAMED ", 'fit': {'class_weight': {'0': 1, '1': 2}}"},
	{2, 0, 0, "'compile': {" MIXED "}, " NAMED ", 'fit': {'class_weight': [{'0': 1}]}"},
	{2, 0, 0, "'compile': {" MIXED "}, " NAMED ", 'fit': {'class_weight': {'d': {'0': 1}}}"},
	{2, 0, 0, "'compile': {'loss': {'b': 'mse'}}, 'data': {'outputs': ['b']}, 'fit': {'class_weight': {'c': {'0': 1}}}"},
	{2, 0, 0, "'compile': {'loss': {'b': 'mse'}}, 'data': {'outputs': ['b']}, 'fit': {'class_weight': {'b': {'1': 1}}}"},
};
/* clang-format on */

static FILE *out;

static void print_kind(const struct target_kind *kind)
{
	fprintf(out, "%d/%lld", kind->classes, (long long)kind->width);
	if (kind->weights)
		fprintf(out, " weights %lld", (long long)kind->weights);
	for (int i = 0; i < kind->part_count; i++)
		fprintf(out, "%s%d/%lld", i ? ", " : " of ", kind->parts[i].classes,
			(long long)kind->parts[i].width);
	if (kind->ignores)
		fprintf(out, " without %lld", (long long)kind->ignored);
}

static void print_measure(const struct run_file *run, const struct model *model,
			  const struct target_kind *kind)
{
	struct loss_list losses;
	struct metric_list metrics;
	struct err err = {0};

	if (run_measure(&losses, &metrics, run, "compile", model, kind, &err) != ST_OK) {
		fprintf(out, ": %s\n", err.text);
		assert_null(metrics.items);
		return;
	}
	fprintf(out, ": %lld weights", (long long)losses.weights);
	for (int o = 0; o < losses.count; o++) {
		const struct loss_part *part = &losses.items[o];

		fprintf(out, "; %s*%g at %lld, %d: ", part->given ? loss_name(&part->loss) : "none",
			(double)part->weight, (long long)part->first, part->weight_at);
		print_kind(&part->targets);
	}
	fprintf(out, "\n");
	for (int i = 0; i < metrics.count; i++)
		fprintf(out, "%s%s of %d%s", i ? ", " : "  ", metrics.items[i].name,
			metrics.items[i].output, metrics.items[i].weighted ? " weighted" : "");
	if (metrics.count)
		fprintf(out, "\n");
	metric_list_free(&metrics);
}

static void print_weights(const struct run_file *run, const struct model *model,
			  const struct target_kind *kind)
{
	struct class_weights weights;
	struct err err = {0};

	if (run_row_weights(run, kind, model, true))
		fprintf(out, "  rows have %lld weights in training, %lld in evaluation\n",
			(long long)run_row_weights(run, kind, model, true),
			(long long)run_row_weights(run, kind, model, false));
	for (int i = 0; i < 3; i++) {
		int64_t class;

		if (run_ignored(run, i, &class))
			fprintf(out, "  class %lld of %d is ignored\n", (long long)class, i);
	}
	if (run_class_weights(&weights, run, &err) != ST_OK)
		assert_null(weights.parts[0].items);
	for (int i = 0; i < TARGET_PARTS; i++)
		for (int64_t c = 0; c < weights.parts[i].count; c++)
			fprintf(out, "%s%g%s", c ? ", " : "  classes' weights ",
				(double)weights.parts[i].items[c],
				c == weights.parts[i].count - 1 ? "\n" : "");
	run_class_weights_free(&weights);
}

static void print_sample(size_t i)
{
	struct run_file *run;
	struct model *model;
	struct target_kind kind;
	struct err err = {0};
	char *text =
		mem_printf("{'model': {%s}, %s}", models[samples[i].model][1], samples[i].text);

	assert_non_null(text);
	for (char *c = text; *c; c++)
		if (*c == '\'')
			*c = '"';
	fprintf(out, "%s: %s =>", models[samples[i].model][0], samples[i].text);
	if (run_file_parse(&run, "run.json", text, strlen(text), 0, NULL, &support_run_checks,
			   &err) != ST_OK) {
		fprintf(out, " %s\n", err.text);
		mem_free(text);
		return;
	}
	model = run_sample_model_of(run, NULL);
	if (run_check_compile(run, &err) != ST_OK)
		fprintf(out, " check: %s;", err.text);
	if (run_targets(&kind, run, "compile", model, &err) != ST_OK) {
		fprintf(out, " targets: %s\n", err.text);
	} else {
		fprintf(out, " ");
		print_kind(&kind);
	}
	if (samples[i].classes)
		kind.classes = samples[i].classes;
	kind.weights = samples[i].weights;
	if (err.status == ST_OK) {
		print_measure(run, model, &kind);
		print_weights(run, model, &kind);
	}
	model_free(model);
	run_file_free(run);
	mem_free(text);
}

static void print_all(FILE *to)
{
	out = to;
	for (size_t i = 0; i < ARRAY_LEN(samples); i++)
		print_sample(i);
}

static void test_nothing_that_is_said_of_outputs_changes_unseen(void **state)
{
	(void)state;
	support_check_golden("run_outputs.txt", print_all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_that_is_said_of_outputs_changes_unseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
