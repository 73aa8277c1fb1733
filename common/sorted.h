/*
 * Looking into what is in order. Threading: none. Ownership: none.
 */
#ifndef COMMON_SORTED_H
#define COMMON_SORTED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Set @at to the first number of @low .. @high - 1 that @before, an expression of @at, is false of;
 * @high: there is none. @before is true up to some number and false from there on; it is looked at
 * some log2(@high - @low) times.
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

/* The 64-bit number @offset bytes into @item. */
static inline int64_t sorted_number(const void *item, size_t offset)
{
	int64_t number;

	memcpy(&number, (const char *)item + offset, sizeof(number));
	return number;
}

/* The first of @count items of @size bytes whose number, @offset bytes into it, is not below @key;
 * @count: all are. */
static inline size_t sorted_place(const void *items, size_t count, size_t size, size_t offset,
				  int64_t key)
{
	size_t at;

	SORTED_FIRST(at, 0, count, sorted_number((const char *)items + at * size, offset) < key);
	return at;
}

#endif /* COMMON_SORTED_H */
