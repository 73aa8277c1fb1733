/*
 * Announcements: what a running trainer says of itself in $XDG_RUNTIME_DIR/ipuscope/PID.json, or
 * in ipuscope-UID/PID.json of the system's temporary folder where that is not set, for ipu-monitor
 * and for following its report; docs/monitor.md has the keys.
 *
 * The folder must be its user's alone: nothing is written to or believed from another. A file is
 * replaced whole, so a reader sees no half of one. A process announces one run at a time.
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

/* What changes while a run goes on. */
struct report_progress {
	enum report_run_state state;
	int64_t epoch, epochs; /* from 1; 0: none */
	int64_t step, steps;   /* done, of all, on all replicas: of the epoch or the evaluation */
	double utilisation;    /* of its IPUs, simulated, 0 .. 1 */
};

struct prof_announcement {
	int64_t pid;
	int64_t process_start; /* ticks since boot: tells the process from a later one */
	int64_t started_ms;    /* since 1970 */
	char command[1024], user[64];
	char target[16]; /* "ipu2" */
	int64_t clock_mhz;
	int64_t first_id, ipus; /* the IPUs that it is attached to, one after the other */
	int64_t replicas, stages;
	struct report_progress progress;
	char report[FS_PATH_SIZE]; /* absolute; "": nothing is recorded */
};

/* ---- saying ---------------------------------------------------------------------------------- */

struct prof_announce;

/*
 * Announce this process. Of @run: command, target, clock_mhz, ipus, replicas, stages, progress and
 * report; the rest is found out here. IPUs are those that no other run has, where there are such
 * (prof_announce_place()). ST_NOTFOUND: there is no folder to announce in, and nothing to tell
 * anybody; else the text says why it could not be. On failure *@out is NULL, which all functions
 * accept.
 */
enum status prof_announce_open(struct prof_announce **out, const struct prof_announcement *run,
			       struct err *err);

/* Call it as often as there is news: it is written at most four times a second, and a failure is
 * nobody's concern. Not beside itself or close(). */
void prof_announce_progress(struct prof_announce *announce, const struct report_progress *progress);

void prof_announce_close(struct prof_announce *announce);

/* ---- asking ---------------------------------------------------------------------------------- */

struct prof_announcements {
	struct prof_announcement *items; /* by start, then pid */
	int count;
	size_t capacity;
};

/*
 * The runs of living processes. What is no announcement is passed over; @notes, where not NULL,
 * gets a line of text for each. @tidy: files of processes that are gone are removed. ST_NOTFOUND:
 * there is no folder, so nobody has announced anything; @out is empty. ST_INVALID: it is not ours
 * alone.
 */
enum status prof_announcements_read(struct prof_announcements *out, bool tidy, struct str *notes,
				    struct err *err);
void prof_announcements_free(struct prof_announcements *list); /* accepts a zeroed list */

/* The least machine, 4, 8, 16, 32, ... IPUs, that has @ipus. */
int64_t prof_announce_machine(int64_t ipus);

/*
 * The first IPU for a run of @ipus beside @others: runs begin at a multiple of the next power of
 * two. The lowest place without another run on a machine of 16, or as large as the run needs; where
 * there is none, the lowest of those with the fewest.
 */
int64_t prof_announce_place(const struct prof_announcements *others, int64_t ipus);

#endif /* PROF_ANNOUNCE_H */
