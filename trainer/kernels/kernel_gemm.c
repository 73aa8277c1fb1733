/*
 * Matrix products: how they are cut into slices, and how a slice iterates over tiles.
 *
 * A slice is up to 448 rows by some panels of columns. The depth is processed in equal blocks of
 * at most 512. A group of B's panels is copied row by row: memory delivers long pieces faster than
 * one cache line from each row. Then each panel stays in the near caches while all rows of A pass,
 * and the next group and the next tile of C are prefetched. The tiles continue their sums in C from
 * block to block, which changes no bit.
 *
 * If B is transposed and A is the smaller one, or A is transposed and C is narrow, C^T = op(B)^T
 * op(A)^T is computed into the lane's memory and then transposed. The multiplications and their
 * order are the same, but A and C are transposed on the way instead of B, and vectors run along
 * C's columns.
 */
#include "trainer/kernels/kernel_gemm.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "trainer/kernels/kernel_conv_internal.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/kernels/kernel_work.h"

#define GEMM_DEPTH      512       /* of a block: B's panel is 64 KB with AVX-512, 32 KB with AVX2 */
#define GEMM_GROUP      (1 << 15) /* floats of B that are copied together */
#define GEMM_ROWS       448       /* maximum per slice */
#define GEMM_TRANSPOSED 64        /* maximum columns of a slice whose product is transposed */
#define GEMM_NARROW     16        /* maximum columns of a C that leaves much of a panel idle */

/* Rows whose distance is a multiple of GEMM_DISTANCE floats share few cache sets. Their copies are
 * GEMM_SPREAD floats further apart than their length. */
#define GEMM_DISTANCE 256
#define GEMM_SPREAD   16

/* Floats that fit the L1 and the L2 cache, and those that a core's share of the L3 cache holds. */
#define GEMM_L1_FLOATS (1 << 13)
#define GEMM_L2_FLOATS (1 << 18)
#define GEMM_L3_FLOATS (1 << 20)

/* Up to GEMM_FEW_ROWS rows process the depth in blocks of GEMM_SHALLOW, and read a panel of B in
 * place if it comes from a cache: a copy would cost more than it gains. Up to GEMM_VERY_FEW_ROWS
 * rows do not use tiles if B comes from memory: see struct conv_few. */
#define GEMM_FEW_ROWS      42
#define GEMM_SHALLOW       256
#define GEMM_VERY_FEW_ROWS 8
#define GEMM_FEW_FLOATS    (1 << 14) /* of C, which stay in the near caches */

/* Slices: minimum multiply-adds of one, and their maximum number. With more work slices are larger
 * and more numerous, so that many processors are busy; but each copies its rows of A and its
 * columns of B, so it has at least GEMM_LARGE_ROWS and GEMM_LARGE_COLUMNS of them. */
#define GEMM_SLICE         (1 << 19)
#define GEMM_SLICES        16
#define GEMM_LARGE_SLICE   (1 << 22)
#define GEMM_MANY_SLICES   64
#define GEMM_LARGE_ROWS    192
#define GEMM_LARGE_COLUMNS 256
/* With few rows: each slice reads B in pieces as long as the slice is wide. */
#define GEMM_FEW_SLICES 2
#define GEMM_WIDE       512 /* minimum columns of such a slice that reads in place */

/* The product as its slices compute it: of the operands as given, or of both transposed. */
struct gemm_plan {
	bool transposed;
	int64_t rows, columns, depth;
	const float *a;
	int64_t a_row, a_step; /* floats from row to row, from k to k; one of them is 1 */
	const float *b;
	int64_t b_row;
	bool b_transposed;                               /* stored [columns, depth] */
	bool in_place;                                   /* B's panels are read in place */
	bool stream;                                     /* and prefetched */
	bool fetch_sums;                                 /* C is not near: prefetch its tiles */
	int64_t block;                                   /* maximum depth of a block */
	int64_t row_pieces, column_pieces, column_units; /* number of pieces per dimension */
};

/* The part of the product that a slice computes. */
struct gemm_range {
	int64_t row, rows, column, columns;
};

/* The scratch of a lane. */
struct gemm_memory {
	float *panel, *rows, *transposed, *bias;
};

static struct gemm_memory gemm_memory(float *memory)
{
	struct gemm_memory m = {.panel = memory};

	m.rows = m.panel + GEMM_GROUP;
	/* GEMM_ROWS rows of GEMM_DEPTH floats, or, with a transposed A, the other way around. */
	m.transposed = m.rows + GEMM_DEPTH * (GEMM_ROWS + GEMM_SPREAD);
	m.bias = m.transposed + GEMM_ROWS * GEMM_TRANSPOSED;
	assert(m.bias + CONV_PANEL_MOST <= memory + KERNEL_GEMM_LANE);
	return m;
}

size_t kernel_gemm_scratch(unsigned lanes)
{
	return (size_t)lanes * KERNEL_GEMM_LANE * sizeof(float);
}

/* ---- planning -------------------------------------------------------------------------------- */

/* Whether it is the outer product of a few vectors: C is streamed once, row by row. */
static bool gemm_is_outer(const struct kernel_gemm *g)
{
	return g->transpose_a && !g->transpose_b && g->k <= CONV_FEW;
}

/* Whether tiles of few rows may read B in place: its rows do not share few L1 sets, or B is small.
 */
static bool gemm_is_near(int64_t columns, int64_t depth, int64_t b_row)
{
	const int64_t floats = columns * depth;

	return floats <= GEMM_L2_FLOATS || (b_row % GEMM_DISTANCE && floats <= GEMM_L3_FLOATS);
}

/* Whether B is streamed without tiles. */
static bool gemm_is_few(const struct kernel_gemm *g)
{
	const bool streams =
		g->m <= GEMM_VERY_FEW_ROWS && !g->transpose_b && !gemm_is_near(g->n, g->k, g->ldb);

	return (g->m <= CONV_FEW || streams || gemm_is_outer(g)) && g->k > 0 &&
	       !(g->finish.relu && isfinite(g->finish.most));
}

/* Columns of such a product that are processed together. */
static int64_t gemm_few_columns(int64_t rows)
{
	int64_t panels = GEMM_FEW_FLOATS / (max(rows, 1) * CONV_PANEL_MOST);

	return max(panels, 1) * CONV_PANEL_MOST;
}

/* Estimated cycles: half a cycle per multiply-add of a vector, a quarter per float transposed on
 * the way (64 shuffles for 16 x 16 floats). */
static bool gemm_is_transposed(const struct kernel_gemm *g)
{
	int64_t lanes = conv__body()->lanes;
	double m = (double)g->m, n = (double)g->n, k = (double)g->k;
	double straight = 0.5 * m * (double)conv__ceil(g->n, lanes) * k;
	double transposed = 0.5 * n * (double)conv__ceil(g->m, lanes) * k + 0.25 * m * n;

	if (g->transpose_b)
		straight += 0.25 * n * k;
	if (!g->transpose_a)
		transposed += 0.25 * m * k;
	return (g->transpose_b || (g->transpose_a && g->n <= GEMM_NARROW)) && !g->openblas &&
	       !gemm_is_few(g) && transposed < straight;
}

/* Cut a dimension into more pieces, at most @bound, until the product with @others is @wanted. */
static void gemm_split(int64_t *pieces, int64_t bound, int64_t wanted, int64_t others)
{
	if (*pieces * others < wanted)
		*pieces = max(*pieces, min(conv__ceil(wanted, others), bound));
}

/*
 * By default a panel of B is copied for the rows that read it, so that it is contiguous. It is
 * read in place if that is as fast: if B fits the L2 cache and its rows do not share few L1 sets,
 * or for few rows if B is near. Few rows prefetch the next panel if B is larger than the L2 cache.
 */
static void gemm_choose_access(struct gemm_plan *p)
{
	const int64_t floats = p->columns * p->depth;
	const bool fits_l2 = floats <= GEMM_L2_FLOATS;
	const bool spread = p->b_row % GEMM_DISTANCE || p->depth * p->b_row <= GEMM_L1_FLOATS;
	const bool few = p->rows <= GEMM_FEW_ROWS;

	p->in_place = !p->b_transposed && ((few && gemm_is_near(p->columns, p->depth, p->b_row)) ||
					   (fits_l2 && spread));
	p->stream = p->in_place && !fits_l2;
	p->block = few && !fits_l2 ? GEMM_SHALLOW : GEMM_DEPTH;
}

static struct gemm_plan gemm_plan(const struct kernel_gemm *g)
{
	struct gemm_plan p = {.transposed = gemm_is_transposed(g), .depth = g->k};
	double work = (double)g->m * (double)g->n * (double)g->k;
	int64_t slices = (int64_t)fmin(work / GEMM_SLICE, GEMM_SLICES);

	if (p.transposed) {
		p.rows = g->n;
		p.columns = g->m;
		p.a = g->b;
		p.a_row = g->transpose_b ? g->ldb : 1;
		p.a_step = g->transpose_b ? 1 : g->ldb;
		p.b = g->a;
		p.b_row = g->lda;
		p.b_transposed = !g->transpose_a;
	} else {
		p.rows = g->m;
		p.columns = g->n;
		p.a = g->a;
		p.a_row = g->transpose_a ? 1 : g->lda;
		p.a_step = g->transpose_a ? g->lda : 1;
		p.b = g->b;
		p.b_row = g->ldb;
		p.b_transposed = g->transpose_b;
	}

	gemm_choose_access(&p);
	p.fetch_sums = !p.transposed && p.rows * p.columns >= GEMM_L2_FLOATS / 4;
	if (gemm_is_few(g) && !gemm_is_outer(g) && !g->transpose_b)
		slices = min(slices, GEMM_FEW_SLICES);
	else if (p.stream)
		slices = min(slices, max(GEMM_FEW_SLICES, p.columns / GEMM_WIDE));
	else if (p.block == GEMM_SHALLOW) /* copied, a group at a time */
		slices = min(slices, conv__ceil(p.columns, GEMM_GROUP / GEMM_SHALLOW));
	p.column_units = conv__ceil(p.columns, CONV_PANEL_MOST);
	p.row_pieces = conv__ceil(p.rows, GEMM_ROWS);
	p.column_pieces = p.transposed ? conv__ceil(p.columns, GEMM_TRANSPOSED) : 1;
	/* Columns first: rows of A are read in place, but each slice copies B's panels. */
	if (slices > p.row_pieces * p.column_pieces) {
		if (!gemm_is_outer(g))
			gemm_split(&p.column_pieces, p.column_units / 2, slices, p.row_pieces);
		gemm_split(&p.row_pieces, p.rows / (2 * CONV_ROWS_MOST), slices, p.column_pieces);
	}
	slices = (int64_t)fmin(work / GEMM_LARGE_SLICE, GEMM_MANY_SLICES);
	if (!p.stream && !gemm_is_few(g) && slices > p.row_pieces * p.column_pieces) {
		gemm_split(&p.column_pieces, p.columns / GEMM_LARGE_COLUMNS, slices, p.row_pieces);
		gemm_split(&p.row_pieces, p.rows / GEMM_LARGE_ROWS, slices, p.column_pieces);
	}
	return p;
}

uint64_t kernel_gemm_work(const struct kernel_gemm *gemm)
{
	return kernel_work_products(gemm->m * gemm->n * gemm->k) +
	       kernel_work_floats(gemm->m * gemm->k + gemm->k * gemm->n + gemm->m * gemm->n);
}

unsigned kernel_gemm_slices(const struct kernel_gemm *gemm)
{
	struct gemm_plan p = gemm_plan(gemm);

	return (unsigned)(p.row_pieces * p.column_pieces);
}

static struct gemm_range gemm_range(const struct gemm_plan *p, int64_t slice)
{
	int64_t row = slice / p->column_pieces, column = slice % p->column_pieces;
	struct gemm_range r = {.rows = p->rows, .columns = p->columns};

	if (p->row_pieces * p->column_pieces == 1)
		return r;
	r = (struct gemm_range){
		.row = conv__piece(p->rows, p->row_pieces, row),
		.column = conv__piece(p->column_units, p->column_pieces, column) * CONV_PANEL_MOST,
	};
	r.rows = conv__piece(p->rows, p->row_pieces, row + 1) - r.row;
	r.columns = conv__piece(p->column_units, p->column_pieces, column + 1) * CONV_PANEL_MOST;
	r.columns = min(r.columns, p->columns) - r.column;
	return r;
}

/* ---- a slice --------------------------------------------------------------------------------- */

/* A slice's rows of A in one block of the depth. */
struct gemm_rows {
	const float *a;
	int64_t row, step;
};

/*
 * Rows at a multiple of some kilobytes share few cache sets and touch many pages: they are copied
 * once for all panels. The same applies to a transposed A's rows of the block.
 */
static struct gemm_rows gemm_rows(const struct gemm_plan *p, const struct gemm_range *r,
				  int64_t first, int64_t depth, float *memory)
{
	struct gemm_rows rows = {
		.a = p->a + r->row * p->a_row + first * p->a_step,
		.row = p->a_row,
		.step = p->a_step,
	};
	bool along = p->a_step == 1; /* the depth is contiguous */
	int64_t apart = along ? p->a_row : p->a_step, lines = along ? r->rows : depth;
	int64_t length = along ? depth : r->rows, pitch = conv__whole_lines(length) + GEMM_SPREAD;

	if (apart % (2 * GEMM_DISTANCE) || lines < 2 || r->columns <= CONV_PANEL_MOST)
		return rows;
	for (int64_t i = 0; i < lines; i++)
		memcpy(memory + i * pitch, rows.a + i * apart, (size_t)length * sizeof(float));
	rows.a = memory;
	rows.row = along ? pitch : 1;
	rows.step = along ? 1 : pitch;
	return rows;
}

/* Adjacent panels of B and C, within a block of the depth. */
struct gemm_group {
	const struct conv_body *body;
	const float *b;
	int64_t b_step, b_panel, depth; /* floats from k to k, from panel to panel; number of k */
	float *c;                       /* the range's first row */
	int64_t c_row, columns;
	bool add, relu, fetch; /* fetch: prefetch the next tile of C */
	float most;
	const float *bias, *last_bias; /* of the columns, of the last panel; NULL: none (yet) */
};

/* The tile whose rows are computed next is in another part of C: prefetch @rows rows of it. */
static void gemm_prefetch_sums(const float *c, int64_t c_row, int64_t rows, int columns)
{
	for (int64_t i = 0; i < rows; i++, c += c_row) {
		for (int column = 0; column < columns; column += 16)
			__builtin_prefetch(c + column);
		__builtin_prefetch(c + columns - 1);
	}
}

/* Compute @rows rows from @row on of the group's panels at @first to @end. @next: where the next
 * tile's rows begin. */
static void gemm_tiles(const struct gemm_group *g, const struct gemm_rows *a, int64_t row,
		       int64_t rows, int64_t next, int64_t first, int64_t end)
{
	const int64_t half = (rows + 1) / 2, panel = g->body->panel;
	float *c = g->c + row * g->c_row + first;
	struct conv_tile tile = {
		.a0 = a->a + row * a->row,
		.a1 = a->a + (row + half) * a->row,
		.pixel = a->row,
		.runs_y = 1,
		.runs_x = 1,
		.length = g->depth,
		.b = g->b + first / panel * g->b_panel,
		.b_step = g->b_step,
		.c0 = c,
		.c1 = c + half * g->c_row,
		.c_pixel = g->c_row,
		.add = g->add,
		.relu = g->relu,
		.most = g->most,
	};
	struct conv_sum_tile sum = {
		.a = tile.a0,
		.images = 1,
		.lines = 1,
		.pixels = g->depth,
		.a_pixel = a->step,
		.b = tile.b,
		.b_step = g->b_step,
		.c = c,
		.c_row = g->c_row,
		.add = g->add,
	};

	for (int64_t column = first; column < end; column += panel) {
		int columns = (int)min(panel, end - column);

		if (g->fetch)
			gemm_prefetch_sums(g->c + next * g->c_row + column, g->c_row, rows,
					   columns);
		if (a->step == 1) {
			tile.columns = columns;
			if (g->bias)
				tile.bias = columns == panel ? g->bias + column : g->last_bias;
			g->body->tile[columns > g->body->lanes][rows - 1](&tile);
			tile.b += g->b_panel;
			tile.c0 += panel;
			tile.c1 += panel;
		} else {
			sum.columns = columns;
			g->body->sum[columns > g->body->lanes][rows - 1](&sum);
			sum.b += g->b_panel;
			sum.c += panel;
		}
	}
}

/* Set the group's panels of B at @column, from depth @first on: in place, or copied. */
static void gemm_pack(const struct gemm_plan *p, int64_t column, int64_t first, float *memory,
		      struct gemm_group *g)
{
	const int64_t panel = g->body->panel;
	const float *b =
		p->b + (p->b_transposed ? column * p->b_row + first : first * p->b_row + column);

	if (p->in_place && g->columns % panel % g->body->lanes == 0) {
		g->b = b;
		g->b_step = p->b_row;
		g->b_panel = panel;
		return;
	}
	g->b = memory;
	g->b_step = panel;
	g->b_panel = g->depth * panel;
	if (!p->b_transposed)
		g->body->pack(b, p->b_row, g->depth, (int)g->columns, memory);
	for (int64_t i = 0; p->b_transposed && i < g->columns; i += panel)
		g->body->pack_transposed(b + i * p->b_row, p->b_row, g->depth,
					 (int)min(panel, g->columns - i), memory + i * g->depth);
}

/* Sums are finished in the last block of the depth. Tiles read a whole panel of bias: pad it. */
static void gemm_finish(const struct kernel_conv_finish *finish, int64_t column, float *memory,
			struct gemm_group *g)
{
	int64_t last = g->columns % g->body->panel;

	g->relu = finish->relu;
	g->most = finish->most;
	g->bias = finish->bias ? finish->bias + column : NULL;
	if (!g->bias || !last)
		return;
	memset(memory, 0, CONV_PANEL_MOST * sizeof(float));
	memcpy(memory, g->bias + g->columns - last, (size_t)last * sizeof(float));
	g->last_bias = memory;
}

/* Prefetch the panel of B at @column, @first. If it begins within a cache line, that line was
 * fetched with the preceding panel. */
static void gemm_prefetch(const struct gemm_plan *p, int64_t column, int64_t first, int64_t depth)
{
	const struct conv_body *body = conv__body();
	const float *b = p->b + first * p->b_row + column - 1;

	for (int64_t k = 0; k < depth; k++) {
		__builtin_prefetch(b + body->lanes);
		__builtin_prefetch(b + body->panel);
		b += p->b_row;
	}
}

/* A part of B that is to be copied next, prefetched little by little while tiles are computed. */
struct gemm_fetch {
	const float *b;
	int64_t row;           /* floats from row to row as stored */
	int64_t rows, columns; /* as stored; rows: left */
	int64_t column;        /* of the next line */
	int64_t lines;         /* at a time */
};

static struct gemm_fetch gemm_fetch(const struct gemm_plan *p, int64_t column, int64_t columns,
				    int64_t first, int64_t depth, int64_t times)
{
	struct gemm_fetch f = {
		.b = p->b + first * p->b_row + column,
		.row = p->b_row,
		.rows = depth,
		.columns = columns,
	};

	if (p->b_transposed) {
		f.b = p->b + column * p->b_row + first;
		f.rows = columns;
		f.columns = depth;
	}
	f.lines = conv__ceil(f.rows * conv__whole_lines(f.columns) / 16, times);
	return f;
}

static void gemm_fetch_lines(struct gemm_fetch *f)
{
	for (int64_t i = 0; i < f->lines && f->rows > 0; i++) {
		__builtin_prefetch(f->b + f->column, 0, 2); /* not into the L1 cache */
		f->column += 16;
		if (f->column >= f->columns) {
			f->column = 0;
			f->b += f->row;
			f->rows--;
		}
	}
}

/* Compute @rows rows of the group, @near columns after the other. */
static void gemm_group_run(const struct gemm_group *g, const struct gemm_rows *a, int64_t rows,
			   int64_t near, struct gemm_fetch *fetch)
{
	const int64_t tiles = conv__ceil(rows, g->body->rows);

	for (int64_t column = 0; column < g->columns; column += near) {
		for (int64_t tile = 0; tile < tiles; tile++) { /* nearly equal */
			int64_t row = conv__piece(rows, tiles, tile);
			int64_t next = conv__piece(rows, tiles, tile + 1);

			gemm_fetch_lines(fetch);
			gemm_tiles(g, a, row, next - row, min(next, rows - (next - row)), column,
				   min(column + near, g->columns));
		}
	}
}

static void gemm_range_run(const struct gemm_plan *p, const struct gemm_range *r,
			   const struct kernel_conv_finish *finish,
			   const struct gemm_memory *memory, float *c, int64_t c_row)
{
	const struct conv_body *body = conv__body();
	const int64_t blocks = max(1, conv__ceil(p->depth, p->block));

	for (int64_t block = 0, first = 0, depth; block < blocks; block++, first += depth) {
		struct gemm_rows a;
		int64_t near = r->columns, columns = r->columns; /* without depth */

		depth = conv__piece(p->depth, blocks, block + 1) - first;
		if (depth > 0) {
			near = max(1, GEMM_DEPTH / depth) * body->panel;
			columns = GEMM_GROUP / depth / body->panel * body->panel;
		}
		if (p->stream)
			near = columns = body->panel;
		a = gemm_rows(p, r, first, depth, memory->rows);
		for (int64_t column = 0; column < r->columns; column += columns) {
			struct gemm_fetch fetch = {0};
			struct gemm_group g = {
				.body = body,
				.depth = depth,
				.c = c + column,
				.c_row = c_row,
				.columns = min(columns, r->columns - column),
				.add = first > 0,
				.fetch = p->fetch_sums,
			};
			int64_t next = column + columns, next_first = first;

			if (next >= r->columns) {
				next = 0;
				next_first += depth;
			}
			gemm_pack(p, r->column + column, first, memory->panel, &g);
			if (p->stream && next_first < p->depth)
				gemm_prefetch(p, r->column + next, next_first, depth);
			else if (!p->in_place && next_first < p->depth)
				fetch = gemm_fetch(p, r->column + next,
						   min(columns, r->columns - next), next_first,
						   min(depth, p->depth - next_first),
						   conv__ceil(r->rows, body->rows) *
							   conv__ceil(g.columns, near));
			if (finish && first + depth == p->depth)
				gemm_finish(finish, r->column + column, memory->bias, &g);
			gemm_group_run(&g, &a, r->rows, near, &fetch);
		}
	}
}

static void gemm_finish_rows(const struct kernel_conv_finish *finish, const struct gemm_range *r,
			     float *c, int64_t ldc)
{
	const float *bias = finish->bias ? finish->bias + r->column : NULL;

	assert(!finish->relu || isinf(finish->most));
	if (finish->relu)
		kernel_bias_relu(c, ldc, r->rows, r->columns, bias);
	else if (bias)
		kernel_bias(c, ldc, r->rows, r->columns, bias);
}

/*
 * B is read in pieces as long as the columns that are processed together. Their sums are in
 * @memory until they are finished: rows of C, whose distance is often a multiple of some kilobytes,
 * would share few cache sets. If each row of C is a stream itself, its sums are in place.
 */
static void gemm_few(const struct gemm_plan *p, const struct gemm_range *r,
		     const struct kernel_conv_finish *finish, float *memory, float *c, int64_t ldc)
{
	const bool in_place = p->b_transposed || p->depth <= CONV_FEW || r->rows <= CONV_FEW;
	const int64_t columns = in_place ? max(r->columns, 1) : gemm_few_columns(r->rows);

	for (int64_t column = 0; column < r->columns; column += columns) {
		const struct gemm_range part = {r->row, r->rows, r->column + column,
						min(columns, r->columns - column)};
		const struct conv_few few = {
			.a = p->a + r->row * p->a_row,
			.rows = r->rows,
			.a_row = p->a_row,
			.a_step = p->a_step,
			.b = p->b + (p->b_transposed ? part.column * p->b_row : part.column),
			.b_row = p->b_row,
			.depth = p->depth,
			.columns = part.columns,
			.c = in_place ? c : memory,
			.c_row = in_place ? ldc : columns + GEMM_SPREAD,
		};

		(p->b_transposed ? conv__body()->few_transposed : conv__body()->few)(&few);
		gemm_finish_rows(finish, &part, few.c, few.c_row);
		for (int64_t i = 0; !in_place && i < r->rows; i++)
			memcpy(c + i * ldc + column, few.c + i * few.c_row,
			       (size_t)part.columns * sizeof(float));
	}
}

/* ---- slices ---------------------------------------------------------------------------------- */

static void gemm_slice(const struct kernel_gemm *g, const struct gemm_plan *p, int64_t slice,
		       float *scratch)
{
	struct gemm_range r = gemm_range(p, slice);
	struct gemm_memory memory = gemm_memory(scratch);
	float *c = g->c + r.row * g->ldc + r.column;

	assert(!(g->finish.bias || g->finish.relu) || !(g->transpose_a || g->transpose_b));
	if (g->openblas) {
		kernel_openblas_multiply(g, r.row, r.rows, r.column, r.columns);
		gemm_finish_rows(&g->finish, &r, c, g->ldc);
	} else if (p->transposed) {
		gemm_range_run(p, &r, NULL, &memory, memory.transposed, GEMM_TRANSPOSED);
		conv__body()->transpose(memory.transposed, GEMM_TRANSPOSED, r.rows, r.columns,
					g->c + r.column * g->ldc + r.row, g->ldc);
	} else if (gemm_is_few(g)) {
		gemm_few(p, &r, &g->finish, memory.panel, c, g->ldc);
	} else {
		gemm_range_run(p, &r, &g->finish, &memory, c, g->ldc);
	}
	if (g->finish.watch)
		kernel_watch_update(g->finish.watch,
				    kernel_abs_max_rows(c, g->ldc, r.rows, r.columns));
}

void kernel_gemm_slice(const struct kernel_gemm *gemm, unsigned slice, float *memory)
{
	struct gemm_plan p = gemm_plan(gemm);

	gemm_slice(gemm, &p, slice, memory);
}

struct gemm_job {
	const struct kernel_gemm *gemm;
	struct gemm_plan plan;
	float *scratch;
};

static void gemm_job_slice(void *context, unsigned slice, unsigned lane)
{
	const struct gemm_job *job = context;

	gemm_slice(job->gemm, &job->plan, slice, job->scratch + lane * KERNEL_GEMM_LANE);
}

void kernel_gemm(const struct kernel_gemm *gemm, const struct kernel_room *room)
{
	struct gemm_job job = {.gemm = gemm, .plan = gemm_plan(gemm), .scratch = room->scratch};

	pool_share_lanes(room->pool, kernel_gemm_work(gemm), gemm_job_slice, &job,
			 (unsigned)(job.plan.row_pieces * job.plan.column_pieces));
	if (gemm->finish.watch)
		gemm->finish.watch->known = true;
}
