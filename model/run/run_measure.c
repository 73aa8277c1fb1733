/*
 * What the run file states for a model's outputs: losses, their weights and metrics, each for all
 * outputs, by position or by name; and the assignment of the data's targets to outputs.
 *
 * Threading: none.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "model/run/run_internal.h"

/* ---- by output ------------------------------------------------------------------------------- */

/* Whether @at is an object of values by output, not a {class_name, config}. */
static bool is_by_name(const struct json_at *at)
{
	return cJSON_IsObject(at->node) &&
	       !cJSON_GetObjectItemCaseSensitive(at->node, "class_name");
}

/* Whether @at is a list of values by output. A list of metrics is one only if it contains lists. */
static bool is_by_position(const struct json_at *at, bool metrics)
{
	bool lists = !metrics;

	if (!cJSON_IsArray(at->node))
		return false;
	for (const cJSON *item = at->node->child; item; item = item->next)
		lists = lists || cJSON_IsArray(item) || cJSON_IsNull(item);
	return lists;
}

static enum status unknown_output(const struct json_at *at, const struct model *model,
				  const char *name, struct err *err)
{
	const char *known[MODEL_OUTPUTS];

	for (int o = 0; o < model->output_count; o++)
		known[o] = model->outputs[o].name;
	return json_unknown(at, "output", name, known, (size_t)model->output_count, err);
}

static int find_output(const struct model *model, const char *name)
{
	for (int o = 0; o < model->output_count; o++)
		if (!strcmp(model->outputs[o].name, name))
			return o;
	return -1;
}

static int find_text(const struct run_texts *texts, const char *text)
{
	for (int i = 0; i < texts->count; i++)
		if (!strcmp(texts->items[i], text))
			return i;
	return -1;
}

/* Write the outputs' names: "class", "box". */
static const char *output_names(const struct model *model, char *out, size_t size)
{
	size_t used = 0;

	*out = '\0';
	for (int o = 0; o < model->output_count && used < size; o++)
		used += (size_t)snprintf(out + used, size - used, "%s\"%s\"", o ? ", " : "",
					 model->outputs[o].name);
	return out;
}

static void check_by_output(const struct json_at *at, const struct model *model, bool metrics,
			    struct err *err)
{
	struct json_at named = {0};
	char names[256];

	if (is_by_position(at, metrics) && json_count(at) != model->output_count)
		json_fail(at, err, "has %d %s, but the model has %d output%s: %s", json_count(at),
			  json_count(at) == 1 ? "entry" : "entries", model->output_count,
			  model->output_count == 1 ? "" : "s",
			  output_names(model, names, sizeof(names)));
	while (is_by_name(at) && !err_stuck(err) && json_next(at, &named))
		if (find_output(model, named.key) < 0)
			unknown_output(at, model, named.key, err);
}

/* Find the value in @at for output @o; false: absent or null. */
static bool value_of_output(const struct json_at *at, const struct model *model, int o,
			    bool metrics, struct json_at *out)
{
	*out = *at;
	if (is_by_name(at))
		return json_child(at, model->outputs[o].name, out) && !json_is_null(out);
	if (is_by_position(at, metrics))
		return json_item(at, o, out) && !json_is_null(out);
	return true;
}

/* ---- weights of classes ---------------------------------------------------------------------- */

static void read_class_weight(struct class_weight *out, const struct json_at *at, struct err *err)
{
	struct json_at here;

	if (!cJSON_IsObject(at->node) || !json_count(at)) {
		json_fail(at, err,
			  "must be an object of weights by class: {\"0\": 1.0, \"1\": 2.5}");
		return;
	}
	out->items = mem_calloc((size_t)json_count(at), sizeof(*out->items));
	if (!out->items)
		err_nomem(err);
	for (; !err_stuck(err) && out->count < json_count(at); out->count++) {
		char key[24];
		double weight = 0.0;

		snprintf(key, sizeof(key), "%lld", (long long)out->count);
		if (!json_child(at, key, &here))
			json_fail(at, err,
				  "must have the classes from 0 to %d, one less than their number; "
				  "\"%s\" is missing",
				  json_count(at) - 1, key);
		else if (json_real(&here, &weight, err) == ST_OK && !(fabs(weight) <= 3e38))
			json_fail(&here, err, "must be a number that float32 has");
		out->items[out->count] = (float)weight;
	}
}

/* Whether @at is an object of weights by class, not by output. */
static bool is_by_class(const struct json_at *at)
{
	for (const cJSON *item = at->node->child; item; item = item->next)
		if (!cJSON_IsNumber(item))
			return false;
	return cJSON_IsObject(at->node);
}

/* Read the weights of a model of several outputs as Keras did before TensorFlow 2.2; later versions
 * refuse them. */
static void read_class_weights(struct class_weights *out, const struct json_at *at,
			       const struct model *model, const struct run_texts *named,
			       struct err *err)
{
	struct json_at here;

	if (is_by_class(at))
		json_fail(at, err,
			  "is of one output, and the model has %d: give such an object by output, "
			  "{\"%s\": {\"0\": 1.0, \"1\": 2.5}}",
			  model->output_count, model->outputs[0].name);
	else if (!is_by_name(at) && !is_by_position(at, false))
		json_fail(at, err, "must be an object or a list of weights by output");
	else
		check_by_output(at, model, false, err);
	for (int o = 0; o < model->output_count && !err_stuck(err); o++) {
		const int i = find_text(named, model->outputs[o].name);

		if (!value_of_output(at, model, o, false, &here))
			continue;
		if (i < 0 || i >= TARGET_PARTS)
			json_fail(&here, err,
				  "the output \"%s\" has no targets: data.outputs does not name it",
				  model->outputs[o].name);
		else
			read_class_weight(&out->parts[i], &here, err);
	}
}

static enum status read_outputs(struct model **out, const struct run_file *run, struct err *err)
{
	struct json_at root, at;

	*out = NULL;
	return run_model_at(&root, &at, run, err) == ST_OK ? model_new_outputs(out, &at, err)
							   : err->status;
}

enum status run_class_weights(struct class_weights *out, const struct run_file *run,
			      struct err *err)
{
	struct run_place place;
	struct model *model;
	struct err own;

	err = err_start(err, &own);
	*out = (struct class_weights){0};
	if (!run__value_find(run, "fit", "class_weight", &place) ||
	    read_outputs(&model, run, err) != ST_OK)
		return err->status;
	if (model->output_count > 1)
		read_class_weights(out, &place.at, model, &run->data.outputs, err);
	else
		read_class_weight(&out->parts[0], &place.at, err);
	model_free(model);
	if (err_stuck(err))
		run_class_weights_free(out);
	return err->status;
}

void run_class_weights_free(struct class_weights *weights)
{
	for (int i = 0; i < TARGET_PARTS; i++)
		mem_free(weights->parts[i].items);
	*weights = (struct class_weights){0};
}

/* ---- checks without a model ------------------------------------------------------------------ */

static void check_metric(const struct json_at *at, struct err *err)
{
	struct json_at item = {0};

	if (!cJSON_IsArray(at->node) && !json_is_null(at))
		metric_check_name(at, err);
	while (cJSON_IsArray(at->node) && !err_stuck(err) && json_next(at, &item))
		if (!cJSON_IsArray(item.node) && !json_is_null(&item))
			metric_check_name(&item, err);
}

static void check_loss(const struct json_at *at, struct err *err)
{
	struct loss loss;

	if (!json_is_null(at))
		loss_get(&loss, at, err);
}

/* Call @check for the value of each output, or for the value of all. */
static void check_each(const struct json_at *at, bool metrics,
		       void (*check)(const struct json_at *at, struct err *err), struct err *err)
{
	struct json_at item = {0};

	if (!is_by_name(at) && !is_by_position(at, metrics))
		check(at, err);
	else
		while (!err_stuck(err) && json_next(at, &item))
			check(&item, err);
}

/* Check data.outputs before the data are opened, which have an array for each. */
static void check_outputs(const struct run_file *run, struct err *err)
{
	const struct run_texts *named = &run->data.outputs;
	struct run_place place;
	struct model *model;
	char names[256];

	if (read_outputs(&model, run, err) == ST_OK && model->output_count > 1) {
		run__value_find(run, "data", "outputs", &place);
		for (int i = 0; i < named->count && !err_stuck(err); i++)
			if (find_output(model, named->items[i]) < 0)
				unknown_output(&place.at, model, named->items[i], err);
		for (int i = 1; i < named->count && !err_stuck(err); i++)
			for (int k = 0; k < i && !err_stuck(err); k++)
				if (!strcmp(named->items[i], named->items[k]))
					json_fail(&place.at, err, "names \"%s\" twice",
						  named->items[i]);
		run__value_find(run, "data", "one_hot", &place);
		for (int i = 0; i < run->data.one_hot.count && !err_stuck(err); i++)
			if (find_text(named, run->data.one_hot.items[i]) < 0)
				json_unknown(&place.at, "output", run->data.one_hot.items[i],
					     named->items, (size_t)named->count, err);
		if (!named->count && (run->fit.wanted || run->evaluate.wanted))
			err_set(err, ST_INVALID,
				"%s: data.outputs: is missing: it names the outputs that have "
				"targets (y_train_NAME) of the model's %d: %s",
				run->path, model->output_count,
				output_names(model, names, sizeof(names)));
	}
	if (!err_stuck(err) && model && model->output_count <= 1 && run->data.one_hot.count)
		err_set(err, ST_INVALID,
			"%s: data.one_hot: names outputs, but the model has one: give true",
			run->path);
	model_free(model);
}

enum status run_check_compile(const struct run_file *run, struct err *err)
{
	static const struct {
		const char *section, *key;
		bool metrics;
	} rows[] = {
		{"compile", "loss", false},
		{"compile", "metrics", true},
		{"compile", "weighted_metrics", true},
		{"evaluate", "loss", false},
		{"evaluate", "metrics", true},
	};
	struct optimizer optimizer;
	struct class_weights weights;
	struct run_place place;
	struct err own;

	err = err_start(err, &own);
	run_optimizer(&optimizer, run, err);
	if (!err_stuck(err))
		check_outputs(run, err);
	for (size_t i = 0; i < ARRAY_LEN(rows) && !err_stuck(err); i++)
		if (run__value_find(run, rows[i].section, rows[i].key, &place))
			check_each(&place.at, rows[i].metrics,
				   rows[i].metrics ? check_metric : check_loss, err);
	if (!err_stuck(err) && run_class_weights(&weights, run, err) == ST_OK)
		run_class_weights_free(&weights);
	return err->status;
}

/* ---- losses ---------------------------------------------------------------------------------- */

static void read_weights(struct loss_list *out, const struct run_file *run,
			 const struct model *model, struct err *err)
{
	struct run_place place;
	struct json_at here;

	if (err_stuck(err) || !run__value_find(run, "compile", "loss_weights", &place))
		return;
	check_by_output(&place.at, model, false, err);
	for (int o = 0; o < model->output_count && !err_stuck(err); o++) {
		if (value_of_output(&place.at, model, o, false, &here)) {
			double weight = 1.0;

			if (json_real(&here, &weight, err) == ST_OK && !(fabs(weight) <= 3e38))
				json_fail(&here, err, "must be a number that float32 has");
			out->items[o].weight = (float)weight;
		}
	}
}

/* Read @section's losses, or compile's; does not set their targets. @err is not NULL. */
static enum status read_losses(struct loss_list *out, const struct run_file *run,
			       const char *section, const struct model *model,
			       struct run_place *place, struct err *err)
{
	bool any = false;
	struct json_at here;

	*out = (struct loss_list){.count = model->output_count};
	if (!run__value_find(run, section, "loss", place) &&
	    !run__value_find(run, "compile", "loss", place))
		return err_set(err, ST_INVALID, "%s: compile.loss: missing", run->path);
	check_by_output(&place->at, model, false, err);
	for (int o = 0; o < out->count && !err_stuck(err); o++) {
		struct loss_part *part = &out->items[o];

		part->weight = 1.0f;
		part->given = value_of_output(&place->at, model, o, false, &here);
		any = any || part->given;
		if (part->given)
			loss_get(&part->loss, &here, err);
	}
	if (!err_stuck(err) && !any)
		json_fail(&place->at, err, "no output has a loss");
	read_weights(out, run, model, err);
	return err->status;
}

/* ---- targets --------------------------------------------------------------------------------- */

/* The targets that @part needs; for runs without data. */
static struct target_kind natural_targets(const struct loss_part *part,
					  const struct model_output *output)
{
	const struct loss_rows rows = loss_rows_of(output);

	if (part->given && part->loss.kind == LOSS_SPARSE_CATEGORICAL_CROSSENTROPY)
		return (struct target_kind){.classes = (int)min(rows.width, INT_MAX),
					    .width = rows.positions > 1 ? rows.positions : 0};
	return (struct target_kind){.width = rows.positions * rows.width};
}

static bool ignores(const struct json_at *at, int64_t *class)
{
	struct loss loss;
	struct err err = {0};

	if (json_is_null(at) || loss_get(&loss, at, &err) != ST_OK || !loss.ignores)
		return false;
	*class = loss.ignore_class;
	return true;
}

/* The output that data.outputs[@i] names, or -1. */
static int named_output(const struct run_file *run, const struct model *model, int i,
			struct err *err)
{
	const struct json_at root = json_root(run->path, run->json);
	const int found = find_output(model, run->data.outputs.items[i]);

	if (found < 0)
		unknown_output(&root, model, run->data.outputs.items[i], err);
	return found;
}

bool run_ignored(const struct run_file *run, int i, int64_t *class)
{
	const struct run_texts *named = &run->data.outputs;
	struct model *model = NULL;
	struct run_place place;
	struct json_at here;
	bool found = false;
	struct err err;
	int o = 0;

	if (!run__value_find(run, "compile", "loss", &place))
		return false;
	if (!is_by_name(&place.at) && !is_by_position(&place.at, false))
		return ignores(&place.at, class);
	if (read_outputs(&model, run, &err) == ST_OK) {
		if (i < named->count)
			o = find_output(model, named->items[i]);
		found = o >= 0 && o < model->output_count &&
			value_of_output(&place.at, model, o, false, &here) && ignores(&here, class);
	}
	model_free(model);
	return found;
}

enum status run_targets(struct target_kind *out, const struct run_file *run, const char *section,
			const struct model *model, struct err *err)
{
	const struct run_texts *named = &run->data.outputs;
	struct run_place place;
	struct loss_list losses;
	struct err own;

	err = err_start(err, &own);
	*out = (struct target_kind){0};
	if (read_losses(&losses, run, section, model, &place, err) != ST_OK)
		return err->status;
	if (model->output_count == 1) {
		*out = natural_targets(&losses.items[0], &model->outputs[0]);
		return ST_OK;
	}
	for (int i = 0; i < named->count && i < TARGET_PARTS; i++) {
		const int o = named_output(run, model, i, err);
		struct target_kind kind;

		if (o < 0)
			return ST_INVALID;
		kind = natural_targets(&losses.items[o], &model->outputs[o]);
		out->parts[out->part_count++] = (struct target_part){kind.classes, kind.width};
		out->width += targets_per_item(&kind);
	}
	return ST_OK;
}

static bool has_class_weight(const struct run_file *run, const struct model *model, int o)
{
	struct run_place place;
	struct json_at here;

	return run__value_find(run, "fit", "class_weight", &place) &&
	       value_of_output(&place.at, model, o, false, &here);
}

/* Assign the parts of @kind to the outputs that data.outputs names. */
static enum status assign_targets(struct loss_list *losses, const struct run_file *run,
				  const struct model *model, const struct target_kind *kind,
				  struct err *err)
{
	struct loss_part *part;
	int64_t first = 0;

	if (model->output_count == 1 && kind->part_count)
		return err_set(err, ST_INVALID,
			       "%s: data.outputs: is for models of several outputs, and this one "
			       "has one: leave it out",
			       run->path);
	if (model->output_count == 1) {
		part = &losses->items[0];
		part->targets = *kind;
		part->targets.ignores = run_ignored(run, 0, &part->targets.ignored);
		return ST_OK;
	}
	losses->weights = run->fit.class_weight ? kind->part_count : kind->weights;
	for (int i = 0; i < kind->part_count && i < run->data.outputs.count; i++) {
		const int o = named_output(run, model, i, err);

		if (o < 0)
			return ST_INVALID;
		part = &losses->items[o];
		part->targets = (struct target_kind){.classes = kind->parts[i].classes,
						     .width = kind->parts[i].width,
						     .weights = losses->weights > 0};
		part->targets.ignores = run_ignored(run, i, &part->targets.ignored);
		part->first = first;
		part->weight_at = losses->weights > 1 ? i : 0;
		if (has_class_weight(run, model, o) &&
		    loss_rows_of(&model->outputs[o]).positions > 1)
			return err_set(
				err, ST_INVALID,
				"%s: fit.class_weight: the output \"%s\" has %lld positions an "
				"item, and class weights are of one class an item",
				run->path, model->outputs[o].name,
				(long long)loss_rows_of(&model->outputs[o]).positions);
		first += targets_per_item(&part->targets);
	}
	return ST_OK;
}

static bool has_targets(const struct loss_part *part)
{
	return part->targets.classes > 0 || part->targets.width > 0;
}

static enum status report_missing_targets(const struct run_file *run, const struct model *model,
					  int o, const char *what, struct err *err)
{
	char names[256];

	return err_set(err, ST_INVALID,
		       "%s: data.outputs: the output \"%s\" has a %s but no targets: name it too, "
		       "and have y_train_%s (the model's outputs are %s)",
		       run->path, model->outputs[o].name, what, model->outputs[o].name,
		       output_names(model, names, sizeof(names)));
}

/* ---- losses and metrics of a run ------------------------------------------------------------- */

static enum status check_losses(const struct loss_list *losses, const struct run_file *run,
				const struct model *model, const struct json_at *at,
				struct err *err)
{
	struct json_at here;
	char path[256];

	for (int o = 0; o < losses->count; o++) {
		const struct loss_part *part = &losses->items[o];
		enum status status = ST_OK;

		if (!part->given)
			continue;
		if (losses->count > 1 && !has_targets(part))
			return report_missing_targets(run, model, o, "loss", err);
		status = loss_check(&part->loss, &model->outputs[o], &part->targets, err);
		if (status != ST_OK) {
			value_of_output(at, model, o, false, &here);
			json_path(&here, path, sizeof(path));
			if (losses->count > 1)
				err_prefix(err, "output \"%s\"", model->outputs[o].name);
			err_prefix(err, "%s: %s", run->path, path);
			return status;
		}
	}
	return ST_OK;
}

static void add_metrics(struct metric_list *metrics, const struct run_file *run,
			const struct loss_list *losses, const struct model *model,
			const struct json_at *at, bool weighted, struct err *err)
{
	const bool all = !is_by_name(at) && !is_by_position(at, true);
	struct json_at here;

	if (err_stuck(err))
		return;
	check_by_output(at, model, true, err);
	for (int o = 0; o < losses->count && !err_stuck(err); o++) {
		const struct loss_part *part = &losses->items[o];

		if (!value_of_output(at, model, o, true, &here) ||
		    (cJSON_IsArray(here.node) && !json_count(&here)) ||
		    (all && losses->count > 1 && !has_targets(part)))
			continue;
		if (losses->count > 1 && !has_targets(part))
			report_missing_targets(run, model, o, "metric", err);
		else
			metric_list_add(metrics, &here, weighted, model, o, &part->targets, err);
	}
}

enum status run_measure(struct loss_list *losses, struct metric_list *metrics,
			const struct run_file *run, const char *section, const struct model *model,
			const struct target_kind *kind, struct err *err)
{
	struct run_place place;
	struct err own;

	err = err_start(err, &own);
	*metrics = (struct metric_list){0};
	if (read_losses(losses, run, section, model, &place, err) == ST_OK &&
	    assign_targets(losses, run, model, kind, err) == ST_OK)
		check_losses(losses, run, model, &place.at, err);
	for (int o = 0; o < losses->count && losses->count > 1 && !err_stuck(err); o++)
		if (losses->items[o].given)
			metric_list_add_loss(metrics, &losses->items[o].loss, model, o, err);
	if (run__value_find(run, section, "metrics", &place) ||
	    run__value_find(run, "compile", "metrics", &place))
		add_metrics(metrics, run, losses, model, &place.at, false, err);
	if (run__value_find(run, "compile", "weighted_metrics", &place))
		add_metrics(metrics, run, losses, model, &place.at, true, err);
	if (err_stuck(err))
		metric_list_free(metrics);
	return err->status;
}

int64_t run_row_weights(const struct run_file *run, const struct target_kind *kind,
			const struct model *model, bool training)
{
	if (training && run->fit.class_weight)
		return kind->part_count ? kind->part_count : loss_positions(model);
	return kind->weights == 0 && run->data.pad_remainder ? 1 : kind->weights;
}
