/*
 * The loops of the statistics' kernels, for one kind of vector: included by each
 * outfeed_kernel_BODY.c, which defines
 *
 *	KERNEL, NAME    the declaration of the variant, and its name
 *	RUNS            does this processor have the instructions?
 *	TARGET          the attribute that enables them
 *	INLINE          a function that is always inlined, with it: switching between 512-bit
 *			vectors and old SSE instructions costs more than the called function
 *
 * and, if it has vectors:
 *
 *	LANES           floats in a vector: ROW, or a divisor of it
 *	VF, VI, VD      vectors of LANES floats, LANES 32-bit integers, and half as many doubles
 *	MASK            the result of comparing floats or integers
 *	PLAIN           counting is expensive, so strips are first assumed to have no zeros
 *	STRIP           values that are summed in one part of the lanes before the next part
 *	vf_*, vi_*, vd_*  see the bodies
 *
 * A variant processes whole vectors; the remaining values, and all of the portable variant, are
 * processed lane by lane. Minimum and maximum are `x < m ? x : m` and `x > m ? x : m` everywhere,
 * which is what the vector instructions with operands (x, m) compute.
 *
 * Pure functions on the caller's data: any thread.
 */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "outfeed/outfeed_kernel.h"

#ifdef LANES
#define WITH_VECTORS(call) (call)
#else
#define WITH_VECTORS(call) 0
#endif

#define ROW       16
#define MAGNITUDE 0x7fffffff
#define INFINITE  0x7f800000

/* The hardware prefetcher stops at every page, and cannot keep memory busy beside much
 * arithmetic: prefetch lines this many floats ahead, into the second-level cache. (For the
 * first-level cache its few miss buffers would be the bottleneck.) */
#define AHEAD             2048
#define PREFETCH(address) __builtin_prefetch((address), 0, 2)

/* changes of a variable (numpy.isclose) */
#define ATOL 1e-8
#define RTOL 1e-5

INLINE size_t whole_rows(size_t count)
{
	return count - count % ROW;
}

INLINE uint32_t bits_of(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

INLINE uint32_t magnitude_of(float x)
{
	return bits_of(x) & MAGNITUDE;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

struct lanes {
	/* Aligned: otherwise vector stores straddle cache lines and stall the following loads. */
	_Alignas(64) double sum[ROW];
	double squares[ROW], l1[ROW];
	float min[ROW], max[ROW];
	uint32_t least[ROW];
	uint32_t zeros[ROW], negatives[ROW];
};

INLINE void lanes_start(struct lanes *lanes)
{
	memset(lanes, 0, sizeof(*lanes)); /* +0 has all bits zero */
	for (int i = 0; i < ROW; i++) {
		lanes->min[i] = INFINITY;
		lanes->max[i] = -INFINITY;
		lanes->least[i] = UINT32_MAX;
	}
}

INLINE double fold(double *lane)
{
	for (int width = ROW / 2; width > 0; width /= 2) {
		for (int i = 0; i < width; i++)
			lane[i] += lane[i + width];
	}
	return lane[0];
}

/* ---- sums ------------------------------------------------------------------------------------ */

INLINE void lane_sums(struct lanes *lanes, size_t i, float x)
{
	double d = (double)x;
	/* Zero minus one is the greatest integer, so zeros are never the least. */
	uint32_t bits = magnitude_of(x) - 1;

	lanes->sum[i] += d;
	lanes->squares[i] += d * d; /* exact product: fusing it with the sum changes nothing */
	lanes->l1[i] += fabs(d);
	lanes->min[i] = x < lanes->min[i] ? x : lanes->min[i];
	lanes->max[i] = x > lanes->max[i] ? x : lanes->max[i];
	lanes->least[i] = bits < lanes->least[i] ? bits : lanes->least[i];
	lanes->zeros[i] += bits == UINT32_MAX;
	lanes->negatives[i] += x < 0;
}

/* Memory to prefetch: @step bytes further for each row. */
struct ahead {
	const char *next;
	size_t step;
};

#ifdef LANES
/* This many zeros in a strip make zeros in the next one likely. */
#define SOME 3

/* Counts do not depend on the order: LANES lanes suffice. */
struct counted {
	VI least; /* magnitude minus 1: for zeros the greatest integer */
	VI zeros, negatives;
};

INLINE void count_any(struct counted *c, VF x)
{
	const VI ones = vi_all(-1);
	VI bits = vi_add(vi_and(vi_bits(x), vi_all(MAGNITUDE)), ones);

	c->least = vi_min(bits, c->least);
	c->zeros = vi_count(c->zeros, vi_equal(bits, ones));
	c->negatives = vi_count(c->negatives, vf_less(x, vf_all(0)));
}

/* The same if there are no zeros, so the sign bit suffices. Here least is the magnitude itself: 0
 * if there are zeros nevertheless. */
INLINE void count_plain(struct counted *c, VF x)
{
	VI bits = vi_bits(x);

	c->least = vi_min(vi_and(bits, vi_all(MAGNITUDE)), c->least);
	c->negatives = vi_sub(c->negatives, vi_sign(bits));
}

/* Add @count values, whole rows, to the lanes from @at on: few enough for all sums to stay in
 * registers. */
INLINE void part_sums(const float *values, size_t count, struct lanes *l, int at,
		      struct counted *counted, bool plain, const struct ahead *ahead)
{
	const char *next = ahead->next;
	VD sum0 = vd_load(l->sum + at), sum1 = vd_load(l->sum + at + LANES / 2);
	VD sq0 = vd_load(l->squares + at), sq1 = vd_load(l->squares + at + LANES / 2);
	VD l10 = vd_load(l->l1 + at), l11 = vd_load(l->l1 + at + LANES / 2);
	VF min = vf_load(l->min + at), max = vf_load(l->max + at);
	struct counted c = *counted;
	const float *end = values + count;

	for (const float *p = values + at; p < end; p += ROW) {
		VF x = vf_load(p);
		VD d0 = vd_wide(p), d1 = vd_wide(p + LANES / 2);

		if (at == 0) {
			PREFETCH(next);
			next += ahead->step;
		}
		sum0 = vd_add(sum0, d0);
		sum1 = vd_add(sum1, d1);
		sq0 = vd_fma(d0, d0, sq0);
		sq1 = vd_fma(d1, d1, sq1);
		l10 = vd_add(l10, vd_abs(d0));
		l11 = vd_add(l11, vd_abs(d1));
		min = vf_min(x, min);
		max = vf_max(x, max);
		if (plain)
			count_plain(&c, x);
		else
			count_any(&c, x);
	}
	vd_store(l->sum + at, sum0);
	vd_store(l->sum + at + LANES / 2, sum1);
	vd_store(l->squares + at, sq0);
	vd_store(l->squares + at + LANES / 2, sq1);
	vd_store(l->l1 + at, l10);
	vd_store(l->l1 + at + LANES / 2, l11);
	vf_store(l->min + at, min);
	vf_store(l->max + at, max);
	*counted = c;
}

INLINE void all_sums(const float *values, size_t count, struct lanes *l, struct counted *counted,
		     bool plain, const struct ahead *ahead)
{
	for (int at = 0; at < ROW; at += LANES)
		part_sums(values, count, l, at, counted, plain, ahead);
}

/* Sum a strip. *@zeros: on entry, whether zeros are likely; on return, whether they are in the next
 * strip. A strip that was assumed to have none but has some is counted again; the next strip is
 * assumed to have zeros if there were several. */
INLINE void strip_sums(const float *values, size_t count, struct lanes *l, struct counted *counted,
		       bool *zeros, const struct ahead *ahead)
{
	struct counted c = {.least = vi_all(-1), .zeros = vi_all(0), .negatives = vi_all(0)};
	VI before = counted->zeros;

	if (*zeros) {
		all_sums(values, count, l, counted, false, ahead);
		*zeros = vi_any(vi_sub(counted->zeros, before));
		return;
	}
	all_sums(values, count, l, &c, true, ahead);
	*zeros = vi_any_zero(c.least);
	if (*zeros) {
		for (size_t i = 0; i < count; i += LANES)
			count_any(counted, vf_load(values + i));
		*zeros = vi_total(vi_sub(counted->zeros, before)) >= SOME;
		return;
	}
	counted->least = vi_min(counted->least, vi_add(c.least, vi_all(-1)));
	counted->negatives = vi_add(counted->negatives, c.negatives);
}

INLINE size_t vector_sums(const float *values, size_t count, struct lanes *l, struct ahead ahead)
{
	struct counted counted = {.least = vi_all(-1), .zeros = vi_all(0), .negatives = vi_all(0)};
	size_t rows = whole_rows(count), size;
	bool zeros = false;

	for (size_t at = 0; at < rows; at += size) {
		size = rows - at < STRIP ? rows - at : STRIP;
		if (PLAIN)
			strip_sums(values + at, size, l, &counted, &zeros, &ahead);
		else
			all_sums(values + at, size, l, &counted, false, &ahead);
		ahead.next += size / ROW * ahead.step;
	}
	vi_store(l->least, counted.least);
	vi_store(l->zeros, counted.zeros);
	vi_store(l->negatives, counted.negatives);
	return rows;
}
#endif

TARGET static void sums(const float *values, size_t count, struct outfeed_sums *out,
			const void *next, size_t step)
{
	struct ahead ahead = {next, step};
	struct lanes l;
	size_t at;

	lanes_start(&l);
	at = WITH_VECTORS(vector_sums(values, count, &l, ahead));
	for (; at < whole_rows(count); at += ROW) {
		PREFETCH(ahead.next);
		ahead.next += step;
		for (size_t i = 0; i < ROW; i++)
			lane_sums(&l, i, values[at + i]);
	}
	for (; at < count; at++)
		lane_sums(&l, at % ROW, values[at]);
	for (int width = ROW / 2; width > 0; width /= 2) {
		for (int i = 0; i < width; i++) {
			const int j = i + width;

			if (l.min[j] < l.min[i])
				l.min[i] = l.min[j];
			if (l.max[j] > l.max[i])
				l.max[i] = l.max[j];
			if (l.least[j] < l.least[i])
				l.least[i] = l.least[j];
			l.zeros[i] += l.zeros[j];
			l.negatives[i] += l.negatives[j];
		}
	}
	*out = (struct outfeed_sums){.sum = fold(l.sum),
				     .squares = fold(l.squares),
				     .l1 = fold(l.l1),
				     .min = l.min[0],
				     .max = l.max[0],
				     .least = l.least[0],
				     .zeros = l.zeros[0],
				     .negatives = l.negatives[0]};
}

/* ---- sums about a shift ---------------------------------------------------------------------- */

INLINE void lane_centred(struct lanes *lanes, size_t i, float x, double shift)
{
	double d = (double)x - shift;

	lanes->sum[i] += d;
	lanes->squares[i] += d * d;
}

#ifdef LANES
INLINE size_t vector_centred(const float *values, size_t count, double shift, struct lanes *l)
{
	const float *end = values + whole_rows(count);
	const VD k = vd_all(shift);

	for (int at = 0; at < ROW; at += LANES) {
		VD sum0 = vd_all(0), sum1 = vd_all(0), sq0 = vd_all(0), sq1 = vd_all(0);

		for (const float *p = values + at; p < end; p += ROW) {
			VD d0 = vd_sub(vd_wide(p), k), d1 = vd_sub(vd_wide(p + LANES / 2), k);

			sum0 = vd_add(sum0, d0);
			sum1 = vd_add(sum1, d1);
			sq0 = vd_add(sq0, vd_mul(d0, d0));
			sq1 = vd_add(sq1, vd_mul(d1, d1));
		}
		vd_store(l->sum + at, sum0);
		vd_store(l->sum + at + LANES / 2, sum1);
		vd_store(l->squares + at, sq0);
		vd_store(l->squares + at + LANES / 2, sq1);
	}
	return whole_rows(count);
}
#endif

TARGET static void centred(const float *values, size_t count, double shift,
			   struct outfeed_sums *out)
{
	struct lanes l;
	size_t at;

	lanes_start(&l);
	at = WITH_VECTORS(vector_centred(values, count, shift, &l));
	for (; at < whole_rows(count); at += ROW) {
		for (size_t i = 0; i < ROW; i++)
			lane_centred(&l, i, values[at + i], shift);
	}
	for (; at < count; at++)
		lane_centred(&l, at % ROW, values[at], shift);
	out->sum = fold(l.sum);
	out->squares = fold(l.squares);
}

/* ---- counts ---------------------------------------------------------------------------------- */

TARGET static void signs(const float *values, size_t count, struct outfeed_counts *out)
{
	size_t at = 0;

	out->negatives = out->positives = out->most = 0;
#ifdef LANES
	VI most = vi_all(0), negative = most, positive = most;

	for (; at + LANES <= count; at += LANES) {
		VF x = vf_load(values + at);

		PREFETCH(values + at + AHEAD);
		negative = vi_count(negative, vf_less(x, vf_all(0)));
		positive = vi_count(positive, vf_less(vf_all(0), x));
		most = vi_max(vi_and(vi_bits(x), vi_all(MAGNITUDE)), most);
	}
	out->negatives = vi_total(negative);
	out->positives = vi_total(positive);
	out->most = vi_most(most);
#endif
	for (; at < count; at++) {
		uint32_t bits = magnitude_of(values[at]);

		out->negatives += values[at] < 0;
		out->positives += values[at] > 0;
		out->most = bits > out->most ? bits : out->most;
	}
}

TARGET static void nonfinite(const float *values, size_t count, struct outfeed_counts *out)
{
	size_t at = 0;

	out->nan = out->pos_inf = out->neg_inf = 0;
#ifdef LANES
	VI nan = vi_all(0), pos_inf = nan, neg_inf = nan;

	for (; at + LANES <= count; at += LANES) {
		VF x = vf_load(values + at);

		nan = vi_count(nan, vf_unordered(x, x));
		pos_inf = vi_count(pos_inf, vf_equal(x, vf_all(INFINITY)));
		neg_inf = vi_count(neg_inf, vf_equal(x, vf_all(-INFINITY)));
	}
	out->nan = vi_total(nan);
	out->pos_inf = vi_total(pos_inf);
	out->neg_inf = vi_total(neg_inf);
#endif
	for (; at < count; at++) {
		out->nan += values[at] != values[at];
		out->pos_inf += values[at] == INFINITY;
		out->neg_inf += values[at] == -INFINITY;
	}
}

TARGET static uint32_t abs_max(const float *values, size_t count)
{
	uint32_t most = 0;
	size_t at = 0;

#ifdef LANES
	VI most0 = vi_all(0), most1 = most0;

	for (; at + (size_t)2 * LANES <= count; at += (size_t)2 * LANES) {
		const float *p = values + at;

		for (int line = 0; line < 2 * LANES; line += ROW)
			PREFETCH(p + line + AHEAD);
		most0 = vi_max(vi_and(vi_bits(vf_load(p)), vi_all(MAGNITUDE)), most0);
		most1 = vi_max(vi_and(vi_bits(vf_load(p + LANES)), vi_all(MAGNITUDE)), most1);
	}
	most = vi_most(vi_max(most0, most1));
#endif
	for (; at < count; at++) {
		uint32_t bits = magnitude_of(values[at]);

		most = bits > most ? bits : most;
	}
	return most;
}

/* ---- conversions ----------------------------------------------------------------------------- */

TARGET static size_t compact(float *out, const float *values, size_t count)
{
	size_t kept = 0, at = 0;

#ifdef LANES
	/* Storing whole vectors is safe: at most @at values were stored before. */
	for (; at + LANES <= count; at += LANES) {
		VF x = vf_load(values + at);
		VI size = vi_and(vi_bits(x), vi_all(MAGNITUDE));

		kept += vf_compact(out + kept, x, vi_greater(vi_all(INFINITE), size));
	}
#endif
	for (; at < count; at++) {
		out[kept] = values[at];
		kept += magnitude_of(values[at]) < INFINITE;
	}
	return kept;
}

/*
 * The 15 bits of a half, moved to a float's position, are a float 2^112 times too small. An exact
 * product corrects that, denormals included (as floats they are denormal too). Only the greatest
 * exponent needs more: from 2^16 on, values must become infinity or NaN.
 */
INLINE float lane_widen(uint16_t half)
{
	uint32_t bits = (uint32_t)(half & 0x7fff) << 13, sign = (uint32_t)(half & 0x8000) << 16;
	float x;

	memcpy(&x, &bits, sizeof(x));
	x *= 0x1p112f;
	memcpy(&bits, &x, sizeof(bits));
	/* The mantissa stays; a NaN is made quiet, as the processor's own conversion does. */
	bits |= x >= 0x1p16f ? INFINITE : 0;
	bits |= x > 0x1p16f ? 0x00400000 : 0;
	bits |= sign;
	memcpy(&x, &bits, sizeof(x));
	return x;
}

TARGET static void widen(float *out, const uint16_t *halves, size_t count)
{
	size_t at = 0;

#ifdef LANES
	for (; at + LANES <= count; at += LANES)
		vf_store(out + at, vf_widen(halves + at));
#endif
	for (; at < count; at++)
		out[at] = lane_widen(halves[at]);
}

INLINE uint16_t lane_key(float x)
{
	uint32_t bits = bits_of(x), size = bits & MAGNITUDE;
	uint32_t bin = (size >> 23) + (size != 0) + (size > INFINITE);

	return (uint16_t)(bin + (bits >> 31) * OUTFEED_KEY_NEGATIVE);
}

TARGET static void keys(uint16_t *out, const float *values, size_t count)
{
	size_t at = 0;

#ifdef LANES
	for (; at + LANES <= count; at += LANES) {
		VI bits = vi_bits(vf_load(values + at)), size = vi_and(bits, vi_all(MAGNITUDE));
		VI key = vi_exponent(size);

		PREFETCH(values + at + AHEAD);
		key = vi_count(key, vi_greater(size, vi_all(0)));
		key = vi_count(key, vi_greater(size, vi_all(INFINITE)));
		key = vi_add(key, vi_and(vi_sign(bits), vi_all(OUTFEED_KEY_NEGATIVE)));
		vi_store_short(out + at, key);
	}
#endif
	for (; at < count; at++)
		out[at] = lane_key(values[at]);
}

/* ---- neurons --------------------------------------------------------------------------------- */

/* Plain loops that compilers vectorize. Four rows at a time, so that counts are loaded and stored
 * once for four values. */
INLINE void active_rows(uint32_t *restrict active, const float *restrict values, size_t rows,
			size_t columns, float low, float high)
{
	size_t row = 0;

	for (; row + 4 <= rows; row += 4) {
		const float *a = values + row * columns, *b = a + columns, *c = b + columns,
			    *d = c + columns;

		for (size_t i = 0; i < columns; i++) {
			uint32_t two = (uint32_t)((a[i] > low) & (a[i] <= high)) +
				       (uint32_t)((b[i] > low) & (b[i] <= high));

			active[i] += two + (uint32_t)((c[i] > low) & (c[i] <= high)) +
				     (uint32_t)((d[i] > low) & (d[i] <= high));
		}
	}
	for (; row < rows; row++) {
		const float *a = values + row * columns;

		for (size_t i = 0; i < columns; i++)
			active[i] += (uint32_t)((a[i] > low) & (a[i] <= high));
	}
}

TARGET static void active(uint32_t *counts, const float *values, size_t rows, size_t columns,
			  float low, float high)
{
	active_rows(counts, values, rows, columns, low, high);
}

/* ---- changes --------------------------------------------------------------------------------- */

INLINE uint32_t lane_change(struct lanes *lanes, size_t i, float before, float after)
{
	double size = fabs((double)before), distance = fabs((double)after - (double)before);

	lanes->sum[i] += distance;
	lanes->l1[i] += size;
	/*
	 * Equal infinities have the distance NaN, unequal ones infinity, which no tolerance covers.
	 */
	return before != after && !(distance <= ATOL + RTOL * size && distance < (double)INFINITY);
}

#ifdef LANES
/* For half a vector of lanes, add to *@sum and *@size; return the number of changed values. */
INLINE uint32_t vector_changed(const float *before, const float *after, VD *sum, VD *size)
{
	VD b = vd_wide(before), a = vd_wide(after), magnitude = vd_abs(b);
	VD distance = vd_abs(vd_sub(a, b));
	VD limit = vd_add(vd_all(ATOL), vd_mul(vd_all(RTOL), magnitude));

	*sum = vd_add(*sum, distance);
	*size = vd_add(*size, magnitude);
	return LANES / 2 - vd_count_close(a, b, distance, limit);
}

INLINE size_t vector_change(struct outfeed_change *out, float *before, const float *after,
			    size_t count, struct lanes *l)
{
	enum {
		HALF = LANES / 2,
		HALVES = ROW / HALF
	};
	VD sum[HALVES], size[HALVES];

#pragma GCC unroll 4
	for (int i = 0; i < HALVES; i++)
		sum[i] = size[i] = vd_all(0);
	for (size_t at = 0; at < whole_rows(count); at += ROW) {
		uint32_t changed = 0;

		PREFETCH(before + at + AHEAD);
		PREFETCH(after + at + AHEAD);
#pragma GCC unroll 4
		for (int i = 0; i < HALVES; i++)
			changed += vector_changed(before + at + HALF * i, after + at + HALF * i,
						  &sum[i], &size[i]);
#pragma GCC unroll 4
		for (int i = 0; i < ROW; i += LANES)
			vf_store(before + at + i, vf_load(after + at + i));
		out->n_changed += changed;
	}
#pragma GCC unroll 4
	for (int i = 0; i < HALVES; i++) {
		vd_store(l->sum + HALF * i, sum[i]);
		vd_store(l->l1 + HALF * i, size[i]);
	}
	return whole_rows(count);
}
#endif

/* Normalize a NaN that a sum produced to the bytes of NAN, independent of its operands. */
INLINE double one_nan(double x)
{
	return isnan(x) ? (double)NAN : x;
}

TARGET static void change(struct outfeed_change *out, float *before, const float *after,
			  size_t count)
{
	struct lanes l;
	size_t at;

	lanes_start(&l);
	out->n_changed = 0;
	at = WITH_VECTORS(vector_change(out, before, after, count, &l));
	for (; at < whole_rows(count); at += ROW) {
		uint32_t changed = 0;

		for (size_t i = 0; i < ROW; i++)
			changed += lane_change(&l, i, before[at + i], after[at + i]);
		memcpy(before + at, after + at, ROW * sizeof(float));
		out->n_changed += changed;
	}
	for (; at < count; at++) {
		out->n_changed += lane_change(&l, at % ROW, before[at], after[at]);
		before[at] = after[at];
	}
	out->sum_change = one_nan(fold(l.sum));
	out->sum_before = one_nan(fold(l.l1));
}

KERNEL = {
	.name = NAME,
	.runs = RUNS,
	.sums = sums,
	.centred = centred,
	.signs = signs,
	.nonfinite = nonfinite,
	.compact = compact,
	.abs_max = abs_max,
	.widen = widen,
	.keys = keys,
	.active = active,
	.change = change,
};
