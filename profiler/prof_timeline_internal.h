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

/*
 * A series of reads. Errors are sticky: after the first failure nothing more is read, there are no
 * rows, and numbers are IPS_NULL or within the bounds given, so that the last status is checked
 * alone.
 */
struct prof_timeline {
	struct prof_db *db;
	struct err *err;    /* of the caller; may be NULL */
	enum status status; /* of the first failure */
	bool begun;         /* there is a snapshot to end */
};

static inline void prof__timeline_nomem(struct prof_timeline *t)
{
	if (t->status == ST_OK)
		t->status = err_nomem(t->err);
}

/* prof_timeline_rows.c */

/* Begin a snapshot: all reads until prof__timeline_end() see the same state of the file. */
struct prof_timeline prof__timeline_begin(struct prof_db *db, struct err *err);
enum status prof__timeline_end(struct prof_timeline *t);

/* Open a query; NULL after a failure, which the functions of a query accept. */
struct prof_query *prof__timeline_ask(struct prof_timeline *t, const char *sql);
/* Step to the next row; false: there is none. */
bool prof__timeline_next(struct prof_timeline *t, struct prof_query *query);

/* As prof_db_number(), with @id bound to :id, or IPS_NULL: the statement has no :id. */
int64_t prof__timeline_number(struct prof_timeline *t, const char *sql, int64_t id);

/* Copy @text, which may be NULL. */
char *prof__timeline_text(struct prof_timeline *t, struct arena *arena, const char *text);

/* Read the current row of a PROF_ROW_COLUMNS query; an open span lasts until @now_ns. */
void prof__timeline_read(const struct prof_query *query, int64_t now_ns,
			 struct prof_timeline_row *out);

/* The same for many rows, of a PROF_LEAN_COLUMNS query: the context is looked up only if it differs
 * from that of the previous row, which is in *@known (PROF_NO_CONTEXT at first). */
void prof__timeline_read_lean(struct prof_timeline *t, const struct prof_query *query,
			      int64_t now_ns, struct prof_timeline_context *known,
			      struct prof_timeline_row *out);

/*
 * Read the row @span_id while walking up from depth *@below (INT_MAX at first); *@below becomes the
 * row's depth. A row that is not less deep is no ancestor. Return false if there is none, or
 * @span_id is IPS_NULL.
 */
bool prof__timeline_ancestor(struct prof_timeline *t, int64_t span_id, int64_t now_ns, int *below,
			     struct prof_timeline_row *out);

/*
 * Among the rows @first .. @last, sorted by start, find the first that starts at @time_ns or later;
 * @last + 1 if none does.
 */
int64_t prof__timeline_first_at(struct prof_timeline *t, int64_t first, int64_t last,
				int64_t time_ns);

/* Find the last span of @track_id that starts before @time_ns; IPS_NULL if none does. */
int64_t prof__timeline_last_before(struct prof_timeline *t, int64_t track_id, int64_t time_ns);

#endif /* PROF_TIMELINE_INTERNAL_H */
