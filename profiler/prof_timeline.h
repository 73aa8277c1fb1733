/*
 * The timeline, by range: lanes, what to draw for a window of time, and what lies under a cursor.
 *
 * Reads zones, levels and ranges of rows only: the cost of a picture depends on its columns, never
 * on the size of the file. The same for a file that is being written, was cut short, or is
 * complete.
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
};

/* All tracks, device first, then by rank, ipu, name. The array is @arena's. */
enum status prof_timeline_tracks(struct prof_db *db, struct arena *arena, struct prof_track **out,
				 int *count, struct err *err);

/* One bar: a span, or a bucket of many. */
struct prof_bar {
	int64_t start_ns,
		dur_ns;         /* clipped to nothing: as recorded; an open span ends at @now_ns */
	int64_t span_id;        /* IPS_NULL: a bucket */
	int64_t site_id;        /* of the span, or the one with most time in the bucket */
	int64_t busy_ns, count; /* a bucket's contents; for a span its length and 1 */
	int64_t stage, microbatch; /* IPS_NULL: unknown, or a bucket */
	int64_t step, weight_update, execution;
	int depth;
	char phase; /* 0: unknown or a bucket */
	bool open;
};

/* The level that a window is read at: the coarsest whose buckets are no wider than one of @columns
 * cells; -1: spans. */
int prof_timeline_level(int64_t window_ns, int columns);

/*
 * The bars of @track_id that overlap [@from_ns, @to_ns), as fine as @columns cells can show;
 * ordered by depth, then start. The array is @arena's. @now_ns stands in for the end of open spans.
 */
enum status prof_timeline_bars(struct prof_db *db, int64_t track_id, int64_t from_ns, int64_t to_ns,
			       int columns, int64_t now_ns, struct arena *arena,
			       struct prof_bar **out, int *count, struct err *err);

/* The same at a given level. The bars of a window are those of its parts, each once. */
enum status prof_timeline_bars_at(struct prof_db *db, int64_t track_id, int level, int64_t from_ns,
				  int64_t to_ns, int64_t now_ns, struct arena *arena,
				  struct prof_bar **out, int *count, struct err *err);

/* The order of bars: by depth, then start, then span_id. */
int prof_timeline_order(const struct prof_bar *a, const struct prof_bar *b);

/* Everything about one span, for the details pane. Texts are @arena's; NULL where unknown. */
struct prof_span {
	int64_t span_id, parent_id, track_id, start_ns, dur_ns; /* dur_ns IPS_NULL: open */
	int64_t epoch, execution, weight_update, step, microbatch, replica, ipu, stage;
	int depth;
	char phase;
	const char *track, *clock, *category, *name, *operation, *mode, *arguments; /* "k=v, k=v" */
};

enum status prof_timeline_span(struct prof_db *db, int64_t span_id, struct arena *arena,
			       struct prof_span *out, struct err *err);

/* The span of @track_id at depth <= @depth that is deepest at @time_ns; IPS_NULL: none. */
enum status prof_timeline_at(struct prof_db *db, int64_t track_id, int64_t time_ns, int depth,
			     int64_t *span_id, struct err *err);

/* The next (@forward) or previous span of @track_id (or, IPS_NULL, of any track of @clock; -1:
 * any) whose name contains @text (letter case ignored; NULL: any), counted from @time_ns exclusive.
 * IPS_NULL: none. Looks at call sites first, so that what nobody recorded is not searched for. */
enum status prof_timeline_find(struct prof_db *db, int64_t track_id, int clock, const char *text,
			       int64_t time_ns, bool forward, int64_t *span_id, struct err *err);

/* Which of the spans of @span's track whose names contain @text it is, from 1, and how many they
 * are; 0 of 0 where the track has more than @most spans, which are not counted. */
struct prof_span;
enum status prof_timeline_hits(struct prof_db *db, const struct prof_span *span, const char *text,
			       int64_t most, int64_t *hit, int64_t *hits, struct err *err);

/* As prof_timeline_find(), looking at about *@budget spans at most (whole zones), which it lowers
 * by what it looked at in vain; at 0 the search ended before it was through.
 * *@budget < 0: no limit. */
enum status prof_timeline_find_near(struct prof_db *db, int64_t track_id, int clock,
				    const char *text, int64_t time_ns, bool forward,
				    int64_t *budget, int64_t *span_id, struct err *err);

/* The texts of a call site: *@name and *@category are @arena's. */
enum status prof_timeline_site(struct prof_db *db, int64_t site_id, struct arena *arena,
			       const char **category, const char **name, struct err *err);

/* ---- the device's steps (prof_timeline_steps.c) ---------------------------------------------- */

/* A step as its trace has it: the same in every run of the trace. IPS_NULL, NaN and NULL where
 * unknown. Texts are the arena's. */
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
	struct prof_step *steps; /* by ipu, then start_cycle; the arena's */
	int count;
	int64_t cycles; /* from a run's start to its last step's end */
};

enum status prof_timeline_trace(struct prof_db *db, int64_t trace_id, struct arena *arena,
				struct prof_trace *out, struct err *err);

/* One time that a trace ran, on the IPUs of one replica. */
struct prof_run {
	int64_t run_id, trace_id, rank, execution, weight_update, first_step, first_microbatch;
	int64_t replica, first_ipu, start_cycle;
};

/* The runs of @rank that may overlap cycles [@from, @to), in the order they are stored; where there
 * are more than @most, one of every *@stride, spread evenly (*@stride 1: all). Found by bisection:
 * runs are stored in order of rank, execution, weight update, replica and cycle. The array is
 * @arena's. */
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

/* The bubbles of the executions @first .. @last of @rank, on both clocks, as they are stored, but
 * those of one stage, which is no pipeline (older recordings have them); where there are more than
 * @most, none, and *@more is true. The array is @arena's. */
enum status prof_timeline_bubbles(struct prof_db *db, int64_t rank, int64_t first, int64_t last,
				  int most, struct arena *arena, struct prof_bubble **out,
				  int *count, bool *more, struct err *err);

/* ---- counters (prof_timeline_counters.c) ----------------------------------------------------- */

/* A series of samples: what a track says of one counter. Texts are the arena's. */
struct prof_counter {
	int64_t track_id, site_id, rank; /* rank IPS_NULL: NULL */
	int clock;                       /* 0 host, 1 device */
	const char *track, *name;
};

/* The first @most that have samples, by track_id, then site_id. The array is @arena's. */
enum status prof_timeline_counters(struct prof_db *db, int most, struct arena *arena,
				   struct prof_counter **out, int *count, struct err *err);

/* What a cell of a window has of a counter. NaN are not counted. */
struct prof_samples_cell {
	int64_t count;
	double least, greatest, total;
	double last; /* the last sample, or the mean of the last bucket */
	int64_t last_ns;
};

/* The samples in [@from_ns, @to_ns), in its @columns @cells, which are the caller's. Buckets that
 * the window's ends cut are counted whole. */
enum status prof_timeline_samples(struct prof_db *db, const struct prof_counter *counter,
				  int64_t from_ns, int64_t to_ns, int columns,
				  struct prof_samples_cell *cells, struct err *err);

/* The last sample at @time_ns or before: @out's last (and of those with it); count 0: none. */
enum status prof_timeline_sample_at(struct prof_db *db, const struct prof_counter *counter,
				    int64_t time_ns, struct prof_samples_cell *out,
				    struct err *err);

#endif /* PROF_TIMELINE_H */
