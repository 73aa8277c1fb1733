/*
 * A progress handler on every connection.
 *
 * Threading: asked for on one thread, looked at on any. Ownership: none.
 */
#include "support/view_stop.h"

#include <stdbool.h>
#include <stddef.h>

#include <sqlite3.h>

#define STEPS_PER_LOOK 10

static atomic_llong view_stop_looks, view_stop_at;
static atomic_bool *_Atomic view_stop_cancel;

static int view_stop_look(void *user)
{
	atomic_bool *cancel = atomic_load(&view_stop_cancel);

	(void)user;
	if (atomic_fetch_add(&view_stop_looks, 1) + 1 != atomic_load(&view_stop_at) || !cancel)
		return 0;
	atomic_store(cancel, true);
	return 1;
}

static int view_stop_opened(sqlite3 *db, const char **error, const void *api)
{
	(void)error;
	(void)api;
	sqlite3_progress_handler(db, STEPS_PER_LOOK, view_stop_look, NULL);
	return SQLITE_OK;
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
