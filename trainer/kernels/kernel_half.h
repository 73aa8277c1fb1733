/*
 * Rounding of floats to values that IEEE 754 half precision (binary16) or bfloat16 can represent.
 *
 * Single-threaded. Every body gives the same bits.
 */
#ifndef KERNEL_HALF_H
#define KERNEL_HALF_H

#include <stdbool.h>
#include <stddef.h>

/*
 * to[i] = the half nearest to from[i], ties to even. 65520 and beyond become infinity, values
 * below 2^-14 keep steps of 2^-24, zeros keep their sign. NaN stays NaN, quiet, with the sign and
 * the upper 10 bits of its mantissa, as hardware does it. @to may be @from.
 */
void kernel_round_half(float *to, const float *from, size_t count);

/*
 * to[i] = the bfloat16 (the upper 16 bits of a float) nearest to from[i], ties to even. NaN stays
 * NaN, quiet. @to may be @from.
 */
void kernel_round_bfloat16(float *to, const float *from, size_t count);

/* Bodies, fastest first, for tests. Return the name of body @index (NULL: no such body); select it
 * (false: this machine cannot run it). */
const char *kernel_half_body(int index);
bool kernel_half_use(int index);

#endif /* KERNEL_HALF_H */
