/*
 * What the session asks of a screen that may take long: load, a request, a search ...
 *
 * A job is run by view_job_run(), on whatever thread; before and after it belongs to the session.
 */
#ifndef VIEW_WORKER_H
#define VIEW_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "viewer/view_runs.h"
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
	VIEW_RUNS_JOB   /* the runs that there are to compare with */
};

struct view_job {
	enum view_job_kind kind;
	const struct view_screen_ops *ops;
	void *state;
	struct view_context *context;

	bool news;  /* load; go: the screen has never been loaded */
	bool fresh; /* go: it has been */
	bool due;   /* request: load before, since it is about what the keys before it chose */
	bool forward;
	bool lead; /* join: go on to the screen context->leads, instead of the list of them */
	enum view_request request;
	uint32_t key;
	int x, y;
	char text[VIEW_PROMPT_SIZE];
	struct view_place place;
	struct view_runs *runs; /* read into these */

	/* What became of it. */
	enum view_answer answer;
	bool found;
	struct report_table table;
	struct err err; /* status ST_OK: it went well */
	uint64_t took_ns;
};

/* @user: a struct view_job. */
void view_job_run(void *user);

/*
 * A thread that does one job at a time, so that the one that draws never waits for long.
 *
 * Threading: give, wait and stop from one thread; the job runs on another. What the job touches is
 * its own until wait() says it is done.
 */

struct view_worker;

/* A byte is written to @wake_fd when a job is done (-1: nowhere). On failure *@out is NULL. */
enum status view_worker_start(struct view_worker **out, int wake_fd, struct err *err);
void view_worker_stop(struct view_worker *worker); /* waits for the job; accepts NULL */

/* Begin @job(@user); the one before must be done. */
void view_worker_give(struct view_worker *worker, void (*job)(void *user), void *user);

/* Is the job done? Waits for it at most @ns. */
bool view_worker_wait(struct view_worker *worker, uint64_t ns);

#endif /* VIEW_WORKER_H */
