/*
 * How many steps and executions each mode has, or why they cannot be.
 *
 * Threading: none. Numbers stay within 2^53: the run file's ranges see to it.
 */
#include <inttypes.h>
#include <stdio.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "model/run/run_rules_internal.h"

/* What steps and executions of one mode are made of. */
struct run_span {
	const char *mode;      /* "fit", "evaluate" */
	const char *steps_key; /* "fit.steps_per_epoch" */
	const char *execution_key;
	const char *images;           /* "training images" */
	int64_t items, given, wanted; /* images; batches asked for, 0: all; steps per execution */
	int64_t unit;                 /* an execution is a multiple of so many steps */
};

/* ---- steps ----------------------------------------------------------------------------------- */

/* Batches of a pass over @items. */
static int64_t run_pass_batches(const struct run_file *run, int64_t items)
{
	return items / run->data.batch_size +
	       (!run->data.drop_remainder && items % run->data.batch_size);
}

/* The batches that the set has, or as many as are asked for. */
static enum status run_rule_batches(struct run_rules *rules, const struct run_span *span,
				    int64_t *batches)
{
	int64_t batch = rules->run->data.batch_size;
	char count[FMT_SIZE];

	fmt_count(count, span->items);
	if (!span->items)
		return run__refuse(rules, span->mode, "the data set has no %s", span->images);
	if (batch > span->items && rules->run->data.drop_remainder)
		return run__refuse(rules, "data.batch_size",
				   "%" PRId64 " is beyond the %s %s; give at most %" PRId64 "%s",
				   batch, count, span->images, span->items,
				   rules->run->data.limit ? " or a greater data.limit" : "");

	*batches = span->given ? span->given : run_pass_batches(rules->run, span->items);
	if (!span->given && rules->run->data.drop_remainder && span->items % batch)
		str_addf(&rules->warnings,
			 "%s: %" PRId64 " of the %s %s do not fill a batch of %" PRId64
			 " and are left out of each pass.\n",
			 span->mode, span->items % batch, count, span->images, batch);
	return ST_OK;
}

/* "epoch" without a number of steps: as many of the @steps as whole executions can have. */
static enum status run_rule_round(struct run_rules *rules, const struct run_span *span,
				  int64_t *steps)
{
	int64_t rest = *steps % span->unit;

	if (span->given || span->wanted != RUN_WHOLE_EPOCH || !rest)
		return ST_OK;
	if (rest == *steps)
		return run__refuse(rules, span->execution_key,
				   "\"epoch\" needs at least %" PRId64
				   " steps on each replica; the set has %" PRId64,
				   span->unit, *steps);
	str_addf(&rules->warnings,
		 "%s: the last %" PRId64 " of %" PRId64
		 " steps are left out, so that an execution of the whole epoch is a multiple of "
		 "%" PRId64 ": %" PRId64 " are done.\n",
		 span->mode, rest, *steps, span->unit, *steps - rest);
	*steps -= rest;
	return ST_OK;
}

static enum status run_rule_steps(struct run_rules *rules, const struct run_span *span,
				  int64_t *steps)
{
	int64_t replicas = rules->layout->replicas, batches = 0;
	enum status status = run_rule_batches(rules, span, &batches);

	if (status != ST_OK)
		return status;
	*steps = batches / replicas;
	if (!*steps)
		return run__refuse(rules, span->steps_key,
				   "%" PRId64 " batches leave none for each of %" PRId64
				   " replicas; %" PRId64 " are the least",
				   batches, replicas, replicas);
	if (batches % replicas)
		str_addf(&rules->warnings,
			 "%s: %" PRId64 " of %" PRId64
			 " batches are dropped: they do not divide among %" PRId64 " replicas.\n",
			 span->steps_key, batches % replicas, batches, replicas);
	return run_rule_round(rules, span, steps);
}

/* ---- executions ------------------------------------------------------------------------------ */

/* The divisor of @steps that is a multiple of @unit and nearest to @wanted; 0: none. */
static int64_t run_nearest_divisor(int64_t steps, int64_t unit, int64_t wanted)
{
	int64_t best = 0;

	for (int64_t low = 1; low <= steps / low; low++) {
		const int64_t pair[] = {low, steps / low};

		if (steps % low)
			continue;
		for (size_t i = 0; i < ARRAY_LEN(pair); i++) {
			int64_t distance = pair[i] > wanted ? pair[i] - wanted : wanted - pair[i];
			int64_t least = best > wanted ? best - wanted : wanted - best;

			if (pair[i] % unit == 0 && (!best || distance < least))
				best = pair[i];
		}
	}
	return best;
}

/* "500 would do", or what the number of steps should be. */
static void run_remedy(const struct run_rules *rules, const struct run_span *span, int64_t steps,
		       int64_t execution, char *out, size_t size)
{
	int64_t good = run_nearest_divisor(steps, span->unit, execution);

	if (good) {
		snprintf(out, size, "%" PRId64 " would do", good);
		return;
	}
	good = steps / span->unit * span->unit;
	if (!good)
		good = span->unit;
	snprintf(out, size, "%s %" PRId64 " with %s %" PRId64 " would do", span->steps_key,
		 good * rules->layout->replicas, span->execution_key, good);
}

/* Keras runs, but the host waits for each step: said once, for the first mode it is true of. */
static void run_advise(struct run_rules *rules, const struct run_span *span, int64_t steps,
		       int64_t execution)
{
	if (!rules->run->ipu.wanted || execution != 1 || steps == 1 || rules->advised)
		return;
	rules->advised = true;
	str_addf(&rules->notes,
		 "%s is 1, so the host has a part in every step: a greater one, up to %" PRId64
		 " (\"epoch\"), is faster.\n",
		 span->execution_key, steps);
}

static enum status run_rule_execution(struct run_rules *rules, const struct run_span *span,
				      int64_t steps, int64_t *execution)
{
	char remedy[256];

	*execution = span->wanted == RUN_WHOLE_EPOCH ? steps : span->wanted;
	if (*execution > steps) {
		str_addf(&rules->warnings,
			 "%s: %" PRId64 " is more than the %" PRId64 " steps there are%s: %" PRId64
			 " is used.\n",
			 span->execution_key, *execution, steps,
			 rules->layout->replicas > 1 ? " for each replica" : "", steps);
		*execution = steps;
	}
	run_remedy(rules, span, steps, *execution, remedy, sizeof(remedy));
	if (steps % *execution)
		return run__refuse(rules, span->execution_key,
				   "%" PRId64 " is not a divisor of the %" PRId64 " steps%s; %s",
				   *execution, steps,
				   rules->layout->replicas > 1 ? " of each replica" : "", remedy);
	run_advise(rules, span, steps, *execution);
	return ST_OK;
}

/* ---- training -------------------------------------------------------------------------------- */

/* Keras says so where the batch that the weights see is not the batch of the data. */
static void run_tell_effective_batch(struct run_rules *rules)
{
	const struct run_layout *layout = rules->layout;
	int64_t batch = rules->run->data.batch_size;

	if (layout->accumulation == 1 && layout->replicas == 1)
		return;
	str_addf(&rules->notes,
		 "Training is %sdistributed over replicas; the effective batch size is %" PRId64
		 " (batch %" PRId64 " x %" PRId64 " accumulated x %d replica%s). Weight updates of "
		 "each replica: %" PRId64 " in an execution, %" PRId64 " in an epoch.\n",
		 layout->replicas == 1 ? "not " : "",
		 batch * layout->accumulation * layout->replicas, batch, layout->accumulation,
		 layout->replicas, layout->replicas == 1 ? "" : "s", layout->updates_per_execution,
		 layout->updates_per_execution * layout->executions_per_epoch);
}

enum status run__rule_fit(struct run_rules *rules)
{
	const struct run_file *run = rules->run;
	struct run_layout *layout = rules->layout;
	const struct run_span span = {.mode = "fit",
				      .steps_key = "fit.steps_per_epoch",
				      .execution_key = "compile.steps_per_execution",
				      .images = "training images",
				      .items = rules->train_items,
				      .given = run->fit.steps_per_epoch,
				      .wanted = run->compile.steps_per_execution,
				      .unit = layout->accumulation};
	enum status status;
	char remedy[256];

	if (!run->fit.wanted)
		return ST_OK;
	status = run_rule_steps(rules, &span, &layout->steps_per_epoch);
	if (status == ST_OK)
		status = run_rule_execution(rules, &span, layout->steps_per_epoch,
					    &layout->steps_per_execution);
	if (status != ST_OK)
		return status;

	run_remedy(rules, &span, layout->steps_per_epoch, layout->steps_per_execution, remedy,
		   sizeof(remedy));
	if (layout->steps_per_execution % layout->accumulation)
		return run__refuse(rules, span.execution_key,
				   "%" PRId64 " is not a multiple of "
				   "gradient_accumulation.steps_per_replica %" PRId64 "; %s",
				   layout->steps_per_execution, layout->accumulation, remedy);
	layout->executions_per_epoch = layout->steps_per_epoch / layout->steps_per_execution;
	layout->updates_per_execution = layout->steps_per_execution / layout->accumulation;
	run_tell_effective_batch(rules);
	return ST_OK;
}

/* Without data.repeat, a set must hold all that steps_per_epoch asks for. */
enum status run__rule_repeat(struct run_rules *rules)
{
	const struct run_file *run = rules->run;
	int64_t batches = run->fit.steps_per_epoch * run->fit.epochs;
	int64_t there = run_pass_batches(run, rules->train_items);

	if (run->data.repeat || !run->fit.steps_per_epoch || batches <= there)
		return ST_OK;
	return run__refuse(rules, "data.repeat",
			   "is false, but %" PRId64 " epochs of %" PRId64 " steps need %" PRId64
			   " batches and the set has %" PRId64
			   "; set data.repeat to true, or take fewer steps",
			   run->fit.epochs, run->fit.steps_per_epoch, batches, there);
}

/* ---- evaluation and prediction --------------------------------------------------------------- */

/* Without backward passes the depth of a pipeline is the execution. */
static enum status run_rule_depth(struct run_rules *rules, const struct run_span *span,
				  int64_t steps, int64_t execution)
{
	const struct run_file *run = rules->run;
	const struct run_layout *layout = rules->layout;
	const struct ipu_schedule_params params = {
		.kind = run->pipeline.wanted ? run->pipeline.schedule : IPU_SEQUENTIAL,
		.stages = layout->stages,
		.microbatches = (int)execution,
		.ipus = layout->ipus_used,
		.device = layout->device};
	int64_t good = steps / span->unit * span->unit;
	enum status status;
	struct err why;

	status = ipu_schedule_check(&params, span->execution_key, &why);
	if (status == ST_OK)
		return ST_OK;
	if (!good)
		good = span->unit;
	if (status != ST_INVALID)
		return err_set(rules->err, status, "%s: %s%s", run->path,
			       run->pipeline.wanted ? "pipeline.schedule: " : "", why.text);
	return run__refuse(rules, "pipeline.schedule",
			   "%s; %s %" PRId64 " with %s %" PRId64 " would do", why.text,
			   span->steps_key, good * layout->replicas, span->execution_key, good);
}

/* The least depth without backward passes, of which others are multiples. Stages that share an IPU
 * leave Interleaved fewer lines of micro-batches. */
static int64_t run_least_depth(const struct run_rules *rules)
{
	const struct run_file *run = rules->run;
	const struct run_layout *layout = rules->layout;
	const struct ipu_schedule_params params = {.kind = run->pipeline.schedule,
						   .stages = layout->stages,
						   .ipus = layout->ipus_used,
						   .device = layout->device};
	const int multiple = run->pipeline.wanted ? ipu_schedule_multiple(&params) : 1;

	return multiple > 0 ? multiple : layout->stages;
}

/* Without data.repeat a set must hold what is asked of it. */
static enum status run_rule_enough(struct run_rules *rules, const struct run_span *span)
{
	int64_t there = run_pass_batches(rules->run, span->items);

	if (rules->run->data.repeat || span->given <= there)
		return ST_OK;
	return run__refuse(rules, "data.repeat",
			   "is false, but %s %" PRId64 " is more than the %" PRId64
			   " batches of the set; set data.repeat to true, or take fewer steps",
			   span->steps_key, span->given, there);
}

/* A mode without backward passes; @span lacks what both have in common. */
static enum status run_rule_forward(struct run_rules *rules, struct run_span *span, int64_t *steps,
				    int64_t *execution)
{
	const struct run_file *run = rules->run;
	enum status status;

	span->images = "test images";
	span->items = rules->test_items;
	span->unit = run_least_depth(rules);
	if (!span->wanted)
		span->wanted = run->compile.steps_per_execution;

	status = run_rule_steps(rules, span, steps);
	if (status == ST_OK)
		status = run_rule_enough(rules, span);
	if (status == ST_OK)
		status = run_rule_execution(rules, span, *steps, execution);
	if (status == ST_OK)
		status = run_rule_depth(rules, span, *steps, *execution);
	return status;
}

/* The validation of an epoch is the evaluation at its end. */
enum status run__rule_evaluate(struct run_rules *rules)
{
	const struct run_file *run = rules->run;
	struct run_layout *layout = rules->layout;
	struct run_span span = {.mode = run->evaluate.wanted ? "evaluate" : "fit.validation",
				.steps_key = "evaluate.steps",
				.execution_key = "evaluate.steps_per_execution",
				.given = run->evaluate.steps,
				.wanted = run->evaluate.steps_per_execution};

	if (!run->evaluate.wanted && !(run->fit.wanted && run->fit.validation))
		return ST_OK;
	return run_rule_forward(rules, &span, &layout->evaluate_steps,
				&layout->evaluate_steps_per_execution);
}

enum status run__rule_predict(struct run_rules *rules)
{
	const struct run_file *run = rules->run;
	struct run_layout *layout = rules->layout;
	struct run_span span = {.mode = "predict",
				.steps_key = "predict.steps",
				.execution_key = "predict.steps_per_execution",
				.given = run->predict.steps,
				.wanted = run->predict.steps_per_execution};

	if (!run->predict.wanted)
		return ST_OK;
	return run_rule_forward(rules, &span, &layout->predict_steps,
				&layout->predict_steps_per_execution);
}
