/*
 * Memory: overflow, alignment, growth, replaceable functions.
 */
#include "common/mem.h"

#include <stdlib.h>
#include <string.h>

#include "support/support.h"

static void test_sizes_that_overflow_give_null(void **state)
{

	(void)state;
	assert_null(mem_calloc(SIZE_MAX / 2, 3));
	assert_null(mem_calloc(SIZE_MAX, 1));
	assert_null(mem_resize(NULL, SIZE_MAX / 4, 8));
	assert_null(mem_aligned(SIZE_MAX / 4, 8));
	assert_null(mem_aligned(PTRDIFF_MAX - 3, 1));
	assert_null(mem_alloc(SIZE_MAX));
}

static void test_empty_requests_give_memory(void **state)
{
	void *rows[] = {mem_alloc(0), mem_calloc(0, 8), mem_aligned(0, 8), mem_resize(NULL, 0, 0)};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_non_null(rows[i]);
		mem_free(rows[i]);
	}
	mem_free(NULL);
}

static void test_aligned_is_64_byte_aligned_and_cleared(void **state)
{
	static const size_t sizes[] = {1, 38, 64, 149, 260, 5000, (4 << 20) - 1, (9 << 20) + 77};

	(void)state;
	for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
		size_t size = sizes[s];
		unsigned char *p = mem_aligned(size, 1);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % 64, 0);
		for (size_t i = 0; i < size; i++)
			if (p[i])
				fail_msg("byte %zu of %zu is %d", i, size, p[i]);
		mem_free(p);
	}
}

static void test_calloc_is_cleared(void **state)
{
	unsigned char *p = mem_calloc(10, 10);

	(void)state;
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(p[i], 0);
	mem_free(p);
}

static void test_texts_are_copied_and_printed(void **state)
{
	char *copy = mem_strdup("abc");
	char *text = mem_printf("%s-%d", "x", 12);

	(void)state;
	assert_string_equal(copy, "abc");
	assert_string_equal(text, "x-12");
	mem_free(copy);
	mem_free(text);
}

static void test_grow_keeps_the_items(void **state)
{
	size_t capacity = 0;
	int *items = NULL;

	(void)state;
	for (size_t n = 0; n < 1000; n++) {
		assert_int_equal(mem_grow(&items, &capacity, n + 1, sizeof(*items)), 0);
		assert_true(capacity >= n + 1);
		items[n] = (int)n;
	}
	for (size_t n = 0; n < 1000; n++)
		assert_int_equal(items[n], n);
	mem_free(items);
}

static void test_failed_grow_changes_nothing(void **state)
{
	size_t capacity = 0;
	int *items = NULL, *before;

	(void)state;
	assert_int_equal(mem_grow(&items, &capacity, 4, sizeof(*items)), 0);
	before = items;
	items[0] = 7;
	support_fail_alloc(0);
	assert_int_equal(mem_grow(&items, &capacity, 100, sizeof(*items)), -1);
	support_fail_alloc(-1);
	assert_ptr_equal(items, before);
	assert_int_equal(items[0], 7);
	assert_int_equal(capacity, 8);

	assert_int_equal(mem_grow(&items, &capacity, SIZE_MAX, sizeof(*items)), -1);
	assert_int_equal(mem_grow(&items, &capacity, SIZE_MAX / 4, 64), -1);
	assert_ptr_equal(items, before);
	mem_free(items);
}

/* The kernel tells the machine's memory in KiB. No more than that can be available. */
static void test_no_more_memory_is_available_than_there_is(void **state)
{
	char *text = support_read_file("/proc/meminfo", NULL), *total;

	(void)state;
	total = text ? strstr(text, "MemTotal:") : NULL;
	if (total && strstr(text, "MemAvailable:"))
		assert_in_range(mem_available(), 1, 1024 * strtoll(total + 9, NULL, 10));
	free(text);
}

static unsigned released;

static void count_release(void *p)
{
	released++;
	free(p);
}

static void test_functions_can_be_replaced_and_brought_back(void **state)
{
	const struct mem_functions mine = {realloc, aligned_alloc, count_release};

	(void)state;
	released = 0;
	mem_set_functions(&mine);
	mem_free(mem_alloc(4));
	assert_int_equal(released, 1);
	mem_set_functions(NULL);
	mem_free(mem_alloc(4));
	assert_int_equal(released, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes_that_overflow_give_null),
		cmocka_unit_test(test_empty_requests_give_memory),
		cmocka_unit_test(test_aligned_is_64_byte_aligned_and_cleared),
		cmocka_unit_test(test_calloc_is_cleared),
		cmocka_unit_test(test_texts_are_copied_and_printed),
		cmocka_unit_test(test_grow_keeps_the_items),
		cmocka_unit_test(test_failed_grow_changes_nothing),
		cmocka_unit_test(test_no_more_memory_is_available_than_there_is),
		cmocka_unit_test(test_functions_can_be_replaced_and_brought_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
