/*
 * Lowering: the loss with its gradient, and metrics.
 *
 * Like TensorFlow's ops, the loss computes its gradient in the forward pass, and the backward pass
 * scales it by an item's share in the mean.
 *
 * Threads: none.
 */
#include "model/lower/lower_internal.h"

/* The rows that losses and metrics of an output read: [count, width]. */
struct lower_rows {
	int64_t count, width;
	int stage;
};

static struct lower_rows rows_of(const struct lowering *lowering, int output)
{
	const struct loss_rows of_item = loss_rows_of(&lowering->from->model->outputs[output]);

	return (struct lower_rows){
		.count = lower__batch(lowering) * of_item.positions,
		.width = of_item.width,
		.stage = lowering->from->layout->stages - 1,
	};
}

/* Append a 1D tensor of @elements on the last stage. */
static int flat(struct lowering *lowering, enum ipu_tensor_kind kind, const char *name,
		int64_t elements)
{
	return lower__tensor(lowering,
			     &(struct ipu_tensor){.name = name,
						  .kind = kind,
						  .ndim = 1,
						  .dim = {elements},
						  .stage = lowering->from->layout->stages - 1});
}

/* Cast @tensor to float32, as Keras does with outputs. */
static int cast_to_float(struct lowering *lowering, int tensor, const char *name)
{
	const struct model *model = lowering->from->model;
	const int stage = lowering->from->layout->stages - 1;
	int to;

	if (lowering->tensors[tensor].dtype == IPU_FLOAT32)
		return tensor;
	to = lower__like(lowering, tensor, IPU_TENSOR_TEMPORARY, IPU_FLOAT32, stage, name);
	if (to < 0 || lower__cast(lowering, name, model->layers[model->layer_count - 1].name,
				  IPU_PHASE_F, stage, tensor, to) != 0)
		return -1;
	return to;
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

/* Append the update of a mean over all steps with @value; the mean is written to @result. */
static int lower_running_mean(struct lowering *lowering, const char *name, int value, int result)
{
	struct arena *arena = lowering->arena;
	const int total =
		flat(lowering, IPU_TENSOR_STATE, arena_printf(arena, "%s/total", name), 1);
	const int count =
		flat(lowering, IPU_TENSOR_STATE, arena_printf(arena, "%s/count", name), 1);
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

/* Append *@mean, the mean over the rows of @from, or over the rows that the loss counts if there
 * is a @mask (-1: none). Its mean over the steps is a result, as Keras shows it. */
static int lower_mean(struct lowering *lowering, int output, const char *name, const char *result,
		      int from, int mask, int *mean)
{
	const struct lower_rows rows = rows_of(lowering, output);
	const struct ipu_op op = {.kind = IPU_OP_REDUCE,
				  .name = arena_printf(lowering->arena, "%s/Mean", name),
				  .phase = IPU_PHASE_F,
				  .stage = rows.stage,
				  .reduce = {rows.count, 1}};
	int to;

	*mean = flat(lowering, IPU_TENSOR_TEMPORARY, arena_printf(lowering->arena, "%s/Mean", name),
		     1);
	to = flat(lowering, IPU_TENSOR_RESULT, result, 1);
	if (*mean < 0 || to < 0 ||
	    lower__node(lowering,
			&(struct ipu_node){
				.op = op,
				.reads = (const int[]){from, lowering->losses[output].counted},
				.read_count = mask < 0 ? 1 : 2,
				.writes = mean,
				.write_count = 1,
				.measure_only = true}) != 0)
		return -1;
	return lower_running_mean(lowering, result, *mean, to);
}

/* List @from and the factors of a loss's or metric's rows: their weights, if @weights, and @mask
 * (-1: none). Returns the length of the list. */
static int row_factors(const struct lowering *lowering, int from, bool weights, int mask,
		       int list[3])
{
	int count = 0;

	list[count++] = from;
	if (weights && lowering->weights >= 0)
		list[count++] = lowering->weights;
	if (mask >= 0)
		list[count++] = mask;
	return count;
}

/* Multiply the row values @from by the rows' factors; returns @from if there are none. */
static int weighted(struct lowering *lowering, int output, const char *name, int from, bool weights,
		    int mask)
{
	const struct lower_rows rows = rows_of(lowering, output);
	int list[3], to;
	const int operands = row_factors(lowering, from, weights, mask, list);
	const struct ipu_op op = {.kind = IPU_OP_ELEMENTWISE,
				  .name = arena_printf(lowering->arena, "%s/weighted", name),
				  .phase = IPU_PHASE_F,
				  .stage = rows.stage,
				  .elements = {.count = rows.count,
					       .operands = operands,
					       .times = {[IPU_FN_ADD] = (uint8_t)(operands - 1)}}};

	if (operands == 1)
		return from;
	to = flat(lowering, IPU_TENSOR_TEMPORARY, op.name, rows.count);
	if (to < 0 || lower__node(lowering, &(struct ipu_node){.op = op,
							       .reads = list,
							       .read_count = operands,
							       .writes = &to,
							       .write_count = 1,
							       .measure_only = true}) != 0)
		return -1;
	return to;
}

/* With several outputs, names include the output: "loss/box/mask/Sum". */
static const char *loss_part_name(const struct lowering *lowering, int output, const char *part)
{
	const struct model *model = lowering->from->model;

	return model->output_count > 1 ? arena_printf(lowering->arena, "loss/%s/%s",
						      model->outputs[output].name, part)
				       : arena_printf(lowering->arena, "loss/%s", part);
}

/* Append the mask of rows whose label is not the loss's ignore_class, times the mask of rows. */
static int lower_ignored(struct lowering *lowering, int output, enum ipu_tensor_kind kind)
{
	struct lower_loss *loss = &lowering->losses[output];
	const struct lower_rows rows = rows_of(lowering, output);
	const bool both = loss->rows >= 0;
	const struct ipu_op op = {
		.kind = IPU_OP_ELEMENTWISE,
		.name = loss_part_name(lowering, output, "ignore_class/NotEqual"),
		.phase = IPU_PHASE_F,
		.stage = rows.stage,
		.elements = {.count = rows.count,
			     .operands = 1 + both,
			     .times = {[IPU_FN_SELECT] = 1, [IPU_FN_ADD] = both}}};

	loss->mask = flat(lowering, kind, op.name, rows.count);
	if (loss->mask < 0)
		return -1;
	return lower__node(lowering,
			   &(struct ipu_node){.op = op,
					      .reads = (const int[]){lowering->labels, loss->rows},
					      .read_count = 1 + both,
					      .writes = &loss->mask,
					      .write_count = 1,
					      .measure_only = true});
}

/* Append the mask of the rows that the loss uses, and their number. */
static int lower_loss_mask(struct lowering *lowering, int output)
{
	const enum ipu_tensor_kind kind =
		lowering->training ? IPU_TENSOR_KEPT : IPU_TENSOR_TEMPORARY;
	struct lower_loss *loss = &lowering->losses[output];
	const struct lower_rows rows = rows_of(lowering, output);
	const struct ipu_op op = {.kind = IPU_OP_REDUCE,
				  .name = loss_part_name(lowering, output, "mask/Sum"),
				  .phase = IPU_PHASE_F,
				  .stage = rows.stage,
				  .reduce = {rows.count, 1}};
	const int layer = lowering->from->model->outputs[output].mask;
	int failed = 0;

	/* The mask of the output's valid rows, in float32. */
	loss->rows = -1;
	if (layer) {
		loss->rows = cast_to_float(lowering, lowering->layers[layer].output,
					   loss_part_name(lowering, output, "mask/Cast"));
		failed = loss->rows < 0 ? -1 : 0;
	}
	loss->mask = loss->rows;
	if (!failed && lowering->from->losses->items[output].loss.ignores)
		failed = lower_ignored(lowering, output, kind);
	if (failed || loss->mask < 0)
		return failed;
	loss->counted = flat(lowering, kind, op.name, 1);
	if (loss->counted < 0)
		return -1;
	return lower__node(lowering, &(struct ipu_node){.op = op,
							.reads = &loss->mask,
							.read_count = 1,
							.writes = &loss->counted,
							.write_count = 1,
							.measure_only = true});
}

/* ---- the loss -------------------------------------------------------------------------------- */

/* The input of the activation that ends the model, or the model's output. */
static int loss_input(const struct lowering *lowering)
{
	const struct model *model = lowering->from->model;
	const int at = lowering->logits_layer;
	const struct model_layer *layer = at < 0 ? NULL : &model->layers[at];

	if (!layer)
		return lowering->layers[model->layer_count - 1].output;
	if (lowering->layers[at].between >= 0)
		return lowering->layers[at].between;
	return layer->inputs[0] == MODEL_INPUT ? lowering->layers[at].cast_input[0]
					       : lowering->layers[layer->inputs[0]].output;
}

static int lower_loss(struct lowering *lowering, int output, int input, int *mean)
{
	const struct model *model = lowering->from->model;
	const struct loss *loss = &lowering->from->losses->items[output].loss;
	const struct lower_rows rows = rows_of(lowering, output);
	const int mask = lowering->losses[output].mask;
	const struct ipu_op op = {
		.kind = IPU_OP_ROWS,
		.name = loss_part_name(lowering, output, loss_name(loss)),
		.phase = IPU_PHASE_F,
		.stage = rows.stage,
		.rows = {.work = loss_is_error(loss) ? IPU_ROWS_ERROR : IPU_ROWS_CROSS_ENTROPY,
			 .rows = rows.count,
			 .columns = rows.width},
	};
	const char *result = model->output_count > 1 ? arena_printf(lowering->arena, "%s_loss",
								    model->outputs[output].name)
						     : "loss";
	int writes[2] = {flat(lowering, IPU_TENSOR_TEMPORARY,
			      arena_printf(lowering->arena, "%s/items", op.name), rows.count),
			 -1};

	if (lowering->training)
		writes[1] = lowering->losses[output].backprop =
			flat(lowering, IPU_TENSOR_KEPT,
			     arena_printf(lowering->arena, "%s/backprop", op.name),
			     rows.count * rows.width);
	if (writes[0] < 0 || (lowering->training && writes[1] < 0) || !op.name || !result)
		return -1;
	if (lower__node(lowering,
			&(struct ipu_node){.op = op,
					   .reads = (const int[]){input, lowering->labels},
					   .read_count = 2,
					   .writes = writes,
					   .write_count = lowering->training ? 2 : 1,
					   .measure_only = true}) != 0)
		return -1;
	writes[0] = weighted(lowering, output, op.name, writes[0], true, mask);
	return writes[0] < 0 ? -1
			     : lower_mean(lowering, output, op.name, result, writes[0], mask, mean);
}

/* Append the sum of several outputs' losses @means, each times its weight. */
static int lower_total(struct lowering *lowering, const int *means, int count)
{
	const struct ipu_op op = {.kind = IPU_OP_ELEMENTWISE,
				  .name = "loss/AddN",
				  .phase = IPU_PHASE_F,
				  .stage = lowering->from->layout->stages - 1,
				  .elements = {.count = 1,
					       .operands = count,
					       .times = {[IPU_FN_ADD] = (uint8_t)(2 * count - 1)}}};
	const int total = flat(lowering, IPU_TENSOR_TEMPORARY, op.name, 1);
	const int result = flat(lowering, IPU_TENSOR_RESULT, "loss", 1);

	if (total < 0 || result < 0 ||
	    lower__node(lowering, &(struct ipu_node){.op = op,
						     .reads = means,
						     .read_count = count,
						     .writes = &total,
						     .write_count = 1,
						     .measure_only = true}) != 0)
		return -1;
	return lower_running_mean(lowering, "loss", total, result);
}

static int lower_losses(struct lowering *lowering, int input)
{
	const struct loss_list *losses = lowering->from->losses;
	int means[MODEL_OUTPUTS], count = 0;

	for (int o = 0; o < losses->count; o++)
		if (lower_loss_mask(lowering, o) != 0 ||
		    (losses->items[o].given &&
		     lower_loss(lowering, o, input, &means[count++]) != 0))
			return -1;
	return losses->count > 1 ? lower_total(lowering, means, count) : 0;
}

/* ---- metrics --------------------------------------------------------------------------------- */

/* Append the class of a one-hot label; labels that are class numbers need no operation. */
static int lower_label(struct lowering *lowering, const struct metric *metric, int *label)
{
	const struct lower_rows rows = rows_of(lowering, metric->output);
	const struct ipu_op op = {
		.kind = IPU_OP_ROWS,
		.name = arena_printf(lowering->arena, "metrics/%s/ArgMax", metric->name),
		.phase = IPU_PHASE_F,
		.stage = rows.stage,
		.rows = {IPU_ROWS_ARGMAX, rows.count, rows.width}};

	*label = lowering->labels;
	if (metric_work(metric) != METRIC_OF_GREATEST ||
	    targets_are_classes(
		    &lowering->from->losses->items[metric->output].targets,
		    loss_rows_of(&lowering->from->model->outputs[metric->output]).positions))
		return 0;
	*label = flat(lowering, IPU_TENSOR_TEMPORARY,
		      arena_printf(lowering->arena, "metrics/%s/label", metric->name), rows.count);
	if (*label < 0)
		return -1;
	return lower__node(lowering, &(struct ipu_node){.op = op,
							.reads = &lowering->labels,
							.read_count = 1,
							.writes = label,
							.write_count = 1,
							.measure_only = true});
}

static int lower_metric(struct lowering *lowering, const struct metric *metric, int output)
{
	static const enum ipu_rows_work works[] = {
		[METRIC_OF_ELEMENTS] = IPU_ROWS_ERROR,
		[METRIC_OF_GREATEST] = IPU_ROWS_ARGMAX,
		[METRIC_OF_LOSS] = IPU_ROWS_CROSS_ENTROPY,
	};
	const struct lower_rows rows = rows_of(lowering, metric->output);
	struct ipu_op op = {
		.name = arena_printf(lowering->arena, "metrics/%s", metric->name),
		.phase = IPU_PHASE_F,
		.stage = rows.stage,
	};
	int items =
		flat(lowering, IPU_TENSOR_TEMPORARY,
		     arena_printf(lowering->arena, "metrics/%s/items", metric->name), rows.count);
	const enum metric_work work = metric_work(metric);
	int label, mean;

	/* The operation computes the metric's value of each row. */
	op.kind = IPU_OP_ROWS;
	op.rows = (struct ipu_rows){works[work], rows.count, rows.width};
	if (work == METRIC_OF_LOSS && loss_is_error(&metric->loss))
		op.rows.work = IPU_ROWS_ERROR;

	if (items < 0 || !op.name || lower_label(lowering, metric, &label) != 0 ||
	    lower__node(lowering, &(struct ipu_node){.op = op,
						     .reads = (const int[]){output, label},
						     .read_count = 2,
						     .writes = &items,
						     .write_count = 1,
						     .measure_only = true}) != 0)
		return -1;
	items = weighted(lowering, metric->output, op.name, items, metric->weighted,
			 lowering->losses[metric->output].rows);
	if (items < 0)
		return -1;
	return lower_mean(lowering, metric->output, op.name,
			  arena_printf(lowering->arena, "metrics/%s/result", metric->name), items,
			  lowering->losses[metric->output].rows, &mean);
}

int lower__loss_forward(struct lowering *lowering)
{
	const struct model *model = lowering->from->model;
	const struct metric_list *metrics = lowering->from->metrics;
	const int output = lowering->layers[model->layer_count - 1].output;
	int input, values;

	if (!lowering->from->losses)
		return 0;
	input = cast_to_float(lowering, loss_input(lowering), "loss/Cast");
	if (input < 0 || lower_losses(lowering, input) != 0)
		return -1;
	if (!metrics || !metrics->count)
		return 0;
	values = lowering->logits_layer < 0 ? input
					    : cast_to_float(lowering, output, "metrics/Cast");
	for (int i = 0; values >= 0 && i < metrics->count; i++)
		if (metrics->items[i].kind != METRIC_OUTPUT_LOSS &&
		    lower_metric(lowering, &metrics->items[i], values) != 0)
			return -1;
	return values < 0 ? -1 : 0;
}

/* ---- its gradient ---------------------------------------------------------------------------- */

int lower__loss_backward(struct lowering *lowering)
{
	const struct model *model = lowering->from->model;
	const struct model_layer *last = &model->layers[model->layer_count - 1];
	const struct loss_list *losses = lowering->from->losses;
	struct lower_layer *of = &lowering->layers[last->position];
	const int stage = lowering->from->layout->stages - 1;
	const enum ipu_dtype dtype = lowering->tensors[of->output].dtype;
	struct ipu_op op = {.kind = IPU_OP_ELEMENTWISE,
			    .name = losses->count > 1
					    ? "gradients/loss/mul"
					    : arena_printf(lowering->arena, "gradients/loss/%s/mul",
							   loss_name(&losses->items[0].loss)),
			    .phase = IPU_PHASE_B,
			    .stage = stage,
			    .elements = {.operands = 1}};
	int list[3 * MODEL_OUTPUTS + 1], count = 0;

	if (!of->needs)
		return 0;
	/* The losses' gradients come first; they are multiplied by weights, masks and mask sums. */
	op.elements.operands = 1 + (lowering->weights >= 0);
	for (int o = 0; o < losses->count; o++) {
		const struct lower_rows rows = rows_of(lowering, o);

		op.elements.count += rows.count * rows.width;
		if (losses->items[o].given)
			list[count++] = lowering->losses[o].backprop;
	}
	if (lowering->weights >= 0)
		list[count++] = lowering->weights;
	for (int o = 0, masked = 0; o < losses->count; o++) {
		if (!losses->items[o].given || lowering->losses[o].mask < 0)
			continue;
		op.elements.operands += masked++ ? 0 : 2;
		list[count++] = lowering->losses[o].mask;
		list[count++] = lowering->losses[o].counted;
	}
	op.elements.times[IPU_FN_CAST] = dtype != IPU_FLOAT32;
	op.elements.times[IPU_FN_ADD] = (uint8_t)op.elements.operands;
	of->gradient = lower__like(lowering, of->output, IPU_TENSOR_GRADIENT, dtype, stage,
				   arena_printf(lowering->arena, "%s/gradient", last->name));
	if (of->gradient < 0 || !op.name)
		return -1;
	lowering->tensors[of->gradient].layer = last->name;
	return lower__node(lowering, &(struct ipu_node){.op = op,
							.reads = list,
							.read_count = count,
							.writes = &of->gradient,
							.write_count = 1});
}
