/*
 * The graph that a model is lowered to: what is read was written, gradients arrive where they are
 * wanted, and stages have what is theirs.
 */
#include "trainer/train_lower.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "support/lowering.h"
#include "support/math.h"

#define TEXT 32768

/* --- what must hold of every graph ---------------------------------------------------------------
 */

struct uses {
	int written, made, read; /* nodes; made: written without being read */
	int first_writer;
};

static bool lists(const int *list, int count, int tensor)
{
	for (int i = 0; i < count; i++)
		if (list[i] == tensor)
			return true;
	return false;
}

static const char *node_name(const struct ipu_graph *graph, int node)
{
	return graph->nodes[node].op.name;
}

/* Nodes in the order in which one micro-batch and the update after it run them. */
static int *order_of(const struct ipu_graph *graph)
{
	int *order = mem_calloc((size_t)graph->node_count + 1, sizeof(*order)), count = 0;
	const int stages = graph->layout.stages;

	assert_non_null(order);
	for (int pass = 0; pass < 3; pass++)
		for (int s = 0; s < stages; s++)
			for (int n = 0; n < graph->node_count; n++)
				if (ipu_node_in(&graph->nodes[n], pass == 1 ? stages - 1 - s : s,
						"FBU"[pass]))
					order[count++] = n;
	assert_int_equal(count, graph->node_count);
	return order;
}

static void check_stage_of_read(const struct ipu_graph *graph, int n, int t)
{
	const struct ipu_node *node = &graph->nodes[n];
	const struct ipu_tensor *tensor = &graph->tensors[t];

	if (tensor->stage == node->op.stage || tensor->kind == IPU_TENSOR_INPUT)
		return;
	if (node->op.phase == 'F' && tensor->stage < node->op.stage &&
	    tensor->kind == IPU_TENSOR_ACTIVATION)
		return;
	if (node->op.phase == 'B' && tensor->stage < node->op.stage &&
	    tensor->kind == IPU_TENSOR_ACTIVATION)
		return;
	if (node->op.phase == 'B' && tensor->stage > node->op.stage &&
	    tensor->kind == IPU_TENSOR_GRADIENT)
		return;
	fail_msg("%s (%c, stage %d) reads %s, a %s of stage %d", node->op.name, node->op.phase,
		 node->op.stage, tensor->name, ipu_tensor_kind_name(tensor->kind), tensor->stage);
}

static struct uses *check_operands(const struct ipu_graph *graph, const int *order)
{
	struct uses *uses = mem_calloc((size_t)graph->tensor_count + 1, sizeof(*uses));

	assert_non_null(uses);
	for (int i = 0; i < graph->node_count; i++) {
		const struct ipu_node *node = &graph->nodes[order[i]];

		for (int r = 0; r < node->read_count; r++) {
			const int t = node->reads[r];
			const enum ipu_tensor_kind kind = graph->tensors[t].kind;

			uses[t].read++;
			check_stage_of_read(graph, order[i], t);
			if (!uses[t].written && !ipu_tensor_is_variable(kind) &&
			    kind != IPU_TENSOR_INPUT && kind != IPU_TENSOR_LABELS)
				fail_msg("%s reads %s, which nobody wrote", node->op.name,
					 graph->tensors[t].name);
			if (kind == IPU_TENSOR_TEMPORARY &&
			    graph->nodes[uses[t].first_writer].op.phase != node->op.phase)
				fail_msg("%s reads a temporary of another phase", node->op.name);
		}
		for (int w = 0; w < node->write_count; w++) {
			const int t = node->writes[w];

			if (!uses[t].written++)
				uses[t].first_writer = order[i];
			uses[t].made += !lists(node->reads, node->read_count, t);
			if (graph->tensors[t].stage != node->op.stage)
				fail_msg("%s writes %s of another stage", node->op.name,
					 graph->tensors[t].name);
		}
	}
	return uses;
}

/* The model's output is read where it is measured; everything else has a reader. */
static void check_tensor(const struct ipu_graph *graph, const struct uses *uses, int t,
			 const char *output)
{
	const struct ipu_tensor *tensor = &graph->tensors[t];
	const bool variable = ipu_tensor_is_variable(tensor->kind);
	const bool given =
		tensor->kind == IPU_TENSOR_INPUT || tensor->kind == IPU_TENSOR_LABELS || variable;

	assert_true(ipu_tensor_elements(tensor) > 0);
	if (!given && uses->made != 1)
		fail_msg("%s is made %d times", tensor->name, uses->made);
	if (tensor->kind == IPU_TENSOR_RESULT)
		assert_int_equal(uses->read, 0);
	else if (!uses->read && strcmp(tensor->name, output) != 0)
		fail_msg("nobody reads %s", tensor->name);
	if (tensor->kind == IPU_TENSOR_WEIGHT_GRADIENT)
		assert_int_equal(graph->nodes[uses->first_writer].op.phase, 'B');
}

static void check_names(const struct ipu_graph *graph)
{
	for (int n = 0; n < graph->node_count; n++)
		for (int m = 0; m < n; m++)
			if (!strcmp(node_name(graph, n), node_name(graph, m)))
				fail_msg("two operations are called %s", node_name(graph, n));
	for (int t = 0; t < graph->tensor_count; t++)
		for (int u = 0; u < t; u++)
			if (!strcmp(graph->tensors[t].name, graph->tensors[u].name) &&
			    strstr(graph->tensors[t].name, "between") == NULL)
				fail_msg("two tensors are called %s", graph->tensors[t].name);
}

static void check_node_order(const struct ipu_graph *graph)
{
	static const char phases[] = "FBU";

	for (int n = 1; n < graph->node_count; n++) {
		const struct ipu_op *a = &graph->nodes[n - 1].op, *b = &graph->nodes[n].op;

		assert_true(a->stage <= b->stage);
		if (a->stage == b->stage)
			assert_true(strchr(phases, a->phase) <= strchr(phases, b->phase));
	}
}

/* Does @layer's output go into @other, on any way, or is it that layer? */
static bool comes_before(const struct model *model, const char *layer, const char *other)
{
	bool *before = mem_calloc((size_t)model->layer_count, sizeof(*before)), found = false;

	assert_non_null(before);
	for (int i = model->layer_count - 1; i >= 0; i--) {
		before[i] |= !strcmp(model->layers[i].name, other);
		for (int k = 0; before[i] && k < model->layers[i].input_count; k++)
			if (model->layers[i].inputs[k] != MODEL_INPUT)
				before[model->layers[i].inputs[k]] = true;
		found |= before[i] && !strcmp(model->layers[i].name, layer);
	}
	mem_free(before);
	return found;
}

/* What a layer has changed in place is wanted changed by those alone that come before it. */
static void check_in_place(const struct lowered *lowered, const int *order)
{
	const struct ipu_graph *graph = &lowered->graph;

	for (int i = 0; i < graph->node_count; i++) {
		const struct ipu_node *node = &graph->nodes[order[i]];

		for (int w = 0; w < node->write_count; w++) {
			const int t = node->writes[w];

			if (graph->tensors[t].kind != IPU_TENSOR_GRADIENT ||
			    !lists(node->reads, node->read_count, t))
				continue;
			for (int k = i + 1; k < graph->node_count; k++) {
				const struct ipu_node *later = &graph->nodes[order[k]];

				if (lists(later->reads, later->read_count, t) &&
				    !comes_before(lowered->model, later->op.layer, node->op.layer))
					fail_msg("%s reads what %s has changed", later->op.name,
						 node->op.name);
			}
		}
	}
}

static void check_graph(const struct lowered *lowered)
{
	const struct ipu_graph *graph = &lowered->graph;
	const struct model *model = lowered->model;
	char output[128];
	int *order = order_of(graph);
	struct uses *uses = check_operands(graph, order);

	/* Of layers that are its output's alone. */
	snprintf(output, sizeof(output), "%s/output", model->layers[model->layer_count - 1].name);
	for (int t = 0; t < graph->tensor_count; t++)
		check_tensor(graph, &uses[t], t, output);
	check_in_place(lowered, order);
	check_node_order(graph);
	check_names(graph);
	mem_free(uses);
	mem_free(order);
}

/* --- gradients -----------------------------------------------------------------------------------
 */

static int tensors_of(const struct ipu_graph *graph, enum ipu_tensor_kind kind)
{
	int count = 0;

	for (int t = 0; t < graph->tensor_count; t++)
		count += graph->tensors[t].kind == kind;
	return count;
}

static int nodes_of(const struct ipu_graph *graph, const char *part)
{
	int count = 0;

	for (int n = 0; n < graph->node_count; n++)
		count += strstr(graph->nodes[n].op.name, part) != NULL;
	return count;
}

static int trainable_params(const struct model *model)
{
	int count = 0;

	for (int p = 0; p < model->param_count; p++)
		count += model->params[p].trainable;
	return count;
}

static void check_gradients(const struct lowered *lowered)
{
	const struct ipu_graph *graph = &lowered->graph;
	const int params = trainable_params(lowered->model);
	const bool sums = lowered->layout->accumulation > 1;

	assert_int_equal(tensors_of(graph, IPU_TENSOR_WEIGHT_GRADIENT), params);
	assert_int_equal(tensors_of(graph, IPU_TENSOR_ACCUMULATOR), sums ? params : 0);
	assert_int_equal(tensors_of(graph, IPU_TENSOR_OPTIMIZER_STATE),
			 params * optimizer_slots(&lowered->optimizer));
	assert_int_equal(nodes_of(graph, "GradientAccumulation/"), sums ? params : 0);
}

/* --- arithmetic ----------------------------------------------------------------------------------
 */

static int64_t product_flops(const struct ipu_graph *graph, const char *layer, char phase,
			     const char *part)
{
	int64_t flops = 0;

	for (int n = 0; n < graph->node_count; n++) {
		const struct ipu_op *op = &graph->nodes[n].op;

		if ((op->kind == IPU_OP_CONV || op->kind == IPU_OP_MATMUL) && op->layer &&
		    !strcmp(op->layer, layer) && op->phase == phase && strstr(op->name, part))
			flops += ipu_op_flops(op);
	}
	return flops;
}

/* Products of a layer have its own flops but for bias and activation, and so have both gradients.
 */
static void check_flops(const struct lowered *lowered)
{
	const struct model *model = lowered->model;

	for (int i = 0; i < model->layer_count; i++) {
		const struct model_layer *layer = &model->layers[i];
		const int64_t batch = lowered->run->data.batch_size;
		const int64_t each = batch * model_shape_count(&layer->output);
		const int64_t forward = product_flops(&lowered->graph, layer->name, 'F', "");
		const int64_t data = product_flops(&lowered->graph, layer->name, 'B', "GradX");
		const int64_t all = model_layer_flops(model, i, batch);

		if (!forward)
			continue;
		if (forward > all || forward < all - 8 * each)
			fail_msg("%s: %lld of %lld", layer->name, (long long)forward,
				 (long long)all);
		if (layer->trainable && lowered->run->fit.wanted)
			assert_int_equal(product_flops(&lowered->graph, layer->name, 'B', "GradW"),
					 forward);
		assert_true(data <= forward);
	}
}

static void check(const struct lowered *lowered)
{
	check_graph(lowered);
	if (lowered->run->fit.wanted)
		check_gradients(lowered);
	check_flops(lowered);
}

/* --- the examples --------------------------------------------------------------------------------
 */

static void test_examples_become_graphs(void **state)
{
	static const char *const lines[] = {
		"keras-mnist.json",
		"keras-mnist.json --use-ipu --pipelining",
		"keras-mnist-demo.json --pipelining Grouped",
		"keras-chapter.json --pipelined",
		"keras-chapter-stages.json --functional",
		"keras-chapter-resnet50.json",
		"keras-chapter-resnet50.json --compile.dtype_policy mixed_float16",
		"cifar10-resnet50.json",
		"inspect-tensors.json",
		"inspect-tensors.json --model-type Model",
		"inspect-tensors.json --no-pipelining --use-gradient-accumulation",
		"inspect-tensors.json --outfeed-pre-accumulated-gradients",
		"keras-mnist.json --fit null",
		"keras-mnist.json --fit null --evaluate null --predict {}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct lowered lowered;

		lowered_open_example(&lowered, lines[i]);
		check(&lowered);
		lowered_close(&lowered);
	}
}

/* --- any model -----------------------------------------------------------------------------------
 */

#define LAYERS_MOST 40

/* A Functional model of images 8x8x4: what is added to it has that shape, too. */
struct random_model {
	char text[TEXT];
	size_t length;
	uint32_t state;
	char name[LAYERS_MOST + 1][24];
	bool read[LAYERS_MOST + 1];
	int count; /* with the input */
};

static void add(struct random_model *m, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add(struct random_model *m, const char *format, ...)
{
	va_list list;
	int length;

	va_start(list, format);
	length = vsnprintf(m->text + m->length, TEXT - m->length, format, list);
	va_end(list);
	assert_true(length >= 0 && (size_t)length < TEXT - m->length);
	m->length += (size_t)length;
}

static int below(struct random_model *m, int most)
{
	return (int)(math_lcg(&m->state) % (uint32_t)most);
}

/* @config: what the layer has beside its name. @inputs: of the model's layers. */
static void add_layer(struct random_model *m, const char *class_name, const char *config,
		      const int *inputs, int count)
{
	char *name = m->name[m->count];

	snprintf(name, sizeof(m->name[0]), "l%d_%.16s", m->count, class_name);
	add(m,
	    ", {'class_name': '%s', 'name': '%s', 'config': {'name': '%s'%s}, 'inbound_nodes': [[",
	    class_name, name, name, config);
	for (int i = 0; i < count; i++) {
		add(m, "%s['%s', 0, 0, {}]", i ? ", " : "", m->name[inputs[i]]);
		m->read[inputs[i]] = true;
	}
	add(m, "]]}");
	m->count++;
}

static void add_random_layer(struct random_model *m)
{
	static const struct {
		const char *class_name, *config;
		int inputs; /* at most; at least one less than two, or two */
	} kinds[] = {
		{"Conv2D",
		 ", 'filters': 4, 'kernel_size': 3, 'padding': 'same', 'activation': 'relu'", 1},
		{"Conv2D",
		 ", 'filters': 4, 'kernel_size': 1, 'activation': 'swish', "
		 "'kernel_regularizer': {'class_name': 'L2', 'config': {'l2': 0.01}}",
		 1},
		{"Conv2D",
		 ", 'filters': 4, 'kernel_size': 3, 'padding': 'same', 'trainable': false", 1},
		{"DepthwiseConv2D", ", 'kernel_size': 3, 'padding': 'same'", 1},
		{"SeparableConv2D",
		 ", 'filters': 4, 'kernel_size': 3, 'padding': 'same', "
		 "'activation': 'gelu'",
		 1},
		{"Dense", ", 'units': 4, 'activation': 'tanh'", 1},
		{"BatchNormalization", "", 1},
		{"BatchNormalization", ", 'trainable': false", 1},
		{"LayerNormalization", "", 1},
		{"ReLU", "", 1},
		{"Activation", ", 'activation': 'mish'", 1},
		{"Activation", ", 'activation': 'softmax'", 1},
		{"Dropout", ", 'rate': 0.25", 1},
		{"Dropout", ", 'rate': 0", 1},
		{"SpatialDropout2D", ", 'rate': 0.25", 1},
		{"Reshape", ", 'target_shape': [8, 8, 4]", 1},
		{"MaxPooling2D", ", 'pool_size': 3, 'strides': 1, 'padding': 'same'", 1},
		{"AveragePooling2D", ", 'pool_size': 3, 'strides': 1, 'padding': 'same'", 1},
		{"Rescaling", ", 'scale': 2", 1},
		{"Add", "", 3},
		{"Add", "", 2},
		{"Subtract", "", 2},
		{"Average", "", 3},
		{"Multiply", "", 3},
		{"Maximum", "", 2},
		{"Concatenate", "", 2},
	};
	const int kind = below(m, (int)ARRAY_LEN(kinds));
	char config[256];
	int inputs[3], count = kinds[kind].inputs;

	for (int i = 0; i < count; i++) /* rather late ones */
		inputs[i] = below(m, 3) ? m->count - 1 : below(m, m->count);
	snprintf(config, sizeof(config), "%s%s", kinds[kind].config,
		 below(m, 8) ? "" : ", 'dtype': 'float32'");
	add_layer(m, kinds[kind].class_name, config, inputs, count);
	if (strcmp(kinds[kind].class_name, "Concatenate") != 0)
		return;
	/* Eight channels are nobody else's. */
	add_layer(m, "Conv2D", ", 'filters': 4, 'kernel_size': 1", (const int[]){m->count - 1}, 1);
	memcpy(m->name[m->count - 2], m->name[m->count - 1], sizeof(m->name[0]));
}

/* All that nobody has read goes to the end; @stages of about as many layers each. */
static void make_model(struct random_model *m, uint32_t seed, int stages, bool mixed)
{
	int loose[LAYERS_MOST + 1], count = 0;

	m->length = 0;
	m->state = seed * 2654435761u + 1;
	m->count = 1;
	memset(m->read, 0, sizeof(m->read));
	strcpy(m->name[0], "input");
	add(m, "{'model': {'class_name': 'Functional', 'config': {'name': 'm', 'layers': ["
	       "{'class_name': 'InputLayer', 'name': 'input', 'config': {'batch_input_shape': "
	       "[null, 8, 8, 4], 'name': 'input'}, 'inbound_nodes': []}");
	while (m->count < LAYERS_MOST - 8)
		add_random_layer(m);
	for (int i = 0; i < m->count; i++)
		if (!m->read[i])
			loose[count++] = i;
	if (count > 1)
		add_layer(m, "Add", "", loose, count);
	add_layer(m, seed % 2 ? "GlobalAveragePooling2D" : "GlobalMaxPooling2D", "",
		  (const int[]){m->count - 1}, 1);
	add_layer(m, "Dense", ", 'units': 5, 'activation': 'softmax'", (const int[]){m->count - 1},
		  1);
	add(m, "], 'input_layers': [['input', 0, 0]], 'output_layers': [['%s', 0, 0]]}}, ",
	    m->name[m->count - 1]);
	add(m,
	    "'compile': {'loss': 'sparse_categorical_crossentropy', 'metrics': ['accuracy'], "
	    "'optimizer': '%s', 'dtype_policy': '%s', 'steps_per_execution': 16}, "
	    "'data': {'name': 'mnist', 'batch_size': 4}, 'fit': {'steps_per_epoch': 32}, "
	    "'ipu': {'auto_select_ipus': %d}, 'gradient_accumulation': {'steps_per_replica': "
	    "16}, 'outfeed': {'gradients': ['kernel']}",
	    seed % 3 ? "Adam" : "SGD", mixed ? "mixed_float16" : "float32",
	    stages == 3 ? 4 : stages);
	if (stages > 1) {
		add(m, ", 'pipeline': {'schedule': 'Sequential', 'stages': [");
		for (int i = 1; i < m->count; i++)
			add(m, "%s%d", i > 1 ? ", " : "", (i - 1) * stages / (m->count - 1));
		add(m, "]}");
	}
	add(m, "}");
}

static void test_random_models_become_graphs(void **state)
{
	static const struct model_shape shape = {3, {8, 8, 4}};
	struct random_model *m = mem_calloc(1, sizeof(*m));

	(void)state;
	assert_non_null(m);
	for (uint32_t seed = 1; seed <= 60; seed++) {
		struct lowered lowered;

		make_model(m, seed, 1 + (int)(seed % 3), seed % 4 == 0);
		lowered_open_text(&lowered, m->text, &shape);
		check(&lowered);
		lowered_close(&lowered);
	}
	mem_free(m);
}

/* --- by hand -------------------------------------------------------------------------------------
 */

static const struct ipu_node *find_node(const struct ipu_graph *graph, const char *name)
{
	for (int n = 0; n < graph->node_count; n++)
		if (!strcmp(node_name(graph, n), name))
			return &graph->nodes[n];
	fail_msg("there is no operation %s", name);
	return NULL;
}

/* "operation: reads -> writes", by the tensors' names. */
static void check_node(const struct ipu_graph *graph, const char *wanted)
{
	char text[1024];
	const struct ipu_node *node;
	size_t at;

	snprintf(text, sizeof(text), "%.*s", (int)strcspn(wanted, ":"), wanted);
	node = find_node(graph, text);
	at = (size_t)snprintf(text, sizeof(text), "%s:", node->op.name);
	for (int i = 0; i < node->read_count; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, " %s",
				       graph->tensors[node->reads[i]].name);
	at += (size_t)snprintf(text + at, sizeof(text) - at, " ->");
	for (int i = 0; i < node->write_count; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, " %s",
				       graph->tensors[node->writes[i]].name);
	assert_string_equal(text, wanted);
}

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
	check(lowered);
}

static void test_gradients_of_an_output_that_several_read_are_added(void **state)
{
	struct lowered lowered;
	const struct ipu_graph *graph = &lowered.graph;

	(void)state;
	open_residual(&lowered, "", "");
	check_node(graph, "a/MatMul: infeed a/kernel -> a/output");
	check_node(graph, "s/AddV2: a/output b/output -> s/output");
	check_node(graph, "o/MatMul: d/output o/kernel -> o/between");
	check_node(graph, "o/Softmax: o/between -> o/output");
	check_node(graph, "loss/sparse_categorical_crossentropy: o/between infeed/labels -> "
			  "loss/sparse_categorical_crossentropy/items "
			  "loss/sparse_categorical_crossentropy/backprop");
	check_node(graph, "loss/sparse_categorical_crossentropy/Mean: "
			  "loss/sparse_categorical_crossentropy/items -> loss");
	check_node(graph, "metrics/accuracy: o/output infeed/labels -> metrics/accuracy/items");
	check_node(graph, "gradients/loss/sparse_categorical_crossentropy/mul: "
			  "loss/sparse_categorical_crossentropy/backprop -> o/gradient");
	check_node(graph, "o/MatMul/GradX: o/gradient o/kernel -> d/gradient");
	check_node(graph, "d/dropout/Mul/Grad: d/kept d/gradient -> s/gradient");
	/* The sum's gradient is that of both: b does not work on it in place. */
	check_node(graph, "b/Relu/Grad: b/output s/gradient -> b/gradient_before");
	check_node(graph, "b/MatMul/GradW: a/output b/gradient_before -> b/kernel_grad");
	check_node(graph, "b/MatMul/GradX: b/gradient_before b/kernel -> a/gradient_from_b");
	check_node(graph, "gradients/AddN: s/gradient a/gradient_from_b -> a/gradient");
	check_node(graph, "a/MatMul/GradW: infeed a/gradient -> a/kernel_grad");
	check_node(graph, "SGD/a/kernel: a/kernel_grad a/kernel -> a/kernel");
	assert_int_equal(nodes_of(graph, "a/MatMul/GradX"), 0);
	assert_int_equal(find_node(graph, "gradients/AddN")->op.elements.operands, 2);
	assert_int_equal(find_node(graph, "SGD/a/kernel")->op.elements.times[IPU_FN_SCALED_ADD], 1);
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
		const struct ipu_node *node = find_node(&lowered.graph, rows[i].name);

		assert_int_equal(ipu_node_forward(node, false), rows[i].evaluated);
		assert_int_equal(ipu_node_forward(node, true), rows[i].predicted);
	}
	lowered_close(&lowered);

	open_residual(&lowered, "", ", 'fit': null, 'evaluate': {}");
	assert_int_equal(nodes_of(&lowered.graph, "dropout"), 0);
	assert_int_equal(nodes_of(&lowered.graph, "backprop"), 0);
	check_node(&lowered.graph, "o/MatMul: s/output o/kernel -> o/output");
	check_node(&lowered.graph,
		   "loss/sparse_categorical_crossentropy: o/output infeed/labels -> "
		   "loss/sparse_categorical_crossentropy/items");
	lowered_close(&lowered);

	open_residual(&lowered, "", ", 'fit': null, 'predict': {}");
	assert_int_equal(tensors_of(&lowered.graph, IPU_TENSOR_LABELS), 0);
	assert_int_equal(tensors_of(&lowered.graph, IPU_TENSOR_RESULT), 0);
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
	check_node(graph, "a/Cast: infeed -> a/Cast");
	check_node(graph, "a/kernel/Cast: a/kernel -> a/kernel/Cast");
	check_node(graph, "a/MatMul: a/Cast a/kernel/Cast -> a/output");
	assert_int_equal(find_node(graph, "a/MatMul")->op.dtype, IPU_FLOAT16);
	check_node(graph, "loss/Cast: o/between -> loss/Cast");
	check_node(graph, "b/MatMul/GradX: b/gradient_before b/kernel/Cast -> a/gradient_from_b");
	check_node(graph, "b/MatMul/GradW: a/output b/gradient_before -> b/kernel_grad/half");
	check_node(graph, "b/kernel_grad/Cast: b/kernel_grad/half -> b/kernel_grad");
	assert_int_equal(find_node(graph, "SGD/a/kernel")->op.dtype, IPU_FLOAT32);
	/* Input, three kernels and biases, their gradients, and what is measured. */
	assert_int_equal(nodes_of(graph, "/Cast"), 1 + 6 + 6 + 2);
	lowered_close(&lowered);

	/* Nothing of a variable goes through a pipeline's FIFOs. */
	open_residual(&lowered, mixed, pipeline);
	check_node(graph, "b/MatMul/GradX: b/gradient_before b/kernel/Cast_1 -> a/gradient_from_b");
	assert_int_equal(nodes_of(graph, "/Cast"), 1 + 6 + 2 + 6 + 2);
	lowered_close(&lowered);
}

static void test_what_is_fed_out_is_a_result(void **state)
{
	struct lowered lowered;

	(void)state;
	lowered_open_example(&lowered, "inspect-tensors.json");
	assert_true(nodes_of(&lowered.graph, "/outfeed") > 2);
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
	check(&lowered);
	check_node(&lowered.graph,
		   "a/kernel/Regularizer/Abs: a/kernel -> a/kernel/Regularizer/each");
	check_node(&lowered.graph, "a/kernel/Regularizer/Sum: a/kernel/Regularizer/each -> "
				   "a/kernel/Regularizer/result");
	check_node(&lowered.graph,
		   "a/kernel/Regularizer/Grad: a/kernel_grad a/kernel -> a/kernel_grad");
	assert_int_equal(find_node(&lowered.graph, "loss/mean_squared_error")->op.rows.work,
			 IPU_ROWS_ERROR);
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
		status = train_lower(&graph, &lowered.from, &arena, &err);
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
		cmocka_unit_test(test_examples_become_graphs),
		cmocka_unit_test(test_random_models_become_graphs),
		cmocka_unit_test(test_gradients_of_an_output_that_several_read_are_added),
		cmocka_unit_test(test_evaluation_does_without_what_is_trainings),
		cmocka_unit_test(test_mixed_float16_casts_variables_and_their_gradients),
		cmocka_unit_test(test_what_is_fed_out_is_a_result),
		cmocka_unit_test(test_penalties_are_of_every_micro_batch),
		cmocka_unit_test(test_options_and_layout_are_the_runs),
		cmocka_unit_test(test_no_failed_allocation_leaves_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
