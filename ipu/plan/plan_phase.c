/*
 * The phases of a plan: how a planner appends them, their code and state on a tile, and their sums.
 * Pure functions: any thread.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "ipu/plan/plan_internal.h"

int64_t ipu__whole(double value)
{
	assert(value >= 0);
	return value < 0x1p50 ? (int64_t)ceil(value) : INT64_C(1) << 50;
}

void ipu__plan_add(struct ipu_plan *plan, const struct ipu_phase *phase)
{
	if (phase->cycles == 0 && phase->bytes == 0)
		return;
	assert(plan->phase_count < IPU_PHASES);
	assert(phase->repeats >= 1 && phase->cycles >= 0 && phase->bytes >= 0);
	plan->phases[plan->phase_count++] = *phase;
}

/* ---- code ------------------------------------------------------------------------------------ */

#define COPY_VERTEX     "poplar::OnTileCopy" /* of Poplar's runtime: no code of its own */
#define VERTEX_CODE     400                  /* bytes, of a vertex that is no product's */
#define VERTEX_STATE    16
#define PRODUCT_STATE   48
#define OUTER_STATE     24 /* two vectors with their sizes, a pointer, a number (OuterProduct.cpp) */
#define COPY_DESCRIPTOR 8
#define EXCHANGE_ENTRY  32
#define INSTRUCTION     4
#define MESSAGE_BYTES   256 /* of one send instruction at most */

static bool is_product(const struct ipu_plan *plan, const struct ipu_phase *phase)
{
	return plan->method != IPU_METHOD_NONE && strcmp(phase->part, "Convolve") == 0;
}

/* An exchange has an instruction for each tile that a tile listens to (popops, DynamicSlice.cpp),
 * and for each message that is sent. */
int64_t ipu_phase_code_bytes(const struct ipu_plan *plan, const struct ipu_phase *phase)
{
	/* Instructions of 4 bytes. poplibs' assembly has at most 335 for the AMP's 1x1 vertex of two
	 * types, supervisor and worker, and 686 for nx1 (lib/poplin/codelets/asm). */
	static const int64_t method_bytes[] = {
		[IPU_METHOD_NONE] = 0,           [IPU_METHOD_AMP_1X1] = 1200,
		[IPU_METHOD_AMP_NX1] = 2000,     [IPU_METHOD_HORIZONTAL_MAC] = 800,
		[IPU_METHOD_VERTICAL_MAC] = 800, [IPU_METHOD_OUTER_PRODUCT] = 400,
		[IPU_METHOD_SLIC] = 1200,
	};

	_Static_assert(ARRAY_LEN(method_bytes) == IPU_METHODS, "code table out of step");
	if (phase->kind == IPU_EXCHANGE) {
		const int64_t tiles = max(phase->tiles, 1);
		const int64_t messages =
			ipu__ceil_div(ipu__ceil_div(phase->sent, tiles), MESSAGE_BYTES);

		return EXCHANGE_ENTRY + INSTRUCTION * (messages + phase->sources);
	}
	if (is_product(plan, phase))
		return method_bytes[plan->method];
	return phase->vertex && strcmp(phase->vertex, COPY_VERTEX) == 0 ? 0 : VERTEX_CODE;
}

int64_t ipu_phase_state_bytes(const struct ipu_plan *plan, const struct ipu_phase *phase)
{
	const int64_t vertices = ipu__ceil_div(phase->vertices, max(phase->tiles, 1));

	if (phase->kind == IPU_EXCHANGE)
		return 0;
	if (is_product(plan, phase))
		return plan->pointer_bytes + (plan->method == IPU_METHOD_OUTER_PRODUCT
						      ? vertices * OUTER_STATE
						      : PRODUCT_STATE);
	return vertices * (phase->vertex && strcmp(phase->vertex, COPY_VERTEX) == 0
				   ? COPY_DESCRIPTOR
				   : VERTEX_STATE);
}

/* Return whether a phase before @at runs the same vertex, whose code is there then. */
static bool has_code(const struct ipu_plan *plan, int at)
{
	for (int i = 0; i < at; i++)
		if (plan->phases[at].vertex && plan->phases[i].vertex &&
		    strcmp(plan->phases[at].vertex, plan->phases[i].vertex) == 0)
			return true;
	return false;
}

/* ---- sums ------------------------------------------------------------------------------------ */

void ipu__plan_finish(const struct ipu_target *target, const struct ipu_op *op,
		      struct ipu_plan *plan)
{
	double work = 0, busiest = 0;

	plan->flops = ipu_op_flops(op);
	for (int i = 0; i < plan->phase_count; i++) {
		struct ipu_phase *phase = &plan->phases[i];
		int64_t cycles;

		phase->repeats *= max(op->repeats, 1);
		cycles = phase->cycles * phase->repeats;
		if (!has_code(plan, i))
			plan->code_bytes += ipu_phase_code_bytes(plan, phase);
		plan->sync_cycles += ipu__whole(target->phase_cycles) * phase->repeats;
		plan->bytes_exchanged += phase->bytes * phase->repeats;
		if (phase->tiles > plan->tiles_used)
			plan->tiles_used = phase->tiles;
		if (phase->kind == IPU_EXCHANGE) {
			plan->exchange_cycles += cycles;
			continue;
		}
		plan->compute_cycles += cycles;
		busiest += (double)cycles;
		work += phase->mean_cycles * (double)(phase->tiles * phase->repeats);
	}
	plan->cycles = plan->compute_cycles + plan->exchange_cycles + plan->sync_cycles;
	plan->tile_balance = busiest > 0 ? work / (busiest * (double)target->tiles) : NAN;
}
