/*
 * Sums over replicas against formulas that are written out, for 1 to 9 of them, and in branches.
 */
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "support/support.h"
#include "trainer/train_reduce.h"

#define MOST   33
#define COUNT  1500 /* elements: several blocks, and a part of one */
#define MARGIN 3

/* A pair of parentheses adds what is in it: two digits, replicas, or further pairs. */
static const char *const formulas[] = {
	"0",
	"(01)",
	"((01)2)",
	"((01)(23))",
	"(((01)(23))4)",
	"(((01)(23))(45))",
	"(((01)(23))((45)6))",
	"(((01)(23))((45)(67)))",
	"((((01)(23))((45)(67)))8)",
};

static double value_of(const char **formula, const double *values)
{
	double left, right;

	if (**formula != '(')
		return values[*(*formula)++ - '0'];
	(*formula)++;
	left = value_of(formula, values);
	right = value_of(formula, values);
	(*formula)++;
	return left + right;
}

static float float_of(const char **formula, const struct train_replica *replicas, size_t i)
{
	float left, right;

	if (**formula != '(')
		return replicas[*(*formula)++ - '0'].accumulated[i];
	(*formula)++;
	left = float_of(formula, replicas, i);
	right = float_of(formula, replicas, i);
	(*formula)++;
	return left + right;
}

/* Of all sizes, so that the order of a sum shows. */
static float number(struct rng *rng)
{
	static const float scales[] = {1.0f, 1e-3f, 300.0f, 7e-6f, 9000.0f};
	const float scale = scales[rng_below(rng, 5)];

	return scale * (rng_uniform(rng) - 0.5f);
}

static void test_numbers_are_summed_as_the_formulas_say(void **state)
{
	struct rng rng;
	int apart = 0;

	(void)state;
	rng_init(&rng, 1, 0, 0, 0);
	for (int turn = 0; turn < 200; turn++) {
		double values[ARRAY_LEN(formulas)], in_order = 0.0;

		for (size_t i = 0; i < ARRAY_LEN(values); i++) {
			const char *formula = formulas[i];
			double sum;

			values[i] = (double)number(&rng) / 3.0;
			in_order += values[i];
			sum = train_tree_sum(values, (int)i + 1);
			assert_true(sum == value_of(&formula, values));
			apart += sum != in_order;
		}
	}
	assert_true(apart > 100); /* another order gives other sums: so it can fail */
}

static void test_gradients_are_summed_as_the_formulas_say(void **state)
{
	static float accumulated[ARRAY_LEN(formulas)][COUNT];
	static float mean[COUNT];
	struct train_replica replicas[ARRAY_LEN(formulas)] = {{0}};
	struct train_branch branches[ARRAY_LEN(formulas)];
	struct rng rng;

	(void)state;
	rng_init(&rng, 2, 0, 0, 0);
	for (size_t r = 0; r < ARRAY_LEN(formulas); r++) {
		replicas[r].accumulated = accumulated[r];
		branches[r] = (struct train_branch){(int)r, 1, accumulated[r]};
		for (size_t i = 0; i < COUNT; i++)
			accumulated[r][i] = number(&rng);
	}
	for (size_t n = 1; n <= ARRAY_LEN(formulas); n++) {
		memset(mean, 0, sizeof(mean));
		/* In two pieces, the way replicas share the work. */
		train_tree_sums(mean + MARGIN, branches, MARGIN, 700, (int)n);
		train_tree_sums(mean + MARGIN + 700, branches, MARGIN + 700,
				COUNT - 700 - 2 * MARGIN, (int)n);
		train_tree_divide(mean, COUNT, (int)n);
		for (size_t i = 0; i < COUNT; i++) {
			const bool within = i >= MARGIN && i < COUNT - MARGIN;
			const char *formula = formulas[n - 1];
			float sum = float_of(&formula, replicas, i) / (float)n;

			assert_memory_equal(&mean[i], within ? &sum : &(float){0}, sizeof(float));
		}
	}
}

/* Ranks with any ranges of the replicas sum what they have to branches; the tree over all of theirs
 * is the whole tree. */
static void test_branches_of_ranges_make_the_tree(void **state)
{
	static float values[MOST][COUNT], sums[MOST][COUNT];
	struct train_branch replicas[MOST], branches[MOST];
	float whole[COUNT], joined[COUNT];
	struct rng rng;

	(void)state;
	rng_init(&rng, 4, 0, 0, 0);
	for (int r = 0; r < MOST; r++) {
		replicas[r] = (struct train_branch){r, 1, values[r]};
		for (size_t i = 0; i < COUNT; i++)
			values[r][i] = number(&rng);
	}
	for (int count = 1; count <= MOST; count++) {
		train_tree_sums(whole, replicas, 0, COUNT, count);
		for (int ranks = 1; ranks <= count; ranks++) {
			int found = 0;

			for (int rank = 0; rank < ranks; rank++)
				found += train_tree_branches(branches + found, count,
							     count * rank / ranks,
							     count * (rank + 1) / ranks);
			assert_in_range(found, ranks, count);
			for (int b = 0; b < found; b++) {
				train_tree_sums(sums[b], replicas + branches[b].first, 0, COUNT,
						branches[b].count);
				branches[b].values = sums[b];
			}
			train_tree_sums(joined, branches, 0, COUNT, count);
			assert_memory_equal(joined, whole, sizeof(whole));
		}
	}
}

/* Ranges of 2^k replicas can be summed elsewhere: the tree over their sums is the whole tree. */
static void test_ranges_are_branches(void **state)
{
	double values[MOST], branches[MOST];
	struct rng rng;

	(void)state;
	rng_init(&rng, 3, 0, 0, 0);
	for (int i = 0; i < MOST; i++)
		values[i] = (double)number(&rng) / 3.0;
	for (int count = 1; count <= MOST; count++) {
		for (int size = 1; size <= count; size *= 2) {
			int ranges = 0;

			for (int from = 0; from < count; from += size) {
				const int here = count - from < size ? count - from : size;

				branches[ranges++] = train_tree_sum(values + from, here);
			}
			assert_true(train_tree_sum(branches, ranges) ==
				    train_tree_sum(values, count));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_are_summed_as_the_formulas_say),
		cmocka_unit_test(test_gradients_are_summed_as_the_formulas_say),
		cmocka_unit_test(test_branches_of_ranges_make_the_tree),
		cmocka_unit_test(test_ranges_are_branches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
