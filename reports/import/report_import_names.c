/*
 * What a trace names: the tables of call sites, processes and threads, keyed by their text in the
 * trace, and of devices. Readers of formats declare these through report_import_reader.h.
 */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "reports/import/report_import_internal.h"

#define KEY_SEPARATOR "\x01"
#define STEP_NAME     "ProfilerStep#"
#define ID_TEXT       1024 /* bytes of a process's or thread's id, or of a track's category */

/* Bytes of the distinct names of call sites; others count as beyond the number of names. */
#define SITE_BYTES  ((size_t)32 << 20)
#define STORE_BYTES ((size_t)32 << 20) /* of texts that a format's reader stores */

static void add_token(struct str *key, const struct import_token *token, size_t most)
{
	if (token->kind != IMPORT_ABSENT)
		report__import_key_add(key, token->at, token->length, most);
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
	/* The item's room comes first: as many items are freed as there are strings. */
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
	add_token(key, &event->fields[IMPORT_FIELD_CAT], IMPORT_TEXT_SIZE);
	str_add_bytes(key, KEY_SEPARATOR, 1);
	add_token(key, &event->fields[IMPORT_FIELD_NAME], IMPORT_TEXT_SIZE);
	if (event->operation.kind != IMPORT_ABSENT || series) {
		str_add_bytes(key, KEY_SEPARATOR, 1);
		add_token(key, &event->operation, IMPORT_TEXT_SIZE);
		str_add_bytes(key, KEY_SEPARATOR, 1);
		str_add(key, !series ? "" : series);
	}
	id = INTERN(import, import->sites,
		    import->sites.table.bytes < SITE_BYTES ? IMPORT_MOST_SITES : 0, &fresh, err);
	if (id == IMPORT_NO_ID && !fresh) {
		/* The shared site of all names after the table is full. */
		report__import_note(import, REPORT_IMPORT_NOTE_OTHER_NAMES);
		/* The key of an event has a separator. */
		str_clear(&import->scratch);
		str_add(&import->scratch, "more");
		id = INTERN(import, import->sites, IMPORT_MOST_SITES + 1, &fresh, err);
		if (!fresh || id == IMPORT_NO_ID)
			return id;
		import->sites.items[id] =
			(struct import_site){ips_site_intern("", IPS_MORE_NAMES, NULL), IPS_NULL,
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
	add_token(&import->scratch, pid, ID_TEXT);
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
		add_token(key, &event->fields[IMPORT_FIELD_PID], ID_TEXT);
	str_add_bytes(key, KEY_SEPARATOR, 1);
	if (report__import_of_thread(kind) || kind == IMPORT_DEVICE)
		add_token(key, &event->fields[IMPORT_FIELD_TID], ID_TEXT);
	else if (kind == IMPORT_ASYNC)
		add_token(key, &event->fields[IMPORT_FIELD_CAT], ID_TEXT);
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

enum status report__import_thread_beside(const struct import *import,
					 const struct import_thread *thread,
					 const struct import_thread **out, struct err *err)
{
	const struct import_string *key =
		&import->threads.table.strings[thread - import->threads.items];
	const char first = (char)('0' + IMPORT_THREAD);
	struct str text = {0};
	enum status status;
	uint32_t at;

	str_add_bytes(&text, &first, 1);
	str_add_bytes(&text, key->text + 1, key->length - 1);
	status = text.failed ? err_nomem(err) : ST_OK;
	at = report__import_intern_find(&import->threads.table, str_peek(&text), text.length);
	*out = at == IMPORT_NO_ID ? NULL : &import->threads.items[at];
	str_free(&text);
	return status;
}

/* ---- what readers declare -------------------------------------------------------------------- */

/* An event without any fields. Its arguments are not touched: they are many pages. */
static void clear_event(struct import_event *event)
{
	memset(event, 0, offsetof(struct import_event, args));
	event->args.used = 0;
	event->args.left = 0;
}

static enum status set_text(char **to, const char *text, struct err *err)
{
	char *copy;

	if (!text || (*to && strcmp(*to, text) == 0))
		return ST_OK;
	copy = mem_strdup(text);
	if (!copy)
		return err_nomem(err);
	mem_free(*to);
	*to = copy;
	return ST_OK;
}

/* The status of a function that returned @id. */
static enum status status_of(uint32_t id, const struct err *err)
{
	return id == IMPORT_NO_ID ? err->status : ST_OK;
}

enum status report__import_track(struct import *import, const struct import_track *track,
				 uint32_t *out, struct err *err)
{
	struct import_event event;
	struct import_process *process;
	struct import_thread *thread;
	enum status status;

	clear_event(&event);
	event.fields[IMPORT_FIELD_PID] = import_token_of(track->process);
	event.fields[track->kind == IMPORT_ASYNC ? IMPORT_FIELD_CAT : IMPORT_FIELD_TID] =
		import_token_of(track->thread);
	*out = report__import_thread(import, track->kind, &event, err);
	if (*out == IMPORT_NO_ID)
		return status_of(*out, err);
	thread = &import->threads.items[*out];
	thread->sort = track->sort;
	thread->rank = track->rank;
	thread->device = track->device;
	status = set_text(&thread->name, track->name, err);
	if (thread->process == IMPORT_NO_ID || status != ST_OK)
		return status;
	process = &import->processes.items[thread->process];
	if (track->process_sort != IPS_NULL) {
		process->sort = track->process_sort;
		process->sorted = true;
	}
	return set_text(&process->name, track->process_name, err);
}

void report__import_track_under(struct import *import, uint32_t track, uint32_t above)
{
	uint32_t at = above;

	/* A file may put a track under itself, or under others without end. */
	for (int i = 0; at != IMPORT_NO_ID && at != track && i < IMPORT_NESTED_MOST; i++)
		at = import->threads.items[at].above;
	if (at == IMPORT_NO_ID)
		import->threads.items[track].above = above;
}

enum status report__import_track_shows(struct import *import, uint32_t track, const char *device,
				       struct err *err)
{
	if (track == IMPORT_NO_ID || import->threads.items[track].shows)
		return ST_OK;
	import->threads.items[track].shows = device;
	return device ? ST_OK : err_nomem(err);
}

enum status report__import_name_site(struct import *import, const char *category, const char *name,
				     uint32_t *out, struct err *err)
{
	struct import_event event;

	clear_event(&event);
	event.fields[IMPORT_FIELD_CAT] = import_token_of(category);
	event.fields[IMPORT_FIELD_NAME] = import_token_of(name);
	*out = report__import_site(import, &event, NULL, err);
	return status_of(*out, err);
}

enum status report__import_arg_name(struct import *import, const char *name, uint32_t *out,
				    struct err *err)
{
	struct import_token token = import_token_of(name);

	*out = report__import_names_add(&import->scan.names, &token);
	return import->scan.names.failed ? err_nomem(err) : ST_OK;
}

const char *report__import_store(struct import *import, const char *text)
{
	bool fresh;
	uint32_t id;

	if (!text)
		return NULL;
	if (import->kept.bytes >= STORE_BYTES &&
	    report__import_intern_find(&import->kept, text, strlen(text)) == IMPORT_NO_ID) {
		report__import_note(import, REPORT_IMPORT_NOTE_OTHER_NAMES);
		return IPS_MORE_NAMES;
	}
	id = report__import_intern(&import->kept, text, strlen(text), SIZE_MAX, &fresh);
	return id == IMPORT_NO_ID ? NULL : import->kept.strings[id].text;
}

/* ---- devices --------------------------------------------------------------------------------- */

enum status report__import_device(struct import *import, const struct ips_device *device,
				  struct err *err)
{
	const char *name = device->device;
	struct ips_device row = *device;
	size_t i = 0;

	row.model = report__import_store(import, device->model);
	row.architecture = report__import_store(import, device->architecture);
	if ((device->model && !row.model) || (device->architecture && !row.architecture))
		return err_nomem(err);
	while (i < import->device_count &&
	       (name ? !import->devices[i].device || strcmp(import->devices[i].device, name) != 0
		     : import->devices[i].number != device->number))
		i++;
	if (i == IMPORT_MOST_DEVICES)
		return ST_OK;
	if (i < import->device_count && !name)
		name = import->devices[i].device;
	import->device_count += i == import->device_count;
	row.device = name;
	import->devices[i] = row;
	return ST_OK;
}

const char *report__import_accelerator(struct import *import, const char *kind, int64_t number)
{
	struct ips_device device = {NULL,     number,   NULL,     NULL,
				    IPS_NULL, IPS_NULL, IPS_NULL, IPS_NULL};
	char name[64];

	snprintf(name, sizeof(name), "%s %lld", kind, (long long)number);
	device.device = report__import_store(import, name);
	for (size_t i = 0; i < import->device_count && device.device; i++) {
		struct ips_device *known = &import->devices[i];

		if (known->number == number && !known->device)
			known->device = device.device;
		if (known->number == number && strcmp(known->device, name) == 0)
			return known->device;
	}
	if (device.device)
		report__import_device(import, &device, NULL);
	return device.device;
}

const char *report__import_gpu(struct import *import, int64_t number)
{
	for (size_t i = 0; i < import->device_count; i++) {
		if (import->devices[i].number == number && import->devices[i].device)
			return import->devices[i].device;
	}
	return report__import_accelerator(import, "GPU", number);
}

/* ---- the end --------------------------------------------------------------------------------- */

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
