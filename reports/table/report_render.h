/*
 * Write a table as text, CSV (RFC 4180), or JSON (an envelope: tool, version, schema_version,
 * report, rows). The output is deterministic: the same table gives the same bytes.
 *
 * CSV: lines end in CR LF; NULL is an empty field, an empty string is "". JSON: one row per line;
 * integers beyond 2^53 are strings; a non-finite number is null, with a sibling
 * "<name>_nonfinite": "inf".
 */
#ifndef REPORT_RENDER_H
#define REPORT_RENDER_H

#include <stdbool.h>
#include <stdio.h>

#include "common/str.h"
#include "reports/table/report_table.h"

enum report_format {
	REPORT_AS_TEXT,
	REPORT_AS_CSV,
	REPORT_AS_JSON,
	REPORT_FORMATS
};

struct report_render_params {
	enum report_format format;
	int width;        /* terminal columns of text; 0: unlimited */
	const char *tool; /* for the envelope: "ipu-report" */
	bool terminal;    /* CSV: the stream is a terminal, so replace control characters */
	bool csv_safe;    /* CSV: a text that a spreadsheet would evaluate begins with ' */
	bool bold;        /* text: print headings in bold */
};

enum status report_render(const struct report_table *table,
			  const struct report_render_params *params, FILE *out, struct err *err);

/* Format one cell as text, for tables, the viewer and details. At most @size - 1 bytes. */
const char *report_cell_text(const struct report_cell *cell, enum report_quantity quantity,
			     char *out, int size);

/* Round a difference that would print as 0 to 0: below half a ns or half a hundredth of a
 * percent. */
double report_amount_shown(double amount, enum report_quantity quantity);

/*
 * Write CSV or JSON of any length, one row at a time: begin, rows, end. Call end whatever begin and
 * rows returned; it returns the first failure of all. Afterwards the struct may be discarded.
 */
struct report_stream {
	FILE *out;
	const struct report_column *columns; /* borrowed until the end */
	int column_count;
	enum report_format format;
	int64_t rows;
	struct str lines; /* buffered output */
	bool terminal;    /* as in the params */
	bool csv_safe;
	bool hold; /* buffer everything until a flush or the end */
	enum status status;
	int error; /* errno of a failed write */
};

void report_stream_begin(struct report_stream *stream, const char *name,
			 const struct report_column *columns, int column_count,
			 const struct report_render_params *params, FILE *out);
/* Return false if writing failed or the reader is gone; the caller may stop. */
bool report_stream_row(struct report_stream *stream, const struct report_cell *cells);
/* @note: "412 rows of 3,000" or NULL. JSON has it beside the rows; CSV omits it. */
enum status report_stream_end(struct report_stream *stream, const char *note, struct err *err);

#endif /* REPORT_RENDER_H */
