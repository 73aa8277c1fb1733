/*
 * Winograd's transforms of tiles, for one vector type: included after kernel_conv_tile.h.
 *
 * A row of 6 pixels d, 3 weights w and 4 outputs y are polynomials, multiplied by way of their
 * values at the points 0, A, -A, B, -B and infinity. Each transform runs down the columns, then
 * along the rows. Points of equal magnitude share their even and odd parts. 5/8 and 3/2 lose fewer
 * digits than the usual 1 and 2, and their products up to the fourth degree are exact.
 */
#define POINT_A  0.625f
#define POINT_B  1.5f
#define SQUARE_A (POINT_A * POINT_A)
#define SQUARE_B (POINT_B * POINT_B)
#define CUBE_A   (SQUARE_A * POINT_A)
#define CUBE_B   (SQUARE_B * POINT_B)
/* The reciprocal of the product of a point's distances from the others. */
#define WEIGHT_0 (1.0f / (SQUARE_A * SQUARE_B))
#define WEIGHT_A (1.0f / (2.0f * SQUARE_A * (SQUARE_A - SQUARE_B)))
#define WEIGHT_B (1.0f / (2.0f * SQUARE_B * (SQUARE_B - SQUARE_A)))

INLINE VEC vec_scale(VEC x, float by)
{
	return vec_fma(x, vec_all(by), vec_zero());
}

/* x + by y */
INLINE VEC vec_step(VEC x, float by, VEC y)
{
	return vec_fma(vec_all(by), y, x);
}

/* Transform 6 pixels to 6 values. */
INLINE void transform_pixels(const VEC d[6], VEC v[6])
{
	VEC even_a = vec_step(d[4], -SQUARE_B, d[2]), odd_a = vec_step(d[3], -SQUARE_B, d[1]);
	VEC even_b = vec_step(d[4], -SQUARE_A, d[2]), odd_b = vec_step(d[3], -SQUARE_A, d[1]);

	v[0] = vec_step(vec_step(d[4], -(SQUARE_A + SQUARE_B), d[2]), SQUARE_A * SQUARE_B, d[0]);
	v[1] = vec_step(even_a, POINT_A, odd_a);
	v[2] = vec_step(even_a, -POINT_A, odd_a);
	v[3] = vec_step(even_b, POINT_B, odd_b);
	v[4] = vec_step(even_b, -POINT_B, odd_b);
	v[5] = vec_step(vec_step(d[5], -(SQUARE_A + SQUARE_B), d[3]), SQUARE_A * SQUARE_B, d[1]);
}

/* Transform the gradients of 4 outputs to 6 values. */
INLINE void transform_outputs(const VEC y[4], VEC v[6])
{
	VEC even_a = vec_step(y[0], SQUARE_A, y[2]), even_b = vec_step(y[0], SQUARE_B, y[2]);
	VEC odd_a = vec_step(vec_scale(y[1], POINT_A), CUBE_A, y[3]);
	VEC odd_b = vec_step(vec_scale(y[1], POINT_B), CUBE_B, y[3]);

	v[0] = y[0];
	v[1] = vec_add(even_a, odd_a);
	v[2] = vec_step(even_a, -1.0f, odd_a);
	v[3] = vec_add(even_b, odd_b);
	v[4] = vec_step(even_b, -1.0f, odd_b);
	v[5] = y[3];
}

/* Transform 3 weights to 6 values. */
INLINE void transform_weights(const VEC w[3], VEC u[6])
{
	VEC even_a = vec_scale(vec_step(w[0], SQUARE_A, w[2]), WEIGHT_A);
	VEC even_b = vec_scale(vec_step(w[0], SQUARE_B, w[2]), WEIGHT_B);

	u[0] = vec_scale(w[0], WEIGHT_0);
	u[1] = vec_step(even_a, POINT_A * WEIGHT_A, w[1]);
	u[2] = vec_step(even_a, -POINT_A * WEIGHT_A, w[1]);
	u[3] = vec_step(even_b, POINT_B * WEIGHT_B, w[1]);
	u[4] = vec_step(even_b, -POINT_B * WEIGHT_B, w[1]);
	u[5] = w[2];
}

/* Transform 6 sums to 4 outputs. */
INLINE void inverse_outputs(const VEC m[6], VEC y[4])
{
	VEC even_a = vec_add(m[1], m[2]), odd_a = vec_step(m[1], -1.0f, m[2]);
	VEC even_b = vec_add(m[3], m[4]), odd_b = vec_step(m[3], -1.0f, m[4]);

	y[0] = vec_add(m[0], vec_add(even_a, even_b));
	y[1] = vec_step(vec_scale(odd_b, POINT_B), POINT_A, odd_a);
	y[2] = vec_step(vec_scale(even_b, SQUARE_B), SQUARE_A, even_a);
	y[3] = vec_step(vec_step(m[5], CUBE_B, odd_b), CUBE_A, odd_a);
}

/* Transform 6 sums to the gradients of 3 weights. */
INLINE void inverse_weights(const VEC m[6], VEC w[3])
{
	VEC even_a = vec_scale(vec_add(m[1], m[2]), WEIGHT_A);
	VEC even_b = vec_scale(vec_add(m[3], m[4]), WEIGHT_B);
	VEC odd_a = vec_step(m[1], -1.0f, m[2]), odd_b = vec_step(m[3], -1.0f, m[4]);

	w[0] = vec_step(vec_add(even_a, even_b), WEIGHT_0, m[0]);
	w[1] = vec_step(vec_scale(odd_b, POINT_B * WEIGHT_B), POINT_A * WEIGHT_A, odd_a);
	w[2] = vec_step(vec_step(m[5], SQUARE_B, even_b), SQUARE_A, even_a);
}

INLINE bool transform_has(const struct conv_transform *s, int y, int x)
{
	return y >= s->first_y && y < s->end_y && x >= s->first_x && x < s->end_x;
}

INLINE void transform_input(const struct conv_transform *s, const bool whole)
{
	const int first_y = whole ? 0 : s->first_y, first_x = whole ? 0 : s->first_x;

	for (int64_t c = 0; c < s->channels; c += LANES) {
		VEC down[6][6], line[6];

#pragma GCC unroll 6
		for (int x = 0; x < 6; x++) {
			VEC column[6];

#pragma GCC unroll 6
			for (int y = 0; y < 6; y++)
				line[y] = whole || transform_has(s, y, x)
						  ? vec_load_some(s->x + (y - first_y) * s->row +
									  (x - first_x) * s->pixel +
									  c,
								  s->channels - c)
						  : vec_zero();
			transform_pixels(line, column);
#pragma GCC unroll 6
			for (int y = 0; y < 6; y++)
				down[y][x] = column[y];
		}
#pragma GCC unroll 6
		for (int y = 0; y < 6; y++) {
			transform_pixels(down[y], line);
#pragma GCC unroll 6
			for (int x = 0; x < 6; x++)
				vec_store(s->v + (y * 6 + x) * s->position + c, line[x]);
		}
	}
}

static TARGET void conv_transform_input(const struct conv_transform *s)
{
	if (s->first_y == 0 && s->end_y == 6 && s->first_x == 0 && s->end_x == 6)
		transform_input(s, true);
	else
		transform_input(s, false);
}

INLINE VEC transform_dy(const struct conv_transform *s, float *dy, int64_t at, int64_t count)
{
	return s->y ? pack_relu(dy + at, s->y + at, s->most, s->keep, count)
		    : vec_load_some(dy + at, count);
}

static TARGET void conv_transform_gradient(const struct conv_transform *s, float *dy)
{
	for (int64_t c = 0; c < s->channels; c += LANES) {
		int64_t count = s->channels - c;
		VEC down[6][4], sum = vec_zero();

#pragma GCC unroll 4
		for (int x = 0; x < 4; x++) {
			VEC column[6], line[4];

#pragma GCC unroll 4
			for (int y = 0; y < 4; y++) {
				line[y] =
					transform_has(s, y, x)
						? transform_dy(s, dy, y * s->row + x * s->pixel + c,
							       count)
						: vec_zero();
				sum = vec_add(sum, line[y]);
			}
			transform_outputs(line, column);
#pragma GCC unroll 6
			for (int y = 0; y < 6; y++)
				down[y][x] = column[y];
		}
		if (s->sums)
			vec_store(s->sums + c, vec_add(vec_load(s->sums + c), sum));
#pragma GCC unroll 6
		for (int y = 0; y < 6; y++) {
			VEC row[6];

			transform_outputs(down[y], row);
#pragma GCC unroll 6
			for (int x = 0; x < 6; x++)
				vec_store(s->v + (y * 6 + x) * s->position + c, row[x]);
		}
	}
}

INLINE void inverse_store(const struct conv_inverse *p, float *c, VEC y, int64_t count,
			  const VEC *bias)
{
	if (p->add)
		y = vec_add(vec_load_some(c, count), y);
	if (bias)
		y = vec_add(y, *bias);
	if (p->relu)
		y = vec_min(vec_all(p->most), vec_max(vec_zero(), y));
	vec_store_some(c, y, count);
}

static TARGET void conv_inverse(const struct conv_inverse *p)
{
	for (int64_t f = 0; f < p->columns; f += LANES) {
		VEC across[6][4], bias = p->bias ? vec_load(p->bias + f) : vec_zero();

#pragma GCC unroll 6
		for (int x = 0; x < 6; x++) {
			VEC m[6];

#pragma GCC unroll 6
			for (int y = 0; y < 6; y++)
				m[y] = vec_load(p->m + (y * 6 + x) * p->position + f);
			inverse_outputs(m, across[x]);
		}
#pragma GCC unroll 4
		for (int y = 0; y < 4; y++) {
			VEC m[6], out[4];

			if (y >= p->rows)
				break;
#pragma GCC unroll 6
			for (int x = 0; x < 6; x++)
				m[x] = across[x][y];
			inverse_outputs(m, out);
#pragma GCC unroll 4
			for (int x = 0; x < 4; x++)
				if (x < p->pixels)
					inverse_store(p, p->c + y * p->row + x * p->pixel + f,
						      out[x], p->columns - f,
						      p->bias ? &bias : NULL);
		}
	}
}

static TARGET void conv_transform_kernel(const float *b, int64_t depth, float *u, int64_t position)
{
	const int64_t tap = depth * PANEL;

	for (int64_t i = 0; i < tap; i += LANES) {
		VEC down[6][3];

#pragma GCC unroll 3
		for (int x = 0; x < 3; x++) {
			VEC column[6], w[3];

#pragma GCC unroll 3
			for (int y = 0; y < 3; y++)
				w[y] = vec_load(b + (y * 3 + x) * tap + i);
			transform_weights(w, column);
#pragma GCC unroll 6
			for (int y = 0; y < 6; y++)
				down[y][x] = column[y];
		}
#pragma GCC unroll 6
		for (int y = 0; y < 6; y++) {
			VEC row[6];

			transform_weights(down[y], row);
#pragma GCC unroll 6
			for (int x = 0; x < 6; x++)
				vec_store(u + (y * 6 + x) * position + i, row[x]);
		}
	}
}

#define INVERSE_AHEAD 8 /* rows to prefetch: nine are written at a time, far apart in memory */

static TARGET void conv_inverse_kernel(const float *u, int64_t position, int64_t depth, int columns,
				       float *w, int64_t tap, int64_t ld)
{
	for (int64_t i = 0; i < depth * PANEL; i += LANES) {
		int64_t f = i % PANEL, count = columns - f;
		float *to = w + i / PANEL * ld + f;
		VEC across[6][3];

		if (count <= 0)
			continue;
#pragma GCC unroll 9
		for (int x = 0; x < 9; x++)
			__builtin_prefetch(to + x * tap + INVERSE_AHEAD * ld, 1);
#pragma GCC unroll 6
		for (int x = 0; x < 6; x++) {
			VEC m[6];

#pragma GCC unroll 6
			for (int y = 0; y < 6; y++)
				m[y] = vec_load(u + (y * 6 + x) * position + i);
			inverse_weights(m, across[x]);
		}
#pragma GCC unroll 3
		for (int y = 0; y < 3; y++) {
			VEC m[6], out[3];

#pragma GCC unroll 6
			for (int x = 0; x < 6; x++)
				m[x] = across[x][y];
			inverse_weights(m, out);
#pragma GCC unroll 3
			for (int x = 0; x < 3; x++)
				vec_store_some(to + (y * 3 + x) * tap, out[x], count);
		}
	}
}
