/*
 * Reading programs into a tree of arrays, and the cycles that the simulator gives them.
 *
 * Threading: the worker's. Ownership: the tree owns its nodes, and its texts in an arena.
 */
#include "viewer/programs/view_programs_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"

#define TRACE_STEPS_MOST 2000000 /* rows of traces that are looked at */
#define TRACE_RUNS_MOST  100000  /* and of their runs; ranks_sql has it, too */

const char view__tree_sql[] =
	"SELECT program_id, parent_id, position, type, name, operation, repeat_count, call_target\n"
	"FROM programs ORDER BY program_id";

void view__tree_fini(struct view_tree *tree)
{
	mem_free(tree->nodes);
	mem_free(tree->walk);
	arena_fini(&tree->arena);
	memset(tree, 0, sizeof(*tree));
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Types and names repeat, mostly those of the row before. */
static const char *tree_text(struct view_tree *tree, const char *text, const char *before)
{
	if (!text || !text[0])
		return "";
	return before && strcmp(text, before) == 0 ? before : arena_strdup(&tree->arena, text);
}

static enum status tree_row(struct view_tree *tree, const struct prof_query *query, struct err *err)
{
	const struct view_program *last = tree->count > 0 ? &tree->nodes[tree->count - 1] : NULL;
	struct view_program node = {.id = {prof_column_int(query, 0), IPS_NULL},
				    .position = prof_column_int(query, 2),
				    .repeat = prof_column_int(query, 6),
				    .call = prof_column_int(query, 7)};

	node.type = tree_text(tree, prof_column_text(query, 3), last ? last->type : NULL);
	node.operation = tree_text(tree, prof_column_text(query, 5), last ? last->operation : NULL);
	node.name = tree_text(tree, prof_column_text(query, 4), node.operation);
	if (!node.type || !node.name || !node.operation ||
	    mem_grow(&tree->nodes, &tree->capacity, (size_t)tree->count + 1, sizeof(*tree->nodes)))
		return err_nomem(err);
	tree->nodes[tree->count++] = node;
	return ST_OK;
}

/* The parent's number stands in `path` until all programs are there. */
static void tree_parents(struct view_tree *tree)
{
	for (int i = 0; i < tree->count; i++) {
		const int64_t parent = (int64_t)tree->nodes[i].path;

		tree->nodes[i].parent = parent == IPS_NULL
						? VIEW_NO_PROGRAM
						: view__tree_find(tree, VIEW_SOURCE_SIDE, parent);
		if (tree->nodes[i].parent == i)
			tree->nodes[i].parent = VIEW_NO_PROGRAM;
	}
}

enum status view__tree_read(struct view_tree *out, struct view_context *context, struct prof_db *db,
			    struct err *err)
{
	struct prof_query *query;
	enum status status;

	memset(out, 0, sizeof(*out));
	(void)arena_init(&out->arena, 0);
	status = prof_query_open(&query, db, view__tree_sql, err);
	while (prof_query_next(query, &status, err)) {
		if (out->count == VIEW_PROGRAMS_MOST) {
			out->cut = true;
			break;
		}
		status = view_cancelled(context) ? err_set(err, ST_INTERRUPTED, "stopped")
						 : tree_row(out, query, err);
		if (status != ST_OK)
			break;
		out->nodes[out->count - 1].path = (uint64_t)prof_column_int(query, 1);
	}
	prof_query_close(query);
	out->sources = out->count;
	if (status == ST_OK)
		tree_parents(out);
	else
		view__tree_fini(out);
	return status;
}

/* Programs of a side are in the order of their numbers. */
int view__tree_find(const struct view_tree *tree, enum view_side side, int64_t id)
{
	int low;

	if (side == VIEW_TARGET_SIDE) {
		/* Those that both have are anywhere. */
		for (int i = 0; i < tree->count; i++)
			if (tree->nodes[i].id[side] == id)
				return i;
		return VIEW_NO_PROGRAM;
	}
	SORTED_FIRST(low, 0, tree->sources, tree->nodes[low].id[side] < id);
	return low < tree->sources && tree->nodes[low].id[side] == id ? low : VIEW_NO_PROGRAM;
}

/* ---- linking --------------------------------------------------------------------------------- */

struct tree_sorter {
	const struct view_tree *tree;
	enum view_program_order order;
	bool reverse;
};

static int tree_compare(const void *a, const void *b, void *user)
{
	const struct tree_sorter *sorter = user;
	const int i = *(const int *)a, j = *(const int *)b;
	const struct view_program *x = &sorter->tree->nodes[i], *y = &sorter->tree->nodes[j];
	int order = 0;

	if (x->parent != y->parent)
		return SORTED_BY(x, y, parent);
	if (sorter->order == VIEW_PROGRAMS_BY_CYCLES) {
		const int64_t one = max(x->cycles[0], x->cycles[1]);
		const int64_t two = max(y->cycles[0], y->cycles[1]);

		order = SORTED_ORDER(two, one);
	} else if (sorter->order == VIEW_PROGRAMS_BY_NAME) {
		order = strcasecmp(x->name, y->name);
	}
	if (order == 0)
		order = SORTED_BY(x, y, position);
	if (order == 0)
		order = SORTED_ORDER(i, j);
	return sorter->reverse ? -order : order;
}

static uint64_t tree_mix(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return (hash ^ hash >> 31) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Parents before children, siblings in order; depth and path follow. */
static void tree_walk(struct view_tree *tree)
{
	int at = tree->first;

	tree->walk_count = 0;
	while (at != VIEW_NO_PROGRAM) {
		struct view_program *node = &tree->nodes[at];
		const struct view_program *parent =
			node->parent < 0 ? NULL : &tree->nodes[node->parent];

		node->depth = parent ? parent->depth + 1 : 0;
		node->inside = 0;
		node->reached = true;
		node->path = tree_mix(tree_mix(parent ? parent->path : 1, node->type), node->name);
		tree->walk[tree->walk_count++] = at;
		if (node->first != VIEW_NO_PROGRAM) {
			at = node->first;
			continue;
		}
		while (at != VIEW_NO_PROGRAM && tree->nodes[at].next == VIEW_NO_PROGRAM)
			at = tree->nodes[at].parent;
		if (at != VIEW_NO_PROGRAM)
			at = tree->nodes[at].next;
	}
	for (int i = tree->walk_count - 1; i >= 0; i--) {
		const struct view_program *node = &tree->nodes[tree->walk[i]];

		if (node->parent >= 0)
			tree->nodes[node->parent].inside += node->inside + 1;
	}
}

enum status view__tree_link(struct view_tree *tree, enum view_program_order order, bool reverse,
			    struct err *err)
{
	struct tree_sorter sorter = {tree, order, reverse};
	int *walk = mem_resize(tree->walk, (size_t)tree->count + 1, sizeof(*walk));

	if (!walk)
		return err_nomem(err);
	tree->walk = walk;
	tree->first = VIEW_NO_PROGRAM;
	for (int i = 0; i < tree->count; i++) {
		walk[i] = i;
		tree->nodes[i].first = tree->nodes[i].next = VIEW_NO_PROGRAM;
	}
	if (tree->count > 1)
		qsort_r(walk, (size_t)tree->count, sizeof(*walk), tree_compare, &sorter);
	/* From the last one, so that each comes before those after it. */
	for (int i = tree->count - 1; i >= 0; i--) {
		struct view_program *node = &tree->nodes[walk[i]];
		int *first = node->parent < 0 ? &tree->first : &tree->nodes[node->parent].first;

		node->next = *first;
		*first = walk[i];
	}
	tree_walk(tree);
	return ST_OK;
}

/* ---- cycles ---------------------------------------------------------------------------------- */

/* The runs of the first weight update, or where nothing was trained of the first execution, by one
 * replica: a schedule may have its ramps and each round between them as runs of their own. Each
 * trace once, with how often it ran. */
static const char first_sql[] =
	"WITH first AS (SELECT * FROM device_run_rows WHERE row_id = ifnull(\n"
	"\t(SELECT row_id FROM device_run_rows WHERE mode = 'train' AND row_id <= %d ORDER BY "
	"row_id LIMIT "
	"1),\n"
	"\t(SELECT min(row_id) FROM device_run_rows))),\n";
/* The same of each rank of a merged file. */
static const char firsts_sql[] =
	"WITH first AS (SELECT * FROM device_run_rows WHERE row_id IN (\n"
	"\tSELECT ifnull(min(row_id) FILTER (WHERE mode = 'train'), min(row_id))\n"
	"\tFROM device_run_rows WHERE row_id <= %d GROUP BY rank)),\n";
static const char runs_sql[] =
	"runs AS (SELECT r.trace_id, count(*) AS times FROM first f JOIN device_run_rows r\n"
	"\tON r.row_id BETWEEN f.row_id AND f.row_id + %d AND r.rank = f.rank AND r.mode IS "
	"f.mode\n"
	"\tAND r.execution IS f.execution AND r.weight_update IS f.weight_update AND r.replica IS "
	"f.replica\n"
	"\tGROUP BY r.trace_id)\n"
	"SELECT d.program_id, sum(d.cycles * r.times), sum(r.times) FROM runs r\n"
	"JOIN device_step_rows d ON d.trace_id = r.trace_id AND d.row_id <= %d";

static const char ranks_sql[] =
	"SELECT count(DISTINCT rank) FROM device_run_rows WHERE row_id <= 100000";

enum status view__tree_ranks(struct prof_db *db, struct view_program_ranks *out, struct err *err)
{
	enum status status;
	char text[32];
	long long ranks;

	*out = (struct view_program_ranks){1, 1};
	if (!prof_db_meta(db, "ranks", text, sizeof(text)) || !str_to_int(text, &ranks) ||
	    ranks < 2)
		return ST_OK;
	status = prof_db_number(db, ranks_sql, &out->seen, err);
	out->all = ranks;
	return status;
}

void view__tree_cycles_sql(struct str *out, const struct view_program_ranks *ranks, int64_t ipu)
{
	const int64_t each = ranks->seen > 1 ? TRACE_RUNS_MOST / ranks->seen : TRACE_RUNS_MOST;

	str_addf(out, ranks->all > 1 ? firsts_sql : first_sql, TRACE_RUNS_MOST);
	str_addf(out, runs_sql, (int)each, TRACE_STEPS_MOST);
	if (ipu >= 0)
		str_addf(out, "\nWHERE d.ipu = %lld", (long long)ipu);
	str_add(out, "\nGROUP BY d.program_id");
}

/* Where each program of @side stands: by its number. The caller's (free). */
static int *tree_index(const struct view_tree *tree, enum view_side side, int64_t *least,
		       int64_t *most)
{
	int *index = NULL;

	*least = INT64_MAX;
	*most = IPS_NULL;
	for (int i = 0; i < tree->count; i++) {
		const int64_t id = tree->nodes[i].id[side];

		if (id == IPS_NULL)
			continue;
		*least = id < *least ? id : *least;
		*most = id > *most ? id : *most;
	}
	/* Numbers are dense but in files that were made to be odd. */
	if (*least > *most || *least < 0 || *most >= (int64_t)VIEW_PROGRAMS_MOST * 16)
		return NULL;
	index = mem_alloc(((size_t)*most + 1) * sizeof(*index));
	for (int64_t i = 0; index && i <= *most; i++)
		index[i] = VIEW_NO_PROGRAM;
	for (int i = 0; index && i < tree->count; i++)
		if (tree->nodes[i].id[side] != IPS_NULL)
			index[tree->nodes[i].id[side]] = i;
	return index;
}

enum status view__tree_cycles(struct view_tree *tree, struct prof_db *db, enum view_side side,
			      const struct view_program_ranks *ranks, int64_t ipu, struct err *err)
{
	struct str sql = {0};
	struct prof_query *query;
	int64_t least, most;
	int *index;
	enum status status;

	for (int i = 0; i < tree->count; i++)
		tree->nodes[i].own[side] = tree->nodes[i].times[side] = 0;
	index = tree_index(tree, side, &least, &most);
	view__tree_cycles_sql(&sql, ranks, ipu);
	status = sql.failed ? err_nomem(err) : prof_query_open(&query, db, sql.text, err);
	str_free(&sql);
	if (status != ST_OK) {
		mem_free(index);
		return status;
	}
	while (prof_query_next(query, &status, err)) {
		const int64_t id = prof_column_int(query, 0);
		const int at = !index                  ? view__tree_find(tree, side, id)
			       : id >= 0 && id <= most ? index[id]
						       : VIEW_NO_PROGRAM;

		if (at < 0)
			continue;
		tree->nodes[at].own[side] = prof_column_int(query, 1);
		tree->nodes[at].times[side] = prof_column_int(query, 2);
	}
	prof_query_close(query);
	mem_free(index);
	return status;
}

void view__tree_sums(struct view_tree *tree)
{
	for (int i = 0; i < tree->count; i++)
		for (int side = 0; side < VIEW_SIDES; side++)
			tree->nodes[i].cycles[side] = tree->nodes[i].own[side];
	for (int i = tree->walk_count - 1; i >= 0; i--) {
		const struct view_program *node = &tree->nodes[tree->walk[i]];

		for (int side = 0; node->parent >= 0 && side < VIEW_SIDES; side++)
			tree->nodes[node->parent].cycles[side] += node->cycles[side];
	}
}
