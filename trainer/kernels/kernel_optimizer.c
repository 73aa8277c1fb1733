/*
 * Weight updates: loops that the compiler vectorizes, one per set of slots.
 */
#include "trainer/kernels/kernel_optimizer.h"

#include <math.h>

#include "trainer/kernels/kernel_clones.h"

KERNEL_CLONES
void kernel_sgd(float *restrict weights, const float *restrict gradients, float rate, size_t count)
{
	for (size_t i = 0; i < count; i++)
		weights[i] -= rate * gradients[i];
}

KERNEL_CLONES
void kernel_decay(float *weights, float rate, size_t count)
{
	for (size_t i = 0; i < count; i++)
		weights[i] -= rate * weights[i];
}

KERNEL_CLONES
static void sgd_plain(float *restrict weights, const float *restrict gradients,
		      float *restrict sums, float rate, float momentum, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		float sum = sums[i] * momentum - gradients[i] * rate;

		sums[i] = sum;
		weights[i] += sum;
	}
}

KERNEL_CLONES
static void sgd_nesterov(float *restrict weights, const float *restrict gradients,
			 float *restrict sums, float rate, float momentum, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		float step = gradients[i] * rate;
		float sum = sums[i] * momentum - step;

		sums[i] = sum;
		weights[i] += sum * momentum - step;
	}
}

void kernel_sgd_momentum(float *weights, const float *gradients, float *sums, float rate,
			 float momentum, bool nesterov, size_t count)
{
	(nesterov ? sgd_nesterov : sgd_plain)(weights, gradients, sums, rate, momentum, count);
}

/* As TensorFlow: without momentum a moving mean is rho m + (1 - rho) x, with momentum the same is
 * m + (x - m) (1 - rho), which rounds differently. */
KERNEL_INLINE void rmsprop_any(float *restrict weights, const float *restrict gradients,
			       float *restrict squares, float *restrict sums, float *restrict means,
			       const struct kernel_rmsprop *p, size_t count, bool momentum,
			       bool centered)
{
	const float rate = p->rate, rho = p->rho, rest = 1.0f - p->rho, epsilon = p->epsilon;
	const float kept = p->momentum;

	for (size_t i = 0; i < count; i++) {
		float g = gradients[i], mean = 0.0f, spread;
		float square = momentum ? squares[i] + (g * g - squares[i]) * rest
					: rho * squares[i] + rest * (g * g);

		if (centered)
			mean = momentum ? means[i] + (g - means[i]) * rest
					: rho * means[i] + rest * g;
		spread = centered ? square - mean * mean : square;
		squares[i] = square;
		if (centered)
			means[i] = mean;
		if (momentum) {
			float sum = sums[i] * kept + g * rate / sqrtf(spread + epsilon);

			sums[i] = sum;
			weights[i] -= sum;
		} else {
			weights[i] -= rate * g / (sqrtf(spread) + epsilon);
		}
	}
}

#define RMSPROP_VARIANT(name, momentum, centered)                                                  \
	KERNEL_CLONES                                                                              \
	static void name(float *weights, const float *gradients, float *squares, float *sums,      \
			 float *means, const struct kernel_rmsprop *p, size_t count)               \
	{                                                                                          \
		rmsprop_any(weights, gradients, squares, sums, means, p, count, momentum,          \
			    centered);                                                             \
	}

RMSPROP_VARIANT(rmsprop_plain, false, false)
RMSPROP_VARIANT(rmsprop_centered, false, true)
RMSPROP_VARIANT(rmsprop_momentum, true, false)
RMSPROP_VARIANT(rmsprop_both, true, true)

void kernel_rmsprop(float *weights, const float *gradients, float *squares, float *sums,
		    float *means, const struct kernel_rmsprop *p, size_t count)
{
	(sums && means ? rmsprop_both
	 : sums        ? rmsprop_momentum
	 : means       ? rmsprop_centered
		       : rmsprop_plain)(weights, gradients, squares, sums, means, p, count);
}

KERNEL_CLONES
static void adam_plain(float *restrict weights, const float *restrict gradients,
		       float *restrict means, float *restrict squares, const struct kernel_adam *p,
		       size_t count)
{
	const float rate = p->rate, epsilon = p->epsilon;
	const float rest_1 = 1.0f - p->beta_1, rest_2 = 1.0f - p->beta_2;

	for (size_t i = 0; i < count; i++) {
		float g = gradients[i], mean = means[i] + (g - means[i]) * rest_1;
		float square = squares[i] + (g * g - squares[i]) * rest_2;

		means[i] = mean;
		squares[i] = square;
		weights[i] -= mean * rate / (sqrtf(square) + epsilon);
	}
}

KERNEL_CLONES
static void adam_amsgrad(float *restrict weights, const float *restrict gradients,
			 float *restrict means, float *restrict squares, float *restrict greatest,
			 const struct kernel_adam *p, size_t count)
{
	const float rate = p->rate, epsilon = p->epsilon;
	const float rest_1 = 1.0f - p->beta_1, rest_2 = 1.0f - p->beta_2;

	for (size_t i = 0; i < count; i++) {
		float g = gradients[i], mean = means[i] + (g - means[i]) * rest_1;
		float square = squares[i] + (g * g - squares[i]) * rest_2;
		float largest = greatest[i] < square ? square : greatest[i];

		means[i] = mean;
		squares[i] = square;
		greatest[i] = largest;
		weights[i] -= mean * rate / (sqrtf(largest) + epsilon);
	}
}

void kernel_adam(float *weights, const float *gradients, float *means, float *squares,
		 float *greatest, const struct kernel_adam *p, size_t count)
{
	if (greatest)
		adam_amsgrad(weights, gradients, means, squares, greatest, p, count);
	else
		adam_plain(weights, gradients, means, squares, p, count);
}

KERNEL_CLONES
void kernel_adagrad(float *restrict weights, const float *restrict gradients, float *restrict sums,
		    float rate, float epsilon, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		float g = gradients[i], sum = sums[i] + g * g;

		sums[i] = sum;
		weights[i] -= g * rate / (sqrtf(sum) + epsilon);
	}
}

KERNEL_CLONES
void kernel_lion(float *restrict weights, const float *restrict gradients, float *restrict means,
		 float rate, float beta_1, float beta_2, size_t count)
{
	const float rest_1 = 1.0f - beta_1, rest_2 = 1.0f - beta_2;

	for (size_t i = 0; i < count; i++) {
		float g = gradients[i], mixed = means[i] * beta_1 + g * rest_1;
		float sign = mixed > 0.0f ? 1.0f : mixed < 0.0f ? -1.0f : mixed;

		weights[i] -= rate * sign;
		means[i] = means[i] * beta_2 + g * rest_2;
	}
}

KERNEL_CLONES
void kernel_moments(const float *restrict gradients, float *restrict means, float *restrict squares,
		    float beta_1, float beta_2, size_t count)
{
	const float rest_1 = 1.0f - beta_1, rest_2 = 1.0f - beta_2;

	for (size_t i = 0; i < count; i++) {
		float g = gradients[i];

		means[i] += (g - means[i]) * rest_1;
		squares[i] += (g * g - squares[i]) * rest_2;
	}
}

KERNEL_CLONES
void kernel_moment_step(float *restrict steps, const float *restrict weights,
			const float *restrict gradients, const float *restrict means,
			const float *restrict squares, const struct kernel_moment_step *p,
			size_t count)
{
	const float from_mean = p->from_mean, from_gradient = p->from_gradient;
	const float from_square = p->from_square, epsilon = p->epsilon, decay = p->decay;

	for (size_t i = 0; i < count; i++)
		steps[i] = (means[i] * from_mean + gradients[i] * from_gradient) /
				   (sqrtf(squares[i] * from_square) + epsilon) +
			   weights[i] * decay;
}

KERNEL_CLONES
void kernel_clip(float *restrict clipped, const float *restrict gradients, float scale, float limit,
		 size_t count)
{
	for (size_t i = 0; i < count; i++) {
		float g = gradients[i] * scale;

		g = g > limit ? limit : g;
		clipped[i] = g < -limit ? -limit : g;
	}
}
