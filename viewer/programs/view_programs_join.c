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

#include "common/mem.h"
#include "common/minmax.h"

/* Numbers by path: how many had it, or who has it. */
struct join_map {
	uint64_t *keys;
	int *values; /* below 0: empty */
	size_t mask;
};

static enum status map_init(struct join_map *map, struct arena *arena, int count, struct err *err)
{
	size_t size = 16;

	while (size < 2 * (size_t)count + 2)
		size *= 2;
	map->mask = size - 1;
	map->keys = arena_alloc(arena, size, sizeof(*map->keys));
	map->values = arena_alloc(arena, size, sizeof(*map->values));
	if (!map->keys || !map->values)
		return err_nomem(err);
	for (size_t i = 0; i < size; i++)
		map->values[i] = -1;
	return ST_OK;
}

/* The value of @key; a new one has -1. */
static int *map_at(struct join_map *map, uint64_t key)
{
	size_t at = (size_t)(key ^ key >> 32) & map->mask;

	while (map->values[at] >= 0 && map->keys[at] != key)
		at = (at + 1) & map->mask;
	map->keys[at] = key;
	return &map->values[at];
}

/* Paths of @tree with the number among equal siblings, in @paths. */
static enum status join_paths(const struct view_tree *tree, uint64_t *paths, struct arena *arena,
			      struct err *err)
{
	struct join_map seen;
	enum status status = map_init(&seen, arena, tree->count, err);

	for (int i = 0; status == ST_OK && i < tree->walk_count; i++) {
		const struct view_program *node = &tree->nodes[tree->walk[i]];
		const uint64_t above = node->parent < 0 ? 7 : paths[node->parent];
		const uint64_t key = (above ^ node->path) * UINT64_C(0x9e3779b97f4a7c15) + 1;
		int *count = map_at(&seen, key);

		(*count)++;
		paths[tree->walk[i]] =
			(key ^ (uint64_t)*count) * UINT64_C(0xd6e8feb86659fd93) ^ key >> 29;
	}
	return status;
}

static enum status join_copy(struct view_tree *tree, const struct view_program *from, int parent,
			     struct err *err)
{
	struct view_program node = *from;

	node.id[VIEW_TARGET_SIDE] = from->id[VIEW_SOURCE_SIDE];
	node.id[VIEW_SOURCE_SIDE] = VIEW_NOWHERE;
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
	return a->id[VIEW_TARGET_SIDE] == VIEW_NOWHERE && strcmp(a->type, b->type) == 0 &&
	       strcmp(a->name, b->name) == 0;
}

/* @partners: of each program of the target its place in the tree. */
static enum status join_nodes(struct view_tree *tree, const struct view_tree *target,
			      struct join_map *map, const uint64_t *paths, int *partners,
			      struct err *err)
{
	for (int i = 0; i < target->walk_count; i++) {
		const int at = target->walk[i];
		const struct view_program *node = &target->nodes[at];
		const int partner = *map_at(map, paths[at]);

		if (partner >= 0 && join_same(&tree->nodes[partner], node)) {
			tree->nodes[partner].id[VIEW_TARGET_SIDE] = node->id[VIEW_SOURCE_SIDE];
			partners[at] = partner;
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
	struct join_map map = {0};
	enum status status;
	uint64_t *paths;
	int *partners;

	(void)arena_init(&arena, 0);
	paths = arena_alloc(&arena, (size_t)most + 1, sizeof(*paths));
	partners = arena_alloc(&arena, (size_t)target->count + 1, sizeof(*partners));
	status = paths && partners ? map_init(&map, &arena, tree->count + target->count, err)
				   : err_nomem(err);
	if (status == ST_OK)
		status = join_paths(tree, paths, &arena, err);
	for (int i = 0; status == ST_OK && i < tree->walk_count; i++)
		*map_at(&map, paths[tree->walk[i]]) = tree->walk[i];
	if (status == ST_OK)
		status = join_paths(target, paths, &arena, err);
	if (status == ST_OK)
		status = join_nodes(tree, target, &map, paths, partners, err);
	arena_fini(&arena);
	return status;
}
