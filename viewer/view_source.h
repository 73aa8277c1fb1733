/*
 * Reports: an open one, with its database handle and the state of its run; and those to compare it
 * with, of the working directory and of the folder that contains it.
 *
 * The handle is closed while the writer closes the file and reopened afterwards; between the two
 * `db` is NULL and screens keep showing what they have. One thread.
 */
#ifndef VIEW_SOURCE_H
#define VIEW_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/fs.h"
#include "profiler/prof_db.h"

struct view_context;

enum view_state {
	VIEW_RECORDING,
	VIEW_CLOSING,
	VIEW_KILLED,
	VIEW_COMPLETE
};

struct view_source {
	struct prof_db *db; /* NULL: closed for the writer */
	char path[FS_PATH_SIZE];
	char name[256]; /* short, for the title */
	enum view_state state;
	const char *none;   /* prof_origin_none() of the report */
	int64_t version;    /* prof_db_version() of the last poll */
	uint64_t looked_ns; /* clock_ns() of the last poll */
	uint64_t let_go_ns; /* when the handle was last closed for the writer */
	uint64_t retry_ns;  /* closed: when to try again, and how long to wait after that */
	uint64_t retry_wait_ns;
	int watch; /* readable when the writer nudges, prof_process.h; -1: not available */
};

/* @path: a report directory or a database. */
enum status view_source_open(struct view_source *source, const char *path, struct err *err);
void view_source_close(struct view_source *source); /* accepts a zeroed source */

/* Is there news? Updates the state. Cheap; closes a closing file, and reopens it later. */
bool view_source_poll(struct view_source *source, uint64_t now_ns);

/* Does the writer ask readers to close the file? Cheap; does not consume the nudge. For callers
 * that cannot poll, since the handle is in use on another thread. */
bool view_source_nudged(const struct view_source *source);

const char *view_state_text(enum view_state state);

/*
 * Reading as a series of steps: each does nothing after an earlier failure, which @err (not NULL)
 * keeps, so the caller checks it once. A query that could not be opened is NULL and has no rows.
 */
struct prof_query *view_query_open(struct prof_db *db, const char *sql, struct err *err);

static inline bool view_query_next(struct prof_query *query, struct err *err)
{
	return prof_query_next(query, &err->status, err);
}

/* The first column of @sql's first row; IPS_NULL: none, or a failure. */
int64_t view_query_number(struct prof_db *db, const char *sql, struct err *err);
/* A number of the row that @sql selects by :row. INT64_MAX: there is no such row, or a failure: a
 * gap between rows in order of that number counts as behind what is looked up. */
int64_t view_query_at(struct prof_db *db, const char *sql, int64_t row, struct err *err);

/* Zeroed memory for @count items and one more; NULL only after a failure. */
void *view_alloc(struct arena *arena, size_t count, size_t size, struct err *err);

/* A positive number of the run's meta data; NaN: there is none. */
double view_source_fact(struct prof_db *db, const char *key);

/* Find the newest report (tf_report__*) in @folder; ST_NOTFOUND names the pattern, and a run that
 * is recording now. */
enum status view_source_newest(const char *folder, char out[FS_PATH_SIZE], struct err *err);

/* ---- runs to compare with -------------------------------------------------------------------- */

struct view_run {
	const char *path;
	const char *text;       /* start time, state, name, model */
	int64_t when_ns;        /* since 1970 */
	uint64_t device, inode; /* of the database */
};

/* Start with {0}. The list owns its texts. */
struct view_runs {
	struct view_run *items; /* the newest first */
	size_t count, capacity;
	struct arena arena;
};

/* Read the list again, without the source; ST_INTERRUPTED: cancelled. On failure the list is empty.
 * If there are too many, only the newest files are listed. */
enum status view_runs_read(struct view_runs *out, const struct view_context *context,
			   struct err *err);
void view_runs_free(struct view_runs *runs);

#endif /* VIEW_SOURCE_H */
