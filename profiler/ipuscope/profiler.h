/*
 * ipuscope/profiler.h: record what a program does, and when, into one SQLite file.
 *
 * For any C11 or C++11 program (GCC or Clang). Link with `pkg-config --libs ipuscope` or CMake's
 * ipuscope::profiler. The file can be read while it is written, after a crash, and when complete:
 * with ipu-view, ipu-report and sqlite3.
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
 * thread. Spans, instants and counters never wait: when a track's ring is full they are dropped and
 * counted (view `overhead`). Rows (ips_append_*) are never dropped: they wait for room.
 *
 * Times are ns from the run's start (ips_recording_open). Host times are taken as raw processor
 * ticks and converted by the writer.
 *
 * Functions that can fail return 0 or a positive status; ips_status_text() says it in words.
 */
#ifndef IPUSCOPE_PROFILER_H
#define IPUSCOPE_PROFILER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define IPS_API __attribute__((visibility("default")))

/* "Not applicable or unknown" in an integer field; becomes NULL. In a text field it is the null
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

/* What a stage does with a micro-batch or its weights, by the letters of the column `phase`; 0:
 * unknown. */
enum ips_phase {
	IPS_FORWARD = 'F',
	IPS_BACKWARD = 'B', /* where it is split, what leads to the gradient of the inputs */
	IPS_WEIGHTS = 'W',  /* and what leads to that of the weights */
	IPS_RECOMPUTATION = 'R',
	IPS_UPDATE = 'U'
};

/* When and where. Start from IPS_KEYS_NULL and set what is known. */
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

/* What a commit has made durable against the death of this process. Totals since the start. */
struct ips_commit {
	uint64_t number;                          /* from 1 */
	uint64_t spans, instants, counters, rows; /* in the file */
	uint64_t dropped; /* spans, instants and counters lost to full rings */
	uint64_t bytes;   /* of the database and its write-ahead log */
};

struct ips_recording_params {
	const char *command;      /* stored in meta; NULL: unknown */
	int64_t rank;             /* of this process in a group, from 0 */
	uint32_t ring_slots;      /* of 32 bytes, for each track; rounded up to a power of two */
	uint32_t commit_ms;       /* greatest time between commits */
	uint32_t finish_ms;       /* greatest time ips_recording_close() spends on indexes, which
				   * is also at most a fiftieth of the recording's */
	uint64_t row_queue_bytes; /* rows waiting for the writer; beyond, ips_append_* waits */
	/* Called on the writer's thread after each commit; must not call back into this library. */
	void (*on_commit)(void *user, const struct ips_commit *commit);
	void *user;
	int alone; /* 1: the recording is all that the program does. Nobody reads the file
		    * meanwhile, and a crash may leave it damaged: without a write-ahead log it
		    * is written once, not twice, and the writer does not give way. What one
		    * thread records on tracks of ips_track_open_foreign() gives the same rows
		    * every time. */
};

/* The defaults: no command, rank 0, 65,536 slots, 100 ms, 5,000 ms, 64 MiB, no callback. */
IPS_API void ips_recording_params_defaults(struct ips_recording_params *params);

/* Create the database @path, which must not exist. @params may be NULL (defaults). On failure *@out
 * is NULL, nothing is left behind, and the reason is in @message (of @size bytes; may be NULL). */
IPS_API int ips_recording_open(struct ips_recording **out, const char *path,
			       const struct ips_recording_params *params, char *message,
			       size_t size);

/* Commit all that was recorded, finish the file, free the recording and its tracks. Accepts NULL.
 * No other thread may use the recording any more. Returns 0, or the first failure of the whole
 * recording (a full disk, for one): then the file is readable but incomplete. The reason is copied
 * to @message (may be NULL). */
IPS_API int ips_recording_close(struct ips_recording *recording, char *message, size_t size);

/* 0 while all is well, else the status of the failure that ended writing; its text in @message. */
IPS_API int ips_recording_status(struct ips_recording *recording, char *message, size_t size);

/* Wait until everything recorded before the call is committed. Blocks. */
IPS_API int ips_recording_flush(struct ips_recording *recording);

/*
 * Tell that the program itself spent @ns for the recording, on sums over what it records or on
 * files beside it: the view `overhead` counts it among what recording took of the run. @whole: the
 * whole run waited; 0: one of the threads that record, which go on beside each other. Any thread.
 */
IPS_API void ips_recording_spent(struct ips_recording *recording, int64_t ns, int whole);

/* ns since the run's start, now. 0 for NULL. */
IPS_API int64_t ips_recording_now_ns(const struct ips_recording *recording);

/* Store a fact about the run in `meta`; replaces an older value. */
IPS_API int ips_meta_set(struct ips_recording *recording, const char *key, const char *value);

IPS_API const char *ips_status_text(int status);

/* ---- call sites ------------------------------------------------------------------------------ */

/*
 * One place of the program that records; all its spans share it. Static or interned, never freed.
 */
struct ips_site {
	const char *category, *name;
	const char *operation; /* the planned operation it belongs to, or NULL */
	const char *file;
	uint32_t line;
	uint32_t id; /* the library's, 0 at first */
};

#define IPS_SITE(variable, category, name)                                                         \
	static struct ips_site variable = {category, name, NULL, __FILE__, __LINE__, 0}

/* A call site whose name is known at run time only. Equal arguments give the same site. NULL only
 * when out of memory (and recording with a NULL site does nothing). @operation may be NULL. */
IPS_API struct ips_site *ips_site_intern(const char *category, const char *name,
					 const char *operation);

/* ---- tracks: spans, instants, counters ------------------------------------------------------- */

struct ips_track_params {
	const char *name;   /* shown; NULL: the track's unique name */
	const char *parent; /* the unique name of the lane it is drawn under, or NULL */
	int64_t ipu;        /* simulated IPU, or IPS_NULL */
	enum ips_clock clock;
	uint32_t ring_slots; /* 0: the recording's default */
};

/* The part of a track that the inline functions below need; fields are the library's own. */
struct ips_slot {
	uint64_t ticks;
	struct ips_site *site;
	uint64_t kind; /* enum ips_event and, above bit 8, what it says */
	uint64_t value;
};

struct ips_track {
	struct ips_slot *slots;
	uint64_t mask;
	uint64_t head;     /* next slot to write; the producer's */
	uint64_t limit;    /* head may go as far as this without looking at `consumed` */
	uint64_t open;     /* spans begun and not ended: each keeps a slot in reserve for its end */
	uint64_t skipping; /* depth within a dropped span */
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
	IPS_EVENT_FLOW_IN
};

/* A lane, owned by the recording. @track is unique in the run ("(2)" and so on is added otherwise).
 * @params may be NULL: a host track. NULL when @recording is NULL or memory is short. */
IPS_API struct ips_track *ips_track_open(struct ips_recording *recording, const char *track,
					 const struct ips_track_params *params);

/* Give @events more slots room; false: dropped and counted. For the inline functions. */
IPS_API int ips_track_make_room(struct ips_track *track, uint64_t slots);

/* The system's monotonic clock, ns: what stands for ticks where this header knows no counter of the
 * processor. For the inline functions. */
IPS_API uint64_t ips_monotonic_ns(void);

static inline uint64_t ips_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc(); /* __rdtsc() without its header, the largest there is */
#else
	return ips_monotonic_ns();
#endif
}

/* Begin a span on the calling thread's track. Spans of a track nest. */
static inline void ips_span_begin(struct ips_track *track, struct ips_site *site)
{
	struct ips_slot *slot;

	if (!track)
		return;
	if (__builtin_expect(track->skipping != 0 || track->head + track->open + 2 > track->limit,
			     0)) {
		if (!ips_track_make_room(track, 2)) {
			track->skipping++;
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
}

/* End the innermost span. Its room was kept when it began, so an end is never lost. */
static inline void ips_span_end(struct ips_track *track)
{
	struct ips_slot *slot;

	if (!track)
		return;
	if (__builtin_expect(track->skipping != 0, 0)) {
		track->skipping--;
		return;
	}
	if (track->open == 0)
		return;
	slot = &track->slots[track->head & track->mask];
	slot->ticks = ips_ticks();
	slot->kind = IPS_EVENT_END;
	track->open--;
	track->head++;
	__atomic_store_n(&track->published, track->head, __ATOMIC_RELEASE);
}

/* The keys of all that follows on this track, until set again. NULL: none. */
IPS_API void ips_track_set_keys(struct ips_track *track, const struct ips_keys *keys);

IPS_API void ips_instant(struct ips_track *track, struct ips_site *site);
IPS_API void ips_counter(struct ips_track *track, struct ips_site *site, double value);

/* An argument of the innermost open span (or of the last ips_span_at()); given twice, the later
 * value stays. Text is cut at 64 bytes. */
IPS_API void ips_span_arg_int(struct ips_track *track, const char *static_name, int64_t value);
IPS_API void ips_span_arg_real(struct ips_track *track, const char *static_name, double value);
IPS_API void ips_span_arg_text(struct ips_track *track, const char *static_name, const char *value);

/* An arrow from the innermost open span of one track to that of another: the same @id (any number
 * unique for @site) on both sides. An id whose other side never comes is dropped and counted. */
IPS_API void ips_flow_out(struct ips_track *track, struct ips_site *site, uint64_t id);
IPS_API void ips_flow_in(struct ips_track *track, struct ips_site *site, uint64_t id);

/*
 * A span whose times are given: for the device clock. On one track spans come in order of start, a
 * parent before its children (nesting is by containment). One that starts before its predecessor,
 * or that overlaps the end of an enclosing span, is dropped and counted. Unlike ips_span_begin()
 * this waits for room in the ring. @start_ns, @dur_ns >= 0.
 */
IPS_API void ips_span_at(struct ips_track *track, struct ips_site *site, int64_t start_ns,
			 int64_t dur_ns);

/* A track of another program's thread, for what was measured elsewhere: @pid and @tid (or IPS_NULL)
 * are that thread's. Recording on it always waits for room in the ring, and drops nothing. */
IPS_API struct ips_track *ips_track_open_foreign(struct ips_recording *recording, const char *track,
						 const struct ips_track_params *params, int64_t pid,
						 int64_t tid);

/* What happened at a given time, for what was measured elsewhere; times >= 0. Instants and samples
 * of one track come in order of time (one that does not is moved to the one before); a side of a
 * flow belongs to the innermost of the spans with given times that are open then, their ends
 * included, and comes before spans that begin later. They wait for room in the ring. */
IPS_API void ips_instant_at(struct ips_track *track, struct ips_site *site, int64_t time_ns);
IPS_API void ips_counter_at(struct ips_track *track, struct ips_site *site, int64_t time_ns,
			    double value);
IPS_API void ips_flow_out_at(struct ips_track *track, struct ips_site *site, uint64_t id,
			     int64_t time_ns);
IPS_API void ips_flow_in_at(struct ips_track *track, struct ips_site *site, uint64_t id,
			    int64_t time_ns);
/* As ips_span_arg_text(), of any length (the text is copied to the heap). */
IPS_API void ips_span_arg_long_text(struct ips_track *track, const char *static_name,
				    const char *value);

/* ---- rows: one typed append per table of the contract ---------------------------------------- */

/* Fields are named as the columns of the views (docs/schema.md); texts are copied. */

struct ips_execution {
	int64_t mode, epoch, execution, first_step, steps, updates, start_ns, dur_ns, start_cycle,
		cycles, traced;
};

struct ips_layer {
	const char *layer, *class_name;
	int64_t position, stage;
	const char *output_shape;
	int64_t params, trainable_params, flops;
};

struct ips_operation {
	const char *operation, *layer, *kind, *phase;
	int64_t stage, flops, cycles, compute_cycles, exchange_cycles, sync_cycles, bytes_exchanged,
		tiles_used;
	double tile_balance;
	int64_t code_bytes;
};

struct ips_plan {
	const char *operation, *method;
	int64_t split_batch, split_field, split_in, split_out, split_kernel, serial_splits,
		temporary_bytes, cycles;
};

struct ips_program {
	int64_t program_id, parent_id, position;
	const char *type, *name, *operation;
	int64_t repeat_count, call_target;
};

struct ips_compute_set {
	const char *compute_set, *operation;
	int64_t program_id, vertices, tiles, max_cycles;
	double mean_cycles;
};

/*
 * The execution trace of a device that does the same again and again (a simulator; a device whose
 * program is traced once): the trace and its steps, once, before the first run of it; then only a
 * row per run. The view `device_steps` has a row for every step of every run, its times shifted by
 * the run's start and converted to ns with the trace's clock. A device that never does the same
 * twice has one trace per run.
 */
struct ips_device_trace {
	int64_t trace_id; /* the caller's, unique in the recording */
	double clock_hz;  /* of the cycles below; NaN: their ns are unknown */
	const char *name; /* of the program, for people */
};

struct ips_device_step {
	int64_t trace_id;
	int64_t trace_step; /* from 0, on its IPU */
	int64_t ipu;        /* from the run's first_ipu */
	int64_t stage;
	const char *phase;  /* "F", "B", "W", "R", "U" */
	int64_t microbatch; /* from the run's first_microbatch, and its step from first_step */
	int64_t program_id;
	const char *type, *name, *operation;
	int64_t start_cycle; /* from the run's start_cycle */
	int64_t cycles, cycles_overlapped, active_tiles;
	double tile_balance, active_tile_balance;
	int64_t bytes_in, bytes_out;
};

/* One run of a trace: by one replica, on IPUs from first_ipu on. */
struct ips_device_run {
	int64_t trace_id, mode, epoch, execution;
	int64_t weight_update; /* IPS_NULL: updates nothing; then its steps have no micro-batch */
	int64_t first_step;    /* of the trace's micro-batch 0 */
	int64_t replica, first_ipu, start_cycle;
	int64_t first_microbatch; /* of the weight update: the trace's micro-batch 0 */
};

struct ips_stage_timing {
	struct ips_keys keys;
	int64_t clock, start_ns, dur_ns, cpu_ns;
};

struct ips_bubble {
	struct ips_keys keys;
	int64_t clock;
	const char *schedule;
	int64_t stages, microbatches, makespan_ns, busy_ns;
	double idle_fraction, bubble_rate, bubble_over_ideal, theory_idle_fraction,
		theory_bubble_rate, theory_bubble_over_ideal;
	int64_t ramp_up_ns, ramp_down_ns, imbalance_ns, communication_ns, oversubscribed;
};

struct ips_variable {
	int64_t variable_id;
	const char *variable, *layer, *kind, *shape, *dtype;
	int64_t bytes, ipu, always_live, first_program_step, last_program_step;
};

/* @bytes on @tile, and on each of @more_tiles tiles after it (0 or IPS_NULL: on that alone; up to
 * tile 2047). The view has a row for each tile. */
struct ips_variable_tile {
	int64_t variable_id, ipu, tile, bytes, more_tiles;
};

/* The same for a category of memory. */
struct ips_tile_memory {
	int64_t ipu, tile;
	const char *category, *region;
	int64_t bytes, capacity, more_tiles;
};

struct ips_liveness {
	int64_t ipu, program_step, program_id, always_live_bytes, not_always_live_bytes;
};

struct ips_tensor {
	const char *queue, *key;
	const char *kind; /* activation, gradient, weight, optimizer_state */
	const char *layer;
	int64_t stage;
	const char *shape, *dtype;
	const char *activity; /* of an activation that can be dead or flat: relu, tanh, sigmoid */
};

struct ips_tensor_stats {
	struct ips_keys keys;
	int64_t tensor_id; /* from ips_tensor_add() */
	int64_t time_ns, n, n_nan, n_pos_inf, n_neg_inf, n_zero, n_neg, n_pos;
	double min, max, mean, std, l1, l2, abs_min_nonzero, abs_max; /* of the finite values */
	double inactive;     /* of an activation: the fraction of its neurons that are inactive */
	double update_ratio; /* of what an update changes: mean |change| / mean |value before| */
	int64_t n_changed;   /* elements that the update changed */
};

/* How much of a tensor is kept from a moment on: first when it is registered (keys and time NULL),
 * again when that changes. */
struct ips_tensor_tier {
	struct ips_keys keys;
	int64_t tensor_id;
	const char *tier;
	int64_t every; /* steps, or weight updates where it belongs to one */
	int64_t keep;  /* of "last": how many; else IPS_NULL */
	int64_t time_ns;
	const char *why; /* the rule of the run file, or what lowered it */
};

struct ips_tensor_histogram {
	struct ips_keys keys;
	int64_t tensor_id, bin;
	double low, high;
	int64_t count;
};

struct ips_tensor_epoch {
	int64_t mode, epoch;
	const char *callback, *queue, *key, *shape;
	double mean, std, min, max;
	int64_t nans, infs;
};

struct ips_capture {
	struct ips_keys keys;
	int64_t tensor_id;
	const char *dtype, *shape;
	int64_t bytes; /* of data; copied */
	int64_t chunk;
	const void *data;
};

struct ips_metric {
	int64_t mode, epoch, execution, step, time_ns;
	const char *name;
	double value;
};

struct ips_health_rule {
	const char *rule;
	double threshold;
	int64_t patience, enabled;
	const char *why;
	const char *parameters; /* its others, a JSON object; NULL: none */
};

struct ips_health {
	struct ips_keys keys;
	const char *rule;
	int64_t tensor_id;
	const char *layer; /* NULL: the tensor's */
	int64_t time_ns;
	double value, threshold;
	const char *key; /* of what is no tensor ("loss"); NULL: the tensor's */
};

struct ips_first_nonfinite {
	struct ips_keys keys;
	int64_t tensor_id, time_ns, element;
	const char *value; /* nan, inf, -inf */
};

/* A tensor on the way to the first bad number, as it then was: what is not known is IPS_NULL or
 * NaN. */
struct ips_nonfinite_trail {
	struct ips_keys keys;
	int64_t position; /* 0: the bad one, -1: the one before it, ... */
	const char *role; /* bad, input, weight, before */
	int64_t tensor_id, time_ns, n, n_nan, n_pos_inf, n_neg_inf, n_zero, n_neg, n_pos;
	double min, max, mean, std, l1, l2, abs_min_nonzero, abs_max;
};

struct ips_time_split {
	int64_t clock, execution, replica, ipu, compute_ns, exchange_ns, sync_ns, host_io_ns,
		idle_ns;
};

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
	X(nonfinite_trail, ips_nonfinite_trail)

enum ips_table {
#define IPS_TABLE_ENUM(name, type) IPS_TABLE_##name,
	IPS_TABLE_MAP(IPS_TABLE_ENUM)
#undef IPS_TABLE_ENUM
	IPS_TABLES
};

/* Append @count rows of @table's struct, as an array. Waits while the queue is full; fails only
 * when writing has failed (the status of ips_recording_status()), memory is short, or a row lacks
 * what its table needs (invalid request: then none is appended). Those fields are: the clock
 * everywhere, start_ns and dur_ns of stage timings, tensor_id of statistics, histograms, captures,
 * tiers and trails, trace_id of device steps and runs. A program, variable or device trace with the
 * id of an earlier one replaces it. NULL: 0. */
IPS_API int ips_append(struct ips_recording *recording, enum ips_table table, const void *rows,
		       size_t count);

/* ips_append_metric(recording, &row) and so on: ips_append() for one row, with its type checked. */
#define IPS_APPEND_ONE(name, type)                                                                 \
	static inline int ips_append_##name(struct ips_recording *recording,                       \
					    const struct type *row)                                \
	{                                                                                          \
		return !recording ? 0 : ips_append(recording, IPS_TABLE_##name, row, 1);           \
	}
IPS_TABLE_MAP(IPS_APPEND_ONE)
#undef IPS_APPEND_ONE

/* Register an outfed tensor; the id is for the rows above. The same queue and key give the same id.
 * Returns IPS_NULL for a NULL recording or when memory is short. */
IPS_API int64_t ips_tensor_add(struct ips_recording *recording, const struct ips_tensor *tensor);

#ifdef __cplusplus
}

/* C++: a span for a scope. */
namespace ipuscope
{
class span
{
      public:
	span(ips_track *lane, ips_site *site) : track(lane)
	{
		ips_span_begin(track, site);
	}
	~span()
	{
		ips_span_end(track);
	}
	span(const span &) = delete;
	span &operator=(const span &) = delete;

      private:
	ips_track *track;
};
} // namespace ipuscope
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
 * Versions. A program that was built with this header runs right with every later libipuscope of
 * the same soname (libipuscope.so.0). The soname's number is raised by the change after which that
 * no longer holds: a function or the value of an enum is gone or means something else, a function's
 * parameters are others, a struct that the program allocates or that inline functions here look
 * into has another layout, but for members at the end of one that carries its size. What is only
 * added keeps the number. ipuscope/outfeed.h, ipuscope/report.h and ipuscope/trainer.h go by the
 * same rule, each library with a number of its own.
 */

#endif /* IPUSCOPE_PROFILER_H */
