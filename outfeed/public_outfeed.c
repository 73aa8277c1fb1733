/*
 * The public library of tensors: a recorder, its tensors, values and losses, and captured values
 * read back, behind handles.
 *
 * The order of execution is the order in which calls begin. The first non-finite number can be
 * written when every call that began before its own has ended. So running calls are in a list, in
 * the order they began; a call that ends drains everything older than the oldest of them: with one
 * thread, at the end of the same call.
 *
 * Threading and ownership: as in ipuscope/outfeed.h and public_internal.h.
 */
#include "outfeed/public_internal.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "common/cpu.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "outfeed/outfeed_captures.h"
#include "outfeed/outfeed_internal.h"

_Static_assert((int)IPS_OUTFEED_ACTIVATION == OUTFEED_ACTIVATION &&
		       (int)IPS_OUTFEED_GRADIENT == OUTFEED_GRADIENT &&
		       (int)IPS_OUTFEED_WEIGHT == OUTFEED_WEIGHT &&
		       (int)IPS_OUTFEED_OPTIMIZER_STATE == OUTFEED_OPTIMIZER_STATE,
	       "kinds of the header");
_Static_assert((int)IPS_OUTFEED_FLOAT32 == DTYPE_FLOAT32 && (int)IPS_OUTFEED_BOOL == DTYPE_BOOL &&
		       DTYPES == 10,
	       "dtypes of the header");
_Static_assert((int)IPS_OUTFEED_NO_ACTIVITY == OUTFEED_NO_ACTIVITY &&
		       (int)IPS_OUTFEED_RELU == OUTFEED_RELU &&
		       (int)IPS_OUTFEED_TANH == OUTFEED_TANH &&
		       (int)IPS_OUTFEED_SIGMOID == OUTFEED_SIGMOID,
	       "activities of the header");
_Static_assert(IPS_OUTFEED_NDIM_MAX == OUTFEED_NDIM_MAX, "dimensions of the header");

#define REPLICAS_MOST 1048576

/* Return @status as the public functions do, with its text in @message (may be NULL). */
static int return_status(enum status status, const struct err *err, char *message, size_t size)
{
	if (message && size > 0)
		str_copy(message, size,
			 status == ST_OK
				 ? ""
				 : (err->text[0] != '\0' ? err->text : status_text(status)));
	return (int)status;
}

/* Report that the argument @name is NULL and must not be. */
static int return_null(const char *name, char *message, size_t size)
{
	struct err err = {ST_OK, ""};

	return return_status(err_set(&err, ST_INVALID, "%s: is NULL", name), &err, message, size);
}

/* For functions without a message: store the first failure. */
static int return_and_store(struct ips_outfeed *outfeed, enum status status, const struct err *err)
{
	if (status == ST_OK)
		return 0;
	pthread_mutex_lock(&outfeed->lock);
	if (outfeed->first.status == ST_OK) {
		outfeed->first.status = status;
		return_status(status, err, outfeed->first.text, sizeof(outfeed->first.text));
	}
	pthread_mutex_unlock(&outfeed->lock);
	return (int)status;
}

/*
 * A program built with an older header passes fewer members: the rest of @own stay unchanged.
 */
static enum status copy_sized(void *own, size_t own_size, const void *given, size_t size,
			      const char *start, struct err *err)
{
	if (size <= sizeof(size))
		return err_set(err, ST_INVALID, "params: their size is %zu: begin with %s()", size,
			       start);
	memcpy(own, given, min(size, own_size));
	return ST_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Parse a JSON text; or, if @words, a word, which becomes a JSON string. */
static enum status parse_text(cJSON **out, const char *text, const char *name, bool words,
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
	status = parse_text(&json, text, "capture", true, err);
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
	status = parse_text(&json, text, "health", false, err);
	if (status != ST_OK)
		return status;
	at = json_root("health", json);
	status = outfeed_health_read(out, &at, err);
	cJSON_Delete(json);
	return status;
}

static void forward_hit(void *user, const struct outfeed_hit *hit)
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

static void forward_line(void *user, const char *line)
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
		.say = !own->say ? NULL : forward_line,
		.hit = forward_hit,
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

static enum status release(struct ips_outfeed *outfeed, struct err *err)
{
	const enum status status = outfeed_close(outfeed->recorder, err);

	for (size_t i = 0; i < outfeed->count; i++) {
		mem_free(outfeed->tensors[i]->queue);
		mem_free(outfeed->tensors[i]->key);
		mem_free(outfeed->tensors[i]);
	}
	mem_free(outfeed->tensors);
	outfeed_policy_fini(&outfeed->policy);
	pthread_mutex_destroy(&outfeed->draining);
	pthread_mutex_destroy(&outfeed->lock);
	return status;
}

int ips_outfeed_open(struct ips_outfeed **out, struct ips_recording *recording,
		     const struct ips_outfeed_params *params, char *message, size_t size)
{
	struct ips_outfeed_params own = ips_outfeed_defaults();
	struct err err = {ST_OK, ""};
	struct ips_outfeed *outfeed;
	enum status status;

	if (!out)
		return return_null("out", message, size);
	*out = NULL;
	if (params && copy_sized(&own, sizeof(own), params, params->size, "ips_outfeed_defaults",
				 &err) != ST_OK)
		return return_status(err.status, &err, message, size);
	outfeed = mem_calloc(1, sizeof(*outfeed));
	if (!outfeed)
		return return_status(err_nomem(&err), &err, message, size);
	outfeed->params = own;
	outfeed->recording = recording;
	pthread_mutex_init(&outfeed->draining, NULL);
	pthread_mutex_init(&outfeed->lock, NULL);
	status = open_recorder(outfeed, &err);
	if (status == ST_OK) {
		outfeed->params.capture = outfeed->params.health = NULL;
		*out = outfeed;
	} else {
		release(outfeed, NULL);
		mem_free(outfeed);
	}
	return return_status(status, &err, message, size);
}

int ips_outfeed_close(struct ips_outfeed *outfeed, char *message, size_t size)
{
	struct err err = {ST_OK, ""};
	enum status status;

	if (!outfeed)
		return return_status(ST_OK, &err, message, size);
	status = release(outfeed, &err);
	if (outfeed->first.status != ST_OK) {
		status = outfeed->first.status;
		err = outfeed->first;
	}
	mem_free(outfeed);
	return return_status(status, &err, message, size);
}

int ips_outfeed_status(struct ips_outfeed *outfeed, char *message, size_t size)
{
	struct err err = {ST_OK, ""};

	if (outfeed) {
		pthread_mutex_lock(&outfeed->lock);
		err = outfeed->first;
		pthread_mutex_unlock(&outfeed->lock);
	}
	return return_status(err.status, &err, message, size);
}

/* ---- tensors --------------------------------------------------------------------------------- */

static enum status check_tensor(const struct ips_outfeed *outfeed,
				const struct ips_outfeed_tensor_params *params, struct err *err)
{
	const char *const names[] = {params->key, params->queue, params->layer};
	size_t count = sizeof(float);

	if (!params->key || params->key[0] == '\0')
		return err_set(err, ST_INVALID, "tensor: it has no key");
	/* Cut, two would be one. */
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (names[i] && strlen(names[i]) > IPS_NAME_MOST)
			return err_set(err, ST_INVALID,
				       "tensor \"%.40s...\": its key, queue or layer has more than "
				       "%u bytes",
				       params->key, IPS_NAME_MOST);
	}
	if ((unsigned)params->kind >= OUTFEED_KINDS || (unsigned)params->dtype >= DTYPES ||
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
		.dtype = (enum dtype)own->dtype,
		.activity = (enum outfeed_activity)own->activity,
		.asked = OUTFEED_SENT, /* registered tensors are always sent */
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

static enum status add_public_tensor(struct ips_outfeed *outfeed, struct ips_outfeed_tensor **out,
				     const struct ips_outfeed_tensor_params *params,
				     struct err *err)
{
	struct ips_outfeed_tensor *tensor;
	enum status status = check_tensor(outfeed, params, err);

	if (status != ST_OK)
		return status;
	if (outfeed_policy_choose(&outfeed->policy, params->key, (enum outfeed_kind)params->kind,
				  OUTFEED_SENT)
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
		return return_null("out", message, size);
	*out = NULL;
	if (!params)
		return return_null("params", message, size);
	status = copy_sized(&own, sizeof(own), params, params->size, "ips_outfeed_tensor_defaults",
			    &err);
	if (!own.queue)
		own.queue = "outfeed";
	if (status == ST_OK && outfeed) {
		pthread_mutex_lock(&outfeed->draining);
		status = add_public_tensor(outfeed, out, &own, &err);
		pthread_mutex_unlock(&outfeed->draining);
	}
	return return_status(status, &err, message, size);
}

/* ---- recording ------------------------------------------------------------------------------- */

static void begin_call(struct ips_outfeed *outfeed, struct call *call)
{
	pthread_mutex_lock(&outfeed->lock);
	call->order = outfeed->next++;
	call->newer = NULL;
	call->older = outfeed->newest;
	if (outfeed->newest)
		outfeed->newest->newer = call;
	else
		outfeed->oldest = call;
	outfeed->newest = call;
	pthread_mutex_unlock(&outfeed->lock);
}

static void end_call(struct ips_outfeed *outfeed, struct call *call)
{
	pthread_mutex_lock(&outfeed->lock);
	if (call->older)
		call->older->newer = call->newer;
	else
		outfeed->oldest = call->newer;
	if (call->newer)
		call->newer->older = call->older;
	else
		outfeed->newest = call->older;
	pthread_mutex_unlock(&outfeed->lock);
}

/* If another thread is draining, what this one has added waits for the next call or the close. */
static enum status drain_calls(struct ips_outfeed *outfeed, struct err *err)
{
	enum status status;
	uint64_t order;

	if (pthread_mutex_trylock(&outfeed->draining) != 0)
		return ST_OK;
	/* Everything of a lower order has been recorded. */
	pthread_mutex_lock(&outfeed->lock);
	order = outfeed->oldest ? outfeed->oldest->order : outfeed->next;
	pthread_mutex_unlock(&outfeed->lock);
	status = outfeed_drain(outfeed->recorder, order, err);
	pthread_mutex_unlock(&outfeed->draining);
	return status;
}

/* Check the arguments; the recorder has a state for each replica. */
static enum status check_value(const struct ips_outfeed_tensor *tensor, const struct ips_keys *keys,
			       const void *values, size_t count, struct err *err)
{
	const int replicas = tensor->outfeed->params.replicas;

	if (!values && count > 0)
		return err_set(err, ST_INVALID, "tensor \"%s\": values: is NULL", tensor->key);
	if (count > tensor->count || count % tensor->row != 0)
		return err_set(err, ST_INVALID,
			       "tensor \"%s\": %zu values, where its shape has %zu (or less by "
			       "whole rows of %zu)",
			       tensor->key, count, tensor->count, tensor->row);
	if (keys->replica < 0 || keys->replica >= replicas)
		return err_set(err, ST_INVALID, "tensor \"%s\": replica %lld, where there are %d",
			       tensor->key, (long long)keys->replica, replicas);
	return ST_OK;
}

/* Return @keys, or for NULL those that the calling thread has set for the recording. */
static struct ips_keys keys_given(const struct ips_outfeed *outfeed, const struct ips_keys *keys)
{
	struct ips_keys own;

	if (keys)
		return *keys;
	ips_thread_keys(!outfeed ? NULL : outfeed->recording, &own);
	return own;
}

int ips_outfeed_due(const struct ips_outfeed_tensor *tensor, const struct ips_keys *keys)
{
	struct ips_keys own;

	if (!tensor)
		return 0;
	own = keys_given(tensor->outfeed, keys);
	return outfeed_due(tensor->tensor, &own);
}

int ips_outfeed_record(struct ips_outfeed_tensor *tensor, const struct ips_keys *keys,
		       const void *values, size_t count)
{
	struct outfeed_moment moment = {0};
	struct err err = {ST_OK, ""};
	struct call call;
	enum status status;
	uint64_t mode;

	if (!tensor)
		return 0;
	moment.keys = keys_given(tensor->outfeed, keys);
	if (moment.keys.replica == IPS_NULL)
		moment.keys.replica = 0;
	status = check_value(tensor, &moment.keys, values, count, &err);
	if (status != ST_OK)
		return return_and_store(tensor->outfeed, status, &err);
	begin_call(tensor->outfeed, &call);
	moment.time_ns = ips_recording_now_ns(tensor->outfeed->recording);
	moment.order = call.order;
	mode = float_mode_begin();
	status = outfeed_record(tensor->tensor, &moment, values, count, NULL, &err);
	float_mode_end(mode);
	end_call(tensor->outfeed, &call);
	if (status == ST_OK)
		status = drain_calls(tensor->outfeed, &err);
	return return_and_store(tensor->outfeed, status, &err);
}

/* ---- losses ---------------------------------------------------------------------------------- */

/* The same with a mode. */
static struct ips_keys keys_with_mode(const struct ips_outfeed *outfeed,
				      const struct ips_keys *keys)
{
	struct ips_keys own = keys_given(outfeed, keys);

	if (own.mode == IPS_MODE_NULL)
		own.mode = IPS_TRAIN;
	return own;
}

static enum status append_metric(struct ips_outfeed *outfeed, const struct ips_metric *row,
				 struct err *err)
{
	const int status = ips_append_metric(outfeed->recording, row);

	if (status == 0)
		return ST_OK;
	ips_recording_status(outfeed->recording, err->text, sizeof(err->text));
	return (enum status)status;
}

int ips_outfeed_loss(struct ips_outfeed *outfeed, const struct ips_keys *keys, double loss)
{
	const struct ips_keys own = keys_with_mode(outfeed, keys);
	struct ips_metric row = {.mode = own.mode,
				 .epoch = own.epoch,
				 .execution = own.execution,
				 .step = own.step,
				 .name = "loss",
				 .value = loss};
	struct err err = {ST_OK, ""};
	struct outfeed_health *health;

	if (!outfeed)
		return 0;
	row.time_ns = ips_recording_now_ns(outfeed->recording);
	health = outfeed_health_of(outfeed->recorder);
	if (health && own.mode == IPS_TRAIN) {
		pthread_mutex_lock(&outfeed->draining);
		outfeed_health_loss(health, &own, row.time_ns, loss);
		pthread_mutex_unlock(&outfeed->draining);
	}
	return return_and_store(outfeed, append_metric(outfeed, &row, &err), &err);
}

int ips_outfeed_epoch(struct ips_outfeed *outfeed, const struct ips_keys *keys, double loss,
		      const double *val_loss)
{
	const struct ips_keys own = keys_with_mode(outfeed, keys);
	struct ips_metric row = {.mode = own.mode,
				 .epoch = own.epoch,
				 .execution = IPS_NULL,
				 .step = IPS_NULL,
				 .name = "loss",
				 .value = loss};
	struct err err = {ST_OK, ""};
	struct outfeed_health *health;
	enum status status;

	if (!outfeed)
		return 0;
	row.time_ns = ips_recording_now_ns(outfeed->recording);
	health = outfeed_health_of(outfeed->recorder);
	if (health && own.mode == IPS_TRAIN) {
		pthread_mutex_lock(&outfeed->draining);
		outfeed_health_epoch(health, &own, row.time_ns, loss,
				     val_loss ? *val_loss : (double)NAN, val_loss != NULL);
		pthread_mutex_unlock(&outfeed->draining);
	}
	status = append_metric(outfeed, &row, &err);
	if (status == ST_OK && val_loss) {
		row.mode = IPS_EVALUATE;
		row.value = *val_loss;
		status = append_metric(outfeed, &row, &err);
	}
	return return_and_store(outfeed, status, &err);
}

/* Check the counts: no class may have more wrong samples than samples. */
static enum status check_classes(const int64_t *seen, const int64_t *wrong, int classes,
				 struct err *err)
{
	int64_t samples = 0;

	if (classes < 0 || (!seen && classes > 0))
		return err_set(err, ST_INVALID, "classes: %d of them, and seen is %s", classes,
			       !seen ? "NULL" : "given");
	for (int c = 0; c < classes; c++)
		if (seen[c] < 0 || __builtin_add_overflow(samples, seen[c], &samples) ||
		    (wrong && (wrong[c] < 0 || wrong[c] > seen[c])))
			return err_set(err, ST_INVALID,
				       "classes: of class %d %lld were seen and %lld of them wrong",
				       c, (long long)seen[c], wrong ? (long long)wrong[c] : 0LL);
	return ST_OK;
}

int ips_outfeed_classes(struct ips_outfeed *outfeed, const struct ips_keys *keys,
			const int64_t *seen, const int64_t *wrong, int classes)
{
	const struct ips_keys own = keys_with_mode(outfeed, keys);
	int64_t samples = 0, least = INT64_MAX, most = 0;
	double misprediction = (double)NAN;
	struct err err = {ST_OK, ""};
	struct outfeed_health *health;
	enum status status;

	if (!outfeed)
		return 0;
	status = check_classes(seen, wrong, classes, &err);
	if (status != ST_OK)
		return return_and_store(outfeed, status, &err);
	for (int c = 0; c < classes; c++) {
		if (seen[c] == 0) /* a class without samples is ignored */
			continue;
		samples += seen[c];
		least = min(seen[c], least);
		most = max(seen[c], most);
		if (wrong)
			misprediction = fmax(misprediction, (double)wrong[c] / (double)seen[c]);
	}
	health = outfeed_health_of(outfeed->recorder);
	if (!health || own.mode != IPS_TRAIN || samples == 0)
		return 0;
	pthread_mutex_lock(&outfeed->draining);
	outfeed_health_classes(health, &own, ips_recording_now_ns(outfeed->recording), samples,
			       (double)most / (double)least, misprediction);
	pthread_mutex_unlock(&outfeed->draining);
	return 0;
}

/* ---- rules and rings ------------------------------------------------------------------------- */

int64_t ips_outfeed_broken(const struct ips_outfeed *outfeed, const char *rule)
{
	enum outfeed_health_id id;
	int64_t sum = 0;

	if (rule && !outfeed_health_find(&id, rule))
		return -1;
	if (!outfeed)
		return 0;
	if (rule)
		return atomic_load(&outfeed->broken[id]);
	for (int i = 0; i < OUTFEED_HEALTH_RULES; i++)
		sum += atomic_load(&outfeed->broken[i]);
	return sum;
}

void ips_outfeed_flush(struct ips_outfeed *outfeed)
{
	if (outfeed)
		outfeed_flush(outfeed->recorder);
}

/* ---- statistics alone ------------------------------------------------------------------------ */

static void fill_stats_row(struct ips_tensor_stats *row, const struct outfeed_stats *stats)
{
	OUTFEED_FILL_COLUMNS(row, stats, true);
	row->inactive = row->update_ratio = (double)NAN;
	row->n_changed = IPS_NULL;
}

static struct outfeed_stats stats_of(const struct ips_tensor_stats *row)
{
	struct outfeed_stats stats = {
		.n = row->n,
		.n_nan = row->n_nan,
		.n_pos_inf = row->n_pos_inf,
		.n_neg_inf = row->n_neg_inf,
		.n_zero = row->n_zero,
		.n_neg = row->n_neg,
		.n_pos = row->n_pos,
		.min = row->min,
		.max = row->max,
		.mean = row->mean,
		.l1 = row->l1,
		.l2_squared = row->l2 * row->l2,
		.abs_min_nonzero = row->abs_min_nonzero,
		.abs_max = row->abs_max,
	};

	stats.m2 = row->std * row->std * (double)outfeed_stats_finite(&stats);
	return stats;
}

int ips_outfeed_stats(struct ips_tensor_stats *out, const void *values, size_t count,
		      enum ips_outfeed_dtype dtype)
{
	struct outfeed_stats stats;
	uint64_t mode;

	if ((unsigned)dtype >= DTYPES || !out || (!values && count > 0))
		return ST_INVALID;
	mode = float_mode_begin();
	outfeed_stats_read(&stats, (enum dtype)dtype, values, count, NULL);
	*out = (struct ips_tensor_stats){
		.keys = IPS_KEYS_NULL, .tensor_id = IPS_NULL, .time_ns = IPS_NULL};
	fill_stats_row(out, &stats);
	float_mode_end(mode);
	return 0;
}

void ips_outfeed_stats_merge(struct ips_tensor_stats *into, const struct ips_tensor_stats *from)
{
	struct outfeed_stats stats, more;

	if (!into || !from)
		return;
	stats = stats_of(into);
	more = stats_of(from);
	outfeed_stats_merge(&stats, &more);
	fill_stats_row(into, &stats);
}

/* ---- captured values ------------------------------------------------------------------------- */

struct ips_captures {
	struct prof_db *db;
	struct outfeed_captures *captures;
	struct ips_captures_array *arrays; /* descriptions of all arrays */
	int count;
};

static enum status open_captures(struct ips_captures *captures, const char *path, struct err *err)
{
	enum status status = prof_db_open(&captures->db, path, err);

	if (status == ST_OK)
		status = outfeed_captures_open(&captures->captures, captures->db, err);
	if (status != ST_OK)
		return status;
	captures->count = outfeed_captures_count(captures->captures);
	captures->arrays = mem_calloc((size_t)captures->count + 1, sizeof(*captures->arrays));
	if (!captures->arrays)
		return err_nomem(err);
	for (int i = 0; i < captures->count; i++) {
		struct ips_captures_array *out = &captures->arrays[i];
		const struct outfeed_array *array = outfeed_captures_at(captures->captures, i);

		out->queue = array->queue;
		out->key = array->key;
		out->name = array->name;
		out->dtype = (enum ips_outfeed_dtype)array->dtype;
		memcpy(out->shape, array->shape, sizeof(out->shape));
		out->ndim = array->ndim;
		out->replicas = array->replicas;
		out->uneven = array->uneven;
		out->bytes = array->bytes;
		out->incomplete = array->incomplete;
	}
	return ST_OK;
}

int ips_captures_open(struct ips_captures **out, const char *path, char *message, size_t size)
{
	struct ips_captures *captures;
	struct err err = {ST_OK, ""};
	enum status status;

	if (!out)
		return return_null("out", message, size);
	*out = NULL;
	if (!path)
		return return_null("path", message, size);
	captures = mem_calloc(1, sizeof(*captures));
	if (!captures)
		return return_status(err_nomem(&err), &err, message, size);
	status = open_captures(captures, path, &err);
	if (status == ST_OK)
		*out = captures;
	else
		ips_captures_close(captures);
	return return_status(status, &err, message, size);
}

void ips_captures_close(struct ips_captures *captures)
{
	if (!captures)
		return;
	mem_free(captures->arrays);
	outfeed_captures_close(captures->captures);
	prof_db_close(captures->db);
	mem_free(captures);
}

int ips_captures_count(const struct ips_captures *captures)
{
	return !captures ? 0 : captures->count;
}

const struct ips_captures_array *ips_captures_at(const struct ips_captures *captures, int index)
{
	return index >= 0 && index < ips_captures_count(captures) ? &captures->arrays[index] : NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

static enum status report_no_array(const struct ips_captures *captures, int index, struct err *err)
{
	return err_set(err, ST_INVALID, "%s: array %d, where there are %d",
		       prof_db_path(captures->db), index, captures->count);
}

static enum status copy_to_buffer(void *user, const void *data, size_t bytes, struct err *err)
{
	unsigned char **at = user;

	(void)err;
	memcpy(*at, data, bytes);
	*at += bytes;
	return ST_OK;
}

int ips_captures_read(struct ips_captures *captures, int index, int64_t first, int64_t count,
		      void *buffer, char *message, size_t size)
{
	const struct ips_captures_array *array;
	unsigned char *at = buffer;
	struct err err = {ST_OK, ""};
	enum status status;

	if (!captures)
		return return_null("captures", message, size);
	if (!buffer && count > 0)
		return return_null("buffer", message, size);
	array = ips_captures_at(captures, index);
	if (!array)
		status = report_no_array(captures, index, &err);
	else if (first < 0 || count < 0 || first > array->shape[0] ||
		 count > array->shape[0] - first)
		status = err_set(&err, ST_INVALID,
				 "%s: array \"%s\": %lld items from %lld on, where there are %lld",
				 prof_db_path(captures->db), array->name, (long long)count,
				 (long long)first, (long long)array->shape[0]);
	else
		status = outfeed_captures_read_part(captures->captures, index, first, count,
						    copy_to_buffer, &at, &err);
	return return_status(status, &err, message, size);
}

int ips_captures_keys(struct ips_captures *captures, int index, struct ips_keys *keys,
		      char *message, size_t size)
{
	struct err err = {ST_OK, ""};
	enum status status;

	if (!captures)
		return return_null("captures", message, size);
	if (!keys)
		return return_null("keys", message, size);
	status = !ips_captures_at(captures, index)
			 ? report_no_array(captures, index, &err)
			 : outfeed_captures_keys(captures->captures, index, keys, &err);
	return return_status(status, &err, message, size);
}
