/*
 * The session: screens, news, and what is shown when.
 *
 * Threading: one thread, and the worker's while a job is under way. Ownership: the session owns the
 * sources, the canvas and the screens' states.
 */
#include "viewer/view_session.h"

#include <string.h>

#include "common/clock.h"
#include "common/minmax.h"
#include "common/str.h"
#include "viewer/view_session_internal.h"

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

void view_session_foreground(struct view_session *session)
{
	const uint64_t since = clock_ns();

	if (!session->worker)
		return;
	/* An interrupt ends one query; the job may have begun another. */
	while (view_session_busy(session) && clock_ns() - since < PATIENCE) {
		view__cancel(session);
		view__settle(session, SLICE);
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
	view_canvas_fini(&session->canvas);
	view_source_close(&session->source);
	view_source_close(&session->target);
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

void view__say(struct view_session *session, const char *text, const char *rest)
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

	view__settle(session, 0);
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
