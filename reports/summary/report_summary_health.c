/*
 * The health part of the summary: broken rules, the first non-finite value, and tensors whose tier
 * was lowered.
 *
 * Threading: none. Ownership: texts and arrays belong to the summary's arena.
 */
#include <math.h>
#include <string.h>

#include "common/str.h"
#include "reports/table/report_internal.h"
#include "reports/summary/report_summary.h"

/* The first hit of each broken rule, of the rank that had it first: with a bare min(), SQLite takes
 * the other columns from the row of the minimum. */
static const char sql_broken[] =
	"SELECT rule, sum(hits), min(time_ns), coalesce(key, layer), epoch, weight_update, step "
	"FROM health_sums GROUP BY rule ORDER BY 3, 1";

static const char sql_counts[] =
	"SELECT (SELECT count(*) FROM health_rules WHERE enabled = 1), count(*), min(time_ns), why "
	"FROM (SELECT min(time_ns) AS time_ns, why FROM tensor_tiers WHERE time_ns IS NOT NULL "
	"GROUP BY queue, key)";

static int64_t cell_number(const struct report_cell *cell)
{
	return cell->type == PROF_INT ? cell->integer : IPS_NULL;
}

/* Copy a text into the summary's arena: @cell is valid only until the table is freed. NULL: not a
 * text. */
static const char *copy_cell_text(struct report_summary *out, const struct report_cell *cell,
				  struct err *err)
{
	const char *copy = cell->type == PROF_TEXT ? arena_strdup(&out->arena, cell->text) : NULL;

	if (cell->type == PROF_TEXT && !copy)
		err_nomem(err);
	return copy;
}

static void read_broken_rules(struct report_summary *out, const struct report_table *table,
			      struct err *err)
{
	out->broken = arena_alloc(&out->arena, (size_t)table->row_count + 1, sizeof(*out->broken));
	if (!out->broken) {
		err_nomem(err);
		return;
	}
	out->broken_count = (int)table->row_count;
	for (int i = 0; i < out->broken_count; i++) {
		const struct report_cell *cells = table->cells + i * table->column_count;

		out->broken[i] = (struct report_broken){
			.rule = copy_cell_text(out, &cells[0], err),
			.hits = cell_number(&cells[1]),
			.first_ns = cell_number(&cells[2]),
			.key = copy_cell_text(out, &cells[3], err),
			.epoch = cell_number(&cells[4]),
			.weight_update = cell_number(&cells[5]),
			.step = cell_number(&cells[6]),
		};
	}
}

static void read_first_nonfinite(struct report_summary *out, const struct report_table *table,
				 struct err *err)
{
	const struct report_cell *cells = table->cells;

	if (table->row_count == 0)
		return;
	out->bad = (struct report_bad){
		.known = true,
		.key = copy_cell_text(out, &cells[0], err),
		.layer = copy_cell_text(out, &cells[1], err),
		.phase = copy_cell_text(out, &cells[2], err),
		.epoch = cell_number(&cells[3]),
		.weight_update = cell_number(&cells[4]),
		.step = cell_number(&cells[5]),
		.microbatch = cell_number(&cells[6]),
		.replica = cell_number(&cells[7]),
		.stage = cell_number(&cells[8]),
		.time_ns = cell_number(&cells[9]),
		.element = cells[10].type == PROF_INT ? cell_number(&cells[10]) : -1,
		.value = copy_cell_text(out, &cells[11], err),
	};
}

static void read_counts(struct report_summary *out, const struct report_table *table,
			struct err *err)
{
	const struct report_cell *cells = table->cells;

	if (table->row_count == 0)
		return;
	out->rules = cell_number(&cells[0]);
	out->lowered = cell_number(&cells[1]);
	out->lowered_ns = cell_number(&cells[2]);
	out->lowered_why = copy_cell_text(out, &cells[3], err);
}

void report__summary_health(struct report_summary *out, struct prof_db *db, struct err *err)
{
	static const struct {
		const char *sql;
		void (*read)(struct report_summary *out, const struct report_table *table,
			     struct err *err);
	} parts[] = {
		{sql_broken, read_broken_rules},
		{REPORT_FIRST_BAD, read_first_nonfinite},
		{sql_counts, read_counts},
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && !err_stuck(err); i++) {
		struct report_table table = {0};

		if (report_table_query(&table, db, "health", parts[i].sql, 0, err) == ST_OK)
			parts[i].read(out, &table, err);
		report_table_free(&table);
	}
}
