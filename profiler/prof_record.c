/*
 * Recordings: the public functions that are not on the hot path.
 *
 * Threads and locks: see prof_internal.h. A recording belongs to the process that opened it; in a
 * forked child every function here does nothing and returns 0.
 *
 * Tracks of threads: each thread that records has its own, found by the calling thread, and one set
 * of keys for all of them. A thread's state is shared by the thread and the lanes that are its, and
 * freed by the last of them: a recording may be closed before a thread ends, and a thread may end
 * before the recording is closed. A lane whose thread has ended goes to the next thread that asks
 * for one of its name, so that a program which starts threads without end has as many lanes as run
 * at one time. ips_recording.lock guards prof_lane.thread. The keys belong to the thread itself.
 */
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/pool.h"
#include "common/str.h"
#include "profiler/prof_internal.h"

#define LEAST_SLOTS 16u
#define MOST_SLOTS  (1u << 26)
#define RINGS       256 /* rings of the recording's ring_slots that all tracks' rings fit in */
#define RING_PART   64  /* a ring takes at most this part of what is left of that */

static const struct ips_keys no_keys = IPS_KEYS_NULL;
static uint64_t recordings; /* opened in this process */

void ips_recording_params_defaults(struct ips_recording_params *params)
{
	memset(params, 0, sizeof(*params));
	params->ring_slots = 65536;
	params->commit_ms = 100;
	params->finish_ms = 5000;
	params->row_queue_bytes = (uint64_t)64 * 1024 * 1024;
}

/* Copy @err's text to @message, or the text of its status if it has none; return the status. */
static int report_error(const struct err *err, char *message, size_t size)
{
	if (message && size > 0)
		str_copy(message, size,
			 err->text[0] != 0 ? err->text : ips_status_text((int)err->status));
	return (int)err->status;
}

static void remove_files(const char *path)
{
	static const char *const endings[] = {"", "-wal", "-shm", "-journal"};

	for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
		char *name = mem_printf("%s%s", path, endings[i]);

		if (name)
			unlink(name);
		mem_free(name);
	}
}

/* A thread that records. */
struct prof_thread {
	atomic_int holders; /* the thread itself, and its lanes */
	atomic_bool ended;
	uint64_t recording; /* `serial` of the recording that the keys are for; 0: none were set */
	struct ips_keys keys;
};

/* Accepts NULL. */
static void thread_release(struct prof_thread *thread)
{
	if (thread && atomic_fetch_sub(&thread->holders, 1) == 1)
		mem_free(thread);
}

static void lane_free(struct prof_lane *lane)
{
	if (lane->ring.slots)
		prof__lane_discard(lane);
	prof__lane_free_buffers(lane);
	thread_release(lane->thread);
	mem_free(lane->ring.slots);
	mem_free(lane->track);
	mem_free(lane->name);
	mem_free(lane->parent);
	mem_free(lane);
}

static void recording_free(struct ips_recording *recording)
{
	struct prof_lane *lane = recording->lanes;

	while (lane) {
		struct prof_lane *next = lane->next;

		lane_free(lane);
		lane = next;
	}
	map_fini(&recording->lane_names);
	prof_texts_fini(&recording->tensors);
	prof_texts_fini(&recording->tensor_names);
	mem_free(recording->command);
	mem_free(recording->path);
	mem_free(recording);
}

static enum status init_threading(struct ips_recording *recording, struct err *err)
{
	pthread_condattr_t monotonic;

	if (prof_queue_init(&recording->queue, recording->params.row_queue_bytes) != ST_OK)
		return err_nomem(err);
	pthread_mutex_init(&recording->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&recording->flushed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	sem_init(&recording->wake, 0, 0);
	sem_init(&recording->take_over, 0, 0);
	return ST_OK;
}

static void fini_threading(struct ips_recording *recording)
{
	sem_destroy(&recording->take_over);
	sem_destroy(&recording->wake);
	pthread_cond_destroy(&recording->flushed);
	pthread_mutex_destroy(&recording->lock);
	prof_queue_fini(&recording->queue);
}

static enum status recording_new(struct ips_recording **out, const char *path,
				 const struct ips_recording_params *params, struct err *err)
{
	struct ips_recording *recording = mem_aligned(1, sizeof(*recording));

	if (!recording)
		return err_nomem(err);
	if (params)
		recording->params = *params;
	else
		ips_recording_params_defaults(&recording->params);
	if (recording->params.commit_ms == 0)
		recording->params.commit_ms = 1;
	recording->path = mem_strdup(path);
	if (recording->params.command)
		recording->command = mem_strdup(recording->params.command);
	recording->params.command = recording->command;
	prof__claim(recording);
	recording->serial = __atomic_add_fetch(&recordings, 1, __ATOMIC_RELAXED);
	if (!recording->path || (params && params->command && !recording->command) ||
	    init_threading(recording, err) != ST_OK) {
		recording_free(recording);
		return err_nomem(err);
	}
	*out = recording;
	return ST_OK;
}

static enum status recording_start(struct ips_recording *recording)
{
	struct prof_writer *writer = &recording->writer;
	int code;

	if (prof__writer_open(writer, recording->path, &recording->params) != ST_OK)
		return writer->err.status;
	code = thread_start(&recording->standby, prof__standby_main, recording);
	if (code != 0)
		return err_set(&writer->err, ST_NOMEM, "start the writer's thread: %s",
			       strerror(code));
	code = thread_start(&recording->thread, prof__writer_main, recording);
	if (code == 0)
		return ST_OK;
	sem_post(&recording->take_over);
	pthread_join(recording->standby, NULL);
	return err_set(&writer->err, ST_NOMEM, "start the writer's thread: %s", strerror(code));
}

int ips_recording_open(struct ips_recording **out, const char *path,
		       const struct ips_recording_params *params, char *message, size_t size)
{
	const uint64_t begun = clock_ns();
	struct ips_recording *recording = NULL;
	struct err err = {ST_OK, ""};

	*out = NULL;
	if (message && size > 0)
		message[0] = 0;
	if (!path || path[0] == 0) {
		err_set(&err, ST_INVALID, "a recording needs a path");
		return report_error(&err, message, size);
	}
	if (recording_new(&recording, path, params, &err) != ST_OK)
		return report_error(&err, message, size);
	if (prof__writer_create(&recording->writer, path, &recording->params) == ST_OK) {
		if (recording_start(recording) == ST_OK) {
			ips_recording_spent(recording, (int64_t)(clock_ns() - begun), 1);
			*out = recording;
			return 0;
		}
		err_prefix(&recording->writer.err, "%s", path);
		prof__writer_close(&recording->writer);
		remove_files(path);
	}
	err = recording->writer.err;
	fini_threading(recording);
	recording_free(recording);
	return report_error(&err, message, size);
}

int ips_recording_close(struct ips_recording *recording, char *message, size_t size)
{
	const uint64_t begun = clock_ns();
	const struct prof_gaps *gaps;
	char text[ERR_TEXT_SIZE];
	struct err err;

	if (message && size > 0)
		message[0] = 0;
	if (!recording)
		return 0;
	gaps = &recording->writer.gaps;
	if (prof__is_child(recording)) {
		/* The database belongs to the parent: leave its handle alone. */
		recording_free(recording);
		return 0;
	}
	__atomic_store_n(&recording->stop, 1, __ATOMIC_RELEASE);
	sem_post(&recording->wake);
	pthread_join(recording->thread, NULL);
	pthread_join(recording->standby, NULL);
	/* All rows are written. Linking launches and finding the critical path need as much memory
	 * as the lanes' buffers. An import, whose memory is bounded, gives back the part of the heap
	 * that the writer's thread has; the heap of a program that records itself is its own. */
	for (struct prof_lane *lane = recording->lanes; lane; lane = lane->next)
		prof__lane_free_buffers(lane);
	if (recording->params.alone)
		malloc_trim(0);
	if (recording->failure.status == ST_OK)
		prof__writer_finish(recording, begun);
	prof__writer_close(&recording->writer);
	err = recording->failure;
	if (err.status == ST_OK && gaps->events + gaps->rows > 0) {
		prof__gaps_text(gaps, text, sizeof(text));
		err_set(&err, ST_NOSPACE, "%s: %s", recording->path, text);
	}
	fini_threading(recording);
	recording_free(recording);
	return err.status == ST_OK ? 0 : report_error(&err, message, size);
}

/* The lock is held. */
static const struct err *present_failure(const struct ips_recording *recording)
{
	return recording->failure.status != ST_OK ? &recording->failure : &recording->gap;
}

int ips_recording_status(struct ips_recording *recording, char *message, size_t size)
{
	struct err err;

	if (message && size > 0)
		message[0] = 0;
	if (!recording || prof__is_child(recording))
		return 0;
	pthread_mutex_lock(&recording->lock);
	err = *present_failure(recording);
	pthread_mutex_unlock(&recording->lock);
	return err.status == ST_OK ? 0 : report_error(&err, message, size);
}

void ips_recording_on_failure(struct ips_recording *recording,
			      void (*failed)(void *user, int status, const char *message),
			      void *user)
{
	struct err err;

	if (!recording || prof__is_child(recording))
		return;
	pthread_mutex_lock(&recording->lock);
	err = *present_failure(recording);
	recording->failed_call = err.status == ST_OK ? failed : NULL;
	recording->failed_user = user;
	pthread_mutex_unlock(&recording->lock);
	if (failed && err.status != ST_OK)
		failed(user, (int)err.status, err.text);
}

int ips_recording_flush(struct ips_recording *recording)
{
	const uint64_t begun = clock_ns();
	uint64_t ticket;
	int status;

	if (!recording || prof__is_child(recording))
		return 0;
	pthread_mutex_lock(&recording->lock);
	ticket = ++recording->flush_wanted;
	sem_post(&recording->wake);
	while (recording->flush_done < ticket && recording->failure.status == ST_OK &&
	       recording->gap.status == ST_OK)
		pthread_cond_wait(&recording->flushed, &recording->lock);
	status = (int)present_failure(recording)->status;
	pthread_mutex_unlock(&recording->lock);
	ips_recording_spent(recording, (int64_t)(clock_ns() - begun), 1);
	return status;
}

void ips_recording_spent(struct ips_recording *recording, int64_t ns, int whole)
{
	if (recording && ns > 0)
		__atomic_add_fetch(whole ? &recording->waited_ns : &recording->spent_ns, ns,
				   __ATOMIC_RELAXED);
}

int64_t ips_recording_now_ns(const struct ips_recording *recording)
{
	return !recording ? 0 : prof_clock_now(&recording->writer.clock);
}

uint64_t ips_monotonic_ns(void)
{
	return clock_ns();
}

const char *ips_status_text(int status)
{
	return status_text((enum status)status);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Return whether all NOT NULL columns have a value. */
static bool has_needed_values(const struct prof_row_type *type, const unsigned char *row)
{
	for (size_t i = 0; i < type->count; i++) {
		int64_t value;

		if (type->columns[i].kind != PROF_COLUMN_NEEDED)
			continue;
		memcpy(&value, row + type->columns[i].offset, sizeof(value));
		if (value == IPS_NULL)
			return false;
	}
	return true;
}

static void want_rows(void *user)
{
	struct ips_recording *recording = user;

	__atomic_store_n(&recording->rows_wanted, 1, __ATOMIC_RELEASE);
	prof__wake(recording);
}

/* Rows of a recording that is alone are written when they fill the queue, and with a flush: at a
 * time of the writer's choice, their texts would have other numbers in each recording, since those
 * of what tracks record are numbered along with them. */
static int put_rows(struct ips_recording *recording, unsigned table, const void *rows, size_t count)
{
	bool filling;
	int status = (int)prof_queue_put(&recording->queue, table, rows, count, want_rows,
					 recording, &filling);

	if (filling && recording->params.alone && status == ST_OK)
		return ips_recording_flush(recording);
	if (filling)
		prof__wake(recording);
	return status;
}

int ips_append(struct ips_recording *recording, enum ips_table table, const void *rows,
	       size_t count)
{
	const struct prof_row_type *type;

	if (!recording || count == 0 || prof__is_child(recording))
		return 0;
	if ((unsigned)table >= IPS_TABLES || !rows)
		return ST_INVALID;
	type = &prof_row_types[table];
	if (type->columns[0].kind == PROF_COLUMN_SPAN)
		return ST_INVALID;
	for (size_t i = 0; i < count; i++) {
		if (!has_needed_values(type, (const unsigned char *)rows + i * type->size))
			return ST_INVALID;
	}
	return put_rows(recording, (unsigned)table, rows, count);
}

int ips_meta_set(struct ips_recording *recording, const char *key, const char *value)
{
	static const char *const reserved[] = {"state", "schema_version", "pid", "host",
					       "process_start"};
	const struct prof_meta_row row = {key, value};

	if (!recording || prof__is_child(recording))
		return 0;
	if (!key || key[0] == 0)
		return ST_INVALID;
	for (size_t i = 0; i < ARRAY_LEN(reserved); i++) {
		if (strcmp(key, reserved[i]) == 0)
			return ST_INVALID;
	}
	return put_rows(recording, PROF_TABLE_META, &row, 1);
}

int64_t ips_tensor_add(struct ips_recording *recording, const struct ips_tensor *tensor)
{
	struct prof_tensor_row row;
	const char *texts[2];
	uint32_t ids[2] = {0};
	bool fresh, known = true;
	char both[24];

	if (!recording || !tensor || prof__is_child(recording))
		return IPS_NULL;
	row.tensor = *tensor;
	texts[0] = tensor->queue;
	texts[1] = tensor->key;
	pthread_mutex_lock(&recording->lock);
	for (int i = 0; i < 2; i++) {
		if (!texts[i])
			continue;
		ids[i] = prof_texts_add(&recording->tensor_names, texts[i], &fresh);
		known = known && ids[i] != 0;
		texts[i] = known ? recording->tensor_names.items[ids[i] - 1] : NULL;
	}
	snprintf(both, sizeof(both), "%" PRIu32 " %" PRIu32, ids[0], ids[1]);
	row.tensor_id = known ? (int64_t)prof_texts_add(&recording->tensors, both, &fresh) : 0;
	pthread_mutex_unlock(&recording->lock);
	if (row.tensor_id == 0)
		return IPS_NULL;
	row.tensor.queue = texts[0];
	row.tensor.key = texts[1];
	/* After a failure ids are still valid: appending rows returns the reason. */
	if (fresh)
		put_rows(recording, PROF_TABLE_TENSOR, &row, 1);
	return row.tensor_id;
}

/* ---- tracks ---------------------------------------------------------------------------------- */

static uint64_t ring_capacity(uint32_t slots)
{
	uint64_t capacity = LEAST_SLOTS;

	while (capacity < slots && capacity < MOST_SLOTS)
		capacity *= 2;
	return capacity;
}

/* Reserve a ring of @slots in the memory for all, and room for @bytes of names; a track that is
 * opened when much of the memory is used has a smaller ring. Return its slots; 0: the recording has
 * all the tracks, or names of tracks, that it may have. */
static uint64_t reserve_ring(struct ips_recording *recording, uint32_t slots, size_t bytes)
{
	const uint64_t slot = sizeof(struct ips_slot);
	const uint64_t all = RINGS * ring_capacity(recording->params.ring_slots) * slot;
	uint64_t capacity = ring_capacity(slots);

	pthread_mutex_lock(&recording->lock);
	while (capacity > LEAST_SLOTS &&
	       capacity * slot * RING_PART > all - min(recording->ring_bytes, all))
		capacity /= 2;
	if (recording->lane_count >= IPS_TRACKS_MOST ||
	    !prof_name_fits(&recording->lane_bytes, bytes)) {
		__atomic_add_fetch(&recording->tracks_refused, 1, __ATOMIC_RELAXED);
		capacity = 0;
	}
	recording->ring_bytes += capacity * slot;
	pthread_mutex_unlock(&recording->lock);
	return capacity;
}

/* Return a copy of what is kept of a track's name; NULL if out of memory. */
static char *copy_name(const char *name)
{
	const size_t length = prof_name_length(name);

	if (name[length] != 0)
		prof_name_lost();
	return mem_printf("%.*s", (int)length, name);
}

/* Return the lane of that name; NULL: none. */
static struct prof_lane *lane_named(const struct ips_recording *recording, const char *track)
{
	size_t at;

	MAP_FIND(at, &recording->lane_names, map_text(MAP_SEED, track),
		 strcmp(((const struct prof_lane *)at)->track, track) == 0);
	return at != MAP_NONE ? (struct prof_lane *)at : NULL;
}

/* Make the track's name unique; return false if out of memory. The lock is held. */
static bool lane_rename(struct ips_recording *recording, struct prof_lane *lane, const char *track)
{
	struct prof_lane *first = lane_named(recording, lane->track);
	const int length = (int)prof_name_length(track);

	/* The numbers that it has given are taken. */
	for (struct prof_lane *other = first; other; other = lane_named(recording, lane->track)) {
		mem_free(lane->track);
		lane->track = mem_printf("%.*s (%u)", length, track, ++first->named + 1);
		if (!lane->track)
			return false;
	}
	return map_add(&recording->lane_names, map_text(MAP_SEED, lane->track), (size_t)lane) == 0;
}

static struct ips_track *track_open(struct ips_recording *recording, const char *track,
				    const struct ips_track_params *params, int64_t pid, int64_t tid,
				    bool waits)
{
	struct prof_lane *lane;
	const char *name, *parent;
	uint64_t slots;

	if (!recording || prof__is_child(recording))
		return NULL;
	track = !track ? "track" : track;
	name = params && params->name ? params->name : track;
	parent = !params ? NULL : params->parent;
	slots = reserve_ring(recording,
			     params && params->ring_slots != 0 ? params->ring_slots
							       : recording->params.ring_slots,
			     prof_name_length(track) + prof_name_length(name) +
				     prof_name_length(parent));
	if (slots == 0)
		return NULL;
	lane = mem_aligned(1, sizeof(*lane));
	if (!lane)
		return NULL;
	lane->recording = recording;
	lane->pid = pid;
	lane->tid = tid;
	lane->waits = waits;
	lane->ring.slots = mem_aligned(slots, sizeof(struct ips_slot));
	lane->ring.mask = slots - 1;
	lane->keys = no_keys;
	lane->ipu = !params ? IPS_NULL : params->ipu;
	lane->clock = !params ? IPS_HOST : params->clock;
	lane->track = copy_name(track);
	lane->name = copy_name(name);
	lane->parent = !parent ? NULL : copy_name(parent);
	if (!lane->ring.slots || !lane->track || !lane->name || (parent && !lane->parent)) {
		lane_free(lane);
		return NULL;
	}
	pthread_mutex_lock(&recording->lock);
	if (!lane_rename(recording, lane, track)) {
		pthread_mutex_unlock(&recording->lock);
		lane_free(lane);
		return NULL;
	}
	lane->track_id = ++recording->lane_count;
	if (!recording->last_lane)
		recording->lanes = lane;
	else
		recording->last_lane->next = lane;
	recording->last_lane = lane;
	pthread_mutex_unlock(&recording->lock);
	prof__wake(recording);
	return &lane->ring;
}

struct ips_track *ips_track_open(struct ips_recording *recording, const char *track,
				 const struct ips_track_params *params)
{
	return track_open(recording, track, params, getpid(), syscall(SYS_gettid), false);
}

struct ips_track *ips_track_open_foreign(struct ips_recording *recording, const char *track,
					 const struct ips_track_params *params, int64_t pid,
					 int64_t tid)
{
	return track_open(recording, track, params, pid, tid, true);
}

/* ---- tracks of threads ----------------------------------------------------------------------- */

/* The track that the thread asked for last. */
struct last_track {
	uint64_t recording;
	bool unnamed;
	struct prof_lane *lane;
};

static pthread_once_t thread_key_once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;
static bool thread_key_made;
static _Thread_local struct prof_thread *mine;
static _Thread_local struct last_track last_track;

static void end_thread(void *of_thread)
{
	struct prof_thread *thread = of_thread;

	atomic_store(&thread->ended, true);
	thread_release(thread);
	mine = NULL;
	last_track.recording = 0;
}

static void make_key(void)
{
	thread_key_made = pthread_key_create(&thread_key, end_thread) == 0;
}

/* Return the calling thread's state; NULL if memory is short. */
static struct prof_thread *calling_thread(void)
{
	pthread_once(&thread_key_once, make_key);
	if (mine || !thread_key_made)
		return mine;
	mine = mem_calloc(1, sizeof(*mine));
	if (!mine)
		return NULL;
	atomic_init(&mine->holders, 1);
	mine->keys = no_keys;
	if (pthread_setspecific(thread_key, mine) != 0) {
		mem_free(mine);
		mine = NULL;
	}
	return mine;
}

/* The lane of @thread, or else of a thread that has ended, that was opened as @name; NULL: none.
 * The lock is held. */
static struct prof_lane *find_lane(struct ips_recording *recording, struct prof_thread *thread,
				   const char *name)
{
	const size_t length = prof_name_length(name);
	struct prof_lane *idle = NULL;

	for (struct prof_lane *lane = recording->lanes; lane; lane = lane->next) {
		if (!lane->thread || !prof_name_is(lane->name, name, length))
			continue;
		if (lane->thread == thread)
			return lane;
		if (!idle && atomic_load(&lane->thread->ended))
			idle = lane;
	}
	if (idle) {
		/* Its thread has ended: the spans that it left open end now. */
		while (idle->ring.open > 0 || idle->ring.skipping > 0)
			ips_span_end(&idle->ring);
		thread_release(idle->thread);
		idle->thread = thread;
		atomic_fetch_add(&thread->holders, 1);
	}
	return idle;
}

struct ips_track *ips_thread_track(struct ips_recording *recording, const char *name)
{
	const bool unnamed = !name;
	char system_name[17] = "";
	struct prof_thread *thread;
	struct prof_lane *lane;

	if (!recording)
		return NULL;
	if (last_track.recording == recording->serial &&
	    (unnamed ? last_track.unnamed : strcmp(last_track.lane->name, name) == 0))
		return &last_track.lane->ring;
	thread = prof__is_child(recording) ? NULL : calling_thread();
	if (!thread)
		return NULL;
	if (unnamed && prctl(PR_GET_NAME, system_name) == 0 && system_name[0] != '\0')
		name = system_name;
	name = !name ? "thread" : name;
	pthread_mutex_lock(&recording->lock);
	lane = find_lane(recording, thread, name);
	pthread_mutex_unlock(&recording->lock);
	if (!lane) {
		lane = (struct prof_lane *)ips_track_open(recording, name, NULL);
		if (!lane)
			return NULL;
		pthread_mutex_lock(&recording->lock);
		lane->thread = thread;
		pthread_mutex_unlock(&recording->lock);
		atomic_fetch_add(&thread->holders, 1);
	}
	ips_track_set_keys(&lane->ring,
			   thread->recording == recording->serial ? &thread->keys : NULL);
	last_track = (struct last_track){recording->serial, unnamed, lane};
	return &lane->ring;
}

/* The lane of @thread after @lane (NULL: the first); NULL: there is none. Keys are set without the
 * lock, which a full ring may need. */
static struct prof_lane *next_lane(struct ips_recording *recording, struct prof_lane *lane,
				   const struct prof_thread *thread)
{
	pthread_mutex_lock(&recording->lock);
	lane = !lane ? recording->lanes : lane->next;
	while (lane && lane->thread != thread)
		lane = lane->next;
	pthread_mutex_unlock(&recording->lock);
	return lane;
}

void ips_thread_set_keys(struct ips_recording *recording, const struct ips_keys *keys)
{
	struct prof_thread *thread =
		!recording || prof__is_child(recording) ? NULL : calling_thread();

	if (!thread)
		return;
	thread->recording = recording->serial;
	thread->keys = !keys ? no_keys : *keys;
	for (struct prof_lane *lane = next_lane(recording, NULL, thread); lane;
	     lane = next_lane(recording, lane, thread))
		ips_track_set_keys(&lane->ring, &thread->keys);
}

void ips_thread_keys(const struct ips_recording *recording, struct ips_keys *out)
{
	*out = recording && mine && mine->recording == recording->serial ? mine->keys : no_keys;
}
