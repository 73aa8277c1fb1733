/*
 * What a user always wants: $XDG_CONFIG_HOME/ipuscope/view.json, else ~/.config/ipuscope/view.json.
 *
 * {"theme": "light", "color": "auto", "ascii": "auto", "mouse": true, "screen": "timeline",
 *  "follow": true}; what is not there stays as it was. The command line comes after it. Nothing is
 * ever written.
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
	enum view_screen screen; /* to begin with */
};

void view_config_defaults(struct view_config *config);

/* Read @path over *@config; NULL: the user's own file, which may be missing. A file that is named
 * must be there. Unknown keys and wrong values are ST_INVALID with their place. */
enum status view_config_load(struct view_config *config, const char *path, struct err *err);

/* The theme, where it is "auto" by @colorfgbg, as terminals set COLORFGBG ("15;0": the last number
 * is the ground; NULL: unknown, which is taken for dark). */
enum view_theme view_config_theme(const struct view_config *config, const char *colorfgbg);

/*
 * The viewer's own small files, from one look to the next: bookmarks, the history of statements.
 *
 * Several viewers may have them open. Each change is: lock, read what is there, add to it, write,
 * unlock; so that nothing of another viewer is lost. What is read is bounded and never waited for,
 * and a file is written whole or not at all, for its user alone.
 *
 * No state. Any thread; the lock is between viewers, not between threads of one.
 */

/* The path of the file @name ("bookmarks/x.json"), in $XDG_STATE_HOME/ipuscope, or where that is
 * not set ~/.local/state/ipuscope. false: there is no place for it. */
bool view_own_path(char out[FS_PATH_SIZE], const char *name);

/*
 * All of @path, as fs_read() of a plain file, of at most @most bytes. ST_NOTFOUND: there is none.
 */
enum status view_own_read(const char *path, size_t most, char **text, size_t *length,
			  struct err *err);

/* Make the folder of @path, where it is missing, and write the file. */
enum status view_own_write(const char *path, const void *data, size_t length, struct err *err);

/* Wait, for a moment, until no other viewer changes such files. -1: there is no lock to be had,
 * which is no reason not to go on: files are whole all the same. */
int view_own_lock(void);
void view_own_unlock(int lock); /* accepts -1 */

#endif /* VIEW_CONFIG_H */
