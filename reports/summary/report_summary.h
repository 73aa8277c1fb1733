/*
 * The summary of a run: one struct, filled with a handful of bounded queries, for ipu-report,
 * ipu-view and the end of script/demo.
 */
#ifndef REPORT_SUMMARY_H
#define REPORT_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/arena.h"
#include "common/err.h"
#include "common/fmt.h"
#include "profiler/prof_db.h"
#include "reports/table/report_table.h"

struct report_stage {
	int64_t stage, ipu;
	const char *layers; /* "flatten, Dense_256" */
	int64_t forward_ns[2], backward_ns[2],
		update_ns[2]; /* sums, training; [0] host, [1] device */
	int64_t count;        /* micro-batches of F, host clock */
};

struct report_bubble_mean {
	bool known;
	int64_t runs;
	double idle_fraction; /* the bubble: of all runs together, the sum of its causes */
	double bubble_rate, bubble_over_ideal; /* means of the runs, as are those of theory */
	double theory_idle_fraction, theory_bubble_rate, theory_bubble_over_ideal;
	double ramp_up, ramp_down, imbalance, communication; /* shares of ipus x makespan */
};

/* What training computes beside what its simulated IPUs could: of all that were attached. NaN:
 * unknown, as of a recording without a device. */
struct report_arithmetic {
	double flops_s, peak_flops_s;
};

/* The last that is known of an execution that did not end, or has not yet. */
struct report_reached {
	bool known;
	int64_t epoch, execution, weight_update, step;
};

/* A rule that was broken. IPS_NULL and NULL: not known, here and below. */
struct report_broken {
	const char *rule, *key; /* of the first hit: the tensor, the layer, "loss" */
	int64_t hits, first_ns, epoch, weight_update, step;
};

/* Where bad numbers began: the earliest of the trail that has any, which may be a weight or an
 * input that nobody looked at before first_nonfinite met what was computed from it. */
#define REPORT_FIRST_BAD                                                                           \
	"WITH met AS (SELECT * FROM first_nonfinite ORDER BY time_ns LIMIT 1)\n"                   \
	"SELECT key, layer, phase, epoch, weight_update, step, microbatch, replica, stage, "       \
	"time_ns, element, value FROM (\n"                                                         \
	"\tSELECT 0 AS position, * FROM (SELECT key, layer, phase, epoch, weight_update, step, "   \
	"microbatch, replica, stage, time_ns, element, value FROM met)\n"                          \
	"\tUNION ALL SELECT t.position, t.key, t.layer, t.phase, t.epoch, t.weight_update, "       \
	"t.step, t.microbatch, t.replica, t.stage, t.time_ns, NULL, CASE WHEN t.n_nan > 0 THEN "   \
	"'nan' WHEN t.n_pos_inf > 0 THEN 'inf' ELSE '-inf' END FROM nonfinite_trail t "            \
	"JOIN met ON met.rank IS t.rank WHERE t.position < 0 AND "                                 \
	"t.n_nan + t.n_pos_inf + t.n_neg_inf > 0\n"                                                \
	") ORDER BY position LIMIT 1"

/* The first bad number, as REPORT_FIRST_BAD has it; element -1: unknown. */
struct report_bad {
	bool known;
	const char *key, *layer, *phase, *value;
	int64_t epoch, weight_update, step, microbatch, replica, stage, time_ns, element;
};

struct report_fact {
	const char *name, *value;
};

struct report_summary {
	const char *path, *command;
	enum prof_origin origin;
	const char *state;   /* "complete", "recording", "killed: the writer died", ... */
	const char *failure; /* why the writer gave up (a full disk); NULL: it did not */
	bool whole;          /* the file has the end that its writer gave it */
	bool live;           /* it is being written */
	struct report_reached reached;
	const char *absent;     /* "spans, metrics": what an unfinished or empty file has none of */
	int64_t last_commit_ns; /* what came later is missing unless the file is whole */
	const char *model, *schedule, *target, *cost_model;
	const char *dataset; /* these texts are NULL where meta says nothing */
	int64_t batch_size, gradient_accumulation, host_threads; /* IPS_NULL: unknown */
	int64_t start_epoch_ns;                                  /* IPS_NULL: unknown */
	const char *continues; /* the report of the run whose backup this one went on from */
	int64_t part;          /* of a training that went on: from 2; IPS_NULL: it began here */
	int64_t after_step;    /* the steps that the parts before had done; IPS_NULL */
	const char *parts; /* of a merged file: which rank goes on after which; NULL: none does */
	int64_t ranks;     /* of a merged file; IPS_NULL: of none */
	int64_t duration_ns, epochs, executions, steps, weight_updates, replicas, ipus, stages;
	int64_t traced, untraced; /* executions with and without a timeline of the device */
	double loss, accuracy;    /* of the last training epoch; NaN: unknown */
	double evaluate_loss, evaluate_accuracy;
	bool loss_nan, evaluate_loss_nan;    /* recorded, and no number */
	struct report_bubble_mean bubble[2]; /* [0] host, [1] device (simulated) */
	struct report_arithmetic arithmetic;
	bool oversubscribed;
	struct report_stage *stage;
	int64_t spans, events, dropped, database_bytes, tensors, tensor_rows, health_hits;
	int64_t peak_resident_bytes;  /* of the process, as sampled; IPS_NULL: it was not */
	int64_t rules;                /* health rules that were in force */
	struct report_broken *broken; /* in the order of their first hits */
	int broken_count;
	struct report_bad bad;
	int64_t lowered, lowered_ns; /* tensors kept less than asked for, and from when */
	const char *lowered_why;     /* NULL: none is */
	int64_t record_ns, write_ns; /* what recording took of the run; its writer's thread beside;
				     IPS_NULL: unknown, as of an imported trace */
	double overhead_fraction;    /* record_ns over the run's time; NaN: unknown */
	struct report_fact *options; /* engine options and the like, from meta */
	int option_count;
	struct arena arena; /* owns all texts and arrays */
};

/* When the run began, by the local clock: "2026-11-22 08:41:53"; NULL: unknown. */
const char *report_summary_started(int64_t start_epoch_ns, char out[FMT_SIZE]);

/* From the writer's sums: its time does not grow with the rows. */
enum status report_summary_get(struct report_summary *out, struct prof_db *db, struct err *err);
void report_summary_free(struct report_summary *summary); /* accepts a zeroed struct */

/* The summary as text for people, at most @width columns (0: 80). */
enum status report_summary_print(const struct report_summary *summary, int width, FILE *out,
				 struct err *err);

/* The same numbers as a table (section, name, clock, stage, value), for CSV and JSON; its texts are
 * the summary's, which must outlive it. */
enum status report_summary_table(struct report_table *out, const struct report_summary *summary,
				 struct err *err);

#endif /* REPORT_SUMMARY_H */
