/*
 * The screen Summary: the numbers of report_summary, as blocks; of a run that is recording, how far
 * it is; and beside another report, what differs.
 *
 * Threading: see view_screen.h. Ownership: the state owns its summary and its blocks.
 */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "viewer/draw/view_table.h"
#include "viewer/summary/view_summary_internal.h"

#define LARGE_BYTES (64 << 20) /* what is not in memory takes a tenth of a second */

static enum status view_summary_open(void **state, struct view_context *context, struct err *err)
{
	struct view_summary *screen = mem_calloc(1, sizeof(*screen));

	(void)context;
	*state = screen;
	if (!screen)
		return err_nomem(err);
	screen->large_bytes = LARGE_BYTES;
	return ST_OK;
}

static void view_summary_close(void *state)
{
	struct view_summary *screen = state;

	if (!screen)
		return;
	report_summary_free(&screen->summary);
	report_table_free(&screen->run);
	view_blocks_fini(&screen->blocks);
	view__compare_fini(screen);
	mem_free(screen);
}

static enum status view_summary_load(void *state, struct view_context *context, bool news,
				     struct err *err)
{
	struct view_summary *screen = state;
	enum status status;

	if (context->target)
		return view__compare_load(screen, context, news, err);
	if (news) {
		struct report_summary fresh;

		status = report_summary_get(&fresh, context->source->db, err);
		if (status != ST_OK)
			return status;
		report_summary_free(&screen->summary);
		screen->summary = fresh;
		status = view__summary_now(screen, context, err);
		if (status == ST_OK)
			status = view__summary_look(screen, context, err);
		if (status != ST_OK)
			return status;
	}
	if (news || screen->width != context->body.width) {
		const int found = screen->started ? screen->blocks.found : -1;

		screen->started = true;
		screen->width = context->body.width;
		view__summary_fill(screen, context->source);
		screen->blocks.found = found;
	}
	return view_blocks_fit(&screen->blocks, context->body.width, context->body.height, err);
}

static void view_summary_draw(const void *state, const struct view_context *context,
			      struct view_pane *pane)
{
	const struct view_summary *screen = state;

	if (context->target)
		view__compare_draw(screen, context, pane);
	else
		view_blocks_draw(&screen->blocks, pane);
}

static bool view_summary_place(const void *state, const struct view_context *context,
			       struct view_place *out)
{
	const struct view_summary *screen = state;
	const int link = view_blocks_linked(&screen->blocks);

	view_place_clear(out);
	if (context->target)
		return view__compare_place(screen, out);
	if (link)
		*out = screen->links[link - 1];
	return link != 0;
}

/* Where Enter goes to; VIEW_SCREENS: it asks. */
static int view_summary_leads(const struct view_summary *screen, const struct view_context *context)
{
	const int link = view_blocks_linked(&screen->blocks);

	if (context->target)
		return (int)view__compare_leads(screen);
	return link ? screen->leads[link - 1] : VIEW_SCREENS;
}

static enum view_answer view_summary_request(void *state, struct view_context *context,
					     enum view_request request)
{
	struct view_summary *screen = state;
	struct view_place place;

	if (request == VIEW_FILTER_REQUEST && !context->target) {
		view_message(context, "this screen has no filter: / searches", NULL);
		return VIEW_DRAW;
	}
	if (request != VIEW_ENTER_REQUEST && request != VIEW_JOIN_REQUEST)
		return context->target ? view_grid_request(
						 &screen->grid,
						 view__compare_height(screen, context->body.height),
						 request)
				       : view_blocks_request(&screen->blocks, context->body.height,
							     request);
	if (view_summary_place(screen, context, &place)) {
		context->leads = view_summary_leads(screen, context);
		return request == VIEW_JOIN_REQUEST || context->leads == VIEW_SCREENS ? VIEW_JOIN
										      : VIEW_LEAD;
	}
	view_message(context,
		     context->target ? "no other screen shows a setting: other rows lead on"
				     : "j and k lead to lines that can be opened",
		     NULL);
	return VIEW_DRAW;
}

static bool view_summary_search(void *state, struct view_context *context, const char *text,
				bool forward)
{
	struct view_summary *screen = state;

	if (context->target)
		return view_grid_search(&screen->grid,
					view__compare_height(screen, context->body.height), text,
					forward);
	return view_blocks_search(&screen->blocks, context->body.height, text, forward);
}

static void view_summary_filter(void *state, const char *text)
{
	view_grid_filter(&((struct view_summary *)state)->grid, text);
}

static void view_summary_status(const void *state, const struct view_context *context, char *out,
				size_t size)
{
	const struct view_summary *screen = state;

	if (context->target)
		view_grid_status(&screen->grid, out, size);
	else
		view_blocks_status(&screen->blocks, context->body.height, out, size);
}

static int view_summary_height(const void *state, const struct view_context *context)
{
	const struct view_summary *screen = state;

	return context->target ? (int)screen->grid.count + 1 + VIEW_COMPARE_HEAD
			       : screen->blocks.height;
}

/* What the screen says, a line per row. */
static enum status view_summary_table(void *state, struct view_context *context,
				      struct report_table *out, struct err *err)
{
	static const struct report_column columns[] = {
		{"section", REPORT_TEXT}, {"name", REPORT_TEXT}, {"value", REPORT_TEXT}};
	const struct view_blocks *blocks = &((struct view_summary *)state)->blocks;
	enum status status;
	int64_t rows = 0, row = 0;

	if (context->target)
		return view_grid_table(&((struct view_summary *)state)->grid, out, err);
	for (int b = 0; b < blocks->count; b++)
		rows += (int64_t)blocks->block[b].count;
	status = view_table_new(out, "summary", columns, ARRAY_LEN(columns), rows, err);
	for (int b = 0; b < blocks->count && status == ST_OK; b++)
		for (size_t i = 0; i < blocks->block[b].count && status == ST_OK; i++, row++) {
			const struct view_line *line = &blocks->block[b].lines[i];
			const char *name = line->name ? line->name : "";

			status = view_table_text(out, row, 0, blocks->block[b].title, err);
			if (status == ST_OK)
				status =
					view_table_text(out, row, 1, name + strspn(name, " "), err);
			if (status == ST_OK)
				status = view_table_text(out, row, 2, line->value, err);
		}
	return status;
}

static void view_summary_query(const void *state, const struct view_context *context,
			       struct str *out)
{
	static const char *const views[] = {"meta",         "execution_sums", "metric_sums",
					    "bubble_sums",  "stage_sums",     "health_sums",
					    "overhead_sums"};

	(void)state;
	(void)context;
	for (size_t i = 0; i < ARRAY_LEN(views); i++)
		str_addf(out, "SELECT * FROM %s;\n", views[i]);
}

const struct view_screen_ops view_summary_ops = {
	.name = "summary",
	.title = "Summary",
	.brief = "Sum",
	.key = '1',
	.where = VIEW_ON_SUMMARY,
	.least_ns = 1000 * UINT64_C(1000000),
	.open = view_summary_open,
	.close = view_summary_close,
	.load = view_summary_load,
	.draw = view_summary_draw,
	.request = view_summary_request,
	.search = view_summary_search,
	.filter = view_summary_filter,
	.status = view_summary_status,
	.height = view_summary_height,
	.table = view_summary_table,
	.place = view_summary_place,
	.query = view_summary_query,
};
