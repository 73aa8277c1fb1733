/*
 * Elementary functions of doubles that return the same bytes on every machine.
 *
 * C libraries differ: one library has several implementations of a function and selects by
 * processor. These functions are sums, products, divisions and roots in a fixed order, each
 * rounded once as IEEE 754 requires and not contracted (-ffp-contract=off). Functions that every
 * library computes exactly (sqrt, floor, fabs, ldexp, frexp ...) are not redefined here.
 *
 * Errors are against the exact value in units in the last place (ulp) of the result;
 * tests/common/test_elementary.c measures them. NaN gives NaN; infinities give the limits.
 * No state.
 */
#ifndef COMMON_ELEMENTARY_H
#define COMMON_ELEMENTARY_H

double elementary_log(double x);   /* 1 ulp; 0: -infinity, negative: NaN */
double elementary_log1p(double x); /* log(1 + x), 1.5 ulp; -1: -infinity, below: NaN */

/* x to the power of y for x >= 0 (negative: NaN), 0.8 ulp. Anything to the power of 0 is 1; so is 1
 * to any power. */
double elementary_pow(double x, double y);

/* cos(pi x), 1.5 ulp; exact at multiples of 1/2, NaN for an infinity. */
double elementary_cos_pi(double x);

#endif /* COMMON_ELEMENTARY_H */
