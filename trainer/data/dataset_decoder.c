/*
 * Decoders: image files become items. An image is scaled to the size of all items as data.resize
 * specifies (see dataset_resize.c) and rounded to bytes again, which need a quarter of the memory
 * of floats.
 *
 * Threading: a decoder is read-only, so that several threads can decode.
 */
#include "trainer/data/dataset_internal.h"

#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "trainer/data/image.h"

static void decode_file(struct image *out, const char *path, bool gray, struct err *err)
{
	size_t length;
	char *bytes;

	*out = (struct image){0};
	if (fs_read(path, DATASET_FILE_LIMIT, &bytes, &length, err) != ST_OK)
		return;
	image_decode(out, gray, path, bytes, length, err);
	mem_free(bytes);
}

/* ---- the decoder ----------------------------------------------------------------------------- */

/* Set the size of all items: data.resize, else the first file's. */
static void find_size(struct dataset_decoder *decoder, const struct dataset_params *params,
		      struct err *err)
{
	struct image image;

	decoder->height = params->resize.height;
	decoder->width = params->resize.width;
	decoder->channels = params->images.gray ? 1 : 3;
	decoder->resizes = decoder->height > 0;
	if (!decoder->resizes) {
		decode_file(&image, decoder->paths[0], params->images.gray, err);
		decoder->height = image.height;
		decoder->width = image.width;
		mem_free(image.bytes);
	}
	if (!err_stuck(err) && decoder->height * decoder->width > IMAGE_PIXELS_MOST)
		err_set(err, ST_LIMIT,
			"data.resize: images of %lld x %lld pixels are more than the %d that are "
			"read",
			(long long)decoder->height, (long long)decoder->width, IMAGE_PIXELS_MOST);
}

struct dataset_decoder *dataset__decoder_new(struct dataset_files *files,
					     const struct dataset_params *params, struct err *err)
{
	struct dataset_decoder *decoder = mem_calloc(1, sizeof(*decoder));
	const int64_t files_count = (int64_t)files->count;
	const int64_t count = params->limit > 0 ? min(files_count, params->limit) : files_count;

	if (decoder)
		decoder->paths = mem_calloc((size_t)count, sizeof(*decoder->paths));
	if (!decoder || !decoder->paths) {
		mem_free(decoder);
		err_nomem(err);
		return NULL;
	}
	decoder->count = count;
	for (int64_t i = 0; i < count; i++) {
		decoder->paths[i] = files->files[i].path;
		files->files[i].path = NULL;
	}
	find_size(decoder, params, err);
	return decoder;
}

void dataset__decoder_free(struct dataset_decoder *decoder)
{
	for (int64_t i = 0; decoder && i < decoder->count; i++)
		mem_free(decoder->paths[i]);
	if (decoder)
		mem_free(decoder->paths);
	mem_free(decoder);
}

/* ---- an item --------------------------------------------------------------------------------- */

/* Scale @image to the decoder's size, rounding values to the nearest byte. */
static void scale_image(const struct dataset_decoder *decoder, uint8_t *to,
			const struct image *image, const char *path, struct err *err)
{
	const int64_t height = decoder->height, width = decoder->width;
	const size_t count = (size_t)(height * width * image->channels);
	struct dataset set = {
		.ndim = 3, .shape = {image->height, image->width, image->channels}, .source = path};
	float *floats;

	if (image->height == height && image->width == width) {
		memcpy(to, image->bytes, count);
		return;
	}
	if (!decoder->resizes) {
		err_set(err, ST_FORMAT,
			"%s: has %lld x %lld pixels, %s has %lld x %lld: data.resize makes them "
			"one size",
			path, (long long)image->height, (long long)image->width, decoder->paths[0],
			(long long)height, (long long)width);
		return;
	}
	if (dataset__resize_set(&set, height, width, err) != ST_OK)
		return;
	floats = mem_resize(NULL, count, sizeof(*floats));
	if (floats)
		dataset__resize(set.resize, image->bytes, NULL, floats);
	else
		err_nomem(err);
	for (size_t i = 0; floats && i < count; i++)
		to[i] = (uint8_t)(floats[i] * 255.0f + 0.5f);
	mem_free(floats);
	dataset__resize_free((struct dataset_resize *)(uintptr_t)set.resize);
}

enum status dataset__decode(const struct dataset_decoder *decoder, int64_t item, uint8_t *to,
			    struct err *err)
{
	const char *path = decoder->paths[item];
	struct image image;
	struct err own;

	err = err_start(err, &own);
	decode_file(&image, path, decoder->channels == 1, err);
	if (!err_stuck(err))
		scale_image(decoder, to, &image, path, err);
	mem_free(image.bytes);
	return err->status;
}
