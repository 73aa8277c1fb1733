/*
 * Places are completed by what belongs to them: a tensor leads to the operation that makes it, an
 * operation to the tensor it makes, the work of a stage to all that the stage has, a rule on the
 * loss to its curve, a line of a query to its statement.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "profiler/ipuscope/profiler.h"
#include "support/view_fixture.h"
#include "support/view_rig.h"
#include "viewer/view_session_internal.h"

#define UPDATES      3000
#define UPDATE_STEPS 2
#define EXECUTION_OF 100 /* updates */

static const char *const operations[][3] = {
	/* operation, layer, phase */
	{"Dense_B/MatMul", "Dense_B", "F"},
	{"Dense_B/BiasAdd", "Dense_B", "F"},
	{"Dense_B/Relu", "Dense_B", "F"},
	{"Dense_B/Relu/Grad", "Dense_B", "B"},
	{"Dense_B/MatMul/GradW", "Dense_B", "B"},
	{"Dense_B/BiasAdd/Grad", "Dense_B", "B"},
	{"GradientAccumulation/Dense_B/kernel", "Dense_B", "B"},
	{"SGD/Dense_B/kernel", "Dense_B", "U"},
	{"SGD/Dense_B/bias", "Dense_B", "U"},
};

static void add_model(struct ips_recording *r)
{
	static const char *const stages[] = {"Stage1/F", "Stage1/B", "Stage1/U"};
	int64_t program = 3;

	ips_append_layer(r, &(struct ips_layer){"Dense_B", "Dense", 1, 1, "(32, 10)", 650, 650, 1});
	for (int64_t i = 0; i < 3; i++)
		ips_append_program(r, &(struct ips_program){i, IPS_NULL, i, "Sequence", stages[i],
							    NULL, IPS_NULL, IPS_NULL});
	for (size_t i = 0; i < ARRAY_LEN(operations); i++) {
		const char phase = operations[i][2][0];

		ips_append_operation(r, &(struct ips_operation){operations[i][0], operations[i][1],
								"matmul", operations[i][2], 1, 1,
								1000 - (int64_t)i, 1, 1, 1, 1, 1, 1,
								1});
		ips_append_program(r, &(struct ips_program){program,
							    phase == 'F'   ? 0
							    : phase == 'B' ? 1
									   : 2,
							    (int64_t)i, "OnTileExecute",
							    operations[i][0], operations[i][0],
							    IPS_NULL, IPS_NULL});
		ips_append_liveness(
			r, &(struct ips_liveness){1, (int64_t)i, program++, 100, 100 + (int64_t)i});
	}
}

static struct ips_keys keys_of(int step, char phase)
{
	struct ips_keys keys = IPS_KEYS_NULL;

	keys.mode = IPS_TRAIN;
	keys.epoch = 1;
	keys.weight_update = step / UPDATE_STEPS;
	keys.execution = step / UPDATE_STEPS / EXECUTION_OF;
	keys.step = phase == 'U' ? IPS_NULL : step;
	keys.stage = 1;
	keys.phase = phase;
	return keys;
}

/* A hit at every third step, which are more than are looked through, and one of the loss. */
static void add_tensors(struct ips_recording *r)
{
	static const struct ips_tensor tensors[] = {{"watch", "Dense_B/bias:0_grad", "gradient",
						     "Dense_B", 1, "(10,)", "float32", NULL, NULL},
						    {"watch", "Dense_B/kernel:0_grad", "gradient",
						     "Dense_B", 1, "(9, 10)", "float32", NULL,
						     NULL},
						    {"watch", "Dense_B", "activation", "Dense_B", 1,
						     "(32, 10)", "float32", "relu", NULL}};
	struct ips_health hit = {.rule = "exploding", .value = 9, .threshold = 1};

	for (size_t i = 0; i < ARRAY_LEN(tensors); i++)
		ips_tensor_add(r, &tensors[i]);
	for (int step = 0; step < UPDATES * UPDATE_STEPS; step += 3) {
		hit.keys = keys_of(step, 'F');
		hit.tensor_id = 3;
		hit.time_ns = 1000 * (int64_t)step + 500;
		ips_append_health(r, &hit);
	}
	hit = (struct ips_health){.keys = IPS_KEYS_NULL,
				  .rule = "loss_not_decreasing",
				  .tensor_id = IPS_NULL,
				  .time_ns = 1000 * (int64_t)UPDATES * UPDATE_STEPS,
				  .value = 2,
				  .key = "loss"};
	hit.keys.mode = IPS_TRAIN;
	hit.keys.epoch = 1;
	ips_append_health(r, &hit);
	ips_append_metric(r, &(struct ips_metric){.mode = IPS_TRAIN,
						  .epoch = 1,
						  .execution = IPS_NULL,
						  .step = IPS_NULL,
						  .time_ns = 5,
						  .name = "loss",
						  .value = 2});
}

static bool write_recording(const char *path, const void *params)
{
	struct ips_recording *r = view_fixture_record(path, "test_view_place");

	(void)params;
	if (!r)
		return false;
	add_model(r);
	add_tensors(r);
	return ips_recording_close(r, NULL, 0) == 0;
}

static int setup(void **state)
{
	static const int params;

	return view_rig_setup_with(state, write_recording, &params, NULL, "");
}

static void complete(struct view_rig *rig, struct view_place *place)
{
	struct err err = {0};

	if (view_place_complete(place, rig->session.source.db, &err) != ST_OK)
		fail_msg("%s", err.text);
}

/* What @screen offers of @place; "": nothing. */
static const char *offer(enum view_screen screen, const struct view_place *place)
{
	static char text[VIEW_PLACE_NAME];

	return view_screen(screen)->offers(place, text, sizeof(text)) ? text : "";
}

static struct view_place go(struct view_rig *rig, enum view_screen screen,
			    const struct view_place *place)
{
	struct view_place there;
	struct err err = {0};

	view_session_show(&rig->session, screen);
	view_session_draw(&rig->session);
	if (view_screen(screen)->go(rig->session.state[screen], &rig->session.context, place,
				    &err) != ST_OK)
		fail_msg("%s: %s", view_screen(screen)->name, err.text);
	rig->session.stale = true;
	view_session_draw(&rig->session);
	view_place_clear(&there);
	assert_true(view_screen(screen)->place(rig->session.state[screen], &there));
	return there;
}

static void test_a_tensor_leads_to_the_operation_that_makes_it(void **state)
{
	static const char *const wanted[][3] = {
		/* key, phase, operation */
		{"Dense_B", "", "Dense_B/Relu"},
		{"Dense_B/bias:0_grad", "", "Dense_B/BiasAdd/Grad"},
		{"Dense_B/bias:0_grad", "B", "Dense_B/BiasAdd/Grad"},
		{"Dense_B/bias:0_grad", "U", "SGD/Dense_B/bias"},
		{"Dense_B/kernel:0_grad", "", "Dense_B/MatMul/GradW"},
		{"Dense_B/kernel:0_grad", "U", "SGD/Dense_B/kernel"},
	};

	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		struct view_place place;

		view_place_clear(&place);
		view_place_text(place.key, wanted[i][0]);
		view_place_text(place.phase, wanted[i][1]);
		complete(*state, &place);
		assert_string_equal(place.operation, wanted[i][2]);
	}
}

static void test_an_operation_leads_to_the_tensor_it_makes(void **state)
{
	static const char *const wanted[][2] = {
		{"Dense_B/MatMul", "Dense_B"},
		{"Dense_B/MatMul/GradW", "Dense_B/kernel:0_grad"},
		{"Dense_B/BiasAdd/Grad", "Dense_B/bias:0_grad"},
		{"SGD/Dense_B/kernel", "Dense_B/kernel:0_grad"},
		{"SGD/Dense_B/bias", "Dense_B/bias:0_grad"},
	};

	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		struct view_place place;

		view_place_clear(&place);
		view_place_text(place.operation, wanted[i][0]);
		complete(*state, &place);
		assert_string_equal(place.key, wanted[i][1]);
	}
}

/* What the timeline knows of the work of a stage. */
static struct view_place work_of(int step, const char *phase)
{
	struct view_place place;

	view_place_clear(&place);
	view_place_text(place.clock, "device");
	view_place_text(place.mode, "train");
	view_place_text(place.phase, phase);
	place.stage = place.ipu = 1;
	place.step = step;
	place.weight_update = step / UPDATE_STEPS;
	place.execution = place.weight_update / EXECUTION_OF;
	place.time_ns = 77;
	return place;
}

static void test_the_work_of_a_stage_leads_to_all_that_the_stage_has(void **state)
{
	struct view_place place = work_of(204, "B"), there;

	complete(*state, &place);
	assert_string_equal(offer(VIEW_OPERATIONS, &place), "operations of stage 1 in phase B");
	assert_string_equal(offer(VIEW_TENSORS, &place), "tensors of stage 1 at step 204");
	assert_string_equal(offer(VIEW_PROGRAMS, &place), "the program #1");
	assert_string_equal(offer(VIEW_LIVENESS, &place), "what is live at program step 6");
	there = go(*state, VIEW_OPERATIONS, &place);
	assert_int_equal(there.stage, 1);
	assert_string_equal(there.phase, "B");
	assert_int_equal(go(*state, VIEW_PROGRAMS, &place).program_id, 1);
	assert_true(strstr(go(*state, VIEW_TENSORS, &place).key, "_grad"));
	place = work_of(204, "F");
	complete(*state, &place);
	assert_string_equal(go(*state, VIEW_TENSORS, &place).key, "Dense_B");
}

static void test_the_work_of_a_step_leads_to_the_rules_broken_in_it(void **state)
{
	const int last = UPDATES * UPDATE_STEPS - 3;

	for (int step = 0; step <= last; step += step < 9 ? 1 : 597) {
		struct view_place place = work_of(step, "F");

		complete(*state, &place);
		if (step % 3) {
			assert_string_equal(offer(VIEW_HEALTH, &place), "");
			continue;
		}
		assert_non_null(strstr(offer(VIEW_HEALTH, &place), "rules broken at step"));
		assert_int_equal(place.hit_ns, 1000 * (int64_t)step + 500);
		assert_int_equal(go(*state, VIEW_HEALTH, &place).step, step);
	}
}

static void test_rules_broken_in_a_layer_are_offered_where_there_are_any(void **state)
{
	static const struct {
		const char *layer, *offer;
	} layers[] = {{"Dense_B", "rules broken in Dense_B"}, {"Dense_A", ""}};

	for (size_t i = 0; i < ARRAY_LEN(layers); i++) {
		struct view_place place;

		view_place_clear(&place);
		view_place_text(place.layer, layers[i].layer);
		complete(*state, &place);
		assert_string_equal(offer(VIEW_HEALTH, &place), layers[i].offer);
	}
}

static void test_a_rule_on_the_loss_leads_to_its_curve_and_to_no_tensor(void **state)
{
	struct view_place place, there;

	view_place_clear(&place);
	view_place_text(place.rule, "loss_not_decreasing");
	view_place_text(place.key, "loss");
	view_place_text(place.mode, "train");
	place.epoch = 1;
	complete(*state, &place);
	assert_string_equal(offer(VIEW_METRICS, &place), "the curve of loss, epoch 1");
	assert_string_equal(offer(VIEW_TENSORS, &place), "");
	there = go(*state, VIEW_METRICS, &place);
	assert_string_equal(there.metric, "loss");
	assert_int_equal(there.epoch, 1);
}

static void test_the_statement_of_a_line_ends_at_its_semicolon(void **state)
{
	static const char text[] = "SELECT 1;\nSELECT ';',\n       2;\nSELECT 3";
	static const char *const wanted[] = {"SELECT 1", "SELECT ';',\n       2",
					     "SELECT ';',\n       2", "SELECT 3", "SELECT 3"};
	char out[VIEW_PLACE_SQL];

	(void)state;
	for (int line = 0; line < (int)ARRAY_LEN(wanted); line++) {
		view__statement_at(text, line, out);
		assert_string_equal(out, wanted[line]);
	}
	view__statement_at("", 0, out);
	assert_string_equal(out, "");
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, view_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_a_tensor_leads_to_the_operation_that_makes_it),
		CASE(test_an_operation_leads_to_the_tensor_it_makes),
		CASE(test_the_work_of_a_stage_leads_to_all_that_the_stage_has),
		CASE(test_the_work_of_a_step_leads_to_the_rules_broken_in_it),
		CASE(test_rules_broken_in_a_layer_are_offered_where_there_are_any),
		CASE(test_a_rule_on_the_loss_leads_to_its_curve_and_to_no_tensor),
		cmocka_unit_test(test_the_statement_of_a_line_ends_at_its_semicolon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
