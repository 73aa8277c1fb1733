/*
 * Hash tables: beside a plain list that is told the same, with hashes that collide.
 */
#include "common/map.h"

#include <string.h>

#include "common/rng.h"
#include "support/support.h"

#define ITEMS 400

struct model {
	uint64_t hash[ITEMS];
	bool there[ITEMS];
};

static void check(const struct map *map, const struct model *model)
{
	size_t count = 0;

	for (size_t i = 0; i < ITEMS; i++) {
		size_t found;

		MAP_FIND(found, map, model->hash[i], found == i);
		assert_int_equal(found, model->there[i] ? i : MAP_NONE);
		count += model->there[i];
	}
	assert_int_equal(map->count, count);
}

static void test_a_map_holds_what_a_list_holds(void **state)
{
	/* All different; many alike; of the same home; all alike. */
	static const uint64_t steps[] = {UINT64_C(0x9e3779b97f4a7c15), 1, UINT64_C(1) << 62, 0};

	(void)state;
	for (size_t kind = 0; kind < sizeof(steps) / sizeof(steps[0]); kind++) {
		struct model model = {{0}, {0}};
		struct map map = {0};
		struct rng rng;

		rng_init(&rng, 7, (uint32_t)kind, 0, 0);
		for (size_t i = 0; i < ITEMS; i++)
			model.hash[i] = i % 97 * steps[kind];
		check(&map, &model);
		for (int turn = 0; turn < 6 * ITEMS; turn++) {
			const size_t i = rng_below(&rng, ITEMS);

			if (!model.there[i])
				assert_int_equal(map_add(&map, model.hash[i], i), 0);
			else
				map_remove(&map, model.hash[i], i);
			model.there[i] = !model.there[i];
			if (turn % 64 == 0)
				check(&map, &model);
		}
		map_remove(&map, 12345, 6);
		check(&map, &model);
		map_clear(&map);
		memset(model.there, 0, sizeof(model.there));
		check(&map, &model);
		assert_int_equal(map_add(&map, model.hash[0], 0), 0);
		model.there[0] = true;
		check(&map, &model); /* nothing of before is there again */
		map_fini(&map);
	}
}

static void test_without_memory_the_map_is_as_it_was(void **state)
{
	struct model model = {{0}, {0}};
	struct map map = {0};
	bool failed = false;

	(void)state;
	for (size_t i = 0; i < ITEMS; i++) {
		model.hash[i] = i;
		support_fail_alloc(0);
		if (map_add(&map, i, i) != 0) {
			assert_true(support_alloc_failed());
			failed = true;
			support_fail_alloc(-1);
			check(&map, &model);
			assert_int_equal(map_add(&map, i, i), 0);
		}
		support_fail_alloc(-1);
		model.there[i] = true;
	}
	assert_true(failed);
	check(&map, &model);
	map_fini(&map);
}

static void test_hashes_tell_apart_what_differs(void **state)
{
	(void)state;
	assert_true(map_text(MAP_SEED, NULL) != map_text(MAP_SEED, ""));
	assert_true(map_text(MAP_SEED, "a") != map_text(MAP_SEED, "b"));
	assert_true(map_text(MAP_SEED, "12345678") != map_text(MAP_SEED, "123456789"));
	assert_true(map_bytes(MAP_SEED, "a\0", 2) != map_bytes(MAP_SEED, "a", 1));
	assert_true(map_text(map_text(MAP_SEED, "ab"), "c") !=
		    map_text(map_text(MAP_SEED, "a"), "bc"));
	assert_true(map_text(MAP_SEED, "loss") == map_bytes(MAP_SEED, "loss", 4));
}

/* Of each of its bytes and of nothing around them. */
static void test_a_hash_is_of_its_bytes_alone(void **state)
{
	unsigned char one[64], other[64];

	(void)state;
	for (size_t size = 0; size < 40; size++)
		for (size_t at = 0; at < 16; at++) {
			memset(one, 1, sizeof(one));
			memset(other, 2, sizeof(other));
			for (size_t i = 0; i < size; i++)
				one[i] = other[at + i] = (unsigned char)(i * 37 + 5);
			assert_true(map_bytes(3, one, size) == map_bytes(3, other + at, size));
			assert_true(map_bytes(3, one, size) != map_bytes(4, one, size));
			assert_true(map_bytes(3, one, size) != map_bytes(3, one, size + 1));
			for (size_t i = 0; i < size; i++) {
				one[i] ^= 1;
				assert_true(map_bytes(3, one, size) !=
					    map_bytes(3, other + at, size));
				one[i] ^= 1;
			}
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_map_holds_what_a_list_holds),
		cmocka_unit_test(test_without_memory_the_map_is_as_it_was),
		cmocka_unit_test(test_hashes_tell_apart_what_differs),
		cmocka_unit_test(test_a_hash_is_of_its_bytes_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
