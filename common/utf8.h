/*
 * Characters of UTF-8 and the columns they take on a terminal.
 */
#ifndef COMMON_UTF8_H
#define COMMON_UTF8_H

#include <stdint.h>

/* Decode one character of @text as drawn; returns the bytes taken (0 at the end). *@columns 0: drop
 * it. */
int utf8_decode(const char *text, uint32_t *character, int *columns);

#endif /* COMMON_UTF8_H */
