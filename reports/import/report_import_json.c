/*
 * Values within a stretch of JSON. See report_import_json.h.
 *
 * Written by hand because the libraries at hand either build a tree (cJSON, 39 MB/s) or want the
 * whole text in memory; docs/design.md compares them. The time goes into strings, so these are
 * looked through 16 bytes at a time where the processor can.
 */
#include "reports/import/report_import_json.h"

#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

static bool fail(struct import_reader *reader, const char *at, const char *why)
{
	reader->at = at;
	reader->why = why;
	return false;
}

/* The text is at its end, or a 0 byte is in it. */
static bool stop(struct import_reader *reader, const char *at, const char *why)
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

/* The first quote or backslash from @at on; beyond the end there is none that counts. */
static const char *find_quote(const char *at, const char *end)
{
#if defined(__SSE2__)
	const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\');

	/* Reads within the padding. */
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

/* @at is behind the opening quote; the closing quote, or NULL: more is needed. */
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

bool report__import_text(struct import_reader *reader, struct import_token *out)
{
	const char *close;

	if (report__import_peek(reader) != '"')
		return stop(reader, reader->at, "a text in quotes is expected");
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

/* Behind the bracket that closes the one at reader->at. */
static bool skip_nested(struct import_reader *reader)
{
	uint64_t objects[IMPORT_DEPTH / 64] = {0}; /* a bit per level: it is an object */
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
			return stop(reader, at, "a byte 0");
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

/* null, true, false, or anything that may be a number. */
static bool bare_word(struct import_reader *reader, struct import_token *out)
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
		return report__import_text(reader, out);
	if (c != '{' && c != '[')
		return reader->more ? false : bare_word(reader, out);
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
	if (!report__import_text(reader, key))
		return false;
	if (report__import_peek(reader) != ':')
		return stop(reader, reader->at, "a colon is expected");
	reader->at++;
	return true;
}

bool report__import_is(const struct import_token *token, const char *text)
{
	size_t length = strlen(text);

	return token->length == length && memcmp(token->at, text, length) == 0;
}
