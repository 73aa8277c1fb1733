/*
 * The session, shared by the files that run its jobs, go from place to place, handle keys, draw and
 * write.
 */
#ifndef VIEW_SESSION_INTERNAL_H
#define VIEW_SESSION_INTERNAL_H

#include "viewer/view_session.h"

static inline const struct view_screen_ops *view__ops(const struct view_session *session)
{
	return view_screen(session->screen);
}

/* The table of the shown screen; NULL: it has none now. */
static inline struct view_grid *view__grid(const struct view_session *session)
{
	const struct view_screen_ops *ops = view__ops(session);

	return ops->grid ? ops->grid(session->state[session->screen]) : NULL;
}

/* view_session.c */
/* Set the message to @text and, if it is not NULL, @rest; what does not fit is cut. No job may be
 * running. */
void view__notify(struct view_session *session, const char *text, const char *rest);
/* Prepare a job of the shown screen: its kind, whether a load in it must read news, and who handles
 * its result. No job may be running. */
struct view_job *view__job(struct view_session *session, enum view_job_kind kind,
			   view_job_ended ended);
/* Start the job: on the worker, or here if there is none. */
void view__start(struct view_session *session);
/* If the job ends within @wait_ns, handle its result. */
void view__finish_job(struct view_session *session, uint64_t wait_ns);
/* Cancel the job. */
void view__cancel(struct view_session *session);
/* Is a database closed, so that its writer can finish the file? */
bool view__db_closed(const struct view_session *session);
void view__load(struct view_session *session);
/* Ask the shown runs which screens they have something for. No job may be running. On failure
 * (ST_NOMEM) the screens not yet asked for are as before. */
enum status view__poll_screens(struct view_session *session, struct err *err);
/* Is the screen listed? The shown one is, whatever the runs have. */
static inline bool view__listed(const struct view_session *session, int screen)
{
	return !session->absent[screen] || screen == (int)session->screen;
}
/* Get the place under the cursor; false: nothing is there, or the screen has no places. */
bool view__current_place(const struct view_session *session, struct view_place *place);
/* Move the shown screen's cursor to @place. */
void view__go_to(struct view_session *session, const struct view_place *place);
/* Does the screen accept keys as text? No job may be running. */
bool view__is_typing(const struct view_session *session);

/* view_session_frame.c */
/* Draw the canvas from the current state; nothing is loaded. */
void view__picture(struct view_session *session);

/* view_session_places.c */
/* Show @place on @screen. */
void view__visit(struct view_session *session, enum view_screen screen,
		 const struct view_place *place);
void view__remember(struct view_session *session); /* push the cursor's place on the history */
void view__return(struct view_session *session);   /* to the last place of the history */
void view__join(struct view_session *session);     /* list what other screens can show */
void view__enter(struct view_session *session);    /* ... or go to context.leads */
/* Bookmarks: ask for a name, add one, list them, remove one. */
void view__prompt_mark(struct view_session *session);
void view__mark(struct view_session *session, const char *name);
void view__marks_list(struct view_session *session);
void view__marks_forget(struct view_session *session, int at);
/* Show the statements behind the screen. */
void view__query(struct view_session *session);
/* Return the statement that contains line @line of @text. */
void view__statement_at(const char *text, int line, char out[VIEW_PLACE_SQL]);
/* Show the text of the screen to be copied. */
void view__copy(struct view_session *session);

/* view_session_runs.c */
void view__runs(struct view_session *session);       /* find the runs, and list them */
void view__runs_fill(struct view_session *session);  /* list those that match the input */
void view__runs_enter(struct view_session *session); /* choose the one under the cursor */
void view__runs_leave(struct view_session *session);

/* view_session_write.c */
void view__write(struct view_session *session, const char *path);

#endif /* VIEW_SESSION_INTERNAL_H */
