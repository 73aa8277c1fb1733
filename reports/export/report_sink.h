/*
 * The output of an export: a file (complete or absent; compressed if its name ends in .gz) or the
 * standard output, through one buffer. Optimized for many small pieces: nothing here uses printf.
 *
 * Threading: one thread per sink. The first error is kept: later output is discarded, and
 * report_sink_close() returns the error.
 */
#ifndef REPORT_SINK_H
#define REPORT_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/err.h"
#include "common/fs.h"
#include "common/str.h"

#define REPORT_SINK_BYTES 262144
#define REPORT_SINK_ROOM  256 /* bytes that report_sink_room() provides */

struct report_sink_gzip;

struct report_sink {
	struct fs_writer file;
	struct report_sink_gzip *gzip; /* NULL: not compressed */
	char *buffer;
	size_t used;
	uint64_t bytes; /* written, after compression */
	enum status status;
	struct err *err;
	bool standard; /* writes to the standard output */
};

/* Open @path; "-": the standard output. On failure there is nothing to close. */
enum status report_sink_open(struct report_sink *sink, const char *path, struct err *err);

/* Set an error from elsewhere: nothing more is written. */
void report_sink_fail(struct report_sink *sink, enum status status);

/* Write out the buffer. */
void report_sink_flush(struct report_sink *sink);

/* @status: result of the export so far; if it is not ST_OK, drop the file and return @status. */
enum status report_sink_close(struct report_sink *sink, enum status status);

/* Add bytes of any length. */
void report_sink_long(struct report_sink *sink, const char *bytes, size_t length);

/* Return room for REPORT_SINK_ROOM bytes; the caller adds the bytes it used to sink->used. */
static inline char *report_sink_room(struct report_sink *sink)
{
	if (sink->used + REPORT_SINK_ROOM > REPORT_SINK_BYTES)
		report_sink_flush(sink);
	return sink->buffer + sink->used;
}

static inline void report_sink_add(struct report_sink *sink, const char *bytes, size_t length)
{
	if (sink->used + length > REPORT_SINK_BYTES) {
		report_sink_long(sink, bytes, length);
		return;
	}
	memcpy(sink->buffer + sink->used, bytes, length);
	sink->used += length;
}

static inline void report_sink_text(struct report_sink *sink, const char *text)
{
	report_sink_add(sink, text, strlen(text));
}

/* Add @text (NULL: "") as a JSON string, through @scratch. */
void report_sink_json(struct report_sink *sink, struct str *scratch, const char *text);

void report_sink_int(struct report_sink *sink, int64_t value);

/* Add @ns as microseconds with three decimals, exactly. */
void report_sink_us(struct report_sink *sink, int64_t ns);

#endif /* REPORT_SINK_H */
