/*
 * outfeed.capture: what is read, which rule decides, and what is said of mistakes.
 */
#include "support/support.h"

#include <string.h>

#include "outfeed/outfeed_policy.h"

static enum status read(struct outfeed_policy *out, const char *json, struct err *err)
{
	struct json_at root;
	cJSON *node = NULL;
	enum status status;

	assert_int_equal(json_parse(&node, json, strlen(json), "run.json", err), ST_OK);
	root = json_root("run.json", node);
	status = outfeed_policy_read(out, &root, err);
	cJSON_Delete(node);
	return status;
}

static void assert_choice(const struct outfeed_policy *policy, const char *key,
			  enum outfeed_kind kind, enum outfeed_asked asked, enum outfeed_tier tier,
			  int64_t every, int64_t last, const char *why)
{
	const struct outfeed_choice choice = outfeed_policy_choose(policy, key, kind, asked);
	char text[OUTFEED_POLICY_TEXT];

	assert_int_equal(choice.tier, tier);
	assert_int_equal(choice.every, every);
	assert_int_equal(choice.last, last);
	outfeed_policy_explain(text, policy, key, kind, asked);
	assert_string_equal(text, why);
}

static void test_nothing_said_is_stats_of_queues(void **state)
{
	struct outfeed_policy policy;

	(void)state;
	assert_int_equal(outfeed_policy_read(&policy, NULL, NULL), ST_OK);
	assert_choice(&policy, "k", OUTFEED_GRADIENT, OUTFEED_SENT, OUTFEED_STATS, 1, 0,
		      "the default of what a queue sends");
	assert_int_equal(outfeed_policy_choose(&policy, "k", OUTFEED_WEIGHT, OUTFEED_WATCHED).tier,
			 OUTFEED_OFF);
	policy.watched = 1u << OUTFEED_WEIGHT;
	assert_choice(&policy, "k", OUTFEED_WEIGHT, OUTFEED_WATCHED, OUTFEED_HEALTH, 1, 0,
		      "the health of all such tensors is watched");
	assert_int_equal(
		outfeed_policy_choose(&policy, "k", OUTFEED_GRADIENT, OUTFEED_WATCHED).tier,
		OUTFEED_OFF);
	outfeed_policy_fini(&policy);
}

static void test_a_tier_alone_is_that_of_queues(void **state)
{
	struct outfeed_policy policy;

	(void)state;
	assert_int_equal(read(&policy, "\"last 20\"", NULL), ST_OK);
	assert_choice(&policy, "k", OUTFEED_GRADIENT, OUTFEED_SENT, OUTFEED_LAST_N, 1, 20,
		      "outfeed.capture");
	assert_int_equal(
		outfeed_policy_choose(&policy, "k", OUTFEED_GRADIENT, OUTFEED_WATCHED).tier,
		OUTFEED_OFF);
	outfeed_policy_fini(&policy);
}

static void test_from_one_to_a_million_values_are_kept(void **state)
{
	static const char *const good[] = {"\"last 1\"", "\"last 1000000\""};
	static const int64_t last[] = {1, 1000000};
	struct outfeed_policy policy;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(read(&policy, good[i], NULL), ST_OK);
		assert_choice(&policy, "k", OUTFEED_GRADIENT, OUTFEED_SENT, OUTFEED_LAST_N, 1,
			      last[i], "outfeed.capture");
		outfeed_policy_fini(&policy);
	}
}

static void test_the_first_rule_that_fits_decides(void **state)
{
	static const char json[] = "[{\"tensors\": \"Dense_1*\", \"kind\": \"gradient\", \"tier\": "
				   "\"full\", \"every\": 10},"
				   " {\"tensors\": [\"conv?\", \"dense\"], \"tier\": \"last 20\"},"
				   " {\"kind\": [\"weight\", \"optimizer_state\"], \"tier\": "
				   "\"stats\", \"every\": 100},"
				   " {\"tensors\": \"conv1\", \"tier\": \"off\"}]";
	struct outfeed_policy policy;

	(void)state;
	assert_int_equal(read(&policy, json, NULL), ST_OK);
	assert_choice(&policy, "Dense_128/bias:0", OUTFEED_GRADIENT, OUTFEED_SENT, OUTFEED_FULL, 10,
		      0, "outfeed.capture[0]");
	assert_choice(&policy, "Dense_128/bias:0", OUTFEED_ACTIVATION, OUTFEED_SENT, OUTFEED_STATS,
		      1, 0, "the default of what a queue sends");
	assert_choice(&policy, "conv1", OUTFEED_ACTIVATION, OUTFEED_WATCHED, OUTFEED_LAST_N, 1, 20,
		      "outfeed.capture[1]");
	assert_choice(&policy, "conv12", OUTFEED_OPTIMIZER_STATE, OUTFEED_WATCHED, OUTFEED_STATS,
		      100, 0, "outfeed.capture[2]");
	assert_int_equal(
		outfeed_policy_choose(&policy, "x", OUTFEED_GRADIENT, OUTFEED_WATCHED).tier,
		OUTFEED_OFF);
	outfeed_policy_fini(&policy);
}

static void test_mistakes_name_place_and_nearest_word(void **state)
{
	static const struct {
		const char *json, *said;
	} cases[] = {
		{"\"stat\"", "unknown tier \"stat\" (did you mean \"stats\"?)"},
		{"\"last\"", "\"last\": say how many values are kept, from 1 to 1000000"},
		{"\"last 0\"", "\"last 0\": say how many"},
		{"\"last 1000001\"", "\"last 1000001\": say how many"},
		{"\"last 2x\"", "\"last 2x\": say how many"},
		{"7", "must be a tier such as \"stats\", or a list of rules"},
		{"[{\"tier\": \"ful\"}]",
		 "[0].tier: unknown tier \"ful\" (did you mean \"full\"?)"},
		{"[{\"tensors\": \"a\"}]", "[0]: tier: missing"},
		{"[{\"tier\": \"full\", \"kind\": \"gradients\"}]",
		 "[0].kind: unknown kind \"gradients\" (did you mean \"gradient\"?)"},
		{"[{\"tier\": \"full\"}, {\"tier\": \"full\", \"kind\": [\"weight\", \"x\"]}]",
		 "[1].kind[1]: unknown kind \"x\""},
		{"[{\"tier\": \"full\", \"tensor\": \"a\"}]", "\"tensor\""},
		{"[{\"tier\": \"full\", \"tensors\": []}]",
		 "[0].tensors: an empty list fits no tensor"},
		{"[{\"tier\": \"full\", \"kind\": []}]", "[0].kind: an empty list fits no tensor"},
		{"[{\"tier\": \"full\", \"tensors\": [1]}]", "[0].tensors[0]: "},
		{"[{\"tier\": \"full\", \"every\": 0}]", "[0].every: "},
		{"[3]", "[0]: "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct outfeed_policy policy;
		struct err err;

		assert_int_equal(read(&policy, cases[i].json, &err), ST_INVALID);
		assert_contains(err.text, cases[i].said);
		assert_int_equal(policy.count, 0);
		assert_null(policy.rules);
	}
}

static void test_no_failed_allocation_leaves_anything(void **state)
{
	static const char json[] = "[{\"tensors\": [\"a\", \"b\"], \"tier\": \"full\"}]";
	cJSON *node = NULL;
	bool failed = true;

	(void)state;
	assert_int_equal(json_parse(&node, json, strlen(json), "run.json", NULL), ST_OK);
	for (long n = 0; failed; n++) {
		const struct json_at root = json_root("run.json", node);
		struct outfeed_policy policy;
		enum status status;

		support_fail_alloc(n);
		status = outfeed_policy_read(&policy, &root, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
		outfeed_policy_fini(&policy);
	}
	cJSON_Delete(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_said_is_stats_of_queues),
		cmocka_unit_test(test_a_tier_alone_is_that_of_queues),
		cmocka_unit_test(test_from_one_to_a_million_values_are_kept),
		cmocka_unit_test(test_the_first_rule_that_fits_decides),
		cmocka_unit_test(test_mistakes_name_place_and_nearest_word),
		cmocka_unit_test(test_no_failed_allocation_leaves_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
