/*
 * Keys and clicks: dispatched to the prompt, the popup or the screen; going from screen to screen
 * and back; bookmarks; and the requests common to all screens.
 *
 * Threading: view_session.h. Ownership: none.
 */
#include "viewer/view_session_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"

/* ---- bookmarks ------------------------------------------------------------------------------- */

/* Read the report's bookmarks on first use; false: failed, and a message says why. */
static bool view_marks_ready(struct view_session *session)
{
	struct err err = {0};

	if (!session->marks.read && !session->source.db) {
		view__notify(session, "the run is being closed: a moment", NULL);
		return false;
	}
	if (view_marks_read(&session->marks, session->source.db, &err) == ST_OK)
		return true;
	view__notify(session, "bookmarks: ", err.text);
	return false;
}

bool view__current_place(const struct view_session *session, struct view_place *place)
{
	const struct view_screen_ops *ops = view__ops(session);

	view_place_clear(place);
	return session->fresh[session->screen] && ops->place &&
	       ops->place(session->state[session->screen], place);
}

static void session_prompt_mark(struct view_session *session)
{
	const struct view_screen_ops *ops = view__ops(session);
	struct view_place place;
	char text[VIEW_PLACE_NAME] = "";

	if (!view__current_place(session, &place)) {
		view__notify(session, "nothing is selected here to be bookmarked", NULL);
		return;
	}
	if (ops->offers)
		ops->offers(&place, text, sizeof(text));
	session->prompt = VIEW_MARK_PROMPT;
	str_copy(session->input, min(sizeof(session->input), (size_t)VIEW_MARK_NAME), text);
	session->proposed = text[0] != '\0';
}

static void session_mark(struct view_session *session, const char *name)
{
	struct view_mark mark = {0};
	struct err err = {0};

	if (!view__current_place(session, &mark.place) || !view_marks_ready(session))
		return;
	str_copy(mark.name, sizeof(mark.name), name[0] ? name : view__ops(session)->title);
	str_copy(mark.screen, sizeof(mark.screen), view__ops(session)->name);
	if (view_marks_add(&session->marks, &mark, &err) == ST_OK)
		view__notify(session, "bookmarked (' lists them): ", mark.name);
	else
		view__notify(session, "not kept: ", err.text);
}

static void session_marks_list(struct view_session *session)
{
	if (!view_marks_ready(session))
		return;
	(void)view_marks_refresh(&session->marks, NULL); /* on failure list those already read */
	if (session->marks.count == 0) {
		view__notify(session, "no bookmarks yet: m makes one", NULL);
		return;
	}
	view_popup_begin(&session->popup, VIEW_MARKS_POPUP, "Bookmarks",
			 "Enter or a digit goes there, d forgets it, Esc stays");
	for (int i = 0; i < session->marks.count; i++) {
		const struct view_mark *mark = &session->marks.items[i];
		const int screen = view_session_screen_of(mark->screen);

		view_popup_add(&session->popup, i,
			       screen < 0 ? mark->screen
					  : view_screen((enum view_screen)screen)->title,
			       mark->name);
	}
}

static void session_visit(struct view_session *session, enum view_screen screen,
			  const struct view_place *place)
{
	struct view_job *job;

	view_session_show(session, screen);
	/* Going to a place ends following, which would move on to the newest. */
	if (session->context.follow)
		view__notify(session, "no longer following", NULL);
	session->context.follow = false;
	job = view__job(session, VIEW_GO_JOB);
	job->fresh = session->fresh[screen];
	job->place = *place;
	view__start(session);
}

/* Push the cursor's place on the history. */
static void session_push_history(struct view_session *session)
{
	if (session->history_count == VIEW_HISTORY) {
		memmove(session->history, session->history + 1,
			(VIEW_HISTORY - 1) * sizeof(session->history[0]));
		session->history_count--;
	}
	session->history[session->history_count].screen = session->screen;
	session->history[session->history_count].known =
		view__current_place(session, &session->history[session->history_count].place);
	session->history_count++;
}

static void session_marks_forget(struct view_session *session, int at)
{
	struct err err = {0};

	if (view_marks_remove(&session->marks, at, &err) != ST_OK)
		view__notify(session, "not forgotten: ", err.text);
	if (session->marks.count == 0) {
		view_popup_close(&session->popup);
		return;
	}
	session_marks_list(session);
	session->popup.at = min(at, session->popup.count - 1);
}

/* ---- from screen to screen ------------------------------------------------------------------- */

void view__join(struct view_session *session)
{
	struct view_place place;

	if (!view__current_place(session, &place)) {
		view__notify(session, "nothing is selected here", NULL);
		return;
	}
	view__job(session, VIEW_JOIN_JOB)->place = place;
	view__start(session);
}

/* The screen that shows the rows of a view of the contract: an insight on them goes there first. */
static const struct view_home {
	const char *views; /* prefix of their names */
	enum view_screen screen;
} view_homes[] = {
	{"tile_memory", VIEW_MEMORY},     {"variable", VIEW_MEMORY},
	{"liveness", VIEW_LIVENESS},      {"program", VIEW_PROGRAMS},
	{"compute_sets", VIEW_PROGRAMS},  {"layers", VIEW_OPERATIONS},
	{"operations", VIEW_OPERATIONS},  {"plans", VIEW_OPERATIONS},
	{"device_steps", VIEW_TIMELINE},  {"stage_", VIEW_TIMELINE},
	{"bubble", VIEW_TIMELINE},        {"execution", VIEW_TIMELINE},
	{"time_split", VIEW_TIMELINE},    {"span", VIEW_TIMELINE},
	{"tensor", VIEW_TENSORS},         {"captures", VIEW_TENSORS},
	{"metric", VIEW_METRICS},         {"health", VIEW_HEALTH},
	{"first_nonfinite", VIEW_HEALTH}, {"nonfinite_trail", VIEW_HEALTH},
};

static int view_home_of(const struct view_place *place)
{
	for (size_t i = 0; i < ARRAY_LEN(view_homes) && place->view[0]; i++)
		if (str_starts_with(place->view, view_homes[i].views))
			return (int)view_homes[i].screen;
	return -1;
}

static void view_join_add(struct view_session *session, int screen)
{
	const struct view_screen_ops *ops = view_screen((enum view_screen)screen);
	char text[VIEW_PLACE_NAME] = "";

	if (screen != (int)session->screen && !session->absent[screen] && ops->offers && ops->go &&
	    ops->offers(&session->joined, text, sizeof(text)))
		view_popup_add(&session->popup, screen, ops->title, text);
}

void view__enter(struct view_session *session)
{
	struct view_job *job;
	struct view_place place;

	(void)view__current_place(session, &place);
	job = view__job(session, VIEW_JOIN_JOB);
	job->place = place;
	job->lead = true;
	view__start(session);
}

void view__entered(struct view_session *session)
{
	const enum view_screen screen = (enum view_screen)session->context.leads;
	const struct view_screen_ops *ops = view_screen(screen);
	char text[VIEW_PLACE_NAME];

	session_push_history(session);
	if (ops->offers && ops->go && ops->offers(&session->joined, text, sizeof(text)))
		session_visit(session, screen, &session->joined);
	else
		view_session_show(session, screen);
}

void view__join_list(struct view_session *session)
{
	const int home = view_home_of(&session->joined);

	view_popup_begin(&session->popup, VIEW_JOIN_POPUP, "Go to",
			 "Enter or a digit goes, Esc stays");
	if (home >= 0)
		view_join_add(session, home);
	for (int i = 0; i < VIEW_SCREENS; i++)
		if (i != home && i != VIEW_INSIGHTS)
			view_join_add(session, i);
	/* Insights offers every place, since it cannot know before its rules have run: list it
	 * last. */
	view_join_add(session, VIEW_INSIGHTS);
	if (session->popup.count == 0) {
		view_popup_close(&session->popup);
		view__notify(session, "no other screen knows more of this", NULL);
	}
}

static void session_return(struct view_session *session)
{
	struct view_place here;
	int last;

	if (session->history_count == 0) {
		view__notify(session, "there is no way back: o goes to other screens", NULL);
		return;
	}
	last = --session->history_count;
	view_session_show(session, session->history[last].screen);
	/* A screen still at that place keeps its state, which holds more than the place. */
	if (session->history[last].known && view__ops(session)->go &&
	    !(view__current_place(session, &here) &&
	      view_place_same(&here, &session->history[last].place)))
		session_visit(session, session->history[last].screen,
			      &session->history[last].place);
}

/* ---- the query behind a screen --------------------------------------------------------------- */

#define POPUP_FRAME 6 /* columns of the frame beside a line */

/* Add the lines of the statement, folded to the screen's width, so that text copied from there is
 * complete. A comment is not folded: its second line would not be a comment. */
static void view_query_lines(struct view_session *session)
{
	const int room = session->frame.body.width - POPUP_FRAME;
	char part[VIEW_PLACE_SQL];
	int line = 0;
	bool begins = true;

	for (const char *at = session->statement; *at;) {
		const size_t length = begins && strncmp(at, "--", 2) == 0
					      ? strcspn(at, "\n")
					      : view_text_fold(at, max(room, 20));

		snprintf(part, sizeof(part), "%.*s", (int)length, at);
		view_popup_add(&session->popup, line, NULL, part);
		at += length;
		at += strspn(at, " ");
		begins = *at == '\n';
		line += begins;
		at += begins;
	}
}

void view__copy(struct view_session *session)
{
	struct str text = {0};

	view__ops(session)->copy(session->state[session->screen], &text);
	str_copy(session->statement, sizeof(session->statement),
		 text.failed ? "" : str_peek(&text));
	str_free(&text);
	view_popup_begin(&session->popup, VIEW_COPY_POPUP, "Flags, behind ipu-train RUN",
			 "Esc closes");
	view_query_lines(session);
}

static void session_query(struct view_session *session)
{
	const struct view_screen_ops *ops = view__ops(session);
	struct str text = {0};

	if (ops->query && session->fresh[session->screen])
		ops->query(session->state[session->screen], &session->context, &text);
	str_copy(session->statement, sizeof(session->statement),
		 text.failed ? "" : str_peek(&text));
	str_free(&text);
	if (!session->statement[0]) {
		view__notify(session, "no query is behind this screen", NULL);
		return;
	}
	view_popup_begin(&session->popup, VIEW_QUERY_POPUP, "The query behind this screen",
			 "Enter runs the statement under the cursor, Esc closes");
	view_query_lines(session);
}

/* Return the statement that contains line @line of @text. */
static void view_statement_at(const char *text, int line, char out[VIEW_PLACE_SQL])
{
	const char *begin = text, *end;
	int passed = 0;

	for (const char *c = text; *c && passed < line; c++) {
		if (*c != '\n')
			continue;
		passed++;
		if (c > text && c[-1] == ';')
			begin = c + 1;
	}
	end = strstr(begin, ";\n");
	snprintf(out, VIEW_PLACE_SQL, "%.*s", end ? (int)(end - begin) : (int)strlen(begin), begin);
}

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
		session_push_history(session);
		session_visit(session, (enum view_screen)screen, &mark->place);
	} else if (kind == VIEW_JOIN_POPUP) {
		session_push_history(session);
		session_visit(session, (enum view_screen)tag, &session->joined);
	} else if (kind == VIEW_QUERY_POPUP && view_session_screen_of("sql") >= 0) {
		view_place_clear(&place);
		view_statement_at(session->statement, tag, place.sql);
		session_push_history(session);
		session_visit(session, (enum view_screen)view_session_screen_of("sql"), &place);
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
		session_marks_forget(session, session->popup.items[session->popup.at].tag);
	} else if (!view_popup_request(&session->popup, request)) {
		view_popup_close(&session->popup);
	}
}

/* ---- the prompt ------------------------------------------------------------------------------ */

static void view_search(struct view_session *session, bool forward)
{
	struct view_job *job;

	if (session->search[0] == '\0') {
		view__notify(session, "nothing to search for: / asks", NULL);
		return;
	}
	if (!session->fresh[session->screen])
		return;
	job = view__job(session, VIEW_SEARCH_JOB);
	str_copy(job->text, sizeof(job->text), session->search);
	job->forward = forward;
	view__start(session);
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
		struct view_job *job = view__job(session, VIEW_FILTER_JOB);

		str_copy(job->text, sizeof(job->text), session->input);
		view__start(session);
	} else if (kind == VIEW_MARK_PROMPT) {
		session_mark(session, session->input);
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

void view__general(struct view_session *session, enum view_request request)
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
		session_return(session);
		break;
	case VIEW_MARK_REQUEST:
		session_prompt_mark(session);
		break;
	case VIEW_MARKS_REQUEST:
		session_marks_list(session);
		break;
	case VIEW_QUERY_REQUEST:
		session_query(session);
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
		if (view__ops(session)->focus) {
			view__ops(session)->focus(session->state[screen]);
			session->stale = true;
		}
	} else if (request == VIEW_NONE) {
		if (key >= '0' && key <= '9')
			view__notify(session, "there is no such screen", NULL);
	} else if (!session->fresh[session->screen]) {
		view__general(session, request);
	} else {
		view__request(session, request);
	}
}

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
		view__job(session, VIEW_KEY_JOB)->key = key;
		session->typing = true;
		view__start(session);
	} else {
		view__request_key(session, key);
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

void view__queued(struct view_session *session)
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
	view__queued(session);
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
	job = view__job(session, VIEW_CLICK_JOB);
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
