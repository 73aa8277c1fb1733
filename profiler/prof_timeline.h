/*
 * The timeline, by range: tracks, the bars to draw for a window of time, and the span at a
 * position.
 *
 * Reads zones, levels and ranges of rows only: the cost of a picture depends on its columns,
 * never on the size of the file. Works on files that are being written, truncated, or complete.
 */
#ifndef PROF_TIMELINE_H
#define PROF_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "profiler/prof_db.h"

struct prof_track {
	int64_t track_id, rank, ipu; /* IPS_NULL: NULL */
	int clock;                   /* 0 host, 1 device */
	int depth;                   /* greatest depth of its spans + 1; 0: no spans */
	int64_t first_ns, last_ns;   /* of its spans; first > last: none */
	const char *track, *name, *parent;
	int64_t top_id, branch_id; /* the topmost track above it, and that right below; or itself */
};

/* All tracks, device first, then by rank and ipu; then by name, or if tracks have parents, in the
 * file's order of the topmost ones and of those right below them. @arena owns the array. */
enum status prof_timeline_tracks(struct prof_db *db, struct arena *arena, struct prof_track **out,
				 int *count, struct err *err);

/* One bar: a span, or a bucket of many. */
struct prof_bar {
	int64_t start_ns, dur_ns;  /* not clipped; an open span ends at @now_ns */
	int64_t span_id;           /* IPS_NULL: a bucket */
	int64_t site_id;           /* of the span, or the site with most time in the bucket */
	int64_t busy_ns, count;    /* a bucket's totals; for a span its duration and 1 */
	int64_t stage, microbatch; /* IPS_NULL: unknown, or a bucket */
	int64_t step, weight_update, execution;
	int depth;
	char phase; /* 0: unknown or a bucket */
	bool open;
};

/* Return the level for a window: the coarsest whose buckets are no wider than one of @columns
 * cells; -1: spans. */
int prof_timeline_level(int64_t window_ns, int columns);

/*
 * Return the bars of @track_id that overlap [@from_ns, @to_ns), as fine as @columns cells can show;
 * ordered by depth, then start. @arena owns the array. Open spans end at @now_ns.
 */
enum status prof_timeline_bars(struct prof_db *db, int64_t track_id, int64_t from_ns, int64_t to_ns,
			       int columns, int64_t now_ns, struct arena *arena,
			       struct prof_bar **out, int *count, struct err *err);

/* The same at a given level. The bars of a window are the union of those of its parts. */
enum status prof_timeline_bars_at(struct prof_db *db, int64_t track_id, int level, int64_t from_ns,
				  int64_t to_ns, int64_t now_ns, struct arena *arena,
				  struct prof_bar **out, int *count, struct err *err);

/* The order of bars: by depth, then start, then span_id. */
int prof_timeline_order(const struct prof_bar *a, const struct prof_bar *b);

/* One span with all its details. @arena owns the texts; NULL if unknown. */
struct prof_span {
	int64_t span_id, parent_id, track_id, start_ns, dur_ns; /* dur_ns IPS_NULL: open */
	int64_t epoch, execution, weight_update, step, microbatch, replica, ipu, stage;
	int depth;
	char phase;
	const char *track, *clock, *category, *name, *operation, *mode, *arguments; /* "k=v, k=v" */
};

enum status prof_timeline_span(struct prof_db *db, int64_t span_id, struct arena *arena,
			       struct prof_span *out, struct err *err);

/* Find the deepest span of @track_id with depth <= @depth at @time_ns; IPS_NULL: none. */
enum status prof_timeline_at(struct prof_db *db, int64_t track_id, int64_t time_ns, int depth,
			     int64_t *span_id, struct err *err);

/* Find the next (@forward) or previous span of @track_id (or, IPS_NULL, of any track of @clock; -1:
 * any clock) whose name contains @text (case-insensitive; NULL: any), from @time_ns exclusive.
 * IPS_NULL: none. Searches the call sites first, so an unrecorded name costs no search of spans. */
enum status prof_timeline_find(struct prof_db *db, int64_t track_id, int clock, const char *text,
			       int64_t time_ns, bool forward, int64_t *span_id, struct err *err);

/* Among the spans of @span's track whose names contain @text, return the position of @span, from 1,
 * and their number; 0 and 0 if the track has more than @most spans, which are not counted. */
struct prof_span;
enum status prof_timeline_hits(struct prof_db *db, const struct prof_span *span, const char *text,
			       int64_t most, int64_t *hit, int64_t *hits, struct err *err);

/* As prof_timeline_find(), but reads about *@budget spans at most (whole zones) and subtracts those
 * it read without a match; at 0 the search ended before its end. *@budget < 0: no limit. */
enum status prof_timeline_find_near(struct prof_db *db, int64_t track_id, int clock,
				    const char *text, int64_t time_ns, bool forward,
				    int64_t *budget, int64_t *span_id, struct err *err);

/* Read the texts of a call site; @arena owns *@name and *@category. */
enum status prof_timeline_site(struct prof_db *db, int64_t site_id, struct arena *arena,
			       const char **category, const char **name, struct err *err);

/* ---- the device's steps (prof_timeline_steps.c) ---------------------------------------------- */

/* A step of a trace, the same in every run of it. IPS_NULL, NaN and NULL if unknown. The arena owns
 * the texts. */
struct prof_step {
	int64_t ipu;                 /* from the run's first_ipu */
	int64_t start_cycle, cycles; /* from the run's start_cycle */
	int64_t trace_step, stage, microbatch, program_id;
	int64_t overlapped, active_tiles, bytes_in, bytes_out;
	double tile_balance, active_tile_balance;
	const char *type, *name, *operation;
	char phase;
};

/* The template of all runs with the same steps. */
struct prof_trace {
	int64_t trace_id;
	double clock_hz;         /* NaN: unknown */
	const char *name;        /* NULL: no such trace */
	struct prof_step *steps; /* by ipu, then start_cycle; owned by the arena */
	int count;
	int64_t cycles; /* from a run's start to the end of its last step */
};

enum status prof_timeline_trace(struct prof_db *db, int64_t trace_id, struct arena *arena,
				struct prof_trace *out, struct err *err);

/* One run of a trace, on the IPUs of one replica. */
struct prof_run {
	int64_t run_id, trace_id, rank, execution, weight_update, first_step, first_microbatch;
	int64_t replica, first_ipu, start_cycle;
};

/* Return the runs of @rank that may overlap cycles [@from, @to), in storage order; if there are
 * more than @most, one of every *@stride, evenly spaced (*@stride 1: all). Found by bisection:
 * runs are stored in order of rank, execution, weight update, replica and cycle. @arena owns the
 * array. */
enum status prof_timeline_runs(struct prof_db *db, int64_t rank, int64_t from, int64_t to, int most,
			       struct arena *arena, struct prof_run **out, int *count,
			       int64_t *stride, struct err *err);

/* A pipeline run's bubble on one clock: a row of the view bubbles. */
struct prof_bubble {
	int clock; /* 0 host, 1 device */
	int64_t rank, execution, weight_update, replica, stages, microbatches;
	int64_t makespan_ns, busy_ns, ramp_up_ns, ramp_down_ns, imbalance_ns, communication_ns;
	double idle_fraction, theory_idle_fraction;
};

/* Return the bubbles of the executions @first .. @last of @rank, on both clocks, in storage order,
 * without those of one stage, which is no pipeline (older recordings have them). If there are more
 * than @most, return none and set *@more. @arena owns the array. */
enum status prof_timeline_bubbles(struct prof_db *db, int64_t rank, int64_t first, int64_t last,
				  int most, struct arena *arena, struct prof_bubble **out,
				  int *count, bool *more, struct err *err);

/* ---- counters (prof_timeline_counters.c) ----------------------------------------------------- */

/* A series of samples: one counter on one track. The arena owns the texts. */
struct prof_counter {
	int64_t track_id, site_id, rank; /* rank IPS_NULL: NULL */
	int clock;                       /* 0 host, 1 device */
	const char *track, *name;
};

/* Return the first @most series with samples, by track_id, then site_id. @arena owns the array. */
enum status prof_timeline_counters(struct prof_db *db, int most, struct arena *arena,
				   struct prof_counter **out, int *count, struct err *err);

/* The samples of a counter in one cell of a window. NaN are not counted. */
struct prof_samples_cell {
	int64_t count;
	double least, greatest, total;
	double last; /* the last sample, or the mean of the last bucket */
	int64_t last_ns;
};

/* Fill @cells (the caller's, @columns of them) with the samples in [@from_ns, @to_ns). Buckets at
 * the window's ends are counted whole. */
enum status prof_timeline_samples(struct prof_db *db, const struct prof_counter *counter,
				  int64_t from_ns, int64_t to_ns, int columns,
				  struct prof_samples_cell *cells, struct err *err);

/* Return the last sample at @time_ns or before in @out->last; @out->count 0: none. Its other
 * members describe some samples before it. */
enum status prof_timeline_sample_at(struct prof_db *db, const struct prof_counter *counter,
				    int64_t time_ns, struct prof_samples_cell *out,
				    struct err *err);

#endif /* PROF_TIMELINE_H */
