/*
 * Build and run the statement that selects columns, rows and order of a report's query.
 *
 * Threading: none. Ownership: a selection lives for one call; its names and texts belong to its
 * arena.
 */
#include "reports/table/report_select.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/fmt.h"
#include "common/minmax.h"
#include "common/str.h"
#include "reports/table/report_internal.h"

#define BLANKS    " \t\r\n"
#define NAME_SIZE 128

/* A choice with its names resolved. */
struct selection {
	const struct report_source *source;
	struct prof_db *db;
	struct err *err; /* sticky: what needs the parts before does nothing after a failure */
	const char *sql; /* all columns and rows of the source */
	struct report_names names; /* names of those columns */
	int *columns;              /* selected columns, as indices into names */
	struct report_order {
		int column; /* index into names */
		bool descending;
	} * order;
	const char *where[REPORT_WHERES]; /* SQL */
	int column_count, order_count, where_count;
	bool wrapped;  /* the source's query needs an outer SELECT */
	int64_t limit; /* 0: all */
	struct arena arena;
};

bool report_choice_selects(const struct report_choice *choice)
{
	return choice->columns || choice->sort || choice->where_count > 0;
}

/* ---- names of columns ------------------------------------------------------------------------ */

static enum status find_name(int *out, const struct report_names *names, const char *option,
			     const char *name, struct err *err)
{
	for (*out = 0; *out < names->count; ++*out)
		if (!strcmp(names->names[*out], name))
			return ST_OK;
	return report__no_column(names, option, name, err);
}

/* Parse the next name of the list *@at, without surrounding blanks. */
static void next_name(const char **at, char out[NAME_SIZE])
{
	size_t length;

	*at += strspn(*at, BLANKS);
	length = strcspn(*at, ",");
	str_copy(out, min(length + 1, NAME_SIZE), *at);
	for (size_t n = strlen(out); n > 0 && strchr(BLANKS, out[n - 1]); n--)
		out[n - 1] = '\0';
	*at += length + ((*at)[length] == ',');
}

/* Upper bound of the number of names in @list. */
static size_t max_names(const char *list)
{
	size_t count = 1;

	for (; *list; list++)
		count += *list == ',';
	return count;
}

enum status report__choose_columns(int **out, int *count, const struct report_names *names,
				   const char *list, struct arena *arena, struct err *err)
{
	bool all = !strcmp(list, "all");
	char name[NAME_SIZE];

	*count = 0;
	*out = arena_alloc(arena, all ? (size_t)names->count : max_names(list), sizeof(**out));
	if (!*out)
		return err_nomem(err);
	for (; all && *count < names->count; ++*count)
		(*out)[*count] = *count;
	while (!all && *list) {
		enum status status;

		next_name(&list, name);
		status = find_name(&(*out)[*count], names, "--columns", name, err);
		if (status != ST_OK)
			return status;
		for (int i = 0; i < *count; i++)
			if ((*out)[i] == (*out)[*count])
				return err_set(err, ST_INVALID, "--columns: \"%s\" twice", name);
		++*count;
	}
	return *count ? ST_OK : err_set(err, ST_INVALID, "--columns: no column named");
}

/* Append the order @list to the selection's, except columns it already has. NULL: no order. */
static void append_order(struct selection *s, const char *list)
{
	char name[NAME_SIZE];

	if (list && !*list && !err_stuck(s->err))
		err_set(s->err, ST_INVALID, "--sort: no column named");
	while (list && *list && !err_stuck(s->err)) {
		struct report_order *order = &s->order[s->order_count];
		bool known = false;

		next_name(&list, name);
		order->descending = name[0] == '-';
		if (find_name(&order->column, &s->names, "--sort",
			      name + (name[0] == '-' || name[0] == '+'), s->err) != ST_OK)
			return;
		for (int i = 0; i < s->order_count; i++)
			known |= s->order[i].column == order->column;
		s->order_count += !known;
	}
}

/* ---- resolving the choice -------------------------------------------------------------------- */

static void add_name(struct str *sql, const char *name)
{
	str_add(sql, "\"");
	for (const char *quote; (quote = strchr(name, '"')); name = quote + 1) {
		str_add_bytes(sql, name, (size_t)(quote - name) + 1);
		str_add(sql, "\"");
	}
	str_addf(sql, "%s\"", name);
}

/* Express rows in memory as SQL: VALUES of parameters, which open_selection() binds. */
static void build_rows_sql(struct selection *s)
{
	const struct report_table *table = s->source->rows;
	struct str sql = {0};

	for (int i = 0; i < table->column_count; i++) {
		str_addf(&sql, i ? ", column%d AS " : "SELECT column%d AS ", i + 1);
		add_name(&sql, table->columns[i].name);
	}
	str_add(&sql, "\nFROM (VALUES ");
	/* VALUES requires at least one row; LIMIT 0 removes it for an empty table. */
	for (int64_t row = 0; row < table->row_count || row == 0; row++)
		for (int i = 0; i < table->column_count; i++)
			str_addf(&sql, "%s:r%" PRId64 "c%d", i ? ", " : row ? "), (" : "(", row, i);
	str_addf(&sql, "))\nLIMIT %" PRId64, table->row_count);
	s->sql = sql.failed ? NULL : arena_strdup(&s->arena, str_peek(&sql));
	str_free(&sql);
	if (!s->sql)
		err_nomem(s->err);
}

/* Read the column names of the source's query. */
static void read_names(struct selection *s)
{
	struct prof_query *query;
	const char **names;

	if (err_stuck(s->err) || prof_query_open(&query, s->db, s->sql, s->err) != ST_OK)
		return;
	s->names.count = prof_column_count(query);
	s->names.names = names =
		arena_alloc(&s->arena, (size_t)s->names.count, sizeof(*s->names.names));
	if (!names)
		err_nomem(s->err);
	for (int i = 0; names && i < s->names.count; i++)
		names[i] = report__copy(&s->arena, prof_column_name(query, i), s->err);
	prof_query_close(query);
}

/* Resolve the choice. The caller frees the arena, unless this fails. */
static enum status init_selection(struct selection *s, const struct report_source *source,
				  const struct report_choice *choice, struct prof_db *db,
				  bool as_text, int64_t limit, struct err *err)
{
	const char *columns = choice->columns, *sort = source->sort;

	*s = (struct selection){
		.source = source, .db = db, .err = err, .sql = source->sql, .limit = limit};
	if (arena_init(&s->arena, 0))
		return err_nomem(err);
	if (!columns && as_text)
		columns = source->columns;
	if (!s->sql)
		build_rows_sql(s);
	read_names(s);
	if (!err_stuck(err))
		report__choose_columns(&s->columns, &s->column_count, &s->names,
				       columns ? columns : "all", &s->arena, err);
	for (int i = 0; !err_stuck(err) && i < choice->where_count; i++)
		report__where(&s->where[s->where_count++], &s->names, choice->where[i], &s->arena,
			      err);
	s->order = arena_alloc(&s->arena,
			       1 + max_names(choice->sort ? choice->sort : "") +
				       max_names(sort ? sort : ""),
			       sizeof(*s->order));
	if (!s->order && !err_stuck(err))
		err_nomem(err);
	/* The source's order breaks ties of the selected one. */
	append_order(s, choice->sort);
	append_order(s, sort);
	s->wrapped = columns || s->where_count || s->order_count;
	if (err_stuck(err))
		arena_fini(&s->arena);
	return err->status;
}

/* Build the statement with at most @limit rows, 0: all. */
static void build_sql(const struct selection *s, struct str *sql, int64_t limit)
{
	if (!s->wrapped && !limit) {
		str_add(sql, s->sql);
		return;
	}
	for (int i = 0; i < s->column_count; i++) {
		str_add(sql, i ? ", " : "SELECT ");
		add_name(sql, s->names.names[s->columns[i]]);
	}
	str_addf(sql, "\nFROM (\n%s\n)", s->sql);
	for (int i = 0; i < s->where_count; i++)
		str_addf(sql, "%s(%s)", i ? "\n  AND " : "\nWHERE ", s->where[i]);
	for (int i = 0; i < s->order_count; i++) {
		str_add(sql, i ? ", " : "\nORDER BY ");
		add_name(sql, s->names.names[s->order[i].column]);
		str_add(sql, s->order[i].descending ? " DESC NULLS LAST" : " NULLS LAST");
	}
	if (limit)
		str_addf(sql, "\nLIMIT %" PRId64, limit);
}

static void bind_rows(struct prof_query *query, const struct report_table *rows)
{
	char parameter[48];

	for (int64_t row = 0; row < rows->row_count; row++)
		for (int i = 0; i < rows->column_count; i++) {
			const struct report_cell *cell = &rows->cells[row * rows->column_count + i];

			snprintf(parameter, sizeof(parameter), ":r%" PRId64 "c%d", row, i);
			if (cell->type == PROF_INT)
				prof_query_int(query, parameter, cell->integer);
			else if (cell->type == PROF_REAL)
				prof_query_real(query, parameter, cell->real);
			else if (cell->type == PROF_TEXT)
				prof_query_text(query, parameter, cell->text);
		}
}

/* Select one row more than the limit to detect further rows; with a LIMIT, SQLite need not sort
 * all. NULL: failed. */
static struct prof_query *open_selection(const struct selection *s)
{
	struct prof_query *query = NULL;
	struct str sql = {0};

	build_sql(s, &sql, s->limit && s->limit < INT64_MAX ? s->limit + 1 : 0);
	if (sql.failed)
		err_nomem(s->err);
	else
		prof_query_open(&query, s->db, str_peek(&sql), s->err);
	str_free(&sql);
	if (query && s->source->rows)
		bind_rows(query, s->source->rows);
	return query;
}

/* ---- notes ----------------------------------------------------------------------------------- */

static void append_note(struct str *note, const char *text)
{
	str_addf(note, "%s%s", note->length ? "\n" : "", text);
}

/* Note on a result of @rows rows; @more: the limit cut it. */
static void add_notes(const struct selection *s, int64_t rows, bool more, struct str *note)
{
	char count[FMT_SIZE], sentence[REPORT_UNFINISHED_SIZE];
	const char *unfinished, *none = s->source->none;

	if (more) {
		fmt_count(count, rows);
		str_addf(note, "the first %s rows; there are more", count);
	}
	if (!rows && s->where_count) {
		append_note(note, "No row is as --where asks.");
	} else if (!rows && none) {
		/* "No bubbles: the run had no pipeline ...". An imported recording has another
		 * reason. */
		const char *colon = strchr(none, ':');
		const char *elsewhere = prof_origin_none(prof_db_origin(s->db));
		char text[256];

		if (elsewhere && colon)
			snprintf(text, sizeof(text), "%.*s: %s", (int)(colon - none), none,
				 elsewhere);
		append_note(note, elsewhere && colon ? text : none);
	}
	unfinished = report__unfinished(s->db, sentence);
	if (unfinished)
		append_note(note, unfinished);
}

/* ---- streaming ------------------------------------------------------------------------------- */

static void stream_query(struct selection *s, struct prof_query *query,
			 const struct report_render_params *params, FILE *out)
{
	struct report_column *columns;
	struct report_stream stream;
	struct report_cell *cells;
	struct str note = {0};
	bool more = false;
	int count;

	report__columns(query, &s->arena, &columns, &count, s->err);
	cells = arena_alloc(&s->arena, (size_t)count, sizeof(*cells));
	if (!cells && !err_stuck(s->err))
		err_nomem(s->err);
	if (err_stuck(s->err))
		return;
	report_stream_begin(&stream, s->source->name, columns, count, params, out);
	while (prof_query_next(query, &s->err->status, s->err)) {
		more = s->limit > 0 && stream.rows >= s->limit;
		if (more)
			break;
		for (int i = 0; i < stream.column_count; i++)
			report__cell(query, i, &cells[i]);
		if (!report_stream_row(&stream, cells))
			break;
	}
	add_notes(s, stream.rows, more, &note);
	report_stream_end(&stream, note.length ? str_peek(&note) : NULL,
			  err_stuck(s->err) ? NULL : s->err);
	if (note.failed && !err_stuck(s->err))
		err_nomem(s->err);
	str_free(&note);
}

/* ---- the interface --------------------------------------------------------------------------- */

/* Set fit and note of @table, which was read through @s. */
static void finish_table(const struct selection *s, const struct report_choice *choice,
			 bool as_text, bool more, struct report_table *table)
{
	struct str note = {0};

	if (choice->columns)
		table->fit = REPORT_FIT_NONE;
	else if (s->source->columns)
		table->fit = REPORT_FIT_LAST;
	add_notes(s, table->row_count, more, &note);
	if (as_text && !choice->columns && table->row_count) {
		bool any = false;

		/* Columns that text omits by default. */
		for (int i = 0; i < s->names.count; i++) {
			bool shown = false;

			for (int k = 0; k < s->column_count; k++)
				shown |= s->columns[k] == i;
			if (shown)
				continue;
			if (!any)
				append_note(&note, "More columns: ");
			str_addf(&note, "%s%s", any ? ", " : "", s->names.names[i]);
			any = true;
		}
		if (any)
			str_add(&note, " (--columns all).");
	}
	if (note.length)
		table->note = arena_strdup(&table->arena, str_peek(&note));
	if (note.failed || (note.length && !table->note))
		err_nomem(s->err);
	str_free(&note);
}

enum status report_select_table(struct report_table *out, const struct report_source *source,
				const struct report_choice *choice, struct prof_db *db,
				bool as_text, int64_t limit, struct err *err)
{
	struct prof_query *query;
	struct selection s;
	struct err own;
	bool more;

	err = err_start(err, &own);
	*out = (struct report_table){0};
	if (init_selection(&s, source, choice, db, as_text, limit, err) != ST_OK)
		return err->status;
	query = open_selection(&s);
	if (query && report__table_rows(out, query, source->name, limit, 0, &more, err) == ST_OK)
		finish_table(&s, choice, as_text, more, out);
	if (err_stuck(err))
		report_table_free(out);
	arena_fini(&s.arena);
	return err->status;
}

enum status report_select_write(const struct report_source *source,
				const struct report_choice *choice, struct prof_db *db,
				const struct report_render_params *params, int64_t limit, FILE *out,
				struct err *err)
{
	const bool as_text = params->format == REPORT_AS_TEXT;
	struct prof_query *query;
	struct report_table table;
	struct selection s;
	struct err own;

	err = err_start(err, &own);
	if (as_text || report__is_live(db)) {
		if (report_select_table(&table, source, choice, db, as_text, limit, err) == ST_OK)
			report_render(&table, params, out, err);
		report_table_free(&table);
		return err->status;
	}
	if (init_selection(&s, source, choice, db, false, limit, err) != ST_OK)
		return err->status;
	query = open_selection(&s);
	if (query)
		stream_query(&s, query, params, out);
	prof_query_close(query);
	arena_fini(&s.arena);
	return err->status;
}

enum status report_select_print(const struct report_source *source,
				const struct report_choice *choice, struct prof_db *db,
				bool as_text, int64_t limit, FILE *out, struct err *err)
{
	struct str sql = {0};
	struct selection s;
	struct err own;

	err = err_start(err, &own);
	if (init_selection(&s, source, choice, db, as_text, limit, err) != ST_OK)
		return err->status;
	build_sql(&s, &sql, limit);
	if (sql.failed)
		err_nomem(err);
	else if (fprintf(out, "%s;\n", str_peek(&sql)) < 0 || fflush(out))
		err_set(err, ST_IO, "write: %s", strerror(errno));
	str_free(&sql);
	arena_fini(&s.arena);
	return err->status;
}
