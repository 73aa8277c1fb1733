/*
 * Protobuf messages written as text, for the tests of importing.
 *
 *	8: 7000                 field 8, a varint; negative numbers too
 *	44: 0.5                 a number with a point: a double
 *	47: =5                  fixed64
 *	2: "text"               bytes
 *	2: ?ff00                bytes, as hexadecimal digits
 *	11 { 9: 3 }             a message
 *	50 z{ 9: 3 }            a message, compressed by zlib
 *	12 [ 5 6 ]              packed varints; 47 [= 5 6 ]: packed fixed64
 *	# ...                   a comment, to the end of its line
 *
 * What is written wrongly fails the test.
 */
#ifndef WIRE_TEXT_H
#define WIRE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "common/str.h"

/* Add the message that @text is to @out. */
void wire_text(struct str *out, const char *text);
/* Add a field of bytes. */
void wire_bytes(struct str *out, uint64_t number, const void *bytes, size_t size);

#endif /* WIRE_TEXT_H */
