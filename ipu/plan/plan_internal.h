/*
 * Interface between the planners of the kinds of operations.
 */
#ifndef PLAN_INTERNAL_H
#define PLAN_INTERNAL_H

#include "ipu/plan/ipu_plan.h"

/* Planner of one kind: sets method, splits, temporary_bytes and phases of a cleared
 * plan. Pure; @op is valid. */
typedef void (*ipu_plan_fn)(const struct ipu_target *target, const struct ipu_op *op,
			    const struct ipu_plan_options *options, struct ipu_plan *plan);

void ipu__plan_conv(const struct ipu_target *target, const struct ipu_op *op,
		    const struct ipu_plan_options *options, struct ipu_plan *plan);
void ipu__plan_matmul(const struct ipu_target *target, const struct ipu_op *op,
		      const struct ipu_plan_options *options, struct ipu_plan *plan);
void ipu__plan_elementwise(const struct ipu_target *target, const struct ipu_op *op,
			   const struct ipu_plan_options *options, struct ipu_plan *plan);
void ipu__plan_reduce(const struct ipu_target *target, const struct ipu_op *op,
		      const struct ipu_plan_options *options, struct ipu_plan *plan);
void ipu__plan_pool(const struct ipu_target *target, const struct ipu_op *op,
		    const struct ipu_plan_options *options, struct ipu_plan *plan);
void ipu__plan_rows(const struct ipu_target *target, const struct ipu_op *op,
		    const struct ipu_plan_options *options, struct ipu_plan *plan);
void ipu__plan_copy(const struct ipu_target *target, const struct ipu_op *op,
		    const struct ipu_plan_options *options, struct ipu_plan *plan);
void ipu__plan_slice(const struct ipu_target *target, const struct ipu_op *op,
		     const struct ipu_plan_options *options, struct ipu_plan *plan);

/* Plan the products of all passes of a trained layer jointly; @op is one of them. */
void ipu__plan_layer(const struct ipu_target *target, const struct ipu_op *op,
		     const struct ipu_plan_options *options, struct ipu_op ops[IPU_PASSES],
		     struct ipu_plan plans[IPU_PASSES]);

/* Append a phase, unless it has no cycles and no bytes. More than IPU_PHASES is a programming error
 * (asserted). */
void ipu__plan_add(struct ipu_plan *plan, const struct ipu_phase *phase);

/* Complete a plan whose planner has appended all phases: the repeats of @op, and the sums. */
void ipu__plan_finish(const struct ipu_target *target, const struct ipu_op *op,
		      struct ipu_plan *plan);

/* Round up to whole cycles, saturating far below the end of the range so that sums do not
 * overflow. */
int64_t ipu__whole(double value);

static inline int64_t ipu__ceil_div(int64_t value, int64_t by)
{
	return (value + by - 1) / by;
}

#endif /* PLAN_INTERNAL_H */
