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
#ifndef TRAIN_SHARD_H
#define TRAIN_SHARD_H

#include "trainer/train_session.h"

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

/* Between executions, called by all ranks: gather the shares of the optimizer's variable @slot of
 * all replicas in session->reduced, by weight. */
void train_shard_gather_slot(struct train_session *session, size_t slot);

/* Copy the replica's share of the optimizer's variable @slot from session->reduced. */
void train_shard_fetch_slot(const struct train_session *session,
			    const struct train_replica *replica, size_t slot);

#endif /* TRAIN_SHARD_H */
