/*
 * The SQL screen: a statement, its result, and the list of views.
 *
 * Threading: the session's. Ownership: view_sql_internal.h.
 */
#include "viewer/sql/view_sql_internal.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/str.h"
#include "profiler/prof_guard.h"
#include "viewer/draw/view_table.h"

/* ---- typing ---------------------------------------------------------------------------------- */

const struct view_bar_key view__sql_typing_keys[] = {
	{VIEW_KEY_ENTER, "run"},      {VIEW_KEY_TAB, "complete"},   {VIEW_KEY_ESCAPE, "leave"},
	{VIEW_KEY_UP, "before"},      {VIEW_KEY_DOWN, "after"},     {VIEW_CTRL('R'), "search"},
	{VIEW_CTRL('U'), "cut line"}, {VIEW_CTRL('W'), "cut word"}, {0, NULL}};

static void sql_focus(void *state)
{
	((struct view_sql *)state)->focus = VIEW_SQL_EDIT;
}

static bool sql_typing(const void *state)
{
	return ((const struct view_sql *)state)->focus == VIEW_SQL_EDIT;
}

/* ---- completion ------------------------------------------------------------------------------ */

static void sql_list_offers(const struct view_sql *screen, char *out, size_t size)
{
	const struct view_sql_offers *offers = &screen->offers;

	out[0] = '\0';
	for (int i = 0; i < offers->count && strlen(out) + 4 < size; i++) {
		const bool taken = i == screen->offer;

		view_append(out, size, "%s%s%s%s", i > 0 ? " " : "", taken ? "[" : "",
			    offers->items[i], taken ? "]" : "");
	}
}

static void sql_insert_offer(struct view_sql *screen, const char *text, size_t length)
{
	char word[128];

	snprintf(word, sizeof(word), "%.*s", (int)length, text);
	if (view_edit_replace(&screen->edit, screen->offers.length, word))
		screen->offers.length = strlen(word);
}

static enum view_answer sql_complete(struct view_sql *screen, struct view_context *context)
{
	struct view_sql_offers *offers = &screen->offers;
	size_t common;

	if (offers->count > 1) {
		const char *item;

		screen->offer = (screen->offer + 1) % screen->offers.count;
		item = screen->offers.items[screen->offer];
		sql_insert_offer(screen, item, strlen(item));
		sql_list_offers(screen, context->message, sizeof(context->message));
		return VIEW_LOAD;
	}
	view_sql_complete(&screen->names, screen->edit.text, screen->edit.at, offers);
	if (offers->count == 0) {
		view_message(context,
			     offers->length ? "nothing known begins so: v shows the views"
					    : "Tab completes the word before the cursor",
			     NULL);
		return VIEW_DRAW;
	}
	/* The common prefix of all completions, ignoring case. */
	common = strlen(offers->items[0]);
	for (int i = 1; i < offers->count; i++)
		for (size_t c = 0; c < common; c++)
			if (strncasecmp(offers->items[0], offers->items[i], c + 1) != 0)
				common = c;
	if (offers->count == 1 || common > offers->length)
		sql_insert_offer(screen, offers->items[0], common);
	if (offers->count == 1)
		offers->count = 0;
	screen->offer = -1;
	sql_list_offers(screen, context->message, sizeof(context->message));
	return VIEW_LOAD;
}

/* ---- history --------------------------------------------------------------------------------- */

static enum view_answer sql_recall(struct view_sql *screen, struct view_context *context, int by)
{
	const int to = screen->recall + by;

	if (to < 0 || to > screen->history.count) {
		view_message(context,
			     by < 0 ? "there is no statement before this"
				    : "there is no statement after this",
			     NULL);
		return VIEW_DRAW;
	}
	if (screen->recall == screen->history.count)
		str_copy(screen->draft, sizeof(screen->draft), screen->edit.text);
	screen->recall = to;
	view_edit_set(&screen->edit,
		      to == screen->history.count ? screen->draft : screen->history.items[to]);
	return VIEW_LOAD;
}

/* Recall the next older statement that contains the text at the start of the search. */
static enum view_answer sql_seek(struct view_sql *screen, struct view_context *context)
{
	int at = screen->recall;

	if (!screen->seeking)
		str_copy(screen->needle, sizeof(screen->needle), screen->edit.text);
	screen->seeking = true;
	while (--at >= 0)
		if (strcasestr(screen->history.items[at], screen->needle))
			break;
	if (at < 0) {
		view_messagef(context, "no statement before has %.80s",
			      screen->needle[0] ? screen->needle : "been run");
		return VIEW_DRAW;
	}
	view_messagef(context, "with %.80s; Ctrl-R: further back",
		      screen->needle[0] ? screen->needle : "anything: type what to look for first");
	return sql_recall(screen, context, at - screen->recall);
}

/* ---- Enter ----------------------------------------------------------------------------------- */

/* Locate the error and add the most similar known name to its text. */
static void sql_explain(struct view_sql *screen, const char *sql,
			const struct view_sql_answer *answer)
{
	char word[128], meant[128];
	const char *nearest = view_sql_nearest(&screen->names, sql, screen->trouble.text, word);
	const char *found = word[0] ? strstr(sql, word) : NULL;

	screen->wrong_at = answer->offset;
	if (screen->wrong_at < 0 && found)
		screen->wrong_at = (int)(found - sql);
	if (screen->wrong_at > (int)strlen(sql) || strcmp(sql, screen->edit.text) != 0)
		screen->wrong_at = -1;
	if (!nearest)
		return;
	snprintf(meant, sizeof(meant), "%.*s", (int)strcspn(nearest, "("), nearest);
	str_copy(word, sizeof(word), screen->trouble.text);
	err_set(&screen->trouble, screen->trouble.status, "%s; did you mean %s?", word, meant);
}

static enum status sql_set_result(struct view_sql *screen, struct view_context *context,
				  const char *sql, struct view_sql_answer *answer, struct err *err)
{
	const bool again = screen->ran && strcmp(screen->statement, sql) == 0;

	/* Another statement starts with a new grid: order and filter do not apply. */
	if (!again)
		view_grid_fini(&screen->result);
	screen->ran = again;
	screen->result.differ = context->target && context->differ;
	screen->result.null_text = "NULL";
	if (view_grid_set(&screen->result, context, &answer->table, NULL, 0,
			  answer->keys[0] ? answer->keys : NULL, err) != ST_OK)
		return err->status;
	screen->ran = true;
	screen->more = answer->more;
	screen->took_ns = answer->took_ns;
	str_copy(screen->statement, sizeof(screen->statement), sql);
	return ST_OK;
}

static void sql_run(struct view_sql *screen, struct view_context *context, const char *sql)
{
	struct view_sql_answer answer;
	enum status status;

	screen->trouble.status = ST_OK;
	screen->wrong_at = -1;
	status = view_sql_run(&answer, context, sql, &screen->trouble);
	if (status == ST_OK)
		status = sql_set_result(screen, context, sql, &answer, &screen->trouble);
	else if (status == ST_INTERRUPTED)
		err_set(&screen->trouble, status, "%s: Enter runs it again", view_stopped(context));
	else
		sql_explain(screen, sql, &answer);
	screen->trouble.status = status;
	if (screen->focus == VIEW_SQL_VIEWS && screen->ran)
		screen->focus = VIEW_SQL_RESULT;
}

/* Run the statement of the result, not what has been typed since. */
static void sql_run_again(struct view_sql *screen, struct view_context *context)
{
	char sql[VIEW_PLACE_SQL];

	str_copy(sql, sizeof(sql), screen->statement);
	sql_run(screen, context, sql);
}

/* Report once that the history is not saved; the user did not ask for the file. */
static void sql_report_history_error(struct view_sql *screen, struct view_context *context,
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

	/* Remove empty lines that only served to run the statement. */
	while (length > 0 && strchr(" \t\n", edit->text[length - 1]))
		edit->text[--length] = '\0';
	if (edit->at > length)
		edit->at = length;
	sql_run(screen, context, edit->text);
	if (screen->trouble.status == ST_OK && !context->whole)
		err.status = view_sql_history_add(&screen->history, edit->text, &err);
	sql_report_history_error(screen, context, &err);
	screen->recall = screen->history.count;
}

static enum view_answer sql_enter(struct view_sql *screen, struct view_context *context)
{
	const size_t length = strlen(screen->edit.text);

	if (screen->edit.text[strspn(screen->edit.text, " \t\n;")] == '\0') {
		view_message(context,
			     "a statement, as SELECT * FROM meta; Esc and v show the views", NULL);
		return VIEW_DRAW;
	}
	/* Enter on an empty last line also runs it, for users who do not know that a semicolon
	 * does. */
	if (prof_query_is_complete(screen->edit.text) ||
	    (screen->edit.at == length && length > 0 && screen->edit.text[length - 1] == '\n')) {
		view__sql_run(screen, context);
		return VIEW_LOAD;
	}
	if (!view_edit_insert(&screen->edit, "\n"))
		view_message(context, "the statement is too long", NULL);
	else
		view_message(context,
			     "a new line: a ; at the end, or Enter once more, runs the statement",
			     NULL);
	return VIEW_LOAD;
}

/* ---- typing: all keys ------------------------------------------------------------------------ */

static void sql_clear_error(struct view_sql *screen)
{
	screen->trouble.status = ST_OK;
	screen->wrong_at = -1;
}

static enum view_answer sql_type(void *state, struct view_context *context, uint32_t key)
{
	struct view_sql *screen = state;
	const bool empty = screen->edit.text[0] == '\0';

	if (key == VIEW_CTRL('R'))
		return sql_seek(screen, context);
	screen->seeking = false;
	if (key == VIEW_KEY_TAB && !empty)
		return sql_complete(screen, context);
	screen->offers.count = 0;
	if (key == VIEW_KEY_ENTER || key == '\n')
		return sql_enter(screen, context);
	if (key == VIEW_KEY_ESCAPE) {
		screen->focus = screen->ran ? VIEW_SQL_RESULT : VIEW_SQL_VIEWS;
		return VIEW_LOAD;
	}
	if (view_edit_key(&screen->edit, key)) {
		sql_clear_error(screen);
		return VIEW_LOAD;
	}
	if (key == VIEW_KEY_UP || key == VIEW_KEY_DOWN) {
		sql_clear_error(screen);
		return sql_recall(screen, context, key == VIEW_KEY_UP ? -1 : 1);
	}
	return VIEW_UNHANDLED;
}

/* ---- other screens --------------------------------------------------------------------------- */

/* Columns of the contract that correspond to a place's field of another name. */
static const struct {
	const char *column, *field;
} view_aliases[] = {
	{"start_ns", "time_ns"},     {"first_start_ns", "time_ns"},
	{"from_span_id", "span_id"}, {"first_step", "step"},
	{"last_step", "step"},       {"last_time_ns", "time_ns"},
	{"last_epoch", "epoch"},     {"first_program_step", "program_step"},
};

static bool sql_current_place(const void *state, struct view_place *out)
{
	const struct view_sql *screen = state;

	view_place_clear(out);
	if (!screen->ran)
		return false;
	str_copy(out->sql, sizeof(out->sql), screen->statement);
	view_grid_place(&screen->result, NULL, "", out);
	for (size_t i = 0; i < ARRAY_LEN(view_aliases); i++) {
		const struct view_place_field *field = view_place_field(view_aliases[i].field);

		if (!view_place_knows(out, field))
			*view_place_number(out, field) =
				view_grid_int(&screen->result, view_aliases[i].column);
	}
	return true;
}

static bool sql_offers(const struct view_place *place, char *out, size_t size)
{
	char sql[VIEW_PLACE_SQL];

	if (place->view[0] && view_sql_rows_of(sql, place->view, place->keys, NULL) == ST_OK) {
		snprintf(out, size, "rows of %s%s%s", place->view, place->keys[0] ? ": " : "",
			 place->keys);
		return true;
	}
	if (!place->sql[0])
		return false;
	snprintf(out, size, "the statement");
	return true;
}

static enum status sql_go(void *state, struct view_context *context, const struct view_place *place,
			  struct err *err)
{
	struct view_sql *screen = state;
	char sql[VIEW_PLACE_SQL];
	enum status status = ST_OK;

	if (place->view[0] && !place->sql[0])
		status = view_sql_rows_of(sql, place->view, place->keys, err);
	else if (place->sql[0])
		snprintf(sql, sizeof(sql), "%.*s%s", VIEW_PLACE_SQL - 2, place->sql,
			 prof_query_is_complete(place->sql) ? "" : ";");
	else
		status = err_set(err, ST_NOTFOUND, "no rows are known of this");
	if (status != ST_OK)
		return status;
	/* Do not run again a statement whose result is still shown. */
	if (screen->ran && strcmp(screen->statement, sql) == 0)
		return ST_OK;
	view_edit_set(&screen->edit, sql);
	screen->offers.count = 0;
	view__sql_run(screen, context);
	screen->focus = screen->trouble.status == ST_OK ? VIEW_SQL_RESULT : VIEW_SQL_EDIT;
	return ST_OK;
}

static void sql_query(const void *state, const struct view_context *context, struct str *out)
{
	const struct view_sql *screen = state;
	const char *sql = screen->statement;

	(void)context;
	if (!screen->ran)
		return;
	str_add(out, sql);
	if (!prof_query_is_complete(sql))
		str_add(out, ";");
	str_add(out, "\n");
}

/* ---- the screen ------------------------------------------------------------------------------ */

#define QUICK_NS (100 * UINT64_C(1000000))

static const struct view_grid_column sql_views_columns[] = {
	{.name = "view", .importance = 3},
	{.name = "row", .title = "a row is", .importance = 2},
	{.name = "columns", .importance = 0}, /* shown below the views */
};

static void sql_init(void *state)
{
	struct view_sql *screen = state;

	screen->wrong_at = -1;
	screen->offer = -1;
}

static void sql_fini(void *state)
{
	struct view_sql *screen = state;

	view_grid_fini(&screen->result);
	view_grid_fini(&screen->views);
	view_sql_names_fini(&screen->names);
	view_sql_history_fini(&screen->history);
}

/* ---- parts of the screen --------------------------------------------------------------------- */

static struct view_rect sql_grid_rect(const struct view_sql *screen, const struct view_grid *grid)
{
	const struct view_sql_areas *areas = &screen->areas;

	return grid == &screen->views && areas->side.width > 0 && screen->ran ? areas->side
									      : areas->main;
}

/* The grid that handles keys. */
static struct view_grid *sql_active_grid(void *state)
{
	struct view_sql *screen = state;

	return !screen->ran || screen->focus == VIEW_SQL_VIEWS ? &screen->views : &screen->result;
}

/* ---- loading --------------------------------------------------------------------------------- */

static void sql_load_views(struct view_sql *screen, struct view_context *context, struct err *err)
{
	static const struct report_column columns[] = {
		{"view", REPORT_TEXT}, {"row", REPORT_TEXT}, {"columns", REPORT_TEXT}};
	struct view_sql_names *names = &screen->names;
	struct report_table table;

	view_sql_names_load(names, context->source->db, err);
	if (err_stuck(err) || view_table_new(&table, "views", columns, ARRAY_LEN(columns),
					     names->count, err) != ST_OK)
		return;
	for (int i = 0; i < names->count && !err_stuck(err); i++) {
		const struct view_sql_view *view = &names->views[i];
		struct str text = {0};

		for (int c = 0; c < view->column_count; c++)
			str_addf(&text, "%s%s", c > 0 ? ", " : "", view->columns[c]);
		const struct report_cell cells[] = {view_text_cell(view->name),
						    view_text_cell(view->usage),
						    view_text_cell(str_peek(&text))};

		if (text.failed)
			err_nomem(err);
		else
			view_table_row(&table, i, cells, err);
		str_free(&text);
	}
	if (err_stuck(err))
		report_table_free(&table);
	else
		screen->has_views =
			view_grid_set(&screen->views, context, &table, sql_views_columns,
				      ARRAY_LEN(sql_views_columns), "view", err) == ST_OK;
}

/* Report the error with line and column, because the output does not show the statement. */
static void sql_report_error(const struct view_sql *screen, struct err *err)
{
	size_t begin;
	int line, column = 1;

	if (screen->wrong_at < 0) {
		err_set(err, screen->trouble.status, "%s", screen->trouble.text);
		return;
	}
	line = view_edit_line(&screen->edit, (size_t)screen->wrong_at, &begin);
	for (size_t i = begin; i < (size_t)screen->wrong_at; i++)
		column += ((unsigned char)screen->edit.text[i] & 0xc0) != 0x80;
	err_set(err, screen->trouble.status, "%s (line %d, column %d)", screen->trouble.text,
		line + 1, column);
}

/* The first load: the views, the history, and the initial statement. */
static void sql_first_load(struct view_sql *screen, struct view_context *context, struct err *err)
{
	struct err own = {0};

	sql_load_views(screen, context, err);
	if (!err_stuck(err) && !context->whole)
		own.status = view_sql_history_read(&screen->history, &own);
	sql_report_history_error(screen, context, &own);
	screen->recall = screen->history.count;
	if (err_stuck(err) || !context->query)
		return;
	view_edit_set(&screen->edit, context->query);
	view__sql_run(screen, context);
	if (screen->trouble.status == ST_OK)
		screen->focus = VIEW_SQL_RESULT;
	else if (context->whole)
		sql_report_error(screen, err);
}

static enum status sql_load(void *state, struct view_context *context, bool news, struct err *err)
{
	struct view_sql *screen = state;
	const struct view_rect body = {0, 0, context->body.width, context->body.height};
	struct err own;

	err = err_start(err, &own);
	if (!screen->has_views)
		sql_first_load(screen, context, err);
	if (err_stuck(err))
		return err->status;
	if (screen->ran && (screen->runs != context->runs ||
			    screen->result.differ != (context->target && context->differ) ||
			    (news && context->follow && screen->took_ns < QUICK_NS &&
			     strcmp(screen->statement, screen->edit.text) == 0)))
		sql_run_again(screen, context);
	screen->runs = context->runs;
	screen->areas = view__sql_areas(body, view__sql_prompt_rows(screen, body.width),
					screen->ran && !context->whole);
	if (screen->areas.side.width == 0 && view__sql_shows_result(screen)) {
		/* No view is under a cursor, so the rows use its area, too. */
		screen->areas.main.height += screen->areas.columns.height;
		screen->areas.columns.height = 0;
	}
	if (screen->ran)
		view_grid_layout(&screen->result, sql_grid_rect(screen, &screen->result));
	if (view__sql_shows_result(screen) && !context->whole &&
	    view_grid_is_cut(&screen->result)) {
		view__sql_areas_row(&screen->areas);
		view_grid_layout(&screen->result, screen->areas.main);
	}
	view_grid_layout(&screen->views, sql_grid_rect(screen, &screen->views));
	return ST_OK;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Insert the name of the view under the cursor; into an empty statement, a query of its rows. */
static void sql_insert_view(struct view_sql *screen)
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

static enum view_answer sql_request(void *state, struct view_context *context,
				    enum view_request request)
{
	struct view_sql *screen = state;
	enum view_answer answer = VIEW_LOAD;

	if (request == VIEW_ENTER_REQUEST && screen->focus == VIEW_SQL_VIEWS)
		sql_insert_view(screen);
	else if (request == VIEW_ENTER_REQUEST)
		screen->focus = VIEW_SQL_EDIT;
	else if (request == VIEW_VIEW_REQUEST || request == VIEW_VIEW_BACK_REQUEST)
		screen->focus = screen->focus == VIEW_SQL_VIEWS && screen->ran ? VIEW_SQL_RESULT
									       : VIEW_SQL_VIEWS;
	else if (request == VIEW_RELOAD_REQUEST && screen->ran)
		sql_run_again(screen, context);
	else
		answer = VIEW_UNHANDLED;
	return answer;
}

static int sql_height(const void *state, const struct view_context *context)
{
	const struct view_sql *screen = state;
	const struct view_grid *grid = screen->ran ? &screen->result : &screen->views;

	return view__sql_prompt_rows(screen, context->body.width) + 2 + (int)grid->count;
}

static enum status sql_table(void *state, struct view_context *context, struct report_table *out,
			     struct err *err)
{
	struct view_sql *screen = state;
	const bool result = view__sql_shows_result(screen);
	char rows[FMT_SIZE];

	if (result && screen->more)
		view_messagef(context, "the first %s rows; there are more, with LIMIT and OFFSET",
			      fmt_count(rows, screen->result.table.row_count));
	return view_grid_table(result ? &screen->result : &screen->views, out, err);
}

static enum view_answer sql_click(void *state, struct view_context *context, int x, int y)
{
	struct view_sql *screen = state;

	(void)context;
	if (view_rect_contains(screen->areas.prompt, x, y)) {
		screen->focus = VIEW_SQL_EDIT;
		return VIEW_LOAD;
	}
	if (view_rect_contains(screen->areas.side, x, y))
		screen->focus = VIEW_SQL_VIEWS;
	else if (view_rect_contains(screen->areas.main, x, y) && view__sql_shows_result(screen))
		screen->focus = VIEW_SQL_RESULT;
	else if (!screen->ran)
		screen->focus = VIEW_SQL_VIEWS;
	return view_rect_contains(sql_active_grid(screen)->area, x, y) ? VIEW_UNHANDLED : VIEW_DRAW;
}

static const char *sql_word(const void *state, enum view_request request)
{
	const struct view_sql *screen = state;

	switch (request) {
	case VIEW_ENTER_REQUEST:
		return screen->focus == VIEW_SQL_VIEWS ? "ask for it" : "edit";
	case VIEW_VIEW_REQUEST:
		return screen->focus == VIEW_SQL_VIEWS && !screen->ran ? "" : NULL;
	case VIEW_QUERY_REQUEST:
		return screen->ran ? NULL : "";
	default:
		return NULL;
	}
}

const struct view_screen_ops view_sql_ops = {
	.name = "sql",
	.title = "SQL",
	.brief = "SQL",
	.key = ':',
	.where = VIEW_ON_SQL,
	.least_ns = 1000 * UINT64_C(1000000),
	.size = sizeof(struct view_sql),
	.init = sql_init,
	.fini = sql_fini,
	.grid = sql_active_grid,
	.load = sql_load,
	.draw = view__sql_draw,
	.request = sql_request,
	.word = sql_word,
	.status = view__sql_status,
	.height = sql_height,
	.table = sql_table,
	.place = sql_current_place,
	.offers = sql_offers,
	.go = sql_go,
	.query = sql_query,
	.focus = sql_focus,
	.stays = true,
	.typing = sql_typing,
	.type = sql_type,
	.typing_keys = view__sql_typing_keys,
	.click = sql_click,
};
