/*
 * Which layer is in which stage: as recorded, as written, or the best split.
 *
 * Threading: any; the inputs are only read. Ownership: the plan's arena.
 */
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "ipu/compile/ipu_program.h"
#include "ipu/ipu_partition.h"
#include "reports/whatif/report_whatif_internal.h"

#define NAME_SIZE 256

/* ---- as written ------------------------------------------------------------------------------ */

/* The next word of a list; NULL behind the last. */
static const char *next_word(const char *at, char *out, size_t size)
{
	const size_t length = strcspn(at, ",");

	str_copy(out, length + 1 < size ? length + 1 : size, at);
	return at[length] == ',' ? at + length + 1 : NULL;
}

/* "0,0,1,1" are stages; anything else names layers. */
static bool are_numbers(const char *split)
{
	return strspn(split, "0123456789,") == strlen(split);
}

static enum status split_numbers(struct whatif_plan *plan, const struct report_whatif *whatif,
				 const char *split, struct err *err)
{
	char word[NAME_SIZE];
	const char *at = split;
	int count = 0, last = 0;

	for (; at && count < whatif->layer_count; count++) {
		long long stage;

		at = next_word(at, word, sizeof(word));
		if (!str_to_int(word, &stage) || stage < 0 || stage >= IPU_PIPELINE_STAGES_MAX ||
		    (count == 0 && stage != 0) || stage < last || stage > last + 1)
			return err_set(err, ST_INVALID,
				       "--split: \"%s\" for %s: a layer is in the stage of the one "
				       "before or in the next, the first in 0",
				       word, whatif->layers[count].name);
		plan->stage[count] = last = (int)stage;
	}
	if (at || count < whatif->layer_count)
		return err_set(err, ST_INVALID,
			       "--split: a stage for each of the %d layers, or the names of those "
			       "that begin stages",
			       whatif->layer_count);
	plan->stages = last + 1;
	return ST_OK;
}

static int find_layer(const struct report_whatif *whatif, const char *name)
{
	for (int i = 0; i < whatif->layer_count; i++)
		if (!strcmp(whatif->layers[i].name, name))
			return i;
	return -1;
}

static enum status no_layer(const struct report_whatif *whatif, const char *name,
			    struct arena *arena, struct err *err)
{
	const char **names = arena_alloc(arena, (size_t)whatif->layer_count, sizeof(*names));
	const char *near;

	if (!names)
		return err_nomem(err);
	for (int i = 0; i < whatif->layer_count; i++)
		names[i] = whatif->layers[i].name;
	near = str_nearest(name, names, (size_t)whatif->layer_count);
	return err_set(err, ST_NOTFOUND, "--split: there is no layer \"%s\" (did you mean \"%s\"?)",
		       name, near ? near : names[whatif->layer_count - 1]);
}

static enum status split_names(struct whatif_plan *plan, const struct report_whatif *whatif,
			       const char *split, struct err *err)
{
	char word[NAME_SIZE];
	int from = 0, stage = 0;

	for (const char *at = split; at;) {
		int layer;

		at = next_word(at, word, sizeof(word));
		layer = find_layer(whatif, word);
		if (layer < 0)
			return no_layer(whatif, word, plan->arena, err);
		/* The first stage begins with the first layer, said or not. */
		if (layer == 0 && stage == 0 && from == 0)
			continue;
		if (layer <= from || stage + 1 >= IPU_PIPELINE_STAGES_MAX)
			return err_set(err, ST_INVALID,
				       "--split: %s does not come after %s in the model", word,
				       whatif->layers[from].name);
		for (int i = from; i < layer; i++)
			plan->stage[i] = stage;
		from = layer;
		stage++;
	}
	for (int i = from; i < whatif->layer_count; i++)
		plan->stage[i] = stage;
	plan->stages = stage + 1;
	return ST_OK;
}

/* ---- the best -------------------------------------------------------------------------------- */

struct units {
	struct ipu_unit *unit;
	struct ipu_flow *flow;
	int *kept;
	int flow_count;
};

static int64_t piece_cycles(const struct whatif_piece *piece)
{
	const struct whatif_cycles *cycles = &piece->cycles;

	return cycles->compute + cycles->exchange + cycles->links + cycles->sync + cycles->host;
}

static void add_units(struct units *units, const struct report_whatif *whatif)
{
	int shared = -1;

	for (int i = 0; i < whatif->layer_count; i++) {
		units->unit[i].computes = whatif->layers[i].computes;
		for (int j = shared + 1; whatif->layers[i].joined && shared >= 0 && j <= i; j++)
			units->unit[j].joined = true;
		if (whatif->layers[i].joined)
			shared = i;
	}
	for (size_t i = 0; i < whatif->piece_count; i++) {
		const struct whatif_piece *piece = &whatif->pieces[i];
		struct ipu_unit *unit = &units->unit[piece->layer];

		if (piece->move == WHATIF_FIFO)
			continue;
		if (piece->function == IPU_FUNCTION_F)
			unit->forward += piece_cycles(piece);
		else if (piece->function == IPU_FUNCTION_B)
			unit->backward += piece_cycles(piece);
		else if (piece->function == IPU_FUNCTION_U)
			unit->update += piece_cycles(piece);
	}
}

static void add_hosts(struct units *units, const struct report_whatif *whatif,
		      const struct ipu_target *target)
{
	struct ipu_unit *last = &units->unit[whatif->layer_count - 1];
	int64_t in = 0, out = 0;

	if (whatif->options.overlap)
		return;
	for (int s = 0; s < whatif->stages; s++) {
		in += whatif->streams[s].infeed;
		out += whatif->streams[s].outfeed;
	}
	/* IPUs of one link to the host wait for one another. */
	units->unit[0].host = ipu_stream_copy(target, (double)in, target->host_bytes_second).cycles;
	last->host += ipu_stream_copy(target, (double)in, target->host_bytes_second).cycles +
		      ipu_stream_copy(target, (double)out, target->host_bytes_second).cycles;
}

/* The flow that is a layer's output: the first ones are, in the order of layers. */
static void add_outputs(struct units *units, const struct report_whatif *whatif)
{
	units->flow_count = whatif->layer_count;
	for (int i = 0; i < whatif->layer_count; i++)
		units->flow[i] = (struct ipu_flow){
			.bytes = whatif->layers[i].computes ? whatif->layers[i].output_bytes : 0,
			.made = i,
			.last = i};
	for (size_t i = 0; i < whatif->edge_count; i++) {
		struct ipu_flow *flow = &units->flow[whatif->layers[whatif->edges[i].from].maker];

		if (flow->last < whatif->edges[i].to)
			flow->last = whatif->edges[i].to;
	}
}

/* What backward passes read: the outputs, or flows of their own. */
static void add_stashes(struct units *units, const struct report_whatif *whatif,
			const struct ipu_target *target)
{
	for (size_t i = 0; i < whatif->stash_count; i++) {
		const struct whatif_stash *stash = &whatif->stashes[i];
		struct ipu_flow *flow = &units->flow[stash->made];
		int *kept = &units->kept[2 * i];

		if (flow->bytes != stash->bytes || flow->kept) {
			flow = &units->flow[units->flow_count++];
			*flow = (struct ipu_flow){
				.bytes = stash->bytes, .made = stash->made, .last = stash->made};
		}
		if (stash->own)
			kept[flow->kept_count++] = stash->made;
		if (stash->reader > stash->made)
			kept[flow->kept_count++] = stash->reader;
		if (flow->kept_count > 0 && flow->last < kept[flow->kept_count - 1])
			flow->last = kept[flow->kept_count - 1];
		flow->kept = kept;
		flow->fifo =
			ipu_fifo_cycles(target, stash->bytes, whatif->options.offload_activations);
	}
}

static enum status units_init(struct units *units, const struct whatif_plan *plan,
			      const struct report_whatif *whatif, struct err *err)
{
	const size_t layers = (size_t)whatif->layer_count, stashes = whatif->stash_count;

	*units = (struct units){
		.unit = arena_alloc(plan->arena, layers, sizeof(*units->unit)),
		.flow = arena_alloc(plan->arena, layers + stashes, sizeof(*units->flow)),
		.kept = arena_alloc(plan->arena, 2 * stashes + 1, sizeof(*units->kept)),
	};
	if (!units->unit || !units->flow || !units->kept)
		return err_nomem(err);
	add_units(units, whatif);
	add_hosts(units, whatif, &plan->target);
	add_outputs(units, whatif);
	add_stashes(units, whatif, &plan->target);
	return ST_OK;
}

static enum status split_auto(struct whatif_plan *plan, const struct report_whatif *whatif,
			      int stages, struct err *err)
{
	struct ipu_partition *partition;
	struct ipu_partition_params params = {
		.unit_count = whatif->layer_count,
		.stages = stages,
		.schedule = report__whatif_schedule(plan->kind),
		.training = true,
		.recompute = whatif->options.recompute,
		.offload_activations = whatif->options.offload_activations,
		.link_bytes_cycle = plan->target.link_bytes_second / plan->target.clock_hz,
		.sync_cycles = ipu_sync_cycles(&plan->target, stages),
	};
	struct units units;
	enum status status = units_init(&units, plan, whatif, err);

	if (status != ST_OK)
		return status;
	params.units = units.unit;
	params.flows = units.flow;
	params.flow_count = units.flow_count;
	status = ipu_partition_new(&partition, &params, err);
	if (status != ST_OK) {
		err_prefix(err, "--split auto");
		return status;
	}
	for (int s = 0; s < stages; s++)
		for (int i = 0; i < partition->stage[s].count; i++)
			plan->stage[partition->stage[s].first + i] = s;
	plan->stages = stages;
	ipu_partition_free(partition);
	return ST_OK;
}

/* ---- what follows ---------------------------------------------------------------------------- */

/* Every stage has a layer that computes. */
static enum status check_split(const struct whatif_plan *plan, const struct report_whatif *whatif,
			       struct err *err)
{
	for (int i = 0; i < whatif->layer_count;) {
		const int first = i, stage = plan->stage[i];
		bool computes = false;

		for (; i < whatif->layer_count && plan->stage[i] == stage; i++)
			computes |= whatif->layers[i].computes;
		if (!computes)
			return err_set(err, ST_INVALID,
				       "--split: stage %d, from %s on, has no layer that computes",
				       stage, whatif->layers[first].name);
	}
	return ST_OK;
}

static int64_t *send_get(struct whatif_plan *plan, int from, int to)
{
	for (int i = 0; i < plan->send_count; i++)
		if (plan->sends[i].from == from && plan->sends[i].to == to)
			return &plan->sends[i].bytes;
	plan->sends[plan->send_count] = (struct ipu_send){from, to, 0};
	return &plan->sends[plan->send_count++].bytes;
}

/* Is the output of @maker read in this stage by an edge before @edge? */
static bool is_sent(const struct whatif_plan *plan, const struct report_whatif *whatif, int maker,
		    int stage, size_t edge)
{
	for (size_t i = 0; i < edge; i++)
		if (plan->stage[whatif->edges[i].to] == stage &&
		    whatif->layers[whatif->edges[i].from].maker == maker)
			return true;
	return false;
}

/* To each later stage that reads it goes a layer's output, once. */
static enum status split_sends(struct whatif_plan *plan, const struct report_whatif *whatif,
			       struct err *err)
{
	plan->sends = arena_alloc(plan->arena, whatif->edge_count + 1, sizeof(*plan->sends));
	if (!plan->sends)
		return err_nomem(err);
	for (size_t i = 0; i < whatif->edge_count; i++) {
		const int to = plan->stage[whatif->edges[i].to];
		const int maker = whatif->layers[whatif->edges[i].from].maker;

		if (plan->stage[maker] < to && !is_sent(plan, whatif, maker, to, i))
			*send_get(plan, plan->stage[maker], to) +=
				whatif->layers[maker].output_bytes;
	}
	return ST_OK;
}

/* Another number of stages has an IPU for each. */
static enum status split_devices(struct whatif_plan *plan, const struct report_whatif *whatif,
				 struct err *err)
{
	plan->device = whatif->device;
	plan->ipus = whatif->ipus;
	if (plan->stages == whatif->stages)
		return ST_OK;
	plan->ipus = plan->stages;
	plan->device = arena_alloc(plan->arena, (size_t)plan->stages, sizeof(*plan->device));
	for (int s = 0; plan->device && s < plan->stages; s++)
		plan->device[s] = s;
	return plan->device ? ST_OK : err_nomem(err);
}

static bool is_recorded(const struct whatif_plan *plan, const struct report_whatif *whatif)
{
	for (int i = 0; i < whatif->layer_count; i++)
		if (plan->stage[i] != whatif->layers[i].stage)
			return false;
	return plan->stages == whatif->stages;
}

static enum status split_read(struct whatif_plan *plan, const struct report_whatif *whatif,
			      const struct report_whatif_change *change, struct err *err)
{
	const int stages = change->stages > 0 ? change->stages : whatif->stages;
	const char *split = change->split;
	enum status status;

	if (!split || !strcmp(split, "auto"))
		return split_auto(plan, whatif, stages, err);
	status = are_numbers(split) ? split_numbers(plan, whatif, split, err)
				    : split_names(plan, whatif, split, err);
	if (status == ST_OK && change->stages > 0 && change->stages != plan->stages)
		return err_set(err, ST_INVALID, "--split has %d stages, --stages says %d",
			       plan->stages, change->stages);
	return status == ST_OK ? check_split(plan, whatif, err) : status;
}

enum status report__whatif_split(struct whatif_plan *plan, const struct report_whatif *whatif,
				 const struct report_whatif_change *change, struct err *err)
{
	const bool asked =
		change->split || (change->stages > 0 && change->stages != whatif->stages);
	enum status status = ST_OK;

	plan->stages = whatif->stages;
	plan->stage = arena_alloc(plan->arena, (size_t)whatif->layer_count, sizeof(*plan->stage));
	if (!plan->stage)
		return err_nomem(err);
	for (int i = 0; i < whatif->layer_count; i++)
		plan->stage[i] = whatif->layers[i].stage;
	if (asked)
		status = split_read(plan, whatif, change, err);
	plan->resplit = status == ST_OK && asked && !is_recorded(plan, whatif);
	if (status == ST_OK && plan->resplit) {
		plan->assumptions |=
			1u << REPORT_WHATIF_SPLIT_CYCLES | 1u << REPORT_WHATIF_MEMORY_UNCHECKED;
		if (whatif->chain)
			plan->assumptions |= 1u << REPORT_WHATIF_SPLIT_CHAIN;
		status = split_sends(plan, whatif, err);
	}
	return status == ST_OK ? split_devices(plan, whatif, err) : status;
}
