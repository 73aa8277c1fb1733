/*
 * Layers that are random in training and do nothing otherwise: Dropout, SpatialDropout1D and 2D,
 * GaussianNoise, GaussianDropout and AlphaDropout.
 *
 * Random numbers are those of (seed, layer, step, replica), so they do not depend on threads. No
 * state.
 */
#include <math.h>

#include "common/mem.h"
#include "common/rng.h"
#include "model/layers/layer_internal.h"

/* ---- Dropout, SpatialDropout1D and 2D -------------------------------------------------------- */

/*
 * Inverted dropout, as in TensorFlow: each decision retains its elements with probability 1 - rate
 * and scales them by 1 / (1 - rate). Decisions are numbered over the micro-batch; they are
 * retained, a byte each, for the backward pass.
 */

void layer__read_drop(const struct layer_reading *in, const char *key, struct layer_drop *out)
{
	struct json_at here;
	double rate = 0.0;

	if (!model_option_given(in->config, key, &here, in->err) ||
	    json_real(&here, &rate, in->err) != ST_OK)
		return;
	if (!(rate >= 0.0 && rate < 1.0)) {
		json_fail(&here, in->err,
			  "must be at least 0 and below 1: the share of what is dropped");
		return;
	}
	out->scale = (float)(1.0 / (1.0 - rate));
	out->threshold = (uint32_t)(rate * 0x1p32);
}

void layer__read_seed(const struct layer_reading *in, uint32_t *out)
{
	struct json_at here;
	int64_t seed;

	if (model_option_at(in->config, "seed", &here, in->err) &&
	    json_int(&here, INT32_MIN, INT64_MAX, &seed, in->err) == ST_OK)
		*out = (uint32_t)(((uint64_t)seed * 0x9e3779b97f4a7c15u) >> 32) | 1u;
}

/* Read "noise_shape", for example [null, 1, 1, 1]: one decision per item. A dimension is shared
 * where its entry is 1 and the input's is not; shared dimensions must be adjacent. */
static enum status dropout_noise_shape(const struct layer_reading *in, struct layer_dropout *c)
{
	const int dims = in->layer->input.ndim + 1;
	struct json_at here, item;
	bool before = false;
	int runs = 0;

	if (!model_option_at(in->config, "noise_shape", &here, in->err) ||
	    json_array(&here, in->err) != ST_OK)
		return in->err->status;
	if (json_count(&here) != dims)
		return json_fail(&here, in->err, "must have %d entries, the batch's first", dims);
	for (int i = 0; json_item(&here, i, &item); i++) {
		const int64_t whole = i ? in->layer->input.dim[i - 1] : 0;
		int64_t dim = whole;
		bool shared;

		if (!json_is_null(&item) && json_int(&item, 1, INT64_MAX, &dim, in->err) != ST_OK)
			return in->err->status;
		if (dim != whole && dim != 1)
			return json_fail(
				&item, in->err,
				"must be 1, null or the input's dimension (the batch's is null)");
		/* A dimension of 1 counts as shared if its neighbour is. */
		shared = dim != whole || (before && whole == 1);
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
			&here, in->err, "not supported: shared dimensions (1) must stand together");
	return ST_OK;
}

static const struct model_option dropout_options[] = {
	{"rate", .rule = MODEL_ANY},
	{"seed", .rule = MODEL_ANY},
	{"noise_shape", .rule = MODEL_ANY},
	{"data_format", .rule = MODEL_CHANNELS_LAST},
};

static enum status dropout_read(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	struct layer_dropout *c = layer->config;
	struct json_at here;

	if (!model_option_need(in->config, "rate", &here, in->err))
		return in->err->status;
	layer__read_drop(in, "rate", &c->drop);
	layer__read_seed(in, &c->seed);
	if (err_stuck(in->err) || layer->ops == &layer_dropout)
		return dropout_noise_shape(in, c);

	/* SpatialDropout: one decision per channel of an item. */
	if (model_option_at(in->config, "noise_shape", &here, in->err))
		return model_config_unsupported(&here, in->err,
						"not supported: it must be null here");
	c->shared = 1;
	c->shared_end = layer->input.ndim;
	return ST_OK;
}

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
	const unsigned decisions = forward && !lowering->retains ? LAYER_BETWEEN : LAYER_KEPT;
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

#define DROPOUT_LAYER(row, name, of_images, is_sequence)                                           \
	const struct layer_ops layer_##row = {.class_name = (name),                                \
					      .kind = LAYER_KIND_##row,                            \
					      .options = MODEL_OPTIONS(dropout_options),           \
					      .config_size = sizeof(struct layer_dropout),         \
					      .images = (of_images),                               \
					      .read = dropout_read,                                \
					      .flops = dropout_flops,                              \
					      .lower = dropout_lower,                              \
					      .each_step = !(of_images),                           \
					      .masks = LAYER_MASKS_PASS,                           \
					      .sequence = (is_sequence)}

DROPOUT_LAYER(dropout, "Dropout", false, false);
DROPOUT_LAYER(spatial_dropout1d, "SpatialDropout1D", true, true);
DROPOUT_LAYER(spatial_dropout2d, "SpatialDropout2D", true, false);

/* ---- GaussianNoise, GaussianDropout, AlphaDropout -------------------------------------------- */

/*
 *	GaussianNoise    y = x + stddev n
 *	GaussianDropout  y = x (1 + sqrt(rate / (1 - rate)) n)
 *	AlphaDropout     y = a x + b if x is retained, a alpha' + b if it is dropped, with
 *	                 alpha' = -1.0507 1.6733 of SELU, a = ((1 - rate)(1 + rate alpha'^2))^-1/2
 *	                 and b = -a alpha' rate: preserves mean and variance (Klambauer et al., 2017)
 *
 * n is normal. Each element uses two words of the random numbers.
 */

#define SELU_LOW (-1.0507009873554805 * 1.6732632423543772)

/* clang-format off */
static const struct model_option stddev_options[] = {
	{"stddev", MODEL_REAL, LAYER_CONFIG(noise, rate), .required = true, .strict = true, .most = 3e38,
	 .must = "must be 0 or greater: the standard deviation"},
	{"seed", .rule = MODEL_ANY},
};
static const struct model_option rate_options[] = {
	{"rate", MODEL_REAL, LAYER_CONFIG(noise, rate), .required = true, .strict = true, .most = MODEL_BELOW_1,
	 .must = "must be at least 0 and below 1: the share of what is dropped"},
	{"seed", .rule = MODEL_ANY},
	{"noise_shape", .rule = MODEL_NULL},
};
/* clang-format on */

static enum status noise_read(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	const bool adds = layer->ops == &layer_gaussian_noise;
	struct layer_noise *c = layer->config;
	double a;

	c->spread = (float)(adds ? c->rate : sqrt(c->rate / (1.0 - c->rate)));
	a = 1.0 / sqrt((1.0 - c->rate) * (1.0 + c->rate * SELU_LOW * SELU_LOW));
	if (layer->ops == &layer_alpha_dropout) {
		c->keep_factor = (float)a;
		c->keep_offset = (float)(-a * SELU_LOW * c->rate);
		c->drop_offset = (float)(a * SELU_LOW - a * SELU_LOW * c->rate);
		c->threshold = (uint32_t)(c->rate * 0x1p32);
	}
	layer__read_seed(in, &c->seed);
	return in->err->status;
}

static int64_t noise_flops(const struct model_layer *layer, int64_t batch)
{
	return 2 * batch * model_shape_count(&layer->output);
}

/* poprand's numbers, then a map. The factors of the elements are retained. */
static void noise_lower(struct layer_lowering *lowering)
{
	const struct layer_noise *c = lowering->layer->config;
	const bool forward = lowering->phase == IPU_PHASE_F;
	const bool adds = lowering->layer->ops == &layer_gaussian_noise;
	const unsigned random =
		forward && (adds || !lowering->retains) ? LAYER_BETWEEN : LAYER_KEPT;
	const int64_t count = layer__lower_count(lowering);
	struct layer_op numbers = layer__map(
		&(struct ipu_elements){.count = count, .times = {[IPU_FN_RANDOM] = 1}}, 0, random);
	struct layer_op each = layer__map(
		&(struct ipu_elements){.count = count,
				       .operands = 2,
				       .times = {[IPU_FN_ADD] = forward && !adds ? 2 : 1}},
		random | (forward ? LAYER_INPUT : LAYER_GRAD_OUTPUT),
		forward ? LAYER_OUTPUT : LAYER_GRAD_INPUT);

	/* GaussianNoise passes its gradient on unchanged. */
	if (!(c->rate > 0.0) || !lowering->training ||
	    (!forward && (adds || !layer__wants_any(lowering))))
		return;
	numbers.makes = count;
	numbers.training_only = each.training_only = true;
	if (forward)
		layer__lower(lowering, "noise/RandomNormal", &numbers);
	layer__lower(lowering, forward ? "noise/MulAdd" : "noise/Mul/Grad", &each);
}

#define NOISE_LAYER(row, name, how)                                                                \
	const struct layer_ops layer_##row = {.class_name = (name),                                \
					      .kind = LAYER_KIND_##row,                            \
					      .options = MODEL_OPTIONS(how##_options),             \
					      .config_size = sizeof(struct layer_noise),           \
					      .read = noise_read,                                  \
					      .flops = noise_flops,                                \
					      .lower = noise_lower,                                \
					      .each_step = true,                                   \
					      .masks = LAYER_MASKS_PASS}

NOISE_LAYER(gaussian_noise, "GaussianNoise", stddev);
NOISE_LAYER(gaussian_dropout, "GaussianDropout", rate);
NOISE_LAYER(alpha_dropout, "AlphaDropout", rate);
