/*
 * The ranks of a run: processes that a launcher of MPI (mpirun, srun) has started together.
 *
 * One thread of its own talks to the transport, so that operations go on while the others compute.
 * Any other thread posts an operation and waits for its end; operations of one channel are posted
 * in the same order on all ranks, those of different channels in any. NULL stands everywhere for a
 * process that is alone: rank 0 of 1, for which operations have nothing to do.
 */
#ifndef RANKS_H
#define RANKS_H

#include "common/err.h"
#include "trainer/ranks/transport.h"

struct ranks;

/* A launcher has started this process, be it alone. */
bool ranks_launched(void);

/* NULL in *out: no launcher has started this process. The channel 0 is there. */
enum status ranks_open(struct ranks **out, struct err *err);
void ranks_close(struct ranks *ranks); /* all ranks do; accepts NULL */

int ranks_rank(const struct ranks *ranks);
int ranks_count(const struct ranks *ranks);
const char *ranks_transport_name(const struct ranks *ranks); /* "Open MPI v4.1.4"; alone: NULL */

/* By all ranks: channels 0 to @count - 1 are there. */
enum status ranks_channels(struct ranks *ranks, int count, struct err *err);

/* By all ranks: from now on a rank whose thread for the transport sends no sign of life for
 * @timeout_s seconds ends the run on all of them, with a line that names it. 0: none is
 * expected. */
void ranks_watch(struct ranks *ranks, int64_t timeout_s);

/* Of @count numbered things @rank has those from ranks_cut(rank) to before ranks_cut(rank + 1). */
size_t ranks_cut(const struct ranks *ranks, size_t count, int rank);

/* One empty piece for each rank, of the block at @base; zeroed before, so that fini is safe. */
enum status ranks_pieces_new(struct ranks_pieces *out, const struct ranks *ranks, void *base,
			     struct err *err);
void ranks_pieces_fini(struct ranks_pieces *pieces);

void ranks_exchange(struct ranks *ranks, int channel, const struct ranks_pieces *send,
		    const struct ranks_pieces *receive);
void ranks_gather(struct ranks *ranks, int channel, const struct ranks_pieces *all);
void ranks_broadcast(struct ranks *ranks, int channel, void *data, size_t bytes); /* whole words */

/*
 * A sum over ranks that goes on while others compute: an exchange, then sum() by the thread for the
 * transport, then a gather of what it has made, unless @all is NULL. Of one line they are begun in
 * the same order on all ranks.
 */
struct ranks_line {
	int channel;           /* of the exchanges; the next one is the gathers' */
	int64_t begun, gather; /* how many: ranks.c's own */
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
void ranks_reduction_free(struct ranks_reduction *reduction); /* accepts NULL; not under way */
void ranks_reduce(struct ranks *ranks, struct ranks_reduction *reduction); /* returns at once */
/* Until sum() is over, with the times so far; until all is. */
const struct ranks_times *ranks_reduce_summed(struct ranks *ranks,
					      struct ranks_reduction *reduction);
void ranks_reduce_wait(struct ranks *ranks, struct ranks_reduction *reduction);

/* End all ranks at once. */
void ranks_abort(struct ranks *ranks, int code);

#endif /* RANKS_H */
