/*
 * The timeline's bubble by cause and the device's steps, against what the recording says in SQL.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/minmax.h"
#include "support/view_fixture.h"
#include "support/view_fixture_device.h"
#include "support/view_rig.h"
#include "viewer/timeline/view_timeline_internal.h"

static char recording[SUPPORT_PATH_SIZE + 16], other[SUPPORT_PATH_SIZE + 16];

static int setup(void **state)
{
	struct view_rig *rig = calloc(1, sizeof(*rig));

	view_rig_open(rig, recording, NULL, 160, 44);
	view_rig_press(rig, "7");
	*state = rig;
	return 0;
}

static const struct view_timeline *timeline_of(struct view_rig *rig)
{
	return rig->session.state[VIEW_TIMELINE];
}

static int64_t ask(struct view_rig *rig, const char *column, int clock,
		   const struct view_pipeline_run *run, int64_t replica)
{
	char sql[256];

	snprintf(sql, sizeof(sql),
		 "SELECT %s FROM bubbles WHERE clock = '%s' AND weight_update = %lld AND replica = "
		 "%lld",
		 column, clock ? "device" : "host", (long long)run->weight_update,
		 (long long)replica);
	return view_rig_sql_int(rig, sql);
}

/* Each run that the window holds, on both clocks. */
static int check_causes(struct view_rig *rig)
{
	static const char *const columns[VIEW_CAUSES] = {"", "ramp_up_ns", "ramp_down_ns",
							 "imbalance_ns", "communication_ns"};
	const struct view_timeline *tl = timeline_of(rig);
	int checked = 0;

	for (int r = 0; r < tl->run_count; r++) {
		const struct prof_track *track = tl->lanes[tl->runs[r].group].track;

		if (!tl->bubbles.split[track->clock] ||
		    tl->runs[r].from < tl->clock[track->clock].window.from ||
		    tl->runs[r].to > tl->clock[track->clock].window.to)
			continue;
		checked++;
		for (int c = VIEW_CAUSE_RAMP_UP; c < VIEW_CAUSES; c++)
			assert_int_equal(tl->runs[r].idle_ns[c], ask(rig, columns[c], track->clock,
								     &tl->runs[r], track->ipu / 2));
	}
	return checked;
}

static void test_gaps_of_a_run_add_up_to_its_bubble(void **state)
{
	struct view_rig *rig = *state;
	int runs = 0;

	view_rig_press(rig, "b");
	runs += check_causes(rig);
	assert_true(timeline_of(rig)->bubbles.split[0] && timeline_of(rig)->bubbles.split[1]);
	for (const char *key = "+lll-lll--hhkkkkk++lllj+l+l+lhh"; *key; key++) {
		const char text[2] = {*key, '\0'};

		view_rig_press(rig, text);
		runs += check_causes(rig);
	}
	assert_true(runs > 20);
	/* Lanes that are not shown still count. */
	view_rig_press(rig, "i--");
	assert_true(check_causes(rig) > 0);
}

static void test_causes_have_fills_of_their_own(void **state)
{
	struct view_rig *rig = *state;

	rig->session.canvas.ascii = true;
	view_rig_press(rig, "b");
	assert_shows(rig, "/ramp-up");
	assert_shows(rig, "\\ramp-down");
	assert_shows(rig, "%imbalance");
	assert_shows(rig, "~communication");
	assert_shows(rig, "////");
	assert_shows(rig, "%%");
	view_rig_press(rig, "bb");
	assert_shows(rig, "the bubble as a whole");
}

/* Of the cursor's clock: the rows of the runs in the window. */
static void test_the_heading_says_what_the_rows_say(void **state)
{
	static const char sql[] =
		"SELECT printf('bubble %%.1f %%%% (theory %%.1f %%%%): ramp-up %%.1f, ramp-down "
		"%%.1f, imbalance %%.1f, communication %%.1f', 100.0 - 100.0 * sum(busy_ns) / "
		"sum(all_ns), avg(theory_idle_fraction) * 100, 100.0 * sum(ramp_up_ns) / "
		"sum(all_ns), 100.0 * "
		"sum(ramp_down_ns) / sum(all_ns), 100.0 * sum(imbalance_ns) / sum(all_ns), 100.0 * "
		"sum(communication_ns) / sum(all_ns)) FROM (SELECT *, busy_ns + ramp_up_ns + "
		"ramp_down_ns + imbalance_ns + communication_ns AS all_ns FROM bubbles WHERE clock "
		"= 'device' AND weight_update BETWEEN %lld AND %lld)";
	struct view_rig *rig = *state;
	const struct view_timeline *tl = timeline_of(rig);
	int64_t first = INT64_MAX, last = INT64_MIN;
	char text[1024], *expected;

	assert_int_equal(view__lead(tl), 1);
	for (int i = 0; i < tl->run_count; i++)
		if (tl->lanes[tl->runs[i].group].track->clock == 1) {
			first = tl->runs[i].weight_update < first ? tl->runs[i].weight_update
								  : first;
			last = tl->runs[i].weight_update > last ? tl->runs[i].weight_update : last;
		}
	snprintf(text, sizeof(text), sql, (long long)first, (long long)last);
	expected = view_rig_sql_text(rig, text);
	assert_shows(rig, expected);
	free(expected);
	/* The statement behind it gives the same number of rows. */
	snprintf(text, sizeof(text), "clock = 'device' AND weight_update BETWEEN %lld AND %lld",
		 (long long)first, (long long)last);
	{
		struct str out = {0};

		view_screen(VIEW_TIMELINE)->query(tl, &rig->session.context, &out);
		assert_contains(str_peek(&out), text);
		str_free(&out);
	}
}

static void test_many_runs_are_said_by_their_sums(void **state)
{
	struct view_rig *rig = *state;
	char *expected;

	view_rig_press(rig, "0");
	assert_true(timeline_of(rig)->bubbles.shown[1].mean);
	expected = view_rig_sql_text(
		rig, "SELECT printf('bubble %.1f %%', 100.0 * sum(total_ns - total_busy_ns) / "
		     "sum(total_ns)) FROM bubble_sums WHERE clock = 'device'");
	assert_shows(rig, expected);
	assert_shows(rig, "all 320 runs");
	free(expected);
}

/* The bubble is that of every run in the window, or said to be the mean of all: never of some. */
static void test_the_bubble_is_of_all_runs_in_the_window(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl = timeline_of(rig);
	int means = 0, sums = 0;

	for (const char *key = "0+l+l+l+l+l+l+l-------"; *key; key++) {
		const char text[2] = {*key, '\0'};

		view_rig_press(rig, text);
		for (int clock = 0; clock < 2; clock++) {
			const struct view_window window = tl->clock[clock].window;
			char sql[512];

			snprintf(
				sql, sizeof(sql),
				"SELECT count(*) FROM (SELECT DISTINCT weight_update, replica FROM "
				"spans WHERE clock = '%s' AND start_ns < %lld AND start_ns + "
				"dur_ns > %lld)",
				clock ? "device" : "host", (long long)window.to,
				(long long)window.from);
			means += tl->bubbles.shown[clock].mean;
			sums += !tl->bubbles.shown[clock].mean;
			if (!tl->bubbles.shown[clock].mean)
				assert_int_equal(tl->bubbles.shown[clock].runs,
						 view_rig_sql_int(rig, sql));
		}
	}
	assert_true(means > 4 && sums > 4);
}

/* Shares of the whole window are those of all steps. */
static void test_steps_of_the_device_are_shown_with_their_shares(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl = timeline_of(rig);
	char sql[512];
	double all;

	view_rig_press(rig, "0vvv");
	assert_shows(rig, "[BSP]");
	assert_shows(rig, "C compute");
	assert_int_equal(tl->device.stride, 1);
	snprintf(sql, sizeof(sql), "SELECT sum(cycles) FROM device_steps WHERE start_ns < %lld",
		 (long long)tl->clock[1].window.to);
	all = view_rig_sql_real(rig, sql);
	assert_true(fabs(tl->device.share[VIEW_KIND_COMPUTE] / all - 0.5) < 0.01);
	assert_true(fabs(tl->device.share[VIEW_KIND_HOST_COPY] / all - 0.25) < 0.01);
	for (int i = 0; i < tl->lane_count; i++)
		assert_int_equal(tl->lanes[i].track->clock, 1);
}

/* ---- cells, from the steps in SQL ------------------------------------------------------------ */

struct step {
	int64_t ipu, update, start, cycles, tiles; /* the start in cycles of the clock */
	int64_t run, run_cycles;                   /* its run's start and length */
	double balance;                            /* NaN: not known */
	enum view_kind kind;
};

struct steps {
	struct step row[VIEW_DEVICE_UPDATES * VIEW_DEVICE_REPLICAS * 2 * 8];
	int count;
	int64_t tiles; /* the most of them that are active */
};

static enum view_kind kind_of_type(const char *type)
{
	return !strncmp(type, "Sync", 4)          ? VIEW_KIND_SYNC
	       : !strncmp(type, "StreamCopy", 10) ? VIEW_KIND_HOST_COPY
	       : !strncmp(type, "DoExchange", 10) ? VIEW_KIND_EXCHANGE
						  : VIEW_KIND_COMPUTE;
}

static void read_steps(struct steps *steps)
{
	static const char sql[] =
		"WITH runs AS (SELECT replica AS r, weight_update AS u, min(start_cycle) AS start, "
		"max(start_cycle + cycles) AS until FROM device_steps GROUP BY 1, 2) "
		"SELECT ipu, weight_update, start_cycle, cycles, ifnull(active_tiles, -1), start, "
		"until - start, tile_balance, type FROM device_steps JOIN runs ON replica = r AND "
		"weight_update = u";
	struct prof_query *query;
	struct prof_db *db;
	bool row = false;

	memset(steps, 0, sizeof(*steps));
	assert_int_equal(prof_db_open(&db, recording, NULL), ST_OK);
	assert_int_equal(prof_query_open(&query, db, sql, NULL), ST_OK);
	while (prof_query_step(query, &row, NULL) == ST_OK && row) {
		struct step *step = &steps->row[steps->count++];

		assert_true(steps->count < (int)ARRAY_LEN(steps->row));
		*step = (struct step){.ipu = prof_column_int(query, 0),
				      .update = prof_column_int(query, 1),
				      .start = prof_column_int(query, 2),
				      .cycles = prof_column_int(query, 3),
				      .tiles = prof_column_int(query, 4),
				      .run = prof_column_int(query, 5),
				      .run_cycles = prof_column_int(query, 6),
				      .balance = prof_column_real(query, 7),
				      .kind = kind_of_type(prof_column_text(query, 8))};
		steps->tiles = max(steps->tiles, step->tiles);
	}
	prof_query_close(query);
	prof_db_close(db);
	assert_true(steps->count > 0);
}

static void add_cycles(struct view_bsp *cell, const struct steps *steps, const struct step *step,
		       double cycles)
{
	cell->cycles[step->kind] += cycles;
	if (step->tiles >= 0) {
		cell->tiles += cycles * (double)step->tiles / (double)steps->tiles;
		cell->counted += cycles;
	}
	if (!isnan(step->balance)) {
		cell->balance += cycles * step->balance;
		cell->balanced += cycles;
	}
	cell->best = fmax(cell->best, cycles);
}

/* What a lane's cells have to be. A run of fewer than 6 cells is in the cell of its middle. */
static void make_cells(const struct view_timeline *tl, int64_t ipu, struct view_window window,
		       const struct steps *steps, struct view_bsp *cells)
{
	const double each = (double)(window.to - window.from) / tl->width;

	memset(cells, 0, (size_t)tl->width * sizeof(*cells));
	for (int i = 0; i < steps->count; i++) {
		const struct step *step = &steps->row[i];
		const bool narrow = (double)step->run_cycles / each < 6;
		const int64_t middle = step->run + step->run_cycles / 2 - window.from;
		const int64_t cell = (int64_t)floor((double)middle / each);

		if (step->ipu != ipu || step->run >= window.to ||
		    step->run + step->run_cycles <= window.from)
			continue;
		if (narrow) {
			add_cycles(&cells[min(max(cell, 0), (int64_t)tl->width - 1)], steps, step,
				   (double)step->cycles);
			continue;
		}
		for (int x = 0; x < tl->width; x++) {
			const double from = fmax((double)(step->start - window.from), x * each);
			const double to = fmin((double)(step->start + step->cycles - window.from),
					       (x + 1) * each);

			if (to > from)
				add_cycles(&cells[x], steps, step, to - from);
		}
	}
}

static void assert_near(double value, double expected, double each, const char *what, int x)
{
	if (fabs(value - expected) > 1e-6 * each)
		fail_msg("%s of column %d: %.17g, not %.17g", what, x, value, expected);
}

static int check_cells(const struct view_rig *rig, const struct steps *steps)
{
	const struct view_timeline *tl = rig->session.state[VIEW_TIMELINE];
	const int64_t ns = 1000000000 / VIEW_DEVICE_HERTZ;
	const struct view_window window = {tl->clock[1].window.from / ns,
					   tl->clock[1].window.to / ns};
	const double each = (double)(window.to - window.from) / tl->width;
	double share[VIEW_KINDS] = {0};
	struct view_bsp cells[512];
	int checked = 0;

	assert_int_equal(tl->device.stride, 1);
	assert_true(tl->width <= (int)ARRAY_LEN(cells));
	for (int i = 0; i < tl->lane_count; i++) {
		const struct view_lane *lane = &tl->lanes[i];
		double idle = 0, all = 0;

		if (!lane->bsp)
			continue;
		make_cells(tl, lane->track->ipu, window, steps, cells);
		for (int x = 0; x < tl->width; x++) {
			const struct view_bsp *cell = &lane->bsp[x], *mine = &cells[x];
			double busy = 0;

			for (int k = 0; k < VIEW_KINDS; k++) {
				if (k != VIEW_KIND_IDLE)
					assert_near(cell->cycles[k], mine->cycles[k], each,
						    "cycles", x);
				busy += mine->cycles[k];
				share[k] += cell->cycles[k];
			}
			assert_near(cell->all, fmax(busy, each), each, "all", x);
			assert_near(cell->cycles[VIEW_KIND_IDLE], cell->all - busy, each, "idle",
				    x);
			assert_near(cell->tiles, mine->tiles, each, "tiles", x);
			assert_near(cell->counted, mine->counted, each, "counted", x);
			assert_near(cell->balance, mine->balance, each, "balance", x);
			assert_near(cell->balanced, mine->balanced, each, "balanced", x);
			assert_near(cell->best, mine->best, each, "best", x);
			assert_false(cell->dark);
			idle += cell->cycles[VIEW_KIND_IDLE];
			all += cell->all;
			checked += busy > 0;
		}
		assert_near(lane->idle, idle / all, 1, "lane's idle", 0);
	}
	for (int k = 0; k < VIEW_KINDS; k++)
		assert_near(tl->device.share[k], share[k], each, "share", k);
	return checked;
}

/* From a part of a step to all runs: each column has what the steps have of its time. */
static void test_columns_have_what_the_steps_have_of_their_time(void **state)
{
	struct view_rig *rig = *state;
	static struct steps steps;
	int checked = 0;

	read_steps(&steps);
	view_rig_press(rig, "vvv");
	for (const char *key = " zl-ll--hhh+L--l--------hh-0"; *key; key++) {
		const char text[2] = {*key, '\0'};

		if (*key != ' ')
			view_rig_press(rig, text);
		checked += check_cells(rig, &steps);
	}
	assert_true(checked > 1000);
}

static void test_a_step_has_its_details_and_leads_on(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl = timeline_of(rig);
	struct view_place place;

	view_rig_press(rig, "vvv+");
	for (int i = 0;
	     i < 200 && !(tl->device.at_cursor.step && tl->device.at_cursor.step->operation); i++)
		view_rig_key(rig, VIEW_KEY_SHIFT_RIGHT);
	assert_non_null(tl->device.at_cursor.step);
	assert_shows(rig, "OnTileExecute");
	assert_shows(rig, "80,000");
	assert_shows(rig, "0.250");
	view_place_clear(&place);
	assert_true(view_screen(VIEW_TIMELINE)->place(tl, &place));
	assert_string_equal(place.operation, "Dense_256/MatMul");
	assert_int_equal(place.step, place.weight_update * 4 + 1);
	view_rig_press(rig, "b");
	assert_shows(rig, "height: tile balance");
}

/* z fits the step, u leads to the span around it, L to the longest step in that. */
static void test_keys_of_spans_are_of_steps_too(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl = timeline_of(rig);
	struct view_window step, span;
	int64_t longest;

	view_rig_press(rig, "vvv");
	assert_non_null(tl->device.at_cursor.step);
	step = (struct view_window){tl->device.at_cursor.from_ns, tl->device.at_cursor.to_ns};
	view_rig_press(rig, "z");
	assert_in_range(tl->clock[1].window.to - tl->clock[1].window.from, step.to - step.from,
			2 * (step.to - step.from) + VIEW_WINDOW_LEAST);
	view_rig_press(rig, "u");
	assert_null(tl->device.at_cursor.step);
	assert_int_not_equal(tl->under.selected, IPS_NULL);
	span = (struct view_window){tl->under.span.start_ns,
				    tl->under.span.start_ns + tl->under.span.dur_ns};
	assert_in_range(step.from + (step.to - step.from) / 2, span.from, span.to);
	view_rig_press(rig, "zL");
	assert_non_null(tl->device.at_cursor.step);
	assert_in_range(tl->cursor.ns, span.from, span.to);
	longest = max(min(tl->device.at_cursor.to_ns, span.to) -
			      max(tl->device.at_cursor.from_ns, span.from),
		      0);
	/* Whatever else the cursor may be on within the span takes no more of it. */
	for (int i = 1; i < 20; i++) {
		rig->session.context.message[0] = '\0';
		((struct view_timeline *)rig->session.state[VIEW_TIMELINE])->cursor.ns =
			span.from + (span.to - span.from) * i / 20;
		view_rig_press(rig, "M");
		assert_true(!tl->device.at_cursor.step ||
			    min(tl->device.at_cursor.to_ns, span.to) -
					    max(tl->device.at_cursor.from_ns, span.from) <=
				    longest + 2);
	}
}

/* A search of steps ends on what is found, and says which of how many it is. */
static void test_a_search_lands_on_the_hit(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl = timeline_of(rig);
	char expected[64], sql[256];

	view_rig_press(rig, "vvvg/stage 1 back\r");
	assert_null(tl->device.at_cursor.step);
	assert_string_equal(tl->under.span.name, "stage 1 backward");
	assert_in_range(tl->cursor.ns, tl->under.span.start_ns,
			tl->under.span.start_ns + tl->under.span.dur_ns);
	assert_true(rig->session.context.hit == 1 && rig->session.context.hits > 1);
	snprintf(sql, sizeof(sql),
		 "SELECT count(*) FROM spans WHERE clock = 'device' AND name = 'stage 1 backward' "
		 "AND ipu = (SELECT ipu FROM spans WHERE span_id = %lld)",
		 (long long)tl->under.selected);
	assert_int_equal(rig->session.context.hits, view_rig_sql_int(rig, sql));
	view_rig_press(rig, "n");
	snprintf(expected, sizeof(expected), "2 of %lld", (long long)rig->session.context.hits);
	assert_shows(rig, expected);
	view_rig_press(rig, "N");
	assert_int_equal(rig->session.context.hit, 1);
}

/* Of many runs each column has the kinds one above the other, not one kind's wall. */
static void test_zoomed_out_steps_are_shares(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl = timeline_of(rig);

	view_rig_press(rig, "vvvz");
	assert_false(tl->device.mixed);
	assert_hides(rig, "share of time");
	view_rig_press(rig, "0");
	assert_true(tl->device.mixed);
	assert_shows(rig, "height: share of time");
}

static void test_a_clock_that_is_known_counts_cycles(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "t0");
	assert_shows(rig, "device cycles");
	assert_shows(rig, "0,000,000");
}

static void test_replicas_are_shown_alone(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "iiiii");
	assert_shows(rig, "replica 0");
	assert_int_equal(timeline_of(rig)->lane_count, 4);
	view_rig_press(rig, "i");
	assert_shows(rig, "replica 1");
	view_rig_press(rig, "i");
	assert_int_equal(timeline_of(rig)->lane_count, 8);
}

static void test_any_size_shows_steps_and_causes(void **state)
{
	struct view_rig *rig = *state;

	for (int way = 0; way < 4; way++) {
		view_rig_press(rig, "vb");
		for (int width = 1; width < 300; width = width * 2 + 1)
			for (int height = 1; height < 100; height = height * 2 + 1)
				view_rig_size(rig, width, height);
		view_rig_size(rig, 160, 44);
	}
}

/* ---- comparing ------------------------------------------------------------------------------- */

static int setup_pair(void **state)
{
	struct view_rig *rig = calloc(1, sizeof(*rig));

	view_rig_open(rig, recording, other, 160, 44);
	view_rig_press(rig, "7");
	*state = rig;
	return 0;
}

static int64_t update_start(const char *path, int64_t update)
{
	struct prof_query *query;
	struct prof_db *db;
	bool row = false;
	int64_t start;

	assert_int_equal(prof_db_open(&db, path, NULL), ST_OK);
	assert_int_equal(prof_query_open(&query, db,
					 "SELECT min(start_ns) FROM spans WHERE clock = 'device' "
					 "AND ipu = 0 AND weight_update = :update AND phase = 'F'",
					 NULL),
			 ST_OK);
	prof_query_int(query, ":update", update);
	assert_int_equal(prof_query_step(query, &row, NULL), ST_OK);
	start = prof_column_int(query, 0);
	prof_query_close(query);
	prof_db_close(db);
	return start;
}

static void check_aligned(struct view_rig *rig)
{
	const struct view_timeline *tl = timeline_of(rig);
	const struct view_window mine = tl->clock[1].window, its = tl->target->clock[1].window;

	assert_true(tl->beside.at.number != IPS_NULL);
	assert_int_equal(its.to - its.from, mine.to - mine.from);
	assert_int_equal(its.from - update_start(other, tl->target->beside.at.number),
			 mine.from - update_start(recording, tl->beside.at.number));
}

/* What a key asks for is of a size that has lanes, and so has what is asked for afterwards. */
static void test_keys_in_a_terminal_too_small_are_answered(void **state)
{
	struct view_rig *rig = *state;

	view_rig_size(rig, 20, 5);
	view_rig_key(rig, 'y');
	assert_shows(rig, "too small");
	assert_true(timeline_of(rig)->width > 0);
	assert_true(timeline_of(rig)->run_count > 0);
	assert_non_null(strstr(rig->session.statement, "FROM bubbles WHERE clock = 'device'"));
	view_rig_size(rig, 80, 24);
	assert_shows(rig, "The query behind this screen");
}

static void test_two_timelines_begin_at_the_same_update(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl = timeline_of(rig);

	assert_shows(rig, "S device (sim)");
	assert_shows(rig, "T device (sim)");
	check_aligned(rig);
	assert_int_equal(tl->target->beside.at.number, tl->beside.at.number);
	view_rig_press(rig, "lll+l");
	check_aligned(rig);
	view_rig_press(rig, "hh-");
	check_aligned(rig);
	/* The target has 24 updates. */
	for (int i = 0; i < 40; i++)
		view_rig_key(rig, VIEW_KEY_SHIFT_RIGHT);
	view_rig_press(rig, "0+++++++llllllllllll");
	check_aligned(rig);
	assert_true(tl->beside.at.number > 23);
	assert_int_equal(tl->target->beside.at.number, 23);
	assert_shows(rig, "T from its last, 23");
}

static void test_the_table_has_source_target_and_difference(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl = timeline_of(rig);
	char text[32];

	assert_shows(rig, "Source");
	assert_shows(rig, "Target");
	snprintf(text, sizeof(text), "%+.1f",
		 100 * (tl->target->bubbles.shown[1].idle - tl->bubbles.shown[1].idle));
	assert_shows(rig, text);
	assert_true(fabs(tl->target->bubbles.shown[1].idle - 6.0 / 28) <
		    1e-9); /* as the fixture says of every run */
}

static void test_any_size_shows_two_timelines(void **state)
{
	struct view_rig *rig = *state;

	for (int width = 1; width < 300; width = width * 2 + 1)
		for (int height = 1; height < 100; height = height * 2 + 1)
			view_rig_size(rig, width, height);
	view_rig_press(rig, "vbtiwvvv0gG+}{[]LujkM");
}

#define PAIR(name) cmocka_unit_test_setup_teardown(name, setup_pair, view_rig_teardown)
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, view_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_gaps_of_a_run_add_up_to_its_bubble),
		TEST(test_causes_have_fills_of_their_own),
		TEST(test_the_heading_says_what_the_rows_say),
		TEST(test_many_runs_are_said_by_their_sums),
		TEST(test_the_bubble_is_of_all_runs_in_the_window),
		TEST(test_steps_of_the_device_are_shown_with_their_shares),
		TEST(test_columns_have_what_the_steps_have_of_their_time),
		TEST(test_a_step_has_its_details_and_leads_on),
		TEST(test_keys_of_spans_are_of_steps_too),
		TEST(test_a_search_lands_on_the_hit),
		TEST(test_zoomed_out_steps_are_shares),
		TEST(test_a_clock_that_is_known_counts_cycles),
		TEST(test_replicas_are_shown_alone),
		TEST(test_any_size_shows_steps_and_causes),
		TEST(test_keys_in_a_terminal_too_small_are_answered),
		PAIR(test_two_timelines_begin_at_the_same_update),
		PAIR(test_the_table_has_source_target_and_difference),
		PAIR(test_any_size_shows_two_timelines),
	};
	char folder[SUPPORT_PATH_SIZE];
	int failed;

	support_tempdir(folder);
	snprintf(recording, sizeof(recording), "%s/run.db", folder);
	snprintf(other, sizeof(other), "%s/other.db", folder);
	if (!view_fixture_device_write(recording) || !view_fixture_write(other, 0))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	support_tempdir_remove(folder);
	return failed;
}
