/*
 * GPipe and 1F1B: each IPU runs its list of works as their inputs become available.
 *
 * GPipe: arXiv 1811.06965. 1F1B, alone and interleaved with chunks: Megatron-LM, arXiv 2104.04473.
 * Pure functions.
 */
#include <math.h>

#include "common/minmax.h"
#include "ipu/ipu_schedule_internal.h"

/* ---- gpipe ----------------------------------------------------------------------------------- */

static void gpipe_order(const struct ipu_schedule_shape *shape, int place, struct ipu_work *out)
{
	struct ipu__list list = {shape, out, place};

	for (int i = 0; i < shape->microbatches; i++)
		ipu__list_add(&list, IPU_PHASE_F, 0, i);
	for (int i = 0; i < shape->microbatches; i++)
		ipu__list_add(&list, IPU_PHASE_B, 0, i);
}

/* Identical jobs through machines in a row: the sum of all stages once, and the slowest stage for
 * all jobs but one. So stages need not be equal; the last stage turns around after its last
 * forward. */
static struct ipu__form gpipe_closed(const struct ipu__times *t)
{
	return ipu__form_same(t->forward_sum + t->backward_sum +
			      (t->m - 1) * (t->forward_most + t->backward_most) +
			      2 * (t->p - 1) * t->c);
}

const struct ipu_schedule_row ipu__schedule_gpipe = {
	.about = "all forwards, then all backwards",
	.pace = IPU_PACE_FREE,
	.sharing = IPU_SHARE_NONE,
	.replays = IPU_REPLAY_AHEAD,
	.order = gpipe_order,
	.closed = gpipe_closed,
};

/* ---- 1f1b ------------------------------------------------------------------------------------ */

static void one_f_one_b_order(const struct ipu_schedule_shape *shape, int place,
			      struct ipu_work *out)
{
	struct ipu__list list = {shape, out, place};
	int m = shape->microbatches, forwards = min(m, shape->stages - place);

	for (int i = 0; i < forwards; i++)
		ipu__list_add(&list, IPU_PHASE_F, 0, i);
	for (int i = 0; i < m; i++) {
		ipu__list_add(&list, IPU_PHASE_B, 0, i);
		if (forwards < m)
			ipu__list_add(&list, IPU_PHASE_F, 0, forwards++);
	}
}

static struct ipu__form one_f_one_b_closed(const struct ipu__times *t)
{
	double rounds = t->m / t->p, hops = 0;

	if (!t->equal)
		return ipu__form_unknown();
	if (t->p > 1 && t->c > 0) {
		if (rounds != floor(rounds))
			return ipu__form_unknown();
		hops = 2 * (t->p - 1) * rounds + 2 * (t->p - 2);
	}
	return ipu__form_same((t->m + t->p - 1) * ipu__times_all(t) + hops * t->c);
}

const struct ipu_schedule_row ipu__schedule_1f1b = {
	.about = "one forward, one backward in turn",
	.pace = IPU_PACE_FREE,
	.sharing = IPU_SHARE_NONE,
	.replays = IPU_REPLAY_AHEAD,
	.order = one_f_one_b_order,
	.closed = one_f_one_b_closed,
};

/* ---- 1f1b-interleaved ------------------------------------------------------------------------ */

/* Add the k-th forward or backward: p micro-batches through a chunk, then through the next one. */
static void add_kth(struct ipu__list *list, char phase, int k)
{
	const int p = list->shape->places, chunks = list->shape->chunks, round = p * chunks;
	const int chunk = k % round / p, microbatch = k / round * p + k % p;

	ipu__list_add(list, phase, phase == IPU_PHASE_F ? chunk : chunks - 1 - chunk, microbatch);
}

static void chunks_order(const struct ipu_schedule_shape *shape, int place, struct ipu_work *out)
{
	struct ipu__list list = {shape, out, place};
	const int total = shape->microbatches * shape->chunks;
	const int warm =
		min(total, 2 * (shape->places - place - 1) + (shape->chunks - 1) * shape->places);

	for (int k = 0; k < warm; k++)
		add_kth(&list, IPU_PHASE_F, k);
	for (int k = 0; k < total; k++) {
		if (warm + k < total)
			add_kth(&list, IPU_PHASE_F, warm + k);
		add_kth(&list, IPU_PHASE_B, k);
	}
}

/* Without backward passes a last round may have fewer micro-batches. */
static int chunks_multiple(const struct ipu_schedule_shape *shape)
{
	return shape->training ? shape->places : 1;
}

static const char *chunks_rule(const struct ipu_schedule_shape *shape, int multiple)
{
	(void)shape;
	(void)multiple;
	return "the number of IPUs";
}

static struct ipu__form chunks_closed(const struct ipu__times *t)
{
	double hops = t->p > 1 ? (2 * t->v - 1) * t->p - 2 : 0;

	if (!t->equal)
		return ipu__form_unknown();
	return ipu__form_same(t->m * ipu__times_all(t) + (t->p - 1) * ipu__times_all(t) / t->v +
			      hops * t->c);
}

const struct ipu_schedule_row ipu__schedule_1f1b_interleaved = {
	.about = "1f1b with several chunks of the model on each device, in Megatron's order",
	.pace = IPU_PACE_FREE,
	.sharing = IPU_SHARE_IN_TURN,
	.replays = IPU_REPLAY_AHEAD,
	.order = chunks_order,
	.multiple = chunks_multiple,
	.rule = chunks_rule,
	.closed = chunks_closed,
	.closed_note = "the closed form is the published one, Megatron's order pays more hops",
};
