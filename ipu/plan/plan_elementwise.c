/*
 * Maps over elements, and changes of layout. Pure functions: any thread.
 *
 * Elements are evenly distributed over the tiles. One of several operands comes from a producer
 * with another layout, so it is exchanged (an optimizer's gradient; its state is mapped as the
 * weight). A small broadcast operand (a bias) is sent to every tile as far as the tile needs it.
 * Of a changed layout, elements are sent to their new tile, then arranged there.
 */
#include <math.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "ipu/plan/plan_vector.h"

/* Worker instructions of a function per vector of 2 float32 or 4 float16, without the load and
 * store that a map does once. Published figures are of vertices with a single function ("alone")
 * and include these. */
static const struct {
	double single, half;
} function_cycles[] = {
	[IPU_FN_ADD] = {1, 1},        [IPU_FN_DIVIDE] = {9, 20},   /* 10 and 21 alone */
	[IPU_FN_DIVIDE_BY] = {5, 15},                              /* 6 alone, and 8 for 2 */
	[IPU_FN_SELECT] = {2, 2},     [IPU_FN_EXP] = {5, 3},       /* 6 and 4 alone */
	[IPU_FN_LOG] = {11, 3},                                    /* 12 and 4 alone */
	[IPU_FN_SQRT] = {9, 22},                                   /* 10 and 23 alone */
	[IPU_FN_SIGMOID] = {11, 5},                                /* 12 and 6 alone */
	[IPU_FN_TANH] = {11, 3},                                   /* 12 and 4 alone */
	[IPU_FN_RELU] = {1, 1},       [IPU_FN_RELU_GRAD] = {2, 2}, /* 3 alone */
	[IPU_FN_RANDOM] = {1, 3},                                  /* 1 an element, alone */
	[IPU_FN_SCALED_ADD] = {2, 2},                              /* 3 alone */
	[IPU_FN_FILL] = {0, 0},                                    /* the store */
	[IPU_FN_CAST] = {0, 1}, /* the float32 side's loads or stores, alone */
};
_Static_assert(ARRAY_LEN(function_cycles) == IPU_FUNCTIONS, "function table out of step");

#define LOAD_STORE 1 /* per vector in a map, beside its functions */

/* Vertices for a single function; all others are maps. */
static const struct ipu__vertex single_vertices[] = {
	[IPU_FN_RELU] = {"popnn::NonLinearityInPlace", 9, 20, LOAD_STORE},
	[IPU_FN_RELU_GRAD] = {"popnn::NonLinearityGrad", 9, 20, LOAD_STORE},
	[IPU_FN_RANDOM] = {"poprand::DropoutSupervisor", 6, 24, LOAD_STORE},
	[IPU_FN_SCALED_ADD] = {"popops::ScaledAddSupervisor", 45, 15 + 6 - 3, LOAD_STORE},
	[IPU_FN_FILL] = {"popops::Fill", 0, 22, LOAD_STORE},
	[IPU_FN_CAST] = {"popops::Cast", 0, 26, LOAD_STORE},
	[IPU_FUNCTIONS] = {"", 0, 0, 0},
};
static const struct ipu__vertex map_vertex = {"popops::MapExpression", 11, 58, LOAD_STORE};
static const struct ipu__vertex broadcast_vertex = {"popops::BroadcastVectorInner", 11, 20,
						    LOAD_STORE};

static double instructions(const uint8_t times[IPU_FUNCTIONS], enum ipu_dtype dtype)
{
	double sum = 0;

	for (int f = 0; f < IPU_FUNCTIONS; f++)
		sum += times[f] *
		       (dtype == IPU_FLOAT16 ? function_cycles[f].half : function_cycles[f].single);
	return sum;
}

struct ipu__vertex ipu__map_vertex(const uint8_t times[IPU_FUNCTIONS], enum ipu_dtype dtype)
{
	struct ipu__vertex vertex = map_vertex;

	vertex.cycles_each += instructions(times, dtype);
	return vertex;
}

/* The function, if there is only one and it is used once; else IPU_FUNCTIONS. */
static int only_function(const struct ipu_elements *elements)
{
	int only = IPU_FUNCTIONS, times = 0;

	for (int f = 0; f < IPU_FUNCTIONS; f++) {
		times += elements->times[f];
		if (elements->times[f] == 1)
			only = f;
	}
	return times == 1 ? only : IPU_FUNCTIONS;
}

void ipu__plan_elementwise(const struct ipu_target *target, const struct ipu_op *op,
			   const struct ipu_plan_options *options, struct ipu_plan *plan)
{
	const struct ipu_elements *elements = &op->elements;
	const int only = only_function(elements);
	struct ipu__vertex vertex = single_vertices[only];
	const struct ipu__spread spread = ipu__spread_over(
		target, elements->count, ipu__lanes(target, op->dtype), target->tiles);
	const int64_t element = ipu_dtype_bytes(op->dtype);
	int64_t most = 0;
	double all = 0;

	if (!vertex.name || only == IPU_FUNCTIONS)
		vertex = elements->broadcast > 0 ? broadcast_vertex : map_vertex;
	vertex.cycles_each += instructions(elements->times, op->dtype);
	(void)options;
	if (elements->operands > 1) {
		most = spread.most;
		all = (double)elements->count;
	}
	if (elements->broadcast > 0) {
		const int64_t repeated = min(elements->broadcast, spread.most);

		most += repeated;
		all += fmin((double)repeated, spread.mean) * (double)spread.tiles;
	}
	plan->split_field = spread.tiles;
	ipu__add_exchange(plan, target, "Op/ExchangePre", most * element, all * (double)element,
			  spread.tiles);
	if (elements->operands > 1)
		ipu__add_arrange(plan, target, "Op/OnTileCopyPre", target->vector_bytes,
				 spread.most * element, (double)elements->count * (double)element,
				 spread.tiles);
	ipu__add_compute(plan, target, "Op", &vertex, op->dtype, &spread);
}

void ipu__plan_copy(const struct ipu_target *target, const struct ipu_op *op,
		    const struct ipu_plan_options *options, struct ipu_plan *plan)
{
	const int64_t element = ipu_dtype_bytes(op->dtype);
	const struct ipu__spread spread = ipu__spread_over(
		target, op->copy.count, ipu__lanes(target, op->dtype), target->tiles);
	const double all = (double)op->copy.count * (double)element;

	(void)options;
	plan->split_field = spread.tiles;
	ipu__add_exchange(plan, target, "OnTileCopyPre/ExchangePre", spread.most * element, all,
			  spread.tiles);
	ipu__add_arrange(plan, target, "OnTileCopy-0", op->copy.atom * element,
			 spread.most * element, all, spread.tiles);
}
