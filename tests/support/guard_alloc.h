/*
 * An allocator whose larger blocks end where memory ends: reading or writing behind one ends the
 * test, without sanitizers too.
 */
#ifndef GUARD_ALLOC_H
#define GUARD_ALLOC_H

#include <stddef.h>

/* From now on blocks of at least @least bytes (0: none) have a page behind them that cannot be
 * touched. A block may start at any 8 bytes. No other thread may allocate while it is
 * called. */
void guard_alloc(size_t least);

#endif /* GUARD_ALLOC_H */
