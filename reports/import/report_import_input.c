/*
 * Reading a trace's bytes. See report_import_input.h.
 */
#include "reports/import/report_import_input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "common/mem.h"

#define GZIP_BUFFER ((size_t)128 << 10)
#define GZIP_FORMAT (15 + 16) /* zlib's windowBits for a gzip header */

struct import_gzip {
	z_stream stream;
	bool ended; /* a member is complete */
	unsigned char buffer[GZIP_BUFFER];
};

static enum status read_plain(struct import_input *input, void *to, size_t size, size_t *got,
			      struct err *err)
{
	ssize_t bytes;

	do
		bytes = read(input->fd, to, size);
	while (bytes < 0 && errno == EINTR);
	if (bytes < 0)
		return err_set(err, ST_IO, "%s: cannot read: %s", input->name, strerror(errno));
	*got = (size_t)bytes;
	input->taken += (uint64_t)bytes;
	return ST_OK;
}

static enum status open_gzip(struct import_input *input, struct err *err)
{
	input->gzip = mem_calloc(1, sizeof(*input->gzip));
	if (!input->gzip)
		return err_nomem(err);
	memcpy(input->gzip->buffer, input->head, input->head_bytes);
	input->gzip->stream.next_in = input->gzip->buffer;
	input->gzip->stream.avail_in = (uInt)input->head_bytes;
	if (inflateInit2(&input->gzip->stream, GZIP_FORMAT) != Z_OK) {
		mem_free(input->gzip);
		input->gzip = NULL;
		return err_nomem(err);
	}
	return ST_OK;
}

/* Two bytes tell gzip from text. */
static enum status look_at_head(struct import_input *input, struct err *err)
{
	while (input->head_bytes < sizeof(input->head)) {
		size_t got = 0;
		enum status status = read_plain(input, input->head + input->head_bytes,
						sizeof(input->head) - input->head_bytes, &got, err);

		if (status != ST_OK)
			return status;
		if (got == 0)
			break;
		input->head_bytes += got;
	}
	if (input->head_bytes == 2 && input->head[0] == 0x1f && input->head[1] == 0x8b)
		return open_gzip(input, err);
	return ST_OK;
}

enum status report__import_input_open(struct import_input *input, const char *path, struct err *err)
{
	enum status status;
	struct stat info;

	*input = (struct import_input){.name = path, .fd = -1};
	if (strcmp(path, "-") == 0) {
		input->name = "standard input";
		input->fd = dup(STDIN_FILENO);
	} else {
		input->fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (input->fd < 0)
		return err_set(err, errno == ENOENT ? ST_NOTFOUND : ST_IO, "%s: cannot open: %s",
			       input->name, strerror(errno));
	if (fstat(input->fd, &info) == 0 && S_ISDIR(info.st_mode))
		status = err_set(err, ST_INVALID, "%s: is a folder; name the trace in it", path);
	else
		status = look_at_head(input, err);
	if (status == ST_OK && S_ISREG(info.st_mode) && info.st_size > 0)
		input->size = (uint64_t)info.st_size;
	if (status != ST_OK)
		report__import_input_close(input);
	return status;
}

void report__import_input_close(struct import_input *input)
{
	if (input->gzip)
		inflateEnd(&input->gzip->stream);
	mem_free(input->gzip);
	input->gzip = NULL;
	if (input->fd >= 0)
		close(input->fd);
	input->fd = -1;
}

/* More compressed bytes where there are none left; *@end: there are none. */
static enum status fill_gzip(struct import_input *input, bool *end, struct err *err)
{
	struct import_gzip *gzip = input->gzip;
	enum status status;
	size_t got = 0;

	*end = false;
	if (gzip->stream.avail_in > 0)
		return ST_OK;
	status = read_plain(input, gzip->buffer, sizeof(gzip->buffer), &got, err);
	gzip->stream.next_in = gzip->buffer;
	gzip->stream.avail_in = (uInt)got;
	*end = got == 0;
	return status;
}

/* Members follow one another, as `cat a.gz b.gz` makes them. */
static enum status read_gzip(struct import_input *input, char *to, size_t size, size_t *got,
			     struct err *err)
{
	struct import_gzip *gzip = input->gzip;
	z_stream *stream = &gzip->stream;
	enum status status;
	bool end;

	stream->next_out = (unsigned char *)to;
	stream->avail_out = (uInt)size;
	while (stream->avail_out == size && !input->cut) {
		int code;

		status = fill_gzip(input, &end, err);
		if (status != ST_OK)
			return status;
		if (end) {
			input->cut = !gzip->ended;
			break;
		}
		if (gzip->ended && inflateReset(stream) != Z_OK)
			input->cut = true;
		gzip->ended = false;
		code = inflate(stream, Z_NO_FLUSH);
		gzip->ended = code == Z_STREAM_END;
		if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
			input->cut = true;
	}
	*got = size - stream->avail_out;
	return ST_OK;
}

enum status report__import_input_read(struct import_input *input, char *to, size_t size,
				      size_t *got, struct err *err)
{
	size_t rest = input->head_bytes - input->head_at;

	if (size > (size_t)1 << 30)
		size = (size_t)1 << 30;
	if (input->gzip)
		return read_gzip(input, to, size, got, err);
	if (rest > 0) {
		*got = rest < size ? rest : size;
		memcpy(to, input->head + input->head_at, *got);
		input->head_at += *got;
		return ST_OK;
	}
	return read_plain(input, to, size, got, err);
}
