/*
 * Sums of appended rows: what a report says of a whole run, kept while its rows are written.
 *
 * Each kind has groups (a stage's forwards, a metric, ...), found by their keys, and a row per
 * group in a table of its own. Those that changed are written with the commit of the rows they sum,
 * so sums and rows agree at any moment. Sums here are those since the group came, so a row is
 * replaced, not added to; groups of which there may be many are forgotten at PROF_SUM_GROUPS, and
 * begin a second row when they come again: readers add rows of the same keys.
 *
 * One thread (the writer), which owns them.
 */
#ifndef PROF_SUMS_H
#define PROF_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/map.h"
#include "profiler/prof_sql.h"

#define PROF_SUM_GROUPS 4096u /* of stages, bubbles, epochs: then written and forgotten */
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

/* X(statistic): the reals of a tensor's rows whose least and greatest are kept. */
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

/* IPS_NULL and NaN: nothing known yet. */
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
	int64_t forgotten; /* groups: the first one here has sum_id forgotten + 1 */
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
	bool forget; /* groups may be many */
	/* The group that @row (a row's public struct) belongs to. */
	enum status (*key)(struct prof_writer *writer, const void *row, int64_t *key);
	void (*add)(struct prof_writer *writer, union prof_sum_value *sum, const void *row);
};

extern const struct prof_sum_type prof_sum_types[PROF_SUM_KINDS];

/* What an overhead row adds. */
struct prof_sum_overhead {
	int64_t time_ns, events, rows, bytes, dropped, record_ns, write_ns;
};

#endif /* PROF_SUMS_H */
