/*
 * The tree of programs: read into arrays, joined with another report's tree, and reduced to the
 * ordered rows that are open and pass the filter.
 *
 * Threading: the session's. Ownership: the tree's arena.
 */
#include "viewer/programs/view_programs_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/map.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"
#include "common/str.h"

#define TRACE_STEPS_MOST 2000000 /* most rows of traces that are read */
#define TRACE_RUNS_MOST  100000  /* most rows of runs; also literal in programs_ranks_sql */

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

/* Copy @text, or reuse @before if it is equal: types and names often repeat. */
static const char *programs_copy_text(struct view_tree *tree, const char *text, const char *before)
{
	if (!text || !text[0])
		return "";
	return before && strcmp(text, before) == 0 ? before : arena_strdup(&tree->arena, text);
}

/* Append @node; one of its texts is NULL where memory was short. */
static void programs_append(struct view_tree *tree, const struct view_program *node,
			    struct err *err)
{
	if (!node->type || !node->name || !node->operation ||
	    mem_grow(&tree->nodes, &tree->capacity, (size_t)tree->count + 1, sizeof(*tree->nodes)))
		err_nomem(err);
	else
		tree->nodes[tree->count++] = *node;
}

static void programs_add_row(struct view_tree *tree, const struct prof_query *query,
			     struct err *err)
{
	const struct view_program *last = tree->count > 0 ? &tree->nodes[tree->count - 1] : NULL;
	struct view_program node = {.id = {prof_column_int(query, 0), IPS_NULL},
				    .path = (uint64_t)prof_column_int(query, 1),
				    .position = prof_column_int(query, 2),
				    .repeat = prof_column_int(query, 6),
				    .call = prof_column_int(query, 7)};

	node.type = programs_copy_text(tree, prof_column_text(query, 3), last ? last->type : NULL);
	node.operation =
		programs_copy_text(tree, prof_column_text(query, 5), last ? last->operation : NULL);
	node.name = programs_copy_text(tree, prof_column_text(query, 4), node.operation);
	programs_append(tree, &node, err);
}

/* Find a program by id. The source's programs are sorted by id. */
int view__tree_find(const struct view_tree *tree, enum view_side side, int64_t id)
{
	int low;

	if (side == VIEW_TARGET_SIDE) {
		/* The target's ids are in no order: programs of both reports have the source's. */
		for (int i = 0; i < tree->count; i++)
			if (tree->nodes[i].id[side] == id)
				return i;
		return VIEW_NO_PROGRAM;
	}
	SORTED_FIRST(low, 0, tree->sources, tree->nodes[low].id[side] < id);
	return low < tree->sources && tree->nodes[low].id[side] == id ? low : VIEW_NO_PROGRAM;
}

void view__tree_read(struct view_tree *out, struct view_context *context, struct prof_db *db,
		     struct err *err)
{
	struct prof_query *query = view_query_open(db, view__tree_sql, err);

	memset(out, 0, sizeof(*out));
	while (!out->cut && view_query_next(query, err)) {
		if (out->count == VIEW_PROGRAMS_MOST)
			out->cut = true;
		else if (view_cancelled(context))
			err_set(err, ST_INTERRUPTED, "stopped");
		else
			programs_add_row(out, query, err);
	}
	prof_query_close(query);
	out->sources = out->count;
	if (err_stuck(err))
		view__tree_fini(out);
	/* `path` holds the parent's id until all programs are read. */
	for (int i = 0; i < out->count; i++) {
		const int64_t parent = (int64_t)out->nodes[i].path;
		const int at = parent == IPS_NULL ? VIEW_NO_PROGRAM
						  : view__tree_find(out, VIEW_SOURCE_SIDE, parent);

		out->nodes[i].parent = at == i ? VIEW_NO_PROGRAM : at;
	}
}

/* ---- linking --------------------------------------------------------------------------------- */

struct tree_sorter {
	const struct view_tree *tree;
	enum view_program_order order;
	bool reverse;
};

static int programs_compare_siblings(const void *a, const void *b, void *user)
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

static uint64_t programs_hash_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return (hash ^ hash >> 31) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Compute the preorder walk, and each program's depth, path and number of descendants. */
static void programs_compute_walk(struct view_tree *tree)
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
		node->path = programs_hash_text(
			programs_hash_text(parent ? parent->path : 1, node->type), node->name);
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

void view__tree_link(struct view_tree *tree, enum view_program_order order, bool reverse,
		     struct err *err)
{
	struct tree_sorter sorter = {tree, order, reverse};
	int *walk;

	if (err_stuck(err))
		return;
	walk = mem_resize(tree->walk, (size_t)tree->count + 1, sizeof(*walk));
	if (!walk) {
		err_nomem(err);
		return;
	}
	tree->walk = walk;
	tree->first = VIEW_NO_PROGRAM;
	for (int i = 0; i < tree->count; i++) {
		walk[i] = i;
		tree->nodes[i].first = tree->nodes[i].next = VIEW_NO_PROGRAM;
	}
	if (tree->count > 1)
		qsort_r(walk, (size_t)tree->count, sizeof(*walk), programs_compare_siblings,
			&sorter);
	/* Link from last to first, so that each program is put before its successors. */
	for (int i = tree->count - 1; i >= 0; i--) {
		struct view_program *node = &tree->nodes[walk[i]];
		int *first = node->parent < 0 ? &tree->first : &tree->nodes[node->parent].first;

		node->next = *first;
		*first = walk[i];
	}
	programs_compute_walk(tree);
}

/* ---- cycles ---------------------------------------------------------------------------------- */

/* The runs of the first weight update by one replica; if nothing was trained, of the first
 * execution. A schedule may run its ramps and the rounds between them as separate runs, so each
 * trace is counted once, with the number of its runs. */
static const char programs_first_sql[] =
	"WITH first AS (SELECT * FROM device_run_rows WHERE row_id = ifnull(\n"
	"\t(SELECT row_id FROM device_run_rows WHERE mode = 'train' AND row_id <= %d ORDER BY "
	"row_id LIMIT "
	"1),\n"
	"\t(SELECT min(row_id) FROM device_run_rows))),\n";

/* The same for each rank of a merged file. */
static const char programs_firsts_sql[] =
	"WITH first AS (SELECT * FROM device_run_rows WHERE row_id IN (\n"
	"\tSELECT ifnull(min(row_id) FILTER (WHERE mode = 'train'), min(row_id))\n"
	"\tFROM device_run_rows WHERE row_id <= %d GROUP BY rank)),\n";

static const char programs_runs_sql[] =
	"runs AS (SELECT r.trace_id, count(*) AS times FROM first f JOIN device_run_rows r\n"
	"\tON r.row_id BETWEEN f.row_id AND f.row_id + %d AND r.rank = f.rank AND r.mode IS "
	"f.mode\n"
	"\tAND r.execution IS f.execution AND r.weight_update IS f.weight_update AND r.replica IS "
	"f.replica\n"
	"\tGROUP BY r.trace_id)\n"
	"SELECT d.program_id, sum(d.cycles * r.times), sum(r.times) FROM runs r\n"
	"JOIN device_step_rows d ON d.trace_id = r.trace_id AND d.row_id <= %d";

static const char programs_ranks_sql[] =
	"SELECT count(DISTINCT rank) FROM device_run_rows WHERE row_id <= 100000";

void view__tree_ranks(struct prof_db *db, struct view_program_ranks *out, struct err *err)
{
	char text[32];
	long long ranks;

	*out = (struct view_program_ranks){1, 1};
	if (!prof_db_meta(db, "ranks", text, sizeof(text)) || !str_to_int(text, &ranks) ||
	    ranks < 2)
		return;
	out->seen = view_query_number(db, programs_ranks_sql, err);
	out->all = ranks;
}

void view__tree_cycles_sql(struct str *out, const struct view_program_ranks *ranks, int64_t ipu)
{
	const int64_t each = ranks->seen > 1 ? TRACE_RUNS_MOST / ranks->seen : TRACE_RUNS_MOST;

	str_addf(out, ranks->all > 1 ? programs_firsts_sql : programs_first_sql, TRACE_RUNS_MOST);
	str_addf(out, programs_runs_sql, (int)each, TRACE_STEPS_MOST);
	if (ipu >= 0)
		str_addf(out, "\nWHERE d.ipu = %lld", (long long)ipu);
	str_add(out, "\nGROUP BY d.program_id");
}

/* Make an array from the ids of @side to indexes of programs. The caller frees it. Return NULL if
 * ids are unsuitable or memory is short. */
static int *programs_index_by_id(const struct view_tree *tree, enum view_side side, int64_t *least,
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
	/* Ids are dense, except in files crafted otherwise. */
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

void view__tree_cycles(struct view_tree *tree, struct prof_db *db, enum view_side side,
		       const struct view_program_ranks *ranks, int64_t ipu, struct err *err)
{
	struct str sql = {0};
	struct prof_query *query;
	int64_t least, most;
	int *index;

	for (int i = 0; i < tree->count; i++)
		tree->nodes[i].own[side] = tree->nodes[i].times[side] = 0;
	index = programs_index_by_id(tree, side, &least, &most);
	view__tree_cycles_sql(&sql, ranks, ipu);
	if (sql.failed && !err_stuck(err))
		err_nomem(err);
	query = view_query_open(db, str_peek(&sql), err);
	str_free(&sql);
	while (view_query_next(query, err)) {
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

/* ---- joining two trees ----------------------------------------------------------------------- */

/* Return how often @key occurred before; -1: out of memory. */
static int programs_count_key(struct map *seen, uint64_t key)
{
	size_t times;

	MAP_FIND(times, seen, key, true);
	if (times != MAP_NONE)
		map_remove(seen, key, times);
	times = times == MAP_NONE ? 0 : times + 1;
	return map_add(seen, key, times) == 0 ? (int)times : -1;
}

/* Compute in @paths a hash of each program's path that includes its rank among equal siblings. */
static void programs_join_paths(const struct view_tree *tree, uint64_t *paths, struct err *err)
{
	struct map seen = {0};

	for (int i = 0; !err_stuck(err) && i < tree->walk_count; i++) {
		const struct view_program *node = &tree->nodes[tree->walk[i]];
		const uint64_t above = node->parent < 0 ? 7 : paths[node->parent];
		const uint64_t key = (above ^ node->path) * UINT64_C(0x9e3779b97f4a7c15) + 1;
		const int count = programs_count_key(&seen, key);

		if (count < 0)
			err_nomem(err);
		paths[tree->walk[i]] =
			(key ^ (uint64_t)count) * UINT64_C(0xd6e8feb86659fd93) ^ key >> 29;
	}
	map_fini(&seen);
}

/* @partners: for each program of the target, its index in the tree. */
static void programs_join_nodes(struct view_tree *tree, const struct view_tree *target,
				const struct map *map, const uint64_t *paths, int *partners,
				struct err *err)
{
	for (int i = 0; !err_stuck(err) && i < target->walk_count; i++) {
		const int at = target->walk[i];
		const struct view_program *node = &target->nodes[at];
		struct view_program copy = *node;
		size_t partner;

		MAP_FIND(partner, map, paths[at],
			 tree->nodes[partner].id[VIEW_TARGET_SIDE] == IPS_NULL &&
				 strcmp(tree->nodes[partner].type, node->type) == 0 &&
				 strcmp(tree->nodes[partner].name, node->name) == 0);
		if (partner != MAP_NONE) {
			tree->nodes[partner].id[VIEW_TARGET_SIDE] = node->id[VIEW_SOURCE_SIDE];
			partners[at] = (int)partner;
			continue;
		}
		partners[at] = tree->count;
		copy.id[VIEW_TARGET_SIDE] = node->id[VIEW_SOURCE_SIDE];
		copy.id[VIEW_SOURCE_SIDE] = IPS_NULL;
		copy.parent = node->parent < 0 ? node->parent : partners[node->parent];
		copy.type = arena_strdup(&tree->arena, node->type);
		copy.name = arena_strdup(&tree->arena, node->name);
		copy.operation = arena_strdup(&tree->arena, node->operation);
		programs_append(tree, &copy, err);
	}
}

void view__tree_join(struct view_tree *tree, const struct view_tree *target, struct err *err)
{
	const int most = max(tree->count, target->count);
	struct arena arena = {0};
	struct map map = {0};
	uint64_t *paths;
	int *partners;

	paths = view_alloc(&arena, (size_t)most, sizeof(*paths), err);
	partners = view_alloc(&arena, (size_t)target->count, sizeof(*partners), err);
	programs_join_paths(tree, paths, err);
	for (int i = 0; !err_stuck(err) && i < tree->walk_count; i++)
		if (map_add(&map, paths[tree->walk[i]], (size_t)tree->walk[i]) != 0)
			err_nomem(err);
	programs_join_paths(target, paths, err);
	programs_join_nodes(tree, target, &map, paths, partners, err);
	map_fini(&map);
	arena_fini(&arena);
}

/* ---- rows ------------------------------------------------------------------------------------ */

const struct view_program *view__programs_at(const struct view_programs *screen)
{
	return screen->at < screen->count ? &screen->tree.nodes[screen->rows[screen->at]] : NULL;
}

void view__programs_scroll(struct view_programs *screen)
{
	view_list_scroll(&screen->at, &screen->scroll, screen->count,
			 max(screen->table.height - 1, 1));
}

/* ---- the filter ------------------------------------------------------------------------------ */

/* "Type (name) operation": the text that filters and searches match. */
#define PROGRAM_TEXT 512
static const char *programs_program_text(const struct view_program *program, char out[PROGRAM_TEXT])
{
	snprintf(out, PROGRAM_TEXT, "%s (%s) %s", program->type, program->name, program->operation);
	return out;
}

void view__programs_filter(void *state, const char *text)
{
	struct view_programs *screen = state;
	char filter[sizeof(screen->filter)];
	regex_t expression;

	str_copy(filter, sizeof(filter), text);
	if (!view_filter_compile(&expression, filter, screen->trouble, sizeof(screen->trouble)))
		return;
	regfree(&expression);
	screen->trouble[0] = '\0';
	memcpy(screen->filter, filter, sizeof(filter));
}

/* Mark programs that match the filter, and show them with all their ancestors. */
static void programs_apply_filter(struct view_programs *screen, bool differ)
{
	struct view_tree *tree = &screen->tree;
	const bool no = screen->filter[0] == '!';
	char text[PROGRAM_TEXT];
	regex_t expression;
	bool filtered = screen->filter[no] != '\0';

	if (filtered)
		filtered = view_filter_compile(&expression, screen->filter, screen->trouble,
					       sizeof(screen->trouble));
	for (int i = tree->walk_count - 1; i >= 0; i--) {
		struct view_program *node = &tree->nodes[tree->walk[i]];

		node->matches =
			(!differ || node->id[VIEW_SOURCE_SIDE] == IPS_NULL ||
			 node->id[VIEW_TARGET_SIDE] == IPS_NULL ||
			 node->own[VIEW_SOURCE_SIDE] != node->own[VIEW_TARGET_SIDE]) &&
			(!filtered || (regexec(&expression, programs_program_text(node, text), 0,
					       NULL, 0) == 0) != no);
		node->shown = node->matches;
	}
	/* Ancestors precede their descendants in the walk, so propagate from its end. */
	for (int i = tree->walk_count - 1; i >= 0; i--) {
		const struct view_program *node = &tree->nodes[tree->walk[i]];

		if (node->shown && node->parent >= 0)
			tree->nodes[node->parent].shown = true;
	}
	if (filtered)
		regfree(&expression);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The next program of the tree after @at; its first child if @inside. */
static int programs_next_row(const struct view_tree *tree, int at, bool inside)
{
	const struct view_program *node = &tree->nodes[at];

	if (inside && node->first != VIEW_NO_PROGRAM)
		return node->first;
	while (at != VIEW_NO_PROGRAM && tree->nodes[at].next == VIEW_NO_PROGRAM)
		at = tree->nodes[at].parent;
	return at == VIEW_NO_PROGRAM ? at : tree->nodes[at].next;
}

static int programs_compare_cycles(const void *a, const void *b, void *user)
{
	const struct view_tree *tree = user;
	const struct view_program *x = &tree->nodes[*(const int *)a];
	const struct view_program *y = &tree->nodes[*(const int *)b];
	const int64_t one = max(x->own[0], x->own[1]);
	const int64_t two = max(y->own[0], y->own[1]);

	return one != two ? SORTED_ORDER(two, one) : SORTED_ORDER(*(const int *)a, *(const int *)b);
}

void view__programs_rows(struct view_programs *screen, bool differ)
{
	const int64_t selected = screen->selected;
	struct view_tree *tree = &screen->tree;

	if (!screen->rows)
		return;
	programs_apply_filter(screen, differ);
	screen->count = 0;
	if (screen->flat) {
		for (int i = 0; i < tree->walk_count; i++) {
			const struct view_program *node = &tree->nodes[tree->walk[i]];

			if (node->first == VIEW_NO_PROGRAM && node->matches)
				screen->rows[screen->count++] = tree->walk[i];
		}
		if (screen->count > 1)
			qsort_r(screen->rows, (size_t)screen->count, sizeof(*screen->rows),
				programs_compare_cycles, tree);
		for (int i = 0; screen->reverse && i < screen->count / 2; i++) {
			const int swap = screen->rows[i];

			screen->rows[i] = screen->rows[screen->count - 1 - i];
			screen->rows[screen->count - 1 - i] = swap;
		}
	} else {
		const bool some = differ || screen->filter[screen->filter[0] == '!'];

		for (int at = tree->first; at != VIEW_NO_PROGRAM;) {
			const struct view_program *node = &tree->nodes[at];

			if (node->shown)
				screen->rows[screen->count++] = at;
			/* A filter opens everything that leads to a match. */
			at = programs_next_row(tree, at, node->shown && (node->open || some));
		}
	}
	for (int i = 0; i < screen->count; i++)
		if (screen->rows[i] == selected)
			screen->at = i;
	view__programs_scroll(screen);
}

void view__programs_show(struct view_programs *screen, int program, bool differ)
{
	struct view_tree *tree = &screen->tree;

	for (int at = tree->nodes[program].parent; at != VIEW_NO_PROGRAM;
	     at = tree->nodes[at].parent)
		tree->nodes[at].open = true;
	screen->selected = program;
	view__programs_rows(screen, differ);
}

/* ---- searching ------------------------------------------------------------------------------- */

/* Search the whole tree, open or not, or the rows of the flat list. */
bool view__programs_search(void *state, struct view_context *context, const char *text,
			   bool forward)
{
	struct view_programs *screen = state;
	const int *list = screen->flat ? screen->rows : screen->tree.walk;
	const int count = screen->flat ? screen->count : screen->tree.walk_count;
	struct view_search search = view_search_from(0, forward);
	char program[PROGRAM_TEXT];
	int64_t found;

	for (int i = 0; i < count; i++)
		if (list[i] == screen->selected)
			search.from = i;
	for (int i = 0; i < count; i++) {
		const struct view_program *node = &screen->tree.nodes[list[i]];

		/* Skip programs that the filter hides. */
		if (node->shown && strcasestr(programs_program_text(node, program), text))
			view_search_match(&search, i);
	}
	found = view_search_end(&search, &context->hit, &context->hits);
	if (found >= 0)
		view__programs_show(screen, list[found], context->differ);
	return found >= 0;
}
