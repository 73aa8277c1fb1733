/*
 * A model's layers split into the stages of a pipeline: the best split by the planner's costs, and
 * what any other costs beside it.
 *
 * What a layer costs does not depend on the stage it is in, so the model is lowered as one stage
 * and its plans are summed up by layer. Threads: none.
 */
#ifndef PARTITION_H
#define PARTITION_H

#include "common/str.h"
#include "ipu/ipu_partition.h"
#include "ipu/ipu_target.h"
#include "model/model.h"
#include "model/run/run_data.h"
#include "model/run/run_file.h"

/* A split, and what it costs: simulated. */
struct partition_split {
	struct ipu_partition *partition; /* units are layers, by position */
	const char **first_layer;        /* the name of each stage's; names are the model's */
	bool best;                       /* partition_best()'s */
	double slowest_us;               /* of the slowest stage, per micro-batch */
	/* A batch on every replica, in the long run, if all stages were as slow as the slowest. */
	double step_us;
};

void partition_split_free(struct partition_split *split); /* accepts NULL */

/* The plans of a run's layers, made once for all that is asked. @run and @data outlive it, and so
 * does @like, a device whose plans it goes on with where its tiles are the same; NULL: none. */
struct partitioner;
struct plan_device;

enum status partitioner_new(struct partitioner **out, const struct run_file *run,
			    const struct run_data *data, const struct plan_device *like,
			    struct err *err);
void partitioner_free(struct partitioner *partitioner); /* accepts NULL */

/* The best split of @model into @stages; writes the stage of each layer to @stage (NULL: not
 * wanted). Outfeed layers of one queue stay together. Fails with ST_INVALID where so many stages
 * cannot be. */
enum status partition_best(struct partition_split **out, struct partitioner *partitioner,
			   const struct model *model, int stages, int *stage, struct err *err);

/* What the split @stage costs, by layer and ascending. */
enum status partition_given(struct partition_split **out, struct partitioner *partitioner,
			    const struct model *model, int stages, const int *stage,
			    struct err *err);

/* In a sentence, ended by a newline: where its stages begin and what the slowest takes; another
 * where it does not fit memory. @what: whose it is. */
void partition_split_describe(const struct partition_split *split, const char *what,
			      struct str *out);

#endif /* PARTITION_H */
