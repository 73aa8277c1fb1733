/*
 * Recordings of several processes in one database, told apart by `rank`.
 *
 * Rows are copied table by table inside SQLite, numbers of rows shifted, names interned again,
 * times of the host clock moved to one start; zones and levels are made anew, as buckets of time do
 * not shift. Simulated clocks are left alone. The sources are opened for reading only, and nothing
 * in them is run: no triggers, no views of theirs. Memory does not grow with the rows.
 *
 * Threading: on the caller's thread, which the progress callback is called on too.
 */
#ifndef PROF_MERGE_H
#define PROF_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "profiler/prof_db.h"

enum prof_merge_ranks {
	PROF_MERGE_RANKS_AUTO, /* the recorded ones where all differ, else in order */
	PROF_MERGE_RANKS_KEEP, /* ST_INVALID where two are equal */
	PROF_MERGE_RANKS_ORDER /* 0, 1, ... in the order of the sources */
};

enum prof_merge_align {
	PROF_MERGE_ALIGN_WALL,  /* by the wall clock of each recording's start */
	PROF_MERGE_ALIGN_STEPS, /* then by what is left between executions of equal number */
	PROF_MERGE_ALIGN_NONE   /* all start at 0 */
};

struct prof_merge_params {
	enum prof_merge_ranks ranks;
	enum prof_merge_align align;
	const char *command; /* for `meta` */
	/* Called often; @source counts from 0. false: stop with ST_INTERRUPTED. May be NULL. */
	bool (*progress)(void *user, size_t source, const char *what);
	void *user;
};

/* What was found in a source, and what was done with it. Only @path is the caller's. */
struct prof_merge_source {
	const char *path;
	enum prof_state state;
	bool alive;          /* being recorded: what had been committed is merged */
	bool failed;         /* it says why its writer ended before the run did */
	int64_t rank;        /* its first rank in the merged file */
	size_t ranks;        /* more than 1: it was merged itself */
	bool has_clock;      /* it says when it started */
	int64_t shift_ns;    /* added to its host times */
	int64_t anchors;     /* moments it shares with the first source */
	int64_t residual_ns; /* how much later than the first it meets them: the median */
	int64_t greatest_ns; /* and the greatest, either way */
	int64_t part;        /* of a training that went on from a backup: from 2; else 1 */
	int64_t after_rank;  /* the rank of the part before, where that is merged too; -1 */
	int64_t same_model;  /* rank whose compiled model it shares; -1: none */
	bool own_model;      /* it has one of its own, unlike those before it */
	int64_t spans;
};

/* Make @out, an empty file that nobody else uses, the merged database. After a failure its contents
 * are void. The same source may be given twice. */
enum status prof_merge(const char *out, struct prof_merge_source *sources, size_t count,
		       const struct prof_merge_params *params, struct err *err);

#endif /* PROF_MERGE_H */
