/*
 * The table of health rules, and reading changes of it.
 */
#include "support/health.h"

#include <stdio.h>
#include <string.h>

#define H(rule) OUTFEED_HEALTH_##rule

static void test_every_rule_has_a_name_a_reason_and_a_default(void **state)
{
	struct outfeed_health_rules rules;

	(void)state;
	outfeed_health_defaults(&rules);
	for (int i = 0; i < OUTFEED_HEALTH_RULES; i++) {
		const struct outfeed_health_about *about =
			outfeed_health_describe((enum outfeed_health_id)i);
		enum outfeed_health_id id;

		assert_true(outfeed_health_find(&id, about->name));
		assert_int_equal(id, i);
		assert_true(strlen(about->why) > 20);
		assert_true(rules.rule[i].enabled);
		assert_true(rules.rule[i].patience >= 1);
		assert_memory_equal(&rules.rule[i], &about->fallback, sizeof(rules.rule[i]));
	}
	assert_false(outfeed_health_find(&(enum outfeed_health_id){0}, "vanish"));
}

static void test_what_is_named_changes_and_the_rest_stays(void **state)
{
	struct outfeed_health_rules rules, defaults;

	(void)state;
	outfeed_health_defaults(&rules);
	outfeed_health_defaults(&defaults);
	assert_int_equal(health_read(&rules,
				     "{'vanishing': {'threshold': 1e-9, 'patience': 7},"
				     " 'overfit': false, 'exploding': {'enabled': false},"
				     " 'poor_initialization': {'steps': 20, 'range': 0.5},"
				     " 'all_zero': true}",
				     NULL),
			 ST_OK);
	assert_true(rules.rule[H(vanishing)].threshold == 1e-9);
	assert_int_equal(rules.rule[H(vanishing)].patience, 7);
	assert_true(rules.rule[H(vanishing)].enabled);
	assert_false(rules.rule[H(overfit)].enabled);
	assert_true(rules.rule[H(overfit)].threshold == 0.1);
	assert_false(rules.rule[H(exploding)].enabled);
	assert_true(rules.rule[H(poor_initialization)].parameter[0] == 0.5);
	assert_true(rules.rule[H(poor_initialization)].parameter[1] == 20);
	assert_true(rules.rule[H(poor_initialization)].threshold == 10);
	assert_memory_equal(&rules.rule[H(dead_relu)], &defaults.rule[H(dead_relu)],
			    sizeof(rules.rule[0]));
	assert_int_equal(health_read(&rules, "{'overfit': true}", NULL), ST_OK);
	assert_true(rules.rule[H(overfit)].enabled);
}

static void test_parameters_as_text_are_read_back_the_same(void **state)
{
	struct outfeed_health_rules rules, back;
	char text[OUTFEED_HEALTH_TEXT], whole[2 * OUTFEED_HEALTH_TEXT];

	(void)state;
	outfeed_health_defaults(&rules);
	outfeed_health_parameters(text, &rules, H(loss_not_decreasing));
	assert_string_equal(text, "{\"steps\": 10, \"floor\": 1e-07}");
	outfeed_health_parameters(text, &rules, H(overfit));
	assert_string_equal(text, "{}");
	assert_int_equal(health_read(&rules,
				     "{'class_imbalance': {'misprediction': 0.123456789012345678,"
				     " 'samples': 9007199254740992},"
				     " 'update_ratio': {'small': 2.2250738585072014e-308}}",
				     NULL),
			 ST_OK);
	outfeed_health_defaults(&back);
	for (int i = 0; i < OUTFEED_HEALTH_RULES; i++) {
		outfeed_health_parameters(text, &rules, (enum outfeed_health_id)i);
		snprintf(whole, sizeof(whole), "{\"%s\": %s}",
			 outfeed_health_describe((enum outfeed_health_id)i)->name, text);
		assert_int_equal(health_read(&back, whole, NULL), ST_OK);
		assert_memory_equal(back.rule[i].parameter, rules.rule[i].parameter,
				    sizeof(back.rule[i].parameter));
	}
}

static void test_what_cannot_be_is_refused_where_it_is(void **state)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{"[]", "must be an object"},
		{"{'vanish': true}", "unknown health rule \"vanish\""},
		{"{'vanishin': {}}", "did you mean \"vanishing\"?"},
		{"{'dead_relus': false}", "did you mean \"dead_relu\"?"},
		{"{'vanishing': {'treshold': 1}}",
		 "vanishing: unknown key \"treshold\" (did you mean \"threshold\"?)"},
		{"{'poor_initialization': {'step': 3}}", "did you mean \"steps\"?"},
		{"{'vanishing': {'steps': 3}}", "vanishing: unknown key \"steps\""},
		{"{'vanishing': {'threshold': -1}}", "vanishing.threshold: must not be negative"},
		{"{'vanishing': {'threshold': 1e999}}", "vanishing.threshold: "},
		{"{'vanishing': {'threshold': '1e-7'}}", "vanishing.threshold: must be a number"},
		{"{'vanishing': {'threshold': null}}", "vanishing.threshold: must be a number"},
		{"{'vanishing': {'patience': 0}}", "vanishing.patience: must be"},
		{"{'vanishing': {'patience': 1.5}}", "vanishing.patience: must be a whole number"},
		{"{'vanishing': {'enabled': 1}}", "vanishing.enabled: must be true or false"},
		{"{'vanishing': 3}", "vanishing: must be true, false, or an object"},
		{"{'vanishing': 'off'}", "vanishing: must be true, false, or an object"},
		{"{'loss_not_decreasing': {'steps': 1}}", "loss_not_decreasing.steps: must be"},
		{"{'loss_not_decreasing': {'steps': 10001}}", "loss_not_decreasing.steps: must be"},
		{"{'loss_not_decreasing': {'floor': -1}}", "loss_not_decreasing.floor: must not"},
		{"{'poor_initialization': {'patience': 10}}", "patience (10) must be below steps"},
		{"{'poor_initialization': {'steps': 5}}", "patience (5) must be below steps (5)"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct outfeed_health_rules rules, defaults;
		struct err err = {0};

		outfeed_health_defaults(&rules);
		outfeed_health_defaults(&defaults);
		assert_int_equal(health_read(&rules, wrong[i].text, &err), ST_INVALID);
		assert_contains(err.text, "rules.json: ");
		assert_contains(err.text, wrong[i].says);
		assert_memory_equal(&rules, &defaults, sizeof(rules)); /* nothing half */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_rule_has_a_name_a_reason_and_a_default),
		cmocka_unit_test(test_what_is_named_changes_and_the_rest_stays),
		cmocka_unit_test(test_parameters_as_text_are_read_back_the_same),
		cmocka_unit_test(test_what_cannot_be_is_refused_where_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
