/*
 * OutfeedCallback, as in the tutorial: dequeues an outfeed queue at the end of every epoch and
 * prints its values.
 *
 * Ownership: the state owns its texts.
 */
#include "common/mem.h"
#include "trainer/callbacks/callback.h"

struct outfeed_callback {
	char *queue, *name;
};

static void outfeed_read(struct callback *callback, const struct json_at *config, struct err *err)
{
	static const char *const keys[] = {"queue", "name"};
	struct outfeed_callback *state = mem_calloc(1, sizeof(*state));

	callback->state = state;
	if (!state) {
		err_nomem(err);
		return;
	}
	json_only_keys(config, keys, ARRAY_LEN(keys), err);
	callback_read_text(config, "queue", &state->queue, err);
	callback_read_text(config, "name", &state->name, err);
	if (!err_stuck(err) && !state->queue)
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

static void outfeed_fini(struct callback *callback)
{
	struct outfeed_callback *state = callback->state;

	if (!state)
		return;
	mem_free(state->queue);
	mem_free(state->name);
	mem_free(state);
}

const struct callback_ops callback_outfeed = {
	.class_name = "OutfeedCallback",
	.read = outfeed_read,
	.epoch_end = outfeed_epoch_end,
	.fini = outfeed_fini,
};
