/*
 * HDF5 files of weights, in memory: groups, texts beside them, and arrays of floats.
 *
 * A file is read from its bytes and made as bytes, so that what is inside an archive needs no file
 * of its own and what is written appears whole. The library's own messages are silenced: errors
 * name the file and the place in it. What a file states is checked before it is believed: sizes of
 * texts, numbers of entries, packed blocks; links to other files are not followed.
 *
 * Places are paths within the file, "" or "/" the root. One thread at a time. Built
 * only with libhdf5: see keras_hdf5.h.
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
	char **items; /* one block: mem_free(items) */
	int count;
};

struct hdf5_shape {
	int ndim;
	int64_t dim[HDF5_DIMS];
};

/* @bytes may go when this returns. @name is for messages, and copied. */
enum status hdf5_parse(struct hdf5 **out, const char *name, const void *bytes, size_t length,
		       struct err *err);
/* A new one, empty. */
enum status hdf5_create(struct hdf5 **out, const char *name, struct err *err);
void hdf5_close(struct hdf5 *file); /* accepts NULL */

/* ---- reading --------------------------------------------------------------------------------- */

bool hdf5_has_group(const struct hdf5 *file, const char *place);
bool hdf5_has_attribute(const struct hdf5 *file, const char *place, const char *key);

/* The text @key beside the group @place; *@out is the caller's (mem_free). */
enum status hdf5_text(const struct hdf5 *file, const char *place, const char *key, char **out,
		      struct err *err);
/* A list of texts, which Keras cuts into KEY0, KEY1 ... where it is long. ST_NOTFOUND: neither is
 * there. */
enum status hdf5_texts(const struct hdf5 *file, const char *place, const char *key,
		       struct hdf5_texts *out, struct err *err);
/* The names in the group @place, in order. */
enum status hdf5_names(const struct hdf5 *file, const char *place, struct hdf5_texts *out,
		       struct err *err);

/* The array at @place. It must be of floats: 16, 32 or 64 bits. */
enum status hdf5_shape(const struct hdf5 *file, const char *place, struct hdf5_shape *out,
		       struct err *err);
/* Its values as float32: @count must be theirs. */
enum status hdf5_read(const struct hdf5 *file, const char *place, float *out, size_t count,
		      struct err *err);

/* ---- writing --------------------------------------------------------------------------------- */

/* Groups on the way to @place are made where they are missing. */
enum status hdf5_put_group(struct hdf5 *file, const char *place, struct err *err);
enum status hdf5_put_text(struct hdf5 *file, const char *place, const char *key, const char *text,
			  struct err *err);
/* As Keras does: a list that is too long for an object's header is cut into KEY0, KEY1 ... */
enum status hdf5_put_texts(struct hdf5 *file, const char *place, const char *key,
			   const char *const *items, int count, struct err *err);
enum status hdf5_put(struct hdf5 *file, const char *place, const struct hdf5_shape *shape,
		     const float *values, struct err *err);
/* The file's bytes: *@out is the caller's (mem_free). The same content gives the same bytes. */
enum status hdf5_bytes(struct hdf5 *file, char **out, size_t *length, struct err *err);

#endif /* HDF5_FILE_H */
