/*
 * The wire format of protobuf, for formats that are one large message: its top-level fields are
 * read one after another through a window that slides over the file; a field is then walked in
 * memory. Nothing is copied and nothing is allocated but the window.
 *
 * Malformed bytes never read beyond their message: a walk ends as import_wire_broken() says, a
 * stream with `why`.
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

/* A message in memory, from the next field on. Where that is malformed, a walk leaves `end` NULL.
 * Two words, which a function is given in registers: in memory they are written one by one and
 * copied together, for which a processor waits. */
struct import_wire {
	const unsigned char *at, *end;
};

static inline bool import_wire_broken(const struct import_wire *wire)
{
	return wire->at && !wire->end;
}

struct import_wire_field {
	uint32_t number; /* from 1 */
	enum import_wire_type type;
	uint64_t
		value; /* of varint, fixed64 and fixed32; of bytes that were too large, their number */
	struct import_wire bytes; /* of bytes; `at` NULL: too large, skipped */
};

/* A number, and what is behind it; NULL: there is none. Two words, which a function returns in
 * registers. */
struct import_varint {
	uint64_t value;
	const unsigned char *behind;
};

/* Read a varint of at most 10 bytes, all before @end. */
struct import_varint report__import_wire_varint(const unsigned char *at, const unsigned char *end);
/* import_wire_next() of every kind of field. */
bool report__import_wire_field(struct import_wire *wire, struct import_wire_field *out);

#define IMPORT_WIRE_INLINE static inline __attribute__((always_inline))

/* The same with copies, so that nothing has the address of @wire or @out. */
IMPORT_WIRE_INLINE bool import_wire_any(struct import_wire *wire, struct import_wire_field *out)
{
	struct import_wire_field field = {.number = 0};
	struct import_wire rest = *wire;
	const bool more = report__import_wire_field(&rest, &field);

	*wire = rest;
	*out = field;
	return more;
}

/* Read the next field of a message; false: there is none, or it is malformed. Most
 * fields are varints and bytes with numbers below 16: those are read here. This is inlined, and
 * takes no address of @wire or @out, so that a walk has both in registers. In memory their members
 * would be written one by one and copied together, for which a processor waits each time. */
IMPORT_WIRE_INLINE bool import_wire_next(struct import_wire *wire, struct import_wire_field *out)
{
	const unsigned char *at = wire->at, *const end = wire->end;

	if (at == end || !end)
		return false;
	if (end - at >= 2 && at[0] >= 8 && at[0] < 0x80 &&
	    ((at[0] & 7) == IMPORT_WIRE_VARINT || (at[0] & 7) == IMPORT_WIRE_BYTES)) {
		const struct import_varint read = at[1] < 0x80
							  ? (struct import_varint){at[1], at + 2}
							  : report__import_wire_varint(at + 1, end);

		if (read.behind && (at[0] & 7) == IMPORT_WIRE_VARINT) {
			*out = (struct import_wire_field){.number = at[0] >> 3,
							  .type = IMPORT_WIRE_VARINT,
							  .value = read.value};
			wire->at = read.behind;
			return true;
		}
		if (read.behind && read.value <= (uint64_t)(end - read.behind)) {
			wire->at = read.behind + read.value;
			*out = (struct import_wire_field){
				.number = at[0] >> 3,
				.type = IMPORT_WIRE_BYTES,
				.bytes = {read.behind, read.behind + read.value}};
			return true;
		}
	}
	return import_wire_any(wire, out);
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
