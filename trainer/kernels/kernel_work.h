/*
 * What work costs by its shape: estimates for pool_share(), in ns on one thread.
 *
 * They tell work that is too small to be shared out, so they are of operands in a core's own cache
 * and of a fast processor (AVX-512 at 3 GHz); elsewhere work takes longer and is shared out later
 * than it could be. Measured as bench_mlp and bench_conv do: 60 to 100 multiply-adds and 20 to 35
 * floats a ns.
 */
#ifndef KERNEL_WORK_H
#define KERNEL_WORK_H

#include <stdint.h>

#define KERNEL_WORK_PRODUCTS 64 /* multiply-adds of a matrix product or a convolution in a ns */
#define KERNEL_WORK_FLOATS   24 /* floats that a plain loop reads or writes in a ns */

static inline uint64_t kernel_work_products(int64_t multiply_adds)
{
	return (uint64_t)multiply_adds / KERNEL_WORK_PRODUCTS;
}

static inline uint64_t kernel_work_floats(int64_t floats)
{
	return (uint64_t)floats / KERNEL_WORK_FLOATS;
}

#endif /* KERNEL_WORK_H */
