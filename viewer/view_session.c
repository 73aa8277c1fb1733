/*
 * The session: the table of screens; jobs, from start to result; polling the reports for news.
 *
 * Threading: view_session.h. Ownership: the session owns the states of its screens.
 */
#include "viewer/view_session.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "viewer/view_screen.h"
#include "viewer/view_session_internal.h"

/* ---- screens --------------------------------------------------------------------------------- */

static const struct view_screen_ops *const view_screens[] = {
#define VIEW_SCREEN_ROW(screen, ops) [VIEW_##screen] = &view_##ops##_ops,
	VIEW_SCREEN_MAP(VIEW_SCREEN_ROW)
#undef VIEW_SCREEN_ROW
};
_Static_assert(ARRAY_LEN(view_screens) == VIEW_SCREENS, "screen table out of step");

const struct view_screen_ops *view_screen(enum view_screen screen)
{
	return view_screens[screen];
}

void *view_state_new(const struct view_screen_ops *ops)
{
	void *state = mem_calloc(1, ops->size);

	if (state && ops->init)
		ops->init(state);
	return state;
}

void view_state_free(const struct view_screen_ops *ops, void *state)
{
	if (state && ops->fini)
		ops->fini(state);
	mem_free(state);
}

unsigned view_screen_where(enum view_screen screen, const struct view_context *context)
{
	const bool table = screen == VIEW_SUMMARY && context->target;

	return view_screens[screen]->where | (table ? VIEW_ON_COMPARED : 0);
}

enum status view__look_for_screens(struct view_session *session, struct err *err)
{
	const struct view_source *shown[] = {&session->source, session->context.target};
	enum status status = ST_OK;

	for (int i = 0; i < VIEW_SCREENS && status == ST_OK; i++) {
		bool has = !view_screens[i]->has;

		for (size_t r = 0; r < ARRAY_LEN(shown) && !has && status == ST_OK; r++) {
			int64_t any = 0;

			/* A file that is closed for its writer: as before. */
			if (shown[r] && !shown[r]->db)
				any = !session->absent[i];
			else if (shown[r])
				status = prof_db_number(shown[r]->db, view_screens[i]->has, &any,
							err);
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

void view_message(struct view_context *context, const char *text, const char *rest)
{
	static const char dots[] = "...";
	char *out = context->message;
	size_t used, room;

	str_copy(out, VIEW_MESSAGE_SIZE, text);
	used = strlen(out);
	room = VIEW_MESSAGE_SIZE - 1 - used;
	if (rest && strlen(rest) > room && room > sizeof(dots)) {
		str_copy(out + used, VIEW_MESSAGE_SIZE - used, dots);
		used += sizeof(dots) - 1;
		rest += strlen(rest) - (room - (sizeof(dots) - 1));
		while (((unsigned char)*rest & 0xc0) == 0x80)
			rest++;
	}
	str_copy(out + used, VIEW_MESSAGE_SIZE - used, rest ? rest : "");
}

void view_messagef(struct view_context *context, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(context->message, sizeof(context->message), format, args);
	va_end(args);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

#define MOMENT_NS (12 * UINT64_C(1000000)) /* a job this short ends before the next drawing */

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

static void view_handle_answer(struct view_session *session, const struct view_job *job)
{
	if (job->answer == VIEW_LOAD)
		session->stale = true;
	else if (job->answer == VIEW_JOIN)
		view__join(session);
	else if (job->answer == VIEW_LEAD)
		view__enter(session);
	else if (job->answer == VIEW_COPY)
		view__copy(session);
	else if (job->answer == VIEW_UNHANDLED && job->kind == VIEW_REQUEST_JOB)
		view__general(session, job->request);
	else if (job->answer == VIEW_UNHANDLED && job->kind == VIEW_KEY_JOB)
		view__request_key(session, job->key);
}

void view__notify(struct view_session *session, const char *text, const char *rest)
{
	session->said_ns = 0;
	view_message(&session->context, text, rest);
}

/* "3 of 375, found on another lane"; without a message from the screen, the status line has the
 * number. */
static void view_finish_search(struct view_session *session, const struct view_job *job)
{
	struct view_context *context = &session->context;
	char place[64], more[VIEW_MESSAGE_SIZE];

	if (!job->found && view_cancelled(context)) {
		view__notify(session, view_stopped(context), NULL);
	} else if (!job->found) {
		view__notify(session, "not found: ", job->text);
	} else if (context->hits > 0 && context->message[0]) {
		snprintf(place, sizeof(place), "%lld of %lld", (long long)context->hit,
			 (long long)context->hits);
		snprintf(more, sizeof(more), ", %.*s", VIEW_MESSAGE_SIZE - 8, context->message);
		view__notify(session, place, more);
	}
	session->stale = true;
}

/* Handle the result of the job that has ended. This may start another job. */
static void session_finish_job(struct view_session *session)
{
	const struct view_job job = session->job;

	session->job.kind = VIEW_NO_JOB;
	if (view_job_moves(&job))
		session->offering[session->job_screen] = job.offering;
	switch (job.kind) {
	case VIEW_LOAD_JOB:
		view_finish_load(session, &job);
		break;
	case VIEW_REQUEST_JOB:
	case VIEW_KEY_JOB:
	case VIEW_CLICK_JOB:
		if (job.due)
			view_finish_load(session, &job);
		if (job.err.status == ST_OK)
			view_handle_answer(session, &job);
		break;
	case VIEW_SEARCH_JOB:
		view_finish_search(session, &job);
		break;
	case VIEW_GO_JOB:
		session->fresh[session->job_screen] = job.fresh;
		session->stale = true;
		if (job.err.status != ST_OK)
			view__notify(session,
				     job.err.status == ST_INTERRUPTED
					     ? view_stopped(&session->context)
					     : job.err.text,
				     NULL);
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
	case VIEW_RUNS_JOB:
		view__runs_list(session);
		break;
	default:
		session->stale = true;
		break;
	}
}

void view__finish_job(struct view_session *session, uint64_t wait_ns)
{
	if (!view_session_busy(session))
		return;
	if (session->worker && !view_worker_wait(session->worker, wait_ns)) {
		/* An interrupt between two queries has no effect: send it again. */
		if (view_cancelled(&session->context))
			view__cancel(session);
		return;
	}
	session_finish_job(session);
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

/* Is a database closed, so that its writer can finish the file? */
bool view__db_closed(const struct view_session *session)
{
	return !session->source.db || (session->context.target && !session->target.db);
}

void view__request(struct view_session *session, enum view_request request)
{
	struct view_job *job = view__job(session, VIEW_REQUEST_JOB);
	const char *group;

	job->request = request;

	/* Moving and zooming use what the screen shows, and a burst of such keys needs no load in
	 * between. Other requests use the result of earlier keys. */
	group = view_request_info(request)->group;
	job->due = session->stale && !view__db_closed(session) && strcmp(group, "Moving") != 0 &&
		   strcmp(group, "Zooming") != 0;
	if (job->due)
		session->stale = false;
	view__start(session);
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
	view__job(session, VIEW_LOAD_JOB);
	view__start(session);
}

/* ---- the session ----------------------------------------------------------------------------- */

/* Loads for news take at most a hundredth of the time, so that the run being followed keeps the
 * rest; up to a tenth if the data would otherwise be older than STALE_NS. */
#define LOAD_SHARE 100
#define LONG_SHARE 10
#define STALE_NS   (2 * UINT64_C(1000000000))
#define MESSAGE_NS (5 * UINT64_C(1000000000))
#define PATIENCE   (30 * UINT64_C(1000000000)) /* longest wait for a cancelled job on exit */
#define SLICE      (5 * UINT64_C(1000000))

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
		view_state_free(view_screens[i], session->state[i]);
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
	enum status status;

	memset(session, 0, sizeof(*session));
	status = view_source_open(&session->source, path, err);
	if (status == ST_OK) {
		session->context.source = &session->source;
		if (target)
			status = view_source_open(&session->target, target, err);
		if (target && status == ST_OK)
			session->context.target = &session->target;
	}
	session->canvas.ascii = ascii;
	session->context.body = view_frame_layout(VIEW_MIN_WIDTH, VIEW_MIN_HEIGHT).body;
	for (int i = 0; i < VIEW_SCREENS && status == ST_OK; i++) {
		session->news[i] = true;
		session->state[i] = view_state_new(view_screens[i]);
		status = session->state[i] ? ST_OK : err_nomem(err);
	}
	if (status == ST_OK)
		status = view__look_for_screens(session, err);
	if (status != ST_OK)
		view_session_close(session);
	return status;
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

/* ---- ticks ----------------------------------------------------------------------------------- */

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
		(void)view__look_for_screens(session, NULL);
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
