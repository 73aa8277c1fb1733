/*
 * Sums of appended rows, maintained while the rows are written: the totals that reports show for
 * a whole run.
 *
 * Each kind has groups (a stage's forwards, a metric, ...), identified by their keys, and one row
 * per group in a table of its own. Changed groups are written in the commit of the rows they sum,
 * so sums and rows always agree. A group holds its sums since it was created, so its row is
 * replaced, not incremented. Kinds that may have many groups discard them at PROF_SUM_GROUPS; a
 * group that appears again afterwards starts a second row: readers add rows of the same keys.
 *
 * One thread (the writer), which owns them.
 */
#ifndef PROF_SUMS_H
#define PROF_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/map.h"
#include "profiler/prof_insert.h"

#define PROF_SUM_GROUPS 4096u /* of stages, bubbles, epochs: then written and discarded */
#define PROF_SUM_KEYS   6
#define PROF_SUM_VALUES 29

enum prof_sum_kind {
	PROF_SUM_STAGE,
	PROF_SUM_BUBBLE,
	PROF_SUM_EXECUTION,
	PROF_SUM_METRIC,
	PROF_SUM_HEALTH,
	PROF_SUM_OVERHEAD,
	PROF_SUM_TENSOR,
	PROF_SUM_KINDS
};

/* X(statistic): the reals of a tensor's rows whose minimum and maximum are recorded. */
#define PROF_SUM_TENSOR_MAP(X)                                                                     \
	X(mean)                                                                                    \
	X(std)                                                                                     \
	X(min)                                                                                     \
	X(max)                                                                                     \
	X(abs_max)                                                                                 \
	X(abs_min_nonzero)                                                                         \
	X(l1)                                                                                      \
	X(l2)                                                                                      \
	X(inactive)                                                                                \
	X(update_ratio)

struct prof_writer;

/* IPS_NULL and NaN: no value yet. */
union prof_sum_value {
	int64_t i;
	double r;
};

struct prof_sum_group {
	int64_t key[PROF_SUM_KEYS];
	union prof_sum_value value[PROF_SUM_VALUES];
	bool changed;
};

struct prof_sums {
	struct prof_insert insert; /* prepared at first use */
	struct prof_sum_group *groups;
	size_t count, capacity;
	struct map map;    /* of the groups */
	uint32_t *changed; /* groups to write */
	size_t changed_count, changed_capacity;
	int64_t forgotten; /* discarded groups: the first one here has sum_id forgotten + 1 */
};

enum prof_sum_column_kind {
	PROF_SUM_INT,
	PROF_SUM_REAL,
	PROF_SUM_MODE,
	PROF_SUM_PHASE
};

struct prof_sum_column {
	const char *name;
	enum prof_sum_column_kind kind;
};

struct prof_sum_type {
	const char *table;
	const struct prof_sum_column *columns; /* after sum_id and rank: keys, then values */
	size_t keys, values;
	bool forget; /* there may be many groups: discard them at PROF_SUM_GROUPS */
	/* Compute the keys of the group that @row (a row's public struct) belongs to. */
	void (*key)(struct prof_writer *writer, const void *row, int64_t *key);
	void (*add)(struct prof_writer *writer, union prof_sum_value *sum, const void *row);
};

extern const struct prof_sum_type prof_sum_types[PROF_SUM_KINDS];

/* An overhead row, to be added to its sum. */
struct prof_sum_overhead {
	int64_t time_ns, events, rows, bytes, dropped, record_ns, write_ns;
};

#endif /* PROF_SUMS_H */
