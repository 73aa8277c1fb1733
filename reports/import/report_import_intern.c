/*
 * Byte strings as numbers. See report_import_intern.h.
 */
#include "reports/import/report_import_intern.h"

#include <string.h>

#include "common/mem.h"

#define FIRST_SLOTS 256

void report__import_intern_fini(struct import_intern *table)
{
	arena_fini(&table->arena);
	mem_free(table->strings);
	mem_free(table->slots);
	memset(table, 0, sizeof(*table));
}

static bool grow_slots(struct import_intern *table)
{
	size_t count = table->slot_count == 0 ? FIRST_SLOTS : table->slot_count * 2;
	uint32_t *slots = mem_calloc(count, sizeof(*slots));

	if (!slots)
		return false;
	for (size_t i = 0; i < table->count; i++) {
		size_t at = table->strings[i].hash & (count - 1);

		while (slots[at] != 0)
			at = (at + 1) & (count - 1);
		slots[at] = (uint32_t)i + 1;
	}
	mem_free(table->slots);
	table->slots = slots;
	table->slot_count = count;
	return true;
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
	table->strings[table->count++] = (struct import_string){copy, length, hash};
	return true;
}

uint32_t report__import_intern(struct import_intern *table, const char *text, size_t length,
			       size_t most, bool *fresh)
{
	uint64_t hash = import_hash(0, text, length);
	size_t at;

	*fresh = true;
	if (table->count * 2 >= table->slot_count && !grow_slots(table))
		return IMPORT_NO_ID;
	for (at = hash & (table->slot_count - 1); table->slots[at] != 0;
	     at = (at + 1) & (table->slot_count - 1)) {
		const struct import_string *string = &table->strings[table->slots[at] - 1];

		*fresh = !(string->hash == hash && string->length == length &&
			   memcmp(string->text, text, length) == 0);
		if (!*fresh)
			return table->slots[at] - 1;
	}
	*fresh = table->count < most;
	if (!*fresh || !add_string(table, text, length, hash))
		return IMPORT_NO_ID;
	table->slots[at] = (uint32_t)table->count;
	return (uint32_t)table->count - 1;
}
