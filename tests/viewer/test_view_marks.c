/*
 * Bookmarks outlive the viewer, belong to their run, and bad files lose nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/str.h"
#include "support/support.h"
#include "support/view_fixture.h"
#include "support/view_rig.h"
#include "viewer/view_session.h"

struct fixture {
	char folder[SUPPORT_PATH_SIZE];
	struct prof_db *db;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char path[SUPPORT_PATH_SIZE + 16];

	support_tempdir(f->folder);
	setenv("XDG_STATE_HOME", f->folder, 1);
	snprintf(path, sizeof(path), "%s/run.db", f->folder);
	*state = f;
	return view_fixture_write(path, 0) && prof_db_open(&f->db, path, NULL) == ST_OK ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	prof_db_close(f->db);
	support_tempdir_remove(f->folder);
	free(f);
	return 0;
}

static void a_mark(struct view_mark *mark, int64_t span)
{
	memset(mark, 0, sizeof(*mark));
	snprintf(mark->name, sizeof(mark->name), "the \"span\" %d\xc3\xa4\n", (int)span);
	snprintf(mark->screen, sizeof(mark->screen), "timeline");
	view_place_clear(&mark->place);
	mark->place.span_id = span;
	mark->place.time_ns = -5;
	view_place_text(mark->place.clock, "device");
	snprintf(mark->place.sql, sizeof(mark->place.sql), "SELECT \"%d\"\n\tAS x;", (int)span);
}

static void test_they_are_read_again_as_they_were_made(void **state)
{
	struct fixture *f = *state;
	struct view_marks marks = {0}, again = {0};
	struct view_mark mark;

	assert_int_equal(view_marks_read(&marks, f->db, NULL), ST_OK);
	assert_int_equal(marks.count, 0);
	for (int i = 0; i < 3; i++) {
		a_mark(&mark, i);
		assert_int_equal(view_marks_add(&marks, &mark, NULL), ST_OK);
	}
	assert_int_equal(view_marks_remove(&marks, 1, NULL), ST_OK);
	assert_int_equal(view_marks_read(&again, f->db, NULL), ST_OK);
	assert_int_equal(again.count, 2);
	a_mark(&mark, 2);
	assert_string_equal(again.items[1].name, mark.name);
	assert_string_equal(again.items[1].screen, mark.screen);
	assert_memory_equal(&again.items[1].place, &mark.place, sizeof(mark.place));
	view_marks_free(&marks);
	view_marks_free(&again);
}

static void test_there_is_an_end_to_them(void **state)
{
	struct fixture *f = *state;
	struct view_marks marks = {0};
	struct view_mark mark;
	struct err err = {0};

	a_mark(&mark, 1);
	assert_int_equal(view_marks_read(&marks, f->db, NULL), ST_OK);
	marks.path[0] = '\0'; /* nowhere to keep them: they work all the same */
	for (int i = 0; i < VIEW_MARKS_MOST; i++)
		assert_int_equal(view_marks_add(&marks, &mark, NULL), ST_OK);
	assert_int_equal(view_marks_add(&marks, &mark, &err), ST_LIMIT);
	assert_contains(err.text, "forget some");
	view_marks_free(&marks);
}

/* Whatever the file holds: an error that names it, or its marks; never a crash. */
static void test_damaged_files_are_said(void **state)
{
	struct fixture *f = *state;
	struct view_marks marks = {0};
	struct view_mark mark;
	size_t length;
	char *whole, path[FS_PATH_SIZE];

	a_mark(&mark, 7);
	assert_int_equal(view_marks_read(&marks, f->db, NULL), ST_OK);
	assert_int_equal(view_marks_add(&marks, &mark, NULL), ST_OK);
	snprintf(path, sizeof(path), "%s", marks.path);
	view_marks_free(&marks);
	whole = support_read_file(path, &length);
	for (size_t cut = 0; cut < length - 2; cut++) {
		struct err err = {0};

		support_write_file(path, whole, cut);
		assert_int_not_equal(view_marks_read(&marks, f->db, &err), ST_OK);
		assert_contains(err.text, path);
		view_marks_free(&marks);
	}
	for (size_t at = 0; at < length; at++) {
		whole[at] ^= 0x15;
		support_write_file(path, whole, length);
		(void)view_marks_read(&marks, f->db, NULL);
		view_marks_free(&marks);
		whole[at] ^= 0x15;
	}
	free(whole);
}

static void test_a_folder_that_refuses_is_said(void **state)
{
	struct fixture *f = *state;
	struct view_marks marks = {0};
	struct view_mark mark;
	struct err err = {0};
	char path[SUPPORT_PATH_SIZE + 16];

	/* A file where the folder should be. */
	snprintf(path, sizeof(path), "%s/ipuscope", f->folder);
	support_write_file(path, "x", 1);
	a_mark(&mark, 1);
	assert_int_equal(view_marks_read(&marks, f->db, NULL), ST_OK);
	assert_int_not_equal(view_marks_add(&marks, &mark, &err), ST_OK);
	assert_contains(err.text, "ipuscope");
	assert_int_equal(marks.count, 1);
	view_marks_free(&marks);
}

/* The bookmark that @marks has at @at. */
static void assert_marked(const struct view_marks *marks, int at, int64_t span)
{
	assert_true(at < marks->count);
	assert_int_equal(marks->items[at].place.span_id, span);
}

static void begin(struct fixture *f, struct view_marks *marks)
{
	memset(marks, 0, sizeof(*marks));
	assert_int_equal(view_marks_read(marks, f->db, NULL), ST_OK);
}

static void add(struct view_marks *marks, int64_t span)
{
	struct view_mark mark;

	a_mark(&mark, span);
	assert_int_equal(view_marks_add(marks, &mark, NULL), ST_OK);
}

static void test_two_viewers_share_them(void **state)
{
	struct fixture *f = *state;
	struct view_marks one, other;

	begin(f, &one);
	begin(f, &other);
	add(&one, 1);
	add(&other, 2);
	add(&one, 3);
	assert_int_equal(one.count, 3);
	assert_marked(&one, 1, 2);
	/* What is taken out is the one that was meant, wherever it is by now. */
	assert_marked(&other, 1, 2);
	assert_int_equal(view_marks_remove(&other, 0, NULL), ST_OK);
	assert_int_equal(other.count, 2);
	assert_marked(&other, 0, 2);
	assert_marked(&other, 1, 3);
	/* And again by the other, which does not know yet. */
	assert_int_equal(view_marks_remove(&one, 0, NULL), ST_OK);
	assert_int_equal(one.count, 2);
	add(&other, 4);
	assert_int_equal(view_marks_refresh(&one, NULL), ST_OK);
	assert_int_equal(one.count, 3);
	view_marks_free(&one);
	view_marks_free(&other);
}

#define EACH 15

static void test_viewers_at_the_same_time_lose_none(void **state)
{
	struct fixture *f = *state;
	struct view_marks marks;
	pid_t children[3];
	int code;

	for (int child = 0; child < 3; child++) {
		children[child] = fork();
		assert_true(children[child] >= 0);
		if (children[child])
			continue;
		begin(f, &marks);
		for (int i = 0; i < EACH; i++) {
			add(&marks, 100 * child + i);
			usleep(3000); /* nobody is quicker than that */
		}
		_exit(0);
	}
	for (int child = 0; child < 3; child++) {
		assert_int_equal(waitpid(children[child], &code, 0), children[child]);
		assert_int_equal(code, 0);
	}
	begin(f, &marks);
	assert_int_equal(marks.count, 3 * EACH);
	view_marks_free(&marks);
}

static void test_a_full_disk_loses_none(void **state)
{
	struct fixture *f = *state;
	struct view_marks marks, again;
	struct view_mark mark;
	struct err err = {0};

	begin(f, &marks);
	add(&marks, 1);
	a_mark(&mark, 2);
	support_limit_files(0);
	assert_int_not_equal(view_marks_add(&marks, &mark, &err), ST_OK);
	assert_contains(err.text, marks.path);
	assert_contains(err.text, "File too large");
	assert_int_not_equal(view_marks_remove(&marks, 0, &err), ST_OK);
	begin(f, &again);
	assert_int_equal(again.count, 1);
	view_marks_free(&again);
	support_limit_files(-1);
	assert_int_equal(marks.count, 2);
	/* The next one takes it along. */
	add(&marks, 3);
	begin(f, &again);
	assert_int_equal(again.count, 3);
	assert_marked(&again, 1, 2);
	view_marks_free(&again);
	view_marks_free(&marks);
}

/* What is no file, or too large a one, is neither read nor waited for, and stays as it is. */
static void test_what_is_no_file_of_bookmarks_is_spared(void **state)
{
	static const char *const makes[] = {
		"mkdir $f",
		"mkfifo $f",
		"ln -s $f loop; ln -s loop $f",
		"truncate -s 100M $f",
		"ln -s /dev/zero $f",
		"head -c 1000000 /dev/zero | tr '\\0' '[' >$f",
	};
	struct fixture *f = *state;
	struct support_result result;
	struct view_marks marks;
	struct view_mark mark;
	char path[FS_PATH_SIZE];

	begin(f, &marks);
	add(&marks, 1);
	a_mark(&mark, 2);
	snprintf(path, sizeof(path), "%s", marks.path);
	for (size_t i = 0; i < sizeof(makes) / sizeof(makes[0]); i++) {
		struct view_marks other = {0};
		struct err err = {0};

		remove(path);
		support_shell(&result, "cd %s/ipuscope/bookmarks; f=%s; %s", f->folder, path,
			      makes[i]);
		support_result_free(&result);
		assert_int_not_equal(view_marks_read(&other, f->db, &err), ST_OK);
		assert_contains(err.text, path);
		assert_int_not_equal(view_marks_add(&marks, &mark, NULL), ST_OK);
		assert_int_not_equal(view_marks_read(&other, f->db, NULL), ST_OK);
		view_marks_free(&other);
	}
	view_marks_free(&marks);
}

/* The status line says what a full disk does to a bookmark that is made, and to one forgotten. */
static void test_the_viewer_says_what_a_full_disk_does(void **state)
{
	struct fixture *f = *state;
	struct view_rig rig = {0};
	char path[SUPPORT_PATH_SIZE + 16];

	snprintf(path, sizeof(path), "%s/run.db", f->folder);
	view_rig_open(&rig, path, NULL, 132, 40);
	view_rig_press(&rig, "2m\r");
	support_limit_files(0);
	view_rig_press(&rig, "m\r");
	assert_shows(&rig, "not kept: ");
	assert_int_equal(rig.session.marks.count, 2);
	view_rig_press(&rig, "'d");
	assert_shows(&rig, "not forgotten: ");
	assert_int_equal(rig.session.marks.count, 2);
	support_limit_files(-1);
	view_rig_close(&rig);
}

/* A name that would be cut within a character; the list's cursor stays where one was forgotten. */
static void test_the_list_is_kept_as_one_uses_it(void **state)
{
	struct fixture *f = *state;
	struct ips_operation operation = {.layer = "layer", .kind = "matmul", .phase = "F"};
	struct ips_recording *recording;
	struct view_rig rig = {0};
	char path[SUPPORT_PATH_SIZE + 16], name[128] = "";

	snprintf(path, sizeof(path), "%s/long.db", f->folder);
	for (int i = 0; i < 60; i++)
		strcat(name, "\xc3\xa9");
	operation.operation = name;
	assert_int_equal(ips_recording_open(&recording, path, NULL, NULL, 0), 0);
	assert_int_equal(ips_append_operation(recording, &operation), 0);
	assert_int_equal(ips_recording_close(recording, NULL, 0), 0);
	view_rig_open(&rig, path, NULL, 132, 40);
	view_rig_press(&rig, "6m");
	assert_int_equal(strlen(rig.session.input), strlen("the operation ") + 80);
	view_rig_press(&rig, "\r");
	for (int i = 0; i < 3; i++) {
		view_rig_press(&rig, "m");
		snprintf(rig.session.input, sizeof(rig.session.input), "%d", i);
		view_rig_press(&rig, "\r");
	}
	assert_int_equal(rig.session.marks.count, 4);
	view_rig_press(&rig, "'jjd");
	assert_int_equal(rig.session.marks.count, 3);
	assert_int_equal(rig.session.popup.at, 2);
	view_rig_press(&rig, "d");
	assert_int_equal(rig.session.popup.at, 1);
	view_rig_press(&rig, "d");
	assert_string_equal(rig.session.marks.items[0].name + strlen("the operation "),
			    name + strlen(name) - 80);
	view_rig_close(&rig);
}

/* A bookmark of the SQL screen leads to its statement, also in the next viewer. */
static void test_a_bookmark_of_a_statement_runs_it(void **state)
{
	struct fixture *f = *state;
	struct view_rig rig = {0};
	char path[SUPPORT_PATH_SIZE + 16];

	snprintf(path, sizeof(path), "%s/run.db", f->folder);
	view_rig_open(&rig, path, NULL, 100, 24);
	view_rig_press(&rig, ":SELECT 6 * 7 AS answer;\r\x1bm\r");
	assert_int_equal(rig.session.marks.count, 1);
	view_rig_close(&rig);
	view_rig_open(&rig, path, NULL, 100, 24);
	view_rig_press(&rig, "'\r");
	assert_int_equal(rig.session.screen, view_session_screen_of("sql"));
	assert_line_shows(&rig, "sql> ", "SELECT 6 * 7 AS answer;");
	assert_shows(&rig, "1 row in ");
	assert_shows(&rig, "42");
	view_rig_close(&rig);
}

static int64_t size_of(const char *path)
{
	struct stat info;

	assert_int_equal(stat(path, &info), 0);
	return info.st_size;
}

/* A file of 4 MiB is written and read again; a bookmark that makes it larger is refused. */
static void test_their_file_has_an_end(void **state)
{
	enum {
		MOST = 4 << 20,
		LONGEST = VIEW_PLACE_SQL - 1,
		ESCAPED = 6
	};
	struct fixture *f = *state;
	struct view_mark mark = {.name = "n", .screen = "sql"};
	struct view_marks marks;
	struct str text = {0};
	struct err err = {0};
	int64_t each, left;

	/* What a bookmark takes without its statement, and the file without bookmarks. */
	view_place_clear(&mark.place);
	mark.place.sql[0] = '1';
	begin(f, &marks);
	assert_int_equal(view_marks_add(&marks, &mark, NULL), ST_OK);
	left = MOST - size_of(marks.path);
	assert_int_equal(view_marks_add(&marks, &mark, NULL), ST_OK);
	each = left - (MOST - size_of(marks.path)) - 1;
	left += each + 1;
	/* Statements of control characters, each of which is six bytes in the file. */
	str_addf(&text, "{\"bookmarks\": [");
	for (; left >= each + ESCAPED * LONGEST + each; left -= each + ESCAPED * LONGEST) {
		str_addf(&text, "{\"name\": \"n\", \"screen\": \"sql\", \"place\": {\"sql\": \"");
		for (int i = 0; i < LONGEST; i++)
			str_add(&text, "\\u0001");
		str_addf(&text, "\"}},");
	}
	text.text[text.length - 1] = ']';
	str_addf(&text, "}");
	support_write_file(marks.path, str_peek(&text), text.length);
	str_free(&text);
	view_marks_free(&marks);
	/* The last one fills what is left. */
	left -= each;
	assert_true(left / ESCAPED + left % ESCAPED <= LONGEST);
	memset(mark.place.sql, '\1', (size_t)(left / ESCAPED));
	memset(mark.place.sql + left / ESCAPED, '1', (size_t)(left % ESCAPED));
	begin(f, &marks);
	assert_int_equal(view_marks_add(&marks, &mark, NULL), ST_OK);
	assert_int_equal(size_of(marks.path), MOST);
	assert_int_equal(view_marks_add(&marks, &mark, &err), ST_LIMIT);
	assert_contains(err.text, "larger than the limit");
	view_marks_free(&marks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_they_are_read_again_as_they_were_made, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_there_is_an_end_to_them, setup, teardown),
		cmocka_unit_test_setup_teardown(test_their_file_has_an_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged_files_are_said, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_folder_that_refuses_is_said, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_two_viewers_share_them, setup, teardown),
		cmocka_unit_test_setup_teardown(test_viewers_at_the_same_time_lose_none, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_full_disk_loses_none, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_no_file_of_bookmarks_is_spared, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_the_viewer_says_what_a_full_disk_does, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_the_list_is_kept_as_one_uses_it, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_bookmark_of_a_statement_runs_it, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
