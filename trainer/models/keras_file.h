/*
 * Reading files of models and weights, detected by content: Keras's JSON, .npz, HDF5 and .keras.
 * The error for a file of another program names its format and says how to convert it.
 */
#ifndef KERAS_FILE_H
#define KERAS_FILE_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "common/err.h"

enum keras_kind {
	KERAS_TEXT,   /* JSON, or any file without a known signature */
	KERAS_ARRAYS, /* .npz, or a zip archive of other things */
	KERAS_HDF5,   /* .h5, .weights.h5 */
	KERAS_ARCHIVE /* .keras */
};

struct keras_file {
	const char *path; /* borrowed */
	enum keras_kind kind;
	char *bytes; /* owned */
	size_t length;
	char *hdf5; /* the contained HDF5, once unpacked; owned if kind is KERAS_ARCHIVE */
	size_t hdf5_length;
};

/* Read the whole file. A file of another program is ST_UNSUPPORTED. */
enum status keras_file_open(struct keras_file *out, const char *path, struct err *err);
void keras_file_close(struct keras_file *file); /* accepts a zeroed struct */

/* Set file->hdf5: unpack an archive's. A later call does nothing. */
enum status keras_file_unpack(struct keras_file *file, struct err *err);

/* Read the JSON of a run file or a model at @path, in any of the formats; free *@out with
 * cJSON_Delete(). */
enum status keras_file_json(cJSON **out, const char *path, struct err *err);

/* The same for an open file. */
enum status keras_file_config(cJSON **out, struct keras_file *file, struct err *err);

/* Open a file in memory. Takes ownership of @bytes, even on failure. */
enum status keras_file_from(struct keras_file *out, const char *path, char *bytes, size_t length,
			    struct err *err);

#endif /* KERAS_FILE_H */
