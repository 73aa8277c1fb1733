/*
 * Parse JSON values, and convert tokens to times, numbers and texts. See report_import_json.h.
 *
 * Hand-written because the available libraries either build a tree (cJSON, 39 MB/s) or need the
 * whole text in memory; docs/design.md compares them. Most time is spent in strings, so these are
 * scanned 16 bytes at a time if the processor supports it.
 */
#include "reports/import/report_import_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

static bool fail(struct import_reader *reader, const char *at, const char *why)
{
	reader->at = at;
	reader->why = why;
	return false;
}

/* Handle the end of the text, or a wrong character or 0 byte in it. */
static bool fail_or_more(struct import_reader *reader, const char *at, const char *why)
{
	if (at >= reader->end) {
		reader->more = true;
		return false;
	}
	return fail(reader, at, why);
}

char report__import_peek(struct import_reader *reader)
{
	while (*reader->at == ' ' || *reader->at == '\n' || *reader->at == '\r' ||
	       *reader->at == '\t')
		reader->at++;
	if (reader->at >= reader->end) {
		reader->more = true;
		return 0;
	}
	return *reader->at;
}

/* Find the first quote or backslash from @at on. A result at or beyond @end means none. */
static const char *find_quote(const char *at, const char *end)
{
#if defined(__SSE2__)
	const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\');

	/* May read up to 15 bytes beyond @end, within the padding. */
	for (; at < end; at += 16) {
		__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
		int mask = _mm_movemask_epi8(
			_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, slash)));

		if (mask != 0)
			return at + __builtin_ctz((unsigned)mask);
	}
	return end;
#else
	while (at < end && *at != '"' && *at != '\\')
		at++;
	return at;
#endif
}

/* Find the closing quote; @at is behind the opening one. NULL: the text ends first. */
static const char *string_end(const char *at, const char *end, bool *escaped)
{
	for (;;) {
		at = find_quote(at, end);
		if (at >= end)
			return NULL;
		if (*at == '"')
			return at;
		*escaped = true;
		at += 2;
	}
}

/* Parse a value that must be a text. */
static bool read_text(struct import_reader *reader, struct import_token *out)
{
	const char *close;

	if (report__import_peek(reader) != '"')
		return fail_or_more(reader, reader->at, "a text in quotes is expected");
	*out = (struct import_token){.at = reader->at + 1, .kind = IMPORT_TEXT};
	close = string_end(out->at, reader->end, &out->escaped);
	if (!close) {
		reader->more = true;
		return false;
	}
	out->length = (size_t)(close - out->at);
	reader->at = close + 1;
	return true;
}

/* Skip to behind the bracket that closes the one at reader->at. */
static bool skip_nested(struct import_reader *reader)
{
	uint64_t objects[IMPORT_DEPTH / 64] = {0}; /* a bit per level: the level is an object */
	const char *at = reader->at;
	bool escaped;
	int depth = 0;

	do {
		char c = *at;
		uint64_t bit = (uint64_t)1 << (depth & 63);

		if (c == '"') {
			at = string_end(at + 1, reader->end, &escaped);
			if (!at) {
				reader->more = true;
				return false;
			}
		} else if (c == '{' || c == '[') {
			if (depth == IMPORT_DEPTH)
				return fail(reader, at, "brackets are nested too deeply");
			objects[depth / 64] =
				c == '{' ? objects[depth / 64] | bit : objects[depth / 64] & ~bit;
			depth++;
		} else if (c == '}' || c == ']') {
			depth--;
			bit = (uint64_t)1 << (depth & 63);
			if ((c == '}') != ((objects[depth / 64] & bit) != 0))
				return fail(reader, at, "the wrong bracket closes");
		} else if (c == 0) {
			return fail_or_more(reader, at, "a byte 0");
		}
		at++;
	} while (depth > 0);
	reader->at = at;
	return true;
}

static const unsigned char bare_ends[256] = {
	[0] = 1,   ['\t'] = 1, ['\n'] = 1, ['\r'] = 1, [' '] = 1, ['"'] = 1,
	[','] = 1, [':'] = 1,  ['['] = 1,  [']'] = 1,  ['{'] = 1, ['}'] = 1,
};

/* Parse null, true, false, or anything that may be a number. */
static bool parse_bare_word(struct import_reader *reader, struct import_token *out)
{
	const char *at = reader->at;

	while (!bare_ends[(unsigned char)*at])
		at++;
	if (at >= reader->end) {
		reader->more = true;
		return false;
	}
	*out = (struct import_token){.at = reader->at, .length = (size_t)(at - reader->at)};
	if (out->length == 0)
		return fail(reader, at, "a value is expected");
	if (report__import_is(out, "null"))
		out->kind = IMPORT_NULL;
	else if (report__import_is(out, "true"))
		out->kind = IMPORT_TRUE;
	else if (report__import_is(out, "false"))
		out->kind = IMPORT_FALSE;
	else if (strchr("+-.0123456789NnIi", *out->at))
		out->kind = IMPORT_NUMBER;
	else
		return fail(reader, out->at, "a word that is no value");
	reader->at = at;
	return true;
}

bool report__import_value(struct import_reader *reader, struct import_token *out)
{
	char c = report__import_peek(reader);

	if (c == '"')
		return read_text(reader, out);
	if (c != '{' && c != '[')
		return reader->more ? false : parse_bare_word(reader, out);
	*out = (struct import_token){.at = reader->at};
	out->kind = c == '{' ? IMPORT_OBJECT : IMPORT_ARRAY;
	if (!skip_nested(reader))
		return false;
	out->length = (size_t)(reader->at - out->at);
	return true;
}

bool report__import_member(struct import_reader *reader, struct import_token *key)
{
	char c = report__import_peek(reader);

	while (c == ',') {
		reader->at++;
		c = report__import_peek(reader);
	}
	if (c == '}') {
		reader->at++;
		return false;
	}
	if (reader->more)
		return false;
	if (c != '"')
		return fail(reader, reader->at, "a key in quotes or } is expected");
	if (!read_text(reader, key))
		return false;
	if (report__import_peek(reader) != ':')
		return fail_or_more(reader, reader->at, "a colon is expected");
	reader->at++;
	return true;
}

bool report__import_is(const struct import_token *token, const char *text)
{
	size_t length = strlen(text);

	return token->length == length && memcmp(token->at, text, length) == 0;
}

/* ---- values of tokens: times, numbers, texts ------------------------------------------------- */

#define EXPONENT_LIMIT 10000 /* any larger exponent gives 0 or out of range */
#define NS_DIGITS      19    /* digits of INT64_MAX */
#define US_TO_NS       3     /* power of ten */

/* A parsed decimal number: its digits (which may contain a point), and the number of digits before
 * the point. */
struct decimal {
	bool negative;
	const char *digits, *end; /* from the first non-zero digit; may contain a point */
	int whole;                /* digits before the point, exponent included; may exceed them */
};

static bool parse_exponent(const char *at, const char *end, int *out)
{
	bool negative = false;
	int value = 0;

	if (at < end && (*at == '+' || *at == '-'))
		negative = *at++ == '-';
	if (at == end)
		return false;
	for (; at < end; at++) {
		if (*at < '0' || *at > '9')
			return false;
		if (value < EXPONENT_LIMIT)
			value = value * 10 + (*at - '0');
	}
	*out = negative ? -value : value;
	return true;
}

static bool parse_decimal(const char *at, const char *end, struct decimal *out)
{
	int exponent = 0, whole = 0, digits = 0;
	bool point = false;

	*out = (struct decimal){0};
	if (at < end && (*at == '-' || *at == '+'))
		out->negative = *at++ == '-';
	for (; at < end; at++) {
		if (*at == '.' && !point) {
			point = true;
			continue;
		}
		if (*at < '0' || *at > '9')
			break;
		digits++;
		if (!out->digits && *at != '0')
			out->digits = at;
		if (!point && whole < EXPONENT_LIMIT)
			whole += out->digits != NULL;
		else if (point && whole > -EXPONENT_LIMIT)
			whole -= !out->digits;
	}
	out->end = at;
	if (digits == 0)
		return false;
	if (at < end && ((*at != 'e' && *at != 'E') || !parse_exponent(at + 1, end, &exponent)))
		return false;
	out->whole = whole + exponent;
	return true;
}

/* Read the first @count digits, padded with zeros; the following digit rounds. */
static bool round_digits(const struct decimal *decimal, int count, uint64_t *out)
{
	const char *at = decimal->digits;
	uint64_t value = 0;

	*out = 0;
	if (!at || count < 0)
		return true;
	if (count > NS_DIGITS)
		return false;
	for (int i = 0; i < count; i++) {
		at += at < decimal->end && *at == '.';
		value = value * 10 + (at < decimal->end ? (uint64_t)(*at++ - '0') : 0);
	}
	at += at < decimal->end && *at == '.';
	*out = value + (at < decimal->end && *at >= '5');
	return true;
}

static bool to_signed(uint64_t value, bool negative, int64_t *out)
{
	if (value > INT64_MAX)
		return false;
	*out = negative ? -(int64_t)value : (int64_t)value;
	return true;
}

enum import_time report__import_time(const struct import_token *token, int64_t *ns)
{
	struct decimal decimal;
	uint64_t value;

	*ns = 0;
	if (token->kind != IMPORT_NUMBER && token->kind != IMPORT_TEXT)
		return IMPORT_TIME_NONE;
	if (!parse_decimal(token->at, token->at + token->length, &decimal))
		return IMPORT_TIME_NONE;
	if (!round_digits(&decimal, decimal.whole + US_TO_NS, &value) ||
	    !to_signed(value, decimal.negative, ns))
		return IMPORT_TIME_RANGE;
	return IMPORT_TIME_GOOD;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Convert few digits with a small power of ten by one exact division or product. */
static bool exact_real(const struct decimal *decimal, double *out)
{
	static const double powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
					1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
	uint64_t value = 0;
	int digits = 0, power;

	for (const char *at = decimal->digits; at && at < decimal->end; at++) {
		if (*at == '.')
			continue;
		if (++digits > 15)
			return false;
		value = value * 10 + (uint64_t)(*at - '0');
	}
	power = decimal->whole - digits;
	if (power > 15 || power < -15)
		return false;
	*out = power < 0 ? (double)value / powers[-power] : (double)value * powers[power];
	if (decimal->negative)
		*out = -*out;
	return true;
}

static bool parse_real(const struct import_token *token, double *out)
{
	char text[512], *end;

	if (token->length >= sizeof(text))
		return false;
	memcpy(text, token->at, token->length);
	text[token->length] = 0;
	*out = strtod(text, &end);
	return *end == 0;
}

static bool is_whole(const struct import_token *token)
{
	for (size_t i = 0; i < token->length; i++) {
		if (token->at[i] == '.' || (token->at[i] | 0x20) == 'e')
			return false;
	}
	return true;
}

bool report__import_number(const struct import_token *token, bool *is_int, int64_t *i, double *r)
{
	struct decimal decimal;
	uint64_t value;

	*is_int = false;
	*i = 0;
	*r = 0;
	if (token->kind != IMPORT_NUMBER)
		return false;
	if (!parse_decimal(token->at, token->at + token->length, &decimal)) {
		*r = *token->at == '-' ? -INFINITY : INFINITY;
		if (report__import_is(token, "NaN") || report__import_is(token, "nan"))
			*r = NAN;
		else if (!report__import_is(token, "Infinity") &&
			 !report__import_is(token, "-Infinity") &&
			 !report__import_is(token, "inf") && !report__import_is(token, "-inf"))
			return false;
		return true;
	}
	if (is_whole(token) && round_digits(&decimal, decimal.whole, &value) &&
	    to_signed(value, decimal.negative, i)) {
		*is_int = true;
		return true;
	}
	return exact_real(&decimal, r) || parse_real(token, r);
}

/* ---- texts ----------------------------------------------------------------------------------- */

struct text_out {
	char *text;
	size_t length, size;
	bool mended, cut;
};

static void put_code(struct text_out *out, uint32_t code)
{
	char bytes[4];
	size_t count = 0;

	if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
		code = 0xfffd;
		out->mended = true;
	}
	if (code < 0x80) {
		bytes[count++] = (char)code;
	} else if (code < 0x800) {
		bytes[count++] = (char)(0xc0 | code >> 6);
	} else if (code < 0x10000) {
		bytes[count++] = (char)(0xe0 | code >> 12);
		bytes[count++] = (char)(0x80 | (code >> 6 & 0x3f));
	} else {
		bytes[count++] = (char)(0xf0 | code >> 18);
		bytes[count++] = (char)(0x80 | (code >> 12 & 0x3f));
		bytes[count++] = (char)(0x80 | (code >> 6 & 0x3f));
	}
	if (code >= 0x80)
		bytes[count++] = (char)(0x80 | (code & 0x3f));
	if (out->length + count >= out->size) {
		out->cut = true;
		return;
	}
	memcpy(out->text + out->length, bytes, count);
	out->length += count;
}

/* Parse four hexadecimal digits; UINT32_MAX: invalid. */
static uint32_t parse_hex(const char *at, const char *end)
{
	uint32_t value = 0;

	if (end - at < 4)
		return UINT32_MAX;
	for (int i = 0; i < 4; i++) {
		int c = at[i] | 0x20;

		if (c >= '0' && c <= '9' && at[i] == c)
			value = value << 4 | (uint32_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			value = value << 4 | (uint32_t)(c - 'a' + 10);
		else
			return UINT32_MAX;
	}
	return value;
}

/* Decode a \u escape; @at is behind "\u". */
static const char *put_unicode(struct text_out *out, const char *at, const char *end)
{
	uint32_t code = parse_hex(at, end), low;

	if (code == UINT32_MAX) {
		put_code(out, 0xfffd);
		out->mended = true;
		return at;
	}
	at += 4;
	if (code >= 0xd800 && code < 0xdc00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
		low = parse_hex(at + 2, end);
		if (low >= 0xdc00 && low <= 0xdfff) {
			code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
			at += 6;
		}
	}
	put_code(out, code);
	return at;
}

/* Decode an escape; @at is behind the backslash. An unknown escape is copied with its backslash. */
static const char *put_escape(struct text_out *out, const char *at, const char *end)
{
	static const char names[] = "bfnrt", codes[] = "\b\f\n\r\t";
	const char *name;

	if (at == end)
		return at;
	if (*at == 'u')
		return put_unicode(out, at + 1, end);
	name = strchr(names, *at);
	if (*at != 0 && name) {
		put_code(out, (uint32_t)codes[name - names]);
		return at + 1;
	}
	if (!strchr("\"\\/", *at)) {
		out->mended = true;
		put_code(out, '\\');
		return at;
	}
	put_code(out, (uint32_t)*at);
	return at + 1;
}

/* Copy a multi-byte UTF-8 character, or U+FFFD for a byte that starts none. */
static const char *put_character(struct text_out *out, const char *at, const char *end)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned char first = (unsigned char)*at;
	int length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
	uint32_t code = first & (0xffu >> (length + 1));

	if (first < 0xc2 || first > 0xf4 || end - at < length)
		goto bad;
	for (int i = 1; i < length; i++) {
		if (((unsigned char)at[i] & 0xc0) != 0x80)
			goto bad;
		code = code << 6 | ((unsigned char)at[i] & 0x3fu);
	}
	if (code < least[length])
		goto bad;
	put_code(out, code);
	return at + length;
bad:
	out->mended = true;
	put_code(out, 0xfffd);
	return at + 1;
}

size_t report__import_unescape(const struct import_token *token, char *out, size_t size,
			       bool *mended, bool *cut)
{
	struct text_out to = {.text = out, .size = size};
	const char *at = token->length > 0 ? token->at : "", *end = at + token->length;
	bool escapes = token->kind == IMPORT_TEXT;

	while (at < end && !to.cut) {
		unsigned char c = (unsigned char)*at;

		if (c == '\\' && escapes)
			at = put_escape(&to, at + 1, end);
		else if (c >= 0x80)
			at = put_character(&to, at, end);
		else
			put_code(&to, (uint32_t)(unsigned char)*at++);
	}
	out[to.length] = 0;
	if (mended && to.mended)
		*mended = true;
	if (cut && to.cut)
		*cut = true;
	return to.length;
}
