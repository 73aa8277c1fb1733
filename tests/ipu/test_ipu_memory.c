/*
 * The memory of the simulated IPUs: exact numbers on small models, and what holds of any model.
 */
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "ipu/compile/ipu_memory_internal.h"
#include "support/memory_sample.h"

/* ---- what holds of any ----------------------------------------------------------------------- */

static void check_runs(const struct ipu_memory *memory, const struct ipu_variable *variable)
{
	int64_t bytes = 0;

	for (int i = 0; i < variable->run_count; i++) {
		const struct ipu_tile_run *run = &variable->runs[i];

		assert_true(run->tile >= 0 && run->tiles > 0 && run->bytes > 0);
		assert_true(run->tile + run->tiles <= memory->tiles);
		bytes += run->tiles * run->bytes;
	}
	assert_int_equal(bytes, variable->bytes);
}

/* What is left of a tile's region. */
static int64_t room_left(const struct ipu_memory *memory,
			 int64_t regions[IPU_MEMORY_CATEGORIES][IPU_MEMORY_REGIONS], int64_t tile,
			 enum ipu_memory_region region)
{
	const int64_t limit = ipu_memory_tile_limit(memory, tile);
	int64_t left = region == IPU_MEMORY_INTERLEAVED ? memory->interleaved_bytes
							: limit - memory->interleaved_bytes;

	for (int c = 0; c < IPU_MEMORY_CATEGORIES; c++)
		left -= regions[c][region];
	return left;
}

/* The sum of what is mapped to a tile, always or at most at once, by going over all of it. */
static void check_tile(const struct ipu_memory *memory, int ipu, int64_t tile)
{
	const struct ipu_memory_ipu *of = &memory->ipus[ipu];
	int64_t always[IPU_MEMORY_CATEGORIES] = {0}, most = 0, sum = 0;
	int64_t regions[IPU_MEMORY_CATEGORIES][IPU_MEMORY_REGIONS];

	for (int step = 0; step < of->step_count; step++) {
		int64_t live = 0;

		for (int v = 0; v < memory->variable_count; v++) {
			const struct ipu_variable *variable = &memory->variables[v];

			if (variable->ipu == ipu && !variable->always_live &&
			    step >= variable->first_step && step <= variable->last_step)
				live += ipu_variable_on_tile(variable, tile);
		}
		most = live > most ? live : most;
	}
	for (int v = 0; v < memory->variable_count; v++)
		if (memory->variables[v].ipu == ipu && memory->variables[v].always_live)
			always[memory->variables[v].category] +=
				ipu_variable_on_tile(&memory->variables[v], tile);
	always[IPU_MEMORY_NOT_ALWAYS_LIVE] = most;
	ipu_memory_regions(memory, ipu, tile, regions);
	for (int c = 0; c < IPU_MEMORY_CATEGORIES; c++) {
		int64_t parts = 0;

		assert_int_equal(of->category[c][tile], always[c]);
		for (int r = 0; r < IPU_MEMORY_REGIONS; r++)
			parts += regions[c][r];
		assert_int_equal(parts, always[c]);
		sum += always[c];
	}
	assert_int_equal(ipu_memory_tile_bytes(memory, ipu, tile), sum);
	/* Code comes first where memory is not interleaved, data where it is. */
	if (regions[IPU_MEMORY_VERTEX_CODE][IPU_MEMORY_INTERLEAVED] > 0)
		assert_int_equal(room_left(memory, regions, tile, IPU_MEMORY_NON_INTERLEAVED), 0);
	if (regions[IPU_MEMORY_NOT_ALWAYS_LIVE][IPU_MEMORY_NON_INTERLEAVED] > 0)
		assert_int_equal(room_left(memory, regions, tile, IPU_MEMORY_INTERLEAVED), 0);
}

static void check_ipu(const struct ipu_memory *memory, int ipu)
{
	const struct ipu_memory_ipu *of = &memory->ipus[ipu];
	int64_t always = 0, most = 0, over = 0;

	for (int v = 0; v < memory->variable_count; v++)
		if (memory->variables[v].ipu == ipu && memory->variables[v].always_live)
			always += memory->variables[v].bytes;
	assert_int_equal(of->always_live_bytes, always);
	for (int step = 0; step < of->step_count; step++) {
		int64_t live = 0;

		for (int v = 0; v < memory->variable_count; v++) {
			const struct ipu_variable *variable = &memory->variables[v];

			if (variable->ipu == ipu && !variable->always_live &&
			    step >= variable->first_step && step <= variable->last_step)
				live += variable->bytes;
		}
		assert_int_equal(of->steps[step].not_always_live_bytes, live);
		most = live > most ? live : most;
	}
	assert_int_equal(of->peak_bytes, always + most);
	for (int64_t tile = 0; tile < memory->tiles; tile++)
		over += ipu_memory_tile_bytes(memory, ipu, tile) >
			ipu_memory_tile_limit(memory, tile);
	assert_int_equal(of->tiles_over, over);
}

static int compare_names(const void *a, const void *b)
{
	const struct ipu_variable *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static void check_names(const struct ipu_memory *memory)
{
	const struct ipu_variable **sorted =
		test_calloc((size_t)memory->variable_count, sizeof(struct ipu_variable *));

	for (int v = 0; v < memory->variable_count; v++)
		sorted[v] = &memory->variables[v];
	qsort(sorted, (size_t)memory->variable_count, sizeof(*sorted), compare_names);
	for (int v = 1; v < memory->variable_count; v++)
		if (strcmp(sorted[v - 1]->name, sorted[v]->name) == 0)
			fail_msg("%s is there twice", sorted[v]->name);
	test_free(sorted);
}

static void check_memory(const struct ipu_memory *memory)
{
	check_names(memory);
	for (int v = 0; v < memory->variable_count; v++) {
		const struct ipu_variable *variable = &memory->variables[v];

		check_runs(memory, variable);
		assert_true(variable->always_live || variable->last_step >= variable->first_step);
	}
	for (int i = 0; i < memory->ipu_count; i++) {
		check_ipu(memory, i);
		check_tile(memory, i, 0);
		check_tile(memory, i, memory->tiles - 1);
		check_tile(memory, i, memory->ipus[i].worst_tile);
	}
}

/* Without code: what saves data may take some. */
static int64_t peak_of(const struct ipu_memory *memory)
{
	int64_t sum = 0;

	for (int i = 0; i < memory->ipu_count; i++)
		sum += memory->ipus[i].peak_bytes;
	for (int v = 0; v < memory->variable_count; v++)
		if (memory->variables[v].category >= IPU_MEMORY_CONTROL_CODE)
			sum -= memory->variables[v].bytes;
	return sum;
}

/* What @params need on all IPUs; checked. */
static int64_t peak(const struct memory_sample_params *params)
{
	struct memory_sample sample;
	struct ipu_memory *memory = memory_sample_memory(&sample, params);
	const int64_t bytes = peak_of(memory);

	check_memory(memory);
	ipu_memory_free(memory);
	memory_sample_free(&sample);
	return bytes;
}

static uint64_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

static void random_params(struct memory_sample_params *params, uint64_t *state)
{
	memset(params, 0, sizeof(*params));
	params->stages = 1 + (int)(next(state) % 5);
	params->layers_per_stage = 1 + (int)(next(state) % 4);
	do
		params->kind = (enum ipu_schedule_kind)(next(state) % IPU_SCHEDULE_KINDS);
	while (params->kind == IPU_1F1B_INTERLEAVED);
	params->tiles = next(state) % 2 ? 64 : 0;
	params->forward_only = next(state) % 8 == 0;
	for (int l = 0; l < params->stages * params->layers_per_stage; l++) {
		params->units[l] = 1 + (int64_t)(next(state) % 400);
		params->dropout[l] = next(state) % 3 == 0;
	}
	params->layout.batch = 1 + (int64_t)(next(state) % 64);
	params->layout.accumulation = params->stages == 1 ? 1 : 0;
	params->layout.io_tiles = next(state) % 4 == 0 ? 16 : 0;
	params->layout.io_memory_proportion = 0.9;
	params->layout.accumulate_outfeed = next(state) % 2;
}

static void test_of_any_model_the_parts_add_up(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (int i = 0; i < 40; i++) {
		struct memory_sample_params params;

		random_params(&params, &seed);
		peak(&params);
	}
}

static void test_what_is_meant_to_save_memory_never_takes_more(void **state)
{
	uint64_t seed = 2;

	(void)state;
	for (unsigned i = 0; i < support_rounds(40); i++) {
		struct memory_sample_params params, less;
		int64_t bytes;

		random_params(&params, &seed);
		params.layout.replicas = 2;
		params.layers_per_stage += 2;
		bytes = peak(&params);
		less = params;
		/* What is replayed has code of its own. */
		less.layout.recompute = IPU_RECOMPUTE_THEN_BACKPROPAGATE;
		assert_true(peak(&less) <= bytes + bytes / 200);
		less.layout.recompute = IPU_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED;
		assert_true(peak(&less) <= bytes + bytes / 200);
		less = params;
		less.layout.offload_activations = true;
		assert_true(peak(&less) <= bytes);
		less = params;
		less.layout.offload_optimizer_state = true;
		assert_true(peak(&less) <= bytes);
		less = params;
		less.layout.offload_accumulators = true;
		assert_true(peak(&less) <= bytes);
		less = params;
		less.layout.offload_weights = true;
		assert_true(peak(&less) <= bytes);
		less = params;
		less.layout.shard_optimizer_state = true;
		assert_true(peak(&less) <= bytes);
	}
}

/* ---- exact numbers --------------------------------------------------------------------------- */

static void test_elements_are_dealt_in_grains_around_the_tiles(void **state)
{
	/* 500 grains of 2 floats over 31 tiles: 16 each, 4 tiles have one more. */
	const struct memory_deal even = {1000, 4, 2, 31, 1460, 1472};
	const struct memory_deal odd = {7, 4, 2, 8, 0, 10};
	struct ipu_tile_run runs[MEMORY_RUNS];

	(void)state;
	assert_int_equal(memory__deal(&even, runs), 3);
	assert_memory_equal(&runs[0], (&(struct ipu_tile_run){1464, 8, 128}), sizeof(runs[0]));
	assert_memory_equal(&runs[1], (&(struct ipu_tile_run){0, 19, 128}), sizeof(runs[0]));
	assert_memory_equal(&runs[2], (&(struct ipu_tile_run){1460, 4, 136}), sizeof(runs[0]));
	/* Four grains on four of the eight, the last with one element. */
	assert_int_equal(memory__deal(&odd, runs), 2);
	assert_memory_equal(&runs[0], (&(struct ipu_tile_run){0, 3, 8}), sizeof(runs[0]));
	assert_memory_equal(&runs[1], (&(struct ipu_tile_run){3, 1, 4}), sizeof(runs[0]));
}

/* The first and the last program step of an operation. */
static void steps_of(const struct ipu_memory *memory, int ipu, const char *name, int *first,
		     int *last)
{
	const struct ipu_memory_ipu *of = &memory->ipus[ipu];

	*first = *last = -1;
	for (int s = 0; s < of->step_count; s++) {
		const int node = of->steps[s].node;

		if (node < 0 || strcmp(memory->graph->nodes[node].op.name, name) != 0)
			continue;
		*first = *first < 0 ? s : *first;
		*last = s;
	}
	assert_true(*first >= 0);
}

static void assert_lives(const struct ipu_memory *memory, const char *name, const char *from,
			 const char *to)
{
	const struct ipu_variable *variable = memory_sample_variable(memory, name);
	int first, last, unused;

	steps_of(memory, variable->ipu, from, &first, &unused);
	steps_of(memory, variable->ipu, to, &unused, &last);
	assert_false(variable->always_live);
	assert_int_equal(variable->first_step, first);
	assert_int_equal(variable->last_step, last);
}

static void test_a_tensor_lives_from_its_first_write_to_its_last_read(void **state)
{
	const struct memory_sample_params params = {.kind = IPU_SEQUENTIAL,
						    .stages = 1,
						    .layers_per_stage = 2,
						    .dropout = {true},
						    .layout = {.accumulation = 1}};
	struct memory_sample sample;
	struct ipu_memory *memory = memory_sample_memory(&sample, &params);

	(void)state;
	assert_lives(memory, "d0/out", "d0/MatMul", "d1/MatMulWeightGrad");
	assert_lives(memory, "d0/mask", "d0/Dropout", "d0/DropoutGrad");
	assert_lives(memory, "d0/gradient", "d1/MatMulGrad", "d0/MatMulWeightGrad");
	assert_lives(memory, "d0/input", "d0/MatMul", "d0/MatMulWeightGrad");
	assert_lives(memory, "d1/kernel_grad", "d1/MatMulWeightGrad", "d1/SGD");
	assert_int_equal(memory_sample_variable(memory, "d0/out")->bytes, 32 * 256 * 4);
	assert_true(memory_sample_variable(memory, "d1/kernel")->always_live);
	assert_true(memory_sample_variable(memory, "d1/slot")->always_live);
	ipu_memory_free(memory);
	memory_sample_free(&sample);
}

/* Sums of one element each take no step. What they use is in use in the next operation's first. */
static void test_an_operation_without_steps_has_the_step_of_the_next(void **state)
{
	const struct memory_sample_params params = {.kind = IPU_SEQUENTIAL,
						    .stages = 1,
						    .layers_per_stage = 2,
						    .dropout = {true},
						    .forward_only = true};
	const struct ipu_op sums = {.kind = IPU_OP_REDUCE, .reduce = {32 * 256, 32 * 256}};
	struct ipu_executable *executable;
	const struct ipu_variable *mask;
	struct memory_sample sample;
	struct ipu_memory *memory;
	struct ipu_node *nodes;
	int first, last;

	(void)state;
	memory_sample_make(&sample, &params);
	nodes = (struct ipu_node *)(uintptr_t)sample.graph.nodes;
	assert_string_equal(nodes[1].op.name, "d0/Dropout");
	nodes[1].op = sums;
	nodes[1].op.name = "d0/Sums";
	nodes[1].op.phase = 'F';
	assert_int_equal(ipu_executable_new(&executable, &sample.graph, sample.planner,
					    &sample.target, NULL),
			 ST_OK);
	assert_int_equal(ipu_memory_new(&memory, executable, &sample.target, NULL), ST_OK);
	mask = memory_sample_variable(memory, "d0/mask");
	steps_of(memory, 0, "d1/MatMul", &first, &last);
	assert_int_equal(mask->first_step, first);
	assert_int_equal(mask->last_step, first);
	ipu_memory_free(memory);
	ipu_executable_free(executable);
	memory_sample_free(&sample);
}

/* A map's result lies where an operand did that nothing reads after it. */
static void test_a_map_overwrites_what_it_reads_last(void **state)
{
	const struct memory_sample_params params = {.kind = IPU_SEQUENTIAL,
						    .stages = 1,
						    .layers_per_stage = 3,
						    .skip_to = 2,
						    .sum_apart = true,
						    .forward_only = true};
	struct memory_sample sample;
	struct ipu_memory *memory = memory_sample_memory(&sample, &params);
	int first, last;

	(void)state;
	steps_of(memory, 0, "d2/Add", &first, &last);
	assert_true(first < last);
	assert_int_equal(memory_sample_variable(memory, "d2/out")->last_step, last - 1);
	assert_int_equal(memory_sample_variable(memory, "d2/sum")->first_step, last);
	/* One operand alone is overwritten. */
	assert_lives(memory, "d0/out", "d0/MatMul", "d2/Add");
	ipu_memory_free(memory);
	memory_sample_free(&sample);
}

/* A weight is not overwritten: beside it the result has room from the map's first step. The result
 * is the first tensor, which nothing reads. */
static void test_a_map_of_weights_overwrites_nothing(void **state)
{
	const struct memory_sample_params params = {.kind = IPU_SEQUENTIAL,
						    .stages = 1,
						    .layers_per_stage = 1,
						    .dropout = {true},
						    .forward_only = true};
	const struct ipu_op map = {
		.kind = IPU_OP_ELEMENTWISE,
		.name = "d0/Map",
		.phase = 'F',
		.elements = {.count = 32 * 256, .operands = 2, .times = {[IPU_FN_ADD] = 1}}};
	const int result = 0;
	struct ipu_executable *executable;
	struct memory_sample sample;
	struct ipu_memory *memory;
	struct ipu_tensor *tensors;
	struct ipu_node *nodes;
	int first, last;

	(void)state;
	memory_sample_make(&sample, &params);
	tensors = (struct ipu_tensor *)(uintptr_t)sample.graph.tensors;
	nodes = (struct ipu_node *)(uintptr_t)sample.graph.nodes;
	tensors[result].kind = IPU_TENSOR_ACTIVATION;
	nodes[0].op = map;
	nodes[0].reads++; /* of input and kernel the kernel */
	nodes[0].read_count--;
	nodes[0].writes = &result;
	assert_int_equal(ipu_executable_new(&executable, &sample.graph, sample.planner,
					    &sample.target, NULL),
			 ST_OK);
	assert_int_equal(ipu_memory_new(&memory, executable, &sample.target, NULL), ST_OK);
	steps_of(memory, 0, "d0/Map", &first, &last);
	assert_true(first < last);
	assert_lives(memory, "d0/input", "d0/Map", "d0/Map");
	ipu_memory_free(memory);
	ipu_executable_free(executable);
	memory_sample_free(&sample);
}

static int64_t bytes_of(const struct ipu_memory *memory, enum ipu_memory_category category)
{
	int64_t bytes = 0;

	for (int v = 0; v < memory->variable_count; v++)
		if (memory->variables[v].category == category)
			bytes += memory->variables[v].bytes;
	return bytes;
}

/* What is called as a function, as a normalisation is, has its code once. */
static void test_functions_that_are_alike_share_their_code(void **state)
{
	const enum ipu_memory_category codes[] = {IPU_MEMORY_CONTROL_CODE,
						  IPU_MEMORY_VERTEX_INSTANCE_STATE};
	const struct memory_sample_params params = {.kind = IPU_SEQUENTIAL,
						    .stages = 1,
						    .layers_per_stage = 3,
						    .dropout = {true, true, true},
						    .layout = {.accumulation = 1}};
	struct memory_sample sample;
	struct ipu_memory *apart = memory_sample_memory(&sample, &params), *shared;
	struct ipu_node *nodes = (struct ipu_node *)(uintptr_t)sample.graph.nodes;

	(void)state;
	for (int n = 0; n < sample.graph.node_count; n++)
		nodes[n].function = strstr(nodes[n].op.name, "DropoutGrad") != NULL;
	assert_int_equal(ipu_memory_new(&shared, sample.executable, &sample.target, NULL), ST_OK);
	for (size_t c = 0; c < ARRAY_LEN(codes); c++)
		assert_true(bytes_of(shared, codes[c]) < bytes_of(apart, codes[c]));
	ipu_memory_free(shared);
	ipu_memory_free(apart);
	memory_sample_free(&sample);
}

/* What all updates of the sample's weights exchange, its products @trained. */
static int64_t bytes_of_updates(struct memory_sample *sample, bool trained)
{
	struct ipu_node *nodes = (struct ipu_node *)(uintptr_t)sample->graph.nodes;
	struct ipu_executable *executable;
	int64_t bytes = 0;

	for (int n = 0; n < sample->graph.node_count; n++) {
		struct ipu_op *op = &nodes[n].op;

		op->trained = trained && op->kind == IPU_OP_MATMUL;
		op->pass = strstr(op->name, "WeightGrad")   ? IPU_BACKWARD_WEIGHTS
			   : strstr(op->name, "MatMulGrad") ? IPU_BACKWARD_DATA
							    : IPU_FORWARD;
		if (strstr(op->name, "SGD"))
			op->elements.operands = 3;
	}
	assert_int_equal(ipu_executable_new(&executable, &sample->graph, sample->planner,
					    &sample->target, NULL),
			 ST_OK);
	for (int n = 0; n < sample->graph.node_count; n++)
		if (strstr(nodes[n].op.name, "SGD"))
			bytes += executable->plans[n]->bytes_exchanged;
	ipu_executable_free(executable);
	return bytes;
}

/* Products planned together leave a weight's gradient where the weight is. */
static void test_a_joint_plans_gradient_lies_as_its_weight(void **state)
{
	const struct memory_sample_params params = {.kind = IPU_SEQUENTIAL,
						    .stages = 1,
						    .layers_per_stage = 2,
						    .units = {1000, 1000},
						    .layout = {.batch = 8, .accumulation = 1}};
	struct memory_sample sample;
	int64_t apart, joint;

	(void)state;
	memory_sample_make(&sample, &params);
	apart = bytes_of_updates(&sample, false);
	joint = bytes_of_updates(&sample, true);
	assert_int_equal(apart, (256 + 1000) * 1000 * 4);
	assert_int_equal(joint, 0);
	memory_sample_free(&sample);
}

static void assert_fifo(const struct ipu_memory *memory, const char *name, int64_t depth)
{
	const struct ipu_variable *fifo = memory_sample_variable(memory, name);

	assert_true(fifo->always_live);
	assert_string_equal(fifo->kind, "fifo");
	assert_int_equal(fifo->bytes, depth * 32 * 256 * 4);
}

static void test_a_fifo_holds_its_depth_of_activations(void **state)
{
	const enum ipu_schedule_kind kinds[] = {IPU_GROUPED, IPU_INTERLEAVED};

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
		const struct memory_sample_params params = {
			.kind = kinds[k], .stages = 4, .layers_per_stage = 1, .skip_to = 3};
		const int64_t each = kinds[k] == IPU_GROUPED ? 2 : 1;
		struct memory_sample sample;
		struct ipu_memory *memory = memory_sample_memory(&sample, &params);

		assert_fifo(memory, "d0/input/fifo", 3 * each);
		assert_fifo(memory, "d0/out/Stage1/fifo", 2 * each);
		assert_fifo(memory, "d1/out/Stage2/fifo", each);
		assert_null(memory_sample_find(memory, "d2/out/Stage3/fifo"));
		/* From stage 0 to stage 3: two micro-batches wait on the way. */
		assert_fifo(memory, "d0/out/skip/Stage3", 2);
		assert_int_equal(memory_sample_variable(memory, "d0/out/skip/Stage3")->ipu, 0);
		assert_true(memory_sample_variable(memory, "d0/out")->crosses);
		ipu_memory_free(memory);
		memory_sample_free(&sample);
	}
}

/* Four stages of a layer, 16 micro-batches: what waits for a stage's backward, or for its W, and
 * the gradients that W's have not read, all but the one that B has made last. */
static void test_a_fifo_is_as_deep_as_each_schedule_needs(void **state)
{
	static const char *const names[] = {"d0/input/fifo", "d0/out/Stage1/fifo",
					    "d1/out/Stage2/fifo", "d2/out/Stage3/fifo"};
	static const struct {
		enum ipu_schedule_kind kind;
		int64_t depth[4], held[4];
	} cases[] = {
		{IPU_GPIPE, {15, 15, 15, 15}, {0}},
		{IPU_1F1B, {3, 2, 1, 0}, {0}},
		{IPU_ZB_H1, {3, 3, 3, 3}, {0, 1, 2, 3}},
		{IPU_ZB_H2, {6, 6, 6, 6}, {0, 2, 4, 6}},
	};

	(void)state;
	for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
		const struct memory_sample_params params = {
			.kind = cases[c].kind, .stages = 4, .layers_per_stage = 1};
		struct memory_sample sample;
		struct ipu_memory *memory = memory_sample_memory(&sample, &params);
		int64_t held[4] = {0};

		for (int s = 0; s < 4; s++) {
			if (cases[c].depth[s] > 0)
				assert_fifo(memory, names[s], cases[c].depth[s]);
			else
				assert_null(memory_sample_find(memory, names[s]));
		}
		for (int v = 0; v < memory->variable_count; v++) {
			const struct ipu_variable *variable = &memory->variables[v];

			if (strstr(variable->name, "gradient") && strstr(variable->name, "/held"))
				held[variable->ipu] += variable->bytes / (32 * 256 * 4);
		}
		for (int s = 0; s < 4; s++)
			assert_int_equal(held[s], cases[c].held[s]);
		ipu_memory_free(memory);
		memory_sample_free(&sample);
	}
}

/* Variables whose names end in @end. */
static int named(const struct ipu_memory *memory, const char *end)
{
	int count = 0;

	for (int v = 0; v < memory->variable_count; v++) {
		const char *name = memory->variables[v].name;

		count += strlen(name) >= strlen(end) &&
			 strcmp(name + strlen(name) - strlen(end), end) == 0;
	}
	return count;
}

static void test_recomputation_keeps_inputs_and_what_cannot_be_made_again(void **state)
{
	struct memory_sample_params params = {
		.kind = IPU_GROUPED, .stages = 2, .layers_per_stage = 3, .dropout = {true}};
	struct memory_sample sample;
	struct ipu_memory *memory;

	(void)state;
	params.layout.recompute = IPU_RECOMPUTE_THEN_BACKPROPAGATE;
	memory = memory_sample_memory(&sample, &params);
	assert_fifo(memory, "d0/input/fifo", 2);
	assert_fifo(memory, "d0/mask/fifo", 2);
	assert_null(memory_sample_find(memory, "d1/out/fifo"));
	assert_non_null(memory_sample_find(memory, "d1/out/recomputed"));
	/* What runs again takes its temporary memory again. */
	assert_true(named(memory, "/temporary/again") > 0);
	ipu_memory_free(memory);
	memory_sample_free(&sample);
}

static void test_without_recomputation_nothing_runs_again(void **state)
{
	const struct memory_sample_params params = {
		.kind = IPU_GROUPED, .stages = 2, .layers_per_stage = 3};
	struct memory_sample sample;
	struct ipu_memory *memory;

	(void)state;
	memory = memory_sample_memory(&sample, &params);
	assert_true(named(memory, "/temporary") > 0);
	assert_int_equal(named(memory, "/temporary/again"), 0);
	ipu_memory_free(memory);
	memory_sample_free(&sample);
}

static void test_what_is_offloaded_is_on_the_chip_in_transit_only(void **state)
{
	struct memory_sample_params params = {
		.kind = IPU_GROUPED, .stages = 2, .layers_per_stage = 2};
	struct memory_sample sample;
	struct ipu_memory *memory;
	int first, last;

	(void)state;
	params.layout.offload_optimizer_state = true;
	params.layout.offload_activations = true;
	memory = memory_sample_memory(&sample, &params);
	assert_null(memory_sample_find(memory, "d0/slot"));
	steps_of(memory, 0, "d0/Accumulate", &first, &last);
	assert_true(memory_sample_variable(memory, "d0/slot/transit/U")->first_step > last);
	steps_of(memory, 0, "d0/SGD", &first, &last);
	assert_true(memory_sample_variable(memory, "d0/slot/transit/U")->first_step <= first);
	assert_true(memory_sample_variable(memory, "d0/slot/transit/U")->last_step >= last);
	assert_null(memory_sample_find(memory, "d0/input/fifo"));
	assert_non_null(memory_sample_find(memory, "d0/input/popped"));
	ipu_memory_free(memory);
	memory_sample_free(&sample);
}

static void test_a_shard_is_a_replicas_part(void **state)
{
	struct memory_sample_params params = {
		.kind = IPU_GROUPED, .stages = 1, .layers_per_stage = 2, .units = {255}};
	struct memory_sample sample;
	struct ipu_memory *memory;
	int first, last;

	(void)state;
	params.layout = (struct ipu_layout){.replicas = 4,
					    .accumulation = 1,
					    .shard_optimizer_state = true,
					    .shard_weights = true};
	memory = memory_sample_memory(&sample, &params);
	assert_int_equal(memory_sample_variable(memory, "d0/slot/shard")->bytes, 64 * 255 * 4);
	assert_int_equal(memory_sample_variable(memory, "d1/kernel/shard")->bytes, 64 * 255 * 4);
	assert_int_equal(memory_sample_variable(memory, "d1/kernel/transit/F")->bytes,
			 256 * 255 * 4);
	steps_of(memory, 0, "d1/Loss", &first, &last);
	assert_int_equal(memory_sample_variable(memory, "d1/kernel/transit/F")->first_step, 0);
	assert_int_equal(memory_sample_variable(memory, "d1/kernel/transit/F")->last_step, last);
	assert_null(memory_sample_find(memory, "d1/kernel/transit/U"));
	ipu_memory_free(memory);
	memory_sample_free(&sample);
}

static void test_io_tiles_take_what_comes_from_the_host(void **state)
{
	struct memory_sample_params params = {
		.kind = IPU_GROUPED, .stages = 1, .layers_per_stage = 2};
	struct memory_sample sample;
	struct ipu_memory *memory;

	(void)state;
	params.layout =
		(struct ipu_layout){.accumulation = 1, .io_tiles = 32, .io_memory_proportion = 0.5};
	memory = memory_sample_memory(&sample, &params);
	assert_int_equal(ipu_memory_tile_limit(memory, 1439), 638976);
	assert_int_equal(ipu_memory_tile_limit(memory, 1440), 319488);
	for (int v = 0; v < memory->variable_count; v++) {
		const struct ipu_variable *variable = &memory->variables[v];
		const bool buffer = strcmp(variable->kind, "io_buffer") == 0;

		if (variable->tensor)
			assert_true((variable->runs[0].tile >= 1440) == buffer);
	}
	assert_int_equal(memory_sample_variable(memory, "d0/input/io")->bytes, 32 * 256 * 4);
	ipu_memory_free(memory);
	memory_sample_free(&sample);
}

/* Without enableConvDithering, which is off by default, poplibs begins every convolution and
 * product on the first tile. */
static void test_products_begin_on_the_first_tile(void **state)
{
	const struct memory_sample_params params = {.kind = IPU_GROUPED,
						    .stages = 1,
						    .layers_per_stage = 12,
						    .layout = {.accumulation = 1}};
	struct memory_sample sample;
	struct ipu_memory *memory = memory_sample_memory(&sample, &params);
	int products = 0, others = 0;

	(void)state;
	for (int v = 0; v < memory->variable_count; v++) {
		const struct ipu_variable *of = &memory->variables[v];

		if (of->node < 0)
			continue;
		switch (sample.graph.nodes[of->node].op.kind) {
		case IPU_OP_CONV:
		case IPU_OP_MATMUL:
			assert_int_equal(of->runs[0].tile, 0);
			products++;
			break;
		default:
			others += of->runs[0].tile > 0;
		}
	}
	assert_true(products > 0 && others > 0);
	ipu_memory_free(memory);
	memory_sample_free(&sample);
}

/* Where an operation begins is a share of the tiles: what lies apart on all of them lies apart on
 * those that I/O leaves, and the fullest tile has as much. */
static void test_io_tiles_shift_all_alike(void **state)
{
	struct memory_sample_params params = {
		.kind = IPU_GROUPED, .stages = 1, .layers_per_stage = 12};
	struct memory_sample all_sample, less_sample;
	struct ipu_memory *all, *less;
	int compared = 0;

	(void)state;
	params.layout = (struct ipu_layout){.accumulation = 1};
	all = memory_sample_memory(&all_sample, &params);
	params.layout.io_tiles = 32;
	less = memory_sample_memory(&less_sample, &params);
	for (int v = 0; v < all->variable_count; v++) {
		const struct ipu_variable *of = &all->variables[v];
		const struct ipu_variable *with;
		int64_t shifted;

		if (of->node < 0)
			continue;
		with = memory_sample_variable(less, of->name);
		shifted = of->runs[0].tile * (less->tiles - less->io_tiles) / all->tiles;
		assert_in_range(with->runs[0].tile + 2, shifted + 1, shifted + 3);
		compared++;
	}
	assert_true(compared > 12);
	ipu_memory_free(all);
	ipu_memory_free(less);
	memory_sample_free(&all_sample);
	memory_sample_free(&less_sample);
}

/* ---- out of memory --------------------------------------------------------------------------- */

static void check_text(const struct memory_sample_params *params, const char *const *parts)
{
	struct memory_sample sample;
	struct ipu_memory *memory = memory_sample_memory(&sample, params);
	struct err err = {ST_OK, ""};

	assert_false(ipu_memory_fits(memory));
	assert_int_equal(ipu_memory_check(memory, sample.executable, &sample.target, &err),
			 ST_FAILED);
	for (; *parts; parts++)
		assert_contains(err.text, *parts);
	ipu_memory_free(memory);
	memory_sample_free(&sample);
}

static void test_out_of_memory_names_what_is_large_and_what_helps(void **state)
{
	const struct memory_sample_params weights = {.kind = IPU_GROUPED,
						     .stages = 1,
						     .layers_per_stage = 1,
						     .units = {2000000},
						     .layout = {.accumulation = 1}};
	const struct memory_sample_params activations = {.kind = IPU_GROUPED,
							 .stages = 2,
							 .layers_per_stage = 4,
							 .layout = {.batch = 80000}};
	/* The tiles of IPU 1 need more bytes, but within their limit; IPU 0's I/O tiles do not fit. */
	const struct memory_sample_params io = {.kind = IPU_GROUPED,
						.stages = 2,
						.layers_per_stage = 2,
						.units = {256, 256, 3000, 3000},
						.layout = {.accumulation = 1,
							   .batch = 4096,
							   .io_tiles = 32,
							   .io_memory_proportion = 0.05}};

	(void)state;
	check_text(&weights, (const char *const[]){"IPU 0 is out of memory on 1472 of 1472 tiles",
						   "of 638,976 bytes at ", "largest there: ",
						   "what is on IPU 0 takes at least ", NULL});
	check_text(&io, (const char *const[]){"IPU 0 is out of memory on 32 of 1472 tiles", NULL});
	check_text(&activations,
		   (const char *const[]){"IPU 0 is out of memory on", "recomputation ",
					 "half the batch ", "a quarter of the batch ", NULL});
}

static void test_a_model_that_fits_is_no_error(void **state)
{
	const struct memory_sample_params params = {
		.kind = IPU_GROUPED, .stages = 2, .layers_per_stage = 1};
	struct memory_sample sample;
	struct ipu_memory *memory = memory_sample_memory(&sample, &params);

	(void)state;
	assert_true(ipu_memory_fits(memory));
	assert_int_equal(ipu_memory_check(memory, sample.executable, &sample.target, NULL), ST_OK);
	ipu_memory_free(memory);
	memory_sample_free(&sample);
}

static void test_without_end_is_an_error(void **state)
{
	const struct memory_sample_params params = {.kind = IPU_GROUPED,
						    .stages = 1,
						    .layers_per_stage = 1,
						    .units = {INT64_C(1) << 32},
						    .layout = {.batch = 1, .accumulation = 1}};
	struct memory_sample sample;
	struct ipu_memory *memory;
	struct err err = {ST_OK, ""};

	(void)state;
	memory_sample_make(&sample, &params);
	assert_int_equal(ipu_memory_new(&memory, sample.executable, &sample.target, &err),
			 ST_INVALID);
	assert_null(memory);
	assert_contains(err.text, "4 TB");
	memory_sample_free(&sample);
}

static void test_a_failing_allocation_leaves_nothing_behind(void **state)
{
	const struct memory_sample_params params = {
		.kind = IPU_GROUPED, .stages = 2, .layers_per_stage = 2};
	struct memory_sample sample;

	(void)state;
	memory_sample_make(&sample, &params);
	for (long n = 0;; n++) {
		struct ipu_memory *memory;
		struct err err = {ST_OK, ""};
		enum status status;
		bool failed;

		support_fail_alloc(n);
		status = ipu_memory_new(&memory, sample.executable, &sample.target, &err);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		/* Arenas do with less where they can. */
		assert_true(status == ST_OK || (failed && status == ST_NOMEM));
		assert_true((status == ST_OK) == (memory != NULL));
		ipu_memory_free(memory);
		if (!failed)
			break;
	}
	memory_sample_free(&sample);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_elements_are_dealt_in_grains_around_the_tiles),
		cmocka_unit_test(test_a_tensor_lives_from_its_first_write_to_its_last_read),
		cmocka_unit_test(test_an_operation_without_steps_has_the_step_of_the_next),
		cmocka_unit_test(test_a_map_overwrites_what_it_reads_last),
		cmocka_unit_test(test_a_map_of_weights_overwrites_nothing),
		cmocka_unit_test(test_functions_that_are_alike_share_their_code),
		cmocka_unit_test(test_a_joint_plans_gradient_lies_as_its_weight),
		cmocka_unit_test(test_a_fifo_holds_its_depth_of_activations),
		cmocka_unit_test(test_a_fifo_is_as_deep_as_each_schedule_needs),
		cmocka_unit_test(test_recomputation_keeps_inputs_and_what_cannot_be_made_again),
		cmocka_unit_test(test_without_recomputation_nothing_runs_again),
		cmocka_unit_test(test_what_is_offloaded_is_on_the_chip_in_transit_only),
		cmocka_unit_test(test_a_shard_is_a_replicas_part),
		cmocka_unit_test(test_io_tiles_take_what_comes_from_the_host),
		cmocka_unit_test(test_products_begin_on_the_first_tile),
		cmocka_unit_test(test_io_tiles_shift_all_alike),
		cmocka_unit_test(test_out_of_memory_names_what_is_large_and_what_helps),
		cmocka_unit_test(test_a_model_that_fits_is_no_error),
		cmocka_unit_test(test_without_end_is_an_error),
		cmocka_unit_test(test_a_failing_allocation_leaves_nothing_behind),
		cmocka_unit_test(test_of_any_model_the_parts_add_up),
		cmocka_unit_test(test_what_is_meant_to_save_memory_never_takes_more),
	};

	return cmocka_run_group_tests_name("ipu_memory", tests, NULL, NULL);
}
