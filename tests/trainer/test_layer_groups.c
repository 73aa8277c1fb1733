/*
 * GroupNormalization: values against the formula in double, gradients against central differences
 * of it, evaluations, any number of threads, refusals, device operations.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "support/layer_rig.h"
#include "support/lowered.h"

#define LAYER(options) "[{'class_name': 'GroupNormalization', 'config': {'name': 'l'" options "}}]"

enum {
	BATCH = 3,
	ROWS = 6,
	CHANNELS = 8,
	COUNT = BATCH * ROWS * CHANNELS
};

static const struct form {
	const char *layer;
	int groups;
	double epsilon;
	bool scale, center;
} forms[] = {
	{LAYER(", 'groups': 2"), 2, 1e-3, true, true},
	{LAYER(", 'groups': 1, 'epsilon': 0.1, 'axis': -1"), 1, 0.1, true, true},
	{LAYER(", 'groups': -1, 'scale': false"), 8, 1e-3, false, true},
	{LAYER(", 'groups': 4, 'center': false, 'axis': 3"), 4, 1e-3, true, false},
	{LAYER(", 'groups': 4, 'center': false, 'scale': false"), 4, 1e-3, false, false},
};

struct numbers {
	double x[COUNT], gamma[CHANNELS], beta[CHANNELS];
};

/* The sum of the outputs times @slopes; the outputs to @y. */
static double reference(const struct form *form, const struct numbers *n, const float *slopes,
			double *y)
{
	const int each = CHANNELS / form->groups;
	double value = 0.0;

	for (int b = 0; b < BATCH; b++) {
		for (int g = 0; g < form->groups; g++) {
			double mean = 0.0, variance = 0.0;

			for (int i = 0; i < ROWS * each; i++)
				mean += n->x[(b * ROWS + i / each) * CHANNELS + g * each +
					     i % each];
			mean /= ROWS * each;
			for (int i = 0; i < ROWS * each; i++) {
				const double d = n->x[(b * ROWS + i / each) * CHANNELS + g * each +
						      i % each] -
						 mean;

				variance += d * d / (ROWS * each);
			}
			for (int i = 0; i < ROWS * each; i++) {
				const int c = g * each + i % each;
				const int at = (b * ROWS + i / each) * CHANNELS + c;

				y[at] = (n->x[at] - mean) / sqrt(variance + form->epsilon) *
						n->gamma[c] +
					n->beta[c];
				value += y[at] * (double)slopes[at];
			}
		}
	}
	return value;
}

static void open_form(const struct form *form, struct layer_rig *rig, struct numbers *n)
{
	layer_rig_open(rig, form->layer, 3, (int64_t[]){2, 3, CHANNELS}, BATCH, true, NULL);
	assert_int_equal(rig->m.model->param_count, form->scale + form->center);
	math_fill(rig->x, rig->in, 1, 0.5f, 2.0f);
	math_fill(rig->dy, rig->out, 2, -1.0f, 1.0f);
	math_fill(rig->weights, rig->m.model->weights, 3, -1.0f, 1.0f);
	for (int i = 0; i < COUNT; i++)
		n->x[i] = (double)rig->x[i];
	for (int c = 0; c < CHANNELS; c++) {
		n->gamma[c] = form->scale ? (double)layer_rig_weights(rig, "gamma")[c] : 1.0;
		n->beta[c] = form->center ? (double)layer_rig_weights(rig, "beta")[c] : 0.0;
	}
}

/* What the layer makes of the numbers, as math_check_slopes() asks for it. */
struct slope {
	const struct form *form;
	const struct numbers *n;
	const float *slopes;
};

static double slope_value(const void *context)
{
	const struct slope *at = context;
	double y[COUNT];

	return reference(at->form, at->n, at->slopes, y);
}

static void test_values_and_gradients_are_the_formula(void **state)
{
	(void)state;
	for (size_t f = 0; f < ARRAY_LEN(forms); f++) {
		const struct form *form = &forms[f];
		float slopes[COUNT];
		double y[COUNT];
		struct numbers n;
		const struct slope slope = {form, &n, slopes};
		struct layer_rig rig;

		open_form(form, &rig, &n);
		memcpy(slopes, rig.dy, sizeof(slopes));
		reference(form, &n, slopes, y);
		layer_rig_forward(&rig);
		for (int i = 0; i < COUNT; i++)
			assert_true(fabs((double)rig.y[i] - y[i]) < 2e-6 * (fabs(y[i]) + 1.0));
		layer_rig_backward(&rig);
		math_check_slopes(slope_value, &slope, n.x, COUNT, rig.dx, 2e-5, 0.5, form->layer);
		if (form->scale)
			math_check_slopes(slope_value, &slope, n.gamma, CHANNELS,
					  layer_rig_gradients(&rig, "gamma"), 2e-5, 0.5, "gamma");
		if (form->center)
			math_check_slopes(slope_value, &slope, n.beta, CHANNELS,
					  layer_rig_gradients(&rig, "beta"), 2e-5, 0.5, "beta");
		layer_rig_close(&rig);
	}
}

/* An evaluation keeps nothing and gives the same. A gradient may be added to what is there. */
static void test_evaluations_and_added_gradients(void **state)
{
	struct layer_rig rig, evaluation;
	struct numbers n;
	float dx[COUNT];

	(void)state;
	open_form(&forms[0], &rig, &n);
	layer_rig_open(&evaluation, forms[0].layer, 3, (int64_t[]){2, 3, CHANNELS}, BATCH, false,
		       NULL);
	memcpy(evaluation.x, rig.x, rig.in * sizeof(float));
	memcpy(evaluation.weights, rig.weights, rig.m.model->weights * sizeof(float));
	layer_rig_forward(&rig);
	layer_rig_forward(&evaluation);
	assert_memory_equal(rig.y, evaluation.y, rig.out * sizeof(float));
	layer_rig_backward(&rig);
	memcpy(dx, rig.dx, sizeof(dx));
	for (int i = 0; i < COUNT; i++)
		rig.dx[i] = 2.0f;
	rig.add[0] = true;
	layer_rig_backward(&rig);
	for (int i = 0; i < COUNT; i++)
		assert_true(rig.dx[i] == 2.0f + dx[i]);
	layer_rig_close(&rig);
	layer_rig_close(&evaluation);
}

static void test_any_pool_gives_the_same_bytes_and_nothing_is_allocated(void **state)
{
	(void)state;
	for (size_t f = 0; f < ARRAY_LEN(forms); f++)
		layer_rig_check_pools(forms[f].layer, (int64_t[]){27, 25, 40}, 5, layer_rig_fill,
				      NULL);
}

static void test_what_cannot_be_done_is_refused_at_its_place(void **state)
{
	(void)state;
	layer_rig_refused(LAYER(""), 3, (int64_t[]){4, 4, 48}, ST_INVALID,
			  "32 groups do not divide the input's 48 channels");
	layer_rig_refused(LAYER(", 'groups': 0"), 3, (int64_t[]){4, 4, 8}, ST_INVALID,
			  "config.groups");
	layer_rig_refused(LAYER(", 'groups': 2, 'axis': 1"), 3, (int64_t[]){4, 4, 8},
			  ST_UNSUPPORTED, "config.axis");
}

static void test_it_becomes_device_operations(void **state)
{
	static const char *const forward[] = {
		"l/GroupNorm/Mean reduce 96>4 makes=4: x -> b",
		"l/GroupNorm/PowerSum reduce 96>4 makes=4: x -> c",
		"l/GroupNorm/Statistics elementwise 4*2 add=5 divide=1 sqrt=1 makes=8: b c -> k",
		"l/GroupNorm elementwise 96*1/8 add=4: x k p0 p1 -> y", NULL};
	struct math_model m;

	(void)state;
	math_model_open(&m, LAYER(", 'groups': 2"), 3, (int64_t[]){2, 3, CHANNELS});
	lowered_check(m.model, 0, 2, 'F', false, forward);
	math_model_close(&m);
}

static void test_the_planner_counts_the_same(void **state)
{
	static const enum ipu_pass forward[] = {IPU_FORWARD};
	static const enum ipu_pass backward[] = {IPU_BACKWARD_WEIGHTS, IPU_BACKWARD_DATA};
	const struct ipu_composite from = {.kind = IPU_COMPOSITE_GROUPNORM,
					   .batch = 2,
					   .channels = CHANNELS,
					   .groups = 2,
					   .field = {2, 3}};
	struct math_model m;

	(void)state;
	math_model_open(&m, LAYER(", 'groups': 2"), 3, (int64_t[]){2, 3, CHANNELS});
	lowered_check_composite(m.model, 0, 2, 'F', &from, forward, 1);
	lowered_check_composite(m.model, 0, 2, 'B', &from, backward, 2);
	math_model_close(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_and_gradients_are_the_formula),
		cmocka_unit_test(test_evaluations_and_added_gradients),
		cmocka_unit_test(test_any_pool_gives_the_same_bytes_and_nothing_is_allocated),
		cmocka_unit_test(test_what_cannot_be_done_is_refused_at_its_place),
		cmocka_unit_test(test_it_becomes_device_operations),
		cmocka_unit_test(test_the_planner_counts_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
