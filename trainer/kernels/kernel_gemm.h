/*
 * Matrix products on the convolutions' tiles.
 *
 * Row-major float32. An element's sum begins at 0 and runs over k from first to last with fused
 * multiply-adds, whatever the shape, the instruction set and the number of threads: the same bytes
 * everywhere. kernel_gemm.openblas asks OpenBLAS instead, whose order of sums is its own and
 * depends on the processor. Nothing is allocated: the caller gives scratch. Thread safe.
 */
#ifndef KERNEL_GEMM_H
#define KERNEL_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/kernels/kernel_conv.h"

/* C[m,n] = op(A)[m,k] op(B)[k,n]; C is overwritten, whatever was in it. */
struct kernel_gemm {
	bool transpose_a, transpose_b; /* A is stored [k,m]; B is stored [n,k] */
	int64_t m, n, k;               /* each at most INT32_MAX; 0 is allowed */
	const float *a, *b;
	float *c;
	int64_t lda, ldb, ldc;            /* floats from row to row as stored */
	struct kernel_conv_finish finish; /* only where nothing is transposed */
	bool openblas;                    /* only where kernel_gemm_has_openblas() */
};

/* Bytes of scratch for any product, on a 64-byte line. */
size_t kernel_gemm_scratch(unsigned lanes);
void kernel_gemm(const struct kernel_gemm *gemm, const struct kernel_room *room);

/*
 * The same slice by slice, for a caller that shares out several things in one run: each slice
 * writes a part of C, with the scratch of its lane, KERNEL_GEMM_LANE floats. The caller tells the
 * watch itself that all is known.
 */
#define KERNEL_GEMM_LANE 281632
unsigned kernel_gemm_slices(const struct kernel_gemm *gemm);
uint64_t kernel_gemm_work(const struct kernel_gemm *gemm); /* as in kernel_work.h */
void kernel_gemm_slice(const struct kernel_gemm *gemm, unsigned slice, float *memory);

/* Was this program built with OpenBLAS? */
bool kernel_gemm_has_openblas(void);

#endif /* KERNEL_GEMM_H */
