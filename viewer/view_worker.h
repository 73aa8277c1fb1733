/*
 * A thread that does one job at a time, so that the one that draws never waits for long.
 *
 * Threading: give, wait and stop from one thread; the job runs on another. What the job touches is
 * its own until wait() says it is done.
 */
#ifndef VIEW_WORKER_H
#define VIEW_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

struct view_worker;

/* A byte is written to @wake_fd when a job is done (-1: nowhere). On failure *@out is NULL. */
enum status view_worker_start(struct view_worker **out, int wake_fd, struct err *err);
void view_worker_stop(struct view_worker *worker); /* waits for the job; accepts NULL */

/* Begin @job(@user); the one before must be done. */
void view_worker_give(struct view_worker *worker, void (*job)(void *user), void *user);

/* Is the job done? Waits for it at most @ns. */
bool view_worker_wait(struct view_worker *worker, uint64_t ns);

#endif /* VIEW_WORKER_H */
