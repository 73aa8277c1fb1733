/*
 * What the parts of `export chrome` share: events, and the lanes that they are drawn on.
 *
 * A clock of a rank is a process, a track is a thread. Threads are numbered: a track's lane 0 by
 * its track_id, the further ones of a track that does not nest above it, device steps after all.
 */
#ifndef REPORT_CHROME_H
#define REPORT_CHROME_H

#include "common/arena.h"
#include "reports/export/report_sink.h"
#include "reports/export/report_walk.h"

#define REPORT_CHROME_LANE 1000000 /* between the numbers of lanes of a track */

enum report_chrome_kind {
	REPORT_CHROME_SPANS,
	REPORT_CHROME_INSTANTS,
	REPORT_CHROME_FLOWS,
	REPORT_CHROME_COUNTERS,
	REPORT_CHROME_STEPS,
	REPORT_CHROME_KINDS
};

struct report_chrome {
	const struct report_export_request *request;
	struct report_sink sink;
	struct report_walk walk;
	struct report_pieces sites, operations, contexts, names;
	struct str text; /* scratch */
	int64_t counter_tracks;
	bool begun; /* an event was written */
	int64_t counts[REPORT_CHROME_KINDS];
	int64_t loose_flows; /* whose spans are not there */
	int64_t loose_steps; /* without a time */
};

int64_t report_chrome_pid(int64_t rank, int clock);
int64_t report_chrome_tid(const struct prof_track *track, int lane);

/* Begin an event: {"ph":"X","pid":1,"tid":4 and nothing after. */
void report_chrome_event(struct report_chrome *chrome, char phase, int64_t pid, int64_t tid);

/* A metadata event: what @name is to be. @args: an object, which is taken and freed. */
void report_chrome_metadata(struct report_chrome *chrome, int64_t pid, int64_t tid,
			    const char *name, struct str *args);

/* What a lane is called (by @args, as above) and where it is put. */
void report_chrome_thread(struct report_chrome *chrome, int64_t pid, int64_t tid, int64_t sort,
			  struct str *args);

/* Lanes of one IPU lie together, those of none before them. */
int64_t report_chrome_sort(int64_t ipu, int64_t place);

/* ,"NAME":VALUE of a piece; nothing where it is empty. @comma: something stands before it. */
void report_chrome_piece(struct report_chrome *chrome, const struct report_piece *piece,
			 bool *comma);

/* The kinds beside spans, each complete. */
enum status report_chrome_instants(struct report_chrome *chrome, struct err *err);
enum status report_chrome_flows(struct report_chrome *chrome, struct err *err);
enum status report_chrome_counters(struct report_chrome *chrome, struct err *err);
enum status report_chrome_steps(struct report_chrome *chrome, struct err *err);

#endif /* REPORT_CHROME_H */
