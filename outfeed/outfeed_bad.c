/*
 * The first number that is not finite, and the trail of tensors that led to it.
 *
 * The candidate with the least (order, replica, tensor) wins, whichever thread finds it and when.
 * It is written when outfeed_drain() knows that no earlier one can come. The trail has what the
 * same replica recorded before it in the order of execution, each tensor once, as it was then. It
 * is built from the frames that each tensor and replica retains. They end at the candidate and go
 * back OUTFEED_FRAMES values, so the trail is the same for any schedule in which no thread is
 * further ahead.
 *
 * Threading: any thread adds candidates; one thread drains.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "outfeed/outfeed_internal.h"

void outfeed__bad_init(struct outfeed_bad *bad)
{
	pthread_mutex_init(&bad->lock, NULL);
	atomic_init(&bad->order, UINT64_MAX);
}

void outfeed__bad_fini(struct outfeed_bad *bad)
{
	pthread_mutex_destroy(&bad->lock);
}

/* ---- candidates ------------------------------------------------------------------------------ */

struct search {
	size_t element;
	float value;
	bool found;
};

static void search_piece(void *user, const float *values, size_t at, size_t count)
{
	struct search *search = user;
	const size_t index = search->found ? count : outfeed_scan_first_nonfinite(values, count);

	if (index < count)
		*search = (struct search){at + index, values[index], true};
}

/* With the lock held. */
static bool is_earlier(const struct outfeed_bad *bad, const struct outfeed_tensor *tensor,
		       int64_t replica, uint64_t order)
{
	const uint64_t least = atomic_load_explicit(&bad->order, memory_order_relaxed);

	if (bad->written)
		return false;
	if (!bad->found || order != least)
		return !bad->found || order < least;
	if (replica != bad->first.replica)
		return replica < bad->first.replica;
	return tensor->index < bad->first.tensor->index;
}

/* Add the tensors that the value was computed from. A tensor that was never added has no row of
 * `tensors` yet; it gets one here. */
static void add_causes(struct outfeed_candidate *out, struct outfeed *outfeed,
		       const struct outfeed_moment *moment)
{
	for (int i = 0; i < moment->source_count && out->cause_count < OUTFEED_TRAIL; i++) {
		const struct outfeed_source *source = &moment->sources[i];
		const enum outfeed_kind kind = source->tensor->kind;
		struct outfeed_cause *cause = &out->causes[out->cause_count];

		cause->tensor_id = outfeed__append_tensor(outfeed, source->tensor);
		if (cause->tensor_id == IPS_NULL)
			continue;
		cause->role = kind == OUTFEED_WEIGHT || kind == OUTFEED_OPTIMIZER_STATE ? "weight"
											: "input";
		outfeed_stats_read(&cause->stats, DTYPE_FLOAT32, source->values, source->count,
				   outfeed->params.pool);
		out->cause_count++;
	}
}

void outfeed__bad_add(const struct outfeed_tensor *tensor, int64_t replica,
		      const struct outfeed_moment *moment, const struct outfeed_measure *measure,
		      const void *values, size_t count)
{
	struct outfeed *outfeed = tensor->outfeed;
	struct outfeed_bad *bad = &outfeed->bad;
	struct search search = {.value = NAN};
	struct outfeed_candidate mine;
	bool earlier;

	if (moment->order > atomic_load_explicit(&bad->order, memory_order_relaxed))
		return;
	pthread_mutex_lock(&bad->lock);
	earlier = is_earlier(bad, tensor, replica, moment->order);
	pthread_mutex_unlock(&bad->lock);
	if (!earlier)
		return;

	outfeed_pieces(tensor->dtype, values, count, search_piece, &search);
	mine = (struct outfeed_candidate){.tensor = tensor,
					  .replica = replica,
					  .keys = moment->keys,
					  .time_ns = moment->time_ns,
					  .stats = measure->stats,
					  .element = search.element,
					  .value = isnan(search.value) ? "nan"
						   : search.value > 0  ? "inf"
								       : "-inf"};
	if (measure->known < OUTFEED_STATS)
		outfeed_stats_read(&mine.stats, tensor->dtype, values, count, outfeed->params.pool);
	add_causes(&mine, outfeed, moment);

	pthread_mutex_lock(&bad->lock);
	if (is_earlier(bad, tensor, replica, moment->order)) {
		bad->first = mine;
		bad->found = true;
		atomic_store_explicit(&bad->order, moment->order, memory_order_relaxed);
	}
	pthread_mutex_unlock(&bad->lock);
}

void outfeed__bad_remember(const struct outfeed *outfeed, struct outfeed_replica *replica,
			   const struct outfeed_moment *moment,
			   const struct outfeed_measure *measure)
{
	const unsigned at = replica->frame;

	if (moment->order >= atomic_load_explicit(&outfeed->bad.order, memory_order_relaxed))
		return;
	replica->frames[at] = (struct outfeed_frame){.order = moment->order,
						     .keys = moment->keys,
						     .time_ns = moment->time_ns,
						     .n = measure->stats.n,
						     .abs_max = measure->abs_max,
						     .known = measure->known};
	if (measure->known >= OUTFEED_COUNTS && replica->frame_stats)
		replica->frame_stats[at] = measure->stats;
	replica->frame = (at + 1) % OUTFEED_FRAMES;
}

/* ---- the trail ------------------------------------------------------------------------------- */

/* A tensor as it was last recorded before the non-finite number. */
struct step {
	struct outfeed_frame frame;
	struct outfeed_stats stats;
	const struct outfeed_tensor *tensor;
};

struct trail {
	struct step steps[OUTFEED_TRAIL]; /* the latest first */
	int count;
};

static bool is_later_step(const struct step *a, const struct step *b)
{
	return a->frame.order != b->frame.order ? a->frame.order > b->frame.order
						: a->tensor->index > b->tensor->index;
}

/* Find the last value before @order. */
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

static bool is_cause(const struct outfeed_candidate *first, int64_t tensor_id)
{
	for (int i = 0; i < first->cause_count; i++)
		if (first->causes[i].tensor_id == tensor_id)
			return true;
	return false;
}

static void build_trail(struct trail *trail, const struct outfeed *outfeed, uint64_t order)
{
	const struct outfeed_candidate *first = &outfeed->bad.first;
	struct step step;

	trail->count = 0;
	for (size_t i = 0; i < outfeed->count; i++) {
		int at;

		step.tensor = outfeed->tensors[i];
		if (is_cause(first, step.tensor->tensor_id) ||
		    !find_step(&step, &step.tensor->replica[first->replica], order))
			continue;
		at = trail->count;
		while (at > 0 && is_later_step(&step, &trail->steps[at - 1]))
			at--;
		if (at == OUTFEED_TRAIL)
			continue;
		if (trail->count < OUTFEED_TRAIL)
			trail->count++;
		memmove(&trail->steps[at + 1], &trail->steps[at],
			(size_t)(trail->count - 1 - at) * sizeof(step));
		trail->steps[at] = step;
	}
}

/* ---- writing --------------------------------------------------------------------------------- */

static int append_trail_row(struct ips_recording *recording, struct ips_nonfinite_trail *row,
			    const struct outfeed_stats *stats, bool counted)
{
	OUTFEED_FILL_COLUMNS(row, stats, counted);
	return ips_append_nonfinite_trail(recording, row);
}

/* Positions count down: the bad tensor is 0, then its causes, then earlier tensors. */
static int append_trail(struct ips_recording *recording, const struct outfeed_candidate *first,
			struct trail *trail)
{
	struct ips_nonfinite_trail row = {.keys = first->keys,
					  .role = "bad",
					  .tensor_id = first->tensor->tensor_id,
					  .time_ns = first->time_ns};
	int status = append_trail_row(recording, &row, &first->stats, true);

	for (int i = 0; i < first->cause_count && status == 0; i++) {
		row.position--;
		row.role = first->causes[i].role;
		row.tensor_id = first->causes[i].tensor_id;
		status = append_trail_row(recording, &row, &first->causes[i].stats, true);
	}
	for (int i = 0; i < trail->count && status == 0; i++) {
		struct step *step = &trail->steps[i];
		const bool counted = step->frame.known >= OUTFEED_COUNTS;

		row = (struct ips_nonfinite_trail){.keys = step->frame.keys,
						   .position = row.position - 1,
						   .role = "before",
						   .tensor_id = step->tensor->tensor_id,
						   .time_ns = step->frame.time_ns};
		if (!counted)
			step->stats.abs_max = outfeed__float(step->frame.abs_max);
		status = append_trail_row(recording, &row, &step->stats, counted);
	}
	return status;
}

int outfeed__bad_write(struct outfeed *outfeed, uint64_t before)
{
	struct ips_recording *recording = outfeed->params.recording;
	struct outfeed_bad *bad = &outfeed->bad;
	const struct outfeed_candidate *first = &bad->first;
	struct outfeed_line line = {.length = 0};
	struct trail trail;
	uint64_t order;
	int status;

	pthread_mutex_lock(&bad->lock);
	order = atomic_load_explicit(&bad->order, memory_order_relaxed);
	if (!bad->found || bad->written || order >= before) {
		pthread_mutex_unlock(&bad->lock);
		return 0;
	}
	/* From here on no thread changes bad->first. */
	bad->written = true;
	atomic_store_explicit(&bad->order, 0, memory_order_relaxed);
	pthread_mutex_unlock(&bad->lock);

	build_trail(&trail, outfeed, order);
	status = ips_append_first_nonfinite(
		recording, &(struct ips_first_nonfinite){.keys = bad->first.keys,
							 .tensor_id = bad->first.tensor->tensor_id,
							 .time_ns = bad->first.time_ns,
							 .element = (int64_t)bad->first.element,
							 .value = bad->first.value});
	if (status == 0)
		status = append_trail(recording, &bad->first, &trail);

	outfeed__line_add(&line, "[HEALTH] first_nonfinite");
	outfeed__line_add_place(&line, first->tensor->key, first->tensor->layer, &first->keys);
	outfeed__line_add(&line, " element=%zu value=%s", first->element, first->value);
	pthread_mutex_lock(&outfeed->lock);
	outfeed__report(outfeed, ips_site_intern("health", "first_nonfinite", NULL), &first->keys,
			&line);
	pthread_mutex_unlock(&outfeed->lock);
	return status;
}
