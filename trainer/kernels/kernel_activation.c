/*
 * Activation functions: one formula per element, then the loops that apply it.
 */
#include "trainer/kernels/kernel_activation.h"

#include <math.h>

#include "trainer/kernels/kernel_elementary.h"

#define ACTIVATION_LEAK       0.2f
#define ACTIVATION_SELU_SCALE 1.05070098735548049342f
#define ACTIVATION_SELU_ALPHA 1.67326324235437728482f
#define ACTIVATION_SQRT_HALF  0.70710678118654752440f
#define ACTIVATION_MISH_MOST  20.0f /* tanh(softplus(x)) rounds to 1 from here on */

/* ---- one element ----------------------------------------------------------------------------- */

KERNEL_INLINE float alpha_elu_of(float x, float alpha)
{
	float below = alpha * elementary_expm1f_negative(x > 0.0f ? 0.0f : x);

	return x > 0.0f ? x : below;
}

/* For x < 0 the slope is alpha exp(x) = y + alpha. */
KERNEL_INLINE float alpha_elu_slope(float y, float alpha)
{
	float below = y + alpha;

	return y > 0.0f ? 1.0f : below;
}

KERNEL_INLINE float elu_of(float x)
{
	return alpha_elu_of(x, 1.0f);
}

KERNEL_INLINE float elu_slope(float y)
{
	return alpha_elu_slope(y, 1.0f);
}

KERNEL_INLINE float exponential_of(float x)
{
	return elementary_expf(x);
}

KERNEL_INLINE float exponential_slope(float y)
{
	return y;
}

KERNEL_INLINE float gelu_of(float x)
{
	return 0.5f * x * (1.0f + elementary_erff(x * ACTIVATION_SQRT_HALF));
}

/* Phi(x) + x phi(x) of the standard normal distribution; 0.3989... is 1 / sqrt(2 pi). */
KERNEL_INLINE float gelu_slope(float x)
{
	float density = 0.39894228040143267794f * elementary_expf(-0.5f * x * x);

	return 0.5f * (1.0f + elementary_erff(x * ACTIVATION_SQRT_HALF)) + x * density;
}

KERNEL_INLINE float hard_sigmoid_of(float x)
{
	float y = 0.2f * x + 0.5f;

	y = y < 0.0f ? 0.0f : y;
	return y > 1.0f ? 1.0f : y;
}

KERNEL_INLINE float hard_sigmoid_slope(float y)
{
	float slope = y <= 0.0f ? 0.0f : 0.2f;

	return y >= 1.0f ? 0.0f : slope;
}

KERNEL_INLINE float leaky_relu_of(float x)
{
	float below = ACTIVATION_LEAK * x;

	return x < 0.0f ? below : x;
}

KERNEL_INLINE float leaky_relu_slope(float y)
{
	return y > 0.0f ? 1.0f : ACTIVATION_LEAK;
}

/*
 * With e = exp(x) and n = e (e + 2), tanh(log(1 + e)) is n / (n + 2); its derivative is
 * 4 e (e + 1) / (n + 2)^2.
 */
KERNEL_INLINE float mish_of(float x)
{
	float e = elementary_expf(x > ACTIVATION_MISH_MOST ? ACTIVATION_MISH_MOST : x);
	float n = e * (e + 2.0f);

	return x * (n / (n + 2.0f));
}

KERNEL_INLINE float mish_slope(float x)
{
	float clipped = x > ACTIVATION_MISH_MOST ? ACTIVATION_MISH_MOST : x;
	float e = elementary_expf(clipped), n = e * (e + 2.0f), share = 1.0f / (n + 2.0f);

	return n * share + clipped * (4.0f * e * (e + 1.0f) * share * share);
}

KERNEL_INLINE float bounded_relu_of(float x, float most)
{
	float y = x < 0.0f ? 0.0f : x;

	return y > most ? most : y;
}

KERNEL_INLINE float bounded_relu_grad(float y, float dy, float most)
{
	float dx = y <= 0.0f ? 0.0f : dy;

	return y >= most ? 0.0f : dx;
}

KERNEL_INLINE float relu6_of(float x)
{
	return bounded_relu_of(x, 6.0f);
}

KERNEL_INLINE float relu6_slope(float y)
{
	return bounded_relu_grad(y, 1.0f, 6.0f);
}

KERNEL_INLINE float selu_of(float x)
{
	float scaled = ACTIVATION_SELU_SCALE * x;
	float below = ACTIVATION_SELU_SCALE * ACTIVATION_SELU_ALPHA *
		      elementary_expm1f_negative(x > 0.0f ? 0.0f : x);

	return x > 0.0f ? scaled : below;
}

KERNEL_INLINE float selu_slope(float y)
{
	float below = y + ACTIVATION_SELU_SCALE * ACTIVATION_SELU_ALPHA;

	return y > 0.0f ? ACTIVATION_SELU_SCALE : below;
}

KERNEL_INLINE float sigmoid_of(float x)
{
	return elementary_sigmoidf(x);
}

KERNEL_INLINE float sigmoid_slope(float y)
{
	return y * (1.0f - y);
}

KERNEL_INLINE float softplus_of(float x)
{
	float above = x > 0.0f ? x : 0.0f;

	return above + elementary_log1pf_share(elementary_expf(-fabsf(x)));
}

/* sigmoid(x) = 1 - exp(-y) */
KERNEL_INLINE float softplus_slope(float y)
{
	return -elementary_expm1f_negative(-y);
}

KERNEL_INLINE float softsign_of(float x)
{
	return x / (1.0f + fabsf(x));
}

KERNEL_INLINE float softsign_slope(float x)
{
	float share = 1.0f / (1.0f + fabsf(x));

	return share * share;
}

KERNEL_INLINE float swish_of(float x)
{
	return x * elementary_sigmoidf(x);
}

KERNEL_INLINE float swish_slope(float x)
{
	float s = elementary_sigmoidf(x);

	return s * (1.0f + x * (1.0f - s));
}

KERNEL_INLINE float tanh_of(float x)
{
	return elementary_tanhf(x);
}

KERNEL_INLINE float tanh_slope(float y)
{
	return 1.0f - y * y;
}

/* ---- the loops ------------------------------------------------------------------------------- */

#define ACTIVATION_FORWARD(name)                                                                   \
	KERNEL_CLONES                                                                              \
	void kernel_##name(const float *x, float *y, size_t count)                                 \
	{                                                                                          \
		KERNEL_INDEPENDENT                                                                 \
		for (size_t i = 0; i < count; i++)                                                 \
			y[i] = name##_of(x[i]);                                                    \
	}

#define ACTIVATION_INPUT(name)                                                                     \
	KERNEL_CLONES                                                                              \
	void kernel_##name##_grad(const float *x, const float *y, const float *dy, float *dx,      \
				  size_t count)                                                    \
	{                                                                                          \
		(void)y;                                                                           \
		KERNEL_INDEPENDENT                                                                 \
		for (size_t i = 0; i < count; i++)                                                 \
			dx[i] = dy[i] * name##_slope(x[i]);                                        \
	}

#define ACTIVATION_OUTPUT(name)                                                                    \
	KERNEL_CLONES                                                                              \
	void kernel_##name##_grad(const float *x, const float *y, const float *dy, float *dx,      \
				  size_t count)                                                    \
	{                                                                                          \
		(void)x;                                                                           \
		KERNEL_INDEPENDENT                                                                 \
		for (size_t i = 0; i < count; i++)                                                 \
			dx[i] = dy[i] * name##_slope(y[i]);                                        \
	}

/* ACTIVATION_##reads(name) defines the gradient's loop. */
#define ACTIVATION_LOOPS(name, reads) ACTIVATION_FORWARD(name) ACTIVATION_##reads(name)
KERNEL_ACTIVATION_MAP(ACTIVATION_LOOPS)

/* ---- with parameters ------------------------------------------------------------------------- */

KERNEL_CLONES
void kernel_bounded_relu(const float *x, float *y, float most, size_t count)
{
	KERNEL_INDEPENDENT
	for (size_t i = 0; i < count; i++)
		y[i] = bounded_relu_of(x[i], most);
}

KERNEL_CLONES
void kernel_bounded_relu_grad(const float *y, const float *dy, float *dx, float most, size_t count)
{
	/* Without a bound use NaN, which compares false: an infinite y then passes dy through. */
	float bound = isinf(most) ? NAN : most;

	KERNEL_INDEPENDENT
	for (size_t i = 0; i < count; i++)
		dx[i] = bounded_relu_grad(y[i], dy[i], bound);
}

KERNEL_CLONES
void kernel_shaped_relu(const float *x, float *y, const struct kernel_relu_shape *shape,
			size_t count)
{
	const struct kernel_relu_shape s = *shape;

	KERNEL_INDEPENDENT
	for (size_t i = 0; i < count; i++) {
		float above = x[i] > s.most ? s.most : x[i];
		float below = s.slope * (x[i] - s.threshold);

		y[i] = x[i] <= s.threshold ? below : above;
	}
}

KERNEL_CLONES
void kernel_shaped_relu_grad(const float *x, const float *dy, float *dx,
			     const struct kernel_relu_shape *shape, size_t count)
{
	const struct kernel_relu_shape s = *shape;

	KERNEL_INDEPENDENT
	for (size_t i = 0; i < count; i++) {
		float above = x[i] >= s.most ? 0.0f : 1.0f;

		dx[i] = dy[i] * (x[i] <= s.threshold ? s.slope : above);
	}
}

KERNEL_CLONES
void kernel_alpha_elu(const float *x, float *y, float alpha, size_t count)
{
	KERNEL_INDEPENDENT
	for (size_t i = 0; i < count; i++)
		y[i] = alpha_elu_of(x[i], alpha);
}

KERNEL_CLONES
void kernel_alpha_elu_grad(const float *y, const float *dy, float *dx, float alpha, size_t count)
{
	KERNEL_INDEPENDENT
	for (size_t i = 0; i < count; i++)
		dx[i] = dy[i] * alpha_elu_slope(y[i], alpha);
}
