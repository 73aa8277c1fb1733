/*
 * Compare two runs: a table of sections, each a query over one run. The second run's file is
 * attached to the first one's connection, and SQLite aligns the rows of both by their keys.
 * Interrupting the first handle cancels the comparison.
 *
 * Threading: none. Ownership: all texts of a comparison belong to its arena.
 */
#include "reports/diff/report_diff.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "reports/named/report_named.h"
#include "reports/table/report_internal.h"
#include "reports/table/report_table.h"

#define TARGET "target" /* schema name of the attached second run */

/* ---- summary line ---------------------------------------------------------------------------- */

/* Find the first row of @section whose key begins with @key; NULL: none. */
static const struct report_diff_row *find_row(const struct report_diff *diff, const char *section,
					      const char *key)
{
	for (size_t i = 0; i < diff->count; i++)
		if (!strcmp(diff->rows[i].section, section) &&
		    str_starts_with(diff->rows[i].key, key))
			return &diff->rows[i];
	return NULL;
}

static bool both_known(const struct report_diff_row *row)
{
	return row && row->source.known && row->target.known;
}

/* Add "device 12.8 % faster", as a share of the source's time. */
static void add_time_change(struct str *line, const char *what, const struct report_diff_row *row)
{
	const double source = row->source.number, target = row->target.number;
	const double times = fmax(source, target) / fmin(source, target);
	const double share = fabs(target - source) / source;
	const char *verdict = target < source ? "faster" : "slower";

	if (!isfinite(times))
		return;
	if (share < 0.0005)
		str_addf(line, "%s as fast, ", what);
	else if (times < 2)
		str_addf(line, "%s %.1f %% %s, ", what, share * 100, verdict);
	else
		str_addf(line, "%s %.3g times %s, ", what, times, verdict);
}

/* Write a kernel's name without its return type, parameters and template arguments. */
static const char *brief_kernel(const char *key, char *out, size_t size)
{
	if (str_starts_with(key, "void "))
		key += 5;
	snprintf(out, size, "%.*s", (int)min(strcspn(key, "<("), size - 1), key);
	return out;
}

/* Add which kernels only one of the runs has: "flash_fwd replaces 3 kernels". */
static void add_kernel_change(struct str *line, const struct report_diff *diff)
{
	const char *fresh = NULL;
	int gone = 0, come = 0;
	char name[48];

	for (size_t i = 0; i < diff->count; i++) {
		const struct report_diff_row *row = &diff->rows[i];

		if (strcmp(row->section, "kernels") != 0 || row->further)
			continue;
		gone += row->in_source && !row->in_target;
		come += row->in_target && !row->in_source;
		if (row->in_target && !row->in_source && !fresh)
			fresh = row->key;
	}
	if (come == 1 && gone > 0)
		str_addf(line, "%s replaces %d kernel%s, ", brief_kernel(fresh, name, sizeof(name)),
			 gone, gone == 1 ? "" : "s");
	else if (come > 0 && gone > 0)
		str_addf(line, "%d kernels replace %d, ", come, gone);
	else if (come == 1)
		str_addf(line, "%s is new, ", brief_kernel(fresh, name, sizeof(name)));
	else if (come > 0 || gone > 0)
		str_addf(line, "%d kernel%s %s, ", come + gone, come + gone == 1 ? "" : "s",
			 come > 0           ? "are new"
			 : come + gone == 1 ? "is gone"
					    : "are gone");
}

/* Add the change of the step time: of the device if both have it, else of the host, of the steps
 * that a GPU program marks, or of a trace. */
static void add_speed_change(struct str *line, const struct report_diff *diff, bool *device)
{
	const struct report_diff_row *step = find_row(diff, "totals", "device step");
	const struct report_diff_row *host = find_row(diff, "totals", "host step");
	const struct report_diff_row *marked = find_row(diff, "totals", "marked step");
	const struct report_diff_row *trace = find_row(diff, "totals", "trace");

	*device = both_known(step);
	if (*device)
		add_time_change(line, "device", step);
	else if (both_known(host))
		add_time_change(line, "host", host);
	else if (both_known(marked))
		add_time_change(line, "step", marked);
	else if (both_known(trace))
		add_time_change(line, "trace", trace);
	if (step && step->source.known != step->target.known)
		str_addf(line, "no device in the %s, ", step->source.known ? "target" : "source");
}

static void add_bubble_change(struct str *line, const struct report_diff *diff, bool device)
{
	const struct report_diff_row *bubble =
		find_row(diff, "bubbles", device ? "device train" : "host train");

	if (!both_known(bubble))
		return;
	if (fabs(bubble->target.number - bubble->source.number) < 0.0005)
		str_addf(line, "bubble as before, %.1f %%, ", bubble->target.number * 100);
	else
		str_addf(line, "bubble %.1f to %.1f %%, ", bubble->source.number * 100,
			 bubble->target.number * 100);
}

/* Add whether the weights, or else the numbers, are equal. An unfinished run has no final
 * weights. */
static void add_equality(struct str *line, const struct report_diff *diff)
{
	static const char *const names[] = {"source", "target"};
	bool whole = true;

	for (int i = 0; i < 2; i++) {
		if (diff->state[i] == PROF_COMPLETE)
			continue;
		whole = false;
		str_addf(line, "the %s %s, ", names[i],
			 diff->alive[i] ? "still records" : "was killed");
	}
	if (diff->weights[0] && diff->weights[1])
		str_add(line, strcmp(diff->weights[0], diff->weights[1]) ? "other weights"
									 : "the same weights");
	else if (diff->part.known)
		str_add(line, "the numbers part");
	else if (diff->compared > 0)
		str_add(line, whole ? "the same numbers" : "the same numbers so far");
}

const char *report_diff_glance(const struct report_diff *diff, char out[REPORT_GLANCE_SIZE])
{
	const struct report_diff_row *schedule = find_row(diff, "settings", "schedule");
	const struct report_diff_row *model = find_row(diff, "totals", "model");
	struct str line = {0};
	bool device = false;

	if (both_known(model) && !report_diff_same(model))
		str_add(&line, "another model, ");
	else if (both_known(schedule) && schedule->target.text && !report_diff_same(schedule))
		str_addf(&line, "%s: ",
			 strcmp(schedule->target.text, "none") == 0 ? "no pipeline"
								    : schedule->target.text);
	add_kernel_change(&line, diff);
	add_speed_change(&line, diff, &device);
	add_bubble_change(&line, diff, device);
	add_equality(&line, diff);
	str_copy(out, REPORT_GLANCE_SIZE, line.failed ? "" : str_peek(&line));
	str_free(&line);
	/* Trim separators at the end. */
	for (size_t n = strlen(out); n > 0 && strchr(", :", out[n - 1]); n--)
		out[n - 1] = '\0';
	return out;
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
 * A query over one run; its tables begin with '@'. Columns: the row's position in its section, the
 * key, whether the first value was measured on the host, whether less (1) or more (2) of the first
 * value is better (enum report_diff_better; also applies to each form of the bubble), and the
 * values, named by their columns.
 */
struct compare_section {
	const char *name, *sql;
};

#define PLACE "SELECT row_number() OVER () AS place, "

static const char sql_settings[] = PLACE
	"* FROM (SELECT key, 0 AS measured, 0 AS better, value FROM @meta WHERE key NOT IN "
	"('run', 'pid', 'process_start', 'start_epoch_ns', 'ticks_per_second', 'state', 'indexes', "
	"'command', 'host', 'repaired', 'engine_options', 'tokens', 'schema_version', "
	"'page_bytes', "
	"'weights_xxh3') "
	"UNION ALL SELECT 'run' || replace(substr(j.fullkey, 2), '\"', ''), 0, 0, CAST(j.atom AS "
	"TEXT) FROM @meta m, "
	"json_tree(CASE WHEN json_valid(m.value) THEN m.value ELSE 'null' END) j "
	"WHERE m.key = 'run' AND j.atom IS NOT NULL)";

/* Exclude the first execution of training, a warm-up, if there are others. */
static const char sql_totals[] =
	PLACE "'host step' AS key, 1 AS measured, 1 AS better, coalesce("
	      "(SELECT 1.0 * sum(dur_ns) / sum(steps) FROM @executions WHERE mode = 'train' AND "
	      "execution > (SELECT min(execution) FROM @executions WHERE mode = 'train')), "
	      "(SELECT 1.0 * sum(dur_ns) / sum(steps) FROM @executions WHERE mode = 'train')) "
	      "AS mean_ns";
static const char sql_device[] =
	"SELECT 1 AS place, 'device step' AS key, 0 AS measured, 1 AS better, "
	"1.0 * sum(cycles) / sum(steps) AS mean_cycles FROM @executions WHERE mode = 'train'";
/* Sum up tiles only once: a recording has a hundred thousand rows of them. */
static const char sql_sizes[] =
	"WITH tiles AS MATERIALIZED (SELECT ipu, sum(bytes) AS b FROM @tile_memory "
	"GROUP BY ipu, tile) "
	"SELECT 1 AS place, 'fullest IPU' AS key, 0 AS measured, 1 AS better, max(b) AS bytes "
	"FROM (SELECT sum(b) AS b FROM tiles GROUP BY ipu) "
	"UNION ALL SELECT 2, 'fullest tile', 0, 1, max(b) FROM tiles "
	"UNION ALL SELECT 3, 'code', 0, 1, sum(code_bytes) FROM @operations";
/* For an imported trace: its duration. */
static const char sql_trace[] = "SELECT 1 AS place, 'trace' AS key, 1 AS measured, 1 AS better, "
				"CAST(value AS INTEGER) AS duration_ns FROM @meta "
				"WHERE key = 'trace_duration_ns'";
/* Of programs on GPUs: the mean of the steps that they mark, kernels, and named ranges. */
static const char sql_marked[] =
	"SELECT 1 AS place, 'marked step' AS key, 1 AS measured, 1 AS better, "
	"avg(dur_ns) AS mean_ns FROM @ranges WHERE kind = 'step' GROUP BY kind";
static const char sql_kernels[] =
	"SELECT row_number() OVER (ORDER BY sum(dur_ns) DESC, name) AS place, name AS key, "
	"1 AS measured, 1 AS better, sum(dur_ns) AS total_ns, count(*) AS count, "
	"avg(dur_ns) AS mean_ns FROM @kernels GROUP BY name";
static const char sql_ranges[] =
	"SELECT row_number() OVER (ORDER BY sum(dur_ns) DESC, key) AS place, key, 1 AS measured, "
	"1 AS better, avg(dur_ns) AS mean_ns, count(*) AS count FROM (SELECT dur_ns, "
	"ifnull(domain || ' ', '') || CASE kind WHEN 'step' THEN 'steps' ELSE " REPORT_RANGE_NAME
	" END AS key FROM @ranges WHERE kind <> 'device') GROUP BY key";
static const char sql_model[] =
	"SELECT 1 AS place, 'model' AS key, 0 AS measured, 0 AS better, sum(params) AS params, "
	"sum(flops) AS flops FROM @layers";
static const char sql_bubbles[] =
	"SELECT row_number() OVER (ORDER BY clock, mode, replica, rank) AS place, "
	"clock || ifnull(' ' || mode, '') || ifnull(' replica ' || replica, '') || "
	"ifnull(' rank ' || nullif(rank, 0), '') AS key, clock = 'host' AS measured, 1 AS better, "
	"1 - 1.0 * total_busy_ns / nullif(total_ns, 0) AS bubble, mean_bubble_rate AS bubble_rate, "
	"mean_bubble_over_ideal AS bubble_over_ideal, runs FROM @bubble_sums "
	"WHERE stages IS NOT 1";
static const char sql_stages[] =
	"SELECT row_number() OVER (ORDER BY clock, mode, stage, phase, replica, rank) AS place, "
	"clock || ifnull(' ' || mode, '') || ifnull(' stage ' || stage, '') || "
	"ifnull(' ' || phase, '') || ifnull(' replica ' || replica, '') || "
	"ifnull(' rank ' || nullif(rank, 0), '') AS key, clock = 'host' AS measured, 1 AS better, "
	"mean_ns, count FROM @stage_sums";
static const char sql_split[] =
	"SELECT row_number() OVER (ORDER BY clock, replica, ipu) AS place, "
	"clock || ifnull(' replica ' || replica, '') || ifnull(' IPU ' || ipu, '') AS key, "
	"clock = 'host' AS measured, 0 AS better, sum(compute_ns) AS compute_ns, "
	"sum(exchange_ns) AS exchange_ns, sum(sync_ns) AS sync_ns, sum(host_io_ns) AS host_io_ns, "
	"sum(idle_ns) AS waiting_ns FROM @time_split GROUP BY clock, replica, ipu";
static const char sql_layers[] =
	"SELECT row_number() OVER (ORDER BY position) AS place, layer AS key, 0 AS measured, "
	"0 AS better, params, flops, stage FROM @layers";
static const char sql_operations[] =
	PLACE "operation || ifnull(' ' || phase, '') AS key, 0 AS measured, 1 AS better, "
	      "cycles * times AS update_cycles, flops * times AS update_flops, code_bytes, "
	      "bytes_exchanged * times AS update_bytes, tiles_used, tile_balance, stage "
	      "FROM (SELECT *, " REPORT_TIMES_AT("@") " AS times FROM @operations)";
static const char sql_memory[] =
	"SELECT row_number() OVER (ORDER BY ipu, category, region) AS place, "
	"'IPU ' || ipu || ifnull(' ' || category, '') || ifnull(' ' || region, '') AS key, "
	"0 AS measured, 1 AS better, sum(bytes) AS bytes FROM @tile_memory "
	"GROUP BY ipu, category, region";
static const char sql_liveness[] =
	"SELECT row_number() OVER (ORDER BY ipu) AS place, 'IPU ' || ipu AS key, 0 AS measured, "
	"1 AS better, max(always_live_bytes + not_always_live_bytes) AS peak_bytes, "
	"count(*) AS program_steps FROM @liveness GROUP BY ipu";
static const char sql_metrics[] =
	"SELECT row_number() OVER (ORDER BY time_ns, name) AS place, "
	"ifnull(mode, '') || ifnull(' epoch ' || epoch, '') || ' ' || name AS key, 0 AS measured, "
	"CASE WHEN name LIKE '%loss%' OR name LIKE '%error%' THEN 1 "
	"WHEN name LIKE '%acc%' OR name LIKE '%auc%' OR name LIKE '%precision%' OR name LIKE "
	"'%recall%' THEN 2 ELSE 0 END AS better, value FROM @metrics WHERE step IS NULL";
static const char sql_health[] =
	"SELECT row_number() OVER (ORDER BY min(time_ns), rule, key) AS place, "
	"rule || ifnull(' ' || key, '') AS key, 0 AS measured, 1 AS better, count(*) AS hits "
	"FROM @health GROUP BY rule, key";

static const struct compare_section diff_sections[] = {
	{"settings", sql_settings}, {"totals", sql_totals},     {"totals", sql_device},
	{"totals", sql_trace},      {"totals", sql_marked},     {"totals", sql_sizes},
	{"totals", sql_model},      {"bubbles", sql_bubbles},   {"stages", sql_stages},
	{"time_split", sql_split},  {"layers", sql_layers},     {"operations", sql_operations},
	{"memory", sql_memory},     {"liveness", sql_liveness}, {"metrics", sql_metrics},
	{"health", sql_health},     {"kernels", sql_kernels},   {"ranges", sql_ranges},
};

static const char *const section_names[] = {
	"settings", "totals",     "bubbles", "stages",   "time_split",
	"layers",   "operations", "memory",  "liveness", "metrics",
	"health",   "kernels",    "ranges",  "tensors",  "spans",
};

const char *const *report_diff_sections(size_t *count)
{
	*count = ARRAY_LEN(section_names);
	return section_names;
}

/* ---- alignment ------------------------------------------------------------------------------- */

/*
 * SQLite pairs the rows of both runs by their keys. The rows of a pair are adjacent, the source's
 * first, and have the source's place as `pair`. If a run has a key several times (e.g. a metric of
 * several evaluations), `nth` numbers them. Pairs are in the order of the source's rows, followed
 * by rows of the target alone. (A FULL JOIN would be quadratic: SQLite 3.40 builds no index for
 * it.)
 */
static const char sql_align[] =
	"SELECT *, min(place) FILTER (WHERE side = 0) OVER (PARTITION BY key, nth) AS pair FROM (\n"
	"SELECT *, row_number() OVER (PARTITION BY side, key ORDER BY place) AS nth FROM (\n"
	"SELECT 0 AS side, * FROM (%s)\nUNION ALL SELECT 1, * FROM (%s)))\n"
	"ORDER BY pair NULLS LAST, side, place";

/* The columns; nth and pair are the last two. */
enum {
	COLUMN_SIDE, /* 0 source, 1 target */
	COLUMN_PLACE,
	COLUMN_KEY,
	COLUMN_MEASURED,
	COLUMN_BETTER,
	COLUMN_VALUES
};

/* Convert a cell to a value. */
static struct report_diff_value convert_value(struct report_diff *diff,
					      const struct report_cell *cell, struct err *err)
{
	struct report_diff_value out = {.known = cell->type != PROF_NULL, .number = NAN};

	if (cell->type == PROF_INT)
		out.number = (double)cell->integer;
	else if (cell->type == PROF_REAL)
		out.number = cell->real;
	else if (cell->type == PROF_TEXT && !(out.text = arena_strdup(&diff->arena, cell->text)))
		err_nomem(err);
	return out;
}

/* Add a row for each value of a pair of rows of @table; one of the pair may be NULL. */
static void add_pair(struct report_diff *diff, const char *section,
		     const struct report_table *table, const struct report_cell *source,
		     const struct report_cell *target, struct err *err)
{
	const struct report_cell *named = source ? source : target;
	const int64_t nth = named[table->column_count - 2].integer;
	const char *text = named[COLUMN_KEY].type == PROF_TEXT ? named[COLUMN_KEY].text : "?";
	const char *key = nth == 1 ? arena_strdup(&diff->arena, text)
				   : arena_printf(&diff->arena, "%s #%lld", text, (long long)nth);

	for (int i = COLUMN_VALUES; i < table->column_count - 2; i++) {
		const struct report_column *column = &table->columns[i];
		struct report_diff_row *row = report__diff_add(diff, err);
		const char *name = arena_strdup(&diff->arena, column->name);

		if (row && (!name || !key))
			err_nomem(err);
		if (err_stuck(err))
			return;
		*row = (struct report_diff_row){
			.section = section,
			.key = key,
			.name = name,
			.quantity = column->quantity,
			.measured = named[COLUMN_MEASURED].integer == 1 &&
				    column->quantity != REPORT_COUNT,
			/* All forms of the bubble have the same direction. */
			.better = i == COLUMN_VALUES || str_starts_with(name, "bubble")
					  ? (enum report_diff_better)named[COLUMN_BETTER].integer
					  : REPORT_DIFF_NEITHER,
			.further = i > COLUMN_VALUES,
			.in_source = source,
			.in_target = target,
		};
		if (source)
			row->source = convert_value(diff, &source[i], err);
		if (target)
			row->target = convert_value(diff, &target[i], err);
	}
}

static void compare_section(struct report_diff *diff, const struct compare_section *section,
			    struct prof_db *source, struct prof_db *target, struct err *err)
{
	struct str a = {0}, b = {0}, sql = {0};
	struct report_table table = {0};
	const char *view = section->sql;
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";

	/* The query with the views of the target in place of '@'; for one that it lacks, as a
	 * file of an earlier version may, the source's without rows. */
	for (const char *at; (at = strchr(view, '@'));) {
		const int length = (int)strspn(at + 1, letters);
		struct prof_query *query;
		char name[64];

		snprintf(name, sizeof(name), "%.*s", length, at + 1);
		prof_query_open(&query, target,
				"SELECT 1 FROM main.sqlite_schema WHERE name = :name", err);
		prof_query_text(query, ":name", name);
		str_add_bytes(&b, view, (size_t)(at - view));
		if (prof_query_next(query, &err->status, err))
			str_addf(&b, TARGET ".%s", name);
		else
			str_addf(&b, "(SELECT * FROM %s WHERE 0)", name);
		prof_query_close(query);
		view = at + 1 + length;
	}
	str_add(&b, view);
	for (const char *at = section->sql; *at; at++)
		str_add_bytes(&a, at, *at != '@');
	str_addf(&sql, sql_align, str_peek(&a), str_peek(&b));
	if (a.failed || b.failed || sql.failed)
		err_nomem(err);
	if (!err_stuck(err))
		report_table_query(&table, source, section->name, str_peek(&sql), 0, err);
	for (int64_t row = 0; row < table.row_count && !err_stuck(err); row++) {
		const struct report_cell *cells = &table.cells[row * table.column_count];
		const struct report_cell *next = cells + table.column_count;
		const bool in_source = cells[COLUMN_SIDE].integer == 0;
		const bool paired = in_source && row + 1 < table.row_count &&
				    next[COLUMN_SIDE].integer == 1 &&
				    next[table.column_count - 1].type != PROF_NULL;

		add_pair(diff, section->name, &table, in_source ? cells : NULL,
			 paired      ? next
			 : in_source ? NULL
				     : cells,
			 err);
		row += paired;
	}
	str_free(&a);
	str_free(&b);
	str_free(&sql);
	report_table_free(&table);
}

/* ---- the comparison -------------------------------------------------------------------------- */

/* Return true if @name is in @list ("totals,stages"; NULL: all). */
static bool section_selected(const char *list, const char *name)
{
	const size_t length = strlen(name);

	for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (strcspn(at, ",") == length && !memcmp(at, name, length))
			return true;
	return !list;
}

static enum status check_sections(const char *list, struct err *err)
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

enum status report_diff_get(struct report_diff *out, struct prof_db *source, struct prof_db *target,
			    const char *sections, struct err *err)
{
	struct prof_db *const dbs[] = {source, target};
	struct err own;

	err = err_start(err, &own);
	*out = (struct report_diff){0};
	if (check_sections(sections, err) != ST_OK)
		return err->status;
	if (arena_init(&out->arena, 0))
		return err_nomem(err);
	for (int i = 0; i < 2; i++) {
		if (prof_db_poll(dbs[i], &out->state[i], &out->alive[i], NULL) != ST_OK)
			out->state[i] = PROF_COMPLETE; /* unknown: do not mention it */
		report__fact(&out->weights[i], &out->arena, dbs[i], "weights_xxh3", err);
		if (out->weights[i] && out->weights[i][strspn(out->weights[i], "0123456789abcdef")])
			out->weights[i] = NULL;
	}
	if (!err_stuck(err))
		prof_db_attach(source, target, TARGET, err);
	for (size_t i = 0; !err_stuck(err) && i < ARRAY_LEN(diff_sections); i++)
		if (section_selected(sections, diff_sections[i].name))
			compare_section(out, &diff_sections[i], source, target, err);
	prof_db_detach(source, TARGET);
	out->numbers = section_selected(sections, "tensors");
	if (out->numbers)
		report__diff_part(out, source, target, err);
	if (section_selected(sections, "spans"))
		report__diff_spans(out, source, target, err);
	if (err_stuck(err))
		report_diff_free(out);
	return err->status;
}

void report_diff_free(struct report_diff *diff)
{
	mem_free(diff->rows);
	arena_fini(&diff->arena);
	*diff = (struct report_diff){0};
}
