/*
 * Which programs are shown: what is open, what the filter lets through, what differs.
 *
 * Threading: the worker's. Ownership: `rows` has room for all programs.
 */
#include "viewer/programs/view_programs_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/minmax.h"
#include "common/sorted.h"
#include "common/str.h"

bool view__program_differs(const struct view_program *program)
{
	return program->id[VIEW_SOURCE_SIDE] == IPS_NULL ||
	       program->id[VIEW_TARGET_SIDE] == IPS_NULL ||
	       program->own[VIEW_SOURCE_SIDE] != program->own[VIEW_TARGET_SIDE];
}

const struct view_program *view__programs_at(const struct view_programs *screen)
{
	return screen->at < screen->count ? &screen->tree.nodes[screen->rows[screen->at]] : NULL;
}

void view__programs_scroll(struct view_programs *screen)
{
	const int rows = screen->table.height > 2 ? screen->table.height - 1 : 1;

	if (screen->at >= screen->count)
		screen->at = screen->count - 1;
	if (screen->at < 0)
		screen->at = 0;
	if (screen->at < screen->scroll)
		screen->scroll = screen->at;
	if (screen->at >= screen->scroll + rows)
		screen->scroll = screen->at - rows + 1;
	if (screen->scroll > screen->count - rows)
		screen->scroll = screen->count - rows;
	if (screen->scroll < 0)
		screen->scroll = 0;
}

/* ---- the filter ------------------------------------------------------------------------------ */

/* "Type name operation": what is looked at. */
#define PROGRAM_TEXT 512
static const char *program_text(const struct view_program *program, char out[PROGRAM_TEXT])
{
	snprintf(out, PROGRAM_TEXT, "%s (%s) %s", program->type, program->name, program->operation);
	return out;
}

static bool compile(regex_t *out, const char *filter, char *trouble, size_t size)
{
	const int error =
		regcomp(out, filter + (filter[0] == '!'), REG_EXTENDED | REG_ICASE | REG_NOSUB);

	if (error)
		regerror(error, out, trouble, size);
	return error == 0;
}

void view__programs_filter(struct view_programs *screen, const char *text)
{
	char filter[sizeof(screen->filter)];
	regex_t expression;

	str_copy(filter, sizeof(filter), text);
	if (!compile(&expression, filter, screen->trouble, sizeof(screen->trouble)))
		return;
	regfree(&expression);
	screen->trouble[0] = '\0';
	memcpy(screen->filter, filter, sizeof(filter));
}

/* Programs that match, and everything above them. */
static void match(struct view_programs *screen, bool differ)
{
	struct view_tree *tree = &screen->tree;
	const bool no = screen->filter[0] == '!';
	char text[PROGRAM_TEXT];
	regex_t expression;
	bool filtered = screen->filter[no] != '\0';

	if (filtered)
		filtered = compile(&expression, screen->filter, screen->trouble,
				   sizeof(screen->trouble));
	for (int i = tree->walk_count - 1; i >= 0; i--) {
		struct view_program *node = &tree->nodes[tree->walk[i]];

		node->matches = (!differ || view__program_differs(node)) &&
				(!filtered || (regexec(&expression, program_text(node, text), 0,
						       NULL, 0) == 0) != no);
		node->shown = node->matches;
	}
	/* Children stand behind their parents. */
	for (int i = tree->walk_count - 1; i >= 0; i--) {
		const struct view_program *node = &tree->nodes[tree->walk[i]];

		if (node->shown && node->parent >= 0)
			tree->nodes[node->parent].shown = true;
	}
	if (filtered)
		regfree(&expression);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The program after @at on the screen, inside it where it is open. */
static int next_row(const struct view_tree *tree, int at, bool inside)
{
	const struct view_program *node = &tree->nodes[at];

	if (inside && node->first != VIEW_NO_PROGRAM)
		return node->first;
	while (at != VIEW_NO_PROGRAM && tree->nodes[at].next == VIEW_NO_PROGRAM)
		at = tree->nodes[at].parent;
	return at == VIEW_NO_PROGRAM ? at : tree->nodes[at].next;
}

static void rows_of_tree(struct view_programs *screen, bool some)
{
	const struct view_tree *tree = &screen->tree;

	for (int at = tree->first; at != VIEW_NO_PROGRAM;) {
		const struct view_program *node = &tree->nodes[at];

		if (node->shown)
			screen->rows[screen->count++] = at;
		/* A filter opens all that leads to what it found. */
		at = next_row(tree, at, node->shown && (node->open || some));
	}
}

static int compare_cycles(const void *a, const void *b, void *user)
{
	const struct view_tree *tree = user;
	const struct view_program *x = &tree->nodes[*(const int *)a];
	const struct view_program *y = &tree->nodes[*(const int *)b];
	const int64_t one = max(x->own[0], x->own[1]);
	const int64_t two = max(y->own[0], y->own[1]);

	return one != two ? SORTED_ORDER(two, one) : SORTED_ORDER(*(const int *)a, *(const int *)b);
}

static void rows_that_work(struct view_programs *screen)
{
	struct view_tree *tree = &screen->tree;

	for (int i = 0; i < tree->walk_count; i++) {
		const struct view_program *node = &tree->nodes[tree->walk[i]];

		if (node->first == VIEW_NO_PROGRAM && node->matches)
			screen->rows[screen->count++] = tree->walk[i];
	}
	if (screen->count > 1)
		qsort_r(screen->rows, (size_t)screen->count, sizeof(*screen->rows), compare_cycles,
			tree);
	for (int i = 0; screen->reverse && i < screen->count / 2; i++) {
		const int swap = screen->rows[i];

		screen->rows[i] = screen->rows[screen->count - 1 - i];
		screen->rows[screen->count - 1 - i] = swap;
	}
}

void view__programs_rows(struct view_programs *screen, bool differ)
{
	const int64_t selected = screen->selected;

	if (!screen->rows)
		return;
	match(screen, differ);
	screen->count = 0;
	if (screen->flat)
		rows_that_work(screen);
	else
		rows_of_tree(screen, differ || screen->filter[screen->filter[0] == '!']);
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

/* In all of the tree, open or not; in the flat list among its rows. */
bool view__programs_search(struct view_programs *screen, const char *text, bool forward,
			   bool differ)
{
	const int *list = screen->flat ? screen->rows : screen->tree.walk;
	const int count = screen->flat ? screen->count : screen->tree.walk_count;
	char program[PROGRAM_TEXT];
	int at = 0;

	for (int i = 0; i < count; i++)
		if (list[i] == screen->selected)
			at = i;
	for (int i = 1; i <= count; i++) {
		const int found = list[(at + (forward ? i : count - i)) % count];
		const struct view_program *node = &screen->tree.nodes[found];

		/* What a filter hides is not found. */
		if (!node->shown || !strcasestr(program_text(node, program), text))
			continue;
		view__programs_show(screen, found, differ);
		return true;
	}
	return false;
}
