/*
 * Numbers formatted for people. Every function writes into @out and returns it.
 */
#ifndef COMMON_FMT_H
#define COMMON_FMT_H

#include <stddef.h>
#include <stdint.h>

#define FMT_SIZE 48

const char *fmt_count(char out[FMT_SIZE], int64_t value);     /* 1,234,567 */
const char *fmt_bytes(char out[FMT_SIZE], uint64_t bytes);    /* 624 kB, 1.5 MB (units of 1024) */
const char *fmt_ns(char out[FMT_SIZE], int64_t ns);           /* 640 ns, 2.41 us, 37.1 ms, 4.2 s */
const char *fmt_percent(char out[FMT_SIZE], double fraction); /* 42.86 %; "-" if not finite */
const char *fmt_share(char out[FMT_SIZE], double fraction);   /* 43 %; "-" if not finite */
const char *fmt_flops(char out[FMT_SIZE], double per_s);      /* 12.3 GFLOP/s; "-" if not finite */
const char *fmt_real(char out[FMT_SIZE], double value);       /* 6 significant digits; nan, inf */

#endif /* COMMON_FMT_H */
