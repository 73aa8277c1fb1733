/*
 * One recorded value: the passes that its tier asks for, the rules, its rows, the first bad number.
 *
 * Nothing is allocated. Threading: a tensor and replica belong to the calling thread.
 */
#include <assert.h>
#include <math.h>

#include "outfeed/outfeed_internal.h"
#include "outfeed/outfeed_scan.h"

/* Of a tensor that is broken for ever at tier `health`: so many rows, and then at powers of two. */
#define STRETCH_ROWS 64

static bool due(const struct outfeed_tensor *tensor, enum outfeed_tier tier,
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
	return tensor && due(tensor, outfeed__tier(tensor), keys);
}

/* ---- the rules ------------------------------------------------------------------------------- */

static double abs_max_of(const struct outfeed_look *look)
{
	if (look->known == OUTFEED_HEALTH)
		return outfeed__float(look->abs_max);
	if (look->stats.n_nan > 0)
		return (double)NAN;
	return outfeed__look_bad(look) ? (double)INFINITY : look->stats.abs_max;
}

/* Does the row matter to a rule? */
static bool ask_rules(const struct outfeed_replica *replica, const struct outfeed_moment *moment,
		      const struct outfeed_look *look)
{
	const struct outfeed_stats *stats = &look->stats;
	const bool counted = look->known >= OUTFEED_COUNTS;
	const struct outfeed_health_row row = {
		.keys = moment->keys,
		.time_ns = moment->time_ns,
		.n = stats->n,
		.n_nan = counted ? stats->n_nan : IPS_NULL,
		.n_inf = counted ? stats->n_pos_inf + stats->n_neg_inf : IPS_NULL,
		.n_zero = counted ? stats->n_zero : IPS_NULL,
		.n_changed = look->n_changed,
		.abs_max = abs_max_of(look),
		.min = stats->min,
		.max = stats->max,
		.mean = stats->mean,
		.std = outfeed_stats_std(stats),
		.l1 = stats->l1,
		.l2 = outfeed_stats_l2(stats),
		.inactive = look->inactive,
		.update_ratio = look->update_ratio,
	};

	return replica->health && outfeed_health_row(replica->health, &row);
}

/* ---- keeping --------------------------------------------------------------------------------- */

/* A value on its way through. */
struct job {
	struct outfeed_tensor *tensor;
	struct outfeed_replica *replica;
	const struct outfeed_moment *moment;
	const void *values;
	size_t count;
	enum outfeed_tier tier; /* at which it is kept; OFF: its row is asked for alone */
	struct outfeed_look look;
};

static bool is_power_of_two(int64_t n)
{
	return (n & (n - 1)) == 0;
}

/* Tier `health`: what is worth a row, is of a bad value (then with all statistics) or matters to a
 * rule; but not for ever. What mends a stretch of which a row was left out gets one. */
static enum status keep_health(struct job *job, struct err *err)
{
	struct outfeed_replica *replica = job->replica;
	const int64_t stretch = replica->stretch + 1;
	const bool bad = outfeed__look_bad(&job->look);
	const struct outfeed_choice counts = {.tier = OUTFEED_COUNTS};
	const struct outfeed_choice stats = {.tier = OUTFEED_STATS};
	const bool usual = stretch <= STRETCH_ROWS || is_power_of_two(stretch);
	bool matters, room;

	if (bad && usual && job->tensor->outfeed->params.recording)
		outfeed__look(&job->look, job->tensor, replica, OUTFEED_HEALTH, true, job->moment,
			      job->values, job->count);
	matters = ask_rules(replica, job->moment, &job->look) || bad;
	room = matters ? usual : replica->skipped;
	replica->stretch = matters ? stretch : 0;
	replica->skipped = matters && !room;
	if (!room || !job->tensor->outfeed->params.recording ||
	    !outfeed__spend(job->tensor, OUTFEED_HEALTH, job->moment,
			    outfeed_bytes(bad ? &stats : &counts, job->count, job->tensor->dtype)))
		return ST_OK;
	return outfeed__append_stats(job->tensor, job->moment, &job->look, err);
}

static enum status keep_rows(struct job *job, struct err *err)
{
	struct outfeed_tensor *tensor = job->tensor;
	enum status status;

	ask_rules(job->replica, job->moment, &job->look);
	if (!tensor->outfeed->params.recording)
		return ST_OK;
	status = outfeed__append_stats(tensor, job->moment, &job->look, err);
	if (status == ST_OK && job->tier == OUTFEED_HISTOGRAM)
		status = outfeed__append_histogram(tensor, job->moment, job->values, job->count,
						   err);
	if (status == ST_OK && job->tier == OUTFEED_FULL)
		status = outfeed__append_capture(tensor, &job->moment->keys, job->values,
						 job->count, err);
	return status;
}

/* The ring and the frames; others may look at them. */
static enum status remember(struct job *job, struct err *err)
{
	struct outfeed_tensor *tensor = job->tensor;
	struct outfeed_replica *replica = job->replica;
	enum status status;

	if (!replica->frames)
		return ST_OK;
	pthread_mutex_lock(&replica->lock);
	status = outfeed__ring_follow(tensor, replica, err);
	if (job->tier == OUTFEED_LAST_N)
		outfeed__ring_push(tensor, replica, job->moment, job->values, job->count);
	outfeed__bad_frame(tensor->outfeed, replica, job->moment, &job->look);
	pthread_mutex_unlock(&replica->lock);
	return status;
}

/* A rule that this value has broken asks for the ring with the value in it. */
static enum status follow(struct job *job, struct err *err)
{
	enum status status;

	if (job->tier != OUTFEED_LAST_N || !job->replica->frames)
		return ST_OK;
	pthread_mutex_lock(&job->replica->lock);
	status = outfeed__ring_follow(job->tensor, job->replica, err);
	pthread_mutex_unlock(&job->replica->lock);
	return status;
}

/* The first failure is told, but a broken recording keeps no rule from being asked. */
static enum status keep(struct job *job, struct err *err)
{
	enum status first = remember(job, err), status;

	status = job->tier == OUTFEED_HEALTH ? keep_health(job, first == ST_OK ? err : NULL)
					     : keep_rows(job, first == ST_OK ? err : NULL);
	first = first == ST_OK ? status : first;
	status = follow(job, first == ST_OK ? err : NULL);
	return first == ST_OK ? status : first;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum status too_long(const struct outfeed_tensor *tensor, size_t count, struct err *err)
{
	return err_set(err, ST_INVALID,
		       "outfeed: tensor \"%s\" has %zu elements by its shape, but %zu were given",
		       tensor->key, tensor->count, count);
}

enum status outfeed_record(struct outfeed_tensor *tensor, const struct outfeed_moment *moment,
			   const void *values, size_t count, struct outfeed_stats *row,
			   struct err *err)
{
	const int64_t replica = moment->keys.replica == IPS_NULL ? 0 : moment->keys.replica;
	struct job job = {.tensor = tensor, .moment = moment, .values = values, .count = count};

	if (!tensor)
		return ST_OK;
	job.tier = outfeed__tier(tensor);
	job.tier = due(tensor, job.tier, &moment->keys) ? job.tier : OUTFEED_OFF;
	if (job.tier == OUTFEED_OFF && !row)
		return ST_OK;
	if (row)
		outfeed_stats_init(row);
	if (count > tensor->count)
		return too_long(tensor, count, err);
	assert(replica >= 0 && replica < tensor->outfeed->params.replicas);
	job.replica = &tensor->replica[replica];
	job.tier = outfeed__afford(tensor, job.tier, moment, count);
	outfeed__look(&job.look, tensor, job.replica, job.tier, row != NULL, moment, values, count);
	if (row)
		*row = job.look.stats;
	if (tensor->outfeed->params.recording && outfeed__look_bad(&job.look))
		outfeed__bad_found(tensor, replica, moment, &job.look, values, count);
	if (job.tier == OUTFEED_OFF)
		return ST_OK;
	outfeed__look_narrow(&job.look, job.tier);
	return keep(&job, err);
}

enum status outfeed_settle(struct outfeed *outfeed, uint64_t before, struct err *err)
{
	enum status bad, rings;

	if (outfeed->health)
		outfeed_health_settle(outfeed->health);
	bad = outfeed__bad_settle(outfeed, before, err);
	rings = outfeed__rings_settle(outfeed, bad == ST_OK ? err : NULL);
	return bad == ST_OK ? rings : bad;
}
