/*
 * Shared by the files of what-if.
 */
#ifndef REPORT_WHATIF_INTERNAL_H
#define REPORT_WHATIF_INTERNAL_H

#include "common/arena.h"
#include "model/plan/plan_run.h"
#include "reports/whatif/report_whatif.h"

/* Mean times of the host clock, ns, by stage; and the time of a run outside its pipeline. */
struct whatif_host {
	double *forward, *backward, update;
	double waits;   /* measured makespan over theoretical makespan */
	double rest_ns; /* time of a run outside F, B and the waits between them */
	bool oversubscribed;
};

/* A bucket of gradients in the exchange of a weight update. Times are means over updates. */
struct whatif_bucket {
	int stage;
	int64_t bucket;
	double ready_ns; /* on the last rank, since the end of the update before */
	double sum_ns;   /* of one branch (common/tree.h) of every rank */
	double bytes;    /* of the sum */
	double exchange_bytes;
	int64_t sums;
	bool gathers; /* the sum goes to all ranks */
};

/* The exchange between the recorded ranks. */
struct whatif_ranks {
	int ranks;    /* 0: not read */
	int replicas; /* of each */
	struct whatif_bucket *buckets;
	int count;
	double *shares_bytes; /* by stage: updated weights that are gathered; 0: none */
	double waits_ns;      /* when the last stage has nothing left but to wait, as ready_ns */
	double exposed_ns;    /* from then to the end of the exchange */
};

struct report_whatif {
	enum report_whatif_clock clock;
	struct report_whatif_prediction measured;
	const char *name;     /* of the recording, for messages */
	const char *text;     /* the recorded run file */
	struct run_data data; /* the data set it was run on */
	struct plan_run plan; /* of the recorded run */
	struct whatif_host host;
	struct whatif_ranks ranks;
	uint32_t assumptions; /* common to all predictions */
	struct arena arena;
};

/* Plan the run file with @change. The caller frees the plan (plan_run_fini()), also on failure.
 * *@suited: numbers of steps and executions had to be changed. @flags: as in the prediction. */
enum status report__whatif_plan(struct plan_run *plan, const struct report_whatif *whatif,
				const struct report_whatif_change *change, bool *suited,
				char flags[REPORT_WHATIF_FLAGS_SIZE], struct err *err);

/* Fill in the figures of a plan. */
void report__whatif_figures(struct report_whatif_prediction *out, const struct plan_run *plan);

/* Host clock: add the instances of @change to a prediction for the recorded ones. */
enum status report__whatif_ranks_predict(struct report_whatif_prediction *out,
					 const struct report_whatif *whatif,
					 const struct report_whatif_change *change,
					 struct err *err);

#endif /* REPORT_WHATIF_INTERNAL_H */
