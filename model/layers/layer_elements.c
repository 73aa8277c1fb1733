/*
 * What layers that work element by element share: slices, and numbers per channel.
 *
 * Thread safe. Slices depend on the shape only.
 */
#include <math.h>

#include "model/layers/layer_internal.h"

/* ---- channels -------------------------------------------------------------------------------- */

enum status layer__check_last_axis(const struct model_layer *layer, const struct json_at *config,
				   struct err *err)
{
	struct json_at here, item;
	int64_t axis;
	enum status status;

	if (!json_child(config, "axis", &here) || json_is_null(&here))
		return ST_OK;
	item = here;
	if (cJSON_IsArray(here.node) && (json_count(&here) != 1 || !json_item(&here, 0, &item)))
		return model_config_unsupported(&here, err, "not supported: it must be one axis");
	status = json_int(&item, INT32_MIN, INT32_MAX, &axis, err);
	if (status == ST_OK && axis != -1 && axis != layer->input.ndim)
		return model_config_unsupported(&item, err,
						"not supported: it must be the last axis (-1 or "
						"%d) here",
						layer->input.ndim);
	return status;
}

static enum status elements_number(const struct json_at *at, float *out, struct err *err)
{
	double value;
	enum status status = json_real(at, &value, err);

	if (status == ST_OK && !isfinite((float)value))
		return json_fail(at, err, "must be a finite number");
	*out = status == ST_OK ? (float)value : 0.0f;
	return status;
}

enum status layer__channel_numbers(const struct json_at *config, const char *key, float *out,
				   int64_t channels, bool *here, struct err *err)
{
	enum status status = ST_OK;
	struct json_at at, item;
	int count;

	*here = json_child(config, key, &at) && !json_is_null(&at);
	if (!*here)
		return ST_OK;
	count = cJSON_IsArray(at.node) ? json_count(&at) : 1;
	if (count != 1 && count != channels)
		return json_fail(&at, err, "must be a number or a list of %lld, one per channel",
				 (long long)channels);
	for (int64_t i = 0; i < channels && status == ST_OK; i++) {
		if (i >= count) {
			out[i] = out[0];
			continue;
		}
		item = at;
		if (cJSON_IsArray(at.node))
			json_item(&at, (int)i, &item);
		status = elements_number(&item, &out[i], err);
	}
	return status;
}
