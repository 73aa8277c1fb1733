/*
 * What a reader of a format hands to the import, and the table of formats.
 *
 * A format is a row of report_import.c: it is recognised by the first bytes of the file's
 * content, and its function reads the whole file once, front to back where it is a stream. The
 * rest is the same for all formats: sorting by time outside memory, lanes for spans that overlap,
 * steps, launches, names of tracks, the database, counts.
 *
 * A reader
 *
 *   1. declares where things happen: report__import_track(), once for each thread, stream or
 *      asynchronous row that has anything, keeping the index;
 *   2. declares what happens: report__import_name_site(), once for each category and name;
 *   3. hands over events in any order: spans, begins and ends, instants, samples, flows,
 *      allocations. Times are ns of the file's own clock, of any origin: the import chooses the
 *      base. Arguments and rows of the current event are collected first (report__import_arg_*(),
 *      report__import_row()) and go with the next span, begin, end or instant;
 *   4. says what is on a device by a row with the span: struct ips_kernel or ips_copy with the
 *      launch_key of its call, which has a struct ips_call; a range has a struct ips_range. Texts
 *      of rows are static or interned (report__import_store());
 *   5. adds one to counts->events for each event of the file (a span, an instant, a row: what the
 *      format's own tools would count), and accounts for each: the functions below count what
 *      they take under counts->used; what they do not take, the reader counts with
 *      report__import_left() or report__import_left_what(). The sums must agree.
 *
 * Facts about the run are stored as they come (report__import_fact()), in the view `meta` as
 * `trace.KEY`. Environments, command lines, and the names of users and hosts are never taken over.
 *
 * A defect in the middle of a file ends the reading with ST_OK and report__import_broken():
 * everything before it is imported. If nothing could be read, the import fails with that text.
 *
 * Errors: ST_NOMEM, what the sorter reports, and ST_OK with IMPORT_NO_ID where a limit is reached
 * (too many tracks): then the caller counts what it cannot place as TOO_MANY. Texts need not be
 * valid UTF-8: what is not becomes U+FFFD.
 *
 * Threading: the calling thread only.
 */
#ifndef REPORT_IMPORT_READER_H
#define REPORT_IMPORT_READER_H

#include <ipuscope/profiler.h>

#include "reports/import/report_import.h"
#include "reports/import/report_import_scan.h"
#include "reports/import/report_import_sort.h"

struct import;

/* ---- formats --------------------------------------------------------------------------------- */

struct import_format {
	const char *source; /* meta's `source`; NULL: read() sets import->source */
	/* @head: the first @size bytes of the content (after gzip), all of it if @size is less
	 * than IMPORT_HEAD. */
	bool (*recognise)(const unsigned char *head, size_t size);
	enum status (*read)(struct import *import, struct err *err);
};

/* The format of @head; NULL: none is recognised. */
const struct import_format *report__import_format(const unsigned char *head, size_t size);
/* How @input, which has none of the formats, becomes importable; static; NULL: not known. */
const char *report__import_remedy(const struct import_input *input);

/* ---- where and what -------------------------------------------------------------------------- */

enum import_thread_kind {
	IMPORT_PYTHON,  /* of a thread: Python's frames, above it */
	IMPORT_THREAD,  /* of a process */
	IMPORT_SYNC,    /* of a stream: what waits for it */
	IMPORT_PROCESS, /* events of a process as a whole; its threads are under it */
	IMPORT_DEVICE,  /* a device, without events; its streams are under it */
	IMPORT_GLOBAL,  /* of the whole trace */
	IMPORT_ASYNC    /* asynchronous spans of a category */
};

struct import_track {
	enum import_thread_kind kind;
	const char *process;      /* its identity, such as its pid; NULL: none */
	const char *thread;       /* its identity in the process: tid, or category */
	const char *name;         /* shown; NULL: "thread TID", or what `device` says */
	const char *process_name; /* NULL: not known */
	int64_t sort;             /* among those of the process */
	int64_t rank;             /* among those of the process with the same `sort` */
	int64_t process_sort;     /* of the process among others; IPS_NULL: not known */
	/* Of a stream: the device's name ("GPU 0"), interned. Kernels and copies of a stream are
	 * never within each other. NULL: no stream. */
	const char *device;
};

/* *@out: the track's index, the same for equal kind, process and thread; IMPORT_NO_ID: too many.
 * Later names and orders replace earlier ones. */
enum status report__import_track(struct import *import, const struct import_track *track,
				 uint32_t *out, struct err *err);

#define IMPORT_NESTED_MOST 64 /* tracks under one another */

/* Show @track under @above, another track, instead of under its process; not where @above is
 * already below it, or has too many above itself. */
void report__import_track_under(struct import *import, uint32_t track, uint32_t above);
/* Show @track, which is about @device (NULL: out of memory), under that. */
enum status report__import_track_shows(struct import *import, uint32_t track, const char *device,
				       struct err *err);

/* *@out: the index of a category and name. Beyond the limit all get one that says so. */
enum status report__import_name_site(struct import *import, const char *category, const char *name,
				     uint32_t *out, struct err *err);

/* *@out: the index of an argument's name; IMPORT_NO_ID: too many. */
enum status report__import_arg_name(struct import *import, const char *name, uint32_t *out,
				    struct err *err);

/* Return a copy of @text that lives as long as the import, the same for equal texts. NULL: out of
 * memory, or @text is NULL. */
const char *report__import_store(struct import *import, const char *text);

/* The device @number: "GPU 3", or what the file has called it before. One that the file does not
 * describe has a row of its own. NULL: out of memory. */
const char *report__import_gpu(struct import *import, int64_t number);

/* The same for a device of another @kind: "TPU 3". */
const char *report__import_accelerator(struct import *import, const char *kind, int64_t number);

/* A row of the view `devices`; replaces one of the same name, or where it has none, of the same
 * number. Model and architecture are copied; ST_NOMEM where that fails. */
enum status report__import_device(struct import *import, const struct ips_device *device,
				  struct err *err);

/* `compute`, `communication` or `memory`, by the kernel's name. */
const char *report__import_kernel_kind(const char *name);

/* A kernel of which nothing else is known: not where it ran, what it took, or of which graph. */
struct ips_kernel report__import_kernel(const char *device, int64_t stream, const char *kind,
					int64_t launch_key);

/* The number that links a call to what it launched: @correlation is unique within @process, a
 * number of the reader's below 65536. */
static inline int64_t import_launch_key(uint32_t process, int64_t correlation)
{
	return (int64_t)(((uint64_t)process & 0x7fff) << 48 ^
			 ((uint64_t)correlation & 0xffffffffffff));
}

/* ---- arguments of the next event ------------------------------------------------------------- */

/* @name: of report__import_arg_name(). Too long texts are cut and counted. A NULL text is stored as
 * NULL. */
void report__import_arg_int(struct import *import, uint32_t name, int64_t value);
void report__import_arg_real(struct import *import, uint32_t name, double value);
void report__import_arg_text(struct import *import, uint32_t name, const char *value);
/* A row about the next span; @size: of the table's struct. */
void report__import_row(struct import *import, enum ips_table table, const void *row, size_t size);

/* ---- events ---------------------------------------------------------------------------------- */

/* A span; @dur_ns >= 0, or -1: to the end of what encloses it. */
enum status report__import_span(struct import *import, uint32_t track, uint32_t site,
				int64_t start_ns, int64_t dur_ns, struct err *err);
/* A span in two halves, matched by @pair (0: the track's) and time: an end ends the innermost begin
 * of its pair, one with a @site (else IMPORT_NO_ID) the innermost of that name. */
enum status report__import_begin(struct import *import, uint32_t track, uint32_t site, int64_t ns,
				 uint64_t pair, struct err *err);
enum status report__import_end(struct import *import, uint32_t track, uint32_t site, int64_t ns,
			       uint64_t pair, struct err *err);
/* What @track is in from @ns on: a span until the next state. @site IMPORT_NO_ID: none any more. */
enum status report__import_state(struct import *import, uint32_t track, uint32_t site, int64_t ns,
				 struct err *err);
enum status report__import_instant(struct import *import, uint32_t track, uint32_t site, int64_t ns,
				   struct err *err);
enum status report__import_sample(struct import *import, uint32_t track, uint32_t site, int64_t ns,
				  double value, struct err *err);
/* A side of a flow, at the innermost span of the track that is open at @ns. Sides of one @key are
 * joined in order of time. */
enum import_flow {
	IMPORT_FLOW_START,
	IMPORT_FLOW_ON, /* a step, or the start of a flow that is not under way */
	IMPORT_FLOW_STEP,
	IMPORT_FLOW_END,
	IMPORT_FLOW_NEXT /* an end, at the next span that begins on the track */
};
enum status report__import_flow(struct import *import, uint32_t track, uint32_t site, int64_t ns,
				enum import_flow side, uint64_t key, struct err *err);
/* An allocation or release, also as samples of what is allocated and reserved, on @track. Texts of
 * @event are static or interned. */
enum status report__import_memory(struct import *import, uint32_t track,
				  const struct ips_memory_event *event, struct err *err);

/* ---- facts and reasons ----------------------------------------------------------------------- */

enum status report__import_fact(struct import *import, const char *key, const char *value,
				struct err *err);

/* Count one event as left out. */
void report__import_left(struct import *import, enum report_import_left left);
/* Count @count events as left out as of a kind without a place, named @what in the summary. */
void report__import_left_what(struct import *import, const char *what, uint64_t count);
void report__import_note(struct import *import, enum report_import_note note);

/* The file is damaged at @offset. */
void report__import_broken(struct import *import, uint64_t offset, const char *why);

/* Report that @done bytes of @all (0: unknown) are read. Fails if the user cancelled: call it every
 * some thousand events. After a failure in @err (not NULL) it does nothing. */
enum status report__import_progress_read(struct import *import, uint64_t done, uint64_t all,
					 struct err *err);

#endif /* REPORT_IMPORT_READER_H */
