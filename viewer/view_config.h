/*
 * The user's settings: $XDG_CONFIG_HOME/ipuscope/view.json, else ~/.config/ipuscope/view.json.
 *
 * {"theme": "light", "color": "auto", "ascii": "auto", "mouse": true, "screen": "timeline",
 *  "follow": true}; a missing key keeps its value. Options of the command line override them. The
 * viewer never writes this file.
 */
#ifndef VIEW_CONFIG_H
#define VIEW_CONFIG_H

#include "common/fs.h"
#include "viewer/view_screen.h"

#define VIEW_CONFIG_NONE "none" /* instead of a file */

struct view_config {
	const char *theme; /* "auto", "dark", "light" */
	const char *color; /* "auto", "always", "never" */
	const char *ascii; /* "auto", "always", "never" */
	bool mouse, follow;
	enum view_screen screen; /* the first one shown */
};

void view_config_defaults(struct view_config *config);

/* Read @path over *@config; NULL: the user's own file, which may be missing. A file given by name
 * must exist. Unknown keys and wrong values are ST_INVALID; the error names their place. */
enum status view_config_load(struct view_config *config, const char *path, struct err *err);

/* Resolve the theme. "auto": by @colorfgbg, the value of COLORFGBG ("15;0": the last number is the
 * background; NULL: unknown, treated as dark). */
enum view_theme view_config_theme(const struct view_config *config, const char *colorfgbg);

/*
 * The viewer's own small files, kept between sessions: bookmarks, the history of statements.
 *
 * Several viewers may use them at once. Each change is: lock, read, add, write, unlock; so that no
 * other viewer's change is lost. Reads are bounded and never block, and a file is written
 * atomically, readable by its user alone.
 *
 * No state. Any thread; the lock is between viewers, not between threads of one.
 */

/* The path of the file @name ("bookmarks/x.json") in $XDG_STATE_HOME/ipuscope, or if that is not
 * set in ~/.local/state/ipuscope. false: neither can be resolved. */
bool view_own_path(char out[FS_PATH_SIZE], const char *name);

/* Read all of @path, a plain file of at most @most bytes, as fs_read(). ST_NOTFOUND: no file. */
enum status view_own_read(const char *path, size_t most, char **text, size_t *length,
			  struct err *err);

/* Write the file; make its folder if it is missing. */
enum status view_own_write(const char *path, const void *data, size_t length, struct err *err);

/* Wait up to about a second for the lock on these files. -1: no lock; the caller continues without
 * it, since writes are atomic anyway. */
int view_own_lock(void);
void view_own_unlock(int lock); /* accepts -1 */

#endif /* VIEW_CONFIG_H */
