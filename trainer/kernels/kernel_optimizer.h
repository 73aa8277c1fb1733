/*
 * Weight updates, element by element, in one pass over the memory. See model/learn/optimizer.h for
 * the formulas.
 *
 * Plain functions on pointers and sizes, single-threaded; nothing overlaps. The bytes are the same
 * with every instruction set. NaN and infinities propagate. Unused slots are NULL.
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

/* Without @sums (momentum) epsilon is added to the root, with @sums to the radicand. @means: the
 * mean gradient, if centered. */
void kernel_rmsprop(float *weights, const float *gradients, float *squares, float *sums,
		    float *means, const struct kernel_rmsprop *p, size_t count);

struct kernel_adam {
	float rate; /* corrected for the bias of both means, which start at 0 */
	float beta_1, beta_2, epsilon;
};

/* @greatest: maximum of the mean squares, for amsgrad; else NULL. */
void kernel_adam(float *weights, const float *gradients, float *means, float *squares,
		 float *greatest, const struct kernel_adam *p, size_t count);

/* a += g^2; w -= rate g / (sqrt(a) + epsilon) */
void kernel_adagrad(float *weights, const float *gradients, float *sums, float rate, float epsilon,
		    size_t count);

/* w -= rate sign(beta_1 m + (1 - beta_1) g); m = beta_2 m + (1 - beta_2) g. NaN's sign is NaN. */
void kernel_lion(float *weights, const float *gradients, float *means, float rate, float beta_1,
		 float beta_2, size_t count);

/* Update Adam's means of the gradients and of their squares. */
void kernel_moments(const float *gradients, float *means, float *squares, float beta_1,
		    float beta_2, size_t count);

/*
 * For Nadam and Lamb:
 *
 *	step = (from_mean m + from_gradient g) / (sqrt(from_square v) + epsilon) + decay w
 */
struct kernel_moment_step {
	float from_mean, from_gradient, from_square, epsilon, decay;
};
void kernel_moment_step(float *steps, const float *weights, const float *gradients,
			const float *means, const float *squares,
			const struct kernel_moment_step *p, size_t count);

/* clipped = the gradient times @scale, clipped to -@limit .. @limit; NaN stays. */
void kernel_clip(float *clipped, const float *gradients, float scale, float limit, size_t count);

/* ---- regularizers ---------------------------------------------------------------------------- */

/* Sums over weights, and their gradients: see trainer/learn/optimizer_run.h for the formulas. Sums
 * are computed in double, in an order that depends only on @count. */

double kernel_absolute_sum(const float *x, size_t count); /* sum |x| */
double kernel_square_sum(const float *x, size_t count);   /* sum x^2 */

/* gradients += linear sign(w) + square w; sign(0) is 0, that of NaN is NaN */
void kernel_regularize(float *gradients, const float *weights, float linear, float square,
		       size_t count);

#endif /* KERNEL_OPTIMIZER_H */
