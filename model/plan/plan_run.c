/*
 * Planning a run file: model, layout, compile section, schedules, device, bubbles.
 *
 * Failures are sticky: the steps of planning do nothing once @err, which is not NULL, holds one.
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
static void check_inputs(const struct plan_run *plan, struct err *err)
{
	const struct run_texts *named = &plan->run->data.inputs;
	const struct model *model = plan->model;

	if (err_stuck(err) || !named->count)
		return;
	if (named->count != model->part_count)
		err_set(err, ST_INVALID, "%s: data.inputs: has %d names, the model %d inputs",
			plan->run->path, named->count, max(model->part_count, 1));
	for (int i = 0; i < named->count && !err_stuck(err); i++)
		if (strcmp(named->items[i], model->parts[i].name) != 0)
			err_set(err, ST_INVALID,
				"%s: data.inputs[%d]: is \"%s\", but input %d of the model is "
				"\"%s\"",
				plan->run->path, i, named->items[i], i, model->parts[i].name);
}

/* @item: the shape of the data's items; NULL: the model must state it. */
static void read_model(struct model **out, const struct run_file *run,
		       const struct model_shape *item, struct err *err)
{
	struct json_at root, at;

	if (!err_stuck(err) && run_model_at(&root, &at, run, err) == ST_OK)
		model_new(out, &at, item, err);
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
	read_model(&model, run, NULL, err);
	if (!err_stuck(err) && run_targets(&out->train, run, "compile", model, err) == ST_OK &&
	    run_targets(&out->test, run, "evaluate", model, err) == ST_OK) {
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

	if (!splitting->partitioner && partitioner_new(&splitting->partitioner, plan->run,
						       splitting->data, plan->like, err) != ST_OK)
		return err->status;
	return partition_best(&splitting->plan->best, splitting->partitioner, model, stages, stage,
			      err);
}

/* Find the best split for comparison, before run_layout_new() sorts the layers by stage. */
static void find_best_split(struct splitting *splitting, struct err *err)
{
	const struct plan_run *plan = splitting->plan;
	int *stage = mem_calloc((size_t)plan->model->layer_count, sizeof(*stage));
	struct err why = {ST_OK, ""};
	enum status status;
	int stages;

	status = stage ? run_stages(plan->run, plan->model, NULL, stage, &stages, &why) : ST_NOMEM;
	mem_free(stage);
	if (status == ST_OK)
		status = split_best(splitting, plan->model, stages, NULL, &why);
	/* The comparison is optional, so only lack of memory is an error. */
	if (status == ST_NOMEM)
		err_nomem(err);
}

static void create_layout(struct splitting *splitting, bool beside, struct err *err)
{
	struct plan_run *plan = splitting->plan;
	const struct run_splitter splitter = {.split = split_best, .user = splitting};
	const bool compare = beside && plan->run->pipeline.wanted && plan->run->ipu.wanted;

	if (err_stuck(err))
		return;
	if (compare && !plan->run->pipeline.stages_auto)
		find_best_split(splitting, err);
	if (err_stuck(err) ||
	    run_layout_new(&plan->layout, plan->run, plan->model, splitting->data->train_items,
			   splitting->data->test_items, &splitter, err) != ST_OK)
		return;
	if (compare && splitting->partitioner)
		partition_given(&plan->split, splitting->partitioner, plan->model,
				plan->layout->stages, plan->layout->stage, err);
}

/* ---- the compile section --------------------------------------------------------------------- */

/* @steps: 0: the run does not have @mode. */
static void read_measure(struct plan_run *plan, enum run_mode mode, int64_t steps,
			 const struct target_kind *kind, struct err *err)
{
	struct plan_program *out = &plan->program[mode];

	if (err_stuck(err) || steps == 0)
		return;
	out->measured = true;
	run_measure(&out->losses, &out->metrics, plan->run,
		    mode == RUN_TRAIN ? "compile" : "evaluate", plan->model, kind, err);
	/* An evaluation's last stage keeps no logits, so the loss reads the outputs. */
	if (!err_stuck(err) && mode == RUN_EVALUATE &&
	    loss_takes_logits(&out->losses.items[0].loss, plan->model))
		out->losses.items[0].loss.from_logits = false;
}

/* Report invalid queues before anything is planned for them. */
static void check_queues(const struct plan_run *plan, struct err *err)
{
	struct run_queues queues;
	struct arena arena;

	if (err_stuck(err) || plan->layout->steps_per_epoch == 0)
		return;
	if (arena_init(&arena, 0) != 0) {
		err_nomem(err);
		return;
	}
	if (run_queues_plan(&queues, &arena, plan->run, plan->model, plan->layout, err) == ST_OK)
		run_queues_check(&queues, plan->run, plan->model, err);
	arena_fini(&arena);
}

enum status plan_run_build(struct plan_run *plan, const struct run_data *data, bool compare,
			   struct err *err)
{
	struct splitting splitting = {.plan = plan, .data = data};
	struct err own;

	err = err_start(err, &own);
	read_model(&plan->model, plan->run, &data->item, err);
	check_inputs(plan, err);
	if (!err_stuck(err))
		model_set_policy(plan->model, run_policy(plan->run));
	create_layout(&splitting, compare, err);
	if (!err_stuck(err) && run_optimizer(&plan->optimizer, plan->run, err) == ST_OK) {
		read_measure(plan, RUN_TRAIN, plan->layout->steps_per_epoch, &data->train, err);
		read_measure(plan, RUN_EVALUATE, plan->layout->evaluate_steps, &data->test, err);
	}
	check_queues(plan, err);
	partitioner_free(splitting.partitioner);
	return err->status;
}

/* @steps: per execution; 0: the run does not have @mode. */
static void new_schedule(struct plan_run *plan, enum run_mode mode, int64_t steps, struct err *err)
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
	if (!err_stuck(err) && steps > 0)
		ipu_schedule_new(&plan->program[mode].schedule, &params, err);
}

static void new_device(struct plan_run *plan, const struct run_data *data, struct err *err)
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

	if (err_stuck(err) || !plan->run->ipu.wanted)
		return;
	if (measured) {
		lowered.losses = &program->losses;
		lowered.metrics = &program->metrics;
		lowered.targets = training ? data->train : data->test;
		lowered.targets.weights =
			run_row_weights(plan->run, &lowered.targets, plan->model, training);
	}
	for (int mode = 0; mode < RUN_MODES; mode++)
		schedules[mode] = plan->program[mode].schedule;
	plan_device_new(&plan->device, &lowered, schedules, err);
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
	struct err own;

	err = err_start(err, &own);
	new_schedule(plan, RUN_TRAIN, layout->steps_per_execution, err);
	new_schedule(plan, RUN_EVALUATE, layout->evaluate_steps_per_execution, err);
	new_schedule(plan, RUN_PREDICT, layout->predict_steps_per_execution, err);
	new_device(plan, data, err);
	for (int mode = 0; mode < RUN_MODES && plan->device && !err_stuck(err); mode++)
		if (plan->device->timeline[mode] &&
		    measure_bubble(plan, &plan->program[mode], plan->device->timeline[mode]) !=
			    ST_OK)
			err_nomem(err);
	return err->status;
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
