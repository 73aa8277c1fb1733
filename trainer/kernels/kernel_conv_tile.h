/*
 * The tiles of the convolution, for one vector type: included by kernel_conv_BODY.c, which defines
 *
 *	VEC, LANES      a vector type on which the compiler's operators work, and its floats
 *	ROWS            maximum rows of a tile: all their sums stay in registers
 *	PIXELS          maximum pixels of a depthwise tile
 *	STEPS           an enum: steps of the depth per loop iteration
 *	TARGET          the attribute that enables the instructions
 *	vec_load_part, vec_store_part, vec_all, vec_fma, vec_max, vec_min
 *	vec_inside      (x, y, most): x, but 0 if y <= 0 or y >= most
 *	vec_transpose   of LANES vectors
 *
 * Each step of the depth loads two vectors of B, broadcasts one float of A per row, and does two
 * fused multiply-adds with it. The multipliers are busy in every cycle, and A and B are read in
 * place, without excess. vec_max(a, b) and vec_min(a, b) return b if either operand is NaN.
 */
#include <string.h>

#define PANEL  (2 * LANES)
#define INLINE static inline __attribute__((always_inline)) TARGET

INLINE VEC vec_zero(void)
{
	return (VEC){0};
}

INLINE VEC vec_add(VEC a, VEC b)
{
	return a + b;
}

/* Vectors begin at any float. The compiler makes one instruction of a copy, where there is one; the
 * portable tiles were slower with an unaligned vector type instead. */
INLINE VEC vec_load(const float *p)
{
	VEC x;

	memcpy(&x, p, sizeof(x));
	return x;
}

INLINE void vec_store(float *p, VEC x)
{
	memcpy(p, &x, sizeof(x));
}

/* The first @count lanes, or all if there are more. */
INLINE VEC vec_load_some(const float *p, int64_t count)
{
	return count >= LANES ? vec_load(p) : vec_load_part(p, (int)count);
}

INLINE void vec_store_some(float *p, VEC x, int64_t count)
{
	if (count >= LANES)
		vec_store(p, x);
	else
		vec_store_part(p, x, (int)count);
}

INLINE void tile_step(VEC acc[ROWS][2], const float *a0, const float *a1, int64_t s, const float *b,
		      const int rows, const int vectors)
{
	const int half = (rows + 1) / 2;
	VEC b0 = vec_load(b), b1 = vectors > 1 ? vec_load(b + LANES) : b0;

#pragma GCC unroll 14
	for (int i = 0; i < rows; i++) {
		VEC a = vec_all(i < half ? a0[i * s] : a1[(i - half) * s]);

		acc[i][0] = vec_fma(a, b0, acc[i][0]);
		if (vectors > 1)
			acc[i][1] = vec_fma(a, b1, acc[i][1]);
	}
}

/* The output of a tile's sums: the first half of the rows (rounded up), and the others. Only the
 * last vector of a row may be partial. */
struct tile_out {
	float *c0, *c1;
	int64_t row;
	int columns;
};

INLINE float *tile_row(const struct tile_out *out, int i, const int rows)
{
	const int half = (rows + 1) / 2;

	return i < half ? out->c0 + i * out->row : out->c1 + (i - half) * out->row;
}

INLINE void tile_start(VEC acc[ROWS][2], const struct tile_out *out, bool add, const int rows,
		       const int vectors)
{
	const int last = out->columns - (vectors - 1) * LANES;

#pragma GCC unroll 14
	for (int i = 0; i < rows; i++)
		acc[i][0] = acc[i][1] = vec_zero();
	if (!add)
		return;
#pragma GCC unroll 14
	for (int i = 0; i < rows; i++) {
		const float *c = tile_row(out, i, rows);

		if (vectors > 1)
			acc[i][0] = vec_load(c);
		c += (vectors - 1) * LANES;
		acc[i][vectors - 1] = last >= LANES ? vec_load(c) : vec_load_part(c, last);
	}
}

INLINE void tile_fetch(const struct tile_out *out, const int rows, const int vectors)
{
#pragma GCC unroll 14
	for (int i = 0; i < rows; i++) {
		__builtin_prefetch(tile_row(out, i, rows), 1);
		if (vectors > 1)
			__builtin_prefetch(tile_row(out, i, rows) + LANES, 1);
	}
}

INLINE void tile_store(VEC acc[ROWS][2], const struct tile_out *out, const int rows,
		       const int vectors)
{
	const int last = out->columns - (vectors - 1) * LANES;

	if (last >= LANES) {
#pragma GCC unroll 14
		for (int i = 0; i < rows; i++) {
			float *c = tile_row(out, i, rows);

			vec_store(c, acc[i][0]);
			if (vectors > 1)
				vec_store(c + LANES, acc[i][1]);
		}
		return;
	}
#pragma GCC unroll 14
	for (int i = 0; i < rows; i++) {
		float *c = tile_row(out, i, rows);

		if (vectors > 1)
			vec_store(c, acc[i][0]);
		vec_store_part(c + (vectors - 1) * LANES, acc[i][vectors - 1], last);
	}
}

INLINE void tile_finish(VEC acc[ROWS][2], const struct conv_tile *t, const int rows,
			const int vectors)
{
	VEC zero = vec_zero(), most = vec_all(t->most);

	if (t->bias) {
#pragma GCC unroll 2
		for (int v = 0; v < vectors; v++) {
			VEC bias = vec_load(t->bias + v * LANES);

#pragma GCC unroll 14
			for (int i = 0; i < rows; i++)
				acc[i][v] = vec_add(acc[i][v], bias);
		}
	}
	if (!t->relu)
		return;
#pragma GCC unroll 14
	for (int i = 0; i < rows; i++) {
		acc[i][0] = vec_min(most, vec_max(zero, acc[i][0]));
		if (vectors > 1)
			acc[i][1] = vec_min(most, vec_max(zero, acc[i][1]));
	}
}

INLINE void tile_run(const struct conv_tile *t, const int rows, const int vectors)
{
	const struct tile_out out = {t->c0, t->c1, t->c_pixel, t->columns};
	const int64_t s = t->pixel, length = t->length, b_step = t->b_step;
	const float *b = t->b;
	VEC acc[ROWS][2];

	if (t->fetch)
		tile_fetch(&out, rows, vectors);
	tile_start(acc, &out, t->add, rows, vectors);
	for (int64_t y = 0; y < t->runs_y; y++) {
		for (int64_t x = 0; x < t->runs_x; x++) {
			const float *a0 = t->a0 + y * t->run_y + x * t->run_x;
			const float *a1 = t->a1 + y * t->run_y + x * t->run_x;

#pragma GCC unroll STEPS
			for (int64_t k = 0; k < length; k++) {
				tile_step(acc, a0 + k, a1 + k, s, b, rows, vectors);
				b += b_step;
			}
		}
	}
	__asm__("" : "+r"(t));
	if (t->bias || t->relu)
		tile_finish(acc, t, rows, vectors);
	const struct tile_out end = {t->c0, t->c1, t->c_pixel, t->columns};
	tile_store(acc, &end, rows, vectors);
}

#define SUM_AHEAD 12 /* pixels to prefetch: the hardware prefetcher misses large strides */

INLINE void sum_run(const struct conv_sum_tile *t, const int rows, const int vectors)
{
	const int half = (rows + 1) / 2;
	const struct tile_out out = {t->c, t->c + half * t->c_row, t->c_row, t->columns};
	const int64_t pixel = t->a_pixel, pixels = t->pixels, b_step = t->b_step;
	const float *b = t->b;
	VEC acc[ROWS][2];

	tile_start(acc, &out, t->add, rows, vectors);
	for (int64_t image = 0; image < t->images; image++) {
		for (int64_t line = 0; line < t->lines; line++) {
			const float *a = t->a + image * t->a_image + line * t->a_line;

#pragma GCC unroll STEPS
			for (int64_t p = 0; p < pixels; p++) {
				__builtin_prefetch(a + SUM_AHEAD * pixel);
				__builtin_prefetch(a + SUM_AHEAD * pixel + rows - 1);
				tile_step(acc, a, a + half, 1, b, rows, vectors);
				a += pixel;
				b += b_step;
			}
		}
	}
	__asm__("" : "+r"(t));
	const struct tile_out end = {t->c, t->c + half * t->c_row, t->c_row, t->columns};
	tile_store(acc, &end, rows, vectors);
}

/* ---- weights --------------------------------------------------------------------------------- */

#define PACK_AHEAD 16 /* rows to prefetch: the hardware prefetcher misses large strides */

/* Whole panels are copied row by row, because memory delivers adjacent lines faster; the last one,
 * if it is partial or the only one, by itself. */
static TARGET void conv_pack(const float *w, int64_t ld, int64_t depth, int columns, float *b)
{
	const int whole = columns > PANEL ? columns / PANEL * PANEL : 0, rest = columns - whole;
	const float *row = w;

	for (int64_t k = 0; whole && k < depth; k++, row += ld) {
		for (int i = 0; i < whole; i += PANEL) {
			float *to = b + i * depth + k * PANEL;

			if (k + PACK_AHEAD < depth) {
				__builtin_prefetch(row + PACK_AHEAD * ld + i);
				__builtin_prefetch(row + PACK_AHEAD * ld + i + LANES);
			}
			vec_store(to, vec_load(row + i));
			vec_store(to + LANES, vec_load(row + i + LANES));
		}
	}
	w += whole;
	b += whole * depth;
	for (int64_t k = 0; rest && k < depth; k++, w += ld, b += PANEL) {
		if (k + PACK_AHEAD < depth) {
			__builtin_prefetch(w + PACK_AHEAD * ld);
			__builtin_prefetch(w + PACK_AHEAD * ld + LANES);
		}
		vec_store(b, vec_load_some(w, rest));
		vec_store(b + LANES,
			  rest > LANES ? vec_load_some(w + LANES, rest - LANES) : vec_zero());
	}
}

/* Transpose LANES columns, @columns of which exist, to rows @b_row apart; @part: store only
 * those. */
INLINE void pack_columns(const float *w, int64_t ld, int64_t depth, int columns, float *b,
			 int64_t b_row, const bool part)
{
	for (int64_t k = 0; k < depth; k += LANES) {
		VEC rows[LANES];

#pragma GCC unroll 16
		for (int i = 0; i < LANES; i++)
			rows[i] =
				i < columns ? vec_load_some(w + i * ld + k, depth - k) : vec_zero();
		vec_transpose(rows);
#pragma GCC unroll 16
		for (int i = 0; i < LANES; i++)
			if (k + i >= depth)
				break;
			else if (part)
				vec_store_part(b + (k + i) * b_row, rows[i], columns);
			else
				vec_store(b + (k + i) * b_row, rows[i]);
	}
}

static TARGET void conv_pack_transposed(const float *w, int64_t ld, int64_t depth, int columns,
					float *b)
{
	pack_columns(w, ld, depth, columns, b, PANEL, false);
	pack_columns(w + LANES * ld, ld, depth, columns - LANES, b + LANES, PANEL, false);
}

static TARGET void conv_transpose(const float *w, int64_t ld, int64_t rows, int64_t columns,
				  float *c, int64_t c_row)
{
	int64_t row = 0;

	for (; row + LANES <= rows; row += LANES)
		pack_columns(w + row * ld, ld, columns, LANES, c + row, c_row, false);
	if (row < rows)
		pack_columns(w + row * ld, ld, columns, (int)(rows - row), c + row, c_row, true);
}

INLINE VEC pack_relu(float *dy, const float *y, float most, bool keep, int64_t count)
{
	VEC x = vec_inside(vec_load_some(dy, count), vec_load_some(y, count), vec_all(most));

	if (keep)
		vec_store_some(dy, x, count);
	return x;
}

static TARGET void conv_pack_relu(float *dy, const float *y, float most, bool keep, int64_t ld,
				  int64_t depth, int columns, float *b)
{
	for (int64_t k = 0; k < depth; k++) {
		vec_store(b, pack_relu(dy, y, most, keep, columns));
		vec_store(b + LANES, columns > LANES ? pack_relu(dy + LANES, y + LANES, most, keep,
								 columns - LANES)
						     : vec_zero());
		dy += ld;
		y += ld;
		b += PANEL;
	}
}

/* Sum even and odd rows separately, and add the two sums last. */
static TARGET void conv_sums(const float *b, int64_t depth, int columns, bool add, float *sums)
{
	VEC even[2] = {vec_zero(), vec_zero()}, odd[2] = {vec_zero(), vec_zero()};
	float all[PANEL];
	int64_t k = 0;

	for (; k + 1 < depth; k += 2) {
		even[0] = vec_add(even[0], vec_load(b + k * PANEL));
		even[1] = vec_add(even[1], vec_load(b + k * PANEL + LANES));
		odd[0] = vec_add(odd[0], vec_load(b + (k + 1) * PANEL));
		odd[1] = vec_add(odd[1], vec_load(b + (k + 1) * PANEL + LANES));
	}
	if (k < depth) {
		even[0] = vec_add(even[0], vec_load(b + k * PANEL));
		even[1] = vec_add(even[1], vec_load(b + k * PANEL + LANES));
	}
	vec_store(all, vec_add(even[0], odd[0]));
	vec_store(all + LANES, vec_add(even[1], odd[1]));
	for (int i = 0; i < columns; i++)
		sums[i] = add ? sums[i] + all[i] : all[i];
}

/* ---- few rows -------------------------------------------------------------------------------- */

#define FEW_DEPTH 4 /* rows of B that are processed together */
#define FEW_ROWS  4 /* rows of C, if B has at most CONV_FEW rows: they share the loads of B */

/* Add the next @depth products to @count columns (at most LANES) of @rows rows. */
INLINE void few_vectors(const struct conv_few *f, VEC a[FEW_ROWS][FEW_DEPTH], const float *b,
			float *c, int64_t count, bool add, const int rows, const int depth)
{
	VEC column[FEW_DEPTH];

#pragma GCC unroll 4
	for (int i = 0; i < depth; i++)
		column[i] = vec_load_some(b + i * f->b_row, count);
#pragma GCC unroll 4
	for (int row = 0; row < rows; row++, c += f->c_row) {
		VEC sum = add ? vec_load_some(c, count) : vec_zero();

#pragma GCC unroll 4
		for (int i = 0; i < depth; i++)
			sum = vec_fma(a[row][i], column[i], sum);
		vec_store_some(c, sum, count);
	}
}

INLINE void few_rows(const struct conv_few *few, int64_t row, int64_t k, const int rows,
		     const int depth)
{
	const struct conv_few f = *few; /* which no store changes */
	const float *b = f.b + k * f.b_row;
	float *c = f.c + row * f.c_row;
	int64_t column = 0;
	VEC a[FEW_ROWS][FEW_DEPTH];

#pragma GCC unroll 4
	for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
		for (int i = 0; i < depth; i++)
			a[r][i] = vec_all(f.a[(row + r) * f.a_row + (k + i) * f.a_step]);
	for (; column + LANES <= f.columns; column += LANES)
		few_vectors(&f, a, b + column, c + column, LANES, k > 0, rows, depth);
	if (column < f.columns)
		few_vectors(&f, a, b + column, c + column, f.columns - column, k > 0, rows, depth);
}

/* The last 1 to 3 rows of B. */
INLINE void few_rest(const struct conv_few *f, int64_t row, int64_t k, const int rows)
{
	if (f->depth - k == 1)
		few_rows(f, row, k, rows, 1);
	else if (f->depth - k == 2)
		few_rows(f, row, k, rows, 2);
	else if (f->depth - k == 3)
		few_rows(f, row, k, rows, 3);
}

/* Add the next @depth products to @count columns (at most PANEL) of all rows. */
INLINE void few_panel(const struct conv_few *f, int64_t k, int64_t column, int64_t count,
		      const bool whole, const bool add, const int depth)
{
	const float *b = f->b + k * f->b_row + column, *a = f->a + k * f->a_step;
	const int64_t a_row = f->a_row, a_step = f->a_step, c_row = f->c_row;
	float *c = f->c + column;
	VEC low[FEW_DEPTH], high[FEW_DEPTH];

#pragma GCC unroll 4
	for (int i = 0; i < depth; i++, b += f->b_row) {
		low[i] = whole ? vec_load(b) : vec_load_some(b, count);
		high[i] = whole           ? vec_load(b + LANES)
			  : count > LANES ? vec_load_some(b + LANES, count - LANES)
					  : vec_zero();
		__builtin_prefetch(b + FEW_DEPTH * f->b_row);
	}
	for (int64_t row = 0; row < f->rows; row++, a += a_row, c += c_row) {
		VEC sum = vec_zero(), next = vec_zero();

		if (add) {
			sum = whole ? vec_load(c) : vec_load_some(c, count);
			if (whole)
				next = vec_load(c + LANES);
			else if (count > LANES)
				next = vec_load_some(c + LANES, count - LANES);
		}
#pragma GCC unroll 4
		for (int i = 0; i < depth; i++) {
			VEC x = vec_all(a[i * a_step]);

			sum = vec_fma(x, low[i], sum);
			next = vec_fma(x, high[i], next);
		}
		if (whole || count >= LANES)
			vec_store(c, sum);
		else
			vec_store_part(c, sum, (int)count);
		if (whole)
			vec_store(c + LANES, next);
		else if (count > LANES)
			vec_store_part(c + LANES, next, (int)(count - LANES));
	}
}

INLINE void few_depth(const struct conv_few *f, int64_t k, const bool add, const int depth)
{
	int64_t column = 0;

	for (; column + PANEL <= f->columns; column += PANEL)
		few_panel(f, k, column, PANEL, true, add, depth);
	if (column < f->columns)
		few_panel(f, k, column, f->columns - column, false, add, depth);
}

static TARGET void conv_few(const struct conv_few *f)
{
	int64_t k = 0, row = 0;

	if (f->depth > CONV_FEW && f->rows > CONV_FEW) {
		few_depth(f, 0, false, FEW_DEPTH);
		for (k = FEW_DEPTH; k + FEW_DEPTH <= f->depth; k += FEW_DEPTH)
			few_depth(f, k, true, FEW_DEPTH);
		for (; k < f->depth; k++)
			few_depth(f, k, true, 1);
		return;
	}
	for (; k + FEW_DEPTH <= f->depth; k += FEW_DEPTH)
		for (int64_t i = 0; i < f->rows; i++)
			few_rows(f, i, k, 1, FEW_DEPTH);
	for (; row + FEW_ROWS <= f->rows; row += FEW_ROWS)
		few_rest(f, row, k, FEW_ROWS);
	for (; row < f->rows; row++)
		few_rest(f, row, k, 1);
}

/* Add the next LANES products (@depth of them exist) to the sums of LANES columns (@columns of them
 * exist): their rows of B, from @b on, are transposed in registers. */
INLINE void few_block(const struct conv_few *f, const float *b, int64_t k, int64_t columns,
		      int64_t depth, VEC sums[CONV_FEW], const int rows, const bool whole)
{
	const float *a = f->a + k * f->a_step;
	VEC transposed[LANES];

	/* The compiler shall step the pointers: it has no registers for 16 offsets. */
#pragma GCC unroll 16
	for (int i = 0; i < LANES; i++, b += f->b_row) {
		__asm__ volatile("" : "+r"(b));
		transposed[i] = whole         ? vec_load(b)
				: i < columns ? vec_load_some(b, depth)
					      : vec_zero();
		__builtin_prefetch(b + 8 * LANES);
	}
	vec_transpose(transposed);
#pragma GCC unroll 16
	for (int i = 0; i < LANES; i++, a += f->a_step) {
		if (!whole && i >= depth)
			break;
		__asm__ volatile("" : "+r"(a));
#pragma GCC unroll 3
		for (int row = 0; row < rows; row++)
			sums[row] = vec_fma(vec_all(a[row * f->a_row]), transposed[i], sums[row]);
	}
}

/* The columns from @column on, up to FEW_BLOCKS blocks. Each sum waits for its product before: the
 * blocks take turns. */
#define FEW_BLOCKS 2

INLINE void few_columns(const struct conv_few *f, int64_t column, const int rows)
{
	const int64_t columns = f->columns - column;
	VEC sums[FEW_BLOCKS][CONV_FEW];

#pragma GCC unroll 2
	for (int block = 0; block < FEW_BLOCKS; block++)
#pragma GCC unroll 3
		for (int row = 0; row < rows; row++)
			sums[block][row] = vec_zero();
	for (int64_t k = 0; k < f->depth; k += LANES) {
		const int64_t depth = f->depth - k;
		const float *b = f->b + column * f->b_row + k;

		if (depth >= LANES && columns >= FEW_BLOCKS * LANES) {
#pragma GCC unroll 2
			for (int block = 0; block < FEW_BLOCKS; block++)
				few_block(f, b + block * LANES * f->b_row, k, LANES, LANES,
					  sums[block], rows, true);
		} else {
#pragma GCC unroll 2
			for (int block = 0; block < FEW_BLOCKS; block++)
				few_block(f, b + block * LANES * f->b_row, k,
					  columns - block * LANES, depth, sums[block], rows, false);
		}
	}
#pragma GCC unroll 2
	for (int block = 0; block < FEW_BLOCKS; block++) {
		int64_t count = columns - block * LANES;
		float *c = f->c + column + block * LANES;

#pragma GCC unroll 3
		for (int row = 0; row < rows; row++) {
			if (count > 0)
				vec_store_some(c + row * f->c_row, sums[block][row], count);
		}
	}
}

static TARGET void conv_few_transposed(const struct conv_few *f)
{
	for (int64_t column = 0; column < f->columns; column += FEW_BLOCKS * LANES) {
		if (f->rows == 1)
			few_columns(f, column, 1);
		else if (f->rows == 2)
			few_columns(f, column, 2);
		else
			few_columns(f, column, 3);
	}
}

#define TILE_FUNCTIONS(rows)                                                                       \
	static TARGET void tile_1_##rows(const struct conv_tile *t)                                \
	{                                                                                          \
		tile_run(t, rows, 1);                                                              \
	}                                                                                          \
	static TARGET void tile_2_##rows(const struct conv_tile *t)                                \
	{                                                                                          \
		tile_run(t, rows, 2);                                                              \
	}                                                                                          \
	static TARGET void sum_1_##rows(const struct conv_sum_tile *t)                             \
	{                                                                                          \
		sum_run(t, rows, 1);                                                               \
	}                                                                                          \
	static TARGET void sum_2_##rows(const struct conv_sum_tile *t)                             \
	{                                                                                          \
		sum_run(t, rows, 2);                                                               \
	}

TILE_FUNCTIONS(1)
TILE_FUNCTIONS(2)
TILE_FUNCTIONS(3)
TILE_FUNCTIONS(4)
#if ROWS >= 6
TILE_FUNCTIONS(5)
TILE_FUNCTIONS(6)
#endif
#if ROWS >= 14
TILE_FUNCTIONS(7)
TILE_FUNCTIONS(8)
TILE_FUNCTIONS(9)
TILE_FUNCTIONS(10)
TILE_FUNCTIONS(11)
TILE_FUNCTIONS(12)
TILE_FUNCTIONS(13)
TILE_FUNCTIONS(14)
#define TILE_TABLE(what)                                                                           \
	{                                                                                          \
		what##1, what##2, what##3, what##4, what##5, what##6, what##7, what##8, what##9,   \
			what##10, what##11, what##12, what##13, what##14                           \
	}
#elif ROWS >= 6
#define TILE_TABLE(what)                                                                           \
	{                                                                                          \
		what##1, what##2, what##3, what##4, what##5, what##6                               \
	}
#else
#define TILE_TABLE(what)                                                                           \
	{                                                                                          \
		what##1, what##2, what##3, what##4                                                 \
	}
#endif
