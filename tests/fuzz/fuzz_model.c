/*
 * Keras models, read with and without the data's shape, and put into an order of stages.
 */
#include "common/mem.h"
#include "fuzz_target.h"
#include "model/model.h"

static void order(struct model *model)
{
	int *stage = mem_calloc((size_t)model->layer_count, sizeof(*stage));

	for (int i = 0; stage && i < model->layer_count; i++)
		stage[i] = model->layers[i].row % 3;
	if (stage)
		model_order(model, stage, NULL);
	mem_free(stage);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct model_shape image = {.ndim = 3, .dim = {28, 28, 1}};
	const struct model_shape *shapes[] = {&image, NULL};
	cJSON *json;

	if (json_parse(&json, (const char *)data, size, "fuzz", NULL) != ST_OK)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		struct json_at root = json_root("fuzz", json);
		struct model *model;
		struct err err;

		if (model_new(&model, &root, shapes[i], &err) == ST_OK)
			order(model);
		model_free(model);
	}
	cJSON_Delete(json);
	return 0;
}
