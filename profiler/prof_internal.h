/*
 * The recording's internals: lanes (tracks with their rings and the writer's state of them) and
 * the writer. Only for the write side.
 *
 * Threads: a lane's `ring` and the producer's members belong to its producing thread, the
 * writer's members and everything in struct prof_writer to the writer's thread, except as noted.
 * ips_recording.lock guards the list of lanes and whose they are, the tensors' ids, the flush
 * tickets, the turns, the first failure and its callback. No other lock is acquired while it is
 * held.
 */
#ifndef PROF_INTERNAL_H
#define PROF_INTERNAL_H

#include <pthread.h>
#include <semaphore.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/map.h"
#include "profiler/ipuscope/profiler.h"
#include "profiler/prof_bulk.h"
#include "profiler/prof_insert.h"
#include "profiler/prof_levels.h"
#include "profiler/prof_map.h"
#include "profiler/prof_queue.h"
#include "profiler/prof_rows.h"
#include "profiler/prof_sql.h"
#include "profiler/prof_sums.h"

/*
 * Conversion of processor ticks to ns since the run's start.
 *
 * The time stamp counter is compared with CLOCK_MONOTONIC when the recording opens and again at
 * every commit. Each comparison starts a new line segment at the end of the previous one, so time
 * never jumps; its slope converges to the monotonic clock within about a commit. The writer's
 * thread owns the struct; prof_clock_now() reads constants only and may be called from any
 * thread.
 */

struct prof_clock {
	uint64_t start_mono_ns; /* CLOCK_MONOTONIC at time 0 */
	uint64_t start_ticks;
	int64_t start_epoch_ns; /* the wall clock at time 0 */
	/* the current segment: ns = base_ns + (ticks - base_ticks) * slope / 2^32 */
	uint64_t base_ticks;
	int64_t base_ns;
	uint64_t slope;
	double ticks_per_second;
	double stamp_ns; /* cost of reading the counter */
};

void prof_clock_start(struct prof_clock *clock);
/* End the calibration: compare again, at the earliest 1 ms after the start. Call it once, before
 * prof_clock_refine(), which starts a new segment. */
void prof_clock_calibrate(struct prof_clock *clock);
void prof_clock_refine(struct prof_clock *clock);
int64_t prof_clock_now(const struct prof_clock *clock);

static inline int64_t prof_clock_ns(const struct prof_clock *clock, uint64_t ticks)
{
	int64_t delta = (int64_t)(ticks - clock->base_ticks);
	uint64_t magnitude = delta < 0 ? (uint64_t)-delta : (uint64_t)delta;
	/* Two 32-bit halves: exact for 64-bit deltas without a 128-bit type. */
	uint64_t ns = (magnitude >> 32) * clock->slope +
		      (((magnitude & 0xffffffffu) * clock->slope) >> 32);

	return delta < 0 ? clock->base_ns - (int64_t)ns : clock->base_ns + (int64_t)ns;
}

#define PROF_NAMES      64u   /* names of arguments remembered by their address */
#define PROF_LANE_ROWS  8192u /* rows that a lane buffers before they are inserted */
#define PROF_ARG_TEXT   64u   /* bytes of a text argument */
#define PROF_KEYS_SLOTS 3u    /* slots that a struct ips_keys takes after its event */
#define PROF_TEXT_SLOTS 2u
#define PROF_ROW_SLOTS  5u /* at most: of the struct of a row about a span */
#define PROF_KIND_BITS  8u

_Static_assert(sizeof(struct ips_slot) == 32, "the ring's slots are 32 bytes");
_Static_assert(sizeof(struct ips_keys) <= PROF_KEYS_SLOTS * sizeof(struct ips_slot), "keys fit");
_Static_assert(PROF_ARG_TEXT <= PROF_TEXT_SLOTS * sizeof(struct ips_slot), "texts fit");

enum {
	PROF_ARG_INT,
	PROF_ARG_REAL,
	PROF_ARG_TEXT_TYPE,
	PROF_ARG_LONG_TEXT /* bits: a pointer to a heap text, freed when it is written */
};
/* Flag of an instant, a sample or a side of a flow: `ticks` is a given time in ns. */
#define PROF_AT 1u

enum {
	PROF_ZONE_SPANS,
	PROF_ZONE_INSTANTS,
	PROF_ZONE_COUNTERS,
	PROF_ZONES
};

/* A span that has its id, 0: none; or one in the lane's buffer: its index there, as -1 - index. One
 * number: two would be written apart and copied together, for which a processor waits. */
struct prof_ref {
	int64_t value;
};

static inline struct prof_ref prof_ref_here(size_t index)
{
	return (struct prof_ref){-1 - (int64_t)index};
}

struct prof_open_span {
	struct prof_ref span; /* of a ghost (no call site): its parent's */
	int64_t start_ns;
	int64_t end_ns; /* INT64_MAX: begun, end not known yet */
	uint32_t site;  /* 0: a ghost */
	int32_t depth;
	int32_t finest; /* level of its zone; 0 while it is in the lane's buffer */
};

struct prof_span_row {
	int64_t start_ns, dur_ns; /* dur_ns IPS_NULL: open */
	struct prof_ref parent;
	int64_t context;
	uint32_t site;
	int32_t depth;
};

struct prof_span_end {
	int64_t span_id, dur_ns;
};

struct prof_long_span {
	struct prof_ref span;
	int64_t start_ns;
	int level;
};

struct prof_arg {
	struct prof_ref owner; /* a span, or an instant */
	bool of_instant;
	uint32_t number; /* in the lane's buffer */
	const char *name;
	int64_t name_id;     /* set when it is written */
	uint64_t type, bits; /* of a text: its place in the lane's `texts`; PROF_NO_TEXT: NULL */
};
#define PROF_NO_TEXT UINT64_MAX

/* A row about a span; its struct is in the lane's `rows`. */
struct prof_about {
	struct prof_ref span;
	size_t at;
	unsigned table;
};

struct prof_flow {
	struct prof_ref span;
	struct ips_site *site;
	uint64_t id;
	bool out;
};

struct prof_instant {
	int64_t time_ns, context;
	uint32_t site;
};

struct prof_sample {
	int64_t time_ns;
	double value;
	uint32_t site;
};

/* A growing array of the writer, cleared at each flush. */
#define PROF_LIST(type)                                                                            \
	struct {                                                                                   \
		type *items;                                                                       \
		size_t count, capacity;                                                            \
	}

struct prof_thread; /* prof_record.c */

struct prof_lane {
	struct ips_track ring; /* first: the public pointer points to it */
	struct ips_recording *recording;
	struct prof_lane *next;
	int64_t track_id, ipu, pid, tid;
	bool waits;                 /* blocks while the ring is full */
	struct prof_thread *thread; /* of ips_thread_track(), held; NULL: the track is nobody's */
	enum ips_clock clock;
	char *track, *name, *parent;
	unsigned named; /* numbers given to later tracks of its name */

	/* producer */
	struct ips_keys keys;
	bool keys_wait;     /* keys not yet written to the ring */
	uint64_t memory_ns; /* when the process's memory was sampled last */
	uint64_t handed;    /* slots whose turn is set (prof_track.c) */

	/* writer */
	_Alignas(64) uint64_t tail;
	uint64_t dropped_told, tail_told;
	bool known;            /* its row is written */
	int64_t last_ns;       /* start of the last span, or its end */
	int64_t last_point_ns; /* of the last instant or sample */
	int64_t context;
	struct prof_ref target;  /* owner of following arguments and flows; id 0: none */
	struct prof_ref instant; /* the last one; id 0: none */
	PROF_LIST(struct prof_open_span) stack;
	PROF_LIST(struct prof_span_row) spans;
	PROF_LIST(struct prof_span_end) ends;
	PROF_LIST(struct prof_long_span) longs;
	PROF_LIST(struct prof_arg) args;
	PROF_LIST(char) texts; /* of arguments, each with its 0 */
	PROF_LIST(struct prof_flow) flows;
	PROF_LIST(struct prof_about) abouts;
	PROF_LIST(unsigned char) rows; /* each a multiple of 8 bytes */
	PROF_LIST(struct prof_instant) instants;
	PROF_LIST(struct prof_sample) samples;
	struct prof_levels levels; /* spans that ended before their zone was written */
	struct prof_levels late;   /* spans that ended after it */
	struct prof_counters counters;
};

struct prof_writer {
	sqlite3 *db;
	/* Of a recording that is alone: load the rows of spans and points, and, as launches have
	 * some at the end, of flows. NULL: all are inserted. */
	struct prof_bulk *bulk, *flow_bulk;
	struct prof_level_sort *level_sort; /* of such a recording */
	struct prof_clock clock;
	bool in_transaction;
	int64_t rank;
	uint64_t leave_ns; /* time the finish waits for readers to close; tests wait longer */
	/* statements */
	sqlite3_stmt *begin, *commit, *end_span;
	struct prof_insert strings, sites, contexts, tracks, spans, args, instant_args, flows,
		instants, samples, zones;
	struct prof_insert sparse_zones, levels, longs, counter_levels, overhead;
	struct prof_insert rows[PROF_TABLES]; /* prepared at first use */
	struct prof_sums sums[PROF_SUM_KINDS];
	/* dictionaries */
	struct prof_texts texts;
	/* Names of arguments that came last, by their address: they are static. */
	struct prof_name {
		const char *name;
		int64_t id;
	} names[PROF_NAMES];
	struct prof_contexts recent_contexts;
	struct prof_recent open_flows;
	/* flows without their in and their out side; flows whose other side is no longer awaited */
	uint64_t one_sided[2], forgotten;
	unsigned char *sites_seen; /* by site id */
	size_t sites_capacity;
	int64_t last_context, last_span, last_row[PROF_ZONES];
	/* totals */
	uint64_t events, commits, dropped_here, rows_total;
	struct ips_commit told;
	/* since the last commit */
	uint64_t keys, keys_told; /* changes of keys */
	uint64_t events_told, rows_told, pages_told, write_ns;
	int64_t increments; /* of levels, in all lanes, since the last commit */
	size_t depths;      /* of all lanes, of which open buckets are in memory */
	uint64_t threads;   /* number that recorded something */
	uint64_t commit_ns; /* interval between commits */
	/* What was recorded before `safe_ns` is in the file, or will be with the next commit what
	 * was recorded before `round_ns` (CLOCK_MONOTONIC). */
	uint64_t safe_ns, round_ns;
	uint64_t committed_ns;            /* when the last commit began */
	uint64_t cost_ns;                 /* of the last round that ended with a commit */
	uint64_t tracks_told, names_told; /* `tracks_refused`, prof_names_lost() in the file */
	int64_t lag_ns;                   /* of the last commit; IPS_NULL: none yet, or told */
	dev_t device;                     /* of the file, which may be renamed or deleted */
	ino_t inode;
	int wal_pages;
	struct prof_copier *copier; /* may be NULL */
	/* Times without space on the disk. `full_at` is 0 or when the present one began, `full_dropped`
	 * and `full_refused` what had been dropped and refused by then. */
	struct prof_gaps {
		uint64_t count, ns, events, rows;
		uint64_t full_at, full_dropped, full_refused, stop_at;
		bool told; /* in the file */
	} gaps;
	/*
	 * The first failure; ST_OK until then, and never reset. Only the thread that owns the
	 * writer reads and sets it. After a failure the functions with a struct prof_writer below,
	 * but prof__writer_close(), do nothing, or change only what is no longer written: whoever
	 * calls several of them checks once, at the end.
	 */
	struct err err;
};

static inline bool prof__writer_ok(const struct prof_writer *writer)
{
	return !err_stuck(&writer->err);
}

/* Record that memory is short; an earlier failure stays. */
static inline void prof__writer_nomem(struct prof_writer *writer)
{
	if (prof__writer_ok(writer))
		err_nomem(&writer->err);
}

/* Return the cells of the next row of @insert; after a failure, cells that are never written. */
static inline struct prof_cell *prof__writer_cells(struct prof_writer *writer,
						   struct prof_insert *insert)
{
	struct prof_cell *cells = insert->cells;

	if (prof__writer_ok(writer))
		prof_insert_row(insert, &cells, &writer->err);
	return cells;
}

static inline void prof__writer_flush(struct prof_writer *writer, struct prof_insert *insert)
{
	if (prof__writer_ok(writer))
		prof_insert_flush(insert, &writer->err);
}

static inline uint64_t prof_row_slots(unsigned table)
{
	return (prof_row_types[table].size + sizeof(struct ips_slot) - 1) / sizeof(struct ips_slot);
}

#define PROF_TURNS 64u /* most turns pending at one time */

/* The slots of @lane before @end are drained next. */
struct prof_turn {
	struct prof_lane *lane;
	uint64_t end;
};

struct ips_recording {
	struct ips_recording_params params;
	char *command, *path;
	unsigned generation; /* of the process; differs in a forked child */
	uint64_t serial;     /* number of the recording in the process, from 1 */
	struct prof_writer writer;
	struct prof_queue queue;
	/* Not yet reported, ns (atomic): time the whole run waited, and time its threads spent in
	 * parallel. */
	int64_t waited_ns, spent_ns;
	pthread_t thread, standby;
	sem_t take_over; /* posted when the thread has ended; the standby writes if `starved` */
	bool starved;
	sem_t wake;
	int nudged;       /* atomic: a wake-up is pending */
	int rows_wanted;  /* atomic: rows wait for room in the queue */
	int stop, failed; /* atomic */
	int no_space;     /* atomic: the writer waits for space on the disk */
	pthread_mutex_t lock;
	pthread_cond_t flushed;
	struct prof_lane *lanes, *last_lane;
	int64_t lane_count;
	struct map lane_names;   /* lanes by the hash of `track`; an item is a pointer */
	uint64_t ring_bytes;     /* of all lanes */
	size_t lane_bytes;       /* of the names of all lanes */
	uint64_t tracks_refused; /* atomic: beyond IPS_TRACKS_MOST, or IPS_NAMES_MOST of names */
	size_t text_bytes;       /* atomic: of long texts since the last flush for them */
	uint64_t flush_wanted, flush_done;
	struct err failure; /* that ended writing */
	struct err gap;     /* no space on the disk: now, and at the end if something is missing */
	void (*failed_call)(void *user, int status, const char *message); /* may be NULL */
	void *failed_user;
	struct prof_texts tensors, tensor_names; /* a tensor is the ids of its queue and key */
	struct prof_turn turns[PROF_TURNS];      /* a ring */
	uint64_t turns_set, turns_taken;
};

/* prof_track.c */
/* From now on the recording belongs to this process, and not to children that it forks. */
void prof__claim(struct ips_recording *recording);
bool prof__is_child(const struct ips_recording *recording); /* a forked child: must not touch it */
void prof__wake(void *recording);                           /* never blocks */
/* The order of draining if recording is all the program does (params.alone). On the writer's
 * thread; false: no turn is pending. */
bool prof__turn_pop(struct ips_recording *recording, struct prof_turn *out);

/* prof_dictionary.c */
/* Begin the transaction that any row needs, unless it is open. */
void prof__writer_begin(struct prof_writer *writer);
void prof__writer_commit(struct prof_writer *writer);
/* Insert a `meta` value, in the open transaction or one of its own. */
void prof__writer_meta(struct prof_writer *writer, const char *key, const char *value);
/* The same, whatever has failed before. */
enum status prof__meta_insert(sqlite3 *db, const char *key, const char *value, struct err *err);
/* Return the id; IPS_NULL if @text is NULL. */
int64_t prof__writer_text(struct prof_writer *writer, const char *text);
uint32_t prof__writer_site(struct prof_writer *writer, struct ips_site *site);
const char *prof__phase_text(int64_t phase); /* NULL where unknown */
/* Return the id; 0 if all keys are unknown, unless it is @needed. */
int64_t prof__writer_context(struct prof_writer *writer, const struct ips_keys *keys, bool needed);

/* prof_sums.c */
/* Add @row of @table (its public struct), just written, to the sums of its kind. */
void prof__sums_row(struct prof_writer *writer, unsigned table, const void *row);
void prof__sums_add(struct prof_writer *writer, enum prof_sum_kind kind, const void *row);
/* Write the changed sums in the open transaction. */
void prof__sums_flush(struct prof_writer *writer);
void prof__sums_fini(struct prof_writer *writer); /* accepts a zeroed struct */

/* prof_append.c */
/* Insert a row of @table, a public struct; @span_id is the value of a column SPAN. It is buffered
 * until the flush: until then its texts must stay valid. */
void prof__writer_row(struct prof_writer *writer, unsigned table, const unsigned char *row,
		      int64_t span_id);
void prof__writer_flush_rows(struct prof_writer *writer);
/* Insert and flush the rows of a chunk. */
void prof__writer_chunk(struct prof_writer *writer, const struct prof_chunk *chunk);

/* prof_lane.c: on the writer's thread */
/* Drain at most @most events before the slot @end, which is the begin of an event. */
void prof__lane_drain(struct prof_writer *writer, struct prof_lane *lane, uint64_t end,
		      size_t most);
void prof__lane_discard(struct prof_lane *lane);

/* Return the id of a span; the spans in the lane's buffer get the ids from @base on. */
static inline int64_t prof_span_id(struct prof_ref span, int64_t base)
{
	return span.value < 0 ? base - 1 - span.value : span.value;
}

/* Distance from row @id back to its parent; 0: no parent. */
static inline int64_t prof_span_back(const struct prof_span_row *row, int64_t id, int64_t base)
{
	const int64_t parent = prof_span_id(row->parent, base);

	return parent != 0 ? id - parent : 0;
}

void prof__lane_flush(struct prof_writer *writer, struct prof_lane *lane);
/* Free the memory of what is buffered, written or not. May be called again. */
void prof__lane_free_buffers(struct prof_lane *lane);
bool prof__lane_waits(const struct prof_lane *lane);         /* rows are buffered */
int64_t prof__lane_increments(const struct prof_lane *lane); /* of levels, buffered */
size_t prof__lane_depths(const struct prof_lane *lane);      /* whose open buckets have memory */
/* Free the buffers if nothing is in them; with @depths those of open buckets, too: what they know
 * of earlier spans than the last commit's is lost. */
void prof__lane_free_empty(struct prof_lane *lane, bool depths);

/* prof_writer.c */
void *prof__writer_main(void *recording);
void *prof__standby_main(void *recording);
/* Insert a row of the view overhead. */
void prof__writer_cost(struct prof_writer *writer, const struct prof_sum_overhead *cost);
/* Insert one row with the cost of recording since the last such row; @dropped is the total. */
void prof__writer_overhead(struct ips_recording *recording, uint64_t dropped);
/* Describe what is missing for lack of space. */
void prof__gaps_text(const struct prof_gaps *gaps, char *out, size_t size);
/* Stop writing permanently; writer->err has the reason. */
void prof__writer_fail(struct ips_recording *recording);

/* prof_writer_open.c */
/* Create the file @path with the schema and the first metadata. On failure nothing is left. */
enum status prof__writer_create(struct prof_writer *writer, const char *path,
				const struct ips_recording_params *params);
/* Open what prof__writer_create() has created. */
enum status prof__writer_open(struct prof_writer *writer, const char *path,
			      const struct ips_recording_params *params);
void prof__writer_close(struct prof_writer *writer); /* accepts a zeroed struct */
/* After the thread has ended: build indexes, set the state, leave WAL mode. */
void prof__writer_finish(struct ips_recording *recording, uint64_t begun);

/*
 * Call sites: interned sites, and the ids that all recordings of a process share.
 */

/* Return the id of @site, from 1; the first call assigns it. Any thread. */
uint32_t prof_site_id(struct ips_site *site);

#endif /* PROF_INTERNAL_H */
