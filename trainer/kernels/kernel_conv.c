/*
 * Convolutions: the forward pass and the input's gradient, by Winograd's tiles where these apply.
 */
#include "trainer/kernels/kernel_conv.h"

#include <string.h>

#include "trainer/kernels/kernel_conv_internal.h"
#include "trainer/kernels/kernel_work.h"

/* ---- direct sums, or Winograd ---------------------------------------------------------------- */

/* Floats of scratch; the pointers in @gather are not used. */
static int64_t conv_scratch(const struct conv_gather *gather, unsigned lanes)
{
	if (conv__winograd_applies(&gather->view, gather->filters, gather->groups))
		return conv__winograd_scratch(gather, lanes);
	return conv__gather_scratch(gather, lanes);
}

/* Compute @gather's outputs. */
static void conv_run(const struct conv_gather *gather, const struct kernel_room *room)
{
	if (conv__winograd_applies(&gather->view, gather->filters, gather->groups))
		conv__winograd(gather, room);
	else
		conv__gather(gather, room);
}

/* ---- forward --------------------------------------------------------------------------------- */

static struct conv_gather conv_forward_gather(const struct kernel_conv *c)
{
	struct conv_gather g = {
		.view = conv__forward_view(c, NULL),
		.weights = {.kernel_width = c->kernel_width,
			    .tap = c->channels / c->groups * c->filters,
			    .ld = c->filters,
			    .step_y = 1,
			    .step_x = 1},
		.out_pixel = c->filters,
		.filters = c->filters / c->groups,
		.groups = c->groups,
		.group_source = c->channels / c->groups,
		.group_weights = c->filters / c->groups,
		.group_out = c->filters / c->groups,
	};

	g.view.spread = true;
	conv__flatten(&g.view, conv__body()->rows);
	g.out_row = g.view.out_columns * g.out_pixel;
	g.out_image = g.view.out_rows * g.out_row;
	return g;
}

void kernel_conv_forward(const struct kernel_conv *conv, const struct kernel_room *room,
			 const float *x, const float *kernel,
			 const struct kernel_conv_finish *finish, float *y)
{
	struct conv_gather g = conv_forward_gather(conv);

	if (kernel_is_depthwise(conv)) {
		kernel_depthwise_forward(conv, room, x, kernel, finish, y);
		return;
	}
	g.view.source = x;
	g.weights.w = kernel;
	g.finish = *finish;
	g.out = y;
	conv_run(&g, room);
	if (finish->watch)
		finish->watch->known = true;
}

/* ---- the input's gradient -------------------------------------------------------------------- */

/* Clears pixels that no output reads: those of a phase without taps. */
struct conv_clear {
	const struct kernel_conv *conv;
	float *dx;
	int64_t y, x; /* the phase */
	int64_t rows; /* of the phase, over all images */
};

#define CLEAR_SLICES 16

static void conv_clear_slice(void *context, unsigned slice)
{
	const struct conv_clear *p = context;
	const struct kernel_conv *c = p->conv;
	int64_t image_rows = conv__ceil(c->height - p->y, c->stride_y);
	int64_t end = conv__piece(p->rows, CLEAR_SLICES, slice + 1);

	for (int64_t i = conv__piece(p->rows, CLEAR_SLICES, slice); i < end; i++) {
		int64_t row = i / image_rows * c->height + p->y + i % image_rows * c->stride_y;
		float *dx = p->dx + row * c->width * c->channels;

		for (int64_t x = p->x; x < c->width; x += c->stride_x)
			memset(dx + x * c->channels, 0, (size_t)c->channels * sizeof(float));
	}
}

static void conv_clear(const struct kernel_conv *c, const struct kernel_room *room, int64_t y,
		       int64_t x, float *dx)
{
	struct conv_clear clear = {c, dx, y, x, c->batch * conv__ceil(c->height - y, c->stride_y)};
	int64_t pixels = clear.rows * conv__ceil(c->width - x, c->stride_x);

	pool_share(room->pool, kernel_work_floats(pixels * c->channels), conv_clear_slice, &clear,
		   CLEAR_SLICES);
}

void kernel_conv_grad_input(const struct kernel_conv *conv, const struct kernel_room *room,
			    const float *dy, const float *kernel, float *dx, bool add)
{
	if (kernel_is_depthwise(conv)) {
		kernel_depthwise_grad_input(conv, room, dy, kernel, dx, add);
		return;
	}
	for (int64_t y = 0; y < conv->stride_y; y++) {
		for (int64_t x = 0; x < conv->stride_x; x++) {
			struct conv_gather g = conv__input_gather(conv, y, x);

			if (!g.view.out_rows || !g.view.out_columns)
				continue;
			if (!g.view.depth) {
				if (!add)
					conv_clear(conv, room, y, x, dx);
				continue;
			}
			g.view.source = dy;
			g.weights.w = kernel;
			g.out = dx + (y * conv->width + x) * conv->channels;
			g.add = add;
			conv_run(&g, room);
		}
	}
}

/* ---- memory ---------------------------------------------------------------------------------- */

size_t kernel_conv_scratch(const struct kernel_conv *conv, unsigned lanes, bool training)
{
	struct conv_gather forward = conv_forward_gather(conv);
	int64_t floats = conv_scratch(&forward, lanes);

	if (kernel_is_depthwise(conv))
		return kernel_depthwise_scratch(conv, lanes, training);
	if (training)
		floats = max(floats, conv__sum_scratch(conv, lanes));
	for (int64_t y = 0; training && y < conv->stride_y; y++) {
		for (int64_t x = 0; x < conv->stride_x; x++) {
			struct conv_gather g = conv__input_gather(conv, y, x);

			if (g.view.out_rows && g.view.out_columns && g.view.depth)
				floats = max(floats, conv_scratch(&g, lanes));
		}
	}
	return (size_t)floats * sizeof(float);
}
