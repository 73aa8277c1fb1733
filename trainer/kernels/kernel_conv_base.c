/*
 * What convolutions of all kinds share: the body that computes their tiles, what an output of each
 * pass reads, and how a kernel's gradient begins (the ReLU's gradient) and ends (the sum of parts).
 */
#include "trainer/kernels/kernel_conv.h"

#include <stdatomic.h>
#include <string.h>

#include "common/cpu.h"
#include "common/mem.h"
#include "trainer/kernels/kernel_activation.h"
#include "trainer/kernels/kernel_clones.h"
#include "trainer/kernels/kernel_conv_internal.h"
#include "trainer/kernels/kernel_work.h"

#define RELU_GRAIN 65536 /* floats per slice */
#define SUM_ADD    4096  /* floats per slice when parts are added */

/* ---- the body -------------------------------------------------------------------------------- */

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

/* ---- what an output reads -------------------------------------------------------------------- */

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

/* ---- the ReLU's gradient --------------------------------------------------------------------- */

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

/* ---- the sum of parts ------------------------------------------------------------------------ */

struct sum_parts {
	const struct kernel_conv *conv;
	float *parts;
	int64_t count;
	float *dkernel, *dbias;
};

/* Sum @floats floats of the parts, from @from in the first one on. */
KERNEL_CLONES
static void sum_add(const struct sum_parts *p, const float *from, int64_t floats, float *out)
{
	const int64_t stride = conv__part_floats(p->conv);

	memcpy(out, from, (size_t)floats * sizeof(float));
	for (int64_t part = 1; part < p->count; part++) {
		const float *restrict more = from + part * stride;

		for (int64_t i = 0; i < floats; i++)
			out[i] += more[i];
	}
}

static void sum_add_slice(void *context, unsigned slice)
{
	const struct sum_parts *p = context;
	int64_t first = (int64_t)slice * SUM_ADD, floats = conv__kernel_floats(p->conv);

	if (first < floats)
		sum_add(p, p->parts + first, min(SUM_ADD, floats - first), p->dkernel + first);
	else if (p->dbias)
		sum_add(p, conv__part_bias(p->conv, p->parts), p->conv->filters, p->dbias);
}

void conv__add_parts(const struct kernel_conv *conv, struct pool *pool, float *parts, int64_t count,
		     float *dkernel, float *dbias)
{
	struct sum_parts p = {conv, parts, count, dkernel, dbias};
	int64_t floats = conv__kernel_floats(conv);

	pool_share(pool, kernel_work_floats(count * floats), sum_add_slice, &p,
		   (unsigned)(conv__ceil(floats, SUM_ADD) + 1));
}
