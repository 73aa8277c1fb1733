/*
 * What the files of the what-if engine share.
 */
#ifndef REPORT_WHATIF_INTERNAL_H
#define REPORT_WHATIF_INTERNAL_H

#include "common/arena.h"
#include "ipu/compile/ipu_graph.h"
#include "ipu/ipu_timeline.h"
#include "reports/whatif/report_whatif.h"

/* A recording is not trusted: beyond these it is refused, so that no sum overflows. */
#define WHATIF_CYCLES_MAX   (INT64_C(1) << 40)
#define WHATIF_BYTES_MAX    (INT64_C(1) << 40)
#define WHATIF_REPLICAS_MAX 65536
#define WHATIF_LAYERS_MAX   8192

/* What a step of a function is there for. */
enum whatif_move {
	WHATIF_OPERATION,
	WHATIF_FIFO,
	WHATIF_COLLECTIVE,
	WHATIF_REMOTE
};

/* By what another machine would do faster. */
struct whatif_cycles {
	int64_t compute, exchange, links, sync, host;
};

/* What a layer takes of a function of a stage. */
struct whatif_piece {
	int stage, layer; /* a position */
	enum ipu_function_phase function;
	enum whatif_move move;
	bool matrix;      /* a convolution or product */
	bool weights;     /* of B, what W would be */
	bool accumulates; /* adds to a gradient accumulator */
	struct whatif_cycles cycles;
};

struct whatif_layer {
	const char *name;
	int stage;
	int64_t output_bytes;                /* of a micro-batch */
	int64_t outfeed_bytes, update_bytes; /* fed out by outfeeds, with its F and its U */
	int64_t parameters;
	int input; /* the first layer that it reads; -1: none */
	int maker; /* of what it hands on: itself, if it computes */
	bool computes;
	bool reads_input; /* in its backward */
	bool joined;      /* outfeeds that share a queue share a stage */
};

/* Where a program of the tree belongs. */
struct whatif_program {
	int stage;    /* -1: of no function of a stage */
	int function; /* enum ipu_function_phase */
	int layer;    /* of the operation, or of the tensor that is moved; -1 */
	enum whatif_move move;
};

/* Summed over the replicas, at each weight update. */
struct whatif_gradient {
	int layer;
	int64_t bytes;
	bool half;
};

/* A tensor of a micro-batch that backward passes read: every stage that does keeps it. */
struct whatif_stash {
	const char *name;
	int made;   /* by this layer */
	bool own;   /* whose backward reads it */
	int reader; /* another layer whose backward reads it; -1 */
	int64_t bytes;
};

/* The layer @to reads the output of @from. */
struct whatif_edge {
	int from, to;
};

struct whatif_stream {
	int64_t infeed, outfeed, update; /* bytes, as struct ipu_stage_cost has them */
};

/* Of the run file. */
struct whatif_options {
	int64_t tiles, io_tiles, prefetch_depth;
	bool overlap; /* streams go through the I/O tiles */
	bool recompute, recompute_auto, recompute_late;
	bool offload_activations, sharded;
	bool half;
};

/* Means of the host clock, ns, by stage; and what a run takes beside its pipeline. */
struct whatif_host {
	double *forward, *backward, update;
	double waits;   /* the measured makespan over the theoretical one */
	double rest_ns; /* of a run: neither F nor B nor waits between them */
	bool oversubscribed;
};

struct report_whatif {
	enum report_whatif_clock clock;
	struct report_whatif_prediction measured;
	struct ipu_target target;
	struct whatif_options options;
	enum ipu_schedule_kind schedule;
	int stages, ipus;
	int *device; /* stage -> IPU */
	struct whatif_layer *layers;
	int layer_count;
	struct whatif_program *programs; /* by id */
	size_t program_count, program_capacity;
	struct whatif_piece *pieces;
	size_t piece_count, piece_capacity;
	struct whatif_stream *streams; /* by stage */
	struct ipu_send *sends;
	int send_count;
	struct whatif_gradient *gradients;
	size_t gradient_count, gradient_capacity;
	struct whatif_stash *stashes;
	size_t stash_count, stash_capacity;
	struct whatif_edge *edges;
	size_t edge_count, edge_capacity;
	bool gradients_guessed; /* from the layers' numbers of parameters */
	bool chain;             /* of some layers it is not known which they read */
	struct whatif_host host;
	uint32_t assumptions; /* of every prediction */
	struct arena arena;
};

/* A change with all of its parts settled. */
struct whatif_plan {
	enum ipu_schedule_kind kind;
	bool comparison, resplit;
	int stages, ipus, chunks;
	int *device; /* stage -> IPU */
	int *stage;  /* layer -> stage */
	int64_t microbatches, replicas;
	struct ipu_target target;
	struct ipu_stage_cost *costs;
	int64_t *weights; /* by stage: of B's cycles, what W would be */
	struct ipu_send *sends;
	int send_count;
	uint32_t assumptions;
	struct arena *arena; /* what it points to */
};

/* One row of a query. */
typedef enum status (*whatif_row_fn)(struct report_whatif *whatif, const struct prof_query *query,
				     void *user, struct err *err);
enum status report__whatif_rows(struct report_whatif *whatif, struct prof_db *db, const char *sql,
				whatif_row_fn take, void *user, struct err *err);

/* The position of the layer that @name, "LAYER/tensor" or "LAYER", is of; -1: of none. */
int report__whatif_layer(const struct report_whatif *whatif, const char *name);

/* Reading: the execution trace; tensors that FIFOs and sums over replicas move; the host clock. */
enum status report__whatif_trace(struct report_whatif *whatif, struct prof_db *db, struct err *err);
enum status report__whatif_tensors(struct report_whatif *whatif, struct prof_db *db,
				   struct err *err);
enum status report__whatif_host(struct report_whatif *whatif, struct prof_db *db, struct err *err);

/* Predicting. */
enum status report__whatif_split(struct whatif_plan *plan, const struct report_whatif *whatif,
				 const struct report_whatif_change *change, struct err *err);
enum status report__whatif_costs(struct whatif_plan *plan, const struct report_whatif *whatif,
				 struct err *err);
enum status report__whatif_accumulate(struct whatif_plan *plan, const struct report_whatif *whatif,
				      const struct ipu_target *tiles, struct err *err);
/* The stage that the plan has a layer in. */
int report__whatif_stage(const struct whatif_plan *plan, const struct report_whatif *whatif,
			 int layer);
void report__whatif_add(struct ipu_function_cost *sum, const struct ipu_function_cost *cost);
enum status report__whatif_host_predict(struct report_whatif_prediction *out,
					const struct report_whatif *whatif,
					const struct whatif_plan *plan, struct err *err);
enum status report__whatif_pipeline(struct report_whatif_prediction *out,
				    const struct whatif_plan *plan, const double *forward_ns,
				    const double *backward_ns, const double *weight_ns,
				    double communication_ns, struct err *err);

/* The schedule as ipu_schedule.h has it; Grouped of one that is only compared with. */
enum ipu_schedule_kind report__whatif_schedule(enum ipu_schedule_kind kind);

#endif /* REPORT_WHATIF_INTERNAL_H */
