/*
 * The first number that is not finite, and the tensors that led to it.
 *
 * The least of (order, replica, tensor) wins, whichever thread meets it when; it is written when
 * outfeed_settle() knows that nothing earlier can come. The trail is made of what was looked at
 * before it in the order of execution, by the same replica, every tensor once, as it then was: from
 * the frames that each tensor and replica keeps. They stop at the candidate, and reach back
 * OUTFEED_FRAMES looks, so the trail is the same for any schedule in which no thread is further
 * ahead.
 *
 * Threading: candidates from any thread; settling from one.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "outfeed/outfeed_internal.h"
#include "outfeed/outfeed_scan.h"

void outfeed__bad_init(struct outfeed_bad *bad)
{
	pthread_mutex_init(&bad->lock, NULL);
	atomic_init(&bad->order, UINT64_MAX);
}

void outfeed__bad_fini(struct outfeed_bad *bad)
{
	pthread_mutex_destroy(&bad->lock);
}

/* ---- finding --------------------------------------------------------------------------------- */

struct search {
	size_t element;
	float value;
	bool found;
};

static void search_piece(void *user, const float *values, size_t at, size_t count)
{
	struct search *search = user;
	const size_t index = search->found ? count : outfeed_scan_first_nonfinite(values, count);

	if (index == count)
		return;
	*search = (struct search){at + index, values[index], true};
}

static const char *text_of(float value)
{
	return isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

/* Lock held. */
static bool is_earlier(const struct outfeed_bad *bad, const struct outfeed_tensor *tensor,
		       int64_t replica, uint64_t order)
{
	const uint64_t least = atomic_load_explicit(&bad->order, memory_order_relaxed);

	if (bad->written)
		return false;
	if (!bad->found || order != least)
		return !bad->found || order < least;
	if (replica != bad->replica)
		return replica < bad->replica;
	return tensor->index < bad->tensor->index;
}

static const char *role_of(enum outfeed_kind kind)
{
	return kind == OUTFEED_WEIGHT || kind == OUTFEED_OPTIMIZER_STATE ? "weight" : "input";
}

/* A tensor that was never added has no row of `tensors` yet. */
static int64_t register_source(struct outfeed *outfeed, const struct outfeed_tensor_params *params)
{
	struct outfeed_tensor tensor = {.outfeed = outfeed, .tensor_id = IPS_NULL};

	return outfeed__register(&tensor, params, NULL) == ST_OK ? tensor.tensor_id : IPS_NULL;
}

static void take_causes(struct outfeed_bad *bad, struct outfeed *outfeed,
			const struct outfeed_moment *moment)
{
	for (int i = 0; i < moment->source_count && bad->cause_count < OUTFEED_TRAIL; i++) {
		const struct outfeed_source *source = &moment->sources[i];
		struct outfeed_cause *cause = &bad->causes[bad->cause_count];

		cause->tensor_id = register_source(outfeed, source->tensor);
		if (cause->tensor_id == IPS_NULL)
			continue;
		cause->role = role_of(source->tensor->kind);
		outfeed__stats(&cause->stats, OUTFEED_FLOAT32, source->values, source->count,
			       outfeed->params.pool);
		bad->cause_count++;
	}
}

/* All but the lock and the state. */
static void fill(struct outfeed_bad *out, const struct outfeed_tensor *tensor, int64_t replica,
		 const struct outfeed_moment *moment, const struct outfeed_look *look,
		 const void *values, size_t count)
{
	struct search search = {.found = false, .value = NAN};

	outfeed__pieces(tensor->dtype, values, count, search_piece, &search);
	*out = (struct outfeed_bad){.tensor = tensor,
				    .replica = replica,
				    .keys = moment->keys,
				    .time_ns = moment->time_ns,
				    .element = search.element,
				    .value = text_of(search.value)};
	out->stats = look->stats;
	if (look->known < OUTFEED_STATS)
		outfeed__stats(&out->stats, tensor->dtype, values, count,
			       tensor->outfeed->params.pool);
	take_causes(out, tensor->outfeed, moment);
}

/* Lock held. */
static void replace(struct outfeed_bad *bad, const struct outfeed_bad *with, uint64_t order)
{
	bad->tensor = with->tensor;
	bad->replica = with->replica;
	bad->keys = with->keys;
	bad->time_ns = with->time_ns;
	bad->stats = with->stats;
	bad->element = with->element;
	bad->value = with->value;
	bad->cause_count = with->cause_count;
	memcpy(bad->causes, with->causes, sizeof(bad->causes));
	bad->found = true;
	atomic_store_explicit(&bad->order, order, memory_order_relaxed);
}

void outfeed__bad_found(const struct outfeed_tensor *tensor, int64_t replica,
			const struct outfeed_moment *moment, const struct outfeed_look *look,
			const void *values, size_t count)
{
	struct outfeed_bad *bad = &tensor->outfeed->bad;
	struct outfeed_bad mine;
	bool earlier;

	if (moment->order > atomic_load_explicit(&bad->order, memory_order_relaxed))
		return;
	pthread_mutex_lock(&bad->lock);
	earlier = is_earlier(bad, tensor, replica, moment->order);
	pthread_mutex_unlock(&bad->lock);
	if (!earlier)
		return;
	fill(&mine, tensor, replica, moment, look, values, count);
	pthread_mutex_lock(&bad->lock);
	if (is_earlier(bad, tensor, replica, moment->order))
		replace(bad, &mine, moment->order);
	pthread_mutex_unlock(&bad->lock);
}

void outfeed__bad_frame(struct outfeed *outfeed, struct outfeed_replica *replica,
			const struct outfeed_moment *moment, const struct outfeed_look *look)
{
	const unsigned at = replica->frame;

	if (!replica->frames ||
	    moment->order >= atomic_load_explicit(&outfeed->bad.order, memory_order_relaxed))
		return;
	replica->frames[at] = (struct outfeed_frame){.order = moment->order,
						     .keys = moment->keys,
						     .time_ns = moment->time_ns,
						     .n = look->stats.n,
						     .abs_max = look->abs_max,
						     .known = look->known};
	if (look->known >= OUTFEED_COUNTS && replica->frame_stats)
		replica->frame_stats[at] = look->stats;
	replica->frame = (at + 1) % OUTFEED_FRAMES;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* A frame out of its ring. */
struct step {
	struct outfeed_frame frame;
	struct outfeed_stats stats;
	const struct outfeed_tensor *tensor;
};

struct trail {
	struct step steps[OUTFEED_TRAIL]; /* the latest first */
	int count;
};

static bool is_later(const struct step *a, const struct step *b)
{
	return a->frame.order != b->frame.order ? a->frame.order > b->frame.order
						: a->tensor->index > b->tensor->index;
}

static void insert(struct trail *trail, const struct step *step)
{
	int at = trail->count;

	while (at > 0 && is_later(step, &trail->steps[at - 1]))
		at--;
	if (at == OUTFEED_TRAIL)
		return;
	if (trail->count < OUTFEED_TRAIL)
		trail->count++;
	memmove(&trail->steps[at + 1], &trail->steps[at],
		(size_t)(trail->count - 1 - at) * sizeof(*step));
	trail->steps[at] = *step;
}

/* The last look at @tensor before @order. */
static bool find_step(struct step *out, struct outfeed_replica *replica, uint64_t order)
{
	bool found = false;

	pthread_mutex_lock(&replica->lock);
	for (unsigned i = 0; replica->frames && i < OUTFEED_FRAMES; i++) {
		const struct outfeed_frame *frame = &replica->frames[i];

		if (frame->known == OUTFEED_OFF || frame->order >= order ||
		    (found && frame->order <= out->frame.order))
			continue;
		found = true;
		out->frame = *frame;
		outfeed_stats_init(&out->stats);
		out->stats.n = frame->n;
		if (frame->known >= OUTFEED_COUNTS && replica->frame_stats)
			out->stats = replica->frame_stats[i];
	}
	pthread_mutex_unlock(&replica->lock);
	return found;
}

static bool is_cause(const struct outfeed_bad *bad, int64_t tensor_id)
{
	for (int i = 0; i < bad->cause_count; i++)
		if (bad->causes[i].tensor_id == tensor_id)
			return true;
	return false;
}

static void gather(struct trail *trail, const struct outfeed *outfeed, uint64_t order)
{
	const struct outfeed_bad *bad = &outfeed->bad;
	struct step step;

	trail->count = 0;
	for (size_t i = 0; i < outfeed->count; i++) {
		step.tensor = outfeed->tensors[i];
		if (!is_cause(bad, step.tensor->tensor_id) &&
		    find_step(&step, &step.tensor->replica[bad->replica], order))
			insert(trail, &step);
	}
}

static int append_step(struct ips_recording *recording, struct ips_nonfinite_trail *row,
		       const struct outfeed_stats *stats, bool counted)
{
	OUTFEED_FILL_COLUMNS(row, stats, counted);
	return ips_append_nonfinite_trail(recording, row);
}

static int append_before(struct ips_recording *recording, struct step *step, int64_t position)
{
	const bool counted = step->frame.known >= OUTFEED_COUNTS;
	struct ips_nonfinite_trail row = {.keys = step->frame.keys,
					  .position = position,
					  .role = "before",
					  .tensor_id = step->tensor->tensor_id,
					  .time_ns = step->frame.time_ns};

	if (!counted)
		step->stats.abs_max = outfeed__float(step->frame.abs_max);
	return append_step(recording, &row, &step->stats, counted);
}

static int append_causes(struct ips_recording *recording, const struct outfeed_bad *bad)
{
	struct ips_nonfinite_trail row = {.keys = bad->keys,
					  .role = "bad",
					  .tensor_id = bad->tensor->tensor_id,
					  .time_ns = bad->time_ns};
	int status = append_step(recording, &row, &bad->stats, true);

	for (int i = 0; i < bad->cause_count && status == 0; i++) {
		row.position--;
		row.role = bad->causes[i].role;
		row.tensor_id = bad->causes[i].tensor_id;
		status = append_step(recording, &row, &bad->causes[i].stats, true);
	}
	return status;
}

static int append_first(struct ips_recording *recording, const struct outfeed_bad *bad)
{
	const struct ips_first_nonfinite row = {.keys = bad->keys,
						.tensor_id = bad->tensor->tensor_id,
						.time_ns = bad->time_ns,
						.element = (int64_t)bad->element,
						.value = bad->value};

	return ips_append_first_nonfinite(recording, &row);
}

static void tell(struct outfeed *outfeed)
{
	const struct outfeed_bad *bad = &outfeed->bad;
	struct outfeed_line line = {.length = 0};

	outfeed__line_add(&line, "[HEALTH] first_nonfinite");
	outfeed__line_where(&line, bad->tensor->key, bad->tensor->layer, &bad->keys);
	outfeed__line_add(&line, " element=%zu value=%s", bad->element, bad->value);
	pthread_mutex_lock(&outfeed->lock);
	outfeed__tell(outfeed, ips_site_intern("health", "first_nonfinite", NULL), &bad->keys,
		      &line);
	pthread_mutex_unlock(&outfeed->lock);
}

enum status outfeed__bad_settle(struct outfeed *outfeed, uint64_t before, struct err *err)
{
	struct ips_recording *recording = outfeed->params.recording;
	struct outfeed_bad *bad = &outfeed->bad;
	struct trail trail;
	uint64_t order;
	int status;

	pthread_mutex_lock(&bad->lock);
	order = atomic_load_explicit(&bad->order, memory_order_relaxed);
	if (!bad->found || bad->written || order >= before) {
		pthread_mutex_unlock(&bad->lock);
		return ST_OK;
	}
	/* From here on nobody changes it any more. */
	bad->written = true;
	atomic_store_explicit(&bad->order, 0, memory_order_relaxed);
	pthread_mutex_unlock(&bad->lock);

	gather(&trail, outfeed, order);
	status = append_first(recording, bad);
	if (status == 0)
		status = append_causes(recording, bad);
	for (int i = 0; i < trail.count && status == 0; i++)
		status = append_before(recording, &trail.steps[i], -bad->cause_count - i - 1);
	tell(outfeed);
	return outfeed__failed(outfeed, status, err);
}
