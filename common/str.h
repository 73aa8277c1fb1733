/*
 * Growing text, and the small questions asked about names.
 */
#ifndef COMMON_STR_H
#define COMMON_STR_H

#include <stdbool.h>
#include <stddef.h>

/* A growing, always 0-terminated text. Start with {0}. A failed growth sets `failed`, keeps what
 * was there and makes later calls do nothing, so a chain of appends is checked once, at its end. */
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
/* As a text of SQL: in quotes, those within doubled. */
void str_add_sql(struct str *str, const char *text);
void str_add_sql_bytes(struct str *str, const char *bytes, size_t length);
const char *str_peek(const struct str *str); /* "" while empty */

/* The candidate most like @word (edit distance, letter case counts little), or NULL where none is
 * near enough to suggest. */
const char *str_nearest(const char *word, const char *const *candidates, size_t count);

bool str_starts_with(const char *text, const char *prefix);

/* Is any of the @count @parts in @text (case-sensitive)? NULL parts: yes; none of them (@count 0):
 * no; an empty part: yes. */
bool str_has_any(const char *text, const char *const *parts, int count);

/* Copy @text cut to @size - 1 bytes, never within a UTF-8 character. */
void str_copy(char *out, size_t size, const char *text);

/* Length of the UTF-8 character at @text (of a final 0: 1); 0 where there is none (overlong,
 * surrogate, cut). */
size_t str_utf8(const char *text);

/* Whole-text numbers: false where @text is not one number in range (no blanks, no rest). */
bool str_to_int(const char *text, long long *out); /* decimal or 0x */
bool str_to_double(const char *text, double *out);

#endif /* COMMON_STR_H */
