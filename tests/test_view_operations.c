/*
 * The screen Operations: its numbers are those of SQL, by any way of looking, in any unit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fmt.h"
#include "support/view_fixture_model.h"
#include "support/view_rig.h"

struct two {
	struct view_rig rig;
	char other[SUPPORT_PATH_SIZE + 16];
};

static int setup(void **state)
{
	struct two *two = calloc(1, sizeof(*two));

	support_tempdir(two->rig.folder);
	snprintf(two->rig.path, sizeof(two->rig.path), "%s/run.db", two->rig.folder);
	snprintf(two->other, sizeof(two->other), "%s/other.db", two->rig.folder);
	*state = two;
	return view_fixture_model_write(two->rig.path, false) &&
			       view_fixture_model_write(two->other, true)
		       ? 0
		       : -1;
}

static int setup_one(void **state)
{
	const int result = setup(state);
	struct two *two = *state;

	view_rig_open(&two->rig, two->rig.path, NULL, 100, 30);
	view_rig_press(&two->rig, "6");
	return result;
}

static int setup_two(void **state)
{
	const int result = setup(state);
	struct two *two = *state;

	view_rig_open(&two->rig, two->rig.path, two->other, 132, 40);
	view_rig_press(&two->rig, "6");
	return result;
}

/* The line of the screen that has @part, "" where none has. The caller's (free). */
static char *line_of(struct view_rig *rig, const char *part)
{
	char *text = view_rig_text(&rig->session);
	char *at = strstr(text, part), *out;

	if (!at) {
		free(text);
		return strdup("");
	}
	while (at > text && at[-1] != '\n')
		at--;
	out = strndup(at, strcspn(at, "\n"));
	free(text);
	return out;
}

/* The line with @part has the number of @sql as counts are shown. */
static void assert_line(struct view_rig *rig, const char *part, const char *sql)
{
	char *line = line_of(rig, part), count[FMT_SIZE];

	assert_contains(line, fmt_count(count, view_rig_sql_int(rig, sql)));
	free(line);
}

static void assert_absent(struct view_rig *rig, const char *part)
{
	char *line = line_of(rig, part);

	assert_string_equal(line, "");
	free(line);
}

static void test_operations_say_what_sql_says(void **state)
{
	struct two *two = *state;
	struct view_rig *rig = &two->rig;

	assert_shows(rig, "simulated");
	assert_line(rig, "simulated", "SELECT sum(cycles) FROM operations");
	assert_line(rig, " Dense_B/Softmax",
		    "SELECT cycles FROM operations WHERE operation = 'Dense_B/Softmax'");
	assert_line(rig, " Dense_B/Softmax",
		    "SELECT sync_cycles FROM operations WHERE operation = 'Dense_B/Softmax'");
	/* The longest comes first, and has the cursor. */
	assert_shows(rig, "\xe2\x96\xb6"
			  "Dense_A/MatMul ");
	assert_shows(rig, "loss/it's ?[31m\"odd\"");
}

static void test_sums_by_layer_kind_and_stage(void **state)
{
	struct two *two = *state;
	struct view_rig *rig = &two->rig;

	view_rig_press(rig, "v");
	assert_shows(rig, "by layer");
	assert_line(rig, "Dense_B  ", "SELECT sum(cycles) FROM operations WHERE layer = 'Dense_B'");
	view_rig_press(rig, "v");
	assert_shows(rig, "by kind");
	assert_line(rig, " elementwise",
		    "SELECT sum(compute_cycles) FROM operations WHERE kind = 'elementwise'");
	view_rig_press(rig, "v");
	assert_shows(rig, "by stage and phase");
	assert_line(rig, " 1 B ",
		    "SELECT sum(cycles) FROM operations WHERE stage = 1 AND phase = 'B'");
	view_rig_press(rig, "V");
	assert_shows(rig, "by kind");
}

static void test_units_stages_and_parts_change(void **state)
{
	struct two *two = *state;
	struct view_rig *rig = &two->rig;

	/* At 1 GHz a cycle is a ns. */
	view_rig_press(rig, "t");
	assert_shows(rig, "simulated times");
	assert_shows(rig, "3 us");
	view_rig_press(rig, "ti");
	assert_shows(rig, "only stage 0 of 2");
	assert_absent(rig, "Softmax");
	assert_line(rig, "simulated", "SELECT sum(cycles) FROM operations WHERE stage = 0");
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

static void test_more_of_one_operation(void **state)
{
	struct two *two = *state;
	struct view_rig *rig = &two->rig;

	assert_shows(rig, "AMP, split by field 4, in 2; 4 kB temporary");
	assert_shows(rig, "Dense, output (32, 64), 6,400 parameters");
	assert_shows(rig, "weight: 25 kB in 1");
	view_rig_press(rig, "/softmax\r");
	assert_shows(rig, "operation Dense_B/Softmax");
	assert_line(rig, " vertices ",
		    "SELECT vertices FROM compute_sets WHERE operation = 'Dense_B/Softmax'");
	/* Low screens show one or the other. */
	view_rig_size(rig, 80, 14);
	assert_absent(rig, "vertices");
	view_rig_press(rig, "\r");
	assert_shows(rig, "vertices");
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	assert_absent(rig, "vertices");
}

static void test_enter_opens_a_sum(void **state)
{
	struct two *two = *state;
	struct view_rig *rig = &two->rig;

	view_rig_press(rig, "v/dense_b\r\r");
	assert_shows(rig, "of layer Dense_B (Esc: all)");
	assert_shows(rig, "Dense_B/Softmax");
	assert_absent(rig, "Dense_A/Relu");
	assert_line(rig, "simulated", "SELECT sum(cycles) FROM operations WHERE layer = 'Dense_B'");
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	assert_shows(rig, "Dense_A/Relu");
	/* A name with quotes is a name. */
	view_rig_press(rig, "g/odd\r");
	assert_shows(rig, "operation loss/it's");
}

static void test_filters_orders_and_their_trouble(void **state)
{
	struct two *two = *state;
	struct view_rig *rig = &two->rig;

	/* So they come, and the heading says it. */
	assert_shows(rig, "cycles\xe2\x96\xbc");
	view_rig_press(rig, "\\^SGD\r");
	assert_shows(rig, "row 1 of 2 (11 in all), by cycles, filter ^SGD");
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
	struct two *two = *state;
	struct view_rig *rig = &two->rig;

	assert_shows(rig, "target");
	assert_line(rig, " Dense_B/MatMul ", "SELECT 1000");
	assert_shows(rig, "+1,000 (40.00 %)");
	view_rig_press(rig, "Dj");
	assert_shows(rig, "row 2 of 3 (12 in all)");
	assert_shows(rig, "+Dense_B/MatMul/GradX");
	assert_shows(rig, "infeed/x");
	assert_absent(rig, "Dense_A/Relu");
	view_rig_press(rig, "Dbv");
	assert_shows(rig, "Source ");
	assert_shows(rig, "Target ");
}

static void test_places_lead_here_and_away(void **state)
{
	struct two *two = *state;
	struct view_rig *rig = &two->rig;
	const struct view_screen_ops *ops = view_screen(VIEW_OPERATIONS);
	void *screen = rig->session.state[VIEW_OPERATIONS];
	struct view_place place;
	struct err err;
	char text[128];

	view_place_clear(&place);
	assert_false(ops->offers(&place, text, sizeof(text)));
	view_place_text(place.layer, "Dense_B");
	assert_true(ops->offers(&place, text, sizeof(text)));
	assert_string_equal(text, "operations of Dense_B");
	assert_int_equal(ops->go(screen, &rig->session.context, &place, &err), ST_OK);
	view_place_text(place.operation, "Dense_B/Softmax");
	assert_int_equal(ops->go(screen, &rig->session.context, &place, &err), ST_OK);
	assert_true(ops->place(screen, &rig->session.context, &place));
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
	struct two *two = *state;
	struct view_rig *rig = &two->rig;
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
	struct two *two = *state;
	struct view_rig *rig = &two->rig;
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
		ONE(test_more_of_one_operation),
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
