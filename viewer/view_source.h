/*
 * The report that is looked at: its database handle and what state its run is in.
 *
 * The handle is let go while the writer closes the file, and taken again after; between the two
 * `db` is NULL and screens keep showing what they have. One thread.
 */
#ifndef VIEW_SOURCE_H
#define VIEW_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/fs.h"
#include "profiler/prof_db.h"

enum view_state {
	VIEW_RECORDING,
	VIEW_CLOSING,
	VIEW_KILLED,
	VIEW_COMPLETE
};

struct view_source {
	struct prof_db *db; /* NULL: let go */
	char path[FS_PATH_SIZE];
	char name[256]; /* short, for the title */
	enum view_state state;
	const char *none;   /* prof_origin_none() of it */
	int64_t version;    /* prof_db_version() of the last poll */
	uint64_t looked_ns; /* when, clock_ns() */
	uint64_t let_go_ns; /* when it was last */
	uint64_t retry_ns;  /* let go: when to try again, and how long to wait after that */
	uint64_t retry_wait_ns;
	int watch; /* readable when the writer asks to look now, prof_nudge.h; -1: it cannot */
};

/* @path: a report directory or a database. */
enum status view_source_open(struct view_source *source, const char *path, struct err *err);
void view_source_close(struct view_source *source); /* accepts a zeroed source */

/* Is there news? Sets the state afresh. Cheap; lets go of a closing file, and takes it again. */
bool view_source_poll(struct view_source *source, uint64_t now_ns);

/* Does the writer ask to let go now? Cheap, and takes nothing from the next poll; for who cannot
 * poll, since the handle is in use elsewhere. */
bool view_source_nudged(const struct view_source *source);

const char *view_state_text(enum view_state state);

/* The newest report (tf_report__*) in @folder; ST_NOTFOUND says what was looked for, and where a
 * run records just now. */
enum status view_source_newest(const char *folder, char out[FS_PATH_SIZE], struct err *err);

#endif /* VIEW_SOURCE_H */
