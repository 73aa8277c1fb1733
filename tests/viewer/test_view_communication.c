/*
 * The screen Communication: its map and its table are SQL's, for few ranks and for many, and it is
 * there where calls of MPI were recorded.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "support/view_fixture.h"
#include "support/view_fixture_ranks.h"
#include "support/view_rig.h"
#include "viewer/communication/view_communication_internal.h"

static bool write_ranks(const char *path, const void *params)
{
	return view_fixture_ranks_write(path, params);
}

static int setup(void **state)
{
	static const struct view_fixture_ranks few = {.ranks = 4, .updates = 60, .buckets = 2};

	return view_rig_setup_with(state, write_ranks, &few, NULL, "X");
}

static int setup_many(void **state)
{
	static const struct view_fixture_ranks many = {.ranks = 64, .updates = 30, .buckets = 1};

	return view_rig_setup_with(state, write_ranks, &many, NULL, "X");
}

static int setup_plain(void **state)
{
	static const struct view_fixture_ranks plain = {
		.ranks = 3, .updates = 5, .buckets = 1, .plain = true};

	return view_rig_setup_with(state, write_ranks, &plain, NULL, "X");
}

static int setup_two(void **state)
{
	static const struct view_fixture_ranks few = {.ranks = 4, .updates = 30, .buckets = 2};
	static const struct view_fixture_ranks more = {.ranks = 4, .updates = 60, .buckets = 2};

	return view_rig_setup_with(state, write_ranks, &few, &more, "X");
}

static const struct view_communication *screen_of(const struct view_rig *rig)
{
	return rig->session.state[VIEW_RANKS];
}

/* A quantity of a rank and an update, by the views alone. */
static double by_sql(struct view_rig *rig, enum view_comm_quantity quantity, int64_t rank,
		     int64_t update)
{
#define HIDDEN "sum(CASE a.name WHEN 'hidden_ns' THEN a.value END)"
#define CALLS  "FROM wanted, spans s WHERE category = 'mpi' AND s.rank = r AND weight_update = u"
#define ARGUMENTS                                                                                  \
	"FROM wanted, spans s JOIN span_args a USING (span_id) "                                   \
	"WHERE category = 'mpi' AND s.rank = r AND weight_update = u"
	/* All ranks call the same: the last of them has the greatest start of a name and bucket. */
#define LAST                                                                                       \
	"FROM (SELECT s.rank, s.start_ns, r, max(s.start_ns) OVER w AS last_ns, "                  \
	"first_value(s.rank) OVER (w ORDER BY s.start_ns DESC, s.rank) AS last_rank "              \
	"FROM wanted, spans s JOIN span_args a ON a.span_id = s.span_id AND a.name = 'bucket' "    \
	"WHERE category = 'mpi' AND weight_update = u "                                            \
	"WINDOW w AS (PARTITION BY s.name, a.value)) WHERE rank = r"
	static const char *const sql[VIEW_COMM_QUANTITIES] = {
		[VIEW_COMM_EXPOSED] = "SELECT sum(dur_ns) " CALLS,
		[VIEW_COMM_HIDDEN] =
			"SELECT 1.0 * " HIDDEN " / (" HIDDEN
			" + sum(CASE a.name WHEN 'hidden_ns' THEN dur_ns END)) " ARGUMENTS,
		[VIEW_COMM_WAITED] = "SELECT sum(last_ns - start_ns) " LAST,
		[VIEW_COMM_BYTES] =
			"SELECT sum(CASE a.name WHEN 'bytes' THEN a.value END) " ARGUMENTS,
		[VIEW_COMM_LAST] = "SELECT sum(last_rank = rank) " LAST};
	char text[1024];

	snprintf(text, sizeof(text), "WITH wanted AS (SELECT %lld AS r, %lld AS u) %s",
		 (long long)rank, (long long)update, sql[quantity]);
	return view_rig_sql_real(rig, text);
}

static void test_each_cell_is_what_sql_says(void **state)
{
	struct view_rig *rig = *state;
	const struct view_communication *screen = screen_of(rig);

	assert_int_equal(screen->rank_count, 4);
	assert_int_equal(screen->columns, 60);
	for (int column = 0; column < 60; column += 7)
		for (int row = 0; row < 4; row++)
			for (int q = 0; q < VIEW_COMM_QUANTITIES; q++)
				assert_true(fabs(view__comm_cell(screen, row, column)->value[q] -
						 by_sql(rig, (enum view_comm_quantity)q, row,
							column)) < 1e-9);
	/* The cursor begins where most is waited for, and the line above has its figures. */
	assert_true(fabs(by_sql(rig, VIEW_COMM_EXPOSED, screen->row, screen->column) -
			 view_rig_sql_real(rig, "SELECT max(ns) FROM (SELECT sum(dur_ns) AS ns "
						"FROM spans WHERE category = 'mpi' GROUP BY rank, "
						"weight_update)")) < 0.5);
	assert_line_shows(rig, "rank 0, weight update 0", "exposed 580 us", "share hidden 17.14 %");
}

static void test_keys_move_the_cursor_and_choose_the_quantity(void **state)
{
	struct view_rig *rig = *state;
	const struct view_communication *screen = screen_of(rig);

	view_rig_press(rig, "Gi");
	assert_int_equal(screen->column, 59);
	assert_int_equal(screen->row, 1);
	assert_int_equal(view_grid_cell(&screen->grid, "rank")->integer, 1);
	view_rig_press(rig, "hhj");
	assert_int_equal(screen->column, 57);
	assert_int_equal(screen->row, 2);
	view_rig_press(rig, "ss");
	assert_int_equal(screen->quantity, VIEW_COMM_WAITED);
	assert_shows(rig, "waited, weight updates 0 to 59");
	view_rig_press(rig, "S");
	assert_shows(rig, "share hidden, weight updates 0 to 59");
	/* The least share hidden is the worst. */
	view_rig_press(rig, "w");
	assert_true(view__comm_cell(screen, screen->row, screen->column)->value[VIEW_COMM_HIDDEN] <=
		    by_sql(rig, VIEW_COMM_HIDDEN, 3, 30));
	view_rig_press(rig, "+");
	assert_true(screen->window.to - screen->window.from < 60);
	assert_true(screen->column >= screen->window.from && screen->column < screen->window.to);
	view_rig_press(rig, "0v");
	assert_int_equal(screen->across, 60);
	assert_int_equal(screen->areas.table.height, 0);
	view_rig_press(rig, "v");
	assert_int_equal(screen->across, 0);
}

/* Rows of the table lead the cursor: of an update to that update. */
static void test_the_table_by_update_leads_the_cursor(void **state)
{
	struct view_rig *rig = *state;
	const struct view_communication *screen = screen_of(rig);

	view_rig_press(rig, "bb");
	assert_shows(rig, "by update");
	assert_int_equal(screen->grid.count, 240);
	for (int i = 0; i < 65; i++)
		view_rig_press(rig, "j");
	assert_int_equal(screen->ranks[screen->row],
			 view_grid_cell(&screen->grid, "rank")->integer);
	assert_int_equal(screen->cells[screen->first[screen->column]].weight_update,
			 view_grid_cell(&screen->grid, "weight_update")->integer);
	assert_true(screen->column > 0);
}

/* Enter, then the line of the Timeline: the first call of that rank in that update. */
static void test_it_leads_to_the_timeline_and_back(void **state)
{
	struct view_rig *rig = *state;
	const struct view_communication *screen = screen_of(rig);
	struct view_place place;
	char sql[256];

	view_rig_press(rig, "giilllll\r2");
	assert_int_equal(rig->session.screen, VIEW_TIMELINE);
	assert_true(view_screen(VIEW_TIMELINE)->place(rig->session.state[VIEW_TIMELINE], &place));
	assert_int_equal(place.rank, 2);
	assert_int_equal(place.weight_update, 5);
	snprintf(sql, sizeof(sql),
		 "SELECT span_id FROM spans WHERE category = 'mpi' AND rank = 2 AND "
		 "weight_update = 5 ORDER BY start_ns LIMIT 1");
	assert_int_equal(place.span_id, view_rig_sql_int(rig, sql));
	/* And back from there, after the cursor has been elsewhere. */
	view_rig_press(rig, "XgiX7o");
	assert_shows(rig, "what rank 2 waited for in weight update 5");
	for (int i = 0; i < rig->session.popup.count; i++)
		if (rig->session.popup.items[i].tag == VIEW_RANKS)
			rig->session.popup.at = i;
	view_rig_press(rig, "\r");
	assert_int_equal(rig->session.screen, VIEW_RANKS);
	assert_int_equal(screen->ranks[screen->row], 2);
	assert_int_equal(screen->column, 5);
}

static void test_many_ranks_share_the_rows(void **state)
{
	struct view_rig *rig = *state;
	const struct view_communication *screen = screen_of(rig);
	static const int sizes[][2] = {{80, 24}, {120, 40}, {200, 50}, {40, 12}};
	double greatest;
	int row, column;

	assert_int_equal(screen->rank_count, 64);
	greatest =
		view_rig_sql_real(rig, "SELECT max(ns) FROM (SELECT sum(dur_ns) AS ns FROM spans "
				       "WHERE category = 'mpi' GROUP BY rank, weight_update)");
	view_rig_press(rig, "v");
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		double most = 0;

		view_rig_size(rig, sizes[i][0], sizes[i][1]);
		/* No value is lost: the greatest of all is that of the picture. */
		for (int c = 0; c < screen->across * screen->down; c++)
			most = fmax(most, screen->picture[c]);
		assert_true(fabs(most - greatest) < 0.5);
		assert_true(view__comm_find(screen, screen->areas.map.x, screen->areas.map.y, &row,
					    &column));
		assert_int_equal(row, 0);
		assert_int_equal(column, 0);
	}
	view_rig_press(rig, "gkkkkkkkkjjj");
	assert_int_equal(screen->row, 3);
}

static void test_calls_without_updates_go_by_their_number(void **state)
{
	struct view_rig *rig = *state;

	assert_line_shows(rig, "rank ", ", call ");
	assert_shows(rig, "calls 1 to 5");
	assert_int_equal(screen_of(rig)->columns, 5);
	assert_int_equal(screen_of(rig)->rank_count, 3);
	/* Nothing says what was hidden: such a map is empty. */
	view_rig_press(rig, "sw");
	assert_true(isnan(screen_of(rig)->picture[0]));
}

static void test_two_runs_stand_beside_each_other_in_the_table(void **state)
{
	struct view_rig *rig = *state;

	view_rig_size(rig, 200, 50);
	assert_shows(rig, "map of the source; ");
	assert_int_equal(screen_of(rig)->columns, 30);
	assert_int_equal(view_grid_cell(&screen_of(rig)->grid, "calls")->integer, 120);
	assert_int_equal(view_grid_cell(&screen_of(rig)->grid, "calls_target")->integer, 240);
	/* Without the target the screen is asked anew. */
	assert_false(rig->session.absent[VIEW_RANKS]);
}

static void test_every_key_and_look(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press_every_key(rig, VIEW_RANKS);
}

/* No calls: the screen is not listed, Tab goes past it, and its key says why it is empty. */
static void test_a_run_without_calls_has_no_such_screen(void **state)
{
	struct view_rig *rig = *state;

	assert_true(rig->session.absent[VIEW_RANKS]);
	view_rig_size(rig, 200, 50);
	assert_hides(rig, "Communication");
	view_rig_press(rig, "H\t");
	assert_int_equal(rig->session.screen, VIEW_WHATIF);
	view_rig_press(rig, "X");
	assert_int_equal(rig->session.screen, VIEW_RANKS);
	assert_shows(rig, "X Communication");
	assert_shows(rig, "No calls of MPI were recorded.");
	view_rig_press(rig, "1jo");
	assert_hides(rig, "waited for");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_cell_is_what_sql_says, setup,
						view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_keys_move_the_cursor_and_choose_the_quantity,
						setup, view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_the_table_by_update_leads_the_cursor, setup,
						view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_it_leads_to_the_timeline_and_back, setup,
						view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_every_key_and_look, setup, view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_many_ranks_share_the_rows, setup_many,
						view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_calls_without_updates_go_by_their_number,
						setup_plain, view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_two_runs_stand_beside_each_other_in_the_table,
						setup_two, view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_a_run_without_calls_has_no_such_screen,
						view_rig_setup, view_rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
