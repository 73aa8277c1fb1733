/*
 * Interned strings, and lists that a map finds the items of. See report_import_intern.h.
 */
#include "reports/import/report_import_intern.h"

#include <inttypes.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"

void report__import_intern_fini(struct import_intern *table)
{
	arena_fini(&table->arena);
	mem_free(table->strings);
	map_fini(&table->map);
	memset(table, 0, sizeof(*table));
}

uint32_t report__import_intern_find(const struct import_intern *table, const char *text,
				    size_t length)
{
	const struct import_string *strings = table->strings;
	size_t at;

	MAP_FIND(at, &table->map, import_hash(0, text, length),
		 strings[at].length == length && memcmp(strings[at].text, text, length) == 0);
	return at == MAP_NONE ? IMPORT_NO_ID : (uint32_t)at;
}

uint32_t report__import_intern(struct import_intern *table, const char *text, size_t length,
			       size_t most, bool *fresh)
{
	const uint32_t at = report__import_intern_find(table, text, length);
	char *copy;

	*fresh = at == IMPORT_NO_ID;
	if (!*fresh)
		return at;
	*fresh = table->count < most;
	if (!*fresh || table->count >= IMPORT_NO_ID - 1 ||
	    mem_grow(&table->strings, &table->capacity, table->count + 1,
		     sizeof(*table->strings)) != 0)
		return IMPORT_NO_ID;
	copy = arena_alloc(&table->arena, length + 1, 1);
	if (!copy)
		return IMPORT_NO_ID;
	memcpy(copy, text, length);
	copy[length] = 0;
	if (map_add(&table->map, import_hash(0, text, length), table->count) != 0)
		return IMPORT_NO_ID;
	table->bytes += length;
	table->strings[table->count] = (struct import_string){copy, length};
	return (uint32_t)table->count++;
}

/* FNV-1a, of another kind than import_hash(), which a made-up text deceives. */
static uint64_t fnv(const char *text, size_t length)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
	return hash;
}

void report__import_key_add(struct str *key, const char *text, size_t length, size_t most)
{
	str_add_bytes(key, text, min(length, most));
	if (length > most)
		str_addf(key, "#%016" PRIx64 "%016" PRIx64, import_hash(0, text, length),
			 fnv(text, length));
}

void *report__import_append(struct map *map, uint64_t key, void *items, size_t *count,
			    size_t *capacity, size_t size, struct err *err)
{
	unsigned char *base;

	if (mem_grow(items, capacity, *count + 1, size) != 0 || map_add(map, key, *count) != 0) {
		err_nomem(err);
		return NULL;
	}
	memcpy(&base, items, sizeof(base));
	return base + (*count)++ * size;
}
