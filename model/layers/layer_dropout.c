/*
 * Dropout, SpatialDropout1D and 2D: inverted dropout, as in TensorFlow. In training each
 * decision retains its elements with probability 1 - rate and scales them by 1 / (1 - rate);
 * otherwise the layer does nothing.
 *
 * Decisions are numbered over the micro-batch and use the random numbers of (seed, layer, step,
 * replica), so they do not depend on threads. They are retained, a byte each, for the backward
 * pass.
 */
#include "common/mem.h"
#include "common/rng.h"
#include "model/layers/layer_internal.h"

extern const struct layer_ops layer_dropout, layer_spatial_dropout1d, layer_spatial_dropout2d;

/* ---- reading --------------------------------------------------------------------------------- */

void layer__read_drop(const struct json_at *config, const char *key, struct layer_drop *out,
		      struct err *err)
{
	struct json_at here;
	double rate = 0.0;

	if (!model_option_given(config, key, &here, err) || json_real(&here, &rate, err) != ST_OK)
		return;
	if (!(rate >= 0.0 && rate < 1.0))
		json_fail(&here, err,
			  "must be at least 0 and below 1: the share of what is dropped");
	out->scale = (float)(1.0 / (1.0 - rate));
	out->threshold = (uint32_t)(rate * 0x1p32);
}

void layer__read_seed(const struct json_at *config, uint32_t *out, struct err *err)
{
	struct json_at here;
	int64_t seed;

	if (model_option_at(config, "seed", &here, err) &&
	    json_int(&here, INT32_MIN, INT64_MAX, &seed, err) == ST_OK)
		*out = (uint32_t)(((uint64_t)seed * 0x9e3779b97f4a7c15u) >> 32) | 1u;
}

/* Whether entry @index of a noise shape is 1 while the input's dimension is not. */
static enum status dropout_noise_dim(const struct model_layer *layer, const struct json_at *at,
				     int index, bool *shared, struct err *err)
{
	int64_t dim, whole = index ? layer->input.dim[index - 1] : 0;
	enum status status;

	*shared = false;
	if (json_is_null(at))
		return ST_OK;
	status = json_int(at, 1, INT64_MAX, &dim, err);
	if (status != ST_OK || dim == whole)
		return status;
	if (dim != 1)
		return json_fail(at, err,
				 "must be 1, null or the input's dimension (the batch's is null)");
	*shared = true;
	return ST_OK;
}

/* Read "noise_shape", for example [null, 1, 1, 1]: one decision per item. Shared dimensions must be
 * adjacent. */
static enum status dropout_noise_shape(struct layer_dropout *c, const struct model_layer *layer,
				       const struct json_at *config, struct err *err)
{
	int runs = 0, dims = layer->input.ndim + 1;
	bool before = false, shared;
	struct json_at here, item;
	enum status status;

	if (!json_child(config, "noise_shape", &here) || json_is_null(&here))
		return ST_OK;
	status = json_array(&here, err);
	if (status != ST_OK)
		return status;
	if (json_count(&here) != dims)
		return json_fail(&here, err, "must have %d entries, the batch's first", dims);
	for (int i = 0; json_item(&here, i, &item); i++) {
		status = dropout_noise_dim(layer, &item, i, &shared, err);
		if (status != ST_OK)
			return status;
		/* A dimension of 1 counts as shared if its neighbour is. */
		if (before && !shared && i && layer->input.dim[i - 1] == 1)
			shared = true;
		if (shared && !before) {
			c->shared = i;
			runs++;
		}
		if (shared)
			c->shared_end = i + 1;
		before = shared;
	}
	if (runs > 1)
		return model_config_unsupported(
			&here, err, "not supported: shared dimensions (1) must stand together");
	return ST_OK;
}

/* NULL: a failure. */
static struct layer_dropout *dropout_config(struct model *model, struct model_layer *layer,
					    const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {
		{"rate", MODEL_ANY},
		{"seed", MODEL_ANY},
		{"noise_shape", MODEL_ANY},
		{"data_format", MODEL_CHANNELS_LAST},
	};
	struct layer_dropout *c;
	struct json_at here;

	layer__begin(model, layer, config, own, ARRAY_LEN(own), sizeof(*c), err);
	c = layer->config;
	if (!model_option_need(config, "rate", &here, err))
		return NULL;
	layer__read_drop(config, "rate", &c->drop, err);
	layer__read_seed(config, &c->seed, err);
	return err_stuck(err) ? NULL : c;
}

static enum status dropout_read(struct model *model, struct model_layer *layer,
				const struct json_at *config, struct err *err)
{
	struct layer_dropout *c = dropout_config(model, layer, config, err);

	return c ? dropout_noise_shape(c, layer, config, err) : err->status;
}

/* One decision per channel of an item. */
static enum status spatial_dropout_read(struct model *model, struct model_layer *layer,
					const struct json_at *config, struct err *err)
{
	struct layer_dropout *c = dropout_config(model, layer, config, err);
	struct json_at here;

	if (!c)
		return err->status;
	if (model_option_at(config, "noise_shape", &here, err))
		return model_config_unsupported(&here, err, "not supported: it must be null here");
	c->shared = 1;
	c->shared_end = layer->input.ndim;
	return layer__check_images(layer, config, err);
}

/* ---- running --------------------------------------------------------------------------------- */

struct layer_dropout_sizes layer_dropout_sizes(const struct model_layer *layer, int64_t batch)
{
	const struct layer_dropout *c = layer->config;
	struct layer_dropout_sizes s = {1, 1, 1};

	for (int i = 0; i <= layer->input.ndim; i++) {
		int64_t dim = i ? layer->input.dim[i - 1] : batch;

		if (i < c->shared || c->shared == c->shared_end)
			s.outer *= dim;
		else if (i < c->shared_end)
			s.shared *= dim;
		else
			s.inner *= dim;
	}
	return s;
}

/* ---- costs ----------------------------------------------------------------------------------- */

static int64_t dropout_flops(const struct model_layer *layer, int64_t batch)
{
	return batch * model_shape_count(&layer->output);
}

/*
 * Like tf.nn.dropout: random numbers, compared; scale and select by the mask. The mask (a byte per
 * decision) is retained, not the seed; so it stays stashed when activations are recomputed.
 */
static void dropout_lower(struct layer_lowering *lowering)
{
	const struct layer_dropout *c = lowering->layer->config;
	const struct layer_dropout_sizes s = layer_dropout_sizes(lowering->layer, lowering->batch);
	const bool forward = lowering->phase == IPU_PHASE_F, shared = s.shared > 1;
	const unsigned decisions = forward && !lowering->keeps ? LAYER_BETWEEN : LAYER_KEPT;
	struct layer_op mask = layer__map(
		&(struct ipu_elements){.count = s.outer * s.inner, .times = {[IPU_FN_RANDOM] = 1}},
		0, decisions);
	struct layer_op each =
		layer__map(&(struct ipu_elements){.count = layer__lower_count(lowering),
						  .operands = shared ? 1 : 2,
						  .broadcast = shared ? s.outer * s.inner : 0,
						  .times = {[IPU_FN_ADD] = 1, [IPU_FN_SELECT] = 1}},
			   decisions | (forward ? LAYER_INPUT : LAYER_GRAD_OUTPUT),
			   forward ? LAYER_OUTPUT : LAYER_GRAD_INPUT);

	if (!c->drop.threshold || !lowering->training || (!forward && !layer__wants_any(lowering)))
		return;
	mask.makes = s.outer * s.inner;
	mask.bytes = true;
	mask.training_only = each.training_only = true;
	if (forward)
		layer__lower(lowering, "dropout/RandomUniform", &mask);
	layer__lower(lowering, forward ? "dropout/Mul" : "dropout/Mul/Grad", &each);
}

/* What both layers share. */
#define DROPOUT_OPS(row, name, how)                                                                \
	.class_name = (name), .kind = LAYER_KIND_##row, .read = (how), .flops = dropout_flops,     \
	.lower = dropout_lower, .masks = LAYER_MASKS_PASS

const struct layer_ops layer_dropout = {
	DROPOUT_OPS(dropout, "Dropout", dropout_read),
};

const struct layer_ops layer_spatial_dropout1d = {
	DROPOUT_OPS(spatial_dropout1d, "SpatialDropout1D", spatial_dropout_read),
	.sequence = true,
};

const struct layer_ops layer_spatial_dropout2d = {
	DROPOUT_OPS(spatial_dropout2d, "SpatialDropout2D", spatial_dropout_read),
};
