/*
 * The wire format of protobuf, for formats that are one large message: its top-level fields are
 * read one after another through a window that slides over the file; a field is then walked in
 * memory. Nothing is copied and nothing is allocated but the window.
 *
 * Malformed bytes never read beyond their message: a walk ends with `broken`, a stream with `why`.
 *
 * Threading: one thread. Bytes of a field are valid until the next one of its stream.
 */
#ifndef REPORT_IMPORT_WIRE_H
#define REPORT_IMPORT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/err.h"
#include "reports/import/report_import_input.h"

enum import_wire_type {
	IMPORT_WIRE_VARINT = 0,
	IMPORT_WIRE_FIXED64 = 1,
	IMPORT_WIRE_BYTES = 2,
	IMPORT_WIRE_FIXED32 = 5
};

/* A message in memory, from the next field on. */
struct import_wire {
	const unsigned char *at, *end;
	bool broken;
};

struct import_wire_field {
	uint32_t number; /* from 1 */
	enum import_wire_type type;
	uint64_t
		value; /* of varint, fixed64 and fixed32; of bytes that were too large, their number */
	struct import_wire bytes; /* of bytes; `at` NULL: too large, skipped */
};

/* import_wire_next() of every kind of field. */
bool report__import_wire_field(struct import_wire *wire, struct import_wire_field *out);

/* Read the next field of a message; false: there is none, or (`broken`) it is malformed. Most
 * fields are numbers below 16 and short: those are read here, which takes half of the time. */
static inline bool import_wire_next(struct import_wire *wire, struct import_wire_field *out)
{
	const unsigned char *at = wire->at;
	const size_t left = (size_t)(wire->end - at);
	const uint32_t type = left < 2 ? UINT32_MAX : at[0] & 7u;

	if (wire->broken || left < 2 || at[0] < 8 || at[0] > 127 || at[1] > 127 ||
	    (type != IMPORT_WIRE_VARINT && (type != IMPORT_WIRE_BYTES || at[1] > left - 2)))
		return report__import_wire_field(wire, out);
	out->number = at[0] >> 3;
	out->type = (enum import_wire_type)type;
	out->value = type == IMPORT_WIRE_VARINT ? at[1] : 0;
	out->bytes = (struct import_wire){NULL, NULL, false};
	wire->at = at + 2;
	if (type == IMPORT_WIRE_BYTES) {
		out->bytes.at = at + 2;
		out->bytes.end = at + 2 + at[1];
		wire->at = out->bytes.end;
	}
	return true;
}

static inline int64_t import_wire_int(const struct import_wire_field *field)
{
	return (int64_t)field->value;
}

static inline double import_wire_double(const struct import_wire_field *field)
{
	double value;

	memcpy(&value, &field->value, sizeof(value));
	return value;
}

static inline size_t import_wire_size(const struct import_wire *bytes)
{
	return (size_t)(bytes->end - bytes->at);
}

/* The file's own message. Zeroed but for `input` and `most`, the most bytes of a field that is
 * read whole; larger ones are skipped. */
struct import_stream {
	struct import_input *input;
	size_t most;
	unsigned char *window;
	size_t at, used, capacity;
	uint64_t offset; /* in the content, of the window's first byte */
	uint64_t begun;  /* of the field that was read last */
	const char *why; /* what is malformed at `begun`; NULL: nothing */
};

/* Read the next top-level field; *@more false: the file ends, or (`why`) is malformed. */
enum status report__import_stream_next(struct import_stream *stream, bool *more,
				       struct import_wire_field *out, struct err *err);
void report__import_stream_fini(struct import_stream *stream);

#endif /* REPORT_IMPORT_WIRE_H */
