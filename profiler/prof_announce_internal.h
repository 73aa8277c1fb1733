/*
 * Private to the announcements: their file's text, and the folder.
 */
#ifndef PROF_ANNOUNCE_INTERNAL_H
#define PROF_ANNOUNCE_INTERNAL_H

#include "profiler/prof_announce.h"

#define PROF__ANNOUNCE_IPUS 4096 /* most of one run that are believed */

/* The file's text, into an empty @out; a failed growth is in @out. */
void prof__announce_write(const struct prof_announcement *run, struct str *out);

/* The reverse. Errors name the key. */
enum status prof__announce_parse(struct prof_announcement *out, const char *text, size_t length,
				 const char *name, struct err *err);

/* $XDG_RUNTIME_DIR/ipuscope, open; @make: made where it is missing. ST_NOTFOUND: the variable is
 * not set, or, without @make, the folder is not there. */
enum status prof__announce_folder(int *fd, bool make, struct err *err);

/* What prof_announcements_read() reads of the open folder; @tidy needs its lock. */
enum status prof__announce_list(struct prof_announcements *out, int folder, bool tidy,
				struct str *notes, struct err *err);

#endif /* PROF_ANNOUNCE_INTERNAL_H */
