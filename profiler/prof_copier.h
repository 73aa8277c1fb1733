/*
 * Checkpoints the write-ahead log into the database beside the writer, on a thread and a
 * connection of its own, so that the writer does not wait for the disk while rings fill.
 *
 * The writer calls all functions; the thread runs one passive checkpoint at a time. SQLite restarts
 * the log when a transaction begins while all frames are in the database and no reader uses them.
 * A writer that pauses between transactions gets that from the thread alone. One that does not
 * begins the next transaction before the copy ends: when the log is large, it copies the rest
 * itself, and waits for readers whose transactions are as short as ours.
 */
#ifndef PROF_COPIER_H
#define PROF_COPIER_H

#include <sqlite3.h>

#define PROF_BUSY_MS 1000 /* how long the writer's connection waits for a lock */

struct prof_copier; /* opaque */

/*
 * Return NULL if memory or a thread is unavailable: prof_copier_run() then copies on the caller's
 * thread.
 */
struct prof_copier *prof_copier_new(const char *path);
void prof_copier_free(struct prof_copier *copier); /* waits for a copy under way; accepts NULL */

/* Call after a commit that left @pages in the log of @db, the writer's connection. Accepts NULL. */
void prof_copier_run(struct prof_copier *copier, sqlite3 *db, int pages);

#endif /* PROF_COPIER_H */
