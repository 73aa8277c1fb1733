/*
 * Shared by the parts of an import: the tables of names, threads and processes, the sorters, the
 * counts. In order of use: the reader of the format (report_import_reader.h) makes records of
 * events, report_import_pair.c pairs begins and ends into spans, report_import_track.c maps threads
 * to tracks, report_import_record.c records everything.
 *
 * Threading: the caller's thread only (the sorters and the recording have their own).
 */
#ifndef REPORT_IMPORT_INTERNAL_H
#define REPORT_IMPORT_INTERNAL_H

#include "common/fs.h"
#include "common/str.h"
#include "reports/import/report_import_reader.h"

#define IMPORT_MOST_SITES  ((size_t)1 << 18)
#define IMPORT_MOST_TRACKS ((size_t)8192)
#define IMPORT_MOST_OPEN   4096              /* nested open spans */
#define IMPORT_MOST_FLOWS  ((size_t)1 << 20) /* open flows */
#define IMPORT_MOST_META   256
#define IMPORT_MOST_RANK   (1 << 24)
#define IMPORT_SORT_BYTES  ((size_t)30 << 20) /* of each sorter */
#define IMPORT_TIME_MOST   ((int64_t)1 << 61) /* ns; a time beyond +- this is invalid */

#define IMPORT_MOST_CALLS   ((size_t)1 << 20) /* recent calls whose step is remembered */
#define IMPORT_MOST_DEVICES 1024

/* What PyTorch's profiler says by the category of an event. */
enum import_kineto {
	KINETO_NONE,
	KINETO_KERNEL,
	KINETO_COPY,
	KINETO_FILL,
	KINETO_CALL,
	KINETO_ANNOTATION,
	KINETO_DEVICE_ANNOTATION,
	KINETO_PYTHON,
	KINETO_SYNC,
	KINETO_MEMORY,
	KINETO_LAUNCH /* a flow from a call to what it launched */
};

struct import_site {
	struct ips_site *site;
	int64_t step; /* of "ProfilerStep#12": 12, of all spans that begin within its time */
	enum import_kineto kineto;
	const char *kernel_kind; /* of a kernel of this name: report__import_kernel_kind() */
};

struct import_process {
	char *name, *labels; /* NULL: not given */
	int64_t sort;
	bool sorted; /* the file gives its order */
	/* the last step that began, while recording */
	int64_t step, step_end_ns;
};

/* One track; its spans nest. */
struct import_lane {
	struct ips_track *track;
	struct import_open {
		int64_t start_ns, end_ns;
		bool device; /* a kernel or copy: no other one is within it */
	} * open;
	size_t count, capacity;
	uint64_t async; /* the asynchronous id whose spans are on this lane */
};

struct import_thread {
	enum import_thread_kind kind;
	bool used;     /* has at least one record */
	bool heads;    /* others are under it */
	bool exported; /* by ipuscope, which names the track and what it is under */
	uint32_t process;
	char *name;           /* NULL: not given */
	char *shown;          /* display name in traces exported by ipuscope; NULL: its name */
	char *parent;         /* track to show it under, in traces exported by ipuscope */
	uint32_t above;       /* else the thread to show it under; IMPORT_NO_ID: its process */
	int64_t ipu;          /* in traces exported by ipuscope; else IPS_NULL */
	enum ips_clock clock; /* in traces exported by ipuscope; else IPS_HOST */
	const char *what;     /* tid or category as written in the trace */
	const char *device;   /* of a stream: "GPU 0" */
	const char *shows;    /* the device whose counters it has; NULL: none */
	char *track;          /* unique name of its first lane */
	int64_t sort, rank;   /* `rank` among those with the same `sort` */
	struct import_lane *lanes;
	size_t lane_count, lane_capacity;
	/* flows that end at the next span */
	struct import_next {
		uint32_t site;
		uint64_t link;
	} * next;
	size_t next_count, next_capacity;
};

/* A table of interned texts with an item for each. */
#define IMPORT_TABLE(type)                                                                         \
	struct {                                                                                   \
		struct import_intern table;                                                        \
		type *items;                                                                       \
		size_t capacity;                                                                   \
	}

/* A call, by its launch_key: the step of what it launches. */
struct import_call {
	int64_t key, step;
};

struct import {
	const struct report_import_params *params;
	struct report_import_counts *counts;
	struct import_input input;
	struct import_scan scan;
	IMPORT_TABLE(struct import_site) sites;
	IMPORT_TABLE(struct import_process) processes;
	IMPORT_TABLE(struct import_thread) threads;
	struct import_sorter *main;
	/* Halves of spans: paired as they come, or (if the other is NULL) sorted first. */
	struct import_pairs *pairs;
	struct import_sorter *halves;
	bool unordered; /* they came in an order in which they cannot be paired: start again */
	uint64_t records;
	int64_t first_ns, last_ns; /* range of all times; first > last: no time yet */
	bool own;                  /* exported by ipuscope: times count from the run's start */
	int64_t epoch_ns;          /* wall clock time of ts 0; IPS_NULL: unknown */
	struct import_meta {
		char *key, *value;
	} meta[IMPORT_MOST_META];
	size_t meta_count;
	bool rocprof_json; /* it has the key of rocprofv3's JSON */
	struct str scratch;
	char *text; /* buffer of IMPORT_SITE_SIZE */
	struct ips_recording *recording;
	struct import_flows *flows;
	struct import_intern track_names;
	size_t tracks;
	uint32_t ring_slots;
	uint64_t recorded;
	const char *source;        /* meta's `source` */
	int64_t rank;              /* of the process that was recorded */
	struct import_args args;   /* of the next event of a reader */
	struct import_intern kept; /* report__import_store() */
	struct ips_device devices[IMPORT_MOST_DEVICES];
	size_t device_count;
	bool linked; /* kernels or copies have a launch_key */
	/* A table by the last bits of the key, which grows where two share a place */
	struct import_call *calls;
	size_t call_places; /* 0: no call yet */
};

#define IMPORT_TEXT_SIZE (IPS_NAME_MOST + 1)    /* a name and its 0; longer names are cut */
#define IMPORT_SITE_SIZE (3 * IMPORT_TEXT_SIZE) /* category, name and operation */

static inline void import_used(struct import *import, enum report_import_use use)
{
	import->counts->used[use]++;
}

/* report_import.c */
/* Prepare @import, whose params, counts and input are set; the sorters' files are named after
 * @temporary. @sorted: halves of spans are sorted before they are paired. After a failure, too,
 * report__import_fini() frees all. */
enum status report__import_init(struct import *import, const char *temporary, bool sorted,
				struct err *err);
/* Read the input, in the format that it has, into the tables and sorters. */
enum status report__import_read(struct import *import, struct err *err);
void report__import_fini(struct import *import);

/* The formats. Of report_import_sqlite.c: databases of other profilers. Of report_import_events.c:
 * Chrome traces, the last of the formats: what is no JSON is refused with the place of the
 * error. */
extern const struct import_format report__import_sqlite, report__import_xplane,
	report__import_pftrace, report__import_folded, report__import_chrome;

/* report_import_reader.c */
/* Number @record, and put a copy of it, or half of a span, with @args (may be NULL). */
enum status report__import_put(struct import *import, struct import_record *record,
			       const struct import_args *args, struct err *err);
/* Append a row to @args. */
void report__import_args_row(struct import_args *args, enum ips_table table, const void *row,
			     size_t size);
/* Copy the input to a new file beside the output: *@fd (-1: not made), and its path in @named, or
 * NULL: it has no name. The caller closes and removes it, after a failure, too. */
enum status report__import_copy(struct import *import, char named[FS_PATH_SIZE], int *fd,
				size_t *size, struct err *err);

/* report_import_kind.c */
enum import_kineto report__import_kineto(const char *category, const char *name);

/* report_import_kineto.c: what PyTorch's profiler says */
enum import_thread_kind report__import_kineto_kind(enum import_kineto kineto);
/* Append what is known of a span to its arguments, as a row. */
enum status report__import_kineto_span(struct import *import, struct import_event *event,
				       uint32_t thread_id, const struct import_site *site,
				       struct err *err);
enum status report__import_kineto_memory(struct import *import, const struct import_event *event,
					 int64_t ns, struct err *err);
/* A top-level value; *@taken: it must not be stored. */
enum status report__import_kineto_value(struct import *import, const struct import_token *key,
					const struct import_token *value, bool *taken,
					struct err *err);

/* report_import_facts.c */
/* Store a fact as trace@head.@key. */
enum status report__import_meta_add(struct import *import, const char *head,
				    const struct import_token *key,
				    const struct import_token *value, struct err *err);
/* Record the facts of the trace, and its devices. */
enum status report__import_facts_write(struct import *import, struct err *err);
/* Like report__import_left(), and store the byte offset of the first such event. */
void report__import_left_at(struct import *import, enum report_import_left left, uint64_t offset);
/* Report the progress of the later phases; fails if the user cancelled. After a failure in @err
 * (not NULL) it does nothing. */
enum status report__import_progress(struct import *import, int permille, struct err *err);

/* report_import_names.c */
/* The next return indices; IMPORT_NO_ID: too many, or out of memory (set in @err) */
uint32_t report__import_site(struct import *import, const struct import_event *event,
			     const char *series, struct err *err);
uint32_t report__import_thread(struct import *import, enum import_thread_kind kind,
			       const struct import_event *event, struct err *err);
uint32_t report__import_process(struct import *import, const struct import_token *pid,
				struct err *err);
/* A row of a thread or stream, not of a process or category. */
bool report__import_of_thread(enum import_thread_kind kind);
/* The thread that a row of Python's frames or of waiting belongs to; *@out NULL: it has no row. */
enum status report__import_thread_beside(const struct import *import,
					 const struct import_thread *thread,
					 const struct import_thread **out, struct err *err);
void report__import_tables_fini(struct import *import);

/* report_import_pair.c */
bool report__import_pairs_init(struct import *import);
void report__import_pairs_fini(struct import *import);
/* Pair a half with those that came before. On failure `unordered` may be set. */
enum status report__import_half(struct import *import, const struct import_record *record,
				const struct import_args *args, struct err *err);
/* Pair what is left and put the spans into `main`. */
enum status report__import_pair(struct import *import, struct err *err);

/* report_import_track.c */
void report__import_tracks_fini(struct import *import);
/* Order and name the tracks of all used threads, and of the processes and devices that they are
 * under; open the first lane of each. After a failure in @err (not NULL) nothing is done. */
enum status report__import_tracks_open(struct import *import, struct err *err);
/* Add a lane to @thread for overlapping spans; NULL: too many tracks, or a failure in @err. */
struct import_lane *report__import_lane_add(struct import *import, struct import_thread *thread,
					    struct err *err);

/* report_import_record.c: record everything in `main`. After a failure in @err (not NULL) nothing
 * is done. */
enum status report__import_record(struct import *import, struct err *err);

/* report_import_record.c: open flows, by key */
struct import_flows;
bool report__import_flows_init(struct import *import);
void report__import_flows_fini(struct import *import);

/* ---- progress of a command (report_import_command.c) ----------------------------------------- */

struct import_progress {
	bool shown, any;
	uint64_t next_ns;
};

/* Begin to show progress if standard error is a terminal, and to notice Ctrl-C. */
void report__import_begin_progress(struct import_progress *progress, bool quiet);
/* For report_import_params; @user: the struct. ST_INTERRUPTED after Ctrl-C. */
enum status report__import_on_progress(void *user, int permille, uint64_t events);
/* Remove the line. */
void report__import_end_progress(const struct import_progress *progress);

#endif /* REPORT_IMPORT_INTERNAL_H */
