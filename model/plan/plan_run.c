/*
 * Planning a run file: model, layout, compile section, schedules, device, bubbles.
 *
 * Threading: none. Ownership: the plan owns everything.
 */
#include "model/plan/plan_run.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "model/run/run_queues.h"

/* ---- model and layout ------------------------------------------------------------------------ */

/* Match arrays to inputs by name, because shapes may fit even in a wrong order. */
static enum status check_inputs(const struct plan_run *plan, struct err *err)
{
	const struct run_texts *named = &plan->run->data.inputs;
	const struct model *model = plan->model;

	if (!named->count)
		return ST_OK;
	if (named->count != model->part_count)
		return err_set(err, ST_INVALID,
			       "%s: data.inputs: has %d names, the model %d inputs",
			       plan->run->path, named->count, max(model->part_count, 1));
	for (int i = 0; i < named->count; i++)
		if (strcmp(named->items[i], model->parts[i].name) != 0)
			return err_set(
				err, ST_INVALID,
				"%s: data.inputs[%d]: is \"%s\", but input %d of the model is "
				"\"%s\"",
				plan->run->path, i, named->items[i], i, model->parts[i].name);
	return ST_OK;
}

/* @item: the shape of the data's items; NULL: the model must state it. */
static enum status read_model(struct model **out, const struct run_file *run,
			      const struct model_shape *item, struct err *err)
{
	struct json_at root, at;

	return run_model_at(&root, &at, run, err) == ST_OK ? model_new(out, &at, item, err)
							   : err->status;
}

enum status plan_run_data(struct run_data *out, const struct run_file *run, struct err *err)
{
	const int64_t batch = run->data.batch_size;
	const struct {
		const char *key;
		bool wanted;
		int64_t steps;
	} rows[] = {
		{"fit.steps_per_epoch", run->fit.wanted, run->fit.steps_per_epoch},
		{"evaluate.steps", run->evaluate.wanted || (run->fit.wanted && run->fit.validation),
		 run->evaluate.steps},
		{"predict.steps", run->predict.wanted, run->predict.steps},
	};
	struct model *model = NULL;
	struct err own;

	*out = (struct run_data){0};
	err = err_start(err, &own);
	for (size_t i = 0; i < ARRAY_LEN(rows) && !err_stuck(err); i++)
		if (rows[i].wanted && rows[i].steps == 0)
			err_set(err, ST_INVALID,
				"%s: data.path: is missing, so that nobody knows how many items "
				"there are: %s says how many batches are planned",
				run->path, rows[i].key);
	if (!err_stuck(err))
		read_model(&model, run, NULL, err);
	if (!err_stuck(err))
		run_targets(&out->train, run, "compile", model, err);
	if (!err_stuck(err))
		run_targets(&out->test, run, "evaluate", model, err);
	if (!err_stuck(err)) {
		out->item = model->input;
		out->train_items = rows[0].steps * batch;
		out->test_items = max(rows[1].steps, rows[2].steps) * batch;
	}
	model_free(model);
	return err->status;
}

struct splitting {
	struct plan_run *plan;
	const struct run_data *data;
	struct partitioner *partitioner; /* NULL: not needed yet */
};

static enum status split_best(void *user, const struct model *model, int stages, int *stage,
			      struct err *err)
{
	struct splitting *splitting = user;
	const struct plan_run *plan = splitting->plan;
	enum status status = ST_OK;

	if (!splitting->partitioner)
		status = partitioner_new(&splitting->partitioner, plan->run, splitting->data,
					 plan->like, err);
	if (status != ST_OK)
		return status;
	return partition_best(&splitting->plan->best, splitting->partitioner, model, stages, stage,
			      err);
}

/* Find the best split for comparison, before run_layout_new() sorts the layers by stage. */
static enum status find_best_split(struct splitting *splitting, struct err *err)
{
	const struct plan_run *plan = splitting->plan;
	int *stage = mem_calloc((size_t)plan->model->layer_count, sizeof(*stage));
	int stages;
	enum status status;

	if (!stage)
		return err_nomem(err);
	status = run_stages(plan->run, plan->model, NULL, stage, &stages, err);
	mem_free(stage);
	if (status == ST_OK)
		status = split_best(splitting, plan->model, stages, NULL, NULL);
	/* The comparison is optional, so only lack of memory is an error. */
	return status == ST_NOMEM ? err_nomem(err) : ST_OK;
}

static enum status create_layout(struct splitting *splitting, bool beside, struct err *err)
{
	struct plan_run *plan = splitting->plan;
	const struct run_splitter splitter = {.split = split_best, .user = splitting};
	const bool compare = beside && plan->run->pipeline.wanted && plan->run->ipu.wanted;
	enum status status = ST_OK;

	if (compare && !plan->run->pipeline.stages_auto)
		status = find_best_split(splitting, err);
	if (status == ST_OK)
		status = run_layout_new(&plan->layout, plan->run, plan->model,
					splitting->data->train_items, splitting->data->test_items,
					&splitter, err);
	if (status == ST_OK && compare && splitting->partitioner)
		status = partition_given(&plan->split, splitting->partitioner, plan->model,
					 plan->layout->stages, plan->layout->stage, err);
	return status;
}

/* ---- the compile section --------------------------------------------------------------------- */

static enum status read_measure(struct plan_run *plan, enum run_mode mode,
				const struct target_kind *kind, struct err *err)
{
	struct plan_program *out = &plan->program[mode];

	out->measured = true;
	return run_measure(&out->losses, &out->metrics, plan->run,
			   mode == RUN_TRAIN ? "compile" : "evaluate", plan->model, kind, err);
}

static enum status read_compile(struct plan_run *plan, const struct run_data *data, struct err *err)
{
	struct plan_program *evaluate = &plan->program[RUN_EVALUATE];
	enum status status = run_optimizer(&plan->optimizer, plan->run, err);

	if (status == ST_OK && plan->layout->steps_per_epoch > 0)
		status = read_measure(plan, RUN_TRAIN, &data->train, err);
	if (status != ST_OK || plan->layout->evaluate_steps == 0)
		return status;
	status = read_measure(plan, RUN_EVALUATE, &data->test, err);
	/* An evaluation's last stage keeps no logits, so the loss reads the outputs. */
	if (status == ST_OK && loss_takes_logits(&evaluate->losses.items[0].loss, plan->model))
		evaluate->losses.items[0].loss.from_logits = false;
	return status;
}

/* Report invalid queues before anything is planned for them. */
static enum status check_queues(const struct plan_run *plan, struct err *err)
{
	struct run_queues queues;
	struct arena arena;
	enum status status;

	if (plan->layout->steps_per_epoch == 0)
		return ST_OK;
	if (arena_init(&arena, 0) != 0)
		return err_nomem(err);
	status = run_queues_plan(&queues, &arena, plan->run, plan->model, plan->layout, err);
	if (status == ST_OK)
		status = run_queues_check(&queues, plan->run, plan->model, err);
	arena_fini(&arena);
	return status;
}

enum status plan_run_build(struct plan_run *plan, const struct run_data *data, bool compare,
			   struct err *err)
{
	struct splitting splitting = {.plan = plan, .data = data};
	enum status status = read_model(&plan->model, plan->run, &data->item, err);

	if (status == ST_OK)
		status = check_inputs(plan, err);
	if (status == ST_OK)
		model_set_policy(plan->model, run_policy(plan->run));
	if (status == ST_OK)
		status = create_layout(&splitting, compare, err);
	if (status == ST_OK)
		status = read_compile(plan, data, err);
	if (status == ST_OK)
		status = check_queues(plan, err);
	partitioner_free(splitting.partitioner);
	return status;
}

/* @steps: per execution; 0: the run does not have @mode. */
static enum status new_schedule(struct plan_run *plan, enum run_mode mode, int64_t steps,
				struct err *err)
{
	const struct run_layout *layout = plan->layout;
	const struct ipu_schedule_params params = {
		.kind = plan->run->pipeline.wanted ? plan->run->pipeline.schedule : IPU_SEQUENTIAL,
		.stages = layout->stages,
		.microbatches = (int)(mode == RUN_TRAIN ? layout->accumulation : steps),
		.training = mode == RUN_TRAIN,
		.ipus = layout->ipus_used,
		.device = layout->device,
	};

	plan->program[mode].steps_per_execution = steps;
	if (steps == 0)
		return ST_OK;
	return ipu_schedule_new(&plan->program[mode].schedule, &params, err);
}

static enum status new_device(struct plan_run *plan, const struct run_data *data, struct err *err)
{
	const struct ipu_schedule *schedules[RUN_MODES];
	const bool training = plan->layout->steps_per_epoch > 0;
	const bool measured = training || plan->layout->evaluate_steps > 0;
	const struct plan_program *program = &plan->program[training ? RUN_TRAIN : RUN_EVALUATE];
	struct lower_request lowered = {.run = plan->run,
					.layout = plan->layout,
					.model = plan->model,
					.optimizer = &plan->optimizer,
					.like = plan->like};

	if (!plan->run->ipu.wanted)
		return ST_OK;
	if (measured) {
		lowered.losses = &program->losses;
		lowered.metrics = &program->metrics;
		lowered.targets = training ? data->train : data->test;
		lowered.targets.weights =
			run_row_weights(plan->run, &lowered.targets, plan->model, training);
	}
	for (int mode = 0; mode < RUN_MODES; mode++)
		schedules[mode] = plan->program[mode].schedule;
	return plan_device_new(&plan->device, &lowered, schedules, err);
}

/* ---- bubbles --------------------------------------------------------------------------------- */

/* Write the mean times of each stage's forward, backward and W to @times, one list after
 * another: the input of the theory. If the schedule does not split, W counts to its B. */
static void mean_times(const struct ipu_schedule *schedule, const struct ipu_interval *intervals,
		       int count, double *times)
{
	const int stages = schedule->stages;

	for (int s = 0; s < stages; s++) {
		double sum[3] = {0, 0, 0};
		int64_t n[3] = {0, 0, 0};

		for (int i = 0; i < count; i++) {
			const bool weight = intervals[i].phase == IPU_PHASE_W;
			const int part = intervals[i].phase == IPU_PHASE_F ? 0
					 : weight && schedule->splits      ? 2
									   : 1;

			if (intervals[i].stage != s)
				continue;
			sum[part] += (double)intervals[i].dur_ns;
			n[part] += part == 2 || !weight;
		}
		for (int part = 0; part < 3; part++)
			times[part * stages + s] = n[part] > 0 ? sum[part] / (double)n[part] : 0;
	}
}

enum status plan_bubble_measure(struct plan_bubble *out, const struct ipu_schedule *schedule,
				const struct ipu_interval *intervals, int count, bool device)
{
	const int stages = schedule->stages;
	double *times = mem_calloc((size_t)stages * 3, sizeof(*times));
	const struct ipu_schedule_costs costs = {.forward = times,
						 .backward = times + stages,
						 .weight = times + 2 * (size_t)stages,
						 .lockstep = device &&
							     ipu_schedule_lockstep(schedule->kind)};
	enum status status;

	if (!times)
		return ST_NOMEM;
	mean_times(schedule, intervals, count, times);
	status = (costs.lockstep ? ipu_bubble_measure_lockstep : ipu_bubble_measure)(
		intervals, count, schedule->ipus, stages, &out->measured, NULL);
	if (status == ST_OK)
		status = ipu_bubble_theory(schedule, &costs, &out->theory, NULL);
	/* One stage is not a pipeline: waiting is no bubble. */
	if (stages == 1)
		out->measured.idle_fraction = out->measured.bubble_rate =
			out->measured.bubble_over_ideal = NAN;
	mem_free(times);
	return status;
}

static enum status measure_bubble(const struct plan_run *plan, struct plan_program *program,
				  const struct ipu_timeline *timeline)
{
	struct ipu_interval *intervals =
		mem_calloc((size_t)timeline->count + 1, sizeof(*intervals));
	int count;
	enum status status;

	if (!intervals)
		return ST_NOMEM;
	count = ipu_timeline_intervals(timeline, &plan->device->target, intervals);
	status = plan_bubble_measure(&program->bubble, program->schedule, intervals, count, true);
	mem_free(intervals);
	return status;
}

enum status plan_run_compile(struct plan_run *plan, const struct run_data *data, struct err *err)
{
	const struct run_layout *layout = plan->layout;
	enum status status = new_schedule(plan, RUN_TRAIN, layout->steps_per_execution, err);

	if (status == ST_OK)
		status =
			new_schedule(plan, RUN_EVALUATE, layout->evaluate_steps_per_execution, err);
	if (status == ST_OK)
		status = new_schedule(plan, RUN_PREDICT, layout->predict_steps_per_execution, err);
	if (status == ST_OK)
		status = new_device(plan, data, err);
	for (int mode = 0; mode < RUN_MODES && status == ST_OK && plan->device; mode++)
		if (plan->device->timeline[mode] &&
		    measure_bubble(plan, &plan->program[mode], plan->device->timeline[mode]) !=
			    ST_OK)
			status = err_nomem(err);
	return status;
}

void plan_run_fini(struct plan_run *plan)
{
	for (int mode = 0; mode < RUN_MODES; mode++) {
		ipu_schedule_free(plan->program[mode].schedule);
		metric_list_free(&plan->program[mode].metrics);
	}
	plan_device_free(plan->device);
	partition_split_free(plan->best);
	partition_split_free(plan->split);
	run_layout_free(plan->layout);
	model_free(plan->model);
	run_file_free(plan->run);
}
