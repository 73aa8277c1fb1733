/*
 * The file of a recording while it is written: space on its disk (prof_space.c), and the copying of
 * the write-ahead log into the database (prof_copier.c). What becomes of the rows when recording
 * ends is in prof_finish.h.
 */
#ifndef PROF_DISK_H
#define PROF_DISK_H

#include <sqlite3.h>
#include <stdbool.h>

/*
 * Writes that wait for space on the disk: a VFS over SQLite's own one.
 *
 * If a write fails because the disk, a quota or a limit on file sizes leaves no space, the thread's
 * function of prof_space_wait() decides whether it is tried again. So a transaction survives a disk
 * that is full for a while, with everything that was prepared for it.
 *
 * Threading: prof_space_vfs() once per process, by any thread; the function is the calling
 * thread's. Files opened by other threads than the waiting one are written as usual.
 */

/* Return the name of the VFS, for sqlite3_open_v2(); NULL, SQLite's own, if it cannot be had. */
const char *prof_space_vfs(void);

/* From now on in this thread, call @wait before a write that found no space is tried again, with
 * the error of the system, and with 0 once it has succeeded. The write fails if it returns false.
 * NULL: every such write fails. */
void prof_space_wait(bool (*wait)(void *user, int error), void *user);

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

#endif /* PROF_DISK_H */
