/*
 * The types of values in files, and what becomes of them.
 *
 * Threading: none. Files are little-endian, values are put together byte by byte: any machine.
 */
#include "trainer/data/dataset_internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"

static const struct type_row {
	const char *name;
	size_t size;
	bool whole;
} types[] = {
#define X(end, name, size, whole) [DATASET_##end] = {name, size, whole},
	DATASET_TYPE_MAP(X)
#undef X
};

_Static_assert(ARRAY_LEN(types) == DATASET_TYPES, "type table out of step");

const char *dataset__type_name(enum dataset_type type)
{
	return types[type].name;
}

size_t dataset__type_size(enum dataset_type type)
{
	return types[type].size;
}

bool dataset__type_whole(enum dataset_type type)
{
	return types[type].whole;
}

size_t dataset__array_count(const struct dataset_array *array)
{
	size_t count = 1;

	for (int i = 0; i < array->ndim; i++)
		count *= (size_t)array->dim[i];
	return count;
}

void dataset__array_free(struct dataset_array *array)
{
	mem_free(array->bytes);
	*array = (struct dataset_array){0};
}

/* ---- single values --------------------------------------------------------------------------- */

static inline uint64_t value_bits(const uint8_t *bytes, size_t size)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < size; i++)
		bits |= (uint64_t)bytes[i] << 8 * i;
	return bits;
}

static inline float value_u(const uint8_t *bytes, size_t size)
{
	return (float)value_bits(bytes, size);
}

/* The sign bit weighs -2^(n-1). */
static inline int64_t value_signed(uint64_t bits, size_t size)
{
	uint64_t sign = (uint64_t)1 << (8 * size - 1);

	if (!(bits & sign))
		return (int64_t)bits;
	return (int64_t)(bits - sign) - (int64_t)(sign - 1) - 1;
}

static inline float value_i(const uint8_t *bytes, size_t size)
{
	return (float)value_signed(value_bits(bytes, size), size);
}

static inline float value_f16(const uint8_t *bytes)
{
	uint32_t bits = (uint32_t)value_bits(bytes, 2);
	uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
	float value;

	if (exponent == 31)
		value = fraction ? NAN : INFINITY;
	else if (exponent == 0)
		value = (float)fraction * 0x1p-24f;
	else
		value = ldexpf((float)(fraction | 1024), (int)exponent - 25);
	return bits & 0x8000 ? -value : value;
}

static inline float value_f32(const uint8_t *bytes)
{
	uint32_t bits = (uint32_t)value_bits(bytes, 4);
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static inline float value_f64(const uint8_t *bytes)
{
	uint64_t bits = value_bits(bytes, 8);
	double value;

	memcpy(&value, &bits, sizeof(value));
	return (float)value;
}

int64_t dataset__whole(enum dataset_type type, const uint8_t *bytes, size_t index)
{
	size_t size = types[type].size;
	uint64_t bits = value_bits(bytes + index * size, size);

	assert(types[type].whole);
	switch (type) {
	case DATASET_I8:
	case DATASET_I16:
	case DATASET_I32:
	case DATASET_I64:
		return value_signed(bits, size);
	case DATASET_BOOL:
		return bits != 0;
	default:
		return bits > INT64_MAX ? INT64_MAX : (int64_t)bits;
	}
}

/* ---- many ------------------------------------------------------------------------------------ */

#define VALUES(end, expression)                                                                    \
	static void values_##end(float *out, const uint8_t *bytes, size_t count)                   \
	{                                                                                          \
		for (size_t i = 0; i < count; i++)                                                 \
			out[i] = expression;                                                       \
	}

VALUES(U8, (float)bytes[i])
VALUES(BOOL, bytes[i] ? 1.0f : 0.0f)
VALUES(I8, value_i(bytes + i, 1))
VALUES(U16, value_u(bytes + i * 2, 2))
VALUES(I16, value_i(bytes + i * 2, 2))
VALUES(U32, value_u(bytes + i * 4, 4))
VALUES(I32, value_i(bytes + i * 4, 4))
VALUES(U64, value_u(bytes + i * 8, 8))
VALUES(I64, value_i(bytes + i * 8, 8))
VALUES(F16, value_f16(bytes + i * 2))
VALUES(F32, value_f32(bytes + i * 4))
VALUES(F64, value_f64(bytes + i * 8))

void dataset__to_floats(float *out, enum dataset_type type, const uint8_t *bytes, size_t count)
{
	static void (*const table[])(float *, const uint8_t *, size_t) = {
#define X(end, name, size, whole) [DATASET_##end] = values_##end,
		DATASET_TYPE_MAP(X)
#undef X
	};

	table[type](out, bytes, count);
}
