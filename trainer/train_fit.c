/*
 * fit: epochs of executions, with validation, callbacks, health rules and the screen between them;
 * the functions that callbacks use; evaluate; and predict, whose outputs are collected execution by
 * execution and written to an .npz.
 */
#include "trainer/train_fit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/fmt.h"
#include "common/mem.h"
#include "common/npz_writer.h"
#include "trainer/train_outfeed.h"
#include "trainer/train_phase.h"
#include "trainer/train_ranks.h"
#include "trainer/train_record.h"
#include "trainer/train_session.h"

struct fit {
	const struct train_fit_params *params;
	struct train_session *session;
	struct train_phase *phase;
	struct train_async *async; /* NULL: callbacks are called only between executions */
	struct callback_host host;
	struct train_backup backup;
	int64_t done;                 /* executions of the epoch completed before a backup */
	struct train_figures figures; /* of an epoch: training's, then validation's as "val_..." */
	float *weights;               /* rank 0's at the end of the last epoch; NULL on rank 0 */
	int validated;                /* number of figures of validation */
	bool rated;                   /* the last figure is the learning rate */
	struct ips_log *logs;         /* buffer for all of them */
	struct arena arena;
	struct train_result *result;
	struct err *err; /* the first failure: no epoch is trained after it */
};

/* ---- functions for callbacks ----------------------------------------------------------------- */

static const float *host_weights(void *user)
{
	const struct fit *fit = user;

	return fit->weights ? fit->weights : fit->session->replica[0].weights;
}

static void host_set_weights(void *user, const float *weights)
{
	const struct fit *fit = user;

	for (int r = 0; r < fit->session->replicas; r++) {
		memcpy(fit->session->replica[r].weights, weights,
		       fit->session->model->weights * sizeof(*weights));
		train_replica_round(fit->session, &fit->session->replica[r]);
	}
}

static void host_stop(void *user)
{
	const struct fit *fit = user;

	atomic_store(fit->params->stop, true);
}

static void host_print(void *user, const char *text)
{
	const struct fit *fit = user;

	if (fit->params->screen->out)
		cli_print(fit->params->screen->out, "%s\n", text);
}

static double host_rate(void *user)
{
	const struct schedule *rate = &((const struct fit *)user)->session->optimizer.learning_rate;

	return schedule_name(rate) ? NAN : schedule_rate(rate, 0);
}

/* The workers are idle between epochs, so the rate can be changed. */
static void host_set_rate(void *user, double rate)
{
	((const struct fit *)user)->session->optimizer.learning_rate = schedule_constant(rate);
}

/* A failed recording is reported when it is closed, not here. */
static enum status host_outfeed(void *user, const char *queue, const char *name, int64_t epoch,
				struct err *err)
{
	const struct fit *fit = user;
	struct err failure = {ST_OK, ""};
	const enum status status = train_outfeed_callback(
		fit->session, queue, name, fit->params->screen->out, epoch, &failure);

	if (status == ST_OK || train_recording_failed(fit->session))
		return ST_OK;
	return err_set(err, status, "%s", failure.text);
}

/* ---- life cycle ------------------------------------------------------------------------------ */

/* Name the figures: "loss", "accuracy", with validation "val_loss", "val_accuracy", and the
 * learning rate if callbacks change it. */
static void name_figures(struct fit *fit)
{
	const struct train_program *program = fit->session->program;
	const struct train_figures *train = &program[IPS_TRAIN].figures;
	const struct train_figures *validation = &program[IPS_EVALUATE].figures;
	struct train_figures *figures = &fit->figures;
	size_t count;

	fit->validated = fit->session->run->fit.validation ? validation->count : 0;
	fit->rated = callbacks_move_rate(fit->params->callbacks);
	count = (size_t)(train->count + fit->validated) + fit->rated;
	figures->count = (int)count;
	figures->names = arena_alloc(&fit->arena, count, sizeof(*figures->names));
	figures->values = arena_alloc(&fit->arena, count, sizeof(*figures->values));
	fit->logs = arena_alloc(&fit->arena, count, sizeof(*fit->logs));
	if (!figures->names || !figures->values || !fit->logs) {
		err_nomem(fit->err);
		return;
	}
	for (int i = 0; i < train->count; i++)
		figures->names[i] = train->names[i];
	for (int i = 0; i < fit->validated; i++) {
		const char *name = arena_printf(&fit->arena, "val_%s", validation->names[i]);

		if (!name)
			err_nomem(fit->err);
		figures->names[train->count + i] = name;
	}
	if (fit->rated)
		figures->names[count - 1] = "learning_rate";
}

static void fit_init(struct fit *fit, const struct train_fit_params *params,
		     struct train_result *result, struct err *err)
{
	struct train_session *session = params->session;
	const size_t weights = session->model->weights;

	*fit = (struct fit){.params = params, .session = session, .result = result, .err = err};
	fit->host = (struct callback_host){.user = fit,
					   .model = session->model,
					   .weights = host_weights,
					   .set_weights = host_set_weights,
					   .stop = host_stop,
					   .rate = host_rate,
					   .set_rate = host_set_rate,
					   .say = host_print,
					   .outfeed = host_outfeed};
	if (arena_init(&fit->arena, 0) != 0)
		err_nomem(err);
	else
		name_figures(fit);
	/* Each replica has its own moving statistics; callbacks get rank 0's weights on all
	 * ranks. */
	if (!err_stuck(err) && ranks_rank(session->ranks) > 0) {
		fit->weights = mem_aligned(weights + 1, sizeof(*fit->weights));
		if (fit->weights)
			memcpy(fit->weights, session->replica[0].weights,
			       weights * sizeof(*fit->weights));
		else
			err_nomem(err);
	}
	if (!err_stuck(err))
		train_backup_open(&fit->backup, session, params->callbacks, fit->weights,
				  params->screen, err);
	fit->host.resumed = fit->backup.from;
	if (!err_stuck(err))
		train_phase_new(&fit->phase, session, IPS_TRAIN, params->screen, err);
	if (!err_stuck(err) && train_values_running(session->run))
		train_async_new(&fit->async, fit->phase, params->callbacks, &fit->host, err);
}

static struct ips_logs logs_of(struct fit *fit, const struct train_figures *figures)
{
	for (int i = 0; i < figures->count; i++)
		fit->logs[i] = (struct ips_log){figures->names[i], figures->values[i]};
	return (struct ips_logs){fit->logs, figures->count};
}

/* Call the callbacks. Their failure is reported unless something has failed before. */
static void call(const struct fit *fit, struct callback_event event)
{
	event.host = &fit->host;
	event.err = err_stuck(fit->err) ? NULL : fit->err;
	callbacks_call(fit->params->callbacks, &event);
}

/* Start the callbacks; then restore their state and that of the epoch when resuming. */
static void begin_fit(struct fit *fit)
{
	const struct ips_logs names = logs_of(fit, &fit->figures);

	call(fit, (struct callback_event){.moment = CALLBACK_TRAIN_BEGIN, .logs = &names});
	train_phase_begin(fit->phase);
	if (!err_stuck(fit->err))
		train_backup_restore(&fit->backup, fit->phase, &fit->host, fit->err);
	train_ranks_fail_together(fit->session, fit->err->status, fit->err);
	if (!err_stuck(fit->err) && fit->backup.stop)
		host_stop(fit);
	fit->done = fit->backup.steps / fit->session->layout->steps_per_execution;
	fit->result->epochs = fit->backup.epoch - 1;
}

/* ---- executions of evaluations and predictions ----------------------------------------------- */

struct predictions {
	float *values; /* [items, width]; NULL: not saved */
	int64_t items;
	size_t width;
};

/* Append the execution's outputs, batch by batch. */
static void append_outputs(struct predictions *out, const struct train_phase *phase)
{
	const int64_t replicas = phase->session->layout->replicas;
	const size_t batch = (size_t)phase->session->run->data.batch_size;

	for (int64_t i = 0; i < phase->program->steps_per_execution * replicas; i++) {
		const int64_t items = train_phase_items(phase, i / replicas, i % replicas);

		if (out->values)
			memcpy(out->values + (size_t)out->items * out->width,
			       phase->outputs + (size_t)i * batch * out->width,
			       (size_t)items * out->width * sizeof(float));
		out->items += items;
	}
}

/* Run all executions of an evaluation or prediction, called @what in messages. @out NULL: outputs
 * are not needed. */
static enum status execute_all(struct train_phase *phase, int64_t steps, int64_t epoch,
			       const char *what, struct predictions *out, struct err *err)
{
	for (int64_t i = 0; i < steps / phase->program->steps_per_execution; i++) {
		if (train_phase_execute(phase, epoch, err) != ST_OK)
			return err->status;
		if (out)
			append_outputs(out, phase);
		if (train_session_interrupted(phase->session))
			return err_set(err, ST_INTERRUPTED, "interrupted in the %s", what);
	}
	return ST_OK;
}

/* ---- epochs ---------------------------------------------------------------------------------- */

/* Print outfeeds, unless the run file has OutfeedCallbacks, which are called with the others. */
static void print_outfeeds(struct fit *fit, int64_t epoch)
{
	const struct run_queues *plan = &fit->session->outfeed_plan;

	if (callbacks_show_outfeeds(fit->params->callbacks))
		return;
	for (int q = 0; q < plan->queue_count && !err_stuck(fit->err); q++)
		host_outfeed(fit, plan->queues[q].name, plan->queues[q].callback, epoch, fit->err);
}

/* As on the IPU: called once for each execution, with its last batch and that batch's results. */
static void call_batch_end(struct fit *fit)
{
	const struct train_execution *execution = &fit->session->execution;
	struct train_figures last = *fit->phase->figures;
	struct ips_logs logs;

	if (fit->params->callbacks->count == 0)
		return;
	last.values = fit->figures.values; /* not in use within an epoch */
	train_phase_step(fit->phase, execution->steps - 1, fit->session->layout->replicas - 1,
			 last.values);
	logs = logs_of(fit, &last);
	call(fit, (struct callback_event){.moment = CALLBACK_BATCH_END,
					  .which = fit->async ? CALLBACK_RESTING : CALLBACK_ALL,
					  .mode = IPS_TRAIN,
					  .batch = execution->first_step + execution->steps - 1,
					  .logs = &logs});
}

static void backup(struct fit *fit, int64_t epoch, int64_t steps)
{
	if (!err_stuck(fit->err))
		train_backup_write(&fit->backup, fit->phase, &fit->host, epoch, steps,
				   atomic_load(fit->params->stop), fit->err);
}

static void run_executions(struct fit *fit, int64_t epoch)
{
	const struct run_layout *layout = fit->session->layout;

	for (int64_t i = fit->done; i < layout->executions_per_epoch && !err_stuck(fit->err) &&
				    !atomic_load(fit->params->stop);
	     i++) {
		train_phase_execute(fit->phase, epoch, fit->err);
		if (fit->async)
			train_async_join(fit->async, fit->err);
		if (err_stuck(fit->err))
			return;
		train_values_finish(fit->session, fit->params->callbacks);
		call_batch_end(fit);
		if (!err_stuck(fit->err))
			train_health_check(fit->session, fit->err);
		if (!train_session_interrupted(fit->session))
			backup(fit, epoch, (i + 1) * layout->steps_per_execution);
		if (train_session_interrupted(fit->session) && !err_stuck(fit->err))
			err_set(fit->err, ST_INTERRUPTED, "interrupted in epoch %lld",
				(long long)epoch);
	}
}

/* Evaluate the whole test set. @screen NULL: print nothing. */
static void run_test(struct train_session *session, int64_t epoch, struct train_screen *screen,
		     double *device_step_ns, struct err *err)
{
	struct train_phase *phase;

	if (train_phase_new(&phase, session, IPS_EVALUATE, screen, err) != ST_OK)
		return;
	train_phase_begin(phase);
	execute_all(phase, session->layout->evaluate_steps, epoch, "evaluation", NULL, err);
	train_phase_record(phase, epoch);
	*device_step_ns = train_phase_device_step_ns(phase);
	train_phase_free(phase);
}

static enum status generate(const struct train_fit_params *params, struct err *err)
{
	if (err_stuck(err) || !params->session->run->generate.wanted || !params->generated)
		return err->status;
	return train_generate(params->generated, params->session, err);
}

/* Collect the figures for callbacks and the screen at the end of an epoch. */
static void collect_figures(struct fit *fit)
{
	const struct train_program *program = fit->session->program;
	const struct train_figures *train = &program[IPS_TRAIN].figures;
	const struct train_figures *validation = &program[IPS_EVALUATE].figures;

	for (int i = 0; i < train->count; i++)
		fit->figures.values[i] = train->values[i];
	for (int i = 0; i < fit->validated; i++)
		fit->figures.values[train->count + i] = validation->values[i];
	if (fit->rated)
		fit->figures.values[fit->figures.count - 1] = host_rate(fit);
	fit->result->loss = train->values[0];
}

static void run_epoch(struct fit *fit, int64_t epoch)
{
	const struct run_layout *layout = fit->session->layout;
	const bool validates = fit->session->run->fit.validation;
	const uint64_t begun_ns = clock_ns();
	struct train_screen *screen = fit->params->screen;
	/* Training's figures, then validation's, each beginning with the loss. */
	const double *figures = fit->figures.values;
	double step_ns, unused;

	if (fit->done == 0)
		train_phase_begin(fit->phase);
	train_values_begin_epoch(fit->session);
	train_screen_epoch(screen, epoch, fit->session->run->fit.epochs,
			   layout->steps_per_epoch * layout->replicas, fit->phase->figures);
	if (fit->done > 0)
		train_screen_executed(screen,
				      fit->done * layout->steps_per_execution * layout->replicas);
	run_executions(fit, epoch);
	fit->done = 0;
	train_phase_record(fit->phase, epoch);
	step_ns = train_phase_device_step_ns(fit->phase);
	fit->result->step_ns = (double)(clock_ns() - begun_ns) /
			       (double)(layout->steps_per_epoch * layout->replicas);
	if (!err_stuck(fit->err) && validates)
		run_test(fit->session, epoch, NULL, &unused, fit->err);
	collect_figures(fit);
	if (fit->rated)
		train_record_metric(fit->session, IPS_TRAIN, epoch, IPS_NULL, IPS_NULL,
				    "learning_rate", host_rate(fit));
	if (!err_stuck(fit->err))
		train_health_epoch(fit->session, epoch, figures[0],
				   validates ? figures + fit->phase->figures->count : NULL,
				   fit->err);
	if (!err_stuck(fit->err))
		screen->figures = &fit->figures;
	train_screen_end(screen, step_ns);
	if (err_stuck(fit->err))
		return;
	fit->result->epochs = epoch;
	print_outfeeds(fit, epoch);
}

static void call_epoch(struct fit *fit, int64_t epoch)
{
	struct ips_logs logs;

	call(fit, (struct callback_event){.moment = CALLBACK_EPOCH_BEGIN, .epoch = epoch});
	if (!err_stuck(fit->err))
		run_epoch(fit, epoch);
	if (err_stuck(fit->err))
		return;
	logs = logs_of(fit, &fit->figures);
	train_ranks_weights(fit->session,
			    fit->weights ? fit->weights : fit->session->replica[0].weights);
	if (epoch < fit->session->run->fit.epochs && generate(fit->params, fit->err) != ST_OK)
		return;
	call(fit,
	     (struct callback_event){.moment = CALLBACK_EPOCH_END, .epoch = epoch, .logs = &logs});
	backup(fit, epoch + 1, 0);
}

static void run_fit(const struct train_fit_params *params, struct train_result *result,
		    struct err *err)
{
	struct fit fit;

	if (!params->session->run->fit.wanted)
		return;
	fit_init(&fit, params, result, err);
	if (!err_stuck(err))
		begin_fit(&fit);
	for (int64_t epoch = fit.backup.epoch;
	     !err_stuck(err) && epoch <= params->session->run->fit.epochs &&
	     !atomic_load(params->stop);
	     epoch++)
		call_epoch(&fit, epoch);
	/* Callbacks also end after an interrupt, or if a health rule stops the training. */
	if (err->status == ST_OK || err->status == ST_INTERRUPTED ||
	    train_stop_asked(&params->session->stop_early))
		call(&fit, (struct callback_event){.moment = CALLBACK_TRAIN_END});
	train_phase_free(fit.phase);
	train_async_free(fit.async);
	train_backup_close(&fit.backup);
	mem_free(fit.weights);
	arena_fini(&fit.arena);
}

/* ---- predict --------------------------------------------------------------------------------- */

static enum status predictions_new(struct predictions *out, const struct train_session *session,
				   struct err *err)
{
	const int64_t most = session->layout->predict_steps * session->layout->replicas *
			     session->run->data.batch_size;
	const struct model_output *last =
		&session->model->outputs[session->model->output_count - 1];
	char bytes[FMT_SIZE];
	size_t count;

	*out = (struct predictions){
		.width = (size_t)(last->first + model_shape_count(&last->shape))};
	if (!session->run->predict.output || ranks_rank(session->ranks) > 0)
		return ST_OK;
	if (__builtin_mul_overflow((size_t)most, out->width, &count))
		return err_nomem(err);
	out->values = mem_calloc(count, sizeof(*out->values));
	if (!out->values)
		return err_set(err, ST_NOMEM, "out of memory: %s for the predictions",
			       fmt_bytes(bytes, count * sizeof(float)));
	return ST_OK;
}

/* Save the array of output @o; with several outputs a row concatenates them. */
static enum status save_output(struct npz_writer *writer, const struct predictions *predictions,
			       const struct model *model, int o, struct err *err)
{
	const struct model_output *output = &model->outputs[o];
	const struct model_shape *shape = &output->shape;
	const size_t count = (size_t)model_shape_count(shape), items = (size_t)predictions->items;
	struct npz_member array = {.name = model->output_count > 1 ? output->name : "predictions",
				   .ndim = shape->ndim + 1,
				   .dim = {predictions->items}};
	enum status status;
	float *values;

	memcpy(array.dim + 1, shape->dim, (size_t)shape->ndim * sizeof(*shape->dim));
	if (model->output_count == 1)
		return npz_writer_put(writer, &array, predictions->values, items * count);
	values = mem_calloc(items * count, sizeof(*values));
	if (!values)
		return err_nomem(err);
	for (size_t i = 0; i < items; i++)
		memcpy(values + i * count,
		       predictions->values + i * predictions->width + (size_t)output->first,
		       count * sizeof(*values));
	status = npz_writer_put(writer, &array, values, items * count);
	mem_free(values);
	return status;
}

static enum status save_predictions(const struct predictions *predictions,
				    const struct train_session *session, struct err *err)
{
	const struct model *model = session->model;
	struct npz_writer writer;
	enum status status;

	if (!predictions->values)
		return ST_OK;
	for (int o = 0; o < model->output_count; o++)
		if (model->outputs[o].shape.ndim + 1 > NPZ_WRITER_DIMS)
			return err_set(err, ST_UNSUPPORTED,
				       "predict.output: an output of %d dimensions",
				       model->outputs[o].shape.ndim);
	status = npz_writer_open(&writer, session->run->predict.output, err);
	if (status != ST_OK)
		return status;
	for (int o = 0; o < model->output_count && status == ST_OK; o++)
		status = save_output(&writer, predictions, model, o, err);
	return npz_writer_close(&writer, status);
}

/* Run predict and write to the run file's predict.output (NULL: do not write) the array
 * "predictions" [items, output], or with several outputs one array named after each, items in the
 * set's order. */
static void predict(const struct train_fit_params *params, struct train_result *out,
		    struct err *err)
{
	static const struct train_figures none = {0, NULL, NULL};
	struct train_session *session = params->session;
	const struct run_layout *layout = session->layout;
	struct predictions predictions;
	struct train_phase *phase;

	if (err_stuck(err) || !session->run->predict.wanted ||
	    train_phase_new(&phase, session, IPS_PREDICT, params->screen, err) != ST_OK)
		return;
	train_screen_evaluate(params->screen, IPS_PREDICT, layout->predict_steps * layout->replicas,
			      &none);
	if (predictions_new(&predictions, session, err) == ST_OK)
		execute_all(phase, layout->predict_steps, IPS_NULL, "prediction", &predictions,
			    err);
	train_screen_end(params->screen, train_phase_device_step_ns(phase));
	if (!err_stuck(err))
		save_predictions(&predictions, session, err);
	out->predicted = predictions.items;
	mem_free(predictions.values);
	train_phase_free(phase);
}

/* ---- the whole run --------------------------------------------------------------------------- */

/* Print the loss of a text's tokens in bits, the unit of compression. */
static void print_bits(const struct train_session *session, FILE *out)
{
	const struct loss_part *loss = &session->plan->program[IPS_EVALUATE].losses.items[0];
	const struct dataset *set = session->test_set;

	if (!set->names || set->labels || session->regularized ||
	    strcmp(loss_class_name(&loss->loss), "SparseCategoricalCrossentropy") != 0)
		return;
	fprintf(out, "Bits per token of the test set: %.4f\n",
		session->program[IPS_EVALUATE].figures.values[0] / M_LN2);
}

static void evaluate(const struct train_fit_params *params, struct train_result *out,
		     struct err *err)
{
	struct train_session *session = params->session;
	const struct train_figures *figures = &session->program[IPS_EVALUATE].figures;
	double step_ns = NAN;

	if (err_stuck(err) || !session->run->evaluate.wanted)
		return;
	train_screen_evaluate(params->screen, IPS_EVALUATE,
			      session->layout->evaluate_steps * session->layout->replicas, figures);
	run_test(session, IPS_NULL, params->screen, &step_ns, err);
	train_screen_end(params->screen, step_ns);
	if (err_stuck(err))
		return;
	out->evaluate_loss = figures->values[0];
	if (params->screen->out) {
		train_screen_figures(params->screen->out, figures);
		fprintf(params->screen->out, "\n");
		print_bits(session, params->screen->out);
	}
}

enum status train_fit(const struct train_fit_params *params, struct train_result *out,
		      struct err *err)
{
	struct err own;

	err = err_start(err, &own);
	*out = (struct train_result){.loss = NAN, .evaluate_loss = NAN, .step_ns = NAN};
	/* A step returns at once if the run file does not want it, or after a failure. */
	run_fit(params, out, err);
	evaluate(params, out, err);
	predict(params, out, err);
	generate(params, err);
	out->interrupted = err->status == ST_INTERRUPTED;
	return err->status;
}
