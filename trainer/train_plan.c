/*
 * What planning needs from the trainer. No state.
 */
#include "trainer/train_job.h"

#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "trainer/data/dataset_feed.h"
#include "trainer/train_tensors.h"

/* How long batches are prepared to measure the time of one. */
#define INPUT_NS UINT64_C(200000000)

struct run_data train_data_of(const struct dataset *train, const struct dataset *test)
{
	struct run_data data = {
		.train_items = train->count,
		.test_items = test->count,
		.item = {.ndim = train->ndim},
		.train = dataset_targets(train),
		.test = dataset_targets(test),
	};

	memcpy(data.item.dim, train->shape, sizeof(train->shape));
	return data;
}

_Static_assert((int)RUN_SCALE_NONE == (int)DATASET_SCALE_NONE &&
		       (int)RUN_SCALE_MINMAX == (int)DATASET_SCALE_MINMAX &&
		       (int)RUN_SCALE_STANDARD == (int)DATASET_SCALE_STANDARD,
	       "scales of run files and of tables are the same");
_Static_assert((int)RUN_TOKENS_CHARACTERS == (int)DATASET_CHARACTERS &&
		       (int)RUN_TOKENS_BYTES == (int)DATASET_BYTES &&
		       (int)RUN_TOKENS_WORDS == (int)DATASET_WORDS,
	       "tokens of run files and of texts are the same");

struct dataset_params train_data_params(const struct run_file *run)
{
	const struct run_texts *one_hot = &run->data.one_hot;
	struct dataset_params params = {
		.name = run->data.name,
		.path = run->data.path,
		.limit = run->data.limit,
		.one_hot = one_hot->given && !one_hot->count,
		.coarse = run->data.label_mode == RUN_LABELS_COARSE,
		.pictures = run->infeed.dtype == RUN_UINT8,
		.table = {.columns = run->data.columns.items,
			  .column_count = run->data.columns.count,
			  .target = run->data.target,
			  .weight = run->data.weight,
			  .scale = (enum dataset_scale)run->data.scale},
		.texts = {.tokens = (enum dataset_tokens)run->data.tokens,
			  .sequence_length = run->data.sequence_length,
			  .vocabulary_size = run->data.vocabulary_size},
		.inputs = run->data.inputs.items,
		.input_count = run->data.inputs.count,
		.outputs = run->data.outputs.items,
		.output_count = run->data.outputs.count,
		.images = {.gray = run->data.color_mode == RUN_COLOR_GRAYSCALE},
		.threads = (unsigned)run->host.threads,
		.cache_bytes = run->data.cache_bytes,
		.validation_split = run->data.validation_split,
		.no_train = !run->fit.wanted,
		.no_test_targets = !run->evaluate.wanted && !run->fit.validation,
		.resize = {run->data.resize[0], run->data.resize[1]},
	};

	for (int i = 0; i < params.output_count && i < TARGET_PARTS; i++)
		for (int k = 0; k < one_hot->count; k++)
			params.one_hot_parts[i] = params.one_hot_parts[i] ||
						  !strcmp(params.outputs[i], one_hot->items[k]);
	/* One-hot vectors cannot represent a number that is no class. */
	for (int i = 0; !params.one_hot && i <= params.output_count && i < TARGET_PARTS; i++)
		if (!params.one_hot_parts[i])
			params.ignored[i].any = run_ignored(run, i, &params.ignored[i].number);
	return params;
}

static enum status describe(struct run_data *out, const struct run_file *run, struct err *err)
{
	const struct dataset_params params = train_data_params(run);
	struct dataset train, test;
	struct callbacks callbacks = {0};
	enum status status = callbacks_load(&callbacks, run, err);

	callbacks_fini(&callbacks);
	if (status != ST_OK || dataset_describe(&train, &test, &params, err) != ST_OK)
		return err->status;
	*out = train_data_of(&train, &test);
	dataset_close(&train);
	dataset_close(&test);
	return ST_OK;
}

/* Plan the tensors with a session that has only the members that this needs. */
static enum status forecast_report(double *bytes, const struct plan_run *plan, struct err *err)
{
	struct train_session session = {.plan = plan,
					.run = plan->run,
					.layout = plan->layout,
					.model = plan->model,
					.replicas = plan->layout->replicas};
	struct train_tensors_forecast forecast;
	enum status status;

	if (arena_init(&session.arena, 0) != 0)
		return err_nomem(err);
	session.optimizer = plan->optimizer;
	status = train_tensors_plan(&session, true, err);
	if (status == ST_OK) {
		const double budget = (double)train_tensors_budget(&session, NULL);

		train_tensors_forecast(&forecast, &session);
		*bytes = forecast.bytes < budget ? forecast.bytes : budget;
	}
	train_tensors_fini(&session.tensors);
	arena_fini(&session.arena);
	return status;
}

/* Prepare one batch after another for INPUT_NS, as the run would, without a feed thread. */
static void prepare(double *us, struct dataset_feed *feed, float *inputs)
{
	const uint64_t begin = clock_ns();
	struct targets targets;
	int64_t steps = 0;

	do {
		dataset_feed_inputs(feed, 0, steps, inputs);
		dataset_feed_targets(feed, 0, steps, &targets);
		steps++;
	} while (clock_ns() - begin < INPUT_NS);
	*us = (double)(clock_ns() - begin) / 1e3 / (double)steps;
}

static enum status measure_input(double *us, const struct run_file *run, struct err *err)
{
	const struct dataset_params params = train_data_params(run);
	struct dataset train, test;
	struct dataset_feed_params feed_params = {.set = &train,
						  .batch = run->data.batch_size,
						  .replicas = 1,
						  .shuffle = run->data.shuffle,
						  .seed = run->fit.seed,
						  .threads = (unsigned)run->host.threads};
	struct dataset_feed *feed = NULL;
	float *inputs = NULL;

	if (dataset_open(&train, &test, &params, err) != ST_OK)
		return err->status;
	if (train.count < run->data.batch_size)
		err_set(err, ST_INVALID,
			"--measure-input: the %lld training items do not fill a batch",
			(long long)train.count);
	else if (dataset_feed_new(&feed, &feed_params, err) == ST_OK)
		inputs = mem_calloc((size_t)run->data.batch_size,
				    dataset_item_floats(&train) * sizeof(*inputs));
	if (inputs)
		prepare(us, feed, inputs);
	else if (!err_stuck(err))
		err_nomem(err);
	mem_free(inputs);
	dataset_feed_free(feed);
	dataset_close(&train);
	dataset_close(&test);
	return err->status;
}

const struct plan_trainer train_plan = {.checks = &train_run_checks,
					.describe = describe,
					.looking = forecast_report,
					.measure_input = measure_input};
