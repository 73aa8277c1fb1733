/*
 * Layers that work element by element: values and gradients through whole layers, in place, any
 * number of threads; Dropout's statistics and names; refusals; device operations.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "support/layer_rig.h"
#include "support/lowered.h"

#define LAYER(name, options) "[{'class_name': '" name "', 'config': {" options "}}]"
#define ACTIVATION(name)     LAYER("Activation", "'activation': '" name "'")

static const char *const layers[] = {
	ACTIVATION("linear"),
	ACTIVATION("relu"),
	ACTIVATION("softmax"),
	ACTIVATION("elu"),
	ACTIVATION("exponential"),
	ACTIVATION("gelu"),
	ACTIVATION("hard_sigmoid"),
	ACTIVATION("leaky_relu"),
	ACTIVATION("log_softmax"),
	ACTIVATION("mish"),
	ACTIVATION("relu6"),
	ACTIVATION("selu"),
	ACTIVATION("sigmoid"),
	ACTIVATION("softplus"),
	ACTIVATION("softsign"),
	ACTIVATION("swish"),
	ACTIVATION("silu"),
	ACTIVATION("tanh"),
	LAYER("Activation", "'activation': {'module': 'builtins', 'class_name': 'function', "
			    "'config': 'tanh', 'registered_name': 'function'}"),
	LAYER("ReLU", ""),
	LAYER("ReLU", "'max_value': 2.0, 'negative_slope': 0.0, 'threshold': 0.0"),
	LAYER("ReLU", "'max_value': 2.5, 'negative_slope': 0.25, 'threshold': 1.5"),
	LAYER("LeakyReLU", "'alpha': 0.1"),
	LAYER("LeakyReLU", "'negative_slope': 0.1"),
	LAYER("LeakyReLU", ""),
	LAYER("ELU", "'alpha': 0.7"),
	LAYER("Softmax", "'axis': -1"),
	LAYER("Softmax", "'axis': [3]"),
	LAYER("Rescaling", "'scale': 0.5, 'offset': -1"),
	LAYER("Rescaling", "'scale': [1, 2, 3, 4, 5, 6, 7], 'offset': [7, 6, 5, 4, 3, 2, 1]"),
	LAYER("Normalization", "'axis': [3], 'mean': [1, 2, 3, 4, 5, 6, 7], 'variance': "
			       "[1, 4, 0.25, 9, 2, 3, 8]"),
	LAYER("Normalization", "'axis': -1, 'mean': null, 'variance': null, 'invert': false"),
	LAYER("Dropout", "'rate': 0.4, 'seed': 3, 'noise_shape': null"),
	LAYER("Dropout", "'rate': 0.4, 'noise_shape': [null, 1, 1, 1]"),
	LAYER("SpatialDropout2D", "'rate': 0.4"),
};

/* No element is near a place where one of these has a corner. */
static void fill(struct layer_rig *rig)
{
	for (size_t i = 0; i < rig->in; i++)
		rig->x[i] = (float)(i * 1103 % 29) * 0.25f - 3.4f;
	math_fill(rig->dy, rig->out, 2, -1.0f, 1.0f);
	for (int p = 0; p < rig->m.model->param_count; p++)
		math_fill(rig->weights + rig->m.model->params[p].offset,
			  rig->m.model->params[p].count, 5 + (uint32_t)p, 0.5f, 1.5f);
}

static double rig_value(struct layer_rig *rig, const float *slopes)
{
	double value = 0.0;

	layer_rig_forward(rig);
	for (size_t i = 0; i < rig->out; i++)
		value += (double)rig->y[i] * (double)slopes[i];
	return value;
}

/* Check the gradients @got of @values, which are the input or parameters of @rig. */
static void check_slopes(const char *name, struct layer_rig *rig, const float *slopes,
			 float *values, const float *got, size_t count, double tolerance)
{
	const float h = 0x1p-7f;

	for (size_t i = 0; i < count; i++) {
		float kept = values[i];
		double up, wanted;

		values[i] = kept + h;
		up = rig_value(rig, slopes);
		values[i] = kept - h;
		wanted = (up - rig_value(rig, slopes)) / (2.0 * (double)h);
		values[i] = kept;
		if (!(fabs((double)got[i] - wanted) < tolerance * (fabs(wanted) + 0.1)))
			fail_msg("%s at %.9g: %.9g, not %.9g", name, (double)kept, (double)got[i],
				 wanted);
	}
}

static void test_gradients_are_those_of_central_differences(void **state)
{
	static const char *const dense[] = {
		LAYER("Dense", "'units': 6, 'activation': 'swish'"),
		LAYER("Dense", "'units': 6, 'activation': 'gelu'"),
		LAYER("Dense", "'units': 6, 'activation': 'sigmoid'"),
		LAYER("Dense", "'units': 6, 'activation': 'log_softmax'"),
	};

	(void)state;
	for (size_t l = 0; l < ARRAY_LEN(layers) + ARRAY_LEN(dense); l++) {
		const char *layer =
			l < ARRAY_LEN(layers) ? layers[l] : dense[l - ARRAY_LEN(layers)];
		float slopes[128];
		struct layer_rig rig;

		layer_rig_open(&rig, layer, 3, (int64_t[]){2, 3, 7}, 3, true, NULL);
		assert_true(rig.out <= ARRAY_LEN(slopes));
		fill(&rig);
		memcpy(slopes, rig.dy, rig.out * sizeof(float));
		layer_rig_forward(&rig);
		layer_rig_backward(&rig);
		check_slopes(layer, &rig, slopes, rig.x, rig.dx, rig.in, 1e-3);
		layer_rig_close(&rig);
	}
}

/* A kernel's gradient goes through the activation too. */
static void test_parameters_behind_a_kept_activation_have_their_gradients(void **state)
{
	float slopes[18];
	struct layer_rig rig;

	(void)state;
	layer_rig_open(&rig, LAYER("Dense", "'units': 6, 'activation': 'swish'"), 1, (int64_t[]){7},
		       3, true, NULL);
	fill(&rig);
	memcpy(slopes, rig.dy, sizeof(slopes));
	layer_rig_forward(&rig);
	layer_rig_backward(&rig);
	for (int p = 0; p < rig.m.model->param_count; p++) {
		const struct model_param *param = &rig.m.model->params[p];

		check_slopes(param->name, &rig, slopes, rig.weights + param->offset,
			     rig.gradients + param->offset, param->count, 2e-3);
	}
	layer_rig_close(&rig);
}

static void test_a_dense_layer_that_does_not_learn_writes_no_gradient(void **state)
{
	struct layer_rig rig;

	(void)state;
	layer_rig_open(&rig, LAYER("Dense", "'units': 6, 'trainable': false"), 1, (int64_t[]){7}, 3,
		       true, NULL);
	assert_false(rig.pass.layer->reads_inputs);
	fill(&rig);
	layer_rig_forward(&rig);
	layer_rig_backward(&rig);
	for (size_t i = 0; i < rig.m.model->weights; i++)
		assert_true(rig.gradients[i] == LAYER_RIG_UNWRITTEN);
	assert_true(rig.dx[0] != 0.0f);
	layer_rig_close(&rig);
}

/* ---- memory and threads ---------------------------------------------------------------------- */

static void check_in_place(const char *text)
{
	struct layer_rig apart, over;
	const struct model_layer *layer;

	layer_rig_open(&apart, text, 3, (int64_t[]){2, 3, 7}, 3, true, NULL);
	layer_rig_open(&over, text, 3, (int64_t[]){2, 3, 7}, 3, true, NULL);
	fill(&apart);
	fill(&over);
	layer_rig_forward(&apart);
	layer_rig_backward(&apart);
	layer = over.pass.layer;
	assert_true(compute_of(layer)->in_place && compute_of(layer)->grad_in_place);
	if (!layer->reads_inputs)
		over.pass.output = over.x;
	layer_rig_forward(&over);
	assert_memory_equal(over.pass.output, apart.y, apart.out * sizeof(float));
	/* What is not read is not there. */
	if (!layer->reads_output)
		math_fill(over.pass.output, over.out, 1, NAN, NAN);
	if (!layer->reads_inputs && over.pass.output != over.x)
		math_fill(over.x, over.in, 1, NAN, NAN);
	over.grad_inputs[0] = over.dy;
	over.pass.grad_inputs = over.grad_inputs;
	layer_rig_backward(&over);
	assert_memory_equal(over.dy, apart.dx, apart.in * sizeof(float));
	layer_rig_close(&apart);
	layer_rig_close(&over);
}

static void test_layers_work_in_place_and_read_what_they_say(void **state)
{
	(void)state;
	for (size_t l = 0; l < ARRAY_LEN(layers); l++)
		check_in_place(layers[l]);
}

static void test_any_pool_gives_the_same_bytes_and_nothing_is_allocated(void **state)
{
	(void)state;
	for (size_t l = 0; l < ARRAY_LEN(layers); l++)
		layer_rig_check_pools(layers[l], (int64_t[]){31, 43, 7}, 9, fill, NULL);
}

/* ---- values by hand -------------------------------------------------------------------------- */

static void check_values(const char *layer, const float *x, const float *wanted)
{
	struct layer_rig rig;

	layer_rig_open(&rig, layer, 1, (int64_t[]){3}, 2, false, NULL);
	memcpy(rig.x, x, 6 * sizeof(float));
	layer_rig_forward(&rig);
	for (int i = 0; i < 6; i++)
		assert_close((double)rig.y[i], (double)wanted[i], 2e-6);
	layer_rig_close(&rig);
}

static void test_values_by_hand(void **state)
{
	const float x[] = {-4, 0.5f, 1, 2, 3, 8};

	(void)state;
	check_values(LAYER("ReLU", "'max_value': 6"), x, (float[]){0, 0.5f, 1, 2, 3, 6});
	check_values(LAYER("ReLU", "'max_value': 6, 'threshold': 1, 'negative_slope': 0.5"), x,
		     (float[]){-2.5f, -0.25f, 0, 2, 3, 6});
	check_values(LAYER("LeakyReLU", ""), x, (float[]){-1.2f, 0.5f, 1, 2, 3, 8});
	check_values(LAYER("Rescaling", "'scale': 2, 'offset': [1, 2, 3]"), x,
		     (float[]){-7, 3, 5, 5, 8, 19});
	check_values(LAYER("Normalization", "'mean': [1, 0, 1], 'variance': [4, 0.25, 0]"), x,
		     (float[]){-2.5f, 1, 0, 0.5f, 6, 7e7f});
	check_values(LAYER("Normalization", "'axis': -1"), x, x);
	check_values(LAYER("Dropout", "'rate': 0.9"), x, x);
	check_values(ACTIVATION("hard_sigmoid"), x, (float[]){0, 0.6f, 0.7f, 0.9f, 1, 1});
}

static void test_normalization_has_keras_parameters(void **state)
{
	static const char *const names[] = {"mean", "variance", "count"};
	struct layer_rig rig;

	(void)state;
	layer_rig_open(&rig, LAYER("Normalization", "'axis': [3]"), 3, (int64_t[]){4, 4, 3}, 1,
		       true, NULL);
	assert_int_equal(rig.m.model->param_count, 3);
	for (int i = 0; i < 3; i++) {
		assert_string_equal(rig.m.model->params[i].short_name, names[i]);
		assert_false(rig.m.model->params[i].trainable);
		assert_int_equal(rig.m.model->params[i].count, i < 2 ? 3 : 1);
		assert_true(layer_rig_weights(&rig, names[i])[0] == (i == 1 ? 1.0f : 0.0f));
	}
	assert_int_equal(model_layer_params(rig.m.model, 0), 7);
	layer_rig_close(&rig);
}

static void test_relus_are_known_for_what_they_are(void **state)
{
	static const struct {
		const char *layer;
		float most; /* NaN: it is none */
	} rows[] = {
		{ACTIVATION("relu"), INFINITY},
		{ACTIVATION("relu6"), 6.0f},
		{LAYER("ReLU", ""), INFINITY},
		{LAYER("ReLU", "'max_value': 2.5"), 2.5f},
		{LAYER("ReLU", "'max_value': null, 'threshold': 0, 'negative_slope': 0"), INFINITY},
		{LAYER("ReLU", "'threshold': 0.1"), NAN},
		{LAYER("ReLU", "'negative_slope': 0.1"), NAN},
		{LAYER("LeakyReLU", ""), NAN},
		{ACTIVATION("tanh"), NAN},
		{LAYER("Dropout", "'rate': 0"), NAN},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct math_model m;
		float most;

		math_model_open(&m, rows[i].layer, 1, (int64_t[]){3});
		assert_int_equal(layer_is_relu(&m.model->layers[0], &most), !isnan(rows[i].most));
		if (!isnan(rows[i].most))
			assert_true(most == rows[i].most);
		math_model_close(&m);
	}
}

static void test_reshape_finds_what_is_left(void **state)
{
	static const struct {
		const char *layer;
		int ndim;
		int64_t dims[3];
	} rows[] = {
		{LAYER("Reshape", "'target_shape': [6, 4]"), 2, {6, 4}},
		{LAYER("Reshape", "'target_shape': [-1]"), 1, {24}},
		{LAYER("Reshape", "'target_shape': [1, -1, 4]"), 3, {1, 6, 4}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct math_model m;

		math_model_open(&m, rows[i].layer, 3, (int64_t[]){2, 3, 4});
		assert_int_equal(m.model->layers[0].output.ndim, rows[i].ndim);
		for (int d = 0; d < rows[i].ndim; d++)
			assert_int_equal(m.model->layers[0].output.dim[d], rows[i].dims[d]);
		assert_true(m.model->layers[0].ops->pass_through);
		math_model_close(&m);
	}
}

/* ---- dropout --------------------------------------------------------------------------------- */

#define DROPPED 20000 /* elements: of 4 items */

/* The mask of ones, forward and backward: 0 or the scale. */
static void drop(const char *layer, uint64_t seed, uint64_t step, uint32_t replica,
		 float y[DROPPED])
{
	struct layer_rig rig;

	layer_rig_open(&rig, layer, 3, (int64_t[]){50, 10, 10}, 4, true, NULL);
	rig.pass.seed = seed;
	rig.pass.step = step;
	rig.pass.replica = replica;
	math_fill(rig.x, rig.in, 1, 1.0f, 1.0f);
	math_fill(rig.dy, rig.out, 1, 1.0f, 1.0f);
	layer_rig_forward(&rig);
	layer_rig_backward(&rig);
	assert_memory_equal(rig.y, rig.dx, DROPPED * sizeof(float));
	memcpy(y, rig.y, DROPPED * sizeof(float));
	layer_rig_close(&rig);
}

static void test_dropout_keeps_its_share_at_its_scale(void **state)
{
	static const double rates[] = {0.1, 0.25, 0.5, 0.9};
	static float y[DROPPED];

	(void)state;
	for (size_t r = 0; r < ARRAY_LEN(rates); r++) {
		double keep = 1.0 - rates[r], kept = 0.0,
		       deviation = sqrt(keep * rates[r] * DROPPED);
		char *layer = mem_printf(LAYER("Dropout", "'rate': %.2f"), rates[r]);

		drop(layer, 1, 2, 3, y);
		mem_free(layer);
		for (int i = 0; i < DROPPED; i++) {
			assert_true(y[i] == 0.0f || y[i] == (float)(1.0 / keep));
			kept += y[i] > 0.0f;
		}
		assert_true(fabs(kept - keep * DROPPED) < 4.0 * deviation);
	}
}

static void test_dropout_is_named_by_seed_layer_step_and_replica(void **state)
{
	static const struct {
		const char *layer;
		uint64_t seed, step;
		uint32_t replica;
	} rows[] = {
		{LAYER("Dropout", "'name': 'a', 'rate': 0.5"), 1, 2, 3},
		{LAYER("Dropout", "'name': 'b', 'rate': 0.5"), 1, 2, 3},
		{LAYER("Dropout", "'name': 'a', 'rate': 0.5, 'seed': 0"), 1, 2, 3},
		{LAYER("Dropout", "'name': 'a', 'rate': 0.5, 'seed': 7"), 1, 2, 3},
		{LAYER("Dropout", "'name': 'a', 'rate': 0.5"), 2, 2, 3},
		{LAYER("Dropout", "'name': 'a', 'rate': 0.5"), 1, 3, 3},
		{LAYER("Dropout", "'name': 'a', 'rate': 0.5"), 1, 2, 4},
	};
	static float first[DROPPED], other[DROPPED];

	(void)state;
	drop(rows[0].layer, rows[0].seed, rows[0].step, rows[0].replica, first);
	for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
		int same = 0;

		drop(rows[r].layer, rows[r].seed, rows[r].step, rows[r].replica, other);
		for (int i = 0; i < DROPPED; i++)
			same += !memcmp(&first[i], &other[i], sizeof(float));
		if (r)
			assert_true(abs(same - DROPPED / 2) < 300); /* four deviations */
		else
			assert_int_equal(same, DROPPED);
	}
}

static void test_shared_decisions_are_one_for_all(void **state)
{
	/* The elements that share the decision of element i. */
	static const struct {
		const char *layer;
		int run, stride; /* within a run those a stride apart */
	} rows[] = {
		{LAYER("Dropout", "'rate': 0.5, 'noise_shape': [null, 1, 1, 1]"), 5000, 1},
		{LAYER("Dropout", "'rate': 0.5, 'noise_shape': [null, null, 10, 1]"), 10, 1},
		{LAYER("Dropout", "'rate': 0.5, 'noise_shape': [1, 50, 10, 10]"), 20000, 5000},
		{LAYER("SpatialDropout2D", "'rate': 0.5"), 5000, 10},
	};
	static float y[DROPPED];

	(void)state;
	for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
		int kept = 0, all = 0;

		/* Several steps, since an item has one decision only. */
		for (uint64_t step = 0; step < 12; step++) {
			drop(rows[r].layer, 1, step, 0, y);
			for (int i = 0; i < DROPPED; i++) {
				int begin = i / rows[r].run * rows[r].run;

				assert_true(y[i] == y[begin + (i - begin) % rows[r].stride] ||
					    rows[r].stride == 1);
				if (rows[r].stride == 1)
					assert_true(y[i] == y[begin]);
				kept += y[i] > 0.0f;
				all++;
			}
		}
		assert_true(kept > all / 4 && kept < all / 4 * 3);
	}
}

static void test_dropout_without_a_rate_changes_nothing(void **state)
{
	struct layer_rig rig;

	(void)state;
	layer_rig_open(&rig, LAYER("Dropout", "'rate': 0"), 1, (int64_t[]){7}, 2, true, NULL);
	assert_int_equal(compute_of(rig.pass.layer)->kept(&rig.pass), 0);
	fill(&rig);
	layer_rig_forward(&rig);
	layer_rig_backward(&rig);
	assert_memory_equal(rig.x, rig.y, rig.in * sizeof(float));
	assert_memory_equal(rig.dy, rig.dx, rig.in * sizeof(float));
	layer_rig_close(&rig);
}

/* ---- refusals, device operations ------------------------------------------------------------- */

static void test_what_cannot_be_done_is_refused_at_its_place(void **state)
{
	static const struct {
		const char *layer, *part;
		enum status status;
	} rows[] = {
		{ACTIVATION("sigmoit"), "config.activation: unknown activation", ST_INVALID},
		{ACTIVATION("sigmoit"), "did you mean \"sigmoid\"", ST_INVALID},
		{LAYER("Activation", "'activation': {'class_name': 'LeakyReLU', 'config': {}}"),
		 "config.activation.class_name", ST_UNSUPPORTED},
		{LAYER("Activation", "'activation': {'class_name': 'function', 'config': 'rely'}"),
		 "config.activation.config: unknown activation", ST_INVALID},
		{LAYER("Activation", "'activation': {'class_name': 'function'}"),
		 "(the function's name) is missing", ST_INVALID},
		{LAYER("Activation", "'activation': 3"), "config.activation", ST_INVALID},
		{LAYER("Activation", "'activity_regularizer': 'l2'"), "activity_regularizer",
		 ST_UNSUPPORTED},
		{LAYER("ReLU", "'max_value': -1"), "config.max_value", ST_INVALID},
		{LAYER("ReLU", "'max_valu': 1"), "did you mean \"max_value\"", ST_INVALID},
		{LAYER("ReLU", "'threshold': 'a'"), "config.threshold", ST_INVALID},
		{LAYER("ReLU", "'negative_slope': -0.5"), "config.negative_slope", ST_INVALID},
		{LAYER("LeakyReLU", "'alpha': -0.5"), "config.alpha", ST_INVALID},
		{LAYER("ELU", "'alpha': 1e40"), "config.alpha", ST_INVALID},
		{LAYER("Softmax", "'axis': 1"), "config.axis", ST_UNSUPPORTED},
		{LAYER("Softmax", "'axis': [1, 2]"), "config.axis", ST_UNSUPPORTED},
		{LAYER("Dropout", ""), "\"rate\" is missing", ST_INVALID},
		{LAYER("Dropout", "'rate': 1"), "config.rate", ST_INVALID},
		{LAYER("Dropout", "'rate': 1.5"), "config.rate", ST_INVALID},
		{LAYER("Dropout", "'rate': -0.5"), "config.rate", ST_INVALID},
		{LAYER("Dropout", "'rate': '0.5'"), "config.rate", ST_INVALID},
		{LAYER("Dropout", "'rate': 0.5, 'seed': 0.5"), "config.seed", ST_INVALID},
		{LAYER("Dropout", "'rate': 0.5, 'noise_shape': [1]"), "config.noise_shape",
		 ST_INVALID},
		{LAYER("Dropout", "'rate': 0.5, 'noise_shape': [null, 2, 5, 6]"),
		 "config.noise_shape[1]", ST_INVALID},
		{LAYER("Dropout", "'rate': 0.5, 'noise_shape': [null, 1, 5, 1]"),
		 "config.noise_shape", ST_UNSUPPORTED},
		{LAYER("SpatialDropout2D", "'rate': 0.5, 'data_format': 'channels_first'"),
		 "config.data_format", ST_UNSUPPORTED},
		{LAYER("Rescaling", ""), "\"scale\" is missing", ST_INVALID},
		{LAYER("Rescaling", "'scale': [1, 2]"), "config.scale", ST_INVALID},
		{LAYER("Rescaling", "'scale': 1, 'offset': [1, 2, 'a', 4, 5, 6]"),
		 "config.offset[2]", ST_INVALID},
		{LAYER("Rescaling", "'scale': 1e300"), "config.scale", ST_INVALID},
		{LAYER("Normalization", "'axis': 1"), "config.axis", ST_UNSUPPORTED},
		{LAYER("Normalization", "'axis': [1, 2]"), "config.axis", ST_UNSUPPORTED},
		{LAYER("Normalization", "'mean': 1"), "must be given together", ST_INVALID},
		{LAYER("Normalization", "'mean': 1, 'variance': -1"), "variance", ST_INVALID},
		{LAYER("Normalization", "'invert': true"), "config.invert", ST_UNSUPPORTED},
		{LAYER("Reshape", ""), "\"target_shape\" is missing", ST_INVALID},
		{LAYER("Reshape", "'target_shape': 5"), "config.target_shape", ST_INVALID},
		{LAYER("Reshape", "'target_shape': [7, 17]"), "(None, 4, 5, 6) has 120 values",
		 ST_INVALID},
		{LAYER("Reshape", "'target_shape': [-1, 7]"), "do not fill", ST_INVALID},
		{LAYER("Reshape", "'target_shape': [-1, -1]"), "config.target_shape[1]",
		 ST_INVALID},
		{LAYER("Reshape", "'target_shape': [0]"), "config.target_shape[0]", ST_INVALID},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		layer_rig_refused(rows[i].layer, 3, (int64_t[]){4, 5, 6}, rows[i].status,
				  rows[i].part);
	layer_rig_refused(LAYER("SpatialDropout2D", "'rate': 0.5"), 1, (int64_t[]){4}, ST_INVALID,
			  "needs images");
}

static const struct {
	const char *layer;
	int64_t work;
	const char *forward[4], *backward[4], *evaluation[4];
} lowered_rows[] = {
	{LAYER("Activation", "'name': 'a', 'activation': 'tanh'"),
	 1,
	 {"a/Tanh elementwise 10*1 tanh=1: x -> y"},
	 {"a/Tanh/Grad elementwise 10*2 add=3: y dy -> dx"},
	 {"a/Tanh elementwise 10*1 tanh=1: x -> y"}},
	{LAYER("Activation", "'name': 'm', 'activation': 'mish'"),
	 6,
	 {"m/Mish elementwise 10*1 add=5 exp=1 log=1 tanh=1: x -> y"},
	 {"m/Mish/Grad elementwise 10*2 add=10 exp=1 log=1 sigmoid=1 tanh=1: x dy -> dx"},
	 {"m/Mish elementwise 10*1 add=5 exp=1 log=1 tanh=1: x -> y"}},
	{LAYER("Activation", "'name': 'g', 'activation': 'gelu'"),
	 5,
	 {"g/Gelu elementwise 10*1 add=19 divide=1: x -> y"},
	 {"g/Gelu/Grad elementwise 10*2 add=23 divide=1 exp=1: x dy -> dx"},
	 {"g/Gelu elementwise 10*1 add=19 divide=1: x -> y"}},
	{LAYER("Softmax", "'name': 's'"),
	 5,
	 {"s/Softmax rows softmax 2x5: x -> y"},
	 {"s/Softmax/Grad rows softmax_grad 2x5: y dy -> dx"},
	 {"s/Softmax rows softmax 2x5: x -> y"}},
	{LAYER("ReLU", "'name': 'r', 'max_value': 6"),
	 2,
	 {"r/Relu elementwise 10*1 add=1 relu=1: x -> y"},
	 {"r/Relu/Grad elementwise 10*2 select=1 relu_grad=1: y dy -> dx"},
	 {"r/Relu elementwise 10*1 add=1 relu=1: x -> y"}},
	{LAYER("LeakyReLU", "'name': 'l'"),
	 3,
	 {"l/Relu elementwise 10*1 add=1 select=1: x -> y"},
	 {"l/Relu/Grad elementwise 10*2 add=1 select=1: x dy -> dx"},
	 {"l/Relu elementwise 10*1 add=1 select=1: x -> y"}},
	{LAYER("ELU", "'name': 'e'"),
	 3,
	 {"e/Elu elementwise 10*1 add=2 select=1 exp=1: x -> y"},
	 {"e/Elu/Grad elementwise 10*2 add=2 select=1: y dy -> dx"},
	 {"e/Elu elementwise 10*1 add=2 select=1 exp=1: x -> y"}},
	{LAYER("Dropout", "'name': 'd', 'rate': 0.5"),
	 1,
	 {"d/dropout/RandomUniform elementwise 10*0 random=1 makes=10B training: -> k",
	  "d/dropout/Mul elementwise 10*2 add=1 select=1 training: x k -> y"},
	 {"d/dropout/Mul/Grad elementwise 10*2 add=1 select=1 training: k dy -> dx"},
	 {NULL}},
	{LAYER("Dropout", "'name': 'd', 'rate': 0.5, 'noise_shape': [null, 1]"),
	 1,
	 {"d/dropout/RandomUniform elementwise 2*0 random=1 makes=2B training: -> k",
	  "d/dropout/Mul elementwise 10*1/2 add=1 select=1 training: x k -> y"},
	 {"d/dropout/Mul/Grad elementwise 10*1/2 add=1 select=1 training: k dy -> dx"},
	 {NULL}},
	{LAYER("Dropout", "'name': 'd', 'rate': 0"), 1, {NULL}, {NULL}, {NULL}},
	{LAYER("Rescaling", "'name': 's', 'scale': 2"),
	 2,
	 {"s/MulAdd elementwise 10*1 add=2: x -> y"},
	 {"s/Mul/Grad elementwise 10*1 add=1: dy -> dx"},
	 {"s/MulAdd elementwise 10*1 add=2: x -> y"}},
	{LAYER("Normalization", "'name': 'n'"),
	 2,
	 {"n/Sqrt elementwise 5*1 add=1 sqrt=1 makes=5: p1 -> b",
	  "n/Normalize elementwise 10*1/5 add=1 divide=1: x b p0 -> y"},
	 {"n/Sqrt/Grad elementwise 5*1 add=1 sqrt=1 makes=5: p1 -> b",
	  "n/Normalize/Grad elementwise 10*1/5 divide=1: b dy -> dx"},
	 {"n/Sqrt elementwise 5*1 add=1 sqrt=1 makes=5: p1 -> b",
	  "n/Normalize elementwise 10*1/5 add=1 divide=1: x b p0 -> y"}},
	{LAYER("Normalization", "'name': 'n', 'mean': 1, 'variance': 4"),
	 2,
	 {"n/Normalize elementwise 10*1/5 add=1 divide=1: x -> y"},
	 {"n/Normalize/Grad elementwise 10*1/5 divide=1: dy -> dx"},
	 {"n/Normalize elementwise 10*1/5 add=1 divide=1: x -> y"}},
};

static void test_layers_become_device_operations(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lowered_rows); i++) {
		struct math_model m;

		math_model_open(&m, lowered_rows[i].layer, 1, (int64_t[]){5});
		lowered_check(m.model, 0, 2, 'F', true, lowered_rows[i].forward);
		lowered_check(m.model, 0, 2, 'B', false, lowered_rows[i].backward);
		lowered_check(m.model, 0, 2, 'B', true, (const char *[]){NULL});
		lowered_check_evaluation(m.model, 0, 2, lowered_rows[i].evaluation);
		assert_int_equal(m.model->layers[0].ops->flops(&m.model->layers[0], 2),
				 10 * lowered_rows[i].work);
		math_model_close(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gradients_are_those_of_central_differences),
		cmocka_unit_test(test_parameters_behind_a_kept_activation_have_their_gradients),
		cmocka_unit_test(test_a_dense_layer_that_does_not_learn_writes_no_gradient),
		cmocka_unit_test(test_layers_work_in_place_and_read_what_they_say),
		cmocka_unit_test(test_any_pool_gives_the_same_bytes_and_nothing_is_allocated),
		cmocka_unit_test(test_values_by_hand),
		cmocka_unit_test(test_normalization_has_keras_parameters),
		cmocka_unit_test(test_relus_are_known_for_what_they_are),
		cmocka_unit_test(test_reshape_finds_what_is_left),
		cmocka_unit_test(test_dropout_keeps_its_share_at_its_scale),
		cmocka_unit_test(test_dropout_is_named_by_seed_layer_step_and_replica),
		cmocka_unit_test(test_shared_decisions_are_one_for_all),
		cmocka_unit_test(test_dropout_without_a_rate_changes_nothing),
		cmocka_unit_test(test_what_cannot_be_done_is_refused_at_its_place),
		cmocka_unit_test(test_layers_become_device_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
