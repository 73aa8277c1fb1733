/*
 * The insights as text, as rows, and as the report `insights`.
 *
 * Threading: none. Ownership: texts of a table belong to its arena.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/fmt.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "reports/insights/report_insights.h"
#include "reports/insights/report_insights_internal.h"
#include "reports/table/report_internal.h"
#include "reports/report_registry.h"
#include "reports/table/report_select.h"

#define WIDTH_DEFAULT 80
#define WIDTH_MOST    100 /* readability limit */

/* ---- text ------------------------------------------------------------------------------------ */

/* "step 103 us -> 91 us, bubble 55.17 % -> 48.1 %" */
static void add_pair(struct str *text, const char *name, const double pair[2],
		     enum report_quantity quantity)
{
	char a[FMT_SIZE], b[FMT_SIZE];

	if (!isfinite(pair[0]) || !isfinite(pair[1]))
		return;
	for (int i = 0; i < 2; i++) {
		char *out = i ? b : a;

		if (quantity == REPORT_NS)
			fmt_ns(out, (int64_t)pair[i]);
		else if (quantity == REPORT_BYTES)
			fmt_bytes(out, pair[i] > 0 ? (uint64_t)pair[i] : 0);
		else
			fmt_percent(out, pair[i]);
	}
	str_addf(text, "%s%s %s -> %s", text->length ? "; " : "", name, a, b);
}

static void print_insight(FILE *out, const struct report_insight *insight, int width,
			  struct str *expected)
{
	const struct report_insight_gain *gain = &insight->gain;
	char head[64 + INSIGHT_NAME], subject[INSIGHT_NAME];

	str_shorten(subject, sizeof(subject), insight->subject ? insight->subject : "");
	snprintf(head, sizeof(head), "%s%s%s%s%s", insight->id, insight->subject ? ": " : "",
		 insight->subject ? insight->subject_kind : "", insight->subject ? " " : "",
		 subject);
	fputc('\n', out);
	report__fold(out, "", head, width);
	report__fold(out, " ", insight->sentence, width);
	if (insight->remedy)
		report__fold(out, "  Do:", insight->remedy, width);
	str_clear(expected);
	add_pair(expected, "step", gain->step_ns, REPORT_NS);
	add_pair(expected, "bubble", gain->idle_fraction, REPORT_FRACTION);
	add_pair(expected, "always live", gain->bytes, REPORT_BYTES);
	if (expected->length)
		report__fold(out, "  Simulated:", str_peek(expected), width);
}

/* Print as text, at most @width columns (0: 80). */
static enum status print_insights(const struct report_insights *insights, int width, FILE *out,
				  struct err *err)
{
	static const char *const heads[REPORT_INSIGHT_SEVERITIES] = {"Problems", "Advice", "Notes"};
	static const char *const many[REPORT_INSIGHT_SEVERITIES] = {"problems", "pieces of advice",
								    "notes"};
	static const char *const one[REPORT_INSIGHT_SEVERITIES] = {"problem", "piece of advice",
								   "note"};
	int counts[REPORT_INSIGHT_SEVERITIES] = {0}, last = -1;
	struct str expected = {0};
	bool failed = false;

	if (width <= 0)
		width = WIDTH_DEFAULT;
	width = min(width, WIDTH_MOST);
	for (int i = 0; i < insights->count; i++)
		counts[insights->items[i].severity]++;
	fputs("Insights: ", out);
	for (int i = 0; i < REPORT_INSIGHT_SEVERITIES; i++)
		fprintf(out, "%s%d %s", i ? ", " : "", counts[i],
			counts[i] == 1 ? one[i] : many[i]);
	fputc('\n', out);
	for (int i = 0; i < insights->count; i++) {
		const struct report_insight *insight = &insights->items[i];

		if ((int)insight->severity != last)
			fprintf(out, "\n%s\n", heads[insight->severity]);
		last = (int)insight->severity;
		print_insight(out, insight, width, &expected);
		failed = failed || expected.failed;
	}
	if (insights->not_looked) {
		fputs("\nNot looked for, as the recording lacks it\n", out);
		report__fold(out, " ", insights->not_looked, width);
	}
	str_free(&expected);
	if (failed)
		return err_nomem(err);
	if (fflush(out) || ferror(out))
		return err_set(err, ST_IO, "write: %s", strerror(errno));
	return ST_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static const char *const quantity_words[] = {
	[REPORT_TEXT] = "text", [REPORT_NUMBER] = "number",     [REPORT_COUNT] = "count",
	[REPORT_NS] = "ns",     [REPORT_BYTES] = "bytes",       [REPORT_CYCLES] = "cycles",
	[REPORT_REAL] = "real", [REPORT_FRACTION] = "fraction", [REPORT_BOOL] = "bool",
};

/* [{"name": "ramp_share", "value": 0.06, "quantity": "fraction"}] */
static const char *numbers_text(struct str *text, const struct report_insight *insight)
{
	struct jsonw w;

	jsonw_init_str(&w, text, 0);
	jsonw_begin_array(&w);
	for (int i = 0; i < insight->number_count; i++) {
		jsonw_begin_object(&w);
		jsonw_key_text(&w, "name", insight->numbers[i].name);
		jsonw_key_real(&w, "value", insight->numbers[i].value);
		jsonw_key_text(&w, "quantity", quantity_words[insight->numbers[i].quantity]);
		jsonw_end_object(&w);
	}
	jsonw_end_array(&w);
	return str_peek(text);
}

static struct report_cell real_cell(double value)
{
	return (struct report_cell){.type = isfinite(value) ? PROF_REAL : PROF_NULL, .real = value};
}

static void put_insight(struct report_table *table, int64_t position,
			const struct report_insight *insight, struct err *err)
{
	const char *severity = report_insight_severity(insight->severity);
	const struct report_insight_gain *gain = &insight->gain;
	/* 0 means not estimated: NULL in the table. */
	const double share = insight->share > 0 ? insight->share : (double)NAN;
	struct str text = {0};
	const char *numbers = numbers_text(&text, insight);
	const struct report_value values[] = {
		{{"severity", REPORT_TEXT}, report_cell_of_text(severity)},
		{{"id", REPORT_TEXT}, report_cell_of_text(insight->id)},
		{{"subject_kind", REPORT_TEXT}, report_cell_of_text(insight->subject_kind)},
		{{"subject", REPORT_TEXT}, report_cell_of_text(insight->subject)},
		{{"share", REPORT_FRACTION}, real_cell(share)},
		{{"sentence", REPORT_TEXT}, report_cell_of_text(insight->sentence)},
		{{"remedy", REPORT_TEXT}, report_cell_of_text(insight->remedy)},
		{{"measured_step_ns", REPORT_NS}, real_cell(gain->step_ns[0])},
		{{"predicted_step_ns", REPORT_NS}, real_cell(gain->step_ns[1])},
		{{"measured_idle_fraction", REPORT_FRACTION}, real_cell(gain->idle_fraction[0])},
		{{"predicted_idle_fraction", REPORT_FRACTION}, real_cell(gain->idle_fraction[1])},
		{{"measured_bytes", REPORT_BYTES}, real_cell(gain->bytes[0])},
		{{"predicted_bytes", REPORT_BYTES}, real_cell(gain->bytes[1])},
		{{"numbers", REPORT_TEXT}, report_cell_of_text(numbers)},
		{{"view", REPORT_TEXT}, report_cell_of_text(insight->view)},
		{{"keys", REPORT_TEXT}, report_cell_of_text(insight->keys)},
		{{"sql", REPORT_TEXT}, report_cell_of_text(insight->sql)},
		{{"position", REPORT_NUMBER}, report_cell_of_int(position)},
	};

	if (text.failed && !err_stuck(err))
		err_nomem(err);
	report_table_put(table, values, ARRAY_LEN(values), err);
	str_free(&text);
}

enum status report_insights_table(struct report_table *out, const struct report_insights *insights,
				  struct err *err)
{
	static const struct report_insight none = {.keys = ""};
	struct err own;

	err = err_start(err, &own);
	report_table_begin(out, "insights", insights->count, err);
	for (int i = 0; i < insights->count; i++)
		put_insight(out, i, &insights->items[i], err);
	if (insights->count == 0) {
		/* The columns of a table without rows. */
		put_insight(out, 0, &none, err);
		out->row_count = 0;
	}
	if (err_stuck(err))
		report_table_free(out);
	return err->status;
}

/* ---- the report ------------------------------------------------------------------------------ */

/* Keep only the chosen insights, in the order of the choice. */
static enum status choose_insights(struct report_insights *insights,
				   const struct report_source *source,
				   const struct report_request *request, int64_t limit,
				   struct err *err)
{
	struct report_choice choice = request->choice;
	struct report_insight *chosen;
	struct report_table table;
	enum status status;

	choice.columns = "position";
	status = report_select_table(&table, source, &choice, request->db, false, limit, err);
	if (status != ST_OK)
		return status;
	chosen = arena_alloc(&insights->arena, (size_t)table.row_count + 1, sizeof(*chosen));
	for (int64_t i = 0; chosen && i < table.row_count; i++)
		chosen[i] = insights->items[table.cells[i].integer];
	if (chosen) {
		insights->items = chosen;
		insights->count = (int)table.row_count;
	}
	report_table_free(&table);
	return chosen ? ST_OK : err_nomem(err);
}

static enum status write_insights(struct report_insights *insights,
				  const struct report_request *request, struct err *err)
{
	const bool people = request->render.format == REPORT_AS_TEXT && !request->choice.columns;
	const int64_t limit = request->limit == REPORT_LIMIT_DEFAULT ? 0 : request->limit;
	struct report_table rows;
	struct report_source source = {.name = "insights", .sort = "position", .rows = &rows};
	enum status status = report_insights_table(&rows, insights, err);

	if (status != ST_OK)
		return status;
	if (people || request->choice.sql)
		status = choose_insights(insights, &source, request, limit, err);
	else
		status = report_select_write(&source, &request->choice, request->db,
					     &request->render, limit, request->out, err);
	if (status != ST_OK)
		goto done;
	if (request->choice.sql) {
		for (int i = 0; i < insights->count; i++)
			if (insights->items[i].sql)
				fprintf(request->out, "%s-- %s\n%s;\n", i ? "\n" : "",
					insights->items[i].id, insights->items[i].sql);
		if (fflush(request->out) || ferror(request->out))
			status = err_set(err, ST_IO, "write: %s", strerror(errno));
	} else if (people) {
		status = print_insights(insights, request->render.width, request->out, err);
	}
done:
	report_table_free(&rows);
	return status;
}

enum status report_run_insights(const struct report_entry *entry,
				const struct report_request *request, struct err *err)
{
	struct report_insights insights;
	enum status status;

	if (request->choice.by)
		return err_set(err, ST_INVALID, "--by: `%s` has one grouping only", entry->name);
	status = report_insights_get(&insights, request->db, err);
	if (status != ST_OK)
		return status;
	status = write_insights(&insights, request, err);
	report_insights_free(&insights);
	return status;
}
