/*
 * SQLite's own allocations, of which one fails.
 */
#ifndef SQLITE_ALLOC_H
#define SQLITE_ALLOC_H

#include <stdbool.h>

/* Before SQLite is used at all. */
void sqlite_alloc_hook(void);
/* The allocation after @n others fails, alone; negative: none. */
void sqlite_alloc_fail(long n);
bool sqlite_alloc_failed(void);

#endif /* SQLITE_ALLOC_H */
