/*
 * The screen Programs: a tree that opens and closes, finds its programs, and counts as SQL does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "profiler/ipuscope/profiler.h"
#include "profiler/prof_merge.h"
#include "support/view_fixture_model.h"
#include "support/view_rig.h"
#include "viewer/draw/view_table.h"
#include "viewer/programs/view_programs_internal.h"

static int setup_one(void **state)
{
	return view_rig_setup_model(state, false, 100, 30, "5");
}

static int setup_two(void **state)
{
	return view_rig_setup_model(state, true, 120, 40, "5");
}

static void test_the_tree_opens_and_closes(void **state)
{
	struct view_rig *rig = *state;

	assert_shows(rig, "s Sequence (Stage0/F)");
	assert_shows(rig, "s Sequence (train)");
	assert_hides(rig, "Dense_A");
	view_rig_press(rig, "e");
	assert_shows(rig, "s Sequence (Dense_A/MatMul)");
	assert_hides(rig, "OnTileExecute");
	/* In, in, and out again. */
	view_rig_press(rig, "llll");
	assert_shows(rig, "y Sync (Internal)");
	assert_shows(rig, "X OnTileExecute (Dense_A/MatMul)");
	view_rig_press(rig, "u");
	assert_shows(rig, "\xe2\x94\x80 Sequence (Dense_A/MatMul) ");
	view_rig_press(rig, "c");
	assert_hides(rig, "OnTileExecute");
	view_rig_press(rig, "h");
	assert_shows(rig, "\xe2\x94\x80 Sequence (Stage0/F) ");
	view_rig_press(rig, "C");
	assert_hides(rig, "Dense_A");
	view_rig_press(rig, "EG");
	assert_shows(rig, "c Call (Stage1/F) > #");
	assert_shows(rig, "r Repeat (PipelineRuns) x 50");
	view_rig_press(rig, "C");
	assert_shows(rig, "\xe2\x94\x80 Sequence (train) ");
	view_rig_press(rig, "u");
	assert_shows(rig, "nothing is above this program");
	view_rig_press(rig, "g\r");
	assert_shows(rig, "Dense_A/MatMul");
}

/* In a merged file each rank's programs have their cycles, and the heading says whose they are. */
static void test_the_ranks_of_a_merged_file_count_together(void **state)
{
	const struct prof_merge_params params = {.align = PROF_MERGE_ALIGN_NONE};
	struct prof_merge_source sources[2] = {0};
	struct err err;
	struct view_rig *rig = view_rig_new(state);
	char paths[2][SUPPORT_PATH_SIZE + 16];
	const struct view_programs *screen;
	int roots = 0;

	for (int i = 0; i < 2; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/%d.db", rig->folder, i);
		assert_true(view_fixture_model_write(paths[i], i == 1));
		sources[i].path = paths[i];
	}
	support_write_file(rig->path, "", 0);
	if (prof_merge(rig->path, sources, 2, &params, &err) != ST_OK)
		fail_msg("%s", err.text);
	assert_true(sources[1].own_model);
	view_rig_start(rig, false, 80, 24, "5");
	assert_shows(rig, "cycles of all ranks' update)");
	screen = rig->session.state[VIEW_PROGRAMS];
	for (int i = 0; i < screen->tree.count; i++)
		roots += screen->tree.nodes[i].cycles[0] > 0 &&
			 strcmp(screen->tree.nodes[i].name, "Dense_A/MatMul") == 0;
	assert_true(roots > 1);
}

static void test_cycles_are_those_of_sql(void **state)
{
	struct view_rig *rig = *state;

	assert_count(rig, "Sequence (Stage1/F)",
		     "SELECT sum(cycles) FROM device_steps WHERE stage = 1 AND weight_update = 0");
	view_rig_press(rig, "E");
	assert_count(rig, "Sequence (Dense_A/MatMul)",
		     "SELECT sum(cycles) FROM device_steps WHERE operation = 'Dense_A/MatMul' AND "
		     "weight_update = 0");
	view_rig_press(rig, "i");
	assert_shows(rig, "cycles of IPU 0");
	view_rig_press(rig, "j");
	assert_count(rig, "Sequence (Dense_A/MatMul)",
		     "SELECT sum(cycles) FROM device_steps WHERE operation = 'Dense_A/MatMul' AND "
		     "weight_update = 0 AND ipu = 0");
}

static void test_searching_opens_the_way(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "/pipelineruns\r");
	assert_shows(rig, "Repeat (PipelineRuns) x 50");
	assert_shows(rig, "repeats      50 times");
	view_rig_press(rig, "/softmax\rn");
	assert_shows(rig, "Dense_B/Softmax");
	assert_shows(rig, "operation    Dense_B/Softmax");
	view_rig_press(rig, "/no such\r");
	assert_shows(rig, "not found: no such");
}

static void test_a_filter_leaves_what_leads_to_it(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "\\^OnTile.*relu\r");
	assert_shows(rig, "row 1 of 3, ");
	assert_shows(rig, "X OnTileExecute (Dense_A/Relu)");
	assert_shows(rig, "s Sequence (Stage0/F)");
	assert_hides(rig, "Stage1/F");
	view_rig_press(rig, "\\((\r");
	assert_shows(rig, "filter: ");
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	assert_shows(rig, "Stage1/F");
}

static void test_more_of_one_program(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "/OnTileExecute (Dense_A/MatMul)\r");
	assert_shows(rig, "4,000 cycles, run 2 times in a weight update (simulated)");
	/* At 1 GHz, three updates of 4,000 cycles. */
	assert_shows(rig, "12 us simulated in 3 weight updates");
	assert_shows(rig, "200 vertices on 100 tiles, 2,000 cycles at most, balance of these");
	assert_shows(rig, "Stage0/F > Dense_A/MatMul");
	/* Nothing is cut where there is little room: it goes on in the next line. */
	view_rig_size(rig, 50, 40);
	assert_shows(rig, "  compute set  200 vertices on 100 tiles,");
	assert_shows(rig, "  the run ");
	assert_shows(rig, "tiles 75 %");
	view_rig_press(rig, "gb");
	assert_shows(rig, "By type");
	assert_shows(rig, "OnTileExecute");
}

static void test_what_works_is_a_list_by_cycles(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "v");
	assert_shows(rig, "what works");
	assert_count(rig, "\xe2\x96\xb6",
		     "SELECT sum(cycles) AS c FROM device_steps WHERE weight_update = 0 GROUP BY "
		     "program_id ORDER BY c DESC LIMIT 1");
	view_rig_press(rig, "\r");
	assert_shows(rig, "s Sequence (Stage0/F)");
	assert_shows(rig, "\xe2\x94\x80 OnTileExecute (Dense_A/MatMul) ");
}

static void test_keys_of_the_tree_say_that_there_is_a_list(void **state)
{
	struct view_rig *rig = *state;
	static const char keys[][2] = {"e", "E", "c", "C", "u", "h", "l"};

	view_rig_press(rig, "v");
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		view_rig_press(rig, keys[i]);
		assert_shows(rig, "what works is a list: v shows the tree");
		view_rig_press(rig, "g");
		assert_hides(rig, "what works is a list");
	}
}

static void click(struct view_rig *rig, int x, int y)
{
	view_session_click(&rig->session, x, y);
	view_session_draw(&rig->session);
}

/* The body begins at line 1, with the heads of columns: three rows from line 2 on. */
static void test_a_click_goes_to_a_row_and_opens_the_one_it_is_on(void **state)
{
	struct view_rig *rig = *state;

	click(rig, 5, 3);
	assert_shows(rig, "row 2 of 3, ");
	click(rig, 5, 2);
	assert_shows(rig, "row 1 of 3, ");
	click(rig, 99, 2);
	assert_shows(rig, "Sequence (Dense_A/MatMul)");
	click(rig, 5, 2);
	assert_shows(rig, "row 1 of 3, ");
	/* The row ends with the screen. */
	click(rig, 100, 3);
	assert_shows(rig, "row 1 of 3, ");
}

/* The narrowest screen has Source and Target beside the name; | shows what they differ by. */
static void test_narrow_screens_compare(void **state)
{
	struct view_rig *rig = *state;

	view_rig_size(rig, 40, 12);
	assert_line_shows(rig, "program", "Source", "Target");
	view_rig_press(rig, "|");
	assert_shows(rig, "columns: Diff");
	assert_line_shows(rig, "program", "Diff");
	assert_line_shows(rig, "Stage1/F", "+");
	view_rig_press(rig, "||");
	assert_line_shows(rig, "program", "Source", "Target");
}

static void test_orders_and_columns(void **state)
{
	struct view_rig *rig = *state;
	char *text;

	view_rig_press(rig, "e>");
	assert_shows(rig, "the longest first");
	text = view_rig_text(&rig->session);
	assert_true(strstr(text, "(Dense_A/MatMul)") < strstr(text, "(infeed/x)"));
	assert_true(strstr(text, "(infeed/x)") < strstr(text, "(Dense_A/Relu)"));
	free(text);
	view_rig_press(rig, "|");
	assert_hides(rig, "share");
	view_rig_press(rig, "|");
	assert_hides(rig, "times ");
	view_rig_press(rig, "|>>I");
	assert_shows(rig, "share");
}

static void test_two_trees_are_one(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "E");
	assert_shows(rig, "simulated cycles");
	assert_shows(rig, "Source      Target ");
	assert_shows(rig, "Diff\n");
	assert_shows(rig, "\n-");
	/* What is as it was is left out only if asked for. */
	assert_shows(rig, "X OnTileExecute (Dense_A/Relu)");
	/* Twice 1,000 cycles more, of 1,800 and 3,800. */
	view_rig_press(rig, "/OnTileExecute (Dense_B/MatMul)\r");
	assert_count(rig, "X OnTileExecute (Dense_B/MatMul)", "SELECT 3800");
	view_rig_press(rig, "/Dense_B/MatMul/GradX\r");
	assert_shows(rig, "the target only");
	view_rig_press(rig, "gD");
	assert_shows(rig, "infeed/x");
	assert_hides(rig, "Relu");
	view_rig_press(rig, "/Dense_B/MatMul)\rn");
	assert_shows(rig, "+2,000 (52.63 %)");
}

/* The Source's, and below it the Target's, with as many updates as it had. */
static void test_each_report_tells_its_own(void **state)
{
	struct view_rig *rig = *state;
	const char *source, *target;
	char *text;

	view_rig_size(rig, 100, 50);
	view_rig_press(rig, "/OnTileExecute (Dense_B/MatMul)\r");
	text = view_rig_text(&rig->session);
	source = strstr(text, " Source \xe2\x94\x80");
	target = strstr(text, " Target \xe2\x94\x80");
	assert_true(source && target && source < target);
	assert_true(strstr(source, "5.4 us simulated in 3 weight updates") < target);
	assert_non_null(strstr(target, "11.4 us simulated in 3 weight updates"));
	assert_non_null(strstr(target, "1,900 cycles at most"));
	free(text);
}

static void test_places_lead_here_and_away(void **state)
{
	struct view_rig *rig = *state;
	const struct view_screen_ops *ops = view_screen(VIEW_PROGRAMS);
	void *screen = rig->session.state[VIEW_PROGRAMS];
	struct view_place place;
	struct err err;
	char text[128];

	view_place_clear(&place);
	assert_false(ops->offers(&place, text, sizeof(text)));
	view_place_text(place.operation, "Dense_B/Softmax");
	assert_true(ops->offers(&place, text, sizeof(text)));
	assert_int_equal(ops->go(screen, &rig->session.context, &place, &err), ST_OK);
	assert_true(ops->place(screen, &place));
	assert_string_equal(place.operation, "Dense_B/Softmax");
	place.program_id = view_rig_sql_int(rig, "SELECT max(program_id) FROM programs");
	assert_int_equal(ops->go(screen, &rig->session.context, &place, &err), ST_OK);
	place.program_id = 1000000;
	assert_int_equal(ops->go(screen, &rig->session.context, &place, &err), ST_NOTFOUND);
}

static void test_the_rows_are_the_view(void **state)
{
	struct view_rig *rig = *state;
	struct report_table table;

	assert_int_equal(view_screen(VIEW_PROGRAMS)
				 ->table(rig->session.state[VIEW_PROGRAMS], &rig->session.context,
					 &table, NULL),
			 ST_OK);
	assert_int_equal(table.row_count, view_rig_sql_int(rig, "SELECT count(*) FROM programs"));
	assert_int_equal(view_table_column(&table, "cycles_target"), -1);
	report_table_free(&table);
}

static void test_the_query_can_be_pasted(void **state)
{
	struct view_rig *rig = *state;
	struct str sql = {0};
	int statements = 0;

	view_screen(VIEW_PROGRAMS)
		->query(rig->session.state[VIEW_PROGRAMS], &rig->session.context, &sql);
	for (char *at = sql.text, *end; (end = strstr(at, ";\n")); at = end + 2) {
		struct prof_query *query;
		bool row;

		*end = '\0';
		assert_int_equal(prof_query_open(&query, rig->session.source.db, at, NULL), ST_OK);
		assert_int_equal(prof_query_step(query, &row, NULL), ST_OK);
		prof_query_close(query);
		statements++;
	}
	assert_int_equal(statements, 4);
	str_free(&sql);
}

static void test_any_size_draws(void **state)
{
	static const char keys[] = "Evj|bllG>DIihv\rCe";
	struct view_rig *rig = *state;

	for (int i = 0; i < 80; i++) {
		view_rig_size(rig, 40 + i * 37 % 230, 10 + i * 13 % 60);
		view_rig_key(rig, (unsigned char)keys[i % (int)(sizeof(keys) - 1)]);
	}
}

/* Deep beyond any stack, wide, and with parents that lead round in a circle. */
static void test_large_and_odd_trees(void **state)
{
	struct view_rig *rig = *state;
	struct view_rig large = {0};
	char path[SUPPORT_PATH_SIZE + 32];

	snprintf(path, sizeof(path), "%s/large.db", rig->folder);
	assert_true(view_fixture_programs_write(path, 5, 10000));
	view_rig_open(&large, path, path, 80, 24);
	view_rig_press(&large, "5EGhD");
	assert_shows(&large, "Nothing differs");
	view_rig_press(&large, "D/part3/9999\r");
	assert_shows(&large, "part3/9999");
	view_rig_close(&large);
}

static void test_circles_of_parents_are_left_out(void **state)
{
	struct view_rig *rig = *state;
	struct ips_recording *r;
	struct ips_recording_params params;
	struct view_rig odd = {0};
	struct view_place place;
	char path[SUPPORT_PATH_SIZE + 32];

	snprintf(path, sizeof(path), "%s/odd.db", rig->folder);
	ips_recording_params_defaults(&params);
	assert_int_equal(ips_recording_open(&r, path, &params, NULL, 0), 0);
	ips_append_program(r, &(struct ips_program){0, IPS_NULL, 0, "Sequence", "root", NULL,
						    IPS_NULL, IPS_NULL});
	ips_append_compute_set(r, &(struct ips_compute_set){"idle", NULL, 0, 1, 1, 0, 0});
	ips_append_program(r, &(struct ips_program){1, 2, 0, "Sequence", "a", NULL, IPS_NULL, 99});
	ips_append_program(r, &(struct ips_program){2, 1, 0, "Sequence", "b", NULL, IPS_NULL, 0});
	ips_append_program(r, &(struct ips_program){3, 3, 0, "Odd", "own parent", NULL, -5, 3});
	ips_append_program(r, &(struct ips_program){4, 77, 0, NULL, NULL, NULL, 0, IPS_NULL});
	assert_int_equal(ips_recording_close(r, NULL, 0), 0);
	view_rig_open(&odd, path, NULL, 80, 24);
	view_rig_press(&odd, "5E");
	assert_shows(&odd, "s Sequence (root)");
	assert_shows(&odd, "? Odd (own parent)");
	assert_shows(&odd, " -: idle");
	view_place_clear(&place);
	place.program_id = 2;
	assert_int_equal(
		view_screen(VIEW_PROGRAMS)
			->go(odd.session.state[VIEW_PROGRAMS], &odd.session.context, &place, NULL),
		ST_NOTFOUND);
	view_rig_close(&odd);
}

/* Who looks while programs are being written sees those that were added since. */
static void test_programs_that_are_added_are_shown(void **state)
{
	struct view_rig *rig = *state;
	struct ips_recording *r;
	struct ips_recording_params params;
	struct view_rig live = {0};
	char path[SUPPORT_PATH_SIZE + 32];

	snprintf(path, sizeof(path), "%s/live.db", rig->folder);
	ips_recording_params_defaults(&params);
	assert_int_equal(ips_recording_open(&r, path, &params, NULL, 0), 0);
	ips_append_program(r, &(struct ips_program){0, IPS_NULL, 0, "Sequence", "first", NULL,
						    IPS_NULL, IPS_NULL});
	ips_recording_flush(r);
	view_rig_open(&live, path, NULL, 80, 24);
	view_rig_press(&live, "5");
	assert_shows(&live, "Sequence (first)");
	ips_append_program(r, &(struct ips_program){1, IPS_NULL, 1, "Sequence", "second", NULL,
						    IPS_NULL, IPS_NULL});
	ips_recording_flush(r);
	view_rig_press(&live, "r");
	assert_shows(&live, "Sequence (first)");
	assert_shows(&live, "Sequence (second)");
	view_rig_close(&live);
	assert_int_equal(ips_recording_close(r, NULL, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define ONE(test) cmocka_unit_test_setup_teardown(test, setup_one, view_rig_teardown)
#define TWO(test) cmocka_unit_test_setup_teardown(test, setup_two, view_rig_teardown)
		ONE(test_the_tree_opens_and_closes),
		ONE(test_cycles_are_those_of_sql),
		cmocka_unit_test_teardown(test_the_ranks_of_a_merged_file_count_together,
					  view_rig_teardown),
		ONE(test_searching_opens_the_way),
		ONE(test_a_filter_leaves_what_leads_to_it),
		ONE(test_more_of_one_program),
		ONE(test_what_works_is_a_list_by_cycles),
		ONE(test_a_click_goes_to_a_row_and_opens_the_one_it_is_on),
		ONE(test_orders_and_columns),
		TWO(test_two_trees_are_one),
		TWO(test_each_report_tells_its_own),
		TWO(test_narrow_screens_compare),
		ONE(test_keys_of_the_tree_say_that_there_is_a_list),
		ONE(test_places_lead_here_and_away),
		ONE(test_the_rows_are_the_view),
		ONE(test_the_query_can_be_pasted),
		ONE(test_any_size_draws),
		TWO(test_any_size_draws),
		ONE(test_large_and_odd_trees),
		ONE(test_circles_of_parents_are_left_out),
		ONE(test_programs_that_are_added_are_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
