/*
 * Zero-bubble schedules (arXiv 2401.10241): the backward pass is split, and weight gradients fill
 * the bubbles.
 *
 * Pure functions.
 */
#include <math.h>

#include "common/minmax.h"
#include "ipu/ipu_schedule_internal.h"

/* @flight forwards first, then backwards and forwards in turn; from backward @hold + 1 on, a W
 * after each backward; the remaining W's at the end. */
static void alternate(const struct ipu_schedule_shape *shape, int place, int flight, int hold,
		      struct ipu_work *out)
{
	struct ipu__list list = {shape, out, place};
	int m = shape->microbatches, forwards = min(m, flight), weights = 0;

	for (int i = 0; i < forwards; i++)
		ipu__list_add(&list, IPU_PHASE_F, 0, i);
	for (int i = 0; i < m; i++) {
		ipu__list_add(&list, IPU_PHASE_B, 0, i);
		if (i >= hold)
			ipu__list_add(&list, IPU_PHASE_W, 0, weights++);
		if (forwards < m)
			ipu__list_add(&list, IPU_PHASE_F, 0, forwards++);
	}
	while (weights < m)
		ipu__list_add(&list, IPU_PHASE_W, 0, weights++);
}

/* ---- zb-h1 ----------------------------------------------------------------------------------- */

static void h1_order(const struct ipu_schedule_shape *shape, int place, struct ipu_work *out)
{
	alternate(shape, place, shape->stages - place, place, out);
}

/* The span is that of stage 0; if W is longer than B, other stages end after it. */
static struct ipu__form h1_closed(const struct ipu__times *t)
{
	double span = t->m * ipu__times_all(t) + (t->p - 1) * (t->f + t->b - t->w + 4 * t->c);

	if (!t->equal)
		return ipu__form_unknown();
	if (t->p == 1)
		return ipu__form_same(t->m * ipu__times_all(t));
	if (t->m < 2 * t->p || t->w > t->f || 2 * t->c > t->w)
		return ipu__form_unknown();
	return (struct ipu__form){t->w > t->b ? NAN : span, span};
}

const struct ipu_schedule_row ipu__schedule_zb_h1 = {
	.about = "weight gradients fill the bubbles, memory of 1f1b",
	.pace = IPU_PACE_FREE,
	.sharing = IPU_SHARE_NONE,
	.splits = true,
	.order = h1_order,
	.closed = h1_closed,
};

/* ---- zb-h2 ----------------------------------------------------------------------------------- */

static void h2_order(const struct ipu_schedule_shape *shape, int place, struct ipu_work *out)
{
	alternate(shape, place, 2 * (shape->stages - place) - 1, 2 * place, out);
}

/* The stages begin and end at different times: the span is known, the makespan is not. */
static struct ipu__form h2_closed(const struct ipu__times *t)
{
	if (!t->equal)
		return ipu__form_unknown();
	if (t->p == 1)
		return ipu__form_same(t->m * ipu__times_all(t));
	if (t->m < 2 * t->p || t->w > t->f || 2 * t->w > t->f + t->b || t->c > t->w)
		return ipu__form_unknown();
	return (struct ipu__form){NAN, t->m * ipu__times_all(t) +
					       (t->p - 1) * (t->f + t->b - 2 * t->w + 2 * t->c)};
}

const struct ipu_schedule_row ipu__schedule_zb_h2 = {
	.about = "weight gradients fill the bubbles, twice the memory",
	.pace = IPU_PACE_FREE,
	.sharing = IPU_SHARE_NONE,
	.splits = true,
	.order = h2_order,
	.closed = h2_closed,
};
