/*
 * Shared parts of the timeline: one snapshot, rows of spans, and lookup of rows by time and by
 * ancestry. Only for prof_timeline*.c; threads as in prof_timeline.h.
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
 * Bounds for damaged files: values that no writer produces must not overflow a sum or make a walk
 * cyclic.
 */
#define PROF_TIME_MOST  (INT64_C(1) << 61)
#define PROF_DEPTH_MOST 65535

struct prof_timeline_row {
	struct prof_bar bar;
	int64_t parent_id; /* IPS_NULL: none */
};

/* The columns of a context; consecutive spans mostly share one. */
struct prof_timeline_context {
	int64_t context_id; /* IPS_NULL: no context, all members unknown */
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

/* Begin a snapshot: all reads until prof__timeline_end() see the same state of the file. */
enum status prof__timeline_begin(struct prof_db *db, struct err *err);
void prof__timeline_end(struct prof_db *db);

/* As prof_db_number(), with @id bound to :id. */
enum status prof__timeline_number(struct prof_db *db, const char *sql, int64_t id, int64_t *out,
				  struct err *err);

/* Read the current row of a PROF_ROW_COLUMNS query; an open span lasts until @now_ns. */
void prof__timeline_read(const struct prof_query *query, int64_t now_ns,
			 struct prof_timeline_row *out);

/* The same for many rows, of a PROF_LEAN_COLUMNS query: the context is looked up only if it differs
 * from that of the previous row, which is in *@known (PROF_NO_CONTEXT at first). */
enum status prof__timeline_read_lean(struct prof_db *db, const struct prof_query *query,
				     int64_t now_ns, struct prof_timeline_context *known,
				     struct prof_timeline_row *out, struct err *err);

/*
 * Read the row @span_id while walking up from depth *@below (INT_MAX at first); *@below becomes the
 * row's depth. A row that is not less deep is no ancestor. *@found is false if there is none.
 */
enum status prof__timeline_ancestor(struct prof_db *db, int64_t span_id, int64_t now_ns, int *below,
				    struct prof_timeline_row *out, bool *found, struct err *err);

/*
 * Among the rows @first .. @last, sorted by start, find the first that starts at @time_ns or later;
 * @last + 1 if none does.
 */
enum status prof__timeline_first_at(struct prof_db *db, int64_t first, int64_t last,
				    int64_t time_ns, int64_t *out, struct err *err);

/* Find the last span of @track_id that starts before @time_ns; IPS_NULL if none does. */
enum status prof__timeline_last_before(struct prof_db *db, int64_t track_id, int64_t time_ns,
				       int64_t *span_id, struct err *err);

#endif /* PROF_TIMELINE_INTERNAL_H */
