/*
 * Keys and clicks: dispatched to the prompt, the popup or the screen; the requests common to all
 * screens; and drawing after what was queued has been handled.
 *
 * Threading: view_session.h. Ownership: none.
 */
#include "viewer/view_session_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/str.h"

/* ---- the popup ------------------------------------------------------------------------------- */

static void session_popup_enter(struct view_session *session)
{
	const int kind = session->popup.kind, line = session->popup.at;
	const int tag = session->popup.count > 0 ? session->popup.items[line].tag : 0;
	struct view_place place;

	if (kind == VIEW_RUNS_POPUP) {
		view__runs_enter(session);
		return;
	}
	view_popup_close(&session->popup);
	if (kind == VIEW_MARKS_POPUP) {
		const struct view_mark *mark = &session->marks.items[tag];
		const int screen = view_session_screen_of(mark->screen);

		if (screen < 0 || !view_screen((enum view_screen)screen)->go) {
			view__notify(session, "there is no such screen: ", mark->screen);
			return;
		}
		view__remember(session);
		view__visit(session, (enum view_screen)screen, &mark->place);
	} else if (kind == VIEW_JOIN_POPUP) {
		view__remember(session);
		view__visit(session, (enum view_screen)tag, &session->joined);
	} else if (kind == VIEW_QUERY_POPUP && view_session_screen_of("sql") >= 0) {
		view_place_clear(&place);
		view__statement_at(session->statement, tag, place.sql);
		view__remember(session);
		view__visit(session, (enum view_screen)view_session_screen_of("sql"), &place);
	}
}

static void session_popup_key(struct view_session *session, uint32_t key)
{
	const enum view_request request = view_request_of(key);
	const int at = (int)key - '1';

	if (request == VIEW_ENTER_REQUEST) {
		session_popup_enter(session);
	} else if ((session->popup.kind == VIEW_JOIN_POPUP ||
		    session->popup.kind == VIEW_MARKS_POPUP) &&
		   key >= '1' && key <= '9') {
		if (at >= session->popup.count)
			return;
		session->popup.at = at;
		session_popup_enter(session);
	} else if (request == VIEW_QUIT_REQUEST) {
		session->quit = true;
	} else if (session->popup.kind == VIEW_MARKS_POPUP &&
		   (key == 'd' || key == VIEW_KEY_DELETE)) {
		view__marks_forget(session, session->popup.items[session->popup.at].tag);
	} else if (!view_popup_request(&session->popup, request)) {
		view_popup_close(&session->popup);
	}
}

/* ---- the prompt ------------------------------------------------------------------------------ */

/* "3 of 375, found on another lane"; without a message from the screen, the status line has the
 * number. */
static void session_searched(struct view_session *session, const struct view_job *job)
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

static void view_search(struct view_session *session, bool forward)
{
	struct view_job *job;

	if (session->search[0] == '\0') {
		view__notify(session, "nothing to search for: / asks", NULL);
		return;
	}
	if (!session->fresh[session->screen])
		return;
	job = view__job(session, VIEW_SEARCH_JOB, session_searched);
	str_copy(job->text, sizeof(job->text), session->search);
	job->forward = forward;
	view__start(session);
}

static void session_filtered(struct view_session *session, const struct view_job *job)
{
	(void)job;
	session->stale = true;
}

static void view_accept_prompt(struct view_session *session)
{
	const enum view_prompt_kind kind = session->prompt;

	session->prompt = VIEW_NO_PROMPT;
	if (kind == VIEW_RUNS_PROMPT) {
		view__runs_enter(session);
	} else if (kind == VIEW_SEARCH_PROMPT) {
		if (session->input[0])
			str_copy(session->search, sizeof(session->search), session->input);
		view_search(session, true);
	} else if (kind == VIEW_FILTER_PROMPT) {
		struct view_job *job = view__job(session, VIEW_FILTER_JOB, session_filtered);

		str_copy(job->text, sizeof(job->text), session->input);
		view__start(session);
	} else if (kind == VIEW_MARK_PROMPT) {
		view__mark(session, session->input);
	} else if (session->input[0]) {
		view__write(session, session->input);
	}
}

static void view_prompt_key(struct view_session *session, uint32_t key)
{
	const bool typed = key >= ' ' && key < 0x110000 && key != VIEW_KEY_BACKSPACE;
	size_t length = session->proposed && typed ? 0 : strlen(session->input);
	char bytes[5];

	session->proposed = false;
	if (key == VIEW_KEY_ENTER || key == '\n') {
		view_accept_prompt(session);
	} else if (key == VIEW_KEY_ESCAPE) {
		session->prompt = VIEW_NO_PROMPT;
	} else if (key == VIEW_KEY_BACKSPACE || key == '\b') {
		if (length == 0)
			session->prompt = VIEW_NO_PROMPT;
		/* Delete a whole character: step back over continuation bytes. */
		while (length > 0 && ((unsigned char)session->input[--length] & 0xc0) == 0x80)
			;
		session->input[length] = '\0';
	} else if (key == VIEW_CTRL('U')) {
		session->input[0] = '\0';
	} else if (typed) {
		if (length + (size_t)view_encode(key, bytes) < sizeof(session->input))
			memcpy(session->input + length, bytes, strlen(bytes) + 1);
	}
}

/* ---- requests -------------------------------------------------------------------------------- */

static void view_leave(struct view_session *session, bool may_quit)
{
	if (session->screen == VIEW_HELP_SCREEN)
		view_session_show(session, session->before);
	else if (may_quit)
		session->quit = true;
}

/* Report that the run has ended, so that there is nothing to wait for. */
static void view_report_over(struct view_session *session, const char *rest)
{
	view__notify(session,
		     session->context.target                ? "both runs have ended"
		     : session->source.state == VIEW_KILLED ? "the run has died"
							    : "the run is complete",
		     rest);
}

/* A pause that began while the run recorded can be ended after the run. */
static void view_pause(struct view_session *session)
{
	if (!session->paused && view_session_over(session)) {
		view_report_over(session, ": nothing to pause");
		return;
	}
	session->paused = !session->paused;
	view__notify(session, session->paused ? "paused: Z goes on" : "looking for news again",
		     NULL);
}

static void session_follow(struct view_session *session)
{
	if (!session->context.follow && view_session_over(session)) {
		view_report_over(session, ": nothing to follow");
		return;
	}
	session->context.follow = !session->context.follow;
	session->stale = true;
	view__notify(session,
		     session->context.follow ? "following the newest" : "no longer following",
		     NULL);
}

static void view_differ(struct view_session *session)
{
	if (!session->context.target) {
		view__notify(session, "one run alone: R compares it with another", NULL);
		return;
	}
	session->context.differ = !session->context.differ;
	for (int i = 0; i < VIEW_SCREENS; i++)
		session->news[i] = true;
	session->stale = true;
	/* On the timeline this affects only the sums: a lane is always shown whole. */
	view__notify(session, session->context.differ ? "only what differs" : "everything",
		     session->screen == VIEW_TIMELINE
			     ? " among the sums by name (b); lanes stay whole"
			     : NULL);
}

static void session_open_prompt(struct view_session *session, enum view_request request)
{
	const bool filter = request == VIEW_FILTER_REQUEST, write = request == VIEW_WRITE_REQUEST;

	if (filter && !view__ops(session)->filter && !view__ops(session)->grid) {
		view__notify(session, "this screen has no filter: / searches", NULL);
		return;
	}
	session->prompt = filter  ? VIEW_FILTER_PROMPT
			  : write ? VIEW_WRITE_PROMPT
				  : VIEW_SEARCH_PROMPT;
	session->input[0] = '\0';
	session->proposed = write;
	if (write)
		snprintf(session->input, sizeof(session->input), "%s.txt",
			 view__ops(session)->name);
}

/* Handle a request that the screen does not. */
static void session_general(struct view_session *session, enum view_request request)
{
	int screen = (int)session->screen;

	switch (request) {
	case VIEW_NEXT_SCREEN_REQUEST:
	case VIEW_PREVIOUS_SCREEN_REQUEST:
		do
			screen = view_next_choice(screen, VIEW_SCREENS, request);
		while (!view__listed(session, screen));
		view_session_show(session, (enum view_screen)screen);
		break;
	case VIEW_HELP_REQUEST:
		if (session->screen == VIEW_HELP_SCREEN)
			view_leave(session, false);
		else
			view_session_show(session, VIEW_HELP_SCREEN);
		break;
	case VIEW_SEARCH_REQUEST:
	case VIEW_FILTER_REQUEST:
	case VIEW_WRITE_REQUEST:
		session_open_prompt(session, request);
		break;
	case VIEW_SEARCH_NEXT_REQUEST:
	case VIEW_SEARCH_BACK_REQUEST:
		view_search(session, request == VIEW_SEARCH_NEXT_REQUEST);
		break;
	case VIEW_JOIN_REQUEST:
		view__join(session);
		break;
	case VIEW_RETURN_REQUEST:
		view__return(session);
		break;
	case VIEW_MARK_REQUEST:
		view__prompt_mark(session);
		break;
	case VIEW_MARKS_REQUEST:
		view__marks_list(session);
		break;
	case VIEW_QUERY_REQUEST:
		view__query(session);
		break;
	case VIEW_DIFFER_REQUEST:
		view_differ(session);
		break;
	case VIEW_RUNS_REQUEST:
		view__runs(session);
		break;
	case VIEW_FOLLOW_REQUEST:
		session_follow(session);
		break;
	case VIEW_PAUSE_REQUEST:
		view_pause(session);
		break;
	case VIEW_RELOAD_REQUEST:
		session->news[session->screen] = true;
		session->stale = true;
		break;
	case VIEW_REDRAW_REQUEST:
		session->redraw = true;
		break;
	case VIEW_BACK_REQUEST:
	case VIEW_CLOSE_REQUEST:
		view_leave(session, request == VIEW_CLOSE_REQUEST);
		break;
	case VIEW_QUIT_REQUEST:
		session->quit = true;
		break;
	default:
		/* A key of another screen: report where it applies. */
		view__notify(session, "not on this screen: ", view_request_info(request)->help);
		break;
	}
}

/* Return the screen of this key; VIEW_SCREENS: none. */
static enum view_screen view_screen_of_key(uint32_t key)
{
	for (int i = 0; i < VIEW_SCREENS; i++)
		if (view_screen((enum view_screen)i)->key == key && key)
			return (enum view_screen)i;
	return VIEW_SCREENS;
}

static void session_answered(struct view_session *session, const struct view_job *job);

/* Pass the request to the screen. */
static void session_request(struct view_session *session, enum view_request request)
{
	struct view_job *job = view__job(session, VIEW_REQUEST_JOB, session_answered);
	const char *group = view_request_info(request)->group;

	job->request = request;
	/* Moving and zooming use what the screen shows, and a burst of such keys needs no load in
	 * between. Other requests use the result of earlier keys. */
	job->due = session->stale && !view__db_closed(session) && strcmp(group, "Moving") != 0 &&
		   strcmp(group, "Zooming") != 0;
	if (job->due)
		session->stale = false;
	view__start(session);
}

/* Handle a key that is not text. */
static void session_request_key(struct view_session *session, uint32_t key)
{
	const enum view_request request = view_request_of(key);
	const enum view_screen screen = view_screen_of_key(key);

	if (screen != VIEW_SCREENS && request == VIEW_NONE) {
		view_session_show(session, screen);
		if (view__ops(session)->focus) {
			view__ops(session)->focus(session->state[screen]);
			session->stale = true;
		}
	} else if (request == VIEW_NONE) {
		if (key >= '0' && key <= '9')
			view__notify(session, "there is no such screen", NULL);
	} else if (!session->fresh[session->screen]) {
		session_general(session, request);
	} else {
		session_request(session, request);
	}
}

/* The screen has answered a request, a key or a click. */
static void session_answered(struct view_session *session, const struct view_job *job)
{
	if (job->err.status != ST_OK)
		return;
	if (job->answer == VIEW_LOAD)
		session->stale = true;
	else if (job->answer == VIEW_JOIN)
		view__join(session);
	else if (job->answer == VIEW_LEAD)
		view__enter(session);
	else if (job->answer == VIEW_COPY)
		view__copy(session);
	else if (job->answer == VIEW_UNHANDLED && job->kind == VIEW_REQUEST_JOB)
		session_general(session, job->request);
	else if (job->answer == VIEW_UNHANDLED && job->kind == VIEW_KEY_JOB)
		session_request_key(session, job->key);
}

/* ---- keys, and the queue of those typed during a job ----------------------------------------- */

static void view_handle_key(struct view_session *session, uint32_t key)
{
	session->context.message[0] = '\0';
	session->context.hits = 0;
	session->said_ns = 0;
	session->typing = false;
	if (session->prompt == VIEW_RUNS_PROMPT) {
		/* Movement keys move in the list of runs; typed text filters it. */
		if (key < VIEW_KEY_UP ||
		    !view_popup_request(&session->popup, view_request_of(key))) {
			view_prompt_key(session, key);
			if (session->prompt == VIEW_RUNS_PROMPT)
				view__runs_fill(session);
			else
				view__runs_leave(session);
		}
	} else if (session->prompt != VIEW_NO_PROMPT) {
		view_prompt_key(session, key);
	} else if (session->popup.kind != VIEW_NO_POPUP) {
		session_popup_key(session, key);
	} else if (view__is_typing(session)) {
		view__job(session, VIEW_KEY_JOB, session_answered)->key = key;
		session->typing = true;
		view__start(session);
	} else {
		session_request_key(session, key);
	}
}

/* Does @key cancel the running job? A request for something else does; typed text does not. */
static bool view_key_cancels(const struct view_session *session, uint32_t key)
{
	const enum view_request request = view_request_of(key);
	const enum view_screen screen = view_screen_of_key(key);

	if (session->typing)
		return request == VIEW_BACK_REQUEST;
	return request == VIEW_BACK_REQUEST || request == VIEW_CLOSE_REQUEST ||
	       request == VIEW_QUIT_REQUEST || request == VIEW_NEXT_SCREEN_REQUEST ||
	       request == VIEW_PREVIOUS_SCREEN_REQUEST || request == VIEW_HELP_REQUEST ||
	       (request == VIEW_NONE && screen != VIEW_SCREENS && screen != session->screen);
}

/* Load the shown screen before the key that follows its screen key is handled, unless that key
 * requests another screen anyway. */
static void session_load_before_key(struct view_session *session, uint32_t key)
{
	const bool types = view__ops(session)->typing;

	if (view_session_busy(session) || !session->stale || session->fresh[session->screen] ||
	    session->frame.too_small || session->prompt != VIEW_NO_PROMPT ||
	    session->popup.kind != VIEW_NO_POPUP)
		return;
	session->typing = types;
	if (types || !view_key_cancels(session, key))
		view__load(session);
}

/* Handle the keys queued while a job was running. */
static void session_handle_queued(struct view_session *session)
{
	while (session->queued > 0 && !view_session_busy(session) && !session->quit) {
		const uint32_t key = session->queue[0];

		session_load_before_key(session, key);
		if (view_session_busy(session))
			return;
		session->queued--;
		memmove(session->queue, session->queue + 1,
			(size_t)session->queued * sizeof(session->queue[0]));
		view_handle_key(session, key);
	}
}

void view_session_key(struct view_session *session, uint32_t key)
{
	view__finish_job(session, 0);
	session_handle_queued(session);
	session_load_before_key(session, key);
	if (!view_session_busy(session)) {
		view_handle_key(session, key);
		return;
	}
	if (view_key_cancels(session, key))
		view__cancel(session);
	if (view_request_of(key) != VIEW_BACK_REQUEST && session->queued < VIEW_QUEUE)
		session->queue[session->queued++] = key;
}

void view_session_draw(struct view_session *session)
{
	view__finish_job(session, 0);
	session_handle_queued(session);
	if (!view_session_busy(session) && session->stale && !session->frame.too_small)
		view__load(session);
	view__picture(session);
}

/* ---- clicks ---------------------------------------------------------------------------------- */

/* Pass a click in the body to the screen; false: outside, or the screen has no clicks. */
static bool view_click_body(struct view_session *session, int x, int y, bool dragged)
{
	const struct view_rect *body = &session->frame.body;
	struct view_job *job;

	session->pressed_x = x;
	session->pressed_y = y;
	if (x < body->x || x >= body->x + body->width || y < body->y ||
	    y >= body->y + body->height ||
	    (!view__ops(session)->click && !view__ops(session)->grid) ||
	    !session->fresh[session->screen])
		return false;
	job = view__job(session, VIEW_CLICK_JOB, session_answered);
	job->x = x - body->x;
	job->y = y - body->y;
	session->context.dragged = dragged;
	view__start(session);
	return true;
}

/* Does the screen's body receive mouse events now? */
static bool view_body_accepts_mouse(struct view_session *session)
{
	view__finish_job(session, 0);
	return !view_session_busy(session) && session->prompt == VIEW_NO_PROMPT &&
	       session->popup.kind == VIEW_NO_POPUP;
}

void view_session_release(struct view_session *session, int x, int y)
{
	const bool pressed = session->pressed;

	session->pressed = false;
	if (pressed && view_body_accepts_mouse(session) && view__ops(session)->drags &&
	    x != session->pressed_x)
		view_click_body(session, x, y, true);
}

void view_session_wheel(struct view_session *session, int x, int y, uint32_t key)
{
	if (view_body_accepts_mouse(session) && view__ops(session)->wheels) {
		view_click_body(session, x, y, false);
		key = key == VIEW_KEY_WHEEL_UP ? '+' : '-';
	}
	view_session_key(session, key);
}

void view_session_click(struct view_session *session, int x, int y)
{
	view__finish_job(session, 0);
	session->pressed = false;
	/* In a prompt a click must not type the keys of screens; the bar is the prompt's. */
	for (int i = 0; i < session->hit_count; i++)
		if ((session->prompt == VIEW_NO_PROMPT || y > 0) && session->hits[i].y == y &&
		    x >= session->hits[i].from && x < session->hits[i].to) {
			view_session_key(session, session->hits[i].key);
			return;
		}
	if (view_session_busy(session) ||
	    (session->prompt != VIEW_NO_PROMPT && session->prompt != VIEW_RUNS_PROMPT))
		return;
	session->context.message[0] = '\0';
	if (session->popup.kind == VIEW_NO_POPUP) {
		session->pressed = view_click_body(session, x, y, false);
	} else if (view_popup_hit(&session->popup, x, y) >= 0) {
		session->popup.at = view_popup_hit(&session->popup, x, y);
		session_popup_enter(session);
	} else {
		view__runs_leave(session);
	}
}
