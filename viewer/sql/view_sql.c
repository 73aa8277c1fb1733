/*
 * The screen SQL: a statement, what it finds, and the views there are.
 *
 * Statements run on a handle of their own, guarded (profiler/prof_db.h), when they are asked for
 * and never by themselves; only while the newest is followed are they run again, if they are quick.
 *
 * Threading: as view_screen.h says. Ownership: the state owns its grids, names and history.
 */
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/str.h"
#include "viewer/draw/view_table.h"
#include "viewer/sql/view_sql_internal.h"

#define QUICK_NS (100 * UINT64_C(1000000))

static const struct view_grid_column view_views_columns[] = {
	{.name = "view", .importance = 3},
	{.name = "row", .title = "a row is", .importance = 2},
	{.name = "columns", .importance = 0}, /* they stand under the views */
};

static enum status view_sql_open(void **state, struct view_context *context, struct err *err)
{
	struct view_sql *screen = mem_calloc(1, sizeof(*screen));

	(void)context;
	*state = screen;
	if (!screen)
		return err_nomem(err);
	screen->wrong_at = -1;
	screen->offer = -1;
	return ST_OK;
}

static void view_sql_close(void *state)
{
	struct view_sql *screen = state;

	if (!screen)
		return;
	view_grid_fini(&screen->result);
	view_grid_fini(&screen->views);
	view_sql_names_fini(&screen->names);
	view_sql_history_fini(&screen->history);
	mem_free(screen);
}

/* ---- the parts ------------------------------------------------------------------------------- */

bool view__sql_shows_result(const struct view_sql *screen)
{
	return screen->ran && (screen->areas.side.width > 0 || screen->focus != VIEW_SQL_VIEWS);
}

struct view_rect view__sql_rect(const struct view_sql *screen, const struct view_grid *grid)
{
	const struct view_sql_areas *areas = &screen->areas;

	return grid == &screen->views && areas->side.width > 0 && screen->ran ? areas->side
									      : areas->main;
}

struct view_grid *view__sql_grid(struct view_sql *screen)
{
	return !screen->ran || screen->focus == VIEW_SQL_VIEWS ? &screen->views : &screen->result;
}

/* ---- running --------------------------------------------------------------------------------- */

/* What is wrong in words, with what was probably meant, and where. */
static void view_sql_explain(struct view_sql *screen, const struct view_sql_answer *answer)
{
	char word[128], meant[128];
	const char *nearest =
		view_sql_nearest(&screen->names, screen->edit.text, screen->trouble.text, word);
	const char *found = word[0] ? strstr(screen->edit.text, word) : NULL;

	screen->wrong_at = answer->offset;
	if (screen->wrong_at < 0 && found)
		screen->wrong_at = (int)(found - screen->edit.text);
	if (screen->wrong_at > (int)strlen(screen->edit.text))
		screen->wrong_at = -1;
	if (!nearest)
		return;
	snprintf(meant, sizeof(meant), "%.*s", (int)strcspn(nearest, "("), nearest);
	str_copy(word, sizeof(word), screen->trouble.text);
	err_set(&screen->trouble, screen->trouble.status, "%s; did you mean %s?", word, meant);
}

static enum status view_sql_show(struct view_sql *screen, struct view_context *context,
				 struct view_sql_answer *answer, struct err *err)
{
	const bool again = screen->ran && strcmp(screen->statement, screen->edit.text) == 0;
	enum status status;

	/* Rows of another statement have another order. */
	if (!again)
		view_grid_fini(&screen->result);
	if (!again)
		memset(&screen->result, 0, sizeof(screen->result));
	screen->ran = again;
	screen->result.differ = context->target && context->differ;
	screen->result.null_text = "NULL";
	status = view_grid_set(&screen->result, context, &answer->table, NULL, 0,
			       answer->keys[0] ? answer->keys : NULL, err);
	if (status != ST_OK)
		return status;
	screen->ran = true;
	screen->more = answer->more;
	screen->took_ns = answer->took_ns;
	str_copy(screen->statement, sizeof(screen->statement), screen->edit.text);
	return ST_OK;
}

static void view_sql_ask(struct view_sql *screen, struct view_context *context)
{
	struct view_sql_answer answer;
	enum status status;

	screen->trouble.status = ST_OK;
	screen->wrong_at = -1;
	status = view_sql_run(&answer, context, screen->edit.text, &screen->trouble);
	if (status == ST_OK)
		status = view_sql_show(screen, context, &answer, &screen->trouble);
	else if (status == ST_INTERRUPTED)
		err_set(&screen->trouble, status, "%s: Enter runs it again", view_stopped(context));
	else
		view_sql_explain(screen, &answer);
	screen->trouble.status = status;
	if (screen->focus == VIEW_SQL_VIEWS && screen->ran)
		screen->focus = VIEW_SQL_RESULT;
}

/* Nobody asked for the file: what is wrong with it is said once. */
static void view_sql_tell(struct view_sql *screen, struct view_context *context,
			  const struct err *err)
{
	if (err->status != ST_OK && !screen->told)
		view_message(context, "the history is not kept: ", err->text);
	screen->told = screen->told || err->status != ST_OK;
}

void view__sql_run(struct view_sql *screen, struct view_context *context)
{
	struct view_edit *edit = &screen->edit;
	size_t length = strlen(edit->text);
	struct err err = {0};

	/* Lines that were only for ending it. */
	while (length > 0 && strchr(" \t\n", edit->text[length - 1]))
		edit->text[--length] = '\0';
	if (edit->at > length)
		edit->at = length;
	view_sql_ask(screen, context);
	if (screen->trouble.status == ST_OK && !context->whole)
		err.status = view_sql_history_add(&screen->history, edit->text, &err);
	view_sql_tell(screen, context, &err);
	screen->recall = screen->history.count;
}

/* ---- loading --------------------------------------------------------------------------------- */

static enum status view_sql_columns_text(const struct view_sql_view *view,
					 struct report_table *table, int64_t row, struct err *err)
{
	struct str text = {0};
	enum status status;

	for (int i = 0; i < view->column_count; i++)
		str_addf(&text, "%s%s", i > 0 ? ", " : "", view->columns[i]);
	status =
		text.failed ? err_nomem(err) : view_table_text(table, row, 2, str_peek(&text), err);
	str_free(&text);
	return status;
}

static enum status view_sql_load_views(struct view_sql *screen, struct view_context *context,
				       struct err *err)
{
	static const struct report_column columns[] = {
		{"view", REPORT_TEXT}, {"row", REPORT_TEXT}, {"columns", REPORT_TEXT}};
	struct view_sql_names *names = &screen->names;
	struct report_table table;
	enum status status = view_sql_names_load(names, context->source->db, err);

	if (status == ST_OK)
		status = view_table_new(&table, "views", columns, ARRAY_LEN(columns), names->count,
					err);
	if (status != ST_OK)
		return status;
	for (int i = 0; i < names->count && status == ST_OK; i++) {
		status = view_table_text(&table, i, 0, names->views[i].name, err);
		if (status == ST_OK)
			status = view_table_text(&table, i, 1, names->views[i].usage, err);
		if (status == ST_OK)
			status = view_sql_columns_text(&names->views[i], &table, i, err);
	}
	if (status != ST_OK) {
		report_table_free(&table);
		return status;
	}
	status = view_grid_set(&screen->views, context, &table, view_views_columns,
			       ARRAY_LEN(view_views_columns), "view", err);
	screen->has_views = status == ST_OK;
	return status;
}

static void view_sql_layout(struct view_sql *screen, const struct view_context *context)
{
	const struct view_rect body = {0, 0, context->body.width, context->body.height};
	struct view_rect rect;

	screen->areas = view__sql_areas(body, view__sql_prompt_rows(screen, body.width),
					screen->ran && !context->whole);
	if (screen->areas.side.width == 0 && view__sql_shows_result(screen)) {
		/* No view is under a cursor: the rows have its place. */
		screen->areas.main.height += screen->areas.columns.height;
		screen->areas.columns.height = 0;
	}
	if (screen->ran) {
		rect = view__sql_rect(screen, &screen->result);
		view_grid_layout(&screen->result, rect.width, rect.height);
	}
	if (view__sql_shows_result(screen) && !context->whole &&
	    view_grid_is_cut(&screen->result)) {
		view__sql_areas_row(&screen->areas);
		view_grid_layout(&screen->result, screen->areas.main.width,
				 screen->areas.main.height);
	}
	rect = view__sql_rect(screen, &screen->views);
	view_grid_layout(&screen->views, rect.width, rect.height);
}

/* What is wrong, and where: for who does not see the statement. */
static enum status view_sql_refuse(const struct view_sql *screen, struct err *err)
{
	size_t begin;
	int line, column = 1;

	if (screen->wrong_at < 0)
		return err_set(err, screen->trouble.status, "%s", screen->trouble.text);
	line = view_edit_line(&screen->edit, (size_t)screen->wrong_at, &begin);
	for (size_t i = begin; i < (size_t)screen->wrong_at; i++)
		column += ((unsigned char)screen->edit.text[i] & 0xc0) != 0x80;
	return err_set(err, screen->trouble.status, "%s (line %d, column %d)", screen->trouble.text,
		       line + 1, column);
}

/* The first load: the views, the history, and the statement to begin with. */
static enum status view_sql_begin(struct view_sql *screen, struct view_context *context,
				  struct err *err)
{
	enum status status = view_sql_load_views(screen, context, err);
	struct err own = {0};

	if (status == ST_OK && !context->whole)
		own.status = view_sql_history_read(&screen->history, &own);
	view_sql_tell(screen, context, &own);
	screen->recall = screen->history.count;
	if (status != ST_OK || !context->query)
		return status;
	view_edit_set(&screen->edit, context->query);
	view__sql_run(screen, context);
	if (screen->trouble.status == ST_OK)
		screen->focus = VIEW_SQL_RESULT;
	return context->whole && screen->trouble.status != ST_OK ? view_sql_refuse(screen, err)
								 : ST_OK;
}

static enum status view_sql_load(void *state, struct view_context *context, bool news,
				 struct err *err)
{
	struct view_sql *screen = state;
	const enum status status = screen->has_views ? ST_OK : view_sql_begin(screen, context, err);

	if (status != ST_OK)
		return status;
	if (screen->ran && screen->result.differ != (context->target && context->differ))
		view_sql_ask(screen, context);
	else if (news && screen->ran && context->follow && screen->took_ns < QUICK_NS &&
		 strcmp(screen->statement, screen->edit.text) == 0)
		view_sql_ask(screen, context);
	view_sql_layout(screen, context);
	return ST_OK;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* The view under the cursor into the statement; into an empty one, all of its rows. */
static void view_sql_insert(struct view_sql *screen)
{
	const struct report_cell *cell = view_grid_cell(&screen->views, "view");
	char text[256];

	screen->focus = VIEW_SQL_EDIT;
	screen->offers.count = 0;
	if (!cell || !cell->text)
		return;
	snprintf(text, sizeof(text), screen->edit.text[0] ? "%s " : "SELECT * FROM %s LIMIT 1000;",
		 cell->text);
	view_edit_insert(&screen->edit, text);
}

static enum view_answer view_sql_request(void *state, struct view_context *context,
					 enum view_request request)
{
	struct view_sql *screen = state;
	struct view_grid *grid = view__sql_grid(screen);
	enum view_answer answer = VIEW_LOAD;

	if (request == VIEW_ENTER_REQUEST && screen->focus == VIEW_SQL_VIEWS)
		view_sql_insert(screen);
	else if (request == VIEW_ENTER_REQUEST)
		screen->focus = VIEW_SQL_EDIT;
	else if (request == VIEW_VIEW_REQUEST || request == VIEW_VIEW_BACK_REQUEST)
		screen->focus = screen->focus == VIEW_SQL_VIEWS && screen->ran ? VIEW_SQL_RESULT
									       : VIEW_SQL_VIEWS;
	else if (request == VIEW_RELOAD_REQUEST && screen->ran)
		view_sql_ask(screen, context);
	else
		answer = view_grid_request(grid, view__sql_rect(screen, grid).height, request);
	return answer;
}

static bool view_sql_search(void *state, struct view_context *context, const char *text,
			    bool forward)
{
	struct view_sql *screen = state;
	struct view_grid *grid = view__sql_grid(screen);

	(void)context;
	return view_grid_search(grid, view__sql_rect(screen, grid).height, text, forward);
}

static void view_sql_filter(void *state, const char *text)
{
	view_grid_filter(view__sql_grid(state), text);
}

static int view_sql_height(const void *state, const struct view_context *context)
{
	const struct view_sql *screen = state;
	const struct view_grid *grid = screen->ran ? &screen->result : &screen->views;

	return view__sql_prompt_rows(screen, context->body.width) + 2 + (int)grid->count;
}

static enum status view_sql_table(void *state, struct view_context *context,
				  struct report_table *out, struct err *err)
{
	struct view_sql *screen = state;
	const bool result = view__sql_shows_result(screen);
	char rows[FMT_SIZE];

	if (result && screen->more)
		snprintf(context->message, sizeof(context->message),
			 "the first %s rows; there are more, with LIMIT and OFFSET",
			 fmt_count(rows, screen->result.table.row_count));
	return view_grid_table(result ? &screen->result : &screen->views, out, err);
}

static bool view_is_within(struct view_rect rect, int x, int y)
{
	return x >= rect.x && x < rect.x + rect.width && y >= rect.y && y < rect.y + rect.height;
}

static enum view_answer view_sql_click(void *state, struct view_context *context, int x, int y)
{
	struct view_sql *screen = state;
	struct view_grid *grid;
	struct view_rect rect;

	(void)context;
	if (view_is_within(screen->areas.prompt, x, y)) {
		screen->focus = VIEW_SQL_EDIT;
		return VIEW_LOAD;
	}
	if (view_is_within(screen->areas.side, x, y))
		screen->focus = VIEW_SQL_VIEWS;
	else if (view_is_within(screen->areas.main, x, y) && view__sql_shows_result(screen))
		screen->focus = VIEW_SQL_RESULT;
	else if (!screen->ran)
		screen->focus = VIEW_SQL_VIEWS;
	grid = view__sql_grid(screen);
	rect = view__sql_rect(screen, grid);
	if (!view_is_within(rect, x, y))
		return VIEW_DRAW;
	return view_grid_click(grid, rect.height, x - rect.x, y - rect.y);
}

const struct view_screen_ops view_sql_ops = {
	.name = "sql",
	.title = "SQL",
	.brief = "SQL",
	.key = ':',
	.where = VIEW_ON_SQL,
	.least_ns = 1000 * UINT64_C(1000000),
	.open = view_sql_open,
	.close = view_sql_close,
	.load = view_sql_load,
	.draw = view__sql_draw,
	.request = view_sql_request,
	.search = view_sql_search,
	.filter = view_sql_filter,
	.status = view__sql_status,
	.height = view_sql_height,
	.table = view_sql_table,
	.place = view__sql_place,
	.offers = view__sql_offers,
	.go = view__sql_go,
	.query = view__sql_query,
	.typing = view__sql_typing,
	.type = view__sql_type,
	.typing_keys = view__sql_typing_keys,
	.click = view_sql_click,
};
