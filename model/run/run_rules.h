/*
 * The layout of a run: replicas, stages, steps, executions, and the rules they must follow.
 *
 * The rules are those of Keras for IPU; each has a separate message that names the keys at fault.
 */
#ifndef RUN_RULES_H
#define RUN_RULES_H

#include "common/err.h"
#include "common/str.h"
#include "model/learn/targets.h"
#include "model/model.h"
#include "model/run/run_file.h"

/* What an Engine::run does. Recordings store these numbers. */
enum run_mode {
	RUN_TRAIN = 1,
	RUN_EVALUATE = 2,
	RUN_PREDICT = 3,
	RUN_MODES
};

struct run_layout {
	int stages;           /* 1 without a pipeline */
	int *stage;           /* of each layer, owned */
	int *device;          /* the IPU of each stage within its replica, owned */
	int ipus_used;        /* per replica: the greatest device and one more */
	int ipus;             /* attached in total; 0 on the CPU only */
	int ipus_per_replica; /* ipus_used rounded up to a power of two; 1 on the CPU */
	int replicas;
	int64_t accumulation; /* steps per weight update and replica; 1 without accumulation */
	/* Per replica; a step is one batch on every replica. All 0 without training. */
	int64_t steps_per_epoch, steps_per_execution, executions_per_epoch, updates_per_execution;
	/* Of the evaluation and of the validations after each epoch; 0: neither is requested. */
	int64_t evaluate_steps, evaluate_steps_per_execution;
	int64_t predict_steps, predict_steps_per_execution; /* 0: no prediction */
	char *warnings; /* newline-terminated sentences, owned; NULL: none */
	char *notes;    /* the same, for information */
};

/* Splits a model if `pipeline.stages` is "auto", because the cost of layers is not known here.
 * Writes the stage of each layer, of @stages in total. */
struct run_splitter {
	enum status (*split)(void *user, const struct model *model, int stages, int *stage,
			     struct err *err);
	void *user;
};

/* The stage of each layer from `pipeline.stages`: a list, {layer: stage that starts there}, or
 * "auto", which calls @splitter (NULL: such a run is refused). @err is not NULL. */
enum status run_stages(const struct run_file *run, const struct model *model,
		       const struct run_splitter *splitter, int *stage, int *stages,
		       struct err *err);

/* The IPU of each of @stages within a replica: from `pipeline.device_mapping`; otherwise stage s is
 * on IPU s or, if the schedule deals the stages, on the replica's IPUs in turn. */
void run_stage_devices(const struct run_file *run, int stages, int *device);

/* @train_items and @test_items: items in the sets (test 0: none). With a pipeline, the layers of
 * @model are sorted by their stages (model_order()), even on failure. @splitter: see
 * run_stages(). */
enum status run_layout_new(struct run_layout **out, const struct run_file *run, struct model *model,
			   int64_t train_items, int64_t test_items,
			   const struct run_splitter *splitter, struct err *err);
void run_layout_free(struct run_layout *layout); /* accepts NULL */

/*
 * What planning needs to know of the data that a run trains on: number and kind of the items.
 *
 * The owner of the sets fills it in: the trainer from its data sets, what-if from a recording.
 * Pure: any thread.
 */

struct run_data {
	int64_t train_items, test_items; /* 0: the part does not exist */
	struct model_shape item;         /* as it is in a batch */
	struct target_kind train, test;  /* targets of each part */
};

/* Append as JSON to @out; if memory runs out, @out is marked as failed. */
void run_data_write(struct str *out, const struct run_data *data);
/* The reverse; messages call the text @name. */
enum status run_data_read(struct run_data *out, const char *text, const char *name,
			  struct err *err);

#endif /* RUN_RULES_H */
