/*
 * The health rules of tensors: what each makes of one row. Pure functions: any thread.
 */
#include "outfeed/outfeed_health_internal.h"

#include <math.h>

/* The spread of equal values that were rounded to float on their way: relative to the greatest. */
#define HEALTH_EQUAL 1e-6

static const struct health_finding health_unknown = {HEALTH_UNKNOWN, 0, 0};

static struct health_finding health_find(bool broken, double value, double threshold)
{
	return (struct health_finding){broken ? HEALTH_BROKEN : HEALTH_SOUND, value, threshold};
}

/* The part of its values that are zero; NaN: unknown. Of @row that tells the greatest |x| alone it
 * is known whether that is all. */
static double health_zero_part(const struct outfeed_health_row *row)
{
	if (row->n == IPS_NULL || row->n == 0)
		return NAN;
	if (row->n_zero != IPS_NULL)
		return (double)row->n_zero / (double)row->n;
	return row->abs_max == 0 ? 1 : NAN;
}

/* No zeros, or some: of a row without counts. */
static bool health_is_not_zero(const struct outfeed_health_row *row)
{
	return row->n_zero == IPS_NULL && row->abs_max != 0 &&
	       !(isnan(row->abs_max) && row->n_nan != IPS_NULL);
}

int64_t outfeed__health_age(const struct outfeed_health_tensor *tensor,
			    const struct outfeed_health_row *row)
{
	if (row->keys.weight_update != IPS_NULL)
		return row->keys.weight_update;
	if (row->keys.step != IPS_NULL)
		return row->keys.step;
	return tensor->rows;
}

static struct health_finding health_nonfinite(const struct outfeed_health_rule *rule,
					      const struct outfeed_health_tensor *tensor,
					      const struct outfeed_health_row *row)
{
	(void)tensor;
	if (row->n_nan != IPS_NULL && row->n_inf != IPS_NULL) {
		double bad = (double)row->n_nan + (double)row->n_inf;

		return health_find(bad > rule->threshold, bad, rule->threshold);
	}
	/* How many is not known; that there are some is enough. */
	return health_find(!isfinite(row->abs_max), row->abs_max, rule->threshold);
}

static struct health_finding health_exploding(const struct outfeed_health_rule *rule,
					      const struct outfeed_health_tensor *tensor,
					      const struct outfeed_health_row *row)
{
	double greatest = row->abs_max;

	(void)tensor;
	if (!isfinite(greatest))
		greatest = fmax(fabs(row->min), fabs(row->max)); /* of the finite ones */
	if (!isfinite(greatest))
		return health_unknown;
	return health_find(greatest > rule->threshold, greatest, rule->threshold);
}

static struct health_finding health_vanishing(const struct outfeed_health_rule *rule,
					      const struct outfeed_health_tensor *tensor,
					      const struct outfeed_health_row *row)
{
	double finite = (double)row->n, mean; /* a damaged recording may say any counts */

	(void)tensor;
	if (row->n_nan != IPS_NULL && row->n_inf != IPS_NULL)
		finite -= (double)row->n_nan + (double)row->n_inf;
	if (isnan(row->l1) || row->n == IPS_NULL || finite <= 0)
		return health_unknown;
	mean = row->l1 / finite;
	return health_find(mean < rule->threshold && mean > 0, mean, rule->threshold);
}

/* @inactive neurons of an activation: dead or flat ones. */
static struct health_finding health_inactive(const struct outfeed_health_rule *rule,
					     const struct outfeed_health_row *row)
{
	if (isnan(row->inactive))
		return health_unknown;
	return health_find(row->inactive > rule->threshold, row->inactive, rule->threshold);
}

static struct health_finding health_dead(const struct outfeed_health_rule *rule,
					 const struct outfeed_health_tensor *tensor,
					 const struct outfeed_health_row *row)
{
	int64_t neurons = tensor->about.neurons;

	if (tensor->about.activity != OUTFEED_RELU)
		return health_unknown;
	/* Of few cases a sound neuron is often 0 in all. */
	if (neurons > 0 && row->n != IPS_NULL &&
	    (double)(row->n / neurons) < rule->parameter[HEALTH_DEAD_CASES])
		return health_unknown;
	return health_inactive(rule, row);
}

static struct health_finding health_saturated(const struct outfeed_health_rule *rule,
					      const struct outfeed_health_tensor *tensor,
					      const struct outfeed_health_row *row)
{
	if (tensor->about.activity != OUTFEED_TANH && tensor->about.activity != OUTFEED_SIGMOID)
		return health_unknown;
	return health_inactive(rule, row);
}

/* A kernel whose values are still equal after an update: its neurons cannot become different, as
 * they get equal gradients or none. One that learns from there (zeros before a softmax) differs
 * after its first update. */
static struct health_finding health_constant_kernel(const struct outfeed_health_rule *rule,
						    const struct outfeed_health_tensor *tensor,
						    const struct outfeed_health_row *row)
{
	double variance;

	if (!((double)outfeed__health_age(tensor, row) < rule->parameter[HEALTH_POOR_STEPS]) ||
	    isnan(row->std) || !isfinite(row->abs_max) || row->n < 2)
		return health_unknown;
	variance = row->std * row->std;
	return health_find(row->std <= HEALTH_EQUAL * row->abs_max, variance, 0);
}

/* A kernel that gets no gradient at all in the first updates: nothing comes through to it. */
static struct health_finding health_silent_kernel(const struct outfeed_health_rule *rule,
						  const struct outfeed_health_tensor *tensor,
						  const struct outfeed_health_row *row)
{
	double zeros = health_zero_part(row);

	if (!((double)outfeed__health_age(tensor, row) < rule->parameter[HEALTH_POOR_STEPS]) ||
	    (isnan(zeros) && !health_is_not_zero(row)))
		return health_unknown;
	return health_find(zeros == 1, 0, 0);
}

static struct health_finding health_unchanged_variable(const struct outfeed_health_rule *rule,
						       const struct outfeed_health_tensor *tensor,
						       const struct outfeed_health_row *row)
{
	/* Values below the absolute tolerance, as squares of small gradients (Adam's v) are, change
	 * together where none does alone. */
	const bool moves = row->update_ratio > rule->threshold;

	(void)tensor;
	if (row->n_changed == IPS_NULL)
		return health_unknown;
	return health_find(row->n_changed == 0 && !moves, 0, 0);
}

/* The greatest difference of two rows' values, relative, after what @atol lets pass; NaN where one
 * is unknown. */
static double health_difference(const struct outfeed_health_row *a,
				const struct outfeed_health_row *b, double atol)
{
	const double from[] = {a->min, a->max, a->mean, a->std, a->l1, a->l2};
	const double to[] = {b->min, b->max, b->mean, b->std, b->l1, b->l2};
	double greatest = 0;

	for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
		double change = fabs(to[i] - from[i]) - atol, relative = change / fabs(from[i]);

		if (isnan(change))
			return NAN;
		if (change > 0 && relative > greatest)
			greatest = relative;
	}
	return greatest;
}

static struct health_finding health_unchanged_row(const struct outfeed_health_rule *rule,
						  const struct outfeed_health_tensor *tensor,
						  const struct outfeed_health_row *row)
{
	double difference;

	if (tensor->rows == 0)
		return health_unknown;
	difference =
		health_difference(&tensor->before, row, rule->parameter[HEALTH_UNCHANGED_ATOL]);
	if (isnan(difference))
		return health_unknown;
	/* Zeros that stay zeros are all_zero's. */
	return health_find(difference <= rule->threshold && health_zero_part(row) != 1, difference,
			   rule->threshold);
}

static struct health_finding health_all_zero(const struct outfeed_health_rule *rule,
					     const struct outfeed_health_tensor *tensor,
					     const struct outfeed_health_row *row)
{
	double zeros = health_zero_part(row);

	(void)tensor;
	if (!isnan(zeros))
		return health_find(zeros >= rule->threshold, zeros, rule->threshold);
	/* Some are not, so it is sound where all would have to be. */
	if (health_is_not_zero(row) && rule->threshold >= 1)
		return health_find(false, 0, rule->threshold);
	return health_unknown;
}

static struct health_finding health_update_ratio(const struct outfeed_health_rule *rule,
						 const struct outfeed_health_tensor *tensor,
						 const struct outfeed_health_row *row)
{
	double ratio = row->update_ratio, small = rule->parameter[HEALTH_UPDATE_SMALL];

	(void)tensor;
	if (isnan(ratio))
		return health_unknown;
	if (ratio > rule->threshold)
		return health_find(true, ratio, rule->threshold);
	/* What does not change at all is unchanged_tensor's. */
	return health_find(ratio < small && ratio > 0, ratio, small);
}

#define KIND(kind) (1u << OUTFEED_##kind)
#define ALL_KINDS  (KIND(ACTIVATION) | KIND(GRADIENT) | KIND(WEIGHT) | KIND(OPTIMIZER_STATE))
#define VARIABLES  (KIND(WEIGHT) | KIND(OPTIMIZER_STATE))
#define FLOWS      (KIND(ACTIVATION) | KIND(GRADIENT))
#define OF(rule)   OUTFEED_HEALTH_##rule

const struct health_judge outfeed__health_judges[HEALTH_JUDGES] = {
	[HEALTH_JUDGE_NONFINITE] = {OF(nonfinite), ALL_KINDS, false, false, health_nonfinite},
	[HEALTH_JUDGE_EXPLODING] = {OF(exploding), ALL_KINDS, false, false, health_exploding},
	[HEALTH_JUDGE_VANISHING] = {OF(vanishing), KIND(GRADIENT), false, false, health_vanishing},
	[HEALTH_JUDGE_DEAD] = {OF(dead_relu), KIND(ACTIVATION), false, false, health_dead},
	[HEALTH_JUDGE_SATURATED] = {OF(saturated_activation), KIND(ACTIVATION), false, false,
				    health_saturated},
	[HEALTH_JUDGE_CONSTANT_KERNEL] = {OF(poor_initialization), KIND(WEIGHT), true, true,
					  health_constant_kernel},
	[HEALTH_JUDGE_SILENT_KERNEL] = {OF(poor_initialization), KIND(GRADIENT), true, false,
					health_silent_kernel},
	[HEALTH_JUDGE_UNCHANGED_VARIABLE] = {OF(unchanged_tensor), VARIABLES, false, false,
					     health_unchanged_variable},
	[HEALTH_JUDGE_UNCHANGED_ROW] = {OF(unchanged_tensor), FLOWS, false, false,
					health_unchanged_row},
	[HEALTH_JUDGE_ALL_ZERO] = {OF(all_zero), FLOWS, false, false, health_all_zero},
	[HEALTH_JUDGE_UPDATE_RATIO] = {OF(update_ratio), KIND(WEIGHT), true, false,
				       health_update_ratio},
};
