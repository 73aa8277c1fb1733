/*
 * Layers whose output's pixels are sampled from the input's: see struct layer_sampling for the
 * formulas.
 *
 * An item's random numbers are keyed by its index i in the micro-batch: block i of the stream. The
 * backward pass draws them again, and adds each pixel's gradient to those of its source pixels. Its
 * slices are ranges of items: one thread sums an input's gradient, in the output's order.
 */
#include <string.h>

#include "common/elementary.h"
#include "common/rng.h"
#include "trainer/kernels/kernel_clones.h"
#include "trainer/layers/compute_internal.h"

/* How an item is sampled, per axis: u = at[0] (y + 0.5) + at[1] (x + 0.5) + at[2]. */
struct sampling_map {
	float at[LAYER_WAYS][LAYER_WAYS + 1];
	int64_t first[LAYER_WAYS]; /* of the window */
};

struct sampling {
	const struct layer_pass *pass;
	struct layer_sampling s;
	struct rng stream;
	int64_t in[LAYER_WAYS], out[LAYER_WAYS], channels;
};

/* Return false if the output equals the input. */
static bool sampling_begin(struct sampling *w, const struct layer_pass *pass)
{
	const struct model_layer *layer = pass->layer;

	*w = (struct sampling){.pass = pass, .channels = layer_last_dim(&layer->output)};
	for (int way = 0; way < LAYER_WAYS; way++) {
		w->in[way] = layer_side(&layer->input, way);
		w->out[way] = layer_side(&layer->output, way);
	}
	if (!layer_sampling_now(layer, compute__is_random(pass), &w->s))
		return false;
	rng_init(&w->stream, pass->seed, rng_stream(layer->name) ^ w->s.seed, pass->step,
		 pass->replica);
	return true;
}

/* Set the map to matrix @by, relative to the centers of the window and of the output. */
static void set_around_middle(struct sampling_map *map, const struct sampling *w,
			      const double by[LAYER_WAYS][LAYER_WAYS])
{
	for (int way = 0; way < LAYER_WAYS; way++) {
		double rest = (double)w->s.size[way] / 2.0;

		for (int i = 0; i < LAYER_WAYS; i++) {
			rest -= by[way][i] * (double)w->out[i] / 2.0;
			map->at[way][i] = (float)by[way][i];
		}
		map->at[way][LAYER_WAYS] = (float)rest;
	}
}

/* Draw the map of @item. */
static struct sampling_map map_of(const struct sampling *w, int64_t item)
{
	const struct layer_sampling *s = &w->s;
	struct sampling_map map = {.at = {{1.0f, 0.0f, 0.0f}, {0.0f, 1.0f, 0.0f}}};
	double share[LAYER_WAYS], cosine, sine;
	struct rng rng = w->stream;

	memcpy(map.first, s->first, sizeof(map.first));
	rng.counter[0] = (uint32_t)item;
	for (int way = 0; s->by >= LAYER_SAMPLING_TURN && way < LAYER_WAYS; way++)
		share[way] = s->share[way][0] +
			     (s->share[way][1] - s->share[way][0]) * (double)rng_uniform(&rng);
	switch (s->by) {
	case LAYER_SAMPLING_WINDOW:
		for (int way = 0; way < LAYER_WAYS; way++)
			map.at[way][way] = (float)s->size[way] / (float)w->out[way];
		break;
	case LAYER_SAMPLING_CROP:
		rng.counter[0] = 0;
		for (int way = 0; way < LAYER_WAYS; way++)
			map.first[way] = rng_below(&rng, (uint32_t)(w->in[way] - w->out[way] + 1));
		break;
	case LAYER_SAMPLING_FLIP:
		if (rng_uniform(&rng) >= 0.5f)
			break;
		for (int way = 0; way < LAYER_WAYS; way++)
			if (s->flips[way]) {
				map.at[way][way] = -1.0f;
				map.at[way][LAYER_WAYS] = (float)s->size[way];
			}
		break;
	case LAYER_SAMPLING_TURN:
		cosine = elementary_cos_pi(2.0 * share[LAYER_Y]);
		sine = elementary_cos_pi(2.0 * share[LAYER_Y] - 0.5);
		set_around_middle(&map, w, (const double[][2]){{cosine, sine}, {-sine, cosine}});
		break;
	case LAYER_SAMPLING_SHIFT:
		for (int way = 0; way < LAYER_WAYS; way++)
			map.at[way][LAYER_WAYS] = (float)(-share[way] * (double)s->size[way]);
		break;
	case LAYER_SAMPLING_ZOOM:
		if (s->joined)
			share[LAYER_X] = share[LAYER_Y];
		set_around_middle(&map, w,
				  (const double[][2]){{1.0 + share[LAYER_Y], 0.0},
						      {0.0, 1.0 + share[LAYER_X]}});
		break;
	}
	return map;
}

/* ---- pixels ---------------------------------------------------------------------------------- */

#define CORNERS 4
#define OUTSIDE (-1)

/* The source pixels of an output pixel, as float offsets in the item, and the fraction from the
 * first row to the second and from the first column to the second. */
struct sampling_tap {
	int count; /* 1 or CORNERS: top left, top right, bottom left, bottom right */
	int64_t at[CORNERS];
	float way[LAYER_WAYS];
};

/* Map index @i to a window of @size; @fill says how indexes outside are mapped. */
KERNEL_INLINE int64_t index_in(enum layer_fill fill, int64_t i, int64_t size)
{
	int64_t rest;

	if (i >= 0 && i < size)
		return i;
	switch (fill) {
	case LAYER_FILL_REFLECT:
		rest = (i % (2 * size) + 2 * size) % (2 * size);
		return rest < size ? rest : 2 * size - 1 - rest;
	case LAYER_FILL_WRAP:
		return (i % size + size) % size;
	case LAYER_FILL_CONSTANT:
		return OUTSIDE;
	case LAYER_FILL_NEAREST:
		break;
	}
	return i < 0 ? 0 : size - 1;
}

/* Along one axis: two rows or columns, and the fraction from the first to the second. */
struct sampling_along {
	int64_t index[2];
	float way;
};

KERNEL_INLINE struct sampling_along
along_of(const struct sampling *w, const struct sampling_map *map, int way, int64_t y, int64_t x)
{
	const float *at = map->at[way];
	const float u = at[0] * ((float)y + 0.5f) + at[1] * ((float)x + 0.5f) + at[2];
	const float from = w->s.bilinear ? u - 0.5f : u;
	const int64_t cut = (int64_t)from, below = cut - ((float)cut > from); /* floor */
	struct sampling_along along = {.way = from - (float)below};

	for (int i = 0; i < 2; i++) {
		along.index[i] = index_in(w->s.fill, below + i, w->s.size[way]);
		if (along.index[i] != OUTSIDE)
			along.index[i] += map->first[way];
	}
	return along;
}

KERNEL_INLINE struct sampling_tap tap_of(const struct sampling *w, const struct sampling_along *row,
					 const struct sampling_along *column)
{
	struct sampling_tap tap = {.count = w->s.bilinear ? CORNERS : 1,
				   .way = {row->way, column->way}};

	for (int i = 0; i < tap.count; i++) {
		const int64_t y = row->index[i / 2], x = column->index[i % 2];

		tap.at[i] = y == OUTSIDE || x == OUTSIDE ? OUTSIDE
							 : (y * w->in[LAYER_X] + x) * w->channels;
	}
	return tap;
}

/* Channel c of corner i is from[i][c step[i]]. */
KERNEL_INLINE void forward_channels(const struct sampling_tap *tap,
				    const float *const from[CORNERS], const int64_t step[CORNERS],
				    int64_t channels, float *restrict y)
{
	const float down = tap->way[LAYER_Y], right = tap->way[LAYER_X];

	for (int64_t c = 0; tap->count == 1 && c < channels; c++)
		y[c] = from[0][c * step[0]];
	for (int64_t c = 0; tap->count == CORNERS && c < channels; c++) {
		const float left = from[0][c * step[0]], low = from[2][c * step[2]];
		const float top = left + (from[1][c * step[1]] - left) * right;
		const float bottom = low + (from[3][c * step[3]] - low) * right;

		y[c] = top + (bottom - top) * down;
	}
}

KERNEL_INLINE void forward_pixel(const struct sampling *w, const struct sampling_tap *tap,
				 const float *x, float *y)
{
	static const int64_t inside[CORNERS] = {1, 1, 1, 1};
	const float *from[CORNERS];
	int64_t step[CORNERS];
	bool all = true;

	/* Outside the window all channels have one value. */
	for (int i = 0; i < tap->count; i++) {
		step[i] = tap->at[i] != OUTSIDE;
		from[i] = step[i] ? x + tap->at[i] : &w->s.fill_value;
		all = all && step[i];
	}
	if (all)
		forward_channels(tap, from, inside, w->channels, y);
	else
		forward_channels(tap, from, step, w->channels, y);
}

KERNEL_INLINE void backward_pixel(const struct sampling *w, const struct sampling_tap *tap,
				  const float *restrict dy, float *restrict dx)
{
	const float down = tap->way[LAYER_Y], right = tap->way[LAYER_X];

	for (int i = 0; i < tap->count; i++) {
		const float weight = tap->count == 1 ? 1.0f
						     : (i / 2 ? down : 1.0f - down) *
							       (i % 2 ? right : 1.0f - right);
		float *to = dx + tap->at[i];

		if (tap->at[i] == OUTSIDE)
			continue;
		for (int64_t c = 0; c < w->channels; c++)
			to[c] += weight * dy[c];
	}
}

/* Compute row @y of the output from an item's input, or add its gradient back. */
KERNEL_INLINE void each_pixel(const struct sampling *w, const struct sampling_map *map, int64_t y,
			      bool forward, const float *from, float *to)
{
	const bool rotated = map->at[LAYER_Y][LAYER_X] != 0.0f;
	struct sampling_along row = along_of(w, map, LAYER_Y, y, 0);

	for (int64_t x = 0; x < w->out[LAYER_X]; x++) {
		const struct sampling_along column = along_of(w, map, LAYER_X, y, x);
		struct sampling_tap tap;

		if (rotated)
			row = along_of(w, map, LAYER_Y, y, x);
		tap = tap_of(w, &row, &column);
		if (forward)
			forward_pixel(w, &tap, from, to + x * w->channels);
		else
			backward_pixel(w, &tap, from + x * w->channels, to);
	}
}

KERNEL_CLONES static void forward_row(const struct sampling *w, const struct sampling_map *map,
				      int64_t y, const float *from, float *to)
{
	each_pixel(w, map, y, true, from, to);
}

KERNEL_CLONES static void backward_row(const struct sampling *w, const struct sampling_map *map,
				       int64_t y, const float *from, float *to)
{
	each_pixel(w, map, y, false, from, to);
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* Rows of the output, counted over the items. */
static void forward_body(const void *context, int64_t first, int64_t rows)
{
	const struct sampling *w = context;
	const int64_t width = w->out[LAYER_X] * w->channels;
	const int64_t each = w->in[LAYER_Y] * w->in[LAYER_X] * w->channels;
	struct sampling_map map = map_of(w, first / w->out[LAYER_Y]);

	for (int64_t row = first; row < first + rows; row++) {
		const int64_t item = row / w->out[LAYER_Y], at = row % w->out[LAYER_Y];
		const float *x = w->pass->inputs[0] + item * each;
		float *y = w->pass->output + row * width;

		if (row > first && !at)
			map = map_of(w, item);
		forward_row(w, &map, at, x, y);
	}
}

static void backward_body(const void *context, int64_t first, int64_t items)
{
	const struct sampling *w = context;
	const int64_t in = w->in[LAYER_Y] * w->in[LAYER_X] * w->channels;
	const bool adds = compute__adds(w->pass, 0);
	const float *dy =
		w->pass->grad_output + first * w->out[LAYER_Y] * w->out[LAYER_X] * w->channels;

	for (int64_t item = first; item < first + items; item++) {
		const struct sampling_map map = map_of(w, item);
		float *dx = w->pass->grad_inputs[0] + item * in;

		if (!adds)
			memset(dx, 0, (size_t)in * sizeof(*dx));
		for (int64_t y = 0; y < w->out[LAYER_Y]; y++, dy += w->out[LAYER_X] * w->channels)
			backward_row(w, &map, y, dy, dx);
	}
}

static void sampling_forward(const struct layer_pass *pass)
{
	struct sampling w;

	if (sampling_begin(&w, pass))
		compute__share_output(pass, pass->batch * w.out[LAYER_Y],
				      w.out[LAYER_X] * w.channels, forward_body, &w);
	else
		compute__identity(pass);
}

static void sampling_backward(const struct layer_pass *pass)
{
	struct sampling w;

	if (sampling_begin(&w, pass))
		compute__share(pass->pool, pass->batch, model_shape_count(&pass->layer->output),
			       backward_body, &w);
	else
		compute__identity_grad(pass);
}

const struct compute_ops compute_sampling = {
	.forward = sampling_forward,
	.backward = sampling_backward,
	.adds = true,
};
