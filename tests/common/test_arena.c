/*
 * Arena: alignment, clearing, chaining, joining at reset, peak, and allocations that fail.
 */
#include "common/arena.h"

#include <string.h>

#include "common/mem.h"
#include "support/support.h"

static void test_memory_is_cleared_and_aligned(void **state)
{
	struct arena arena;

	(void)state;
	assert_int_equal(arena_init(&arena, 256), 0);
	for (int round = 0; round < 3; round++) {
		for (size_t size = 0; size < 300; size += 7) {
			unsigned char *p = arena_alloc(&arena, 1, size);

			assert_non_null(p);
			assert_int_equal((uintptr_t)p % (size < 64 ? 16 : 64), 0);
			for (size_t i = 0; i < size; i++)
				assert_int_equal(p[i], 0);
			memset(p, 0xff, size);
		}
		arena_reset(&arena);
	}
	arena_fini(&arena);
}

static void test_pieces_do_not_overlap(void **state)
{
	enum {
		PIECES = 200
	};
	unsigned char *pieces[PIECES];
	struct arena arena;

	(void)state;
	arena_init(&arena, 0);
	for (int i = 0; i < PIECES; i++) {
		pieces[i] = arena_alloc(&arena, (size_t)i + 1, 3);
		memset(pieces[i], i, ((size_t)i + 1) * 3);
	}
	for (int i = 0; i < PIECES; i++)
		for (int k = 0; k < (i + 1) * 3; k++)
			assert_int_equal(pieces[i][k], i);
	arena_fini(&arena);
}

static void test_texts_are_copied_and_printed(void **state)
{
	struct arena arena;
	char *copy, *text;

	(void)state;
	arena_init(&arena, 16);
	copy = arena_strdup(&arena, "a text longer than the first block");
	text = arena_printf(&arena, "%s/%05d", "x", 42);
	assert_string_equal(copy, "a text longer than the first block");
	assert_string_equal(text, "x/00042");
	arena_fini(&arena);
}

static void test_steady_state_allocates_nothing(void **state)
{
	struct arena arena;
	void *first;

	(void)state;
	arena_init(&arena, 128);
	for (int i = 0; i < 100; i++)
		assert_non_null(arena_alloc(&arena, 1, 100));
	arena_reset(&arena);
	first = arena_alloc(&arena, 1, 100);
	arena_reset(&arena);

	/* The blocks are one now: from here on every allocation would fail. */
	support_fail_alloc(0);
	for (int round = 0; round < 3; round++) {
		assert_ptr_equal(arena_alloc(&arena, 1, 100), first);
		for (int i = 1; i < 100; i++)
			assert_non_null(arena_alloc(&arena, 1, 100));
		arena_reset(&arena);
	}
	assert_false(support_alloc_failed());
	support_fail_alloc(-1);
	arena_fini(&arena);
}

static void test_peak_is_the_greatest_total(void **state)
{
	struct arena arena;

	(void)state;
	arena_init(&arena, 1024);
	assert_int_equal(arena.peak, 0);
	arena_alloc(&arena, 1, 640);
	arena_alloc(&arena, 1, 640); /* a second block */
	assert_int_equal(arena.total, 1280);
	arena_reset(&arena);
	assert_int_equal(arena.total, 0);
	arena_alloc(&arena, 1, 64);
	assert_int_equal(arena.total, 64);
	assert_int_equal(arena.peak, 1280);
	arena_fini(&arena);
}

static void test_impossible_sizes_give_null(void **state)
{
	struct arena arena;

	(void)state;
	arena_init(&arena, 64);
	assert_null(arena_alloc(&arena, SIZE_MAX, 2));
	assert_null(arena_alloc(&arena, SIZE_MAX, 1));
	assert_null(arena_alloc(&arena, (size_t)PTRDIFF_MAX / 2 + 1, 1));
	assert_non_null(arena_alloc(&arena, 1, 8));
	arena_fini(&arena);
	assert_int_equal(arena_init(&arena, SIZE_MAX), -1);
	arena_fini(&arena);
}

static void test_a_block_is_used_to_its_last_byte(void **state)
{
	struct arena arena;

	(void)state;
	assert_int_equal(arena_init(&arena, 256), 0);
	support_fail_alloc(0);
	assert_non_null(arena_alloc(&arena, 1, 192));
	assert_non_null(arena_alloc(&arena, 1, 64));
	assert_int_equal(arena.total, 256);
	assert_false(support_alloc_failed());
	support_fail_alloc(-1);
	arena_fini(&arena);
}

/* True where all of the n-th failing run's calls went well. */
static bool use_arena(struct arena *arena)
{
	bool good = true;

	for (int i = 0; i < 50 && good; i++)
		good = arena_alloc(arena, 5, 100) && arena_strdup(arena, "text") &&
		       arena_printf(arena, "%d", i);
	return good;
}

static void test_every_failing_allocation_leaves_a_usable_arena(void **state)
{
	bool failed = true;

	(void)state;
	for (long n = 0; failed; n++) {
		struct arena arena;
		bool good;

		support_fail_alloc(n);
		good = arena_init(&arena, 100) == 0;
		if (good) {
			good = use_arena(&arena);
			arena_reset(&arena);
			failed = support_alloc_failed();
			/* A second try is never failed again, whatever happened before. */
			assert_true(use_arena(&arena));
		} else {
			failed = support_alloc_failed();
			assert_true(use_arena(&arena));
		}
		support_fail_alloc(-1);
		assert_true(good || failed);
		arena_fini(&arena);
		assert_true(n < 1000);
	}
}

/* The same in numbers: each piece stands where its alignment allows behind the one before, in a
 * block of twice the last one's bytes where it does not fit. */
struct counted {
	size_t capacity, used, total, peak, blocks, all;
};

static void count_piece(struct counted *c, size_t size, size_t alignment)
{
	size_t start = (c->used + alignment - 1) / alignment * alignment;

	if (c->capacity == 0 || start + size > c->capacity) {
		c->capacity = c->capacity ? 2 * c->capacity : 4096;
		if (c->capacity < size)
			c->capacity = size;
		c->all += c->capacity;
		c->blocks++;
		start = c->used = 0;
	}
	c->total += start + size - c->used;
	c->used = start + size;
	if (c->peak < c->total)
		c->peak = c->total;
}

static void assert_counted(const struct arena *arena, const struct counted *c)
{
	assert_int_equal(arena->used, c->used);
	assert_int_equal(arena->total, c->total);
	assert_int_equal(arena->peak, c->peak);
}

static void test_pieces_take_what_they_need_and_no_more(void **state)
{
	static const size_t first[] = {0, 1, 64, 100, 5000};
	uint32_t random = 1;

	(void)state;
	for (size_t f = 0; f < sizeof(first) / sizeof(*first); f++) {
		struct counted c = {.capacity = first[f], .blocks = first[f] > 0, .all = first[f]};
		struct arena arena;

		assert_int_equal(arena_init(&arena, first[f]), 0);
		arena_reset(&arena);
		for (int i = 0; i < 600; i++) {
			size_t size;

			random = random * 1664525 + 1013904223;
			size = (random >> 16) % (i % 50 == 0 ? 20000 : 130);
			if (random >> 28 == 0) {
				char text[130];

				memset(text, 'x', sizeof(text));
				text[size % sizeof(text)] = '\0';
				assert_string_equal(i % 2 ? arena_strdup(&arena, text)
							  : arena_printf(&arena, "%s", text),
						    text);
				count_piece(&c, size % sizeof(text) + 1, 1);
			} else {
				assert_non_null(arena_alloc(&arena, 1, size));
				size = size ? size : 1;
				count_piece(&c, size, size < 64 ? 16 : 64);
			}
			assert_counted(&arena, &c);
			if (i % 200 != 199)
				continue;
			/* All blocks become one of all their bytes. */
			arena_reset(&arena);
			c.capacity = c.blocks > 1 ? c.all : c.capacity;
			c.all = c.capacity;
			c.blocks = 1;
			c.used = c.total = 0;
			assert_counted(&arena, &c);
		}
		arena_fini(&arena);
		assert_counted(&arena, &(struct counted){0});
	}
}

/* What is too large for a block of twice the size may still fit into one of its own. */
static void test_a_piece_may_have_a_block_of_its_own(void **state)
{
	struct arena arena;

	(void)state;
	for (int twice = 0; twice < 2; twice++) {
		assert_int_equal(arena_init(&arena, 256), 0);
		assert_non_null(arena_alloc(&arena, 1, 256));
		support_fail_alloc(0);
		/* A block of 512 bytes fails; one of as many bytes as the piece has is not asked for
		 * twice. */
		assert_true(!arena_alloc(&arena, 1, twice ? 512 : 300) == (twice == 1));
		assert_true(support_alloc_failed());
		support_fail_alloc(-1);
		assert_int_equal(arena.total, twice ? 256 : 556);
		arena_fini(&arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_is_cleared_and_aligned),
		cmocka_unit_test(test_pieces_do_not_overlap),
		cmocka_unit_test(test_texts_are_copied_and_printed),
		cmocka_unit_test(test_steady_state_allocates_nothing),
		cmocka_unit_test(test_peak_is_the_greatest_total),
		cmocka_unit_test(test_impossible_sizes_give_null),
		cmocka_unit_test(test_a_block_is_used_to_its_last_byte),
		cmocka_unit_test(test_every_failing_allocation_leaves_a_usable_arena),
		cmocka_unit_test(test_pieces_take_what_they_need_and_no_more),
		cmocka_unit_test(test_a_piece_may_have_a_block_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
