/*
 * The terminal: the only file that knows ncurses, signals and colours.
 *
 * view_term_run() is the whole interactive life of the program; it restores the terminal in one
 * place, whatever ended it. One thread, one terminal per process.
 */
#ifndef VIEW_TERM_H
#define VIEW_TERM_H

#include "viewer/view_session.h"

/* Can the terminal show blocks and braille? By the locale that is set. */
bool view_term_unicode(void);

struct view_term_params {
	bool colour; /* as many as the terminal has */
	bool mouse;  /* have clicks and the wheel reported; the terminal selects no text then */
};

/* Show @session until it is left, in its theme. *@signal: the signal that ended it, else 0.
 * ST_UNSUPPORTED: the terminal's type is unknown or can do too little. */
enum status view_term_run(struct view_session *session, const struct view_term_params *params,
			  int *signal_number, struct err *err);

#endif /* VIEW_TERM_H */
