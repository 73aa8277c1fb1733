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

#endif /* KERNEL_OPTIMIZER_H */
