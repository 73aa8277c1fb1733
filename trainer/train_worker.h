/*
 * The worker of one simulated IPU: runs the stages placed on it, micro-batch by micro-batch, in the
 * order that the schedule gives.
 */
#ifndef TRAIN_WORKER_H
#define TRAIN_WORKER_H

#include "trainer/train_session.h"

/* The thread's function; @argument is the struct train_worker. Ends when session->stop is set. */
void *train_worker_main(void *argument);

#endif /* TRAIN_WORKER_H */
