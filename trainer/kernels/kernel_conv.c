/*
 * Convolutions: selection of the body that computes tiles, the forward pass, the input's gradient.
 */
#include "trainer/kernels/kernel_conv.h"

#include <stdatomic.h>
#include <string.h>

#include "common/cpu.h"
#include "common/mem.h"
#include "trainer/kernels/kernel_activation.h"
#include "trainer/kernels/kernel_conv_internal.h"
#include "trainer/kernels/kernel_work.h"

static bool always(void)
{
	return true;
}

static const struct {
	const struct conv_body *body;
	bool (*runs)(void); /* whether this processor can run the body */
} conv_bodies[] = {
#if defined(__x86_64__)
	{&conv__avx512, cpu_has_avx512},
	{&conv__avx2, cpu_has_avx2},
#endif
	{&conv__portable, always},
};

static _Atomic(const struct conv_body *) conv_selected;

const struct conv_body *conv__body(void)
{
	const struct conv_body *body = atomic_load_explicit(&conv_selected, memory_order_relaxed);
	size_t i = 0;

	if (body)
		return body;
	while (!conv_bodies[i].runs())
		i++;
	atomic_store_explicit(&conv_selected, conv_bodies[i].body, memory_order_relaxed);
	return conv_bodies[i].body;
}

const char *kernel_conv_body(int index)
{
	return index >= 0 && (size_t)index < ARRAY_LEN(conv_bodies) ? conv_bodies[index].body->name
								    : NULL;
}

bool kernel_conv_use(int index)
{
	if (!kernel_conv_body(index) || !conv_bodies[index].runs())
		return false;
	atomic_store_explicit(&conv_selected, conv_bodies[index].body, memory_order_relaxed);
	return true;
}

/* ---- forward --------------------------------------------------------------------------------- */

struct conv_view conv__forward_view(const struct kernel_conv *c, const float *x)
{
	return (struct conv_view){
		.source = x,
		.images = c->batch,
		.rows = c->height,
		.columns = c->width,
		.pitch = c->channels,
		.depth = c->channels / c->groups,
		.taps_y = c->kernel_height,
		.taps_x = c->kernel_width,
		.dilation_y = c->dilation_y,
		.dilation_x = c->dilation_x,
		.step_y = c->stride_y,
		.step_x = c->stride_x,
		.origin_y = -c->pad_top,
		.origin_x = -c->pad_left,
		.out_rows = c->out_height,
		.out_columns = c->out_width,
		.last_columns = c->out_width,
	};
}

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
	conv__gather(&g, room);
	if (finish->watch)
		finish->watch->known = true;
}

/* ---- the input's gradient -------------------------------------------------------------------- */

/*
 * One axis (y or x) of a phase. With stride s, the input rows phase, phase + s, ... read the same
 * taps: those whose (phase + pad - i dilation) is divisible by s. Input row phase + t s reads
 * output row t + (phase + pad - i dilation) / s. With the taps in reverse order this is a
 * convolution of the gradient with stride 1. (Stride or dilation is 1.)
 */
struct conv_phase {
	int64_t taps, dilation, origin, out; /* of the view */
	int64_t first, step;                 /* indexes of the kernel's taps */
};

static struct conv_phase conv_phase(int64_t phase, int64_t size, int64_t taps, int64_t stride,
				    int64_t dilation, int64_t pad)
{
	int64_t first_tap = (phase + pad) % stride;
	struct conv_phase p = {
		.taps = first_tap < taps ? conv__ceil(taps - first_tap, stride) : 0,
		.dilation = stride == 1 ? dilation : 1,
		.out = phase < size ? conv__ceil(size - phase, stride) : 0,
		.step = -stride,
	};

	p.first = first_tap + (p.taps - 1) * stride;
	p.origin = (phase + pad - first_tap) / stride - (p.taps - 1) * p.dilation;
	return p;
}

struct conv_gather conv__input_gather(const struct kernel_conv *c, int64_t phase_y, int64_t phase_x)
{
	struct conv_phase y = conv_phase(phase_y, c->height, c->kernel_height, c->stride_y,
					 c->dilation_y, c->pad_top);
	struct conv_phase x = conv_phase(phase_x, c->width, c->kernel_width, c->stride_x,
					 c->dilation_x, c->pad_left);
	struct conv_gather g = {
		.view = {.images = c->batch,
			 .rows = c->out_height,
			 .columns = c->out_width,
			 .pitch = c->filters,
			 .depth = y.taps && x.taps ? c->filters / c->groups : 0,
			 .taps_y = y.taps,
			 .taps_x = x.taps,
			 .dilation_y = y.dilation,
			 .dilation_x = x.dilation,
			 .step_y = 1,
			 .step_x = 1,
			 .origin_y = y.origin,
			 .origin_x = x.origin,
			 .out_rows = y.out,
			 .out_columns = x.out,
			 .last_columns = x.out,
			 .spread = true},
		.weights = {.kernel_width = c->kernel_width,
			    .tap = c->channels / c->groups * c->filters,
			    .ld = c->filters,
			    .first_y = y.first,
			    .step_y = y.step,
			    .first_x = x.first,
			    .step_x = x.step,
			    .transpose = true},
		.out_image = c->height * c->width * c->channels,
		.out_row = c->stride_y * c->width * c->channels,
		.out_pixel = c->stride_x * c->channels,
		.filters = c->channels / c->groups,
		.groups = c->groups,
		.group_source = c->filters / c->groups,
		.group_weights = c->filters / c->groups,
		.group_out = c->channels / c->groups,
	};

	/* No output reads these pixels: nothing is summed. */
	if (!g.view.depth)
		g.view.taps_y = g.view.taps_x = 1;
	if (c->stride_y == 1 && c->stride_x == 1) {
		conv__flatten(&g.view, conv__body()->rows);
		if (g.view.images == 1)
			g.out_row = g.view.out_columns * g.out_pixel;
	}
	return g;
}

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
			conv__gather(&g, room);
		}
	}
}

/* ---- memory ---------------------------------------------------------------------------------- */

size_t kernel_conv_scratch(const struct kernel_conv *conv, unsigned lanes, bool training)
{
	struct conv_gather forward = conv_forward_gather(conv);
	int64_t floats = conv__gather_scratch(&forward, lanes);

	if (kernel_is_depthwise(conv))
		return kernel_depthwise_scratch(conv, lanes, training);
	if (training)
		floats = max(floats, conv__sum_scratch(conv, lanes));
	for (int64_t y = 0; training && y < conv->stride_y; y++) {
		for (int64_t x = 0; x < conv->stride_x; x++) {
			struct conv_gather g = conv__input_gather(conv, y, x);

			if (g.view.out_rows && g.view.out_columns && g.view.depth)
				floats = max(floats, conv__gather_scratch(&g, lanes));
		}
	}
	return (size_t)floats * sizeof(float);
}

/* ---- the ReLU's gradient --------------------------------------------------------------------- */

#define RELU_GRAIN 65536 /* floats per slice */

struct relu_work {
	const struct kernel_conv_relu *relu;
	float *dy;
	size_t count;
};

static void relu_slice(void *context, unsigned slice)
{
	const struct relu_work *w = context;
	size_t begin = (size_t)slice * RELU_GRAIN, left = w->count - begin;

	kernel_bounded_relu_grad(w->relu->y + begin, w->dy + begin, w->dy + begin, w->relu->most,
				 min(left, RELU_GRAIN));
}

void kernel_conv_grad_relu(const struct kernel_conv_relu *relu, struct pool *pool, float *dy,
			   size_t count)
{
	struct relu_work work = {relu, dy, count};

	if (relu->y)
		pool_share(pool, kernel_work_floats(3 * (int64_t)count), relu_slice, &work,
			   (unsigned)((count + RELU_GRAIN - 1) / RELU_GRAIN));
}
