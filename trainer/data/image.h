/*
 * Decoded image files: PNG and JPEG as rows of pixels, grey or RGB.
 *
 * The bytes are the same on every machine. A PNG's values are used as stored (of 16 bits the upper
 * 8; alpha is dropped, gamma is not applied). A JPEG is decoded with the slow integer transform,
 * and subsampled colour is replicated, since smoothing differs between libraries. A colour's grey
 * value is (299 R + 587 G + 114 B) / 1000, rounded; a JPEG's stored luma is used directly.
 */
#ifndef IMAGE_H
#define IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define IMAGE_SIDE_MOST   65536
#define IMAGE_PIXELS_MOST (1 << 26) /* bounds the memory that a hostile header can request */

struct image {
	int64_t height, width;
	int channels;   /* 1 or 3 */
	uint8_t *bytes; /* [height, width, channels], owned (mem_free) */
};

/* Can this program decode images? If not, the error says how to get one that can. */
enum status image_usable(const char *name, struct err *err);

/* Decode the PNG or JPEG file in memory. On failure nothing is left to free. Thread safe. */
enum status image_decode(struct image *out, bool gray, const char *name, const void *bytes,
			 size_t length, struct err *err);

#endif /* IMAGE_H */
