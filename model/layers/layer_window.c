/*
 * The options of windows (pairs of sizes, "valid" or "same"), and how many places a window has.
 */
#include "model/layers/layer_window.h"

#include <string.h>

#include "common/mem.h"

enum status layer__pair(const struct json_at *at, int64_t least, int64_t most, int64_t out[2],
			struct err *err)
{
	enum status status = ST_OK;
	struct json_at item;

	if (!cJSON_IsArray(at->node)) {
		status = json_int(at, least, most, &out[0], err);
		out[1] = out[0];
		return status;
	}
	if (json_count(at) != 2)
		return json_fail(at, err, "must be a whole number or a list of two of them, not %d",
				 json_count(at));
	for (int i = 0; i < 2 && status == ST_OK; i++) {
		json_item(at, i, &item);
		status = json_int(&item, least, most, &out[i], err);
	}
	return status;
}

enum status layer__pair_option(const struct json_at *config, const char *key, int64_t least,
			       int64_t most, int64_t absent, int64_t out[LAYER_WAYS],
			       struct err *err)
{
	struct json_at here;

	out[LAYER_Y] = out[LAYER_X] = absent;
	if (json_child(config, key, &here))
		return layer__pair(&here, least, most, out, err);
	return absent ? ST_OK : json_fail(config, err, "\"%s\" is missing", key);
}

enum status layer__padding(const struct json_at *config, bool *same, struct err *err)
{
	static const char *const known[] = {"valid", "same"};
	struct json_at here;
	const char *text;
	enum status status;

	*same = false;
	if (!json_child(config, "padding", &here))
		return ST_OK;
	status = json_text(&here, &text, err);
	if (status != ST_OK)
		return status;
	*same = !strcmp(text, "same");
	return *same || !strcmp(text, "valid")
		       ? ST_OK
		       : json_unknown(&here, "padding", text, known, ARRAY_LEN(known), err);
}

int64_t layer__windows(int64_t size, int64_t reach, int64_t stride, bool same, int64_t *before)
{
	int64_t places, outside;

	*before = 0;
	if (!same)
		return size < reach ? 0 : (size - reach) / stride + 1;
	places = (size - 1) / stride + 1;
	outside = (places - 1) * stride + reach - size;
	if (outside > 0)
		*before = outside / 2;
	return places;
}
