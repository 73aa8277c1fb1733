/*
 * A comparison as text for people, and as one table for CSV and JSON.
 *
 * Threading: none. Ownership: the comparison stays the caller's, and its texts are used as they
 * are.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "reports/diff/report_diff_command.h"

static struct report_cell cell_value(const struct report_diff_value *value)
{
	if (!value->known)
		return (struct report_cell){.type = PROF_NULL};
	if (value->text)
		return report_cell_of_text(value->text);
	return (struct report_cell){.type = PROF_REAL, .real = value->number};
}

/* ---- one table ------------------------------------------------------------------------------- */

enum {
	ALL_SECTION,
	ALL_KEY,
	ALL_NAME,
	ALL_SOURCE,
	ALL_TARGET,
	ALL_DIFF,
	ALL_FRACTION,
	ALL_MEASURED,
	ALL_REGRESSED,
	ALL_MODE,
	ALL_EPOCH,
	ALL_UPDATE,
	ALL_STEP,
	ALL_MICROBATCH,
	ALL_REPLICA,
	ALL_LAYER,
	ALL_KIND,
	ALL_PHASE,
	ALL_ELEMENT,
	ALL_COLUMNS
};

static const struct report_column all_columns[ALL_COLUMNS] = {
	[ALL_SECTION] = {"section", REPORT_TEXT},
	[ALL_KEY] = {"key", REPORT_TEXT},
	[ALL_NAME] = {"name", REPORT_TEXT},
	[ALL_SOURCE] = {"source", REPORT_REAL},
	[ALL_TARGET] = {"target", REPORT_REAL},
	[ALL_DIFF] = {"diff", REPORT_REAL},
	[ALL_FRACTION] = {"diff_fraction", REPORT_FRACTION},
	[ALL_MEASURED] = {"measured", REPORT_BOOL},
	[ALL_REGRESSED] = {"regressed", REPORT_BOOL},
	[ALL_MODE] = {"mode", REPORT_TEXT},
	[ALL_EPOCH] = {"epoch", REPORT_NUMBER},
	[ALL_UPDATE] = {"weight_update", REPORT_NUMBER},
	[ALL_STEP] = {"step", REPORT_NUMBER},
	[ALL_MICROBATCH] = {"microbatch", REPORT_NUMBER},
	[ALL_REPLICA] = {"replica", REPORT_NUMBER},
	[ALL_LAYER] = {"layer", REPORT_TEXT},
	[ALL_KIND] = {"kind", REPORT_TEXT},
	[ALL_PHASE] = {"phase", REPORT_TEXT},
	[ALL_ELEMENT] = {"element", REPORT_NUMBER},
};

static void all_part(const struct report_diff_part *part, struct report_cell *cells)
{
	cells[ALL_SECTION] = report_cell_of_text("first_difference");
	cells[ALL_KEY] = report_cell_of_text(part->key);
	cells[ALL_NAME] = report_cell_of_text(part->column ? part->column : part->what);
	cells[ALL_SOURCE] = report_cell_of_real(part->source);
	cells[ALL_TARGET] = report_cell_of_real(part->target);
	cells[ALL_DIFF] = report_cell_of_real(part->target - part->source);
	cells[ALL_MODE] = report_cell_of_text(part->mode);
	cells[ALL_EPOCH] = report_cell_of_int(part->epoch);
	cells[ALL_UPDATE] = report_cell_of_int(part->weight_update);
	cells[ALL_STEP] = report_cell_of_int(part->step);
	cells[ALL_MICROBATCH] = report_cell_of_int(part->microbatch);
	cells[ALL_REPLICA] = report_cell_of_int(part->replica);
	cells[ALL_LAYER] = report_cell_of_text(part->layer);
	cells[ALL_KIND] = report_cell_of_text(part->kind);
	cells[ALL_PHASE] = report_cell_of_text(part->phase);
	cells[ALL_ELEMENT] = report_cell_of_int(part->element);
}

static void all_row(const struct report_diff_row *row, const struct report_diff_print *how,
		    struct report_cell *cells)
{
	cells[ALL_SECTION] = report_cell_of_text(row->section);
	cells[ALL_KEY] = report_cell_of_text(row->key);
	cells[ALL_NAME] = report_cell_of_text(row->name);
	cells[ALL_SOURCE] = cell_value(&row->source);
	cells[ALL_TARGET] = cell_value(&row->target);
	cells[ALL_DIFF] = report_cell_of_real(report_diff_amount(row));
	cells[ALL_FRACTION] = report_cell_of_real(report_diff_fraction(row));
	cells[ALL_MEASURED] = report_cell_of_int(row->measured);
	cells[ALL_REGRESSED] = report_cell_of_int(report_diff_gated(row, how));
}

enum status report_diff_stream(const struct report_diff *diff, const struct report_diff_print *how,
			       FILE *out, struct err *err)
{
	struct report_stream stream;
	bool more = true;

	report_stream_begin(&stream, "diff", all_columns, ALL_COLUMNS, &how->render, out);
	if (diff->part.known) {
		struct report_cell cells[ALL_COLUMNS] = {0};

		all_part(&diff->part, cells);
		more = report_stream_row(&stream, cells);
	}
	for (size_t i = 0; more && i < diff->count; i++) {
		struct report_cell cells[ALL_COLUMNS] = {0};

		if (!how->all && report_diff_same(&diff->rows[i]))
			continue;
		all_row(&diff->rows[i], how, cells);
		more = report_stream_row(&stream, cells);
	}
	return report_stream_end(&stream, NULL, err);
}

/* ---- text ------------------------------------------------------------------------------------ */

enum {
	TEXT_KEY,
	TEXT_NAME,
	TEXT_SOURCE,
	TEXT_TARGET,
	TEXT_DIFF,
	TEXT_PERCENT,
	TEXT_WORSE,
	TEXT_COLUMNS
};

static struct report_column text_columns[TEXT_COLUMNS] = {
	[TEXT_KEY] = {"what", REPORT_TEXT},      [TEXT_NAME] = {"value", REPORT_TEXT},
	[TEXT_SOURCE] = {"source", REPORT_REAL}, [TEXT_TARGET] = {"target", REPORT_REAL},
	[TEXT_DIFF] = {"diff", REPORT_REAL},     [TEXT_PERCENT] = {"percent", REPORT_FRACTION},
	[TEXT_WORSE] = {"gate", REPORT_TEXT},
};

/* A number in its own unit, as a text that stands where numbers do. */
static enum status text_cell(struct arena *arena, const struct report_cell *cell,
			     enum report_quantity quantity, struct report_cell *out,
			     struct err *err)
{
	struct report_cell whole = *cell;
	char text[256];

	if (cell->type == PROF_REAL && quantity != REPORT_REAL && fabs(cell->real) < 9e15 &&
	    cell->real == floor(cell->real))
		whole = report_cell_of_int((int64_t)cell->real);
	else if (cell->type == PROF_REAL &&
		 (quantity == REPORT_NS || quantity == REPORT_CYCLES || quantity == REPORT_BYTES ||
		  quantity == REPORT_COUNT) &&
		 fabs(cell->real) < 9e15)
		whole = report_cell_of_int(llround(cell->real));
	*out = report_cell_of_text(
		arena_strdup(arena, report_cell_text(&whole, quantity, text, sizeof(text))));
	return out->text ? ST_OK : err_nomem(err);
}

static enum status text_row(struct arena *arena, const struct report_diff_row *row,
			    const struct report_diff_print *how, struct report_cell *cells,
			    struct err *err)
{
	const struct report_cell values[] = {cell_value(&row->source), cell_value(&row->target),
					     report_cell_of_real(report_diff_amount(row))};
	enum status status = ST_OK;

	cells[TEXT_KEY] = report_cell_of_text(row->key);
	cells[TEXT_NAME] = report_cell_of_text(row->name);
	for (size_t i = 0; status == ST_OK && i < ARRAY_LEN(values); i++)
		status = text_cell(arena, &values[i], row->quantity, &cells[TEXT_SOURCE + i], err);
	cells[TEXT_PERCENT] = report_cell_of_real(report_diff_fraction(row));
	cells[TEXT_WORSE] = report_cell_of_text(report_diff_gated(row, how) ? "worse" : NULL);
	return status;
}

static int row_compare(const void *a, const void *b)
{
	const struct report_diff_row *x = *(const struct report_diff_row *const *)a;
	const struct report_diff_row *y = *(const struct report_diff_row *const *)b;
	const double p = fabs(report_diff_fraction(x)), q = fabs(report_diff_fraction(y));
	const double first = isnan(p) ? 1 : p, second = isnan(q) ? 1 : q;

	if (first != second)
		return first < second ? 1 : -1;
	return (x > y) - (x < y);
}

/* The rows of a section that are to be shown; those that differ most, where they are too many. */
struct text_section {
	const char *name;
	const struct report_diff_row **rows;
	size_t count, shown;
};

static enum status section_gather(struct text_section *section, const struct report_diff *diff,
				  const struct report_diff_print *how, struct err *err)
{
	section->rows = mem_calloc(diff->count + 1, sizeof(*section->rows));
	if (!section->rows)
		return err_nomem(err);
	for (size_t i = 0; i < diff->count; i++)
		if (!strcmp(diff->rows[i].section, section->name) &&
		    (how->all || !report_diff_same(&diff->rows[i])))
			section->rows[section->count++] = &diff->rows[i];
	section->shown = section->count;
	if (how->limit > 0 && section->count > (size_t)how->limit) {
		section->shown = (size_t)how->limit;
		qsort(section->rows, section->count, sizeof(*section->rows), row_compare);
	}
	return ST_OK;
}

static enum status section_print(const struct text_section *section,
				 const struct report_diff_print *how, FILE *out, struct err *err)
{
	struct report_table table = {.name = section->name,
				     .columns = text_columns,
				     .column_count = TEXT_COLUMNS - (how->gate < 0),
				     .row_count = (int64_t)section->shown};
	enum status status = ST_OK;

	if (arena_init(&table.arena, 0))
		return err_nomem(err);
	table.cells =
		arena_alloc(&table.arena, section->shown * TEXT_COLUMNS, sizeof(*table.cells));
	if (!table.cells)
		status = err_nomem(err);
	for (size_t i = 0; status == ST_OK && i < section->shown; i++)
		status = text_row(&table.arena, section->rows[i], how,
				  table.cells + i * (size_t)table.column_count, err);
	if (section->count > section->shown)
		table.note = arena_printf(&table.arena,
					  "The %zu that differ most of %zu (--limit 0: all).",
					  section->shown, section->count);
	if (status == ST_OK) {
		fprintf(out, "\n%s\n", section->name);
		status = report_render(&table, &how->render, out, err);
	}
	report_table_free(&table);
	return status;
}

static void part_where(const struct report_diff_part *part, FILE *out)
{
	const struct {
		const char *name;
		int64_t value;
	} keys[] = {{"epoch", part->epoch},     {"weight update", part->weight_update},
		    {"step", part->step},       {"micro-batch", part->microbatch},
		    {"replica", part->replica}, {"element", part->element}};

	fprintf(out, "  where   %s", part->mode ? part->mode : "-");
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (keys[i].value != IPS_NULL)
			fprintf(out, ", %s %" PRId64, keys[i].name, keys[i].value);
	fprintf(out, "\n");
}

static void print_part(const struct report_diff *diff, FILE *out)
{
	const struct report_diff_part *part = &diff->part;
	char compared[FMT_SIZE], parted[FMT_SIZE];

	fmt_count(compared, diff->compared);
	if (part->known) {
		fprintf(out, "The numbers part; first, in order of execution:\n  %-7s %s",
			part->what, part->key);
		if (part->kind && part->layer)
			fprintf(out, " (%s of %s)", part->kind, part->layer);
		fprintf(out, "\n");
		part_where(part, out);
		fprintf(out, "  %-7s %.17g in the source, %.17g in the target\n",
			part->column ? part->column : "value", part->source, part->target);
		fprintf(out, "%s of %s rows of tensors and metrics that both have differ.\n",
			fmt_count(parted, diff->parted), compared);
	} else if (diff->compared > 0) {
		fprintf(out, "All %s rows of tensors and metrics that both have are equal.\n",
			compared);
	} else {
		fprintf(out, "There are no rows of tensors or metrics that both have.\n");
	}
	if (diff->only_source > 0 || diff->only_target > 0)
		fprintf(out, "The source alone has %s rows of them, the target %s.\n",
			fmt_count(compared, diff->only_source),
			fmt_count(parted, diff->only_target));
}

static void print_weights(const struct report_diff *diff, FILE *out)
{
	const char *const *digest = diff->weights;

	if (!digest[0] || !digest[1])
		return;
	if (!strcmp(digest[0], digest[1]))
		fprintf(out, "The weights at the end are the same (XXH3 %s).\n", digest[0]);
	else
		fprintf(out, "The weights at the end differ (XXH3 %s, %s).\n", digest[0],
			digest[1]);
}

static void print_run(const char *which, const char *path, const char *unfinished, FILE *out)
{
	fprintf(out, "%s  %s\n", which, path);
	if (unfinished)
		fprintf(out, "        %s\n", unfinished);
}

enum status report_diff_text(const struct report_diff *diff, const struct report_diff_print *how,
			     FILE *out, struct err *err)
{
	enum status status = ST_OK;
	size_t count, printed = 0;
	const char *const *names = report_diff_sections(&count);

	print_run("source", how->source, how->unfinished[0], out);
	print_run("target", how->target, how->unfinished[1], out);
	fprintf(out, "\n");
	print_part(diff, out);
	print_weights(diff, out);
	for (size_t i = 0; status == ST_OK && i < count; i++) {
		struct text_section section = {.name = names[i]};

		status = section_gather(&section, diff, how, err);
		if (status == ST_OK && section.count > 0) {
			status = section_print(&section, how, out, err);
			printed++;
		}
		mem_free(section.rows);
	}
	if (status == ST_OK && printed == 0)
		fprintf(out, "No other difference.\n");
	else if (status == ST_OK && report_diff_equal(diff))
		fprintf(out, "\nNothing differs but what was measured on the host.\n");
	return status;
}
