/*
 * Files of models and weights: what they are, a .keras's members, HDF5 arrays by a model's names.
 */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "fuzz_target.h"
#include "trainer/models/hdf5_file.h"
#include "trainer/models/keras_file.h"
#include "trainer/models/keras_hdf5.h"
#include "trainer/models/model_weights.h"

#define DEPTH   8   /* of groups */
#define MEMBERS 256 /* of a group */

static const char text[] =
	"{\"layers\": [{\"class_name\": \"Dense\", \"config\": {\"name\": \"hidden\", "
	"\"units\": 3, \"batch_input_shape\": [null, 5]}}]}";

/* ---- what the fuzzer sees -------------------------------------------------------------------- */

static void read_array(const struct hdf5 *file, const char *path)
{
	struct hdf5_shape shape;
	size_t count = 1;
	float *values;

	if (hdf5_shape(file, path, &shape, NULL) != ST_OK)
		return;
	for (int i = 0; i < shape.ndim; i++)
		count *= (size_t)shape.dim[i];
	values = mem_alloc(count * sizeof(*values) + 1);
	if (values)
		hdf5_read(file, path, values, count, NULL);
	mem_free(values);
}

static void read_group(const struct hdf5 *file, const char *path, int depth)
{
	static const char *const lists[] = {"layer_names", "weight_names"};
	struct hdf5_texts texts;
	char below[512];

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		if (hdf5_texts(file, path, lists[i], &texts, NULL) == ST_OK)
			mem_free(texts.items);
	if (depth > DEPTH || hdf5_names(file, path, &texts, NULL) != ST_OK)
		return;
	for (int i = 0; i < texts.count && i < MEMBERS; i++) {
		if (snprintf(below, sizeof(below), "%s%s%s", path, *path ? "/" : "",
			     texts.items[i]) >= (int)sizeof(below))
			continue;
		if (hdf5_has_group(file, below))
			read_group(file, below, depth + 1);
		else
			read_array(file, below);
	}
	mem_free(texts.items);
}

/* Only what libhdf5 does, without Keras's layouts. */
static enum status read_all(void *user, struct apart_out *out, struct err *err)
{
	const struct keras_file *file = user;
	struct hdf5 *hdf5;
	char *config;

	(void)out;
	if (hdf5_open(&hdf5, "fuzz", file->hdf5, file->hdf5_length, err) != ST_OK)
		return err->status;
	if (hdf5_text(hdf5, "", "model_config", &config, NULL) == ST_OK)
		mem_free(config);
	read_group(hdf5, "", 0);
	hdf5_close(hdf5);
	return ST_OK;
}

/* The fuzzer does not see what child processes run. What libhdf5 survives there is read here. */
static void read_here(const struct model *model, struct keras_file *file)
{
	const struct apart reading = keras_hdf5_reading("fuzz", file->hdf5_length);
	struct weights_source source;
	size_t length;
	char *out, *config;

	if (apart_call(read_all, file, &reading, &out, &length, NULL) != ST_OK)
		return;
	mem_free(out);
	if (keras_hdf5_config(&config, "fuzz", file->hdf5, file->hdf5_length, NULL) == ST_OK)
		mem_free(config);
	if (keras_hdf5_open(&source, model, "fuzz", file->hdf5, file->hdf5_length, false, NULL) !=
	    ST_OK)
		return;
	for (int i = 0; i < source.count; i++) {
		size_t count = 1;
		float *values;

		for (int d = 0; d < source.arrays[i].ndim; d++)
			count *= (size_t)source.arrays[i].dim[d];
		values = mem_alloc(count * sizeof(*values) + 1);
		if (values)
			source.read(source.file, i, values, count, NULL);
		mem_free(values);
	}
	source.close(source.file);
}

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
		if (model_new(&model, &root, NULL, &err) == ST_OK && model->weights <= 64) {
			model_weights_read(model, weights, &file, false, NULL, &err);
			if (file.hdf5)
				read_here(model, &file);
		}
		model_free(model);
		cJSON_Delete(json);
	}
	keras_file_close(&file);
	return 0;
}
