/*
 * Reading what the normalising layers have in common. No state.
 */
#include "model/layers/layer_norm.h"

/* Keras counts the batch as axis 0; lists of one axis are as good as the axis. */
static enum status norm_axis(const struct json_at *config, const struct model_layer *layer,
			     struct err *err)
{
	struct json_at list, here;
	enum status status;
	int64_t axis;

	if (!json_child(config, "axis", &list))
		return ST_OK;
	here = list;
	if (cJSON_IsArray(list.node)) {
		if (json_count(&list) != 1)
			return model_config_unsupported(
				&list, err, "not supported: it must be the last axis alone here");
		json_item(&list, 0, &here);
	}
	status = json_int(&here, INT64_MIN, INT64_MAX, &axis, err);
	if (status == ST_OK && axis != -1 && axis != layer->input.ndim)
		return model_config_unsupported(
			&here, err, "not supported: it must be the last axis (-1 or %d) here",
			layer->input.ndim);
	return status;
}

static enum status norm_epsilon(const struct json_at *config, double *out, struct err *err)
{
	struct json_at here;
	enum status status;

	*out = 1e-3;
	if (!json_child(config, "epsilon", &here))
		return ST_OK;
	status = json_real(&here, out, err);
	if (status == ST_OK && !(*out >= 0.0))
		return json_fail(&here, err, "must be 0 or greater");
	return status;
}

static enum status norm_flag(const struct json_at *config, const char *key, bool *out,
			     struct err *err)
{
	struct json_at here;

	*out = true;
	return json_child(config, key, &here) ? json_bool(&here, out, err) : ST_OK;
}

enum status layer__read_norm(struct model *model, struct model_layer *layer,
			     const struct json_at *config, struct layer_norm *out, struct err *err)
{
	int64_t channels = layer_last_dim(&layer->input);
	struct layer_param param = {
		.shape = {.ndim = 1, .dim = {channels}},
		.fan_in = channels,
		.fan_out = channels,
		.no_autocast = true, /* as Keras does */
	};
	enum status status;

	if (!layer->input.ndim)
		return json_fail(config, err, "%s needs an input of at least one dimension",
				 layer->ops->class_name);
	layer->output = layer->input;
	status = norm_axis(config, layer, err);
	if (status == ST_OK)
		status = norm_epsilon(config, &out->epsilon, err);
	if (status == ST_OK)
		status = norm_flag(config, "center", &out->center, err);
	if (status == ST_OK)
		status = norm_flag(config, "scale", &out->scale, err);

	param.name = "gamma";
	param.initializer = "Ones";
	if (status == ST_OK && out->scale)
		status = layer__add_param(model, layer, config, &param, err);
	param.name = "beta";
	param.initializer = "Zeros";
	if (status == ST_OK && out->center)
		status = layer__add_param(model, layer, config, &param, err);
	return status;
}
