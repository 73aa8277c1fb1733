/*
 * Measurements of a tensor's values, on top of the kernels: see outfeed_stats.h.
 *
 * Pure functions on the caller's data: any thread.
 */
#include "outfeed/outfeed_stats.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "outfeed/outfeed_kernel.h"

/* ---- pieces ---------------------------------------------------------------------------------- */

#define PIECE 4096

/* Convert @count values from @at on. */
static void read_floats(float *out, enum dtype dtype, const void *values, size_t at, size_t count)
{
	const char *from = (const char *)values + at * (size_t)dtype_bytes(dtype);

	if (dtype == DTYPE_FLOAT16)
		outfeed_scan_widen(out, (const void *)from, count);
	else
		dtype_to_float(dtype, out, from, count);
}

void outfeed_pieces(enum dtype dtype, const void *values, size_t count, outfeed_piece piece,
		    void *user)
{
	float wide[PIECE];

	if (dtype == DTYPE_FLOAT32) {
		piece(user, values, 0, count);
		return;
	}
	for (size_t at = 0; at < count; at += PIECE) {
		size_t size = min(count - at, PIECE);

		read_floats(wide, dtype, values, at, size);
		piece(user, wide, at, size);
	}
}

/* ---- the statistics row ---------------------------------------------------------------------- */

/*
 * Lanes are folded to a block's row, blocks to a slice's, slices to the tensor's, merged by Chan's
 * formula. A block is summed about 0 and, if that would lose digits (a mean far from 0 relative to
 * the deviation), again about its own mean, from the first-level cache. For a block with NaN or
 * infinities, these are counted and the finite values are summed without them.
 */

/* Values that are summed at once. A block and a copy of it fit into the first-level cache, so a
 * second pass is cheap; and the fixed cost per block is small relative to it. */
#define BLOCK 8192

/* Blocks are merged to slices, and slices to the row: one thread and several use the same tree, so
 * they give the same bytes. */
#define SLICE ((size_t)16 * BLOCK)
#define ROUND 64

#define ROW 16 /* of the kernels */

/* If the sum of squares exceeds m2 by this factor (a mean of 128 deviations), the difference has
 * lost 14 of 53 bits: compute it again about the mean. */
#define LOST 0x1p-14

void outfeed_stats_init(struct outfeed_stats *stats)
{
	*stats = (struct outfeed_stats){.min = NAN,
					.max = NAN,
					.mean = NAN,
					.m2 = NAN,
					.l1 = NAN,
					.l2_squared = NAN,
					.abs_min_nonzero = NAN,
					.abs_max = NAN};
}

/* Memory to prefetch while a block is summed: see outfeed_kernel.h. */
struct ahead {
	const void *next;
	size_t step;
};

static double least_nonzero(const struct outfeed_sums *sums)
{
	uint32_t bits = sums->least + 1; /* 0 if all values are zeros */
	float value;

	memcpy(&value, &bits, sizeof(value));
	return bits == 0 ? (double)NAN : (double)value;
}

/* Compute the row of a block. Return false, with @stats undefined, if a value is not finite. */
static bool finite_block(struct outfeed_stats *stats, const float *values, size_t count,
			 const struct ahead *ahead)
{
	struct outfeed_sums sums;
	double n = (double)count, shift = 0;

	outfeed_kernel_get()->sums(values, count, &sums, ahead->next, ahead->step);
	outfeed_stats_init(stats);
	if (!isfinite(sums.l1))
		return false;
	stats->n = (int64_t)count;
	stats->n_zero = sums.zeros;
	stats->n_neg = sums.negatives;
	stats->n_pos = stats->n - stats->n_zero - stats->n_neg;
	/* Zeros of both signs are equal, so their order decides which one wins: make it
	 * positive. */
	stats->min = (double)sums.min + 0.0;
	stats->max = (double)sums.max + 0.0;
	stats->abs_min_nonzero = least_nonzero(&sums);
	stats->abs_max = max(fabs(stats->min), fabs(stats->max));
	stats->l1 = sums.l1;
	stats->l2_squared = sums.squares;
	if (sums.squares - sums.sum * (sums.sum / n) < sums.squares * LOST) {
		shift = sums.sum / n;
		outfeed_kernel_get()->centred(values, count, shift, &sums);
	}
	stats->mean = shift + sums.sum / n;
	stats->m2 = sums.squares - sums.sum * (sums.sum / n);
	stats->m2 = max(stats->m2, 0);
	return true;
}

/* Count the non-finite values, and pass the rest of the block to finite_block(). */
static void mixed_block(struct outfeed_stats *stats, const float *values, size_t count)
{
	const struct outfeed_kernel *kernel = outfeed_kernel_get();
	struct outfeed_counts counts;
	float finite[BLOCK];
	size_t kept = kernel->compact(finite, values, count);

	outfeed_stats_init(stats);
	if (kept > 0)
		finite_block(stats, finite, kept, &(struct ahead){finite, 0});
	kernel->nonfinite(values, count, &counts);
	stats->n = (int64_t)count;
	stats->n_nan = counts.nan;
	stats->n_pos_inf = counts.pos_inf;
	stats->n_neg_inf = counts.neg_inf;
	stats->n_neg += counts.neg_inf;
	stats->n_pos += counts.pos_inf;
}

struct source {
	enum dtype dtype;
	const void *values;
	size_t count; /* of all */
};

/* Return the memory to prefetch during the block at @at: the next block, if there is one. */
static struct ahead prefetch_after(const struct source *source, size_t at)
{
	bool last = source->count - at <= BLOCK;
	const size_t next = last ? at : at + BLOCK, bytes = (size_t)dtype_bytes(source->dtype);

	return (struct ahead){(const char *)source->values + next * bytes, last ? 0 : ROW * bytes};
}

static void add_block(struct outfeed_stats *stats, const float *values, size_t count,
		      const struct ahead *ahead)
{
	struct outfeed_stats block;

	if (!finite_block(&block, values, count, ahead))
		mixed_block(&block, values, count);
	outfeed_stats_merge(stats, &block);
}

/* Compute the row of up to SLICE values from @at on. */
static void slice_row(struct outfeed_stats *row, const struct source *source, size_t at,
		      size_t count)
{
	const float *values = source->values;
	float wide[BLOCK];

	outfeed_stats_init(row);
	for (size_t end = at + count; at < end; at += BLOCK) {
		size_t size = min(end - at, BLOCK);
		struct ahead ahead = prefetch_after(source, at);

		if (source->dtype == DTYPE_FLOAT32) {
			add_block(row, values + at, size, &ahead);
			continue;
		}
		read_floats(wide, source->dtype, source->values, at, size);
		add_block(row, wide, size, &ahead);
	}
}

static void add_slices(struct outfeed_stats *stats, const struct source *source)
{
	struct outfeed_stats row;

	for (size_t at = 0; at < source->count; at += SLICE) {
		size_t left = source->count - at;

		slice_row(&row, source, at, min(left, SLICE));
		outfeed_stats_merge(stats, &row);
	}
}

void outfeed_stats_add(struct outfeed_stats *stats, const float *values, size_t count)
{
	add_slices(stats, &(struct source){DTYPE_FLOAT32, values, count});
}

/* Slices that are passed to the pool together. */
struct round {
	struct source source;
	size_t at, count; /* index of the first value; values of all slices */
	struct outfeed_stats rows[ROUND];
};

static void run_slice(void *context, unsigned slice)
{
	struct round *round = context;
	size_t at = slice * SLICE, left = round->count - at;

	slice_row(&round->rows[slice], &round->source, round->at + at, min(left, SLICE));
}

void outfeed_stats_add_pool(struct outfeed_stats *stats, const float *values, size_t count,
			    struct pool *pool)
{
	struct round round = {.source = {DTYPE_FLOAT32, values, count}};

	for (; round.at < count; round.at += ROUND * SLICE) {
		size_t left = count - round.at;
		unsigned slices;

		round.count = min(left, ROUND * SLICE);
		slices = (unsigned)((round.count + SLICE - 1) / SLICE);
		pool_run(pool, run_slice, &round, slices);
		for (unsigned i = 0; i < slices; i++)
			outfeed_stats_merge(stats, &round.rows[i]);
	}
}

static double min_known(double a, double b)
{
	return isnan(a) || b < a ? b : a;
}

static double max_known(double a, double b)
{
	return isnan(a) || b > a ? b : a;
}

void outfeed_stats_merge(struct outfeed_stats *into, const struct outfeed_stats *from)
{
	double have = (double)outfeed_stats_finite(into), more = (double)outfeed_stats_finite(from);
	double n = have + more, distance = from->mean - into->mean;

	if (have == 0 && more > 0) {
		into->mean = from->mean;
		into->m2 = from->m2;
		into->l1 = from->l1;
		into->l2_squared = from->l2_squared;
	} else if (more > 0) {
		into->mean += distance * (more / n);
		into->m2 += from->m2 + distance * distance * (have / n * more);
		into->l1 += from->l1;
		into->l2_squared += from->l2_squared;
	}
	into->n += from->n;
	into->n_nan += from->n_nan;
	into->n_pos_inf += from->n_pos_inf;
	into->n_neg_inf += from->n_neg_inf;
	into->n_zero += from->n_zero;
	into->n_neg += from->n_neg;
	into->n_pos += from->n_pos;
	into->min = min_known(into->min, from->min);
	into->max = max_known(into->max, from->max);
	into->abs_min_nonzero = min_known(into->abs_min_nonzero, from->abs_min_nonzero);
	into->abs_max = max_known(into->abs_max, from->abs_max);
}

int64_t outfeed_stats_finite(const struct outfeed_stats *stats)
{
	return stats->n - stats->n_nan - stats->n_pos_inf - stats->n_neg_inf;
}

double outfeed_stats_std(const struct outfeed_stats *stats)
{
	int64_t finite = outfeed_stats_finite(stats);

	return finite > 0 ? sqrt(stats->m2 / (double)finite) : (double)NAN;
}

double outfeed_stats_l2(const struct outfeed_stats *stats)
{
	return sqrt(stats->l2_squared);
}

void outfeed_stats_read(struct outfeed_stats *out, enum dtype dtype, const void *values,
			size_t count, struct pool *pool)
{
	outfeed_stats_init(out);
	if (dtype == DTYPE_FLOAT32)
		outfeed_stats_add_pool(out, values, count, pool);
	else
		add_slices(out, &(struct source){dtype, values, count});
}

/* ---- scans ----------------------------------------------------------------------------------- */

#define MAGNITUDE 0x7fffffffu

uint32_t outfeed_scan_abs_max(const float *values, size_t count)
{
	return outfeed_kernel_get()->abs_max(values, count);
}

void outfeed_scan_counts(struct outfeed_stats *out, const float *values, size_t count)
{
	const struct outfeed_kernel *kernel = outfeed_kernel_get();
	struct outfeed_counts counts;

	outfeed_stats_init(out);
	/* Block by block: a block is still in the first-level cache if a second pass is needed. */
	for (size_t at = 0; at < count; at += BLOCK) {
		const size_t size = min(count - at, BLOCK);

		kernel->signs(values + at, size, &counts);
		out->n_neg += counts.negatives;
		out->n_pos += counts.positives;
		if (counts.most < OUTFEED_NONFINITE_BITS)
			continue;
		kernel->nonfinite(values + at, size, &counts);
		out->n_nan += counts.nan;
		out->n_pos_inf += counts.pos_inf;
		out->n_neg_inf += counts.neg_inf;
	}
	out->n = (int64_t)count;
	out->n_zero = out->n - out->n_nan - out->n_neg - out->n_pos;
}

static uint32_t magnitude_of(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits & MAGNITUDE;
}

size_t outfeed_scan_first_nonfinite(const float *values, size_t count)
{
	const struct outfeed_kernel *kernel = outfeed_kernel_get();
	size_t at = 0;

	while (count - at > BLOCK && kernel->abs_max(values + at, BLOCK) < OUTFEED_NONFINITE_BITS)
		at += BLOCK;
	while (at < count && magnitude_of(values[at]) < OUTFEED_NONFINITE_BITS)
		at++;
	return at;
}

void outfeed_scan_widen(float *out, const uint16_t *halves, size_t count)
{
	outfeed_kernel_get()->widen(out, halves, count);
}

/* ---- changes --------------------------------------------------------------------------------- */

#define EPSILON 1e-9

void outfeed_change_scan(struct outfeed_change *out, float *before, const float *after,
			 size_t count)
{
	outfeed_kernel_get()->change(out, before, after, count);
}

double outfeed_change_ratio(const struct outfeed_change *change, size_t count)
{
	if (count == 0 || change->sum_before == 0)
		return (double)NAN;
	return change->sum_change / (double)count / (change->sum_before / (double)count + EPSILON);
}

/* ---- neurons --------------------------------------------------------------------------------- */

/* The length of a row that uses vectors well. */
#define NARROW 256

/* Active: above @low and not above @high. Both are floats, so "below" a bound is "not above" the
 * previous float. */
static const struct {
	float low, high;
} bounds[] = {
	[OUTFEED_RELU] = {0, INFINITY},
	[OUTFEED_TANH] = {-1, 0x1.fffffep-1f},
	[OUTFEED_SIGMOID] = {0x1.c3527ep-34f, 0x1.fffffcp-1f},
};
_Static_assert(ARRAY_LEN(bounds) == OUTFEED_ACTIVITIES, "table out of step");

void outfeed_neurons_add(uint32_t *active, enum outfeed_activity activity, const float *values,
			 size_t cases, size_t neurons)
{
	float low = bounds[activity].low, high = bounds[activity].high;
	size_t together;

	assert(activity != OUTFEED_NO_ACTIVITY);
	if (neurons == 0)
		return;
	together = NARROW / neurons;
	if (together > 1) {
		/* Few neurons make short rows: process several cases as one row, and add up its
		 * columns. */
		const size_t rows = cases / together;
		uint32_t wide[NARROW] = {0};

		outfeed_kernel_get()->active(wide, values, rows, together * neurons, low, high);
		for (size_t i = 0; i < together * neurons; i++)
			active[i % neurons] += wide[i];
		values += rows * together * neurons;
		cases -= rows * together;
	}
	outfeed_kernel_get()->active(active, values, cases, neurons, low, high);
}

double outfeed_neurons_inactive(const uint32_t *active, uint64_t cases, size_t neurons)
{
	size_t inactive = 0;

	if (cases == 0 || neurons == 0)
		return (double)NAN;
	for (size_t i = 0; i < neurons; i++)
		inactive += (uint64_t)active[i] * 100 < cases;
	return (double)inactive / (double)neurons;
}

/* ---- histograms ------------------------------------------------------------------------------ */

#define BIN_INFINITE 256
#define BIN_NAN      257

#define TABLES 8

/* Keys computed at a time: few, so that computing the next ones overlaps with counting. */
#define KEYS 256

/* Below this number of values, eight tables cost more to clear and add up than they save. */
#define FEW 512

static int64_t *bin_at(struct outfeed_histogram *histogram, int key)
{
	int bin = key % OUTFEED_KEY_NEGATIVE;

	if (key >= OUTFEED_KEY_NEGATIVE && bin != BIN_NAN)
		bin = -bin;
	return &histogram->count[bin - OUTFEED_BIN_LEAST];
}

/* Add up to OUTFEED_KERNEL_MOST values, so that no count overflows. */
static void add_many(struct outfeed_histogram *histogram, const float *values, size_t count)
{
	uint32_t tables[TABLES][OUTFEED_KEYS];
	uint16_t keys[KEYS];

	memset(tables, 0, sizeof(tables));
	for (size_t at = 0; at < count; at += KEYS) {
		size_t size = min(count - at, KEYS), i = 0;

		outfeed_kernel_get()->keys(keys, values + at, size);
		for (; i + TABLES <= size; i += TABLES) {
			for (size_t t = 0; t < TABLES; t++)
				tables[t][keys[i + t]]++;
		}
		for (; i < size; i++)
			tables[0][keys[i]]++;
	}
	for (size_t t = 1; t < TABLES; t++) {
		for (int key = 0; key < OUTFEED_KEYS; key++)
			tables[0][key] += tables[t][key];
	}
	for (int key = 0; key < OUTFEED_KEYS; key++) {
		if (tables[0][key] != 0)
			*bin_at(histogram, key) += tables[0][key];
	}
}

void outfeed_histogram_add(struct outfeed_histogram *histogram, const float *values, size_t count)
{
	uint16_t keys[FEW];

	while (count > FEW) {
		size_t size = min(count, OUTFEED_KERNEL_MOST);

		add_many(histogram, values, size);
		values += size;
		count -= size;
	}
	outfeed_kernel_get()->keys(keys, values, count);
	for (size_t i = 0; i < count; i++)
		(*bin_at(histogram, keys[i]))++;
}

void outfeed_histogram_merge(struct outfeed_histogram *into, const struct outfeed_histogram *from)
{
	for (size_t i = 0; i < OUTFEED_BINS; i++)
		into->count[i] += from->count[i];
}

void outfeed_histogram_range(int bin, double *low, double *high)
{
	int magnitude = bin < 0 ? -bin : bin;
	double near = magnitude == 1 ? 0 : ldexp(1, magnitude - 128),
	       far = ldexp(1, magnitude - 127);

	if (magnitude == BIN_NAN)
		near = far = (double)NAN;
	else if (magnitude == BIN_INFINITE)
		near = far = (double)INFINITY;
	else if (magnitude == 0)
		near = far = 0;
	*low = bin < 0 ? -far : near;
	*high = bin < 0 ? 0 - near : far; /* 0 has no sign */
}
