/*
 * Read and decompress a file that is imported. See report_import_input.h.
 */
#include "reports/import/report_import_input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#ifdef IPUSCOPE_ZSTD
#include <zstd.h>
#endif

#include "common/mem.h"
#include "common/minmax.h"
#include "reports/report_output.h"

#define PACKED_BUFFER ((size_t)128 << 10)
#define AGAIN_MS      100
#define GZIP_FORMAT   (15 + 16) /* zlib's windowBits for a gzip header */

/* A way to compress. Members (gzip) or frames (Zstandard) may follow one another, as in
 * `cat a.gz b.gz`. */
struct packing {
	unsigned char magic[4];
	size_t magic_bytes;
	bool (*open)(struct import_packed *packed);
	/* Decompress from `next` to @to: store in *@made how much, and in `ended` whether a member
	 * is complete. False: the data are damaged. */
	bool (*unpack)(struct import_packed *packed, unsigned char *to, size_t size, size_t *made);
	void (*close)(struct import_packed *packed);
};

struct import_packed {
	const struct packing *packing;
	z_stream gzip;
#ifdef IPUSCOPE_ZSTD
	ZSTD_DStream *zstd;
#endif
	bool ended; /* the current member is complete */
	const unsigned char *next;
	size_t left; /* compressed bytes at `next` */
	unsigned char buffer[PACKED_BUFFER];
};

/* ---- gzip ------------------------------------------------------------------------------------ */

static bool open_gzip(struct import_packed *packed)
{
	return inflateInit2(&packed->gzip, GZIP_FORMAT) == Z_OK;
}

static bool unpack_gzip(struct import_packed *packed, unsigned char *to, size_t size, size_t *made)
{
	z_stream *stream = &packed->gzip;
	int code;

	if (packed->ended && inflateReset(stream) != Z_OK)
		return false;
	stream->next_in = (unsigned char *)(uintptr_t)packed->next;
	stream->avail_in = (uInt)packed->left;
	stream->next_out = to;
	stream->avail_out = (uInt)size;
	code = inflate(stream, Z_NO_FLUSH);
	packed->next = stream->next_in;
	packed->left = stream->avail_in;
	packed->ended = code == Z_STREAM_END;
	*made = size - stream->avail_out;
	return code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR;
}

static void close_gzip(struct import_packed *packed)
{
	inflateEnd(&packed->gzip);
}

/* ---- Zstandard ------------------------------------------------------------------------------- */

#ifdef IPUSCOPE_ZSTD

static bool open_zstd(struct import_packed *packed)
{
	packed->zstd = ZSTD_createDStream();
	return packed->zstd && !ZSTD_isError(ZSTD_initDStream(packed->zstd));
}

static bool unpack_zstd(struct import_packed *packed, unsigned char *to, size_t size, size_t *made)
{
	ZSTD_inBuffer in = {packed->next, packed->left, 0};
	ZSTD_outBuffer out = {to, size, 0};
	const size_t code = ZSTD_decompressStream(packed->zstd, &out, &in);

	packed->next += in.pos;
	packed->left -= in.pos;
	packed->ended = code == 0;
	*made = out.pos;
	return !ZSTD_isError(code);
}

static void close_zstd(struct import_packed *packed)
{
	ZSTD_freeDStream(packed->zstd);
}

bool report__import_unpack_zstd(const void *bytes, size_t size, void *out, size_t *room)
{
	const size_t made = ZSTD_decompress(out, *room, bytes, size);

	*room = ZSTD_isError(made) ? 0 : made;
	return !ZSTD_isError(made);
}

#else

#define unpack_zstd NULL
#define open_zstd   NULL
#define close_zstd  NULL

bool report__import_unpack_zstd(const void *bytes, size_t size, void *out, size_t *room)
{
	(void)bytes;
	(void)size;
	(void)out;
	*room = 0;
	return false;
}

#endif

static const struct packing packings[] = {
	{{0x1f, 0x8b}, 2, open_gzip, unpack_gzip, close_gzip},
	{{0x28, 0xb5, 0x2f, 0xfd}, 4, open_zstd, unpack_zstd, close_zstd},
};

/* ---- reading --------------------------------------------------------------------------------- */

/* Wait for bytes, or for the end; a pipe may wait for ever. A signal that arrives before poll()
 * does not end it, so it is called again and again. */
static enum status wait_readable(const struct import_input *input, struct err *err)
{
	struct pollfd readable = {.fd = input->fd, .events = POLLIN};
	int ready;

	do {
		if (report_interrupted())
			return err_set(err, ST_INTERRUPTED, "interrupted");
		ready = poll(&readable, 1, AGAIN_MS);
	} while (ready == 0 || (ready < 0 && errno == EINTR));
	return ST_OK;
}

static enum status read_plain(struct import_input *input, void *to, size_t size, size_t *got,
			      struct err *err)
{
	ssize_t bytes;

	if (wait_readable(input, err) != ST_OK)
		return ST_INTERRUPTED;
	do
		bytes = read(input->fd, to, size);
	while (bytes < 0 && errno == EINTR);
	if (bytes < 0)
		return err_set(err, ST_IO, "%s: cannot read: %s", input->name, strerror(errno));
	*got = (size_t)bytes;
	input->taken += (uint64_t)bytes;
	return ST_OK;
}

static enum status read_packed(struct import_input *input, void *to, size_t size, size_t *got,
			       struct err *err)
{
	struct import_packed *packed = input->packed;
	enum status status;

	for (*got = 0; *got == 0 && !input->cut;) {
		if (packed->left == 0) {
			status = read_plain(input, packed->buffer, sizeof(packed->buffer),
					    &packed->left, err);
			packed->next = packed->buffer;
			if (status != ST_OK)
				return status;
		}
		if (packed->left == 0) {
			input->cut = !packed->ended;
			return ST_OK;
		}
		input->cut = !packed->packing->unpack(packed, to, size, got);
	}
	return ST_OK;
}

/* Fill the head by @read. */
static enum status read_head(struct import_input *input,
			     enum status (*read)(struct import_input *input, void *to, size_t size,
						 size_t *got, struct err *err),
			     struct err *err)
{
	enum status status;
	size_t got = 1;

	while (input->head_bytes < IMPORT_HEAD && got > 0) {
		status = read(input, input->head + input->head_bytes,
			      IMPORT_HEAD - input->head_bytes, &got, err);
		if (status != ST_OK)
			return status;
		input->head_bytes += got;
	}
	return ST_OK;
}

/* The head so far is compressed: decompress it, and what follows. */
static enum status open_packed(struct import_input *input, const struct packing *packing,
			       struct err *err)
{
	struct import_packed *packed;

	if (!packing->open)
		return err_set(err, ST_INVALID,
			       "%s: is compressed by Zstandard, which this build cannot read "
			       "(Debian: libzstd-dev); run `zstd -dc %s | ipu-report import - -o "
			       "trace.db`",
			       input->name, input->name);
	packed = mem_calloc(1, sizeof(*packed));
	if (!packed)
		return err_nomem(err);
	packed->packing = packing;
	memcpy(packed->buffer, input->head, input->head_bytes);
	packed->next = packed->buffer;
	packed->left = input->head_bytes;
	if (!packing->open(packed)) {
		packing->close(packed);
		mem_free(packed);
		return err_nomem(err);
	}
	input->packed = packed;
	input->head_bytes = 0;
	return read_head(input, read_packed, err);
}

static enum status open_content(struct import_input *input, struct err *err)
{
	enum status status;

	input->head = mem_alloc(IMPORT_HEAD);
	if (!input->head)
		return err_nomem(err);
	status = read_head(input, read_plain, err);
	for (size_t i = 0; i < ARRAY_LEN(packings) && status == ST_OK && !input->packed; i++) {
		if (input->head_bytes >= packings[i].magic_bytes &&
		    memcmp(input->head, packings[i].magic, packings[i].magic_bytes) == 0)
			status = open_packed(input, &packings[i], err);
	}
	return status;
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
		/* A named pipe without a writer is opened at once; it is waited for when read. */
		input->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (input->fd >= 0)
			fcntl(input->fd, F_SETFL, 0);
	}
	if (input->fd < 0)
		return err_set(err, errno == ENOENT ? ST_NOTFOUND : ST_IO, "%s: cannot open: %s",
			       input->name, strerror(errno));
	if (fstat(input->fd, &info) == 0 && S_ISDIR(info.st_mode))
		status = err_set(err, ST_INVALID, "%s: is a folder; name the trace in it", path);
	else
		status = open_content(input, err);
	if (status == ST_OK && S_ISREG(info.st_mode) && info.st_size > 0)
		input->size = (uint64_t)info.st_size;
	if (status != ST_OK)
		report__import_input_close(input);
	return status;
}

void report__import_input_close(struct import_input *input)
{
	if (input->packed)
		input->packed->packing->close(input->packed);
	mem_free(input->packed);
	mem_free(input->head);
	input->packed = NULL;
	input->head = NULL;
	if (input->fd >= 0)
		close(input->fd);
	input->fd = -1;
}

enum status report__import_input_read(struct import_input *input, char *to, size_t size,
				      size_t *got, struct err *err)
{
	const size_t rest = input->head_bytes - input->head_at;

	size = min(size, (size_t)1 << 30);
	if (rest > 0) {
		*got = min(rest, size);
		memcpy(to, input->head + input->head_at, *got);
		input->head_at += *got;
		return ST_OK;
	}
	return input->packed ? read_packed(input, to, size, got, err)
			     : read_plain(input, to, size, got, err);
}
