/*
 * HDF5 files of weights, in memory: groups, string attributes, and arrays of floats.
 *
 * A file is parsed from bytes and written to bytes, so that a member of an archive needs no
 * temporary file, and output files appear complete. The library's own messages are silenced:
 * errors name the file and the path in it. The functions check what a file claims before they use
 * it (sizes of strings, numbers of entries, compressed chunks); they do not follow links to other
 * files.
 *
 * Paths are within the file; "" or "/" is the root. One thread at a time. Built only with
 * libhdf5: see keras_hdf5.h.
 */
#ifndef HDF5_FILE_H
#define HDF5_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define HDF5_DIMS 8

struct hdf5; /* opaque */

struct hdf5_texts {
	char **items; /* one allocation: mem_free(items) */
	int count;
};

struct hdf5_shape {
	int ndim;
	int64_t dim[HDF5_DIMS];
};

/* Open a file in memory; @bytes NULL: create an empty one. @bytes may be freed after the call.
 * @name is for messages, and copied. */
enum status hdf5_open(struct hdf5 **out, const char *name, const void *bytes, size_t length,
		      struct err *err);
void hdf5_close(struct hdf5 *file); /* accepts NULL */

/* ---- reading --------------------------------------------------------------------------------- */

bool hdf5_has_group(const struct hdf5 *file, const char *path);
bool hdf5_has_attribute(const struct hdf5 *file, const char *path, const char *key);

/* Read the string attribute @key of the group @path; free *@out with mem_free(). */
enum status hdf5_text(const struct hdf5 *file, const char *path, const char *key, char **out,
		      struct err *err);
/* Read a list of strings, which Keras splits into KEY0, KEY1 ... if it is long. ST_NOTFOUND:
 * neither KEY nor KEY0 exists. */
enum status hdf5_texts(const struct hdf5 *file, const char *path, const char *key,
		       struct hdf5_texts *out, struct err *err);
/* List the names in the group @path, in order. */
enum status hdf5_names(const struct hdf5 *file, const char *path, struct hdf5_texts *out,
		       struct err *err);

/* The shape of the array at @path. Its elements must be floats of 16, 32 or 64 bits. */
enum status hdf5_shape(const struct hdf5 *file, const char *path, struct hdf5_shape *out,
		       struct err *err);
/* Read the array's values as float32; @count must be their number. */
enum status hdf5_read(const struct hdf5 *file, const char *path, float *out, size_t count,
		      struct err *err);

/* ---- writing --------------------------------------------------------------------------------- */

/* Create the group, and missing groups on the path to @path. */
enum status hdf5_put_group(struct hdf5 *file, const char *path, struct err *err);
enum status hdf5_put_text(struct hdf5 *file, const char *path, const char *key, const char *text,
			  struct err *err);
/* Like Keras, split a list that is too long for an object's header into KEY0, KEY1 ... */
enum status hdf5_put_texts(struct hdf5 *file, const char *path, const char *key,
			   const char *const *items, int count, struct err *err);
enum status hdf5_put(struct hdf5 *file, const char *path, const struct hdf5_shape *shape,
		     const float *values, struct err *err);
/* Return the file's bytes; free *@out with mem_free(). The same content gives the same bytes. */
enum status hdf5_bytes(struct hdf5 *file, char **out, size_t *length, struct err *err);

#endif /* HDF5_FILE_H */
