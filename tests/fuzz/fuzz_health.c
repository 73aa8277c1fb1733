/*
 * health.rules of a run file.
 */
#include <cjson/cJSON.h>

#include "common/json.h"
#include "fuzz_target.h"
#include "outfeed/outfeed_health.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outfeed_health_rules rules;
	char text[OUTFEED_HEALTH_TEXT];
	struct json_at root;
	struct err err;
	cJSON *json;

	if (json_parse(&json, (const char *)data, size, "fuzz", &err) != ST_OK)
		return 0;
	root = json_root("fuzz", json);
	outfeed_health_check(&root, &err);
	outfeed_health_defaults(&rules);
	if (outfeed_health_read(&rules, &root, &err) == ST_OK)
		for (int i = 0; i < OUTFEED_HEALTH_RULES; i++)
			outfeed_health_parameters(text, &rules, (enum outfeed_health_id)i);
	cJSON_Delete(json);
	return 0;
}
