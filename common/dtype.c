/*
 * Types of tensor elements: see dtype.h.
 */
#include "common/dtype.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"

/* ---- one value ------------------------------------------------------------------------------- */

static double from_half(uint16_t bits)
{
	const int exponent = bits >> 10 & 31, fraction = bits & 1023;
	const double value = exponent == 31  ? (fraction ? (double)NAN : (double)INFINITY)
			     : exponent == 0 ? ldexp(fraction, -24)
					     : ldexp(1024 + fraction, exponent - 25);

	return bits & 0x8000 ? -value : value;
}

static float from_bfloat(uint16_t half)
{
	const uint32_t bits = (uint32_t)half << 16;
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static float narrow(double value)
{
	const double size = fabs(value);

	if (size > (double)FLT_MAX && size < (double)INFINITY)
		value = copysign((double)FLT_MAX, value);
	else if (size > 0 && size < (double)FLT_TRUE_MIN)
		value = copysign((double)FLT_TRUE_MIN, value);
	return (float)value;
}

/* ---- the types ------------------------------------------------------------------------------- */

/* For each type: its value as a double, and a loop that converts to float. */
#define CONVERT(name, type, as_double, as_float)                                                   \
	static double read_##name(const void *data)                                                \
	{                                                                                          \
		type value;                                                                        \
                                                                                                   \
		memcpy(&value, data, sizeof(value));                                               \
		return (double)(as_double);                                                        \
	}                                                                                          \
	static void floats_##name(float *out, const void *values, size_t count)                    \
	{                                                                                          \
		const unsigned char *data = values;                                                \
                                                                                                   \
		for (size_t i = 0; i < count; i++) {                                               \
			type value;                                                                \
                                                                                                   \
			memcpy(&value, data + i * sizeof(value), sizeof(value));                   \
			out[i] = (float)(as_float);                                                \
		}                                                                                  \
	}
CONVERT(float32, float, value, value)
CONVERT(float16, uint16_t, from_half(value), from_half(value))
CONVERT(bfloat16, uint16_t, from_bfloat(value), from_bfloat(value))
CONVERT(float64, double, value, narrow(value))
CONVERT(int8, int8_t, value, value)
CONVERT(uint8, uint8_t, value, value)
CONVERT(int16, int16_t, value, value)
CONVERT(int32, int32_t, value, value)
CONVERT(int64, int64_t, value, value)
CONVERT(bool, uint8_t, value != 0, value != 0)

static const struct {
	const char *name, *npy;
	int bytes;
	double (*read)(const void *data);
	void (*floats)(float *out, const void *values, size_t count);
} types[] = {
	[DTYPE_FLOAT32] = {"float32", "<f4", 4, read_float32, floats_float32},
	[DTYPE_FLOAT16] = {"float16", "<f2", 2, read_float16, floats_float16},
	[DTYPE_BFLOAT16] = {"bfloat16", "<V2", 2, read_bfloat16, floats_bfloat16},
	[DTYPE_FLOAT64] = {"float64", "<f8", 8, read_float64, floats_float64},
	[DTYPE_INT8] = {"int8", "|i1", 1, read_int8, floats_int8},
	[DTYPE_UINT8] = {"uint8", "|u1", 1, read_uint8, floats_uint8},
	[DTYPE_INT16] = {"int16", "<i2", 2, read_int16, floats_int16},
	[DTYPE_INT32] = {"int32", "<i4", 4, read_int32, floats_int32},
	[DTYPE_INT64] = {"int64", "<i8", 8, read_int64, floats_int64},
	[DTYPE_BOOL] = {"bool", "|b1", 1, read_bool, floats_bool},
};
_Static_assert(ARRAY_LEN(types) == DTYPES, "table out of step");

const char *dtype_name(enum dtype dtype)
{
	return types[dtype].name;
}

int dtype_bytes(enum dtype dtype)
{
	return types[dtype].bytes;
}

const char *dtype_npy(enum dtype dtype)
{
	return types[dtype].npy;
}

enum dtype dtype_find(const char *name)
{
	int dtype = 0;

	while (dtype < DTYPES && (!name || strcmp(name, types[dtype].name) != 0))
		dtype++;
	return (enum dtype)dtype;
}

double dtype_read(enum dtype dtype, const void *value)
{
	return types[dtype].read(value);
}

void dtype_to_float(enum dtype dtype, float *out, const void *values, size_t count)
{
	types[dtype].floats(out, values, count);
}
