/*
 * Streaming JSON writer.
 *
 * Threading: a writer belongs to one thread. Ownership: the caller keeps the file or string.
 */
#include "common/jsonw.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/minmax.h"
#include "common/str.h"

static void jsonw_bytes(struct jsonw *w, const char *bytes, size_t length)
{
	/* The FILE and the struct str both keep an error flag, which jsonw_end() checks. */
	if (w->file)
		fwrite(bytes, 1, length, w->file);
	else
		str_add_bytes(w->str, bytes, length);
}

static void jsonw_raw(struct jsonw *w, const char *text)
{
	jsonw_bytes(w, text, strlen(text));
}

static void jsonw_line(struct jsonw *w)
{
	if (!w->indent)
		return;

	jsonw_raw(w, "\n");
	for (int i = 0; i < w->depth * w->indent; i++)
		jsonw_raw(w, " ");
}

/* Write the comma and indentation that precede a value or key. */
static void jsonw_separate(struct jsonw *w)
{
	if (w->after_key) {
		w->after_key = false;
		return;
	}
	if (!w->depth)
		return;

	if (w->comma[w->depth - 1])
		jsonw_raw(w, ",");
	w->comma[w->depth - 1] = true;
	jsonw_line(w);
}

static void jsonw_begin(struct jsonw *w, const char *bracket)
{
	jsonw_separate(w);
	jsonw_raw(w, bracket);
	assert(w->depth < JSONW_DEPTH);
	w->comma[w->depth++] = false;
}

static void jsonw_close(struct jsonw *w, const char *bracket)
{
	assert(w->depth > 0);
	assert(!w->after_key);
	w->depth--;
	if (w->comma[w->depth])
		jsonw_line(w);
	jsonw_raw(w, bracket);
}

void jsonw_init_file(struct jsonw *w, FILE *file, int indent)
{
	*w = (struct jsonw){.file = file, .indent = indent};
}

void jsonw_init_str(struct jsonw *w, struct str *str, int indent)
{
	*w = (struct jsonw){.str = str, .indent = indent};
}

void jsonw_begin_object(struct jsonw *w)
{
	jsonw_begin(w, "{");
}

void jsonw_end_object(struct jsonw *w)
{
	jsonw_close(w, "}");
}

void jsonw_begin_array(struct jsonw *w)
{
	jsonw_begin(w, "[");
}

void jsonw_end_array(struct jsonw *w)
{
	jsonw_close(w, "]");
}

/* A character that a reader of the text would not see: "\\u202e". */
static void jsonw_escape_hidden(struct jsonw *w, uint32_t character)
{
	char text[16];

	if (character < 0x10000)
		snprintf(text, sizeof(text), "\\u%04x", character);
	else
		snprintf(text, sizeof(text), "\\u%04x\\u%04x",
			 0xd800 + ((character - 0x10000) >> 10),
			 0xdc00 + ((character - 0x10000) & 0x3ff));
	jsonw_raw(w, text);
}

static void jsonw_escape(struct jsonw *w, unsigned char c)
{
	static const char letters[] = "\"\"\\\\\bb\ff\nn\rr\tt";
	char text[8];

	for (size_t i = 0; i + 1 < sizeof(letters); i += 2) {
		if ((unsigned char)letters[i] == c) {
			char pair[2] = {'\\', letters[i + 1]};

			jsonw_bytes(w, pair, sizeof(pair));
			return;
		}
	}
	snprintf(text, sizeof(text), "\\u%04x", c);
	jsonw_raw(w, text);
}

static void jsonw_quoted(struct jsonw *w, const char *text)
{
	jsonw_raw(w, "\"");
	while (*text) {
		const char *start = text;
		uint32_t character = 0;
		int length = 1;

		/* Write runs of unescaped characters in one piece. */
		while ((unsigned char)*text >= 0x20 && *text != 0x7f && *text != '"' &&
		       *text != '\\' && (length = utf8_read(text, &character)) > 0 &&
		       (length == 1 || !utf8_is_hidden(character)))
			text += length;
		jsonw_bytes(w, start, (size_t)(text - start));
		if (!*text)
			break;
		if (!length) {
			jsonw_raw(w, "\xef\xbf\xbd");
			text++;
		} else if ((unsigned char)*text >= 0x80) {
			jsonw_escape_hidden(w, character);
			text += length;
		} else {
			jsonw_escape(w, (unsigned char)*text);
			text++;
		}
	}
	jsonw_raw(w, "\"");
}

void jsonw_value(struct jsonw *w, const char *json)
{
	jsonw_separate(w);
	while (*json) {
		const char *start = json;
		uint32_t character = 0;
		int length = 0;

		/* JSON itself has line feeds. */
		while (*json && ((length = utf8_read(json, &character)) == 0 || character < 0x7f ||
				 !utf8_is_hidden(character)))
			json += max(length, 1);
		jsonw_bytes(w, start, (size_t)(json - start));
		if (*json) {
			jsonw_escape_hidden(w, character);
			json += length;
		}
	}
}

void jsonw_key(struct jsonw *w, const char *key)
{
	assert(w->depth > 0);
	assert(!w->after_key);
	jsonw_separate(w);
	jsonw_quoted(w, key);
	jsonw_raw(w, w->indent ? ": " : ":");
	w->after_key = true;
}

void jsonw_text(struct jsonw *w, const char *text)
{
	jsonw_separate(w);
	if (text)
		jsonw_quoted(w, text);
	else
		jsonw_raw(w, "null");
}

char *jsonw_digits(char *end, int64_t value)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";
	uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;

	for (; left >= 100; left /= 100) {
		end -= 2;
		memcpy(end, pairs + 2 * (left % 100), 2);
	}
	if (left >= 10) {
		end -= 2;
		memcpy(end, pairs + 2 * left, 2);
	} else {
		*--end = (char)('0' + left);
	}
	if (value < 0)
		*--end = '-';
	return end;
}

void jsonw_int(struct jsonw *w, int64_t value)
{
	char text[24], *end = text + sizeof(text), *at = jsonw_digits(end, value);

	jsonw_separate(w);
	jsonw_bytes(w, at, (size_t)(end - at));
}

void jsonw_real(struct jsonw *w, double value)
{
	char text[40];

	jsonw_separate(w);
	if (!isfinite(value)) {
		jsonw_raw(w, "null");
		return;
	}

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	/* JSON requires a decimal point in every locale. */
	for (char *p = text; *p; p++)
		if (!strchr("0123456789+-e", *p))
			*p = '.';
	jsonw_raw(w, text);
}

void jsonw_bool(struct jsonw *w, bool value)
{
	jsonw_separate(w);
	jsonw_raw(w, value ? "true" : "false");
}

void jsonw_null(struct jsonw *w)
{
	jsonw_separate(w);
	jsonw_raw(w, "null");
}

void jsonw_key_object(struct jsonw *w, const char *key)
{
	jsonw_key(w, key);
	jsonw_begin_object(w);
}

void jsonw_key_array(struct jsonw *w, const char *key)
{
	jsonw_key(w, key);
	jsonw_begin_array(w);
}

void jsonw_key_text(struct jsonw *w, const char *key, const char *text)
{
	jsonw_key(w, key);
	jsonw_text(w, text);
}

void jsonw_key_int(struct jsonw *w, const char *key, int64_t value)
{
	jsonw_key(w, key);
	jsonw_int(w, value);
}

void jsonw_key_real(struct jsonw *w, const char *key, double value)
{
	jsonw_key(w, key);
	jsonw_real(w, value);
}

void jsonw_key_bool(struct jsonw *w, const char *key, bool value)
{
	jsonw_key(w, key);
	jsonw_bool(w, value);
}

enum status jsonw_end(struct jsonw *w, struct err *err)
{
	assert(!w->depth);
	assert(!w->after_key);
	jsonw_raw(w, "\n");
	if (!w->file)
		return w->str->failed ? err_nomem(err) : ST_OK;

	/* An earlier failure has set the error flag, but its errno is lost. */
	errno = 0;
	if (!fflush(w->file) && !ferror(w->file))
		return ST_OK;
	return err_set(err, errno == ENOSPC ? ST_NOSPACE : ST_IO, "cannot write: %s",
		       errno ? strerror(errno) : status_text(ST_IO));
}
