/*
 * Copies the write-ahead log into the database beside the writer, on a thread and a connection of
 * its own, so that the writer does not wait for the disk while rings fill.
 *
 * The writer calls all functions; the thread only ever runs one passive checkpoint at a time. A
 * copy that ends before the next commit leaves nothing over, and the log begins anew; the second
 * copy in a row is short enough for that. Where the log grows all the same, the writer copies the
 * rest itself.
 */
#ifndef PROF_COPIER_H
#define PROF_COPIER_H

#include <sqlite3.h>

struct prof_copier; /* opaque */

/*
 * NULL where there is no memory or no thread: then prof_copier_run() copies on the caller's thread.
 */
struct prof_copier *prof_copier_new(const char *path);
void prof_copier_free(struct prof_copier *copier); /* waits for a copy under way; accepts NULL */

/* After a commit that left @pages in the log of @db, the writer's connection. Accepts NULL. */
void prof_copier_run(struct prof_copier *copier, sqlite3 *db, int pages);

#endif /* PROF_COPIER_H */
