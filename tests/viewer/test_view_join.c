/*
 * Screens lead to each other: what one has under its cursor the others go to, and back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/report_sample.h"
#include "support/support.h"
#include "support/view_fixture.h"
#include "support/view_fixture_device.h"
#include "support/view_rig.h"
#include "viewer/timeline/view_timeline_internal.h"

static int setup(void **state)
{
	struct view_rig *rig = view_rig_new(state);

	report_sample_write(rig->path);
	view_rig_start(rig, false, 120, 40, "");
	return 0;
}

static void show(struct view_rig *rig, int screen)
{
	view_session_show(&rig->session, (enum view_screen)screen);
	view_session_draw(&rig->session);
	view_session_draw(&rig->session);
}

/*
 * From @screen, @steps rows down, to what the item @item of the list offers. The last offered: -1.
 */
static bool go_to_item(struct view_rig *rig, int screen, int steps, int item)
{
	show(rig, screen);
	view_rig_key(rig, VIEW_KEY_ESCAPE);
	show(rig, screen);
	view_rig_key(rig, 'g');
	for (int i = 0; i < steps; i++)
		view_rig_key(rig, 'j');
	view_rig_key(rig, 'o');
	if (rig->session.popup.kind != VIEW_JOIN_POPUP || item >= rig->session.popup.count) {
		view_rig_key(rig, VIEW_KEY_ESCAPE);
		return false;
	}
	for (int i = 0; i < item; i++)
		view_rig_key(rig, 'j');
	return true;
}

/* Where the cursor of the screen is; all zero: nowhere. */
static struct view_place place_of(struct view_rig *rig, int screen)
{
	struct view_place place;

	memset(&place, 0, sizeof(place));
	if (!view_screen((enum view_screen)screen)->place(rig->session.state[screen], &place))
		memset(&place, 0, sizeof(place));
	return place;
}

/* The first field in which two places differ; NULL: none. */
static const char *other_field(struct view_place *a, struct view_place *b)
{
	int count;
	const struct view_place_field *fields = view_place_fields(&count);

	for (int i = 0; i < count; i++)
		if (fields[i].text ? strcmp(view_place_chars(a, &fields[i]),
					    view_place_chars(b, &fields[i])) != 0
				   : *view_place_number(a, &fields[i]) !=
					     *view_place_number(b, &fields[i]))
			return fields[i].name;
	return NULL;
}

static void test_a_digit_goes_where_the_list_says(void **state)
{
	struct view_rig *rig = *state;
	int to;

	assert_true(go_to_item(rig, VIEW_OPERATIONS, 0, 0));
	assert_shows(rig, "\xe2\x94\x8c\xe2\x94\x80 Go to \xe2\x94\x80");
	assert_true(rig->session.popup.count > 1);
	to = rig->session.popup.items[1].tag;
	view_rig_key(rig, '9'); /* there are not so many */
	assert_int_equal(rig->session.popup.kind, VIEW_JOIN_POPUP);
	view_rig_key(rig, '2');
	assert_int_equal(rig->session.screen, to);
	assert_int_equal(rig->session.popup.kind, VIEW_NO_POPUP);
}

/* What is offered can be gone to, and Backspace leads back to the same place. */
static void test_what_is_offered_is_there(void **state)
{
	struct view_rig *rig = *state;
	int ways = 0, lost = 0;

	for (int screen = 0; screen < VIEW_SCREENS; screen++) {
		if (!view_screen((enum view_screen)screen)->place)
			continue;
		for (int steps = 0; steps < 4; steps++)
			for (int item = 0; go_to_item(rig, screen, steps, item); item++) {
				const int to = rig->session.popup.items[item].tag;
				const char *text = rig->session.popup.items[item].text;
				struct view_place before = place_of(rig, screen), after;
				char what[512];

				snprintf(what, sizeof(what), "%s > %s: %s",
					 view_screen((enum view_screen)screen)->name,
					 view_screen((enum view_screen)to)->name, text);
				rig->session.context.message[0] = '\0';
				view_rig_key(rig, VIEW_KEY_ENTER);
				if (rig->session.trouble.status != ST_OK ||
				    (int)rig->session.screen != to)
					fail_msg("%s: %s %s", what, rig->session.context.message,
						 rig->session.trouble.text);
				/* What one screen knows need not be on another: it is said. */
				if (rig->session.context.message[0])
					printf("%s: %s\n", what, rig->session.context.message);
				lost += rig->session.context.message[0] != '\0';
				view_rig_key(rig, VIEW_KEY_ESCAPE);
				if ((int)rig->session.screen != screen)
					view_rig_key(rig, VIEW_KEY_BACKSPACE);
				if ((int)rig->session.screen != screen)
					fail_msg("%s: no way back", what);
				after = place_of(rig, screen);
				if (other_field(&before, &after))
					fail_msg("%s: back at another %s", what,
						 other_field(&before, &after));
				ways++;
			}
	}
	printf("%d ways, %d of them end in a message\n", ways, lost);
	assert_true(ways > 0 && 4 * lost <= ways);
}

/* A place under the cursor of a screen is one that the screen itself can go to. */
static void test_a_screen_goes_to_its_own_places(void **state)
{
	struct view_rig *rig = *state;

	for (int s = 0; s < VIEW_SCREENS; s++) {
		const struct view_screen_ops *ops = view_screen((enum view_screen)s);
		struct view_place place, after;
		struct err err = {0};

		if (!ops->place || !ops->go)
			continue;
		show(rig, s);
		view_rig_key(rig, 'j');
		view_place_clear(&place);
		if (!ops->place(rig->session.state[s], &place))
			continue;
		view_rig_key(rig, 'G');
		if (ops->go(rig->session.state[s], &rig->session.context, &place, &err) != ST_OK)
			fail_msg("%s: %s", ops->name, err.text);
		rig->session.stale = true;
		view_session_draw(&rig->session);
		view_place_clear(&after);
		assert_true(ops->place(rig->session.state[s], &after));
	}
}

static void test_a_span_and_an_operation_are_completed(void **state)
{
	struct view_rig *rig = *state;
	struct view_place place;
	char *operation = view_rig_sql_text(rig, "SELECT operation FROM operations WHERE layer IS "
						 "NOT NULL LIMIT 1");
	char *layer = view_rig_sql_text(rig, "SELECT layer FROM operations WHERE layer IS NOT NULL "
					     "LIMIT 1");

	view_place_clear(&place);
	place.span_id = view_rig_sql_int(rig, "SELECT span_id FROM spans WHERE stage IS NOT NULL "
					      "ORDER BY span_id LIMIT 1");
	assert_int_equal(view_place_complete(&place, rig->session.source.db, NULL), ST_OK);
	assert_int_equal(place.stage,
			 view_rig_sql_int(rig, "SELECT stage FROM spans WHERE stage IS "
					       "NOT NULL ORDER BY span_id LIMIT 1"));
	assert_int_equal(place.time_ns,
			 view_rig_sql_int(rig, "SELECT start_ns FROM spans WHERE stage IS NOT NULL "
					       "ORDER BY span_id LIMIT 1"));
	view_place_clear(&place);
	view_place_text(place.operation, operation);
	assert_int_equal(view_place_complete(&place, rig->session.source.db, NULL), ST_OK);
	assert_string_equal(place.layer, layer);
	assert_true(place.key[0]);
	free(operation);
	free(layer);
}

/* What a hit, a tensor's row or a row of a query says of one work of one replica. */
static struct view_place work_of(int clock, int replica, int stage, char phase, int step, bool hit)
{
	struct view_place place;

	view_place_clear(&place);
	view_place_text(place.clock, clock ? "device" : "host");
	view_place_text(place.mode, "train");
	snprintf(place.phase, sizeof(place.phase), "%c", phase);
	place.replica = replica;
	place.stage = stage;
	place.step = step;
	if (hit) {
		place.rank = 0;
		place.weight_update = step / 4;
		place.microbatch = step % 4;
	}
	return place;
}

static void open_device(struct view_rig *rig)
{
	char path[sizeof(rig->path)];

	view_rig_close(rig);
	snprintf(path, sizeof(path), "%s/device.db", rig->folder);
	assert_true(view_fixture_device_write(path));
	view_rig_open(rig, path, NULL, 120, 40);
}

/*
 * Of two replicas of two stages on both clocks: the span of that stage, phase and step, no other.
 */
static void test_a_moment_is_the_span_of_its_replica_stage_phase_and_step(void **state)
{
	struct view_rig *rig = *state;
	const struct view_screen_ops *ops = view_screen(VIEW_TIMELINE);
	char sql[256];

	open_device(rig);
	show(rig, VIEW_TIMELINE);
	for (int i = 0; i < 64; i++) {
		const int clock = i & 1, replica = i >> 1 & 1, stage = i >> 2 & 1;
		const char phase = "FB"[i >> 3 & 1];
		const int step = (i * 37 + 5) % (4 * VIEW_DEVICE_UPDATES);
		struct view_place place = work_of(clock, replica, stage, phase, step, i & 16);
		struct err err = {0};

		assert_int_equal(view_place_complete(&place, rig->session.source.db, &err), ST_OK);
		if (ops->go(rig->session.state[VIEW_TIMELINE], &rig->session.context, &place,
			    &err) != ST_OK)
			fail_msg("%s", err.text);
		rig->session.stale = true;
		view_session_draw(&rig->session);
		snprintf(sql, sizeof(sql),
			 "SELECT span_id FROM spans WHERE clock = '%s' AND replica = %d AND "
			 "stage = %d AND phase = '%c' AND step = %d",
			 clock ? "device" : "host", replica, stage, phase, step);
		assert_int_equal(place_of(rig, VIEW_TIMELINE).span_id, view_rig_sql_int(rig, sql));
	}
}

/* Who goes to a moment while the newest is followed gets there, and stays. */
static void test_going_somewhere_ends_the_following(void **state)
{
	struct view_rig *rig = *state;
	struct view_place before, after;

	open_device(rig);
	show(rig, VIEW_TIMELINE);
	before = place_of(rig, VIEW_TIMELINE);
	view_rig_key(rig, 'm');
	view_rig_key(rig, VIEW_KEY_ENTER);
	rig->session.context.follow = rig->session.stale = true;
	view_session_draw(&rig->session);
	view_rig_key(rig, 'G');
	after = place_of(rig, VIEW_TIMELINE);
	assert_non_null(other_field(&before, &after));
	view_rig_key(rig, '\'');
	view_rig_key(rig, VIEW_KEY_ENTER);
	assert_false(rig->session.context.follow);
	after = place_of(rig, VIEW_TIMELINE);
	assert_null(other_field(&before, &after));
}

/* What only the target has: there the cursor is in the target, the source at the same update. */
static void test_what_only_the_target_has_is_gone_to_in_the_target(void **state)
{
	struct view_rig *rig = *state;
	const struct view_screen_ops *ops = view_screen(VIEW_TIMELINE);
	const struct view_timeline *tl;

	view_rig_close(rig);
	snprintf(rig->path, sizeof(rig->path), "%s/source.db", rig->folder);
	assert_true(view_fixture_write(rig->path, 0));
	assert_true(view_fixture_device_write(rig->other));
	view_rig_start(rig, true, 120, 40, "");
	show(rig, VIEW_TIMELINE);
	tl = rig->session.state[VIEW_TIMELINE];
	for (int step = 5; step < 4 * 24; step += 9) {
		struct view_place place = work_of(0, 0, 1, "FB"[step & 1], step, true);
		struct prof_span its = {0};
		struct err err = {0};

		place.target_only = 1;
		if (ops->go(rig->session.state[VIEW_TIMELINE], &rig->session.context, &place,
			    &err) != ST_OK)
			fail_msg("%s", err.text);
		rig->session.stale = true;
		view_session_draw(&rig->session);
		its = tl->target->under.span;
		assert_int_equal(its.step, step);
		assert_int_equal(its.stage, 1);
		assert_int_equal(its.phase, "FB"[step & 1]);
		assert_int_equal(tl->beside.at.number, step / 4);
		assert_int_equal(tl->target->beside.at.number, step / 4);
	}
}

/* An insight on rows of a view leads to the screen that has them before all others. */
static void test_an_insight_leads_to_the_screen_of_its_rows_first(void **state)
{
	struct view_rig *rig = *state;
	const struct view_popup *popup = &rig->session.popup;
	int found = 0;

	for (int steps = 0; steps < 12; steps++) {
		struct view_place place;

		if (!go_to_item(rig, VIEW_INSIGHTS, steps, 0))
			break;
		place = place_of(rig, VIEW_INSIGHTS);
		found += strcmp(place.view, "health") == 0;
		if (strcmp(place.view, "health") == 0)
			assert_int_equal(popup->items[popup->at].tag, VIEW_HEALTH);
		if (strcmp(place.view, "time_split") == 0)
			assert_int_equal(popup->items[popup->at].tag, VIEW_TIMELINE);
	}
	assert_true(found > 0);
}

/* Where no row is, nothing leads on; a bookmark may be of a viewer that has other screens. */
static void test_what_leads_nowhere_is_said(void **state)
{
	struct view_rig *rig = *state;

	show(rig, VIEW_OPERATIONS);
	view_rig_press(rig, "m\r'");
	strcpy(rig->session.marks.items[0].screen, "elsewhere");
	view_rig_press(rig, "\r");
	assert_shows(rig, "there is no such screen: elsewhere");
	view_rig_press(rig, "\\no such row\ro");
	assert_shows(rig, "nothing is selected here");
	view_rig_press(rig, "m");
	assert_shows(rig, "nothing is selected here to be bookmarked");
}

/* The statements behind every screen are statements. */
static void test_every_query_runs(void **state)
{
	struct view_rig *rig = *state;

	for (int s = 0; s < VIEW_SCREENS; s++) {
		const struct view_screen_ops *ops = view_screen((enum view_screen)s);
		struct support_result result;
		struct str text = {0};
		char path[SUPPORT_PATH_SIZE + 16];

		if (!ops->query || !support_has_program("sqlite3"))
			continue;
		show(rig, s);
		ops->query(rig->session.state[s], &rig->session.context, &text);
		snprintf(path, sizeof(path), "%s/q.sql", rig->folder);
		support_write_file(path, str_peek(&text), strlen(str_peek(&text)));
		support_shell(&result, "sqlite3 -bail '%s' < '%s' 2>&1 >/dev/null", rig->path,
			      path);
		if (result.out[0])
			fail_msg("%s: %s\n%s", ops->name, result.out, str_peek(&text));
		support_result_free(&result);
		str_free(&text);
	}
}

#define JOIN_TEST(test) cmocka_unit_test_setup_teardown(test, setup, view_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		JOIN_TEST(test_a_digit_goes_where_the_list_says),
		JOIN_TEST(test_what_is_offered_is_there),
		JOIN_TEST(test_a_screen_goes_to_its_own_places),
		JOIN_TEST(test_a_span_and_an_operation_are_completed),
		JOIN_TEST(test_a_moment_is_the_span_of_its_replica_stage_phase_and_step),
		JOIN_TEST(test_going_somewhere_ends_the_following),
		JOIN_TEST(test_what_only_the_target_has_is_gone_to_in_the_target),
		JOIN_TEST(test_an_insight_leads_to_the_screen_of_its_rows_first),
		JOIN_TEST(test_what_leads_nowhere_is_said),
		JOIN_TEST(test_every_query_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
