/*
 * The session without a terminal: keys in, text out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/str.h"
#include "profiler/ipuscope/profiler.h"
#include "support/support.h"
#include "support/view_fixture.h"
#include "support/view_rig.h"

static void test_screens_open_by_number_and_tab(void **state)
{
	view_rig_press(*state, "1");
	assert_shows(*state, "Pipeline bubble");
	view_rig_press(*state, "7");
	assert_shows(*state, "device (sim)");
	view_rig_press(*state, "\t");
	assert_shows(*state, "Dense_128/kernel:0_grad");
	view_rig_press(*state, "H");
	assert_shows(*state, "recorded without health rules");
	view_rig_press(*state, "?");
	assert_shows(*state, "The screen ");
	view_rig_press(*state, "\t");
	assert_shows(*state, "At a glance");
}

static void test_the_bubble_is_shaded_and_bars_say_what_they_are(void **state)
{
	view_rig_press(*state, "7");
	/* A pipeline run of the second execution, which can be read without a key more. */
	assert_shows(*state, "execution      1");
	assert_shows(*state, "F0 stage 0 forward");
	assert_shows(*state, "U F0 F1F2 F3 \xe2\x96\x91");
	view_rig_press(*state, "0");
	assert_shows(*state, "4.08 ms of 4.08 ms");
	view_rig_press(*state, "g++++");
	assert_shows(*state, "\xe2\x96\x91\xe2\x96\x91"
			     "B0");
	assert_shows(*state, " F0F1");
	assert_shows(*state, "%");
}

static void test_gaps_are_found_and_called_bubble(void **state)
{
	view_rig_press(*state, "70g++++}");
	assert_shows(*state, "idle: bubble");
	assert_shows(*state, "30 us (30,000 ns)");
	/* After the last backward the IPU waits for the weight update: no bubble. */
	view_rig_press(*state, "}");
	assert_shows(*state, "12 us (12,000 ns)");
	view_rig_press(*state, "{");
	assert_shows(*state, "idle: bubble");
}

/* What leads out (Help, closing) ends the line of keys. */
static void test_keys_that_lead_out_end_the_line(void **state)
{
	struct view_rig *rig = *state;
	char *text, *line, *help, *move;

	view_rig_size(rig, 120, 40);
	view_rig_press(rig, "7");
	text = view_rig_text(&rig->session);
	text[strlen(text) - 1] = '\0';
	line = strrchr(text, '\n');
	assert_non_null(line);
	help = strstr(line, "? help");
	move = strstr(line, "v ");
	assert_non_null(help);
	assert_non_null(move);
	assert_true(move < help);
	free(text);
}

static void test_spans_are_walked(void **state)
{
	struct view_rig *f = *state;

	view_rig_press(f, "70g++++]]");
	assert_shows(f, "F2 stage 0 forward");
	view_rig_press(f, "[");
	assert_shows(f, "F1 stage 0 forward");
	view_rig_press(f, "L");
	assert_shows(f, "MatMul/Dense_256");
	view_rig_press(f, "u");
	assert_shows(f, "F1 stage 0 forward");
	view_rig_press(f, "z");
	assert_shows(f, "cycles=13300");
}

static void test_search_goes_on_and_around(void **state)
{
	struct view_rig *f = *state;

	view_rig_press(f, "70g/update\r");
	assert_shows(f, "stage 0 weight update");
	view_rig_press(f, "n");
	assert_shows(f, "weight update  1");
	view_rig_press(f, "N");
	assert_shows(f, "weight update  0");
	view_rig_press(f, "/no such name\r");
	assert_shows(f, "not found: no such name");
	view_rig_press(f, "8/kernel\r");
	assert_shows(f, "row 2 of 4");
}

static void test_tensors_sort_and_change_statistic(void **state)
{
	struct view_rig *f = *state;

	view_rig_press(f, "8");
	assert_line_shows(f, "statistic std, row 1 of 4, ", ": l", ", by max std");
	assert_shows(f, "evil??]0;pwned?/kernel:0_grad");
	view_rig_press(f, "G");
	assert_shows(f, "Dense_128:0 ");
	view_rig_press(f, "S");
	assert_shows(f, "statistic mean, row 4 of 4, +");
	view_rig_press(f, "I");
	assert_shows(f, "row 1 of 4");
}

static void test_tensors_are_filtered_by_key(void **state)
{
	struct view_rig *f = *state;

	view_rig_press(f, "8\\KERNEL\r");
	assert_shows(f, "row 1 of 2");
	assert_shows(f, "filter KERNEL");
	view_rig_press(f, "jjjG>I");
	view_rig_press(f, "\\nothing has this\r");
	assert_shows(f, "Nothing matches the filter");
	view_rig_press(f, "jGs/x\r");
	view_rig_press(f, "\x1b");
	assert_shows(f, " of 4, ");
	view_rig_press(f, "?\\");
	assert_shows(f, "this screen has no filter");
}

static void test_every_key_is_handled_on_its_screens(void **state)
{
	struct view_rig *f = *state;

	for (int r = VIEW_NONE + 1; r < VIEW_REQUESTS; r++) {
		const struct view_request_info *info = view_request_info((enum view_request)r);

		for (int s = 0; s < VIEW_SCREENS; s++) {
			if (!(info->screens & view_screen((enum view_screen)s)->where))
				continue;
			view_session_show(&f->session, (enum view_screen)s);
			view_session_draw(&f->session);
			for (int k = 0; k < VIEW_KEYS_EACH && info->keys[k]; k++) {
				view_session_key(&f->session, info->keys[k]);
				assert_null(strstr(f->session.context.message, "not on this"));
				view_session_draw(&f->session);
				view_popup_close(&f->session.popup);
				if (f->session.prompt != VIEW_NO_PROMPT)
					view_session_key(&f->session, VIEW_KEY_ESCAPE);
				view_session_show(&f->session, (enum view_screen)s);
			}
		}
	}
	assert_true(f->session.quit);
}

/* Draw must need neither memory nor the database. */
static void test_drawing_only_draws(void **state)
{
	struct view_rig *f = *state;
	struct prof_db *db = f->session.source.db;

	for (int s = 0; s < VIEW_SCREENS; s++) {
		char *before, *after;

		view_session_show(&f->session, (enum view_screen)s);
		view_session_draw(&f->session);
		before = view_rig_text(&f->session);
		f->session.source.db = NULL;
		support_fail_alloc(0);
		view_session_draw(&f->session);
		assert_false(support_alloc_failed());
		support_fail_alloc(-1);
		f->session.source.db = db;
		after = view_rig_text(&f->session);
		assert_string_equal(before, after);
		free(before);
		free(after);
	}
}

static void test_any_size_can_be_drawn(void **state)
{
	struct view_rig *f = *state;

	for (int s = 0; s < VIEW_SCREENS; s++) {
		view_session_show(&f->session, (enum view_screen)s);
		for (int w = 1; w <= 260; w += w < 60 ? 7 : 33)
			for (int h = 1; h <= 70; h += h < 24 ? 3 : 15) {
				assert_int_equal(view_session_size(&f->session, w, h, NULL), ST_OK);
				view_session_draw(&f->session);
			}
	}
	assert_int_equal(view_session_size(&f->session, 20, 5, NULL), ST_OK);
	view_session_draw(&f->session);
	assert_shows(f, "too small (40x10)");
	assert_int_equal(view_session_size(&f->session, 80, 24, NULL), ST_OK);
	view_session_draw(&f->session);
	assert_shows(f, "Moving");
}

static void test_random_keys_and_sizes_do_no_harm(void **state)
{
	static const char often[] = "++++---=00zz[]{}LuchjklgG123\t?/n\rNSs<>I ,.()FZr";
	struct view_rig *f = *state;

	srand(11);
	for (int i = 0; i < 4000; i++) {
		uint32_t key = (uint32_t)often[(size_t)rand() % (sizeof(often) - 1)];

		if (rand() % 8 == 0)
			key = VIEW_KEY_UP + (uint32_t)rand() % 16;
		if (rand() % 16 == 0)
			key = (uint32_t)rand() % 0x20000;
		/* No files from a test. */
		if (f->session.prompt == VIEW_NO_PROMPT &&
		    view_request_of(key) == VIEW_WRITE_REQUEST)
			continue;
		view_session_key(&f->session, key);
		if (rand() % 50 == 0)
			assert_int_equal(view_session_size(&f->session, 1 + rand() % 220,
							   1 + rand() % 60, NULL),
					 ST_OK);
		view_session_draw(&f->session);
		f->session.quit = false;
	}
}

/* Out of memory anywhere in a load is a message, and the next load is whole again. */
static void test_memory_that_fails_is_said_and_survived(void **state)
{
	struct view_rig *f = *state;

	for (int s = 0; s < VIEW_SCREENS; s++) {
		char *good, *again;
		bool failed = true;

		view_session_show(&f->session, (enum view_screen)s);
		view_session_draw(&f->session);
		good = view_rig_text(&f->session);
		for (long n = 0; failed; n += n < 40 ? 1 : 23) {
			f->session.news[s] = f->session.stale = true;
			support_fail_alloc(n);
			view_session_draw(&f->session);
			failed = support_alloc_failed();
			support_fail_alloc(-1);
		}
		f->session.news[s] = f->session.stale = true;
		view_session_draw(&f->session);
		again = view_rig_text(&f->session);
		assert_string_equal(good, again);
		free(good);
		free(again);
	}
}

static void test_a_screen_is_written_but_never_over_a_file(void **state)
{
	struct view_rig *f = *state;
	char command[SUPPORT_PATH_SIZE + 64], path[SUPPORT_PATH_SIZE + 32];
	char *text;

	snprintf(path, sizeof(path), "%s/out.json", f->folder);
	snprintf(command, sizeof(command), "8W\x15%s\r", path);
	view_rig_press(f, command);
	assert_shows(f, "written: ");
	text = support_read_file(path, NULL);
	assert_contains(text, "\"report\":\"tensors\"");
	free(text);
	view_rig_press(f, command);
	assert_shows(f, "not written");
	snprintf(path, sizeof(path), "%s/out.txt", f->folder);
	snprintf(command, sizeof(command), "7W\x15%s\r", path);
	view_rig_press(f, command);
	text = support_read_file(path, NULL);
	assert_contains(text, "device (sim)");
	free(text);
}

static void test_a_run_is_followed_until_it_is_complete(void **state)
{
	struct view_rig *f = *state;
	char path[SUPPORT_PATH_SIZE + 32];
	struct ips_recording *recording;
	struct ips_track *track;
	struct view_session session;
	uint64_t now = clock_ns();

	IPS_SITE(first, "test", "first span");
	IPS_SITE(second, "test", "second span");
	snprintf(path, sizeof(path), "%s/live.db", f->folder);
	assert_int_equal(ips_recording_open(&recording, path, NULL, NULL, 0), 0);
	track = ips_track_open(recording, "lane", NULL);
	ips_span_at(track, &first, 0, 1000);
	ips_recording_flush(recording);

	assert_int_equal(view_session_open(&session, path, NULL, false, NULL), ST_OK);
	assert_int_equal(view_session_size(&session, 120, 24, NULL), ST_OK);
	view_session_show(&session, VIEW_TIMELINE);
	view_session_draw(&session);
	assert_int_equal(session.source.state, VIEW_RECORDING);
	view_session_key(&session, 'F');

	ips_span_at(track, &second, 5000, 1000);
	ips_recording_flush(recording);
	now += UINT64_C(5000000000);
	assert_true(view_session_tick(&session, now));
	view_session_draw(&session);
	{
		char *text = view_rig_text(&session);

		assert_contains(text, "second span");
		assert_contains(text, "recording, following");
		free(text);
		/* Names of screens go before the run's name and state do. */
		assert_int_equal(view_session_size(&session, 80, 24, NULL), ST_OK);
		view_session_key(&session, VIEW_KEY_UP);
		view_session_draw(&session);
		text = view_rig_text(&session);
		assert_contains(text, "live.db \xe2\x97\x8f recording, following");
		free(text);
	}
	assert_int_equal(ips_recording_close(recording, NULL, 0), 0);
	for (int i = 0; i < 20 && session.source.state != VIEW_COMPLETE; i++) {
		now += UINT64_C(5000000000);
		view_session_tick(&session, now);
	}
	assert_int_equal(session.source.state, VIEW_COMPLETE);
	assert_true(session.context.follow);
	view_session_draw(&session);
	assert_false(session.context.follow); /* the newest has been seen */
	view_session_close(&session);
}

static void test_what_is_over_is_neither_followed_nor_paused(void **state)
{
	static const struct {
		enum view_state state;
		const char *said, *title;
	} ends[] = {{VIEW_COMPLETE, "the run is complete", " complete\n"},
		    {VIEW_KILLED, "the run has died", " killed: the writer died\n"}};
	struct view_rig *rig = *state;

	view_rig_size(rig, 132, 24);
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		rig->session.source.state = ends[i].state;
		for (const char *key = "ZF"; *key; key++) {
			view_rig_press(rig, (char[]){*key, '\0'});
			assert_shows(rig, ends[i].said);
			assert_shows(rig, ends[i].title);
			assert_shows(rig, rig->session.source.name);
		}
		assert_false(rig->session.paused || rig->session.context.follow);
	}
	/* What was paused before goes on. */
	rig->session.paused = true;
	view_rig_press(rig, "Z");
	assert_false(rig->session.paused);
}

static void test_what_differs_is_asked_of_tables(void **state)
{
	view_rig_press(*state, "8D");
	assert_shows(*state, "only what differs");
	assert_hides(*state, "lanes");
	view_rig_press(*state, "7DD");
	assert_shows(*state, "only what differs among the sums by name (b); lanes stay whole");
}

static int setup_two(void **state)
{
	return view_rig_setup_model(state, true, 80, 24, "");
}

/* A run of which nothing is known yet. */
static void test_an_empty_recording_is_shown_and_survives_keys(void **state)
{
	struct view_rig *f = *state;
	char path[SUPPORT_PATH_SIZE + 32];
	struct ips_recording *recording;
	struct view_session session;

	snprintf(path, sizeof(path), "%s/empty.db", f->folder);
	assert_int_equal(ips_recording_open(&recording, path, NULL, NULL, 0), 0);
	assert_int_equal(ips_recording_close(recording, NULL, 0), 0);
	assert_int_equal(view_session_open(&session, path, NULL, true, NULL), ST_OK);
	assert_int_equal(view_session_size(&session, 80, 24, NULL), ST_OK);
	for (int s = 0; s < VIEW_SCREENS; s++)
		for (int r = VIEW_NONE + 1; r < VIEW_REQUESTS; r++) {
			const struct view_request_info *info =
				view_request_info((enum view_request)r);

			view_session_show(&session, (enum view_screen)s);
			view_session_draw(&session);
			view_session_key(&session, info->keys[0]);
			if ((info->screens & view_screen((enum view_screen)s)->where))
				assert_null(strstr(session.context.message, "not on this"));
			view_session_draw(&session);
			assert_int_equal(session.trouble.status, ST_OK);
			if (session.prompt != VIEW_NO_PROMPT)
				view_session_key(&session, VIEW_KEY_ESCAPE);
		}
	view_session_close(&session);
}

#define SESSION_TEST(test) cmocka_unit_test_setup_teardown(test, view_rig_setup, view_rig_teardown)

/* All of @text but blanks and new lines. */
static void pack(char *out, const char *text)
{
	out += strlen(out);
	for (; *text; text++)
		if (*text != ' ' && *text != '\n')
			*out++ = *text;
	*out = '\0';
}

/* What is wrong stands at the end of an error: the middle goes. */
static void test_a_message_that_is_too_long_keeps_both_ends(void **state)
{
	struct view_context context = {0};
	char rest[2 * VIEW_MESSAGE_SIZE];

	(void)state;
	memset(rest, '-', sizeof(rest));
	str_copy(rest + sizeof(rest) - 8, 8, "the end");
	view_message(&context, "not read: ", rest);
	assert_int_equal(strlen(context.message), VIEW_MESSAGE_SIZE - 1);
	assert_memory_equal(context.message, "not read: ...--", 15);
	assert_string_equal(context.message + VIEW_MESSAGE_SIZE - 1 - 9, "--the end");
	view_message(&context, "not read: ", "a short one");
	assert_string_equal(context.message, "not read: a short one");
}

static void test_the_whole_query_is_in_its_list_at_any_width(void **state)
{
	static char shown[8 * VIEW_PLACE_SQL], wanted[8 * VIEW_PLACE_SQL];
	struct view_rig *rig = *state;
	const struct view_popup *popup = &rig->session.popup;

	for (int width = 40; width <= 200; width += 40) {
		view_rig_size(rig, width, 24);
		view_rig_press(rig, "7y");
		shown[0] = wanted[0] = '\0';
		for (int i = 0; i < popup->count; i++) {
			pack(shown, popup->items[i].text);
			assert_true(utf8_columns(popup->items[i].text) <= popup->rect.width - 3);
		}
		pack(wanted, rig->session.statement);
		assert_true(strlen(wanted) > 100);
		assert_string_equal(shown, wanted);
		view_rig_key(rig, VIEW_KEY_ESCAPE);
	}
}

/* One switch for all screens: also those that have been looked at before, and both ways. */
static void test_only_what_differs_is_left_on_every_screen(void **state)
{
	static const enum view_screen screens[] = {VIEW_SUMMARY, VIEW_OPERATIONS};
	struct view_rig *rig = *state;
	char *whole[ARRAY_LEN(screens)], *text;

	for (size_t i = 0; i < ARRAY_LEN(screens); i++) {
		view_rig_key(rig, view_screen(screens[i])->key);
		whole[i] = view_rig_text(&rig->session);
	}
	view_rig_press(rig, "D");
	for (size_t i = 0; i < ARRAY_LEN(screens); i++) {
		view_rig_key(rig, view_screen(screens[i])->key);
		assert_shows(rig, "only what differs");
		text = view_rig_text(&rig->session);
		assert_string_not_equal(text, whole[i]);
		free(text);
	}
	view_rig_press(rig, "D");
	for (size_t i = 0; i < ARRAY_LEN(screens); i++) {
		view_rig_key(rig, view_screen(screens[i])->key);
		view_rig_press(rig, "g");
		assert_hides(rig, "only what differs");
		text = view_rig_text(&rig->session);
		assert_string_equal(text, whole[i]);
		free(text);
		free(whole[i]);
	}
}

static int setup_compared(void **state)
{
	return view_rig_setup_model(state, true, 80, 24, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SESSION_TEST(test_screens_open_by_number_and_tab),
		SESSION_TEST(test_the_bubble_is_shaded_and_bars_say_what_they_are),
		SESSION_TEST(test_gaps_are_found_and_called_bubble),
		SESSION_TEST(test_keys_that_lead_out_end_the_line),
		SESSION_TEST(test_spans_are_walked),
		SESSION_TEST(test_search_goes_on_and_around),
		SESSION_TEST(test_tensors_sort_and_change_statistic),
		SESSION_TEST(test_tensors_are_filtered_by_key),
		SESSION_TEST(test_every_key_is_handled_on_its_screens),
		SESSION_TEST(test_drawing_only_draws),
		SESSION_TEST(test_any_size_can_be_drawn),
		SESSION_TEST(test_random_keys_and_sizes_do_no_harm),
		SESSION_TEST(test_memory_that_fails_is_said_and_survived),
		SESSION_TEST(test_a_screen_is_written_but_never_over_a_file),
		SESSION_TEST(test_a_run_is_followed_until_it_is_complete),
		SESSION_TEST(test_what_is_over_is_neither_followed_nor_paused),
		cmocka_unit_test_setup_teardown(test_what_differs_is_asked_of_tables, setup_two,
						view_rig_teardown),
		SESSION_TEST(test_an_empty_recording_is_shown_and_survives_keys),
		SESSION_TEST(test_the_whole_query_is_in_its_list_at_any_width),
		cmocka_unit_test(test_a_message_that_is_too_long_keeps_both_ends),
		cmocka_unit_test_setup_teardown(test_only_what_differs_is_left_on_every_screen,
						setup_compared, view_rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
