/*
 * The timeline's state: what it is made of, and which module owns which part.
 *
 * Invariant after a load: every visible lane has `rows` x `width` columns; the cursor lies in the
 * window of its clock. Host and device have a window each. The clock of the cursor's lane leads;
 * the other clock shows the same executions (view_timeline_clocks.c).
 *
 * Threading: one thread. Ownership: arenas as noted at each part.
 */
#ifndef VIEW_TIMELINE_STATE_H
#define VIEW_TIMELINE_STATE_H

#include <regex.h>

#include "common/arena.h"
#include "common/mem.h"
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

/* Rows of a body that has sums by name, and of one with two reports, where they get a third. */
#define VIEW_SUMS_FROM     (VIEW_DETAILS_FROM + 1)
#define VIEW_SUMS_FROM_TWO 18

enum view_way {
	VIEW_GANTT, /* pipelines with micro-batch and phase; other lanes under them */
	VIEW_FLAME, /* all depths, names split at '/' */
	VIEW_FLAT,  /* one row per lane: the innermost */
	VIEW_BSP,   /* steps of the device */
	VIEW_WAYS
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

/* One cell of a lane: what was busy in its time. */
struct view_lane_cell {
	int64_t busy_ns, best_ns; /* of all bars; of the one with most */
	int32_t bar;              /* that one, in the lane's bars; -1: none */
	bool run;                 /* within a pipeline run */
	bool dark;                /* not traced */
	bool left_out;            /* by the filter, all that is there */
	uint8_t cause;            /* enum view_cause: of half of the cell or more */
};

struct view_lane {
	const struct prof_track *track;
	int work_depth;              /* where stages and phases are; 0 where there are none */
	bool work_known;             /* a phase has been seen */
	bool pipeline;               /* of an IPU: its idle time within a run is the bubble */
	int y, rows;                 /* place in the lanes' area; rows 0: not visible */
	int thick, thin;             /* screen rows of the row of work, and of each other row */
	int work_row;                /* that row; -1: none of them is thicker */
	int first_depth;             /* shown in the first row */
	const struct prof_bar *bars; /* the retained ones */
	int bar_count;
	int16_t *bar_row; /* of each bar, its names' first row (VIEW_FLAME); else NULL */
	struct view_lane_cell *columns; /* row after row, each `width` */
	struct view_bsp *bsp;           /* `width` cells (VIEW_BSP); else NULL */
	int64_t *cause_ns; /* `width` x VIEW_CAUSES where the bubble is split; else NULL */
	uint64_t stages;   /* bit s: stage s is worked on here, as far as is known */
	double idle;       /* of the window, at work_depth (VIEW_BSP: of steps); NaN: unknown */
};

struct view_site {
	int64_t site_id;
	const char *category, *name;
	char phase;    /* seen, or by its name; 0: none */
	bool left_out; /* by the filter */
};

struct view_clock {
	bool present;
	int axis_y; /* -1: not visible */
	struct view_window extent, window;
};

struct view_field {
	const char *name, *value;
};

/* The bars of a track's window, retained from one picture to the next. */
struct view_bars {
	int64_t track_id;
	int level; /* they were read at */
	struct view_window window;
	struct prof_bar *bars; /* owned */
	int count;
	bool used; /* by the present picture */
};

/* A pipeline run as far as the window shows it. */
struct view_pipeline_run {
	int64_t execution, weight_update, group, from, to;
	int64_t idle_ns[VIEW_CAUSES]; /* in the window, where the bubble is split */
};

/* What a step of the device does. */
enum view_kind {
	VIEW_KIND_IDLE, /* between runs */
	VIEW_KIND_COMPUTE,
	VIEW_KIND_EXCHANGE,
	VIEW_KIND_SYNC,
	VIEW_KIND_HOST_COPY,
	VIEW_KINDS
};

/* One cell of an IPU's steps. */
struct view_bsp {
	double cycles[VIEW_KINDS], all; /* all: with idle time */
	double tiles;                   /* share of tiles at work x cycles, where steps have it */
	double balance;                 /* tile balance x cycles, where steps have it */
	double counted, balanced;       /* cycles of those */
	bool dark;                      /* not traced, most of it */
	double best;                    /* cycles of the step below */
	const struct prof_step *step;   /* with most of the cell; NULL: none, or a mixture */
};

/* A template whose steps have been read. */
struct view_trace {
	struct prof_trace trace;
	int64_t tiles; /* the most that work in a step */
};

/* The step under the cursor. */
struct view_step {
	const struct prof_step *step; /* NULL: none */
	struct prof_run run;
	int64_t from_ns, to_ns;
};

/* What belongs to an operation (or a layer). */
struct view_belongs {
	char of[VIEW_PLACE_NAME], layer[VIEW_PLACE_NAME];
	int64_t program_id; /* IPS_NULL: none */
	int64_t tensors;    /* of its layer */
};

/* Device time of a rank that was not traced: no idle time. */
struct view_dark {
	int64_t rank;
	struct view_window at;
	int64_t first, last; /* executions; first IPS_NULL: not known which */
};

/* A time without work, from span to span. */
struct view_gap {
	struct view_window at;
	bool begun, ended; /* its edge is known; else it is that long at least */
	bool dark;         /* nothing was traced there */
};

/* The bubble of the pipeline runs of a clock that the window shows, or the mean of all runs. */
struct view_bubble {
	bool mean;
	int64_t runs;   /* 0: unknown */
	int64_t update; /* of the last of them; IPS_NULL: none */
	double idle, theory;
	double part[VIEW_CAUSES];              /* of IPUs x makespan: idle's parts */
	int64_t makespan_ns, mean_makespan_ns; /* the longest; their mean */
};

/* The beginning of a weight update or step, which stands beside the same one of another run. */
struct view_beginning {
	int64_t number; /* of the weight update, or of the step; IPS_NULL: not aligned */
	int64_t nth;    /* of the executions of the step's mode, from 1; 0: a weight update */
	int64_t start_ns;
};

struct view_hidden_lane {
	int64_t rank;
	char *track; /* owned */
};

/* Lanes that are not shown. */
struct view_hidden {
	struct view_hidden_lane *lanes; /* owned */
	size_t count, capacity;
};

/* A counter under the lanes. */
struct view_strip {
	const struct prof_counter *counter;
	struct view_chart_point *points; /* two for each column; the picture's */
	double low, high;                /* of them; low > high: there are none */
	bool flat;                       /* they are one value, or none */
	double at_cursor;                /* NaN: none yet */
};

struct view_counters {
	bool shown, known;
	bool asked;                  /* by a key, just now */
	struct prof_counter *series; /* all; where known */
	int count, first;            /* first: the one that is shown first */
	struct view_rect area;       /* strips, labels and values, one below the other */
	int rows;                    /* of each */
	struct view_strip *strips;   /* the picture's */
	int strip_count;
};

/* Which spans are shown; the others are thin lines. */
struct view_span_filter {
	char text[128];     /* a regular expression; "!" before it: what does not match; "": all */
	char trouble[96];   /* why it cannot be used; "" */
	bool active;        /* the expression is there */
	regex_t expression; /* of text, case aside */
	bool stale;         /* the condition is not of this text and file */
	int sites;          /* names in the condition */
	struct str condition; /* on spans, in SQL */
	int64_t passed, all;  /* spans in the picture */
	bool rough;           /* some by the site with most of their bucket */
};

/* Sums by name, of a lane and a stretch of its clock; of steps (VIEW_BSP) what each IPU's cycles
 * are spent on. */
struct view_sums {
	struct view_grid grid; /* of both reports, where there are two: the source's */
	bool known, differ, bsp;
	bool measured; /* between x and the cursor */
	int64_t track_id;
	struct view_window range, rows; /* ns; span_id's */
	int64_t bucket_ns;              /* the widest that was summed; 0: spans were */
};

/* What keys have chosen, for both reports. */
struct view_chosen {
	enum view_way way;
	int64_t only_ipu, only_replica; /* IPS_NULL: all */
	bool cycles;                    /* device times in cycles */
	bool by_cause;                  /* the bubble is split */
	bool by_name;                   /* the details are sums (struct view_sums) */
	bool balance; /* heights are tile balances instead of tiles at work (VIEW_BSP) */
};

/* Which lanes are hidden. */
struct view_hiding {
	struct view_hidden own, *list; /* list: the source's, where there are two reports */
	bool none;                     /* the list has every lane there is: so none is hidden */
	int lanes;                     /* hidden, of those there are */
};

/* Facts of the whole run; 0: unknown. */
struct view_facts {
	int64_t replicas, ipus;
	double hertz; /* the device's clock */
};

struct view_tracks {
	struct arena arena; /* until the next news; lanes, links and counters live there too */
	struct prof_track *all;
	int count;
};

/* Call sites, for good. */
struct view_sites {
	struct arena arena;
	struct view_site *all; /* owned; by site_id */
	size_t count, capacity;
};

/* The same moments on both clocks, of one rank: that of the cursor's lane. */
struct view_links {
	struct view_link *points;
	int count;
	int64_t rank;
	double ns_per_cycle; /* where the clock is unknown: as executions and lanes suggest */
};

/* Stretches of device time that were not traced. */
struct view_untraced {
	struct view_dark *all; /* owned; by rank and time, apart from each other */
	size_t count, capacity;
};

/* Bars of the lanes in the picture, retained for the next one. */
struct view_kept_bars {
	struct view_bars *lanes; /* owned */
	size_t count, capacity;
};

struct view_cursor {
	int lane, depth;
	int64_t track_id; /* of its lane, over reloads */
	int clock;        /* of that lane */
	int64_t ns;
	int64_t x_ns; /* lengths are counted from here (x); IPS_NULL: from nowhere */
	int x_clock;
	int64_t pinned; /* the span that a jump went to; IPS_NULL */
};

/* Comparing: where the two timelines are on the screen, and at which beginning. */
struct view_beside {
	struct view_beginning at;          /* what both windows are aligned at, in this report */
	char text[VIEW_HINT_SIZE];         /* that in words, or why they are not; "" */
	struct view_rect head, half, foot; /* of the body: the table, the lanes, the details */
};

struct view_bubbles {
	struct arena arena; /* of the rows */
	struct prof_bubble *rows;
	int count;
	int64_t rank, first, last;            /* the executions that the rows are of */
	bool known;                           /* the rows are those of the window's runs */
	struct view_bubble shown[2], mean[2]; /* host, device */
	bool split[2];                        /* idle times are there by cause */
	int64_t cause_ns[2][VIEW_CAUSES];     /* of all lanes of a clock, in the window */
	int64_t stages[2];                    /* of the pipelines on a clock */
	enum view_cause at_cursor;
};

/* The device's steps (VIEW_BSP). */
struct view_device {
	struct arena arena;        /* of the templates, which never change */
	struct view_trace *traces; /* owned */
	size_t count, capacity;
	int64_t stride; /* 1: all runs of the window are there; else one of so many */
	double share[VIEW_KINDS];
	bool mixed; /* most columns have several steps: they show the shares of their kinds */
	struct view_step at_cursor; /* step NULL: none, or a span is selected */
};

/* The whole run in one row: of a lane, until news. */
struct view_overview {
	struct arena arena;
	int64_t track_id; /* IPS_NULL: none is known */
	int width;
	struct view_lane_cell *columns;
	struct prof_bar *bars;
};

/* What is under the cursor, and what the details say of it. */
struct view_under {
	struct arena arena; /* until the next load */
	bool wanted;        /* details are shown */
	int64_t selected;   /* span_id; IPS_NULL: none */
	struct prof_span span;
	bool in_gap;
	struct view_gap gap;
	int gap_run;               /* in runs; -1: not in a pipeline run */
	char path[VIEW_PATH_SIZE]; /* names of the spans around it */
	char hint[VIEW_HINT_SIZE]; /* why there is nothing; "": no reason known */
	struct view_belongs belongs;
	struct view_field fields[VIEW_FIELDS];
	int count;
};

struct view_timeline {
	/* What the call under way works with. Its first failure stays: steps after it do nothing. */
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
	struct view_lane *lanes; /* those that are shown, then those that are not */
	int lane_count, all_lanes;
	bool started, relane; /* relane: what is shown has changed: make lanes afresh */

	struct view_clock clock[2]; /* 0 host, 1 device */
	struct view_links links;
	struct view_untraced dark;
	struct view_cursor cursor;

	struct arena picture; /* what a load reads, until the next one */
	struct view_timeline_layout areas;
	struct view_rect heading; /* what the picture says in a line */
	int width;                /* columns of the lanes */
	int scroll;               /* lanes above the first visible one */
	struct view_kept_bars kept;
	struct view_pipeline_run *runs; /* in the window */
	int run_count;
	struct view_window rows_of[2]; /* span_id's that the windows show */
	struct view_bubbles bubbles;
	struct view_device device;
	struct view_overview overview;
	struct view_counters counters;
	struct view_under under;
	struct view_sums sums;

	/* Comparing: this is the source's timeline, the one below the target's. */
	struct view_timeline *target;
	char mark; /* 'S', 'T'; 0: not comparing */
	struct view_beside beside;
};

/* ---- what every module asks of it ------------------------------------------------------------ */

static inline void view__begin(struct view_timeline *tl, struct view_context *context)
{
	tl->context = context;
	tl->db = context->source->db;
	tl->status = ST_OK;
	tl->err = (struct err){0};
}

/* The call's answer. */
static inline enum status view__end(const struct view_timeline *tl, struct err *err)
{
	if (tl->status != ST_OK && err)
		*err = tl->err;
	return tl->status;
}

/* Has a step failed, or does nobody wait any longer? */
static inline bool view__stopped(struct view_timeline *tl)
{
	if (tl->status == ST_OK && view_cancelled(tl->context))
		tl->status = err_set(&tl->err, ST_INTERRUPTED, "interrupted");
	return tl->status != ST_OK;
}

/* Memory of @arena; NULL: there is none, and that sticks. */
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

/* The cursor's lane; NULL: there are none. */
static inline struct view_lane *view__lane(struct view_timeline *tl)
{
	return tl->cursor.lane >= 0 && tl->cursor.lane < tl->lane_count
		       ? &tl->lanes[tl->cursor.lane]
		       : NULL;
}

static inline bool view__shows_all(const struct view_clock *clock)
{
	return clock->window.from <= clock->extent.from && clock->window.to >= clock->extent.to;
}

static inline bool view__shows_sums(const struct view_timeline *tl)
{
	return tl->choice.by_name;
}

/* Where a row of a lane is in the lanes' area, and how many screen rows it and the lane have. */
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

/* Forget the bars that are retained. */
static inline void view__bars_forget(struct view_timeline *tl)
{
	for (size_t i = 0; i < tl->kept.count; i++)
		mem_free(tl->kept.lanes[i].bars);
	tl->kept.count = 0;
}

/* The area @rect of @pane. */
static inline struct view_pane view__sub(struct view_pane *pane, struct view_rect rect)
{
	rect.x += pane->rect.x;
	rect.y += pane->rect.y;
	return view_pane_at(pane->canvas, rect);
}

/* view_timeline_lanes.c */
extern const char *const view__way_names[VIEW_WAYS];
int view__lane_of(const struct view_timeline *tl, int64_t track_id); /* -1: none */
/* The lane that is @track in the other report: same clock and IPU, or the same name. -1: none. */
int view__same_lane(const struct view_timeline *tl, const struct prof_track *track);
int64_t view__replica_of(const struct view_timeline *tl, int64_t ipu); /* IPS_NULL: unknown */
/* "IPU 1", "replica 0", "all IPUs": of which lanes are shown. */
void view__only_text(const struct view_timeline *tl, char *out, size_t size);
/* The first of the lanes whose pipelines are one with this lane's. */
int64_t view__group(const struct view_timeline *tl, const struct view_lane *lane);
/* Is it a span of work of a pipeline run? */
bool view__is_work(const struct view_timeline *tl, const struct view_lane *lane,
		   const struct prof_bar *bar);
/* The next span of @track that begins after @time, or the last one before it; and the deepest one
 * at @time, no deeper than @depth. Texts are @arena's. false: none, or it cannot be read. */
bool view__next_span(struct view_timeline *tl, const struct prof_track *track, int64_t time,
		     bool forward, struct arena *arena, struct prof_span *out);
bool view__span_at(struct view_timeline *tl, const struct prof_track *track, int64_t time,
		   int depth, struct arena *arena, struct prof_span *out);
/* The ids of the lane's spans that overlap @window; false: none. */
bool view__lane_rows(struct view_timeline *tl, const struct view_lane *lane,
		     struct view_window window, int64_t *first, int64_t *last);
/* NULL: the site has not been read. */
const struct view_site *view__site(const struct view_timeline *tl, int64_t site_id);
void view__read_site(struct view_timeline *tl, const struct prof_bar *bar);
char view__phase(const struct view_timeline *tl, const struct prof_bar *bar); /* 0: none */
bool view__left_out(const struct view_timeline *tl, const struct prof_bar *bar);
void view__hidden_forget(struct view_timeline *tl);
/* " AND ..." on spans, for the lanes that are shown, and for what the filter lets through. */
void view__lanes_query(const struct view_timeline *tl, struct str *out);
void view__filter_query(const struct view_timeline *tl, struct str *out);

/* view_timeline_clocks.c */
/* A time, and a length, of @clock in the unit that is shown. @step: of the ticks, in that unit. */
const char *view__time_text(const struct view_timeline *tl, int clock, char out[VIEW_UNIT_SIZE],
			    int64_t ns, int64_t step);
const char *view__length_text(const struct view_timeline *tl, int clock, char out[VIEW_UNIT_SIZE],
			      int64_t ns);
int view__cursor_column(const struct view_timeline *tl, int clock); /* -1: on the other clock */
/* The first stretch that was not traced and ends after @time; lanes of other clocks have none. */
bool view__next_dark(const struct view_timeline *tl, const struct view_lane *lane, int64_t time,
		     struct view_dark *out);
/* How much of @window was traced. */
int64_t view__traced_ns(const struct view_timeline *tl, const struct view_lane *lane,
			struct view_window window);
/* Mark the tl->width @columns of @window that were not. */
void view__mark_dark(const struct view_timeline *tl, const struct view_lane *lane,
		     struct view_window window, struct view_lane_cell *columns);

/* The idle time of the cursor's lane at @time, exactly; false: there is work. */
bool view__gap_at(struct view_timeline *tl, int64_t time, struct view_gap *out);

/* view_timeline_picture.c */
/* The row of the lane that shows @depth; the last where none does. */
int view__row_of_depth(const struct view_timeline *tl, const struct view_lane *lane, int depth);
/* Part @part of @name, which '/' parts. "": it has not so many. */
void view__name_part(const char *name, int part, char *out, size_t size);

/* view_timeline_detail.c */
/* Sums by name are wanted, and there is no room; @out says so. */
bool view__sums_lack_room(const struct view_timeline *tl, const struct view_context *context,
			  char *out, size_t size);

/* view_timeline_move.c */
/* Bring the cursor there, and the window with it. */
void view__go(struct view_timeline *tl, int lane, int depth, int64_t time, int64_t span_id);
/* To a span of that name; false: there is none. */
bool view__jump_name(struct view_timeline *tl, const char *text, bool forward);

#endif /* VIEW_TIMELINE_STATE_H */
