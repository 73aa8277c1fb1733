/*
 * How workers wait for one another, and how a run ends early.
 *
 * A signal is an increasing number that threads can wait for; it hands micro-batches from stage to
 * stage. A waiter spins for a few microseconds before it sleeps, since a neighbour stage is seldom
 * later than that; on one processor it sleeps at once.
 *
 * An interrupt by a signal of the system, or a rule of health.stop, ends a training execution
 * before its last pipeline run. The leading worker decides before each run whether all workers
 * execute it. The main thread records the device's rows ahead of the workers, so a run with
 * recorded rows is always executed.
 */
#ifndef TRAIN_STOP_H
#define TRAIN_STOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- signals --------------------------------------------------------------------------------- */

struct train_signal {
	_Atomic int64_t value;
	_Atomic int waiters;
	pthread_mutex_t lock;
	pthread_cond_t raised;
	unsigned spins; /* polls before sleeping */
};

void train_signal_init(struct train_signal *signal, bool may_spin);
void train_signal_fini(struct train_signal *signal);
void train_signal_set(struct train_signal *signal, int64_t value);  /* wakes waiters for up to it */
void train_signal_wait(struct train_signal *signal, int64_t value); /* until at least @value */

/* Wait for at most @ms; false: not reached. */
bool train_signal_wait_ms(struct train_signal *signal, int64_t value, int ms);

/* ---- stopping -------------------------------------------------------------------------------- */

/* Request all sessions to stop as soon as their workers can. Safe in a signal handler. */
void train_interrupt(void);
bool train_interrupted(void);

/* Request to write values that are held in memory (tier "last N"). Safe in a signal handler. */
void train_flush(void);
bool train_flush_wanted(void); /* clears the request */

struct train_stop {
	struct train_signal decided; /* runs that all workers execute; INT64_MAX: see `runs` */
	_Atomic int64_t runs;        /* of the execution; INT64_MAX: it runs to its end */
	pthread_mutex_t lock;        /* between deciding to stop and claiming runs */
	int64_t claimed;             /* runs whose rows are, or are about to be, recorded */
	atomic_bool asked;           /* by the session itself, permanently: not reset */
};

void train_stop_init(struct train_stop *stop);
void train_stop_fini(struct train_stop *stop);
void train_stop_reset(struct train_stop *stop); /* while the workers are idle */

/* Stop this session as an interrupt would. From any thread. */
void train_stop_ask(struct train_stop *stop);
bool train_stop_asked(const struct train_stop *stop);

/* Should this worker execute @run? The worker with @leads decides for all, and may stop only if
 * @may; the others wait for its decision, usually not at all, since it is ahead of them. */
bool train_stop_goes_on(struct train_stop *stop, int64_t run, bool leads, bool may);

/* Called by the main thread: claim the runs up to @runs for recording, as far as the execution does
 * not end before. Returns the end of the claimed range, @first its start. */
int64_t train_stop_claim(struct train_stop *stop, int64_t runs, int64_t *first);

#endif /* TRAIN_STOP_H */
