/*
 * The device clock: one run by hand, the rest as properties of random costs.
 */
#include "support/support.h"

#include <string.h>

#include "common/rng.h"
#include "ipu/ipu_timeline.h"

/* One byte a cycle everywhere, so that the sums can be done in the head. */
static const struct ipu_target plain = {.name = "plain",
					.tiles = 1,
					.clock_hz = 1e9,
					.sync_cycles = 10,
					.global_sync_cycles = 20,
					.link_bytes_second = 1e9,
					.host_bytes_second = 1e9};

static struct ipu_schedule *schedule_of(enum ipu_schedule_kind kind, int stages, int microbatches,
					bool training, const int *device)
{
	struct ipu_schedule_params params = {.kind = kind,
					     .stages = stages,
					     .microbatches = microbatches,
					     .training = training,
					     .device = device};
	struct ipu_schedule *schedule;

	assert_int_equal(ipu_schedule_new(&schedule, &params, NULL), ST_OK);
	return schedule;
}

static const struct ipu_event *event_of(const struct ipu_timeline *timeline, char phase, int stage,
					int microbatch)
{
	for (int i = 0; i < timeline->count; i++) {
		const struct ipu_event *e = &timeline->events[i];

		if (e->phase == phase && e->stage == stage && e->microbatch == microbatch)
			return e;
	}
	return NULL;
}

static const struct ipu_stage_cost by_hand[] = {
	{.forward = 100, .backward = 150, .update = 30, .host_bytes = 5, .output_bytes = 7},
	{.forward = 200, .backward = 250, .update = 50, .forward_exchange = 60, .forward_sync = 3},
};

/*	step  IPU 0            IPU 1        longest  copy  sync
 *	0     5+F0=105                      105      7     20
 *	1     5+F0=105         F1=200       200      7     20
 *	2     5+F0=105         F1+B1=450    450      7     20
 *	3     5+F0+B0=255      F1+B1=450    450      7     20
 *	4     B0=150           F1+B1=450    450      7     20
 *	5     B0=150           B1=250       250      7     20
 *	6     B0=150                        150      0     20
 *	U     30               50           50             20
 */
static void test_a_run_by_hand_comes_out_number_by_number(void **state)
{
	static const int64_t starts[] = {5, 137, 364, 836 + 5};
	struct ipu_schedule *schedule = schedule_of(IPU_GROUPED, 2, 4, true, NULL);
	struct ipu_timeline *timeline;

	(void)state;
	assert_int_equal(ipu_timeline_new(&timeline, &plain, schedule, by_hand, NULL), ST_OK);
	assert_int_equal(timeline->cycles, 132 + 227 + 3 * 477 + 277 + 170 + 70);
	assert_int_equal(timeline->host_io_cycles, 20);
	assert_int_equal(timeline->count, 18);
	for (int m = 0; m < 4; m++)
		assert_int_equal(event_of(timeline, 'F', 0, m)->start_cycle, starts[m]);
	assert_int_equal(event_of(timeline, 'B', 0, 0)->start_cycle, 836 + 105);
	assert_int_equal(event_of(timeline, 'B', 0, 3)->start_cycle, 2067);
	assert_int_equal(event_of(timeline, 'U', 0, -1)->start_cycle, 2237);
	assert_int_equal(event_of(timeline, 'U', 1, -1)->start_cycle, 2237);
	assert_int_equal(event_of(timeline, 'U', 1, -1)->time_step, 7);
	assert_int_equal(timeline->split[0].compute, 1030);
	assert_int_equal(timeline->split[0].host_io, 20);
	assert_int_equal(timeline->split[0].exchange, 42);
	assert_int_equal(timeline->split[0].sync, 160);
	assert_int_equal(timeline->split[0].idle, 1055);
	assert_int_equal(timeline->split[1].compute, 1850 - 4 * 63);
	assert_int_equal(timeline->split[1].host_io, 0);
	assert_int_equal(timeline->split[1].exchange, 42 + 4 * 60);
	assert_int_equal(timeline->split[1].sync, 160 + 4 * 3);
	assert_int_equal(timeline->split[1].idle, 255);
	ipu_timeline_free(timeline);
	ipu_schedule_free(schedule);
}

static void test_two_ipus_that_stream_in_a_step_share_the_host_link(void **state)
{
	static const struct ipu_stage_cost costs[] = {{.forward = 10, .host_bytes = 100},
						      {.forward = 10, .host_bytes = 50}};
	struct ipu_schedule *schedule = schedule_of(IPU_GROUPED, 2, 2, false, NULL);
	struct ipu_timeline *timeline;

	(void)state;
	assert_int_equal(ipu_timeline_new(&timeline, &plain, schedule, costs, NULL), ST_OK);
	/* Steps: F0 alone, F0 beside F1, F1 alone; no weight update. */
	assert_int_equal(timeline->cycles, (100 + 10 + 20) + (150 + 10 + 20) + (50 + 10 + 20));
	assert_int_equal(timeline->split[0].host_io, 100 + 150);
	assert_int_equal(timeline->split[1].host_io, 150 + 50);
	assert_int_equal(timeline->host_io_cycles, 300);
	ipu_timeline_free(timeline);
	ipu_schedule_free(schedule);
}

static void test_one_ipu_has_no_copies_and_its_own_sync(void **state)
{
	static const int one[] = {0, 0};
	struct ipu_schedule *schedule = schedule_of(IPU_SEQUENTIAL, 2, 1, true, one);
	struct ipu_timeline *timeline;

	(void)state;
	assert_int_equal(ipu_timeline_new(&timeline, &plain, schedule, by_hand, NULL), ST_OK);
	assert_int_equal(timeline->cycles, 5 + 100 + 200 + 250 + 150 + 80 + 5 * 10);
	assert_int_equal(timeline->split[0].exchange, 60);
	assert_int_equal(timeline->split[0].idle, 0);
	assert_int_equal(event_of(timeline, 'U', 1, -1)->start_cycle,
			 event_of(timeline, 'U', 0, -1)->start_cycle + 30);
	ipu_timeline_free(timeline);
	ipu_schedule_free(schedule);
}

/* ---- properties ---------------------------------------------------------------------------------
 */

static void random_costs(struct rng *rng, struct ipu_stage_cost *costs, int stages, bool training)
{
	for (int s = 0; s < stages; s++) {
		struct ipu_stage_cost *c = &costs[s];

		*c = (struct ipu_stage_cost){.forward = rng_below(rng, 10000),
					     .backward = training ? rng_below(rng, 10000) : 0,
					     .update = training ? rng_below(rng, 10000) : 0,
					     .host_bytes = rng_below(rng, 3) * rng_below(rng, 9999),
					     .output_bytes = rng_below(rng, 99999)};
		c->forward_exchange = c->forward / 3;
		c->forward_sync = c->forward / 5;
		c->backward_exchange = c->backward / 4;
		c->update_sync = c->update / 2;
	}
}

static void check_split(const struct ipu_timeline *timeline, int ipus)
{
	for (int i = 0; i < ipus; i++) {
		const struct ipu_split *s = &timeline->split[i];

		assert_true(s->compute >= 0 && s->exchange >= 0 && s->sync >= 0 &&
			    s->host_io >= 0 && s->idle >= 0);
		assert_int_equal(s->compute + s->exchange + s->sync + s->host_io + s->idle,
				 timeline->cycles);
	}
}

static void check_events(const struct ipu_timeline *timeline, const struct ipu_schedule *schedule)
{
	for (int i = 0; i < timeline->count; i++) {
		const struct ipu_event *e = &timeline->events[i];
		const struct ipu_event *input = NULL;

		assert_true(e->start_cycle >= 0 && e->start_cycle + e->cycles <= timeline->cycles);
		if (i > 0 && e[-1].ipu == e->ipu)
			assert_true(e[-1].start_cycle + e[-1].cycles <= e->start_cycle);
		else if (i > 0)
			assert_true(e[-1].ipu < e->ipu);
		if (e->phase == 'F')
			input = event_of(timeline, 'F', e->stage - 1, e->microbatch);
		else if (e->phase == 'B' && e->stage == schedule->stages - 1)
			input = event_of(timeline, 'F', e->stage, e->microbatch);
		else if (e->phase == 'B')
			input = event_of(timeline, 'B', e->stage + 1, e->microbatch);
		if (input != NULL)
			assert_true(input->start_cycle + input->cycles <= e->start_cycle);
	}
}

/* Transfers lie between the events of their IPU, and are all of its host I/O. */
static void check_transfers(const struct ipu_timeline *timeline, int ipus)
{
	int64_t host_io[8] = {0};

	for (int i = 0; i < timeline->transfer_count; i++) {
		const struct ipu_transfer *t = &timeline->transfers[i];

		assert_true(t->cycles > 0 && t->bytes > 0);
		if (t->kind == IPU_TRANSFER_STREAM_COPY)
			host_io[t->ipu] += t->cycles;
		if (i > 0 && t[-1].ipu == t->ipu)
			assert_true(t[-1].start_cycle + t[-1].cycles <= t->start_cycle);
		for (int e = 0; e < timeline->count; e++) {
			const struct ipu_event *event = &timeline->events[e];

			assert_true(event->ipu != t->ipu || event->cycles == 0 ||
				    event->start_cycle + event->cycles <= t->start_cycle ||
				    t->start_cycle + t->cycles <= event->start_cycle);
		}
	}
	for (int i = 0; i < ipus; i++)
		assert_int_equal(host_io[i], timeline->split[i].host_io);
}

static void test_the_split_adds_up_and_inputs_come_first_whatever_the_costs(void **state)
{
	static const int folded[] = {0, 1, 1, 0};
	struct rng rng;

	(void)state;
	rng_init(&rng, 1, rng_stream("timeline"), 0, 0);
	for (int round = 0; round < 300; round++) {
		int stages = round % 7 == 0 ? 4 : 1 + (int)rng_below(&rng, 5);
		bool training = rng_below(&rng, 3) > 0;
		enum ipu_schedule_kind kind = (enum ipu_schedule_kind)rng_below(&rng, 3);
		const int *device = round % 7 == 0 && kind != IPU_INTERLEAVED ? folded : NULL;
		struct ipu_schedule *schedule = schedule_of(
			kind, stages, 2 * stages * (1 + (int)rng_below(&rng, 2)), training, device);
		struct ipu_stage_cost costs[5];
		struct ipu_timeline *timeline;

		random_costs(&rng, costs, stages, training);
		assert_int_equal(ipu_timeline_new(&timeline, &plain, schedule, costs, NULL), ST_OK);
		check_split(timeline, schedule->ipus);
		check_events(timeline, schedule);
		check_transfers(timeline, schedule->ipus);
		ipu_timeline_free(timeline);
		ipu_schedule_free(schedule);
	}
}

static void test_impossible_costs_are_refused(void **state)
{
	struct ipu_schedule *schedule = schedule_of(IPU_SEQUENTIAL, 1, 1, true, NULL);
	struct ipu_stage_cost cost = {.forward = -1};
	struct ipu_timeline *timeline;
	struct err err;

	(void)state;
	assert_int_equal(ipu_timeline_new(&timeline, &plain, schedule, &cost, &err), ST_INVALID);
	assert_null(timeline);
	cost = (struct ipu_stage_cost){.forward = 5, .forward_exchange = 3, .forward_sync = 3};
	assert_int_equal(ipu_timeline_new(&timeline, &plain, schedule, &cost, &err), ST_INVALID);
	assert_string_equal(err.text, "stage 0: exchange and sync are more than the whole");
	ipu_schedule_free(schedule);
}

static void test_no_failed_allocation_leaves_anything(void **state)
{
	struct ipu_schedule *schedule = schedule_of(IPU_GROUPED, 2, 4, true, NULL);
	bool failed = true;

	(void)state;
	for (long n = 0; failed; n++) {
		struct ipu_timeline *timeline;
		enum status status;

		support_fail_alloc(n);
		status = ipu_timeline_new(&timeline, &plain, schedule, by_hand, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
		assert_true(failed == (timeline == NULL));
		ipu_timeline_free(timeline);
	}
	ipu_schedule_free(schedule);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_run_by_hand_comes_out_number_by_number),
		cmocka_unit_test(test_two_ipus_that_stream_in_a_step_share_the_host_link),
		cmocka_unit_test(test_one_ipu_has_no_copies_and_its_own_sync),
		cmocka_unit_test(test_the_split_adds_up_and_inputs_come_first_whatever_the_costs),
		cmocka_unit_test(test_impossible_costs_are_refused),
		cmocka_unit_test(test_no_failed_allocation_leaves_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
