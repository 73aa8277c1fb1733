/*
 * Activations: one table of how each computes, over a whole pass, as a layer or as part of others;
 * and ReLU, LeakyReLU, ELU and PReLU.
 *
 * Rows are distributed in slices whose borders depend on the shape only. Thread safe.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "trainer/kernels/kernel_activation.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/layers/compute_internal.h"

struct activation_row {
	/* By element, or by rows of the last axis if a value depends on them; NULL: identity. */
	void (*each)(const float *x, float *y, size_t count);
	void (*each_grad)(const float *x, const float *y, const float *dy, float *dx, size_t count);
	void (*rows)(const float *x, float *y, int64_t rows, int64_t columns);
	void (*rows_grad)(const float *y, const float *dy, float *dx, int64_t rows,
			  int64_t columns);
};

static void activation_relu_grad(const float *x, const float *y, const float *dy, float *dx,
				 size_t count)
{
	(void)x;
	kernel_bounded_relu_grad(y, dy, dx, INFINITY, count);
}

#define ACTIVATION_EACH(name)                                                                      \
	{                                                                                          \
		kernel_##name, kernel_##name##_grad, NULL, NULL                                    \
	}
#define ACTIVATION_ROWS(name)                                                                      \
	{                                                                                          \
		NULL, NULL, kernel_##name, kernel_##name##_grad                                    \
	}

static const struct activation_row activation_rows[] = {
	[MODEL_LINEAR] = {NULL, NULL, NULL, NULL},
	[MODEL_RELU] = {kernel_relu, activation_relu_grad, NULL, NULL},
	[MODEL_SOFTMAX] = ACTIVATION_ROWS(softmax),
	[MODEL_ELU] = ACTIVATION_EACH(elu),
	[MODEL_EXPONENTIAL] = ACTIVATION_EACH(exponential),
	[MODEL_GELU] = ACTIVATION_EACH(gelu),
	[MODEL_HARD_SIGMOID] = ACTIVATION_EACH(hard_sigmoid),
	[MODEL_LEAKY_RELU] = ACTIVATION_EACH(leaky_relu),
	[MODEL_LOG_SOFTMAX] = ACTIVATION_ROWS(log_softmax),
	[MODEL_MISH] = ACTIVATION_EACH(mish),
	[MODEL_RELU6] = ACTIVATION_EACH(relu6),
	[MODEL_SELU] = ACTIVATION_EACH(selu),
	[MODEL_SIGMOID] = ACTIVATION_EACH(sigmoid),
	[MODEL_SOFTPLUS] = ACTIVATION_EACH(softplus),
	[MODEL_SOFTSIGN] = ACTIVATION_EACH(softsign),
	[MODEL_SWISH] = ACTIVATION_EACH(swish),
	[MODEL_TANH] = ACTIVATION_EACH(tanh),
};
_Static_assert(ARRAY_LEN(activation_rows) == MODEL_ACTIVATIONS, "activation table out of step");

struct activation_work {
	const struct activation_row *row;
	const float *x, *y, *dy; /* NULL: not read */
	float *out;
	int64_t columns;
};

static const float *activation_at(const float *values, int64_t at)
{
	return values ? values + at : NULL;
}

static void activation_forward_body(const void *context, int64_t first, int64_t rows)
{
	const struct activation_work *w = context;
	const float *x = w->x + first * w->columns;
	float *y = w->out + first * w->columns;

	if (w->row->rows)
		w->row->rows(x, y, rows, w->columns);
	else if (w->row->each)
		w->row->each(x, y, (size_t)(rows * w->columns));
	else
		memcpy(y, x, (size_t)(rows * w->columns) * sizeof(float));
}

static void activation_backward_body(const void *context, int64_t first, int64_t rows)
{
	const struct activation_work *w = context;
	int64_t at = first * w->columns;

	if (w->row->rows_grad)
		w->row->rows_grad(w->y + at, w->dy + at, w->out + at, rows, w->columns);
	else if (w->row->each_grad)
		w->row->each_grad(activation_at(w->x, at), activation_at(w->y, at), w->dy + at,
				  w->out + at, (size_t)(rows * w->columns));
	else
		memcpy(w->out + at, w->dy + at, (size_t)(rows * w->columns) * sizeof(float));
}

/* Set the columns and return the number of rows to distribute: elements, if they are
 * independent. */
static int64_t activation_split(struct activation_work *work, int64_t rows, int64_t columns)
{
	bool single = !work->row->rows;

	work->columns = single ? 1 : columns;
	return single ? rows * columns : rows;
}

void compute__activate(const struct layer_pass *pass, enum model_activation activation,
		       const float *x, int64_t rows, int64_t columns)
{
	struct activation_work work = {
		.row = &activation_rows[activation], .x = x, .out = pass->output};

	rows = activation_split(&work, rows, columns);
	if (activation != MODEL_LINEAR || x != pass->output)
		compute__share_output(pass, rows, work.columns, activation_forward_body, &work);
}

static void activation_gradient(struct pool *pool, struct activation_work *work, int64_t rows,
				int64_t columns)
{
	rows = activation_split(work, rows, columns);
	if (work->row->each || work->row->rows || work->dy != work->out)
		compute__share(pool, rows, work->columns, activation_backward_body, work);
}

void compute__activate_grad(struct pool *pool, enum model_activation activation, const float *x,
			    const float *y, float *dy, int64_t rows, int64_t columns)
{
	struct activation_work work = {&activation_rows[activation], x, y, dy, dy, 0};

	activation_gradient(pool, &work, rows, columns);
}

void compute__activate_elements(enum model_activation activation, const float *x, float *y,
				size_t count)
{
	const struct activation_row *row = &activation_rows[activation];

	if (row->each)
		row->each(x, y, count);
	else if (x != y)
		memcpy(y, x, count * sizeof(*y));
}

void compute__activate_elements_grad(enum model_activation activation, const float *y, float *dy,
				     size_t count)
{
	const struct activation_row *row = &activation_rows[activation];

	if (row->each_grad)
		row->each_grad(NULL, y, dy, dy, count);
}

size_t compute__activation_kept(const struct layer_pass *pass)
{
	if (!layer_activation_needs_input(pass->layer->activation))
		return 0;
	return (size_t)compute__count(pass) * sizeof(float);
}

float *compute__activation_sums(const struct layer_pass *pass)
{
	if (pass->logits)
		return pass->logits;
	if (layer_activation_needs_input(pass->layer->activation) && pass->kept)
		return pass->kept;
	return pass->output;
}

void compute__identity(const struct layer_pass *pass)
{
	compute__activate(pass, MODEL_LINEAR, pass->inputs[0], compute__count(pass), 1);
}

static void identity_grad_body(const void *context, int64_t first, int64_t count)
{
	const struct layer_pass *pass = context;

	kernel_merge_pass(pass->grad_output + first, 1.0f, pass->grad_inputs[0] + first,
			  compute__adds(pass, 0), (size_t)count);
}

void compute__identity_grad(const struct layer_pass *pass)
{
	if (pass->grad_inputs[0] != pass->grad_output)
		compute__share(pass->pool, compute__count(pass), 1, identity_grad_body, pass);
}

static void activation_forward(const struct layer_pass *pass)
{
	compute__activate(pass, pass->layer->activation, pass->inputs[0],
			  layer_rows(pass->layer, pass->batch),
			  layer_last_dim(&pass->layer->output));
}

static void activation_backward(const struct layer_pass *pass)
{
	const struct model_layer *layer = pass->layer;
	enum model_activation activation = pass->skip_activation ? MODEL_LINEAR : layer->activation;
	struct activation_work work = {
		.row = &activation_rows[activation],
		.x = layer->reads_inputs ? pass->inputs[0] : NULL,
		.y = layer->reads_output ? pass->output : NULL,
		.dy = pass->grad_output,
		.out = pass->grad_inputs[0],
	};

	activation_gradient(pass->pool, &work, layer_rows(layer, pass->batch),
			    layer_last_dim(&layer->output));
}

const struct compute_ops compute_activation = {
	.forward = activation_forward,
	.backward = activation_backward,
	.in_place = true,
	.grad_in_place = true,
};

/* ---- ReLU, LeakyReLU, ELU -------------------------------------------------------------------- */

/* The gradient of a ReLU without slope and threshold is computed from its output, and the preceding
 * layer may apply such a ReLU. With a slope or a threshold the input is read again. */

static void relu_forward_body(const void *context, int64_t first, int64_t count)
{
	const struct layer_pass *pass = context;
	const struct layer_relu *c = pass->layer->config;
	const struct kernel_relu_shape shape = {c->threshold, c->slope, c->most};
	const float *x = pass->inputs[0] + first;
	float *y = pass->output + first;

	if (pass->layer->ops->kind == LAYER_KIND_elu)
		kernel_alpha_elu(x, y, c->alpha, (size_t)count);
	else if (layer_relu_is_plain(pass->layer))
		kernel_bounded_relu(x, y, c->most, (size_t)count);
	else
		kernel_shaped_relu(x, y, &shape, (size_t)count);
}

static void relu_backward_body(const void *context, int64_t first, int64_t count)
{
	const struct layer_pass *pass = context;
	const struct layer_relu *c = pass->layer->config;
	const struct kernel_relu_shape shape = {c->threshold, c->slope, c->most};
	const float *dy = pass->grad_output + first;
	float *dx = pass->grad_inputs[0] + first;

	if (pass->layer->ops->kind == LAYER_KIND_elu)
		kernel_alpha_elu_grad(pass->output + first, dy, dx, c->alpha, (size_t)count);
	else if (layer_relu_is_plain(pass->layer))
		kernel_bounded_relu_grad(pass->output + first, dy, dx, c->most, (size_t)count);
	else
		kernel_shaped_relu_grad(pass->inputs[0] + first, dy, dx, &shape, (size_t)count);
}

static void relu_forward(const struct layer_pass *pass)
{
	compute__share_output(pass, compute__count(pass), 1, relu_forward_body, pass);
}

static void relu_backward(const struct layer_pass *pass)
{
	compute__share(pass->pool, compute__count(pass), 1, relu_backward_body, pass);
}

const struct compute_ops compute_relu = {
	.forward = relu_forward,
	.backward = relu_backward,
	.in_place = true,
	.grad_in_place = true,
};

/* ---- PReLU ----------------------------------------------------------------------------------- */

/* x if x > 0, else alpha x; the alphas repeat along rows of their number. An alpha's sum runs over
 * the rows from first to last, on one thread. */

static int64_t p_relu_alphas(const struct layer_pass *pass)
{
	return model_shape_count(&pass->model->params[pass->layer->first_param].shape);
}

static int64_t p_relu_rows(const struct layer_pass *pass)
{
	return compute__count(pass) / p_relu_alphas(pass);
}

static void p_relu_forward_body(const void *context, int64_t first, int64_t rows)
{
	const struct layer_pass *pass = context;
	const int64_t count = p_relu_alphas(pass);
	const float *alpha = compute__weights(pass, 0);

	for (int64_t row = first; row < first + rows; row++) {
		const float *x = pass->inputs[0] + row * count;
		float *y = pass->output + row * count;

		for (int64_t i = 0; i < count; i++)
			y[i] = x[i] > 0.0f ? x[i] : alpha[i] * x[i];
	}
}

/* The gradients of alphas @first .. @first + @alphas - 1. */
static void p_relu_alpha_body(const void *context, int64_t first, int64_t alphas)
{
	const struct layer_pass *pass = context;
	const int64_t count = p_relu_alphas(pass), rows = p_relu_rows(pass);
	float *sums = compute__gradients(pass, 0);

	for (int64_t i = first; i < first + alphas; i++)
		sums[i] = 0.0f;
	for (int64_t row = 0; row < rows; row++) {
		const float *x = pass->inputs[0] + row * count;
		const float *dy = pass->grad_output + row * count;

		for (int64_t i = first; i < first + alphas; i++)
			sums[i] += x[i] > 0.0f ? 0.0f : dy[i] * x[i];
	}
}

static void p_relu_backward_body(const void *context, int64_t first, int64_t rows)
{
	const struct layer_pass *pass = context;
	const int64_t count = p_relu_alphas(pass);
	const float *alpha = compute__weights(pass, 0);

	for (int64_t row = first; row < first + rows; row++) {
		const float *x = pass->inputs[0] + row * count;
		const float *dy = pass->grad_output + row * count;
		float *dx = pass->grad_inputs[0] + row * count;

		for (int64_t i = 0; i < count; i++)
			dx[i] = x[i] > 0.0f ? dy[i] : dy[i] * alpha[i];
	}
}

static void p_relu_forward(const struct layer_pass *pass)
{
	compute__share_output(pass, p_relu_rows(pass), p_relu_alphas(pass), p_relu_forward_body,
			      pass);
}

static void p_relu_backward(const struct layer_pass *pass)
{
	if (compute__learns(pass))
		compute__share(pass->pool, p_relu_alphas(pass), p_relu_rows(pass),
			       p_relu_alpha_body, pass);
	if (pass->grad_inputs[0])
		compute__share(pass->pool, p_relu_rows(pass), p_relu_alphas(pass),
			       p_relu_backward_body, pass);
}

const struct compute_ops compute_p_relu = {
	.forward = p_relu_forward,
	.backward = p_relu_backward,
	.grad_in_place = true,
};
