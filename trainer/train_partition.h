/*
 * A model's layers split into the stages of a pipeline: the best split by the planner's costs, and
 * what any other costs beside it.
 *
 * What a layer costs does not depend on the stage it is in, so the model is lowered as one stage
 * and its plans are summed up by layer. Threads: none.
 */
#ifndef TRAIN_PARTITION_H
#define TRAIN_PARTITION_H

#include "common/str.h"
#include "ipu/ipu_partition.h"
#include "ipu/ipu_target.h"
#include "trainer/data/dataset.h"
#include "trainer/models/model.h"
#include "trainer/run/run_file.h"

/* A split, and what it costs: simulated. */
struct train_split {
	struct ipu_partition *partition; /* units are layers, by position */
	const char **first_layer;        /* the name of each stage's; names are the model's */
	bool best;                       /* train_partition_best()'s */
	double slowest_us;               /* of the slowest stage, per micro-batch */
	/* A batch on every replica, in the long run, if all stages were as slow as the slowest. */
	double step_us;
};

void train_split_free(struct train_split *split); /* accepts NULL */

/* The plans of a run's layers, made once for all that is asked. @run and the sets outlive it. */
struct train_partitioner;

enum status train_partitioner_new(struct train_partitioner **out, const struct run_file *run,
				  const struct dataset *train_set, const struct dataset *test_set,
				  struct err *err);
void train_partitioner_free(struct train_partitioner *partitioner); /* accepts NULL */

/* The best split of @model into @stages; writes the stage of each layer to @stage (NULL: not
 * wanted). Outfeed layers of one queue stay together. Fails with ST_INVALID where so many stages
 * cannot be. */
enum status train_partition_best(struct train_split **out, struct train_partitioner *partitioner,
				 const struct model *model, int stages, int *stage,
				 struct err *err);

/* What the split @stage costs, by layer and ascending. */
enum status train_partition_given(struct train_split **out, struct train_partitioner *partitioner,
				  const struct model *model, int stages, const int *stage,
				  struct err *err);

/* In a sentence, ended by a newline: where its stages begin and what the slowest takes; another
 * where it does not fit memory. @what: whose it is. */
void train_split_describe(const struct train_split *split, const char *what, struct str *out);

#endif /* TRAIN_PARTITION_H */
