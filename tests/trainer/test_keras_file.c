/*
 * Keras's files: one model in each layout loads with the same weights; truncated, damaged and
 * foreign ones are refused. tests/golden/keras comes from script/make-keras-golden.py, which does
 * not know this project's writer.
 */
#include "trainer/models/keras_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fs.h"
#include "common/mem.h"
#include "support/model_texts.h"
#include "trainer/models/hdf5_file.h"
#include "trainer/models/keras_save.h"
#include "trainer/models/model_weights.h"

#define WEIGHTS_MOST 4096

static void golden(char out[SUPPORT_PATH_SIZE], const char *name)
{
	snprintf(out, SUPPORT_PATH_SIZE, "%s/tests/golden/keras/%s", getenv("IPUSCOPE_SOURCE_DIR"),
		 name);
}

static struct model *read_model(const char *name)
{
	char path[SUPPORT_PATH_SIZE];
	struct json_at root;
	struct model *model;
	struct err err;
	cJSON *json;

	golden(path, name);
	if (keras_file_json(&json, path, &err) != ST_OK)
		fail_msg("%s", err.text);
	root = json_root(name, json);
	if (model_new(&model, &root, NULL, &err) != ST_OK)
		fail_msg("%s", err.text);
	cJSON_Delete(json);
	assert_true(model->weights <= WEIGHTS_MOST);
	return model;
}

static void load(const struct model *model, const char *name, bool by_name, float *weights)
{
	char path[SUPPORT_PATH_SIZE];
	struct err err;
	int loaded;

	golden(path, name);
	memset(weights, 0, model->weights * sizeof(*weights));
	if (model_weights_load(model, weights, path, by_name, &loaded, &err) != ST_OK)
		fail_msg("%s", err.text);
	assert_int_equal(loaded, model->param_count);
}

/* The weights of weights.npz are those of every other file. */
static void test_every_layout_loads(void **state)
{
	static const char *const files[] = {
		"model.h5",           "model.keras",           "named.h5",          "unnamed.h5",
		"counted.weights.h5", "checkpoint.weights.h5", "windows.weights.h5"};
	static const char *const models[] = {"model.json", "model.h5", "model.keras"};
	static float weights[WEIGHTS_MOST], wanted[WEIGHTS_MOST];

	(void)state;
	for (size_t m = 0; m < ARRAY_LEN(models); m++) {
		struct model *model = read_model(models[m]);

		assert_int_equal(model->param_count, 11);
		load(model, "weights.npz", false, wanted);
		for (size_t i = 0; i < ARRAY_LEN(files); i++) {
			load(model, files[i], false, weights);
			assert_memory_equal(weights, wanted, model->weights * sizeof(*weights));
			if (strcmp(files[i], "unnamed.h5") != 0)
				load(model, files[i], true, weights);
			assert_memory_equal(weights, wanted, model->weights * sizeof(*weights));
		}
		model_free(model);
	}
}

/* The state of generators is none of the weights, wherever a version of Keras keeps it. */
static void test_states_of_generators_are_left_out(void **state)
{
	static const char *const files[] = {"draws.h5", "draws.keras", "draws.weights.h5"};
	static const char *const models[] = {"draws.h5", "draws.keras"};
	static float weights[WEIGHTS_MOST];

	(void)state;
	for (size_t m = 0; m < ARRAY_LEN(models); m++) {
		struct model *model = read_model(models[m]);

		assert_int_equal(model->param_count, 2);
		for (size_t i = 0; i < 2 * ARRAY_LEN(files); i++) {
			load(model, files[i / 2], i % 2, weights);
			for (int p = 0, next = 0; p < 2; p++)
				for (size_t at = 0; at < model->params[p].count; at++)
					assert_true(weights[model->params[p].offset + at] ==
						    (float)next++);
		}
		model_free(model);
	}
}

/* What is saved loads, in each layout; twice the same bytes; nothing is left of what fails. */
static void test_what_is_saved_loads(void **state)
{
	static const char *const files[] = {"x.h5", "x.weights.h5", "x.npz", "m.h5", "m.keras"};
	static float weights[WEIGHTS_MOST], wanted[WEIGHTS_MOST];
	char dir[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 32], model_path[SUPPORT_PATH_SIZE];
	struct model *model = read_model("model.json");
	cJSON *json, *again;
	struct err err;

	(void)state;
	golden(model_path, "model.json");
	assert_int_equal(keras_file_json(&json, model_path, NULL), ST_OK);
	load(model, "weights.npz", false, wanted);
	support_tempdir(dir);
	for (size_t i = 0; i < 2 * ARRAY_LEN(files); i++) {
		const char *file = files[i / 2];
		static char *first;
		static size_t first_length;
		size_t length;
		char *bytes;
		int loaded;

		snprintf(path, sizeof(path), "%s/%s", dir, file);
		if ((file[0] == 'm' ? keras_save_model(model, json, wanted, path, &err)
				    : keras_save_weights(model, wanted, path, &err)) != ST_OK)
			fail_msg("%s", err.text);
		memset(weights, 0, sizeof(weights));
		if (model_weights_load(model, weights, path, false, &loaded, &err) != ST_OK)
			fail_msg("%s", err.text);
		assert_int_equal(loaded, model->param_count);
		assert_memory_equal(weights, wanted, model->weights * sizeof(*weights));
		assert_int_equal(fs_read(path, 1 << 20, &bytes, &length, NULL), ST_OK);
		if (i % 2) {
			assert_int_equal(length, first_length);
			assert_memory_equal(bytes, first, length);
			mem_free(first);
			mem_free(bytes);
		} else {
			first = bytes;
			first_length = length;
		}
		if (file[0] == 'm') {
			assert_int_equal(keras_file_json(&again, path, NULL), ST_OK);
			assert_true(cJSON_Compare(json, again, true));
			cJSON_Delete(again);
		}
	}
	snprintf(path, sizeof(path), "%s/x.keras", dir);
	assert_int_equal(keras_save_weights(model, wanted, path, &err), ST_INVALID);
	support_assert_says(err.text, "x.keras|weights.save_model");
	snprintf(path, sizeof(path), "%s/no/x.keras", dir);
	assert_int_equal(keras_save_model(model, json, wanted, path, &err), ST_NOTFOUND);
	assert_int_equal(keras_save_model(model, json, wanted, "x.onnx", &err), ST_INVALID);
	support_assert_says(err.text, "x.onnx: a model is saved as .keras or .h5");
	cJSON_Delete(json);
	model_free(model);
	support_tempdir_remove(dir);
}

/* Layers that hold layers have their arrays in groups by the attributes of Keras's classes, in what
 * Keras made and in what is saved. */
static void test_layers_inside_layers_are_where_keras_has_them(void **state)
{
	static const char *const places[] = {
		"bidirectional/forward_layer/cell/vars/2",
		"bidirectional/backward_layer/cell/vars/0",
		"time_distributed/layer/vars/1",
		"multi_head_attention/query_dense/vars/0",
		"multi_head_attention/value_dense/vars/1",
		"multi_head_attention/output_dense/vars/0",
	};
	static float weights[WEIGHTS_MOST], wanted[WEIGHTS_MOST];
	struct model *model = read_model("wrapped.json");
	char dir[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 32], *bytes;
	struct hdf5 *file;
	size_t length;
	int loaded;

	(void)state;
	load(model, "wrapped.npz", false, wanted);
	load(model, "wrapped.weights.h5", false, weights);
	assert_memory_equal(weights, wanted, model->weights * sizeof(*weights));
	support_tempdir(dir);
	snprintf(path, sizeof(path), "%s/x.weights.h5", dir);
	assert_int_equal(keras_save_weights(model, wanted, path, NULL), ST_OK);
	memset(weights, 0, sizeof(weights));
	assert_int_equal(model_weights_load(model, weights, path, false, &loaded, NULL), ST_OK);
	assert_memory_equal(weights, wanted, model->weights * sizeof(*weights));
	assert_int_equal(fs_read(path, 1 << 20, &bytes, &length, NULL), ST_OK);
	assert_int_equal(hdf5_open(&file, path, bytes, length, NULL), ST_OK);
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		struct hdf5_shape shape;
		char place[128];

		snprintf(place, sizeof(place), "layers/%s", places[i]);
		assert_int_equal(hdf5_shape(file, place, &shape, NULL), ST_OK);
	}
	assert_false(hdf5_has_group(file, "layers/bidirectional/layers"));
	hdf5_close(file);
	mem_free(bytes);
	model_free(model);
	support_tempdir_remove(dir);
}

/* An attribute has room for 64 KB: Keras divides a longer list among NAME0, NAME1 ... */
static void test_a_list_in_parts_is_read_whole(void **state)
{
	static char names[3000][48];
	const char *items[ARRAY_LEN(names)];
	const int count = ARRAY_LEN(names);
	struct hdf5_texts texts;
	struct hdf5 *file;

	(void)state;
	for (int i = 0; i < count; i++) {
		snprintf(names[i], sizeof(names[i]), "a_layer_whose_name_takes_some_room_%d", i);
		items[i] = names[i];
	}
	assert_int_equal(hdf5_open(&file, "f", NULL, 0, NULL), ST_OK);
	assert_int_equal(hdf5_put_texts(file, "", "layer_names", items, count, NULL), ST_OK);
	assert_true(hdf5_has_attribute(file, "", "layer_names1"));
	assert_false(hdf5_has_attribute(file, "", "layer_names"));
	assert_int_equal(hdf5_texts(file, "", "layer_names", &texts, NULL), ST_OK);
	assert_int_equal(texts.count, count);
	for (int i = 0; i < count; i++)
		assert_string_equal(texts.items[i], names[i]);
	mem_free(texts.items);
	hdf5_close(file);
}

/* On Windows Keras names groups by whole paths. They are looked for among up to 8192 names. */
static void test_paths_of_windows_are_found_among_8192_names(void **state)
{
	static const struct model_shape input = {.ndim = 1, .dim = {1}};
	static const struct hdf5_shape shape = {2, {1, 1}};
	static const float value = 3;
	struct model *model = support_model("{\"layers\": [{\"class_name\": \"Dense\", \"config\": "
					    "{\"units\": 1, \"use_bias\": false}}]}",
					    &input);
	struct keras_file keras;
	struct hdf5 *file;
	float weights[16];
	struct err err;
	size_t length;
	char *bytes;

	(void)state;
	assert_int_equal(hdf5_open(&file, "f", NULL, 0, NULL), ST_OK);
	assert_int_equal(hdf5_put(file, "layers\\dense/vars/0", &shape, &value, NULL), ST_OK);
	for (int i = 1; i < 8192; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(hdf5_put(file, name, &shape, &value, NULL), ST_OK);
	}
	assert_int_equal(hdf5_bytes(file, &bytes, &length, NULL), ST_OK);
	hdf5_close(file);
	if (keras_file_from(&keras, "f", bytes, length, &err) != ST_OK ||
	    model_weights_read(model, weights, &keras, false, NULL, &err) != ST_OK)
		fail_msg("%s", err.text);
	assert_true(weights[0] == value);
	keras_file_close(&keras);
	model_free(model);
}

static void test_wrong_models_are_refused(void **state)
{
	static const struct model_shape input = {.ndim = 1, .dim = {5}};
	static const struct {
		const char *model, *file, *says;
	} cases[] = {
		{"{\"layers\": [{\"class_name\": \"Dense\", \"config\": {\"name\": \"hidden\", "
		 "\"units\": 3}}]}",
		 "named.h5", "named.h5|\"recall/recall/lstm_cell/kernel:0\" (4, 20)|no variable"},
		{"{\"layers\": [{\"class_name\": \"Dense\", \"config\": {\"name\": \"recall\", "
		 "\"units\": 3}}]}",
		 "counted.weights.h5", "layers/batch_normalization/vars/0|no variable"},
		{"{\"layers\": [{\"class_name\": \"Dense\", \"config\": {\"name\": \"a\", "
		 "\"units\": 3}}]}",
		 "other.h5", "none of Keras's|\"temperature\""},
	};
	float weights[WEIGHTS_MOST];
	char path[SUPPORT_PATH_SIZE];
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct model *model = support_model(cases[i].model, &input);

		golden(path, cases[i].file);
		assert_int_not_equal(model_weights_load(model, weights, path, false, NULL, &err),
				     ST_OK);
		support_assert_says(err.text, cases[i].says);
		model_free(model);
	}
}

/* Bytes of a golden file with what is done to them, as a model and as weights. */
static void try_bytes(const struct model *model, const char *bytes, size_t length)
{
	static float weights[WEIGHTS_MOST];
	struct keras_file file;
	struct err err = {0};
	char *own = mem_alloc(length + 1);
	cJSON *json;

	assert_non_null(own);
	memcpy(own, bytes, length);
	own[length] = '\0';
	if (keras_file_from(&file, "f", own, length, &err) == ST_OK) {
		if (keras_file_config(&json, &file, &err) == ST_OK)
			cJSON_Delete(json);
		else
			assert_true(err.text[0]);
		err.text[0] = '\0';
		if (model_weights_read(model, weights, &file, true, NULL, &err) != ST_OK)
			assert_true(err.text[0]);
	} else {
		assert_true(err.text[0]);
	}
	keras_file_close(&file);
}

static void test_damaged_files_are_refused(void **state)
{
	static const char *const files[] = {"model.h5", "counted.weights.h5", "model.keras"};
	struct model *model = read_model("model.json");
	uint32_t random = 22;

	(void)state;
	for (size_t f = 0; f < ARRAY_LEN(files); f++) {
		char path[SUPPORT_PATH_SIZE], *bytes;
		size_t length;

		golden(path, files[f]);
		assert_int_equal(fs_read(path, 1 << 20, &bytes, &length, NULL), ST_OK);
		for (size_t cut = 0; cut < length; cut += 1 + length / 20)
			try_bytes(model, bytes, cut);
		/* Where superblock, headers and directories lie, and anywhere. */
		for (int i = 0; i < 40; i++) {
			size_t at;
			char was;

			random = random * 1664525 + 1013904223;
			at = (random >> 8) % (i % 2 ? length : 2048 < length ? 2048 : length);
			was = bytes[at];
			bytes[at] = (char)(was ^ (1 << (random >> 4 & 7)));
			try_bytes(model, bytes, length);
			bytes[at] = was;
		}
		mem_free(bytes);
	}
	model_free(model);
}

/* What is damaged at the first reading is damaged at the second: nothing of it was kept. */
static void test_a_damaged_member_stays_damaged(void **state)
{
	struct model *model = read_model("model.json");
	float weights[WEIGHTS_MOST];
	char path[SUPPORT_PATH_SIZE], *bytes, *member;
	struct keras_file file;
	size_t length;
	struct err err;

	(void)state;
	golden(path, "model.keras");
	assert_int_equal(fs_read(path, 1 << 20, &bytes, &length, NULL), ST_OK);
	member = memmem(bytes, length, "model.weights.h5", strlen("model.weights.h5"));
	assert_non_null(member);
	memset(member + 64, 0xff, 64);
	assert_int_equal(keras_file_from(&file, path, bytes, length, NULL), ST_OK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(model_weights_read(model, weights, &file, false, NULL, &err),
				 ST_FORMAT);
		support_assert_says(err.text, "model.weights.h5");
	}
	keras_file_close(&file);
	model_free(model);
}

static void refuse_bytes(const char *bytes, size_t length, const char *says)
{
	struct keras_file file;
	struct err err = {0};
	char *own = mem_alloc(length + 1);

	assert_non_null(own);
	memcpy(own, bytes, length);
	own[length] = '\0';
	assert_int_equal(keras_file_from(&file, "f", own, length, &err), ST_UNSUPPORTED);
	assert_null(file.bytes);
	support_assert_says(err.text, says);
}

/* By what is in them, not by their names. */
/* Keras saves the code of a Lambda layer as bytes: the layer is named, not a byte of it. */
static void test_code_is_refused_by_its_layer(void **state)
{
	static const char text[] =
		"{'class_name': 'Sequential', 'config': [{'class_name': 'Lambda', 'config': "
		"{'function': ['\\u00e3\\u0000\\\\u0000', null, null], 'batch_input_shape': [null, "
		"4]}}]}";
	struct keras_file file;
	struct json_at root;
	struct model *model;
	struct err err;
	cJSON *json, *code;
	char *bytes = mem_alloc(sizeof(text));

	(void)state;
	memcpy(bytes, text, sizeof(text));
	for (size_t i = 0; i < sizeof(text); i++)
		if (bytes[i] == '\'')
			bytes[i] = '"';
	assert_int_equal(keras_file_from(&file, "code.json", bytes, sizeof(text) - 1, &err), ST_OK);
	assert_int_equal(keras_file_config(&json, &file, &err), ST_OK);
	code = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "config"), 0);
	code = cJSON_GetObjectItem(cJSON_GetObjectItem(code, "config"), "function");
	assert_string_equal(cJSON_GetArrayItem(code, 0)->valuestring, "\u00e3\ufffd\\u0000");
	root = json_root("code.json", json);
	assert_int_equal(model_new(&model, &root, NULL, &err), ST_UNSUPPORTED);
	assert_non_null(strstr(err.text, "\"Lambda\" holds Python code"));
	cJSON_Delete(json);
	keras_file_close(&file);
}

static void test_files_of_others_are_named(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
		const char *says;
	} cases[] = {
		{"\x08\x07\x12\x07pytorch\x1a\x03", 13, "f: is an ONNX model: "},
		{"\x08\x01\x12\x80\x01saved", 10, "f: is a SavedModel of TensorFlow|model.save"},
		{"\x1c\0\0\0TFL3\x14\0", 10, "f: is a TensorFlow Lite model|model.save"},
		{"\x80\x02\x8a\x0al\xfc\x9c", 7, "f: is a pickle of Python|.npz"},
		{"\x40\0\0\0\0\0\0\0{\"a\":1}", 15, "f: is a safetensors file|.npz"},
		{"\x93NUMPY\1\0v\0", 10, "f: is a single .npy array|savez"},
		{"\x1f\x8b\x08\0\0", 5, "f: is packed by gzip|gunzip"},
		{"\n\x0b\n\x05inputx\x12\x0bPlaceholder", 23, "f: is a frozen graph"},
		{"GGUF\3\0\0\0", 8, "f: is a GGUF file"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		refuse_bytes(cases[i].bytes, cases[i].length, cases[i].says);
}

/* A build without libhdf5 says so. */
static void test_without_hdf5(void **state)
{
	char path[SUPPORT_PATH_SIZE];
	struct err err;
	cJSON *json;

	(void)state;
	golden(path, "model.h5");
	assert_int_equal(keras_file_json(&json, path, &err), ST_UNSUPPORTED);
	support_assert_says(err.text, "model.h5: needs libhdf5|libhdf5-dev|.npz");
	golden(path, "model.keras");
	assert_int_equal(keras_file_json(&json, path, &err), ST_OK);
	cJSON_Delete(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef IPUSCOPE_HDF5
		cmocka_unit_test(test_every_layout_loads),
		cmocka_unit_test(test_states_of_generators_are_left_out),
		cmocka_unit_test(test_what_is_saved_loads),
		cmocka_unit_test(test_layers_inside_layers_are_where_keras_has_them),
		cmocka_unit_test(test_a_list_in_parts_is_read_whole),
		cmocka_unit_test(test_wrong_models_are_refused),
#else
		cmocka_unit_test(test_without_hdf5),
#endif
		cmocka_unit_test(test_damaged_files_are_refused),
		cmocka_unit_test(test_a_damaged_member_stays_damaged),
		cmocka_unit_test(test_code_is_refused_by_its_layer),
		cmocka_unit_test(test_files_of_others_are_named),
#ifdef IPUSCOPE_HDF5
		cmocka_unit_test(test_paths_of_windows_are_found_among_8192_names),
#endif
	};

#ifdef IPUSCOPE_HDF5
	(void)test_without_hdf5;
#else
	(void)test_every_layout_loads;
	(void)test_states_of_generators_are_left_out;
	(void)test_layers_inside_layers_are_where_keras_has_them;
	(void)test_a_list_in_parts_is_read_whole;
	(void)test_paths_of_windows_are_found_among_8192_names;
	(void)test_what_is_saved_loads;
	(void)test_wrong_models_are_refused;
#endif
	return cmocka_run_group_tests(tests, NULL, NULL);
}
