/*
 * What accumulating gradients takes, where the run did not do it so: planned as the trainer does.
 *
 * Threading: any; the inputs are only read. Ownership: a planner for the length of a prediction.
 */
#include "ipu/plan/ipu_plan.h"
#include "reports/whatif/report_whatif_internal.h"

static int64_t elements_of(const struct whatif_gradient *gradient)
{
	return gradient->bytes / (gradient->half ? 2 : 4);
}

static enum status plan_elements(struct ipu_function_cost *out, struct ipu_planner *planner,
				 const struct ipu_elements *elements, bool half, struct err *err)
{
	const struct ipu_op op = {.name = "GradientAccumulation",
				  .kind = IPU_OP_ELEMENTWISE,
				  .dtype = half ? IPU_FLOAT16 : IPU_FLOAT32,
				  .elements = *elements};
	const struct ipu_plan *plan;
	enum status status;

	*out = (struct ipu_function_cost){0};
	if (elements->count < 1)
		return ST_OK;
	status = ipu_planner_plan(planner, &op, NULL, &plan, err);
	if (status != ST_OK)
		return status;
	*out = (struct ipu_function_cost){.cycles = plan->cycles,
					  .exchange = plan->exchange_cycles,
					  .sync = plan->sync_cycles};
	return ST_OK;
}

/* At the start of a run all of a stage's accumulators are set to zero at once, those of a type. */
static enum status add_start(struct whatif_plan *plan, const struct report_whatif *whatif,
			     struct ipu_planner *planner, int stage, struct err *err)
{
	struct ipu_function_cost *start = &plan->costs[stage].function[IPU_FUNCTION_START];
	enum status status = ST_OK;

	*start = (struct ipu_function_cost){0};
	for (int half = 0; half < 2 && status == ST_OK; half++) {
		struct ipu_elements fill = {.times[IPU_FN_FILL] = 1};
		struct ipu_function_cost cost;

		for (size_t i = 0; i < whatif->gradient_count; i++)
			if (whatif->gradients[i].half == (half == 1) &&
			    report__whatif_stage(plan, whatif, whatif->gradients[i].layer) == stage)
				fill.count += elements_of(&whatif->gradients[i]);
		status = plan_elements(&cost, planner, &fill, half, err);
		report__whatif_add(start, &cost);
	}
	return status;
}

/* sums += gradient, after each backward. */
static enum status add_sum(struct whatif_plan *plan, const struct report_whatif *whatif,
			   struct ipu_planner *planner, const struct whatif_gradient *gradient,
			   struct err *err)
{
	const struct ipu_elements sum = {
		.count = elements_of(gradient), .operands = 2, .times[IPU_FN_SCALED_ADD] = 1};
	const int stage = report__whatif_stage(plan, whatif, gradient->layer);
	struct ipu_function_cost cost;
	enum status status = plan_elements(&cost, planner, &sum, gradient->half, err);

	report__whatif_add(&plan->costs[stage].function[IPU_FUNCTION_B], &cost);
	plan->weights[stage] += cost.cycles;
	return status;
}

static bool starts(const struct report_whatif *whatif)
{
	for (size_t i = 0; i < whatif->piece_count; i++)
		if (whatif->pieces[i].function == IPU_FUNCTION_START)
			return true;
	return false;
}

enum status report__whatif_accumulate(struct whatif_plan *plan, const struct report_whatif *whatif,
				      const struct ipu_target *tiles, struct err *err)
{
	const bool begins = whatif->measured.microbatches == 1;
	struct ipu_planner *planner;
	enum status status;

	if (plan->microbatches == 1 || !(begins || (plan->resplit && starts(whatif))))
		return ST_OK;
	status = ipu_planner_new(&planner, tiles, err);
	if (status != ST_OK)
		return status;
	plan->assumptions |= 1u << REPORT_WHATIF_ACCUMULATION_MODEL;
	for (int s = 0; s < plan->stages && status == ST_OK; s++)
		status = add_start(plan, whatif, planner, s, err);
	for (size_t i = 0; i < whatif->gradient_count && begins && status == ST_OK; i++)
		status = add_sum(plan, whatif, planner, &whatif->gradients[i], err);
	ipu_planner_free(planner);
	return status;
}
