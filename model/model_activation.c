/*
 * Activations by Keras's names, and the softmax that ends a model. No state.
 */
#include <string.h>

#include "common/mem.h"
#include "model/layers/layer.h"
#include "model/model_config.h"
#include "model/model_internal.h"

/* Keras's names; two of one kind are one function. */
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

/* {"class_name": "function", "config": "relu", ...}: *@name becomes the cursor of "relu". */
static enum status activation_function(const struct json_at *at, struct json_at *name,
				       struct err *err)
{
	const char *class_name;
	struct json_at here;
	enum status status = model_config_class(at, &class_name, &here, err);

	if (status != ST_OK)
		return status;
	if (strcmp(class_name, "function"))
		return model_config_unsupported(
			&here, err,
			"\"%s\" is not supported as an activation: give a function's name, or the "
			"layer after this one",
			class_name);
	if (!json_child(at, "config", name))
		return json_fail(at, err, "\"config\" (the function's name) is missing");
	return ST_OK;
}

enum status model__read_activation(const struct json_at *config, enum model_activation *out,
				   struct err *err)
{
	const char *known[ARRAY_LEN(activation_names)], *text;
	struct json_at here, name;
	enum status status = ST_OK;

	*out = MODEL_LINEAR;
	if (!json_child(config, "activation", &here) || json_is_null(&here))
		return ST_OK;
	name = here;
	if (cJSON_IsObject(here.node))
		status = activation_function(&here, &name, err);
	if (status == ST_OK)
		status = json_text(&name, &text, err);
	if (status != ST_OK)
		return status;

	for (size_t i = 0; i < ARRAY_LEN(activation_names); i++) {
		known[i] = activation_names[i].name;
		if (!strcmp(known[i], text)) {
			*out = activation_names[i].activation;
			return ST_OK;
		}
	}
	return json_unknown(&name, "activation", text, known, ARRAY_LEN(known), err);
}

int model_final_activation(const struct model *model)
{
	int last = model->layer_count - 1;
	enum model_activation activation;

	while (last >= 0 && model->layers[last].ops->outfeed != MODEL_NO_OUTFEED)
		last = model->layers[last].inputs[0];
	if (last < 0)
		return -1;
	activation = model->layers[last].activation;
	return activation == MODEL_SOFTMAX || activation == MODEL_SIGMOID ? last : -1;
}
