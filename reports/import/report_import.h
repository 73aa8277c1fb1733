/*
 * Import what another program recorded into a profile.db. The formats, recognised by their content,
 * are in report_import.c; report_import_reader.h is their side of it.
 *
 * The calling thread reads the file once. A sorter orders the events by time; its
 * runs go to an unnamed file beside the output. The events are then recorded through the profiler's
 * public interface. Memory grows with the number of different names, threads and open spans, which
 * are all limited, but not with the number of events.
 *
 * Every event is accounted for: it became part of a span, an instant, a sample, a flow or a name,
 * or it is counted under the reason it was dropped. docs/import.md has the table.
 *
 * Threading: one import at a time per output. An import starts a thread for each sorter, and the
 * recording's.
 */
#ifndef REPORT_IMPORT_H
#define REPORT_IMPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

#define REPORT_IMPORT_WHY   160
#define REPORT_IMPORT_WHATS 32

/* What an event became. X(name, words). */
#define REPORT_IMPORT_USE_MAP(X)                                                                   \
	X(SPAN, "spans (X)")                                                                       \
	X(BEGIN, "begins of spans")                                                                \
	X(END, "ends of spans")                                                                    \
	X(STATE, "states that ended, or went on")                                                  \
	X(INSTANT, "instants")                                                                     \
	X(COUNTER, "samples of counters")                                                          \
	X(FLOW, "sides of flows")                                                                  \
	X(LAUNCH, "sides of flows of launches, which are linked by their number")                  \
	X(MEMORY, "allocations and releases")                                                      \
	X(RECORD, "records of events, for which others wait")                                      \
	X(NAME, "names and order of processes and threads")

/* Why an event was dropped. */
#define REPORT_IMPORT_LEFT_MAP(X)                                                                  \
	X(PHASE, "of a phase without a place here")                                                \
	X(KIND, "of a kind without a place here")                                                  \
	X(NO_PHASE, "without a phase (ph)")                                                        \
	X(NOT_OBJECT, "not an object")                                                             \
	X(NO_TIME, "without a time (ts)")                                                          \
	X(TIME_RANGE, "a time (ts or dur) out of range")                                           \
	X(NEGATIVE, "a negative duration")                                                         \
	X(NO_BEGIN, "an end without a begin")                                                      \
	X(NO_ID, "without an id")                                                                  \
	X(NO_NUMBER, "a counter without a finite number")                                          \
	X(METADATA, "metadata without a place here")                                               \
	X(FLOW_NO_START, "an end of a flow without a start")                                       \
	X(FLOW_NO_END, "a start of a flow without an end")                                         \
	X(FLOW_NO_SPAN, "a side of a flow at no span")                                             \
	X(TOO_LARGE, "larger than 16 MiB")                                                         \
	X(TOO_DEEP, "begun within 4096 others that are open")                                      \
	X(TOO_MANY, "on one track too many")

/* Changes to imported events; counted separately. */
#define REPORT_IMPORT_NOTE_MAP(X)                                                                  \
	X(OVERLAP, "spans that overlap others of their thread, on tracks \"... (overlap N)\"")     \
	X(UNFINISHED, "spans without an end, drawn to the end of what encloses them")              \
	X(NO_DURATION, "spans (X) without a duration, taken as 0")                                 \
	X(CUT_ARGS, "argument values cut or left out because they are long")                       \
	X(FIELDS, "fields of events without a place (cname, sf, ...)")                             \
	X(OTHER_NAMES,                                                                             \
	  "spans beyond 262144 different names, or 32 MiB of them, called \"(more names)\"")       \
	X(KEYS, "top-level values of the file without a place, or too long")                       \
	X(BAD_TEXT, "names that were not UTF-8, mended")                                           \
	X(CUT_NAMES, "different names cut after 16384 bytes")                                      \
	X(PRIVATE, "values of the file that may name people or machines, left out")

enum report_import_use {
#define REPORT_IMPORT_ENUM(name, words) REPORT_IMPORT_##name,
	REPORT_IMPORT_USE_MAP(REPORT_IMPORT_ENUM) REPORT_IMPORT_USES
};
enum report_import_left {
#define REPORT_IMPORT_LEFT_ENUM(name, words) REPORT_IMPORT_LEFT_##name,
	REPORT_IMPORT_LEFT_MAP(REPORT_IMPORT_LEFT_ENUM) REPORT_IMPORT_LEFTS
};
enum report_import_note {
#define REPORT_IMPORT_NOTE_ENUM(name, words) REPORT_IMPORT_NOTE_##name,
	REPORT_IMPORT_NOTE_MAP(REPORT_IMPORT_NOTE_ENUM) REPORT_IMPORT_NOTES
};

struct report_import_counts {
	uint64_t bytes;       /* of JSON, after decompression */
	uint64_t events;      /* the sum of used[] and left[] */
	uint64_t phases[128]; /* of a Chrome trace: events by phase; [0]: none or not ASCII */
	uint64_t used[REPORT_IMPORT_USES];     /* by use */
	uint64_t left[REPORT_IMPORT_LEFTS];    /* by reason */
	uint64_t left_at[REPORT_IMPORT_LEFTS]; /* byte offset of the first such event, if known */
	uint64_t left_phases[128];             /* of left[PHASE] */
	struct report_import_what {
		char what[96];
		uint64_t count;
	} whats[REPORT_IMPORT_WHATS]; /* of left[KIND], the first kinds */
	uint64_t notes[REPORT_IMPORT_NOTES];
	uint64_t spans, instants, counters, flows; /* rows written */
	uint64_t memory_events;
	uint64_t tracks;
	int64_t first_ns, last_ns; /* range of times on the trace's clock */
	int64_t base_ns;           /* subtracted from all times */
	bool broken;        /* the file is truncated or malformed; all before that was imported */
	uint64_t broken_at; /* byte offset of the defect */
	char why[REPORT_IMPORT_WHY];
};

struct report_import_params {
	const char *trace;   /* a path, or "-": standard input */
	const char *output;  /* the database */
	bool force;          /* replace @output */
	const char *command; /* stored in meta; may be NULL */
	/* Called periodically with the progress in 1/1000, or -1 if unknown. Any status but ST_OK
	 * ends the import with that status. May be NULL. */
	enum status (*progress)(void *user, int permille, uint64_t events);
	void *user;
	uint64_t sort_bytes; /* memory for sorting; 0: the default */
};

/* Run an import. On failure nothing is left at @output, and nothing is replaced. A broken trace is
 * an error only if none of it could be read. */
enum status report_import(const struct report_import_params *params,
			  struct report_import_counts *counts, struct err *err);

/* The texts of the maps above. */
const char *report_import_use_text(enum report_import_use use);
const char *report_import_left_text(enum report_import_left left);
const char *report_import_note_text(enum report_import_note note);

/* ---- recordings that are opened as they are -------------------------------------------------- */

/*
 * If *@path is a file of a format that can be imported, replace *@path by its database in
 * $XDG_CACHE_HOME/ipuscope/imports, which is made if it is not there; otherwise leave *@path
 * unchanged, and its opener reports what is wrong with it.
 *
 * An entry is named after the file's path, size and time of change, so a changed file is imported
 * again. The least recently opened entries are removed when all together exceed
 * $IPUSCOPE_CACHE_MB (4096). The new path lives as long as the process.
 *
 * On a terminal, progress is shown and what the import changed is summed up in a line of standard
 * error that begins with @command. Ctrl-C ends the import with ST_INTERRUPTED.
 *
 * Threading: the main thread, before any other handles signals.
 */
enum status report_import_cached(const char **path, const char *command, struct err *err);

#endif /* REPORT_IMPORT_H */
