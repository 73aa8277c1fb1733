/*
 * Programs, their cycles on the device clock and the execution trace: what random models and
 * layouts must keep to, and what each option adds.
 */
#include "support/support.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/rng.h"
#include "ipu/compile/ipu_graph.h"
#include "ipu/compile/ipu_trace.h"
#include "support/program_sample.h"

static void random_layers(struct program_sample *sample, struct rng *rng, int stages)
{
	*sample = (struct program_sample){.layers = stages +
						    (int)rng_below(rng, PROGRAM_SAMPLE_LAYERS - 4)};
	sample->units[0] = 1 + (int64_t)rng_below(rng, 300);
	for (int l = 0; l < sample->layers; l++) {
		sample->units[l + 1] = 1 + (int64_t)rng_below(rng, 300);
		sample->dropout[l] = rng_below(rng, 3) == 0;
	}
}

static void random_layout(struct rng *rng, struct program_sample_params *params)
{
	static const int folded[] = {0, 1, 1, 0}, in_turn[] = {0, 1, 0, 1};
	const enum ipu_schedule_kind kind =
		(enum ipu_schedule_kind)rng_below(rng, IPU_SCHEDULE_KINDS);
	const struct ipu_schedule_row *row = ipu_schedule_row(kind);
	const bool chunks = row->sharing == IPU_SHARE_IN_TURN,
		   fold = rng_below(rng, 6) == 0 || chunks;
	bool yes[8];

	*params = (struct program_sample_params){.kind = kind,
						 .stages = fold ? 4 : 1 + (int)rng_below(rng, 4)};
	for (int i = 0; i < 8; i++)
		yes[i] = rng_below(rng, 4) == 0;
	if (fold && (chunks || row->sharing == IPU_SHARE_ANY))
		params->device = chunks ? in_turn : folded;
	params->microbatches = 2 * params->stages * (1 + (int)rng_below(rng, 3));
	if (params->stages == 1 && rng_below(rng, 2))
		params->microbatches = 1;
	params->layout =
		(struct ipu_layout){.batch = 1 + (int64_t)rng_below(rng, 40),
				    .replicas = 1 << rng_below(rng, 4),
				    .recompute = row->splits && params->stages > 1
							 ? IPU_RECOMPUTE_NONE
							 : (enum ipu_recompute)rng_below(rng, 3),
				    .offload_activations = yes[0],
				    .offload_optimizer_state = yes[1],
				    .offload_accumulators = yes[2],
				    .offload_weights = yes[3],
				    .shard_optimizer_state = yes[4],
				    .shard_weights = yes[5],
				    .prefetch_depth = 1 + (int64_t)rng_below(rng, 3),
				    .accumulate_outfeed = yes[6]};
	if (yes[7] && (params->stages == 1 || params->kind == IPU_GROUPED))
		params->layout.io_tiles = 32;
}

/* ---- what holds for all ---------------------------------------------------------------------- */

static void check_tree(const struct ipu_executable *executable)
{
	int roots = 0;

	for (int p = 0; p < executable->program_count; p++) {
		const struct ipu_program *program = &executable->programs[p];
		int children = 0;

		assert_true(program->parent < p);
		assert_non_null(program->name);
		for (int c = p + 1; c < executable->program_count; c++)
			if (executable->programs[c].parent == p)
				assert_int_equal(executable->programs[c].position, children++);
		assert_int_equal(children, program->children);
		assert_true((program->type == IPU_CALL) == (program->call_target >= 0));
		assert_true(program->type == IPU_REPEAT || program->repeats == 1);
		if (program->call_target >= 0)
			assert_int_equal(executable->programs[program->call_target].parent, -1);
		roots += program->parent < 0;
	}
	assert_int_equal(roots, executable->root_count);
}

struct lanes {
	const struct program_sample *sample;
	int64_t at[PROGRAM_SAMPLE_LAYERS];    /* of the tiles that compute */
	int64_t io_at[PROGRAM_SAMPLE_LAYERS]; /* of the I/O tiles */
	int64_t sum[PROGRAM_SAMPLE_LAYERS];   /* cycles that nothing hides */
	int64_t sent, received;
	int64_t *leaf; /* by program: its cycles; -1: not seen */
	int64_t steps;
	struct ipu_split split[PROGRAM_SAMPLE_LAYERS];
};

static void count_split(struct ipu_split *split, const struct ipu_trace_step *step)
{
	const int64_t cycles = step->cycles - (step->overlapped > 0 ? step->overlapped : 0);

	switch (step->type) {
	case IPU_ON_TILE_EXECUTE:
		split->compute += cycles;
		break;
	case IPU_DO_EXCHANGE:
	case IPU_GLOBAL_EXCHANGE:
		split->exchange += cycles;
		break;
	case IPU_SYNC:
	case IPU_SYNC_ANS:
		split->sync += cycles;
		break;
	default:
		split->host_io += cycles;
		break;
	}
}

static int check_step(void *user, const struct ipu_trace_step *step)
{
	struct lanes *lanes = user;
	const struct ipu_program *program = &lanes->sample->executable->programs[step->program];
	const bool io = step->overlapped >= 0 && lanes->sample->graph.layout.io_tiles > 0;
	int64_t *at = io ? &lanes->io_at[step->ipu] : &lanes->at[step->ipu];

	assert_true(step->program >= 0);
	assert_int_equal(program->type, step->type);
	assert_true(step->cycles >= 0 && step->bytes_in >= 0 && step->bytes_out >= 0);
	/* No two on the same tiles at once; without I/O tiles no gap either. */
	assert_true(step->start_cycle >= *at);
	if (lanes->sample->graph.layout.io_tiles == 0)
		assert_int_equal(step->start_cycle, *at);
	*at = step->start_cycle + step->cycles;
	lanes->sum[step->ipu] += step->cycles - (step->overlapped > 0 ? step->overlapped : 0);
	if (step->type == IPU_GLOBAL_EXCHANGE || step->type == IPU_DO_EXCHANGE) {
		lanes->sent += step->bytes_out;
		lanes->received += step->bytes_in;
	}
	lanes->leaf[step->program] = step->cycles;
	lanes->steps++;
	count_split(&lanes->split[step->ipu], step);
	return 0;
}

/* Down the tree as a control processor would. */
static int64_t walk(const struct ipu_executable *executable, const int64_t *leaf, int program)
{
	const struct ipu_program *at = &executable->programs[program];
	int64_t cycles = leaf[program] > 0 ? leaf[program] : 0;

	if (at->type == IPU_CALL)
		return walk(executable, leaf, at->call_target);
	for (int c = program + 1; c < executable->program_count; c++)
		if (executable->programs[c].parent == program)
			cycles += walk(executable, leaf, c);
	return cycles * at->repeats;
}

static int find_program(const struct ipu_executable *executable, const char *name)
{
	for (int p = 0; p < executable->program_count; p++)
		if (strcmp(executable->programs[p].name, name) == 0)
			return p;
	return -1;
}

static void check_lanes(const struct program_sample *sample)
{
	const struct ipu_executable *executable = sample->executable;
	const struct ipu_timeline *timeline = sample->timeline;
	struct lanes lanes = {.sample = sample};

	lanes.leaf = mem_calloc((size_t)executable->program_count, sizeof(*lanes.leaf));
	assert_non_null(lanes.leaf);
	assert_int_equal(ipu_trace(executable, timeline, check_step, &lanes), 0);
	for (int i = 0; i < sample->schedule->ipus; i++) {
		const struct ipu_split *split = &timeline->split[i], *sum = &lanes.split[i];

		assert_int_equal(lanes.sum[i], timeline->cycles);
		assert_int_equal(sum->compute, split->compute);
		assert_int_equal(sum->exchange, split->exchange);
		assert_int_equal(sum->sync, split->sync + split->idle);
		assert_int_equal(sum->host_io, split->host_io);
	}
	assert_int_equal(lanes.sent, lanes.received);
	/* One IPU: the tree says the same as the clock. */
	if (sample->schedule->ipus == 1 && sample->graph.layout.prefetch_depth != 1 &&
	    sample->graph.layout.io_tiles == 0)
		assert_int_equal(walk(executable, lanes.leaf, find_program(executable, "train")),
				 timeline->cycles * sample->graph.layout.runs);
	mem_free(lanes.leaf);
}

static void test_programs_and_trace_agree_whatever_the_model(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 1, rng_stream("program"), 0, 0);
	for (int round = 0; round < 120; round++) {
		struct program_sample_params params;
		struct program_sample sample;

		random_layout(&rng, &params);
		random_layers(&sample, &rng, params.stages);
		program_sample_setup(&sample, &params);
		assert_int_equal(program_sample_compile(&sample, NULL), ST_OK);
		check_tree(sample.executable);
		check_lanes(&sample);
		program_sample_free(&sample);
	}
}

/* ---- what each option adds ------------------------------------------------------------------- */

/* Steps of @function of @stage whose sequence's name begins with @prefix; of @type, as often as
 * they run. */
static int count_steps(const struct program_sample *sample, int stage,
		       enum ipu_function_phase function, enum ipu_program_type type,
		       const char *prefix)
{
	const struct ipu_executable *executable = sample->executable;
	const struct ipu_code *code = &executable->code[stage][function];
	int64_t count = 0;

	for (int i = 0; i < code->step_count; i++) {
		const struct ipu_program *leaf = &executable->programs[code->steps[i].program];
		const char *name = executable->programs[leaf->parent].name;

		if (code->steps[i].type == type && strncmp(name, prefix, strlen(prefix)) == 0)
			count += code->steps[i].repeats;
	}
	return (int)count;
}

static void test_gradients_are_summed_over_the_replicas_tensor_by_tensor(void **state)
{
	const struct program_sample_params params = {
		.kind = IPU_SEQUENTIAL, .stages = 1, .microbatches = 1, .layout = {.replicas = 4}};
	const struct ipu_function_cost *cost;
	struct program_sample sample, alone;
	struct program_sample_params one = params;
	int64_t added, phases;

	(void)state;
	program_sample_plain(&sample);
	program_sample_plain(&alone);
	one.layout.replicas = 1;
	program_sample_setup(&sample, &params);
	program_sample_setup(&alone, &one);
	assert_int_equal(program_sample_compile(&sample, NULL), ST_OK);
	assert_int_equal(program_sample_compile(&alone, NULL), ST_OK);
	/* Of each of the eight: four before the rounds or after them, two rounds that meet in the
	 * middle with three and a sync between the replicas, there and back. */
	assert_int_equal(count_steps(&sample, 0, IPU_FUNCTION_U, IPU_SYNC, "CrossReplicaSum"),
			 8 * 2 * (4 + 2 * 4));
	assert_int_equal(
		count_steps(&sample, 0, IPU_FUNCTION_U, IPU_GLOBAL_EXCHANGE, "CrossReplicaSum"),
		8 * 2 * 2);
	cost = &sample.executable->code[0][IPU_FUNCTION_U].cost;
	added = cost->cycles - alone.executable->code[0][IPU_FUNCTION_U].cost.cycles;
	assert_int_equal(added, sample.executable->code[0][IPU_FUNCTION_U].collective);
	phases = 16 * (10 * (int64_t)sample.target.phase_cycles +
		       2 * ipu_sync_cycles(&sample.target, 4));
	assert_in_range(added, phases, phases + 8 * 1000);
	program_sample_free(&sample);
	program_sample_free(&alone);
}

/* Eight gradients of 64 x 64 float32. */
static void test_gradients_are_summed_together_as_far_as_the_buffer_goes(void **state)
{
	static const struct {
		int64_t buffer;
		int sums;
	} cases[] = {
		{0, 8}, {64 * 64 * 4, 8}, {2 * 64 * 64 * 4, 4}, {3 * 64 * 64 * 4, 3}, {1 << 20, 1}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct program_sample_params params = {
			.kind = IPU_SEQUENTIAL,
			.stages = 1,
			.microbatches = 1,
			.layout = {.replicas = 4, .sum_buffer_bytes = cases[i].buffer}};
		struct program_sample sample;
		int64_t bytes = 0;

		program_sample_plain(&sample);
		program_sample_setup(&sample, &params);
		assert_int_equal(program_sample_compile(&sample, NULL), ST_OK);
		assert_int_equal(count_steps(&sample, 0, IPU_FUNCTION_U, IPU_GLOBAL_EXCHANGE,
					     "CrossReplicaSum"),
				 cases[i].sums * 2 * 2);
		for (int s = 0; s < sample.executable->code[0][IPU_FUNCTION_U].step_count; s++) {
			const struct ipu_step *step =
				&sample.executable->code[0][IPU_FUNCTION_U].steps[s];

			if (step->type == IPU_GLOBAL_EXCHANGE)
				bytes += step->bytes_in * step->repeats;
		}
		/* 2 (R - 1) / R of all gradients, however they are put together. */
		assert_int_equal(bytes, 8 * 64 * 64 * 4 * 6 / 4);
		program_sample_free(&sample);
	}
}

static void test_more_replicas_take_no_more_program(void **state)
{
	static const int replicas[] = {4, 64, 256, 4096};
	int programs[ARRAY_LEN(replicas)];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(replicas); i++) {
		const struct program_sample_params params = {.kind = IPU_SEQUENTIAL,
							     .stages = 1,
							     .microbatches = 1,
							     .layout = {.replicas = replicas[i]}};
		struct program_sample sample;

		program_sample_plain(&sample);
		program_sample_setup(&sample, &params);
		assert_int_equal(program_sample_compile(&sample, NULL), ST_OK);
		programs[i] = sample.executable->program_count;
		/* 2 x 64 / 2 rounds within a domain, 2 (R / 64 - 1) between domains. */
		assert_int_equal(
			count_steps(&sample, 0, IPU_FUNCTION_U, IPU_GLOBAL_EXCHANGE,
				    "CrossReplicaSum"),
			8 * 2 * (replicas[i] < 64 ? replicas[i] / 2 : 32 + replicas[i] / 64 - 1));
		program_sample_free(&sample);
	}
	assert_int_equal(programs[0], programs[1]);
	assert_int_equal(programs[2], programs[3]);
}

/* A gradient that the update takes as float32 is summed in the type that it was made in. */
static void test_gradients_are_summed_in_their_own_type(void **state)
{
	const struct program_sample_params params = {
		.kind = IPU_SEQUENTIAL, .stages = 1, .microbatches = 1, .layout = {.replicas = 4}};
	struct program_sample sample;
	struct ipu_node *makes = NULL;
	int64_t bytes = 0;
	const int gradient = program_sample_tensor(3, PROGRAM_WEIGHT_GRADIENT);
	const int half = program_sample_tensor(3, PROGRAM_MASK);

	(void)state;
	program_sample_plain(&sample);
	program_sample_setup(&sample, &params);
	sample.tensors[half].dtype = IPU_FLOAT16;
	for (int n = 0; n < sample.graph.node_count; n++)
		if (sample.nodes[n].write_count == 1 && sample.nodes[n].writes[0] == gradient)
			makes = &sample.nodes[n];
	assert_non_null(makes);
	makes->op = (struct ipu_op){
		.kind = IPU_OP_ELEMENTWISE,
		.name = "Cast",
		.phase = IPU_PHASE_B,
		.elements = {.count = 64 * 64, .operands = 1, .times = {[IPU_FN_CAST] = 1}}};
	makes->reads = &half;
	makes->read_count = 1;
	assert_int_equal(program_sample_compile(&sample, NULL), ST_OK);
	for (int s = 0; s < sample.executable->code[0][IPU_FUNCTION_U].step_count; s++) {
		const struct ipu_step *step = &sample.executable->code[0][IPU_FUNCTION_U].steps[s];

		if (step->type == IPU_GLOBAL_EXCHANGE)
			bytes += step->bytes_in * step->repeats;
	}
	assert_int_equal(bytes, (7 * 4 + 2) * 64 * 64 * 6 / 4);
	program_sample_free(&sample);
}

static void test_a_sharded_state_is_scattered_updated_and_gathered(void **state)
{
	const struct program_sample_params params = {.kind = IPU_SEQUENTIAL,
						     .stages = 1,
						     .microbatches = 2,
						     .layout = {.replicas = 4,
								.offload_optimizer_state = true,
								.shard_optimizer_state = true}};
	struct program_sample sample;

	(void)state;
	program_sample_plain(&sample);
	program_sample_setup(&sample, &params);
	assert_int_equal(program_sample_compile(&sample, NULL), ST_OK);
	assert_int_equal(
		count_steps(&sample, 0, IPU_FUNCTION_U, IPU_GLOBAL_EXCHANGE, "CrossReplicaSum"),
		8 * 2);
	assert_int_equal(
		count_steps(&sample, 0, IPU_FUNCTION_U, IPU_GLOBAL_EXCHANGE, "ReplicatedAllGather"),
		8 * 2);
	for (int i = 0; i < sample.executable->code[0][IPU_FUNCTION_U].step_count; i++) {
		const struct ipu_step *step = &sample.executable->code[0][IPU_FUNCTION_U].steps[i];

		/* The state comes and goes in quarters. */
		if (step->type == IPU_STREAM_COPY_MID)
			assert_int_equal(step->bytes_in + step->bytes_out, 8 * 64 * 64 * 4 / 4);
	}
	program_sample_free(&sample);
}

static void test_what_waits_for_its_backward_goes_through_fifos(void **state)
{
	struct program_sample_params params = {.kind = IPU_GROUPED, .stages = 2, .microbatches = 4};
	struct program_sample sample;

	(void)state;
	program_sample_plain(&sample);
	program_sample_setup(&sample, &params);
	assert_int_equal(program_sample_compile(&sample, NULL), ST_OK);
	/* The inputs of stage 0's four layers; stage 1 is the last and has no FIFO. */
	assert_int_equal(count_steps(&sample, 0, IPU_FUNCTION_PUSH, IPU_ON_TILE_EXECUTE, ""), 4);
	assert_int_equal(count_steps(&sample, 0, IPU_FUNCTION_B, IPU_ON_TILE_EXECUTE, "FIFO/Pop"),
			 4);
	assert_int_equal(sample.executable->code[1][IPU_FUNCTION_PUSH].program, -1);
	assert_int_equal(sample.executable->code[0][IPU_FUNCTION_R].program, -1);
	program_sample_free(&sample);
	/* In streaming memory: a load and a store in their place. */
	program_sample_plain(&sample);
	params.layout.offload_activations = true;
	program_sample_setup(&sample, &params);
	assert_int_equal(program_sample_compile(&sample, NULL), ST_OK);
	assert_int_equal(count_steps(&sample, 0, IPU_FUNCTION_PUSH, IPU_STREAM_COPY_MID, ""), 4);
	assert_int_equal(count_steps(&sample, 0, IPU_FUNCTION_B, IPU_STREAM_COPY_MID, "FIFO"), 4);
	program_sample_free(&sample);
	params.kind = IPU_SEQUENTIAL;
	program_sample_plain(&sample);
	program_sample_setup(&sample, &params);
	assert_int_equal(program_sample_compile(&sample, NULL), ST_OK);
	assert_int_equal(sample.executable->code[0][IPU_FUNCTION_PUSH].program, -1);
	program_sample_free(&sample);
}

/* What trains has forward passes of their own for evaluation and prediction, where they are run. */
static void test_forward_functions_are_those_that_are_run(void **state)
{
	struct program_sample_params params = {.kind = IPU_GROUPED, .stages = 2, .microbatches = 4};
	struct program_sample sample;

	(void)state;
	for (int run = 0; run < 4; run++) {
		params.layout.evaluated = run & 1;
		params.layout.predicted = run & 2;
		program_sample_plain(&sample);
		program_sample_setup(&sample, &params);
		assert_int_equal(program_sample_compile(&sample, NULL), ST_OK);
		for (int s = 0; s < 2; s++) {
			const struct ipu_code *code = sample.executable->code[s];

			assert_true(code[IPU_FUNCTION_F].program >= 0);
			assert_int_equal(code[IPU_FUNCTION_EVALUATE].program >= 0,
					 params.layout.evaluated);
			assert_int_equal(code[IPU_FUNCTION_PREDICT].program >= 0,
					 params.layout.predicted);
		}
		program_sample_free(&sample);
	}
}

static void test_recomputation_keeps_inputs_and_what_is_drawn(void **state)
{
	const struct program_sample_params params = {
		.kind = IPU_GROUPED,
		.stages = 2,
		.microbatches = 4,
		.layout = {.recompute = IPU_RECOMPUTE_THEN_BACKPROPAGATE}};
	struct ipu_stash stash;
	struct program_sample sample;

	(void)state;
	program_sample_plain(&sample);
	sample.dropout[1] = true;
	program_sample_setup(&sample, &params);
	assert_int_equal(ipu_stash_init(&stash, &sample.graph, 0, NULL), ST_OK);
	assert_int_equal(stash.count, 3);
	assert_int_equal(stash.tensors[0], 0);
	assert_int_equal(stash.tensors[1], program_sample_tensor(1, PROGRAM_OUT));
	assert_int_equal(stash.tensors[2], program_sample_tensor(1, PROGRAM_MASK));
	/* Layer 0's output is read by layer 1's gradient, layer 2's by layer 3's; the dropout's
	 * operand and the stage's own output by nobody. */
	assert_true(stash.replays && stash.replayed[0] && stash.replayed[3]);
	assert_false(stash.replayed[1] || stash.replayed[2] || stash.replayed[4]);
	ipu_stash_fini(&stash);
	assert_int_equal(ipu_stash_init(&stash, &sample.graph, 1, NULL), ST_OK);
	assert_false(stash.replays);
	ipu_stash_fini(&stash);
	assert_int_equal(program_sample_compile(&sample, NULL), ST_OK);
	assert_int_equal(count_steps(&sample, 0, IPU_FUNCTION_PUSH, IPU_ON_TILE_EXECUTE, ""), 3);
	assert_int_equal(count_steps(&sample, 0, IPU_FUNCTION_R, IPU_ON_TILE_EXECUTE, "FIFO/Pop"),
			 3);
	program_sample_free(&sample);
}

/* A map of a stage's input; the backward pass reads its result. Its input is enough to make that
 * again, unless it draws random numbers. */
static void test_a_map_runs_again_unless_it_draws(void **state)
{
	static const struct ipu_tensor tensors[] = {{.kind = IPU_TENSOR_INPUT},
						    {.kind = IPU_TENSOR_ACTIVATION},
						    {.kind = IPU_TENSOR_WEIGHT_GRADIENT}};
	static const int list[] = {0, 1, 2};
	const struct ipu_node forward = {.op = {.kind = IPU_OP_ELEMENTWISE, .phase = 'F'},
					 .reads = list,
					 .writes = list + 1,
					 .read_count = 1,
					 .write_count = 1};
	const struct ipu_node backward = {.op = {.kind = IPU_OP_REDUCE, .phase = 'B'},
					  .reads = list + 1,
					  .writes = list + 2,
					  .read_count = 1,
					  .write_count = 1};
	struct ipu_node nodes[] = {forward, backward};
	const struct ipu_graph graph = {
		.tensors = tensors,
		.tensor_count = ARRAY_LEN(tensors),
		.nodes = nodes,
		.node_count = ARRAY_LEN(nodes),
		.layout = {.stages = 2, .recompute = IPU_RECOMPUTE_THEN_BACKPROPAGATE}};

	(void)state;
	for (int draws = 0; draws < 2; draws++) {
		struct ipu_stash stash;

		nodes[0].op.elements.times[draws ? IPU_FN_RANDOM : IPU_FN_EXP] = 1;
		assert_int_equal(ipu_stash_init(&stash, &graph, 0, NULL), ST_OK);
		assert_int_equal(stash.count, 1);
		assert_int_equal(stash.tensors[0], draws ? 1 : 0);
		assert_int_equal(stash.replayed[0], !draws);
		ipu_stash_fini(&stash);
	}
}

/* Nodes share one list of tensors: what stands in it behind a node's own is not the node's. */
static void test_gradients_of_weights_move_to_phase_w(void **state)
{
	static const struct ipu_tensor tensors[] = {{.kind = IPU_TENSOR_WEIGHT_GRADIENT},
						    {.kind = IPU_TENSOR_GRADIENT}};
	static const int list[] = {0, 1};
	struct ipu_node nodes[] = {
		{.op = {.phase = 'B'}, .writes = list, .write_count = 1},
		{.op = {.phase = 'B'}, .writes = list + 1, .write_count = 1},
	};

	(void)state;
	assert_int_equal(
		ipu_graph_split(nodes, ARRAY_LEN(nodes), tensors, ARRAY_LEN(tensors), NULL), ST_OK);
	assert_int_equal(nodes[0].op.phase, 'W');
	assert_int_equal(nodes[1].op.phase, 'B');
}

static void test_a_machine_without_streaming_memory_says_so(void **state)
{
	static const struct {
		struct ipu_layout layout;
		const char *text;
	} cases[] = {
		{{.offload_weights = true},
		 "weights cannot be offloaded: ipu1 has no streaming memory that is modelled (ipu2 "
		 "and ipu21 have)"},
		{{.offload_activations = true},
		 "activations cannot be offloaded: ipu1 has no streaming memory that is modelled "
		 "(ipu2 and ipu21 have)"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct program_sample_params params = {.kind = IPU_GROUPED,
							     .stages = 2,
							     .microbatches = 4,
							     .target = "ipu1",
							     .layout = cases[i].layout};
		struct program_sample sample;
		struct err err;

		program_sample_plain(&sample);
		program_sample_setup(&sample, &params);
		assert_int_equal(program_sample_compile(&sample, &err), ST_INVALID);
		assert_string_equal(err.text, cases[i].text);
		program_sample_free(&sample);
	}
}

/* Of a chain each stage reads what the one before it makes, and nothing of the others. */
static void test_a_stage_is_sent_what_it_reads(void **state)
{
	(void)state;
	for (int stages = 1; stages <= 4; stages++) {
		const struct program_sample_params params = {
			.kind = IPU_GROUPED, .stages = stages, .microbatches = 2 * stages};
		struct program_sample sample;

		program_sample_plain(&sample);
		program_sample_setup(&sample, &params);
		assert_int_equal(program_sample_compile(&sample, NULL), ST_OK);
		assert_int_equal(sample.costs.send_count, stages - 1);
		for (int i = 0; i < stages - 1; i++) {
			const int last = (i + 1) * sample.layers / stages - 1;
			const struct ipu_tensor *out =
				&sample.tensors[program_sample_tensor(last, PROGRAM_OUT)];

			assert_int_equal(sample.costs.sends[i].from, i);
			assert_int_equal(sample.costs.sends[i].to, i + 1);
			assert_int_equal(out->stage, i);
			assert_int_equal(sample.costs.sends[i].bytes, ipu_tensor_bytes(out));
		}
		program_sample_free(&sample);
	}
}

/* Ramp-up and ramp-down as long as a micro-batch's way there and back; the main phase repeats. */
static void test_a_pipeline_is_ramp_up_main_phase_and_ramp_down(void **state)
{
	static const struct {
		enum ipu_schedule_kind kind;
		int microbatches, up, repeats, down;
	} cases[] = {
		{IPU_GROUPED, 4, 4, 0, 3},     {IPU_GROUPED, 12, 4, 2, 3},
		{IPU_INTERLEAVED, 2, 4, 0, 2}, {IPU_INTERLEAVED, 8, 4, 3, 2},
		{IPU_SEQUENTIAL, 3, 0, 3, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct program_sample_params params = {
			.kind = cases[i].kind, .stages = 2, .microbatches = cases[i].microbatches};
		struct program_sample sample;
		const struct ipu_program *programs;
		int up, main, down;

		program_sample_plain(&sample);
		program_sample_setup(&sample, &params);
		assert_int_equal(program_sample_compile(&sample, NULL), ST_OK);
		programs = sample.executable->programs;
		up = find_program(sample.executable, "RampUp");
		main = find_program(sample.executable, "Main");
		down = find_program(sample.executable, "RampDown");
		if (cases[i].repeats == 0) {
			/* No main phase: all of it is one ramp. */
			assert_int_equal(main, -1);
			assert_int_equal(programs[up].children, cases[i].up + cases[i].down);
		} else {
			assert_int_equal(programs[main].repeats, cases[i].repeats);
			assert_int_equal(programs[main + 1].children, 4);
			/* A ramp without a time step is no program. */
			assert_int_equal(up < 0, cases[i].up == 0);
			assert_int_equal(down < 0, cases[i].down == 0);
			assert_int_equal(up < 0 ? 0 : programs[up].children, cases[i].up);
			assert_int_equal(down < 0 ? 0 : programs[down].children, cases[i].down);
		}
		assert_int_equal(programs[find_program(sample.executable, "PipelineRuns")].repeats,
				 3);
		program_sample_free(&sample);
	}
}

/* How often a program runs in a pipeline run; 0: it is in none. */
static int64_t times_of(const struct ipu_executable *executable, int program)
{
	const int run = find_program(executable, "PipelineRun");
	int64_t times = 1;

	for (; program >= 0 && program != run; program = executable->programs[program].parent)
		times *= executable->programs[program].repeats;
	return program == run ? times : 0;
}

/* Steps that are the same again and again are written once: each function is called as often as
 * the clock has it all the same. */
static void test_the_programs_of_any_schedule_call_what_the_clock_runs(void **state)
{
	static const int in_turn[] = {0, 1, 0, 1};
	int folded = 0;

	(void)state;
	for (int kind = 0; kind < IPU_SCHEDULE_KINDS; kind++) {
		for (int rounds = 1; rounds <= 4; rounds++) {
			const bool chunks = kind == IPU_1F1B_INTERLEAVED;
			const struct program_sample_params params = {
				.kind = (enum ipu_schedule_kind)kind,
				.stages = 4,
				.microbatches = 8 * rounds,
				.device = chunks ? in_turn : NULL};
			struct program_sample sample;
			const struct ipu_executable *executable;

			program_sample_plain(&sample);
			program_sample_setup(&sample, &params);
			assert_int_equal(program_sample_compile(&sample, NULL), ST_OK);
			executable = sample.executable;
			folded += find_program(executable, "Main") >= 0;
			for (int s = 0; s < 4; s++) {
				for (int f = 0; f < IPU_FUNCTION_PHASES; f++) {
					int64_t called = 0, run = 0;

					for (int p = 0; p < executable->program_count; p++)
						if (executable->programs[p].call_target >= 0 &&
						    executable->programs[p].call_target ==
							    executable->code[s][f].program)
							called += times_of(executable, p);
					for (int e = 0; e < sample.timeline->count; e++)
						run += sample.timeline->events[e].stage == s &&
						       (int)sample.timeline->events[e].function ==
							       f;
					assert_int_equal(called, run);
				}
			}
			program_sample_free(&sample);
		}
	}
	assert_true(folded >= 3 * IPU_SCHEDULE_KINDS - 4);
}

/* What is done in each time step, a bit for each stage's F, B and W, whatever the micro-batch. */
static void what_steps_do(const struct ipu_schedule *schedule, unsigned *done)
{
	memset(done, 0, (size_t)schedule->time_steps * sizeof(*done));
	for (int w = 0; w < schedule->first[schedule->ipus]; w++) {
		const struct ipu_work *work = &schedule->works[w];
		const int phase = work->phase == IPU_PHASE_F   ? 0
				  : work->phase == IPU_PHASE_B ? 1
							       : 2;

		done[work->time_step] |= 1u << (3 * work->stage + phase);
	}
}

/* The most time steps that a repetition saves. The step after the last one is alike, too. */
static int most_saved(const unsigned *done, int time_steps)
{
	int most = 0;

	for (int period = 1; period < time_steps; period++)
		for (int t = 0, run = 0; t + period < time_steps; t++) {
			run = done[t] == done[t + period] ? run + 1 : 0;
			most = max(most, (run - 1) / period * period);
		}
	return most;
}

/* Of a schedule without rounds, the main phase is the repetition that saves most. */
static void test_a_main_phase_saves_as_many_steps_as_can_be(void **state)
{
	int long_ones = 0;

	(void)state;
	for (int kind = 0; kind < IPU_SCHEDULE_KINDS; kind++)
		for (int stages = 2; stages <= 4; stages++)
			for (int microbatches = stages; microbatches <= 24;
			     microbatches += stages) {
				const bool chunks =
					ipu_schedule_row((enum ipu_schedule_kind)kind)->sharing ==
					IPU_SHARE_IN_TURN;
				const int in_turn[] = {0, 1, 0, 1};
				const struct ipu_schedule_params params = {
					.kind = (enum ipu_schedule_kind)kind,
					.stages = stages,
					.microbatches = microbatches,
					.training = true,
					.device = chunks ? in_turn : NULL};
				struct ipu_timeline timeline = {0};
				struct ipu_schedule *schedule;
				struct ipu_folding fold;
				unsigned done[256];

				if (ipu_schedule_new(&schedule, &params, NULL) != ST_OK)
					continue;
				assert_in_range(schedule->time_steps, 1, ARRAY_LEN(done));
				what_steps_do(schedule, done);
				timeline.time_steps = schedule->time_steps;
				fold = ipu_control_fold(schedule, &timeline);
				if (schedule->round == 0) {
					assert_int_equal(schedule->time_steps - fold.slots,
							 most_saved(done, schedule->time_steps));
					long_ones += fold.period > stages + 3;
				}
				for (int r = 1; r < fold.repeats; r++)
					assert_memory_equal(done + fold.lead,
							    done + fold.lead + r * fold.period,
							    (size_t)fold.period * sizeof(*done));
				ipu_schedule_free(schedule);
			}
	assert_true(long_ones > 0);
}

static void test_steps_that_repeat_are_called_so(void **state)
{
	const struct program_sample_params params = {
		.kind = IPU_SEQUENTIAL, .stages = 1, .microbatches = 1};
	struct program_sample sample;
	char name[128];
	int steps;

	(void)state;
	program_sample_plain(&sample);
	program_sample_setup(&sample, &params);
	sample.nodes[0].op.repeats = 5;
	assert_int_equal(program_sample_compile(&sample, NULL), ST_OK);
	assert_int_equal(sample.executable->plans[0]->serial_splits, 1);
	snprintf(name, sizeof(name), "%s/Steps", sample.nodes[0].op.name);
	steps = find_program(sample.executable, name);
	assert_true(steps >= 0);
	assert_int_equal(sample.executable->programs[steps].repeats, 5);
	program_sample_free(&sample);
}

/* Every run starts by being told which program to run. */
static void test_an_engine_run_starts_with_its_choice(void **state)
{
	static const enum ipu_program_type types[] = {
		IPU_STREAM_COPY_BEGIN, IPU_STREAM_COPY_MID, IPU_STREAM_COPY_END,
		IPU_STREAM_COPY_BEGIN, IPU_STREAM_COPY_MID, IPU_STREAM_COPY_END,
		IPU_DO_EXCHANGE,       IPU_SWITCH,          IPU_CALL};
	const struct program_sample_params params = {
		.kind = IPU_SEQUENTIAL, .stages = 1, .microbatches = 1};
	struct program_sample sample;
	int root;

	(void)state;
	program_sample_plain(&sample);
	program_sample_setup(&sample, &params);
	assert_int_equal(program_sample_compile(&sample, NULL), ST_OK);
	root = find_program(sample.executable, "Engine::run");
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		assert_int_equal(sample.executable->programs[root + 1 + (int)i].type, types[i]);
	assert_int_equal(sample.executable->programs[root + 9].call_target,
			 find_program(sample.executable, "train"));
	program_sample_free(&sample);
}

static void test_no_failed_allocation_leaves_anything(void **state)
{
	const struct program_sample_params params = {
		.kind = IPU_GROUPED,
		.stages = 2,
		.microbatches = 4,
		.layout = {.replicas = 2, .recompute = IPU_RECOMPUTE_THEN_BACKPROPAGATE}};
	bool failed = true;

	(void)state;
	for (long n = 0; failed; n++) {
		struct program_sample sample;
		enum status status;

		program_sample_plain(&sample);
		program_sample_setup(&sample, &params);
		support_fail_alloc(n);
		status = program_sample_compile(&sample, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		/* An arena asks for less where it does not get much. */
		assert_true(status == ST_OK || (failed && status == ST_NOMEM));
		program_sample_free(&sample);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs_and_trace_agree_whatever_the_model),
		cmocka_unit_test(test_gradients_are_summed_over_the_replicas_tensor_by_tensor),
		cmocka_unit_test(test_gradients_are_summed_together_as_far_as_the_buffer_goes),
		cmocka_unit_test(test_more_replicas_take_no_more_program),
		cmocka_unit_test(test_gradients_are_summed_in_their_own_type),
		cmocka_unit_test(test_a_sharded_state_is_scattered_updated_and_gathered),
		cmocka_unit_test(test_what_waits_for_its_backward_goes_through_fifos),
		cmocka_unit_test(test_forward_functions_are_those_that_are_run),
		cmocka_unit_test(test_recomputation_keeps_inputs_and_what_is_drawn),
		cmocka_unit_test(test_a_map_runs_again_unless_it_draws),
		cmocka_unit_test(test_gradients_of_weights_move_to_phase_w),
		cmocka_unit_test(test_a_machine_without_streaming_memory_says_so),
		cmocka_unit_test(test_a_stage_is_sent_what_it_reads),
		cmocka_unit_test(test_a_pipeline_is_ramp_up_main_phase_and_ramp_down),
		cmocka_unit_test(test_the_programs_of_any_schedule_call_what_the_clock_runs),
		cmocka_unit_test(test_a_main_phase_saves_as_many_steps_as_can_be),
		cmocka_unit_test(test_steps_that_repeat_are_called_so),
		cmocka_unit_test(test_an_engine_run_starts_with_its_choice),
		cmocka_unit_test(test_no_failed_allocation_leaves_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
