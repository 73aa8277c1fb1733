/*
 * Bidirectional and TimeDistributed: the layers that they become, their names, shapes, parameters
 * and rows of the summary; the backward direction's outputs in the input's order; refusals, and
 * advice on layers that are not there.
 */
#include <string.h>

#include "common/mem.h"
#include "support/layer_rig.h"

#define LSTM(options) "{'class_name': 'LSTM', 'config': {'name': 'lstm', 'units': 3" options "}}"
#define BOTH(inner, options)                                                                       \
	"[{'class_name': 'Bidirectional', 'config': {'name': 'both', 'layer': " inner options "}}" \
	"]"
#define EACH(inner)                                                                                \
	"[{'class_name': 'TimeDistributed', 'config': {'name': 'each', 'layer': " inner "}}]"
#define DENSE "{'class_name': 'Dense', 'config': {'name': 'd', 'units': 7}}"

static const int64_t steps[] = {6, 4};

static void test_two_directions_are_merged(void **state)
{
	static const struct {
		const char *layers, *merge;
		int64_t out[2];
		int ndim;
	} rows[] = {
		{BOTH(LSTM(""), ""), "Concatenate", {6}, 1},
		{BOTH(LSTM(", 'return_sequences': true"), ", 'merge_mode': 'concat'"),
		 "Concatenate",
		 {6, 6},
		 2},
		{BOTH(LSTM(", 'return_sequences': true"), ", 'merge_mode': 'sum'"),
		 "Add",
		 {6, 3},
		 2},
		{BOTH(LSTM(""), ", 'merge_mode': 'mul'"), "Multiply", {3}, 1},
		{BOTH(LSTM(""), ", 'merge_mode': 'ave'"), "Average", {3}, 1},
		{BOTH(LSTM(", 'go_backwards': true"), ", 'batch_input_shape': [null, 6, 4]"),
		 "Concatenate",
		 {6},
		 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct layer_recurrent *forward, *backward;
		const struct model *model;
		struct math_model m;

		math_model_open(&m, rows[i].layers, 2, steps);
		model = m.model;
		assert_int_equal(model->layer_count, 3);
		assert_string_equal(model->layers[0].name, "both/forward_lstm");
		assert_string_equal(model->layers[1].name, "both/backward_lstm");
		assert_string_equal(model->layers[2].ops->class_name, rows[i].merge);
		assert_int_equal(model->layers[0].inputs[0], MODEL_INPUT);
		assert_int_equal(model->layers[1].inputs[0], MODEL_INPUT);
		forward = model->layers[0].config;
		backward = model->layers[1].config;
		assert_true(forward->backwards == (i == 5) && !forward->reversed);
		assert_true(backward->backwards == (i != 5) && backward->reversed);
		assert_int_equal(model->layers[2].output.ndim, rows[i].ndim);
		for (int d = 0; d < rows[i].ndim; d++)
			assert_int_equal(model->layers[2].output.dim[d], rows[i].out[d]);
		assert_string_equal(model->params[3].name, "both/backward_lstm/kernel:0");
		assert_int_equal(model->row_count, 1);
		assert_string_equal(model->rows[0].class_name, "Bidirectional");
		/* 2 of 4 (4 x 3 + 3 x 3 + 3) */
		assert_int_equal(model_layer_params(model, 0) + model_layer_params(model, 1),
				 2 * 96);
		math_model_close(&m);
	}
}

static void test_a_backward_layer_of_its_own(void **state)
{
	static const char layers[] = BOTH(
		LSTM(""), ", 'backward_layer': {'class_name': 'LSTM', 'config': {'name': 'back', "
			  "'units': 5, 'go_backwards': true}}");
	struct math_model m;

	(void)state;
	math_model_open(&m, layers, 2, steps);
	assert_int_equal(m.model->layers[1].units, 5);
	assert_int_equal(m.model->layers[2].output.dim[0], 8);
	math_model_close(&m);
}

static void run(struct layer_rig *rig, const char *layer)
{
	layer_rig_open(rig, layer, 2, steps, 2, true, NULL);
	math_fill(rig->x, rig->in, 1, -1.0f, 1.0f);
	math_fill(rig->weights, rig->m.model->weights, 2, -1.0f, 1.0f);
	math_fill(rig->dy, rig->out, 3, -1.0f, 1.0f);
}

/* Step s of the one is step 5 - s of the other, forward and backward, byte for byte. */
static void test_outputs_stand_as_the_inputs_do(void **state)
{
	struct layer_rig worked, stand;

	(void)state;
	run(&worked, "[" LSTM(", 'return_sequences': true, 'go_backwards': true") "]");
	run(&stand, "[" LSTM(", 'return_sequences': true, 'go_backwards': true, 'return_reversed': "
			     "true") "]");
	for (int row = 0; row < 12; row++)
		memcpy(stand.dy + (size_t)(row / 6 * 6 + 5 - row % 6) * 3,
		       worked.dy + (size_t)row * 3, 3 * sizeof(float));
	layer_rig_forward(&worked);
	layer_rig_forward(&stand);
	for (int row = 0; row < 12; row++)
		assert_memory_equal(stand.y + (size_t)(row / 6 * 6 + 5 - row % 6) * 3,
				    worked.y + (size_t)row * 3, 3 * sizeof(float));
	layer_rig_backward(&worked);
	layer_rig_backward(&stand);
	assert_memory_equal(stand.dx, worked.dx, worked.in * sizeof(float));
	assert_memory_equal(stand.gradients, worked.gradients,
			    worked.m.model->weights * sizeof(float));
	layer_rig_close(&worked);
	layer_rig_close(&stand);
}

static void test_each_step_gets_the_layer(void **state)
{
	struct math_model m;

	(void)state;
	math_model_open(&m, EACH(DENSE), 2, steps);
	assert_int_equal(m.model->layer_count, 1);
	assert_string_equal(m.model->layers[0].name, "each");
	assert_string_equal(m.model->layers[0].ops->class_name, "Dense");
	assert_int_equal(m.model->layers[0].output.dim[0], 6);
	assert_int_equal(m.model->layers[0].output.dim[1], 7);
	assert_string_equal(m.model->rows[0].class_name, "TimeDistributed");
	assert_string_equal(m.model->params[0].name, "each/kernel:0");
	math_model_close(&m);
	math_model_open(
		&m,
		"[{'class_name': 'TimeDistributed', 'config': {'name': 'each', 'trainable': "
		"false, 'layer': " DENSE "}}]",
		2, steps);
	assert_false(m.model->layers[0].trainable);
	math_model_close(&m);
}

static void test_what_cannot_be_done_is_refused_with_a_way_out(void **state)
{
	static const struct {
		const char *layers, *part;
		enum status status;
	} rows[] = {
		{BOTH(DENSE, ""), "\"both\": Bidirectional of Dense", ST_UNSUPPORTED},
		{BOTH(LSTM(""), ", 'merge_mode': null"),
		 "\"both\" has 2 outputs: that needs a functional model", ST_INVALID},
		{BOTH(LSTM(""), ", 'merge_mode': 'max'"), "merge_mode", ST_INVALID},
		{BOTH(LSTM(", 'unit': 2"), ""), "unit", ST_INVALID},
		{BOTH("{'class_name': 'LSTM'}", ""), "config", ST_INVALID},
		{"[{'class_name': 'Bidirectional', 'config': {}}]", "layer", ST_INVALID},
		{EACH("{'class_name': 'Conv2D', 'config': {'filters': 1, 'kernel_size': 1}}"),
		 "\"each\": TimeDistributed of Conv2D is not supported", ST_UNSUPPORTED},
		{"[{'class_name': 'Lambda', 'config': {'name': 'twice'}}]",
		 "\"twice\": \"Lambda\" holds Python code", ST_UNSUPPORTED},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		layer_rig_refused(rows[i].layers, 2, steps, rows[i].status, rows[i].part);
}

static void test_every_failing_allocation_is_reported(void **state)
{
	static const char *const texts[] = {
		BOTH(LSTM(""), ", 'merge_mode': 'sum', 'trainable': false"), EACH(DENSE)};
	const struct model_shape shape = {.ndim = 2, .dim = {6, 4}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		char *text = mem_printf("{\"layers\": %s}", texts[i]);
		enum status status = ST_NOMEM;
		struct json_at root;
		cJSON *json;

		assert_non_null(text);
		for (char *c = text; *c; c++)
			*c = *c == '\'' ? '"' : *c;
		assert_int_equal(json_parse(&json, text, strlen(text), "test", NULL), ST_OK);
		root = json_root("test", json);
		for (long n = 0; status != ST_OK; n++) {
			struct err err = {0};
			struct model *model;

			support_fail_alloc(n);
			status = model_new(&model, &root, &shape, &err);
			support_fail_alloc(-1);
			if (status != ST_OK && status != ST_NOMEM)
				fail_msg("allocation %ld: %s", n, err.text);
			if (status == ST_OK)
				model_free(model);
			assert_true(n < 2000);
		}
		cJSON_Delete(json);
		mem_free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_directions_are_merged),
		cmocka_unit_test(test_a_backward_layer_of_its_own),
		cmocka_unit_test(test_outputs_stand_as_the_inputs_do),
		cmocka_unit_test(test_each_step_gets_the_layer),
		cmocka_unit_test(test_what_cannot_be_done_is_refused_with_a_way_out),
		cmocka_unit_test(test_every_failing_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
