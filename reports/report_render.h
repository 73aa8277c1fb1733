/*
 * Writing a table as text for people, CSV (RFC 4180), or JSON (an envelope: tool, version,
 * schema_version, report, rows). Same table in, same bytes out.
 */
#ifndef REPORT_RENDER_H
#define REPORT_RENDER_H

#include <stdio.h>

#include "reports/report_table.h"

enum report_format { REPORT_AS_TEXT, REPORT_AS_CSV, REPORT_AS_JSON, REPORT_FORMATS };

struct report_render_params {
	enum report_format format;
	int width;         /* columns of text; 0: as wide as needed */
	const char *tool;  /* for the envelope: "ipu-report" */
};

enum status report_render(const struct report_table *table,
			  const struct report_render_params *params, FILE *out, struct err *err);

/* One cell as text: what tables, the viewer and details show. At most @size - 1 bytes. */
const char *report_cell_text(const struct report_cell *cell, enum report_quantity quantity,
			     char *out, int size);

#endif /* REPORT_RENDER_H */
