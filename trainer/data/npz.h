/*
 * NumPy's .npz as a set of named arrays of floats, for weights.
 *
 * The file is read whole; arrays are unpacked one at a time, directly to their destination. Sizes
 * that the file states are checked before use: a small file cannot make the reader allocate much
 * memory.
 */
#ifndef NPZ_H
#define NPZ_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define NPZ_DIMS 8

struct npz; /* opaque; for one thread */

struct npz_array {
	const char *name; /* without ".npy"; owned by the npz */
	int ndim;
	int64_t dim[NPZ_DIMS];
};

/* Open @path, or parse borrowed @bytes, for which @path is only a name. Reads the headers of all
 * arrays: each must be float16, float32 or float64, little-endian, in C order. */
enum status npz_open(struct npz **out, const char *path, struct err *err);
enum status npz_parse(struct npz **out, const char *path, const void *bytes, size_t length,
		      struct err *err);
void npz_close(struct npz *npz); /* accepts NULL */

/* Return the arrays in the file's order. */
const struct npz_array *npz_arrays(const struct npz *npz, int *count);

/* Read the @count values of array @index as float32; @count must be its size. On failure part of
 * @out may be written. */
enum status npz_read(const struct npz *npz, int index, float *out, size_t count, struct err *err);

#endif /* NPZ_H */
