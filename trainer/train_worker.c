/*
 * A worker's works: forward, backward and weight update of a stage for one micro-batch, each
 * recorded and timed, and the loop that runs the works of an execution in the schedule's order.
 */
#include "trainer/train_session.h"

#include <math.h>
#include <string.h>

#include "common/clock.h"
#include "common/minmax.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/learn/optimizer_run.h"
#include "trainer/models/model_weights.h"
#include "trainer/train_phase.h"
#include "trainer/train_ranks.h"
#include "trainer/train_reduce.h"
#include "trainer/train_outfeed.h"
#include "trainer/train_record.h"

/* The current work. */
struct work {
	struct train_worker *worker;
	struct train_stage *stage;
	int number;       /* of the stage */
	int64_t run;      /* pipeline run of the execution */
	int64_t within;   /* micro-batch of the run */
	int64_t sequence; /* micro-batch of the execution: run x microbatches + within */
	struct train_outfeed_place place;
	int64_t start_ns, start_cpu_ns;
	size_t interval; /* index among the intervals of the execution */
};

static struct train_stage *stage_of(const struct work *work, int number)
{
	return &work->worker->replica->stage[number];
}

/* Return the place of the output's gradient of a micro-batch. */
static float *gradient_at(const struct train_stage *stage, int64_t sequence)
{
	return stage->gradients + (size_t)(sequence % stage->gradient_count) * stage->gradient_step;
}

static void set_place(struct work *work, char phase)
{
	const struct train_session *session = work->worker->session;

	work->place = (struct train_outfeed_place){
		.worker = work->worker,
		.keys = train_record_keys(work->worker, work->number, phase, work->run,
					  work->within),
		.update = session->execution.first_update + work->run,
		.microbatch = work->within < 0 ? session->layout->accumulation : work->within,
	};
}

/* Start the clock. Called after waiting, so that only work is timed. */
static void begin_work(struct work *work, char phase, enum train_site site)
{
	struct train_worker *worker = work->worker;
	struct train_session *session = worker->session;

	set_place(work, phase);
	if (!session->recording) {
		work->start_ns = (int64_t)clock_ns();
		return;
	}
	ips_track_set_keys(worker->track, &work->place.keys);
	work->start_cpu_ns = (int64_t)clock_thread_cpu_ns();
	ips_span_begin(worker->track, work->stage->site[site]);
	work->start_ns = ips_recording_now_ns(session->recording);
}

/* Called before the neighbours are signalled, so that a thread that sees the signal also sees the
 * interval. */
static void end_work(struct work *work)
{
	struct train_worker *worker = work->worker;
	struct train_session *session = worker->session;
	int64_t end_ns;

	if (!session->recording) {
		worker->compute_ns += (int64_t)clock_ns() - work->start_ns;
		return;
	}
	end_ns = ips_recording_now_ns(session->recording);
	ips_span_end(worker->track);
	worker->compute_ns += end_ns - work->start_ns;
	if (work->place.keys.phase != IPS_UPDATE) {
		struct ipu_interval *interval = &worker->replica->interval[work->interval];

		interval->ipu = worker->ipu;
		interval->stage = work->number;
		interval->microbatch = (int)work->within;
		interval->phase = work->place.keys.phase;
		interval->start_ns = work->start_ns;
		interval->dur_ns = end_ns - work->start_ns;
	}
	train_record_work(worker, &work->place.keys, work->start_ns, end_ns,
			  (int64_t)clock_thread_cpu_ns() - work->start_cpu_ns);
}

/* Count the time since @begin in @counter, not as compute. */
static void count_as(struct train_worker *worker, int64_t *counter, int64_t begin)
{
	const int64_t ns = (int64_t)clock_ns() - begin;

	*counter += ns;
	worker->compute_ns -= ns;
}

/* If the execution is traced, record an arrow to or from the neighbour's span of the same
 * micro-batch. */
static void draw_flow(struct work *work, struct ips_site *site, bool out, int from_stage)
{
	const struct train_session *session = work->worker->session;
	const uint64_t place = (uint64_t)(work->sequence * session->layout->replicas +
					  work->worker->replica->number);
	const uint64_t id = ((uint64_t)session->execution.execution << 40) +
			    place * (uint64_t)session->layout->stages + (uint64_t)from_stage;

	if (!session->execution.traced)
		return;
	if (out)
		ips_flow_out(work->worker->track, site, id);
	else
		ips_flow_in(work->worker->track, site, id);
}

IPS_SITE(ACTIVATIONS, "flow", "activations");
IPS_SITE(GRADIENTS, "flow", "gradients");

/* ---- forward --------------------------------------------------------------------------------- */

static void tap_activation(void *user, const struct stage_tapped *tapped)
{
	const struct work *work = user;

	train_outfeed_activation(&work->place, tapped);
}

/* Return the step as the mode counts them, over all executions. */
static int64_t step_of(const struct work *work)
{
	return work->worker->session->execution.first_step + work->sequence;
}

static int64_t items_of(const struct work *work)
{
	return dataset_feed_given(work->worker->session->execution.feed,
				  work->worker->replica->number, step_of(work));
}

/* Round the inputs to the values that the IPU computes after converting the received data to
 * floats: for uint8, values resized from bytes are rounded to bytes again. Bytes, and numbers of
 * @rows, stay exact. */
static void quantize_inputs(enum run_dtype dtype, bool rows, float *inputs, size_t count)
{
	if (dtype == RUN_FLOAT16 && !rows)
		kernel_round_half(inputs, inputs, count);
	for (size_t i = 0; i < count && dtype == RUN_UINT8; i++)
		inputs[i] = rintf(min(max(inputs[i] * 255.0f, 0.0f), 255.0f)) / 255.0f;
}

IPS_SITE(DATA_WAIT, "data", "wait for data");

/* Read the inputs, waiting if they are not decoded yet; stop the run if decoding failed. */
static int64_t read_inputs(struct work *work, float *inputs)
{
	struct train_worker *worker = work->worker;
	struct train_session *session = worker->session;
	struct dataset_feed *feed = session->execution.feed;
	const int replica = worker->replica->number;
	const bool lags = session->recording && dataset_feed_lags(feed, replica, step_of(work));
	struct err err = {ST_OK, ""};
	int64_t items;

	if (lags)
		ips_span_begin(worker->track, &DATA_WAIT);
	items = dataset_feed_inputs(feed, replica, step_of(work), inputs);
	if (lags)
		ips_span_end(worker->track);
	if (dataset_feed_failure(feed, &err) != ST_OK) {
		train_record_failed(worker, err.status, &err);
		train_stop_ask(&session->stop_early);
	}
	return items;
}

/* The first stage reads images from the data set, the others their neighbour's output. Reading
 * counts as host I/O. */
static void receive_input(struct work *work, int slot)
{
	struct stage *stage = work->stage->stage;
	struct train_session *session = work->worker->session;
	const int64_t begin = (int64_t)clock_ns();

	if (work->number == 0) {
		float *inputs = stage_input(stage, slot);
		const int64_t items = read_inputs(work, inputs);

		quantize_inputs(session->run->infeed.dtype, model_input_is_rows(session->model),
				inputs,
				(size_t)(items * model_shape_count(&session->model->input)));
		count_as(work->worker, &work->worker->host_io_ns, begin);
	} else {
		struct train_stage *from = stage_of(work, work->number - 1);

		stage_receive(stage, slot, from->stage, (int)(work->sequence % from->slots));
		train_signal_set(&from->forward_taken, work->sequence + 1);
		count_as(work->worker, &work->worker->exchange_ns, begin);
	}
}

/* Return the index of this step's results among those of the execution. */
static int64_t result_index(const struct work *work)
{
	return work->sequence * work->worker->session->layout->replicas +
	       work->worker->replica->number;
}

static void compute_loss(struct work *work, int slot)
{
	struct train_worker *worker = work->worker;
	struct train_session *session = worker->session;
	struct train_execution *execution = &session->execution;
	const struct plan_program *program = execution->program;
	const bool training = execution->mode == IPS_TRAIN;
	struct train_measured measured = {
		.model = session->model,
		.losses = &program->losses,
		.metrics = &program->metrics,
		.outputs = stage_output(work->stage->stage, slot),
		.logits = loss_takes_logits(&program->losses.items[0].loss, session->model)
				  ? stage_logits(work->stage->stage, slot)
				  : NULL,
		.there =
			dataset_feed_items(execution->feed, worker->replica->number, step_of(work)),
		.gradient = training ? gradient_at(work->stage, work->sequence) : NULL,
		.parts = work->stage->parts,
		.classes = training && worker->replica->classes.classes > 0
				   ? &worker->replica->classes
				   : NULL,
		.states = execution->sums + result_index(work) * program->metrics.states,
		.each = train_outfeed_tokens(&work->place),
	};

	measured.items = dataset_feed_targets(execution->feed, worker->replica->number,
					      step_of(work), &measured.targets);
	for (int o = 0; o < session->model->output_count; o++)
		measured.masks[o] = stage_mask(work->stage->stage, slot, o);
	execution->losses[result_index(work)] = train_measure_run(&measured);
	if (measured.each)
		train_outfeed_losses(&work->place, &measured.targets, measured.each,
				     measured.there * loss_positions(session->model));
	if (measured.gradient && worker->loss_scale.scale != 1.0)
		kernel_scale(measured.gradient, (float)worker->loss_scale.scale,
			     stage_output_count(work->stage->stage));
}

static void copy_prediction(struct work *work, int slot)
{
	const struct train_session *session = work->worker->session;
	const size_t count = stage_output_count(work->stage->stage);
	const size_t item = count / (size_t)session->run->data.batch_size;

	memcpy(session->execution.outputs + (size_t)result_index(work) * count,
	       stage_output(work->stage->stage, slot),
	       (size_t)items_of(work) * item * sizeof(float));
}

static void run_forward(struct work *work)
{
	struct train_worker *worker = work->worker;
	struct train_session *session = worker->session;
	const int last = session->layout->stages - 1;
	const int slot = (int)(work->sequence % work->stage->slots);

	if (work->number > 0)
		train_signal_wait(&stage_of(work, work->number - 1)->forward_done,
				  work->sequence + 1);
	/* Without a backward pass nothing else stops a fast stage from overwriting its output. */
	if (session->execution.mode != IPS_TRAIN && work->number < last)
		train_signal_wait(&work->stage->forward_taken,
				  work->sequence + 1 - work->stage->slots);

	begin_work(work, IPS_FORWARD, TRAIN_SITE_FORWARD);
	if (work->number > 0)
		draw_flow(work, &ACTIVATIONS, false, work->number - 1);
	receive_input(work, slot);
	stage_set_training(work->stage->stage, session->execution.mode == IPS_TRAIN);
	if (work->number == 0)
		train_outfeed_input(
			&work->place, stage_input(work->stage->stage, slot),
			(size_t)(items_of(work) * model_shape_count(&session->model->input)));
	stage_set_scores(work->stage->stage, train_outfeed_due(&work->place, TRAIN_SCORES));
	stage_forward(work->stage->stage, slot, items_of(work), (uint64_t)step_of(work),
		      worker->replica->weights,
		      train_outfeed_due(&work->place, TRAIN_OUTPUT) ? tap_activation : NULL, work);
	if (work->number == last) {
		if (session->execution.mode == IPS_PREDICT)
			copy_prediction(work, slot);
		else
			compute_loss(work, slot);
		/* Released after the results, which pollers of steps_done read. */
		atomic_store_explicit(&worker->replica->steps_done, work->sequence + 1,
				      memory_order_release);
	} else {
		draw_flow(work, &ACTIVATIONS, true, work->number);
	}
	end_work(work);
	train_signal_set(&work->stage->forward_done, work->sequence + 1);
}

/* ---- backward -------------------------------------------------------------------------------- */

/* The first micro-batch's gradients are written directly to the sums. @first: offset within the
 * stage's weights. */
static void accumulate(struct work *work, size_t first, size_t count)
{
	struct train_replica *replica = work->worker->replica;
	const struct train_accumulation how = train_accumulation_of(work->worker->session->run);
	const size_t at = work->stage->first_weight + first;

	if (work->within == 0)
		train_accumulate_first(&how, replica->accumulated + at, count);
	else
		train_accumulate(&how, replica->accumulated + at, replica->fresh + at, count,
				 work->within);
}

static void accumulate_last(struct work *work, size_t first, size_t count)
{
	const struct train_session *session = work->worker->session;
	const struct train_accumulation how = train_accumulation_of(session->run);

	train_accumulate_last(
		&how, work->worker->replica->accumulated + work->stage->first_weight + first, count,
		session->layout->accumulation, work->worker->loss_scale.scale);
}

/* Can gradients be sent to other ranks while the update's last backward pass writes them? Not if
 * something is added to them at its end, or if they change before they have been recorded. */
static bool sends_early(const struct work *work)
{
	const struct train_session *session = work->worker->session;
	const struct train_accumulation how = train_accumulation_of(session->run);

	return session->exchange && !work->stage->regularized &&
	       (session->layout->accumulation > 1 ||
		(!how.half && work->worker->loss_scale.scale == 1.0));
}

static bool is_last(const struct work *work)
{
	return work->within == work->worker->session->execution.microbatches - 1;
}

/* Send the buckets whose layers are all @layer or later ones. */
static void send_buckets(struct work *work, int layer)
{
	struct train_session *session = work->worker->session;
	struct train_stage *stage = work->stage;
	const struct train_bucket_range *range;

	for (; stage->sent < train_ranks_buckets(session, work->number); stage->sent++) {
		range = train_ranks_bucket(session, work->number, stage->sent);
		if (range->layer < layer)
			return;
		accumulate(work, range->first, range->count);
		accumulate_last(work, range->first, range->count);
		train_ranks_arrive(session, work->number, stage->sent);
	}
}

/* Return the block that receives the gradients of this micro-batch. */
static float *gradients_of(const struct work *work)
{
	const struct train_replica *replica = work->worker->replica;

	return work->within == 0 ? replica->accumulated : replica->fresh;
}

/* Process the complete gradients of this micro-batch. */
static void complete_gradients(struct work *work)
{
	const struct train_session *session = work->worker->session;
	float *gradients = gradients_of(work);

	if (work->stage->regularized)
		regularizer_gradient(stage_pool(work->stage->stage), session->model,
				     work->stage->first_layer, work->stage->layer_count,
				     work->worker->replica->weights, gradients,
				     work->worker->loss_scale.scale);
	train_outfeed_gradients(&work->place, RUN_AFTER_COMPUTE, gradients);
	work->stage->sending = NULL;
	if (is_last(work) && sends_early(work))
		send_buckets(work, 0);
	else
		accumulate(work, 0, work->stage->weight_count);
}

void train_worker_passed(void *user, int layer)
{
	struct train_stage *stage = user;

	if (stage->sending)
		send_buckets(stage->sending, layer);
}

static void run_backward(struct work *work)
{
	struct train_worker *worker = work->worker;
	struct train_session *session = worker->session;
	const bool splits = session->execution.schedule->splits;
	const int last = session->layout->stages - 1;
	const int slot = (int)(work->sequence % work->stage->slots);
	float *to_input = NULL;

	if (work->number < last)
		train_signal_wait(&stage_of(work, work->number + 1)->backward_done,
				  work->sequence + 1);
	if (work->number > 0) {
		struct train_stage *to = stage_of(work, work->number - 1);

		train_signal_wait(&to->backward_done, work->sequence + 1 - to->gradient_count);
		to_input = gradient_at(to, work->sequence);
	}

	begin_work(work, IPS_BACKWARD, TRAIN_SITE_BACKWARD);
	if (work->number < last)
		draw_flow(work, &GRADIENTS, false, work->number + 1);
	if (!splits && is_last(work) && sends_early(work))
		work->stage->sending = work;
	stage_backward(work->stage->stage, slot, worker->replica->weights,
		       gradient_at(work->stage, work->sequence), splits ? NULL : gradients_of(work),
		       to_input);
	if (!splits)
		complete_gradients(work);
	if (work->number > 0)
		draw_flow(work, &GRADIENTS, true, work->number);
	end_work(work);
	train_signal_set(&work->stage->backward_done, work->sequence + 1);
}

/* Compute the weight gradients that run_backward() deferred; only the update waits for them. */
static void run_weights(struct work *work)
{
	const int slot = (int)(work->sequence % work->stage->slots);

	begin_work(work, IPS_WEIGHTS, TRAIN_SITE_WEIGHTS);
	if (is_last(work) && sends_early(work))
		work->stage->sending = work;
	stage_backward_weights(work->stage->stage, slot, work->worker->replica->weights,
			       gradients_of(work));
	complete_gradients(work);
	end_work(work);
}

/* ---- weight update --------------------------------------------------------------------------- */

/* Count the wait as sync. */
static void wait_at(struct train_worker *worker, pthread_barrier_t *barrier)
{
	const int64_t begin = (int64_t)clock_ns();

	pthread_barrier_wait(barrier);
	count_as(worker, &worker->sync_ns, begin);
}

/* Wait for the other replicas of this stage. */
static void wait_for_replicas(struct work *work)
{
	wait_at(work->worker, &work->worker->session->barrier[work->number]);
}

/* Compute the mean over replicas; each replica of this process reduces its share of the range. */
static void reduce_replicas(struct work *work)
{
	struct train_session *session = work->worker->session;
	const size_t replicas = (size_t)session->replicas;
	const size_t mine = (size_t)(work->worker->replica->number - session->first_replica);
	const size_t from = work->stage->first_weight + work->stage->weight_count * mine / replicas;
	const size_t to =
		work->stage->first_weight + work->stage->weight_count * (mine + 1) / replicas;
	int64_t begin;

	wait_for_replicas(work);
	begin = (int64_t)clock_ns();
	train_tree_sums(session->reduced + from, session->branch, from, to - from,
			session->layout->replicas);
	train_tree_divide(session->reduced + from, to - from, session->layout->replicas);
	count_as(work->worker, &work->worker->exchange_ns, begin);
	wait_for_replicas(work);
}

/* Compute the mean over the replicas of all ranks. */
static void reduce_ranks(struct work *work)
{
	struct train_session *session = work->worker->session;
	int64_t begin = (int64_t)clock_ns();

	for (; work->stage->sent < train_ranks_buckets(session, work->number); work->stage->sent++)
		train_ranks_arrive(session, work->number, work->stage->sent);
	work->stage->sent = 0;
	count_as(work->worker, &work->worker->exchange_ns, begin);
	wait_for_replicas(work);
	begin = (int64_t)clock_ns();
	if (work->worker->replica == session->replica)
		train_ranks_wait(session, work->number,
				 session->recording ? work->worker->track : NULL);
	count_as(work->worker, &work->worker->exchange_ns, begin);
	wait_for_replicas(work);
}

/* Each replica has updated its share: exchange the shares. */
static void exchange_shares(struct work *work)
{
	struct train_session *session = work->worker->session;
	const struct train_replica *replica = work->worker->replica;
	int64_t begin = (int64_t)clock_ns();

	train_shard_publish(session, replica, work->number);
	count_as(work->worker, &work->worker->exchange_ns, begin);
	wait_for_replicas(work);
	begin = (int64_t)clock_ns();
	if (replica == session->replica)
		train_ranks_gather(session, work->number,
				   session->recording ? work->worker->track : NULL);
	count_as(work->worker, &work->worker->exchange_ns, begin);
	wait_for_replicas(work);
	train_shard_fetch(session, replica, work->number);
}

/* Return the update's gradients: accumulated, and reduced over replicas. */
static const float *finish_gradients(struct work *work)
{
	struct train_session *session = work->worker->session;
	struct train_replica *replica = work->worker->replica;

	if (!sends_early(work))
		accumulate_last(work, 0, work->stage->weight_count);
	train_outfeed_gradients(&work->place, RUN_BEFORE_APPLY, replica->accumulated);
	if (session->layout->replicas == 1)
		return replica->accumulated;
	if (session->exchange)
		reduce_ranks(work);
	else
		reduce_replicas(work);
	return session->reduced;
}

static struct work update_of(struct train_worker *worker, int64_t run, int stage)
{
	struct work work = {.worker = worker,
			    .stage = &worker->replica->stage[stage],
			    .number = stage,
			    .run = run,
			    .within = -1};

	set_place(&work, IPS_UPDATE);
	return work;
}

/*
 * Return the norm of all gradients of the model, for global_clipnorm and a dynamic loss scale: the
 * worker finishes the gradients of all its stages, then waits for the other workers.
 */
static double gradient_norm(struct train_worker *worker, int64_t run)
{
	struct train_session *session = worker->session;
	const struct ipu_schedule *schedule = session->execution.schedule;
	double sum = 0.0;

	for (int s = 0; s < session->layout->stages; s++) {
		struct work work = update_of(worker, run, s);
		const float *gradients;

		if (schedule->device[s] != worker->ipu)
			continue;
		gradients = finish_gradients(&work);
		optimizer_squares(stage_pool(work.stage->stage), work.stage->ranges,
				  work.stage->range_count, gradients, worker->replica->squares);
	}
	wait_at(worker, &session->norm_barrier);
	for (int p = 0; p < session->model->param_count; p++)
		sum += worker->replica->squares[p];
	return sqrt(sum);
}

/* Bounds repeated halving: a scale of 0 would divide the gradients by 0. */
#define LOSS_SCALE_LEAST 0x1p-126

/* Call after an update that was applied, or skipped because a gradient was not finite. */
static void adapt_loss_scale(const struct optimizer *optimizer, struct train_loss_scale *scale,
			     bool applied)
{
	if (!applied) {
		scale->skipped++;
		scale->finite = 0;
		scale->scale = max(scale->scale / 2.0, LOSS_SCALE_LEAST);
	} else if ((double)++scale->finite >= optimizer->loss_scale_growth) {
		scale->finite = 0;
		scale->scale = min(scale->scale * 2.0, LOSS_SCALE_MOST);
	}
}

static void run_updates(struct train_worker *worker, int64_t run)
{
	struct train_session *session = worker->session;
	struct train_replica *replica = worker->replica;
	const struct optimizer *optimizer = &session->optimizer;
	const bool together = optimizer_needs_whole_norm(optimizer);
	const int64_t update = session->execution.first_update + run - worker->loss_scale.skipped;
	bool applied = true;
	const float *gradients =
		session->layout->replicas > 1 ? session->reduced : replica->accumulated;
	double norm = -1.0;

	for (int s = 0; s < session->layout->stages; s++) {
		struct work work = update_of(worker, run, s);

		if (session->execution.schedule->device[s] != worker->ipu)
			continue;
		begin_work(&work, IPS_UPDATE, TRAIN_SITE_UPDATE);
		if (!together)
			gradients = finish_gradients(&work);
		else if (norm == -1.0)
			norm = gradient_norm(worker, run);
		applied = !optimizer->loss_scale_dynamic || isfinite(norm);
		if (applied)
			optimizer_run(optimizer, stage_pool(work.stage->stage), work.stage->own,
				      work.stage->own_count, replica->weights, gradients,
				      replica->slots, replica->slot_stride, update, norm);
		if (applied && session->sharded)
			exchange_shares(&work);
		train_outfeed_update(&work.place);
		if (replica->halves)
			model_round_weights(session->model, stage_pool(work.stage->stage),
					    work.stage->first_layer, work.stage->layer_count, true,
					    replica->weights, replica->halves);
		end_work(&work);
	}
	if (optimizer->loss_scale_dynamic)
		adapt_loss_scale(optimizer, &worker->loss_scale, applied);
}

/* ---- an execution ---------------------------------------------------------------------------- */

/* The weights are the same for all micro-batches of a run, and on all replicas and ranks. Each
 * layer has a penalty of its own, so that their sum does not depend on where stages are cut. */
static void compute_penalties(struct train_worker *worker, int64_t run)
{
	const struct train_session *session = worker->session;
	double *penalties = session->execution.penalties + run * session->model->layer_count;

	for (int s = 0; s < session->layout->stages; s++) {
		const struct train_stage *stage = &worker->replica->stage[s];

		if (session->execution.schedule->device[s] != worker->ipu)
			continue;
		for (int l = stage->first_layer; l < stage->first_layer + stage->layer_count; l++)
			penalties[l] = regularizer_penalty(stage_pool(stage->stage), session->model,
							   l, 1, worker->replica->weights);
	}
}

static void run_pipeline(struct train_worker *worker, int64_t run)
{
	struct train_session *session = worker->session;
	const struct train_execution *execution = &session->execution;
	const struct ipu_schedule *schedule = execution->schedule;
	const int64_t works = schedule->first[schedule->ipus];

	if (session->regularized && worker->replica == session->replica)
		compute_penalties(worker, run);
	for (int i = schedule->first[worker->ipu]; i < schedule->first[worker->ipu + 1]; i++) {
		const struct ipu_work *planned = &schedule->works[i];
		struct work work = {
			.worker = worker,
			.stage = &worker->replica->stage[planned->stage],
			.number = planned->stage,
			.run = run,
			.within = planned->microbatch,
			.sequence = run * execution->microbatches + planned->microbatch,
			.interval = (size_t)(run * works + i),
		};

		if (planned->phase == IPU_PHASE_F)
			run_forward(&work);
		else if (planned->phase == IPU_PHASE_B)
			run_backward(&work);
		else
			run_weights(&work);
	}
	if (execution->mode != IPS_TRAIN)
		return;
	atomic_store_explicit(&worker->runs_done, run + 1, memory_order_release);
	run_updates(worker, run);
}

/* Ranks could decide differently, so with ranks an execution always runs to its end. */
static bool should_continue(struct train_worker *worker, int64_t run)
{
	struct train_session *session = worker->session;
	const bool leads = worker->replica == session->replica &&
			   session->execution.schedule->device[0] == worker->ipu;

	return train_stop_goes_on(&session->stop_early, run, leads,
				  session->execution.mode == IPS_TRAIN && !session->ranks);
}

void *train_worker_main(void *argument)
{
	struct train_worker *worker = argument;
	struct train_session *session = worker->session;

	for (int64_t execution = 1;; execution++) {
		train_signal_wait(&session->go, execution);
		if (atomic_load(&session->stop))
			return NULL;
		worker->compute_ns = worker->exchange_ns = 0;
		worker->sync_ns = worker->host_io_ns = 0;
		for (int64_t run = 0; run < session->execution.runs && should_continue(worker, run);
		     run++)
			run_pipeline(worker, run);
		train_signal_set(&worker->finished, execution);
	}
}
