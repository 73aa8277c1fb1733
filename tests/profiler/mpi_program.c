/*
 * A program that calls MPI, for mpi_layer.sh: every rank but 0 sends 1,000 bytes to rank 0; then
 * five times an all-reduce and a broadcast of 4,000 bytes and, in two halves, a barrier begun and
 * one waited for. At the end rank 0 and the others exchange 40 bytes a rank through an
 * intercommunicator; a barrier of each communicator that there is a way to make; eight threads, one
 * after the other, each with a barrier of its own. Own spans stand beside the calls.
 */
#include <ipuscope/mpi.h>
#include <mpi.h>
#include <pthread.h>
#include <stddef.h>

#pragma weak ips_mpi_recording

static void meet(int made, MPI_Comm *comm)
{
	if (made != MPI_SUCCESS)
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Barrier(*comm);
	MPI_Comm_free(comm);
}

/* Counts are as many as the remote group has ranks; those behind them must not be read. */
static void exchange_between(int rank)
{
	static const int of_first[] = {10, 10, 10}, of_others[] = {10, 777, 777, 777};
	static const int at[] = {0, 10, 20};
	static float mine[30], all[30];
	MPI_Comm side, between, all_of_both;

	PMPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &side);
	MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, rank == 0 ? 1 : 0, 0, &between);
	MPI_Allgatherv(mine, 10, MPI_FLOAT, all, rank == 0 ? of_first : of_others, at, MPI_FLOAT,
		       between);
	/* Only the root's counts are significant; a receiver's root is a rank of the other group. */
	MPI_Scatterv(mine, rank == 0 ? of_first : NULL, at, MPI_FLOAT, all, 10, MPI_FLOAT,
		     rank == 0 ? MPI_ROOT : 0, between);
	meet(MPI_Intercomm_merge(between, rank == 0, &all_of_both), &all_of_both);
	MPI_Comm_free(&between);
	PMPI_Comm_free(&side);
}

/* Of a ring, for those that have neighbours. */
static void make_communicators(int rank)
{
	static const int ends[] = {1, 2, 3, 4}, partners[] = {1, 0, 3, 2};
	const int next = (rank + 1) % 4, before = (rank + 3) % 4, one = 1;
	MPI_Comm all = MPI_COMM_WORLD, copy, made;
	MPI_Request request;

	MPI_Comm_dup(all, &copy);
	meet(MPI_Comm_dup_with_info(copy, MPI_INFO_NULL, &made), &made);
	meet(MPI_SUCCESS, &copy);
	MPI_Comm_idup(all, &made, &request);
	meet(MPI_Wait(&request, MPI_STATUS_IGNORE), &made);
	meet(MPI_Graph_create(all, 4, ends, partners, 0, &made), &made);
	meet(MPI_Dist_graph_create(all, 1, &rank, &one, &next, &one, MPI_INFO_NULL, 0, &made),
	     &made);
	meet(MPI_Dist_graph_create_adjacent(all, 1, &before, &one, 1, &next, &one, MPI_INFO_NULL, 0,
					    &made),
	     &made);
}

static void *meet_alone(void *unused)
{
	MPI_Barrier(MPI_COMM_SELF);
	return unused;
}

static void start_threads(void)
{
	pthread_t thread;

	for (int i = 0; i < 8; i++)
		if (pthread_create(&thread, NULL, meet_alone, NULL) == 0)
			pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	IPS_SITE(own, "tiny", "own work");
	struct ips_track *track;
	static char letters[1000];
	static float mine[1000], sum[1000];
	int rank, ranks, provided;
	MPI_Comm half;
	MPI_Request request;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	track = ips_track_open(ips_mpi_recording ? ips_mpi_recording() : NULL, "own", NULL);
	for (int r = 1; r < ranks && rank == 0; r++)
		MPI_Recv(letters, 1000, MPI_CHAR, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	if (rank > 0)
		MPI_Send(letters, 1000, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	for (int i = 0; i < 5; i++) {
		ips_span_begin(track, &own);
		for (int k = 0; k < 1000; k++)
			mine[k] = (float)(rank + i);
		ips_span_end(track);
		MPI_Allreduce(mine, sum, 1000, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		MPI_Bcast(sum, 1000, MPI_FLOAT, 1, MPI_COMM_WORLD);
		MPI_Ibarrier(half, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		MPI_Barrier(half);
		if (sum[0] != (float)(ranks * (ranks - 1) / 2 + ranks * i))
			return 1;
	}
	MPI_Comm_free(&half);
	if (ranks == 4) {
		exchange_between(rank);
		make_communicators(rank);
	}
	start_threads();
	MPI_Finalize();
	return 0;
}
