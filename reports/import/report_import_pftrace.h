/*
 * A Perfetto trace while it is read: what report_import_pftrace.c (packets),
 * report_import_pftrace_event.c (tracks and track events), report_import_pftrace_gpu.c (render
 * stages and counters of GPUs) and, below these, report_import_pftrace_sequence.c (names and clocks
 * of sequences) share.
 */
#ifndef REPORT_IMPORT_PFTRACE_H
#define REPORT_IMPORT_PFTRACE_H

#include "reports/import/report_import_internal.h"
#include "reports/import/report_import_wire.h"

#define PFTRACE_CLOCKS   128 /* numbers of clocks; from 64 on they are a sequence's own */
#define PFTRACE_BOOTTIME 6   /* the clock that all times are converted to */
#define PFTRACE_MOST     ((size_t)1 << 20) /* tracks, and processes */

/* What the names of a sequence are of. */
enum interned_kind {
	INTERNED_NONE,
	INTERNED_CATEGORY,
	INTERNED_NAME,
	INTERNED_ARGUMENT,
	INTERNED_TEXT,
	INTERNED_GPU_CONTEXT, /* its number is the pid */
	INTERNED_GPU_SPEC,    /* a queue or a stage */
	INTERNED_GPU_OLD_QUEUE,
	INTERNED_GPU_OLD_STAGE,
	INTERNED_GPU_KERNEL, /* its number: registers of a thread */
	INTERNED_GPU_ARGUMENT,
	INTERNED_GPU_COUNTERS, /* a descriptor of counters; its number is the GPU */
	INTERNED_GPU_COUNTER   /* iid: that of the descriptor << 32 | counter_id */
};

struct interned {
	uint64_t iid;
	enum interned_kind kind;
	const char *text;
	int64_t number;
};

/* ns = ticks * multiplier + offset; of incremental clocks a timestamp is a distance to the last. */
struct pf_clock {
	int64_t multiplier, offset_ns, last_ns;
	bool known, incremental;
};

struct sequence {
	uint64_t id;
	struct interned *names;
	size_t count, capacity;
	struct map map;
	bool whole;     /* nothing that its packets refer to is missing */
	uint64_t clock; /* default of its packets; 0: boot time */
	uint64_t track; /* default of its events */
	bool has_track;
	uint64_t extra[8]; /* default tracks of extra counter values */
	size_t extra_count;
	int64_t reference_us; /* of timestamps in events, on the clock of thread descriptors */
	int64_t pid, tid;     /* of an old thread descriptor; IPS_NULL: none */
	struct pf_clock clocks[PFTRACE_CLOCKS - 64];
};

/* TrackDescriptor.ChildTracksOrdering. */
enum child_order {
	ORDER_UNKNOWN = 0,
	ORDER_NAMES = 1,
	ORDER_TIMES = 2, /* as they are found in the file */
	ORDER_RANKS = 3
};

struct pf_track {
	uint64_t uuid, parent;
	uint64_t order;   /* of those under it: enum child_order */
	int64_t rank;     /* among its siblings, if the file orders these */
	int64_t pid, tid; /* IPS_NULL: not known */
	const char *name;
	bool described, has_parent, counter, incremental;
	int64_t multiplier;
	double sum;           /* of an incremental counter */
	uint32_t track, site; /* of the import; IMPORT_NO_ID: not declared yet */
};

/* A render stage, by its event_id. */
struct pf_stage {
	uint64_t id, key; /* of its call: the first event_id that the call submitted */
	int64_t start_ns;
	uint32_t track; /* IMPORT_NO_ID: not read yet */
};

struct pf_process {
	int64_t pid, rank;
	const char *name; /* NULL: not known */
};

#define PFTRACE_RECENT 16384 /* a power of two */
#define PFTRACE_IDS    4096  /* of stages that one call submitted or that one waited for */

struct pftrace {
	struct import *import;
	struct err *err; /* sticky: after a failure nothing more is read */
	/* Sites by category and name, and names of arguments, which are kept texts: equal ones have
	 * one address. */
	struct pf_recent {
		const char *category, *name;
		uint32_t index;
	} recent[PFTRACE_RECENT];
	struct import_stream stream;
	struct sequence *sequences;
	size_t sequence_count, sequence_capacity;
	struct map sequence_map;
	struct pf_track *tracks;
	size_t track_count, track_capacity;
	struct map track_map;
	bool ordered;                            /* a descriptor asks for an order */
	bool threads_ordered, processes_ordered; /* by rank */
	struct pf_process *processes;
	size_t process_count, process_capacity;
	struct map process_map;
	struct pf_clock clocks[64];
	struct sequence gpu_names; /* of the trace, not of a sequence */
	struct pf_stage *stages;
	size_t stage_count, stage_capacity;
	struct map stage_map;
	uint64_t waits; /* arrows between stages */
	uint64_t ids[PFTRACE_IDS];
	unsigned char *inflated;
	size_t inflated_capacity;
	char text[IMPORT_TEXT_SIZE];
	bool broken;
};

static inline bool pftrace_is_bytes(const struct import_wire_field *field)
{
	return field->type == IMPORT_WIRE_BYTES && field->bytes.at;
}

/* ---- report_import_pftrace_sequence.c -------------------------------------------------------- */

/* A copy of the text that lives until the next one is read. */
const char *report__pftrace_text(struct pftrace *pf, const struct import_wire *bytes);
/* A copy of the text that lives as long as the import, the same for equal ones. NULL: out of
 * memory. */
const char *report__pftrace_store(struct pftrace *pf, const struct import_wire *bytes);
/* The sequence of packets @id, new if it is not known; NULL: too many, or out of memory. */
struct sequence *report__pftrace_sequence(struct pftrace *pf, uint64_t id);
/* Forget the sequence's names and defaults, as its writer does. */
void report__pftrace_clear(struct sequence *sequence);
/* Add a name of the sequence; the first of an id stays. Its text NULL: out of memory. */
void report__pftrace_intern(struct pftrace *pf, struct sequence *sequence,
			    const struct interned *item);
/* An interned id; NULL: unknown. */
const struct interned *report__pftrace_find(const struct sequence *sequence,
					    enum interned_kind kind, uint64_t iid);
/* Its text; NULL: unknown. */
const char *report__pftrace_interned(const struct sequence *sequence, enum interned_kind kind,
				     uint64_t iid);
/* Append the numbers of a repeated field, one value or many packed in bytes (@fixed: 8 bytes each),
 * to the @count of @out, which has room for @most. Return how many there are. */
size_t report__pftrace_numbers(const struct import_wire_field *field, bool fixed, uint64_t *out,
			       size_t most, size_t count);
/* Read a ClockSnapshot. */
void report__pftrace_snapshot(struct pftrace *pf, struct sequence *sequence,
			      struct import_wire snapshot);
/* A timestamp of clock @id in ns of boot time; a clock that no snapshot has counts as it. IPS_NULL:
 * out of range. */
int64_t report__pftrace_ns(struct pftrace *pf, struct sequence *sequence, uint64_t id,
			   int64_t ticks);
/* Find or add a process; NULL: @pid is IPS_NULL, too many, or out of memory. */
struct pf_process *report__pftrace_process(struct pftrace *pf, int64_t pid);
void report__pftrace_name_process(struct pftrace *pf, int64_t pid, const char *name);
const char *report__pftrace_process_name(const struct pftrace *pf, int64_t pid); /* or NULL */

/* ---- report_import_pftrace_event.c ----------------------------------------------------------- */

/* The descriptor of a thread or process into @track. @reference_us: of a thread, may be NULL. */
void report__pftrace_descriptor(struct pftrace *pf, struct import_wire message, bool of_thread,
				struct pf_track *track, int64_t *reference_us);
/* A TrackDescriptor. */
void report__pftrace_track(struct pftrace *pf, struct import_wire message);
/* Put the tracks under those that their descriptors name, and in their order. Descriptors may come
 * after events. */
void report__pftrace_nest(struct pftrace *pf);
/* A TrackEvent. @ns: of its packet, if @has_time. */
void report__pftrace_event(struct pftrace *pf, struct sequence *sequence,
			   struct import_wire message, bool has_time, int64_t ns);

/* ---- report_import_pftrace_gpu.c ------------------------------------------------------------- */

/* Interned data: an InternedGpuCounterDescriptor, an InternedComputeKernel. */
void report__pftrace_gpu_counters(struct pftrace *pf, struct sequence *sequence,
				  struct import_wire interned);
void report__pftrace_gpu_kernel(struct pftrace *pf, struct sequence *sequence,
				struct import_wire kernel);
/* A GpuRenderStageEvent and a GpuCounterEvent. @ns: of their packet, if @has_time. */
void report__pftrace_gpu_stage(struct pftrace *pf, struct sequence *sequence,
			       struct import_wire message, bool has_time, int64_t ns);
void report__pftrace_gpu_sample(struct pftrace *pf, struct sequence *sequence,
				struct import_wire message, bool has_time, int64_t ns);
/* The GpuCorrelation of a track event: what it submitted, as a row of the next span; and what it
 * waited for, as arrows to the event on @track at @ns. */
void report__pftrace_gpu_call(struct pftrace *pf, struct import_wire correlation);
void report__pftrace_gpu_wait(struct pftrace *pf, struct import_wire correlation, uint32_t track,
			      int64_t ns);

#endif /* REPORT_IMPORT_PFTRACE_H */
