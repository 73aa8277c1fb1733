/*
 * The transport over MPI: compiled once for each implementation.
 *
 * Uses MPI_Ialltoallv and similar instead of MPI_Iallreduce, which chooses the order of additions
 * itself; here the program determines the order of sums.
 */
#include "trainer/ranks/transport.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static MPI_Comm *communicators;
static int communicator_count;

_Static_assert(sizeof(MPI_Request) <= sizeof(uint64_t), "a request does not fit its handle");

static void store_request(MPI_Request request, struct ranks_request *out)
{
	out->handle = 0;
	memcpy(&out->handle, &request, sizeof(request));
}

static int mpi_start(int *rank, int *count, char *name, size_t room)
{
	char version[MPI_MAX_LIBRARY_VERSION_STRING];
	int provided, length;

	if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS ||
	    provided < MPI_THREAD_FUNNELED || MPI_Comm_rank(MPI_COMM_WORLD, rank) != MPI_SUCCESS ||
	    MPI_Comm_size(MPI_COMM_WORLD, count) != MPI_SUCCESS ||
	    MPI_Get_library_version(version, &length) != MPI_SUCCESS)
		return 1;
	version[strcspn(version, ",\n")] = '\0';
	for (char *c = version; *c; c++)
		if (*c == '\t')
			*c = ' ';
	snprintf(name, room, "%s", version);
	return 0;
}

static int mpi_channel(int number, struct ranks_request *out)
{
	MPI_Comm *more = realloc(communicators, ((size_t)number + 1) * sizeof(*more));
	MPI_Request request;

	if (!more)
		return 1;
	communicators = more;
	communicator_count = number + 1;
	MPI_Comm_idup(MPI_COMM_WORLD, &communicators[number], &request);
	store_request(request, out);
	return 0;
}

static void mpi_exchange(int channel, const struct ranks_pieces *send,
			 const struct ranks_pieces *receive, struct ranks_request *out)
{
	MPI_Request request;

	MPI_Ialltoallv(send->base, send->words, send->at, MPI_INT32_T, receive->base,
		       receive->words, receive->at, MPI_INT32_T, communicators[channel], &request);
	store_request(request, out);
}

static void mpi_gather(int channel, const struct ranks_pieces *all, struct ranks_request *out)
{
	MPI_Request request;

	MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_INT32_T, all->base, all->words, all->at, MPI_INT32_T,
			communicators[channel], &request);
	store_request(request, out);
}

static void mpi_broadcast(int channel, void *data, int words, struct ranks_request *out)
{
	MPI_Request request;

	MPI_Ibcast(data, words, MPI_INT32_T, 0, communicators[channel], &request);
	store_request(request, out);
}

static void mpi_send(int rank, const int32_t *word, struct ranks_request *out)
{
	MPI_Request request;

	MPI_Isend(word, 1, MPI_INT32_T, rank, 0, MPI_COMM_WORLD, &request);
	store_request(request, out);
}

static void mpi_receive(int rank, int32_t *word, struct ranks_request *out)
{
	MPI_Request request;

	MPI_Irecv(word, 1, MPI_INT32_T, rank, 0, MPI_COMM_WORLD, &request);
	store_request(request, out);
}

static bool mpi_done(struct ranks_request *out)
{
	MPI_Request request;
	int done = 0;

	memcpy(&request, &out->handle, sizeof(request));
	MPI_Test(&request, &done, MPI_STATUS_IGNORE);
	store_request(request, out);
	return done;
}

/* Wait, for at most two seconds, until the launcher has read this process's messages: after an
 * abort mpiexec of MPICH does not read what is still in the pipe. */
static void wait_for_reader(void)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	struct stat messages;
	int unread = 0;

	if (fstat(STDERR_FILENO, &messages) != 0 || !S_ISFIFO(messages.st_mode))
		return;
	for (int i = 0; i < 2000; i++) {
		if (ioctl(STDERR_FILENO, FIONREAD, &unread) != 0 || unread == 0)
			return;
		nanosleep(&pause, NULL);
	}
}

static void mpi_abort(int code)
{
	wait_for_reader();
	MPI_Abort(MPI_COMM_WORLD, code);
}

/* The barrier lets all ranks finalize at the same time: over UCX's TCP, MPICH waits in MPI_Finalize
 * for an answer of a rank that has gone on to wait for the launcher, and no longer answers. */
static void mpi_finish(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < communicator_count; i++)
		MPI_Comm_free(&communicators[i]);
	free(communicators);
	MPI_Finalize();
}

extern const struct ranks_transport ipuscope_ranks_transport;
__attribute__((visibility("default"))) const struct ranks_transport ipuscope_ranks_transport = {
	.version = RANKS_TRANSPORT_VERSION,
	.start = mpi_start,
	.channel = mpi_channel,
	.exchange = mpi_exchange,
	.gather = mpi_gather,
	.broadcast = mpi_broadcast,
	.send = mpi_send,
	.receive = mpi_receive,
	.done = mpi_done,
	.abort = mpi_abort,
	.finish = mpi_finish,
};
