/*
 * ipuscope/profiler.h: record what a program does, and when, into one SQLite file.
 *
 * For any C11 or C++11 program (GCC or Clang); ipuscope/profiler.hpp adds classes for C++. Link
 * with `pkg-config --libs ipuscope` or CMake's ipuscope::profiler. The file can be read while it is
 * written, after a crash, and when complete: with ipu-view, ipu-report and sqlite3.
 *
 *	#include <ipuscope/profiler.h>
 *
 *	int record_work(int items, void (*work)(int item))
 *	{
 *		struct ips_recording *recording;
 *		struct ips_track *track;
 *		char message[512];
 *
 *		if (ips_recording_open(&recording, "run.db", NULL, message, sizeof(message)) != 0)
 *			return -1;
 *		track = ips_track_open(recording, "worker 0", NULL);
 *		for (int item = 0; item < items; item++) {
 *			IPS_SITE(load, "data", "load batch");
 *			ips_span_begin(track, &load);
 *			work(item);
 *			ips_span_end(track);
 *		}
 *		return ips_recording_close(recording, message, sizeof(message));
 *	}
 *
 * Off: with a NULL recording or track every call does nothing and costs one predictable branch.
 *
 * Threads: a track has one producing thread at a time. Everything else may be called from any
 * thread. Spans, instants and counters never block: when a track's ring is full they are dropped
 * and counted (view `overhead`), and so are those that a signal handler records while it interrupts
 * a call on the same track. Rows (ips_append_*) are never dropped: they block until there is room,
 * and a signal handler must not append any.
 *
 * Times are ns from the run's start (ips_recording_open). Host times are recorded as raw
 * processor ticks and converted by the writer.
 *
 * Functions that can fail return 0 or a positive status; ips_status_text() returns its text.
 */
#ifndef IPUSCOPE_PROFILER_H
#define IPUSCOPE_PROFILER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define IPS_API __attribute__((visibility("default")))

/* "Not applicable or unknown" in an integer field; stored as NULL. In a text field use the null
 * pointer, in a real field NaN. */
#define IPS_NULL INT64_MIN

enum ips_clock {
	IPS_HOST = 0,
	IPS_DEVICE = 1
};
enum ips_mode {
	IPS_MODE_NULL = 0,
	IPS_TRAIN = 1,
	IPS_EVALUATE = 2,
	IPS_PREDICT = 3
};

/* The phase of a stage's work on a micro-batch or its weights, by the letters of the column
 * `phase`; 0: unknown. */
enum ips_phase {
	IPS_FORWARD = 'F',
	IPS_BACKWARD = 'B', /* if it is split, the part that computes the gradient of the inputs */
	IPS_WEIGHTS = 'W',  /* and the part that computes that of the weights */
	IPS_RECOMPUTATION = 'R',
	IPS_UPDATE = 'U'
};

/* Keys: when and where. Start from IPS_KEYS_NULL and set the known members. */
struct ips_keys {
	int64_t epoch;         /* from 1 */
	int64_t execution;     /* from 0 over the run */
	int64_t weight_update; /* from 0 */
	int64_t step;          /* from 0 over a mode */
	int64_t microbatch;    /* step modulo accumulation count */
	int64_t replica, ipu, stage;
	uint8_t mode; /* enum ips_mode */
	char phase;   /* enum ips_phase; 0: unknown */
};
#define IPS_KEYS_NULL                                                                              \
	{                                                                                          \
		IPS_NULL, IPS_NULL, IPS_NULL, IPS_NULL, IPS_NULL, IPS_NULL, IPS_NULL, IPS_NULL, 0, \
			0                                                                          \
	}

/* ---- recordings ------------------------------------------------------------------------------ */

struct ips_recording; /* opaque */

/* What a commit has made safe against the death of this process. Totals since the start. */
struct ips_commit {
	uint64_t number;                          /* from 1 */
	uint64_t spans, instants, counters, rows; /* in the file */
	uint64_t dropped; /* lost because rings were full, or times contradicted earlier ones */
	uint64_t bytes;   /* of the database and its write-ahead log */
	/* Everything recorded before this ips_monotonic_ns() is in the file. */
	uint64_t safe_ns;
	/* How long the oldest of what this commit made safe had waited. More than commit_ms: disk or
	 * processor do not keep up, and as much would be lost with the process. INT64_MIN: unknown. */
	int64_t lag_ns;
};

struct ips_recording_params {
	const char *command;      /* stored in meta; NULL: unknown */
	int64_t rank;             /* of this process in a group, from 0 */
	uint32_t ring_slots;      /* of 32 bytes, for each track; rounded up to a power of two;
				   * default 65536 */
	uint32_t commit_ms;       /* longest time between commits; default 100 */
	uint32_t finish_ms;       /* longest time ips_recording_close() spends on indexes, which is
				   * also at most a fiftieth of the recording's; default 5000 */
	uint64_t row_queue_bytes; /* limit of queued rows; beyond it, ips_append_* blocks; default
				   * 64 MiB */
	/* Called on the writer's thread after each commit; must not call back into this library. */
	void (*on_commit)(void *user, const struct ips_commit *commit);
	void *user;
	int alone; /* 1: recording is all that the program does. No process may read the file
		    * meanwhile, and a crash may leave it damaged: without a write-ahead log it is
		    * written once, not twice, and the writer does not yield. Events that one thread
		    * records on tracks of ips_track_open_foreign() give the same rows in every
		    * run. */
};

/* The defaults: no command, rank 0, 65,536 slots, 100 ms, 5,000 ms, 64 MiB, no callback. */
IPS_API void ips_recording_params_defaults(struct ips_recording_params *params);

/* Create the database @path, which must not exist. @params may be NULL (defaults). On failure *@out
 * is NULL, no file is left, and @message (of @size bytes; may be NULL) has the reason; otherwise
 * @message is "". */
IPS_API int ips_recording_open(struct ips_recording **out, const char *path,
			       const struct ips_recording_params *params, char *message,
			       size_t size);

/* Commit everything recorded, finish the file, free the recording and its tracks. Accepts NULL.
 * No other thread may use the recording any more. Returns 0, or the first failure of the whole
 * recording: then the file is readable but incomplete. A disk that was full for a while is such a
 * failure if something is missing. The reason is copied to @message (may be NULL). */
IPS_API int ips_recording_close(struct ips_recording *recording, char *message, size_t size);

/* Return 0, or the status of the failure that ended writing, with its text in @message. While the
 * disk is full it is "no space": events and rows wait in memory, what has no room there is counted
 * and dropped, and writing goes on when there is space again. */
IPS_API int ips_recording_status(struct ips_recording *recording, char *message, size_t size);

/* Call @failed (NULL: nobody) once, as soon as writing fails, with the status and the message of
 * ips_recording_status(): on the writer's thread, or within this call if it has failed already.
 * It must not call this library. */
IPS_API void ips_recording_on_failure(struct ips_recording *recording,
				      void (*failed)(void *user, int status, const char *message),
				      void *user);

/* Wait until everything recorded before the call is committed. Blocks. */
IPS_API int ips_recording_flush(struct ips_recording *recording);

/*
 * Report that the program itself spent @ns for the recording, on sums over recorded values or on
 * files beside it: the view `overhead` adds it to the cost of recording. @whole 1: the whole run
 * waited; 0: one of the recording threads, which run in parallel, spent it. Any thread.
 */
IPS_API void ips_recording_spent(struct ips_recording *recording, int64_t ns, int whole);

/* Current time in ns since the run's start. 0 for NULL. */
IPS_API int64_t ips_recording_now_ns(const struct ips_recording *recording);

/* Store @value under @key in `meta`; replaces an older value. */
IPS_API int ips_meta_set(struct ips_recording *recording, const char *key, const char *value);

IPS_API const char *ips_status_text(int status);

/* ---- call sites ------------------------------------------------------------------------------ */

/*
 * A place in the program that records; all its spans share it. Static or interned, never freed.
 */
struct ips_site {
	const char *category, *name;
	const char *operation; /* the planned operation it belongs to, or NULL */
	const char *file;
	uint32_t line;
	uint32_t id; /* set by the library, 0 at first */
};

#define IPS_SITE(variable, category, name)                                                         \
	static struct ips_site variable = {category, name, NULL, __FILE__, __LINE__, 0}

/*
 * Names (of call sites, tracks, tensors, and in rows) are kept up to IPS_NAME_MOST bytes, whole
 * characters of UTF-8: what is longer is cut. All names of the call sites that a process interns,
 * and those of the tensors and of the file of a recording, take IPS_NAMES_MOST bytes each at most
 * (with 64 for each name): what comes then is called "(more names)". `names_cut` in meta counts
 * how often the process had a name cut or replaced.
 */
#define IPS_NAME_MOST  16384u
#define IPS_NAMES_MOST ((size_t)64 << 20)
#define IPS_MORE_NAMES "(more names)"

/* Return a call site whose name is known at run time only. Equal arguments return the same site.
 * NULL only if out of memory (recording with a NULL site does nothing). @operation may be NULL. */
IPS_API struct ips_site *ips_site_intern(const char *category, const char *name,
					 const char *operation);

/* ---- tracks: spans, instants, counters ------------------------------------------------------- */

struct ips_track_params {
	const char *name;   /* shown; NULL: the track's unique name */
	const char *parent; /* the unique name of the track it is drawn under, or NULL */
	int64_t ipu;        /* simulated IPU, or IPS_NULL */
	enum ips_clock clock;
	uint32_t ring_slots; /* 0: the recording's default */
};

/* The part of a track that the inline functions below need; its members are private. */
struct ips_slot {
	uint64_t ticks;
	struct ips_site *site;
	uint64_t kind; /* enum ips_event and, above bit 8, its flags or type */
	uint64_t value;
};

struct ips_track {
	struct ips_slot *slots;
	uint64_t mask;
	uint64_t head;     /* next slot to write; the producer's */
	uint64_t limit;    /* head may advance to it without reading `consumed` */
	uint64_t open;     /* spans begun and not ended: each reserves a slot for its end */
	uint64_t skipping; /* depth within a dropped span */
	uint64_t busy;     /* an event is being written: a signal handler's are refused */
	uint64_t published __attribute__((aligned(64))); /* slots before it are complete */
	uint64_t dropped;                                /* events lost; read by the writer */
	uint64_t consumed __attribute__((aligned(64)));  /* slots before it are free again */
};

enum ips_event {
	IPS_EVENT_BEGIN = 1,
	IPS_EVENT_END,
	IPS_EVENT_INSTANT,
	IPS_EVENT_COUNTER,
	IPS_EVENT_KEYS, /* followed by slots that hold a struct ips_keys */
	IPS_EVENT_AT,   /* a span with given times */
	IPS_EVENT_ARGUMENT,
	IPS_EVENT_FLOW_OUT,
	IPS_EVENT_FLOW_IN,
	IPS_EVENT_ROW, /* followed by slots that hold the row's struct */
	IPS_EVENT_INSTANT_ARGUMENT
};

/* Open a track, owned by the recording. @track is made unique in the run (by appending "(2)" and so
 * on). @params may be NULL: a host track. NULL if @recording is NULL, memory is short, or the
 * recording has IPS_TRACKS_MOST tracks or IPS_NAMES_MOST bytes of their names: `tracks_refused` in
 * meta counts those that it lacks.
 *
 * The rings of all tracks take as much memory as 256 of the recording's ring_slots (512 MiB), and
 * a track itself 10 kB. A ring is at most a 64th of what is left of that: from about 200 tracks on
 * they become smaller. */
#define IPS_TRACKS_MOST 65536
IPS_API struct ips_track *ips_track_open(struct ips_recording *recording, const char *track,
					 const struct ips_track_params *params);

/*
 * Return the calling thread's own host track of that name, opened at its first call: for code that
 * does not know which thread runs it. @name NULL: the name that the system has for the thread. A
 * track whose thread has ended goes to the next thread that asks for one of its name, and ends the
 * spans that are open on it. Later calls cost a comparison of names. Valid until the recording is
 * closed, for this thread alone. NULL if @recording is NULL or memory is short.
 */
IPS_API struct ips_track *ips_thread_track(struct ips_recording *recording, const char *name);

/* Set the keys of everything that the calling thread records from now on without keys of its own:
 * on its tracks of ips_thread_track(), and as tensors and losses (ipuscope/outfeed.h) whose keys
 * are NULL. @keys NULL: no keys. A thread has such keys for one recording at a time. */
IPS_API void ips_thread_set_keys(struct ips_recording *recording, const struct ips_keys *keys);

/* Return in @out what the calling thread has set last for @recording, or no keys. */
IPS_API void ips_thread_keys(const struct ips_recording *recording, struct ips_keys *out);

/* Make room for @slots more slots; 0: the event was dropped and counted. For the inline
 * functions. */
IPS_API int ips_track_make_room(struct ips_track *track, uint64_t slots);

/* The system's monotonic clock, ns: used instead of ticks on processors whose counter this header
 * does not support. For the inline functions. */
IPS_API uint64_t ips_monotonic_ns(void);

static inline uint64_t ips_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc(); /* __rdtsc() without its header, which is very large */
#else
	return ips_monotonic_ns();
#endif
}

/* Return 0, and count the event as dropped, in a signal handler that interrupts a call on
 * @track. */
static inline int ips_track_enter(struct ips_track *track)
{
	if (__builtin_expect(track->busy != 0, 0)) {
		__atomic_fetch_add(&track->dropped, 1, __ATOMIC_RELAXED);
		return 0;
	}
	track->busy = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return 1;
}

static inline void ips_track_leave(struct ips_track *track)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	track->busy = 0;
}

/* Begin a span on @track. Spans of a track nest. */
static inline void ips_span_begin(struct ips_track *track, struct ips_site *site)
{
	struct ips_slot *slot;

	if (!track || !ips_track_enter(track))
		return;
	if (__builtin_expect(track->skipping != 0 || track->head + track->open + 2 > track->limit,
			     0)) {
		if (!ips_track_make_room(track, 2)) {
			track->skipping++;
			ips_track_leave(track);
			return;
		}
	}
	slot = &track->slots[track->head & track->mask];
	slot->site = site;
	slot->kind = IPS_EVENT_BEGIN;
	slot->ticks = ips_ticks();
	track->open++;
	track->head++;
	__atomic_store_n(&track->published, track->head, __ATOMIC_RELEASE);
	ips_track_leave(track);
}

/* End the innermost span. Its slot was reserved when it began, so an end is never lost. */
static inline void ips_span_end(struct ips_track *track)
{
	struct ips_slot *slot;

	if (!track || track->busy != 0)
		return;
	if (__builtin_expect(track->skipping != 0, 0)) {
		track->skipping--;
		return;
	}
	if (track->open == 0)
		return;
	ips_track_enter(track);
	slot = &track->slots[track->head & track->mask];
	slot->ticks = ips_ticks();
	slot->kind = IPS_EVENT_END;
	track->open--;
	track->head++;
	__atomic_store_n(&track->published, track->head, __ATOMIC_RELEASE);
	ips_track_leave(track);
}

/* The same two as functions of the library, for languages that cannot use inline ones. */
IPS_API void ips_track_begin(struct ips_track *track, struct ips_site *site);
IPS_API void ips_track_end(struct ips_track *track);

/* Set the keys of everything recorded on this track until the next call. NULL: no keys. */
IPS_API void ips_track_set_keys(struct ips_track *track, const struct ips_keys *keys);

IPS_API void ips_instant(struct ips_track *track, struct ips_site *site);
IPS_API void ips_counter(struct ips_track *track, struct ips_site *site, double value);

/* Record the resident memory of this process, in bytes, as a sample of the counter of this name on
 * @track: at most five a second, however often it is called. Reads /proc/self/statm, which takes
 * some microseconds; does nothing on systems without it. */
#define IPS_RESIDENT_BYTES "resident_bytes"
IPS_API void ips_memory_sample(struct ips_track *track);

/* Add an argument to the innermost open span (or the last ips_span_at()). If given twice, the later
 * value replaces the first. Text is truncated to 64 bytes. */
IPS_API void ips_span_arg_int(struct ips_track *track, const char *static_name, int64_t value);
IPS_API void ips_span_arg_real(struct ips_track *track, const char *static_name, double value);
IPS_API void ips_span_arg_text(struct ips_track *track, const char *static_name, const char *value);

/* A flow: an arrow from the innermost open span of one track to that of another. Both sides have
 * the same @id (any number unique for @site). An id whose other side never comes makes no row; at
 * most 65,536 sides are waited for. */
IPS_API void ips_flow_out(struct ips_track *track, struct ips_site *site, uint64_t id);
IPS_API void ips_flow_in(struct ips_track *track, struct ips_site *site, uint64_t id);

/*
 * Record a span with given times, for the device clock. On one track spans must come in order of
 * start, a parent before its children (nesting is by containment). A span that starts before its
 * predecessor, or that overlaps the end of an enclosing span, is dropped and counted. Unlike
 * ips_span_begin() this blocks while the ring is full. @start_ns, @dur_ns >= 0.
 */
IPS_API void ips_span_at(struct ips_track *track, struct ips_site *site, int64_t start_ns,
			 int64_t dur_ns);

/* Open a track for another program's thread, for events measured elsewhere: @pid and @tid (or
 * IPS_NULL) are that thread's. Recording on it blocks while the ring is full, and drops nothing. */
IPS_API struct ips_track *ips_track_open_foreign(struct ips_recording *recording, const char *track,
						 const struct ips_track_params *params, int64_t pid,
						 int64_t tid);

/* Record an event at a given time, for events measured elsewhere; times >= 0. Instants and
 * samples of one track must come in order of time (an earlier one is moved to its predecessor's
 * time). A side of a flow belongs to the innermost span with given times that is open at that
 * time, its end included, and must be recorded before spans that begin later. All block while the
 * ring is full. */
IPS_API void ips_instant_at(struct ips_track *track, struct ips_site *site, int64_t time_ns);
IPS_API void ips_counter_at(struct ips_track *track, struct ips_site *site, int64_t time_ns,
			    double value);
IPS_API void ips_flow_out_at(struct ips_track *track, struct ips_site *site, uint64_t id,
			     int64_t time_ns);
IPS_API void ips_flow_in_at(struct ips_track *track, struct ips_site *site, uint64_t id,
			    int64_t time_ns);
/* As ips_span_arg_text(), for text of any length (copied to the heap). Where texts that are not
 * written yet take as many bytes as rows may (row_queue_bytes), this waits until all are
 * written. */
IPS_API void ips_span_arg_long_text(struct ips_track *track, const char *static_name,
				    const char *value);
/* Add an argument to the last ips_instant_at() of a track that ips_track_open_foreign() opened.
 * Text of any length; NULL is stored as NULL. */
IPS_API void ips_instant_arg_int(struct ips_track *track, const char *static_name, int64_t value);
IPS_API void ips_instant_arg_real(struct ips_track *track, const char *static_name, double value);
IPS_API void ips_instant_arg_text(struct ips_track *track, const char *static_name,
				  const char *value);

/* ---- rows: one typed append per table of the contract ---------------------------------------- */

/*
 * The lists of columns: X(t, kind, name, description) for each, in order. They generate the structs
 * below, the tables of the database, the views that show a table unchanged, and the sections of
 * docs/schema.md on these. @t is passed on. Missing values are IPS_NULL, NaN or NULL; texts are
 * copied. The kinds, and their members in the struct:
 *
 *	ID       int64_t, the caller's number of the row
 *	INT      int64_t
 *	NEEDED   int64_t, never IPS_NULL
 *	REAL     double
 *	TEXT     const char *
 *	CLASS    const char *; the column's name `class` is a keyword of C++
 *	NAME     const char *; the table stores its string_id
 *	MODE     int64_t, an enum ips_mode
 *	KEYS     struct ips_keys; NULL if all are unknown
 *	CONTEXT  struct ips_keys, needed
 *	RANK     no member: the recording's rank
 *	SPAN     no member: the span that the row is about; see ips_span_row()
 *	BLOB     const void *; its size is the column `bytes`
 */

#define IPS_COLUMNS_execution(X, t)                                                                \
	X(t, RANK, rank, "keys; `epoch` is NULL outside training")                                 \
	X(t, MODE, mode, "keys; `epoch` is NULL outside training")                                 \
	X(t, INT, epoch, "keys; `epoch` is NULL outside training")                                 \
	X(t, INT, execution, "keys; `epoch` is NULL outside training")                             \
	X(t, INT, first_step, "its first step")                                                    \
	X(t, INT, steps, "number of steps per replica")                                            \
	X(t, INT, updates, "number of weight updates; 0 outside training")                         \
	X(t, INT, start_ns, "host time")                                                           \
	X(t, INT, dur_ns, "host time")                                                             \
	X(t, INT, start_cycle, "simulated device time; NULL without a device")                     \
	X(t, INT, cycles, "simulated device time; NULL without a device")                          \
	X(t, INT, traced, "1 if its device steps were recorded (`executionProfileProgramRunCount`)")

#define IPS_COLUMNS_layer(X, t)                                                                    \
	X(t, TEXT, layer, "its name")                                                              \
	X(t, CLASS, class_name, "`Dense`, `Flatten`, ...")                                         \
	X(t, INT, position, "its index in the model, from 0")                                      \
	X(t, INT, stage, "its pipeline stage; NULL without a pipeline")                            \
	X(t, TEXT, output_shape, "of one micro-batch")                                             \
	X(t, INT, params, "number of parameters; 0 for further calls of a layer")                  \
	X(t, INT, trainable_params, "number of parameters; 0 for further calls of a layer")        \
	X(t, INT, flops, "floating point operations of one forward of a micro-batch")

/* IPS_FACTS_operation: the columns of an operation except its name. */
#define IPS_FACTS_operation(X, t)                                                                  \
	X(t, TEXT, layer, "its layer; NULL: none")                                                 \
	X(t, TEXT, kind, "`matmul`, `elementwise`, ...")                                           \
	X(t, TEXT, phase, "keys")                                                                  \
	X(t, INT, stage, "keys")                                                                   \
	X(t, INT, flops, "floating point operations")                                              \
	X(t, INT, cycles, "total simulated cycles")                                                \
	X(t, INT, compute_cycles, "its parts; NULL: unknown to the cost model")                    \
	X(t, INT, exchange_cycles, "its parts; NULL: unknown to the cost model")                   \
	X(t, INT, sync_cycles, "its parts; NULL: unknown to the cost model")                       \
	X(t, INT, bytes_exchanged, "between tiles; NULL: unknown")                                 \
	X(t, INT, tiles_used, "tiles with work; NULL: unknown")                                    \
	X(t, REAL, tile_balance, "mean over maximum cycles of the tiles, 0 .. 1; NULL: unknown")   \
	X(t, INT, code_bytes, "of its vertices and control code; NULL: unknown")

#define IPS_COLUMNS_operation(X, t)                                                                \
	X(t, TEXT, operation, "its name")                                                          \
	IPS_FACTS_operation(X, t)

#define IPS_COLUMNS_plan(X, t)                                                                     \
	X(t, TEXT, operation, "the operation")                                                     \
	X(t, TEXT, method, "the planner's method")                                                 \
	X(t, INT, split_batch, "parts along each dimension")                                       \
	X(t, INT, split_field, "parts along each dimension")                                       \
	X(t, INT, split_in, "parts along each dimension")                                          \
	X(t, INT, split_out, "parts along each dimension")                                         \
	X(t, INT, split_kernel, "parts along each dimension")                                      \
	X(t, INT, serial_splits, "parts executed one after the other")                             \
	X(t, INT, temporary_bytes, "memory in use only while it runs")                             \
	X(t, INT, cycles, "of the plan")

#define IPS_COLUMNS_program(X, t)                                                                  \
	X(t, ID, program_id, "its number")                                                         \
	X(t, INT, parent_id,                                                                       \
	  "the node above; NULL: a stage's function, or a control program (`Engine::run`, "        \
	  "`train`, ...)")                                                                         \
	X(t, INT, position, "its index among its siblings, from 0")                                \
	X(t, TEXT, type,                                                                           \
	  "Poplar's kind: `Sequence`, `Repeat`, `OnTileExecute`, `DoExchange`, "                   \
	  "`StreamCopyBegin`, ...; `Unknown` is a switch")                                         \
	X(t, TEXT, name, "its name; NULL: none")                                                   \
	X(t, TEXT, operation, "its operation; NULL: none")                                         \
	X(t, INT, repeat_count, "of a `Repeat`; else NULL")                                        \
	X(t, INT, call_target, "the program_id that a `Call` calls; else NULL")

#define IPS_COLUMNS_compute_set(X, t)                                                              \
	X(t, TEXT, compute_set, "its name")                                                        \
	X(t, TEXT, operation, "its operation")                                                     \
	X(t, INT, program_id, "the program that executes it")                                      \
	X(t, INT, vertices, "number of vertices, and of their tiles")                              \
	X(t, INT, tiles, "number of vertices, and of their tiles")                                 \
	X(t, INT, max_cycles, "over its tiles")                                                    \
	X(t, REAL, mean_cycles, "over its tiles")

/*
 * The execution trace of a device that repeats the same steps (a simulator; a device whose program
 * is traced once). Append the trace and its steps once, before its first run; then only one row per
 * run. The view `device_steps` has a row for every step of every run, with times shifted by the
 * run's start and converted to ns with the trace's clock. A device that never repeats its steps has
 * one trace per run.
 */
#define IPS_COLUMNS_device_trace(X, t)                                                             \
	X(t, ID, trace_id, "the caller's, unique in the recording")                                \
	X(t, REAL, clock_hz, "of the cycles below; NaN: their ns are unknown")                     \
	X(t, TEXT, name, "of the program, for display")

#define IPS_COLUMNS_device_step(X, t)                                                              \
	X(t, NEEDED, trace_id, "of the trace")                                                     \
	X(t, INT, trace_step, "from 0, on its IPU")                                                \
	X(t, INT, ipu, "relative to the run's first_ipu")                                          \
	X(t, INT, stage, "when and where")                                                         \
	X(t, TEXT, phase, "\"F\", \"B\", \"W\", \"R\", \"U\"")                                     \
	X(t, INT, microbatch, "relative to the run's first_microbatch, its step to first_step")    \
	X(t, INT, program_id, "the program it executes")                                           \
	X(t, NAME, type, "of the program")                                                         \
	X(t, NAME, name, "of the program")                                                         \
	X(t, NAME, operation, "of the program; NULL: none")                                        \
	X(t, INT, start_cycle, "relative to the run's start_cycle")                                \
	X(t, INT, cycles, "simulated")                                                             \
	X(t, INT, cycles_overlapped,                                                               \
	  "cycles that overlap with programs (streams through I/O tiles); NULL: no infeed or "     \
	  "outfeed")                                                                               \
	X(t, INT, active_tiles, "tiles with work; NULL: unknown")                                  \
	X(t, REAL, tile_balance,                                                                   \
	  "mean over maximum cycles, of all and of the active tiles; NULL: unknown")               \
	X(t, REAL, active_tile_balance,                                                            \
	  "mean over maximum cycles, of all and of the active tiles; NULL: unknown")               \
	X(t, INT, bytes_in, "exchanged by this IPU; NULL: unknown")                                \
	X(t, INT, bytes_out, "exchanged by this IPU; NULL: unknown")

/* One run of a trace, by one replica, on the IPUs from first_ipu on. */
#define IPS_COLUMNS_device_run(X, t)                                                               \
	X(t, NEEDED, trace_id, "of the trace")                                                     \
	X(t, RANK, rank, "of the recording")                                                       \
	X(t, MODE, mode, "when and where")                                                         \
	X(t, INT, epoch, "when and where")                                                         \
	X(t, INT, execution, "when and where")                                                     \
	X(t, INT, weight_update, "NULL: no update, and its steps have no micro-batch")             \
	X(t, INT, first_step, "of the trace's micro-batch 0")                                      \
	X(t, INT, replica, "when and where")                                                       \
	X(t, INT, first_ipu, "IPU 0 of the trace")                                                 \
	X(t, INT, start_cycle, "cycle 0 of the trace")                                             \
	X(t, INT, first_microbatch, "micro-batch 0 of the trace, within the weight update")

#define IPS_COLUMNS_stage_timing(X, t)                                                             \
	X(t, CONTEXT, keys, "when and where")                                                      \
	X(t, NEEDED, clock, "an enum ips_clock")                                                   \
	X(t, NEEDED, start_ns, "on that clock")                                                    \
	X(t, NEEDED, dur_ns, "on that clock")                                                      \
	X(t, INT, cpu_ns, "processor time of the worker's thread; NULL on the device clock")

#define IPS_COLUMNS_bubble(X, t)                                                                   \
	X(t, KEYS, keys, "when and where")                                                         \
	X(t, NEEDED, clock, "an enum ips_clock")                                                   \
	X(t, TEXT, schedule,                                                                       \
	  "a name of `ipu-plan schedule --all`: `Grouped`, `Interleaved`, `Sequential`, `1f1b` "   \
	  "...")                                                                                   \
	X(t, INT, stages, "of the pipeline run")                                                   \
	X(t, INT, microbatches, "of the pipeline run")                                             \
	X(t, INT, makespan_ns, "from the first start to the last end of F and B")                  \
	X(t, INT, busy_ns, "of F, B and, if the device recomputes, R, summed over the IPUs")       \
	X(t, REAL, idle_fraction, "1 - busy / (IPUs x makespan)")                                  \
	X(t, REAL, bubble_rate, "1 - busy per stage / the longest span of one stage")              \
	X(t, REAL, bubble_over_ideal, "idle time / ideal compute time; can exceed 1")              \
	X(t, REAL, theory_idle_fraction,                                                           \
	  "the same for this schedule with these stage times and free communication")              \
	X(t, REAL, theory_bubble_rate,                                                             \
	  "the same for this schedule with these stage times and free communication")              \
	X(t, REAL, theory_bubble_over_ideal,                                                       \
	  "the same for this schedule with these stage times and free communication")              \
	X(t, INT, ramp_up_ns, "idle time before an IPU's first work item, summed over IPUs")       \
	X(t, INT, ramp_down_ns, "idle time after its last work item")                              \
	X(t, INT, imbalance_ns, "the rest of the idle time in between")                            \
	X(t, INT, communication_ns,                                                                \
	  "idle time in between while the input was in transfer (on the device: while no IPU "     \
	  "works)")                                                                                \
	X(t, INT, oversubscribed,                                                                  \
	  "1 if there were more workers than cores: host times include waiting for a core")

#define IPS_COLUMNS_variable(X, t)                                                                 \
	X(t, ID, variable_id, "its number and name")                                               \
	X(t, TEXT, variable, "its number and name")                                                \
	X(t, TEXT, layer, "its layer; NULL: none")                                                 \
	X(t, TEXT, kind,                                                                           \
	  "`input`, `labels`, `activation`, `kept`, `temporary`, `gradient`, `weight`, `state`, "  \
	  "`weight_gradient`, `accumulator`, `optimizer_state`, `result`, `fifo`, `io_buffer`, "   \
	  "or a category of `tile_memory`")                                                        \
	X(t, TEXT, shape, "of the tensor; shape and dtype NULL: not a tensor")                     \
	X(t, TEXT, dtype, "of the tensor; shape and dtype NULL: not a tensor")                     \
	X(t, INT, bytes, "of the tensor; shape and dtype NULL: not a tensor")                      \
	X(t, INT, ipu, "its IPU")                                                                  \
	X(t, INT, always_live, "1: it lives during the whole program")                             \
	X(t, INT, first_program_step, "the program steps of its lifetime; NULL: always live")      \
	X(t, INT, last_program_step, "the program steps of its lifetime; NULL: always live")

/* The bytes of a variable on a tile, and on each of @more_tiles tiles after it, up to tile 2047.
 * The view has a row for each tile. */
#define IPS_COLUMNS_variable_tile(X, t)                                                            \
	X(t, INT, variable_id, "the variable")                                                     \
	X(t, INT, ipu, "where")                                                                    \
	X(t, INT, tile, "where")                                                                   \
	X(t, INT, bytes, "bytes of it on the tile")                                                \
	X(t, INT, more_tiles, "number of following tiles with the same bytes; 0 or NULL: none")

/* The same for a category of memory. */
#define IPS_COLUMNS_tile_memory(X, t)                                                              \
	X(t, INT, ipu, "where")                                                                    \
	X(t, INT, tile, "where")                                                                   \
	X(t, NAME, category, "its use: `variables`, `stack`, ...")                                 \
	X(t, NAME, region,                                                                         \
	  "`interleaved`, `nonInterleaved` or `overflowed`: beyond the tile's memory")             \
	X(t, INT, bytes, "in use")                                                                 \
	X(t, INT, capacity, "of the tile")                                                         \
	X(t, INT, more_tiles, "number of following tiles with the same values; 0 or NULL: none")

#define IPS_COLUMNS_liveness(X, t)                                                                 \
	X(t, INT, ipu, "when and where")                                                           \
	X(t, INT, program_step, "when and where")                                                  \
	X(t, INT, program_id, "the program of that step; NULL: after the last")                    \
	X(t, INT, always_live_bytes, "in use at that step, all tiles together")                    \
	X(t, INT, not_always_live_bytes, "in use at that step, all tiles together")

#define IPS_COLUMNS_tensor_stats(X, t)                                                             \
	X(t, KEYS, keys, "when and where")                                                         \
	X(t, NEEDED, tensor_id, "from ips_tensor_add()")                                           \
	X(t, INT, time_ns, "when, host clock")                                                     \
	X(t, INT, n, "elements")                                                                   \
	X(t, INT, n_nan, "number of NaN, +Inf, -Inf")                                              \
	X(t, INT, n_pos_inf, "number of NaN, +Inf, -Inf")                                          \
	X(t, INT, n_neg_inf, "number of NaN, +Inf, -Inf")                                          \
	X(t, INT, n_zero, "number of zero, negative, positive elements; infinities have a sign")   \
	X(t, INT, n_neg, "number of zero, negative, positive elements; infinities have a sign")    \
	X(t, INT, n_pos, "number of zero, negative, positive elements; infinities have a sign")    \
	X(t, REAL, min, "of the finite values")                                                    \
	X(t, REAL, max, "of the finite values")                                                    \
	X(t, REAL, mean, "of the finite values")                                                   \
	X(t, REAL, std, "of the finite values")                                                    \
	X(t, REAL, l1, "of the finite values")                                                     \
	X(t, REAL, l2, "of the finite values")                                                     \
	X(t, REAL, abs_min_nonzero, "of the finite values")                                        \
	X(t, REAL, abs_max, "of the finite values")                                                \
	X(t, REAL, inactive, "of an activation: the fraction of its neurons that are inactive")    \
	X(t, REAL, update_ratio,                                                                   \
	  "of variables that an update changes: mean |change| / mean |previous value|")            \
	X(t, INT, n_changed, "elements that the update changed")

#define IPS_COLUMNS_tensor_histogram(X, t)                                                         \
	X(t, KEYS, keys, "when and where")                                                         \
	X(t, NEEDED, tensor_id, "from ips_tensor_add()")                                           \
	X(t, INT, bin, "by binary exponent and sign (docs/schema.md)")                             \
	X(t, REAL, low, "its bounds")                                                              \
	X(t, REAL, high, "its bounds")                                                             \
	X(t, INT, count, "elements in it")

#define IPS_COLUMNS_tensor_epoch(X, t)                                                             \
	X(t, RANK, rank, "keys")                                                                   \
	X(t, MODE, mode, "keys")                                                                   \
	X(t, INT, epoch, "keys")                                                                   \
	X(t, TEXT, callback, "the callback's name")                                                \
	X(t, TEXT, queue, "the tensor")                                                            \
	X(t, TEXT, key, "the tensor")                                                              \
	X(t, TEXT, shape, "with the number of enqueues in front")                                  \
	X(t, REAL, mean, "element-wise over the epoch; NULL means nan")                            \
	X(t, REAL, std, "element-wise over the epoch; NULL means nan")                             \
	X(t, REAL, min, "element-wise over the epoch; NULL means nan")                             \
	X(t, REAL, max, "element-wise over the epoch; NULL means nan")                             \
	X(t, INT, nans, "counts")                                                                  \
	X(t, INT, infs, "counts")

#define IPS_COLUMNS_capture(X, t)                                                                  \
	X(t, KEYS, keys, "when and where")                                                         \
	X(t, NEEDED, tensor_id, "from ips_tensor_add()")                                           \
	X(t, TEXT, dtype, "of the whole tensor")                                                   \
	X(t, TEXT, shape, "of the whole tensor")                                                   \
	X(t, INT, bytes, "size of data, which is copied")                                          \
	X(t, INT, chunk, "its number, from 0")                                                     \
	X(t, BLOB, data, "the bytes, little-endian (`ipu-report` shows their number)")

#define IPS_COLUMNS_metric(X, t)                                                                   \
	X(t, RANK, rank, "keys")                                                                   \
	X(t, MODE, mode, "keys; `execution` and `step` are NULL in a row for a whole epoch")       \
	X(t, INT, epoch, "keys; `execution` and `step` are NULL in a row for a whole epoch")       \
	X(t, INT, execution, "keys; `execution` and `step` are NULL in a row for a whole epoch")   \
	X(t, INT, step, "keys; `execution` and `step` are NULL in a row for a whole epoch")        \
	X(t, INT, time_ns, "when")                                                                 \
	X(t, NAME, name, "`loss`, `accuracy`, ...")                                                \
	X(t, REAL, value, "NULL means nan")

#define IPS_COLUMNS_health_rule(X, t)                                                              \
	X(t, TEXT, rule, "its name")                                                               \
	X(t, REAL, threshold, "the limit, and the number of consecutive violations before a hit")  \
	X(t, INT, patience, "the limit, and the number of consecutive violations before a hit")    \
	X(t, INT, enabled, "1: it was active")                                                     \
	X(t, TEXT, why, "its purpose, or why it was off")                                          \
	X(t, TEXT, parameters, "its other parameters, a JSON object; NULL: it has none")

#define IPS_COLUMNS_health(X, t)                                                                   \
	X(t, KEYS, keys, "when and where")                                                         \
	X(t, TEXT, rule, "the rule")                                                               \
	X(t, INT, tensor_id, "from ips_tensor_add()")                                              \
	X(t, TEXT, layer, "NULL: the tensor's")                                                    \
	X(t, INT, time_ns, "when, host clock")                                                     \
	X(t, REAL, value, "the observed value, the limit")                                         \
	X(t, REAL, threshold, "the observed value, the limit")                                     \
	X(t, TEXT, key, "of a value that is not a tensor (\"loss\"); NULL: the tensor's")

#define IPS_COLUMNS_first_nonfinite(X, t)                                                          \
	X(t, KEYS, keys, "when and where")                                                         \
	X(t, INT, tensor_id, "from ips_tensor_add()")                                              \
	X(t, INT, time_ns, "when, host clock")                                                     \
	X(t, INT, element, "its index in the flat tensor")                                         \
	X(t, TEXT, value, "nan, inf, -inf")

#define IPS_COLUMNS_time_split(X, t)                                                               \
	X(t, NEEDED, clock, "an enum ips_clock")                                                   \
	X(t, RANK, rank, "keys")                                                                   \
	X(t, INT, execution, "keys")                                                               \
	X(t, INT, replica, "keys")                                                                 \
	X(t, INT, ipu, "keys")                                                                     \
	X(t, INT, compute_ns, "computing")                                                         \
	X(t, INT, exchange_ns, "moving data between IPUs or workers")                              \
	X(t, INT, sync_ns, "waiting for a synchronisation")                                        \
	X(t, INT, host_io_ns, "input and output")                                                  \
	X(t, INT, idle_ns, "no work")

/* The tier of a tensor from a time on: the first when it is registered (keys and time NULL),
 * another one whenever it changes. */
#define IPS_COLUMNS_tensor_tier(X, t)                                                              \
	X(t, KEYS, keys, "when and where")                                                         \
	X(t, NEEDED, tensor_id, "from ips_tensor_add()")                                           \
	X(t, TEXT, tier, "`off`, `health`, `counts`, `stats`, `histogram`, `last` or `full`")      \
	X(t, INT, every, "interval in steps, or in weight updates if the tensor belongs to one")   \
	X(t, INT, keep, "for `last`: number of values; else NULL")                                 \
	X(t, INT, time_ns, "valid from; NULL: from the start")                                     \
	X(t, TEXT, why, "the rule of the run file, or the reason for lowering it")

/* A tensor that led to the first non-finite number, as it was then; unknown values are IPS_NULL or
 * NaN. */
#define IPS_COLUMNS_nonfinite_trail(X, t)                                                          \
	X(t, KEYS, keys, "when and where")                                                         \
	X(t, INT, position, "0: the bad one, -1: the one before it, ...")                          \
	X(t, TEXT, role, "bad, input, weight, before")                                             \
	X(t, NEEDED, tensor_id, "from ips_tensor_add()")                                           \
	X(t, INT, time_ns, "when")                                                                 \
	X(t, INT, n, "as in `tensor_stats`; NULL: not known")                                      \
	X(t, INT, n_nan, "as in `tensor_stats`; NULL: not known")                                  \
	X(t, INT, n_pos_inf, "as in `tensor_stats`; NULL: not known")                              \
	X(t, INT, n_neg_inf, "as in `tensor_stats`; NULL: not known")                              \
	X(t, INT, n_zero, "as in `tensor_stats`; NULL: not known")                                 \
	X(t, INT, n_neg, "as in `tensor_stats`; NULL: not known")                                  \
	X(t, INT, n_pos, "as in `tensor_stats`; NULL: not known")                                  \
	X(t, REAL, min, "as in `tensor_stats`; NULL: not known")                                   \
	X(t, REAL, max, "as in `tensor_stats`; NULL: not known")                                   \
	X(t, REAL, mean, "as in `tensor_stats`; NULL: not known")                                  \
	X(t, REAL, std, "as in `tensor_stats`; NULL: not known")                                   \
	X(t, REAL, l1, "as in `tensor_stats`; NULL: not known")                                    \
	X(t, REAL, l2, "as in `tensor_stats`; NULL: not known")                                    \
	X(t, REAL, abs_min_nonzero, "as in `tensor_stats`; NULL: not known")                       \
	X(t, REAL, abs_max, "as in `tensor_stats`; NULL: not known")

/* A device that other rows name: a GPU, a TPU. */
#define IPS_COLUMNS_device(X, t)                                                                   \
	X(t, RANK, rank, "keys")                                                                   \
	X(t, TEXT, device, "its name in tracks and rows: `GPU 0`")                                 \
	X(t, INT, number, "its number in the program that recorded it")                            \
	X(t, TEXT, model, "`NVIDIA H100 80GB HBM3`, ...; NULL: unknown")                           \
	X(t, TEXT, architecture, "`9.0`, `gfx942`, ...")                                           \
	X(t, INT, memory_bytes, "size of its memory")                                              \
	X(t, INT, units, "number of multiprocessors or compute units")                             \
	X(t, INT, clock_hz, "its clock rate")                                                      \
	X(t, INT, memory_bytes_per_s, "bandwidth of its memory")

/* A span that is a kernel. */
#define IPS_COLUMNS_kernel(X, t)                                                                   \
	X(t, SPAN, span_id, "the kernel")                                                          \
	X(t, NAME, device, "where it ran")                                                         \
	X(t, INT, context, "of the driver")                                                        \
	X(t, INT, stream, "stream or queue")                                                       \
	X(t, NAME, kind, "`compute`, `communication`, `memory`, `graph`")                          \
	X(t, INT, launch_key, "equal to that of the call that launched it")                        \
	X(t, INT, grid_x, "blocks")                                                                \
	X(t, INT, grid_y, "blocks")                                                                \
	X(t, INT, grid_z, "blocks")                                                                \
	X(t, INT, block_x, "threads of a block")                                                   \
	X(t, INT, block_y, "threads of a block")                                                   \
	X(t, INT, block_z, "threads of a block")                                                   \
	X(t, INT, registers, "of a thread")                                                        \
	X(t, INT, shared_bytes, "of a block")                                                      \
	X(t, REAL, occupancy, "estimated, 0 .. 1")                                                 \
	X(t, INT, graph, "the graph it is a node of")                                              \
	X(t, INT, graph_node, "the graph it is a node of")

/* A span that is a copy of memory, or fills memory. */
#define IPS_COLUMNS_copy(X, t)                                                                     \
	X(t, SPAN, span_id, "the copy")                                                            \
	X(t, NAME, device, "where it ran")                                                         \
	X(t, INT, context, "of the driver")                                                        \
	X(t, INT, stream, "stream or queue")                                                       \
	X(t, NAME, kind, "`HtoD`, `DtoH`, `DtoD`, `PtoP`, ..., `memset`")                          \
	X(t, INT, launch_key, "equal to that of the call that launched it")                        \
	X(t, INT, bytes, "copied or filled")                                                       \
	X(t, NAME, source, "memory: `pageable`, `pinned`, `device`, ...")                          \
	X(t, NAME, target, "memory: `pageable`, `pinned`, `device`, ...")                          \
	X(t, NAME, to_device, "of a copy between devices")

/* A span that is a call which may launch kernels and copies. */
#define IPS_COLUMNS_call(X, t)                                                                     \
	X(t, SPAN, span_id, "the call")                                                            \
	X(t, INT, launch_key, "equal to that of what it launched")

/* A span that the program named: NVTX, ROCTx, record_function. */
#define IPS_COLUMNS_range(X, t)                                                                    \
	X(t, SPAN, span_id, "the range")                                                           \
	X(t, NAME, kind, "`nvtx`, `roctx`, `annotation`, `step`")                                  \
	X(t, NAME, domain, "of NVTX; NULL: the default")

/* An allocation or a release. */
#define IPS_COLUMNS_memory_event(X, t)                                                             \
	X(t, RANK, rank, "keys")                                                                   \
	X(t, NAME, device, "whose memory; NULL: the host's")                                       \
	X(t, NEEDED, time_ns, "when")                                                              \
	X(t, NAME, kind, "`alloc`, `free`, ...")                                                   \
	X(t, INT, bytes, "allocated; negative: released")                                          \
	X(t, INT, address, "of the memory")                                                        \
	X(t, INT, total_bytes, "allocated afterwards")                                             \
	X(t, INT, reserved_bytes, "held by the allocator afterwards")

/* The tables of appended rows: X(name, struct). */
#define IPS_TABLE_MAP(X)                                                                           \
	X(execution, ips_execution)                                                                \
	X(layer, ips_layer)                                                                        \
	X(operation, ips_operation)                                                                \
	X(plan, ips_plan)                                                                          \
	X(program, ips_program)                                                                    \
	X(compute_set, ips_compute_set)                                                            \
	X(device_trace, ips_device_trace)                                                          \
	X(device_step, ips_device_step)                                                            \
	X(device_run, ips_device_run)                                                              \
	X(stage_timing, ips_stage_timing)                                                          \
	X(bubble, ips_bubble)                                                                      \
	X(variable, ips_variable)                                                                  \
	X(variable_tile, ips_variable_tile)                                                        \
	X(tile_memory, ips_tile_memory)                                                            \
	X(liveness, ips_liveness)                                                                  \
	X(tensor_stats, ips_tensor_stats)                                                          \
	X(tensor_histogram, ips_tensor_histogram)                                                  \
	X(tensor_epoch, ips_tensor_epoch)                                                          \
	X(capture, ips_capture)                                                                    \
	X(metric, ips_metric)                                                                      \
	X(health_rule, ips_health_rule)                                                            \
	X(health, ips_health)                                                                      \
	X(first_nonfinite, ips_first_nonfinite)                                                    \
	X(time_split, ips_time_split)                                                              \
	X(tensor_tier, ips_tensor_tier)                                                            \
	X(nonfinite_trail, ips_nonfinite_trail)                                                    \
	X(device, ips_device)                                                                      \
	X(kernel, ips_kernel)                                                                      \
	X(copy, ips_copy)                                                                          \
	X(call, ips_call)                                                                          \
	X(range, ips_range)                                                                        \
	X(memory_event, ips_memory_event)

/* The structs: struct ips_operation has the members operation, layer and so on. */
#define IPS_MEMBER_ID(name)      int64_t name;
#define IPS_MEMBER_INT(name)     int64_t name;
#define IPS_MEMBER_NEEDED(name)  int64_t name;
#define IPS_MEMBER_REAL(name)    double name;
#define IPS_MEMBER_TEXT(name)    const char *name;
#define IPS_MEMBER_CLASS(name)   const char *name;
#define IPS_MEMBER_NAME(name)    const char *name;
#define IPS_MEMBER_MODE(name)    int64_t name;
#define IPS_MEMBER_KEYS(name)    struct ips_keys name;
#define IPS_MEMBER_CONTEXT(name) struct ips_keys name;
#define IPS_MEMBER_RANK(name)
#define IPS_MEMBER_SPAN(name)
#define IPS_MEMBER_BLOB(name)            const void *name;
#define IPS_MEMBER(t, kind, name, about) IPS_MEMBER_##kind(name)
#define IPS_STRUCT(name, type)                                                                     \
	struct type {                                                                              \
		IPS_COLUMNS_##name(IPS_MEMBER, type)                                               \
	};
IPS_TABLE_MAP(IPS_STRUCT)
#undef IPS_STRUCT

struct ips_tensor {
	const char *queue, *key;
	const char *kind; /* activation, gradient, weight, optimizer_state */
	const char *layer;
	int64_t stage;
	const char *shape, *dtype;
	const char *activity; /* of an activation that can be dead or flat: relu, tanh, sigmoid */
	const char *dims;     /* names of its dimensions: "batch, tokens, features" */
};

enum ips_table {
#define IPS_TABLE_ENUM(name, type) IPS_TABLE_##name,
	IPS_TABLE_MAP(IPS_TABLE_ENUM)
#undef IPS_TABLE_ENUM
	IPS_TABLES
};

/* Append @count rows of @table's struct, an array. Blocks while the queue is full, and drops the
 * rows instead if the disk is full, too (ips_recording_close() reports it). Fails only if
 * writing has failed (the status of ips_recording_status()), memory is short, or a row lacks a
 * field that its table requires (invalid request: then no row is appended). The required fields
 * are: the clock everywhere, start_ns and dur_ns of stage timings, tensor_id of statistics,
 * histograms, captures, tiers and trails, trace_id of device steps and runs. A program, variable
 * or device trace replaces an earlier one with the same id. Returns 0 for a NULL recording. */
IPS_API int ips_append(struct ips_recording *recording, enum ips_table table, const void *rows,
		       size_t count);

/* Append a row about the innermost open span of @track (or the last ips_span_at()): of a table
 * whose first column is a SPAN, which ips_append() refuses. The row is copied, its texts are not:
 * they must stay valid until the recording is closed. At the close, every kernel and copy is linked
 * to the call with its launch_key, by a row of `launches` and a flow. */
IPS_API void ips_span_row(struct ips_track *track, enum ips_table table, const void *row);

/* ips_append_metric(recording, &row) and so on: ips_append() of one row, with its type checked. */
#define IPS_APPEND_ONE(name, type)                                                                 \
	static inline int ips_append_##name(struct ips_recording *recording,                       \
					    const struct type *row)                                \
	{                                                                                          \
		return !recording ? 0 : ips_append(recording, IPS_TABLE_##name, row, 1);           \
	}
IPS_TABLE_MAP(IPS_APPEND_ONE)
#undef IPS_APPEND_ONE

/* Register an outfed tensor; the rows above refer to its id. Equal queue and key return the same
 * id. Returns IPS_NULL for a NULL recording or if memory is short. */
IPS_API int64_t ips_tensor_add(struct ips_recording *recording, const struct ips_tensor *tensor);

#ifdef __cplusplus
} /* ipuscope/profiler.hpp has what C++ adds */
#else
/* C: a span until the end of the enclosing block. */
static inline void ips_scope_leave(struct ips_track **track)
{
	ips_span_end(*track);
}
#define IPS_SCOPE_JOIN(a, b) a##b
#define IPS_SCOPE_NAME(a, b) IPS_SCOPE_JOIN(a, b)
#define IPS_SCOPE(track, site)                                                                     \
	struct ips_track *IPS_SCOPE_NAME(ips_scope_, __LINE__)                                     \
		__attribute__((cleanup(ips_scope_leave), unused)) = (track);                       \
	ips_span_begin(IPS_SCOPE_NAME(ips_scope_, __LINE__), (site))
#endif

/*
 * Versions. A program compiled with this header works with every later libipuscope of the same
 * soname (libipuscope.so.0). The number in the soname is raised by any change that breaks this: a
 * function or an enum value is removed or changes its meaning, a function's parameters change, or a
 * struct that the program allocates or that inline functions here access changes its layout, except
 * for members added at the end of a struct that carries its size. Additions keep the number.
 * ipuscope/outfeed.h, ipuscope/report.h and ipuscope/trainer.h follow the same rule, each library
 * with a number of its own.
 */

#endif /* IPUSCOPE_PROFILER_H */
