/*
 * Orders: the same as a walk through the members, in each type that members have. Looking into
 * sorted arrays: the same place as a walk through all items finds.
 */
#include "common/sorted.h"

#include <math.h>
#include <stdbool.h>

#include "common/mem.h"
#include "support/support.h"

struct item {
	char other;
	int64_t number;
};

static void test_numbers_are_compared_in_their_own_type(void **state)
{
	static const int64_t numbers[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX};
	int calls = 0;

	(void)state;
	for (int i = 0; i < (int)ARRAY_LEN(numbers); i++) {
		for (int j = 0; j < (int)ARRAY_LEN(numbers); j++) {
			const int expected = i < j ? -1 : i > j ? 1 : 0;

			assert_int_equal(SORTED_ORDER(numbers[i], numbers[j]), expected);
			assert_int_equal(SORTED_ORDER((double)i / 8, (double)j / 8), expected);
			assert_int_equal(SORTED_ORDER((float)i / 8, (float)j / 8), expected);
			assert_int_equal(SORTED_ORDER((char)i, (char)j), expected);
		}
	}
	assert_int_equal(SORTED_ORDER(UINT64_MAX, (uint64_t)1), 1);
	assert_int_equal(SORTED_ORDER((uint64_t)1, UINT64_MAX), -1);
	assert_int_equal(SORTED_ORDER(UINT32_MAX, 1u), 1);
	assert_int_equal(SORTED_ORDER((int64_t)1 << 32, 1), 1);
	assert_int_equal(SORTED_ORDER(0.0, -0.0), 0);
	assert_int_equal(SORTED_ORDER((double)NAN, 1.0), 0);
	assert_int_equal(SORTED_ORDER(1.0, (double)NAN), 0);
	assert_int_equal(SORTED_ORDER(calls++, 1), -1);
	assert_int_equal(SORTED_ORDER(1, calls++), 0);
	assert_int_equal(calls, 2);
}

struct row {
	bool flag;
	char letter;
	int number;
	int64_t start;
	uint64_t hash;
	struct {
		double value;
	} in;
};

static void row_fill(struct row *row, int keys[6], uint64_t random)
{
	for (int k = 0; k < 6; k++)
		keys[k] = (int)(random >> k & 1);
	*row = (struct row){
		.flag = keys[0],
		.letter = keys[1] ? 'F' : 'B',
		.number = keys[2] ? 7 : -7,
		.start = keys[3] ? INT64_MAX : INT64_MIN,
		.hash = keys[4] ? UINT64_MAX : 1,
		.in.value = keys[5] ? 0.5 : 0.25,
	};
}

/* All pairs of rows whose six members have two values each. */
static void test_the_first_member_that_differs_decides(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 64; i++) {
		for (uint64_t j = 0; j < 64; j++) {
			struct row rows[2], *a = &rows[0], *b = &rows[1];
			int keys[2][6], expected[6], order = 0;

			row_fill(a, keys[0], i);
			row_fill(b, keys[1], j);
			for (int k = 0; k < 6; k++) {
				if (order == 0)
					order = keys[0][k] - keys[1][k];
				expected[k] = order;
			}
			assert_int_equal(SORTED_BY(a, b, flag), expected[0]);
			assert_int_equal(SORTED_BY(a, b, flag, letter), expected[1]);
			assert_int_equal(SORTED_BY(a, b, flag, letter, number), expected[2]);
			assert_int_equal(SORTED_BY(a, b, flag, letter, number, start), expected[3]);
			assert_int_equal(SORTED_BY(a, b, flag, letter, number, start, hash),
					 expected[4]);
			assert_int_equal(
				SORTED_BY(a, b, flag, letter, number, start, hash, in.value),
				expected[5]);
			assert_int_equal(SORTED_BY(b, a, flag, letter, number), -expected[2]);
		}
	}
}

static void test_the_place_is_the_first_that_is_not_below(void **state)
{
	static const int64_t numbers[] = {INT64_MIN, -3, 0, 0, 0, 7, 9, INT64_MAX};
	static const int64_t keys[] = {INT64_MIN, -4, -3, -1, 0, 1, 7, 8, 10, INT64_MAX};
	struct item items[sizeof(numbers) / sizeof(numbers[0])] = {{0}};

	(void)state;
	for (size_t count = 0; count <= sizeof(numbers) / sizeof(numbers[0]); count++) {
		if (count > 0)
			items[count - 1].number = numbers[count - 1];
		for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
			size_t place = 0;

			while (place < count && numbers[place] < keys[k])
				place++;
			assert_int_equal(sorted_place(items, count, sizeof(items[0]),
						      offsetof(struct item, number), keys[k]),
					 place);
		}
	}
}

static bool below(const void *items, size_t a, size_t b)
{
	const unsigned *numbers = items;

	return numbers[a] != numbers[b] ? numbers[a] < numbers[b] : a < b;
}

static void test_a_heap_gives_its_items_in_order(void **state)
{
	unsigned numbers[40], seed = 1;
	size_t heap[40];

	(void)state;
	for (size_t count = 0; count <= 40; count++) {
		size_t left = count, last = 0;

		for (size_t i = 0; i < count; i++) {
			seed = seed * 1664525u + 1013904223u;
			numbers[i] = seed >> 28; /* many are equal */
			heap[i] = i;
		}
		for (size_t i = count / 2; i-- > 0;)
			sorted_sift(heap, count, i, below, numbers);
		for (; left > 0; left--) {
			if (left < count)
				assert_true(below(numbers, last, heap[0]));
			last = heap[0];
			heap[0] = heap[left - 1];
			sorted_sift(heap, left - 1, 0, below, numbers);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_are_compared_in_their_own_type),
		cmocka_unit_test(test_the_first_member_that_differs_decides),
		cmocka_unit_test(test_the_place_is_the_first_that_is_not_below),
		cmocka_unit_test(test_a_heap_gives_its_items_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
