/*
 * Small models' graphs by hand: which tensors operations read and write, in which phase and type.
 */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "support/lowering_check.h"
#include "support/support.h"

static const struct model_shape vector = {1, {6}};

#define RESIDUAL                                                                                   \
	"{'model': {'class_name': 'Functional', 'config': {'name': 'm', 'layers': ["               \
	"{'class_name': 'InputLayer', 'name': 'i', 'config': {'batch_input_shape': [null, 6], "    \
	"'name': 'i'}, 'inbound_nodes': []},"                                                      \
	"{'class_name': 'Dense', 'name': 'a', 'config': {'name': 'a', 'units': 6}, "               \
	"'inbound_nodes': [[['i', 0, 0, {}]]]},"                                                   \
	"{'class_name': 'Dense', 'name': 'b', 'config': {'name': 'b', 'units': 6, 'activation': "  \
	"'relu'}, 'inbound_nodes': [[['a', 0, 0, {}]]]},"                                          \
	"{'class_name': 'Add', 'name': 's', 'config': {'name': 's'}, 'inbound_nodes': "            \
	"[[['a', 0, 0, {}], ['b', 0, 0, {}]]]},"                                                   \
	"{'class_name': 'Dropout', 'name': 'd', 'config': {'name': 'd', 'rate': 0.5}, "            \
	"'inbound_nodes': [[['s', 0, 0, {}]]]},"                                                   \
	"{'class_name': 'Dense', 'name': 'o', 'config': {'name': 'o', 'units': 5, 'activation': "  \
	"'softmax'}, 'inbound_nodes': [[['d', 0, 0, {}]]]}], "                                     \
	"'input_layers': [['i', 0, 0]], 'output_layers': [['o', 0, 0]]}}, "                        \
	"'compile': {'loss': 'sparse_categorical_crossentropy', 'metrics': ['accuracy']%s}, "      \
	"'data': {'name': 'mnist', 'batch_size': 4}%s}"

static void open_residual(struct lowered *lowered, const char *compile, const char *more)
{
	char text[4096];

	snprintf(text, sizeof(text), RESIDUAL, compile, more);
	lowered_open_text(lowered, text, &vector);
	lowered_check_graph(lowered);
}

static void test_gradients_of_an_output_that_several_read_are_added(void **state)
{
	struct lowered lowered;
	const struct ipu_graph *graph = &lowered.graph;

	(void)state;
	open_residual(&lowered, "", "");
	lowered_check_node(graph, "a/MatMul: infeed a/kernel -> a/output");
	lowered_check_node(graph, "s/AddV2: a/output b/output -> s/output");
	lowered_check_node(graph, "o/MatMul: d/output o/kernel -> o/between");
	lowered_check_node(graph, "o/Softmax: o/between -> o/output");
	lowered_check_node(graph,
			   "loss/sparse_categorical_crossentropy: o/between infeed/labels -> "
			   "loss/sparse_categorical_crossentropy/items "
			   "loss/sparse_categorical_crossentropy/backprop");
	lowered_check_node(graph, "loss/sparse_categorical_crossentropy/Mean: "
				  "loss/sparse_categorical_crossentropy/items -> "
				  "loss/sparse_categorical_crossentropy/Mean");
	lowered_check_node(graph, "loss/div_no_nan: loss/total loss/count -> loss");
	lowered_check_node(graph,
			   "metrics/accuracy: o/output infeed/labels -> metrics/accuracy/items");
	lowered_check_node(graph, "gradients/loss/sparse_categorical_crossentropy/mul: "
				  "loss/sparse_categorical_crossentropy/backprop -> o/gradient");
	lowered_check_node(graph, "o/MatMul/GradX: o/gradient o/kernel -> d/gradient");
	lowered_check_node(graph, "d/dropout/Mul/Grad: d/random d/gradient -> s/gradient");
	/* The sum's gradient is that of both: b does not work on it in place. */
	lowered_check_node(graph, "b/Relu/Grad: b/output s/gradient -> b/gradient_before");
	lowered_check_node(graph, "b/MatMul/GradW: a/output b/gradient_before -> b/kernel_grad");
	lowered_check_node(graph,
			   "b/MatMul/GradX: b/gradient_before b/kernel -> a/gradient_from_b");
	lowered_check_node(graph, "gradients/AddN: s/gradient a/gradient_from_b -> a/gradient");
	lowered_check_node(graph, "a/MatMul/GradW: infeed a/gradient -> a/kernel_grad");
	lowered_check_node(graph, "SGD/a/kernel: a/kernel_grad a/kernel -> a/kernel");
	assert_int_equal(lowered_nodes(graph, "a/MatMul/GradX"), 0);
	assert_int_equal(lowered_find(graph, "gradients/AddN")->op.elements.operands, 2);
	assert_int_equal(lowered_find(graph, "SGD/a/kernel")->op.elements.times[IPU_FN_SCALED_ADD],
			 1);
	lowered_close(&lowered);
}

static void test_evaluation_does_without_what_is_trainings(void **state)
{
	static const struct {
		const char *name;
		bool evaluated, predicted;
	} rows[] = {
		{"a/MatMul", true, true},
		{"o/Softmax", true, true},
		{"d/dropout/RandomUniform", false, false},
		{"d/dropout/Mul", false, false},
		{"loss/sparse_categorical_crossentropy", true, false},
		{"loss/sparse_categorical_crossentropy/Mean", true, false},
		{"metrics/accuracy/Mean", true, false},
	};
	struct lowered lowered;

	(void)state;
	open_residual(&lowered, "", "");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct ipu_node *node = lowered_find(&lowered.graph, rows[i].name);

		assert_int_equal(ipu_node_forward(node, false), rows[i].evaluated);
		assert_int_equal(ipu_node_forward(node, true), rows[i].predicted);
	}
	lowered_close(&lowered);

	open_residual(&lowered, "", ", 'fit': null, 'evaluate': {}");
	assert_int_equal(lowered_nodes(&lowered.graph, "dropout"), 0);
	assert_int_equal(lowered_nodes(&lowered.graph, "backprop"), 0);
	lowered_check_node(&lowered.graph, "o/MatMul: s/output o/kernel -> o/output");
	lowered_check_node(&lowered.graph,
			   "loss/sparse_categorical_crossentropy: o/output infeed/labels -> "
			   "loss/sparse_categorical_crossentropy/items");
	lowered_close(&lowered);

	open_residual(&lowered, "", ", 'fit': null, 'predict': {}");
	assert_int_equal(lowered_tensors(&lowered.graph, IPU_TENSOR_LABELS), 0);
	assert_int_equal(lowered_tensors(&lowered.graph, IPU_TENSOR_RESULT), 0);
	lowered_close(&lowered);
}

/* Where nothing is trained, a normalisation's factors are in the weights before it. */
static void test_an_inference_has_normalisations_in_the_convolutions(void **state)
{
	static const char text[] =
		"{'model': {'class_name': 'Sequential', 'config': {'name': 'm', 'layers': ["
		"{'class_name': 'Conv2D', 'config': {'name': 'a', 'filters': 4, 'kernel_size': 1}},"
		"{'class_name': 'BatchNormalization', 'config': {'name': 'na'}},"
		"{'class_name': 'Conv2D', 'config': {'name': 'b', 'filters': 4, 'kernel_size': 1, "
		"'use_bias': false}},"
		"{'class_name': 'BatchNormalization', 'config': {'name': 'nb'}},"
		"{'class_name': 'Conv2D', 'config': {'name': 'c', 'filters': 4, 'kernel_size': 1, "
		"'activation': 'relu'}},"
		"{'class_name': 'BatchNormalization', 'config': {'name': 'nc'}}]}}, "
		"'compile': {'loss': 'mse'}, 'data': {'name': 'mnist', 'batch_size': 4}%s}";
	static const struct model_shape image = {3, {6, 6, 1}};
	struct lowered lowered;
	char run[2048];

	(void)state;
	snprintf(run, sizeof(run), text, ", 'fit': null, 'predict': {}");
	lowered_open_text(&lowered, run, &image);
	lowered_check_graph(&lowered);
	lowered_check_node(&lowered.graph, "b/Conv2D: a/output b/kernel -> b/output");
	assert_int_equal(lowered_nodes(&lowered.graph, "na/"), 0);
	lowered_check_node(&lowered.graph, "nb/BiasAdd: b/output nb/beta -> nb/output");
	assert_int_equal(lowered_nodes(&lowered.graph, "nb/"), 1);
	lowered_check_node(&lowered.graph, "c/Conv2D: nb/output c/kernel -> c/output");
	assert_int_equal(lowered_nodes(&lowered.graph, "nc/"), 2);
	lowered_close(&lowered);

	snprintf(run, sizeof(run), text, ", 'predict': {}");
	lowered_open_text(&lowered, run, &image);
	assert_true(lowered_nodes(&lowered.graph, "na/") > 0);
	lowered_close(&lowered);
}

static void test_mixed_float16_casts_variables_and_their_gradients(void **state)
{
	static const char pipeline[] =
		", 'ipu': {'auto_select_ipus': 2}, 'gradient_accumulation': {'steps_per_replica': "
		"4}, 'pipeline': {'stages': [0, 0, 1, 1, 1]}";
	struct lowered lowered;
	const struct ipu_graph *graph = &lowered.graph;
	const char *mixed = ", 'dtype_policy': 'mixed_float16', 'steps_per_execution': 4";

	(void)state;
	open_residual(&lowered, mixed, "");
	lowered_check_node(graph, "a/Cast: infeed -> a/Cast");
	lowered_check_node(graph, "a/kernel/Cast: a/kernel -> a/kernel/Cast");
	lowered_check_node(graph, "a/MatMul: a/Cast a/kernel/Cast -> a/output");
	assert_int_equal(lowered_find(graph, "a/MatMul")->op.dtype, IPU_FLOAT16);
	lowered_check_node(graph, "loss/Cast: o/between -> loss/Cast");
	lowered_check_node(graph,
			   "b/MatMul/GradX: b/gradient_before b/kernel/Cast -> a/gradient_from_b");
	lowered_check_node(graph,
			   "b/MatMul/GradW: a/output b/gradient_before -> b/kernel_grad/half");
	lowered_check_node(graph, "b/kernel_grad/Cast: b/kernel_grad/half -> b/kernel_grad");
	assert_int_equal(lowered_find(graph, "SGD/a/kernel")->op.dtype, IPU_FLOAT32);
	/* Input, three kernels and biases, their gradients, and what is measured. */
	assert_int_equal(lowered_nodes(graph, "/Cast"), 1 + 6 + 6 + 2);
	lowered_close(&lowered);

	/* Nothing of a variable goes through a pipeline's FIFOs. */
	open_residual(&lowered, mixed, pipeline);
	lowered_check_node(
		graph, "b/MatMul/GradX: b/gradient_before b/kernel/Cast_1 -> a/gradient_from_b");
	assert_int_equal(lowered_nodes(graph, "/Cast"), 1 + 6 + 2 + 6 + 2);
	lowered_close(&lowered);
}

static void test_what_is_fed_out_is_a_result(void **state)
{
	struct lowered lowered;

	(void)state;
	lowered_open_example(&lowered, "inspect-tensors.json");
	assert_true(lowered_nodes(&lowered.graph, "/outfeed") > 2);
	for (int n = 0; n < lowered.graph.node_count; n++) {
		const struct ipu_node *node = &lowered.graph.nodes[n];

		if (!strstr(node->op.name, "/outfeed"))
			continue;
		assert_int_equal(node->op.kind, IPU_OP_COPY);
		assert_int_equal(lowered.graph.tensors[node->writes[0]].kind, IPU_TENSOR_RESULT);
		assert_int_equal(node->op.phase, strstr(node->op.name, "_grad") ? 'U' : 'F');
	}
	lowered_close(&lowered);

	lowered_open_example(&lowered, "inspect-tensors.json --outfeed-pre-accumulated-gradients");
	for (int n = 0; n < lowered.graph.node_count; n++)
		if (strstr(lowered.graph.nodes[n].op.name, "_grad/outfeed"))
			assert_int_equal(lowered.graph.nodes[n].op.phase, 'B');
	lowered_close(&lowered);
}

static void test_penalties_are_of_every_micro_batch(void **state)
{
	static const char text[] =
		"{'model': {'class_name': 'Sequential', 'config': {'name': 'm', 'layers': ["
		"{'class_name': 'Dense', 'config': {'name': 'a', 'units': 5, 'kernel_regularizer': "
		"{'class_name': 'L1L2', 'config': {'l1': 0.1, 'l2': 0.01}}}}]}}, "
		"'compile': {'loss': 'mse'}, 'data': {'name': 'mnist', 'one_hot': true}}";
	struct lowered lowered;

	(void)state;
	lowered_open_text(&lowered, text, &vector);
	lowered_check_graph(&lowered);
	lowered_check_node(&lowered.graph,
			   "a/kernel/Regularizer/Abs: a/kernel -> a/kernel/Regularizer/each");
	lowered_check_node(&lowered.graph, "a/kernel/Regularizer/Sum: a/kernel/Regularizer/each -> "
					   "a/kernel/Regularizer/result");
	lowered_check_node(&lowered.graph,
			   "a/kernel/Regularizer/Grad: a/kernel_grad a/kernel -> a/kernel_grad");
	assert_int_equal(lowered_find(&lowered.graph, "loss/mean_squared_error")->op.rows.work,
			 IPU_ROWS_ERROR);
	lowered_close(&lowered);
}

/* A target of zeros and a one has its class where the one is; an error is of each value. */
static void test_a_metric_of_classes_looks_for_the_one_of_a_target(void **state)
{
	static const char text[] =
		"{'model': {'class_name': 'Sequential', 'config': {'name': 'm', 'layers': ["
		"{'class_name': 'Dense', 'config': {'name': 'o', 'units': 5}}]}}, "
		"'compile': {'loss': 'mse', 'metrics': ['categorical_accuracy', 'mae']}, "
		"'data': {'name': 'mnist', 'one_hot': true, 'batch_size': 4}}";
	struct lowered lowered;
	const struct ipu_op *op;

	(void)state;
	lowered_open_text(&lowered, text, &vector);
	lowered_check_graph(&lowered);
	lowered_check_node(&lowered.graph, "metrics/categorical_accuracy/ArgMax: infeed/labels -> "
					   "metrics/categorical_accuracy/label");
	lowered_check_node(&lowered.graph, "metrics/categorical_accuracy: o/output "
					   "metrics/categorical_accuracy/label -> "
					   "metrics/categorical_accuracy/items");
	op = &lowered_find(&lowered.graph, "metrics/categorical_accuracy/ArgMax")->op;
	assert_int_equal(op->rows.work, IPU_ROWS_ARGMAX);
	assert_int_equal(op->rows.rows, 4);
	assert_int_equal(op->rows.columns, 5);
	assert_int_equal(lowered_nodes(&lowered.graph, "/ArgMax"), 1);
	lowered_close(&lowered);
}

/* An infeed moves rows of the last axis, or single values where an item is one. */
static void test_an_item_may_be_one_number(void **state)
{
	static const char text[] =
		"{'model': {'class_name': 'Sequential', 'config': {'name': 'm', 'layers': ["
		"{'class_name': 'Embedding', 'config': {'name': 'e', 'input_dim': 7, "
		"'output_dim': 3}}]}}, "
		"'compile': {'loss': 'mse'}, 'data': {'name': 'mnist', 'batch_size': 4}}";
	static const struct model_shape number = {0};
	struct lowered lowered;
	const struct ipu_op *op;

	(void)state;
	lowered_open_text(&lowered, text, &number);
	op = &lowered_find(&lowered.graph, "infeed/arg0")->op;
	assert_int_equal(op->copy.count, 4);
	assert_int_equal(op->copy.atom, 1);
	lowered_close(&lowered);
	open_residual(&lowered, "", "");
	op = &lowered_find(&lowered.graph, "infeed/arg0")->op;
	assert_int_equal(op->copy.count, 4 * 6);
	assert_int_equal(op->copy.atom, 6);
	lowered_close(&lowered);
}

static void test_options_and_layout_are_the_runs(void **state)
{
	struct lowered lowered;
	const struct ipu_layout *layout = &lowered.graph.layout;

	(void)state;
	lowered_open_example(
		&lowered,
		"keras-mnist.json --use-ipu --pipelining "
		"--pipeline.forward_propagation_stages_poplar_options "
		"[{\"convolution\":{\"availableMemoryProportion\":0.2,\"partialsType\":\"half\"}},"
		"null] --ipu.allow_recompute true --pipeline.offload_weight_update_variables true "
		"--pipeline.accumulate_outfeed true --infeed.prefetch_depth 5");
	for (int n = 0; n < lowered.graph.node_count; n++) {
		const struct ipu_node *node = &lowered.graph.nodes[n];
		const bool said = node->op.kind == IPU_OP_CONV && node->op.phase == 'F' &&
				  node->op.stage == 0;

		assert_close(node->options.available_memory_proportion, said ? 0.2 : 0.6, 1e-12);
		assert_int_equal(node->options.partials, said ? IPU_FLOAT16 : IPU_FLOAT32);
	}
	assert_int_equal(layout->batch, 80);
	assert_int_equal(layout->stages, 2);
	assert_int_equal(layout->accumulation, 8);
	assert_int_equal(layout->recompute, IPU_RECOMPUTE_THEN_BACKPROPAGATE);
	assert_true(layout->offload_optimizer_state && layout->accumulate_outfeed);
	assert_false(layout->offload_activations || layout->offload_weights);
	assert_int_equal(layout->prefetch_depth, 5);
	lowered_close(&lowered);
}

static void test_no_failed_allocation_leaves_anything(void **state)
{
	struct lowered lowered;
	bool failed = true;

	(void)state;
	open_residual(&lowered, ", 'dtype_policy': 'mixed_float16'", "");
	for (long n = 0; failed; n++) {
		struct ipu_graph graph;
		struct arena arena;
		struct err err = {0};
		enum status status;

		assert_int_equal(arena_init(&arena, 0), 0);
		support_fail_alloc(n);
		status = lower_model(&graph, &lowered.from, &arena, &err);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		/* An arena that is refused a large block may do with a small one. */
		assert_true(status == ST_OK || (failed && status == ST_NOMEM));
		if (status == ST_OK) {
			assert_int_equal(graph.node_count, lowered.graph.node_count);
			assert_int_equal(graph.tensor_count, lowered.graph.tensor_count);
		}
		arena_fini(&arena);
	}
	lowered_close(&lowered);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gradients_of_an_output_that_several_read_are_added),
		cmocka_unit_test(test_evaluation_does_without_what_is_trainings),
		cmocka_unit_test(test_an_inference_has_normalisations_in_the_convolutions),
		cmocka_unit_test(test_mixed_float16_casts_variables_and_their_gradients),
		cmocka_unit_test(test_what_is_fed_out_is_a_result),
		cmocka_unit_test(test_penalties_are_of_every_micro_batch),
		cmocka_unit_test(test_a_metric_of_classes_looks_for_the_one_of_a_target),
		cmocka_unit_test(test_an_item_may_be_one_number),
		cmocka_unit_test(test_options_and_layout_are_the_runs),
		cmocka_unit_test(test_no_failed_allocation_leaves_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
