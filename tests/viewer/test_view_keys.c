/*
 * The key table: one meaning per key, and everything it promises is said somewhere.
 */
#include <stdio.h>
#include <string.h>

#include "support/support.h"
#include "viewer/draw/view_canvas.h"
#include "viewer/view_command.h"
#include "viewer/view_keys.h"

static void test_no_key_has_two_requests(void **state)
{
	(void)state;
	for (int a = VIEW_NONE + 1; a < VIEW_REQUESTS; a++)
		for (int i = 0; i < VIEW_KEYS_EACH; i++) {
			const uint32_t key = view_request_info((enum view_request)a)->keys[i];

			if (key)
				assert_int_equal(view_request_of(key), a);
		}
	assert_int_equal(view_request_of(0), VIEW_NONE);
	assert_int_equal(view_request_of(0x1f600), VIEW_NONE);
}

static void test_every_request_has_a_key_and_a_text(void **state)
{
	(void)state;
	for (int a = VIEW_NONE + 1; a < VIEW_REQUESTS; a++) {
		const struct view_request_info *info = view_request_info((enum view_request)a);

		assert_true(info->keys[0] != 0);
		assert_true(info->screens != 0);
		assert_true(info->group[0] != '\0' && info->help[0] != '\0');
		/* Help shows it whole at 80 columns. */
		assert_true(strlen(info->help) <= 56);
	}
}

static void test_groups_are_together(void **state)
{
	(void)state;
	for (int a = VIEW_NONE + 1; a < VIEW_REQUESTS; a++)
		for (int b = a + 2; b < VIEW_REQUESTS; b++) {
			const char *group = view_request_info((enum view_request)a)->group;

			if (strcmp(group, view_request_info((enum view_request)b)->group) == 0)
				assert_string_equal(
					group,
					view_request_info((enum view_request)(b - 1))->group);
		}
}

static void test_names_of_keys(void **state)
{
	char name[VIEW_KEY_NAME_SIZE], list[VIEW_KEY_LIST_SIZE];

	(void)state;
	assert_string_equal(view_key_name('k', name), "k");
	assert_string_equal(view_key_name(VIEW_CTRL('L'), name), "Ctrl-L");
	assert_string_equal(view_key_name(VIEW_KEY_SHIFT_LEFT, name), "Shift-Left");
	assert_string_equal(view_key_name(' ', name), "Space");
	assert_string_equal(view_key_list(VIEW_HELP_REQUEST, list), "? F1");
}

static void test_the_manual_names_every_key(void **state)
{
	struct str manual = {0};
	char list[VIEW_KEY_LIST_SIZE];

	(void)state;
	view_keys_manual(&manual);
	assert_false(manual.failed);
	for (int a = VIEW_NONE + 1; a < VIEW_REQUESTS; a++) {
		assert_contains(str_peek(&manual), view_key_list((enum view_request)a, list));
		assert_contains(str_peek(&manual), view_request_info((enum view_request)a)->help);
	}
	str_free(&manual);
}

static void test_keys_of_other_terminals_are_known(void **state)
{
	(void)state;
	assert_int_equal(view_escape_key("[4~"), VIEW_KEY_END);
	assert_int_equal(view_escape_key("OH"), VIEW_KEY_HOME);
	assert_int_equal(view_escape_key("[[E"), VIEW_KEY_F5);
	assert_int_equal(view_escape_key("[200~"), VIEW_KEY_NONE);
	assert_int_equal(view_escape_key("["), VIEW_KEY_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys_of_other_terminals_are_known),
		cmocka_unit_test(test_no_key_has_two_requests),
		cmocka_unit_test(test_every_request_has_a_key_and_a_text),
		cmocka_unit_test(test_groups_are_together),
		cmocka_unit_test(test_names_of_keys),
		cmocka_unit_test(test_the_manual_names_every_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
