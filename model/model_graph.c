/*
 * The order of execution: every entry after its inputs, and of those that could be next the one
 * listed first. A list that is in order already stays as it is.
 */

#include "model/model_reader.h"

struct graph {
	const struct model_scope *scope;
	int *waiting; /* by entry: inputs that have no place yet */
	int *first;   /* by entry, and one more: where its readers begin in `readers` */
	int *readers;
	int *ready; /* a heap, the least entry first */
	int ready_count;
	bool *leads; /* by entry: to the output */
};

static size_t graph_edges(const struct model_scope *scope)
{
	size_t count = 0;

	for (int i = 0; i < scope->count; i++)
		count += (size_t)scope->entries[i].input_count;
	return count;
}

static int graph_alloc(struct graph *graph, struct arena *scratch)
{
	size_t count = (size_t)graph->scope->count;

	graph->waiting = arena_alloc(scratch, count, sizeof(int));
	graph->first = arena_alloc(scratch, count + 2, sizeof(int));
	graph->readers = arena_alloc(scratch, graph_edges(graph->scope) + 1, sizeof(int));
	graph->ready = arena_alloc(scratch, count, sizeof(int));
	graph->leads = arena_alloc(scratch, count, sizeof(bool));
	return graph->waiting && graph->first && graph->readers && graph->ready && graph->leads
		       ? 0
		       : -1;
}

/* Who reads each entry's output, one list after another. */
static void graph_link(struct graph *graph)
{
	const struct model_scope *scope = graph->scope;

	for (int i = 0; i < scope->count; i++) {
		graph->waiting[i] = scope->entries[i].input_count;
		for (int j = 0; j < scope->entries[i].input_count; j++)
			graph->first[scope->entries[i].inputs[j] + 2]++;
	}
	for (int i = 1; i <= scope->count; i++)
		graph->first[i + 1] += graph->first[i];
	/* Filling moves each beginning to its end, which is the next one's beginning. */
	for (int i = 0; i < scope->count; i++)
		for (int j = 0; j < scope->entries[i].input_count; j++)
			graph->readers[graph->first[scope->entries[i].inputs[j] + 1]++] = i;
}

static void graph_push(struct graph *graph, int entry)
{
	int at = graph->ready_count++;

	for (; at > 0 && graph->ready[(at - 1) / 2] > entry; at = (at - 1) / 2)
		graph->ready[at] = graph->ready[(at - 1) / 2];
	graph->ready[at] = entry;
}

static int graph_pop(struct graph *graph)
{
	int least = graph->ready[0], last = graph->ready[--graph->ready_count], at = 0;

	for (;;) {
		int child = 2 * at + 1;

		if (child + 1 < graph->ready_count && graph->ready[child + 1] < graph->ready[child])
			child++;
		if (child >= graph->ready_count || graph->ready[child] >= last)
			break;
		graph->ready[at] = graph->ready[child];
		at = child;
	}
	graph->ready[at] = last;
	return least;
}

/* Returns how many have a place. */
static int graph_order(struct graph *graph, int *order)
{
	int placed = 0;

	for (int i = 0; i < graph->scope->count; i++)
		if (!graph->waiting[i])
			graph_push(graph, i);
	while (graph->ready_count) {
		int entry = graph_pop(graph);

		order[placed++] = entry;
		for (int i = graph->first[entry]; i < graph->first[entry + 1]; i++)
			if (!--graph->waiting[graph->readers[i]])
				graph_push(graph, graph->readers[i]);
	}
	return placed;
}

/* An input of @entry that has no place either. */
static int graph_waits_for(const struct graph *graph, int entry)
{
	const struct model_entry *at = &graph->scope->entries[entry];

	for (int i = 0; i < at->input_count; i++)
		if (graph->waiting[at->inputs[i]])
			return at->inputs[i];
	return entry;
}

/* After as many steps back as there are entries, one stands on the cycle. */
static enum status graph_cycle(const struct graph *graph, struct err *err)
{
	const struct model_scope *scope = graph->scope;
	struct json_at at;
	int entry = 0;

	while (!graph->waiting[entry])
		entry++;
	for (int i = 0; i < scope->count; i++)
		entry = graph_waits_for(graph, entry);
	at = model__entry_at(scope, entry);
	return json_fail(&at, err,
			 "the layers form a cycle: \"%s\" needs \"%s\", which needs what comes "
			 "out of it",
			 scope->entries[entry].name,
			 scope->entries[graph_waits_for(graph, entry)].name);
}

/* Entries are in order, so each comes after all that reads it when one walks back. */
static enum status graph_check_leads(const struct graph *graph, struct err *err)
{
	const struct model_scope *scope = graph->scope;

	graph->leads[scope->output] = true;
	for (int i = scope->count - 1; i >= 0; i--) {
		const struct model_entry *entry = &scope->entries[scope->order[i]];

		for (int j = 0; graph->leads[scope->order[i]] && j < entry->input_count; j++)
			graph->leads[entry->inputs[j]] = true;
	}
	for (int i = 0; i < scope->count; i++) {
		struct json_at at = model__entry_at(scope, i);

		if (!graph->leads[i])
			return json_fail(&at, err,
					 "\"%s\" does not lead to the model's output, \"%s\": "
					 "leave it out",
					 scope->entries[i].name,
					 scope->entries[scope->output].name);
	}
	return ST_OK;
}

enum status model__sort(struct model_reader *reader, struct model_scope *scope)
{
	struct graph graph = {.scope = scope};

	scope->order =
		arena_alloc(&reader->scratch, (size_t)scope->count + 1, sizeof(*scope->order));
	if (!scope->order || graph_alloc(&graph, &reader->scratch))
		return err_nomem(reader->err);
	graph_link(&graph);
	if (graph_order(&graph, scope->order) < scope->count)
		return graph_cycle(&graph, reader->err);
	return graph_check_leads(&graph, reader->err);
}
