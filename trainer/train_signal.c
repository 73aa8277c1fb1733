/*
 * A growing number and its waiters: an atomic that is looked at first, a mutex and a condition for
 * those who sleep.
 */
#include "trainer/train_signal.h"

#include <time.h>

#define LOOKS 2000 /* about 20 us of pauses */

void train_signal_init(struct train_signal *signal, bool may_spin)
{
	atomic_init(&signal->value, 0);
	atomic_init(&signal->waiters, 0);
	pthread_mutex_init(&signal->lock, NULL);
	pthread_cond_init(&signal->raised, NULL);
	signal->looks = may_spin ? LOOKS : 0;
}

void train_signal_fini(struct train_signal *signal)
{
	pthread_cond_destroy(&signal->raised);
	pthread_mutex_destroy(&signal->lock);
}

/*
 * Sequentially consistent on both sides: either the setter sees the waiter or the waiter the value.
 */
void train_signal_set(struct train_signal *signal, int64_t value)
{
	atomic_store(&signal->value, value);
	if (atomic_load(&signal->waiters) == 0)
		return;
	pthread_mutex_lock(&signal->lock);
	pthread_cond_broadcast(&signal->raised);
	pthread_mutex_unlock(&signal->lock);
}

static inline void pause_a_moment(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

static bool look(struct train_signal *signal, int64_t value)
{
	for (unsigned i = 0; i < signal->looks; i++) {
		if (atomic_load_explicit(&signal->value, memory_order_acquire) >= value)
			return true;
		pause_a_moment();
	}
	return atomic_load_explicit(&signal->value, memory_order_acquire) >= value;
}

void train_signal_wait(struct train_signal *signal, int64_t value)
{
	if (look(signal, value))
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

	clock_gettime(CLOCK_REALTIME, &until);
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
