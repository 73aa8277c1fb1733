/*
 * The named reports that are one query each. A definition gives the report's name, its query over
 * the contract's views, the default columns and order of text, and the note for an empty result.
 *
 * report_named.c lists all definitions and contains most. Below are the queries that insights, the
 * comparison and the viewer share with them, and the evaluation of health rules with other
 * thresholds.
 */
#ifndef REPORT_NAMED_H
#define REPORT_NAMED_H

#include "profiler/prof_db.h"
#include "reports/report_registry.h"
#include "reports/table/report_table.h"

#define REPORT_GROUPINGS 6

/* One way to group a report's rows. */
struct report_grouping {
	const char *by;      /* name for --by; NULL: the only grouping */
	const char *sql;     /* query with all columns and rows */
	const char *columns; /* default columns of text, for 80 columns */
	const char *sort;    /* NULL: the query's order */
};

struct report_named {
	struct report_entry entry;                          /* must be first: entries are cast */
	struct report_grouping groupings[REPORT_GROUPINGS]; /* the first one is the default */
	const char *none;                                   /* note for an empty result */
};

#define REPORT_NAMED(name, shows)                                                                  \
	{                                                                                          \
		(name), (shows), REPORT_NEEDS_DB, report_run_named                                 \
	}

/* The run function of such an entry. */
enum status report_run_named(const struct report_entry *entry, const struct report_request *request,
			     struct err *err);

/* Write the rows of a query or, with --sql, print the query itself, as @request asks. */
enum status report_run_source(const struct report_source *source,
			      const struct report_request *request, struct err *err);

/* List the groupings in @out, "operation layer stage phase"; "" if there is only one. */
const char *report_named_groupings(const struct report_named *named, char *out, size_t size);

/* Return report @at, or NULL past the end. */
const struct report_named *report_named_at(int at);

/* The reports on GPUs and other accelerators (report_accelerators.c). */
extern const struct report_named report_named_kernels, report_named_temporal, report_named_launch,
	report_named_critical_path, report_named_steps, report_named_ranges,
	report_named_memory_timeline;

/* ---- accelerators ---------------------------------------------------------------------------- */

/*
 * Queries on accelerators that insights use, too. Their definitions are Holistic Trace Analysis's,
 * see report_accelerators.c.
 */

/* A row for each device, of the time from its first kernel's or copy's start to the last one's end:
 * rank, device, total_ns, busy_ns, idle_ns, idle_share, compute_ns, compute_share, non_compute_ns,
 * communication_ns, overlap_ns, overlap_share, copy_ns. */
extern const char report_accelerator_split_sql[];

/* A row for each device, of the gaps in all its streams: rank, device, idle_ns, and the part of it
 * in gaps that end with a call that began after the gap (host_wait_ns), or are neither that nor a
 * switch between kernels (other_wait_ns). */
extern const char report_accelerator_gaps_sql[];

/* In SQL, the column `name` of ranges without what PyTorch's emit_nvtx() adds to it
 * (getNvtxStr() in torch/csrc/profiler/util.cpp): "aten::mm, seq = 3, op_id = 17,
 * sizes = [[2, 3], [3, 4]]" is a call of aten::mm. */
#define REPORT_RANGE_NAME                                                                          \
	"CASE WHEN instr(name, ', seq = ')\n"                                                      \
	"       THEN substr(name, 1, instr(name, ', seq = ') - 1)\n"                               \
	"       WHEN instr(name, ', op_id = ')\n"                                                  \
	"       THEN substr(name, 1, instr(name, ', op_id = ') - 1)\n"                             \
	"       ELSE name END"

/* ---- operations ------------------------------------------------------------------------------ */

/*
 * Planned operations weighted by their executions in a weight update: reports and viewer rank
 * operations by these.
 *
 * A row of the view operations is the cost of one execution. A weight update executes each
 * operation of a forward or backward pass once per micro-batch, and each operation of the update
 * (phase U) once. The sum over all operations equals device_steps of one weight update and one
 * replica (tests/viewer/view_numbers.sh compares them).
 */

/* Micro-batches of a replica's weight update; NULL: not recorded. @at is a prefix of the views: "",
 * or the schema of one of the two files of a comparison. */
#define REPORT_MICROBATCHES_AT(at)                                                                 \
	"coalesce((SELECT CAST(value AS INTEGER) FROM " at                                         \
	"meta WHERE key = 'gradient_accumulation'), (SELECT max(microbatches) FROM " at            \
	"bubble_sums WHERE mode = 'train'))"
#define REPORT_MICROBATCHES REPORT_MICROBATCHES_AT("")

/* Number of executions of an operation in a weight update. */
#define REPORT_TIMES_AT(at)                                                                        \
	"CASE phase WHEN 'U' THEN 1 ELSE ifnull(" REPORT_MICROBATCHES_AT(at) ", 1) END"

/* Facts on one IPU, in the number format of the model's products. NULL: the recorder had no
 * simulated device, or is older than this fact. */
#define REPORT_FACT_REAL(key)  "(SELECT CAST(value AS REAL) FROM meta WHERE key = '" key "')"
#define REPORT_CLOCK_HZ        REPORT_FACT_REAL("clock_hz")
#define REPORT_PEAK_FLOP_CYCLE REPORT_FACT_REAL("peak_flops_per_cycle")

/* Rate of @flops in @cycles of one IPU: in TFLOP/s of its simulated clock, and as a share of its
 * peak. */
#define REPORT_TFLOPS(flops, cycles) "1e-12 * " flops " / nullif(" cycles ", 0) * " REPORT_CLOCK_HZ
#define REPORT_PEAK_SHARE(flops, cycles)                                                           \
	"1.0 * " flops " / nullif(" cycles ", 0) / " REPORT_PEAK_FLOP_CYCLE

/* Training operations outside their layer's name. Keras's view of a step has the optimizer and the
 * accumulation of gradients beside the layers. */
#define REPORT_OPERATION_APART                                                                     \
	"(phase = 'U' OR operation LIKE 'GradientAccumulation/%') AND instr(operation, '/') > 1"

/* The view's columns, `times` (executions in a weight update) and their cost in total. `owner` is
 * the layer; an operation outside any layer gets a name in brackets, which no layer can have.
 * `part` is the owner, or the optimizer or the accumulation of gradients by their names. */
#define REPORT_OPERATIONS                                                                          \
	"(SELECT *, CASE WHEN " REPORT_OPERATION_APART                                             \
	" THEN substr(operation, 1, instr(operation, '/') - 1) ELSE owner END AS part, "           \
	"cycles * times AS update_cycles, compute_cycles * times AS update_compute, "              \
	"exchange_cycles * times AS update_exchange, sync_cycles * times AS update_sync, "         \
	"flops * times AS update_flops, bytes_exchanged * times AS update_bytes "                  \
	"FROM (SELECT *, coalesce(layer, CASE WHEN operation LIKE 'infeed/%' THEN '(infeed)' "     \
	"WHEN operation LIKE 'metrics/%' THEN '(metrics)' WHEN phase = 'U' THEN '(optimizer)' "    \
	"WHEN operation LIKE '%loss/%' THEN '(loss)' ELSE '(other)' END) AS "                      \
	"owner, " REPORT_TIMES_AT("") " AS times FROM operations))"

/* ---- health rules with other thresholds ------------------------------------------------------ */

/*
 * Evaluate health rules with other thresholds on a recorded run.
 *
 * The recorded rows of tensors, steps and epochs go through the state machine that evaluated them
 * during the run (outfeed/outfeed_health.h). With the run's own rules the hits are the same; the
 * time of a loss's hit is when the loss was recorded. Values that a tier did not record cannot be
 * evaluated. Classes are not recorded: their hits are copied if their value is above the threshold.
 *
 * Threading: none. Memory grows with tensors and hits, not with rows.
 */

struct outfeed_health_rules;

/* Read the rules from @file: the run's own rules, overridden by what the file names, as
 * health.rules in a run file does. "recorded": the run's own rules; "default": the defaults. For a
 * run that recorded no rules the defaults are its own. */
enum status report_health_rules(struct outfeed_health_rules *out, struct prof_db *db,
				const char *file, struct err *err);

/* Return the hits in the form of the view `health`, ordered by time. On failure @out is empty. */
enum status report_health_hits(struct report_table *out, struct prof_db *db,
			       const struct outfeed_health_rules *rules, struct err *err);

#endif /* REPORT_NAMED_H */
