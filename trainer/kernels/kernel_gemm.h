/*
 * Matrix products on the convolutions' tiles.
 *
 * Row-major float32. An element's sum starts at 0 and runs over k from first to last with fused
 * multiply-adds, for any shape, instruction set and number of threads: the same bytes everywhere.
 * kernel_gemm.openblas calls OpenBLAS instead, which has its own order of sums, dependent on the
 * processor. Nothing is allocated: the caller provides scratch. Thread safe.
 */
#ifndef KERNEL_GEMM_H
#define KERNEL_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/kernels/kernel_conv.h"

/* C[m,n] = op(A)[m,k] op(B)[k,n]; C is overwritten, its old contents are not read. */
struct kernel_gemm {
	bool transpose_a, transpose_b; /* A is stored [k,m]; B is stored [n,k] */
	int64_t m, n, k;               /* each at most INT32_MAX; 0 is allowed */
	const float *a, *b;
	float *c;
	int64_t lda, ldb, ldc;            /* floats from row to row as stored */
	struct kernel_conv_finish finish; /* only if nothing is transposed */
	bool openblas;                    /* only after kernel_openblas_open() */
};

/* Bytes of scratch for any product, aligned to 64 bytes. */
size_t kernel_gemm_scratch(unsigned lanes);
void kernel_gemm(const struct kernel_gemm *gemm, const struct kernel_room *room);

/*
 * The same product slice by slice, for a caller that runs several things in one pool job. Each
 * slice writes a part of C and uses its lane's scratch, KERNEL_GEMM_LANE floats. The caller itself
 * marks the watch as known.
 */
#define KERNEL_GEMM_LANE 299040
unsigned kernel_gemm_slices(const struct kernel_gemm *gemm);
uint64_t kernel_gemm_work(const struct kernel_gemm *gemm); /* as in kernel_work.h */
void kernel_gemm_slice(const struct kernel_gemm *gemm, unsigned slice, float *memory);

#endif /* KERNEL_GEMM_H */
