/*
 * Linear or logarithmic axes.
 *
 * Threading: pure functions. Ownership: none.
 */
#include "viewer/draw/view_scale.h"

#include <math.h>
#include <stdio.h>

#define WIDE      6   /* decades */
#define WIDE_BOTH 3   /* the same from the geometric mean */
#define DEVIATION 1.5 /* standard deviations below that mean: what is less is linear */
#define DECADES   15  /* on a side of 0 at the most */

void view_spread_take(struct view_spread *spread, const double *values, int64_t count)
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

static double view_mean(const struct view_spread *spread)
{
	return spread->sum / (double)spread->count;
}

bool view_spread_is_wide(const struct view_spread *spread)
{
	if (spread->count == 0)
		return false;
	if (spread->above && spread->below)
		return log10(spread->greatest) - view_mean(spread) > WIDE_BOTH;
	return log10(spread->greatest) - log10(spread->least) > WIDE;
}

/* The power of ten up to which an axis is linear: of the least number, but what is far below most
 * of them makes no decades of its own. */
static double view_linear(const struct view_spread *spread)
{
	const double mean = view_mean(spread);
	const double variance = spread->squares / (double)spread->count - mean * mean;
	double power = floor(mean - DEVIATION * sqrt(fmax(variance, 0)));

	power = fmax(power, floor(log10(spread->least)));
	power = fmax(power, floor(log10(spread->greatest)) - DECADES);
	return pow(10, power);
}

void view_axis_scale(struct view_axis *axis, const struct view_spread *spread,
		     enum view_scale scale)
{
	const bool wide = view_spread_is_wide(spread);

	axis->logarithmic =
		spread->count > 0 &&
		(scale == VIEW_SCALE_BY_SPREAD ? wide : scale == VIEW_SCALE_LOGARITHMIC);
	if (!axis->logarithmic)
		return;
	axis->linear = spread->zero || spread->below ? view_linear(spread) : 0;
	axis->title = "log";
}

const char *view_scale_turn(enum view_scale *scale, const struct view_axis *axis,
			    const struct view_spread *spread)
{
	const bool logarithmic = !axis->logarithmic;

	if (spread->count == 0)
		return "there is no number but 0: the axis stays linear";
	if (logarithmic == view_spread_is_wide(spread))
		*scale = VIEW_SCALE_BY_SPREAD;
	else
		*scale = logarithmic ? VIEW_SCALE_LOGARITHMIC : VIEW_SCALE_LINEAR;
	return logarithmic ? "a logarithmic axis" : "a linear axis";
}

const char *view_scale_text(const struct view_axis *axis, char out[VIEW_SCALE_TEXT])
{
	out[0] = '\0';
	if (axis->logarithmic && axis->linear > 0)
		snprintf(out, VIEW_SCALE_TEXT, ", log axis, linear up to %g", axis->linear);
	else if (axis->logarithmic)
		snprintf(out, VIEW_SCALE_TEXT, ", log axis");
	return out;
}
