/*
 * The measurements of a micro-batch, output by output.
 *
 * Threading: one thread. Ownership: the caller owns all memory.
 */
#include "trainer/train_phase.h"

#include <string.h>

#include "common/minmax.h"
#include "trainer/kernels/kernel_vector.h"

/* The rows of one output. */
struct measured_rows {
	const float *outputs, *logits;
	struct targets targets;
	int64_t rows, there, width;
	float *gradient, *each;
};

/* The gradient is of the whole batch, as in Keras; the returned loss is the mean over the items
 * present. If not all rows count, those of padding do not. */
static double measure_loss(const struct measured_rows *of, const struct loss *loss)
{
	const bool all = !of->targets.mask && !loss->ignores;
	const int64_t rows = all ? of->rows : of->there;
	double value;

	if (of->gradient && rows < of->rows)
		memset(of->gradient + rows * of->width, 0,
		       (size_t)((of->rows - rows) * of->width) * sizeof(*of->gradient));
	value = loss_run_each(loss, of->outputs, of->logits, &of->targets, rows, of->width,
			      of->gradient, of->each);
	if (of->there < rows)
		return of->there > 0 ? value * ((double)rows / (double)of->there) : 0.0;
	return value;
}

/* Compute the metrics of output @output, whose loss is @loss. */
static void measure_metrics(const struct train_measured *measured, const struct measured_rows *of,
			    int output, double loss)
{
	struct targets plain = of->targets;

	plain.weights = NULL;
	for (int m = 0; m < measured->metrics->count; m++) {
		const struct metric *metric = &measured->metrics->items[m];
		double *states = measured->states + metric->first_state;

		if (metric->output != output)
			continue;
		if (metric->kind == METRIC_OUTPUT_LOSS) {
			states[0] = loss * (double)measured->there;
			states[1] = (double)measured->there;
			continue;
		}
		metric_run(metric, of->outputs, metric->weighted ? &of->targets : &plain, of->there,
			   of->width, states);
	}
}

/* ---- one output ------------------------------------------------------------------------------ */

static double measure_one(const struct train_measured *measured)
{
	const struct loss_part *part = &measured->losses->items[0];
	const struct loss_rows of_item = loss_rows_of(&measured->model->outputs[0]);
	struct measured_rows of = {
		.outputs = measured->outputs,
		.logits = measured->logits,
		.targets = measured->targets,
		.rows = measured->items * of_item.positions,
		.there = measured->there * of_item.positions,
		.width = of_item.width,
		.gradient = measured->gradient,
		.each = measured->each,
	};
	double loss;

	of.targets.mask = measured->masks[0];
	loss = measure_loss(&of, &part->loss);
	if (of.gradient && part->weight != 1.0f)
		kernel_scale(of.gradient, part->weight, (size_t)(of.rows * of.width));
	if (measured->classes)
		class_counts_add(measured->classes, of.outputs, &of.targets, of.there, of.width);
	measure_metrics(measured, &of, 0, loss);
	return part->weight != 1.0f ? loss * (double)part->weight : loss;
}

/* ---- several outputs ------------------------------------------------------------------------- */

/* Copy @count floats of each item between rows that are @to_stride and @from_stride apart. */
static void copy_part(float *to, int64_t to_stride, const float *from, int64_t from_stride,
		      int64_t items, int64_t count)
{
	for (int64_t i = 0; i < items; i++)
		memcpy(to + i * to_stride, from + i * from_stride, (size_t)count * sizeof(*to));
}

/* Return the width of a row of the joined outputs, or of their targets. */
static int64_t row_width(const struct model *model)
{
	const struct model_output *last = &model->outputs[model->output_count - 1];

	return last->first + model_shape_count(&last->shape);
}

size_t train_measure_parts(const struct model *model, int64_t batch)
{
	int64_t most = 0;

	if (model->output_count == 1)
		return 0;
	for (int o = 0; o < model->output_count; o++)
		most = max(most, model_shape_count(&model->outputs[o].shape));
	/* Outputs, gradients, targets and weights of rows: each at most as large as the outputs. */
	return 4 * model_align((size_t)(most * batch));
}

/* Copy out the inputs of @part's loss; the caller copies its gradients back. */
static struct measured_rows part_rows(const struct train_measured *measured,
				      const struct loss_part *part,
				      const struct model_output *output)
{
	const int64_t items = measured->items, count = model_shape_count(&output->shape);
	const int64_t wanted = targets_per_item(&part->targets);
	const int64_t each = max(measured->losses->weights, 1);
	const struct loss_rows of_item = loss_rows_of(output);
	const size_t room = model_align((size_t)(count * items));
	float *outputs = measured->parts, *targets = outputs + 2 * room;
	float *weights = outputs + 3 * room;

	copy_part(outputs, count, measured->outputs + output->first, row_width(measured->model),
		  items, count);
	copy_part(targets, wanted, measured->targets.values + part->first, measured->targets.width,
		  items, wanted);
	for (int64_t r = 0; measured->targets.weights && r < items * of_item.positions; r++)
		weights[r] =
			measured->targets.weights[r / of_item.positions * each + part->weight_at];
	return (struct measured_rows){
		.outputs = outputs,
		.targets = {.values = targets,
			    .width = wanted / of_item.positions,
			    .weights = measured->targets.weights ? weights : NULL,
			    .mask = measured->masks[output - measured->model->outputs]},
		.rows = items * of_item.positions,
		.there = measured->there * of_item.positions,
		.width = of_item.width,
		.gradient = measured->gradient ? outputs + room : NULL,
	};
}

static bool part_measured(const struct train_measured *measured, int output)
{
	bool any = measured->losses->items[output].given;

	for (int m = 0; m < measured->metrics->count; m++)
		any = any || measured->metrics->items[m].output == output;
	return any;
}

/* Return the weighted loss of output @o. */
static double measure_part(const struct train_measured *measured, int o)
{
	const struct loss_part *part = &measured->losses->items[o];
	const struct model_output *output = &measured->model->outputs[o];
	const int64_t count = model_shape_count(&output->shape);
	const struct measured_rows of = part_rows(measured, part, output);
	double loss = 0.0;

	if (part->given)
		loss = measure_loss(&of, &part->loss);
	measure_metrics(measured, &of, o, loss);
	if (of.gradient && part->given) {
		if (part->weight != 1.0f)
			kernel_scale(of.gradient, part->weight, (size_t)(measured->items * count));
		copy_part(measured->gradient + output->first, row_width(measured->model),
			  of.gradient, count, measured->items, count);
	}
	return loss * (double)part->weight;
}

double train_measure_run(const struct train_measured *measured)
{
	const size_t row = (size_t)row_width(measured->model);
	double loss = 0.0;

	for (int64_t i = 0; i < measured->metrics->states; i++)
		measured->states[i] = 0.0;
	if (measured->model->output_count == 1)
		return measure_one(measured);
	/* Outputs without a loss have a zero gradient. */
	if (measured->gradient)
		memset(measured->gradient, 0,
		       (size_t)measured->items * row * sizeof(*measured->gradient));
	for (int o = 0; o < measured->model->output_count; o++)
		if (part_measured(measured, o))
			loss += measure_part(measured, o);
	return loss;
}
