/*
 * The timeline's state, shared by the files that load it, jump in it and draw it.
 *
 * Invariant after a load: every visible lane has `rows` x `width` columns; cursor_ns lies in the
 * window of the cursor's clock. Host and device have a window each; the one that holds the cursor
 * leads, the other shows the same executions (view_link).
 */
#ifndef VIEW_TIMELINE_INTERNAL_H
#define VIEW_TIMELINE_INTERNAL_H

#include "common/arena.h"
#include "viewer/view_screen.h"
#include "viewer/timeline/view_timeline_parts.h"

struct view_timeline {
	struct arena tracks_arena, sites_arena, picture, detail, bubble_arena;
	struct prof_track *tracks; /* all; lanes are those that are shown */
	int track_count;
	struct view_lane *lanes; /* those that are shown, then those that are not */
	int lane_count, all_lanes;
	enum view_way way;
	int64_t only_ipu, only_replica;         /* IPS_NULL: all */
	int64_t replicas, ipus;                 /* of the run; 0: unknown */
	struct view_hidden own_hidden, *hidden; /* hidden: the source's, where there are two */
	bool hides_all;                         /* every lane there is: so none is hidden */
	int hidden_lanes;                       /* of those there are */
	bool relane;                            /* what is shown has changed: make lanes afresh */
	bool cycles;                            /* device times in cycles */
	double hertz;                           /* the device's clock; 0: unknown */
	double ns_per_cycle; /* where hertz is unknown: as executions and lanes suggest */
	struct view_link *links;
	int link_count;
	int64_t links_rank;     /* whose they are: of the cursor's lane */
	struct view_dark *dark; /* owned; by rank and time, apart from each other */
	size_t dark_count, dark_capacity;
	struct view_clock clock[2]; /* 0 host, 1 device */
	struct view_site *sites;    /* grows; in order of site_id */
	size_t site_count, site_capacity;
	struct view_bars *bars; /* of the tracks in the picture */
	size_t bars_count, bars_capacity;

	int lane, depth, scroll;
	int64_t lane_id; /* track_id of the cursor's lane, over reloads */
	int lane_clock;  /* and its clock */
	int64_t cursor_ns;
	int64_t measured_ns; /* lengths are counted from here (x); IPS_NULL: from nowhere */
	int measured_clock;
	int64_t pinned; /* span that a jump went to; IPS_NULL */
	struct view_filter filter;
	struct view_counters counters;
	struct view_sums sums;
	bool details, started;

	/* Comparing: this is the source's timeline, the one below the target's. */
	struct view_timeline *target;
	char mark;                      /* 'S', 'T'; 0: not comparing */
	struct view_moment aligned;     /* this report's moment that both windows are at */
	char alignment[VIEW_HINT_SIZE]; /* that in words, or why they are not; "": nothing to say */
	struct view_rect head, half, foot; /* of the body: the table, the lanes, the details */
	struct view_rect heading;          /* what the picture says in a line */
	struct view_timeline_layout areas;
	int width; /* columns of the lanes */
	struct view_run *runs;
	int run_count;
	struct prof_bubble *bubbles; /* of executions bubble_first .. bubble_last of a rank */
	int bubble_count;
	int64_t bubble_rank, bubble_first, bubble_last;
	bool bubbles_known;                           /* they are those of the window's runs */
	struct view_bubble bubble[2], mean_bubble[2]; /* host, device */
	bool by_cause;                                /* the bubble is split */
	bool by_name;                                 /* the details are sums by name */
	bool split[2];                                /* and could be */
	int64_t cause_ns[2][VIEW_CAUSES];             /* of all lanes of a clock, in the window */
	int64_t stages[2];                            /* of the pipelines on a clock */
	enum view_cause cursor_cause;
	struct arena steps_arena; /* the templates: they never change */
	struct view_trace *traces;
	size_t trace_count, trace_capacity;
	bool bsp_balance;   /* heights are tile balances instead of tiles at work */
	int64_t bsp_stride; /* 1: all runs of the window are there; else one of so many */
	double bsp_share[VIEW_KINDS];
	struct view_step step;
	struct view_belongs belongs;
	struct arena overview_arena; /* what follows, until it is of something else */
	int64_t overview_lane;       /* track_id; IPS_NULL: none is known */
	int overview_width;
	struct view_column *overview;
	struct prof_bar *overview_bars;

	int64_t selected; /* span_id */
	struct prof_span span;
	char path[VIEW_PATH_SIZE]; /* names of the spans around it */
	struct view_field fields[VIEW_FIELDS];
	int field_count;
	bool in_gap;
	struct view_gap gap;
	char hint[VIEW_HINT_SIZE]; /* why there is nothing under the cursor; "": no reason known */
	int gap_run;               /* in runs; -1: not in a pipeline run */
	struct view_window rows_of[2]; /* span_id's that the windows show, host and device */
};

/* view_timeline.c */
int view__lead(const struct view_timeline *tl); /* the cursor's clock: 0 host, 1 device */
struct view_clock *view__clock(struct view_timeline *tl);
struct view_lane *view__lane(struct view_timeline *tl); /* the cursor's; NULL: no lanes */
int view__lane_of(const struct view_timeline *tl, int64_t track_id); /* -1: none */

/* view_timeline_ways.c: ways to look at it, which IPUs, and units. */
extern const char *const view__way_names[VIEW_WAYS];
int64_t view__replica_of(const struct view_timeline *tl, int64_t ipu);
/* The IPU that the replica (IPS_NULL: the first) begins with. */
int64_t view__first_ipu(const struct view_timeline *tl, int64_t replica); /* IPS_NULL: unknown */
bool view__shows_track(const struct view_timeline *tl, const struct prof_track *track);
bool view__way_request(struct view_timeline *tl, struct view_context *context,
		       enum view_request request);
void view__filter_text(const struct view_timeline *tl, char *out, size_t size);
/* ns of the device as cycles, and back. */
int64_t view__cycles(const struct view_timeline *tl, int64_t ns);
int64_t view__ns(const struct view_timeline *tl, int64_t cycles);
bool view__in_cycles(const struct view_timeline *tl, int clock);
/*
 * A moment, and a length, of @clock in the unit that is shown. @step: of the ticks, in that unit.
 */
const char *view__moment_text(const struct view_timeline *tl, int clock, char out[VIEW_UNIT_SIZE],
			      int64_t ns, int64_t step);
/* The same of a tick, which is @at in that unit. */
const char *view__tick_text(const struct view_timeline *tl, int clock, char out[VIEW_UNIT_SIZE],
			    int64_t at, int64_t step);
const char *view__length_text(const struct view_timeline *tl, int clock, char out[VIEW_UNIT_SIZE],
			      int64_t ns);
/* The window in that unit. */
struct view_window view__unit_window(const struct view_timeline *tl, int clock);

/* view_timeline.c */
enum status view__timeline_load(struct view_timeline *tl, struct view_context *context, bool news,
				struct err *err);

/* view_timeline_align.c: the target's lane, window and cursor, from the source's. */
void view__align(struct view_timeline *tl, struct view_context *context);
/* The lane of @tl that is @track in the other report: same clock and IPU, or the same name. -1:
 * none. */
int view__same_lane(const struct view_timeline *tl, const struct prof_track *track);

/* view_timeline_hide.c: lanes that keys hide. */
bool view__is_hidden(const struct view_timeline *tl, const struct prof_track *track);
void view__hidden_count(struct view_timeline *tl); /* of new tracks */
void view__hidden_forget(struct view_timeline *tl);
bool view__hide_request(struct view_timeline *tl, struct view_context *context,
			enum view_request request);
void view__hidden_query(const struct view_timeline *tl, struct str *out); /* " AND ..." on spans */
/* "3 lanes hidden"; "": none. */
const char *view__hidden_text(const struct view_timeline *tl, char out[VIEW_UNIT_SIZE]);

/* view_timeline_counters.c: counters under the lanes. */
bool view__counters_request(struct view_timeline *tl, struct view_context *context,
			    enum view_request request);
/* Which there are, where they are wanted; before lanes are placed. */
enum status view__series_load(struct view_timeline *tl, struct prof_db *db, struct err *err);
/* Take their room from the foot of the lanes'. */
void view__place_strips(struct view_timeline *tl);
enum status view__strips_load(struct view_timeline *tl, struct view_context *context,
			      struct err *err);
/* The same scale for the same counter in both reports. */
void view__strips_match(struct view_timeline *tl);
void view__draw_strips(const struct view_timeline *tl, struct view_pane *pane);
void view__strips_query(const struct view_timeline *tl, struct str *out);

/* view_timeline_compare.c: the target's timeline below. */
enum status view__timeline_compare(struct view_timeline *tl, struct view_context *context,
				   bool news, struct err *err);
void view__timeline_compared(const struct view_timeline *tl, struct view_pane *pane);
/* To what only the target has, the source beside it from the same weight update on. ST_NOTFOUND: it
 * is not on the target's lanes, or the source has no such update. */
enum status view__go_to_target(struct view_timeline *tl, struct view_context *context,
			       const struct view_place *place, struct err *err);

/* view_timeline_tracks.c */
const struct view_site *view__site(const struct view_timeline *tl, int64_t site_id);
char view__phase(const struct view_timeline *tl, const struct prof_bar *bar);
enum status view__learn_site(struct view_timeline *tl, struct prof_db *db,
			     const struct prof_bar *bar, struct err *err);
bool view__shows_all(const struct view_clock *clock);
/* The way between the clocks of @rank, unless it is known. */
enum status view__links_load(struct view_timeline *tl, struct prof_db *db, int64_t rank,
			     struct err *err);
enum status view__tracks_load(struct view_timeline *tl, struct view_context *context,
			      struct err *err);

/* view_timeline_link.c: the window of the other clock shows the same; the window to open with. */
void view__link_windows(struct view_timeline *tl, struct prof_db *db);
bool view__first_runs(struct view_timeline *tl, struct prof_db *db); /* false: nothing steady */

/* view_timeline_lay.c: bars as columns of cells. */
int view__row_y(const struct view_lane *lane, int row);
int view__row_thick(const struct view_lane *lane, int row);
int view__lane_height(const struct view_lane *lane);
/* The row of the lane that shows @depth; the last where none does. */
int view__row_of_depth(const struct view_timeline *tl, const struct view_lane *lane, int depth);
/* Lay @bar, number @index, over the @width columns at @columns. What is @left_out shows only where
 * nothing else is. */
void view__lay(struct view_column *columns, int width, struct view_window window,
	       const struct prof_bar *bar, int32_t index, bool left_out);
/* Rows that the lane wants in the present way; VIEW_FLAME places its bars. -1: no memory. */
int view__rows_wanted(struct view_timeline *tl, struct view_lane *lane);
enum status view__lay_lane(struct view_timeline *tl, struct view_lane *lane, struct err *err);
/* Part @part of @name, which '/' parts. "": it has not so many. */
void view__name_part(const char *name, int part, char *out, size_t size);

/* view_timeline_traced.c: stretches of device time without spans, which are not idle. */
enum status view__traced_load(struct view_timeline *tl, struct prof_db *db, struct err *err);
/* The first stretch that ends after @time; lanes of other clocks have none. */
bool view__next_dark(const struct view_timeline *tl, const struct view_lane *lane, int64_t time,
		     struct view_dark *out);
bool view__is_dark(const struct view_timeline *tl, const struct view_lane *lane, int64_t time,
		   struct view_dark *out);
/* How much of @window was recorded. */
int64_t view__traced_ns(const struct view_timeline *tl, const struct view_lane *lane,
			struct view_window window);
/* Mark the tl->width @columns of @window that were not. */
void view__mark_dark(const struct view_timeline *tl, const struct view_lane *lane,
		     struct view_window window, struct view_column *columns);

/* view_timeline_bars.c: what is read of a lane, and only what is new of it. */
enum status view__bars_load(struct view_timeline *tl, struct view_lane *lane, struct prof_db *db,
			    struct err *err);
/* After the last lane of a picture: what it does not show is let go. */
void view__bars_trim(struct view_timeline *tl);
/* There are news, or the timeline is closed. */
void view__bars_forget(struct view_timeline *tl);

/* view_timeline_picture.c */
/* Nothing is left that leads into the picture's arena, or to bars. */
void view__picture_forget(struct view_timeline *tl);
void view__place_lanes(struct view_timeline *tl, const struct view_context *context);
int64_t view__group(const struct view_timeline *tl, const struct view_lane *lane);
bool view__is_work(const struct view_timeline *tl, const struct view_lane *lane,
		   const struct prof_bar *bar);
enum status view__picture_load(struct view_timeline *tl, struct view_context *context,
			       struct err *err);

/* view_timeline_bubble.c */
extern const char *const view__cause_names[VIEW_CAUSES];
enum status view__bubbles_forget(struct view_timeline *tl, struct prof_db *db, struct err *err);
enum status view__bubble_load(struct view_timeline *tl, struct prof_db *db, struct err *err);
/* The row of bubbles that is the run's; NULL: not known. */
const struct prof_bubble *view__bubble_of(const struct view_timeline *tl,
					  const struct view_run *run);
void view__bubble_query(const struct view_timeline *tl, int clock, struct str *out);

/* view_timeline_causes.c */
enum status view__causes_load(struct view_timeline *tl, struct view_context *context,
			      struct err *err);

/* view_timeline_bsp.c: the steps of the device. */
enum status view__bsp_load(struct view_timeline *tl, struct view_context *context, struct err *err);
void view__bsp_query(const struct view_timeline *tl, struct str *out);

/* view_timeline_bsp_draw.c */
enum view_kind view__kind_of(const struct prof_step *step);
extern const char *const view__kind_names[VIEW_KINDS];
void view__draw_bsp(const struct view_timeline *tl, const struct view_lane *lane,
		    struct view_pane *pane);
void view__draw_bsp_key(const struct view_timeline *tl, struct view_pane *pane, int x);

/* view_timeline_move.c */
void view__go(struct view_timeline *tl, int lane, int depth, int64_t time, int64_t span_id);
enum view_answer view__timeline_request(void *state, struct view_context *context,
					enum view_request request);

/* view_timeline_detail.c: what is under the cursor. */
enum status view__detail_load(struct view_timeline *tl, struct prof_db *db, struct err *err);

/* view_timeline_inside.c: of the span under the cursor, time that no span in it takes (*@exact:
 * counted, not estimated; IPS_NULL: none is in it), and where its arrows come from or go to;
 * NULL: there are none. */
int64_t view__self_ns(struct view_timeline *tl, struct prof_db *db, bool *exact);
const char *view__flow_text(struct view_timeline *tl, struct prof_db *db, bool in);

/* view_timeline_filter.c */
void view__timeline_filter(void *state, const char *text);
void view__filter_free(struct view_timeline *tl);
void view__judge_site(const struct view_timeline *tl, struct view_site *site);
bool view__left_out(const struct view_timeline *tl, const struct prof_bar *bar);
/* Of a new filter, or after news: the statement's condition. */
enum status view__filter_load(struct view_timeline *tl, struct prof_db *db, bool news,
			      struct err *err);
/* " AND ..." on the columns of the view spans; nothing where there is no filter. */
void view__filter_query(const struct view_timeline *tl, struct str *out);
/* How many spans of the picture it shows. */
void view__filter_count(struct view_timeline *tl);
bool view__filter_status(const struct view_timeline *tl, char *out, size_t size); /* false: none */

/* view_timeline_sums.c */
bool view__shows_sums(const struct view_timeline *tl);
/* They are wanted, and there is no room; @out says so. */
bool view__sums_lack_room(const struct view_timeline *tl, const struct view_context *context,
			  char *out, size_t size);
/* Of both reports, after their pictures. */
enum status view__sums_load(struct view_timeline *tl, struct view_context *context, bool news,
			    struct err *err);
void view__draw_sums(const struct view_timeline *tl, struct view_pane *pane);
void view__sums_query(const struct view_timeline *tl, struct str *out);

/* view_timeline_belongs.c: what belongs to the operation @name; NULL: it has no name. */
const struct view_belongs *view__belongs(struct view_timeline *tl, struct prof_db *db,
					 const char *name);

/* view_timeline_idle.c */
/* The idle time of the cursor's lane at @time, exactly; false: there is work. */
bool view__gap_at(struct view_timeline *tl, struct prof_db *db, int64_t time, struct view_gap *out);
/* To the longest idle time of the lane in the window; false: none, a message says so. */
bool view__jump_worst(struct view_timeline *tl, struct view_context *context);

/* view_timeline_jump.c. false: there is nothing to jump to; a message says so. */
bool view__jump_span(struct view_timeline *tl, struct view_context *context, bool forward);
bool view__jump_gap(struct view_timeline *tl, struct view_context *context, bool forward);
bool view__jump_child(struct view_timeline *tl, struct view_context *context);
bool view__jump_parent(struct view_timeline *tl, struct view_context *context);
bool view__jump_name(struct view_timeline *tl, struct view_context *context, const char *text,
		     bool forward);

/* view_timeline_place.c */
/* When the work of @place's weight update, or of its step and execution, begins on the first IPU of
 * @clock; false: unknown. */
bool view__place_start(struct view_timeline *tl, struct prof_db *db, int clock,
		       const struct view_place *place, int64_t *start);
/* The first span of @track that belongs to a step or weight update and begins after @time; false:
 * none near by. */
bool view__next_work(struct view_timeline *tl, struct prof_db *db, const struct prof_track *track,
		     int64_t time, struct prof_span *out);
/* To the work of @place's weight update or step, on the device if that has it. */
bool view__go_to_work(struct view_timeline *tl, struct prof_db *db, const struct view_place *place);
bool view__timeline_place(const void *state, const struct view_context *context,
			  struct view_place *out);
bool view__timeline_offers(const struct view_place *place, char *out, size_t size);
enum status view__timeline_go(void *state, struct view_context *context,
			      const struct view_place *place, struct err *err);

/* view_timeline_rows.c: the window as rows. */
enum status view__rows_load(struct view_timeline *tl, struct view_context *context,
			    struct err *err);
/* The ids of the lane's spans that overlap @window; false: none. */
bool view__lane_rows(const struct view_lane *lane, struct prof_db *db, struct view_window window,
		     int64_t *first, int64_t *last);
enum status view__timeline_table(void *state, struct view_context *context,
				 struct report_table *out, struct err *err);
void view__timeline_query(const void *state, const struct view_context *context, struct str *out);

/* view_timeline_around.c: axes, labels, idle times, the overview, details. */
void view__draw_axis(const struct view_timeline *tl, int clock, struct view_pane *pane);
void view__draw_around(const struct view_timeline *tl, struct view_pane *pane);
struct view_pane view__sub(struct view_pane *pane, struct view_rect rect);
int view__cursor_column(const struct view_timeline *tl, int clock); /* -1: on the other clock */

/* view_timeline_draw.c */
enum view_style view__phase_text(char phase);
enum view_style view__cause_style(enum view_cause cause);
enum view_glyph view__cause_glyph(enum view_cause cause);
void view__timeline_draw(const void *state, const struct view_context *context,
			 struct view_pane *pane);

#endif /* VIEW_TIMELINE_INTERNAL_H */
