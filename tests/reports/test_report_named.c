/*
 * Every named report, by every grouping: as text, CSV and JSON, of complete, empty and killed
 * files; its numbers are those of the views; its query is what sqlite3 answers alike.
 *
 * IPUSCOPE_GOLDEN=write in the environment writes tests/golden/reports.txt anew.
 */
#include "support/report_sample.h"
#include "support/support.h"

#include <cjson/cJSON.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "reports/named/report_named.h"
#include "reports/table/report_select.h"

enum {
	FULL,
	EMPTY,
	KILLED,
	FILES
};

static char folder[SUPPORT_PATH_SIZE];
static char paths[FILES][SUPPORT_PATH_SIZE + 32];

static int setup(void **state)
{
	static void (*const write[])(const char *path) = {
		report_sample_write, report_sample_write_empty, report_sample_write_killed};

	(void)state;
	support_tempdir(folder);
	for (int i = 0; i < FILES; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/%d.db", folder, i);
		write[i](paths[i]);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	support_tempdir_remove(folder);
	return 0;
}

/* A report by one of its groupings. */
struct named_case {
	const struct report_named *named;
	const struct report_grouping *grouping;
};

/* The @at-th of all; false: past the end. */
static bool case_at(int at, struct named_case *out)
{
	const struct report_entry *entry;
	enum report_group group;

	*out = (struct named_case){0};
	for (int i = 0; (entry = report_entry_at(i, &group)); i++) {
		out->named = (const struct report_named *)entry;
		if (entry->run != report_run_named)
			continue;
		for (int g = 0; g < REPORT_GROUPINGS; g++) {
			out->grouping = &out->named->groupings[g];
			if (out->grouping->sql && !at--)
				return true;
		}
	}
	return false;
}

static struct prof_db *opened(int file)
{
	struct prof_db *db;
	struct err err = {0};

	if (prof_db_open(&db, paths[file], &err) != ST_OK)
		fail_msg("%s", err.text);
	return db;
}

/* What the case prints; the caller's (free). */
static char *rendered(struct prof_db *db, const struct named_case *c, enum report_format format,
		      bool sql)
{
	struct report_request request = {
		.db = db,
		.limit = 0,
		.choice = {.by = c->grouping->by, .sql = sql},
		.render = {.format = format, .width = 80, .tool = "ipu-report"}};
	struct err err = {0};
	size_t size = 0;
	char *out = NULL;

	request.out = open_memstream(&out, &size);
	if (c->named->entry.run(&c->named->entry, &request, &err) != ST_OK)
		fail_msg("%s --by %s: %s", c->named->entry.name,
			 c->grouping->by ? c->grouping->by : "-", err.text);
	fclose(request.out);
	return out;
}

static int lines_of(const char *text)
{
	int lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

static void assert_narrow(const char *text)
{
	for (const char *line = text; *line;) {
		size_t length = strcspn(line, "\n"), columns = 0;

		for (size_t i = 0; i < length; i++)
			columns += ((unsigned char)line[i] & 0xc0) != 0x80;
		if (columns > 80)
			fail_msg("wider than 80 columns:\n%s", text);
		line += length + (line[length] == '\n');
	}
}

/* ---- formats --------------------------------------------------------------------------------- */

static void check_formats(struct prof_db *db, const struct named_case *c, int file)
{
	char *json = rendered(db, c, REPORT_AS_JSON, false);
	char *csv = rendered(db, c, REPORT_AS_CSV, false);
	char *text = rendered(db, c, REPORT_AS_TEXT, false);
	cJSON *root = cJSON_Parse(json), *note;
	int rows;

	assert_non_null(root);
	assert_string_equal(cJSON_GetObjectItem(root, "report")->valuestring, c->named->entry.name);
	rows = cJSON_GetArraySize(cJSON_GetObjectItem(root, "rows"));
	note = cJSON_GetObjectItem(root, "note");
	assert_int_equal(lines_of(csv), rows + 1);
	assert_narrow(text);
	/* The sample is of one rank, which met no other, its host's spans carry no operation
	 * (tests/outfeed/python_torch.py has some that do), and no range is repeated
	 * (tests/reports/report_accelerators.py has some that are). Launches and the critical
	 * path are found at the end. */
	if ((file == FULL || (file == KILLED && strcmp(c->named->entry.name, "launch") != 0 &&
			      strcmp(c->named->entry.name, "critical-path") != 0)) &&
	    !rows &&
	    !(c->grouping->by &&
	      (!strcmp(c->grouping->by, "straggler") || !strcmp(c->grouping->by, "measured") ||
	       (!strcmp(c->grouping->by, "range") && !strcmp(c->named->entry.name, "steps")))))
		fail_msg("the sample has no rows in %s", c->named->entry.name);
	if (file == FULL && rows)
		assert_null(note);
	if (file == KILLED)
		assert_contains(text, "The run was killed");
	if (!rows) {
		assert_contains(note->valuestring, c->named->none);
		assert_contains(text, "(no rows)");
	}
	cJSON_Delete(root);
	free(json);
	free(csv);
	free(text);
}

static void test_every_report_of_every_file_in_all_formats(void **state)
{
	struct named_case c;

	(void)state;
	for (int file = 0; file < FILES; file++) {
		struct prof_db *db = opened(file);

		for (int i = 0; case_at(i, &c); i++)
			check_formats(db, &c, file);
		prof_db_close(db);
	}
}

/* ---- the screens ----------------------------------------------------------------------------- */

/* All reports but those whose times are new in each recording. */
static char *all_screens(struct prof_db *db)
{
	struct str all = {0};
	struct named_case c;

	for (int i = 0; case_at(i, &c); i++) {
		char *text;

		if (!strcmp(c.named->entry.name, "overhead") ||
		    !strcmp(c.named->entry.name, "span-sums"))
			continue;
		text = rendered(db, &c, REPORT_AS_TEXT, false);
		str_addf(&all, "$ ipu-report run.db %s%s%s\n%s\n", c.named->entry.name,
			 c.grouping->by ? " --by " : "", c.grouping->by ? c.grouping->by : "",
			 text);
		free(text);
	}
	assert_false(all.failed);
	return all.text;
}

static void test_the_screens_are_the_golden_ones(void **state)
{
	const char *golden = getenv("IPUSCOPE_GOLDEN");
	struct prof_db *db = opened(FULL);
	char path[SUPPORT_PATH_SIZE + 64];
	char *all = all_screens(db), *expected;

	(void)state;
	snprintf(path, sizeof(path), "%s/tests/golden/reports.txt", support_source_dir());
	if (golden && !strcmp(golden, "write"))
		support_write_file(path, all, strlen(all));
	expected = support_read_file(path, NULL);
	assert_string_equal(all, expected);
	free(expected);
	mem_free(all);
	prof_db_close(db);
}

/* ---- the document ---------------------------------------------------------------------------- */

/* The section on the report @name: from its heading to the next; the caller's (free). */
static char *section_of(const char *document, const char *name)
{
	char heading[128];
	const char *start, *end;

	snprintf(heading, sizeof(heading), "### `%s`\n", name);
	start = strstr(document, heading);
	if (!start) {
		fail_msg("docs/reports.md has no section on %s", name);
		return NULL;
	}
	end = strstr(start + strlen(heading) - 1, "\n### ");
	return end ? strndup(start, (size_t)(end - start)) : strdup(start);
}

static void assert_names(const char *section, const char *report, const char *name)
{
	char quoted[128];

	snprintf(quoted, sizeof(quoted), "`%s`", name);
	if (!strstr(section, quoted))
		fail_msg("docs/reports.md says nothing of %s in %s", name, report);
}

static void test_the_document_has_every_column_and_grouping(void **state)
{
	char path[SUPPORT_PATH_SIZE + 64], by[64];
	struct prof_db *db = opened(FULL);
	struct named_case c;
	char *document;

	(void)state;
	snprintf(path, sizeof(path), "%s/docs/reports.md", support_source_dir());
	document = support_read_file(path, NULL);
	for (int i = 0; case_at(i, &c); i++) {
		const char *name = c.named->entry.name;
		char *section = section_of(document, name);
		struct report_table table;

		assert_int_equal(report_table_query(&table, db, name, c.grouping->sql, 1, NULL),
				 ST_OK);
		for (int k = 0; k < table.column_count; k++)
			assert_names(section, name, table.columns[k].name);
		snprintf(by, sizeof(by), "--by %s", c.grouping->by ? c.grouping->by : "");
		if (c.grouping->by)
			assert_names(section, name, by);
		report_table_free(&table);
		free(section);
	}
	free(document);
	prof_db_close(db);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* One number of a report, and the same from the views. */
static const struct {
	const char *name, *by; /* NULL: the first grouping */
	const char *report;    /* of the rows r */
	const char *views;
} numbers[] = {
	{"operations", "layer", "sum(update_cycles)", "SELECT 4 * sum(cycles) FROM operations"},
	{"operations", "phase", "sum(update_share)", "SELECT 1.0"},
	{"operations", "stage", "max(code_bytes)",
	 "SELECT max(c) FROM (SELECT sum(code_bytes) AS c FROM operations GROUP BY stage)"},
	{"operations", NULL, "sum(compute_share + exchange_share + sync_share)",
	 "SELECT count(*) FROM operations"},
	{"operations", "phase", "max(tile_balance)",
	 "SELECT sum(tile_balance * cycles) / sum(cycles) FROM operations"},
	{"layers", NULL, "sum(params)", "SELECT sum(params) FROM layers"},
	{"layers", NULL, "max(update_cycles)",
	 "SELECT 4 * sum(cycles) FROM operations WHERE layer = 'Dense_128'"},
	{"communication", NULL, "max(algbw_gb_s)", "SELECT 2 * 40000 / 1e6"},
	{"communication", "bucket", "max(busbw_gb_s)", "SELECT 3.0 / 4 * 2 * 40000 / 1e6"},
	{"communication", "rank", "max(own_ns)", "SELECT 3500000"},
	{"communication", "straggler", "count(*)", "SELECT 0"}, /* one rank of four is recorded */
	{"communication", "update", "sum(exposed_ns)",
	 "SELECT sum(dur_ns) FROM spans WHERE category = 'mpi'"},
	{"programs", NULL, "count(*)", "SELECT count(*) FROM programs"},
	{"programs", NULL, "max(CASE depth WHEN 0 THEN cycles END)",
	 "SELECT sum(cycles) FROM device_steps"},
	{"execution-trace", NULL, "sum(cycles)", "SELECT sum(cycles) FROM device_steps"},
	{"execution-trace", NULL, "max(parallel_efficiency)", "SELECT 0.9"},
	{"execution-trace", "type", "sum(share)", "SELECT 1.0"},
	{"execution-trace", "operation", "sum(cycles)", "SELECT sum(cycles) FROM device_steps"},
	{"time-split", NULL, "sum(total_ns)",
	 "SELECT sum(compute_ns + exchange_ns + sync_ns + host_io_ns + idle_ns) FROM time_split"},
	{"time-split", "execution",
	 "max(compute_share + exchange_share + sync_share + host_io_share + waiting_share)",
	 "SELECT 1.0"},
	{"span-sums", NULL, "sum(spans)", "SELECT count(*) FROM spans"},
	{"span-sums", NULL, "sum(total_ns)", "SELECT sum(dur_ns) FROM spans"},
	{"span-sums", NULL, "sum(self_ns)",
	 "SELECT sum(dur_ns) FROM spans WHERE parent_id IS NULL"},
	{"span-sums", NULL, "max(CASE WHEN name LIKE 'load%' THEN self_ns END)",
	 "SELECT p.dur_ns - i.dur_ns FROM spans i JOIN spans p ON p.span_id = i.parent_id"},
	{"span-sums", "category", "sum(self_share)", "SELECT count(DISTINCT clock) FROM spans"},
	{"span-sums", "track", "sum(longest_ns = total_ns)",
	 "SELECT count(*) FROM (SELECT 1 FROM spans GROUP BY clock, rank, track, name HAVING "
	 "max(dur_ns) = sum(dur_ns))"},
	{"stages", NULL, "max(CASE WHEN clock = 'host' AND stage = 1 THEN forward_ns END)",
	 "SELECT avg(dur_ns) FROM stage_timings WHERE clock = 'host' AND stage = 1 AND phase = "
	 "'F'"},
	{"stages", NULL, "sum(total_ns)", "SELECT sum(dur_ns) FROM stage_timings"},
	{"stages", NULL, "sum(share)", "SELECT 2.0"},
	{"stages", NULL, "sum(imbalance)", "SELECT 0.0"},
	{"bubbles", NULL, "max(CASE clock WHEN 'host' THEN idle_fraction END)",
	 "SELECT avg(idle_fraction) FROM bubbles WHERE clock = 'host'"},
	{"bubbles", "epoch", "max(CASE clock WHEN 'host' THEN ramp_up END)",
	 "SELECT 1.0 * sum(ramp_up_ns) / sum(busy_ns + ramp_up_ns + ramp_down_ns + imbalance_ns + "
	 "communication_ns) FROM bubbles WHERE clock = 'host'"},
	{"bubbles", "execution", "sum(runs)", "SELECT count(*) FROM bubbles"},
	{"bubbles", "update", "count(*)", "SELECT count(*) FROM bubbles"},
	{"memory", NULL, "sum(bytes)", "SELECT sum(bytes) FROM tile_memory"},
	{"memory", NULL, "max(fullest_tile)", "SELECT 3"},
	{"memory", "category", "sum(share)", "SELECT 1.0"},
	{"memory", "tile", "max(used_share)", "SELECT 200704.0 / 638976"},
	{"liveness", NULL, "max(peak_bytes)",
	 "SELECT max(always_live_bytes + not_always_live_bytes) FROM liveness"},
	{"liveness", NULL, "max(program_step)", "SELECT 1"},
	{"liveness", "variable", "sum(bytes)", "SELECT sum(bytes) FROM variables"},
	{"liveness", "step", "count(*)", "SELECT count(*) FROM liveness"},
	{"tensors", NULL, "sum(rows)", "SELECT count(*) FROM tensor_stats"},
	{"tensors", NULL, "max(step)", "SELECT max(step) FROM tensor_stats"},
	{"tensors", NULL, "sum(bad_rows)", "SELECT sum(n_nan > 0) FROM tensor_stats"},
	{"tensor-epochs", NULL, "sum(mean)", "SELECT sum(mean) FROM tensor_epochs"},
	{"health", NULL, "count(*)", "SELECT count(*) FROM health"},
	{"metrics", NULL, "max(loss)", "SELECT max(value) FROM metrics WHERE step IS NULL"},
	{"metrics", NULL,
	 "max(CASE mode WHEN 'train' THEN metrics END = "
	 "'loss: 2.0000 - accuracy: 0.7500')",
	 "SELECT 1"},
	{"metrics", "metric", "sum(count)", "SELECT count(*) FROM metrics"},
	{"overhead", NULL, "sum(events)", "SELECT sum(events) FROM overhead"},
	{"runs", NULL, "sum(samples)", "SELECT sum(steps) * 32 * 2 FROM executions"},
	{"runs", NULL, "max(samples_per_s)",
	 "SELECT max(steps * 64 * 1e9 / dur_ns) FROM executions"},
	{"runs", NULL, "sum(warm_up)", "SELECT count(DISTINCT mode) FROM executions"},
};

static double asked(struct prof_db *db, const char *sql)
{
	struct report_table table;
	struct err err = {0};
	double value;

	if (report_table_query(&table, db, "q", sql, 0, &err) != ST_OK)
		fail_msg("%s\n%s", err.text, sql);
	assert_int_equal(table.row_count, 1);
	value = table.cells[0].type == PROF_INT ? (double)table.cells[0].integer
						: table.cells[0].real;
	if (table.cells[0].type == PROF_NULL)
		fail_msg("NULL: %s", sql);
	report_table_free(&table);
	return value;
}

static void test_the_numbers_are_those_of_the_views(void **state)
{
	struct prof_db *db = opened(FULL);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		struct str sql = {0};
		double report, views;
		struct named_case c;

		for (int n = 0;; n++) {
			assert_true(case_at(n, &c));
			if (!strcmp(c.named->entry.name, numbers[i].name) &&
			    (!numbers[i].by || !strcmp(c.grouping->by, numbers[i].by)))
				break;
		}
		str_addf(&sql, "SELECT %s FROM (%s) r", numbers[i].report, c.grouping->sql);
		report = asked(db, str_peek(&sql));
		views = asked(db, numbers[i].views);
		if (!support_is_close(report, views, 1e-12) &&
		    !(views == 0 && report > -1e-12 && report < 1e-12))
			fail_msg("%s: %s is %.17g, not %.17g", numbers[i].name, numbers[i].report,
				 report, views);
		str_free(&sql);
	}
	prof_db_close(db);
}

/* Reports that replace a view of the same name have its columns first and its rows. */
static void test_scripts_for_views_go_on_with_these_reports(void **state)
{
	static const char *const names[] = {"operations", "layers", "programs", "tensors",
					    "health"};
	struct prof_db *db = opened(FULL);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct report_table view, report;
		struct named_case c;
		int n = 0;

		while (case_at(n, &c) && strcmp(c.named->entry.name, names[i]) != 0)
			n++;
		assert_int_equal(report_table_view(&view, db, names[i], 0, NULL), ST_OK);
		assert_int_equal(
			report_table_query(&report, db, names[i], c.grouping->sql, 0, NULL), ST_OK);
		assert_int_equal(view.row_count, report.row_count);
		assert_true(report.column_count > view.column_count);
		for (int k = 0; k < view.column_count; k++)
			assert_string_equal(view.columns[k].name, report.columns[k].name);
		report_table_free(&view);
		report_table_free(&report);
	}
	prof_db_close(db);
}

/* ---- pasted into sqlite3 --------------------------------------------------------------------- */

/* The next field of a CSV at *@at, unquoted. */
static void csv_field(const char **at, char *out, size_t size)
{
	size_t length = 0;
	bool quoted = **at == '"';

	*at += quoted;
	while (**at && (quoted || !strchr(",\r\n", **at))) {
		if (quoted && **at == '"' && *++*at != '"')
			break;
		assert_true(length + 1 < size);
		out[length++] = *(*at)++;
	}
	out[length] = '\0';
	while (**at && strchr(",\r\n", **at))
		if (*(*at)++ != '\r')
			break;
}

/* The same cells; reals to 15 digits, as sqlite3 prints them. */
static void assert_same_csv(const char *name, const char *a, const char *b)
{
	char left[4096], right[4096];

	while (*a && *b) {
		double x, y;

		csv_field(&a, left, sizeof(left));
		csv_field(&b, right, sizeof(right));
		if (strcmp(left, right) != 0 &&
		    !(str_to_double(left, &x) && str_to_double(right, &y) &&
		      support_is_close(x, y, 1e-13)) &&
		    !(!strcmp(left, "Inf") && !strcmp(right, "inf")))
			fail_msg("%s: sqlite3 says %s, we %s", name, left, right);
	}
	assert_string_equal(a, b);
}

static void paste(const char *arguments)
{
	struct support_result theirs, ours;

	support_shell(&theirs,
		      "cd '%s' && '%s'/ipu-report %d.db %s --json --sql | "
		      "sqlite3 -readonly -csv -header %d.db",
		      folder, support_bin_dir(), FULL, arguments, FULL);
	support_shell(&ours, "cd '%s' && '%s'/ipu-report %d.db %s --csv", folder, support_bin_dir(),
		      FULL, arguments);
	if (theirs.exit_code || *theirs.err || ours.exit_code)
		fail_msg("%s: %s%s", arguments, theirs.err, ours.err);
	/* sqlite3 prints no header where there are no rows. */
	if (*theirs.out)
		assert_same_csv(arguments, theirs.out, ours.out);
	else
		assert_int_equal(lines_of(ours.out), 1);
	support_result_free(&theirs);
	support_result_free(&ours);
}

static void test_the_printed_query_answers_alike_in_sqlite3(void **state)
{
	const struct report_entry *entry;
	enum report_group group;
	struct named_case c;
	char arguments[256];

	(void)state;
	if (!support_has_program("sqlite3"))
		skip();
	for (int i = 0; case_at(i, &c); i++) {
		snprintf(arguments, sizeof(arguments), "%s%s%s", c.named->entry.name,
			 c.grouping->by ? " --by " : "", c.grouping->by ? c.grouping->by : "");
		paste(arguments);
	}
	for (int i = 0; (entry = report_entry_at(i, &group)); i++) {
		if (group != REPORT_GROUP_VIEWS || !strcmp(entry->name, "captures"))
			continue; /* captures: blobs, of which we say the size */
		snprintf(arguments, sizeof(arguments), "view:%s", entry->name);
		paste(arguments);
	}
	paste("operations --where \"operation GLOB 'Dense*' AND update_share > percent('20 %')\" "
	      "--sort -cycles --columns operation,cycles --limit 1");
	paste("spans --where \"name != 'it''s'\" --sort -dur_ns,name --limit 2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_report_of_every_file_in_all_formats),
		cmocka_unit_test(test_the_screens_are_the_golden_ones),
		cmocka_unit_test(test_the_document_has_every_column_and_grouping),
		cmocka_unit_test(test_the_numbers_are_those_of_the_views),
		cmocka_unit_test(test_scripts_for_views_go_on_with_these_reports),
		cmocka_unit_test(test_the_printed_query_answers_alike_in_sqlite3),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
