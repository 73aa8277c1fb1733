/*
 * Activation functions, element by element, and their gradients; softmax; dropout.
 *
 * Plain functions on pointers and sizes, single-threaded. A result may be stored over an operand
 * (y over x, dx over dy); other overlaps are not allowed. Compiled for several instruction sets,
 * all with the same bytes. NaN propagates, forward and backward.
 */
#ifndef KERNEL_ACTIVATION_H
#define KERNEL_ACTIVATION_H

#include <stddef.h>
#include <stdint.h>

#include "common/rng.h"

/*
 * kernel_NAME(x, y, count): y = NAME(x). kernel_NAME_grad(x, y, dy, dx, count): dx = dy NAME'(x).
 * Each gradient reads x or y, and the other may be NULL: OUTPUT computes the slope from y, INPUT
 * from x. The formulas are those of TensorFlow 2.6:
 *
 *	elu		x; exp(x) - 1 if x < 0
 *	exponential	exp(x)
 *	gelu		x (1 + erf(x / sqrt 2)) / 2
 *	hard_sigmoid	0.2 x + 0.5, clipped to 0 .. 1 (Keras 3 has relu6(x + 3) / 6, not used here)
 *	leaky_relu	x; 0.2 x if x < 0
 *	mish		x tanh(log(1 + exp(x)))
 *	relu6		x, clipped to 0 .. 6
 *	selu		1.0507 x; 1.0507 * 1.67326 (exp(x) - 1) if x < 0
 *	sigmoid		1 / (1 + exp(-x))
 *	softplus	log(1 + exp(x))
 *	softsign	x / (1 + |x|)
 *	swish		x sigmoid(x)
 *	tanh
 */
#define KERNEL_ACTIVATION_MAP(X)                                                                   \
	X(elu, OUTPUT)                                                                             \
	X(exponential, OUTPUT)                                                                     \
	X(gelu, INPUT)                                                                             \
	X(hard_sigmoid, OUTPUT)                                                                    \
	X(leaky_relu, OUTPUT)                                                                      \
	X(mish, INPUT)                                                                             \
	X(relu6, OUTPUT)                                                                           \
	X(selu, OUTPUT)                                                                            \
	X(sigmoid, OUTPUT)                                                                         \
	X(softplus, OUTPUT)                                                                        \
	X(softsign, INPUT)                                                                         \
	X(swish, INPUT)                                                                            \
	X(tanh, OUTPUT)

#define KERNEL_ACTIVATION_DECLARE(name, reads)                                                     \
	void kernel_##name(const float *x, float *y, size_t count);                                \
	void kernel_##name##_grad(const float *x, const float *y, const float *dy, float *dx,      \
				  size_t count);
KERNEL_ACTIVATION_MAP(KERNEL_ACTIVATION_DECLARE)
#undef KERNEL_ACTIVATION_DECLARE

/* y = min(max(x, 0), most); most may be INFINITY. */
void kernel_bounded_relu(const float *x, float *y, float most, size_t count);
/* dx = dy if 0 < y < most (most = INFINITY: 0 < y), else 0. */
void kernel_bounded_relu_grad(const float *y, const float *dy, float *dx, float most, size_t count);

/* Keras's ReLU: min(x, most) if x > threshold, else slope (x - threshold). */
struct kernel_relu_shape {
	float threshold, slope, most; /* most: may be INFINITY */
};
void kernel_shaped_relu(const float *x, float *y, const struct kernel_relu_shape *shape,
			size_t count);
void kernel_shaped_relu_grad(const float *x, const float *dy, float *dx,
			     const struct kernel_relu_shape *shape, size_t count);

/* y = x; alpha (exp(x) - 1) if x < 0. The gradient is computed from y and alpha (alpha > 0). */
void kernel_alpha_elu(const float *x, float *y, float alpha, size_t count);
void kernel_alpha_elu_grad(const float *y, const float *dy, float *dx, float alpha, size_t count);

/* ---- softmax --------------------------------------------------------------------------------- */

/*
 * Softmax and its logarithm over the last axis, and their gradients.
 *
 * Computed as exp(x - max) / sum and x - max - log(sum). A NaN or a +infinity in a row makes the
 * whole row NaN (infinity minus infinity), as in TensorFlow; -infinity gives 0, and a row of only
 * -infinity gives NaN. Sums are computed in sixteen lanes, column by column, and the lanes are
 * added from first to last: the same bytes everywhere. Single-threaded.
 */

/* x and y are [rows, columns]; x may be y. */
void kernel_softmax(const float *x, float *y, int64_t rows, int64_t columns);
void kernel_log_softmax(const float *x, float *y, int64_t rows, int64_t columns);

/* The gradient of x, row by row: y (dy - sum(y dy)), and dy - exp(y) sum(dy). dx may be dy. */
void kernel_softmax_grad(const float *y, const float *dy, float *dx, int64_t rows, int64_t columns);
void kernel_log_softmax_grad(const float *y, const float *dy, float *dx, int64_t rows,
			     int64_t columns);

/* ---- dropout --------------------------------------------------------------------------------- */

/*
 * Dropout masks: Philox4x32-10 over many blocks at a time.
 *
 * The blocks are those of common/rng.h's stream: block b has b as its first counter word. The
 * numbers are assigned to elements such that no transposition is needed: element 128 g + 32 w + j
 * of a mask uses word w (0 .. 3) of block 32 g + j. Single-threaded; integer arithmetic only, so
 * the bytes are the same everywhere.
 */

#define KERNEL_DROPOUT_GROUP 128 /* elements: masks start at multiples of this */

/*
 * mask[i] = 1 if the random number of element @first + i is at least @threshold, else 0. @stream:
 * as rng_init() initialized it. @first: a multiple of KERNEL_DROPOUT_GROUP. The numbers repeat
 * after 2^34 elements.
 */
void kernel_dropout_mask(const struct rng *stream, uint32_t threshold, size_t first, size_t count,
			 uint8_t *mask);

/* The same in plain C for the first groups; in every build, for the test that compares the two. */
void kernel__dropout_mask_plain(const struct rng *stream, uint32_t threshold, size_t groups,
				uint8_t *mask);

/* y = x scale if the mask is 1, else x 0 (NaN stays NaN); y may be x. */
void kernel_dropout_apply(const float *x, const uint8_t *mask, float scale, float *y, size_t count);

#endif /* KERNEL_ACTIVATION_H */
