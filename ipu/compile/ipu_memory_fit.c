/*
 * Out-of-memory report: the fullest tile, its largest variables, and remedies, each evaluated on
 * the memory model.
 *
 * Threads: none.
 */
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "ipu/compile/ipu_memory_internal.h"

#define OFFENDERS 3

/* Return how full the fullest tile is, relative to its limit: I/O tiles have another one. */
static double worst_share(const struct ipu_memory *memory, int ipu)
{
	const struct ipu_memory_ipu *of = &memory->ipus[ipu];

	return (double)of->worst_bytes /
	       (double)max(ipu_memory_tile_limit(memory, of->worst_tile), INT64_C(1));
}

static int worst_ipu(const struct ipu_memory *memory)
{
	int worst = 0;

	for (int i = 1; i < memory->ipu_count; i++)
		if (worst_share(memory, i) > worst_share(memory, worst))
			worst = i;
	return worst;
}

static bool lives_at(const struct ipu_variable *variable, int ipu, int step)
{
	return variable->ipu == ipu && (variable->always_live || (step >= variable->first_step &&
								  step <= variable->last_step));
}

/* Find the largest variables on a tile at a step, in descending order; return their number. */
static int find_offenders(const struct ipu_memory *memory, int ipu, int64_t tile, int step,
			  const struct ipu_variable *offenders[OFFENDERS])
{
	int count = 0;

	for (int v = 0; v < memory->variable_count; v++) {
		const struct ipu_variable *variable = &memory->variables[v];
		const int64_t bytes = ipu_variable_on_tile(variable, tile);
		int at;

		if (bytes == 0 || !lives_at(variable, ipu, step))
			continue;
		for (at = count; at > 0; at--) {
			if (ipu_variable_on_tile(offenders[at - 1], tile) >= bytes)
				break;
			if (at < OFFENDERS)
				offenders[at] = offenders[at - 1];
		}
		if (at < OFFENDERS)
			offenders[at] = variable;
		count += count < OFFENDERS;
	}
	return count;
}

static const char *step_name(const struct ipu_memory *memory, int ipu, int step)
{
	const struct ipu_memory_ipu *of = &memory->ipus[ipu];
	const char *name = NULL;

	if (step >= 0 && step < of->step_count && of->steps[step].node >= 0)
		name = memory->graph->nodes[of->steps[step].node].op.name;
	return name ? name : "its end";
}

static void describe_overflow(struct str *text, const struct ipu_memory *memory, int ipu)
{
	const struct ipu_memory_ipu *of = &memory->ipus[ipu];
	const int step = of->tile_peak_step[of->worst_tile];
	const struct ipu_variable *offenders[OFFENDERS] = {NULL};
	int count = find_offenders(memory, ipu, of->worst_tile, step, offenders);
	char bytes[FMT_SIZE], limit[FMT_SIZE];

	str_addf(text,
		 "IPU %d is out of memory on %d of %lld tiles: tile %lld needs %s of %s bytes", ipu,
		 of->tiles_over, (long long)memory->tiles, (long long)of->worst_tile,
		 fmt_count(bytes, of->worst_bytes),
		 fmt_count(limit, ipu_memory_tile_limit(memory, of->worst_tile)));
	str_addf(text, " at %s; largest there:", step_name(memory, ipu, step));
	for (int i = 0; i < count; i++)
		str_addf(text, "%s %s %s", i > 0 ? "," : "", offenders[i]->name,
			 fmt_count(bytes, ipu_variable_on_tile(offenders[i], of->worst_tile)));
}

/* ---- remedies -------------------------------------------------------------------------------- */

static void recompute(struct ipu_layout *layout)
{
	if (layout->recompute == IPU_RECOMPUTE_NONE)
		layout->recompute = IPU_RECOMPUTE_THEN_BACKPROPAGATE;
}

static void offload_activations(struct ipu_layout *layout)
{
	layout->offload_activations = true;
}

static void offload_optimizer(struct ipu_layout *layout)
{
	layout->offload_optimizer_state = true;
}

static void offload_accumulators(struct ipu_layout *layout)
{
	layout->offload_accumulators = true;
}

static void shard_optimizer(struct ipu_layout *layout)
{
	layout->shard_optimizer_state = true;
}

static void change_nothing(struct ipu_layout *layout)
{
	(void)layout;
}

static const struct {
	const char *name;
	void (*change)(struct ipu_layout *layout);
	int64_t batch_divisor;
	int least_stages; /* 2: an option of pipelines only */
	bool remote;      /* needs streaming memory */
} remedies[] = {
	{"recomputation", recompute, 1, 2, false},
	{"offloaded activations", offload_activations, 1, 2, true},
	{"offloaded optimizer state", offload_optimizer, 1, 2, true},
	{"offloaded gradient accumulators", offload_accumulators, 1, 2, true},
	{"sharded optimizer state", shard_optimizer, 1, 2, false},
	{"half the batch", change_nothing, 2, 1, false},
	{"a quarter of the batch", change_nothing, 4, 1, false},
};

/* List remedies that save at least 1 % and what the fullest tile would need with them. */
static enum status describe_remedies(struct str *text, const struct ipu_memory *memory,
				     const struct ipu_executable *executable,
				     const struct ipu_target *target, struct err *err)
{
	const double needed = worst_share(memory, worst_ipu(memory));
	bool any = false;

	for (size_t i = 0; i < ARRAY_LEN(remedies); i++) {
		struct ipu_graph graph = *memory->graph;
		struct ipu_memory *changed;
		char bytes[FMT_SIZE];
		enum status status;

		if (remedies[i].batch_divisor > graph.layout.batch ||
		    remedies[i].least_stages > graph.layout.stages ||
		    (remedies[i].remote && target->remote_bytes_second <= 0))
			continue;
		remedies[i].change(&graph.layout);
		status = memory__build(&changed, executable, &graph, target,
				       remedies[i].batch_divisor, err);
		if (status != ST_OK)
			return status;
		if (worst_share(changed, worst_ipu(changed)) < 0.99 * needed) {
			str_addf(text, "%s %s %s%s", any ? "," : "; would need:", remedies[i].name,
				 fmt_count(bytes, changed->ipus[worst_ipu(changed)].worst_bytes),
				 ipu_memory_fits(changed) ? " (fits)" : "");
			any = true;
		}
		ipu_memory_free(changed);
	}
	return ST_OK;
}

/* Report the least number of IPUs. Every IPU needs its own stacks; the rest can be divided. */
static void describe_ipus_needed(struct str *text, const struct ipu_memory *memory, int ipu)
{
	const struct ipu_memory_ipu *of = &memory->ipus[ipu];
	const int64_t limit = ipu_memory_tile_limit(memory, of->worst_tile);
	const int64_t stack = of->category[IPU_MEMORY_STACK][of->worst_tile];

	if (limit > stack)
		str_addf(text, "; what is on IPU %d takes at least %lld IPUs", ipu,
			 (long long)((of->worst_bytes - stack + limit - stack - 1) /
				     (limit - stack)));
}

enum status ipu_memory_check(const struct ipu_memory *memory,
			     const struct ipu_executable *executable,
			     const struct ipu_target *target, struct err *err)
{
	const int ipu = worst_ipu(memory);
	struct str text = {0};
	enum status status;

	if (ipu_memory_fits(memory))
		return ST_OK;
	describe_overflow(&text, memory, ipu);
	status = describe_remedies(&text, memory, executable, target, err);
	describe_ipus_needed(&text, memory, ipu);
	if (status == ST_OK)
		status = text.failed ? err_nomem(err)
				     : err_set(err, ST_FAILED, "%s", str_peek(&text));
	str_free(&text);
	return status;
}
