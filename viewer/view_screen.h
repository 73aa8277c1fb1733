/*
 * What a screen is: one row of functions. The session (view_session.h) does the rest.
 *
 * A screen loads what its body shows into its own state: on request, on a change of size and on
 * news from a run that is recording. draw() only draws: no query, no allocation, no change of
 * state. A screen hands back what it does not handle.
 *
 * A screen that has a table (ops->grid) leaves to the session what all tables do: keys, search,
 * filter, clicks, status, and rows for files. It writes a function of its own only for what it does
 * differently.
 *
 * Threading: init, fini, draw, word, status, height, place, offers, focus and query run on the
 * terminal's thread; what may take long (load, request, search, filter, type, go, table, click)
 * runs on the session's worker, one call at a time and never while one of the others runs; grid is
 * called by both. A long call checks view_cancelled() between its queries and returns
 * ST_INTERRUPTED; the session interrupts the running query, which returns the same.
 */
#ifndef VIEW_SCREEN_H
#define VIEW_SCREEN_H

#include <stdatomic.h>

#include "common/str.h"
#include "reports/table/report_table.h"
#include "viewer/draw/view_canvas.h"
#include "viewer/view_keys.h"
#include "viewer/view_place.h"
#include "viewer/view_source.h"

#define VIEW_MESSAGE_SIZE 256

/* The tensor that the screen Tensors shows first. */
struct view_opening {
	const char *key; /* NULL: the list */
	int page; /* enum view_tensor_page; -1: the values if there are captures, else the curve */
	int sample, head; /* of its values: index in the first axis, and in the second */
	int64_t step;     /* step or weight update of its values; IPS_NULL: the last */
};

struct view_context {
	struct view_source *source;      /* the report; when comparing, the Source */
	struct view_source *target;      /* NULL: no comparison */
	struct view_rect body;           /* the screen's area; load() is for this size */
	int runs;                        /* incremented when other runs are shown */
	bool follow;                     /* keep the newest in view */
	bool ranged;                     /* start with the times below instead of all */
	int64_t from_ns, to_ns;          /* on the timeline's first clock */
	bool more;                       /* set by a load that is incomplete: load again */
	bool whole;                      /* to a file: all of it, nothing selected */
	bool differ;                     /* comparing: only what differs */
	bool dragged;                    /* a click: the button was pressed at the last one */
	int leads;                       /* enum view_screen: the destination of VIEW_LEAD */
	int about;                       /* enum view_screen: the screen that the help describes */
	const char *query;               /* the first statement of SQL, or NULL */
	struct view_opening opening;     /* the first tensor of Tensors */
	char message[VIEW_MESSAGE_SIZE]; /* a screen's answer to a request; shown once */
	int64_t hit, hits;               /* of a search: the number of the match, from 1, and their
					    count; 0: not counted */
	atomic_bool cancel;              /* the user no longer waits */
	atomic_bool closing;             /* with it: because the run's writer waits for the file */
	const struct view_context *of;   /* the context this is a part of; or NULL */
};

/* Is the work no longer wanted? Cheap. */
static inline bool view_cancelled(const struct view_context *context)
{
	return atomic_load_explicit(&(context->of ? context->of : context)->cancel,
				    memory_order_relaxed);
}

/* Return a context for work on the target alone, as a part of the work for @context. */
static inline struct view_context view_context_of_target(const struct view_context *context)
{
	return (struct view_context){.source = context->target,
				     .body = context->body,
				     .follow = context->follow,
				     .whole = context->whole,
				     .of = context};
}

/* Set the message to @text and, if it is not NULL, @rest. If it is too long, the middle is cut: the
 * reason is at the end. */
void view_message(struct view_context *context, const char *text, const char *rest);
void view_messagef(struct view_context *context, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Append to the text in @out, of @size bytes; what does not fit is cut. */
void view_append(char *out, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

enum view_answer {
	VIEW_UNHANDLED, /* not for this screen */
	VIEW_DRAW,      /* draw again */
	VIEW_LOAD,      /* load, then draw */
	VIEW_JOIN,      /* show on other screens what is under the cursor: the list of them */
	VIEW_COPY,      /* show the text of ops->copy(), to be copied */
	VIEW_LEAD       /* show the screen context->leads, with what is under the cursor */
};

/* The message for cancelled work. */
static inline const char *view_stopped(const struct view_context *context)
{
	return atomic_load_explicit(&context->closing, memory_order_relaxed)
		       ? "stopped, as the run is being closed"
		       : "stopped";
}

/* A key of the bar at the foot, and what it does. */
struct view_bar_key {
	uint32_t key;
	const char *bar;
};

struct view_grid;

struct view_screen_ops {
	const char *name, *title;
	const char *brief; /* the title if space is short, up to 4 letters */
	uint32_t key;      /* that shows it */
	unsigned where;    /* VIEW_ON_... */
	/* A query: has the report anything for the screen? If not, the title, Tab and lists of
	 * places leave the screen out; its key shows why it is empty. Fast: it is asked again with
	 * all news. NULL: always. */
	const char *has;
	uint64_t least_ns; /* between two loads for news */

	size_t size; /* of the state, which the session allocates zeroed and frees */
	/* Set what does not begin as zero, and release what the state owns. NULL: nothing. */
	void (*init)(void *state);
	void (*fini)(void *state);
	/* @news: the database has changed (or this is the first time). */
	enum status (*load)(void *state, struct view_context *context, bool news, struct err *err);
	void (*draw)(const void *state, const struct view_context *context, struct view_pane *pane);
	/* The table that has the keys now; NULL: none is shown. */
	struct view_grid *(*grid)(void *state);
	/* NULL, or VIEW_UNHANDLED: the table's keys. */
	enum view_answer (*request)(void *state, struct view_context *context,
				    enum view_request request);
	/* Go to the next match of @text and count the matches (context->hit); false: no match.
	 * NULL: in the table. */
	bool (*search)(void *state, struct view_context *context, const char *text, bool forward);
	/* Show only what matches @text; "" shows all. NULL: the table's, if there is one. */
	void (*filter)(void *state, const char *text);
	/* What the key does now, for the bar at the foot: "": nothing; NULL (or no function): what
	 * the table says of it, or else the word of the key table. */
	const char *(*word)(const void *state, enum view_request request);
	/* The text of the status line. NULL: the table's. */
	void (*status)(const void *state, const struct view_context *context, char *out,
		       size_t size);
	/* Body rows needed to show everything, for text output. */
	int (*height)(const void *state, const struct view_context *context);
	/* The screen as rows, for CSV and JSON. NULL: those of the table, if there is one. */
	enum status (*table)(void *state, struct view_context *context, struct report_table *out,
			     struct err *err);

	/* What is under the cursor; false: nothing. NULL: never anything. */
	bool (*place)(const void *state, struct view_place *out);
	/* Can the screen show something of @place? @out describes it without the screen's name:
	 * "the span 250", "gradients of Dense_128". NULL: never. */
	bool (*offers)(const struct view_place *place, char *out, size_t size);
	/* Move the cursor to @place; a load follows. A screen that was never loaded is loaded
	 * first. ST_NOTFOUND: @err says why the screen does not have it. */
	enum status (*go)(void *state, struct view_context *context, const struct view_place *place,
			  struct err *err);
	/* The statements behind the screen, ready to paste into sqlite3. */
	void (*query)(const void *state, const struct view_context *context, struct str *out);
	/* The text to copy after VIEW_COPY. NULL: none. */
	void (*copy)(const void *state, struct str *out);
	/* The screen's own key was pressed: direct the next keys to its text. NULL: it has no
	 * text. */
	void (*focus)(void *state);
	/* Handles keys before the key table while typing() is true (a line of text is being
	 * edited). NULL: never. */
	bool (*typing)(const void *state);
	enum view_answer (*type)(void *state, struct view_context *context, uint32_t key);
	const struct view_bar_key *typing_keys; /* the bar meanwhile; ends with key 0 */
	/* A cell of the body was clicked. NULL, or VIEW_UNHANDLED: the table takes it. */
	enum view_answer (*click)(void *state, struct view_context *context, int x, int y);
	bool stays;  /* the state depends on no run: it is kept when other runs are shown */
	bool drags;  /* the release of a pressed button is a click, too */
	bool wheels; /* the wheel zooms about the cell under the pointer */
};

/* X(screen, ops): in the order of the title line. */
#define VIEW_SCREEN_MAP(X)                                                                         \
	X(SUMMARY, summary)                                                                        \
	X(INSIGHTS, insights)                                                                      \
	X(MEMORY, memory)                                                                          \
	X(LIVENESS, liveness)                                                                      \
	X(PROGRAMS, programs)                                                                      \
	X(OPERATIONS, operations)                                                                  \
	X(TIMELINE, timeline)                                                                      \
	X(TENSORS, tensors)                                                                        \
	X(METRICS, metrics)                                                                        \
	X(HEALTH, health)                                                                          \
	X(RANKS, communication)                                                                    \
	X(ACCELERATORS, accelerators)                                                              \
	X(WHATIF, whatif)                                                                          \
	X(SQL, sql)                                                                                \
	X(HELP_SCREEN, help)

enum view_screen {
#define VIEW_SCREEN_ENUM(screen, ops) VIEW_##screen,
	VIEW_SCREEN_MAP(VIEW_SCREEN_ENUM)
#undef VIEW_SCREEN_ENUM
	VIEW_SCREENS
};

#define VIEW_SCREEN_OPS(screen, ops) extern const struct view_screen_ops view_##ops##_ops;
VIEW_SCREEN_MAP(VIEW_SCREEN_OPS)
#undef VIEW_SCREEN_OPS

/* One ops row per screen, in the order of enum view_screen. */
const struct view_screen_ops *view_screen(enum view_screen screen);

void *view_state_new(const struct view_screen_ops *ops); /* NULL: out of memory */
void view_state_free(const struct view_screen_ops *ops, void *state);

/* The screen's rows, which the caller frees. ST_INVALID: it has none. */
enum status view_screen_rows(const struct view_screen_ops *ops, void *state,
			     struct view_context *context, struct report_table *out,
			     struct err *err);

/* VIEW_ON_...: the requests that apply to the screen. */
unsigned view_screen_where(enum view_screen screen, const struct view_context *context);

/* ---- the texts of Help ----------------------------------------------------------------------- */

/* Both lists end with an entry without a text. */
struct view_help_word {
	const char *word, *text;
};

struct view_help_key {
	enum view_request request;
	const char *text;
};

struct view_help_told {
	const char *answers; /* the questions, in a line of the list of screens */
	const char *shows;
	const struct view_help_word *words;
	const struct view_help_key *keys;
};

/* One row per screen; Help's own has no terms. */
const struct view_help_told *view_help_told(enum view_screen screen);

#endif /* VIEW_SCREEN_H */
