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

/* Append an operation that only a measuring program runs, and that writes @to. */
static void add_measure(struct lowering *lowering, const struct ipu_op *op, const int *reads,
			int count, int to)
{
	lower__node(lowering, &(struct ipu_node){.op = *op,
						 .reads = reads,
						 .read_count = count,
						 .writes = &to,
						 .write_count = 1,
						 .measure_only = true});
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
	lower__cast(lowering, name, model->layers[model->layer_count - 1].name, IPU_PHASE_F, stage,
		    tensor, to);
	return to;
}

/* Works in place if @to is @reads[0]. */
static void lower_scalar(struct lowering *lowering, const char *name, enum ipu_function function,
			 const int *reads, int count, int to)
{
	struct ipu_op op = {.kind = IPU_OP_ELEMENTWISE,
			    .name = name,
			    .phase = IPU_PHASE_F,
			    .stage = lowering->from->layout->stages - 1,
			    .elements = {.count = 1, .operands = count}};

	op.elements.times[function] = 1;
	op.elements.times[IPU_FN_SELECT] = function == IPU_FN_DIVIDE; /* division by 0 gives 0 */
	add_measure(lowering, &op, reads, count, to);
}

/* Append the update of a mean over all steps with @value; the mean is written to @result. */
static void lower_running_mean(struct lowering *lowering, const char *name, int value, int result)
{
	const int total =
		flat(lowering, IPU_TENSOR_STATE, lower__name(lowering, "%s/total", name), 1);
	const int count =
		flat(lowering, IPU_TENSOR_STATE, lower__name(lowering, "%s/count", name), 1);
	const int both[] = {total, value}, mean[] = {total, count};

	lower_scalar(lowering, lower__name(lowering, "%s/AssignAdd", name), IPU_FN_ADD, both, 2,
		     total);
	lower_scalar(lowering, lower__name(lowering, "%s/AssignAdd_1", name), IPU_FN_ADD, &count, 1,
		     count);
	lower_scalar(lowering, lower__name(lowering, "%s/div_no_nan", name), IPU_FN_DIVIDE, mean, 2,
		     result);
}

/* Append the mean over the rows of @from, or over the rows that the loss counts if there is a @mask
 * (-1: none), and return it. Its mean over the steps is a result, as Keras shows it. */
static int lower_mean(struct lowering *lowering, int output, const char *name, const char *result,
		      int from, int mask)
{
	const struct lower_rows rows = rows_of(lowering, output);
	const struct ipu_op op = {.kind = IPU_OP_REDUCE,
				  .name = lower__name(lowering, "%s/Mean", name),
				  .phase = IPU_PHASE_F,
				  .stage = rows.stage,
				  .reduce = {rows.count, 1}};
	const int mean = flat(lowering, IPU_TENSOR_TEMPORARY, op.name, 1);
	const int to = flat(lowering, IPU_TENSOR_RESULT, result, 1);

	add_measure(lowering, &op, (const int[]){from, lowering->losses[output].counted},
		    mask < 0 ? 1 : 2, mean);
	lower_running_mean(lowering, result, mean, to);
	return mean;
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
				  .name = lower__name(lowering, "%s/weighted", name),
				  .phase = IPU_PHASE_F,
				  .stage = rows.stage,
				  .elements = {.count = rows.count,
					       .operands = operands,
					       .times = {[IPU_FN_ADD] = (uint8_t)(operands - 1)}}};

	if (operands == 1)
		return from;
	to = flat(lowering, IPU_TENSOR_TEMPORARY, op.name, rows.count);
	add_measure(lowering, &op, list, operands, to);
	return to;
}

/* With several outputs, names include the output: "loss/box/mask/Sum". */
static const char *loss_part_name(struct lowering *lowering, int output, const char *part)
{
	const struct model *model = lowering->from->model;

	return model->output_count > 1
		       ? lower__name(lowering, "loss/%s/%s", model->outputs[output].name, part)
		       : lower__name(lowering, "loss/%s", part);
}

/* Append the mask of rows whose label is not the loss's ignore_class, times the mask of rows. */
static void lower_ignored(struct lowering *lowering, int output, enum ipu_tensor_kind kind)
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
	add_measure(lowering, &op, (const int[]){lowering->labels, loss->rows}, 1 + both,
		    loss->mask);
}

/* Append the mask of the rows that the loss uses, and their number. */
static void lower_loss_mask(struct lowering *lowering, int output)
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

	/* The mask of the output's valid rows, in float32. */
	loss->rows = layer ? cast_to_float(lowering, lowering->layers[layer].output,
					   loss_part_name(lowering, output, "mask/Cast"))
			   : -1;
	loss->mask = loss->rows;
	if (lowering->from->losses->items[output].loss.ignores)
		lower_ignored(lowering, output, kind);
	if (loss->mask < 0)
		return;
	loss->counted = flat(lowering, kind, op.name, 1);
	add_measure(lowering, &op, &loss->mask, 1, loss->counted);
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

/* Return the mean over the rows. */
static int lower_loss(struct lowering *lowering, int output, int input)
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
	const char *result = model->output_count > 1
				     ? lower__name(lowering, "%s_loss", model->outputs[output].name)
				     : "loss";
	int writes[2] = {flat(lowering, IPU_TENSOR_TEMPORARY,
			      lower__name(lowering, "%s/items", op.name), rows.count),
			 -1};

	if (lowering->training)
		writes[1] = lowering->losses[output].backprop = flat(
			lowering, IPU_TENSOR_KEPT, lower__name(lowering, "%s/backprop", op.name),
			rows.count * rows.width);
	lower__node(lowering, &(struct ipu_node){.op = op,
						 .reads = (const int[]){input, lowering->labels},
						 .read_count = 2,
						 .writes = writes,
						 .write_count = lowering->training ? 2 : 1,
						 .measure_only = true});
	writes[0] = weighted(lowering, output, op.name, writes[0], true, mask);
	return lower_mean(lowering, output, op.name, result, writes[0], mask);
}

/* Append the sum of several outputs' losses @means, each times its weight. */
static void lower_total(struct lowering *lowering, const int *means, int count)
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

	add_measure(lowering, &op, means, count, total);
	lower_running_mean(lowering, "loss", total, result);
}

static void lower_losses(struct lowering *lowering, int input)
{
	const struct loss_list *losses = lowering->from->losses;
	int means[MODEL_OUTPUTS], count = 0;

	for (int o = 0; o < losses->count; o++) {
		lower_loss_mask(lowering, o);
		if (losses->items[o].given)
			means[count++] = lower_loss(lowering, o, input);
	}
	if (losses->count > 1)
		lower_total(lowering, means, count);
}

/* ---- metrics --------------------------------------------------------------------------------- */

/* Append the class of a one-hot label, and return it; labels that are class numbers need no
 * operation. */
static int lower_label(struct lowering *lowering, const struct metric *metric)
{
	const struct lower_rows rows = rows_of(lowering, metric->output);
	const struct ipu_op op = {.kind = IPU_OP_ROWS,
				  .name = lower__name(lowering, "metrics/%s/ArgMax", metric->name),
				  .phase = IPU_PHASE_F,
				  .stage = rows.stage,
				  .rows = {IPU_ROWS_ARGMAX, rows.count, rows.width}};
	int label;

	if (metric_work(metric) != METRIC_OF_GREATEST ||
	    targets_are_classes(
		    &lowering->from->losses->items[metric->output].targets,
		    loss_rows_of(&lowering->from->model->outputs[metric->output]).positions))
		return lowering->labels;
	label = flat(lowering, IPU_TENSOR_TEMPORARY,
		     lower__name(lowering, "metrics/%s/label", metric->name), rows.count);
	add_measure(lowering, &op, &lowering->labels, 1, label);
	return label;
}

static void lower_metric(struct lowering *lowering, const struct metric *metric, int output)
{
	static const enum ipu_rows_work works[] = {
		[METRIC_OF_ELEMENTS] = IPU_ROWS_ERROR,
		[METRIC_OF_GREATEST] = IPU_ROWS_ARGMAX,
		[METRIC_OF_LOSS] = IPU_ROWS_CROSS_ENTROPY,
	};
	const struct lower_rows rows = rows_of(lowering, metric->output);
	struct ipu_op op = {
		.name = lower__name(lowering, "metrics/%s", metric->name),
		.phase = IPU_PHASE_F,
		.stage = rows.stage,
	};
	int items = flat(lowering, IPU_TENSOR_TEMPORARY,
			 lower__name(lowering, "metrics/%s/items", metric->name), rows.count);
	const enum metric_work work = metric_work(metric);

	/* The operation computes the metric's value of each row. */
	op.kind = IPU_OP_ROWS;
	op.rows = (struct ipu_rows){works[work], rows.count, rows.width};
	if (work == METRIC_OF_LOSS && loss_is_error(&metric->loss))
		op.rows.work = IPU_ROWS_ERROR;

	add_measure(lowering, &op, (const int[]){output, lower_label(lowering, metric)}, 2, items);
	items = weighted(lowering, metric->output, op.name, items, metric->weighted,
			 lowering->losses[metric->output].rows);
	lower_mean(lowering, metric->output, op.name,
		   lower__name(lowering, "metrics/%s/result", metric->name), items,
		   lowering->losses[metric->output].rows);
}

void lower__loss_forward(struct lowering *lowering)
{
	const struct model *model = lowering->from->model;
	const struct metric_list *metrics = lowering->from->metrics;
	int values;

	if (!lowering->from->losses)
		return;
	values = cast_to_float(lowering, loss_input(lowering), "loss/Cast");
	lower_losses(lowering, values);
	if (!metrics || !metrics->count)
		return;
	if (lowering->logits_layer >= 0)
		values = cast_to_float(lowering, lowering->layers[model->layer_count - 1].output,
				       "metrics/Cast");
	for (int i = 0; i < metrics->count; i++)
		if (metrics->items[i].kind != METRIC_OUTPUT_LOSS)
			lower_metric(lowering, &metrics->items[i], values);
}

/* ---- its gradient ---------------------------------------------------------------------------- */

void lower__loss_backward(struct lowering *lowering)
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
					    : lower__name(lowering, "gradients/loss/%s/mul",
							  loss_name(&losses->items[0].loss)),
			    .phase = IPU_PHASE_B,
			    .stage = stage,
			    .elements = {.operands = 1}};
	int list[3 * MODEL_OUTPUTS + 1], count = 0;

	if (!of->needs)
		return;
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
				   lower__name(lowering, "%s/gradient", last->name));
	lowering->tensors[of->gradient].layer = last->name;
	lower__op(lowering, &op, list, count, of->gradient);
}
