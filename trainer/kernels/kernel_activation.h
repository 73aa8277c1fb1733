/*
 * Activation functions, element by element, and their gradients.
 *
 * Plain functions on pointers and sizes, one thread each. Results may lie on an operand exactly (y
 * on x, dx on dy); nothing else may overlap. Compiled for several instruction sets with the same
 * bytes in all. NaN goes through, forward and backward.
 */
#ifndef KERNEL_ACTIVATION_H
#define KERNEL_ACTIVATION_H

#include <stddef.h>

/*
 * kernel_NAME(x, y, count): y = NAME(x). kernel_NAME_grad(x, y, dy, dx, count): dx = dy NAME'(x).
 * Each reads one of x and y, and the other may be NULL: OUTPUT where the slope is told from y,
 * INPUT where it takes x. Formulas are those of TensorFlow 2.6:
 *
 *	elu		x, below 0 exp(x) - 1
 *	exponential	exp(x)
 *	gelu		x (1 + erf(x / sqrt 2)) / 2
 *	hard_sigmoid	0.2 x + 0.5, held in 0 .. 1 (Keras 3: relu6(x + 3) / 6, which is not ours)
 *	leaky_relu	x, below 0 0.2 x
 *	mish		x tanh(log(1 + exp(x)))
 *	relu6		x held in 0 .. 6
 *	selu		1.0507 x, below 0 1.0507 * 1.67326 (exp(x) - 1)
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
/* dx = dy where 0 < y < most (most = INFINITY: 0 < y), else 0. */
void kernel_bounded_relu_grad(const float *y, const float *dy, float *dx, float most, size_t count);

/* Keras's ReLU: x up to @most where x > threshold, slope (x - threshold) elsewhere. */
struct kernel_relu_shape {
	float threshold, slope, most; /* most: may be INFINITY */
};
void kernel_shaped_relu(const float *x, float *y, const struct kernel_relu_shape *shape,
			size_t count);
void kernel_shaped_relu_grad(const float *x, const float *dy, float *dx,
			     const struct kernel_relu_shape *shape, size_t count);

/* y = x, below 0 alpha (exp(x) - 1); the slope is told from y (alpha > 0) and alpha. */
void kernel_alpha_elu(const float *x, float *y, float alpha, size_t count);
void kernel_alpha_elu_grad(const float *y, const float *dy, float *dx, float alpha, size_t count);

#endif /* KERNEL_ACTIVATION_H */
