/*
 * What the timeline's modules ask of each other.
 */
#ifndef VIEW_TIMELINE_INTERNAL_H
#define VIEW_TIMELINE_INTERNAL_H

#include "viewer/timeline/view_timeline_state.h"

/* view_timeline.c */
int view__lead(const struct view_timeline *tl); /* the cursor's clock: 0 host, 1 device */
struct view_clock *view__clock(struct view_timeline *tl);
struct view_lane *view__lane(struct view_timeline *tl); /* the cursor's; NULL: no lanes */
int view__lane_of(const struct view_timeline *tl, int64_t track_id); /* -1: none */

/* view_timeline_lanes.c: ways to look at lanes, which IPUs; view_timeline_clocks.c: units. */
extern const char *const view__way_names[VIEW_WAYS];
int64_t view__replica_of(const struct view_timeline *tl, int64_t ipu);
/* The IPU that the replica (IPS_NULL: the first) begins with. */
int64_t view__first_ipu(const struct view_timeline *tl, int64_t replica); /* IPS_NULL: unknown */
bool view__way_request(struct view_timeline *tl, struct view_context *context,
		       enum view_request request);
void view__filter_text(const struct view_timeline *tl, char *out, size_t size);
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

/* view_timeline_place.c: the target's timeline below. */
enum status view__timeline_compare(struct view_timeline *tl, struct view_context *context,
				   bool news, struct err *err);
void view__timeline_compared(const struct view_timeline *tl, struct view_pane *pane);

/* view_timeline_lanes.c, view_timeline_clocks.c */
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

/* view_timeline_clocks.c: the window of the other clock shows the same; the window to open with. */
void view__link_windows(struct view_timeline *tl, struct prof_db *db);
void view__measure_clocks(struct view_timeline *tl);
/* The lane, window and cursor to begin with. */
void view__first_window(struct view_timeline *tl, const struct view_context *context);

/* view_timeline_picture.c: bars as columns of cells. */
int view__row_y(const struct view_lane *lane, int row);
int view__row_thick(const struct view_lane *lane, int row);
int view__lane_height(const struct view_lane *lane);
/* The row of the lane that shows @depth; the last where none does. */
int view__row_of_depth(const struct view_timeline *tl, const struct view_lane *lane, int depth);
/* Part @part of @name, which '/' parts. "": it has not so many. */
void view__name_part(const char *name, int part, char *out, size_t size);

/* view_timeline_clocks.c: stretches of device time without spans, which are not idle. */
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
void view__bubble_query(const struct view_timeline *tl, int clock, struct str *out);

/* view_timeline_bubble.c */
enum status view__causes_load(struct view_timeline *tl, struct view_context *context,
			      struct err *err);

/* view_timeline_device.c: the steps of the device. */
enum status view__bsp_load(struct view_timeline *tl, struct view_context *context, struct err *err);
void view__bsp_query(const struct view_timeline *tl, struct str *out);

void view__draw_bsp(const struct view_timeline *tl, const struct view_lane *lane,
		    struct view_pane *pane);
void view__draw_bsp_key(const struct view_timeline *tl, struct view_pane *pane, int x);

/* view_timeline_move.c */
void view__go(struct view_timeline *tl, int lane, int depth, int64_t time, int64_t span_id);
enum view_answer view__timeline_request(void *state, struct view_context *context,
					enum view_request request);

/* view_timeline_detail.c: what is under the cursor. */
enum status view__detail_load(struct view_timeline *tl, struct prof_db *db, struct err *err);

/* view_timeline_lanes.c */
void view__timeline_filter(void *state, const char *text);
void view__filter_free(struct view_timeline *tl);
bool view__left_out(const struct view_timeline *tl, const struct prof_bar *bar);
/* Of a new filter, or after news: the statement's condition. */
enum status view__filter_load(struct view_timeline *tl, struct prof_db *db, bool news,
			      struct err *err);
/* " AND ..." on the columns of the view spans; nothing where there is no filter. */
void view__filter_query(const struct view_timeline *tl, struct str *out);
/* How many spans of the picture it shows. */
void view__filter_count(struct view_timeline *tl);
bool view__filter_status(const struct view_timeline *tl, char *out, size_t size); /* false: none */

/* view_timeline_detail.c */
bool view__shows_sums(const struct view_timeline *tl);
/* They are wanted, and there is no room; @out says so. */
bool view__sums_lack_room(const struct view_timeline *tl, const struct view_context *context,
			  char *out, size_t size);
/* Of both reports, after their pictures. */
enum status view__sums_load(struct view_timeline *tl, struct view_context *context, bool news,
			    struct err *err);
void view__draw_sums(const struct view_timeline *tl, struct view_pane *pane);
void view__sums_query(const struct view_timeline *tl, struct str *out);

/* view_timeline_move.c */
/* The idle time of the cursor's lane at @time, exactly; false: there is work. */
bool view__gap_at(struct view_timeline *tl, struct prof_db *db, int64_t time, struct view_gap *out);

bool view__jump_name(struct view_timeline *tl, struct view_context *context, const char *text,
		     bool forward);

/* view_timeline_place.c */
bool view__timeline_place(const void *state, const struct view_context *context,
			  struct view_place *out);
bool view__timeline_offers(const struct view_place *place, char *out, size_t size);
enum status view__timeline_go(void *state, struct view_context *context,
			      const struct view_place *place, struct err *err);

/* view_timeline.c: the window as rows. */
enum status view__rows_load(struct view_timeline *tl, struct view_context *context,
			    struct err *err);
/* The ids of the lane's spans that overlap @window; false: none. */
bool view__lane_rows(const struct view_lane *lane, struct prof_db *db, struct view_window window,
		     int64_t *first, int64_t *last);

struct view_pane view__sub(struct view_pane *pane, struct view_rect rect);
int view__cursor_column(const struct view_timeline *tl, int clock); /* -1: on the other clock */

void view__timeline_draw(const void *state, const struct view_context *context,
			 struct view_pane *pane);

#endif /* VIEW_TIMELINE_INTERNAL_H */
