/*
 * Announcements: a running trainer publishes its state in $XDG_RUNTIME_DIR/ipuscope/PID.json, or,
 * without that variable, in ipuscope-UID/PID.json of the system's temporary folder. ipu-monitor and
 * viewers that follow a report read it; docs/monitor.md lists the keys.
 *
 * The folder must belong to its user alone: no file is written to or read from any other. A file is
 * replaced atomically, so a reader never sees a partial one. A process announces one run at a time.
 */
#ifndef PROF_ANNOUNCE_H
#define PROF_ANNOUNCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/fs.h"
#include "common/str.h"

enum report_run_state {
	REPORT_RUN_COMPILING,
	REPORT_RUN_TRAINING, /* validations after epochs too */
	REPORT_RUN_EVALUATING,
	REPORT_RUN_PREDICTING,
	REPORT_RUN_STATES
};

const char *report_run_state_text(enum report_run_state state);

/* The state that changes during a run. */
struct report_progress {
	enum report_run_state state;
	int64_t epoch, epochs; /* from 1; 0: none */
	int64_t step, steps;   /* done and total, on all replicas: of the epoch or the evaluation */
	double utilisation;    /* of its simulated IPUs, 0 .. 1 */
};

struct prof_announcement {
	int64_t pid;
	int64_t process_start; /* ticks since boot: distinguishes it from a later process */
	int64_t started_ms;    /* since 1970 */
	char command[1024], user[64];
	char target[16]; /* "ipu2" */
	int64_t clock_mhz;
	int64_t first_id, ipus; /* the IPUs that it is attached to, consecutive */
	int64_t replicas, stages;
	struct report_progress progress;
	char report[FS_PATH_SIZE]; /* absolute; "": no recording */
};

/* ---- announcing ------------------------------------------------------------------------------ */

struct prof_announce;

/*
 * Announce this process. The caller sets command, target, clock_mhz, ipus, replicas, stages,
 * progress and report of @run; the function fills in the rest. It assigns IPUs that no other run
 * uses if possible (prof_announce_place()). ST_NOTFOUND: there is no folder to announce in, which
 * needs no message; other statuses have a message. On failure *@out is NULL, which all functions
 * accept.
 */
enum status prof_announce_open(struct prof_announce **out, const struct prof_announcement *run,
			       struct err *err);

/* Publish @progress. May be called any number of times: the file is written at most four times a
 * second, and failures are ignored. Not concurrently with itself or prof_announce_close(). */
void prof_announce_progress(struct prof_announce *announce, const struct report_progress *progress);

void prof_announce_close(struct prof_announce *announce);

/* ---- reading --------------------------------------------------------------------------------- */

struct prof_announcements {
	struct prof_announcement *items; /* by start, then pid */
	int count;
	size_t capacity;
};

/*
 * Read the announcements of living processes. Files that are no announcements are skipped; @notes,
 * if not NULL, gets a line of text for each. @tidy: remove files of processes that have ended.
 * ST_NOTFOUND: the folder does not exist, so there are no announcements; @out is empty. ST_INVALID:
 * the folder does not belong to this user alone.
 */
enum status prof_announcements_read(struct prof_announcements *out, bool tidy, struct str *notes,
				    struct err *err);
void prof_announcements_free(struct prof_announcements *list); /* accepts a zeroed list */

/* Size of the smallest machine (4, 8, 16, 32, ... IPUs) with at least @ipus. */
int64_t prof_announce_machine(int64_t ipus);

/*
 * Return the first IPU for a run of @ipus beside @others. Runs begin at a multiple of the next
 * power of two: the lowest such position that no other run occupies, on a machine of 16 IPUs or
 * as many as the run needs; if all are occupied, the lowest of those with the fewest runs.
 */
int64_t prof_announce_place(const struct prof_announcements *others, int64_t ipus);

#endif /* PROF_ANNOUNCE_H */
