/*
 * The bubble of one pipeline run, measured and in theory, by all three common definitions:
 *
 * - bubble_rate: 1 - mean busy time of an IPU / S, where S is the longest span of one IPU (last end
 *   - first start). Zero-bubble paper, arXiv 2401.10241: 1 - m (F + B + W) / S.
 * - bubble_over_ideal: idle time over ideal compute time; can exceed 1. Megatron-LM, arXiv
 *   2104.04473.
 * - idle_fraction: 1 - sum(busy) / (IPUs x makespan).
 *
 * The idle time of the makespan has four parts: ramp-up (before an IPU's first work), ramp-down
 * (after its last), and between them communication (waits after the input's producer has ended:
 * transfer and wake-up) and imbalance (the rest). They are in ns, summed over IPUs; an IPU that
 * never works is in ramp-up throughout. Weight updates are excluded: a bubble is about F and B.
 */
#ifndef IPU_BUBBLE_H
#define IPU_BUBBLE_H

#include <stdint.h>

#include "ipu/ipu_schedule.h"

struct ipu_interval {
	int ipu, stage, microbatch;
	char phase; /* F, B, or W if B is split; other phases are ignored */
	int64_t start_ns, dur_ns;
};

struct ipu_bubble {
	int64_t makespan_ns, busy_ns;                         /* busy: summed over IPUs */
	double idle_fraction, bubble_rate, bubble_over_ideal; /* NaN if nothing ran */
	int64_t ramp_up_ns, ramp_down_ns, imbalance_ns, communication_ns;
};

enum status ipu_bubble_measure(const struct ipu_interval *intervals, int count, int ipus,
			       int stages, struct ipu_bubble *out, struct err *err);

/* The same for a clock on which all IPUs synchronize after each step (the device). There an input
 * waits for the end of the step, not for its transfer, so communication is the time in which no IPU
 * works (copies between IPUs, syncs, stream copies of all at once) and imbalance the rest. */
enum status ipu_bubble_measure_lockstep(const struct ipu_interval *intervals, int count, int ipus,
					int stages, struct ipu_bubble *out, struct err *err);

/* The bubble of @schedule with free communication and the durations of @costs in ns. If
 * costs->lockstep, steps are synchronous, as the device runs Poplar's schedules; otherwise each IPU
 * continues as soon as its input exists (the host, and all other schedules on the device). Without
 * backward passes only costs->forward is read. */
enum status ipu_bubble_theory(const struct ipu_schedule *schedule,
			      const struct ipu_schedule_costs *costs, struct ipu_bubble *out,
			      struct err *err);

#endif /* IPU_BUBBLE_H */
