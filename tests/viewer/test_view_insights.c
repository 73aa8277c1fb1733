/*
 * The screen Insights: what reports/insights finds is what it lists, tells and leads to.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "profiler/ipuscope/profiler.h"
#include "common/minmax.h"
#include "support/report_sample.h"
#include "support/view_fixture.h"
#include "support/view_rig.h"
#include "viewer/insights/view_insights_internal.h"

static int setup(void **state)
{
	struct view_rig *rig = view_rig_new(state);

	report_sample_write(rig->path);
	view_rig_start(rig, false, 80, 24, "2");
	return 0;
}

static const struct view_insights *screen_of(const struct view_rig *rig)
{
	return rig->session.state[VIEW_INSIGHTS];
}

static const char *cell_text(const struct view_insights *screen, const char *column)
{
	const struct report_cell *cell = view_grid_cell(&screen->grid, column);

	assert_non_null(cell);
	return cell->type == PROF_TEXT ? cell->text : NULL;
}

static void test_the_list_is_what_the_report_finds(void **state)
{
	struct view_rig *rig = *state;
	struct report_insights found;
	int counts[REPORT_INSIGHT_SEVERITIES] = {0};
	char text[128];

	assert_int_equal(report_insights_get(&found, rig->session.source.db, NULL), ST_OK);
	assert_true(found.count > 2);
	assert_int_equal(screen_of(rig)->grid.count, found.count);
	view_rig_press(rig, "g");
	for (int i = 0; i < found.count; i++) {
		const struct report_insight *insight = &found.items[i];

		counts[insight->severity]++;
		assert_string_equal(cell_text(screen_of(rig), "id"), insight->id);
		assert_shows(rig, insight->id);
		/* What is not estimated is not nothing. */
		assert_int_equal(view_grid_cell(&screen_of(rig)->grid, "share")->type,
				 insight->share > 0 ? PROF_REAL : PROF_NULL);
		if (insight->share > 0)
			assert_shows(rig, fmt_percent(text, insight->share));
		view_rig_press(rig, "j");
	}
	snprintf(text, sizeof(text), "%d problem", counts[REPORT_INSIGHT_PROBLEM]);
	assert_shows(rig, text);
	snprintf(text, sizeof(text), "%d advice, %d note", counts[REPORT_INSIGHT_ADVICE],
		 counts[REPORT_INSIGHT_NOTE]);
	assert_shows(rig, text);
	report_insights_free(&found);
}

/* Blanks and borders of lines taken out, and quotes, which CSV doubles and JSON escapes. */
static char *words_of(const char *text)
{
	char *out = strdup(text), *to = out;

	for (const char *at = text; *at; at++)
		if (!strchr(" \n\"\\", *at))
			*to++ = *at;
	*to = '\0';
	return out;
}

static void test_all_of_the_sentence_the_remedy_and_the_numbers_is_told(void **state)
{
	struct view_rig *rig = *state;

	view_rig_size(rig, 80, 60);
	view_rig_press(rig, "gv");
	for (int i = 0; i < screen_of(rig)->found[0].count; i++) {
		const struct report_insight *insight = screen_of(rig)->selected[0];
		char *text = view_rig_text(&rig->session), *shown = words_of(text);
		char *sentence = words_of(insight->sentence);
		char *remedy = words_of(insight->remedy ? insight->remedy : "");

		assert_contains(shown, sentence);
		assert_contains(shown, remedy);
		for (int n = 0; n < insight->number_count; n++)
			assert_contains(text, insight->numbers[n].name);
		if (isfinite(insight->gain.step_ns[0]) && isfinite(insight->gain.step_ns[1])) {
			char before[FMT_SIZE];

			assert_contains(text, "step predicted");
			assert_contains(text, fmt_ns(before, (int64_t)insight->gain.step_ns[0]));
		}
		free(text);
		free(shown);
		free(sentence);
		free(remedy);
		view_rig_press(rig, "l");
	}
}

/* The sample's fullest tile, as SQL has it. */
static void test_its_numbers_are_those_of_sql(void **state)
{
	struct view_rig *rig = *state;
	char bytes[FMT_SIZE];

	view_rig_size(rig, 132, 43);
	view_rig_press(rig, "/memory_peak\r");
	assert_string_equal(cell_text(screen_of(rig), "id"), "memory_peak");
	assert_shows(rig, fmt_bytes(bytes, (uint64_t)view_rig_sql_int(
						   rig, "SELECT max(always_live_bytes + "
							"not_always_live_bytes) FROM liveness")));
	assert_shows(rig, fmt_bytes(bytes, (uint64_t)view_rig_sql_int(
						   rig, "SELECT max(bytes) FROM (SELECT sum(bytes) "
							"AS bytes FROM tile_memory GROUP BY ipu, "
							"tile)")));
}

static void test_severities_and_ipus_are_chosen(void **state)
{
	struct view_rig *rig = *state;
	const struct view_insights *screen = screen_of(rig);
	const int64_t all = screen->grid.count;
	int64_t sum = 0;

	view_rig_press(rig, "b");
	for (; screen->severity != VIEW_ALL_SEVERITIES; view_rig_press(rig, "b")) {
		const enum report_insight_severity severity =
			(enum report_insight_severity)screen->severity;

		assert_true(screen->grid.count > 0);
		sum += screen->grid.count;
		for (int64_t i = 0; i < screen->grid.count; i++, view_rig_press(rig, "j"))
			assert_string_equal(cell_text(screen, "severity"),
					    report_insight_severity(severity));
	}
	assert_int_equal(sum, all);
	assert_int_equal(screen->grid.count, all);
	view_rig_press(rig, "i");
	assert_true(screen->ipu != IPS_NULL && screen->grid.count > 0 && screen->grid.count < all);
	while (screen->ipu != IPS_NULL)
		view_rig_press(rig, "i");
	assert_int_equal(screen->grid.count, all);
	view_rig_press(rig, "\\memory\r");
	assert_true(screen->grid.count > 0 && screen->grid.count < all);
	view_rig_press(rig, "\x1b>I<");
	assert_int_equal(screen->grid.count, all);
}

static void test_keys_of_an_insight_are_a_place(void **state)
{
	struct view_place place;

	(void)state;
	view_place_clear(&place);
	view_place_keys(&place, "clock=device mode=train stage=1 type=StreamCopy* tile=1471");
	assert_string_equal(place.clock, "device");
	assert_string_equal(place.mode, "train");
	assert_int_equal(place.stage, 1);
	assert_int_equal(place.tile, 1471);
	assert_int_equal(place.ipu, IPS_NULL);
	view_place_clear(&place);
	place.ipu = 3;
	view_place_keys(&place, "operation=a b = c ipu=2 rule=std = inf");
	assert_string_equal(place.operation, "a b = c");
	assert_int_equal(place.ipu, 3);
	assert_string_equal(place.rule, "std = inf");
	view_place_clear(&place);
	view_place_keys(&place, "stage=one tile= =4 nothing");
	assert_int_equal(place.stage, IPS_NULL);
	assert_int_equal(place.tile, IPS_NULL);
	view_place_keys(&place, "");
	view_place_keys(&place, NULL);
}

static void test_an_insight_leads_to_its_rows_and_back(void **state)
{
	struct view_rig *rig = *state;
	const struct view_insights *screen = screen_of(rig);
	const struct view_screen_ops *ops = &view_insights_ops;
	struct view_context *context = &rig->session.context;
	struct view_place place;
	char text[VIEW_PLACE_NAME];

	view_rig_press(rig, "/memory_peak\r");
	assert_true(ops->place(screen, &place));
	assert_string_equal(place.view, "liveness");
	assert_int_equal(place.ipu, 0);
	assert_int_equal(place.program_step,
			 view_rig_sql_int(rig, "SELECT program_step FROM liveness ORDER BY "
					       "always_live_bytes + not_always_live_bytes DESC "
					       "LIMIT 1"));
	assert_string_equal(place.sql, screen->selected[0]->sql);
	view_rig_key(rig, VIEW_KEY_ENTER);
	assert_int_equal(rig->session.popup.kind, VIEW_JOIN_POPUP);
	assert_shows(rig, "what is live at program step");
	while (rig->session.popup.items[rig->session.popup.at].tag != VIEW_LIVENESS)
		view_rig_press(rig, "j");
	view_rig_key(rig, VIEW_KEY_ENTER);
	assert_int_equal(rig->session.screen, VIEW_LIVENESS);
	view_rig_key(rig, VIEW_KEY_BACKSPACE);
	assert_int_equal(rig->session.screen, VIEW_INSIGHTS);
	assert_string_equal(cell_text(screen, "id"), "memory_peak");

	view_place_clear(&place);
	assert_false(ops->offers(&place, text, sizeof(text)));
	place.ipu = 77;
	assert_true(ops->offers(&place, text, sizeof(text)));
	assert_int_equal(ops->go(rig->session.state[VIEW_INSIGHTS], context, &place, NULL),
			 ST_NOTFOUND);
}

/* What is said of a pipeline, a stage or an IPU is seen where the pipeline stood idle most. */
static void test_an_insight_on_time_leads_to_the_timeline(void **state)
{
	struct view_rig *rig = *state;
	const struct view_insights *screen = screen_of(rig);
	struct prof_db *db = rig->session.source.db;
	const int64_t worst = view_rig_sql_int(
		rig, "SELECT weight_update FROM bubbles WHERE clock = 'device' AND mode = 'train' "
		     "AND weight_update > 0 ORDER BY idle_fraction DESC LIMIT 1");
	int led = 0;

	for (int i = 0; i < screen->found[0].count; i++) {
		const struct report_insight *insight = &screen->found[0].items[i];
		struct view_place place;
		char text[VIEW_PLACE_NAME];

		view__insight_place(insight, &place);
		if (strcmp(place.clock, "device") != 0 || !insight->view)
			continue;
		assert_int_equal(view_place_complete(&place, db, NULL), ST_OK);
		assert_int_equal(place.weight_update, worst);
		assert_true(view_timeline_ops.offers(&place, text, sizeof(text)));
		led++;
	}
	assert_true(led > 0);
}

static void test_the_query_behind_each_runs(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "g");
	for (int i = 0; i < screen_of(rig)->found[0].count; i++, view_rig_press(rig, "j")) {
		struct str text = {0};
		char *sql = NULL;

		view_insights_ops.query(screen_of(rig), &rig->session.context, &text);
		if (text.length > 2) {
			assert_string_equal(text.text + text.length - 2, ";\n");
			text.text[text.length - 2] = '\0';
			assert_true(asprintf(&sql, "SELECT count(*) FROM (%s)", text.text) > 0);
			assert_true(view_rig_sql_int(rig, sql) > 0);
		}
		free(sql);
		str_free(&text);
	}
}

/* Keys that choose what is on the list say so where the list is not there, and change nothing. */
static void test_choices_of_a_list_that_is_not_shown_are_refused(void **state)
{
	struct view_rig *rig = *state;
	static const char keys[][2] = {"b", "i", "|", ">", "<", "I"};

	while (screen_of(rig)->show != VIEW_INSIGHTS_TOLD)
		view_rig_press(rig, "v");
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		view_rig_press(rig, keys[i]);
		assert_shows(rig, "that is for the list: v shows it");
	}
	assert_int_equal(screen_of(rig)->severity, VIEW_ALL_SEVERITIES);
	assert_int_equal(screen_of(rig)->grid.sort, -1);
	assert_false(screen_of(rig)->grid.every);
}

/* What is wrong with a filter stands alone; else what keys show comes before what is counted. */
static void test_the_status_begins_with_the_row(void **state)
{
	struct view_rig *rig = *state;

	assert_shows(rig, "\n row 1 of ");
	view_rig_press(rig, "\\((\r");
	assert_shows(rig, "\n filter: ");
	assert_hides(rig, " notes");
}

static void test_of_two_reports_what_is_gone_and_new_is_said(void **state)
{
	struct view_rig *rig = *state;
	char path[SUPPORT_PATH_SIZE + 16];
	const struct view_insights *screen;
	int64_t all;

	snprintf(path, sizeof(path), "%s/target.db", rig->folder);
	assert_true(view_fixture_write(path, 0));
	view_rig_close(rig);
	view_rig_open(rig, rig->path, path, 132, 43);
	view_rig_press(rig, "2");
	screen = screen_of(rig);
	assert_true(screen->compared && screen->found[0].count > 0 && screen->found[1].count > 0);
	all = screen->grid.count;
	assert_true(all >= screen->found[0].count && all >= screen->found[1].count);
	assert_shows(rig, "Target");
	view_rig_press(rig, "/memory_peak\r");
	assert_non_null(screen->selected[0]);
	assert_null(screen->selected[1]);
	assert_shows(rig, "The Target does not have it: it is gone.");
	/* One of the Target's alone is found again by its place. */
	for (int i = 0; i < screen->found[1].count; i++) {
		struct view_place place;

		view__insight_place(&screen->found[1].items[i], &place);
		assert_int_equal(view_insights_ops.go(rig->session.state[VIEW_INSIGHTS],
						      &rig->session.context, &place, NULL),
				 ST_OK);
		rig->session.stale = true;
		view_session_draw(&rig->session);
		assert_true(screen->selected[0] || screen->selected[1]);
	}
	view_rig_press(rig, "DvvvbbbbD");
	assert_int_equal(screen->grid.count, all);
}

/* On paper all of them say all that they say. */
static void test_in_a_file_every_insight_is_told(void **state)
{
	static const enum report_format formats[] = {REPORT_AS_TEXT, REPORT_AS_CSV, REPORT_AS_JSON};
	struct view_rig *rig = *state;

	for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++) {
		char *text = NULL, *shown;
		size_t size = 0;
		FILE *out = open_memstream(&text, &size);

		assert_int_equal(view_session_print(&rig->session, VIEW_INSIGHTS, formats[f], 100,
						    out, NULL),
				 ST_OK);
		fclose(out);
		shown = words_of(text);
		for (int i = 0; i < screen_of(rig)->found[0].count; i++) {
			char *sentence = words_of(screen_of(rig)->found[0].items[i].sentence);

			assert_contains(shown, sentence);
			free(sentence);
		}
		free(shown);
		free(text);
	}
}

static void press_in_every_show(struct view_rig *rig)
{
	for (int show = 0; show < VIEW_INSIGHTS_SHOWS; show++)
		view_rig_press(rig, "gjk Gvhl");
	view_rig_press(rig, "gV");
	assert_shows(rig, screen_of(rig)->found[0].items[0].id);
	view_rig_press(rig, "v");
}

static void test_every_size_and_look_can_be_drawn(void **state)
{
	view_rig_each_look(*state, press_in_every_show);
}

/* Beside each other from 120 columns on; else the list has its rows, but at most half of them. */
static void assert_shared(struct view_rect body, int rows, const struct view_insights_layout *areas)
{
	assert_int_equal(areas->beside, body.width >= 120);
	if (areas->beside) {
		assert_int_equal(areas->told.width, max(52, min(body.width * 2 / 5, 92)));
		assert_int_equal(areas->told.height, body.height);
		assert_int_equal(areas->list.height, body.height);
	} else if (body.height >= 5) {
		assert_int_equal(areas->list.height, max(2, min(rows, (body.height - 1) / 2)));
		assert_int_equal(areas->told.height, body.height - 1 - areas->list.height);
	} else {
		assert_int_equal(areas->list.height, body.height);
	}
}

static void test_areas_lie_within_the_body(void **state)
{
	static const int counts[] = {1, 9, 100};

	(void)state;
	for (int width = 1; width <= 300; width++)
		for (int height = 1; height <= 70; height++)
			for (int show = 0; show < VIEW_INSIGHTS_SHOWS; show++) {
				const struct view_rect body = {0, 0, width, height};
				const int rows = counts[(width + height) % 3];
				const struct view_insights_layout areas = view_insights_areas(
					body, rows, (enum view_insights_show)show);
				const struct view_rect rects[] = {areas.list, areas.rule,
								  areas.told};
				int cells = 0;

				for (int i = 0; i < 3; i++) {
					assert_true(rects[i].x >= 0 && rects[i].y >= 0);
					assert_true(rects[i].x + rects[i].width <= width);
					assert_true(rects[i].y + rects[i].height <= height);
					cells += rects[i].width * rects[i].height;
				}
				assert_int_equal(cells, width * height);
				if (show == VIEW_INSIGHTS_BOTH)
					assert_shared(body, rows, &areas);
			}
}

static void test_an_empty_recording_says_what_was_looked_for(void **state)
{
	struct view_rig *rig = *state;
	char path[SUPPORT_PATH_SIZE + 16];
	struct ips_recording *recording;

	snprintf(path, sizeof(path), "%s/empty.db", rig->folder);
	assert_int_equal(ips_recording_open(&recording, path, NULL, NULL, 0), 0);
	assert_int_equal(ips_meta_set(recording, "run", "{}"), 0);
	assert_int_equal(ips_recording_close(recording, NULL, 0), 0);
	view_rig_close(rig);
	view_rig_open(rig, path, NULL, 80, 24);
	view_rig_press(rig, "2hjklgG>I|vVbi");
	assert_null(strstr(rig->session.context.message, "not on this"));
	assert_shows(rig, "ot looked for");
}

static void test_memory_that_fails_is_said_and_survived(void **state)
{
	struct view_rig *rig = *state;
	struct view_session *session = &rig->session;
	char path[SUPPORT_PATH_SIZE + 16], *good, *again;
	bool failed = true;

	snprintf(path, sizeof(path), "%s/target.db", rig->folder);
	assert_true(view_fixture_write(path, 4));
	view_rig_close(rig);
	view_rig_open(rig, rig->path, path, 132, 43);
	view_rig_press(rig, "2j");
	good = view_rig_text(session);
	for (long n = 0; failed; n += n < 100 ? 1 : 37) {
		session->news[VIEW_INSIGHTS] = session->stale = true;
		support_fail_alloc(n);
		view_session_draw(session);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
	}
	session->news[VIEW_INSIGHTS] = session->stale = true;
	view_session_draw(session);
	again = view_rig_text(session);
	assert_string_equal(good, again);
	free(good);
	free(again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define EACH(name) cmocka_unit_test_setup_teardown(name, setup, view_rig_teardown)
		EACH(test_the_list_is_what_the_report_finds),
		EACH(test_all_of_the_sentence_the_remedy_and_the_numbers_is_told),
		EACH(test_its_numbers_are_those_of_sql),
		EACH(test_severities_and_ipus_are_chosen),
		cmocka_unit_test(test_keys_of_an_insight_are_a_place),
		EACH(test_an_insight_leads_to_its_rows_and_back),
		EACH(test_an_insight_on_time_leads_to_the_timeline),
		EACH(test_the_query_behind_each_runs),
		EACH(test_choices_of_a_list_that_is_not_shown_are_refused),
		EACH(test_the_status_begins_with_the_row),
		EACH(test_of_two_reports_what_is_gone_and_new_is_said),
		EACH(test_in_a_file_every_insight_is_told),
		EACH(test_every_size_and_look_can_be_drawn),
		cmocka_unit_test(test_areas_lie_within_the_body),
		EACH(test_an_empty_recording_says_what_was_looked_for),
		EACH(test_memory_that_fails_is_said_and_survived),
#undef EACH
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
