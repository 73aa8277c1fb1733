/*
 * What a run spread over ranks exchanges: gradients, so that every rank has the same mean; results
 * of an execution, so that every rank has those of all replicas; weights; and whether all go on.
 *
 * A rank has a range of the replicas. It sums what it has up to the greatest branches of the tree
 * (common/tree.h) that are whole, sends each rank a slice of them, sums its own slice of all
 * branches in the tree's order and sends the mean back: about as many bytes as a ring moves, in an
 * order of sums that is the run's own. So the bytes are those of one process.
 *
 * Threading: train_ranks_arrive() by any worker of the stage, train_ranks_wait() by one of them,
 * the others at a barrier behind it; all else by the main thread, which is channel 0 (stage s: the
 * two from 2 s + 1 on).
 */
#ifndef TRAIN_RANKS_H
#define TRAIN_RANKS_H

#include "trainer/ranks/ranks.h"

struct ips_track;
struct train_session;
struct train_phase;
struct train_exchange; /* of one stage */

/* session->replicas and its first; there are no more ranks than replicas. */
void train_ranks_share(struct train_session *session);

/* Channels, and session->exchange, one for each stage; nothing where the process is alone. */
enum status train_ranks_new(struct train_session *session, struct err *err);
void train_ranks_free(struct train_session *session);

/*
 * A stage's gradients go out in buckets, from its end on, each as soon as all replicas of this rank
 * have theirs: while the layers before still have their backward pass. The same range is a bucket
 * on all ranks, and in each replica they are completed in their order.
 */
struct train_bucket_range {
	size_t first, count; /* of the stage's weights */
	int layer;           /* the last one whose backward pass writes into it */
};
int train_ranks_buckets(const struct train_session *session, int stage);
const struct train_bucket_range *train_ranks_bucket(const struct train_session *session, int stage,
						    int bucket);

/* A replica's gradients of @bucket are accumulated. Who comes last sends them. */
void train_ranks_arrive(struct train_session *session, int stage, int bucket);

/* After all replicas' arrivals: @stage's range of session->reduced is the mean over all replicas;
 * with sharded optimizer state, unless a norm needs all, what this rank's replicas update. What is
 * waited for are spans of @track (NULL: nothing is recorded), with what was hidden as hidden_ns. */
void train_ranks_wait(struct train_session *session, int stage, struct ips_track *track);

/* What each rank has of @stage's range of session->reduced goes to all. */
void train_ranks_gather(struct train_session *session, int stage, struct ips_track *track);

/* The execution's results of all replicas, and whether any rank was interrupted. @status: this
 * rank's; where any is not ST_OK, the first such one, and its text, are all ranks'. */
enum status train_ranks_results(struct train_phase *phase, enum status status, struct err *err);

/* How far this rank's wall clock is ahead of rank 0's, and how far that may be wrong: nobody has a
 * gather's words before all have sent theirs. By all ranks. */
struct train_clock {
	int64_t offset_ns, bound_ns;
};
enum status train_ranks_clock(struct ranks *ranks, struct train_clock *out, struct err *err);

/* ST_OK where @status is on all ranks; else the first one's that is not, and its text, on all.
 * *others: rank 0 says it. */
enum status train_ranks_agree(struct ranks *ranks, enum status status, bool *others,
			      struct err *err);

/* Each of @counts becomes its sum over the ranks. */
enum status train_ranks_add(struct ranks *ranks, int64_t *counts, size_t count, struct err *err);

/* All ranks have the same run and version: @text tells them apart. *others: rank 0 says it. */
enum status train_ranks_same(struct ranks *ranks, const char *text, bool *others, struct err *err);

/* Rank 0's bytes to all ranks; *@bytes is the caller's (mem_free()). NULL, as on all others before:
 * there are none. */
enum status train_ranks_share_bytes(struct ranks *ranks, char **bytes, size_t *length,
				    struct err *err);

/* What each of the other ranks has is handed to rank 0's @take, in their order. */
enum status train_ranks_collect(struct ranks *ranks, const void *bytes, size_t length,
				void (*take)(void *user, const void *bytes, size_t length),
				void *user, struct err *err);

/* The first replica's weights, rank 0's, to all ranks' first one. */
void train_ranks_weights(struct train_session *session, float *weights);

#endif /* TRAIN_RANKS_H */
