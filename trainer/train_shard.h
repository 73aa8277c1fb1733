/*
 * Sharded optimizer state: pipeline.replicated_optimizer_state_sharding, where ranks train
 * together.
 *
 * Each replica keeps the optimizer's variables of its share of what a stage learns, and updates the
 * weights of that share alone; then all shares go to all replicas. An element's update does not
 * depend on where shares end (those of optimizers with norms end with a parameter), so the weights
 * are the same bytes as without. Shares are by replica, a rank has those of its replicas: one range
 * of the stage.
 *
 * Threading: train_shard_publish() and train_shard_take() by the workers of a stage, each for its
 * replica, with a barrier in between; the rest by the main thread.
 */
#ifndef TRAIN_SHARD_H
#define TRAIN_SHARD_H

#include "trainer/train_session.h"

/* What session->sharded is. */
bool train_shard_wanted(const struct ranks *ranks, const struct run_file *run,
			const struct optimizer *optimizer);

/* What @replica updates of each of its stages, stage->own, and the floats of each slot that this
 * takes: without sharding all. */
enum status train_shard_new(const struct train_session *session, struct train_replica *replica,
			    struct err *err);

/* Where, among @stage's weights, what the replicas from @replica on update begins. */
size_t train_shard_at(const struct train_session *session, const struct train_stage *stage,
		      int replica);

/* The replica's new weights of its share, into session->reduced. */
void train_shard_publish(const struct train_session *session, const struct train_replica *replica,
			 int stage);

/* All that the stage has learnt, from there. */
void train_shard_take(const struct train_session *session, const struct train_replica *replica,
		      int stage);

#endif /* TRAIN_SHARD_H */
