/*
 * Depthwise convolutions: rows of pixels by blocks of channels. See the header.
 *
 * With one filter per channel, kernel_depthwise_tile.h computes the rows.
 */
#include "trainer/kernels/kernel_conv.h"

#include <string.h>

#include "trainer/kernels/kernel_clones.h"
#include "trainer/kernels/kernel_conv_internal.h"
#include "trainer/kernels/kernel_work.h"

#define DEPTH_SLICES 32    /* target */
#define DEPTH_LEAST  16384 /* minimum outputs of a slice */
#define DEPTH_PARTS  16    /* of the kernel's gradient */

struct depth_gather {
	struct conv_gather g; /* its filters count all channels' */
	int64_t multiplier;
	bool reduce; /* sum over the filters of a channel: the input's gradient */
	int64_t lines, slice_lines, lane;
	float *memory;
};

/* ---- a row ----------------------------------------------------------------------------------- */

static float depth_finish(const struct conv_depth_row *r, float sum, int64_t channel, float old)
{
	if (r->finish.bias)
		sum += r->finish.bias[channel];
	if (r->add)
		sum += old;
	if (r->finish.relu) {
		sum = sum < 0.0f ? 0.0f : sum;
		sum = sum > r->finish.most ? r->finish.most : sum;
	}
	return sum;
}

/* With several filters per channel: compute c[channel, m] from a[channel]. */
static void depth_row_expand(const struct conv_depth_row *r)
{
	for (int64_t p = 0; p < r->pixels; p++) {
		for (int64_t f = 0; f < r->channels; f++) {
			const float *a = r->a + p * r->pixel + f / r->multiplier;
			float *c = r->c + p * r->c_pixel + f, sum = 0.0f;

			for (int64_t i = 0; i < r->taps_y; i++)
				for (int64_t j = 0; j < r->taps_x; j++)
					sum += a[i * r->tap_y + j * r->tap_x] *
					       r->w[i * r->w_y + j * r->w_x + f];
			*c = depth_finish(r, sum, f, r->add ? *c : 0.0f);
		}
	}
}

static float depth_filters(const struct conv_depth_row *r, const float *a, const float *w)
{
	float sum = 0.0f;

	for (int64_t i = 0; i < r->taps_y; i++)
		for (int64_t j = 0; j < r->taps_x; j++)
			for (int64_t m = 0; m < r->multiplier; m++)
				sum += a[i * r->tap_y + j * r->tap_x + m] *
				       w[i * r->w_y + j * r->w_x + m];
	return sum;
}

/* The reverse: compute c[channel] from all a[channel, m]. */
static void depth_row_reduce(const struct conv_depth_row *r)
{
	for (int64_t p = 0; p < r->pixels; p++) {
		for (int64_t channel = 0; channel < r->channels; channel++) {
			int64_t f = channel * r->multiplier;
			float *c = r->c + p * r->c_pixel + channel;

			*c = depth_finish(r, depth_filters(r, r->a + p * r->pixel + f, r->w + f),
					  channel, r->add ? *c : 0.0f);
		}
	}
}

/* ---- forward and the input's gradient -------------------------------------------------------- */

static int64_t depth_slice_lines(const struct conv_view *v, int64_t lines, int64_t slices,
				 int64_t channels)
{
	int64_t min_lines = conv__ceil(DEPTH_LEAST, v->out_columns * channels);

	return min(lines, max(min_lines, conv__ceil(lines, slices)));
}

static void depth_plan(struct depth_gather *d)
{
	const struct conv_view *v = &d->g.view;

	d->lines = v->images * v->out_rows;
	d->slice_lines = depth_slice_lines(v, d->lines, DEPTH_SLICES, d->g.filters);
	d->lane = conv__band_floats(v, d->slice_lines);
}

static void depth_slice(void *context, unsigned slice, unsigned lane)
{
	const struct depth_gather *d = context;
	const struct conv_gather *g = &d->g;
	const struct conv_view *v = &g->view;
	const struct conv_weights *w = &g->weights;
	int64_t line = slice * d->slice_lines;
	int64_t end = min(line + d->slice_lines, d->lines);
	struct conv_band band = conv__band(v, line, end - line, d->memory + lane * d->lane);
	struct conv_depth_row row = {
		.pixel = band.pixel,
		.tap_y = band.tap_y,
		.tap_x = band.tap_x,
		.taps_y = v->depth ? v->taps_y : 0,
		.taps_x = v->taps_x,
		.w = w->w + (w->first_y * w->kernel_width + w->first_x) * w->tap,
		.w_y = w->step_y * w->kernel_width * w->tap,
		.w_x = w->step_x * w->tap,
		.c_pixel = g->out_pixel,
		.channels = g->filters,
		.multiplier = d->multiplier,
		.finish = g->finish,
		.add = g->add,
	};

	for (; line < end; line++) {
		row.a = conv__band_line(v, &band, line);
		row.pixels = line == d->lines - 1 ? v->last_columns : v->out_columns;
		row.c = g->out + line / v->out_rows * g->out_image +
			line % v->out_rows * g->out_row;
		if (d->multiplier == 1)
			conv__body()->depth_row(&row);
		else if (d->reduce)
			depth_row_reduce(&row);
		else
			depth_row_expand(&row);
		if (g->finish.watch) /* while the row is in the cache */
			kernel_watch_update(
				g->finish.watch,
				kernel_abs_max(row.c, (size_t)(row.pixels * row.channels)));
	}
}

/* Each multiply-add reads one float. */
static uint64_t depth_work(const struct conv_view *v, int64_t filters)
{
	return kernel_work_floats(v->images * v->out_rows * v->out_columns * v->taps_y * v->taps_x *
				  filters);
}

static void depth_run(struct depth_gather *d, const struct kernel_room *room)
{
	d->memory = room->scratch;
	pool_share_lanes(room->pool, depth_work(&d->g.view, d->g.filters), depth_slice, d,
			 (unsigned)conv__ceil(d->lines, d->slice_lines));
}

static struct depth_gather depth_forward(const struct kernel_conv *conv)
{
	struct depth_gather d = {
		.g = {.view = conv__forward_view(conv, NULL),
		      .weights = {.kernel_width = conv->kernel_width,
				  .tap = conv->filters,
				  .step_y = 1,
				  .step_x = 1},
		      .out_pixel = conv->filters,
		      .out_row = conv->out_width * conv->filters,
		      .out_image = conv->out_height * conv->out_width * conv->filters,
		      .filters = conv->filters},
		.multiplier = conv->filters / conv->channels,
	};

	d.g.view.depth = conv->channels;
	depth_plan(&d);
	return d;
}

void kernel_depthwise_forward(const struct kernel_conv *conv, const struct kernel_room *room,
			      const float *x, const float *kernel,
			      const struct kernel_conv_finish *finish, float *y)
{
	struct depth_gather d = depth_forward(conv);

	d.g.view.source = x;
	d.g.weights.w = kernel;
	d.g.finish = *finish;
	d.g.out = y;
	depth_run(&d, room);
	if (finish->watch)
		finish->watch->known = true;
}

static struct depth_gather depth_input(const struct kernel_conv *conv, int64_t y, int64_t x)
{
	struct depth_gather d = {
		.g = conv__input_gather(conv, y, x),
		.multiplier = conv->filters / conv->channels,
		.reduce = true,
	};

	d.g.view.depth = d.g.view.depth ? conv->filters : 0;
	d.g.view.spread = false;
	d.g.weights.tap = conv->filters;
	d.g.filters = conv->channels;
	if (d.g.view.out_rows && d.g.view.out_columns)
		depth_plan(&d);
	return d;
}

void kernel_depthwise_grad_input(const struct kernel_conv *conv, const struct kernel_room *room,
				 const float *dy, const float *kernel, float *dx, bool add)
{
	for (int64_t y = 0; y < conv->stride_y; y++) {
		for (int64_t x = 0; x < conv->stride_x; x++) {
			struct depth_gather d = depth_input(conv, y, x);

			if (!d.lines || (add && !d.g.view.depth))
				continue;
			d.g.view.source = dy;
			d.g.weights.w = kernel;
			d.g.out = dx + (y * conv->width + x) * conv->channels;
			d.g.add = add;
			depth_run(&d, room);
		}
	}
}

/* ---- the kernel's gradient ------------------------------------------------------------------- */

struct depth_sum {
	const struct kernel_conv *conv;
	struct conv_view view;
	const float *dy;
	float *dbias, *memory, *parts;
	int64_t lines, part_lines, part_count, part, lane; /* part, lane: floats */
	int64_t multiplier;
};

static struct depth_sum depth_sum(const struct kernel_conv *conv)
{
	struct depth_sum s = {
		.conv = conv,
		.view = conv__forward_view(conv, NULL),
		.multiplier = conv->filters / conv->channels,
	};

	s.view.depth = conv->channels;
	s.lines = conv->batch * conv->out_height;
	s.part_lines = depth_slice_lines(&s.view, s.lines, DEPTH_PARTS, conv->filters);
	s.part_count = conv__ceil(s.lines, s.part_lines);
	s.part = conv__part_floats(conv);
	s.lane = conv__band_floats(&s.view, s.part_lines);
	return s;
}

/* One tap, with several filters per channel. */
static void depth_sum_expand(const struct conv_depth_sum *s, const float *x, int64_t multiplier,
			     float *sums)
{
	for (int64_t p = 0; p < s->pixels; p++)
		for (int64_t f = 0; f < s->filters; f++)
			sums[f] += x[p * s->pixel + f / multiplier] * s->dy[p * s->filters + f];
}

KERNEL_CLONES
static void depth_sum_bias(const float *dy, int64_t filters, int64_t pixels, float *restrict sums)
{
	for (int64_t p = 0; p < pixels; p++)
		for (int64_t f = 0; f < filters; f++)
			sums[f] += dy[p * filters + f];
}

static void depth_sum_line(const struct depth_sum *s, const struct conv_band *band, const float *a,
			   const float *dy, float *part)
{
	const struct kernel_conv *c = s->conv;
	const struct conv_depth_sum sum = {
		.x = a,
		.pixel = band->pixel,
		.tap_y = band->tap_y,
		.tap_x = band->tap_x,
		.taps_y = c->kernel_height,
		.taps_x = c->kernel_width,
		.dy = dy,
		.pixels = c->out_width,
		.filters = c->filters,
		.sums = part,
	};

	if (s->multiplier == 1) {
		conv__body()->depth_sum(&sum);
		return;
	}
	for (int64_t i = 0; i < c->kernel_height; i++)
		for (int64_t j = 0; j < c->kernel_width; j++)
			depth_sum_expand(&sum, a + i * band->tap_y + j * band->tap_x, s->multiplier,
					 part + (i * c->kernel_width + j) * c->filters);
}

static void depth_part_slice(void *context, unsigned slice, unsigned lane)
{
	const struct depth_sum *s = context;
	const struct kernel_conv *c = s->conv;
	int64_t line = slice * s->part_lines, row = c->out_width * c->filters;
	int64_t end = min(line + s->part_lines, s->lines);
	float *part = s->parts + slice * s->part;
	float *bias = conv__part_bias(c, part);
	struct conv_band band = conv__band(&s->view, line, end - line, s->memory + lane * s->lane);

	memset(part, 0, (size_t)s->part * sizeof(float));
	for (; line < end; line++) {
		const float *dy = s->dy + line * row;

		depth_sum_line(s, &band, conv__band_line(&s->view, &band, line), dy, part);
		if (s->dbias)
			depth_sum_bias(dy, c->filters, c->out_width, bias);
	}
}

void kernel_depthwise_grad_kernel(const struct kernel_conv *conv, const struct kernel_room *room,
				  const float *x, float *dy, const struct kernel_conv_relu *relu,
				  float *dkernel, float *dbias)
{
	struct depth_sum s = depth_sum(conv);

	kernel_conv_grad_relu(relu, room->pool, dy,
			      (size_t)(s.lines * conv->out_width * conv->filters));
	s.view.source = x;
	s.dy = dy;
	s.dbias = dbias;
	s.memory = room->scratch;
	s.parts = s.memory + s.lane * pool_lanes(room->pool);
	pool_share_lanes(room->pool, depth_work(&s.view, conv->filters), depth_part_slice, &s,
			 (unsigned)s.part_count);
	conv__add_parts(conv, room->pool, s.parts, s.part_count, dkernel, dbias);
}

/* ---- memory ---------------------------------------------------------------------------------- */

size_t kernel_depthwise_scratch(const struct kernel_conv *conv, unsigned lanes, bool training)
{
	struct depth_gather forward = depth_forward(conv);
	int64_t floats = forward.lane * lanes;

	if (training) {
		struct depth_sum s = depth_sum(conv);

		floats = max(floats, s.lane * lanes + min(DEPTH_PARTS, s.lines) * s.part);
	}
	for (int64_t y = 0; training && y < conv->stride_y; y++) {
		for (int64_t x = 0; x < conv->stride_x; x++) {
			struct depth_gather d = depth_input(conv, y, x);

			floats = max(floats, d.lane * lanes);
		}
	}
	return (size_t)floats * sizeof(float);
}
