/*
 * Interned strings, and the tables of call sites, processes and threads of a trace, keyed by their
 * text in the trace.
 */
#include <string.h>

#include "common/mem.h"
#include "reports/import/report_import_internal.h"

/* ---- interned strings ------------------------------------------------------------------------ */

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

	*fresh = at == IMPORT_NO_ID;
	if (!*fresh)
		return at;
	*fresh = table->count < most;
	if (!*fresh || !add_string(table, text, length, import_hash(0, text, length)))
		return IMPORT_NO_ID;
	return (uint32_t)table->count - 1;
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

/* ---- call sites, processes and threads ------------------------------------------------------- */

#define KEY_SEPARATOR "\x01"
#define STEP_NAME     "ProfilerStep#"

static void add_token(struct str *key, const struct import_token *token)
{
	if (token->kind != IMPORT_ABSENT)
		str_add_bytes(key, token->at, token->length);
}

/* Intern the scratch text in @table; *@fresh: its item is new and zeroed. */
#define INTERN(import, list, most, fresh, err)                                                     \
	intern(import, &(list).table, &(list).items, &(list).capacity, sizeof(*(list).items),      \
	       most, fresh, err)

static uint32_t intern(struct import *import, struct import_intern *table, void *items,
		       size_t *capacity, size_t size, size_t most, bool *fresh, struct err *err)
{
	const struct str *key = &import->scratch;
	unsigned char *base;
	uint32_t id;

	*fresh = true;
	/* Its item comes first: the items that have to be freed are counted by the strings. */
	id = key->failed || mem_grow(items, capacity, table->count + 1, size) != 0
		     ? IMPORT_NO_ID
		     : report__import_intern(table, str_peek(key), key->length, most, fresh);
	if (!*fresh)
		return id;
	if (id == IMPORT_NO_ID) {
		err_nomem(err);
		return IMPORT_NO_ID;
	}
	memcpy(&base, items, sizeof(base));
	memset(base + id * size, 0, size);
	return id;
}

/* ---- call sites ------------------------------------------------------------------------------ */

/* Write a token as valid UTF-8 to import->text + @at; return the offset behind its 0. */
static size_t unescape_at(struct import *import, const struct import_token *token, size_t at,
			  size_t size)
{
	bool mended = false, cut = false;
	size_t length = 0;

	import->text[at] = 0;
	if (token->kind != IMPORT_ABSENT)
		length = report__import_unescape(token, import->text + at, size, &mended, &cut);
	import->counts->notes[REPORT_IMPORT_NOTE_BAD_TEXT] += mended;
	import->counts->notes[REPORT_IMPORT_NOTE_CUT_NAMES] += cut;
	return at + length + 1;
}

static bool create_site(struct import *import, const struct import_event *event, const char *series,
			struct import_site *site)
{
	size_t name = unescape_at(import, &event->fields[IMPORT_FIELD_CAT], 0, IMPORT_TEXT_SIZE);
	size_t operation =
		unescape_at(import, &event->fields[IMPORT_FIELD_NAME], name, IMPORT_TEXT_SIZE);
	const char *text = import->text;
	long long step;

	if (series) {
		/* A sample's series follows the counter's name. */
		char *counter = import->text + name;
		size_t length = strlen(counter);

		if (length > 0 && length + 1 < IMPORT_TEXT_SIZE)
			counter[length++] = '.';
		str_copy(counter + length, IMPORT_TEXT_SIZE - length, series);
		operation = name + strlen(text + name) + 1;
	}
	unescape_at(import, &event->operation, operation, IMPORT_TEXT_SIZE);
	if (text[name] == 0)
		str_copy(import->text + name, IMPORT_TEXT_SIZE, "(no name)");
	site->step = IPS_NULL;
	if (str_starts_with(text + name, STEP_NAME) &&
	    str_to_int(text + name + strlen(STEP_NAME), &step) && step >= 0)
		site->step = step;
	site->kineto = report__import_kineto(text, text + name);
	site->kernel_kind = report__import_kernel_kind(text + name);
	site->site =
		ips_site_intern(text, text + name,
				event->operation.kind == IMPORT_ABSENT ? NULL : text + operation);
	return site->site != NULL;
}

uint32_t report__import_site(struct import *import, const struct import_event *event,
			     const char *series, struct err *err)
{
	struct str *key = &import->scratch;
	bool fresh;
	uint32_t id;

	str_clear(key);
	add_token(key, &event->fields[IMPORT_FIELD_CAT]);
	str_add_bytes(key, KEY_SEPARATOR, 1);
	add_token(key, &event->fields[IMPORT_FIELD_NAME]);
	if (event->operation.kind != IMPORT_ABSENT || series) {
		str_add_bytes(key, KEY_SEPARATOR, 1);
		add_token(key, &event->operation);
		str_add_bytes(key, KEY_SEPARATOR, 1);
		str_add(key, !series ? "" : series);
	}
	id = INTERN(import, import->sites, IMPORT_MOST_SITES, &fresh, err);
	if (id == IMPORT_NO_ID && !fresh) {
		/* The shared site of all names after the table is full. */
		report__import_note(import, REPORT_IMPORT_NOTE_OTHER_NAMES);
		str_clear(&import->scratch);
		str_add(&import->scratch, KEY_SEPARATOR "more");
		id = INTERN(import, import->sites, IMPORT_MOST_SITES + 1, &fresh, err);
		if (!fresh || id == IMPORT_NO_ID)
			return id;
		import->sites.items[id] =
			(struct import_site){ips_site_intern("", "(more names)", NULL), IPS_NULL,
					     KINETO_NONE, "compute"};
		return id;
	}
	if (fresh && id != IMPORT_NO_ID &&
	    !create_site(import, event, series, &import->sites.items[id])) {
		err_nomem(err);
		return IMPORT_NO_ID;
	}
	return id;
}

/* ---- processes and threads ------------------------------------------------------------------- */

uint32_t report__import_process(struct import *import, const struct import_token *pid,
				struct err *err)
{
	bool fresh;

	str_clear(&import->scratch);
	add_token(&import->scratch, pid);
	return INTERN(import, import->processes, IMPORT_MOST_TRACKS, &fresh, err);
}

bool report__import_of_thread(enum import_thread_kind kind)
{
	return kind <= IMPORT_SYNC;
}

/* Build the key of an event's track in the scratch text, by kind: pid and tid of a thread, the pid
 * of a process, pid and category of asynchronous spans. */
static void build_thread_key(struct import *import, enum import_thread_kind kind,
			     const struct import_event *event)
{
	struct str *key = &import->scratch;
	const char kinds[] = {(char)('0' + kind), 0};

	str_clear(key);
	str_add_bytes(key, kinds, 1);
	if (kind != IMPORT_GLOBAL && kind != IMPORT_DEVICE)
		add_token(key, &event->fields[IMPORT_FIELD_PID]);
	str_add_bytes(key, KEY_SEPARATOR, 1);
	if (report__import_of_thread(kind) || kind == IMPORT_DEVICE)
		add_token(key, &event->fields[IMPORT_FIELD_TID]);
	else if (kind == IMPORT_ASYNC)
		add_token(key, &event->fields[IMPORT_FIELD_CAT]);
}

uint32_t report__import_thread(struct import *import, enum import_thread_kind kind,
			       const struct import_event *event, struct err *err)
{
	static const struct import_token nothing;
	struct import_thread *thread;
	uint32_t id, process;
	const char *key;
	bool fresh;

	if (kind == IMPORT_THREAD && event->fields[IMPORT_FIELD_TID].kind == IMPORT_ABSENT)
		kind = event->fields[IMPORT_FIELD_PID].kind == IMPORT_ABSENT ? IMPORT_GLOBAL
									     : IMPORT_PROCESS;
	build_thread_key(import, kind, event);
	id = INTERN(import, import->threads, IMPORT_MOST_TRACKS, &fresh, err);
	if (!fresh || id == IMPORT_NO_ID)
		return id;
	process = report__import_process(import,
					 kind == IMPORT_GLOBAL || kind == IMPORT_DEVICE
						 ? &nothing
						 : &event->fields[IMPORT_FIELD_PID],
					 err);
	if (process == IMPORT_NO_ID && err->status != ST_OK)
		return IMPORT_NO_ID;
	thread = &import->threads.items[id];
	thread->kind = kind;
	thread->process = process;
	thread->ipu = IPS_NULL;
	thread->above = IMPORT_NO_ID;
	key = import->threads.table.strings[id].text;
	thread->what = strchr(key, KEY_SEPARATOR[0]);
	thread->what = !thread->what ? "" : thread->what + 1;
	return id;
}

const struct import_thread *report__import_thread_beside(const struct import *import,
							 const struct import_thread *thread)
{
	const struct import_string *key =
		&import->threads.table.strings[thread - import->threads.items];
	const char first = (char)('0' + IMPORT_THREAD);
	struct str text = {0};
	size_t at = MAP_NONE;

	str_add_bytes(&text, &first, 1);
	str_add_bytes(&text, key->text + 1, key->length - 1);
	if (!text.failed)
		at = report__import_intern_find(&import->threads.table, str_peek(&text),
						text.length);
	str_free(&text);
	return at == IMPORT_NO_ID ? NULL : &import->threads.items[at];
}

void report__import_tables_fini(struct import *import)
{
	for (size_t i = 0; i < import->threads.table.count; i++) {
		mem_free(import->threads.items[i].name);
		mem_free(import->threads.items[i].shown);
		mem_free(import->threads.items[i].parent);
	}
	for (size_t i = 0; i < import->processes.table.count; i++) {
		mem_free(import->processes.items[i].name);
		mem_free(import->processes.items[i].labels);
	}
	report__import_intern_fini(&import->sites.table);
	report__import_intern_fini(&import->processes.table);
	report__import_intern_fini(&import->threads.table);
	report__import_intern_fini(&import->kept);
	mem_free(import->calls);
	mem_free(import->sites.items);
	mem_free(import->processes.items);
	mem_free(import->threads.items);
	str_free(&import->scratch);
}
