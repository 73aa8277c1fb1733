/*
 * The viewer without a terminal: keys in, a canvas out.
 *
 * The terminal (view_term.c), the tests and the batch mode drive the same session. One thread;
 * after view_session_background() the calls that may take long run on a second one (view_screen.h
 * lists them), and the first never waits longer than one frame may take.
 */
#ifndef VIEW_SESSION_H
#define VIEW_SESSION_H

#include "common/fs.h"
#include "reports/table/report_render.h"
#include "viewer/draw/view_canvas.h"
#include "viewer/view_keys.h"
#include "viewer/view_layout.h"
#include "viewer/view_place.h"
#include "viewer/view_popup.h"
#include "viewer/view_screen.h"
#include "viewer/view_worker.h"

#define VIEW_QUEUE   256 /* most keys queued while a job runs */
#define VIEW_HISTORY 32
#define VIEW_HITS    64

enum view_prompt_kind {
	VIEW_NO_PROMPT,
	VIEW_SEARCH_PROMPT,
	VIEW_WRITE_PROMPT,
	VIEW_FILTER_PROMPT,
	VIEW_MARK_PROMPT,
	VIEW_RUNS_PROMPT /* with its popup */
};

enum view_popup_kind {
	VIEW_NO_POPUP,
	VIEW_JOIN_POPUP, /* tag: the screen to go to */
	VIEW_QUERY_POPUP,
	VIEW_COPY_POPUP,
	VIEW_MARKS_POPUP, /* tag: the bookmark */
	VIEW_RUNS_POPUP   /* tag: the run, or one of view_session_runs.c */
};

/*
 * Bookmarks of a report: places to return to, kept between sessions.
 *
 * Nothing is written to the report: the file is bookmarks/RUN.json (view_config.h), RUN being the
 * start time, process and rank of the run, so that a copy of the report has the same bookmarks.
 * Each change starts from the file's current content, so that viewers of one run share them. The
 * struct owns its items.
 */
#define VIEW_MARKS_MOST 200
#define VIEW_MARK_NAME  96

struct view_mark {
	char name[VIEW_MARK_NAME];
	char screen[16]; /* by name */
	struct view_place place;
	bool unkept; /* not in the file */
};

struct view_marks {
	struct view_mark *items; /* oldest first */
	int count;
	bool read;
	char path[FS_PATH_SIZE]; /* "": no file; the bookmarks last as long as this process */
};

/* Read the bookmarks of the report in @db, once; a missing file has none. Refresh adds what other
 * viewers changed since; if that fails, the bookmarks stay as they were. */
enum status view_marks_read(struct view_marks *marks, struct prof_db *db, struct err *err);
enum status view_marks_refresh(struct view_marks *marks, struct err *err);
void view_marks_free(struct view_marks *marks); /* accepts a zeroed struct */

/* Add or remove one, on top of what other viewers changed meanwhile, and write the file. ST_LIMIT:
 * VIEW_MARKS_MOST is reached. On any other failure the file is unchanged; an added bookmark lasts
 * as long as this process and is saved with the next one; one to be removed stays. */
enum status view_marks_add(struct view_marks *marks, const struct view_mark *mark, struct err *err);
enum status view_marks_remove(struct view_marks *marks, int at, struct err *err);

/* A region of a row where a click is the same as a key. */
struct view_hit {
	int y, from, to;
	uint32_t key;
};

struct view_session;

/* Handle the result of a job that has ended. This may start the next job. */
typedef void (*view_job_ended)(struct view_session *session, const struct view_job *job);

struct view_session {
	struct view_source source, target;
	struct view_context context;
	struct view_canvas canvas;
	enum view_theme theme; /* of the terminal, and of SVG files */
	struct view_frame frame;
	void *state[VIEW_SCREENS];
	bool fresh[VIEW_SCREENS];         /* has been loaded at least once */
	bool news[VIEW_SCREENS];          /* the database has changed since its last load */
	bool absent[VIEW_SCREENS];        /* the shown runs have nothing for it (ops->has) */
	uint64_t loaded_ns[VIEW_SCREENS]; /* clock_ns() of the last load */
	uint64_t load_ns[VIEW_SCREENS];   /* duration of the last load */
	enum view_screen screen, before;  /* shown; the screen to return to from Help */
	uint64_t said_ns;                 /* when a tick first saw the message; 0: not yet */
	bool stale;                       /* load before the next draw */
	bool paused, quit, redraw;        /* redraw: the terminal must repaint all of it */

	enum view_prompt_kind prompt;
	char input[VIEW_PROMPT_SIZE]; /* UTF-8 */
	bool proposed;                /* the input is a proposal: typing replaces it */
	char search[VIEW_PROMPT_SIZE];
	struct err trouble; /* why the last load failed; ST_OK: it did not */

	struct view_popup popup;
	char statement[4 * VIEW_PLACE_SQL]; /* text of the query popup */
	struct view_place joined;           /* subject of the popup of places */
	struct {
		enum view_screen screen;
		bool known; /* `place` is the cursor's */
		struct view_place place;
	} history[VIEW_HISTORY];
	int history_count;
	struct view_marks marks;
	struct view_runs runs; /* listed by their popup */

	/* Jobs. A running job owns the states, the context and the databases. */
	struct view_worker *worker; /* NULL: jobs run on the calling thread */
	struct view_job job;        /* kind VIEW_NO_JOB: none is running */
	view_job_ended job_ended;   /* NULL: a load, which has no more to do */
	enum view_screen job_screen;
	uint64_t job_since_ns;
	char job_path[VIEW_PROMPT_SIZE]; /* the file of a write job */
	uint32_t queue[VIEW_QUEUE];      /* keys pressed while the job runs */
	int queued;
	bool typing; /* the job handles a key that was typed as text */

	enum view_screen drawn; /* the screen whose body was drawn last */
	bool undrawn;           /* loaded data has not been drawn yet */
	unsigned offering
		[VIEW_SCREENS]; /* bits of screens that know more of what its cursor is on */
	struct view_hit hits[VIEW_HITS]; /* of the last drawing */
	int hit_count;
	int pressed_x, pressed_y;         /* the last click in a body */
	bool pressed;                     /* its button has not been released yet */
	bool state_shown;                 /* the title has room for the state of the run */
	const struct view_bar_key *bar;   /* replaces the screen's keys; NULL: does not */
	const char *words[VIEW_REQUESTS]; /* what the keys do on the screen; "": nothing */
};

/* Open @path and, for a comparison, @target (NULL: none); nothing is read before the first
 * view_session_size(). On failure everything is released. */
enum status view_session_open(struct view_session *session, const char *path, const char *target,
			      bool ascii, struct err *err);
void view_session_close(struct view_session *session); /* accepts a zeroed session */

/* Run jobs on a thread of their own from now on; @wake_fd as in view_worker_start(). */
enum status view_session_background(struct view_session *session, int wake_fd, struct err *err);

/* Stop the thread and cancel a running job. Call this before @wake_fd is closed. */
void view_session_foreground(struct view_session *session);

/* Set the size of the screen. */
enum status view_session_size(struct view_session *session, int width, int height, struct err *err);

/* Handle a key (view_keys.h), or a click on the cell @x, @y. */
void view_session_key(struct view_session *session, uint32_t key);
void view_session_click(struct view_session *session, int x, int y);
/* The button was released at @x, @y; ignored if it was not pressed in a body. */
void view_session_release(struct view_session *session, int x, int y);
/* The wheel was turned over @x, @y: VIEW_KEY_WHEEL_UP or _DOWN. */
void view_session_wheel(struct view_session *session, int x, int y, uint32_t key);
void view_session_show(struct view_session *session, enum view_screen screen);

/* Have both reports ended, so that no news will come? */
bool view_session_over(const struct view_session *session);

/* Handle the passing of time: poll a run that is recording. True: draw again. */
bool view_session_tick(struct view_session *session, uint64_t now_ns);

/* Load what is stale, then draw the canvas. While a job runs the body stays as it is. */
void view_session_draw(struct view_session *session);
bool view_session_busy(const struct view_session *session);

/*
 * Print @screen as @format: text (drawn @width wide), CSV or JSON. ST_INVALID: the screen has no
 * rows. For the batch mode; an interactive session uses a second session (view_session_write).
 */
enum status view_session_print(struct view_session *session, enum view_screen screen,
			       enum report_format format, int width, FILE *out, struct err *err);

/* The same as an SVG picture (view_svg_write()) with colours. */
enum status view_session_print_svg(struct view_session *session, enum view_screen screen, int width,
				   FILE *out, struct err *err);

/* Look up a screen by name; -1: none. */
int view_session_screen_of(const char *name);

#endif /* VIEW_SESSION_H */
