/*
 * The screen Liveness: its numbers are SQL's, at any size, for one report and two.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fmt.h"
#include "support/view_fixture_liveness.h"
#include "support/view_rig.h"
#include "viewer/liveness/view_liveness_internal.h"

#define MANY_STEPS 100000

static int setup(void **state)
{
	const struct view_fixture_liveness params = {
		.steps = 60, .variables = 20, .scale = 1, .tiles = 8};
	struct view_rig *rig = view_rig_new(state);

	if (!view_fixture_liveness_write(rig->path, &params))
		return -1;
	view_rig_start(rig, false, 80, 24, "4");
	return 0;
}

/* Another report beside it: other sizes, fewer variables, more steps. */
static void write_target(const struct view_rig *rig, char path[SUPPORT_PATH_SIZE + 16])
{
	const struct view_fixture_liveness params = {
		.steps = 90, .variables = 20, .scale = 3, .tiles = 8, .less = true};

	snprintf(path, SUPPORT_PATH_SIZE + 16, "%s/target.db", rig->folder);
	assert_true(view_fixture_liveness_write(path, &params));
}

static void compare_with(struct view_rig *rig, const char *path)
{
	view_rig_close(rig);
	view_rig_open(rig, rig->path, path, 132, 43);
	view_rig_press(rig, "4");
}

static const struct view_liveness *screen_of(const struct view_rig *rig)
{
	return rig->session.state[VIEW_LIVENESS];
}

static const char *bytes_of(struct view_rig *rig, char out[FMT_SIZE], const char *sql)
{
	return fmt_bytes(out, (uint64_t)view_rig_sql_int(rig, sql));
}

/* ---- one report ------------------------------------------------------------------------------ */

static void test_it_begins_at_the_peak_that_sql_finds(void **state)
{
	struct view_rig *rig = *state;
	char a[FMT_SIZE], b[FMT_SIZE], c[FMT_SIZE], text[4 * FMT_SIZE];
	const int64_t peak = view_rig_sql_int(
		rig, "SELECT program_step FROM liveness "
		     "ORDER BY always_live_bytes + not_always_live_bytes DESC, ipu LIMIT 1");

	assert_int_equal(screen_of(rig)->cursor, peak);
	bytes_of(rig, a, "SELECT max(always_live_bytes + not_always_live_bytes) FROM liveness");
	bytes_of(rig, b, "SELECT max(always_live_bytes) FROM liveness WHERE ipu = 0");
	bytes_of(rig, c, "SELECT max(not_always_live_bytes) FROM liveness WHERE ipu = 0");
	snprintf(text, sizeof(text), "%s = %s always live + %s not", a, b, c);
	assert_shows(rig, text);
	snprintf(a, sizeof(a), "program step %lld of 59, ", (long long)peak);
	assert_shows(rig, a);
	assert_shows(rig, "IPU 0");
}

/* The sum, which the last line but one has, too, makes room for it. */
static void test_the_step_s_program_is_not_cut_for_the_sum(void **state)
{
	struct view_rig *rig = *state;
	const char *program = screen_of(rig)->program;

	view_rig_press(rig, "g");
	assert_true(strlen(program) > 12);
	for (int width = 70; width <= 100; width++) {
		view_rig_size(rig, width, 24);
		assert_line_shows(rig, "always live + ", " not ", program);
	}
	assert_line_shows(rig, " = ", "always live + ", program);
}

static void test_the_largest_variable_stands_below_the_sum(void **state)
{
	struct view_rig *rig = *state;
	char sql[512];

	snprintf(sql, sizeof(sql),
		 "SELECT max(bytes) FROM variables WHERE ipu = 0 AND (always_live OR "
		 "%lld BETWEEN first_program_step AND last_program_step)",
		 (long long)screen_of(rig)->cursor);
	view_rig_press(rig, "j");
	assert_int_equal(view_grid_cell(&screen_of(rig)->grid, "bytes")->integer,
			 view_rig_sql_int(rig, sql));
}

/* The rows of the table at the cursor's step, and their sum, for each of some steps. */
static void test_the_table_lists_what_lives_at_the_step(void **state)
{
	struct view_rig *rig = *state;
	char sql[512], text[FMT_SIZE];

	view_rig_press(rig, "g");
	for (int i = 0; i < 12; i++) {
		const struct view_liveness *live = screen_of(rig);
		const long long step = live->cursor;
		const struct report_cell *cell;

		snprintf(sql, sizeof(sql),
			 "SELECT count(*) + 1 FROM variables WHERE ipu = 0 AND (always_live OR "
			 "%lld BETWEEN first_program_step AND last_program_step)",
			 step);
		assert_int_equal(live->grid.count, view_rig_sql_int(rig, sql));
		snprintf(sql, sizeof(sql),
			 "SELECT always_live_bytes + not_always_live_bytes FROM liveness "
			 "WHERE ipu = 0 AND program_step = %lld",
			 step);
		cell = view_grid_cell(&live->grid, "bytes");
		assert_non_null(cell);
		assert_int_equal(cell->integer, view_rig_sql_int(rig, sql));
		assert_shows(rig, bytes_of(rig, text, sql));
		view_rig_press(rig, "lllll");
	}
	assert_int_equal(screen_of(rig)->cursor, 59);
}

static void test_the_cursor_moves_over_steps_and_the_window_with_it(void **state)
{
	struct view_rig *rig = *state;
	const struct view_liveness *live = screen_of(rig);
	int64_t peak = live->cursor;

	view_rig_press(rig, "gh");
	assert_int_equal(live->cursor, 0);
	view_rig_press(rig, "lllh");
	assert_int_equal(live->cursor, 2);
	view_rig_press(rig, "G");
	assert_int_equal(live->cursor, 59);
	view_rig_press(rig, "++");
	assert_int_equal(live->window.to - live->window.from, VIEW_WINDOW_LEAST);
	assert_in_range(live->cursor, live->window.from, live->window.to - 1);
	view_rig_press(rig, "(");
	assert_int_equal(live->cursor, 39);
	assert_int_equal(live->window.to, 40);
	assert_shows(rig, "[");
	view_rig_press(rig, "(((");
	assert_int_equal(live->cursor, 0);
	view_rig_press(rig, "w");
	assert_int_equal(live->cursor, peak);
	assert_in_range(live->cursor, live->window.from, live->window.to - 1);
	view_rig_press(rig, "0)");
	assert_int_equal(live->window.to - live->window.from, 60);
	assert_int_equal(live->cursor, 59);
}

/* The row of all steps has brackets around the window's, which are apart even where the window is
 * narrower than a column. */
static void check_brackets(const struct view_rig *rig)
{
	const struct view_liveness *live = screen_of(rig);
	const struct view_canvas *canvas = &rig->session.canvas;
	const int64_t steps = live->extent.to - live->extent.from;
	const bool all = live->window.to - live->window.from == steps;
	const int columns = live->plot, left = live->areas.chart.width - columns;
	int first = view_share_cell(steps, columns, live->window.from - live->extent.from);
	int last = view_share_cell(steps, columns, live->window.to - 1 - live->extent.from);
	int rows = 0;

	first = first < columns - 2 ? first : columns - 2;
	last = last > first ? last : first + 1;
	for (int y = 0; y < canvas->height; y++) {
		const struct view_cell *row = &canvas->cells[(size_t)y * (size_t)canvas->width];

		if (row[1].character != 'a' || row[2].character != 'l' || row[3].character != 'l')
			continue;
		rows++;
		for (int x = 0; x < columns; x++) {
			const uint32_t cell = row[left + x].character;

			assert_true((cell == '[') == (!all && x == first));
			assert_true((cell == ']') == (!all && x == last));
		}
	}
	assert_int_equal(rows, 1);
}

static void test_brackets_show_where_the_window_is(void **state)
{
	static const char keys[] = "g++lll))w+0G++(((++h((0++g+)-))))+))))";
	struct view_rig *rig = *state;
	char path[SUPPORT_PATH_SIZE + 16];
	const struct view_fixture_liveness many = {.steps = 5000, .variables = 20, .scale = 1};

	snprintf(path, sizeof(path), "%s/many.db", rig->folder);
	assert_true(view_fixture_liveness_write(path, &many));
	for (int run = 0; run < 2; run++) {
		for (const char *key = keys; *key; key++) {
			check_brackets(rig);
			view_rig_key(rig, (uint32_t)*key);
		}
		check_brackets(rig);
		view_rig_close(rig);
		view_rig_open(rig, run ? rig->path : path, NULL, 80, 24);
		view_rig_press(rig, "4+++++");
	}
}

static void test_selected_steps_are_columns_with_their_own_bytes(void **state)
{
	struct view_rig *rig = *state;
	char text[FMT_SIZE];

	view_rig_size(rig, 132, 43);
	view_rig_press(rig, "gllllx");
	view_rig_press(rig, "llllllllllx");
	view_rig_press(rig, "g");
	assert_shows(rig, "at 4 ");
	assert_shows(rig, "at 14 ");
	assert_shows(rig, bytes_of(rig, text,
				   "SELECT always_live_bytes + not_always_live_bytes "
				   "FROM liveness WHERE ipu = 0 AND program_step = 4"));
	assert_shows(rig, bytes_of(rig, text,
				   "SELECT always_live_bytes + not_always_live_bytes "
				   "FROM liveness WHERE ipu = 0 AND program_step = 14"));
	assert_int_equal(
		screen_of(rig)->grid.count,
		view_rig_sql_int(rig,
				 "SELECT count(*) + 1 FROM variables WHERE ipu = 0 AND "
				 "(always_live OR first_program_step <= 4 AND last_program_step "
				 ">= 4 OR first_program_step <= 14 AND last_program_step >= 14 OR "
				 "first_program_step = 0)"));
	view_rig_press(rig, "lxlxlx");
	assert_shows(rig, "4 program steps are selected");
	view_rig_press(rig, "hx");
	assert_int_equal(screen_of(rig)->mark_count, 3);
}

static void test_ipus_are_shown_one_by_one_and_together(void **state)
{
	struct view_rig *rig = *state;
	char text[FMT_SIZE];

	view_rig_press(rig, "gi");
	assert_shows(rig, "IPU 1");
	assert_int_equal(screen_of(rig)->extent.to, 30);
	assert_shows(rig, bytes_of(rig, text,
				   "SELECT always_live_bytes + not_always_live_bytes "
				   "FROM liveness WHERE ipu = 1 AND program_step = 0"));
	view_rig_press(rig, "i");
	assert_shows(rig, "2 of 2 IPUs");
	assert_int_equal(screen_of(rig)->extent.to, 60);
	assert_int_equal(screen_of(rig)->band_count, 2);
	view_rig_press(rig, "i");
	assert_int_equal(screen_of(rig)->ipu, 0);
	view_rig_press(rig, "l");
	assert_shows(rig, "program step 1 of 59");
}

#define AT_STEP_2(of) "SELECT " of " FROM liveness WHERE program_step = 2"
#define BYTES         "always_live_bytes + not_always_live_bytes"

/* Each IPU has a program of its own: nothing happens at the same time. */
static void test_steps_of_several_ipus_are_not_added_up(void **state)
{
	struct view_rig *rig = *state;
	char a[FMT_SIZE], b[FMT_SIZE], sum[FMT_SIZE], path[SUPPORT_PATH_SIZE + 16];

	bytes_of(rig, a, AT_STEP_2(BYTES) " AND ipu = 0");
	bytes_of(rig, b, AT_STEP_2(BYTES) " AND ipu = 1");
	bytes_of(rig, sum, AT_STEP_2("sum(" BYTES ")"));
	view_rig_press(rig, "iigll");
	assert_line_shows(rig, " 2 of each IPU's own: IPU 0 ", a, ", IPU 1 ", b);
	assert_hides(rig, sum);
	view_rig_press(rig, "G");
	assert_line_shows(rig, " 59 of each IPU's own: IPU 0 ", ", IPU 1 - ");
	write_target(rig, path);
	compare_with(rig, path);
	view_rig_press(rig, "iigll");
	assert_line_shows(rig, " 2 of each IPU's own: IPU 0 S ", a, " T ", ", IPU 1 S ", b, " T ");
}

static void test_both_reports_peaks_are_said(void **state)
{
	static const char peak[] = "SELECT program_step FROM liveness WHERE ipu = 0 "
				   "ORDER BY " BYTES " DESC, program_step LIMIT 1";
	struct view_rig *rig = *state, target = {0};
	char path[SUPPORT_PATH_SIZE + 16], source_at[48], target_at[48];

	write_target(rig, path);
	view_rig_open(&target, path, NULL, 80, 24);
	snprintf(source_at, sizeof(source_at), " at %lld", (long long)view_rig_sql_int(rig, peak));
	snprintf(target_at, sizeof(target_at), " at %lld",
		 (long long)view_rig_sql_int(&target, peak));
	compare_with(rig, path);
	assert_line_shows(rig, "peak Source ", source_at, ", Target ", target_at);
	view_rig_size(rig, 100, 24);
	assert_line_shows(rig, "peak S ", ", T ", strstr(target_at, "at"));
	view_rig_close(&target);
}

/* Variables have other numbers in each recording, which nobody sees here. */
static void test_rows_that_are_alike_but_for_their_numbers_do_not_differ(void **state)
{
	const struct view_fixture_liveness params = {
		.steps = 60, .variables = 20, .scale = 1, .tiles = 8, .ids = 500};
	struct view_rig *rig = *state;
	char path[SUPPORT_PATH_SIZE + 16];

	snprintf(path, sizeof(path), "%s/alike.db", rig->folder);
	assert_true(view_fixture_liveness_write(path, &params));
	compare_with(rig, path);
	assert_true(screen_of(rig)->grid.count > 1);
	view_rig_press(rig, "D");
	assert_int_equal(screen_of(rig)->grid.count, 0);
}

static void test_what_is_always_live_can_be_left_out(void **state)
{
	struct view_rig *rig = *state;
	const struct view_liveness *live = screen_of(rig);
	char text[FMT_SIZE];

	assert_shows(rig, "always live  ");
	view_rig_press(rig, "a");
	assert_shows(rig, "without what is always live");
	assert_int_equal((int64_t)live->bands[0].y.high,
			 view_rig_sql_int(rig, "SELECT max(not_always_live_bytes) FROM liveness "
					       "WHERE ipu = 0"));
	view_rig_press(rig, "bj");
	assert_shows(rig, "row 2 of ");
	assert_shows(rig, "not always live");
	view_rig_press(rig, "kb");
	assert_int_equal(live->grid.count,
			 view_rig_sql_int(rig, "SELECT count(*) + 1 FROM variables "
					       "WHERE ipu = 0 AND always_live"));
	assert_shows(rig, bytes_of(rig, text,
				   "SELECT sum(bytes) FROM variables WHERE ipu = 0 "
				   "AND always_live"));
}

static void test_layers_are_summed(void **state)
{
	struct view_rig *rig = *state;
	char sql[512], text[FMT_SIZE];

	view_rig_press(rig, "gllllllllllllllllllv");
	for (int layer = 0; layer < 4; layer++) {
		snprintf(sql, sizeof(sql),
			 "SELECT sum(bytes) FROM variables WHERE ipu = 0 AND layer = 'layer_%d' "
			 "AND (always_live OR 18 BETWEEN first_program_step AND "
			 "last_program_step)",
			 layer);
		snprintf(text, sizeof(text), "layer_%d", layer);
		assert_shows(rig, text);
		assert_shows(rig, bytes_of(rig, text, sql));
	}
	view_rig_press(rig, "v");
	assert_int_equal(screen_of(rig)->areas.table.height, 0);
	view_rig_press(rig, "V");
	assert_shows(rig, "layer_3");
}

/* A column of many steps shows its highest, and the cursor goes there. */
static void test_no_peak_is_lost_among_many_steps(void **state)
{
	const struct view_fixture_liveness params = {
		.steps = MANY_STEPS, .variables = 3000, .scale = 7};
	struct view_rig *rig = *state;
	char path[SUPPORT_PATH_SIZE + 16], sql[256];
	const struct view_liveness *live;

	snprintf(path, sizeof(path), "%s/many.db", rig->folder);
	assert_true(view_fixture_liveness_write(path, &params));
	view_rig_close(rig);
	view_rig_open(rig, path, NULL, 132, 43);
	view_rig_press(rig, "4");
	live = screen_of(rig);
	assert_int_equal(live->points, live->plot);
	for (int p = 0; p < live->points; p += 7) {
		int64_t from, to;

		view__live_point(live, p, &from, &to);
		snprintf(sql, sizeof(sql),
			 "SELECT max(not_always_live_bytes) FROM liveness WHERE ipu = 0 AND "
			 "program_step BETWEEN %lld AND %lld",
			 (long long)from, (long long)to - 1);
		assert_int_equal((int64_t)live->bands[0].rest[0][p], view_rig_sql_int(rig, sql));
	}
	view_rig_press(rig, "gl");
	snprintf(sql, sizeof(sql),
		 "SELECT program_step FROM liveness WHERE ipu = 0 AND program_step BETWEEN %d AND "
		 "%d ORDER BY not_always_live_bytes DESC, program_step LIMIT 1",
		 MANY_STEPS / live->points, 2 * MANY_STEPS / live->points - 1);
	assert_int_equal(live->cursor, view_rig_sql_int(rig, sql));
}

static void test_keys_that_can_do_no_more_say_so(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "-");
	assert_shows(rig, "all program steps are shown");
	view_rig_press(rig, "+-");
	assert_hides(rig, "all program steps are shown");
	view_rig_press(rig, "++++");
	assert_shows(rig, "as close as it gets");
}

static void test_the_row_of_the_cursor_stands_whole_below_the_others(void **state)
{
	struct view_rig *rig = *state;

	view_rig_size(rig, 50, 90);
	view_rig_press(rig, "jjjjjjj");
	assert_true(view_grid_is_cut(&screen_of(rig)->grid));
	assert_line_shows(rig, " row 8, whole ");
	assert_line_shows(rig, "dtype float32");
}

static void test_the_status_keeps_what_matters(void **state)
{
	struct view_rig *rig = *state;

	view_rig_size(rig, 40, 12);
	assert_shows(rig, "\n row 1 of ");
	view_rig_size(rig, 80, 24);
	view_rig_press(rig, "f(\r");
	assert_shows(rig, "\n filter: ");
}

/* ---- two reports ----------------------------------------------------------------------------- */

static void test_two_reports_are_two_curves_and_a_difference(void **state)
{
	struct view_rig *rig = *state;
	char path[SUPPORT_PATH_SIZE + 16], a[FMT_SIZE], text[128];
	struct view_rig target = {0};
	int64_t source_bytes, target_bytes;
	const struct view_liveness *live;

	write_target(rig, path);
	view_rig_open(&target, path, NULL, 80, 24);
	compare_with(rig, path);
	live = screen_of(rig);
	view_rig_press(rig, "gllllllllll");
	source_bytes = view_rig_sql_int(rig, "SELECT always_live_bytes + not_always_live_bytes "
					     "FROM liveness WHERE ipu = 0 AND program_step = 10");
	target_bytes = view_rig_sql_int(&target, "SELECT always_live_bytes + not_always_live_bytes "
						 "FROM liveness WHERE ipu = 0 AND "
						 "program_step = 10");
	snprintf(text, sizeof(text), "Source %s", fmt_bytes(a, (uint64_t)source_bytes));
	assert_shows(rig, text);
	snprintf(text, sizeof(text), "Target %s", fmt_bytes(a, (uint64_t)target_bytes));
	assert_shows(rig, text);
	snprintf(text, sizeof(text), "(%s)",
		 fmt_percent(a, (double)(target_bytes - source_bytes) / (double)target_bytes));
	assert_shows(rig, text);
	assert_non_null(live->bands[0].total[0]);
	assert_non_null(live->bands[0].total[1]);
	assert_int_equal((int64_t)live->bands[0].total[1][0],
			 view_rig_sql_int(&target,
					  "SELECT always_live_bytes + not_always_live_bytes FROM "
					  "liveness WHERE ipu = 0 AND program_step = 0"));
	assert_true(live->extent.to == 90);
	assert_int_equal(view_grid_cell(&live->grid, "bytes_diff")->integer,
			 target_bytes - source_bytes);
	/* What only the Source has is a dash in the Target. */
	assert_true(view_grid_search((struct view_grid *)&live->grid, &rig->session.context,
				     "buffer_3", true));
	assert_int_equal(view_grid_cell(&live->grid, "bytes_target")->type, PROF_NULL);
	/* The Source's program is over. */
	view_rig_press(rig, "G");
	assert_shows(rig, "Source -, Target ");
	view_rig_press(rig, "D");
	view_rig_press(rig, "viv");
	view_rig_close(&target);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void assert_inside(struct view_rect rect, int width, int height, char *cells)
{
	for (int y = rect.y; y < rect.y + rect.height; y++)
		for (int x = rect.x; x < rect.x + rect.width; x++) {
			assert_true(x >= 0 && x < width && y >= 0 && y < height);
			assert_int_equal(cells[y * width + x], 0);
			cells[y * width + x] = 1;
		}
}

static void test_areas_lie_within_the_body_and_apart(void **state)
{
	char *cells = malloc(300 * 100);

	(void)state;
	assert_non_null(cells);
	for (int width = 1; width <= 300; width += width < 60 ? 3 : 23)
		for (int height = 1; height <= 100; height++)
			for (int table = 0; table < 2; table++) {
				const struct view_rect body = {0, 0, width, height};
				const struct view_liveness_layout areas =
					view_liveness_areas(body, table);
				const struct view_rect rects[] = {areas.legend,  areas.overview,
								  areas.chart,   areas.life,
								  areas.heading, areas.table};

				memset(cells, 0, 300 * 100);
				for (int i = 0; i < 6; i++)
					assert_inside(rects[i], width, height, cells);
				assert_true(areas.chart.height > 0);
			}
	free(cells);
}

static void press_in_every_way(struct view_rig *rig)
{
	const struct view_canvas *canvas = &rig->session.canvas;

	view_rig_press(rig, "gx+a)vwivib");
	if (canvas->height > 12)
		assert_shows(rig, " step ");
	assert_shows(rig, canvas->ascii ? "|" : "┤");
	view_rig_press(rig, "x-0aVVV");
}

static void test_every_size_and_look_can_be_drawn(void **state)
{
	view_rig_each_look(*state, press_in_every_way);
}

static void test_a_recording_without_a_plan_says_so(void **state)
{
	struct view_rig *rig = *state;
	char path[SUPPORT_PATH_SIZE + 16];
	const struct view_fixture_liveness none = {.steps = 0};

	snprintf(path, sizeof(path), "%s/none.db", rig->folder);
	assert_true(view_fixture_liveness_write(path, &none));
	view_rig_close(rig);
	view_rig_open(rig, path, NULL, 80, 24);
	view_rig_press(rig, "4hlgGw+-0()xiabvV>I|jk");
	assert_shows(rig, "No liveness has been recorded");
	assert_null(strstr(rig->session.context.message, "not on this"));
}

static void test_places_lead_here_and_away(void **state)
{
	struct view_rig *rig = *state;
	const struct view_screen_ops *ops = &view_liveness_ops;
	const struct view_liveness *live = screen_of(rig);
	struct view_context *context = &rig->session.context;
	void *screen = rig->session.state[VIEW_LIVENESS];
	struct view_place place;
	char text[VIEW_PLACE_NAME];

	view_rig_press(rig, "gllj");
	assert_true(ops->place(screen, &place));
	assert_int_equal(place.program_step, 2);
	assert_int_equal(place.program_id, 2);
	assert_int_equal(place.ipu, 0);
	assert_true(place.variable_id != IPS_NULL && place.layer[0]);

	view_place_clear(&place);
	assert_false(ops->offers(&place, text, sizeof(text)));
	place.variable_id = 1000019;
	assert_true(ops->offers(&place, text, sizeof(text)));
	assert_int_equal(ops->go(screen, context, &place, NULL), ST_OK);
	rig->session.stale = true;
	view_session_draw(&rig->session);
	assert_int_equal(live->ipus[live->ipu], 1);
	assert_int_equal(view_grid_cell(&live->grid, "variable_id")->integer, 1000019);
	assert_in_range(live->cursor,
			view_rig_sql_int(rig, "SELECT first_program_step FROM variables "
					      "WHERE variable_id = 1000019"),
			view_rig_sql_int(rig, "SELECT last_program_step FROM variables "
					      "WHERE variable_id = 1000019"));

	view_place_clear(&place);
	view_place_text(place.operation, "Dense/MatMul");
	assert_int_equal(ops->go(screen, context, &place, NULL), ST_OK);
	assert_int_equal(live->cursor,
			 view_rig_sql_int(rig,
					  "SELECT program_step FROM liveness WHERE program_id IN "
					  "(SELECT program_id FROM programs WHERE operation = "
					  "'Dense/MatMul') ORDER BY not_always_live_bytes DESC "
					  "LIMIT 1"));
	view_place_clear(&place);
	place.program_step = 1000;
	assert_int_equal(ops->go(screen, context, &place, NULL), ST_NOTFOUND);
	place.program_step = IPS_NULL;
	place.program_id = 77777;
	assert_int_equal(ops->go(screen, context, &place, NULL), ST_NOTFOUND);
}

/* Every statement of the query runs, and the last one's rows are the table's. */
static void test_the_query_behind_it_gives_what_is_shown(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "gllllllxlllllllx");
	for (int show = 0; show < 3; show++, view_rig_press(rig, "v"))
		for (int ipu = 0; ipu < 3; ipu++, view_rig_press(rig, "i")) {
			struct str text = {0};
			char *statement, *rest;
			int64_t rows = -1;

			view_liveness_ops.query(rig->session.state[VIEW_LIVENESS],
						&rig->session.context, &text);
			assert_true(text.length < VIEW_PLACE_SQL);
			for (statement = text.text; *statement; statement = rest) {
				char *sql = NULL;

				rest = strstr(statement, ";\n");
				assert_non_null(rest);
				*rest = '\0';
				rest += 2;
				assert_true(asprintf(&sql, "SELECT count(*) FROM (%s)", statement) >
					    0);
				rows = view_rig_sql_int(rig, sql);
				free(sql);
			}
			if (show < 2)
				assert_int_equal(rows, screen_of(rig)->grid.count);
			str_free(&text);
		}
}

static char *printed(struct view_rig *rig, enum report_format format)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(view_session_print(&rig->session, VIEW_LIVENESS, format, 100, out, NULL),
			 ST_OK);
	fclose(out);
	return text;
}

static int lines_of(const char *text)
{
	int lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

static void test_a_file_has_every_row(void **state)
{
	struct view_rig *rig = *state;
	char *text = printed(rig, REPORT_AS_CSV);

	assert_int_equal(lines_of(text), screen_of(rig)->grid.count + 1);
	free(text);
	text = printed(rig, REPORT_AS_TEXT);
	assert_contains(text, "Total");
	assert_contains(text, "kernel_22");
	free(text);
	/* The chart alone: the steps. */
	rig->session.context.whole = false;
	view_rig_size(rig, 80, 24);
	view_rig_press(rig, "vv");
	text = printed(rig, REPORT_AS_CSV);
	assert_int_equal(lines_of(text),
			 1 + view_rig_sql_int(rig, "SELECT count(*) FROM liveness WHERE ipu = 0"));
	free(text);
}

static void test_memory_that_fails_is_said_and_survived(void **state)
{
	static const char keys[] = "xivb";
	struct view_rig *rig = *state;
	struct view_session *session = &rig->session;
	char path[SUPPORT_PATH_SIZE + 16];

	write_target(rig, path);
	compare_with(rig, path);
	for (int k = 0; k < 5; k++) {
		char *good = view_rig_text(session), *again;
		bool failed = true;

		for (long n = 0; failed; n += n < 60 ? 1 : 31) {
			struct view_liveness *live = session->state[VIEW_LIVENESS];

			live->listed = false;
			live->report[0].rows = live->report[1].rows = n % 2 ? -1 : 0;
			session->news[VIEW_LIVENESS] = session->stale = true;
			support_fail_alloc(n);
			view_session_draw(session);
			failed = support_alloc_failed();
			support_fail_alloc(-1);
		}
		session->news[VIEW_LIVENESS] = session->stale = true;
		view_session_draw(session);
		again = view_rig_text(session);
		assert_string_equal(good, again);
		free(good);
		free(again);
		if (k < 4)
			view_rig_key(rig, (uint32_t)keys[k]);
		session->context.message[0] = '\0';
		view_session_draw(session);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define EACH(name) cmocka_unit_test_setup_teardown(name, setup, view_rig_teardown)
		EACH(test_it_begins_at_the_peak_that_sql_finds),
		EACH(test_the_step_s_program_is_not_cut_for_the_sum),
		EACH(test_the_largest_variable_stands_below_the_sum),
		EACH(test_the_table_lists_what_lives_at_the_step),
		EACH(test_the_cursor_moves_over_steps_and_the_window_with_it),
		EACH(test_brackets_show_where_the_window_is),
		EACH(test_selected_steps_are_columns_with_their_own_bytes),
		EACH(test_ipus_are_shown_one_by_one_and_together),
		EACH(test_steps_of_several_ipus_are_not_added_up),
		EACH(test_both_reports_peaks_are_said),
		EACH(test_rows_that_are_alike_but_for_their_numbers_do_not_differ),
		EACH(test_what_is_always_live_can_be_left_out),
		EACH(test_layers_are_summed),
		EACH(test_no_peak_is_lost_among_many_steps),
		EACH(test_keys_that_can_do_no_more_say_so),
		EACH(test_the_row_of_the_cursor_stands_whole_below_the_others),
		EACH(test_the_status_keeps_what_matters),
		EACH(test_two_reports_are_two_curves_and_a_difference),
		cmocka_unit_test(test_areas_lie_within_the_body_and_apart),
		EACH(test_every_size_and_look_can_be_drawn),
		EACH(test_a_recording_without_a_plan_says_so),
		EACH(test_places_lead_here_and_away),
		EACH(test_the_query_behind_it_gives_what_is_shown),
		EACH(test_a_file_has_every_row),
		EACH(test_memory_that_fails_is_said_and_survived),
#undef EACH
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
