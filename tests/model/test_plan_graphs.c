/*
 * Runs planned whole: the graph that each becomes, its split into stages and its figures are those
 * of before, in tests/golden/plan_graphs.txt, which UPDATE_GOLDEN=1 rewrites. Of a graph it has the
 * number of lines of each phase and their digest.
 */
#include "model/plan/plan_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "support/lowered.h"
#include "support/run_checks.h"
#include "support/support.h"

/* clang-format off */
#define LAYER(class_name, config) "{'class_name': '" class_name "', 'config': {" config "}}"
#define INPUT(shape) LAYER("InputLayer", "'batch_input_shape': " shape) ", "
#define DENSE(more)  LAYER("Dense", "'units': 3" more)
#define NODE(class_name, name, config, from)                                                       \
	", {'class_name': '" class_name "', 'config': {'name': '" name "'" config                  \
	"}, 'inbound_nodes': [[" from "]]}"
#define FROM(name) "['" name "', 0, 0, {}]"

#define SEQUENTIAL(layers)                                                                         \
	"'class_name': 'Sequential', 'config': {'name': 's', 'layers': [" layers "]}"
#define FUNCTIONAL(shape, layers, outputs)                                                         \
	"'class_name': 'Functional', 'config': {'name': 'f', 'layers': [{'class_name': "           \
	"'InputLayer', 'config': {'name': 'x', 'batch_input_shape': " shape "}, "                  \
	"'inbound_nodes': []}" layers "], 'input_layers': [['x', 0, 0]], "                         \
	"'output_layers': [" outputs "]}"

#define TWO_DENSE SEQUENTIAL(INPUT("[null, 5]") DENSE(", 'activation': 'relu'") ", " DENSE(""))
#define EMBEDDING "'input_dim': 9, 'output_dim': 4, 'mask_zero': true"
#define WORDS     LAYER("Embedding", EMBEDDING) ", "
#define OUTPUTS                                                                                    \
	FUNCTIONAL("[null, 6]",                                                                    \
		   NODE("Embedding", "e", ", " EMBEDDING, FROM("x"))                               \
		   NODE("LSTM", "l", ", 'units': 3, 'return_sequences': true", FROM("e"))          \
		   NODE("Dense", "a", ", 'units': 7, 'activation': 'softmax'", FROM("l"))          \
		   NODE("GRU", "g", ", 'units': 2", FROM("l"))                                     \
		   NODE("Dense", "b", ", 'units': 5, 'activation': 'sigmoid'", FROM("g"))          \
		   NODE("Dense", "c", ", 'units': 2", FROM("g")),                                  \
		   "['a', 0, 0], ['b', 0, 0], ['c', 0, 0]")
#define TWICE                                                                                      \
	FUNCTIONAL("[null, 4]",                                                                    \
		   ", {'class_name': 'Dense', 'config': {'name': 'd', 'units': 4, 'activation': "  \
		   "'tanh'}, 'inbound_nodes': [[" FROM("x") "], [" FROM("d") "]]}"                 \
		   NODE("Add", "sum", "", FROM("x") ", ['d', 1, 0, {}]")                           \
		   NODE("Dense", "o", ", 'units': 3", FROM("sum")), "['o', 0, 0]")
#define IMAGES                                                                                     \
	SEQUENTIAL(INPUT("[null, 8, 8, 4]")                                                        \
		   LAYER("Conv2D", "'filters': 6, 'kernel_size': 3, 'padding': 'same'") ", "       \
		   LAYER("BatchNormalization", "") ", "                                            \
		   LAYER("Activation", "'activation': 'relu'") ", "                                \
		   LAYER("MaxPooling2D", "") ", " LAYER("DepthwiseConv2D", "'kernel_size': 3")     \
		   ", " LAYER("BatchNormalization", "'scale': false") ", "                         \
		   LAYER("Dropout", "'rate': 0.5") ", " LAYER("Flatten", "") ", " DENSE(""))
#define FED_OUT(queue)                                                                             \
	SEQUENTIAL(INPUT("[null, 5]") DENSE("") ", " LAYER("MaybeOutfeed", queue ", "              \
			 "'final_outfeed': false") ", " DENSE("") ", "                             \
		   LAYER("MaybeOutfeed", queue ", 'name': 'second', 'final_outfeed': false") ", "  \
		   DENSE("") ", " LAYER("MaybeOutfeed", queue ", 'name': 'last'") ", " DENSE(""))

#define FIT          "'fit': {'steps_per_epoch': 24}"
#define EVALUATE     "'fit': null, 'evaluate': {'steps': 24}"
#define PREDICT      "'fit': null, 'predict': {'steps': 24}"
#define COMPILE(more) "'compile': {'steps_per_execution': 24, " more "}, "
#define MSE          COMPILE("'loss': 'mse'")
#define HALF         COMPILE("'loss': 'mse', 'dtype_policy': 'mixed_float16'")
#define OPTIMIZER(class_name, config)                                                              \
	COMPILE("'loss': 'mse', 'optimizer': {'class_name': '" class_name "', 'config': {" config "}}")
#define SPARSE(class)                                                                              \
	"{'class_name': 'SparseCategoricalCrossentropy', 'config': {'ignore_class': " class "}}"
#define PIPELINE(ipus, stages)                                                                     \
	", 'ipu': {'auto_select_ipus': " ipus "}, 'gradient_accumulation': {'steps_per_replica': " \
	"12}, 'pipeline': {'stages': " stages "}"
#define SAMPLE_SPLIT 0 /* the sample whose allocations fail */
#define ACCUMULATE(more) ", 'gradient_accumulation': {'steps_per_replica': 2" more "}"

/* ' stands for a quotation mark. */
static const struct {
	const char *name, *model, *run, *data;
} samples[] = {
	{"fed out to one queue, split", FED_OUT("'queue': 'q'"), MSE FIT PIPELINE("2", "'auto'"), ""},
	{"two dense layers", TWO_DENSE, MSE FIT, ""},
	{"three outputs, weighted and masked", OUTPUTS,
	 COMPILE("'loss': [" SPARSE("2") ", 'sparse_categorical_crossentropy', 'mse'], 'metrics': "
		 "[['accuracy'], null, ['mae']], 'weighted_metrics': [null, ['accuracy'], null]")
	 "'fit': {'steps_per_epoch': 24, 'class_weight': {'b': {'0': 1, '1': 2}}}",
	 ", 'outputs': ['a', 'b', 'c']"},
	{"two of three outputs, padded", OUTPUTS,
	 COMPILE("'loss': {'a': " SPARSE("-1") ", 'c': 'mse'}") FIT,
	 ", 'outputs': ['c', 'a'], 'pad_remainder': true"},
	{"outputs evaluated", OUTPUTS,
	 COMPILE("'loss': 'mse', 'loss_weights': [1, 2, 3], 'metrics': ['mae']") EVALUATE,
	 ", 'outputs': ['a', 'b', 'c']"},
	{"outputs predicted", OUTPUTS, MSE PREDICT, ""},
	{"a layer called twice", TWICE, MSE FIT, ""},
	{"a layer called twice, evaluated", TWICE, MSE EVALUATE, ""},
	{"a layer called twice, in half", TWICE, HALF FIT, ""},
	{"a layer called twice, in two stages", TWICE, MSE FIT PIPELINE("2", "[0, 0, 0, 1]"), ""},
	{"a layer called twice, split", TWICE, MSE FIT PIPELINE("2", "'auto'"), ""},
	{"images", IMAGES, MSE FIT, ""},
	{"images as bytes", IMAGES, MSE FIT ", 'infeed': {'dtype': 'uint8'}", ""},
	{"images as halves, in half", IMAGES, HALF FIT ", 'infeed': {'dtype': 'float16'}", ""},
	{"images evaluated", IMAGES, MSE EVALUATE, ""},
	{"images predicted", IMAGES, MSE PREDICT, ""},
	{"images in two stages, everything elsewhere", IMAGES,
	 MSE FIT PIPELINE("4", "[0, 0, 0, 0, 1, 1, 1, 1, 1], 'offload_activations': true, "
			       "'offload_weights': true, 'offload_weight_update_variables': true, "
			       "'offload_gradient_accumulation_buffers': true"), ""},
	{"images in two stages, predicted", IMAGES,
	 MSE PREDICT PIPELINE("2", "[0, 1, 1, 1, 1, 1, 1, 1, 1]"), ""},
	{"images in two stages, evaluated, a normalisation in each", IMAGES,
	 MSE EVALUATE PIPELINE("2", "[0, 1, 1, 1, 1, 1, 1, 1, 1]"), ""},
	{"images split in three, recomputed", IMAGES,
	 MSE FIT ", 'ipu': {'auto_select_ipus': 4, 'allow_recompute': true}, "
	 "'gradient_accumulation': {'steps_per_replica': 12, 'dtype': 'float16', 'reduction': "
	 "'mean'}, 'pipeline': {'stages': 'auto', 'auto_stages': 3, 'schedule': 'Grouped'}", ""},
	{"images in three stages, the backward pass split", IMAGES,
	 MSE FIT PIPELINE("4", "[0, 0, 0, 1, 1, 1, 1, 2, 2], 'schedule': 'zb-h1'"), ""},
	{"images in four stages of two at a link", IMAGES,
	 MSE FIT ", 'ipu': {'auto_select_ipus': 4, 'target': 'ipu1'}, 'gradient_accumulation': "
	 "{'steps_per_replica': 8}, 'pipeline': {'stages': [0, 0, 0, 1, 1, 1, 2, 2, 3]}", ""},
	{"penalties", SEQUENTIAL(INPUT("[null, 5]") DENSE(", 'kernel_regularizer': 'l2'") ", "
				 DENSE(", 'bias_regularizer': 'l1', 'kernel_regularizer': 'l1_l2', "
				       "'trainable': false")), MSE FIT, ""},
	{"LAMB", TWO_DENSE, OPTIMIZER("LAMB", "'weight_decay_rate': 0.1") FIT, ""},
	{"AdamW, clipped by the norm of all gradients", TWO_DENSE,
	 OPTIMIZER("AdamW", "'global_clipnorm': 1, 'weight_decay': 0.1, 'amsgrad': true")
	 FIT ACCUMULATE(", 'reduction': 'mean'"), ""},
	{"SGD, clipped by the norm of each gradient", TWO_DENSE,
	 OPTIMIZER("SGD", "'clipnorm': 1, 'momentum': 0.9, 'nesterov': true")
	 FIT ACCUMULATE(", 'reduction': 'running_mean', 'dtype': 'float16'"), ""},
	{"a scaled loss", TWO_DENSE,
	 COMPILE("'loss': 'mse', 'dtype_policy': 'mixed_float16', 'optimizer': {'class_name': "
		 "'LossScaleOptimizer', 'config': {'inner_optimizer': {'class_name': 'Adam', "
		 "'config': {}}}}") FIT, ""},
	{"words in both directions, with a state that stays",
	 SEQUENTIAL(LAYER("InputLayer", "'batch_input_shape': [4, 6]") ", " WORDS
		    LAYER("Bidirectional", "'layer': " LAYER("LSTM", "'units': 3, "
							     "'return_sequences': true")) ", "
		    LAYER("SimpleRNN", "'units': 2, 'stateful': true, 'return_sequences': true")
		    ", " LAYER("GlobalAveragePooling1D", "") ", " DENSE("")),
	 MSE FIT, ", 'shuffle': false"},
	{"words normalised under a mask",
	 SEQUENTIAL(INPUT("[null, 6]") WORDS LAYER("BatchNormalization", "") ", "
		    LAYER("LayerNormalization", "") ", " LAYER("GRU", "'units': 3") ", "
		    DENSE(", 'activation': 'softmax'")),
	 COMPILE("'loss': 'sparse_categorical_crossentropy', 'metrics': ['accuracy']") FIT
	 ", 'evaluate': {'steps': 24}", ""},
	{"attention under a mask",
	 FUNCTIONAL("[null, 6]", NODE("Embedding", "e", ", " EMBEDDING, FROM("x"))
		    NODE("MultiHeadAttention", "m", ", 'num_heads': 2, 'key_dim': 3",
			 "['e', 0, 0, {'value': ['e', 0, 0]}]")
		    NODE("GlobalMaxPooling1D", "p", "", FROM("m"))
		    NODE("Dense", "o", ", 'units': 3", FROM("p")), "['o', 0, 0]"), MSE FIT, ""},
	{"noise of every kind",
	 SEQUENTIAL(INPUT("[null, 6, 4]") LAYER("GaussianNoise", "'stddev': 0.5") ", "
		    LAYER("GaussianDropout", "'rate': 0.5") ", " LAYER("AlphaDropout", "'rate': 0.5")
		    ", " LAYER("SpatialDropout1D", "'rate': 0.5") ", " LAYER("Dropout", "'rate': 0")
		    ", " LAYER("Conv1D",
		    "'filters': 3, 'kernel_size': 2, 'padding': 'same', 'activation': 'gelu'") ", "
		    LAYER("ZeroPadding1D", "'padding': 2") ", " LAYER("Cropping1D", "'cropping': 1")
		    ", " LAYER("UpSampling1D", "'size': 3")),
	 MSE FIT, ""},
	{"fed out", FED_OUT("'queue': 'q'"),
	 MSE FIT ", 'outfeed': {'activations': ['dense'], 'gradients': []}", ""},
	{"fed out to the last layer's, split", FED_OUT("'queue': null"),
	 MSE FIT PIPELINE("2", "'auto'"), ""},
	{"too much for four tiles",
	 SEQUENTIAL(INPUT("[null, 3000]") LAYER("Dense", "'units': 3000") ", " DENSE("")),
	 MSE FIT ", 'ipu': {'auto_select_ipus': 2, 'tiles_per_ipu': 4}, 'gradient_accumulation': "
	 "{'steps_per_replica': 12}, 'pipeline': {'stages': [0, 1]}", ""},
	{"no tiles left", TWO_DENSE,
	 MSE FIT ", 'ipu': {'auto_select_ipus': 2, 'io_tiles': {'num_io_tiles': 1472}}, "
	 "'gradient_accumulation': {'steps_per_replica': 12}, 'pipeline': {'stages': 'auto'}", ""},
	{"more stages than layers", TWO_DENSE,
	 MSE FIT PIPELINE("4", "'auto', 'auto_stages': 4"), ""},
	{"no steps of a training", TWO_DENSE, MSE "'evaluate': null", ""},
	{"no steps of an evaluation", TWO_DENSE,
	 MSE "'fit': {'steps_per_epoch': 8, 'validation': true}", ""},
	{"no steps of a prediction", TWO_DENSE, MSE FIT ", 'predict': {}", ""},
	{"names of inputs that are not there", TWO_DENSE, MSE FIT, ", 'inputs': ['x']"},
	{"shapes that nobody says", SEQUENTIAL(DENSE("")), MSE FIT, ""},
	{"a kind of IPU that is not there", TWO_DENSE, MSE FIT ", 'ipu': {'target': 'ipu7'}", ""},
};
/* clang-format on */

static FILE *out;

static void add_node(struct str *text, const struct ipu_graph *graph, const struct ipu_node *node)
{
	const struct layer_op op = {.op = node->op};
	char line[LOWERED_TEXT];

	lowered_text(&op, line);
	str_addf(text, "  %c%d %s", node->op.phase, node->op.stage, line);
	for (int r = 0; r < node->read_count; r++)
		str_addf(text, " %s", graph->tensors[node->reads[r]].name);
	str_add(text, " >");
	for (int w = 0; w < node->write_count; w++)
		str_addf(text, " %s", graph->tensors[node->writes[w]].name);
	str_addf(text, " [%s%s%s%s%s %g %s]\n", node->op.layer ? node->op.layer : "-",
		 node->function ? " function" : "", node->training_only ? " training" : "",
		 node->measure_only ? " measured" : "", node->op.trained ? " trained" : "",
		 node->options.available_memory_proportion, ipu_dtype_name(node->options.partials));
}

static void print_text(const char *what, int count, struct str *text)
{
	fprintf(out, "  %d %s %016" PRIx64, count, what,
		support_digest_text(SUPPORT_DIGEST, str_peek(text), text->length));
	str_free(text);
}

static void print_graph(const struct ipu_graph *graph)
{
	struct str text = {0};

	for (const char *phase = "FBWU"; *phase; phase++) {
		int count = 0;

		for (int n = 0; n < graph->node_count; n++)
			if (graph->nodes[n].op.phase == *phase) {
				add_node(&text, graph, &graph->nodes[n]);
				count++;
			}
		if (count)
			print_text((char[]){*phase, '\0'}, count, &text);
	}
	for (int t = 0; t < graph->tensor_count; t++) {
		const struct ipu_tensor *tensor = &graph->tensors[t];

		str_addf(&text, "  %s of %s, %s, %s, stage %d:", tensor->name,
			 tensor->layer ? tensor->layer : "-", ipu_tensor_kind_name(tensor->kind),
			 ipu_dtype_name(tensor->dtype), tensor->stage);
		for (int d = 0; d < tensor->ndim; d++)
			str_addf(&text, " %" PRId64, tensor->dim[d]);
		str_add(&text, "\n");
	}
	print_text("tensors", graph->tensor_count, &text);
}

static void print_split(const struct partition_split *split, const char *what)
{
	struct str text = {0};

	if (!split)
		return;
	fprintf(out, "  %s%s", what, split->best ? " best" : "");
	for (int s = 0; s < split->partition->stages; s++)
		fprintf(out, "; %s %" PRId64 " %" PRId64, split->first_layer[s],
			split->partition->stage[s].cycles,
			(int64_t)split->partition->stage[s].memory_bytes);
	partition_split_describe(split, what, &text);
	fprintf(out, "; %.6g %.6g\n%s", split->slowest_us, split->step_us, str_peek(&text));
	str_free(&text);
}

static void print_figures(const struct plan_run *plan)
{
	struct plan_figures f;

	plan_figures_get(&f, plan);
	fprintf(out,
		"\n  mode %d, %" PRId64 " cycles a step, %" PRId64 " flops, %" PRId64
		" bytes, %.6g us an update, idle %.6g, %" PRId64 " bytes of report\n",
		(int)f.mode, f.cycles_per_step, f.flops_per_step, f.memory_bytes_per_ipu,
		f.update_us, f.idle_fraction, plan_forecast_report(plan, 0));
}

static void print_bubbles(const struct plan_run *plan)
{
	for (int mode = 0; mode < RUN_MODES; mode++) {
		const struct plan_bubble *bubble = &plan->program[mode].bubble;

		if (plan->program[mode].schedule && plan->layout->stages > 1)
			fprintf(out,
				"  mode %d: %.6g of %" PRId64 " ns are idle, in theory %.6g of "
				"%" PRId64 "\n",
				mode, bubble->measured.idle_fraction,
				(int64_t)bubble->measured.makespan_ns, bubble->theory.idle_fraction,
				(int64_t)bubble->theory.makespan_ns);
	}
}

/* Plan sample @i; @plan is the caller's (plan_run_fini()). */
static enum status plan_sample(struct plan_run *plan, size_t i, struct err *err)
{
	char *text = mem_printf("{'model': {%s}, %s, 'data': {'name': 'npz', 'batch_size': 4%s}}",
				samples[i].model, samples[i].run, samples[i].data);
	struct run_data data;

	*plan = (struct plan_run){0};
	*err = (struct err){0};
	if (!text)
		return err_nomem(err);
	for (char *c = text; *c; c++)
		if (*c == '\'')
			*c = '"';
	if (run_file_parse(&plan->run, "run.json", text, strlen(text), 0, NULL, &support_run_checks,
			   err) == ST_OK &&
	    plan_run_data(&data, plan->run, err) == ST_OK &&
	    plan_run_build(plan, &data, true, err) == ST_OK)
		plan_run_compile(plan, &data, err);
	mem_free(text);
	return err->status;
}

static void print_sample(FILE *to, size_t i)
{
	struct plan_run plan;
	struct err err;

	out = to;
	fprintf(out, "%s\n", samples[i].name);
	if (plan_sample(&plan, i, &err) == ST_OK) {
		print_graph(&plan.device->graph);
		print_figures(&plan);
		print_bubbles(&plan);
	} else {
		fprintf(out, "  %s\n", err.text);
	}
	print_split(plan.split, "split");
	print_split(plan.best, "best");
	plan_run_fini(&plan);
}

static void print_all(FILE *to)
{
	for (size_t i = 0; i < ARRAY_LEN(samples); i++)
		print_sample(to, i);
}

static void test_nothing_that_is_planned_changes_unseen(void **state)
{
	(void)state;
	support_check_golden("plan_graphs.txt", print_all);
}

/* Some of the allocations: each by itself would take long. */
static void test_a_plan_for_which_memory_is_lacking_says_so(void **state)
{
	bool failed = true;

	(void)state;
	for (long n = 0; failed; n += 1 + n / 16) {
		struct plan_run plan;
		struct err err;
		enum status status;

		support_fail_alloc(n);
		status = plan_sample(&plan, SAMPLE_SPLIT, &err);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		/* An arena that is refused a large block may do with a small one. */
		assert_true(status == ST_OK || (failed && status == ST_NOMEM));
		assert_int_equal(status, err.status);
		plan_run_fini(&plan);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_plan_for_which_memory_is_lacking_says_so),
		cmocka_unit_test(test_nothing_that_is_planned_changes_unseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
