/*
 * The screen Memory: what is on the canvas is what SQL says, at any size and with every key.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fmt.h"
#include "common/str.h"
#include "profiler/ipuscope/profiler.h"
#include "reports/named/report_floor.h"
#include "support/view_fixture_memory.h"
#include "support/view_rig.h"
#include "viewer/memory/view_memory_internal.h"

#define VIEWS 5

static const struct {
	enum view_fixture_memory what;
	int ipus;
	const char *name;
} files[] = {{VIEW_FIXTURE_FITS, 2, "fits"}, {VIEW_FIXTURE_FULL, 3, "full"}};

static void path_of(const struct view_rig *rig, const char *name, char *out, size_t size)
{
	snprintf(out, size, "%s/%s.db", rig->folder, name);
}

static void open_on(struct view_rig *rig, const char *source, const char *target)
{
	char paths[2][SUPPORT_PATH_SIZE + 32];

	path_of(rig, source, paths[0], sizeof(paths[0]));
	path_of(rig, target ? target : source, paths[1], sizeof(paths[1]));
	view_rig_open(rig, paths[0], target ? paths[1] : NULL, 80, 24);
	view_rig_press(rig, "3");
	/* It opens broken down; these tests begin with all as one. */
	view_rig_press(rig, "bbb");
}

/* The screen on a file of its own. */
static void open_written(struct view_rig *rig, const char *name, enum view_fixture_memory what,
			 int ipus)
{
	char path[SUPPORT_PATH_SIZE + 32];

	path_of(rig, name, path, sizeof(path));
	assert_true(view_fixture_memory_write(path, what, ipus));
	open_on(rig, name, NULL);
}

static int setup_files(void **state)
{
	struct view_rig *rig = view_rig_new(state);
	char path[SUPPORT_PATH_SIZE + 32];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		path_of(rig, files[i].name, path, sizeof(path));
		if (!view_fixture_memory_write(path, files[i].what, files[i].ipus))
			return -1;
	}
	return 0;
}

static int teardown_files(void **state)
{
	struct view_rig *rig = *state;

	support_tempdir_remove(rig->folder);
	free(rig);
	return 0;
}

static int setup_one(void **state)
{
	open_on(*state, "fits", NULL);
	return 0;
}

static int setup_full(void **state)
{
	open_on(*state, "full", NULL);
	return 0;
}

static int setup_two(void **state)
{
	open_on(*state, "fits", "full");
	return 0;
}

static int teardown(void **state)
{
	view_rig_close(*state);
	return 0;
}

/* "12,345", as the first column of @sql is shown. */
static const char *number_of(struct view_rig *rig, const char *sql, char out[FMT_SIZE])
{
	return fmt_count(out, view_rig_sql_int(rig, sql));
}

#define TILES "(SELECT ipu, tile, sum(bytes) AS bytes FROM tile_memory GROUP BY ipu, tile)"

static void test_the_fullest_tile_is_said_at_once(void **state)
{
	struct view_rig *rig = *state;
	char text[128], number[FMT_SIZE];

	snprintf(text, sizeof(text), "Fullest tile %d,%d: %s B",
		 (int)view_rig_sql_int(rig, "SELECT ipu FROM " TILES
					    " ORDER BY bytes DESC, ipu, tile LIMIT 1"),
		 (int)view_rig_sql_int(rig, "SELECT tile FROM " TILES
					    " ORDER BY bytes DESC, ipu, tile LIMIT 1"),
		 number_of(rig, "SELECT max(bytes) FROM " TILES, number));
	assert_shows(rig, text);
	assert_shows(rig, "36.81 %: vertexCode 12.1 kB, variables 8 kB");
	assert_shows(rig, "it fits");
	/* And its details are those shown. */
	view_rig_size(rig, 80, 30);
	assert_shows(rig, "tile 0,40");
	assert_shows(rig, "12,345");
}

static void test_details_are_what_the_query_says(void **state)
{
	struct view_rig *rig = *state;
	char number[FMT_SIZE];

	view_rig_size(rig, 200, 60);
	view_rig_press(rig, "/1,35\r");
	assert_shows(rig, "tile 1,35");
	view_rig_press(rig, "E");
	assert_shows(rig, number_of(rig,
				    "SELECT sum(bytes) FROM tile_memory WHERE ipu = 1 AND "
				    "tile = 35",
				    number));
	assert_shows(rig, number_of(rig, "SELECT sum(bytes) FROM tile_memory", number));
	assert_shows(rig, number_of(rig,
				    "SELECT sum(bytes) FROM tile_memory WHERE region = "
				    "'interleaved'",
				    number));
	assert_shows(rig, number_of(rig,
				    "SELECT sum(bytes) FROM tile_memory WHERE category <> "
				    "'notAlwaysLiveVariables'",
				    number));
	assert_shows(rig,
		     number_of(rig, "SELECT bytes FROM variables WHERE variable_id = 10", number));
	assert_shows(rig, "Dense_128/kernel:0");
	assert_shows(rig, "weight, always live, Dense_128");
	view_rig_press(rig, "C");
	assert_hides(rig, "Dense_128/kernel:0");
}

#define APART(where)                                                                               \
	"(SELECT sum(t.bytes) FROM variable_tiles t JOIN variables v USING (variable_id) "         \
	"WHERE NOT always_live" where ")"
#define NEEDED(where)                                                                              \
	"(SELECT coalesce(sum(bytes), 0) FROM tile_memory t WHERE category = "                     \
	"'notAlwaysLiveVariables'" where ")"
#define SAVED(where) "SELECT " APART(where) " - " NEEDED(where)

static void test_what_overlapping_saves_is_said(void **state)
{
	struct view_rig *rig = *state;
	char tile[FMT_SIZE], all[FMT_SIZE];

	view_rig_size(rig, 200, 60);
	view_rig_press(rig, "/0,40\r");
	assert_line_shows(rig, "saved by overlap",
			  number_of(rig, SAVED(" AND t.ipu = 0 AND t.tile = 40"), tile),
			  number_of(rig, SAVED(""), all));
	view_rig_press(rig, "i");
	assert_line_shows(rig, "saved by overlap", tile,
			  number_of(rig, SAVED(" AND t.ipu = 0"), all));
	view_rig_press(rig, "/100\r");
	assert_line_shows(rig, "saved by overlap", " 0 ", all);
}

static void test_short_names_are_told_apart_and_long_ones_kept_where_they_fit(void **state)
{
	char out[VIEW_PLACE_NAME];

	(void)state;
	assert_string_equal(view__memory_brief("notAlwaysLiveVariables", 22, out),
			    "notAlwaysLiveVariables");
	assert_string_equal(view__memory_brief("notAlwaysLiveVariables", 21, out), "notAlwaysLive");
	assert_string_equal(view__memory_brief("hostExchangeCode/IPU12", 8, out),
			    "hostExchCode/IPU12");
	assert_string_equal(view__memory_brief("hostExchangeCodes", 8, out), "hostExchangeCodes");
	assert_string_equal(view__memory_brief("hostExchange", 8, out), "hostExchange");
}

static void test_the_heading_ends_with_a_whole_word_at_any_width(void **state)
{
	struct view_rig *rig = *state;
	const struct view_memory *screen = rig->session.state[VIEW_MEMORY];

	for (int width = 80; width <= 160; width++) {
		view_rig_size(rig, width, 24);
		for (int i = 0; i < 2; i++)
			assert_true(utf8_columns(screen->fullest[i]) < width);
	}
	assert_non_null(strstr(screen->fullest[1], "mean tile"));
}

static void test_what_the_cursor_is_on_is_said_in_full(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "/0,100\re");
	for (int i = 0; i < 6; i++)
		view_rig_press(rig, "j");
	assert_line_shows(rig, "notAlwaysLive ", "5,000");
	assert_shows(rig, "tile 0,100, notAlwaysLiveVariables");
}

static void test_it_opens_broken_down(void **state)
{
	struct view_rig *rig = *state;
	char path[SUPPORT_PATH_SIZE + 32];

	path_of(rig, "fits", path, sizeof(path));
	view_session_close(&rig->session);
	view_rig_open(rig, path, NULL, 80, 24);
	view_rig_press(rig, "3");
	assert_shows(rig, "curve of all memory by category");
}

static void test_tiles_are_found_by_number_and_by_variable(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "/tile 40\r");
	assert_shows(rig, "tile 1,40");
	view_rig_press(rig, "n");
	assert_shows(rig, "tile 0,40");
	view_rig_press(rig, "/1, 7\r");
	assert_shows(rig, "tile 1,7");
	view_rig_press(rig, "/9999\r");
	assert_shows(rig, "not found: 9999");
	view_rig_press(rig, "/OUT\r");
	assert_shows(rig, "curve of Dense_128/out (Esc: all memory), tile 0,100");
	view_rig_press(rig, "\x1b/name\r");
	assert_shows(rig, "'name (Esc: all memory), tile 0,40");
	view_rig_press(rig, "\x1b");
	assert_shows(rig, "curve of all memory");
}

static void test_the_cursor_moves_in_every_view(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "gi");
	assert_shows(rig, "curve of all memory, tile 0,0");
	view_rig_press(rig, "G");
	assert_shows(rig, "tile 0,149");
	view_rig_press(rig, "w+++++l");
	assert_shows(rig, "tile 0,41, tiles ");
	view_rig_press(rig, "vgjlll");
	assert_shows(rig, "floor plan of all memory, tile 0,67");
	view_rig_press(rig, "k");
	assert_shows(rig, "tile 0,3");
	view_rig_press(rig, "vG");
	assert_shows(rig, "histogram of all memory, tile 0,40");
	view_rig_press(rig, "k");
	assert_shows(rig, "tile 0,30");
	view_rig_press(rig, "l");
	assert_shows(rig, "tile 0,31");
	view_rig_press(rig, "vgj");
	assert_shows(rig, "table of all memory, tile 0,30, row 2 of 150");
	view_rig_press(rig, "iv");
	assert_shows(rig, "tile 1,30");
}

/* Tiles seldom share out evenly among the columns. */
static void test_the_curve_s_cursor_goes_through_every_column_both_ways(void **state)
{
	static const int widths[] = {40, 57, 80, 109, 132, 200};
	struct view_rig *rig = *state;
	const struct view_memory *screen = rig->session.state[VIEW_MEMORY];

	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		view_rig_size(rig, widths[i], 24);
		view_rig_press(rig, "g");
		for (int column = 0; column < screen->curve.count; column++) {
			const int64_t at =
				view__memory_position(screen, view__memory_cursor(screen));

			assert_int_equal(view__memory_column_of(screen, at), column);
			view_rig_press(rig, "l");
		}
		view_rig_press(rig, "G");
		for (int column = screen->curve.count - 1; column > 0; column--)
			view_rig_press(rig, "h");
		assert_int_equal(view__memory_column_of(screen, view__memory_cursor(screen)), 0);
	}
}

/* Sorted by size, parts change places from IPU to IPU. */
static void test_a_part_stays_when_the_ipu_is_another(void **state)
{
	struct view_rig *rig = *state;
	const struct view_memory *screen;
	struct ips_recording *recording;
	char path[SUPPORT_PATH_SIZE + 32];

	path_of(rig, "parts", path, sizeof(path));
	assert_int_equal(ips_recording_open(&recording, path, NULL, NULL, 0), 0);
	for (int64_t ipu = 0; ipu < 2; ipu++) {
		ips_append_tile_memory(recording,
				       &(struct ips_tile_memory){ipu, 0, "stack", "interleaved",
								 100 + 50 * ipu, 1000, 1});
		ips_append_tile_memory(recording,
				       &(struct ips_tile_memory){ipu, 0, "variables", "interleaved",
								 160 - 50 * ipu, 1000, 1});
	}
	/* IPU 1 has none of it, so it is no part there. */
	ips_append_tile_memory(recording,
			       &(struct ips_tile_memory){0, 0, "code", "interleaved", 10, 1000, 1});
	assert_int_equal(ips_recording_close(recording, NULL, 0), 0);
	open_on(rig, "parts", NULL);
	screen = rig->session.state[VIEW_MEMORY];
	view_rig_press(rig, "s");
	assert_shows(rig, "curve of variables,");
	/* IPU 0, IPU 1, all. */
	for (int i = 0; i < 3; i++) {
		view_rig_press(rig, "i");
		assert_shows(rig, "curve of variables, tile");
		assert_int_equal(screen->series_count, i == 1 ? 2 : 3);
	}
	view_rig_press(rig, "s");
	assert_shows(rig, "curve of stack, tile");
	view_rig_close(rig);
}

static void test_a_part_stays_where_an_ipu_has_none_of_it(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "bbS");
	assert_shows(rig, "curve of overflowed");
	view_rig_press(rig, "i");
	assert_shows(rig, "curve of overflowed, tile 0,");
	view_rig_press(rig, "S");
	assert_shows(rig, "curve of interleaved, tile 0,");
}

static void test_breakdowns_name_what_they_show(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "b");
	assert_shows(rig, "stack ");
	assert_shows(rig, "by category");
	view_rig_press(rig, "s");
	assert_shows(rig, "curve of stack");
	view_rig_press(rig, "ss");
	assert_shows(rig, "curve of notAlwaysLiveVariables");
	view_rig_press(rig, "w");
	assert_shows(rig, "tile 0,100");
	view_rig_press(rig, "b");
	assert_shows(rig, "by region");
	view_rig_press(rig, "b");
	assert_shows(rig, "by liveness");
	view_rig_press(rig, "b");
	assert_hides(rig, "by liveness");
}

static void test_selected_tiles_stand_side_by_side(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "x/1,101\r");
	assert_shows(rig, "tile 1,101   tile 0,40");
	view_rig_press(rig, "x");
	view_rig_press(rig, "/0,40\rx");
	assert_shows(rig, "tile 0,40  tile 1,101");
	view_rig_press(rig, "\x1b");
	assert_hides(rig, "tile 1,101");
}

static void test_variables_show_their_tiles(void **state)
{
	struct view_rig *rig = *state;
	struct view_place place;

	view_rig_press(rig, "\rG");
	assert_shows(rig, "evil");
	view_rig_press(rig, "k\r");
	assert_shows(rig, "curve of Dense_128/kernel:0");
	view_place_clear(&place);
	assert_true(view_memory_ops.place(rig->session.state[VIEW_MEMORY], &place));
	assert_int_equal(place.variable_id, 0);
	assert_string_equal(place.layer, "Dense_128");
	assert_int_equal(place.tile, 40);
}

static void test_places_lead_here(void **state)
{
	struct view_rig *rig = *state;
	void *screen = rig->session.state[VIEW_MEMORY];
	struct view_context *context = &rig->session.context;
	struct view_place place;
	struct err err;
	char text[64];

	view_place_clear(&place);
	assert_false(view_memory_ops.offers(&place, text, sizeof(text)));
	view_place_text(place.layer, "Dense_128");
	assert_true(view_memory_ops.offers(&place, text, sizeof(text)));
	assert_string_equal(text, "the tiles that hold Dense_128");
	assert_int_equal(view_memory_ops.go(screen, context, &place, &err), ST_OK);
	rig->session.stale = true;
	view_session_draw(&rig->session);
	assert_shows(rig, "curve of Dense_128 (Esc: all memory), tile 0,10");
	view_place_clear(&place);
	place.ipu = 1;
	place.tile = 33;
	assert_int_equal(view_memory_ops.go(screen, context, &place, &err), ST_OK);
	rig->session.stale = true;
	view_session_draw(&rig->session);
	assert_shows(rig, "curve of all memory, tile 1,33");
	place.ipu = 9;
	assert_int_equal(view_memory_ops.go(screen, context, &place, &err), ST_NOTFOUND);
	assert_contains(err.text, "tile 33 of IPU 9");
}

/* Every statement runs, and gives what is on the screen. */
static void test_the_query_behind_the_screen_runs(void **state)
{
	static const char *const keys[] = {"",        "b",   "bs",  "bb",      "bbb",
					   "bbbs",    "vv",  "vvb", "i",       "/out\r",
					   "/name\r", "vvs", "V",   "x/1,35\r"};
	struct view_rig *rig = *state;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct str text = {0};
		int statements = 0;

		view_rig_close(rig);
		open_on(rig, "fits", NULL);
		view_rig_press(rig, keys[i]);
		view_memory_ops.query(rig->session.state[VIEW_MEMORY], &rig->session.context,
				      &text);
		for (char *at = text.text, *end; (end = strstr(at, ";\n")); at = end + 2) {
			struct prof_query *query;
			bool row = false;

			*end = '\0';
			assert_int_equal(prof_query_open(&query, rig->session.source.db, at, NULL),
					 ST_OK);
			assert_int_equal(prof_query_step(query, &row, NULL), ST_OK);
			assert_true(row);
			prof_query_close(query);
			statements++;
		}
		assert_int_equal(statements, 4);
		str_free(&text);
	}
}

static void test_histogram_counts_every_tile(void **state)
{
	struct view_rig *rig = *state;
	char number[FMT_SIZE];

	view_rig_press(rig, "vv");
	assert_shows(rig,
		     number_of(rig,
			       "SELECT count(*) FROM " TILES " WHERE bytes BETWEEN 3072 AND 4607",
			       number));
}

/* A cursor on what the new report has not falls back to the fullest tile of the chosen IPU. */
static void test_the_cursor_falls_back_within_its_ipu(void **state)
{
	struct view_rig *rig = *state;
	struct view_memory *screen = rig->session.state[VIEW_MEMORY];

	view_rig_press(rig, "ii");
	assert_int_equal(screen->ipu, 1);
	screen->placed = false;
	view_rig_press(rig, "r");
	assert_int_equal(screen->at_ipu, 1);
	assert_int_equal(screen->at_tile,
			 view_rig_sql_int(rig, "SELECT tile FROM " TILES
					       " WHERE ipu = 1 ORDER BY bytes DESC, tile LIMIT 1"));
}

static void test_tables_hold_what_the_query_says(void **state)
{
	struct view_rig *rig = *state;
	char path[SUPPORT_PATH_SIZE + 32], command[SUPPORT_PATH_SIZE + 64];
	char *text;

	snprintf(path, sizeof(path), "%s/tiles.csv", rig->folder);
	snprintf(command, sizeof(command), "bW\x15%s\r", path);
	view_rig_press(rig, command);
	text = support_read_file(path, NULL);
	assert_contains(text, "ipu,tile,bytes,used_share,capacity,always_live_bytes");
	assert_contains(text, "vertexCode_bytes");
	assert_contains(text, "\r\n0,40,24121,0.368");
	/* Stack and code lie in one region, the variables in the other. */
	assert_contains(text, ",65536,24121,0,15929,8192,0,");
	free(text);
}

static void test_two_reports_are_compared(void **state)
{
	struct view_rig *rig = *state;

	assert_shows(rig, "Source: fullest tile 0,40");
	assert_shows(rig, "Target: fullest tile 2,77");
	view_rig_size(rig, 200, 50);
	assert_shows(rig, "does not fit: 1 tile is out of memory");
	view_rig_press(rig, "/2,77\r");
	assert_shows(rig, "Diff");
	assert_shows(rig, "73,584");
	view_rig_press(rig, "/1,35\r");
	assert_shows(rig, "13,776");
	view_rig_press(rig, "D");
	assert_hides(rig, "vertexCode  ");
	view_rig_press(rig, "Dvvv");
	assert_shows(rig, "Diff");
}

#define KERNEL                                                                                     \
	"SELECT sum(t.bytes) FROM variable_tiles t JOIN variables v USING (variable_id) "          \
	"WHERE v.variable = 'Dense_128/kernel:0' AND t.ipu = 0 AND t.tile "

static void test_variables_are_compared_by_name(void **state)
{
	struct view_rig *rig = *state;
	char number[FMT_SIZE];

	view_rig_size(rig, 40, 10);
	view_rig_press(rig, "\r");
	assert_line_shows(rig, "bytes", "Source", "Target");
	view_rig_press(rig, "\x1b");
	view_rig_size(rig, 120, 60);
	assert_line_shows(rig, "bytes, tile 0,40", "Source", "Target", "Diff");
	assert_line_shows(rig, "Dense_128/kernel:0", " 8,192", " 8,200", "+8 (0.10 %)");
	assert_line_shows(rig, "Dense_128/kernel:0", number_of(rig, KERNEL "= 40", number));
	assert_line_shows(rig, "more/alone", " - ", " 500 ", " -");
	view_rig_press(rig, "D");
	assert_line_shows(rig, "Dense_128/kernel:0", "+8");
	assert_hides(rig, "evil");
}

static void test_selected_tiles_are_compared_together_and_apart(void **state)
{
	struct view_rig *rig = *state;
	char number[FMT_SIZE];

	view_rig_size(rig, 200, 60);
	view_rig_press(rig, "vx/0,41\r");
	assert_line_shows(rig, "bytes, 2 tiles", "Source", "Target", "Diff");
	assert_line_shows(rig, "Dense_128/kernel:0", number_of(rig, KERNEL "IN (40, 41)", number),
			  " 16,392", "+8 (0.05 %)");
	assert_line_shows(rig, "more/alone", " - ", " 1,000 ", " -");
	assert_line_shows(rig, "Memory excluding gaps",
			  number_of(rig,
				    "SELECT sum(bytes) FROM tile_memory "
				    "WHERE ipu = 0 AND tile IN (40, 41)",
				    number));
	view_rig_press(rig, "vvv");
	view_rig_size(rig, 109, 60);
	assert_line_shows(rig, "bytes, 2 tiles", "Source", "Target", "Diff");
	view_rig_size(rig, 80, 24);
	assert_line_shows(rig, "bytes, 2 tiles", "Source", "Target", "Diff");
	view_rig_press(rig, "/1,35\r");
	view_rig_size(rig, 300, 60);
	assert_line_shows(rig, "S 2 tiles", "T 2 tiles", "Diff", "S 1,35", "T 1,35");
	view_rig_press(rig, "\x1b");
	assert_line_shows(rig, "S 1,35", "T 1,35", "Diff", "S all tiles");
	/* The Source has no such tile: what is equal together differs there. */
	view_rig_press(rig, "x/2,0\rD");
	assert_line_shows(rig, " variables ", " 8,192 ", " 8,192 ", " 0 ", " - ");
}

#define OF_IPU_1 " FROM " TILES " WHERE ipu = 1"

static void test_ipus_are_a_table_of_their_own(void **state)
{
	struct view_rig *rig = *state;
	char number[FMT_SIZE], text[64];

	view_rig_size(rig, 160, 24);
	view_rig_press(rig, "V");
	assert_shows(rig, "IPUs of all memory, tile 0,40");
	assert_line_shows(
		rig, "1 ",
		fmt_bytes(number, (uint64_t)view_rig_sql_int(rig, "SELECT sum(bytes)" OF_IPU_1)));
	assert_line_shows(
		rig, "1 ",
		fmt_bytes(number, (uint64_t)view_rig_sql_int(rig, "SELECT max(bytes)" OF_IPU_1)));
	assert_line_shows(rig, "1 ",
			  fmt_bytes(number, (uint64_t)view_rig_sql_int(
						    rig, "SELECT sum(bytes) / count(*)" OF_IPU_1)));
	view_rig_press(rig, "j");
	snprintf(text, sizeof(text), "tile 1,%d",
		 (int)view_rig_sql_int(rig, "SELECT tile" OF_IPU_1 " ORDER BY bytes DESC, tile"));
	assert_shows(rig, text);
	/* Showing one IPU, the row chosen is the one. */
	view_rig_press(rig, "ik");
	assert_shows(rig, "IPU 0, simulated");
	view_rig_press(rig, "j");
	assert_shows(rig, "IPU 1, simulated");
	view_rig_press(rig, "v");
	assert_shows(rig, text);
}

static void test_ipus_of_two_reports_are_compared(void **state)
{
	struct view_rig *rig = *state;

	view_rig_size(rig, 160, 24);
	view_rig_press(rig, "V");
	/* The third is the Target's alone, and its tile 77 does not fit. */
	view_rig_press(rig, "G");
	assert_shows(rig, "tile 2,77");
}

static void test_a_single_ipu_has_no_table_of_ipus(void **state)
{
	struct view_rig *rig = *state;

	open_written(rig, "single", VIEW_FIXTURE_FITS, 1);
	view_rig_press(rig, "V");
	assert_shows(rig, "table of all memory");
	view_rig_press(rig, "v");
	assert_shows(rig, "curve of all memory");
	view_rig_close(rig);
}

/* From rows of all IPUs; where those are too many, of one; where these are, of one tile. */
static void test_what_lies_on_a_tile_is_found_on_every_ipu(void **state)
{
	static const size_t most[] = {VIEW_MEMORY_RUNS_MOST, 4};
	struct view_rig *rig = *state;
	struct view_memory *screen = rig->session.state[VIEW_MEMORY];

	view_rig_size(rig, 109, 50);
	for (int round = 0; round < 4; round++) {
		screen->runs_most = most[round / 2];
		rig->session.news[VIEW_MEMORY] = round == 2;
		view_rig_press(rig, "/2,40\r");
		assert_line_shows(rig, "evil", " 77");
		view_rig_press(rig, "/0,41\r");
		assert_line_shows(rig, "more/alone", " 500");
		view_rig_press(rig, "/1,100\r");
		assert_line_shows(rig, "Dense_128/out", " 5,000");
		assert_hides(rig, "more/alone");
		view_rig_press(rig, "/1,90\r");
		assert_shows(rig, "none is on this tile");
		assert_true(screen->side[0].rows.count <= screen->runs_most);
	}
	assert_true(screen->side[0].rows.many);
}

static void test_what_does_not_fit_is_said_with_what_must_go(void **state)
{
	struct view_rig *rig = *state;

	assert_shows(rig, "Fullest tile 2,77: 73,584 B");
	assert_shows(rig, "does not fit: 1 tile is out of memory, by 7.86 kB");
	assert_line_shows(rig, "Must shrink by, to fit", " 8,048");
	assert_int_equal(view_rig_sql_int(rig, "SELECT max(over) FROM (SELECT sum(bytes) - "
					       "max(capacity) AS over FROM tile_memory "
					       "GROUP BY ipu, tile)"),
			 8048);
}

static void test_every_view_can_be_drawn_at_any_size(void **state)
{
	static const struct {
		int width, height;
	} sizes[] = {{40, 10}, {41, 13}, {60, 17}, {80, 24}, {110, 20}, {132, 43}, {250, 60}};
	struct view_rig *rig = *state;

	for (int mode = 0; mode < 3; mode++)
		for (size_t i = (size_t)mode % support_stride();
		     i < sizeof(sizes) / sizeof(sizes[0]); i += support_stride()) {
			rig->session.canvas.ascii = mode == 1;
			rig->session.canvas.plain = mode == 2;
			view_rig_size(rig, sizes[i].width, sizes[i].height);
			for (int view = 0; view < VIEWS * 5; view++) {
				view_rig_press(rig, view % VIEWS == VIEWS - 1 ? "vbx" : "v");
				assert_int_equal(rig->session.trouble.status, ST_OK);
				assert_shows(rig, "ullest ");
			}
		}
}

static void test_random_keys_do_no_harm(void **state)
{
	static const char often[] = "vvbbsSitxwecECjjkkhhllgG+++---000()[]\r\r><I|nND\x1b";
	struct view_rig *rig = *state;

	srand(5);
	for (unsigned i = 0; i < support_rounds(3000); i++) {
		if (i % 100 == 0)
			view_rig_size(rig, 40 + rand() % 160, 10 + rand() % 50);
		view_rig_key(rig,
			     (uint32_t)(unsigned char)often[(size_t)rand() % (sizeof(often) - 1)]);
		assert_int_equal(rig->session.trouble.status, ST_OK);
		view_popup_close(&rig->session.popup);
		rig->session.quit = false;
	}
}

/* Keys that come faster than pictures. */
static void test_bursts_of_keys_end_where_single_ones_do(void **state)
{
	static const char *const bursts[] = {"gllll",   "g+++lll", "vgjjll", "vvgjj",
					     "vvvgjjj", "ivvjG",   "bsswvl"};
	struct view_rig *rig = *state;

	for (size_t i = 0; i < sizeof(bursts) / sizeof(bursts[0]); i++) {
		char *single, *burst;

		view_rig_close(rig);
		open_on(rig, "fits", NULL);
		view_rig_press(rig, bursts[i]);
		single = view_rig_text(&rig->session);
		view_rig_close(rig);
		open_on(rig, "fits", NULL);
		for (const char *key = bursts[i]; *key; key++)
			view_session_key(&rig->session, (uint32_t)*key);
		view_session_draw(&rig->session);
		burst = view_rig_text(&rig->session);
		if (!strchr(bursts[i], '+'))
			assert_string_equal(burst, single);
		free(single);
		free(burst);
	}
}

static void test_clicks_select_what_they_hit(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "vi");
	/* Body from row 1: heading 2 rows, a title, then the plan's first row. */
	view_session_click(&rig->session, 5, 4);
	view_session_draw(&rig->session);
	assert_shows(rig, "floor plan of all memory, tile 0,5\n");
	view_rig_press(rig, "vvg");
	view_session_click(&rig->session, 5, 6);
	view_session_draw(&rig->session);
	assert_shows(rig, "row 3 of 150");
	view_rig_press(rig, "vv");
	for (int y = 0; y < 24; y++)
		for (int x = 0; x < 80; x += 7) {
			view_session_click(&rig->session, x, y);
			view_session_draw(&rig->session);
			view_session_show(&rig->session, VIEW_MEMORY);
			view_session_draw(&rig->session);
		}
}

static void test_nothing_recorded_is_said(void **state)
{
	struct view_rig *rig = *state;
	struct ips_recording *recording;
	char path[SUPPORT_PATH_SIZE + 32];

	path_of(rig, "empty", path, sizeof(path));
	assert_int_equal(ips_recording_open(&recording, path, NULL, NULL, 0), 0);
	assert_int_equal(ips_recording_close(recording, NULL, 0), 0);
	open_on(rig, "empty", NULL);
	assert_shows(rig, "No memory of tiles was recorded");
	view_rig_press(rig, "vbsitxwecECjkhlgG+-0/12\rnN");
	assert_int_equal(rig->session.trouble.status, ST_OK);
	view_rig_close(rig);
	/* A target without memory beside a source that has it. */
	open_on(rig, "fits", "empty");
	view_rig_press(rig, "vvvvjlx");
	assert_shows(rig, "Target: fullest no memory recorded");
	view_rig_close(rig);
}

static void test_a_cancelled_load_is_said_and_made_up_for(void **state)
{
	struct view_rig *rig = *state;
	void *screen = rig->session.state[VIEW_MEMORY];
	struct err err;

	atomic_store(&rig->session.context.cancel, true);
	assert_int_equal(view_memory_ops.load(screen, &rig->session.context, true, &err),
			 ST_INTERRUPTED);
	atomic_store(&rig->session.context.cancel, false);
	assert_int_equal(view_memory_ops.load(screen, &rig->session.context, true, &err), ST_OK);
	view_session_draw(&rig->session);
	assert_shows(rig, "Fullest tile 0,40");
}

static void test_memory_that_fails_is_survived(void **state)
{
	struct view_rig *rig = *state;

	for (int view = 0; view < VIEWS; view++, view_rig_press(rig, "v")) {
		bool failed = true;
		char *good, *again;

		view_rig_press(rig, "/kernel\r");
		good = view_rig_text(&rig->session);
		for (long n = 0; failed; n++) {
			rig->session.news[VIEW_MEMORY] = rig->session.stale = true;
			support_fail_alloc(n);
			view_session_draw(&rig->session);
			failed = support_alloc_failed();
			support_fail_alloc(-1);
		}
		rig->session.context.message[0] = '\0';
		rig->session.news[VIEW_MEMORY] = rig->session.stale = true;
		view_session_draw(&rig->session);
		again = view_rig_text(&rig->session);
		assert_contains(again, "kernel");
		free(good);
		free(again);
		view_rig_press(rig, "\x1b");
	}
}

static void test_many_ipus_are_read_as_runs(void **state)
{
	struct view_rig *rig = *state;

	open_written(rig, "large", VIEW_FIXTURE_LARGE, 64);
	assert_shows(rig, "64 IPUs, simulated");
	view_rig_press(rig, "bvvvv/63,1471\r");
	assert_shows(rig, "tile 63,1471");
	view_rig_close(rig);
}

static void test_the_floor_plan_numbers_every_tile_once(void **state)
{
	static const int64_t sizes[] = {1, 4, 63, 64, 150, 1216, 1472, 2000};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (int64_t position = 0; position < sizes[i]; position++) {
			const int64_t tile = report_floor_tile(position, sizes[i]);

			assert_true(tile >= 0 && tile < sizes[i]);
			assert_int_equal(report_floor_position(tile, sizes[i]), position);
		}
}

#define ONE(test)  cmocka_unit_test_setup_teardown(test, setup_one, teardown)
#define FULL(test) cmocka_unit_test_setup_teardown(test, setup_full, teardown)
#define TWO(test)  cmocka_unit_test_setup_teardown(test, setup_two, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ONE(test_the_fullest_tile_is_said_at_once),
		ONE(test_details_are_what_the_query_says),
		FULL(test_what_overlapping_saves_is_said),
		cmocka_unit_test(test_short_names_are_told_apart_and_long_ones_kept_where_they_fit),
		ONE(test_the_heading_ends_with_a_whole_word_at_any_width),
		FULL(test_the_heading_ends_with_a_whole_word_at_any_width),
		TWO(test_the_heading_ends_with_a_whole_word_at_any_width),
		ONE(test_what_the_cursor_is_on_is_said_in_full),
		ONE(test_it_opens_broken_down),
		ONE(test_tiles_are_found_by_number_and_by_variable),
		ONE(test_the_cursor_moves_in_every_view),
		ONE(test_the_curve_s_cursor_goes_through_every_column_both_ways),
		cmocka_unit_test(test_a_part_stays_when_the_ipu_is_another),
		FULL(test_a_part_stays_where_an_ipu_has_none_of_it),
		ONE(test_breakdowns_name_what_they_show),
		ONE(test_selected_tiles_stand_side_by_side),
		TWO(test_variables_are_compared_by_name),
		TWO(test_selected_tiles_are_compared_together_and_apart),
		ONE(test_ipus_are_a_table_of_their_own),
		TWO(test_ipus_of_two_reports_are_compared),
		cmocka_unit_test(test_a_single_ipu_has_no_table_of_ipus),
		FULL(test_what_lies_on_a_tile_is_found_on_every_ipu),
		FULL(test_what_does_not_fit_is_said_with_what_must_go),
		ONE(test_variables_show_their_tiles),
		ONE(test_places_lead_here),
		ONE(test_the_query_behind_the_screen_runs),
		ONE(test_histogram_counts_every_tile),
		ONE(test_the_cursor_falls_back_within_its_ipu),
		ONE(test_tables_hold_what_the_query_says),
		TWO(test_two_reports_are_compared),
		ONE(test_every_view_can_be_drawn_at_any_size),
		TWO(test_every_view_can_be_drawn_at_any_size),
		ONE(test_random_keys_do_no_harm),
		TWO(test_random_keys_do_no_harm),
		ONE(test_bursts_of_keys_end_where_single_ones_do),
		ONE(test_clicks_select_what_they_hit),
		cmocka_unit_test(test_nothing_recorded_is_said),
		ONE(test_a_cancelled_load_is_said_and_made_up_for),
		ONE(test_memory_that_fails_is_survived),
		TWO(test_memory_that_fails_is_survived),
		cmocka_unit_test(test_many_ipus_are_read_as_runs),
		cmocka_unit_test(test_the_floor_plan_numbers_every_tile_once),
	};

	return cmocka_run_group_tests(tests, setup_files, teardown_files);
}
