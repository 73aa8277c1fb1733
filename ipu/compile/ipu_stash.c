/*
 * One pass over the backward operations, then one in reverse over the forward ones. Threads: none.
 */
#include "ipu/compile/ipu_graph.h"

#include "common/mem.h"

struct stashing {
	const struct ipu_graph *graph;
	struct ipu_stash *stash;
	int stage;
	bool *needed; /* by tensor */
	bool *cached; /* by tensor: the result of an operation that cannot be recomputed */
};

static bool is_per_microbatch(enum ipu_tensor_kind kind)
{
	return kind == IPU_TENSOR_INPUT || kind == IPU_TENSOR_LABELS ||
	       kind == IPU_TENSOR_ACTIVATION || kind == IPU_TENSOR_KEPT;
}

static void mark_reads_needed(struct stashing *stashing, const struct ipu_node *node)
{
	for (int i = 0; i < node->read_count; i++)
		if (is_per_microbatch(stashing->graph->tensors[node->reads[i]].kind) ||
		    stashing->graph->tensors[node->reads[i]].kind == IPU_TENSOR_TEMPORARY)
			stashing->needed[node->reads[i]] = true;
}

/* Visit the forward operations in reverse: recompute an operation if its result is needed. Results
 * of random operations are cached, so their inputs need not be recomputed. */
static void mark_replayed(struct stashing *stashing, int n)
{
	const struct ipu_node *node = &stashing->graph->nodes[n];
	const bool drawn = ipu_op_draws(&node->op);
	bool wanted = false;

	for (int i = 0; i < node->write_count; i++) {
		const int t = node->writes[i];

		if (!stashing->needed[t])
			continue;
		wanted = true;
		stashing->cached[t] |= drawn;
		stashing->needed[t] = false;
	}
	if (!wanted || drawn)
		return;
	stashing->stash->replayed[n] = stashing->stash->replays = true;
	mark_reads_needed(stashing, node);
}

enum status ipu_stash_init(struct ipu_stash *stash, const struct ipu_graph *graph, int stage,
			   struct err *err)
{
	const size_t tensors = (size_t)graph->tensor_count + 1;
	struct stashing stashing = {.graph = graph, .stash = stash, .stage = stage};
	bool ready;

	*stash = (struct ipu_stash){0};
	stash->tensors = mem_calloc(tensors, sizeof(*stash->tensors));
	stash->replayed = mem_calloc((size_t)graph->node_count + 1, sizeof(*stash->replayed));
	stashing.needed = mem_calloc(tensors, sizeof(*stashing.needed));
	stashing.cached = mem_calloc(tensors, sizeof(*stashing.cached));
	ready = stash->tensors && stash->replayed && stashing.needed && stashing.cached;
	if (ready) {
		const bool again = graph->layout.recompute != IPU_RECOMPUTE_NONE &&
				   stashing.stage + 1 < graph->layout.stages;

		for (int n = 0; n < graph->node_count; n++)
			if (ipu_node_in(&graph->nodes[n], stashing.stage, IPU_PHASE_B))
				mark_reads_needed(&stashing, &graph->nodes[n]);
		for (int n = graph->node_count - 1; n >= 0 && again; n--)
			if (ipu_node_in(&graph->nodes[n], stashing.stage, IPU_PHASE_F))
				mark_replayed(&stashing, n);
		for (int t = 0; t < graph->tensor_count; t++)
			if ((stashing.needed[t] || stashing.cached[t]) &&
			    is_per_microbatch(graph->tensors[t].kind))
				stash->tensors[stash->count++] = t;
	} else {
		ipu_stash_fini(stash);
	}
	mem_free(stashing.needed);
	mem_free(stashing.cached);
	return ready ? ST_OK : err_nomem(err);
}

void ipu_stash_fini(struct ipu_stash *stash)
{
	mem_free(stash->tensors);
	mem_free(stash->replayed);
	*stash = (struct ipu_stash){0};
}
