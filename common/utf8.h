/*
 * UTF-8 characters and the columns they occupy on a terminal.
 */
#ifndef COMMON_UTF8_H
#define COMMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decode the character at @text as it is drawn (control characters are replaced). Return the bytes
 * consumed (0 at the end). *@columns is 0 for a character that should be dropped. */
int utf8_decode(const char *text, uint32_t *character, int *columns);

/* Return whether @character controls a terminal or the text around it, or hides in it: C0 and C1
 * controls, marks of direction, characters without width. Combining marks are none of these. */
bool utf8_is_hidden(uint32_t character);

/* Replace each hidden character of @text, of @length bytes, that is not in @kept by '?', in place.
 * Return the new length, which is at most @length. */
size_t utf8_show(char *text, size_t length, const char *kept);

#endif /* COMMON_UTF8_H */
