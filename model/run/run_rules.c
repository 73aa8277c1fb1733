/*
 * Keras for IPU's rules: what a run trains in which stages, or why it cannot be. IPUs are
 * run_ipus.c's, steps and executions run_steps.c's.
 *
 * Threading: none. Every failed rule names the key at fault and what would work.
 */
#include "model/run/run_rules.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "model/run/run_rules_internal.h"

enum status run__refuse(const struct run_rules *rules, const char *key, const char *format, ...)
{
	char text[ERR_TEXT_SIZE];
	va_list args;

	va_start(args, format);
	if (vsnprintf(text, sizeof(text), format, args) < 0)
		str_copy(text, sizeof(text), status_text(ST_INVALID));
	va_end(args);
	return err_set(rules->err, ST_INVALID, "%s: %s: %s", rules->run->path, key, text);
}

/* ---- the pipeline ---------------------------------------------------------------------------- */

static enum status run_rule_pipeline(struct run_rules *rules)
{
	const struct run_file *run = rules->run;
	struct run_layout *layout = rules->layout;
	struct ipu_schedule_params params = {.kind = run->pipeline.wanted ? run->pipeline.schedule
									  : IPU_SEQUENTIAL,
					     .stages = layout->stages,
					     .training = true,
					     .ipus = layout->ipus_used,
					     .device = layout->device};
	enum status status;

	layout->accumulation = run->accumulation.wanted ? run->accumulation.steps_per_replica : 1;
	if (!run->fit.wanted)
		return ST_OK;
	if (run->pipeline.wanted && !run->accumulation.wanted)
		return ipu_schedule_lockstep(params.kind)
			       ? run__refuse(rules, "pipeline",
					     "training needs "
					     "gradient_accumulation.steps_per_replica (Grouped: "
					     "a multiple of %d, Interleaved: of %d)",
					     2 * layout->stages, layout->stages)
			       : run__refuse(rules, "pipeline",
					     "training needs "
					     "gradient_accumulation.steps_per_replica (%s: a "
					     "multiple of %d; the more, the smaller the bubble)",
					     ipu_schedule_name(params.kind),
					     ipu_schedule_multiple(&params));

	params.microbatches = (int)layout->accumulation;
	status = ipu_schedule_check(&params, "gradient_accumulation.steps_per_replica", rules->err);
	if (status != ST_OK && rules->err)
		err_prefix(rules->err, run->pipeline.wanted ? "%s: pipeline.schedule" : "%s",
			   run->path);
	return status;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* An input layer may say how great a micro-batch is. */
static enum status run_rule_batch(struct run_rules *rules)
{
	int64_t batch = rules->run->data.batch_size, wanted = rules->model->batch;

	if (!wanted || wanted == batch)
		return ST_OK;
	return run__refuse(rules, "data.batch_size",
			   "%" PRId64 ", but the model's input layer asks for batches of %" PRId64,
			   batch, wanted);
}

/* A compiled program has batches of one size, as has a model that says so; accumulated gradients
 * are of equal weight. */
static enum status run_rule_remainder(struct run_rules *rules)
{
	const struct run_file *run = rules->run;

	if (run->data.drop_remainder)
		return ST_OK;
	if (rules->model->batch)
		return run__refuse(rules, "data.drop_remainder",
				   "is false, but the model's input layer asks for batches of "
				   "%" PRId64 "; leave it true",
				   rules->model->batch);
	if (!run->ipu.wanted && !run->accumulation.wanted)
		return ST_OK;
	return run__refuse(rules, "data.drop_remainder", "is false, but %s; leave it true, or %s",
			   run->ipu.wanted ? "every batch on an IPU is a whole one"
					   : "gradients of a short batch cannot be accumulated",
			   run->ipu.wanted ? "train on the CPU alone (\"ipu\": null)"
					   : "set gradient_accumulation to null");
}

/* A run that trains nothing must do something else. */
static enum status run_rule_work(struct run_rules *rules)
{
	const struct run_file *run = rules->run;

	if (run->fit.wanted || run->evaluate.wanted || run->predict.wanted)
		return ST_OK;
	return run__refuse(rules, "fit", "is null, and so are evaluate and predict: give one");
}

static int run_compare_stages(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return SORTED_ORDER(*x, *y);
}

/* The stage of each layer, and the layers stage after stage. */
static enum status run_rule_stages(struct run_rules *rules)
{
	struct run_layout *layout = rules->layout;
	struct model *model = rules->model;
	enum status status = run_stages(rules->run, model, rules->splitter, layout->stage,
					&layout->stages, rules->err);

	if (status == ST_OK)
		status = model_order(model, layout->stage, rules->err);
	if (status == ST_OK)
		qsort(layout->stage, (size_t)model->layer_count, sizeof(*layout->stage),
		      run_compare_stages);
	return status;
}

static enum status run_rules_apply(struct run_rules *rules)
{
	static enum status (*const table[])(struct run_rules *) = {
		run_rule_stages,     run_rule_work,      run_rule_batch,     run_rule_remainder,
		run__rule_mapping,   run__rule_ipus,     run__rule_io_tiles, run_rule_pipeline,
		run__rule_recompute, run__rule_moving,   run__rule_plans,    run__rule_fit,
		run__rule_repeat,    run__rule_evaluate, run__rule_predict,
	};
	enum status status = ST_OK;

	for (size_t i = 0; i < ARRAY_LEN(table) && status == ST_OK; i++)
		status = table[i](rules);
	if (status == ST_OK && (rules->warnings.failed || rules->notes.failed))
		status = err_nomem(rules->err);
	return status;
}

enum status run_layout_new(struct run_layout **out, const struct run_file *run, struct model *model,
			   int64_t train_items, int64_t test_items,
			   const struct run_splitter *splitter, struct err *err)
{
	struct run_layout *layout = mem_calloc(1, sizeof(*layout));
	struct run_rules rules = {.run = run,
				  .model = model,
				  .train_items = train_items,
				  .test_items = test_items,
				  .splitter = splitter,
				  .layout = layout,
				  .err = err};
	enum status status = ST_OK;

	assert(model->layer_count > 0);
	*out = NULL;
	if (layout)
		layout->stage = mem_calloc((size_t)model->layer_count, sizeof(*layout->stage));
	if (layout)
		layout->device = mem_calloc((size_t)model->layer_count, sizeof(*layout->device));
	if (!layout || !layout->stage || !layout->device)
		status = err_nomem(err);
	else
		status = run_rules_apply(&rules);
	if (status != ST_OK) {
		str_free(&rules.warnings);
		str_free(&rules.notes);
		run_layout_free(layout);
		return status;
	}

	layout->warnings = rules.warnings.text;
	layout->notes = rules.notes.text;
	*out = layout;
	return ST_OK;
}

void run_layout_free(struct run_layout *layout)
{
	if (!layout)
		return;
	mem_free(layout->stage);
	mem_free(layout->device);
	mem_free(layout->warnings);
	mem_free(layout->notes);
	mem_free(layout);
}
