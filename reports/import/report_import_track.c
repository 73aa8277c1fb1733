/*
 * Tracks of threads: which come first, what they are called, how they are opened.
 *
 * A thread's track is called as the thread; with the process before it where several threads have
 * that name. Tracks are opened in the order that the trace asks for, which is the order in which
 * they are shown.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "reports/import/report_import_internal.h"

#define RING_SLOTS 524288u /* of all tracks together, as long as they are few */
#define RING_MOST  16384u
#define RING_LEAST 128u

/* Numbers in their order, before other texts in order of arrival. */
static int64_t number_of(const char *text)
{
	long long value;

	return str_to_int(text, &value) ? value : INT64_MAX;
}

static const char *pid_of(const struct import *import, const struct import_thread *thread)
{
	return thread->process == IMPORT_NO_ID
		       ? ""
		       : import->processes.table.strings[thread->process].text;
}

static int by_place(const void *a, const void *b, void *user)
{
	static const struct import_process nameless;
	const struct import *import = user;
	const struct import_thread *x = &import->threads.items[*(const uint32_t *)a];
	const struct import_thread *y = &import->threads.items[*(const uint32_t *)b];
	const struct import_process *p =
		x->process == IMPORT_NO_ID ? &nameless : &import->processes.items[x->process];
	const struct import_process *q =
		y->process == IMPORT_NO_ID ? &nameless : &import->processes.items[y->process];
	int order = SORTED_ORDER(x->kind == IMPORT_GLOBAL, y->kind == IMPORT_GLOBAL);

	if (order == 0)
		order = SORTED_BY(p, q, sort);
	if (order == 0)
		order = SORTED_ORDER(number_of(pid_of(import, x)), number_of(pid_of(import, y)));
	if (order == 0)
		order = SORTED_BY(x, y, process, sort, kind);
	if (order == 0)
		order = SORTED_ORDER(number_of(x->what), number_of(y->what));
	return order != 0 ? order : SORTED_ORDER(*(const uint32_t *)a, *(const uint32_t *)b);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void process_name(const struct import *import, const struct import_thread *thread,
			 struct str *out)
{
	const char *pid = pid_of(import, thread), *name = NULL;

	if (thread->process != IMPORT_NO_ID)
		name = import->processes.items[thread->process].name;
	if (name && name[0] != 0)
		str_add(out, name);
	else if (number_of(pid) == INT64_MAX)
		str_add(out, pid);
	else
		str_addf(out, "process %s", pid);
}

static void thread_name(const struct import *import, const struct import_thread *thread,
			struct str *out)
{
	switch (thread->kind) {
	case IMPORT_THREAD:
		if (thread->name && thread->name[0] != 0)
			str_add(out, thread->name);
		else if (number_of(thread->what) == INT64_MAX)
			str_add(out, thread->what);
		else
			str_addf(out, "thread %s", thread->what);
		break;
	case IMPORT_PROCESS:
		process_name(import, thread, out);
		break;
	case IMPORT_GLOBAL:
		str_add(out, "trace");
		break;
	case IMPORT_ASYNC:
		str_addf(out, "%s%s(async)", thread->what, thread->what[0] == 0 ? "" : " ");
		break;
	}
}

/* A text as written may be no UTF-8. */
static char *clean_name(const struct str *name)
{
	const struct import_token token = {
		.at = str_peek(name), .length = name->length, .kind = IMPORT_NUMBER};
	size_t size = 3 * name->length + 1;
	char *out = name->failed ? NULL : mem_alloc(size);

	if (out)
		report__import_unescape(&token, out, size, NULL, NULL);
	return out;
}

/* Make @name one that no other track has; false: no memory. It is the caller's. */
static bool unique_name(struct import *import, const char *base, char **out)
{
	bool fresh = false;

	*out = mem_strdup(base);
	for (unsigned i = 2; *out; i++) {
		uint32_t id = report__import_intern(&import->track_names, *out, strlen(*out),
						    SIZE_MAX, &fresh);

		if (id == IMPORT_NO_ID)
			mem_free(*out);
		if (id == IMPORT_NO_ID)
			*out = NULL;
		if (fresh || !*out)
			break;
		mem_free(*out);
		*out = mem_printf("%s (%u)", base, i);
	}
	return *out != NULL;
}

/* How many threads go by each name: *@shared[i] of the thread at list[i]. */
static bool count_names(struct import *import, const uint32_t *list, size_t count, uint32_t *shared)
{
	struct import_intern table = {0};
	uint32_t *ids = mem_calloc(count + 1, sizeof(*ids));
	struct str name = {0};
	bool good = ids != NULL, fresh;

	for (size_t i = 0; i < count && good; i++) {
		str_clear(&name);
		thread_name(import, &import->threads.items[list[i]], &name);
		ids[i] = report__import_intern(&table, str_peek(&name), name.length, SIZE_MAX,
					       &fresh);
		good = !name.failed && ids[i] != IMPORT_NO_ID;
		if (good)
			shared[ids[i]]++;
	}
	/* From names to threads; counts are of names that came no later than the thread. */
	for (size_t i = count; i-- > 0 && good;)
		ids[i] = shared[ids[i]];
	if (good)
		memcpy(shared, ids, count * sizeof(*ids));
	report__import_intern_fini(&table);
	mem_free(ids);
	str_free(&name);
	return good;
}

static bool name_track(struct import *import, struct import_thread *thread, bool shared)
{
	struct str name = {0};
	char *clean;
	bool good;

	if (shared && thread->kind != IMPORT_PROCESS && thread->kind != IMPORT_GLOBAL) {
		process_name(import, thread, &name);
		str_add(&name, ": ");
	}
	thread_name(import, thread, &name);
	clean = clean_name(&name);
	good = clean && unique_name(import, clean, &thread->track);
	mem_free(clean);
	str_free(&name);
	return good;
}

/* ---- tracks ---------------------------------------------------------------------------------- */

static enum status add_lane(struct import *import, struct import_thread *thread, const char *name,
			    const char *parent, struct err *err)
{
	const struct ips_track_params params = {
		.name = !parent ? thread->shown : NULL,
		.parent = parent,
		.ipu = thread->ipu,
		.clock = thread->clock,
		.ring_slots = import->ring_slots,
	};
	int64_t pid = number_of(pid_of(import, thread));
	int64_t tid = thread->kind == IMPORT_THREAD ? number_of(thread->what) : INT64_MAX;
	struct import_lane *lane;

	if (mem_grow(&thread->lanes, &thread->lane_capacity, thread->lane_count + 1,
		     sizeof(*thread->lanes)) != 0)
		return err_nomem(err);
	lane = &thread->lanes[thread->lane_count];
	*lane = (struct import_lane){0};
	lane->track = ips_track_open_foreign(import->recording, name, &params,
					     pid == INT64_MAX ? IPS_NULL : pid,
					     tid == INT64_MAX ? IPS_NULL : tid);
	if (!lane->track)
		return err_nomem(err);
	thread->lane_count++;
	import->tracks++;
	return ST_OK;
}

enum status report__import_track_more(struct import *import, struct import_thread *thread,
				      struct import_lane **out, struct err *err)
{
	enum status status = ST_OK;
	char *base, *name = NULL;

	*out = NULL;
	if (import->tracks >= IMPORT_MOST_TRACKS)
		return ST_OK;
	base = mem_printf("%s (overlap %zu)", thread->track, thread->lane_count);
	if (!base || !unique_name(import, base, &name))
		status = err_nomem(err);
	if (status == ST_OK)
		status = add_lane(import, thread, name, thread->track, err);
	if (status == ST_OK)
		*out = &thread->lanes[thread->lane_count - 1];
	mem_free(base);
	mem_free(name);
	return status;
}

static void set_ring_slots(struct import *import, size_t tracks)
{
	import->ring_slots = RING_SLOTS / (uint32_t)(tracks + 1);
	if (import->ring_slots > RING_MOST)
		import->ring_slots = RING_MOST;
	if (import->ring_slots < RING_LEAST)
		import->ring_slots = RING_LEAST;
}

enum status report__import_tracks_open(struct import *import, struct err *err)
{
	size_t all = import->threads.table.count, count = 0;
	uint32_t *list = mem_calloc(all + 1, sizeof(*list));
	uint32_t *shared = mem_calloc(all + 1, sizeof(*shared));
	enum status status = !list || !shared ? err_nomem(err) : ST_OK;

	for (size_t i = 0; i < all && status == ST_OK; i++) {
		if (import->threads.items[i].used)
			list[count++] = (uint32_t)i;
	}
	if (status == ST_OK) {
		qsort_r(list, count, sizeof(*list), by_place, import);
		if (!count_names(import, list, count, shared))
			status = err_nomem(err);
	}
	set_ring_slots(import, count);
	for (size_t i = 0; i < count && status == ST_OK; i++) {
		struct import_thread *thread = &import->threads.items[list[i]];

		if (!name_track(import, thread, shared[i] > 1))
			status = err_nomem(err);
		else
			status = add_lane(import, thread, thread->track, NULL, err);
	}
	mem_free(list);
	mem_free(shared);
	return status;
}

void report__import_tracks_fini(struct import *import)
{
	for (size_t i = 0; i < import->threads.table.count; i++) {
		struct import_thread *thread = &import->threads.items[i];

		for (size_t l = 0; l < thread->lane_count; l++)
			mem_free(thread->lanes[l].open);
		mem_free(thread->lanes);
		mem_free(thread->next);
		mem_free(thread->track);
	}
	report__import_intern_fini(&import->track_names);
}
