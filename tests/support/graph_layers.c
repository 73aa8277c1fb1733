/*
 * The layers of the tests' own: plain loops over vectors.
 */
#include "support/graph_layers.h"

#include <math.h>
#include <string.h>

#include "support/support.h"
#include "trainer/layers/compute_internal.h"

static int64_t width_of(const struct layer_pass *pass, int input)
{
	return model_shape_count(model_input_shape(pass->model, pass->layer, input));
}

static size_t outputs_of(const struct layer_pass *pass)
{
	return (size_t)(model_shape_count(&pass->layer->output) * pass->batch);
}

/*
 * Gradients of different inputs never lie in the same place; only the first's may be the output's.
 */
static void check_apart(const struct layer_pass *pass)
{
	for (int k = 0; k < pass->layer->input_count; k++) {
		const float *own = pass->grad_inputs[k];

		if (own && own == pass->grad_output)
			assert_true(k == 0 && compute_of(pass->layer)->grad_in_place);
		for (int j = 0; own && j < k; j++)
			assert_ptr_not_equal(own, pass->grad_inputs[j]);
	}
}

static void give(const struct layer_pass *pass, int input, size_t at, float gradient)
{
	float *to = pass->grad_inputs[input] + at;

	*to = compute_of(pass->layer)->adds && pass->add[input] ? *to + gradient : gradient;
}

/* A ReLU that is done here. */
static float limit(const struct layer_pass *pass, float y)
{
	return pass->relu && y < 0.0f ? 0.0f : y;
}

static void limit_gradient(const struct layer_pass *pass)
{
	for (size_t i = 0; pass->relu && i < outputs_of(pass); i++)
		if (pass->output[i] <= 0.0f)
			pass->grad_output[i] = 0.0f;
}

/* ---- negate, tanh, square -------------------------------------------------------------------- */

static void negate_forward(const struct layer_pass *pass)
{
	for (size_t i = 0; i < outputs_of(pass); i++)
		pass->output[i] = -pass->inputs[0][i];
}

static void negate_backward(const struct layer_pass *pass)
{
	for (size_t i = 0; pass->grad_inputs[0] && i < outputs_of(pass); i++)
		give(pass, 0, i, -pass->grad_output[i]);
}

static void tanh_forward(const struct layer_pass *pass)
{
	for (size_t i = 0; i < outputs_of(pass); i++)
		pass->output[i] = tanhf(pass->inputs[0][i]);
}

static void tanh_backward(const struct layer_pass *pass)
{
	for (size_t i = 0; pass->grad_inputs[0] && i < outputs_of(pass); i++)
		give(pass, 0, i, pass->grad_output[i] * (1.0f - pass->output[i] * pass->output[i]));
}

static void square_forward(const struct layer_pass *pass)
{
	for (size_t i = 0; i < outputs_of(pass); i++)
		pass->output[i] = pass->inputs[0][i] * pass->inputs[0][i];
}

static void square_backward(const struct layer_pass *pass)
{
	for (size_t i = 0; pass->grad_inputs[0] && i < outputs_of(pass); i++)
		give(pass, 0, i, 2.0f * pass->inputs[0][i] * pass->grad_output[i]);
}

/* ---- scale ----------------------------------------------------------------------------------- */

static void scale_forward(const struct layer_pass *pass)
{
	size_t width = (size_t)width_of(pass, 0);
	const float *w = compute__weights(pass, 0);

	for (size_t i = 0; i < outputs_of(pass); i++)
		pass->output[i] = limit(pass, w[i % width] * pass->inputs[0][i]);
}

static void scale_backward(const struct layer_pass *pass)
{
	size_t width = (size_t)width_of(pass, 0);
	const float *w = compute__weights(pass, 0);
	float *dw = compute__learns(pass) ? compute__gradients(pass, 0) : NULL;

	limit_gradient(pass);
	for (size_t j = 0; dw && j < width; j++) {
		dw[j] = 0.0f;
		for (size_t i = j; i < outputs_of(pass); i += width)
			dw[j] += pass->inputs[0][i] * pass->grad_output[i];
	}
	for (size_t i = 0; pass->grad_inputs[0] && i < outputs_of(pass); i++)
		give(pass, 0, i, w[i % width] * pass->grad_output[i]);
}

/* ---- sum, product, join ---------------------------------------------------------------------- */

static void sum_forward(const struct layer_pass *pass)
{
	for (size_t i = 0; i < outputs_of(pass); i++) {
		float sum = pass->inputs[0][i];

		for (int k = 1; k < pass->layer->input_count; k++)
			sum += pass->inputs[k][i];
		pass->output[i] = limit(pass, sum);
	}
}

static void sum_backward(const struct layer_pass *pass)
{
	check_apart(pass);
	limit_gradient(pass);
	for (int k = 0; k < pass->layer->input_count; k++)
		for (size_t i = 0; pass->grad_inputs[k] && i < outputs_of(pass); i++)
			give(pass, k, i, pass->grad_output[i]);
}

static void product_forward(const struct layer_pass *pass)
{
	for (size_t i = 0; i < outputs_of(pass); i++)
		pass->output[i] = pass->inputs[0][i] * pass->inputs[1][i];
}

static void product_backward(const struct layer_pass *pass)
{
	check_apart(pass);
	for (int k = 0; k < 2; k++)
		for (size_t i = 0; pass->grad_inputs[k] && i < outputs_of(pass); i++)
			give(pass, k, i, pass->inputs[!k][i] * pass->grad_output[i]);
}

static void join_forward(const struct layer_pass *pass)
{
	size_t width = (size_t)model_shape_count(&pass->layer->output), begin = 0;

	for (int k = 0; k < pass->layer->input_count; k++) {
		size_t own = (size_t)width_of(pass, k);

		for (size_t b = 0; b < (size_t)pass->batch; b++)
			memcpy(pass->output + b * width + begin, pass->inputs[k] + b * own,
			       own * sizeof(float));
		begin += own;
	}
}

static void join_backward(const struct layer_pass *pass)
{
	size_t width = (size_t)model_shape_count(&pass->layer->output), begin = 0;

	check_apart(pass);
	for (int k = 0; k < pass->layer->input_count; k++) {
		size_t own = (size_t)width_of(pass, k);

		for (size_t i = 0; pass->grad_inputs[k] && i < own * (size_t)pass->batch; i++)
			give(pass, k, i, pass->grad_output[i / own * width + begin + i % own]);
		begin += own;
	}
}

/* ---- pick ------------------------------------------------------------------------------------ */

/* Its scratch is as large. */
static size_t pick_kept(const struct layer_pass *pass)
{
	return outputs_of(pass) * sizeof(int32_t);
}

static void pick_forward(const struct layer_pass *pass)
{
	size_t width = (size_t)width_of(pass, 0);
	int32_t *kept = pass->kept;
	float *scratch = pass->scratch;

	for (size_t i = 0; i < outputs_of(pass); i++) {
		size_t next = i / width * width + (i % width + 1) % width;

		kept[i] = (int32_t)(pass->inputs[0][i] < pass->inputs[0][next] ? next : i);
		scratch[i] = pass->inputs[0][kept[i]];
	}
	memcpy(pass->output, scratch, outputs_of(pass) * sizeof(float));
}

static void pick_backward(const struct layer_pass *pass)
{
	const int32_t *kept = pass->kept;

	if (!pass->grad_inputs[0])
		return;
	memset(pass->grad_inputs[0], 0, outputs_of(pass) * sizeof(float));
	for (size_t i = 0; i < outputs_of(pass); i++)
		pass->grad_inputs[0][kept[i]] += pass->grad_output[i];
}

static const struct compute_ops graph_negate_passes = {
	.forward = negate_forward,
	.backward = negate_backward,
	.in_place = true,
	.grad_in_place = true,
};
const struct layer_ops graph_negate = {
	.class_name = "Negate",
	.compute = &graph_negate_passes,
};
static const struct compute_ops graph_tanh_passes = {
	.forward = tanh_forward,
	.backward = tanh_backward,
	.in_place = true,
	.grad_in_place = true,
};
const struct layer_ops graph_tanh = {
	.class_name = "Tanh",
	.compute = &graph_tanh_passes,
	.reads_output = true,
};
static const struct compute_ops graph_square_passes = {
	.forward = square_forward,
	.backward = square_backward,
	.in_place = true,
	.adds = true,
};
const struct layer_ops graph_square = {
	.class_name = "Square",
	.compute = &graph_square_passes,
	.reads_inputs = true,
};
static const struct compute_ops graph_scale_passes = {
	.forward = scale_forward,
	.backward = scale_backward,
	.adds = true,
	.fuses_relu = true,
};
const struct layer_ops graph_scale = {
	.class_name = "Scale",
	.compute = &graph_scale_passes,
	.reads_inputs = true,
	.reads_output = true,
};
static const struct compute_ops graph_sum_passes = {
	.forward = sum_forward,
	.backward = sum_backward,
	.in_place = true,
	.grad_in_place = true,
	.adds = true,
	.fuses_relu = true,
};
const struct layer_ops graph_sum = {
	.class_name = "Sum",
	.compute = &graph_sum_passes,
	.reads_output = true,
};
static const struct compute_ops graph_product_passes = {
	.forward = product_forward,
	.backward = product_backward,
	.in_place = true,
};
const struct layer_ops graph_product = {
	.class_name = "Product",
	.compute = &graph_product_passes,
	.reads_inputs = true,
};
static const struct compute_ops graph_join_passes = {
	.forward = join_forward,
	.backward = join_backward,
	.adds = true,
};
const struct layer_ops graph_join = {
	.class_name = "Join",
	.compute = &graph_join_passes,
};
static const struct compute_ops graph_pick_passes = {
	.forward = pick_forward,
	.backward = pick_backward,
	.kept = pick_kept,
	.scratch = pick_kept,
};
const struct layer_ops graph_pick = {
	.class_name = "Pick",
	.compute = &graph_pick_passes,
};
