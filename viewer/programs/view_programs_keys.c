/*
 * What keys do on the screen Programs: moving, opening and closing, orders and columns.
 *
 * Threading: the worker's. Ownership: none.
 */
#include "viewer/programs/view_programs_internal.h"

#include <stdio.h>

#include "common/mem.h"
#include "common/str.h"

static void say(struct view_context *context, const char *text)
{
	str_copy(context->message, sizeof(context->message), text);
}

void view__programs_move(struct view_programs *screen, int at)
{
	screen->at = at;
	view__programs_scroll(screen);
	if (screen->count > 0)
		screen->selected = screen->rows[screen->at];
}

struct view_program *view__programs_cursor(struct view_programs *screen)
{
	return screen->at < screen->count ? &screen->tree.nodes[screen->rows[screen->at]] : NULL;
}

static bool moves(struct view_programs *screen, enum view_request request)
{
	const int page = screen->table.height > 3 ? screen->table.height - 2 : 1;

	switch (request) {
	case VIEW_UP_REQUEST:
		view__programs_move(screen, screen->at - 1);
		return true;
	case VIEW_DOWN_REQUEST:
		view__programs_move(screen, screen->at + 1);
		return true;
	case VIEW_PAGE_UP_REQUEST:
		view__programs_move(screen, screen->at - page);
		return true;
	case VIEW_PAGE_DOWN_REQUEST:
		view__programs_move(screen, screen->at + page);
		return true;
	case VIEW_HOME_REQUEST:
		view__programs_move(screen, 0);
		return true;
	case VIEW_END_REQUEST:
		view__programs_move(screen, screen->count - 1);
		return true;
	default:
		return false;
	}
}

static void to_parent(struct view_programs *screen, struct view_context *context)
{
	const struct view_program *node = view__programs_cursor(screen);

	if (node && node->parent >= 0)
		view__programs_show(screen, node->parent, context->differ);
	else
		say(context, "nothing is above this program");
}

static void open_all(struct view_programs *screen, bool open)
{
	struct view_program *node = view__programs_cursor(screen);
	struct view_tree *tree = &screen->tree;

	for (int i = 0; i < tree->count; i++)
		tree->nodes[i].open = open;
	/* What the cursor was on is hidden: the root of it is not. */
	while (!open && node && node->parent >= 0)
		node = &tree->nodes[node->parent];
	if (node)
		screen->selected = node - tree->nodes;
}

/* Left closes, then goes up; Right opens, then goes in. */
static void sideways(struct view_programs *screen, struct view_context *context, bool right)
{
	struct view_program *node = view__programs_cursor(screen);

	if (!node)
		return;
	if (node->first != VIEW_NO_PROGRAM && node->open != right)
		node->open = right;
	else if (right && node->first != VIEW_NO_PROGRAM)
		view__programs_move(screen, screen->at + 1);
	else if (!right)
		to_parent(screen, context);
}

/* What is asked of the tree, where a list is shown. */
static bool asks_for_tree(const struct view_programs *screen, struct view_context *context,
			  enum view_request request)
{
	static const enum view_request of_tree[] = {
		VIEW_EXPAND_REQUEST,       VIEW_COLLAPSE_REQUEST, VIEW_EXPAND_ALL_REQUEST,
		VIEW_COLLAPSE_ALL_REQUEST, VIEW_LEFT_REQUEST,     VIEW_RIGHT_REQUEST,
		VIEW_PARENT_REQUEST};

	for (size_t i = 0; screen->flat && i < ARRAY_LEN(of_tree); i++)
		if (request == of_tree[i]) {
			say(context,
			    "what works is a list: v shows the tree, Enter this one in it");
			return true;
		}
	return false;
}

static bool opens(struct view_programs *screen, struct view_context *context,
		  enum view_request request)
{
	struct view_program *node = view__programs_cursor(screen);

	switch (request) {
	case VIEW_ENTER_REQUEST:
		if (node && screen->flat) {
			/* Where it stands in the tree. */
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
	case VIEW_COLLAPSE_ALL_REQUEST:
		open_all(screen, request == VIEW_EXPAND_ALL_REQUEST);
		return true;
	case VIEW_LEFT_REQUEST:
	case VIEW_RIGHT_REQUEST:
		sideways(screen, context, request == VIEW_RIGHT_REQUEST);
		return true;
	case VIEW_PARENT_REQUEST:
		to_parent(screen, context);
		return true;
	default:
		return false;
	}
}

static void change_order(struct view_programs *screen, struct view_context *context, int by)
{
	static const char *const names[] = {
		[VIEW_PROGRAMS_AS_RUN] = "in the order of the program",
		[VIEW_PROGRAMS_BY_CYCLES] = "the longest first",
		[VIEW_PROGRAMS_BY_NAME] = "by name",
	};

	if (screen->flat) {
		say(context, "what works is shown by its cycles: v shows the tree");
		return;
	}
	screen->order = (enum view_program_order)(((int)screen->order + by + VIEW_PROGRAM_ORDERS) %
						  VIEW_PROGRAM_ORDERS);
	screen->reverse = false;
	say(context, names[screen->order]);
}

static void change_ipu(struct view_programs *screen, struct view_context *context)
{
	screen->ipu = screen->ipu < screen->last_ipu ? screen->ipu + 1 : -1;
	if (screen->ipu < 0)
		say(context, "cycles of all IPUs");
	else
		snprintf(context->message, sizeof(context->message), "cycles of IPU %lld alone",
			 (long long)screen->ipu);
}

static void change_columns(struct view_programs *screen, struct view_context *context)
{
	static const char *const names[][2] = {
		[VIEW_PROGRAM_ALL_COLUMNS] = {"columns: times, cycles, share",
					      "columns: Source, Target, Diff"},
		[VIEW_PROGRAM_CYCLES] = {"columns: cycles", "columns: Diff"},
		[VIEW_PROGRAM_NAMES] = {"columns: names alone", "columns: names alone"},
	};

	screen->columns =
		(enum view_program_columns)(((int)screen->columns + 1) % VIEW_PROGRAM_COLUMN_SETS);
	say(context, names[screen->columns][context->target != NULL]);
}

/* After a change of the order or of what is counted. */
static enum view_answer relink(struct view_programs *screen, struct view_context *context)
{
	struct err err = {0};

	if (view__programs_cycles(screen, context, &err) != ST_OK)
		say(context, err.text);
	return VIEW_LOAD;
}

static enum view_answer leave(struct view_programs *screen)
{
	if (!screen->filter[0] && !screen->trouble[0])
		return VIEW_UNHANDLED;
	view__programs_filter(screen, "");
	return VIEW_LOAD;
}

enum view_answer view__programs_request(void *state, struct view_context *context,
					enum view_request request)
{
	struct view_programs *screen = state;

	if (asks_for_tree(screen, context, request))
		return VIEW_DRAW;
	if (moves(screen, request) || opens(screen, context, request))
		return VIEW_LOAD;
	switch (request) {
	case VIEW_VIEW_REQUEST:
	case VIEW_VIEW_BACK_REQUEST:
		screen->flat = !screen->flat;
		screen->reverse = false;
		return relink(screen, context);
	case VIEW_BREAKDOWN_REQUEST:
		screen->by_type = !screen->by_type;
		return VIEW_LOAD;
	case VIEW_SELECT_REQUEST:
		change_ipu(screen, context);
		return relink(screen, context);
	case VIEW_SORT_NEXT_REQUEST:
	case VIEW_SORT_BACK_REQUEST:
		change_order(screen, context, request == VIEW_SORT_NEXT_REQUEST ? 1 : -1);
		return relink(screen, context);
	case VIEW_REVERSE_REQUEST:
		screen->reverse = !screen->reverse;
		return relink(screen, context);
	case VIEW_COLUMNS_REQUEST:
		change_columns(screen, context);
		return VIEW_DRAW;
	case VIEW_BACK_REQUEST:
		return leave(screen);
	default:
		return VIEW_UNHANDLED;
	}
}
