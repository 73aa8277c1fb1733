/*
 * Work on rows: softmax, losses, accuracy. Pure functions: any thread.
 *
 * The steps are those that XLA emits. Elements are gathered first: each row on one tile, or, if
 * faster, in pieces on several tiles, which then exchange their partial sums.
 */
#include <assert.h>
#include <stddef.h>

#include "common/mem.h"
#include "ipu/plan/plan_vector.h"

#define MOST_PIECES 1024
#define STEPS       8

enum step_kind {
	STEP_NONE, /* the end of the list */
	STEP_EACH, /* a map over all elements */
	STEP_ROW,  /* a map over one element per row */
	STEP_SUM,  /* sum or maximum of each row, broadcast to the row */
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
	bool sums_rows; /* followed by a reduction over all rows */
	struct step steps[STEPS];
} rows_works[] = {
	[IPU_ROWS_SOFTMAX] = {.steps = {SUM("SoftmaxMax"),
					MAP("SoftmaxSub/Exp", ADD = 1, [IPU_FN_EXP] = 1),
					SUM("SoftmaxSum"), MAP("SoftmaxDiv", DIVIDE = 1)}},
	[IPU_ROWS_SOFTMAX_GRAD] = {.steps = {MAP("SoftmaxGrad/Mul", ADD = 1), SUM("SoftmaxGrad"),
					     MAP("SoftmaxGrad/SubMul", ADD = 2)}},
	/* Labels are compared with classes; the gradient is exponentials / their sum - labels. */
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

/* Distribution of rows, each split into @pieces of at most @length elements. */
struct layout {
	const struct ipu_target *target;
	enum ipu_dtype dtype;
	int64_t row_count, pieces, length;
	struct ipu__spread elements, sums, rows; /* sums: one per piece */
};

static struct layout layout_rows(const struct ipu_target *target, const struct ipu_op *op,
				 int64_t pieces)
{
	const struct ipu_rows *rows = &op->rows;
	const int64_t length = ipu__ceil_div(rows->columns, pieces);
	struct layout layout = {target, op->dtype, rows->rows, pieces, length, {0}, {0}, {0}};

	layout.sums = ipu__spread_over(target, ipu__product(rows->rows, pieces), 1, target->tiles);
	layout.rows = ipu__spread_over(target, rows->rows, 1, target->tiles);
	layout.elements =
		(struct ipu__spread){layout.sums.tiles, ipu__product(layout.sums.most, length),
				     layout.sums.mean * (double)rows->columns / (double)pieces};
	return layout;
}

/* Reduce the sums of the pieces to one on the row's tile. */
static void add_pieces(const struct layout *layout, struct ipu__reducing *reducing)
{
	if (layout->pieces > 1)
		ipu__reduce_over_tiles(reducing, layout->pieces, layout->row_count);
}

static void add_sum(const struct layout *layout, const struct step *step, struct ipu_plan *plan)
{
	struct ipu__reducing reducing = {plan, layout->target, layout->dtype, &step->names, 0};
	const int64_t bytes = ipu_dtype_bytes(layout->dtype);

	ipu__reduce_on_tiles(&reducing, layout->length, &layout->sums);
	add_pieces(layout, &reducing);
	if (layout->pieces > 1)
		ipu__add_exchange(plan, layout->target, step->part, layout->sums.most * bytes,
				  layout->sums.mean * (double)(layout->sums.tiles * bytes),
				  layout->sums.tiles);
}

/* 3 instructions per element. Start and supervisor are those of a nonlinearity: no published
 * figure. */
static void add_argmax(const struct layout *layout, const struct step *step, struct ipu_plan *plan)
{
	struct ipu__reducing reducing = {plan, layout->target, layout->dtype, &step->names, 0};
	const struct ipu__vertex vertex = {"popnn::ReduceMaxClassGather", 9, 20,
					   3.0 * (double)ipu__lanes(layout->target, layout->dtype)};

	ipu__add_compute(plan, layout->target, step->part, &vertex, layout->dtype,
			 &layout->elements);
	add_pieces(layout, &reducing);
}

/* 4 instructions per row; the rest as above. */
static void add_accuracy(const struct layout *layout, const struct step *step,
			 struct ipu_plan *plan)
{
	const struct ipu__vertex vertex = {"popnn::CalcAccuracy", 9, 20,
					   4.0 * (double)ipu__lanes(layout->target, IPU_INT32)};

	ipu__add_compute(plan, layout->target, step->part, &vertex, IPU_INT32, &layout->rows);
}

static void add_step(const struct layout *layout, const struct step *step, struct ipu_plan *plan)
{
	const struct ipu__vertex map = ipu__map_vertex(step->times, layout->dtype);

	switch (step->kind) {
	case STEP_EACH:
		ipu__add_compute(plan, layout->target, step->part, &map, layout->dtype,
				 &layout->elements);
		break;
	case STEP_ROW:
		ipu__add_compute(plan, layout->target, step->part, &map, layout->dtype,
				 &layout->rows);
		break;
	case STEP_SUM:
		add_sum(layout, step, plan);
		break;
	case STEP_ARGMAX:
		add_argmax(layout, step, plan);
		break;
	case STEP_ACCURACY:
		add_accuracy(layout, step, plan);
		break;
	case STEP_NONE:
		break;
	}
}

/* ---- plan ------------------------------------------------------------------------------------ */

/* Neither the candidate pieces nor the stages that sum them depend on the target, and the rest is
 * spread over more tiles if there are more: so more tiles never make it slower. */
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
		const struct rows_work *work = &rows_works[op->rows.work];
		const struct layout layout = layout_rows(target, op, pieces);
		const int64_t bytes = ipu_dtype_bytes(op->dtype);

		tried.split_batch = layout.rows.tiles;
		tried.split_in = pieces;
		ipu__add_exchange(&tried, target, "Rows/ExchangePre", layout.elements.most * bytes,
				  layout.elements.mean * (double)(layout.elements.tiles * bytes),
				  layout.elements.tiles);
		ipu__add_arrange(&tried, target, "Rows/OnTileCopyPre", target->vector_bytes,
				 layout.elements.most * bytes,
				 layout.elements.mean * (double)(layout.elements.tiles * bytes),
				 layout.elements.tiles);
		for (const struct step *step = work->steps;
		     step < work->steps + STEPS && step->kind != STEP_NONE; step++)
			add_step(&layout, step, &tried);
		/* The gathered input, and the result of a step for the next. */
		tried.temporary_bytes *= 2;
		cycles = ipu__plan_time(target, &tried);
		if (cycles < least) {
			least = cycles;
			*plan = tried;
		}
	}
	if (rows_works[op->rows.work].sums_rows && op->rows.rows > 1)
		ipu__add_reduce(&total, op->rows.rows, 1, true);
}
