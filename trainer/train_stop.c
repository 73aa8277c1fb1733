/*
 * Signals: increasing numbers and their waiters, which first poll an atomic, then sleep on a
 * condition. Orderly stop: the flag that a signal handler sets, and the leading worker's decision
 * for all workers before each run.
 */
#include "trainer/train_stop.h"

#include <time.h>

#include "common/pool.h"

#define LOOKS 2000 /* about 20 us of pauses */

/* ---- signals --------------------------------------------------------------------------------- */

void train_signal_init(struct train_signal *signal, bool may_spin)
{
	pthread_condattr_t monotonic;

	atomic_init(&signal->value, 0);
	atomic_init(&signal->waiters, 0);
	pthread_mutex_init(&signal->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&signal->raised, &monotonic);
	pthread_condattr_destroy(&monotonic);
	signal->spins = may_spin ? LOOKS : 0;
}

void train_signal_fini(struct train_signal *signal)
{
	pthread_cond_destroy(&signal->raised);
	pthread_mutex_destroy(&signal->lock);
}

/* Sequentially consistent on both sides: either the setter sees the waiter or the waiter sees the
 * value. */
void train_signal_set(struct train_signal *signal, int64_t value)
{
	atomic_store(&signal->value, value);
	if (atomic_load(&signal->waiters) == 0)
		return;
	pthread_mutex_lock(&signal->lock);
	pthread_cond_broadcast(&signal->raised);
	pthread_mutex_unlock(&signal->lock);
}

static inline void spin_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

static bool spin_until(struct train_signal *signal, int64_t value)
{
	for (unsigned i = 0; i < signal->spins; i++) {
		if (atomic_load_explicit(&signal->value, memory_order_acquire) >= value)
			return true;
		spin_pause();
	}
	return atomic_load_explicit(&signal->value, memory_order_acquire) >= value;
}

void train_signal_wait(struct train_signal *signal, int64_t value)
{
	if (spin_until(signal, value))
		return;
	pthread_mutex_lock(&signal->lock);
	atomic_fetch_add(&signal->waiters, 1);
	while (atomic_load(&signal->value) < value)
		pthread_cond_wait(&signal->raised, &signal->lock);
	atomic_fetch_sub(&signal->waiters, 1);
	pthread_mutex_unlock(&signal->lock);
}

bool train_signal_wait_ms(struct train_signal *signal, int64_t value, int ms)
{
	struct timespec until;
	int failed = 0;
	bool reached;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;

	pthread_mutex_lock(&signal->lock);
	atomic_fetch_add(&signal->waiters, 1);
	while (atomic_load(&signal->value) < value && failed == 0)
		failed = pthread_cond_timedwait(&signal->raised, &signal->lock, &until);
	atomic_fetch_sub(&signal->waiters, 1);
	reached = atomic_load(&signal->value) >= value;
	pthread_mutex_unlock(&signal->lock);
	return reached;
}

/* ---- stopping -------------------------------------------------------------------------------- */

static atomic_bool interrupted, flush;

void train_interrupt(void)
{
	atomic_store(&interrupted, true);
}

bool train_interrupted(void)
{
	return atomic_load_explicit(&interrupted, memory_order_relaxed);
}

void train_flush(void)
{
	atomic_store(&flush, true);
}

bool train_flush_wanted(void)
{
	return atomic_load_explicit(&flush, memory_order_relaxed) && atomic_exchange(&flush, false);
}

void train_stop_init(struct train_stop *stop)
{
	train_signal_init(&stop->decided, pool_processors() > 1);
	pthread_mutex_init(&stop->lock, NULL);
	atomic_init(&stop->asked, false);
	train_stop_reset(stop);
}

void train_stop_ask(struct train_stop *stop)
{
	atomic_store(&stop->asked, true);
}

bool train_stop_asked(const struct train_stop *stop)
{
	return atomic_load(&stop->asked);
}

void train_stop_fini(struct train_stop *stop)
{
	train_signal_fini(&stop->decided);
	pthread_mutex_destroy(&stop->lock);
}

void train_stop_reset(struct train_stop *stop)
{
	atomic_store(&stop->decided.value, 0);
	atomic_store(&stop->runs, INT64_MAX);
	stop->claimed = 0;
}

bool train_stop_goes_on(struct train_stop *stop, int64_t run, bool leads, bool may)
{
	if (leads) {
		/* The first run is always completed: an execution has at least one. */
		if (run > 0 && may && (train_interrupted() || train_stop_asked(stop))) {
			pthread_mutex_lock(&stop->lock);
			if (run >= stop->claimed)
				atomic_store(&stop->runs, run);
			pthread_mutex_unlock(&stop->lock);
		}
		train_signal_set(&stop->decided,
				 atomic_load(&stop->runs) == run ? INT64_MAX : run + 1);
	} else {
		train_signal_wait(&stop->decided, run + 1);
	}
	return run < atomic_load(&stop->runs);
}

int64_t train_stop_claim(struct train_stop *stop, int64_t runs, int64_t *first)
{
	pthread_mutex_lock(&stop->lock);
	*first = stop->claimed;
	if (runs > atomic_load(&stop->runs))
		runs = atomic_load(&stop->runs);
	if (runs > stop->claimed)
		stop->claimed = runs;
	pthread_mutex_unlock(&stop->lock);
	return runs;
}
