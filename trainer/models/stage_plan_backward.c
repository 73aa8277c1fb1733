/*
 * The plan of a stage's backward pass: where each gradient lies and who writes or adds to it.
 *
 * A tensor's gradient is written by its last reader and added to by those before it, in this order
 * whatever the cut into stages: sums of floats depend on it. Threading: none.
 */
#include "trainer/models/stage_internal.h"

/* Gradients that flow between stages lie in the callers' blocks. What only passes through begins
 * as a copy. */
static void plan_border_gradients(struct stage_plan *plan)
{
	for (int i = 0; i < plan->in.count; i++) {
		const struct stage_tensor *tensor = &plan->in.tensors[i];
		struct stage_value *value = &plan->values[tensor->value];

		if (!value->wanted)
			continue;
		value->gradient = stage__buffer(plan, STAGE_GRAD_INPUT, 0, 0, 0);
		plan->buffers[value->gradient].offset = tensor->offset;
	}
	for (int i = 0; i < plan->out.count; i++) {
		const struct stage_tensor *tensor = &plan->out.tensors[i];
		struct stage_value *value = &plan->values[tensor->value];

		if (!value->wanted || !tensor->live)
			continue;
		value->written = true;
		if (value->gradient != STAGE_NONE)
			continue;
		value->gradient = stage__buffer(plan, STAGE_GRAD_OUTPUT, 0, 0, 0);
		plan->buffers[value->gradient].offset = tensor->offset;
	}
}

/* Does the layer read the tensor twice? Its gradients must not be the same buffer then. */
static bool plan_repeats(const struct stage_layer *at, int input)
{
	for (int k = 0; k < at->layer->input_count; k++)
		if (k != input && at->links[k].value == at->links[input].value)
			return true;
	return false;
}

/* May the first input's gradient take the place of the output's? */
static bool plan_grad_in_place(const struct stage_plan *plan, const struct stage_layer *at,
			       int input)
{
	const struct stage_value *value = &plan->values[at->links[input].value];

	return compute_of(at->layer)->grad_in_place && !plan->params.unshared && input == 0 &&
	       value->each == plan->values[at->output].each;
}

static void plan_first_gradient(struct stage_plan *plan, const struct stage_layer *at, int input,
				int time)
{
	struct stage_value *value = &plan->values[at->links[input].value];

	value->written = true;
	if (value->gradient != STAGE_NONE)
		return;
	if (plan_grad_in_place(plan, at, input))
		value->gradient = plan->values[at->output].gradient;
	else
		value->gradient = stage__buffer(plan, STAGE_SHARED,
						stage__floats(plan, value->each), time, time);
}

static void plan_link_backward(struct stage_plan *plan, const struct stage_layer *at, int input,
			       int time)
{
	struct stage_link *link = &at->links[input];
	struct stage_value *value = &plan->values[link->value];

	if (!value->wanted)
		return;
	if (!value->written)
		plan_first_gradient(plan, at, input, time);
	else if (compute_of(at->layer)->adds && !plan_repeats(at, input))
		link->add = true;
	else
		link->partial = stage__buffer(plan, STAGE_SHARED, stage__floats(plan, value->each),
					      time, time);
	link->gradient = value->gradient;
}

void stage__plan_backward(struct stage_plan *plan)
{
	int count = plan->params.layer_count;

	if (!plan->params.training)
		return;
	plan_border_gradients(plan);
	for (int i = count - 1; i >= 0; i--) {
		struct stage_layer *at = &plan->layers[i];
		int time = 2 * count - 1 - i;

		if (!at->backward)
			continue;
		plan->buffers[plan->values[at->output].gradient].last = time;
		if (plan->params.split && at->learns)
			at->held = stage__buffer(plan, STAGE_SLOT,
						 stage__floats(plan, plan->values[at->output].each),
						 0, 0);
		for (int k = 0; k < at->layer->input_count; k++)
			plan_link_backward(plan, at, k, time);
	}
}
