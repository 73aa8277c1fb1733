/*
 * What the files of the convolution share: tiles, the bodies that compute them, and gathering.
 */
#ifndef KERNEL_CONV_INTERNAL_H
#define KERNEL_CONV_INTERNAL_H

#include "trainer/kernels/kernel_conv.h"

#define CONV_PANEL_MOST 32 /* filters of a panel, in any body */
#define CONV_ROWS_MOST  14 /* rows of a tile, in any body */
#define CONV_FEW        3  /* rows of a product that does not copy B, or its depth, at most */

/*
 * C[pixel, filter] = sum over k of A[pixel, k] B[k, filter] for up to 14 pixels and one panel of
 * filters. The depth k is @runs_y x @runs_x runs of @length floats that lie together. The first
 * half of the pixels (rounded up) is at @a0, the other at @a1: they may be of two image rows.
 */
struct conv_tile {
	const float *a0, *a1;
	int64_t pixel; /* floats from pixel to pixel, in each half */
	int64_t runs_y, run_y, runs_x, run_x, length;
	const float *b; /* a panel's floats for each k, @b_step floats apart (packed: panel) */
	int64_t b_step;
	float *c0, *c1;
	int64_t c_pixel;
	int columns;       /* of the panel; the rest is not stored */
	bool add;          /* the sums go on from what is in C */
	const float *bias; /* a whole panel; NULL: none */
	bool relu;
	float most;
};

/*
 * C[row, filter] (+)= sum over pixels of A[pixel, row] B[pixel, filter]: rows are up to 14 floats
 * that lie together in A. Pixels are @images x @lines x @pixels.
 */
struct conv_sum_tile {
	const float *a;
	int64_t images, a_image, lines, a_line, pixels, a_pixel;
	const float *b;
	int64_t b_step;
	float *c;
	int64_t c_row;
	int columns;
	bool add; /* the sums go on from what is in C */
};

/*
 * C[row, column] = sum over k of A[row, k] B[k, column] for so few rows that nothing of B would be
 * used twice, or so few k that nothing of C would: it goes by once, nearly in the order it lies in.
 */
struct conv_few {
	const float *a;
	int64_t rows, a_row, a_step; /* floats from row to row, from k to k */
	const float *b;              /* [depth, columns], or [columns, depth] */
	int64_t b_row, depth, columns;
	float *c;
	int64_t c_row;
};

/* A row of pixels, each channel with its own kernel: c = finish(sum over taps of a w). */
struct conv_depth_row {
	const float *a;
	int64_t pixel, tap_y, tap_x, taps_y, taps_x; /* floats; counts */
	const float *w;
	int64_t w_y, w_x; /* floats from tap to tap */
	float *c;
	int64_t c_pixel;
	int64_t pixels, channels, multiplier;
	struct kernel_conv_finish finish;
	bool add;
};

/* sums[taps_y, taps_x, filters] += x dy over a row of pixels. */
struct conv_depth_sum {
	const float *x;
	int64_t pixel, tap_y, tap_x, taps_y, taps_x;
	const float *dy;
	int64_t pixels, filters;
	float *sums;
};

/*
 * One tile of Winograd's pixels, spread to 36 numbers for each channel: see kernel_conv_winograd.c.
 * Pixels outside of rows @first_y .. @end_y - 1 and the same columns of the tile count as 0.
 */
struct conv_spread {
	const float *x;     /* the first pixel that is there */
	int64_t row, pixel; /* floats from one to the next */
	int first_y, end_y, first_x, end_x;
	int64_t channels;
	float *v;         /* whole vectors are stored */
	int64_t position; /* floats from one of the 36 to the next */
	/* Of a gradient: what struct kernel_conv_relu has, for the same pixels, and what its pixels
	 * are added to; NULL: no ReLU, no sums. */
	const float *y;
	float most;
	bool keep;
	float *sums;
};

/* The 36 sums of a tile and a panel, and the up to 4 x 4 outputs that are made of them. */
struct conv_collect {
	const float *m; /* a panel's, whole */
	int64_t position;
	float *c;
	int64_t row, pixel;
	int rows, pixels, columns;
	bool add;
	const float *bias; /* a whole panel; NULL: none */
	bool relu;
	float most;
};

typedef void (*conv_tile_function)(const struct conv_tile *tile);
typedef void (*conv_sum_function)(const struct conv_sum_tile *tile);

struct conv_body {
	const char *name;
	bool (*runs)(void); /* on this processor? */
	int rows;           /* pixels of a tile, at most */
	int lanes, panel;   /* filters of a vector, of a panel (two vectors) */
	/* [vectors - 1][rows - 1] */
	conv_tile_function tile[2][CONV_ROWS_MOST];
	conv_sum_function sum[2][CONV_ROWS_MOST];
	/* b[k][panel] = w[k ld + column], and with w[column ld + k]; 0 beyond @columns. */
	void (*pack)(const float *w, int64_t ld, int64_t depth, int columns, float *b);
	void (*transpose)(const float *w, int64_t ld, int64_t depth, int columns, float *b);
	/* c[column c_row + row] = w[row ld + column] */
	void (*turn)(const float *w, int64_t ld, int64_t rows, int64_t columns, float *c,
		     int64_t c_row);
	/* pack() of what passes through a ReLU's gradient: 0 where @y is at a bound. With @keep
	 * that is written to @dy too. */
	void (*pack_relu)(float *dy, const float *y, float most, bool keep, int64_t ld,
			  int64_t depth, int columns, float *b);
	/* sums[columns] (+)= the sums of a packed panel's columns. */
	void (*sums)(const float *b, int64_t depth, int columns, bool add, float *sums);
	/* B as it is, and transposed (at most CONV_FEW rows). */
	void (*few)(const struct conv_few *few);
	void (*few_transposed)(const struct conv_few *few);
	void (*depth_row)(const struct conv_depth_row *row);
	void (*depth_sum)(const struct conv_depth_sum *sum);
	/* Of 6 x 6 pixels of an input, and of 4 x 4 of an output's gradient, which is dy. */
	void (*spread_input)(const struct conv_spread *spread);
	void (*spread_gradient)(const struct conv_spread *spread, float *dy);
	void (*collect)(const struct conv_collect *collect);
	/* u[36, depth, panel] from packed b[9, depth, panel], and w[9, depth, ...] from u. */
	void (*spread_kernel)(const float *b, int64_t depth, float *u);
	void (*collect_kernel)(const float *u, int64_t depth, int columns, float *w, int64_t tap,
			       int64_t ld);
};

extern const struct conv_body conv__avx512, conv__avx2, conv__portable;
const struct conv_body *conv__body(void); /* the one in use */

static inline int64_t conv__least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t conv__most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Floats, rounded up to whole cache lines. */
static inline int64_t conv__line(int64_t floats)
{
	return (floats + 15) / 16 * 16;
}

static inline int64_t conv__ceil(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

/* Where piece @index of @pieces nearly even pieces of @length begins. */
static inline int64_t conv__cut(int64_t length, int64_t pieces, int64_t index)
{
	int64_t each = length / pieces, rest = length % pieces;

	return index * each + conv__least(index, rest);
}

/*
 * The pixels that a convolution reads, seen from its output: output (t, u) reads source pixels
 * (origin_y + t step_y + i dilation_y, origin_x + u step_x + j dilation_x), zeros outside.
 */
struct conv_view {
	const float *source;
	int64_t images, rows, columns; /* of the source */
	int64_t pitch;                 /* floats from pixel to pixel of the source */
	int64_t depth;                 /* of which are read */
	int64_t taps_y, taps_x, dilation_y, dilation_x, step_y, step_x, origin_y, origin_x;
	int64_t out_rows, out_columns; /* per image */
	int64_t last_columns;          /* of the very last row: flat views are cut into rows */
	bool spread; /* pixels of a row are read side by side: keep them in different cache sets */
};

/* A view of 1 x 1 taps with steps of 1 and no border becomes rows of @columns pixels. */
void conv__flatten(struct conv_view *view, int64_t columns);

/*
 * Single taps of pixels that lie so far apart that all fall into one set of the cache: few of them
 * are copied once, for all slices. Floats of memory for a view (0: it is not such a one), and the
 * copy, which becomes the view's source.
 */
int64_t conv__dense_floats(const struct conv_view *view);
void conv__dense(struct conv_view *view, struct pool *pool, float *memory);

/* Some rows of a view's output, and where what they read lies. All sizes are floats. */
struct conv_band {
	int64_t first_image, first_row;
	const float *base;    /* what the first output pixel reads first */
	int64_t line, pixel;  /* from output row to output row, from pixel to pixel */
	int64_t next, image;  /* from base to the second image's row 0, and from there on */
	int64_t tap_y, tap_x; /* from tap to tap */
	int64_t runs_y, runs_x, length; /* taps that lie together are one run: see conv_tile */
};

/* Floats of memory that a band of @lines output rows needs, of whatever images. */
int64_t conv__band_floats(const struct conv_view *view, int64_t lines);
/* The band of output rows @line .. @line + @lines - 1, counted over all images: in place, or copied
 * to @memory where there are borders. */
struct conv_band conv__band(const struct conv_view *view, int64_t line, int64_t lines,
			    float *memory);
/* The same without copying. */
struct conv_band conv__band_shape(const struct conv_view *view, int64_t line, int64_t lines,
				  float *memory);
/*
 * The band of all output rows, where many slices read the same ones and a copy is small. Floats of
 * memory for it (0: nothing is copied), and the copy; false: each slice copies for itself.
 */
int64_t conv__shared_floats(const struct conv_view *view);
bool conv__shared(const struct conv_view *view, struct pool *pool, float *memory,
		  struct conv_band *band);
/* What output row @line reads first. */
const float *conv__band_line(const struct conv_view *view, const struct conv_band *band,
			     int64_t line);

/* Weights of a gathering, [taps, rows, ld] as the layer has them. */
struct conv_weights {
	const float *w;
	int64_t kernel_width, tap; /* floats from tap to tap */
	int64_t ld;
	/* The kernel's tap of the view's tap 0, and from that to the next. */
	int64_t first_y, step_y, first_x, step_x;
	bool transpose; /* depth runs along ld, filters over the rows */
};

/* A convolution as the tiles do it: of one group after the other. */
struct conv_gather {
	struct conv_view view;
	struct conv_weights weights;
	struct kernel_conv_finish finish;
	float *out;
	int64_t out_image, out_row, out_pixel; /* floats from one to the next */
	int64_t filters;                       /* of a group */
	bool add;
	int64_t groups, group_source, group_weights, group_out; /* floats from group to group */
};

/* Floats of scratch; @gather needs no pointers for this. */
int64_t conv__gather_scratch(const struct conv_gather *gather, unsigned lanes);
void conv__gather(const struct conv_gather *gather, const struct kernel_room *room);

/* What a forward pass reads; @x may be NULL. */
struct conv_view conv__forward_view(const struct kernel_conv *conv, const float *x);
/* The input's gradient of the pixels @phase_y, @phase_x of each stride; without depth: nothing is
 * summed. */
struct conv_gather conv__input_gather(const struct kernel_conv *conv, int64_t phase_y,
				      int64_t phase_x);
/* out[floats] = the sum of @count parts, @stride floats apart, from first to last. */
void conv__add_parts(const float *parts, int64_t stride, int64_t count, int64_t floats, float *out);
int64_t conv__sum_scratch(const struct kernel_conv *conv, unsigned lanes); /* floats */
/* The panel of @gather's filters that begins at @column of @group, as the tiles read it. */
void conv__gather_pack(const struct conv_gather *gather, int64_t group, int64_t column,
		       int64_t columns, float *b);
/* Output rows @line .. @end - 1 of some panels' filters, of the first group, on this thread; memory
 * of conv__gather_lines_scratch() floats for as many rows or more. */
int64_t conv__gather_lines_scratch(const struct conv_gather *gather, int64_t lines);
void conv__gather_lines(const struct conv_gather *gather, int64_t panel, int64_t panels,
			int64_t line, int64_t end, float *memory);

/* ---- Winograd's way: kernel_conv_winograd.c -------------------------------------------------- */

#define WINOGRAD_SIDE      4 /* outputs of a tile, each way */
#define WINOGRAD_READ      6 /* pixels that it reads */
#define WINOGRAD_POSITIONS (WINOGRAD_READ * WINOGRAD_READ)

/* Tiles of a view's output: rows of them, over all images. */
struct winograd_tiles {
	int64_t across, down; /* of an image */
	int64_t rows;         /* of all images */
};

struct winograd_tiles conv__winograd_tiles(const struct conv_view *view);
/* Whether a layer is done so, by its shape alone, not by the batch. */
bool conv__winograd_pays(const struct conv_view *view, int64_t filters, int64_t groups);
/* Floats from tile to tile: whole vectors, and apart from the cache's sets. */
int64_t conv__winograd_pitch(int64_t channels);
/* Numbers that may be spread: whatever is summed up from them is finite. */
bool conv__winograd_bears(uint32_t abs_max);
/* Spreads row @row of @view's tiles to @v, @v_position floats from one of the 36 to the next.
 * False: what is read there has to be summed plainly. */
bool conv__winograd_spread(const struct conv_view *view, int64_t row, float *v, int64_t v_position);

int64_t conv__winograd_scratch(const struct conv_gather *gather, unsigned lanes); /* floats */
void conv__winograd(const struct conv_gather *gather, const struct kernel_room *room);

int64_t conv__winograd_sum_scratch(const struct kernel_conv *conv, unsigned lanes); /* floats */
/* The gradients of kernel and bias; false: they have to be summed plainly. */
bool conv__winograd_sum(const struct kernel_conv *conv, const struct kernel_room *room,
			const float *x, float *dy, const struct kernel_conv_relu *relu,
			float *dkernel, float *dbias);

#endif /* KERNEL_CONV_INTERNAL_H */
