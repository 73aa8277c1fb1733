/*
 * Dropout's decisions: the numbers of common/rng.h in the stated order, from any border, of any
 * count.
 */
#include "trainer/kernels/kernel_activation.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "support/math.h"

#define GROUPS 5

/* The numbers of some groups, dealt out as the header says. */
static void deal(struct rng rng, uint32_t numbers[GROUPS * KERNEL_DROPOUT_GROUP])
{
	for (size_t block = 0; block < GROUPS * 32; block++)
		for (size_t word = 0; word < 4; word++)
			numbers[block / 32 * KERNEL_DROPOUT_GROUP + word * 32 + block % 32] =
				rng_u32(&rng);
}

static void test_decisions_are_those_of_the_scalar_stream(void **state)
{
	static const uint32_t thresholds[] = {0, 1, 0x20000000u, 0x80000000u, UINT32_MAX};
	uint32_t numbers[GROUPS * KERNEL_DROPOUT_GROUP];
	uint8_t mask[GROUPS * KERNEL_DROPOUT_GROUP + 1];
	struct rng stream;

	(void)state;
	rng_init(&stream, 12, rng_stream("dropout"), UINT64_C(7) << 33 | 5, 3);
	deal(stream, numbers);
	for (size_t t = 0; t < ARRAY_LEN(thresholds); t++) {
		for (size_t first = 0; first < ARRAY_LEN(numbers); first += KERNEL_DROPOUT_GROUP) {
			for (size_t n = 0; n <= ARRAY_LEN(numbers) - first; n += 37) {
				memset(mask, 77, sizeof(mask));
				kernel_dropout_mask(&stream, thresholds[t], first, n, mask);
				for (size_t i = 0; i < n; i++)
					assert_int_equal(mask[i],
							 numbers[first + i] >= thresholds[t]);
				assert_int_equal(mask[n], 77);
			}
		}
	}
}

static void test_every_body_gives_the_same_decisions(void **state)
{
	uint8_t plain[GROUPS * KERNEL_DROPOUT_GROUP], chosen[GROUPS * KERNEL_DROPOUT_GROUP];
	struct rng stream;

	(void)state;
	for (uint32_t seed = 0; seed < 50; seed++) {
		rng_init(&stream, seed, seed * 77, UINT64_MAX - seed, UINT32_MAX - seed);
		kernel__dropout_mask_plain(&stream, seed << 26, GROUPS, plain);
		kernel_dropout_mask(&stream, seed << 26, 0, sizeof(chosen), chosen);
		assert_memory_equal(plain, chosen, sizeof(chosen));
	}
}

static void test_applying_a_mask_by_hand(void **state)
{
	const float x[] = {1.0f, 2.0f, NAN, NAN, INFINITY, INFINITY};
	const uint8_t mask[] = {1, 0, 1, 0, 1, 0};
	float y[6];

	(void)state;
	kernel_dropout_apply(x, mask, 2.0f, y, 6);
	assert_true(y[0] == 2.0f && y[1] == 0.0f && isnan(y[2]) && isnan(y[3]));
	assert_true(y[4] == INFINITY && isnan(y[5])); /* infinity times 0, as in TensorFlow 2.6 */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decisions_are_those_of_the_scalar_stream),
		cmocka_unit_test(test_every_body_gives_the_same_decisions),
		cmocka_unit_test(test_applying_a_mask_by_hand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
