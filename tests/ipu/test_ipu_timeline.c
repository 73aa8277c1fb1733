/*
 * The device clock: one run by hand, the rest as properties of random costs.
 */
#include "support/support.h"

#include <string.h>

#include "common/mem.h"
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

static struct ipu_timeline *timeline_of(const struct ipu_timeline_params *params)
{
	struct ipu_timeline *timeline;

	assert_int_equal(ipu_timeline_new(&timeline, params, NULL), ST_OK);
	return timeline;
}

static const struct ipu_transfer *transfer_of(const struct ipu_timeline *timeline,
					      enum ipu_transfer_kind kind, int ipu, int time_step)
{
	for (int i = 0; i < timeline->transfer_count; i++) {
		const struct ipu_transfer *t = &timeline->transfers[i];

		if (t->kind == kind && t->ipu == ipu && t->time_step == time_step)
			return t;
	}
	return NULL;
}

static const struct ipu_stage_cost by_hand[] = {
	{.function = {[IPU_FUNCTION_F] = {.cycles = 100},
		      [IPU_FUNCTION_B] = {.cycles = 150},
		      [IPU_FUNCTION_U] = {.cycles = 30}},
	 .infeed_bytes = 5},
	{.function = {[IPU_FUNCTION_F] = {.cycles = 200, .exchange = 60, .sync = 3},
		      [IPU_FUNCTION_B] = {.cycles = 250},
		      [IPU_FUNCTION_U] = {.cycles = 50}}},
};
static const struct ipu_send one_send = {0, 1, 7};

/*	step  IPU 0            IPU 1        longest  sync  copy
 *	0     5+F0=105                      105      20    7
 *	1     5+F0=105         F1=200       200      20    7
 *	2     5+F0=105         F1+B1=450    450      20    7
 *	3     5+F0+B0=255      F1+B1=450    450      20    7
 *	4     B0=150           F1+B1=450    450      20    7
 *	5     B0=150           B1=250       250      20    7
 *	6     B0=150                        150      20    0
 *	U     30               50           50       20
 */
static void test_a_run_by_hand_comes_out_number_by_number(void **state)
{
	static const int64_t starts[] = {5, 137, 364, 836 + 27 + 5};
	struct ipu_schedule *schedule = schedule_of(IPU_GROUPED, 2, 4, true, NULL);
	const struct ipu_timeline_params params = {.target = &plain,
						   .schedule = schedule,
						   .stages = by_hand,
						   .sends = &one_send,
						   .send_count = 1};
	struct ipu_timeline *timeline = timeline_of(&params);

	(void)state;
	assert_int_equal(timeline->cycles, 132 + 227 + 3 * 477 + 2 * 27 + 277 + 170 + 70);
	assert_int_equal(timeline->time_steps, 7);
	assert_int_equal(timeline->count, 18);
	for (int m = 0; m < 4; m++)
		assert_int_equal(event_of(timeline, 'F', 0, m)->start_cycle, starts[m]);
	assert_int_equal(event_of(timeline, 'B', 0, 0)->start_cycle, 836 + 27 + 105);
	assert_int_equal(event_of(timeline, 'B', 0, 3)->start_cycle, 2067 + 2 * 27);
	assert_int_equal(event_of(timeline, 'U', 0, -1)->start_cycle, 2237 + 2 * 27);
	assert_int_equal(event_of(timeline, 'U', 1, -1)->start_cycle, 2237 + 2 * 27);
	assert_int_equal(event_of(timeline, 'U', 1, -1)->time_step, 7);
	assert_int_equal(timeline->split[0].compute, 1030);
	assert_int_equal(timeline->split[0].host_io, 20);
	assert_int_equal(timeline->split[0].exchange, 42 + 2 * 7);
	assert_int_equal(timeline->split[0].sync, 160 + 2 * 20);
	assert_int_equal(timeline->split[0].idle, 1055);
	assert_int_equal(timeline->split[1].compute, 1850 - 4 * 63);
	assert_int_equal(timeline->split[1].host_io, 0);
	assert_int_equal(timeline->split[1].exchange, 42 + 2 * 7 + 4 * 60);
	assert_int_equal(timeline->split[1].sync, 160 + 2 * 20 + 4 * 3);
	assert_int_equal(timeline->split[1].idle, 255);
	ipu_timeline_free(timeline);
	ipu_schedule_free(schedule);
}

/*
 * Out of lockstep, with cycles of W: IPU 0 has F0 F1 B0 W0 B1 W1, IPU 1 has F0 B0 F1 B1 W0 W1.
 *
 *	IPU 0	5+F0=105 send 112, 5+F1=217 send 224, wait 596+20 take 623, B0=773 W0, wait 1080+20
 *		take 1107, B1=1257 W1
 *	IPU 1	wait 112+20 take 139, F0=339 B0=589 send 596, 20 take 623, F1=823 B1=1073 send 1080,
 *		W0 W1
 */
static void test_out_of_lockstep_each_ipu_waits_for_its_input_alone(void **state)
{
	static const struct {
		enum ipu_schedule_kind kind;
		int64_t weight[2], cycles, compute, idle; /* of IPU 0 */
	} cases[] = {
		{IPU_1F1B, {0, 0}, 1307, 530, 372 + 307},
		{IPU_ZB_H1, {40, 60}, 1347, 610, 372 + 267},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ipu_schedule *schedule = schedule_of(cases[i].kind, 2, 2, true, NULL);
		struct ipu_stage_cost costs[] = {by_hand[0], by_hand[1]};
		const struct ipu_timeline_params params = {.target = &plain,
							   .schedule = schedule,
							   .stages = costs,
							   .sends = &one_send,
							   .send_count = 1};
		struct ipu_timeline *timeline;

		for (int s = 0; s < 2; s++)
			costs[s].function[IPU_FUNCTION_W].cycles = cases[i].weight[s];
		timeline = timeline_of(&params);
		assert_int_equal(timeline->cycles, cases[i].cycles);
		assert_int_equal(event_of(timeline, 'F', 0, 1)->start_cycle, 117);
		assert_int_equal(event_of(timeline, 'F', 1, 0)->start_cycle, 139);
		assert_int_equal(event_of(timeline, 'B', 1, 0)->start_cycle, 339);
		assert_int_equal(event_of(timeline, 'F', 1, 1)->start_cycle, 623);
		assert_int_equal(event_of(timeline, 'B', 0, 0)->start_cycle, 623);
		assert_int_equal(event_of(timeline, 'B', 0, 1)->start_cycle, 1107);
		if (cases[i].kind == IPU_ZB_H1) {
			assert_int_equal(event_of(timeline, 'W', 0, 0)->start_cycle, 773);
			assert_int_equal(event_of(timeline, 'W', 1, 0)->start_cycle, 1080);
			assert_int_equal(event_of(timeline, 'W', 1, 1)->start_cycle, 1140);
			assert_int_equal(event_of(timeline, 'W', 0, 1)->start_cycle, 1257);
		}
		assert_int_equal(timeline->split[0].compute, cases[i].compute);
		assert_int_equal(timeline->split[0].host_io, 10);
		assert_int_equal(timeline->split[0].exchange, 28);
		assert_int_equal(timeline->split[0].sync, 60);
		assert_int_equal(timeline->split[0].idle, cases[i].idle);
		ipu_timeline_free(timeline);
		ipu_schedule_free(schedule);
	}
}

static void test_the_ipus_of_a_host_link_share_it_those_of_other_replicas_too(void **state)
{
	static const struct ipu_stage_cost costs[] = {
		{.function = {[IPU_FUNCTION_F] = {.cycles = 10}}, .infeed_bytes = 100},
		{.function = {[IPU_FUNCTION_F] = {.cycles = 10}},
		 .infeed_bytes = 50,
		 .outfeed_bytes = 8}};
	struct ipu_schedule *schedule = schedule_of(IPU_GROUPED, 2, 2, false, NULL);
	struct ipu_target target = plain;
	struct ipu_timeline_params params = {
		.target = &target, .schedule = schedule, .stages = costs};
	struct ipu_timeline *timeline = timeline_of(&params);

	(void)state;
	/* Steps: F0 alone, F0 beside F1, F1 alone. The results leave before the next infeed. */
	assert_int_equal(timeline->cycles,
			 (100 + 10 + 20) + (150 + 10 + 20) + (8 + 50 + 10 + 20) + 8 + 20);
	assert_int_equal(timeline->split[0].host_io, 100 + 150);
	assert_int_equal(timeline->split[1].host_io, 150 + 8 + 50 + 8);
	assert_int_equal(transfer_of(timeline, IPU_TRANSFER_INFEED, 0, 1)->bytes_in, 100);
	assert_int_equal(transfer_of(timeline, IPU_TRANSFER_INFEED, 1, 1)->cycles, 150);
	ipu_timeline_free(timeline);
	/* Two replicas of two IPUs on a link of four: twice the bytes. Eight replicas: no more. */
	target.ipus_host_link = 4;
	for (params.replicas = 2; params.replicas <= 8; params.replicas *= 4) {
		timeline = timeline_of(&params);
		assert_int_equal(timeline->split[0].host_io, 2 * (100 + 150));
		ipu_timeline_free(timeline);
	}
	/* A link for each IPU: nothing is shared. */
	target.ipus_host_link = 1;
	timeline = timeline_of(&params);
	assert_int_equal(timeline->split[0].host_io, 100 + 100);
	assert_int_equal(timeline->split[1].host_io, 50 + 8 + 50 + 8);
	ipu_timeline_free(timeline);
	ipu_schedule_free(schedule);
}

static void test_one_ipu_waits_for_nobody(void **state)
{
	static const int one[] = {0, 0};
	struct ipu_schedule *schedule = schedule_of(IPU_SEQUENTIAL, 2, 1, true, one);
	const struct ipu_timeline_params params = {.target = &plain,
						   .schedule = schedule,
						   .stages = by_hand,
						   .sends = &one_send,
						   .send_count = 1};
	struct ipu_timeline *timeline = timeline_of(&params);

	(void)state;
	assert_int_equal(timeline->cycles, 5 + 100 + 200 + 250 + 150 + 80);
	assert_int_equal(timeline->transfer_count, 1);
	assert_int_equal(timeline->split[0].exchange, 60);
	assert_int_equal(timeline->split[0].idle, 0);
	assert_int_equal(event_of(timeline, 'U', 1, -1)->start_cycle,
			 event_of(timeline, 'U', 0, -1)->start_cycle + 30);
	ipu_timeline_free(timeline);
	ipu_schedule_free(schedule);
}

/* In a step: programs, then what fills FIFOs, then the forward that the next step's backward
 * needs. */
static void test_a_step_has_its_order(void **state)
{
	static const struct ipu_stage_cost costs[] = {
		{.function = {[IPU_FUNCTION_F] = {.cycles = 100},
			      [IPU_FUNCTION_B] = {.cycles = 100},
			      [IPU_FUNCTION_R] = {.cycles = 90},
			      [IPU_FUNCTION_PUSH] = {.cycles = 10},
			      [IPU_FUNCTION_START] = {.cycles = 7}},
		 .infeed_bytes = 5},
		{.function = {[IPU_FUNCTION_F] = {.cycles = 1}, [IPU_FUNCTION_B] = {.cycles = 1}},
		 .outfeed_bytes = 3}};
	static const struct {
		enum ipu_function_phase function;
		int microbatch;
	} early[] = {{IPU_FUNCTION_START, -1}, {IPU_FUNCTION_F, 0},    {IPU_FUNCTION_PUSH, 0},
		     {IPU_FUNCTION_F, 1},      {IPU_FUNCTION_PUSH, 1}, {IPU_FUNCTION_F, 2},
		     {IPU_FUNCTION_PUSH, 2},   {IPU_FUNCTION_R, 0},    {IPU_FUNCTION_F, 3},
		     {IPU_FUNCTION_B, 0},      {IPU_FUNCTION_PUSH, 3}, {IPU_FUNCTION_R, 1},
		     {IPU_FUNCTION_B, 1},      {IPU_FUNCTION_R, 2},    {IPU_FUNCTION_B, 2},
		     {IPU_FUNCTION_R, 3},      {IPU_FUNCTION_B, 3}};
	struct ipu_schedule *schedule = schedule_of(IPU_GROUPED, 2, 4, true, NULL);
	struct ipu_timeline_params params = {
		.target = &plain, .schedule = schedule, .stages = costs};
	struct ipu_timeline *timeline = timeline_of(&params);
	const struct ipu_event *replay;

	(void)state;
	for (size_t i = 0; i < sizeof(early) / sizeof(early[0]); i++) {
		assert_int_equal(timeline->events[i].ipu, 0);
		assert_int_equal(timeline->events[i].function, early[i].function);
		assert_int_equal(timeline->events[i].microbatch, early[i].microbatch);
	}
	assert_true(transfer_of(timeline, IPU_TRANSFER_OUTFEED, 1, 1)->start_cycle >
		    transfer_of(timeline, IPU_TRANSFER_SYNC, 1, 1)->start_cycle);
	ipu_timeline_free(timeline);
	params.recompute_late = true;
	timeline = timeline_of(&params);
	replay = event_of(timeline, 'R', 0, 3);
	assert_int_equal(replay->start_cycle + replay->cycles,
			 event_of(timeline, 'B', 0, 3)->start_cycle);
	ipu_timeline_free(timeline);
	ipu_schedule_free(schedule);
}

/* One stage, no pipeline: each batch streams beside the one before. */
static void test_io_tiles_stream_beside_the_programs(void **state)
{
	struct ipu_stage_cost cost = {
		.function =
			{[IPU_FUNCTION_F] = {.cycles = 100}, [IPU_FUNCTION_B] = {.cycles = 200}},
		.infeed_bytes = 150,
		.outfeed_bytes = 10};
	struct ipu_target target = plain;
	struct ipu_schedule *schedule = schedule_of(IPU_SEQUENTIAL, 1, 1, true, NULL);
	struct ipu_timeline_params params = {
		.target = &target, .schedule = schedule, .stages = &cost};
	struct ipu_timeline *timeline = timeline_of(&params);

	(void)state;
	assert_int_equal(timeline->cycles, 150 + 100 + 10 + 200);
	assert_int_equal(transfer_of(timeline, IPU_TRANSFER_INFEED, 0, 0)->overlapped, 0);
	ipu_timeline_free(timeline);
	params.io_tiles = 10;
	target.exchange_bytes_cycle = 1;
	timeline = timeline_of(&params);
	/* Between the tile sets 15 cycles in and 1 out; 160 of streams are hidden by B's 200. */
	assert_int_equal(timeline->cycles, 15 + 100 + 1 + 200);
	assert_int_equal(transfer_of(timeline, IPU_TRANSFER_INFEED, 0, 1)->overlapped, 150);
	assert_int_equal(transfer_of(timeline, IPU_TRANSFER_INFEED, 0, 1)->microbatch, -1);
	assert_int_equal(timeline->split[0].host_io, 0);
	ipu_timeline_free(timeline);
	cost.infeed_bytes = 500;
	timeline = timeline_of(&params);
	assert_int_equal(timeline->cycles, 50 + 100 + 1 + 510);
	assert_int_equal(timeline->split[0].host_io, 510 - 200);
	ipu_timeline_free(timeline);
	ipu_schedule_free(schedule);
	/* The only step is all of a run: what it streams belongs to the next and the last run. */
	schedule = schedule_of(IPU_SEQUENTIAL, 1, 1, false, NULL);
	params.schedule = schedule;
	timeline = timeline_of(&params);
	assert_int_equal(timeline->time_steps, 1);
	assert_int_equal(transfer_of(timeline, IPU_TRANSFER_INFEED, 0, 0)->microbatch, -1);
	assert_int_equal(transfer_of(timeline, IPU_TRANSFER_OUTFEED, 0, 0)->microbatch, -1);
	ipu_timeline_free(timeline);
	ipu_schedule_free(schedule);
}

/* A pipeline has one step more before and after, for the first infeed and the last results. */
static void test_a_pipeline_with_io_tiles_streams_one_step_ahead(void **state)
{
	static const struct ipu_stage_cost costs[] = {
		{.function =
			 {[IPU_FUNCTION_F] = {.cycles = 100}, [IPU_FUNCTION_B] = {.cycles = 100}},
		 .infeed_bytes = 50},
		{.function =
			 {[IPU_FUNCTION_F] = {.cycles = 100}, [IPU_FUNCTION_B] = {.cycles = 100}},
		 .outfeed_bytes = 3}};
	struct ipu_target target = plain;
	struct ipu_schedule *schedule = schedule_of(IPU_GROUPED, 2, 4, true, NULL);
	const struct ipu_timeline_params params = {
		.target = &target, .schedule = schedule, .stages = costs, .io_tiles = 4};
	struct ipu_timeline *timeline;
	const struct ipu_transfer *infeed;

	(void)state;
	target.exchange_bytes_cycle = 1;
	timeline = timeline_of(&params);
	assert_int_equal(timeline->time_steps, 9);
	for (int m = 0; m < 4; m++) {
		infeed = transfer_of(timeline, IPU_TRANSFER_INFEED, 0, m);
		assert_int_equal(infeed->microbatch, m);
		assert_int_equal(infeed->overlapped, m == 0 ? 0 : 50);
		assert_int_equal(event_of(timeline, 'F', 0, m)->time_step, m + 1);
	}
	infeed = transfer_of(timeline, IPU_TRANSFER_OUTFEED, 1, 3);
	assert_int_equal(infeed->microbatch, 0);
	ipu_timeline_free(timeline);
	ipu_schedule_free(schedule);
}

static void test_a_host_with_one_batch_ready_is_waited_for(void **state)
{
	struct ipu_stage_cost cost = {.function = {[IPU_FUNCTION_F] = {.cycles = 10}},
				      .infeed_bytes = 100};
	struct ipu_target target = plain;
	struct ipu_schedule *schedule = schedule_of(IPU_SEQUENTIAL, 1, 3, false, NULL);
	struct ipu_timeline_params params = {
		.target = &target, .schedule = schedule, .stages = &cost, .prefetch_depth = 2};
	struct ipu_timeline *timeline;

	(void)state;
	target.host_latency_ns = 20;
	target.host_fill_bytes_second = 2e9;
	timeline = timeline_of(&params);
	assert_int_equal(timeline->cycles, 3 * (120 + 10));
	ipu_timeline_free(timeline);
	/* The next batch takes 20 + 50; 10 of that go by while the device works. */
	params.prefetch_depth = 1;
	timeline = timeline_of(&params);
	assert_int_equal(timeline->cycles, 3 * (60 + 120 + 10));
	assert_int_equal(timeline->transfers[0].begin_cycles,
			 60 + ipu_stream_copy(&target, 100, 1e9).begin_cycles);
	ipu_timeline_free(timeline);
	schedule->training = false;
	cost.function[IPU_FUNCTION_F].cycles = 70;
	timeline = timeline_of(&params);
	assert_int_equal(timeline->cycles, 3 * (120 + 70));
	ipu_timeline_free(timeline);
	ipu_schedule_free(schedule);
}

/* A pair has twice the links of a rung; what passes a rung shares it. */
static void test_links_of_the_ladder(void **state)
{
	static const struct ipu_stage_cost costs[6] = {
		{.function = {[IPU_FUNCTION_F] = {.cycles = 10}}},
		{.function = {[IPU_FUNCTION_F] = {.cycles = 10}}},
		{.function = {[IPU_FUNCTION_F] = {.cycles = 10}}},
		{.function = {[IPU_FUNCTION_F] = {.cycles = 10}}},
		{.function = {[IPU_FUNCTION_F] = {.cycles = 10}}},
		{.function = {[IPU_FUNCTION_F] = {.cycles = 10}}}};
	static const struct {
		struct ipu_send sends[2];
		int count;
		int64_t copy;
	} cases[] = {
		{{{0, 1, 100}}, 1, 100},
		{{{0, 2, 100}}, 1, 200},
		{{{0, 3, 100}}, 1, 200},
		{{{0, 5, 100}}, 1, 200},
		{{{0, 2, 100}, {0, 4, 100}}, 2, 400},
	};
	struct ipu_schedule *schedule = schedule_of(IPU_SEQUENTIAL, 6, 1, false, NULL);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct ipu_timeline_params params = {.target = &plain,
							   .schedule = schedule,
							   .stages = costs,
							   .sends = cases[i].sends,
							   .send_count = cases[i].count};
		struct ipu_timeline *timeline = timeline_of(&params);
		const struct ipu_transfer *global =
			transfer_of(timeline, IPU_TRANSFER_GLOBAL, 0, 0);

		assert_int_equal(global->cycles, cases[i].copy);
		assert_int_equal(global->bytes_out, 100 * cases[i].count);
		assert_int_equal(timeline->cycles, 7 * 20 + 60 + cases[i].copy);
		ipu_timeline_free(timeline);
	}
	ipu_schedule_free(schedule);
}

/* ---- properties ------------------------------------------------------------------------------ */

static int64_t below(struct rng *rng, uint32_t limit)
{
	return (int64_t)rng_below(rng, limit);
}

static void random_costs(struct rng *rng, struct ipu_stage_cost *costs, int stages)
{
	for (int s = 0; s < stages; s++) {
		struct ipu_stage_cost *c = &costs[s];

		*c = (struct ipu_stage_cost){.infeed_bytes = below(rng, 3) * below(rng, 9999),
					     .outfeed_bytes = below(rng, 3) * below(rng, 999),
					     .update_bytes = below(rng, 2) * below(rng, 999)};
		for (int f = 0; f < IPU_FUNCTION_PHASES; f++) {
			c->function[f].cycles = below(rng, 10000);
			c->function[f].exchange = c->function[f].cycles / 3;
			c->function[f].sync = c->function[f].cycles / 5;
			c->function[f].host_io = c->function[f].cycles / 7;
		}
	}
}

static int random_sends(struct rng *rng, struct ipu_send *sends, int stages)
{
	int count = 0;

	for (int s = 0; s + 1 < stages; s++)
		sends[count++] = (struct ipu_send){s, s + 1, below(rng, 99999)};
	if (stages > 2)
		sends[count++] = (struct ipu_send){0, stages - 1, below(rng, 99999)};
	return count;
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
		else if (e->phase == 'R')
			input = event_of(timeline, 'F', e->stage, e->microbatch);
		else if (e->phase == 'B' && e->stage == schedule->stages - 1)
			input = event_of(timeline, 'F', e->stage, e->microbatch);
		else if (e->phase == 'B')
			input = event_of(timeline, 'B', e->stage + 1, e->microbatch);
		if (input)
			assert_true(input->start_cycle + input->cycles <= e->start_cycle);
	}
}

/* One thing after the other on every IPU, without a gap, from the run's start to its end; but for
 * streams beside the programs. What is sent is received. */
static void check_lanes(const struct ipu_timeline *timeline, int ipus, bool overlap)
{
	int64_t at[8] = {0}, sent = 0, received = 0;
	int e = 0, t = 0;

	while (e < timeline->count || t < timeline->transfer_count) {
		const struct ipu_event *event = &timeline->events[e];
		const struct ipu_transfer *transfer = &timeline->transfers[t];
		const bool streams =
			t < timeline->transfer_count && (transfer->kind == IPU_TRANSFER_INFEED ||
							 transfer->kind == IPU_TRANSFER_OUTFEED);

		if (t < timeline->transfer_count &&
		    (e == timeline->count || transfer->ipu < event->ipu ||
		     (transfer->ipu == event->ipu &&
		      transfer->start_cycle <= event->start_cycle))) {
			assert_true(transfer->cycles > 0 && transfer->overlapped >= 0 &&
				    transfer->overlapped <= transfer->cycles);
			assert_true(overlap || transfer->overlapped == 0);
			if (transfer->kind == IPU_TRANSFER_GLOBAL ||
			    transfer->kind == IPU_TRANSFER_RECEIVE) {
				sent += transfer->bytes_out;
				received += transfer->bytes_in;
			}
			assert_true(transfer->start_cycle >= at[transfer->ipu] ||
				    (streams && overlap));
			assert_true(overlap || transfer->start_cycle == at[transfer->ipu]);
			if (!streams || !overlap)
				at[transfer->ipu] = transfer->start_cycle + transfer->cycles;
			t++;
			continue;
		}
		assert_true(event->start_cycle >= at[event->ipu]);
		assert_true(overlap || event->start_cycle == at[event->ipu]);
		at[event->ipu] = event->start_cycle + event->cycles;
		e++;
	}
	for (int i = 0; i < ipus && !overlap; i++)
		assert_int_equal(at[i], timeline->cycles);
	assert_int_equal(sent, received);
}

/* By IPU, start and kind: one order, whatever sorts them. */
static void check_order_of_transfers(const struct ipu_timeline *timeline)
{
	for (int t = 1; t < timeline->transfer_count; t++) {
		const struct ipu_transfer *a = &timeline->transfers[t - 1], *b = a + 1;

		assert_true(a->ipu < b->ipu ||
			    (a->ipu == b->ipu &&
			     (a->start_cycle < b->start_cycle ||
			      (a->start_cycle == b->start_cycle && a->kind < b->kind))));
	}
}

static void check_overlap(const struct ipu_timeline *timeline, int ipus)
{
	int64_t cycles[8] = {0};

	for (int e = 0; e < timeline->count; e++)
		cycles[timeline->events[e].ipu] += timeline->events[e].cycles;
	for (int t = 0; t < timeline->transfer_count; t++)
		cycles[timeline->transfers[t].ipu] +=
			timeline->transfers[t].cycles - timeline->transfers[t].overlapped;
	for (int i = 0; i < ipus; i++)
		assert_int_equal(cycles[i], timeline->cycles);
}

/* With I/O tiles in another run or an earlier step, else right before. */
static void check_infeeds(const struct ipu_timeline *timeline, const struct ipu_stage_cost *costs)
{
	for (int t = 0; t < timeline->transfer_count; t++) {
		const struct ipu_transfer *transfer = &timeline->transfers[t];
		const struct ipu_event *forward;

		if (transfer->kind != IPU_TRANSFER_INFEED || transfer->microbatch < 0)
			continue;
		forward = event_of(timeline, 'F', transfer->stage, transfer->microbatch);
		assert_true(transfer->start_cycle + transfer->cycles <= forward->start_cycle);
		assert_int_equal(transfer->bytes_in, costs[transfer->stage].infeed_bytes);
	}
}

static void test_lanes_are_full_and_inputs_come_first_whatever_the_costs(void **state)
{
	static const int folded[] = {0, 1, 1, 0}, in_turn[] = {0, 1, 0, 1};
	struct rng rng;

	(void)state;
	rng_init(&rng, 1, rng_stream("timeline"), 0, 0);
	for (int round = 0; round < 400; round++) {
		enum ipu_schedule_kind kind =
			(enum ipu_schedule_kind)rng_below(&rng, IPU_SCHEDULE_KINDS);
		const enum ipu_schedule_sharing sharing = ipu_schedule_row(kind)->sharing;
		int stages = round % 7 == 0 || sharing == IPU_SHARE_IN_TURN
				     ? 4
				     : 1 + (int)rng_below(&rng, 5);
		bool training = rng_below(&rng, 3) > 0;
		const int *device = sharing == IPU_SHARE_IN_TURN                 ? in_turn
				    : round % 7 == 0 && sharing == IPU_SHARE_ANY ? folded
										 : NULL;
		struct ipu_schedule *schedule = schedule_of(
			kind, stages, 2 * stages * (1 + (int)rng_below(&rng, 2)), training, device);
		struct ipu_stage_cost costs[5];
		struct ipu_send sends[5];
		struct ipu_target target = plain;
		const bool io = (stages == 1 || kind == IPU_GROUPED) && rng_below(&rng, 2);
		const struct ipu_timeline_params params = {
			.target = &target,
			.schedule = schedule,
			.stages = costs,
			.sends = sends,
			.send_count = random_sends(&rng, sends, stages),
			.replicas = 1 + (int)rng_below(&rng, 4),
			.io_tiles = io ? 1 + below(&rng, 9) : 0,
			.prefetch_depth = 1 + below(&rng, 2),
			.recompute_late = rng_below(&rng, 2),
			.outfeed_once = rng_below(&rng, 2)};
		struct ipu_timeline *timeline;

		target.host_latency_ns = (double)rng_below(&rng, 3000);
		target.host_fill_bytes_second = 1e8;
		target.exchange_bytes_cycle = 4;
		target.ipus_host_link = (int64_t)rng_below(&rng, 5);
		random_costs(&rng, costs, stages);
		timeline = timeline_of(&params);
		check_split(timeline, schedule->ipus);
		check_events(timeline, schedule);
		check_lanes(timeline, schedule->ipus, io);
		check_order_of_transfers(timeline);
		check_overlap(timeline, schedule->ipus);
		check_infeeds(timeline, costs);
		ipu_timeline_free(timeline);
		ipu_schedule_free(schedule);
	}
}

static void test_impossible_costs_are_refused(void **state)
{
	struct ipu_schedule *schedule = schedule_of(IPU_SEQUENTIAL, 1, 1, true, NULL);
	static const struct ipu_function_cost negative[] = {{.cycles = -1},
							    {.cycles = 5, .exchange = -1},
							    {.cycles = 5, .sync = -1},
							    {.cycles = 5, .host_io = -1}};
	struct ipu_stage_cost cost;
	const struct ipu_timeline_params params = {
		.target = &plain, .schedule = schedule, .stages = &cost};
	struct ipu_timeline *timeline;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(negative); i++) {
		cost = (struct ipu_stage_cost){.function = {[IPU_FUNCTION_F] = negative[i]}};
		assert_int_equal(ipu_timeline_new(&timeline, &params, &err), ST_INVALID);
		assert_null(timeline);
		assert_string_equal(err.text, "stage 0 has a negative cost");
	}
	cost = (struct ipu_stage_cost){.function = {{5, .exchange = 3, .sync = 3}}};
	assert_int_equal(ipu_timeline_new(&timeline, &params, &err), ST_INVALID);
	assert_string_equal(err.text,
			    "stage 0: exchange, sync and host I/O are more than the whole");
	ipu_schedule_free(schedule);
}

static void test_no_failed_allocation_leaves_anything(void **state)
{
	struct ipu_schedule *schedule = schedule_of(IPU_GROUPED, 2, 4, true, NULL);
	const struct ipu_timeline_params params = {
		.target = &plain, .schedule = schedule, .stages = by_hand};
	bool failed = true;

	(void)state;
	for (long n = 0; failed; n++) {
		struct ipu_timeline *timeline;
		enum status status;

		support_fail_alloc(n);
		status = ipu_timeline_new(&timeline, &params, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
		assert_true(failed == (!timeline));
		ipu_timeline_free(timeline);
	}
	ipu_schedule_free(schedule);
}

static void test_intervals_are_the_works_of_microbatches_alone(void **state)
{
	/* The last one is behind the timeline's end. */
	struct ipu_event events[] = {
		{0, 0, 0, IPU_FUNCTION_F, 'F', 0, 100, 50},
		{0, 0, -1, IPU_FUNCTION_U, 'U', 1, 150, 5},
		{1, 1, 2, IPU_FUNCTION_R, 'R', 1, 200, 25},
		{1, 1, 3, IPU_FUNCTION_F, 'F', 2, 300, 25},
	};
	const struct ipu_timeline timeline = {.events = events, .count = 3};
	struct ipu_interval out[4];

	(void)state;
	assert_int_equal(ipu_timeline_intervals(&timeline, &plain, out), 2);
	assert_true(out[0].ipu == 0 && out[0].stage == 0 && out[0].microbatch == 0 &&
		    out[0].phase == 'F' && out[0].start_ns == 100 && out[0].dur_ns == 50);
	assert_true(out[1].ipu == 1 && out[1].stage == 1 && out[1].microbatch == 2 &&
		    out[1].phase == 'W' && out[1].start_ns == 200 && out[1].dur_ns == 25);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_run_by_hand_comes_out_number_by_number),
		cmocka_unit_test(test_out_of_lockstep_each_ipu_waits_for_its_input_alone),
		cmocka_unit_test(test_the_ipus_of_a_host_link_share_it_those_of_other_replicas_too),
		cmocka_unit_test(test_one_ipu_waits_for_nobody),
		cmocka_unit_test(test_a_step_has_its_order),
		cmocka_unit_test(test_io_tiles_stream_beside_the_programs),
		cmocka_unit_test(test_a_pipeline_with_io_tiles_streams_one_step_ahead),
		cmocka_unit_test(test_a_host_with_one_batch_ready_is_waited_for),
		cmocka_unit_test(test_links_of_the_ladder),
		cmocka_unit_test(test_lanes_are_full_and_inputs_come_first_whatever_the_costs),
		cmocka_unit_test(test_impossible_costs_are_refused),
		cmocka_unit_test(test_intervals_are_the_works_of_microbatches_alone),
		cmocka_unit_test(test_no_failed_allocation_leaves_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
