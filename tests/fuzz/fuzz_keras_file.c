/*
 * Files of models and weights: what they are, a .keras's members, HDF5 arrays by a model's names.
 */
#include <string.h>

#include "common/mem.h"
#include "fuzz_target.h"
#include "trainer/models/keras_file.h"
#include "trainer/models/model_weights.h"

static const char text[] =
	"{\"layers\": [{\"class_name\": \"Dense\", \"config\": {\"name\": \"hidden\", "
	"\"units\": 3, \"batch_input_shape\": [null, 5]}}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	float weights[64];
	struct keras_file file;
	struct model *model;
	struct json_at root;
	struct err err;
	cJSON *json;
	char *bytes = mem_alloc(size + 1);

	if (!bytes)
		return 0;
	memcpy(bytes, data, size);
	bytes[size] = '\0';
	if (keras_file_from(&file, "fuzz", bytes, size, &err) != ST_OK)
		return 0;
	if (keras_file_config(&json, &file, &err) == ST_OK)
		cJSON_Delete(json);
	if (json_parse(&json, text, strlen(text), "fuzz", &err) == ST_OK) {
		root = json_root("fuzz", json);
		if (model_new(&model, &root, NULL, &err) == ST_OK && model->weights <= 64)
			model_weights_read(model, weights, &file, false, NULL, &err);
		model_free(model);
		cJSON_Delete(json);
	}
	keras_file_close(&file);
	return 0;
}
