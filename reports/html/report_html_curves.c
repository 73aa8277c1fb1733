/*
 * Curves over the run: metrics, and statistics of the outfed tensors.
 *
 * One pass over the rows each; memory is bounded by the maximum number of curves.
 * Threading: none. Ownership: the curves live for one section.
 */
#include "reports/html/report_html.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"

#define METRICS_MAX 12
#define TENSORS_MAX 24
#define NAME_SIZE   160

/* Return "?" for NULL, which a damaged file may contain. */
static const char *text_or_unknown(const struct prof_query *query, int column)
{
	const char *text = prof_column_text(query, column);

	return text ? text : "?";
}

/* ---- metrics --------------------------------------------------------------------------------- */

struct metric_curve {
	char name[NAME_SIZE]; /* "train loss" */
	struct html_curve curve;
};

struct metric_curves {
	struct metric_curve *at;
	int count, left_out;
};

/* Metrics of steps; values of whole epochs have no step and are in the table. */
static const char sql_metrics[] =
	"SELECT coalesce(mode, '') || ' ' || coalesce(name, ''), step, value FROM metrics "
	"WHERE step IS NOT NULL ORDER BY name <> 'loss', mode <> 'train', time_ns, step";
static const char sql_epochs[] =
	"SELECT mode, epoch, name, ifnull(value, 'nan') AS value FROM metrics WHERE step IS NULL "
	"ORDER BY time_ns, name";

static struct metric_curve *get_metric_curve(struct metric_curves *curves, const char *name)
{
	for (int i = 0; i < curves->count; i++)
		if (!strncmp(curves->at[i].name, name, NAME_SIZE - 1))
			return &curves->at[i];
	if (curves->count == METRICS_MAX) {
		curves->left_out++;
		return NULL;
	}
	str_copy(curves->at[curves->count].name, NAME_SIZE, name);
	html_curve_begin(&curves->at[curves->count].curve);
	return &curves->at[curves->count++];
}

static void draw_metric(struct report_html *page, struct metric_curve *metric)
{
	struct html_series series;
	char title[NAME_SIZE + 40], note[160], count[FMT_SIZE], all[FMT_SIZE], at[FMT_SIZE];
	double first;
	const int64_t bad = html_curve_bad(&metric->curve, &first);
	int64_t values = 0;

	for (size_t i = 0; i < metric->curve.count; i++)
		values += metric->curve.points[i].held;
	snprintf(note, sizeof(note), "NaN or infinite: %s of %s values, the first at step %s.",
		 fmt_count(count, bad), fmt_count(all, values),
		 fmt_count(at, bad > 0 ? (int64_t)first : 0));
	html_curve_series(&metric->curve, metric->name, metric->curve.per > 1, &series);
	snprintf(title, sizeof(title), "%s by step", metric->name);
	if (metric->curve.per > 1)
		snprintf(title, sizeof(title),
			 "%.120s by step: means of %" PRId64 " steps, and their range",
			 metric->name, metric->curve.per);
	html_chart(page, &(struct html_chart){.title = title,
					      .x_name = "step",
					      .note = bad > 0 ? note : NULL,
					      .quantity = REPORT_REAL,
					      .series = &series,
					      .count = 1});
}

void html_metrics(struct report_html *page)
{
	struct metric_curves curves = {.at = mem_calloc(METRICS_MAX, sizeof(*curves.at))};
	struct prof_query *query = NULL;
	int64_t rows = 0;

	if (!curves.at)
		err_nomem(page->err);
	else
		prof_query_open(&query, page->db, sql_metrics, page->err);
	while (html_tick(page, ++rows) && prof_query_next(query, &page->err->status, page->err)) {
		struct metric_curve *curve = get_metric_curve(&curves, text_or_unknown(query, 0));

		if (curve)
			html_curve_add(&curve->curve, prof_column_real(query, 1),
				       prof_column_real(query, 2));
	}
	prof_query_close(query);
	for (int i = 0; i < curves.count; i++)
		draw_metric(page, &curves.at[i]);
	if (curves.left_out > 0)
		html_note(page, "Values of further metrics, not drawn: %d.", curves.left_out);
	html_query(page, "metrics", sql_epochs, 1000);
	mem_free(curves.at);
}

/* ---- tensors --------------------------------------------------------------------------------- */

struct tensor_curve {
	int64_t tensor_id;
	char title[NAME_SIZE];
	struct html_curve mean, std;
	int64_t bad, first_bad; /* rows with NaN or infinity, and the step of the first */
};

struct tensor_curves {
	struct tensor_curve *at;
	int count;
	int64_t left_out; /* tensors without a chart */
};

/* Tensors with non-finite values first, then by the ratio of the greatest to the least std. */
static const char sql_tensors[] =
	"SELECT t.tensor_id, coalesce(key, '?') || ' (' || coalesce(kind, 'tensor') || "
	"coalesce(' of ' || layer, '') || ')', s.moved FROM tensor_rows t "
	"LEFT JOIN (SELECT tensor_id, max(std) / nullif(min(CASE WHEN std > 0 THEN std END), 0) "
	" AS moved, sum(n_nan + n_pos_inf + n_neg_inf) > 0 AS bad FROM tensor_stat_rows "
	" GROUP BY tensor_id) s ON s.tensor_id = t.tensor_id "
	"ORDER BY s.bad DESC, s.moved DESC, t.tensor_id";
static const char sql_stats[] =
	"SELECT s.tensor_id, coalesce(c.step, c.weight_update, s.row_id), s.mean, s.min, s.max, "
	"s.std, coalesce(s.n_nan, 0) + coalesce(s.n_pos_inf, 0) + coalesce(s.n_neg_inf, 0) "
	"FROM tensor_stat_rows s LEFT JOIN contexts c ON c.context_id = s.context_id "
	"WHERE s.mean IS NOT NULL OR s.n_nan + s.n_pos_inf + s.n_neg_inf > 0 ORDER BY s.row_id";

static void select_tensors(struct tensor_curves *curves, struct report_html *page)
{
	struct prof_query *query;

	prof_query_open(&query, page->db, sql_tensors, page->err);
	while (prof_query_next(query, &page->err->status, page->err)) {
		struct tensor_curve *curve = &curves->at[curves->count];
		double moved;

		if (curves->count == TENSORS_MAX) {
			curves->left_out++;
			continue;
		}
		curve->tensor_id = prof_column_int(query, 0);
		moved = prof_column_real(query, 2);
		if (isfinite(moved))
			snprintf(curve->title, sizeof(curve->title),
				 "%.120s: std up to %.3g times its least",
				 text_or_unknown(query, 1), moved);
		else
			str_copy(curve->title, sizeof(curve->title), text_or_unknown(query, 1));
		html_curve_begin(&curve->mean);
		html_curve_begin(&curve->std);
		curves->count++;
	}
	prof_query_close(query);
}

static void add_tensor_row(struct tensor_curve *curve, const struct prof_query *query)
{
	const double x = prof_column_real(query, 1);

	html_curve_add_range(&curve->mean, x, prof_column_real(query, 2),
			     prof_column_real(query, 3), prof_column_real(query, 4));
	html_curve_add(&curve->std, x, prof_column_real(query, 5));
	if (prof_column_int(query, 6) > 0 && curve->bad++ == 0)
		curve->first_bad = prof_column_int(query, 1);
}

void html_tensors(struct report_html *page)
{
	struct tensor_curves curves = {.at = mem_calloc(TENSORS_MAX, sizeof(*curves.at))};
	struct prof_query *query = NULL;
	int64_t rows = 0;
	int drawn = 0;

	if (!curves.at)
		err_nomem(page->err);
	else
		select_tensors(&curves, page);
	if (!err_stuck(page->err))
		prof_query_open(&query, page->db, sql_stats, page->err);
	while (html_tick(page, ++rows) && prof_query_next(query, &page->err->status, page->err))
		for (int i = 0; i < curves.count; i++)
			if (curves.at[i].tensor_id == prof_column_int(query, 0))
				add_tensor_row(&curves.at[i], query);
	prof_query_close(query);
	for (int i = 0; i < curves.count; i++) {
		struct tensor_curve *curve = &curves.at[i];
		struct html_series series[2];
		char note[120];

		if (curve->mean.count == 0)
			continue;
		snprintf(note, sizeof(note),
			 "%" PRId64 " rows with NaN or infinity, the first at %" PRId64 ".",
			 curve->bad, curve->first_bad);
		html_curve_series(&curve->mean, "mean, and from min to max", true, &series[0]);
		html_curve_series(&curve->std, "std", false, &series[1]);
		html_chart(page,
			   &(struct html_chart){.title = curve->title,
						.x_name = "step (of gradients: weight update)",
						.note = curve->bad > 0 ? note : NULL,
						.quantity = REPORT_REAL,
						.series = series,
						.count = ARRAY_LEN(series)});
		drawn++;
	}
	if (curves.left_out > 0)
		html_note(page,
			  "%" PRId64 " more tensors are not drawn; ipu-report REPORT "
			  "tensor_stats has all.",
			  curves.left_out);
	if (drawn == 0)
		html_note(page, "No statistics of tensors were recorded.");
	mem_free(curves.at);
}
