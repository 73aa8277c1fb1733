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
#ifndef PROF_SPACE_H
#define PROF_SPACE_H

#include <stdbool.h>

/* Return the name of the VFS, for sqlite3_open_v2(); NULL, SQLite's own, if it cannot be had. */
const char *prof_space_vfs(void);

/* From now on in this thread, call @wait before a write that found no space is tried again, with
 * the error of the system, and with 0 once it has succeeded. The write fails if it returns false.
 * NULL: every such write fails. */
void prof_space_wait(bool (*wait)(void *user, int error), void *user);

#endif /* PROF_SPACE_H */
