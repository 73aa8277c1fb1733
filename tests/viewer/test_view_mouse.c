/*
 * Events of the mouse as ncurses reports them: which of them do what, and that all others, wherever
 * they are, do nothing.
 */
#include <limits.h>
#include <ncurses.h>

#include "support/view_rig.h"
#include "viewer/timeline/view_timeline_internal.h"
#include "viewer/view_command.h"

#define LANE   1 /* that is clicked */
#define COLUMN 40

/* The timeline, and where a cell of a lane is. */
struct target {
	struct view_rig *rig;
	const struct view_timeline *tl;
	int x, y;
};

static struct target target_of(void **state)
{
	struct target target = {.rig = *state};

	view_rig_size(target.rig, 160, 40);
	view_rig_press(target.rig, "70g");
	target.tl = target.rig->session.state[VIEW_TIMELINE];
	target.x = target.tl->areas.lanes.x + COLUMN;
	target.y = target.rig->session.frame.body.y + target.tl->areas.lanes.y +
		   target.tl->lanes[LANE].y;
	return target;
}

static void mouse(const struct target *target, int x, int y, unsigned long buttons)
{
	view_mouse(&target->rig->session, x, y, buttons);
	view_session_draw(&target->rig->session);
}

static struct view_window window_of(const struct target *target)
{
	return target->tl->clock[target->tl->lanes[LANE].track->clock].window;
}

static void assert_at(const struct target *target, int column)
{
	assert_int_equal(target->tl->cursor.lane, LANE);
	assert_true(target->tl->cursor.ns ==
		    view_window_time(window_of(target), target->tl->width, column));
}

static void test_the_first_button_goes_and_measures(void **state)
{
	static const unsigned long held[] = {0, BUTTON_SHIFT, BUTTON_CTRL, BUTTON_ALT,
					     BUTTON_SHIFT | BUTTON_CTRL | BUTTON_ALT};
	const struct target target = target_of(state);

	for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++) {
		view_rig_press(target.rig, "0g");
		mouse(&target, target.x, target.y, BUTTON1_PRESSED | held[i]);
		assert_at(&target, COLUMN);
		assert_true(target.tl->cursor.x_ns == IPS_NULL);
		mouse(&target, target.x + 20, target.y, BUTTON1_RELEASED | held[i]);
		assert_at(&target, COLUMN + 20);
		assert_true(target.tl->cursor.x_ns ==
			    view_window_time(window_of(&target), target.tl->width, COLUMN));
		view_rig_press(target.rig, "x");
		/* Pressed and let go in one event. */
		mouse(&target, target.x + 5, target.y, BUTTON1_CLICKED | held[i]);
		assert_at(&target, COLUMN + 5);
		assert_true(target.tl->cursor.x_ns == IPS_NULL);
	}
}

static void test_the_wheel_zooms_about_its_cell(void **state)
{
	const struct target target = target_of(state);
	const struct view_window all = window_of(&target);
	struct view_window in;

	mouse(&target, target.x, target.y, BUTTON4_PRESSED);
	in = window_of(&target);
	assert_true(in.to - in.from < all.to - all.from);
	assert_true(target.tl->cursor.ns == view_window_time(all, target.tl->width, COLUMN));
#ifdef BUTTON5_PRESSED
	mouse(&target, target.x, target.y, BUTTON5_PRESSED);
	in = window_of(&target);
	assert_true(in.from == all.from && in.to == all.to);
	/* A wheel is no button that is held. */
	mouse(&target, target.x + 20, target.y, BUTTON1_RELEASED);
	assert_true(target.tl->cursor.x_ns == IPS_NULL);
#endif
}

/* Let go where nothing was pressed, or what was pressed was no lane: nothing is measured. */
static void test_a_release_alone_does_nothing(void **state)
{
	const struct target target = target_of(state);
	int64_t before = target.tl->cursor.ns;

	mouse(&target, target.x, target.y, BUTTON1_RELEASED);
	assert_true(target.tl->cursor.ns == before && target.tl->cursor.x_ns == IPS_NULL);
	mouse(&target, target.x, target.y, BUTTON1_PRESSED);
	before = target.tl->cursor.ns;
	mouse(&target, target.x, target.y, BUTTON1_RELEASED);
	mouse(&target, target.x + 20, target.y, BUTTON1_RELEASED);
	assert_true(target.tl->cursor.ns == before && target.tl->cursor.x_ns == IPS_NULL);
	/* Pressed on the title's name of this screen, let go on a lane. */
	for (int x = 0; x < 160; x++) {
		mouse(&target, x, 0, BUTTON1_PRESSED);
		view_rig_press(target.rig, "7");
		before = target.tl->cursor.ns;
		mouse(&target, target.x, target.y, BUTTON1_RELEASED);
		assert_true(target.tl->cursor.ns == before && target.tl->cursor.x_ns == IPS_NULL);
	}
}

static void test_other_buttons_and_places_do_nothing(void **state)
{
	static const unsigned long others[] = {0,
					       BUTTON2_PRESSED,
					       BUTTON3_PRESSED,
					       BUTTON2_CLICKED,
					       BUTTON3_RELEASED,
					       BUTTON1_DOUBLE_CLICKED,
					       BUTTON4_RELEASED,
					       BUTTON_SHIFT | BUTTON_CTRL,
					       REPORT_MOUSE_POSITION};
	static const unsigned long ours[] = {BUTTON1_PRESSED, BUTTON1_CLICKED, BUTTON1_RELEASED};
	static const int out[] = {INT_MIN, -1, 160, 223, 4096, INT_MAX};
	const struct target target = target_of(state);
	const int64_t before = target.tl->cursor.ns;
	const int lane = target.tl->cursor.lane;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		mouse(&target, target.x, target.y, others[i]);
	for (size_t b = 0; b < sizeof(ours) / sizeof(ours[0]); b++)
		for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++) {
			mouse(&target, out[i], target.y, ours[b]);
			mouse(&target, target.x, out[i], ours[b]);
			mouse(&target, out[i], out[i], ours[b]);
		}
	assert_int_equal(target.rig->session.screen, VIEW_TIMELINE);
	assert_int_equal(target.rig->session.popup.kind, VIEW_NO_POPUP);
	assert_int_equal(target.tl->cursor.lane, lane);
	assert_true(target.tl->cursor.ns == before && target.tl->cursor.x_ns == IPS_NULL);
	/* Dragged out of the screen, nothing is measured either. */
	mouse(&target, target.x, target.y, BUTTON1_PRESSED);
	mouse(&target, 4096, target.y, BUTTON1_RELEASED);
	assert_at(&target, COLUMN);
	assert_true(target.tl->cursor.x_ns == IPS_NULL);
}

#define MOUSE_TEST(test) cmocka_unit_test_setup_teardown(test, view_rig_setup, view_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MOUSE_TEST(test_the_first_button_goes_and_measures),
		MOUSE_TEST(test_the_wheel_zooms_about_its_cell),
		MOUSE_TEST(test_a_release_alone_does_nothing),
		MOUSE_TEST(test_other_buttons_and_places_do_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
