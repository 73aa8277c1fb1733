/*
 * Words for tiers, kinds and dtypes, and back.
 */
#include "support/support.h"

#include "outfeed/outfeed_policy.h"

static void test_every_tier_is_found_by_its_text(void **state)
{
	(void)state;
	for (int i = 0; i < OUTFEED_TIERS; i++) {
		enum outfeed_tier tier = OUTFEED_TIERS;

		assert_true(outfeed_tier_of(&tier, outfeed_tier_text((enum outfeed_tier)i)));
		assert_int_equal(tier, i);
	}
	assert_string_equal(outfeed_tier_text(OUTFEED_LAST_N), "last");
}

static void test_every_kind_is_found_by_its_text(void **state)
{
	(void)state;
	for (int i = 0; i < OUTFEED_KINDS; i++) {
		enum outfeed_kind kind = OUTFEED_KINDS;

		assert_true(outfeed_kind_of(&kind, outfeed_kind_text((enum outfeed_kind)i)));
		assert_int_equal(kind, i);
	}
	assert_string_equal(outfeed_kind_text(OUTFEED_OPTIMIZER_STATE), "optimizer_state");
}

static void test_what_is_no_word_is_not_found(void **state)
{
	enum outfeed_tier tier = OUTFEED_FULL;
	enum outfeed_kind kind = OUTFEED_WEIGHT;

	(void)state;
	assert_false(outfeed_tier_of(&tier, "Stats"));
	assert_false(outfeed_tier_of(&tier, ""));
	assert_false(outfeed_tier_of(&tier, "last 20"));
	assert_false(outfeed_kind_of(&kind, "weights"));
	assert_int_equal(tier, OUTFEED_FULL);
	assert_int_equal(kind, OUTFEED_WEIGHT);
}

static void test_an_activity_has_a_name_or_is_none(void **state)
{
	static const char *const texts[] = {"relu", "tanh", "sigmoid"};
	enum outfeed_activity activity = OUTFEED_TANH;

	(void)state;
	assert_null(outfeed_activity_text(OUTFEED_NO_ACTIVITY));
	assert_false(outfeed_activity_of(&activity, "softmax"));
	assert_false(outfeed_activity_of(&activity, ""));
	assert_int_equal(activity, OUTFEED_TANH);
	for (int i = 0; i < 3; i++) {
		assert_true(outfeed_activity_of(&activity, texts[i]));
		assert_string_equal(outfeed_activity_text(activity), texts[i]);
	}
}

static void test_a_dtype_has_a_name_and_a_size(void **state)
{
	(void)state;
	assert_string_equal(dtype_name(DTYPE_FLOAT32), "float32");
	assert_string_equal(dtype_name(DTYPE_FLOAT16), "float16");
	assert_int_equal(dtype_bytes(DTYPE_FLOAT32), 4);
	assert_int_equal(dtype_bytes(DTYPE_FLOAT16), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_tier_is_found_by_its_text),
		cmocka_unit_test(test_every_kind_is_found_by_its_text),
		cmocka_unit_test(test_what_is_no_word_is_not_found),
		cmocka_unit_test(test_an_activity_has_a_name_or_is_none),
		cmocka_unit_test(test_a_dtype_has_a_name_and_a_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
