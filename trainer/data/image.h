/*
 * Images of files: PNG and JPEG as rows of pixels, grey or red, green and blue.
 *
 * The same bytes on every machine: of a PNG the values that it stores (16 bits: the upper 8; an
 * alpha channel is dropped, gamma is not applied); of a JPEG the slow integer transform, and
 * neighbouring pixels share their colour where it is stored at half the size, since smoothing
 * differs between libraries. Grey values of colours are (299 R + 587 G + 114 B) / 1000, rounded;
 * a JPEG that stores them has them already.
 */
#ifndef IMAGE_H
#define IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define IMAGE_SIDE_MOST   65536
#define IMAGE_PIXELS_MOST (1 << 26) /* of any size: what a hostile header can ask for */

struct image {
	int64_t height, width;
	int channels;   /* 1 or 3 */
	uint8_t *bytes; /* [height, width, channels], owned (mem_free) */
};

/* May this program read them? Else an error that says how to get one that does. */
enum status image_usable(const char *name, struct err *err);

/* The file in memory, whichever of the two it is. On failure nothing is left to free. Thread
 * safe. */
enum status image_decode(struct image *out, bool gray, const char *name, const void *bytes,
			 size_t length, struct err *err);

#endif /* IMAGE_H */
