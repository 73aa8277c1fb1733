/*
 * The Programs screen: the compiled program as a tree, with the cost of each part.
 *
 * Threading: the session's. Ownership: view_programs_internal.h.
 */
#include "viewer/programs/view_programs_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "viewer/draw/view_table.h"

/* ---- loading --------------------------------------------------------------------------------- */

static void programs_load_side(struct view_programs *screen, struct prof_db *db,
			       enum view_side side, struct err *err)
{
	static const char sql[] =
		"SELECT ifnull(sum(updates), 0) FROM execution_sums WHERE mode = 'train'";

	screen->clock_hz[side] = view_source_fact(db, "clock_hz");
	screen->updates[side] = view_query_number(db, sql, err);
}

/* Read both reports' programs into one tree. */
static void programs_load_tree(struct view_programs *screen, struct view_context *context,
			       struct err *err)
{
	struct view_tree tree, other;
	int *rows;

	view__tree_read(&tree, context, context->source->db, err);
	if (context->target) {
		view__tree_read(&other, context, context->target->db, err);
		view__tree_link(&tree, VIEW_PROGRAMS_AS_RUN, false, err);
		view__tree_link(&other, VIEW_PROGRAMS_AS_RUN, false, err);
		view__tree_join(&tree, &other, err);
		view__tree_fini(&other);
	}
	view__tree_link(&tree, VIEW_PROGRAMS_AS_RUN, false, err);
	rows = mem_alloc(((size_t)tree.count + 1) * sizeof(*rows));
	if (!rows && !err_stuck(err))
		err_nomem(err);
	if (err_stuck(err)) {
		view__tree_fini(&tree);
		mem_free(rows);
		return;
	}
	view__tree_fini(&screen->tree);
	mem_free(screen->rows);
	screen->tree = tree;
	screen->rows = rows;
	screen->selected = 0;
	screen->loaded = true;
}

/* Read the cycles of the selected IPU, and order siblings, which may depend on them. */
static void programs_load_cycles(struct view_programs *screen, struct view_context *context,
				 struct err *err)
{
	struct view_tree *tree = &screen->tree;
	struct prof_db *const dbs[VIEW_SIDES] = {context->source->db,
						 context->target ? context->target->db : NULL};

	for (int side = 0; side < VIEW_SIDES && dbs[side] && !err_stuck(err); side++) {
		struct view_program_ranks *ranks = &screen->ranks[side];

		view__tree_ranks(dbs[side], ranks, err);
		view__tree_cycles(tree, dbs[side], (enum view_side)side, ranks, screen->ipu, err);
	}
	if (err_stuck(err))
		return;
	view__tree_sums(tree);
	view__tree_link(tree, screen->order, screen->reverse && !screen->flat, err);
}

/* Return true if the programs must be read. A run writes them once, before it starts. */
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

/* ---- keys ------------------------------------------------------------------------------------ */

static void programs_move_to(struct view_programs *screen, int64_t at)
{
	screen->at = at;
	view__programs_scroll(screen);
	if (screen->count > 0)
		screen->selected = screen->rows[screen->at];
}

/* The cursor's program; NULL: no rows. */
static struct view_program *programs_cursor(struct view_programs *screen)
{
	return screen->at < screen->count ? &screen->tree.nodes[screen->rows[screen->at]] : NULL;
}

static void programs_to_parent(struct view_programs *screen, struct view_context *context)
{
	const struct view_program *node = programs_cursor(screen);

	if (node && node->parent >= 0)
		view__programs_show(screen, node->parent, context->differ);
	else
		view_message(context, "nothing is above this program", NULL);
}

/* Report requests that apply only to the tree while the list is shown. */
static bool programs_reject_in_list(const struct view_programs *screen,
				    struct view_context *context, enum view_request request)
{
	static const enum view_request of_tree[] = {
		VIEW_EXPAND_REQUEST,       VIEW_COLLAPSE_REQUEST, VIEW_EXPAND_ALL_REQUEST,
		VIEW_COLLAPSE_ALL_REQUEST, VIEW_LEFT_REQUEST,     VIEW_RIGHT_REQUEST,
		VIEW_PARENT_REQUEST};

	for (size_t i = 0; screen->flat && i < ARRAY_LEN(of_tree); i++)
		if (request == of_tree[i]) {
			view_message(context,
				     "what works is a list: v shows the tree, Enter this one in it",
				     NULL);
			return true;
		}
	return false;
}

static bool programs_handle_open(struct view_programs *screen, struct view_context *context,
				 enum view_request request)
{
	struct view_program *node = programs_cursor(screen);
	const bool right = request == VIEW_RIGHT_REQUEST;

	switch (request) {
	case VIEW_ENTER_REQUEST:
		if (node && screen->flat) {
			/* Show it in the tree. */
			screen->flat = false;
			view__programs_show(screen, screen->rows[screen->at], context->differ);
		} else if (node) {
			node->open = !node->open && node->first != VIEW_NO_PROGRAM;
		}
		return true;
	case VIEW_EXPAND_REQUEST:
	case VIEW_COLLAPSE_REQUEST:
		if (node)
			node->open = request == VIEW_EXPAND_REQUEST;
		return true;
	case VIEW_EXPAND_ALL_REQUEST:
	case VIEW_COLLAPSE_ALL_REQUEST: {
		const bool open = request == VIEW_EXPAND_ALL_REQUEST;
		struct view_tree *tree = &screen->tree;

		for (int i = 0; i < tree->count; i++)
			tree->nodes[i].open = open;
		/* Closing hides the cursor's program, so move the cursor to its root. */
		while (!open && node && node->parent >= 0)
			node = &tree->nodes[node->parent];
		if (node)
			screen->selected = node - tree->nodes;
		return true;
	}
	case VIEW_LEFT_REQUEST:
	case VIEW_RIGHT_REQUEST:
		/* Left closes, then moves to the parent; Right opens, then moves to the first
		 * child. */
		if (node && node->first != VIEW_NO_PROGRAM && node->open != right)
			node->open = right;
		else if (node && right && node->first != VIEW_NO_PROGRAM)
			programs_move_to(screen, screen->at + 1);
		else if (node && !right)
			programs_to_parent(screen, context);
		return true;
	case VIEW_PARENT_REQUEST:
		programs_to_parent(screen, context);
		return true;
	default:
		return false;
	}
}

static void programs_change_order(struct view_programs *screen, struct view_context *context,
				  enum view_request request)
{
	static const char *const names[] = {
		[VIEW_PROGRAMS_AS_RUN] = "in the order of the program",
		[VIEW_PROGRAMS_BY_CYCLES] = "the longest first",
		[VIEW_PROGRAMS_BY_NAME] = "by name",
	};

	if (screen->flat) {
		view_message(context, "what works is shown by its cycles: v shows the tree", NULL);
		return;
	}
	screen->order = (enum view_program_order)view_next_choice((int)screen->order,
								  VIEW_PROGRAM_ORDERS, request);
	screen->reverse = false;
	view_message(context, names[screen->order], NULL);
}

/* Recompute cycles and order after a change of either. */
static enum view_answer programs_reload_cycles(struct view_programs *screen,
					       struct view_context *context)
{
	struct err err = {0};

	programs_load_cycles(screen, context, &err);
	if (err_stuck(&err))
		view_message(context, err.text, NULL);
	return VIEW_LOAD;
}

static enum view_answer programs_request(void *state, struct view_context *context,
					 enum view_request request)
{
	struct view_programs *screen = state;
	int64_t at = screen->at;

	if (programs_reject_in_list(screen, context, request))
		return VIEW_DRAW;
	if (view_list_move(&at, request, max(screen->table.height - 2, 1), screen->count)) {
		programs_move_to(screen, at);
		return VIEW_LOAD;
	}
	if (programs_handle_open(screen, context, request))
		return VIEW_LOAD;
	switch (request) {
	case VIEW_VIEW_REQUEST:
	case VIEW_VIEW_BACK_REQUEST:
		screen->flat = !screen->flat;
		screen->reverse = false;
		return programs_reload_cycles(screen, context);
	case VIEW_BREAKDOWN_REQUEST:
		screen->by_type = !screen->by_type;
		return VIEW_LOAD;
	case VIEW_SELECT_REQUEST:
		screen->ipu = screen->ipu < screen->last_ipu ? screen->ipu + 1 : -1;
		if (screen->ipu < 0)
			view_message(context, "cycles of all IPUs", NULL);
		else
			view_messagef(context, "cycles of IPU %lld alone", (long long)screen->ipu);
		return programs_reload_cycles(screen, context);
	case VIEW_SORT_NEXT_REQUEST:
	case VIEW_SORT_BACK_REQUEST:
		programs_change_order(screen, context, request);
		return programs_reload_cycles(screen, context);
	case VIEW_REVERSE_REQUEST:
		screen->reverse = !screen->reverse;
		return programs_reload_cycles(screen, context);
	case VIEW_COLUMNS_REQUEST: {
		static const char *const names[][2] = {
			[VIEW_PROGRAM_ALL_COLUMNS] = {"columns: times, cycles, share",
						      "columns: Source, Target, Diff"},
			[VIEW_PROGRAM_CYCLES] = {"columns: cycles", "columns: Diff"},
			[VIEW_PROGRAM_NAMES] = {"columns: names alone", "columns: names alone"},
		};

		screen->columns = (enum view_program_columns)(((int)screen->columns + 1) %
							      VIEW_PROGRAM_COLUMN_SETS);
		view_message(context, names[screen->columns][context->target != NULL], NULL);
		return VIEW_DRAW;
	}
	case VIEW_BACK_REQUEST:
		if (!screen->filter[0] && !screen->trouble[0])
			return VIEW_UNHANDLED;
		view__programs_filter(screen, "");
		return VIEW_LOAD;
	default:
		return VIEW_UNHANDLED;
	}
}

/* ---- CSV and JSON ---------------------------------------------------------------------------- */

static const struct report_column programs_table_columns[] = {
	{"program_id", REPORT_NUMBER},
	{"depth", REPORT_NUMBER},
	{"type", REPORT_TEXT},
	{"name", REPORT_TEXT},
	{"operation", REPORT_TEXT},
	{"repeat_count", REPORT_COUNT},
	{"call_target", REPORT_NUMBER},
	{"times", REPORT_COUNT},
	{"own_cycles", REPORT_CYCLES},
	{"cycles", REPORT_CYCLES},
	{"target_id", REPORT_NUMBER},
	{"own_cycles_target", REPORT_CYCLES},
	{"cycles_target", REPORT_CYCLES},
	{"cycles_diff", REPORT_CYCLES},
};
#define TABLE_ONE 10 /* columns of one report */

static enum status programs_table_row(const struct view_program *node, struct report_table *out,
				      int64_t row, struct err *err)
{
	const struct report_cell cells[] = {
		view_int(node->id[0]),
		view_int(node->depth),
		view_text_cell(node->type),
		view_text_cell(node->name),
		view_text_cell(node->operation[0] ? node->operation : NULL),
		view_int(node->repeat),
		view_int(node->call),
		view_int(node->times[0]),
		view_int(node->own[0]),
		view_int(node->cycles[0]),
		view_int(node->id[1]),
		view_int(node->own[1]),
		view_int(node->cycles[1]),
		view_int(node->cycles[1] - node->cycles[0]),
	};

	return view_table_row(out, row, cells, err);
}

/* Write all programs that pass the filter, open or not. */
static enum status programs_table(void *state, struct view_context *context,
				  struct report_table *out, struct err *err)
{
	const struct view_programs *screen = state;
	const struct view_tree *tree = &screen->tree;
	enum status status;
	int64_t rows = 0;

	for (int i = 0; i < tree->walk_count; i++)
		rows += tree->nodes[tree->walk[i]].shown;
	status = view_table_new(
		out, "programs", programs_table_columns,
		context->target ? (int)ARRAY_LEN(programs_table_columns) : TABLE_ONE, rows, err);
	rows = 0;
	for (int i = 0; status == ST_OK && i < tree->walk_count; i++)
		if (tree->nodes[tree->walk[i]].shown)
			status = programs_table_row(&tree->nodes[tree->walk[i]], out, rows++, err);
	if (status != ST_OK)
		report_table_free(out);
	return status;
}

/* ---- loading the screen ---------------------------------------------------------------------- */

#define DETAILS_FROM 17 /* least rows of the body with details below the tree */
#define LOWER_LEAST  5

static enum status programs_load(void *state, struct view_context *context, bool news,
				 struct err *err)
{
	struct view_programs *screen = state;
	const struct view_rect body = {0, 0, context->body.width, context->body.height};
	struct view_split split = {.upper = body};
	const struct view_program *node;
	struct err own;
	int wanted;

	err = err_start(err, &own);
	if (news || !screen->loaded) {
		if (programs_changed(screen, context))
			programs_load_tree(screen, context, err);
		screen->last_ipu = view_query_number(context->source->db,
						     "SELECT max(stage) FROM operations", err);
		programs_load_side(screen, context->source->db, VIEW_SOURCE_SIDE, err);
		if (context->target)
			programs_load_side(screen, context->target->db, VIEW_TARGET_SIDE, err);
		programs_load_cycles(screen, context, err);
	}
	if (err_stuck(err))
		return err->status;
	/* Printed output cannot be opened, so open everything. */
	for (int i = 0; context->whole && i < screen->tree.count; i++)
		screen->tree.nodes[i].open = true;
	view__programs_rows(screen, context->differ);
	node = view__programs_at(screen);
	screen->selected = node ? node - screen->tree.nodes : 0;
	view__programs_detail(screen, context, err);
	if (err_stuck(err) ||
	    view_blocks_fit(&screen->details, context->body.width, LOWER_LEAST, err) != ST_OK)
		return err->status;
	wanted = min(screen->details.height, body.height / 2);
	if (!context->whole && body.height >= DETAILS_FROM && screen->details.height > 0)
		split = view_split_rows(body, body.height - 1 - wanted, LOWER_LEAST);
	screen->table = split.upper;
	screen->line = split.heading;
	screen->lower = split.lower;
	view__programs_scroll(screen);
	return view_blocks_fit(&screen->details, context->body.width, screen->lower.height, err);
}

static enum view_answer programs_click(void *state, struct view_context *context, int x, int y)
{
	struct view_programs *screen = state;
	const int64_t row = screen->scroll + y - 1;

	(void)context;
	(void)x;
	if (y < 1 || y >= screen->table.height || row >= screen->count)
		return VIEW_UNHANDLED;
	/* A click on the cursor's row opens or closes it. */
	if (row == screen->at && !screen->flat) {
		struct view_program *node = programs_cursor(screen);

		node->open = !node->open && node->first != VIEW_NO_PROGRAM;
	}
	programs_move_to(screen, row);
	return VIEW_LOAD;
}

/* ---- the status line ------------------------------------------------------------------------- */

static void programs_status(const void *state, const struct view_context *context, char *out,
			    size_t size)
{
	const struct view_programs *screen = state;
	char at[FMT_SIZE], count[FMT_SIZE], all[FMT_SIZE], ipu[40] = "";

	(void)context;
	if (screen->trouble[0]) {
		snprintf(out, size, "filter: %s", screen->trouble);
		return;
	}
	if (screen->ipu >= 0)
		snprintf(ipu, sizeof(ipu), ", cycles of IPU %lld", (long long)screen->ipu);
	snprintf(out, size, "row %s of %s, %s programs%s%s%s%s",
		 fmt_count(at, screen->count > 0 ? screen->at + 1 : 0),
		 fmt_count(count, screen->count), fmt_count(all, screen->tree.count),
		 screen->tree.cut ? " (the first ones of more)" : "", ipu,
		 screen->filter[0] ? ", filter " : "", screen->filter);
}

static int programs_height(const void *state, const struct view_context *context)
{
	const struct view_programs *screen = state;

	(void)context;
	return screen->tree.count > 0 ? screen->count + 2 : VIEW_NOTHING_ROWS;
}

/* ---- places ---------------------------------------------------------------------------------- */

static bool programs_current_place(const void *state, struct view_place *out)
{
	const struct view_programs *screen = state;
	const struct view_program *node = view__programs_at(screen);

	view_place_clear(out);
	/* Places refer to the source, so a program of only the target has none. */
	if (!node || node->id[VIEW_SOURCE_SIDE] == IPS_NULL)
		return false;
	out->program_id = node->id[VIEW_SOURCE_SIDE];
	view_place_text(out->operation, node->operation);
	return true;
}

static bool programs_offers(const struct view_place *place, char *out, size_t size)
{
	if (place->program_id != IPS_NULL)
		snprintf(out, size, "the program #%lld", (long long)place->program_id);
	else if (place->operation[0])
		snprintf(out, size, "programs of %s", place->operation);
	return place->program_id != IPS_NULL || place->operation[0];
}

static enum status programs_go(void *state, struct view_context *context,
			       const struct view_place *place, struct err *err)
{
	struct view_programs *screen = state;
	const struct view_tree *tree = &screen->tree;
	int found = VIEW_NO_PROGRAM;

	if (place->program_id != IPS_NULL)
		found = view__tree_find(tree, VIEW_SOURCE_SIDE, place->program_id);
	for (int i = 0; place->program_id == IPS_NULL && found < 0 && i < tree->walk_count; i++)
		if (strcmp(tree->nodes[tree->walk[i]].operation, place->operation) == 0)
			found = tree->walk[i];
	if (found < 0 || !tree->nodes[found].reached)
		return err_set(err, ST_NOTFOUND, "that program has not been recorded");
	screen->flat = false;
	view__programs_filter(screen, "");
	view__programs_show(screen, found, context->differ);
	return ST_OK;
}

static void programs_query(const void *state, const struct view_context *context, struct str *out)
{
	const struct view_programs *screen = state;

	(void)context;
	str_addf(out, "%s;\n", view__tree_sql);
	view__tree_cycles_sql(out, &screen->ranks[VIEW_SOURCE_SIDE], screen->ipu);
	str_add(out, ";\n");
	view__programs_detail_sql(screen, out);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void programs_init(void *state)
{
	struct view_programs *screen = state;

	screen->ipu = screen->last_ipu = -1;
	for (int side = 0; side < VIEW_SIDES; side++)
		screen->clock_hz[side] = (double)NAN;
}

static void programs_fini(void *state)
{
	struct view_programs *screen = state;

	view__tree_fini(&screen->tree);
	view_blocks_fini(&screen->details);
	mem_free(screen->rows);
}

static const char *programs_word(const void *state, enum view_request request)
{
	const struct view_programs *screen = state;
	const struct view_program *node = view__programs_at(screen);
	const bool opens = node && !screen->flat && node->first != VIEW_NO_PROGRAM;

	if (!node)
		return screen->filter[0] && request == VIEW_FILTER_REQUEST ? NULL : "";
	switch (request) {
	case VIEW_ENTER_REQUEST:
		return screen->flat ? "in the tree" : !opens ? "" : node->open ? "close" : "open";
	case VIEW_EXPAND_REQUEST:
		return opens && !node->open ? NULL : "";
	case VIEW_SELECT_REQUEST:
		return screen->last_ipu > 0 ? NULL : "";
	case VIEW_SORT_NEXT_REQUEST:
		return screen->flat ? "" : NULL;
	default:
		return NULL;
	}
}

const struct view_screen_ops view_programs_ops = {
	.name = "programs",
	.title = "Programs",
	.brief = "Prog",
	.key = '5',
	.where = VIEW_ON_PROGRAMS,
	.least_ns = 2000 * UINT64_C(1000000),
	.size = sizeof(struct view_programs),
	.init = programs_init,
	.fini = programs_fini,
	.load = programs_load,
	.draw = view__programs_draw,
	.request = programs_request,
	.search = view__programs_search,
	.filter = view__programs_filter,
	.word = programs_word,
	.status = programs_status,
	.height = programs_height,
	.table = programs_table,
	.place = programs_current_place,
	.offers = programs_offers,
	.go = programs_go,
	.query = programs_query,
	.click = programs_click,
};
