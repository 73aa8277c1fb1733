/*
 * What would be if: the time, the bubble and the memory of a recorded training under another
 * schedule, split, number of micro-batches, replicas or target, or with any other key of its run
 * file.
 *
 * On the device clock the recorded run file is patched and planned again, by the code of `ipu-plan
 * model` (model/plan/plan_run.h); nothing changed gives the recorded cycles. On the host's clock
 * the measured mean times of stages go on as the change asks. docs/what-if.md tells more.
 *
 * The recording is read once, a prediction reads no database; operations are planned once for a
 * target. Threading: one thread at a time. Ownership: a recording is the caller's, texts of a
 * prediction live as long as it, or are its own.
 */
#ifndef REPORT_WHATIF_H
#define REPORT_WHATIF_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "ipu/ipu_schedule.h"
#include "profiler/prof_db.h"

#define REPORT_WHATIF_SPLIT_SIZE 256
#define REPORT_WHATIF_FLAGS_SIZE 512

enum report_whatif_clock {
	REPORT_WHATIF_DEVICE,
	REPORT_WHATIF_HOST
};

/* What a figure rests on. Bits of a set; report_whatif_assumption() has the words. */
enum report_whatif_assumption {
	REPORT_WHATIF_NO_EXECUTION_HOST,
	REPORT_WHATIF_STEPS_SUITED,
	REPORT_WHATIF_PLAN_DIFFERS,
	REPORT_WHATIF_HOST_MEANS,
	REPORT_WHATIF_HOST_WAITS,
	REPORT_WHATIF_HOST_CORES,
	REPORT_WHATIF_HOST_HALF,
	REPORT_WHATIF_ASSUMPTIONS
};

/* One sentence. */
const char *report_whatif_assumption(enum report_whatif_assumption assumption);

/*
 * What is to be different; zeros and NULLs: as recorded. All may be combined. Each is a name for
 * keys of the run file, which `words` may have any of.
 */
struct report_whatif_change {
	const char *schedule; /* a name of ipu_schedule.h */
	int64_t microbatches; /* of a weight update and replica: steps_per_replica */
	int64_t replicas;
	const char *target; /* a name of ipu_target.h, or "bow" */
	int stages;         /* with split "auto", or NULL, which then is "auto" too */
	const char *split;  /* "auto"; a stage for each layer, "0,0,1"; or the layers that begin the
			     * stages after the first, "Dense_128,Dense_10" */
	int chunks;         /* of 1f1b-interleaved: stages of each IPU; 0: 2 */
	int count;          /* of words */
	char **words;       /* the run file's flags and keys, as ipu-train takes them */
};

struct report_whatif_prediction {
	enum ipu_schedule_kind schedule;
	bool pipelined; /* false: one stage, no schedule */
	int stages;
	int64_t microbatches, replicas, batch;
	const char *target;                   /* NULL: the host */
	char split[REPORT_WHATIF_SPLIT_SIZE]; /* the layers that begin stages, if the split is
					       * another; else "" */
	char flags[REPORT_WHATIF_FLAGS_SIZE]; /* that make ipu-train train it, for a shell; "":
						 those of the recorded run, or too long */
	int64_t run_ns; /* from weight update to weight update: G micro-batches, and the update */
	double step_ns; /* run / G: of one micro-batch, as Keras counts steps */
	int64_t update_ns;     /* of the run: the optimizer's part, on the slowest stage */
	double samples_second; /* all replicas */
	/* Of F and B, by ipu_bubble.h's definitions; NaN where the recording has none. */
	int64_t makespan_ns, busy_ns;
	double idle_fraction, bubble_rate, bubble_over_ideal;
	int slowest;        /* stage: the longest F + B */
	int64_t slowest_ns; /* its F + B */
	/* Of the IPU and of the tile that need most; 0: the host's clock knows none. */
	int64_t memory_ipu_bytes, memory_tile_bytes;
	bool memory_fits;     /* every tile has what it needs; true where it is not known */
	uint32_t assumptions; /* bits 1u << enum report_whatif_assumption */
};

struct report_whatif;

/*
 * Read what predictions need. ST_NOTFOUND says in one line what the recording lacks: a run file,
 * training, device times, a finished execution.
 */
enum status report_whatif_open(struct report_whatif **out, struct prof_db *db,
			       enum report_whatif_clock clock, struct err *err);
void report_whatif_close(struct report_whatif *whatif); /* accepts NULL */

/* As it was recorded; of its memory what is planned. */
const struct report_whatif_prediction *report_whatif_measured(const struct report_whatif *whatif);

/* ST_INVALID or ST_NOTFOUND: the change is not legal; the text has the rule and what is. */
enum status report_whatif_predict(struct report_whatif_prediction *out,
				  const struct report_whatif *whatif,
				  const struct report_whatif_change *change, struct err *err);

#endif /* REPORT_WHATIF_H */
