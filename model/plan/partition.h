/*
 * Splitting a model's layers into the stages of a pipeline: the best split by the planner's costs,
 * and the cost of any other split for comparison.
 *
 * The cost of a layer does not depend on its stage, so the model is lowered as one stage and the
 * plans are summed up by layer. Threads: none.
 */
#ifndef PARTITION_H
#define PARTITION_H

#include "common/str.h"
#include "ipu/ipu_partition.h"
#include "ipu/ipu_target.h"
#include "model/model.h"
#include "model/run/run_data.h"
#include "model/run/run_file.h"

/* A split and its (simulated) cost. */
struct partition_split {
	struct ipu_partition *partition; /* units are layers, by position */
	const char **first_layer;        /* first layer's name, by stage; names are the model's */
	bool best;                       /* made by partition_best() */
	double slowest_us;               /* of the slowest stage, per micro-batch */
	/* A batch on every replica in steady state, if all stages were as slow as the slowest. */
	double step_us;
};

void partition_split_free(struct partition_split *split); /* accepts NULL */

/* The plans of a run's layers, made once for all queries. @run and @data must outlive it; so must
 * @like, a device whose cached plans it reuses if its tiles are the same (NULL: none). */
struct partitioner;
struct plan_device;

enum status partitioner_new(struct partitioner **out, const struct run_file *run,
			    const struct run_data *data, const struct plan_device *like,
			    struct err *err);
void partitioner_free(struct partitioner *partitioner); /* accepts NULL */

/* Find the best split of @model into @stages; writes the stage of each layer to @stage (may be
 * NULL). Outfeed layers of one queue stay together. Fails with ST_INVALID if the model cannot be
 * split into that many stages. */
enum status partition_best(struct partition_split **out, struct partitioner *partitioner,
			   const struct model *model, int stages, int *stage, struct err *err);

/* Compute the cost of the split @stage (by layer, ascending). */
enum status partition_given(struct partition_split **out, struct partitioner *partitioner,
			    const struct model *model, int stages, const int *stage,
			    struct err *err);

/* Append a sentence with a newline: where the stages begin and the time of the slowest; a second
 * sentence if the split does not fit into memory. @what: whose split it is. */
void partition_split_describe(const struct partition_split *split, const char *what,
			      struct str *out);

#endif /* PARTITION_H */
