/*
 * A replica's blocks and its stages.
 */
#ifndef TRAIN_REPLICA_H
#define TRAIN_REPLICA_H

#include "trainer/train_session.h"

/* session->replica[number], zeroed before; with Keras's initial weights. */
enum status train_replica_init(struct train_session *session, int number, struct err *err);
void train_replica_fini(const struct train_session *session, struct train_replica *replica);

/* After any change of @replica's weights but a worker's update: layers that compute in half read a
 * rounded copy. No worker may be at work. */
void train_replica_round(const struct train_session *session, struct train_replica *replica);

/* Pipeline runs of the execution that all workers of @replica have done but for the update: their
 * intervals are there. */
int64_t train_replica_runs_done(const struct train_session *session, int replica);

/* What one will take, before any is made: schedules and what is compiled must be there. INFINITY:
 * beyond what can be counted. */
double train_replica_bytes(const struct train_session *session);

#endif /* TRAIN_REPLICA_H */
