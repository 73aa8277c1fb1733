/*
 * Stopping in good order: what a signal handler sets, and the decision that the leading worker
 * takes for all before each run.
 */
#include "trainer/train_stop.h"

#include "common/pool.h"

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

static void decide(struct train_stop *stop, int64_t run, bool may)
{
	/* The first run is always done: an execution has at least one. */
	if (run > 0 && may && (train_interrupted() || train_stop_asked(stop))) {
		pthread_mutex_lock(&stop->lock);
		if (run >= stop->claimed)
			atomic_store(&stop->runs, run);
		pthread_mutex_unlock(&stop->lock);
	}
	train_signal_set(&stop->decided, atomic_load(&stop->runs) == run ? INT64_MAX : run + 1);
}

bool train_stop_goes_on(struct train_stop *stop, int64_t run, bool leads, bool may)
{
	if (leads)
		decide(stop, run, may);
	else
		train_signal_wait(&stop->decided, run + 1);
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
