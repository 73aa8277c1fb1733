/*
 * Weight updates, element by element, in one pass over the memory. The formulas are told in
 * model/learn/optimizer.h.
 *
 * Plain functions on pointers and sizes, one thread each; nothing overlaps. Bytes are the same for
 * every instruction set. NaN and infinities go through. Slots that are not wanted are NULL.
 */
#ifndef KERNEL_OPTIMIZER_H
#define KERNEL_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>

/* w -= rate g */
void kernel_sgd(float *weights, const float *gradients, float rate, size_t count);

/* w -= rate w */
void kernel_decay(float *weights, float rate, size_t count);

/* a = momentum a - rate g; w += a, or with Nesterov's rule w += momentum a - rate g */
void kernel_sgd_momentum(float *weights, const float *gradients, float *sums, float rate,
			 float momentum, bool nesterov, size_t count);

struct kernel_rmsprop {
	float rate, rho, momentum, epsilon;
};

/* Without @sums epsilon is added to the root, with them to what the root is taken of. @means: of
 * the gradient, where it is centered. */
void kernel_rmsprop(float *weights, const float *gradients, float *squares, float *sums,
		    float *means, const struct kernel_rmsprop *p, size_t count);

struct kernel_adam {
	float rate; /* corrected for both means' start at 0 */
	float beta_1, beta_2, epsilon;
};

/* @greatest: of the squares' mean, for amsgrad. */
void kernel_adam(float *weights, const float *gradients, float *means, float *squares,
		 float *greatest, const struct kernel_adam *p, size_t count);

/* a += g^2; w -= rate g / (sqrt(a) + epsilon) */
void kernel_adagrad(float *weights, const float *gradients, float *sums, float rate, float epsilon,
		    size_t count);

/* w -= rate sign(beta_1 m + (1 - beta_1) g); m = beta_2 m + (1 - beta_2) g. NaN's sign is NaN. */
void kernel_lion(float *weights, const float *gradients, float *means, float rate, float beta_1,
		 float beta_2, size_t count);

/* Adam's means of gradients and of their squares. */
void kernel_moments(const float *gradients, float *means, float *squares, float beta_1,
		    float beta_2, size_t count);

/*
 * step = (from_mean m + from_gradient g) / (sqrt(from_square v) + epsilon) + decay w: Nadam's and
 * Lamb's.
 */
struct kernel_moment_step {
	float from_mean, from_gradient, from_square, epsilon, decay;
};
void kernel_moment_step(float *steps, const float *weights, const float *gradients,
			const float *means, const float *squares,
			const struct kernel_moment_step *p, size_t count);

/* The gradient times @scale, then within +-@most; NaN stays. */
void kernel_clip(float *clipped, const float *gradients, float scale, float most, size_t count);

#endif /* KERNEL_OPTIMIZER_H */
