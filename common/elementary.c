/*
 * Logarithms from the series of artanh, powers from that of exp, cosines from the Taylor series of
 * sine and cosine, each after reduction to a small interval. Where double precision is too little,
 * numbers are unevaluated sums of two doubles, with exact sums (Knuth) and exact products (Dekker,
 * Veltkamp).
 */
#include "common/elementary.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "common/mem.h"

#if FLT_EVAL_METHOD != 0 || defined(__FAST_MATH__)
#error "Each operation must be rounded to its type, in the order it is written in."
#endif

/* The number high + low; high is the nearest double to the sum. */
struct pair {
	double high, low;
};

#define PAIR_SPLIT 0x1.0000002p27 /* cuts a double into halves of 26 bits */

/* Exact if |a| >= |b| or a is 0. */
static struct pair pair_sum_sorted(double a, double b)
{
	const double high = a + b;

	return (struct pair){high, b - (high - a)};
}

/* Exact. */
static struct pair pair_sum(double a, double b)
{
	const double high = a + b, of_b = high - a;

	return (struct pair){high, (a - (high - of_b)) + (b - of_b)};
}

/* Exact if neither factor exceeds 2^990 and the product is not near the subnormal numbers. */
static struct pair pair_product(double a, double b)
{
	const double a_split = a * PAIR_SPLIT, b_split = b * PAIR_SPLIT;
	const double a1 = a_split - (a_split - a), b1 = b_split - (b_split - b);
	const double a2 = a - a1, b2 = b - b1, high = a * b;

	return (struct pair){high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2};
}

static struct pair pair_times(struct pair a, struct pair b)
{
	const struct pair product = pair_product(a.high, b.high);

	return pair_sum_sorted(product.high, product.low + (a.high * b.low + a.low * b.high));
}

/* coefficients[0] + coefficients[1] x + ..., even and odd powers in parallel. @count is even. */
static inline double polynomial(const double *coefficients, size_t count, double x)
{
	const double square = x * x;
	double sum = coefficients[count - 2], other = coefficients[count - 1];

	for (size_t i = count - 2; i >= 2; i -= 2) {
		sum = sum * square + coefficients[i - 2];
		other = other * square + coefficients[i - 1];
	}
	return sum + x * other;
}

/* ---- logarithms ------------------------------------------------------------------------------ */

#define LN2_HIGH 0x1.62e42fefa3800p-1 /* 42 bits: its product with an exponent is exact */
#define LN2_LOW  0x1.ef35793c76730p-45
#define SQRT_1_2 0x1.6a09e667f3bcdp-1

/* Split a finite x > 0 into m 2^k with m from sqrt(1/2) to sqrt(2); return m. */
static double log_reduce(double x, double *k)
{
	int exponent;
	double m = frexp(x, &exponent);

	if (m < SQRT_1_2) {
		m *= 2.0;
		exponent--;
	}
	*k = (double)exponent;
	return m;
}

/* For z = s^2, at most 0.0295, artanh(s) = s (1 + z (1/3 + z (1/5 + z/7 + ...))): return the inner
 * parentheses. */
static inline double log_tail(double z)
{
	static const double from_fifth[] = {1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11,
					    1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19,
					    1.0 / 21, 1.0 / 23, 1.0 / 25, 1.0 / 27};

	return polynomial(from_fifth, ARRAY_LEN(from_fifth), z);
}

/* With f = m - 1 and s = f / (2 + f), log m is 2 artanh(s). Since 2 s = f - s f, that is f minus a
 * small term, so the rounding error of s is negligible. */
static double log_plain(double x)
{
	double k, f = log_reduce(x, &k) - 1.0, s = f / (2.0 + f), z = s * s;
	double rest = 2.0 * (z * (1.0 / 3.0 + z * log_tail(z)));

	return k * LN2_HIGH + (f - (s * (f - rest) - k * LN2_LOW));
}

/* log_plain() with 66 bits. */
static struct pair log_pair(double x)
{
	static const struct pair third = {0x1.5555555555555p-2, 0x1.5555555555555p-56};
	double k, m = log_reduce(x, &k);
	const struct pair below = pair_sum(m, 1.0);
	struct pair product, s, z, sum;

	s.high = (m - 1.0) / below.high;
	product = pair_product(s.high, below.high);
	s.low = (((m - 1.0) - product.high) - product.low - s.high * below.low) / below.high;

	z = pair_times(s, s);
	sum = pair_sum_sorted(third.high, z.high * log_tail(z.high));
	sum.low += third.low;
	z = pair_times(z, sum);
	sum = pair_sum_sorted(1.0, z.high);
	sum.low += z.low;
	s = pair_times(s, sum);

	sum = pair_sum_sorted(k * LN2_HIGH, 2.0 * s.high);
	return pair_sum_sorted(sum.high, sum.low + (k * LN2_LOW + 2.0 * s.low));
}

/* If x is not a finite number above 0, set *@out to its logarithm and return true. */
static bool log_special(double x, double *out)
{
	if (x > 0.0 && x <= DBL_MAX)
		return false;
	*out = x > 0.0 || isnan(x) ? x : x < 0.0 ? (double)NAN : -(double)INFINITY;
	return true;
}

double elementary_log(double x)
{
	double special;

	return log_special(x, &special) ? special : log_plain(x);
}

double elementary_log1p(double x)
{
	const struct pair sum = pair_sum(1.0, x);
	double special;

	return log_special(1.0 + x, &special) ? special : log_plain(sum.high) + sum.low / sum.high;
}

/* ---- powers ---------------------------------------------------------------------------------- */

#define LOG2_E   0x1.71547652b82fep+0
#define EXP_MOST 1100.0 /* exp() overflows or underflows beyond */

/* exp(x) = 2^k exp(r) with |r| at most ln 2 / 2; the table has the series from r^2/2 on. */
static double exp_pair(struct pair x)
{
	static const double from_half[] = {1.0 / 2,        1.0 / 6,         1.0 / 24,
					   1.0 / 120,      1.0 / 720,       1.0 / 5040,
					   1.0 / 40320,    1.0 / 362880,    1.0 / 3628800,
					   1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
	struct pair r, sum;
	double k, rest;

	if (fabs(x.high) > EXP_MOST)
		return x.high > 0.0 ? (double)INFINITY : 0.0;
	k = floor(x.high * LOG2_E + 0.5);
	r = pair_sum(x.high - k * LN2_HIGH, x.low - k * LN2_LOW);
	rest = r.high * r.high * polynomial(from_half, ARRAY_LEN(from_half), r.high);
	sum = pair_sum_sorted(1.0, r.high);
	return ldexp(sum.high + (sum.low + (rest + (r.low + r.high * r.low))), (int)k);
}

double elementary_pow(double x, double y)
{
	struct pair log, product;

	if (y == 0.0 || x == 1.0)
		return 1.0;
	if (isnan(x) || isnan(y) || x < 0.0)
		return (double)NAN;
	if (x == 0.0 || isinf(x) || isinf(y))
		return (x > 1.0) == (y > 0.0) ? (double)INFINITY : 0.0;

	/* |log x| is at least 2^-54, so a greater |y| gives 0 or infinity anyway. */
	y = y > 0x1p70 ? 0x1p70 : y < -0x1p70 ? -0x1p70 : y;
	log = log_pair(x);
	product = pair_product(log.high, y);
	product.low += log.low * y;
	return exp_pair(pair_sum_sorted(product.high, product.low));
}

/* ---- cosines --------------------------------------------------------------------------------- */

#define PI_HIGH 0x1.921fb54442d18p+1
#define PI_LOW  0x1.1a62633145c07p-53

double elementary_cos_pi(double x)
{
	/* Coefficients in r^2 of (cos(pi r) - 1) / r^2 and (sin(pi r) - pi r) / r^3. */
	static const double cosine[] = {-0x1.3bd3cc9be45dep+2,  0x1.03c1f081b5ac4p+2,
					-0x1.55d3c7e3cbffap+0,  0x1.e1f506891babbp-3,
					-0x1.a6d1f2a204a8cp-6,  0x1.f9d38a3763cc3p-10,
					-0x1.b6e24f44b128fp-14, 0x1.20c62c2f2d7f5p-18};
	static const double sine[] = {-0x1.4abbce625be53p+2,  0x1.466bc6775aae2p+1,
				      -0x1.32d2cce62bd86p-1,  0x1.50783487ee782p-4,
				      -0x1.e3074fde8871fp-8,  0x1.e8f434d018d63p-12,
				      -0x1.6fadb9f155744p-16, 0x1.aaec32af93359p-21};
	double r = fabs(x), sign = 1.0, low;
	struct pair high;

	/* Reduce by full turns, then by symmetry to [0, 1/2]; each subtraction is exact. */
	r -= 2.0 * floor(0.5 * r);
	r = r > 1.0 ? 2.0 - r : r;
	if (r > 0.5) {
		r = 1.0 - r;
		sign = -1.0;
	}
	if (r <= 0.25)
		return sign * (1.0 + r * r * polynomial(cosine, ARRAY_LEN(cosine), r * r));
	r = 0.5 - r;
	high = pair_product(r, PI_HIGH);
	low = r * (PI_LOW + r * r * polynomial(sine, ARRAY_LEN(sine), r * r));
	return sign * (high.high + (high.low + low));
}
