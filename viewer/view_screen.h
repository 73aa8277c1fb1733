/*
 * What a screen is: a row of functions. The session (view_session.h) does the rest.
 *
 * A screen loads what its body shows into its own state, on request, on a change of size and on
 * news from a run that is recording; draw() then only draws: no query, no allocation, no change.
 * What a screen does not handle it hands back.
 *
 * Threading: open, close, draw, word, status, height, place, offers, focus and query run on the
 * thread of the terminal; everything that may take long (load, request, search, filter, type, go,
 * table, click) runs on the session's worker, one call at a time and never while one of the others
 * runs.
 * A call that takes long looks at view_cancelled() between its queries and returns ST_INTERRUPTED;
 * the query that runs is interrupted by itself and returns that.
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

/* A tensor that the screen Tensors begins with. */
struct view_opening {
	const char *key; /* NULL: the list */
	int page; /* enum view_tensor_page; -1: its values where some were kept, else curve */
	int sample, head; /* of its values: along the first axis, and the second */
	int64_t step;     /* of its values, or a weight update; IPS_NULL: the last */
};

struct view_context {
	struct view_source *source;      /* the report; when comparing, the Source */
	struct view_source *target;      /* NULL: one report is looked at */
	struct view_rect body;           /* the screen's own; load() is for this size */
	int runs;                        /* raised when other runs are looked at */
	bool follow;                     /* keep the newest in view */
	bool ranged;                     /* begin with the times below instead of all */
	int64_t from_ns, to_ns;          /* on the timeline's first clock */
	bool more;                       /* set by a load that is not through: load again */
	bool whole;                      /* to a file: all of it, nothing selected */
	bool differ;                     /* comparing: only what differs */
	bool dragged;                    /* a click: the button was pressed at the last one */
	int leads;                       /* enum view_screen: where VIEW_LEAD goes to */
	int about;                       /* enum view_screen: the screen the help is asked on */
	const char *query;               /* a statement that SQL begins with, or NULL */
	struct view_opening opening;     /* what Tensors begins with */
	char message[VIEW_MESSAGE_SIZE]; /* a screen's answer to a request; shown once */
	int64_t hit, hits;               /* of a search: the one found, from 1, of how many; 0: not
					    counted */
	atomic_bool cancel;              /* the user waits no longer */
	atomic_bool closing;             /* with it: the run's writer waits for the file instead */
	const struct view_context *of;   /* whose work this is a part of and stops with; or NULL */
};

/* Is the work no longer wanted? Cheap. */
static inline bool view_cancelled(const struct view_context *context)
{
	return atomic_load_explicit(&(context->of ? context->of : context)->cancel,
				    memory_order_relaxed);
}

/* For what a screen does with the target alone, as a part of its work for @context. */
static inline struct view_context view_context_of_target(const struct view_context *context)
{
	return (struct view_context){.source = context->target,
				     .body = context->body,
				     .follow = context->follow,
				     .whole = context->whole,
				     .of = context};
}

/* Have @text and, where it is not NULL, @rest after it shown once. What is too long loses its
 * middle: a reason stands at the end. */
void view_message(struct view_context *context, const char *text, const char *rest);

enum view_answer {
	VIEW_UNHANDLED, /* not for this screen */
	VIEW_DRAW,      /* draw again */
	VIEW_LOAD,      /* load, then draw */
	VIEW_JOIN,      /* show on other screens what is under the cursor: the list of them */
	VIEW_COPY,      /* show the text of ops->copy(), to be copied */
	VIEW_LEAD       /* show the screen context->leads, with what is under the cursor */
};

/* Why it is: what is said of work that was stopped. */
static inline const char *view_stopped(const struct view_context *context)
{
	return atomic_load_explicit(&context->closing, memory_order_relaxed)
		       ? "stopped, as the run is being closed"
		       : "stopped";
}

/* A key that the line at the foot shows, and what it does. */
struct view_bar_key {
	uint32_t key;
	const char *bar;
};

struct view_screen_ops {
	const char *name, *title;
	const char *brief; /* the title where there is little room, up to 4 letters */
	uint32_t key;      /* that shows it */
	unsigned where;    /* VIEW_ON_... */
	uint64_t least_ns; /* between two loads for news */

	/* *@state is the screen's own; on failure NULL. Reads nothing yet. */
	enum status (*open)(void **state, struct view_context *context, struct err *err);
	void (*close)(void *state); /* accepts NULL */
	/* @news: the database has changed (or this is the first time). */
	enum status (*load)(void *state, struct view_context *context, bool news, struct err *err);
	void (*draw)(const void *state, const struct view_context *context, struct view_pane *pane);
	enum view_answer (*request)(void *state, struct view_context *context,
				    enum view_request request);
	/* Go to the next match of @text, and count them (context->hit); false: there is none. */
	bool (*search)(void *state, struct view_context *context, const char *text, bool forward);
	/* Show what matches @text only; "" shows all. NULL: it has no filter. */
	void (*filter)(void *state, const char *text);
	/* What the key does here now, for the line at the foot: "": nothing; NULL (and without the
	 * function): what the key table says. */
	const char *(*word)(const void *state, const struct view_context *context,
			    enum view_request request);
	/* What the status line says. */
	void (*status)(const void *state, const struct view_context *context, char *out,
		       size_t size);
	/* Rows of body that show all of it, for text. */
	int (*height)(const void *state, const struct view_context *context);
	/* The same as rows, for CSV and JSON. NULL: it has none. */
	enum status (*table)(void *state, struct view_context *context, struct report_table *out,
			     struct err *err);

	/* What is under the cursor; false: nothing. NULL: never anything. */
	bool (*place)(const void *state, const struct view_context *context,
		      struct view_place *out);
	/* Can it show something of @place? @out says what, without the screen's name: "the span
	 * 250", "gradients of Dense_128". NULL: never. */
	bool (*offers)(const struct view_place *place, char *out, size_t size);
	/* Make @place the one under the cursor; a load follows. A screen that has not been loaded
	 * is loaded before. ST_NOTFOUND says why it is not there. */
	enum status (*go)(void *state, struct view_context *context, const struct view_place *place,
			  struct err *err);
	/* The statements behind what is shown, to be pasted into sqlite3 as they are. */
	void (*query)(const void *state, const struct view_context *context, struct str *out);
	/* A text to be copied to elsewhere, after VIEW_COPY. NULL: there is none. */
	void (*copy)(const void *state, struct str *out);
	/* The screen's own key was pressed: its text takes the next ones. NULL: it has no text. */
	void (*focus)(void *state);
	/* Takes keys before the key table does, while typing() says so (a line of text is being
	 * edited). NULL: never. */
	bool (*typing)(const void *state);
	enum view_answer (*type)(void *state, struct view_context *context, uint32_t key);
	const struct view_bar_key *typing_keys; /* at the foot meanwhile; ends with key 0 */
	/* A cell of the body was clicked. NULL: nothing happens. */
	enum view_answer (*click)(void *state, struct view_context *context, int x, int y);
	bool stays;  /* it has nothing of a run that is not asked for again when runs change */
	bool drags;  /* a click says where the pressed button was let go, too */
	bool wheels; /* the wheel zooms about the cell that it is over */
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

/* VIEW_ON_...: which requests mean something on it. */
unsigned view_screen_where(enum view_screen screen, const struct view_context *context);

#endif /* VIEW_SCREEN_H */
