/*
 * Tables as Keras prints them: fixed columns, fields cut to fit. No state.
 */
#include "trainer/train_summary.h"

#include <string.h>

#include "common/fmt.h"

#define COLUMNS   4
#define FIELD     256
#define LINE_MOST 128

struct table {
	FILE *out;
	int columns, width;
	int ends[COLUMNS];
};

static void print_rule(const struct table *table, char character)
{
	for (int i = 0; i < table->width; i++)
		putc(character, table->out);
	putc('\n', table->out);
}

/* Keras's print_row(): each field is cut to its column, with a blank before the next. */
static void print_row(const struct table *table, char fields[COLUMNS][FIELD])
{
	char line[LINE_MOST] = "";
	size_t length = 0;

	for (int i = 0; i < table->columns; i++) {
		const size_t end = (size_t)table->ends[i];

		if (i > 0)
			line[length - 1] = ' ';
		snprintf(line + length, sizeof(line) - length, "%s", fields[i]);
		length = strlen(line);
		if (length > end)
			length = end;
		memset(line + length, ' ', end - length);
		length = end;
		line[length] = '\0';
	}
	fprintf(table->out, "%s\n", line);
}

static void print_head(const struct table *table, const char *name, const char *const *titles)
{
	char fields[COLUMNS][FIELD] = {""};

	for (int i = 0; i < table->columns; i++)
		snprintf(fields[i], FIELD, "%s", titles[i]);
	fprintf(table->out, "Model: \"%s\"\n", name);
	print_rule(table, '_');
	print_row(table, fields);
	print_rule(table, '=');
}

/* ---- the model ------------------------------------------------------------------------------- */

/* A chain is shown without its connections. */
static bool is_chain(const struct model *model)
{
	if (!model->functional)
		return true;
	for (int i = 0; i < model->row_count; i++)
		if (model->rows[i].input_count != (i > 0) ||
		    (i > 0 && model->rows[i].inputs[0] != i - 1))
			return false;
	return true;
}

static int64_t row_params(const struct model *model, int row, bool trainable_alone)
{
	int64_t count = 0;

	for (int i = 0; i < model->param_count; i++) {
		const struct model_param *param = &model->params[i];

		if ((row < 0 || model->layers[param->layer].row == row) &&
		    (param->trainable || !trainable_alone))
			count += (int64_t)param->count;
	}
	return count;
}

static void print_model_row(const struct table *table, const struct model *model, int number,
			    int64_t batch)
{
	const struct model_row *row = &model->rows[number];
	const bool input = strcmp(row->class_name, "InputLayer") == 0;
	char fields[COLUMNS][FIELD] = {""}, shape[FIELD - 2];

	model_shape_text(&row->output, row->any_batch ? 0 : batch, shape, sizeof(shape));
	snprintf(fields[0], FIELD, "%s (%s)", row->name, row->class_name);
	snprintf(fields[1], FIELD, input ? "[%s]" : "%s", shape);
	snprintf(fields[2], FIELD, "%lld", (long long)row_params(model, number, false));
	if (row->input_count > 0)
		snprintf(fields[3], FIELD, "%s[0][0]", model->rows[row->inputs[0]].name);
	print_row(table, fields);
	for (int i = 1; table->columns > 3 && i < row->input_count; i++) {
		char more[COLUMNS][FIELD] = {""};

		snprintf(more[3], FIELD, "%s[0][0]", model->rows[row->inputs[i]].name);
		print_row(table, more);
	}
}

void train_summary_model(FILE *out, const struct model *model, int64_t batch)
{
	static const char *const titles[] = {"Layer (type)", "Output Shape", "Param #",
					     "Connected to"};
	const struct table chain = {out, 3, 65, {29, 55, 65}};
	const struct table graph = {out, 4, 98, {32, 53, 65, 98}};
	const struct table *table = is_chain(model) ? &chain : &graph;
	const int64_t total = row_params(model, -1, false);
	const int64_t trainable = row_params(model, -1, true);
	char count[FMT_SIZE];

	print_head(table, model->name, titles);
	for (int i = 0; i < model->row_count; i++) {
		print_model_row(table, model, i, batch);
		print_rule(table, i + 1 == model->row_count ? '=' : '_');
	}
	fprintf(out, "Total params: %s\n", fmt_count(count, total));
	fprintf(out, "Trainable params: %s\n", fmt_count(count, trainable));
	fprintf(out, "Non-trainable params: %s\n", fmt_count(count, total - trainable));
	print_rule(table, '_');
}

/* ---- stages ---------------------------------------------------------------------------------- */

static const char *input_name(const struct model *model, int position)
{
	if (position != MODEL_INPUT)
		return model->layers[position].name;
	return model->row_count > 0 ? model->rows[0].name : "input";
}

static void print_sequential_stages(FILE *out, const struct model *model, const int *stage)
{
	static const char *const titles[] = {"Layer (type)", "Pipeline Stage"};
	const struct table table = {out, 2, 60, {30, 60}};

	print_head(&table, model->name, titles);
	for (int i = 0; i < model->layer_count; i++) {
		const struct model_layer *layer = &model->layers[i];
		char fields[COLUMNS][FIELD] = {""};

		snprintf(fields[0], FIELD, "%s (%s)", layer->name, model_layer_class(layer));
		snprintf(fields[1], FIELD, "%d", stage[i]);
		print_row(&table, fields);
		print_rule(&table, i + 1 == model->layer_count ? '=' : '_');
	}
}

/* A nested model is announced before the first of its layers. */
static void announce_nested(const struct table *table, const struct model *model, int position)
{
	const struct model_layer *layer = &model->layers[position];
	const struct model_row *row = &model->rows[layer->row];

	if (strcmp(row->name, layer->name) == 0 || (position > 0 && layer[-1].row == layer->row))
		return;
	fprintf(table->out, "Nested Model: \"%s\"\n", row->name);
	print_rule(table, '-');
}

static void print_functional_stages(FILE *out, const struct model *model, const int *stage)
{
	static const char *const titles[] = {"Layer (type) (node index)", "Input Layers",
					     "Pipeline Stage"};
	const struct table table = {out, 3, 89, {35, 71, 89}};

	print_head(&table, model->name, titles);
	for (int i = 0; i < model->layer_count; i++) {
		const struct model_layer *layer = &model->layers[i];
		char fields[COLUMNS][FIELD] = {""};

		announce_nested(&table, model, i);
		snprintf(fields[0], FIELD, "%s (%s) (0)", layer->name, model_layer_class(layer));
		snprintf(fields[1], FIELD, "%s", input_name(model, layer->inputs[0]));
		snprintf(fields[2], FIELD, "%d", stage[i]);
		print_row(&table, fields);
		for (int k = 1; k < layer->input_count; k++) {
			char more[COLUMNS][FIELD] = {""};

			snprintf(more[1], FIELD, "%s", input_name(model, layer->inputs[k]));
			print_row(&table, more);
		}
		print_rule(&table, i + 1 == model->layer_count ? '=' : '_');
	}
}

void train_summary_stages(FILE *out, const struct model *model, const struct run_layout *layout)
{
	if (layout->stages < 2)
		return;
	if (model->functional)
		print_functional_stages(out, model, layout->stage);
	else
		print_sequential_stages(out, model, layout->stage);
}
