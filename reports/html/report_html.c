/*
 * Text and tables of a page of HTML.
 *
 * Threading: none. Ownership: everything is borrowed.
 */
#include "reports/html/report_html.h"

#include <stdarg.h>
#include <string.h>

#include "common/str.h"
#include "reports/table/report_internal.h"

#define TICK_ROWS 8192

bool html_tick(struct report_html *page, int64_t rows)
{
	if (rows % TICK_ROWS == 0 && !err_stuck(page->err))
		report_export_tick(page->request, rows, 0, page->err);
	return !err_stuck(page->err);
}

void html_add(struct report_html *page, const char *markup)
{
	report_sink_text(page->out, markup);
}

void html_addf(struct report_html *page, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	html_add(page, text);
}

/* utf8_decode() draws a hidden character as '?'. */
static bool is_hidden(const char *text)
{
	uint32_t character;
	int columns;

	utf8_decode(text, &character, &columns);
	return *text != '?' && character == '?';
}

/* Add the text from @text to @end, escaped. */
static void add_escaped(struct report_html *page, const char *text, const char *end)
{
	static const struct {
		char character;
		const char *entity;
	} entities[] = {
		{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};

	while (text < end) {
		const size_t length = str_utf8(text);
		const char *entity = NULL;

		for (size_t i = 0; i < sizeof(entities) / sizeof(entities[0]); i++)
			if (*text == entities[i].character)
				entity = entities[i].entity;
		if (text[0] == ' ' && text + 1 < end && text[1] == '%')
			entity = "&#160;"; /* a number and its unit stay on one line */
		if (entity)
			report_sink_text(page->out, entity);
		else if (!length || (*text != '\n' && is_hidden(text)))
			report_sink_text(page->out, "?");
		else
			report_sink_add(page->out, text, length);
		text += length ? length : 1;
	}
}

void html_text(struct report_html *page, const char *text)
{
	if (text)
		add_escaped(page, text, text + strlen(text));
}

void html_sentence(struct report_html *page, const char *text)
{
	const char *from, *to;

	while ((from = strchr(text, '`')) && (to = strchr(from + 1, '`'))) {
		add_escaped(page, text, from);
		html_add(page, "<code>");
		add_escaped(page, from + 1, to);
		html_add(page, "</code>");
		text = to + 1;
	}
	html_text(page, text);
}

void html_note(struct report_html *page, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	html_add(page, "<p class=\"note\">");
	html_text(page, text);
	html_add(page, "</p>\n");
}

void html_table(struct report_html *page, const struct report_table *table)
{
	html_add(page, "<div class=\"scroll\"><table>\n<tr>");
	for (int i = 0; i < table->column_count; i++) {
		html_add(page,
			 table->columns[i].quantity == REPORT_TEXT ? "<th class=\"l\">" : "<th>");
		html_text(page, table->columns[i].name);
		html_add(page, "</th>");
	}
	html_add(page, "</tr>\n");
	for (int64_t row = 0; row < table->row_count; row++) {
		html_add(page, "<tr>");
		for (int i = 0; i < table->column_count; i++) {
			const struct report_cell *cell =
				&table->cells[row * table->column_count + i];
			const enum report_quantity quantity = table->columns[i].quantity;
			char text[FMT_SIZE];

			html_add(page, quantity == REPORT_TEXT ? "<td class=\"l\">" : "<td>");
			/* Names have any length; here they are wrapped, not cut. */
			html_text(page,
				  cell->type == PROF_TEXT
					  ? cell->text
					  : report_cell_text(cell, quantity, text, sizeof(text)));
			html_add(page, "</td>");
		}
		html_add(page, "</tr>\n");
	}
	html_add(page, "</table></div>\n");
}

int64_t html_query(struct report_html *page, const char *name, const char *sql, int64_t limit)
{
	struct report_table table;
	int64_t rows;
	bool more;

	if (err_stuck(page->err) || report_table_query_most(&table, page->db, name, sql, limit, 0,
							    &more, page->err) != ST_OK)
		return 0;
	rows = table.row_count;
	if (rows > 0)
		html_table(page, &table);
	if (more)
		html_note(page, "The first %lld rows; ipu-report REPORT %s has them all.",
			  (long long)limit, name);
	report_table_free(&table);
	return rows;
}
