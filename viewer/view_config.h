/*
 * What a user always wants: $XDG_CONFIG_HOME/ipuscope/view.json, else ~/.config/ipuscope/view.json.
 *
 * {"theme": "light", "color": "auto", "ascii": "auto", "mouse": true, "screen": "timeline",
 *  "follow": true}; what is not there stays as it was. The command line comes after it. Nothing is
 * ever written.
 */
#ifndef VIEW_CONFIG_H
#define VIEW_CONFIG_H

#include "viewer/view_screen.h"

#define VIEW_CONFIG_NONE "none" /* instead of a file */

struct view_config {
	const char *theme; /* "auto", "dark", "light" */
	const char *color; /* "auto", "always", "never" */
	const char *ascii; /* "auto", "always", "never" */
	bool mouse, follow;
	enum view_screen screen; /* to begin with */
};

void view_config_defaults(struct view_config *config);

/* Read @path over *@config; NULL: the user's own file, which may be missing. A file that is named
 * must be there. Unknown keys and wrong values are ST_INVALID with their place. */
enum status view_config_load(struct view_config *config, const char *path, struct err *err);

/* The theme, where it is "auto" by @colorfgbg, as terminals set COLORFGBG ("15;0": the last number
 * is the ground; NULL: unknown, which is taken for dark). */
enum view_theme view_config_theme(const struct view_config *config, const char *colorfgbg);

#endif /* VIEW_CONFIG_H */
