/*
 * Insights on a recorded run: sentences with numbers, and what to change.
 *
 * One function detects each insight from the facts it needs (INSIGHT_MAP of
 * report_insights_internal.h lists them); thresholds are in the table of limits. Queries are
 * bounded: sums, templates of the device's traces, the first rows of tables that grow with the run.
 * docs/insights.md documents the source of each figure.
 *
 * Threading: none. Ownership: the struct's arena holds its texts and array.
 */
#ifndef REPORT_INSIGHTS_H
#define REPORT_INSIGHTS_H

#include <stdint.h>
#include <stdio.h>

#include "common/arena.h"
#include "common/err.h"
#include "profiler/prof_db.h"
#include "reports/table/report_table.h"

enum report_insight_severity {
	REPORT_INSIGHT_PROBLEM, /* the run is wrong, or its recording is incomplete */
	REPORT_INSIGHT_ADVICE,  /* the run could be faster or smaller */
	REPORT_INSIGHT_NOTE,    /* affects how the figures are read */
	REPORT_INSIGHT_SEVERITIES
};

const char *report_insight_severity(enum report_insight_severity severity);

struct report_insight_number {
	const char *name;
	double value;
	enum report_quantity quantity;
};

#define REPORT_INSIGHT_NUMBERS 6

/* Effect of the remedy: [0] measured, [1] predicted; NaN: unknown. */
struct report_insight_gain {
	double step_ns[2]; /* of one micro-batch, on the clock of the sentence */
	double idle_fraction[2];
	double bytes[2];
};

struct report_insight {
	const char *id; /* a stable word, "ramps" */
	enum report_insight_severity severity;
	const char *subject_kind, *subject; /* "stage", "1"; "run", NULL for the whole run */
	const char *sentence;
	const char *remedy; /* with keys of the run file; NULL: nothing to do */
	struct report_insight_number numbers[REPORT_INSIGHT_NUMBERS];
	int number_count;
	struct report_insight_gain gain;
	double share;     /* affected share of the time or memory, 0 .. 1; 0: not estimated */
	const char *view; /* the view that shows the rows; NULL: none */
	const char *keys; /* which rows of it: "clock=device stage=1"; "" all */
	const char *sql;  /* the query behind its numbers */
};

/* A GPU or other accelerator, in ns of the time from its first kernel or copy to its last. */
struct report_accelerator {
	int64_t rank;
	const char *device; /* "GPU 0" */
	const char *name;   /* with several ranks "GPU 0 of rank 1" */
	const char *keys;   /* of its rows */
	double total, idle, compute, communication, overlap;
	double copies;                        /* beside which nothing is computed or communicated */
	double gaps, waits_host, waits_other; /* between what runs on each stream, all streams */
};

struct report_insights {
	struct report_insight *items; /* ordered by severity, then by share */
	int count, capacity;
	struct report_accelerator *accelerators; /* by rank and device */
	int accelerator_count;
	const char *not_looked; /* insights that lack data in this recording, or NULL */
	struct arena arena;
};

enum status report_insights_get(struct report_insights *out, struct prof_db *db, struct err *err);
/* The accelerator whose time from its first kernel to its last is longest; NULL: there is none. */
const struct report_accelerator *report_insights_device(const struct report_insights *insights);
void report_insights_free(struct report_insights *insights); /* accepts a zeroed struct */

/* Return the insights as rows, for CSV, JSON and choices. Texts are copied. */
enum status report_insights_table(struct report_table *out, const struct report_insights *insights,
				  struct err *err);

/* ---- the tables ------------------------------------------------------------------------------ */

/* Thresholds. */
#define REPORT_INSIGHT_LIMIT_MAP(X)                                                                \
	X(TILE_USED, "tile_used", 0.9, "of a tile: the next larger batch may not fit")             \
	X(RAMP_IDLE, "ramp_idle", 0.1, "of a pipeline's time, idle in ramps by theory")            \
	X(IMBALANCE, "imbalance", 0.2, "slowest stage over the mean of all, less 1")               \
	X(GAIN, "gain", 0.03,                                                                      \
	  "of a step's time: less is not worth a change; predictions are "                         \
	  "within 5 % of runs, most within 1 %")                                                   \
	X(IDLE_IPU, "idle_ipu", 0.5, "of the time: an IPU without work for most of it")            \
	X(HOST_IO, "host_io", 0.15, "of an IPU's time in stream copies")                           \
	X(STREAM_WAIT, "stream_wait", 0.2,                                                         \
	  "of stream copies' cycles in StreamCopyBegin, which "                                    \
	  "waits for the host: copies that wait for nothing have less than a tenth there")         \
	X(EXCHANGE, "exchange", 0.3, "of an IPU's time in exchanges and syncs")                    \
	X(BALANCE, "balance", 0.5,                                                                 \
	  "mean over greatest cycles of the tiles that work: half of "                             \
	  "their time is waiting for the slowest")                                                 \
	X(OPERATION, "operation", 0.2, "of the cycles of all forward and backward operations")     \
	X(WEIGHT_UPDATE, "weight_update", 0.15, "of a stage's work in weight updates")             \
	X(ENGINE_RUN, "engine_run", 0.1, "of the device's time between executions")                \
	X(FIRST_EXECUTION, "first_execution", 0.5,                                                 \
	  "first execution longer than the mean of the "                                           \
	  "others by this part")                                                                   \
	X(RECORDING, "recording", 0.1, "of the run's time spent on recording")                     \
	X(RECORDING_RUN, "recording_run_s", 2,                                                     \
	  "s: in shorter runs opening and closing the file "                                       \
	  "is most of it")                                                                         \
	X(HOST_WAITS, "host_waits", 0.5, "of a worker's time in executions, waiting")              \
	X(HOST_DATA, "host_data", 0.15, "of a worker's time, loading and sending data")            \
	X(SLOW_RANK, "slow_rank", 0.1,                                                             \
	  "of all ranks' time, waiting for one of them longer than for the others")                \
	X(BUCKET_BYTES, "bucket_bytes", 65536,                                                     \
	  "bytes of an exchange between ranks: less is mostly the cost of beginning one")          \
	X(EXPOSED, "exposed", 0.1, "of the ranks' time in exchanges")                              \
	X(CPU, "cpu", 0.7, "processor time over time: less means waiting for a core")              \
	X(CPU_TIME, "cpu_time_s", 0.1, "s of stage programs: less says nothing about the machine") \
	X(RECOMPUTE, "recompute", 0.01, "of an IPU's memory in use that recomputation would free") \
	X(SPAN, "span", 0.5, "of a track's time in one call site")                                 \
	X(DEVICE_IDLE, "device_idle", 0.3,                                                         \
	  "of the time from the first to the last kernel of a GPU or other accelerator")           \
	X(DEVICE_COPIES, "device_copies", 0.1,                                                     \
	  "of that time in copies beside which nothing is computed")                               \
	X(HOT, "hot", 0.2, "of the time of all kernels, or of the critical path, in one name")     \
	X(SHORT, "short_kernels", 0.5, "of launches: what runs is shorter than the call")

enum report_insight_limit {
#define LIMIT_ID(id, name, value, why) REPORT_LIMIT_##id,
	REPORT_INSIGHT_LIMIT_MAP(LIMIT_ID)
#undef LIMIT_ID
	REPORT_INSIGHT_LIMITS
};

double report_insight_limit(enum report_insight_limit limit);

/* The ids of all insights in the order of the table; NULL past the end. */
const char *report_insight_id(int at);

#endif /* REPORT_INSIGHTS_H */
