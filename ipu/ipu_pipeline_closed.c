/*
 * Pipelines by closed form: the sources and conditions stand beside each in docs/cost-model.md.
 *
 * Pure functions. A form gives the makespan and the longest span of one stage, each NaN where it is
 * not known; the rates follow from them.
 */
#include "ipu/ipu_pipeline_internal.h"

#include <assert.h>
#include <math.h>

/* One stage's times where all are equal, and sums and maxima over the stages. In ns, as doubles:
 * exact up to 2^53 ns, which is 104 days. */
struct times {
	bool equal;
	double p, m, v;
	double f, b, w, c; /* b: the input's part */
	double forward_sum, backward_sum, forward_most, backward_most;
};

struct form {
	double makespan, span;
};

static const struct form unknown = {NAN, NAN};

static struct form same(double makespan)
{
	return (struct form){makespan, makespan};
}

static double all_of(const struct times *t)
{
	return t->f + t->b + t->w;
}

/* Identical jobs through machines in a row: the sum once, and the slowest for all jobs but one. So
 * stages need not be equal; the last stage turns round when its last forward is done. */
static struct form closed_gpipe(const struct times *t)
{
	return same(t->forward_sum + t->backward_sum +
		    (t->m - 1) * (t->forward_most + t->backward_most) + 2 * (t->p - 1) * t->c);
}

static struct form closed_1f1b(const struct times *t)
{
	double rounds = t->m / t->p, hops = 0;

	if (!t->equal)
		return unknown;
	if (t->p > 1 && t->c > 0) {
		if (rounds != floor(rounds))
			return unknown;
		hops = 2 * (t->p - 1) * rounds + 2 * (t->p - 2);
	}
	return same((t->m + t->p - 1) * all_of(t) + hops * t->c);
}

static struct form closed_1f1b_interleaved(const struct times *t)
{
	double hops = t->p > 1 ? (2 * t->v - 1) * t->p - 2 : 0;

	if (!t->equal)
		return unknown;
	return same(t->m * all_of(t) + (t->p - 1) * all_of(t) / t->v + hops * t->c);
}

/* The span is stage 0's; where W is longer than B other stages end after it. */
static struct form closed_zb_h1(const struct times *t)
{
	double span = t->m * all_of(t) + (t->p - 1) * (t->f + t->b - t->w + 4 * t->c);

	if (!t->equal)
		return unknown;
	if (t->p == 1)
		return same(t->m * all_of(t));
	if (t->m < 2 * t->p || t->w > t->f || 2 * t->c > t->w)
		return unknown;
	return (struct form){t->w > t->b ? NAN : span, span};
}

/* Its stages begin and end at different times: the span is known, the makespan is not. */
static struct form closed_zb_h2(const struct times *t)
{
	if (!t->equal)
		return unknown;
	if (t->p == 1)
		return same(t->m * all_of(t));
	if (t->m < 2 * t->p || t->w > t->f || 2 * t->w > t->f + t->b || t->c > t->w)
		return unknown;
	return (struct form){NAN,
			     t->m * all_of(t) + (t->p - 1) * (t->f + t->b - 2 * t->w + 2 * t->c)};
}

static struct form closed_sequential(const struct times *t)
{
	return same(t->m * (t->forward_sum + t->backward_sum + 2 * (t->p - 1) * t->c));
}

/* m + 2p - 1 steps: p of one forward, m - 1 of both, p of one backward. All but the last send. */
static struct form closed_grouped(const struct times *t)
{
	if (t->p == 1)
		return closed_sequential(t);
	if (!t->equal)
		return unknown;
	return same((t->m + t->p - 1) * all_of(t) + (t->m + 2 * t->p - 2) * t->c);
}

/* 2m + 2p - 2 steps: p of forwards alone, p of backwards alone, and in the rest half of the IPUs do
 * the one, half the other. All but the last send; of two stages only every other one does. */
static struct form closed_interleaved(const struct times *t)
{
	double backward = t->b + t->w;
	double hops = t->p > 2 ? 2 * t->m + 2 * t->p - 3 : t->m + 1;

	if (t->p == 1)
		return closed_sequential(t);
	if (!t->equal)
		return unknown;
	return same(t->p * all_of(t) + (2 * t->m - 2) * fmax(t->f, backward) + hops * t->c);
}

static struct form (*const forms[])(const struct times *t) = {
	[IPU_PIPELINE_GPIPE] = closed_gpipe,
	[IPU_PIPELINE_1F1B] = closed_1f1b,
	[IPU_PIPELINE_1F1B_INTERLEAVED] = closed_1f1b_interleaved,
	[IPU_PIPELINE_ZB_H1] = closed_zb_h1,
	[IPU_PIPELINE_ZB_H2] = closed_zb_h2,
	[IPU_PIPELINE_GROUPED] = closed_grouped,
	[IPU_PIPELINE_INTERLEAVED] = closed_interleaved,
	[IPU_PIPELINE_SEQUENTIAL] = closed_sequential,
};
_Static_assert(sizeof(forms) / sizeof(forms[0]) == IPU_PIPELINE_KINDS, "closed forms out of step");

static struct times times_of(const struct ipu_pipeline_params *params)
{
	struct times t = {
		.equal = true,
		.p = params->stages,
		.m = params->microbatches,
		.v = params->chunks > 1 ? params->chunks : 1,
		.f = (double)params->forward_ns[0],
		.b = (double)params->backward_input_ns[0],
		.w = (double)params->backward_weight_ns[0],
		.c = (double)params->communication_ns,
	};

	for (int s = 0; s < params->stages; s++) {
		double forward = (double)params->forward_ns[s];
		double input = (double)params->backward_input_ns[s];
		double weight = (double)params->backward_weight_ns[s];

		t.equal = t.equal && forward == t.f && input == t.b && weight == t.w;
		t.forward_sum += forward;
		t.backward_sum += input + weight;
		t.forward_most = fmax(t.forward_most, forward);
		t.backward_most = fmax(t.backward_most, input + weight);
	}
	return t;
}

void ipu_pipeline_closed_get(const struct ipu_pipeline_params *params,
			     struct ipu_pipeline_closed *out)
{
	struct times t = times_of(params);
	struct form form;
	double busy = t.m * (t.forward_sum + t.backward_sum) / t.p; /* of a stage, on average */

	assert((unsigned)params->kind < IPU_PIPELINE_KINDS);
	form = forms[params->kind](&t);
	*out = (struct ipu_pipeline_closed){
		.makespan_ns = form.makespan,
		.idle_fraction = form.makespan > 0 ? 1 - busy / form.makespan : NAN,
		.bubble_rate = form.span > 0 ? 1 - busy / form.span : NAN,
		.bubble_over_ideal = busy > 0 ? form.makespan / busy - 1 : NAN,
	};
}
