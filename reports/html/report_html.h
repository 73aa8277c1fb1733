/*
 * Pieces of a page of HTML: text, tables and charts, written as they come.
 *
 * A page keeps the first failure; later calls do nothing, so what fills it is checked once, at its
 * end. Memory does not grow with the page. Same database in, same bytes out.
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
	enum status status; /* of reading; the sink keeps that of writing */
	struct err *err;
};

/* Markup as it stands. */
void html_add(struct report_html *page, const char *markup);
void html_addf(struct report_html *page, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Text of the run: escaped, without control characters other than new lines. */
void html_text(struct report_html *page, const char *text);
/* <p class="note">...</p> */
void html_note(struct report_html *page, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* A table of all its rows; cells as in the text reports. */
void html_table(struct report_html *page, const struct report_table *table);
/* The rows of a query, at most @limit; nothing where there are none. Returns how many. */
int64_t html_query(struct report_html *page, const char *name, const char *sql, int64_t limit);

/* Keep the failure of what fills the page. false: there is one, now or before. */
bool html_check(struct report_html *page, enum status status);

/* To be called with the rows read so far: false when the export is to end. */
bool html_tick(struct report_html *page, int64_t rows);

/* ---- charts: inline SVG, legible without scripts --------------------------------------------- */

enum {
	HTML_CHART_WIDTH = 720,
	HTML_CHART_HEIGHT = 200,
	HTML_SERIES_COLOURS = 6
};

/* A value on an axis as text. */
typedef const char *(*html_format_fn)(char out[FMT_SIZE], double value);
const char *html_format_real(char out[FMT_SIZE], double value);
const char *html_format_bytes(char out[FMT_SIZE], double value);
const char *html_format_count(char out[FMT_SIZE], double value);
const char *html_format_ns(char out[FMT_SIZE], double value);

/* One curve; a y that is not finite is a gap. @low and @high, where not NULL: the range that each
 * point stands for, drawn as a band. */
struct html_series {
	const char *name;
	const double *x, *y, *low, *high;
	size_t count;
	bool area; /* filled down to 0, in steps */
};

struct html_chart {
	const char *title, *x_name;
	html_format_fn format_x, format_y;
	bool from_zero;
	const struct html_series *series;
	int count;
};

void html_chart(struct report_html *page, const struct html_chart *chart);

/* Round steps for an axis from @low to @high, about @count of them. @base 10, or 1024 for bytes. */
double html_tick_step(double low, double high, int count, bool bytes);

/*
 * A curve of any length in bounded memory: a point stands for one value at first; when there are
 * too many, two points after each other become one, which keeps their mean and range.
 */
#define HTML_POINTS 480 /* even */

struct html_point {
	double x, sum, low, high; /* x: of its first value */
	int64_t held, finite;     /* values, and those that are finite numbers */
};

struct html_curve {
	struct html_point points[HTML_POINTS];
	size_t count;
	int64_t per; /* values of a point */
	double x[HTML_POINTS], y[HTML_POINTS], low[HTML_POINTS], high[HTML_POINTS];
};

void html_curve_begin(struct html_curve *curve);
void html_curve_add(struct html_curve *curve, double x, double y);
/* A value that is itself the mean of what lies between @low and @high. */
void html_curve_add_range(struct html_curve *curve, double x, double y, double low, double high);
/* Borrows the curve, which stays as it is. @range: draw the band too, where points stand for more
 * than one value each. */
void html_curve_series(struct html_curve *curve, const char *name, bool range,
		       struct html_series *out);

/* ---- sections: each for runs that have something for it -------------------------------------- */

void html_glance(struct report_html *page); /* cards: what one asks first */
void html_bubble(struct report_html *page); /* its causes, each clock's as a bar */
void html_insights(struct report_html *page);
void html_stages(struct report_html *page);
void html_operations(struct report_html *page);
void html_communication(struct report_html *page);
void html_timeline(struct report_html *page); /* lanes and their longest spans */
void html_sums(struct report_html *page);     /* of spans, by name */
void html_facts(struct report_html *page);
void html_pipeline(struct report_html *page);
void html_memory(struct report_html *page);
void html_liveness(struct report_html *page);
void html_metrics(struct report_html *page);
void html_tensors(struct report_html *page);

/* The whole page about the run, to @out, whose failures are report_sink_close()'s to tell. */
enum status report_html_write(const struct report_export_request *request, struct report_sink *out,
			      struct err *err);

#endif /* REPORT_HTML_H */
