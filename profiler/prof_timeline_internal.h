/*
 * What the parts of the timeline share: one snapshot, rows of spans, and the two ways to a row, by
 * time and by ancestry. Only for prof_timeline*.c; threads as in prof_timeline.h.
 */
#ifndef PROF_TIMELINE_INTERNAL_H
#define PROF_TIMELINE_INTERNAL_H

#include "profiler/prof_timeline.h"

#define PROF_ROW_COLUMNS                                                                           \
	"SELECT r.span_id, r.start_ns, r.dur_ns, r.site_id, r.depth, r.parent_back, c.stage, "     \
	"c.microbatch, c.step, c.weight_update, c.phase, c.execution "

#define PROF_LEAN_COLUMNS                                                                          \
	"SELECT r.span_id, r.start_ns, r.dur_ns, r.site_id, r.depth, r.parent_back, r.context_id "

/*
 * Files may be damaged: what no writer writes must not overflow a sum or turn a walk into a circle.
 */
#define PROF_TIME_MOST  (INT64_C(1) << 61)
#define PROF_DEPTH_MOST 65535

struct prof_timeline_row {
	struct prof_bar bar;
	int64_t parent_id; /* IPS_NULL: none */
};

/* What a context says of its spans; neighbours mostly share one. */
struct prof_timeline_context {
	int64_t context_id; /* IPS_NULL: none, and nothing is known */
	int64_t stage, microbatch, step, weight_update, execution;
	char phase;
};

#define PROF_NO_CONTEXT                                                                            \
	(struct prof_timeline_context)                                                             \
	{                                                                                          \
		IPS_NULL, IPS_NULL, IPS_NULL, IPS_NULL, IPS_NULL, IPS_NULL, 0                      \
	}

struct prof_timeline_zone {
	int64_t first_row, last_row;
};

static inline int64_t prof__within(int64_t value, int64_t least, int64_t most)
{
	return value < least ? least : value > most ? most : value;
}

/* prof_timeline_rows.c */

/* All that is read in between is of one moment. */
enum status prof__timeline_begin(struct prof_db *db, struct err *err);
void prof__timeline_end(struct prof_db *db);

/* prof_db_number() with @id as @sql's :id. */
enum status prof__timeline_number(struct prof_db *db, const char *sql, int64_t id, int64_t *out,
				  struct err *err);

/* The row of PROF_ROW_COLUMNS; an open span lasts until @now_ns. */
void prof__timeline_read(const struct prof_query *query, int64_t now_ns,
			 struct prof_timeline_row *out);

/* For many rows in a row: that of PROF_LEAN_COLUMNS, whose context is looked up where it is not the
 * one before, which is *@known (PROF_NO_CONTEXT at first). */
enum status prof__timeline_read_lean(struct prof_db *db, const struct prof_query *query,
				     int64_t now_ns, struct prof_timeline_context *known,
				     struct prof_timeline_row *out, struct err *err);

/*
 * The row @span_id, on the way up from depth *@below (INT_MAX at first), which is the row's depth
 * afterwards: a parent is less deep. *@found false: there is none.
 */
enum status prof__timeline_ancestor(struct prof_db *db, int64_t span_id, int64_t now_ns, int *below,
				    struct prof_timeline_row *out, bool *found, struct err *err);

/*
 * Of the rows @first .. @last, in order of start, the first that starts at @time_ns or later;
 * @last + 1: none.
 */
enum status prof__timeline_first_at(struct prof_db *db, int64_t first, int64_t last,
				    int64_t time_ns, int64_t *out, struct err *err);

/* The last span of @track_id that starts before @time_ns; IPS_NULL: none. */
enum status prof__timeline_last_before(struct prof_db *db, int64_t track_id, int64_t time_ns,
				       int64_t *span_id, struct err *err);

#endif /* PROF_TIMELINE_INTERNAL_H */
