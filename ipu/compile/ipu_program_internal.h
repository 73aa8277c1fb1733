/*
 * What the files that write programs share.
 */
#ifndef IPU_PROGRAM_INTERNAL_H
#define IPU_PROGRAM_INTERNAL_H

#include "ipu/compile/ipu_program.h"
#include "ipu/compile/ipu_stash.h"

/* Programs and steps grow here; what is kept is copied to the executable's arena. After a failure
 * (no memory) everything does nothing. */
struct ipu_lowering {
	struct ipu_executable *executable;
	const struct ipu_target *target;
	struct ipu_planner *planner;
	struct ipu_program *programs;
	size_t program_count, program_capacity;
	struct ipu_step *steps; /* of the present function */
	size_t step_count, step_capacity;
	struct ipu_stash stash; /* of the present stage */
	bool *reduced;          /* by tensor: its sum over the replicas is there */
	int roots;
	bool collective; /* the steps to come are */
	bool failed;
};

/* Returns the new program's id, or -1. @name lives as long as the executable. Its position is that
 * after @parent's last child; -1: a root. */
int ipu__program_add(struct ipu_lowering *lowering, int parent, enum ipu_program_type type,
		     const char *name, int node);
int ipu__repeat_add(struct ipu_lowering *lowering, int parent, int64_t repeats, const char *name,
		    int node);
/* A Sequence; its name is made as by printf. */
int ipu__sequence_add(struct ipu_lowering *lowering, int parent, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
const char *ipu__name(struct ipu_lowering *lowering, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The leaf @step under @sequence, its name what is printed. */
void ipu__step_add(struct ipu_lowering *lowering, int sequence, const struct ipu_step *step,
		   const char *format, ...) __attribute__((format(printf, 4, 5)));
/* A Sync of all tiles as each phase has it. */
void ipu__sync_add(struct ipu_lowering *lowering, int sequence, int64_t repeats, int node,
		   int phase);
/* An operation's plan. */
void ipu__plan_lower(struct ipu_lowering *lowering, int sequence, const struct ipu_plan *plan,
		     const char *name, int node);

/* What moves data, all in its own Sequence under @function; nothing of no bytes. */
void ipu__copy_lower(struct ipu_lowering *lowering, int function, int64_t bytes, const char *name);
void ipu__remote_lower(struct ipu_lowering *lowering, int function, int64_t bytes, bool load,
		       const char *name);

enum ipu_collective {
	IPU_ALL_REDUCE,
	IPU_REDUCE_SCATTER,
	IPU_ALL_GATHER
};

void ipu__collective_lower(struct ipu_lowering *lowering, int function, enum ipu_collective kind,
			   int64_t bytes, const char *name);

/* What is done before and after @node in its function: gradients over the replicas, shares of
 * weights, remote memory. */
void ipu__before_node(struct ipu_lowering *lowering, int function, int node);
void ipu__after_node(struct ipu_lowering *lowering, int function, int node);
/* Before and after all of a stage's function. */
void ipu__before_function(struct ipu_lowering *lowering, int function, int stage,
			  enum ipu_function_phase phase);
void ipu__after_function(struct ipu_lowering *lowering, int function, int stage,
			 enum ipu_function_phase phase);
/* PUSH and START have no operations of the graph. */
enum status ipu__push_lower(struct ipu_lowering *lowering, int function, int stage);
enum status ipu__start_lower(struct ipu_lowering *lowering, int function, int stage,
			     struct err *err);

/* The programs so far into the executable. */
enum status ipu__programs_keep(struct ipu_lowering *lowering, struct err *err);

/* The layout asks for what the target has. */
enum status ipu__layout_check(const struct ipu_graph *graph, const struct ipu_target *target,
			      struct err *err);

/* Has a FIFO between its forward and its backward. */
bool ipu__has_fifo(const struct ipu_graph *graph, int stage);

#endif /* IPU_PROGRAM_INTERNAL_H */
