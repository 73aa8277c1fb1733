/*
 * fit: epochs of executions, with validation, callbacks, health rules and the screen between them;
 * the functions that callbacks use; evaluate; and predict, whose outputs are collected execution by
 * execution and written to an .npz.
 */
#include "trainer/train_fit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
		fprintf(fit->params->screen->out, "%s\n", text);
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
	const enum status status = train_outfeed_callback(fit->session, queue, name,
							  fit->params->screen->out, epoch, err);

	return train_recording_failed(fit->session) ? ST_OK : status;
}

/* ---- life cycle ------------------------------------------------------------------------------ */

/* Name the figures: "loss", "accuracy", with validation "val_loss", "val_accuracy", and the
 * learning rate if callbacks change it. */
static enum status name_figures(struct fit *fit, struct err *err)
{
	const struct train_program *program = fit->session->program;
	const struct train_figures *train = &program[IPS_TRAIN].measure.figures;
	const struct train_figures *validation = &program[IPS_EVALUATE].measure.figures;
	const int more = fit->session->run->fit.validation ? validation->count : 0;
	const bool rate = callbacks_move_rate(fit->params->callbacks);
	const size_t count = (size_t)(train->count + more) + rate;

	fit->figures.count = (int)count;
	fit->figures.names = arena_alloc(&fit->arena, count, sizeof(*fit->figures.names));
	fit->figures.values = arena_alloc(&fit->arena, count, sizeof(*fit->figures.values));
	fit->logs = arena_alloc(&fit->arena, count, sizeof(*fit->logs));
	if (!fit->figures.names || !fit->figures.values || !fit->logs)
		return err_nomem(err);
	for (int i = 0; i < train->count; i++)
		fit->figures.names[i] = train->names[i];
	for (int i = 0; i < more; i++) {
		const char *name = arena_printf(&fit->arena, "val_%s", validation->names[i]);

		if (!name)
			return err_nomem(err);
		fit->figures.names[train->count + i] = name;
	}
	if (rate)
		fit->figures.names[count - 1] = "learning_rate";
	fit->validated = more;
	fit->rated = rate;
	return ST_OK;
}

static enum status fit_init(struct fit *fit, const struct train_fit_params *params,
			    struct train_result *result, struct err *err)
{
	const size_t weights = params->session->model->weights;
	enum status status;

	*fit = (struct fit){.params = params, .session = params->session, .result = result};
	fit->host = (struct callback_host){.user = fit,
					   .model = params->session->model,
					   .weights = host_weights,
					   .set_weights = host_set_weights,
					   .stop = host_stop,
					   .rate = host_rate,
					   .set_rate = host_set_rate,
					   .say = host_print,
					   .outfeed = host_outfeed};
	if (arena_init(&fit->arena, 0) != 0)
		return err_nomem(err);
	status = name_figures(fit, err);
	/* Each replica has its own moving statistics; callbacks get rank 0's weights on all
	 * ranks. */
	if (status == ST_OK && ranks_rank(fit->session->ranks) > 0) {
		fit->weights = mem_aligned(weights + 1, sizeof(*fit->weights));
		if (!fit->weights)
			return err_nomem(err);
		memcpy(fit->weights, fit->session->replica[0].weights,
		       weights * sizeof(*fit->weights));
	}
	if (status == ST_OK)
		status = train_backup_open(&fit->backup, fit->session, params->callbacks,
					   fit->weights, params->screen, err);
	fit->host.resumed = fit->backup.from;
	if (status == ST_OK)
		status = train_phase_new(&fit->phase, fit->session, IPS_TRAIN, params->screen, err);
	if (status == ST_OK && train_values_running(fit->session->run))
		status = train_async_new(&fit->async, fit->phase, params->callbacks, &fit->host,
					 err);
	return status;
}

static struct ips_logs logs_of(struct fit *fit, const struct train_figures *figures)
{
	for (int i = 0; i < figures->count; i++)
		fit->logs[i] = (struct ips_log){figures->names[i], figures->values[i]};
	return (struct ips_logs){fit->logs, figures->count};
}

/* Start the callbacks; then restore their state and that of the epoch when resuming. */
static enum status begin_fit(struct fit *fit, struct err *err)
{
	const struct ips_logs names = logs_of(fit, &fit->figures);
	enum status status;

	fit->host.logs = &names;
	status = callbacks_train_begin(fit->params->callbacks, &fit->host, err);
	fit->host.logs = NULL;
	train_phase_begin(fit->phase);
	if (status == ST_OK)
		status = train_backup_restore(&fit->backup, fit->phase, &fit->host, err);
	status = train_ranks_fail_together(fit->session, status, err);
	if (status == ST_OK && fit->backup.stop)
		host_stop(fit);
	fit->done = fit->backup.steps / fit->session->layout->steps_per_execution;
	fit->result->epochs = fit->backup.epoch - 1;
	return status;
}

/* ---- epochs ---------------------------------------------------------------------------------- */

/* Print outfeeds, unless the run file has OutfeedCallbacks, which are called with the others. */
static enum status print_outfeeds(struct fit *fit, int64_t epoch, struct err *err)
{
	const struct run_queues *plan = &fit->session->outfeed_plan;
	enum status status = ST_OK;

	if (callbacks_show_outfeeds(fit->params->callbacks))
		return ST_OK;
	for (int q = 0; q < plan->queue_count && status == ST_OK; q++)
		status = host_outfeed(fit, plan->queues[q].name, plan->queues[q].callback, epoch,
				      err);
	return status;
}

/* As on the IPU: called once for each execution, with its last batch and that batch's results. */
static enum status call_batch_end(struct fit *fit, struct err *err)
{
	const struct train_execution *execution = &fit->session->execution;
	struct train_figures last = fit->phase->measure->figures;
	struct ips_logs logs;

	if (fit->params->callbacks->count == 0)
		return ST_OK;
	last.values = fit->figures.values; /* not in use within an epoch */
	train_phase_step(fit->phase, execution->steps - 1, fit->session->layout->replicas - 1,
			 last.values);
	logs = logs_of(fit, &last);
	return callbacks_batch_end(fit->params->callbacks, &fit->host,
				   fit->async ? CALLBACK_RESTING : CALLBACK_ALL, IPS_TRAIN,
				   execution->first_step + execution->steps - 1, &logs, err);
}

static enum status run_executions(struct fit *fit, int64_t epoch, struct err *err)
{
	const struct run_layout *layout = fit->session->layout;

	for (int64_t i = fit->done;
	     i < layout->executions_per_epoch && !atomic_load(fit->params->stop); i++) {
		enum status status = train_phase_execute(fit->phase, epoch, err), called = ST_OK;

		if (fit->async)
			called = train_async_join(fit->async, status == ST_OK ? err : NULL);
		if (status == ST_OK)
			status = called;
		if (status != ST_OK)
			return status;
		train_values_finish(fit->session, fit->params->callbacks);
		status = call_batch_end(fit, err);
		if (status == ST_OK)
			status = train_health_check(fit->session, err);
		if (status == ST_OK && !train_session_interrupted(fit->session))
			status = train_backup_write(&fit->backup, fit->phase, &fit->host, epoch,
						    (i + 1) * layout->steps_per_execution,
						    atomic_load(fit->params->stop), err);
		if (status != ST_OK)
			return status;
		if (train_session_interrupted(fit->session))
			return err_set(err, ST_INTERRUPTED, "interrupted in epoch %lld",
				       (long long)epoch);
	}
	return ST_OK;
}

/* Evaluate the whole test set. @screen NULL: print nothing. */
static enum status run_test(struct train_session *session, int64_t epoch,
			    struct train_screen *screen, double *device_step_ns, struct err *err)
{
	const struct run_layout *layout = session->layout;
	struct train_phase *phase;
	enum status status = train_phase_new(&phase, session, IPS_EVALUATE, screen, err);

	if (status != ST_OK)
		return status;
	train_phase_begin(phase);
	for (int64_t i = 0;
	     status == ST_OK && i < layout->evaluate_steps / layout->evaluate_steps_per_execution;
	     i++) {
		status = train_phase_execute(phase, epoch, err);
		if (status == ST_OK && train_session_interrupted(session))
			status = err_set(err, ST_INTERRUPTED, "interrupted in the evaluation");
	}
	train_phase_record(phase, epoch);
	*device_step_ns = train_phase_device_step_ns(phase);
	train_phase_free(phase);
	return status;
}

static enum status generate(const struct train_fit_params *params, struct err *err)
{
	if (!params->session->run->generate.wanted || !params->generated)
		return ST_OK;
	return train_generate(params->generated, params->session, err);
}

/* Collect the figures for callbacks and the screen at the end of an epoch. */
static void collect_figures(struct fit *fit)
{
	const struct train_program *program = fit->session->program;
	const struct train_figures *train = &program[IPS_TRAIN].measure.figures;
	const struct train_figures *validation = &program[IPS_EVALUATE].measure.figures;

	for (int i = 0; i < train->count; i++)
		fit->figures.values[i] = train->values[i];
	for (int i = 0; i < fit->validated; i++)
		fit->figures.values[train->count + i] = validation->values[i];
	if (fit->rated)
		fit->figures.values[fit->figures.count - 1] = host_rate(fit);
	fit->result->loss = train->values[0];
}

static enum status run_epoch(struct fit *fit, int64_t epoch, struct err *err)
{
	const struct run_layout *layout = fit->session->layout;
	const bool validates = fit->session->run->fit.validation;
	const uint64_t begun_ns = clock_ns();
	struct train_screen *screen = fit->params->screen;
	/* Training's figures, then validation's, each beginning with the loss. */
	const double *figures = fit->figures.values;
	double step_ns, unused;
	enum status status;

	if (fit->done == 0)
		train_phase_begin(fit->phase);
	train_values_begin_epoch(fit->session);
	train_screen_epoch(screen, epoch, fit->session->run->fit.epochs,
			   layout->steps_per_epoch * layout->replicas,
			   &fit->phase->measure->figures);
	if (fit->done > 0)
		train_screen_executed(screen,
				      fit->done * layout->steps_per_execution * layout->replicas);
	status = run_executions(fit, epoch, err);
	fit->done = 0;
	train_phase_record(fit->phase, epoch);
	step_ns = train_phase_device_step_ns(fit->phase);
	fit->result->step_ns = (double)(clock_ns() - begun_ns) /
			       (double)(layout->steps_per_epoch * layout->replicas);
	if (status == ST_OK && validates)
		status = run_test(fit->session, epoch, NULL, &unused, err);
	collect_figures(fit);
	if (fit->rated)
		train_record_metric(fit->session, IPS_TRAIN, epoch, IPS_NULL, IPS_NULL,
				    "learning_rate", host_rate(fit));
	if (status == ST_OK)
		status = train_health_epoch(
			fit->session, epoch, figures[0],
			validates ? figures + fit->phase->measure->figures.count : NULL, err);
	if (status == ST_OK)
		screen->figures = &fit->figures;
	train_screen_end(screen, step_ns);
	if (status != ST_OK)
		return status;
	fit->result->epochs = epoch;
	return print_outfeeds(fit, epoch, err);
}

static enum status call_epoch(struct fit *fit, int64_t epoch, struct err *err)
{
	enum status status = callbacks_epoch_begin(fit->params->callbacks, &fit->host, epoch, err);
	struct ips_logs logs;

	if (status == ST_OK)
		status = run_epoch(fit, epoch, err);
	if (status != ST_OK)
		return status;
	logs = logs_of(fit, &fit->figures);
	train_ranks_weights(fit->session,
			    fit->weights ? fit->weights : fit->session->replica[0].weights);
	if (epoch < fit->session->run->fit.epochs)
		status = generate(fit->params, err);
	if (status == ST_OK)
		status = callbacks_epoch_end(fit->params->callbacks, &fit->host, epoch, &logs, err);
	return status == ST_OK ? train_backup_write(&fit->backup, fit->phase, &fit->host, epoch + 1,
						    0, atomic_load(fit->params->stop), err)
			       : status;
}

static enum status run_fit(const struct train_fit_params *params, struct train_result *result,
			   struct err *err)
{
	struct fit fit;
	enum status status = fit_init(&fit, params, result, err), ended;

	if (status == ST_OK)
		status = begin_fit(&fit, err);
	for (int64_t epoch = fit.backup.epoch;
	     status == ST_OK && epoch <= params->session->run->fit.epochs &&
	     !atomic_load(params->stop);
	     epoch++)
		status = call_epoch(&fit, epoch, err);
	/* Callbacks also end after an interrupt, or if a health rule stops the training. */
	if (status == ST_OK || status == ST_INTERRUPTED ||
	    train_stop_asked(&params->session->stop_early)) {
		ended = callbacks_train_end(params->callbacks, &fit.host,
					    status == ST_OK ? err : NULL);
		status = status == ST_OK ? ended : status;
	}
	train_phase_free(fit.phase);
	train_async_free(fit.async);
	train_backup_close(&fit.backup);
	mem_free(fit.weights);
	arena_fini(&fit.arena);
	return status;
}

/* ---- predict --------------------------------------------------------------------------------- */

struct predictions {
	float *values; /* [items, width]; NULL: not saved */
	int64_t items;
	size_t width;
};

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

/* Append the execution's outputs, batch by batch. */
static void append_outputs(struct predictions *out, const struct train_phase *phase)
{
	const int64_t replicas = phase->session->layout->replicas;
	const size_t batch = (size_t)phase->session->run->data.batch_size;

	for (int64_t i = 0; i < phase->steps_per_execution * replicas; i++) {
		const int64_t items = train_phase_items(phase, i / replicas, i % replicas);

		if (out->values)
			memcpy(out->values + (size_t)out->items * out->width,
			       phase->outputs + (size_t)i * batch * out->width,
			       (size_t)items * out->width * sizeof(float));
		out->items += items;
	}
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
 * set's order. @items receives their number. */
static enum status train_predict(struct train_session *session, struct train_screen *screen,
				 int64_t *items, struct err *err)
{
	static const struct train_figures none = {0, NULL, NULL};
	const struct run_layout *layout = session->layout;
	struct predictions predictions;
	struct train_phase *phase;
	enum status status = train_phase_new(&phase, session, IPS_PREDICT, screen, err);

	*items = 0;
	if (status != ST_OK)
		return status;
	status = predictions_new(&predictions, session, err);
	train_screen_evaluate(screen, IPS_PREDICT, layout->predict_steps * layout->replicas, &none);
	for (int64_t i = 0;
	     status == ST_OK && i < layout->predict_steps / layout->predict_steps_per_execution;
	     i++) {
		status = train_phase_execute(phase, IPS_NULL, err);
		if (status == ST_OK)
			append_outputs(&predictions, phase);
		if (status == ST_OK && train_session_interrupted(session))
			status = err_set(err, ST_INTERRUPTED, "interrupted in the prediction");
	}
	train_screen_end(screen, train_phase_device_step_ns(phase));
	if (status == ST_OK)
		status = save_predictions(&predictions, session, err);
	*items = predictions.items;
	mem_free(predictions.values);
	train_phase_free(phase);
	return status;
}

/* ---- the whole run --------------------------------------------------------------------------- */

/* Print the loss of a text's tokens in bits, the unit of compression. */
static void print_bits(const struct train_session *session, FILE *out)
{
	const struct train_measure *measure = &session->program[IPS_EVALUATE].measure;
	const struct dataset *set = session->test_set;

	if (!set->names || set->labels || session->regularized ||
	    strcmp(loss_class_name(&measure->losses.items[0].loss),
		   "SparseCategoricalCrossentropy") != 0)
		return;
	fprintf(out, "Bits per token of the test set: %.4f\n",
		measure->figures.values[0] / 0x1.62e42fefa39efp-1);
}

static enum status evaluate(const struct train_fit_params *params, struct train_result *out,
			    struct err *err)
{
	struct train_session *session = params->session;
	const struct train_figures *figures = &session->program[IPS_EVALUATE].measure.figures;
	double step_ns = NAN;
	enum status status;

	train_screen_evaluate(params->screen, IPS_EVALUATE,
			      session->layout->evaluate_steps * session->layout->replicas, figures);
	status = run_test(session, IPS_NULL, params->screen, &step_ns, err);
	train_screen_end(params->screen, step_ns);
	if (status != ST_OK)
		return status;
	out->evaluate_loss = figures->values[0];
	if (params->screen->out) {
		train_screen_figures(params->screen->out, figures);
		fprintf(params->screen->out, "\n");
		print_bits(session, params->screen->out);
	}
	return ST_OK;
}

enum status train_fit(const struct train_fit_params *params, struct train_result *out,
		      struct err *err)
{
	const struct run_file *run = params->session->run;
	enum status status = ST_OK;

	*out = (struct train_result){.loss = NAN, .evaluate_loss = NAN, .step_ns = NAN};
	if (run->fit.wanted)
		status = run_fit(params, out, err);
	if (status == ST_OK && run->evaluate.wanted)
		status = evaluate(params, out, err);
	if (status == ST_OK && run->predict.wanted)
		status = train_predict(params->session, params->screen, &out->predicted, err);
	if (status == ST_OK)
		status = generate(params, err);
	out->interrupted = status == ST_INTERRUPTED;
	return status;
}
