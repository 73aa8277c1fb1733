/*
 * Synthetic digits that resemble handwriting. Each digit has a few styles, each style a few
 * strokes, each stroke points that a smooth curve passes through. To draw an image: choose a style,
 * jitter its points, distort the whole elastically, slant, rotate and scale it, and draw it with a
 * pen of random width and ink.
 *
 * The set is made on first use and stored as IDX files in the XDG cache. The files are written one
 * by one, each atomically, the checksums last: one for each block of images, so that a limited set
 * reads and checks no more than it needs. If a checksum does not match, the set is made again. A
 * limited set without a cache is drawn and not stored, since it is small.
 *
 * Threading: a pool draws the images, in slices that depend only on the images' numbers. An image
 * depends on (part, number) alone. The code uses only operations that IEEE 754 rounds exactly, and
 * no library function except sqrtf: the same bytes on every machine.
 */
#include "trainer/data/dataset_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/pool.h"
#include "common/rng.h"

#define SIDE          DATASET_DIGIT_SIDE
#define DIGIT_SEED    20240229u
#define STROKE_POINTS 12
#define STYLE_STROKES 4
#define CURVE_STEPS   6
#define PATH_POINTS   (STYLE_STROKES * STROKE_POINTS * CURVE_STEPS)
#define DIGITS_SLICE  500

/* ---- drawing --------------------------------------------------------------------------------- */

struct digit_point {
	float x, y;
};

/* Points in a box from (0, 0), top left, to (1, 1). A corner is where one stroke ends and the next
 * begins. */
struct digit_stroke {
	int count;
	struct digit_point points[STROKE_POINTS];
};

struct digit_style {
	uint8_t digit;
	uint8_t weight; /* relative frequency among the digit's styles */
	int strokes;
	struct digit_stroke stroke[STYLE_STROKES];
};

/* clang-format off */
static const struct digit_style digit_styles[] = {
	{0, 3, 1, {{9, {{.5f, 0}, {.2f, .12f}, {.06f, .5f}, {.2f, .88f}, {.5f, 1}, {.8f, .88f}, {.94f, .5f}, {.8f, .12f}, {.5f, 0}}}}},
	{0, 2, 1, {{9, {{.62f, .06f}, {.28f, .1f}, {.08f, .5f}, {.22f, .92f}, {.55f, 1}, {.86f, .8f}, {.92f, .4f}, {.74f, .08f}, {.44f, .02f}}}}},
	{0, 1, 1, {{10, {{.8f, .1f}, {.45f, 0}, {.12f, .25f}, {.06f, .65f}, {.3f, .98f}, {.65f, .95f}, {.92f, .6f}, {.85f, .2f}, {.6f, .04f}, {.4f, .16f}}}}},

	{1, 4, 1, {{3, {{.52f, 0}, {.5f, .5f}, {.48f, 1}}}}},
	{1, 2, 2, {{2, {{.34f, .2f}, {.52f, 0}}}, {3, {{.52f, 0}, {.51f, .5f}, {.5f, 1}}}}},
	{1, 1, 3, {{2, {{.32f, .2f}, {.52f, 0}}}, {2, {{.52f, 0}, {.5f, 1}}}, {2, {{.3f, 1}, {.72f, .98f}}}}},

	{2, 3, 2, {{7, {{.12f, .22f}, {.32f, .03f}, {.66f, .03f}, {.84f, .26f}, {.68f, .54f}, {.36f, .82f}, {.08f, 1}}}, {3, {{.08f, 1}, {.5f, .95f}, {.94f, .98f}}}}},
	{2, 2, 1, {{11, {{.14f, .2f}, {.38f, .01f}, {.72f, .08f}, {.8f, .32f}, {.6f, .64f}, {.3f, .92f}, {.1f, .96f}, {.08f, .82f}, {.26f, .78f}, {.58f, .95f}, {.94f, .9f}}}}},
	{2, 1, 2, {{6, {{.1f, .12f}, {.45f, 0}, {.8f, .14f}, {.78f, .44f}, {.45f, .76f}, {.06f, .98f}}}, {2, {{.06f, .98f}, {.9f, 1}}}}},

	{3, 3, 2, {{6, {{.14f, .14f}, {.4f, .01f}, {.74f, .08f}, {.8f, .28f}, {.62f, .44f}, {.36f, .48f}}}, {6, {{.36f, .48f}, {.7f, .53f}, {.88f, .74f}, {.7f, .95f}, {.4f, 1}, {.1f, .88f}}}}},
	{3, 1, 3, {{3, {{.12f, .04f}, {.5f, .02f}, {.84f, .03f}}}, {2, {{.84f, .03f}, {.42f, .42f}}}, {6, {{.42f, .42f}, {.74f, .48f}, {.88f, .7f}, {.7f, .94f}, {.36f, 1}, {.08f, .88f}}}}},
	{3, 2, 1, {{11, {{.1f, .18f}, {.4f, 0}, {.74f, .14f}, {.7f, .36f}, {.44f, .48f}, {.42f, .52f}, {.7f, .56f}, {.84f, .76f}, {.66f, .96f}, {.34f, 1}, {.1f, .9f}}}}},

	{4, 3, 2, {{6, {{.2f, .02f}, {.14f, .3f}, {.12f, .52f}, {.3f, .58f}, {.6f, .56f}, {.92f, .5f}}}, {3, {{.78f, .02f}, {.72f, .5f}, {.68f, 1}}}}},
	{4, 2, 3, {{3, {{.66f, 0}, {.38f, .32f}, {.06f, .62f}}}, {2, {{.06f, .62f}, {.96f, .62f}}}, {3, {{.68f, .02f}, {.67f, .5f}, {.66f, 1}}}}},
	{4, 1, 2, {{7, {{.3f, 0}, {.16f, .24f}, {.1f, .48f}, {.28f, .54f}, {.56f, .44f}, {.8f, .16f}, {.84f, .06f}}}, {3, {{.84f, .06f}, {.74f, .52f}, {.7f, 1}}}}},

	{5, 3, 3, {{3, {{.86f, .02f}, {.55f, .02f}, {.26f, .04f}}}, {2, {{.26f, .04f}, {.18f, .42f}}}, {7, {{.18f, .42f}, {.46f, .34f}, {.76f, .44f}, {.86f, .68f}, {.68f, .92f}, {.38f, 1}, {.08f, .9f}}}}},
	{5, 2, 2, {{8, {{.32f, .06f}, {.22f, .3f}, {.24f, .42f}, {.5f, .42f}, {.76f, .56f}, {.78f, .8f}, {.5f, .98f}, {.1f, .94f}}}, {2, {{.32f, .06f}, {.9f, 0}}}}},

	{6, 3, 1, {{10, {{.66f, 0}, {.38f, .18f}, {.18f, .46f}, {.12f, .74f}, {.3f, .97f}, {.6f, .98f}, {.82f, .8f}, {.74f, .58f}, {.46f, .54f}, {.16f, .72f}}}}},
	{6, 2, 1, {{10, {{.46f, 0}, {.26f, .26f}, {.16f, .56f}, {.2f, .86f}, {.46f, 1}, {.78f, .9f}, {.88f, .7f}, {.66f, .54f}, {.36f, .62f}, {.22f, .8f}}}}},
	{6, 1, 1, {{9, {{.86f, .06f}, {.5f, .1f}, {.22f, .4f}, {.14f, .76f}, {.4f, 1}, {.72f, .9f}, {.72f, .66f}, {.42f, .6f}, {.2f, .8f}}}}},

	{7, 4, 2, {{3, {{.08f, .08f}, {.45f, .03f}, {.88f, .04f}}}, {4, {{.88f, .04f}, {.68f, .36f}, {.5f, .68f}, {.4f, 1}}}}},
	{7, 2, 3, {{3, {{.1f, .06f}, {.5f, .03f}, {.86f, .05f}}}, {4, {{.86f, .05f}, {.66f, .36f}, {.48f, .68f}, {.36f, 1}}}, {2, {{.3f, .54f}, {.8f, .5f}}}}},
	{7, 1, 3, {{2, {{.1f, .26f}, {.12f, .04f}}}, {3, {{.12f, .04f}, {.5f, .08f}, {.88f, .02f}}}, {4, {{.88f, .02f}, {.7f, .3f}, {.52f, .62f}, {.5f, 1}}}}},

	{8, 3, 1, {{12, {{.76f, .14f}, {.48f, 0}, {.2f, .16f}, {.34f, .4f}, {.68f, .6f}, {.8f, .82f}, {.5f, 1}, {.18f, .84f}, {.3f, .6f}, {.62f, .42f}, {.82f, .2f}, {.7f, .06f}}}}},
	{8, 2, 2, {{9, {{.5f, 0}, {.26f, .08f}, {.2f, .26f}, {.34f, .44f}, {.54f, .48f}, {.74f, .38f}, {.8f, .2f}, {.68f, .04f}, {.5f, 0}}}, {9, {{.52f, .48f}, {.24f, .58f}, {.14f, .78f}, {.3f, .96f}, {.52f, 1}, {.78f, .92f}, {.86f, .74f}, {.72f, .54f}, {.52f, .48f}}}}},
	{8, 1, 1, {{12, {{.6f, .48f}, {.28f, .34f}, {.24f, .1f}, {.54f, 0}, {.8f, .14f}, {.68f, .4f}, {.34f, .6f}, {.14f, .82f}, {.42f, 1}, {.78f, .92f}, {.82f, .68f}, {.52f, .46f}}}}},

	{9, 3, 2, {{8, {{.8f, .14f}, {.5f, 0}, {.2f, .12f}, {.14f, .34f}, {.34f, .5f}, {.62f, .44f}, {.8f, .24f}, {.82f, .1f}}}, {4, {{.82f, .1f}, {.8f, .42f}, {.74f, .72f}, {.68f, 1}}}}},
	{9, 2, 2, {{8, {{.82f, .2f}, {.56f, .01f}, {.24f, .1f}, {.14f, .32f}, {.32f, .48f}, {.62f, .44f}, {.82f, .24f}, {.84f, .16f}}}, {5, {{.84f, .16f}, {.84f, .5f}, {.72f, .82f}, {.46f, 1}, {.2f, .94f}}}}},
	{9, 1, 1, {{10, {{.78f, .16f}, {.46f, .02f}, {.16f, .22f}, {.26f, .48f}, {.58f, .44f}, {.78f, .16f}, {.76f, .34f}, {.66f, .62f}, {.52f, .84f}, {.4f, 1}}}}},
};
/* clang-format on */

/* Random parameters of one image. */
struct digit_hand {
	struct rng rng;
	float wave[3][4];    /* of the distortion: direction x, y, phase in turns, amplitude */
	float across[3];     /* the direction in which each wave displaces, in turns */
	float turn[2][2];    /* slant, rotation and proportions */
	float radius, swing; /* of the pen, pixels; relative variation along a stroke */
	float edge, ink;
};

struct digit_path {
	int count;
	struct digit_point point[PATH_POINTS];
	bool begins[PATH_POINTS]; /* starts a stroke: no line from the previous point */
};

/* ---- random numbers and angles --------------------------------------------------------------- */

static float digit_between(struct rng *rng, float least, float most)
{
	return least + (most - least) * rng_uniform(rng);
}

/* Approximately normal, standard deviation 1, within 3.5: the sum of four uniforms. */
static float digit_normal(struct rng *rng)
{
	float sum = rng_uniform(rng);

	sum += rng_uniform(rng);
	sum += rng_uniform(rng);
	sum += rng_uniform(rng);
	return (sum - 2.0f) * 1.7320508f;
}

/* Sine of @turns (1 is the whole circle) by Bhaskara's approximation: error below 0.002, the same
 * bits on every machine. */
static float digit_sin(float turns)
{
	float sign = 1.0f, x, p;

	turns -= floorf(turns);
	if (turns >= 0.5f) {
		turns -= 0.5f;
		sign = -1.0f;
	}
	x = turns * 2.0f;
	p = x * (1.0f - x);
	return sign * 16.0f * p / (5.0f - 4.0f * p);
}

static float digit_cos(float turns)
{
	return digit_sin(turns + 0.25f);
}

/* ---- parameters of an image ------------------------------------------------------------------ */

static void digit_hand_init(struct digit_hand *hand)
{
	struct rng *rng = &hand->rng;
	float slant = 0.12f + 0.17f * digit_normal(rng);
	float angle = 0.022f * digit_normal(rng);
	float wide = digit_between(rng, 0.5f, 0.95f);
	float c = digit_cos(angle), s = digit_sin(angle);

	for (int i = 0; i < 3; i++) {
		hand->wave[i][0] = digit_between(rng, -1.1f, 1.1f);
		hand->wave[i][1] = digit_between(rng, -1.1f, 1.1f);
		hand->wave[i][2] = rng_uniform(rng);
		hand->wave[i][3] = 0.045f * digit_normal(rng);
		hand->across[i] = rng_uniform(rng);
	}
	/* Rotation x slant x width. */
	hand->turn[0][0] = c * wide;
	hand->turn[0][1] = -c * slant - s;
	hand->turn[1][0] = s * wide;
	hand->turn[1][1] = c - s * slant;
	hand->radius = digit_between(rng, 0.85f, 1.75f);
	hand->swing = digit_between(rng, 0.0f, 0.3f);
	hand->edge = digit_between(rng, 0.7f, 1.2f);
	hand->ink = digit_between(rng, 0.8f, 1.0f);
}

static const struct digit_style *digit_pick_style(struct rng *rng, int digit)
{
	uint32_t weights = 0, left;

	for (size_t i = 0; i < ARRAY_LEN(digit_styles); i++)
		if (digit_styles[i].digit == digit)
			weights += digit_styles[i].weight;
	left = rng_below(rng, weights);
	for (size_t i = 0; i < ARRAY_LEN(digit_styles); i++) {
		if (digit_styles[i].digit != digit)
			continue;
		if (left < digit_styles[i].weight)
			return &digit_styles[i];
		left -= digit_styles[i].weight;
	}
	assert(0);
	return &digit_styles[0];
}

/* Distort, then slant, rotate and stretch. */
static struct digit_point digit_warp(const struct digit_hand *hand, struct digit_point p)
{
	float x = p.x, y = p.y;

	for (int i = 0; i < 3; i++) {
		float at = hand->wave[i][0] * p.x + hand->wave[i][1] * p.y + hand->wave[i][2];
		float push = hand->wave[i][3] * digit_sin(at);

		x += push * digit_cos(hand->across[i]);
		y += push * digit_sin(hand->across[i]);
	}
	x -= 0.5f;
	y -= 0.5f;
	return (struct digit_point){hand->turn[0][0] * x + hand->turn[0][1] * y,
				    hand->turn[1][0] * x + hand->turn[1][1] * y};
}

/* ---- the path -------------------------------------------------------------------------------- */

/* Catmull-Rom spline from b to c; a precedes them, d follows. */
static float digit_curve(float a, float b, float c, float d, float t)
{
	float u = t * t, v = u * t;

	return 0.5f * (2.0f * b + (c - a) * t + (2.0f * a - 5.0f * b + 4.0f * c - d) * u +
		       (3.0f * (b - c) + d - a) * v);
}

static void digit_add_stroke(struct digit_path *path, const struct digit_hand *hand,
			     const struct digit_point *points, int count)
{
	for (int i = 0; i < count; i++) {
		const struct digit_point *b = &points[i], *a = i > 0 ? b - 1 : b;
		const struct digit_point *c = i + 1 < count ? b + 1 : b;
		const struct digit_point *d = i + 2 < count ? b + 2 : c;
		int steps = i + 1 < count ? CURVE_STEPS : 1;

		for (int s = 0; s < steps; s++) {
			float t = (float)s / CURVE_STEPS;
			struct digit_point p = {digit_curve(a->x, b->x, c->x, d->x, t),
						digit_curve(a->y, b->y, c->y, d->y, t)};

			assert(path->count < PATH_POINTS);
			path->begins[path->count] = !i && !s;
			path->point[path->count++] = digit_warp(hand, p);
		}
	}
}

/* Trace the style's strokes with jittered points; strokes that touch stay connected. */
static void digit_trace(struct digit_path *path, struct digit_hand *hand,
			const struct digit_style *style)
{
	struct digit_point end = {0, 0}, moved = {0, 0}; /* of the previous stroke */

	for (int s = 0; s < style->strokes; s++) {
		const struct digit_stroke *stroke = &style->stroke[s];
		struct digit_point points[STROKE_POINTS];

		for (int i = 0; i < stroke->count; i++) {
			points[i] = stroke->points[i];
			points[i].x += 0.028f * digit_normal(&hand->rng);
			points[i].y += 0.028f * digit_normal(&hand->rng);
		}
		if (s && stroke->points[0].x == end.x && stroke->points[0].y == end.y)
			points[0] = moved;
		end = stroke->points[stroke->count - 1];
		moved = points[stroke->count - 1];
		digit_add_stroke(path, hand, points, stroke->count);
	}
}

/* Scale the path to the size of MNIST's digits (20 of 28 pixels) and place it near the center. */
static void digit_center(struct digit_path *path, struct digit_hand *hand)
{
	struct digit_point least = path->point[0], most = least;
	float wide, high, scale, size, dx, dy;

	for (int i = 1; i < path->count; i++) {
		least.x = fminf(least.x, path->point[i].x);
		least.y = fminf(least.y, path->point[i].y);
		most.x = fmaxf(most.x, path->point[i].x);
		most.y = fmaxf(most.y, path->point[i].y);
	}
	wide = most.x - least.x;
	high = most.y - least.y;
	size = digit_between(&hand->rng, 18.0f, 20.5f) - 2.0f * hand->radius;
	scale = size / fmaxf(fmaxf(wide, high), 0.1f);
	dx = SIDE / 2.0f + 0.55f * digit_normal(&hand->rng);
	dy = SIDE / 2.0f + 0.55f * digit_normal(&hand->rng);
	for (int i = 0; i < path->count; i++) {
		path->point[i].x = (path->point[i].x - least.x - wide / 2.0f) * scale + dx;
		path->point[i].y = (path->point[i].y - least.y - high / 2.0f) * scale + dy;
	}
}

/* ---- the pen --------------------------------------------------------------------------------- */

static int digit_clamp(float v)
{
	return v < 0.0f ? 0 : v > SIDE ? SIDE : (int)v;
}

/* Draw the line from @a to @b with half width @radius: raise @cover to the distance inside the
 * line's outer edge, in pixels. */
static void digit_draw_line(float cover[SIDE][SIDE], struct digit_point a, struct digit_point b,
			    float radius, float edge)
{
	float reach = radius + edge, dx = b.x - a.x, dy = b.y - a.y;
	float length = dx * dx + dy * dy;
	int x0 = digit_clamp(fminf(a.x, b.x) - reach),
	    x1 = digit_clamp(fmaxf(a.x, b.x) + reach + 1);
	int y0 = digit_clamp(fminf(a.y, b.y) - reach),
	    y1 = digit_clamp(fmaxf(a.y, b.y) + reach + 1);

	for (int y = y0; y < y1; y++) {
		for (int x = x0; x < x1; x++) {
			float px = (float)x + 0.5f - a.x, py = (float)y + 0.5f - a.y;
			float t = length > 0.0f ? (px * dx + py * dy) / length : 0.0f;
			float inside;

			t = fminf(fmaxf(t, 0.0f), 1.0f);
			px -= t * dx;
			py -= t * dy;
			inside = reach - sqrtf(px * px + py * py);
			if (inside > cover[y][x])
				cover[y][x] = inside;
		}
	}
}

static void digit_draw(const struct digit_path *path, const struct digit_hand *hand,
		       float cover[SIDE][SIDE])
{
	memset(cover, 0, sizeof(float) * SIDE * SIDE);
	for (int i = 0; i < path->count; i++) {
		/* The pen's pressure varies along its path. */
		float radius =
			hand->radius *
			(1.0f + hand->swing * digit_sin(hand->wave[0][2] + 0.03f * (float)i));

		if (path->begins[i])
			continue;
		digit_draw_line(cover, path->point[i - 1], path->point[i], radius, hand->edge);
	}
}

static void digit_ink(struct digit_hand *hand, float cover[SIDE][SIDE],
		      uint8_t out[DATASET_DIGIT_BYTES])
{
	for (int y = 0; y < SIDE; y++) {
		for (int x = 0; x < SIDE; x++) {
			float depth = fminf(cover[y][x] / (2.0f * hand->edge), 1.0f);
			float value = 255.0f * hand->ink * depth;

			if (depth > 0.0f)
				value += 14.0f * digit_normal(&hand->rng);
			out[y * SIDE + x] = (uint8_t)(value < 0.0f     ? 0.0f
						      : value > 255.0f ? 255.0f
								       : value);
		}
	}
}

/* Draw image @number of @part (0: training, 1: test); return its label. Thread safe and
 * deterministic. */
static uint8_t digits_draw(int part, uint32_t number, uint8_t out[DATASET_DIGIT_BYTES])
{
	struct digit_hand hand;
	struct digit_path path = {0};
	float cover[SIDE][SIDE];
	int digit;

	rng_init(&hand.rng, DIGIT_SEED, (uint32_t)part, number, 0);
	digit = (int)rng_below(&hand.rng, 10);
	digit_hand_init(&hand);
	digit_trace(&path, &hand, digit_pick_style(&hand.rng, digit));
	digit_center(&path, &hand);
	digit_draw(&path, &hand, cover);
	digit_ink(&hand, cover, out);
	return (uint8_t)digit;
}

/* ---- the set --------------------------------------------------------------------------------- */

/* Increment with every change of the images, so that an old cache is not used for the new set. */
#define DIGITS_FOLDER "synthetic-digits-2"
#define DIGITS_SOURCE "synthetic digits"
#define DIGITS_HEADER (4 + 4 * (DATASET_RANK + 1)) /* bytes of an IDX header, at most */
#define DIGITS_BLOCK  1000 /* images of a checksum; it divides the counts of both parts */
#define DIGITS_LINE   17   /* characters of a checksum's line */
#define DIGITS_LINES  ((60000 + 10000) / DIGITS_BLOCK)

static const struct digits_part {
	int64_t count;
	const char *images, *labels;
} digits_parts[2] = {
	{60000, "train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
	{10000, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"},
};

struct digits {
	struct dataset_array images[2], labels[2];
};

/* ---- making ---------------------------------------------------------------------------------- */

struct digits_work {
	int part;
	int64_t count;
	uint8_t *pixels, *labels;
};

static void digits_slice(void *context, unsigned slice)
{
	const struct digits_work *work = context;
	int64_t first = (int64_t)slice * DIGITS_SLICE, end = first + DIGITS_SLICE;

	for (int64_t i = first; i < end && i < work->count; i++)
		work->labels[i] = digits_draw(work->part, (uint32_t)i,
					      work->pixels + i * DATASET_DIGIT_BYTES);
}

static struct dataset_array digits_images(int64_t count, uint8_t *pixels)
{
	return (struct dataset_array){
		.ndim = 3, .dim = {count, DATASET_DIGIT_SIDE, DATASET_DIGIT_SIDE}, .bytes = pixels};
}

static struct dataset_array digits_labels(int64_t count, uint8_t *labels)
{
	return (struct dataset_array){.ndim = 1, .dim = {count}, .bytes = labels};
}

static void digits_make(struct digits *digits, int64_t limit, struct err *err)
{
	unsigned processors = pool_processors();
	struct pool *pool = NULL;

	/* A pool is optional: without one, drawing only takes longer. */
	if (processors > 1)
		pool_new(&pool, processors - 1, NULL);
	for (int part = 0; part < 2 && !err_stuck(err); part++) {
		int64_t count = digits_parts[part].count;
		struct digits_work work = {.part = part};

		if (limit > 0 && limit < count)
			count = limit;
		work.count = count;
		work.pixels = mem_alloc((size_t)count * DATASET_DIGIT_BYTES);
		work.labels = mem_alloc((size_t)count);
		digits->images[part] = digits_images(count, work.pixels);
		digits->labels[part] = digits_labels(count, work.labels);
		if (work.pixels && work.labels)
			pool_run(pool, digits_slice, &work,
				 (unsigned)((count + DIGITS_SLICE - 1) / DIGITS_SLICE));
		else
			err_nomem(err);
	}
	pool_free(pool);
}

/* ---- the cache ------------------------------------------------------------------------------- */

/* Format the checksums of @part's blocks of images with their labels, a line for each. */
static void digits_sums(const struct digits *digits, int part, char *out)
{
	const int64_t count = digits->labels[part].dim[0];

	for (int64_t first = 0; first < count; first += DIGITS_BLOCK, out += DIGITS_LINE) {
		const size_t items = (size_t)min(count - first, DIGITS_BLOCK);
		const uint64_t images =
			XXH3_64bits(digits->images[part].bytes + first * DATASET_DIGIT_BYTES,
				    items * DATASET_DIGIT_BYTES);

		snprintf(out, DIGITS_LINE + 1, "%016" PRIx64 "\n",
			 XXH3_64bits_withSeed(digits->labels[part].bytes + first, items, images));
	}
}

/* Write the IDX header of unsigned bytes in @array's shape; return its length. */
static size_t digits_header(const struct dataset_array *array, uint8_t out[DIGITS_HEADER])
{
	memcpy(out, (const uint8_t[]){0, 0, 0x08, (uint8_t)array->ndim}, 4);
	for (int i = 0; i < array->ndim; i++)
		for (int b = 0; b < 4; b++)
			out[4 + 4 * i + b] = (uint8_t)(array->dim[i] >> (24 - 8 * b));
	return 4 + 4 * (size_t)array->ndim;
}

/* Read the first @count items of @array, which has the shape of the whole file; return false if the
 * file is not as written. */
static bool digits_read_file(struct dataset_array *array, int64_t count, const char *folder,
			     const char *name)
{
	const size_t whole = dataset__array_count(array);
	uint8_t header[DIGITS_HEADER], found[DIGITS_HEADER];
	const size_t skipped = digits_header(array, header);
	char path[FS_PATH_SIZE];
	struct fs_reader reader;
	size_t size, got = 0;
	bool good;

	array->dim[0] = count;
	size = dataset__array_count(array);
	array->bytes = mem_alloc(size);
	if (!array->bytes || !fs_path(path, "%s/%s", folder, name) ||
	    fs_reader_open(&reader, path, NULL) != ST_OK)
		return false;
	good = reader.size == (int64_t)(skipped + whole) &&
	       fs_reader_read(&reader, found, skipped, &got, NULL) == ST_OK && got == skipped &&
	       !memcmp(found, header, skipped) &&
	       fs_reader_read(&reader, array->bytes, size, &got, NULL) == ST_OK && got == size;
	fs_reader_close(&reader);
	return good;
}

/* Read whole blocks, as many as @limit needs (0: all); return false if they are not as written. */
static bool digits_read(struct digits *digits, const char *folder, int64_t limit)
{
	char path[FS_PATH_SIZE], sums[DIGITS_LINES * DIGITS_LINE + 1], *text = NULL;
	size_t length = 0, line = 0;
	bool good = fs_path(path, "%s/xxh3", folder) &&
		    fs_read(path, sizeof(sums) - 1, &text, &length, NULL) == ST_OK &&
		    length == sizeof(sums) - 1;

	for (int part = 0; part < 2 && good; part++) {
		const struct digits_part *row = &digits_parts[part];
		const int64_t blocks =
			(min(limit > 0 ? limit : row->count, row->count) + DIGITS_BLOCK - 1) /
			DIGITS_BLOCK;

		digits->images[part] = digits_images(row->count, NULL);
		digits->labels[part] = digits_labels(row->count, NULL);
		good = digits_read_file(&digits->images[part], blocks * DIGITS_BLOCK, folder,
					row->images) &&
		       digits_read_file(&digits->labels[part], blocks * DIGITS_BLOCK, folder,
					row->labels);
		if (!good)
			break;
		digits_sums(digits, part, sums);
		good = !memcmp(sums, text + line * DIGITS_LINE, (size_t)blocks * DIGITS_LINE);
		line += (size_t)(row->count / DIGITS_BLOCK);
	}
	mem_free(text);
	for (int part = 0; part < 2 && !good; part++) {
		dataset__array_free(&digits->images[part]);
		dataset__array_free(&digits->labels[part]);
	}
	return good;
}

static enum status digits_write_file(const struct dataset_array *array, const char *folder,
				     const char *name, struct err *err)
{
	const size_t size = dataset__array_count(array);
	uint8_t header[DIGITS_HEADER], *bytes;
	size_t skipped = digits_header(array, header);
	char path[FS_PATH_SIZE];
	enum status status;

	if (!fs_path(path, "%s/%s", folder, name))
		return err_set(err, ST_INVALID, "%s: the path is too long", folder);
	bytes = mem_alloc(skipped + size);
	if (!bytes)
		return err_nomem(err);
	memcpy(bytes, header, skipped);
	memcpy(bytes + skipped, array->bytes, size);
	status = fs_write(path, bytes, skipped + size, err);
	mem_free(bytes);
	return status;
}

static enum status digits_write(const struct digits *digits, const char *folder, struct err *err)
{
	char path[FS_PATH_SIZE], sums[DIGITS_LINES * DIGITS_LINE + 1], *at = sums;
	enum status status;

	status = fs_make_dirs(folder, err);
	for (int part = 0; part < 2 && status == ST_OK; part++) {
		status = digits_write_file(&digits->images[part], folder, digits_parts[part].images,
					   err);
		if (status == ST_OK)
			status = digits_write_file(&digits->labels[part], folder,
						   digits_parts[part].labels, err);
	}
	if (status != ST_OK)
		return status;
	if (!fs_path(path, "%s/xxh3", folder))
		return err_set(err, ST_INVALID, "%s: the path is too long", folder);
	for (int part = 0; part < 2; part++, at += strlen(at))
		digits_sums(digits, part, at);
	return fs_write(path, sums, strlen(sums), err);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Read the cache, or make the set and cache it; @how receives what the notice says. */
static void digits_get(struct digits *digits, int64_t limit, char *how, size_t size,
		       struct err *err)
{
	char base[FS_PATH_SIZE], folder[FS_PATH_SIZE] = "";
	struct err why = {.text = "neither XDG_CACHE_HOME nor HOME is set"};

	if (fs_xdg(base, "XDG_CACHE_HOME", ".cache") &&
	    fs_path(folder, "%s/" DIGITS_FOLDER, base) && digits_read(digits, folder, limit)) {
		snprintf(how, size, "from %s", folder);
		return;
	}
	digits_make(digits, limit, err);
	if (err_stuck(err))
		return;
	if (limit > 0)
		snprintf(how, size, "made now");
	else if (*folder && digits_write(digits, folder, &why) == ST_OK)
		snprintf(how, size, "made now, kept in %s", folder);
	else
		snprintf(how, size, "made now, not kept: %s", why.text);
}

void dataset__digits_open(const struct dataset_opening *o)
{
	static const char *const names[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
	struct dataset_about about = dataset__about_images(o);
	char how[FS_PATH_SIZE + 64];
	struct digits digits = {0};

	about.source = DIGITS_SOURCE;
	about.names = names;
	digits_get(&digits, o->params->limit, how, sizeof(how), o->err);
	for (int part = 0; part < 2; part++)
		dataset__join(o->parts[part], &about, &digits.images[part], &digits.labels[part],
			      o->err);
	dataset__synthetic(o, "digits", how);
}
