/*
 * The recorder's life, and its tensors.
 *
 * A tensor owns a state per replica, each on a cache line of its own, so replicas record at once
 * without a lock. Tensors are the recorder's; texts are copied, the recording is the caller's.
 */
#include "outfeed/outfeed.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "outfeed/outfeed_internal.h"

/* ---- life ---------------------------------------------------------------------------------------
 */

enum status outfeed_new(struct outfeed **out, const struct outfeed_params *params, struct err *err)
{
	struct outfeed *outfeed;

	*out = NULL;
	if (params->replicas < 1)
		return err_set(err, ST_INVALID, "outfeed: %d replicas", params->replicas);
	outfeed = mem_calloc(1, sizeof(*outfeed));
	if (outfeed == NULL)
		return err_nomem(err);
	outfeed->params = *params;
	outfeed->track = params->track != NULL ? params->track
					       : ips_track_open(params->recording, "health", NULL);
	pthread_mutex_init(&outfeed->lock, NULL);
	*out = outfeed;
	return ST_OK;
}

static void tensor_free(struct outfeed_tensor *tensor)
{
	if (tensor == NULL)
		return;
	mem_free(tensor->queue);
	mem_free(tensor->key);
	mem_free(tensor->layer);
	mem_free(tensor);
}

enum status outfeed_close(struct outfeed *outfeed, struct err *err)
{
	(void)err;
	if (outfeed == NULL)
		return ST_OK;
	for (size_t i = 0; i < outfeed->count; i++)
		tensor_free(outfeed->tensors[i]);
	mem_free(outfeed->tensors);
	pthread_mutex_destroy(&outfeed->lock);
	mem_free(outfeed);
	return ST_OK;
}

struct ips_recording *outfeed_recording(const struct outfeed *outfeed)
{
	return outfeed->params.recording;
}

enum status outfeed__failed(const struct outfeed *outfeed, int status, struct err *err)
{
	char message[ERR_TEXT_SIZE] = "";

	if (status == 0)
		return ST_OK;
	ips_recording_status(outfeed->params.recording, message, sizeof(message));
	if (message[0] == '\0')
		str_copy(message, sizeof(message), ips_status_text(status));
	return err_set(err, (enum status)status, "outfeed: %s", message);
}

/* ---- tensors ------------------------------------------------------------------------------------
 */

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

static enum status copy_params(struct outfeed_tensor *tensor,
			       const struct outfeed_tensor_params *params, struct err *err)
{
	tensor->queue = mem_strdup(params->queue);
	tensor->key = mem_strdup(params->key);
	tensor->layer = params->layer == NULL ? NULL : mem_strdup(params->layer);
	tensor->kind = params->kind;
	tensor->dtype = params->dtype;
	tensor->activity = params->activity;
	tensor->stage = params->stage;
	tensor->ndim = params->ndim;
	for (int i = 0; i < params->ndim; i++)
		tensor->shape[i] = params->shape[i];
	if (tensor->queue == NULL || tensor->key == NULL ||
	    (tensor->layer == NULL && params->layer != NULL))
		return err_nomem(err);
	return ST_OK;
}

static enum status register_tensor(struct outfeed_tensor *tensor, struct err *err)
{
	struct ips_recording *recording = tensor->outfeed->params.recording;
	struct str shape = {0};
	struct ips_tensor row = {.queue = tensor->queue,
				 .key = tensor->key,
				 .kind = outfeed_kind_text(tensor->kind),
				 .layer = tensor->layer,
				 .stage = tensor->stage < 0 ? IPS_NULL : tensor->stage,
				 .dtype = outfeed_dtype_text(tensor->dtype),
				 .activity = outfeed_activity_text(tensor->activity)};

	tensor->tensor_id = IPS_NULL;
	if (recording == NULL)
		return ST_OK;
	outfeed__shape_text(&shape, -1, -1, tensor->shape, tensor->ndim);
	if (!shape.failed) {
		row.shape = str_peek(&shape);
		tensor->tensor_id = ips_tensor_add(recording, &row);
	}
	str_free(&shape);
	return tensor->tensor_id == IPS_NULL ? err_nomem(err) : ST_OK;
}

static enum status tensor_init(struct outfeed_tensor *tensor,
			       const struct outfeed_tensor_params *params, struct err *err)
{
	enum status status = copy_params(tensor, params, err);

	return status == ST_OK ? register_tensor(tensor, err) : status;
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
	if (tensor == NULL)
		return err_nomem(err);
	tensor->outfeed = outfeed;
	tensor->choice = choice;
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
	return tensor->choice.tier;
}
