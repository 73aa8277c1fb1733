/*
 * Models that are read or refused: what is said of each, and a digest of all that was read, is that
 * of before, a line for each text in tests/golden/models.txt, which UPDATE_GOLDEN=1 rewrites.
 */
#include <inttypes.h>
#include <string.h>

#include "common/fs.h"
#include "common/mem.h"
#include "support/model_texts.h"

/* clang-format off */
#define SEQUENTIAL(layers) "{'class_name': 'Sequential', 'config': {'name': 's', 'layers': [" layers "]}}"
#define LAYER(class_name, config) "{'class_name': '" class_name "', 'config': {" config "}}"
#define ROW(more)   LAYER("Dense", "'units': 3, 'batch_input_shape': [null, 5]" more)
#define STEPS(more) LAYER("InputLayer", "'batch_input_shape': [null, 5, 2]") ", " more
#define INIT(init)  SEQUENTIAL(ROW(", 'kernel_initializer': {'class_name': " init "}"))
#define REGULAR(it) SEQUENTIAL(ROW(", 'kernel_regularizer': " it))

#define FUNCTIONAL(layers, inputs, outputs)                                                        \
	"{'class_name': 'Functional', 'config': {'name': 'f', 'layers': [" layers                  \
	"], 'input_layers': [" inputs "], 'output_layers': [" outputs "]}}"
#define IN(name, config) "{'class_name': 'InputLayer', 'config': {'name': '" name "', " config "}, 'inbound_nodes': []}"
#define NODE(class_name, name, config, from)                                                       \
	", {'class_name': '" class_name "', 'name': '" name "', 'config': {'name': '" name "'" config "}, 'inbound_nodes': [" from "]}"
#define AT(name, output)  "['" name "', 0, " output ", {}]"
#define END(name)         "['" name "', 0, 0]"
#define X                 IN("x", "'batch_input_shape': [null, 5, 2]")
#define Y(shape)          ", " IN("y", "'batch_input_shape': " shape)
#define FLAT(name, from)  NODE("Flatten", name, "", "[" AT(from, "0") "]")
#define JOIN(class_name, config, x, y)                                                             \
	FUNCTIONAL(IN("x", x) ", " IN("y", y) NODE(class_name, "a", config, "[" AT("x", "0") ", " AT("y", "0") "]"), \
		   END("x") ", " END("y"), END("a"))
#define PAIR(x, y)    JOIN("Add", "", x, y)
#define SHAPES(class_name, config, x, y) JOIN(class_name, config, "'batch_input_shape': " x, "'batch_input_shape': " y)
#define ENDS              END("a") ", " END("a") ", " END("a") ", " END("a")
#define MIXED(name, dtype) NODE("Dense", name, ", 'units': 2, 'dtype': '" dtype "'", "[" AT("a", "0") "]")
#define TENSOR(name) "{'class_name': '__keras_tensor__', 'config': {'keras_history': ['" name "', 0, 0]}}"
#define OPERATION(class_name, name, args)                                                          \
	", {'class_name': '" class_name "', 'module': 'keras.src.ops.numpy', 'name': '" name       \
	"', 'config': {'name': '" name "'}, 'inbound_nodes': [{'args': [" args "], 'kwargs': {}}]}"
#define MASKED(maker, operations, mask)                                                            \
	"{'class_name': 'Functional', 'config': {'name': 'f', 'layers': ["                         \
	"{'class_name': 'InputLayer', 'name': 'x', 'config': {'name': 'x', 'batch_shape': [null, 5, 2]}, 'inbound_nodes': []}" \
	", {" maker ", 'name': 'm', 'inbound_nodes': [{'args': [" TENSOR("x") "], 'kwargs': {}}]}" operations \
	", {'class_name': 'LSTM', 'name': 'l', 'config': {'name': 'l', 'units': 3}, 'inbound_nodes': [{'args': ["    \
	TENSOR("m") "], 'kwargs': {'mask': " mask "}}]}], 'input_layers': [['x', 0, 0]], 'output_layers': [['l', 0, 0]]}}"
#define MASKING(value) "'class_name': 'Masking', 'config': {'name': 'm', 'mask_value': " value "}"
#define RNN(name, more, from) NODE("LSTM", name, ", 'units': 3" more, "[" from "]")
#define BOTH(more) LAYER("Bidirectional", "'layer': " LAYER("GRU", "'units': 3, 'return_sequences': true") more)

/* ' stands for a quotation mark. */
static const char *const texts[] = {
	/* Inputs. */
	PAIR("'batch_input_shape': [null, 3]", "'batch_input_shape': [null, 3]"),
	PAIR("'batch_input_shape': [2, 3]", "'batch_shape': [2, 3]"),
	PAIR("'batch_input_shape': [2, 3]", "'batch_input_shape': [null, 3]"),
	PAIR("'batch_input_shape': [2, 3]", "'batch_input_shape': [4, 3]"),
	PAIR("'batch_input_shape': [null, 3]", "'dtype': 'float32'"),
	PAIR("'batch_input_shape': [null, 3]", "'batch_input_shape': [null]"),
	PAIR("'batch_input_shape': [null, 3]", "'batch_input_shape': [null, null]"),
	PAIR("'batch_input_shape': [null, 40000, 40000]", "'batch_input_shape': [null, 40000, 40000]"),
	SEQUENTIAL(LAYER("InputLayer", "'batch_input_shape': [null, null, 2]") ", " LAYER("Flatten", "")),
	SEQUENTIAL(LAYER("InputLayer", "'batch_input_shape': [8, 2]") ", " LAYER("Dense", "'units': 2, 'batch_input_shape': [4, 2]")),
	SHAPES("Concatenate", "", "[null, 4]", "[null, 5]"), SHAPES("Concatenate", "", "[null, 4, 5, 2]", "[null, 4, 5, 3]"),
	SHAPES("Concatenate", "", "[null, 4, 5, 2]", "[null, 4, 6, 2]"), SHAPES("Concatenate", "", "[null, 4, 5, 2]", "[null, 3, 5, 2]"),
	SHAPES("Concatenate", "", "[null, 4]", "[null, 4, 5]"), SHAPES("Concatenate", ", 'axis': 1", "[null, 4, 5]", "[null, 4, 5]"),
	SHAPES("Add", "", "[null, 4, 5]", "[null, 4, 6]"), SHAPES("Multiply", "", "[null, 4, 5, 2]", "[null, 1, 1, 2]"),
	SHAPES("Multiply", "", "[null, 4, 5, 2]", "[null, 2]"), SHAPES("Multiply", "", "[null, 4]", "[null, 1]"),
	SHAPES("Average", "", "[null, 4]", "[null, 4]"), SHAPES("Maximum", "", "[null, 4]", "[null, 4]"), SHAPES("Minimum", "", "[null, 3]", "[null, 4]"),
	/* Options of layers. */
	SEQUENTIAL(ROW(", 'name': '" "0123456789012345678901234567890123456789012345678901234567890123456789"
		       "0123456789012345678901234567890123456789012345678901234567890123456789" "'")),
	SEQUENTIAL(ROW(", 'name': 'a\\u001fb'")), SEQUENTIAL(ROW(", 'name': 'a\\u007fb'")), SEQUENTIAL(ROW(", 'name': 'a b'")),
	SEQUENTIAL(ROW(", 'activation': {'class_name': 'function', 'config': 'relu'}")),
	SEQUENTIAL(ROW(", 'activation': {'class_name': 'function'}")),
	SEQUENTIAL(ROW(", 'activation': {'class_name': 'ReLU', 'config': {}}")),
	SEQUENTIAL(ROW(", 'activation': null, 'dtype': 'mixed_bfloat16'")),
	SEQUENTIAL(ROW(", 'dtype': {'class_name': 'Policy', 'config': {'name': 'float32'}}") ", " LAYER("Dense", "'units': 2, 'dtype': 'mixed_float16'")),
	SEQUENTIAL(ROW("") ", " LAYER("LeakyReLU", "'alpha': 3e38")), SEQUENTIAL(ROW("") ", " LAYER("LeakyReLU", "'alpha': 3.1e38")),
	SEQUENTIAL(ROW("") ", " LAYER("ELU", "'alpha': -1")), SEQUENTIAL(ROW("") ", " LAYER("Dropout", "'rate': 1")),
	SEQUENTIAL(ROW("") ", " LAYER("AlphaDropout", "'rate': 0.5, 'noise_shape': [null, 1]")),
	SEQUENTIAL(ROW("") ", " LAYER("Dropout", "'rate': 0.5, 'noise_shape': [null, 3], 'seed': 4")),
	/* Initial values and penalties. */
	INIT("'VarianceScaling', 'config': {'scale': 2, 'mode': 'fan_out', 'distribution': 'untruncated_normal'}"),
	INIT("'VarianceScaling', 'config': {'scale': 2, 'mode': 'fan_avg', 'distribution': 'uniform'}"),
	INIT("'VarianceScaling', 'config': {'mode': 'fan_in', 'distribution': 'truncated_normal'}"),
	INIT("'VarianceScaling', 'config': {'mode': 'fan_in', 'distribution': 'normal'}"), INIT("'VarianceScaling', 'config': {'scale': 0}"),
	INIT("'VarianceScaling', 'config': {'mode': 'fan'}"), INIT("'VarianceScaling', 'config': {'distribution': 'flat'}"),
	INIT("'RandomNormal', 'config': {'mean': 1, 'stddev': -0.5}"), INIT("'RandomNormal', 'config': {'mean': 1, 'stddev': 0}"),
	INIT("'RandomUniform', 'config': {'minval': 1, 'maxval': 0.5}"), INIT("'RandomUniform', 'config': {'minval': 1, 'maxval': 1}"),
	INIT("'TruncatedNormal', 'config': {'stddev': 0.25, 'seed': 3}"), INIT("'Constant', 'config': {'value': 2}"),
	INIT("'Orthogonal', 'config': {'gain': 2}"), INIT("'Ones', 'config': {'value': 2}"),
	REGULAR("{'class_name': 'L1', 'config': {'l1': -0.1}}"), REGULAR("{'class_name': 'L2', 'config': {'l2': 3.1e38}}"),
	REGULAR("{'class_name': 'L1L2', 'config': {'l1': 0.5}}"), REGULAR("{'class_name': 'L1', 'config': {}}"), REGULAR("'l1_l2'"), REGULAR("'l1'"),
	/* Calls and their ends. */
	FUNCTIONAL(X FLAT("outputs", "x") NODE("Dense", "b", ", 'units': 2", "[" AT("outputs", "0") "]") NODE("Dense", "c", ", 'units': 2", "[" AT("outputs", "0") "]"),
		   END("x"), END("c") ", " END("b")),
	FUNCTIONAL(X FLAT("a", "x") NODE("Dense", "b", ", 'units': 2", "[" AT("a", "0") "]"), END("x"), END("b") ", " END("a")),
	FUNCTIONAL(X RNN("l", ", 'return_state': true", AT("x", "0")) FLAT("l_1", "x"), END("x"), "['l', 0, 0], ['l', 0, 1], ['l_1', 0, 0]"),
	FUNCTIONAL(X FLAT("a", "x"), "['x', 0, 0], ['x', 0, 0]", END("a")), FUNCTIONAL(X FLAT("a", "x"), "'x', 0, 0", "'a', 0, 0"),
	FUNCTIONAL("{'class_name': 'InputLayer', 'config': {'name': 'x', 'batch_input_shape': [null, 5, 2]}, 'inbound_nodes': [[['x', 0, 0, {}]]]}"
		   FLAT("a", "x"), END("x"), END("a")),
	FUNCTIONAL(X NODE("Concatenate", "c", "", "[" AT("x", "0") "]"), END("x"), END("c")),
	FUNCTIONAL(X NODE("Subtract", "c", "", "[" AT("x", "0") ", " AT("x", "0") ", " AT("x", "0") "]"), END("x"), END("c")),
	FUNCTIONAL(X NODE("Attention", "c", "", "[['x', 0, 0, {'value': ['x', 0, 0], 'key': ['x', 0, 0]}]]"), END("x"), END("c")),
	FUNCTIONAL(X NODE("Attention", "c", "", "[['x', 0, 0, {'value': ['x', 0, 0], 'return_attention_scores': false}]]"), END("x"), END("c")),
	FUNCTIONAL(X NODE("Attention", "c", "", "[['x', 0, 0, {'value': ['x', 0, 0], 'return_attention_scores': true}]]"), END("x"), END("c")),
	FUNCTIONAL(X NODE("Dense", "c", ", 'units': 2", "[['x', 0, 0, {'value': ['x', 0, 0]}]]"), END("x"), END("c")),
	FUNCTIONAL(X FLAT("a", "x") RNN("l", ", 'return_state': true", AT("x", "0")) RNN("k", "", "['x', 0, 0, {'initial_state': [['l', 0, 1], ['l', 0, 2]]}]"),
		   END("x"), END("k")),
	FUNCTIONAL(X RNN("l", ", 'return_state': true", AT("x", "0")) RNN("k", "", "['x', 0, 0, {'initial_state': [['l', 0, 1]]}]"), END("x"), END("k")),
	FUNCTIONAL(X RNN("l", "", AT("x", "0")) RNN("k", "", "['x', 0, 0, {'initial_state': [['l', 0, 1], ['l', 0, 2]]}]"), END("x"), END("k")),
	FUNCTIONAL(X FLAT("a", "x") NODE("Dense", "b", ", 'units': 2", "[['a', 0, 0, {'initial_state': [['a', 0, 0]]}]]"), END("x"), END("b")),
	FUNCTIONAL(X RNN("l", ", 'return_state': true", AT("x", "3")), END("x"), END("l")), FUNCTIONAL(X RNN("l", ", 'return_state': true", AT("x", "0")), END("x"), "['l', 0, 3]"),
	FUNCTIONAL(X FLAT("a", "x"), END("x"), ENDS ", " ENDS ", " ENDS ", " ENDS ", " END("a")),
	FUNCTIONAL(X FLAT("a", "x") MIXED("b", "float32") MIXED("c", "mixed_float16"), END("x"), END("b") ", " END("c")),
	FUNCTIONAL(X FLAT("a", "x") MIXED("b", "mixed_float16") MIXED("c", "float32"), END("x"), END("b") ", " END("c")),
	FUNCTIONAL(X FLAT("a", "x") MIXED("b", "mixed_bfloat16") MIXED("c", "mixed_bfloat16"), END("x"), END("b") ", " END("c")),
	/* Masks. */
	MASKED(MASKING("0.0"), OPERATION("NotEqual", "n", TENSOR("x") ", 0") OPERATION("Any", "y", TENSOR("n")), TENSOR("y")),
	MASKED(MASKING("2.0"), OPERATION("NotEqual", "n", TENSOR("x") ", 2.0") OPERATION("Any", "y", TENSOR("n")), TENSOR("y")),
	MASKED(MASKING("2.0"), OPERATION("NotEqual", "n", TENSOR("x") ", 0") OPERATION("Any", "y", TENSOR("n")), TENSOR("y")),
	MASKED(MASKING("0.0"), OPERATION("NotEqual", "n", TENSOR("m") ", 0") OPERATION("Any", "y", TENSOR("n")), TENSOR("y")),
	MASKED(MASKING("0.0"), OPERATION("NotEqual", "n", TENSOR("x")), "null"), MASKED(MASKING("0.0"), OPERATION("Any", "y", TENSOR("x")), TENSOR("y")),
	MASKED(MASKING("0.0"), OPERATION("Any", "y", TENSOR("z")), TENSOR("y")), MASKED(MASKING("0.0"), "", "null"),
	MASKED("'class_name': 'Dense', 'config': {'name': 'm', 'units': 2}", OPERATION("NotEqual", "n", TENSOR("x") ", 0"), TENSOR("n")),
	FUNCTIONAL(X NODE("Masking", "m", "", "[" AT("x", "0") "]") NODE("Masking", "n", ", 'mask_value': 1", "[" AT("x", "0") "]")
		   NODE("Add", "a", "", "[" AT("m", "0") ", " AT("n", "0") "]") RNN("l", "", AT("a", "0")), END("x"), END("l")),
	FUNCTIONAL(X NODE("Masking", "m", "", "[" AT("x", "0") "]") NODE("Attention", "a", "", "[" AT("m", "0") ", " AT("x", "0") ", " AT("m", "0") "]"), END("x"), END("a")),
	FUNCTIONAL(X NODE("Masking", "m", "", "[" AT("x", "0") "]") NODE("Dense", "d", ", 'units': 2", "[" AT("m", "0") "]") RNN("l", ", 'return_sequences': true", AT("d", "0")), END("x"), END("l")),
	/* Layers around layers. */
	SEQUENTIAL(STEPS(BOTH(", 'merge_mode': 'sum'"))), SEQUENTIAL(STEPS(BOTH(", 'merge_mode': 'mul', 'trainable': false"))), SEQUENTIAL(STEPS(BOTH(", 'merge_mode': 'ave'"))),
	SEQUENTIAL(STEPS(BOTH(", 'merge_mode': 'add'"))), SEQUENTIAL(STEPS(BOTH(", 'merge_mode': null"))), SEQUENTIAL(STEPS(BOTH(", 'merge_mod': 'sum'"))),
	SEQUENTIAL(LAYER("Bidirectional", "'batch_input_shape': [null, 5, 2], 'layer': " LAYER("LSTM", "'name': 'x', 'units': 3, 'go_backwards': true, 'batch_input_shape': [null, 9]")
			 ", 'backward_layer': " LAYER("LSTM", "'name': 'y', 'units': 3, 'use_bias': false"))),
	SEQUENTIAL(STEPS(LAYER("Bidirectional", "'layer': " LAYER("Dense", "'units': 3")))), SEQUENTIAL(STEPS(LAYER("Bidirectional", ""))),
	SEQUENTIAL(STEPS(LAYER("Bidirectional", "'layer': {'config': {}}"))), SEQUENTIAL(STEPS(LAYER("Bidirectional", "'layer': {'class_name': 'GRU'}"))),
	SEQUENTIAL(STEPS(LAYER("TimeDistributed", "'name': 't', 'trainable': false, 'layer': " LAYER("Dense", "'units': 3")))),
	SEQUENTIAL(STEPS(LAYER("TimeDistributed", "'layer': " LAYER("Conv1D", "'filters': 3, 'kernel_size': 2")))),
	SEQUENTIAL(STEPS(LAYER("TimeDistributed", "'layer': 3"))),
	FUNCTIONAL(X NODE("Bidirectional", "b", ", 'layer': " LAYER("LSTM", "'units': 3, 'return_state': true"), "[" AT("x", "0") "]")
		   NODE("Bidirectional", "c", ", 'layer': " LAYER("LSTM", "'units': 3"), "[['x', 0, 0, {'initial_state': [['b', 0, 1], ['b', 0, 2], ['b', 0, 3], ['b', 0, 4]]}]]"),
		   END("x"), END("c")),
	FUNCTIONAL(X NODE("Bidirectional", "b", ", 'layer': " LAYER("LSTM", "'units': 3, 'return_state': true"), "[" AT("x", "0") "]")
		   NODE("Bidirectional", "c", ", 'layer': " LAYER("LSTM", "'units': 3"), "[['x', 0, 0, {'initial_state': [['b', 0, 1]]}]]"),
		   END("x"), END("c")),
};

/* Below the sources; a run file's model, or a model. */
static const char *const files[] = {
	"tests/golden/convnet.json", "tests/golden/gpt_small.json", "tests/golden/mask_states.json", "tests/golden/mask_tokens.json",
	"tests/golden/mask_turns.json", "tests/golden/masks.json", "tests/golden/outputs.json", "tests/golden/residual.json",
	"tests/golden/seq2seq.json", "tests/golden/siamese.json", "tests/golden/small.json", "examples/bert-small.json",
	"examples/imdb-lstm.json",
};
/* clang-format on */

static void print_read(FILE *out, const struct json_at *at)
{
	struct model *model;
	struct err err = {0};

	support_models_digest();
	if (support_model_read_at(&model, at, NULL, &err) != ST_OK)
		fprintf(out, "%s\n", err.text);
	else
		fprintf(out, "%d layers, %zu weights, %016" PRIx64 "\n", model->layer_count,
			model->weights, support_models_digest());
	model_free(model);
}

static void print_all(FILE *out)
{
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		char *text = mem_printf("%s", texts[i]);
		struct json_at root;
		cJSON *json;

		assert_non_null(text);
		for (char *c = text; *c; c++)
			if (*c == '\'')
				*c = '"';
		if (json_parse(&json, text, strlen(text), "m.json", NULL) != ST_OK)
			fail_msg("%s", text);
		root = json_root("m.json", json);
		print_read(out, &root);
		cJSON_Delete(json);
		mem_free(text);
	}
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		char path[FS_PATH_SIZE];
		struct json_at root, at;
		cJSON *json;

		assert_true(fs_path(path, "%s/%s", support_source_dir(), files[i]));
		assert_int_equal(json_load(&json, path, NULL), ST_OK);
		root = json_root(files[i], json);
		fprintf(out, "%s: ", files[i]);
		print_read(out, json_child(&root, "model", &at) ? &at : &root);
		cJSON_Delete(json);
	}
}

static void test_no_model_changes_unseen(void **state)
{
	(void)state;
	support_check_golden("models.txt", print_all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_model_changes_unseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
