/*
 * Matrix products: how they are cut into slices, and how a slice iterates over tiles.
 *
 * A slice is up to 448 rows by some panels of columns. The depth is processed in equal blocks of
 * at most 512, so that a block of B's panel stays in the near caches and A's block in the L2
 * cache. The tiles continue their sums in C from block to block, which changes no bit.
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
#include "trainer/kernels/kernel_openblas.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/kernels/kernel_work.h"

#define GEMM_DEPTH      512 /* of a block: B's panel is 64 KB with AVX-512, 32 KB with AVX2 */
#define GEMM_ROWS       448 /* maximum per slice */
#define GEMM_TRANSPOSED 64  /* maximum columns of a slice whose product is transposed */
#define GEMM_NARROW     16  /* maximum columns of a C that leaves much of a panel idle */

/* Rows whose distance is a multiple of GEMM_DISTANCE floats share few cache sets. Their copies are
 * GEMM_SPREAD floats further apart than their length. */
#define GEMM_DISTANCE 256
#define GEMM_SPREAD   16

/* Floats that fit the L2 and the L1 cache; more than GEMM_CACHED_FLOATS come from memory. */
#define GEMM_L2_FLOATS     (1 << 18)
#define GEMM_L1_FLOATS     (1 << 13)
#define GEMM_CACHED_FLOATS (1 << 21)

/* Up to GEMM_FEW_ROWS rows read a panel of B in place, in blocks of GEMM_SHALLOW depth: a copy
 * would cost more than it gains. */
#define GEMM_FEW_ROWS 42
#define GEMM_SHALLOW  256

/* Slices: minimum multiply-adds of one, and their maximum number. With more work slices are larger
 * and more numerous, so that many processors are busy. */
#define GEMM_SLICE       (1 << 19)
#define GEMM_SLICES      16
#define GEMM_LARGE_SLICE (1 << 22)
#define GEMM_MANY_SLICES 64
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

	m.rows = m.panel + GEMM_DEPTH * CONV_PANEL_MOST;
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

static bool gemm_is_few(const struct kernel_gemm *g)
{
	return (g->m <= CONV_FEW || gemm_is_outer(g)) && g->k > 0 &&
	       !(g->finish.relu && isfinite(g->finish.most));
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
 * or for few rows. Few rows prefetch the next panel if B is larger. Rows that are not aligned to
 * cache lines are excluded if B comes from memory: loads across two lines stall.
 */
static void gemm_choose_access(struct gemm_plan *p)
{
	const int64_t floats = p->columns * p->depth;
	const bool fits_l2 = floats <= GEMM_L2_FLOATS;
	const bool spread = p->b_row % GEMM_DISTANCE || p->depth * p->b_row <= GEMM_L1_FLOATS;
	const bool few = p->rows <= GEMM_FEW_ROWS &&
			 (p->b_row == conv__whole_lines(p->b_row) || floats <= GEMM_CACHED_FLOATS);

	p->in_place = !p->b_transposed && (few || (fits_l2 && spread));
	p->stream = p->in_place && !fits_l2;
	p->block = p->stream ? GEMM_SHALLOW : GEMM_DEPTH;
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
	slices = max(slices, (int64_t)fmin(work / GEMM_LARGE_SLICE, GEMM_MANY_SLICES));
	if (gemm_is_few(g) && !gemm_is_outer(g) && !g->transpose_b)
		slices = min(slices, GEMM_FEW_SLICES);
	else if (p.stream)
		slices = min(slices, max(GEMM_FEW_SLICES, p.columns / GEMM_WIDE));
	p.column_units = conv__ceil(p.columns, CONV_PANEL_MOST);
	p.row_pieces = conv__ceil(p.rows, GEMM_ROWS);
	p.column_pieces = p.transposed ? conv__ceil(p.columns, GEMM_TRANSPOSED) : 1;
	/* Columns first: rows of A are read in place, but each slice copies B's panels. */
	if (slices > p.row_pieces * p.column_pieces) {
		if (!gemm_is_outer(g))
			gemm_split(&p.column_pieces, p.column_units / 2, slices, p.row_pieces);
		gemm_split(&p.row_pieces, p.rows / (2 * CONV_ROWS_MOST), slices, p.column_pieces);
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
	bool add, relu;
	float most;
	const float *bias, *last_bias; /* of the columns, of the last panel; NULL: none (yet) */
};

/* Compute @rows rows of all panels of the group. */
static void gemm_tiles(const struct gemm_group *g, const struct gemm_rows *a, int64_t row,
		       int64_t rows)
{
	const int64_t half = (rows + 1) / 2, panel = g->body->panel;
	struct conv_tile tile = {
		.a0 = a->a + row * a->row,
		.a1 = a->a + (row + half) * a->row,
		.pixel = a->row,
		.runs_y = 1,
		.runs_x = 1,
		.length = g->depth,
		.b = g->b,
		.b_step = g->b_step,
		.c0 = g->c + row * g->c_row,
		.c1 = g->c + (row + half) * g->c_row,
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
		.b = g->b,
		.b_step = g->b_step,
		.c = tile.c0,
		.c_row = g->c_row,
		.add = g->add,
	};

	for (int64_t column = 0; column < g->columns; column += panel) {
		int columns = (int)min(panel, g->columns - column);

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
	for (int64_t i = 0; i < g->columns; i += panel)
		(p->b_transposed ? g->body->pack_transposed : g->body->pack)(
			b + (p->b_transposed ? i * p->b_row : i), p->b_row, g->depth,
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

static void gemm_range_run(const struct gemm_plan *p, const struct gemm_range *r,
			   const struct kernel_conv_finish *finish,
			   const struct gemm_memory *memory, float *c, int64_t c_row)
{
	const struct conv_body *body = conv__body();
	const int64_t tiles = conv__ceil(r->rows, body->rows);
	const int64_t each = r->rows / tiles, rest = r->rows % tiles; /* nearly equal tiles */
	const int64_t blocks = max(1, conv__ceil(p->depth, p->block));

	for (int64_t block = 0, first = 0, depth; block < blocks; block++, first += depth) {
		struct gemm_rows a;
		int64_t columns;

		depth = conv__piece(p->depth, blocks, block + 1) - first;
		columns = depth > 0 ? GEMM_DEPTH / depth * body->panel : r->columns;
		if (p->stream)
			columns = body->panel;
		a = gemm_rows(p, r, first, depth, memory->rows);
		for (int64_t column = 0; column < r->columns; column += columns) {
			struct gemm_group g = {
				.body = body,
				.depth = depth,
				.c = c + column,
				.c_row = c_row,
				.columns = min(columns, r->columns - column),
				.add = first > 0,
			};

			gemm_pack(p, r->column + column, first, memory->panel, &g);
			if (p->stream && column + columns < r->columns)
				gemm_prefetch(p, r->column + column + columns, first, depth);
			else if (p->stream && block + 1 < blocks)
				gemm_prefetch(p, r->column, first + depth, depth);
			if (finish && first + depth == p->depth)
				gemm_finish(finish, r->column + column, memory->bias, &g);
			for (int64_t row = 0, next; row < r->rows; row = next) {
				next = row + each + (row < rest * (each + 1));
				gemm_tiles(&g, &a, row, next - row);
			}
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

static void gemm_few(const struct gemm_plan *p, const struct gemm_range *r, float *c, int64_t ldc)
{
	const struct conv_few few = {
		.a = p->a + r->row * p->a_row,
		.rows = r->rows,
		.a_row = p->a_row,
		.a_step = p->a_step,
		.b = p->b + (p->b_transposed ? r->column * p->b_row : r->column),
		.b_row = p->b_row,
		.depth = p->depth,
		.columns = r->columns,
		.c = c,
		.c_row = ldc,
	};

	(p->b_transposed ? conv__body()->few_transposed : conv__body()->few)(&few);
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
		gemm_few(p, &r, c, g->ldc);
		gemm_finish_rows(&g->finish, &r, c, g->ldc);
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
