/*
 * Files of models and weights, recognised by what they hold: Keras's JSON, .npz, HDF5 and .keras.
 * What others write is named in the error, with the way from there.
 */
#ifndef KERAS_FILE_H
#define KERAS_FILE_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "common/err.h"

enum keras_kind {
	KERAS_TEXT,   /* JSON, or what has no sign of its own */
	KERAS_ARRAYS, /* .npz, or a zip archive of other things */
	KERAS_HDF5,   /* .h5, .weights.h5 */
	KERAS_ARCHIVE /* .keras */
};

struct keras_file {
	const char *path; /* borrowed */
	enum keras_kind kind;
	char *bytes; /* owned */
	size_t length;
	char *hdf5; /* the HDF5 within that libhdf5 survives; NULL: not tried. Of a .keras owned */
	size_t hdf5_length;
};

/* Read the file whole. A file of another program is ST_UNSUPPORTED. */
enum status keras_file_open(struct keras_file *out, const char *path, struct err *err);
void keras_file_close(struct keras_file *file); /* accepts a zeroed struct */

/* Find the HDF5 within, for file->hdf5, and try it (keras_hdf5_try()): before any thread runs.
 * Later calls do nothing. */
enum status keras_file_try(struct keras_file *file, struct err *err);

/* The JSON of a run file or a model at @path, out of whatever it is kept in: *@out is the caller's
 * (cJSON_Delete). */
enum status keras_file_json(cJSON **out, const char *path, struct err *err);

/* The same of a file that was read. */
enum status keras_file_config(cJSON **out, struct keras_file *file, struct err *err);

/* A file in memory, which keeps @bytes as its own: on failure too. */
enum status keras_file_from(struct keras_file *out, const char *path, char *bytes, size_t length,
			    struct err *err);

#endif /* KERAS_FILE_H */
