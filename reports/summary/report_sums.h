/*
 * Sums over stage timings and bubbles. The writer maintains them in the database, so reading them
 * takes constant time however long the run is.
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
	int64_t forward_ns[2], backward_ns[2], update_ns[2]; /* training; [0] host, [1] device */
	int64_t count;                                       /* forward micro-batches, host */
};

/* Numbers of columns in the order of the query: means first, then times. */
#define REPORT_BUBBLE_MEANS 6
#define REPORT_BUBBLE_TIMES 4

struct report_bubble_sum {
	int64_t runs;
	double mean[REPORT_BUBBLE_MEANS]; /* sums; known: number of addends */
	int64_t known[REPORT_BUBBLE_MEANS];
	int64_t time_ns[REPORT_BUBBLE_TIMES], total_ns; /* total: IPUs x makespan */
	bool oversubscribed;
};

struct report_sums {
	struct report_stage_sum *stage; /* in order of stage */
	size_t count, capacity;
	struct report_bubble_sum bubble[2]; /* [0] host, [1] device */
};

/* Read the sums. On failure @sums are partial; free them, too. */
enum status report_sums_read(struct report_sums *sums, struct prof_db *db, struct err *err);

/* Return the sums of @stage, inserting it if missing. NULL: out of memory. The pointer is valid
 * until the next call. */
struct report_stage_sum *report_sums_stage(struct report_sums *sums, int64_t stage);
void report_sums_free(struct report_sums *sums); /* accepts a zeroed struct */

#endif /* REPORT_SUMS_H */
