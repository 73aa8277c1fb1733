/*
 * The INSERT statements of zones and levels, and the rows of levels, for the recorder and for
 * merging. On the thread of the database they go to.
 */
#ifndef PROF_INSERTS_H
#define PROF_INSERTS_H

#include "profiler/prof_levels.h"
#include "profiler/prof_sql.h"

#define PROF_INSERT_ZONE                                                                           \
	"INSERT INTO zones (kind, track_id, first_ns, first_row, last_ns, last_row, finest)"
#define PROF_INSERT_SPARSE_ZONE                                                                    \
	"INSERT INTO sparse_zones (track_id, finest, first_ns, first_row, last_ns, last_row)"
#define PROF_INSERT_LONG "INSERT INTO long_spans (track_id, level, start_ns, span_id)"
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

/* What @levels has gathered, from level @finest on, as rows of PROF_INSERT_LEVEL; then it has
 * nothing. */
enum status prof__insert_levels(struct prof_insert *rows, int64_t track_id,
				struct prof_levels *levels, int finest, struct err *err);
/* The same for counters and PROF_INSERT_COUNTER_LEVEL; open buckets are closed first. */
enum status prof__insert_counters(struct prof_insert *rows, int64_t track_id,
				  struct prof_counters *counters, struct err *err);

#endif /* PROF_INSERTS_H */
