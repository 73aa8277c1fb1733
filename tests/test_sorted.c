/*
 * Looking into sorted arrays: the same place as a walk through all items finds.
 */
#include "common/sorted.h"

#include "support/support.h"

struct item {
	char other;
	int64_t number;
};

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_place_is_the_first_that_is_not_below),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
