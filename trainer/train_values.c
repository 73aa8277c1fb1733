/*
 * Values of outfeed queues given to callbacks: which queues are wanted, and when their values are
 * taken, finished and let go.
 */
#include "trainer/train_values.h"

#include "trainer/train_outfeed.h"

bool train_values_running(const struct run_file *run)
{
	/* Accumulated outfeeds have nothing to look at before a pipeline run has ended. */
	return run->fit.asynchronous_callbacks && !run->pipeline.accumulate_outfeed;
}

enum train_values train_values_of(const struct run_file *run, const struct callbacks *callbacks,
				  bool kept)
{
	if (kept)
		return TRAIN_VALUES_EPOCH;
	if (!callbacks_take_outfeeds(callbacks))
		return TRAIN_VALUES_NONE;
	/* The last is known when all have come. */
	return train_values_running(run) && !run->outfeed.last ? TRAIN_VALUES_RUNNING
							       : TRAIN_VALUES_EXECUTION;
}

static void show(void *user, const struct outfeed_value *value)
{
	const struct ips_trainer_outfeed sent = {
		.queue = value->queue,
		.key = value->key,
		.kind = outfeed_kind_text(value->kind),
		.layer = value->layer,
		.shape = value->shape,
		.ndim = value->ndim,
		.keys = value->keys,
		.values = value->values,
		.count = value->count,
	};

	callbacks_outfeed(user, &sent);
}

bool train_values_take(struct train_session *session, const struct callbacks *callbacks,
		       bool running)
{
	return session->values != TRAIN_VALUES_NONE &&
	       train_outfeed_next(session, running, callbacks ? show : NULL, (void *)callbacks);
}

void train_values_finish(struct train_session *session, const struct callbacks *callbacks)
{
	while (train_values_take(session, callbacks, false))
		;
	if (session->values == TRAIN_VALUES_EXECUTION)
		train_outfeed_restart(session);
}

void train_values_let_go(struct train_session *session)
{
	if (session->values == TRAIN_VALUES_RUNNING)
		train_outfeed_abandon(session);
}

void train_values_begin_epoch(struct train_session *session)
{
	if (session->values == TRAIN_VALUES_EPOCH)
		train_outfeed_restart(session);
}
