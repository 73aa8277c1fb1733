/*
 * Read a stream of protobuf messages front to back. See report_import_wire.h.
 */
#include "reports/import/report_import_wire.h"

#include <endian.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"

#define WINDOW ((size_t)1 << 20)

/* ---- fields ---------------------------------------------------------------------------------- */

/* Move the lower 7 bits of 8 bytes together: in pairs of bytes, in pairs of these, then of both. */
static uint64_t join_bytes(uint64_t bytes)
{
	bytes = (bytes & 0x007f007f007f007f) | (bytes & 0x7f007f007f007f00) >> 1;
	bytes = (bytes & 0x00003fff00003fff) | (bytes & 0x3fff00003fff0000) >> 2;
	return (bytes & 0x000000000fffffff) | (bytes & 0x0fffffff00000000) >> 4;
}

/* The highest bit of a byte says that another byte follows. Eight bytes are read at once where
 * there are as many: that takes half of the steps of a loop over the bytes of a time. */
struct import_varint report__import_wire_varint(const unsigned char *at, const unsigned char *end)
{
	uint64_t value = 0;
	unsigned shift = 0;

	if (end - at >= 8) {
		uint64_t bytes, ends;

		memcpy(&bytes, at, sizeof(bytes));
		bytes = le64toh(bytes);
		ends = ~bytes & 0x8080808080808080;
		if (ends != 0)
			return (struct import_varint){join_bytes(bytes & (ends ^ (ends - 1))),
						      at + __builtin_ctzll(ends) / 8 + 1};
		value = join_bytes(bytes);
		shift = 56;
		at += 8;
	}
	for (; shift < 70 && at < end; shift += 7) {
		const uint64_t byte = *at++;

		value |= (byte & 0x7f) << shift;
		if (byte < 0x80)
			return (struct import_varint){value, at};
	}
	return (struct import_varint){0, NULL};
}

/* The same, going on behind it. */
static bool read_varint(const unsigned char **at, const unsigned char *end, uint64_t *out)
{
	const struct import_varint read = report__import_wire_varint(*at, end);

	if (read.behind) {
		*at = read.behind;
		*out = read.value;
	}
	return read.behind != NULL;
}

bool report__import_wire_field(struct import_wire *wire, struct import_wire_field *out)
{
	const unsigned char *const end = wire->end;
	uint64_t key, length;

	if (wire->at == end || !end)
		return false;
	wire->end = NULL; /* until the field is read */
	if (!read_varint(&wire->at, end, &key) || key >> 3 == 0 || key >> 32 != 0)
		return false;
	*out = (struct import_wire_field){.number = (uint32_t)(key >> 3),
					  .type = (enum import_wire_type)(key & 7)};
	switch (out->type) {
	case IMPORT_WIRE_VARINT:
		if (!read_varint(&wire->at, end, &out->value))
			return false;
		break;
	case IMPORT_WIRE_FIXED64:
	case IMPORT_WIRE_FIXED32:
		length = out->type == IMPORT_WIRE_FIXED64 ? 8 : 4;
		if ((uint64_t)(end - wire->at) < length)
			return false;
		memcpy(&out->value, wire->at, length);
		out->value = le64toh(out->value);
		wire->at += length;
		break;
	case IMPORT_WIRE_BYTES:
		if (!read_varint(&wire->at, end, &length) || length > (uint64_t)(end - wire->at))
			return false;
		out->bytes.at = wire->at;
		out->bytes.end = wire->at + length;
		wire->at += length;
		break;
	default: /* groups, which none of these formats has */
		return false;
	}
	wire->end = end;
	return true;
}

/* ---- the stream ------------------------------------------------------------------------------ */

void report__import_stream_fini(struct import_stream *stream)
{
	mem_free(stream->window);
	*stream = (struct import_stream){0};
}

/* Have @size bytes at window[at], unless the file ends before; the window slides and grows. */
static enum status fill(struct import_stream *stream, size_t size, struct err *err)
{
	enum status status = ST_OK;
	size_t got = 1;

	if (stream->used - stream->at >= size)
		return ST_OK;
	if (stream->at > 0)
		memmove(stream->window, stream->window + stream->at, stream->used - stream->at);
	stream->offset += stream->at;
	stream->used -= stream->at;
	stream->at = 0;
	size = max(size, WINDOW);
	if (size > stream->capacity) {
		unsigned char *larger = mem_alloc(size);

		if (!larger)
			return err_nomem(err);
		if (stream->used > 0)
			memcpy(larger, stream->window, stream->used);
		mem_free(stream->window);
		stream->window = larger;
		stream->capacity = size;
	}
	while (status == ST_OK && got > 0 && stream->used < stream->capacity) {
		status = report__import_input_read(stream->input,
						   (char *)stream->window + stream->used,
						   stream->capacity - stream->used, &got, err);
		stream->used += status == ST_OK ? got : 0;
	}
	return status;
}

static enum status skip(struct import_stream *stream, uint64_t length, struct err *err)
{
	while (length > 0) {
		size_t here = stream->used - stream->at;
		enum status status;

		if (here > length)
			here = (size_t)length;
		stream->at += here;
		length -= here;
		if (length == 0)
			break;
		status = fill(stream, 1, err);
		if (status != ST_OK)
			return status;
		if (stream->used == stream->at) {
			stream->why = "it ends within a message";
			break;
		}
	}
	return ST_OK;
}

enum status report__import_stream_next(struct import_stream *stream, bool *more,
				       struct import_wire_field *out, struct err *err)
{
	/* a key and a length */
	enum status status = stream->used - stream->at < 20 ? fill(stream, 20, err) : ST_OK;
	struct import_wire wire, rest;
	uint64_t key, length;

	*more = false;
	if (status != ST_OK)
		return status;
	stream->begun = stream->offset + stream->at;
	wire = (struct import_wire){stream->window + stream->at, stream->window + stream->used};
	if (wire.at == wire.end)
		return ST_OK;
	/* Nearly always the window has the whole field. */
	rest = wire;
	if (import_wire_next(&rest, out) &&
	    (out->type != IMPORT_WIRE_BYTES || import_wire_size(&out->bytes) <= stream->most)) {
		stream->at = (size_t)(rest.at - stream->window);
		*more = true;
		return ST_OK;
	}
	if (!read_varint(&wire.at, wire.end, &key) || key >> 3 == 0 || key >> 32 != 0 ||
	    ((key & 7) != IMPORT_WIRE_VARINT && (key & 7) != IMPORT_WIRE_FIXED64 &&
	     (key & 7) != IMPORT_WIRE_FIXED32 && (key & 7) != IMPORT_WIRE_BYTES)) {
		stream->why = "no field of a message";
		return ST_OK;
	}
	if ((key & 7) != IMPORT_WIRE_BYTES) {
		stream->at = (size_t)(rest.at - stream->window);
		stream->why = "it ends within a message";
		return ST_OK;
	}
	if (!read_varint(&wire.at, wire.end, &length) || length > INT64_MAX) {
		stream->why = "a length that is none";
		return ST_OK;
	}
	stream->at = (size_t)(wire.at - stream->window);
	*out = (struct import_wire_field){.number = (uint32_t)(key >> 3),
					  .type = IMPORT_WIRE_BYTES};
	if (length > stream->most) {
		out->value = length; /* too large to be read: skipped */
		*more = true;
		return skip(stream, length, err);
	}
	status = fill(stream, (size_t)length, err);
	if (status != ST_OK)
		return status;
	if (stream->used - stream->at < length) {
		stream->why = "it ends within a message";
		return ST_OK;
	}
	out->bytes.at = stream->window + stream->at;
	out->bytes.end = out->bytes.at + length;
	stream->at += (size_t)length;
	*more = true;
	return ST_OK;
}
