/*
 * SimpleRNN, LSTM and GRU: values against the formulas worked in double, step by step; gradients
 * against central differences of these; any number of threads, refusals, device operations.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "support/layer_rig.h"
#include "support/lowered.h"
#include "trainer/kernels/kernel_activation.h"

#define LAYER(name, options)                                                                       \
	"[{'class_name': '" name "', 'config': {'name': 'l', 'units': 3" options "}}]"

#define MASKED(name, options)                                                                      \
	"[{'class_name': 'Masking', 'config': {'name': 'm'}}, {'class_name': '" name               \
	"', 'config': {'name': 'l', 'units': 3" options                                            \
	"}}, {'class_name': 'Flatten', 'config': {'name': 'f'}}]"

enum {
	BATCH = 2,
	STEPS = 4,
	FEATURES = 5,
	UNITS = 3
};

static double logistic(double x)
{
	return 1.0 / (1.0 + exp(-x));
}

static double hard(double x)
{
	return fmin(1.0, fmax(0.0, 0.2 * x + 0.5));
}

static double relu(double x)
{
	return fmax(0.0, x);
}

static double elu(double x)
{
	return x > 0.0 ? x : expm1(x);
}

static double softplus(double x)
{
	return log1p(exp(x));
}

static double linear(double x)
{
	return x;
}

static const struct form {
	const char *layer;
	int gates;
	bool sequences, backwards, bias, before;
	double (*activation)(double x);
	double (*gate)(double x); /* the recurrent activation */
	double drop, recurrent_drop;
	enum {
		UNMASKED,
		HELD,
		ZEROED
	} mask; /* what masked steps put out */
} forms[] = {
	{LAYER("SimpleRNN", ""), 1, false, false, true, false, tanh, logistic, 0.0, 0.0, UNMASKED},
	{LAYER("SimpleRNN", ", 'activation': 'relu', 'return_sequences': true"), 1, true, false,
	 true, false, relu, logistic, 0.0, 0.0, UNMASKED},
	{LAYER("SimpleRNN", ", 'use_bias': false, 'go_backwards': true"), 1, false, true, false,
	 false, tanh, logistic, 0.0, 0.0, UNMASKED},
	{LAYER("SimpleRNN", ", 'activation': null"), 1, false, false, true, false, linear, logistic,
	 0.0, 0.0, UNMASKED},
	{LAYER("LSTM", ""), 4, false, false, true, false, tanh, logistic, 0.0, 0.0, UNMASKED},
	{LAYER("LSTM", ", 'return_sequences': true, 'go_backwards': true"), 4, true, true, true,
	 false, tanh, logistic, 0.0, 0.0, UNMASKED},
	{LAYER("LSTM", ", 'use_bias': false, 'return_sequences': true"), 4, true, false, false,
	 false, tanh, logistic, 0.0, 0.0, UNMASKED},
	{LAYER("LSTM", ", 'activation': 'relu', 'recurrent_activation': 'hard_sigmoid'"), 4, false,
	 false, true, false, relu, hard, 0.0, 0.0, UNMASKED},
	{LAYER("LSTM", ", 'activation': 'softplus', 'recurrent_activation': 'tanh'"), 4, false,
	 false, true, false, softplus, tanh, 0.0, 0.0, UNMASKED},
	{LAYER("GRU", ""), 3, false, false, true, false, tanh, logistic, 0.0, 0.0, UNMASKED},
	{LAYER("GRU", ", 'return_sequences': true, 'reset_after': true"), 3, true, false, true,
	 false, tanh, logistic, 0.0, 0.0, UNMASKED},
	{LAYER("GRU", ", 'go_backwards': true, 'use_bias': false"), 3, false, true, false, false,
	 tanh, logistic, 0.0, 0.0, UNMASKED},
	{LAYER("GRU", ", 'reset_after': false"), 3, false, false, true, true, tanh, logistic, 0.0,
	 0.0, UNMASKED},
	{LAYER("GRU", ", 'reset_after': false, 'use_bias': false, 'return_sequences': true"), 3,
	 true, false, false, true, tanh, logistic, 0.0, 0.0, UNMASKED},
	{LAYER("GRU", ", 'activation': 'elu', 'recurrent_activation': 'hard_sigmoid'"), 3, false,
	 false, true, false, elu, hard, 0.0, 0.0, UNMASKED},
	{LAYER("GRU", ", 'reset_after': false, 'recurrent_activation': 'hard_sigmoid'"), 3, false,
	 false, true, true, tanh, hard, 0.0, 0.0, UNMASKED},
	{LAYER("SimpleRNN", ", 'recurrent_dropout': 0.5"), 1, false, false, true, false, tanh,
	 logistic, 0.0, 0.5, UNMASKED},
	{LAYER("LSTM", ", 'dropout': 0.25, 'recurrent_dropout': 0.5, 'return_sequences': true"), 4,
	 true, false, true, false, tanh, logistic, 0.25, 0.5, UNMASKED},
	{LAYER("LSTM", ", 'dropout': 0.5, 'go_backwards': true"), 4, false, true, true, false, tanh,
	 logistic, 0.5, 0.0, UNMASKED},
	{LAYER("GRU", ", 'dropout': 0.5, 'recurrent_dropout': 0.25"), 3, false, false, true, false,
	 tanh, logistic, 0.5, 0.25, UNMASKED},
	{LAYER("GRU", ", 'reset_after': false, 'recurrent_dropout': 0.5"), 3, false, false, true,
	 true, tanh, logistic, 0.0, 0.5, UNMASKED},
	{MASKED("SimpleRNN", ""), 1, false, false, true, false, tanh, logistic, 0.0, 0.0, HELD},
	{MASKED("LSTM", ", 'return_sequences': true"), 4, true, false, true, false, tanh, logistic,
	 0.0, 0.0, HELD},
	{MASKED("LSTM", ", 'go_backwards': true, 'dropout': 0.25, 'recurrent_dropout': 0.5"), 4,
	 false, true, true, false, tanh, logistic, 0.25, 0.5, HELD},
	{MASKED("LSTM", ", 'return_sequences': true, 'zero_output_for_mask': true"), 4, true, false,
	 true, false, tanh, logistic, 0.0, 0.0, ZEROED},
	{MASKED("GRU", ", 'return_sequences': true, 'recurrent_dropout': 0.5"), 3, true, false,
	 true, false, tanh, logistic, 0.0, 0.5, HELD},
	{MASKED("GRU", ", 'reset_after': false, 'recurrent_dropout': 0.5"), 3, false, false, true,
	 true, tanh, logistic, 0.0, 0.5, HELD},
};

/* Of the forms with a mask: steps that count, of the input. */
static const float counting[BATCH * STEPS] = {0, 1, 1, 0, 1, 0, 1, 1};

/* ---- the formulas ---------------------------------------------------------------------------- */

/* Numbers of a layer in double: the input, and parameters in Keras's order. */
struct numbers {
	double x[BATCH * STEPS * FEATURES];
	double stays[BATCH * FEATURES], state_stays[BATCH * UNITS]; /* what is dropped: 0 */
	double start[BATCH * 2 * UNITS]; /* each item's h and c before the first step */
	double end[BATCH * 2 * UNITS];   /* and after the last */
	double kernel[FEATURES * 4 * UNITS], recurrent[UNITS * 4 * UNITS], bias[2 * 4 * UNITS];
};

static void reference_step(const struct form *form, const struct numbers *n, int item,
			   const double *input, double *h, double *c)
{
	const int wide = form->gates * UNITS;
	double in[4 * UNITS] = {0}, back[4 * UNITS] = {0}, next[UNITS], reset[UNITS] = {0};
	double x[FEATURES];

	for (int i = 0; i < FEATURES; i++)
		x[i] = input[i] * n->stays[item * FEATURES + i];
	for (int j = 0; j < UNITS; j++)
		h[j] *= n->state_stays[item * UNITS + j];
	for (int g = 0; g < wide; g++) {
		in[g] = n->bias[g];
		back[g] = form->gates == 3 && !form->before ? n->bias[wide + g] : 0.0;
		if (form->before && g == 2 * UNITS)
			for (int j = 0; j < UNITS; j++)
				reset[j] = form->gate(in[UNITS + j] + back[UNITS + j]) * h[j];
		for (int i = 0; i < FEATURES; i++)
			in[g] += x[i] * n->kernel[i * wide + g];
		for (int j = 0; j < UNITS; j++)
			back[g] += (form->before && g >= 2 * UNITS ? reset : h)[j] *
				   n->recurrent[j * wide + g];
	}
	for (int j = 0; j < UNITS; j++) {
		const double *a = in + j, *b = back + j;

		if (form->gates == 1) {
			next[j] = form->activation(a[0] + b[0]);
		} else if (form->gates == 4) {
			c[j] = form->gate(a[UNITS] + b[UNITS]) * c[j] +
			       form->gate(a[0] + b[0]) *
				       form->activation(a[2 * UNITS] + b[2 * UNITS]);
			next[j] = form->gate(a[3 * UNITS] + b[3 * UNITS]) * form->activation(c[j]);
		} else {
			const double z = form->gate(a[0] + b[0]),
				     r = form->gate(a[UNITS] + b[UNITS]);

			next[j] = z * h[j] + (1.0 - z) * form->activation(a[2 * UNITS] +
									  (form->before ? 1.0 : r) *
										  b[2 * UNITS]);
		}
	}
	memcpy(h, next, sizeof(next));
}

/* The sum of the outputs times @slopes; the outputs to @y. */
static double reference(const struct form *form, struct numbers *n, const float *slopes, double *y)
{
	double sum = 0.0;
	int at = 0;

	for (int b = 0; b < BATCH; b++) {
		double h[UNITS], c[UNITS];

		memcpy(h, n->start + (ptrdiff_t)b * 2 * UNITS, sizeof(h));
		memcpy(c, n->start + (ptrdiff_t)(b * 2 + 1) * UNITS, sizeof(c));
		for (int s = 0; s < STEPS; s++) {
			const int t = form->backwards ? STEPS - 1 - s : s;

			const bool counts =
				form->mask == UNMASKED || counting[b * STEPS + t] != 0.0f;

			if (counts)
				reference_step(form, n, b, n->x + (b * STEPS + t) * FEATURES, h, c);
			for (int j = 0; j < UNITS && (form->sequences || s == STEPS - 1);
			     j++, at++) {
				y[at] = counts || form->mask == HELD ? h[j] : 0.0;
				sum += y[at] * (double)slopes[at];
			}
		}
		memcpy(n->end + (ptrdiff_t)b * 2 * UNITS, h, sizeof(h));
		memcpy(n->end + (ptrdiff_t)(b * 2 + 1) * UNITS, c, sizeof(c));
	}
	return sum;
}

static void to_double(double *to, const float *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] = (double)from[i];
}

/* Factors of what stays, by the random numbers of the layer's stream. */
static void fill_stays(double *out, const struct layer_rig *rig, double rate, uint32_t stream,
		       size_t count)
{
	const struct layer_pass *pass = &rig->pass;
	uint8_t mask[BATCH * (FEATURES + UNITS)];
	struct rng numbers;

	rng_init(&numbers, pass->seed, rng_stream(pass->layer->name) ^ stream, pass->step,
		 pass->replica);
	kernel_dropout_mask(&numbers, (uint32_t)(rate * 0x1p32), 0, count, mask);
	for (size_t i = 0; i < count; i++)
		out[i] = mask[i] ? 1.0 / (1.0 - rate) : 0.0;
}

/* What the layer makes of the numbers, as math_check_slopes() asks for it. */
struct slope {
	const struct form *form;
	struct numbers *n;
	const float *slopes;
};

static double slope_value(const void *context)
{
	const struct slope *at = context;
	double y[BATCH * STEPS * UNITS];

	return reference(at->form, at->n, at->slopes, y);
}

/* The layer, stateful, with a state that is there before its pass. */
static void begin_with_state(struct layer_rig *rig, const struct form *form, struct numbers *n,
			     float *state)
{
	const int numbers = form->gates == 4 ? 2 * UNITS : UNITS;

	math_fill(state, (size_t)(BATCH * numbers), 9, -0.8f, 0.8f);
	rig->pass.state = state;
	for (int b = 0; b < BATCH; b++)
		to_double(n->start + (ptrdiff_t)b * 2 * UNITS, state + (ptrdiff_t)b * numbers,
			  (size_t)numbers);
}

static void check_state(const struct form *form, const struct numbers *n, const float *state)
{
	const int numbers = form->gates == 4 ? 2 * UNITS : UNITS;

	for (int i = 0; i < BATCH * numbers; i++)
		assert_true(fabs((double)state[i] -
				 n->end[i / numbers * 2 * UNITS + i % numbers]) <= 1e-6);
}

/* With and without a state that a batch before has left. */
static void test_values_and_gradients_are_the_formulas(void **state)
{
	(void)state;
	for (size_t f = 0; f < 2 * ARRAY_LEN(forms); f++) {
		const bool stateful = f >= ARRAY_LEN(forms);
		const struct form *form = &forms[f % ARRAY_LEN(forms)];
		const char *units = strstr(form->layer, "'units': 3");
		float left[BATCH * 2 * UNITS];
		char layer[512];
		float slopes[BATCH * STEPS * UNITS];
		double y[BATCH * STEPS * UNITS];
		struct numbers n = {0};
		const struct slope slope = {form, &n, slopes};
		struct layer_rig rig;
		const struct model_param *params;

		snprintf(layer, sizeof(layer), "%.*s%s%s", (int)(units - form->layer), form->layer,
			 stateful ? "'stateful': true, " : "", units);
		layer_rig_open(&rig, layer, 2, (int64_t[]){STEPS, FEATURES}, BATCH, true, NULL);
		params = rig.m.model->params;
		assert_int_equal(rig.m.model->param_count, form->bias ? 3 : 2);
		if (stateful)
			begin_with_state(&rig, form, &n, left);
		assert_int_equal(rig.out, BATCH * (form->sequences ? STEPS : 1) * UNITS);
		math_fill(rig.x, rig.in, 1, -1.0f, 1.0f);
		math_fill(rig.weights, rig.m.model->weights, 5, -0.6f, 0.6f);
		math_fill(slopes, rig.out, 2, -1.0f, 1.0f);
		memcpy(rig.dy, slopes, rig.out * sizeof(float));
		fill_stays(n.stays, &rig, form->drop, 0, ARRAY_LEN(n.stays));
		fill_stays(n.state_stays, &rig, form->recurrent_drop,
			   rng_stream("recurrent_dropout"), ARRAY_LEN(n.state_stays));
		to_double(n.x, rig.x, rig.in);
		if (form->mask != UNMASKED)
			memcpy(rig.mask, counting, sizeof(counting));
		to_double(n.kernel, rig.weights + params[0].offset, params[0].count);
		to_double(n.recurrent, rig.weights + params[1].offset, params[1].count);
		if (form->bias)
			to_double(n.bias, rig.weights + params[2].offset, params[2].count);
		layer_rig_forward(&rig);
		layer_rig_backward(&rig);

		reference(form, &n, slopes, y);
		if (stateful)
			check_state(form, &n, left);
		for (size_t i = 0; i < rig.out; i++)
			if (fabs((double)rig.y[i] - y[i]) > 1e-6)
				fail_msg("%s: output %zu is %g, not %g", form->layer, i,
					 (double)rig.y[i], y[i]);
		math_check_slopes(slope_value, &slope, n.x, rig.in, rig.dx, 1e-5, 0.1, form->layer);
		for (int p = 0; p < 2 + form->bias; p++) {
			double *const numbers[] = {n.kernel, n.recurrent, n.bias};

			math_check_slopes(slope_value, &slope, numbers[p], params[p].count,
					  rig.gradients + params[p].offset, 1e-5, 0.1,
					  params[p].name);
		}
		layer_rig_close(&rig);
	}
}

/* ---- any pool -------------------------------------------------------------------------------- */

static void test_any_pool_gives_the_same_bytes(void **state)
{
	static const char *const names[] = {"SimpleRNN", "LSTM", "GRU", "GRU"};

	(void)state;
	for (size_t l = 0; l < ARRAY_LEN(names); l++) {
		float *first = NULL;

		for (unsigned helpers = 0; helpers < 3; helpers++) {
			struct pool *pool = NULL;
			struct layer_rig rig;
			char layer[128];
			size_t floats;

			snprintf(layer, sizeof(layer),
				 "[{'class_name': '%s', 'config': {'units': 70, 'dropout': 0.2, "
				 "'recurrent_dropout': 0.3%s}}]",
				 names[l], l == 3 ? ", 'reset_after': false" : "");
			if (helpers)
				assert_int_equal(pool_new(&pool, helpers, NULL), ST_OK);
			layer_rig_open(&rig, layer, 2, (int64_t[]){9, 33}, 37, true, pool);
			math_fill(rig.x, rig.in, 1, -1.0f, 1.0f);
			math_fill(rig.dy, rig.out, 2, -1.0f, 1.0f);
			layer_rig_forward(&rig);
			layer_rig_backward(&rig);
			floats = rig.m.model->weights;
			if (!first) {
				first = mem_aligned(floats, sizeof(float));
				assert_non_null(first);
				memcpy(first, rig.gradients, floats * sizeof(float));
			}
			assert_memory_equal(first, rig.gradients, floats * sizeof(float));
			layer_rig_close(&rig);
			pool_free(pool);
		}
		mem_free(first);
	}
}

/* Another step drops others, and an evaluation nothing. */
static void test_what_is_dropped_is_the_steps(void **state)
{
	float y[BATCH * UNITS];
	struct layer_rig rig;

	(void)state;
	layer_rig_open(&rig, LAYER("GRU", ", 'dropout': 0.5, 'recurrent_dropout': 0.5"), 2,
		       (int64_t[]){STEPS, FEATURES}, BATCH, true, NULL);
	math_fill(rig.x, rig.in, 1, -1.0f, 1.0f);
	math_fill(rig.weights, rig.m.model->weights, 5, -0.6f, 0.6f);
	layer_rig_forward(&rig);
	memcpy(y, rig.y, sizeof(y));
	rig.pass.step = 1;
	layer_rig_forward(&rig);
	assert_memory_not_equal(y, rig.y, sizeof(y));
	rig.pass.training = false;
	layer_rig_forward(&rig);
	memcpy(y, rig.y, sizeof(y));
	rig.pass.step = 2;
	layer_rig_forward(&rig);
	assert_memory_equal(y, rig.y, sizeof(y));
	layer_rig_close(&rig);
}

static void test_bad_numbers_stay_with_their_item(void **state)
{
	struct layer_rig rig;

	(void)state;
	layer_rig_open(&rig, LAYER("LSTM", ""), 2, (int64_t[]){STEPS, FEATURES}, BATCH, true, NULL);
	math_fill(rig.x, rig.in, 1, -1.0f, 1.0f);
	rig.x[FEATURES] = NAN;
	layer_rig_forward(&rig);
	for (int j = 0; j < UNITS; j++)
		assert_true(isnan(rig.y[j]) && isfinite(rig.y[UNITS + j]));
	layer_rig_close(&rig);
}

/* ---- initial values -------------------------------------------------------------------------- */

/* Rows of the recurrent kernel are orthonormal; the forget gates' biases are ones. */
static void test_initial_values_are_kerass(void **state)
{
	struct layer_rig rig;
	const float *rows, *bias;

	(void)state;
	layer_rig_open(&rig, "[{'class_name': 'LSTM', 'config': {'units': 16}}]", 2,
		       (int64_t[]){2, 3}, 1, true, NULL);
	rows = layer_rig_weights(&rig, "recurrent_kernel");
	for (int a = 0; a < 16; a++) {
		for (int b = 0; b <= a; b++) {
			double sum = 0.0;

			for (int i = 0; i < 64; i++)
				sum += (double)rows[a * 64 + i] * (double)rows[b * 64 + i];
			assert_true(fabs(sum - (a == b)) < 1e-6);
		}
	}
	bias = layer_rig_weights(&rig, "bias");
	for (int i = 0; i < 64; i++)
		assert_true(bias[i] == (i >= 16 && i < 32 ? 1.0f : 0.0f));
	layer_rig_close(&rig);
}

/* ---- refusals and costs ---------------------------------------------------------------------- */

static void test_what_cannot_be_done_is_refused_at_its_place(void **state)
{
	static const struct {
		const char *layer, *part;
		enum status status;
	} rows[] = {
		{LAYER("LSTM", ", 'activation': 'gelu'"), "it must be elu", ST_UNSUPPORTED},
		{LAYER("SimpleRNN", ", 'activation': 'softmax'"), "config.activation",
		 ST_UNSUPPORTED},
		{LAYER("GRU", ", 'recurrent_activation': 'softsign'"),
		 "config.recurrent_activation", ST_UNSUPPORTED},
		{LAYER("LSTM", ", 'stateful': 2"), "config.stateful", ST_INVALID},
		{LAYER("LSTM", ", 'dropout': 1.0"), "config.dropout: must be", ST_INVALID},
		{LAYER("GRU", ", 'recurrent_dropout': -0.1"), "config.recurrent_dropout",
		 ST_INVALID},
		{LAYER("LSTM", ", 'return_sequence': true"), "did you mean \"return_sequences\"",
		 ST_INVALID},
		{"[{'class_name': 'GRU', 'config': {'units': 0}}]", "config.units", ST_INVALID},
		{"[{'class_name': 'GRU', 'config': {}}]", "units", ST_INVALID},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		layer_rig_refused(rows[i].layer, 2, (int64_t[]){5, 3}, rows[i].status,
				  rows[i].part);
	layer_rig_refused(LAYER("LSTM", ""), 1, (int64_t[]){5}, ST_INVALID, "needs sequences");
	layer_rig_refused("[{'class_name': 'LSTM', 'config': {'units': 65536}}]", 2,
			  (int64_t[]){4000000, 3}, ST_LIMIT, "65536 units over 4000000 steps");
}

/* Kept: gates, output and state of each step. An LSTM and a plain cell have no second product. */
static void test_layers_become_device_operations(void **state)
{
	static const struct {
		const char *layer, *forward[7], *backward[13];
		int gates;
	} rows[] = {
		{LAYER("GRU", ""),
		 {"l/Rnn/Input matmul 2x5x9 times=4 makes=18: x p0 -> b",
		  "l/Rnn/State matmul 2x3x9 times=4 makes=18: p1 -> c",
		  "l/Rnn/Cell elementwise 6*6 add=8 sigmoid=2 tanh=1 times=4 makes=120: b c -> k",
		  "l/Rnn/Output copy 24/3: k -> y"},
		 {"l/Rnn/Cell/Grad elementwise 6*6 add=14 times=4 makes=72: k dy -> b",
		  "l/Rnn/Input/GradX matmul 2x9x5 times=4: b p0 -> dx",
		  "l/Rnn/State/GradX matmul 2x9x3 times=4 makes=6: b p1 -> c",
		  "l/Rnn/Input/GradW matmul 5x2x9 times=4 makes=45: x b -> c",
		  "l/Rnn/Input/Sum elementwise 45*2 scaled_add=1 times=4: c -> dp0",
		  "l/Rnn/State/GradW matmul 3x2x9 times=4 makes=27: k b -> c",
		  "l/Rnn/State/Sum elementwise 27*2 scaled_add=1 times=4: c -> dp1",
		  "l/Rnn/Bias/Sum elementwise 18*2 add=1 times=4 makes=18: b -> c",
		  "l/Rnn/Bias/Grad reduce 18>9: c -> dp2"},
		 3},
		{LAYER("GRU", ", 'reset_after': false, 'use_bias': false"),
		 {"l/Rnn/Gates matmul 2x8x6 times=4 makes=12: x p0 p1 -> b",
		  "l/Rnn/Candidate matmul 2x8x3 times=4 makes=6: x p0 p1 -> c",
		  "l/Rnn/Cell elementwise 6*6 add=8 sigmoid=2 tanh=1 times=4 makes=120: b c -> k",
		  "l/Rnn/Output copy 24/3: k -> y"},
		 {"l/Rnn/Cell/Grad elementwise 6*6 add=14 times=4 makes=72: k dy -> b",
		  "l/Rnn/Gates/GradX matmul 2x6x8 times=4 makes=16: b p0 p1 -> c dx",
		  "l/Rnn/Candidate/GradX matmul 2x3x8 times=4 makes=16: b p0 p1 -> c dx",
		  "l/Rnn/Gates/GradW matmul 8x2x6 times=4 makes=48: x k b -> c",
		  "l/Rnn/Gates/Sum elementwise 48*2 scaled_add=1 times=4: c -> dp0 dp1",
		  "l/Rnn/Candidate/GradW matmul 8x2x3 times=4 makes=24: x k b -> c",
		  "l/Rnn/Candidate/Sum elementwise 24*2 scaled_add=1 times=4: c -> dp0 dp1"},
		 3},
		{LAYER("LSTM", ""),
		 {"l/Rnn/Gates matmul 2x8x12 times=4 makes=24: x p0 p1 -> b",
		  "l/Rnn/Cell elementwise 6*8 add=8 sigmoid=3 tanh=2 times=4 makes=144: b -> k",
		  "l/Rnn/Output copy 24/3: k -> y"},
		 {"l/Rnn/Cell/Grad elementwise 6*8 add=18 tanh=1 times=4 makes=96: k dy -> b",
		  "l/Rnn/Gates/GradX matmul 2x12x8 times=4 makes=16: b p0 p1 -> c dx",
		  "l/Rnn/Gates/GradW matmul 8x8x12 makes=96: x k b -> c",
		  "l/Rnn/Gates/Sum elementwise 96*2 scaled_add=1: c -> dp0 dp1",
		  "l/Rnn/Bias/Sum reduce 96>24 makes=24: b -> c",
		  "l/Rnn/Bias/Grad reduce 24>12: c -> dp2"},
		 4},
		{LAYER("SimpleRNN", ", 'use_bias': false"),
		 {"l/Rnn/WeightInput matmul 8x5x3 makes=24: x p0 -> b",
		  "l/Rnn/State matmul 2x3x3 times=4 makes=6: p1 -> c",
		  "l/Rnn/Cell elementwise 6*2 add=1 tanh=1 times=4 makes=72: b c -> k",
		  "l/Rnn/Output copy 24/3: k -> y"},
		 {"l/Rnn/Cell/Grad elementwise 6*2 add=3 times=4 makes=24: k dy -> b",
		  "l/Rnn/WeightInput/GradX matmul 8x3x5: b p0 -> dx",
		  "l/Rnn/State/GradX matmul 2x3x3 times=4 makes=6: b p1 -> c",
		  "l/Rnn/WeightInput/GradW matmul 5x8x3: x b -> dp0",
		  "l/Rnn/State/GradW matmul 3x2x3 times=4 makes=9: k b -> c",
		  "l/Rnn/State/Sum elementwise 9*2 scaled_add=1 times=4: c -> dp1"},
		 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct math_model m;

		math_model_open(&m, rows[i].layer, 2, (int64_t[]){STEPS, FEATURES});
		lowered_check(m.model, 0, BATCH, 'F', false, rows[i].forward);
		lowered_check(m.model, 0, BATCH, 'B', false, rows[i].backward);
		assert_int_equal(m.model->layers[0].ops->flops(&m.model->layers[0], BATCH),
				 BATCH * STEPS * rows[i].gates * UNITS *
					 (2 * (FEATURES + UNITS) + 8));
		math_model_close(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_and_gradients_are_the_formulas),
		cmocka_unit_test(test_any_pool_gives_the_same_bytes),
		cmocka_unit_test(test_what_is_dropped_is_the_steps),
		cmocka_unit_test(test_bad_numbers_stay_with_their_item),
		cmocka_unit_test(test_initial_values_are_kerass),
		cmocka_unit_test(test_what_cannot_be_done_is_refused_at_its_place),
		cmocka_unit_test(test_layers_become_device_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
