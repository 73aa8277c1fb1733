/*
 * Work on rows: softmax, losses, accuracy. Pure functions: any thread.
 *
 * The steps are those that XLA makes of it. Elements are gathered first: each row on one tile, or,
 * if that is faster, in pieces on several, which then exchange what they sum.
 */
#include <assert.h>
#include <stddef.h>

#include "common/mem.h"
#include "ipu/plan/plan_vector.h"

#define MOST_PIECES 1024
#define STEPS       8

enum step_kind {
	STEP_NONE, /* no more */
	STEP_EACH, /* a map on every element */
	STEP_ROW,  /* a map with one element for a row */
	STEP_SUM,  /* or maximum of each row, given back to all of it */
	STEP_ARGMAX,
	STEP_ACCURACY
};

struct step {
	enum step_kind kind;
	uint8_t times[IPU_FUNCTIONS]; /* maps */
	const char *part;
	struct ipu__reduce_names names; /* sums and argmax */
};

#define MAP(of, ...)                                                                               \
	{                                                                                          \
		STEP_EACH, {__VA_ARGS__}, of,                                                      \
		{                                                                                  \
			{NULL},                                                                    \
			{                                                                          \
				NULL                                                               \
			}                                                                          \
		}                                                                                  \
	}
#define SUM(of)                                                                                    \
	{                                                                                          \
		STEP_SUM, {0}, of "/Broadcast/ExchangePre", IPU_REDUCE_NAMES(of "/")               \
	}
#define ADD    [IPU_FN_ADD]
#define DIVIDE [IPU_FN_DIVIDE_BY]
#define SELECT [IPU_FN_SELECT]

static const struct rows_work {
	bool sums_rows; /* ends in one number over all rows */
	struct step steps[STEPS];
} rows_works[] = {
	[IPU_ROWS_SOFTMAX] = {.steps = {SUM("SoftmaxMax"),
					MAP("SoftmaxSub/Exp", ADD = 1, [IPU_FN_EXP] = 1),
					SUM("SoftmaxSum"), MAP("SoftmaxDiv", DIVIDE = 1)}},
	[IPU_ROWS_SOFTMAX_GRAD] = {.steps = {MAP("SoftmaxGrad/Mul", ADD = 1), SUM("SoftmaxGrad"),
					     MAP("SoftmaxGrad/SubMul", ADD = 2)}},
	/* The labels from classes; exponentials over their sum, less the labels, are the
	 * gradient. */
	[IPU_ROWS_CROSS_ENTROPY] = {.steps = {SUM("Max"),
					      MAP("SubExp", ADD = 1, [IPU_FN_EXP] = 1),
					      SUM("Sum"),
					      {STEP_ROW, {[IPU_FN_LOG] = 1}, "Log", {{0}, {0}}},
					      MAP("SubMul", ADD = 3, SELECT = 1),
					      SUM("Loss"),
					      MAP("Grad", ADD = 1, DIVIDE = 1)},
				    .sums_rows = true},
	[IPU_ROWS_ERROR] = {.steps = {MAP("SubSquare", ADD = 2), SUM("Error"),
				      MAP("Grad", ADD = 2)},
			    .sums_rows = true},
	[IPU_ROWS_ARGMAX] = {.steps = {{STEP_ARGMAX, {0}, "ArgMax", IPU_REDUCE_NAMES("ArgMax/")},
				       {STEP_ACCURACY, {0}, "CalcAccuracy", {{0}, {0}}}},
			     .sums_rows = true},
};
_Static_assert(ARRAY_LEN(rows_works) == IPU_ROWS_WORKS, "rows table out of step");

static const struct ipu__reduce_names total_names = IPU_REDUCE_NAMES("Total/");

/* ---- steps ----------------------------------------------------------------------------------- */

/* How rows lie, each cut into @pieces of @length elements at most. */
struct laid {
	const struct ipu_target *target;
	enum ipu_dtype dtype;
	int64_t row_count, pieces, length;
	struct ipu__spread elements, sums, rows; /* sums: one for a piece */
};

static struct laid lay_rows(const struct ipu_target *target, const struct ipu_op *op,
			    int64_t pieces)
{
	const struct ipu_rows *rows = &op->rows;
	const int64_t length = ipu__ceil_div(rows->columns, pieces);
	struct laid laid = {target, op->dtype, rows->rows, pieces, length, {0}, {0}, {0}};

	laid.sums = ipu__spread_over(target, ipu__product(rows->rows, pieces), 1, target->tiles);
	laid.rows = ipu__spread_over(target, rows->rows, 1, target->tiles);
	laid.elements =
		(struct ipu__spread){laid.sums.tiles, ipu__product(laid.sums.most, length),
				     laid.sums.mean * (double)rows->columns / (double)pieces};
	return laid;
}

/* The pieces' sums to one on the row's tile. */
static void add_pieces(const struct laid *laid, struct ipu__reducing *reducing)
{
	if (laid->pieces > 1)
		ipu__reduce_over_tiles(reducing, laid->pieces, laid->row_count);
}

static void add_sum(const struct laid *laid, const struct step *step, struct ipu_plan *plan)
{
	struct ipu__reducing reducing = {plan, laid->target, laid->dtype, &step->names, 0};
	const int64_t bytes = ipu_dtype_bytes(laid->dtype);

	ipu__reduce_on_tiles(&reducing, laid->length, &laid->sums);
	add_pieces(laid, &reducing);
	if (laid->pieces > 1)
		ipu__add_exchange(plan, laid->target, step->part, laid->sums.most * bytes,
				  laid->sums.mean * (double)(laid->sums.tiles * bytes),
				  laid->sums.tiles);
}

/* 3 instructions an element. Start and supervisor as a nonlinearity's: no figure of their own. */
static void add_argmax(const struct laid *laid, const struct step *step, struct ipu_plan *plan)
{
	struct ipu__reducing reducing = {plan, laid->target, laid->dtype, &step->names, 0};
	const struct ipu__vertex vertex = {"popnn::ReduceMaxClassGather", 9, 20,
					   3.0 * (double)ipu__lanes(laid->target, laid->dtype)};

	ipu__add_compute(plan, laid->target, step->part, &vertex, laid->dtype, &laid->elements);
	add_pieces(laid, &reducing);
}

/* 4 instructions a row; the rest as above. */
static void add_accuracy(const struct laid *laid, const struct step *step, struct ipu_plan *plan)
{
	const struct ipu__vertex vertex = {"popnn::CalcAccuracy", 9, 20,
					   4.0 * (double)ipu__lanes(laid->target, IPU_INT32)};

	ipu__add_compute(plan, laid->target, step->part, &vertex, IPU_INT32, &laid->rows);
}

static void add_step(const struct laid *laid, const struct step *step, struct ipu_plan *plan)
{
	const struct ipu__vertex map = ipu__map_vertex(step->times, laid->dtype);

	switch (step->kind) {
	case STEP_EACH:
		ipu__add_compute(plan, laid->target, step->part, &map, laid->dtype,
				 &laid->elements);
		break;
	case STEP_ROW:
		ipu__add_compute(plan, laid->target, step->part, &map, laid->dtype, &laid->rows);
		break;
	case STEP_SUM:
		add_sum(laid, step, plan);
		break;
	case STEP_ARGMAX:
		add_argmax(laid, step, plan);
		break;
	case STEP_ACCURACY:
		add_accuracy(laid, step, plan);
		break;
	case STEP_NONE:
		break;
	}
}

/* ---- the plan -------------------------------------------------------------------------------- */

static void plan_pieces(const struct ipu_target *target, const struct ipu_op *op, int64_t pieces,
			struct ipu_plan *plan)
{
	const struct rows_work *work = &rows_works[op->rows.work];
	const struct laid laid = lay_rows(target, op, pieces);
	const int64_t bytes = ipu_dtype_bytes(op->dtype);

	plan->split_batch = laid.rows.tiles;
	plan->split_in = pieces;
	ipu__add_exchange(plan, target, "Rows/ExchangePre", laid.elements.most * bytes,
			  laid.elements.mean * (double)(laid.elements.tiles * bytes),
			  laid.elements.tiles);
	ipu__add_arrange(plan, target, "Rows/OnTileCopyPre", target->vector_bytes,
			 laid.elements.most * bytes,
			 laid.elements.mean * (double)(laid.elements.tiles * bytes),
			 laid.elements.tiles);
	for (const struct step *step = work->steps;
	     step < work->steps + STEPS && step->kind != STEP_NONE; step++)
		add_step(&laid, step, plan);
	/* What came, and what a step leaves for the next. */
	plan->temporary_bytes *= 2;
}

/* Pieces do not depend on the target, nor do the stages that sum them, and the rest is spread over
 * more tiles where there are more: so more tiles never make it slower. */
void ipu__plan_rows(const struct ipu_target *target, const struct ipu_op *op,
		    const struct ipu_plan_options *options, struct ipu_plan *plan)
{
	const struct ipu_plan empty = *plan;
	struct ipu__reducing total = {plan, target, op->dtype, &total_names, 0};
	int64_t least = INT64_MAX;

	(void)options;
	assert((unsigned)op->rows.work < IPU_ROWS_WORKS);
	for (int64_t pieces = 1; pieces <= MOST_PIECES && pieces <= op->rows.columns; pieces *= 2) {
		struct ipu_plan tried = empty;
		int64_t cycles;

		plan_pieces(target, op, pieces, &tried);
		cycles = ipu__plan_time(target, &tried);
		if (cycles < least) {
			least = cycles;
			*plan = tried;
		}
	}
	if (rows_works[op->rows.work].sums_rows && op->rows.rows > 1)
		ipu__add_reduce(&total, op->rows.rows, 1, true);
}
