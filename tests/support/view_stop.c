/*
 * A look at every statement and row of every connection. The one progress handler that a connection
 * has is the reader's own.
 *
 * Threading: asked for on one thread, looked at on any. Ownership: none.
 */
#include "support/view_stop.h"

#include <stdbool.h>
#include <stddef.h>

#include <sqlite3.h>

static atomic_llong view_stop_looks, view_stop_at;
static atomic_bool *_Atomic view_stop_cancel;

static int view_stop_look(unsigned event, void *db, void *statement, void *detail)
{
	atomic_bool *cancel = atomic_load(&view_stop_cancel);

	(void)event;
	(void)statement;
	(void)detail;
	if (atomic_fetch_add(&view_stop_looks, 1) + 1 != atomic_load(&view_stop_at) || !cancel)
		return 0;
	atomic_store(cancel, true);
	sqlite3_interrupt(db);
	return 0;
}

static int view_stop_opened(sqlite3 *db, const char **error, const void *api)
{
	(void)error;
	(void)api;
	return sqlite3_trace_v2(db, SQLITE_TRACE_STMT | SQLITE_TRACE_ROW, view_stop_look, db);
}

void view_stop_watch(void)
{
	sqlite3_auto_extension((void (*)(void))view_stop_opened);
}

void view_stop_after(int64_t looks, atomic_bool *cancel)
{
	atomic_store(&view_stop_cancel, cancel);
	atomic_store(&view_stop_looks, 0);
	atomic_store(&view_stop_at, looks);
}

int64_t view_stop_never(void)
{
	atomic_store(&view_stop_at, 0);
	return atomic_exchange(&view_stop_looks, 0);
}
