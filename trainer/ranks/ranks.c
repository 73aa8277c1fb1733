/*
 * Detects the launcher that started this process, opens its plugin, and runs the thread that calls
 * the transport.
 *
 * Threading: a mutex guards the queue of operations; only the thread uses the transport and the
 * heartbeats. Whoever waits yields for a while before it sleeps, until a flag is set that is
 * written under the mutex.
 */
#include "trainer/ranks/ranks.h"

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/clock.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/pool.h"
#include "trainer/train_stop.h"

#define RANKS_NAME       64
#define RANKS_EAGER_NS   50000       /* an operation is polled without sleeping for this long */
#define RANKS_AWAITED_NS 20000000    /* likewise, while a thread waits for one */
#define RANKS_SPIN_NS    50000       /* yield for this long before sleeping: waking costs more */
#define RANKS_REST_NS    20000       /* sleep between two polls of a longer operation */
#define RANKS_GIVE_UP_NS 30000000000 /* how long an interrupted run waits for other ranks */
#define RANKS_BEATS      8           /* heartbeats within the timeout */
#define RANKS_LEAVE_NS   1000000     /* between two polls of a rank that only waits to leave */

enum ranks_kind {
	RANKS_CHANNEL,
	RANKS_EXCHANGE,
	RANKS_REDUCE,
	RANKS_GATHER,
	RANKS_BROADCAST,
	RANKS_WATCH,
	RANKS_ABORT,
	RANKS_FINISH
};

/* On the stack of the thread that waits for it, or in a reduction. */
struct ranks_operation {
	enum ranks_kind kind;
	int channel; /* or the argument of abort(), or the seconds of a watch */
	const struct ranks_pieces *send, *receive;
	void *data;
	int words;
	struct ranks_request request;
	atomic_bool done;
	int failed;
	struct ranks_reduction *reduction;
	struct ranks_operation *next;
};

struct ranks_reduction {
	struct ranks_operation operation;
	struct ranks_reduction_params params;
	int64_t turn; /* of its line */
	bool exchanged, gathers;
	atomic_bool summed;
	struct ranks_times times;
};

/* The content of a heartbeat. */
enum {
	RANKS_HERE,
	RANKS_LEAVES
};

/* Heartbeats: each rank sends them to the next one, and expects those of the previous one. Times
 * are local to the thread. */
struct ranks_watch {
	uint64_t timeout_ns; /* 0: no heartbeats */
	uint64_t checked_ns, received_ns;
	int32_t sent, received;
	struct ranks_request sending, receiving;
	bool sends;         /* `sent` is being sent */
	bool leaving, gone; /* this rank leaves; the previous one has sent that it does */
	bool stopped;       /* this process was stopped (SIGSTOP) for a while */
};

struct ranks {
	void *library;
	const struct ranks_transport *transport;
	int rank, count;
	int channels;
	char name[RANKS_NAME];
	struct ranks_watch watch; /* used by the thread only */
	pthread_t thread;
	bool started;
	pthread_mutex_t lock;
	pthread_cond_t posted, ended;
	struct ranks_operation *queue, **last; /* posted, not yet begun */
	atomic_bool queued;                    /* the queue is not empty */
	atomic_int waiting;                    /* threads that wait for an operation */
	bool ready, failed;                    /* the transport has started, or failed to */
};

/* Environment variables that launchers set for their processes. */
static const struct ranks_launcher {
	const char *variable;
	bool counts; /* the value is the number of processes */
	const char *plugin, *name, *package;
} launchers[] = {
	{"OMPI_COMM_WORLD_SIZE", true, "ranks-openmpi.so", "Open MPI", "libopenmpi-dev"},
	{"PMI_SIZE", true, "ranks-mpich.so", "MPICH", "libmpich-dev"},
	{"PMIX_RANK", false, "ranks-openmpi.so", "Open MPI", "libopenmpi-dev"},
};

static const struct ranks_launcher *find_launcher(void)
{
	for (size_t i = 0; i < ARRAY_LEN(launchers); i++)
		if (getenv(launchers[i].variable))
			return &launchers[i];
	return NULL;
}

bool ranks_launched(void)
{
	return find_launcher() != NULL;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void begin_watch(struct ranks *ranks, int timeout_s)
{
	struct ranks_watch *watch = &ranks->watch;

	watch->timeout_ns = (uint64_t)timeout_s * 1000000000;
	watch->checked_ns = watch->received_ns = clock_ns();
	ranks->transport->receive((ranks->rank + ranks->count - 1) % ranks->count, &watch->received,
				  &watch->receiving);
}

/* Receive the previous rank's heartbeats; abort the run if they are overdue. */
static void receive_beats(struct ranks *ranks, uint64_t now)
{
	struct ranks_watch *watch = &ranks->watch;
	const int before = (ranks->rank + ranks->count - 1) % ranks->count;

	/* A process that was stopped (SIGSTOP) could not receive heartbeats meanwhile. */
	if (now - watch->checked_ns > watch->timeout_ns / 2) {
		watch->received_ns = now;
		watch->stopped = true;
	}
	while (!watch->gone && ranks->transport->done(&watch->receiving)) {
		watch->received_ns = now;
		watch->gone = watch->received == RANKS_LEAVES;
		if (!watch->gone)
			ranks->transport->receive(before, &watch->received, &watch->receiving);
	}
	watch->checked_ns = now;
	if (watch->gone || now - watch->received_ns < watch->timeout_ns)
		return;
	/* If this process was stopped, the others have ended the run and the launcher terminates
	 * it. */
	if (!watch->stopped || !train_interrupted())
		fprintf(stderr,
			"ipu-train: rank %d has sent no sign of life for %d s "
			"(distribution.timeout_s): rank %d ends the run on all ranks\n",
			before, (int)(watch->timeout_ns / 1000000000), ranks->rank);
	ranks->transport->abort(1);
}

static uint64_t beat_ns(const struct ranks *ranks)
{
	return ranks->watch.timeout_ns / RANKS_BEATS;
}

/* Send and receive due heartbeats; return true if this rank may leave: both neighbours know. */
static bool beat(struct ranks *ranks)
{
	struct ranks_watch *watch = &ranks->watch;
	const uint64_t now = clock_ns();

	if (!watch->timeout_ns)
		return watch->leaving;
	if (!watch->leaving && now - watch->checked_ns < beat_ns(ranks))
		return false;
	receive_beats(ranks, now);
	if (watch->sends && ranks->transport->done(&watch->sending))
		watch->sends = false;
	if (!watch->sends && watch->sent == RANKS_HERE) {
		watch->sent = watch->leaving ? RANKS_LEAVES : RANKS_HERE;
		watch->sends = true;
		ranks->transport->send((ranks->rank + 1) % ranks->count, &watch->sent,
				       &watch->sending);
	}
	return watch->sent == RANKS_LEAVES && !watch->sends && watch->gone;
}

/* Yield the processor until @flag is set; return false if that takes too long. */
static bool spin_for(const atomic_bool *flag)
{
	const uint64_t until = clock_ns() + RANKS_SPIN_NS;

	while (!atomic_load(flag) && clock_ns() < until)
		sched_yield();
	return atomic_load(flag);
}

/* Begin an operation; return true if it is complete already. */
static bool begin_operation(struct ranks *ranks, struct ranks_operation *o)
{
	const struct ranks_transport *transport = ranks->transport;

	switch (o->kind) {
	case RANKS_EXCHANGE:
	case RANKS_REDUCE:
		transport->exchange(o->channel, o->send, o->receive, &o->request);
		return false;
	case RANKS_GATHER:
		transport->gather(o->channel, o->receive, &o->request);
		return false;
	case RANKS_BROADCAST:
		transport->broadcast(o->channel, o->data, o->words, &o->request);
		return false;
	case RANKS_CHANNEL:
		o->failed = transport->channel(o->channel, &o->request);
		return o->failed != 0;
	case RANKS_WATCH:
		begin_watch(ranks, o->channel);
		return true;
	case RANKS_ABORT:
		transport->abort(o->channel);
		return true;
	case RANKS_FINISH:
		ranks->watch.leaving = true;
		return true;
	}
	return true;
}

static void end_operation(struct ranks *ranks, struct ranks_operation *o)
{
	pthread_mutex_lock(&ranks->lock);
	atomic_store(&o->done, true);
	pthread_cond_broadcast(&ranks->ended);
	pthread_mutex_unlock(&ranks->lock);
}

/* Return the posted operations in order; with @wait wait for one, or until a heartbeat is due. */
static struct ranks_operation *dequeue_posted(struct ranks *ranks, bool wait)
{
	const uint64_t rest = ranks->watch.leaving ? RANKS_LEAVE_NS : beat_ns(ranks);
	const uint64_t until = clock_ns() + rest;
	const struct timespec time = {.tv_sec = (time_t)(until / 1000000000),
				      .tv_nsec = (long)(until % 1000000000)};
	struct ranks_operation *all;

	if (wait)
		spin_for(&ranks->queued);
	pthread_mutex_lock(&ranks->lock);
	while (wait && !ranks->queue) {
		if (!rest)
			pthread_cond_wait(&ranks->posted, &ranks->lock);
		else
			wait = pthread_cond_timedwait(&ranks->posted, &ranks->lock, &time) == 0;
	}
	all = ranks->queue;
	ranks->queue = NULL;
	ranks->last = &ranks->queue;
	atomic_store(&ranks->queued, false);
	pthread_mutex_unlock(&ranks->lock);
	return all;
}

/* Gathers of a line begin in the order of their reductions, whichever exchange ended first. */
static bool reduction_done(struct ranks *ranks, struct ranks_operation *o)
{
	struct ranks_reduction *r = o->reduction;
	struct ranks_line *line = r->params.line;

	if (r->gathers)
		return ranks->transport->done(&o->request);
	if (!r->exchanged) {
		if (!ranks->transport->done(&o->request))
			return false;
		r->exchanged = true;
		r->times.exchanged_ns = clock_ns();
		r->params.sum(r->params.user);
		pthread_mutex_lock(&ranks->lock);
		r->times.summed_ns = clock_ns();
		atomic_store(&r->summed, true);
		pthread_cond_broadcast(&ranks->ended);
		pthread_mutex_unlock(&ranks->lock);
	}
	if (!r->params.all)
		return true;
	if (line->gather != r->turn)
		return false;
	line->gather++;
	r->gathers = true;
	ranks->transport->gather(line->channel + 1, r->params.all, &o->request);
	return false;
}

static bool done(struct ranks *ranks, struct ranks_operation *o)
{
	if (o->kind != RANKS_REDUCE)
		return ranks->transport->done(&o->request);
	if (!reduction_done(ranks, o))
		return false;
	o->reduction->times.ended_ns = clock_ns();
	return true;
}

/* Poll the active operations; return whether any has ended. */
static bool poll_active(struct ranks *ranks, struct ranks_operation **active)
{
	bool any = false;

	while (*active) {
		struct ranks_operation *o = *active;

		if (!done(ranks, o)) {
			active = &o->next;
			continue;
		}
		*active = o->next; /* before end_operation(), after which its owner may free it */
		end_operation(ranks, o);
		any = true;
	}
	return any;
}

/* Abort an interrupted run after a timeout: a rank that is gone never answers. With heartbeats this
 * is not needed, since they distinguish it from a slow one. */
static void check_interrupt(struct ranks *ranks, uint64_t *since)
{
	const uint64_t now = clock_ns();

	if (!train_interrupted() || ranks->watch.timeout_ns)
		*since = now;
	if (now - *since < RANKS_GIVE_UP_NS)
		return;
	fprintf(stderr,
		"ipu-train: rank %d: interrupted, and the other ranks do not answer: giving up\n",
		ranks->rank);
	ranks->transport->abort(1);
}

/* While a thread waits, this one has nothing better to do with its core than to poll. */
static uint64_t eager_ns(struct ranks *ranks)
{
	return atomic_load(&ranks->waiting) > 0 ? RANKS_AWAITED_NS : RANKS_EAGER_NS;
}

static void *ranks_main(void *argument)
{
	struct ranks *ranks = argument;
	struct ranks_operation *active = NULL;
	uint64_t progress, since;

	ranks->failed = ranks->transport->start(&ranks->rank, &ranks->count, ranks->name,
						sizeof(ranks->name)) != 0;
	pthread_mutex_lock(&ranks->lock);
	ranks->ready = true;
	pthread_cond_broadcast(&ranks->ended);
	pthread_mutex_unlock(&ranks->lock);
	progress = since = clock_ns();
	while (!ranks->failed && !beat(ranks)) {
		struct ranks_operation *posted = dequeue_posted(ranks, !active), *next;

		if (!active)
			since = clock_ns();
		for (; posted; posted = next) {
			next = posted->next;
			progress = clock_ns();
			if (begin_operation(ranks, posted)) {
				end_operation(ranks, posted);
			} else {
				posted->next = active;
				active = posted;
			}
		}
		if (poll_active(ranks, &active)) {
			progress = clock_ns();
		} else if (active && clock_ns() - progress < eager_ns(ranks)) {
			sched_yield();
		} else if (active) {
			nanosleep(&(struct timespec){.tv_nsec = RANKS_REST_NS}, NULL);
			check_interrupt(ranks, &since);
		}
	}
	if (!ranks->failed)
		ranks->transport->finish();
	return NULL;
}

/* ---- functions of the other threads ---------------------------------------------------------- */

static void enqueue(struct ranks *ranks, struct ranks_operation *o)
{
	pthread_mutex_lock(&ranks->lock);
	*ranks->last = o;
	ranks->last = &o->next;
	atomic_store(&ranks->queued, true);
	pthread_cond_signal(&ranks->posted);
	pthread_mutex_unlock(&ranks->lock);
}

static void wait_for(struct ranks *ranks, const atomic_bool *flag)
{
	atomic_fetch_add(&ranks->waiting, 1);
	if (!spin_for(flag)) {
		pthread_mutex_lock(&ranks->lock);
		while (!atomic_load(flag))
			pthread_cond_wait(&ranks->ended, &ranks->lock);
		pthread_mutex_unlock(&ranks->lock);
	}
	atomic_fetch_sub(&ranks->waiting, 1);
}

static void post(struct ranks *ranks, struct ranks_operation *o)
{
	enqueue(ranks, o);
	wait_for(ranks, &o->done);
}

int ranks_rank(const struct ranks *ranks)
{
	return ranks ? ranks->rank : 0;
}

int ranks_count(const struct ranks *ranks)
{
	return ranks ? ranks->count : 1;
}

const char *ranks_transport_name(const struct ranks *ranks)
{
	return ranks ? ranks->name : NULL;
}

size_t ranks_cut(const struct ranks *ranks, size_t count, int rank)
{
	return count * (size_t)rank / (size_t)ranks_count(ranks);
}

enum status ranks_pieces_new(struct ranks_pieces *out, const struct ranks *ranks, void *base,
			     struct err *err)
{
	const size_t count = (size_t)ranks_count(ranks);

	out->base = base;
	out->words = mem_calloc(count, sizeof(*out->words));
	out->at = mem_calloc(count, sizeof(*out->at));
	return !out->words || !out->at ? err_nomem(err) : ST_OK;
}

void ranks_pieces_fini(struct ranks_pieces *pieces)
{
	mem_free(pieces->words);
	mem_free(pieces->at);
}

enum status ranks_channels(struct ranks *ranks, int count, struct err *err)
{
	for (; ranks && ranks->channels < count; ranks->channels++) {
		struct ranks_operation o = {.kind = RANKS_CHANNEL, .channel = ranks->channels};

		post(ranks, &o);
		if (o.failed)
			return err_nomem(err);
	}
	return ST_OK;
}

void ranks_watch(struct ranks *ranks, int64_t timeout_s)
{
	struct ranks_operation o = {.kind = RANKS_WATCH, .channel = (int)timeout_s};

	if (ranks && timeout_s > 0)
		post(ranks, &o);
}

void ranks_exchange(struct ranks *ranks, int channel, const struct ranks_pieces *send,
		    const struct ranks_pieces *receive)
{
	struct ranks_operation o = {
		.kind = RANKS_EXCHANGE, .channel = channel, .send = send, .receive = receive};

	assert(ranks);
	post(ranks, &o);
}

void ranks_gather(struct ranks *ranks, int channel, const struct ranks_pieces *all)
{
	struct ranks_operation o = {.kind = RANKS_GATHER, .channel = channel, .receive = all};

	if (ranks)
		post(ranks, &o);
}

void ranks_broadcast(struct ranks *ranks, int channel, void *data, size_t bytes)
{
	struct ranks_operation o = {.kind = RANKS_BROADCAST,
				    .channel = channel,
				    .data = data,
				    .words = (int)(bytes / sizeof(int32_t))};

	assert(bytes % sizeof(int32_t) == 0 && bytes / sizeof(int32_t) <= INT32_MAX);
	if (ranks)
		post(ranks, &o);
}

enum status ranks_reduction_new(struct ranks_reduction **out,
				const struct ranks_reduction_params *params, struct err *err)
{
	*out = mem_calloc(1, sizeof(**out));
	if (!*out)
		return err_nomem(err);
	(*out)->params = *params;
	return ST_OK;
}

void ranks_reduction_free(struct ranks_reduction *reduction)
{
	mem_free(reduction);
}

void ranks_reduce(struct ranks *ranks, struct ranks_reduction *reduction)
{
	reduction->operation = (struct ranks_operation){.kind = RANKS_REDUCE,
							.channel = reduction->params.line->channel,
							.send = reduction->params.out,
							.receive = reduction->params.in,
							.reduction = reduction};
	reduction->turn = reduction->params.line->begun++;
	reduction->exchanged = reduction->gathers = false;
	atomic_store(&reduction->summed, false);
	reduction->times = (struct ranks_times){.begun_ns = clock_ns()};
	enqueue(ranks, &reduction->operation);
}

const struct ranks_times *ranks_reduce_summed(struct ranks *ranks,
					      struct ranks_reduction *reduction)
{
	wait_for(ranks, &reduction->summed);
	return &reduction->times;
}

void ranks_reduce_wait(struct ranks *ranks, struct ranks_reduction *reduction)
{
	wait_for(ranks, &reduction->operation.done);
}

void ranks_abort(struct ranks *ranks, int code)
{
	struct ranks_operation o = {.kind = RANKS_ABORT, .channel = code};

	if (ranks)
		post(ranks, &o);
}

/* ---- life cycle ------------------------------------------------------------------------------ */

/* RTLD_GLOBAL: Open MPI's own plugins need its symbols to be visible in the whole program. */
static enum status open_plugin(struct ranks *ranks, const struct ranks_launcher *launcher,
			       struct err *err)
{
	static const char *const folders[] = {"../lib/ipuscope", IPUSCOPE_PLUGINS};
	char relative[FS_PATH_SIZE], path[FS_PATH_SIZE];
	bool found = false;

	for (size_t i = 0; i < ARRAY_LEN(folders) && !found; i++)
		found = fs_path(relative, "%s/%s", folders[i], launcher->plugin) &&
			fs_beside_program(path, relative);
	if (!found)
		return err_set(
			err, ST_UNSUPPORTED,
			"started by %s's launcher, but this ipu-train is built without it: install "
			"%s and build again",
			launcher->name, launcher->package);
	ranks->library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!ranks->library)
		return err_set(err, ST_FAILED, "%s: build ipuscope again, or install it again",
			       dlerror());
	ranks->transport = dlsym(ranks->library, RANKS_TRANSPORT_SYMBOL);
	if (!ranks->transport || ranks->transport->version != RANKS_TRANSPORT_VERSION)
		return err_set(
			err, ST_FAILED,
			"%s: of another version of ipuscope than ipu-train: install both again",
			path);
	return ST_OK;
}

static enum status start(struct ranks *ranks, const struct ranks_launcher *launcher,
			 struct err *err)
{
	if (thread_start(&ranks->thread, ranks_main, ranks) != 0)
		return err_set(err, ST_FAILED, "%s: cannot start a thread", launcher->name);
	ranks->started = true;
	pthread_mutex_lock(&ranks->lock);
	while (!ranks->ready)
		pthread_cond_wait(&ranks->ended, &ranks->lock);
	pthread_mutex_unlock(&ranks->lock);
	if (ranks->failed)
		return err_set(err, ST_FAILED, "%s: MPI_Init_thread failed", launcher->name);
	return ranks_channels(ranks, 1, err);
}

enum status ranks_open(struct ranks **out, struct err *err)
{
	const struct ranks_launcher *launcher = find_launcher();
	pthread_condattr_t monotonic;
	enum status status;
	struct ranks *ranks;

	*out = NULL;
	if (!launcher || (launcher->counts && atoi(getenv(launcher->variable)) < 2))
		return ST_OK;
	ranks = mem_calloc(1, sizeof(*ranks));
	if (!ranks)
		return err_nomem(err);
	ranks->count = 1;
	ranks->last = &ranks->queue;
	pthread_mutex_init(&ranks->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&ranks->posted, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_cond_init(&ranks->ended, NULL);
	status = open_plugin(ranks, launcher, err);
	if (status == ST_OK)
		status = start(ranks, launcher, err);
	/* Some launchers do not tell in advance that there is only one process. */
	if (status != ST_OK || ranks->count < 2) {
		ranks_close(ranks);
		return status;
	}
	*out = ranks;
	return ST_OK;
}

/* The library stays loaded: MPI leaves threads and handlers behind that use its code. */
void ranks_close(struct ranks *ranks)
{
	struct ranks_operation o = {.kind = RANKS_FINISH};

	if (!ranks)
		return;
	if (ranks->started && !ranks->failed)
		post(ranks, &o);
	if (ranks->started)
		pthread_join(ranks->thread, NULL);
	pthread_mutex_destroy(&ranks->lock);
	pthread_cond_destroy(&ranks->posted);
	pthread_cond_destroy(&ranks->ended);
	mem_free(ranks);
}
