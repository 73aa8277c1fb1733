/*
 * Detection of a model file's format, by its first bytes or, for an archive, by its members.
 *
 * Threading: none. Sources: the formats' own descriptions (onnx.proto, saved_model.proto, the
 * FlatBuffers file identifier of TensorFlow Lite, PyTorch's serialization notes, safetensors);
 * keras/src/saving/saving_lib.py (the members of a .keras).
 */
#include "trainer/models/keras_file.h"

#include <stdio.h>
#include <string.h>

#include "common/fs.h"
#include "common/json.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "trainer/data/dataset_internal.h"
#include "trainer/models/keras_hdf5.h"

#define KERAS_FILE_LIMIT ((size_t)4 << 30)

/* ---- files of other programs ----------------------------------------------------------------- */

struct foreign {
	size_t at, length;
	const char *sign, *what, *instead;
};

static const char to_keras[] = "load it there and give the Keras model's model.save(\"x.keras\")";
static const char to_npz[] = "give the model as Keras JSON and the weights as .npz (numpy.savez, "
			     "named as ipu-train lists the variables)";

static const struct foreign foreigns[] = {
	{4, 4, "TFL3", "a TensorFlow Lite model", to_keras},
	{0, 4, "GGUF", "a GGUF file of llama.cpp", to_npz},
	{0, 6, "\x93NUMPY", "a single .npy array", "numpy.savez() makes an .npz of named arrays"},
	{0, 3, "\x1f\x8b\x08", "packed by gzip", "unpack it first (gunzip)"},
	{0, 6,
	 "\xfd"
	 "7zXZ",
	 "packed by xz", "unpack it first (unxz)"},
	{257, 5, "ustar", "a tar archive", "unpack it first (tar xf)"},
	{0, 2, "\x80\x02", "a pickle of Python (PyTorch before 1.6, scikit-learn)", to_npz},
	{0, 2, "\x80\x03", "a pickle of Python (scikit-learn and others)", to_npz},
	{0, 2, "\x80\x04", "a pickle of Python (scikit-learn and others)", to_npz},
	{0, 2, "\x80\x05", "a pickle of Python (scikit-learn and others)", to_npz},
	{0, 3, "\x08\x01\x12", "a SavedModel of TensorFlow (saved_model.pb)", to_keras},
};

/* ModelProto: a small ir_version, then text fields or the graph (field 7). */
static bool is_onnx(const char *bytes, size_t length)
{
	return length > 8 && bytes[0] == '\x08' && bytes[1] > 1 && bytes[1] < 32 &&
	       (bytes[2] == '\x12' || bytes[2] == '\x3a' || bytes[2] == '\x42');
}

static enum status refuse(const char *path, const char *what, const char *instead, struct err *err)
{
	return err_set(err, ST_UNSUPPORTED, "%s: is %s: %s", path, what, instead);
}

static enum status refuse_foreign(const struct keras_file *file, struct err *err)
{
	const char *bytes = file->bytes;

	for (size_t i = 0; i < ARRAY_LEN(foreigns); i++)
		if (file->length >= foreigns[i].at + foreigns[i].length &&
		    !memcmp(bytes + foreigns[i].at, foreigns[i].sign, foreigns[i].length))
			return refuse(file->path, foreigns[i].what, foreigns[i].instead, err);
	if (is_onnx(bytes, file->length))
		return refuse(file->path, "an ONNX model",
			      "give the Keras model it was made from, or its layers as Keras JSON "
			      "and its weights as .npz",
			      err);
	if (file->length > 10 && !memcmp(bytes + 5, "\0\0\0{\"", 5))
		return refuse(file->path, "a safetensors file", to_npz, err);
	if (file->length > 4 && bytes[0] == '\n' &&
	    memmem(bytes, min(file->length, (size_t)4096), "Placeholder", strlen("Placeholder")))
		return refuse(file->path, "a frozen graph of TensorFlow 1 (GraphDef)", to_keras,
			      err);
	return ST_OK;
}

/* ---- archives -------------------------------------------------------------------------------- */

static struct dataset_zip zip_of(const struct keras_file *file)
{
	return (struct dataset_zip){
		.name = file->path, .bytes = (const uint8_t *)file->bytes, .length = file->length};
}

static bool has_member(const struct keras_file *file, const char *name, bool ends)
{
	struct dataset_zip zip = zip_of(file);
	struct dataset_zip_member member;

	return dataset__zip_find(&zip, name, ends, &member, NULL) == ST_OK;
}

/* Set the kind of an archive, determined by its members. */
static enum status archive_kind(struct keras_file *file, struct err *err)
{
	file->kind = KERAS_ARRAYS;
	if (has_member(file, "config.json", false))
		file->kind = KERAS_ARCHIVE;
	else if (has_member(file, "data.pkl", true))
		return refuse(file->path, "a checkpoint of PyTorch", to_npz, err);
	else if (has_member(file, "saved_model.pb", true))
		return refuse(file->path, "a zipped SavedModel of TensorFlow", to_keras, err);
	return ST_OK;
}

/* Read the member @name of a .keras file. */
static enum status read_member(const struct keras_file *file, const char *name, char **out,
			       size_t *length, struct err *err)
{
	struct dataset_array array = {.type = DATASET_U8, .ndim = 1};
	struct dataset_zip zip = zip_of(file);
	struct dataset_zip_member member;
	struct dataset_stream stream;
	char place[FS_PATH_SIZE + 64];
	struct err own;

	err = err_start(err, &own);
	if (dataset__zip_find(&zip, name, false, &member, err) == ST_NOTFOUND)
		err_set(err, ST_FORMAT,
			"%s: has no \"%s\": it is no whole .keras file (save it with "
			"model.save())",
			file->path, name);
	snprintf(place, sizeof(place), "%.*s: %s", DATASET_PATH_SHOWN, file->path, name);
	dataset__zip_member_open(&zip, &member, place, &stream, err);
	array.dim[0] = member.unpacked;
	dataset__array_read(&array, &stream);
	dataset__stream_close(&stream);
	*out = (char *)array.bytes;
	*length = member.unpacked;
	return err->status;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* The signature is at offset 0, or at 512, 1024, 2048 ... after a user block. */
static bool is_hdf5(const char *bytes, size_t length)
{
	static const char sign[8] = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};

	for (size_t at = 0; at + sizeof(sign) <= length; at = at ? 2 * at : 512)
		if (!memcmp(bytes + at, sign, sizeof(sign)))
			return true;
	return false;
}

enum status keras_file_from(struct keras_file *out, const char *path, char *bytes, size_t length,
			    struct err *err)
{
	enum status status = ST_OK;

	*out = (struct keras_file){.path = path, .bytes = bytes, .length = length};
	if (is_hdf5(bytes, length))
		out->kind = KERAS_HDF5;
	else if (length >= 4 && !memcmp(bytes, "PK\3\4", 4))
		status = archive_kind(out, err);
	else
		status = refuse_foreign(out, err);
	if (status != ST_OK)
		keras_file_close(out);
	return status;
}

enum status keras_file_open(struct keras_file *out, const char *path, struct err *err)
{
	char inner[FS_PATH_SIZE], *bytes;
	enum status status;
	size_t length;

	*out = (struct keras_file){0};
	if (fs_is_dir(path) && fs_path(inner, "%s/saved_model.pb", path) && fs_exists(inner))
		return refuse(path, "a SavedModel of TensorFlow", to_keras, err);
	status = fs_read(path, KERAS_FILE_LIMIT, &bytes, &length, err);
	return status == ST_OK ? keras_file_from(out, path, bytes, length, err) : status;
}

void keras_file_close(struct keras_file *file)
{
	if (file->hdf5 != file->bytes)
		mem_free(file->hdf5);
	mem_free(file->bytes);
	*file = (struct keras_file){0};
}

enum status keras_file_unpack(struct keras_file *file, struct err *err)
{
	enum status status = ST_OK;
	char *hdf5 = file->bytes;
	size_t length = file->length;

	if (file->hdf5)
		return ST_OK;
	if (file->kind == KERAS_ARCHIVE)
		status = read_member(file, "model.weights.h5", &hdf5, &length, err);
	if (status != ST_OK) {
		mem_free(hdf5);
		return status;
	}
	file->hdf5 = hdf5;
	file->hdf5_length = length;
	return ST_OK;
}

/* ---- models ---------------------------------------------------------------------------------- */

/* The Python code in a Lambda layer's config contains \u0000, which our strings cannot hold.
 * Replace it by U+FFFD, so that the layer is refused by its name rather than for its text. */
static void replace_code(char *text, size_t length)
{
	static const char lambda[] = "\"Lambda\"", nul[] = "\\u0000";

	if (!memmem(text, length, lambda, sizeof(lambda) - 1))
		return;
	for (size_t i = 0; i + sizeof(nul) - 1 <= length; i++) {
		if (text[i] != '\\')
			continue;
		if (!memcmp(text + i, nul, sizeof(nul) - 1))
			memcpy(text + i, "\\ufffd", sizeof(nul) - 1);
		i++;
	}
}

/* The text of an HDF5 file's model_config. */
static enum status read_config(void *user, struct apart_out *out, struct err *err)
{
	const struct keras_file *file = user;
	char *text;

	if (keras_hdf5_config(&text, file->path, file->bytes, file->length, err) == ST_OK)
		apart_put(out, text, strlen(text), err);
	mem_free(text);
	return err->status;
}

enum status keras_file_config(cJSON **out, struct keras_file *file, struct err *err)
{
	char name[FS_PATH_SIZE + 32], *text = NULL;
	const struct apart reading = keras_hdf5_reading(file->path, file->length);
	size_t length = 0;
	struct err own;

	err = err_start(err, &own);
	*out = NULL;
	if (file->kind == KERAS_TEXT && file->length > JSON_FILE_LIMIT)
		return err_set(err, ST_LIMIT, "%s: larger than the limit of %u bytes", file->path,
			       JSON_FILE_LIMIT);
	if (file->kind == KERAS_TEXT) {
		replace_code(file->bytes, file->length);
		return json_parse(out, file->bytes, file->length, file->path, err);
	}
	if (file->kind == KERAS_ARRAYS) {
		struct dataset_zip zip = zip_of(file);

		/* A truncated one, without a central directory at its end, is reported as such. */
		if (dataset__zip_open(&zip, err) != ST_OK)
			return err->status;
		return err_set(err, ST_UNSUPPORTED,
			       "%s: is a zip archive without a Keras model (an .npz?): give a "
			       ".keras, .h5 or to_json() file, and arrays as weights.load",
			       file->path);
	}
	if (file->kind == KERAS_ARCHIVE)
		read_member(file, "config.json", &text, &length, err);
	else if (keras_hdf5_usable(file->path, err) == ST_OK)
		apart_call(read_config, file, &reading, &text, &length, err);
	if (err_stuck(err))
		goto end;
	snprintf(name, sizeof(name), "%.*s: %s", DATASET_PATH_SHOWN, file->path,
		 file->kind == KERAS_ARCHIVE ? "config.json" : "model_config");
	if (length > JSON_FILE_LIMIT) {
		err_set(err, ST_LIMIT, "%s: larger than the limit of %u bytes", name,
			JSON_FILE_LIMIT);
		goto end;
	}
	replace_code(text, length);
	json_parse(out, text, length, name, err);
end:
	mem_free(text);
	return err->status;
}

enum status keras_file_json(cJSON **out, const char *path, struct err *err)
{
	struct keras_file file;
	enum status status = keras_file_open(&file, path, err);

	*out = NULL;
	if (status != ST_OK)
		return status;
	status = keras_file_config(out, &file, err);
	keras_file_close(&file);
	return status;
}
