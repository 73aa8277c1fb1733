/*
 * A whole table in one of the formats: an ops row per format.
 *
 * Threading: none. Ownership: the table and the stream stay the caller's.
 */
#include "reports/table/report_render.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "reports/table/report_internal.h"

static enum status render_stream(const struct report_table *table,
				 const struct report_render_params *params, FILE *out,
				 struct err *err)
{
	struct report_stream stream;

	report_stream_begin(&stream, table->name, table->columns, table->column_count, params, out);
	for (int64_t row = 0; row < table->row_count; row++)
		if (!report_stream_row(&stream, table->cells + row * table->column_count))
			break;
	return report_stream_end(&stream, table->note, err);
}

typedef enum status (*render_fn)(const struct report_table *table,
				 const struct report_render_params *params, FILE *out,
				 struct err *err);

static const render_fn render_formats[] = {
	[REPORT_AS_TEXT] = report__text,
	[REPORT_AS_CSV] = render_stream,
	[REPORT_AS_JSON] = render_stream,
};
_Static_assert(ARRAY_LEN(render_formats) == REPORT_FORMATS, "format table out of step");

enum status report_render(const struct report_table *table,
			  const struct report_render_params *params, FILE *out, struct err *err)
{
	return render_formats[params->format](table, params, out, err);
}

/* ---- one cell -------------------------------------------------------------------------------- */

/* Text of the recorded program must not steer the terminal: control characters (C1 too, which are
 * two bytes in UTF-8) become '?', blanks of any kind a blank. */
static void cell_clean(char *text)
{
	for (unsigned char *at = (unsigned char *)text; *at; at++) {
		if (*at == '\n' || *at == '\t' || *at == '\r')
			*at = ' ';
		else if (*at < 0x20 || *at == 0x7f)
			*at = '?';
		else if (*at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0)
			at[0] = at[1] = '?';
	}
}

static void cell_integer(int64_t value, enum report_quantity quantity, char out[FMT_SIZE])
{
	switch (quantity) {
	case REPORT_NS:
		fmt_ns(out, value);
		return;
	case REPORT_BYTES:
		if (value >= 0) {
			fmt_bytes(out, (uint64_t)value);
			return;
		}
		break;
	case REPORT_COUNT:
	case REPORT_CYCLES:
		fmt_count(out, value);
		return;
	case REPORT_FRACTION:
		fmt_percent(out, (double)value);
		return;
	case REPORT_BOOL:
		if (value == 0 || value == 1) {
			snprintf(out, FMT_SIZE, "%s", value ? "yes" : "no");
			return;
		}
		break;
	case REPORT_TEXT:
	case REPORT_NUMBER:
	case REPORT_REAL:
		break;
	}
	snprintf(out, FMT_SIZE, "%" PRId64, value);
}

/* Of parts of the smallest unit. */
static const char *const cell_units[] = {
	[REPORT_NS] = "ns", [REPORT_BYTES] = "B", [REPORT_BOOL] = NULL};

static void cell_real(double value, enum report_quantity quantity, char out[FMT_SIZE])
{
	/* Means of times and sizes are read as such. */
	bool whole = quantity == REPORT_NS || quantity == REPORT_BYTES ||
		     quantity == REPORT_COUNT || quantity == REPORT_CYCLES;

	if (quantity == REPORT_FRACTION && isfinite(value))
		fmt_percent(out, value);
	else if (whole && fabs(value) >= 100 && fabs(value) < 9e18)
		cell_integer((int64_t)llround(value), quantity, out);
	else if (whole && isfinite(value) && cell_units[quantity])
		snprintf(out, FMT_SIZE, "%.3g %s", value, cell_units[quantity]);
	else
		fmt_real(out, value);
}

const char *report_cell_text(const struct report_cell *cell, enum report_quantity quantity,
			     char *out, int size)
{
	char number[FMT_SIZE] = "-";

	assert(size > 0);
	switch (cell->type) {
	case PROF_TEXT:
		str_copy(out, (size_t)size, cell->text);
		cell_clean(out);
		return out;
	case PROF_INT:
		cell_integer(cell->integer, quantity, number);
		break;
	case PROF_REAL:
		cell_real(cell->real, quantity, number);
		break;
	case PROF_NULL:
	case PROF_BLOB:
		break;
	}
	str_copy(out, (size_t)size, number);
	return out;
}
