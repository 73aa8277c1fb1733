/*
 * A training session: all objects that live from the first step to the last.
 *
 * There is one worker per simulated IPU of each replica (only one without simulated IPUs). A
 * replica has its own weights; a stage has buffers for the micro-batches in flight. All of it is
 * allocated here, once.
 *
 * Write access while an execution runs: the worker of a stage writes the stage's buffers and its
 * range of the replica's blocks; `reduced` is divided among the replicas between two barriers; the
 * main thread writes none of this until all workers have finished.
 */
#ifndef TRAIN_SESSION_H
#define TRAIN_SESSION_H

#include <ipuscope/profiler.h>
#include <pthread.h>

#include "common/pool.h"
#include "ipu/compile/ipu_trace.h"
#include "ipu/ipu_schedule.h"
#include "model/learn/loss.h"
#include "model/learn/metric.h"
#include "model/learn/optimizer.h"
#include "model/plan/plan_run.h"
#include "model/run/run_queues.h"
#include "model/run/run_rules.h"
#include "outfeed/outfeed.h"
#include "trainer/data/dataset_feed.h"
#include "trainer/learn/measure_run.h"
#include "trainer/learn/optimizer_run.h"
#include "trainer/models/stage.h"
#include "trainer/ranks/ranks.h"
#include "trainer/train_screen.h"
#include "trainer/train_stop.h"

/* Works of a stage, by the names of their spans. */
enum train_site {
	TRAIN_SITE_FORWARD,
	TRAIN_SITE_BACKWARD,
	TRAIN_SITE_WEIGHTS,
	TRAIN_SITE_UPDATE,
	TRAIN_SITES
};

struct work; /* of a worker */

/* A stage of one replica. */
struct train_stage {
	struct stage *stage;
	int first_layer, layer_count;
	size_t first_weight, weight_count; /* its range of the parameter blocks */
	struct optimizer_range *ranges;    /* its trainable ranges */
	size_t range_count;
	struct optimizer_range *own; /* ranges that this replica updates: see train_ranks.h */
	size_t own_count;
	bool regularized;
	int slots;            /* micro-batches in flight */
	float *gradients;     /* [batch, output], written by the loss or by the next stage */
	size_t gradient_step; /* floats from one to the next; whole cache lines */
	int gradient_count;   /* bounds the gradients in flight */
	float *parts;         /* train_measure_parts(); NULL: none */
	struct train_signal forward_done;  /* micro-batches of this execution */
	struct train_signal forward_taken; /* outputs that the next stage has copied */
	struct train_signal backward_done;
	struct ips_site *site[TRAIN_SITES];
	struct ips_site **layer_site; /* by layer of the model */
	struct ips_track *track;      /* of the worker that runs it */
	struct work *sending; /* the backward pass whose gradients are sent as computed; or NULL */
	int sent;             /* buckets of this update sent so far */
};

struct train_replica {
	int number;
	struct train_stage *stage; /* by stage */
	float *weights, *accumulated, *fresh, *slots;
	size_t slot_stride; /* floats of each slot */
	double *squares;    /* by parameter, of gradients; NULL: no optimizer_needs_whole_norm() */
	float *halves; /* rounded weights for layers that compute in half; NULL: no such layers */
	struct ipu_interval *interval; /* of the execution: by pipeline run, IPU, order of work */
	_Atomic int64_t steps_done;    /* of the execution: their losses and metrics are complete */
	int64_t runs_recorded;         /* used by the main thread only */
	struct class_counts classes;   /* of the epoch's targets; empty: not needed */
	struct ips_track **device_track; /* by local IPU */
	struct ips_track **io_track;     /* by local IPU: of its I/O tiles; entries may be NULL */
};

/* One Engine::run; written by the main thread while the workers are idle. */
struct train_execution {
	enum ips_mode mode;
	int64_t epoch, execution, first_step, steps;
	int64_t microbatches; /* of one pipeline run */
	int64_t runs;         /* pipeline runs */
	int64_t first_update;
	const struct ipu_schedule *schedule;
	const struct ipu_timeline *timeline; /* NULL: no device */
	int64_t start_cycle;
	bool traced; /* its device timeline is recorded in full */
	struct dataset_feed *feed;
	double *losses;                     /* steps x replicas, without penalties */
	double *penalties;                  /* runs x layers: of the weights' regularisers */
	double *sums;                       /* steps x replicas x states of the metrics */
	float *outputs;                     /* steps x replicas x output_floats; NULL: not needed */
	size_t output_floats;               /* of a step's predictions on one replica */
	const struct plan_program *program; /* of the mode, with losses and metrics */
};

/* What the main thread knows of a mode besides its program in the plan. */
struct train_program {
	struct train_figures figures;                      /* of losses and metrics */
	struct ipu_trace_part trace_part[IPU_TRACE_PARTS]; /* of its device timeline */
	int trace_part_count;                              /* 0: its steps have not been recorded */
};

#define TRAIN_MODES (IPS_PREDICT + 1)
_Static_assert((int)RUN_TRAIN == (int)IPS_TRAIN && (int)RUN_EVALUATE == (int)IPS_EVALUATE &&
		       (int)RUN_PREDICT == (int)IPS_PREDICT,
	       "modes of plans and of recordings are the same");

/* Sites of the device's lanes; each NULL until it is first used. */
struct train_sites {
	struct ips_site **node;    /* operations */
	struct ips_site **move;    /* by program that moves data */
	struct ips_site **program; /* transfers, and functions that belong to no phase */
};

/* Values of a forward pass that can be recorded; the `slot` of an activation. The last three belong
 * to the model, and are registered with its first and last layer. */
enum train_part {
	TRAIN_OUTPUT,
	TRAIN_SCORES,  /* of attention */
	TRAIN_INPUT,   /* of the model */
	TRAIN_TARGETS, /* class numbers of the output's tokens */
	TRAIN_LOSSES,  /* of the output's tokens */
	TRAIN_PARTS
};

/* A tensor of the registry: see train_tensors.h. */
struct train_tensor {
	struct outfeed_tensor_params params;
	struct outfeed_choice choice;
	size_t count; /* elements of a value */
	int queue;    /* index in outfeed_plan; -1: it is watched */
	bool final;   /* this tensor completes an enqueue */
	bool sent;    /* the queue's filters accept it, and it precedes the final one */
	int number;   /* the layer of an activation; otherwise the parameter */
	int slot;     /* of optimizer state; of activations enum train_part; else 0 */
	/* Used by train_outfeed.c: */
	struct outfeed_tensor *tensor;
	struct train_tensor *next; /* of the same value */
};

struct train_tensors {
	struct outfeed_policy
		policy; /* the run file's, and the watched kinds; owned by the session */
	struct train_tensor *items; /* in the order of registration */
	int count;
	bool *used; /* by rule of the policy: it matches a tensor of the run; NULL: unknown */
	struct outfeed_tensor_params *output;   /* by layer + 1: the first is the model's input */
	struct outfeed_tensor_params *variable; /* by parameter */
};

/* Which thread dequeues the values that queues send, if any. */
enum train_values {
	TRAIN_VALUES_NONE,
	TRAIN_VALUES_EXECUTION, /* callbacks, after each execution */
	TRAIN_VALUES_RUNNING,   /* callbacks, while it runs */
	TRAIN_VALUES_EPOCH      /* the program, at the end of an epoch */
};

struct train_health {
	struct outfeed_health_rules rules; /* of the run file; none enabled without "health" */
	unsigned stop;                     /* bit 1 << enum outfeed_health_id: a hit ends the run */
	char why[256]; /* the message of such a hit; written before stop_early is set, read after */
	int64_t *broken; /* train_session_params.broken */
};

struct train_session;

/* How the loss is scaled: see model/learn/optimizer.h. */
struct train_loss_scale {
	double scale;
	int64_t finite;  /* consecutive updates whose gradients were finite */
	int64_t skipped; /* updates skipped in the whole training */
};

struct train_worker {
	struct train_session *session;
	struct train_replica *replica;
	int ipu; /* within the replica */
	pthread_t thread;
	bool started;
	struct train_signal finished; /* executions */
	_Atomic int64_t runs_done;    /* of the execution: its works' intervals are complete */
	struct ips_track *track;
	int64_t compute_ns, exchange_ns, sync_ns, host_io_ns; /* of the current execution */
	struct train_loss_scale loss_scale;                   /* the same in all workers */
	struct err err; /* the first failure of an outfeed or the recording's rows */
};

struct train_session {
	const struct plan_run *plan; /* owns the next three, programs and device */
	const struct run_file *run;
	const struct run_layout *layout;
	const struct model *model;
	const struct dataset *train_set, *test_set;
	struct train_program program[TRAIN_MODES]; /* by enum ips_mode */
	struct optimizer optimizer;
	bool regularized;                 /* any stage is */
	bool sharded;                     /* each replica has a share of the optimizer state */
	const struct plan_device *device; /* NULL without simulated IPUs */
	struct pool *pool;
	struct ips_recording *recording; /* NULL: off */
	struct ips_track *main_track;    /* Engine::run on the host */
	struct ips_track *engine_track;  /* and on the device */
	/* Of the feeds that decode, by mode: each has a thread. NULL until it is created. */
	struct ips_track *data_track[TRAIN_MODES];
	struct train_sites device_site;
	int64_t trace_executions; /* executions whose device timeline is recorded in full */
	const char *report;       /* the folder of the recording; NULL: none */

	struct ranks *ranks;         /* NULL: this process has all replicas */
	int first_replica, replicas; /* of this process, out of layout->replicas */
	bool interrupted;            /* any rank was, before the last execution ended */
	bool together;               /* all ranks know that the run fails */
	struct train_branch *branch; /* by replica: see train_ranks.h */
	struct train_exchange *exchange;

	struct train_replica *replica;
	struct train_worker *worker;
	int worker_count, workers_per_replica;
	float *reduced;
	pthread_barrier_t *barrier; /* by stage, of its replicas */
	int barrier_count;
	pthread_barrier_t norm_barrier; /* of all workers; valid if norm_meets */
	bool norm_meets;

	enum train_values values;
	struct run_queues outfeed_plan;
	uint8_t *taps; /* by layer: enum stage_look */
	struct train_tensors tensors;
	struct train_outfeed *outfeed; /* NULL: no tensors are recorded */
	struct err looking;            /* the main thread's first failure in recording them */

	struct train_execution execution;
	struct train_stop stop_early; /* of the current execution */
	struct train_health health;
	struct train_screen *screen; /* has the log for broken rules; NULL: no log */
	struct train_signal go;      /* executions begun; with `stop` set it ends the workers */
	_Atomic bool stop;
	int64_t executions, updates, steps[TRAIN_MODES]; /* so far; steps by mode */
	int64_t device_cycle;                            /* at which the next execution starts */
	int64_t part; /* 1; in a run that resumes from a backup one more than in that run */
	bool oversubscribed;
	struct arena arena;
};

struct train_session_params {
	const struct plan_run *plan; /* compiled */
	const struct dataset *train_set, *test_set;
	struct ips_recording *recording;
	int64_t trace_executions;
	const char *report; /* the folder of the recording; NULL: none */
	enum train_values values;
	struct train_screen *screen; /* has the log for broken health rules; NULL: no log */
	struct ranks *ranks;         /* borrowed; NULL: one process */
	/* By rule: incremented whenever it is broken, until the end of the session. NULL: not
	 * needed. */
	int64_t *broken;
};

/* Start the workers, which wait. @params is copied; its pointers are borrowed. A session that does
 * not fit the device's memory is recorded but cannot execute: it has no workers. */
enum status train_session_new(struct train_session **out, const struct train_session_params *params,
			      struct err *err);
void train_session_free(struct train_session *session); /* accepts NULL */

/* Does the session fit the memory of the device, if there is one? */
bool train_session_fits(const struct train_session *session);

/* Was an early end requested? All ranks give the same answer after the same execution. */
bool train_session_interrupted(const struct train_session *session);

/* ---- replicas -------------------------------------------------------------------------------- */

/* Initialize the zeroed session->replica[index], with Keras's initial weights. */
enum status train_replica_init(struct train_session *session, int index, struct err *err);
void train_replica_fini(const struct train_session *session, struct train_replica *replica);

/* Call after any change of @replica's weights except a worker's update: layers that compute in half
 * read a rounded copy. All workers must be idle. */
void train_replica_round(const struct train_session *session, struct train_replica *replica);

/* Return the pipeline runs of the execution that all workers of @replica have completed except for
 * the update: their intervals are valid. */
int64_t train_replica_runs_done(const struct train_session *session, int replica);

/* Return the bytes that a replica needs, before one is created; needs schedules and the compiled
 * programs. INFINITY: beyond what can be counted; NaN: no memory to find out. */
double train_replica_bytes(const struct train_session *session);

/* ---- workers --------------------------------------------------------------------------------- */

/* The worker of one simulated IPU runs the stages placed on it, micro-batch by micro-batch, in the
 * order that the schedule gives. */

/* The thread's function; @argument is the struct train_worker. Returns when session->stop is
 * set. */
void *train_worker_main(void *argument);

/* For stage_params.passed; @user is the struct train_stage. */
void train_worker_passed(void *user, int layer);

#endif /* TRAIN_SESSION_H */
