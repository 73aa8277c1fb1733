/*
 * The texts of Help for each screen: what it shows, its terms, and what keys do there if the key
 * table is too general.
 */
#ifndef VIEW_HELP_H
#define VIEW_HELP_H

#include "viewer/view_screen.h"

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

#endif /* VIEW_HELP_H */
