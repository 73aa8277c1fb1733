/*
 * What the files of what-if share.
 */
#ifndef REPORT_WHATIF_INTERNAL_H
#define REPORT_WHATIF_INTERNAL_H

#include "common/arena.h"
#include "model/plan/plan_run.h"
#include "reports/whatif/report_whatif.h"

/* Means of the host clock, ns, by stage; and what a run takes beside its pipeline. */
struct whatif_host {
	double *forward, *backward, update;
	double waits;   /* the measured makespan over the theoretical one */
	double rest_ns; /* of a run: neither F nor B nor waits between them */
	bool oversubscribed;
};

struct report_whatif {
	enum report_whatif_clock clock;
	struct report_whatif_prediction measured;
	const char *name;     /* of the recording, for messages */
	const char *text;     /* the run file as it was run */
	struct run_data data; /* that it was run on */
	struct plan_run plan; /* of the run as it was */
	struct whatif_host host;
	uint32_t assumptions; /* of every prediction */
	struct arena arena;
};

/* One row of a query. */
typedef enum status (*whatif_row_fn)(struct report_whatif *whatif, const struct prof_query *query,
				     struct err *err);
enum status report__whatif_rows(struct report_whatif *whatif, struct prof_db *db, const char *sql,
				whatif_row_fn take, struct err *err);

/* Plan the run file with @change. The plan is the caller's (plan_run_fini()), on failure too.
 * *@suited: steps and executions had to be others. @flags: as in the prediction. */
enum status report__whatif_plan(struct plan_run *plan, const struct report_whatif *whatif,
				const struct report_whatif_change *change, bool *suited,
				char flags[REPORT_WHATIF_FLAGS_SIZE], struct err *err);

/* The figures of a plan. */
void report__whatif_figures(struct report_whatif_prediction *out, const struct plan_run *plan);

/* The host's clock: what it measured, and a prediction of such a plan. */
enum status report__whatif_host(struct report_whatif *whatif, struct prof_db *db, struct err *err);
enum status report__whatif_host_predict(struct report_whatif_prediction *out,
					const struct report_whatif *whatif,
					const struct plan_run *plan, struct err *err);

#endif /* REPORT_WHATIF_INTERNAL_H */
