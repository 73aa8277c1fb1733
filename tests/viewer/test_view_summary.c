/*
 * The Summary: what it says is what SQL says, alone, beside another report, and of a run that goes
 * on.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "support/prof_testing.h"
#include "support/support.h"
#include "support/view_fixture.h"
#include "support/view_fixture_memory.h"
#include "support/view_rig.h"
#include "viewer/draw/view_table.h"
#include "viewer/summary/view_summary_internal.h"

#define FULLEST(column)                                                                            \
	"SELECT " column " FROM tile_memory GROUP BY ipu, tile ORDER BY sum(bytes) / "             \
	"max(capacity) DESC LIMIT 1"

static void test_numbers_are_those_of_sql(void **state)
{
	struct view_rig *rig = *state;
	char part[64];

	snprintf(part, sizeof(part), "pipeline runs   %lld",
		 (long long)view_rig_sql_int(
			 rig, "SELECT count(*) FROM bubbles WHERE clock = 'device'"));
	assert_shows(rig, part);
	snprintf(part, sizeof(part), "%.2f %% theory %.2f %%",
		 100 * view_rig_sql_real(rig, "SELECT avg(idle_fraction) FROM bubbles "
					      "WHERE clock = 'device'"),
		 100 * view_rig_sql_real(rig, "SELECT avg(theory_idle_fraction) FROM bubbles "
					      "WHERE clock = 'device'"));
	assert_shows(rig, part);
}

static void test_the_slowest_stage_is_named(void **state)
{
	struct view_rig *rig = *state;
	char part[64];

	snprintf(part, sizeof(part), "stage %lld on IPU %lld, the slowest",
		 (long long)view_rig_sql_int(rig, "SELECT stage FROM stage_timings WHERE clock = "
						  "'device' GROUP BY stage ORDER BY sum(dur_ns) "
						  "DESC LIMIT 1"),
		 (long long)view_rig_sql_int(rig, "SELECT ipu FROM stage_timings WHERE clock = "
						  "'device' GROUP BY stage ORDER BY sum(dur_ns) "
						  "DESC LIMIT 1"));
	view_rig_size(rig, 200, 60);
	assert_shows(rig, part);
}

/* A line that leads somewhere can be reached from above and below, and says what it is. */
static void test_the_cursor_stops_at_what_leads_on(void **state)
{
	struct view_rig *rig = *state;
	const struct view_screen_ops *ops = view_screen(VIEW_SUMMARY);
	void *screen = rig->session.state[VIEW_SUMMARY];
	struct view_place place;
	bool stage = false;

	assert_false(ops->place(screen, &place));
	for (int i = 0; i < 40 && !stage; i++) {
		view_rig_press(rig, "j");
		view_place_clear(&place);
		stage = ops->place(screen, &place) && place.stage != IPS_NULL && place.clock[0];
	}
	assert_true(stage);
	assert_int_equal(place.stage, 0);
	assert_string_equal(place.clock, "device");
	for (int i = 0; i < 40; i++)
		view_rig_press(rig, "k");
	assert_shows(rig, "At a glance");
}

/* The line that j stops at first opens by a click as by Enter; the block's title does not. */
static void test_a_click_opens_what_enter_does(void **state)
{
	struct view_rig *rig = *state;
	const struct view_screen_ops *ops = view_screen(VIEW_SUMMARY);
	const int top = rig->session.frame.body.y;
	enum view_screen led = VIEW_SUMMARY;
	struct view_place place;

	for (int i = 0; i < 40; i++) {
		view_rig_press(rig, "j");
		if (ops->place(rig->session.state[VIEW_SUMMARY], &place))
			break;
	}
	view_rig_press(rig, "\r");
	led = rig->session.screen;
	assert_int_not_equal(led, VIEW_SUMMARY);
	for (int y = 0; y < rig->session.frame.body.height; y++) {
		view_session_show(&rig->session, VIEW_SUMMARY);
		view_session_draw(&rig->session);
		view_session_click(&rig->session, 3, top + y);
		view_session_draw(&rig->session);
		if (rig->session.screen == led)
			return;
		assert_int_equal(rig->session.popup.kind, VIEW_NO_POPUP);
	}
	fail_msg("no line of the Summary leads to screen %d", (int)led);
}

/* The first screen says what is worst and which key leads there. */
static void test_the_glance_says_it_all_and_where_more_is(void **state)
{
	struct view_rig *rig = *state;
	char part[96];

	snprintf(part, sizeof(part), "%lld epoch, %lld weight updates in ",
		 (long long)view_rig_sql_int(rig,
					     "SELECT count(DISTINCT epoch) FROM execution_sums "
					     "WHERE mode = 'train'"),
		 (long long)view_rig_sql_int(rig,
					     "SELECT sum(updates) FROM execution_sums WHERE mode "
					     "= 'train'"));
	assert_shows(rig, part);
	snprintf(part, sizeof(part), "%.2f %% (theory %.2f %%) on IPUs, mostly imbalance",
		 100 * view_rig_sql_real(rig,
					 "SELECT 1 - 1.0 * sum(busy_ns) / sum(busy_ns + ramp_up_ns "
					 "+ ramp_down_ns "
					 "+ imbalance_ns + communication_ns) FROM bubbles WHERE "
					 "clock = 'device'"),
		 100 * view_rig_sql_real(rig, "SELECT avg(theory_idle_fraction) FROM bubbles WHERE "
					      "clock = 'device'"));
	assert_shows(rig, part);
	assert_shows(rig, "7 Timeline");
	snprintf(part, sizeof(part), "slowest  stage %lld on IPU ",
		 (long long)view_rig_sql_int(rig, "SELECT stage FROM stage_timings WHERE clock = "
						  "'device' GROUP BY stage ORDER BY sum(dur_ns) "
						  "DESC LIMIT 1"));
	assert_shows(rig, part);
	assert_shows(rig, "2 Insights");
}

/* Enter goes to the screen whose name is at the line's end. */
static void test_lines_at_a_glance_lead_to_the_screen_they_name(void **state)
{
	struct view_rig *rig = *state;
	const struct view_blocks *blocks =
		&((struct view_summary *)rig->session.state[VIEW_SUMMARY])->blocks;
	char named[64];
	int led = 0;

	for (size_t i = 0; i < blocks->block[0].count; i++) {
		const char *note = blocks->block[0].lines[i].note;

		if (!note)
			continue;
		str_copy(named, sizeof(named), note);
		/* It is the next one that the cursor stops at. */
		view_rig_press(rig, "j");
		view_rig_key(rig, VIEW_KEY_ENTER);
		assert_int_equal(view_screen(rig->session.screen)->key, named[0]);
		assert_string_equal(view_screen(rig->session.screen)->title, named + 2);
		assert_int_equal(rig->session.popup.kind, VIEW_NO_POPUP);
		view_rig_key(rig, VIEW_KEY_BACKSPACE);
		assert_int_equal(rig->session.screen, VIEW_SUMMARY);
		led++;
	}
	assert_true(led >= 1);
}

static void test_the_fullest_tile_is_gone_to(void **state)
{
	struct view_rig *rig = *state;
	const struct view_screen_ops *ops = view_screen(VIEW_SUMMARY);
	struct view_place place;
	char part[64];

	view_place_clear(&place);
	for (int i = 0; i < 20 && place.tile == IPS_NULL; i++) {
		view_rig_press(rig, "j");
		ops->place(rig->session.state[VIEW_SUMMARY], &place);
	}
	view_rig_key(rig, VIEW_KEY_ENTER);
	assert_int_equal(rig->session.screen, VIEW_MEMORY);
	snprintf(part, sizeof(part), "tile %lld,%lld",
		 (long long)view_rig_sql_int(rig, FULLEST("ipu")),
		 (long long)view_rig_sql_int(rig, FULLEST("tile")));
	assert_shows(rig, part);
}

/* Texts that are long go on in the next line. */
static void test_nothing_at_a_glance_is_cut(void **state)
{
	struct view_rig *rig = *state;
	char *text;

	for (int width = 40; width <= 130; width += 6) {
		view_rig_size(rig, width, 60);
		text = view_rig_text(&rig->session);
		for (char *line = strtok(text, "\n"), *glance = NULL;
		     line && !strstr(line, "bubble: device"); line = strtok(NULL, "\n")) {
			glance = strstr(line, "At a glance") ? line : glance;
			if (glance && glance != line)
				assert_null(strstr(line, "\xe2\x80\xa6"));
		}
		free(text);
	}
}

/* Results stand above what the run was, in as many columns as there are; and above both the run's
 * name and state. */
static void test_results_come_before_the_run_file(void **state)
{
	static const char *const settings[] = {"Run", "Recorded", "Simulated machine", "Options",
					       "Run file"};
	struct view_rig *rig = *state;
	const struct view_summary *screen = rig->session.state[VIEW_SUMMARY];

	for (int width = 60; width <= 260; width += 4) {
		int results = 0, below = 0, end = 0;
		char *text, *line;

		view_rig_size(rig, width, 40);
		for (int i = 0; i < screen->blocks.count; i++) {
			const struct view_block *block = &screen->blocks.block[i];
			bool setting = false;

			for (size_t s = 0; s < ARRAY_LEN(settings); s++)
				setting |= strcmp(block->title, settings[s]) == 0;
			if (!setting && below == 0) {
				end = max(end, block->place.y + block->place.height);
				results++;
				continue;
			}
			below++;
			assert_true(block->place.y > end);
		}
		assert_true(results >= 4 && below >= 2);
		text = view_rig_text(&rig->session);
		line = strtok(text, "\n");
		assert_non_null(strstr(line, "complete"));
		if (width >= 80)
			assert_non_null(strstr(line, rig->session.source.name));
		free(text);
	}
}

/* How long a run takes still follows from its pace. */
static void test_the_time_left_is_what_the_pace_says(void **state)
{
	struct view_glance glance = {.steps = 250, .steps_of = 1000, .trained_ns = 5000000};

	(void)state;
	assert_int_equal(view__summary_left_ns(&glance), 15000000);
	glance.steps_of = INT64_MIN;
	assert_int_equal(view__summary_left_ns(&glance), -1);
	glance.steps_of = glance.steps;
	assert_int_equal(view__summary_left_ns(&glance), 0);
}

static void test_two_runs_show_what_differs(void **state)
{
	struct view_rig *rig = *state;
	char other[SUPPORT_PATH_SIZE + 16];
	struct view_rig two;

	snprintf(other, sizeof(other), "%s/other.db", rig->folder);
	assert_true(view_fixture_write(other, 12));
	view_rig_open(&two, rig->path, other, 100, 40);
	assert_shows(&two, "Source run.db");
	assert_shows(&two, "Target other.db");
	view_rig_press(&two, "D");
	assert_shows(&two, "only what differs");
	view_rig_press(&two, "/runs\r");
	assert_shows(&two, "runs");
	view_rig_close(&two);
}

static const struct report_cell *compared(const struct view_grid *grid, int64_t at,
					  const char *column)
{
	return &grid->table.cells[grid->order[at] * grid->table.column_count +
				  view_table_column(&grid->table, column)];
}

/* With D what has changed most comes first in each section, and the host's times last. */
static void test_what_differs_is_in_the_order_of_its_change(void **state)
{
	struct view_rig *rig = *state;
	const struct view_summary *screen;
	char other[SUPPORT_PATH_SIZE + 16];
	struct view_rig two;
	int ordered = 0;

	snprintf(other, sizeof(other), "%s/other.db", rig->folder);
	assert_true(view_fixture_write(other, 12));
	prof_change(other, "UPDATE stage_sum_rows SET total_ns = total_ns * (10 + rowid) / 10");
	view_rig_open(&two, rig->path, other, 100, 40);
	view_rig_press(&two, "D");
	screen = two.session.state[VIEW_SUMMARY];
	for (int64_t i = 1; i < screen->grid.count; i++) {
		const struct report_cell *a = compared(&screen->grid, i - 1, "diff_fraction");
		const struct report_cell *b = compared(&screen->grid, i, "diff_fraction");
		const int64_t measured = compared(&screen->grid, i, "measured")->integer;

		if (strcmp(compared(&screen->grid, i - 1, "section")->text,
			   compared(&screen->grid, i, "section")->text) != 0)
			continue;
		assert_true(compared(&screen->grid, i - 1, "measured")->integer <= measured);
		if (compared(&screen->grid, i - 1, "measured")->integer < measured ||
		    b->type != PROF_REAL || a->type != PROF_REAL)
			continue;
		assert_true(fabs(a->real) >= fabs(b->real));
		ordered += fabs(a->real) > fabs(b->real);
	}
	assert_true(ordered > 3);
	view_rig_close(&two);
}

/* What a merge has noted of its sources is not what was set. */
static void test_facts_of_a_merge_come_last(void **state)
{
	struct view_rig *rig = *state;
	const struct view_grid *grid;
	char other[SUPPORT_PATH_SIZE + 16];
	struct view_rig two;

	snprintf(other, sizeof(other), "%s/other.db", rig->folder);
	assert_true(view_fixture_write(other, 12));
	prof_change(other, "INSERT INTO meta_facts VALUES ('merge.0.source', 'a.db')");
	view_rig_open(&two, rig->path, other, 100, 40);
	for (int pass = 0; pass < 2; pass++) {
		grid = &((struct view_summary *)two.session.state[VIEW_SUMMARY])->grid;
		assert_string_equal(compared(grid, grid->count - 1, "key")->text, "merge.0.source");
		view_rig_press(&two, "D");
	}
	view_rig_close(&two);
}

/* Go to the first row of @section; false: there is none. */
static bool go_to_section(struct view_rig *rig, const char *section)
{
	const struct view_grid *grid =
		&((struct view_summary *)rig->session.state[VIEW_SUMMARY])->grid;

	view_rig_press(rig, "1g");
	while (strcmp(compared(grid, grid->at, "section")->text, section) != 0) {
		if (grid->at + 1 == grid->count)
			return false;
		view_rig_press(rig, "j");
	}
	return true;
}

/* Rows of two runs lead on, too; a setting says why it does not. */
static void test_rows_of_two_runs_lead_to_what_they_are_about(void **state)
{
	static const struct {
		const char *section;
		enum view_screen screen;
	} rows[] = {{"bubbles", VIEW_TIMELINE},      {"stages", VIEW_TIMELINE},
		    {"operations", VIEW_OPERATIONS}, {"memory", VIEW_MEMORY},
		    {"liveness", VIEW_LIVENESS},     {"metrics", VIEW_METRICS},
		    {"totals", VIEW_TIMELINE},       {"tensors", VIEW_TENSORS}};
	struct view_rig *rig = *state;
	int led = 0;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!go_to_section(rig, rows[i].section))
			continue;
		view_rig_key(rig, VIEW_KEY_ENTER);
		assert_int_equal(rig->session.screen, rows[i].screen);
		assert_string_equal(rig->session.context.message, "");
		led++;
	}
	assert_true(led >= 2);
	for (int i = 0; i < 2 && go_to_section(rig, "settings"); i++) {
		view_rig_key(rig, i ? 'o' : VIEW_KEY_ENTER);
		assert_shows(rig, "no other screen shows a setting");
	}
}

/* What a key of `ipu-report diff` says of where it is. */
static void test_keys_of_rows_are_taken_apart(void **state)
{
	struct view_rig *rig = *state;
	struct view_summary *screen = rig->session.state[VIEW_SUMMARY];
	struct view_place place;

	assert_true(go_to_section(rig, "tensors"));
	view_place_clear(&place);
	assert_true(view__compare_place(screen, &place));
	assert_string_equal(place.key, "Dense_128:0");
	assert_string_equal(place.queue, "activations");
	assert_true(go_to_section(rig, "stages"));
	view_place_clear(&place);
	assert_true(view__compare_place(screen, &place));
	assert_string_equal(place.clock, "device");
	assert_string_equal(place.mode, "train");
	assert_string_equal(place.phase, "B");
	assert_int_equal(place.stage, 0);
	assert_int_equal(place.replica, 0);
}

/* Names of fields are for SQL; and rows that a narrow screen cuts alike are told apart. */
static void test_rows_of_two_runs_can_be_told_apart(void **state)
{
	struct view_rig *rig = *state;
	const struct view_grid *grid =
		&((struct view_summary *)rig->session.state[VIEW_SUMMARY])->grid;

	assert_true(go_to_section(rig, "bubbles"));
	assert_string_equal(compared(grid, grid->at, "what")->text, "device train bubble");
	assert_shows(rig, " device train bubble ");
	assert_true(go_to_section(rig, "stages"));
	assert_string_equal(compared(grid, grid->at, "what")->text, "device train stage 0 B mean");
	view_rig_size(rig, 60, 24);
	assert_shows(rig, "whole");
	assert_shows(rig, "device train stage 0 B mean");
	view_rig_size(rig, 60, 14);
	assert_hides(rig, "whole");
}

/* One report has no rows to filter; two are a table, and its keys are named. */
static void test_only_two_reports_are_filtered(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "f");
	if (rig->session.context.target) {
		assert_int_equal(rig->session.prompt, VIEW_FILTER_PROMPT);
		view_rig_press(rig, "bubbles\r");
		assert_shows(rig, "filter bubbles");
		assert_line_shows(rig, "> sort", "\\ filter");
	} else {
		assert_int_equal(rig->session.prompt, VIEW_NO_PROMPT);
		assert_shows(rig, "this screen has no filter");
		view_rig_press(rig, "j");
		assert_hides(rig, "filter");
	}
	view_rig_size(rig, 80, 80);
	view_rig_press(rig, "?");
	if (rig->session.context.target)
		assert_shows(rig, "Sort by the next column");
	else
		assert_hides(rig, "Sort by the next column");
}

/*
 * When it was, of what size the machine is and what is used of it; nothing that only clocks need.
 */
static void test_the_machine_is_told_in_all(void **state)
{
	struct view_rig *rig = *state;
	char part[96], tiles[FMT_SIZE], used[FMT_SIZE], all[FMT_SIZE];

	view_rig_size(rig, 100, 120);
	snprintf(part, sizeof(part), "%s on each IPU, %s in all", fmt_count(used, 150),
		 fmt_count(tiles, view_rig_sql_int(rig, "SELECT count(*) FROM (SELECT DISTINCT "
							"ipu, tile FROM tile_memory)")));
	assert_shows(rig, part);
	snprintf(part, sizeof(part), "%s of %s in all",
		 fmt_bytes(used,
			   (uint64_t)view_rig_sql_int(rig, "SELECT sum(bytes) FROM tile_memory")),
		 fmt_bytes(all, (uint64_t)view_rig_sql_int(
					rig, "SELECT sum(capacity) FROM (SELECT DISTINCT ipu, "
					     "tile, capacity FROM tile_memory)")));
	assert_shows(rig, part);
	assert_shows(rig, "instrumentation none");
	assert_line_shows(rig, "started", "(local)");
	assert_shows(rig, "library_version");
	assert_hides(rig, "ticks_per_second");
	assert_hides(rig, "process_start");
}

static void test_the_same_run_twice_differs_in_nothing(void **state)
{
	struct view_rig *rig = *state;
	struct view_rig two;

	view_rig_open(&two, rig->path, rig->path, 80, 24);
	assert_shows(&two, "no number differs");
	view_rig_press(&two, "D");
	assert_int_equal(two.session.trouble.status, ST_OK);
	assert_shows(&two, "section");
	view_rig_close(&two);
}

/* At any size, alone and compared, nothing is drawn outside and nothing fails. */
static void test_every_size_is_drawn(void **state)
{
	struct view_rig *rig = *state;
	struct view_rig two;

	view_rig_open(&two, rig->path, rig->path, 80, 24);
	for (int width = 40; width <= 260; width += 37)
		for (int height = 10; height <= 60; height += 11) {
			view_rig_size(rig, width, height);
			view_rig_size(&two, width, height);
			assert_int_equal(rig->session.trouble.status, ST_OK);
			assert_int_equal(two.session.trouble.status, ST_OK);
		}
	view_rig_close(&two);
}

static bool write_updates(const char *path, const void *updates)
{
	return view_fixture_write(path, *(const int *)updates);
}

static int setup_two(void **state)
{
	static const int source = 8, target = 12;

	return view_rig_setup_with(state, write_updates, &source, &target, "");
}

static bool write_memory(const char *path, const void *ipus)
{
	return view_fixture_memory_write(path, VIEW_FIXTURE_FULL, *(const int *)ipus);
}

static int setup_memory(void **state)
{
	static const int ipus = 2;

	return view_rig_setup_with(state, write_memory, &ipus, NULL, "");
}

static int setup_model(void **state)
{
	return view_rig_setup_model(state, false, 100, 40, "");
}

static int setup_two_models(void **state)
{
	return view_rig_setup_model(state, true, 100, 40, "");
}

#define TEST_OF(setup, test) cmocka_unit_test_setup_teardown(test, setup, view_rig_teardown)
#define SUMMARY_TEST(test)   TEST_OF(view_rig_setup, test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SUMMARY_TEST(test_numbers_are_those_of_sql),
		SUMMARY_TEST(test_the_slowest_stage_is_named),
		SUMMARY_TEST(test_the_cursor_stops_at_what_leads_on),
		SUMMARY_TEST(test_a_click_opens_what_enter_does),
		SUMMARY_TEST(test_the_glance_says_it_all_and_where_more_is),
		SUMMARY_TEST(test_nothing_at_a_glance_is_cut),
		SUMMARY_TEST(test_results_come_before_the_run_file),
		cmocka_unit_test(test_the_time_left_is_what_the_pace_says),
		SUMMARY_TEST(test_two_runs_show_what_differs),
		SUMMARY_TEST(test_what_differs_is_in_the_order_of_its_change),
		SUMMARY_TEST(test_facts_of_a_merge_come_last),
		SUMMARY_TEST(test_the_same_run_twice_differs_in_nothing),
		SUMMARY_TEST(test_every_size_is_drawn),
		SUMMARY_TEST(test_lines_at_a_glance_lead_to_the_screen_they_name),
		TEST_OF(setup_model, test_lines_at_a_glance_lead_to_the_screen_they_name),
		TEST_OF(setup_memory, test_the_fullest_tile_is_gone_to),
		TEST_OF(setup_two, test_rows_of_two_runs_lead_to_what_they_are_about),
		TEST_OF(setup_two_models, test_rows_of_two_runs_lead_to_what_they_are_about),
		TEST_OF(setup_two, test_keys_of_rows_are_taken_apart),
		TEST_OF(setup_two, test_rows_of_two_runs_can_be_told_apart),
		SUMMARY_TEST(test_only_two_reports_are_filtered),
		TEST_OF(setup_two, test_only_two_reports_are_filtered),
		TEST_OF(setup_memory, test_the_machine_is_told_in_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
