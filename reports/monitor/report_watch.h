/*
 * Showing a text again and again: drawn over itself on a terminal's alternate screen, one after the
 * other elsewhere.
 *
 * Threading: one thread, whose process has no other: the signals that end it are blocked meanwhile.
 */
#ifndef REPORT_WATCH_H
#define REPORT_WATCH_H

#include <stdbool.h>

#include "common/err.h"
#include "common/str.h"

struct report_watch {
	double seconds; /* between two */
	bool screen;    /* standard output is a terminal to draw on */
	/* Fill the empty @out. */
	enum status (*draw)(void *user, struct str *out, struct err *err);
	void *user;
};

#define REPORT_WATCH_LEAST 0.1
#define REPORT_WATCH_MOST  86400.0

/* Until a signal comes, or a failure; the terminal is restored. *@number: SIGINT, SIGTERM or
 * SIGHUP; 0 with a failure. */
enum status report_watch_run(const struct report_watch *watch, int *number, struct err *err);

/* Can standard output be drawn on? */
bool report_watch_screen(void);

#endif /* REPORT_WATCH_H */
