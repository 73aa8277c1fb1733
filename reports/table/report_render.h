/*
 * Writing a table as text for people, CSV (RFC 4180), or JSON (an envelope: tool, version,
 * schema_version, report, rows). Same table in, same bytes out.
 *
 * CSV: lines end in CR LF; NULL is an empty field, an empty text is "". JSON: one row per line;
 * whole numbers beyond 2^53 are texts; what is not finite is null, with a sibling
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
	int width;        /* columns of text; 0: as wide as needed */
	const char *tool; /* for the envelope: "ipu-report" */
	bool terminal;    /* CSV: the stream is one, which control characters would steer */
	bool bold;        /* text: headings in bold (the stream is a terminal that wants it) */
};

enum status report_render(const struct report_table *table,
			  const struct report_render_params *params, FILE *out, struct err *err);

/* One cell as text: what tables, the viewer and details show. At most @size - 1 bytes. */
const char *report_cell_text(const struct report_cell *cell, enum report_quantity quantity,
			     char *out, int size);

/* A difference as it can be printed: 0 where no digit of it would be seen, below half a ns and half
 * a hundredth of a percent. */
double report_amount_shown(double amount, enum report_quantity quantity);

/*
 * The same a row at a time, for CSV and JSON of any length. begin, rows, end; then the struct may
 * be dropped. Whatever begin and rows return, end must be called; it returns the first failure of
 * all.
 */
struct report_stream {
	FILE *out;
	const struct report_column *columns; /* borrowed until the end */
	int column_count;
	enum report_format format;
	int64_t rows;
	struct str lines; /* not written yet */
	bool terminal;    /* as in the params */
	bool hold;        /* write nothing before report_stream_flush() or the end */
	enum status status;
};

void report_stream_begin(struct report_stream *stream, const char *name,
			 const struct report_column *columns, int column_count,
			 const struct report_render_params *params, FILE *out);
/* false: failed, or nobody reads any more; no need to go on. */
bool report_stream_row(struct report_stream *stream, const struct report_cell *cells);
void report_stream_flush(struct report_stream *stream);
/* @note: "412 rows of 3,000" or NULL; JSON has it beside the rows, CSV has no place for it. */
enum status report_stream_end(struct report_stream *stream, const char *note, struct err *err);

#endif /* REPORT_RENDER_H */
