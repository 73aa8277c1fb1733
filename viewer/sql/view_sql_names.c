/*
 * Names of a statement: read from the schema once, then looked up in lists.
 *
 * Threading: none of its own. Ownership: see the header.
 */
#include "viewer/sql/view_sql_names.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "common/mem.h"
#include "common/str.h"
#include "reports/table/report_views.h"

#define COLUMNS_MOST 128 /* of a view */
#define NAMES_MOST   1024

static const char *const view_words[] = {
	"SELECT",    "FROM",   "WHERE",  "GROUP BY", "ORDER BY", "LIMIT",   "HAVING",  "DISTINCT",
	"JOIN",      "LEFT",   "ON",     "USING",    "AS",       "AND",     "OR",      "NOT",
	"NULL",      "IS",     "IN",     "LIKE",     "GLOB",     "BETWEEN", "CASE",    "WHEN",
	"THEN",      "ELSE",   "END",    "UNION",    "ALL",      "EXCEPT",  "WITH",    "RECURSIVE",
	"INTERSECT", "OVER",   "OFFSET", "DESC",     "ASC",      "CAST",    "EXPLAIN", "QUERY PLAN",
	"PARTITION", "EXISTS", "CROSS",  "VALUES",   "GROUP",    "ORDER",   "BY",      "INTEGER",
	"REAL",      "TEXT"};

static const char *const view_functions[] = {
	"count(",       "sum(",          "avg(",        "min(",     "max(",   "total(",  "round(",
	"abs(",         "coalesce(",     "ifnull(",     "nullif(",  "iif(",   "length(", "substr(",
	"instr(",       "lower(",        "upper(",      "replace(", "trim(",  "printf(", "typeof(",
	"hex(",         "group_concat(", "row_number(", "rank(",    "lag(",   "lead(",   "ntile(",
	"first_value(", "last_value(",   "sqrt(",       "pow(",     "log10(", "exp(",    "ln(",
	"floor(",       "percent_rank(", "json_each(",  "ceil("};

/* ---- reading the schema ---------------------------------------------------------------------- */

static enum status view_read_columns(struct view_sql_names *names, struct view_sql_view *view,
				     struct prof_db *db, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(
		&query, db, "SELECT name FROM pragma_table_info(:view) LIMIT 128", err);
	bool row = true;

	view->columns = arena_alloc(&names->arena, COLUMNS_MOST, sizeof(*view->columns));
	if (status == ST_OK && !view->columns)
		status = err_nomem(err);
	if (status == ST_OK)
		prof_query_text(query, ":view", view->name);
	while (status == ST_OK && (status = prof_query_step(query, &row, err)) == ST_OK && row &&
	       view->column_count < COLUMNS_MOST) {
		const char *name = prof_column_text(query, 0);

		name = arena_strdup(&names->arena, name ? name : "");
		if (!name)
			status = err_nomem(err);
		else
			view->columns[view->column_count++] = name;
	}
	prof_query_close(query);
	return status;
}

enum status view_sql_names_load(struct view_sql_names *names, struct prof_db *db, struct err *err)
{
	size_t count;
	const char *const *views = prof_view_names(&count);
	enum status status = ST_OK;

	view_sql_names_fini(names);
	if (arena_init(&names->arena, 0))
		return err_nomem(err);
	names->views = arena_alloc(&names->arena, count, sizeof(*names->views));
	if (!names->views)
		status = err_nomem(err);
	for (size_t i = 0; i < count && status == ST_OK; i++) {
		const struct report_view *known = report_view_find(views[i]);

		names->views[i].name = views[i];
		names->views[i].usage = known ? known->usage : "";
		status = view_read_columns(names, &names->views[i], db, err);
		names->count++;
	}
	if (status != ST_OK)
		view_sql_names_fini(names);
	return status;
}

void view_sql_names_fini(struct view_sql_names *names)
{
	arena_fini(&names->arena);
	memset(names, 0, sizeof(*names));
}

const struct view_sql_view *view_sql_names_find(const struct view_sql_names *names,
						const char *view)
{
	for (int i = 0; i < names->count; i++)
		if (strcasecmp(names->views[i].name, view) == 0)
			return &names->views[i];
	return NULL;
}

/* ---- the words of a statement ---------------------------------------------------------------- */

static bool view_is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool view_names_it(const char *sql, const char *name)
{
	const size_t length = strlen(name);

	for (const char *at = sql; *at;) {
		size_t word = 0;

		while (view_is_name(at[word]))
			word++;
		if (word == length && strncasecmp(at, name, length) == 0)
			return true;
		at += word ? word : 1;
	}
	return false;
}

bool view_sql_is_word(const char *text, size_t length)
{
	for (size_t i = 0; i < ARRAY_LEN(view_words); i++)
		if (strlen(view_words[i]) == length &&
		    strncasecmp(view_words[i], text, length) == 0)
			return true;
	return false;
}

/* ---- completion ------------------------------------------------------------------------------ */

static void view_offer(struct view_sql_offers *out, const char *word, const char *name)
{
	if (out->count == VIEW_SQL_OFFERS || strncasecmp(word, name, out->length) != 0)
		return;
	for (int i = 0; i < out->count; i++)
		if (strcmp(out->items[i], name) == 0)
			return;
	out->items[out->count++] = name;
}

/* @named: columns of the views that @sql names; else those of all others. */
static void view_offer_columns(const struct view_sql_names *names, const char *sql, bool named,
			       const char *word, struct view_sql_offers *out)
{
	for (int i = 0; i < names->count; i++) {
		const struct view_sql_view *view = &names->views[i];

		if (view_names_it(sql, view->name) != named)
			continue;
		for (int c = 0; c < view->column_count; c++)
			view_offer(out, word, view->columns[c]);
	}
}

void view_sql_complete(const struct view_sql_names *names, const char *sql, size_t at,
		       struct view_sql_offers *out)
{
	char word[128];
	bool column;

	memset(out, 0, sizeof(*out));
	while (out->length < at && view_is_name(sql[at - out->length - 1]))
		out->length++;
	column = out->length < at && sql[at - out->length - 1] == '.';
	if (out->length >= sizeof(word) || (out->length == 0 && !column))
		return;
	memcpy(word, sql + at - out->length, out->length);
	word[out->length] = '\0';
	view_offer_columns(names, sql, true, word, out);
	for (int i = 0; i < names->count && !column; i++)
		view_offer(out, word, names->views[i].name);
	for (size_t i = 0; i < ARRAY_LEN(view_words) && !column; i++)
		view_offer(out, word, view_words[i]);
	for (size_t i = 0; i < ARRAY_LEN(view_functions) && !column; i++)
		view_offer(out, word, view_functions[i]);
	view_offer_columns(names, sql, false, word, out);
}

/* ---- what was meant -------------------------------------------------------------------------- */

enum view_named {
	VIEW_NAMED_COLUMN,
	VIEW_NAMED_VIEW,
	VIEW_NAMED_FUNCTION
};

/* Names of that kind; columns of the views that @sql names, where it names any. */
static size_t view_gather(const struct view_sql_names *names, const char *sql, enum view_named kind,
			  const char *out[NAMES_MOST])
{
	size_t count = 0;
	bool named = false;

	if (kind == VIEW_NAMED_FUNCTION) {
		memcpy(out, view_functions, sizeof(view_functions));
		return ARRAY_LEN(view_functions);
	}
	for (int i = 0; i < names->count; i++)
		named = named || view_names_it(sql, names->views[i].name);
	for (int i = 0; i < names->count; i++) {
		const struct view_sql_view *view = &names->views[i];

		if (kind == VIEW_NAMED_VIEW && count < NAMES_MOST)
			out[count++] = view->name;
		if (kind != VIEW_NAMED_COLUMN || (named && !view_names_it(sql, view->name)))
			continue;
		for (int c = 0; c < view->column_count && count < NAMES_MOST; c++)
			out[count++] = view->columns[c];
	}
	return count;
}

const char *view_sql_nearest(const struct view_sql_names *names, const char *sql,
			     const char *message, char word[128])
{
	static const struct {
		const char *text;
		enum view_named kind;
	} unknown[] = {{"no such column: ", VIEW_NAMED_COLUMN},
		       {"no such table: ", VIEW_NAMED_VIEW},
		       {"no such function: ", VIEW_NAMED_FUNCTION}};
	const char *candidates[NAMES_MOST], *at;

	word[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
		if (!str_starts_with(message, unknown[i].text))
			continue;
		at = message + strlen(unknown[i].text);
		if (strrchr(at, '.'))
			at = strrchr(at, '.') + 1;
		str_copy(word, 128, at);
		return str_nearest(word, candidates,
				   view_gather(names, sql, unknown[i].kind, candidates));
	}
	return NULL;
}
