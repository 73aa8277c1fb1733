/*
 * The tree of programs and its leaves, the steps, as they are built. The phases of an operation's
 * plan become leaves of a Sequence, each of them a Sync and a DoExchange or an OnTileExecute.
 *
 * Threads: none.
 */
#include "ipu/compile/ipu_program.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>

#include "common/mem.h"
#include "ipu/compile/ipu_program_internal.h"

const char *ipu_program_type_name(enum ipu_program_type type)
{
	static const char *const names[] = {
		[IPU_SEQUENCE] = "Sequence",
		[IPU_REPEAT] = "Repeat",
		[IPU_CALL] = "Call",
		[IPU_ON_TILE_EXECUTE] = "OnTileExecute",
		[IPU_DO_EXCHANGE] = "DoExchange",
		[IPU_GLOBAL_EXCHANGE] = "GlobalExchange",
		[IPU_SYNC] = "Sync",
		[IPU_SYNC_ANS] = "SyncAns",
		[IPU_STREAM_COPY_BEGIN] = "StreamCopyBegin",
		[IPU_STREAM_COPY_MID] = "StreamCopyMid",
		[IPU_STREAM_COPY_END] = "StreamCopyEnd",
		[IPU_WRITE_UNDEF] = "WriteUndef",
		[IPU_SWITCH] = "Unknown",
	};

	_Static_assert(ARRAY_LEN(names) == IPU_PROGRAM_TYPES, "program names out of step");
	assert((unsigned)type < IPU_PROGRAM_TYPES);
	return names[type];
}

enum ipu_program_type ipu_transfer_type(enum ipu_transfer_kind kind)
{
	static const enum ipu_program_type types[] = {
		[IPU_TRANSFER_INFEED] = IPU_STREAM_COPY_MID,
		[IPU_TRANSFER_COPY_IN] = IPU_DO_EXCHANGE,
		[IPU_TRANSFER_COPY_OUT] = IPU_DO_EXCHANGE,
		[IPU_TRANSFER_WAIT] = IPU_SYNC,
		[IPU_TRANSFER_RECEIVE] = IPU_GLOBAL_EXCHANGE,
		[IPU_TRANSFER_SYNC] = IPU_SYNC,
		[IPU_TRANSFER_GLOBAL] = IPU_GLOBAL_EXCHANGE,
		[IPU_TRANSFER_SYNC_ANS] = IPU_SYNC_ANS,
		[IPU_TRANSFER_OUTFEED] = IPU_STREAM_COPY_MID,
	};

	_Static_assert(ARRAY_LEN(types) == IPU_TRANSFER_KINDS, "transfer types out of step");
	assert((unsigned)kind < IPU_TRANSFER_KINDS);
	return types[kind];
}

/* ---- programs and steps ---------------------------------------------------------------------- */

__attribute__((format(printf, 2, 0))) static const char *
format_name(struct ipu_lowering *lowering, const char *format, va_list args)
{
	const char *text = arena_vprintf(&lowering->executable->arena, format, args);

	lowering->failed |= !text;
	return text;
}

const char *ipu__name(struct ipu_lowering *lowering, const char *format, ...)
{
	const char *name;
	va_list args;

	va_start(args, format);
	name = format_name(lowering, format, args);
	va_end(args);
	return name;
}

int ipu__program_add(struct ipu_lowering *lowering, int parent, enum ipu_program_type type,
		     const char *name, int node)
{
	struct ipu_program *program;

	if (lowering->failed || mem_grow(&lowering->programs, &lowering->program_capacity,
					 lowering->program_count + 1, sizeof(*program)) != 0) {
		lowering->failed = true;
		return -1;
	}
	program = &lowering->programs[lowering->program_count];
	*program = (struct ipu_program){
		.parent = parent,
		.position = parent < 0 ? lowering->roots++ : lowering->programs[parent].children++,
		.type = type,
		.name = name,
		.node = node,
		.repeats = 1,
		.call_target = -1};
	return (int)lowering->program_count++;
}

int ipu__repeat_add(struct ipu_lowering *lowering, int parent, int64_t repeats, const char *name,
		    int node)
{
	const int repeat = ipu__program_add(lowering, parent, IPU_REPEAT, name, node);

	if (!lowering->failed)
		lowering->programs[repeat].repeats = repeats;
	return repeat;
}

int ipu__sequence_add(struct ipu_lowering *lowering, int parent, const char *format, ...)
{
	const char *name;
	va_list args;

	va_start(args, format);
	name = format_name(lowering, format, args);
	va_end(args);
	return ipu__program_add(lowering, parent, IPU_SEQUENCE, name, -1);
}

static void append_step(struct ipu_lowering *lowering, int sequence, const struct ipu_step *step,
			const char *name)
{
	const int program = ipu__program_add(lowering, sequence, step->type, name, step->node);

	if (lowering->failed || mem_grow(&lowering->steps, &lowering->step_capacity,
					 lowering->step_count + 1, sizeof(*step)) != 0) {
		lowering->failed = true;
		return;
	}
	lowering->steps[lowering->step_count] = *step;
	lowering->steps[lowering->step_count].collective = lowering->collective;
	lowering->steps[lowering->step_count++].program = program;
}

void ipu__step_add(struct ipu_lowering *lowering, int sequence, const struct ipu_step *step,
		   const char *format, ...)
{
	const char *name;
	va_list args;

	va_start(args, format);
	name = format_name(lowering, format, args);
	va_end(args);
	append_step(lowering, sequence, step, name);
}

void ipu__sync_add(struct ipu_lowering *lowering, int sequence, int64_t repeats, int node,
		   int phase)
{
	const int64_t cycles = (int64_t)ceil(lowering->target->phase_cycles);
	const struct ipu_step sync = {.node = node,
				      .phase = phase,
				      .type = IPU_SYNC,
				      .cycles = cycles,
				      .mean_cycles = (double)cycles,
				      .tiles = lowering->target->tiles,
				      .repeats = repeats};

	append_step(lowering, sequence, &sync, "Internal");
}

enum status ipu__programs_store(struct ipu_lowering *lowering, struct err *err)
{
	struct ipu_executable *executable = lowering->executable;
	struct ipu_program *programs =
		arena_alloc(&executable->arena, lowering->program_count + 1, sizeof(*programs));

	if (lowering->failed || !programs)
		return err_nomem(err);
	for (size_t i = 0; i < lowering->program_count; i++)
		programs[i] = lowering->programs[i];
	executable->programs = programs;
	executable->program_count = (int)lowering->program_count;
	executable->root_count = lowering->roots;
	return ST_OK;
}

/* ---- operations ------------------------------------------------------------------------------ */

/* The parent of a phase: serial splits and recurrent steps run in a loop. @last is the parent of
 * the previous phase, or -1. */
static int phase_parent(struct ipu_lowering *lowering, int sequence, const struct ipu_plan *plan,
			int index, int last, const char *name, int node)
{
	const int64_t repeats = plan->phases[index].repeats;

	if (repeats == 1)
		return sequence;
	if (last != sequence && last >= 0 && plan->phases[index - 1].repeats == repeats)
		return last;
	return ipu__repeat_add(
		lowering, sequence, repeats,
		ipu__name(lowering, plan->serial_splits > 1 ? "%s/SerialSplit" : "%s/Steps", name),
		node);
}

void ipu__plan_lower(struct ipu_lowering *lowering, int sequence, const struct ipu_plan *plan,
		     const char *name, int node)
{
	int parent = -1;

	for (int i = 0; i < plan->phase_count; i++) {
		const struct ipu_phase *phase = &plan->phases[i];
		const struct ipu_step step = {
			.node = node,
			.phase = i,
			.type = phase->kind == IPU_EXCHANGE ? IPU_DO_EXCHANGE : IPU_ON_TILE_EXECUTE,
			.cycles = phase->cycles,
			.mean_cycles = phase->mean_cycles,
			.tiles = phase->tiles,
			.vertices = phase->vertices,
			.bytes_in = phase->bytes,
			.bytes_out = phase->bytes,
			.repeats = phase->repeats};

		parent = phase_parent(lowering, sequence, plan, i, parent, name, node);
		ipu__sync_add(lowering, parent, phase->repeats, node, i);
		ipu__step_add(lowering, parent, &step, "%s/%s", name, phase->part);
	}
}
