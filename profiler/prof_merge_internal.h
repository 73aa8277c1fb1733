/*
 * A merge under way. Only for prof_merge.c (sources, names, clocks, facts) and prof_merge_rows.c
 * (rows, levels); one thread.
 *
 * Failures stick: the first is in merge->err, and with it nothing below runs any more, so that
 * steps stand one below the other. prof__merge_ok() says whether all ran, where it matters.
 */
#ifndef PROF_MERGE_INTERNAL_H
#define PROF_MERGE_INTERNAL_H

#include <sqlite3.h>

#include "common/fs.h"
#include "profiler/prof_merge.h"

/* What is added to a source's numbers of rows. */
enum merge_base {
	MERGE_CONTEXT,
	MERGE_TRACK,
	MERGE_SPAN,
	MERGE_HEALTH,
	MERGE_STATS,
	MERGE_TRACE,
	MERGE_PROGRAM,
	MERGE_VARIABLE,
	MERGE_IPU, /* of memory, which has no rank: only where models differ */
	MERGE_BASES
};

/* A compiled model that is in the merged file. */
struct merge_model {
	uint64_t digest[2];
	int64_t rank;
	int64_t base[MERGE_BASES];
};

/* What is known of a source before it is copied. */
struct merge_file {
	char *path;                   /* of the database itself */
	int64_t epoch_ns;             /* where it has a clock */
	int64_t recorded;             /* its rank, as recorded */
	char folder[FS_PATH_SIZE];    /* that it is in; "": unknown */
	char continues[FS_PATH_SIZE]; /* the folder of the part of a training before it; "": none */
	int64_t after_step;           /* of training, that the parts before had done */
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
	int64_t first_span, first_instant, first_counter; /* its first in the merged file */
	int64_t rank_context; /* for its rows without a context: its rank alone */
	struct merge_model *models;
	size_t model_count, model_capacity;
	struct merge_file *files; /* of each source */
};

static inline bool prof__merge_ok(const struct merge *m)
{
	return m->err.status == ST_OK;
}

/* Run @sql, one statement; the names of bases (":span"), ":shift" and ":rank" are bound. */
void prof__merge_run(struct merge *m, const char *sql);
/* @statement, for the caller to step through with prof__merge_step() and to finalize; NULL after a
 * failure. The same names are bound. */
sqlite3_stmt *prof__merge_prepare(struct merge *m, const char *sql);
/* `while (prof__merge_step(m, statement))`: a row is there. */
bool prof__merge_step(struct merge *m, sqlite3_stmt *statement);

/* All rows of the current source but zones and levels. */
void prof__merge_copy(struct merge *m);
/* Zones and levels of the rows just copied. */
void prof__merge_levels(struct merge *m);

#endif /* PROF_MERGE_INTERNAL_H */
