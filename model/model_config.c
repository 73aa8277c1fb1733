/*
 * Reading what Keras writes: options and what they may say, one table row per rule.
 *
 * Threading: none; nothing is kept.
 */
#include "model/model_config.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"

#define CONFIG_KEYS 64

enum status model_config_unsupported(const struct json_at *at, struct err *err, const char *format,
				     ...)
{
	char text[ERR_TEXT_SIZE];
	va_list args;

	va_start(args, format);
	if (vsnprintf(text, sizeof(text), format, args) < 0)
		text[0] = '\0';
	va_end(args);

	json_fail(at, err, "%s", text);
	if (err)
		err->status = ST_UNSUPPORTED;
	return ST_UNSUPPORTED;
}

/* ---- the rules ------------------------------------------------------------------------------- */

static bool config_any(const cJSON *node)
{
	(void)node;
	return true;
}

static bool config_null(const cJSON *node)
{
	return cJSON_IsNull(node);
}

static bool config_false(const cJSON *node)
{
	return cJSON_IsFalse(node) || cJSON_IsNull(node);
}

static bool config_true(const cJSON *node)
{
	return cJSON_IsTrue(node) || cJSON_IsNull(node);
}

static bool config_zero(const cJSON *node)
{
	return cJSON_IsNull(node) ||
	       (cJSON_IsNumber(node) && !(node->valuedouble < 0.0) && !(node->valuedouble > 0.0));
}

static bool config_is_text(const cJSON *node, const char *text)
{
	return cJSON_IsString(node) && !strcmp(node->valuestring, text);
}

static const cJSON *config_dtype_name(const cJSON *node)
{
	if (!cJSON_IsObject(node))
		return node;
	return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(node, "config"),
						"name");
}

const char *model_config_dtype(const cJSON *node)
{
	return cJSON_GetStringValue(config_dtype_name(node));
}

static bool config_float32(const cJSON *node)
{
	node = config_dtype_name(node);
	return cJSON_IsNull(node) || config_is_text(node, "float32");
}

static bool config_dtype(const cJSON *node)
{
	return config_float32(node) || config_is_text(config_dtype_name(node), "mixed_float16");
}

static bool config_input_dtype(const cJSON *node)
{
	return config_float32(node) || config_is_text(node, "float16");
}

static bool config_channels_last(const cJSON *node)
{
	return cJSON_IsNull(node) || config_is_text(node, "channels_last");
}

static const struct {
	bool (*passes)(const cJSON *node);
	const char *only;
} config_rules[] = {
	[MODEL_ANY] = {config_any, ""},
	[MODEL_NULL] = {config_null, "null"},
	[MODEL_FALSE] = {config_false, "false"},
	[MODEL_TRUE] = {config_true, "true"},
	[MODEL_ZERO] = {config_zero, "0"},
	[MODEL_FLOAT32] = {config_float32, "\"float32\""},
	[MODEL_DTYPE] = {config_dtype, "\"float32\" or \"mixed_float16\""},
	[MODEL_INPUT_DTYPE] = {config_input_dtype, "\"float32\" or \"float16\""},
	[MODEL_CHANNELS_LAST] = {config_channels_last, "\"channels_last\""},
};
_Static_assert(ARRAY_LEN(config_rules) == MODEL_RULES, "config rules out of step");

/* ---- checking -------------------------------------------------------------------------------- */

static const struct model_option *config_find(const struct model_option *options, size_t count,
					      const char *key)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(options[i].key, key))
			return &options[i];
	return NULL;
}

static enum status config_unknown(const struct json_at *at, const char *key,
				  const struct model_option *options, size_t count,
				  const struct model_option *more, size_t more_count,
				  struct err *err)
{
	const char *known[CONFIG_KEYS];

	assert(count + more_count <= CONFIG_KEYS);
	for (size_t i = 0; i < count; i++)
		known[i] = options[i].key;
	for (size_t i = 0; i < more_count; i++)
		known[count + i] = more[i].key;
	return json_unknown(at, "option", key, known, count + more_count, err);
}

enum status model_config_check(const struct json_at *at, const struct model_option *options,
			       size_t count, const struct model_option *more, size_t more_count,
			       struct err *err)
{
	enum status status = json_object(at, err);

	if (status != ST_OK)
		return status;
	for (const cJSON *item = at->node->child; item; item = item->next) {
		const struct model_option *option = config_find(options, count, item->string);
		struct json_at here = {.file = at->file, .up = at, .node = item, .index = -1};

		here.key = item->string;
		if (!option)
			option = config_find(more, more_count, item->string);
		if (!option)
			return config_unknown(at, item->string, options, count, more, more_count,
					      err);
		if (!config_rules[option->rule].passes(item))
			return model_config_unsupported(&here, err,
							"not supported: it must be %s here",
							config_rules[option->rule].only);
	}
	return ST_OK;
}

enum status model_config_class(const struct json_at *at, const char **class_name,
			       struct json_at *here, struct err *err)
{
	static const struct model_option options[] = {
		{"class_name", MODEL_ANY},   {"config", MODEL_ANY},
		{"module", MODEL_ANY},       {"registered_name", MODEL_ANY},
		{"build_config", MODEL_ANY}, {"shared_object_id", MODEL_ANY},
	};
	enum status status = model_config_check(at, options, ARRAY_LEN(options), NULL, 0, err);

	if (status != ST_OK)
		return status;
	if (!json_child(at, "class_name", here))
		return json_fail(at, err, "\"class_name\" is missing");
	return json_text(here, class_name, err);
}

enum status model_config_object(const struct json_at *at, const char **class_name,
				struct json_at *config, bool *config_here, struct err *err)
{
	struct json_at here;
	enum status status;

	*config_here = false;
	*config = *at;
	if (cJSON_IsString(at->node)) {
		*class_name = at->node->valuestring;
		return ST_OK;
	}
	if (!cJSON_IsObject(at->node))
		return json_fail(at, err,
				 "must be a name or an object {\"class_name\", \"config\"}");

	status = model_config_class(at, class_name, &here, err);
	if (status != ST_OK)
		return status;
	if (json_child(at, "config", &here) && !json_is_null(&here)) {
		*config = here;
		*config_here = true;
		return json_object(config, err);
	}
	return ST_OK;
}
