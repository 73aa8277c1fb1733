/*
 * Shares of a stage's trainable weights, counted in floats of its optimizer ranges.
 */
#include "trainer/train_ranks.h"

#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"

/* Return where the shares of the replicas from @replica on begin, in trainable floats. Optimizers
 * with norms of whole parameters need shares that begin with a parameter. */
static size_t share_begin(const struct train_session *session, const struct train_stage *stage,
			  int replica)
{
	const size_t replicas = (size_t)session->layout->replicas;
	size_t count = 0, begin = 0, at;

	for (size_t i = 0; i < stage->range_count; i++)
		count += stage->ranges[i].count;
	at = count / replicas * (size_t)replica + count % replicas * (size_t)replica / replicas;
	if (!optimizer_needs_norms(&session->optimizer))
		return at;
	for (size_t i = 0; i < stage->range_count; begin += stage->ranges[i++].count)
		if (begin >= at && (i == 0 || stage->ranges[i].param != stage->ranges[i - 1].param))
			return begin;
	return count;
}

bool train_shard_wanted(const struct ranks *ranks, const struct run_file *run,
			const struct optimizer *optimizer)
{
	return ranks && run->fit.wanted && run->pipeline.wanted &&
	       run->pipeline.replicated_optimizer_state_sharding == RUN_YES &&
	       optimizer_slots(optimizer) > 0;
}

/* Set the parts of the ranges in [@first, @end); their slots are contiguous from *@kept on. */
static enum status own_ranges(struct train_stage *stage, size_t first, size_t end, size_t *kept,
			      struct err *err)
{
	size_t begin = 0;

	stage->own = mem_calloc(stage->range_count + 1, sizeof(*stage->own));
	if (!stage->own)
		return err_nomem(err);
	for (size_t i = 0; i < stage->range_count; begin += stage->ranges[i++].count) {
		const struct optimizer_range *range = &stage->ranges[i];
		const size_t from = max(first, begin), to = min(end, begin + range->count);

		if (from >= to)
			continue;
		stage->own[stage->own_count++] =
			(struct optimizer_range){.first = range->first + (from - begin),
						 .count = to - from,
						 .kept = *kept,
						 .param = range->param};
		*kept += to - from;
	}
	return ST_OK;
}

enum status train_shard_new(const struct train_session *session, struct train_replica *replica,
			    struct err *err)
{
	enum status status = ST_OK;
	size_t kept = 0;

	for (int s = 0; s < session->layout->stages && status == ST_OK; s++) {
		struct train_stage *stage = &replica->stage[s];

		if (session->sharded) {
			status = own_ranges(stage, share_begin(session, stage, replica->number),
					    share_begin(session, stage, replica->number + 1), &kept,
					    err);
		} else {
			stage->own = stage->ranges;
			stage->own_count = stage->range_count;
		}
	}
	replica->slot_stride = session->sharded ? kept : session->model->weights;
	return status;
}

size_t train_shard_offset(const struct train_session *session, const struct train_stage *stage,
			  int replica)
{
	const size_t at = share_begin(session, stage, replica);
	size_t begin = 0;

	for (size_t i = 0; i < stage->range_count && at > 0; begin += stage->ranges[i++].count)
		if (at < begin + stage->ranges[i].count)
			return stage->ranges[i].first + (at - begin) - stage->first_weight;
	return at == 0 ? 0 : stage->weight_count;
}

void train_shard_publish(const struct train_session *session, const struct train_replica *replica,
			 int stage)
{
	const struct train_stage *of = &replica->stage[stage];

	for (size_t i = 0; i < of->own_count; i++)
		memcpy(session->reduced + of->own[i].first, replica->weights + of->own[i].first,
		       of->own[i].count * sizeof(float));
}

void train_shard_fetch(const struct train_session *session, const struct train_replica *replica,
		       int stage)
{
	const struct train_stage *of = &replica->stage[stage];

	for (size_t i = 0; i < of->range_count; i++)
		memcpy(replica->weights + of->ranges[i].first,
		       session->reduced + of->ranges[i].first, of->ranges[i].count * sizeof(float));
}

void train_shard_publish_slot(const struct train_session *session, size_t slot)
{
	memset(session->reduced, 0, session->model->weights * sizeof(*session->reduced));
	for (int r = 0; r < session->replicas; r++) {
		const struct train_replica *replica = &session->replica[r];
		const float *values = replica->slots + slot * replica->slot_stride;

		for (int s = 0; s < session->layout->stages; s++)
			for (size_t i = 0; i < replica->stage[s].own_count; i++) {
				const struct optimizer_range *own = &replica->stage[s].own[i];

				memcpy(session->reduced + own->first, values + own->kept,
				       own->count * sizeof(*values));
			}
	}
}

void train_shard_fetch_slot(const struct train_session *session,
			    const struct train_replica *replica, size_t slot)
{
	float *values = replica->slots + slot * replica->slot_stride;

	for (int s = 0; s < session->layout->stages; s++)
		for (size_t i = 0; i < replica->stage[s].own_count; i++) {
			const struct optimizer_range *own = &replica->stage[s].own[i];

			memcpy(values + own->kept, session->reduced + own->first,
			       own->count * sizeof(*values));
		}
}
