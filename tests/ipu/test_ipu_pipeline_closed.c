/*
 * Pipeline schedules: published bubbles, and closed forms against the simulation.
 */
#include "support/pipeline_sample.h"
#include "support/support.h"

#include <math.h>

#include "common/mem.h"
#include "common/rng.h"
#include "ipu/ipu_pipeline.h"

static double rate_of(enum ipu_schedule_kind kind, int stages, int microbatches, int chunks,
		      int64_t f, int64_t b, int64_t w, int64_t c)
{
	struct pipeline_sample sample;
	struct ipu_pipeline *pipeline;
	double rate;

	pipeline_sample_fill(&sample, kind, stages, microbatches, chunks);
	pipeline_sample_times(&sample, f, b, w, c);
	pipeline = pipeline_sample_run(&sample);
	rate = pipeline->bubble.bubble_rate;
	ipu_pipeline_free(pipeline);
	return rate;
}

/* ---- published ------------------------------------------------------------------------------- */

/* arXiv 2401.10241, tables 5 and 9: GPT of 1.5B and 6.2B parameters on 8 GPUs. Times in us. */
static const struct {
	int microbatches, f, b, w, c, chunks;
	double one_f_one_b, interleaved, zb_h1, zb_h2;
} published[] = {
	{24, 18522, 18086, 9337, 601, 3, 0.2431, 0.1055, 0.1585, 0.1083},
	{32, 18513, 18086, 9331, 626, 3, 0.1985, 0.0818, 0.1242, 0.0837},
	{64, 18546, 18097, 9321, 762, 3, 0.1240, 0.0443, 0.0674, 0.0444},
	{24, 29718, 29444, 19927, 527, 4, 0.2347, 0.0808, 0.1323, 0.0698},
	{32, 29802, 29428, 19530, 577, 4, 0.1898, 0.0628, 0.1045, 0.0559},
	{64, 29935, 29621, 19388, 535, 4, 0.1091, 0.0320, 0.0554, 0.0294},
};

static double published_rate(size_t row, enum ipu_schedule_kind kind)
{
	return rate_of(kind, 8, published[row].microbatches, published[row].chunks,
		       published[row].f * 1000, published[row].b * 1000, published[row].w * 1000,
		       published[row].c * 1000);
}

static void assert_digits(double value, double figure, int digits)
{
	double unit = pow(10, -digits);

	if (!(fabs(value - figure) <= unit / 2 * 1.0001))
		fail_msg("%.6f is not %.*f", value, digits, figure);
}

static void test_the_zero_bubble_papers_rates_come_out_to_four_digits(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(published); i++) {
		assert_digits(published_rate(i, IPU_1F1B), published[i].one_f_one_b, 4);
		assert_digits(published_rate(i, IPU_ZB_H1), published[i].zb_h1, 4);
		assert_digits(published_rate(i, IPU_ZB_H2), published[i].zb_h2, 4);
	}
}

static void test_the_papers_interleaved_rates_are_the_closed_forms(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(published); i++) {
		struct ipu_pipeline_closed closed;
		struct pipeline_sample sample;

		pipeline_sample_fill(&sample, IPU_1F1B_INTERLEAVED, 8, published[i].microbatches,
				     published[i].chunks);
		pipeline_sample_times(&sample, published[i].f * 1000, published[i].b * 1000,
				      published[i].w * 1000, published[i].c * 1000);
		ipu_pipeline_closed_get(&sample.params, &closed);
		assert_digits(closed.bubble_rate, published[i].interleaved, 4);
		/* Megatron's order pays more hops, never fewer. */
		assert_true(published_rate(i, IPU_1F1B_INTERLEAVED) > closed.bubble_rate);
	}
}

static void test_unit_times_give_the_known_rates(void **state)
{
	static const struct {
		int stages, microbatches;
		double one_f_one_b, interleaved, zb_h1, zb_h2;
	} rows[] = {
		{2, 4, 0.200000, 0.111111, 0.076923, 0},
		{4, 8, 0.272727, 0.157895, 0.111111, 0},
		{4, 16, 0.157895, 0.085714, 0.058824, 0},
		{8, 8, 0.466667, 0.304348, 0.225806, 0.225806},
		{8, 32, 0.179487, 0.098592, 0.067961, 0},
		{16, 64, 0.189873, 0.104895, 0.072464, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int p = rows[i].stages, m = rows[i].microbatches;

		assert_digits(rate_of(IPU_GPIPE, p, m, 1, 4, 4, 4, 0), rows[i].one_f_one_b, 6);
		assert_digits(rate_of(IPU_1F1B, p, m, 1, 4, 4, 4, 0), rows[i].one_f_one_b, 6);
		assert_digits(rate_of(IPU_1F1B_INTERLEAVED, p, m, 2, 4, 4, 4, 0),
			      rows[i].interleaved, 6);
		assert_digits(rate_of(IPU_ZB_H1, p, m, 1, 4, 4, 4, 0), rows[i].zb_h1, 6);
		assert_digits(rate_of(IPU_ZB_H2, p, m, 1, 4, 4, 4, 0), rows[i].zb_h2, 6);
	}
}

/* ---- closed forms ---------------------------------------------------------------------------- */

static bool agrees(double closed, double simulated, int *claims)
{
	if (isnan(closed))
		return true;
	++*claims;
	return fabs(closed - simulated) <= 1e-12 * fmax(1, fabs(simulated));
}

/* How many figures of @sample's closed form there are; all must be the simulation's. */
static int check_closed(const struct pipeline_sample *sample)
{
	struct ipu_pipeline *pipeline = pipeline_sample_run(sample);
	const struct ipu_pipeline_closed *closed = &pipeline->closed;
	const struct ipu_bubble *bubble = &pipeline->bubble;
	int claims = 0;

	if (!agrees(closed->makespan_ns, (double)bubble->makespan_ns, &claims) ||
	    !agrees(closed->idle_fraction, bubble->idle_fraction, &claims) ||
	    !agrees(closed->bubble_rate, bubble->bubble_rate, &claims) ||
	    !agrees(closed->bubble_over_ideal, bubble->bubble_over_ideal, &claims))
		fail_msg("%s p %d m %d v %d F %lld B %lld W %lld c %lld: closed %.6f %.6f, "
			 "simulated %.6f %.6f",
			 ipu_schedule_name(sample->params.kind), sample->params.stages,
			 sample->params.microbatches, sample->params.chunks,
			 (long long)sample->forward[0], (long long)sample->input[0],
			 (long long)sample->weight[0], (long long)sample->params.communication_ns,
			 closed->makespan_ns, closed->bubble_rate, (double)bubble->makespan_ns,
			 bubble->bubble_rate);
	ipu_pipeline_free(pipeline);
	return claims;
}

/* Times of all proportions: hops longer than works, W's longer than F's, and nothing at all. */
static void random_equal_times(struct pipeline_sample *sample, struct rng *rng)
{
	static const uint32_t most[] = {1, 3, 40, 1000};
	uint32_t range = most[rng_below(rng, ARRAY_LEN(most))];
	/* A time that all chunks divide. */
	int64_t f = 12 * rng_below(rng, range + 1), b = 12 * rng_below(rng, range + 1);
	int64_t w = 12 * rng_below(rng, rng_below(rng, 2) ? range + 1 : range / 4 + 1);
	int64_t c = rng_below(rng, 2) ? 0 : rng_below(rng, 6 * range);

	if (rng_below(rng, 8) == 0)
		w = f;
	if (sample->params.kind == IPU_1F1B_INTERLEAVED)
		c = 0;
	pipeline_sample_times(sample, f, b, w, c);
}

static void test_closed_forms_are_the_simulation_wherever_they_are_claimed(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 4, rng_stream("closed forms"), 0, 0);
	for (int kind = 0; kind < IPU_SCHEDULE_KINDS; kind++) {
		int claims = 0;

		for (int p = 1; p <= 10; p++) {
			for (int m = 1; m <= 4 * p + 2; m++) {
				struct pipeline_sample sample;

				pipeline_sample_fill(&sample, (enum ipu_schedule_kind)kind, p, m,
						     2 + (int)rng_below(&rng, 3));
				random_equal_times(&sample, &rng);
				if (pipeline_sample_holds(&sample))
					claims += check_closed(&sample);
			}
		}
		if (claims < 50)
			fail_msg("%s claims only %d figures",
				 ipu_schedule_name((enum ipu_schedule_kind)kind), claims);
	}
}

/* On the very edge of the conditions of zb-h1 and zb-h2, where they have to hold still. */
static void test_zero_bubble_forms_hold_at_the_edges_of_their_conditions(void **state)
{
	(void)state;
	for (int p = 1; p <= 12; p++) {
		for (int m = 2 * p; m <= 2 * p + 3; m++) {
			struct pipeline_sample sample;

			pipeline_sample_fill(&sample, IPU_ZB_H1, p, m, 1);
			pipeline_sample_times(&sample, 10, 10, 10, 5);
			assert_int_equal(check_closed(&sample), 4);
			pipeline_sample_times(&sample, 10, 0, 10, 5);
			assert_int_equal(check_closed(&sample), p == 1 ? 4 : 1);
			pipeline_sample_fill(&sample, IPU_ZB_H2, p, m, 1);
			pipeline_sample_times(&sample, 10, 10, 10, 10);
			assert_int_equal(check_closed(&sample), p == 1 ? 4 : 1);
			pipeline_sample_times(&sample, 15, 5, 10, 10);
			assert_int_equal(check_closed(&sample), p == 1 ? 4 : 1);
		}
	}
}

static void test_forms_of_gpipe_and_sequential_hold_for_unequal_stages(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 4, rng_stream("unequal stages"), 0, 0);
	for (int round = 0; round < 300; round++) {
		int p = 2 + (int)rng_below(&rng, 8), m = 1 + (int)rng_below(&rng, 20);
		struct pipeline_sample sample;

		pipeline_sample_fill(&sample, IPU_GPIPE, p, m, 1);
		pipeline_sample_random(&sample, &rng);
		assert_int_equal(check_closed(&sample), 4);
		sample.params.kind = IPU_SEQUENTIAL;
		assert_int_equal(check_closed(&sample), 4);
		sample.params.kind = IPU_1F1B;
		assert_int_equal(check_closed(&sample), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_zero_bubble_papers_rates_come_out_to_four_digits),
		cmocka_unit_test(test_the_papers_interleaved_rates_are_the_closed_forms),
		cmocka_unit_test(test_unit_times_give_the_known_rates),
		cmocka_unit_test(test_closed_forms_are_the_simulation_wherever_they_are_claimed),
		cmocka_unit_test(test_zero_bubble_forms_hold_at_the_edges_of_their_conditions),
		cmocka_unit_test(test_forms_of_gpipe_and_sequential_hold_for_unequal_stages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
