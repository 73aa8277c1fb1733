/*
 * BatchNormalization and LayerNormalization: PyTorch's figures, central differences, moving
 * statistics, layers that do not learn, refusals.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "support/layer_rig.h"
#include "support/lowered.h"

#define BATCH_NORM(options) "[{'class_name': 'BatchNormalization', 'config': {" options "}}]"
#define LAYER_NORM(options) "[{'class_name': 'LayerNormalization', 'config': {" options "}}]"

static void check_near(const float *got, const double *wanted, size_t count, double tolerance)
{
	for (size_t i = 0; i < count; i++)
		if (!(fabs((double)got[i] - wanted[i]) <= tolerance))
			fail_msg("[%zu] is %.9g, wanted %.9g", i, (double)got[i], wanted[i]);
}

/* ---- PyTorch's figures: script/make-norm-constants.py ---------------------------------------- */

static const double torch_y[] = {
	-1.89663743, -0.28100298, 1.59403421,  -0.36022122, -1.31283635, 0.99932115,
	-0.13101970, 0.32411720,  -0.55904394, -0.57550752, -0.66566428, 1.23265955,
	-0.73476779, 1.23298944,  0.40584956,  0.54492084,  1.31053529,  0.81108193,
};
static const double torch_mean[] = {-0.07547201, 0.32129673, -0.02191170};
static const double torch_variance[] = {1.02096754, 1.85777272, 0.83084737}; /* unbiased */
static const double torch_dgamma[] = {1.01711684, 0.43443414, 1.12931433};
static const double torch_dbeta[] = {1.54222643, 0.16875398, 0.44389951};
static const double torch_dx[] = {
	-0.30491254, 0.41845608,  0.48580717,  0.31806205,  -0.10081839, -0.81813614,
	0.33592826,  -0.49921390, 0.35583653,  0.39847049,  0.04395375,  0.42933644,
	-0.16984167, 0.05086854,  -0.20065444, -0.57770660, 0.08675392,  -0.25218957,
};
static const double torch_inference[] = {
	-1.06655089, -0.23306082, 1.15758086,  0.64058864, -1.35517072, 0.64874237,
	0.89525854,  0.42500216,  -0.68460004, 0.40138018, -0.65137667, 0.84838750,
	0.22442324,  1.41339290,  0.14096609,  1.64630816, 1.49772334,  0.48768426,
};

static void fill_torch(struct layer_rig *rig)
{
	math_fill(rig->x, 18, 1, -2.0f, 3.0f);
	math_fill(layer_rig_weights(rig, "gamma"), 3, 2, 0.5f, 1.5f);
	math_fill(layer_rig_weights(rig, "beta"), 3, 3, -1.0f, 1.0f);
	math_fill(layer_rig_weights(rig, "moving_mean"), 3, 4, -1.0f, 1.0f);
	math_fill(layer_rig_weights(rig, "moving_variance"), 3, 5, 0.5f, 2.0f);
	math_fill(rig->dy, 18, 6, -1.0f, 1.0f);
}

static void test_training_and_inference_give_pytorchs_figures(void **state)
{
	static const char layer[] = BATCH_NORM("'momentum': 0.75, 'axis': [3]");
	struct layer_rig rig, inference;

	(void)state;
	layer_rig_open(&rig, layer, 3, (int64_t[]){3, 1, 3}, 2, true, NULL);
	fill_torch(&rig);
	layer_rig_forward(&rig);
	check_near(rig.y, torch_y, 18, 2e-6);
	check_near(layer_rig_weights(&rig, "moving_mean"), torch_mean, 3, 1e-6);
	check_near(layer_rig_weights(&rig, "moving_variance"), torch_variance, 3, 1e-6);
	layer_rig_backward(&rig);
	check_near(layer_rig_gradients(&rig, "gamma"), torch_dgamma, 3, 2e-6);
	check_near(layer_rig_gradients(&rig, "beta"), torch_dbeta, 3, 2e-6);
	check_near(rig.dx, torch_dx, 18, 2e-6);

	layer_rig_open(&inference, layer, 3, (int64_t[]){3, 1, 3}, 2, false, NULL);
	math_fill(inference.x, 18, 1, -2.0f, 3.0f);
	memcpy(inference.weights, rig.weights, rig.m.model->weights * sizeof(float));
	layer_rig_forward(&inference);
	check_near(inference.y, torch_inference, 18, 2e-6);
	assert_memory_equal(inference.weights, rig.weights, rig.m.model->weights * sizeof(float));
	layer_rig_close(&inference);
	layer_rig_close(&rig);
}

/* Rank 4 and 5 are TensorFlow's fused kernel. */
static void test_the_moving_variance_is_unbiased_for_images_alone(void **state)
{
	static const struct {
		int ndim;
		int64_t dims[4], batch;
		bool unbiased;
	} rows[] = {{1, {3}, 6, false},
		    {2, {2, 3}, 3, false},
		    {3, {2, 1, 3}, 3, true},
		    {4, {1, 2, 1, 3}, 3, true}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		double wanted[3];
		struct layer_rig rig;

		layer_rig_open(&rig, BATCH_NORM("'momentum': 0.75"), rows[i].ndim, rows[i].dims,
			       rows[i].batch, true, NULL);
		fill_torch(&rig);
		for (int c = 0; c < 3; c++) {
			double kept = 0.75 * (double)layer_rig_weights(&rig, "moving_variance")[c];

			wanted[c] = kept + (torch_variance[c] - kept) *
						   (rows[i].unbiased ? 1.0 : 5.0 / 6.0);
		}
		layer_rig_forward(&rig);
		check_near(rig.y, torch_y, 18, 2e-6);
		check_near(layer_rig_weights(&rig, "moving_mean"), torch_mean, 3, 1e-6);
		check_near(layer_rig_weights(&rig, "moving_variance"), wanted, 3, 1e-6);
		layer_rig_close(&rig);
	}
}

/* n / (n - 1) is 1 then, as in TensorFlow. */
static void test_a_single_value_a_channel(void **state)
{
	struct layer_rig rig;

	(void)state;
	layer_rig_open(&rig, BATCH_NORM(""), 3, (int64_t[]){1, 1, 3}, 1, true, NULL);
	math_fill(rig.x, 3, 1, 2.0f, 2.0f);
	layer_rig_forward(&rig);
	for (int c = 0; c < 3; c++) {
		assert_true(rig.y[c] == 0.0f);
		assert_close((double)layer_rig_weights(&rig, "moving_mean")[c], 0.02, 1e-6);
		assert_close((double)layer_rig_weights(&rig, "moving_variance")[c], 0.99, 1e-6);
	}
	layer_rig_close(&rig);
}

/* ---- central differences --------------------------------------------------------------------- */

#define MOST 512

/* The layer in double. */
struct reference {
	const struct layer_rig *rig;
	double x[MOST], gamma[16], beta[16];
	float slopes[MOST];
	int64_t rows, channels;
	bool by_row, moving;
};

static double reference_normal(const struct reference *r, int64_t i)
{
	int64_t c = i % r->channels, first = r->by_row ? i - c : c;
	int64_t count = r->by_row ? r->channels : r->rows, step = r->by_row ? 1 : r->channels;
	double mean = 0.0, variance = 0.0;

	for (int64_t j = 0; j < count; j++)
		mean += r->x[first + j * step] / (double)count;
	for (int64_t j = 0; j < count; j++) {
		double d = r->x[first + j * step] - mean;

		variance += d * d / (double)count;
	}
	return (r->x[i] - mean) / sqrt(variance + 1e-3);
}

static double reference_value(const struct reference *r)
{
	double value = 0.0;

	for (int64_t i = 0; i < r->rows * r->channels; i++) {
		int64_t c = i % r->channels;
		double y = reference_normal(r, i) * r->gamma[c] + r->beta[c];

		if (r->rig->pass.relu)
			y = fmin(fmax(y, 0.0), (double)r->rig->pass.relu_most);
		value += y * (double)r->slopes[i];
	}
	return value;
}

static void check_slope(struct reference *r, double *at, float got)
{
	const double h = 1e-6, kept = *at;
	double up, wanted;

	*at = kept + h;
	up = reference_value(r);
	*at = kept - h;
	wanted = (up - reference_value(r)) / (2.0 * h);
	*at = kept;
	if (!(fabs((double)got - wanted) < 2e-5 * (fabs(wanted) + 0.1)))
		fail_msg("the gradient is %.9g, the difference %.9g", (double)got, wanted);
}

static void reference_open(struct reference *r, struct layer_rig *rig, bool by_row)
{
	memset(r, 0, sizeof(*r));
	r->rig = rig;
	r->by_row = by_row;
	r->channels = rig->m.model->input.dim[rig->m.model->input.ndim - 1];
	r->rows = (int64_t)rig->in / r->channels;
	assert_true(rig->in <= MOST && r->channels <= 16);
	math_fill(rig->x, rig->in, 11, -2.0f, 3.0f);
	math_fill(rig->dy, rig->out, 12, -1.0f, 1.0f);
	memcpy(r->slopes, rig->dy, rig->out * sizeof(float));
	for (size_t i = 0; i < rig->in; i++)
		r->x[i] = (double)rig->x[i];
}

static void reference_params(struct reference *r, struct layer_rig *rig, bool scale, bool center)
{
	for (int64_t c = 0; c < r->channels; c++) {
		r->gamma[c] = 1.0;
		r->beta[c] = 0.0;
	}
	if (scale)
		math_fill(layer_rig_weights(rig, "gamma"), (size_t)r->channels, 13, 0.5f, 1.5f);
	if (center)
		math_fill(layer_rig_weights(rig, "beta"), (size_t)r->channels, 14, -1.0f, 1.0f);
	for (int64_t c = 0; c < r->channels; c++) {
		if (scale)
			r->gamma[c] = (double)layer_rig_weights(rig, "gamma")[c];
		if (center)
			r->beta[c] = (double)layer_rig_weights(rig, "beta")[c];
	}
}

static void check_differences(const char *layer, bool by_row, bool relu, float most)
{
	bool scale = !strstr(layer, "'scale': false"), center = !strstr(layer, "'center': false");
	static struct reference r;
	struct layer_rig rig;

	layer_rig_open(&rig, layer, 3, (int64_t[]){2, 3, 5}, 4, true, NULL);
	rig.pass.relu = relu;
	rig.pass.relu_most = most;
	reference_open(&r, &rig, by_row);
	reference_params(&r, &rig, scale, center);
	layer_rig_forward(&rig);
	layer_rig_backward(&rig);
	for (size_t i = 0; i < rig.in; i++)
		check_slope(&r, &r.x[i], rig.dx[i]);
	for (int64_t c = 0; c < r.channels; c++) {
		if (scale)
			check_slope(&r, &r.gamma[c], layer_rig_gradients(&rig, "gamma")[c]);
		if (center)
			check_slope(&r, &r.beta[c], layer_rig_gradients(&rig, "beta")[c]);
	}
	layer_rig_close(&rig);
}

static void test_gradients_are_those_of_central_differences(void **state)
{
	(void)state;
	check_differences(BATCH_NORM(""), false, false, INFINITY);
	check_differences(BATCH_NORM(""), false, true, INFINITY);
	check_differences(BATCH_NORM(""), false, true, 1.25f);
	check_differences(BATCH_NORM("'scale': false"), false, true, INFINITY);
	check_differences(BATCH_NORM("'center': false"), false, false, INFINITY);
	check_differences(BATCH_NORM("'center': false, 'scale': false"), false, false, INFINITY);
	check_differences(LAYER_NORM(""), true, false, INFINITY);
	check_differences(LAYER_NORM("'scale': false"), true, false, INFINITY);
	check_differences(LAYER_NORM("'center': false"), true, false, INFINITY);
	check_differences(LAYER_NORM("'center': false, 'scale': false"), true, false, INFINITY);
}

/* ---- what learns, and what does not ---------------------------------------------------------- */

static void test_a_layer_that_is_not_trainable_normalises_by_moving_statistics(void **state)
{
	struct layer_rig rig;
	float before[128], gradient;

	(void)state;
	layer_rig_open(&rig, BATCH_NORM("'trainable': false"), 3, (int64_t[]){3, 1, 3}, 2, true,
		       NULL);
	/* The reader of models says so; here the layer's own reading is what counts. */
	rig.m.model->layers[0].trainable = false;
	fill_torch(&rig);
	for (int c = 0; c < 3; c++) {
		layer_rig_weights(&rig, "moving_mean")[c] = (float)torch_mean[c];
		layer_rig_weights(&rig, "moving_variance")[c] = (float)torch_variance[c];
	}
	memcpy(before, rig.weights, rig.m.model->weights * sizeof(float));
	layer_rig_forward(&rig);
	check_near(rig.y, torch_inference, 18, 2e-6);
	assert_memory_equal(before, rig.weights, rig.m.model->weights * sizeof(float));

	layer_rig_backward(&rig);
	assert_true(rig.gradients[0] == LAYER_RIG_UNWRITTEN);
	gradient = layer_rig_weights(&rig, "gamma")[1] / sqrtf((float)torch_variance[1] + 1e-3f);
	assert_close((double)rig.dx[4], (double)(gradient * rig.dy[4]), 1e-6);
	layer_rig_close(&rig);
}

/* Moving statistics, that stay; gamma and beta learn. */
static void test_a_call_with_training_false(void **state)
{
	struct layer_rig rig;
	float before[128];

	(void)state;
	layer_rig_open(&rig, BATCH_NORM(""), 3, (int64_t[]){3, 1, 3}, 2, true, NULL);
	rig.m.model->layers[0].inference = true; /* as the reader of models has it from the call */
	fill_torch(&rig);
	for (int c = 0; c < 3; c++) {
		layer_rig_weights(&rig, "moving_mean")[c] = (float)torch_mean[c];
		layer_rig_weights(&rig, "moving_variance")[c] = (float)torch_variance[c];
	}
	memcpy(before, rig.weights, rig.m.model->weights * sizeof(float));
	layer_rig_forward(&rig);
	check_near(rig.y, torch_inference, 18, 2e-6);
	assert_memory_equal(before, rig.weights, rig.m.model->weights * sizeof(float));

	layer_rig_backward(&rig);
	for (int c = 0; c < 3; c++) {
		const double inverse = 1.0 / sqrt(torch_variance[c] + 1e-3);
		double gamma = 0.0, beta = 0.0;

		for (int i = c; i < 18; i += 3) {
			const double dy = (double)rig.dy[i];

			gamma += dy * ((double)rig.x[i] - torch_mean[c]) * inverse;
			beta += dy;
			assert_close((double)rig.dx[i],
				     (double)layer_rig_weights(&rig, "gamma")[c] * inverse * dy,
				     1e-6);
		}
		assert_close((double)layer_rig_gradients(&rig, "gamma")[c], gamma, 1e-5);
		assert_close((double)layer_rig_gradients(&rig, "beta")[c], beta, 1e-5);
	}
	layer_rig_close(&rig);
}

static void test_parameters_stand_in_keras_order(void **state)
{
	static const char *const names[] = {"gamma", "beta", "moving_mean", "moving_variance"};
	static const float values[] = {1.0f, 0.0f, 0.0f, 1.0f};
	struct layer_rig rig;

	(void)state;
	layer_rig_open(&rig, BATCH_NORM("'name': 'bn', 'gamma_regularizer': 'l2'"), 1,
		       (int64_t[]){7}, 2, true, NULL);
	assert_int_equal(rig.m.model->param_count, 4);
	for (int i = 0; i < 4; i++) {
		const struct model_param *param = &rig.m.model->params[i];

		assert_string_equal(param->short_name, names[i]);
		assert_int_equal(param->trainable, i < 2);
		assert_true((param->l2 > 0.0f) == !i);
		assert_int_equal(param->count, 7);
		assert_true(rig.weights[param->offset + 6] == values[i]);
	}
	assert_string_equal(rig.m.model->params[2].name, "bn/moving_mean:0");
	layer_rig_close(&rig);

	layer_rig_open(&rig, BATCH_NORM("'scale': false, 'center': false"), 1, (int64_t[]){7}, 2,
		       true, NULL);
	assert_int_equal(rig.m.model->param_count, 2);
	assert_string_equal(rig.m.model->params[0].short_name, "moving_mean");
	layer_rig_close(&rig);
	layer_rig_open(&rig, LAYER_NORM(""), 1, (int64_t[]){7}, 2, true, NULL);
	assert_int_equal(rig.m.model->param_count, 2);
	layer_rig_close(&rig);
}

/* As in TensorFlow's fused kernel. */
static void test_a_tiny_epsilon_is_raised_for_images(void **state)
{
	(void)state;
	for (int ndim = 2; ndim < 4; ndim++) {
		double least = ndim == 3 ? 1.001e-5 : 1e-7;
		struct layer_rig rig;

		layer_rig_open(&rig, BATCH_NORM("'epsilon': 1e-7"), ndim, (int64_t[]){1, 1, 1}, 2,
			       false, NULL);
		layer_rig_weights(&rig, "moving_variance")[0] = 0.0f;
		rig.x[0] = 1.0f;
		layer_rig_forward(&rig);
		assert_close((double)rig.y[0], 1.0 / sqrt(least), 1e-6);
		layer_rig_close(&rig);
	}
}

/* ---- threads, memory ------------------------------------------------------------------------- */

struct outcome {
	float *y, *dx, *weights, *gradients;
};

static void run_layer(const char *layer, unsigned helpers, bool in_place, struct outcome *wanted)
{
	struct layer_rig rig;
	struct pool *pool;

	assert_int_equal(pool_new(&pool, helpers, NULL), ST_OK);
	layer_rig_open(&rig, layer, 3, (int64_t[]){33, 31, 70}, 3, true, pool);
	math_fill(rig.x, rig.in, 1, -1.0f, 1.0f);
	math_fill(rig.dy, rig.out, 2, -1.0f, 1.0f);
	rig.pass.relu = compute_of(rig.pass.layer)->fuses_relu;
	if (in_place) {
		rig.grad_inputs[0] = rig.dy;
		rig.pass.grad_inputs = rig.grad_inputs;
	}
	support_fail_alloc(0);
	layer_rig_forward(&rig);
	layer_rig_backward(&rig);
	assert_false(support_alloc_failed());
	support_fail_alloc(-1);
	if (!wanted->y) {
		*wanted = (struct outcome){rig.y, rig.dx, rig.weights, rig.gradients};
		rig.y = rig.dx = rig.weights = rig.gradients = NULL;
	} else {
		size_t bytes = rig.m.model->weights * sizeof(float);

		assert_memory_equal(wanted->y, rig.y, rig.out * sizeof(float));
		assert_memory_equal(wanted->dx, rig.grad_inputs[0], rig.in * sizeof(float));
		assert_memory_equal(wanted->weights, rig.weights, bytes);
		assert_memory_equal(wanted->gradients, rig.gradients, bytes);
	}
	layer_rig_close(&rig);
	pool_free(pool);
}

static void test_any_pool_and_place_give_the_same_bytes_and_nothing_is_allocated(void **state)
{
	static const char *const layers[] = {BATCH_NORM(""), LAYER_NORM("")};
	static const unsigned helpers[] = {0, 1, 3};

	(void)state;
	for (size_t l = 0; l < ARRAY_LEN(layers); l++) {
		struct outcome wanted = {0};

		for (size_t i = 0; i < ARRAY_LEN(helpers); i++) {
			run_layer(layers[l], helpers[i], false, &wanted);
			run_layer(layers[l], helpers[i], true, &wanted);
		}
		mem_free(wanted.y);
		mem_free(wanted.dx);
		mem_free(wanted.weights);
		mem_free(wanted.gradients);
	}
}

static void test_smaller_batches_need_no_more_memory(void **state)
{
	static const char *const layers[] = {BATCH_NORM(""), LAYER_NORM("")};
	/* The second gets slices of two rows from 513 rows on: fewer slices, of more rows. */
	static const int64_t shapes[][3] = {{20, 20, 64}, {1, 1, 4096}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(layers) * ARRAY_LEN(shapes); i++) {
		struct layer_rig rig;
		const struct compute_ops *ops;
		size_t before = 0;

		layer_rig_open(&rig, layers[i % 2], 3, shapes[i / 2], 1, true, NULL);
		ops = compute_of(rig.pass.layer);
		for (int64_t batch = 1; batch < 600; batch++) {
			size_t bytes;

			rig.pass.batch = batch;
			bytes = ops->scratch(&rig.pass);
			assert_true(bytes >= before);
			before = bytes;
		}
		layer_rig_close(&rig);
	}
}

/* ---- reading --------------------------------------------------------------------------------- */

static void test_configs_of_keras_2_and_3_are_read(void **state)
{
	static const char *const layers[] = {
		BATCH_NORM("'name': 'batch_normalization', 'trainable': true, 'dtype': 'float32', "
			   "'axis': [3], 'momentum': 0.99, 'epsilon': 0.001, 'center': true, "
			   "'scale': true, 'beta_initializer': {'class_name': 'Zeros', 'config': "
			   "{}}, 'gamma_initializer': {'class_name': 'Ones', 'config': {}}, "
			   "'moving_mean_initializer': {'class_name': 'Zeros', 'config': {}}, "
			   "'moving_variance_initializer': {'class_name': 'Ones', 'config': {}}, "
			   "'beta_regularizer': null, 'gamma_regularizer': null, "
			   "'beta_constraint': null, 'gamma_constraint': null"),
		BATCH_NORM("'name': 'bn', 'trainable': true, 'dtype': {'module': 'keras', "
			   "'class_name': 'DTypePolicy', 'config': {'name': 'float32'}, "
			   "'registered_name': null}, 'axis': -1, 'momentum': 0.9, 'epsilon': "
			   "1.001e-05, 'center': true, 'scale': true, 'beta_initializer': "
			   "{'module': 'keras.initializers', 'class_name': 'Zeros', 'config': {}, "
			   "'registered_name': null}, 'gamma_initializer': {'module': "
			   "'keras.initializers', 'class_name': 'Ones', 'config': {}, "
			   "'registered_name': null}, 'moving_mean_initializer': {'module': "
			   "'keras.initializers', 'class_name': 'Zeros', 'config': {}, "
			   "'registered_name': null}, 'moving_variance_initializer': {'module': "
			   "'keras.initializers', 'class_name': 'Ones', 'config': {}, "
			   "'registered_name': null}, 'beta_regularizer': null, "
			   "'gamma_regularizer': null, 'beta_constraint': null, "
			   "'gamma_constraint': null, 'synchronized': false"),
		LAYER_NORM("'name': 'ln', 'trainable': true, 'dtype': 'float32', 'axis': [3], "
			   "'epsilon': 0.001, 'center': true, 'scale': true, 'rms_scaling': false, "
			   "'beta_initializer': 'zeros', 'gamma_initializer': 'ones', "
			   "'beta_regularizer': null, 'gamma_regularizer': null, "
			   "'beta_constraint': null, 'gamma_constraint': null"),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(layers); i++) {
		struct math_model m;

		math_model_open(&m, layers[i], 3, (int64_t[]){4, 5, 6});
		assert_int_equal(m.model->layers[0].output.ndim, 3);
		assert_int_equal(model_shape_count(&m.model->layers[0].output), 120);
		math_model_close(&m);
	}
}

static void test_what_cannot_be_done_is_refused_at_its_place(void **state)
{
	static const struct {
		const char *layer, *part;
		enum status status;
	} rows[] = {
		{BATCH_NORM("'axis': 1"), "config.axis: not supported: it must be the last axis",
		 ST_UNSUPPORTED},
		{BATCH_NORM("'axis': [1]"), "config.axis[0]: not supported", ST_UNSUPPORTED},
		{BATCH_NORM("'axis': [1, 3]"), "the last axis alone", ST_UNSUPPORTED},
		{BATCH_NORM("'axis': 'x'"), "config.axis", ST_INVALID},
		{BATCH_NORM("'axis': null"), "config.axis", ST_INVALID},
		{"[{'class_name': 'Masking', 'config': {'name': 'm'}}, {'class_name': "
		 "'BatchNormalization', 'config': {'name': 'n'}}]",
		 "\"n\": BatchNormalization with a mask is of (steps, channels) alone",
		 ST_UNSUPPORTED},
		{BATCH_NORM("'momentum': 1.5"), "config.momentum: must be from 0 to 1", ST_INVALID},
		{BATCH_NORM("'epsilon': -1"), "config.epsilon: must be 0 or greater", ST_INVALID},
		{BATCH_NORM("'scale': 1"), "config.scale", ST_INVALID},
		{BATCH_NORM("'renorm': true"), "config.renorm: not supported", ST_UNSUPPORTED},
		{BATCH_NORM("'synchronized': true"), "config.synchronized", ST_UNSUPPORTED},
		{BATCH_NORM("'gamma_constraint': 'NonNeg'"), "config.gamma_constraint",
		 ST_UNSUPPORTED},
		{BATCH_NORM("'momentun': 0.9"), "did you mean \"momentum\"", ST_INVALID},
		{LAYER_NORM("'axis': [1, 2, 3]"), "config.axis: not supported", ST_UNSUPPORTED},
		{LAYER_NORM("'rms_scaling': true"), "config.rms_scaling", ST_UNSUPPORTED},
		{LAYER_NORM("'momentum': 0.9"), "momentum", ST_INVALID},
		{"[{'class_name': 'Softmax', 'config': {'name': 's', 'axis': null}}]",
		 "config.axis", ST_INVALID},
		{"[{'class_name': 'Normalization', 'config': {'name': 'n', 'axis': null}}]",
		 "config.axis: not supported without \"mean\" and \"variance\"", ST_UNSUPPORTED},
		{"[{'class_name': 'Normalization', 'config': {'name': 'n', 'axis': null, 'mean': "
		 "1, "
		 "'variance': -1}}]",
		 "\"variance\" must not be negative", ST_INVALID},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		layer_rig_refused(rows[i].layer, 3, (int64_t[]){4, 5, 6}, rows[i].status,
				  rows[i].part);
}

static void check_lowered(const char *layer, const char *const *forward,
			  const char *const *backward, const char *const *first,
			  const char *const *evaluation)
{
	struct math_model m;

	math_model_open(&m, layer, 3, (int64_t[]){4, 5, 6});
	lowered_check(m.model, 0, 2, 'F', true, forward);
	lowered_check(m.model, 0, 2, 'B', false, backward);
	lowered_check(m.model, 0, 2, 'B', true, first);
	lowered_check_evaluation(m.model, 0, 2, evaluation);
	math_model_close(&m);
}

static void test_batch_normalization_becomes_device_operations(void **state)
{
	static const char *const forward[] = {
		"b/FusedBatchNormV3/Mean reduce 240>6 makes=6 training: x -> b",
		"b/FusedBatchNormV3/PowerSum reduce 240>6 makes=6 training: x -> c",
		"b/FusedBatchNormV3/Statistics elementwise 6*4 add=9 divide=1 sqrt=1 makes=12: b c "
		"p2 p3 -> k p2 p3",
		"b/FusedBatchNormV3 elementwise 240*1/6 add=4: x k p0 p1 -> y", NULL};
	static const char *const backward[] = {
		"b/FusedBatchNormV3/GradWhitened elementwise 240*2/6 add=3 makes=240: x k dy -> b",
		"b/FusedBatchNormV3/GradGamma reduce 240>6: b -> dp0",
		"b/FusedBatchNormV3/GradBeta reduce 240>6: dy -> dp1",
		"b/FusedBatchNormV3/GradX elementwise 240*2/6 add=6: x k dy p0 dp0 dp1 -> dx",
		NULL};
	static const char *const first[] = {
		"b/FusedBatchNormV3/GradWhitened elementwise 240*2/6 add=3 makes=240: x k dy -> b",
		"b/FusedBatchNormV3/GradGamma reduce 240>6: b -> dp0",
		"b/FusedBatchNormV3/GradBeta reduce 240>6: dy -> dp1", NULL};
	static const char *const evaluation[] = {
		"b/FusedBatchNormV3/Statistics elementwise 6*2 add=3 divide=1 sqrt=1 makes=12: p0 "
		"p1 p2 p3 -> b",
		"b/FusedBatchNormV3 elementwise 240*1/6 add=2: x b -> y", NULL};

	(void)state;
	check_lowered(BATCH_NORM("'name': 'b'"), forward, backward, first, evaluation);
}

static void test_a_frozen_batch_normalization_is_inference(void **state)
{
	static const char *const forward[] = {
		"b/FusedBatchNormV3/Statistics elementwise 6*2 add=3 divide=1 sqrt=1 makes=12: p0 "
		"p1 p2 -> k",
		"b/FusedBatchNormV3 elementwise 240*1/6 add=2: x k -> y", NULL};
	static const char *const backward[] = {
		"b/FusedBatchNormV3/GradX elementwise 240*1/6 add=1: k dy -> dx", NULL};
	static const char *const first[] = {NULL};
	static const char *const evaluation[] = {
		"b/FusedBatchNormV3/Statistics elementwise 6*2 add=3 divide=1 sqrt=1 makes=12: p0 "
		"p1 p2 -> b",
		"b/FusedBatchNormV3 elementwise 240*1/6 add=2: x b -> y", NULL};

	(void)state;
	check_lowered(BATCH_NORM("'name': 'b', 'trainable': false, 'center': false"), forward,
		      backward, first, evaluation);
}

static void test_batch_normalization_without_parameters_needs_the_sums(void **state)
{
	static const char *const forward[] = {
		"b/FusedBatchNormV3/Mean reduce 240>6 makes=6 training: x -> b",
		"b/FusedBatchNormV3/PowerSum reduce 240>6 makes=6 training: x -> c",
		"b/FusedBatchNormV3/Statistics elementwise 6*4 add=9 divide=1 sqrt=1 makes=12: b c "
		"p0 p1 -> k p0 p1",
		"b/FusedBatchNormV3 elementwise 240*1/6 add=4: x k -> y", NULL};
	static const char *const backward[] = {
		"b/FusedBatchNormV3/GradWhitened elementwise 240*2/6 add=3 makes=240: x k dy -> b",
		"b/FusedBatchNormV3/GradGamma reduce 240>6 makes=6: b -> c",
		"b/FusedBatchNormV3/GradBeta reduce 240>6 makes=6: dy -> b",
		"b/FusedBatchNormV3/GradX elementwise 240*2/6 add=6: x k b c dy -> dx", NULL};
	static const char *const first[] = {NULL};
	static const char *const evaluation[] = {
		"b/FusedBatchNormV3/Statistics elementwise 6*2 add=3 divide=1 sqrt=1 makes=12: p0 "
		"p1 -> b",
		"b/FusedBatchNormV3 elementwise 240*1/6 add=2: x b -> y", NULL};

	(void)state;
	check_lowered(BATCH_NORM("'name': 'b', 'scale': false, 'center': false"), forward, backward,
		      first, evaluation);
}

static void test_layer_normalization_becomes_device_operations(void **state)
{
	static const char *const forward[] = {
		"l/LayerNorm/Mean reduce 240>40 makes=40: x -> b",
		"l/LayerNorm/PowerSum reduce 240>40 makes=40: x -> c",
		"l/LayerNorm/Statistics elementwise 40*2 add=5 divide=1 sqrt=1 makes=80: b c -> k",
		"l/LayerNorm elementwise 240*1/6 add=4: x k p0 p1 -> y", NULL};
	static const char *const backward[] = {
		"l/LayerNorm/GradWhitened elementwise 240*2/6 add=3 makes=240: x k dy -> b",
		"l/LayerNorm/GradGamma reduce 240>6: b -> dp0",
		"l/LayerNorm/GradBeta reduce 240>6: dy -> dp1",
		"l/LayerNorm/GradScaled elementwise 240*2/6 add=4 makes=240: x k dy p0 -> b",
		"l/LayerNorm/GradMoments reduce 480>80 makes=80: b dy p0 -> c",
		"l/LayerNorm/GradX elementwise 240*2/6 add=7: x k c dy p0 -> dx",
		NULL};
	static const char *const first[] = {
		"l/LayerNorm/GradWhitened elementwise 240*2/6 add=3 makes=240: x k dy -> b",
		"l/LayerNorm/GradGamma reduce 240>6: b -> dp0",
		"l/LayerNorm/GradBeta reduce 240>6: dy -> dp1", NULL};
	static const char *const evaluation[] = {
		"l/LayerNorm/Mean reduce 240>40 makes=40: x -> b",
		"l/LayerNorm/PowerSum reduce 240>40 makes=40: x -> c",
		"l/LayerNorm/Statistics elementwise 40*2 add=5 divide=1 sqrt=1 makes=80: b c -> b",
		"l/LayerNorm elementwise 240*1/6 add=4: x b p0 p1 -> y", NULL};

	(void)state;
	check_lowered(LAYER_NORM("'name': 'l'"), forward, backward, first, evaluation);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_training_and_inference_give_pytorchs_figures),
		cmocka_unit_test(test_the_moving_variance_is_unbiased_for_images_alone),
		cmocka_unit_test(test_a_single_value_a_channel),
		cmocka_unit_test(test_gradients_are_those_of_central_differences),
		cmocka_unit_test(
			test_a_layer_that_is_not_trainable_normalises_by_moving_statistics),
		cmocka_unit_test(test_a_call_with_training_false),
		cmocka_unit_test(test_parameters_stand_in_keras_order),
		cmocka_unit_test(test_a_tiny_epsilon_is_raised_for_images),
		cmocka_unit_test(
			test_any_pool_and_place_give_the_same_bytes_and_nothing_is_allocated),
		cmocka_unit_test(test_smaller_batches_need_no_more_memory),
		cmocka_unit_test(test_configs_of_keras_2_and_3_are_read),
		cmocka_unit_test(test_what_cannot_be_done_is_refused_at_its_place),
		cmocka_unit_test(test_batch_normalization_becomes_device_operations),
		cmocka_unit_test(test_a_frozen_batch_normalization_is_inference),
		cmocka_unit_test(test_batch_normalization_without_parameters_needs_the_sums),
		cmocka_unit_test(test_layer_normalization_becomes_device_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
