/*
 * OutfeedCallback, as in the tutorial: dequeues an outfeed queue at the end of every epoch and
 * prints its values.
 *
 * Ownership: the state owns its texts.
 */
#include <stddef.h>

#include "common/mem.h"
#include "trainer/callbacks/callback.h"

struct outfeed_callback {
	const char *queue, *name;
};

static const struct model_option outfeed_options[] = {
	{"queue", MODEL_TEXT, .offset = offsetof(struct outfeed_callback, queue)},
	{"name", MODEL_TEXT, .offset = offsetof(struct outfeed_callback, name)},
};

static void outfeed_read(struct callback *callback, const struct json_at *config, struct err *err)
{
	const struct outfeed_callback *state = callback->state;

	if (!state->queue)
		json_fail(config, err, "\"queue\" is missing: the name of an outfeed queue");
}

static enum status outfeed_epoch_end(struct callback *callback, const struct callback_host *host,
				     int64_t epoch, const struct ips_logs *logs, struct err *err)
{
	const struct outfeed_callback *state = callback->state;

	(void)logs;
	if (!host->outfeed)
		return ST_OK;
	return host->outfeed(host->user, state->queue, state->name ? state->name : state->queue,
			     epoch, err);
}

const struct callback_ops callback_outfeed = {
	.class_name = "OutfeedCallback",
	.size = sizeof(struct outfeed_callback),
	.options = MODEL_OPTIONS(outfeed_options),
	.read = outfeed_read,
	.epoch_end = outfeed_epoch_end,
};
