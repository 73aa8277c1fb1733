/*
 * More of the program under the cursor: what it is, what it takes, its compute set, and which
 * variables live while it runs; or what is in it, by type.
 *
 * Threading: the worker's. Ownership: texts are the blocks'.
 */
#include "viewer/programs/view_programs_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/str.h"

#define NAME_WIDTH 13
#define TYPES_MOST 24
#define PATH_MOST  64

static const char set_sql[] = "SELECT compute_set, vertices, tiles, max_cycles, mean_cycles FROM "
			      "compute_sets WHERE program_id = :program LIMIT 4";
static const char live_sql[] =
	"SELECT l.ipu, l.program_step, v.variable, v.kind, v.bytes\n"
	"FROM (SELECT ipu, min(program_step) AS program_step FROM liveness WHERE program_id = "
	":program GROUP BY ipu) l\n"
	"JOIN variables v ON v.ipu = l.ipu AND v.always_live = 0 AND\n"
	"\tl.program_step BETWEEN v.first_program_step AND v.last_program_step\n"
	"ORDER BY v.bytes DESC LIMIT 12";

static enum status detail_open(struct prof_query **query, struct prof_db *db, const char *sql,
			       int64_t program, struct err *err)
{
	enum status status = prof_query_open(query, db, sql, err);

	prof_query_int(*query, ":program", program);
	return status;
}

/* ---- what it is ------------------------------------------------------------------------------ */

const char *view__programs_of(const struct view_programs *screen)
{
	const struct view_program_ranks *of = screen->ranks;
	const struct view_program_ranks *ranks = &of[of[1].all > of[0].all];

	if (ranks->all > ranks->seen)
		return screen->updates[0] > 0 ? "the first ranks' update"
					      : "the first ranks' execution";
	if (ranks->all > 1)
		return screen->updates[0] > 0 ? "all ranks' update" : "all ranks' execution";
	return screen->updates[0] > 0 ? "a weight update" : "an execution";
}

static void tell_cycles(struct view_programs *screen, const struct view_program *node, int side)
{
	struct view_blocks *blocks = &screen->details;
	const double times = (double)node->cycles[side] * (double)screen->updates[side];
	const double seconds = times / screen->clock_hz[side];
	char own[FMT_SIZE], all[FMT_SIZE], count[FMT_SIZE], time[FMT_SIZE];

	if (node->cycles[side] == 0) {
		view_blocks_fact(blocks, "cycles", VIEW_DIM, "none in %s",
				 view__programs_of(screen));
		return;
	}
	if (node->own[side] > 0)
		view_blocks_fact(blocks, "itself", VIEW_NORMAL,
				 "%s cycles, run %s times in %s (simulated)",
				 fmt_count(own, node->own[side]),
				 fmt_count(count, node->times[side]), view__programs_of(screen));
	if (node->first != VIEW_NO_PROGRAM)
		view_blocks_fact(blocks, "all of it", VIEW_NORMAL, "%s cycles in %s (simulated)",
				 fmt_count(all, node->cycles[side]), view__programs_of(screen));
	/* Ranks may have done more updates than others. */
	if (screen->ranks[side].all < 2 && screen->updates[side] > 0 && seconds < 9e8)
		view_blocks_fact(blocks, "the run", VIEW_NORMAL,
				 "%s simulated in %s weight updates",
				 fmt_ns(time, (int64_t)(seconds * 1e9)),
				 fmt_count(count, screen->updates[side]));
}

/* Names alike are told apart by what they are in, the outermost first. */
static void tell_inside(struct view_programs *screen, const struct view_program *node)
{
	const struct view_program *nodes = screen->tree.nodes;
	int above[PATH_MOST], count = 0;
	struct str path = {0};

	for (int at = node->parent; at != VIEW_NO_PROGRAM && count < PATH_MOST;
	     at = nodes[at].parent)
		above[count++] = at;
	for (int i = count - 1; i >= 0; i--)
		str_addf(&path, "%s%s", i < count - 1 ? " > " : "",
			 nodes[above[i]].name[0] ? nodes[above[i]].name : nodes[above[i]].type);
	if (count > 0 && !path.failed)
		view_blocks_fact(&screen->details, "inside", VIEW_NORMAL, "%s", str_peek(&path));
	str_free(&path);
}

/* What is the same in both reports. */
static void tell_program(struct view_programs *screen, const struct view_program *node,
			 bool compared)
{
	struct view_blocks *blocks = &screen->details;
	char inside[FMT_SIZE];
	const enum view_side side = node->id[0] == IPS_NULL ? VIEW_TARGET_SIDE : VIEW_SOURCE_SIDE;
	const int target = node->call == IPS_NULL
				   ? VIEW_NO_PROGRAM
				   : view__tree_find(&screen->tree, side, node->call);

	view_blocks_begin(blocks, "Program", NAME_WIDTH);
	if (compared)
		view_blocks_fact(blocks, "is in", VIEW_NORMAL, "%s",
				 node->id[0] == IPS_NULL   ? "the target only"
				 : node->id[1] == IPS_NULL ? "the source only"
							   : "both");
	tell_inside(screen, node);
	if (node->operation[0])
		view_blocks_fact(blocks, "operation", VIEW_NORMAL, "%s", node->operation);
	if (node->repeat != IPS_NULL)
		view_blocks_fact(blocks, "repeats", VIEW_NORMAL, "%s times what is in it",
				 fmt_count(inside, node->repeat));
	if (node->call != IPS_NULL)
		view_blocks_fact(blocks, "calls", VIEW_NORMAL, "#%lld %s", (long long)node->call,
				 target >= 0 ? screen->tree.nodes[target].name : "");
	if (node->inside > 0)
		view_blocks_fact(blocks, "has", VIEW_NORMAL, "%s programs in it",
				 fmt_count(inside, node->inside));
}

static void tell_number(struct view_programs *screen, const struct view_program *node, int side)
{
	view_blocks_fact(&screen->details, "number", VIEW_NORMAL, "#%lld, position %lld, depth %d",
			 (long long)node->id[side], (long long)node->position, node->depth);
}

static enum status tell_sets(struct view_programs *screen, struct prof_db *db, int64_t program,
			     struct err *err)
{
	struct prof_query *query;
	enum status status = detail_open(&query, db, set_sql, program, err);

	if (status != ST_OK)
		return status;
	while (prof_query_next(query, &status, err)) {
		char vertices[FMT_SIZE], tiles[FMT_SIZE], cycles[FMT_SIZE];
		const char *name = prof_column_text(query, 0);

		view_blocks_fact(&screen->details, "compute set", VIEW_NORMAL,
				 "%s vertices on %s tiles, %s cycles at most, balance of these "
				 "tiles %.0f %%: %s",
				 fmt_count(vertices, prof_column_int(query, 1)),
				 fmt_count(tiles, prof_column_int(query, 2)),
				 fmt_count(cycles, prof_column_int(query, 3)),
				 100 * prof_column_real(query, 4) / prof_column_real(query, 3),
				 name ? name : "-");
	}
	prof_query_close(query);
	return status;
}

static enum status tell_live(struct view_programs *screen, struct prof_db *db, int64_t program,
			     const char *title, struct err *err)
{
	struct prof_query *query;
	enum status status = detail_open(&query, db, live_sql, program, err);
	bool any = false;

	while (prof_query_next(query, &status, err)) {
		const int64_t size = prof_column_int(query, 4);
		const char *name = prof_column_text(query, 2), *kind = prof_column_text(query, 3);
		char bytes[FMT_SIZE];

		if (!any)
			view_blocks_begin(&screen->details, title, NAME_WIDTH);
		any = true;
		view_blocks_text(&screen->details, VIEW_NORMAL, "%9s  %s (%s), IPU %lld",
				 fmt_bytes(bytes, size < 0 ? 0 : (uint64_t)size), name ? name : "-",
				 kind ? kind : "-", (long long)prof_column_int(query, 0));
	}
	prof_query_close(query);
	return status;
}

/* ---- what is in it --------------------------------------------------------------------------- */

struct detail_type {
	const char *type;
	int64_t programs, cycles[VIEW_SIDES];
};

static void type_add(struct detail_type *types, int *count, const struct view_program *node)
{
	int i = 0;

	while (i < *count && strcmp(types[i].type, node->type) != 0)
		i++;
	if (i == *count) {
		/* More types than there are: the last one takes the rest. */
		if (*count == TYPES_MOST)
			i--;
		else
			types[(*count)++] = (struct detail_type){.type = node->type};
	}
	types[i].programs++;
	for (int side = 0; side < VIEW_SIDES; side++)
		types[i].cycles[side] += node->own[side];
}

/* Programs in one stand behind it in the walk. */
static int types_of(const struct view_programs *screen, int program, struct detail_type *types)
{
	const struct view_tree *tree = &screen->tree;
	int at = 0, count = 0;

	while (at < tree->walk_count && tree->walk[at] != program)
		at++;
	for (int i = at; i < tree->walk_count && i <= at + tree->nodes[program].inside; i++)
		type_add(types, &count, &tree->nodes[tree->walk[i]]);
	for (int i = 1; i < count; i++)
		for (int j = i; j > 0 && types[j].cycles[0] > types[j - 1].cycles[0]; j--) {
			const struct detail_type swap = types[j];

			types[j] = types[j - 1];
			types[j - 1] = swap;
		}
	return count;
}

static void tell_types(struct view_programs *screen, const struct view_program *node, bool compared)
{
	struct detail_type types[TYPES_MOST];
	const int count = types_of(screen, screen->rows[screen->at], types);
	char cycles[FMT_SIZE], other[FMT_SIZE];

	view_blocks_begin(&screen->details, "By type, with all in it (simulated)", 16);
	for (int i = 0; i < count; i++) {
		const double share = node->cycles[0] > 0
					     ? (double)types[i].cycles[0] / (double)node->cycles[0]
					     : (double)NAN;

		if (compared)
			view_blocks_fact(&screen->details, types[i].type, VIEW_NORMAL,
					 "%s cycles, target %s",
					 fmt_count(cycles, types[i].cycles[0]),
					 fmt_count(other, types[i].cycles[1]));
		else
			view_blocks_bar(&screen->details, types[i].type, VIEW_CURVE, share,
					(double)NAN, "%s cycles in %s",
					fmt_count(cycles, types[i].cycles[0]),
					fmt_count(other, types[i].programs));
	}
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* What each report says of it: compared, under its name. */
static enum status tell_side(struct view_programs *screen, const struct view_program *node,
			     struct prof_db *db, int side, const char *title, const char *live,
			     struct err *err)
{
	enum status status;

	if (title)
		view_blocks_begin(&screen->details, title, NAME_WIDTH);
	tell_cycles(screen, node, side);
	tell_number(screen, node, side);
	status = tell_sets(screen, db, node->id[side], err);
	return status == ST_OK ? tell_live(screen, db, node->id[side], live, err) : status;
}

static enum status tell_sides(struct view_programs *screen, const struct view_program *node,
			      struct view_context *context, struct err *err)
{
	struct prof_db *const dbs[VIEW_SIDES] = {context->source->db,
						 context->target ? context->target->db : NULL};
	static const char *const titles[VIEW_SIDES] = {"Source", "Target"};
	static const char *const live[VIEW_SIDES] = {
		"Source: live while it runs, beside what always is",
		"Target: live while it runs, beside what always is"};
	enum status status = ST_OK;

	if (!context->target)
		return tell_side(screen, node, dbs[0], VIEW_SOURCE_SIDE, NULL,
				 "Live while it runs, beside what always is", err);
	for (int side = 0; side < VIEW_SIDES && status == ST_OK; side++)
		if (node->id[side] != IPS_NULL)
			status = tell_side(screen, node, dbs[side], side, titles[side], live[side],
					   err);
	return status;
}

enum status view__programs_detail(struct view_programs *screen, struct view_context *context,
				  struct err *err)
{
	const struct view_program *node = view__programs_at(screen);

	view_blocks_clear(&screen->details);
	screen->details.two_from = 110;
	screen->details.folds = true;
	if (!node)
		return ST_OK;
	if (screen->by_type) {
		tell_types(screen, node, context->target != NULL);
		return ST_OK;
	}
	tell_program(screen, node, context->target != NULL);
	return tell_sides(screen, node, context, err);
}

static void spell(struct str *out, const char *sql, int64_t program)
{
	const char *at;

	while ((at = strstr(sql, ":program"))) {
		str_add_bytes(out, sql, (size_t)(at - sql));
		str_addf(out, "%lld", (long long)program);
		sql = at + strlen(":program");
	}
	str_addf(out, "%s;\n", sql);
}

void view__programs_detail_sql(const struct view_programs *screen, struct str *out)
{
	const struct view_program *node = view__programs_at(screen);

	if (!node || screen->by_type)
		return;
	spell(out, set_sql, node->id[node->id[0] == IPS_NULL]);
	spell(out, live_sql, node->id[node->id[0] == IPS_NULL]);
}
