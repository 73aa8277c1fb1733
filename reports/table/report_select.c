/*
 * Putting a choice around a report's query, and running it.
 *
 * Threading: none. Ownership: a selection lives for one call; its names and texts are its arena's.
 */
#include "reports/table/report_select.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/fmt.h"
#include "common/jsonw.h"
#include "common/str.h"
#include "reports/table/report_internal.h"

/* A choice, taken apart. */
struct selection {
	const struct report_source *source;
	struct report_names names; /* all there are */
	int *columns;              /* of the names, in order */
	struct report_order *order;
	struct report_condition conditions[REPORT_WHERES];
	int column_count, order_count, condition_count;
	bool wrapped;  /* anything stands around the source's query */
	int64_t limit; /* 0: all */
	struct arena arena;
};

/* ---- taking the choice apart ----------------------------------------------------------------- */

/* The columns of the source, of the query itself. */
static enum status select_names(struct selection *s, struct prof_db *db, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, s->source->sql, err);
	const char **names;

	if (status != ST_OK)
		return status;
	s->names.count = prof_column_count(query);
	names = arena_alloc(&s->arena, (size_t)s->names.count, sizeof(*names));
	if (!names)
		status = err_nomem(err);
	for (int i = 0; status == ST_OK && i < s->names.count; i++) {
		names[i] = arena_strdup(&s->arena, prof_column_name(query, i));
		if (!names[i])
			status = err_nomem(err);
	}
	s->names.names = names;
	prof_query_close(query);
	return status;
}

static bool select_is_ordered(const struct selection *s, int column, int count)
{
	for (int i = 0; i < count; i++)
		if (s->order[i].column == column)
			return true;
	return false;
}

/* The order asked for, and where that leaves rows equal the source's own. */
static enum status select_order(struct selection *s, const char *asked, struct err *err)
{
	struct report_order *first = NULL, *then = NULL;
	int first_count = 0, then_count = 0;
	enum status status = ST_OK;

	if (asked)
		status = report__choose_order(&first, &first_count, &s->names, asked, &s->arena,
					      err);
	if (status == ST_OK && s->source->sort)
		status = report__choose_order(&then, &then_count, &s->names, s->source->sort,
					      &s->arena, err);
	if (status != ST_OK)
		return status;
	s->order =
		arena_alloc(&s->arena, (size_t)(first_count + then_count) + 1, sizeof(*s->order));
	if (!s->order)
		return err_nomem(err);
	for (int i = 0; i < first_count + then_count; i++) {
		const struct report_order *order =
			i < first_count ? &first[i] : &then[i - first_count];

		if (!select_is_ordered(s, order->column, s->order_count))
			s->order[s->order_count++] = *order;
	}
	return ST_OK;
}

static enum status select_make(struct selection *s, const struct report_choice *choice,
			       bool as_text, struct err *err)
{
	const char *columns = choice->columns;
	enum status status;

	if (!columns && as_text)
		columns = s->source->columns;
	status = report__choose_columns(&s->columns, &s->column_count, &s->names,
					columns ? columns : "all", &s->arena, err);
	for (int i = 0; status == ST_OK && i < choice->where_count; i++)
		status = report__choose_condition(&s->conditions[s->condition_count++], &s->names,
						  choice->where[i], &s->arena, err);
	if (status == ST_OK)
		status = select_order(s, choice->sort, err);
	s->wrapped = columns || s->condition_count || s->order_count;
	return status;
}

static void select_end(struct selection *s)
{
	arena_fini(&s->arena);
}

static enum status select_begin(struct selection *s, const struct report_source *source,
				const struct report_choice *choice, struct prof_db *db,
				bool as_text, int64_t limit, struct err *err)
{
	enum status status;

	*s = (struct selection){.source = source, .limit = limit};
	if (arena_init(&s->arena, 0))
		return err_nomem(err);
	status = select_names(s, db, err);
	if (status == ST_OK)
		status = select_make(s, choice, as_text, err);
	if (status != ST_OK)
		select_end(s);
	return status;
}

/* ---- as SQL ---------------------------------------------------------------------------------- */

static void sql_quoted(struct str *sql, const char *text, char quote)
{
	str_add_bytes(sql, &quote, 1);
	for (; *text; text++) {
		str_add_bytes(sql, text, 1);
		if (*text == quote)
			str_add_bytes(sql, text, 1);
	}
	str_add_bytes(sql, &quote, 1);
}

static void sql_literal(struct str *sql, const struct report_cell *value)
{
	struct jsonw w;

	jsonw_init_str(&w, sql, 0);
	if (value->type == PROF_TEXT)
		sql_quoted(sql, value->text, '\'');
	else if (value->type == PROF_INT)
		jsonw_int(&w, value->integer);
	else if (isinf(value->real))
		str_add(sql, value->real < 0 ? "-9e999" : "9e999");
	else
		jsonw_real(&w, value->real);
}

static void sql_parameter(char out[16], int condition)
{
	snprintf(out, 16, ":w%d", condition);
}

static void sql_conditions(const struct selection *s, struct str *sql, bool literals)
{
	char parameter[16];

	for (int i = 0; i < s->condition_count; i++) {
		const struct report_condition *condition = &s->conditions[i];

		str_add(sql, i ? "\n  AND " : "\nWHERE ");
		sql_quoted(sql, s->names.names[condition->column], '"');
		str_addf(sql, " %s", condition->sql);
		if (!condition->has_value)
			continue;
		str_add(sql, " ");
		sql_parameter(parameter, i);
		if (literals)
			sql_literal(sql, &condition->value);
		else
			str_add(sql, parameter);
	}
}

/* The statement; at most @limit rows of it, 0: all. */
static void select_sql(const struct selection *s, struct str *sql, int64_t limit, bool literals)
{
	if (!s->wrapped && !limit) {
		str_add(sql, s->source->sql);
		return;
	}
	str_add(sql, "SELECT ");
	for (int i = 0; i < s->column_count; i++) {
		str_add(sql, i ? ", " : "");
		sql_quoted(sql, s->names.names[s->columns[i]], '"');
	}
	str_addf(sql, "\nFROM (\n%s\n)", s->source->sql);
	sql_conditions(s, sql, literals);
	for (int i = 0; i < s->order_count; i++) {
		str_add(sql, i ? ", " : "\nORDER BY ");
		sql_quoted(sql, s->names.names[s->order[i].column], '"');
		str_add(sql, s->order[i].descending ? " DESC NULLS LAST" : " NULLS LAST");
	}
	if (limit)
		str_addf(sql, "\nLIMIT %" PRId64, limit);
}

static void select_bind(const struct selection *s, struct prof_query *query)
{
	char parameter[16];

	if (s->source->rows)
		prof_query_text(query, ":rows", s->source->rows);
	for (int i = 0; i < s->condition_count; i++) {
		const struct report_cell *value = &s->conditions[i].value;

		if (!s->conditions[i].has_value)
			continue;
		sql_parameter(parameter, i);
		if (value->type == PROF_INT)
			prof_query_int(query, parameter, value->integer);
		else if (value->type == PROF_REAL)
			prof_query_real(query, parameter, value->real);
		else
			prof_query_text(query, parameter, value->text);
	}
}

/* One row more than asked for tells whether there are more: SQLite then need not sort all. */
static enum status select_open(const struct selection *s, struct prof_query **out,
			       struct prof_db *db, struct err *err)
{
	struct str sql = {0};
	enum status status;

	*out = NULL;
	select_sql(s, &sql, s->limit && s->limit < INT64_MAX ? s->limit + 1 : 0, false);
	status = sql.failed ? err_nomem(err) : prof_query_open(out, db, str_peek(&sql), err);
	str_free(&sql);
	if (status == ST_OK)
		select_bind(s, *out);
	return status;
}

/* ---- what is said beside the rows ------------------------------------------------------------ */

static void note_add(struct str *note, const char *text)
{
	str_addf(note, "%s%s", note->length ? "\n" : "", text);
}

/* Columns that text leaves out of itself. */
static void note_columns(struct str *note, const struct selection *s)
{
	bool any = false;

	for (int i = 0; i < s->names.count; i++) {
		bool shown = false;

		for (int k = 0; k < s->column_count; k++)
			shown |= s->columns[k] == i;
		if (shown)
			continue;
		if (!any)
			note_add(note, "More columns: ");
		str_addf(note, "%s%s", any ? ", " : "", s->names.names[i]);
		any = true;
	}
	if (any)
		str_add(note, " (--columns all).");
}

/* @rows were written; @more: the limit ended it. */
static void select_note(const struct selection *s, struct prof_db *db, int64_t rows, bool more,
			struct str *note)
{
	char count[FMT_SIZE], sentence[REPORT_UNFINISHED_SIZE];
	const char *unfinished;

	if (more) {
		fmt_count(count, rows);
		str_addf(note, "the first %s rows; there are more", count);
	}
	if (!rows && s->condition_count)
		note_add(note, "No row is as --where asks.");
	else if (!rows && s->source->none)
		note_add(note, s->source->none);
	unfinished = report__unfinished(db, sentence);
	if (unfinished)
		note_add(note, unfinished);
}

/* ---- a row at a time ------------------------------------------------------------------------- */

static enum status stream_rows(const struct selection *s, struct prof_query *query,
			       struct report_stream *stream, struct report_cell *cells, bool *more,
			       struct err *err)
{
	*more = false;
	for (;;) {
		bool row;
		enum status status = prof_query_step(query, &row, err);

		if (status != ST_OK || !row)
			return status;
		*more = s->limit > 0 && stream->rows >= s->limit;
		if (*more)
			return ST_OK;
		for (int i = 0; i < stream->column_count; i++)
			report__cell(query, i, &cells[i]);
		if (!report_stream_row(stream, cells))
			return ST_OK;
	}
}

static enum status stream_query(struct selection *s, struct prof_db *db, struct prof_query *query,
				const struct report_render_params *params, FILE *out,
				struct err *err)
{
	struct report_column *columns;
	struct report_stream stream;
	struct report_cell *cells;
	struct str note = {0};
	enum status status, ended;
	int count;
	bool more;

	status = report__columns(query, &s->arena, &columns, &count, err);
	if (status != ST_OK)
		return status;
	cells = arena_alloc(&s->arena, (size_t)count, sizeof(*cells));
	if (!cells)
		return err_nomem(err);
	report_stream_begin(&stream, s->source->name, columns, count, params, out);
	status = stream_rows(s, query, &stream, cells, &more, err);
	select_note(s, db, stream.rows, more, &note);
	ended = report_stream_end(&stream, note.length ? str_peek(&note) : NULL,
				  status == ST_OK ? err : NULL);
	str_free(&note);
	return status == ST_OK ? ended : status;
}

/* ---- the interface --------------------------------------------------------------------------- */

/* @table was read through @s. */
static enum status select_finish(const struct selection *s, const struct report_choice *choice,
				 struct prof_db *db, bool as_text, bool more,
				 struct report_table *table, struct err *err)
{
	struct str note = {0};
	bool failed;

	if (choice->columns)
		table->fit = REPORT_FIT_NONE;
	else if (s->source->columns)
		table->fit = REPORT_FIT_LAST;
	select_note(s, db, table->row_count, more, &note);
	if (as_text && !choice->columns && table->row_count)
		note_columns(&note, s);
	if (note.length)
		table->note = arena_strdup(&table->arena, str_peek(&note));
	failed = note.failed || (note.length && !table->note);
	str_free(&note);
	return failed ? err_nomem(err) : ST_OK;
}

enum status report_select_table(struct report_table *out, const struct report_source *source,
				const struct report_choice *choice, struct prof_db *db,
				bool as_text, int64_t limit, struct err *err)
{
	struct prof_query *query;
	struct selection s;
	enum status status;
	bool more;

	*out = (struct report_table){0};
	status = select_begin(&s, source, choice, db, as_text, limit, err);
	if (status != ST_OK)
		return status;
	status = select_open(&s, &query, db, err);
	if (status == ST_OK)
		status = report__table_rows(out, query, source->name, limit, &more, err);
	if (status == ST_OK)
		status = select_finish(&s, choice, db, as_text, more, out, err);
	if (status != ST_OK)
		report_table_free(out);
	select_end(&s);
	return status;
}

static enum status write_table(const struct report_source *source,
			       const struct report_choice *choice, struct prof_db *db,
			       const struct report_render_params *params, int64_t limit, FILE *out,
			       struct err *err)
{
	struct report_table table;
	enum status status = report_select_table(&table, source, choice, db,
						 params->format == REPORT_AS_TEXT, limit, err);

	if (status != ST_OK)
		return status;
	status = report_render(&table, params, out, err);
	report_table_free(&table);
	return status;
}

enum status report_select_write(const struct report_source *source,
				const struct report_choice *choice, struct prof_db *db,
				const struct report_render_params *params, int64_t limit, FILE *out,
				struct err *err)
{
	struct prof_query *query;
	struct selection s;
	enum status status;

	if (params->format == REPORT_AS_TEXT || report__is_live(db))
		return write_table(source, choice, db, params, limit, out, err);
	status = select_begin(&s, source, choice, db, false, limit, err);
	if (status != ST_OK)
		return status;
	status = select_open(&s, &query, db, err);
	if (status == ST_OK) {
		status = stream_query(&s, db, query, params, out, err);
		prof_query_close(query);
	}
	select_end(&s);
	return status;
}

enum status report_select_print(const struct report_source *source,
				const struct report_choice *choice, struct prof_db *db,
				bool as_text, int64_t limit, FILE *out, struct err *err)
{
	struct str sql = {0};
	struct selection s;
	enum status status = select_begin(&s, source, choice, db, as_text, limit, err);

	if (status != ST_OK)
		return status;
	select_sql(&s, &sql, limit, true);
	if (sql.failed)
		status = err_nomem(err);
	else if (fprintf(out, "%s;\n", str_peek(&sql)) < 0 || fflush(out))
		status = err_set(err, ST_IO, "write: %s", strerror(errno));
	str_free(&sql);
	select_end(&s);
	return status;
}
