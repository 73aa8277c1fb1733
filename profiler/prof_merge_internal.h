/*
 * A merge under way. Only for prof_merge*.c; one thread.
 *
 * Failures stick: the first is in merge->err, and with it nothing below runs any more, so that
 * steps stand one below the other. What ran is asked with prof__merge_ok() where it matters.
 */
#ifndef PROF_MERGE_INTERNAL_H
#define PROF_MERGE_INTERNAL_H

#include <sqlite3.h>

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
	char *path;       /* of the database itself */
	int64_t epoch_ns; /* where it has a clock */
	int64_t recorded; /* its rank, as recorded */
};

struct merge {
	struct err err; /* the first failure; its status is ST_OK until then */
	sqlite3 *db;    /* main: what is made; src: the source at hand; ref: the first source */
	const struct prof_merge_params *params;
	struct prof_merge_source *sources, *source;
	size_t count, at;
	const char *what; /* for the progress callback */
	bool stopped;
	int64_t base[MERGE_BASES];                        /* of the source at hand */
	int64_t first_span, first_instant, first_counter; /* its first in the merged file */
	int64_t nowhere; /* the context of its rows that have none: its rank alone */
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
/* Run @sql, some statements without names. */
void prof__merge_script(struct merge *m, const char *sql);
/* The number that @sql gives; IPS_NULL: none. */
int64_t prof__merge_ask(struct merge *m, const char *sql);
/* @statement, for the caller to step through with prof__merge_step() and to finalize; NULL after a
 * failure. */
sqlite3_stmt *prof__merge_prepare(struct merge *m, const char *sql);
/* `while (prof__merge_step(m, statement))`: a row is there. */
bool prof__merge_step(struct merge *m, sqlite3_stmt *statement);
void prof__merge_bind(struct merge *m, sqlite3_stmt *statement);
/* A failure with SQLite's result @code. */
void prof__merge_tell(struct merge *m, int code);
/* Attach @path for reading as @name (src, ref); its tables must be tables. */
void prof__merge_attach(struct merge *m, const char *path, const char *name);
void prof__merge_detach(struct merge *m, const char *name);

/* prof_merge_copy.c: all rows of the source at hand but zones and levels. */
void prof__merge_copy(struct merge *m);

/* prof_merge_names.c: what is kept once for all sources, and the names of tracks. */
void prof__merge_names_begin(struct merge *m);
void prof__merge_survey_tracks(struct merge *m);
void prof__merge_intern(struct merge *m);
void prof__merge_tracks(struct merge *m);
void prof__merge_names_end(struct merge *m);

/* prof_merge_levels.c: zones and levels of the rows just copied. */
void prof__merge_levels(struct merge *m);

/* prof_merge_align.c: the shift of every source. */
void prof__merge_align(struct merge *m);

/* prof_merge_facts.c: `meta`. */
void prof__merge_facts(struct merge *m);
void prof__merge_facts_end(struct merge *m);

#endif /* PROF_MERGE_INTERNAL_H */
