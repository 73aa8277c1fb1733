/*
 * The timeline's state: its parts, and the module that owns each of them.
 *
 * Invariant after a load: every visible lane has `rows` x `width` columns; the cursor lies in the
 * window of its clock. Host and device have one window each. The clock of the cursor's lane leads;
 * the other clock shows the same executions (view_timeline_clocks.c).
 *
 * Threading: one thread. Ownership: arenas as noted at each part.
 */
#ifndef VIEW_TIMELINE_STATE_H
#define VIEW_TIMELINE_STATE_H

#include <regex.h>

#include "common/arena.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "profiler/prof_timeline.h"
#include "viewer/view_layout.h"
#include "viewer/view_place.h"
#include "viewer/view_screen.h"
#include "viewer/draw/view_chart.h"
#include "viewer/draw/view_grid.h"
#include "viewer/draw/view_time.h"

#define VIEW_PATH_SIZE   256
#define VIEW_FIELDS      32
#define VIEW_HINT_SIZE   160
#define VIEW_UNIT_SIZE   64
#define VIEW_LABEL_WIDTH 16
#define VIEW_MOST_DEPTH  8 /* rows of a lane */

/* Least rows of a body with sums by name; and with two reports, where the sums get a third. */
#define VIEW_SUMS_FROM     (VIEW_DETAILS_FROM + 1)
#define VIEW_SUMS_FROM_TWO 18

enum view_way {
	VIEW_GANTT, /* pipelines with micro-batch and phase; other lanes below them */
	VIEW_FLAME, /* all depths, names split at '/' */
	VIEW_FLAT,  /* one row per lane: the innermost span */
	VIEW_BSP,   /* steps of the device */
	VIEW_WAYS
};

/* What lanes are folded into. */
enum view_fold {
	VIEW_FOLD_NONE,
	VIEW_FOLD_THREAD,  /* threads and streams: with Python's frames, waits, overlaps */
	VIEW_FOLD_PROCESS, /* processes and devices */
	VIEW_FOLD_RANK,
	VIEW_FOLDS
};

/* Why an IPU is idle within a pipeline run (docs/cost-model.md, Bubbles). */
enum view_cause {
	VIEW_NO_CAUSE,
	VIEW_CAUSE_RAMP_UP,
	VIEW_CAUSE_RAMP_DOWN,
	VIEW_CAUSE_IMBALANCE,
	VIEW_CAUSE_COMMUNICATION,
	VIEW_CAUSES
};

/* One cell of a lane: the bars in its time. */
struct view_lane_cell {
	int64_t busy_ns, best_ns; /* of all bars; of the one with most time */
	int32_t bar;              /* index of that one in the lane's bars; -1: none */
	bool run;                 /* within a pipeline run */
	bool dark;                /* not traced */
	bool left_out;            /* the filter excludes every bar in it */
	uint8_t cause;            /* enum view_cause of at least half of the cell */
};

struct view_lane {
	/* Of a folded lane: the member that keys and details are about, under the cursor. */
	const struct prof_track *track;
	const struct prof_track **members; /* all drawn as this lane; one if it is not folded */
	int member_count;
	const char *fold;            /* the name of a folded lane; NULL: it is not folded */
	int work_depth;              /* depth of stages and phases; 0 if there are none */
	bool work_known;             /* a phase has been seen */
	bool namesake;               /* another lane has the same last part of its path */
	bool pipeline;               /* of an IPU: its idle time within a run is the bubble */
	int y, rows;                 /* position in the lanes' area; rows 0: not visible */
	int thick, thin;             /* screen rows of the work row, and of each other row */
	int work_row;                /* the work row; -1: all rows are thin */
	int first_depth;             /* depth of the first row */
	const struct prof_bar *bars; /* retained, see view_bars */
	int bar_count;
	int32_t *bar_member; /* per bar of a folded lane: index of its member; else NULL */
	int16_t *bar_row; /* per bar: the first row of its name's parts (VIEW_FLAME); else NULL */
	struct view_lane_cell *columns; /* row-major, `width` cells per row */
	struct view_bsp *bsp;           /* `width` cells (VIEW_BSP); else NULL */
	int64_t *cause_ns; /* `width` x VIEW_CAUSES if the bubble is split; else NULL */
	uint64_t stages;   /* bit s: the lane works on stage s, as far as is known */
	double idle; /* share of the window, at work_depth (VIEW_BSP: of steps); NaN: unknown */
};

struct view_site {
	int64_t site_id;
	const char *category, *name;
	char phase;    /* of a span, or derived from the name; 0: none */
	bool left_out; /* the filter excludes it */
};

struct view_clock {
	bool present;
	int axis_y; /* -1: not visible */
	struct view_window extent, window;
};

struct view_field {
	const char *name, *value;
};

/* The bars of a track's window, retained from one load to the next. */
struct view_bars {
	int64_t track_id;
	int level; /* prof_timeline_level() of the read */
	struct view_window window;
	struct prof_bar *bars; /* owned */
	int count;
	bool used; /* by the current picture */
};

/* A pipeline run, as far as the window shows it. */
struct view_pipeline_run {
	int64_t execution, weight_update, group, from, to;
	int64_t idle_ns[VIEW_CAUSES]; /* in the window, if the bubble is split */
};

/* The kind of a device step. */
enum view_kind {
	VIEW_KIND_IDLE, /* between runs */
	VIEW_KIND_COMPUTE,
	VIEW_KIND_EXCHANGE,
	VIEW_KIND_SYNC,
	VIEW_KIND_HOST_COPY,
	VIEW_KINDS
};

/* One cell of an IPU's steps; sums in cycles. */
struct view_bsp {
	double cycles[VIEW_KINDS], all; /* all: idle time included */
	double tiles;                 /* share of active tiles x cycles, of steps that record it */
	double balance;               /* tile balance x cycles, of steps that record it */
	double counted, balanced;     /* cycles of those steps */
	bool dark;                    /* most of it was not traced */
	double best;                  /* cycles of the step below */
	const struct prof_step *step; /* takes most of the cell; NULL: none, or a mixture */
};

/* A template whose steps have been read. */
struct view_trace {
	struct prof_trace trace;
	int64_t tiles; /* most active tiles of a step */
};

/* The step under the cursor. */
struct view_step {
	const struct prof_step *step; /* NULL: none */
	struct prof_run run;
	int64_t from_ns, to_ns;
};

/* What the report has on an operation (or a layer). */
struct view_belongs {
	char of[VIEW_PLACE_NAME], layer[VIEW_PLACE_NAME];
	int64_t program_id; /* IPS_NULL: none */
	int64_t tensors;    /* of its layer */
};

/* A range of a rank's device time that was not traced. It is not idle time. */
struct view_dark {
	int64_t rank;
	struct view_window at;
	int64_t first, last; /* executions; first IPS_NULL: unknown */
};

/* A time without work between two spans. */
struct view_gap {
	struct view_window at;
	bool begun, ended; /* the edge is known; else the gap is at least that long */
	bool dark;         /* not traced */
};

/* The bubble of a clock's pipeline runs in the window, or the mean of all runs. */
struct view_bubble {
	bool mean;
	int64_t runs;   /* 0: unknown */
	int64_t update; /* weight update of the last run; IPS_NULL: none */
	double idle, theory;
	double part[VIEW_CAUSES];              /* idle's parts, as shares of IPUs x makespan */
	int64_t makespan_ns, mean_makespan_ns; /* the longest; the mean */
};

/* The start of a weight update or step, used to align two runs. */
struct view_beginning {
	int64_t number; /* of the weight update or step; IPS_NULL: not aligned */
	int64_t nth;    /* index of the execution in its mode, from 1; 0: a weight update */
	int64_t start_ns;
};

struct view_hidden_lane {
	int64_t rank;
	char *track; /* owned */
};

/* The hidden lanes. */
struct view_hidden {
	struct view_hidden_lane *lanes; /* owned */
	size_t count, capacity;
};

/* A counter under the lanes. */
struct view_strip {
	const struct prof_counter *counter;
	struct view_chart_point *points; /* two per column; in the picture's arena */
	double low, high;                /* range of the points; low > high: there are none */
	bool flat;                       /* all points are one value, or there are none */
	double at_cursor;                /* value; NaN: none yet */
};

struct view_counters {
	bool shown, known;
	bool asked;                  /* a key has just requested them */
	struct prof_counter *series; /* all counters, if known */
	int count, first;            /* first: index of the first one shown */
	struct view_rect area;       /* strips, labels and values, one below the other */
	int rows;                    /* of each strip */
	struct view_strip *strips;   /* in the picture's arena */
	int strip_count;
};

/* The filter of spans; excluded spans are drawn as thin lines. */
struct view_span_filter {
	char text[128];     /* a regular expression; with a leading "!": exclude matches; "": all */
	char trouble[96];   /* why the expression is invalid; "": it is not */
	bool active;        /* `expression` is compiled */
	regex_t expression; /* of text, ignoring case */
	bool stale;         /* the condition is of another text or file */
	int sites;          /* names in the condition */
	struct str condition; /* on spans, in SQL */
	int64_t passed, all;  /* spans in the picture */
	bool rough;           /* some are counted by the main site of their bucket */
};

/* Sums by name over a time range of one lane; in VIEW_BSP each IPU's cycles by kind of step. */
struct view_sums {
	struct view_grid grid; /* of both reports if there are two; the source's state owns it */
	bool known, differ, bsp;
	bool measured; /* the range is between x and the cursor */
	int64_t track_id;
	struct view_window range, rows; /* ns; span ids */
	int64_t bucket_ns;              /* widest bucket summed; 0: spans were summed */
};

/* Choices made by keys, for both reports. */
struct view_chosen {
	enum view_way way;
	enum view_fold fold;
	int64_t only_ipu, only_replica; /* IPS_NULL: all */
	bool cycles;                    /* device times in cycles */
	bool by_cause;                  /* the bubble is split */
	bool critical;                  /* spans off the critical path are thin lines */
	bool by_name;                   /* the details are sums (struct view_sums) */
	bool balance; /* heights are tile balances instead of active tiles (VIEW_BSP) */
};

/* Which lanes are hidden. */
struct view_hiding {
	struct view_hidden own, *list; /* list: the source's own, of both reports */
	bool none;                     /* the list would hide every lane, so none is hidden */
	int lanes;                     /* number of hidden lanes of this report */
};

/* Facts of the whole run; 0: unknown. */
struct view_facts {
	int64_t replicas, ipus;
	double hertz; /* the device's clock */
};

struct view_tracks {
	struct arena arena; /* until the next news; holds lanes, links and counters as well */
	struct prof_track *all;
	int count;
};

/* Call sites, read once. */
struct view_sites {
	struct arena arena;
	struct view_site *all; /* owned; sorted by site_id */
	size_t count, capacity;
};

/* Times known on both clocks, of the rank of the cursor's lane. */
struct view_links {
	struct view_link *points;
	int count;
	int64_t rank;
	double ns_per_cycle; /* if the clock rate is unknown: estimated from executions and lanes */
};

/* Ranges of device time that were not traced. */
struct view_untraced {
	struct view_dark *all; /* owned; sorted by rank and time, disjoint */
	size_t count, capacity;
};

/* Bars of the lanes in the picture, retained for the next one. */
struct view_kept_bars {
	struct view_bars *lanes; /* owned */
	size_t count, capacity;
};

struct view_cursor {
	int lane, depth;
	int64_t track_id; /* of its lane; kept over reloads */
	int clock;        /* of that lane */
	int64_t ns;
	int64_t x_ns; /* lengths are measured from here (key x); IPS_NULL: not set */
	int x_clock;
	int64_t pinned; /* the span that a jump selected; IPS_NULL: none */
};

/* Comparing: the areas of the two timelines, and the start at which they are aligned. */
struct view_beside {
	struct view_beginning at;  /* this report's start at which both windows are aligned */
	char text[VIEW_HINT_SIZE]; /* the alignment in words, or why there is none; "" */
	struct view_rect head, half, foot; /* in the body: the table, the lanes, the details */
};

struct view_bubbles {
	struct arena arena; /* of the rows */
	struct prof_bubble *rows;
	int count;
	int64_t rank, first, last;            /* executions of the rows */
	bool known;                           /* the rows cover the runs in the window */
	struct view_bubble shown[2], mean[2]; /* host, device */
	bool split[2];                        /* idle times are known by cause */
	int64_t cause_ns[2][VIEW_CAUSES];     /* sums over a clock's lanes, in the window */
	int64_t stages[2];                    /* number of stages on a clock */
	enum view_cause at_cursor;
};

/* The device's steps (VIEW_BSP). */
struct view_device {
	struct arena arena;        /* of the templates, kept until the screen closes */
	struct view_trace *traces; /* owned */
	size_t count, capacity;
	int64_t stride; /* 1: all runs of the window are read; else every stride-th */
	double share[VIEW_KINDS];
	bool mixed; /* most columns have several steps, so they show the shares of the kinds */
	struct view_step at_cursor; /* step NULL: none, or a span is selected */
};

/* The whole run in one row: of one lane, until news. */
struct view_overview {
	struct arena arena;
	int64_t track_id; /* IPS_NULL: none is loaded */
	int width;
	struct view_lane_cell *columns;
	struct prof_bar *bars;
};

/* The selection under the cursor, and its details. */
struct view_under {
	struct arena arena; /* until the next load */
	bool wanted;        /* details are shown */
	int64_t selected;   /* span_id; IPS_NULL: none */
	struct prof_span span;
	bool in_gap;
	struct view_gap gap;
	int gap_run;               /* index in runs; -1: not in a pipeline run */
	char path[VIEW_PATH_SIZE]; /* names of the enclosing spans */
	char hint[VIEW_HINT_SIZE]; /* why there is nothing; "": no known reason */
	struct view_belongs belongs;
	struct view_field fields[VIEW_FIELDS];
	int count;
};

/* An arrow between the selected span and another one. */
struct view_arrow {
	struct prof_span other; /* texts are in the arena of struct view_under */
	bool in;                /* from the other one to the selected one */
};

struct view_arrows {
	struct view_arrow *all; /* of the selected span; in the arena of struct view_under */
	int count;
	int64_t from, to; /* spans of the arrow that was followed last; IPS_NULL: none */
};

/* An edge of the critical path, about a span of a track. */
struct view_edge {
	int64_t track_id, span_id, from, to;
};

/* The critical path, if it is chosen. */
struct view_path {
	bool known;              /* read since the last news */
	struct view_edge *edges; /* owned; by track and time */
	int64_t *ids;            /* owned; of the same spans, sorted */
	size_t count, capacity;
};

struct view_timeline {
	/* Of the current call. The first failure stays in status; later steps do nothing. */
	struct view_context *context;
	struct prof_db *db; /* NULL: the run is being closed */
	enum status status;
	struct err err;

	struct view_facts facts;
	struct view_chosen choice;
	struct view_hiding hiding;
	struct view_tracks tracks;
	struct view_sites sites;
	struct view_span_filter filter;
	struct view_lane *lanes; /* the shown ones first, then the others */
	int lane_count, all_lanes;
	bool folds;           /* lanes are folded, or can be */
	bool started, relane; /* relane: the choice of lanes has changed, so rebuild them */

	struct view_clock clock[2]; /* 0 host, 1 device */
	struct view_links links;
	struct view_untraced dark;
	struct view_cursor cursor;

	struct arena picture; /* data of a load, until the next one */
	struct view_timeline_layout areas;
	struct view_rect heading; /* lines of text above the lanes */
	int width;                /* columns of the lanes */
	int scroll;               /* number of lanes above the first visible one */
	struct view_kept_bars kept;
	struct view_pipeline_run *runs; /* in the window */
	int run_count;
	struct view_window rows_of[2]; /* span ids that the windows show */
	struct view_bubbles bubbles;
	struct view_device device;
	struct view_overview overview;
	struct view_counters counters;
	struct view_under under;
	struct view_arrows arrows;
	struct view_path path;
	struct view_sums sums;

	/* Comparing: this is the source's timeline; `target` is the other one. */
	struct view_timeline *target;
	char mark; /* 'S', 'T'; 0: not comparing */
	struct view_beside beside;
};

/* ---- common helpers -------------------------------------------------------------------------- */

static inline void view__begin(struct view_timeline *tl, struct view_context *context)
{
	tl->context = context;
	tl->db = context->source->db;
	tl->status = ST_OK;
	tl->err = (struct err){0};
}

/* Return the status of the call and copy its error. */
static inline enum status view__end(const struct view_timeline *tl, struct err *err)
{
	if (tl->status != ST_OK && err)
		*err = tl->err;
	return tl->status;
}

/* Has a step failed, or is the call cancelled? */
static inline bool view__stopped(struct view_timeline *tl)
{
	if (tl->status == ST_OK && view_cancelled(tl->context))
		tl->status = err_set(&tl->err, ST_INTERRUPTED, "interrupted");
	return tl->status != ST_OK;
}

static inline void view__say(struct view_timeline *tl, const char *message)
{
	view_message(tl->context, message, NULL);
}

/* Allocate from @arena; NULL: out of memory, which becomes the call's status. */
static inline void *view__alloc(struct view_timeline *tl, struct arena *arena, size_t count,
				size_t size)
{
	void *out = tl->status == ST_OK ? arena_alloc(arena, count, size) : NULL;

	if (!out && tl->status == ST_OK)
		tl->status = err_nomem(&tl->err);
	return out;
}

/* The cursor's clock: 0 host, 1 device. */
static inline int view__lead(const struct view_timeline *tl)
{
	return tl->cursor.lane < tl->lane_count ? tl->lanes[tl->cursor.lane].track->clock : 0;
}

static inline struct view_clock *view__clock(struct view_timeline *tl)
{
	return &tl->clock[view__lead(tl)];
}

/* The cursor's lane; NULL: no lanes. */
static inline struct view_lane *view__lane(struct view_timeline *tl)
{
	return tl->cursor.lane >= 0 && tl->cursor.lane < tl->lane_count
		       ? &tl->lanes[tl->cursor.lane]
		       : NULL;
}

/* A window without anything in it, and how it grows to include a range. */
#define VIEW_NO_WINDOW ((struct view_window){INT64_MAX, INT64_MIN})

static inline void view__include(struct view_window *window, int64_t from, int64_t to)
{
	window->from = min(from, window->from);
	window->to = max(to, window->to);
}

static inline bool view__shows_all(const struct view_clock *clock)
{
	return clock->window.from <= clock->extent.from && clock->window.to >= clock->extent.to;
}

/* Move the clock's window, which keeps its length, to begin at @from. */
static inline void view__move_window(struct view_clock *clock, int64_t from)
{
	const int64_t length = clock->window.to - clock->window.from;

	clock->window = view_window_clamp((struct view_window){from, from + length}, clock->extent);
}

static inline bool view__has_spans(const struct prof_track *track)
{
	return track->depth > 0 && track->first_ns <= track->last_ns;
}

/* Screen rows and position of a lane's row in the lanes' area, and the height of the lane. */
static inline int view__row_thick(const struct view_lane *lane, int row)
{
	return row == lane->work_row ? lane->thick : lane->thin;
}

static inline int view__row_y(const struct view_lane *lane, int row)
{
	return lane->y + row * lane->thin +
	       (lane->work_row >= 0 && row > lane->work_row ? lane->thick - lane->thin : 0);
}

static inline int view__lane_height(const struct view_lane *lane)
{
	return lane->rows * lane->thin + (lane->work_row >= 0 ? lane->thick - lane->thin : 0);
}

/* Free the retained bars. */
static inline void view__bars_free(struct view_timeline *tl)
{
	for (size_t i = 0; i < tl->kept.count; i++)
		mem_free(tl->kept.lanes[i].bars);
	tl->kept.count = 0;
}

/* view_timeline_lanes.c */
extern const char *const view__way_names[VIEW_WAYS];
extern const char *const view__fold_names[VIEW_FOLDS];
int view__lane_of(const struct view_timeline *tl, int64_t track_id); /* -1: none */
/* The last part of a lane's path, or all of it if another lane has the same last part; "+" and the
 * name of what is folded. */
const char *view__lane_name(const struct view_timeline *tl, int lane);
/* The lane of this report that corresponds to @track of the other: same clock and IPU, or the same
 * name. -1: none. */
int view__same_lane(const struct view_timeline *tl, const struct prof_track *track);
int64_t view__replica_of(const struct view_timeline *tl, int64_t ipu); /* IPS_NULL: unknown */
/* Name the shown lanes: "IPU 1", "replica 0", "all IPUs". */
void view__only_text(const struct view_timeline *tl, char *out, size_t size);
/* The index of the first lane of this lane's pipeline, which identifies the pipeline. */
int64_t view__group(const struct view_timeline *tl, const struct view_lane *lane);
/* Is the bar a span of work of a pipeline run? */
bool view__is_work(const struct view_timeline *tl, const struct view_lane *lane,
		   const struct prof_bar *bar);
/* The next span of @track that starts after @time, or the last one before it; and the deepest one
 * at @time, at most @depth deep. Texts are in @arena. false: none, or it cannot be read. */
bool view__next_span(struct view_timeline *tl, const struct prof_track *track, int64_t time,
		     bool forward, struct arena *arena, struct prof_span *out);
bool view__span_at(struct view_timeline *tl, const struct prof_track *track, int64_t time,
		   int depth, struct arena *arena, struct prof_span *out);
/* The range of ids of the lane's spans that overlap @window; false: none. */
bool view__lane_rows(struct view_timeline *tl, const struct prof_track *track,
		     struct view_window window, struct view_window *rows);
/* NULL: the site has not been read. */
const struct view_site *view__site(const struct view_timeline *tl, int64_t site_id);
void view__read_site(struct view_timeline *tl, const struct prof_bar *bar);
char view__phase(const struct view_timeline *tl, const struct prof_bar *bar); /* 0: none */
bool view__is_filtered_out(const struct view_timeline *tl, const struct prof_bar *bar);
void view__hidden_free(struct view_timeline *tl);
/* Append " AND ..." on spans: for the shown lanes, and for the filter. */
void view__lanes_query(const struct view_timeline *tl, struct str *out);
void view__filter_query(const struct view_timeline *tl, struct str *out);

/* view_timeline_clocks.c */
/* A time, and a duration, of @clock in the chosen unit. @step: of the ticks, in that unit. */
const char *view__time_text(const struct view_timeline *tl, int clock, char out[VIEW_UNIT_SIZE],
			    int64_t ns, int64_t step);
const char *view__length_text(const struct view_timeline *tl, int clock, char out[VIEW_UNIT_SIZE],
			      int64_t ns);
int view__cursor_column(const struct view_timeline *tl, int clock); /* -1: on the other clock */
/* The first untraced range that ends after @time; only device lanes of IPUs have any. */
bool view__next_untraced(const struct view_timeline *tl, const struct view_lane *lane, int64_t time,
			 struct view_dark *out);
/* How many ns of @window were traced. */
int64_t view__traced_ns(const struct view_timeline *tl, const struct view_lane *lane,
			struct view_window window);
/* Mark those of the tl->width @columns of @window that were not traced. */
void view__mark_untraced(const struct view_timeline *tl, const struct view_lane *lane,
			 struct view_window window, struct view_lane_cell *columns);

/* The exact idle time of the cursor's lane at @time; false: there is work. */
bool view__gap_at(struct view_timeline *tl, int64_t time, struct view_gap *out);
/* Move the cursor there, and the window with it. */
void view__go(struct view_timeline *tl, int lane, int depth, int64_t time, int64_t span_id);

/* view_timeline_picture.c */
/* The row of the lane that shows @depth, or the last row. */
int view__row_of_depth(const struct view_timeline *tl, const struct view_lane *lane, int depth);
/* Copy part @part of @name, split at '/'. "": there is no such part. */
void view__name_part(const char *name, int part, char *out, size_t size);

/* view_timeline_arrows.c */
/* Can arrows be looked up: by an index, or because there are fewer than @most? */
bool view__has_arrows(struct view_timeline *tl, int64_t most);

/* view_timeline_detail.c */
/* Sums by name are chosen but do not fit; @out says so. */
bool view__sums_lack_room(const struct view_timeline *tl, const struct view_context *context,
			  char *out, size_t size);

/* view_timeline_move.c */
/* Move to a span of that name; false: none. */
bool view__jump_name(struct view_timeline *tl, const char *text, bool forward);

#endif /* VIEW_TIMELINE_STATE_H */
