/*
 * Sums of a block over ranks, as a weight update has them, beside MPI's own: started by mpirun,
 * bench_allreduce ours|mpi WORDS REPEATS. Rank 0 prints the median microseconds of one.
 *
 * ours: a slice of the block to each rank, each sums its own, and sends the sum to all, by the
 * thread that a training has for it. mpi: MPI_Allreduce on floats, in place.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/ranks/ranks.h"

struct block {
	struct ranks *ranks;
	struct ranks_pieces out, in, all;
	struct ranks_line line;
	struct ranks_reduction *reduction;
	float *values, *received;
	size_t words;
};

/* On the transport's thread, as in a training. */
static void sum_slices(void *user)
{
	const struct block *b = user;
	const int rank = ranks_rank(b->ranks);
	const size_t slice = (size_t)b->all.words[rank];
	float *own = b->values + b->all.at[rank];

	memcpy(own, b->received, slice * sizeof(*own));
	for (int r = 1; r < ranks_count(b->ranks); r++)
		kernel_add(own, b->received + slice * (size_t)r, slice);
}

static bool make_reduction(struct block *b)
{
	const struct ranks_reduction_params params = {.line = &b->line,
						      .out = &b->out,
						      .in = &b->in,
						      .all = &b->all,
						      .sum = sum_slices,
						      .user = b};
	const int rank = ranks_rank(b->ranks);
	const size_t slice =
		ranks_cut(b->ranks, b->words, rank + 1) - ranks_cut(b->ranks, b->words, rank);
	struct err err;

	if (ranks_pieces_new(&b->out, b->ranks, b->values, &err) != ST_OK ||
	    ranks_pieces_new(&b->in, b->ranks, b->received, &err) != ST_OK ||
	    ranks_pieces_new(&b->all, b->ranks, b->values, &err) != ST_OK)
		return false;
	for (int r = 0; r < ranks_count(b->ranks); r++) {
		b->out.at[r] = b->all.at[r] = (int)ranks_cut(b->ranks, b->words, r);
		b->out.words[r] = b->all.words[r] =
			(int)ranks_cut(b->ranks, b->words, r + 1) - b->out.at[r];
		b->in.at[r] = (int)(slice * (size_t)r);
		b->in.words[r] = (int)slice;
	}
	return ranks_channels(b->ranks, 2, &err) == ST_OK &&
	       ranks_reduction_new(&b->reduction, &params, &err) == ST_OK;
}

static void sum_ours(struct block *b)
{
	ranks_reduce(b->ranks, b->reduction);
	ranks_reduce_wait(b->ranks, b->reduction);
}

static void sum_mpi(struct block *b)
{
	MPI_Allreduce(MPI_IN_PLACE, b->values, (int)b->words, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	const bool ours = argc == 4 && strcmp(argv[1], "ours") == 0;
	const int repeats = argc == 4 ? atoi(argv[3]) : 0;
	struct block b = {.words = argc == 4 ? (size_t)atoll(argv[2]) : 0};
	double *us = mem_calloc((size_t)repeats + 1, sizeof(*us));
	struct err err;
	int rank = 0;

	b.values = mem_aligned(b.words + 1, sizeof(float));
	b.received = mem_aligned(2 * b.words + 64, sizeof(float));
	if (argc != 4 || repeats < 1 || !us || !b.values || !b.received)
		return 2;
	if (ours && (ranks_open(&b.ranks, &err) != ST_OK || !b.ranks || !make_reduction(&b)))
		return 1;
	if (!ours)
		MPI_Init(NULL, NULL);
	if (!ours)
		MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	else
		rank = ranks_rank(b.ranks);
	for (int i = 0; i < repeats; i++) {
		const uint64_t from = clock_ns();

		(ours ? sum_ours : sum_mpi)(&b);
		us[i] = (double)(clock_ns() - from) / 1e3;
	}
	qsort(us, (size_t)repeats, sizeof(*us), compare);
	if (rank == 0)
		printf("%.1f\n", us[repeats / 2]);
	ranks_close(b.ranks);
	if (!ours)
		MPI_Finalize();
	return 0;
}
