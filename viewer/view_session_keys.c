/*
 * Keys and clicks: to the prompt, the popup, the screen, and what is everywhere the same.
 *
 * Threading: the session's.
 */
#include <stdio.h>
#include <string.h>

#include "common/str.h"
#include "viewer/view_session_internal.h"

/* ---- the prompt ------------------------------------------------------------------------------ */

static void view_search(struct view_session *session, bool forward)
{
	struct view_job *job;

	if (session->search[0] == '\0') {
		view__say(session, "nothing to search for: / asks", NULL);
		return;
	}
	if (!session->fresh[session->screen])
		return;
	job = view__job(session, VIEW_SEARCH_JOB);
	str_copy(job->text, sizeof(job->text), session->search);
	job->forward = forward;
	view__start(session);
}

static void view_open_prompt(struct view_session *session, enum view_prompt_kind kind)
{
	session->prompt = kind;
	session->input[0] = '\0';
	if (kind == VIEW_WRITE_PROMPT)
		snprintf(session->input, sizeof(session->input), "%s.txt",
			 view__ops(session)->name);
}

static void view_filter(struct view_session *session)
{
	struct view_job *job = view__job(session, VIEW_FILTER_JOB);

	str_copy(job->text, sizeof(job->text), session->input);
	view__start(session);
}

static void view_end_prompt(struct view_session *session)
{
	const enum view_prompt_kind kind = session->prompt;

	session->prompt = VIEW_NO_PROMPT;
	if (kind == VIEW_SEARCH_PROMPT) {
		if (session->input[0])
			str_copy(session->search, sizeof(session->search), session->input);
		view_search(session, true);
	} else if (kind == VIEW_FILTER_PROMPT) {
		view_filter(session);
	} else if (kind == VIEW_MARK_PROMPT) {
		view__mark(session, session->input);
	} else if (session->input[0]) {
		view__write(session, session->input);
	}
}

static void view_prompt_key(struct view_session *session, uint32_t key)
{
	size_t length = strlen(session->input);
	char bytes[5];

	if (key == VIEW_KEY_ENTER || key == '\n') {
		view_end_prompt(session);
	} else if (key == VIEW_KEY_ESCAPE) {
		session->prompt = VIEW_NO_PROMPT;
	} else if (key == VIEW_KEY_BACKSPACE || key == '\b') {
		if (length == 0)
			session->prompt = VIEW_NO_PROMPT;
		/* A whole character: back over continuation bytes. */
		while (length > 0 && ((unsigned char)session->input[--length] & 0xc0) == 0x80)
			;
		session->input[length] = '\0';
	} else if (key == VIEW_CTRL('U')) {
		session->input[0] = '\0';
	} else if (key >= ' ' && key < 0x110000) {
		if (length + (size_t)view_encode(key, bytes) < sizeof(session->input))
			memcpy(session->input + length, bytes, strlen(bytes) + 1);
	}
}

/* ---- requests -------------------------------------------------------------------------------- */

static void view_step_screen(struct view_session *session, int by)
{
	view_session_show(session, (enum view_screen)(((int)session->screen + by + VIEW_SCREENS) %
						      VIEW_SCREENS));
}

static void view_leave(struct view_session *session, bool may_quit)
{
	if (session->screen == VIEW_HELP_SCREEN)
		view_session_show(session, session->before);
	else if (may_quit)
		session->quit = true;
}

/* Of what is over there is nothing to wait for. */
static void view_say_over(struct view_session *session, const char *rest)
{
	view__say(session,
		  session->context.target                ? "both runs have ended"
		  : session->source.state == VIEW_KILLED ? "the run has died"
							 : "the run is complete",
		  rest);
}

static void view_reload(struct view_session *session)
{
	session->news[session->screen] = true;
	session->stale = true;
}

/* What was paused while it ran goes on after its end, too. */
static void view_pause(struct view_session *session)
{
	if (!session->paused && view_session_over(session)) {
		view_say_over(session, ": nothing to pause");
		return;
	}
	session->paused = !session->paused;
	view__say(session, session->paused ? "paused: Z goes on" : "looking for news again", NULL);
}

static void view_follow(struct view_session *session)
{
	if (!session->context.follow && view_session_over(session)) {
		view_say_over(session, ": nothing to follow");
		return;
	}
	session->context.follow = !session->context.follow;
	session->stale = true;
	view__say(session, session->context.follow ? "following the newest" : "no longer following",
		  NULL);
}

static void view_differ(struct view_session *session)
{
	if (!session->context.target) {
		view__say(session, "one report alone: ipu-view SOURCE TARGET compares two", NULL);
		return;
	}
	session->context.differ = !session->context.differ;
	for (int i = 0; i < VIEW_SCREENS; i++)
		session->news[i] = true;
	session->stale = true;
	/* Of the timeline these are the sums alone: a lane is shown as it ran. */
	view__say(session, session->context.differ ? "only what differs" : "everything",
		  session->screen == VIEW_TIMELINE ? " among the sums by name (b); lanes stay whole"
						   : NULL);
}

static void view_help_or_back(struct view_session *session)
{
	if (session->screen == VIEW_HELP_SCREEN)
		view_leave(session, false);
	else
		view_session_show(session, VIEW_HELP_SCREEN);
}

static void view_ask(struct view_session *session, enum view_request request)
{
	if (request == VIEW_FILTER_REQUEST && !view__ops(session)->filter)
		view__say(session, "this screen has no filter: / searches", NULL);
	else
		view_open_prompt(session, request == VIEW_FILTER_REQUEST  ? VIEW_FILTER_PROMPT
					  : request == VIEW_WRITE_REQUEST ? VIEW_WRITE_PROMPT
									  : VIEW_SEARCH_PROMPT);
}

void view__general(struct view_session *session, enum view_request request)
{
	switch (request) {
	case VIEW_NEXT_SCREEN_REQUEST:
	case VIEW_PREVIOUS_SCREEN_REQUEST:
		view_step_screen(session, request == VIEW_NEXT_SCREEN_REQUEST ? 1 : -1);
		break;
	case VIEW_HELP_REQUEST:
		view_help_or_back(session);
		break;
	case VIEW_SEARCH_REQUEST:
	case VIEW_FILTER_REQUEST:
	case VIEW_WRITE_REQUEST:
		view_ask(session, request);
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
		view__mark_ask(session);
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
	case VIEW_FOLLOW_REQUEST:
		view_follow(session);
		break;
	case VIEW_PAUSE_REQUEST:
		view_pause(session);
		break;
	case VIEW_RELOAD_REQUEST:
		view_reload(session);
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
		/* A key of another screen: say where it belongs. */
		view__say(session, "not on this screen: ", view_request_info(request)->help);
		break;
	}
}

/* The screen whose key this is; VIEW_SCREENS: none. */
static enum view_screen view_screen_of_key(uint32_t key)
{
	for (int i = 0; i < VIEW_SCREENS; i++)
		if (view_screen((enum view_screen)i)->key == key && key)
			return (enum view_screen)i;
	return VIEW_SCREENS;
}

bool view__is_typing(const struct view_session *session)
{
	const struct view_screen_ops *ops = view__ops(session);

	return session->fresh[session->screen] && ops->typing &&
	       ops->typing(session->state[session->screen]);
}

void view__request_key(struct view_session *session, uint32_t key)
{
	const enum view_request request = view_request_of(key);
	const enum view_screen screen = view_screen_of_key(key);

	if (screen != VIEW_SCREENS && request == VIEW_NONE) {
		view_session_show(session, screen);
	} else if (request == VIEW_NONE) {
		if (key >= '0' && key <= '9')
			view__say(session, "there is no such screen", NULL);
	} else if (!session->fresh[session->screen]) {
		view__general(session, request);
	} else {
		view__request(session, request);
	}
}

static void view_take_key(struct view_session *session, uint32_t key)
{
	session->context.message[0] = '\0';
	session->said_ns = 0;
	session->typing = false;
	if (session->prompt != VIEW_NO_PROMPT) {
		view_prompt_key(session, key);
	} else if (session->popup.kind != VIEW_NO_POPUP) {
		view__popup_key(session, key);
	} else if (view__is_typing(session)) {
		view__job(session, VIEW_KEY_JOB)->key = key;
		session->typing = true;
		view__start(session);
	} else {
		view__request_key(session, key);
	}
}

/* Whoever asks for something else waits no longer for this; text that is typed asks for nothing. */
static bool view_ends_waiting(const struct view_session *session, uint32_t key)
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

/* What is typed or pasted right behind the key of a screen that takes text is text, too: the screen
 * is loaded before. */
static void view_await_text(struct view_session *session)
{
	if (view_session_busy(session) || !session->stale || session->fresh[session->screen] ||
	    !view__ops(session)->typing || session->prompt != VIEW_NO_PROMPT ||
	    session->popup.kind != VIEW_NO_POPUP)
		return;
	session->typing = true;
	view__load(session);
}

void view_session_key(struct view_session *session, uint32_t key)
{
	view__settle(session, 0);
	view__queued(session);
	view_await_text(session);
	if (!view_session_busy(session)) {
		view_take_key(session, key);
		return;
	}
	if (view_ends_waiting(session, key))
		view__cancel(session);
	if (view_request_of(key) != VIEW_BACK_REQUEST && session->queued < VIEW_QUEUE)
		session->queue[session->queued++] = key;
}

void view__queued(struct view_session *session)
{
	while (session->queued > 0 && !view_session_busy(session) && !session->quit) {
		const uint32_t key = session->queue[0];

		session->queued--;
		memmove(session->queue, session->queue + 1,
			(size_t)session->queued * sizeof(session->queue[0]));
		view_take_key(session, key);
		if (session->queued > 0)
			view_await_text(session);
	}
}

/* ---- clicks ---------------------------------------------------------------------------------- */

static void view_click_body(struct view_session *session, int x, int y)
{
	const struct view_rect *body = &session->frame.body;
	struct view_job *job;

	if (y < body->y || y >= body->y + body->height || !view__ops(session)->click ||
	    !session->fresh[session->screen])
		return;
	job = view__job(session, VIEW_CLICK_JOB);
	job->x = x - body->x;
	job->y = y - body->y;
	view__start(session);
}

void view_session_click(struct view_session *session, int x, int y)
{
	view__settle(session, 0);
	for (int i = 0; i < session->hit_count; i++)
		if (session->hits[i].y == y && x >= session->hits[i].from &&
		    x < session->hits[i].to) {
			view_session_key(session, session->hits[i].key);
			return;
		}
	if (view_session_busy(session) || session->prompt != VIEW_NO_PROMPT)
		return;
	session->context.message[0] = '\0';
	if (session->popup.kind == VIEW_NO_POPUP) {
		view_click_body(session, x, y);
	} else if (view_popup_hit(&session->popup, x, y) >= 0) {
		session->popup.at = view_popup_hit(&session->popup, x, y);
		view__popup_enter(session);
	} else {
		view_popup_close(&session->popup);
	}
}
