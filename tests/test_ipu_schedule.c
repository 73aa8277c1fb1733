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
				assert_true(before->phase == 'F' || w->phase == 'B');
			if (before->time_step == w->time_step && before->phase == w->phase)
				assert_true(before->stage < w->stage);
		}
	}
}

/* Micro-batches of each program come as 0, 1, .. G-1, each once: sums then have one order. */
static void check_order_of_microbatches(const struct ipu_schedule *schedule)
{
	int next[2][64] = {{0}};

	for (int i = 0; i < work_count(schedule); i++) {
		const struct ipu_work *w = &schedule->works[i];

		assert_int_equal(w->microbatch, next[w->phase == 'B'][w->stage]++);
	}
	for (int s = 0; s < schedule->stages; s++) {
		assert_int_equal(next[0][s], schedule->microbatches);
		assert_int_equal(next[1][s], schedule->training ? schedule->microbatches : 0);
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
			live += w->phase == 'F' ? 1 : -1;
			most = live > most ? live : most;
			live = schedule->training ? live : 0;
		}
		assert_int_equal(live, 0);
		assert_int_equal(most, ipu_schedule_live(schedule, s));
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

static void check_all(const struct ipu_schedule *schedule)
{
	check_order_of_work(schedule);
	check_order_of_microbatches(schedule);
	check_inputs_come_first(schedule);
	check_liveness(schedule);
	check_no_empty_step(schedule);
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

static const struct grid_case grid[] = {
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
			for (int times = 1; times <= 3; times++) {
				int g = times * grid[c].lines(n);
				struct ipu_schedule *schedule =
					schedule_of(grid[c].kind, n, g, grid[c].training, NULL);

				assert_int_equal(schedule->time_steps, grid[c].steps(n, g));
				assert_int_equal(work_count(schedule),
						 (grid[c].training ? 2 * n : n) * g);
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
		cmocka_unit_test(test_one_stage_is_no_pipeline_whatever_the_schedule),
		cmocka_unit_test(test_a_broken_rule_is_named),
		cmocka_unit_test(test_a_number_beyond_all_memory_is_refused),
		cmocka_unit_test(test_names_are_found_and_suggested),
		cmocka_unit_test(test_no_failed_allocation_leaves_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
