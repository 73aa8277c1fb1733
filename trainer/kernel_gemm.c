/*
 * Matrix products: how they are cut, and the body that OpenBLAS gives.
 *
 * OpenBLAS's own threads are switched off once: they cut by the number of threads, which changes
 * the order of sums. Any number of our threads may call it at once.
 */
#include "trainer/kernel_gemm.h"

#include <assert.h>
#include <limits.h>

#ifndef IPUSCOPE_PORTABLE_GEMM
#include <cblas.h>
#include <pthread.h>
#endif

#define GEMM_GRAIN      3000000 /* floating-point operations that pay for a slice of their own */
#define GEMM_LEAST_SIDE 32      /* rows or columns of a tile: less wastes the inner kernel */
#define GEMM_ALIGN      16      /* tile borders: floats of a cache line */

#ifdef IPUSCOPE_PORTABLE_GEMM

const char *kernel_gemm_body(void)
{
	return "portable";
}

void kernel_gemm(const struct kernel_gemm *gemm)
{
	kernel__gemm_portable(gemm);
}

#else

static void gemm_one_thread(void)
{
	openblas_set_num_threads(1);
}

const char *kernel_gemm_body(void)
{
	return "OpenBLAS";
}

void kernel_gemm(const struct kernel_gemm *g)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	assert(g->m <= INT_MAX && g->n <= INT_MAX && g->k <= INT_MAX);
	assert(g->lda <= INT_MAX && g->ldb <= INT_MAX && g->ldc <= INT_MAX);
	pthread_once(&once, gemm_one_thread);
	cblas_sgemm(CblasRowMajor, g->transpose_a ? CblasTrans : CblasNoTrans,
		    g->transpose_b ? CblasTrans : CblasNoTrans, (int)g->m, (int)g->n, (int)g->k,
		    1.0f, g->a, (int)g->lda, g->b, (int)g->ldb, 0.0f, g->c, (int)g->ldc);
}

#endif

static int64_t gemm_least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Cut @length into about @wanted pieces; returns how many, and their length in *@step. */
static unsigned gemm_cut(int64_t length, int64_t wanted, int64_t *step)
{
	int64_t pieces = gemm_least(wanted, length / GEMM_LEAST_SIDE);

	if (pieces < 1)
		pieces = 1;
	*step = (length + pieces - 1) / pieces;
	if (pieces > 1)
		*step = (*step + GEMM_ALIGN - 1) / GEMM_ALIGN * GEMM_ALIGN;
	if (*step < 1)
		*step = 1;
	return (unsigned)((length + *step - 1) / *step);
}

struct kernel_grid kernel_gemm_grid(int64_t m, int64_t n, int64_t k)
{
	double flops = 2.0 * (double)m * (double)n * (double)k;
	int64_t wanted = flops / GEMM_GRAIN > KERNEL_GEMM_SLICES ? KERNEL_GEMM_SLICES
								 : (int64_t)(flops / GEMM_GRAIN);
	struct kernel_grid grid;

	/* The longer side first: its tiles share the operand that is packed for each. */
	if (n > m) {
		grid.columns = gemm_cut(n, wanted, &grid.column_step);
		grid.rows = gemm_cut(m, wanted / (grid.columns ? grid.columns : 1), &grid.row_step);
	} else {
		grid.rows = gemm_cut(m, wanted, &grid.row_step);
		grid.columns = gemm_cut(n, wanted / (grid.rows ? grid.rows : 1), &grid.column_step);
	}
	return grid;
}

unsigned kernel_grid_slices(const struct kernel_grid *grid)
{
	return grid->rows * grid->columns;
}

struct kernel_tile kernel_grid_tile(const struct kernel_grid *grid, int64_t m, int64_t n,
				    unsigned slice)
{
	struct kernel_tile tile = {
		.row = slice / grid->columns * grid->row_step,
		.column = slice % grid->columns * grid->column_step,
	};

	assert(slice < kernel_grid_slices(grid));
	tile.rows = gemm_least(grid->row_step, m - tile.row);
	tile.columns = gemm_least(grid->column_step, n - tile.column);
	return tile;
}

void kernel_gemm_tile(const struct kernel_gemm *gemm, const struct kernel_tile *tile)
{
	struct kernel_gemm part = *gemm;

	part.m = tile->rows;
	part.n = tile->columns;
	part.a += gemm->transpose_a ? tile->row : tile->row * gemm->lda;
	part.b += gemm->transpose_b ? tile->column * gemm->ldb : tile->column;
	part.c += tile->row * gemm->ldc + tile->column;
	kernel_gemm(&part);
}
