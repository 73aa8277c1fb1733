/*
 * Networks from texts. See the header.
 */
#include "support/network.h"

#include <string.h>

#include "common/mem.h"
#include "model/applications/application.h"
#include "trainer/models/model_weights.h"

/* Each with what is particular: long chains, residual blocks, joins, inverted residuals with
 * ReLU6, factors by channel. */
const char *const networks[NETWORKS] = {
	"{\"application\": \"MobileNetV2\", \"config\": {\"alpha\": 0.35, "
	"\"input_shape\": [64, 64, 3], \"classes\": 10}}",
	"{\"application\": \"ResNet50\", \"config\": {\"include_top\": false, \"pooling\": "
	"\"avg\", "
	"\"input_shape\": [32, 32, 3]}}",
	"{\"application\": \"DenseNet121\", \"config\": {\"include_top\": false, \"pooling\": "
	"\"avg\", \"input_shape\": [32, 32, 3]}}",
	"{\"application\": \"EfficientNetB0\", \"config\": {\"input_shape\": [32, 32, 3], "
	"\"classes\": 10}}",
	"{\"application\": \"VGG16\", \"config\": {\"include_top\": false, \"pooling\": \"avg\", "
	"\"input_shape\": [32, 32, 3]}}",
};

float *network_floats(size_t count)
{
	float *values = mem_aligned(count, sizeof(float));

	assert_non_null(values);
	return values;
}

void network_open(struct network *net, const char *text)
{
	struct json_at at;
	struct err err;
	cJSON *wanted;

	if (json_parse(&wanted, text, strlen(text), "test", &err) != ST_OK)
		fail_msg("%s", err.text);
	at = json_root("test", wanted);
	if (application_build(&net->json, &at, NULL, 0, &err) != ST_OK)
		fail_msg("%s", err.text);
	cJSON_Delete(wanted);
	at = json_root("model", net->json);
	if (model_new(&net->model, &at, NULL, &err) != ST_OK)
		fail_msg("%s", err.text);

	net->initial = network_floats(net->model->weights);
	model_init_weights(net->model, net->initial, 1);
	net->input_count = (size_t)model_shape_count(&net->model->input) * NETWORK_BATCH;
	net->output_count =
		(size_t)model_shape_count(&net->model->layers[net->model->layer_count - 1].output) *
		NETWORK_BATCH;
	net->input = network_floats(net->input_count);
	net->slopes = network_floats(net->output_count);
	math_fill(net->input, net->input_count, 3, -1.0f, 1.0f);
	math_fill(net->slopes, net->output_count, 4, -1.0f, 1.0f);
}

void network_close(struct network *net)
{
	model_free(net->model);
	cJSON_Delete(net->json);
	mem_free(net->initial);
	mem_free(net->input);
	mem_free(net->slopes);
}
