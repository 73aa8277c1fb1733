/*
 * See wire_text.h.
 */
#include "support/wire_text.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "support/support.h"

enum {
	WIRE_VARINT = 0,
	WIRE_FIXED64 = 1,
	WIRE_BYTES = 2
};

static void add_varint(struct str *out, uint64_t value)
{
	for (; value > 0x7f; value >>= 7)
		str_add_bytes(out, &(char){(char)(value | 0x80)}, 1);
	str_add_bytes(out, &(char){(char)value}, 1);
}

static void add_fixed(struct str *out, uint64_t value)
{
	value = htole64(value);
	str_add_bytes(out, (const char *)&value, sizeof(value));
}

static void add_bytes(struct str *out, uint64_t number, const struct str *bytes)
{
	wire_bytes(out, number, str_peek(bytes), bytes->length);
}

static void skip_blanks(const char **at)
{
	for (;;) {
		*at += strspn(*at, " \t\n");
		if (**at != '#')
			return;
		*at += strcspn(*at, "\n");
	}
}

static uint64_t read_number(const char **at)
{
	char *end;
	const uint64_t value =
		**at == '-' ? (uint64_t)strtoll(*at, &end, 10) : strtoull(*at, &end, 10);

	if (end == *at)
		fail_msg("no number: %.40s", *at);
	*at = end;
	return value;
}

static void add_packed(struct str *out, uint64_t number, const char **at)
{
	const bool fixed = **at == '=';
	struct str packed = {0};

	*at += fixed;
	for (skip_blanks(at); **at != ']'; skip_blanks(at)) {
		if (fixed)
			add_fixed(&packed, read_number(at));
		else
			add_varint(&packed, read_number(at));
	}
	++*at;
	add_bytes(out, number, &packed);
	str_free(&packed);
}

static void add_value(struct str *out, uint64_t number, const char **at)
{
	const size_t length = strcspn(*at, " \n");
	struct str bytes = {0};

	if (**at == '"') {
		const size_t size = strcspn(*at + 1, "\"");

		str_add_bytes(&bytes, *at + 1, size);
		add_bytes(out, number, &bytes);
		*at += size + 2;
	} else if (**at == '?') {
		for (++*at; **at > ' '; *at += 2)
			str_add_bytes(
				&bytes,
				&(char){(char)strtoul((char[]){(*at)[0], (*at)[1], 0}, NULL, 16)},
				1);
		add_bytes(out, number, &bytes);
	} else if (**at == '=') {
		add_varint(out, number << 3 | WIRE_FIXED64);
		++*at;
		add_fixed(out, read_number(at));
	} else if (memchr(*at, '.', length)) {
		const double real = strtod(*at, NULL);
		uint64_t bits;

		memcpy(&bits, &real, sizeof(bits));
		add_varint(out, number << 3 | WIRE_FIXED64);
		add_fixed(out, bits);
		*at += length;
	} else {
		add_varint(out, number << 3 | WIRE_VARINT);
		add_varint(out, read_number(at));
	}
	str_free(&bytes);
}

static void add_message(struct str *out, const char **at, bool inner);

static void add_inner(struct str *out, uint64_t number, const char **at, bool deflated)
{
	struct str message = {0}, packed = {0};

	add_message(&message, at, true);
	if (deflated) {
		uLongf size = compressBound(message.length);
		unsigned char *bytes = malloc(size);

		assert_int_equal(compress(bytes, &size, (const unsigned char *)str_peek(&message),
					  message.length),
				 Z_OK);
		str_add_bytes(&packed, (const char *)bytes, size);
		free(bytes);
	}
	add_bytes(out, number, deflated ? &packed : &message);
	str_free(&message);
	str_free(&packed);
}

/* @inner: to the brace that ends it; otherwise to the end of the text. */
static void add_message(struct str *out, const char **at, bool inner)
{
	for (skip_blanks(at); **at && **at != '}'; skip_blanks(at)) {
		const uint64_t number = read_number(at);

		if (**at == ':') {
			++*at;
			skip_blanks(at);
			add_value(out, number, at);
			continue;
		}
		skip_blanks(at);
		*at += strcspn(*at, "{[") + 1;
		if ((*at)[-1] == '[')
			add_packed(out, number, at);
		else
			add_inner(out, number, at, (*at)[-2] == 'z');
	}
	if (inner != (**at == '}'))
		fail_msg("a brace: %.40s", *at);
	*at += inner;
	assert_false(out->failed);
}

void wire_bytes(struct str *out, uint64_t number, const void *bytes, size_t size)
{
	add_varint(out, number << 3 | WIRE_BYTES);
	add_varint(out, size);
	str_add_bytes(out, bytes, size);
}

void wire_text(struct str *out, const char *text)
{
	add_message(out, &text, false);
}
