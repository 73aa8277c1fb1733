/*
 * The pre-aggregated levels of one track, computed incrementally.
 *
 * Spans of one depth of a track never overlap and end in order, so one open bucket per depth and
 * level is enough. A span enters the finest level of which it covers fewer than PROF_LONG buckets.
 * When a bucket closes, and at each commit, its contents are added to the next coarser level, so
 * coarse levels cost nothing per span. A bucket emits increments, which the database adds up, so it
 * may be emitted in many parts and in any order.
 *
 * Levels whose buckets hold few spans are not stored: readers read the spans instead. So each batch
 * of spans (a zone) has a finest level, and increments of finer levels are discarded.
 *
 * One thread (the writer). Increments are collected in arrays owned here until they are written.
 */
#ifndef PROF_LEVELS_H
#define PROF_LEVELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/minmax.h"
#include "profiler/prof_insert.h"

#define PROF_LEVELS      13
#define PROF_LEVEL_SHIFT 16 /* of level 0 */
#define PROF_LONG        4  /* number of buckets that makes a span long */
#define PROF_LONG_SHIFT  2
#define PROF_DENSE       4  /* mean number of spans per bucket that makes a level worth storing */
#define PROF_CROWD       64 /* number of spans in one bucket that readers must not have to read */

static inline int prof_level_shift(int level)
{
	return PROF_LEVEL_SHIFT + 2 * level;
}

/* Return the finest level that a span of @dur_ns enters; PROF_LEVELS: none. The span is long at the
 * level before it (-1: at none). */
static inline int prof_level_enter(int64_t dur_ns)
{
	int bits;

	if (dur_ns < (int64_t)1 << (PROF_LEVEL_SHIFT + PROF_LONG_SHIFT))
		return 0;
	bits = 63 - __builtin_clzll((unsigned long long)dur_ns);
	bits = (bits - PROF_LEVEL_SHIFT - PROF_LONG_SHIFT) / 2 + 1;
	return min(PROF_LEVELS, bits);
}

struct prof_share {
	uint32_t site; /* 0: free */
	int64_t ns;
};

#define PROF_SHARES 4

struct prof_bucket {
	int64_t index, busy_ns, count;
	struct prof_share part[PROF_SHARES];  /* since the last increment */
	struct prof_share whole[PROF_SHARES]; /* since the bucket opened */
};

/* The amounts that a bucket adds to its row. The share is absolute. */
struct prof_increment {
	int64_t bucket, busy_ns, count;
	struct prof_share share;
	uint32_t depth;
	int level;
};

struct prof_levels {
	struct prof_bucket (*depths)[PROF_LEVELS];
	size_t depth_count, depth_capacity;
	struct prof_increment *increments;
	size_t count, capacity;
	bool failed; /* out of memory: an increment is missing */
};

void prof_levels_fini(struct prof_levels *levels);
/* Free the array of increments, of which there are none; with @depths the buckets, which are empty,
 * too: the shares of what they held are lost. */
void prof_levels_free_empty(struct prof_levels *levels, bool depths);
/* Add a span to its levels, starting at @finest. */
void prof_levels_add(struct prof_levels *levels, uint32_t depth, int64_t start_ns, int64_t dur_ns,
		     uint32_t site, int finest);
/* Emit the increments of all open buckets. */
void prof_levels_flush(struct prof_levels *levels);
/* Return the finest level worth storing for spans whose starts lie within @length_ns: its buckets
 * are dense or crowded, or readers at the coarsest level would meet many such zones in one
 * bucket. */
int prof_levels_finest(const struct prof_levels *levels, int64_t length_ns);
/* Retain the increments from level @finest on, one per bucket, sorted by level, bucket and depth.
 * ST_NOMEM: one is missing. */
enum status prof_levels_compact(struct prof_levels *levels, int finest, struct err *err);

/* The same for counters: one series per call site of a track; samples instead of spans. */
struct prof_samples {
	int64_t index, count;
	double least, greatest, total;
};

struct prof_series {
	uint32_t site;
	struct prof_samples levels[PROF_LEVELS];
};

struct prof_sample_increment {
	uint32_t site;
	int level;
	struct prof_samples samples;
};

struct prof_counters {
	struct prof_series *series;
	size_t series_count, series_capacity;
	struct prof_sample_increment *increments;
	size_t count, capacity;
	bool failed;
};

void prof_counters_fini(struct prof_counters *counters);
void prof_counters_free_empty(struct prof_counters *counters); /* the array of increments */
void prof_counters_add(struct prof_counters *counters, uint32_t site, int64_t time_ns,
		       double value); /* NaN: not counted */

/* ---- rows ------------------------------------------------------------------------------------ */

/* The INSERT statements of zones and levels, for the recorder and for merging. */

#define PROF_INSERT_ZONE                                                                           \
	"INSERT OR FAIL INTO zones (kind, track_id, first_ns, first_row, last_ns, last_row, "      \
	"finest)"
#define PROF_INSERT_SPARSE_ZONE                                                                    \
	"INSERT OR FAIL INTO sparse_zones (track_id, finest, first_ns, first_row, last_ns, "       \
	"last_row)"
#define PROF_INSERT_LONG "INSERT OR FAIL INTO long_spans (track_id, level, start_ns, span_id)"
#define PROF_INSERT_LEVEL                                                                          \
	"INSERT INTO span_levels (track_id, level, bucket, depth, busy_ns, count, site_id, "       \
	"site_ns)"
#define PROF_INSERT_LEVEL_TAIL                                                                     \
	"ON CONFLICT DO UPDATE SET busy_ns = busy_ns + excluded.busy_ns, "                         \
	"count = count + excluded.count, "                                                         \
	"site_id = iif(excluded.site_ns >= site_ns, excluded.site_id, site_id), "                  \
	"site_ns = max(excluded.site_ns, site_ns)"
#define PROF_INSERT_COUNTER_LEVEL                                                                  \
	"INSERT INTO counter_levels (track_id, site_id, level, bucket, count, least, greatest, "   \
	"total)"
#define PROF_INSERT_COUNTER_LEVEL_TAIL                                                             \
	"ON CONFLICT DO UPDATE SET count = count + excluded.count, "                               \
	"least = min(least, excluded.least), greatest = max(greatest, excluded.greatest), "        \
	"total = total + excluded.total"

/* Insert the increments of @levels from level @finest on as rows of PROF_INSERT_LEVEL, then clear
 * them. */
enum status prof__insert_levels(struct prof_insert *rows, int64_t track_id,
				struct prof_levels *levels, int finest, struct err *err);
/* The same for counters and PROF_INSERT_COUNTER_LEVEL; open buckets are flushed first. */
enum status prof__insert_counters(struct prof_insert *rows, int64_t track_id,
				  struct prof_counters *counters, struct err *err);

#endif /* PROF_LEVELS_H */
