/*
 * What the Help tells of each screen: what it shows, what its words mean, and what keys do there
 * that the key table can only say in general.
 */
#ifndef VIEW_HELP_H
#define VIEW_HELP_H

#include "viewer/view_screen.h"

/* The ends of both lists are lines without a text. */
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

/* A row per screen; the Help's own has no words. */
const struct view_help_told *view_help_told(enum view_screen screen);

#endif /* VIEW_HELP_H */
