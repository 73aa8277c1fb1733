/*
 * Values in files: streams of stored, gzipped or deflated bytes, unpacked on demand; and the
 * conversion of their types.
 *
 * Threading: a stream belongs to one thread. Ownership: the packed bytes are borrowed. Files are
 * little-endian; values are assembled byte by byte, which works on any machine.
 */
#include "trainer/data/dataset_internal.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"

/* ---- streams --------------------------------------------------------------------------------- */

static voidpf dataset_zalloc(voidpf opaque, uInt count, uInt size)
{
	(void)opaque;
	return mem_calloc(count, size);
}

static void dataset_zfree(voidpf opaque, voidpf p)
{
	(void)opaque;
	mem_free(p);
}

void dataset__stream_open(struct dataset_stream *stream, const char *name,
			  enum dataset_packing packing, const void *bytes, size_t length,
			  struct err *err)
{
	/* zlib's convention: add 16 for a gzip frame; a negative number means no frame. */
	int window = packing == DATASET_GZIP ? 16 + MAX_WBITS : -MAX_WBITS;

	*stream = (struct dataset_stream){.name = name, .in = bytes, .left = length, .err = err};
	if (packing == DATASET_STORED || err_stuck(err))
		return;
	stream->inflate.zalloc = dataset_zalloc;
	stream->inflate.zfree = dataset_zfree;
	if (inflateInit2(&stream->inflate, window) == Z_OK)
		stream->packing = packing;
	else
		err_nomem(err); /* nothing to close */
}

void dataset__stream_close(struct dataset_stream *stream)
{
	if (stream->packing != DATASET_STORED)
		inflateEnd(&stream->inflate);
	stream->packing = DATASET_STORED;
}

static size_t dataset_stream_inflate(struct dataset_stream *stream, uint8_t *out, size_t size)
{
	z_stream *z = &stream->inflate;
	size_t got = 0;

	while (got < size && !stream->ended && !err_stuck(stream->err)) {
		uInt in = stream->left < UINT_MAX ? (uInt)stream->left : UINT_MAX;
		uInt room = size - got < UINT_MAX ? (uInt)(size - got) : UINT_MAX;
		int code;

		/* zlib does not modify the bytes at next_in. */
		z->next_in = (Bytef *)(uintptr_t)stream->in;
		z->avail_in = in;
		z->next_out = out + got;
		z->avail_out = room;
		code = inflate(z, Z_NO_FLUSH);
		stream->in += in - z->avail_in;
		stream->left -= in - z->avail_in;
		got += room - z->avail_out;

		if (code == Z_STREAM_END)
			stream->ended = true;
		else if (code == Z_MEM_ERROR)
			err_nomem(stream->err);
		else if (code == Z_BUF_ERROR || (code == Z_OK && !stream->left && got < size))
			err_set(stream->err, ST_FORMAT,
				"%s: is truncated: its packed data ends early", stream->name);
		else if (code != Z_OK)
			err_set(stream->err, ST_FORMAT, "%s: its packed data is damaged (%s)",
				stream->name, z->msg ? z->msg : "zlib");
	}
	return got;
}

size_t dataset__stream_read(struct dataset_stream *stream, void *out, size_t size)
{
	size_t got = min(size, stream->left);

	if (err_stuck(stream->err))
		return 0;
	if (stream->packing != DATASET_STORED) {
		got = dataset_stream_inflate(stream, out, size);
	} else {
		memcpy(out, stream->in, got);
		stream->in += got;
		stream->left -= got;
	}
	if (stream->sums)
		stream->crc = crc32_z(stream->crc, out, got);
	return got;
}

void dataset__stream_read_all(struct dataset_stream *stream, void *out, size_t size,
			      const char *where)
{
	const size_t got = dataset__stream_read(stream, out, size);

	if (!err_stuck(stream->err) && got < size)
		err_set(stream->err, ST_FORMAT, "%s: is truncated%s", stream->name, where);
}

/* Reading past the end also makes zlib check a gzip file's checksum. */
void dataset__stream_end(struct dataset_stream *stream, size_t count)
{
	uint8_t rest;
	const size_t more = dataset__stream_read(stream, &rest, 1);

	if (err_stuck(stream->err))
		return;
	if (more || stream->left)
		err_set(stream->err, ST_FORMAT, "%s: has more bytes after its %zu values",
			stream->name, count);
	else if (stream->sums && stream->crc != stream->wanted)
		err_set(stream->err, ST_FORMAT, "%s: its checksum does not fit: it is damaged",
			stream->name);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* Return the array's number of values. */
static size_t dataset_array_alloc(struct dataset_array *array, const struct dataset_stream *stream)
{
	struct err *err = stream->err;
	const int64_t size = (int64_t)dataset__types[array->type].size;
	/* Bytes that the rest can unpack to: deflate's greatest ratio is 1032 to 1. */
	const uint64_t most = stream->packing == DATASET_STORED
				      ? stream->left
				      : ((uint64_t)stream->left + 64) * 1032;
	int64_t count = 1;

	for (int i = 0; i < array->ndim && !err_stuck(err); i++) {
		if (array->dim[i] < 1)
			err_set(err, ST_FORMAT, "%s: is empty: dimension %d is %lld", stream->name,
				i, (long long)array->dim[i]);
		else if (array->dim[i] > DATASET_ARRAY_LIMIT / size / count)
			err_set(err, ST_LIMIT, "%s: would hold more than %lld bytes", stream->name,
				(long long)DATASET_ARRAY_LIMIT);
		else
			count *= array->dim[i];
	}
	if (!err_stuck(err) && (uint64_t)(count * size) > most)
		err_set(err, ST_FORMAT, "%s: is truncated: %zu bytes cannot hold %lld values",
			stream->name, stream->left, (long long)count);
	if (err_stuck(err))
		return 0;
	array->bytes = mem_alloc((size_t)(count * size));
	if (!array->bytes)
		err_nomem(err);
	return (size_t)count;
}

void dataset__array_read(struct dataset_array *array, struct dataset_stream *stream)
{
	const size_t size = dataset__types[array->type].size;
	const size_t count = dataset_array_alloc(array, stream);
	const size_t got = dataset__stream_read(stream, array->bytes, count * size);

	if (!err_stuck(stream->err) && got < count * size)
		err_set(stream->err, ST_FORMAT, "%s: is truncated: %zu of %zu values are there",
			stream->name, got / size, count);
	dataset__stream_end(stream, count);
	if (err_stuck(stream->err)) {
		mem_free(array->bytes);
		array->bytes = NULL;
	}
}

/* ---- types ----------------------------------------------------------------------------------- */

const struct dataset_type_row dataset__types[] = {
#define X(end, name, size, whole) [DATASET_##end] = {name, size, whole},
	DATASET_TYPE_MAP(X)
#undef X
};

_Static_assert(ARRAY_LEN(dataset__types) == DATASET_TYPES, "type table out of step");

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

/* Sign-extend: the sign bit has the value -2^(n-1). */
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
	size_t size = dataset__types[type].size;
	uint64_t bits = value_bits(bytes + index * size, size);

	assert(dataset__types[type].whole);
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

/* ---- arrays of values ------------------------------------------------------------------------ */

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
