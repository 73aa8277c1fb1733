/*
 * What the files of the device clock share.
 */
#ifndef IPU_TIMELINE_INTERNAL_H
#define IPU_TIMELINE_INTERNAL_H

#include "ipu/ipu_timeline.h"
#include "ipu/ipu_timeline_links.h"

/* An IPU's clocks, and what is gathered of the present step. */
struct ipu_lane {
	int64_t at;    /* of its programs */
	int64_t io_at; /* of its I/O tiles, where it has some */
	int first_transfer;
	int64_t sent, received; /* between IPUs, of the present copy: bytes */
};

struct ipu_clock {
	const struct ipu_timeline_params *params;
	struct ipu_timeline *timeline;
	struct ipu_lane *lanes; /* by IPU */
	int64_t *fed;           /* by stage: where its last infeed ended */
	int64_t *link_bytes;    /* by host link, of the present stream */
	int *index;             /* by IPU and time step: its first work */
	int64_t *sent[2];       /* out of lockstep: where what F and B of [stage, micro-batch] made
				 * has left their IPU */
	bool lockstep;
	struct ipu_links links;
	bool overlap; /* I/O tiles: streams go on beside the programs */
	int shift;    /* time steps before the schedule's first: the first infeed's */
	int64_t met;  /* where the present step's IPUs met */
	int step;     /* the present one */
};

/* The works of an IPU in a step of the schedule; none of a step outside of it. */
const struct ipu_work *ipu__clock_works(const struct ipu_clock *clock, int ipu, int step,
					int *count);

void ipu__clock_event(struct ipu_clock *clock, int ipu, int stage, int microbatch,
		      enum ipu_function_phase function);
/* A transfer, to be filled in; of no cycles: gone with the next. */
struct ipu_transfer *ipu__clock_transfer(struct ipu_clock *clock, enum ipu_transfer_kind kind,
					 int ipu, int64_t start, int64_t cycles);

/* The streams of the present time step: with I/O tiles an infeed is one step ahead of its forward,
 * an outfeed one behind. */
void ipu__clock_stream(struct ipu_clock *clock, enum ipu_transfer_kind kind);
/* The results of the whole run, after its end. */
void ipu__clock_results(struct ipu_clock *clock);

#endif /* IPU_TIMELINE_INTERNAL_H */
