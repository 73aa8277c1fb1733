/*
 * Writing a screen: a picture holds all of it and changes nothing, and no file is ever overwritten.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/view_rig.h"
#include "common/fs.h"
#include "common/mem.h"

static char *write_to(struct view_rig *rig, const char *name, char path[FS_PATH_SIZE])
{
	char *text = NULL;
	size_t length;

	assert_true(fs_path(path, "%s/%s", rig->folder, name));
	view_rig_press(rig, "W");
	view_rig_press(rig, path);
	view_rig_key(rig, VIEW_KEY_ENTER);
	if (fs_read(path, 16 << 20, &text, &length, NULL) != ST_OK)
		return NULL;
	return text;
}

static void test_a_picture_holds_the_whole_screen(void **state)
{
	struct view_rig *rig = *state;
	char path[FS_PATH_SIZE], *before, *after, *svg;

	before = view_rig_text(&rig->session);
	svg = write_to(rig, "screen.svg", path);
	assert_non_null(svg);
	assert_non_null(strstr(svg, "<svg "));
	assert_non_null(strstr(svg, "Summary"));         /* the title */
	assert_non_null(strstr(svg, "Pipeline bubble")); /* the body */
	assert_non_null(strstr(svg, "help"));            /* the keys */
	assert_null(strstr(svg, "write to:"));           /* the prompt is gone */
	assert_int_equal(unlink(path), 0);
	/* Only the message is new. */
	assert_shows(rig, "written: ");
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	after = view_rig_text(&rig->session);
	assert_string_equal(before, after);
	mem_free(svg);
	free(before);
	free(after);
}

static void test_a_name_that_is_typed_replaces_the_proposed_one(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "W");
	assert_string_equal(rig->session.input, "summary.txt");
	view_rig_press(rig, "ab");
	assert_string_equal(rig->session.input, "ab");
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	/* What is corrected is retained. */
	view_rig_press(rig, "W");
	for (int i = 0; i < 3; i++)
		view_rig_key(rig, VIEW_KEY_BACKSPACE);
	view_rig_press(rig, "svg");
	assert_string_equal(rig->session.input, "summary.svg");
	view_rig_key(rig, VIEW_KEY_ESCAPE);
}

static void test_a_picture_is_the_same_on_any_terminal(void **state)
{
	static const struct view_canvas kinds[] = {
		{.colours = 256}, {.colours = 8}, {.ascii = true}, {.plain = true}};
	struct view_rig *rig = *state;
	char path[FS_PATH_SIZE], *first = NULL;

	view_rig_press(rig, "7");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct view_canvas *canvas = &rig->session.canvas;
		char *svg;

		canvas->ascii = kinds[i].ascii;
		canvas->plain = kinds[i].plain;
		canvas->colours = kinds[i].colours;
		svg = write_to(rig, "timeline.svg", path);
		assert_non_null(svg);
		assert_int_equal(unlink(path), 0);
		assert_int_equal(canvas->ascii, kinds[i].ascii);
		assert_int_equal(canvas->colours, kinds[i].colours);
		if (first)
			assert_string_equal(first, svg);
		else
			first = svg;
		if (svg != first)
			mem_free(svg);
	}
	mem_free(first);
}

static void test_nothing_is_written_over_what_is_there(void **state)
{
	struct view_rig *rig = *state;
	char path[FS_PATH_SIZE], *text;

	assert_true(fs_path(path, "%s/kept.svg", rig->folder));
	assert_int_equal(fs_write(path, "mine", 4, NULL), ST_OK);
	text = write_to(rig, "kept.svg", path);
	assert_string_equal(text, "mine");
	assert_shows(rig, "not written: ");
	assert_int_equal(unlink(path), 0);
	mem_free(text);
}

static int count_entries(const char *path)
{
	DIR *folder = opendir(path);
	int count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

static void test_a_full_disk_is_said_and_leaves_nothing(void **state)
{
	static const char *const names[] = {"s.txt", "s.csv", "s.json", "s.svg"};
	struct view_rig *rig = *state;
	const int before = count_entries(rig->folder);
	char path[FS_PATH_SIZE], *text;

	view_rig_press(rig, "7");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		support_limit_files(16);
		text = write_to(rig, names[i], path);
		support_limit_files(-1);
		assert_null(text);
		assert_shows(rig, "not written: ");
		assert_shows(rig, names[i]);
		assert_shows(rig, "File too large");
		assert_int_equal(count_entries(rig->folder), before);
		text = write_to(rig, names[i], path);
		assert_non_null(text);
		assert_shows(rig, "written: ");
		mem_free(text);
		assert_int_equal(count_entries(rig->folder), before + 1);
		assert_int_equal(unlink(path), 0);
	}
}

/* Each in one line that names it and the reason, however narrow the screen is. */
static void test_where_nothing_can_be_written_is_said(void **state)
{
	static const struct {
		const char *name, *why;
	} rows[] = {{"none/s.csv", "No such file or directory"},
		    {"folder", "File exists"},
		    {"folder/", "File exists"},
		    {"loop", "File exists"},
		    {"loop/s.svg", "Too many levels of symbolic links"},
		    {"run.db/s.json", "Not a directory"},
		    {"s.pdf", "must end in .txt, .csv, .json or .svg"},
		    {"run.db", "must end in .txt, .csv, .json or .svg"}};
	struct view_rig *rig = *state;
	char path[FS_PATH_SIZE], *text;

	assert_true(fs_path(path, "%s/folder", rig->folder));
	assert_int_equal(mkdir(path, 0777), 0);
	assert_true(fs_path(path, "%s/loop", rig->folder));
	assert_int_equal(symlink("loop", path), 0);
	view_rig_press(rig, "7");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (int narrow = 0; narrow < 2; narrow++) {
			view_rig_size(rig, narrow ? 60 : 80, 24);
			text = write_to(rig, rows[i].name, path);
			assert_shows(rig, "not written: ");
			assert_shows(rig, rows[i].why);
			mem_free(text);
		}
}

static void test_without_memory_nothing_is_left(void **state)
{
	struct view_rig *rig = *state;
	char path[FS_PATH_SIZE];

	assert_true(fs_path(path, "%s/none.svg", rig->folder));
	view_rig_press(rig, "W");
	view_rig_key(rig, VIEW_CTRL('U'));
	view_rig_press(rig, path);
	support_fail_alloc(0);
	view_session_key(&rig->session, VIEW_KEY_ENTER);
	support_fail_alloc(-1);
	view_session_draw(&rig->session);
	assert_shows(rig, "not written: ");
	assert_false(fs_exists(path));
	assert_int_equal(rig->session.canvas.width, 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_picture_holds_the_whole_screen,
						view_rig_setup, view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_a_name_that_is_typed_replaces_the_proposed_one,
						view_rig_setup, view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_a_picture_is_the_same_on_any_terminal,
						view_rig_setup, view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_nothing_is_written_over_what_is_there,
						view_rig_setup, view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_a_full_disk_is_said_and_leaves_nothing,
						view_rig_setup, view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_where_nothing_can_be_written_is_said,
						view_rig_setup, view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_without_memory_nothing_is_left, view_rig_setup,
						view_rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
