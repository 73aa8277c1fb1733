/*
 * Jobs of the session: begun, waited for a moment, ended.
 *
 * Threading: the session's. Ownership: a job's table goes to the file that is written.
 */
#include <string.h>

#include "common/clock.h"
#include "common/str.h"
#include "viewer/view_session_internal.h"

#define MOMENT_NS (12 * UINT64_C(1000000)) /* a picture may take so long, and no wait is seen */

bool view_session_busy(const struct view_session *session)
{
	return session->job.kind != VIEW_NO_JOB;
}

struct view_job *view__job(struct view_session *session, enum view_job_kind kind)
{
	struct view_job *job = &session->job;

	memset(job, 0, sizeof(*job));
	job->kind = kind;
	job->ops = view__ops(session);
	job->state = session->state[session->screen];
	job->context = &session->context;
	/* Of a load that failed there may be half: all of it is to be read. */
	job->news = session->news[session->screen] || !session->fresh[session->screen];
	session->job_screen = session->screen;
	/* Screens have their least size at least; what they show then is for later. */
	if (!session->frame.too_small)
		session->context.body = session->frame.body;
	return job;
}

void view__start(struct view_session *session)
{
	session->job_since_ns = clock_ns();
	atomic_store(&session->context.cancel, false);
	atomic_store(&session->context.closing, false);
	if (!session->worker) {
		view_job_run(&session->job);
		view__settle(session, 0);
		return;
	}
	view_worker_give(session->worker, view_job_run, &session->job);
	view__settle(session, MOMENT_NS);
}

void view__cancel(struct view_session *session)
{
	if (!view_session_busy(session))
		return;
	atomic_store(&session->context.cancel, true);
	/* A job lets go of no database, so the handles stay what they are while it runs. */
	if (session->source.db)
		prof_db_interrupt(session->source.db);
	if (session->target.db)
		prof_db_interrupt(session->target.db);
}

static void view_loaded(struct view_session *session, const struct view_job *job)
{
	const enum view_screen screen = session->job_screen;

	session->trouble.status = ST_OK;
	if (job->err.status == ST_OK) {
		session->news[screen] = session->context.more;
		session->fresh[screen] = true;
		session->undrawn = true;
		/* The newest is in view, and remains the newest. */
		if (view_session_over(session) && !session->context.more)
			session->context.follow = false;
	} else {
		/* Whatever it has may be half of something. */
		session->trouble = job->err;
		session->fresh[screen] = false;
		session->news[screen] =
			job->err.status != ST_INTERRUPTED || session->context.closing;
		if (job->err.status == ST_INTERRUPTED)
			err_set(&session->trouble, ST_INTERRUPTED, "%s: r reads it again",
				view_stopped(&session->context));
	}
	session->loaded_ns[screen] = clock_ns();
	session->load_ns[screen] = job->took_ns;
}

static void view_answered(struct view_session *session, const struct view_job *job)
{
	if (job->answer == VIEW_LOAD)
		session->stale = true;
	else if (job->answer == VIEW_JOIN)
		view__join(session);
	else if (job->answer == VIEW_LEAD)
		view__enter(session);
	else if (job->answer == VIEW_UNHANDLED && job->kind == VIEW_REQUEST_JOB)
		view__general(session, job->request);
	else if (job->answer == VIEW_UNHANDLED && job->kind == VIEW_KEY_JOB)
		view__request_key(session, job->key);
}

static void view_went(struct view_session *session, const struct view_job *job)
{
	session->fresh[session->job_screen] = job->fresh;
	session->stale = true;
	if (job->err.status != ST_OK)
		view__say(session,
			  job->err.status == ST_INTERRUPTED ? view_stopped(&session->context)
							    : job->err.text,
			  NULL);
}

/* What follows from the job that has ended. It may begin another. */
static void view_finish(struct view_session *session)
{
	const struct view_job job = session->job;

	session->job.kind = VIEW_NO_JOB;
	switch (job.kind) {
	case VIEW_LOAD_JOB:
		view_loaded(session, &job);
		break;
	case VIEW_REQUEST_JOB:
	case VIEW_KEY_JOB:
	case VIEW_CLICK_JOB:
		if (job.due)
			view_loaded(session, &job);
		if (job.err.status == ST_OK)
			view_answered(session, &job);
		break;
	case VIEW_SEARCH_JOB:
		if (!job.found)
			view__say(session,
				  view_cancelled(&session->context)
					  ? view_stopped(&session->context)
					  : "not found: ",
				  view_cancelled(&session->context) ? NULL : job.text);
		session->stale = true;
		break;
	case VIEW_GO_JOB:
		view_went(session, &job);
		break;
	case VIEW_JOIN_JOB:
		session->joined = job.place;
		if (job.lead)
			view__entered(session);
		else
			view__join_list(session);
		break;
	case VIEW_WRITE_JOB:
		view__written(session);
		break;
	default:
		session->stale = true;
		break;
	}
}

void view__settle(struct view_session *session, uint64_t wait_ns)
{
	if (!view_session_busy(session))
		return;
	if (session->worker && !view_worker_wait(session->worker, wait_ns)) {
		/* An interrupt between two queries is lost: say it again. */
		if (view_cancelled(&session->context))
			view__cancel(session);
		return;
	}
	view_finish(session);
}

/* A database is let go of while its writer closes it. */
bool view__away(const struct view_session *session)
{
	return !session->source.db || (session->context.target && !session->target.db);
}

/* Moving and zooming follow from what is on the screen, and a burst of such keys needs no picture
 * in between. Other requests are about what the keys before have led to. */
static bool view_needs_load(const struct view_session *session, enum view_request request)
{
	const char *group = view_request_info(request)->group;

	return session->stale && !view__away(session) && strcmp(group, "Moving") != 0 &&
	       strcmp(group, "Zooming") != 0;
}

void view__request(struct view_session *session, enum view_request request)
{
	struct view_job *job = view__job(session, VIEW_REQUEST_JOB);

	job->request = request;
	job->due = view_needs_load(session, request);
	if (job->due)
		session->stale = false;
	view__start(session);
}

void view__load(struct view_session *session)
{
	const enum view_screen screen = session->screen;

	session->stale = false;
	/* What was loaded stays, and comes up to date when the file is finished. */
	if (view__away(session) && screen != VIEW_HELP_SCREEN) {
		if (!session->fresh[screen])
			err_set(&session->trouble, ST_BUSY, "the run is being closed: a moment");
		else if (!session->context.message[0])
			view__say(session, "the run is being closed: a moment", NULL);
		return;
	}
	view__job(session, VIEW_LOAD_JOB);
	view__start(session);
}
