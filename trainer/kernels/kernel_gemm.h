/*
 * Matrix products on the convolutions' tiles; and OpenBLAS, as their peer.
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

#include "common/err.h"
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

/* ---- OpenBLAS -------------------------------------------------------------------------------- */

/*
 * OpenBLAS, loaded only for a run that asks for its products (host.products).
 *
 * A program that is linked to it starts its threads and maps their buffers, 128 MB each, before
 * main(); if there is no memory for them, those threads retry for ever, and the program cannot end.
 */

/* Load the library, and let it allocate the buffers of @threads threads that multiply at the same
 * time. ST_UNSUPPORTED: it is not installed. Call before the threads that compute are started. */
enum status kernel_openblas_open(int threads, struct err *err);

/* Compute rows @row to @row + @rows and as many columns of @gemm's product, without finishing
 * them. kernel_openblas_open() must have succeeded. Thread safe. */
void kernel_openblas_multiply(const struct kernel_gemm *gemm, int64_t row, int64_t rows,
			      int64_t column, int64_t columns);

#endif /* KERNEL_GEMM_H */
