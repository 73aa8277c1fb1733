/*
 * ipu-plan as a program. One thread.
 */
#include "support/plan.h"

void plan_run(struct support_result *result, const char *arguments)
{
	support_shell(result, "LC_ALL=C.UTF-8 '%s'/ipu-plan %s", support_bin_dir(), arguments);
}

cJSON *plan_json(const char *arguments)
{
	struct support_result result;
	cJSON *json;

	plan_run(&result, arguments);
	if (result.exit_code != 0)
		fail_msg("exit %d: %s", result.exit_code, result.err);
	assert_string_equal(result.err, "");
	json = cJSON_Parse(result.out);
	assert_non_null(json);
	support_result_free(&result);
	return json;
}

const cJSON *plan_item(const cJSON *object, const char *key)
{
	const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, key);

	if (!found)
		fail_msg("no key %s", key);
	return found;
}

double plan_number(const cJSON *object, const char *key)
{
	assert_true(cJSON_IsNumber(plan_item(object, key)));
	return plan_item(object, key)->valuedouble;
}
