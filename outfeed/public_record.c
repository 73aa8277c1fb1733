/*
 * The public outfeed: values and losses recorded, and the order of execution from the order of
 * calls.
 *
 * The first bad number can be written when every call that began before its own has ended. So calls
 * under way are a list in the order they began; what is older than the oldest of them is settled,
 * by whichever call finds it so: with one thread at the end of the very call.
 *
 * Threading and ownership: as ipuscope/outfeed.h and public_internal.h say.
 */
#include "outfeed/public_internal.h"

#include <math.h>

#include "common/minmax.h"

/* ---- recording ------------------------------------------------------------------------------- */

static void call_begin(struct ips_outfeed *outfeed, struct call *call)
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

static void call_end(struct ips_outfeed *outfeed, struct call *call)
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

/* All of an order below this has been recorded. */
static uint64_t settled_below(struct ips_outfeed *outfeed)
{
	uint64_t order;

	pthread_mutex_lock(&outfeed->lock);
	order = outfeed->oldest ? outfeed->oldest->order : outfeed->next;
	pthread_mutex_unlock(&outfeed->lock);
	return order;
}

/* Where another thread settles, what this one has added waits for the next call or the close. */
static enum status settle(struct ips_outfeed *outfeed, struct err *err)
{
	enum status status;

	if (pthread_mutex_trylock(&outfeed->settling) != 0)
		return ST_OK;
	status = outfeed_settle(outfeed->recorder, settled_below(outfeed), err);
	pthread_mutex_unlock(&outfeed->settling);
	return status;
}

/* The recorder has a state for each replica. */
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

int ips_outfeed_due(const struct ips_outfeed_tensor *tensor, const struct ips_keys *keys)
{
	const struct ips_keys none = IPS_KEYS_NULL;

	return tensor && outfeed_due(tensor->tensor, keys ? keys : &none);
}

int ips_outfeed_record(struct ips_outfeed_tensor *tensor, const struct ips_keys *keys,
		       const void *values, size_t count)
{
	struct outfeed_moment moment = {.keys = IPS_KEYS_NULL};
	struct err err = {ST_OK, ""};
	struct call call;
	enum status status;

	if (!tensor)
		return 0;
	if (keys)
		moment.keys = *keys;
	if (moment.keys.replica == IPS_NULL)
		moment.keys.replica = 0;
	status = check_value(tensor, &moment.keys, values, count, &err);
	if (status != ST_OK)
		return public__ends(tensor->outfeed, status, &err);
	call_begin(tensor->outfeed, &call);
	moment.time_ns = ips_recording_now_ns(tensor->outfeed->recording);
	moment.order = call.order;
	status = outfeed_record(tensor->tensor, &moment, values, count, NULL, &err);
	call_end(tensor->outfeed, &call);
	if (status == ST_OK)
		status = settle(tensor->outfeed, &err);
	return public__ends(tensor->outfeed, status, &err);
}

/* ---- losses ---------------------------------------------------------------------------------- */

/* @keys with a mode. */
static struct ips_keys keys_of(const struct ips_keys *keys)
{
	struct ips_keys own = IPS_KEYS_NULL;

	if (keys)
		own = *keys;
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
	const struct ips_keys own = keys_of(keys);
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
		pthread_mutex_lock(&outfeed->settling);
		outfeed_health_loss(health, &own, row.time_ns, loss);
		pthread_mutex_unlock(&outfeed->settling);
	}
	return public__ends(outfeed, append_metric(outfeed, &row, &err), &err);
}

int ips_outfeed_epoch(struct ips_outfeed *outfeed, const struct ips_keys *keys, double loss,
		      const double *val_loss)
{
	const struct ips_keys own = keys_of(keys);
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
		pthread_mutex_lock(&outfeed->settling);
		outfeed_health_epoch(health, &own, row.time_ns, loss,
				     val_loss ? *val_loss : (double)NAN, val_loss != NULL);
		pthread_mutex_unlock(&outfeed->settling);
	}
	status = append_metric(outfeed, &row, &err);
	if (status == ST_OK && val_loss) {
		row.mode = IPS_EVALUATE;
		row.value = *val_loss;
		status = append_metric(outfeed, &row, &err);
	}
	return public__ends(outfeed, status, &err);
}

/* Counts, of which no class has more wrong ones than there were. */
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
	const struct ips_keys own = keys_of(keys);
	int64_t samples = 0, least = INT64_MAX, most = 0;
	double misprediction = (double)NAN;
	struct err err = {ST_OK, ""};
	struct outfeed_health *health;
	enum status status;

	if (!outfeed)
		return 0;
	status = check_classes(seen, wrong, classes, &err);
	if (status != ST_OK)
		return public__ends(outfeed, status, &err);
	for (int c = 0; c < classes; c++) {
		if (seen[c] == 0) /* one that never came does not count */
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
	pthread_mutex_lock(&outfeed->settling);
	outfeed_health_classes(health, &own, ips_recording_now_ns(outfeed->recording), samples,
			       (double)most / (double)least, misprediction);
	pthread_mutex_unlock(&outfeed->settling);
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
