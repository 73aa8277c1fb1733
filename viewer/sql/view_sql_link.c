/*
 * From rows of a statement to the screens, and from the screens to statements.
 *
 * Threading: place, offers and query where screens draw, go where they load.
 */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "viewer/sql/view_sql_internal.h"

/* Columns of the contract that mean a field of another name. */
static const struct {
	const char *column, *field;
} view_aliases[] = {
	{"start_ns", "time_ns"},     {"first_start_ns", "time_ns"},
	{"from_span_id", "span_id"}, {"first_step", "step"},
	{"last_step", "step"},       {"last_time_ns", "time_ns"},
	{"last_epoch", "epoch"},     {"first_program_step", "program_step"},
};

static void view_take_cell(struct view_place *place, const struct view_place_field *field,
			   const struct report_cell *cell)
{
	if (!cell || !field || view_place_knows(place, field))
		return;
	if (field->text && cell->type == PROF_TEXT)
		view_place_text(view_place_chars(place, field), cell->text);
	else if (!field->text && cell->type == PROF_INT)
		*view_place_number(place, field) = cell->integer;
}

bool view__sql_place(const void *state, const struct view_context *context, struct view_place *out)
{
	const struct view_sql *screen = state;
	const struct view_place_field *fields;
	int count;

	(void)context;
	view_place_clear(out);
	if (!screen->ran)
		return false;
	str_copy(out->sql, sizeof(out->sql), screen->statement);
	fields = view_place_fields(&count);
	for (int i = 0; i < count; i++)
		view_take_cell(out, &fields[i], view_grid_cell(&screen->result, fields[i].name));
	for (size_t i = 0; i < ARRAY_LEN(view_aliases); i++)
		view_take_cell(out, view_place_field(view_aliases[i].field),
			       view_grid_cell(&screen->result, view_aliases[i].column));
	return true;
}

bool view__sql_offers(const struct view_place *place, char *out, size_t size)
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

enum status view__sql_go(void *state, struct view_context *context, const struct view_place *place,
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
	/* Coming back to what is still there asks nothing again. */
	if (screen->ran && strcmp(screen->statement, sql) == 0)
		return ST_OK;
	view_edit_set(&screen->edit, sql);
	screen->offers.count = 0;
	view__sql_run(screen, context);
	screen->focus = screen->trouble.status == ST_OK ? VIEW_SQL_RESULT : VIEW_SQL_EDIT;
	return ST_OK;
}

void view__sql_query(const void *state, const struct view_context *context, struct str *out)
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
