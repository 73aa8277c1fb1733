/*
 * Where an export goes: a file (whole or not at all; compressed where its name ends in .gz) or the
 * standard output, through one buffer. Written for many small pieces: nothing here is formatted by
 * printf.
 *
 * One thread per sink. The first failure is kept: what is added after it goes nowhere, and
 * report_sink_close() returns it.
 */
#ifndef REPORT_SINK_H
#define REPORT_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/err.h"
#include "common/fs.h"

#define REPORT_SINK_BYTES 262144
#define REPORT_SINK_ROOM  256 /* the most that report_sink_room() is asked for */

struct report_sink_gzip;

struct report_sink {
	struct fs_writer file;
	struct report_sink_gzip *gzip; /* NULL: as it is */
	char *buffer;
	size_t used;
	uint64_t bytes; /* written, after compression */
	enum status status;
	struct err *err;
	bool standard; /* output */
};

/* @path "-": the standard output. On failure there is nothing to close. */
enum status report_sink_open(struct report_sink *sink, const char *path, struct err *err);

/* Something else failed: nothing more is written. */
void report_sink_fail(struct report_sink *sink, enum status status);

/* Empty the buffer. */
void report_sink_flush(struct report_sink *sink);

/* @status: what came of it so far; anything but ST_OK is returned, and the file dropped. */
enum status report_sink_close(struct report_sink *sink, enum status status);

/* Any length. */
void report_sink_long(struct report_sink *sink, const char *bytes, size_t length);

/* Room for REPORT_SINK_ROOM bytes; what is used of it is added to sink->used. */
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

void report_sink_int(struct report_sink *sink, int64_t value);

/* @ns as microseconds with three decimals, exactly. */
void report_sink_us(struct report_sink *sink, int64_t ns);

#endif /* REPORT_SINK_H */
