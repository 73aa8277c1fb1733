/*
 * Tracks of threads: each thread that records has its own, found by the calling thread, and one set
 * of keys for all of them.
 *
 * A thread's state is shared by the thread and the lanes that are its, and freed by the last of
 * them: a recording may be closed before a thread ends, and a thread may end before the recording
 * is closed. A lane whose thread has ended goes to the next thread that asks for one of its name,
 * so that a program which starts threads without end has as many lanes as run at one time.
 *
 * ips_recording.lock guards prof_lane.thread. The keys belong to the thread itself.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>

#include "common/mem.h"
#include "profiler/prof_internal.h"

struct prof_thread {
	atomic_int holders; /* the thread itself, and its lanes */
	atomic_bool ended;
	uint64_t recording; /* `serial` of the recording that the keys are for; 0: none were set */
	struct ips_keys keys;
};

/* The track that the thread asked for last. */
struct last_track {
	uint64_t recording;
	bool unnamed;
	struct prof_lane *lane;
};

static const struct ips_keys no_keys = IPS_KEYS_NULL;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_made;
static _Thread_local struct prof_thread *mine;
static _Thread_local struct last_track last;

void prof__thread_release(struct prof_thread *thread)
{
	if (thread && atomic_fetch_sub(&thread->holders, 1) == 1)
		mem_free(thread);
}

static void end_thread(void *of_thread)
{
	struct prof_thread *thread = of_thread;

	atomic_store(&thread->ended, true);
	prof__thread_release(thread);
	mine = NULL;
	last.recording = 0;
}

static void make_key(void)
{
	key_made = pthread_key_create(&key, end_thread) == 0;
}

/* Return the calling thread's state; NULL if memory is short. */
static struct prof_thread *calling_thread(void)
{
	pthread_once(&key_once, make_key);
	if (mine || !key_made)
		return mine;
	mine = mem_calloc(1, sizeof(*mine));
	if (!mine)
		return NULL;
	atomic_init(&mine->holders, 1);
	mine->keys = no_keys;
	if (pthread_setspecific(key, mine) != 0) {
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
	struct prof_lane *idle = NULL;

	for (struct prof_lane *lane = recording->lanes; lane; lane = lane->next) {
		if (!lane->thread || strcmp(lane->name, name) != 0)
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
		prof__thread_release(idle->thread);
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
	if (last.recording == recording->serial &&
	    (unnamed ? last.unnamed : strcmp(last.lane->name, name) == 0))
		return &last.lane->ring;
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
	last = (struct last_track){recording->serial, unnamed, lane};
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

/* ---- for languages that cannot use inline functions of C ------------------------------------- */

void ips_track_begin(struct ips_track *track, struct ips_site *site)
{
	ips_span_begin(track, site);
}

void ips_track_end(struct ips_track *track)
{
	ips_span_end(track);
}
