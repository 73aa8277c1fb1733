/*
 * Stage costs from their code, and bytes from what operations read and write. Threads: none.
 */
#include "ipu/compile/ipu_program.h"

#include <string.h>

#include "common/mem.h"

enum cost_mode {
	COST_TRAIN,
	COST_EVALUATE,
	COST_PREDICT,
	COST_MODES
};

/* Return whether @stage runs the operation in @mode, outside the weight update. */
static bool runs_in_mode(const struct ipu_node *node, int stage, enum cost_mode mode)
{
	if (node->op.stage != stage || node->op.phase == IPU_PHASE_U)
		return false;
	return mode == COST_TRAIN ||
	       (node->op.phase == IPU_PHASE_F && ipu_node_forward(node, mode == COST_PREDICT));
}

/* Mark each tensor that operations of the stage read. */
static void mark_reads(const struct ipu_graph *graph, int stage, enum cost_mode mode, bool *marked)
{
	memset(marked, 0, (size_t)graph->tensor_count * sizeof(*marked));
	for (int n = 0; n < graph->node_count; n++) {
		const struct ipu_node *node = &graph->nodes[n];

		if (!runs_in_mode(node, stage, mode))
			continue;
		for (int i = 0; i < node->read_count; i++)
			marked[node->reads[i]] = true;
	}
}

static int64_t infeed_bytes(const struct ipu_graph *graph, const bool *marked)
{
	int64_t bytes = 0;

	for (int t = 0; t < graph->tensor_count; t++)
		if (marked[t] && (graph->tensors[t].kind == IPU_TENSOR_INPUT ||
				  graph->tensors[t].kind == IPU_TENSOR_LABELS))
			bytes += ipu_tensor_bytes(&graph->tensors[t]);
	return bytes;
}

/* Bytes that a stage sends to the host, either in the weight update or in all other phases. */
static int64_t outfeed_bytes(const struct ipu_graph *graph, int stage, enum cost_mode mode,
			     bool update)
{
	int64_t bytes = 0;

	for (int n = 0; n < graph->node_count; n++) {
		const struct ipu_node *node = &graph->nodes[n];

		if (update ? node->op.phase != IPU_PHASE_U || node->op.stage != stage
			   : !runs_in_mode(node, stage, mode))
			continue;
		for (int i = 0; i < node->write_count; i++)
			if (graph->tensors[node->writes[i]].kind == IPU_TENSOR_RESULT)
				bytes += ipu_tensor_bytes(&graph->tensors[node->writes[i]]);
	}
	return bytes;
}

/* @sent is scratch memory, one entry per stage. */
static int set_stage_bytes(const struct ipu_graph *graph, int stage, struct ipu_costs *costs,
			   bool *marked, int64_t *sent, struct ipu_send **sends, size_t *capacity)
{
	struct ipu_stage_cost *cost[COST_MODES] = {&costs->stages[stage], &costs->forward[stage],
						   &costs->predicted[stage]};

	memset(sent, 0, (size_t)graph->layout.stages * sizeof(*sent));
	for (int mode = COST_MODES - 1; mode >= 0; mode--) {
		mark_reads(graph, stage, (enum cost_mode)mode, marked);
		cost[mode]->infeed_bytes = infeed_bytes(graph, marked);
		cost[mode]->outfeed_bytes =
			outfeed_bytes(graph, stage, (enum cost_mode)mode, false);
	}
	costs->stages[stage].update_bytes = outfeed_bytes(graph, stage, COST_TRAIN, true);
	for (int t = 0; t < graph->tensor_count; t++) {
		const struct ipu_tensor *tensor = &graph->tensors[t];

		if (marked[t] && tensor->kind == IPU_TENSOR_ACTIVATION && tensor->stage < stage)
			sent[tensor->stage] += ipu_tensor_bytes(tensor);
	}
	for (int from = 0; from < stage; from++) {
		if (sent[from] <= 0)
			continue;
		if (mem_grow(sends, capacity, (size_t)costs->send_count + 1, sizeof(**sends)) != 0)
			return -1;
		(*sends)[costs->send_count++] = (struct ipu_send){from, stage, sent[from]};
	}
	return 0;
}

enum status ipu_costs_get(struct ipu_costs *out, const struct ipu_executable *executable,
			  struct arena *arena, struct err *err)
{
	const struct ipu_graph *graph = executable->graph;
	const size_t stages = (size_t)graph->layout.stages;
	bool *marked = mem_calloc((size_t)graph->tensor_count + 1, sizeof(*marked));
	int64_t *sent = mem_calloc(stages, sizeof(*sent));
	struct ipu_send *sends = NULL;
	size_t capacity = 0;
	int failed;

	*out = (struct ipu_costs){0};
	out->stages = arena_alloc(arena, stages, sizeof(*out->stages));
	out->forward = arena_alloc(arena, stages, sizeof(*out->forward));
	out->predicted = arena_alloc(arena, stages, sizeof(*out->predicted));
	failed = !marked || !sent || !out->stages || !out->forward || !out->predicted;
	for (int s = 0; s < graph->layout.stages && !failed; s++) {
		for (int f = 0; f < IPU_FUNCTION_PHASES; f++)
			out->stages[s].function[f] = executable->code[s][f].cost;
		for (int predicted = 0; predicted < 2; predicted++) {
			const enum ipu_function_phase f =
				ipu_forward_function(&graph->layout, (bool)predicted);
			struct ipu_stage_cost *cost =
				predicted ? &out->predicted[s] : &out->forward[s];

			cost->function[f] = executable->code[s][f].cost;
		}
	}
	for (int s = 0; s < graph->layout.stages && !failed; s++)
		failed = set_stage_bytes(graph, s, out, marked, sent, &sends, &capacity);
	if (!failed) {
		out->sends = arena_alloc(arena, (size_t)out->send_count + 1, sizeof(*out->sends));
		failed = !out->sends;
	}
	for (int i = 0; i < out->send_count && !failed; i++)
		out->sends[i] = sends[i];
	mem_free(marked);
	mem_free(sent);
	mem_free(sends);
	return failed ? err_nomem(err) : ST_OK;
}
