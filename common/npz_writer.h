/*
 * Writing NumPy's .npz: arrays one after the other, whole or not at all. The same values give the
 * same bytes; numpy.load() reads them. Any size: beyond what a zip archive holds it is a zip64 one.
 *
 * One thread per writer. Memory does not grow with the values.
 */
#ifndef COMMON_NPZ_WRITER_H
#define COMMON_NPZ_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "common/fs.h"
#include "common/str.h"

#define NPZ_WRITER_DIMS 10
#define NPZ_NAME_SIZE   4096 /* bytes of an array's name, with the 0 */

enum npz_type {
	NPZ_FLOAT32,
	NPZ_FLOAT16,
	NPZ_INT64,
	NPZ_TYPES
};

struct npz_member {
	const char *name; /* without ".npy"; UTF-8 */
	enum npz_type type;
	int ndim; /* 0 .. NPZ_WRITER_DIMS */
	int64_t dim[NPZ_WRITER_DIMS];
};

struct npz_writer {
	struct fs_writer file;
	struct str directory; /* of the members so far */
	uint64_t at;          /* bytes written */
	uint64_t members;
	const char *path; /* borrowed, like err */
	struct err *err;
	/* Of the member that is being written. */
	uint64_t local, left; /* where its header is; bytes of values to come */
	size_t entry;         /* where it is in the directory */
	uint32_t crc;         /* so far */
};

/* On failure there is nothing to close. */
enum status npz_writer_open(struct npz_writer *writer, const char *path, struct err *err);

/* The @count floats of @member (NPZ_FLOAT32), in C order. */
enum status npz_writer_put(struct npz_writer *writer, const struct npz_member *member,
			   const float *values, size_t count);

/* The same piece by piece: begin, the values' bytes (little-endian, C order, @bytes in all), end.
 * Only to a file: a device or pipe, where nothing can be written once more, is ST_INVALID. */
enum status npz_writer_begin(struct npz_writer *writer, const struct npz_member *member,
			     uint64_t bytes);
enum status npz_writer_data(struct npz_writer *writer, const void *data, size_t length);
enum status npz_writer_end(struct npz_writer *writer);

/* A member that is no array, with a name of its own: of a .keras. */
enum status npz_writer_file(struct npz_writer *writer, const char *name, const char *data,
			    size_t length);

/* @status: what came of it so far; anything but ST_OK is returned, and the file dropped. */
enum status npz_writer_close(struct npz_writer *writer, enum status status);

#endif /* COMMON_NPZ_WRITER_H */
