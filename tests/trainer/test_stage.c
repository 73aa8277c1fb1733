/*
 * Stages: gradients against central differences, splits and threads that change no byte, taps,
 * limits, and the loss of memory.
 */
#include "trainer/models/stage.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "support/math.h"
#include "model/learn/loss.h"
#include "trainer/learn/measure_run.h"
#include "trainer/models/model_weights.h"

#define BATCH       5
#define MOST_STAGES 8

/* Every kind of layer and activation, on an input of more than one dimension. */
static const char all_layers[] =
	"["
	"{'class_name': 'Dense', 'config': {'units': 7, 'activation': 'relu'}},"
	"{'class_name': 'Outfeed', 'config': {'name': 'acts'}},"
	"{'class_name': 'Activation', 'config': {'activation': 'softmax'}},"
	"{'class_name': 'Flatten', 'config': {}},"
	"{'class_name': 'Dense', 'config': {'units': 6, 'use_bias': false}},"
	"{'class_name': 'Activation', 'config': {'activation': 'relu'}},"
	"{'class_name': 'Dense', 'config': {'units': 4, 'activation': 'softmax'}},"
	"{'class_name': 'Dense', 'config': {'units': 3, 'activation': 'softmax'}},"
	"{'class_name': 'MaybeOutfeed', 'config': {'name': 'last_acts'}}"
	"]";
static const int64_t all_dims[] = {2, 5};

/* A model cut into stages, run as a pipeline would. */
struct chain {
	struct math_model m;
	struct stage *stages[MOST_STAGES];
	int count;
	float *weights, *gradients;
	float *between; /* a gradient that flows from stage to stage */
};

static void chain_open(struct chain *c, const char *layers, const int *cuts, bool logits_loss,
		       struct pool *pool)
{
	struct stage_params p = {.batch = BATCH,
				 .slots = 2,
				 .training = true,
				 .logits_loss = logits_loss,
				 .spread = true};
	struct err err;

	memset(c, 0, sizeof(*c));
	p.pool = pool;
	math_model_open(&c->m, layers, 2, all_dims);
	p.model = c->m.model;
	do {
		int end = cuts && cuts[c->count] ? cuts[c->count] : c->m.model->layer_count;

		p.layer_count = end - p.first_layer;
		if (stage_new(&c->stages[c->count++], &p, &err) != ST_OK)
			fail_msg("%s", err.text);
		p.first_layer = end;
	} while (p.first_layer < c->m.model->layer_count);

	c->weights = mem_aligned(c->m.model->weights, sizeof(float));
	c->gradients = mem_aligned(c->m.model->weights, sizeof(float));
	c->between = mem_aligned(2 * BATCH * 64, sizeof(float));
	assert_true(c->weights && c->gradients && c->between);
	model_init_weights(c->m.model, c->weights, 1);
	/* Biases too, so that each matters. */
	for (int i = 0; i < c->m.model->param_count; i++) {
		const struct model_param *param = &c->m.model->params[i];

		if (param->shape.ndim == 1)
			math_fill(c->weights + param->offset, param->count, 9, -0.2f, 0.4f);
	}
}

static void chain_close(struct chain *c)
{
	for (int i = 0; i < c->count; i++)
		stage_free(c->stages[i]);
	math_model_close(&c->m);
	mem_free(c->weights);
	mem_free(c->gradients);
	mem_free(c->between);
}

static const float *chain_forward(struct chain *c, const float *input, int slot)
{
	const float *flow = input;

	for (int i = 0; i < c->count; i++) {
		memcpy(stage_input(c->stages[i], slot), flow,
		       stage_input_count(c->stages[i]) * sizeof(float));
		stage_forward(c->stages[i], slot, BATCH, 0, c->weights, NULL, NULL);
		flow = stage_output(c->stages[i], slot);
	}
	return flow;
}

static void chain_backward(struct chain *c, float *grad_output, int slot, float *grad_input)
{
	float *flow = grad_output;

	for (int i = c->count - 1; i >= 0; i--) {
		float *next = i ? c->between + (i % 2) * BATCH * 64 : grad_input;

		stage_backward(c->stages[i], slot, c->weights, flow, c->gradients, next);
		flow = next;
	}
}

/* ---- the reference: the same model in double, one item at a time ----------------------------- */

struct reference {
	const struct model *model;
	double weights[2048];
	double values[2][256];
};

static void reference_activate(enum model_activation activation, double *x, int64_t columns)
{
	double sum = 0.0;

	for (int64_t j = 0; j < columns; j++) {
		if (activation == MODEL_RELU)
			x[j] = x[j] > 0.0 ? x[j] : 0.0;
		else if (activation == MODEL_SOFTMAX)
			sum += exp(x[j]);
	}
	for (int64_t j = 0; activation == MODEL_SOFTMAX && j < columns; j++)
		x[j] = exp(x[j]) / sum;
}

static void reference_dense(struct reference *r, const struct model_layer *layer, double *x,
			    double *y)
{
	const struct model_param *kernel = &r->model->params[layer->first_param];
	int64_t inputs = kernel->shape.dim[0], units = kernel->shape.dim[1];

	for (int64_t row = 0; row < model_shape_count(&layer->input) / inputs; row++) {
		for (int64_t u = 0; u < units; u++) {
			double sum = layer->use_bias ? r->weights[kernel[1].offset + (size_t)u] : 0;

			for (int64_t i = 0; i < inputs; i++)
				sum += x[row * inputs + i] *
				       r->weights[kernel->offset + (size_t)(i * units + u)];
			y[row * units + u] = sum;
		}
	}
}

static const double *reference_run(struct reference *r, const double *input)
{
	int present = 0;

	memcpy(r->values[0], input, (size_t)model_shape_count(&r->model->input) * sizeof(double));
	for (int i = 0; i < r->model->layer_count; i++) {
		const struct model_layer *layer = &r->model->layers[i];
		int64_t columns = layer->output.dim[layer->output.ndim - 1];

		if (layer->param_count) {
			reference_dense(r, layer, r->values[present], r->values[!present]);
			present = !present;
		}
		for (int64_t row = 0; row < model_shape_count(&layer->output) / columns; row++)
			reference_activate(layer->activation, r->values[present] + row * columns,
					   columns);
	}
	return r->values[present];
}

/* sum(slopes * outputs) over the batch, or the cross-entropy's mean where @labels is set. */
static double reference_value(struct reference *r, const double *input, const float *slopes,
			      const int32_t *labels)
{
	size_t in = (size_t)model_shape_count(&r->model->input);
	size_t out = (size_t)model_shape_count(&r->model->layers[r->model->layer_count - 1].output);
	double value = 0.0;

	for (size_t i = 0; i < BATCH; i++) {
		const double *y = reference_run(r, input + i * in);

		for (size_t j = 0; !labels && j < out; j++)
			value += (double)slopes[i * out + j] * y[j];
		if (labels)
			value -= log(y[labels[i]]) / BATCH;
	}
	return value;
}

struct difference {
	struct reference r;
	double input[BATCH * 16];
	const float *slopes;
	const int32_t *labels;
};

static double difference_at(struct difference *d, double *x)
{
	const double h = 1e-6, kept = *x;
	double up, down;

	*x = kept + h;
	up = reference_value(&d->r, d->input, d->slopes, d->labels);
	*x = kept - h;
	down = reference_value(&d->r, d->input, d->slopes, d->labels);
	*x = kept;
	return (up - down) / (2.0 * h);
}

static void difference_open(struct difference *d, const struct chain *c, const float *input,
			    const float *slopes, const int32_t *labels)
{
	d->r.model = c->m.model;
	assert_true(c->m.model->weights <= ARRAY_LEN(d->r.weights));
	for (size_t i = 0; i < c->m.model->weights; i++)
		d->r.weights[i] = (double)c->weights[i];
	for (size_t i = 0; i < BATCH * 10; i++)
		d->input[i] = (double)input[i];
	d->slopes = slopes;
	d->labels = labels;
}

static void check_slope(double got, double wanted, const char *what, size_t at)
{
	if (!(fabs(got - wanted) < 2e-5 * (fabs(wanted) + 0.05)))
		fail_msg("%s[%zu]: the gradient is %.9g, the difference %.9g", what, at, got,
			 wanted);
}

static void check_all_slopes(struct difference *d, const struct chain *c, const float *grad_input)
{
	for (int p = 0; p < c->m.model->param_count; p++) {
		const struct model_param *param = &c->m.model->params[p];

		for (size_t i = param->offset; i < param->offset + param->count; i++)
			check_slope((double)c->gradients[i], difference_at(d, &d->r.weights[i]),
				    param->name, i - param->offset);
	}
	for (size_t i = 0; i < BATCH * 10; i++)
		check_slope((double)grad_input[i], difference_at(d, &d->input[i]), "input", i);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_gradients_are_those_of_central_differences(void **state)
{
	float input[BATCH * 10], slopes[BATCH * 3], grad_output[BATCH * 3], grad_input[BATCH * 10];
	static struct difference d;
	struct chain c;
	const float *outputs;

	(void)state;
	chain_open(&c, all_layers, NULL, false, NULL);
	math_fill(input, ARRAY_LEN(input), 11, -1.0f, 1.0f);
	math_fill(slopes, ARRAY_LEN(slopes), 12, -1.0f, 1.0f);
	memcpy(grad_output, slopes, sizeof(slopes));

	outputs = chain_forward(&c, input, 1);
	difference_open(&d, &c, input, slopes, NULL);
	for (size_t i = 0; i < BATCH; i++)
		for (size_t j = 0; j < 3; j++)
			assert_close((double)outputs[i * 3 + j],
				     reference_run(&d.r, d.input + i * 10)[j], 1e-5);
	chain_backward(&c, grad_output, 1, grad_input);
	check_all_slopes(&d, &c, grad_input);
	chain_close(&c);
}

static void test_the_loss_from_logits_gives_the_same_gradients(void **state)
{
	static const int32_t labels[BATCH] = {0, 2, 1, 1, 0};
	const struct targets targets = {.classes = labels};
	static const char short_layers[] =
		"["
		"{'class_name': 'Flatten', 'config': {}},"
		"{'class_name': 'Dense', 'config': {'units': 3}},"
		"{'class_name': 'Activation', 'config': {'activation': 'softmax'}}"
		"]";
	const char *names[] = {all_layers, short_layers};
	static struct difference d;
	cJSON *name = cJSON_CreateString("SparseCategoricalCrossentropy");
	struct json_at at = json_root("test", name);
	float input[BATCH * 10], gradient[BATCH * 3], grad_input[BATCH * 10];
	struct loss loss;

	(void)state;
	assert_int_equal(loss_get(&loss, &at, NULL), ST_OK);
	math_fill(input, ARRAY_LEN(input), 11, -1.0f, 1.0f);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		double result;
		struct chain c;
		const float *outputs;

		chain_open(&c, names[i], NULL, true, NULL);
		outputs = chain_forward(&c, input, 0);
		assert_non_null(stage_logits(c.stages[0], 0));
		result = loss_run(&loss, outputs, stage_logits(c.stages[0], 0), &targets, BATCH, 3,
				  gradient);
		chain_backward(&c, gradient, 0, grad_input);
		difference_open(&d, &c, input, NULL, labels);
		assert_close(result, reference_value(&d.r, d.input, NULL, labels), 1e-6);
		check_all_slopes(&d, &c, grad_input);
		chain_close(&c);
	}
	cJSON_Delete(name);
}

struct outcome {
	float outputs[BATCH * 3], logits[BATCH * 3], grad_input[BATCH * 10], gradients[2048];
};

static void run_chain(struct outcome *out, const int *cuts, bool logits_loss, struct pool *pool)
{
	float input[BATCH * 10], slopes[BATCH * 3];
	struct chain c;
	const float *outputs, *logits;

	memset(out, 0, sizeof(*out));
	chain_open(&c, all_layers, cuts, logits_loss, pool);
	math_fill(input, ARRAY_LEN(input), 21, -1.0f, 1.0f);
	math_fill(slopes, ARRAY_LEN(slopes), 22, -1.0f, 1.0f);
	outputs = chain_forward(&c, input, 0);
	memcpy(out->outputs, outputs, sizeof(out->outputs));
	logits = stage_logits(c.stages[c.count - 1], 0);
	if (logits)
		memcpy(out->logits, logits, sizeof(out->logits));
	chain_backward(&c, slopes, 0, out->grad_input);
	assert_true(c.m.model->weights <= ARRAY_LEN(out->gradients));
	memcpy(out->gradients, c.gradients, c.m.model->weights * sizeof(float));
	chain_close(&c);
}

static void test_a_cut_at_any_layer_changes_no_byte(void **state)
{
	static struct outcome whole, cut;

	(void)state;
	for (int softmax = 0; softmax < 2; softmax++) {
		run_chain(&whole, NULL, softmax, NULL);
		for (int first = 1; first < 8; first++) {
			for (int second = first + 1; second < 9; second++) {
				int cuts[] = {first, second, 0};

				run_chain(&cut, cuts, softmax, NULL);
				if (second == 8) /* the softmax is in the stage before the last */
					memcpy(cut.logits, whole.logits, sizeof(cut.logits));
				assert_memory_equal(&whole, &cut, sizeof(whole));
			}
		}
		/* A last stage of outfeeds alone hands the gradient on as it is. */
		run_chain(&cut, (int[]){8, 0}, softmax, NULL);
		memcpy(cut.logits, whole.logits, sizeof(cut.logits));
		assert_memory_equal(&whole, &cut, sizeof(whole));
	}
}

static void test_slots_do_not_touch_each_other(void **state)
{
	float one[BATCH * 10], two[BATCH * 10], slopes[BATCH * 3], again[BATCH * 3];
	static float wanted[2048];
	struct chain c;

	(void)state;
	math_fill(one, ARRAY_LEN(one), 31, -1.0f, 1.0f);
	math_fill(two, ARRAY_LEN(two), 32, -1.0f, 1.0f);
	math_fill(slopes, ARRAY_LEN(slopes), 33, -1.0f, 1.0f);
	memcpy(again, slopes, sizeof(slopes));
	chain_open(&c, all_layers, (int[]){4, 0}, false, NULL);

	chain_forward(&c, one, 0);
	chain_backward(&c, slopes, 0, NULL);
	memcpy(wanted, c.gradients, c.m.model->weights * sizeof(float));
	chain_forward(&c, one, 0);
	chain_forward(&c, two, 1);
	chain_backward(&c, again, 0, NULL);
	assert_memory_equal(wanted, c.gradients, c.m.model->weights * sizeof(float));
	chain_close(&c);
}

struct taps {
	int count, layers[4];
	size_t sizes[4];
	const float *values[4];
};

static void note_tap(void *user, const struct stage_tapped *tapped)
{
	struct taps *taps = user;

	assert_true(taps->count < 4);
	taps->layers[taps->count] = tapped->layer;
	taps->sizes[taps->count] = tapped->count;
	taps->values[taps->count++] = tapped->values;
}

static void test_outfeeds_are_tapped_with_what_flows_through(void **state)
{
	struct taps taps = {0};
	struct chain c;
	const float *outputs;

	(void)state;
	chain_open(&c, all_layers, NULL, true, NULL);
	stage_forward(c.stages[0], 0, BATCH, 0, c.weights, note_tap, &taps);
	outputs = stage_output(c.stages[0], 0);
	assert_int_equal(taps.count, 2);
	assert_int_equal(taps.layers[0], 1);
	assert_int_equal(taps.sizes[0], BATCH * 14);
	assert_int_equal(taps.layers[1], 8);
	assert_int_equal(taps.sizes[1], BATCH * 3);
	assert_ptr_equal(taps.values[1], outputs);
	assert_int_equal(stage_output_count(c.stages[0]), BATCH * 3);
	chain_close(&c);
}

static void test_not_a_number_reaches_the_output_and_the_gradients(void **state)
{
	float input[BATCH * 10], slopes[BATCH * 3], grad_input[BATCH * 10];
	struct chain c;
	const float *outputs;

	(void)state;
	chain_open(&c, all_layers, NULL, false, NULL);
	math_fill(input, ARRAY_LEN(input), 41, -1.0f, 1.0f);
	math_fill(slopes, ARRAY_LEN(slopes), 42, -1.0f, 1.0f);
	input[13] = NAN;
	outputs = chain_forward(&c, input, 0);
	for (int i = 0; i < BATCH * 3; i++)
		assert_int_equal(isnan(outputs[i]) != 0, i / 3 == 1);
	chain_backward(&c, slopes, 0, grad_input);
	for (int i = 0; i < c.m.model->param_count; i++)
		assert_true(isnan(c.gradients[c.m.model->params[i].offset]));
	for (int i = 0; i < BATCH * 10; i++)
		assert_int_equal(isnan(grad_input[i]) != 0, i / 10 == 1);
	chain_close(&c);
}

static void test_any_pool_gives_the_same_bytes(void **state)
{
	static struct outcome alone, together;

	(void)state;
	run_chain(&alone, NULL, true, NULL);
	for (unsigned helpers = 0; helpers < 4; helpers++) {
		struct pool *pool;

		assert_int_equal(pool_new(&pool, helpers, NULL), ST_OK);
		run_chain(&together, NULL, true, pool);
		assert_memory_equal(&alone, &together, sizeof(alone));
		pool_free(pool);
	}
}

static void test_a_wide_batch_is_sliced_and_the_same_bytes_on_any_pool(void **state)
{
	static const char layers[] =
		"["
		"{'class_name': 'Dense', 'config': {'units': 300, 'activation': 'relu'}},"
		"{'class_name': 'Dense', 'config': {'units': 70, 'activation': 'softmax'}}"
		"]";
	const size_t in = 2000 * 90, out = 2000 * 70;
	float *kept = NULL, *gradient = mem_aligned(out, sizeof(float));
	float *weights, *gradients, *grad_input = mem_aligned(in, sizeof(float));
	struct math_model m;

	(void)state;
	math_model_open(&m, layers, 1, (int64_t[]){90});
	weights = mem_aligned(m.model->weights, sizeof(float));
	gradients = mem_aligned(2 * m.model->weights, sizeof(float));
	assert_true(weights && gradients && gradient && grad_input);
	kept = gradients + m.model->weights;
	model_init_weights(m.model, weights, 5);
	for (unsigned helpers = 0; helpers < 4; helpers++) {
		struct stage_params p = {.model = m.model,
					 .layer_count = 2,
					 .batch = 2000,
					 .slots = 1,
					 .training = true,
					 .spread = true};
		struct stage *stage;

		assert_int_equal(pool_new(&p.pool, helpers, NULL), ST_OK);
		assert_int_equal(stage_new(&stage, &p, NULL), ST_OK);
		math_fill(stage_input(stage, 0), in, 1, -1.0f, 1.0f);
		math_fill(gradient, out, 2, -1.0f, 1.0f);
		stage_forward(stage, 0, p.batch, 0, weights, NULL, NULL);
		stage_backward(stage, 0, weights, gradient, gradients, grad_input);
		if (!helpers)
			memcpy(kept, gradients, m.model->weights * sizeof(float));
		assert_memory_equal(kept, gradients, m.model->weights * sizeof(float));
		stage_free(stage);
		pool_free(p.pool);
	}
	math_model_close(&m);
	mem_free(weights);
	mem_free(gradients);
	mem_free(gradient);
	mem_free(grad_input);
}

static void test_a_stage_too_large_says_what_it_would_take(void **state)
{
	struct stage_params p = {.layer_count = 2, .batch = 1 << 20, .slots = 1, .training = true};
	struct math_model m;
	struct stage *stage;
	struct err err;

	(void)state;
	math_model_open(&m,
			"[{'class_name': 'Flatten', 'config': {}},"
			"{'class_name': 'Dense', 'config': {'units': 9}}]",
			3, (int64_t[]){1 << 10, 1 << 6, 1 << 3});
	p.model = m.model;
	p.slots = INT32_MAX;
	assert_int_equal(stage_new(&stage, &p, &err), ST_LIMIT);
	assert_null(stage);
	assert_contains(err.text, "GB");
	p.slots = 1;
	p.batch = INT64_MAX / 2;
	assert_int_equal(stage_new(&stage, &p, &err), ST_LIMIT);
	p.batch = 0;
	assert_int_equal(stage_new(&stage, &p, &err), ST_INVALID);
	p.batch = 1;
	p.slots = 0;
	assert_int_equal(stage_new(&stage, &p, &err), ST_INVALID);
	math_model_close(&m);
}

static void test_the_input_layers_batch_binds_the_stage(void **state)
{
	struct stage_params p = {.layer_count = 1, .batch = 16, .slots = 1};
	struct math_model m;
	struct stage *stage;
	struct err err;

	(void)state;
	math_model_open(&m,
			"[{'class_name': 'Dense', 'config': {'units': 2, "
			"'batch_input_shape': [8, 3]}}]",
			1, (int64_t[]){3});
	p.model = m.model;
	assert_int_equal(m.model->batch, 8);
	assert_int_equal(stage_new(&stage, &p, &err), ST_INVALID);
	assert_contains(err.text, "batches of 8");
	p.batch = 8;
	assert_int_equal(stage_new(&stage, &p, &err), ST_OK);
	stage_free(stage);
	math_model_close(&m);
}

static bool uses_its_pool(const struct model *model, int64_t batch, bool training, bool spread)
{
	struct stage_params p = {.model = model,
				 .layer_count = 1,
				 .batch = batch,
				 .slots = 1,
				 .training = training,
				 .fixed_input = true,
				 .spread = spread};
	struct stage *stage;
	bool uses;

	assert_int_equal(pool_new(&p.pool, 1, NULL), ST_OK);
	assert_int_equal(stage_new(&stage, &p, NULL), ST_OK);
	uses = stage_pool(stage) == p.pool;
	assert_true(uses || !stage_pool(stage));
	stage_free(stage);
	pool_free(p.pool);
	return uses;
}

static void test_a_small_training_step_is_one_threads(void **state)
{
	struct math_model m;

	(void)state;
	math_model_open(&m, "[{'class_name': 'Dense', 'config': {'units': 128}}]", 1,
			(int64_t[]){784});
	assert_false(uses_its_pool(m.model, 32, true, false));
	assert_true(uses_its_pool(m.model, 32, true, true));
	assert_true(uses_its_pool(m.model, 32, false, false)); /* no weight is written */
	assert_true(uses_its_pool(m.model, 512, true, false));
	math_model_close(&m);
}

static void test_a_step_allocates_nothing(void **state)
{
	float input[BATCH * 10], slopes[BATCH * 3], grad_input[BATCH * 10];
	struct pool *pool;
	struct chain c;

	(void)state;
	assert_int_equal(pool_new(&pool, 1, NULL), ST_OK);
	chain_open(&c, all_layers, (int[]){4, 0}, true, pool);
	math_fill(input, ARRAY_LEN(input), 51, -1.0f, 1.0f);
	math_fill(slopes, ARRAY_LEN(slopes), 52, -1.0f, 1.0f);
	support_fail_alloc(0);
	chain_forward(&c, input, 0);
	chain_backward(&c, slopes, 0, grad_input);
	assert_false(support_alloc_failed());
	support_fail_alloc(-1);
	chain_close(&c);
	pool_free(pool);
}

static void test_no_memory_leaves_nothing(void **state)
{
	struct stage_params p = {.layer_count = 9,
				 .batch = BATCH,
				 .slots = 2,
				 .training = true,
				 .logits_loss = true};
	struct math_model m;
	bool failed = true;

	(void)state;
	math_model_open(&m, all_layers, 2, all_dims);
	p.model = m.model;
	for (long n = 0; failed; n++) {
		struct stage *stage;
		enum status status;
		struct err err;

		support_fail_alloc(n);
		status = stage_new(&stage, &p, &err);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		/* The plan's arena asks for less where it is refused more. */
		assert_true(status == ST_OK || (failed && status == ST_NOMEM));
		assert_true(status == ST_OK ? !!stage : !stage);
		stage_free(stage);
	}
	math_model_close(&m);
	stage_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gradients_are_those_of_central_differences),
		cmocka_unit_test(test_the_loss_from_logits_gives_the_same_gradients),
		cmocka_unit_test(test_a_cut_at_any_layer_changes_no_byte),
		cmocka_unit_test(test_slots_do_not_touch_each_other),
		cmocka_unit_test(test_outfeeds_are_tapped_with_what_flows_through),
		cmocka_unit_test(test_not_a_number_reaches_the_output_and_the_gradients),
		cmocka_unit_test(test_any_pool_gives_the_same_bytes),
		cmocka_unit_test(test_a_small_training_step_is_one_threads),
		cmocka_unit_test(test_a_wide_batch_is_sliced_and_the_same_bytes_on_any_pool),
		cmocka_unit_test(test_a_stage_too_large_says_what_it_would_take),
		cmocka_unit_test(test_the_input_layers_batch_binds_the_stage),
		cmocka_unit_test(test_a_step_allocates_nothing),
		cmocka_unit_test(test_no_memory_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
