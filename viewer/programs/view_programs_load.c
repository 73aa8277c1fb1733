/*
 * Loading the screen Programs: the tree once, its cycles whenever there is news.
 *
 * Threading: the worker's. Ownership: the tree and the rows are the screen's.
 */
#include "viewer/programs/view_programs_internal.h"

#include <math.h>

#include "common/mem.h"

static enum status load_side(struct view_programs *screen, struct prof_db *db, enum view_side side,
			     struct err *err)
{
	char clock[64];
	double hz;
	enum status status;

	screen->clock_hz[side] = (double)NAN;
	if (prof_db_meta(db, "clock_hz", clock, sizeof(clock)) && str_to_double(clock, &hz) &&
	    hz > 0)
		screen->clock_hz[side] = hz;
	status = prof_db_number(db, "SELECT sum(updates) FROM execution_sums WHERE mode = 'train'",
				&screen->updates[side], err);
	if (screen->updates[side] == IPS_NULL)
		screen->updates[side] = 0;
	return status;
}

static enum status load_facts(struct view_programs *screen, struct view_context *context,
			      struct err *err)
{
	enum status status = prof_db_number(
		context->source->db, "SELECT max(stage) FROM operations", &screen->last_ipu, err);

	if (status == ST_OK)
		status = load_side(screen, context->source->db, VIEW_SOURCE_SIDE, err);
	if (status == ST_OK && context->target)
		status = load_side(screen, context->target->db, VIEW_TARGET_SIDE, err);
	return status;
}

/* Both reports' programs, as one tree. */
static enum status load_tree(struct view_programs *screen, struct view_context *context,
			     struct err *err)
{
	struct view_tree tree, other;
	enum status status = view__tree_read(&tree, context, context->source->db, err);
	int *rows = NULL;

	if (status != ST_OK)
		return status;
	if (context->target) {
		status = view__tree_read(&other, context, context->target->db, err);
		if (status == ST_OK)
			status = view__tree_link(&tree, VIEW_PROGRAMS_AS_RUN, false, err);
		if (status == ST_OK)
			status = view__tree_link(&other, VIEW_PROGRAMS_AS_RUN, false, err);
		if (status == ST_OK)
			status = view__tree_join(&tree, &other, err);
		view__tree_fini(&other);
	}
	if (status == ST_OK) {
		rows = mem_alloc(((size_t)tree.count + 1) * sizeof(*rows));
		status = rows ? view__tree_link(&tree, VIEW_PROGRAMS_AS_RUN, false, err)
			      : err_nomem(err);
	}
	if (status != ST_OK) {
		view__tree_fini(&tree);
		mem_free(rows);
		return status;
	}
	view__tree_fini(&screen->tree);
	mem_free(screen->rows);
	screen->tree = tree;
	screen->rows = rows;
	screen->selected = 0;
	screen->loaded = true;
	return ST_OK;
}

enum status view__programs_cycles(struct view_programs *screen, struct view_context *context,
				  struct err *err)
{
	struct view_tree *tree = &screen->tree;
	struct prof_db *const dbs[VIEW_SIDES] = {context->source->db,
						 context->target ? context->target->db : NULL};
	enum status status = ST_OK;

	for (int side = 0; side < VIEW_SIDES && dbs[side] && status == ST_OK; side++) {
		struct view_program_ranks *ranks = &screen->ranks[side];

		status = view__tree_ranks(dbs[side], ranks, err);
		if (status == ST_OK)
			status = view__tree_cycles(tree, dbs[side], (enum view_side)side, ranks,
						   screen->ipu, err);
	}
	if (status != ST_OK)
		return status;
	view__tree_sums(tree);
	return view__tree_link(tree, screen->order, screen->reverse && !screen->flat, err);
}

/* The programs of a run are written once, before it starts. */
static bool programs_changed(const struct view_programs *screen, struct view_context *context)
{
	int64_t count = 0;

	if (!screen->loaded || screen->tree.count == 0)
		return true;
	if (prof_db_number(context->source->db, "SELECT count(*) FROM programs", &count, NULL) !=
	    ST_OK)
		return false;
	return count != screen->tree.sources && !screen->tree.cut;
}

enum status view__programs_read(struct view_programs *screen, struct view_context *context,
				struct err *err)
{
	enum status status = ST_OK;

	if (programs_changed(screen, context))
		status = load_tree(screen, context, err);
	if (status == ST_OK)
		status = load_facts(screen, context, err);
	return status == ST_OK ? view__programs_cycles(screen, context, err) : status;
}
