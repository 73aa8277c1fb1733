/*
 * Tracks of threads: their order, their names, what they are under, and opening them.
 *
 * A thread's track is named like the thread, prefixed with the process if several threads share the
 * name. Tracks are opened in the order that the trace requests, which is the order in which they
 * are displayed. Threads are under the track of their process, streams under that of their device,
 * Python's frames and waits under their thread or stream. Processes and devices without events have
 * empty tracks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "reports/import/report_import_internal.h"

#define RING_SLOTS 524288u /* total of all tracks, within the limits per track below */
#define RING_MOST  16384u
#define RING_LEAST 64u

#define DEVICE_SORT 5000000 /* as Kineto's, of devices whose order the file does not give */

/* Sort key: numbers in their order, before other texts in order of arrival. */
static int64_t number_or_last(const char *text)
{
	long long value;

	return str_to_int(text, &value) ? value : INT64_MAX;
}

static const char *process_pid(const struct import *import, const struct import_thread *thread)
{
	return thread->process == IMPORT_NO_ID
		       ? ""
		       : import->processes.table.strings[thread->process].text;
}

/* A thread and what is beside it are in the order of their numbers, before the rest. */
static int group_of(enum import_thread_kind kind)
{
	return report__import_of_thread(kind) ? 0 : (int)kind;
}

static int compare_tracks(const void *a, const void *b, void *user)
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
		order = SORTED_ORDER(x->kind == IMPORT_DEVICE, y->kind == IMPORT_DEVICE);
	if (order == 0)
		order = SORTED_BY(p, q, sort);
	if (order == 0)
		order = SORTED_ORDER(number_or_last(process_pid(import, x)),
				     number_or_last(process_pid(import, y)));
	if (order == 0)
		order = SORTED_BY(x, y, process, sort, rank);
	if (order == 0)
		order = SORTED_ORDER(group_of(x->kind), group_of(y->kind));
	if (order == 0)
		order = SORTED_ORDER(number_or_last(x->what), number_or_last(y->what));
	if (order == 0)
		order = SORTED_BY(x, y, kind);
	return order != 0 ? order : SORTED_ORDER(*(const uint32_t *)a, *(const uint32_t *)b);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void add_process_name(const struct import *import, const struct import_thread *thread,
			     struct str *out)
{
	const char *pid = process_pid(import, thread), *name = NULL;

	if (thread->process != IMPORT_NO_ID)
		name = import->processes.items[thread->process].name;
	if (name && name[0] != 0)
		str_add(out, name);
	else if (number_or_last(pid) == INT64_MAX)
		str_add(out, pid);
	else
		str_addf(out, "process %s", pid);
}

/* Its name, without the blanks that Kineto ends it with; without one "@word NUMBER". */
static void add_name_of(const struct import_thread *thread, const char *word, struct str *out)
{
	size_t length = !thread->name ? 0 : strlen(thread->name);

	while (length > 0 && thread->name[length - 1] == ' ')
		length--;
	if (length > 0)
		str_add_bytes(out, thread->name, length);
	else if (number_or_last(thread->what) == INT64_MAX)
		str_add(out, thread->what);
	else
		str_addf(out, "%s %s", word, thread->what);
}

static void add_thread_name(const struct import *import, const struct import_thread *thread,
			    struct str *out)
{
	switch (thread->kind) {
	case IMPORT_PYTHON:
		add_name_of(thread, "thread", out);
		str_add(out, " (python)");
		break;
	case IMPORT_THREAD:
	case IMPORT_SYNC:
		if (thread->device)
			str_addf(out, "%s ", thread->device);
		add_name_of(thread, thread->device ? "stream" : "thread", out);
		if (thread->kind == IMPORT_SYNC)
			str_add(out, " (sync)");
		break;
	case IMPORT_PROCESS:
		add_process_name(import, thread, out);
		break;
	case IMPORT_DEVICE:
		str_add(out, thread->what);
		break;
	case IMPORT_GLOBAL:
		str_add(out, "trace");
		break;
	case IMPORT_ASYNC:
		str_addf(out, "%s%s(async)", thread->what, thread->what[0] == 0 ? "" : " ");
		break;
	}
}

/* Copy @base to @out with a suffix that makes it unique among tracks; false: out of memory. The
 * caller owns @out. */
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

/* Count the threads that share a name: @shared[i] for the thread list[i]. */
static bool count_names(struct import *import, const uint32_t *list, size_t count, uint32_t *shared)
{
	struct import_intern table = {0};
	uint32_t *ids = mem_calloc(count + 1, sizeof(*ids));
	struct str name = {0};
	bool good = ids != NULL, fresh;

	for (size_t i = 0; i < count && good; i++) {
		str_clear(&name);
		add_thread_name(import, &import->threads.items[list[i]], &name);
		ids[i] = report__import_intern(&table, str_peek(&name), name.length, SIZE_MAX,
					       &fresh);
		good = !name.failed && ids[i] != IMPORT_NO_ID;
		if (good)
			shared[ids[i]]++;
	}
	/* Convert counts by name id to counts by thread. */
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
	const bool process = thread->kind == IMPORT_PROCESS;
	struct str name = {0};
	struct import_token token;
	char *clean;
	size_t size;
	bool good;

	/* A track without events yields its name to the others. */
	if (!thread->used) {
		add_thread_name(import, thread, &name);
		shared = shared || report__import_intern_find(&import->track_names, str_peek(&name),
							      name.length) != IMPORT_NO_ID;
		str_clear(&name);
	}
	if (shared && !process && process_pid(import, thread)[0] != 0) {
		add_process_name(import, thread, &name);
		str_add(&name, ": ");
	}
	add_thread_name(import, thread, &name);
	if (shared && process && !thread->used)
		str_addf(&name, " (%s)", process_pid(import, thread));
	token = (struct import_token){
		.at = str_peek(&name), .length = name.length, .kind = IMPORT_NUMBER};
	size = 3 * name.length + 1; /* as valid UTF-8, at most */
	clean = name.failed ? NULL : mem_alloc(size);
	if (clean)
		report__import_unescape(&token, clean, size, NULL, NULL);
	good = clean && unique_name(import, clean, &thread->track);
	mem_free(clean);
	str_free(&name);
	return good;
}

/* ---- tracks ---------------------------------------------------------------------------------- */

/* NULL: out of memory. */
static struct import_lane *add_lane(struct import *import, struct import_thread *thread,
				    const char *name, const char *parent)
{
	const struct ips_track_params params = {
		.name = !parent ? thread->shown : NULL,
		.parent = parent ? parent
			  : thread->above == IMPORT_NO_ID
				  ? thread->parent
				  : import->threads.items[thread->above].track,
		.ipu = thread->ipu,
		.clock = thread->clock,
		.ring_slots = thread->used ? import->ring_slots : RING_LEAST,
	};
	int64_t pid = number_or_last(process_pid(import, thread));
	int64_t tid =
		report__import_of_thread(thread->kind) ? number_or_last(thread->what) : INT64_MAX;
	struct import_lane *lane;

	if (mem_grow(&thread->lanes, &thread->lane_capacity, thread->lane_count + 1,
		     sizeof(*thread->lanes)) != 0)
		return NULL;
	lane = &thread->lanes[thread->lane_count];
	*lane = (struct import_lane){0};
	lane->track = ips_track_open_foreign(import->recording, name, &params,
					     pid == INT64_MAX ? IPS_NULL : pid,
					     tid == INT64_MAX ? IPS_NULL : tid);
	if (!lane->track)
		return NULL;
	thread->lane_count++;
	import->tracks++;
	return lane;
}

struct import_lane *report__import_lane_add(struct import *import, struct import_thread *thread,
					    struct err *err)
{
	struct import_lane *lane = NULL;
	char *base, *name = NULL;

	if (import->tracks >= IMPORT_MOST_TRACKS)
		return NULL;
	base = mem_printf("%s (overlap %zu)", thread->track, thread->lane_count);
	if (base && unique_name(import, base, &name))
		lane = add_lane(import, thread, name, thread->track);
	if (!lane)
		err_nomem(err);
	mem_free(base);
	mem_free(name);
	return lane;
}

/* Find what the thread @at is under where the file does not say it: its process, or the device of a
 * stream or counter, whichever process used it. A process comes first among its threads. *@out
 * IMPORT_NO_ID: nothing. */
static enum status find_above(struct import *import, uint32_t at, uint32_t *out, struct err *err)
{
	const struct import_thread *thread = &import->threads.items[at];
	const char *device = thread->device ? thread->device : thread->shows;
	struct import_track track = {
		.kind = device ? IMPORT_DEVICE : IMPORT_PROCESS,
		.process = process_pid(import, thread),
		.thread = device,
		.sort = INT64_MIN,
		.process_sort = IPS_NULL,
	};

	*out = IMPORT_NO_ID;
	if (!device && (thread->kind == IMPORT_PROCESS || thread->kind == IMPORT_DEVICE ||
			track.process[0] == 0))
		return ST_OK;
	for (size_t i = 0; i < import->device_count && device; i++)
		if (strcmp(import->devices[i].device, device) == 0)
			track.sort = import->devices[i].number;
	return report__import_track(import, &track, out, err);
}

/* Put the thread @at under another, and that too, up to its process. One that has no events gets an
 * empty track. */
static enum status put_under(struct import *import, uint32_t at, struct err *err)
{
	enum status status = ST_OK;

	while (status == ST_OK) {
		uint32_t above = import->threads.items[at].above;

		if (above == IMPORT_NO_ID)
			status = find_above(import, at, &above, err);
		import->threads.items[at].above = above;
		if (above == IMPORT_NO_ID || import->threads.items[above].heads)
			break;
		import->threads.items[above].heads = true;
		at = above;
	}
	return status;
}

/* What the rows of a thread know of each other: the name, the order and what they are under.
 * Devices come last where the file does not order processes. */
static enum status complete_threads(struct import *import, struct err *err)
{
	const size_t all = import->threads.table.count;
	enum status status = ST_OK;

	for (size_t i = 0; i < all && status == ST_OK; i++) {
		struct import_thread *thread = &import->threads.items[i];
		struct import_process *process =
			thread->process == IMPORT_NO_ID ? NULL
							: &import->processes.items[thread->process];
		const struct import_thread *of = NULL;

		if (thread->device && process && !process->sorted)
			process->sort = DEVICE_SORT;
		if (thread->kind == IMPORT_PYTHON || thread->kind == IMPORT_SYNC)
			status = report__import_thread_beside(import, thread, &of, err);
		if (status != ST_OK)
			return status;
		if (of && !thread->name && of->name) {
			thread->name = mem_strdup(of->name);
			if (!thread->name)
				return err_nomem(err);
		}
		if (of)
			thread->sort = of->sort;
		/* ipuscope's own export names the parents; empty tracks may be some. */
		if (thread->exported)
			thread->used = true;
		else if (of && of->used)
			thread->above = (uint32_t)(of - import->threads.items);
		else if (thread->used)
			status = put_under(import, (uint32_t)i, err);
	}
	return status;
}

enum status report__import_tracks_open(struct import *import, struct err *err)
{
	const struct import_thread *items;
	uint32_t *list, *shared;
	size_t all, count = 0;
	bool good;

	if (err_stuck(err) || complete_threads(import, err) != ST_OK)
		return err->status;
	all = import->threads.table.count;
	items = import->threads.items;
	list = mem_calloc(all + 1, sizeof(*list));
	shared = mem_calloc(all + 1, sizeof(*shared));
	good = list && shared;
	/* Those with events are named first. */
	for (int used = 1; used >= 0 && good; used--) {
		const size_t first = count;

		for (size_t i = 0; i < all; i++)
			if (items[i].used == used && (used || items[i].heads))
				list[count++] = (uint32_t)i;
		if (used) {
			/* A recording makes rings of powers of two. */
			import->ring_slots = RING_MOST;
			while (import->ring_slots > RING_LEAST &&
			       import->ring_slots * count > RING_SLOTS)
				import->ring_slots /= 2;
		}
		qsort_r(list + first, count - first, sizeof(*list), compare_tracks, import);
		memset(shared, 0, (all + 1) * sizeof(*shared));
		good = count_names(import, list + first, count - first, shared);
		for (size_t i = first; i < count && good; i++)
			good = name_track(import, &import->threads.items[list[i]],
					  shared[i - first] > 1);
	}
	if (good)
		qsort_r(list, count, sizeof(*list), compare_tracks, import);
	for (size_t i = 0; i < count && good; i++) {
		struct import_thread *thread = &import->threads.items[list[i]];

		good = add_lane(import, thread, thread->track, NULL) != NULL;
	}
	mem_free(list);
	mem_free(shared);
	return good ? ST_OK : err_nomem(err);
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
