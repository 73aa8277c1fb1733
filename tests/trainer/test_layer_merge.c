/*
 * Layers of several inputs, in a model that makes three of its one input: values and gradients
 * against formulas in double, fused, shared and unshared memory, any number of threads; refusals;
 * device operations.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "support/lowered.h"
#include "support/model_texts.h"
#include "support/support.h"
#include "trainer/layers/compute.h"
#include "trainer/models/stage.h"

#include "support/math.h"

#define BATCH 5

#define FROM(name) "['" name "', 0, 0, {}]"
#define LAYER(class, name, options, from)                                                          \
	"{'class_name': '" class "', 'config': {'name': '" name "'" options "}, 'name': '" name    \
				 "', 'inbound_nodes': [[" from "]]}"

/* a = 2 x, b = tanh(x), c = 0.5 x + 0.3; m is made of some of them, and the output is 2 m. A model
 * may hold nothing that its output does not depend on. */
#define A   LAYER("Rescaling", "a", ", 'scale': 2.0", FROM("x")) ","
#define B   LAYER("Activation", "b", ", 'activation': 'tanh'", FROM("x")) ","
#define AB  A B
#define ABC AB LAYER("Rescaling", "c", ", 'scale': 0.5, 'offset': 0.3", FROM("x")) ","
#define MODEL(branches, layers, last)                                                              \
	"{'class_name': 'Functional', 'config': {'name': 'f', 'layers': [{'class_name': "          \
	"'InputLayer', 'config': {'batch_input_shape': [null, 9, 11, 40], 'name': 'x'}, 'name': "  \
	"'x', 'inbound_nodes': []}," branches layers                                               \
	"," LAYER("Rescaling", "y", ", 'scale': 2.0",                                              \
		  FROM(last)) "], 'input_layers': [['x', 0, 0]], 'output_layers': [['y', 0, 0]]}}"
#define MERGE(branches, class, from) MODEL(branches, LAYER(class, "m", "", from), "m")

#define TWO   FROM("a") "," FROM("b")
#define THREE FROM("a") "," FROM("b") "," FROM("c")
#define SAME  FROM("b") "," FROM("b") "," FROM("b")

static const struct model_shape image = {.ndim = 3, .dim = {9, 11, 40}};

static struct model *open_model(const char *text)
{
	char *json = mem_strdup(text);
	struct model *model;

	assert_non_null(json);
	for (char *c = json; *c; c++)
		if (*c == '\'')
			*c = '"';
	model = support_model(json, NULL);
	mem_free(json);
	return model;
}

/* ---- formulas -------------------------------------------------------------------------------- */

static double a_of(double x)
{
	return 2.0 * x;
}

static double c_of(double x)
{
	return 0.5 * x + 0.3;
}

static double add_two(double x)
{
	return a_of(x) + tanh(x);
}

static double add_three(double x)
{
	return a_of(x) + tanh(x) + c_of(x);
}

static double add_same(double x)
{
	return 3.0 * tanh(x);
}

static double add_relu(double x)
{
	return fmax(add_two(x), 0.0);
}

static double add_relu6(double x)
{
	return fmin(fmax(add_three(x), 0.0), 6.0);
}

static double subtract_two(double x)
{
	return a_of(x) - tanh(x);
}

static double multiply_two(double x)
{
	return a_of(x) * tanh(x);
}

static double multiply_three(double x)
{
	return a_of(x) * tanh(x) * c_of(x);
}

static double multiply_same(double x)
{
	return tanh(x) * tanh(x) * tanh(x);
}

static double average_three(double x)
{
	return add_three(x) / 3.0;
}

static double maximum_three(double x)
{
	return fmax(a_of(x), fmax(tanh(x), c_of(x)));
}

static double minimum_three(double x)
{
	return fmin(a_of(x), fmin(tanh(x), c_of(x)));
}

static double minimum_two(double x)
{
	return fmin(a_of(x), tanh(x));
}

static const struct {
	const char *model;
	double (*formula)(double x);
} rows[] = {
	{MERGE(AB, "Add", TWO), add_two},
	{MERGE(ABC, "Add", THREE), add_three},
	{MERGE(B, "Add", SAME), add_same},
	{MODEL(AB,
	       LAYER("Add", "m", "", TWO) "," LAYER("Activation", "r", ", 'activation': 'relu'",
						    FROM("m")),
	       "r"),
	 add_relu},
	{MODEL(ABC,
	       LAYER("Add", "m", "", THREE) "," LAYER("ReLU", "r", ", 'max_value': 6.0", FROM("m")),
	       "r"),
	 add_relu6},
	{MERGE(AB, "Subtract", TWO), subtract_two},
	{MERGE(AB, "Multiply", TWO), multiply_two},
	{MERGE(ABC, "Multiply", THREE), multiply_three},
	{MERGE(B, "Multiply", SAME), multiply_same},
	{MERGE(ABC, "Average", THREE), average_three},
	{MERGE(ABC, "Maximum", THREE), maximum_three},
	{MERGE(ABC, "Minimum", THREE), minimum_three},
	{MERGE(AB, "Minimum", TWO), minimum_two},
};

/* ---- running --------------------------------------------------------------------------------- */

struct outcome {
	float *x, *dy, *y, *dx;
	size_t in, out;
};

static void run(struct outcome *o, const struct model *model, const struct stage_params *given)
{
	struct stage_params p = *given;
	float weights[16] = {0}, gradients[16] = {0}, *grad_output;
	struct stage *stage;
	struct err err;

	p.model = model;
	p.layer_count = model->layer_count;
	p.batch = BATCH;
	p.slots = 1;
	p.training = true;
	if (stage_new(&stage, &p, &err) != ST_OK)
		fail_msg("%s", err.text);
	o->in = (size_t)(BATCH * model_shape_count(&model->input));
	o->out = (size_t)(BATCH * model_shape_count(&model->layers[model->layer_count - 1].output));
	o->x = mem_calloc(o->in, sizeof(float));
	o->dx = mem_calloc(o->in, sizeof(float));
	o->y = mem_calloc(o->out, sizeof(float));
	o->dy = mem_calloc(o->out, sizeof(float));
	grad_output = mem_aligned(o->out, sizeof(float));
	assert_true(o->x && o->dx && o->y && o->dy && grad_output);
	math_fill(o->x, o->in, 3, -2.0f, 3.0f);
	math_fill(o->dy, o->out, 4, -1.0f, 1.0f);
	memcpy(grad_output, o->dy, o->out * sizeof(float));

	memcpy(stage_input(stage, 0), o->x, o->in * sizeof(float));
	support_fail_alloc(0);
	stage_forward(stage, 0, BATCH, 0, weights, NULL, NULL);
	memcpy(o->y, stage_output(stage, 0), o->out * sizeof(float));
	stage_backward(stage, 0, weights, grad_output, gradients, o->dx);
	assert_false(support_alloc_failed());
	support_fail_alloc(-1);
	mem_free(grad_output);
	stage_free(stage);
}

static void outcome_free(struct outcome *o)
{
	mem_free(o->x);
	mem_free(o->dx);
	mem_free(o->y);
	mem_free(o->dy);
}

static void test_values_and_gradients_are_the_formulas(void **state)
{
	const double h = 1e-6;
	const struct stage_params plain = {0};

	(void)state;
	for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
		struct model *model = open_model(rows[r].model);
		struct outcome o;

		run(&o, model, &plain);
		for (size_t i = 0; i < o.in; i++) {
			double x = (double)o.x[i], wanted = 2.0 * rows[r].formula(x), slope;

			if (!(fabs((double)o.y[i] - wanted) < 2e-6 * (fabs(wanted) + 1.0)))
				fail_msg("row %zu at %.9g: %.9g, not %.9g", r, x, (double)o.y[i],
					 wanted);
			slope = (rows[r].formula(x + h) - rows[r].formula(x - h)) / h *
				(double)o.dy[i];
			if (!(fabs((double)o.dx[i] - slope) < 1e-5 * (fabs(slope) + 1.0)))
				fail_msg("row %zu at %.9g: slope %.9g, not %.9g", r, x,
					 (double)o.dx[i], slope);
		}
		outcome_free(&o);
		model_free(model);
	}
}

#define CONCATENATE                                                                                \
	MODEL(ABC, LAYER("Concatenate", "m", ", 'axis': 3", THREE "," FROM("b") "," FROM("x")), "m")
#define POOLED                                                                                     \
	LAYER("GlobalAveragePooling2D", "g", ", 'keepdims': true", FROM("b"))                      \
	","
#define GATED(first, second)                                                                       \
	MODEL(AB, POOLED LAYER("Multiply", "m", "", FROM(first) "," FROM(second)), "m")

static void test_memory_and_threads_change_no_byte(void **state)
{
	static const char *const more[] = {CONCATENATE, GATED("a", "g"), GATED("g", "a")};

	(void)state;
	for (size_t r = 0; r < ARRAY_LEN(rows) + ARRAY_LEN(more); r++) {
		struct model *model =
			open_model(r < ARRAY_LEN(rows) ? rows[r].model : more[r - ARRAY_LEN(rows)]);
		struct outcome first, other;

		run(&first, model, &(struct stage_params){.poison = true});
		for (unsigned v = 0; v < 4; v++) {
			static const unsigned helpers[] = {0, 0, 1, 3};
			struct stage_params p = {.unfused = v == 0,
						 .unshared = v < 2,
						 .poison = true,
						 .spread = true};

			assert_int_equal(pool_new(&p.pool, helpers[v], NULL), ST_OK);
			run(&other, model, &p);
			assert_memory_equal(first.y, other.y, first.out * sizeof(float));
			assert_memory_equal(first.dx, other.dx, first.in * sizeof(float));
			outcome_free(&other);
			pool_free(p.pool);
		}
		outcome_free(&first);
		model_free(model);
	}
}

static void test_concatenate_lays_channels_side_by_side(void **state)
{
	const struct stage_params plain = {0};
	struct model *model = open_model(CONCATENATE);
	struct outcome o;

	(void)state;
	assert_int_equal(model->layers[model->layer_count - 1].output.dim[2], 200);
	run(&o, model, &plain);
	for (size_t i = 0; i < o.in; i++) {
		const size_t row = i / 40 * 200, column = i % 40;
		double x = (double)o.x[i], t = tanh(x), b = 1.0 - t * t;
		const double wanted[] = {a_of(x), t, c_of(x), t, x};
		const double slopes[] = {2.0, b, 0.5, b, 1.0};
		double slope = 0.0;

		for (size_t k = 0; k < 5; k++) {
			const size_t at = row + 40 * k + column;

			assert_true(fabs((double)o.y[at] - 2.0 * wanted[k]) < 2e-6);
			slope += 2.0 * (double)o.dy[at] * slopes[k];
		}
		assert_true(fabs((double)o.dx[i] - slope) < 1e-5);
	}
	outcome_free(&o);
	model_free(model);
}

/* y = 2 a g with g the mean of b over the 99 positions; both orders. */
static void test_a_gate_scales_channels(void **state)
{
	const struct stage_params plain = {0};

	(void)state;
	for (int order = 0; order < 2; order++) {
		struct model *model = open_model(order ? GATED("g", "a") : GATED("a", "g"));
		struct outcome o;

		run(&o, model, &plain);
		for (size_t item = 0; item < BATCH; item++) {
			for (size_t c = 0; c < 40; c++) {
				const size_t first = item * 99 * 40 + c;
				double gate = 0.0, sum = 0.0;

				for (size_t p = 0; p < 99; p++) {
					const size_t at = first + p * 40;

					gate += tanh((double)o.x[at]) / 99.0;
					sum += 2.0 * (double)o.dy[at] * a_of((double)o.x[at]);
				}
				for (size_t p = 0; p < 99; p++) {
					const size_t at = first + p * 40;
					double x = (double)o.x[at], t = tanh(x);
					double slope = 4.0 * (double)o.dy[at] * gate +
						       sum * (1.0 - t * t) / 99.0;

					assert_true(fabs((double)o.y[at] - 2.0 * a_of(x) * gate) <
						    1e-5);
					assert_true(fabs((double)o.dx[at] - slope) < 1e-5);
				}
			}
		}
		outcome_free(&o);
		model_free(model);
	}
}

/* ---- one layer by hand ----------------------------------------------------------------------- */

static void run_layer(const char *text, const float *const *inputs, float *y, float *dy,
		      float *const *dx)
{
	struct model *model = open_model(text);
	const struct model_layer *layer = &model->layers[model->layer_count - 2];
	const struct layer_pass pass = {.model = model,
					.layer = layer,
					.batch = 1,
					.training = true,
					.inputs = inputs,
					.output = y,
					.grad_output = dy,
					.grad_inputs = dx};

	assert_string_equal(layer->name, "m");
	compute_of(layer)->forward(&pass);
	compute_of(layer)->backward(&pass);
	model_free(model);
}

static void test_not_a_number_stays_and_ties_go_to_the_first(void **state)
{
	static float a[9 * 11 * 40], b[9 * 11 * 40], y[9 * 11 * 40], dy[9 * 11 * 40];
	static float da[9 * 11 * 40], db[9 * 11 * 40];
	const float *const inputs[] = {a, b};
	float *const dx[] = {da, db};

	(void)state;
	for (int minimum = 0; minimum < 2; minimum++) {
		memcpy(a, (float[]){1, NAN, 1, 2, INFINITY}, 5 * sizeof(float));
		memcpy(b, (float[]){1, 1, NAN, 3, -INFINITY}, 5 * sizeof(float));
		math_fill(dy, ARRAY_LEN(dy), 1, 5.0f, 5.0f);
		run_layer(minimum ? MERGE(AB, "Minimum", TWO) : MERGE(AB, "Maximum", TWO), inputs,
			  y, dy, dx);
		assert_true(y[0] == 1.0f && isnan(y[1]) && isnan(y[2]));
		assert_true(y[3] == (minimum ? 2.0f : 3.0f));
		assert_true(y[4] == (minimum ? -INFINITY : INFINITY));
		assert_true(da[0] == 5.0f && db[0] == 0.0f);
		assert_true(da[3] == (minimum ? 5.0f : 0.0f) && db[3] == (minimum ? 0.0f : 5.0f));
	}
	math_fill(a, 3, 1, NAN, NAN);
	run_layer(MERGE(AB, "Add", TWO), inputs, y, dy, dx);
	assert_true(isnan(y[0]) && y[3] == 5.0f);
	run_layer(MERGE(AB, "Multiply", TWO), inputs, y, dy, dx);
	assert_true(isnan(y[0]) && isnan(db[0]) && y[3] == 6.0f && db[3] == 10.0f);
}

/* ---- refusals, device operations ------------------------------------------------------------- */

#define SMALL                                                                                      \
	LAYER("GlobalAveragePooling2D", "s", "", FROM("x"))                                        \
	","

static void test_what_cannot_be_done_is_refused_at_its_place(void **state)
{
	static const struct support_refusal refusals[] = {
		{MODEL(A, SMALL LAYER("Add", "m", "", FROM("a") "," FROM("s")), "m"), ST_INVALID,
		 "layers[3].config: the inputs of Add must have one shape: the first is (None, 9, "
		 "11, 40), but input 1 is (None, 40)"},
		{MODEL(AB, POOLED LAYER("Add", "m", "", FROM("a") "," FROM("g")), "m"), ST_INVALID,
		 "input 1 is (None, 1, 1, 40)"},
		{MODEL(ABC, POOLED LAYER("Multiply", "m", "", THREE "," FROM("g")), "m"),
		 ST_INVALID, "input 3 is (None, 1, 1, 40)"},
		{MODEL(A, SMALL LAYER("Concatenate", "m", "", FROM("a") "," FROM("s")), "m"),
		 ST_INVALID, "must agree in all but the last dimension|input 1 is (None, 40)"},
		{MODEL(AB, POOLED LAYER("Concatenate", "m", "", FROM("a") "," FROM("g")), "m"),
		 ST_INVALID, "must agree in all but the last dimension"},
		{MODEL(AB, LAYER("Concatenate", "m", ", 'axis': 1", TWO), "m"), ST_UNSUPPORTED,
		 "config.axis: not supported: it must be the last axis (-1 or 3) here"},
		{MODEL(AB, LAYER("Add", "m", ", 'axis': 1", TWO), "m"), ST_INVALID, "axis"},
		{MODEL(A, LAYER("Add", "m", "", FROM("a")), "m"), ST_INVALID, "Add|inputs"},
		{MODEL(ABC, LAYER("Subtract", "m", "", THREE), "m"), ST_INVALID, "Subtract|inputs"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		struct support_refusal refusal = refusals[i];
		char *json = mem_strdup(refusal.text);

		assert_non_null(json);
		for (char *c = json; *c; c++)
			if (*c == '\'')
				*c = '"';
		refusal.text = json;
		support_assert_refused(&refusal, &image);
		mem_free(json);
	}
}

static void test_layers_become_device_operations(void **state)
{
	static const struct {
		const char *model, *forward[2], *backward[4];
	} wanted[] = {
		{MERGE(ABC, "Add", THREE), {"m/AddV2 elementwise 7920*3 add=2: x -> y"}, {NULL}},
		{MERGE(ABC, "Average", THREE),
		 {"m/TrueDiv elementwise 7920*3 add=3: x -> y"},
		 {"m/TrueDiv/Grad elementwise 7920*1 add=1: dy -> dy"}},
		{MERGE(AB, "Subtract", TWO),
		 {"m/Sub elementwise 7920*2 add=1: x -> y"},
		 {"m/Neg elementwise 7920*1 add=1: dy -> dx1"}},
		{MERGE(AB, "Maximum", TWO),
		 {"m/Maximum elementwise 7920*2 add=1: x -> y"},
		 {"m/Maximum/Grad elementwise 7920*3 select=2: x dy -> dx"}},
		{MERGE(ABC, "Multiply", THREE),
		 {"m/Mul elementwise 7920*3 add=2: x -> y"},
		 {"m/Mul/Grad elementwise 7920*4 add=6: x dy -> dx"}},
		{MERGE(AB, "Concatenate", TWO),
		 {"m/ConcatV2 copy 15840/40: x -> y"},
		 {"m/Slice copy 15840/40: dy -> dx"}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		struct model *model = open_model(wanted[i].model);
		const int at = model->layer_count - 2;

		lowered_check(model, at, 2, 'F', false, wanted[i].forward);
		lowered_check(model, at, 2, 'B', false, wanted[i].backward);
		lowered_check(model, at, 2, 'B', true, (const char *[]){NULL});
		model_free(model);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_and_gradients_are_the_formulas),
		cmocka_unit_test(test_memory_and_threads_change_no_byte),
		cmocka_unit_test(test_concatenate_lays_channels_side_by_side),
		cmocka_unit_test(test_a_gate_scales_channels),
		cmocka_unit_test(test_not_a_number_stays_and_ties_go_to_the_first),
		cmocka_unit_test(test_what_cannot_be_done_is_refused_at_its_place),
		cmocka_unit_test(test_layers_become_device_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
