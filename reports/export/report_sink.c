/*
 * The output of an export. See report_sink.h.
 *
 * Threading: none. Ownership: a sink owns its buffer, compressor and file until it is closed.
 */
#include "reports/export/report_sink.h"

#include <errno.h>
#include <stdio.h>
#include <zlib.h>

#include "common/jsonw.h"
#include "common/mem.h"
#include "common/minmax.h"

#define GZIP_LEVEL 3         /* higher levels cost much time for little size */
#define GZIP_BITS  (15 + 16) /* zlib's windowBits: largest window, gzip header */

struct report_sink_gzip {
	z_stream stream;
	unsigned char out[65536];
};

/* ---- writing --------------------------------------------------------------------------------- */

void report_sink_fail(struct report_sink *sink, enum status status)
{
	if (sink->status == ST_OK)
		sink->status = status;
}

static void sink_write(struct report_sink *sink, const void *bytes, size_t length)
{
	if (sink->status != ST_OK || length == 0)
		return;
	sink->bytes += length;
	if (!sink->standard)
		report_sink_fail(sink, fs_writer_put(&sink->file, bytes, length, sink->err));
	else if (fwrite(bytes, 1, length, stdout) != length)
		report_sink_fail(sink, err_set(sink->err, ST_IO, "write: %s", strerror(errno)));
}

/* Compress the buffer; @flush is zlib's. */
static void sink_deflate(struct report_sink *sink, int flush)
{
	struct report_sink_gzip *gzip = sink->gzip;

	gzip->stream.next_in = (unsigned char *)sink->buffer;
	gzip->stream.avail_in = (uInt)sink->used;
	do {
		gzip->stream.next_out = gzip->out;
		gzip->stream.avail_out = sizeof(gzip->out);
		deflate(&gzip->stream, flush);
		sink_write(sink, gzip->out, sizeof(gzip->out) - gzip->stream.avail_out);
	} while (gzip->stream.avail_out == 0 && sink->status == ST_OK);
}

/* Write out the buffer; @flush is zlib's. */
static void sink_flush(struct report_sink *sink, int flush)
{
	if (sink->gzip && sink->status == ST_OK)
		sink_deflate(sink, flush);
	else
		sink_write(sink, sink->buffer, sink->used);
	sink->used = 0;
}

void report_sink_flush(struct report_sink *sink)
{
	sink_flush(sink, Z_NO_FLUSH);
}

void report_sink_long(struct report_sink *sink, const char *bytes, size_t length)
{
	while (length > 0) {
		size_t part = REPORT_SINK_BYTES - sink->used;

		part = min(part, length);
		memcpy(sink->buffer + sink->used, bytes, part);
		sink->used += part;
		bytes += part;
		length -= part;
		if (sink->used == REPORT_SINK_BYTES)
			report_sink_flush(sink);
	}
}

void report_sink_json(struct report_sink *sink, struct str *scratch, const char *text)
{
	struct jsonw w;

	str_clear(scratch);
	jsonw_init_str(&w, scratch, 0);
	jsonw_text(&w, !text ? "" : text);
	report_sink_add(sink, str_peek(scratch), scratch->length);
	if (scratch->failed)
		report_sink_fail(sink, err_nomem(sink->err));
}

/* ---- opening and closing --------------------------------------------------------------------- */

static void sink_free(struct report_sink *sink)
{
	if (sink->gzip)
		deflateEnd(&sink->gzip->stream);
	mem_free(sink->gzip);
	mem_free(sink->buffer);
	sink->gzip = NULL;
	sink->buffer = NULL;
}

enum status report_sink_open(struct report_sink *sink, const char *path, struct err *err)
{
	const size_t length = strlen(path);

	*sink = (struct report_sink){.err = err, .standard = strcmp(path, "-") == 0};
	sink->file.fd = -1;
	sink->buffer = mem_alloc(REPORT_SINK_BYTES);
	if (!sink->buffer)
		return err_nomem(err);
	if (length > 3 && strcmp(path + length - 3, ".gz") == 0) {
		sink->gzip = mem_calloc(1, sizeof(*sink->gzip));
		if (!sink->gzip || deflateInit2(&sink->gzip->stream, GZIP_LEVEL, Z_DEFLATED,
						GZIP_BITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
			mem_free(sink->gzip);
			sink->gzip = NULL;
			sink->status = err_nomem(err);
		}
	}
	if (sink->status == ST_OK && !sink->standard)
		sink->status = fs_writer_open(&sink->file, path, err);
	if (sink->status != ST_OK)
		sink_free(sink);
	return sink->status;
}

enum status report_sink_close(struct report_sink *sink, enum status status)
{
	report_sink_fail(sink, status); /* unless a write failed before, and aborted the rest */
	sink_flush(sink, Z_FINISH);
	if (sink->status != ST_OK)
		fs_writer_drop(&sink->file); /* nothing, if it is the standard output */
	else if (!sink->standard)
		sink->status = fs_writer_close(&sink->file, sink->err);
	else if (fflush(stdout) != 0)
		sink->status = err_set(sink->err, ST_IO, "write: %s", strerror(errno));
	sink_free(sink);
	return sink->status;
}

/* ---- numbers --------------------------------------------------------------------------------- */

void report_sink_int(struct report_sink *sink, int64_t value)
{
	char text[24], *end = text + sizeof(text), *at = jsonw_digits(end, value);

	report_sink_add(sink, at, (size_t)(end - at));
}

void report_sink_us(struct report_sink *sink, int64_t ns)
{
	const uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	char text[32], *end = text + sizeof(text), *at = end - 3;
	unsigned rest = (unsigned)(size % 1000);

	at[2] = (char)('0' + rest % 10);
	at[1] = (char)('0' + rest / 10 % 10);
	at[0] = (char)('0' + rest / 100);
	*--at = '.';
	at = jsonw_digits(at, (int64_t)(size / 1000));
	if (ns < 0)
		*--at = '-';
	report_sink_add(sink, at, (size_t)(end - at));
}
