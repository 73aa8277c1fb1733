/*
 * Liveness: live bytes of each IPU over the steps of the program.
 *
 * Threading: none. Ownership: the curves live for one section.
 */
#include "reports/html/report_html.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/mem.h"

#define IPUS_MAX 16 /* charts of a page */

static const char sql_ipus[] = "SELECT DISTINCT ipu FROM liveness ORDER BY ipu";
static const char sql_liveness[] =
	"SELECT program_step, always_live_bytes, not_always_live_bytes FROM liveness "
	"WHERE ipu IS :ipu ORDER BY program_step";

struct liveness {
	struct html_curve always, all;
};

static enum status read_liveness(struct liveness *live, struct prof_db *db, int64_t ipu,
				 struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql_liveness, err);

	html_curve_begin(&live->always);
	html_curve_begin(&live->all);
	prof_query_int(query, ":ipu", ipu);
	while (prof_query_next(query, &status, err)) {
		const double step = prof_column_real(query, 0), always = prof_column_real(query, 1);

		html_curve_add(&live->always, step, always);
		html_curve_add(&live->all, step, always + prof_column_real(query, 2));
	}
	prof_query_close(query);
	return status;
}

/* Draw the maximum of a point, not its mean: peaks must not be smoothed. */
static void make_peak_series(struct html_curve *curve, const char *name, struct html_series *out)
{
	html_curve_series(curve, name, true, out);
	out->y = out->high;
	out->low = out->high = NULL;
	out->area = true;
}

static void draw_liveness(struct report_html *page, struct liveness *live, int64_t ipu)
{
	struct html_series series[2];
	char title[80];

	snprintf(title, sizeof(title), "IPU %" PRId64 ": live bytes by program step", ipu);
	make_peak_series(&live->all, "not always live", &series[0]);
	make_peak_series(&live->always, "always live", &series[1]);
	html_chart(page, &(struct html_chart){.title = title,
					      .x_name = "program step",
					      .quantity = REPORT_BYTES,
					      .from_zero = true,
					      .series = series,
					      .count = ARRAY_LEN(series)});
}

/* Read the IPUs to draw, at most IPUS_MAX. */
static enum status read_ipus(struct prof_db *db, int64_t ipus[IPUS_MAX], int *count,
			     struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql_ipus, err);

	*count = 0;
	while (*count < IPUS_MAX && prof_query_next(query, &status, err)) {
		if (prof_column_type(query, 0) == PROF_INT)
			ipus[(*count)++] = prof_column_int(query, 0);
	}
	prof_query_close(query);
	return status;
}

void html_liveness(struct report_html *page)
{
	struct liveness *live = mem_alloc(sizeof(*live));
	int64_t ipus[IPUS_MAX];
	int count = 0;

	if (!live)
		html_check(page, err_nomem(page->err));
	if (live)
		html_check(page, read_ipus(page->db, ipus, &count, page->err));
	for (int i = 0; live && i < count && page->status == ST_OK; i++)
		if (html_check(page, read_liveness(live, page->db, ipus[i], page->err)))
			draw_liveness(page, live, ipus[i]);
	mem_free(live);
}
