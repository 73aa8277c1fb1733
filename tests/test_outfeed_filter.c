/*
 * MaybeOutfeedQueue's rule.
 */
#include "support/support.h"

#include "outfeed/outfeed_filter.h"

static const char *const dense_128[] = {"Dense_128"}, *const dense_1[] = {"nothing", "Dense_1"};
static const char *const empty_text[] = {""}, *const lower[] = {"dense_128"};

static void test_a_filter_is_a_case_sensitive_substring(void **state)
{
	(void)state;
	assert_true(outfeed_filter_passes(dense_128, 1, "Dense_128/bias:0_grad"));
	assert_true(outfeed_filter_passes(dense_128, 1, "Dense_128/kernel:0_grad"));
	assert_false(outfeed_filter_passes(dense_128, 1, "Dense_256/bias:0_grad"));
	assert_false(outfeed_filter_passes(lower, 1, "Dense_128/bias:0_grad"));
}

static void test_any_filter_is_enough_and_a_prefix_matches_more_than_meant(void **state)
{
	(void)state;
	assert_true(outfeed_filter_passes(dense_1, 2, "Dense_128_acts"));
	assert_true(outfeed_filter_passes(dense_1, 2, "Dense_10_acts"));
	assert_false(outfeed_filter_passes(dense_1, 2, "Dense_256_acts"));
}

static void test_no_filters_pass_all_an_empty_list_none_an_empty_text_all(void **state)
{
	(void)state;
	assert_true(outfeed_filter_passes(NULL, 0, "anything"));
	assert_false(outfeed_filter_passes(dense_128, 0, "Dense_128"));
	assert_true(outfeed_filter_passes(empty_text, 1, "anything"));
	assert_true(outfeed_filter_passes(empty_text, 1, ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_filter_is_a_case_sensitive_substring),
		cmocka_unit_test(test_any_filter_is_enough_and_a_prefix_matches_more_than_meant),
		cmocka_unit_test(test_no_filters_pass_all_an_empty_list_none_an_empty_text_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
