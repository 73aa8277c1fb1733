/*
 * The recorder's life, and its tensors.
 *
 * A tensor owns a state per replica, each on cache lines of its own, so replicas record at once.
 * All that recording needs is allocated when a tensor is added. Tensors are the recorder's; texts
 * are copied, the recording is the caller's.
 */
#include "outfeed/outfeed.h"

#include <assert.h>
#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "outfeed/outfeed_internal.h"

/* ---- life ------------------------------------------------------------------------------------ */

#define TRACK_SLOTS 4096 /* of the track of instants: hundreds of hits between two commits */

static enum status new_health(struct outfeed *outfeed, struct err *err)
{
	const struct outfeed_health_params params = {
		.rules = outfeed->params.rules, .hit = outfeed__hit, .user = outfeed};
	enum status status;

	if (!params.rules)
		return ST_OK;
	status = outfeed_health_new(&outfeed->health, &params, err);
	return status == ST_OK ? outfeed__append_rules(outfeed, err) : status;
}

static enum status new_track(struct outfeed *outfeed, struct err *err)
{
	const struct ips_track_params params = {
		.ipu = IPS_NULL, .clock = IPS_HOST, .ring_slots = TRACK_SLOTS};

	outfeed->track = outfeed->params.track;
	if (outfeed->track || !outfeed->params.recording)
		return ST_OK;
	outfeed->track = ips_track_open(outfeed->params.recording, "health", &params);
	return outfeed->track ? ST_OK : err_nomem(err);
}

static void outfeed_free(struct outfeed *outfeed);

enum status outfeed_new(struct outfeed **out, const struct outfeed_params *params, struct err *err)
{
	struct outfeed *outfeed;
	enum status status;

	*out = NULL;
	if (params->replicas < 1 || params->budget < 0)
		return err_set(err, ST_INVALID,
			       "outfeed: %d replicas, a budget of %" PRId64 " bytes",
			       params->replicas, params->budget);
	outfeed = mem_calloc(1, sizeof(*outfeed));
	if (!outfeed)
		return err_nomem(err);
	outfeed->params = *params;
	pthread_mutex_init(&outfeed->lock, NULL);
	outfeed__bad_init(&outfeed->bad);
	status = new_track(outfeed, err);
	if (status == ST_OK)
		status = new_health(outfeed, err);
	if (status != ST_OK) {
		outfeed_free(outfeed);
		return status;
	}
	*out = outfeed;
	return ST_OK;
}

static void replicas_free(struct outfeed_tensor *tensor)
{
	if (!tensor->replica)
		return;
	for (int r = 0; r < tensor->outfeed->params.replicas; r++) {
		struct outfeed_replica *replica = &tensor->replica[r];

		mem_free(replica->before);
		mem_free(replica->active);
		mem_free(replica->frames);
		mem_free(replica->frame_stats);
		outfeed__ring_free(&replica->ring);
		pthread_mutex_destroy(&replica->lock);
	}
	mem_free(tensor->replica);
}

static void tensor_free(struct outfeed_tensor *tensor)
{
	if (!tensor)
		return;
	replicas_free(tensor);
	mem_free(tensor->queue);
	mem_free(tensor->key);
	mem_free(tensor->layer);
	mem_free(tensor);
}

static void outfeed_free(struct outfeed *outfeed)
{
	for (size_t i = 0; i < outfeed->count; i++)
		tensor_free(outfeed->tensors[i]);
	mem_free(outfeed->tensors);
	outfeed_health_free(outfeed->health);
	outfeed__bad_fini(&outfeed->bad);
	pthread_mutex_destroy(&outfeed->lock);
	mem_free(outfeed);
}

enum status outfeed_close(struct outfeed *outfeed, struct err *err)
{
	enum status status;

	if (!outfeed)
		return ST_OK;
	outfeed_flush(outfeed);
	status = outfeed_settle(outfeed, UINT64_MAX, err);
	outfeed_free(outfeed);
	return status;
}

struct outfeed_health *outfeed_health_of(struct outfeed *outfeed)
{
	return outfeed->health;
}

struct ips_recording *outfeed_recording(const struct outfeed *outfeed)
{
	return outfeed->params.recording;
}

enum status outfeed__failed(struct outfeed *outfeed, int status, struct err *err)
{
	char message[ERR_TEXT_SIZE] = "";

	if (status == 0)
		return ST_OK;
	/* A recording that has failed stays so: once is enough, if somebody hears it. */
	if (ips_recording_status(outfeed->params.recording, message, sizeof(message)) != 0 &&
	    (!err ? atomic_load(&outfeed->failed) : atomic_exchange(&outfeed->failed, true)))
		return ST_OK;
	if (message[0] == '\0')
		str_copy(message, sizeof(message), ips_status_text(status));
	return err_set(err, (enum status)status, "outfeed: %s", message);
}

/* ---- tensors --------------------------------------------------------------------------------- */

void outfeed__shape_text(struct str *out, int64_t count, int64_t replicas, const int64_t *shape,
			 int ndim)
{
	int written = 0;

	str_add(out, "(");
	if (count >= 0)
		str_addf(out, "%s%" PRId64, written++ > 0 ? ", " : "", count);
	if (replicas >= 0)
		str_addf(out, "%s%" PRId64, written++ > 0 ? ", " : "", replicas);
	for (int i = 0; i < ndim; i++)
		str_addf(out, "%s%" PRId64, written++ > 0 ? ", " : "", shape[i]);
	str_add(out, written == 1 ? ",)" : ")");
}

static enum status count_elements(struct outfeed_tensor *tensor, struct err *err)
{
	tensor->count = 1;
	for (int i = 0; i < tensor->ndim; i++)
		if (tensor->shape[i] < 0 ||
		    __builtin_mul_overflow(tensor->count, (size_t)tensor->shape[i],
					   &tensor->count) ||
		    tensor->count > PTRDIFF_MAX / sizeof(double))
			return err_set(err, ST_LIMIT,
				       "outfeed: the shape of tensor \"%s\" is no shape",
				       tensor->key);
	tensor->neurons = tensor->ndim > 0 ? (size_t)tensor->shape[tensor->ndim - 1] : 0;
	return ST_OK;
}

static enum status copy_params(struct outfeed_tensor *tensor,
			       const struct outfeed_tensor_params *params, struct err *err)
{
	tensor->queue = mem_strdup(params->queue);
	tensor->key = mem_strdup(params->key);
	tensor->layer = !params->layer ? NULL : mem_strdup(params->layer);
	tensor->kind = params->kind;
	tensor->dtype = params->dtype;
	tensor->activity = params->activity;
	tensor->stage = params->stage;
	tensor->ndim = params->ndim;
	for (int i = 0; i < params->ndim; i++)
		tensor->shape[i] = params->shape[i];
	if (!tensor->queue || !tensor->key || (!tensor->layer && params->layer))
		return err_nomem(err);
	return count_elements(tensor, err);
}

enum status outfeed__register(struct outfeed_tensor *tensor,
			      const struct outfeed_tensor_params *params, struct err *err)
{
	struct ips_recording *recording = tensor->outfeed->params.recording;
	struct str shape = {0};
	struct ips_tensor row = {.queue = params->queue,
				 .key = params->key,
				 .kind = outfeed_kind_text(params->kind),
				 .layer = params->layer,
				 .stage = params->stage < 0 ? IPS_NULL : params->stage,
				 .dtype = outfeed_dtype_text(params->dtype),
				 .activity = outfeed_activity_text(params->activity)};

	tensor->tensor_id = IPS_NULL;
	if (!recording)
		return ST_OK;
	outfeed__shape_text(&shape, -1, -1, params->shape, params->ndim);
	if (!shape.failed) {
		row.shape = str_peek(&shape);
		tensor->tensor_id = ips_tensor_add(recording, &row);
	}
	str_free(&shape);
	return tensor->tensor_id == IPS_NULL ? err_nomem(err) : ST_OK;
}

/* ---- a tensor's replicas --------------------------------------------------------------------- */

static bool is_variable(const struct outfeed_tensor *tensor)
{
	return tensor->kind == OUTFEED_WEIGHT || tensor->kind == OUTFEED_OPTIMIZER_STATE;
}

/* What a step must not allocate: all of it, now. */
static enum status new_memory(struct outfeed_replica *replica, const struct outfeed_tensor *tensor,
			      struct err *err)
{
	const enum outfeed_tier tier = tensor->choice.tier;
	const bool recorded = tensor->outfeed->params.recording != NULL;
	const bool before = tier >= OUTFEED_STATS && is_variable(tensor);
	const bool active = tier >= OUTFEED_COUNTS && tensor->kind == OUTFEED_ACTIVATION &&
			    tensor->activity != OUTFEED_NO_ACTIVITY && tensor->neurons > 0;
	const bool stats = recorded && tier >= OUTFEED_COUNTS;

	if (before)
		replica->before = mem_aligned(tensor->count, sizeof(*replica->before));
	if (active)
		replica->active = mem_aligned(tensor->neurons, sizeof(*replica->active));
	if (recorded)
		replica->frames = mem_calloc(OUTFEED_FRAMES, sizeof(*replica->frames));
	if (stats)
		replica->frame_stats = mem_calloc(OUTFEED_FRAMES, sizeof(*replica->frame_stats));
	if ((before && !replica->before) || (active && !replica->active) ||
	    (recorded && !replica->frames) || (stats && !replica->frame_stats))
		return err_nomem(err);
	return recorded && tier == OUTFEED_LAST_N ? outfeed__ring_new(&replica->ring, tensor, err)
						  : ST_OK;
}

static enum status new_rules(struct outfeed_tensor *tensor, struct err *err)
{
	struct outfeed *outfeed = tensor->outfeed;
	struct outfeed_health_about_tensor about = {.tensor_id = tensor->tensor_id,
						    .key = tensor->key,
						    .layer = tensor->layer,
						    .kind = tensor->kind,
						    .activity = tensor->activity,
						    .matrix = tensor->ndim >= 2,
						    .neurons = (int64_t)tensor->neurons};
	enum status status = ST_OK;

	if (!outfeed->health || tensor->choice.tier == OUTFEED_OFF)
		return ST_OK;
	for (int r = 0; r < outfeed->params.replicas && status == ST_OK; r++) {
		about.replica = r;
		status = outfeed_health_tensor(outfeed->health, &tensor->replica[r].health, &about,
					       err);
	}
	return status;
}

static enum status new_replicas(struct outfeed_tensor *tensor, struct err *err)
{
	const int replicas = tensor->outfeed->params.replicas;
	enum status status = ST_OK;

	tensor->replica = mem_aligned((size_t)replicas, sizeof(*tensor->replica));
	if (!tensor->replica)
		return err_nomem(err);
	for (int r = 0; r < replicas; r++)
		pthread_mutex_init(&tensor->replica[r].lock, NULL);
	for (int r = 0; r < replicas && status == ST_OK; r++)
		status = new_memory(&tensor->replica[r], tensor, err);
	return status;
}

/* ---- tensors, added -------------------------------------------------------------------------- */

static enum status append_tier(struct outfeed_tensor *tensor, bool queued, struct err *err)
{
	char why[OUTFEED_POLICY_TEXT];

	if (!tensor->outfeed->params.recording)
		return ST_OK;
	outfeed_policy_explain(why, tensor->outfeed->params.policy, tensor->key, tensor->kind,
			       queued);
	return outfeed__append_tier(tensor, NULL, why, err);
}

static enum status tensor_init(struct outfeed_tensor *tensor,
			       const struct outfeed_tensor_params *params, struct err *err)
{
	enum status status = copy_params(tensor, params, err);

	if (status == ST_OK)
		status = new_replicas(tensor, err);
	if (status == ST_OK)
		status = outfeed__register(tensor, params, err);
	if (status == ST_OK)
		status = new_rules(tensor, err);
	return status == ST_OK ? append_tier(tensor, params->queued, err) : status;
}

enum status outfeed_tensor_add(struct outfeed *outfeed, struct outfeed_tensor **out,
			       const struct outfeed_tensor_params *params, struct err *err)
{
	const struct outfeed_choice choice = outfeed_policy_choose(
		outfeed->params.policy, params->key, params->kind, params->queued);
	struct outfeed_tensor *tensor;
	enum status status;

	assert(params->ndim >= 0 && params->ndim <= OUTFEED_NDIM_MAX);
	*out = NULL;
	if (choice.tier == OUTFEED_OFF && !params->queued)
		return ST_OK;
	if (mem_grow(&outfeed->tensors, &outfeed->capacity, outfeed->count + 1,
		     sizeof(*outfeed->tensors)) != 0)
		return err_nomem(err);
	tensor = mem_calloc(1, sizeof(*tensor));
	if (!tensor)
		return err_nomem(err);
	tensor->outfeed = outfeed;
	tensor->index = outfeed->count;
	tensor->choice = choice;
	atomic_init(&tensor->tier, (int)choice.tier);
	status = tensor_init(tensor, params, err);
	if (status != ST_OK) {
		tensor_free(tensor);
		return status;
	}
	outfeed->tensors[outfeed->count++] = tensor;
	*out = tensor;
	return ST_OK;
}

enum outfeed_tier outfeed_tensor_tier(const struct outfeed_tensor *tensor)
{
	return outfeed__tier(tensor);
}
