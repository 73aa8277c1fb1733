/*
 * What is on the screen and what a key does to it, without a terminal: keys in, a canvas out.
 *
 * The terminal (view_term.h), the tests and the batch mode drive the same session. One thread.
 */
#ifndef VIEW_SESSION_H
#define VIEW_SESSION_H

#include "reports/table/report_render.h"
#include "viewer/view_layout.h"
#include "viewer/view_screen.h"

#define VIEW_PROMPT_SIZE 256

enum view_prompt_kind {
	VIEW_NO_PROMPT,
	VIEW_SEARCH_PROMPT,
	VIEW_WRITE_PROMPT,
	VIEW_FILTER_PROMPT
};

struct view_session {
	struct view_source source;
	struct view_context context;
	struct view_canvas canvas;
	struct view_frame frame;
	void *state[VIEW_SCREENS];
	bool fresh[VIEW_SCREENS];         /* has been loaded at least once */
	bool news[VIEW_SCREENS];          /* the database has changed since its last load */
	uint64_t loaded_ns[VIEW_SCREENS]; /* clock_ns() of the last load */
	uint64_t load_ns[VIEW_SCREENS];   /* what it took */
	enum view_screen screen, before;  /* shown; where Help goes back to */
	uint64_t said_ns;                 /* when a tick first saw the message; 0: not yet */
	bool stale;                       /* load before the next draw */
	bool paused, quit, redraw;        /* redraw: the terminal must repaint all of it */

	enum view_prompt_kind prompt;
	char input[VIEW_PROMPT_SIZE]; /* UTF-8 */
	char search[VIEW_PROMPT_SIZE];
	struct err trouble; /* why the screen could not be loaded; ST_OK: it could */
};

/* Open @path; nothing is read before the first view_session_size(). On failure nothing is left. */
enum status view_session_open(struct view_session *session, const char *path, bool ascii,
			      struct err *err);
void view_session_close(struct view_session *session); /* accepts a zeroed session */

/* The screen is so large now. */
enum status view_session_size(struct view_session *session, int width, int height, struct err *err);

/* A key was pressed (view_keys.h). */
void view_session_key(struct view_session *session, uint32_t key);
void view_session_show(struct view_session *session, enum view_screen screen);

/* Time has passed: look for news of a run that is recording. True: draw again. */
bool view_session_tick(struct view_session *session, uint64_t now_ns);

/* Load what is stale, then draw the canvas. */
void view_session_draw(struct view_session *session);

/* The screen @screen as @format: text (drawn @width wide), CSV or JSON. ST_INVALID where the screen
 * has no rows. For the batch mode; and for a session, on a session of its own (view_session_write).
 */
enum status view_session_print(struct view_session *session, enum view_screen screen,
			       enum report_format format, int width, FILE *out, struct err *err);

/* Screens by name; -1: none. */
int view_session_screen_of(const char *name);

#endif /* VIEW_SESSION_H */
