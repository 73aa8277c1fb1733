/*
 * What is kept of the tensors that a run looks at: outfeed.capture and outfeed.budget.
 *
 * Threading: none. Ownership: the capture stays the JSON's.
 */
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "model/run/run_internal.h"

enum status run__fill_capture(const struct run_value *fill)
{
	const char *text = cJSON_GetStringValue(fill->at->node);
	enum status status = fill->checks->capture(fill->at, fill->err);

	if (status != ST_OK)
		return status;
	fill->run->outfeed.off = text && !strcmp(text, "off");
	run__store(fill, &fill->at->node, sizeof(fill->at->node));
	return ST_OK;
}

/* "500 MB", in units of 1024 as sizes are printed; false: it is none. */
static bool run_bytes_of(const char *text, double *out)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
	const size_t digits = strspn(text, "0123456789.");
	const char *unit = text + digits + strspn(text + digits, " ");
	char number[32];

	if (digits == 0 || digits >= sizeof(number))
		return false;
	memcpy(number, text, digits);
	number[digits] = '\0';
	if (!str_to_double(number, out))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		if (!strcmp(unit, units[i]))
			return true;
		*out *= 1024;
	}
	return false;
}

enum status run__fill_bytes(const struct run_value *fill)
{
	const struct json_at *at = fill->at;
	int64_t bytes = INT64_MAX;
	enum status status = ST_OK;
	double value = 0;

	if (!json_is_null(at)) {
		if (!cJSON_IsString(at->node))
			status = json_real(at, &value, fill->err);
		else if (!run_bytes_of(at->node->valuestring, &value))
			status = json_fail(at, fill->err,
					   "must be bytes, or a text as \"500 MB\", not \"%s\"",
					   at->node->valuestring);
		if (status == ST_OK &&
		    !(value >= (double)fill->key->least && value <= (double)fill->key->greatest))
			status = json_fail(at, fill->err, "must be from %lld to %lld bytes, not %g",
					   (long long)fill->key->least,
					   (long long)fill->key->greatest, value);
		bytes = status == ST_OK ? (int64_t)value : 0;
	}
	if (status == ST_OK)
		run__store(fill, &bytes, sizeof(bytes));
	return status;
}
