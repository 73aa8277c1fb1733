/*
 * What a screen is: a row of functions. The session (view_session.h) does the rest.
 *
 * A screen loads what its body shows into its own state, on request, on a change of size and on
 * news from a run that is recording; draw() then only draws: no query, no allocation, no change.
 * What a screen does not handle it hands back.
 */
#ifndef VIEW_SCREEN_H
#define VIEW_SCREEN_H

#include "reports/table/report_table.h"
#include "viewer/view_canvas.h"
#include "viewer/view_keys.h"
#include "viewer/view_source.h"

#define VIEW_MESSAGE_SIZE 256

struct view_context {
	struct view_source *source;
	struct view_rect body;           /* the screen's own; load() is for this size */
	bool follow;                     /* keep the newest in view */
	bool ranged;                     /* begin with the times below instead of all */
	int64_t from_ns, to_ns;          /* on the timeline's first clock */
	bool more;                       /* set by a load that is not through: load again */
	bool whole;                      /* to a file: all of it, nothing selected */
	char message[VIEW_MESSAGE_SIZE]; /* a screen's answer to a request; shown once */
};

enum view_answer {
	VIEW_UNHANDLED, /* not for this screen */
	VIEW_DRAW,      /* draw again */
	VIEW_LOAD       /* load, then draw */
};

struct view_screen_ops {
	const char *name, *title;
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
	/* Go to the next match of @text; false: there is none. */
	bool (*search)(void *state, struct view_context *context, const char *text, bool forward);
	/* Show what matches @text only; "" shows all. NULL: it has no filter. */
	void (*filter)(void *state, const char *text);
	/* What the status line says. */
	void (*status)(const void *state, const struct view_context *context, char *out,
		       size_t size);
	/* Rows of body that show all of it, for text. */
	int (*height)(const void *state, const struct view_context *context);
	/* The same as rows, for CSV and JSON. NULL: it has none. */
	enum status (*table)(void *state, struct view_context *context, struct report_table *out,
			     struct err *err);
};

enum view_screen {
	VIEW_SUMMARY,
	VIEW_TIMELINE,
	VIEW_TENSORS,
	VIEW_HELP_SCREEN,
	VIEW_SCREENS
};

extern const struct view_screen_ops view_summary_ops, view_timeline_ops, view_tensors_ops,
	view_help_ops;

/* One ops row per screen, in the order of enum view_screen. */
const struct view_screen_ops *view_screen(enum view_screen screen);

#endif /* VIEW_SCREEN_H */
