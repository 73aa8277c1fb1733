/*
 * Sums over the rows of stage timings and of bubbles, which grow with the run. The writer keeps
 * them, so reading them takes no longer for a longer run.
 */
#ifndef REPORT_SUMS_H
#define REPORT_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "profiler/prof_db.h"

struct report_stage_sum {
	int64_t stage, ipu;                                  /* ipu IPS_NULL: unknown */
	int64_t forward_ns[2], backward_ns[2], update_ns[2]; /* training; [1] device */
	int64_t count;                                       /* micro-batches of F, host */
};

/* In the order of the columns read: means first, then times. */
#define REPORT_BUBBLE_MEANS 6
#define REPORT_BUBBLE_TIMES 4

struct report_bubble_sum {
	int64_t runs;
	double mean[REPORT_BUBBLE_MEANS]; /* sums, and how many were known */
	int64_t known[REPORT_BUBBLE_MEANS];
	int64_t time_ns[REPORT_BUBBLE_TIMES], total_ns; /* total: IPUs x makespan */
	bool oversubscribed;
};

struct report_sums {
	struct report_stage_sum *stage; /* in order of stage */
	size_t count, capacity;
	struct report_bubble_sum bubble[2]; /* [1] device */
};

/* On failure @sums are partial, and to be freed too. */
enum status report_sums_read(struct report_sums *sums, struct prof_db *db, struct err *err);

/* The sums of @stage, made where there are none. NULL: no memory. The next call may move it. */
struct report_stage_sum *report_sums_stage(struct report_sums *sums, int64_t stage);
void report_sums_free(struct report_sums *sums); /* accepts a zeroed struct */

#endif /* REPORT_SUMS_H */
