/*
 * The writer asks the readers of its file to look now: it is about to make it a plain file, for
 * which they must let go, or has just done so. Between such moments readers look when they like.
 *
 * A nudge is a change of the file's times, which no write of SQLite's makes and inotify(7) tells
 * apart from writes: recording at full speed wakes nobody. Where the file system knows no inotify
 * (a network's, another host's writes), readers notice at their next look, and the writer waits.
 *
 * Threading: any. Ownership: a watch is a file descriptor of the caller's.
 */
#ifndef PROF_NUDGE_H
#define PROF_NUDGE_H

#include <stdbool.h>

void prof_nudge_send(const char *path);

/* Readable, for poll(2), after a nudge of the database @path. -1: there is no way to tell. */
int prof_nudge_watch(const char *path);

/* Whether there was a nudge since the last call. @watch: -1 is false. */
bool prof_nudge_taken(int watch);

#endif /* PROF_NUDGE_H */
