/*
 * Layers whose output's pixels are sampled from the input's: struct layer_sampling has the
 * formulas.
 *
 * What an item draws is named by its place in the micro-batch: block i of the stream. It is drawn
 * again for the backward pass, where each pixel's gradient goes back to those that it was made of.
 * Slices of that are items: an input's gradient is summed by one thread, in the output's order.
 */
#include <string.h>

#include "common/elementary.h"
#include "common/rng.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/layers/compute_internal.h"

/* How an item is sampled: u = at[0] (y + 0.5) + at[1] (x + 0.5) + at[2], by way. */
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

/* False: the output is the input. */
static bool sampling_begin(struct sampling *w, const struct layer_pass *pass)
{
	const struct model_layer *layer = pass->layer;

	*w = (struct sampling){.pass = pass, .channels = layer_last_dim(&layer->output)};
	for (int way = 0; way < LAYER_WAYS; way++) {
		w->in[way] = layer_side(&layer->input, way);
		w->out[way] = layer_side(&layer->output, way);
	}
	if (!layer_sampling_now(layer, compute__varies(pass), &w->s))
		return false;
	rng_init(&w->stream, pass->seed, rng_stream(layer->name) ^ w->s.seed, pass->step,
		 pass->replica);
	return true;
}

/* Rows of @by around the middle of the window, and around that of the output. */
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

/* The map of @item. */
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

/* ---- a pixel --------------------------------------------------------------------------------- */

#define CORNERS 4
#define OUTSIDE (-1)

/* Where the pixels are that one of the output is made of, as floats of the item, and how far it is
 * from the first row to the second, and from the first column. */
struct sampling_tap {
	int count; /* 1 or CORNERS: top left, top right, bottom left, bottom right */
	int64_t at[CORNERS];
	float way[LAYER_WAYS];
};

/* Index @i of a window of @size, as what lies outside is found. */
static int64_t index_in(enum layer_fill fill, int64_t i, int64_t size)
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

static struct sampling_tap tap_of(const struct sampling *w, const struct sampling_map *map,
				  int64_t y, int64_t x)
{
	struct sampling_tap tap = {.count = w->s.bilinear ? CORNERS : 1};
	int64_t index[LAYER_WAYS][2];

	for (int way = 0; way < LAYER_WAYS; way++) {
		const float *at = map->at[way];
		const float u = at[0] * ((float)y + 0.5f) + at[1] * ((float)x + 0.5f) + at[2];
		const float from = w->s.bilinear ? u - 0.5f : u;
		const int64_t cut = (int64_t)from, below = cut - ((float)cut > from); /* floor */

		tap.way[way] = from - (float)below;
		for (int i = 0; i < 2; i++) {
			index[way][i] = index_in(w->s.fill, below + i, w->s.size[way]);
			if (index[way][i] != OUTSIDE)
				index[way][i] += map->first[way];
		}
	}
	for (int i = 0; i < tap.count; i++) {
		const int64_t row = index[LAYER_Y][i / 2], column = index[LAYER_X][i % 2];

		tap.at[i] = row == OUTSIDE || column == OUTSIDE
				    ? OUTSIDE
				    : (row * w->in[LAYER_X] + column) * w->channels;
	}
	return tap;
}

static inline float tap_value(const struct sampling *w, const float *x, int64_t at, int64_t channel)
{
	return at == OUTSIDE ? w->s.fill_value : x[at + channel];
}

static void forward_pixel(const struct sampling *w, const struct sampling_tap *tap, const float *x,
			  float *y)
{
	if (tap->count == 1) {
		for (int64_t c = 0; c < w->channels; c++)
			y[c] = tap_value(w, x, tap->at[0], c);
		return;
	}
	for (int64_t c = 0; c < w->channels; c++) {
		float row[2];

		for (int i = 0; i < 2; i++) {
			const float left = tap_value(w, x, tap->at[2 * i], c);
			const float right = tap_value(w, x, tap->at[2 * i + 1], c);

			row[i] = left + (right - left) * tap->way[LAYER_X];
		}
		y[c] = row[0] + (row[1] - row[0]) * tap->way[LAYER_Y];
	}
}

static void backward_pixel(const struct sampling *w, const struct sampling_tap *tap,
			   const float *dy, float *dx)
{
	for (int i = 0; i < tap->count; i++) {
		const float down = tap->way[LAYER_Y], right = tap->way[LAYER_X];
		const float weight = tap->count == 1 ? 1.0f
						     : (i / 2 ? down : 1.0f - down) *
							       (i % 2 ? right : 1.0f - right);

		for (int64_t c = 0; tap->at[i] != OUTSIDE && c < w->channels; c++)
			dx[tap->at[i] + c] += weight * dy[c];
	}
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* Rows of the output, of one item after the other. */
static void forward_body(const void *context, int64_t first, int64_t rows)
{
	const struct sampling *w = context;
	const int64_t width = w->out[LAYER_X] * w->channels;
	const int64_t each = w->in[LAYER_Y] * w->in[LAYER_X] * w->channels;
	struct sampling_map map;

	for (int64_t row = first; row < first + rows; row++) {
		const int64_t item = row / w->out[LAYER_Y], at = row % w->out[LAYER_Y];
		const float *x = w->pass->inputs[0] + item * each;
		float *y = w->pass->output + row * width;

		if (row == first || !at)
			map = map_of(w, item);
		for (int64_t column = 0; column < w->out[LAYER_X]; column++) {
			const struct sampling_tap tap = tap_of(w, &map, at, column);

			forward_pixel(w, &tap, x, y + column * w->channels);
		}
	}
}

static void backward_body(const void *context, int64_t first, int64_t items)
{
	const struct sampling *w = context;
	const int64_t in = w->in[LAYER_Y] * w->in[LAYER_X] * w->channels;
	const bool adds = w->pass->add && w->pass->add[0];
	const float *dy =
		w->pass->grad_output + first * w->out[LAYER_Y] * w->out[LAYER_X] * w->channels;

	for (int64_t item = first; item < first + items; item++) {
		const struct sampling_map map = map_of(w, item);
		float *dx = w->pass->grad_inputs[0] + item * in;

		if (!adds)
			memset(dx, 0, (size_t)in * sizeof(*dx));
		for (int64_t y = 0; y < w->out[LAYER_Y]; y++)
			for (int64_t x = 0; x < w->out[LAYER_X]; x++) {
				const struct sampling_tap tap = tap_of(w, &map, y, x);

				backward_pixel(w, &tap, dy, dx);
				dy += w->channels;
			}
	}
}

/* What hands its gradient on, too. */
static void pass_on_body(const void *context, int64_t first, int64_t count)
{
	const struct layer_pass *pass = context;
	float *dx = pass->grad_inputs[0] + first;

	if (pass->add && pass->add[0])
		kernel_add(dx, pass->grad_output + first, (size_t)count);
	else
		memcpy(dx, pass->grad_output + first, (size_t)count * sizeof(*dx));
}

static void sampling_forward(const struct layer_pass *pass)
{
	struct sampling w;

	if (sampling_begin(&w, pass))
		compute__share_output(pass, pass->batch * w.out[LAYER_Y],
				      w.out[LAYER_X] * w.channels, forward_body, &w);
	else
		compute__activate(pass, MODEL_LINEAR, pass->inputs[0],
				  pass->batch * model_shape_count(&pass->layer->output), 1);
}

static void sampling_backward(const struct layer_pass *pass)
{
	struct sampling w;

	if (!pass->grad_inputs[0])
		return;
	if (sampling_begin(&w, pass))
		compute__share(pass->pool, pass->batch, model_shape_count(&pass->layer->output),
			       backward_body, &w);
	else
		compute__share(pass->pool, pass->batch * model_shape_count(&pass->layer->output), 1,
			       pass_on_body, pass);
}

const struct compute_ops compute_sampling = {
	.forward = sampling_forward,
	.backward = sampling_backward,
	.adds = true,
};
