/*
 * What the simulated IPU makes of many operations, programs and layouts, beside what it made of
 * them before: tests/golden/ipu_simulated.txt, which UPDATE_GOLDEN=1 rewrites. Formulas have their
 * own oracle (test_ipu_cost); this says that no figure changes unseen.
 */
#include "support/support.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "ipu/plan/ipu_plan.h"
#include "support/memory_sample.h"
#include "support/program_sample.h"

static FILE *out;

/* The digest of lists that are too long to print. */
static uint64_t hash_add(uint64_t hash, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static uint64_t hash_add(uint64_t hash, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return support_digest_text(hash, text, strlen(text));
}

/* ---- plans ----------------------------------------------------------------------------------- */

#define CONV(b, h, w, ci, co, k, s, g)                                                             \
	{                                                                                          \
		.kind = IPU_OP_CONV, .conv = {                                                     \
			.batch = b,                                                                \
			.groups = g,                                                               \
			.in_channels = ci,                                                         \
			.out_channels = co,                                                        \
			.in = {h, w},                                                              \
			.out = {((h) - (k)) / (s) + 1, ((w) - (k)) / (s) + 1},                     \
			.kernel = {k, k},                                                          \
			.stride = {s, s},                                                          \
			.dilation = {1, 1}                                                         \
		}                                                                                  \
	}
#define MATMUL(rows, inner, columns)                                                               \
	{                                                                                          \
		.kind = IPU_OP_MATMUL, .matmul = { rows, inner, columns }                          \
	}

static const struct ipu_op operations[] = {
	CONV(64, 28, 28, 1, 32, 3, 1, 1),
	CONV(64, 26, 26, 32, 64, 3, 1, 1),
	CONV(2, 224, 224, 3, 64, 7, 2, 1),
	CONV(2, 56, 56, 64, 256, 1, 1, 1),
	CONV(2, 56, 56, 256, 512, 1, 2, 1),
	CONV(2, 14, 14, 256, 256, 3, 1, 1),
	CONV(1, 112, 112, 1, 1, 3, 1, 32),
	CONV(4, 15, 15, 4, 8, 3, 2, 8),
	CONV(3, 9, 40, 5, 7, 5, 1, 1),
	MATMUL(32, 784, 128),
	MATMUL(32, 128, 10),
	MATMUL(784, 32, 256),
	MATMUL(1024, 1024, 4),
	MATMUL(4096, 4096, 1024),
	{.kind = IPU_OP_ELEMENTWISE,
	 .elements = {.count = 100480,
		      .operands = 3,
		      .broadcast = 128,
		      .times = {[IPU_FN_ADD] = 2, [IPU_FN_SQRT] = 1, [IPU_FN_DIVIDE] = 1}}},
	{.kind = IPU_OP_ELEMENTWISE,
	 .elements = {.count = 4001, .operands = 1, .times = {[IPU_FN_RANDOM] = 1}}},
	{.kind = IPU_OP_ELEMENTWISE,
	 .elements = {.count = 90001, .operands = 1, .times = {[IPU_FN_CAST] = 1}}},
	{.kind = IPU_OP_REDUCE, .reduce = {1000, 1}},
	{.kind = IPU_OP_REDUCE, .reduce = {1384448, 32}},
	{.kind = IPU_OP_REDUCE, .reduce = {401408, 128}},
	{.kind = IPU_OP_POOL, .pool = {true, false, 64, 64, {24, 24}, {12, 12}, {2, 2}, {2, 2}}},
	{.kind = IPU_OP_POOL, .pool = {true, true, 2, 64, {112, 112}, {55, 55}, {3, 3}, {2, 2}}},
	{.kind = IPU_OP_POOL, .pool = {false, true, 8, 30, {8, 9}, {4, 4}, {2, 3}, {2, 2}}},
	{.kind = IPU_OP_ROWS, .rows = {IPU_ROWS_SOFTMAX, 64, 10}},
	{.kind = IPU_OP_ROWS, .rows = {IPU_ROWS_SOFTMAX_GRAD, 7, 100000}},
	{.kind = IPU_OP_ROWS, .rows = {IPU_ROWS_CROSS_ENTROPY, 32, 1000}},
	{.kind = IPU_OP_ROWS, .rows = {IPU_ROWS_ERROR, 32, 1}},
	{.kind = IPU_OP_ROWS, .rows = {IPU_ROWS_ARGMAX, 4096, 10}},
	{.kind = IPU_OP_COPY, .copy = {1000000, 1}},
	{.kind = IPU_OP_COPY, .copy = {70000, 3}},
};

static void print_plan(struct ipu_planner *planner, const struct ipu_target *target,
		       struct ipu_op op, size_t index, const struct ipu_plan_options *options)
{
	const struct ipu_plan *plan;

	assert_int_equal(ipu_planner_plan(planner, &op, options, &plan, NULL), ST_OK);
	fprintf(out,
		"plan %s %" PRId64 " %s%zu %s %s pass %d: %s, split %" PRId64 " %" PRId64
		" %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 ", %" PRId64 " + %" PRId64
		" bytes, %" PRId64 " flops, %" PRId64 " = %" PRId64 " + %" PRId64 " + %" PRId64
		" cycles, %" PRId64 " bytes, %" PRId64 " tiles, balance %.6f\n",
		target->name, target->tiles, ipu_op_kind_name(op.kind), index,
		ipu_dtype_name(op.dtype), options ? ipu_dtype_name(options->partials) : "-",
		op.kind == IPU_OP_CONV ? (int)op.conv.pass : 0, ipu_method_name(plan->method),
		plan->split_batch, plan->split_field, plan->split_in, plan->split_out,
		plan->split_kernel, plan->serial_splits, plan->temporary_bytes, plan->code_bytes,
		plan->flops, plan->cycles, plan->compute_cycles, plan->exchange_cycles,
		plan->sync_cycles, plan->bytes_exchanged, plan->tiles_used, plan->tile_balance);
	for (int i = 0; i < plan->phase_count; i++) {
		const struct ipu_phase *phase = &plan->phases[i];

		fprintf(out,
			"\t%s %s %" PRId64 " (%.3f) cycles, %" PRId64 " tiles, %" PRId64
			" vertices, %" PRId64 " bytes, x %" PRId64 "\n",
			phase->part, phase->vertex ? phase->vertex : "-", phase->cycles,
			phase->mean_cycles, phase->tiles, phase->vertices, phase->bytes,
			phase->repeats);
	}
}

static void print_plans(void)
{
	static const struct {
		const char *name;
		int64_t tiles;
		enum ipu_dtype dtype, partials;
	} machines[] = {
		{"ipu2", 0, IPU_FLOAT32, IPU_FLOAT32},  {"ipu2", 0, IPU_FLOAT16, IPU_FLOAT32},
		{"ipu1", 0, IPU_FLOAT16, IPU_FLOAT16},  {"ipu21", 0, IPU_FLOAT16, IPU_FLOAT16},
		{"ipu2", 31, IPU_FLOAT32, IPU_FLOAT32},
	};

	for (size_t m = 0; m < ARRAY_LEN(machines); m++) {
		struct ipu_plan_options options;
		struct ipu_planner *planner;
		struct ipu_target target;

		assert_int_equal(ipu_target_get(machines[m].name, machines[m].tiles, &target, NULL),
				 ST_OK);
		assert_int_equal(ipu_planner_new(&planner, &target, NULL), ST_OK);
		ipu_plan_options_defaults(&options);
		options.partials = machines[m].partials;
		for (size_t i = 0; i < ARRAY_LEN(operations); i++) {
			struct ipu_op op = operations[i];

			op.dtype = machines[m].dtype;
			for (int pass = 0; pass < (op.kind == IPU_OP_CONV ? IPU_PASSES : 1);
			     pass++) {
				if (op.kind == IPU_OP_CONV)
					op.conv.pass = (enum ipu_pass)pass;
				print_plan(planner, &target, op, i, &options);
			}
		}
		ipu_planner_free(planner);
	}
}

/* ---- programs and timelines ------------------------------------------------------------------ */

static void print_code(const struct program_sample *sample)
{
	for (int s = 0; s < sample->graph.layout.stages; s++)
		for (int f = 0; f < IPU_FUNCTION_PHASES; f++) {
			const struct ipu_code *code = &sample->executable->code[s][f];
			uint64_t hash = 0;

			for (int i = 0; i < code->step_count; i++) {
				const struct ipu_step *step = &code->steps[i];

				hash = hash_add(hash,
						"%d %d %d %" PRId64 " %.3f %" PRId64 " %" PRId64
						" %" PRId64 " %" PRId64 " %" PRId64,
						step->node, step->phase, step->type, step->cycles,
						step->mean_cycles, step->tiles, step->vertices,
						step->bytes_in, step->bytes_out, step->repeats);
			}
			if (code->step_count > 0)
				fprintf(out,
					"\tstage %d function %d: %d steps %016" PRIx64 ", %" PRId64
					" cycles, exchange %" PRId64 ", sync %" PRId64
					", host %" PRId64 "\n",
					s, f, code->step_count, hash, code->cost.cycles,
					code->cost.exchange, code->cost.sync, code->cost.host_io);
		}
}

static void print_sends(const struct program_sample *sample)
{
	for (int s = 0; s < sample->graph.layout.stages; s++)
		fprintf(out, "\tstage %d: in %" PRId64 ", out %" PRId64 ", update %" PRId64 "\n", s,
			sample->costs.stages[s].infeed_bytes, sample->costs.stages[s].outfeed_bytes,
			sample->costs.stages[s].update_bytes);
	for (int i = 0; i < sample->costs.send_count; i++)
		fprintf(out, "\tsends %d to %d: %" PRId64 "\n", sample->costs.sends[i].from,
			sample->costs.sends[i].to, sample->costs.sends[i].bytes);
}

static void print_timeline(const struct ipu_timeline *timeline, int ipus)
{
	struct ipu_transfer sums[IPU_TRANSFER_KINDS] = {{.ipu = 0}};
	uint64_t events = 0;

	for (int i = 0; i < timeline->count; i++) {
		const struct ipu_event *event = &timeline->events[i];

		events =
			hash_add(events, "%d %d %d %c %d %" PRId64 " %" PRId64, event->ipu,
				 event->stage, event->microbatch, event->phase ? event->phase : '-',
				 event->time_step, event->start_cycle, event->cycles);
	}
	fprintf(out, "\ttimeline: %d time steps, %" PRId64 " cycles, %d events %016" PRIx64 "\n",
		timeline->time_steps, timeline->cycles, timeline->count, events);
	for (int i = 0; i < ipus; i++)
		fprintf(out,
			"\tIPU %d: compute %" PRId64 ", exchange %" PRId64 ", sync %" PRId64
			", host %" PRId64 ", idle %" PRId64 "\n",
			i, timeline->split[i].compute, timeline->split[i].exchange,
			timeline->split[i].sync, timeline->split[i].host_io,
			timeline->split[i].idle);
	for (int i = 0; i < timeline->transfer_count; i++) {
		const struct ipu_transfer *transfer = &timeline->transfers[i];
		struct ipu_transfer *sum = &sums[transfer->kind];

		sum->ipu++;
		sum->start_cycle += transfer->start_cycle;
		sum->cycles += transfer->cycles;
		sum->overlapped += transfer->overlapped;
		sum->begin_cycles += transfer->begin_cycles;
		sum->end_cycles += transfer->end_cycles;
		sum->bytes_in += transfer->bytes_in;
		sum->bytes_out += transfer->bytes_out;
	}
	for (int k = 0; k < IPU_TRANSFER_KINDS; k++)
		if (sums[k].ipu > 0)
			fprintf(out,
				"\ttransfers of kind %d: %d, starts %" PRId64 ", cycles %" PRId64
				", overlapped %" PRId64 ", begin %" PRId64 ", end %" PRId64
				", in %" PRId64 ", out %" PRId64 "\n",
				k, sums[k].ipu, sums[k].start_cycle, sums[k].cycles,
				sums[k].overlapped, sums[k].begin_cycles, sums[k].end_cycles,
				sums[k].bytes_in, sums[k].bytes_out);
}

static void print_tree(const struct ipu_executable *executable)
{
	uint64_t hash = 0;

	for (int i = 0; i < executable->program_count; i++) {
		const struct ipu_program *program = &executable->programs[i];

		hash = hash_add(hash, "%d %d %s %s %d %" PRId64 " %d %d", program->parent,
				program->position, ipu_program_type_name(program->type),
				program->name, program->node, program->repeats,
				program->call_target, program->children);
	}
	fprintf(out, "\ttree: %d programs, %d roots, %016" PRIx64 "\n", executable->program_count,
		executable->root_count, hash);
}

static void print_programs(void)
{
	static const struct program_sample_params params[] = {
		{.kind = IPU_SEQUENTIAL, .stages = 1, .microbatches = 1},
		{.kind = IPU_SEQUENTIAL, .stages = 3, .microbatches = 2},
		{.kind = IPU_GROUPED, .stages = 2, .microbatches = 12},
		{.kind = IPU_GROUPED, .stages = 4, .microbatches = 8},
		{.kind = IPU_INTERLEAVED, .stages = 4, .microbatches = 8},
		{.kind = IPU_INTERLEAVED,
		 .stages = 2,
		 .microbatches = 4,
		 .layout = {.recompute = IPU_RECOMPUTE_THEN_BACKPROPAGATE}},
		{.kind = IPU_GROUPED,
		 .stages = 2,
		 .microbatches = 4,
		 .layout = {.recompute = IPU_RECOMPUTE_THEN_BACKPROPAGATE,
			    .offload_activations = true}},
		{.kind = IPU_GROUPED,
		 .stages = 2,
		 .microbatches = 4,
		 .layout = {.replicas = 4, .shard_optimizer_state = true, .shard_weights = true}},
		{.kind = IPU_SEQUENTIAL,
		 .stages = 2,
		 .microbatches = 4,
		 .layout = {.replicas = 2,
			    .offload_optimizer_state = true,
			    .offload_accumulators = true,
			    .offload_weights = true}},
		{.kind = IPU_GROUPED,
		 .stages = 2,
		 .microbatches = 4,
		 .layout = {.io_tiles = 32, .place_ops_on_io_tiles = true}},
		{.kind = IPU_GROUPED, .stages = 2, .microbatches = 4, .target = "ipu1"},
	};

	for (size_t i = 0; i < ARRAY_LEN(params); i++) {
		struct program_sample sample;

		fprintf(out, "program %zu\n", i);
		program_sample_plain(&sample);
		sample.dropout[2] = true;
		sample.units[3] = 200;
		program_sample_setup(&sample, &params[i]);
		assert_int_equal(program_sample_compile(&sample, NULL), ST_OK);
		print_code(&sample);
		print_sends(&sample);
		print_timeline(sample.timeline, sample.schedule->ipus);
		print_tree(sample.executable);
		program_sample_free(&sample);
	}
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void print_memory_ipu(const struct ipu_memory *memory, int ipu)
{
	const struct ipu_memory_ipu *of = &memory->ipus[ipu];
	int64_t sums[IPU_MEMORY_CATEGORIES] = {0}, regions[IPU_MEMORY_REGIONS] = {0};
	uint64_t steps = 0;

	for (int64_t tile = 0; tile < memory->tiles; tile++) {
		int64_t of_tile[IPU_MEMORY_CATEGORIES][IPU_MEMORY_REGIONS];

		ipu_memory_regions(memory, ipu, tile, of_tile);
		for (int c = 0; c < IPU_MEMORY_CATEGORIES; c++) {
			sums[c] += of->category[c][tile];
			for (int r = 0; r < IPU_MEMORY_REGIONS; r++)
				regions[r] += of_tile[c][r];
		}
		steps = hash_add(steps, "%d", of->tile_peak_step[tile]);
	}
	for (int s = 0; s < of->step_count; s++)
		steps = hash_add(steps, "%d %d %" PRId64, of->steps[s].program, of->steps[s].node,
				 of->steps[s].not_always_live_bytes);
	fprintf(out,
		"\tIPU %d: always %" PRId64 ", peak %" PRId64 " at %d of %d %016" PRIx64
		", over %d, worst %" PRId64 " %" PRId64 ", regions %" PRId64 " %" PRId64 " %" PRId64
		"\n\t\t",
		ipu, of->always_live_bytes, of->peak_bytes, of->peak_step, of->step_count, steps,
		of->tiles_over, of->worst_tile, of->worst_bytes, regions[0], regions[1],
		regions[2]);
	for (int c = 0; c < IPU_MEMORY_CATEGORIES; c++)
		fprintf(out, "%s%s %" PRId64, c > 0 ? ", " : "",
			ipu_memory_category_name((enum ipu_memory_category)c), sums[c]);
	fprintf(out, "\n");
}

static void print_variables(const struct ipu_memory *memory)
{
	for (int v = 0; v < memory->variable_count; v++) {
		const struct ipu_variable *variable = &memory->variables[v];
		uint64_t runs = 0;

		for (int r = 0; r < variable->run_count; r++)
			runs = hash_add(runs, "%" PRId64 " %" PRId64 " %" PRId64,
					variable->runs[r].tile, variable->runs[r].tiles,
					variable->runs[r].bytes);
		fprintf(out, "\t\t%s %s IPU %d, %" PRId64 " bytes, %s%d to %d%s, %d runs %08x\n",
			variable->name, variable->kind, variable->ipu, variable->bytes,
			variable->always_live ? "always " : "", variable->first_step,
			variable->last_step, variable->crosses ? ", crosses" : "",
			variable->run_count, (unsigned)(runs >> 32));
	}
}

static void print_memories(void)
{
	static const int shared[] = {0, 1, 0};
	static const struct memory_sample_params params[] = {
		{.kind = IPU_SEQUENTIAL, .stages = 1, .layers_per_stage = 3},
		{.kind = IPU_GROUPED,
		 .stages = 3,
		 .layers_per_stage = 2,
		 .dropout = {true},
		 .skip_from = 1,
		 .skip_to = 4},
		{.kind = IPU_GROUPED,
		 .stages = 2,
		 .layers_per_stage = 3,
		 .dropout = {true},
		 .layout = {.recompute = IPU_RECOMPUTE_THEN_BACKPROPAGATE}},
		{.kind = IPU_SEQUENTIAL,
		 .stages = 3,
		 .layers_per_stage = 2,
		 .device = shared,
		 .ipus = 2,
		 .units = {300, 7}},
		{.kind = IPU_GROUPED,
		 .stages = 2,
		 .layers_per_stage = 2,
		 .tiles = 100,
		 .layout = {.batch = 512,
			    .replicas = 2,
			    .offload_activations = true,
			    .offload_optimizer_state = true,
			    .offload_accumulators = true,
			    .offload_weights = true,
			    .shard_optimizer_state = true,
			    .shard_weights = true}},
		{.kind = IPU_GROUPED,
		 .stages = 2,
		 .layers_per_stage = 2,
		 .layout = {.io_tiles = 32,
			    .place_ops_on_io_tiles = true,
			    .io_memory_proportion = 0.5}},
		{.kind = IPU_GROUPED,
		 .stages = 2,
		 .layers_per_stage = 2,
		 .tiles = 3,
		 .units = {2048, 2048, 2048, 2048}},
	};

	for (size_t i = 0; i < ARRAY_LEN(params); i++) {
		struct memory_sample sample;
		struct ipu_memory *memory = memory_sample_memory(&sample, &params[i]);
		struct err err = {.text = ""};
		const enum status status =
			ipu_memory_check(memory, sample.executable, &sample.target, &err);

		fprintf(out, "memory %zu: peak %" PRId64 ", interleaved %" PRId64 ", %s\n", i,
			ipu_memory_peak(memory), memory->interleaved_bytes,
			status == ST_OK ? "fits" : err.text);
		for (int ipu = 0; ipu < memory->ipu_count; ipu++)
			print_memory_ipu(memory, ipu);
		print_variables(memory);
		ipu_memory_free(memory);
		memory_sample_free(&sample);
	}
}

static void print_all(FILE *to)
{
	out = to;
	print_plans();
	print_programs();
	print_memories();
}

static void test_no_figure_changes_unseen(void **state)
{
	(void)state;
	support_check_golden("ipu_simulated.txt", print_all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_figure_changes_unseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
