/*
 * Interface between the files of the device clock.
 */
#ifndef IPU_TIMELINE_INTERNAL_H
#define IPU_TIMELINE_INTERNAL_H

#include "ipu/ipu_timeline.h"
#include "ipu/ipu_timeline_links.h"

/* Clocks of an IPU, and scratch values of the current step. */
struct ipu_lane {
	int64_t at;    /* cycle that its programs have reached */
	int64_t io_at; /* cycle that its I/O tiles have reached, if any */
	int first_transfer;
	int64_t sent, received; /* bytes of the current copy between IPUs */
};

struct ipu_clock {
	const struct ipu_timeline_params *params;
	struct ipu_timeline *timeline;
	struct ipu_lane *lanes; /* by IPU */
	int64_t *fed;           /* by stage: end of its last infeed */
	int64_t *link_bytes;    /* by host link, of the current stream */
	int *index;             /* by IPU and time step: its first work */
	int64_t *sent[2];       /* without lockstep: cycle at which the results of F and B of
				 * [stage, micro-batch] have been sent */
	bool lockstep;
	struct ipu_links links;
	bool overlap; /* I/O tiles: streams overlap with programs */
	int shift;    /* time steps before the schedule's first: the first infeed's */
	int64_t met;  /* cycle at which the IPUs synchronized in the current step */
	int step;     /* the current one */
};

/* The works of an IPU in a step of the schedule; none for a step outside of it. */
const struct ipu_work *ipu__clock_works(const struct ipu_clock *clock, int ipu, int step,
					int *count);

void ipu__clock_event(struct ipu_clock *clock, int ipu, int stage, int microbatch,
		      enum ipu_function_phase function);
/* Append a transfer, to be filled in; one of no cycles is overwritten by the next. */
struct ipu_transfer *ipu__clock_transfer(struct ipu_clock *clock, enum ipu_transfer_kind kind,
					 int ipu, int64_t start, int64_t cycles);

/* Run the streams of the current time step: with I/O tiles an infeed is one step ahead of its
 * forward, an outfeed one behind. */
void ipu__clock_stream(struct ipu_clock *clock, enum ipu_transfer_kind kind);
/* Stream the results of the whole run, after its end. */
void ipu__clock_results(struct ipu_clock *clock);

#endif /* IPU_TIMELINE_INTERNAL_H */
