/*
 * GlobalAveragePooling2D and GlobalMaxPooling2D: one value per channel, from whole NHWC images.
 *
 * Slices are groups of images, or strips of channels if images are large. The gradient of a maximum
 * is divided evenly among the cells that have it, as TensorFlow's reduce_max does (MaxPooling2D
 * gives it to the first).
 */
#include "common/minmax.h"
#include "trainer/kernels/kernel_pool.h"
#include "trainer/kernels/kernel_work.h"
#include "trainer/layers/compute_internal.h"

#define GLOBAL_GRAIN 16384 /* minimum floats that are worth a slice */
#define GLOBAL_STRIP 512   /* channels of a strip */

struct global_work {
	const struct layer_pass *pass;
	/* Compute one image's part, from offset @x of the input and @y of the pooled values. */
	void (*part)(const struct global_work *work, int64_t x, int64_t y, int64_t channels);
	int64_t cells, channels;
	int64_t images; /* per group */
	int64_t strip;  /* channels per strip */
	unsigned strips;
};

static void global_slice(void *context, unsigned slice)
{
	const struct global_work *w = context;
	int64_t from = slice % w->strips * w->strip, image = slice / w->strips * w->images;
	int64_t left = w->pass->batch - image, channels = w->channels - from;

	if (channels > w->strip)
		channels = w->strip;
	for (int64_t end = image + min(left, w->images); image < end; image++)
		w->part(w, image * w->cells * w->channels + from, image * w->channels + from,
			channels);
}

static void global_run(const struct layer_pass *pass,
		       void (*part)(const struct global_work *, int64_t, int64_t, int64_t))
{
	const struct model_shape *input = &pass->layer->input;
	const int64_t channels = layer_last_dim(input);
	struct global_work w = {.pass = pass,
				.part = part,
				.cells = layer_side(input, LAYER_Y) * layer_side(input, LAYER_X),
				.channels = channels,
				.images = 1,
				.strip = channels,
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

static void average_part(const struct global_work *w, int64_t x, int64_t y, int64_t channels)
{
	kernel_pool_mean_all(w->pass->inputs[0] + x, w->channels, w->cells, channels,
			     w->pass->output + y);
}

static void average_grad_part(const struct global_work *w, int64_t x, int64_t y, int64_t channels)
{
	kernel_pool_mean_all_grad(w->pass->grad_output + y, w->pass->grad_inputs[0] + x,
				  w->channels, w->cells, channels, compute__adds(w->pass, 0));
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
				 w->cells, channels, compute__adds(w->pass, 0));
}

/* The mask of the item whose floats begin at @x; *@count: number of unmasked steps. */
static const float *part_mask(const struct global_work *w, int64_t x, float *count)
{
	const float *mask =
		w->pass->inputs[w->pass->layer->mask] + x / (w->cells * w->channels) * w->cells;

	*count = 0.0f;
	for (int64_t s = 0; s < w->cells; s++)
		*count += mask[s];
	return mask;
}

static void masked_part(const struct global_work *w, int64_t x, int64_t y, int64_t channels)
{
	float count;
	const float *mask = part_mask(w, x, &count);

	for (int64_t c = 0; c < channels; c++) {
		double sum = 0.0;

		for (int64_t s = 0; s < w->cells; s++)
			if (mask[s] != 0.0f)
				sum += (double)w->pass->inputs[0][x + s * w->channels + c];
		w->pass->output[y + c] = (float)(sum / (double)count);
	}
}

static void masked_grad_part(const struct global_work *w, int64_t x, int64_t y, int64_t channels)
{
	const float *dy = w->pass->grad_output + y;
	float count;
	const float *mask = part_mask(w, x, &count);

	for (int64_t s = 0; s < w->cells; s++) {
		float *dx = w->pass->grad_inputs[0] + x + s * w->channels;

		for (int64_t c = 0; c < channels; c++)
			dx[c] = (compute__adds(w->pass, 0) ? dx[c] : 0.0f) +
				(mask[s] != 0.0f ? dy[c] / count : 0.0f);
	}
}

static bool global_masked(const struct layer_pass *pass)
{
	return pass->layer->mask != 0;
}

static void average_forward(const struct layer_pass *pass)
{
	global_run(pass, global_masked(pass) ? masked_part : average_part);
}

static void average_backward(const struct layer_pass *pass)
{
	compute__masks_backward(pass);
	if (pass->grad_inputs[0])
		global_run(pass, global_masked(pass) ? masked_grad_part : average_grad_part);
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

const struct compute_ops compute_global_average_pooling2d = {
	.forward = average_forward,
	.backward = average_backward,
	.adds = true,
};

const struct compute_ops compute_global_max_pooling2d = {
	.forward = max_forward,
	.backward = max_backward,
	.adds = true,
};
