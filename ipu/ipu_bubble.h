/*
 * The bubble of one pipeline run, measured and in theory, by all three definitions in use:
 *
 * - bubble_rate: 1 - busy time of an IPU / S, the mean of the former, S the longest span of one IPU
 *   (last end - first start). Zero-bubble paper, arXiv 2401.10241: 1 - m (F + B + W) / S.
 * - bubble_over_ideal: idle time over ideal compute time; can exceed 1. Megatron-LM, arXiv
 *   2104.04473.
 * - idle_fraction: 1 - sum(busy) / (IPUs x makespan).
 *
 * The idle time of the makespan is split: ramp-up (before an IPU's first work), ramp-down (after
 * its last), and, between them, communication (waits while the input's producer had ended: transfer
 * and wake-up) and imbalance (the rest); in ns summed over IPUs (an IPU that never works is in
 * ramp-up throughout). Weight updates are left out: a bubble is about F and B.
 */
#ifndef IPU_BUBBLE_H
#define IPU_BUBBLE_H

#include <stdint.h>

#include "ipu/ipu_schedule.h"

struct ipu_interval {
	int ipu, stage, microbatch;
	char phase; /* F, B, W: B's part for the weights, where split (others are left out) */
	int64_t start_ns, dur_ns;
};

struct ipu_bubble {
	int64_t makespan_ns, busy_ns;                         /* busy: summed over IPUs */
	double idle_fraction, bubble_rate, bubble_over_ideal; /* NaN when nothing ran */
	int64_t ramp_up_ns, ramp_down_ns, imbalance_ns, communication_ns;
};

enum status ipu_bubble_measure(const struct ipu_interval *intervals, int count, int ipus,
			       int stages, struct ipu_bubble *out, struct err *err);

/* The same for a clock on which all IPUs meet after each step (the device): there an input waits
 * for the step's end, not for its transfer, so communication is the time in which no IPU works
 * (copies between IPUs, syncs, stream copies of all at once) and imbalance the rest. */
enum status ipu_bubble_measure_lockstep(const struct ipu_interval *intervals, int count, int ipus,
					int stages, struct ipu_bubble *out, struct err *err);

/* The same schedule with free communication, every stage's works taking what @costs say in ns, in
 * lockstep as the device runs Poplar's schedules, or each IPU going on as soon as its input is
 * there (the host, and the device with all others). Without backward passes costs->forward alone is
 * read. */
enum status ipu_bubble_theory(const struct ipu_schedule *schedule,
			      const struct ipu_schedule_costs *costs, struct ipu_bubble *out,
			      struct err *err);

#endif /* IPU_BUBBLE_H */
