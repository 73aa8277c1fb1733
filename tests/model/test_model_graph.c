/*
 * Functional and nested models: what Keras 2 and 3 write, the order of execution, names, rows, and
 * what is refused.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/str.h"
#include "support/model_texts.h"
#include "model/model_reader.h"

/* A model of two inputs. */
#define PART(name, shape)                                                                          \
	"{\"class_name\": \"InputLayer\", \"config\": {\"batch_shape\": [null, " shape             \
	"], \"dtype\": \"int32\", \"name\": \"" name "\"}, \"inbound_nodes\": []}"
#define JOIN                                                                                       \
	"{\"class_name\": \"Concatenate\", \"config\": {\"name\": \"a\"}, \"inbound_nodes\": "     \
	"[[[\"y\", 0, 0, {}], [\"x\", 0, 0, {}]]]}"
#define TWO_ENDS                                                                                   \
	"\"input_layers\": [[\"x\", 0, 0], [\"y\", 0, 0]], \"output_layers\": [[\"a\", 0, 0]]"

static const struct model_shape mnist = {.ndim = 3, .dim = {28, 28, 1}};

/* ---- texts ----------------------------------------------------------------------------------- */

#define DENSE(name, units, from)                                                                   \
	"{\"class_name\": \"Dense\", \"config\": {\"name\": \"" name "\", \"units\": " units       \
	"}, \"name\": \"" name "\", \"inbound_nodes\": " from "}"
#define FLATTEN(name, from)                                                                        \
	"{\"class_name\": \"Flatten\", \"config\": {\"name\": \"" name                             \
	"\"}, \"inbound_nodes\": " from "}"
#define INPUT(name)                                                                                \
	"{\"class_name\": \"InputLayer\", \"config\": {\"batch_input_shape\": [null, 28, 28, 1], " \
	"\"dtype\": \"float32\", \"sparse\": false, \"ragged\": false, \"name\": \"" name          \
	"\"}, \"name\": \"" name "\", \"inbound_nodes\": []}"
#define FROM(name) "[[[\"" name "\", 0, 0, {}]]]"
#define ENDS(in, out)                                                                              \
	"\"input_layers\": [[\"" in "\", 0, 0]], \"output_layers\": [[\"" out "\", 0, 0]]"
#define MODEL(layers, ends)                                                                        \
	"{\"class_name\": \"Functional\", \"config\": {\"name\": \"m\", \"layers\": [" layers      \
	"], " ends "}}"

#define UNNAMED "{\"class_name\": \"Dense\", \"config\": {\"units\": 2}}"
/* What Keras 2 writes for NAME = FROM + y of a function of TensorFlow. */
#define SUM(from, y)                                                                               \
	"{\"class_name\": \"TFOpLambda\", \"config\": {\"name\": \"s\", \"trainable\": true, "     \
	"\"dtype\": \"float32\", \"function\": \"__operators__.add\"}, \"name\": \"s\", "          \
	"\"inbound_nodes\": [[\"" from "\", 0, 0, {\"y\": " y ", \"name\": null}]]}"

#define SEQUENTIAL(name, layers)                                                                   \
	"{\"class_name\": \"Sequential\", \"config\": {\"name\": \"" name                          \
	"\", \"layers\": [" layers "]}}"
#define NESTED2(name, from)                                                                        \
	"{\"class_name\": \"Sequential\", \"config\": {\"name\": \"" name                          \
	"\", \"layers\": [" UNNAMED "]}, \"inbound_nodes\": " from "}"

/* Two inputs, p and q; q's Dense "b" of 3 before p, and one of 2 behind. */
#define PAIR(name, from)                                                                           \
	"{\"class_name\": \"Functional\", \"config\": {\"name\": \"" name                          \
	"\", \"layers\": [{\"class_name\": \"InputLayer\", \"config\": {\"name\": \"q\"}}, "       \
	"{\"class_name\": \"InputLayer\", \"config\": {\"name\": \"p\"}}, " DENSE(                 \
		"b", "3",                                                                          \
		FROM("q")) ", "                                                                    \
			   "{\"class_name\": \"Concatenate\", \"config\": {\"name\": \"c\"}, "     \
			   "\"inbound_nodes\": "                                                   \
			   "[[[\"b\", 0, 0, {}], [\"p\", 0, 0, {}]]]}, " DENSE(                    \
				   "d", "2",                                                       \
				   FROM("c")) "], "                                                \
					      "\"input_layers\": [[\"p\", 0, 0], [\"q\", 0, 0]], " \
					      "\"output_layers\": [[\"d\", 0, 0]]}, "              \
					      "\"inbound_nodes\": " from "}"

#define COUNTED(name, shape)                                                                       \
	"{\"class_name\": \"Functional\", \"config\": {\"name\": \"" name "\", \"layers\": "       \
	"[{\"class_name\": \"InputLayer\", \"config\": {\"batch_input_shape\": " shape "}, "       \
	"\"name\": \"x\", \"inbound_nodes\": [], \"shared_object_id\": 0}, {\"class_name\": "      \
	"\"Dense\", \"config\": {\"units\": 2}, \"name\": \"a\", \"inbound_nodes\": " FROM(        \
		"x") ", "                                                                          \
		     "\"shared_object_id\": 3}], " ENDS("x", "a") "}}"

/* Before layers that are one object, the object 1 of the model. */
#define WIDE "{\"class_name\": \"Dense\", \"config\": {\"units\": 28}}"
#define OBJECT(class_name, config)                                                                 \
	"{\"class_name\": \"" class_name "\", \"config\": {" config "}, "                          \
	"\"shared_object_id\": 1}"

#define POLICY                                                                                     \
	"{\"module\": \"keras\", \"class_name\": \"DTypePolicy\", \"config\": {\"name\": "         \
	"\"float32\"}, \"registered_name\": null}"
#define TENSOR(shape, name)                                                                        \
	"{\"class_name\": \"__keras_tensor__\", \"config\": {\"shape\": " shape                    \
	", \"dtype\": \"float32\", \"keras_history\": [\"" name "\", 0, 0]}}"

/* TensorFlow 2.6's Model(x, Dense(10, softmax)(Flatten()(x))). */
static const char keras2[] =
	"{\"class_name\": \"Functional\", \"config\": {\"name\": \"model\", \"layers\": ["
	"{\"class_name\": \"InputLayer\", \"config\": {\"batch_input_shape\": [null, 28, 28, 1], "
	"\"dtype\": \"float32\", \"sparse\": false, \"ragged\": false, \"name\": \"input_1\"}, "
	"\"name\": \"input_1\", \"inbound_nodes\": []},"
	"{\"class_name\": \"Flatten\", \"config\": {\"name\": \"flatten\", \"trainable\": true, "
	"\"dtype\": \"float32\", \"data_format\": \"channels_last\"}, \"name\": \"flatten\", "
	"\"inbound_nodes\": [[[\"input_1\", 0, 0, {}]]]},"
	"{\"class_name\": \"Dense\", \"config\": {\"name\": \"dense\", \"trainable\": true, "
	"\"dtype\": \"float32\", \"units\": 10, \"activation\": \"softmax\", \"use_bias\": true, "
	"\"kernel_initializer\": {\"class_name\": \"GlorotUniform\", \"config\": {\"seed\": null}, "
	"\"shared_object_id\": 2}, \"bias_initializer\": {\"class_name\": \"Zeros\", \"config\": "
	"{}, \"shared_object_id\": 3}, \"kernel_regularizer\": null, \"bias_regularizer\": null, "
	"\"activity_regularizer\": null, \"kernel_constraint\": null, \"bias_constraint\": null}, "
	"\"name\": \"dense\", \"inbound_nodes\": [[[\"flatten\", 0, 0, {}]]], "
	"\"shared_object_id\": 4}"
	"], \"input_layers\": [[\"input_1\", 0, 0]], \"output_layers\": [[\"dense\", 0, 0]]}, "
	"\"keras_version\": \"2.6.0\", \"backend\": \"tensorflow\"}";

/* Keras 3 of the same. */
static const char keras3[] =
	"{\"module\": \"keras.src.models.functional\", \"class_name\": \"Functional\", \"config\": "
	"{\"name\": \"model\", \"trainable\": true, \"layers\": ["
	"{\"module\": \"keras.layers\", \"class_name\": \"InputLayer\", \"config\": "
	"{\"batch_shape\": [null, 28, 28, 1], \"dtype\": \"float32\", \"sparse\": false, "
	"\"ragged\": false, \"name\": \"input_1\"}, \"registered_name\": null, \"name\": "
	"\"input_1\", \"inbound_nodes\": []},"
	"{\"module\": \"keras.layers\", \"class_name\": \"Flatten\", \"config\": {\"name\": "
	"\"flatten\", \"trainable\": true, \"dtype\": " POLICY
	", \"data_format\": \"channels_last\"}, \"registered_name\": null, \"build_config\": "
	"{\"input_shape\": [null, 28, 28, 1]}, \"name\": \"flatten\", \"inbound_nodes\": "
	"[{\"args\": [" TENSOR(
		"[null, 28, 28, 1]",
		"input_1") "], \"kwargs\": {}}]},"
			   "{\"module\": \"keras.layers\", \"class_name\": \"Dense\", \"config\": "
			   "{\"name\": "
			   "\"dense\", \"trainable\": true, \"dtype\": " POLICY
			   ", \"units\": 10, \"activation\": "
			   "\"softmax\", \"use_bias\": true, \"kernel_initializer\": {\"module\": "
			   "\"keras.initializers\", \"class_name\": \"GlorotUniform\", \"config\": "
			   "{\"seed\": null}, "
			   "\"registered_name\": null}, \"bias_initializer\": {\"module\": "
			   "\"keras.initializers\", "
			   "\"class_name\": \"Zeros\", \"config\": {}, \"registered_name\": null}, "
			   "\"kernel_regularizer\": null, \"bias_regularizer\": null, "
			   "\"kernel_constraint\": null, "
			   "\"bias_constraint\": null}, \"registered_name\": null, "
			   "\"build_config\": "
			   "{\"input_shape\": [null, 784]}, \"name\": \"dense\", "
			   "\"inbound_nodes\": [{\"args\": [" TENSOR(
				   "[null, 784]",
				   "flatten") "], \"kwargs\": {}}]}"
					      "], \"input_layers\": [\"input_1\", 0, 0], "
					      "\"output_layers\": [\"dense\", 0, 0]}, "
					      "\"registered_name\": \"Functional\", "
					      "\"build_config\": {\"input_shape\": null}}";

/* A Sequential model with a functional one in it, as the tf.keras of TensorFlow 1.15 wrote it. */
static const char nested[] =
	"{\"class_name\": \"Sequential\", \"config\": {\"name\": \"top\", \"layers\": ["
	"{\"class_name\": \"Model\", \"config\": {\"name\": \"base\", \"layers\": ["
	"{\"name\": \"input_1\", \"class_name\": \"InputLayer\", \"config\": "
	"{\"batch_input_shape\": [null, 28, 28, 1], \"dtype\": \"float32\", \"sparse\": false, "
	"\"name\": \"input_1\"}, \"inbound_nodes\": []},"
	"{\"name\": \"flatten\", \"class_name\": \"Flatten\", \"config\": {\"name\": \"flatten\", "
	"\"trainable\": false, \"dtype\": \"float32\", \"data_format\": \"channels_last\"}, "
	"\"inbound_nodes\": [[[\"input_1\", 0, 0, {}]]]},"
	"{\"name\": \"dense\", \"class_name\": \"Dense\", \"config\": {\"name\": \"dense\", "
	"\"trainable\": false, \"units\": 16, \"activation\": \"relu\"}, \"inbound_nodes\": "
	"[[[\"flatten\", 0, 0, {}]]]}"
	"], \"input_layers\": [[\"input_1\", 0, 0]], \"output_layers\": [[\"dense\", 0, 0]]}},"
	"{\"class_name\": \"Dense\", \"config\": {\"name\": \"dense\", \"units\": 10}}"
	"]}, \"keras_version\": \"2.2.4-tf\", \"backend\": \"tensorflow\"}";

/* ---- read ------------------------------------------------------------------------------------ */

static void test_functional_models_of_keras_2_and_3_are_the_same(void **state)
{
	const char *texts[] = {keras2, keras3};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct model *m = support_model(texts[i], &mnist);

		assert_true(m->functional);
		assert_string_equal(m->name, "model");
		assert_int_equal(m->layer_count, 2);
		assert_string_equal(m->layers[0].name, "flatten");
		assert_int_equal(m->layers[0].inputs[0], MODEL_INPUT);
		assert_int_equal(m->layers[1].inputs[0], 0);
		assert_int_equal(m->layers[1].input.dim[0], 784);
		assert_int_equal(m->param_count, 2);
		assert_int_equal(m->row_count, 3);
		assert_string_equal(m->rows[0].name, "input_1");
		assert_string_equal(m->rows[0].class_name, "InputLayer");
		assert_int_equal(m->rows[0].input_count, 0);
		assert_int_equal(m->rows[0].output.ndim, 3);
		assert_int_equal(m->layers[0].row, 1);
		assert_int_equal(m->rows[1].inputs[0], 0);
		assert_int_equal(m->rows[2].inputs[0], 1);
		model_free(m);
	}
}

static void test_rows_of_a_sequential_model_have_no_input_layer(void **state)
{
	struct model *m = support_model(
		"{\"layers\": [{\"class_name\": \"InputLayer\", \"config\": {\"batch_shape\": "
		"[null, 4]}}, {\"class_name\": \"Dense\", \"config\": {\"units\": 2}}, "
		"{\"class_name\": \"Dense\", \"config\": {\"units\": 3}}]}",
		NULL);

	(void)state;
	assert_false(m->functional);
	assert_int_equal(m->row_count, 2);
	assert_string_equal(m->rows[0].name, "dense");
	assert_int_equal(m->rows[0].input_count, 0);
	assert_int_equal(m->rows[1].input_count, 1);
	assert_int_equal(m->rows[1].inputs[0], 0);
	assert_int_equal(m->rows[1].output.dim[0], 3);
	assert_int_equal(m->layers[1].row, 1);
	model_free(m);
}

static void test_a_nested_model_is_dissolved_and_has_one_row(void **state)
{
	struct model *m = support_model(nested, NULL);

	(void)state;
	assert_int_equal(m->layer_count, 3);
	assert_int_equal(m->row_count, 2);
	assert_string_equal(m->rows[0].name, "base");
	assert_string_equal(m->rows[0].class_name, "Functional");
	assert_int_equal(m->rows[0].output.dim[0], 16);
	assert_int_equal(m->layers[0].row, 0);
	assert_int_equal(m->layers[1].row, 0);
	assert_int_equal(m->layers[2].row, 1);
	/* The model's own "dense" keeps its name. */
	assert_string_equal(m->layers[1].name, "base/dense");
	assert_string_equal(m->params[0].name, "base/dense/kernel:0");
	assert_string_equal(m->layers[2].name, "dense");
	assert_false(m->layers[1].trainable);
	assert_false(m->params[0].trainable);
	assert_true(m->params[2].trainable);
	assert_int_equal(m->input.ndim, 3);
	model_free(m);
}

static void test_the_order_of_the_list_does_not_matter(void **state)
{
	static const char *const layers[] = {INPUT("x"), FLATTEN("a", FROM("x")),
					     DENSE("b", "4", FROM("a")),
					     DENSE("c", "3", FROM("b"))};
	static const int orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}, {1, 3, 0, 2}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
		struct str text = {0};
		struct model *m;

		str_add(&text, "{\"layers\": [");
		for (int j = 0; j < 4; j++)
			str_addf(&text, "%s%s", j ? ", " : "", layers[orders[i][j]]);
		str_add(&text, "], " ENDS("x", "c") "}");
		m = support_model(str_peek(&text), &mnist);
		assert_string_equal(m->name, "model");
		assert_string_equal(m->layers[0].name, "a");
		assert_string_equal(m->layers[1].name, "b");
		assert_string_equal(m->layers[2].name, "c");
		assert_string_equal(m->rows[0].name, "x");
		assert_string_equal(m->rows[3].name, "c");
		model_free(m);
		str_free(&text);
	}
}

/* Of layers that could come next, the first of the list does. */
static void test_branches_come_in_the_order_of_the_list(void **state)
{
	struct str text = {0};
	struct model *m;
	char name[8];

	(void)state;
	str_add(&text, "{\"layers\": [" INPUT("x") ", " FLATTEN("a", FROM("x")));
	for (int i = 0; i < 12; i++)
		str_addf(&text, ", " DENSE("b%d", "2", FROM("a")), i, i);
	str_add(&text, ", {\"class_name\": \"Concatenate\", \"config\": {\"name\": \"c\"}, "
		       "\"inbound_nodes\": [[");
	for (int i = 0; i < 12; i++)
		str_addf(&text, "%s[\"b%d\", 0, 0, {}]", i ? ", " : "", i);
	str_add(&text, "]]}], " ENDS("x", "c") "}");
	m = support_model(str_peek(&text), &mnist);
	assert_int_equal(m->layer_count, 14);
	for (int i = 0; i < 12; i++) {
		snprintf(name, sizeof(name), "b%d", i);
		assert_string_equal(m->layers[1 + i].name, name);
	}
	model_free(m);
	str_free(&text);
}

/* ---- a real model ---------------------------------------------------------------------------- */

/* What Keras writes of a residual model with a frozen functional and a Sequential model in it. */
static struct model *golden(const char *name, struct err *err)
{
	char path[SUPPORT_PATH_SIZE];
	struct model *model;
	char *text;

	snprintf(path, sizeof(path), "%s/tests/golden/%s", support_source_dir(), name);
	text = support_read_file(path, NULL);
	if (support_model_read(&model, text, &mnist, err) != ST_OK)
		fail_msg("%s: %s", name, err->text);
	free(text);
	return model;
}

static void test_a_residual_model_of_keras_2_and_3(void **state)
{
	static const char *const files[] = {"keras26_residual.json", "keras3_residual.json"};
	static const struct {
		const char *name;
		int inputs[3], count, row;
		bool trainable;
	} layers[] = {
		{"stem", {MODEL_INPUT}, 1, 1, true}, {"block/conv2d", {0}, 1, 2, false},
		{"conv2d_1", {1}, 1, 2, false},      {"block/add", {2, 0}, 2, 2, true},
		{"conv2d", {3}, 1, 3, true},         {"add", {0, 3, 4}, 3, 4, true},
		{"relu", {5}, 1, 5, true},           {"flatten", {6}, 1, 6, true},
		{"dropout", {7}, 1, 6, true},        {"dense", {8}, 1, 6, true},
	};
	static const int connected[] = {0, 1, 1, 1, 3, 1, 1};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct err err;
		struct model *m = golden(files[i], &err);

		assert_string_equal(m->name, "residual");
		assert_int_equal(m->layer_count, ARRAY_LEN(layers));
		for (int j = 0; j < m->layer_count; j++) {
			const struct model_layer *layer = &m->layers[j];

			assert_string_equal(layer->name, layers[j].name);
			assert_int_equal(layer->input_count, layers[j].count);
			for (int k = 0; k < layer->input_count; k++)
				assert_int_equal(layer->inputs[k], layers[j].inputs[k]);
			assert_int_equal(layer->row, layers[j].row);
			if (layer->param_count)
				assert_int_equal(layer->trainable, layers[j].trainable);
		}
		assert_int_equal(m->row_count, 7);
		for (int j = 0; j < m->row_count; j++)
			assert_int_equal(m->rows[j].input_count, connected[j]);
		assert_string_equal(m->rows[2].class_name, "Functional");
		assert_string_equal(m->rows[6].class_name, "Sequential");
		assert_int_equal(m->rows[4].inputs[2], 3);
		assert_int_equal(m->rows[6].output.dim[0], 10);
		model_free(m);
	}
}

/* x + y of TensorFlow is an Add, and the like. */
static void test_sums_of_tensorflow_are_layers(void **state)
{
	struct model *m =
		support_model(MODEL(INPUT("x") ", " FLATTEN("f", FROM("x")) ", " FLATTEN(
					    "g", FROM("x")) ", " SUM("f", "[\"g\", 0, 0]"),
				    ENDS("x", "s")),
			      NULL);

	(void)state;
	assert_int_equal(m->layer_count, 3);
	assert_string_equal(m->layers[2].ops->class_name, "Add");
	assert_string_equal(m->layers[2].name, "s");
	assert_int_equal(m->layers[2].input_count, 2);
	assert_int_equal(m->layers[2].inputs[0], 0);
	assert_int_equal(m->layers[2].inputs[1], 1);
	model_free(m);
}

/* Keras 3 writes the mask of an Embedding as an operation and an argument: it is the same model. */
static void test_masks_of_keras_3_are_those_of_the_layers(void **state)
{
#define CALLED(class_name, module, name, config, args, kwargs)                                     \
	"{\"class_name\": \"" class_name "\", \"module\": \"" module                               \
	"\", \"config\": {\"name\": \"" name "\"" config "}, \"name\": \"" name                    \
	"\", \"inbound_nodes\": [{\"args\": [" args "], \"kwargs\": {" kwargs "}}]}, "
#define WORDS                                                                                      \
	"{\"class_name\": \"InputLayer\", \"config\": {\"batch_shape\": [null, 7], \"name\": "     \
	"\"x\"}, "                                                                                 \
	"\"name\": \"x\", \"inbound_nodes\": []}, "
#define EMBEDDED                                                                                   \
	CALLED("Embedding", "keras.layers", "e",                                                   \
	       ", \"input_dim\": 9, \"output_dim\": 4, \"mask_zero\": true",                       \
	       TENSOR("[null, 7]", "x"), "")
#define UNEQUAL(number)                                                                            \
	CALLED("NotEqual", "keras.src.ops.numpy", "not_equal", "",                                 \
	       TENSOR("[null, 7]", "x") ", " number, "")
#define RECALL(kwargs)                                                                             \
	"{\"class_name\": \"LSTM\", \"config\": {\"name\": \"l\", \"units\": 3}, \"name\": "       \
	"\"l\", "                                                                                  \
	"\"inbound_nodes\": [{\"args\": [" TENSOR("[null, 7, 4]", "e") "], \"kwargs\": {" kwargs   \
								       "}}]}"
#define MASKED "\"training\": false, \"mask\": " TENSOR("[null, 7]", "not_equal")
	struct model *plain =
		support_model(MODEL(WORDS EMBEDDED RECALL("\"mask\": null"), ENDS("x", "l")), NULL);
	struct model *masked = support_model(
		MODEL(WORDS EMBEDDED UNEQUAL("0") RECALL(MASKED), ENDS("x", "l")), NULL);
	const struct support_refusal other = {
		MODEL(WORDS EMBEDDED UNEQUAL("1") RECALL(MASKED), ENDS("x", "l")), ST_UNSUPPORTED,
		"layers[2]: \"not_equal\" (NotEqual) is no mask that an Embedding"};
	/* An Embedding of the same input that masks nothing. */
	const struct support_refusal unmasked = {
		MODEL(WORDS CALLED("Embedding", "keras.layers", "e",
				   ", \"input_dim\": 9, \"output_dim\": 4",
				   TENSOR("[null, 7]", "x"), "") UNEQUAL("0") RECALL(MASKED),
		      ENDS("x", "l")),
		ST_UNSUPPORTED, "layers[2]: \"not_equal\" (NotEqual) is no mask that an Embedding"};

	(void)state;
	support_assert_refused(&unmasked, NULL);
	assert_int_equal(masked->layer_count, plain->layer_count);
	for (int i = 0; i < plain->layer_count; i++) {
		assert_string_equal(masked->layers[i].name, plain->layers[i].name);
		assert_int_equal(masked->layers[i].input_count, plain->layers[i].input_count);
		assert_int_equal(masked->layers[i].mask, plain->layers[i].mask);
	}
	model_free(plain);
	model_free(masked);
	support_assert_refused(&other, NULL);
	support_model_no_memory(MODEL(WORDS EMBEDDED UNEQUAL("0") RECALL(MASKED), ENDS("x", "l")),
				NULL);
}

static void test_stages_cut_a_residual_model_where_it_can_be_cut(void **state)
{
	static const int good[] = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1};
	static const int bad[] = {0, 1, 1, 1, 0, 1, 1, 1, 1, 1};
	struct err err;
	struct model *m = golden("keras26_residual.json", &err);

	(void)state;
	assert_int_equal(model_order(m, good, &err), ST_OK);
	assert_int_equal(model_order(m, bad, &err), ST_INVALID);
	assert_contains(err.text, "\"conv2d\" of stage 0 needs the output of \"block/add\"");
	model_free(m);
}

static void test_applications_are_read_like_any_model(void **state)
{
	const struct model_shape image = {.ndim = 3, .dim = {64, 64, 3}};
	struct model *m = support_model(
		"{\"layers\": [{\"application\": \"VGG16\", \"config\": {\"include_top\": false}}, "
		"{\"class_name\": \"Flatten\", \"config\": {}}, {\"class_name\": \"Dense\", "
		"\"config\": {\"units\": 10}}]}",
		&image);

	(void)state;
	assert_int_equal(m->row_count, 3);
	assert_string_equal(m->rows[0].name, "vgg16");
	assert_string_equal(m->rows[0].class_name, "Functional");
	assert_string_equal(m->layers[0].name, "block1_conv1");
	assert_int_equal(model_layer_params(m, 0), 1792);
	assert_int_equal(m->rows[0].output.dim[2], 512);
	model_free(m);

	m = support_model("{\"application\": \"VGG16\", \"name\": \"mine\"}", NULL);
	assert_string_equal(m->name, "mine");
	assert_true(m->functional);
	assert_int_equal(m->row_count, 23);
	assert_int_equal(m->rows[22].output.dim[0], 1000);
	model_free(m);
}

/* ---- other Kerases --------------------------------------------------------------------------- */

static void test_older_sequential_models_are_lists(void **state)
{
	struct model *m = support_model(
		"{\"class_name\": \"Sequential\", \"config\": [{\"class_name\": \"Flatten\", "
		"\"config\": {\"batch_input_shape\": [null, 28, 28, 1]}}, {\"class_name\": "
		"\"Dense\", \"config\": {\"units\": 3, \"name\": \"dense_5\"}}], "
		"\"keras_version\": \"2.1.6\", \"backend\": \"tensorflow\"}",
		NULL);

	(void)state;
	assert_string_equal(m->name, "sequential");
	assert_int_equal(m->layer_count, 2);
	model_free(m);
}

/* Their shared_object_ids begin anew: they share nothing. */
static void test_functional_models_in_a_row_count_their_objects_each(void **state)
{
	struct model *m =
		support_model("{\"layers\": [" COUNTED("m", "[null, 28, 28, 1]") ", " COUNTED(
				      "n", "[null, 28, 28, 2]") "]}",
			      &mnist);

	(void)state;
	assert_int_equal(m->layer_count, 2);
	assert_string_equal(m->layers[0].name, "a");
	assert_string_equal(m->layers[1].name, "n/a");
	model_free(m);
}

/* Two models in a functional one that list the same Dense: its shared_object_id counts in all. */
static void test_functional_models_in_another_share_their_objects(void **state)
{
#define OWN_DENSE(id)                                                                              \
	"{\"class_name\": \"Dense\", \"config\": {\"name\": \"d\", \"units\": 1}, \"name\": "      \
	"\"d\", \"inbound_nodes\": " FROM("i") ", \"shared_object_id\": " id "}"
#define LISTS(name, id, from)                                                                      \
	"{\"class_name\": \"Functional\", \"name\": \"" name "\", \"config\": {\"name\": \"" name  \
	"\", \"layers\": [" INPUT("i") ", " OWN_DENSE(id) "], " ENDS(                              \
		"i", "d") "}, \"inbound_nodes\": " FROM(from) "}"
	struct model *m = support_model(MODEL(INPUT("x") ", " LISTS("m", "3", "x") ", " LISTS(
						      "n", "3", "m") ", " LISTS("o", "4", "n"),
					      ENDS("x", "o")),
					NULL);

	(void)state;
	assert_int_equal(m->layer_count, 3);
	assert_false(model_layer_again(m, &m->layers[0]));
	assert_true(model_layer_again(m, &m->layers[1]));
	assert_int_equal(m->layers[1].first_param, m->layers[0].first_param);
	assert_false(model_layer_again(m, &m->layers[2]));
	assert_int_equal(m->param_count, 4);
	model_free(m);
}

/* tf.keras 1.15: three items a tensor, "Model" for "Functional". */
static void test_the_model_class_of_tensorflow_1(void **state)
{
	struct model *m = support_model(
		"{\"class_name\": \"Model\", \"config\": {\"name\": \"model\", \"layers\": "
		"[" INPUT("x") ", " DENSE("a", "3", "[[[\"x\", 0, 0]]]") "], " ENDS(
			"x", "a") "}, "
				  "\"keras_version\": \"2.2.4-tf\", \"backend\": "
				  "\"tensorflow\"}",
		NULL);

	(void)state;
	assert_true(m->functional);
	assert_int_equal(m->layers[0].output.dim[2], 3);
	model_free(m);
}

/* Sizes that the model leaves open are those of the data. */
static void test_open_shapes_are_filled_from_the_data(void **state)
{
	static const char text[] =
		"{\"layers\": [{\"class_name\": \"InputLayer\", \"config\": {\"batch_shape\": "
		"[null, null, null, 1]}}, {\"class_name\": \"Flatten\", \"config\": {}}]}";
	struct model *m = support_model(text, &mnist);
	const struct support_refusal refusal = {
		text, ST_UNSUPPORTED, "batch_shape: not supported: only the batch may be unknown"};

	(void)state;
	assert_int_equal(m->layers[0].output.dim[0], 784);
	model_free(m);
	support_assert_refused(&refusal, NULL);
}

static void test_default_names_are_keras(void **state)
{
	static const struct {
		const char *class_name, *name;
	} rows[] = {
		{"Conv2D", "conv2d"},
		{"DepthwiseConv2D", "depthwise_conv2d"},
		{"MaxPooling2D", "max_pooling2d"},
		{"GlobalAveragePooling2D", "global_average_pooling2d"},
		{"ZeroPadding2D", "zero_padding2d"},
		{"BatchNormalization", "batch_normalization"},
		{"ReLU", "re_lu"},
		{"LeakyReLU", "leaky_re_lu"},
		{"PReLU", "p_re_lu"},
		{"ELU", "elu"},
		{"Add", "add"},
		{"MaybeOutfeed", "maybe_outfeed"},
	};
	char name[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		model__snake(rows[i].class_name, name, sizeof(name));
		assert_string_equal(name, rows[i].name);
	}
}

static void test_names_give_way_through_all_models_around(void **state)
{
	struct model *m = support_model(
		"{\"layers\": [" SEQUENTIAL(
			"s",
			SEQUENTIAL("t",
				   UNNAMED) ", " UNNAMED) ", " SEQUENTIAL("s2",
									  SEQUENTIAL("t", UNNAMED) ", " SEQUENTIAL(
										  "u",
										  UNNAMED)) ","
											    " " UNNAMED
											    "]}",
		&mnist);
	static const char *const names[] = {"t/dense", "s/dense", "s2/t/dense", "u/dense", "dense"};

	(void)state;
	assert_int_equal(m->layer_count, ARRAY_LEN(names));
	for (int i = 0; i < m->layer_count; i++)
		assert_string_equal(m->layers[i].name, names[i]);
	assert_int_equal(m->row_count, 3);
	model_free(m);
}

static void test_trainable_false_freezes_all_below(void **state)
{
	struct model *m = support_model(
		"{\"layers\": [{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", "
		"\"trainable\": false, \"layers\": [{\"class_name\": \"Dense\", \"config\": "
		"{\"units\": 2, \"trainable\": true}}]}}, " UNNAMED "]}",
		&mnist);

	(void)state;
	assert_false(m->layers[0].trainable);
	assert_false(m->params[1].trainable);
	assert_true(m->layers[1].trainable);
	model_free(m);
}

#define CHAIN(a, b) MODEL(INPUT("x") ", " a ", " b, ENDS("x", "b"))
#define FLAT        FLATTEN("a", FROM("x"))

/* A call's training: false is for all layers of the model that is called. Keras 3 writes defaults
 * down, too: it counts where it is none. */
static void test_training_false_of_a_call(void **state)
{
	static const struct {
		const char *text;
		bool inference;
	} rows[] = {
		{CHAIN(FLAT, NESTED2("b", "[[[\"a\", 0, 0, {\"training\": false}]]]")), true},
		{CHAIN(FLAT, NESTED2("b", "[[[\"a\", 0, 0, {\"training\": null}]]]")), false},
		{CHAIN(FLAT, NESTED2("b", "[{\"args\": [" TENSOR("[null, 784]",
								 "a") "], \"kwargs\": "
								      "{\"training\": false}}]")),
		 true},
		{CHAIN(FLAT, DENSE("b", "2", "[[[\"a\", 0, 0, {\"training\": false}]]]")), true},
		{CHAIN(FLAT,
		       DENSE("b", "2",
			     "[{\"args\": [" TENSOR("[null, 784]", "a") "], \"kwargs\": "
									"{\"training\": false}}]")),
		 false},
		{CHAIN(FLAT,
		       "{\"class_name\": \"BatchNormalization\", \"config\": {\"name\": \"b\"}, "
		       "\"name\": \"b\", \"inbound_nodes\": [{\"args\": [" TENSOR(
			       "[null, 784]", "a") "], \"kwargs\": {\"training\": false}}]}"),
		 true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct model *m = support_model(rows[i].text, &mnist);

		assert_false(m->layers[0].inference);
		assert_int_equal(m->layers[1].inference, rows[i].inference);
		assert_true(m->layers[1].trainable);
		model_free(m);
	}
}

/* ---- refused --------------------------------------------------------------------------------- */

#define TWO(extra) MODEL(INPUT("x") ", " FLAT ", " DENSE("b", "2", FROM("a")) extra, ENDS("x", "b"))

static const struct support_refusal refusals[] = {
	{CHAIN(FLAT, DENSE("b", "2", FROM("aa"))), ST_INVALID,
	 "config.layers[2].inbound_nodes[0][0][0]: unknown layer \"aa\""},
	{CHAIN(FLAT, DENSE("b", "2", FROM("flat"))), ST_INVALID, "unknown layer \"flat\""},
	{CHAIN(FLATTEN("a", FROM("b")), DENSE("b", "2", FROM("a"))), ST_INVALID, "cycle: \"|needs"},
	{CHAIN(FLAT, DENSE("b", "2", FROM("b"))), ST_INVALID,
	 "layers[2]: the layers form a cycle: \"b\" needs \"b\""},
	{TWO(", " DENSE("c", "2", FROM("a"))), ST_INVALID,
	 "layers[3]: \"c\" does not lead to the model's output, \"b\""},
	{TWO(", " DENSE("a", "2", FROM("b"))), ST_INVALID,
	 "layers[3].config.name: two layers are named \"a\""},
	{TWO(", " INPUT("y")), ST_INVALID, "layers[3]: the InputLayer \"y\" is not among"},
	{CHAIN(FLAT, DENSE("b", "2", "[]")), ST_INVALID, "inbound_nodes: nothing comes into \"b\""},
	{CHAIN(FLAT, DENSE("b", "2", "[[]]")), ST_INVALID,
	 "inbound_nodes: \"b\" (Dense) takes 1 input, but 0 come in"},
	{CHAIN(FLAT, DENSE("b", "2", "[[[\"a\", 0, 0, {}], [\"a\", 0, 0, {}]]]")), ST_INVALID,
	 "\"b\" (Dense) takes 1 input, but 2 come in"},
	{CHAIN(FLAT, DENSE("b", "2", "[[[\"a\", 0, 0, {}]], [[\"a\", 0, 0, {}]]]")), ST_INVALID,
	 "layers[2]: \"b\", call 1, does not lead to the model's output"},
	{CHAIN(FLAT, DENSE("b", "2", "[[[\"b\", 1, 0, {}]], [[\"b\", 0, 0, {}]]]")), ST_INVALID,
	 "cycle: \"b\" needs \"b\""},
	{MODEL(INPUT("x") ", " FLAT
			  ", " DENSE("b", "2", "[[[\"a\", 0, 0, {}]], [[\"b\", 0, 0, {}]]]"),
	       "\"input_layers\": [[\"x\", 0, 0]], \"output_layers\": [[\"b\", 1, 0]]"),
	 ST_INVALID,
	 "layers[2].config: \"b_1\" is another call of \"b\", for whose kernel its input does not "
	 "fit: "
	 "(None, 784) comes in there, and (None, 2) here"},
	{MODEL(INPUT("x") ", " FLAT ", " NESTED2("n", "[[[\"a\", 0, 0, {}]], [[\"n\", 0, 0, {}]]]"),
	       "\"input_layers\": [[\"x\", 0, 0]], \"output_layers\": [[\"n\", 2, 0]]"),
	 ST_INVALID, "\"n\" has 2 calls, which count from 0 or from 1: both 0 and 2 are read"},
	{CHAIN(FLAT, DENSE("b", "2", "[[[\"a\", 1, 0, {}]]]")), ST_INVALID,
	 "inbound_nodes[0][0][1]: \"a\" has 1 call here: there is none of number 1"},
	{CHAIN(FLAT, DENSE("b", "2", "[[[\"a\", 0, 1, {}]]]")), ST_UNSUPPORTED,
	 "inbound_nodes[0][0][2]: \"a\" has one output"},
	{CHAIN(FLAT, DENSE("b", "2", "[[[\"a\", 0]]]")), ST_INVALID, "must be [\"layer\", 0, 0]"},
	{CHAIN(FLAT, DENSE("b", "2", "[[[\"a\", -1, 0]]]")), ST_INVALID, "must be at least 0"},
	{CHAIN(FLAT, DENSE("b", "2", "[[[\"a\", 0, 0, {\"training\": true}]]]")), ST_UNSUPPORTED,
	 "inbound_nodes[0][0][3].training: not supported: it must be null or false"},
	{CHAIN(FLAT, DENSE("b", "2", "[[[\"a\", 0, 0, {\"scale\": 2}]]]")), ST_UNSUPPORTED,
	 "scale: not supported"},
	{CHAIN(FLAT, DENSE("b", "2", "[[[\"_CONSTANT_VALUE\", -1, 3, {}]]]")), ST_UNSUPPORTED,
	 "a constant as a layer's input"},
	{CHAIN(FLAT, DENSE("b", "2", "[3]")), ST_INVALID, "inbound_nodes[0]: must be an array or"},
	{CHAIN(FLAT, DENSE("b", "2", "3")), ST_INVALID, "inbound_nodes: must be an array"},
	{CHAIN(FLAT, DENSE("b", "2", "[[3]]")), ST_INVALID,
	 "inbound_nodes[0][0]: must be an array"},
	{CHAIN(FLAT, DENSE("b", "2", "[{\"args\": [3]}]")), ST_UNSUPPORTED,
	 "inbound_nodes[0].args[0]: a constant"},
	{CHAIN(FLAT, DENSE("b", "2", "[{\"arg\": []}]")), ST_INVALID, "unknown option \"arg\""},
	{CHAIN(FLAT, DENSE("b", "2", "[{\"args\": [{\"class_name\": \"__numpy__\"}]}]")),
	 ST_UNSUPPORTED, "class_name: only layers' outputs"},
	{CHAIN(FLAT, DENSE("b", "2", "[{\"args\": [{\"class_name\": \"__keras_tensor__\"}]}]")),
	 ST_INVALID, "\"config.keras_history\" is missing"},
	{CHAIN(FLAT, DENSE("b", "2", "[{\"args\": [[[]]]}]")), ST_UNSUPPORTED, "lists of lists"},
	{CHAIN(FLAT, DENSE("b", "2",
			   "[{\"args\": [" TENSOR("[null, 784]", "a") "], \"kwargs\": "
								      "{\"training\": true}}]")),
	 ST_UNSUPPORTED, "kwargs.training: not supported"},
	{CHAIN(FLAT, "{\"class_name\": \"Dense\", \"config\": {\"name\": \"b\", \"units\": 2}}"),
	 ST_INVALID, "layers[2]: \"inbound_nodes\" is missing"},
	{CHAIN(FLAT, "{\"class_name\": \"Dense\", \"name\": \"b\", \"config\": {\"name\": \"c\", "
		     "\"units\": 2}}"),
	 ST_INVALID, "layers[2].name: \"b\" is not the name in its config, \"c\""},
	{MODEL(INPUT("x") ", " FLAT, "\"output_layers\": [[\"a\", 0, 0]]"), ST_INVALID,
	 "config: \"input_layers\" is missing"},
	{MODEL(INPUT("x") ", " FLAT, "\"input_layers\": [[\"x\", 0, 0], [\"y\", 0, 0]]"),
	 ST_INVALID, "input_layers[1][0]: unknown layer \"y\""},
	{MODEL(INPUT("x") ", " FLAT, "\"input_layers\": [[\"x\", 0, 0], [\"x\", 0, 0]]"),
	 ST_INVALID, "input_layers: names \"x\" twice"},
	{MODEL(INPUT("x") ", " FLAT, "\"input_layers\": []"), ST_INVALID, "must name a layer"},
	{MODEL(INPUT("x") ", " FLAT, "\"input_layers\": [[\"x\", 0, 0]], \"output_layers\": "
				     "[[\"a\", 0, 0], [\"x\", 0, 0]]"),
	 ST_INVALID, "output_layers: \"x\" is an InputLayer"},
	{MODEL(INPUT("x") ", " FLAT, "\"input_layers\": [[\"x\", 0, 0]], \"output_layers\": "
				     "[[\"a\", 0, 0], [\"a\", 0, 0]]"),
	 ST_INVALID, "output_layers: names \"a\" twice"},
	{MODEL(INPUT("x") ", " FLAT, "\"input_layers\": [[\"x\", 0, 0]], \"output_layers\": "
				     "[[\"a\", 0, 0], [\"b\", 0, 0]]"),
	 ST_INVALID, "output_layers[1][0]: unknown layer \"b\""},
	{MODEL(PART("x", "3") ", " PART("y", "2, null") ", " JOIN, TWO_ENDS), ST_UNSUPPORTED,
	 "layers[1].config.batch_shape: not supported: of an input beside others only the batch"},
	{MODEL(PART("x", "3") ", " INPUT("y") ", " FLATTEN("f", FROM("y")) ", " JOIN, TWO_ENDS),
	 ST_INVALID, "\"f\" does not lead to the model's output"},
	{MODEL(PART("x", "3") ", " PART("y", "2") ", " JOIN, TWO_ENDS), ST_INVALID,
	 "input_layers: the data have items of 784 numbers, the model's 2 inputs 5"},
	{MODEL(INPUT("x") ", " FLAT, ENDS("a", "a")), ST_INVALID,
	 "input_layers: \"a\" is not an InputLayer"},
	{MODEL(INPUT("x"), ENDS("x", "x")), ST_INVALID, "layers: a model needs at least one layer"},
	{MODEL("", ENDS("x", "x")), ST_INVALID, "layers: a model needs at least one layer"},
	{TWO(", 3"), ST_INVALID, "layers[3]: must be an object"},
	{TWO(", {\"class_name\": \"Lambda\", \"config\": {}}"), ST_UNSUPPORTED,
	 "layers[3]: \"Lambda\" holds Python code"},
	{TWO(", {\"class_name\": \"TFOpLambda\", \"config\": {}}"), ST_UNSUPPORTED, "use a layer"},
	{TWO(", {\"class_name\": \"Dot\", \"config\": {\"name\": \"d\"}}"), ST_UNSUPPORTED,
	 "layers[3]: \"d\": \"Dot\" is not supported: of two vectors it is \"Multiply\", then"},
	{TWO(", {\"class_name\": \"MaxPooling3D\", \"config\": {}}"), ST_UNSUPPORTED,
	 "\"MaxPooling3D\" has three dimensions"},
	{TWO(", {\"class_name\": \"Einsum\", \"module\": \"keras.src.ops.numpy\", \"config\": {}}"),
	 ST_UNSUPPORTED, "\"Einsum\" is a function of Keras called on a layer's output"},
	{TWO(", {\"class_name\": \"TFOpLambda\", \"config\": {\"name\": \"tf.norm\", "
	     "\"function\": \"norm\"}}"),
	 ST_UNSUPPORTED, "\"tf.norm\": \"TFOpLambda\" is a TensorFlow function"},
	{MODEL(INPUT("x") ", " FLATTEN("f", FROM("x")) ", " SUM("f", "3.5"), ENDS("x", "s")),
	 ST_UNSUPPORTED, "inbound_nodes[0][3].y: a constant as a layer's input is not supported"},
	{TWO(", {\"class_name\": \"Convolution2D\", \"config\": {}}"), ST_UNSUPPORTED,
	 "\"Convolution2D\" is Keras 1's name: since Keras 2 it is \"Conv2D\""},
	{"{\"class_name\": \"Sequential\", \"config\": [], \"keras_version\": \"1.2.2\"}",
	 ST_UNSUPPORTED, "keras_version: Keras 1.2.2 wrote this"},
	{"{\"layers\": [" UNNAMED ", {\"application\": \"Resnet5\"}]}", ST_INVALID,
	 "layers[1].application: |ResNet50"},
	{"{\"layers\": [{\"application\": \"ResNet50\", \"classes\": 3}]}", ST_INVALID,
	 "layers[0]: unknown option \"classes\""},
	{"{\"layers\": [" INPUT("x") "], \"input_layers\": 3}", ST_INVALID,
	 "input_layers: must be an array"},
	{"{\"class_name\": \"Sequential\", \"config\": {\"layers\": [" UNNAMED
	 "], \"input_layers\": 3}}",
	 ST_INVALID, "config: unknown option \"input_layers\""},
	{"{\"layers\": [{\"class_name\": \"Add\", \"config\": {}}]}", ST_INVALID,
	 "layers[0]: \"add\" (Add) takes at least 2 inputs: that needs a functional model"},
	{"{\"layers\": [" OBJECT("Dense", "\"units\": 2") ", " OBJECT("ReLU",
								      "\"max_value\": 6") "]}",
	 ST_INVALID,
	 "layers[1]: \"re_lu\" has the shared_object_id of \"dense\", a Dense: one layer has one "
	 "class"},
	{"{\"layers\": [" WIDE ", " OBJECT("Dense", "\"units\": 28") ", " OBJECT(
		 "Dense", "\"units\": 28, \"use_bias\": false") "]}",
	 ST_INVALID,
	 "layers[2]: \"dense_2\" has the shared_object_id of \"dense_1\", but other weights"},
	{"{\"layers\": [" WIDE
	 ", " OBJECT("Dense", "\"units\": 28, \"use_bias\": false") ", " OBJECT(
		 "Dense", "\"units\": 28") "]}",
	 ST_INVALID,
	 "layers[2]: \"dense_2\" has the shared_object_id of \"dense_1\", but other weights"},
	{"{\"layers\": [" OBJECT("Dense", "\"units\": 2") ", " OBJECT("Dense", "\"units\": 3") "]}",
	 ST_INVALID, " is another call of \"dense\", for whose kernel"},
	{"{\"layers\": [" SEQUENTIAL("s", "3") "]}", ST_INVALID,
	 "layers[0].config.layers[0]: must be an object"},
	{"{\"layers\": [" UNNAMED ", {\"class_name\": \"Sequential\", \"config\": {\"layers\": "
	 "[{\"class_name\": \"InputLayer\", \"config\": {\"batch_shape\": [null, 3]}}]}}]}",
	 ST_INVALID,
	 "layers[1].config.layers[0].config.batch_shape: the input shape (None, 3) does not fit"},
	{MODEL(INPUT("x") ", " FLAT ", " NESTED2("n", "[[[\"a\", 0, 0, {}], [\"x\", 0, 0, {}]]]"),
	       ENDS("x", "n")),
	 ST_INVALID, "inbound_nodes: \"n\" (Sequential) takes 1 input, but 2 come in"},
	{MODEL(INPUT("x") ", " FLAT ", " PAIR("n", "[[[\"a\", 0, 0, {}]]]"), ENDS("x", "n")),
	 ST_INVALID, "inbound_nodes: \"n\" (Functional) takes 2 inputs, but 1 comes in"},
	{MODEL(INPUT("x") ", " FLAT ", " NESTED2("n", "[[[\"a\", 2, 0, {}]]]"), ENDS("x", "n")),
	 ST_INVALID, "inbound_nodes[0][0][1]: \"a\" has 1 call here: there is none of number 2"},
};

/* Of a nested model in which a layer is called twice, too: its calls count from 1. */
static void test_a_layer_called_again_has_the_same_parameters(void **state)
{
	static const char *const names[] = {"a", "b_1", "d", "d_1", "d_2", "d_3", "s"};
	static const int inputs[] = {MODEL_INPUT, 0, 1, 2, 3, 4}, first[] = {0, 0, 2, 2, 2, 2};
	static const int params[] = {0, 1570, 6, 0, 0, 0};
	static const char twice[] = MODEL(
		INPUT("x") ", " FLAT ", " DENSE(
			"b_1", "2",
			FROM("a")) ", {\"class_name\": "
				   "\"Functional\", \"config\": {\"name\": \"b\", \"layers\": ["
				   "{\"class_name\": \"InputLayer\", \"config\": {\"name\": "
				   "\"y\"}}, " DENSE("d", "2",
						     "[[[\"y\", 0, 0, {}]], [[\"d\", 0, 0, "
						     "{}]]]") "], "
							      "\"input_layers\": [[\"y\", 0, "
							      "0]], \"output_layers\": [[\"d\", "
							      "1, 0]]}, "
							      "\"inbound_nodes\": [[[\"b_1\", "
							      "0, 0, {}]], [[\"b\", 1, 0, "
							      "{}]]]}, "
							      "{\"class_name\": \"Add\", "
							      "\"config\": {\"name\": \"s\"}, "
							      "\"inbound_nodes\": [[[\"b\", 1, "
							      "0, {}], [\"b\", 2, 0, {}]]]}",
		ENDS("x", "s"));
	struct model *m = support_model(twice, &mnist);

	(void)state;
	assert_int_equal(m->layer_count, 7);
	assert_int_equal(m->param_count, 4);
	for (int i = 0; i < 7; i++)
		assert_string_equal(m->layers[i].name, names[i]);
	for (int i = 0; i < 6; i++) {
		const struct model_layer *layer = &m->layers[i];

		assert_int_equal(layer->inputs[0], inputs[i]);
		assert_int_equal(layer->first_param, first[i]);
		assert_true(model_layer_again(m, layer) == (i > 2));
		assert_int_equal(model_layer_params(m, i), params[i]);
	}
	assert_int_equal(m->layers[6].inputs[0], 3);
	assert_int_equal(m->layers[6].inputs[1], 5);
	assert_string_equal(m->params[2].name, "d/kernel:0");
	assert_int_equal(m->row_count, 5);
	assert_int_equal(m->rows[3].input_count, 2);
	assert_int_equal(m->rows[3].inputs[1], 3);
	assert_int_equal(m->rows[4].calls[0], 0);
	assert_int_equal(m->rows[4].calls[1], 1);
	model_free(m);
}

static void test_calls_keep_their_parameters_in_the_order_of_stages(void **state)
{
	static const char *const names[] = {"a", "s", "s_1", "p", "j"};
	static const int stage[] = {0, 1, 0, 0, 1}, first[] = {0, 0, 0, 2, 4};
	struct model *m =
		support_model(MODEL(INPUT("x") ", " FLAT ", " DENSE("p", "2", FROM("a")) ", " DENSE(
					    "s", "3",
					    "[[[\"a\", 0, 0, {}]], [[\"a\", 0, 0, "
					    "{}]]]") ", "
						     "{\"class_name\": "
						     "\"Concatenate\", \"config\": "
						     "{\"name\": \"j\"}, "
						     "\"inbound_nodes\": "
						     "[[[\"s\", 0, 0, {}], [\"s\", 1, "
						     "0, {}], [\"p\", 0, 0, {}]]]}",
				    ENDS("x", "j")),
			      &mnist);

	(void)state;
	assert_int_equal(model_order(m, stage, NULL), ST_OK);
	for (int i = 0; i < 5; i++) {
		assert_string_equal(m->layers[i].name, names[i]);
		assert_int_equal(m->layers[i].first_param, first[i]);
	}
	assert_int_equal(m->param_count, 4);
	assert_string_equal(m->params[0].name, "s/kernel:0");
	assert_int_equal(m->params[0].layer, 1);
	assert_string_equal(m->params[2].name, "p/kernel:0");
	model_free(m);
}

/* Inputs of a nested model go by its "input_layers", not by the order of its layers. */
static void test_nested_models_of_several_inputs(void **state)
{
	struct model *m =
		support_model(MODEL(INPUT("x") ", " FLAT ", " DENSE("b", "5", FROM("a")) ", " PAIR(
					    "n", "[[[\"b\", 0, 0, {}], [\"a\", 0, 0, {}]]]"),
				    ENDS("x", "n")),
			      &mnist);

	(void)state;
	assert_int_equal(m->layer_count, 5);
	assert_string_equal(m->layers[2].name, "n/b");
	assert_int_equal(m->layers[2].inputs[0], 0);
	assert_string_equal(m->layers[3].name, "c");
	assert_int_equal(m->layers[3].inputs[0], 2);
	assert_int_equal(m->layers[3].inputs[1], 1);
	assert_int_equal(m->layers[3].output.dim[0], 8);
	assert_string_equal(m->layers[4].name, "d");
	assert_int_equal(m->row_count, 4);
	assert_int_equal(m->rows[3].input_count, 2);
	assert_int_equal(m->rows[3].inputs[0], 2);
	assert_int_equal(m->rows[3].inputs[1], 1);
	model_free(m);
}

/* Inputs are parts of one row, in the order of "input_layers" and not of the layers. */
static void test_models_of_several_inputs(void **state)
{
	static const char *const texts[] = {
		MODEL(PART("y", "2") ", " PART("x", "3") ", " JOIN, TWO_ENDS),
		MODEL(PART("y", "2") ", " PART("x", "3") ", " JOIN,
		      "\"input_layers\": {\"k\": [\"x\", 0, 0], \"j\": [\"y\", 0, 0]}, "
		      "\"output_layers\": [[\"a\", 0, 0]]"),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct model *model = support_model(texts[i], NULL);

		assert_int_equal(model->input.ndim, 1);
		assert_int_equal(model->input.dim[0], 5);
		assert_int_equal(model->part_count, 2);
		assert_string_equal(model->parts[0].name, "x");
		assert_int_equal(model->parts[0].first, 0);
		assert_string_equal(model->parts[1].name, "y");
		assert_int_equal(model->parts[1].first, 3);
		assert_int_equal(model->layer_count, 3);
		assert_int_equal(model->row_count, 3);
		assert_string_equal(model_layer_class(&model->layers[0]), "InputLayer");
		assert_int_equal(model->layers[0].inputs[0], MODEL_INPUT);
		assert_int_equal(model->layers[2].output.dim[0], 5);
		model_free(model);
	}
}

/* One of them is in the middle, and a layer has taken the name of the one that joins them. */
static void test_models_of_several_outputs(void **state)
{
	static const char text[] =
		MODEL(PART("x", "2, 3") ", " FLATTEN("outputs", FROM("x")) ", " FLATTEN(
			      "b", FROM("outputs")) ", " FLATTEN("c", FROM("b")),
		      "\"input_layers\": [[\"x\", 0, 0]], "
		      "\"output_layers\": [[\"c\", 0, 0], [\"outputs\", 0, 0]]");
	struct model *model = support_model(text, NULL);
	const struct model_layer *join = &model->layers[model->layer_count - 1];

	(void)state;
	assert_int_equal(model->output_count, 2);
	assert_string_equal(model->outputs[0].name, "c");
	assert_int_equal(model->outputs[0].first, 0);
	assert_string_equal(model->outputs[1].name, "outputs");
	assert_int_equal(model->outputs[1].first, 6);
	assert_int_equal(model->outputs[1].shape.dim[0], 6);
	assert_int_equal(model->layer_count, 4);
	assert_int_equal(model->row_count, 4);
	assert_string_equal(join->name, "m/outputs");
	assert_int_equal(join->output.ndim, 1);
	assert_int_equal(join->output.dim[0], 12);
	assert_int_equal(join->inputs[0], 2);
	assert_int_equal(join->inputs[1], 0);
	model_free(model);
}

static void test_bad_graphs_are_refused_with_their_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
		support_assert_refused(&refusals[i], &mnist);
}

/* Of sequences (5, 2). */
#define RNN(class_name, name, more, from)                                                          \
	"{\"class_name\": \"" class_name "\", \"config\": {\"name\": \"" name                      \
	"\", \"units\": 3" more "}, \"inbound_nodes\": [[" from "]]}"
#define OUTPUT_OF(name, output) "[\"" name "\", 0, " output ", {}]"
#define STATES(layers, ends)                                                                       \
	MODEL("{\"class_name\": \"InputLayer\", \"config\": {\"batch_input_shape\": [null, 5, "    \
	      "2], "                                                                               \
	      "\"name\": \"x\"}, \"inbound_nodes\": []}, " layers,                                 \
	      ends)
#define ENCODER RNN("LSTM", "e", ", \"return_state\": true", OUTPUT_OF("x", "0")) ", "

/* An encoder alone, as one takes it out of a model to predict: its states are the outputs. */
static void test_states_are_outputs(void **state)
{
#define ENDS_IN(outputs) "\"input_layers\": [[\"x\", 0, 0]], \"output_layers\": [" outputs "]"
#define LSTM_ALONE       RNN("LSTM", "e", ", \"return_state\": true", OUTPUT_OF("x", "0"))
	struct model *m =
		support_model(STATES(LSTM_ALONE, ENDS_IN("[\"e\", 0, 2], [\"e\", 0, 1]")), NULL);
	const int *inputs;

	(void)state;
	assert_int_equal(m->output_count, 2);
	assert_string_equal(m->outputs[0].name, "e");
	assert_string_equal(m->outputs[1].name, "e_1");
	inputs = m->layers[m->layer_count - 1].inputs;
	assert_string_equal(m->layers[inputs[0]].name, "e/c");
	assert_string_equal(m->layers[inputs[1]].name, "e/h");
	model_free(m);

	/* One that is not the last layer is handed on. */
	m = support_model(STATES(LSTM_ALONE, ENDS_IN("[\"e\", 0, 1]")), NULL);
	assert_int_equal(m->output_count, 1);
	assert_string_equal(m->layers[m->layer_count - 1].name, "outputs");
	inputs = m->layers[m->layer_count - 1].inputs;
	assert_string_equal(m->layers[inputs[0]].name, "e/h");
	assert_int_equal(m->layers[m->layer_count - 1].output.dim[0], m->outputs[0].shape.dim[0]);
	model_free(m);
}

static void test_states_are_layers_of_their_own(void **state)
{
	static const char *const names[] = {"e", "e/output", "e/h", "e/c", "d"};
	static const struct support_refusal bad[] = {
		{STATES(ENCODER RNN("LSTM", "d", "", OUTPUT_OF("x", "0") ", " OUTPUT_OF("e", "1")),
			ENDS("x", "d")),
		 ST_INVALID, "1 initial state comes in: LSTM has 2"},
		{STATES(ENCODER RNN("GRU", "d", "", OUTPUT_OF("x", "0") ", " OUTPUT_OF("e", "3")),
			ENDS("x", "d")),
		 ST_INVALID, "\"e\" has outputs 0 to 2"},
		{STATES(RNN("GRU", "e", "", OUTPUT_OF("x", "0")) ", " RNN(
				"GRU", "d", "", OUTPUT_OF("x", "0") ", " OUTPUT_OF("e", "1")),
			ENDS("x", "d")),
		 ST_UNSUPPORTED, "\"e\" has one output here"},
		{STATES(RNN("GRU", "d", "", OUTPUT_OF("x", "0") ", " OUTPUT_OF("x", "0")),
			ENDS("x", "d")),
		 ST_INVALID, "an initial state must have 3 numbers"},
		{STATES(ENCODER
			"{\"class_name\": \"Bidirectional\", \"config\": {\"name\": \"d\", "
			"\"layer\": {\"class_name\": \"LSTM\", \"config\": {\"units\": 3}}}, "
			"\"inbound_nodes\": [[" OUTPUT_OF("x", "0") ", " OUTPUT_OF(
				"e", "1") ", " OUTPUT_OF("e", "2") "]]}",
			ENDS("x", "d")),
		 ST_INVALID, "2 initial states come in: \"d\" has 4, of both directions"},
		{STATES(RNN("LSTM", "e", ", \"return_state\": true", OUTPUT_OF("x", "0")),
			"\"input_layers\": [[\"x\", 0, 0]], \"output_layers\": [[\"e\", 0, 3]]"),
		 ST_INVALID, "\"e\" has outputs 0 to 2"},
	};
	struct model *m =
		support_model(STATES(ENCODER RNN("LSTM", "d", ", \"return_state\": true",
						 OUTPUT_OF("x", "0") ", " OUTPUT_OF(
							 "e", "1") ", " OUTPUT_OF("e", "2")),
				     ENDS("x", "d")),
			      NULL);

	(void)state;
	assert_int_equal(m->layer_count, 5);
	for (int i = 0; i < m->layer_count; i++)
		assert_string_equal(m->layers[i].name, names[i]);
	assert_int_equal(m->layers[0].output.dim[0], 9);
	assert_int_equal(m->layers[4].inputs[1], 2);
	assert_int_equal(m->layers[4].inputs[2], 3);
	assert_int_equal(m->layers[4].output.dim[0], 3);
	model_free(m);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		support_assert_refused(&bad[i], NULL);
}

/* A model of two outputs; the outputs and states of both directions. */
static void test_outputs_are_those_of_the_last_layers(void **state)
{
#define SPLIT(name, from)                                                                          \
	"{\"class_name\": \"Functional\", \"name\": \"" name "\", \"config\": {\"name\": \"" name  \
	"\", \"layers\": [{\"class_name\": \"InputLayer\", \"config\": {\"batch_input_shape\": "   \
	"[null, 5, 2], \"name\": \"i\"}, \"inbound_nodes\": []}, " DENSE(                          \
		"p", "3", FROM("i")) ", " DENSE("q", "4",                                          \
						FROM("i")) "], \"input_layers\": [[\"i\", 0, "     \
							   "0]], \"output_layers\": "              \
							   "[[\"p\", 0, 0], [\"q\", 0, 0]]}" from  \
							   "}"
#define BOTH_WAYS(merge, more, from)                                                               \
	"{\"class_name\": \"Bidirectional\", \"name\": \"b\", \"config\": {\"name\": \"b\", "      \
	"\"merge_mode\": " merge                                                                   \
	", \"layer\": {\"class_name\": \"LSTM\", \"config\": {\"units\": "                         \
	"3" more "}}}" from "}"
#define INBOUND ", \"inbound_nodes\": [[[\"x\", 0, 0, {}]]]"
	static const struct {
		const char *layer, *name;
		int outputs;
	} rows[] = {
		{SPLIT("s", INBOUND), "s", 2},
		{BOTH_WAYS("null", "", INBOUND), "b", 2},
		{BOTH_WAYS("\"sum\"", ", \"return_state\": true", INBOUND), "b", 5},
		{BOTH_WAYS("null", ", \"return_state\": true", INBOUND), "b", 6},
		{BOTH_WAYS("\"sum\"", "", INBOUND), "b", 1},
	};
	static const struct support_refusal bad[] = {
		{"{\"layers\": [" SPLIT("s", "") "]}", ST_INVALID,
		 "layers[0]: \"s\" has 2 outputs: that needs a functional model"},
		{"{\"layers\": [" BOTH_WAYS("null", "", "") "]}", ST_INVALID,
		 "layers[0]: \"b\" has 2 outputs: that needs a functional model"},
		{"{\"layers\": [" BOTH_WAYS("\"sum\"", ", \"return_state\": true", "") "]}",
		 ST_INVALID, "layers[0]: \"b\" has 5 outputs: that needs a functional model"},
	};
	const struct model_shape steps = {.ndim = 2, .dim = {5, 2}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (int output = 0; output <= rows[i].outputs; output++) {
			char *ends = mem_printf("\"input_layers\": [[\"x\", 0, 0]], "
						"\"output_layers\": [[\"%s\", 0, %d]]",
						rows[i].name, output);
			char *text = mem_printf(STATES("%s", "%s"), rows[i].layer, ends);
			struct model *model;
			struct err err = {0};

			assert_non_null(text);
			if (support_model_read(&model, text, NULL, &err) == ST_OK)
				assert_true(output < rows[i].outputs);
			else if (output == 0 || output < rows[i].outputs)
				fail_msg("%s, output %d: %s", rows[i].name, output, err.text);
			model_free(model);
			mem_free(text);
			mem_free(ends);
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		support_assert_refused(&bad[i], &steps);
}

static void test_names_of_tensorflow_2_1_name_their_replacement(void **state)
{
	static const struct {
		const char *class_name, *says;
	} classes[] = {
		{"IPUModel", "\"IPUModel\" was removed with TensorFlow 2.4: use \"Functional\""},
		{"ipu.keras.Model", "use \"Functional\""},
		{"IPUSequential", "use \"Sequential\""},
		{"ipu.keras.Sequential", "use \"Sequential\""},
		{"tensorflow.python.ipu.keras.Sequential", "use \"Sequential\""},
		{"PipelineModel", "pipeline.stages"},
		{"ipu.keras.PipelineSequential", "use \"Sequential\"|pipeline.stages"},
	};
	static const struct {
		const char *key, *says;
	} keys[] = {
		{"gradient_accumulation_count", "gradient_accumulation.steps_per_replica"},
		{"gradient_accumulation_dtype", "gradient_accumulation.dtype"},
		{"repeat_count", "leave it out"},
		{"batch_serialization_iterations", "gradient_accumulation.steps_per_replica"},
		{"device_mapping", "pipeline.device_mapping"},
		{"pipeline_schedule", "pipeline.schedule"},
		{"recomputation_mode", "pipeline.recomputation_mode"},
		{"forward_propagation_stages_poplar_options",
		 "pipeline.forward_propagation_stages_poplar_options"},
		{"backward_propagation_stages_poplar_options",
		 "pipeline.backward_propagation_stages_poplar_options"},
		{"weight_update_poplar_options", "pipeline.weight_update_poplar_options"},
		{"offload_weight_update_variables", "pipeline.offload_weight_update_variables"},
		{"replicated_optimizer_state_sharding",
		 "pipeline.replicated_optimizer_state_sharding"},
		{"offload_activations", "pipeline.offload_activations"},
		{"offload_gradient_accumulation_buffers",
		 "pipeline.offload_gradient_accumulation_buffers"},
		{"replicated_weight_sharding", "pipeline.replicated_weight_sharding"},
		{"offload_weights", "pipeline.offload_weights"},
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
		const struct support_refusal refusal = {text, ST_UNSUPPORTED, classes[i].says};

		snprintf(text, sizeof(text), "{\"class_name\": \"%s\", \"config\": {}}",
			 classes[i].class_name);
		support_assert_refused(&refusal, &mnist);
		snprintf(text, sizeof(text),
			 "{\"layers\": [{\"class_name\": \"%s\", \"config\": {}}]}",
			 classes[i].class_name);
		support_assert_refused(&refusal, &mnist);
	}
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const struct support_refusal refusal = {text, ST_UNSUPPORTED, keys[i].says};

		snprintf(text, sizeof(text),
			 "{\"class_name\": \"Sequential\", \"config\": {\"layers\": [" UNNAMED
			 "], \"%s\": 1}}",
			 keys[i].key);
		support_assert_refused(&refusal, &mnist);
	}
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void test_models_may_be_nested_but_not_for_ever(void **state)
{
	static const int depths[] = {30, 100};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(depths); i++) {
		struct str text = {0};
		struct model *model;
		enum status status;
		struct err err;

		for (int j = 0; j < depths[i]; j++)
			str_add(&text,
				"{\"class_name\": \"Sequential\", \"config\": {\"layers\": [");
		str_add(&text, UNNAMED);
		for (int j = 0; j < depths[i]; j++)
			str_add(&text, "]}}");
		status = support_model_read(&model, str_peek(&text), &mnist, &err);
		assert_int_equal(status, i ? ST_INVALID : ST_OK);
		if (i)
			assert_contains(err.text, "nested more than 32 deep");
		model_free(model);
		str_free(&text);
	}
}

static void test_thousands_of_layers_in_any_order(void **state)
{
	enum {
		COUNT = 16000
	};
	struct str text = {0};
	struct model *m;

	(void)state;
	str_add(&text, "{\"layers\": [");
	for (int i = COUNT - 1; i >= 0; i--)
		str_addf(&text,
			 "{\"class_name\": \"Flatten\", \"config\": {\"name\": \"f%d\"}, "
			 "\"inbound_nodes\": [[[\"f%d\", 0, 0, {}]]]}, ",
			 i, i - 1);
	str_add(&text, INPUT("f-1") "], \"input_layers\": [[\"f-1\", 0, 0]], ");
	str_addf(&text, "\"output_layers\": [[\"f%d\", 0, 0]]}", COUNT - 1);
	m = support_model(str_peek(&text), &mnist);
	assert_int_equal(m->layer_count, COUNT);
	assert_string_equal(m->layers[COUNT - 1].name, "f15999");
	model_free(m);
	str_free(&text);
}

static void test_no_memory_leaves_nothing(void **state)
{
	char path[SUPPORT_PATH_SIZE], *text;

	(void)state;
	snprintf(path, sizeof(path), "%s/tests/golden/keras3_residual.json", support_source_dir());
	text = support_read_file(path, NULL);
	support_model_no_memory(text, &mnist);
	free(text);
}

/* The last test, of all models that the others have read. */
static void test_nothing_of_these_models_changes_unseen(void **state)
{
	(void)state;
	support_assert_models(UINT64_C(0x9bdfd98d58cc74a9));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functional_models_of_keras_2_and_3_are_the_same),
		cmocka_unit_test(test_rows_of_a_sequential_model_have_no_input_layer),
		cmocka_unit_test(test_a_nested_model_is_dissolved_and_has_one_row),
		cmocka_unit_test(test_the_order_of_the_list_does_not_matter),
		cmocka_unit_test(test_branches_come_in_the_order_of_the_list),
		cmocka_unit_test(test_a_residual_model_of_keras_2_and_3),
		cmocka_unit_test(test_sums_of_tensorflow_are_layers),
		cmocka_unit_test(test_masks_of_keras_3_are_those_of_the_layers),
		cmocka_unit_test(test_stages_cut_a_residual_model_where_it_can_be_cut),
		cmocka_unit_test(test_applications_are_read_like_any_model),
		cmocka_unit_test(test_older_sequential_models_are_lists),
		cmocka_unit_test(test_functional_models_in_a_row_count_their_objects_each),
		cmocka_unit_test(test_functional_models_in_another_share_their_objects),
		cmocka_unit_test(test_the_model_class_of_tensorflow_1),
		cmocka_unit_test(test_open_shapes_are_filled_from_the_data),
		cmocka_unit_test(test_default_names_are_keras),
		cmocka_unit_test(test_names_give_way_through_all_models_around),
		cmocka_unit_test(test_trainable_false_freezes_all_below),
		cmocka_unit_test(test_training_false_of_a_call),
		cmocka_unit_test(test_models_of_several_inputs),
		cmocka_unit_test(test_nested_models_of_several_inputs),
		cmocka_unit_test(test_models_of_several_outputs),
		cmocka_unit_test(test_a_layer_called_again_has_the_same_parameters),
		cmocka_unit_test(test_calls_keep_their_parameters_in_the_order_of_stages),
		cmocka_unit_test(test_bad_graphs_are_refused_with_their_place),
		cmocka_unit_test(test_states_are_outputs),
		cmocka_unit_test(test_states_are_layers_of_their_own),
		cmocka_unit_test(test_outputs_are_those_of_the_last_layers),
		cmocka_unit_test(test_names_of_tensorflow_2_1_name_their_replacement),
		cmocka_unit_test(test_models_may_be_nested_but_not_for_ever),
		cmocka_unit_test(test_thousands_of_layers_in_any_order),
		cmocka_unit_test(test_no_memory_leaves_nothing),
		cmocka_unit_test(test_nothing_of_these_models_changes_unseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
