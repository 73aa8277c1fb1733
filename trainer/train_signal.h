/*
 * A number that only grows, and threads that wait for it: how the workers hand micro-batches over.
 *
 * A waiter looks for a few microseconds before it sleeps, since a neighbour stage is seldom late by
 * more; on one processor it sleeps at once.
 */
#ifndef TRAIN_SIGNAL_H
#define TRAIN_SIGNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct train_signal {
	_Atomic int64_t value;
	_Atomic int waiters;
	pthread_mutex_t lock;
	pthread_cond_t raised;
	unsigned looks; /* how often to look before sleeping */
};

void train_signal_init(struct train_signal *signal, bool may_spin);
void train_signal_fini(struct train_signal *signal);
void train_signal_set(struct train_signal *signal, int64_t value); /* wakes all who wait for less */
void train_signal_wait(struct train_signal *signal, int64_t value); /* until it is at least that */

/* The same for at most @ms; false: not reached. */
bool train_signal_wait_ms(struct train_signal *signal, int64_t value, int ms);

#endif /* TRAIN_SIGNAL_H */
