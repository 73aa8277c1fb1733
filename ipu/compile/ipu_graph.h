/*
 * What the device is asked to run: the tensors and operations of one replica's micro-batch, as a
 * trainer lowers a model to them, and how the run is laid out.
 *
 * A graph is plain data of the caller's; texts and lists live as long as the graph. Tensors and
 * operations name each other by index. A pipeline stage's operations lie together: F in order of
 * execution, then B (and W), then U.
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
	IPU_TENSOR_KEPT, /* what a forward pass keeps for the backward one: masks, statistics */
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
	const char *layer; /* NULL: none */
	enum ipu_tensor_kind kind;
	enum ipu_dtype dtype;
	int ndim;
	int64_t dim[IPU_TENSOR_DIMS]; /* with the batch, where it has one */
	int stage;                    /* that makes it, or that it belongs to */
};

int64_t ipu_tensor_elements(const struct ipu_tensor *tensor);
int64_t ipu_tensor_bytes(const struct ipu_tensor *tensor);
/* Lives over all programs: weights, states, accumulators, optimizer state. */
bool ipu_tensor_is_variable(enum ipu_tensor_kind kind);

struct ipu_node {
	struct ipu_op op;
	struct ipu_plan_options options;
	const int *reads, *writes; /* tensors; one in both is worked on in place */
	int read_count, write_count;
	/* In phase F: not run in evaluation nor prediction; not run in prediction. */
	bool training_only, measure_only;
};

enum ipu_recompute {
	IPU_RECOMPUTE_NONE,
	IPU_RECOMPUTE_THEN_BACKPROPAGATE,
	IPU_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED
};

/* How the run is laid out; all that changes memory and time but no number. */
struct ipu_layout {
	int64_t batch; /* items of a micro-batch */
	int replicas;
	int replica_ipus; /* with those that no stage is on */
	int stages;
	int64_t sum_buffer_bytes; /* gradients that are summed over the replicas together */
	const struct ipu_schedule *schedule; /* of a training pipeline run; NULL: not trained */
	const struct ipu_schedule *forward;  /* of evaluation, or of prediction; NULL: neither */
	bool evaluated, predicted;
	int64_t accumulation; /* micro-batches of a weight update */
	int64_t runs;         /* pipeline runs of an execution, in training */
	enum ipu_recompute recompute;
	bool offload_activations, offload_optimizer_state, offload_accumulators, offload_weights;
	bool shard_optimizer_state, shard_weights; /* over the replicas */
	int64_t io_tiles;                          /* 0: none; taken from those that compute */
	bool place_ops_on_io_tiles;  /* false: streams do not overlap, the tiles are kept back */
	double io_memory_proportion; /* of the I/O tiles' memory */
	int64_t prefetch_depth;      /* batches that the host has ready */
	int64_t buffer_depth;        /* results that the host may be behind */
	bool accumulate_outfeed;     /* results once a pipeline run, not per micro-batch */
};

struct ipu_graph {
	const struct ipu_tensor *tensors;
	int tensor_count;
	const struct ipu_node *nodes;
	int node_count;
	struct ipu_layout layout;
};

/* The operations of phase F that evaluation runs, or prediction. */
bool ipu_node_forward(const struct ipu_node *node, bool predicted);
/* The operations of a stage and phase: B has B and W. */
bool ipu_node_in(const struct ipu_node *node, int stage, char phase);
/* Operations of phase B that no gradient of an activation depends on become W. */
enum status ipu_graph_split(struct ipu_node *nodes, int node_count,
			    const struct ipu_tensor *tensors, int tensor_count, struct err *err);

/* What of the micro-batch goes from @stage to the next one: bytes of the tensors that @stage makes
 * in its forward phase and a later stage reads in any. */
int64_t ipu_graph_sent(const struct ipu_graph *graph, int stage);

#endif /* IPU_GRAPH_H */
