/*
 * Display a text repeatedly: in place on a terminal's alternate screen, otherwise one after the
 * other.
 *
 * Threading: one thread, in a single-threaded process: the terminating signals are blocked
 * meanwhile.
 */
#ifndef REPORT_WATCH_H
#define REPORT_WATCH_H

#include <stdbool.h>

#include "common/err.h"
#include "common/str.h"

struct report_watch {
	double seconds; /* interval */
	bool screen;    /* standard output is a terminal to draw on */
	/* Fill the empty @out. */
	enum status (*draw)(void *user, struct str *out, struct err *err);
	void *user;
};

#define REPORT_WATCH_LEAST 0.1
#define REPORT_WATCH_MOST  86400.0

/* Run until a signal arrives or an error occurs; the terminal is restored. *@number: SIGINT,
 * SIGTERM or SIGHUP; 0 after an error. */
enum status report_watch_run(const struct report_watch *watch, int *number, struct err *err);

/* Return true if standard output can be drawn on. */
bool report_watch_screen(void);

#endif /* REPORT_WATCH_H */
