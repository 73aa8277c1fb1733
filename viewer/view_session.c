/*
 * The session: jobs, from start to end; the screen that is shown; opening and closing; polling the
 * reports for news.
 *
 * A job is started with a function that handles its result once it has ended. The files above this
 * one (keys, places, runs, writing) each give their own.
 *
 * Threading: view_session.h. Ownership: the session owns the states of its screens.
 */
#include "viewer/view_session.h"

#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "viewer/view_screen.h"
#include "viewer/view_session_internal.h"

/* ---- jobs ------------------------------------------------------------------------------------ */

#define MOMENT_NS (12 * UINT64_C(1000000)) /* a job this short ends before the next drawing */

bool view_session_busy(const struct view_session *session)
{
	return session->job.kind != VIEW_NO_JOB;
}

struct view_job *view__job(struct view_session *session, enum view_job_kind kind,
			   view_job_ended ended)
{
	struct view_job *job = &session->job;

	memset(job, 0, sizeof(*job));
	session->job_ended = ended;
	job->kind = kind;
	job->ops = view__ops(session);
	job->state = session->state[session->screen];
	job->context = &session->context;
	/* A failed load may have left half of the data: then read all of it. */
	job->news = session->news[session->screen] || !session->fresh[session->screen];
	job->fresh = session->fresh[session->screen];
	session->job_screen = session->screen;
	/* While the terminal is too small, screens keep the body of their minimum size. */
	if (!session->frame.too_small)
		session->context.body = session->frame.body;
	return job;
}

void view__cancel(struct view_session *session)
{
	if (!view_session_busy(session))
		return;
	atomic_store(&session->context.cancel, true);
	/* No job closes a database, so the handles stay valid while it runs. */
	if (session->source.db)
		prof_db_interrupt(session->source.db);
	if (session->target.db)
		prof_db_interrupt(session->target.db);
}

void view__notify(struct view_session *session, const char *text, const char *rest)
{
	session->said_ns = 0;
	view_message(&session->context, text, rest);
}

static bool view_is_over(const struct view_source *source)
{
	return source->state == VIEW_COMPLETE || source->state == VIEW_KILLED;
}

bool view_session_over(const struct view_session *session)
{
	return view_is_over(&session->source) &&
	       (!session->context.target || view_is_over(&session->target));
}

static void view_finish_load(struct view_session *session, const struct view_job *job)
{
	const enum view_screen screen = session->job_screen;

	session->trouble.status = ST_OK;
	if (job->err.status == ST_OK) {
		session->news[screen] = session->context.more;
		session->fresh[screen] = true;
		session->undrawn = true;
		/* A run that has ended has no newer data: stop following. */
		if (view_session_over(session) && !session->context.more)
			session->context.follow = false;
	} else {
		/* The screen's state may be incomplete. */
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

void view__finish_job(struct view_session *session, uint64_t wait_ns)
{
	struct view_job job;

	if (!view_session_busy(session))
		return;
	if (session->worker && !view_worker_wait(session->worker, wait_ns)) {
		/* An interrupt between two queries has no effect: send it again. */
		if (view_cancelled(&session->context))
			view__cancel(session);
		return;
	}
	/* Handling the result may start another job. */
	job = session->job;
	session->job.kind = VIEW_NO_JOB;
	if (view_job_moves(&job))
		session->offering[session->job_screen] = job.offering;
	if (job.kind == VIEW_LOAD_JOB || job.due)
		view_finish_load(session, &job);
	if (session->job_ended)
		session->job_ended(session, &job);
}

void view__start(struct view_session *session)
{
	session->job_since_ns = clock_ns();
	atomic_store(&session->context.cancel, false);
	atomic_store(&session->context.closing, false);
	if (!session->worker) {
		view_job_run(&session->job);
		view__finish_job(session, 0);
		return;
	}
	view_worker_give(session->worker, view_job_run, &session->job);
	view__finish_job(session, MOMENT_NS);
}

bool view__db_closed(const struct view_session *session)
{
	return !session->source.db || (session->context.target && !session->target.db);
}

void view__load(struct view_session *session)
{
	const enum view_screen screen = session->screen;

	session->stale = false;
	/* Keep the loaded data; the screen reloads when the file is finished. */
	if (view__db_closed(session) && screen != VIEW_HELP_SCREEN) {
		if (!session->fresh[screen])
			err_set(&session->trouble, ST_BUSY, "the run is being closed: a moment");
		else if (!session->context.message[0])
			view__notify(session, "the run is being closed: a moment", NULL);
		return;
	}
	view__job(session, VIEW_LOAD_JOB, NULL);
	view__start(session);
}

/* ---- screens --------------------------------------------------------------------------------- */

enum status view__poll_screens(struct view_session *session, struct err *err)
{
	const struct view_source *shown[] = {&session->source, session->context.target};
	enum status status = ST_OK;

	for (int i = 0; i < VIEW_SCREENS && status == ST_OK; i++) {
		const char *query = view_screen((enum view_screen)i)->has;
		bool has = !query;

		for (size_t r = 0; r < ARRAY_LEN(shown) && !has && status == ST_OK; r++) {
			int64_t any = 0;

			/* A file that is closed for its writer: as before. */
			if (shown[r] && !shown[r]->db)
				any = !session->absent[i];
			else if (shown[r])
				status = prof_db_number(shown[r]->db, query, &any, err);
			/* A damaged file has nothing to show. */
			if (status != ST_NOMEM)
				status = ST_OK;
			has = any != 0;
		}
		if (status == ST_OK)
			session->absent[i] = !has;
	}
	return status;
}

void view_session_show(struct view_session *session, enum view_screen screen)
{
	if (screen == session->screen)
		return;
	if (session->screen != VIEW_HELP_SCREEN) {
		session->before = session->screen;
		session->context.about = (int)session->before;
	}
	session->screen = screen;
	session->stale = true;
}

int view_session_screen_of(const char *name)
{
	for (int i = 0; i < VIEW_SCREENS; i++)
		if (strcmp(view_screen((enum view_screen)i)->name, name) == 0)
			return i;
	return -1;
}

bool view__current_place(const struct view_session *session, struct view_place *place)
{
	const struct view_screen_ops *ops = view__ops(session);

	view_place_clear(place);
	return session->fresh[session->screen] && ops->place &&
	       ops->place(session->state[session->screen], place);
}

bool view__is_typing(const struct view_session *session)
{
	const struct view_screen_ops *ops = view__ops(session);

	return session->fresh[session->screen] && ops->typing &&
	       ops->typing(session->state[session->screen]);
}

/* The screen has been asked to go to a place. */
static void session_gone(struct view_session *session, const struct view_job *job)
{
	session->fresh[session->job_screen] = job->fresh;
	session->stale = true;
	if (job->err.status != ST_OK)
		view__notify(session,
			     job->err.status == ST_INTERRUPTED ? view_stopped(&session->context)
							       : job->err.text,
			     NULL);
}

void view__go_to(struct view_session *session, const struct view_place *place)
{
	view__job(session, VIEW_GO_JOB, session_gone)->place = *place;
	view__start(session);
}

/* ---- the session ----------------------------------------------------------------------------- */

#define PATIENCE (30 * UINT64_C(1000000000)) /* longest wait for a cancelled job on exit */
#define SLICE    (5 * UINT64_C(1000000))

void view_session_foreground(struct view_session *session)
{
	const uint64_t since = clock_ns();

	if (!session->worker)
		return;
	/* An interrupt ends one query; the job may have started another. */
	while (view_session_busy(session) && clock_ns() - since < PATIENCE) {
		view__cancel(session);
		view__finish_job(session, SLICE);
	}
	view_worker_stop(session->worker);
	session->worker = NULL;
}

void view_session_close(struct view_session *session)
{
	view_session_foreground(session);
	for (int i = 0; i < VIEW_SCREENS; i++) {
		view_state_free(view_screen((enum view_screen)i), session->state[i]);
		session->state[i] = NULL;
	}
	report_table_free(&session->job.table);
	view_popup_close(&session->popup);
	view_marks_free(&session->marks);
	view_runs_free(&session->runs);
	view_canvas_fini(&session->canvas);
	view_source_close(&session->source);
	view_source_close(&session->target);
}

enum status view_session_open(struct view_session *session, const char *path, const char *target,
			      bool ascii, struct err *err)
{
	struct err own;

	err = err_start(err, &own);
	memset(session, 0, sizeof(*session));
	session->context.source = &session->source;
	session->context.target = target ? &session->target : NULL;
	session->context.body = view_frame_layout(VIEW_MIN_WIDTH, VIEW_MIN_HEIGHT).body;
	session->canvas.ascii = ascii;
	if (view_source_open(&session->source, path, err) != ST_OK ||
	    (target && view_source_open(&session->target, target, err) != ST_OK))
		goto failed;
	for (int i = 0; i < VIEW_SCREENS; i++) {
		session->news[i] = true;
		session->state[i] = view_state_new(view_screen((enum view_screen)i));
		if (!session->state[i]) {
			err_nomem(err);
			goto failed;
		}
	}
	if (view__poll_screens(session, err) == ST_OK)
		return ST_OK;
failed:
	view_session_close(session);
	return err->status;
}

enum status view_session_background(struct view_session *session, int wake_fd, struct err *err)
{
	return view_worker_start(&session->worker, wake_fd, err);
}

enum status view_session_size(struct view_session *session, int width, int height, struct err *err)
{
	enum status status = view_canvas_resize(&session->canvas, width, height, err);

	if (status != ST_OK)
		return status;
	session->frame = view_frame_layout(width, height);
	session->stale = true;
	return ST_OK;
}

/* ---- ticks ----------------------------------------------------------------------------------- */

/* Loads for news take at most a hundredth of the time, so that the run being followed keeps the
 * rest; up to a tenth if the data would otherwise be older than STALE_NS. */
#define LOAD_SHARE 100
#define LONG_SHARE 10
#define STALE_NS   (2 * UINT64_C(1000000000))
#define MESSAGE_NS (5 * UINT64_C(1000000000))

/* Remove the message after MESSAGE_NS; true: it was removed. */
static bool view_expire_message(struct view_session *session, uint64_t now_ns)
{
	if (!session->context.message[0]) {
		session->said_ns = 0;
		return false;
	}
	if (session->said_ns == 0)
		session->said_ns = now_ns;
	if (now_ns - session->said_ns < MESSAGE_NS)
		return false;
	session->context.message[0] = '\0';
	session->said_ns = 0;
	return true;
}

static bool view_poll(struct view_session *session, uint64_t now_ns)
{
	const enum view_state state = session->source.state;
	bool news = view_source_poll(&session->source, now_ns);

	if (session->context.target && view_source_poll(&session->target, now_ns))
		news = true;
	/* The run may have ended since the last poll. */
	if (state != session->source.state && session->prompt == VIEW_NO_PROMPT) {
		if (session->source.state == VIEW_COMPLETE)
			view__notify(session, "the run has ended; its recording is complete", NULL);
		else if (session->source.state == VIEW_KILLED)
			view__notify(session,
				     "the run has died; what it wrote is here: ipu-report repair "
				     "adds the sums",
				     NULL);
	}
	for (int i = 0; news && i < VIEW_SCREENS; i++)
		session->news[i] = true;
	if (news)
		(void)view__poll_screens(session, NULL);
	return (news && !session->paused) || state != session->source.state;
}

bool view_session_tick(struct view_session *session, uint64_t now_ns)
{
	const enum view_screen screen = session->screen;
	const bool waited = view_session_busy(session);
	uint64_t took, wait;
	bool draw;

	view__finish_job(session, 0);
	if (view_session_busy(session)) {
		/* If the writer asks for it, cancel the job, which keeps the file open: the writer
		 * waits only a second to close it, and the user can repeat the request. */
		if (!view_cancelled(&session->context) &&
		    (view_source_nudged(&session->source) ||
		     (session->context.target && view_source_nudged(&session->target)))) {
			atomic_store(&session->context.closing, true);
			view__cancel(session);
		}
		return true; /* the status line shows the elapsed time */
	}
	/* A job that ended since the last tick has results to draw. */
	draw = view_expire_message(session, now_ns) || waited;
	/* Poll even when paused: a run that closes its file waits until the viewer releases it. */
	draw = view_poll(session, now_ns) || draw;
	if (session->paused)
		return draw;
	/* The least time between two loads for news. */
	took = session->load_ns[screen];
	wait = min(LOAD_SHARE * took, STALE_NS);
	wait = max(LONG_SHARE * took, wait);
	wait = max(view__ops(session)->least_ns, wait);
	/* Load the next part only after the last one has been drawn. */
	if (session->news[screen] && session->source.db && !session->undrawn &&
	    (session->context.more || now_ns >= session->loaded_ns[screen] + wait))
		session->stale = true;
	return draw || session->stale;
}
