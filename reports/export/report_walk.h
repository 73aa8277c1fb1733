/*
 * The spans of a recording, track by track, in order of start, properly nested: what every export
 * of them reads.
 *
 * Ranges of rows are read, never a join, each in a read transaction of its own, so that a run that
 * is being recorded is not held up; what it records after the walk began is left out. Memory does
 * not grow with the spans.
 *
 * Recordings nest. Where a file says otherwise (it was made by others, or is damaged), a span that
 * does not fit is put on a further lane of its track, and counted. An open span ends with the
 * recording; what ended later, inside an open one, is taken as open too.
 *
 * One thread per walk. Ownership: tracks and texts are the walk's.
 */
#ifndef REPORT_WALK_H
#define REPORT_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include <ipuscope/profiler.h>

#include "common/arena.h"
#include "common/err.h"
#include "common/str.h"
#include "profiler/prof_timeline.h"
#include "reports/export/report_export.h"
#include "reports/export/report_pieces.h"

#define REPORT_WALK_LANES 64 /* of one track */

struct report_walk_span {
	int64_t span_id, site_id, start_ns, dur_ns, context_id;
	size_t depth; /* on its lane */
	int lane;     /* 0: the track's own */
	bool open;
	struct report_piece arguments; /* of its own, as members of an object */
};

/* A span that goes on. */
struct report_walk_around {
	int64_t site_id, end_ns;
	bool open;
};

struct report_walk_lane {
	struct report_walk_around *around; /* outermost first */
	size_t count, capacity;
	int64_t last_ns; /* the latest start */
};

struct report_walk {
	const struct report_export_request *request;
	struct prof_db *db;
	struct arena arena;
	struct prof_track *tracks;
	const struct prof_track **by_id; /* the same, in order of track_id */
	int track_count;
	int64_t last_span;          /* the greatest id when the walk began */
	int64_t end_ns[2];          /* of the recording, on each clock */
	int64_t execution_ns[2][2]; /* first and last ns of the one asked for, on each clock */
	struct report_pieces executions;
	/* Of the track being read. */
	const struct prof_track *track;
	const struct report_walk_taker *taker;
	struct report_walk_lane lanes[REPORT_WALK_LANES];
	bool has_arguments;
	struct prof_query *arguments; /* of the range being read; NULL: none follow */
	int64_t argument_span;
	struct str text;
	struct report_walk_counts {
		int64_t spans, open; /* handed out, and of them open */
		int64_t moved, lost; /* to further lanes; of which there are not enough */
	} counts;
};

enum status report_walk_open(struct report_walk *walk, const struct report_export_request *request,
			     struct err *err);
void report_walk_close(struct report_walk *walk); /* accepts a zeroed one */

/* Is the track asked for? */
bool report_walk_wants(const struct report_walk *walk, const struct prof_track *track);

/* NULL: none, or none that is asked for. */
const struct prof_track *report_walk_track(const struct report_walk *walk, int64_t track_id);

/* Is a time of a row asked for, and its context? */
enum status report_walk_has(struct report_walk *walk, int64_t from_ns, int64_t to_ns,
			    int64_t context_id, bool *has, struct err *err);

/* Is a moment asked for that has no context? With --execution: while it went on. */
bool report_walk_point(const struct report_walk *walk, int clock, int64_t time_ns);

/* Whom the spans of @track are handed to, parents before children. */
struct report_walk_taker {
	enum status (*enter)(void *user, const struct prof_track *track,
			     const struct report_walk_span *span, struct err *err);
	/* The span, of some length, is over: after its children, before what follows on @lane.
	 * NULL: nobody asks. */
	enum status (*leave)(void *user, const struct prof_track *track,
			     const struct report_walk_around *span, int lane, struct err *err);
	void *user;
};

enum status report_walk_spans(struct report_walk *walk, const struct prof_track *track,
			      const struct report_walk_taker *taker, struct err *err);

/* Say what became of @path, as report_export_tell(), with notes on what the walk met before
 * @notes. */
enum status report_walk_tell(const struct report_walk *walk, const char *path, const char *what,
			     const char *notes, struct err *err);

/* Add a line "COUNT WHAT" where @count is not 0. */
void report_walk_note(struct str *notes, int64_t count, const char *one, const char *many);

#endif /* REPORT_WALK_H */
