/*
 * The assignment of layers to pipeline stages: `pipeline.stages` applied to the model.
 *
 * Threading: none.
 */
#include <inttypes.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "model/layers/layer.h"
#include "model/run/run_rules.h"

/* Check that a layer of a Sequential model is in the stage of the layer before, or in the next. */
static enum status run_check_stage_order(const struct json_at *item, const struct model *model,
					 const int *stage, int i, int64_t value, struct err *err)
{
	int before = i ? stage[i - 1] : 0;

	if (!i && value != 0)
		return json_fail(item, err,
				 "the first layer, \"%s\", must be in stage 0, not %" PRId64,
				 model->layers[0].name, value);
	if (value < before || value > before + 1)
		return json_fail(item, err,
				 "layer \"%s\" must be in stage %d, as the layer before, "
				 "or in stage %d, not %" PRId64,
				 model->layers[i].name, before, before + 1, value);
	return ST_OK;
}

/* Read a stage's number. It is below the number of layers: otherwise some stage would be empty. */
static enum status run_read_stage(const struct json_at *item, const struct model *model,
				  int64_t *value, struct err *err)
{
	enum status status = json_int(item, 0, INT32_MAX, value, err);

	if (status == ST_OK && model->functional && *value >= model->layer_count)
		return json_fail(item, err,
				 "there cannot be a stage %" PRId64 ": the model has %d layers",
				 *value, model->layer_count);
	return status;
}

static int run_stages_count(const struct model *model, const int *stage)
{
	int greatest = 0;

	for (int i = 0; i < model->layer_count; i++)
		if (stage[i] > greatest)
			greatest = stage[i];
	return greatest + 1;
}

static enum status run_stages_list(const struct json_at *at, const struct model *model, int *stage,
				   struct err *err)
{
	/* The layer that concatenates several outputs may be omitted: it is in the last stage. */
	const int required = model->layer_count - (model->output_count > 1);
	const int count = json_count(at);
	struct json_at item = {0};

	if (count != model->layer_count && count != required)
		return json_fail(at, err,
				 "has %d entries, but the model has %d layers; give each its stage",
				 count, required);

	while (json_next(at, &item)) {
		const int i = item.index;
		int64_t value;

		if (json_is_null(&item))
			return json_fail(&item, err, "layer \"%s\" needs a stage, not null",
					 model->layers[i].name);
		if (run_read_stage(&item, model, &value, err) != ST_OK)
			return err->status;
		if (!model->functional &&
		    run_check_stage_order(&item, model, stage, i, value, err) != ST_OK)
			return err->status;
		stage[i] = (int)value;
	}
	if (count < model->layer_count)
		stage[required] = run_stages_count(model, stage) - 1;
	return ST_OK;
}

static enum status run_stages_object(const struct json_at *at, const struct model *model,
				     int *stage, struct err *err)
{
	struct json_at named = {0};
	int current = 0;

	while (json_next(at, &named))
		if (model_find_layer(model, named.key) < 0)
			return model_unknown_layer(model, at, named.key, err);
	for (int i = 0; i < model->layer_count; i++) {
		/* The first layer may be omitted: its stage can only be 0. */
		int next = i ? current + 1 : 0;
		struct json_at item;
		int64_t value;

		if (json_child(at, model->layers[i].name, &item)) {
			if (run_read_stage(&item, model, &value, err) != ST_OK)
				return err->status;
			if (!model->functional && value != next)
				return json_fail(&item, err,
						 "the stage that starts at this layer must be "
						 "%d, not %" PRId64,
						 next, value);
			current = (int)value;
		} else if (model->output_count > 1 && i == model->layer_count - 1) {
			current = run_stages_count(model, stage) - 1;
		}
		stage[i] = current;
	}
	return ST_OK;
}

/* ---- "auto" ---------------------------------------------------------------------------------- */

static enum status run_stages_auto(const struct json_at *at, const struct run_file *run,
				   const struct model *model, const struct run_splitter *splitter,
				   int *stage, struct err *err)
{
	const struct run_ints *mapping = &run->pipeline.device_mapping;
	int64_t stages = run->ipu.auto_select_ipus;

	if (!run->ipu.wanted)
		return json_fail(at, err,
				 "\"auto\" splits the layers over IPUs, but \"ipu\" is null: give "
				 "ipu.auto_select_ipus, or set pipeline to null too");
	/* If the schedule deals stages to IPUs in turn, each IPU gets at least two. */
	if (ipu_schedule_row(run->pipeline.schedule)->sharing == IPU_SHARE_IN_TURN)
		stages *= 2;
	if (mapping->given)
		stages = mapping->count;
	if (run->pipeline.auto_stages > 0)
		stages = run->pipeline.auto_stages;
	if (stages < 2)
		return json_fail(
			at, err,
			"\"auto\" makes a stage for each of ipu.auto_select_ipus, of which "
			"there is %" PRId64 ": give 2 or more, or set pipeline to null",
			stages);
	if (!splitter)
		return json_fail(at, err,
				 "\"auto\" needs the simulated IPU; give a list (the stage of each "
				 "layer) or an object (layer: the stage that starts there)");
	return splitter->split(splitter->user, model, (int)stages, stage, err);
}

/* ---- checks for all forms -------------------------------------------------------------------- */

/* Check that each layer depends only on its stage and those before. */
static enum status run_check_stage_dependencies(const struct json_at *at, const struct model *model,
						const int *stage, struct err *err)
{
	for (int i = 0; i < model->layer_count; i++) {
		const struct model_layer *layer = &model->layers[i];

		for (int j = 0; j < layer->input_count; j++) {
			int from = layer->inputs[j];

			if (from != MODEL_INPUT && stage[from] > stage[i])
				return json_fail(
					at, err,
					"layer \"%s\" is in stage %d, but needs \"%s\" of stage "
					"%d: a layer can only depend on its own stage and on those "
					"before",
					layer->name, stage[i], model->layers[from].name,
					stage[from]);
		}
	}
	return ST_OK;
}

/* Check that all calls of a layer are in one stage, because they share its parameters. */
static enum status run_check_stage_calls(const struct json_at *at, const struct model *model,
					 const int *stage, struct err *err)
{
	for (int i = 0; i < model->layer_count; i++) {
		const struct model_layer *layer = &model->layers[i];
		int first;

		if (!model_layer_again(model, layer))
			continue;
		first = model->params[layer->first_param].layer;
		if (stage[i] != stage[first])
			return json_fail(
				at, err,
				"layer \"%s\" is in stage %d, and \"%s\", another call of it, in "
				"stage %d: calls share their weights, so they must be in one stage "
				"(\"auto\" keeps them together)",
				model->layers[first].name, stage[first], layer->name, stage[i]);
	}
	return ST_OK;
}

/* Check that each stage has a layer, and that the last has one that computes: the loss is
 * computed in the stage of the outputs, and pass-through layers alone produce none. */
static enum status run_check_stages_filled(const struct json_at *at, const struct model *model,
					   const int *stage, int stages, struct err *err)
{
	struct str missing = {0};
	enum status status = ST_OK;
	bool computes = false; /* the last stage: a layer does more than pass its input on */

	for (int s = 0; s < stages; s++) {
		int count = 0;

		computes = false;
		for (int i = 0; i < model->layer_count; i++) {
			count += stage[i] == s;
			computes |= stage[i] == s && !model->layers[i].ops->pass_through;
		}
		if (!count)
			str_addf(&missing, "%s%d", missing.length ? ", " : "", s);
	}
	if (missing.failed)
		status = err_nomem(err);
	else if (missing.length)
		status = json_fail(at, err,
				   "no layer is in stage %s: every stage from 0 to %d, the last, "
				   "needs one",
				   str_peek(&missing), stages - 1);
	else if (!computes)
		status = json_fail(at, err,
				   "stage %d, the last, has no layer that computes: give it one "
				   "from stage %d",
				   stages - 1, stages - 2);
	str_free(&missing);
	return status;
}

enum status run_stages(const struct run_file *run, const struct model *model,
		       const struct run_splitter *splitter, int *stage, int *stages,
		       struct err *err)
{
	struct json_at root = json_root(run->path, run->json), pipeline, at;
	enum status status;

	*stages = 1;
	memset(stage, 0, (size_t)model->layer_count * sizeof(*stage));
	if (!run->pipeline.wanted)
		return ST_OK;

	if (!json_child(&root, "pipeline", &pipeline) || !json_child(&pipeline, "stages", &at))
		return json_fail(&root, err, "pipeline.stages: is missing");
	if (run->pipeline.stages_auto)
		status = run_stages_auto(&at, run, model, splitter, stage, err);
	else if (run->pipeline.auto_stages > 0)
		status = err_set(err, ST_INVALID,
				 "%s: pipeline.auto_stages: is of pipeline.stages \"auto\" alone: "
				 "set it to null, or pipeline.stages to \"auto\"",
				 run->path);
	else if (cJSON_IsArray(at.node))
		status = run_stages_list(&at, model, stage, err);
	else if (cJSON_IsObject(at.node))
		status = run_stages_object(&at, model, stage, err);
	else
		status =
			json_fail(&at, err,
				  "must be a list (the stage of each layer), an object (layer: the "
				  "stage that starts there) or \"auto\"");
	if (status != ST_OK)
		return status;

	*stages = run_stages_count(model, stage);
	if (*stages < 2)
		return json_fail(&at, err,
				 "a pipeline needs at least 2 stages; \"pipeline\": null trains "
				 "without one");
	if (run_check_stage_dependencies(&at, model, stage, err) != ST_OK ||
	    run_check_stage_calls(&at, model, stage, err) != ST_OK)
		return err->status;
	return run_check_stages_filled(&at, model, stage, *stages, err);
}
