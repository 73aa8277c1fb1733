/*
 * The inner loops of maximum pooling: one body per instruction set, all with the same bytes.
 */
#ifndef KERNEL_POOL_INTERNAL_H
#define KERNEL_POOL_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

/* Adjacent windows, all inside the image. */
struct pool_run {
	const float *x; /* the first cell of the first window */
	float *y;
	uint8_t *argmax; /* may be NULL */
	int64_t count;   /* windows */
	int64_t step;    /* floats from window to window */
	int64_t channels;
	int cells;              /* of a window: 4 or 9 */
	const int64_t *offsets; /* of the cells from a window's first, in floats */
};

/* A window that contains a pixel: the window's output, and the pixel's index in the window. */
struct pool_share {
	const float *dy;
	const uint8_t *argmax; /* for maxima whose cells a byte can index */
	const uint32_t *wide;  /* for other maxima */
	uint32_t cell;
	float factor; /* for means: 1 / cells inside the image */
};

#define POOL_SHARES 4 /* maximum windows gathered from at once */

struct pool_body {
	const char *name;
	bool (*runs_here)(void);
	/* y and argmax of the windows. */
	void (*max)(const struct pool_run *run);
	/* dx = (with @add: +=) the sum of the shares whose argmax is this cell, in order. */
	void (*gather)(const struct pool_share *shares, int count, float *dx, int64_t channels,
		       bool add);
	/* A row of adjacent windows, whose cells in this row are @cell .. @cell + @width - 1:
	 * dx[windows, width, channels] from dy and argmax[windows, channels]. */
	void (*spread)(const float *dy, const uint8_t *argmax, float *dx, int64_t windows,
		       int64_t width, int64_t channels, uint32_t cell);
};

/* All bodies, widest first; the portable one is the last and runs everywhere. */
const struct pool_body *pool__bodies(int *count);
/* The first body that runs on this processor. */
const struct pool_body *pool__body(void);

#endif /* KERNEL_POOL_INTERNAL_H */
