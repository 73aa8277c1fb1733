/*
 * Byte strings as numbers. See report_import_intern.h.
 */
#include "reports/import/report_import_intern.h"

#include <string.h>

#include "common/mem.h"

void report__import_intern_fini(struct import_intern *table)
{
	arena_fini(&table->arena);
	mem_free(table->strings);
	map_fini(&table->map);
	memset(table, 0, sizeof(*table));
}

static bool add_string(struct import_intern *table, const char *text, size_t length, uint64_t hash)
{
	char *copy;

	if (table->count >= IMPORT_NO_ID - 1 ||
	    mem_grow(&table->strings, &table->capacity, table->count + 1,
		     sizeof(*table->strings)) != 0)
		return false;
	copy = arena_alloc(&table->arena, length + 1, 1);
	if (!copy)
		return false;
	memcpy(copy, text, length);
	copy[length] = 0;
	if (map_add(&table->map, hash, table->count) != 0)
		return false;
	table->strings[table->count++] = (struct import_string){copy, length};
	return true;
}

uint32_t report__import_intern(struct import_intern *table, const char *text, size_t length,
			       size_t most, bool *fresh)
{
	const uint64_t hash = import_hash(0, text, length);
	const struct import_string *strings = table->strings;
	size_t at;

	MAP_FIND(at, &table->map, hash,
		 strings[at].length == length && memcmp(strings[at].text, text, length) == 0);
	*fresh = at == MAP_NONE;
	if (!*fresh)
		return (uint32_t)at;
	*fresh = table->count < most;
	if (!*fresh || !add_string(table, text, length, hash))
		return IMPORT_NO_ID;
	return (uint32_t)table->count - 1;
}
