/*
 * The bytes of a file that is imported: a file, a pipe or standard input, decompressed if it is
 * gzip or (in a build with libzstd) Zstandard.
 *
 * Threading: one thread.
 */
#ifndef REPORT_IMPORT_INPUT_H
#define REPORT_IMPORT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define IMPORT_HEAD 4096 /* bytes of the content by which a format is recognised */

/* The path is borrowed. */
struct import_input {
	const char *name;
	int fd;
	uint64_t size, taken;         /* bytes of the file (0: unknown), and bytes read */
	struct import_packed *packed; /* NULL: plain */
	unsigned char *head;          /* first bytes of the content, given out again by reading */
	size_t head_at, head_bytes;
	bool cut; /* the compressed data are damaged or truncated: treated as the text's end */
};

/* Errors: ST_NOTFOUND, ST_IO, ST_NOMEM; ST_INVALID: a folder, or Zstandard without libzstd. */
enum status report__import_input_open(struct import_input *input, const char *path,
				      struct err *err);
/* Accepts a zeroed struct with fd -1. */
void report__import_input_close(struct import_input *input);

/* Read up to @size bytes; *@got 0: end of file. */
enum status report__import_input_read(struct import_input *input, char *to, size_t size,
				      size_t *got, struct err *err);

/* Decompress @size bytes that are one frame of Zstandard into @out, which has room for *@room; on
 * return *@room is what there was. False: damaged, too large, or a build without libzstd. */
bool report__import_unpack_zstd(const void *bytes, size_t size, void *out, size_t *room);

#endif /* REPORT_IMPORT_INPUT_H */
