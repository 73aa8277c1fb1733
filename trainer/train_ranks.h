/*
 * Communication of a run over ranks: gradients, so that every rank has the same mean; the results
 * of an execution, so that every rank has those of all replicas; weights; and agreement on
 * failures.
 *
 * A rank has a range of the replicas. It sums them up to the largest complete branches of the tree
 * (common/tree.h), sends each rank a slice of these, sums its own slice over all branches in the
 * tree's order and sends the mean back. This moves about as many bytes as a ring, but the order of
 * sums does not depend on the ranks, so the result has the bytes of a single process.
 *
 * Threading: any worker of the stage calls train_ranks_arrive(), one of them train_ranks_wait()
 * with the others at a barrier behind it; the main thread calls all other functions. The main
 * thread uses channel 0, stage s the two from 2 s + 1 on.
 */
#ifndef TRAIN_RANKS_H
#define TRAIN_RANKS_H

#include "trainer/ranks/ranks.h"

struct ips_track;
struct train_session;
struct train_phase;
struct train_exchange; /* of one stage */

/* Set session->replicas and first_replica; there are at most as many ranks as replicas. */
void train_ranks_share(struct train_session *session);

/* Create the channels and session->exchange, one for each stage; does nothing for a single
 * process. */
enum status train_ranks_new(struct train_session *session, struct err *err);
void train_ranks_free(struct train_session *session);

/*
 * A stage's gradients are sent in buckets, beginning at its end, each as soon as all replicas of
 * this rank have it: while earlier layers still run their backward pass. Buckets have the same
 * ranges on all ranks, and each replica completes them in order.
 */
struct train_bucket_range {
	size_t first, count; /* of the stage's weights */
	int layer;           /* the last layer, in order of backward passes, that writes into it */
};
int train_ranks_buckets(const struct train_session *session, int stage);
const struct train_bucket_range *train_ranks_bucket(const struct train_session *session, int stage,
						    int bucket);

/* Call when a replica's gradients of @bucket are accumulated. The last replica sends them. */
void train_ranks_arrive(struct train_session *session, int stage, int bucket);

/* Wait, after all replicas' arrivals, until @stage's range of session->reduced is the mean over all
 * replicas; with sharded optimizer state only what this rank's replicas update, unless a norm needs
 * all. The waits are recorded as spans of @track (NULL: not), with the hidden time as hidden_ns. */
void train_ranks_wait(struct train_session *session, int stage, struct ips_track *track);

/* Gather @stage's range of session->reduced: each rank's part goes to all. */
void train_ranks_gather(struct train_session *session, int stage, struct ips_track *track);

/* Gather the execution's results of all replicas, and whether any rank was interrupted. @status is
 * this rank's; if any is not ST_OK, all ranks return the first such one, with its text. */
enum status train_ranks_results(struct train_phase *phase, enum status status, struct err *err);

/* Measure how far this rank's wall clock is ahead of rank 0's, and the bound of the error. Uses
 * that no rank can have the result of a gather before all have sent their part. Called by all
 * ranks. */
struct train_clock {
	int64_t offset_ns, bound_ns;
};
enum status train_ranks_clock(struct ranks *ranks, struct train_clock *out, struct err *err);

/* Return ST_OK if @status is ST_OK on all ranks; else all return the status and text of the first
 * rank that failed. *others: rank 0 reports the error. */
enum status train_ranks_agree(struct ranks *ranks, enum status status, bool *others,
			      struct err *err);

/* Agree as train_ranks_agree(), and note in the session that all ranks know of a failure. */
enum status train_ranks_fail_together(struct train_session *session, enum status status,
				      struct err *err);

/* Replace each of @counts by its sum over the ranks. */
enum status train_ranks_add(struct ranks *ranks, int64_t *counts, size_t count, struct err *err);

/* Check that all ranks have the same @text, which identifies run and version. *others: see
 * above. */
enum status train_ranks_same(struct ranks *ranks, const char *text, bool *others, struct err *err);

/* Broadcast rank 0's bytes. The caller frees *@bytes with mem_free(); it is NULL on the other ranks
 * before, and everywhere if rank 0 has none. */
enum status train_ranks_share_bytes(struct ranks *ranks, char **bytes, size_t *length,
				    struct err *err);

/* Pass the bytes of each other rank that has any, in order, to rank 0's @take. */
enum status train_ranks_collect(struct ranks *ranks, const void *bytes, size_t length,
				void (*take)(void *user, const void *bytes, size_t length),
				void *user, struct err *err);

/* Broadcast the weights of rank 0's first replica to each rank's @weights. */
void train_ranks_weights(struct train_session *session, float *weights);

#endif /* TRAIN_RANKS_H */
