/*
 * Looking into arrays whose items are in the order of a 64-bit number that each has.
 * Threading: none. Ownership: none.
 */
#ifndef COMMON_SORTED_H
#define COMMON_SORTED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The first of @count items of @size bytes whose number, @offset bytes into it, is not below @key;
 * @count: all are. */
static inline size_t sorted_place(const void *items, size_t count, size_t size, size_t offset,
				  int64_t key)
{
	size_t low = 0, high = count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		int64_t number;

		memcpy(&number, (const char *)items + middle * size + offset, sizeof(number));
		if (number < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

#endif /* COMMON_SORTED_H */
