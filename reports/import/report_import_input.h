/*
 * The bytes of a trace: a file, a pipe or standard input, decompressed where it is gzip.
 *
 * One thread. The path is borrowed.
 */
#ifndef REPORT_IMPORT_INPUT_H
#define REPORT_IMPORT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct import_input {
	const char *name;
	int fd;
	uint64_t size, taken;     /* bytes of the file, 0: unknown; of it read */
	struct import_gzip *gzip; /* NULL: plain */
	unsigned char head[2];    /* read to find out */
	size_t head_at, head_bytes;
	bool cut; /* the compressed data are damaged or end early: then the text ends there */
};

enum status report__import_input_open(struct import_input *input, const char *path,
				      struct err *err);
void report__import_input_close(
	struct import_input *input); /* accepts a zeroed struct with fd -1 */

/* Up to @size bytes; *@got 0: the end. */
enum status report__import_input_read(struct import_input *input, char *to, size_t size,
				      size_t *got, struct err *err);

#endif /* REPORT_IMPORT_INPUT_H */
