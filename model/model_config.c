/*
 * Reading Keras's JSON: options and the values they may have, one table row per rule.
 *
 * Threading: any. No state.
 */
#include "model/model_config.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "model/model_internal.h"

#define CONFIG_KEYS 64

__attribute__((format(printf, 4, 0))) static enum status
config_fail(const struct json_at *at, struct err *err, enum status status, const char *format,
	    va_list args)
{
	char text[ERR_TEXT_SIZE];

	if (vsnprintf(text, sizeof(text), format, args) < 0)
		text[0] = '\0';
	json_fail(at, err, "%s", text);
	if (err)
		err->status = status;
	return status;
}

enum status model_config_unsupported(const struct json_at *at, struct err *err, const char *format,
				     ...)
{
	enum status status;
	va_list args;

	va_start(args, format);
	status = config_fail(at, err, ST_UNSUPPORTED, format, args);
	va_end(args);
	return status;
}

enum status model_config_limit(const struct json_at *at, struct err *err, const char *format, ...)
{
	enum status status;
	va_list args;

	va_start(args, format);
	status = config_fail(at, err, ST_LIMIT, format, args);
	va_end(args);
	return status;
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

static bool config_float32(const cJSON *node)
{
	node = config_dtype_name(node);
	return cJSON_IsNull(node) || config_is_text(node, "float32");
}

static bool config_dtype(const cJSON *node)
{
	node = config_dtype_name(node);
	return config_float32(node) || config_is_text(node, "mixed_float16") ||
	       config_is_text(node, "mixed_bfloat16");
}

/* Inputs of any type are converted to float32, which is exact for integers up to 2^24. */
static bool config_input_dtype(const cJSON *node)
{
	static const char *const types[] = {"float16", "float64", "bool",   "uint8",
					    "uint16",  "uint32",  "uint64", "int8",
					    "int16",   "int32",   "int64"};

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (config_is_text(node, types[i]))
			return true;
	return config_dtype(node);
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
	[MODEL_DTYPE] = {config_dtype, "\"float32\", \"mixed_float16\" or \"mixed_bfloat16\""},
	[MODEL_INPUT_DTYPE] = {config_input_dtype, "\"float32\" or another type of numbers"},
	[MODEL_CHANNELS_LAST] = {config_channels_last, "\"channels_last\""},
};
_Static_assert(ARRAY_LEN(config_rules) == MODEL_BOOL, "config rules out of step");

/* ---- checking -------------------------------------------------------------------------------- */

static const struct model_option *config_find(const struct model_option *options, size_t count,
					      const char *key)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(options[i].key, key))
			return &options[i];
	return NULL;
}

enum status model_config_check(const struct json_at *at, const struct model_option *options,
			       size_t count, const struct model_option *more, size_t more_count,
			       struct err *err)
{
	struct json_at here = {0};

	if (err_stuck(err) || json_object(at, err) != ST_OK)
		return err->status;
	while (json_next(at, &here)) {
		const struct model_option *option = config_find(options, count, here.key);

		if (!option)
			option = config_find(more, more_count, here.key);
		if (!option) {
			const char *known[CONFIG_KEYS];

			assert(count + more_count <= CONFIG_KEYS);
			for (size_t i = 0; i < count; i++)
				known[i] = options[i].key;
			for (size_t i = 0; i < more_count; i++)
				known[count + i] = more[i].key;
			return json_unknown(at, "option", here.key, known, count + more_count, err);
		}
		if (option->rule < MODEL_BOOL && !config_rules[option->rule].passes(here.node))
			return model_config_unsupported(&here, err,
							"not supported: it must be %s here",
							config_rules[option->rule].only);
	}
	return ST_OK;
}

double model_option_number(const struct model_option *option, const struct json_at *here,
			   struct err *err)
{
	double value = option->fallback;

	if (!here || json_real(here, &value, err) != ST_OK || !option->must)
		return value;
	if (!(value <= 3e38))
		json_fail(here, err, "must be at most 3e38, not %g", value);
	else if (value < option->least || value > option->most)
		json_fail(here, err, "%s, not %g", option->must, value);
	return value;
}

/* Store the value at @here in @field; NULL: the fallback. */
static void config_store(const struct model_option *option, const struct json_at *here, void *field,
			 struct err *err)
{
	const char *text = option->text;
	bool yes = option->fallback > 0.0;
	size_t choice, count = 0;
	int64_t whole;

	switch (option->rule) {
	case MODEL_BOOL:
		if (here)
			json_bool(here, &yes, err);
		*(bool *)field = yes;
		break;
	case MODEL_INT:
		whole = (int64_t)option->fallback;
		if (here)
			json_int(here, (int64_t)option->least,
				 option->most < 0x1p63 ? (int64_t)option->most : INT64_MAX, &whole,
				 err);
		*(int64_t *)field = whole;
		break;
	case MODEL_REAL:
		*(double *)field = model_option_number(option, here, err);
		break;
	case MODEL_FLOAT:
		*(float *)field = (float)model_option_number(option, here, err);
		break;
	case MODEL_TEXT:
		if (here)
			json_text(here, &text, err);
		*(const char **)field = text;
		break;
	case MODEL_CHOICE:
		choice = (size_t)option->fallback;
		while (option->choices[count])
			count++;
		if (here)
			json_choice(here, option->key, option->choices, count, &choice, err);
		*(int *)field = (int)choice;
		break;
	default:
		break;
	}
}

enum status model_config_read(const struct json_at *config, const struct model_options *options,
			      void *into, void *second, struct err *err)
{
	for (size_t i = 0; i < options->count && !err_stuck(err); i++) {
		const struct model_option *option = &options->rows[i];
		struct json_at here;
		bool given;

		/* Others are read by the table's owner: they have no field. */
		if (option->rule < MODEL_BOOL && !option->required)
			continue;
		given = config && model_option_given(config, option->key, &here, err);
		given = given && (option->strict || !json_is_null(&here));
		if (option->required && !given)
			json_fail(config, err, "\"%s\" is missing", option->key);
		else if (given || option->text || option->fallback < 0.0 ||
			 !(option->fallback <= 0.0))
			config_store(option, given ? &here : NULL,
				     (char *)(option->second ? second : into) + option->offset,
				     err);
	}
	return err->status;
}

enum status model_config_class(const struct json_at *at, const char **class_name,
			       struct json_at *here, struct err *err)
{
	static const struct model_option options[] = {
		{"class_name", .rule = MODEL_ANY},   {"config", .rule = MODEL_ANY},
		{"module", .rule = MODEL_ANY},       {"registered_name", .rule = MODEL_ANY},
		{"build_config", .rule = MODEL_ANY}, {"shared_object_id", .rule = MODEL_ANY},
	};

	model_config_check(at, options, ARRAY_LEN(options), NULL, 0, err);
	if (model_option_need(at, "class_name", here, err))
		json_text(here, class_name, err);
	return err->status;
}

enum status model_config_object(const struct json_at *at, const char **class_name,
				struct json_at *config, bool *config_here, struct err *err)
{
	struct json_at here;

	*config_here = false;
	*config = *at;
	if (err_stuck(err))
		return err->status;
	if (cJSON_IsString(at->node)) {
		*class_name = at->node->valuestring;
		return ST_OK;
	}
	if (!cJSON_IsObject(at->node))
		return json_fail(at, err,
				 "must be a name or an object {\"class_name\", \"config\"}");

	model_config_class(at, class_name, &here, err);
	if (model_option_at(at, "config", &here, err)) {
		*config = here;
		*config_here = true;
		json_object(config, err);
	}
	return err->status;
}

/* ---- one option ------------------------------------------------------------------------------ */

bool model_option_given(const struct json_at *config, const char *key, struct json_at *here,
			struct err *err)
{
	return !err_stuck(err) && json_child(config, key, here);
}

bool model_option_at(const struct json_at *config, const char *key, struct json_at *here,
		     struct err *err)
{
	return model_option_given(config, key, here, err) && !json_is_null(here);
}

bool model_option_need(const struct json_at *config, const char *key, struct json_at *here,
		       struct err *err)
{
	if (!err_stuck(err) && !json_child(config, key, here))
		json_fail(config, err, "\"%s\" is missing", key);
	return !err_stuck(err);
}

void model_option_bool(const struct json_at *config, const char *key, bool *out, struct err *err)
{
	struct json_at here;

	if (model_option_at(config, key, &here, err))
		json_bool(&here, out, err);
}

void model_option_text(const struct json_at *config, const char *key, const char **out,
		       struct err *err)
{
	struct json_at here;

	if (model_option_at(config, key, &here, err))
		json_text(&here, out, err);
}

void model_option_choice(const struct json_at *config, const char *key, const char *const *known,
			 size_t count, size_t *out, struct err *err)
{
	struct json_at here;

	if (model_option_given(config, key, &here, err))
		json_choice(&here, key, known, count, out, err);
}

/* ---- activations ----------------------------------------------------------------------------- */

/* Keras's names; several names may denote one function. */
static const struct {
	const char *name;
	enum model_activation activation;
} activation_names[] = {
	{"elu", MODEL_ELU},
	{"exponential", MODEL_EXPONENTIAL},
	{"gelu", MODEL_GELU},
	{"hard_sigmoid", MODEL_HARD_SIGMOID},
	{"leaky_relu", MODEL_LEAKY_RELU},
	{"linear", MODEL_LINEAR},
	{"log_softmax", MODEL_LOG_SOFTMAX},
	{"mish", MODEL_MISH},
	{"relu", MODEL_RELU},
	{"relu6", MODEL_RELU6},
	{"selu", MODEL_SELU},
	{"sigmoid", MODEL_SIGMOID},
	{"silu", MODEL_SWISH},
	{"softmax", MODEL_SOFTMAX},
	{"softplus", MODEL_SOFTPLUS},
	{"softsign", MODEL_SOFTSIGN},
	{"swish", MODEL_SWISH},
	{"tanh", MODEL_TANH},
};

/* Set *@name to the cursor of "relu" in {"class_name": "function", "config": "relu", ...}. */
static void activation_function(const struct json_at *at, struct json_at *name, struct err *err)
{
	const char *class_name;
	struct json_at here;

	if (model_config_class(at, &class_name, &here, err) != ST_OK)
		return;
	if (strcmp(class_name, "function") != 0)
		model_config_unsupported(&here, err,
					 "\"%s\" is not supported as an activation: give a "
					 "function's name, or the layer after this one",
					 class_name);
	else if (!json_child(at, "config", name))
		json_fail(at, err, "\"config\" (the function's name) is missing");
}

void model__read_activation(const struct json_at *config, const char *key,
			    enum model_activation *out, struct err *err)
{
	const char *known[ARRAY_LEN(activation_names)], *text;
	struct json_at here, name;

	if (!model_option_given(config, key, &here, err))
		return;
	*out = MODEL_LINEAR;
	if (json_is_null(&here))
		return;
	name = here;
	if (cJSON_IsObject(here.node))
		activation_function(&here, &name, err);
	if (err_stuck(err) || json_text(&name, &text, err) != ST_OK)
		return;
	for (size_t i = 0; i < ARRAY_LEN(activation_names); i++) {
		known[i] = activation_names[i].name;
		if (!strcmp(known[i], text)) {
			*out = activation_names[i].activation;
			return;
		}
	}
	json_unknown(&name, "activation", text, known, ARRAY_LEN(known), err);
}

/* ---- policies -------------------------------------------------------------------------------- */

enum model_policy model__read_policy(const struct json_at *config)
{
	const cJSON *node = cJSON_GetObjectItemCaseSensitive(config->node, "dtype");
	const char *name = cJSON_GetStringValue(config_dtype_name(node));

	if (!name)
		return MODEL_POLICY_OPEN;
	if (!strcmp(name, "mixed_float16"))
		return MODEL_POLICY_MIXED;
	if (!strcmp(name, "mixed_bfloat16"))
		return MODEL_POLICY_MIXED_BFLOAT16;
	return cJSON_IsObject(node) ? MODEL_POLICY_FLOAT32 : MODEL_POLICY_TEXT;
}
