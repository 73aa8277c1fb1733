/*
 * Merge the recordings of several processes into one database, distinguished by `rank`.
 *
 * Rows are copied table by table inside SQLite: row ids are shifted, names interned again, times
 * of the host clock shifted to a common start. Zones and levels are computed anew, because time
 * buckets cannot be shifted. Simulated clocks stay unchanged. The sources are opened read-only,
 * and none of their triggers or views is executed. Memory does not grow with the number of rows.
 *
 * Threading: everything, the progress callback included, runs on the caller's thread.
 */
#ifndef PROF_MERGE_H
#define PROF_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "profiler/prof_db.h"

enum prof_merge_ranks {
	PROF_MERGE_RANKS_AUTO, /* the recorded ranks if all differ, otherwise numbered in order */
	PROF_MERGE_RANKS_KEEP, /* ST_INVALID if two are equal */
	PROF_MERGE_RANKS_ORDER /* 0, 1, ... in the order of the sources */
};

enum prof_merge_align {
	PROF_MERGE_ALIGN_WALL,  /* by the wall clock at each recording's start */
	PROF_MERGE_ALIGN_STEPS, /* then by what remains between equal executions */
	PROF_MERGE_ALIGN_NONE   /* all start at 0 */
};

struct prof_merge_params {
	enum prof_merge_ranks ranks;
	enum prof_merge_align align;
	const char *command; /* for `meta` */
	/* Called often; @source counts from 0. Return false to stop with ST_INTERRUPTED. May be
	 * NULL. */
	bool (*progress)(void *user, size_t source, const char *what);
	void *user;
};

/* A source and the results of its merge. The caller sets @path only. */
struct prof_merge_source {
	const char *path;
	enum prof_state state;
	bool alive;          /* still being recorded: only committed rows are merged */
	bool failed;         /* its metadata has a reason why the writer ended before the run */
	int64_t rank;        /* its first rank in the merged file */
	size_t ranks;        /* more than 1: it is a merged file */
	bool has_clock;      /* its start time is known */
	int64_t shift_ns;    /* added to its host times */
	int64_t anchors;     /* points in time it shares with the first source */
	int64_t residual_ns; /* median delay of these points relative to the first source */
	int64_t greatest_ns; /* greatest absolute value of the delays */
	int64_t part;        /* of a training resumed from a backup: from 2; otherwise 1 */
	int64_t after_rank;  /* the rank of the previous part if that is merged too; -1: none */
	int64_t same_model;  /* rank whose compiled model it shares; -1: none */
	bool own_model;      /* it has a compiled model unlike those of earlier sources */
	int64_t spans;
};

/* Write the merged database to @out, an empty file that no other process uses. After a failure its
 * contents are undefined. The same source may be given twice. */
enum status prof_merge(const char *out, struct prof_merge_source *sources, size_t count,
		       const struct prof_merge_params *params, struct err *err);

#endif /* PROF_MERGE_H */
