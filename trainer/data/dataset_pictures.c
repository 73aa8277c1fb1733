/*
 * Synthetic pictures as a substitute for CIFAR-10: 32x32 colour images of ten shapes, each with a
 * random size, position, slant and pair of colours, on a background with a gradient of brightness,
 * plus noise.
 *
 * They are drawn each time the set is opened, which is faster than reading as many bytes from a
 * disk; nothing is cached. Threading: a pool draws them, in slices that depend only on the images'
 * numbers. The code uses only operations that IEEE 754 rounds exactly: the same bytes on every
 * machine.
 */
#include "trainer/data/dataset_internal.h"

#include <math.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/pool.h"
#include "common/rng.h"
#include "trainer/kernels/kernel_clones.h"

#define SIDE           DATASET_CIFAR_SIDE
#define PIXELS         (SIDE * SIDE)
#define PICTURE_SEED   20240301u
#define PICTURE_SLICE  250
#define PICTURE_SOURCE "synthetic pictures"

static const int64_t picture_counts[2] = {50000, 10000};

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Distance of (u, v) from a shape centred at (0, 0), negative inside; sizes are about 1. */
static inline float shape_disc(float u, float v)
{
	return sqrtf(u * u + v * v) - 0.9f;
}

static inline float shape_ring(float u, float v)
{
	return fabsf(sqrtf(u * u + v * v) - 0.75f) - 0.2f;
}

static inline float shape_box(float u, float v, float half)
{
	float across = fabsf(u), along = fabsf(v);

	return max(across, along) - half;
}

static inline float shape_square(float u, float v)
{
	return shape_box(u, v, 0.8f);
}

static inline float shape_frame(float u, float v)
{
	return fabsf(shape_box(u, v, 0.7f)) - 0.18f;
}

static inline float shape_triangle(float u, float v)
{
	float foot = v - 0.7f, sides = 0.875f * fabsf(u) - 0.484375f * v - 0.5f;

	return max(foot, sides);
}

static inline float shape_cross(float u, float v)
{
	float across = shape_box(u * 0.3125f, v, 0.28125f);
	float along = shape_box(u, v * 0.3125f, 0.28125f);

	return min(across, along);
}

static inline float shape_moon(float u, float v)
{
	float disc = shape_disc(u, v), bite = u - 0.5f;

	bite = 0.75f - sqrtf(bite * bite + v * v);
	return max(disc, bite);
}

/* Signed distance from the nearest multiple of @period. */
static inline float shape_fold(float u, float period)
{
	return u - period * floorf(u / period + 0.5f);
}

static inline float shape_stripes(float u, float v)
{
	float box = shape_box(u, v, 0.95f), stripe = fabsf(shape_fold(u, 0.625f)) - 0.15625f;

	return max(box, stripe);
}

static inline float shape_checks(float u, float v)
{
	float box = shape_box(u, v, 0.95f);
	float check = (fabsf(shape_fold(u, 1.25f)) - 0.3125f) *
		      (fabsf(shape_fold(v, 1.25f)) - 0.3125f) * 4.0f;

	return max(box, check);
}

static inline float shape_dots(float u, float v)
{
	float box = shape_box(u, v, 1.0f), x = shape_fold(u, 0.75f), y = shape_fold(v, 0.75f);
	float dot = sqrtf(x * x + y * y) - 0.234375f;

	return max(box, dot);
}

/* ---- one picture ----------------------------------------------------------------------------- */

/* Random parameters of one picture. */
struct picture {
	float x, y, cosine, sine; /* the shape's centre, and its rotation divided by its radius */
	float sharpness;          /* pixels per unit: edges are one pixel wide */
	float shape[3], ground[3];
	float light_x, light_y; /* gradient of the background's brightness */
	uint32_t noise;
};

/* Compute the fraction of each pixel that the shape covers. */
#define COVER(shape)                                                                               \
	KERNEL_CLONES static void cover_##shape(const struct picture *picture,                     \
						float *restrict out)                               \
	{                                                                                          \
		for (int p = 0; p < PIXELS; p++) {                                                 \
			float x = (float)(p % SIDE) - picture->x;                                  \
			float y = (float)(p / SIDE) - picture->y;                                  \
			float u = x * picture->cosine + y * picture->sine;                         \
			float v = y * picture->cosine - x * picture->sine;                         \
			float cover = 0.5f - shape_##shape(u, v) * picture->sharpness;             \
                                                                                                   \
			cover = cover < 0.0f ? 0.0f : cover;                                       \
			out[p] = cover > 1.0f ? 1.0f : cover;                                      \
		}                                                                                  \
	}

COVER(disc)
COVER(ring)
COVER(square)
COVER(frame)
COVER(triangle)
COVER(cross)
COVER(moon)
COVER(stripes)
COVER(checks)
COVER(dots)

static const struct shape_row {
	const char *name;
	void (*cover)(const struct picture *picture, float *out);
} shape_rows[] = {
	{"disc", cover_disc},   {"ring", cover_ring},         {"square", cover_square},
	{"frame", cover_frame}, {"triangle", cover_triangle}, {"cross", cover_cross},
	{"moon", cover_moon},   {"stripes", cover_stripes},   {"checks", cover_checks},
	{"dots", cover_dots},
};

/* Draw one colour plane: blend shape and background, add noise from a hash of the position. */
KERNEL_CLONES static void picture_plane(const struct picture *picture, const float *restrict cover,
					int plane, uint8_t *restrict out)
{
	const float shape = picture->shape[plane], ground = picture->ground[plane];
	const uint32_t seed = picture->noise + (uint32_t)plane * 0x9e3779b9u;

	for (int p = 0; p < PIXELS; p++) {
		float light = (float)(p % SIDE - SIDE / 2) * picture->light_x +
			      (float)(p / SIDE - SIDE / 2) * picture->light_y;
		uint32_t hash = ((uint32_t)p + seed) * 0x85ebca6bu;
		float value;

		hash = (hash ^ hash >> 15) * 0xc2b2ae35u;
		hash ^= hash >> 16;
		value = ground + light + (shape - ground - light) * cover[p];
		value += (float)(int32_t)(hash & 63) - 31.5f;
		value = value < 0.0f ? 0.0f : value;
		out[p] = (uint8_t)(value > 255.0f ? 255.0f : value);
	}
}

static float picture_between(struct rng *rng, float least, float most)
{
	return least + (most - least) * rng_uniform(rng);
}

/* Choose two colours that differ clearly in at least one plane. */
static void picture_colours(struct picture *picture, struct rng *rng)
{
	float apart;

	do {
		apart = 0.0f;
		for (int plane = 0; plane < 3; plane++) {
			float difference;

			picture->shape[plane] = picture_between(rng, 16.0f, 240.0f);
			picture->ground[plane] = picture_between(rng, 16.0f, 240.0f);
			difference = fabsf(picture->shape[plane] - picture->ground[plane]);
			apart = max(difference, apart);
		}
	} while (apart < 64.0f);
}

static uint8_t picture_draw(int part, uint32_t number, uint8_t *out)
{
	uint8_t planes[3][PIXELS];
	float cover[PIXELS], radius, length, slant;
	struct picture picture;
	struct rng rng;
	uint32_t class;

	rng_init(&rng, PICTURE_SEED, rng_stream("synthetic.pictures"), number, (uint32_t)part);
	class = rng_below(&rng, (uint32_t)ARRAY_LEN(shape_rows));
	radius = picture_between(&rng, 7.0f, 13.0f);
	picture.x = picture_between(&rng, 10.0f, (float)SIDE - 11.0f);
	picture.y = picture_between(&rng, 10.0f, (float)SIDE - 11.0f);
	slant = picture_between(&rng, -0.4f, 0.4f);
	length = sqrtf(1.0f + slant * slant) * radius;
	picture.cosine = 1.0f / length;
	picture.sine = slant / length;
	picture.sharpness = radius;
	picture.light_x = picture_between(&rng, -2.0f, 2.0f);
	picture.light_y = picture_between(&rng, -2.0f, 2.0f);
	picture_colours(&picture, &rng);
	picture.noise = rng_u32(&rng);

	shape_rows[class].cover(&picture, cover);
	for (int plane = 0; plane < 3; plane++)
		picture_plane(&picture, cover, plane, planes[plane]);
	for (int p = 0; p < PIXELS; p++, out += 3) {
		out[0] = planes[0][p];
		out[1] = planes[1][p];
		out[2] = planes[2][p];
	}
	return (uint8_t) class;
}

/* ---- the set --------------------------------------------------------------------------------- */

struct picture_work {
	int part;
	int64_t count;
	uint8_t *pixels, *labels;
};

static void picture_slice(void *context, unsigned slice)
{
	const struct picture_work *work = context;
	int64_t first = (int64_t)slice * PICTURE_SLICE, end = first + PICTURE_SLICE;

	for (int64_t i = first; i < end && i < work->count; i++)
		work->labels[i] = picture_draw(work->part, (uint32_t)i,
					       work->pixels + i * DATASET_CIFAR_BYTES);
}

static void picture_part(struct dataset *out, int part, const struct dataset_about *about,
			 struct pool *pool, struct err *err)
{
	struct picture_work work = {.part = part, .count = picture_counts[part]};
	struct dataset_array images = {.ndim = 4}, labels = {.ndim = 1};

	if (about->limit > 0 && about->limit < work.count)
		work.count = about->limit;
	images.dim[0] = labels.dim[0] = work.count;
	images.dim[1] = images.dim[2] = SIDE;
	images.dim[3] = 3;
	images.bytes = work.pixels = mem_alloc((size_t)work.count * DATASET_CIFAR_BYTES);
	labels.bytes = work.labels = mem_alloc((size_t)work.count);
	if (!work.pixels || !work.labels)
		err_nomem(err);
	else
		pool_run(pool, picture_slice, &work,
			 (unsigned)((work.count + PICTURE_SLICE - 1) / PICTURE_SLICE));
	dataset__join(out, about, &images, &labels, err);
}

void dataset__pictures_open(const struct dataset_opening *o)
{
	const char *names[ARRAY_LEN(shape_rows)];
	struct dataset_about about = dataset__about_images(o);
	unsigned processors = pool_processors();
	struct pool *pool = NULL;

	about.source = PICTURE_SOURCE;
	about.names = names;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		names[i] = shape_rows[i].name;
	/* A pool is optional: without one, drawing only takes longer. */
	if (processors > 1)
		pool_new(&pool, processors - 1, NULL);
	for (int part = 0; part < 2 && !err_stuck(o->err); part++)
		picture_part(o->parts[part], part, &about, pool, o->err);
	pool_free(pool);
	dataset__synthetic(o, "pictures", "made now");
}
