/*
 * What `ipu-plan schedule` prints.
 *
 * Threading: none. No state. A figure that is not known prints as "-", in JSON as null.
 */
#include "model/plan/plan_schedule_print.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/jsonw.h"
#include "common/str.h"
#include "model/plan/plan_gantt.h"

#define NS_PER_MS   1e6
#define FIGURE_SIZE 48

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_timeline(struct jsonw *w, const struct ipu_pipeline *pipeline)
{
	jsonw_key(w, "timeline");
	jsonw_begin_array(w);
	for (int i = 0; i < pipeline->first[pipeline->stages]; i++) {
		const struct ipu_pipeline_work *work = &pipeline->works[i];
		const char phase[2] = {work->phase, '\0'};

		jsonw_begin_object(w);
		jsonw_key_int(w, "stage", work->stage);
		jsonw_key_int(w, "chunk", work->chunk);
		jsonw_key_int(w, "microbatch", work->microbatch);
		jsonw_key_text(w, "phase", phase);
		jsonw_key_real(w, "start_ms", (double)work->start_ns / NS_PER_MS);
		jsonw_key_real(w, "end_ms", (double)work->end_ns / NS_PER_MS);
		jsonw_end_object(w);
	}
	jsonw_end_array(w);
}

static void json_peaks(struct jsonw *w, const struct ipu_pipeline *pipeline)
{
	jsonw_key(w, "peak_activations");
	jsonw_begin_array(w);
	for (int s = 0; s < pipeline->stages; s++)
		jsonw_real(w, pipeline->peak_activations[s]);
	jsonw_end_array(w);
	jsonw_key(w, "peak_weight_gradients");
	jsonw_begin_array(w);
	for (int s = 0; s < pipeline->stages; s++)
		jsonw_int(w, pipeline->peak_weights[s]);
	jsonw_end_array(w);
}

static void json_pipeline(struct jsonw *w, const struct ipu_pipeline *pipeline,
			  const struct plan_schedule_style *style)
{
	const struct ipu_bubble *bubble = &pipeline->bubble;
	const struct ipu_pipeline_closed *closed = &pipeline->closed;

	jsonw_begin_object(w);
	jsonw_key_text(w, "schedule", ipu_schedule_name(pipeline->kind));
	jsonw_key_int(w, "stages", pipeline->stages);
	jsonw_key_int(w, "microbatches", pipeline->microbatches);
	jsonw_key_int(w, "chunks", pipeline->chunks);
	jsonw_key_real(w, "makespan_ms", (double)bubble->makespan_ns / NS_PER_MS);
	jsonw_key_real(w, "idle_fraction", bubble->idle_fraction);
	jsonw_key_real(w, "bubble_rate", bubble->bubble_rate);
	jsonw_key_real(w, "bubble_over_ideal", bubble->bubble_over_ideal);
	jsonw_key_real(w, "closed_form_makespan_ms", closed->makespan_ns / NS_PER_MS);
	jsonw_key_real(w, "closed_form_idle_fraction", closed->idle_fraction);
	jsonw_key_real(w, "closed_form_bubble_rate", closed->bubble_rate);
	jsonw_key_real(w, "closed_form_bubble_over_ideal", closed->bubble_over_ideal);
	json_peaks(w, pipeline);
	if (style->timeline)
		json_timeline(w, pipeline);
	jsonw_end_object(w);
}

static void json_refusal(struct jsonw *w, const struct plan_schedule_row *row)
{
	jsonw_begin_object(w);
	jsonw_key_text(w, "schedule", ipu_schedule_name(row->kind));
	jsonw_key_text(w, "error", row->refusal.text);
	jsonw_end_object(w);
}

enum status plan_schedule_json(const struct ipu_pipeline *pipeline,
			       const struct plan_schedule_style *style, FILE *out, struct err *err)
{
	struct jsonw w;

	jsonw_init_file(&w, out, 2);
	json_pipeline(&w, pipeline, style);
	return jsonw_end(&w, err);
}

enum status plan_schedule_json_all(const struct plan_schedule_row *rows, int count,
				   const struct plan_schedule_style *style, FILE *out,
				   struct err *err)
{
	struct jsonw w;

	jsonw_init_file(&w, out, 2);
	jsonw_begin_array(&w);
	for (int i = 0; i < count; i++) {
		if (rows[i].pipeline)
			json_pipeline(&w, rows[i].pipeline, style);
		else
			json_refusal(&w, &rows[i]);
	}
	jsonw_end_array(&w);
	return jsonw_end(&w, err);
}

/* ---- text ------------------------------------------------------------------------------------ */

static const char *figure(char out[FIGURE_SIZE], double value, int decimals, const char *unit)
{
	if (isfinite(value))
		snprintf(out, FIGURE_SIZE, "%.*f%s", decimals, value, unit);
	else
		snprintf(out, FIGURE_SIZE, "-");
	return out;
}

static void text_pair(struct str *text, const char *name, double simulated, double closed,
		      int decimals, const char *unit)
{
	char a[FIGURE_SIZE], b[FIGURE_SIZE];

	str_addf(text, "%-23s%18s%18s\n", name, figure(a, simulated, decimals, unit),
		 figure(b, closed, decimals, unit));
}

static void text_figures(struct str *text, const struct ipu_pipeline *pipeline)
{
	const struct ipu_bubble *bubble = &pipeline->bubble;
	const struct ipu_pipeline_closed *closed = &pipeline->closed;

	str_addf(text, "%-23s%18s%18s\n", "", "simulated", "closed form");
	text_pair(text, "makespan", (double)bubble->makespan_ns / NS_PER_MS,
		  closed->makespan_ns / NS_PER_MS, 3, " ms");
	text_pair(text, "idle_fraction", bubble->idle_fraction, closed->idle_fraction, 4, "");
	text_pair(text, "bubble_rate", bubble->bubble_rate, closed->bubble_rate, 4, "");
	text_pair(text, "bubble_over_ideal", bubble->bubble_over_ideal, closed->bubble_over_ideal,
		  4, "");
}

/* Lists by stage in lines of the width, each below the other's first figure. */
static void text_list(struct str *text, const char *name, const struct ipu_pipeline *pipeline,
		      bool weights, int width)
{
	char one[FIGURE_SIZE];
	int indent = 25, column = indent;

	str_addf(text, "%-*s", indent, name);
	for (int s = 0; s < pipeline->stages; s++) {
		double value = weights ? pipeline->peak_weights[s] : pipeline->peak_activations[s];
		int length = snprintf(one, sizeof(one), " %.4g", value);

		if (column > indent && column + length > width) {
			str_addf(text, "\n%*s", indent, "");
			column = indent;
		}
		str_add(text, one);
		column += length;
	}
	str_add(text, "\n");
}

static void text_notes(struct str *text, enum ipu_schedule_kind kind,
		       const struct plan_schedule_style *style)
{
	const struct ipu_schedule_row *row = ipu_schedule_row(kind);

	if (style->halved && row->splits)
		str_addf(text,
			 "%s: --backward is taken as half for the input, half for the weights\n",
			 ipu_schedule_name(kind));
	if (style->hops && row->closed_note)
		str_addf(text, "%s: %s\n", ipu_schedule_name(kind), row->closed_note);
}

static enum status print(struct str *text, FILE *out, struct err *err)
{
	enum status status = ST_OK;

	if (text->failed)
		status = err_nomem(err);
	else if (fwrite(str_peek(text), 1, text->length, out) != text->length || fflush(out) != 0)
		status = err_set(err, ST_IO, "write: %s", strerror(errno));
	str_free(text);
	return status;
}

enum status plan_schedule_text(const struct ipu_pipeline *pipeline,
			       const struct plan_schedule_style *style, FILE *out, struct err *err)
{
	struct plan_gantt_params gantt = {
		.width = style->width, .colour = style->colour, .unicode = style->unicode};
	struct str text = {0};

	str_addf(&text, "%s, %d stages, %d micro-batches", ipu_schedule_name(pipeline->kind),
		 pipeline->stages, pipeline->microbatches);
	if (pipeline->chunks > 1)
		str_addf(&text, ", %d chunks", pipeline->chunks);
	str_addf(&text, "\n%s\n\n", ipu_schedule_row(pipeline->kind)->about);
	plan_gantt(pipeline, &gantt, &text);
	str_add(&text, "\n");
	text_figures(&text, pipeline);
	str_add(&text, "\nmicro-batches at most at once, by stage\n");
	text_list(&text, "activations", pipeline, false, style->width);
	if (ipu_schedule_row(pipeline->kind)->splits)
		text_list(&text, "held-back W", pipeline, true, style->width);
	text_notes(&text, pipeline->kind, style);
	return print(&text, out, err);
}

static double highest(const struct ipu_pipeline *pipeline)
{
	double most = 0;

	for (int s = 0; s < pipeline->stages; s++)
		most = fmax(most, pipeline->peak_activations[s]);
	return most;
}

static void text_row(struct str *text, const struct ipu_pipeline *pipeline)
{
	const struct ipu_bubble *bubble = &pipeline->bubble;
	char figures[6][FIGURE_SIZE];

	str_addf(text, "%-17s%13s%10s%8s%8s%8s%12s\n", ipu_schedule_name(pipeline->kind),
		 figure(figures[0], (double)bubble->makespan_ns / NS_PER_MS, 3, ""),
		 figure(figures[1], bubble->idle_fraction, 4, ""),
		 figure(figures[2], bubble->bubble_rate, 4, ""),
		 figure(figures[3], bubble->bubble_over_ideal, 4, ""),
		 figure(figures[4], pipeline->closed.bubble_rate, 4, ""),
		 figure(figures[5], highest(pipeline), pipeline->chunks > 1 ? 2 : 0, ""));
}

enum status plan_schedule_text_all(const struct plan_schedule_row *rows, int count,
				   const struct plan_schedule_style *style, FILE *out,
				   struct err *err)
{
	struct str text = {0};

	str_addf(&text, "%-17s%13s%10s%8s%8s%8s%12s\n", "schedule", "makespan", "idle", "bubble",
		 "over", "closed", "activations");
	str_addf(&text, "%-17s%13s%10s%8s%8s%8s%12s\n", "", "ms", "fraction", "rate", "ideal",
		 "rate", "at most");
	for (int i = 0; i < count; i++)
		if (rows[i].pipeline)
			text_row(&text, rows[i].pipeline);
	for (int i = 0; i < count; i++)
		if (!rows[i].pipeline)
			str_addf(&text, "not possible: %s\n", rows[i].refusal.text);
	for (int i = 0; i < count; i++)
		if (rows[i].pipeline)
			text_notes(&text, rows[i].kind, style);
	return print(&text, out, err);
}
