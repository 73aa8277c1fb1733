/*
 * From screen to screen: what belongs to the thing under the cursor, the way back, and the query
 * behind a screen.
 *
 * Threading: the session's. Ownership: texts of the popup are its own.
 */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "viewer/view_session_internal.h"

#define POPUP_FRAME 6 /* columns of it beside a line */

bool view__here(const struct view_session *session, struct view_place *place)
{
	const struct view_screen_ops *ops = view__ops(session);

	view_place_clear(place);
	return session->fresh[session->screen] && ops->place &&
	       ops->place(session->state[session->screen], &session->context, place);
}

void view__join(struct view_session *session)
{
	struct view_place place;

	if (!view__here(session, &place)) {
		view__say(session, "nothing is selected here", NULL);
		return;
	}
	view__job(session, VIEW_JOIN_JOB)->place = place;
	view__start(session);
}

/* The screen of the rows of a view of the contract: where an insight on them leads to first. */
static const struct view_home {
	const char *views; /* names begin so */
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

	if (screen != (int)session->screen && ops->offers && ops->go &&
	    ops->offers(&session->joined, text, sizeof(text)))
		view_popup_add(&session->popup, screen, ops->title, text);
}

void view__enter(struct view_session *session)
{
	struct view_job *job;
	struct view_place place;

	(void)view__here(session, &place);
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

	view__remember(session);
	if (ops->offers && ops->go && ops->offers(&session->joined, text, sizeof(text)))
		view__visit(session, screen, &session->joined);
	else
		view_session_show(session, screen);
}

void view__join_list(struct view_session *session)
{
	const int home = view_home_of(&session->joined);

	view_popup_begin(&session->popup, VIEW_JOIN_POPUP, "Go to", "Enter goes, Esc stays");
	if (home >= 0)
		view_join_add(session, home);
	for (int i = 0; i < VIEW_SCREENS; i++)
		if (i != home && i != VIEW_INSIGHTS)
			view_join_add(session, i);
	/* Which there are is not known before they are all thought through. */
	view_join_add(session, VIEW_INSIGHTS);
	if (session->popup.count == 0) {
		view_popup_close(&session->popup);
		view__say(session, "no other screen knows more of this", NULL);
	}
}

void view__visit(struct view_session *session, enum view_screen screen,
		 const struct view_place *place)
{
	struct view_job *job;

	view_session_show(session, screen);
	/* Who goes somewhere stays there: following would lead on to the newest. */
	if (session->context.follow)
		view__say(session, "no longer following", NULL);
	session->context.follow = false;
	job = view__job(session, VIEW_GO_JOB);
	job->fresh = session->fresh[screen];
	job->place = *place;
	view__start(session);
}

void view__remember(struct view_session *session)
{
	if (session->history_count == VIEW_HISTORY) {
		memmove(session->history, session->history + 1,
			(VIEW_HISTORY - 1) * sizeof(session->history[0]));
		session->history_count--;
	}
	session->history[session->history_count].screen = session->screen;
	session->history[session->history_count].known =
		view__here(session, &session->history[session->history_count].place);
	session->history_count++;
}

void view__return(struct view_session *session)
{
	struct view_place here;
	int last;

	if (session->history_count == 0) {
		view__say(session, "there is no way back: o goes to other screens", NULL);
		return;
	}
	last = --session->history_count;
	view_session_show(session, session->history[last].screen);
	/* A screen that has stood still since is as it was left, which says more than its place. */
	if (session->history[last].known && view__ops(session)->go &&
	    !(view__here(session, &here) && view_place_same(&here, &session->history[last].place)))
		view__visit(session, session->history[last].screen, &session->history[last].place);
}

/* ---- the query behind a screen --------------------------------------------------------------- */

/* Lines of the statement, folded to the screen, so that what is copied from there is whole; a
 * comment would not be one in its second line. */
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

void view__query(struct view_session *session)
{
	const struct view_screen_ops *ops = view__ops(session);
	struct str text = {0};

	if (ops->query && session->fresh[session->screen])
		ops->query(session->state[session->screen], &session->context, &text);
	str_copy(session->statement, sizeof(session->statement),
		 text.failed ? "" : str_peek(&text));
	str_free(&text);
	if (!session->statement[0]) {
		view__say(session, "no query is behind this screen", NULL);
		return;
	}
	view_popup_begin(&session->popup, VIEW_QUERY_POPUP, "The query behind this screen",
			 "Enter runs the statement under the cursor, Esc closes");
	view_query_lines(session);
}

/* The statement that line @line of the text is part of. */
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

void view__popup_enter(struct view_session *session)
{
	const int kind = session->popup.kind, line = session->popup.at;
	const int tag = session->popup.count > 0 ? session->popup.items[line].tag : 0;
	struct view_place place;

	view_popup_close(&session->popup);
	if (kind == VIEW_MARKS_POPUP) {
		view__marks_go(session, tag);
	} else if (kind == VIEW_JOIN_POPUP) {
		view__remember(session);
		view__visit(session, (enum view_screen)tag, &session->joined);
	} else if (kind == VIEW_QUERY_POPUP && view_session_screen_of("sql") >= 0) {
		view_place_clear(&place);
		view_statement_at(session->statement, tag, place.sql);
		view__remember(session);
		view__visit(session, (enum view_screen)view_session_screen_of("sql"), &place);
	}
}

void view__popup_key(struct view_session *session, uint32_t key)
{
	const enum view_request request = view_request_of(key);

	if (request == VIEW_ENTER_REQUEST)
		view__popup_enter(session);
	else if (request == VIEW_QUIT_REQUEST)
		session->quit = true;
	else if (session->popup.kind == VIEW_MARKS_POPUP && (key == 'd' || key == VIEW_KEY_DELETE))
		view__marks_forget(session, session->popup.items[session->popup.at].tag);
	else if (!view_popup_request(&session->popup, request))
		view_popup_close(&session->popup);
}
