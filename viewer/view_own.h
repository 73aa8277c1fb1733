/*
 * The viewer's own small files, from one look to the next: bookmarks, the history of statements.
 *
 * Several viewers may have them open. Each change is: lock, read what is there, add to it, write,
 * unlock; so that nothing of another viewer is lost. What is read is bounded and never waited for,
 * and a file is written whole or not at all, for its user alone.
 *
 * No state. Any thread; the lock is between viewers, not between threads of one.
 */
#ifndef VIEW_OWN_H
#define VIEW_OWN_H

#include "common/fs.h"

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

#endif /* VIEW_OWN_H */
