/*
 * The program ipu-view: from arguments to a session, and the session in a terminal.
 *
 * view_term.c is the only file that knows ncurses, signals and colours. view_term_run() is the
 * whole interactive part of the program; it restores the terminal in one place, however it ends.
 * One thread, one terminal per process.
 */
#ifndef VIEW_COMMAND_H
#define VIEW_COMMAND_H

#include <stdint.h>

#include "viewer/view_session.h"

/* Returns the exit code. Prints errors as one line on stderr. */
int view_command(int argc, char **argv);

/* Can the terminal show blocks and braille? Decided by the current locale. */
bool view_term_unicode(void);

struct view_term_params {
	bool colour; /* as many as the terminal has */
	bool mouse;  /* report clicks and the wheel; the terminal then selects no text */
};

/* Show @session in its theme until the user leaves. *@signal_number: the signal that ended it, else
 * 0. ST_UNSUPPORTED: the terminal's type is unknown or lacks a capability. */
enum status view_term_run(struct view_session *session, const struct view_term_params *params,
			  int *signal_number, struct err *err);

/*
 * Key sequences of terminals whose type differs from TERM: decoding the usual ones keeps them from
 * being read as Esc and letters.
 */

/* The key of ESC followed by @text ("[4~", "OF"); VIEW_KEY_NONE: not known here. */
uint32_t view_escape_key(const char *text);

/* Dispatch a mouse event at @x, @y; @bits: the ncurses mask of buttons pressed, released or turned.
 * Modifier keys are ignored. */
void view_mouse(struct view_session *session, int x, int y, unsigned long bits);

#endif /* VIEW_COMMAND_H */
