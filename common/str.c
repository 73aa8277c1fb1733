/*
 * Growing strings, and helpers for names and numbers.
 *
 * Threading: stateless. Ownership: a struct str owns its text until str_free().
 */
#include "common/str.h"

#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/mem.h"
#include "common/minmax.h"

void str_free(struct str *str)
{
	mem_free(str->text);
	*str = (struct str){0};
}

void str_clear(struct str *str)
{
	str->length = 0;
	str->failed = false;
	if (str->text)
		str->text[0] = '\0';
}

/* Reserve @more bytes and a final 0. */
static bool str_reserve(struct str *str, size_t more)
{
	if (str->failed)
		return false;
	if (more >= SIZE_MAX - str->length ||
	    mem_grow(&str->text, &str->capacity, str->length + more + 1, 1)) {
		str->failed = true;
		return false;
	}

	return true;
}

void str_add(struct str *str, const char *text)
{
	str_add_bytes(str, text, strlen(text));
}

void str_add_bytes(struct str *str, const char *bytes, size_t length)
{
	if (!str_reserve(str, length))
		return;

	if (length)
		memcpy(str->text + str->length, bytes, length);
	str->length += length;
	str->text[str->length] = '\0';
}

void str_add_sql_bytes(struct str *str, const char *bytes, size_t length)
{
	str_add(str, "'");
	for (size_t i = 0; i < length; i++)
		str_add_bytes(str, bytes[i] == '\'' ? "''" : bytes + i, bytes[i] == '\'' ? 2 : 1);
	str_add(str, "'");
}

void str_add_sql(struct str *str, const char *text)
{
	str_add_sql_bytes(str, text, strlen(text));
}

void str_addf(struct str *str, const char *format, ...)
{
	va_list args, again;
	int length;

	if (str->failed)
		return;

	va_start(args, format);
	va_copy(again, args);
	length = vsnprintf(NULL, 0, format, args);
	if (length < 0) {
		str->failed = true;
	} else if (str_reserve(str, (size_t)length)) {
		vsnprintf(str->text + str->length, (size_t)length + 1, format, again);
		str->length += (size_t)length;
	}
	va_end(again);
	va_end(args);
}

const char *str_peek(const struct str *str)
{
	return str->text ? str->text : "";
}

/* Costs of edits: a change of letter case counts a quarter. */
#define NEAR_EDIT   4
#define NEAR_CASE   1
#define NEAR_LENGTH 128 /* longer words are not compared */

static char near_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Edit distance (insert, delete, change, transpose) from @a to @b. */
static unsigned near_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	unsigned rows[3][NEAR_LENGTH + 1];
	unsigned *older = rows[0], *old = rows[1], *now = rows[2];

	for (size_t j = 0; j <= b_length; j++)
		old[j] = (unsigned)j * NEAR_EDIT;

	for (size_t i = 1; i <= a_length; i++) {
		unsigned *spare = older;

		now[0] = (unsigned)i * NEAR_EDIT;
		for (size_t j = 1; j <= b_length; j++) {
			const char x = a[i - 1], y = b[j - 1];
			unsigned best = old[j - 1];

			if (x != y)
				best += near_lower(x) == near_lower(y) ? NEAR_CASE : NEAR_EDIT;
			best = min(best, old[j] + NEAR_EDIT);
			best = min(best, now[j - 1] + NEAR_EDIT);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				best = min(best, older[j - 2] + NEAR_EDIT);
			now[j] = best;
		}

		older = old;
		old = now;
		now = spare;
	}

	return old[b_length];
}

const char *str_nearest(const char *word, const char *const *candidates, size_t count)
{
	size_t length = strlen(word);
	const char *nearest = NULL;
	unsigned best = UINT_MAX;

	if (!length || length > NEAR_LENGTH)
		return NULL;

	for (size_t i = 0; i < count; i++) {
		size_t other = strlen(candidates[i]);
		size_t longer = max(other, length);
		/* A third of the letters may differ: at least one, never all. */
		size_t edits = longer < 6 ? 1 : longer / 3;
		unsigned distance;

		if (other > NEAR_LENGTH)
			continue;
		distance = near_distance(word, length, candidates[i], other);
		if (distance <= edits * NEAR_EDIT && distance < length * NEAR_EDIT &&
		    distance < best) {
			best = distance;
			nearest = candidates[i];
		}
	}

	return nearest;
}

bool str_starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool str_has_any(const char *text, const char *const *parts, int count)
{
	bool any = !parts;

	for (int i = 0; !any && i < count; i++)
		any = strstr(text, parts[i]) != NULL;
	return any;
}

void str_copy(char *out, size_t size, const char *text)
{
	size_t length;

	if (!size)
		return;

	length = strnlen(text, size);
	if (length == size) {
		length = size - 1;
		while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
			length--;
	}
	memmove(out, text, length);
	out[length] = '\0';
}

void str_shorten(char *out, size_t size, const char *text)
{
	static const char mark[] = "\u2026";
	const size_t length = strlen(text);
	size_t head, tail;

	if (length < size || size < sizeof(mark)) {
		str_copy(out, size, text);
		return;
	}
	tail = (size - sizeof(mark)) / 3;
	while (tail > 0 && ((unsigned char)text[length - tail] & 0xc0) == 0x80)
		tail--;
	str_copy(out, size - (sizeof(mark) - 1) - tail, text);
	head = strlen(out);
	memcpy(out + head, mark, sizeof(mark) - 1);
	memcpy(out + head + sizeof(mark) - 1, text + length - tail, tail + 1);
}

static int str_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = near_lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : INT_MAX;
}

bool str_to_int(const char *text, long long *out)
{
	bool negative = *text == '-';
	unsigned long long limit = (unsigned long long)LLONG_MAX + negative;
	unsigned long long value = 0;
	int base = 10;

	if (*text == '-' || *text == '+')
		text++;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		text += 2;
	}
	if (!*text)
		return false;

	for (; *text; text++) {
		int digit = str_digit(*text);

		if (digit >= base || value > (limit - (unsigned)digit) / (unsigned)base)
			return false;
		value = value * (unsigned)base + (unsigned)digit;
	}

	/* Avoid overflow at LLONG_MIN. */
	*out = negative && value ? -(long long)(value - 1) - 1 : (long long)value;
	return true;
}

bool str_to_double(const char *text, double *out)
{
	/* Parse with a decimal point in every locale. For "C" glibc returns a constant locale:
	 * nothing to free. */
	locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	double value;
	char *end;

	if (!*text || text[strspn(text, "0123456789+-.eE")])
		return false;

	value = plain ? strtod_l(text, &end, plain) : strtod(text, &end);
	if (end == text || *end || !isfinite(value))
		return false;

	*out = value;
	return true;
}

size_t str_utf8(const char *text)
{
	uint32_t character;

	return (size_t)utf8_read(text, &character);
}
