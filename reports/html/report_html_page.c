/*
 * `export html`: one self-contained page about a run; needs no network, and no scripts to be read.
 *
 * Threading: none. Ownership: the page lives for one call.
 */
#include "reports/html/report_html.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/str.h"
#include "reports/insights/report_insights.h"
#include "reports/summary/report_summary.h"

static const char page_style[] = {
#include "report_html_css.h"
};
static const char page_script[] = {
#include "report_html_js.h"
};

static void page_summary(struct report_html *page)
{
	struct report_summary summary = {0};
	char *text = NULL;
	size_t size = 0;
	FILE *memory;

	if (!html_check(page, report_summary_get(&summary, page->db, page->err)))
		return;
	memory = open_memstream(&text, &size);
	if (!memory || report_summary_print(&summary, 100, memory, page->err) != ST_OK)
		html_check(page, err_nomem(page->err));
	if (memory && fclose(memory))
		html_check(page, err_nomem(page->err));
	html_add(page, "<pre>");
	html_text(page, text);
	html_add(page, "</pre>\n");
	free(text);
	report_summary_free(&summary);
}

/* A sentence each, and what to do about it. */
static void page_insights(struct report_html *page)
{
	struct report_insights insights = {0};

	if (!html_check(page, report_insights_get(&insights, page->db, page->err)))
		return;
	html_add(page, "<ul>\n");
	for (int i = 0; i < insights.count; i++) {
		const struct report_insight *insight = &insights.items[i];

		html_addf(page, "<li><b>%s</b> ", report_insight_severity(insight->severity));
		html_text(page, insight->sentence);
		html_add(page, insight->remedy ? "<br><i>Do:</i> " : "");
		html_text(page, insight->remedy ? insight->remedy : "");
		html_add(page, "</li>\n");
	}
	html_add(page, "</ul>\n");
	if (insights.count == 0)
		html_note(page, "Nothing is to be said of this run.");
	report_insights_free(&insights);
}

/* The pages' sections, in order. */
static const struct {
	const char *id, *title, *around; /* the class of the element around it, or NULL */
	void (*write)(struct report_html *page);
} page_sections[] = {
	{"summary", "Summary", NULL, page_summary},
	{"insights", "Insights", NULL, page_insights},
	{"pipeline", "Pipeline", NULL, html_pipeline},
	{"memory", "Tile memory", "heats", html_memory},
	{"liveness", "Liveness", "charts", html_liveness},
	{"metrics", "Metrics", "charts", html_metrics},
	{"tensors", "Tensors", "charts", html_tensors},
};

static void page_head(struct report_html *page)
{
	char model[128];

	if (!prof_db_meta(page->db, "model", model, sizeof(model)) &&
	    !prof_db_meta(page->db, "command", model, sizeof(model)))
		str_copy(model, sizeof(model), prof_db_path(page->db));
	html_add(page, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		       "<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
	html_text(page, model);
	html_add(page, " - ipuscope</title>\n<style>\n");
	html_add(page, page_style);
	html_add(page, "</style>\n</head>\n<body>\n<h1>");
	html_text(page, model);
	html_add(page, "</h1>\n<nav>");
	for (size_t i = 0; i < ARRAY_LEN(page_sections); i++)
		html_addf(page, "<a href=\"#%s\">%s</a>", page_sections[i].id,
			  page_sections[i].title);
	html_add(page, "</nav>\n<p class=\"note\">Host figures are measured. Figures of the device "
		       "(cycles, tiles, exchange) are simulated.</p>\n");
}

static void page_section(struct report_html *page, size_t i)
{
	html_addf(page, "<section id=\"%s\">\n<h2>%s</h2>\n", page_sections[i].id,
		  page_sections[i].title);
	if (page_sections[i].around)
		html_addf(page, "<div class=\"%s\">\n", page_sections[i].around);
	page_sections[i].write(page);
	html_add(page, page_sections[i].around ? "</div>\n</section>\n" : "</section>\n");
}

enum status report_html_write(const struct report_export_request *request, struct report_sink *out,
			      struct err *err)
{
	struct report_html page = {.request = request, .db = request->db, .out = out, .err = err};

	page_head(&page);
	for (size_t i = 0; i < ARRAY_LEN(page_sections) && html_tick(&page, 0); i++)
		page_section(&page, i);
	html_add(&page, "<script>\n");
	html_add(&page, page_script);
	html_add(&page, "</script>\n</body>\n</html>\n");
	return page.status;
}

enum status report_export_html(const struct report_export_request *request, const char *path,
			       struct err *err)
{
	struct report_sink sink;
	char bytes[FMT_SIZE], what[FMT_SIZE + 16];
	enum status status = report_sink_open(&sink, path, err);

	if (status == ST_OK)
		status = report_sink_close(&sink, report_html_write(request, &sink, err));
	if (status != ST_OK)
		return status;
	snprintf(what, sizeof(what), "a page of %s", fmt_bytes(bytes, sink.bytes));
	return report_export_tell(request, path, what, "", err);
}
