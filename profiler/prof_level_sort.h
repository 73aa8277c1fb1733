/*
 * The rows of span_levels in order of their key, from increments in any order: a table that is
 * loaded (prof_bulk.h) takes them once, in order, where INSERT would look each up.
 *
 * An external sort: increments fill a buffer, which is sorted and written to an unnamed file as a
 * run when it is full; at the end the runs are merged through the same buffer. Increments of one
 * bucket are added up as PROF_INSERT_LEVEL_TAIL does, in the order in which they were put.
 *
 * One thread (the writer). Errors: ST_NOMEM, ST_NOSPACE, ST_IO, ST_LIMIT (more than 2,000 runs, or
 * more runs than rows of the buffer).
 */
#ifndef PROF_LEVEL_SORT_H
#define PROF_LEVEL_SORT_H

#include "profiler/prof_levels.h"

struct prof_level_sort; /* opaque */

/* @beside: the path whose folder takes the file; borrowed. @rows: of the buffer. */
enum status prof_level_sort_new(struct prof_level_sort **out, const char *beside, size_t rows,
				struct err *err);
void prof_level_sort_free(struct prof_level_sort *sort); /* accepts NULL */

/* As prof__insert_levels(), but put the increments here. */
enum status prof_level_sort_put(struct prof_level_sort *sort, int64_t track_id,
				struct prof_levels *levels, int finest, struct err *err);

/* Put all rows into @rows, in order of track, level, bucket and depth. Only once. */
enum status prof_level_sort_load(struct prof_level_sort *sort, struct prof_insert *rows,
				 struct err *err);

#endif /* PROF_LEVEL_SORT_H */
