/*
 * Bookmarks in the session: `m` makes one, ' lists them.
 *
 * Threading: the session's; never while a job is under way.
 */
#include <stdio.h>
#include <string.h>

#include "common/str.h"
#include "viewer/view_session_internal.h"

/* The report's bookmarks, read when first asked for; false: said why not. */
static bool view_marks_ready(struct view_session *session)
{
	struct err err = {0};

	if (!session->marks.read && !session->source.db) {
		view__say(session, "the run is being closed: a moment", NULL);
		return false;
	}
	if (view_marks_read(&session->marks, session->source.db, &err) == ST_OK)
		return true;
	view__say(session, "bookmarks: ", err.text);
	return false;
}

void view__mark_ask(struct view_session *session)
{
	const struct view_screen_ops *ops = view__ops(session);
	struct view_place place;
	char text[VIEW_PLACE_NAME] = "";

	if (!view__here(session, &place)) {
		view__say(session, "nothing is selected here to be bookmarked", NULL);
		return;
	}
	if (ops->offers)
		ops->offers(&place, text, sizeof(text));
	session->prompt = VIEW_MARK_PROMPT;
	snprintf(session->input, sizeof(session->input), "%.*s", VIEW_MARK_NAME - 1, text);
}

void view__mark(struct view_session *session, const char *name)
{
	struct view_mark mark = {0};
	struct err err = {0};

	if (!view__here(session, &mark.place) || !view_marks_ready(session))
		return;
	str_copy(mark.name, sizeof(mark.name), name[0] ? name : view__ops(session)->title);
	str_copy(mark.screen, sizeof(mark.screen), view__ops(session)->name);
	if (view_marks_add(&session->marks, &mark, &err) == ST_OK)
		view__say(session, "bookmarked (' lists them): ", mark.name);
	else
		view__say(session, "not kept: ", err.text);
}

void view__marks_list(struct view_session *session)
{
	if (!view_marks_ready(session))
		return;
	(void)view_marks_refresh(&session->marks, NULL); /* else those that we know */
	if (session->marks.count == 0) {
		view__say(session, "no bookmarks yet: m makes one", NULL);
		return;
	}
	view_popup_begin(&session->popup, VIEW_MARKS_POPUP, "Bookmarks",
			 "Enter goes there, d forgets it, Esc stays");
	for (int i = 0; i < session->marks.count; i++) {
		const struct view_mark *mark = &session->marks.items[i];
		const int screen = view_session_screen_of(mark->screen);

		view_popup_add(&session->popup, i,
			       screen < 0 ? mark->screen
					  : view_screen((enum view_screen)screen)->title,
			       mark->name);
	}
}

void view__marks_go(struct view_session *session, int at)
{
	const struct view_mark *mark = &session->marks.items[at];
	const int screen = view_session_screen_of(mark->screen);

	if (screen < 0 || !view_screen((enum view_screen)screen)->go) {
		view__say(session, "there is no such screen: ", mark->screen);
		return;
	}
	view__remember(session);
	view__visit(session, (enum view_screen)screen, &mark->place);
}

void view__marks_forget(struct view_session *session, int at)
{
	struct err err = {0};

	if (view_marks_remove(&session->marks, at, &err) != ST_OK)
		view__say(session, "not forgotten: ", err.text);
	if (session->marks.count > 0)
		view__marks_list(session);
	else
		view_popup_close(&session->popup);
}
