/*
 * The timeline's modules: the parts of the screen's load, draw, requests and rows.
 *
 * The load functions read from tl->db and report a failure in tl->status and tl->err.
 */
#ifndef VIEW_TIMELINE_INTERNAL_H
#define VIEW_TIMELINE_INTERNAL_H

#include "viewer/timeline/view_timeline_state.h"

#define VIEW_TABLE_ROWS 4 /* of the comparison's table, header included */

/* view_timeline.c */
/* One report's load. */
enum status view__timeline_load(struct view_timeline *tl, struct view_context *context, bool news,
				struct err *err);

/* view_timeline_arrows.c */
/* Read the arrows of the selected span, after the details. */
void view__arrows_load(struct view_timeline *tl);
/* Go to the other end of an arrow of the selected span. */
void view__follow_arrow(struct view_timeline *tl);
/* Read the critical path, if it is chosen and not known. */
void view__path_load(struct view_timeline *tl);
bool view__has_path(struct view_timeline *tl);
/* Is the path chosen, and the bar of that track not on it? */
bool view__is_off_path(const struct view_timeline *tl, int64_t track_id,
		       const struct prof_bar *bar);

/* view_timeline_lanes.c */
/* Build the lanes from the tracks, after news or another choice of lanes. */
void view__make_lanes(struct view_timeline *tl);
bool view__lanes_request(struct view_timeline *tl, enum view_request request);
bool view__lanes_have_ipu(const struct view_timeline *tl);
void view__timeline_filter(void *state, const char *text);
void view__filter_free(struct view_timeline *tl);
/* Build the SQL condition of a new filter or after news; count the spans in the picture. */
void view__filter_load(struct view_timeline *tl, bool news);
bool view__filter_status(const struct view_timeline *tl, char *out,
			 size_t size); /* false: no filter */

/* view_timeline_clocks.c */
/* Load lanes, clocks and the cursor's lane, after news or another choice of lanes. */
void view__lanes_load(struct view_timeline *tl);
/* Show hidden lanes again; false: there are none. */
bool view__show_hidden(struct view_timeline *tl);
/* Set the window of the clock that does not lead to the same executions. */
void view__link_windows(struct view_timeline *tl);
void view__draw_axis(const struct view_timeline *tl, int clock, struct view_pane *pane);

/* view_timeline_picture.c */
/* Clear every pointer into the picture's arena, or to bars, and reset the arena. */
void view__picture_reset(struct view_timeline *tl);
void view__layout(struct view_timeline *tl);
void view__picture_load(struct view_timeline *tl);
bool view__counters_request(struct view_timeline *tl, enum view_request request);

/* view_timeline_bubble.c */
extern const char *const view__cause_names[VIEW_CAUSES];
/* Read the figures of the whole run, after news. */
void view__bubbles_read(struct view_timeline *tl);
void view__bubble_load(struct view_timeline *tl);
void view__bubble_query(const struct view_timeline *tl, int clock, struct str *out);

/* view_timeline_device.c */
void view__device_load(struct view_timeline *tl);
/* Find the longest step within @ns on the cursor's lane; *@time: its middle. false: no step. */
bool view__longest_step(struct view_timeline *tl, struct view_window ns, int64_t *time);

/* view_timeline_detail.c */
void view__detail_load(struct view_timeline *tl);
/* Load the sums of both reports, after their pictures. */
void view__sums_load(struct view_timeline *tl, bool news);
void view__sums_query(const struct view_timeline *tl, struct str *out);
void view__draw_details(const struct view_timeline *tl, struct view_pane *pane);

/* view_timeline_move.c */
/* The window that fits the span, step or idle time under the cursor; false: there is none. */
bool view__span_window(const struct view_timeline *tl, struct view_window *out);
enum view_answer view__timeline_request(void *state, struct view_context *context,
					enum view_request request);

enum view_answer view__timeline_click(void *state, struct view_context *context, int x, int y);

/* view_timeline_place.c */
bool view__timeline_place(const void *state, struct view_place *out);
bool view__timeline_offers(const struct view_place *place, char *out, size_t size);
enum status view__timeline_go(void *state, struct view_context *context,
			      const struct view_place *place, struct err *err);
/* Copy the choices made by keys to the target. */
void view__copy_choices(struct view_timeline *tl);
/* Derive the target's lane, window and cursor from the source's. */
void view__align(struct view_timeline *tl);

/* view_timeline_draw.c */
void view__timeline_draw(const void *state, const struct view_context *context,
			 struct view_pane *pane);

#endif /* VIEW_TIMELINE_INTERNAL_H */
