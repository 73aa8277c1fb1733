/*
 * Internals shared by the convolution's files: tiles and the bodies that compute them, what an
 * output reads, direct sums, and Winograd's tiles.
 */
#ifndef KERNEL_CONV_INTERNAL_H
#define KERNEL_CONV_INTERNAL_H

#include "common/minmax.h"
#include "trainer/kernels/kernel_conv.h"

#define CONV_PANEL_MOST 32 /* filters of a panel, maximum over the bodies */
#define CONV_ROWS_MOST  14 /* rows of a tile, maximum over the bodies */
#define CONV_FEW        3  /* maximum rows (or depth) of a product that does not pack B */

/*
 * C[pixel, filter] = sum over k of A[pixel, k] B[k, filter] for up to 14 pixels and one panel of
 * filters. The depth k is @runs_y x @runs_x runs of @length adjacent floats. The first half of the
 * pixels (rounded up) starts at @a0, the second at @a1: they may belong to two image rows.
 */
struct conv_tile {
	const float *a0, *a1;
	int64_t pixel; /* floats from pixel to pixel, within each half */
	int64_t runs_y, run_y, runs_x, run_x, length;
	const float *b; /* a panel's floats for each k, @b_step floats apart (packed: panel) */
	int64_t b_step;
	float *c0, *c1;
	int64_t c_pixel;
	int columns;       /* of the panel; the rest is not stored */
	bool fetch;        /* C is far: fetch it during the sums, for which its stores would wait */
	bool add;          /* continue the sums from the values in C */
	const float *bias; /* a whole panel; NULL: none */
	bool relu;
	float most;
};

/*
 * C[row, filter] (+)= sum over pixels of A[pixel, row] B[pixel, filter]. The rows are up to 14
 * adjacent floats of A. Pixels are @images x @lines x @pixels.
 */
struct conv_sum_tile {
	const float *a;
	int64_t images, a_image, lines, a_line, pixels, a_pixel;
	const float *b;
	int64_t b_step;
	float *c;
	int64_t c_row;
	int columns;
	bool add; /* continue the sums from the values in C */
};

/*
 * C[row, column] = sum over k of A[row, k] B[k, column] with so few rows that a copy of B does not
 * pay, or so small a depth that C is not reused. B is streamed once, nearly in memory order. From
 * CONV_FEW + 1 rows on, C is read and written for every fourth k, and should be near.
 */
struct conv_few {
	const float *a;
	int64_t rows, a_row, a_step; /* floats from row to row, from k to k */
	const float *b;              /* [depth, columns], or [columns, depth] */
	int64_t b_row, depth, columns;
	float *c;
	int64_t c_row;
};

/* A row of pixels with one kernel per channel: c = finish(sum over taps of a w). */
struct conv_depth_row {
	const float *a;
	int64_t pixel, tap_y, tap_x, taps_y, taps_x; /* strides in floats; counts */
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
 * One Winograd tile, transformed to 36 values per channel: see kernel_conv_winograd.c. Pixels
 * outside rows @first_y .. @end_y - 1 and columns @first_x .. @end_x - 1 of the tile count as 0.
 */
struct conv_transform {
	const float *x;     /* the first pixel that exists */
	int64_t row, pixel; /* strides in floats */
	int first_y, end_y, first_x, end_x;
	int64_t channels;
	float *v;         /* written in whole vectors */
	int64_t position; /* floats between two of the 36 values */
	/* For a gradient: the fields of struct kernel_conv_relu for the same pixels, and the sums
	 * to which the pixels are added; NULL: no ReLU, no sums. */
	const float *y;
	float most;
	bool keep;
	float *sums;
};

/* The 36 sums of a tile and a panel, and the up to 4 x 4 outputs computed from them. */
struct conv_inverse {
	const float *m; /* a whole panel */
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
	int rows;         /* maximum pixels of a tile */
	int lanes, panel; /* filters of a vector, of a panel (two vectors) */
	/* [vectors - 1][rows - 1] */
	conv_tile_function tile[2][CONV_ROWS_MOST];
	conv_sum_function sum[2][CONV_ROWS_MOST];
	/* b[k][panel] = w[k ld + column], or w[column ld + k] if transposed; 0 beyond @columns.
	 * pack() takes any number of columns, and writes one panel after the other. */
	void (*pack)(const float *w, int64_t ld, int64_t depth, int columns, float *b);
	void (*pack_transposed)(const float *w, int64_t ld, int64_t depth, int columns, float *b);
	/* c[column c_row + row] = w[row ld + column] */
	void (*transpose)(const float *w, int64_t ld, int64_t rows, int64_t columns, float *c,
			  int64_t c_row);
	/* pack() of a ReLU's gradient: 0 if @y is at a bound. With @keep the result is also written
	 * to @dy. */
	void (*pack_relu)(float *dy, const float *y, float most, bool keep, int64_t ld,
			  int64_t depth, int columns, float *b);
	/* sums[columns] (+)= the sums of a packed panel's columns. */
	void (*sums)(const float *b, int64_t depth, int columns, bool add, float *sums);
	/* Unpacked products: B as it is, and B transposed (at most CONV_FEW rows). */
	void (*few)(const struct conv_few *few);
	void (*few_transposed)(const struct conv_few *few);
	void (*depth_row)(const struct conv_depth_row *row);
	void (*depth_sum)(const struct conv_depth_sum *sum);
	/* Winograd transforms: 6 x 6 pixels of an input, 4 x 4 of an output's gradient (dy). */
	void (*transform_input)(const struct conv_transform *spread);
	void (*transform_gradient)(const struct conv_transform *spread, float *dy);
	void (*inverse)(const struct conv_inverse *inverse);
	/* u[36, depth, panel] from packed b[9, depth, panel], and w[9, depth, ...] from u, whose
	 * 36 values are @position floats apart. */
	void (*transform_kernel)(const float *b, int64_t depth, float *u, int64_t position);
	void (*inverse_kernel)(const float *u, int64_t position, int64_t depth, int columns,
			       float *w, int64_t tap, int64_t ld);
};

/* The row of an instruction set, for the file that has included its tiles. */
#define CONV_BODY(name_)                                                                           \
	{                                                                                          \
		.name = (name_), .rows = ROWS, .lanes = LANES, .panel = PANEL,                     \
		.tile = {TILE_TABLE(tile_1_), TILE_TABLE(tile_2_)},                                \
		.sum = {TILE_TABLE(sum_1_), TILE_TABLE(sum_2_)}, .pack = conv_pack,                \
		.pack_transposed = conv_pack_transposed, .transpose = conv_transpose,              \
		.pack_relu = conv_pack_relu, .sums = conv_sums, .few = conv_few,                   \
		.few_transposed = conv_few_transposed, .depth_row = conv_depth_row,                \
		.depth_sum = conv_depth_sum, .transform_input = conv_transform_input,              \
		.transform_gradient = conv_transform_gradient, .inverse = conv_inverse,            \
		.transform_kernel = conv_transform_kernel, .inverse_kernel = conv_inverse_kernel   \
	}

extern const struct conv_body conv__avx512, conv__avx2, conv__portable;
const struct conv_body *conv__body(void); /* the one in use */

/* Round @floats up to whole cache lines. */
static inline int64_t conv__whole_lines(int64_t floats)
{
	return (floats + 15) / 16 * 16;
}

static inline int64_t conv__ceil(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

/* The begin of piece @index of @pieces nearly equal pieces of @length. */
static inline int64_t conv__piece(int64_t length, int64_t pieces, int64_t index)
{
	int64_t each = length / pieces, rest = length % pieces;

	return index * each + min(index, rest);
}

/*
 * The pixels that a convolution reads, indexed by output: output (t, u) reads source pixels
 * (origin_y + t step_y + i dilation_y, origin_x + u step_x + j dilation_x), 0 outside the source.
 */
struct conv_view {
	const float *source;
	int64_t images, rows, columns; /* of the source */
	int64_t pitch;                 /* floats from pixel to pixel of the source */
	int64_t depth;                 /* channels read of each pixel */
	int64_t taps_y, taps_x, dilation_y, dilation_x, step_y, step_x, origin_y, origin_x;
	int64_t out_rows, out_columns; /* per image */
	int64_t last_columns;          /* of the very last row: flat views are cut into rows */
	bool spread; /* a tile reads adjacent pixels of a row: place them in different cache sets */
};

/* Reshape a view of 1 x 1 taps with stride 1 and no border into rows of @columns pixels. */
void conv__flatten(struct conv_view *view, int64_t columns);

/*
 * For single taps whose pixels are so far apart that all map to one cache set: if they are few,
 * copy them once for all slices. The first function returns the floats of memory (0: does not
 * apply), the second makes the copy and sets it as the view's source.
 */
int64_t conv__dense_floats(const struct conv_view *view);
void conv__dense(struct conv_view *view, struct pool *pool, float *memory);

/* A range of a view's output rows, and the location of what they read. All sizes are in floats. */
struct conv_band {
	int64_t first_image, first_row;
	const float *base;    /* the first value read by the first output pixel */
	int64_t line, pixel;  /* from output row to output row, from pixel to pixel */
	int64_t next, image;  /* from base to the second image's row 0, and between later images */
	int64_t tap_y, tap_x; /* from tap to tap */
	int64_t runs_y, runs_x, length; /* adjacent taps form one run: see conv_tile */
};

/* Floats of memory that a band of @lines output rows needs, starting at any row. */
int64_t conv__band_floats(const struct conv_view *view, int64_t lines);
/* The band of output rows @line .. @line + @lines - 1, counted over all images: in place, or copied
 * to @memory if there are borders. */
struct conv_band conv__band(const struct conv_view *view, int64_t line, int64_t lines,
			    float *memory);
/* The same band, without copying. */
struct conv_band conv__band_shape(const struct conv_view *view, int64_t line, int64_t lines,
				  float *memory);
/*
 * The band of all output rows, used if many slices read the same rows and a copy is small. The
 * first function returns the floats of memory (0: no copy), the second makes the copy; false: each
 * slice copies its own.
 */
int64_t conv__shared_floats(const struct conv_view *view);
bool conv__shared(const struct conv_view *view, struct pool *pool, float *memory,
		  struct conv_band *band);
/* The first value that output row @line reads. */
const float *conv__band_line(const struct conv_view *view, const struct conv_band *band,
			     int64_t line);

/* The weights of a gathering, [taps, rows, ld] as the layer stores them. */
struct conv_weights {
	const float *w;
	int64_t kernel_width, tap; /* floats from tap to tap */
	int64_t ld;
	/* The kernel's tap for the view's tap 0, and the step to the next. */
	int64_t first_y, step_y, first_x, step_x;
	bool transpose; /* depth runs along ld, filters over the rows */
};

/* A convolution as the tiles compute it, group by group. */
struct conv_gather {
	struct conv_view view;
	struct conv_weights weights;
	struct kernel_conv_finish finish;
	float *out;
	int64_t out_image, out_row, out_pixel; /* strides in floats */
	int64_t filters;                       /* per group */
	bool add;
	int64_t groups, group_source, group_weights, group_out; /* floats from group to group */
};

/* ---- what convolutions share: kernel_conv_base.c --------------------------------------------- */

/* The view that a forward pass reads; @x may be NULL. */
struct conv_view conv__forward_view(const struct kernel_conv *conv, const float *x);
/* The input's gradient for the pixels of phase (@phase_y, @phase_x) of the strides. If its depth is
 * 0, nothing is summed. */
struct conv_gather conv__input_gather(const struct kernel_conv *conv, int64_t phase_y,
				      int64_t phase_x);
/* The gradients of a kernel and a bias, summed in parts: each part holds the kernel's and, from the
 * next cache line on, the bias's. */
static inline int64_t conv__kernel_floats(const struct kernel_conv *c)
{
	return c->kernel_height * c->kernel_width * (c->channels / c->groups) * c->filters;
}

static inline int64_t conv__part_floats(const struct kernel_conv *c)
{
	return conv__whole_lines(conv__kernel_floats(c)) + conv__whole_lines(c->filters);
}

static inline float *conv__part_bias(const struct kernel_conv *c, float *part)
{
	return part + conv__whole_lines(conv__kernel_floats(c));
}

/* Add the parts from first to last; @dbias may be NULL. */
void conv__add_parts(const struct kernel_conv *conv, struct pool *pool, float *parts, int64_t count,
		     float *dkernel, float *dbias);

/* ---- direct sums: kernel_conv_gather.c, kernel_conv_sum.c ------------------------------------ */

/* Floats of scratch; the pointers in @gather are not used. */
int64_t conv__gather_scratch(const struct conv_gather *gather, unsigned lanes);
void conv__gather(const struct conv_gather *gather, const struct kernel_room *room);
/* Pack the panel of @gather's filters that begins at @column of @group. */
void conv__gather_pack(const struct conv_gather *gather, int64_t group, int64_t column,
		       int64_t columns, float *b);
/* Compute output rows @line .. @end - 1 of @panels panels from @panel on, of the first group, on
 * this thread. @memory: conv__gather_lines_scratch() floats for at least as many rows. */
int64_t conv__gather_lines_scratch(const struct conv_gather *gather, int64_t lines);
void conv__gather_lines(const struct conv_gather *gather, int64_t panel, int64_t panels,
			int64_t line, int64_t end, float *memory);

/* Floats of scratch for the kernel's gradient, by Winograd's tiles where these apply. */
int64_t conv__sum_scratch(const struct kernel_conv *conv, unsigned lanes);

/* ---- Winograd: kernel_conv_winograd.c, kernel_conv_winograd_sum.c ---------------------------- */

#define WINOGRAD_SIDE      4 /* outputs of a tile, per axis */
#define WINOGRAD_READ      6 /* pixels that it reads, per axis */
#define WINOGRAD_POSITIONS (WINOGRAD_READ * WINOGRAD_READ)

/* The tiles of a view's output, in rows over all images. */
struct winograd_tiles {
	int64_t across, down; /* per image */
	int64_t rows;         /* over all images */
};

/* Floats between two of the 36 values of an array of @floats: an odd number of cache lines, so that
 * the 36 lines that are written together map to different cache sets. */
static inline int64_t conv__winograd_position(int64_t floats)
{
	return (conv__ceil(floats, 16) | 1) * 16;
}

struct winograd_tiles conv__winograd_tiles(const struct conv_view *view);
/* Whether a layer uses Winograd: depends on its shape, not on the batch. */
bool conv__winograd_applies(const struct conv_view *view, int64_t filters, int64_t groups);
/* Floats from tile to tile: whole vectors, padded so that tiles map to different cache sets. */
int64_t conv__winograd_pitch(int64_t channels);
/* Whether values of this magnitude may be transformed: all sums of them stay finite. */
bool conv__winograd_in_range(uint32_t abs_max);
/* Transform row @row of @view's tiles into @v, @pitch floats from tile to tile and @v_position
 * between two of the 36 values. Return false if the values must be summed directly instead. */
bool conv__winograd_transform(const struct conv_view *view, int64_t row, float *v, int64_t pitch,
			      int64_t v_position);

int64_t conv__winograd_scratch(const struct conv_gather *gather, unsigned lanes); /* floats */
void conv__winograd(const struct conv_gather *gather, const struct kernel_room *room);

int64_t conv__winograd_sum_scratch(const struct kernel_conv *conv, unsigned lanes); /* floats */
/* The gradients of kernel and bias. Return false if they must be summed directly instead. */
bool conv__winograd_sum(const struct kernel_conv *conv, const struct kernel_room *room,
			const float *x, float *dy, const struct kernel_conv_relu *relu,
			float *dkernel, float *dbias);

#endif /* KERNEL_CONV_INTERNAL_H */
