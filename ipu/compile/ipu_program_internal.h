/*
 * Interface between the files that lower programs.
 */
#ifndef IPU_PROGRAM_INTERNAL_H
#define IPU_PROGRAM_INTERNAL_H

#include "ipu/compile/ipu_graph.h"
#include "ipu/compile/ipu_program.h"

/* Growing lists of programs and steps; final ones are copied to the executable's arena. After a
 * failure (out of memory) every call is a no-op. */
struct ipu_lowering {
	struct ipu_executable *executable;
	const struct ipu_target *target;
	struct ipu_planner *planner;
	struct ipu_program *programs;
	size_t program_count, program_capacity;
	struct ipu_step *steps; /* of the current function */
	size_t step_count, step_capacity;
	struct ipu_stash stash; /* of the current stage */
	bool *reduced;          /* by tensor: already summed over the replicas */
	int roots;
	bool collective; /* steps added now belong to a collective */
	bool failed;
};

/* Append a program after @parent's last child (-1: a root); return its id, or -1. @name must live
 * as long as the executable. */
int ipu__program_add(struct ipu_lowering *lowering, int parent, enum ipu_program_type type,
		     const char *name, int node);
int ipu__repeat_add(struct ipu_lowering *lowering, int parent, int64_t repeats, const char *name,
		    int node);
/* Append a Sequence; its name is formatted. */
int ipu__sequence_add(struct ipu_lowering *lowering, int parent, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
const char *ipu__name(struct ipu_lowering *lowering, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Append the leaf @step to @sequence; its name is formatted. */
void ipu__step_add(struct ipu_lowering *lowering, int sequence, const struct ipu_step *step,
		   const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Append the Sync of all tiles that precedes a phase. */
void ipu__sync_add(struct ipu_lowering *lowering, int sequence, int64_t repeats, int node,
		   int phase);
/* Copy the programs so far to the executable. */
enum status ipu__programs_store(struct ipu_lowering *lowering, struct err *err);
/* Append the phases of an operation's plan. */
void ipu__plan_lower(struct ipu_lowering *lowering, int sequence, const struct ipu_plan *plan,
		     const char *name, int node);

enum ipu_collective {
	IPU_ALL_REDUCE,
	IPU_REDUCE_SCATTER,
	IPU_ALL_GATHER
};

void ipu__collective_lower(struct ipu_lowering *lowering, int function, enum ipu_collective kind,
			   int64_t bytes, const char *name);

/* Data movement before and after @node: gradient sums over the replicas, shards of weights, remote
 * memory. */
void ipu__before_node(struct ipu_lowering *lowering, int function, int node);
void ipu__after_node(struct ipu_lowering *lowering, int function, int node);
/* Data movement at the start and the end of a stage's function. */
void ipu__before_function(struct ipu_lowering *lowering, int function, int stage,
			  enum ipu_function_phase phase);
void ipu__after_function(struct ipu_lowering *lowering, int function, int stage,
			 enum ipu_function_phase phase);
/* PUSH and START contain no operations of the graph. */
void ipu__push_lower(struct ipu_lowering *lowering, int function, int stage);
enum status ipu__start_lower(struct ipu_lowering *lowering, int function, int stage,
			     struct err *err);

/* Fail if the layout requires something that the target lacks. */
enum status ipu__layout_check(const struct ipu_graph *graph, const struct ipu_target *target,
			      struct err *err);

/* Return whether the stage has a FIFO between its forward and its backward. */
bool ipu__has_fifo(const struct ipu_graph *graph, int stage);

#endif /* IPU_PROGRAM_INTERNAL_H */
