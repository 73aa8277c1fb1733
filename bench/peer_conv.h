/*
 * The peer of our convolutions: oneDNN's of the same shape, on the same threads.
 *
 * Its arrays have the layouts that it chooses itself, and weights are in its blocks beforehand:
 * what is timed is its best kernel alone. Where oneDNN was not there when the build was configured
 * there is no peer.
 */
#ifndef BENCH_PEER_CONV_H
#define BENCH_PEER_CONV_H

#include <stdbool.h>

#include "trainer/kernels/kernel_conv.h"

enum conv_pass {
	PASS_FORWARD, /* with the bias, and the ReLU if wanted */
	PASS_KERNEL,  /* the gradient of kernel and bias */
	PASS_INPUT,   /* the gradient of the input */
	CONV_PASSES
};

struct peer_conv;

const char *peer_conv_name(void); /* NULL: there is no peer */
/* NULL where there is none, or it fails. Convolutions without groups and dilation. */
struct peer_conv *peer_conv_new(const struct kernel_conv *conv, enum conv_pass pass, bool relu,
				unsigned threads);
/* Runs it @times times; the least time in ns. */
double peer_conv_time(struct peer_conv *peer, int times);
void peer_conv_free(struct peer_conv *peer); /* accepts NULL */

#endif /* BENCH_PEER_CONV_H */
