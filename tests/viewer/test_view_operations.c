/*
 * The screen Operations: its numbers are those of SQL, by any way of looking, in any unit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fmt.h"
#include "support/prof_testing.h"
#include "support/view_fixture_model.h"
#include "support/view_rig.h"
#include "viewer/operations/view_operations_internal.h"

static int setup_one(void **state)
{
	return view_rig_setup_model(state, false, 100, 30, "6");
}

/* Neither code nor temporary memory is known. */
static int setup_unknown(void **state)
{
	struct view_rig *rig = view_rig_new(state);

	if (!view_fixture_model_write(rig->path, false))
		return -1;
	prof_change(rig->path, "UPDATE operation_rows SET code_bytes = NULL;"
			       "UPDATE plan_rows SET temporary_bytes = NULL");
	view_rig_start(rig, false, 140, 30, "6");
	return 0;
}

/* Compute sets that are in two programs, one with a name longer than screens are wide; and programs
 * that are in each other. */
static int setup_sets(void **state)
{
	struct view_rig *rig = view_rig_new(state);

	if (!view_fixture_model_write(rig->path, false))
		return -1;
	prof_change(rig->path,
		    "INSERT INTO compute_set_rows(compute_set, operation, program_id, vertices, "
		    "tiles, max_cycles, mean_cycles) SELECT operation || '/The/way/down/to/the/very"
		    "/last/of/all/of/its/sets', operation, (SELECT program_id FROM program_rows "
		    "WHERE name = 'PipelineRuns'), vertices, tiles, max_cycles, mean_cycles FROM "
		    "compute_set_rows WHERE operation = 'Dense_A/MatMul';"
		    "UPDATE program_rows SET parent_id = program_id WHERE name = 'Dense_B/MatMul'");
	view_rig_start(rig, false, 80, 40, "6");
	return 0;
}

static int setup_two(void **state)
{
	return view_rig_setup_model(state, true, 132, 40, "6");
}

static void test_operations_say_what_sql_says(void **state)
{
	struct view_rig *rig = *state;

	assert_shows(rig, "simulated");
	assert_count(rig, "simulated", "SELECT sum(cycles) FROM operations");
	assert_count(rig, " Dense_B/Softmax",
		     "SELECT cycles FROM operations WHERE operation = 'Dense_B/Softmax'");
	assert_count(rig, " Dense_B/Softmax",
		     "SELECT sync_cycles FROM operations WHERE operation = 'Dense_B/Softmax'");
	/* The longest comes first, and has the cursor. */
	assert_shows(rig, "\xe2\x96\xb6"
			  "Dense_A/MatMul ");
	assert_shows(rig, "loss/it's ?[31m\"odd\"");
}

static void test_sums_by_layer_kind_and_stage(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "v");
	assert_shows(rig, "by layer");
	assert_count(rig, "Dense_B  ",
		     "SELECT sum(cycles) FROM operations WHERE layer = 'Dense_B'");
	view_rig_press(rig, "v");
	assert_shows(rig, "by layer, optimizer apart");
	assert_count(rig, "SGD  ", "SELECT sum(cycles) FROM operations WHERE phase = 'U'");
	assert_shows(rig, "(loss)");
	view_rig_press(rig, "/SGD\r\r");
	assert_shows(rig, "of layer SGD (Esc: all)");
	assert_hides(rig, "Dense_A/MatMul ");
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	view_rig_press(rig, "vvv");
	assert_shows(rig, "by kind");
	assert_count(rig, " elementwise",
		     "SELECT sum(compute_cycles) FROM operations WHERE kind = 'elementwise'");
	view_rig_press(rig, "v");
	assert_shows(rig, "by stage and phase");
	assert_count(rig, " 1 B ",
		     "SELECT sum(cycles) FROM operations WHERE stage = 1 AND phase = 'B'");
	view_rig_press(rig, "V");
	assert_shows(rig, "by kind");
}

static void test_units_stages_and_parts_change(void **state)
{
	struct view_rig *rig = *state;

	/* At 1 GHz a cycle is a ns. */
	view_rig_press(rig, "t");
	assert_shows(rig, "simulated times");
	assert_shows(rig, "3 us");
	view_rig_press(rig, "ti");
	assert_shows(rig, "only stage 0 of 2");
	view_rig_press(rig, "j");
	assert_shows(rig, ", stage 0");
	assert_hides(rig, "Softmax");
	assert_count(rig, "simulated", "SELECT sum(cycles) FROM operations WHERE stage = 0");
	view_rig_press(rig, "i");
	assert_shows(rig, "Softmax");
	view_rig_press(rig, "ib");
	assert_shows(rig, "compute");
	assert_shows(rig, "\xe2\x96\x92\xe2\x96\x92\xe2\x96\x91");
	view_rig_press(rig, "b");
	assert_shows(rig, "shares of the row");
	view_rig_press(rig, "b");
	assert_shows(rig, "no breakdown");
}

static void test_what_is_not_known_is_a_dash(void **state)
{
	struct view_rig *rig = *state;

	assert_line_shows(rig, "simulated", ", - of code");
	assert_shows(rig, "; - temporary");
	assert_hides(rig, "0 B");
}

static void test_more_of_one_operation(void **state)
{
	struct view_rig *rig = *state;
	char count[FMT_SIZE];

	assert_shows(rig, "AMP, split by field 4, in 2; 4 kB temporary");
	assert_shows(rig, "Dense, output (32, 64), 6,400 parameters");
	assert_shows(rig, "weight: 25 kB in 1");
	view_rig_press(rig, "/softmax\r");
	assert_shows(rig, "operation Dense_B/Softmax");
	fmt_count(count, view_rig_sql_int(rig, "SELECT vertices FROM compute_sets "
					       "WHERE operation = 'Dense_B/Softmax'"));
	assert_line_shows(rig, count, " vertices ");
	/* Low screens show one or the other. */
	view_rig_size(rig, 80, 14);
	assert_hides(rig, "vertices");
	view_rig_press(rig, "\r");
	assert_shows(rig, "vertices");
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	assert_hides(rig, "vertices");
}

/* The same set once in each program that has it. */
static void test_compute_sets_stand_under_their_program(void **state)
{
	struct view_rig *rig = *state;
	const char *text, *forward, *train, *last;
	char *all;

	view_rig_press(rig, "\r");
	all = view_rig_text(&rig->session);
	text = strstr(all, "Compute sets, with the balance of the tiles at work");
	assert_non_null(text);
	forward = strstr(text, "in Stage0/F (#0)");
	train = strstr(text, "in train (#");
	last = strstr(text, "/last/of/all/of/its/sets");
	assert_true(forward && train && last && forward < train && train < last);
	assert_null(strstr(train, "in Stage0/F"));
	free(all);
	/* What goes round in circles is in no program. */
	view_rig_press(rig, "g/Dense_B/MatMul\r");
	assert_shows(rig, "operation Dense_B/MatMul ");
	assert_hides(rig, "in Stage1/F");
}

static void test_wide_screens_cut_nothing(void **state)
{
	struct view_rig *rig = *state;

	view_rig_size(rig, 200, 50);
	assert_shows(rig, "The/way/down/to/the/very/last/of/all/of/its/sets");
}

static void test_enter_opens_a_sum(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "v/dense_b\r\r");
	assert_shows(rig, "of layer Dense_B (Esc: all)");
	assert_shows(rig, "Dense_B/Softmax");
	assert_hides(rig, "Dense_A/Relu");
	assert_count(rig, "simulated",
		     "SELECT sum(cycles) FROM operations WHERE layer = 'Dense_B'");
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	assert_shows(rig, "Dense_A/Relu");
	/* A name with quotes is a name. */
	view_rig_press(rig, "g/odd\r");
	assert_shows(rig, "operation loss/it's");
}

static void test_filters_orders_and_their_trouble(void **state)
{
	struct view_rig *rig = *state;

	/* So they come, and the heading says it. */
	assert_shows(rig, "cycles\xe2\x96\xbc");
	view_rig_press(rig, "\\^SGD\r");
	assert_shows(rig, "row 1 of 2 (11 in all), filter ^SGD, +");
	view_rig_press(rig, "\\(\r");
	assert_shows(rig, "filter: ");
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	view_rig_press(rig, ">");
	assert_shows(rig, "by share");
	view_rig_press(rig, "r");
	assert_shows(rig, "by share");
}

static void test_two_reports_are_compared(void **state)
{
	struct view_rig *rig = *state;

	assert_line_shows(rig, "cycles S", "Target", "Diff", "compute S", "Target", "Diff");
	assert_count(rig, " Dense_B/MatMul ", "SELECT 1000");
	assert_shows(rig, "+1,000 (40.00 %)");
	view_rig_press(rig, "Dj");
	assert_shows(rig, "row 2 of 3 (12 in all)");
	assert_shows(rig, "+Dense_B/MatMul/GradX");
	assert_shows(rig, "infeed/x");
	assert_hides(rig, "Dense_A/Relu");
	view_rig_press(rig, "Dbv");
	assert_shows(rig, "Source ");
	assert_shows(rig, "Target ");
}

static void test_places_lead_here_and_away(void **state)
{
	struct view_rig *rig = *state;
	const struct view_screen_ops *ops = view_screen(VIEW_OPERATIONS);
	void *screen = rig->session.state[VIEW_OPERATIONS];
	struct view_place place;
	struct err err;
	char text[128];

	view_place_clear(&place);
	assert_false(ops->offers(&place, text, sizeof(text)));
	place.stage = 1;
	assert_true(ops->offers(&place, text, sizeof(text)));
	assert_string_equal(text, "operations of stage 1");
	assert_int_equal(ops->go(screen, &rig->session.context, &place, &err), ST_OK);
	assert_int_equal(((struct view_operations *)screen)->grid.count,
			 view_rig_sql_int(rig, "SELECT count(*) FROM operations WHERE stage = 1"));
	place.stage = 99;
	assert_int_equal(ops->go(screen, &rig->session.context, &place, &err), ST_NOTFOUND);
	assert_contains(err.text, "stage 99");
	view_place_text(place.layer, "Dense_B");
	assert_true(ops->offers(&place, text, sizeof(text)));
	assert_string_equal(text, "operations of Dense_B");
	assert_int_equal(ops->go(screen, &rig->session.context, &place, &err), ST_OK);
	view_place_text(place.operation, "Dense_B/Softmax");
	assert_int_equal(ops->go(screen, &rig->session.context, &place, &err), ST_OK);
	assert_true(ops->place(screen, &place));
	assert_string_equal(place.operation, "Dense_B/Softmax");
	assert_string_equal(place.layer, "Dense_B");
	assert_int_equal(place.stage, 1);
	view_place_text(place.operation, "nothing");
	assert_int_equal(ops->go(screen, &rig->session.context, &place, &err), ST_NOTFOUND);
	assert_contains(err.text, "nothing");
}

/* Every statement of the query runs as it is. */
static void test_the_query_can_be_pasted(void **state)
{
	struct view_rig *rig = *state;
	struct str sql = {0};
	int statements = 0;

	view_rig_press(rig, "/odd\rt");
	view_screen(VIEW_OPERATIONS)
		->query(rig->session.state[VIEW_OPERATIONS], &rig->session.context, &sql);
	for (char *at = sql.text, *end; (end = strstr(at, ";\n")); at = end + 2) {
		struct prof_query *query;
		bool row;

		*end = '\0';
		assert_int_equal(prof_query_open(&query, rig->session.source.db, at, NULL), ST_OK);
		assert_int_equal(prof_query_step(query, &row, NULL), ST_OK);
		prof_query_close(query);
		statements++;
	}
	assert_int_equal(statements, 7);
	str_free(&sql);
}

static void test_any_size_draws(void **state)
{
	struct view_rig *rig = *state;
	static const char keys[] = "vbjt>lb|vI\ri";

	for (int i = 0; i < 60; i++) {
		view_rig_size(rig, 40 + i * 37 % 230, 10 + i * 13 % 60);
		view_rig_key(rig, (unsigned char)keys[i % (int)(sizeof(keys) - 1)]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define ONE(test) cmocka_unit_test_setup_teardown(test, setup_one, view_rig_teardown)
#define TWO(test) cmocka_unit_test_setup_teardown(test, setup_two, view_rig_teardown)
		ONE(test_operations_say_what_sql_says),
		ONE(test_sums_by_layer_kind_and_stage),
		ONE(test_units_stages_and_parts_change),
		cmocka_unit_test_setup_teardown(test_what_is_not_known_is_a_dash, setup_unknown,
						view_rig_teardown),
		ONE(test_more_of_one_operation),
#define SETS(test) cmocka_unit_test_setup_teardown(test, setup_sets, view_rig_teardown)
		SETS(test_compute_sets_stand_under_their_program),
		SETS(test_wide_screens_cut_nothing),
		ONE(test_enter_opens_a_sum),
		ONE(test_filters_orders_and_their_trouble),
		TWO(test_two_reports_are_compared),
		ONE(test_places_lead_here_and_away),
		ONE(test_the_query_can_be_pasted),
		ONE(test_any_size_draws),
		TWO(test_any_size_draws),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
