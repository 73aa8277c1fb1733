/*
 * SimpleRNN, LSTM and GRU: see model/layers/layer_recurrent.c for the formulas.
 *
 * The input's products of all steps are one product. Each step is then a product with the previous
 * step's state, followed by the cell's functions, item by item. The results of the steps are kept:
 * the gates, h, and c (LSTM), the recurrent part a' (GRU), or the multiplied state r h (a GRU that
 * resets before its product). The backward pass runs from the last step to the first, and then
 * computes the gradients of weights as products over all steps. Products have one order of sums,
 * and all else is per item: the same bytes for any pool.
 *
 * dropout and recurrent_dropout have one mask each per item, for its features and for its state,
 * which is the same at all steps. The masks are kept as bytes; the backward pass applies them
 * again.
 *
 * An initial state given as an input is the first step's state. A state that the layer returns is
 * stored after the outputs in an item's row: the state after the last step. A stateful layer
 * starts from the end of its previous pass. The state it started with is kept as well, because the
 * first step's product reads it; no gradient flows further back.
 *
 * With go_backwards step s reads the input's step steps - 1 - s.
 */
#include <string.h>

#include "common/rng.h"
#include "trainer/kernels/kernel_activation.h"
#include "trainer/kernels/kernel_gemm.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/layers/compute_internal.h"

enum {
	KERNEL,
	RECURRENT,
	BIAS
};

/* A pass: sizes, and pointers to its arrays. */
struct recurrent {
	const struct layer_pass *pass;
	struct layer_recurrent kind;
	enum layer_kind cell;
	int64_t batch, steps, features, units, wide; /* wide: units of all gates */
	/* Kept, [batch, steps, ...]: */
	float *gates; /* wide; after the cell's functions */
	float *h;     /* units */
	float *extra; /* units */
	/* The state before the first step, [batch, units], also kept; NULL: zeros. */
	float *start_h, *start_c;
	/* Kept: dropout masks of [batch, features] and [batch, units]; NULL: no dropout. */
	uint8_t *input_mask, *state_mask;
	const float *mask; /* [batch, steps], of the input: 0 skips the step; NULL: no mask */
	/* Scratch, [batch, steps, wide]: the input's products, in the input's order (backward:
	 * their gradients); the gradients of the recurrent products, in the order of the steps. */
	float *x, *recurrent;
	float *before;      /* [batch, steps, units]: h of the previous step after dropout */
	float *dropped;     /* [batch, steps, features]: the input after dropout */
	const float *input; /* dropped, or the input itself */
	float *sums;        /* [batch, wide]: a step's recurrent product; backward [batch, units] */
	float *dh, *dc;     /* [batch, units]: from the following step */
	struct kernel_room room;
	int64_t step; /* the current step */
	bool resets;  /* first half of a step, for a GRU that resets before its product */
};

/* Floats of an item's state: h, and c of an LSTM. */
static int64_t state_floats(const struct model_layer *layer)
{
	return layer->units * (layer->ops->kind == LAYER_KIND_lstm ? 2 : 1);
}

static bool has_start(const struct layer_recurrent *r)
{
	return r->stateful || r->initial_states > 0;
}

static size_t kept_floats(const struct layer_pass *pass)
{
	const struct model_layer *layer = pass->layer;
	const struct layer_recurrent *r = layer->config;
	const int64_t steps = layer->input.dim[0] * layer->units * (r->gates + 2);

	return (size_t)(pass->batch * (steps + (has_start(r) ? state_floats(layer) : 0)));
}

static size_t recurrent_state(const struct layer_pass *pass)
{
	const struct layer_recurrent *r = pass->layer->config;

	return r->stateful ? (size_t)(pass->batch * state_floats(pass->layer)) : 0;
}

static size_t recurrent_kept(const struct layer_pass *pass)
{
	const struct model_layer *layer = pass->layer;
	const struct layer_recurrent *r = layer->config;
	const int64_t bytes = (r->drop.threshold ? layer->input.dim[1] : 0) +
			      (r->recurrent_drop.threshold ? layer->units : 0);

	return kept_floats(pass) * sizeof(float) + (size_t)(pass->batch * bytes);
}

/* Floats of the arrays of the scratch. */
static size_t wide_floats(const struct layer_pass *pass)
{
	const struct layer_recurrent *r = pass->layer->config;

	return model_align(
		(size_t)(pass->batch * pass->layer->input.dim[0] * pass->layer->units * r->gates));
}

static size_t unit_floats(const struct layer_pass *pass)
{
	return model_align((size_t)(pass->batch * pass->layer->units));
}

static size_t scratch_floats(const struct layer_pass *pass)
{
	const struct layer_recurrent *r = pass->layer->config;
	const int64_t inputs = pass->batch * model_shape_count(&pass->layer->input);

	/* x, recurrent, before, sums, dh, dc; dropped */
	return 3 * wide_floats(pass) + 8 * unit_floats(pass) +
	       (r->drop.threshold ? model_align((size_t)inputs) : 0);
}

static size_t recurrent_scratch(const struct layer_pass *pass)
{
	return scratch_floats(pass) * sizeof(float) + kernel_gemm_scratch(pool_lanes(pass->pool));
}

static struct recurrent recurrent_of(const struct layer_pass *pass)
{
	const struct model_layer *layer = pass->layer;
	const size_t wide = wide_floats(pass), units = unit_floats(pass);
	float *scratch = pass->scratch;
	struct recurrent r = {
		.pass = pass,
		.kind = *(const struct layer_recurrent *)layer->config,
		.cell = layer->ops->kind,
		.batch = pass->batch,
		.steps = layer->input.dim[0],
		.features = layer->input.dim[1],
		.units = layer->units,
		.gates = pass->kept,
		.mask = layer->mask ? pass->inputs[layer->mask] : NULL,
		.x = scratch,
		.recurrent = scratch + wide,
		.before = scratch + 2 * wide,
		.sums = scratch + 3 * wide,
		.dh = scratch + 3 * wide + 4 * units,
		.dc = scratch + 3 * wide + 5 * units,
		.dropped = scratch + 3 * wide + 8 * units,
		.room = {pass->pool, scratch + scratch_floats(pass)},
	};
	uint8_t *masks;

	r.wide = r.units * r.kind.gates;
	r.h = r.gates + r.batch * r.steps * r.wide;
	r.extra = r.h + r.batch * r.steps * r.units;
	if (has_start(&r.kind))
		r.start_h = r.extra + r.batch * r.steps * r.units;
	if (has_start(&r.kind) && r.cell == LAYER_KIND_lstm)
		r.start_c = r.start_h + r.batch * r.units;
	r.input = pass->inputs[0];
	masks = (uint8_t *)(r.gates + kept_floats(pass));
	if (compute__is_random(pass) && r.kind.drop.threshold) {
		r.input_mask = masks;
		r.input = r.dropped;
	}
	if (compute__is_random(pass) && r.kind.recurrent_drop.threshold)
		r.state_mask = masks + (r.input_mask ? r.batch * r.features : 0);
	return r;
}

/* The input's step that step @s reads. */
static int64_t input_step(const struct recurrent *r, int64_t s)
{
	return r->kind.backwards ? r->steps - 1 - s : s;
}

/* Whether step @s of the item is masked. */
static bool is_masked(const struct recurrent *r, int64_t item, int64_t s)
{
	return r->mask && r->mask[item * r->steps + input_step(r, s)] == 0.0f;
}

/* ---- dropout --------------------------------------------------------------------------------- */

static void draw_masks(const struct recurrent *r)
{
	const struct layer_pass *pass = r->pass;
	const uint32_t stream = rng_stream(pass->layer->name) ^ r->kind.seed;
	struct rng numbers;

	rng_init(&numbers, pass->seed, stream, pass->step, pass->replica);
	if (r->input_mask)
		kernel_dropout_mask(&numbers, r->kind.drop.threshold, 0,
				    (size_t)(r->batch * r->features), r->input_mask);
	rng_init(&numbers, pass->seed, stream ^ rng_stream("recurrent_dropout"), pass->step,
		 pass->replica);
	if (r->state_mask)
		kernel_dropout_mask(&numbers, r->kind.recurrent_drop.threshold, 0,
				    (size_t)(r->batch * r->units), r->state_mask);
}

/* Apply the masks of items @first .. @first + @items - 1 to all their steps; @to may be @from. */
static void drop_features(const struct recurrent *r, const float *from, float *to, int64_t first,
			  int64_t items)
{
	for (int64_t row = first * r->steps; row < (first + items) * r->steps; row++)
		kernel_dropout_apply(
			from + row * r->features, r->input_mask + row / r->steps * r->features,
			r->kind.drop.scale, to + row * r->features, (size_t)r->features);
}

static void drop_input_body(const void *context, int64_t first, int64_t items)
{
	const struct recurrent *r = context;

	drop_features(r, r->pass->inputs[0], r->dropped, first, items);
}

static void drop_grad_body(const void *context, int64_t first, int64_t items)
{
	const struct recurrent *r = context;

	drop_features(r, r->pass->grad_inputs[0], r->pass->grad_inputs[0], first, items);
}

static void drop_input(const struct recurrent *r)
{
	if (r->input_mask)
		compute__share(r->pass->pool, r->batch, r->steps * r->features, drop_input_body, r);
}

static void drop_state(const struct recurrent *r, const float *from, float *to, int64_t item)
{
	kernel_dropout_apply(from, r->state_mask + item * r->units, r->kind.recurrent_drop.scale,
			     to, (size_t)r->units);
}

/* The gradient of the state before a step. A masked step did not apply dropout to the state. */
static void drop_state_grad_body(const void *context, int64_t first, int64_t items)
{
	const struct recurrent *r = context;

	for (int64_t b = first; b < first + items; b++)
		if (!is_masked(r, b, r->step))
			drop_state(r, r->dh + b * r->units, r->dh + b * r->units, b);
}

/* h of the previous step; NULL: zeros. */
static const float *h_before(const struct recurrent *r, int64_t item)
{
	if (r->step > 0)
		return r->h + (item * r->steps + r->step - 1) * r->units;
	return r->start_h ? r->start_h + item * r->units : NULL;
}

/* r->extra of the previous step: c of an LSTM. */
static const float *extra_before(const struct recurrent *r, int64_t item)
{
	if (r->step > 0)
		return r->extra + (item * r->steps + r->step - 1) * r->units;
	return r->start_c ? r->start_c + item * r->units : NULL;
}

/* Apply dropout to the items' states before a step. */
static void drop_state_body(const void *context, int64_t first, int64_t items)
{
	const struct recurrent *r = context;

	for (int64_t b = first; b < first + items; b++)
		drop_state(r, h_before(r, b), r->before + (b * r->steps + r->step) * r->units, b);
}

/* h of the previous step, as the product reads it. */
static const float *state_before(const struct recurrent *r, int64_t item)
{
	const float *h = h_before(r, item);

	return h && r->state_mask ? r->before + (item * r->steps + r->step) * r->units : h;
}

/* ---- products -------------------------------------------------------------------------------- */

/* sums = @h U + bias, for @gates gates from @first on; rows of @h are @stride floats apart. */
static void multiply_state(const struct recurrent *r, const float *h, int64_t stride, int64_t first,
			   int64_t gates, const float *bias)
{
	const int64_t at = first * r->units;
	const struct kernel_gemm gemm = {.m = r->batch,
					 .n = gates * r->units,
					 .k = r->units,
					 .a = h,
					 .lda = stride,
					 .b = compute__weights(r->pass, RECURRENT) + at,
					 .ldb = r->wide,
					 .c = r->sums + at,
					 .ldc = r->wide,
					 .finish = {.bias = bias},
					 .openblas = r->pass->openblas};

	kernel_gemm(&gemm, &r->room);
}

/* sums = dS U^T, from the gradients of a step's recurrent products of these gates. */
static void multiply_back(const struct recurrent *r, int64_t first, int64_t gates)
{
	const int64_t at = first * r->units;
	const struct kernel_gemm gemm = {.transpose_b = true,
					 .m = r->batch,
					 .n = r->units,
					 .k = gates * r->units,
					 .a = r->recurrent + r->step * r->wide + at,
					 .lda = r->steps * r->wide,
					 .b = compute__weights(r->pass, RECURRENT) + at,
					 .ldb = r->wide,
					 .c = r->sums,
					 .ldc = r->units,
					 .openblas = r->pass->openblas};

	kernel_gemm(&gemm, &r->room);
}

/* dW[@of, these gates] = A^T dS over all rows; @to is the whole matrix. */
static void multiply_columns(const struct recurrent *r, const float *a, int64_t of,
			     const float *grad, float *to, int64_t first, int64_t gates)
{
	const int64_t at = first * r->units;
	const struct kernel_gemm gemm = {.transpose_a = true,
					 .m = of,
					 .n = gates * r->units,
					 .k = r->batch * r->steps,
					 .a = a,
					 .lda = of,
					 .b = grad + at,
					 .ldb = r->wide,
					 .c = to + at,
					 .ldc = r->wide,
					 .openblas = r->pass->openblas};

	kernel_gemm(&gemm, &r->room);
}

/* The number of gates whose recurrent product reads the state itself. */
static int64_t state_gates(const struct recurrent *r)
{
	return r->kind.gates - r->kind.reset_before;
}

/* ---- forward --------------------------------------------------------------------------------- */

/* One item at one step: its sums, the previous step's state (NULL: zeros), and the results. */
struct cell {
	const float *x, *sums; /* [wide] */
	const float *h_before, *extra_before;
	float *gates, *h, *extra;
	int64_t units;
	enum model_activation activation, recurrent_activation;
};

/* Add the sums of @count gates from @first on, then apply the recurrent activation. */
static void compute_gates(const struct cell *c, int64_t first, int64_t count)
{
	for (int64_t j = first; j < first + count; j++)
		c->gates[j] = c->x[j] + c->sums[j];
	compute__activate_elements(c->recurrent_activation, c->gates + first, c->gates + first,
				   (size_t)count);
}

static void simple_cell(const struct cell *c)
{
	for (int64_t j = 0; j < c->units; j++) {
		c->gates[j] = c->x[j] + c->sums[j];
		c->extra[j] = 0.0f;
	}
	compute__activate_elements(c->activation, c->gates, c->gates, (size_t)c->units);
	memcpy(c->h, c->gates, (size_t)c->units * sizeof(*c->h));
}

static void lstm_cell(const struct cell *c)
{
	const int64_t u = c->units;
	float *add = c->gates + 2 * u;

	compute_gates(c, 0, 2 * u);
	compute_gates(c, 3 * u, u);
	for (int64_t j = 0; j < u; j++)
		add[j] = c->x[2 * u + j] + c->sums[2 * u + j];
	compute__activate_elements(c->activation, add, add, (size_t)u);
	for (int64_t j = 0; j < u; j++)
		c->extra[j] = (c->extra_before ? c->gates[u + j] * c->extra_before[j] : 0.0f) +
			      c->gates[j] * add[j];
	compute__activate_elements(c->activation, c->extra, c->h, (size_t)u);
	for (int64_t j = 0; j < u; j++)
		c->h[j] = c->gates[3 * u + j] * c->h[j];
}

/* Combine the previous state and the candidate of a GRU, weighted by the update gate. */
static void mix_cell(const struct cell *c)
{
	float *add = c->gates + 2 * c->units;

	compute__activate_elements(c->activation, add, add, (size_t)c->units);
	for (int64_t j = 0; j < c->units; j++)
		c->h[j] = (c->h_before ? c->gates[j] * c->h_before[j] : 0.0f) +
			  (1.0f - c->gates[j]) * add[j];
}

static void gru_cell(const struct cell *c)
{
	const int64_t u = c->units;

	compute_gates(c, 0, 2 * u);
	for (int64_t j = 0; j < u; j++) {
		c->extra[j] = c->sums[2 * u + j];
		c->gates[2 * u + j] = c->x[2 * u + j] + c->gates[u + j] * c->extra[j];
	}
	mix_cell(c);
}

/* For a GRU that resets before its product: the gates, and r h. */
static void reset_cell(const struct cell *c)
{
	const int64_t u = c->units;

	compute_gates(c, 0, 2 * u);
	for (int64_t j = 0; j < u; j++)
		c->extra[j] = c->h_before ? c->gates[u + j] * c->h_before[j] : 0.0f;
}

/* The second half, after the product of r h. */
static void candidate_cell(const struct cell *c)
{
	const int64_t u = c->units;

	for (int64_t j = 2 * u; j < 3 * u; j++)
		c->gates[j] = c->x[j] + c->sums[j];
	mix_cell(c);
}

static void (*cell_function(const struct recurrent *r))(const struct cell *c)
{
	switch (r->cell) {
	case LAYER_KIND_lstm:
		return lstm_cell;
	case LAYER_KIND_gru:
		return !r->kind.reset_before ? gru_cell : r->resets ? reset_cell : candidate_cell;
	default:
		return simple_cell;
	}
}

/* A masked step copies the previous step's state. */
static void repeat_state(const struct recurrent *r, int64_t item)
{
	const int64_t row = item * r->steps + r->step;
	const size_t bytes = (size_t)r->units * sizeof(float);
	float *h = r->h + row * r->units, *extra = r->extra + row * r->units;

	memset(r->gates + row * r->wide, 0, (size_t)r->wide * sizeof(float));
	memset(h, 0, bytes);
	memset(extra, 0, bytes);
	if (h_before(r, item))
		memcpy(h, h_before(r, item), bytes);
	if (extra_before(r, item))
		memcpy(extra, extra_before(r, item), bytes);
}

static void step_body(const void *context, int64_t first, int64_t items)
{
	const struct recurrent *r = context;
	void (*const work)(const struct cell *c) = cell_function(r);

	for (int64_t b = first; b < first + items; b++) {
		const int64_t row = b * r->steps + r->step;
		const struct cell cell = {
			.x = r->x + (b * r->steps + input_step(r, r->step)) * r->wide,
			.sums = r->sums + b * r->wide,
			.h_before = state_before(r, b),
			.extra_before = extra_before(r, b),
			.gates = r->gates + row * r->wide,
			.h = r->h + row * r->units,
			.extra = r->extra + row * r->units,
			.units = r->units,
			.activation = r->kind.activation,
			.recurrent_activation = r->kind.recurrent_activation,
		};

		if (is_masked(r, b, r->step))
			repeat_state(r, b);
		else
			work(&cell);
	}
}

/* The recurrent product of a step, plus a GRU's second bias. The first step may have no state. */
static void recurrent_sums(const struct recurrent *r, const float *bias)
{
	const int64_t stride = r->step == 0 && !r->state_mask ? r->units : r->steps * r->units;

	if (h_before(r, 0)) {
		if (r->state_mask)
			compute__share(r->pass->pool, r->batch, r->units, drop_state_body, r);
		multiply_state(r, state_before(r, 0), stride, 0, state_gates(r), bias);
		return;
	}
	memset(r->sums, 0, (size_t)(r->batch * r->wide) * sizeof(*r->sums));
	for (int64_t b = 0; bias && b < r->batch; b++)
		memcpy(r->sums + b * r->wide, bias, (size_t)r->wide * sizeof(*bias));
}

/* Floats of an item's output, including returned states. */
static int64_t output_each(const struct recurrent *r)
{
	return model_shape_count(&r->pass->layer->output);
}

/* The offset, in an item's output, of the state after the last step: h, then c. */
static int64_t output_state(const struct recurrent *r)
{
	return (r->kind.sequences ? r->steps : 1) * r->units;
}

static void output_body(const void *context, int64_t first, int64_t items)
{
	const struct recurrent *r = context;
	const size_t bytes = (size_t)r->units * sizeof(float);
	const int64_t steps = r->kind.sequences ? r->steps : 1;
	const bool reverse = r->kind.reversed && r->kind.sequences;

	for (int64_t b = first; b < first + items; b++) {
		const int64_t last = (b * r->steps + r->steps - 1) * r->units;
		float *out = r->pass->output + b * output_each(r);

		for (int64_t s = 0; s < steps; s++) {
			const int64_t of = r->steps - steps + s;
			float *y = out + (reverse ? input_step(r, s) : s) * r->units;

			if (r->kind.zeros && is_masked(r, b, of))
				memset(y, 0, bytes);
			else
				memcpy(y, r->h + (b * r->steps + of) * r->units, bytes);
		}
		if (!r->kind.returns_state)
			continue;
		memcpy(out + output_state(r), r->h + last, bytes);
		if (r->cell == LAYER_KIND_lstm)
			memcpy(out + output_state(r) + r->units, r->extra + last, bytes);
	}
}

/* Load the state of a stateful layer (h and c contiguous per item), or with @put store it. */
static void transfer_state(const struct recurrent *r, bool put)
{
	const size_t bytes = (size_t)r->units * sizeof(float);
	float *state = r->pass->state;

	if (!r->kind.stateful)
		return;
	for (int64_t b = 0; b < r->batch; b++) {
		const int64_t last = (b * r->steps + r->steps - 1) * r->units;

		memcpy(put ? state : r->start_h + b * r->units, put ? r->h + last : state, bytes);
		state += r->units;
		if (!r->start_c)
			continue;
		memcpy(put ? state : r->start_c + b * r->units, put ? r->extra + last : state,
		       bytes);
		state += r->units;
	}
}

static bool has_second_bias(const struct recurrent *r)
{
	return r->cell == LAYER_KIND_gru && !r->kind.reset_before;
}

static void recurrent_forward(const struct layer_pass *pass)
{
	struct recurrent r = recurrent_of(pass);
	const float *bias = pass->layer->use_bias ? compute__weights(pass, BIAS) : NULL;
	const float *second = bias && has_second_bias(&r) ? bias + r.wide : NULL;
	const size_t bytes = (size_t)(r.batch * r.units) * sizeof(float);
	const struct kernel_gemm input = {.m = r.batch * r.steps,
					  .n = r.wide,
					  .k = r.features,
					  .a = r.input,
					  .lda = r.features,
					  .b = compute__weights(pass, KERNEL),
					  .ldb = r.wide,
					  .c = r.x,
					  .ldc = r.wide,
					  .finish = {.bias = bias},
					  .openblas = pass->openblas};

	draw_masks(&r);
	drop_input(&r);
	transfer_state(&r, false);
	/* The initial state is an input. */
	if (r.kind.initial_states > 0) {
		memcpy(r.start_h, pass->inputs[1], bytes);
		if (r.start_c)
			memcpy(r.start_c, pass->inputs[2], bytes);
	}
	kernel_gemm(&input, &r.room);
	for (r.step = 0; r.step < r.steps; r.step++) {
		recurrent_sums(&r, second);
		if (r.kind.reset_before) {
			r.resets = true;
			compute__share(pass->pool, r.batch, 8 * r.wide, step_body, &r);
			r.resets = false;
			if (h_before(&r, 0))
				multiply_state(&r, r.extra + r.step * r.units, r.steps * r.units, 2,
					       1, NULL);
		}
		compute__share(pass->pool, r.batch, 16 * r.wide, step_body, &r);
	}
	compute__share(pass->pool, r.batch, r.steps * r.units, output_body, &r);
	transfer_state(&r, true);
}

/* ---- backward -------------------------------------------------------------------------------- */

/* One item at one step: computes the gradients of its sums from that of h. @dh and @dc become the
 * previous step's gradients, without the recurrent product's part. */
struct cell_grad {
	const float *gates, *h, *extra, *h_before, *extra_before;
	const float *dy; /* NULL: this step is not part of the output */
	float *x, *recurrent, *dh, *dc;
	const float *sums;
	int64_t units;
	enum model_activation activation, recurrent_activation;
};

/* Turn the gradients of @count gates from @first on into those of their sums. */
static void gate_grad(const struct cell_grad *c, int64_t first, int64_t count)
{
	compute__activate_elements_grad(c->recurrent_activation, c->gates + first, c->x + first,
					(size_t)count);
}

static void add_grad(const struct cell_grad *c, int64_t first)
{
	compute__activate_elements_grad(c->activation, c->gates + first, c->x + first,
					(size_t)c->units);
}

static void simple_grad(const struct cell_grad *c)
{
	for (int64_t j = 0; j < c->units; j++) {
		c->x[j] = c->dh[j] + (c->dy ? c->dy[j] : 0.0f);
		c->dh[j] = 0.0f;
	}
	add_grad(c, 0);
	memcpy(c->recurrent, c->x, (size_t)c->units * sizeof(*c->x));
}

static void lstm_grad(const struct cell_grad *c)
{
	const int64_t u = c->units;
	const float *in = c->gates, *forget = in + u, *add = in + 2 * u, *out = in + 3 * u;
	float *activated = c->recurrent,
	      *dc = c->recurrent + u; /* temporary, until recurrent is written */

	compute__activate_elements(c->activation, c->extra, activated, (size_t)u);
	for (int64_t j = 0; j < u; j++) {
		const float dh = c->dh[j] + (c->dy ? c->dy[j] : 0.0f);

		c->x[3 * u + j] = dh * activated[j];
		dc[j] = dh * out[j];
		c->dh[j] = 0.0f;
	}
	compute__activate_elements_grad(c->activation, activated, dc, (size_t)u);
	for (int64_t j = 0; j < u; j++) {
		const float all = c->dc[j] + dc[j];

		c->x[j] = all * add[j];
		c->x[u + j] = all * (c->extra_before ? c->extra_before[j] : 0.0f);
		c->x[2 * u + j] = all * in[j];
		c->dc[j] = all * forget[j];
	}
	gate_grad(c, 0, 2 * u);
	add_grad(c, 2 * u);
	gate_grad(c, 3 * u, u);
	memcpy(c->recurrent, c->x, (size_t)(4 * u) * sizeof(*c->x));
}

/* The gradients of a GRU's update gate and candidate, and the part of dh that passes directly. */
static void mix_grad(const struct cell_grad *c)
{
	const int64_t u = c->units;
	const float *update = c->gates, *add = c->gates + 2 * u;

	for (int64_t j = 0; j < u; j++) {
		const float dh = c->dh[j] + (c->dy ? c->dy[j] : 0.0f);

		c->x[j] = dh * ((c->h_before ? c->h_before[j] : 0.0f) - add[j]);
		c->x[2 * u + j] = dh * (1.0f - update[j]);
		c->dh[j] = dh * update[j];
	}
	gate_grad(c, 0, u);
	add_grad(c, 2 * u);
}

static void gru_grad(const struct cell_grad *c)
{
	const int64_t u = c->units;

	mix_grad(c);
	for (int64_t j = 0; j < u; j++) {
		c->x[u + j] = c->x[2 * u + j] * c->extra[j];
		c->recurrent[2 * u + j] = c->x[2 * u + j] * c->gates[u + j];
	}
	gate_grad(c, u, u);
	memcpy(c->recurrent, c->x, (size_t)(2 * u) * sizeof(*c->x));
}

/* For a GRU that resets before its product: the part that does not need the product's gradient. */
static void candidate_grad(const struct cell_grad *c)
{
	const int64_t u = c->units;

	mix_grad(c);
	memset(c->x + u, 0, (size_t)u * sizeof(*c->x));
	memcpy(c->recurrent, c->x, (size_t)(3 * u) * sizeof(*c->x));
}

/* The second half, from the gradient of r h. */
static void reset_grad(const struct cell_grad *c)
{
	const int64_t u = c->units;

	for (int64_t j = 0; j < u; j++) {
		c->x[u + j] = c->sums[j] * c->h_before[j];
		c->dh[j] += c->sums[j] * c->gates[u + j];
	}
	gate_grad(c, u, u);
	memcpy(c->recurrent + u, c->x + u, (size_t)u * sizeof(*c->x));
}

static void (*grad_function(const struct recurrent *r))(const struct cell_grad *c)
{
	switch (r->cell) {
	case LAYER_KIND_lstm:
		return lstm_grad;
	case LAYER_KIND_gru:
		return !r->kind.reset_before ? gru_grad : r->resets ? reset_grad : candidate_grad;
	default:
		return simple_grad;
	}
}

/* A masked step passes all gradients to the previous state, and none to its sums. */
static void pass_grad(const struct recurrent *r, const struct cell_grad *c)
{
	const size_t bytes = (size_t)r->wide * sizeof(float);

	if (r->resets)
		return;
	for (int64_t j = 0; c->dy && !r->kind.zeros && j < c->units; j++)
		c->dh[j] += c->dy[j];
	memset(c->x, 0, bytes);
	memset(c->recurrent, 0, bytes);
}

static void step_grad_body(const void *context, int64_t first, int64_t items)
{
	const struct recurrent *r = context;
	const bool in_output = r->kind.sequences || r->step == r->steps - 1;
	void (*const work)(const struct cell_grad *c) = grad_function(r);

	for (int64_t b = first; b < first + items; b++) {
		const int64_t row = b * r->steps + r->step;
		const int64_t at = r->kind.reversed ? input_step(r, r->step) : r->step;
		const int64_t out = b * output_each(r) + (r->kind.sequences ? at * r->units : 0);
		const struct cell_grad cell = {
			.gates = r->gates + row * r->wide,
			.h = r->h + row * r->units,
			.extra = r->extra + row * r->units,
			.h_before = state_before(r, b),
			.extra_before = extra_before(r, b),
			.dy = in_output ? r->pass->grad_output + out : NULL,
			.x = r->x + (b * r->steps + input_step(r, r->step)) * r->wide,
			.recurrent = r->recurrent + row * r->wide,
			.dh = r->dh + b * r->units,
			.dc = r->dc + b * r->units,
			.sums = r->sums + b * r->units,
			.units = r->units,
			.activation = r->kind.activation,
			.recurrent_activation = r->kind.recurrent_activation,
		};

		if (is_masked(r, b, r->step))
			pass_grad(r, &cell);
		else
			work(&cell);
	}
}

/* Collect h of the previous step by row: the operand of the recurrent products. */
static void before_body(const void *context, int64_t first, int64_t items)
{
	const struct recurrent *r = context;

	for (int64_t b = first; b < first + items; b++) {
		float *to = r->before + b * r->steps * r->units;

		if (r->start_h)
			memcpy(to, r->start_h + b * r->units, (size_t)r->units * sizeof(*to));
		else
			memset(to, 0, (size_t)r->units * sizeof(*to));
		memcpy(to + r->units, r->h + b * r->steps * r->units,
		       (size_t)((r->steps - 1) * r->units) * sizeof(*to));
		for (int64_t s = r->start_h ? 0 : 1; r->state_mask && s < r->steps; s++)
			drop_state(r, to + s * r->units, to + s * r->units, b);
	}
}

/* Whether the gradient of an initial state is wanted. */
static bool wants_start_grads(const struct recurrent *r)
{
	bool any = false;

	for (int k = 1; k <= r->kind.initial_states; k++)
		any = any || r->pass->grad_inputs[k];
	return any;
}

/* Compute the gradients of all sums, from the last step to the first. */
static void steps_backward(struct recurrent *r)
{
	const size_t floats = (size_t)(r->batch * r->units);
	const size_t bytes = (size_t)r->units * sizeof(float);

	/* At first these are the gradients of a returned state, or zeros. */
	memset(r->dh, 0, floats * sizeof(float));
	memset(r->dc, 0, floats * sizeof(float));
	for (int64_t b = 0; r->kind.returns_state && b < r->batch; b++) {
		const float *dy = r->pass->grad_output + b * output_each(r) + output_state(r);

		memcpy(r->dh + b * r->units, dy, bytes);
		if (r->cell == LAYER_KIND_lstm)
			memcpy(r->dc + b * r->units, dy + r->units, bytes);
	}
	for (r->step = r->steps - 1; r->step >= 0; r->step--) {
		compute__share(r->pass->pool, r->batch, 16 * r->wide, step_grad_body, r);
		if (!h_before(r, 0))
			break;
		if (r->kind.reset_before) {
			multiply_back(r, 2, 1);
			r->resets = true;
			compute__share(r->pass->pool, r->batch, 2 * r->wide, step_grad_body, r);
			r->resets = false;
		}
		if (r->step == 0 && !wants_start_grads(r))
			break;
		multiply_back(r, 0, state_gates(r));
		kernel_add(r->dh, r->sums, floats);
		if (r->state_mask)
			compute__share(r->pass->pool, r->batch, r->units, drop_state_grad_body, r);
	}
}

static void weights_backward(const struct recurrent *r)
{
	const struct layer_pass *pass = r->pass;
	const int64_t rows = r->batch * r->steps;

	multiply_columns(r, r->input, r->features, r->x, compute__gradients(pass, KERNEL), 0,
			 r->kind.gates);
	multiply_columns(r, r->before, r->units, r->recurrent, compute__gradients(pass, RECURRENT),
			 0, state_gates(r));
	if (r->kind.reset_before)
		multiply_columns(r, r->extra, r->units, r->recurrent,
				 compute__gradients(pass, RECURRENT), 2, 1);
	if (!pass->layer->use_bias)
		return;
	kernel_column_sums(r->x, r->wide, rows, r->wide, compute__gradients(pass, BIAS));
	if (has_second_bias(r))
		kernel_column_sums(r->recurrent, r->wide, rows, r->wide,
				   compute__gradients(pass, BIAS) + r->wide);
}

static void recurrent_backward(const struct layer_pass *pass)
{
	struct recurrent r = recurrent_of(pass);
	const size_t bytes = (size_t)(r.batch * r.units) * sizeof(float);
	const struct kernel_gemm input = {.transpose_b = true,
					  .m = r.batch * r.steps,
					  .n = r.features,
					  .k = r.wide,
					  .a = r.x,
					  .lda = r.wide,
					  .b = compute__weights(pass, KERNEL),
					  .ldb = r.wide,
					  .c = pass->grad_inputs[0],
					  .ldc = r.features,
					  .openblas = pass->openblas};

	compute__masks_backward(pass);
	drop_input(&r);
	compute__share(pass->pool, r.batch, r.steps * r.units, before_body, &r);
	steps_backward(&r);
	/* What is left after the first step is the initial state's. */
	if (r.kind.initial_states > 0 && pass->grad_inputs[1])
		memcpy(pass->grad_inputs[1], r.dh, bytes);
	if (r.kind.initial_states > 1 && pass->grad_inputs[2])
		memcpy(pass->grad_inputs[2], r.dc, bytes);
	if (compute__learns(pass))
		weights_backward(&r);
	if (pass->grad_inputs[0])
		kernel_gemm(&input, &r.room);
	if (pass->grad_inputs[0] && r.input_mask)
		compute__share(pass->pool, r.batch, r.steps * r.features, drop_grad_body, &r);
}

const struct compute_ops compute_recurrent = {
	.forward = recurrent_forward,
	.backward = recurrent_backward,
	.kept = recurrent_kept,
	.scratch = recurrent_scratch,
	.state = recurrent_state,
};
