/*
 * The screen Programs: what the compiled program does, as a tree, and what each part takes.
 *
 * Threading: see view_screen.h. Ownership: the tree, read once (programs do not change while a run
 * records), and the blocks of the details, until the next load.
 */
#include "viewer/programs/view_programs_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"

#define DETAILS_FROM 17 /* rows of body: the tree alone below */
#define LOWER_LEAST  5

/* ---- loading --------------------------------------------------------------------------------- */

static void lay_out(struct view_programs *screen, const struct view_context *context)
{
	const struct view_rect body = {0, 0, context->body.width, context->body.height};
	const int wanted = screen->details.height;
	struct view_split split = {.upper = body};

	if (!context->whole && body.height >= DETAILS_FROM && wanted > 0)
		split = view_split_rows(body, body.height - 1 - min(wanted, body.height / 2),
					LOWER_LEAST);
	screen->table = split.upper;
	screen->line = split.heading;
	screen->lower = split.lower;
}

static enum status programs_load(void *state, struct view_context *context, bool news,
				 struct err *err)
{
	struct view_programs *screen = state;
	const struct view_program *node;
	enum status status = ST_OK;

	if (news || !screen->loaded)
		status = view__programs_read(screen, context, err);
	if (status != ST_OK)
		return status;
	/* On paper nothing can be opened. */
	for (int i = 0; context->whole && i < screen->tree.count; i++)
		screen->tree.nodes[i].open = true;
	view__programs_rows(screen, context->differ);
	node = view__programs_at(screen);
	screen->selected = node ? node - screen->tree.nodes : 0;
	status = view__programs_detail(screen, context, err);
	if (status == ST_OK)
		status = view_blocks_fit(&screen->details, context->body.width, LOWER_LEAST, err);
	if (status != ST_OK)
		return status;
	lay_out(screen, context);
	view__programs_scroll(screen);
	return view_blocks_fit(&screen->details, context->body.width, screen->lower.height, err);
}

static bool programs_search(void *state, struct view_context *context, const char *text,
			    bool forward)
{
	return view__programs_search(state, text, forward, context->differ);
}

static void programs_filter(void *state, const char *text)
{
	view__programs_filter(state, text);
}

static enum view_answer programs_click(void *state, struct view_context *context, int x, int y)
{
	struct view_programs *screen = state;
	const int row = screen->scroll + y - 1;

	(void)context;
	(void)x;
	if (y < 1 || y >= screen->table.height || row >= screen->count)
		return VIEW_UNHANDLED;
	/* Once more on the same row opens it. */
	if (row == screen->at && !screen->flat) {
		struct view_program *node = view__programs_cursor(screen);

		node->open = !node->open && node->first != VIEW_NO_PROGRAM;
	}
	view__programs_move(screen, row);
	return VIEW_LOAD;
}

/* ---- what it says ---------------------------------------------------------------------------- */

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

static bool programs_place(const void *state, const struct view_context *context,
			   struct view_place *out)
{
	const struct view_programs *screen = state;
	const struct view_program *node = view__programs_at(screen);

	(void)context;
	view_place_clear(out);
	/* What only the target has is nowhere in the source. */
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

static enum status programs_open(void **state, struct view_context *context, struct err *err)
{
	struct view_programs *screen = mem_calloc(1, sizeof(*screen));

	(void)context;
	*state = screen;
	if (!screen)
		return err_nomem(err);
	screen->ipu = screen->last_ipu = -1;
	for (int side = 0; side < VIEW_SIDES; side++)
		screen->clock_hz[side] = (double)NAN;
	return ST_OK;
}

static void programs_close(void *state)
{
	struct view_programs *screen = state;

	if (!screen)
		return;
	view__tree_fini(&screen->tree);
	view_blocks_fini(&screen->details);
	mem_free(screen->rows);
	mem_free(screen);
}

const struct view_screen_ops view_programs_ops = {
	.name = "programs",
	.title = "Programs",
	.brief = "Prog",
	.key = '5',
	.where = VIEW_ON_PROGRAMS,
	.least_ns = 2000 * UINT64_C(1000000),
	.open = programs_open,
	.close = programs_close,
	.load = programs_load,
	.draw = view__programs_draw,
	.request = view__programs_request,
	.search = programs_search,
	.filter = programs_filter,
	.status = programs_status,
	.height = programs_height,
	.table = view__programs_table,
	.place = programs_place,
	.offers = programs_offers,
	.go = programs_go,
	.query = programs_query,
	.click = programs_click,
};
