/*
 * The calls of a screen that may take long: load, a request, a search ...
 *
 * view_job_run() runs a job on any thread; before and after, the session owns it.
 */
#ifndef VIEW_WORKER_H
#define VIEW_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "viewer/view_screen.h"

#define VIEW_PROMPT_SIZE 256

enum view_job_kind {
	VIEW_NO_JOB,
	VIEW_LOAD_JOB,
	VIEW_REQUEST_JOB,
	VIEW_SEARCH_JOB,
	VIEW_FILTER_JOB,
	VIEW_KEY_JOB,
	VIEW_CLICK_JOB,
	VIEW_GO_JOB,    /* make `place` the one under the screen's cursor */
	VIEW_JOIN_JOB,  /* complete `place` */
	VIEW_WRITE_JOB, /* the screen's rows as a table */
	VIEW_RUNS_JOB   /* the list of runs to compare with */
};

struct view_job {
	enum view_job_kind kind;
	const struct view_screen_ops *ops;
	void *state;
	struct view_context *context;

	bool news;  /* load; go: the screen has never been loaded */
	bool fresh; /* the screen has been loaded */
	bool due;   /* request: load first, since it uses the result of earlier keys */
	bool forward;
	enum view_request request;
	uint32_t key;
	int x, y;
	char text[VIEW_PROMPT_SIZE];
	struct view_place place;
	struct view_runs *runs; /* the runs job's result */

	/* Results. */
	enum view_answer answer;
	bool found;
	struct report_table table;
	unsigned offering; /* bits of screens that can show more of what is under the cursor */
	struct err err;    /* ST_OK: success */
	uint64_t took_ns;
};

/* May the job change what is under the cursor? If so it finds `offering`. */
static inline bool view_job_moves(const struct view_job *job)
{
	return job->kind >= VIEW_LOAD_JOB && job->kind <= VIEW_GO_JOB;
}

/* @user: a struct view_job. */
void view_job_run(void *user);

/*
 * A thread that runs one job at a time, so that the drawing thread never waits for long.
 *
 * Threading: give, wait and stop from one thread; the job runs on another and owns what it touches
 * until wait() returns true.
 */

struct view_worker;

/* The worker writes a byte to @wake_fd when a job is done (-1: nothing). On failure *@out is
 * NULL. */
enum status view_worker_start(struct view_worker **out, int wake_fd, struct err *err);
void view_worker_stop(struct view_worker *worker); /* waits for the job; accepts NULL */

/* Start @job(@user); the previous job must be done. */
void view_worker_give(struct view_worker *worker, void (*job)(void *user), void *user);

/* Is the job done? Waits at most @ns. */
bool view_worker_wait(struct view_worker *worker, uint64_t ns);

#endif /* VIEW_WORKER_H */
