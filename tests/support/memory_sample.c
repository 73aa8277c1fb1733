/*
 * A chain of dense layers as tensors and operations of a graph, stage by stage, and the memory that
 * it takes, for the tests of both.
 */
#include "support/memory_sample.h"

#include <string.h>

#include "support/support.h"

#define TENSORS_MOST 400
#define NODES_MOST   400
#define LISTS_MOST   4000

struct maker {
	struct memory_sample *sample;
	const struct memory_sample_params *params;
	int layers, accumulation;
	struct ipu_tensor *tensors;
	struct ipu_node *nodes;
	int *lists;
	int tensor_count, node_count, list_count;
	int input, labels, result;
	int out[MEMORY_SAMPLE_LAYERS], mask[MEMORY_SAMPLE_LAYERS], weight[MEMORY_SAMPLE_LAYERS],
		gradient[MEMORY_SAMPLE_LAYERS], weight_gradient[MEMORY_SAMPLE_LAYERS],
		accumulator[MEMORY_SAMPLE_LAYERS], slot[MEMORY_SAMPLE_LAYERS];
};

static int64_t units(const struct maker *maker, int layer)
{
	const int64_t given = layer < 0 ? 0 : maker->params->units[layer];

	return given > 0 ? given : 256;
}

static int stage_of(const struct maker *maker, int layer)
{
	return layer < 0 ? 0 : layer / maker->params->layers_per_stage;
}

static int tensor(struct maker *maker, enum ipu_tensor_kind kind, int layer, const char *name,
		  int64_t rows, int64_t columns)
{
	assert_true(maker->tensor_count < TENSORS_MOST);
	maker->tensors[maker->tensor_count] = (struct ipu_tensor){
		.name = arena_printf(&maker->sample->arena, "d%d/%s", layer, name),
		.kind = kind,
		.ndim = 2,
		.dim = {rows, columns},
		.stage = stage_of(maker, layer)};
	return maker->tensor_count++;
}

/* Lists end with -1. */
static const int *list(struct maker *maker, const int *items, int *count)
{
	int *kept = &maker->lists[maker->list_count];

	for (*count = 0; items[*count] >= 0; ++*count)
		kept[*count] = items[*count];
	maker->list_count += *count;
	assert_true(maker->list_count < LISTS_MOST);
	return kept;
}

static void node(struct maker *maker, const struct ipu_op *op, int layer, char phase,
		 const char *name, const int *reads, const int *writes)
{
	struct ipu_node *made = &maker->nodes[maker->node_count++];

	assert_true(maker->node_count < NODES_MOST);
	made->op = *op;
	made->op.name = arena_printf(&maker->sample->arena, "d%d/%s", layer, name);
	made->op.phase = phase;
	made->op.stage = stage_of(maker, layer);
	ipu_plan_options_defaults(&made->options);
	made->reads = list(maker, reads, &made->read_count);
	made->writes = list(maker, writes, &made->write_count);
}

#define LIST(...)                                                                                  \
	(const int[])                                                                              \
	{                                                                                          \
		__VA_ARGS__, -1                                                                    \
	}

static void add_tensors(struct maker *maker)
{
	const int64_t batch = maker->sample->graph.layout.batch;

	maker->input = tensor(maker, IPU_TENSOR_INPUT, 0, "input", batch, units(maker, -1));
	maker->labels = tensor(maker, IPU_TENSOR_LABELS, maker->layers - 1, "labels", batch, 1);
	maker->result = tensor(maker, IPU_TENSOR_RESULT, maker->layers - 1, "loss", 1, 1);
	for (int l = 0; l < maker->layers; l++) {
		const int64_t in = units(maker, l - 1), out = units(maker, l);

		maker->weight[l] = tensor(maker, IPU_TENSOR_WEIGHT, l, "kernel", in, out);
		maker->out[l] = tensor(maker, IPU_TENSOR_ACTIVATION, l, "out", batch, out);
		maker->mask[l] = tensor(maker, IPU_TENSOR_KEPT, l, "mask", batch, out);
		maker->gradient[l] = tensor(maker, IPU_TENSOR_GRADIENT, l, "gradient", batch, out);
		maker->weight_gradient[l] =
			tensor(maker, IPU_TENSOR_WEIGHT_GRADIENT, l, "kernel_grad", in, out);
		maker->accumulator[l] =
			tensor(maker, IPU_TENSOR_ACCUMULATOR, l, "accumulator", in, out);
		maker->slot[l] = tensor(maker, IPU_TENSOR_OPTIMIZER_STATE, l, "slot", in, out);
	}
}

static struct ipu_op elements(int64_t count, enum ipu_function function)
{
	struct ipu_op op = {.kind = IPU_OP_ELEMENTWISE};

	op.elements = (struct ipu_elements){.count = count, .operands = 1};
	op.elements.times[function] = 1;
	return op;
}

static void add_forward(struct maker *maker, int l)
{
	const int64_t batch = maker->sample->graph.layout.batch;
	const int in = l > 0 ? maker->out[l - 1] : maker->input;
	const struct ipu_op matmul = {.kind = IPU_OP_MATMUL,
				      .matmul = {batch, units(maker, l - 1), units(maker, l)}};
	const struct ipu_op drop = elements(batch * units(maker, l), IPU_FN_RANDOM);
	struct ipu_op add = elements(batch * units(maker, l), IPU_FN_ADD);
	const struct ipu_op rows = {.kind = IPU_OP_ROWS, .rows = {.rows = batch, .columns = 10}};
	int last = maker->out[l];

	node(maker, &matmul, l, 'F', "MatMul", LIST(in, maker->weight[l]), LIST(maker->out[l]));
	if (maker->params->dropout[l])
		node(maker, &drop, l, 'F', "Dropout", LIST(maker->out[l]),
		     LIST(maker->out[l], maker->mask[l]));
	if (maker->params->skip_to > 0 && maker->params->skip_to == l) {
		add.elements.operands += maker->params->sum_apart;
		if (maker->params->sum_apart)
			last = tensor(maker, IPU_TENSOR_ACTIVATION, l, "sum", batch,
				      units(maker, l));
		node(maker, &add, l, 'F', "Add",
		     LIST(maker->out[l], maker->out[maker->params->skip_from]), LIST(last));
	}
	if (l == maker->layers - 1)
		node(maker, &rows, l, 'F', "Loss", LIST(last, maker->labels), LIST(maker->result));
}

static void add_backward(struct maker *maker, int l)
{
	const int64_t batch = maker->sample->graph.layout.batch;
	const int64_t in_units = units(maker, l - 1), out_units = units(maker, l);
	const int in = l > 0 ? maker->out[l - 1] : maker->input;
	const struct ipu_op rows = {.kind = IPU_OP_ROWS, .rows = {.rows = batch, .columns = 10}};
	const struct ipu_op drop = elements(batch * out_units, IPU_FN_ADD);
	const struct ipu_op data = {.kind = IPU_OP_MATMUL, .matmul = {batch, out_units, in_units}};
	const struct ipu_op weight = {.kind = IPU_OP_MATMUL,
				      .matmul = {in_units, batch, out_units}};
	const struct ipu_op sum = elements(in_units * out_units, IPU_FN_SCALED_ADD);

	if (l == maker->layers - 1)
		node(maker, &rows, l, 'B', "LossGrad", LIST(maker->out[l], maker->labels),
		     LIST(maker->gradient[l]));
	if (maker->params->dropout[l])
		node(maker, &drop, l, 'B', "DropoutGrad", LIST(maker->gradient[l], maker->mask[l]),
		     LIST(maker->gradient[l]));
	if (l > 0)
		node(maker, &data, l, 'B', "MatMulGrad", LIST(maker->gradient[l], maker->weight[l]),
		     LIST(maker->gradient[l - 1]));
	node(maker, &weight, l, 'W', "MatMulWeightGrad", LIST(in, maker->gradient[l]),
	     LIST(maker->weight_gradient[l]));
	if (maker->accumulation > 1)
		node(maker, &sum, l, 'B', "Accumulate",
		     LIST(maker->weight_gradient[l], maker->accumulator[l]),
		     LIST(maker->accumulator[l]));
}

static void add_update(struct maker *maker, int l)
{
	const int from =
		maker->accumulation > 1 ? maker->accumulator[l] : maker->weight_gradient[l];
	const struct ipu_op op = elements(units(maker, l - 1) * units(maker, l), IPU_FN_SCALED_ADD);

	node(maker, &op, l, 'U', "SGD", LIST(from, maker->weight[l], maker->slot[l]),
	     LIST(maker->weight[l], maker->slot[l]));
}

static void add_stage(struct maker *maker, int stage)
{
	const int first = stage * maker->params->layers_per_stage;
	const int end = first + maker->params->layers_per_stage;

	for (int l = first; l < end; l++)
		add_forward(maker, l);
	for (int l = end - 1; l >= first && !maker->params->forward_only; l--)
		add_backward(maker, l);
	for (int l = first; l < end && !maker->params->forward_only; l++)
		add_update(maker, l);
}

static void make_graph(struct maker *maker)
{
	struct memory_sample *sample = maker->sample;

	maker->tensors = arena_alloc(&sample->arena, TENSORS_MOST, sizeof(*maker->tensors));
	maker->nodes = arena_alloc(&sample->arena, NODES_MOST, sizeof(*maker->nodes));
	maker->lists = arena_alloc(&sample->arena, LISTS_MOST, sizeof(*maker->lists));
	assert_true(maker->tensors && maker->nodes && maker->lists);
	add_tensors(maker);
	for (int s = 0; s < maker->params->stages; s++)
		add_stage(maker, s);
	sample->graph.tensors = maker->tensors;
	sample->graph.tensor_count = maker->tensor_count;
	sample->graph.nodes = maker->nodes;
	if (sample->schedule->splits)
		assert_int_equal(ipu_graph_split(maker->nodes, maker->node_count, maker->tensors,
						 maker->tensor_count, NULL),
				 ST_OK);
	sample->graph.node_count = maker->node_count;
}

void memory_sample_make(struct memory_sample *sample, const struct memory_sample_params *params)
{
	struct ipu_layout *layout = &sample->graph.layout;
	struct ipu_schedule_params schedule = {.kind = params->kind,
					       .stages = params->stages,
					       .microbatches = 4 * params->stages,
					       .training = !params->forward_only,
					       .ipus = params->ipus,
					       .device = params->device};
	struct maker maker = {.sample = sample,
			      .params = params,
			      .layers = params->stages * params->layers_per_stage};

	memset(sample, 0, sizeof(*sample));
	assert_int_equal(arena_init(&sample->arena, 0), 0);
	assert_int_equal(ipu_target_get("ipu2", params->tiles, &sample->target, NULL), ST_OK);
	assert_int_equal(ipu_schedule_new(&sample->schedule, &schedule, NULL), ST_OK);
	assert_int_equal(ipu_planner_new(&sample->planner, &sample->target, NULL), ST_OK);
	*layout = params->layout;
	layout->batch = layout->batch > 0 ? layout->batch : 32;
	layout->replicas = layout->replicas > 0 ? layout->replicas : 1;
	layout->stages = params->stages;
	layout->accumulation =
		layout->accumulation > 0 ? layout->accumulation : schedule.microbatches;
	layout->schedule = params->forward_only ? NULL : sample->schedule;
	layout->forward = params->forward_only ? sample->schedule : NULL;
	maker.accumulation = (int)layout->accumulation;
	make_graph(&maker);
	assert_int_equal(ipu_executable_new(&sample->executable, &sample->graph, sample->planner,
					    &sample->target, NULL),
			 ST_OK);
}

void memory_sample_free(struct memory_sample *sample)
{
	ipu_executable_free(sample->executable);
	ipu_planner_free(sample->planner);
	ipu_schedule_free(sample->schedule);
	arena_fini(&sample->arena);
}

struct ipu_memory *memory_sample_memory(struct memory_sample *sample,
					const struct memory_sample_params *params)
{
	struct ipu_memory *memory;
	struct err err = {ST_OK, ""};
	enum status status;

	memory_sample_make(sample, params);
	status = ipu_memory_new(&memory, sample->executable, &sample->target, &err);
	if (status != ST_OK)
		fail_msg("%s", err.text);
	return memory;
}

const struct ipu_variable *memory_sample_find(const struct ipu_memory *memory, const char *name)
{
	for (int v = 0; v < memory->variable_count; v++)
		if (strcmp(memory->variables[v].name, name) == 0)
			return &memory->variables[v];
	return NULL;
}

const struct ipu_variable *memory_sample_variable(const struct ipu_memory *memory, const char *name)
{
	const struct ipu_variable *variable = memory_sample_find(memory, name);

	if (!variable)
		fail_msg("there is no variable %s", name);
	return variable;
}
