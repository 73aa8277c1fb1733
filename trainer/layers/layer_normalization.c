/*
 * Keras's preprocessing layer Normalization: y = (x - mean) / max(sqrt(variance), 1e-7) per
 * channel.
 *
 * Mean and variance are given in the config, or they are parameters that do not learn (with count,
 * which only Keras's adapt() would read) and come with loaded weights.
 */
#include <math.h>

#include "common/mem.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/layers/layer_internal.h"

extern const struct layer_ops layer_normalization;

#define NORMALIZATION_EPSILON 1e-7f /* keras.backend.epsilon() */

enum {
	NORMALIZATION_MEAN,
	NORMALIZATION_VARIANCE
};

struct normalization_config {
	float *mean, *deviation; /* patterns; NULL: there are parameters */
};

/* ---- reading --------------------------------------------------------------------------------- */

static float normalization_deviation(float variance)
{
	float deviation = sqrtf(variance);

	return deviation < NORMALIZATION_EPSILON ? NORMALIZATION_EPSILON : deviation;
}

static enum status normalization_params(struct model *model, struct model_layer *layer,
					const struct json_at *config, struct err *err)
{
	const struct model_shape channels = {.ndim = 1, .dim = {layer__last_dim(&layer->input)}};
	const struct layer_param params[] = {
		{.name = "mean", .initializer = "Zeros", .shape = channels, .fixed = true},
		{.name = "variance", .initializer = "Ones", .shape = channels, .fixed = true},
		{.name = "count", .initializer = "Zeros", .fixed = true},
	};
	enum status status = ST_OK;

	for (size_t i = 0; i < ARRAY_LEN(params) && status == ST_OK; i++)
		status = layer__add_param(model, layer, config, &params[i], err);
	return status;
}

static enum status normalization_numbers(struct model *model, struct model_layer *layer,
					 const struct json_at *config, struct err *err)
{
	int64_t channels = layer__last_dim(&layer->input), pattern = layer__pattern(channels);
	struct normalization_config *c = layer->config;
	bool mean_here, variance_here;
	enum status status;

	c->mean = model__alloc(model, (size_t)pattern, sizeof(float));
	c->deviation = model__alloc(model, (size_t)pattern, sizeof(float));
	if (!c->mean || !c->deviation)
		return err_nomem(err);
	status = layer__channel_numbers(config, "mean", c->mean, channels, &mean_here, err);
	if (status == ST_OK)
		status = layer__channel_numbers(config, "variance", c->deviation, channels,
						&variance_here, err);
	if (status != ST_OK)
		return status;
	if (mean_here != variance_here)
		return json_fail(config, err, "\"mean\" and \"variance\" must be given together");
	if (!mean_here) {
		c->mean = c->deviation = NULL;
		return normalization_params(model, layer, config, err);
	}
	for (int64_t i = 0; i < channels; i++) {
		if (c->deviation[i] < 0.0f)
			return json_fail(config, err, "\"variance\" must not be negative");
		c->deviation[i] = normalization_deviation(c->deviation[i]);
	}
	layer__repeat(c->mean, channels);
	layer__repeat(c->deviation, channels);
	return ST_OK;
}

static enum status normalization_read(struct model *model, struct model_layer *layer,
				      const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {
		{"axis", MODEL_ANY},
		{"mean", MODEL_ANY},
		{"variance", MODEL_ANY},
		{"invert", MODEL_FALSE},
	};
	enum status status = layer__begin(model, layer, config, own, ARRAY_LEN(own),
					  sizeof(struct normalization_config), err);

	if (status == ST_OK)
		status = layer__check_last_axis(layer, config, err);
	return status == ST_OK ? normalization_numbers(model, layer, config, err) : status;
}

/* ---- running --------------------------------------------------------------------------------- */

static size_t normalization_scratch(const struct model *model, const struct model_layer *layer,
				    int64_t batch, unsigned lanes, bool training)
{
	const struct normalization_config *c = layer->config;

	(void)model;
	(void)batch;
	(void)lanes;
	(void)training;
	if (c->mean)
		return 0;
	return 2 * (size_t)layer__pattern(layer__last_dim(&layer->input)) * sizeof(float);
}

struct normalization_work {
	const float *mean, *deviation, *x;
	float *y;
	int64_t channels;
};

static void normalization_body(const void *context, int64_t first, int64_t rows)
{
	const struct normalization_work *w = context;

	kernel_standardize(w->x + first * w->channels, w->y + first * w->channels,
			   (size_t)(rows * w->channels), w->mean, w->deviation,
			   (size_t)layer__pattern(w->channels));
}

/* The patterns of the parameters as they are now. */
static void normalization_patterns(const struct layer_pass *pass, struct normalization_work *w)
{
	const float *mean = layer__weights(pass, NORMALIZATION_MEAN);
	const float *variance = layer__weights(pass, NORMALIZATION_VARIANCE);
	float *means = pass->scratch, *deviations = means + layer__pattern(w->channels);

	for (int64_t i = 0; i < w->channels; i++) {
		means[i] = mean[i];
		deviations[i] = normalization_deviation(variance[i]);
	}
	layer__repeat(means, w->channels);
	layer__repeat(deviations, w->channels);
	w->mean = means;
	w->deviation = deviations;
}

static void normalization_run(const struct layer_pass *pass, const float *x, float *y, bool forward)
{
	const struct normalization_config *c = pass->layer->config;
	int64_t channels = layer__last_dim(&pass->layer->output);
	struct normalization_work work = {c->mean, c->deviation, x, y, channels};
	int64_t rows = pass->batch * (model_shape_count(&pass->layer->output) / channels);

	if (!c->mean)
		normalization_patterns(pass, &work);
	if (forward) {
		layer__share_output(pass, rows, channels, normalization_body, &work);
		return;
	}
	work.mean = NULL;
	layer__share(pass->pool, rows, channels, normalization_body, &work);
}

static void normalization_forward(const struct layer_pass *pass)
{
	normalization_run(pass, pass->inputs[0], pass->output, true);
}

static void normalization_backward(const struct layer_pass *pass)
{
	if (pass->grad_inputs[0])
		normalization_run(pass, pass->grad_output, pass->grad_inputs[0], false);
}

static int64_t normalization_flops(const struct model_layer *layer, int64_t batch)
{
	return batch * model_shape_count(&layer->output) * 2;
}

/* The deviation, of a variance that is a parameter; then the values by it. */
static void normalization_lower(struct layer_lowering *lowering)
{
	const struct normalization_config *c = lowering->layer->config;
	const int64_t channels = layer__last_dim(&lowering->layer->output);
	const bool forward = lowering->phase == 'F';
	struct layer_op deviation =
		layer__map(&(struct ipu_elements){.count = channels,
						  .operands = 1,
						  .times = {[IPU_FN_SQRT] = 1, [IPU_FN_ADD] = 1}},
			   LAYER_PARAM(NORMALIZATION_VARIANCE), LAYER_BETWEEN);
	struct layer_op op = layer__map(
		&(struct ipu_elements){.count = layer__lower_count(lowering),
				       .operands = 1,
				       .broadcast = channels,
				       .times = {[IPU_FN_ADD] = forward, [IPU_FN_DIVIDE] = 1}},
		forward ? LAYER_INPUT : LAYER_GRAD_OUTPUT,
		forward ? LAYER_OUTPUT : LAYER_GRAD_INPUT);

	if (!forward && !layer__wants_any(lowering))
		return;
	deviation.makes = channels;
	if (!c->mean) {
		layer__lower(lowering, forward ? "Sqrt" : "Sqrt/Grad", &deviation);
		op.reads |= LAYER_BETWEEN;
		op.reads |= forward ? LAYER_PARAM(NORMALIZATION_MEAN) : 0u;
	}
	layer__lower(lowering, forward ? "Normalize" : "Normalize/Grad", &op);
}

const struct layer_ops layer_normalization = {
	.class_name = "Normalization",
	.read = normalization_read,
	.forward = normalization_forward,
	.backward = normalization_backward,
	.scratch = normalization_scratch,
	.flops = normalization_flops,
	.lower = normalization_lower,
	.in_place = true,
	.grad_in_place = true,
};
