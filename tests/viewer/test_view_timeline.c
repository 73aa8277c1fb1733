/*
 * The timeline: what its keys show, against what SQL says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fmt.h"
#include "profiler/prof_db.h"
#include "support/view_rig.h"
#include "viewer/timeline/view_timeline_internal.h"

static struct view_timeline *timeline_of(struct view_rig *rig)
{
	return rig->session.state[VIEW_TIMELINE];
}

static void test_views_are_walked_forward_and_back(void **state)
{
	struct view_rig *rig = *state;

	view_rig_size(rig, 160, 40);
	view_rig_press(rig, "7");
	assert_shows(rig, "[Gantt]");
	assert_shows(rig, "F0 stage 0 forward");
	view_rig_press(rig, "v");
	assert_shows(rig, "[Flame]");
	view_rig_press(rig, "v");
	assert_shows(rig, "[Flat]");
	view_rig_press(rig, "V");
	assert_shows(rig, "[Flame]");
	view_rig_press(rig, "V");
	assert_shows(rig, "[Gantt]");
}

/* From its first ns to its last. */
static void test_a_span_that_was_jumped_to_is_selected_while_the_cursor_is_in_it(void **state)
{
	struct view_rig *rig = *state;
	struct view_timeline *tl;
	struct prof_span span;

	view_rig_press(rig, "70g++++++jj]]");
	tl = timeline_of(rig);
	span = tl->under.span;
	assert_int_equal(tl->cursor.pinned, span.span_id);
	for (int i = 0; i < 4; i++) {
		const int64_t ns[] = {-1, 0, span.dur_ns - 1, span.dur_ns};

		tl->cursor.pinned = span.span_id;
		tl->cursor.ns = span.start_ns + ns[i];
		view__detail_load(tl);
		assert_int_equal(tl->status, ST_OK);
		assert_int_equal(tl->cursor.pinned, i == 1 || i == 2 ? span.span_id : IPS_NULL);
	}
}

/* "MatMul/Dense_256" is a bar "MatMul" with "Dense_256" under it. */
static void test_a_flame_splits_names(void **state)
{
	struct view_rig *rig = *state;

	view_rig_size(rig, 200, 50);
	view_rig_press(rig, "70g+++++");
	assert_shows(rig, "MatMul/");
	view_rig_press(rig, "v");
	assert_hides(rig, "MatMul/");
	assert_shows(rig, "MatMul");
	assert_shows(rig, "Dense_256");
}

static void test_a_flat_lane_shows_what_is_innermost(void **state)
{
	struct view_rig *rig = *state;

	view_rig_size(rig, 200, 50);
	view_rig_press(rig, "70g+++++vv");
	assert_shows(rig, "[Flat]");
	assert_shows(rig, "MatMul/Dense_256");
	for (int i = 0; i < timeline_of(rig)->lane_count; i++)
		assert_true(timeline_of(rig)->lanes[i].rows <= 1);
}

/* Lanes that do not fit scroll by as many as the cursor goes, and it stays on the screen. */
static void test_lanes_scroll_with_the_cursor(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl;
	int scrolled = 0;

	view_rig_size(rig, 80, 16);
	view_rig_press(rig, "7gv");
	tl = timeline_of(rig);
	while (tl->cursor.lane < tl->lane_count - 1) {
		const int lane = tl->cursor.lane, scroll = tl->scroll;

		view_rig_press(rig, "j");
		if (tl->cursor.lane == lane)
			continue;
		assert_in_range(tl->scroll, scroll, scroll + tl->cursor.lane - lane);
		assert_true(tl->lanes[tl->cursor.lane].rows > 0);
		scrolled += tl->scroll > scroll;
	}
	assert_true(scrolled > 1);
	while (tl->cursor.lane > 0) {
		const int lane = tl->cursor.lane, scroll = tl->scroll;

		view_rig_press(rig, "k");
		if (tl->cursor.lane == lane)
			continue;
		assert_in_range(tl->scroll, scroll - (lane - tl->cursor.lane), scroll);
		assert_true(tl->lanes[tl->cursor.lane].rows > 0);
	}
	assert_int_equal(tl->scroll, 0);
}

static void click(struct view_rig *rig, int lane, int column)
{
	const struct view_timeline *tl = timeline_of(rig);
	const int top = rig->session.frame.body.y + tl->areas.lanes.y;

	view_session_click(&rig->session, tl->areas.lanes.x + column, top + tl->lanes[lane].y);
	view_session_draw(&rig->session);
}

static void test_the_mouse_goes_measures_and_zooms(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl;
	struct view_window window;
	int64_t from;

	view_rig_size(rig, 160, 40);
	view_rig_press(rig, "70g");
	tl = timeline_of(rig);
	click(rig, 1, 40);
	assert_int_equal(tl->cursor.lane, 1);
	window = tl->clock[tl->lanes[1].track->clock].window;
	assert_true(tl->cursor.ns == view_window_time(window, tl->width, 40));
	from = tl->cursor.ns;

	/* Dragged within the lane; let go where it was pressed, nothing is measured. */
	view_session_release(&rig->session, rig->session.pressed_x, rig->session.pressed_y);
	assert_true(tl->cursor.x_ns == IPS_NULL);
	click(rig, 1, 40);
	view_session_release(&rig->session, rig->session.pressed_x + 20, rig->session.pressed_y);
	view_session_draw(&rig->session);
	assert_true(tl->cursor.x_ns == from);
	assert_true(tl->cursor.ns == view_window_time(window, tl->width, 60));
	view_rig_press(rig, "x");

	view_session_wheel(&rig->session, tl->areas.lanes.x + 30, rig->session.pressed_y,
			   VIEW_KEY_WHEEL_UP);
	view_session_draw(&rig->session);
	assert_true(tl->cursor.ns == view_window_time(window, tl->width, 30));
	assert_true(tl->clock[tl->lanes[1].track->clock].window.to < window.to);
	view_session_wheel(&rig->session, tl->areas.lanes.x + 30, rig->session.pressed_y,
			   VIEW_KEY_WHEEL_DOWN);
	view_session_draw(&rig->session);
	assert_true(tl->clock[tl->lanes[1].track->clock].window.to == window.to);

	/* On the line of the whole run the window moves, as long as it was. */
	view_rig_press(rig, "+++g");
	window = tl->clock[tl->lanes[1].track->clock].window;
	view_session_click(&rig->session, tl->areas.lanes.x + tl->width - 1,
			   rig->session.frame.body.y + tl->areas.overview.y);
	view_session_draw(&rig->session);
	assert_true(tl->clock[tl->lanes[1].track->clock].window.from > window.from);
	/* Anywhere else nothing goes wrong. */
	for (int y = 0; y < 40; y++)
		for (int x = 0; x < 160; x += 13) {
			view_session_click(&rig->session, x, y);
			view_session_release(&rig->session, 159 - x, y);
			view_session_wheel(&rig->session, x, y, VIEW_KEY_WHEEL_DOWN);
			view_session_draw(&rig->session);
			view_session_show(&rig->session, VIEW_TIMELINE);
		}
}

static void test_device_times_are_cycles_where_the_clock_is_known(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "7t");
	assert_shows(rig, "does not tell the device's clock");
	timeline_of(rig)->facts.hertz = 2e9;
	view_rig_press(rig, "t0g");
	/* All of it is 4.08 ms of 2 GHz. */
	assert_shows(rig, "device cycles");
	view_rig_press(rig, "l");
	assert_shows(rig, "8,160,000 cycles of 8,160,000 cycles");
	view_rig_press(rig, "tl");
	assert_shows(rig, "4.08 ms of 4.08 ms");
}

static void test_lanes_are_those_of_an_ipu(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "7");
	assert_shows(rig, "worker 1");
	assert_shows(rig, "main");
	view_rig_press(rig, "i");
	assert_shows(rig, "worker 0");
	assert_hides(rig, "worker 1");
	view_rig_press(rig, "i");
	assert_shows(rig, "worker 1");
	assert_hides(rig, "worker 0");
	view_rig_press(rig, "i");
	assert_shows(rig, "worker 0");
	assert_shows(rig, "main");
}

/* Of one pipeline run: between F3's end and B0's begin, and after. */
static void test_the_longest_idle_time_is_found(void **state)
{
	static const char sql[] =
		"WITH s AS (SELECT start_ns, start_ns + dur_ns AS end_ns, lead(start_ns) OVER "
		"(ORDER BY start_ns) AS next_ns FROM spans WHERE track LIKE '%IPU 0' AND clock = "
		"'device' AND depth = 0) SELECT max(next_ns - end_ns) FROM s";
	struct view_rig *rig = *state;
	const int64_t longest = view_rig_sql_int(rig, sql);
	struct view_timeline *tl;

	view_rig_press(rig, "70w");
	tl = timeline_of(rig);
	assert_true(tl->under.in_gap);
	assert_shows(rig, "the longest idle time of IPU 0");
	assert_int_equal(tl->under.gap.at.to - tl->under.gap.at.from, longest);
}

static void test_a_span_leads_to_its_place_and_back(void **state)
{
	struct view_rig *rig = *state;
	struct view_place place;
	const struct view_screen_ops *ops = view_screen(VIEW_TIMELINE);
	char text[64];

	view_rig_press(rig, "7");
	view_place_clear(&place);
	assert_true(ops->place(timeline_of(rig), &place));
	assert_true(place.span_id != IPS_NULL);
	assert_int_equal(place.step,
			 view_rig_sql_int(rig, "SELECT step FROM spans WHERE phase = 'F' AND "
					       "clock = 'device' AND weight_update = 9 AND ipu = 0 "
					       "AND microbatch = 0 AND depth = 0"));
	assert_true(ops->offers(&place, text, sizeof(text)));
	assert_contains(text, "the span");
	view_rig_press(rig, "0G");
	assert_int_equal(ops->go(timeline_of(rig), &rig->session.context, &place, NULL), ST_OK);
	view_rig_press(rig, "r");
	assert_int_equal(timeline_of(rig)->under.selected, place.span_id);
}

/* What a screen that knows no span can ask for. */
static void go(struct view_rig *rig, const struct view_place *place)
{
	assert_int_equal(view_screen(VIEW_TIMELINE)
				 ->go(timeline_of(rig), &rig->session.context, place, NULL),
			 ST_OK);
	view_rig_press(rig, "r");
}

static void test_a_step_is_found_with_its_phase_and_stage(void **state)
{
	struct view_rig *rig = *state;
	struct view_place place;
	const struct prof_span *span;

	view_rig_press(rig, "7");
	span = &timeline_of(rig)->under.span;
	for (int64_t step = 1; step < 96; step += 13) {
		view_place_clear(&place);
		place.step = step;
		place.stage = place.ipu = step % 2;
		view_place_text(place.phase, step % 3 ? "B" : "F");
		view_place_text(place.clock, step % 4 ? "device" : "host");
		go(rig, &place);
		assert_int_equal(span->step, step);
		assert_int_equal(span->stage, step % 2);
		assert_int_equal(span->phase, step % 3 ? 'B' : 'F');
		assert_string_equal(span->clock, step % 4 ? "device" : "host");
	}
	view_place_clear(&place);
	place.weight_update = 17;
	view_place_text(place.phase, "U");
	go(rig, &place);
	assert_int_equal(span->weight_update, 17);
	assert_int_equal(span->phase, 'U');
}

static void test_a_stretch_of_time_and_a_name_are_gone_to(void **state)
{
	struct view_rig *rig = *state;
	struct view_timeline *tl;
	struct view_place place;

	view_rig_press(rig, "70");
	tl = timeline_of(rig);
	view_place_clear(&place);
	view_place_text(place.clock, "host");
	place.time_ns = 5000000;
	place.until_ns = 6000000;
	go(rig, &place);
	assert_int_equal(tl->cursor.ns, 5000000);
	assert_true(tl->clock[0].window.from <= 5000000 && tl->clock[0].window.to >= 6000000);
	assert_true(tl->clock[0].window.to - tl->clock[0].window.from < 3000000);
	view_place_clear(&place);
	view_place_text(place.operation, "MatMul/Dense_256");
	go(rig, &place);
	assert_string_equal(tl->under.span.name, "MatMul/Dense_256");
	view_place_text(place.operation, "nothing has this name");
	assert_int_equal(view_screen(VIEW_TIMELINE)->go(tl, &rig->session.context, &place, NULL),
			 ST_NOTFOUND);
}

/* The statement gives the spans that overlap the window, as a plain scan does. */
static void test_the_query_is_that_of_the_window(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl;
	struct str text = {0};
	char sql[1024], scan[512], *end;

	view_rig_press(rig, "7");
	tl = timeline_of(rig);
	view_screen(VIEW_TIMELINE)->query(tl, &rig->session.context, &text);
	end = strstr(text.text, ";\n");
	assert_non_null(end);
	*end = '\0';
	snprintf(sql, sizeof(sql), "SELECT count(*) * 1000000 + sum(span_id) FROM (%s)", text.text);
	snprintf(scan, sizeof(scan),
		 "SELECT count(*) * 1000000 + sum(span_id) FROM spans WHERE clock = 'device' AND "
		 "start_ns < %lld AND start_ns + dur_ns > %lld",
		 (long long)tl->clock[1].window.to, (long long)tl->clock[1].window.from);
	assert_int_equal(view_rig_sql_int(rig, sql), view_rig_sql_int(rig, scan));
	str_free(&text);
}

/* Of a span with others in it. */
static void test_own_time_is_what_no_span_inside_takes(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl;
	int checked = 0;

	view_rig_size(rig, 160, 44);
	view_rig_press(rig, "7");
	tl = rig->session.state[VIEW_TIMELINE];
	for (int i = 0; i < 12; i++) {
		char sql[200], part[64], ns[FMT_SIZE];
		int64_t inside;

		snprintf(sql, sizeof(sql),
			 "SELECT ifnull(sum(dur_ns), 0) FROM spans WHERE parent_id = %lld",
			 (long long)tl->under.selected);
		inside = view_rig_sql_int(rig, sql);
		if (tl->under.selected != IPS_NULL && inside > 0) {
			snprintf(part, sizeof(part), "%s (%.1f %%)",
				 fmt_ns(ns, tl->under.span.dur_ns - inside),
				 100 * (1 - (double)inside / (double)tl->under.span.dur_ns));
			assert_shows(rig, part);
			checked++;
		}
		view_rig_press(rig, "]");
	}
	assert_true(checked > 6);
}

static int rows_of_lanes(const struct view_timeline *tl)
{
	int rows = tl->lane_count;

	for (int i = 0; i < tl->lane_count; i++)
		rows += view__lane_height(&tl->lanes[i]);
	return rows;
}

/* Also where they are few. */
static void test_bars_use_the_room_of_a_large_screen(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl;
	int all;

	view_rig_size(rig, 200, 50);
	view_rig_press(rig, "7");
	tl = timeline_of(rig);
	all = tl->lane_count;
	assert_true(rows_of_lanes(tl) + 6 >= tl->areas.lanes.height);
	view_rig_press(rig, "i");
	assert_true(tl->lane_count < all);
	assert_true(rows_of_lanes(tl) + 6 >= tl->areas.lanes.height);
}

/* The cell before @name in the legend, which is the second line of the body. */
static uint16_t legend_style(struct view_rig *rig, const char *name)
{
	const struct view_canvas *canvas = &rig->session.canvas;
	const struct view_cell *line = &canvas->cells[(size_t)(2 * canvas->width)];
	const int length = (int)strlen(name);

	for (int x = 3; x + length <= canvas->width; x++) {
		int same = 0;

		while (same < length && line[x + same].character == (uint32_t)name[same])
			same++;
		if (same == length)
			return line[x - 2].style;
	}
	return VIEW_NORMAL;
}

/* Of the phases that have a bar, and of no other. */
static void test_the_legend_names_the_colours(void **state)
{
	static const struct {
		const char *name, *phase;
		enum view_style style;
	} phases[] = {{"forward", "F", VIEW_FORWARD},
		      {"backward", "B", VIEW_BACKWARD},
		      {"recomputation", "R", VIEW_RECOMPUTE},
		      {"weights", "W", VIEW_WEIGHT},
		      {"update", "U", VIEW_UPDATE}};
	struct view_rig *rig = *state;
	int shown = 0;

	view_rig_size(rig, 120, 40);
	view_rig_press(rig, "70");
	for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
		char sql[96];

		snprintf(sql, sizeof(sql), "SELECT count(*) > 0 FROM spans WHERE phase = '%s'",
			 phases[i].phase);
		if (!view_rig_sql_int(rig, sql) ||
		    legend_style(rig, phases[i].name) != phases[i].style)
			assert_int_equal(legend_style(rig, phases[i].name), VIEW_NORMAL);
		shown += legend_style(rig, phases[i].name) != VIEW_NORMAL;
	}
	assert_true(shown > 1 && shown < (int)ARRAY_LEN(phases));
	assert_int_equal(legend_style(rig, "bubble"), VIEW_BUBBLE);
	/* Lanes go before it on a small screen; the line above has that of steps. */
	view_rig_size(rig, 80, 20);
	assert_int_equal(legend_style(rig, "bubble"), VIEW_NORMAL);
	view_rig_size(rig, 80, 24);
	assert_int_equal(legend_style(rig, "bubble"), VIEW_BUBBLE);
	view_rig_press(rig, "vvv");
	assert_int_equal(legend_style(rig, "bubble"), VIEW_NORMAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_views_are_walked_forward_and_back,
						view_rig_setup, view_rig_teardown),
		cmocka_unit_test_setup_teardown(
			test_a_span_that_was_jumped_to_is_selected_while_the_cursor_is_in_it,
			view_rig_setup, view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_the_legend_names_the_colours, view_rig_setup,
						view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_a_flame_splits_names, view_rig_setup,
						view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_a_flat_lane_shows_what_is_innermost,
						view_rig_setup, view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_the_mouse_goes_measures_and_zooms,
						view_rig_setup, view_rig_teardown),
		cmocka_unit_test_setup_teardown(
			test_device_times_are_cycles_where_the_clock_is_known, view_rig_setup,
			view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_lanes_scroll_with_the_cursor, view_rig_setup,
						view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_lanes_are_those_of_an_ipu, view_rig_setup,
						view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_the_longest_idle_time_is_found, view_rig_setup,
						view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_a_span_leads_to_its_place_and_back,
						view_rig_setup, view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_a_step_is_found_with_its_phase_and_stage,
						view_rig_setup, view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_a_stretch_of_time_and_a_name_are_gone_to,
						view_rig_setup, view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_the_query_is_that_of_the_window,
						view_rig_setup, view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_own_time_is_what_no_span_inside_takes,
						view_rig_setup, view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_bars_use_the_room_of_a_large_screen,
						view_rig_setup, view_rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
