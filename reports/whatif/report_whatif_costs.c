/*
 * What each stage's functions would take: the recorded pieces, less what the change does without,
 * and what the cost model has for what the run never did.
 *
 * Threading: any; the inputs are only read. Ownership: the plan's arena.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "ipu/compile/ipu_program.h"
#include "reports/whatif/report_whatif_internal.h"

/* ---- another machine ------------------------------------------------------------------------- */

/* Cycles there for a cycle here. */
struct scaling {
	double matrix, vector, exchange, sync, clock;
};

static struct scaling scaling_of(const struct report_whatif *whatif, const struct whatif_plan *plan)
{
	const struct ipu_target *from = &whatif->target, *to = &plan->target;
	const enum ipu_amp_mode mode = whatif->options.half ? IPU_AMP_HALF : IPU_AMP_FLOAT;
	const double tiles = (double)from->tiles / (double)to->tiles;

	return (struct scaling){
		.matrix = tiles * ipu_target_flops_cycle_tile(from, mode) /
			  ipu_target_flops_cycle_tile(to, mode),
		.vector = tiles * (double)from->vector_bytes / (double)to->vector_bytes,
		.exchange = tiles * from->exchange_bytes_cycle / to->exchange_bytes_cycle,
		.sync = to->phase_cycles / from->phase_cycles,
		.clock = to->clock_hz / from->clock_hz,
	};
}

static uint32_t scaling_assumption(const struct scaling *scaling)
{
	if (scaling->matrix != 1 || scaling->vector != 1 || scaling->exchange != 1 ||
	    scaling->sync != 1)
		return 1u << REPORT_WHATIF_MACHINE_SCALED;
	return scaling->clock != 1 ? 1u << REPORT_WHATIF_CLOCK_SCALED : 0;
}

static int64_t scaled(int64_t cycles, double factor)
{
	return factor == 1 ? cycles : (int64_t)ceil((double)cycles * factor - 1e-9);
}

static struct ipu_function_cost piece_cost(const struct whatif_piece *piece,
					   const struct scaling *scaling)
{
	const struct whatif_cycles *cycles = &piece->cycles;
	struct ipu_function_cost cost = {
		.exchange = scaled(cycles->exchange, scaling->exchange) +
			    scaled(cycles->links, scaling->clock),
		.sync = scaled(cycles->sync, scaling->sync),
		.host_io = scaled(cycles->host, scaling->clock),
	};

	cost.cycles = scaled(cycles->compute, piece->matrix ? scaling->matrix : scaling->vector) +
		      cost.exchange + cost.sync + cost.host_io;
	return cost;
}

/* ---- what stays, what comes ------------------------------------------------------------------ */

void report__whatif_add(struct ipu_function_cost *sum, const struct ipu_function_cost *cost)
{
	sum->cycles += cost->cycles;
	sum->exchange += cost->exchange;
	sum->sync += cost->sync;
	sum->host_io += cost->host_io;
}

/* Sequential needs no FIFO, nor does the last stage. */
static bool has_fifo(enum ipu_schedule_kind schedule, int stages, int stage)
{
	return schedule != IPU_SEQUENTIAL && stage + 1 < stages;
}

static bool keeps_fifo(const struct whatif_plan *plan, const struct report_whatif *whatif,
		       int stage)
{
	return !plan->resplit && has_fifo(whatif->schedule, whatif->stages, stage) &&
	       has_fifo(report__whatif_schedule(plan->kind), plan->stages, stage);
}

/* Does the piece belong to what is predicted? */
static bool piece_stays(struct whatif_plan *plan, const struct report_whatif *whatif,
			const struct whatif_piece *piece)
{
	switch (piece->move) {
	case WHATIF_FIFO:
		if (keeps_fifo(plan, whatif, piece->stage))
			return true;
		if (!has_fifo(report__whatif_schedule(plan->kind), plan->stages, 0))
			plan->assumptions |= 1u << REPORT_WHATIF_NO_FIFO;
		return false;
	case WHATIF_COLLECTIVE:
		if (plan->replicas == 1 && whatif->measured.replicas > 1)
			plan->assumptions |= 1u << REPORT_WHATIF_REDUCE_DROPPED;
		return plan->replicas == whatif->measured.replicas;
	default:
		/* Without accumulation there is nothing to add to. */
		return plan->microbatches > 1 ||
		       !(piece->accumulates || piece->function == IPU_FUNCTION_START);
	}
}

/* Recorded as computed again? */
static bool is_replayed(const struct report_whatif *whatif, int layer)
{
	for (size_t i = 0; i < whatif->piece_count; i++)
		if (whatif->pieces[i].layer == layer &&
		    whatif->pieces[i].function == IPU_FUNCTION_R)
			return true;
	return false;
}

/* All stages but the last compute again; of layers that were in the last it is not known which
 * operations: all. */
static void add_replay(struct whatif_plan *plan, const struct report_whatif *whatif,
		       const struct whatif_piece *piece, const struct ipu_function_cost *cost)
{
	const int stage = plan->stage[piece->layer];

	if (!plan->resplit || !whatif->options.recompute || stage + 1 == plan->stages ||
	    piece->function != IPU_FUNCTION_F || piece->move != WHATIF_OPERATION ||
	    piece->stage + 1 < whatif->stages || is_replayed(whatif, piece->layer))
		return;
	plan->assumptions |= 1u << REPORT_WHATIF_REPLAY_ALL;
	report__whatif_add(&plan->costs[stage].function[IPU_FUNCTION_R], cost);
}

static void add_piece(struct whatif_plan *plan, const struct report_whatif *whatif,
		      const struct whatif_piece *piece, const struct ipu_function_cost *cost)
{
	const int stage = plan->resplit ? plan->stage[piece->layer] : piece->stage;

	if (plan->resplit && piece->function == IPU_FUNCTION_R && stage + 1 == plan->stages)
		return;
	report__whatif_add(&plan->costs[stage].function[piece->function], cost);
	if (piece->weights && piece->function == IPU_FUNCTION_B)
		plan->weights[stage] += cost->cycles;
	add_replay(plan, whatif, piece, cost);
}

static void add_pieces(struct whatif_plan *plan, const struct report_whatif *whatif,
		       const struct scaling *scaling)
{
	for (size_t i = 0; i < whatif->piece_count; i++) {
		const struct whatif_piece *piece = &whatif->pieces[i];
		const struct ipu_function_cost cost = piece_cost(piece, scaling);

		if (piece_stays(plan, whatif, piece))
			add_piece(plan, whatif, piece, &cost);
	}
}

int report__whatif_stage(const struct whatif_plan *plan, const struct report_whatif *whatif,
			 int layer)
{
	return plan->resplit ? plan->stage[layer] : whatif->layers[layer].stage;
}

/*
 * Into the FIFO after the forward, out of it before the backward, or before what is computed again.
 */
static void add_fifo(struct whatif_plan *plan, const struct report_whatif *whatif, int stage,
		     const struct ipu_function_cost *one)
{
	struct ipu_function_cost *cost = plan->costs[stage].function;

	if (!has_fifo(report__whatif_schedule(plan->kind), plan->stages, stage) ||
	    keeps_fifo(plan, whatif, stage))
		return;
	report__whatif_add(&cost[IPU_FUNCTION_PUSH], one);
	report__whatif_add(&cost[cost[IPU_FUNCTION_R].cycles > 0 ? IPU_FUNCTION_R : IPU_FUNCTION_B],
			   one);
}

/* Every stage whose backward reads a tensor keeps it, once. */
static void add_stash(struct whatif_plan *plan, const struct report_whatif *whatif,
		      const struct whatif_stash *stash, const struct ipu_target *tiles)
{
	const int made = report__whatif_stage(plan, whatif, stash->made);
	const int read =
		stash->reader < 0 ? made : report__whatif_stage(plan, whatif, stash->reader);
	const bool away = whatif->options.offload_activations;
	struct ipu_function_cost one = {.cycles = ipu_fifo_cycles(tiles, stash->bytes, away)};

	if (away)
		one.host_io = one.cycles;
	else
		one.sync = (int64_t)ceil(tiles->phase_cycles);
	if (stash->own || read == made)
		add_fifo(plan, whatif, made, &one);
	if (read != made)
		add_fifo(plan, whatif, read, &one);
}

static void add_fifos(struct whatif_plan *plan, const struct report_whatif *whatif,
		      const struct ipu_target *tiles)
{
	const enum ipu_schedule_kind schedule = report__whatif_schedule(plan->kind);
	bool missing = false;

	for (int s = 0; s < plan->stages; s++)
		missing |= has_fifo(schedule, plan->stages, s) && !keeps_fifo(plan, whatif, s);
	if (!missing)
		return;
	plan->assumptions |= 1u << (whatif->stash_count > 0 ? REPORT_WHATIF_FIFO_MODEL
							    : REPORT_WHATIF_FIFO_UNKNOWN);
	for (size_t i = 0; i < whatif->stash_count; i++)
		add_stash(plan, whatif, &whatif->stashes[i], tiles);
}

static void add_sums(struct whatif_plan *plan, const struct report_whatif *whatif,
		     const struct ipu_target *tiles)
{
	if (plan->replicas == whatif->measured.replicas || plan->replicas == 1)
		return;
	plan->assumptions |= 1u << (whatif->gradients_guessed ? REPORT_WHATIF_REDUCE_LAYERS
							      : REPORT_WHATIF_REDUCE_MODEL);
	for (size_t i = 0; i < whatif->gradient_count; i++) {
		const struct whatif_gradient *tensor = &whatif->gradients[i];
		const struct ipu_function_cost cost =
			ipu_all_reduce_cost(tiles, plan->replicas, tensor->bytes);
		const int stage = report__whatif_stage(plan, whatif, tensor->layer);

		report__whatif_add(&plan->costs[stage].function[IPU_FUNCTION_U], &cost);
	}
}

/* ---- streams and copies between IPUs --------------------------------------------------------- */

/*
 * Outfeeds go with their layers; inputs to the first stage, labels, losses and metrics to the last.
 */
static void split_streams(struct whatif_plan *plan, const struct report_whatif *whatif)
{
	struct ipu_stage_cost *first = &plan->costs[0], *last = &plan->costs[plan->stages - 1];
	const int64_t labels = whatif->measured.batch * (int64_t)sizeof(float);
	struct whatif_stream all = {0};

	for (int s = 0; s < whatif->stages; s++) {
		all.infeed += whatif->streams[s].infeed;
		all.outfeed += whatif->streams[s].outfeed;
		all.update += whatif->streams[s].update;
	}
	first->infeed_bytes = whatif->stages > 1 ? whatif->streams[0].infeed : all.infeed - labels;
	last->infeed_bytes += all.infeed - first->infeed_bytes;
	for (int i = 0; i < whatif->layer_count; i++) {
		struct ipu_stage_cost *cost = &plan->costs[plan->stage[i]];
		const struct whatif_layer *layer = &whatif->layers[i];
		const int64_t out =
			layer->outfeed_bytes < all.outfeed ? layer->outfeed_bytes : all.outfeed;
		const int64_t update =
			layer->update_bytes < all.update ? layer->update_bytes : all.update;

		cost->outfeed_bytes += out;
		cost->update_bytes += update;
		all.outfeed -= out;
		all.update -= update;
	}
	last->outfeed_bytes += all.outfeed;
	last->update_bytes += all.update;
}

static void add_streams(struct whatif_plan *plan, const struct report_whatif *whatif)
{
	if (plan->resplit) {
		split_streams(plan, whatif);
		return;
	}
	for (int s = 0; s < plan->stages; s++) {
		plan->costs[s].infeed_bytes = whatif->streams[s].infeed;
		plan->costs[s].outfeed_bytes = whatif->streams[s].outfeed;
		plan->costs[s].update_bytes = whatif->streams[s].update;
	}
	plan->sends = whatif->sends;
	plan->send_count = whatif->send_count;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum status check_moves(const struct whatif_plan *plan, const struct report_whatif *whatif,
			       struct err *err)
{
	bool remote = false;

	for (size_t i = 0; i < whatif->piece_count; i++)
		remote |= whatif->pieces[i].move == WHATIF_REMOTE;
	if ((remote || whatif->options.offload_activations) &&
	    plan->target.remote_bytes_second <= 0)
		return err_set(
			err, ST_INVALID,
			"--target: the run keeps data in streaming memory, which %s does not "
			"have (ipu2 and ipu21 have)",
			plan->target.name);
	if (remote && plan->resplit)
		return err_set(err, ST_INVALID,
			       "--split: the run keeps data in streaming memory, stage by stage: "
			       "what another split would move is not known");
	if (whatif->options.sharded && plan->replicas != whatif->measured.replicas)
		return err_set(err, ST_INVALID,
			       "--replicas: the run spreads variables over its %lld replicas: "
			       "another number cannot be predicted",
			       (long long)whatif->measured.replicas);
	return ST_OK;
}

enum status report__whatif_costs(struct whatif_plan *plan, const struct report_whatif *whatif,
				 struct err *err)
{
	const struct scaling scaling = scaling_of(whatif, plan);
	const size_t stages = (size_t)plan->stages;
	struct ipu_target tiles = plan->target;
	enum status status = check_moves(plan, whatif, err);

	if (status != ST_OK)
		return status;
	tiles.tiles -= whatif->options.io_tiles;
	plan->costs = arena_alloc(plan->arena, stages, sizeof(*plan->costs));
	plan->weights = arena_alloc(plan->arena, stages, sizeof(*plan->weights));
	if (!plan->costs || !plan->weights)
		return err_nomem(err);
	plan->assumptions |= scaling_assumption(&scaling);
	add_pieces(plan, whatif, &scaling);
	add_fifos(plan, whatif, &tiles);
	add_sums(plan, whatif, &tiles);
	add_streams(plan, whatif);
	return report__whatif_accumulate(plan, whatif, &tiles, err);
}
