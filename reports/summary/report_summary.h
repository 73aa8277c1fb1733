/*
 * The summary of a run: one struct, filled by a few bounded queries, for ipu-report, ipu-view and
 * the end of script/demo.
 */
#ifndef REPORT_SUMMARY_H
#define REPORT_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/arena.h"
#include "common/err.h"
#include "common/fmt.h"
#include "profiler/prof_db.h"
#include "reports/table/report_table.h"

struct report_stage {
	int64_t stage, ipu; /* ipu IPS_NULL: unknown */
	const char *layers; /* "flatten, Dense_256"; NULL: none, or not read */
	int64_t forward_ns[2], backward_ns[2],
		update_ns[2]; /* sums over training; [0] host, [1] device */
	int64_t count;        /* forward micro-batches, host clock */
};

struct report_bubble_mean {
	bool known;
	int64_t runs;
	double idle_fraction;                  /* the bubble over all runs: the sum of its causes */
	double bubble_rate, bubble_over_ideal; /* means over runs, like the theory below */
	double theory_idle_fraction, theory_bubble_rate, theory_bubble_over_ideal;
	double ramp_up, ramp_down, imbalance, communication; /* shares of IPUs x makespan */
};

/* FLOP/s of training and the peak of all simulated IPUs. NaN: unknown, e.g. a recording without a
 * device. */
struct report_arithmetic {
	double flops_s, peak_flops_s;
};

/* The last known progress of an execution that has not ended. */
struct report_reached {
	bool known;
	int64_t epoch, execution, weight_update, step;
};

/* A broken rule. Here and below, IPS_NULL and NULL mean unknown. */
struct report_broken {
	const char *rule, *key; /* key of the first hit: the tensor, the layer, "loss" */
	int64_t hits, first_ns, epoch, weight_update, step;
};

/* The origin of non-finite values: the earliest non-finite tensor of the trail. It may be a weight
 * or an input that no rule watched before first_nonfinite found a value computed from it. */
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

/* The first non-finite value, as selected by REPORT_FIRST_BAD; element -1: unknown. */
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
	const char *failure; /* why the writer gave up (e.g. a full disk); NULL: it did not */
	const char *note;    /* how the file is read; NULL: as usual */
	bool whole;          /* the writer completed the file */
	bool live;           /* the file is being written */
	struct report_reached reached;
	const char *absent;     /* "spans, metrics": empty tables of an unfinished or empty file */
	int64_t last_commit_ns; /* later data is missing unless the file is whole */
	const char *model, *schedule, *target, *cost_model;
	const char *dataset; /* NULL if meta does not have it, like the texts above */
	int64_t batch_size, gradient_accumulation, host_threads; /* IPS_NULL: unknown */
	int64_t start_epoch_ns;                                  /* IPS_NULL: unknown */
	const char *continues; /* the report of the run whose backup this run continued */
	int64_t part;          /* from 2: part of a continued training; else IPS_NULL */
	int64_t after_step;    /* steps done by the parts before; IPS_NULL: none */
	const char *parts;     /* of a merged file: which rank continues which; NULL: none does */
	int64_t ranks;         /* of a merged file; IPS_NULL: not merged */
	int64_t duration_ns, epochs, executions, steps, weight_updates, replicas, ipus, stages;
	int64_t traced, untraced; /* executions with and without a device timeline */
	double loss, accuracy;    /* of the last training epoch; NaN: unknown */
	double evaluate_loss, evaluate_accuracy;
	bool loss_nan, evaluate_loss_nan;    /* recorded as NaN */
	struct report_bubble_mean bubble[2]; /* [0] host, [1] device (simulated) */
	struct report_arithmetic arithmetic;
	bool oversubscribed;
	struct report_stage *stage;
	int64_t tracks_refused; /* that the recording lacks, since it has as many as it may have */
	int64_t names_cut;      /* how often a name was cut, or replaced by "(more names)" */
	int64_t spans, events, dropped, database_bytes, tensors, tensor_rows, health_hits;
	int64_t peak_resident_bytes;  /* of the process; IPS_NULL: not sampled */
	int64_t rules;                /* number of enabled health rules */
	struct report_broken *broken; /* in the order of their first hits */
	int broken_count;
	struct report_bad bad;
	int64_t lowered, lowered_ns; /* tensors with a lowered tier, and the first time */
	const char *lowered_why;     /* NULL: none */
	int64_t record_ns, write_ns; /* cost of recording in the run, and in its writer thread;
				     IPS_NULL: unknown, as of an imported trace */
	double overhead_fraction;    /* record_ns over the run's time; NaN: unknown */
	struct report_fact *options; /* engine options and the like, from meta */
	int option_count;
	struct arena arena; /* owns all texts and arrays */
};

/* Format the run's start in local time: "2026-11-22 08:41:53"; NULL: unknown. */
const char *report_summary_started(int64_t start_epoch_ns, char out[FMT_SIZE]);

/* Fill @out. Reads the writer's sums, so the time does not grow with the rows. */
enum status report_summary_get(struct report_summary *out, struct prof_db *db, struct err *err);
void report_summary_free(struct report_summary *summary); /* accepts a zeroed struct */

/* Print the summary as text, at most @width columns (0: 80). */
enum status report_summary_print(const struct report_summary *summary, int width, FILE *out,
				 struct err *err);

/* The same numbers as a table (section, name, clock, stage, value), for CSV and JSON. */
enum status report_summary_table(struct report_table *out, const struct report_summary *summary,
				 struct err *err);

/* ---- sums over stage timings and bubbles ----------------------------------------------------- */

/* The writer maintains the sums in the database, so reading them takes constant time however long
 * the run is. */

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
	struct report_stage *stage; /* in order of stage, without layers */
	size_t count, capacity;
	struct report_bubble_sum bubble[2]; /* [0] host, [1] device */
};

/* Read the sums. Does nothing after an earlier failure, which is in @err (not NULL). On failure
 * @sums are partial; free them, too. */
void report_sums_read(struct report_sums *sums, struct prof_db *db, struct err *err);

/* Return the sums of @stage, inserting it if missing. NULL: out of memory. The pointer is valid
 * until the next call. */
struct report_stage *report_sums_stage(struct report_sums *sums, int64_t stage);
void report_sums_free(struct report_sums *sums); /* accepts a zeroed struct */

#endif /* REPORT_SUMMARY_H */
