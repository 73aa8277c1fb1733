/*
 * The ranks of a run: processes that a launcher of MPI (mpirun, srun) has started together.
 *
 * A dedicated thread calls the transport, so that operations progress while other threads compute.
 * Any other thread posts an operation and waits for its end. Operations of one channel are posted
 * in the same order on all ranks, those of different channels in any order. A NULL pointer always
 * means a single process: rank 0 of 1, for which operations do nothing.
 */
#ifndef RANKS_H
#define RANKS_H

#include "common/err.h"
#include "trainer/ranks/transport.h"

struct ranks;

/* Has a launcher started this process, even if it is the only one? */
bool ranks_launched(void);

/* Join the other ranks and create channel 0. NULL in *out: there are none. */
enum status ranks_open(struct ranks **out, struct err *err);
void ranks_close(struct ranks *ranks); /* called by all ranks; accepts NULL */

int ranks_rank(const struct ranks *ranks);
int ranks_count(const struct ranks *ranks);
const char *ranks_transport_name(const struct ranks *ranks); /* "Open MPI v4.1.4"; NULL if alone */

/* Called by all ranks: create channels up to @count - 1. */
enum status ranks_channels(struct ranks *ranks, int count, struct err *err);

/* Called by all ranks: enable heartbeats. From now on, if a rank's transport thread sends none for
 * @timeout_s seconds, the run is aborted on all ranks with a line that names it. 0: disabled. */
void ranks_watch(struct ranks *ranks, int64_t timeout_s);

/* Partition @count numbers: @rank has those from ranks_cut(rank) to below ranks_cut(rank + 1). */
size_t ranks_cut(const struct ranks *ranks, size_t count, int rank);

/* Allocate one empty piece of the block @base for each rank. @out is zeroed before: fini is
 * safe. */
enum status ranks_pieces_new(struct ranks_pieces *out, const struct ranks *ranks, void *base,
			     struct err *err);
void ranks_pieces_fini(struct ranks_pieces *pieces);

void ranks_exchange(struct ranks *ranks, int channel, const struct ranks_pieces *send,
		    const struct ranks_pieces *receive);
void ranks_gather(struct ranks *ranks, int channel, const struct ranks_pieces *all);
void ranks_broadcast(struct ranks *ranks, int channel, void *data, size_t bytes); /* whole words */

/*
 * A sum over ranks that progresses while others compute: an exchange, then sum() on the transport's
 * thread, then a gather of its result, unless @all is NULL. The reductions of one line begin in the
 * same order on all ranks.
 */
struct ranks_line {
	int channel;           /* of the exchanges; gathers use the next one */
	int64_t begun, gather; /* counts, used by ranks.c only */
};
struct ranks_reduction;
struct ranks_reduction_params {
	struct ranks_line *line;
	const struct ranks_pieces *out, *in, *all;
	void (*sum)(void *user);
	void *user;
};
struct ranks_times {
	uint64_t begun_ns, exchanged_ns, summed_ns, ended_ns; /* clock_ns() */
};
enum status ranks_reduction_new(struct ranks_reduction **out,
				const struct ranks_reduction_params *params, struct err *err);
void ranks_reduction_free(struct ranks_reduction *reduction); /* accepts NULL; not in progress */
void ranks_reduce(struct ranks *ranks, struct ranks_reduction *reduction); /* returns at once */
/* Wait until sum() has returned, and get the times so far; wait for the end of the reduction. */
const struct ranks_times *ranks_reduce_summed(struct ranks *ranks,
					      struct ranks_reduction *reduction);
void ranks_reduce_wait(struct ranks *ranks, struct ranks_reduction *reduction);

/* Abort all ranks. */
void ranks_abort(struct ranks *ranks, int code);

#endif /* RANKS_H */
