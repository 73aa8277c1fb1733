/*
 * Building blocks of an HTML page: text, tables and charts, written as they are produced.
 *
 * A failure is sticky, in the page's err: what reads the database does nothing after it, so callers
 * check once at the end. Memory does not grow with the page. The output is deterministic: the same
 * database gives the same bytes.
 */
#ifndef REPORT_HTML_H
#define REPORT_HTML_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/fmt.h"
#include "profiler/prof_db.h"
#include "reports/export/report_export.h"
#include "reports/export/report_sink.h"
#include "reports/insights/report_insights.h"
#include "reports/summary/report_summary.h"
#include "reports/table/report_table.h"

struct report_html {
	const struct report_export_request *request;
	struct prof_db *db; /* the request's */
	struct report_summary summary;
	struct report_insights insights;
	struct report_sink *out;
	struct err *err; /* not NULL */
};

/* Add markup verbatim. */
void html_add(struct report_html *page, const char *markup);
void html_addf(struct report_html *page, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Add recorded text: escaped, without control characters except newlines. */
void html_text(struct report_html *page, const char *text);
/* The same; what stands between backticks becomes code. */
void html_sentence(struct report_html *page, const char *text);
/* Add <p class="note">...</p>. */
void html_note(struct report_html *page, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Add a table with all rows; cells are formatted as in text reports. */
void html_table(struct report_html *page, const struct report_table *table);
/* Add a table of the rows of a query, at most @limit; nothing if it has none. Return their
 * number. */
int64_t html_query(struct report_html *page, const char *name, const char *sql, int64_t limit);

/* Report progress by the rows read so far; false if the export should stop. */
bool html_tick(struct report_html *page, int64_t rows);

/* ---- charts: inline SVG, legible without scripts --------------------------------------------- */

enum {
	HTML_CHART_WIDTH = 720,
	HTML_CHART_HEIGHT = 200,
	HTML_SERIES_COLOURS = 6
};

/* One curve; a non-finite y is a gap, marked at the foot of the chart for the first curve. @low and
 * @high, if not NULL: the range of each point, drawn as a band. */
struct html_series {
	const char *name;
	const double *x, *y, *low, *high;
	size_t count;
	bool area; /* filled to 0, as steps */
};

struct html_chart {
	const char *title, *x_name;
	const char *note; /* below the chart; NULL: none */
	enum report_quantity quantity;
	bool from_zero;
	const struct html_series *series;
	int count;
};

/* A chart whose axis is logarithmic where a linear one would show the greatest values only. Without
 * any finite value there is no picture: the title and a sentence. */
void html_chart(struct report_html *page, const struct html_chart *chart);

/* Label the time axis of a timeline @span_ns long: round times, @width wide from @left on at @y. */
void html_time_axis(struct report_html *page, int64_t span_ns, int left, int width, int y);

/*
 * A curve of any length in bounded memory. At first a point is one value; when there are too many,
 * adjacent points are merged in pairs, which keep their mean and range.
 */
#define HTML_POINTS 480 /* even */

struct html_point {
	double x, sum, low, high; /* x: that of the first value */
	int64_t held, finite;     /* number of values, and of finite ones */
};

struct html_curve {
	struct html_point points[HTML_POINTS];
	size_t count;
	int64_t per; /* values per point */
	double x[HTML_POINTS], y[HTML_POINTS], low[HTML_POINTS], high[HTML_POINTS];
};

void html_curve_begin(struct html_curve *curve);
void html_curve_add(struct html_curve *curve, double x, double y);
/* Add a value that is the mean of a range from @low to @high. */
void html_curve_add_range(struct html_curve *curve, double x, double y, double low, double high);
/* The number of values that are not finite; *@first: x of the first point with one. */
int64_t html_curve_bad(const struct html_curve *curve, double *first);
/* Make a series that borrows the curve. @range: also draw the band if points merge several
 * values. */
void html_curve_series(struct html_curve *curve, const char *name, bool range,
		       struct html_series *out);

/* ---- sections: each only for runs with data for it ------------------------------------------- */

void html_glance(struct report_html *page); /* cards with the key figures */
void html_bubble(struct report_html *page); /* its causes, a bar per clock */
void html_insights(struct report_html *page);
void html_stages(struct report_html *page);
void html_operations(struct report_html *page);
void html_communication(struct report_html *page);
void html_timeline(struct report_html *page); /* lanes with their longest spans */
void html_sums(struct report_html *page);     /* sums of spans by name */
void html_facts(struct report_html *page);
void html_pipeline(struct report_html *page);
void html_memory(struct report_html *page);
void html_liveness(struct report_html *page);
void html_metrics(struct report_html *page);
void html_tensors(struct report_html *page);

/* Write the page to @out; @err is not NULL. Errors of writing are returned by
 * report_sink_close(). */
enum status report_html_write(const struct report_export_request *request, struct report_sink *out,
			      struct err *err);

#endif /* REPORT_HTML_H */
