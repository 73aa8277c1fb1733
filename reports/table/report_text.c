/*
 * Render a table as text: aligned columns, fitted to the width if possible.
 *
 * Default columns without any value are hidden. A table that is too wide is shrunk in this order:
 * hide columns without any value, break headings at '_', move columns with the same value in every
 * row to the note, cut long texts, drop columns from the least important on. The note below lists
 * what was left out. Numbers are never cut: if the user selected the columns, the table may remain
 * wider than the width.
 *
 * Threading: none. Ownership: the layout lives for one call.
 */
#include "reports/table/report_internal.h"

#include <errno.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"

#define GAP         2  /* blanks between columns */
#define TEXT_MIN    12 /* minimum width of a cut text */
#define CELL_SIZE   4096
#define FOLD_INDENT 2
#define HEAD_ROWS   8 /* maximum lines of a broken heading */

struct text_column {
	int head, cells; /* width of the widest heading line and of the widest cell */
	int width;       /* printed width */
	bool shown, is_text, has_value, constant;
};

struct text_layout {
	const struct report_table *table;
	struct text_column *columns;
	bool broken; /* headings are broken at '_' */
	struct str note, line;
	bool failed; /* out of memory while building a line */
};

void report__fold(FILE *out, const char *label, const char *text, int width)
{
	int at = FOLD_INDENT + utf8_columns(label);

	fprintf(out, "%*s%s", FOLD_INDENT, "", label);
	while (*text) {
		const int bytes = (int)strcspn(text, " ");
		char word[2048];

		snprintf(word, sizeof(word), "%.*s", bytes, text);
		word[utf8_show(word, strlen(word), "")] = '\0';
		if (width > 0 && at + 1 + utf8_columns(word) > width && at > FOLD_INDENT + 2) {
			fprintf(out, "\n%*s", FOLD_INDENT + 1, "");
			at = FOLD_INDENT + 1;
		}
		fprintf(out, "%s%s", at > FOLD_INDENT ? " " : "", word);
		at += (at > FOLD_INDENT) + utf8_columns(word);
		text += bytes;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

static const struct report_cell *text_cell(const struct report_table *table, int64_t row,
					   int column)
{
	return &table->cells[row * table->column_count + column];
}

static const char *text_of(const struct report_table *table, int64_t row, int column,
			   char out[CELL_SIZE])
{
	return report_cell_text(text_cell(table, row, column), table->columns[column].quantity, out,
				CELL_SIZE);
}

/* ---- measuring ------------------------------------------------------------------------------- */

static void measure_column(struct text_layout *layout, int i)
{
	const struct report_table *table = layout->table;
	struct text_column *column = &layout->columns[i];
	char text[CELL_SIZE], first[CELL_SIZE];

	*column = (struct text_column){.head = utf8_columns(table->columns[i].name),
				       .shown = true,
				       .constant = table->row_count > 1};
	column->is_text = table->columns[i].quantity == REPORT_TEXT;
	for (int64_t row = 0; row < table->row_count; row++) {
		int width = utf8_columns(text_of(table, row, i, text));

		column->cells = max(column->cells, width);
		if (text_cell(table, row, i)->type != PROF_NULL)
			column->has_value = true;
		if (!row)
			memcpy(first, text, strlen(text) + 1);
		else if (column->constant && strcmp(first, text) != 0)
			column->constant = false;
	}
	column->width = max(column->head, column->cells);
}

/* The shown column after @i, from -1 on; -1: no more. */
static int next_shown(const struct text_layout *layout, int i)
{
	while (++i < layout->table->column_count)
		if (layout->columns[i].shown)
			return i;
	return -1;
}

static int total_width(const struct text_layout *layout)
{
	int total = 0;

	for (int i = next_shown(layout, -1); i >= 0; i = next_shown(layout, i))
		total += layout->columns[i].width + (total ? GAP : 0);
	return total;
}

/* ---- fitting the width ----------------------------------------------------------------------- */

static void drop_empty_columns(struct text_layout *layout)
{
	bool any = false;

	for (int i = 0; layout->table->row_count && i < layout->table->column_count; i++) {
		if (layout->columns[i].has_value)
			continue;
		layout->columns[i].shown = false;
		str_addf(&layout->note, "%s%s", any ? ", " : "left out, without any value: ",
			 layout->table->columns[i].name);
		any = true;
	}
	if (any)
		str_add(&layout->note, ".\n");
}

/* Length of the next line of the heading @text: as many '_'-terminated pieces as fit @width, at
 * least one. */
static size_t heading_piece(const char *text, int width)
{
	size_t end = 0;

	while (text[end]) {
		size_t next = end + strcspn(text + end, "_");

		next += text[next] == '_';
		if (end && next > (size_t)width)
			break;
		end = next;
	}
	return end;
}

static void break_headings(struct text_layout *layout)
{
	layout->broken = true;
	for (int i = 0; i < layout->table->column_count; i++) {
		struct text_column *column = &layout->columns[i];
		const char *name = layout->table->columns[i].name;

		column->head = 0;
		while (*name) {
			size_t length = heading_piece(name, column->cells);

			if ((int)length > column->head)
				column->head = (int)length;
			name += length;
		}
		column->width = max(column->head, column->cells);
	}
}

static void fold_constant_columns(struct text_layout *layout, int width)
{
	char text[CELL_SIZE];
	bool any = false;

	for (int i = 0; i < layout->table->column_count && total_width(layout) > width; i++) {
		struct text_column *column = &layout->columns[i];

		if (!column->shown || !column->constant || column->cells > 32)
			continue;
		column->shown = false;
		str_addf(&layout->note, "%s%s %s",
			 any ? ", " : "in every row: ", layout->table->columns[i].name,
			 text_of(layout->table, 0, i, text));
		any = true;
	}
	if (any)
		str_add(&layout->note, ".\n");
}

static void shrink_texts(struct text_layout *layout, int width)
{
	for (int total = total_width(layout); total > width; total--) {
		struct text_column *widest = NULL;

		for (int i = 0; i < layout->table->column_count; i++) {
			struct text_column *column = &layout->columns[i];

			if (column->shown && column->is_text && column->width > TEXT_MIN &&
			    column->width > column->head &&
			    (!widest || column->width > widest->width))
				widest = column;
		}
		if (!widest)
			return;
		widest->width--;
	}
}

/* Hide column @i for lack of width. */
static void hide_column(struct text_layout *layout, int i, bool *any)
{
	layout->columns[i].shown = false;
	str_addf(&layout->note, "%s%s",
		 *any ? ", " : "too wide, left out: ", layout->table->columns[i].name);
	*any = true;
}

static void drop_columns(struct text_layout *layout, int width)
{
	/* Least informative first. */
	static const char *const first[] = {
		"rank",
		"execution",
		"weight_update",
		"microbatch",
		"parent_id",
		"epoch",
		"mode",
		"depth",
		"replica",
		"category",
		"program_id",
		"trace_step",
		"operation",
		"start_cycle",
		"type",
		"span_id",
		"cycles_overlapped",
	};
	size_t names = layout->table->fit == REPORT_FIT_KEYS ? ARRAY_LEN(first) : 0;
	int count = layout->table->column_count;
	bool any = false;

	for (size_t n = 0; n < names; n++)
		for (int i = 0; i < count && total_width(layout) > width; i++)
			if (layout->columns[i].shown &&
			    !strcmp(layout->table->columns[i].name, first[n]))
				hide_column(layout, i, &any);
	for (int i = count - 1; i > 0 && total_width(layout) > width; i--)
		if (layout->columns[i].shown)
			hide_column(layout, i, &any);
	if (any)
		str_add(&layout->note, " (--width 0 shows them, so does --columns).\n");
}

static void fit_width(struct text_layout *layout, int width)
{
	bool keep = layout->table->fit == REPORT_FIT_NONE;

	if (width && layout->table->fit == REPORT_FIT_LAST)
		drop_empty_columns(layout);
	if (!width || total_width(layout) <= width)
		return;
	if (layout->table->fit == REPORT_FIT_KEYS)
		drop_empty_columns(layout);
	if (total_width(layout) > width)
		break_headings(layout);
	if (total_width(layout) > width && !keep)
		fold_constant_columns(layout, width);
	shrink_texts(layout, width);
	if (total_width(layout) > width && !keep) {
		drop_columns(layout, width);
		/* After columns were dropped, widen cut texts into the freed width. */
		for (int i = 0; i < layout->table->column_count; i++) {
			struct text_column *column = &layout->columns[i];

			if (column->is_text)
				column->width = max(column->head, column->cells);
		}
		shrink_texts(layout, width);
	}
}

/* ---- printing -------------------------------------------------------------------------------- */

/* Print the collected line without trailing blanks. */
static void print_line(struct text_layout *layout, FILE *out)
{
	struct str *line = &layout->line;
	size_t length = line->length;

	while (length && line->text[length - 1] == ' ')
		length--;
	fprintf(out, "%.*s\n", (int)length, str_peek(line));
	layout->failed |= line->failed;
	str_clear(line);
}

static void put_gap(struct text_layout *layout, int i)
{
	if (i != next_shown(layout, -1))
		str_addf(&layout->line, "%*s", GAP, "");
}

/* Add @text as the cell of column @i to the line. */
static void put_cell(struct text_layout *layout, int i, const char *text)
{
	const struct text_column *column = &layout->columns[i];
	struct str *line = &layout->line;
	int width = utf8_columns(text), pad = column->width - width;

	put_gap(layout, i);
	if (pad < 0) {
		const int bytes = utf8_cut(text, column->width - 3);

		/* A blank pads where a wide character does not fit. */
		str_add_bytes(line, text, (size_t)bytes);
		str_addf(line, "...%*s", column->width - 3 - width + utf8_columns(text + bytes),
			 "");
		return;
	}
	if (!column->is_text)
		str_addf(line, "%*s", pad, "");
	str_add(line, text);
	if (column->is_text)
		str_addf(line, "%*s", pad, "");
}

/* Line @at of column @i's heading. All headings together have @lines lines and are aligned at the
 * bottom. */
static void heading_line(const struct text_layout *layout, int i, int at, int lines,
			 char out[CELL_SIZE])
{
	const char *name = layout->table->columns[i].name, *piece[HEAD_ROWS];
	size_t length[HEAD_ROWS];
	int count = 0;

	while (*name && count < HEAD_ROWS) {
		piece[count] = name;
		length[count] = layout->broken && count < HEAD_ROWS - 1
					? heading_piece(name, layout->columns[i].width)
					: strlen(name);
		name += length[count++];
	}
	at -= lines - count;
	out[0] = '\0';
	if (at >= 0 && at < count)
		str_copy(out, length[at] < CELL_SIZE ? length[at] + 1 : CELL_SIZE, piece[at]);
}

static void print_headings(struct text_layout *layout, bool bold, FILE *out)
{
	int lines = 1;
	char text[CELL_SIZE];

	for (int i = next_shown(layout, -1); layout->broken && i >= 0; i = next_shown(layout, i)) {
		const char *name = layout->table->columns[i].name;
		int count = 0;

		for (; *name && count < HEAD_ROWS; count++)
			name += heading_piece(name, layout->columns[i].width);
		lines = max(lines, count);
	}
	for (int at = 0; at < lines; at++) {
		for (int i = next_shown(layout, -1); i >= 0; i = next_shown(layout, i)) {
			heading_line(layout, i, at, lines, text);
			put_cell(layout, i, text);
		}
		fputs(bold ? "\033[1m" : "", out);
		print_line(layout, out);
		fputs(bold ? "\033[0m" : "", out);
	}
}

/* Print @text wrapped to lines of @width (0: unwrapped). */
static void print_wrapped(const char *text, int width, FILE *out)
{
	int column = 0;

	while (*text) {
		int length = (int)strcspn(text, " \n");
		int needed = length;

		if (width && column && column + 1 + needed > width) {
			fputc('\n', out);
			column = 0;
		}
		fprintf(out, "%s%.*s", column ? " " : "", length, text);
		column += length + (column > 0);
		text += length;
		if (*text == '\n') {
			fputc('\n', out);
			column = 0;
		}
		text += *text != '\0';
	}
}

static enum status print_table(struct text_layout *layout,
			       const struct report_render_params *params, FILE *out,
			       struct err *err)
{
	char text[CELL_SIZE];
	const char *note;

	print_headings(layout, params->bold, out);
	for (int i = next_shown(layout, -1); i >= 0; i = next_shown(layout, i)) {
		put_gap(layout, i);
		for (int n = 0; n < layout->columns[i].width; n++)
			str_add(&layout->line, "-");
	}
	print_line(layout, out);
	for (int64_t row = 0; row < layout->table->row_count; row++) {
		for (int i = next_shown(layout, -1); i >= 0; i = next_shown(layout, i))
			put_cell(layout, i, text_of(layout->table, row, i, text));
		print_line(layout, out);
	}
	note = layout->table->note;
	if (!layout->table->row_count)
		fputs("(no rows)\n", out);
	if (note || layout->note.length)
		fputc('\n', out);
	if (note) {
		print_wrapped(note, params->width, out);
		fputc('\n', out);
	}
	print_wrapped(str_peek(&layout->note), params->width, out);

	if (layout->failed || layout->note.failed)
		return err_nomem(err);
	if (fflush(out) || ferror(out))
		return err_set(err, ST_IO, "write: %s", strerror(errno));
	return ST_OK;
}

enum status report__text(const struct report_table *table,
			 const struct report_render_params *params, FILE *out, struct err *err)
{
	struct text_layout layout = {.table = table};
	enum status status;

	layout.columns = mem_calloc((size_t)table->column_count + 1, sizeof(*layout.columns));
	if (!layout.columns)
		return err_nomem(err);
	for (int i = 0; i < table->column_count; i++)
		measure_column(&layout, i);
	fit_width(&layout, params->width);
	status = print_table(&layout, params, out, err);
	str_free(&layout.note);
	str_free(&layout.line);
	mem_free(layout.columns);
	return status;
}
