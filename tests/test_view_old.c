/*
 * Files of earlier schemas: each screen shows what they have, and none refuses to open.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prof_testing.h"
#include "support/view_rig.h"

#define NEWEST_OLD 5

/* Of two tiles on one IPU; the second has most. */
#define OLD_ROWS                                                                                   \
	"INSERT INTO strings (string_id, value) VALUES (1001, 'variables'), (1002, "               \
	"'nonInterleaved');"                                                                       \
	"INSERT INTO tile_memory_rows (ipu, tile, category_id, region_id, bytes, capacity) "       \
	"VALUES (0, 0, 1001, 1002, 100, 1000), (0, 1, 1001, 1002, 250, 1000);"                     \
	"INSERT INTO meta_facts VALUES ('ipus', '1'), ('target', 'ipu2');"

/* The rig's file as @version of the schema made it. */
static void make_old(struct view_rig *rig, int version)
{
	char source[SUPPORT_PATH_SIZE + 64];
	char *sql;

	snprintf(rig->path, sizeof(rig->path), "%s/%d.db", rig->folder, version);
	snprintf(source, sizeof(source), "%s/tests/golden/schema_%d.sql", support_source_dir(),
		 version);
	(void)remove(rig->path);
	sql = support_read_file(source, NULL);
	prof_change(rig->path, sql);
	free(sql);
	prof_change(rig->path, OLD_ROWS);
}

static int setup(void **state)
{
	struct view_rig *rig = view_rig_new(state);

	make_old(rig, 1);
	view_rig_start(rig, false, 100, 60, "");
	return 0;
}

static void test_each_screen_shows_a_file_of_each_schema(void **state)
{
	struct view_rig *rig = *state;

	for (int version = 1; version <= NEWEST_OLD; version++) {
		view_rig_close(rig);
		make_old(rig, version);
		view_rig_start(rig, false, 100, 60, "");
		for (const char *key = "123456789H:"; *key; key++) {
			view_rig_press(rig, (const char[]){*key, '\0'});
			if (rig->session.trouble.status != ST_OK)
				fail_msg("schema %d, screen %c: %s", version, *key,
					 rig->session.trouble.text);
		}
		view_rig_key(rig, VIEW_KEY_ESCAPE);
		view_rig_press(rig, "3");
		assert_shows(rig, "Fullest tile 1: 250 B, 25.00 %");
		view_rig_press(rig, "1");
		assert_shows(rig, "2 on each IPU");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_screen_shows_a_file_of_each_schema, setup,
						view_rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
