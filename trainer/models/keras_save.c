/*
 * Writing models and weights to Keras's formats.
 *
 * Threading: none. Source: keras/src/saving/saving_lib.py (the members of a .keras).
 */
#include "trainer/models/keras_save.h"

#include <string.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/npz_writer.h"
#include "trainer/models/keras_hdf5.h"
#include "trainer/models/model_weights.h"

static bool ends_with(const char *path, const char *ending)
{
	const size_t length = strlen(path), wanted = strlen(ending);

	return length >= wanted && !strcmp(path + length - wanted, ending);
}

enum status keras_save_check(const char *path, const cJSON *json, struct err *err)
{
	const bool keras = ends_with(path, ".keras");
	const bool hdf5 = ends_with(path, ".h5") || ends_with(path, ".hdf5");

	if (json && ((!keras && !hdf5) || ends_with(path, ".weights.h5")))
		return err_set(err, ST_INVALID,
			       "%s: a model is saved as .keras or .h5; weights alone are saved by "
			       "weights.save",
			       path);
	if (json && cJSON_HasObjectItem(json, "application"))
		return err_set(err, ST_UNSUPPORTED,
			       "%s: an application is known by name alone and has no config to "
			       "save: save its weights (weights.save), or give Keras's to_json() "
			       "as \"model\"",
			       path);
	if (!json && keras)
		return err_set(err, ST_INVALID,
			       "%s: a .keras holds a model too: give it as weights.save_model, or "
			       "save weights as .weights.h5, .h5 or .npz",
			       path);
	return keras || hdf5 ? keras_hdf5_usable(path, err) : ST_OK;
}

enum status keras_save_weights(const struct model *model, const float *weights, const char *path,
			       struct err *err)
{
	const enum keras_layout layout =
		ends_with(path, ".weights.h5") ? KERAS_LAYOUT_3 : KERAS_LAYOUT_2;
	enum status status = keras_save_check(path, NULL, err);
	size_t length;
	char *bytes;

	if (status != ST_OK)
		return status;
	if (!ends_with(path, ".h5") && !ends_with(path, ".hdf5"))
		return model_weights_save(model, weights, path, err);
	status = keras_hdf5_write(&bytes, &length, model, weights, layout, NULL, path, err);
	if (status == ST_OK)
		status = fs_write(path, bytes, length, err);
	mem_free(bytes);
	return status;
}

/* Add the fields that Keras's loaders need beside class_name and config. Free *@out with
 * cJSON_free(). */
static enum status config_text(char **out, const struct model *model, const cJSON *json,
			       struct err *err)
{
	const bool whole = cJSON_HasObjectItem(json, "class_name");
	cJSON *top = whole ? cJSON_Duplicate(json, true) : cJSON_CreateObject();
	cJSON *config = whole ? NULL : cJSON_Duplicate(json, true);
	bool good = top && (whole || config);

	*out = NULL;
	if (config && !cJSON_AddItemToObject(top, "config", config)) {
		cJSON_Delete(config);
		good = false;
	}
	if (good && !whole)
		good = cJSON_AddStringToObject(top, "class_name",
					       model->functional ? "Functional" : "Sequential");
	if (good && !cJSON_HasObjectItem(top, "module"))
		good = cJSON_AddStringToObject(
			top, "module", model->functional ? "keras.src.models.functional" : "keras");
	if (good && !cJSON_HasObjectItem(top, "registered_name"))
		good = model->functional
			       ? cJSON_AddStringToObject(top, "registered_name", "Functional")
			       : cJSON_AddNullToObject(top, "registered_name");
	if (good)
		*out = cJSON_PrintUnformatted(top);
	cJSON_Delete(top);
	return *out ? ST_OK : err_nomem(err);
}

static enum status write_archive(const char *path, const char *config, const char *weights,
				 size_t length, struct err *err)
{
	/* A fixed date, so that the same weights give the same bytes. Keras reads neither field. */
	static const char metadata[] =
		"{\"keras_version\": \"3.0.0\", \"date_saved\": \"1980-01-01@00:00:00\"}";
	struct npz_writer writer;

	if (npz_writer_open(&writer, path, err) != ST_OK)
		return err->status;
	if (npz_writer_file(&writer, "metadata.json", metadata, strlen(metadata)) == ST_OK &&
	    npz_writer_file(&writer, "config.json", config, strlen(config)) == ST_OK)
		npz_writer_file(&writer, "model.weights.h5", weights, length);
	return npz_writer_close(&writer, err->status);
}

enum status keras_save_model(const struct model *model, const cJSON *json, const float *weights,
			     const char *path, struct err *err)
{
	const bool keras = ends_with(path, ".keras");
	char *bytes = NULL, *config = NULL;
	size_t length = 0;
	enum status status;
	struct err own;

	err = err_start(err, &own);
	if (keras_save_check(path, json, err) != ST_OK ||
	    config_text(&config, model, json, err) != ST_OK)
		return err->status;
	status = keras_hdf5_write(&bytes, &length, model, weights,
				  keras ? KERAS_LAYOUT_3 : KERAS_LAYOUT_2, keras ? NULL : config,
				  path, err);
	if (status == ST_OK)
		status = keras ? write_archive(path, config, bytes, length, err)
			       : fs_write(path, bytes, length, err);
	mem_free(bytes);
	cJSON_free(config);
	return status;
}
