/*
 * Axes: their ends, their ticks, and the choice between linear and logarithmic.
 *
 * Threading: none. Ownership: none.
 */
#include "reports/table/report_axis.h"

#include <math.h>
#include <stdio.h>

#include "common/mem.h"

void report_axis_begin(struct report_axis *axis)
{
	axis->low = INFINITY;
	axis->high = -INFINITY;
}

void report_axis_include(struct report_axis *axis, const double *values, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		if (!isfinite(values[i]) || (axis->logarithmic && values[i] <= 0))
			continue;
		axis->low = fmin(axis->low, values[i]);
		axis->high = fmax(axis->high, values[i]);
	}
}

bool report_axis_finish(struct report_axis *axis)
{
	if (!(axis->low <= axis->high)) {
		axis->low = axis->logarithmic ? 1 : 0;
		axis->high = axis->logarithmic ? 10 : 1;
		return false;
	}
	if (axis->low == axis->high) {
		const double half = axis->low == 0 ? 0.5 : fabs(axis->low) * 0.05;

		axis->low -= half;
		axis->high += half;
	}
	return true;
}

/* Signed decades from 0; the linear range counts as one. */
static double axis_decades(const struct report_axis *axis, double value)
{
	const double size = fabs(value);

	return copysign(size > axis->linear ? 1 + log10(size) - log10(axis->linear)
					    : size / axis->linear,
			value);
}

double report_axis_part(const struct report_axis *axis, double value)
{
	double part;

	if (isnan(value) || !(axis->high > axis->low))
		return NAN;
	if (value <= axis->low)
		return 0;
	if (value >= axis->high)
		return 1;
	if (axis->logarithmic && axis->linear > 0)
		part = (axis_decades(axis, value) - axis_decades(axis, axis->low)) /
		       (axis_decades(axis, axis->high) - axis_decades(axis, axis->low));
	else if (axis->logarithmic && axis->low > 0)
		part = log(value / axis->low) / log(axis->high / axis->low);
	else
		part = (value / 2 - axis->low / 2) / (axis->high / 2 - axis->low / 2);
	return isfinite(part) ? fmin(fmax(part, 0), 1) : 0;
}

/* ---- ticks ----------------------------------------------------------------------------------- */

/* The least round number that is at least @step. */
static double axis_round_step(double step, enum report_quantity quantity)
{
	static const double factors[] = {1, 2, 5, 10};
	const bool integral = quantity == REPORT_NUMBER || quantity == REPORT_COUNT ||
			      quantity == REPORT_NS || quantity == REPORT_BYTES ||
			      quantity == REPORT_CYCLES;
	double power;

	if (integral && step < 1)
		return 1;
	if (quantity == REPORT_BYTES)
		return exp2(ceil(log2(step)));
	power = pow(10, floor(log10(step)));
	for (size_t i = 0; i < ARRAY_LEN(factors); i++)
		if (factors[i] * power >= step * (1 - 1e-9))
			return factors[i] * power;
	return 10 * power;
}

static int axis_power_ticks(const struct report_axis *axis, int most, double *out)
{
	const double first = ceil(log10(axis->low) - 1e-9), last = floor(log10(axis->high) + 1e-9);
	const double by = fmax(1, ceil((last - first + 1) / most));
	int count = 0;

	for (double power = first; power <= last && count < most; power += by)
		out[count++] = pow(10, power);
	return count;
}

/* Powers of ten on both sides of 0; 0 itself is a tick if it is on the axis. */
static int axis_signed_power_ticks(const struct report_axis *axis, int most, double *out)
{
	const double least = log10(axis->linear) - 1;
	const double first = ceil(axis_decades(axis, axis->low) - 1e-9);
	const double last = floor(axis_decades(axis, axis->high) + 1e-9);
	const double by = fmax(1, ceil((last - first + 1) / most));
	int count = 0;

	for (double at = ceil(first / by) * by; at <= last && count < most; at += by)
		out[count++] = at < 0   ? -pow(10, round(least - at))
			       : at > 0 ? pow(10, round(least + at))
					: 0;
	return count;
}

/* 1, 2 and 5 times each power of ten, for ranges below a factor of 100. Return 0 if they are more
 * than @most. */
static int axis_subpower_ticks(const struct report_axis *axis, int most, double *out)
{
	static const double factors[] = {1, 2, 5};
	int count = 0;

	for (double power = floor(log10(axis->low)); power <= log10(axis->high); power++)
		for (size_t i = 0; i < ARRAY_LEN(factors); i++) {
			const double value = factors[i] * pow(10, power);

			if (value < axis->low || value > axis->high)
				continue;
			if (count == most)
				return 0;
			out[count++] = value;
		}
	return count;
}

int report_axis_ticks(const struct report_axis *axis, int most, double out[REPORT_AXIS_TICKS])
{
	const double slack = (axis->high / 2 - axis->low / 2) * 1e-9;
	double step, first;
	int count = 0;

	most = most < 2 ? 2 : most > REPORT_AXIS_TICKS ? REPORT_AXIS_TICKS : most;
	if (!(axis->high > axis->low) || !isfinite(axis->low) || !isfinite(axis->high))
		return 0;
	if (axis->logarithmic && axis->linear > 0)
		count = axis_signed_power_ticks(axis, most, out);
	else if (axis->logarithmic && axis->low > 0)
		count = axis_power_ticks(axis, most, out);
	if (count < 2 && axis->logarithmic && axis->low > 0)
		count = axis_subpower_ticks(axis, most, out);
	if (count >= 2)
		return count;
	/* The axis is linear or has fewer than two such ticks. */
	count = 0;
	step = axis_round_step((axis->high / 2 - axis->low / 2) / most * 2, axis->quantity);
	first = ceil((axis->low - slack) / step);
	if (!isfinite(step) || !isfinite(first) || step <= 0)
		return 0;
	for (int i = 0; i < most; i++) {
		const double value = (first + i) * step;

		if (value > axis->high + slack)
			break;
		if (count == 0 || value > out[count - 1])
			out[count++] = value;
	}
	return count;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* "12.5 M": shorten counts that are too long for the columns beside an axis. */
static const char *axis_short_count(double value, char out[FMT_SIZE])
{
	static const char units[] = {'M', 'G', 'T', 'P'};
	size_t unit = 0;

	if (fabs(value) < 1e7)
		return fmt_count(out, (int64_t)llround(value));
	value /= 1e6;
	while (fabs(value) >= 1000 && unit + 1 < sizeof(units)) {
		value /= 1000;
		unit++;
	}
	snprintf(out, FMT_SIZE, "%.4g %c", value, units[unit]);
	return out;
}

#define DIGITS_LEAST 4
#define DIGITS_MOST  15
#define TICKS_LIKELY 10

/* Significant digits needed to distinguish the ticks. */
static int axis_tick_digits(const struct report_axis *axis)
{
	const double size = fmax(fabs(axis->low), fabs(axis->high));
	const double parts = TICKS_LIKELY * size / (axis->high - axis->low);

	if (axis->logarithmic || !(parts > 1))
		return DIGITS_LEAST;
	return (int)fmin(fmax(ceil(log10(parts)) + 1, DIGITS_LEAST), DIGITS_MOST);
}

const char *report_axis_text(const struct report_axis *axis, double value, char out[FMT_SIZE])
{
	const bool fits = value > -9e18 && value < 9e18;

	switch (fits ? axis->quantity : REPORT_REAL) {
	case REPORT_NUMBER:
		snprintf(out, FMT_SIZE, "%lld", (long long)llround(value));
		return out;
	case REPORT_COUNT:
	case REPORT_CYCLES:
		return axis_short_count(value, out);
	case REPORT_NS:
		return fmt_ns(out, (int64_t)llround(value));
	case REPORT_BYTES:
		return fmt_bytes(out, value > 0 ? (uint64_t)llround(value) : 0);
	case REPORT_FRACTION:
		snprintf(out, FMT_SIZE, "%.*g %%", axis_tick_digits(axis), value * 100);
		return out;
	default:
		snprintf(out, FMT_SIZE, "%.*g", axis_tick_digits(axis), value);
		return out;
	}
}

/* ---- linear or logarithmic ------------------------------------------------------------------- */

#define WIDE      6   /* decades between least and greatest */
#define WIDE_BOTH 3   /* decades between geometric mean and greatest */
#define DEVIATION 1.5 /* standard deviations below the mean logarithm: smaller values are linear */
#define ROWS      8

void report_spread_include(struct report_spread *spread, const double *values, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		const double size = fabs(values[i]);

		if (!isfinite(size))
			continue;
		spread->zero = spread->zero || size <= 0;
		if (size <= 0)
			continue;
		spread->above = spread->above || values[i] > 0;
		spread->below = spread->below || values[i] < 0;
		spread->least = spread->count > 0 ? fmin(spread->least, size) : size;
		spread->greatest = fmax(spread->greatest, size);
		spread->sum += log10(size);
		spread->squares += log10(size) * log10(size);
		spread->count++;
	}
}

static double axis_log_mean(const struct report_spread *spread)
{
	return spread->sum / (double)spread->count;
}

/* Return true if a linear axis would show little but the greatest values. Values on one side of 0
 * are wide if they span more than 6 decades. Values on both sides always include some near 0, so
 * they are wide if the greatest is more than 3 decades above the geometric mean. */
static bool axis_spread_is_wide(const struct report_spread *spread)
{
	if (spread->count == 0)
		return false;
	if (spread->above && spread->below)
		return log10(spread->greatest) - axis_log_mean(spread) > WIDE_BOTH;
	return log10(spread->greatest) - log10(spread->least) > WIDE;
}

/* The power of ten up to which the axis is linear, from the least magnitude. On one side of 0
 * only zeros lie below it; the range is chosen so that they get a row of their own in a plot of
 * ROWS rows or more. On both sides, values far below most others add no decades. */
static double axis_linear_limit(const struct report_spread *spread)
{
	const double least = floor(log10(spread->least)), mean = axis_log_mean(spread);
	const double variance = spread->squares / (double)spread->count - mean * mean;

	if (!spread->above || !spread->below)
		return pow(10, least - floor((log10(spread->greatest) - least) / ROWS));
	return pow(10, fmax(least, floor(mean - DEVIATION * sqrt(fmax(variance, 0)))));
}

void report_axis_scale(struct report_axis *axis, const struct report_spread *spread,
		       enum report_scale scale)
{
	const bool wide = axis_spread_is_wide(spread);

	axis->logarithmic =
		spread->count > 0 &&
		(scale == REPORT_SCALE_BY_SPREAD ? wide : scale == REPORT_SCALE_LOGARITHMIC);
	if (!axis->logarithmic)
		return;
	axis->linear = spread->zero || spread->below ? axis_linear_limit(spread) : 0;
	axis->title = "log";
}

const char *report_scale_turn(enum report_scale *scale, const struct report_axis *axis,
			      const struct report_spread *spread)
{
	const bool logarithmic = !axis->logarithmic;

	if (spread->count == 0)
		return "there is no number but 0: the axis stays linear";
	if (logarithmic == axis_spread_is_wide(spread))
		*scale = REPORT_SCALE_BY_SPREAD;
	else
		*scale = logarithmic ? REPORT_SCALE_LOGARITHMIC : REPORT_SCALE_LINEAR;
	return logarithmic ? "a logarithmic axis" : "a linear axis";
}

const char *report_scale_text(const struct report_axis *axis, char out[REPORT_SCALE_TEXT])
{
	out[0] = '\0';
	if (axis->logarithmic && axis->linear > 0)
		snprintf(out, REPORT_SCALE_TEXT, ", log axis, linear up to %g", axis->linear);
	else if (axis->logarithmic)
		snprintf(out, REPORT_SCALE_TEXT, ", log axis");
	return out;
}
