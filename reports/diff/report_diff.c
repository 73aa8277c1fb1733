/*
 * Two runs beside each other: a table of sections, each a query over one run, whose rows are
 * aligned by their keys.
 *
 * Threading: none. Ownership: all texts of a comparison are its arena's.
 */
#include "reports/diff/report_diff.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "common/str.h"
#include "reports/diff/report_diff_internal.h"
#include "reports/table/report_internal.h"

/* ---- what a row says ------------------------------------------------------------------------- */

double report_diff_amount(const struct report_diff_row *row)
{
	if (!row->source.known || !row->target.known || row->source.text || row->target.text)
		return NAN;
	return row->target.number - row->source.number;
}

double report_diff_fraction(const struct report_diff_row *row)
{
	const double amount = report_diff_amount(row);
	const double larger = fmax(fabs(row->source.number), fabs(row->target.number));

	return amount == 0 ? 0 : amount / larger;
}

bool report_diff_same(const struct report_diff_row *row)
{
	const struct report_diff_value *a = &row->source, *b = &row->target;

	if (row->in_source != row->in_target || a->known != b->known)
		return false;
	if (!a->known)
		return true;
	if (a->text || b->text)
		return a->text && b->text && !strcmp(a->text, b->text);
	return a->number == b->number || (isnan(a->number) && isnan(b->number));
}

bool report_diff_regressed(const struct report_diff_row *row, double gate)
{
	const double fraction = report_diff_fraction(row);

	if (row->better == REPORT_DIFF_NEITHER)
		return false;
	/* What was a number and is none any more is worse than any number. */
	if (row->source.known && isfinite(row->source.number) && row->target.known &&
	    !isfinite(row->target.number))
		return true;
	return row->better == REPORT_DIFF_LOWER ? fraction > gate : -fraction > gate;
}

bool report_diff_equal(const struct report_diff *diff)
{
	for (size_t i = 0; i < diff->count; i++)
		if (!diff->rows[i].measured && !report_diff_same(&diff->rows[i]))
			return false;
	if (diff->weights[0] && diff->weights[1] && strcmp(diff->weights[0], diff->weights[1]) != 0)
		return false;
	return !diff->part.known && !diff->only_source && !diff->only_target;
}

/* ---- sections -------------------------------------------------------------------------------- */

/*
 * A query's columns: the key, whether its first value was measured on the host, whether less (1) or
 * more (2) of its first value is better (enum report_diff_better), and the values, whose names say
 * what they are.
 */
struct diff_section {
	const char *name, *sql;
};

static const char sql_settings[] =
	"SELECT key, 0, 0, value FROM meta WHERE key NOT IN ('run', 'pid', 'process_start', "
	"'start_epoch_ns', 'ticks_per_second', 'state', 'indexes', 'command', 'host', 'repaired', "
	"'engine_options', 'schema_version', 'page_bytes', 'weights_xxh3') "
	"UNION ALL SELECT 'run' || replace(substr(j.fullkey, 2), '\"', ''), 0, 0, CAST(j.atom AS "
	"TEXT) FROM meta m, "
	"json_tree(CASE WHEN json_valid(m.value) THEN m.value ELSE 'null' END) j "
	"WHERE m.key = 'run' AND j.atom IS NOT NULL";

/* The first execution of training, which warms up, is left out where there are others. */
static const char sql_totals[] =
	"SELECT 'host step', 1, 1, coalesce((SELECT 1.0 * sum(dur_ns) / sum(steps) FROM executions "
	"WHERE mode = 'train' AND execution > (SELECT min(execution) FROM executions WHERE mode = "
	"'train')), (SELECT 1.0 * sum(dur_ns) / sum(steps) FROM executions WHERE mode = 'train')) "
	"AS mean_ns";
static const char sql_device[] =
	"SELECT 'device step', 0, 1, 1.0 * sum(cycles) / sum(steps) AS mean_cycles FROM executions "
	"WHERE mode = 'train'";
static const char sql_sizes[] =
	"SELECT 'fullest IPU', 0, 1, max(b) AS bytes FROM (SELECT sum(bytes) AS b FROM tile_memory "
	"GROUP BY ipu) "
	"UNION ALL SELECT 'fullest tile', 0, 1, max(b) FROM (SELECT sum(bytes) AS b FROM "
	"tile_memory GROUP BY ipu, tile) "
	"UNION ALL SELECT 'code', 0, 1, sum(code_bytes) FROM operations";
static const char sql_model[] =
	"SELECT 'model', 0, 0, sum(params) AS params, sum(flops) AS flops FROM layers";
static const char sql_bubbles[] =
	"SELECT clock || ifnull(' ' || mode, '') || ifnull(' replica ' || replica, '') || "
	"ifnull(' rank ' || nullif(rank, 0), ''), clock = 'host', 1, mean_idle_fraction AS "
	"idle_fraction, mean_bubble_rate AS bubble_rate, "
	"mean_bubble_over_ideal AS bubble_over_ideal, runs FROM bubble_sums "
	"ORDER BY clock, mode, replica, rank";
static const char sql_stages[] =
	"SELECT clock || ifnull(' ' || mode, '') || ifnull(' stage ' || stage, '') || "
	"ifnull(' ' || phase, '') || ifnull(' replica ' || replica, '') || "
	"ifnull(' rank ' || nullif(rank, 0), ''), clock = 'host', 1, "
	"mean_ns, count FROM stage_sums ORDER BY clock, mode, stage, phase, replica, rank";
static const char sql_split[] =
	"SELECT clock || ifnull(' replica ' || replica, '') || ifnull(' IPU ' || ipu, ''), "
	"clock = 'host', 0, sum(compute_ns) AS compute_ns, sum(exchange_ns) AS exchange_ns, "
	"sum(sync_ns) AS sync_ns, sum(host_io_ns) AS host_io_ns, sum(idle_ns) AS idle_ns "
	"FROM time_split GROUP BY clock, replica, ipu ORDER BY clock, replica, ipu";
static const char sql_layers[] =
	"SELECT layer, 0, 0, params, flops, stage FROM layers ORDER BY position";
static const char sql_operations[] =
	"SELECT operation || ifnull(' ' || phase, ''), 0, 1, cycles, flops, code_bytes, "
	"bytes_exchanged, tiles_used, tile_balance, stage FROM operations";
static const char sql_memory[] =
	"SELECT 'IPU ' || ipu || ifnull(' ' || category, '') || ifnull(' ' || region, ''), 0, 1, "
	"sum(bytes) AS bytes FROM tile_memory GROUP BY ipu, category, region "
	"ORDER BY ipu, category, region";
static const char sql_liveness[] =
	"SELECT 'IPU ' || ipu, 0, 1, max(always_live_bytes + not_always_live_bytes) AS peak_bytes, "
	"count(*) AS program_steps FROM liveness GROUP BY ipu ORDER BY ipu";
static const char sql_metrics[] =
	"SELECT ifnull(mode, '') || ifnull(' epoch ' || epoch, '') || ' ' || name, 0, "
	"CASE WHEN name LIKE '%loss%' OR name LIKE '%error%' THEN 1 "
	"WHEN name LIKE '%acc%' OR name LIKE '%auc%' OR name LIKE '%precision%' OR name LIKE "
	"'%recall%' THEN 2 ELSE 0 END, value FROM metrics WHERE step IS NULL "
	"ORDER BY time_ns, name";
static const char sql_health[] =
	"SELECT rule || ifnull(' ' || key, ''), 0, 1, count(*) AS hits FROM health "
	"GROUP BY rule, key ORDER BY min(time_ns), rule, key";

static const struct diff_section diff_sections[] = {
	{"settings", sql_settings},     {"totals", sql_totals},    {"totals", sql_device},
	{"totals", sql_sizes},          {"totals", sql_model},     {"bubbles", sql_bubbles},
	{"stages", sql_stages},         {"time_split", sql_split}, {"layers", sql_layers},
	{"operations", sql_operations}, {"memory", sql_memory},    {"liveness", sql_liveness},
	{"metrics", sql_metrics},       {"health", sql_health},
};

static const char *const section_names[] = {
	"settings", "totals",   "bubbles", "stages", "time_split", "layers", "operations",
	"memory",   "liveness", "metrics", "health", "tensors",    "spans",
};

const char *const *report_diff_sections(size_t *count)
{
	*count = ARRAY_LEN(section_names);
	return section_names;
}

enum {
	COLUMN_KEY,
	COLUMN_MEASURED,
	COLUMN_BETTER,
	COLUMN_VALUES
};

/* ---- alignment ------------------------------------------------------------------------------- */

struct report_diff_row *report__diff_add(struct report_diff *diff)
{
	if (mem_grow(&diff->rows, &diff->capacity, diff->count + 1, sizeof(*diff->rows)))
		return NULL;
	diff->rows[diff->count] = (struct report_diff_row){0};
	return &diff->rows[diff->count++];
}

/* The rows of a table in order of their keys; of equal keys the first one first. */
struct diff_index {
	const struct report_table *table;
	int64_t *rows;
};

static const struct report_cell *diff_cell(const struct report_table *table, int64_t row,
					   int column)
{
	return &table->cells[row * table->column_count + column];
}

static const char *diff_key(const struct report_table *table, int64_t row)
{
	const struct report_cell *cell = diff_cell(table, row, COLUMN_KEY);

	return cell->type == PROF_TEXT ? cell->text : "?";
}

static int diff_compare(const void *a, const void *b, void *user)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	const int order = strcmp(diff_key(user, x), diff_key(user, y));

	return order != 0 ? order : SORTED_ORDER(x, y);
}

static enum status diff_index(struct diff_index *index, struct report_table *table, struct err *err)
{
	index->table = table;
	index->rows = mem_calloc((size_t)table->row_count + 1, sizeof(*index->rows));
	if (!index->rows)
		return err_nomem(err);
	for (int64_t i = 0; i < table->row_count; i++)
		index->rows[i] = i;
	qsort_r(index->rows, (size_t)table->row_count, sizeof(*index->rows), diff_compare, table);
	return ST_OK;
}

static bool diff_is_before(const struct report_table *table, int64_t at, const char *key,
			   int64_t row)
{
	const int order = strcmp(diff_key(table, at), key);

	return order < 0 || (order == 0 && at < row);
}

/* How many rows of @index come before @key (and, where the key is the same, before @row). */
static int64_t diff_before(const struct diff_index *index, const char *key, int64_t row)
{
	int64_t at;

	SORTED_FIRST(at, 0, index->table->row_count,
		     diff_is_before(index->table, index->rows[at], key, row));
	return at;
}

/*
 * A key that stands in a run several times (a metric of several evaluations): the which-th is @row?
 */
static int64_t diff_occurrence(const struct diff_index *index, int64_t row)
{
	const char *key = diff_key(index->table, row);

	return diff_before(index, key, row) - diff_before(index, key, -1);
}

/* The @occurrence-th row of @index whose key is @key; -1: none. */
static int64_t diff_find(const struct diff_index *index, const char *key, int64_t occurrence)
{
	const int64_t at = diff_before(index, key, -1) + occurrence;

	if (at >= index->table->row_count ||
	    strcmp(diff_key(index->table, index->rows[at]), key) != 0)
		return -1;
	return index->rows[at];
}

/* The value of @cell in the comparison's words. */
static enum status diff_value(struct report_diff *diff, const struct report_cell *cell,
			      struct report_diff_value *out, struct err *err)
{
	*out = (struct report_diff_value){.known = cell->type != PROF_NULL, .number = NAN};
	if (cell->type == PROF_INT)
		out->number = (double)cell->integer;
	else if (cell->type == PROF_REAL)
		out->number = cell->real;
	else if (cell->type == PROF_TEXT && !(out->text = arena_strdup(&diff->arena, cell->text)))
		return err_nomem(err);
	return ST_OK;
}

/* A key of both runs: its rows, -1 where a run has not got it. */
struct diff_pair {
	const char *section;
	const struct report_table *source, *target;
	int64_t source_row, target_row, occurrence;
};

/* The row that says what the values are. */
static const struct report_table *pair_table(const struct diff_pair *pair, int64_t *row)
{
	*row = pair->source_row >= 0 ? pair->source_row : pair->target_row;
	return pair->source_row >= 0 ? pair->source : pair->target;
}

static enum status pair_value(struct report_diff *diff, const struct diff_pair *pair,
			      const char *key, int column, struct err *err)
{
	int64_t at;
	const struct report_table *table = pair_table(pair, &at);
	const int64_t better = diff_cell(table, at, COLUMN_BETTER)->integer;
	struct report_diff_row *row = report__diff_add(diff);
	const char *name = arena_strdup(&diff->arena, table->columns[column].name);
	enum status status = ST_OK;

	if (!row || !name)
		return err_nomem(err);
	*row = (struct report_diff_row){
		.section = pair->section,
		.key = key,
		.name = name,
		.quantity = table->columns[column].quantity,
		.measured = diff_cell(table, at, COLUMN_MEASURED)->integer == 1 &&
			    table->columns[column].quantity != REPORT_COUNT,
		.better = column == COLUMN_VALUES ? (enum report_diff_better)better
						  : REPORT_DIFF_NEITHER,
		.in_source = pair->source_row >= 0,
		.in_target = pair->target_row >= 0,
	};
	if (row->in_source)
		status = diff_value(diff, diff_cell(pair->source, pair->source_row, column),
				    &row->source, err);
	if (row->in_target && status == ST_OK)
		status = diff_value(diff, diff_cell(pair->target, pair->target_row, column),
				    &row->target, err);
	return status;
}

static enum status pair_add(struct report_diff *diff, const struct diff_pair *pair, struct err *err)
{
	int64_t at;
	const struct report_table *table = pair_table(pair, &at);
	const char *key = pair->occurrence == 0
				  ? arena_strdup(&diff->arena, diff_key(table, at))
				  : arena_printf(&diff->arena, "%s #%lld", diff_key(table, at),
						 (long long)pair->occurrence + 1);
	enum status status = key ? ST_OK : err_nomem(err);

	for (int i = COLUMN_VALUES; status == ST_OK && i < table->column_count; i++)
		status = pair_value(diff, pair, key, i, err);
	return status;
}

/* In the order of the source's rows, and after those the target's own. */
static enum status diff_align(struct report_diff *diff, const char *section,
			      const struct diff_index *source, const struct diff_index *target,
			      struct err *err)
{
	struct diff_pair pair = {
		.section = section, .source = source->table, .target = target->table};
	enum status status = ST_OK;

	for (int64_t i = 0; status == ST_OK && i < pair.source->row_count; i++) {
		pair.occurrence = diff_occurrence(source, i);
		pair.source_row = i;
		pair.target_row = diff_find(target, diff_key(pair.source, i), pair.occurrence);
		status = pair_add(diff, &pair, err);
	}
	pair.source_row = -1;
	for (int64_t i = 0; status == ST_OK && i < pair.target->row_count; i++) {
		pair.occurrence = diff_occurrence(target, i);
		pair.target_row = i;
		if (diff_find(source, diff_key(pair.target, i), pair.occurrence) < 0)
			status = pair_add(diff, &pair, err);
	}
	return status;
}

static enum status diff_section(struct report_diff *diff, const struct diff_section *section,
				struct prof_db *source, struct prof_db *target, struct err *err)
{
	struct diff_index in_source = {0}, in_target = {0};
	struct report_table a = {0}, b = {0};
	enum status status;

	status = report_table_query(&a, source, section->name, section->sql, 0, err);
	if (status == ST_OK)
		status = report_table_query(&b, target, section->name, section->sql, 0, err);
	if (status == ST_OK)
		status = diff_index(&in_source, &a, err);
	if (status == ST_OK)
		status = diff_index(&in_target, &b, err);
	if (status == ST_OK)
		status = diff_align(diff, section->name, &in_source, &in_target, err);
	mem_free(in_source.rows);
	mem_free(in_target.rows);
	report_table_free(&a);
	report_table_free(&b);
	return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Is @name one of the words of @list ("totals,stages"; NULL: all are)? */
static bool diff_wanted(const char *list, const char *name)
{
	const size_t length = strlen(name);

	for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (strcspn(at, ",") == length && !memcmp(at, name, length))
			return true;
	return !list;
}

static enum status diff_check(const char *list, struct err *err)
{
	for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		char word[64];
		const char *near;
		bool known = false;

		snprintf(word, sizeof(word), "%.*s", (int)strcspn(at, ","), at);
		for (size_t i = 0; i < ARRAY_LEN(section_names); i++)
			known |= !strcmp(section_names[i], word);
		if (known)
			continue;
		near = str_nearest(word, section_names, ARRAY_LEN(section_names));
		return err_set(err, ST_INVALID, "unknown section \"%s\"%s%s%s", word,
			       near ? " (did you mean \"" : "", near ? near : "",
			       near ? "\"?)" : "");
	}
	return ST_OK;
}

static enum status diff_weights(struct report_diff *out, struct prof_db *db, const char **digest,
				struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(
		&query, db, "SELECT value FROM meta WHERE key = 'weights_xxh3'", err);

	if (prof_query_next(query, &status, err) && prof_column_text(query, 0)) {
		*digest = arena_strdup(&out->arena, prof_column_text(query, 0));
		status = *digest ? ST_OK : err_nomem(err);
	}
	prof_query_close(query);
	return status;
}

enum status report_diff_get(struct report_diff *out, struct prof_db *source, struct prof_db *target,
			    const char *sections, struct err *err)
{
	enum status status = diff_check(sections, err);

	*out = (struct report_diff){0};
	if (status != ST_OK)
		return status;
	if (arena_init(&out->arena, 0))
		return err_nomem(err);
	status = diff_weights(out, source, &out->weights[0], err);
	if (status == ST_OK)
		status = diff_weights(out, target, &out->weights[1], err);
	for (size_t i = 0; status == ST_OK && i < ARRAY_LEN(diff_sections); i++)
		if (diff_wanted(sections, diff_sections[i].name))
			status = diff_section(out, &diff_sections[i], source, target, err);
	if (status == ST_OK && diff_wanted(sections, "tensors"))
		status = report__diff_part(out, source, target, err);
	if (status == ST_OK && diff_wanted(sections, "spans"))
		status = report__diff_spans(out, source, target, err);
	if (status != ST_OK)
		report_diff_free(out);
	return status;
}

void report_diff_free(struct report_diff *diff)
{
	mem_free(diff->rows);
	arena_fini(&diff->arena);
	*diff = (struct report_diff){0};
}
