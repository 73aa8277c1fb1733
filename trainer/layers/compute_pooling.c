/*
 * Pools over NHWC images: MaxPooling2D and AveragePooling2D over windows, with TensorFlow's
 * paddings; GlobalAveragePooling2D and GlobalMaxPooling2D over whole images. Sequences are images
 * one pixel high.
 */
#include "common/minmax.h"
#include "trainer/kernels/kernel_pool.h"
#include "trainer/kernels/kernel_work.h"
#include "trainer/layers/compute_internal.h"

/* ---- windows --------------------------------------------------------------------------------- */

/* layer_config.h defines the sizes; a mean is over the cells inside the image. The index of a
 * maximum is kept, usually as a byte, from forward to backward, so that neither input nor output is
 * read again. Slices are ranges of rows. */

#define POOLING_GRAIN 16384 /* minimum floats of the input that are worth a slice */

static struct kernel_pool pooling_of(const struct model_layer *layer)
{
	const struct layer_pool *p = layer->config;

	return (struct kernel_pool){
		.height = p->height,
		.width = p->width,
		.channels = p->channels,
		.out_height = p->out_height,
		.out_width = p->out_width,
		.pool_height = p->pool_height,
		.pool_width = p->pool_width,
		.stride_height = p->stride_height,
		.stride_width = p->stride_width,
		.top = p->top,
		.left = p->left,
	};
}

struct pooling_work {
	struct kernel_pool pool;
	const struct layer_pass *pass;
	int64_t rows, step;
};

/* Set up work on rows of @floats input floats each; set the number of slices. */
static struct pooling_work pooling_work(const struct layer_pass *pass, int64_t rows, int64_t floats,
					unsigned *slices)
{
	struct pooling_work work = {pooling_of(pass->layer), pass, rows, POOLING_GRAIN / floats};

	if (work.step < 1)
		work.step = 1;
	*slices = (unsigned)((rows + work.step - 1) / work.step);
	return work;
}

/* The cost: each output float is computed from its whole window, or distributed to it. */
static uint64_t pooling_cost(const struct layer_pass *pass)
{
	const struct layer_pool *p = pass->layer->config;

	return kernel_work_floats(pass->batch * p->out_height * p->out_width * p->channels *
				  p->pool_height * p->pool_width);
}

static int64_t pooling_count(const struct pooling_work *w, unsigned slice)
{
	int64_t left = w->rows - slice * w->step;

	return min(left, w->step);
}

/* What a slice of either pass computes: of maxima or of means. */
struct pooling_kind {
	pool_slice forward, backward;
};

static void pooling_forward(const struct layer_pass *pass)
{
	const struct pooling_kind *kind = compute_of(pass->layer)->own;
	const struct layer_pool *pool = pass->layer->config;
	unsigned slices;
	struct pooling_work work =
		pooling_work(pass, pass->batch * pool->out_height,
			     pool->stride_height * pool->width * pool->channels, &slices);

	pool_share(pass->pool, pooling_cost(pass), kind->forward, &work, slices);
	if (pass->watch)
		pass->watch->known = true;
}

static void pooling_backward(const struct layer_pass *pass)
{
	const struct pooling_kind *kind = compute_of(pass->layer)->own;
	const struct layer_pool *pool = pass->layer->config;
	unsigned slices;
	struct pooling_work work = pooling_work(pass, pass->batch * pool->height,
						pool->width * pool->channels, &slices);

	pool_share(pass->pool, pooling_cost(pass), kind->backward, &work, slices);
}

/* Report the rows that the slice has just written to the watch. */
static void pooling_watch(const struct pooling_work *w, unsigned slice)
{
	int64_t line = w->pool.out_width * w->pool.channels;

	if (w->pass->watch)
		kernel_watch_update(w->pass->watch,
				    kernel_abs_max(w->pass->output + slice * w->step * line,
						   (size_t)(pooling_count(w, slice) * line)));
}

static void max_forward_slice(void *context, unsigned slice)
{
	const struct pooling_work *w = context;

	kernel_pool_max(&w->pool, w->pass->inputs[0], w->pass->output,
			w->pass->training ? w->pass->kept : NULL, slice * w->step,
			pooling_count(w, slice));
	pooling_watch(w, slice);
}

static void max_backward_slice(void *context, unsigned slice)
{
	const struct pooling_work *w = context;

	kernel_pool_max_grad(&w->pool, w->pass->kept, w->pass->grad_output, w->pass->grad_inputs[0],
			     slice * w->step, pooling_count(w, slice), compute__adds(w->pass, 0));
}

static size_t max_kept(const struct layer_pass *pass)
{
	const struct kernel_pool pool = pooling_of(pass->layer);

	return (size_t)compute__count(pass) * kernel_pool_argmax_size(&pool);
}

static void average_forward_slice(void *context, unsigned slice)
{
	const struct pooling_work *w = context;

	kernel_pool_average(&w->pool, w->pass->inputs[0], w->pass->output, slice * w->step,
			    pooling_count(w, slice));
	pooling_watch(w, slice);
}

static void average_backward_slice(void *context, unsigned slice)
{
	const struct pooling_work *w = context;

	kernel_pool_average_grad(&w->pool, w->pass->grad_output, w->pass->grad_inputs[0],
				 slice * w->step, pooling_count(w, slice),
				 compute__adds(w->pass, 0));
}

#define POOLING_OPS .forward = pooling_forward, .backward = pooling_backward, .adds = true

const struct compute_ops compute_max_pooling2d = {
	POOLING_OPS,
	.kept = max_kept,
	.own = &(const struct pooling_kind){max_forward_slice, max_backward_slice},
};

const struct compute_ops compute_average_pooling2d = {
	POOLING_OPS,
	.own = &(const struct pooling_kind){average_forward_slice, average_backward_slice},
};

/* ---- whole images ---------------------------------------------------------------------------- */

/* Slices are groups of images, or strips of channels if images are large. The gradient of a maximum
 * is divided evenly among the cells that have it, as TensorFlow's reduce_max does (MaxPooling2D
 * gives it to the first). */

#define GLOBAL_GRAIN 16384 /* minimum floats that are worth a slice */
#define GLOBAL_STRIP 512   /* channels of a strip */

struct global_work;

/* Computes one image's part, from offset @x of the input and @y of the pooled values. */
typedef void (*global_part)(const struct global_work *work, int64_t x, int64_t y, int64_t channels);

struct global_work {
	const struct layer_pass *pass;
	global_part part;
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

static void global_run(const struct layer_pass *pass, global_part part)
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

static void global_average_forward(const struct layer_pass *pass)
{
	global_run(pass, pass->layer->mask ? masked_part : average_part);
}

static void global_average_backward(const struct layer_pass *pass)
{
	compute__masks_backward(pass);
	if (pass->grad_inputs[0])
		global_run(pass, pass->layer->mask ? masked_grad_part : average_grad_part);
}

static void global_max_forward(const struct layer_pass *pass)
{
	global_run(pass, max_part);
}

static void global_max_backward(const struct layer_pass *pass)
{
	global_run(pass, max_grad_part);
}

const struct compute_ops compute_global_average_pooling2d = {
	.forward = global_average_forward,
	.backward = global_average_backward,
	.adds = true,
};

const struct compute_ops compute_global_max_pooling2d = {
	.forward = global_max_forward,
	.backward = global_max_backward,
	.adds = true,
};
