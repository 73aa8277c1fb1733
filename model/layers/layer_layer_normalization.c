/*
 * LayerNormalization over the last axis, each row by its mean and population variance, and
 * GroupNormalization, each group of an item's channels likewise; the same in training and
 * inference. y = gamma (x - mean) / sqrt(variance + epsilon) + beta, gamma and beta by channel.
 *
 * Means and inverse deviations are retained for the backward pass. Gradients of gamma and beta
 * are summed within each slice, then over the slices in their order.
 */
#include "common/mem.h"
#include "model/layers/layer_internal.h"

extern const struct layer_ops layer_group_normalization, layer_layer_normalization;

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

/* "groups": absent: 32; -1: one group per channel. */
static enum status groups_read(struct model *model, struct model_layer *layer,
			       const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {LAYER_NORM_OPTIONS, {"groups", MODEL_ANY}};
	const int64_t channels = layer_last_dim(&layer->input);
	struct json_at here;
	struct layer_norm *norm;

	layer__begin(model, layer, config, own, ARRAY_LEN(own), sizeof(*norm), err);
	norm = layer->config;
	if (layer__read_norm(model, layer, config, norm, err) != ST_OK)
		return err->status;
	norm->groups = 32;
	here = *config;
	if (model_option_given(config, "groups", &here, err))
		json_int(&here, -1, INT32_MAX, &norm->groups, err);
	if (norm->groups == -1)
		norm->groups = channels;
	if (!err_stuck(err) && (!norm->groups || channels % norm->groups))
		json_fail(&here, err,
			  "%lld groups do not divide the input's %lld channels: \"groups\" must "
			  "be a divisor of them, or -1 for a group of each",
			  (long long)norm->groups, (long long)channels);
	return err->status;
}

/* ---- costs ----------------------------------------------------------------------------------- */

/* The same as BatchNormalization: moments, then values. */
static int64_t rows_flops(const struct model_layer *layer, int64_t batch)
{
	return batch * model_shape_count(&layer->input) * 7;
}

static const char *name_of(const struct layer_lowering *lowering)
{
	return lowering->layer->ops == &layer_group_normalization ? "GroupNorm" : "LayerNorm";
}

/* Number of rows or groups of a micro-batch, each of which has a mean. */
static int64_t rows_of(const struct layer_lowering *lowering)
{
	const struct layer_norm *own = lowering->layer->config;

	return own->groups ? lowering->batch * own->groups
			   : layer_rows(lowering->layer, lowering->batch);
}

/* Append mean and inverse deviation of each row, then the normalisation. */
static void rows_lower_forward(struct layer_lowering *lowering)
{
	const struct layer_norm *own = lowering->layer->config;
	const unsigned kept = lowering->keeps ? LAYER_KEPT : LAYER_BETWEEN;
	const int64_t rows = rows_of(lowering);
	struct layer_op op = layer__map(
		&(struct ipu_elements){
			.count = rows,
			.operands = 2,
			.times = {[IPU_FN_SQRT] = 1, [IPU_FN_DIVIDE] = 1, [IPU_FN_ADD] = 5}},
		LAYER_BETWEEN | LAYER_BETWEEN_TOO, kept);

	op.makes = 2 * rows;
	layer__lower_statistics(lowering, name_of(lowering), rows, false);
	layer__lower_norm(lowering, name_of(lowering), "Statistics", &op);
	op = layer__norm_map(lowering, 4, LAYER_INPUT | kept | layer__norm_params(own),
			     LAYER_OUTPUT);
	layer__lower(lowering, name_of(lowering), &op);
}

/* dx needs the row sums of dy gamma, and of dy gamma times whitened x. */
static void rows_lower_gradient(struct layer_lowering *lowering)
{
	const struct layer_norm *own = lowering->layer->config;
	const unsigned gamma = own->scale ? LAYER_PARAM(0) : 0u;
	const int64_t rows = rows_of(lowering);
	const int64_t count = layer__lower_count(lowering);
	struct layer_op op = layer__norm_map(
		lowering, 4, LAYER_INPUT | LAYER_KEPT | LAYER_GRAD_OUTPUT | gamma, LAYER_BETWEEN);

	op.makes = count;
	layer__lower_norm(lowering, name_of(lowering), "GradScaled", &op);
	op = layer__reduce(2 * count, 2 * rows, LAYER_BETWEEN | LAYER_GRAD_OUTPUT | gamma,
			   LAYER_BETWEEN_TOO);
	layer__lower_norm(lowering, name_of(lowering), "GradMoments", &op);
	op = layer__norm_map(lowering, 7,
			     LAYER_INPUT | LAYER_KEPT | LAYER_GRAD_OUTPUT | LAYER_BETWEEN_TOO |
				     gamma,
			     LAYER_GRAD_INPUT);
	layer__lower_norm(lowering, name_of(lowering), "GradX", &op);
}

static void rows_lower_backward(struct layer_lowering *lowering)
{
	const struct layer_norm *own = lowering->layer->config;

	if (lowering->layer->trainable)
		layer__lower_norm_sums(lowering, name_of(lowering), own, false);
	if (layer__wants_any(lowering))
		rows_lower_gradient(lowering);
}

/* As in Keras, all operations are float32, even in a layer that is half. */
static void rows_lower(struct layer_lowering *lowering)
{
	if (lowering->phase == IPU_PHASE_F)
		rows_lower_forward(lowering);
	else
		rows_lower_backward(lowering);
	for (int i = 0; i < lowering->count; i++)
		lowering->ops[i].op.dtype = IPU_FLOAT32;
}

/* What both layers share. */
#define ROWS_OPS(row, name, how)                                                                   \
	.class_name = (name), .kind = LAYER_KIND_##row, .read = (how), .flops = rows_flops,        \
	.lower = rows_lower, .function = true, .reads_inputs = true, .masks = LAYER_MASKS_PASS

const struct layer_ops layer_layer_normalization = {
	ROWS_OPS(layer_normalization, "LayerNormalization", rows_read),
};

const struct layer_ops layer_group_normalization = {
	ROWS_OPS(group_normalization, "GroupNormalization", groups_read),
};
