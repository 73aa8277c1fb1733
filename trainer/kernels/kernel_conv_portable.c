/*
 * The convolution's tiles in plain C, for any processor: 4 pixels by 16 filters.
 */
#include <math.h>

#include "trainer/kernels/kernel_conv_internal.h"

#define TARGET
#define LANES  8
#define ROWS   4
#define PIXELS 2

enum {
	STEPS = 1
};

/* A vector type keeps the lanes in registers while the compiler optimises: as an array they take it
 * twice as long. */
typedef float vec8 __attribute__((vector_size(LANES * sizeof(float))));

#define VEC    vec8
#define VECTOR static inline __attribute__((always_inline))

VECTOR VEC vec_all(float x)
{
	return (VEC){x, x, x, x, x, x, x, x};
}

VECTOR VEC vec_load_part(const float *p, int count)
{
	VEC v = {0};

	for (int i = 0; i < LANES && i < count; i++)
		v[i] = p[i];
	return v;
}

VECTOR void vec_store_part(float *p, VEC v, int count)
{
	for (int i = 0; i < LANES && i < count; i++)
		p[i] = v[i];
}

/* One rounding, as the vector instructions do. On processors without FMA the C library computes it
 * in software. */
VECTOR VEC vec_fma(VEC a, VEC b, VEC c)
{
	for (int i = 0; i < LANES; i++)
		c[i] = fmaf(a[i], b[i], c[i]);
	return c;
}

VECTOR VEC vec_max(VEC a, VEC b)
{
	for (int i = 0; i < LANES; i++)
		b[i] = a[i] > b[i] ? a[i] : b[i];
	return b;
}

VECTOR VEC vec_min(VEC a, VEC b)
{
	for (int i = 0; i < LANES; i++)
		b[i] = a[i] < b[i] ? a[i] : b[i];
	return b;
}

VECTOR VEC vec_inside(VEC x, VEC y, VEC most)
{
	for (int i = 0; i < LANES; i++)
		x[i] = y[i] <= 0.0f || y[i] >= most[i] ? 0.0f : x[i];
	return x;
}

VECTOR void vec_transpose(VEC r[LANES])
{
	for (int i = 0; i < LANES; i++) {
		for (int j = 0; j < i; j++) {
			float kept = r[i][j];

			r[i][j] = r[j][i];
			r[j][i] = kept;
		}
	}
}

#include "trainer/kernels/kernel_conv_tile.h"
#include "trainer/kernels/kernel_conv_winograd_tile.h"
#include "trainer/kernels/kernel_depthwise_tile.h"

const struct conv_body conv__portable = CONV_BODY("portable");
