/*
 * The public outfeed: a recorder behind a handle, and its tensors.
 *
 * Threading and ownership: as ipuscope/outfeed.h and public_internal.h say.
 */
#include "outfeed/public_internal.h"

#include <stdbool.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"

_Static_assert((int)IPS_OUTFEED_ACTIVATION == OUTFEED_ACTIVATION &&
		       (int)IPS_OUTFEED_GRADIENT == OUTFEED_GRADIENT &&
		       (int)IPS_OUTFEED_WEIGHT == OUTFEED_WEIGHT &&
		       (int)IPS_OUTFEED_OPTIMIZER_STATE == OUTFEED_OPTIMIZER_STATE,
	       "kinds of the header");
_Static_assert((int)IPS_OUTFEED_FLOAT32 == OUTFEED_FLOAT32 &&
		       (int)IPS_OUTFEED_FLOAT16 == OUTFEED_FLOAT16,
	       "dtypes of the header");
_Static_assert((int)IPS_OUTFEED_NO_ACTIVITY == OUTFEED_NO_ACTIVITY &&
		       (int)IPS_OUTFEED_RELU == OUTFEED_RELU &&
		       (int)IPS_OUTFEED_TANH == OUTFEED_TANH &&
		       (int)IPS_OUTFEED_SIGMOID == OUTFEED_SIGMOID,
	       "activities of the header");
_Static_assert(IPS_OUTFEED_NDIM_MAX == OUTFEED_NDIM_MAX, "dimensions of the header");

#define REPLICAS_MOST 1048576

int public__status(enum status status, const struct err *err, char *message, size_t size)
{
	if (message && size > 0)
		str_copy(message, size,
			 status == ST_OK
				 ? ""
				 : (err->text[0] != '\0' ? err->text : status_text(status)));
	return (int)status;
}

int public__null(const char *name, char *message, size_t size)
{
	struct err err = {ST_OK, ""};

	return public__status(err_set(&err, ST_INVALID, "%s: is NULL", name), &err, message, size);
}

int public__ends(struct ips_outfeed *outfeed, enum status status, const struct err *err)
{
	if (status == ST_OK)
		return 0;
	pthread_mutex_lock(&outfeed->lock);
	if (outfeed->first.status == ST_OK) {
		outfeed->first.status = status;
		public__status(status, err, outfeed->first.text, sizeof(outfeed->first.text));
	}
	pthread_mutex_unlock(&outfeed->lock);
	return (int)status;
}

/*
 * A program built against an older header knows fewer members: the rest of @own stay as they are.
 */
static enum status take_params(void *own, size_t own_size, const void *given, size_t size,
			       const char *start, struct err *err)
{
	if (size <= sizeof(size))
		return err_set(err, ST_INVALID, "params: their size is %zu: begin with %s()", size,
			       start);
	memcpy(own, given, min(size, own_size));
	return ST_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* A JSON text; or a word (@words), which stands for itself in quotes. */
static enum status parse(cJSON **out, const char *text, const char *name, bool words,
			 struct err *err)
{
	const char *begin = text + strspn(text, " \t\r\n");

	if (!words || *begin == '[' || *begin == '{' || *begin == '"')
		return json_parse(out, text, strlen(text), name, err);
	*out = cJSON_CreateString(text);
	return !*out ? err_nomem(err) : ST_OK;
}

static enum status read_capture(struct outfeed_policy *out, const char *text, struct err *err)
{
	cJSON *json;
	struct json_at at;
	enum status status;

	if (!text)
		return outfeed_policy_read(out, NULL, err);
	status = parse(&json, text, "capture", true, err);
	if (status != ST_OK)
		return status;
	at = json_root("capture", json);
	status = outfeed_policy_read(out, &at, err);
	cJSON_Delete(json);
	return status;
}

static enum status read_health(struct outfeed_health_rules *out, const char *text, struct err *err)
{
	cJSON *json;
	struct json_at at;
	enum status status;

	outfeed_health_defaults(out);
	if (!text)
		return ST_OK;
	status = parse(&json, text, "health", false, err);
	if (status != ST_OK)
		return status;
	at = json_root("health", json);
	status = outfeed_health_read(out, &at, err);
	cJSON_Delete(json);
	return status;
}

static void hit(void *user, const struct outfeed_hit *hit)
{
	struct ips_outfeed *outfeed = user;
	const struct ips_outfeed_hit own = {
		.rule = outfeed_health_describe(hit->rule)->name,
		.key = hit->key,
		.layer = hit->layer,
		.keys = hit->keys,
		.time_ns = hit->time_ns,
		.value = hit->value,
		.threshold = hit->threshold,
	};

	atomic_fetch_add(&outfeed->broken[hit->rule], 1);
	if (outfeed->params.hit)
		outfeed->params.hit(outfeed->params.user, &own);
}

static void say(void *user, const char *line)
{
	const struct ips_outfeed *outfeed = user;

	outfeed->params.say(outfeed->params.user, line);
}

static enum status open_recorder(struct ips_outfeed *outfeed, struct err *err)
{
	const struct ips_outfeed_params *own = &outfeed->params;
	struct outfeed_health_rules rules;
	const struct outfeed_params params = {
		.recording = outfeed->recording,
		.policy = &outfeed->policy,
		.rules = own->without_health ? NULL : &rules,
		.replicas = own->replicas,
		.budget = own->budget == 0 ? INT64_MAX : own->budget,
		.say = !own->say ? NULL : say,
		.hit = hit,
		.user = outfeed,
	};
	enum status status;

	if (own->replicas < 1 || own->replicas > REPLICAS_MOST)
		return err_set(err, ST_INVALID, "replicas: %d, where 1 to %d can be", own->replicas,
			       REPLICAS_MOST);
	if (own->budget < 0)
		return err_set(err, ST_INVALID, "budget: it is below 0 bytes");
	status = read_capture(&outfeed->policy, own->capture, err);
	if (status == ST_OK)
		status = read_health(&rules, own->health, err);
	return status == ST_OK ? outfeed_new(&outfeed->recorder, &params, err) : status;
}

static enum status outfeed_end(struct ips_outfeed *outfeed, struct err *err)
{
	const enum status status = outfeed_close(outfeed->recorder, err);

	for (size_t i = 0; i < outfeed->count; i++) {
		mem_free(outfeed->tensors[i]->queue);
		mem_free(outfeed->tensors[i]->key);
		mem_free(outfeed->tensors[i]);
	}
	mem_free(outfeed->tensors);
	outfeed_policy_fini(&outfeed->policy);
	pthread_mutex_destroy(&outfeed->settling);
	pthread_mutex_destroy(&outfeed->lock);
	return status;
}

int ips_outfeed_open(struct ips_outfeed **out, struct ips_recording *recording,
		     const struct ips_outfeed_params *params, char *message, size_t size)
{
	struct err err = {ST_OK, ""};
	enum status status = ST_OK;
	struct ips_outfeed *outfeed;

	if (!out)
		return public__null("out", message, size);
	*out = NULL;
	outfeed = mem_calloc(1, sizeof(*outfeed));
	if (!outfeed)
		return public__status(err_nomem(&err), &err, message, size);
	outfeed->params = ips_outfeed_defaults();
	outfeed->recording = recording;
	pthread_mutex_init(&outfeed->settling, NULL);
	pthread_mutex_init(&outfeed->lock, NULL);
	if (params)
		status = take_params(&outfeed->params, sizeof(*params), params, params->size,
				     "ips_outfeed_defaults", &err);
	if (status == ST_OK)
		status = open_recorder(outfeed, &err);
	if (status == ST_OK) {
		outfeed->params.capture = outfeed->params.health = NULL;
		*out = outfeed;
	} else {
		outfeed_end(outfeed, NULL);
		mem_free(outfeed);
	}
	return public__status(status, &err, message, size);
}

int ips_outfeed_close(struct ips_outfeed *outfeed, char *message, size_t size)
{
	struct err err = {ST_OK, ""};
	enum status status;

	if (!outfeed)
		return public__status(ST_OK, &err, message, size);
	status = outfeed_end(outfeed, &err);
	if (outfeed->first.status != ST_OK) {
		status = outfeed->first.status;
		err = outfeed->first;
	}
	mem_free(outfeed);
	return public__status(status, &err, message, size);
}

int ips_outfeed_status(struct ips_outfeed *outfeed, char *message, size_t size)
{
	struct err err = {ST_OK, ""};

	if (outfeed) {
		pthread_mutex_lock(&outfeed->lock);
		err = outfeed->first;
		pthread_mutex_unlock(&outfeed->lock);
	}
	return public__status(err.status, &err, message, size);
}

/* ---- tensors --------------------------------------------------------------------------------- */

static enum status check_shape(const struct ips_outfeed_tensor_params *params, struct err *err)
{
	size_t count = sizeof(float);

	if (params->ndim < 0 || params->ndim > IPS_OUTFEED_NDIM_MAX ||
	    (params->ndim > 0 && !params->shape))
		return err_set(err, ST_INVALID,
			       "tensor \"%s\": a shape of %d dimensions, where 0 to %d can be",
			       params->key, params->ndim, IPS_OUTFEED_NDIM_MAX);
	for (int i = 0; i < params->ndim; i++) {
		if (params->shape[i] < 1 || (uint64_t)params->shape[i] > PTRDIFF_MAX / count)
			return err_set(err, ST_INVALID, "tensor \"%s\": shape[%d] is %lld",
				       params->key, i, (long long)params->shape[i]);
		count *= (size_t)params->shape[i];
	}
	return ST_OK;
}

static enum status check_tensor(const struct ips_outfeed *outfeed,
				const struct ips_outfeed_tensor_params *params, struct err *err)
{
	if (!params->key || params->key[0] == '\0')
		return err_set(err, ST_INVALID, "tensor: it has no key");
	if ((unsigned)params->kind >= OUTFEED_KINDS || (unsigned)params->dtype >= OUTFEED_DTYPES ||
	    (unsigned)params->activity >= OUTFEED_ACTIVITIES)
		return err_set(
			err, ST_INVALID, "tensor \"%s\": kind %d, dtype %d, activity %d: unknown",
			params->key, (int)params->kind, (int)params->dtype, (int)params->activity);
	if (params->stage != IPS_NULL && (params->stage < 0 || params->stage > INT32_MAX))
		return err_set(err, ST_INVALID, "tensor \"%s\": stage %lld", params->key,
			       (long long)params->stage);
	for (size_t i = 0; i < outfeed->count; i++) {
		const struct ips_outfeed_tensor *other = outfeed->tensors[i];

		if (strcmp(other->key, params->key) == 0 &&
		    strcmp(other->queue, params->queue) == 0)
			return err_set(err, ST_INVALID,
				       "tensor \"%s\": queue \"%s\" has it already", params->key,
				       params->queue);
	}
	return check_shape(params, err);
}

static enum status tensor_new(struct ips_outfeed *outfeed, struct ips_outfeed_tensor *tensor,
			      const struct ips_outfeed_tensor_params *own, struct err *err)
{
	const struct outfeed_tensor_params params = {
		.queue = own->queue,
		.key = own->key,
		.kind = (enum outfeed_kind)own->kind,
		.layer = own->layer,
		.stage = own->stage == IPS_NULL ? -1 : (int)own->stage,
		.shape = own->shape,
		.ndim = own->ndim,
		.dtype = (enum outfeed_dtype)own->dtype,
		.activity = (enum outfeed_activity)own->activity,
		.queued = true, /* what is registered is sent */
	};

	tensor->outfeed = outfeed;
	tensor->row = tensor->count = 1;
	for (int i = own->ndim - 1; i >= 0; i--) {
		tensor->row = tensor->count;
		tensor->count *= (size_t)own->shape[i];
	}
	tensor->queue = mem_strdup(own->queue);
	tensor->key = mem_strdup(own->key);
	if (!tensor->queue || !tensor->key)
		return err_nomem(err);
	if (mem_grow(&outfeed->tensors, &outfeed->capacity, outfeed->count + 1,
		     sizeof(*outfeed->tensors)) != 0)
		return err_nomem(err);
	return outfeed_tensor_add(outfeed->recorder, &tensor->tensor, &params, err);
}

static enum status add_tensor(struct ips_outfeed *outfeed, struct ips_outfeed_tensor **out,
			      const struct ips_outfeed_tensor_params *params, struct err *err)
{
	struct ips_outfeed_tensor *tensor;
	enum status status = check_tensor(outfeed, params, err);

	if (status != ST_OK)
		return status;
	if (outfeed_policy_choose(&outfeed->policy, params->key, (enum outfeed_kind)params->kind,
				  true)
		    .tier == OUTFEED_OFF)
		return ST_OK;
	tensor = mem_calloc(1, sizeof(*tensor));
	if (!tensor)
		return err_nomem(err);
	status = tensor_new(outfeed, tensor, params, err);
	if (status == ST_OK) {
		outfeed->tensors[outfeed->count++] = *out = tensor;
		return ST_OK;
	}
	mem_free(tensor->queue);
	mem_free(tensor->key);
	mem_free(tensor);
	return status;
}

int ips_outfeed_tensor(struct ips_outfeed *outfeed, struct ips_outfeed_tensor **out,
		       const struct ips_outfeed_tensor_params *params, char *message, size_t size)
{
	struct ips_outfeed_tensor_params own = ips_outfeed_tensor_defaults(NULL);
	struct err err = {ST_OK, ""};
	enum status status;

	if (!out)
		return public__null("out", message, size);
	*out = NULL;
	if (!params)
		return public__null("params", message, size);
	status = take_params(&own, sizeof(own), params, params->size, "ips_outfeed_tensor_defaults",
			     &err);
	if (!own.queue)
		own.queue = "outfeed";
	if (status == ST_OK && outfeed) {
		pthread_mutex_lock(&outfeed->settling);
		status = add_tensor(outfeed, out, &own, &err);
		pthread_mutex_unlock(&outfeed->settling);
	}
	return public__status(status, &err, message, size);
}
