/*
 * Zero padding of images: copies row by row.
 */
#include "trainer/kernels/kernel_conv.h"

#include <string.h>

#include "trainer/kernels/kernel_vector.h"
#include "trainer/kernels/kernel_work.h"

#define PAD_GRAIN 32768 /* floats per slice, about */

struct pad_work {
	const struct kernel_pad *pad;
	const float *from;
	float *to;
	bool add;
	int64_t rows, step; /* over all images; per slice */
};

static void pad_share(struct pad_work *w, struct pool *pool, pool_slice slice, int64_t height,
		      int64_t width)
{
	int64_t floats = width * w->pad->channels;

	w->rows = w->pad->batch * height;
	w->step = floats >= PAD_GRAIN ? 1 : PAD_GRAIN / floats;
	pool_share(pool, kernel_work_floats(2 * w->rows * floats), slice, w,
		   (unsigned)((w->rows + w->step - 1) / w->step));
}

static void pad_row(const struct kernel_pad *p, int64_t row, const float *x, float *y)
{
	int64_t height = p->top + p->height + p->bottom;
	int64_t image = row / height, inner = row % height - p->top;
	size_t left = (size_t)(p->left * p->channels), width = (size_t)(p->width * p->channels);
	size_t right = (size_t)(p->right * p->channels);

	y += row * (p->left + p->width + p->right) * p->channels;
	if (inner < 0 || inner >= p->height) {
		memset(y, 0, (left + width + right) * sizeof(float));
		return;
	}
	memset(y, 0, left * sizeof(float));
	memcpy(y + left, x + (size_t)(image * p->height + inner) * width, width * sizeof(float));
	memset(y + left + width, 0, right * sizeof(float));
}

static void pad_forward_slice(void *context, unsigned slice)
{
	const struct pad_work *w = context;
	int64_t row = slice * w->step, end = row + w->step;

	for (; row < w->rows && row < end; row++)
		pad_row(w->pad, row, w->from, w->to);
}

void kernel_pad_forward(const struct kernel_pad *pad, struct pool *pool, const float *x, float *y)
{
	struct pad_work work = {.pad = pad, .from = x, .to = y};

	pad_share(&work, pool, pad_forward_slice, pad->top + pad->height + pad->bottom,
		  pad->left + pad->width + pad->right);
}

static void pad_grad_slice(void *context, unsigned slice)
{
	const struct pad_work *w = context;
	const struct kernel_pad *p = w->pad;
	int64_t row = slice * w->step, end = row + w->step;
	int64_t height = p->top + p->height + p->bottom, width = p->left + p->width + p->right;
	size_t count = (size_t)(p->width * p->channels);

	for (; row < w->rows && row < end; row++) {
		int64_t outer = row / p->height * height + p->top + row % p->height;
		const float *from = w->from + (outer * width + p->left) * p->channels;

		if (w->add)
			kernel_add(w->to + (size_t)row * count, from, count);
		else
			memcpy(w->to + (size_t)row * count, from, count * sizeof(float));
	}
}

void kernel_pad_grad(const struct kernel_pad *pad, struct pool *pool, const float *dy, float *dx,
		     bool add)
{
	struct pad_work work = {.pad = pad, .from = dy, .to = dx, .add = add};

	pad_share(&work, pool, pad_grad_slice, pad->height, pad->width);
}
