/*
 * The cost of work by its shape: estimates for pool_share(), in ns on one thread.
 *
 * Their purpose is to find work that is too small to distribute. They therefore assume operands in
 * a core's own cache and a fast processor (AVX-512 at 3 GHz); on others work takes longer and is
 * distributed later than it could be. Measured by bench_mlp and bench_conv: 60 to 100
 * multiply-adds and 20 to 35 floats per ns.
 */
#ifndef KERNEL_WORK_H
#define KERNEL_WORK_H

#include <stdint.h>

#define KERNEL_WORK_PRODUCTS 64 /* multiply-adds of a matrix product or a convolution per ns */
#define KERNEL_WORK_FLOATS   24 /* floats that a plain loop reads or writes per ns */

static inline uint64_t kernel_work_products(int64_t multiply_adds)
{
	return (uint64_t)multiply_adds / KERNEL_WORK_PRODUCTS;
}

static inline uint64_t kernel_work_floats(int64_t floats)
{
	return (uint64_t)floats / KERNEL_WORK_FLOATS;
}

#endif /* KERNEL_WORK_H */
