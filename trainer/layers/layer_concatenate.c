/*
 * Concatenate: the channels of several inputs, one after the other.
 */
#include <string.h>

#include "common/mem.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/layers/layer_internal.h"

extern const struct layer_ops layer_concatenate;

#define CONCATENATE_INPUTS 1024

static enum status concatenate_shapes(const struct model *model, struct model_layer *layer,
				      const struct json_at *config, struct err *err)
{
	int last = layer->input.ndim - 1;
	char first_text[192], other_text[192];

	layer->output = layer->input;
	for (int i = 1; i < layer->input_count; i++) {
		const struct model_shape *shape = model_input_shape(model, layer, i);
		bool fits = shape->ndim == layer->input.ndim;

		for (int d = 0; fits && d < last; d++)
			fits = shape->dim[d] == layer->input.dim[d];
		if (fits) {
			layer->output.dim[last] += shape->dim[last];
			continue;
		}
		model_shape_text(&layer->input, 0, first_text, sizeof(first_text));
		model_shape_text(shape, 0, other_text, sizeof(other_text));
		return json_fail(config, err,
				 "the inputs of Concatenate must agree in all but the last "
				 "dimension: the first is %s, but input %d is %s",
				 first_text, i, other_text);
	}
	return ST_OK;
}

static enum status concatenate_read(struct model *model, struct model_layer *layer,
				    const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {{"axis", MODEL_ANY}};
	enum status status = layer__check(config, own, ARRAY_LEN(own), err);

	if (status == ST_OK)
		status = layer__check_last_axis(layer, config, err);
	if (status != ST_OK)
		return status;
	if (!layer->input.ndim)
		return json_fail(config, err, "Concatenate needs inputs of at least one dimension");
	return concatenate_shapes(model, layer, config, err);
}

/* The rows of one input, @columns wide, at @column of the output. */
static void concatenate_rows(const struct layer_pass *pass, int input, int64_t column,
			     int64_t first, int64_t rows)
{
	int64_t width = layer__last_dim(&pass->layer->output);
	int64_t columns = layer__last_dim(model_input_shape(pass->model, pass->layer, input));
	const float *x = pass->inputs[input];

	for (int64_t row = first; row < first + rows; row++)
		memcpy(pass->output + row * width + column, x + row * columns,
		       (size_t)columns * sizeof(*x));
}

static void concatenate_grad_rows(const struct layer_pass *pass, int input, int64_t column,
				  int64_t first, int64_t rows)
{
	int64_t width = layer__last_dim(&pass->layer->output);
	int64_t columns = layer__last_dim(model_input_shape(pass->model, pass->layer, input));
	float *dx = pass->grad_inputs[input];

	if (!dx)
		return;
	for (int64_t row = first; row < first + rows; row++) {
		const float *dy = pass->grad_output + row * width + column;

		if (pass->add && pass->add[input])
			kernel_add(dx + row * columns, dy, (size_t)columns);
		else
			memcpy(dx + row * columns, dy, (size_t)columns * sizeof(*dx));
	}
}

typedef void (*concatenate_work)(const struct layer_pass *pass, int input, int64_t column,
				 int64_t first, int64_t rows);

static void concatenate_inputs(const struct layer_pass *pass, concatenate_work work, int64_t first,
			       int64_t rows)
{
	int64_t column = 0;

	for (int i = 0; i < pass->layer->input_count; i++) {
		work(pass, i, column, first, rows);
		column += layer__last_dim(model_input_shape(pass->model, pass->layer, i));
	}
}

static void concatenate_forward_body(const void *context, int64_t first, int64_t rows)
{
	concatenate_inputs(context, concatenate_rows, first, rows);
}

static void concatenate_backward_body(const void *context, int64_t first, int64_t rows)
{
	concatenate_inputs(context, concatenate_grad_rows, first, rows);
}

static int64_t concatenate_count(const struct layer_pass *pass)
{
	const struct model_shape *shape = &pass->layer->output;

	return pass->batch * (model_shape_count(shape) / layer__last_dim(shape));
}

static void concatenate_forward(const struct layer_pass *pass)
{
	layer__share_output(pass, concatenate_count(pass), layer__last_dim(&pass->layer->output),
			    concatenate_forward_body, pass);
}

static void concatenate_backward(const struct layer_pass *pass)
{
	layer__share(pass->pool, concatenate_count(pass), layer__last_dim(&pass->layer->output),
		     concatenate_backward_body, pass);
}

/* Atoms are the channels of the narrowest input; backward, of what is wanted. */
static void concatenate_lower(struct layer_lowering *lowering)
{
	const struct model_layer *layer = lowering->layer;
	const bool forward = lowering->phase == 'F';
	struct layer_op op = layer__copy(0, layer__last_dim(&layer->output),
					 forward ? LAYER_INPUT : LAYER_GRAD_OUTPUT,
					 forward ? LAYER_OUTPUT : LAYER_GRAD_INPUT);

	for (int i = 0; i < layer->input_count; i++) {
		const struct model_shape *shape = model_input_shape(lowering->model, layer, i);

		if (!forward && !layer__wants(lowering, i))
			continue;
		op.op.copy.count += lowering->batch * model_shape_count(shape);
		if (layer__last_dim(shape) < op.op.copy.atom)
			op.op.copy.atom = layer__last_dim(shape);
	}
	if (op.op.copy.count > 0)
		layer__lower(lowering, forward ? "ConcatV2" : "Slice", &op);
}

const struct layer_ops layer_concatenate = {
	.class_name = "Concatenate",
	.read = concatenate_read,
	.forward = concatenate_forward,
	.backward = concatenate_backward,
	.lower = concatenate_lower,
	.least_inputs = 2,
	.most_inputs = CONCATENATE_INPUTS,
	.adds = true,
};
