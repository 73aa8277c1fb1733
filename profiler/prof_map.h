/*
 * What names may take of memory, and three hash tables of the writer: texts with ids, recently used
 * keys with a value, and recently used contexts.
 *
 * Tables: one thread at a time. Each owns its contents; *_fini() accepts a zeroed struct.
 */
#ifndef PROF_MAP_H
#define PROF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/map.h"
#include "profiler/ipuscope/profiler.h"

/*
 * A name that a program gives is kept up to IPS_NAME_MOST bytes, and all names of one store (the
 * call sites of a process, the tracks of a recording, its tensors, the texts of its file) up to
 * IPS_NAMES_MOST bytes, with PROF_NAME_COST for each. Beyond, a name is IPS_MORE_NAMES.
 */
#define PROF_NAME_COST 64u /* bytes of a pointer, a slot of a map and an allocation, about */

/* Return how many bytes of @text are kept, whole characters of UTF-8; NULL: 0. */
size_t prof_name_length(const char *text);
/* Return whether @kept is what is kept of @text, of which @length bytes are. */
bool prof_name_is(const char *kept, const char *text, size_t length);
/* Return whether a store with @bytes of names has room for @length more; if so, add them. */
bool prof_name_fits(size_t *bytes, size_t length);
/* Count a name that was cut, or is IPS_MORE_NAMES now; the total of the process. Any thread. */
void prof_name_lost(void);
uint64_t prof_names_lost(void);

#define PROF_TEXTS_RECENT 64

/* Interned texts; ids count from 1 in order of insertion. */
struct prof_texts {
	struct map map;
	char **items; /* map.count of them */
	size_t capacity, bytes;
	/* Ids that were returned last, by the address of the text given; 0: none. */
	uint32_t recent[PROF_TEXTS_RECENT];
};

/* Return the id of what is kept of @text, which is items[id - 1] until the end, and in *@fresh
 * whether it was inserted; 0 if out of memory. */
uint32_t prof_texts_add(struct prof_texts *texts, const char *text, bool *fresh);
void prof_texts_fini(struct prof_texts *texts);

/*
 * A bounded cache of recent keys: two generations of at most @generation keys. When the younger
 * generation is full, the older one is discarded (@forget, may be NULL, is called for each of its
 * keys). A key found in the older generation moves to the younger.
 */
struct prof_recent {
	size_t key_size, generation;
	struct prof_recent_table {
		unsigned char *slots;
		size_t capacity, count;
		size_t filled; /* slots in use or removed */
	} young, old;
	void (*forget)(void *user, int64_t value);
	void *user;
};

void prof_recent_init(struct prof_recent *recent, size_t key_size, size_t generation);
void prof_recent_fini(struct prof_recent *recent);
bool prof_recent_get(struct prof_recent *recent, const void *key, int64_t *value);
bool prof_recent_put(struct prof_recent *recent, const void *key,
		     int64_t value); /* false: no memory */
bool prof_recent_remove(struct prof_recent *recent, const void *key);

/* The few thousand key combinations used last: a 4-way set-associative cache that evicts the oldest
 * entry of a set. One allocation, small enough for a processor's cache. */
struct prof_contexts {
	struct prof_context_set *sets;
};

bool prof_contexts_init(struct prof_contexts *contexts); /* false: no memory */
void prof_contexts_fini(struct prof_contexts *contexts);
/* Return the id of @keys; if they are not cached, insert them with the id @fresh. */
int64_t prof_contexts_add(struct prof_contexts *contexts, const struct ips_keys *keys,
			  int64_t fresh);

#endif /* PROF_MAP_H */
