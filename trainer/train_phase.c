/*
 * Executions: planning one, starting the workers, waiting for them, cutting it short if the run is
 * to stop; and its results: each step's loss and metrics, and Keras's running means.
 *
 * Threading: the main thread, between executions; train_phase_step() reads what the workers have
 * finished.
 */
#include "trainer/train_phase.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "trainer/learn/measure_run.h"
#include "trainer/train_outfeed.h"
#include "trainer/train_record.h"
#include "trainer/train_ranks.h"
#include "trainer/train_reduce.h"
#include "trainer/train_session.h"

#define LOOK_MS 50 /* period in which the main thread polls the workers' progress */

/* ---- results --------------------------------------------------------------------------------- */

/* Return the regularisers' part of each loss of @step; weights change with each pipeline run. */
static double penalty_of(const struct train_phase *phase, int64_t step)
{
	const struct train_session *session = phase->session;
	const int layers = session->model->layer_count;
	const double *penalties =
		phase->penalties + step / session->execution.microbatches * layers;
	double sum = 0;

	for (int l = 0; session->regularized && l < layers; l++)
		sum += penalties[l];
	return sum;
}

/* Return the weight of a batch: its items, or 1 if all batches are whole. */
static int64_t weight_of(const struct train_phase *phase, int64_t step, int64_t replica)
{
	const struct run_file *run = phase->session->run;

	return run->data.drop_remainder && !run->data.pad_remainder
		       ? 1
		       : train_phase_items(phase, step, replica);
}

/* Return the loss of @step of the current execution, including its penalty: the mean over
 * replicas. */
static double step_loss(const struct train_phase *phase, int64_t step)
{
	const int replicas = phase->session->layout->replicas;
	const double *losses = phase->losses + step * replicas;
	double sum = 0.0, weights = 0.0;

	if (!phase->session->run->data.pad_remainder)
		return train_tree_sum(losses, replicas) / (double)replicas +
		       penalty_of(phase, step);
	for (int r = 0; r < replicas; r++) {
		sum += losses[r] * (double)weight_of(phase, step, r);
		weights += (double)weight_of(phase, step, r);
	}
	return (weights > 0.0 ? sum / weights : 0.0) + penalty_of(phase, step);
}

/* Return the steps with common results: pipeline.accumulate_outfeed sends them once a pipeline
 * run. */
static int64_t together_of(const struct train_phase *phase)
{
	return phase->session->run->pipeline.accumulate_outfeed
		       ? phase->session->execution.microbatches
		       : 1;
}

void train_phase_step(const struct train_phase *phase, int64_t step, int64_t replica,
		      double *values)
{
	const int64_t replicas = phase->session->layout->replicas;
	const int64_t together = together_of(phase), first = step / together * together;
	const struct metric_list *metrics = &phase->program->metrics;

	for (int64_t i = 0; i < metrics->states; i++)
		phase->step[i] = 0.0;
	for (int i = 0; i <= metrics->count; i++)
		values[i] = 0;
	for (int64_t s = first; s < first + together; s++) {
		const int64_t place = s * replicas + replica;
		const double *states = phase->sums + place * metrics->states;

		values[0] += phase->losses[place];
		for (int64_t i = 0; i < metrics->states; i++)
			phase->step[i] += states[i];
		for (int m = 0; m < metrics->count; m++)
			values[m + 1] += metric_result(&metrics->items[m],
						       states + metrics->items[m].first_state);
	}
	values[0] = values[0] / (double)together + penalty_of(phase, first);
	for (int m = 0; m < metrics->count; m++)
		values[m + 1] =
			metric_is_mean(&metrics->items[m])
				? values[m + 1] / (double)together
				: metric_result(&metrics->items[m],
						phase->step + metrics->items[m].first_state);
}

int64_t train_phase_items(const struct train_phase *phase, int64_t step, int64_t replica)
{
	return dataset_feed_items(phase->feed, (int)replica,
				  phase->session->execution.first_step + step);
}

/* Return the entry of @replica for a number (0: the loss, then the metrics' states) that is summed
 * over replicas. */
static double *addend_of(const struct train_phase *phase, int64_t number, int64_t replica)
{
	return phase->addends + number * phase->session->layout->replicas + replica;
}

/* Add the addends of @step of the current execution to the running sums, and record its @loss. */
static void add_step(struct train_phase *phase, int64_t step, double loss)
{
	const struct train_execution *execution = &phase->session->execution;
	const int replicas = phase->session->layout->replicas;

	phase->loss += train_tree_sum(addend_of(phase, 0, 0), replicas);
	for (int64_t i = 0; i < phase->program->metrics.states; i++)
		phase->states[i] += train_tree_sum(addend_of(phase, i + 1, 0), replicas);
	train_record_metric(phase->session, execution->mode, execution->epoch, execution->execution,
			    execution->first_step + step, "loss", loss);
}

static void add_results(struct train_phase *phase)
{
	const int64_t replicas = phase->session->layout->replicas;
	const int64_t states = phase->program->metrics.states;

	for (int64_t i = 0; i < phase->session->execution.steps; i++) {
		const double penalty = penalty_of(phase, i);

		/* As in Keras, a batch's loss counts as often as it has items. */
		for (int64_t r = 0; r < replicas; r++) {
			const int64_t place = i * replicas + r;
			const int64_t weight = weight_of(phase, i, r);

			*addend_of(phase, 0, r) = (phase->losses[place] + penalty) * (double)weight;
			phase->weight += (double)weight;
			for (int64_t s = 0; s < states; s++)
				*addend_of(phase, s + 1, r) = phase->sums[place * states + s];
		}
		add_step(phase, i, step_loss(phase, i));
	}
}

/* Add one result for each pipeline run and replica, all with the same weight. */
static void add_accumulated(struct train_phase *phase)
{
	const int replicas = phase->session->layout->replicas;
	const int64_t together = together_of(phase);
	const struct metric_list *metrics = &phase->program->metrics;

	for (int64_t i = together - 1; i < phase->session->execution.steps; i += together) {
		for (int64_t r = 0; r < replicas; r++) {
			train_phase_step(phase, i, r, phase->values);
			*addend_of(phase, 0, r) = phase->values[0];
			for (int64_t s = 0; s < metrics->states; s++)
				*addend_of(phase, s + 1, r) = phase->step[s];
			for (int m = 0; m < metrics->count; m++) {
				const int64_t first = metrics->items[m].first_state;

				if (!metric_is_mean(&metrics->items[m]))
					continue;
				*addend_of(phase, first + 1, r) = phase->values[m + 1];
				*addend_of(phase, first + 2, r) = 1.0;
			}
		}
		phase->weight += replicas;
		add_step(phase, i,
			 train_tree_sum(addend_of(phase, 0, 0), replicas) / (double)replicas);
	}
}

static void update_figures(struct train_phase *phase)
{
	struct train_figures *figures = phase->figures;

	if (figures->count == 0)
		return;
	figures->values[0] = phase->weight > 0.0 ? phase->loss / phase->weight : NAN;
	for (int m = 0; m + 1 < figures->count; m++) {
		const struct metric *metric = &phase->program->metrics.items[m];

		figures->values[m + 1] = metric_result(metric, phase->states + metric->first_state);
	}
}

void train_phase_begin(struct train_phase *phase)
{
	phase->loss = phase->weight = 0.0;
	for (int64_t i = 0; i < phase->program->metrics.states; i++)
		phase->states[i] = 0.0;
	update_figures(phase);
}

void train_phase_snapshot(struct train_phase *phase, struct snapshot *snapshot)
{
	snapshot_real(snapshot, "epoch/loss", &phase->loss);
	snapshot_real(snapshot, "epoch/weight", &phase->weight);
	snapshot_field(snapshot, "epoch/metrics", phase->states,
		       (size_t)phase->program->metrics.states * sizeof(*phase->states));
	update_figures(phase);
}

void train_phase_record(const struct train_phase *phase, int64_t epoch)
{
	const struct train_figures *figures = phase->figures;
	const struct metric_list *metrics = &phase->program->metrics;

	for (int i = 0; phase->weight > 0.0 && i < figures->count; i++)
		train_record_metric(phase->session, phase->mode, epoch, IPS_NULL, IPS_NULL,
				    figures->names[i], figures->values[i]);
	for (int m = 0; phase->weight > 0.0 && m < metrics->count; m++)
		if (metrics->items[m].kind == METRIC_CONFUSION)
			train_record_confusion(phase->session, phase->mode, epoch,
					       &metrics->items[m],
					       phase->states + metrics->items[m].first_state);
}

/* ---- life cycle ------------------------------------------------------------------------------ */

IPS_SITE(DECODE, "data", "decode");

/* Called by the feed's thread. */
static void record_decoding(void *user, int replica, int64_t step, int64_t items, bool ends)
{
	const struct train_phase *phase = user;
	struct ips_track *track = phase->session->data_track[phase->mode];
	struct ips_keys keys = IPS_KEYS_NULL;

	if (ends) {
		ips_span_end(track);
		return;
	}
	keys.mode = (uint8_t)phase->mode;
	keys.step = step;
	keys.replica = replica;
	ips_track_set_keys(track, &keys);
	ips_span_begin(track, &DECODE);
	ips_span_arg_int(track, "images", items);
}

/* Return the number of steps prepared ahead. By default a thread is worthwhile for resized and
 * decoded images. It covers a pipeline, whose first stage is ahead of the last, which reads the
 * targets: with less, an IPU of both would wait for a batch whose place is free only after its own
 * next work. What is decoded has no feed without a thread. */
static int feed_depth(const struct train_phase *phase, const struct dataset *set)
{
	const struct train_session *session = phase->session;
	const struct ipu_schedule *schedule = phase->program->schedule;
	const int64_t asked = session->run->data.prefetch;
	const int least = schedule ? ipu_schedule_ahead(schedule) : 1;

	if (asked > 0)
		return max((int)asked, least);
	if (asked == 0)
		return set->decoder ? least : 0;
	return !set->resize && !set->decoder ? 0 : max(1 + session->layout->stages, least);
}

/* Create the feed: one pass for each epoch, unless the run file gives the steps. */
static enum status new_feed(struct train_phase *phase, struct err *err)
{
	const struct train_session *session = phase->session;
	const struct run_file *run = session->run;
	const struct run_layout *layout = session->layout;
	const int64_t given[TRAIN_MODES] = {
		[IPS_TRAIN] = run->fit.steps_per_epoch,
		[IPS_EVALUATE] = run->evaluate.steps,
		[IPS_PREDICT] = run->predict.steps,
	};
	const int64_t passed[TRAIN_MODES] = {
		[IPS_TRAIN] = layout->steps_per_epoch,
		[IPS_EVALUATE] = layout->evaluate_steps,
		[IPS_PREDICT] = layout->predict_steps,
	};
	const bool train = phase->mode == IPS_TRAIN;
	const struct dataset *set = train ? session->train_set : session->test_set;
	struct dataset_feed_params params = {
		.set = set,
		.batch = run->data.batch_size,
		.replicas = layout->replicas,
		.first_taken = session->first_replica,
		.taken = session->replicas,
		.shuffle = train ? run->data.shuffle : 0,
		.seed = run->fit.seed,
		.partial = !run->data.drop_remainder,
		.pad = !run->data.pad_remainder
			       ? 0
			       : layout->replicas * (given[phase->mode] ? 1 : passed[phase->mode]),
		.no_targets = phase->mode == IPS_PREDICT,
		.first_step = train ? 0 : session->steps[phase->mode],
		.skip = train ? session->steps[phase->mode] : 0,
		.steps = passed[phase->mode] * (train ? run->fit.epochs : 1),
		.pass_steps = train && run->fit.steps_per_epoch == 0 ? layout->steps_per_epoch : 0,
		.depth = feed_depth(phase, set),
		.positions = loss_positions(session->model),
		.weigh_parts = run->fit.class_weight,
		.threads = (unsigned)run->host.threads,
		.user = phase,
	};

	if (set->decoder && session->recording) {
		if (train_record_data(phase->session, phase->mode, err) != ST_OK)
			return err->status;
		params.decoding = record_decoding;
	}
	if (train && run->fit.class_weight) {
		if (run_class_weights(&phase->class_weights, run, err) != ST_OK)
			return err->status;
		params.class_weights = &phase->class_weights;
	}
	return dataset_feed_new(&phase->feed, &params, err);
}

/* Return the floats of a step's predictions on one replica: [batch, output]. */
static size_t output_floats(const struct train_session *session)
{
	const struct model *model = session->model;

	return (size_t)session->run->data.batch_size *
	       (size_t)model_shape_count(&model->layers[model->layer_count - 1].output);
}

/* One block has all results except the outputs; `losses` is its begin. */
static enum status new_results(struct train_phase *phase, struct err *err)
{
	const struct train_session *session = phase->session;
	const struct run_layout *layout = session->layout;
	const size_t replicas = (size_t)layout->replicas;
	const size_t places = (size_t)phase->program->steps_per_execution * replicas;
	const size_t runs = phase->mode == IPS_TRAIN ? (size_t)layout->updates_per_execution : 1;
	const size_t penalties = runs * (size_t)session->model->layer_count;
	const size_t values = (size_t)phase->program->metrics.count + 1;
	const size_t states = (size_t)phase->program->metrics.states + 1; /* with the loss */

	phase->losses = mem_calloc(places + penalties + values + (places + 2 + replicas) * states,
				   sizeof(*phase->losses));
	if (!phase->losses)
		return err_nomem(err);
	phase->penalties = phase->losses + places;
	phase->values = phase->penalties + penalties;
	phase->sums = phase->values + values;
	phase->states = phase->sums + places * states;
	phase->step = phase->states + states;
	phase->addends = phase->step + states;
	if (phase->mode != IPS_PREDICT)
		return ST_OK;
	phase->outputs = mem_calloc(places, output_floats(session) * sizeof(*phase->outputs));
	return !phase->outputs ? err_nomem(err) : ST_OK;
}

/* As on the IPU, where the weights of another program come from the host, which has the first
 * replica's: while training, each replica has its own moving statistics. */
static void broadcast_weights(struct train_session *session)
{
	const struct train_replica *first = &session->replica[0];

	train_ranks_weights(session, first->weights);
	if (session->first_replica > 0)
		train_replica_round(session, &session->replica[0]);
	for (int r = 1; r < session->replicas; r++) {
		memcpy(session->replica[r].weights, first->weights,
		       session->model->weights * sizeof(*first->weights));
		train_replica_round(session, &session->replica[r]);
	}
}

enum status train_phase_new(struct train_phase **out, struct train_session *session,
			    enum ips_mode mode, struct train_screen *screen, struct err *err)
{
	struct train_phase *phase = mem_calloc(1, sizeof(*phase));

	*out = NULL;
	if (!phase)
		return err_nomem(err);
	phase->session = session;
	phase->screen = screen;
	phase->mode = mode;
	phase->program = &session->plan->program[mode];
	phase->figures = &session->program[mode].figures;
	if (new_results(phase, err) != ST_OK || new_feed(phase, err) != ST_OK) {
		train_phase_free(phase);
		return err->status;
	}
	if (mode != IPS_TRAIN)
		broadcast_weights(session);
	*out = phase;
	return ST_OK;
}

void train_phase_free(struct train_phase *phase)
{
	if (!phase)
		return;
	dataset_feed_free(phase->feed);
	run_class_weights_free(&phase->class_weights);
	mem_free(phase->losses);
	mem_free(phase->outputs);
	mem_free(phase);
}

/* ---- before an execution --------------------------------------------------------------------- */

static void reset_signals(struct train_session *session)
{
	train_stop_reset(&session->stop_early);
	for (int r = 0; r < session->replicas; r++) {
		for (int s = 0; s < session->layout->stages; s++) {
			struct train_stage *stage = &session->replica[r].stage[s];

			atomic_store(&stage->forward_done.value, 0);
			atomic_store(&stage->forward_taken.value, 0);
			atomic_store(&stage->backward_done.value, 0);
		}
		atomic_store(&session->replica[r].steps_done, 0);
		session->replica[r].runs_recorded = 0;
	}
	for (int i = 0; i < session->worker_count; i++)
		atomic_store(&session->worker[i].runs_done, 0);
}

static void plan_execution(struct train_phase *phase, int64_t epoch)
{
	struct train_session *session = phase->session;
	const bool train = phase->mode == IPS_TRAIN;
	const int64_t steps = phase->program->steps_per_execution;

	session->execution = (struct train_execution){
		.mode = phase->mode,
		.epoch = epoch,
		.execution = session->executions,
		.first_step = session->steps[phase->mode],
		.steps = steps,
		.microbatches = train ? session->layout->accumulation : steps,
		.runs = train ? steps / session->layout->accumulation : 1,
		.first_update = session->updates,
		.schedule = phase->program->schedule,
		.timeline = !session->device ? NULL : session->device->timeline[phase->mode],
		.start_cycle = session->device_cycle,
		.traced = session->executions < session->trace_executions,
		.feed = phase->feed,
		.losses = phase->losses,
		.penalties = phase->penalties,
		.sums = phase->sums,
		.outputs = phase->outputs,
		.output_floats = output_floats(session),
		.program = phase->program,
	};
	phase->evaluated = 0;
	phase->gathered = false;
	reset_signals(session);
}

/* ---- while it runs --------------------------------------------------------------------------- */

/* Return the pipeline runs that every replica has completed. */
static int64_t runs_done(const struct train_session *session)
{
	int64_t least = session->execution.runs;

	for (int r = 0; r < session->replicas; r++) {
		const int64_t done = train_replica_runs_done(session, r);

		least = min(done, least);
	}
	return least;
}

/* Does not read the execution's length, which only the main thread may while it can be cut short.
 * The progress of other ranks is known only at the end. */
int64_t train_phase_steps_done(const struct train_phase *phase)
{
	const struct train_session *session = phase->session;
	int64_t least = INT64_MAX;

	if (session->ranks)
		return phase->gathered ? session->execution.steps : 0;
	for (int r = 0; r < session->replicas; r++) {
		const int64_t done =
			atomic_load_explicit(&session->replica[r].steps_done, memory_order_acquire);

		least = min(done, least);
	}
	return least;
}

/* Record as far ahead as the workers are expected to get until the next poll, so that little
 * remains when they end, and an interrupt waits little. @before: runs completed at the last
 * poll. */
static int64_t record_ahead(struct train_session *session, int64_t before)
{
	const int64_t done = runs_done(session);
	const int64_t ahead = done + 2 * (done - before) + 1;

	train_record_runs(session, false);
	train_outfeed_finalize(session, done, false);
	if (!train_interrupted() && !train_stop_asked(&session->stop_early))
		train_record_device(session, min(ahead, session->execution.runs));
	return done;
}

/* Pass the losses that all replicas have computed since the last call to the health rules. */
static void check_losses(struct train_phase *phase)
{
	struct train_session *session = phase->session;
	const int64_t done = train_phase_steps_done(phase), together = together_of(phase);

	if (!train_outfeed_health(session) || phase->mode != IPS_TRAIN)
		return;
	for (; phase->evaluated + together <= done; phase->evaluated += together) {
		double sum = 0;

		for (int64_t i = 0; i < together; i++)
			sum += step_loss(phase, phase->evaluated + i);
		train_health_loss(session,
				  session->execution.first_step + phase->evaluated + together - 1,
				  sum / (double)together);
	}
}

static void wait_for_workers(struct train_phase *phase, int64_t number)
{
	struct train_session *session = phase->session;
	int64_t done = record_ahead(session, 0);

	check_losses(phase);

	for (int i = 0; i < session->worker_count; i++) {
		while (!train_signal_wait_ms(&session->worker[i].finished, number, LOOK_MS)) {
			ips_memory_sample(session->main_track);
			done = record_ahead(session, done);
			check_losses(phase);
			if (phase->screen)
				train_screen_progress(
					phase->screen,
					atomic_load_explicit(&session->replica[0].steps_done,
							     memory_order_relaxed) *
						session->layout->replicas);
		}
	}
}

/* A failed recording is reported when it is closed; training continues. */
bool train_recording_failed(const struct train_session *session)
{
	return session->recording && ips_recording_status(session->recording, NULL, 0) != 0;
}

static enum status first_failure(struct train_session *session, struct err *err)
{
	if (train_recording_failed(session))
		return ST_OK;
	for (int i = 0; i < session->worker_count; i++) {
		const struct err *failure = &session->worker[i].err;

		if (failure->status != ST_OK)
			return err_set(err, failure->status, "worker %d: %s", i, failure->text);
	}
	if (session->looking.status != ST_OK)
		return err_set(err, session->looking.status, "%s", session->looking.text);
	return ST_OK;
}

/* Set the keys of the current execution's spans on @track, and return their site. */
static struct ips_site *engine_run(const struct train_execution *execution, struct ips_track *track)
{
	struct ips_keys keys = IPS_KEYS_NULL;

	keys.mode = (uint8_t)execution->mode;
	keys.epoch = execution->epoch;
	keys.execution = execution->execution;
	ips_track_set_keys(track, &keys);
	return ips_site_intern("execution", "Engine::run", NULL);
}

/* Record the span above the device's lanes; the host's span is on the main track. */
static void record_engine_run(struct train_session *session)
{
	const struct train_execution *execution = &session->execution;

	if (!execution->timeline)
		return;
	ips_span_at(session->engine_track, engine_run(execution, session->engine_track),
		    ipu_target_ns(&session->device->target, execution->start_cycle),
		    ipu_target_ns(&session->device->target,
				  execution->timeline->cycles * execution->runs));
}

/* ---- an execution ---------------------------------------------------------------------------- */

double train_phase_device_step_ns(const struct train_phase *phase)
{
	const struct train_session *session = phase->session;
	const struct train_execution *execution = &session->execution;
	int64_t cycles;

	if (!execution->timeline)
		return NAN;
	cycles = execution->timeline->cycles * execution->runs + session->device->host_cycles;
	return (double)ipu_target_ns(&session->device->target, cycles) /
	       (double)(execution->steps * session->layout->replicas);
}

static void advance(struct train_phase *phase)
{
	struct train_session *session = phase->session;

	session->executions++;
	session->steps[phase->mode] += session->execution.steps;
	if (phase->mode == IPS_TRAIN)
		session->updates += session->execution.runs;
	if (session->execution.timeline)
		session->device_cycle +=
			session->execution.timeline->cycles * session->execution.runs +
			session->device->host_cycles;
}

enum status train_phase_execute(struct train_phase *phase, int64_t epoch, struct err *err)
{
	struct train_session *session = phase->session;
	struct train_execution *execution = &session->execution;
	struct ips_site *site;
	enum status status;
	int64_t start_ns, runs;

	plan_execution(phase, epoch);
	if (phase->planned)
		phase->planned(phase->user);
	site = engine_run(execution, session->main_track);
	ips_memory_sample(session->main_track);
	ips_span_begin(session->main_track, site);
	start_ns = ips_recording_now_ns(session->recording);
	train_signal_set(&session->go, session->executions + 1);
	wait_for_workers(phase, session->executions + 1);
	/* An interrupted training execution ends after the runs that all workers have completed. */
	runs = atomic_load(&session->stop_early.runs);
	if (runs < execution->runs) {
		execution->runs = runs;
		execution->steps = runs * execution->microbatches;
	}
	status = train_ranks_results(session, first_failure(session, err), err);
	phase->gathered = true;
	check_losses(phase);
	train_record_device(session, execution->runs);
	train_record_runs(session, true);
	train_outfeed_finalize(session, execution->runs, true);
	ips_span_end(session->main_track);
	train_record_execution(session, start_ns, ips_recording_now_ns(session->recording));
	record_engine_run(session);
	if (phase->mode != IPS_PREDICT && together_of(phase) > 1)
		add_accumulated(phase);
	else if (phase->mode != IPS_PREDICT)
		add_results(phase);
	update_figures(phase);
	advance(phase);
	if (phase->screen)
		train_screen_executed(phase->screen, execution->steps * session->layout->replicas);
	return status == ST_OK ? first_failure(session, err) : status;
}
