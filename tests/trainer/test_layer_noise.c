/*
 * GaussianNoise, GaussianDropout and AlphaDropout: moments of what they do, the same numbers in
 * both passes and for any pool, nothing outside of training, refusals, device operations.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "support/layer_rig.h"
#include "support/lowered.h"

#define LAYER(name, options) "[{'class_name': '" name "', 'config': {'name': 'l'" options "}}]"

static const char *const layers[] = {
	LAYER("GaussianNoise", ", 'stddev': 0.5"),
	LAYER("GaussianDropout", ", 'rate': 0.2"),
	LAYER("AlphaDropout", ", 'rate': 0.3, 'seed': 7"),
};

static void moments(const float *x, size_t count, double *mean, double *deviation)
{
	double sum = 0.0, squares = 0.0;

	for (size_t i = 0; i < count; i++)
		sum += (double)x[i];
	*mean = sum / (double)count;
	for (size_t i = 0; i < count; i++)
		squares += ((double)x[i] - *mean) * ((double)x[i] - *mean);
	*deviation = sqrt(squares / (double)count);
}

/* The numbers are the seed's, so these are facts and not chances. */
static void test_numbers_have_the_moments_of_keras(void **state)
{
	double mean, deviation;
	struct layer_rig rig;

	(void)state;
	for (size_t l = 0; l < ARRAY_LEN(layers); l++) {
		layer_rig_open(&rig, layers[l], 1, (int64_t[]){40000}, 2, true, NULL);
		if (l == 2) { /* it keeps the moments of what has mean 0 and variance 1 */
			for (size_t i = 0; i < rig.in; i++)
				rig.x[i] = i & 1 ? 1.0f : -1.0f;
		} else {
			for (size_t i = 0; i < rig.in; i++)
				rig.x[i] = 3.0f;
		}
		layer_rig_forward(&rig);
		moments(rig.y, rig.out, &mean, &deviation);
		assert_true(fabs(mean - (l == 2 ? 0.0 : 3.0)) < 0.02);
		assert_true(fabs(deviation - (l == 0 ? 0.5 : l == 1 ? 3.0 * 0.5 : 1.0)) < 0.02);
		layer_rig_close(&rig);
	}
	/* The dropped ones of AlphaDropout are all alike. */
	layer_rig_open(&rig, layers[2], 1, (int64_t[]){40000}, 1, true, NULL);
	math_fill(rig.x, rig.in, 1, -1.0f, 1.0f);
	layer_rig_forward(&rig);
	for (size_t i = 0, dropped = 0; i < rig.out; i++) {
		const double low = -1.0507009873554805 * 1.6732632423543772;
		const double a = 1.0 / sqrt(0.7 * (1.0 + 0.3 * low * low));

		if (fabs((double)rig.y[i] - a * low * 0.7) < 1e-6)
			dropped++;
		else
			assert_true(fabs((double)rig.y[i] -
					 (a * (double)rig.x[i] - a * low * 0.3)) < 1e-6);
		if (i == rig.out - 1)
			assert_true(dropped > 11600 && dropped < 12400);
	}
	layer_rig_close(&rig);
}

/* y is linear in x: the gradient is what x was multiplied by in this very pass. */
static void test_gradients_are_those_of_differences(void **state)
{
	(void)state;
	for (size_t l = 0; l < ARRAY_LEN(layers); l++) {
		float y[300];
		struct layer_rig rig;

		layer_rig_open(&rig, layers[l], 1, (int64_t[]){100}, 3, true, NULL);
		for (size_t i = 0; i < rig.in; i++)
			rig.x[i] = rig.dy[i] = 1.0f;
		layer_rig_forward(&rig);
		memcpy(y, rig.y, sizeof(y));
		for (size_t i = 0; i < rig.in; i++)
			rig.x[i] = 2.0f;
		layer_rig_forward(&rig);
		layer_rig_backward(&rig);
		for (size_t i = 0; i < rig.in; i++)
			assert_true(fabs((double)(rig.dx[i] - (rig.y[i] - y[i]))) < 1e-5);
		layer_rig_close(&rig);
	}
}

static void test_steps_differ_and_nothing_happens_outside_of_training(void **state)
{
	(void)state;
	for (size_t l = 0; l < ARRAY_LEN(layers); l++) {
		float y[300];
		struct layer_rig rig;

		layer_rig_open(&rig, layers[l], 1, (int64_t[]){100}, 3, true, NULL);
		math_fill(rig.x, rig.in, 1, -1.0f, 1.0f);
		layer_rig_forward(&rig);
		memcpy(y, rig.y, sizeof(y));
		rig.pass.step = 1;
		layer_rig_forward(&rig);
		assert_memory_not_equal(y, rig.y, sizeof(y));
		rig.pass.training = false;
		layer_rig_forward(&rig);
		assert_memory_equal(rig.x, rig.y, sizeof(y));
		layer_rig_close(&rig);
	}
}

static void test_any_pool_gives_the_same_bytes_and_nothing_is_allocated(void **state)
{
	(void)state;
	for (size_t l = 0; l < ARRAY_LEN(layers); l++)
		layer_rig_check_pools(layers[l], (int64_t[]){27, 25, 41}, 3, layer_rig_fill, NULL);
}

static void test_what_cannot_be_done_is_refused_at_its_place(void **state)
{
	static const struct {
		const char *layer, *part;
	} rows[] = {
		{LAYER("GaussianNoise", ""), "stddev"},
		{LAYER("GaussianNoise", ", 'stddev': -1"), "config.stddev"},
		{LAYER("GaussianDropout", ", 'rate': 1"), "config.rate"},
		{LAYER("AlphaDropout", ", 'rate': -0.1"), "config.rate"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		layer_rig_refused(rows[i].layer, 1, (int64_t[]){5}, ST_INVALID, rows[i].part);
	layer_rig_refused(LAYER("AlphaDropout", ", 'rate': 0.1, 'noise_shape': [1, 2]"), 1,
			  (int64_t[]){2}, ST_UNSUPPORTED, "noise_shape");
}

static void test_layers_become_device_operations(void **state)
{
	static const struct {
		const char *forward[3], *backward[2];
	} rows[] = {
		{{"l/noise/RandomNormal elementwise 48*0 random=1 makes=48 training: -> b",
		  "l/noise/MulAdd elementwise 48*2 add=1 training: x b -> y"},
		 {NULL}},
		{{"l/noise/RandomNormal elementwise 48*0 random=1 makes=48 training: -> k",
		  "l/noise/MulAdd elementwise 48*2 add=2 training: x k -> y"},
		 {"l/noise/Mul/Grad elementwise 48*2 add=1 training: k dy -> dx"}},
		{{"l/noise/RandomNormal elementwise 48*0 random=1 makes=48 training: -> k",
		  "l/noise/MulAdd elementwise 48*2 add=2 training: x k -> y"},
		 {"l/noise/Mul/Grad elementwise 48*2 add=1 training: k dy -> dx"}},
	};
	static const char *const nothing[] = {NULL};

	(void)state;
	for (size_t l = 0; l < ARRAY_LEN(rows); l++) {
		struct math_model m;

		math_model_open(&m, layers[l], 2, (int64_t[]){6, 4});
		lowered_check(m.model, 0, 2, 'F', false, rows[l].forward);
		lowered_check(m.model, 0, 2, 'B', false, rows[l].backward);
		lowered_check_evaluation(m.model, 0, 2, nothing);
		math_model_close(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_have_the_moments_of_keras),
		cmocka_unit_test(test_gradients_are_those_of_differences),
		cmocka_unit_test(test_steps_differ_and_nothing_happens_outside_of_training),
		cmocka_unit_test(test_any_pool_gives_the_same_bytes_and_nothing_is_allocated),
		cmocka_unit_test(test_what_cannot_be_done_is_refused_at_its_place),
		cmocka_unit_test(test_layers_become_device_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
