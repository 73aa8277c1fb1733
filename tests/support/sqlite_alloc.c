/*
 * See sqlite_alloc.h.
 */
#include "support/sqlite_alloc.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <stddef.h>

#include "support/support.h"

static sqlite3_mem_methods own;
static atomic_long left;

static bool fails(void)
{
	return atomic_fetch_sub(&left, 1) == 0;
}

static void *allocate(int size)
{
	return fails() ? NULL : own.xMalloc(size);
}

static void *resize(void *old, int size)
{
	return fails() ? NULL : own.xRealloc(old, size);
}

void sqlite_alloc_hook(void)
{
	sqlite3_mem_methods hooked;

	assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &own), SQLITE_OK);
	hooked = own;
	hooked.xMalloc = allocate;
	hooked.xRealloc = resize;
	assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &hooked), SQLITE_OK);
	atomic_store(&left, -1);
}

void sqlite_alloc_fail(long n)
{
	atomic_store(&left, n);
}

bool sqlite_alloc_failed(void)
{
	return atomic_load(&left) < 0;
}
