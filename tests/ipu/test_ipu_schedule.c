/*
 * Schedules against their rules, over a grid of stages and micro-batches.
 */
#include "support/support.h"

#include <stdio.h>
#include <string.h>

#include "common/str.h"
#include "ipu/ipu_schedule.h"

static struct ipu_schedule *schedule_of(enum ipu_schedule_kind kind, int stages, int microbatches,
					bool training, const int *device)
{
	struct ipu_schedule_params params = {.kind = kind,
					     .stages = stages,
					     .microbatches = microbatches,
					     .training = training,
					     .device = device};
	struct ipu_schedule *schedule;
	struct err err = {.text = ""};

	if (ipu_schedule_new(&schedule, &params, &err) != ST_OK)
		fail_msg("%s", err.text);
	return schedule;
}

static int work_count(const struct ipu_schedule *schedule)
{
	return schedule->first[schedule->ipus];
}

/* The stage programs of each step: "F0 | F1 F0 | ...", backward first, forward by falling stage. */
static void steps_text(const struct ipu_schedule *schedule, struct str *out)
{
	for (int step = 0; step < schedule->time_steps; step++) {
		str_add(out, step > 0 ? " |" : "");
		for (int place = 0; place < 2 * schedule->stages; place++) {
			char phase = place < schedule->stages ? 'B' : 'F';
			int stage = phase == 'B' ? place : 2 * schedule->stages - 1 - place;

			for (int i = 0; i < work_count(schedule); i++) {
				const struct ipu_work *w = &schedule->works[i];

				if (w->time_step == step && w->phase == phase && w->stage == stage)
					str_addf(out, "%s%c%d", out->length > 0 ? " " : "", phase,
						 stage);
			}
		}
	}
}

static void test_grouped_2_stages_4_microbatches_takes_the_published_seven_steps(void **state)
{
	struct ipu_schedule *schedule = schedule_of(IPU_GROUPED, 2, 4, true, NULL);
	struct str text = {0};

	(void)state;
	steps_text(schedule, &text);
	assert_string_equal(str_peek(&text),
			    "F0 | F1 F0 | B1 F1 F0 | B0 B1 F1 F0 | B0 B1 F1 | B0 B1 | B0");
	/* 57 % of the 4 slots that each of 7 steps has. */
	assert_int_equal(schedule->time_steps, 7);
	assert_int_equal(work_count(schedule), 16);
	assert_int_equal(100 * work_count(schedule) / (4 * schedule->time_steps), 57);
	str_free(&text);
	ipu_schedule_free(schedule);
}

static void test_interleaved_2_stages_4_microbatches_alternates(void **state)
{
	struct ipu_schedule *schedule = schedule_of(IPU_INTERLEAVED, 2, 4, true, NULL);
	struct str text = {0};

	(void)state;
	steps_text(schedule, &text);
	assert_string_equal(str_peek(&text),
			    "F0 | F1 | B1 F0 | B0 F1 | B1 F0 | B0 F1 | B1 F0 | B0 F1 | B1 | B0");
	str_free(&text);
	ipu_schedule_free(schedule);
}

/* ---- promises of every schedule -------------------------------------------------------------- */

static void check_order_of_work(const struct ipu_schedule *schedule)
{
	for (int ipu = 0; ipu < schedule->ipus; ipu++) {
		for (int i = schedule->first[ipu]; i < schedule->first[ipu + 1]; i++) {
			const struct ipu_work *w = &schedule->works[i], *before = w - 1;

			assert_int_equal(schedule->device[w->stage], ipu);
			assert_in_range((unsigned)w->time_step, 0,
					(unsigned)schedule->time_steps - 1);
			if (i == schedule->first[ipu])
				continue;
			assert_true(before->time_step <= w->time_step);
			if (before->time_step == w->time_step)
				assert_true(before->phase == 'F' || w->phase != 'F');
			if (before->time_step == w->time_step && before->phase == w->phase)
				assert_true(before->stage < w->stage);
		}
	}
}

/* Micro-batches of each program come as 0, 1, .. G-1, each once: sums then have one order. */
static void check_order_of_microbatches(const struct ipu_schedule *schedule)
{
	int next[3][64] = {{0}};

	for (int i = 0; i < work_count(schedule); i++) {
		const struct ipu_work *w = &schedule->works[i];
		const int phase = w->phase == 'F' ? 0 : w->phase == 'B' ? 1 : 2;

		assert_int_equal(w->microbatch, next[phase][w->stage]++);
	}
	for (int s = 0; s < schedule->stages; s++) {
		assert_int_equal(next[0][s], schedule->microbatches);
		assert_int_equal(next[1][s], schedule->training ? schedule->microbatches : 0);
		assert_int_equal(next[2][s], schedule->splits ? schedule->microbatches : 0);
	}
}

static int step_of(const struct ipu_schedule *schedule, char phase, int stage, int microbatch)
{
	for (int i = 0; i < work_count(schedule); i++) {
		const struct ipu_work *w = &schedule->works[i];

		if (w->phase == phase && w->stage == stage && w->microbatch == microbatch)
			return w->time_step;
	}
	fail_msg("%c%d never runs micro-batch %d", phase, stage, microbatch);
	return -1;
}

static void check_inputs_come_first(const struct ipu_schedule *schedule)
{
	int last = schedule->stages - 1;

	for (int m = 0; m < schedule->microbatches; m++) {
		for (int s = 1; s <= last; s++)
			assert_true(step_of(schedule, 'F', s, m) >
				    step_of(schedule, 'F', s - 1, m));
		if (!schedule->training)
			continue;
		assert_true(step_of(schedule, 'B', last, m) > step_of(schedule, 'F', last, m));
		for (int s = 0; s < last; s++)
			assert_true(step_of(schedule, 'B', s, m) >
				    step_of(schedule, 'B', s + 1, m));
		for (int s = 0; schedule->splits && s <= last; s++)
			assert_true(step_of(schedule, 'W', s, m) > step_of(schedule, 'B', s, m));
	}
}

/* Walk each stage's work as its IPU does it: an activation lives from its forward to the end of
 * its backward. The bound is not only kept but reached. */
static void check_liveness(const struct ipu_schedule *schedule)
{
	for (int s = 0; s < schedule->stages; s++) {
		int ipu = schedule->device[s], live = 0, most = 0;

		for (int i = schedule->first[ipu]; i < schedule->first[ipu + 1]; i++) {
			const struct ipu_work *w = &schedule->works[i];

			if (w->stage != s)
				continue;
			live += w->phase == 'F';
			live -= w->phase == (schedule->splits ? 'W' : 'B');
			most = live > most ? live : most;
			live = schedule->training ? live : 0;
		}
		assert_int_equal(live, 0);
		assert_int_equal(most, ipu_schedule_live(schedule, s));
		assert_true(ipu_schedule_fifo_depth(schedule, s) < most);
	}
}

static void check_no_empty_step(const struct ipu_schedule *schedule)
{
	for (int step = 0; step < schedule->time_steps; step++) {
		bool used = false;

		for (int i = 0; i < work_count(schedule) && !used; i++)
			used = schedule->works[i].time_step == step;
		assert_true(used);
	}
}

/* Works by step are all of them, ascending, and each step's stand where its index says. */
static void check_by_step(const struct ipu_schedule *schedule)
{
	assert_int_equal(schedule->step_first[schedule->time_steps], work_count(schedule));
	for (int t = 0; t < schedule->time_steps; t++) {
		for (int i = schedule->step_first[t]; i < schedule->step_first[t + 1]; i++) {
			assert_int_equal(schedule->works[schedule->by_step[i]].time_step, t);
			assert_true(i == schedule->step_first[t] ||
				    schedule->by_step[i] > schedule->by_step[i - 1]);
		}
	}
}

/* As many places as the schedule says between two stages, and of batches: each IPU goes through its
 * works in order and waits where a place is not free. All must end; with a place less somebody may
 * wait for ever. */
static bool ends_with_places(const struct ipu_schedule *schedule, int less)
{
	int done[3][64] = {{0}}, next[64], left = work_count(schedule);
	bool moved = true;

	for (int i = 0; i < schedule->ipus; i++)
		next[i] = schedule->first[i];
	while (left > 0 && moved) {
		moved = false;
		for (int i = 0; i < schedule->ipus; i++) {
			const struct ipu_work *w = &schedule->works[next[i]];
			int phase, s, back, to;
			bool ready = true;

			if (next[i] == schedule->first[i + 1])
				continue;
			phase = w->phase == 'F' ? 0 : w->phase == 'B' ? 1 : 2;
			s = w->stage;
			back = phase == 0 ? 1 : -1;
			to = s + back;
			if (phase < 2 && s - back >= 0 && s - back < schedule->stages)
				ready = done[phase][s - back] > w->microbatch;
			if (ready && phase > 0)
				ready = done[phase - 1][s] > w->microbatch;
			if (ready && phase < 2 && to >= 0 && to < schedule->stages)
				ready = w->microbatch - done[phase][to] <
					ipu_schedule_in_flight(schedule, s, w->phase) - less;
			/* The batches: inputs of the first stage, targets of the last. */
			if (ready && phase == 0 && s == 0)
				ready = w->microbatch - done[0][schedule->stages - 1] <
					ipu_schedule_ahead(schedule);
			if (!ready)
				continue;
			done[phase][s]++;
			next[i]++;
			left--;
			moved = true;
		}
	}
	return left == 0;
}

/* As a micro-batch begins in the first stage, so many have not ended in the last one, itself among
 * them: the most at any time is how far the first stage is ahead. */
static void check_ahead(const struct ipu_schedule *schedule)
{
	enum {
		MOST = 256
	};
	int begun[MOST], ended[MOST], count = 0, most = 0;

	for (int i = 0; i < work_count(schedule); i++) {
		const struct ipu_work *work = &schedule->works[i];

		assert_in_range(work->microbatch, 0, MOST - 1);
		if (work->phase == IPU_PHASE_F && work->stage == 0) {
			begun[work->microbatch] = work->time_step;
			count++;
		}
		if (work->phase == IPU_PHASE_F && work->stage == schedule->stages - 1)
			ended[work->microbatch] = work->time_step;
	}
	for (int now = 0; now < count; now++) {
		int ahead = 0;

		for (int m = 0; m < count; m++)
			ahead += begun[m] <= begun[now] && ended[m] >= begun[now];
		most = ahead > most ? ahead : most;
	}
	assert_int_equal(ipu_schedule_ahead(schedule), most);
}

static void check_all(const struct ipu_schedule *schedule)
{
	check_order_of_work(schedule);
	check_order_of_microbatches(schedule);
	check_inputs_come_first(schedule);
	check_liveness(schedule);
	check_no_empty_step(schedule);
	check_by_step(schedule);
	check_ahead(schedule);
	assert_true(ends_with_places(schedule, 0));
}

/* Steps by closed form; @lines is what G must be a multiple of. */
struct grid_case {
	enum ipu_schedule_kind kind;
	bool training;
	int (*lines)(int stages);
	int (*steps)(int stages, int microbatches);
};

static int lines_2n(int n)
{
	return 2 * n;
}

static int lines_n(int n)
{
	return n;
}

static int lines_1(int n)
{
	(void)n;
	return 1;
}

static int steps_grouped(int n, int g)
{
	return g + 2 * n - 1;
}

static int steps_interleaved(int n, int g)
{
	return 2 * g + 2 * n - 2;
}

static int steps_sequential(int n, int g)
{
	return 2 * n * g;
}

static int steps_filled(int n, int g)
{
	return g + n - 1;
}

static int steps_sequential_inference(int n, int g)
{
	return n * g;
}

/* m forwards go down p places, then m backwards come up. */
static int steps_gpipe(int n, int g)
{
	return 2 * (g + n - 1);
}

/* Unit times: (3 m + p - 1) of the paper's optimum for F = B = W. */
static int steps_zb_h1(int n, int g)
{
	return g >= 2 * n ? 3 * g + n - 1 : 0;
}

static const struct grid_case grid[] = {
	{IPU_GPIPE, true, lines_1, steps_gpipe},
	{IPU_1F1B, true, lines_1, steps_gpipe},
	{IPU_ZB_H1, true, lines_1, steps_zb_h1},
	{IPU_ZB_H2, true, lines_1, NULL},
	{IPU_GPIPE, false, lines_1, steps_filled},
	{IPU_1F1B, false, lines_1, steps_filled},
	{IPU_ZB_H2, false, lines_1, steps_filled},
	{IPU_GROUPED, true, lines_2n, steps_grouped},
	{IPU_INTERLEAVED, true, lines_n, steps_interleaved},
	{IPU_SEQUENTIAL, true, lines_1, steps_sequential},
	{IPU_GROUPED, false, lines_n, steps_filled},
	{IPU_INTERLEAVED, false, lines_n, steps_filled},
	{IPU_SEQUENTIAL, false, lines_1, steps_sequential_inference},
};

static void test_every_schedule_keeps_its_promises_on_a_grid(void **state)
{
	(void)state;
	for (size_t c = 0; c < sizeof(grid) / sizeof(grid[0]); c++) {
		for (int n = 2; n <= 6; n++) {
			for (int times = 1; times <= 14; times++) {
				int g = times * grid[c].lines(n), steps;
				struct ipu_schedule *schedule =
					schedule_of(grid[c].kind, n, g, grid[c].training, NULL);

				steps = grid[c].steps ? grid[c].steps(n, g) : 0;
				if (steps > 0)
					assert_int_equal(schedule->time_steps, steps);
				assert_int_equal(work_count(schedule), (schedule->splits   ? 3 * n
									: grid[c].training ? 2 * n
											   : n) *
									       g);
				check_all(schedule);
				ipu_schedule_free(schedule);
			}
		}
	}
}

static void test_stages_may_share_an_ipu(void **state)
{
	static const int there_and_back[] = {0, 1, 1, 0}, halves[] = {0, 0, 1, 1},
			 one[] = {0, 0, 0, 0};
	static const int *const devices[] = {there_and_back, halves, one};

	(void)state;
	for (int d = 0; d < 3; d++) {
		for (int training = 0; training < 2; training++) {
			struct ipu_schedule *grouped =
				schedule_of(IPU_GROUPED, 4, 16, training, devices[d]);
			struct ipu_schedule *sequential =
				schedule_of(IPU_SEQUENTIAL, 4, 3, training, devices[d]);

			assert_int_equal(grouped->ipus, d == 2 ? 1 : 2);
			check_all(grouped);
			check_all(sequential);
			ipu_schedule_free(grouped);
			ipu_schedule_free(sequential);
		}
	}
}

/* Offsets are taken greedily so that no IPU has two programs in a step. */
static void test_interleaved_inference_never_uses_an_ipu_twice_in_a_step(void **state)
{
	static const int halves[] = {0, 0, 1, 1}, there_and_back[] = {0, 1, 1, 0},
			 one[] = {0, 0, 0, 0};
	static const struct {
		const int *device;
		int lines, last_offset;
	} cases[] = {{halves, 2, 2}, {there_and_back, 2, 2}, {one, 1, 0}, {NULL, 4, 3}};

	(void)state;
	for (size_t c = 0; c < 4; c++) {
		int g = 3 * cases[c].lines;
		struct ipu_schedule *schedule =
			schedule_of(IPU_INTERLEAVED, 4, g, false, cases[c].device);

		check_all(schedule);
		assert_int_equal(schedule->time_steps, 4 * 3 + cases[c].last_offset);
		for (int ipu = 0; ipu < schedule->ipus; ipu++) {
			for (int i = schedule->first[ipu] + 1; i < schedule->first[ipu + 1]; i++)
				assert_true(schedule->works[i].time_step >
					    schedule->works[i - 1].time_step);
		}
		ipu_schedule_free(schedule);
	}
}

static void test_fifo_depths_are_as_documented(void **state)
{
	struct ipu_schedule *grouped = schedule_of(IPU_GROUPED, 4, 8, true, NULL);
	struct ipu_schedule *interleaved = schedule_of(IPU_INTERLEAVED, 4, 8, true, NULL);
	struct ipu_schedule *sequential = schedule_of(IPU_SEQUENTIAL, 4, 8, true, NULL);
	struct ipu_schedule *inference = schedule_of(IPU_GROUPED, 4, 8, false, NULL);

	(void)state;
	for (int s = 0; s < 4; s++) {
		assert_int_equal(ipu_schedule_fifo_depth(grouped, s), 2 * (3 - s));
		assert_int_equal(ipu_schedule_fifo_depth(interleaved, s), 3 - s);
		assert_int_equal(ipu_schedule_fifo_depth(sequential, s), 0);
		assert_int_equal(ipu_schedule_fifo_depth(inference, s), 0);
		assert_int_equal(ipu_schedule_live(inference, s), 1);
	}
	ipu_schedule_free(grouped);
	ipu_schedule_free(interleaved);
	ipu_schedule_free(sequential);
	ipu_schedule_free(inference);
}

/* ---- the published orders -------------------------------------------------------------------- */

/* An IPU's works: "F0 F1 B0 ..." by micro-batch, "F1.0" of stage 1 where it has several. */
static void order_text(const struct ipu_schedule *schedule, int ipu, struct str *out)
{
	for (int i = schedule->first[ipu]; i < schedule->first[ipu + 1]; i++) {
		const struct ipu_work *w = &schedule->works[i];

		str_addf(out, "%s%c", out->length > 0 ? " " : "", w->phase);
		if (schedule->stages > schedule->ipus)
			str_addf(out, "%d.", w->stage / schedule->ipus);
		str_addf(out, "%d", w->microbatch);
	}
}

/* As the papers draw them: four devices, eight micro-batches; interleaved two devices, four. */
static const struct {
	enum ipu_schedule_kind kind;
	int ipus, stages, microbatches, ipu;
	const char *order;
} published[] = {
	{IPU_GPIPE, 2, 2, 3, 0, "F0 F1 F2 B0 B1 B2"},
	{IPU_1F1B, 4, 4, 8, 0, "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7"},
	{IPU_1F1B, 4, 4, 8, 3, "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7"},
	{IPU_1F1B, 4, 4, 2, 1, "F0 F1 B0 B1"},
	{IPU_ZB_H1, 4, 4, 8, 0,
	 "F0 F1 F2 F3 B0 W0 F4 B1 W1 F5 B2 W2 F6 B3 W3 F7 B4 W4 B5 W5 B6 W6 B7 W7"},
	{IPU_ZB_H1, 4, 4, 8, 3,
	 "F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1 F5 B5 W2 F6 B6 W3 F7 B7 W4 W5 W6 W7"},
	{IPU_ZB_H2, 3, 3, 6, 0, "F0 F1 F2 F3 F4 B0 W0 F5 B1 W1 B2 W2 B3 W3 B4 W4 B5 W5"},
	{IPU_ZB_H2, 3, 3, 6, 2, "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 W0 F5 B5 W1 W2 W3 W4 W5"},
	{IPU_1F1B_INTERLEAVED, 2, 4, 4, 0,
	 "F0.0 F0.1 F1.0 F1.1 F0.2 B1.0 F0.3 B1.1 F1.2 B0.0 F1.3 B0.1 B1.2 B1.3 B0.2 B0.3"},
	{IPU_1F1B_INTERLEAVED, 2, 4, 4, 1,
	 "F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 F0.2 B0.0 F0.3 B0.1 F1.2 B1.2 F1.3 B1.3 B0.2 B0.3"},
};

static void test_orders_of_work_are_the_published_ones(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
		int device[8];
		struct ipu_schedule *schedule;
		struct str text = {0};

		for (int s = 0; s < 8; s++)
			device[s] = s % published[i].ipus;
		schedule = schedule_of(published[i].kind, published[i].stages,
				       published[i].microbatches, true, device);
		order_text(schedule, published[i].ipu, &text);
		assert_string_equal(str_peek(&text), published[i].order);
		check_all(schedule);
		str_free(&text);
		ipu_schedule_free(schedule);
	}
}

/* 1F1B is what comes of a greedy rule: a backward as soon as there is one, else a forward where
 * fewer than p - s are in flight. */
static void test_1f1b_is_backward_first_with_bounded_flight(void **state)
{
	(void)state;
	for (int p = 2; p <= 6; p++) {
		for (int m = 1; m <= 13; m++) {
			struct ipu_schedule *schedule = schedule_of(IPU_1F1B, p, m, true, NULL);
			int forward[8] = {0}, backward[8] = {0}, left = 2 * p * m;

			for (int step = 0; left > 0; step++) {
				int f[8], b[8];

				memcpy(f, forward, sizeof(f));
				memcpy(b, backward, sizeof(b));
				for (int s = 0; s < p; s++) {
					const bool back = b[s] < (s + 1 < p ? b[s + 1] : f[s]);

					if (back) {
						assert_int_equal(step,
								 step_of(schedule, 'B', s, b[s]));
						backward[s]++;
						left--;
					} else if (f[s] < (s > 0 ? f[s - 1] : m) &&
						   f[s] - b[s] < p - s) {
						assert_int_equal(step,
								 step_of(schedule, 'F', s, f[s]));
						forward[s]++;
						left--;
					}
				}
			}
			ipu_schedule_free(schedule);
		}
	}
}

/* Of m micro-batches at stage s. */
static void test_what_lives_is_as_published(void **state)
{
	const int p = 5, m = 15;

	(void)state;
	for (int s = 0; s < p; s++) {
		const struct {
			enum ipu_schedule_kind kind;
			int live, held;
		} cases[] = {
			{IPU_GPIPE, m, 0},
			{IPU_1F1B, p - s, 0},
			{IPU_ZB_H1, p, s + 1},
			{IPU_ZB_H2, 2 * p - 1, 2 * s + 1},
		};

		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			struct ipu_schedule *schedule =
				schedule_of(cases[i].kind, p, m, true, NULL);

			assert_int_equal(ipu_schedule_live(schedule, s), cases[i].live);
			assert_int_equal(ipu_schedule_fifo_depth(schedule, s), cases[i].live - 1);
			assert_int_equal(ipu_schedule_held(schedule, s), cases[i].held);
			ipu_schedule_free(schedule);
		}
	}
}

static void test_chunks_keep_their_promises(void **state)
{
	(void)state;
	for (int p = 1; p <= 4; p++) {
		for (int chunks = 2; chunks <= 4; chunks++) {
			for (int rounds = 1; rounds <= 3; rounds++) {
				int device[16];
				struct ipu_schedule *trained, *forward;

				for (int s = 0; s < p * chunks; s++)
					device[s] = s % p;
				trained = schedule_of(IPU_1F1B_INTERLEAVED, p * chunks, p * rounds,
						      true, device);
				/* A last round may be short where nothing comes back. */
				forward = schedule_of(IPU_1F1B_INTERLEAVED, p * chunks,
						      p * rounds + p / 2, false, device);
				check_all(trained);
				check_all(forward);
				ipu_schedule_free(trained);
				ipu_schedule_free(forward);
			}
		}
	}
}

static void test_one_stage_is_no_pipeline_whatever_the_schedule(void **state)
{
	(void)state;
	for (int kind = 0; kind < IPU_SCHEDULE_KINDS; kind++) {
		struct ipu_schedule *schedule =
			schedule_of((enum ipu_schedule_kind)kind, 1, 3, true, NULL);
		struct str text = {0};

		steps_text(schedule, &text);
		assert_string_equal(str_peek(&text), "F0 | B0 | F0 | B0 | F0 | B0");
		check_all(schedule);
		str_free(&text);
		ipu_schedule_free(schedule);
	}
}

/* ---- rules ----------------------------------------------------------------------------------- */

struct rule_case {
	struct ipu_schedule_params params;
	const char *text;
};

static const int shared[] = {0, 1, 0}, beyond[] = {0, 2}, negative[] = {0, -1};
static const int in_turn[] = {0, 1, 0, 1}, back[] = {0, 1, 1, 0}, part[] = {0, 1, 2, 0},
		 crossed[] = {0, 1, 0, 0};

static const struct rule_case broken[] = {
	{{.kind = IPU_GROUPED, .stages = 2, .microbatches = 6, .training = true},
	 "Grouped needs steps to be a multiple of 2 x stages (= 4) and at least that: it is 6"},
	{{.kind = IPU_GROUPED, .stages = 2, .microbatches = 2, .training = true},
	 "Grouped needs steps to be a multiple of 2 x stages (= 4) and at least that: it is 2"},
	{{.kind = IPU_INTERLEAVED, .stages = 3, .microbatches = 4, .training = true},
	 "Interleaved needs steps to be a multiple of the number of stages (= 3) and at least "
	 "that: "
	 "it is 4"},
	{{.kind = IPU_GROUPED, .stages = 3, .microbatches = 7},
	 "Grouped needs steps to be a multiple of the number of stages (= 3) and at least that: it "
	 "is "
	 "7"},
	{{.kind = IPU_INTERLEAVED,
	  .stages = 3,
	  .microbatches = 3,
	  .training = true,
	  .device = shared},
	 "Interleaved training needs an IPU for each stage, but stages 0 and 2 are both on IPU 0"},
	{{.kind = IPU_ZB_H1, .stages = 3, .microbatches = 3, .training = true, .device = shared},
	 "zb-h1 needs an IPU for each stage, but stages 0 and 2 are both on IPU 0"},
	{{.kind = IPU_1F1B_INTERLEAVED, .stages = 4, .microbatches = 4, .training = true},
	 "1f1b-interleaved needs at least two stages on each IPU, dealt in turn (4 stages on IPUs "
	 "0, 1, 0, 1)"},
	{{.kind = IPU_1F1B_INTERLEAVED,
	  .stages = 4,
	  .microbatches = 4,
	  .training = true,
	  .device = back},
	 "1f1b-interleaved deals the stages to the IPUs in turn (4 stages on IPUs 0, 1, 0, 1), but "
	 "stages 1 and 2 are both on IPU 1"},
	{{.kind = IPU_1F1B_INTERLEAVED,
	  .stages = 4,
	  .microbatches = 4,
	  .training = true,
	  .device = crossed},
	 "1f1b-interleaved deals the stages to 2 IPUs in turn, so stage 3 belongs on IPU 1 as "
	 "stage "
	 "1 does, not on IPU 0"},
	{{.kind = IPU_1F1B_INTERLEAVED,
	  .stages = 4,
	  .microbatches = 3,
	  .training = true,
	  .device = part},
	 "1f1b-interleaved needs as many stages on each of 3 IPUs: there are 4"},
	{{.kind = IPU_1F1B_INTERLEAVED,
	  .stages = 4,
	  .microbatches = 3,
	  .training = true,
	  .device = in_turn},
	 "1f1b-interleaved needs steps to be a multiple of the number of IPUs (= 2) and at least "
	 "that: it is 3"},
	{{.kind = IPU_SEQUENTIAL, .stages = 2, .microbatches = 0, .training = true},
	 "steps must be at least 1: it is 0"},
	{{.kind = IPU_SEQUENTIAL, .stages = 0, .microbatches = 1},
	 "a pipeline has 1 to 4096 stages: it has 0"},
	{{.kind = IPU_SEQUENTIAL, .stages = 2, .microbatches = 1, .ipus = 2, .device = beyond},
	 "stage 1 is on IPU 2, but there are 2 IPUs (0 to 1)"},
	{{.kind = IPU_SEQUENTIAL, .stages = 2, .microbatches = 1, .device = negative},
	 "stage 1 is on IPU -1, but there are 1 IPUs (0 to 0)"},
	{{.kind = IPU_SEQUENTIAL, .stages = 3, .microbatches = 1, .ipus = 2},
	 "stage 2 is on IPU 2, but there are 2 IPUs (0 to 1)"},
};

static void test_a_broken_rule_is_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		struct ipu_schedule *schedule = (struct ipu_schedule *)&schedule;
		struct err err;

		assert_int_equal(ipu_schedule_check(&broken[i].params, "steps", &err), ST_INVALID);
		assert_string_equal(err.text, broken[i].text);
		assert_int_equal(ipu_schedule_new(&schedule, &broken[i].params, NULL), ST_INVALID);
		assert_null(schedule);
	}
}

static void test_a_number_beyond_all_memory_is_refused(void **state)
{
	struct ipu_schedule_params params = {
		.kind = IPU_SEQUENTIAL, .stages = 2, .microbatches = 2147483647};
	struct err err;

	(void)state;
	assert_int_equal(ipu_schedule_check(&params, "steps", &err), ST_LIMIT);
	assert_contains(err.text, "steps may be at most");
}

/* A program of a stage and a micro-batch has one place of 2^20. */
static void test_as_many_works_fit_as_there_are_places(void **state)
{
	static const struct {
		enum ipu_schedule_kind kind;
		bool training;
		int stages, most;
	} cases[] = {
		{IPU_SEQUENTIAL, false, 4, 1 << 18},
		{IPU_SEQUENTIAL, true, 4, 1 << 17},
		{IPU_ZB_H1, true, 4, (1 << 20) / 12},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ipu_schedule_params params = {.kind = cases[i].kind,
						     .stages = cases[i].stages,
						     .training = cases[i].training,
						     .microbatches = cases[i].most};

		assert_int_equal(ipu_schedule_check(&params, "steps", NULL), ST_OK);
		params.microbatches++;
		assert_int_equal(ipu_schedule_check(&params, "steps", NULL), ST_LIMIT);
	}
}

static void test_names_are_found_and_suggested(void **state)
{
	enum ipu_schedule_kind kind;
	struct err err;

	(void)state;
	for (int i = 0; i < IPU_SCHEDULE_KINDS; i++) {
		const char *name = ipu_schedule_name((enum ipu_schedule_kind)i);

		assert_int_equal(ipu_schedule_kind_get(name, &kind, &err), ST_OK);
		assert_int_equal(kind, i);
	}
	assert_int_equal(ipu_schedule_kind_get("grouped", &kind, &err), ST_NOTFOUND);
	assert_string_equal(err.text, "unknown schedule \"grouped\" (did you mean \"Grouped\"?)");
}

static void test_no_failed_allocation_leaves_anything(void **state)
{
	struct ipu_schedule_params params = {
		.kind = IPU_GROUPED, .stages = 2, .microbatches = 4, .training = true};
	bool failed = true;

	(void)state;
	for (long n = 0; failed; n++) {
		struct ipu_schedule *schedule;
		enum status status;

		support_fail_alloc(n);
		status = ipu_schedule_new(&schedule, &params, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
		assert_true(failed == (!schedule));
		ipu_schedule_free(schedule);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_grouped_2_stages_4_microbatches_takes_the_published_seven_steps),
		cmocka_unit_test(test_interleaved_2_stages_4_microbatches_alternates),
		cmocka_unit_test(test_every_schedule_keeps_its_promises_on_a_grid),
		cmocka_unit_test(test_stages_may_share_an_ipu),
		cmocka_unit_test(test_interleaved_inference_never_uses_an_ipu_twice_in_a_step),
		cmocka_unit_test(test_fifo_depths_are_as_documented),
		cmocka_unit_test(test_orders_of_work_are_the_published_ones),
		cmocka_unit_test(test_1f1b_is_backward_first_with_bounded_flight),
		cmocka_unit_test(test_what_lives_is_as_published),
		cmocka_unit_test(test_chunks_keep_their_promises),
		cmocka_unit_test(test_one_stage_is_no_pipeline_whatever_the_schedule),
		cmocka_unit_test(test_a_broken_rule_is_named),
		cmocka_unit_test(test_a_number_beyond_all_memory_is_refused),
		cmocka_unit_test(test_as_many_works_fit_as_there_are_places),
		cmocka_unit_test(test_names_are_found_and_suggested),
		cmocka_unit_test(test_no_failed_allocation_leaves_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
