/*
 * Elementary functions of doubles, the same bytes on every machine.
 *
 * The C library's differ from machine to machine: one library has several for one function and
 * takes that which suits the processor. These are sums, products, divisions and roots in an order
 * of their own, each rounded once as IEEE 754 says, and not contracted (-ffp-contract=off). What is
 * exact in every library (sqrt, floor, fabs, ldexp, frexp ...) needs no definition here.
 *
 * Errors are against the exact value, in units in the last place of the result, and are measured by
 * tests/common/test_elementary.c. NaN gives NaN; infinities give the limits. No state.
 */
#ifndef COMMON_ELEMENTARY_H
#define COMMON_ELEMENTARY_H

double elementary_log(double x);   /* 1 unit; of 0 -infinity, below NaN */
double elementary_log1p(double x); /* log(1 + x), 1.5 units; of -1 -infinity, below NaN */

/* x to the power of y for x >= 0 (below: NaN), 0.8 units. Anything to the power of 0 is 1, and so
 * is 1 to any power. */
double elementary_pow(double x, double y);

/* cos(pi x), 1.5 units; exact at the multiples of 1/2, NaN of an infinity. */
double elementary_cos_pi(double x);

#endif /* COMMON_ELEMENTARY_H */
