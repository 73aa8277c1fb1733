/*
 * The timeline of merged recordings: each rank's device has a clock of its own, from 0, while the
 * hosts share one.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/mem.h"
#include "profiler/prof_merge.h"
#include "support/view_fixture_runs.h"
#include "support/view_rig.h"
#include "viewer/timeline/view_timeline_internal.h"

#define APART_MS 50 /* starts of the ranks: longer than the runs */

static bool write_ranks(const char *path, const void *params)
{
	static const struct view_runs_execution plan[] = {
		{true, true, 6, 8}, {true, true, 6, 8}, {true, true, 6, 8}};
	const struct prof_merge_params how = {0};
	const struct timespec pause = {.tv_nsec = APART_MS * 1000000};
	char names[2][SUPPORT_PATH_SIZE + 32];
	struct prof_merge_source sources[2] = {{0}};

	(void)params;
	for (int i = 0; i < 2; i++) {
		snprintf(names[i], sizeof(names[i]), "%s.rank%d", path, i);
		sources[i].path = names[i];
		if (!view_fixture_runs_write(names[i], plan, ARRAY_LEN(plan)))
			return false;
		nanosleep(&pause, NULL);
	}
	support_write_file(path, "", 0);
	return prof_merge(path, sources, 2, &how, NULL) == ST_OK;
}

static int setup(void **state)
{
	return view_rig_setup_with(state, write_ranks, NULL, NULL, "7");
}

/* The cursor on the first lane of @rank on @clock. */
static void go_to_rank(struct view_rig *rig, int64_t rank, int clock)
{
	struct view_timeline *tl = rig->session.state[VIEW_TIMELINE];

	for (int i = tl->lane_count - 1; i >= 0; i--)
		if (tl->lanes[i].track->rank == rank && tl->lanes[i].track->clock == clock)
			view__go(tl, i, 0, tl->clock[clock].window.from, IPS_NULL);
	view_rig_press(rig, ".");
	assert_int_equal(view__lane(tl)->track->rank, rank);
	assert_int_equal(view__lead(tl), clock);
}

/* Weight updates of @rank that the window of @clock shows whole: the first of them. */
static int64_t first_update(struct view_rig *rig, int64_t rank, int clock)
{
	const struct view_timeline *tl = rig->session.state[VIEW_TIMELINE];
	char sql[320];

	snprintf(
		sql, sizeof(sql),
		"SELECT coalesce(min(weight_update), -1) FROM (SELECT weight_update, min(start_ns) "
		"AS a, max(start_ns + dur_ns) AS b FROM spans WHERE rank = %d AND clock = '%s' "
		"GROUP BY 1) WHERE a < %lld AND b > %lld",
		(int)rank, clock ? "device" : "host", (long long)tl->clock[clock].window.to,
		(long long)tl->clock[clock].window.from);
	return view_rig_sql_int(rig, sql);
}

static void test_the_clocks_are_linked_by_the_rank_of_the_cursor(void **state)
{
	struct view_rig *rig = *state;

	assert_true(view_rig_sql_int(rig, "SELECT min(start_ns) FROM spans WHERE rank = 1 AND "
					  "clock = 'host'") >
		    view_rig_sql_int(rig, "SELECT max(start_ns + dur_ns) FROM spans WHERE rank = 0 "
					  "AND clock = 'host'"));
	for (int64_t rank = 1; rank >= 0; rank--) {
		/* About one pipeline run, in the second execution, by the device's clock. */
		go_to_rank(rig, rank, 1);
		view_rig_press(rig, "0++++lllllllllllllll");
		assert_true(first_update(rig, rank, 1) > 0);
		assert_int_equal(first_update(rig, rank, 0), first_update(rig, rank, 1));
		assert_int_equal(first_update(rig, !rank, 0), -1);
	}
	/* And by the host's. */
	go_to_rank(rig, 1, 1);
	go_to_rank(rig, 1, 0);
	assert_true(first_update(rig, 1, 0) > 0);
	assert_int_equal(first_update(rig, 1, 0), first_update(rig, 1, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_the_clocks_are_linked_by_the_rank_of_the_cursor, setup,
			view_rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
