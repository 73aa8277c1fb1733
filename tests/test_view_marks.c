/*
 * Bookmarks outlive the viewer, belong to their run, and bad files lose nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/support.h"
#include "support/view_fixture.h"
#include "viewer/view_marks.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_they_are_read_again_as_they_were_made, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_there_is_an_end_to_them, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged_files_are_said, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_folder_that_refuses_is_said, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
