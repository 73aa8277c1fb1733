/*
 * LayerNormalization over the last axis: every row by its own mean and population variance, in
 * training and inference alike. y = gamma (x - mean) / sqrt(variance + epsilon) + beta.
 *
 * Rows' means and inverse deviations are kept from forward to backward. Gradients of gamma and beta
 * are summed slice by slice, and over the slices in their order.
 */
#include "common/mem.h"
#include "model/layers/layer_internal.h"

extern const struct layer_ops layer_layer_normalization;

static enum status rows_read(struct model *model, struct model_layer *layer,
			     const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {
		LAYER_NORM_OPTIONS,
		{"rms_scaling", MODEL_FALSE},
	};

	layer__begin(model, layer, config, own, ARRAY_LEN(own), sizeof(struct layer_norm), err);
	return layer__read_norm(model, layer, config, layer->config, err);
}

/* ---- costs ----------------------------------------------------------------------------------- */

/* As many as for batches: moments, then the row's values. */
static int64_t rows_flops(const struct model_layer *layer, int64_t batch)
{
	return batch * model_shape_count(&layer->input) * 7;
}

#define ROWS_NAME "LayerNorm"

/* Mean and inverse deviation of each row. */
static void rows_lower_forward(struct layer_lowering *lowering)
{
	const struct layer_norm *own = lowering->layer->config;
	const unsigned kept = lowering->keeps ? LAYER_KEPT : LAYER_BETWEEN;
	const int64_t rows = layer_rows(lowering->layer, lowering->batch);
	struct layer_op op = layer__map(
		&(struct ipu_elements){
			.count = rows,
			.operands = 2,
			.times = {[IPU_FN_SQRT] = 1, [IPU_FN_DIVIDE] = 1, [IPU_FN_ADD] = 5}},
		LAYER_BETWEEN | LAYER_BETWEEN_TOO, kept);

	op.makes = 2 * rows;
	layer__lower_statistics(lowering, ROWS_NAME, rows, false);
	layer__lower_norm(lowering, ROWS_NAME, "Statistics", &op);
	op = layer__norm_map(lowering, 4, LAYER_INPUT | kept | layer__norm_params(own),
			     LAYER_OUTPUT);
	layer__lower(lowering, ROWS_NAME, &op);
}

/* By dy gamma and what has been whitened, their products' sums over each row. */
static void rows_lower_gradient(struct layer_lowering *lowering)
{
	const struct layer_norm *own = lowering->layer->config;
	const unsigned gamma = own->scale ? LAYER_PARAM(0) : 0u;
	const int64_t rows = layer_rows(lowering->layer, lowering->batch);
	const int64_t count = layer__lower_count(lowering);
	struct layer_op op = layer__norm_map(
		lowering, 4, LAYER_INPUT | LAYER_KEPT | LAYER_GRAD_OUTPUT | gamma, LAYER_BETWEEN);

	op.makes = count;
	layer__lower_norm(lowering, ROWS_NAME, "GradScaled", &op);
	op = layer__reduce(2 * count, 2 * rows, LAYER_BETWEEN | LAYER_GRAD_OUTPUT | gamma,
			   LAYER_BETWEEN_TOO);
	layer__lower_norm(lowering, ROWS_NAME, "GradMoments", &op);
	op = layer__norm_map(lowering, 7,
			     LAYER_INPUT | LAYER_KEPT | LAYER_GRAD_OUTPUT | LAYER_BETWEEN_TOO |
				     gamma,
			     LAYER_GRAD_INPUT);
	layer__lower_norm(lowering, ROWS_NAME, "GradX", &op);
}

static void rows_lower_backward(struct layer_lowering *lowering)
{
	const struct layer_norm *own = lowering->layer->config;

	if (lowering->layer->trainable)
		layer__lower_norm_sums(lowering, ROWS_NAME, own, false);
	if (layer__wants_any(lowering))
		rows_lower_gradient(lowering);
}

/* Keras computes in float32 here, in a layer that is half, too. */
static void rows_lower(struct layer_lowering *lowering)
{
	if (lowering->phase == IPU_PHASE_F)
		rows_lower_forward(lowering);
	else
		rows_lower_backward(lowering);
	for (int i = 0; i < lowering->count; i++)
		lowering->ops[i].op.dtype = IPU_FLOAT32;
}

const struct layer_ops layer_layer_normalization = {
	.class_name = "LayerNormalization",
	.kind = LAYER_KIND_layer_normalization,
	.read = rows_read,
	.flops = rows_flops,
	.lower = rows_lower,
	.reads_inputs = true,
};
