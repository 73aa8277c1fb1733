/*
 * Growing strings, and helpers for names and numbers.
 */
#ifndef COMMON_STR_H
#define COMMON_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing string, always 0-terminated. Start with {0}. A failed allocation sets `failed`, keeps
 * the text, and turns later calls into no-ops, so a chain of appends is checked once at its end. */
struct str {
	char *text; /* NULL while empty; use str_peek() to read */
	size_t length;
	size_t capacity;
	bool failed;
};

void str_free(struct str *str);
void str_clear(struct str *str);
void str_add(struct str *str, const char *text);
void str_add_bytes(struct str *str, const char *bytes, size_t length);
void str_addf(struct str *str, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Append an SQL string literal: in quotes, with quotes inside doubled. */
void str_add_sql(struct str *str, const char *text);
void str_add_sql_bytes(struct str *str, const char *bytes, size_t length);
const char *str_peek(const struct str *str); /* "" while empty */

/* Return the candidate nearest to @word (edit distance; letter case counts little), or NULL if none
 * is near enough to suggest. */
const char *str_nearest(const char *word, const char *const *candidates, size_t count);

bool str_starts_with(const char *text, const char *prefix);

/* Return whether @text contains any of the @count @parts (case-sensitive). NULL @parts: true;
 * @count 0: false; an empty part: true. */
bool str_has_any(const char *text, const char *const *parts, int count);

/* Copy @text, truncated to @size - 1 bytes but never within a UTF-8 character. */
void str_copy(char *out, size_t size, const char *text);

/* The same with "…" in place of the middle of a text that is too long: both ends of a name may
 * distinguish it. Needs room for the "…" and its 0. */
void str_shorten(char *out, size_t size, const char *text);

/* Length of the UTF-8 character at @text (1 for a final 0); 0 if it is malformed (overlong,
 * surrogate, truncated). */
size_t str_utf8(const char *text);

/* Parse the whole text as a number: false if it is not one number in range (no blanks allowed). */
bool str_to_int(const char *text, long long *out); /* decimal or 0x */
bool str_to_double(const char *text, double *out);

/*
 * UTF-8 characters and the columns they occupy on a terminal.
 */

/* Read the character at @text; return its bytes (1 for a final 0), 0 if it is malformed. */
int utf8_read(const char *text, uint32_t *character);

/* Decode the character at @text as it is drawn (control characters are replaced). Return the bytes
 * consumed (0 at the end). *@columns is 0 for a character that should be dropped. */
int utf8_decode(const char *text, uint32_t *character, int *columns);

/* Columns that @text takes; NULL: none. */
int utf8_columns(const char *text);

/* Length in bytes of the longest prefix of @text that fits into @columns. */
int utf8_cut(const char *text, int columns);

/* Return whether @character controls a terminal or the text around it, or hides in it: C0 and C1
 * controls, marks of direction, characters without width. Combining marks are none of these. */
bool utf8_is_hidden(uint32_t character);

/* Replace each hidden character of @text, of @length bytes, that is not in @kept by '?', in place.
 * Return the new length, which is at most @length. */
size_t utf8_show(char *text, size_t length, const char *kept);

#endif /* COMMON_STR_H */
