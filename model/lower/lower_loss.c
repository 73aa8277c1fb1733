/*
 * Lowering: the loss with its gradient, metrics, and what layers feed out.
 *
 * As TensorFlow's ops do, the loss makes its gradient in the forward pass, and the backward pass
 * scales it by an item's share in the mean.
 *
 * Threads: none.
 */
#include "model/lower/lower_internal.h"

/* What the loss and the metrics are of: [count, width]. */
struct lower_rows {
	int64_t count, width;
	int stage;
};

static struct lower_rows rows_of(const struct lowering *lowering)
{
	const struct loss_rows of_item = loss_rows_of(lowering->from->model);

	return (struct lower_rows){
		.count = lower__batch(lowering) * of_item.positions,
		.width = of_item.width,
		.stage = lowering->from->layout->stages - 1,
	};
}

/* [@elements] of the last stage. */
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

/* In float32, which Keras takes outputs to. */
static int as_float(struct lowering *lowering, int tensor, const char *name)
{
	const struct model *model = lowering->from->model;
	const int stage = rows_of(lowering).stage;
	int to;

	if (lowering->tensors[tensor].dtype == IPU_FLOAT32)
		return tensor;
	to = lower__like(lowering, tensor, IPU_TENSOR_TEMPORARY, IPU_FLOAT32, stage, name);
	if (to < 0 || lower__cast(lowering, name, model->layers[model->layer_count - 1].name,
				  IPU_PHASE_F, stage, tensor, to) != 0)
		return -1;
	return to;
}

/* The mean over the rows of @from, of which @mask leaves so many as the loss has (-1: all); its
 * mean over the steps is a result, as Keras shows it. */
static int lower_mean(struct lowering *lowering, const char *name, const char *result, int from,
		      int mask)
{
	const struct lower_rows rows = rows_of(lowering);
	const int mean = flat(lowering, IPU_TENSOR_TEMPORARY,
			      arena_printf(lowering->arena, "%s/Mean", name), 1);
	const int to = flat(lowering, IPU_TENSOR_RESULT, result, 1);
	const struct ipu_op op = {.kind = IPU_OP_REDUCE,
				  .name = arena_printf(lowering->arena, "%s/Mean", name),
				  .phase = IPU_PHASE_F,
				  .stage = rows.stage,
				  .reduce = {rows.count, 1}};

	if (mean < 0 || to < 0 ||
	    lower__node(lowering,
			&(struct ipu_node){.op = op,
					   .reads = (const int[]){from, lowering->counted},
					   .read_count = mask < 0 ? 1 : 2,
					   .writes = &mean,
					   .write_count = 1,
					   .measure_only = true}) != 0)
		return -1;
	return lower__running_mean(lowering, result, mean, to);
}

/* What the rows of a loss or a metric are multiplied by: their weights, if @weights, and @mask (-1:
 * all count). Listed behind the tensor @from; the number of all. */
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

/* The rows' numbers @from times what the rows weigh; @from where all weigh the same. */
static int weighted(struct lowering *lowering, const char *name, int from, bool weights, int mask)
{
	const struct lower_rows rows = rows_of(lowering);
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

/* The rows whose label is not the class that the loss ignores, times the mask. */
static int lower_ignored(struct lowering *lowering, enum ipu_tensor_kind kind)
{
	const struct lower_rows rows = rows_of(lowering);
	const bool both = lowering->mask >= 0;
	const struct ipu_op op = {
		.kind = IPU_OP_ELEMENTWISE,
		.name = "loss/ignore_class/NotEqual",
		.phase = IPU_PHASE_F,
		.stage = rows.stage,
		.elements = {.count = rows.count,
			     .operands = 1 + both,
			     .times = {[IPU_FN_SELECT] = 1, [IPU_FN_ADD] = both}}};

	lowering->loss_mask = flat(lowering, kind, op.name, rows.count);
	if (lowering->loss_mask < 0)
		return -1;
	return lower__node(lowering, &(struct ipu_node){.op = op,
							.reads = (const int[]){lowering->labels,
									       lowering->mask},
							.read_count = 1 + both,
							.writes = &lowering->loss_mask,
							.write_count = 1,
							.measure_only = true});
}

/* What tells the rows that count, in float32, and how many the loss has left of them. */
static int lower_masks(struct lowering *lowering)
{
	const enum ipu_tensor_kind kind =
		lowering->training ? IPU_TENSOR_KEPT : IPU_TENSOR_TEMPORARY;
	const int layer = lowering->from->model->output_mask;
	const struct ipu_op op = {.kind = IPU_OP_REDUCE,
				  .name = "loss/mask/Sum",
				  .phase = IPU_PHASE_F,
				  .stage = rows_of(lowering).stage,
				  .reduce = {rows_of(lowering).count, 1}};
	int failed = 0;

	if (layer) {
		lowering->mask =
			as_float(lowering, lowering->layers[layer].output, "loss/mask/Cast");
		failed = lowering->mask < 0;
	}
	lowering->loss_mask = lowering->mask;
	if (!failed && lowering->from->loss->ignores)
		failed = lower_ignored(lowering, kind);
	if (failed || lowering->loss_mask < 0)
		return failed;
	lowering->counted = flat(lowering, kind, op.name, 1);
	if (lowering->counted < 0)
		return -1;
	return lower__node(lowering, &(struct ipu_node){.op = op,
							.reads = &lowering->loss_mask,
							.read_count = 1,
							.writes = &lowering->counted,
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
	return layer->inputs[0] == MODEL_INPUT ? lowering->input
					       : lowering->layers[layer->inputs[0]].output;
}

static int lower_loss(struct lowering *lowering, int input)
{
	const struct loss *loss = lowering->from->loss;
	const struct lower_rows rows = rows_of(lowering);
	const char *name = loss_name(loss);
	const struct ipu_op op = {
		.kind = IPU_OP_ROWS,
		.name = arena_printf(lowering->arena, "loss/%s", name),
		.phase = IPU_PHASE_F,
		.stage = rows.stage,
		.rows = {.work = loss_is_error(loss) ? IPU_ROWS_ERROR : IPU_ROWS_CROSS_ENTROPY,
			 .rows = rows.count,
			 .columns = rows.width},
	};
	int writes[2] = {flat(lowering, IPU_TENSOR_TEMPORARY,
			      arena_printf(lowering->arena, "loss/%s/items", name), rows.count),
			 -1};

	if (lowering->training)
		writes[1] = lowering->backprop =
			flat(lowering, IPU_TENSOR_KEPT,
			     arena_printf(lowering->arena, "loss/%s/backprop", name),
			     rows.count * rows.width);
	if (writes[0] < 0 || (lowering->training && writes[1] < 0) || !op.name)
		return -1;
	if (lower__node(lowering,
			&(struct ipu_node){.op = op,
					   .reads = (const int[]){input, lowering->labels},
					   .read_count = 2,
					   .writes = writes,
					   .write_count = lowering->training ? 2 : 1,
					   .measure_only = true}) != 0)
		return -1;
	writes[0] = weighted(lowering, op.name, writes[0], true, lowering->loss_mask);
	return writes[0] < 0
		       ? -1
		       : lower_mean(lowering, op.name, "loss", writes[0], lowering->loss_mask);
}

/* ---- metrics --------------------------------------------------------------------------------- */

/* A number for each row, by the kind of metric. */
static void metric_op(const struct lowering *lowering, const struct metric *metric,
		      struct ipu_op *op)
{
	static const enum ipu_rows_work works[] = {
		[METRIC_OF_ELEMENTS] = IPU_ROWS_ERROR,
		[METRIC_OF_GREATEST] = IPU_ROWS_ARGMAX,
		[METRIC_OF_LOSS] = IPU_ROWS_CROSS_ENTROPY,
	};
	const struct lower_rows rows = rows_of(lowering);
	const enum metric_work work = metric_work(metric);

	op->kind = IPU_OP_ROWS;
	op->rows = (struct ipu_rows){works[work], rows.count, rows.width};
	if (work == METRIC_OF_LOSS && loss_is_error(&metric->loss))
		op->rows.work = IPU_ROWS_ERROR;
}

/* The class that a one-hot label names; of class numbers there is nothing to find. */
static int lower_label(struct lowering *lowering, const struct metric *metric, int *label)
{
	const struct lower_rows rows = rows_of(lowering);
	const struct ipu_op op = {
		.kind = IPU_OP_ROWS,
		.name = arena_printf(lowering->arena, "metrics/%s/ArgMax", metric->name),
		.phase = IPU_PHASE_F,
		.stage = rows.stage,
		.rows = {IPU_ROWS_ARGMAX, rows.count, rows.width}};

	*label = lowering->labels;
	if (metric_work(metric) != METRIC_OF_GREATEST ||
	    targets_are_classes(&lowering->from->targets,
				loss_rows_of(lowering->from->model).positions))
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
	struct ipu_op op = {
		.name = arena_printf(lowering->arena, "metrics/%s", metric->name),
		.phase = IPU_PHASE_F,
		.stage = rows_of(lowering).stage,
	};
	int items = flat(lowering, IPU_TENSOR_TEMPORARY,
			 arena_printf(lowering->arena, "metrics/%s/items", metric->name),
			 rows_of(lowering).count);

	int label;

	metric_op(lowering, metric, &op);
	if (items < 0 || !op.name || lower_label(lowering, metric, &label) != 0 ||
	    lower__node(lowering, &(struct ipu_node){.op = op,
						     .reads = (const int[]){output, label},
						     .read_count = 2,
						     .writes = &items,
						     .write_count = 1,
						     .measure_only = true}) != 0)
		return -1;
	items = weighted(lowering, op.name, items, metric->weighted, lowering->mask);
	if (items < 0)
		return -1;
	return lower_mean(lowering, op.name,
			  arena_printf(lowering->arena, "metrics/%s/result", metric->name), items,
			  lowering->mask);
}

int lower__loss_forward(struct lowering *lowering)
{
	const struct model *model = lowering->from->model;
	const struct metric_list *metrics = lowering->from->metrics;
	const int output = lowering->layers[model->layer_count - 1].output;
	int input, values;

	if (!lowering->from->loss)
		return 0;
	input = as_float(lowering, loss_input(lowering), "loss/Cast");
	if (input < 0 || lower_masks(lowering) != 0 || lower_loss(lowering, input) != 0)
		return -1;
	if (!metrics || !metrics->count)
		return 0;
	values = lowering->logits_layer < 0 ? input : as_float(lowering, output, "metrics/Cast");
	for (int i = 0; values >= 0 && i < metrics->count; i++)
		if (lower_metric(lowering, &metrics->items[i], values) != 0)
			return -1;
	return values < 0 ? -1 : 0;
}

/* ---- its gradient ---------------------------------------------------------------------------- */

int lower__loss_backward(struct lowering *lowering)
{
	const struct model *model = lowering->from->model;
	const struct model_layer *last = &model->layers[model->layer_count - 1];
	struct lower_layer *of = &lowering->layers[last->position];
	const struct lower_rows rows = rows_of(lowering);
	const enum ipu_dtype dtype = lowering->tensors[of->output].dtype;
	struct ipu_op op = {.kind = IPU_OP_ELEMENTWISE,
			    .name = arena_printf(lowering->arena, "gradients/loss/%s/mul",
						 loss_name(lowering->from->loss)),
			    .phase = IPU_PHASE_B,
			    .stage = rows.stage,
			    .elements = {.count = rows.count * rows.width, .operands = 1}};
	int list[4], operands;

	if (!of->needs)
		return 0;
	op.elements.times[IPU_FN_CAST] = dtype != IPU_FLOAT32;
	operands = row_factors(lowering, lowering->backprop, true, lowering->loss_mask, list);
	if (lowering->loss_mask >= 0)
		list[operands++] = lowering->counted;
	op.elements.operands = operands;
	op.elements.times[IPU_FN_ADD] = (uint8_t)operands;
	of->gradient = lower__like(lowering, of->output, IPU_TENSOR_GRADIENT, dtype, rows.stage,
				   arena_printf(lowering->arena, "%s/gradient", last->name));
	if (of->gradient < 0 || !op.name)
		return -1;
	lowering->tensors[of->gradient].layer = last->name;
	return lower__node(lowering, &(struct ipu_node){.op = op,
							.reads = list,
							.read_count = operands,
							.writes = &of->gradient,
							.write_count = 1});
}

/* ---- what is fed out ------------------------------------------------------------------------- */

static int lower_send(struct lowering *lowering, const struct run_send *send)
{
	const struct model_layer *layer = &lowering->from->model->layers[send->layer];
	const int from = lowering->layers[send->layer].output;
	struct ipu_op op = {.kind = IPU_OP_COPY,
			    .layer = layer->name,
			    .phase = IPU_PHASE_F,
			    .stage = lowering->from->layout->stage[send->layer]};
	int to;

	op.name = arena_printf(lowering->arena, "%s/outfeed", send->key);
	op.dtype = lowering->tensors[from].dtype;
	op.copy.count = ipu_tensor_elements(&lowering->tensors[from]);
	op.copy.atom = layer->output.ndim ? layer->output.dim[layer->output.ndim - 1] : 1;
	to = lower__like(lowering, from, IPU_TENSOR_RESULT, op.dtype, op.stage, op.name);
	if (to < 0)
		return -1;
	lowering->tensors[to].layer = layer->name;
	return lower__node(lowering, &(struct ipu_node){.op = op,
							.reads = &from,
							.read_count = 1,
							.writes = &to,
							.write_count = 1,
							.training_only = true});
}

int lower__outfeed(struct lowering *lowering, int position)
{
	const struct run_queues *plan = &lowering->outfeeds;
	int failed = 0;

	for (int i = 0; i < plan->send_count && !failed; i++)
		if (plan->sends[i].layer == position && plan->sends[i].sent)
			failed = lower_send(lowering, &plan->sends[i]);
	return failed;
}
