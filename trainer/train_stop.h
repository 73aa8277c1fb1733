/*
 * How workers wait for one another, and how a run ends early.
 *
 * A signal is a number that only grows, and threads that wait for it: how micro-batches are handed
 * over. A waiter looks for a few microseconds before it sleeps, since a neighbour stage is seldom
 * late by more; on one processor it sleeps at once.
 *
 * What the system's signals ask of a run under way: an interrupt, or a rule of health.stop, ends a
 * training execution before its last pipeline run. The leading worker decides before each run
 * whether all workers do it or none. The device's rows are written ahead of the workers by the main
 * thread, so no run that has them is left out.
 */
#ifndef TRAIN_STOP_H
#define TRAIN_STOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- numbers that grow ----------------------------------------------------------------------- */

struct train_signal {
	_Atomic int64_t value;
	_Atomic int waiters;
	pthread_mutex_t lock;
	pthread_cond_t raised;
	unsigned spins; /* how often to look before sleeping */
};

void train_signal_init(struct train_signal *signal, bool may_spin);
void train_signal_fini(struct train_signal *signal);
void train_signal_set(struct train_signal *signal, int64_t value); /* wakes all who wait for less */
void train_signal_wait(struct train_signal *signal, int64_t value); /* until it is at least that */

/* The same for at most @ms; false: not reached. */
bool train_signal_wait_ms(struct train_signal *signal, int64_t value, int ms);

/* ---- stopping -------------------------------------------------------------------------------- */

/* Stop as soon as all workers can: safe in a signal handler. */
void train_interrupt(void);
bool train_interrupted(void);

/* Write what is kept in memory (tier "last N") soon: safe in a signal handler. */
void train_flush(void);
bool train_flush_wanted(void); /* once for each time */

struct train_stop {
	struct train_signal decided; /* runs that all workers do; INT64_MAX: see `runs` */
	_Atomic int64_t runs;        /* of the execution; INT64_MAX: it goes to its end */
	pthread_mutex_t lock;        /* between deciding to stop and writing ahead */
	int64_t claimed;             /* runs whose rows are written, or about to be */
	atomic_bool asked;           /* by the session itself, for good: not reset */
};

void train_stop_init(struct train_stop *stop);
void train_stop_fini(struct train_stop *stop);
void train_stop_reset(struct train_stop *stop); /* while the workers rest */

/* Stop this session as an interrupt would: from any thread. */
void train_stop_ask(struct train_stop *stop);
bool train_stop_asked(const struct train_stop *stop);

/* Do all workers do this run? The one that @leads decides, where it @may stop; the others wait for
 * it, seldom: it is ahead of them. */
bool train_stop_goes_on(struct train_stop *stop, int64_t run, bool leads, bool may);

/* By the main thread: claim the runs up to @runs for writing, none where the execution is to end
 * before. Returns how far, and where to begin. */
int64_t train_stop_claim(struct train_stop *stop, int64_t runs, int64_t *first);

#endif /* TRAIN_STOP_H */
