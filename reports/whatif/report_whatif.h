/*
 * What would be if: the time and the bubble of a recorded training run under another schedule,
 * split, number of micro-batches, replicas or target, from the run's own times.
 *
 * On the device clock the recorded execution trace is taken apart into what each stage's functions
 * cost, what is streamed and what goes between IPUs; ipu_timeline.h runs the parts again as the
 * change asks. Nothing changed gives the recorded cycles. What a run never did is taken from the
 * cost model, and an assumption says so. docs/what-if.md has the formulas.
 *
 * Inputs are read once, a prediction reads no database and takes milliseconds. Threading: any
 * number of threads may predict from one set of inputs. Ownership: the inputs are the caller's,
 * texts of a prediction live as long as they, or are its own.
 */
#ifndef REPORT_WHATIF_H
#define REPORT_WHATIF_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "ipu/ipu_pipeline.h"
#include "profiler/prof_db.h"

#define REPORT_WHATIF_SPLIT_SIZE 256

enum report_whatif_clock {
	REPORT_WHATIF_DEVICE,
	REPORT_WHATIF_HOST
};

/* What a figure rests on. Bits of a set; report_whatif_assumption() has the words. */
enum report_whatif_assumption {
	REPORT_WHATIF_NO_EXECUTION_HOST,
	REPORT_WHATIF_FIFO_MODEL,
	REPORT_WHATIF_FIFO_UNKNOWN,
	REPORT_WHATIF_NO_FIFO,
	REPORT_WHATIF_REDUCE_MODEL,
	REPORT_WHATIF_REDUCE_LAYERS,
	REPORT_WHATIF_REDUCE_DROPPED,
	REPORT_WHATIF_CLOCK_SCALED,
	REPORT_WHATIF_MACHINE_SCALED,
	REPORT_WHATIF_ACCUMULATION_MODEL,
	REPORT_WHATIF_SPLIT_CYCLES,
	REPORT_WHATIF_SPLIT_CHAIN,
	REPORT_WHATIF_REPLAY_ALL,
	REPORT_WHATIF_COMPARISON,
	REPORT_WHATIF_BACKWARD_NAMES,
	REPORT_WHATIF_MEMORY_UNCHECKED,
	REPORT_WHATIF_HOST_MEANS,
	REPORT_WHATIF_HOST_WAITS,
	REPORT_WHATIF_HOST_CORES,
	REPORT_WHATIF_HOST_COMPARISON,
	REPORT_WHATIF_REPLAY_DIFFERS,
	REPORT_WHATIF_ASSUMPTIONS
};

/* One sentence. */
const char *report_whatif_assumption(enum report_whatif_assumption assumption);

/* What is to be different; zeros and NULLs: as recorded. All may be combined. */
struct report_whatif_change {
	const char *schedule; /* a name of ipu_pipeline.h; all but the last three are comparisons */
	int64_t microbatches; /* of a weight update and replica: steps_per_replica */
	int64_t replicas;
	const char *target; /* a name of ipu_target.h, or "bow" */
	int stages;         /* with split "auto", or NULL, which then is "auto" too */
	const char *split;  /* "auto"; a stage for each layer, "0,0,1"; or the layers that begin the
			     * stages after the first, "Dense_128,Dense_10" */
	int chunks;         /* of 1f1b-interleaved; 0: 2 */
};

struct report_whatif_prediction {
	enum ipu_schedule_kind schedule;
	bool pipelined;  /* false: one stage, no schedule */
	bool comparison; /* not one of the IPU's schedules */
	int stages;
	int64_t microbatches, replicas, batch;
	const char *target;                   /* NULL: the host */
	char split[REPORT_WHATIF_SPLIT_SIZE]; /* the layers that begin stages, if the split is
					       * another; else "" */
	int64_t run_ns; /* from weight update to weight update: G micro-batches, and the update */
	double step_ns; /* run / G: of one micro-batch, as Keras counts steps */
	int64_t update_ns;     /* of the run: the optimizer's part, on the slowest stage */
	double samples_second; /* all replicas */
	/* Of F and B, by ipu_bubble.h's definitions; NaN where the recording has none. */
	int64_t makespan_ns, busy_ns;
	double idle_fraction, bubble_rate, bubble_over_ideal;
	int slowest;          /* stage: the longest F + B */
	int64_t slowest_ns;   /* its F + B */
	uint32_t assumptions; /* bits 1u << enum report_whatif_assumption */
};

struct report_whatif;

/*
 * Read what predictions need. ST_NOTFOUND says in one line what the recording lacks: training,
 * device times, an execution whose steps were traced, a finished execution.
 */
enum status report_whatif_open(struct report_whatif **out, struct prof_db *db,
			       enum report_whatif_clock clock, struct err *err);
void report_whatif_close(struct report_whatif *whatif); /* accepts NULL */

/* As it was recorded. */
const struct report_whatif_prediction *report_whatif_measured(const struct report_whatif *whatif);

/* ST_INVALID or ST_NOTFOUND: the change is not legal; the text has the rule and what is. */
enum status report_whatif_predict(struct report_whatif_prediction *out,
				  const struct report_whatif *whatif,
				  const struct report_whatif_change *change, struct err *err);

#endif /* REPORT_WHATIF_H */
