/*
 * Nudges: the writer notifies the readers of its file when it is about to turn the file into a
 * plain (non-WAL) file, for which they must close it, and when it has done so. Otherwise readers
 * poll.
 *
 * A nudge changes the timestamps of the file. SQLite's writes do not do this, and inotify(7)
 * distinguishes it from writes, so recording at full speed wakes no reader. On file systems
 * without inotify (network mounts, writes of another host) readers notice at their next poll, and
 * the writer waits for that.
 *
 * Threading: any. Ownership: a watch is a file descriptor that the caller owns and closes.
 */
#ifndef PROF_NUDGE_H
#define PROF_NUDGE_H

#include <stdbool.h>

void prof_nudge_send(const char *path);

/* Return a descriptor that poll(2) reports readable after a nudge of the database @path; -1 if the
 * file cannot be watched. */
int prof_nudge_watch(const char *path);

/* Return whether a nudge arrived since the last call; false if @watch is -1. */
bool prof_nudge_taken(int watch);

#endif /* PROF_NUDGE_H */
