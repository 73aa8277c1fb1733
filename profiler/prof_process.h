/*
 * Identity of the recording process, so that a reader can check whether it still runs. Any thread.
 */
#ifndef PROF_PROCESS_H
#define PROF_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#define PROF_HOST_SIZE 320

/* Start time of process @pid in ticks since boot; 0 if no such process exists or it is a zombie. */
int64_t prof_process_start(int64_t pid);

/* Resident memory of this process in bytes; 0 if the system does not report it. */
int64_t prof_process_resident(void);

/* The name of this host and the id of its current boot: "name boot-id". */
void prof_process_host(char out[PROF_HOST_SIZE]);

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

void prof_nudge_send(const char *path);

/* Return a descriptor that poll(2) reports readable after a nudge of the database @path; -1 if the
 * file cannot be watched. */
int prof_nudge_watch(const char *path);

/* Return whether a nudge arrived since the last call; false if @watch is -1. */
bool prof_nudge_taken(int watch);

#endif /* PROF_PROCESS_H */
