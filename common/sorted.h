/*
 * Comparators, binary search and a heap. Threading: none. Ownership: none.
 */
#ifndef COMMON_SORTED_H
#define COMMON_SORTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- comparators ----------------------------------------------------------------------------- */

#define SORTED_FUNCTION(type, name)                                                                \
	static inline int sorted_order_##name(type a, type b)                                      \
	{                                                                                          \
		return (a > b) - (a < b);                                                          \
	}

SORTED_FUNCTION(int, int)
SORTED_FUNCTION(unsigned, unsigned)
SORTED_FUNCTION(long, long)
SORTED_FUNCTION(unsigned long, ulong)
SORTED_FUNCTION(long long, llong)
SORTED_FUNCTION(unsigned long long, ullong)
SORTED_FUNCTION(float, float)
SORTED_FUNCTION(double, double)
#undef SORTED_FUNCTION

/* Compare numbers: -1 if @a < @b, 1 if @a > @b, 0 if they are equal or one is NaN. Arguments are
 * evaluated once and compared in their common type. */
/* clang-format off */
#define SORTED_ORDER(a, b) _Generic((a) + (b),                                                     \
	int: sorted_order_int, unsigned: sorted_order_unsigned, long: sorted_order_long,           \
	unsigned long: sorted_order_ulong, long long: sorted_order_llong,                          \
	unsigned long long: sorted_order_ullong, float: sorted_order_float,                        \
	double: sorted_order_double)(a, b)
/* clang-format on */

/*
 * Compare the structs that @a and @b point to by one to six numeric members: the first member that
 * differs decides. Returns -1, 0 or 1 as SORTED_ORDER does. Only the last may be NaN.
 *
 *	static int by_place(const void *left, const void *right)
 *	{
 *		const struct row *a = left, *b = right;
 *
 *		return SORTED_BY(a, b, lane, start_ns);
 *	}
 */
#define SORTED_BY(a, b, ...)                                                                       \
	SORTED_PICK(__VA_ARGS__, SORTED_BY6, SORTED_BY5, SORTED_BY4, SORTED_BY3, SORTED_BY2,       \
		    SORTED_BY1, none)                                                              \
	(a, b, __VA_ARGS__)
#define SORTED_PICK(m1, m2, m3, m4, m5, m6, name, ...) name

#define SORTED_BY1(a, b, m)        SORTED_ORDER((a)->m, (b)->m)
#define SORTED_THEN(a, b, m, next) ((a)->m != (b)->m ? SORTED_BY1(a, b, m) : next)
#define SORTED_BY2(a, b, m, ...)   SORTED_THEN(a, b, m, SORTED_BY1(a, b, __VA_ARGS__))
#define SORTED_BY3(a, b, m, ...)   SORTED_THEN(a, b, m, SORTED_BY2(a, b, __VA_ARGS__))
#define SORTED_BY4(a, b, m, ...)   SORTED_THEN(a, b, m, SORTED_BY3(a, b, __VA_ARGS__))
#define SORTED_BY5(a, b, m, ...)   SORTED_THEN(a, b, m, SORTED_BY4(a, b, __VA_ARGS__))
#define SORTED_BY6(a, b, m, ...)   SORTED_THEN(a, b, m, SORTED_BY5(a, b, __VA_ARGS__))

/* ---- search ---------------------------------------------------------------------------------- */

/*
 * Set @at to the first number of @low .. @high - 1 for which @before, an expression of @at, is
 * false, or to @high if it is true for all. @before must be true up to some number and false from
 * there on; it is evaluated about log2(@high - @low) times.
 *
 *	SORTED_FIRST(i, 0, count, rows[i].time_ns < time_ns);
 */
#define SORTED_FIRST(at, low, high, before)                                                        \
	do {                                                                                       \
		__typeof__(at) sorted_low = (low), sorted_high = (high);                           \
                                                                                                   \
		while (sorted_low < sorted_high) {                                                 \
			(at) = sorted_low + (sorted_high - sorted_low) / 2;                        \
			if (before)                                                                \
				sorted_low = (at) + 1;                                             \
			else                                                                       \
				sorted_high = (at);                                                \
		}                                                                                  \
		(at) = sorted_low;                                                                 \
	} while (0)

/* The 64-bit number at offset @offset in @item. */
static inline int64_t sorted_number(const void *item, size_t offset)
{
	int64_t number;

	memcpy(&number, (const char *)item + offset, sizeof(number));
	return number;
}

/* Index of the first of @count items of @size bytes whose number at @offset is not below @key;
 * @count if all are below. */
static inline size_t sorted_place(const void *items, size_t count, size_t size, size_t offset,
				  int64_t key)
{
	size_t at;

	SORTED_FIRST(at, 0, count, sorted_number((const char *)items + at * size, offset) < key);
	return at;
}

/* ---- heap ------------------------------------------------------------------------------------ */

/*
 * Restore the order of @heap, the numbers of @count items, after the item at @at moved back in it:
 * heap[0] is the first item. @before says whether item @a goes before item @b. From the last half
 * to 0, this makes a heap of any numbers.
 */
static inline void sorted_sift(size_t *heap, size_t count, size_t at,
			       bool (*before)(const void *items, size_t a, size_t b),
			       const void *items)
{
	for (;;) {
		size_t child = 2 * at + 1, item = heap[at];

		if (child >= count)
			return;
		if (child + 1 < count && before(items, heap[child + 1], heap[child]))
			child++;
		if (!before(items, heap[child], item))
			return;
		heap[at] = heap[child];
		heap[child] = item;
		at = child;
	}
}

#endif /* COMMON_SORTED_H */
