/*
 * Variables of each tensor and their lifetimes in program steps.
 *
 * If stages stream (Grouped, Interleaved), every stage has its own copy of tensors from other
 * stages. An IPU's steps are one round of its loop: data that arrives at the end of a round is live
 * from the start of the next; data that is sent or pushed to a FIFO is live to the end.
 *
 * Threads: none.
 */
#include <assert.h>
#include <string.h>
#include <xxhash.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "ipu/compile/ipu_memory_internal.h"

/* Least bytes of a tensor on a tile, as in poputil::mapTensorLinearly. */
#define MEMORY_TILE_BYTES 128

/* Uses of a tensor at one place. */
struct memory_at {
	struct memory_build *build;
	int tensor, place, ipu;
	const struct memory_use *use[MEMORY_PHASES]; /* NULL: none */
	const char *suffix;                          /* of names: "" at the tensor's own place */
	bool received, sent;
	bool crosses; /* from or to another IPU */
};

/* Description of a variable to add. */
struct memory_piece {
	const char *name, *kind;
	int64_t elements, copies;
	bool always_live, on_io_tiles, crosses;
	int first, last;
};

/* ---- distribution ---------------------------------------------------------------------------- */

/* Append a run that may wrap around from the last tile to the first. */
static int add_run(struct ipu_tile_run *runs, int count, const struct memory_deal *deal,
		   int64_t first, int64_t tiles, int64_t bytes)
{
	const int64_t tile = (deal->start + first) % deal->limit;
	const int64_t before = min(deal->limit - tile, tiles);

	if (tiles == 0 || bytes == 0)
		return count;
	runs[count++] = (struct ipu_tile_run){tile, before, bytes};
	if (before < tiles)
		runs[count++] = (struct ipu_tile_run){0, tiles - before, bytes};
	return count;
}

int memory__deal(const struct memory_deal *deal, struct ipu_tile_run runs[MEMORY_RUNS])
{
	const int64_t grains = (deal->elements + deal->grain - 1) / deal->grain;
	const int64_t tiles = min(deal->tiles, grains);
	const int64_t grain_bytes = deal->grain * deal->element_bytes;
	int64_t each, more, missing;
	int count = 0;

	if (deal->elements == 0)
		return 0;
	assert(tiles >= 1 && tiles <= deal->limit);
	each = grains / tiles;
	more = grains % tiles;
	missing = (grains * deal->grain - deal->elements) * deal->element_bytes;
	if (missing == 0)
		count = add_run(runs, count, deal, more, tiles - more, each * grain_bytes);
	else
		count = add_run(runs, count, deal, more, tiles - more - 1, each * grain_bytes);
	count = add_run(runs, count, deal, 0, more, (each + 1) * grain_bytes);
	if (missing > 0)
		count = add_run(runs, count, deal, tiles - 1, 1, each * grain_bytes - missing);
	assert(count <= MEMORY_RUNS);
	return count;
}

/* ---- selection of tiles ---------------------------------------------------------------------- */

int64_t memory__node_start(const struct memory_build *build, int node)
{
	const struct ipu_op *op = &build->graph->nodes[build->same[node]].op;
	const char *name = op->name;

	if (memory__is_planned(op))
		return 0;
	/* Scale the hash to the number of tiles: a few tiles more or fewer shift all starts alike,
	 * so operations that were apart stay apart. */
	return name ? (int64_t)((XXH3_64bits(name, strlen(name)) >> 32) *
					(uint64_t)build->compute_tiles >>
				32)
		    : 0;
}

static void add_spreads(struct memory_build *build)
{
	const size_t tensors = (size_t)build->graph->tensor_count + 1;

	build->plan_node = memory__alloc(build, tensors, sizeof(*build->plan_node));
	build->like = memory__alloc(build, tensors, sizeof(*build->like));
	build->spread = memory__alloc(build, tensors, sizeof(*build->spread));
	build->cursor =
		memory__alloc(build, (size_t)build->memory->ipu_count + 1, sizeof(*build->cursor));
	if (err_stuck(build->err))
		return;
	for (int t = 0; t < build->graph->tensor_count; t++) {
		build->plan_node[t] = -1;
		build->like[t] = t;
		build->spread[t].ipu = -1;
	}
	for (int n = 0; n < build->graph->node_count; n++) {
		const struct ipu_node *of = &build->graph->nodes[n];
		int weight;

		/* Weights and results of a planned operation are mapped as its plan says. */
		if (memory__is_planned(&of->op)) {
			for (int i = 0; i < of->write_count; i++)
				if (build->plan_node[of->writes[i]] < 0)
					build->plan_node[of->writes[i]] = n;
			for (int i = 0; i < of->read_count; i++)
				if (build->graph->tensors[of->reads[i]].kind == IPU_TENSOR_WEIGHT &&
				    build->plan_node[of->reads[i]] < 0)
					build->plan_node[of->reads[i]] = n;
		}

		/* Accumulators and optimizer state are mapped like the weight that they update. */
		weight = -1;
		if (of->op.phase != IPU_PHASE_U)
			continue;
		for (int i = 0; i < of->read_count && weight < 0; i++)
			if (build->graph->tensors[of->reads[i]].kind == IPU_TENSOR_WEIGHT)
				weight = of->reads[i];
		for (int i = 0; i < of->read_count && weight >= 0; i++) {
			const enum ipu_tensor_kind kind = build->graph->tensors[of->reads[i]].kind;

			if (kind == IPU_TENSOR_ACCUMULATOR || kind == IPU_TENSOR_OPTIMIZER_STATE)
				build->like[of->reads[i]] = weight;
		}
	}
}

/* Number of tiles in the linear mapping, with at least MEMORY_TILE_BYTES on each. */
static int64_t linear_tiles(const struct memory_deal *deal)
{
	const int64_t grains = (deal->elements + deal->grain - 1) / deal->grain;
	const int64_t grain_bytes = deal->grain * deal->element_bytes;
	const int64_t least = (MEMORY_TILE_BYTES + grain_bytes - 1) / grain_bytes;
	const int64_t tiles = grains / least;

	return tiles < 1 ? 1 : tiles < deal->limit ? tiles : deal->limit;
}

/* Choose the tiles of @ipu for a tensor: those of the plan it belongs to, or the linear mapping,
 * which starts where the previous tensor ended. Sets tiles, start and limit. */
static void map_linearly(struct memory_build *build, struct memory_deal *deal, int tensor, int ipu)
{
	const int like = build->like[tensor], node = build->plan_node[like];
	struct memory_spread *spread = &build->spread[like];

	deal->limit = build->compute_tiles;
	deal->tiles = linear_tiles(deal);
	if (node >= 0) {
		const int64_t used = build->executable->plans[node]->tiles_used;

		deal->tiles = used < 1 ? 1 : used < deal->limit ? used : deal->limit;
		deal->start = memory__node_start(build, node);
		return;
	}
	if (spread->ipu != ipu) {
		*spread = (struct memory_spread){ipu, build->cursor[ipu]};
		build->cursor[ipu] = (build->cursor[ipu] + deal->tiles) % deal->limit;
	}
	deal->start = spread->start;
}

static const struct ipu_tensor *tensor_of(const struct memory_at *at)
{
	return &at->build->graph->tensors[at->tensor];
}

/* Number of elements of a tensor, scaled by batch_divisor. */
static int64_t scaled_elements(const struct memory_build *build, const struct ipu_tensor *tensor)
{
	const int64_t elements = ipu_tensor_elements(tensor);

	if (build->batch_divisor == 1 || ipu_tensor_is_variable(tensor->kind) ||
	    tensor->kind == IPU_TENSOR_WEIGHT_GRADIENT)
		return elements;
	return (elements + build->batch_divisor - 1) / build->batch_divisor;
}

static void add_piece(const struct memory_at *at, const struct memory_piece *piece)
{
	struct memory_build *build = at->build;
	const struct ipu_tensor *tensor = tensor_of(at);
	struct memory_deal deal = {.elements = piece->elements,
				   .element_bytes = ipu_dtype_bytes(tensor->dtype)};
	struct ipu_tile_run runs[MEMORY_RUNS];
	struct ipu_variable variable = {
		.name = piece->name,
		.kind = piece->kind,
		.layer = tensor->layer,
		.tensor = tensor,
		.node = -1,
		.ipu = at->ipu,
		.category = piece->always_live ? IPU_MEMORY_VARIABLES : IPU_MEMORY_NOT_ALWAYS_LIVE,
		.always_live = piece->always_live,
		.crosses = piece->crosses,
		.first_step = piece->always_live ? -1 : piece->first,
		.last_step = piece->always_live ? -1 : piece->last,
		.runs = runs,
	};

	if (!err_stuck(build->err) &&
	    (piece->elements < 0 ||
	     piece->elements >= MEMORY_MOST_BYTES / deal.element_bytes / piece->copies))
		err_set(build->err, ST_INVALID, "%s has 4 TB or more, which no IPU has memory for",
			piece->name);
	if (err_stuck(build->err))
		return;
	deal.grain = build->target->vector_bytes / deal.element_bytes;
	deal.grain = max(1, deal.grain);
	if (piece->on_io_tiles) {
		/* Tile numbers are relative to the first I/O tile. */
		deal.limit = build->memory->io_tiles;
		deal.tiles = linear_tiles(&deal);
		deal.start = 0;
	} else {
		map_linearly(build, &deal, at->tensor, at->ipu);
	}
	variable.run_count = memory__deal(&deal, runs);
	variable.bytes = piece->elements * deal.element_bytes * piece->copies;
	for (int i = 0; i < variable.run_count; i++) {
		runs[i].bytes *= piece->copies;
		if (piece->on_io_tiles)
			runs[i].tile += build->compute_tiles;
	}
	memory__add_variable(build, &variable);
}

/* The tensor's name, the suffix of the place, and @what. */
static const char *variable_name(const struct memory_at *at, const char *what)
{
	return memory__name(at->build, "%s%s%s", tensor_of(at)->name, at->suffix, what);
}

/* Add @copies of @elements that are always live, as NAME@what. */
static void add_always(const struct memory_at *at, const char *what, const char *kind,
		       int64_t elements, int64_t copies)
{
	const struct memory_piece piece = {.name = variable_name(at, what),
					   .kind = kind,
					   .elements = elements,
					   .copies = copies,
					   .always_live = true};

	add_piece(at, &piece);
}

/* Add @elements that are live at least from step @first to @last. */
static void add_while(const struct memory_at *at, const char *what, int64_t elements, int first,
		      int last)
{
	const struct memory_piece piece = {.name = variable_name(at, what),
					   .kind = ipu_tensor_kind_name(tensor_of(at)->kind),
					   .elements = elements,
					   .copies = 1,
					   .crosses = at->crosses && what[0] == '\0',
					   .first = first,
					   .last = max(first, last)};

	add_piece(at, &piece);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* Program steps of a phase at a place; with several stages the range that spans them. */
static struct memory_section section_of(const struct memory_build *build, int place,
					enum ipu_function_phase phase)
{
	struct memory_section all = {0, 0};
	bool any = false;

	for (int s = 0; s < build->graph->layout.stages; s++) {
		const struct memory_section *section = &build->sections[s][phase];

		if (memory__place(build, s) != place)
			continue;
		all.first = any && all.first < section->first ? all.first : section->first;
		all.end = any ? max(all.end, section->end) : section->end;
		any = true;
	}
	return all;
}

/* The last step of the round, or of a phase's time step, before the copies between IPUs. */
static int departure_step(const struct memory_at *at, enum ipu_function_phase phase)
{
	static const enum ipu_function_phase parts[] = {IPU_FUNCTION_F, IPU_FUNCTION_PUSH,
							IPU_FUNCTION_R, IPU_FUNCTION_B};
	const struct memory_build *build = at->build;
	const size_t count = build->grouped ? ARRAY_LEN(parts) : build->replays_late ? 2 : 3;
	int end = section_of(build, at->place, phase).end;

	if (phase == IPU_FUNCTION_U || (phase == IPU_FUNCTION_B && !build->grouped))
		return end - 1;
	for (int s = 0; s < build->graph->layout.stages; s++)
		for (size_t p = 0; p < count; p++)
			if (memory__device(build, s) == at->ipu &&
			    (build->grouped || memory__place(build, s) == at->place))
				end = max(end, build->sections[s][parts[p]].end);
	return end - 1;
}

/* ---- not always live ------------------------------------------------------------------------- */

/* Return whether its stage recomputes the tensor before any backward operation reads it. */
static bool is_replayed(const struct memory_at *at)
{
	const struct memory_use *forward = at->use[IPU_FUNCTION_F];
	const struct memory_use *backward = at->use[IPU_FUNCTION_B];
	int stage;

	if (!forward || forward->writer < 0 || forward->read_first ||
	    !at->build->replayed[forward->writer])
		return false;
	stage = at->build->graph->nodes[forward->writer].op.stage;
	return !backward || backward->first >= at->build->sections[stage][IPU_FUNCTION_B].first;
}

/* The first step of a stage's recomputation, or of its backward if there is none. */
static int resume_step(const struct memory_at *at, int stage)
{
	const struct memory_section *again = &at->build->sections[stage][IPU_FUNCTION_R];

	return again->first < again->end ? again->first
					 : at->build->sections[stage][IPU_FUNCTION_B].first;
}

static int first_use(const struct memory_at *at)
{
	const enum ipu_tensor_kind kind = tensor_of(at)->kind;
	int p = 0;

	while (!at->use[p])
		p++;
	if (at->received)
		return at->build->grouped
			       ? 0
			       : section_of(at->build, at->place, at->use[p]->phase).first;
	if (kind == IPU_TENSOR_INPUT || kind == IPU_TENSOR_LABELS)
		return section_of(at->build, at->place, at->use[p]->phase).first;
	return at->use[p]->first;
}

/* The last use in phases @from to @to - 1, or the step after which the tensor has been sent. */
static int last_use(const struct memory_at *at, int from, int to)
{
	const bool leaves = at->sent || tensor_of(at)->kind == IPU_TENSOR_RESULT;
	int last = -1;

	for (int p = from; p < to; p++) {
		const struct memory_use *use = at->use[p];

		if (!use)
			continue;
		last = max(last, use->last);
		if (leaves && use->written)
			last = max(last, departure_step(at, use->phase));
	}
	return last;
}

/*
 * From its recomputation or FIFO to its last use in the backward pass, which may be in the next
 * round.
 */
static void add_resumed(const struct memory_at *at, const char *what, const char *next, int first)
{
	const int64_t elements = scaled_elements(at->build, tensor_of(at));
	const struct memory_use *backward = at->use[IPU_FUNCTION_B];
	const int last = backward ? backward->last : at->use[IPU_FUNCTION_F]->again_last;

	if (!backward || first <= last) {
		add_while(at, what, elements, first, last);
		return;
	}
	add_while(at, what, elements, first, departure_step(at, IPU_FUNCTION_B));
	add_while(at, next, elements, 0, last);
}

/* Add the tensor in the forward pass, in its FIFO, and after it is popped. */
static void add_stashed(const struct memory_at *at, int depth)
{
	const struct memory_build *build = at->build;
	const struct memory_section *push = &build->sections[at->place][IPU_FUNCTION_PUSH];
	const int64_t elements = scaled_elements(build, tensor_of(at));
	const int pushed =
		push->first < push->end ? push->end - 1 : departure_step(at, IPU_FUNCTION_F);
	const int used = last_use(at, IPU_FUNCTION_F, IPU_FUNCTION_F + 1);

	add_while(at, "", elements, first_use(at), max(pushed, used));
	if (!build->graph->layout.offload_activations)
		add_always(at, "/fifo", "fifo", elements, depth);
	add_resumed(at, "/popped", "/popped/next", resume_step(at, at->place));
}

static void add_replayed(const struct memory_at *at)
{
	const struct memory_use *forward = at->use[IPU_FUNCTION_F];
	const int stage = at->build->graph->nodes[forward->writer].op.stage;

	add_while(at, "", scaled_elements(at->build, tensor_of(at)), first_use(at),
		  last_use(at, IPU_FUNCTION_F, IPU_FUNCTION_F + 1));
	add_resumed(at, "/recomputed", "/recomputed/next",
		    forward->again_first >= 0 ? forward->again_first : resume_step(at, stage));
}

/* Add copies of gradients that wait for W operations, one per micro-batch: all but the one that B
 * made last. */
static void add_held(const struct memory_at *at)
{
	const struct memory_build *build = at->build;
	const struct memory_use *backward = at->use[IPU_FUNCTION_B];
	int held;

	if (!build->training || !build->schedule->splits || !backward || !backward->held ||
	    (backward->writer >= 0 &&
	     build->graph->nodes[backward->writer].op.phase == IPU_PHASE_W))
		return;
	held = ipu_schedule_held(build->schedule, at->place);
	if (held >= 2)
		add_always(at, "/held", "fifo", scaled_elements(build, tensor_of(at)), held - 1);
}

static void add_transient(const struct memory_at *at)
{
	const enum ipu_tensor_kind kind = tensor_of(at)->kind;
	const struct memory_build *build = at->build;
	const int depth = build->streaming && build->training
				  ? ipu_schedule_fifo_depth(build->schedule, at->place)
				  : 0;

	if (kind == IPU_TENSOR_INPUT || kind == IPU_TENSOR_LABELS || kind == IPU_TENSOR_RESULT) {
		/* Its buffer on the I/O tiles, and the sum of results that are sent once per run. */
		const struct ipu_tensor *tensor = tensor_of(at);
		const int64_t elements = scaled_elements(at->build, tensor);
		const struct memory_piece piece = {.name = variable_name(at, "/io"),
						   .kind = "io_buffer",
						   .elements = elements,
						   .copies = 1,
						   .always_live = true,
						   .on_io_tiles = true};

		if (tensor->kind == IPU_TENSOR_RESULT && build->graph->layout.accumulate_outfeed)
			add_always(at, "/sum", ipu_tensor_kind_name(IPU_TENSOR_ACCUMULATOR),
				   elements, 1);
		if (at->build->memory->io_tiles > 0 && !at->received)
			add_piece(at, &piece);
	}
	if (depth > 0 && build->stashed[at->place][at->tensor] && at->use[IPU_FUNCTION_F]) {
		add_stashed(at, depth);
	} else if (is_replayed(at)) {
		add_replayed(at);
	} else {
		add_held(at);
		add_while(at, "", scaled_elements(at->build, tensor_of(at)), first_use(at),
			  last_use(at, 0, MEMORY_PHASES));
	}
}

/* ---- always live ----------------------------------------------------------------------------- */

/* Weights and optimizer state are on chip for a whole function, accumulators for one addition. */
static void add_transit(const struct memory_at *at, enum ipu_function_phase phase, int64_t elements)
{
	const int stage = tensor_of(at)->stage;
	const struct memory_section *section = &at->build->sections[stage][phase];
	const char *what = memory__name(at->build, "/transit/%c", ipu_function_phase_char(phase));
	int first = section->first, last = section->end - 1;

	if (section->first == section->end)
		return;
	if (tensor_of(at)->kind == IPU_TENSOR_ACCUMULATOR && phase == IPU_FUNCTION_B) {
		const struct ipu_memory_step *steps = at->build->memory->ipus[at->ipu].steps;

		first = at->use[phase]->first;
		last = at->use[phase]->last;
		/* The adjacent steps transfer data for the operation. */
		while (first > section->first && steps[first - 1].node < 0)
			--first;
		while (last + 1 < section->end && steps[last + 1].node < 0)
			++last;
	}
	add_while(at, what, elements, first, last);
}

/* Add weights, states and accumulators. Of variables in remote memory only those in transit are on
 * the chip; a shard is gathered for functions that use the whole; the update works on the shard. */
static void add_persistent(const struct memory_at *at)
{
	static const enum ipu_function_phase phases[] = {IPU_FUNCTION_F, IPU_FUNCTION_R,
							 IPU_FUNCTION_B, IPU_FUNCTION_U};
	const struct ipu_layout *layout = &at->build->graph->layout;
	const struct ipu_tensor *tensor = tensor_of(at);
	const bool offloaded =
		(tensor->kind == IPU_TENSOR_OPTIMIZER_STATE && layout->offload_optimizer_state) ||
		(tensor->kind == IPU_TENSOR_ACCUMULATOR && layout->offload_accumulators) ||
		(tensor->kind == IPU_TENSOR_WEIGHT && layout->offload_weights);
	const bool sharded =
		layout->replicas > 1 &&
		((tensor->kind == IPU_TENSOR_OPTIMIZER_STATE && layout->shard_optimizer_state) ||
		 (tensor->kind == IPU_TENSOR_WEIGHT && layout->shard_weights));
	const int64_t elements = scaled_elements(at->build, tensor);
	const int64_t shard =
		sharded ? (elements + layout->replicas - 1) / layout->replicas : elements;

	if (!offloaded)
		add_always(at, sharded ? "/shard" : "", ipu_tensor_kind_name(tensor->kind), shard,
			   1);
	for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
		const enum ipu_function_phase phase = phases[i];
		const bool again = phase == IPU_FUNCTION_R;
		const bool whole = tensor->kind == IPU_TENSOR_WEIGHT && phase != IPU_FUNCTION_U;

		if (at->use[again ? IPU_FUNCTION_F : phase] && (whole || !again) &&
		    (offloaded || (sharded && whole)))
			add_transit(at, phase, whole ? elements : shard);
	}
}

/* ---- all tensors ----------------------------------------------------------------------------- */

static int next_place(const struct memory_use *uses, int count, struct memory_at *at, int from)
{
	int to = from;

	for (int p = 0; p < MEMORY_PHASES; p++)
		at->use[p] = NULL;
	at->place = uses[from].place;
	for (; to < count && uses[to].place == at->place; to++)
		at->use[uses[to].phase] = &uses[to];
	at->ipu = memory__place_device(at->build, at->place);
	return to;
}

/* The nearest place from which the tensor reaches @at; -1: it is made there. */
static int source_place(const struct memory_at *at, const struct memory_use *uses, int count)
{
	const struct memory_use *first = NULL;
	const struct ipu_tensor *tensor = tensor_of(at);
	int from = -1;

	for (int p = 0; p < MEMORY_PHASES && !first; p++)
		first = at->use[p];
	if (!first->read_first)
		return -1;
	for (int i = 0; i < count; i++) {
		const int place = uses[i].place;
		const bool before =
			uses[i].phase == IPU_FUNCTION_F ? place < at->place : place > at->place;

		if (uses[i].written && place != at->place && (before || !at->build->streaming))
			from = from < 0 || (place < at->place ? place > from : place < from) ? place
											     : from;
	}
	if (from < 0 && tensor->kind == IPU_TENSOR_INPUT &&
	    memory__place(at->build, tensor->stage) != at->place)
		from = memory__place(at->build, tensor->stage);
	return from;
}

/* Set whether another place reads what is written here, and whether on another IPU. */
static void find_readers(struct memory_at *at, const struct memory_use *uses, int count)
{
	struct memory_at other = *at;

	at->sent = false;
	for (int from = 0, to; from < count; from = to) {
		to = next_place(uses, count, &other, from);
		if (other.place == at->place || source_place(&other, uses, count) != at->place)
			continue;
		at->sent = true;
		at->crosses |= other.ipu != at->ipu;
	}
}

/* A tensor that skips stages waits in a FIFO until its micro-batch reaches the reader. */
static void add_skip(const struct memory_at *at, int from)
{
	const int distance = from < at->place ? at->place - from : from - at->place;
	struct memory_at maker = *at;
	struct memory_piece piece = {.kind = "fifo", .copies = distance - 1, .always_live = true};

	if (!at->build->streaming || distance < 2)
		return;
	maker.ipu = memory__place_device(at->build, from);
	piece.elements = scaled_elements(at->build, tensor_of(at));
	piece.name = memory__name(at->build, "%s/skip/Stage%d", tensor_of(at)->name, at->place);
	add_piece(&maker, &piece);
}

static void add_at_places(struct memory_at *at, const struct memory_use *uses, int count)
{
	for (int from = 0, to; from < count; from = to) {
		int source;

		to = next_place(uses, count, at, from);
		source = source_place(at, uses, count);
		at->received = source >= 0;
		at->crosses = at->received && memory__place_device(at->build, source) != at->ipu;
		find_readers(at, uses, count);
		at->suffix =
			at->place == memory__place(at->build, tensor_of(at)->stage)
				? ""
				: memory__name(at->build, "/%s%d",
					       at->build->streaming ? "Stage" : "IPU", at->place);
		if (at->received)
			add_skip(at, source);
		add_transient(at);
	}
}

static void add_tensor(struct memory_build *build, int tensor, const struct memory_use *uses,
		       int count)
{
	struct memory_at at = {.build = build, .tensor = tensor, .suffix = ""};
	const int home = memory__place(build, build->graph->tensors[tensor].stage);

	if (!ipu_tensor_is_variable(build->graph->tensors[tensor].kind)) {
		add_at_places(&at, uses, count);
		return;
	}
	for (int i = 0; i < count; i++)
		if (uses[i].place == home)
			at.use[uses[i].phase] = &uses[i];
	at.place = home;
	at.ipu = memory__place_device(build, home);
	add_persistent(&at);
}

void memory__add_tensors(struct memory_build *build)
{
	int from = 0;

	add_spreads(build);
	for (int t = 0; t < build->graph->tensor_count && !err_stuck(build->err); t++) {
		int to = from;

		while (to < build->use_count && build->uses[to].tensor == t)
			to++;
		add_tensor(build, t, &build->uses[from], to - from);
		from = to;
	}
}
