/*
 * GlobalAveragePooling2D and GlobalMaxPooling2D: one value a channel, from whole NHWC images.
 *
 * Slices are groups of images, and strips of channels of large ones. The gradient of a maximum is
 * shared evenly by the cells that have it, as TensorFlow's reduce_max does (MaxPooling2D gives it
 * to the first).
 */
#include "common/mem.h"
#include "trainer/kernels/kernel_pool.h"
#include "trainer/kernels/kernel_work.h"
#include "trainer/layers/layer_internal.h"

extern const struct layer_ops layer_global_average_pooling2d, layer_global_max_pooling2d;

#define GLOBAL_GRAIN 16384 /* floats that pay for a slice of their own */
#define GLOBAL_STRIP 512   /* channels of a strip */

static enum status global_read(struct model *model, struct model_layer *layer,
			       const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {{"data_format", MODEL_CHANNELS_LAST},
						  {"keepdims", MODEL_ANY}};
	enum status status = layer__check(config, own, ARRAY_LEN(own), err);
	struct json_at here;
	bool keepdims = false;

	(void)model;
	if (status == ST_OK)
		status = layer__check_images(layer, config, err);
	if (status != ST_OK)
		return status;
	if (json_child(config, "keepdims", &here) && !json_is_null(&here))
		status = json_bool(&here, &keepdims, err);
	layer->output = (struct model_shape){.ndim = 1, .dim = {layer->input.dim[2]}};
	if (keepdims)
		layer->output = (struct model_shape){.ndim = 3, .dim = {1, 1, layer->input.dim[2]}};
	return status;
}

/* ---- running --------------------------------------------------------------------------------- */

struct global_work {
	const struct layer_pass *pass;
	/* One image's part: from its floats @x and its pooled values @y on. */
	void (*part)(const struct global_work *work, int64_t x, int64_t y, int64_t channels);
	int64_t cells, channels;
	int64_t images; /* in a group */
	int64_t strip;  /* channels in a strip */
	unsigned strips;
};

static void global_slice(void *context, unsigned slice)
{
	const struct global_work *w = context;
	int64_t from = slice % w->strips * w->strip, image = slice / w->strips * w->images;
	int64_t left = w->pass->batch - image, channels = w->channels - from;

	if (channels > w->strip)
		channels = w->strip;
	for (int64_t end = image + (left < w->images ? left : w->images); image < end; image++)
		w->part(w, image * w->cells * w->channels + from, image * w->channels + from,
			channels);
}

static void global_run(const struct layer_pass *pass,
		       void (*part)(const struct global_work *, int64_t, int64_t, int64_t))
{
	const int64_t *dim = pass->layer->input.dim;
	struct global_work w = {.pass = pass,
				.part = part,
				.cells = dim[0] * dim[1],
				.channels = dim[2],
				.images = 1,
				.strip = dim[2],
				.strips = 1};
	int64_t floats = w.cells * w.channels;

	if (floats < GLOBAL_GRAIN)
		w.images = GLOBAL_GRAIN / floats;
	if (floats > 2 * GLOBAL_GRAIN && w.channels > GLOBAL_STRIP)
		w.strip = GLOBAL_STRIP;
	w.strips = (unsigned)((w.channels + w.strip - 1) / w.strip);
	pool_share(pass->pool, kernel_work_floats(pass->batch * floats), global_slice, &w,
		   w.strips * (unsigned)((pass->batch + w.images - 1) / w.images));
}

static bool global_adds(const struct layer_pass *pass)
{
	return pass->add && pass->add[0];
}

static void average_part(const struct global_work *w, int64_t x, int64_t y, int64_t channels)
{
	kernel_pool_mean_all(w->pass->inputs[0] + x, w->channels, w->cells, channels,
			     w->pass->output + y);
}

static void average_grad_part(const struct global_work *w, int64_t x, int64_t y, int64_t channels)
{
	kernel_pool_mean_all_grad(w->pass->grad_output + y, w->pass->grad_inputs[0] + x,
				  w->channels, w->cells, channels, global_adds(w->pass));
}

static void max_part(const struct global_work *w, int64_t x, int64_t y, int64_t channels)
{
	kernel_pool_max_all(w->pass->inputs[0] + x, w->channels, w->cells, channels,
			    w->pass->output + y);
}

static void max_grad_part(const struct global_work *w, int64_t x, int64_t y, int64_t channels)
{
	kernel_pool_max_all_grad(w->pass->inputs[0] + x, w->pass->output + y,
				 w->pass->grad_output + y, w->pass->grad_inputs[0] + x, w->channels,
				 w->cells, channels, global_adds(w->pass));
}

static void average_forward(const struct layer_pass *pass)
{
	global_run(pass, average_part);
}

static void average_backward(const struct layer_pass *pass)
{
	if (pass->grad_inputs[0])
		global_run(pass, average_grad_part);
}

static void max_forward(const struct layer_pass *pass)
{
	global_run(pass, max_part);
}

static void max_backward(const struct layer_pass *pass)
{
	if (pass->grad_inputs[0])
		global_run(pass, max_grad_part);
}

/* ---- costs ----------------------------------------------------------------------------------- */

static int64_t global_flops(const struct model_layer *layer, int64_t batch)
{
	return batch * model_shape_count(&layer->input);
}

/* What the reductions are of, forward: the scale of a mean is part of it. */
static void global_lower_forward(struct layer_lowering *lowering, const char *part)
{
	const struct layer_op op =
		layer__reduce(global_flops(lowering->layer, lowering->batch),
			      layer__lower_count(lowering), LAYER_INPUT, LAYER_OUTPUT);

	layer__lower(lowering, part, &op);
}

static void average_lower(struct layer_lowering *lowering)
{
	const struct layer_op backward = layer__map(
		&(struct ipu_elements){.count = global_flops(lowering->layer, lowering->batch),
				       .operands = 0,
				       .broadcast = layer__lower_count(lowering),
				       .times = {[IPU_FN_ADD] = 1}},
		LAYER_GRAD_OUTPUT, LAYER_GRAD_INPUT);

	if (lowering->phase == 'F')
		global_lower_forward(lowering, "Mean");
	else if (layer__wants_any(lowering))
		layer__lower(lowering, "Mean/Grad", &backward);
}

/* Which cells have the maximum, how many they are, and their shares. */
static void max_lower(struct layer_lowering *lowering)
{
	const int64_t count = global_flops(lowering->layer, lowering->batch);
	const int64_t outputs = layer__lower_count(lowering);
	struct ipu_elements each = {.count = count,
				    .operands = 1,
				    .broadcast = outputs,
				    .times = {[IPU_FN_SELECT] = 1}};
	struct layer_op op = layer__map(&each, LAYER_INPUT | LAYER_OUTPUT, LAYER_BETWEEN);

	if (lowering->phase == 'F') {
		global_lower_forward(lowering, "Max");
		return;
	}
	if (!layer__wants_any(lowering))
		return;
	op.makes = count;
	layer__lower(lowering, "Max/Grad/Equal", &op);
	op = layer__reduce(count, outputs, LAYER_BETWEEN, LAYER_BETWEEN_TOO);
	layer__lower(lowering, "Max/Grad/Sum", &op);
	each.times[IPU_FN_SELECT] = 0;
	each.times[IPU_FN_ADD] = each.times[IPU_FN_DIVIDE] = 1;
	op = layer__map(&each, LAYER_BETWEEN | LAYER_BETWEEN_TOO | LAYER_GRAD_OUTPUT,
			LAYER_GRAD_INPUT);
	layer__lower(lowering, "Max/Grad", &op);
}

const struct layer_ops layer_global_average_pooling2d = {
	.class_name = "GlobalAveragePooling2D",
	.read = global_read,
	.forward = average_forward,
	.backward = average_backward,
	.flops = global_flops,
	.lower = average_lower,
	.adds = true,
};

const struct layer_ops layer_global_max_pooling2d = {
	.class_name = "GlobalMaxPooling2D",
	.read = global_read,
	.forward = max_forward,
	.backward = max_backward,
	.flops = global_flops,
	.lower = max_lower,
	.reads_inputs = true,
	.reads_output = true,
	.adds = true,
};
