/*
 * UTF-8 characters and the columns they occupy on a terminal.
 */
#ifndef COMMON_UTF8_H
#define COMMON_UTF8_H

#include <stdint.h>

/* Decode the character at @text as it is drawn (control characters are replaced). Return the bytes
 * consumed (0 at the end). *@columns is 0 for a character that should be dropped. */
int utf8_decode(const char *text, uint32_t *character, int *columns);

#endif /* COMMON_UTF8_H */
