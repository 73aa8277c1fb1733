/*
 * The program: a graph lowered to Poplar's program kinds, as a tree and as the steps that run.
 *
 * What a stage does is a function each (F, B, U and what moves data for them; its leaves are
 * steps); the control programs call them in the order of the schedule (ipu_control.h). Steps are
 * what an execution trace shows: one after the other on an IPU, so the cycles of a function are the
 * sum of its steps'.
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
	IPU_SWITCH, /* "Unknown", as profiles show it */
	IPU_PROGRAM_TYPES
};

const char *ipu_program_type_name(enum ipu_program_type type); /* "OnTileExecute" */

/* A node of the tree; its id is its place in the list, parents stand before their children. */
struct ipu_program {
	int parent; /* -1: a control program or a function */
	int position;
	enum ipu_program_type type;
	const char *name;
	int node;        /* of the graph; -1: none */
	int64_t repeats; /* Repeat; 1 else */
	int call_target; /* Call: the function; -1 else */
	int children;
};

/* A leaf as it runs. */
struct ipu_step {
	int program; /* id in the tree */
	int node;    /* of the graph; -1: none */
	int phase;   /* of the node's plan; -1: none */
	enum ipu_program_type type;
	int64_t cycles;              /* of one run */
	double mean_cycles;          /* over the active tiles */
	int64_t tiles;               /* active */
	int64_t vertices;            /* of an OnTileExecute */
	int64_t bytes_in, bytes_out; /* exchanged: the same; from or to memory elsewhere: one */
	int64_t repeats;             /* it runs so many times, one after the other */
	bool collective;             /* a part of what replicas do together */
};

/* A stage's function. */
struct ipu_code {
	int program; /* the function's id; -1: there is none */
	struct ipu_step *steps;
	int step_count;
	struct ipu_function_cost cost; /* sums over the steps, repeats counted */
	int64_t collective; /* of the cycles: replicas' sums and gathers, syncs included */
};

struct ipu_executable {
	const struct ipu_graph *graph;
	const struct ipu_plan **plans; /* by node; the planner's */
	struct ipu_program *programs;
	int program_count, root_count;
	struct ipu_code (*code)[IPU_FUNCTION_PHASES]; /* by stage */
	struct arena arena;                           /* owns all of this */
};

/* Plan every operation and write the functions; the control programs follow with the timelines.
 * What the layout asks of a target that cannot is an error. @graph and @planner outlive the
 * executable. */
enum status ipu_executable_new(struct ipu_executable **out, const struct ipu_graph *graph,
			       struct ipu_planner *planner, const struct ipu_target *target,
			       struct err *err);
void ipu_executable_free(struct ipu_executable *executable); /* accepts NULL */

/* The function that an operation is in: F, B, W or U; W is B's where the schedule does not split.
 */
enum ipu_function_phase ipu_function_of(const struct ipu_graph *graph, int node);
bool ipu_graph_splits(const struct ipu_graph *graph);

/* What evaluation, or prediction, runs of a stage: a function of its own where F does more. */
enum ipu_function_phase ipu_forward_function(const struct ipu_layout *layout, bool predicted);

/*
 * What it takes a stage to put a tensor of @bytes into its FIFO, or to take it out, sync included.
 */
int64_t ipu_fifo_cycles(const struct ipu_target *target, int64_t bytes, bool offloaded);

/* What the sum of @bytes over @replicas of @replica_ipus takes each of them, syncs included. */
struct ipu_function_cost ipu_all_reduce_cost(const struct ipu_target *target, int64_t replicas,
					     int64_t replica_ipus, int64_t bytes);

#endif /* IPU_PROGRAM_H */
