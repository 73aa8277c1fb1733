/*
 * A replica's blocks and stages: all memory that a worker uses, allocated once.
 *
 * Ownership: the session owns it, its arena what is small; a partly initialized replica can be
 * freed too.
 */
#include "trainer/train_session.h"

#include <math.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "trainer/learn/optimizer_run.h"
#include "trainer/models/model_weights.h"
#include "trainer/train_phase.h"
#include "trainer/train_ranks.h"

#define RING_LEAST 4 /* gradients between two stages, so that one may run ahead of the other */

static const char *const STAGE_PHASES[] = {
	[TRAIN_SITE_FORWARD] = "forward",
	[TRAIN_SITE_BACKWARD] = "backward",
	[TRAIN_SITE_WEIGHTS] = "weight gradients",
	[TRAIN_SITE_UPDATE] = "weight update",
};
_Static_assert(ARRAY_LEN(STAGE_PHASES) == TRAIN_SITES, "names of works out of step");

static bool trains(const struct train_session *session)
{
	return session->plan->program[IPS_TRAIN].schedule;
}

static void find_range(const struct train_session *session, int stage, struct train_stage *out)
{
	const struct model *model = session->model;
	const int *of = session->layout->stage;
	size_t end = 0;

	out->first_layer = -1;
	for (int i = 0; i < model->layer_count; i++) {
		if (of[i] != stage)
			continue;
		if (out->first_layer < 0)
			out->first_layer = i;
		out->layer_count++;
	}
	out->first_weight = model->weights;
	for (int p = 0; p < model->param_count; p++) {
		const struct model_param *param = &model->params[p];

		if (of[param->layer] != stage)
			continue;
		out->first_weight = min(out->first_weight, param->offset);
		end = max(end, param->offset + param->count);
	}
	if (end == 0)
		out->first_weight = 0;
	out->weight_count = end - out->first_weight;
	out->regularized = regularizer_any(model, out->first_layer, out->layer_count);
}

static void trace_layer(void *user, int layer, bool begin)
{
	const struct train_stage *stage = user;

	if (begin)
		ips_span_begin(stage->track, stage->layer_site[layer]);
	else
		ips_span_end(stage->track);
}

static int stage_slots(const struct train_session *session, int number)
{
	int slots = 1;

	if (trains(session))
		slots = ipu_schedule_live(session->plan->program[IPS_TRAIN].schedule, number);
	/* Without a backward pass, the next stage copies one output while this one writes
	 * others. */
	for (int mode = IPS_TRAIN + 1; mode < TRAIN_MODES; mode++) {
		const struct ipu_schedule *schedule = session->plan->program[mode].schedule;
		int flight;

		if (!schedule || number == session->layout->stages - 1)
			continue;
		flight = ipu_schedule_in_flight(schedule, number, IPU_PHASE_F);
		slots = max(slots, max(flight, 2));
	}
	return slots;
}

static struct stage_params stage_params_of(const struct train_session *session, int number,
					   const struct train_stage *stage)
{
	const struct loss_part *loss = &session->plan->program[IPS_TRAIN].losses.items[0];

	return (struct stage_params){
		.model = session->model,
		.first_layer = stage->first_layer,
		.layer_count = stage->layer_count,
		.batch = session->run->data.batch_size,
		.slots = stage->slots,
		.training = trains(session),
		.split = trains(session) && session->plan->program[IPS_TRAIN].schedule->splits,
		.logits_loss = number == session->layout->stages - 1 && trains(session) &&
			       loss_takes_logits(&loss->loss, session->model),
		.fixed_input = true,
		.seed = session->run->fit.seed,
		.pool = session->pool,
		.openblas = session->run->host.products == RUN_PRODUCTS_OPENBLAS,
		.taps = session->taps,
	};
}

static enum status new_stage_buffers(const struct train_session *session,
				     const struct train_replica *replica, int number,
				     struct err *err)
{
	struct train_stage *stage = &replica->stage[number];
	struct stage_params params = stage_params_of(session, number, stage);
	const bool last = number == session->layout->stages - 1;
	size_t parts;

	params.replica = (uint32_t)replica->number;
	params.halves = replica->halves;
	params.trace = !session->recording ? NULL : trace_layer;
	params.trace_user = stage;
	params.passed = !session->ranks ? NULL : train_worker_passed;
	params.passed_user = stage;
	if (stage_new(&stage->stage, &params, err) != ST_OK)
		return err->status;
	/* Copies of each of several outputs need a buffer. */
	parts = last ? train_measure_parts(session->model, session->run->data.batch_size) : 0;
	if (parts > 0) {
		stage->parts = mem_aligned(parts, sizeof(*stage->parts));
		if (!stage->parts)
			return err_nomem(err);
	}
	if (!trains(session))
		return ST_OK;
	stage->gradient_step = model_align(stage_output_count(stage->stage));
	stage->gradient_count = stage->slots;
	if (!last) {
		const int flight = ipu_schedule_in_flight(
			session->plan->program[IPS_TRAIN].schedule, number + 1, IPU_PHASE_B);

		stage->gradient_count = max(flight, RING_LEAST);
	}
	stage->gradients = mem_aligned((size_t)stage->gradient_count * stage->gradient_step,
				       sizeof(*stage->gradients));
	return stage->gradients ? ST_OK : err_nomem(err);
}

double train_replica_bytes(const struct train_session *session)
{
	const double slots = (double)optimizer_slots(&session->optimizer) /
			     (session->sharded ? session->layout->replicas : 1);
	const double blocks =
		1.0 + (model_policy(session->model) != MODEL_POLICY_TEXT) +
		(trains(session) ? 1.0 + (session->layout->accumulation > 1) + slots : 0.0);
	double bytes = blocks * (double)session->model->weights * sizeof(float);

	for (int s = 0; s < session->layout->stages; s++) {
		struct train_stage stage = {.slots = stage_slots(session, s)};
		struct stage_params params;
		int64_t memory;

		find_range(session, s, &stage);
		params = stage_params_of(session, s, &stage);
		memory = stage_memory(&params);
		if (memory < 0)
			return memory == STAGE_NO_MEMORY ? (double)NAN : (double)INFINITY;
		bytes += (double)memory;
	}
	return bytes;
}

static enum status new_stage(struct train_session *session, struct train_replica *replica,
			     int number, struct err *err)
{
	const struct model *model = session->model;
	struct train_stage *stage = &replica->stage[number];
	const bool spin = pool_processors() > 1 && !session->oversubscribed;

	find_range(session, number, stage);
	session->regularized = session->regularized || stage->regularized;
	stage->slots = stage_slots(session, number);
	train_signal_init(&stage->forward_done, spin);
	train_signal_init(&stage->forward_taken, spin);
	train_signal_init(&stage->backward_done, spin);
	stage->layer_site = arena_alloc(&session->arena, (size_t)model->layer_count,
					sizeof(*stage->layer_site));
	if (!stage->layer_site)
		return err_nomem(err);
	for (int i = 0; i < model->layer_count; i++) {
		stage->layer_site[i] = ips_site_intern("layer", model->layers[i].name, NULL);
		if (!stage->layer_site[i])
			return err_nomem(err);
	}
	for (int i = 0; i < TRAIN_SITES; i++) {
		const char *name =
			arena_printf(&session->arena, "stage %d %s", number, STAGE_PHASES[i]);

		stage->site[i] = !name ? NULL : ips_site_intern("stage", name, NULL);
		if (!stage->site[i])
			return err_nomem(err);
	}
	if (optimizer_ranges_new(&stage->ranges, &stage->range_count, &session->optimizer,
				 session->model, stage->first_layer, stage->layer_count,
				 err) != ST_OK)
		return err->status;
	return new_stage_buffers(session, replica, number, err);
}

/* Return the intervals of the longest execution; 1 without a recording, which needs none. */
static size_t most_works(const struct train_session *session)
{
	size_t most = 1;

	for (int mode = IPS_TRAIN; session->recording && mode < TRAIN_MODES; mode++) {
		const struct ipu_schedule *schedule = session->plan->program[mode].schedule;
		const int64_t runs = mode == IPS_TRAIN ? session->layout->updates_per_execution : 1;
		const size_t works = !schedule ? 0 : (size_t)schedule->first[schedule->ipus];

		most = max(most, works * (size_t)runs);
	}
	return most;
}

static enum status new_blocks(const struct train_session *session, struct train_replica *replica,
			      struct err *err)
{
	const struct {
		float **block;
		bool wanted;
	} blocks[] = {
		{&replica->weights, true},
		{&replica->halves, model_policy(session->model) != MODEL_POLICY_TEXT},
		{&replica->accumulated, trains(session)},
		{&replica->fresh, trains(session) && session->layout->accumulation > 1},
	};
	const bool squares = trains(session) && optimizer_needs_whole_norm(&session->optimizer);

	for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
		if (!blocks[i].wanted)
			continue;
		*blocks[i].block = mem_aligned(session->model->weights + 1, sizeof(float));
		if (!*blocks[i].block)
			return err_nomem(err);
	}
	if (squares)
		replica->squares =
			mem_calloc((size_t)session->model->param_count + 1, sizeof(double));
	return squares && !replica->squares ? err_nomem(err) : ST_OK;
}

int64_t train_replica_runs_done(const struct train_session *session, int replica)
{
	const struct train_worker *worker =
		&session->worker[replica * session->workers_per_replica];
	int64_t least = session->execution.runs;

	for (int i = 0; i < session->workers_per_replica; i++) {
		const int64_t done =
			atomic_load_explicit(&worker[i].runs_done, memory_order_acquire);

		least = min(done, least);
	}
	return least;
}

void train_replica_round(const struct train_session *session, struct train_replica *replica)
{
	if (replica->halves)
		model_round_weights(session->model, session->pool, 0, session->model->layer_count,
				    false, replica->weights, replica->halves);
}

enum status train_replica_init(struct train_session *session, int index, struct err *err)
{
	struct train_replica *replica = &session->replica[index];
	const size_t slots = (size_t)optimizer_slots(&session->optimizer);
	const size_t ipus = (size_t)session->layout->ipus_per_replica;
	struct arena *arena = &session->arena;

	if (new_blocks(session, replica, err) != ST_OK)
		return err->status;
	replica->number = session->first_replica + index;
	replica->interval = mem_calloc(most_works(session), sizeof(*replica->interval));
	replica->device_track = arena_alloc(arena, ipus, sizeof(struct ips_track *));
	replica->io_track = arena_alloc(arena, ipus, sizeof(struct ips_track *));
	replica->stage =
		arena_alloc(arena, (size_t)session->layout->stages, sizeof(*replica->stage));
	if (!replica->interval || !replica->device_track || !replica->io_track || !replica->stage)
		return err_nomem(err);
	model_init_weights(session->model, replica->weights, session->run->fit.seed);
	train_replica_round(session, replica);
	for (int s = 0; s < session->layout->stages; s++)
		if (new_stage(session, replica, s, err) != ST_OK)
			return err->status;
	if (!trains(session))
		return ST_OK;
	/* After the stages, whose ranges the shares cut. */
	if (train_shard_new(session, replica, err) != ST_OK)
		return err->status;
	if (slots == 0)
		return ST_OK;
	replica->slots = mem_aligned(replica->slot_stride * slots + 1, sizeof(float));
	if (!replica->slots)
		return err_nomem(err);
	optimizer_start(&session->optimizer, replica->slots, replica->slot_stride);
	return ST_OK;
}

void train_replica_fini(const struct train_session *session, struct train_replica *replica)
{
	for (int s = 0; replica->stage && s < session->layout->stages; s++) {
		struct train_stage *stage = &replica->stage[s];

		stage_free(stage->stage);
		if (stage->own != stage->ranges)
			mem_free(stage->own);
		mem_free(stage->ranges);
		mem_free(stage->gradients);
		mem_free(stage->parts);
		if (stage->slots > 0) {
			train_signal_fini(&stage->forward_done);
			train_signal_fini(&stage->forward_taken);
			train_signal_fini(&stage->backward_done);
		}
	}
	mem_free(replica->weights);
	mem_free(replica->halves);
	mem_free(replica->accumulated);
	mem_free(replica->fresh);
	mem_free(replica->slots);
	mem_free(replica->squares);
	mem_free(replica->interval);
	class_counts_fini(&replica->classes);
}
