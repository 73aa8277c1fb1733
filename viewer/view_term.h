/*
 * The terminal: the only file that knows ncurses, signals and colours.
 *
 * view_term_run() is the whole interactive life of the program; it restores the terminal in one
 * place, whatever ended it. One thread, one terminal per process.
 */
#ifndef VIEW_TERM_H
#define VIEW_TERM_H

#include <stdint.h>

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

/*
 * Keys as terminals send them that are of another type than TERM says: the usual sequences, so that
 * they do what they say instead of being taken for Esc and letters.
 */

/* What ESC and then @text ("[4~", "OF") mean; VIEW_KEY_NONE: nothing that is known here. */
uint32_t view_escape_key(const char *text);

/* An event of the mouse at @x, @y goes to what is under it; @bits: ncurses's of what was
 * pressed, let go or turned, and of keys held meanwhile, which change nothing. */
void view_mouse(struct view_session *session, int x, int y, unsigned long bits);

/*
 * A terminal that is given back even if the program crashes under it.
 *
 * Threading: guard and release from one thread; the handler runs on any and uses only what a
 * signal handler may.
 */

/* After the terminal was taken (ncurses is ready), with what it was before. Signals that somebody
 * else handles (a sanitizer) are left to him. */
struct termios;

#endif /* VIEW_TERM_H */
