/*
 * Checkpoints the write-ahead log into the database beside the writer, on a thread and a
 * connection of its own, so that the writer does not wait for the disk while rings fill.
 *
 * The writer calls all functions; the thread runs one passive checkpoint at a time. A checkpoint
 * that ends before the next commit leaves no frames behind, and the log restarts; the second one
 * in a row is short enough for that. If the log grows nevertheless, the writer copies the rest on
 * its own thread.
 */
#ifndef PROF_COPIER_H
#define PROF_COPIER_H

#include <sqlite3.h>

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
