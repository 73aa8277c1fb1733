/*
 * A chain of dense layers as a graph, compiled step by step as a run is: planned, placed,
 * scheduled, timed, and its control programs written.
 */
#include "support/program_sample.h"

#include <string.h>

#include "support/support.h"

/* ---- the model ------------------------------------------------------------------------------- */

int program_sample_tensor(int layer, int what)
{
	return 3 + layer * PROGRAM_OF_LAYER + what;
}

static int stage_of(const struct program_sample *sample, int layer)
{
	return layer * sample->graph.layout.stages / sample->layers;
}

static void make_tensors(struct program_sample *sample)
{
	static const enum ipu_tensor_kind kinds[PROGRAM_OF_LAYER] = {
		IPU_TENSOR_ACTIVATION,      IPU_TENSOR_KEPT,
		IPU_TENSOR_GRADIENT,        IPU_TENSOR_WEIGHT,
		IPU_TENSOR_WEIGHT_GRADIENT, IPU_TENSOR_ACCUMULATOR,
		IPU_TENSOR_OPTIMIZER_STATE};
	const int64_t batch = sample->graph.layout.batch;
	const int last = sample->graph.layout.stages - 1;

	sample->tensors[0] = (struct ipu_tensor){
		"in", NULL, IPU_TENSOR_INPUT, IPU_FLOAT32, 2, {batch, sample->units[0]}, 0};
	sample->tensors[1] =
		(struct ipu_tensor){"labels", NULL, IPU_TENSOR_LABELS, IPU_INT32, 1, {batch}, last};
	sample->tensors[2] =
		(struct ipu_tensor){"loss", NULL, IPU_TENSOR_RESULT, IPU_FLOAT32, 1, {1}, last};
	for (int l = 0; l < sample->layers; l++) {
		for (int w = 0; w < PROGRAM_OF_LAYER; w++)
			sample->tensors[program_sample_tensor(l, w)] = (struct ipu_tensor){
				.name = arena_printf(&sample->arena, "d%d/%s", l,
						     ipu_tensor_kind_name(kinds[w])),
				.kind = kinds[w],
				.ndim = 2,
				.dim = {w < PROGRAM_WEIGHT ? batch : sample->units[l],
					sample->units[l + 1]},
				.stage = stage_of(sample, l)};
	}
	sample->graph.tensors = sample->tensors;
	sample->graph.tensor_count = 3 + sample->layers * PROGRAM_OF_LAYER;
}

/* The last @writes of @list are written, the first @reads read. */
static void node(struct program_sample *sample, struct ipu_op op, int layer, char phase,
		 const char *name, const int list[6], int reads, int writes)
{
	const int n = sample->graph.node_count++;
	int *kept = sample->lists[n];

	assert_true(n < PROGRAM_SAMPLE_NODES);
	memcpy(kept, list, 6 * sizeof(*list));
	op.name = arena_printf(&sample->arena, "d%d/%s", layer, name);
	op.phase = phase;
	op.stage = stage_of(sample, layer);
	sample->nodes[n] = (struct ipu_node){.op = op,
					     .reads = kept,
					     .read_count = reads,
					     .writes = kept + 6 - writes,
					     .write_count = writes};
	ipu_plan_options_defaults(&sample->nodes[n].options);
}

static struct ipu_op matmul(int64_t m, int64_t k, int64_t n)
{
	return (struct ipu_op){.kind = IPU_OP_MATMUL, .matmul = {m, k, n}};
}

static struct ipu_op map(int64_t count, enum ipu_function function)
{
	struct ipu_op op = {.kind = IPU_OP_ELEMENTWISE, .elements = {.count = count}};

	op.elements.operands = 1;
	op.elements.times[function] = 1;
	return op;
}

static int input_of(int layer, int what)
{
	return layer == 0 ? 0 : program_sample_tensor(layer - 1, what);
}

static void make_forward(struct program_sample *sample, int l)
{
	const int64_t batch = sample->graph.layout.batch;
	const int64_t in = sample->units[l], out = sample->units[l + 1];
	const int o = program_sample_tensor(l, PROGRAM_OUT);

	node(sample, matmul(batch, in, out), l, 'F', "MatMul",
	     (int[]){input_of(l, PROGRAM_OUT), program_sample_tensor(l, PROGRAM_WEIGHT), 0, 0, 0,
		     o},
	     2, 1);
	if (sample->dropout[l])
		node(sample, map(batch * out, IPU_FN_RANDOM), l, 'F', "Dropout",
		     (int[]){o, 0, 0, 0, o, program_sample_tensor(l, PROGRAM_MASK)}, 1, 2);
	if (l == sample->layers - 1)
		node(sample, map(batch * out, IPU_FN_EXP), l, 'F', "Loss",
		     (int[]){o, 1, 0, 0, program_sample_tensor(l, PROGRAM_GRADIENT), 2}, 2, 2);
}

static void make_backward(struct program_sample *sample, int l)
{
	const int64_t batch = sample->graph.layout.batch;
	const int64_t in = sample->units[l], out = sample->units[l + 1];
	const int g = program_sample_tensor(l, PROGRAM_GRADIENT),
		  sum = program_sample_tensor(l, PROGRAM_SUM);
	const int fresh = program_sample_tensor(l, PROGRAM_WEIGHT_GRADIENT);

	if (sample->dropout[l])
		node(sample, map(batch * out, IPU_FN_ADD), l, 'B', "DropoutGrad",
		     (int[]){g, program_sample_tensor(l, PROGRAM_MASK), 0, 0, 0, g}, 2, 1);
	if (l > 0)
		node(sample, matmul(batch, out, in), l, 'B', "DataGrad",
		     (int[]){g, program_sample_tensor(l, PROGRAM_WEIGHT), 0, 0, 0,
			     program_sample_tensor(l - 1, PROGRAM_GRADIENT)},
		     2, 1);
	node(sample, matmul(in, batch, out), l, 'W', "WeightGrad",
	     (int[]){g, input_of(l, PROGRAM_OUT), 0, 0, 0, fresh}, 2, 1);
	if (sample->graph.layout.accumulation > 1)
		node(sample, map(in * out, IPU_FN_SCALED_ADD), l, 'B', "Accumulate",
		     (int[]){fresh, sum, 0, 0, 0, sum}, 2, 1);
}

static void make_update(struct program_sample *sample, int l)
{
	const bool sums = sample->graph.layout.accumulation > 1;
	const int weight = program_sample_tensor(l, PROGRAM_WEIGHT),
		  slot = program_sample_tensor(l, PROGRAM_SLOT);

	node(sample, map(sample->units[l] * sample->units[l + 1], IPU_FN_ADD), l, 'U', "Update",
	     (int[]){program_sample_tensor(l, sums ? PROGRAM_SUM : PROGRAM_WEIGHT_GRADIENT), weight,
		     slot, 0, weight, slot},
	     3, 2);
}

static void make_graph(struct program_sample *sample)
{
	const bool training = sample->graph.layout.schedule != NULL;

	make_tensors(sample);
	for (int s = 0; s < sample->graph.layout.stages; s++) {
		for (int l = 0; l < sample->layers; l++)
			if (stage_of(sample, l) == s)
				make_forward(sample, l);
		for (int l = sample->layers - 1; l >= 0 && training; l--)
			if (stage_of(sample, l) == s)
				make_backward(sample, l);
		for (int l = 0; l < sample->layers && training; l++)
			if (stage_of(sample, l) == s)
				make_update(sample, l);
	}
	if (sample->schedule->splits)
		assert_int_equal(ipu_graph_split(sample->nodes, sample->graph.node_count,
						 sample->graph.tensors, sample->graph.tensor_count,
						 NULL),
				 ST_OK);
	sample->graph.nodes = sample->nodes;
}

/* ---- compiled -------------------------------------------------------------------------------- */

void program_sample_setup(struct program_sample *sample, const struct program_sample_params *params)
{
	const struct ipu_schedule_params schedule = {.kind = params->kind,
						     .stages = params->stages,
						     .microbatches = params->microbatches,
						     .training = true,
						     .device = params->device};

	assert_int_equal(arena_init(&sample->arena, 0), 0);
	assert_int_equal(ipu_schedule_new(&sample->schedule, &schedule, NULL), ST_OK);
	sample->graph.layout = params->layout;
	sample->graph.layout.stages = params->stages;
	sample->graph.layout.accumulation = params->microbatches;
	sample->graph.layout.schedule = sample->schedule;
	if (sample->graph.layout.replicas == 0)
		sample->graph.layout.replicas = 1;
	if (sample->graph.layout.batch == 0)
		sample->graph.layout.batch = 16;
	if (sample->graph.layout.runs == 0)
		sample->graph.layout.runs = 3;
	assert_int_equal(
		ipu_target_get(params->target ? params->target : "ipu2", 0, &sample->target, NULL),
		ST_OK);
	sample->compute = sample->target;
	sample->compute.tiles -= params->layout.io_tiles;
	make_graph(sample);
	assert_int_equal(ipu_planner_new(&sample->planner, &sample->compute, NULL), ST_OK);
}

enum status program_sample_compile(struct program_sample *sample, struct err *err)
{
	const struct ipu_layout *layout = &sample->graph.layout;
	struct ipu_timeline_params params = {
		.target = &sample->target,
		.schedule = sample->schedule,
		.replicas = layout->replicas,
		.io_tiles = layout->io_tiles,
		.prefetch_depth = layout->prefetch_depth,
		.recompute_late = layout->recompute == IPU_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED,
		.outfeed_once = layout->accumulate_outfeed};
	struct ipu_mode mode = {"train", sample->schedule, NULL, layout->runs};
	enum status status = ipu_executable_new(&sample->executable, &sample->graph,
						sample->planner, &sample->compute, err);

	if (status == ST_OK)
		status = ipu_costs_get(&sample->costs, sample->executable, &sample->arena, err);
	params.stages = sample->costs.stages;
	params.sends = sample->costs.sends;
	params.send_count = sample->costs.send_count;
	if (status == ST_OK)
		status = ipu_timeline_new(&sample->timeline, &params, err);
	mode.timeline = sample->timeline;
	if (status == ST_OK)
		status = ipu_control_add(sample->executable, &mode, 1, err);
	return status;
}

void program_sample_free(struct program_sample *sample)
{
	ipu_timeline_free(sample->timeline);
	ipu_executable_free(sample->executable);
	ipu_planner_free(sample->planner);
	ipu_schedule_free(sample->schedule);
	arena_fini(&sample->arena);
}

void program_sample_plain(struct program_sample *sample)
{
	*sample = (struct program_sample){.layers = PROGRAM_SAMPLE_LAYERS};
	for (int l = 0; l <= PROGRAM_SAMPLE_LAYERS; l++)
		sample->units[l] = 64;
}
