/*
 * The sections without charts: cards with the key figures, the causes of the bubble as a bar,
 * insights, stages, sums, and the facts at the end.
 *
 * Threading: none. Ownership: the page owns the summary and the insights.
 */
#include "reports/html/report_html.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "reports/named/report_named.h"

/* ---- cards ----------------------------------------------------------------------------------- */

/* @good: 1 good, -1 bad, 0 neutral. @more: text below the value, or NULL. */
static void card(struct report_html *page, const char *title, int good, const char *value,
		 const char *more)
{
	html_addf(page, "<div class=\"card%s\"><h3>", good > 0 ? " good" : good < 0 ? " bad" : "");
	html_text(page, title);
	html_add(page, "</h3><b>");
	html_text(page, value);
	html_add(page, "</b><p>");
	html_text(page, more ? more : "");
	html_add(page, "</p></div>\n");
}

static void card_run(struct report_html *page)
{
	const struct report_summary *s = &page->summary;
	char text[FMT_SIZE], more[3 * FMT_SIZE], a[FMT_SIZE], b[FMT_SIZE];

	if (s->steps > 0)
		snprintf(more, sizeof(more), "%s step%s, %s weight update%s (host, measured)",
			 fmt_count(a, s->steps), s->steps == 1 ? "" : "s",
			 fmt_count(b, s->weight_updates), s->weight_updates == 1 ? "" : "s");
	else
		snprintf(more, sizeof(more), "%s span%s%s", fmt_count(a, s->spans),
			 s->spans == 1 ? "" : "s",
			 s->origin == PROF_FROM_TRACE ? ", an imported trace" : "");
	card(page, s->whole ? "Duration" : "Recorded so far", 0, fmt_ns(text, s->duration_ns),
	     more);
}

static void card_loss(struct report_html *page)
{
	const struct report_summary *s = &page->summary;
	char loss[FMT_SIZE], accuracy[FMT_SIZE], more[3 * FMT_SIZE], a[FMT_SIZE], b[FMT_SIZE];

	if (isnan(s->loss) && !s->loss_nan)
		return;
	more[0] = '\0';
	if (!isnan(s->accuracy))
		snprintf(more, sizeof(more), "accuracy %s", fmt_percent(accuracy, s->accuracy));
	card(page, "Loss, last epoch", s->loss_nan ? -1 : 0,
	     s->loss_nan ? "nan" : fmt_real(loss, s->loss), more);
	if (isnan(s->evaluate_loss))
		return;
	snprintf(more, sizeof(more), "loss %s", fmt_real(a, s->evaluate_loss));
	card(page, "Evaluated", 0,
	     isnan(s->evaluate_accuracy) ? fmt_real(b, s->evaluate_loss)
					 : fmt_percent(b, s->evaluate_accuracy),
	     isnan(s->evaluate_accuracy) ? NULL : more);
}

static void card_pipeline(struct report_html *page)
{
	const struct report_summary *s = &page->summary;
	const struct report_bubble_mean *device = &s->bubble[1];
	const struct report_stage *slowest = NULL;
	char idle[FMT_SIZE], theory[FMT_SIZE], more[3 * FMT_SIZE];
	double sum = 0, most = 0;

	if (device->known) {
		snprintf(more, sizeof(more), "of the pipeline's time; theory %s (simulated)",
			 fmt_percent(theory, device->theory_idle_fraction));
		card(page, "Bubble", 0, fmt_percent(idle, device->idle_fraction), more);
	}
	for (int64_t i = 0; i < s->stages; i++) {
		const double work =
			(double)s->stage[i].forward_ns[1] + (double)s->stage[i].backward_ns[1];

		sum += work;
		if (work > most)
			slowest = &s->stage[i];
		most = max(most, work);
	}
	if (s->stages < 2 || !slowest)
		return;
	snprintf(idle, sizeof(idle), "stage %" PRId64, slowest->stage);
	snprintf(more, sizeof(more), "%s of the work of %" PRId64 " stages (simulated)",
		 fmt_percent(theory, most / sum), s->stages);
	card(page, "Slowest stage", 0, idle, more);
}

/* The GPU or other accelerator that was at work longest. */
static void card_device(struct report_html *page)
{
	const struct report_accelerator *device = report_insights_device(&page->insights);
	char idle[FMT_SIZE], compute[FMT_SIZE], value[FMT_SIZE + 8], more[2 * FMT_SIZE + 64];
	char title[80];

	if (!device)
		return;
	snprintf(title, sizeof(title), "Idle: %.64s", device->name);
	snprintf(value, sizeof(value), "%s", fmt_percent(idle, device->idle / device->total));
	snprintf(more, sizeof(more), "from its first kernel to its last; compute %s",
		 fmt_percent(compute, device->compute / device->total));
	card(page, title, 0, value, more);
}

static void card_memory(struct report_html *page)
{
	static const char sql[] =
		"SELECT ipu, tile, bytes, capacity FROM (SELECT ipu, tile, sum(bytes) AS bytes, "
		"max(capacity) AS capacity FROM tile_memory GROUP BY ipu, tile) "
		"WHERE capacity > 0 ORDER BY bytes * 1.0 / capacity DESC, ipu, tile LIMIT 1";
	struct prof_query *query;
	char share[FMT_SIZE], bytes[FMT_SIZE], more[3 * FMT_SIZE];

	prof_query_open(&query, page->db, sql, page->err);
	if (prof_query_next(query, &page->err->status, page->err)) {
		const double used = prof_column_real(query, 2), has = prof_column_real(query, 3);

		snprintf(more, sizeof(more), "tile %" PRId64 " of IPU %" PRId64 ", %s (simulated)",
			 prof_column_int(query, 1), prof_column_int(query, 0),
			 fmt_bytes(bytes, used > 0 ? (uint64_t)used : 0));
		card(page, "Fullest tile", used > has ? -1 : 0, fmt_percent(share, used / has),
		     more);
	}
	prof_query_close(query);
}

static void card_health(struct report_html *page)
{
	const struct report_summary *s = &page->summary;
	char text[FMT_SIZE], more[256] = "";

	if (s->bad.known)
		snprintf(more, sizeof(more), "first %.16s in %.100s",
			 s->bad.value ? s->bad.value : "bad number",
			 s->bad.key ? s->bad.key : "a tensor");
	else if (s->broken_count > 0)
		snprintf(more, sizeof(more), "first %.60s",
			 s->broken[0].rule ? s->broken[0].rule : "?");
	if (s->broken_count > 0 || s->bad.known) {
		snprintf(text, sizeof(text), "%d rule%s broken", s->broken_count,
			 s->broken_count == 1 ? "" : "s");
		card(page, "Health", -1, text, more);
	} else if (s->rules > 0) {
		snprintf(more, sizeof(more), "of %" PRId64 " in force", s->rules);
		card(page, "Health", 1, "none broken", more);
	}
}

/* The number of insights of the most severe kind, and the first one. */
static void card_insights(struct report_html *page)
{
	static const char *const words[REPORT_INSIGHT_SEVERITIES][2] = {
		[REPORT_INSIGHT_PROBLEM] = {"problem", "problems"},
		[REPORT_INSIGHT_ADVICE] = {"piece of advice", "pieces of advice"},
		[REPORT_INSIGHT_NOTE] = {"note", "notes"}};
	const struct report_insights *insights = &page->insights;
	const struct report_insight *first = insights->items;
	char text[64];
	int count = 0;

	if (insights->count == 0)
		return;
	while (count < insights->count && first[count].severity == first->severity)
		count++;
	snprintf(text, sizeof(text), "%d %s", count, words[first->severity][count > 1]);
	card(page, "Insights", first->severity == REPORT_INSIGHT_PROBLEM ? -1 : 0, text, first->id);
}

void html_glance(struct report_html *page)
{
	html_add(page, "<div class=\"cards\">\n");
	card_run(page);
	card_loss(page);
	card_pipeline(page);
	card_device(page);
	card_memory(page);
	card_health(page);
	card_insights(page);
	html_add(page, "</div>\n");
}

/* ---- the bubble ------------------------------------------------------------------------------ */

void html_bubble(struct report_html *page)
{
	static const char *const names[] = {"host (measured)", "device (simulated)"};

	for (int clock = 1; clock >= 0 && page->summary.stages > 1; clock--) {
		const struct report_bubble_mean *bubble = &page->summary.bubble[clock];
		const struct {
			const char *name, *style;
			double share;
		} parts[] = {{"work", "pF", 1 - bubble->idle_fraction},
			     {"ramp-up", "c0", bubble->ramp_up},
			     {"ramp-down", "c1", bubble->ramp_down},
			     {"imbalance", "c2", bubble->imbalance},
			     {"communication", "c3", bubble->communication}};
		char text[FMT_SIZE];

		if (!bubble->known)
			continue;
		html_addf(page, "<p class=\"legend\">Bubble of the %s: <b>%s</b> of the time.",
			  names[clock], fmt_percent(text, bubble->idle_fraction));
		for (size_t i = 0; i < ARRAY_LEN(parts); i++)
			html_addf(page,
				  " <span class=\"part\"><span class=\"key %s\">&#9632;</span> %s "
				  "%s</span>",
				  parts[i].style, parts[i].name, fmt_percent(text, parts[i].share));
		html_add(page, "</p>\n<div class=\"bar\">");
		for (size_t i = 0; i < ARRAY_LEN(parts); i++)
			if (parts[i].share > 0)
				html_addf(page, "<i class=\"%s\" style=\"flex:%.5f\"></i>",
					  parts[i].style, parts[i].share);
		html_add(page, "</div>\n");
	}
}

/* ---- insights -------------------------------------------------------------------------------- */

/* One item per insight: its sentence and its remedy. */
void html_insights(struct report_html *page)
{
	html_add(page, "<ul class=\"insights\">\n");
	for (int i = 0; i < page->insights.count; i++) {
		const struct report_insight *insight = &page->insights.items[i];
		const char *severity = report_insight_severity(insight->severity);

		html_addf(page, "<li class=\"%s\"><b>%s</b> ", severity, severity);
		html_sentence(page, insight->sentence);
		if (insight->remedy) {
			html_add(page, "<br><i>Do:</i> ");
			html_sentence(page, insight->remedy);
		}
		html_add(page, "</li>\n");
	}
	html_add(page, "</ul>\n");
	if (page->insights.count == 0)
		html_note(page, "Nothing is to be said of this run.");
}

/* ---- reports as tables ----------------------------------------------------------------------- */

/* The first rows of the report @name, with the default columns of text. */
static void html_report(struct report_html *page, const char *name, int64_t limit)
{
	const struct report_choice choice = {0};
	const struct report_named *named = NULL;
	struct report_source source;
	struct report_table table;
	bool more;

	for (int i = 0; (named = report_named_at(i)) && strcmp(named->entry.name, name) != 0;)
		i++;
	if (!named || err_stuck(page->err))
		return;
	source = (struct report_source){.name = name,
					.sql = named->groupings[0].sql,
					.columns = named->groupings[0].columns,
					.sort = named->groupings[0].sort};
	if (report_select_table(&table, &source, &choice, page->db, true, limit + 1, page->err) !=
	    ST_OK)
		return;
	more = table.row_count > limit;
	table.row_count = min(table.row_count, limit);
	html_table(page, &table);
	if (more)
		html_note(page, "The first %lld rows; ipu-report REPORT %s has them all.",
			  (long long)limit, name);
	report_table_free(&table);
}

void html_stages(struct report_html *page)
{
	html_report(page, "stages", 100);
}

void html_operations(struct report_html *page)
{
	html_report(page, "operations", 20);
}

void html_communication(struct report_html *page)
{
	html_report(page, "communication", 50);
}

void html_sums(struct report_html *page)
{
	html_report(page, "span-sums", 50);
}

void html_facts(struct report_html *page)
{
	const struct report_summary *s = &page->summary;
	char started[FMT_SIZE], memory[FMT_SIZE];
	const struct {
		const char *name, *value;
	} facts[] = {{"file", s->path},
		     {"command", s->command},
		     {"state", s->state},
		     {"started", report_summary_started(s->start_epoch_ns, started)},
		     {"memory of the process on the host, at most",
		      s->peak_resident_bytes > 0
			      ? fmt_bytes(memory, (uint64_t)s->peak_resident_bytes)
			      : NULL}};
	const int count = ARRAY_LEN(facts);

	html_add(page, "<div class=\"scroll\"><table class=\"facts\">\n");
	for (int i = 0; i < count + s->option_count; i++) {
		if (i == count - 1 && !facts[i].value)
			continue;
		html_add(page, "<tr><th class=\"l\">");
		html_text(page, i < count ? facts[i].name : s->options[i - count].name);
		html_add(page, "</th><td class=\"l\">");
		html_text(page, i < count ? facts[i].value : s->options[i - count].value);
		html_add(page, "</td></tr>\n");
	}
	html_add(page, "</table></div>\n");
}
