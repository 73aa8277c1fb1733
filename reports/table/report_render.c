/*
 * Render tables: a whole table in one of the formats, CSV and JSON one row at a time, and views of
 * a database through that stream.
 *
 * Threading: none. Ownership: a stream owns its buffer until its end; tables and files are
 * borrowed.
 */
#include "reports/table/report_render.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/err.h"
#include "common/fmt.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/sat.h"
#include "common/str.h"
#include "reports/table/report_internal.h"
#include "reports/table/report_views.h"

#define EXACT       9007199254740992 /* 2^53: larger integers lose digits in readers with doubles */
#define WRITE_BYTES 65536            /* buffer before a write */
#define SLICE_ROWS  4096             /* rows per read transaction on a file being written */

/* ---- CSV and JSON cells ---------------------------------------------------------------------- */

static const char *nonfinite_text(double value)
{
	return isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
}

/* @safe: a text that begins like a formula begins with ', which spreadsheets take for "a text". */
static void csv_text(struct str *line, const char *text, bool safe)
{
	const char *mark = safe && *text && strchr("=+-@\t\r", *text) ? "'" : "";

	if (*text && !text[strcspn(text, "\",\r\n")]) {
		str_addf(line, "%s%s", mark, text);
		return;
	}
	str_addf(line, "\"%s", mark);
	for (const char *quote; (quote = strchr(text, '"')); text = quote + 1) {
		str_add_bytes(line, text, (size_t)(quote - text) + 1);
		str_add(line, "\"");
	}
	str_add(line, text);
	str_add(line, "\"");
}

static void csv_cell(struct str *line, const struct report_cell *cell, bool safe)
{
	struct jsonw w;

	switch (cell->type) {
	case PROF_INT:
		str_addf(line, "%" PRId64, cell->integer);
		break;
	case PROF_REAL:
		if (!isfinite(cell->real)) {
			str_add(line, nonfinite_text(cell->real));
			break;
		}
		jsonw_init_str(&w, line, 0);
		jsonw_real(&w, cell->real);
		break;
	case PROF_TEXT:
		csv_text(line, cell->text, safe);
		break;
	case PROF_NULL:
	case PROF_BLOB:
		break;
	}
}

void report__json_cell(struct jsonw *w, const char *name, const struct report_cell *cell)
{
	char text[256];

	jsonw_key(w, name);
	switch (cell->type) {
	case PROF_INT:
		if (cell->integer >= -EXACT && cell->integer <= EXACT) {
			jsonw_int(w, cell->integer);
			break;
		}
		snprintf(text, sizeof(text), "%" PRId64, cell->integer);
		jsonw_text(w, text);
		break;
	case PROF_REAL:
		jsonw_real(w, cell->real);
		if (isfinite(cell->real))
			break;
		snprintf(text, sizeof(text), "%s_nonfinite", name);
		jsonw_key(w, text);
		jsonw_text(w, nonfinite_text(cell->real));
		break;
	case PROF_TEXT:
		jsonw_text(w, cell->text);
		break;
	case PROF_NULL:
	case PROF_BLOB:
		jsonw_null(w);
		break;
	}
}

/* ---- the formats ----------------------------------------------------------------------------- */

/* Hidden characters must not control the terminal; a file keeps the recorded bytes. */
static void csv_end_line(struct report_stream *stream, size_t from)
{
	if (stream->terminal && stream->lines.length > from)
		stream->lines.length = from + utf8_show(stream->lines.text + from,
							stream->lines.length - from, "\n\t");
	str_add(&stream->lines, "\r\n");
}

static void csv_begin(struct report_stream *stream, const char *name,
		      const struct report_render_params *params)
{
	(void)name;
	(void)params;
	for (int i = 0; i < stream->column_count; i++) {
		if (i)
			str_add(&stream->lines, ",");
		csv_text(&stream->lines, stream->columns[i].name, false);
	}
	csv_end_line(stream, 0);
}

static void csv_row(struct report_stream *stream, const struct report_cell *cells)
{
	const size_t from = stream->lines.length;

	for (int i = 0; i < stream->column_count; i++) {
		if (i)
			str_add(&stream->lines, ",");
		csv_cell(&stream->lines, &cells[i], stream->csv_safe);
	}
	csv_end_line(stream, from);
}

static void csv_end(struct report_stream *stream, const char *note)
{
	(void)stream;
	(void)note;
}

static void json_begin(struct report_stream *stream, const char *name,
		       const struct report_render_params *params)
{
	struct jsonw w;

	jsonw_init_str(&w, &stream->lines, 0);
	jsonw_begin_object(&w);
	jsonw_key(&w, "tool");
	jsonw_text(&w, params->tool);
	jsonw_key(&w, "version");
	jsonw_text(&w, IPUSCOPE_VERSION);
	jsonw_key(&w, "schema_version");
	jsonw_int(&w, PROF_SCHEMA_VERSION);
	jsonw_key(&w, "report");
	jsonw_text(&w, name);
	/* The rows are appended as text; json_end() closes the object. */
	str_add(&stream->lines, ",\"rows\":[");
}

static void json_row(struct report_stream *stream, const struct report_cell *cells)
{
	struct jsonw w;

	str_add(&stream->lines, stream->rows ? ",\n" : "\n");
	jsonw_init_str(&w, &stream->lines, 0);
	jsonw_begin_object(&w);
	for (int i = 0; i < stream->column_count; i++)
		report__json_cell(&w, stream->columns[i].name, &cells[i]);
	jsonw_end_object(&w);
}

static void json_end(struct report_stream *stream, const char *note)
{
	struct jsonw w;

	str_add(&stream->lines, stream->rows ? "\n]" : "]");
	if (note) {
		str_add(&stream->lines, ",\"note\":");
		jsonw_init_str(&w, &stream->lines, 0);
		jsonw_text(&w, note);
	}
	str_add(&stream->lines, "}\n");
}

static const struct {
	void (*begin)(struct report_stream *stream, const char *name,
		      const struct report_render_params *params);
	void (*row)(struct report_stream *stream, const struct report_cell *cells);
	void (*end)(struct report_stream *stream, const char *note);
} stream_formats[] = {
	[REPORT_AS_CSV] = {csv_begin, csv_row, csv_end},
	[REPORT_AS_JSON] = {json_begin, json_row, json_end},
};
_Static_assert(ARRAY_LEN(stream_formats) == REPORT_FORMATS, "format table out of step");

/* Write out the lines; @last: through the file's own buffer, too. */
static void stream_flush(struct report_stream *stream, bool last)
{
	struct str *lines = &stream->lines;

	if (stream->status != ST_OK)
		return;
	if (lines->failed) {
		stream->status = ST_NOMEM;
	} else if (fwrite(str_peek(lines), 1, lines->length, stream->out) != lines->length ||
		   (last && fflush(stream->out) != 0)) {
		stream->status = ST_IO;
		stream->error = errno;
	}
	str_clear(lines);
}

void report_stream_begin(struct report_stream *stream, const char *name,
			 const struct report_column *columns, int column_count,
			 const struct report_render_params *params, FILE *out)
{
	*stream = (struct report_stream){
		.out = out,
		.columns = columns,
		.column_count = column_count,
		.format = params->format,
		.terminal = params->terminal,
		.csv_safe = params->csv_safe,
		.status = params->format == REPORT_AS_TEXT ? ST_INVALID : ST_OK,
	};
	if (stream->status != ST_OK)
		return;
	stream_formats[stream->format].begin(stream, name, params);
}

bool report_stream_row(struct report_stream *stream, const struct report_cell *cells)
{
	if (stream->status != ST_OK)
		return false;
	stream_formats[stream->format].row(stream, cells);
	stream->rows++;
	if (stream->lines.failed || (!stream->hold && stream->lines.length >= WRITE_BYTES))
		stream_flush(stream, false);
	return stream->status == ST_OK;
}

enum status report_stream_end(struct report_stream *stream, const char *note, struct err *err)
{
	if (stream->status == ST_OK) {
		stream_formats[stream->format].end(stream, note);
		stream_flush(stream, true);
	}
	str_free(&stream->lines);
	switch (stream->status) {
	case ST_OK:
		return ST_OK;
	case ST_NOMEM:
		return err_nomem(err);
	case ST_IO:
		return err_set(err, ST_IO, "write: %s", strerror(stream->error));
	default:
		return err_set(err, stream->status, "text cannot be written a row at a time");
	}
}

/* ---- views ----------------------------------------------------------------------------------- */

/* One pass over a view, perhaps in several transactions. */
struct view_pass {
	const struct report_view *view;
	struct prof_db *db;
	const struct report_render_params *params;
	FILE *out;
	int64_t limit;
	struct arena arena; /* columns and one row of cells */
	struct report_column *columns;
	struct report_cell *cells;
	int column_count, key_column; /* -1: no key column, @at counts rows */
	struct report_stream stream;
	int64_t at; /* the last row's key + 1, or the number of rows read */
	bool cut;   /* stopped by the limit */
	bool live;  /* the file is being written */
};

static void pass_open(struct view_pass *pass, const struct prof_query *query, struct err *err)
{
	report__columns(query, &pass->arena, &pass->columns, &pass->column_count, err);
	pass->cells = arena_alloc(&pass->arena, (size_t)pass->column_count, sizeof(*pass->cells));
	if (!pass->cells && !err_stuck(err))
		err_nomem(err);
	if (err_stuck(err)) {
		pass->columns = NULL; /* the stream has not begun */
		return;
	}
	pass->key_column = -1;
	for (int i = 0; pass->view->key && i < pass->column_count; i++)
		if (!strcmp(pass->columns[i].name, pass->view->key))
			pass->key_column = i;
	report_stream_begin(&pass->stream, pass->view->name, pass->columns, pass->column_count,
			    pass->params, pass->out);
	/* Buffer the slice: a slow reader of our output must not prolong the transaction. */
	pass->stream.hold = pass->live;
}

/* Read the next slice (the whole view unless the file is live). Return whether there is more. */
static bool pass_slice(struct view_pass *pass, struct err *err)
{
	struct prof_query *query;
	int64_t count = 0;
	bool more = false;

	if (prof_query_open(&query, pass->db, pass->view->sql_from, err) != ST_OK)
		return false;
	prof_query_int(query, ":at", pass->at);
	if (!pass->columns)
		pass_open(pass, query, err);
	while (!more && prof_query_next(query, &err->status, err)) {
		pass->cut = pass->limit > 0 && pass->stream.rows >= pass->limit;
		if (pass->cut)
			break;
		for (int i = 0; i < pass->column_count; i++)
			report__cell(query, i, &pass->cells[i]);
		pass->at = sat_add(
			pass->key_column < 0 ? pass->at : pass->cells[pass->key_column].integer, 1);
		if (!report_stream_row(&pass->stream, pass->cells))
			break;
		more = pass->live && ++count == SLICE_ROWS;
	}
	prof_query_close(query);
	if (pass->columns)
		stream_flush(&pass->stream, false);
	return more && !err_stuck(err);
}

bool report__is_live(struct prof_db *db)
{
	return prof_db_state(db) != PROF_COMPLETE && prof_db_writer_alive(db);
}

static void pass_close(struct view_pass *pass, struct err *err)
{
	char sentence[REPORT_UNFINISHED_SIZE];
	const char *unfinished = report__unfinished(pass->db, sentence);
	const char *cut = pass->cut ? "cut by the limit" : NULL;
	struct str note = {0};

	str_addf(&note, "%s%s%s", cut ? cut : "", cut && unfinished ? "\n" : "",
		 unfinished ? unfinished : "");
	report_stream_end(&pass->stream, note.length ? str_peek(&note) : NULL,
			  err_stuck(err) ? NULL : err);
	if (note.failed && !err_stuck(err))
		err_nomem(err);
	str_free(&note);
}

enum status report_view_stream(const struct report_view *view, struct prof_db *db,
			       const struct report_render_params *params, int64_t limit, FILE *out,
			       struct err *err)
{
	struct view_pass pass = {
		.view = view, .db = db, .params = params, .out = out, .limit = limit};
	struct err own;

	err = err_start(err, &own);
	if (arena_init(&pass.arena, 0))
		return err_nomem(err);
	pass.live = report__is_live(db);
	while (pass_slice(&pass, err))
		continue;
	if (pass.columns)
		pass_close(&pass, err);
	arena_fini(&pass.arena);
	return err->status;
}

/* ---- unfinished recordings ------------------------------------------------------------------- */

const char *report__unfinished(struct prof_db *db, char out[REPORT_UNFINISHED_SIZE])
{
	char failure[ERR_TEXT_SIZE], repaired[64], gaps[256];

	if (prof_db_state(db) == PROF_COMPLETE &&
	    !prof_db_meta(db, "repaired", repaired, sizeof(repaired))) {
		if (!prof_db_meta(db, "gaps", gaps, sizeof(gaps)))
			return NULL;
		snprintf(out, REPORT_UNFINISHED_SIZE, "The recording has gaps: %s.", gaps);
		return out;
	}
	if (prof_db_meta(db, "failure", failure, sizeof(failure))) {
		snprintf(out, REPORT_UNFINISHED_SIZE,
			 "Recording failed (%.500s): what came after is missing.", failure);
		return out;
	}
	if (prof_db_state(db) != PROF_COMPLETE && prof_db_writer_alive(db))
		return "The run is still being recorded: there will be more.";
	return "The run was killed: what it had not yet written is missing.";
}

/* ---- whole tables ---------------------------------------------------------------------------- */

static enum status render_stream(const struct report_table *table,
				 const struct report_render_params *params, FILE *out,
				 struct err *err)
{
	struct report_stream stream;

	report_stream_begin(&stream, table->name, table->columns, table->column_count, params, out);
	for (int64_t row = 0; row < table->row_count; row++)
		if (!report_stream_row(&stream, table->cells + row * table->column_count))
			break;
	return report_stream_end(&stream, table->note, err);
}

typedef enum status (*render_fn)(const struct report_table *table,
				 const struct report_render_params *params, FILE *out,
				 struct err *err);

static const render_fn render_formats[] = {
	[REPORT_AS_TEXT] = report__text,
	[REPORT_AS_CSV] = render_stream,
	[REPORT_AS_JSON] = render_stream,
};
_Static_assert(ARRAY_LEN(render_formats) == REPORT_FORMATS, "format table out of step");

enum status report_render(const struct report_table *table,
			  const struct report_render_params *params, FILE *out, struct err *err)
{
	return render_formats[params->format](table, params, out, err);
}

/* ---- one cell -------------------------------------------------------------------------------- */

static void cell_integer(int64_t value, enum report_quantity quantity, char out[FMT_SIZE])
{
	switch (quantity) {
	case REPORT_NS:
		fmt_ns(out, value);
		return;
	case REPORT_BYTES:
		if (value >= 0) {
			fmt_bytes(out, (uint64_t)value);
			return;
		}
		break;
	case REPORT_COUNT:
	case REPORT_CYCLES:
		fmt_count(out, value);
		return;
	case REPORT_FRACTION:
		fmt_percent(out, (double)value);
		return;
	case REPORT_BOOL:
		if (value == 0 || value == 1) {
			snprintf(out, FMT_SIZE, "%s", value ? "yes" : "no");
			return;
		}
		break;
	case REPORT_TEXT:
	case REPORT_NUMBER:
	case REPORT_REAL:
		break;
	}
	snprintf(out, FMT_SIZE, "%" PRId64, value);
}

/* Units of fractional values: the smallest unit of each quantity. */
static const char *const cell_units[] = {
	[REPORT_NS] = "ns", [REPORT_BYTES] = "B", [REPORT_BOOL] = NULL};

static void cell_real(double value, enum report_quantity quantity, char out[FMT_SIZE])
{
	/* Means of integer quantities are formatted like the quantity. */
	bool whole = quantity == REPORT_NS || quantity == REPORT_BYTES ||
		     quantity == REPORT_COUNT || quantity == REPORT_CYCLES;

	if (quantity == REPORT_FRACTION && isfinite(value))
		fmt_percent(out, value);
	else if (whole && fabs(value) >= 100 && fabs(value) < 9e18)
		cell_integer((int64_t)llround(value), quantity, out);
	else if (whole && isfinite(value) && cell_units[quantity])
		snprintf(out, FMT_SIZE, "%.3g %s", value, cell_units[quantity]);
	else
		fmt_real(out, value);
}

double report_amount_shown(double amount, enum report_quantity quantity)
{
	const double least = quantity == REPORT_NS ? 0.5 : quantity == REPORT_FRACTION ? 0.5e-4 : 0;

	return fabs(amount) < least ? 0 : amount;
}

const char *report_cell_text(const struct report_cell *cell, enum report_quantity quantity,
			     char *out, int size)
{
	char number[FMT_SIZE] = "-";

	assert(size > 0);
	switch (cell->type) {
	case PROF_TEXT:
		str_copy(out, (size_t)size, cell->text);
		/* Recorded text must not control the terminal: hidden characters become '?', white
		 * space becomes a blank. */
		for (char *at = out; *at; at++)
			if (*at == '\n' || *at == '\t' || *at == '\r')
				*at = ' ';
		out[utf8_show(out, strlen(out), "")] = '\0';
		return out;
	case PROF_INT:
		cell_integer(cell->integer, quantity, number);
		break;
	case PROF_REAL:
		cell_real(cell->real, quantity, number);
		break;
	case PROF_NULL:
	case PROF_BLOB:
		break;
	}
	str_copy(out, (size_t)size, number);
	return out;
}
