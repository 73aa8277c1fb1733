/*
 * ipu-plan as a program: what it prints, and the JSON that it prints.
 */
#ifndef TEST_SUPPORT_PLAN_H
#define TEST_SUPPORT_PLAN_H

#include <cjson/cJSON.h>

#include "support/support.h"

/* Run it with @arguments, split as a shell does; *@result is the caller's. */
void plan_run(struct support_result *result, const char *arguments);
/* The JSON that a good request prints; the caller's. */
cJSON *plan_json(const char *arguments);

/* Fail the test where @key is missing, or no number. */
const cJSON *plan_item(const cJSON *object, const char *key);
double plan_number(const cJSON *object, const char *key);

#endif /* TEST_SUPPORT_PLAN_H */
