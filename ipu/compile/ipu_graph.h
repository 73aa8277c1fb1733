/*
 * Input of the compiler: the tensors and operations of one replica's micro-batch, to which a
 * trainer lowers a model, and the layout of the run.
 *
 * The caller owns a graph, which is plain data; strings and lists must live as long as the graph.
 * Tensors and operations refer to each other by index. The operations of a pipeline stage are
 * contiguous: F in order of execution, then B (and W), then U.
 */
#ifndef IPU_GRAPH_H
#define IPU_GRAPH_H

#include "ipu/ipu_schedule.h"
#include "ipu/plan/ipu_plan.h"

#define IPU_TENSOR_DIMS 9

enum ipu_tensor_kind {
	IPU_TENSOR_INPUT,  /* of the model: streamed from the host */
	IPU_TENSOR_LABELS, /* streamed from the host */
	IPU_TENSOR_ACTIVATION,
	IPU_TENSOR_KEPT, /* saved by the forward pass for the backward pass: masks, statistics */
	IPU_TENSOR_TEMPORARY,       /* between operations of a phase */
	IPU_TENSOR_GRADIENT,        /* of an activation */
	IPU_TENSOR_WEIGHT,          /* trained */
	IPU_TENSOR_STATE,           /* moving statistics: not trained */
	IPU_TENSOR_WEIGHT_GRADIENT, /* of one micro-batch */
	IPU_TENSOR_ACCUMULATOR,
	IPU_TENSOR_OPTIMIZER_STATE,
	IPU_TENSOR_RESULT, /* losses and metrics: streamed to the host */
	IPU_TENSOR_KINDS
};

const char *ipu_tensor_kind_name(enum ipu_tensor_kind kind); /* "activation", "weight" ... */

struct ipu_tensor {
	const char *name;  /* "Dense_128/kernel" */
	const char *layer; /* or NULL */
	enum ipu_tensor_kind kind;
	enum ipu_dtype dtype;
	int ndim;
	int64_t dim[IPU_TENSOR_DIMS]; /* including the batch dimension, if any */
	int stage;                    /* that makes or owns it */
};

int64_t ipu_tensor_elements(const struct ipu_tensor *tensor);
int64_t ipu_tensor_bytes(const struct ipu_tensor *tensor);
/* Variables persist over all programs: weights, states, accumulators, optimizer state. */
bool ipu_tensor_is_variable(enum ipu_tensor_kind kind);

struct ipu_node {
	struct ipu_op op;
	struct ipu_plan_options options;
	const int *reads, *writes; /* tensors; one in both lists is updated in place */
	int read_count, write_count;
	/* Part of an operation that is called as a function: those with the same plan on an IPU
	 * share their code, as all convolutions and products do. */
	bool function;
	/* In phase F: skipped in evaluation and prediction; skipped in prediction. */
	bool training_only, measure_only;
};

enum ipu_recompute {
	IPU_RECOMPUTE_NONE,
	IPU_RECOMPUTE_THEN_BACKPROPAGATE,
	IPU_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED
};

/* Layout of the run: all options that change memory and time but no numbers. */
struct ipu_layout {
	int64_t batch; /* items of a micro-batch */
	int replicas;
	int replica_ipus; /* including IPUs without a stage */
	int stages;
	int64_t sum_buffer_bytes; /* gradients summed over the replicas in one operation */
	const struct ipu_schedule *schedule; /* of a training pipeline run; NULL: no training */
	const struct ipu_schedule *forward;  /* of evaluation or prediction; NULL: neither */
	bool evaluated, predicted;
	int64_t accumulation; /* micro-batches per weight update */
	int64_t runs;         /* pipeline runs per execution, in training */
	enum ipu_recompute recompute;
	bool offload_activations, offload_optimizer_state, offload_accumulators, offload_weights;
	bool shard_optimizer_state, shard_weights; /* over the replicas */
	int64_t io_tiles;                          /* reduce the compute tiles; 0: none */
	bool place_ops_on_io_tiles;  /* false: streams do not overlap; the tiles stay reserved */
	double io_memory_proportion; /* of the I/O tiles' memory */
	int64_t prefetch_depth;      /* batches that the host prepares ahead */
	int64_t buffer_depth;        /* results by which the host may lag behind */
	bool accumulate_outfeed;     /* results once per pipeline run, not per micro-batch */
};

struct ipu_graph {
	const struct ipu_tensor *tensors;
	int tensor_count;
	const struct ipu_node *nodes;
	int node_count;
	struct ipu_layout layout;
};

/* Return whether the schedule runs W apart from B. */
bool ipu_graph_splits(const struct ipu_graph *graph);
/* Return whether evaluation (or prediction if @predicted) runs the operation, of phase F. */
bool ipu_node_forward(const struct ipu_node *node, bool predicted);
/* Return whether the operation belongs to @stage and @phase; phase B includes W. */
bool ipu_node_in(const struct ipu_node *node, int stage, char phase);
/* Change operations of phase B on which no activation gradient depends to phase W. */
enum status ipu_graph_split(struct ipu_node *nodes, int node_count,
			    const struct ipu_tensor *tensors, int tensor_count, struct err *err);

/*
 * Tensors that a stage's forward pass saves for its backward pass.
 *
 * Without recomputation: every tensor of the micro-batch that the backward pass reads. With it:
 * what recomputation cannot produce, namely the stage's inputs and random results (TensorFlow for
 * IPU caches the results of stateful operations). The last stage never recomputes: its backward
 * follows immediately.
 */

struct ipu_stash {
	int *tensors; /* in ascending order; owned */
	int count;
	bool *replayed; /* by node: it is recomputed before the backward; owned */
	bool replays;   /* whether any node is */
};

enum status ipu_stash_init(struct ipu_stash *stash, const struct ipu_graph *graph, int stage,
			   struct err *err);
void ipu_stash_fini(struct ipu_stash *stash);

#endif /* IPU_GRAPH_H */
