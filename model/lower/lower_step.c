/*
 * Lowering: the parts of Keras's step outside the model: reading the batch from the infeed, the
 * running means of loss and metrics, and counting iterations.
 *
 * Threads: none.
 */
#include "model/lower/lower_internal.h"

/* Copy a stream from its even distribution over the tiles to the layout that its readers need. */
static int lower_infeed(struct lowering *lowering, int tensor, const char *name, int64_t atom)
{
	const struct ipu_tensor *of = &lowering->tensors[tensor];
	const struct ipu_op op = {.kind = IPU_OP_COPY,
				  .name = name,
				  .phase = IPU_PHASE_F,
				  .stage = of->stage,
				  .dtype = of->dtype,
				  .copy = {.count = ipu_tensor_elements(of), .atom = atom}};

	return lower__node(lowering,
			   &(struct ipu_node){.op = op,
					      .reads = &tensor,
					      .read_count = 1,
					      .writes = &tensor,
					      .write_count = 1,
					      .measure_only = tensor == lowering->labels ||
							      tensor == lowering->weights});
}

int lower__infeeds(struct lowering *lowering)
{
	const struct model_shape *shape = &lowering->from->model->input;
	const int64_t atom = shape->ndim > 0 ? shape->dim[shape->ndim - 1] : 1;
	int failed = lower_infeed(lowering, lowering->input, "infeed/arg0", atom);

	if (!failed && lowering->labels >= 0)
		failed = lower_infeed(lowering, lowering->labels, "infeed/arg1", 1);
	if (!failed && lowering->weights >= 0)
		failed = lower_infeed(lowering, lowering->weights, "infeed/arg2", 1);
	return failed;
}

/* ---- running means --------------------------------------------------------------------------- */

/* Append a tensor of one value on the last stage. */
static int scalar(struct lowering *lowering, enum ipu_tensor_kind kind, const char *name)
{
	return lower__tensor(lowering,
			     &(struct ipu_tensor){.name = name,
						  .kind = kind,
						  .ndim = 1,
						  .dim = {1},
						  .stage = lowering->from->layout->stages - 1});
}

/* Works in place if @to is @reads[0]. */
static int lower_scalar(struct lowering *lowering, const char *name, enum ipu_function function,
			const int *reads, int count, int to)
{
	struct ipu_op op = {.kind = IPU_OP_ELEMENTWISE,
			    .name = name,
			    .phase = IPU_PHASE_F,
			    .stage = lowering->from->layout->stages - 1,
			    .elements = {.count = 1, .operands = count}};

	op.elements.times[function] = 1;
	op.elements.times[IPU_FN_SELECT] = function == IPU_FN_DIVIDE; /* division by 0 gives 0 */
	return lower__node(lowering, &(struct ipu_node){.op = op,
							.reads = reads,
							.read_count = count,
							.writes = &to,
							.write_count = 1,
							.measure_only = true});
}

int lower__running_mean(struct lowering *lowering, const char *name, int value, int result)
{
	struct arena *arena = lowering->arena;
	const int total = scalar(lowering, IPU_TENSOR_STATE, arena_printf(arena, "%s/total", name));
	const int count = scalar(lowering, IPU_TENSOR_STATE, arena_printf(arena, "%s/count", name));
	const int both[] = {total, value}, mean[] = {total, count};

	if (total < 0 || count < 0 ||
	    lower_scalar(lowering, arena_printf(arena, "%s/AssignAdd", name), IPU_FN_ADD, both, 2,
			 total) != 0 ||
	    lower_scalar(lowering, arena_printf(arena, "%s/AssignAdd_1", name), IPU_FN_ADD, &count,
			 1, count) != 0)
		return -1;
	return lower_scalar(lowering, arena_printf(arena, "%s/div_no_nan", name), IPU_FN_DIVIDE,
			    mean, 2, result);
}

/* ---- iterations ------------------------------------------------------------------------------ */

int lower__iterations(struct lowering *lowering)
{
	const char *optimizer = optimizer_name(lowering->from->optimizer);
	const int iterations = lower__tensor(
		lowering,
		&(struct ipu_tensor){.name = arena_printf(lowering->arena, "%s/iter", optimizer),
				     .kind = IPU_TENSOR_STATE,
				     .dtype = IPU_INT32,
				     .ndim = 1,
				     .dim = {1}});
	const struct ipu_op op = {
		.kind = IPU_OP_ELEMENTWISE,
		.name = arena_printf(lowering->arena, "%s/iter/AssignAdd", optimizer),
		.phase = IPU_PHASE_U,
		.dtype = IPU_INT32,
		.elements = {.count = 1, .operands = 1, .times = {[IPU_FN_ADD] = 1}}};

	if (iterations < 0)
		return -1;
	return lower__node(lowering, &(struct ipu_node){.op = op,
							.reads = &iterations,
							.read_count = 1,
							.writes = &iterations,
							.write_count = 1});
}
