/*
 * The recorder: the registry of tensors, and the path of a recorded value.
 *
 * outfeed_tensor_add() registers a tensor once, whether a queue sends it or a rule watches it; both
 * are properties of the tensor (outfeed_tensor.sent, .choice). Every value goes through
 * outfeed_record(): the passes that its tier needs, the first non-finite number, the rules, its
 * rows, its queue.
 *
 * A tensor owns a state per replica, each on cache lines of its own, so replicas record
 * concurrently. All memory for recording is allocated when a tensor is added. The recorder owns the
 * tensors; texts are copied, the recording is the caller's. Threading: a tensor and replica belong
 * to the calling thread.
 */
#include "outfeed/outfeed.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "outfeed/outfeed_internal.h"

/* ---- creating and freeing -------------------------------------------------------------------- */

#define TRACK_SLOTS 4096 /* of the track of instants: for hundreds of hits between two commits */

static void free_tensor(struct outfeed_tensor *tensor)
{
	for (int r = 0; tensor->replica && r < tensor->outfeed->params.replicas; r++) {
		struct outfeed_replica *replica = &tensor->replica[r];

		mem_free(replica->before);
		mem_free(replica->active);
		mem_free(replica->frames);
		mem_free(replica->frame_stats);
		outfeed__ring_free(&replica->ring);
		pthread_mutex_destroy(&replica->lock);
	}
	mem_free(tensor->replica);

	mem_free(tensor->queue);
	mem_free(tensor->key);
	mem_free(tensor->layer);
	mem_free(tensor);
}

static void outfeed_free(struct outfeed *outfeed)
{
	for (size_t i = 0; i < outfeed->count; i++)
		free_tensor(outfeed->tensors[i]);
	mem_free(outfeed->tensors);
	outfeed_health_free(outfeed->health);
	outfeed__bad_fini(&outfeed->bad);
	pthread_mutex_destroy(&outfeed->lock);
	mem_free(outfeed);
}

static enum status outfeed_init(struct outfeed *outfeed, struct err *err)
{
	const struct ips_track_params track = {
		.ipu = IPS_NULL, .clock = IPS_HOST, .ring_slots = TRACK_SLOTS};
	const struct outfeed_health_params health = {
		.rules = outfeed->params.rules, .hit = outfeed__hit, .user = outfeed};
	enum status status;

	outfeed->track = outfeed->params.track;
	if (!outfeed->track && outfeed->params.recording) {
		outfeed->track = ips_track_open(outfeed->params.recording, "health", &track);
		if (!outfeed->track)
			return err_nomem(err);
	}
	if (!health.rules)
		return ST_OK;
	status = outfeed_health_new(&outfeed->health, &health, err);
	return status == ST_OK ? outfeed__failed(outfeed, outfeed__append_rules(outfeed), err)
			       : status;
}

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
	status = outfeed_init(outfeed, err);
	if (status == ST_OK)
		*out = outfeed;
	else
		outfeed_free(outfeed);
	return status;
}

enum status outfeed_drain(struct outfeed *outfeed, uint64_t before, struct err *err)
{
	enum status bad, rings;

	if (outfeed->health)
		outfeed_health_evaluate(outfeed->health);
	bad = outfeed__failed(outfeed, outfeed__bad_write(outfeed, before), err);
	rings = outfeed__failed(outfeed, outfeed__rings_flush(outfeed), bad == ST_OK ? err : NULL);
	return bad == ST_OK ? rings : bad;
}

enum status outfeed_close(struct outfeed *outfeed, struct err *err)
{
	enum status status;

	if (!outfeed)
		return ST_OK;
	outfeed_flush(outfeed);
	status = outfeed_drain(outfeed, UINT64_MAX, err);
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

/* ---- the registry ---------------------------------------------------------------------------- */

static enum status copy_tensor_params(struct outfeed_tensor *tensor,
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
	if (!tensor->queue || !tensor->key || (!tensor->layer && params->layer))
		return err_nomem(err);
	tensor->count = 1;
	for (int i = 0; i < params->ndim; i++) {
		tensor->shape[i] = params->shape[i];
		if (params->shape[i] < 0 ||
		    __builtin_mul_overflow(tensor->count, (size_t)params->shape[i],
					   &tensor->count) ||
		    tensor->count > PTRDIFF_MAX / sizeof(double))
			return err_set(err, ST_LIMIT,
				       "outfeed: the shape of tensor \"%s\" is no shape",
				       tensor->key);
	}
	tensor->neurons = tensor->ndim > 0 ? (size_t)tensor->shape[tensor->ndim - 1] : 0;
	return ST_OK;
}

/* Allocate all memory that a step needs. */
static enum status replica_init(struct outfeed_replica *replica,
				const struct outfeed_tensor *tensor, struct err *err)
{
	const enum outfeed_tier tier = tensor->choice.tier;
	const bool recorded = tensor->outfeed->params.recording != NULL;
	const bool before = tier >= OUTFEED_STATS && (tensor->kind == OUTFEED_WEIGHT ||
						      tensor->kind == OUTFEED_OPTIMIZER_STATE);
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

static enum status tensor_init(struct outfeed_tensor *tensor,
			       const struct outfeed_tensor_params *params, struct err *err)
{
	struct outfeed *outfeed = tensor->outfeed;
	const int replicas = outfeed->params.replicas;
	const bool rules = outfeed->health && tensor->choice.tier != OUTFEED_OFF;
	struct outfeed_health_about_tensor about;
	char why[OUTFEED_POLICY_TEXT];
	enum status status = copy_tensor_params(tensor, params, err);

	if (status != ST_OK)
		return status;
	tensor->replica = mem_aligned((size_t)replicas, sizeof(*tensor->replica));
	if (!tensor->replica)
		return err_nomem(err);
	for (int r = 0; r < replicas; r++)
		pthread_mutex_init(&tensor->replica[r].lock, NULL);
	for (int r = 0; r < replicas && status == ST_OK; r++)
		status = replica_init(&tensor->replica[r], tensor, err);
	if (status != ST_OK)
		return status;
	tensor->tensor_id = outfeed__append_tensor(outfeed, params);
	if (outfeed->params.recording && tensor->tensor_id == IPS_NULL)
		return err_nomem(err);
	about = (struct outfeed_health_about_tensor){.tensor_id = tensor->tensor_id,
						     .key = tensor->key,
						     .layer = tensor->layer,
						     .kind = tensor->kind,
						     .activity = tensor->activity,
						     .matrix = tensor->ndim >= 2,
						     .neurons = (int64_t)tensor->neurons};
	for (int r = 0; rules && r < replicas && status == ST_OK; r++) {
		about.replica = outfeed->params.first_replica + r;
		status = outfeed_health_tensor(outfeed->health, &tensor->replica[r].health, &about,
					       err);
	}
	if (status != ST_OK || !outfeed->params.recording)
		return status;
	outfeed_policy_explain(why, outfeed->params.policy, tensor->key, tensor->kind,
			       params->asked);
	return outfeed__failed(outfeed, outfeed__append_tier(tensor, NULL, why), err);
}

enum status outfeed_tensor_add(struct outfeed *outfeed, struct outfeed_tensor **out,
			       const struct outfeed_tensor_params *params, struct err *err)
{
	const struct outfeed_choice choice = outfeed_policy_choose(
		outfeed->params.policy, params->key, params->kind, params->asked);
	struct outfeed_tensor *tensor;
	enum status status;

	assert(params->ndim >= 0 && params->ndim <= OUTFEED_NDIM_MAX);
	*out = NULL;
	if (choice.tier == OUTFEED_OFF && params->asked != OUTFEED_SENT)
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
		free_tensor(tensor);
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

/* ---- measuring ------------------------------------------------------------------------------- */

/* A value being recorded. */
struct job {
	struct outfeed_tensor *tensor;
	struct outfeed_replica *replica;
	const struct outfeed_moment *moment;
	const void *values;
	size_t count;
	enum outfeed_tier tier; /* to record it at; OFF: only for its queue or the caller */
	struct outfeed_measure measure;
};

static void counts_piece(void *user, const float *values, size_t at, size_t count)
{
	struct outfeed_stats counts;

	(void)at;
	outfeed_scan_counts(&counts, values, count);
	outfeed_stats_merge(user, &counts);
}

static void abs_max_piece(void *user, const float *values, size_t at, size_t count)
{
	uint32_t *most = user;
	const uint32_t bits = outfeed_scan_abs_max(values, count);

	(void)at;
	*most = max(bits, *most);
}

static void measure_values(struct job *job)
{
	const enum dtype dtype = job->tensor->dtype;
	struct outfeed_measure *measure = &job->measure;

	measure->abs_max = 0;
	if (measure->known >= OUTFEED_STATS) {
		outfeed_stats_read(&measure->stats, dtype, job->values, job->count,
				   job->tensor->outfeed->params.pool);
		return;
	}
	outfeed_stats_init(&measure->stats);
	measure->stats.n = (int64_t)job->count;
	if (job->moment->abs_max_known)
		measure->abs_max = job->moment->abs_max;
	else
		outfeed_pieces(dtype, job->values, job->count, abs_max_piece, &measure->abs_max);
	if (measure->known != OUTFEED_COUNTS)
		return;
	outfeed_stats_init(&measure->stats);
	outfeed_pieces(dtype, job->values, job->count, counts_piece, &measure->stats);
	if (job->count > 0 && measure->abs_max < OUTFEED_NONFINITE_BITS)
		measure->stats.abs_max = outfeed__float(measure->abs_max);
}

struct neurons {
	uint32_t *active;
	size_t count;
	enum outfeed_activity activity;
};

/* A piece may begin and end within a row of neurons. */
static void neurons_piece(void *user, const float *values, size_t at, size_t count)
{
	const struct neurons *neurons = user;

	while (count > 0) {
		const size_t column = at % neurons->count, left = neurons->count - column;
		const bool rows = column == 0 && count >= neurons->count;
		const size_t cases = rows ? count / neurons->count : 1;
		const size_t width = rows ? neurons->count : min(left, count);

		outfeed_neurons_add(neurons->active + column, neurons->activity, values, cases,
				    width);
		values += cases * width;
		at += cases * width;
		count -= cases * width;
	}
}

struct change {
	float *before;
	struct outfeed_change sums;
};

static void change_piece(void *user, const float *values, size_t at, size_t count)
{
	struct change *change = user;
	struct outfeed_change piece;

	outfeed_change_scan(&piece, change->before + at, values, count);
	change->sums.n_changed += piece.n_changed;
	change->sums.sum_change += piece.sum_change;
	change->sums.sum_before += piece.sum_before;
}

static void before_piece(void *user, const float *values, size_t at, size_t count)
{
	float *before = user;

	if (count > 0)
		memcpy(before + at, values, count * sizeof(*values));
}

/* Measure the changes since the previous value: with `every`, of several updates. */
static void measure_changes(struct job *job)
{
	struct outfeed_replica *replica = job->replica;
	struct change change = {.before = replica->before};

	if (!replica->before || job->count != job->tensor->count)
		return;
	if (!replica->has_before) {
		outfeed_pieces(job->tensor->dtype, job->values, job->count, before_piece,
			       replica->before);
		replica->has_before = true;
		return;
	}
	outfeed_pieces(job->tensor->dtype, job->values, job->count, change_piece, &change);
	job->measure.n_changed = change.sums.n_changed;
	job->measure.update_ratio = outfeed_change_ratio(&change.sums, job->count);
}

/* Do the passes over memory that the tier needs; @whole: the whole statistics at any tier. */
static void measure_value(struct job *job, bool whole)
{
	struct outfeed_measure *out = &job->measure;

	out->known = whole || job->tier > OUTFEED_STATS ? OUTFEED_STATS : job->tier;
	out->inactive = out->update_ratio = (double)NAN;
	out->n_changed = IPS_NULL;
	measure_values(job);
	/* A NaN is not active, but it does not mean that the neuron is dead or flat. */
	if (job->tier >= OUTFEED_COUNTS && out->stats.n_nan == 0) {
		const struct outfeed_tensor *tensor = job->tensor;
		uint32_t *active = job->replica->active;
		struct neurons neurons = {active, tensor->neurons, tensor->activity};

		if (active && job->count % tensor->neurons == 0) {
			memset(active, 0, tensor->neurons * sizeof(*active));
			outfeed_pieces(tensor->dtype, job->values, job->count, neurons_piece,
				       &neurons);
			job->measure.inactive = outfeed_neurons_inactive(
				active, job->count / tensor->neurons, tensor->neurons);
		}
	}
	if (job->tier >= OUTFEED_STATS)
		measure_changes(job);
}

static int64_t count_bad(const struct outfeed_stats *stats)
{
	return stats->n_nan + stats->n_pos_inf + stats->n_neg_inf;
}

static bool is_bad(const struct outfeed_measure *measure)
{
	return measure->known == OUTFEED_HEALTH ? measure->abs_max >= OUTFEED_NONFINITE_BITS
						: count_bad(&measure->stats) > 0;
}

/* Discard what the tier does not measure, so that rules and rows do not depend on whether the whole
 * statistics were needed elsewhere. */
static void reduce_to_tier(struct outfeed_measure *measure, enum outfeed_tier tier)
{
	const struct outfeed_stats all = measure->stats;

	if (tier >= OUTFEED_STATS || measure->known <= tier)
		return;
	outfeed_stats_init(&measure->stats);
	measure->stats.n = all.n;
	if (tier == OUTFEED_HEALTH) {
		const float value = all.n_nan > 0         ? NAN
				    : count_bad(&all) > 0 ? INFINITY
				    : isnan(all.abs_max)  ? 0
							  : (float)all.abs_max;
		uint32_t bits;

		memcpy(&bits, &value, sizeof(bits));
		measure->abs_max = bits;
	} else {
		measure->stats.n_nan = all.n_nan;
		measure->stats.n_pos_inf = all.n_pos_inf;
		measure->stats.n_neg_inf = all.n_neg_inf;
		measure->stats.n_zero = all.n_zero;
		measure->stats.n_neg = all.n_neg;
		measure->stats.n_pos = all.n_pos;
		measure->stats.abs_max = count_bad(&all) > 0 ? (double)NAN : all.abs_max;
	}
	measure->known = tier;
}

/* ---- rules and rows -------------------------------------------------------------------------- */

/* Check the rules; return whether the value matters to one. */
static bool check_rules(const struct job *job)
{
	const struct outfeed_measure *measure = &job->measure;
	const struct outfeed_stats *stats = &measure->stats;
	const bool counted = measure->known >= OUTFEED_COUNTS;
	const struct outfeed_health_row row = {
		.keys = job->moment->keys,
		.time_ns = job->moment->time_ns,
		.n = stats->n,
		.n_nan = counted ? stats->n_nan : IPS_NULL,
		.n_inf = counted ? stats->n_pos_inf + stats->n_neg_inf : IPS_NULL,
		.n_zero = counted ? stats->n_zero : IPS_NULL,
		.n_changed = measure->n_changed,
		.abs_max = measure->known == OUTFEED_HEALTH ? outfeed__float(measure->abs_max)
			   : stats->n_nan > 0               ? (double)NAN
			   : is_bad(measure)                ? (double)INFINITY
							    : stats->abs_max,
		.min = stats->min,
		.max = stats->max,
		.mean = stats->mean,
		.std = outfeed_stats_std(stats),
		.l1 = stats->l1,
		.l2 = outfeed_stats_l2(stats),
		.inactive = measure->inactive,
		.update_ratio = measure->update_ratio,
	};

	return job->replica->health && outfeed_health_row(job->replica->health, &row);
}

/* Consecutive rows of a broken tensor at tier `health`; after them only at powers of two. */
#define STRETCH_ROWS 64

/* Tier `health`: append a row only if the value is bad (then with all statistics) or matters to a
 * rule, but not for an unlimited number. The value that ends a stretch with omitted rows gets
 * one. */
static int record_health(struct job *job)
{
	struct outfeed_replica *replica = job->replica;
	const bool recorded = job->tensor->outfeed->params.recording != NULL;
	const int64_t stretch = replica->stretch + 1;
	const bool usual = stretch <= STRETCH_ROWS || (stretch & (stretch - 1)) == 0;
	const bool bad = is_bad(&job->measure);
	bool matters, room;

	if (bad && usual && recorded)
		measure_value(job, true);
	matters = check_rules(job) || bad;
	room = matters ? usual : replica->skipped;
	replica->stretch = matters ? stretch : 0;
	replica->skipped = matters && !room;
	if (!room || !recorded ||
	    !outfeed__afford_health(job->tensor, job->moment, job->count, bad))
		return 0;
	return outfeed__append_stats(job->tensor, job->moment, &job->measure);
}

/* Rules are checked even if the recording has failed. Return the recording's first failure. */
static int record_rows(struct job *job)
{
	struct outfeed_tensor *tensor = job->tensor;
	int status;

	if (job->tier == OUTFEED_HEALTH)
		return record_health(job);
	check_rules(job);
	if (!tensor->outfeed->params.recording)
		return 0;
	status = outfeed__append_stats(tensor, job->moment, &job->measure);
	if (status == 0 && job->tier == OUTFEED_HISTOGRAM)
		status = outfeed__append_histogram(tensor, job->moment, job->values, job->count);
	if (status == 0 && job->tier == OUTFEED_FULL)
		status = outfeed__append_capture(tensor, &job->moment->keys, job->values,
						 job->count);
	return status;
}

static int first_status(int first, int second)
{
	return first != 0 ? first : second;
}

static int record_at_tier(struct job *job)
{
	struct outfeed_replica *replica = job->replica;
	int status = 0;

	/* The value goes into ring and frames, which the draining thread reads, too. */
	if (replica->frames) {
		pthread_mutex_lock(&replica->lock);
		status = outfeed__ring_flush(job->tensor, &replica->ring);
		if (job->tier == OUTFEED_LAST_N)
			outfeed__ring_push(job->tensor, &replica->ring, job->moment, job->values,
					   job->count);
		outfeed__bad_remember(job->tensor->outfeed, replica, job->moment, &job->measure);
		pthread_mutex_unlock(&replica->lock);
	}
	status = first_status(status, record_rows(job));
	/* If this value violated a rule, the ring is written, the value included. */
	if (job->tier == OUTFEED_LAST_N && replica->frames) {
		pthread_mutex_lock(&replica->lock);
		status = first_status(status, outfeed__ring_flush(job->tensor, &replica->ring));
		pthread_mutex_unlock(&replica->lock);
	}
	return status;
}

/* ---- the path of a value --------------------------------------------------------------------- */

static bool is_due_at(const struct outfeed_tensor *tensor, enum outfeed_tier tier,
		      const struct ips_keys *keys)
{
	int64_t count;

	if (tier == OUTFEED_OFF)
		return false;
	if (tensor->choice.every == 1)
		return true;
	count = keys->step != IPS_NULL ? keys->step : keys->weight_update;
	return count == IPS_NULL || count % tensor->choice.every == 0;
}

bool outfeed_due(const struct outfeed_tensor *tensor, const struct ips_keys *keys)
{
	if (tensor && tensor->sent)
		return outfeed__sends(tensor->sent);
	return tensor && is_due_at(tensor, outfeed__tier(tensor), keys);
}

enum status outfeed_record(struct outfeed_tensor *tensor, const struct outfeed_moment *moment,
			   const void *values, size_t count, struct outfeed_stats *row,
			   struct err *err)
{
	const int64_t replica =
		!tensor || moment->keys.replica == IPS_NULL
			? 0
			: moment->keys.replica - tensor->outfeed->params.first_replica;
	struct job job = {.tensor = tensor, .moment = moment, .values = values, .count = count};
	enum status status = ST_OK;
	struct outfeed_stats whole;

	if (!tensor || (tensor->sent && !outfeed__sends(tensor->sent)))
		return ST_OK;
	job.tier = outfeed__tier(tensor);
	job.tier = is_due_at(tensor, job.tier, &moment->keys) ? job.tier : OUTFEED_OFF;
	if (job.tier == OUTFEED_OFF && !row && !tensor->sent)
		return ST_OK;
	if (row)
		outfeed_stats_init(row);
	if (count > tensor->count)
		return err_set(
			err, ST_INVALID,
			"outfeed: tensor \"%s\" has %zu elements by its shape, but %zu were given",
			tensor->key, tensor->count, count);
	assert(replica >= 0 && replica < tensor->outfeed->params.replicas);
	job.replica = &tensor->replica[replica];
	job.tier = outfeed__afford(tensor, job.tier, moment, count);
	measure_value(&job, row || tensor->sent);
	if (row || tensor->sent)
		whole = job.measure.stats;
	if (row)
		*row = whole;
	if (tensor->outfeed->params.recording && is_bad(&job.measure))
		outfeed__bad_add(tensor, replica, moment, &job.measure, values, count);
	if (job.tier != OUTFEED_OFF) {
		reduce_to_tier(&job.measure, job.tier);
		status = outfeed__failed(tensor->outfeed, record_at_tier(&job), err);
	}
	if (tensor->sent) {
		const enum status sent =
			outfeed__enqueue(tensor->sent, moment, replica, &whole, values, count,
					 status == ST_OK ? err : NULL);

		status = status == ST_OK ? sent : status;
	}
	return status;
}

/* ---- saved state ----------------------------------------------------------------------------- */

/* Names of states must differ: a snapshot refuses longer ones. */
#define STATE_NAME 4096

void outfeed_state(struct outfeed *outfeed, int index, outfeed_state_visit visit, void *user)
{
	for (size_t i = 0; i < outfeed->count; i++) {
		const struct outfeed_tensor *tensor = outfeed->tensors[i];
		struct outfeed_replica *replica = &tensor->replica[index];
		int64_t counts[] = {replica->stretch, replica->skipped, replica->has_before};
		char name[STATE_NAME];

		if (!replica->health)
			continue;
		snprintf(name, sizeof(name), "%d %s/%s", (int)tensor->kind, tensor->queue,
			 tensor->key);
		outfeed_health_tensor_state(replica->health, name, visit, user);
		snprintf(name, sizeof(name), "seen %d %s/%s", (int)tensor->kind, tensor->queue,
			 tensor->key);
		if (!visit(user, name, counts, sizeof(counts)) ||
		    !outfeed_health_are_counts(counts, ARRAY_LEN(counts)))
			continue;
		replica->stretch = counts[0];
		replica->skipped = counts[1] != 0;
		snprintf(name, sizeof(name), "before %d %s/%s", (int)tensor->kind, tensor->queue,
			 tensor->key);
		replica->has_before = counts[2] != 0 && replica->before &&
				      visit(user, name, replica->before,
					    tensor->count * sizeof(*replica->before));
	}
}
