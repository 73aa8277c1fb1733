/*
 * OpenBLAS, loaded only for a run that asks for its products (host.products).
 *
 * A program that is linked to it starts its threads and maps their buffers, 128 MB each, before
 * main(); if there is no memory for them, those threads retry for ever, and the program cannot end.
 */
#ifndef KERNEL_OPENBLAS_H
#define KERNEL_OPENBLAS_H

#include "common/err.h"
#include "trainer/kernels/kernel_gemm.h"

/* Load the library, and let it allocate the buffers of @threads threads that multiply at the same
 * time. ST_UNSUPPORTED: it is not installed. Call before the threads that compute are started. */
enum status kernel_openblas_open(int threads, struct err *err);

/* Compute rows @row to @row + @rows and as many columns of @gemm's product, without finishing
 * them. kernel_openblas_open() must have succeeded. Thread safe. */
void kernel_openblas_multiply(const struct kernel_gemm *gemm, int64_t row, int64_t rows,
			      int64_t column, int64_t columns);

#endif /* KERNEL_OPENBLAS_H */
