/*
 * State of a merge. Only for prof_merge.c (sources, names, clocks, metadata) and
 * prof_merge_rows.c (rows, levels); one thread.
 *
 * Errors are sticky: merge->err holds the first one, and after it the functions below do nothing,
 * so that callers need not check each step. prof__merge_ok() reports whether all steps succeeded.
 */
#ifndef PROF_MERGE_INTERNAL_H
#define PROF_MERGE_INTERNAL_H

#include <sqlite3.h>

#include "common/fs.h"
#include "profiler/prof_merge.h"

/* Offsets that are added to a source's row ids. */
enum merge_base {
	MERGE_CONTEXT,
	MERGE_TRACK,
	MERGE_SPAN,
	MERGE_INSTANT,
	MERGE_HEALTH,
	MERGE_STATS,
	MERGE_TRACE,
	MERGE_PROGRAM,
	MERGE_VARIABLE,
	MERGE_IPU, /* of memory rows, which have no rank: nonzero only if models differ */
	MERGE_BASES
};

/* A compiled model in the merged file. */
struct merge_model {
	uint64_t digest[2];
	int64_t rank;
	int64_t base[MERGE_BASES];
};

/* What is read from a source before it is copied. */
struct merge_file {
	char *path;                   /* of the database itself */
	int64_t epoch_ns;             /* if it has a clock */
	int64_t recorded;             /* its rank, as recorded */
	char folder[FS_PATH_SIZE];    /* that contains it; "": unknown */
	char continues[FS_PATH_SIZE]; /* the folder of the training's previous part; "": none */
	int64_t after_step;           /* training steps done by the previous parts */
};

struct merge {
	struct err err; /* the first failure; its status is ST_OK until then */
	sqlite3 *db;    /* main: the merged file; src: the current source; ref: the first source */
	const struct prof_merge_params *params;
	struct prof_merge_source *sources, *source; /* all, and the current one */
	size_t count, at;
	const char *what; /* for the progress callback */
	bool stopped;
	int64_t base[MERGE_BASES];                        /* of the current source */
	int64_t first_span, first_instant, first_counter; /* its first ids in the merged file */
	int64_t rank_context; /* context with the rank alone, for its rows without a context */
	struct merge_model *models;
	size_t model_count, model_capacity;
	struct merge_file *files; /* of each source */
};

static inline bool prof__merge_ok(const struct merge *m)
{
	return m->err.status == ST_OK;
}

/* Run @sql, one statement; the parameters of the bases (":span"), ":shift" and ":rank" are
 * bound. */
void prof__merge_run(struct merge *m, const char *sql);
/* Prepare @sql, for the caller to step with prof__merge_step() and to finalize; NULL after a
 * failure. The same parameters are bound. */
sqlite3_stmt *prof__merge_prepare(struct merge *m, const char *sql);
/* Return whether a row is available: `while (prof__merge_step(m, statement))`. */
bool prof__merge_step(struct merge *m, sqlite3_stmt *statement);

/* Copy all rows of the current source except zones and levels. */
void prof__merge_copy(struct merge *m);
/* Compute zones and levels of the rows just copied. */
void prof__merge_levels(struct merge *m);

#endif /* PROF_MERGE_INTERNAL_H */
