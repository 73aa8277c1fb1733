/*
 * Layers by stages: what moves with them, what stays, and what cannot be.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "support/model_texts.h"
#include "trainer/models/model_weights.h"

static const struct model_shape input = {.ndim = 1, .dim = {6}};

/* a to e read one another in turn, but branched() makes c read a. */
static const char text[] =
	"{\"layers\": [{\"class_name\": \"Dense\", \"config\": {\"name\": \"a\", \"units\": 6}}, "
	"{\"class_name\": \"Dense\", \"config\": {\"name\": \"b\", \"units\": 6, \"use_bias\": "
	"false}}, {\"class_name\": \"Activation\", \"config\": {\"name\": \"r\", \"activation\": "
	"\"relu\"}}, {\"class_name\": \"Dense\", \"config\": {\"name\": \"c\", \"units\": 6}}, "
	"{\"class_name\": \"Dense\", \"config\": {\"name\": \"d\", \"units\": 40}}]}";

static const int from_a[] = {0};

static struct model *branched(void)
{
	struct model *m = support_model(text, &input);

	m->layers[3].inputs = from_a;
	return m;
}

static void test_layers_and_parameters_move_with_their_stage(void **state)
{
	static const int stage[] = {0, 1, 1, 0, 1};
	static const char *const names[] = {"a", "c", "b", "r", "d"};
	static const int inputs[] = {MODEL_INPUT, 0, 0, 2, 1};
	struct model *m = branched();
	size_t offset = 0, weights = m->weights;
	int params = 0;

	(void)state;
	assert_int_equal(model_order(m, stage, NULL), ST_OK);
	for (int i = 0; i < m->layer_count; i++) {
		assert_string_equal(m->layers[i].name, names[i]);
		assert_int_equal(m->layers[i].position, i);
		assert_int_equal(m->layers[i].inputs[0], inputs[i]);
		assert_int_equal(m->layers[i].first_param, params);
		params += m->layers[i].param_count;
		/* Rows are the summary's, which knows no stages. */
		assert_string_equal(m->rows[m->layers[i].row].name, names[i]);
	}
	assert_string_equal(m->rows[1].name, "b");
	assert_int_equal(params, m->param_count);
	for (int i = 0; i < m->param_count; i++) {
		assert_int_equal(m->params[i].offset, offset);
		offset += (m->params[i].count + 15) / 16 * 16;
		assert_memory_equal(m->params[i].name, m->layers[m->params[i].layer].name, 1);
	}
	assert_int_equal(offset, weights);
	assert_int_equal(m->weights, weights);
	model_free(m);
}

static void test_initial_weights_do_not_depend_on_the_order(void **state)
{
	static const int stage[] = {0, 1, 1, 0, 1};
	struct model *before = branched(), *after = branched();
	float *a = calloc(before->weights, sizeof(*a)), *b = calloc(after->weights, sizeof(*b));
	uint64_t digests[2];

	(void)state;
	assert_non_null(a);
	assert_non_null(b);
	assert_int_equal(model_order(after, stage, NULL), ST_OK);
	model_init_weights(before, a, 7);
	model_init_weights(after, b, 7);
	assert_int_equal(model_weights_digest(&digests[0], before, a, NULL), ST_OK);
	assert_int_equal(model_weights_digest(&digests[1], after, b, NULL), ST_OK);
	assert_true(digests[0] == digests[1]);
	for (int i = 0; i < before->param_count; i++)
		for (int j = 0; j < after->param_count; j++)
			if (!strcmp(before->params[i].name, after->params[j].name))
				assert_memory_equal(a + before->params[i].offset,
						    b + after->params[j].offset,
						    before->params[i].count * sizeof(float));
	free(a);
	free(b);
	model_free(before);
	model_free(after);
}

static void test_stages_in_order_change_nothing(void **state)
{
	static const int stage[] = {0, 0, 3, 3, 3};
	struct model *m = branched();
	const struct model_layer *layers = m->layers;

	(void)state;
	assert_int_equal(model_order(m, stage, NULL), ST_OK);
	assert_ptr_equal(m->layers, layers);
	model_free(m);
}

static void test_a_layer_cannot_need_a_later_stage(void **state)
{
	static const int stage[] = {1, 1, 1, 0, 1};
	struct model *m = branched();
	struct err err;

	(void)state;
	assert_int_equal(model_order(m, stage, &err), ST_INVALID);
	assert_contains(err.text, "\"c\" of stage 0 needs the output of \"a\" of stage 1");
	assert_string_equal(m->layers[3].name, "c");
	model_free(m);
}

static void test_no_memory_changes_nothing(void **state)
{
	static const int stage[] = {0, 1, 1, 0, 1};
	bool failed = true;

	(void)state;
	for (long n = 0; failed; n++) {
		struct model *m = branched();
		enum status status;

		support_fail_alloc(n);
		status = model_order(m, stage, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		/* A failed block may be made up for by a smaller one. */
		assert_true(status == ST_OK || (failed && status == ST_NOMEM));
		assert_string_equal(m->layers[1].name, status == ST_OK ? "c" : "b");
		assert_int_equal(m->layers[1].position, 1);
		model_free(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layers_and_parameters_move_with_their_stage),
		cmocka_unit_test(test_initial_weights_do_not_depend_on_the_order),
		cmocka_unit_test(test_stages_in_order_change_nothing),
		cmocka_unit_test(test_a_layer_cannot_need_a_later_stage),
		cmocka_unit_test(test_no_memory_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
