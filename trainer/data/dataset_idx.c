/*
 * IDX files: two zero bytes, the type, the number of dimensions, each dimension as a big-endian
 * 32-bit number, then the values. Only unsigned bytes are supported. A gzipped file is recognized
 * by its first bytes.
 *
 * Threading: none. The header gives the number of values, and no more bytes than those are
 * unpacked.
 */
#include "trainer/data/dataset_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/fs.h"
#include "common/mem.h"

#define IDX_BYTE 0x08 /* unsigned bytes */

static void idx_header(struct dataset_stream *stream, struct dataset_array *out, int ndim)
{
	uint8_t bytes[4 + 4 * 3];
	struct err *err = stream->err;

	dataset__stream_read_all(stream, bytes, 4, ": an IDX file begins with 4 bytes");
	if (err_stuck(err))
		return;
	if (bytes[0] || bytes[1])
		err_set(err, ST_FORMAT,
			"%s: is not an IDX file: it begins with %02x %02x, not 00 00", stream->name,
			bytes[0], bytes[1]);
	else if (bytes[2] != IDX_BYTE)
		err_set(err, ST_FORMAT,
			"%s: holds values of type 0x%02x; only unsigned bytes (0x08) are read",
			stream->name, bytes[2]);
	else if (bytes[3] != ndim)
		err_set(err, ST_FORMAT, "%s: has %d dimensions, %s have %d", stream->name, bytes[3],
			ndim == 3 ? "images" : "labels", ndim);
	dataset__stream_read_all(stream, bytes + 4, 4 * (size_t)ndim, " within its header");
	out->ndim = ndim;
	for (int i = 0; !err_stuck(err) && i < ndim; i++) {
		const uint8_t *at = bytes + 4 + 4 * i;

		out->dim[i] = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 |
			      at[3];
	}
}

enum status dataset__idx_parse(struct dataset_array *out, const char *name, const void *bytes,
			       size_t length, int ndim, struct err *err)
{
	bool gzip = length >= 2 && !memcmp(bytes, "\x1f\x8b", 2);
	struct dataset_stream stream;
	struct err own;

	err = err_start(err, &own);
	*out = (struct dataset_array){0};
	dataset__stream_open(&stream, name, gzip ? DATASET_GZIP : DATASET_STORED, bytes, length,
			     err);
	idx_header(&stream, out, ndim);
	dataset__array_read(out, &stream);
	dataset__stream_close(&stream);
	return err->status;
}

/* ---- folders --------------------------------------------------------------------------------- */

/* Find the file of @stem ("train-images") and @ndim under one of its usual names. */
static bool idx_find(char path[FS_PATH_SIZE], const char *folder, const char *stem, int ndim)
{
	static const char *const signs[] = {"-", "."}, *const ends[] = {"", ".gz"};

	for (size_t i = 0; i < ARRAY_LEN(signs); i++)
		for (size_t j = 0; j < ARRAY_LEN(ends); j++)
			if (fs_path(path, "%s/%s%sidx%d-ubyte%s", folder, stem, signs[i], ndim,
				    ends[j]) &&
			    fs_exists(path))
				return true;
	return false;
}

static void idx_load(struct dataset_array *out, const char *folder, const char *stem, int ndim,
		     struct err *err)
{
	char path[FS_PATH_SIZE], *bytes = NULL;
	size_t length;

	*out = (struct dataset_array){0};
	if (err_stuck(err))
		return;
	if (!idx_find(path, folder, stem, ndim))
		err_set(err, ST_NOTFOUND, "%s: there is no %s-idx%d-ubyte (or .gz) in this folder",
			folder, stem, ndim);
	else if (fs_read(path, DATASET_FILE_LIMIT, &bytes, &length, err) == ST_OK)
		dataset__idx_parse(out, path, bytes, length, ndim, err);
	mem_free(bytes);
}

void dataset__idx_open(const struct dataset_opening *o)
{
	static const char *const stems[2][2] = {{"train-images", "train-labels"},
						{"t10k-images", "t10k-labels"}};
	char source[FS_PATH_SIZE + 16];
	struct dataset_about about = dataset__about_images(o);

	snprintf(source, sizeof(source), "%.*s (IDX)", DATASET_PATH_SHOWN, o->path);
	about.source = source;
	for (int part = 0; part < 2; part++) {
		struct dataset_array pixels, classes;

		idx_load(&pixels, o->path, stems[part][0], 3, o->err);
		idx_load(&classes, o->path, stems[part][1], 1, o->err);
		dataset__join(o->parts[part], &about, &pixels, &classes, o->err);
	}
}
