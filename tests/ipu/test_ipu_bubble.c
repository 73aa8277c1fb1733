/*
 * Bubbles: published closed forms, a small run by hand, and the split as a property.
 */
#include "support/support.h"

#include <math.h>
#include <string.h>

#include "common/rng.h"
#include "ipu/ipu_schedule.h"

static struct ipu_schedule *schedule_of(enum ipu_schedule_kind kind, int stages, int microbatches)
{
	struct ipu_schedule_params params = {
		.kind = kind, .stages = stages, .microbatches = microbatches, .training = true};
	struct ipu_schedule *schedule;

	assert_int_equal(ipu_schedule_new(&schedule, &params, NULL), ST_OK);
	return schedule;
}

static struct ipu_bubble theory_of(enum ipu_schedule_kind kind, int stages, int microbatches,
				   double forward, double backward, bool lockstep)
{
	struct ipu_schedule *schedule = schedule_of(kind, stages, microbatches);
	struct ipu_bubble bubble;
	double f[32], b[32];
	struct ipu_schedule_costs costs = {.forward = f, .backward = b};

	for (int s = 0; s < stages; s++) {
		f[s] = forward;
		b[s] = backward;
	}
	costs.lockstep = lockstep;
	assert_int_equal(ipu_bubble_theory(schedule, &costs, &bubble, NULL), ST_OK);
	ipu_schedule_free(schedule);
	return bubble;
}

static void check_rates(const struct ipu_bubble *bubble, double idle, double rate,
			double over_ideal)
{
	assert_close(bubble->idle_fraction, idle, 1e-12);
	assert_close(bubble->bubble_rate, rate, 1e-12);
	assert_close(bubble->bubble_over_ideal, over_ideal, 1e-12);
}

/* ---- closed forms ---------------------------------------------------------------------------- */

/* Unit times (F = 1, B = 2 with the weights' part): the published GPipe = 1F1B column. */
static const struct {
	int stages, microbatches;
	double idle;
} unit_times[] = {
	{2, 4, 0.200000}, {4, 8, 0.272727},  {4, 16, 0.157895},
	{8, 8, 0.466667}, {8, 32, 0.179487}, {16, 64, 0.189873},
};

static void test_unit_times_give_the_published_1f1b_bubble(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(unit_times) / sizeof(unit_times[0]); i++) {
		int p = unit_times[i].stages, m = unit_times[i].microbatches;
		struct ipu_bubble bubble = theory_of(IPU_INTERLEAVED, p, m, 1e6, 2e6, false);

		assert_true(fabs(bubble.idle_fraction - unit_times[i].idle) < 5e-7);
		assert_true(fabs(bubble.bubble_rate - unit_times[i].idle) < 5e-7);
		if (m % (2 * p) != 0)
			continue;
		bubble = theory_of(IPU_GROUPED, p, m, 1e6, 2e6, true);
		assert_true(fabs(bubble.idle_fraction - unit_times[i].idle) < 5e-7);
	}
}

/*
 * Of p IPUs and m micro-batches with F = B = W, as published: 1F1B (p - 1) / (m + p - 1), with v
 * chunks (p - 1) / (v m + p - 1), ZB-H1 a third of 1F1B's idle time, ZB-H2 none within the longest
 * span of an IPU.
 */
static void test_equal_times_give_the_published_rates(void **state)
{
	static const double ns[32] = {6e6, 6e6, 6e6, 6e6, 6e6, 6e6, 6e6, 6e6, 6e6, 6e6, 6e6,
				      6e6, 6e6, 6e6, 6e6, 6e6, 6e6, 6e6, 6e6, 6e6, 6e6, 6e6,
				      6e6, 6e6, 6e6, 6e6, 6e6, 6e6, 6e6, 6e6, 6e6, 6e6};
	static const double both[32] = {12e6, 12e6, 12e6, 12e6, 12e6, 12e6, 12e6, 12e6,
					12e6, 12e6, 12e6, 12e6, 12e6, 12e6, 12e6, 12e6,
					12e6, 12e6, 12e6, 12e6, 12e6, 12e6, 12e6, 12e6,
					12e6, 12e6, 12e6, 12e6, 12e6, 12e6, 12e6, 12e6};

	(void)state;
	for (int p = 2; p <= 8; p += 2) {
		for (int m = 2 * p; m <= 8 * p; m += 2 * p) {
			const double idle = p - 1, all = m;
			const struct {
				enum ipu_schedule_kind kind;
				int chunks;
				double rate;
			} cases[] = {
				{IPU_GPIPE, 1, idle / (all + idle)},
				{IPU_1F1B, 1, idle / (all + idle)},
				{IPU_1F1B_INTERLEAVED, 2, idle / (2 * all + idle)},
				{IPU_1F1B_INTERLEAVED, 4, idle / (4 * all + idle)},
				{IPU_ZB_H1, 1, idle / (3 * all + idle)},
				{IPU_ZB_H2, 1, 0},
			};

			for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
				int device[32];
				const struct ipu_schedule_params params = {
					.kind = cases[c].kind,
					.stages = p * cases[c].chunks,
					.microbatches = m,
					.training = true,
					.device = device};
				const struct ipu_schedule_costs costs = {
					.forward = ns,
					.backward =
						ipu_schedule_row(params.kind)->splits ? ns : both,
					.weight = ns};
				struct ipu_schedule *schedule;
				struct ipu_bubble bubble;

				for (int s = 0; s < 32; s++)
					device[s] = s % p;
				assert_int_equal(ipu_schedule_new(&schedule, &params, NULL), ST_OK);
				assert_int_equal(ipu_bubble_theory(schedule, &costs, &bubble, NULL),
						 ST_OK);
				assert_close(bubble.bubble_rate, cases[c].rate, 1e-9);
				if (cases[c].kind != IPU_ZB_H2)
					assert_close(bubble.idle_fraction, cases[c].rate, 1e-9);
				ipu_schedule_free(schedule);
			}
		}
	}
}

/* Grouped in lockstep lasts (G + N - 1)(F + B): N steps of F alone, G - 1 of both, N of B alone. */
static void test_grouped_in_lockstep_has_the_1f1b_bubble_for_any_costs(void **state)
{
	static const double costs[][2] = {{1, 1}, {1, 2}, {300, 700}, {5, 1}};

	(void)state;
	for (int n = 2; n <= 6; n++) {
		for (int g = 2 * n; g <= 8 * n; g += 2 * n) {
			for (size_t c = 0; c < 4; c++) {
				double f = costs[c][0], b = costs[c][1];
				struct ipu_bubble bubble = theory_of(IPU_GROUPED, n, g, f, b, true);
				double idle = (n - 1.0) / (g + n - 1.0);

				check_rates(&bubble, idle, idle, (n - 1.0) / g);
				assert_int_equal(bubble.makespan_ns,
						 (int64_t)((g + n - 1) * (f + b)));
				assert_int_equal(bubble.busy_ns, (int64_t)(n * g * (f + b)));
			}
		}
	}
}

/* Interleaved in lockstep: N steps of F alone, then every step has a backward somewhere. */
static void test_interleaved_in_lockstep_wastes_time_on_unequal_costs(void **state)
{
	(void)state;
	for (int n = 2; n <= 6; n++) {
		for (int g = n; g <= 4 * n; g += n) {
			struct ipu_bubble equal = theory_of(IPU_INTERLEAVED, n, g, 1, 1, true);
			struct ipu_bubble unequal = theory_of(IPU_INTERLEAVED, n, g, 1, 2, true);
			double idle = (n - 1.0) / (g + n - 1.0);

			check_rates(&equal, idle, idle, (n - 1.0) / g);
			assert_int_equal(unequal.makespan_ns, n + 2 * (2 * g + n - 2));
		}
	}
}

static void test_stages_that_fill_one_ipu_have_no_bubble(void **state)
{
	static const struct ipu_interval works[] = {{0, 0, 0, 'F', 0, 5},
						    {0, 1, 0, 'F', 5, 7},
						    {0, 1, 0, 'B', 12, 9},
						    {0, 0, 0, 'B', 21, 4}};
	struct ipu_bubble bubble;

	(void)state;
	assert_int_equal(ipu_bubble_measure(works, 4, 1, 2, &bubble, NULL), ST_OK);
	check_rates(&bubble, 0, 0, 0);
}

static void test_sequential_uses_one_ipu_at_a_time(void **state)
{
	(void)state;
	for (int lockstep = 0; lockstep < 2; lockstep++) {
		for (int n = 1; n <= 5; n++) {
			struct ipu_bubble bubble =
				theory_of(IPU_SEQUENTIAL, n, 3, 10, 20, lockstep);

			check_rates(&bubble, 1 - 1.0 / n, 1 - 1.0 / n, n - 1.0);
		}
	}
}

static void test_free_running_is_never_slower_than_lockstep(void **state)
{
	static const enum ipu_schedule_kind poplar[] = {IPU_GROUPED, IPU_INTERLEAVED,
							IPU_SEQUENTIAL};
	struct rng rng;

	(void)state;
	rng_init(&rng, 1, rng_stream("bubble"), 0, 0);
	for (int round = 0; round < 100; round++) {
		enum ipu_schedule_kind kind = poplar[rng_below(&rng, 3)];
		struct ipu_schedule *schedule = schedule_of(kind, 3, 6);
		struct ipu_bubble host, device;
		double f[3], b[3];
		const struct ipu_schedule_costs free_running = {.forward = f, .backward = b};
		const struct ipu_schedule_costs lockstep = {
			.forward = f, .backward = b, .lockstep = true};

		for (int s = 0; s < 3; s++) {
			f[s] = 1 + rng_below(&rng, 1000);
			b[s] = 1 + rng_below(&rng, 1000);
		}
		assert_int_equal(ipu_bubble_theory(schedule, &free_running, &host, NULL), ST_OK);
		assert_int_equal(ipu_bubble_theory(schedule, &lockstep, &device, NULL), ST_OK);
		assert_true(host.makespan_ns <= device.makespan_ns);
		assert_int_equal(host.busy_ns, device.busy_ns);
		assert_int_equal(host.communication_ns, 0);
		assert_int_equal(device.communication_ns, 0);
		ipu_schedule_free(schedule);
	}
}

/* ---- by hand --------------------------------------------------------------------------------- */

/*	        0    10   20   30   40   50   60   70
 *	IPU 0   [F0 0 ][F0 1 ]         [B0 0 ]   [B0 1 ]
 *	IPU 1         . [F1 0 ][B1 0 ][ F1 1 ][B1 1]
 */
static const struct ipu_interval by_hand[] = {
	{0, 0, 0, 'F', 100, 10}, {0, 0, 1, 'F', 110, 10}, {0, 0, 0, 'B', 136, 12},
	{0, 0, 1, 'B', 163, 12}, {1, 1, 0, 'F', 112, 10}, {1, 1, 0, 'B', 122, 10},
	{1, 1, 1, 'F', 135, 10}, {1, 1, 1, 'B', 145, 15}, {0, 0, -1, 'U', 180, 99},
};

static void test_a_run_by_hand_comes_out_number_by_number(void **state)
{
	struct ipu_bubble b;

	(void)state;
	assert_int_equal(ipu_bubble_measure(by_hand, 9, 2, 2, &b, NULL), ST_OK);
	assert_int_equal(b.makespan_ns, 75);
	assert_int_equal(b.busy_ns, 44 + 45);
	assert_int_equal(b.ramp_up_ns, 0 + 12);
	assert_int_equal(b.ramp_down_ns, 0 + 15);
	/* IPU 0 waits 120-136 for B1 0, which ended at 132; 148-163 for B1 1, at 160. IPU 1 waits
	 * 132-135 for F0 1, which had ended at 120. */
	assert_int_equal(b.communication_ns, 4 + 3 + 3);
	assert_int_equal(b.imbalance_ns, 12 + 12);
	check_rates(&b, 1 - 89 / 150.0, 1 - 44.5 / 75, (150 - 89) / 89.0);
}

/* On a clock in lockstep only the time in which no IPU works is communication. */
static void test_in_lockstep_communication_is_silence(void **state)
{
	struct ipu_bubble b;

	(void)state;
	assert_int_equal(ipu_bubble_measure_lockstep(by_hand, 9, 2, 2, &b, NULL), ST_OK);
	/* IPU 0: 132-135 and 160-163 of its waits; IPU 1: 132-135. */
	assert_int_equal(b.communication_ns, 3 + 3 + 3);
	assert_int_equal(b.imbalance_ns, 13 + 12);
	assert_int_equal(b.ramp_up_ns + b.ramp_down_ns, 27);
}

static void test_nothing_that_ran_gives_no_rate(void **state)
{
	struct ipu_bubble b;

	(void)state;
	assert_int_equal(ipu_bubble_measure(NULL, 0, 2, 2, &b, NULL), ST_OK);
	assert_true(isnan(b.idle_fraction) && isnan(b.bubble_rate) && isnan(b.bubble_over_ideal));
	assert_int_equal(b.makespan_ns, 0);
	assert_int_equal(ipu_bubble_measure(&by_hand[8], 1, 2, 2, &b, NULL), ST_OK);
	assert_true(isnan(b.idle_fraction));
}

static void test_intervals_outside_the_pipeline_are_refused(void **state)
{
	static const struct ipu_interval wrong[] = {{2, 0, 0, 'F', 0, 1},
						    {0, 2, 0, 'F', 0, 1},
						    {-1, 0, 0, 'B', 0, 1},
						    {0, 0, 0, 'F', 0, -1}};
	struct ipu_bubble b;
	struct err err;

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(ipu_bubble_measure(&wrong[i], 1, 2, 2, &b, &err), ST_INVALID);
}

/* ---- properties ------------------------------------------------------------------------------ */

static void check_sum(const struct ipu_bubble *b, int ipus)
{
	assert_true(b->ramp_up_ns >= 0 && b->ramp_down_ns >= 0 && b->imbalance_ns >= 0 &&
		    b->communication_ns >= 0);
	assert_int_equal(b->ramp_up_ns + b->ramp_down_ns + b->imbalance_ns + b->communication_ns,
			 ipus * b->makespan_ns - b->busy_ns);
}

#define CLOCK_END 1100

/* The lockstep split once more, one ns after the other. */
static void check_every_ns(const struct ipu_bubble *b, const struct ipu_interval *intervals,
			   int count, int ipus)
{
	bool busy[5][CLOCK_END] = {{false}}, *any = busy[4];
	int64_t up = 0, down = 0, silent = 0, waiting = 0, working = 0;
	int first = CLOCK_END, last = -1;

	for (int i = 0; i < count; i++) {
		for (int64_t t = 0; t < intervals[i].dur_ns && intervals[i].phase != 'U'; t++)
			busy[intervals[i].ipu][intervals[i].start_ns + t] = true;
	}
	for (int t = 0; t < CLOCK_END; t++) {
		any[t] = busy[0][t] || busy[1][t] || busy[2][t] || busy[3][t];
		first = any[t] && t < first ? t : first;
		last = any[t] ? t : last;
	}
	for (int ipu = 0; ipu < ipus; ipu++) {
		int begin = CLOCK_END, end = -1;

		for (int t = first; t <= last; t++) {
			begin = busy[ipu][t] && t < begin ? t : begin;
			end = busy[ipu][t] ? t : end;
		}
		for (int t = first; t <= last; t++) {
			if (busy[ipu][t])
				working++;
			else if (t < begin)
				up++;
			else if (t > end)
				down++;
			else if (any[t])
				waiting++;
			else
				silent++;
		}
	}
	assert_int_equal(b->busy_ns, working);
	assert_int_equal(b->ramp_up_ns, up);
	assert_int_equal(b->ramp_down_ns, down);
	assert_int_equal(b->communication_ns, silent);
	assert_int_equal(b->imbalance_ns, waiting);
}

/* Any intervals, even ones that overlap on an IPU or name no real producer. */
static void test_idle_time_is_split_to_the_last_ns(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 2, rng_stream("bubble"), 0, 0);
	for (int round = 0; round < 500; round++) {
		struct ipu_interval intervals[40];
		int count = 1 + (int)rng_below(&rng, 40), ipus = 1 + (int)rng_below(&rng, 4);
		struct ipu_bubble b;

		for (int i = 0; i < count; i++)
			intervals[i] =
				(struct ipu_interval){.ipu = (int)rng_below(&rng, (uint32_t)ipus),
						      .stage = (int)rng_below(&rng, 4),
						      .microbatch = (int)rng_below(&rng, 4),
						      .phase = "FBWU"[rng_below(&rng, 4)],
						      .start_ns = rng_below(&rng, 1000),
						      .dur_ns = 1 + rng_below(&rng, 60)};
		assert_int_equal(ipu_bubble_measure(intervals, count, ipus, 4, &b, NULL), ST_OK);
		check_sum(&b, ipus);
		assert_int_equal(ipu_bubble_measure_lockstep(intervals, count, ipus, 4, &b, NULL),
				 ST_OK);
		check_sum(&b, ipus);
		check_every_ns(&b, intervals, count, ipus);
	}
}

static void test_no_failed_allocation_leaves_anything(void **state)
{
	static const double ns[] = {10, 10};
	static const struct ipu_schedule_costs costs = {.forward = ns, .backward = ns};
	struct ipu_schedule *schedule = schedule_of(IPU_GROUPED, 2, 4);
	bool failed = true;

	(void)state;
	for (long n = 0; failed; n++) {
		struct ipu_bubble b;
		enum status status;

		support_fail_alloc(n);
		status = ipu_bubble_theory(schedule, &costs, &b, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
	}
	ipu_schedule_free(schedule);
}

static void test_costs_that_are_none_are_refused(void **state)
{
	static const double bad[] = {-1, NAN, INFINITY, 0x1p62};
	struct ipu_schedule *schedule = schedule_of(IPU_ZB_H1, 2, 4);

	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			double ns[3][2] = {{10, 10}, {10, 10}, {10, 10}};
			const struct ipu_schedule_costs costs = {
				.forward = ns[0], .backward = ns[1], .weight = ns[2]};
			struct ipu_bubble b;
			struct err err;

			ns[kind][1] = 0; /* what takes no time is a cost */
			assert_int_equal(ipu_bubble_theory(schedule, &costs, &b, NULL), ST_OK);
			ns[kind][1] = bad[i];
			assert_int_equal(ipu_bubble_theory(schedule, &costs, &b, &err), ST_INVALID);
			assert_string_equal(err.text, "stage 1 has no usable cost");
		}
	}
	ipu_schedule_free(schedule);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unit_times_give_the_published_1f1b_bubble),
		cmocka_unit_test(test_equal_times_give_the_published_rates),
		cmocka_unit_test(test_grouped_in_lockstep_has_the_1f1b_bubble_for_any_costs),
		cmocka_unit_test(test_interleaved_in_lockstep_wastes_time_on_unequal_costs),
		cmocka_unit_test(test_stages_that_fill_one_ipu_have_no_bubble),
		cmocka_unit_test(test_sequential_uses_one_ipu_at_a_time),
		cmocka_unit_test(test_free_running_is_never_slower_than_lockstep),
		cmocka_unit_test(test_a_run_by_hand_comes_out_number_by_number),
		cmocka_unit_test(test_in_lockstep_communication_is_silence),
		cmocka_unit_test(test_nothing_that_ran_gives_no_rate),
		cmocka_unit_test(test_intervals_outside_the_pipeline_are_refused),
		cmocka_unit_test(test_idle_time_is_split_to_the_last_ns),
		cmocka_unit_test(test_costs_that_are_none_are_refused),
		cmocka_unit_test(test_no_failed_allocation_leaves_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
