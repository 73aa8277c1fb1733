/*
 * Programs: a graph lowered to Poplar's program types, as a tree and as executed steps.
 *
 * Each stage has a function for F, B, U and for the data movement around them; the leaves of a
 * function are steps. The control programs call the functions in the order of the schedule
 * (ipu_control_add()). An execution trace shows steps. An IPU executes them sequentially, so the
 * cycles of a function are the sum over its steps.
 */
#ifndef IPU_PROGRAM_H
#define IPU_PROGRAM_H

#include "common/arena.h"
#include "ipu/compile/ipu_graph.h"
#include "ipu/ipu_timeline.h"

enum ipu_program_type {
	IPU_SEQUENCE,
	IPU_REPEAT,
	IPU_CALL,
	IPU_ON_TILE_EXECUTE,
	IPU_DO_EXCHANGE,
	IPU_GLOBAL_EXCHANGE,
	IPU_SYNC,
	IPU_SYNC_ANS,
	IPU_STREAM_COPY_BEGIN,
	IPU_STREAM_COPY_MID,
	IPU_STREAM_COPY_END,
	IPU_WRITE_UNDEF,
	IPU_SWITCH, /* profiles call it "Unknown" */
	IPU_PROGRAM_TYPES
};

const char *ipu_program_type_name(enum ipu_program_type type); /* "OnTileExecute" */
/* The program type of a transfer; for a stream copy that of its middle part. */
enum ipu_program_type ipu_transfer_type(enum ipu_transfer_kind kind);

/* A node of the tree; its id is its index in the list. Parents precede their children. */
struct ipu_program {
	int parent; /* -1: a control program or a function */
	int position;
	enum ipu_program_type type;
	const char *name;
	int node;        /* of the graph, or -1 */
	int64_t repeats; /* of a Repeat; otherwise 1 */
	int call_target; /* of a Call: the function; otherwise -1 */
	int children;
};

/* An executed leaf. */
struct ipu_step {
	int program; /* id in the tree */
	int node;    /* of the graph, or -1 */
	int phase;   /* of the node's plan, or -1 */
	enum ipu_program_type type;
	int64_t cycles;              /* of one run */
	double mean_cycles;          /* over the active tiles */
	int64_t tiles;               /* active */
	int64_t vertices;            /* of an OnTileExecute */
	int64_t bytes_in, bytes_out; /* equal for an exchange; remote memory: one of them */
	int64_t repeats;             /* consecutive executions */
	bool collective;             /* part of a collective of the replicas */
};

/* A stage's function. */
struct ipu_code {
	int program; /* the function's id, or -1 */
	struct ipu_step *steps;
	int step_count;
	struct ipu_function_cost cost; /* sums over the steps, including repeats */
	int64_t collective; /* share of the cycles: collectives of the replicas with their syncs */
};

struct ipu_executable {
	const struct ipu_graph *graph;
	const struct ipu_plan **plans; /* by node; owned by the planner */
	struct ipu_program *programs;
	int program_count, root_count;
	struct ipu_code (*code)[IPU_FUNCTION_PHASES]; /* by stage */
	struct arena arena;                           /* owns all of this */
};

/* Plan every operation and lower the functions; the control programs follow with the timelines.
 * Fails if the layout requires something that the target lacks. @graph and @planner must outlive
 * the executable. */
enum status ipu_executable_new(struct ipu_executable **out, const struct ipu_graph *graph,
			       struct ipu_planner *planner, const struct ipu_target *target,
			       struct err *err);
void ipu_executable_free(struct ipu_executable *executable); /* accepts NULL */

/* The function of an operation: F, B, W or U; W belongs to B if the schedule does not split them.
 */
enum ipu_function_phase ipu_function_of(const struct ipu_graph *graph, int node);

/* The function that evaluation or prediction runs: a separate one if F does more than they need. */
enum ipu_function_phase ipu_forward_function(const struct ipu_layout *layout, bool predicted);

/*
 * Cycles of a stage to push a tensor of @bytes to its FIFO, or to pop it, including the sync.
 */
int64_t ipu_fifo_cycles(const struct ipu_target *target, int64_t bytes, bool offloaded);

/*
 * The costs of an executable that the device clock needs.
 */

struct ipu_costs {
	struct ipu_stage_cost *stages;              /* by stage, in training */
	struct ipu_stage_cost *forward, *predicted; /* in evaluation and in prediction */
	struct ipu_send *sends;
	int send_count;
};

/* The arrays belong to @arena. Streams: the inputs and labels that a stage reads, and its results.
 * Sends: tensors that a stage makes in its forward phase and a later stage reads in any phase. */
enum status ipu_costs_get(struct ipu_costs *out, const struct ipu_executable *executable,
			  struct arena *arena, struct err *err);

/*
 * Control programs: the tree below Engine::run, down to the calls of the stages' functions.
 *
 * Engine::run          two stream copies that transfer the number of the program to run, the
 *                      exchange that broadcasts it to all tiles, a switch over the modes
 * train, evaluate ..   Repeat over the pipeline runs of an execution: FIFOs undefined,
 *                      accumulators zeroed, ramp-up, Repeat of the main phase, ramp-down,
 *                      weight update; Sequential has a Repeat over the micro-batches
 *                      instead of the three
 */

/* A mode of Engine::run. */
struct ipu_mode {
	const char *name; /* "train" */
	const struct ipu_schedule *schedule;
	struct ipu_timeline *timeline; /* ipu_control_add() stores programs in its transfers */
	int64_t runs;                  /* pipeline runs per execution */
};

/* Time steps as Sequences: the first @lead, then @period of them @repeats times, then the rest. */
struct ipu_folding {
	int lead, period, repeats; /* repeats 0: no main phase */
	int microbatches;          /* that begin in a period */
	int slots;                 /* Sequences; the weight update has one more */
};
struct ipu_folding ipu_control_fold(const struct ipu_schedule *schedule,
				    const struct ipu_timeline *timeline);

/* Append the control programs to those of the functions; call once. */
enum status ipu_control_add(struct ipu_executable *executable, const struct ipu_mode *modes,
			    int count, struct err *err);

#endif /* IPU_PROGRAM_H */
