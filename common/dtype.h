/*
 * Types of tensor elements: names, sizes, and conversion to float and double. Values are
 * little-endian and need no alignment.
 *
 * Pure functions: any thread.
 */
#ifndef COMMON_DTYPE_H
#define COMMON_DTYPE_H

#include <stddef.h>
#include <stdint.h>

/* In the order of enum ips_outfeed_dtype. */
enum dtype {
	DTYPE_FLOAT32,
	DTYPE_FLOAT16,  /* IEEE binary16 */
	DTYPE_BFLOAT16, /* the upper 16 bits of a float32 */
	DTYPE_FLOAT64,
	DTYPE_INT8,
	DTYPE_UINT8,
	DTYPE_INT16,
	DTYPE_INT32,
	DTYPE_INT64,
	DTYPE_BOOL, /* a byte: 0 is false */
	DTYPES
};

const char *dtype_name(enum dtype dtype); /* "float32", as in numpy and PyTorch */
int dtype_bytes(enum dtype dtype);

/* The type string of .npy files. numpy has no bfloat16: two bytes without a type, as ml_dtypes
 * writes them. */
const char *dtype_npy(enum dtype dtype);

/* Return the type of @name, or DTYPES if it is unknown or NULL. */
enum dtype dtype_find(const char *name);

double dtype_read(enum dtype dtype, const void *value);

/*
 * Convert @count values to the nearest floats. A finite double or integer stays finite and keeps
 * its sign: beyond the range of float it becomes the largest or the smallest float of that sign, so
 * counts of zeros, signs, infinities and NaN are those of the values.
 */
void dtype_to_float(enum dtype dtype, float *out, const void *values, size_t count);

#endif /* COMMON_DTYPE_H */
