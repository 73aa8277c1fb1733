/*
 * The session, shared by the files that run its jobs, take its keys, draw and write it.
 */
#ifndef VIEW_SESSION_INTERNAL_H
#define VIEW_SESSION_INTERNAL_H

#include "viewer/view_session.h"

static inline const struct view_screen_ops *view__ops(const struct view_session *session)
{
	return view_screen(session->screen);
}

/* view_session.c */
/* Show @text and, where it is not NULL, @rest after it; what does not fit is cut.
 * No job may be under way. */
void view__say(struct view_session *session, const char *text, const char *rest);
/* A job of the shown screen, empty but for its kind and what its load would be. None may be under
 * way. */
struct view_job *view__job(struct view_session *session, enum view_job_kind kind);
/* Run it, or have it run. */
void view__start(struct view_session *session);
/* Has the job ended meanwhile? Then do what follows from it. */
void view__finish_job(struct view_session *session, uint64_t wait_ns);
/* Nobody waits for the job any more. */
void view__cancel(struct view_session *session);
/* Is a database let go of? */
bool view__away(const struct view_session *session);
void view__load(struct view_session *session);
void view__request(struct view_session *session, enum view_request request); /* of its screen */

/* view_session_draw.c */
/* Draw the canvas as things are; nothing is loaded. */
void view__picture(struct view_session *session);

/* view_session_keys.c */
/* What a screen does not handle itself. */
void view__general(struct view_session *session, enum view_request request);
/* Does the screen take keys as text just now? No job may be under way. */
bool view__is_typing(const struct view_session *session);
/* A key that is no text. */
void view__request_key(struct view_session *session, uint32_t key);
/* Keys that came while a job was under way. */
void view__queued(struct view_session *session);
/* A text of the screen to be copied. */
void view__copy(struct view_session *session);
/* Places on other screens, and back. */
void view__join(struct view_session *session);      /* ask what there is */
void view__enter(struct view_session *session);     /* ... to go on to context.leads */
void view__entered(struct view_session *session);   /* the job is done: go */
void view__join_list(struct view_session *session); /* the job is done: offer it */

/* Ask where the cursor is; false: nothing is there, or it cannot be said. */
bool view__here(const struct view_session *session, struct view_place *place);

/* view_session_runs.c */
void view__runs(struct view_session *session);       /* ask which there are */
void view__runs_list(struct view_session *session);  /* the job is done: offer them */
void view__runs_fill(struct view_session *session);  /* those that match what is typed */
void view__runs_enter(struct view_session *session); /* take the one under the cursor */
void view__runs_leave(struct view_session *session);

/* view_session_write.c */
void view__write(struct view_session *session, const char *path);
void view__written(struct view_session *session); /* the job is done: its rows to the file */

#endif /* VIEW_SESSION_INTERNAL_H */
