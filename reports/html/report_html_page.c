/*
 * `export html`: a self-contained page about a run, readable without network and scripts.
 *
 * Threading: none. Ownership: the page lives for one call.
 */
#include "reports/html/report_html.h"

#include <string.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "reports/named/report_communication.h"

static const char page_style[] = {
#include "report_html_css.h"
};
static const char page_script[] = {
#include "report_html_js.h"
};

/* The page's sections in order of importance. A section is omitted if the run has no data for it.
 * @ours: 1 only for runs of ipu-train, -1 only for recordings of other programs, 0 both. */
static const struct {
	const char *id, *title, *around; /* class of the enclosing element, or NULL */
	const char *has;                 /* SQL that returns 1 if there are data; NULL: always */
	int ours;
	void (*write)(struct report_html *page);
} page_sections[] = {
	{"glance", "At a glance", NULL, NULL, 0, html_glance},
	{"pipeline", "Stages over time", NULL, "SELECT EXISTS (SELECT 1 FROM stage_timing_rows)", 0,
	 html_pipeline},
	{"timeline", "Timeline", NULL, "SELECT EXISTS (SELECT 1 FROM span_rows)", -1,
	 html_timeline},
	{"sums", "Sums by name", NULL, "SELECT EXISTS (SELECT 1 FROM span_rows)", -1, html_sums},
	{"metrics", "Loss and metrics", "charts", "SELECT EXISTS (SELECT 1 FROM metrics)", 0,
	 html_metrics},
	{"memory", "Tile memory", "heats", "SELECT EXISTS (SELECT 1 FROM tile_memory)", 0,
	 html_memory},
	{"liveness", "Liveness", "charts", "SELECT EXISTS (SELECT 1 FROM liveness)", 0,
	 html_liveness},
	{"tensors", "Tensors that moved", "charts",
	 "SELECT EXISTS (SELECT 1 FROM tensor_stat_rows)", 0, html_tensors},
	{"insights", "Insights", NULL, NULL, 0, html_insights},
	{"stages", "Stages", NULL, "SELECT EXISTS (SELECT 1 FROM stage_timing_rows)", 0,
	 html_stages},
	{"operations", "Operations", NULL, "SELECT EXISTS (SELECT 1 FROM operations)", 0,
	 html_operations},
	{"communication", "Communication", NULL, REPORT_HAS_CALLS, 0, html_communication},
	{"facts", "Facts and options", NULL, NULL, 0, html_facts},
};

static void write_head(struct report_html *page, const bool *has)
{
	char model[FS_PATH_SIZE];

	if (!prof_db_meta(page->db, "model", model, sizeof(model)) &&
	    !prof_db_meta(page->db, "trace_file", model, sizeof(model)) &&
	    !prof_db_meta(page->db, "command", model, sizeof(model)))
		str_copy(model, sizeof(model), prof_db_path(page->db));
	if (page->summary.origin == PROF_FROM_TRACE && strrchr(model, '/'))
		memmove(model, strrchr(model, '/') + 1, strlen(strrchr(model, '/')));
	html_add(page, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		       "<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
	html_text(page, model);
	html_add(page, " - ipuscope</title>\n<style>\n");
	html_add(page, page_style);
	html_add(page, "</style>\n</head>\n<body>\n<h1>");
	html_text(page, model);
	html_add(page, "</h1>\n<p class=\"note\">");
	html_text(page, page->summary.state);
	if (page->summary.ipus > 0)
		html_add(page, "; figures of the device (cycles, tiles, bubbles) are simulated, "
			       "those of the host are measured");
	html_add(page, "</p>\n<nav>");
	for (size_t i = 0; i < ARRAY_LEN(page_sections); i++)
		if (has[i])
			html_addf(page, "<a href=\"#%s\">%s</a> ", page_sections[i].id,
				  page_sections[i].title);
	html_add(page, "</nav>\n");
}

static void find_sections(struct report_html *page, bool *has)
{
	const int other = page->summary.origin == PROF_FROM_TRAINER ? -1 : 1;

	for (size_t i = 0; i < ARRAY_LEN(page_sections) && !err_stuck(page->err); i++) {
		int64_t any = page_sections[i].ours != other;

		if (any && page_sections[i].has)
			prof_db_number(page->db, page_sections[i].has, &any, page->err);
		has[i] = any == 1;
	}
}

static void write_page(struct report_html *page)
{
	bool has[ARRAY_LEN(page_sections)] = {false};

	if (report_summary_get(&page->summary, page->db, page->err) != ST_OK ||
	    report_insights_get(&page->insights, page->db, page->err) != ST_OK)
		return;
	find_sections(page, has);
	write_head(page, has);
	for (size_t i = 0; i < ARRAY_LEN(page_sections) && html_tick(page, 0); i++)
		if (has[i]) {
			html_addf(page, "<section id=\"%s\">\n<h2>%s</h2>\n", page_sections[i].id,
				  page_sections[i].title);
			if (page_sections[i].around)
				html_addf(page, "<div class=\"%s\">\n", page_sections[i].around);
			page_sections[i].write(page);
			html_add(page,
				 page_sections[i].around ? "</div>\n</section>\n" : "</section>\n");
		}
	html_add(page, "<script>\n");
	html_add(page, page_script);
	html_add(page, "</script>\n</body>\n</html>\n");
}

enum status report_html_write(const struct report_export_request *request, struct report_sink *out,
			      struct err *err)
{
	struct report_html page = {.request = request, .db = request->db, .out = out, .err = err};

	write_page(&page);
	report_summary_free(&page.summary);
	report_insights_free(&page.insights);
	return page.err->status;
}

enum status report_export_html(const struct report_export_request *request, const char *path,
			       struct err *err)
{
	struct report_sink sink;
	struct err own;
	char bytes[FMT_SIZE];

	err = err_start(err, &own);
	if (report_sink_open(&sink, path, err) == ST_OK)
		report_sink_close(&sink, report_html_write(request, &sink, err));
	return report_export_print_result(request, path, NULL, err, "a page of %s",
					  fmt_bytes(bytes, sink.bytes));
}
