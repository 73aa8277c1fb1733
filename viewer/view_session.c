/*
 * The session: the table of screens, news, what is shown when, and its jobs: begun, waited for,
 * ended.
 *
 * Threading: view_session.h. Ownership: the session owns the states of its screens.
 */
#include "viewer/view_session.h"

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

unsigned view_screen_where(enum view_screen screen, const struct view_context *context)
{
	const bool table = screen == VIEW_SUMMARY && context->target;

	return view_screens[screen]->where | (table ? VIEW_ON_COMPARED : 0);
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

/* ---- jobs ------------------------------------------------------------------------------------ */

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

static bool view_is_over(const struct view_source *source)
{
	return source->state == VIEW_COMPLETE || source->state == VIEW_KILLED;
}

bool view_session_over(const struct view_session *session)
{
	return view_is_over(&session->source) &&
	       (!session->context.target || view_is_over(&session->target));
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
	else if (job->answer == VIEW_COPY)
		view__copy(session);
	else if (job->answer == VIEW_UNHANDLED && job->kind == VIEW_REQUEST_JOB)
		view__general(session, job->request);
	else if (job->answer == VIEW_UNHANDLED && job->kind == VIEW_KEY_JOB)
		view__request_key(session, job->key);
}

void view__say(struct view_session *session, const char *text, const char *rest)
{
	session->said_ns = 0;
	view_message(&session->context, text, rest);
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

/* "3 of 375, found on another lane"; where the screen says nothing, its status has the number. */
static void view_searched(struct view_session *session, const struct view_job *job)
{
	struct view_context *context = &session->context;
	char place[64], more[VIEW_MESSAGE_SIZE];

	if (!job->found && view_cancelled(context)) {
		view__say(session, view_stopped(context), NULL);
	} else if (!job->found) {
		view__say(session, "not found: ", job->text);
	} else if (context->hits > 0 && context->message[0]) {
		snprintf(place, sizeof(place), "%lld of %lld", (long long)context->hit,
			 (long long)context->hits);
		snprintf(more, sizeof(more), ", %.*s", VIEW_MESSAGE_SIZE - 8, context->message);
		view__say(session, place, more);
	}
	session->stale = true;
}

/* What follows from the job that has ended. It may begin another. */
static void session_finish_job(struct view_session *session)
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
		view_searched(session, &job);
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
		/* An interrupt between two queries is lost: say it again. */
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

/* ---- the session ----------------------------------------------------------------------------- */

/* Loads for news take at most a hundredth of the time, so that the run that is followed keeps the
 * rest; a tenth where the picture would be older than STALE_NS otherwise. */
#define LOAD_SHARE 100
#define LONG_SHARE 10
#define STALE_NS   (2 * UINT64_C(1000000000))
#define MESSAGE_NS (5 * UINT64_C(1000000000))
#define PATIENCE   (30 * UINT64_C(1000000000)) /* for a cancelled job, on leaving */
#define SLICE      (5 * UINT64_C(1000000))

static enum status view_open_sources(struct view_session *session, const char *path,
				     const char *target, struct err *err)
{
	enum status status = view_source_open(&session->source, path, err);

	if (status != ST_OK)
		return status;
	session->context.source = &session->source;
	if (!target)
		return ST_OK;
	status = view_source_open(&session->target, target, err);
	if (status == ST_OK)
		session->context.target = &session->target;
	return status;
}

void view_session_foreground(struct view_session *session)
{
	const uint64_t since = clock_ns();

	if (!session->worker)
		return;
	/* An interrupt ends one query; the job may have begun another. */
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
		view_screen((enum view_screen)i)->close(session->state[i]);
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
	status = view_open_sources(session, path, target, err);
	session->canvas.ascii = ascii;
	session->context.body = view_frame_layout(VIEW_MIN_WIDTH, VIEW_MIN_HEIGHT).body;
	for (int i = 0; i < VIEW_SCREENS && status == ST_OK; i++) {
		session->news[i] = true;
		status = view_screen((enum view_screen)i)
				 ->open(&session->state[i], &session->context, err);
	}
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

/* ---- time passes ----------------------------------------------------------------------------- */

/* A message goes after a while; true: it went. */
static bool view_fade(struct view_session *session, uint64_t now_ns)
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

/* A run that has ended since the last look: say so. */
static void view_say_end(struct view_session *session, enum view_state before)
{
	const enum view_state state = session->source.state;

	if (before == state || session->prompt != VIEW_NO_PROMPT)
		return;
	if (state == VIEW_COMPLETE)
		view__say(session, "the run has ended; its recording is complete", NULL);
	else if (state == VIEW_KILLED)
		view__say(
			session,
			"the run has died; what it wrote is here: ipu-report repair adds the sums",
			NULL);
}

static bool view_poll(struct view_session *session, uint64_t now_ns)
{
	const enum view_state state = session->source.state;
	bool news = view_source_poll(&session->source, now_ns);

	if (session->context.target && view_source_poll(&session->target, now_ns))
		news = true;
	view_say_end(session, state);
	for (int i = 0; news && i < VIEW_SCREENS; i++)
		session->news[i] = true;
	return (news && !session->paused) || state != session->source.state;
}

/* A job holds the file that its writer wants to close, for which it waits a second: what is asked
 * of the run can be asked again. */
static void view_make_way(struct view_session *session)
{
	if (view_cancelled(&session->context) ||
	    (!view_source_nudged(&session->source) &&
	     !(session->context.target && view_source_nudged(&session->target))))
		return;
	atomic_store(&session->context.closing, true);
	view__cancel(session);
}

/* The least time from one load for news to the next. */
static uint64_t view_between_loads(const struct view_session *session, enum view_screen screen)
{
	const uint64_t took = session->load_ns[screen];
	uint64_t wait = min(LOAD_SHARE * took, STALE_NS);

	wait = max(LONG_SHARE * took, wait);
	return max(view__ops(session)->least_ns, wait);
}

bool view_session_tick(struct view_session *session, uint64_t now_ns)
{
	const enum view_screen screen = session->screen;
	const bool waited = view_session_busy(session);
	bool draw;

	view__finish_job(session, 0);
	if (view_session_busy(session)) {
		view_make_way(session);
		return true; /* the clock of what takes long */
	}
	/* What was waited for is there now. */
	draw = view_fade(session, now_ns) || waited;
	/* Paused or not: a run that closes its file waits until it is let go. */
	draw = view_poll(session, now_ns) || draw;
	if (session->paused)
		return draw;
	/* What there is more of is read after what there is has been seen. */
	if (session->news[screen] && session->source.db && !session->undrawn &&
	    (session->context.more ||
	     now_ns - session->loaded_ns[screen] >= view_between_loads(session, screen)))
		session->stale = true;
	return draw || session->stale;
}
