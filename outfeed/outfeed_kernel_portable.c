/*
 * The loops in plain C, for every processor.
 *
 * The local lanes have no alias, so that the compiler may keep them in registers. Pure functions on
 * the caller's data: any thread.
 */
#include "outfeed/outfeed_kernel_internal.h"

#if defined(__GNUC__)
#define PREFETCH(address) __builtin_prefetch((address), 0, 2)
#else
#define PREFETCH(address) ((void)(address))
#endif

#define LANES OUTFEED_LANES

static void sums(const float *values, size_t count, struct outfeed_sums *out, const void *next,
		 size_t step)
{
	const char *ahead = next;
	struct outfeed_lanes l;

	outfeed_lanes_start(&l);
	for (size_t row = 0; row < outfeed_rows(count); row += LANES) {
		PREFETCH(ahead);
		ahead += step;
		for (size_t i = 0; i < LANES; i++)
			outfeed_lane_sums(&l, i, values[row + i]);
	}
	outfeed_tail_sums(values, count, &l);
	outfeed_fold_sums(&l, out);
}

static void centred(const float *values, size_t count, double shift, struct outfeed_sums *out)
{
	struct outfeed_lanes l;

	outfeed_lanes_start(&l);
	for (size_t row = 0; row < outfeed_rows(count); row += LANES) {
		for (size_t i = 0; i < LANES; i++)
			outfeed_lane_centred(&l, i, values[row + i], shift);
	}
	outfeed_tail_centred(values, count, shift, &l);
	outfeed_fold_centred(&l, out);
}

static void signs(const float *values, size_t count, struct outfeed_counts *out)
{
	out->negatives = out->positives = out->most = 0;
	outfeed_tail_signs(values, 0, count, out);
}

static void nonfinite(const float *values, size_t count, struct outfeed_counts *out)
{
	out->nan = out->pos_inf = out->neg_inf = 0;
	outfeed_tail_nonfinite(values, 0, count, out);
}

static size_t compact(float *out, const float *values, size_t count)
{
	return outfeed_tail_compact(out, values, 0, count, 0);
}

static uint32_t abs_max(const float *values, size_t count)
{
	return outfeed_tail_abs_max(values, 0, count, 0);
}

static void widen(float *out, const uint16_t *halves, size_t count)
{
	outfeed_tail_widen(out, halves, 0, count);
}

static void keys(uint16_t *out, const float *values, size_t count)
{
	outfeed_tail_keys(out, values, 0, count);
}

static void active_rows(uint32_t *active, const float *values, size_t rows, size_t columns,
			float low, float high)
{
	outfeed_active_rows(active, values, rows, columns, low, high);
}

static void change(struct outfeed_change *out, float *before, const float *after, size_t count)
{
	struct outfeed_lanes l;

	outfeed_lanes_start(&l);
	out->n_changed = 0;
	for (size_t row = 0; row < outfeed_rows(count); row += LANES) {
		uint32_t changed = 0;

		for (size_t i = 0; i < LANES; i++)
			changed += outfeed_lane_change(&l, i, before[row + i], after[row + i]);
		memcpy(before + row, after + row, LANES * sizeof(float));
		out->n_changed += changed;
	}
	out->n_changed += outfeed_tail_change(before, after, count, &l);
	outfeed_fold_change(&l, out);
}

static bool runs(void)
{
	return true;
}

const struct outfeed_kernel outfeed__kernel_portable = {
	.name = "portable",
	.runs = runs,
	.sums = sums,
	.centred = centred,
	.signs = signs,
	.nonfinite = nonfinite,
	.compact = compact,
	.abs_max = abs_max,
	.widen = widen,
	.keys = keys,
	.active = active_rows,
	.change = change,
};
