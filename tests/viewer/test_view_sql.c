/*
 * The screen SQL: typing, completion, history, what is found and what is refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "reports/table/report_views.h"
#include "support/view_fixture.h"
#include "support/view_rig.h"
#include "viewer/sql/view_sql_internal.h"

static int setup(void **state)
{
	if (view_rig_setup(state) != 0)
		return -1;
	view_rig_press(*state, ":");
	return 0;
}

static struct view_sql *screen_of(struct view_rig *rig)
{
	return rig->session.state[VIEW_SQL];
}

/* Type @sql over what is there, and run it. */
static void ask(struct view_rig *rig, const char *sql)
{
	if (screen_of(rig)->focus != VIEW_SQL_EDIT)
		view_rig_key(rig, '\r');
	view_edit_set(&screen_of(rig)->edit, "");
	view_rig_press(rig, sql);
	view_rig_key(rig, '\r');
}

static void test_rows_are_what_the_statement_finds(void **state)
{
	struct view_rig *rig = *state;
	char line[128];
	const int64_t count = view_rig_sql_int(rig, "SELECT count(*) FROM spans WHERE stage = 1");
	const int64_t longest = view_rig_sql_int(rig, "SELECT max(span_id) FROM spans");

	ask(rig, "SELECT count(*) AS spans, 'a b' AS word FROM spans WHERE stage = 1;");
	assert_shows(rig, "1 row in ");
	snprintf(line, sizeof(line), "%lld,%03lld", (long long)count / 1000,
		 (long long)count % 1000);
	assert_shows(rig, count >= 1000 ? line : "spans");
	assert_shows(rig, "a b");
	ask(rig, "SELECT span_id, name FROM spans ORDER BY span_id DESC;");
	snprintf(line, sizeof(line), "%lld", (long long)longest);
	assert_shows(rig, line);
	assert_int_equal(screen_of(rig)->result.table.row_count,
			 view_rig_sql_int(rig, "SELECT count(*) FROM spans"));
}

static void test_rows_are_bounded_and_it_says_so(void **state)
{
	struct view_rig *rig = *state;

	ask(rig, "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
		 "SELECT x FROM c;");
	assert_shows(rig, "the first 100,000 rows in ");
	assert_shows(rig, "there are more");
	ask(rig, "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
		 "SELECT x, hex(zeroblob(100000)) FROM c;");
	assert_shows(rig, "there are more");
	assert_true(screen_of(rig)->result.table.row_count < 400);
}

static void test_a_mistake_is_pointed_at_and_mended(void **state)
{
	struct view_rig *rig = *state;

	ask(rig, "SELECT 1,\n  nmae FROM spans;");
	assert_shows(rig, "sql> SELECT 1,\n  ->   nmae FROM spans;\n       \xe2\x96\xb2\n");
	assert_shows(rig, "no such column: nmae; did you mean name?");
	ask(rig, "SELECT * FROM spasn;");
	assert_shows(rig, "no such table: spasn; did you mean spans?");
	ask(rig, "SELECT rond(1);");
	assert_shows(rig, "did you mean round?");
	view_rig_press(rig, "x");
	assert_hides(rig, "did you mean");
	ask(rig, "DELETE FROM metric_rows;");
	assert_shows(rig, "DELETE is not allowed here: only statements that read are");
	ask(rig, "SELECT 1; SELECT 2;");
	assert_shows(rig, "more than one statement");
	assert_int_equal(view_rig_sql_int(rig, "SELECT 7"), 7);
}

static void test_enter_runs_what_is_complete(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "SELECT 'x;'\r");
	assert_false(screen_of(rig)->ran);
	assert_shows(rig, "a new line");
	view_rig_key(rig, '\r');
	assert_true(screen_of(rig)->ran);
	assert_string_equal(screen_of(rig)->statement, "SELECT 'x;'");
	assert_shows(rig, "1 row in ");
}

static void test_keys_edit_characters_not_bytes(void **state)
{
	static const struct {
		const char *before;
		uint32_t keys[8];
		const char *after;
	} edits[] = {
		{"a\xc3\xa4"
		 "b",
		 {VIEW_KEY_LEFT, VIEW_KEY_BACKSPACE},
		 "ab"},
		{"a\xe4\xb8\xad", {VIEW_KEY_HOME, VIEW_KEY_RIGHT, VIEW_KEY_DELETE}, "a"},
		{"one two", {VIEW_CTRL('W'), 0xe4}, "one \xc3\xa4"},
		{"one two  ", {VIEW_CTRL('W')}, "one "},
		{"one two", {VIEW_CTRL('A'), 'x', VIEW_CTRL('E'), 'y'}, "xone twoy"},
		{"one\ntwo", {VIEW_CTRL('U'), 'z'}, "one\nz"},
		{"one\ntwo", {VIEW_KEY_UP, VIEW_CTRL('A'), VIEW_CTRL('K')}, "\ntwo"},
		{"on\xc3\xa4\nxyz",
		 {VIEW_KEY_UP, VIEW_KEY_BACKSPACE, VIEW_KEY_DOWN, '!'},
		 "on\nxy!z"},
		{"", {VIEW_KEY_BACKSPACE, VIEW_KEY_DELETE, VIEW_KEY_LEFT, VIEW_CTRL('W')}, ""},
	};
	struct view_edit edit;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(edits); i++) {
		view_edit_set(&edit, edits[i].before);
		for (size_t k = 0; k < 8 && edits[i].keys[k]; k++)
			(void)view_edit_key(&edit, edits[i].keys[k]);
		assert_string_equal(edit.text, edits[i].after);
	}
	view_edit_set(&edit, "");
	for (int i = 0; i < 2 * VIEW_PLACE_SQL; i++)
		view_edit_key(&edit, 0x4e2d);
	assert_true(strlen(edit.text) < VIEW_PLACE_SQL);
	assert_int_equal(strlen(edit.text) % 3, 0);
}

static void test_tab_completes_what_fits_best(void **state)
{
	struct view_rig *rig = *state;
	struct view_sql *screen = screen_of(rig);

	view_rig_press(rig, "sel\t * FROM tensor_st\t");
	assert_string_equal(screen->edit.text, "SELECT * FROM tensor_stats");
	/* Columns of the view come first. */
	view_rig_press(rig, " WHERE abs_mi\t");
	assert_string_equal(screen->edit.text, "SELECT * FROM tensor_stats WHERE abs_min_nonzero");
	view_edit_set(&screen->edit, "SELECT * FROM st");
	view_rig_press(rig, "\t");
	assert_shows(rig, "stage_timings");
	view_rig_press(rig, "a\t");
	assert_string_equal(screen->edit.text, "SELECT * FROM sta");
	view_rig_press(rig, "\t");
	assert_string_equal(screen->edit.text, "SELECT * FROM stage_timings");
	view_rig_press(rig, "\t");
	assert_string_equal(screen->edit.text, "SELECT * FROM stage_sums");
	view_rig_key(rig, VIEW_KEY_END);
	view_edit_set(&screen->edit, "qqq");
	view_rig_press(rig, "\t");
	assert_shows(rig, "nothing known begins so");
	/* An empty statement leaves Tab to the screens. */
	view_edit_set(&screen->edit, "");
	view_rig_press(rig, "\t");
	assert_int_not_equal(rig->session.screen, VIEW_SQL);
}

static void test_statements_are_remembered_privately(void **state)
{
	struct view_rig *rig = *state;
	struct view_sql_history other = {0};
	char path[SUPPORT_PATH_SIZE + 64];
	struct stat info;

	ask(rig, "SELECT 1;");
	ask(rig, "SELECT\n'a\\b';");
	ask(rig, "SELECT 1;");
	snprintf(path, sizeof(path), "%s/ipuscope/sql_history", rig->folder);
	assert_int_equal(stat(path, &info), 0);
	assert_int_equal(info.st_mode & 0777, 0600);
	assert_int_equal(view_sql_history_read(&other, NULL), ST_OK);
	assert_int_equal(other.count, 2);
	assert_string_equal(other.items[0], "SELECT\n'a\\b';");
	assert_string_equal(other.items[1], "SELECT 1;");
	view_edit_set(&screen_of(rig)->edit, "typed");
	view_rig_key(rig, VIEW_KEY_UP);
	assert_string_equal(screen_of(rig)->edit.text, "SELECT 1;");
	view_rig_key(rig, VIEW_KEY_UP);
	assert_string_equal(screen_of(rig)->edit.text, "SELECT\n'a\\b';");
	view_rig_key(rig, VIEW_KEY_DOWN);
	view_rig_key(rig, VIEW_KEY_DOWN);
	assert_string_equal(screen_of(rig)->edit.text, "typed");
	for (int i = 0; i < 2 * VIEW_SQL_HISTORY_MOST; i++) {
		char sql[32];

		snprintf(sql, sizeof(sql), "SELECT %d;", i);
		assert_int_equal(view_sql_history_add(&other, sql, NULL), ST_OK);
	}
	assert_int_equal(other.count, VIEW_SQL_HISTORY_MOST);
	view_sql_history_fini(&other);
}

static void test_a_full_disk_leaves_the_history_and_is_said_once(void **state)
{
	struct view_rig *rig = *state;
	struct view_sql_history other = {0};

	ask(rig, "SELECT 1;");
	support_limit_files(0);
	ask(rig, "SELECT 2;");
	assert_shows(rig, "the history is not kept: ");
	assert_shows(rig, "File too large");
	ask(rig, "SELECT 3;");
	assert_hides(rig, "not kept");
	support_limit_files(-1);
	assert_int_equal(view_sql_history_read(&other, NULL), ST_OK);
	assert_int_equal(other.count, 1);
	view_sql_history_fini(&other);
	ask(rig, "SELECT 4;");
	assert_int_equal(view_sql_history_read(&other, NULL), ST_OK);
	assert_int_equal(other.count, 4);
	view_sql_history_fini(&other);
}

static void test_ctrl_r_finds_statements_by_a_part(void **state)
{
	struct view_rig *rig = *state;
	const char *text = screen_of(rig)->edit.text;

	ask(rig, "SELECT 1 AS one;");
	ask(rig, "SELECT 2 AS two;");
	ask(rig, "SELECT 11 AS ones;");
	ask(rig, "SELECT 3 AS three;");
	view_rig_key(rig, '\r');
	view_edit_set(&screen_of(rig)->edit, "");
	view_rig_press(rig, "AS ONE");
	view_rig_key(rig, VIEW_CTRL('R'));
	assert_string_equal(text, "SELECT 11 AS ones;");
	assert_shows(rig, "with AS ONE; Ctrl-R: further back");
	view_rig_key(rig, VIEW_CTRL('R'));
	assert_string_equal(text, "SELECT 1 AS one;");
	view_rig_key(rig, VIEW_CTRL('R'));
	assert_string_equal(text, "SELECT 1 AS one;");
	assert_shows(rig, "no statement before has AS ONE");
	/* Forward again, to what was typed. */
	for (int i = 0; i < 4; i++)
		view_rig_key(rig, VIEW_KEY_DOWN);
	assert_string_equal(text, "AS ONE");
}

static void test_the_foot_shows_the_keys_of_what_takes_them(void **state)
{
	struct view_rig *rig = *state;

	assert_shows(rig,
		     "Enter run  Tab complete  Esc leave  Up before  Down after  Ctrl-R search");
	assert_hides(rig, "> sort");
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	assert_shows(rig, "> sort");
	assert_hides(rig, "Tab complete");
	view_rig_press(rig, "\\");
	assert_shows(rig, "Enter do it  Esc leave");
	/* Where they are clicked they do the same. */
	view_session_click(&rig->session, 15, 23);
	view_session_draw(&rig->session);
	assert_int_equal(rig->session.prompt, VIEW_NO_PROMPT);
}

static void test_a_long_text_is_there_whole(void **state)
{
	struct view_rig *rig = *state;

	ask(rig, "SELECT 'begin ' || hex(zeroblob(60)) || ' end' AS long, 7 AS seven;");
	assert_shows(rig, "row 1, whole");
	assert_shows(rig, "000 end");
	ask(rig, "SELECT 'short' AS brief, 7 AS seven;");
	assert_hides(rig, "row 1, whole");
}

static void test_null_is_no_text(void **state)
{
	struct view_rig *rig = *state;

	ask(rig, "SELECT NULL AS a, '' AS b, '-' AS c, x'00ff' AS d;");
	assert_shows(rig, " NULL   - 2 B");
}

static void test_a_statement_to_begin_with(void **state)
{
	struct view_rig *rig = *state;
	struct view_rig begun = {0};

	view_rig_open(&begun, rig->path, NULL, 80, 24);
	begun.session.context.query = "SELECT 40 + 2 AS answer";
	view_rig_press(&begun, ":");
	assert_shows(&begun, "42");
	assert_int_equal(screen_of(&begun)->focus, VIEW_SQL_RESULT);
	view_rig_close(&begun);
	view_rig_open(&begun, rig->path, NULL, 80, 24);
	begun.session.context.query = "SELECT answer";
	view_rig_press(&begun, ":");
	assert_shows(&begun, "no such column: answer");
	assert_int_equal(screen_of(&begun)->focus, VIEW_SQL_EDIT);
	view_rig_close(&begun);
}

static void test_no_folder_for_the_history_is_no_error(void **state)
{
	struct view_rig *rig = *state;

	setenv("XDG_STATE_HOME", "/dev/null/nowhere", 1);
	ask(rig, "SELECT 1;");
	assert_shows(rig, "1 row in ");
	view_edit_set(&screen_of(rig)->edit, "");
	view_rig_key(rig, VIEW_KEY_UP);
	assert_string_equal(screen_of(rig)->edit.text, "SELECT 1;");
}

static void test_what_follows_the_screens_key_at_once_is_text(void **state)
{
	struct view_rig *rig = *state;
	struct view_session session;

	assert_int_equal(view_session_open(&session, rig->path, NULL, false, NULL), ST_OK);
	assert_int_equal(view_session_size(&session, 80, 24, NULL), ST_OK);
	view_session_draw(&session);
	for (const char *key = ":WITH 1q"; *key; key++)
		view_session_key(&session, (unsigned char)*key);
	assert_int_equal(session.prompt, VIEW_NO_PROMPT);
	assert_string_equal(((struct view_sql *)session.state[VIEW_SQL])->edit.text, "WITH 1q");
	view_session_close(&session);
}

static void test_the_screens_key_always_leads_to_the_statement(void **state)
{
	struct view_rig *rig = *state;

	ask(rig, "SELECT 1;");
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	assert_int_equal(screen_of(rig)->focus, VIEW_SQL_RESULT);
	view_rig_press(rig, ":");
	assert_int_equal(screen_of(rig)->focus, VIEW_SQL_EDIT);
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	assert_int_equal(screen_of(rig)->focus, VIEW_SQL_RESULT);
	view_rig_press(rig, "6:");
	view_rig_press(rig, "-");
	assert_string_equal(screen_of(rig)->edit.text, "SELECT 1;-");
}

static void test_views_are_listed_and_taken(void **state)
{
	struct view_rig *rig = *state;

	assert_shows(rig, report_view_find("meta")->usage);
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	view_rig_press(rig, "jj\r");
	assert_string_equal(screen_of(rig)->edit.text, "SELECT * FROM layers LIMIT 1000;");
	view_rig_key(rig, '\r');
	assert_true(screen_of(rig)->ran);
	view_rig_size(rig, 160, 40);
	assert_shows(rig, "Views: what a row is");
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	view_rig_press(rig, "v");
	assert_int_equal(screen_of(rig)->focus, VIEW_SQL_VIEWS);
	view_rig_press(rig, "v");
	assert_int_equal(screen_of(rig)->focus, VIEW_SQL_RESULT);
}

/* As much of a longer name as a place keeps. */
#define TEN_TYPES "int const*, int const*, int const*, int const*, int const*, "
#define LONG_NAME TEN_TYPES TEN_TYPES TEN_TYPES TEN_TYPES

static void test_places_become_statements(void **state)
{
	static const struct {
		const char *view, *keys, *sql;
	} rows[] = {
		{"stage_sums", "clock=device stage=1",
		 "SELECT * FROM stage_sums WHERE clock = 'device' AND stage = 1;"},
		{"health", "rule=it's key=a b=c",
		 "SELECT * FROM health WHERE rule = 'it''s' AND key = 'a' AND b = 'c';"},
		{"health", "layer=Dense 128  rule=5",
		 "SELECT * FROM health WHERE layer = 'Dense 128' AND rule = '5';"},
		{"device_steps", "ipu=0 type=StreamCopy*",
		 "SELECT * FROM device_steps WHERE ipu = 0 AND type GLOB 'StreamCopy*';"},
		{"kernels", "name=add(float*, char*)",
		 "SELECT * FROM kernels WHERE name = 'add(float*, char*)';"},
		{"kernels", "stream=7 name=" LONG_NAME,
		 "SELECT * FROM kernels WHERE stream = 7 AND instr(name, '" LONG_NAME "') = 1;"},
		{"meta", "", "SELECT * FROM meta;"},
		{"meta", "1=1; DROP TABLE x", "SELECT * FROM meta WHERE 1 = '1; DROP TABLE x';"},
	};
	char sql[VIEW_PLACE_SQL], text[128];
	struct view_rig *rig = *state;
	struct view_place place;
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(view_sql_rows_of(sql, rows[i].view, rows[i].keys, &err), ST_OK);
		assert_string_equal(sql, rows[i].sql);
	}
	assert_int_equal(view_sql_rows_of(sql, "meta; DROP", "", &err), ST_NOTFOUND);
	view_place_clear(&place);
	assert_false(view_sql_ops.offers(&place, text, sizeof(text)));
	view_place_text(place.view, "stage_sums");
	view_place_text(place.keys, "clock=device stage=1");
	assert_true(view_sql_ops.offers(&place, text, sizeof(text)));
	assert_string_equal(text, "rows of stage_sums: clock=device stage=1");
	assert_int_equal(view_sql_ops.go(screen_of(rig), &rig->session.context, &place, &err),
			 ST_OK);
	assert_int_equal(screen_of(rig)->result.table.row_count,
			 view_rig_sql_int(rig, "SELECT count(*) FROM stage_sums "
					       "WHERE clock = 'device' AND stage = 1"));
}

static void test_rows_lead_to_the_screens(void **state)
{
	struct view_rig *rig = *state;
	struct view_place place;
	struct str query = {0};

	ask(rig, "SELECT span_id, operation, stage, start_ns FROM spans "
		 "WHERE operation IS NOT NULL ORDER BY span_id;");
	assert_true(view_sql_ops.place(screen_of(rig), &place));
	assert_int_equal(place.span_id, view_rig_sql_int(rig, "SELECT min(span_id) FROM spans "
							      "WHERE operation IS NOT NULL"));
	assert_string_equal(place.operation, "Dense_256/MatMul");
	assert_true(place.time_ns != IPS_NULL);
	assert_int_equal(place.tile, IPS_NULL);
	view_sql_ops.query(screen_of(rig), &rig->session.context, &query);
	assert_string_equal(query.text + query.length - 2, ";\n");
	str_free(&query);
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	view_rig_press(rig, "o");
	assert_shows(rig, "Go to");
}

static void test_names_that_are_there_twice_are_told_apart(void **state)
{
	struct view_rig *rig = *state;

	ask(rig, "SELECT 1 AS a, 2 AS a, 3 AS a;");
	assert_string_equal(screen_of(rig)->result.table.columns[1].name, "a_2");
	assert_string_equal(screen_of(rig)->result.table.columns[2].name, "a_3");
	ask(rig, "SELECT 'evil\x1b]0;x' AS \"na\x1bme\";");
	assert_hides(rig, "\x1b");
}

static void test_two_reports_are_joined_by_what_names_a_row(void **state)
{
	struct view_rig *rig = *state;
	char path[SUPPORT_PATH_SIZE + 16];
	const struct report_table *table;

	snprintf(path, sizeof(path), "%s/other.db", rig->folder);
	assert_true(view_fixture_write(path, 12));
	view_rig_close(rig);
	view_rig_open(rig, rig->path, path, 132, 40);
	view_rig_press(rig, ":");
	ask(rig, "SELECT phase, sum(count) AS n FROM stage_sums GROUP BY phase ORDER BY phase;");
	table = &screen_of(rig)->result.table;
	assert_int_equal(table->column_count, 5);
	assert_string_equal(table->columns[2].name, "n_target");
	assert_int_equal(table->cells[1].integer, 2 * table->cells[2].integer);
	assert_int_equal(table->cells[3].integer,
			 table->cells[2].integer - table->cells[1].integer);
	assert_string_equal(table->columns[4].name, "verdict");
	assert_string_equal(table->cells[4].text, "changed");
	/* Nothing that names a row: by its number. */
	ask(rig, "SELECT 1.5 * count(*) AS x FROM bubbles;");
	table = &screen_of(rig)->result.table;
	assert_string_equal(table->columns[0].name, "row");
	assert_close(table->cells[1].real, 1.5 * 48, 1e-12);
	assert_close(table->cells[2].real, 1.5 * 24, 1e-12);
}

static void test_a_mistake_is_said_before_that_the_target_is_closed(void **state)
{
	struct view_rig *rig = *state;
	struct view_sql_answer answer;
	struct prof_db *target;
	struct err err;

	view_rig_close(rig);
	view_rig_open(rig, rig->path, rig->path, 132, 40);
	target = rig->session.target.db;
	rig->session.target.db = NULL;
	assert_int_equal(view_sql_run(&answer, &rig->session.context, "SELECT nmae", &err),
			 ST_INVALID);
	assert_string_equal(err.text, "no such column: nmae");
	assert_int_equal(answer.offset, strlen("SELECT "));
	assert_int_equal(view_sql_run(&answer, &rig->session.context, "SELECT 1", &err), ST_BUSY);
	rig->session.target.db = target;
}

/* What is being edited is nobody's statement yet. */
static void test_only_the_statement_of_the_result_runs_again(void **state)
{
	static const char *const again[] = {"D", "D", "r"};
	struct view_rig *rig = *state;

	view_rig_close(rig);
	view_rig_open(rig, rig->path, rig->path, 132, 40);
	view_rig_press(rig, ":");
	ask(rig, "SELECT 1 AS run;");
	view_rig_press(rig, ":");
	view_edit_set(&screen_of(rig)->edit, "SELECT 2 AS edited");
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	for (size_t i = 0; i < ARRAY_LEN(again); i++) {
		view_rig_press(rig, again[i]);
		assert_string_equal(screen_of(rig)->statement, "SELECT 1 AS run;");
		assert_string_equal(screen_of(rig)->edit.text, "SELECT 2 AS edited");
		assert_string_equal(screen_of(rig)->result.table.columns[1].name, "run");
	}
}

static void test_what_is_cancelled_is_a_message(void **state)
{
	struct view_rig *rig = *state;
	struct view_sql *screen = screen_of(rig);

	ask(rig, "SELECT 1;");
	view_edit_set(&screen->edit, "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 "
				     "FROM c) SELECT count(*) FROM c;");
	atomic_store(&rig->session.context.cancel, true);
	view__sql_run(screen, &rig->session.context);
	atomic_store(&rig->session.context.cancel, false);
	view_rig_size(rig, 80, 24);
	assert_shows(rig, "stopped: Enter runs it again");
	/* The rows before are still there. */
	assert_shows(rig, "1 row in ");
}

static void test_any_size_holds_it(void **state)
{
	static const int widths[] = {1, 40, 41, 60, 80, 120, 132, 250, 300};
	static const int heights[] = {1, 10, 11, 12, 24, 43, 60, 100};
	struct view_rig *rig = *state;

	for (int wrong = 0; wrong < 3; wrong++) {
		ask(rig, wrong == 0   ? "SELECT * FROM spans;"
			 : wrong == 1 ? "SELECT a,\n\n\n\n\n\n\n\n\n\n\n\nb FROM spans;"
				      : "SELECT 'nothing', nothing_at_all_0123456789_"
					"0123456789_0123456789_0123456789;");
		for (size_t w = 0; w < ARRAY_LEN(widths); w++)
			for (size_t h = 0; h < ARRAY_LEN(heights); h++) {
				rig->session.canvas.ascii = (w + h) % 2 == 0;
				rig->session.canvas.plain = (w + h) % 3 == 0;
				view_rig_size(rig, widths[w], heights[h]);
			}
	}
	for (int height = 1; height < 60; height++) {
		const struct view_rect body = {0, 0, 200, height};
		const struct view_sql_areas areas = view__sql_areas(body, height % 9, true);

		assert_true(areas.columns.y + areas.columns.height <= height);
		assert_true(areas.heading.y + areas.heading.height <= areas.main.y);
		assert_true(areas.main.height >= 0 && areas.prompt.height >= 0);
	}
}

static void test_no_memory_is_said(void **state)
{
	struct view_rig *rig = *state;
	struct view_sql *screen = screen_of(rig);

	ask(rig, "SELECT 1;");
	view_edit_set(&screen->edit, "SELECT rule FROM health UNION ALL SELECT 'a';");
	for (long n = 0;; n++) {
		bool failed;

		support_fail_alloc(n);
		view__sql_run(screen, &rig->session.context);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		view_rig_size(rig, 80, 24);
		if (!failed)
			break;
		assert_true(screen->trouble.status == ST_NOMEM || screen->trouble.status == ST_OK);
	}
	assert_int_equal(screen->trouble.status, ST_OK);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, view_rig_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_rows_are_what_the_statement_finds),
		TEST(test_rows_are_bounded_and_it_says_so),
		TEST(test_a_mistake_is_pointed_at_and_mended),
		TEST(test_enter_runs_what_is_complete),
		TEST(test_keys_edit_characters_not_bytes),
		TEST(test_tab_completes_what_fits_best),
		TEST(test_statements_are_remembered_privately),
		TEST(test_a_full_disk_leaves_the_history_and_is_said_once),
		TEST(test_ctrl_r_finds_statements_by_a_part),
		TEST(test_the_foot_shows_the_keys_of_what_takes_them),
		TEST(test_a_long_text_is_there_whole),
		TEST(test_null_is_no_text),
		TEST(test_a_statement_to_begin_with),
		TEST(test_no_folder_for_the_history_is_no_error),
		TEST(test_what_follows_the_screens_key_at_once_is_text),
		TEST(test_the_screens_key_always_leads_to_the_statement),
		TEST(test_views_are_listed_and_taken),
		TEST(test_places_become_statements),
		TEST(test_rows_lead_to_the_screens),
		TEST(test_names_that_are_there_twice_are_told_apart),
		TEST(test_two_reports_are_joined_by_what_names_a_row),
		TEST(test_a_mistake_is_said_before_that_the_target_is_closed),
		TEST(test_only_the_statement_of_the_result_runs_again),
		TEST(test_what_is_cancelled_is_a_message),
		TEST(test_any_size_holds_it),
		TEST(test_no_memory_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
