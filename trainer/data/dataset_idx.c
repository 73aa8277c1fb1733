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

static enum status idx_header(struct dataset_stream *stream, struct dataset_array *out, int ndim,
			      struct err *err)
{
	uint8_t bytes[4 + 4 * 3];
	size_t size = 4 + 4 * (size_t)ndim, got;
	enum status status;

	status = dataset__stream_read(stream, bytes, 4, &got, err);
	if (status != ST_OK)
		return status;
	if (got < 4)
		return err_set(err, ST_FORMAT, "%s: is truncated: an IDX file begins with 4 bytes",
			       stream->name);
	if (bytes[0] || bytes[1])
		return err_set(err, ST_FORMAT,
			       "%s: is not an IDX file: it begins with %02x %02x, not 00 00",
			       stream->name, bytes[0], bytes[1]);
	if (bytes[2] != IDX_BYTE)
		return err_set(err, ST_FORMAT,
			       "%s: holds values of type 0x%02x; only unsigned bytes (0x08) are "
			       "read",
			       stream->name, bytes[2]);
	if (bytes[3] != ndim)
		return err_set(err, ST_FORMAT, "%s: has %d dimensions, %s have %d", stream->name,
			       bytes[3], ndim == 3 ? "images" : "labels", ndim);

	status = dataset__stream_read(stream, bytes + 4, size - 4, &got, err);
	if (status == ST_OK && got < size - 4)
		status =
			err_set(err, ST_FORMAT, "%s: is truncated within its header", stream->name);
	out->ndim = ndim;
	for (int i = 0; status == ST_OK && i < ndim; i++) {
		const uint8_t *at = bytes + 4 + 4 * i;

		out->dim[i] = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 |
			      at[3];
	}
	return status;
}

enum status dataset__idx_parse(struct dataset_array *out, const char *name, const void *bytes,
			       size_t length, int ndim, struct err *err)
{
	bool gzip = length >= 2 && !memcmp(bytes, "\x1f\x8b", 2);
	struct dataset_stream stream;
	enum status status;

	*out = (struct dataset_array){0};
	status = dataset__stream_open(&stream, name, gzip ? DATASET_GZIP : DATASET_STORED, bytes,
				      length, err);
	if (status != ST_OK)
		return status;
	status = idx_header(&stream, out, ndim, err);
	if (status == ST_OK)
		status = dataset__array_read(out, &stream, err);
	dataset__stream_close(&stream);
	return status;
}

/* ---- folders --------------------------------------------------------------------------------- */

/* Find the file of @stem ("train-images") and @ndim under one of its usual names. */
static enum status idx_find(char path[FS_PATH_SIZE], const char *folder, const char *stem, int ndim,
			    struct err *err)
{
	static const char *const signs[] = {"-", "."}, *const ends[] = {"", ".gz"};

	for (size_t i = 0; i < ARRAY_LEN(signs); i++)
		for (size_t j = 0; j < ARRAY_LEN(ends); j++)
			if (fs_path(path, "%s/%s%sidx%d-ubyte%s", folder, stem, signs[i], ndim,
				    ends[j]) &&
			    fs_exists(path))
				return ST_OK;
	return err_set(err, ST_NOTFOUND, "%s: there is no %s-idx%d-ubyte (or .gz) in this folder",
		       folder, stem, ndim);
}

static enum status idx_load(struct dataset_array *out, const char *folder, const char *stem,
			    int ndim, struct err *err)
{
	char path[FS_PATH_SIZE], *bytes;
	enum status status;
	size_t length;

	*out = (struct dataset_array){0};
	status = idx_find(path, folder, stem, ndim, err);
	if (status != ST_OK)
		return status;
	status = fs_read(path, DATASET_FILE_LIMIT, &bytes, &length, err);
	if (status != ST_OK)
		return status;
	status = dataset__idx_parse(out, path, bytes, length, ndim, err);
	mem_free(bytes);
	return status;
}

/* @images and @labels are the stems of the part's files. */
static enum status idx_open_part(struct dataset *out, const struct dataset_about *about,
				 const char *folder, const char *images, const char *labels,
				 struct err *err)
{
	struct dataset_array pixels, classes = {0};
	enum status status;

	status = idx_load(&pixels, folder, images, 3, err);
	if (status == ST_OK)
		status = idx_load(&classes, folder, labels, 1, err);
	if (status == ST_OK)
		status = dataset__join(out, about, &pixels, &classes, err);
	dataset__array_free(&pixels);
	dataset__array_free(&classes);
	return status;
}

enum status dataset__idx_open(struct dataset *train, struct dataset *test,
			      const struct dataset_known *known, const char *folder,
			      const struct dataset_params *params, struct err *err)
{
	char source[FS_PATH_SIZE + 16];
	const struct dataset_about about = {.source = source,
					    .inputs = "images",
					    .targets = "labels",
					    .classes = known->classes,
					    .names = known->names,
					    .limit = params->limit};
	enum status status;

	snprintf(source, sizeof(source), "%.*s (IDX)", DATASET_PATH_SHOWN, folder);
	status = idx_open_part(train, &about, folder, "train-images", "train-labels", err);
	if (status == ST_OK)
		status = idx_open_part(test, &about, folder, "t10k-images", "t10k-labels", err);
	return status;
}
