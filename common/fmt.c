/*
 * Numbers formatted for people. Threading: stateless; only the caller's buffer is written.
 */
#include "common/fmt.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"

const char *fmt_count(char out[FMT_SIZE], int64_t value)
{
	/* Negate as unsigned: INT64_MIN has no positive counterpart. */
	uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
	char digits[FMT_SIZE];
	int length = snprintf(digits, sizeof(digits), "%" PRIu64, rest);
	char *to = out;

	if (value < 0)
		*to++ = '-';
	for (int i = 0; i < length; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return out;
}

/* Three significant digits, without trailing zeros of the fraction. */
static void fmt_three(char out[FMT_SIZE], double value, const char *unit)
{
	int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
	int length = snprintf(out, FMT_SIZE, "%.*f", decimals, value);

	if (decimals > 0) {
		while (length > 0 && out[length - 1] == '0')
			length--;
		if (length > 0 && (out[length - 1] < '0' || out[length - 1] > '9'))
			length--;
	}
	snprintf(out + length, (size_t)(FMT_SIZE - length), " %s", unit);
}

const char *fmt_bytes(char out[FMT_SIZE], uint64_t bytes)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
	double value = (double)bytes;
	size_t unit = 0;

	if (bytes < 1024) {
		snprintf(out, FMT_SIZE, "%u B", (unsigned)bytes);
		return out;
	}

	/* A value that rounds up to 1024 is shown in the next unit. */
	while (value >= 1023.5 && unit + 1 < ARRAY_LEN(units)) {
		value /= 1024;
		unit++;
	}
	fmt_three(out, value, units[unit]);
	return out;
}

const char *fmt_ns(char out[FMT_SIZE], int64_t ns)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	double value = fabs((double)ns);
	size_t unit = 0;
	char text[FMT_SIZE];

	while (value >= 999.5 && unit + 1 < ARRAY_LEN(units)) {
		value /= 1000;
		unit++;
	}

	if (value >= 999.5) {
		fmt_count(text, (int64_t)llround(value));
		snprintf(out, FMT_SIZE, "%s%.30s s", ns < 0 ? "-" : "", text);
		return out;
	}
	fmt_three(text, value, units[unit]);
	snprintf(out, FMT_SIZE, "%s%.40s", ns < 0 ? "-" : "", text);
	return out;
}

const char *fmt_percent(char out[FMT_SIZE], double fraction)
{
	if (!isfinite(fraction))
		snprintf(out, FMT_SIZE, "-");
	else if (fabs(fraction) < 0.00005)
		snprintf(out, FMT_SIZE, "0.00 %%"); /* never "-0.00 %" */
	else if (fabs(fraction) < 1e12)
		snprintf(out, FMT_SIZE, "%.2f %%", fraction * 100);
	else
		snprintf(out, FMT_SIZE, "%.6g %%", fraction * 100);
	return out;
}

const char *fmt_share(char out[FMT_SIZE], double fraction)
{
	if (isfinite(fraction))
		snprintf(out, FMT_SIZE, "%.0f %%", fraction * 100);
	else
		snprintf(out, FMT_SIZE, "-");
	return out;
}

const char *fmt_flops(char out[FMT_SIZE], double per_s)
{
	static const char *const units[] = {"FLOP/s",  "kFLOP/s", "MFLOP/s", "GFLOP/s",
					    "TFLOP/s", "PFLOP/s", "EFLOP/s"};
	size_t unit = 0;

	if (!isfinite(per_s) || per_s < 0) {
		snprintf(out, FMT_SIZE, "-");
		return out;
	}
	while (per_s >= 999.5 && unit + 1 < ARRAY_LEN(units)) {
		per_s /= 1000;
		unit++;
	}
	fmt_three(out, per_s, units[unit]);
	return out;
}

const char *fmt_real(char out[FMT_SIZE], double value)
{
	/* printf may write "-nan"; the sign of a NaN means nothing to users. */
	if (isnan(value))
		snprintf(out, FMT_SIZE, "nan");
	else
		snprintf(out, FMT_SIZE, "%.6g", value);
	return out;
}
