/*
 * A compiled model of two stages, and trees of programs of any size.
 *
 * Threading: one thread. Ownership: none beyond the call.
 */
#include "support/view_fixture_model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/view_fixture.h"

#define OPERATIONS 12

static const struct {
	const char *operation, *layer, *kind, *phase;
	int64_t stage, compute, exchange, sync, flops;
} operations[OPERATIONS] = {
	{"Dense_A/MatMul", "Dense_A", "matmul", "F", 0, 2000, 700, 300, 800000},
	{"Dense_A/BiasAdd", "Dense_A", "elementwise", "F", 0, 150, 10, 100, 8192},
	{"Dense_A/Relu", "Dense_A", "elementwise", "F", 0, 140, 0, 100, 8192},
	{"Dense_A/MatMul/GradW", "Dense_A", "matmul", "B", 0, 1600, 500, 300, 800000},
	{"SGD/Dense_A/kernel", "Dense_A", "elementwise", "U", 0, 1200, 100, 200, 4096},
	{"Dense_B/MatMul", "Dense_B", "matmul", "F", 1, 900, 300, 300, 200000},
	{"Dense_B/Softmax", "Dense_B", "rows", "F", 1, 700, 10, 900, 640},
	{"Dense_B/MatMul/GradX", "Dense_B", "matmul", "B", 1, 850, 250, 300, 200000},
	{"Dense_B/MatMul/GradW", "Dense_B", "matmul", "B", 1, 800, 250, 300, 200000},
	{"SGD/Dense_B/kernel", "Dense_B", "elementwise", "U", 1, 600, 50, 200, 2048},
	{"loss/it's \x1b[31m\"odd\"", NULL, "reduce", "F", 1, 40, 1, 50, 0},
	{"infeed/x", NULL, "copy", "F", 0, 800, 18, 1000, 0},
};

static bool model_has(int i, bool changed, bool all)
{
	/* The other compiler leaves the infeed out; this one has no gradient of the input. */
	return all || (changed ? i != 11 : i != 7);
}

static void model_operations(struct ips_recording *r, bool changed)
{
	for (int i = 0; i < OPERATIONS; i++) {
		const int64_t slower = changed && i == 5 ? 1000 : 0;
		const int64_t compute = operations[i].compute + slower;
		struct ips_operation row = {operations[i].operation,
					    operations[i].layer,
					    operations[i].kind,
					    operations[i].phase,
					    operations[i].stage,
					    operations[i].flops,
					    compute + operations[i].exchange + operations[i].sync,
					    compute,
					    operations[i].exchange,
					    operations[i].sync,
					    1000 * i,
					    100 + i,
					    0.5 + 0.04 * i,
					    512 * (i + 1)};

		if (!model_has(i, changed, false))
			continue;
		ips_append_operation(r, &row);
		ips_append_plan(r, &(struct ips_plan){row.operation, i % 2 ? "-" : "AMP", 1, 4 + i,
						      2, 1, 1, 1, 4096, row.cycles});
	}
}

static void model_memory(struct ips_recording *r)
{
	ips_append_layer(r,
			 &(struct ips_layer){"Dense_A", "Dense", 0, 0, "(32, 64)", 6400, 6400, 1});
	ips_append_layer(r, &(struct ips_layer){"Dense_B", "Dense", 1, 1, "(32, 10)", 650, 650, 1});
	ips_append_variable(r, &(struct ips_variable){0, "Dense_A/kernel:0", "Dense_A", "weight",
						      "(100, 64)", "float32", 25600, 0, 1, 0, 9});
	ips_append_variable(r, &(struct ips_variable){1, "Dense_A/out", "Dense_A", "activation",
						      "(32, 64)", "float32", 8192, 0, 0, 1, 2});
	ips_append_variable(r, &(struct ips_variable){2, "Dense_B/out", "Dense_B", "activation",
						      "(32, 10)", "float32", 1280, 1, 0, 5, 6});
}

static int64_t model_program(struct ips_recording *r, int64_t *next, int64_t parent,
			     int64_t position, const char *type, const char *name,
			     const char *operation, int64_t repeat, int64_t target)
{
	const int64_t id = (*next)++;

	ips_append_program(r, &(struct ips_program){id, parent, position, type, name, operation,
						    repeat, target});
	return id;
}

static void model_step(struct ips_recording *r, int64_t *at, int64_t stage, int64_t program,
		       const char *type, const char *name, const char *operation, int64_t cycles)
{
	struct ips_device_step step = {.trace_step = *at / 1000,
				       .ipu = stage,
				       .stage = stage,
				       .phase = "F",
				       .program_id = program,
				       .type = type,
				       .name = name,
				       .operation = operation,
				       .start_cycle = *at,
				       .cycles = cycles,
				       .tile_balance = 0.9,
				       .active_tile_balance = 0.95};

	if (cycles <= 0)
		return;
	ips_append_device_step(r, &step);
	*at += cycles;
}

/* An operation's sequence: sync, exchange, compute; each of them twice in a training step. */
static void model_sequence(struct ips_recording *r, int64_t *next, int64_t parent, int position,
			   int i, bool changed, int64_t *at)
{
	const char *name = operations[i].operation;
	const int64_t slower = changed && i == 5 ? 1000 : 0;
	const int64_t sequence = model_program(r, next, parent, position, "Sequence", name, name,
					       IPS_NULL, IPS_NULL);
	const int64_t sync =
		model_program(r, next, sequence, 0, "Sync", "Internal", name, IPS_NULL, IPS_NULL);
	const int64_t exchange =
		model_program(r, next, sequence, 1, "DoExchange", name, name, IPS_NULL, IPS_NULL);
	const int64_t compute = model_program(r, next, sequence, 2, "OnTileExecute", name, name,
					      IPS_NULL, IPS_NULL);

	ips_append_compute_set(r, &(struct ips_compute_set){name, name, compute, 200 + i, 100 + i,
							    operations[i].compute + slower,
							    0.75 * (double)operations[i].compute});
	for (int twice = 0; twice < 2; twice++) {
		model_step(r, at, operations[i].stage, sync, "Sync", "Internal", name,
			   operations[i].sync);
		model_step(r, at, operations[i].stage, exchange, "DoExchange", name, name,
			   operations[i].exchange);
		model_step(r, at, operations[i].stage, compute, "OnTileExecute", name, name,
			   operations[i].compute + slower);
	}
}

static void model_programs(struct ips_recording *r, bool changed)
{
	int64_t stages[2], next = 0, train, repeat, at = 0;

	for (int stage = 0; stage < 2; stage++) {
		int position = 0;

		stages[stage] =
			model_program(r, &next, IPS_NULL, stage, "Sequence",
				      stage ? "Stage1/F" : "Stage0/F", NULL, IPS_NULL, IPS_NULL);
		for (int i = 0; i < OPERATIONS; i++)
			if (operations[i].stage == stage && model_has(i, changed, false))
				model_sequence(r, &next, stages[stage], position++, i, changed,
					       &at);
	}
	train = model_program(r, &next, IPS_NULL, 2, "Sequence", "train", NULL, IPS_NULL, IPS_NULL);
	repeat = model_program(r, &next, train, 0, "Repeat", "PipelineRuns", NULL, 50, IPS_NULL);
	for (int stage = 0; stage < 2; stage++)
		model_program(r, &next, repeat, stage, "Call", stage ? "Stage1/F" : "Stage0/F",
			      NULL, IPS_NULL, stages[stage]);
}

static bool write_model(const char *path, const void *params)
{
	const bool changed = *(const bool *)params;
	const struct ips_device_trace trace = {.trace_id = 0, .clock_hz = 1e9, .name = "train"};
	struct ips_recording *r = view_fixture_record(path, "view_fixture_model");

	if (!r)
		return false;
	ips_meta_set(r, "clock_hz", "1000000000");
	ips_append_device_trace(r, &trace);
	model_operations(r, changed);
	model_memory(r);
	model_programs(r, changed);
	for (int i = 0; i < 3; i++)
		ips_append_device_run(r, &(struct ips_device_run){.mode = IPS_TRAIN,
								  .epoch = 1,
								  .weight_update = i,
								  .start_cycle = i * 100000});
	ips_append_execution(
		r, &(struct ips_execution){
			   .mode = IPS_TRAIN, .epoch = 1, .steps = 12, .updates = 3, .traced = 1});
	return ips_recording_close(r, NULL, 0) == 0;
}

bool view_fixture_model_write(const char *path, bool changed)
{
	return view_fixture_once(path, write_model, &changed, sizeof(changed));
}

bool view_fixture_programs_write(const char *path, int wide, int deep)
{
	struct ips_recording *r = view_fixture_record(path, "view_fixture_model");
	int64_t next = 0;
	char name[32];

	if (!r)
		return false;
	for (int i = 0; i < wide; i++) {
		int64_t parent = IPS_NULL;

		for (int depth = 0; depth < deep; depth++) {
			snprintf(name, sizeof(name), "part%d/%d", i, depth);
			parent = model_program(r, &next, parent, depth ? 0 : i, "Sequence", name,
					       NULL, IPS_NULL, IPS_NULL);
			model_program(r, &next, parent, 1, "Sync", "Internal", NULL, IPS_NULL,
				      IPS_NULL);
		}
	}
	return ips_recording_close(r, NULL, 0) == 0;
}
