/*
 * Writer of NumPy's .npz files, atomic as fs_write(). The same values give the same bytes;
 * numpy.load() reads them. Sizes beyond the limits of zip use zip64.
 *
 * One thread per writer. Memory use does not depend on the number of values.
 */
#ifndef COMMON_NPZ_WRITER_H
#define COMMON_NPZ_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "common/dtype.h"
#include "common/fs.h"
#include "common/str.h"

#define NPZ_WRITER_DIMS 10
#define NPZ_NAME_SIZE   4096 /* bytes of an array's name, including the final 0 */

struct npz_member {
	const char *name; /* without ".npy"; UTF-8 */
	enum dtype type;
	int ndim; /* 0 .. NPZ_WRITER_DIMS */
	int64_t dim[NPZ_WRITER_DIMS];
};

struct npz_writer {
	struct fs_writer file;
	struct str directory; /* central directory of the members so far */
	uint64_t at;          /* bytes written */
	uint64_t members;
	const char *path; /* borrowed, like err */
	struct err *err;
	/* The member being written. */
	uint64_t local, left; /* offset of its header; bytes of values still to come */
	size_t entry;         /* offset of its entry in the directory */
	uint32_t crc;         /* of its bytes so far */
};

/* After a failure there is nothing to close. */
enum status npz_writer_open(struct npz_writer *writer, const char *path, struct err *err);

/* Write the @count floats of @member (DTYPE_FLOAT32), in C order. */
enum status npz_writer_put(struct npz_writer *writer, const struct npz_member *member,
			   const float *values, size_t count);

/* The same in pieces: begin, the bytes of the values (little-endian, C order, @bytes in total),
 * end. Regular files only: a device or pipe, which cannot be patched later, is ST_INVALID. */
enum status npz_writer_begin(struct npz_writer *writer, const struct npz_member *member,
			     uint64_t bytes);
enum status npz_writer_data(struct npz_writer *writer, const void *data, size_t length);
enum status npz_writer_end(struct npz_writer *writer);

/* Write a member that is not an array, under its full name: the JSON files of a .keras archive. */
enum status npz_writer_file(struct npz_writer *writer, const char *name, const char *data,
			    size_t length);

/* Finish the file. @status is the result so far: unless ST_OK, drop the file and return @status. */
enum status npz_writer_close(struct npz_writer *writer, enum status status);

#endif /* COMMON_NPZ_WRITER_H */
