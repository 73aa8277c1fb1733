/*
 * Loads and requests of a session that are stopped half way, at a place that is the same each time:
 * after so many statements and rows of SQLite's, each of which is a look. The half that is done
 * then is what is tested.
 */
#ifndef SUPPORT_VIEW_STOP_H
#define SUPPORT_VIEW_STOP_H

#include <stdatomic.h>
#include <stdint.h>

/* Look after every database that is opened from now on. */
void view_stop_watch(void);

/* At the look @looks from now *@cancel is set, and the query that runs is interrupted. */
void view_stop_after(int64_t looks, atomic_bool *cancel);
/* No longer. Returns the looks since view_stop_after() or the last call. */
int64_t view_stop_never(void);

#endif /* SUPPORT_VIEW_STOP_H */
