/*
 * Two trees of programs become one.
 *
 * Two programs are the same where everything above them is, and they are the n-th of their siblings
 * with that type and name. Paths are hashes of 64 bits.
 *
 * Threading: the worker's. Ownership: scratch lives in an arena; the tree copies texts.
 */
#include "viewer/programs/view_programs_internal.h"

#include <string.h>

#include "common/map.h"
#include "common/mem.h"
#include "common/minmax.h"

/* How many of @key were there before this one; -1: no memory. */
static int join_count(struct map *seen, uint64_t key)
{
	size_t times;

	MAP_FIND(times, seen, key, true);
	if (times != MAP_NONE)
		map_remove(seen, key, times);
	times = times == MAP_NONE ? 0 : times + 1;
	return map_add(seen, key, times) == 0 ? (int)times : -1;
}

/* Paths of @tree with the number among equal siblings, in @paths. */
static enum status join_paths(const struct view_tree *tree, uint64_t *paths, struct err *err)
{
	enum status status = ST_OK;
	struct map seen = {0};

	for (int i = 0; status == ST_OK && i < tree->walk_count; i++) {
		const struct view_program *node = &tree->nodes[tree->walk[i]];
		const uint64_t above = node->parent < 0 ? 7 : paths[node->parent];
		const uint64_t key = (above ^ node->path) * UINT64_C(0x9e3779b97f4a7c15) + 1;
		const int count = join_count(&seen, key);

		if (count < 0)
			status = err_nomem(err);
		paths[tree->walk[i]] =
			(key ^ (uint64_t)count) * UINT64_C(0xd6e8feb86659fd93) ^ key >> 29;
	}
	map_fini(&seen);
	return status;
}

static enum status join_copy(struct view_tree *tree, const struct view_program *from, int parent,
			     struct err *err)
{
	struct view_program node = *from;

	node.id[VIEW_TARGET_SIDE] = from->id[VIEW_SOURCE_SIDE];
	node.id[VIEW_SOURCE_SIDE] = IPS_NULL;
	node.parent = parent;
	node.type = arena_strdup(&tree->arena, from->type);
	node.name = arena_strdup(&tree->arena, from->name);
	node.operation = arena_strdup(&tree->arena, from->operation);
	if (!node.type || !node.name || !node.operation ||
	    mem_grow(&tree->nodes, &tree->capacity, (size_t)tree->count + 1, sizeof(*tree->nodes)))
		return err_nomem(err);
	tree->nodes[tree->count++] = node;
	return ST_OK;
}

static bool join_same(const struct view_program *a, const struct view_program *b)
{
	return a->id[VIEW_TARGET_SIDE] == IPS_NULL && strcmp(a->type, b->type) == 0 &&
	       strcmp(a->name, b->name) == 0;
}

/* @partners: of each program of the target its place in the tree. */
static enum status join_nodes(struct view_tree *tree, const struct view_tree *target,
			      const struct map *map, const uint64_t *paths, int *partners,
			      struct err *err)
{
	for (int i = 0; i < target->walk_count; i++) {
		const int at = target->walk[i];
		const struct view_program *node = &target->nodes[at];
		size_t partner;

		MAP_FIND(partner, map, paths[at], join_same(&tree->nodes[partner], node));
		if (partner != MAP_NONE) {
			tree->nodes[partner].id[VIEW_TARGET_SIDE] = node->id[VIEW_SOURCE_SIDE];
			partners[at] = (int)partner;
			continue;
		}
		partners[at] = tree->count;
		if (join_copy(tree, node, node->parent < 0 ? node->parent : partners[node->parent],
			      err) != ST_OK)
			return ST_NOMEM;
	}
	return ST_OK;
}

enum status view__tree_join(struct view_tree *tree, const struct view_tree *target, struct err *err)
{
	const int most = max(tree->count, target->count);
	struct arena arena = {0};
	struct map map = {0};
	enum status status;
	uint64_t *paths;
	int *partners;

	(void)arena_init(&arena, 0);
	paths = arena_alloc(&arena, (size_t)most + 1, sizeof(*paths));
	partners = arena_alloc(&arena, (size_t)target->count + 1, sizeof(*partners));
	status = paths && partners ? join_paths(tree, paths, err) : err_nomem(err);
	for (int i = 0; status == ST_OK && i < tree->walk_count; i++)
		if (map_add(&map, paths[tree->walk[i]], (size_t)tree->walk[i]) != 0)
			status = err_nomem(err);
	if (status == ST_OK)
		status = join_paths(target, paths, err);
	if (status == ST_OK)
		status = join_nodes(tree, target, &map, paths, partners, err);
	map_fini(&map);
	arena_fini(&arena);
	return status;
}
