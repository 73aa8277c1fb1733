/*
 * Iterate over the spans of a recording, track by track, ordered by start, properly nested: the
 * input of every export of spans.
 *
 * The walk reads ranges of rows without joins, each range in a separate read transaction, so that a
 * running recording is not blocked. Rows recorded after the walk began are left out. Memory does
 * not grow with the number of spans.
 *
 * Recordings nest. In a file that does not (of another program, or damaged), a span that does not
 * fit goes to a further lane of its track and is counted. An open span ends with the recording; a
 * span nested in an open one that ends later is treated as open, too.
 *
 * Threading: one thread per walk. Ownership: the walk owns tracks and texts.
 */
#ifndef REPORT_WALK_H
#define REPORT_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include <ipuscope/profiler.h>

#include "common/arena.h"
#include "common/err.h"
#include "common/jsonw.h"
#include "common/str.h"
#include "profiler/prof_timeline.h"
#include "reports/export/report_export.h"

/* ---- pieces ---------------------------------------------------------------------------------- */

/* A cache of JSON fragments for interned rows (strings, sites, contexts), rendered once per block.
 * Memory is bounded: ids are divided into blocks, and a new block evicts the one in its slot. A
 * cache must not outlive its database handle. */

#define REPORT_PIECES_SHIFT  8
#define REPORT_PIECES_IDS    (1 << REPORT_PIECES_SHIFT) /* ids per block */
#define REPORT_PIECES_BLOCKS 64

struct report_piece {
	const char *bytes; /* no terminating 0 */
	size_t length;
};

struct report_pieces_block {
	int64_t number, last; /* block number; the greatest id that had a row */
	uint64_t round;       /* value of pieces->round when it was read */
	size_t at[REPORT_PIECES_IDS + 1];
	struct str text;
};

struct report_pieces {
	struct prof_db *db;
	struct err *err; /* sticky: once set, every piece is empty */
	/* Selects the id and the rendered columns, :first <= id <= :last, ordered by id. */
	const char *sql;
	void (*render)(const struct prof_query *query, struct str *out);
	struct report_pieces_block *blocks;
	uint64_t round; /* incremented by the user when rows may have been added */
};

void report_pieces_init(struct report_pieces *pieces, struct prof_db *db, const char *sql,
			void (*render)(const struct prof_query *query, struct str *out),
			struct err *err);
void report_pieces_fini(struct report_pieces *pieces); /* accepts a zeroed one */

/* Load the block of @id. */
void report__pieces_load(struct report_pieces *pieces, int64_t id);

/* Return the piece of @id, valid until the next call. Empty if @id is NULL or has no row. */
static inline struct report_piece report_pieces_get(struct report_pieces *pieces, int64_t id)
{
	const int64_t number = id >> REPORT_PIECES_SHIFT;
	struct report_pieces_block *block = &pieces->blocks[number & (REPORT_PIECES_BLOCKS - 1)];
	const int at = (int)(id & (REPORT_PIECES_IDS - 1));

	if (id != IPS_NULL &&
	    (block->number != number || (id > block->last && block->round != pieces->round)))
		report__pieces_load(pieces, id);
	if (id == IPS_NULL || block->number != number)
		return (struct report_piece){"", 0};
	return (struct report_piece){str_peek(&block->text) + block->at[at],
				     block->at[at + 1] - block->at[at]};
}

/* Render the columns after the id as members of an object, without braces. Members are named like
 * the columns; NULL ones are omitted. */
void report_pieces_members(const struct prof_query *query, struct str *out);

/* ---- the walk -------------------------------------------------------------------------------- */

#define REPORT_WALK_LANES 64 /* per track */

struct report_walk_span {
	int64_t span_id, site_id, start_ns, dur_ns, context_id;
	size_t depth; /* on its lane */
	int lane;     /* 0: the track's main lane */
	bool open;
	struct report_piece arguments; /* the span's arguments, as members of an object */
};

/* An enclosing span. */
struct report_walk_enclosing {
	int64_t site_id, end_ns;
	bool open;
};

struct report_walk_lane {
	struct report_walk_enclosing *enclosing; /* outermost first */
	size_t count, capacity;
	int64_t last_ns; /* the latest start */
};

struct report_walk {
	const struct report_export_request *request;
	struct prof_db *db;
	struct err *err; /* sticky: after a failure the walk ends, and selects nothing */
	struct arena arena;
	struct prof_track *tracks;
	const struct prof_track **by_id; /* tracks ordered by track_id */
	int track_count;
	int64_t last_span; /* greatest id when the walk began */
	int64_t end_ns[2]; /* end of the recording, on each clock */
	struct report_walk_execution {
		int64_t rank, from_ns[2], to_ns[2]; /* on each clock; an empty range: unknown */
	} * ranks;                                  /* the selected execution of each rank */
	size_t rank_count, rank_capacity;
	struct report_pieces executions;
	/* State of the current track. */
	const struct prof_track *track;
	const struct report_walk_callbacks *callbacks;
	struct report_walk_lane lanes[REPORT_WALK_LANES];
	bool has_arguments;
	struct prof_query *arguments; /* of the current range; NULL: none left */
	int64_t argument_span;
	struct str text;
	struct report_walk_counts {
		int64_t spans, open; /* passed to the taker; open: part of these */
		int64_t moved, lost; /* moved to further lanes; lost: no lane was left */
	} counts;
};

/* The result is in @err, which the walk uses until it is closed; not NULL. */
void report_walk_open(struct report_walk *walk, const struct report_export_request *request,
		      struct err *err);
void report_walk_close(struct report_walk *walk); /* accepts a zeroed one */

/* Return true if the request selects the track. */
bool report_walk_selects_track(const struct report_walk *walk, const struct prof_track *track);

/* Append an argument, the name and value in the columns 1 and 2 of @query, to walk->text as a
 * member of an object; one with the name of a key is called "arg.NAME". */
void report_walk_add_argument(struct report_walk *walk, const struct prof_query *query);

/* Look up a track. NULL: unknown, or not selected. */
const struct prof_track *report_walk_track(const struct report_walk *walk, int64_t track_id);

/* Return whether the request selects a row by its time and context. */
bool report_walk_selects_row(struct report_walk *walk, int64_t from_ns, int64_t to_ns,
			     int64_t context_id);

/* Return true if the request selects a point in time without a context. With --execution: if it
 * lies within the execution of the track's rank. */
bool report_walk_selects_point(const struct report_walk *walk, const struct prof_track *track,
			       int64_t time_ns);

/* Callbacks for the spans of a track, parents before children. */
struct report_walk_callbacks {
	void (*enter)(void *user, const struct prof_track *track,
		      const struct report_walk_span *span);
	/* A span of nonzero length ended: after its children, before the next span on @lane. May be
	 * NULL. */
	void (*leave)(void *user, const struct prof_track *track,
		      const struct report_walk_enclosing *span, int lane);
	void *user;
};

void report_walk_spans(struct report_walk *walk, const struct prof_track *track,
		       const struct report_walk_callbacks *callbacks);

/* Add notes on irregularities of the walk, for report_export_print_result(). */
void report_walk_notes(const struct report_walk *walk, struct str *notes);

/* Add a line "COUNT WHAT" if @count is not 0. */
void report_walk_note(struct str *notes, int64_t count, const char *one, const char *many);

/* ---- call sites ------------------------------------------------------------------------------ */

/* The call sites of a recording, by id, for exports whose spans refer to a shared list of names.
 * Memory grows with the number of call sites, not of spans. */

struct report_site {
	int64_t site_id, line; /* line IPS_NULL: unknown */
	const char *name, *file;
};

struct report_sites {
	struct arena arena;        /* of the texts */
	struct report_site *items; /* ordered by id; the last one stands for unknown ids */
	size_t count, capacity;
};

/* Does nothing after an earlier failure, which is in @err. */
void report_sites_read(struct report_sites *sites, struct prof_db *db, struct err *err);
void report_sites_free(struct report_sites *sites); /* accepts a zeroed one */

/* Index of @site_id in items. */
size_t report_sites_find(const struct report_sites *sites, int64_t site_id);

#endif /* REPORT_WALK_H */
