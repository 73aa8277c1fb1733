/*
 * Lowering: operations on parameters outside their layers: regularisers, outfeeds of gradients,
 * accumulation and the update.
 *
 * Threads: none.
 */
#include "model/lower/lower_internal.h"

/* An operation of parameter @p, still without a name. */
static struct ipu_op param_op(const struct lowering *lowering, int p, char phase,
			      enum ipu_op_kind kind)
{
	const struct model_param *param = &lowering->from->model->params[p];

	return (struct ipu_op){.kind = kind,
			       .layer = lowering->from->model->layers[param->layer].name,
			       .phase = phase,
			       .stage = lowering->from->layout->stage[param->layer]};
}

static const char *param_text(const struct lowering *lowering, int p, const char *prefix,
			      const char *suffix)
{
	const struct model_param *param = &lowering->from->model->params[p];

	return arena_printf(lowering->arena, "%s%s/%s%s", prefix,
			    lowering->from->model->layers[param->layer].name, param->short_name,
			    suffix);
}

static int add_node(struct lowering *lowering, const struct ipu_op *op, const int *reads,
		    int read_count, const int *writes, int write_count)
{
	return lower__node(lowering, &(struct ipu_node){.op = *op,
							.reads = reads,
							.read_count = read_count,
							.writes = writes,
							.write_count = write_count});
}

/* ---- regularisers ---------------------------------------------------------------------------- */

/* Append the sum of squares of a parameter; for l1, a map computes each value before. */
static int lower_penalty(struct lowering *lowering, int p)
{
	const struct model_param *param = &lowering->from->model->params[p];
	struct ipu_op op = param_op(lowering, p, IPU_PHASE_F, IPU_OP_REDUCE);
	struct ipu_tensor result = {.name = param_text(lowering, p, "", "/Regularizer/result"),
				    .layer = op.layer,
				    .kind = IPU_TENSOR_RESULT,
				    .ndim = 1,
				    .dim = {1},
				    .stage = op.stage};
	int from = lowering->params[p].weight, to = lower__tensor(lowering, &result);

	if (param->l1 > 0.0f) {
		struct ipu_op map = param_op(lowering, p, IPU_PHASE_F, IPU_OP_ELEMENTWISE);
		const int each =
			lower__like(lowering, from, IPU_TENSOR_TEMPORARY, IPU_FLOAT32, op.stage,
				    param_text(lowering, p, "", "/Regularizer/each"));

		map.name = param_text(lowering, p, "", "/Regularizer/Abs");
		map.elements.count = (int64_t)param->count;
		map.elements.operands = 1;
		map.elements.times[IPU_FN_ADD] = param->l2 > 0.0f ? 4 : 2;
		if (each < 0 || add_node(lowering, &map, &from, 1, &each, 1) != 0)
			return -1;
		lowering->tensors[each].layer = op.layer;
		from = each;
	}
	op.name = param_text(lowering, p, "", "/Regularizer/Sum");
	op.reduce.inputs = (int64_t)param->count;
	op.reduce.outputs = 1;
	if (to < 0)
		return -1;
	return lower__node(lowering, &(struct ipu_node){.op = op,
							.reads = &from,
							.read_count = 1,
							.writes = &to,
							.write_count = 1,
							.measure_only = true});
}

/* ---- outfeeds of gradients ------------------------------------------------------------------- */

static bool is_fed_out(const struct lowering *lowering, int p, char phase)
{
	const enum run_outfeed_optimizer mode =
		phase == IPU_PHASE_B ? RUN_AFTER_COMPUTE : RUN_BEFORE_APPLY;

	return lowering->outfeeds.gradients[p].sent &&
	       lowering->from->run->outfeed.optimizer_mode == mode;
}

/* ---- accumulation and update ----------------------------------------------------------------- */

static bool accumulates_in_half(const struct lowering *lowering, int p)
{
	const int accumulator = lowering->params[p].accumulator;

	return accumulator >= 0 && lowering->tensors[accumulator].dtype == IPU_FLOAT16;
}

/* Append the sum of squares of a tensor, for its norm. */
static int lower_norm(struct lowering *lowering, int p, int from, const char *what)
{
	struct ipu_op op = param_op(lowering, p, IPU_PHASE_U, IPU_OP_REDUCE);
	struct ipu_tensor result = {.name = param_text(lowering, p, what, "/result"),
				    .layer = op.layer,
				    .kind = IPU_TENSOR_RESULT,
				    .ndim = 1,
				    .dim = {1},
				    .stage = op.stage};
	int to = lower__tensor(lowering, &result);

	op.name = param_text(lowering, p, what, "");
	op.reduce.inputs = ipu_tensor_elements(&lowering->tensors[from]);
	op.reduce.outputs = 1;
	return to < 0 ? -1 : add_node(lowering, &op, &from, 1, &to, 1);
}

static int lower_norms(struct lowering *lowering, int p, int gradient)
{
	const struct optimizer *optimizer = lowering->from->optimizer;
	const struct lower_param *of = &lowering->params[p];
	int failed = 0;

	if (optimizer->clipnorm > 0.0 || optimizer->global_clipnorm > 0.0)
		failed = lower_norm(lowering, p, gradient, "ClipNorm/");
	else if (optimizer->loss_scale_dynamic)
		failed = lower_norm(lowering, p, gradient, "LossScale/");
	if (!failed && optimizer->kind == OPTIMIZER_LAMB) {
		failed = lower_norm(lowering, p, of->weight, "WeightNorm/");
		/* The step has the size of its first slot. */
		if (!failed)
			failed = lower_norm(lowering, p, of->first_slot, "StepNorm/");
	}
	return failed;
}

static int lower_update(struct lowering *lowering, int p)
{
	const struct lower_request *from = lowering->from;
	const struct lower_param *of = &lowering->params[p];
	const int slots = optimizer_slots(from->optimizer);
	int *operands = arena_alloc(lowering->arena, (size_t)slots + 2, sizeof(*operands));
	struct ipu_op op = param_op(lowering, p, IPU_PHASE_U, IPU_OP_ELEMENTWISE);
	const char *prefix = arena_printf(lowering->arena, "%s/", optimizer_name(from->optimizer));

	if (!operands || !prefix)
		return -1;
	op.name = param_text(lowering, p, prefix, "");
	op.elements = optimizer_elements(from->optimizer,
					 ipu_tensor_elements(&lowering->tensors[of->weight]));
	if (of->accumulator >= 0 && from->run->accumulation.reduction == RUN_MEAN)
		op.elements.times[IPU_FN_ADD]++;
	op.elements.times[IPU_FN_CAST] = accumulates_in_half(lowering, p);
	operands[0] = of->accumulator >= 0 ? of->accumulator : of->gradient;
	operands[1] = of->weight;
	if (lower_norms(lowering, p, operands[0]) != 0)
		return -1;
	for (int s = 0; s < slots; s++)
		operands[2 + s] = of->first_slot + s;
	return add_node(lowering, &op, operands, slots + 2, operands + 1, slots + 1);
}

static int lower_param(struct lowering *lowering, int p, char phase)
{
	const struct model_param *param = &lowering->from->model->params[p];
	const struct lower_param *of = &lowering->params[p];
	const bool regularized = param->l1 > 0.0f || param->l2 > 0.0f;
	int failed = 0;

	if (phase == IPU_PHASE_F)
		return regularized && lowering->from->losses ? lower_penalty(lowering, p) : 0;
	if (of->gradient < 0)
		return 0;
	if (phase == IPU_PHASE_B && regularized) {
		/* gradient += l1 sign(w) + 2 l2 w */
		struct ipu_op op = param_op(lowering, p, IPU_PHASE_B, IPU_OP_ELEMENTWISE);

		op.name = param_text(lowering, p, "", "/Regularizer/Grad");
		op.elements.count = (int64_t)param->count;
		op.elements.operands = 2;
		op.elements.times[IPU_FN_SCALED_ADD] =
			(uint8_t)((param->l1 > 0.0f) + (param->l2 > 0.0f));
		op.elements.times[IPU_FN_SELECT] = param->l1 > 0.0f;
		failed = add_node(lowering, &op, (const int[]){of->gradient, of->weight}, 2,
				  &of->gradient, 1);
	}
	if (!failed && is_fed_out(lowering, p, phase)) {
		const int from = phase == IPU_PHASE_U && of->accumulator >= 0 ? of->accumulator
									      : of->gradient;
		struct ipu_op op = param_op(lowering, p, phase, IPU_OP_COPY);
		int to;

		op.name = param_text(lowering, p, "", "_grad/outfeed");
		op.copy.count = ipu_tensor_elements(&lowering->tensors[from]);
		op.copy.atom = 1;
		to = lower__like(lowering, from, IPU_TENSOR_RESULT, IPU_FLOAT32, op.stage, op.name);
		failed = to < 0 ? -1 : add_node(lowering, &op, &from, 1, &to, 1);
	}
	if (!failed && phase == IPU_PHASE_B && of->accumulator >= 0) {
		/* sums += gradient; for a running mean, sums n / (n + 1) + gradient / (n + 1). */
		struct ipu_op op = param_op(lowering, p, IPU_PHASE_B, IPU_OP_ELEMENTWISE);

		op.name = param_text(lowering, p, "GradientAccumulation/", "");
		op.elements.count = ipu_tensor_elements(&lowering->tensors[of->gradient]);
		op.elements.operands = 2;
		op.elements.times[IPU_FN_SCALED_ADD] = 1;
		op.elements.times[IPU_FN_ADD] =
			lowering->from->run->accumulation.reduction == RUN_RUNNING_MEAN;
		op.elements.times[IPU_FN_CAST] = accumulates_in_half(lowering, p);
		failed = add_node(lowering, &op, (const int[]){of->accumulator, of->gradient}, 2,
				  &of->accumulator, 1);
	}
	if (!failed && phase == IPU_PHASE_U)
		failed = lower_update(lowering, p);
	return failed;
}

int lower__params(struct lowering *lowering, int position, char phase)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];

	/* In phase B the first call is lowered last, when all gradients are complete. */
	if (model_layer_again(lowering->from->model, layer))
		return 0;
	for (int p = 0; p < layer->param_count; p++)
		if (lower_param(lowering, layer->first_param + p, phase) != 0)
			return -1;
	return 0;
}
