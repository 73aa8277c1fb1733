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
#include "profiler/prof_timeline.h"
#include "viewer/view_layout.h"
#include "viewer/view_screen.h"
#include "viewer/draw/view_time.h"

#define VIEW_PATH_SIZE   256
#define VIEW_FIELDS      32
#define VIEW_HINT_SIZE   160
#define VIEW_NONE_ID     INT64_MIN
#define VIEW_LABEL_WIDTH 16
#define VIEW_MOST_DEPTH  8 /* rows of a lane */

/* One cell of a lane: what was busy in its time. */
struct view_column {
	int64_t busy_ns, best_ns; /* of all bars; of the one with most */
	int32_t bar;              /* that one, in the lane's bars; -1: none */
	bool run;                 /* within a pipeline run */
};

struct view_lane {
	const struct prof_track *track;
	int work_depth;     /* where stages and phases are; 0 where there are none */
	bool work_known;    /* a phase has been seen */
	bool pipeline;      /* of an IPU: its idle time within a run is the bubble */
	int y, rows, thick; /* place in the lanes' area; rows 0: not visible */
	int first_depth;    /* shown in the first row */
	struct prof_bar *bars;
	int bar_count;
	struct view_column *columns; /* row after row, each `width` */
	double idle;                 /* of the window, at work_depth; NaN: unknown */
};

struct view_site {
	int64_t site_id;
	const char *category, *name;
	char phase; /* seen, or told by its name; 0: none */
};

struct view_clock {
	bool present;
	int axis_y; /* -1: not visible */
	struct view_window extent, window;
};

struct view_field {
	const char *name, *value;
};

struct view_run {
	int64_t weight_update, group, from, to;
};

struct view_timeline {
	struct arena tracks_arena, sites_arena, picture, detail;
	struct prof_track *tracks;
	struct view_lane *lanes;
	int lane_count;
	struct view_link *links;
	int link_count;
	struct view_clock clock[2]; /* 0 host, 1 device */
	struct view_site *sites;    /* grows; in order of site_id */
	size_t site_count, site_capacity;

	int lane, depth, scroll;
	int64_t lane_id; /* track_id of the cursor's lane, over reloads */
	int64_t cursor_ns;
	int64_t pinned; /* span that a jump went to; VIEW_NONE_ID */
	bool details, started;

	struct view_timeline_layout areas;
	int width; /* columns of the lanes */
	struct view_run *runs;
	int run_count;
	struct view_column *overview;
	struct prof_bar *overview_bars;

	int64_t selected; /* span_id */
	struct prof_span span;
	char path[VIEW_PATH_SIZE]; /* names of the spans around it */
	struct view_field fields[VIEW_FIELDS];
	int field_count;
	bool in_gap;
	struct view_window gap;
	char hint[VIEW_HINT_SIZE]; /* why there is nothing under the cursor; "": no reason known */
	int64_t gap_run;           /* weight update; VIEW_NONE_ID: not in a pipeline run */
};

/* view_timeline.c */
int view__lead(const struct view_timeline *tl); /* the cursor's clock: 0 host, 1 device */
struct view_clock *view__clock(struct view_timeline *tl);
struct view_lane *view__lane(struct view_timeline *tl); /* the cursor's; NULL: no lanes */
int view__lane_of(const struct view_timeline *tl, int64_t track_id); /* -1: none */

/* view_timeline_tracks.c */
const struct view_site *view__site(const struct view_timeline *tl, int64_t site_id);
char view__phase(const struct view_timeline *tl, const struct prof_bar *bar);
enum status view__learn_site(struct view_timeline *tl, struct prof_db *db,
			     const struct prof_bar *bar, struct err *err);
bool view__shows_all(const struct view_clock *clock);
enum status view__tracks_load(struct view_timeline *tl, struct view_context *context,
			      struct err *err);

/* view_timeline_link.c: the window of the other clock shows the same; the window to open with. */
void view__link_windows(struct view_timeline *tl, struct prof_db *db);
bool view__first_runs(struct view_timeline *tl, struct prof_db *db); /* false: nothing steady */

/* view_timeline_picture.c */
enum status view__place_lanes(struct view_timeline *tl, const struct view_context *context,
			      struct err *err);
enum status view__picture_load(struct view_timeline *tl, struct prof_db *db, struct err *err);

/* view_timeline_move.c */
void view__go(struct view_timeline *tl, int lane, int depth, int64_t time, int64_t span_id);
enum view_answer view__timeline_request(void *state, struct view_context *context,
					enum view_request request);

/* view_timeline_detail.c: what is under the cursor. */
enum status view__detail_load(struct view_timeline *tl, struct prof_db *db, struct err *err);

/* view_timeline_jump.c. false: there is nothing to jump to; a message says so. */
bool view__jump_span(struct view_timeline *tl, struct view_context *context, bool forward);
bool view__jump_gap(struct view_timeline *tl, struct view_context *context, bool forward);
bool view__jump_child(struct view_timeline *tl, struct view_context *context);
bool view__jump_parent(struct view_timeline *tl, struct view_context *context);
bool view__jump_name(struct view_timeline *tl, struct view_context *context, const char *text,
		     bool forward);

/* view_timeline_draw.c */
void view__timeline_draw(const void *state, const struct view_context *context,
			 struct view_pane *pane);

#endif /* VIEW_TIMELINE_INTERNAL_H */
