/*
 * Communication of a run over ranks: gradients, so that every rank has the same mean; the results
 * of an execution, so that every rank has those of all replicas; weights; sharded optimizer state;
 * agreement on failures; and one report of all ranks.
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

#include "common/fs.h"
#include "trainer/ranks/ranks.h"
#include "trainer/train_session.h"

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
enum status train_ranks_results(struct train_session *session, enum status status, struct err *err);

/* Measure how far this rank's wall clock is ahead of rank 0's, and the bound of the error. Uses
 * that no rank can have the result of a gather before all have sent their part. Called by all
 * ranks. */
struct train_clock {
	int64_t offset_ns, bound_ns;
};
enum status train_ranks_clock(struct ranks *ranks, struct train_clock *out, struct err *err);

/* Return ST_OK if @status is ST_OK on all ranks; else all return the status and text of the first
 * rank that failed. *others: rank 0 reports the error; @others may be NULL. */
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

/* ---- sharded optimizer state ----------------------------------------------------------------- */

/*
 * Sharded optimizer state: pipeline.replicated_optimizer_state_sharding, with several ranks.
 *
 * Each replica has the optimizer's variables for its share of a stage's trainable weights, and
 * updates only those weights; then all replicas exchange their shares. An element's update does not
 * depend on where shares end (with norms, at the end of a parameter), so the weights are the same
 * bytes as without sharding. A rank has the shares of its replicas, which form one range of the
 * stage.
 *
 * Threading: the workers of a stage call train_shard_publish() and train_shard_fetch(), each for
 * its replica, with a barrier in between; the main thread calls the other functions.
 */

/* Is the optimizer state sharded in this run? The value of session->sharded. */
bool train_shard_wanted(const struct ranks *ranks, const struct run_file *run,
			const struct optimizer *optimizer);

/* Set stage->own, the ranges that @replica updates, for each of its stages, and the floats of each
 * slot that they need. Without sharding these are all ranges. */
enum status train_shard_new(const struct train_session *session, struct train_replica *replica,
			    struct err *err);

/* Return the offset among @stage's weights of those that the replicas from @replica on update. */
size_t train_shard_offset(const struct train_session *session, const struct train_stage *stage,
			  int replica);

/* Copy the replica's updated share of the weights to session->reduced. */
void train_shard_publish(const struct train_session *session, const struct train_replica *replica,
			 int stage);

/* Copy all trainable weights of the stage from session->reduced. */
void train_shard_fetch(const struct train_session *session, const struct train_replica *replica,
		       int stage);

/* Between executions: copy the shares of the optimizer's variable @slot of this rank's replicas to
 * session->reduced, by weight; the rest is zeroed. */
void train_shard_publish_slot(const struct train_session *session, size_t slot);

/* Copy the replica's share of the optimizer's variable @slot from session->reduced. */
void train_shard_fetch_slot(const struct train_session *session,
			    const struct train_replica *replica, size_t slot);

/* ---- the report of all ranks ----------------------------------------------------------------- */

/*
 * One report of all ranks: at the end of a run rank 0 merges their databases, and fetches through
 * the transport those that it cannot see: on another machine, or below another folder.
 */

/*
 * Called by all ranks once their recordings are closed. @directory is this rank's; those of other
 * ranks are rank1, rank2, ... below rank 0's, and what rank 0 fetches is written there. @out
 * receives the path of the merged database, which rank 0 has. After a failure all ranks return the
 * same error, unless only the merge has failed.
 */
enum status train_ranks_report(struct ranks *ranks, const char *directory, const char *command,
			       char out[FS_PATH_SIZE], struct err *err);

#endif /* TRAIN_RANKS_H */
