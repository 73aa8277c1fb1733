/*
 * Files of models and weights: what they are, a .keras's members, HDF5 arrays by a model's names.
 */
#include <string.h>

#include "common/mem.h"
#include "fuzz_target.h"
#include "trainer/models/keras_file.h"
#include "trainer/models/keras_hdf5.h"
#include "trainer/models/model_weights.h"

static const char text[] =
	"{\"layers\": [{\"class_name\": \"Dense\", \"config\": {\"name\": \"hidden\", "
	"\"units\": 3, \"batch_input_shape\": [null, 5]}}]}";

/* The fuzzer does not see what child processes run: what they survive is read here, too. */
static void read_here(const struct model *model, struct keras_file *file, bool config)
{
	struct weights_source source;
	float value;
	char *config_text;

	if (config && file->kind == KERAS_HDF5 &&
	    keras_hdf5_config(&config_text, "fuzz", file->bytes, file->length, NULL) == ST_OK)
		mem_free(config_text);
	if (keras_hdf5_open(&source, model, "fuzz", file->hdf5, file->hdf5_length, false, NULL) !=
	    ST_OK)
		return;
	for (int i = 0; i < source.count; i++)
		source.read(source.file, i, &value, 1, NULL);
	source.close(source.file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	float weights[64];
	struct keras_file file;
	struct model *model;
	struct json_at root;
	bool config;
	struct err err;
	cJSON *json;
	char *bytes = mem_alloc(size + 1);

	if (!bytes)
		return 0;
	memcpy(bytes, data, size);
	bytes[size] = '\0';
	if (keras_file_from(&file, "fuzz", bytes, size, &err) != ST_OK)
		return 0;
	config = keras_file_config(&json, &file, &err) == ST_OK;
	if (config)
		cJSON_Delete(json);
	if (json_parse(&json, text, strlen(text), "fuzz", &err) == ST_OK) {
		root = json_root("fuzz", json);
		if (model_new(&model, &root, NULL, &err) == ST_OK && model->weights <= 64) {
			err.text[0] = '\0';
			model_weights_read(model, weights, &file, false, NULL, &err);
			if (file.hdf5 && !strstr(err.text, "libhdf5 does not read"))
				read_here(model, &file, config);
		}
		model_free(model);
		cJSON_Delete(json);
	}
	keras_file_close(&file);
	return 0;
}
