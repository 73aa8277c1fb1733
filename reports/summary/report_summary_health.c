/*
 * The part of the summary that says whether the run was sound: rules broken, the first bad number,
 * tensors that are kept less than was asked for.
 *
 * Threading: none. Ownership: texts and arrays are the summary's arena's.
 */
#include <math.h>
#include <string.h>

#include "common/str.h"
#include "reports/table/report_internal.h"
#include "reports/summary/report_summary.h"

/* Of each rule that was broken its first hit, of the rank that had it first: with min() SQLite
 * takes the other columns from there. */
static const char sql_broken[] =
	"SELECT rule, sum(hits), min(time_ns), coalesce(key, layer), epoch, weight_update, step "
	"FROM health_sums GROUP BY rule ORDER BY 3, 1";

static const char sql_counts[] =
	"SELECT (SELECT count(*) FROM health_rules WHERE enabled = 1), count(*), min(time_ns), why "
	"FROM (SELECT min(time_ns) AS time_ns, why FROM tensor_tiers WHERE time_ns IS NOT NULL "
	"GROUP BY queue, key)";

static int64_t number_of(const struct report_cell *cell)
{
	return cell->type == PROF_INT ? cell->integer : IPS_NULL;
}

/* @table lives no longer than the query; NULL: there is none, or no memory (@failed). */
static const char *text_of(struct report_summary *out, const struct report_cell *cell, bool *failed)
{
	const char *text;

	if (cell->type != PROF_TEXT)
		return NULL;
	text = arena_strdup(&out->arena, cell->text);
	*failed |= !text;
	return text;
}

static bool take_broken(struct report_summary *out, const struct report_table *table)
{
	bool failed = false;

	out->broken = arena_alloc(&out->arena, (size_t)table->row_count + 1, sizeof(*out->broken));
	if (!out->broken)
		return false;
	out->broken_count = (int)table->row_count;
	for (int i = 0; i < out->broken_count; i++) {
		const struct report_cell *cells = table->cells + i * table->column_count;

		out->broken[i] = (struct report_broken){
			.rule = text_of(out, &cells[0], &failed),
			.hits = number_of(&cells[1]),
			.first_ns = number_of(&cells[2]),
			.key = text_of(out, &cells[3], &failed),
			.epoch = number_of(&cells[4]),
			.weight_update = number_of(&cells[5]),
			.step = number_of(&cells[6]),
		};
	}
	return !failed;
}

static bool take_bad(struct report_summary *out, const struct report_table *table)
{
	const struct report_cell *cells = table->cells;
	bool failed = false;

	if (table->row_count == 0)
		return true;
	out->bad = (struct report_bad){
		.known = true,
		.key = text_of(out, &cells[0], &failed),
		.layer = text_of(out, &cells[1], &failed),
		.phase = text_of(out, &cells[2], &failed),
		.epoch = number_of(&cells[3]),
		.weight_update = number_of(&cells[4]),
		.step = number_of(&cells[5]),
		.microbatch = number_of(&cells[6]),
		.replica = number_of(&cells[7]),
		.stage = number_of(&cells[8]),
		.time_ns = number_of(&cells[9]),
		.element = cells[10].type == PROF_INT ? number_of(&cells[10]) : -1,
		.value = text_of(out, &cells[11], &failed),
	};
	return !failed;
}

static bool take_counts(struct report_summary *out, const struct report_table *table)
{
	const struct report_cell *cells = table->cells;
	bool failed = false;

	if (table->row_count == 0)
		return true;
	out->rules = number_of(&cells[0]);
	out->lowered = number_of(&cells[1]);
	out->lowered_ns = number_of(&cells[2]);
	out->lowered_why = text_of(out, &cells[3], &failed);
	return !failed;
}

enum status report__summary_health(struct report_summary *out, struct prof_db *db, struct err *err)
{
	static const struct {
		const char *sql;
		bool (*take)(struct report_summary *out, const struct report_table *table);
	} parts[] = {
		{sql_broken, take_broken},
		{REPORT_FIRST_BAD, take_bad},
		{sql_counts, take_counts},
	};
	enum status status = ST_OK;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && status == ST_OK; i++) {
		struct report_table table = {0};

		status = report_table_query(&table, db, "health", parts[i].sql, 0, err);
		if (status == ST_OK && !parts[i].take(out, &table))
			status = err_nomem(err);
		report_table_free(&table);
	}
	return status;
}
