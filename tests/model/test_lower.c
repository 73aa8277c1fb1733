/*
 * The graphs of the examples and of random models: what is read was written, gradients arrive where
 * they are wanted, and stages have what is theirs.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "support/lowering_check.h"
#include "support/math.h"

#define TEXT 32768

/* ---- the examples ---------------------------------------------------------------------------- */

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
		lowered_check_graph(&lowered);
		lowered_close(&lowered);
	}
}

/* ---- any model ------------------------------------------------------------------------------- */

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
		lowered_check_graph(&lowered);
		lowered_close(&lowered);
	}
	mem_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_examples_become_graphs),
		cmocka_unit_test(test_random_models_become_graphs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
