/*
 * From screen to screen and back: what other screens know of what is under the cursor, the places
 * visited before, bookmarks, and the statements behind a screen.
 *
 * Threading: view_session.h; no job may be running. Ownership: none.
 */
#include "viewer/view_session_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"

/* ---- visits ---------------------------------------------------------------------------------- */

void view__visit(struct view_session *session, enum view_screen screen,
		 const struct view_place *place)
{
	view_session_show(session, screen);
	/* Going to a place ends following, which would move on to the newest. */
	if (session->context.follow)
		view__notify(session, "no longer following", NULL);
	session->context.follow = false;
	view__go_to(session, place);
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
		view__current_place(session, &session->history[session->history_count].place);
	session->history_count++;
}

void view__return(struct view_session *session)
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
		view__visit(session, session->history[last].screen, &session->history[last].place);
}

/* ---- to other screens ------------------------------------------------------------------------ */

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

static void view_join_add(struct view_session *session, int screen)
{
	const struct view_screen_ops *ops = view_screen((enum view_screen)screen);
	char text[VIEW_PLACE_NAME] = "";

	if (screen != (int)session->screen && !session->absent[screen] && ops->offers && ops->go &&
	    ops->offers(&session->joined, text, sizeof(text)))
		view_popup_add(&session->popup, screen, ops->title, text);
}

/* The place is complete: list the screens that know more of it. */
static void session_list_screens(struct view_session *session, const struct view_job *job)
{
	int home = -1;

	for (size_t i = 0; i < ARRAY_LEN(view_homes) && home < 0 && job->place.view[0]; i++)
		if (str_starts_with(job->place.view, view_homes[i].views))
			home = (int)view_homes[i].screen;
	session->joined = job->place;
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

void view__join(struct view_session *session)
{
	struct view_place place;

	if (!view__current_place(session, &place)) {
		view__notify(session, "nothing is selected here", NULL);
		return;
	}
	view__job(session, VIEW_JOIN_JOB, session_list_screens)->place = place;
	view__start(session);
}

/* The place is complete: go to the screen of context.leads, and there to the place if it has it. */
static void session_entered(struct view_session *session, const struct view_job *job)
{
	const enum view_screen screen = (enum view_screen)session->context.leads;
	const struct view_screen_ops *ops = view_screen(screen);
	char text[VIEW_PLACE_NAME];

	session->joined = job->place;
	view__remember(session);
	if (ops->offers && ops->go && ops->offers(&session->joined, text, sizeof(text)))
		view__visit(session, screen, &session->joined);
	else
		view_session_show(session, screen);
}

void view__enter(struct view_session *session)
{
	struct view_place place;

	(void)view__current_place(session, &place);
	view__job(session, VIEW_JOIN_JOB, session_entered)->place = place;
	view__start(session);
}

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

void view__prompt_mark(struct view_session *session)
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

void view__mark(struct view_session *session, const char *name)
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

void view__marks_list(struct view_session *session)
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

void view__marks_forget(struct view_session *session, int at)
{
	struct err err = {0};

	if (view_marks_remove(&session->marks, at, &err) != ST_OK)
		view__notify(session, "not forgotten: ", err.text);
	if (session->marks.count == 0) {
		view_popup_close(&session->popup);
		return;
	}
	view__marks_list(session);
	session->popup.at = min(at, session->popup.count - 1);
}

/* ---- the query behind a screen --------------------------------------------------------------- */

/* Keep the text for its popup, and free it; if memory is short nothing is kept. */
static void view_store_statement(struct view_session *session, struct str *text)
{
	str_copy(session->statement, sizeof(session->statement),
		 text->failed ? "" : str_peek(text));
	str_free(text);
}

/* Add the lines of the statement, folded to the screen's width, so that text copied from there is
 * complete. A comment is not folded: its second line would not be a comment. */
static void view_query_lines(struct view_session *session)
{
	const int room = session->frame.body.width - VIEW_POPUP_FRAME;
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
	view_store_statement(session, &text);
	if (!session->statement[0]) {
		view__notify(session, "no query is behind this screen", NULL);
		return;
	}
	view_popup_begin(&session->popup, VIEW_QUERY_POPUP, "The query behind this screen",
			 "Enter runs the statement under the cursor, Esc closes");
	view_query_lines(session);
}

void view__statement_at(const char *text, int line, char out[VIEW_PLACE_SQL])
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

void view__copy(struct view_session *session)
{
	struct str text = {0};

	view__ops(session)->copy(session->state[session->screen], &text);
	view_store_statement(session, &text);
	view_popup_begin(&session->popup, VIEW_COPY_POPUP, "Flags, behind ipu-train RUN",
			 "Esc closes");
	view_query_lines(session);
}
