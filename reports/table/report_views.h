/*
 * The views of the contract as reports: their names, what a row is, and their queries.
 */
#ifndef REPORT_VIEWS_H
#define REPORT_VIEWS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "profiler/prof_db.h"
#include "reports/table/report_render.h"

/* X(view, the table that holds its rows, what a row is, SQL to resume at :at, the column that :at
 * is a value of, or NULL). */
#define REPORT_SKIP " LIMIT -1 OFFSET :at"
#define REPORT_VIEW_MAP(X)                                                                         \
	X(meta, meta_facts, "facts about the run", REPORT_SKIP, NULL)                              \
	X(executions, execution_rows, "every Engine::run", REPORT_SKIP, NULL)                      \
	X(layers, layer_rows, "the model's Keras layers", REPORT_SKIP, NULL)                       \
	X(operations, operation_rows, "the planned operations", REPORT_SKIP, NULL)                 \
	X(plans, plan_rows, "how the operations were planned", REPORT_SKIP, NULL)                  \
	X(programs, program_rows, "the program tree", REPORT_SKIP, NULL)                           \
	X(compute_sets, compute_set_rows, "the compute sets", REPORT_SKIP, NULL)                   \
	X(device_steps, device_steps, "the steps of the execution trace, by IPU", REPORT_SKIP,     \
	  NULL)                                                                                    \
	X(stage_timings, stage_timing_rows, "each phase of each micro-batch on each stage",        \
	  REPORT_SKIP, NULL)                                                                       \
	X(bubbles, bubble_rows, "the pipeline bubble of each weight update", REPORT_SKIP, NULL)    \
	X(tracks, track_rows, "the lanes of the timeline", REPORT_SKIP, NULL)                      \
	X(spans, span_rows, "what took time, on which lane",                                       \
	  " WHERE span_id >= :at ORDER BY span_id", "span_id")                                     \
	X(span_args, span_arg_rows, "arguments of spans", REPORT_SKIP, NULL)                       \
	X(instants, instant_rows, "moments", REPORT_SKIP, NULL)                                    \
	X(instant_args, instant_arg_rows, "arguments of moments", REPORT_SKIP, NULL)               \
	X(flows, flow_rows, "arrows between spans", REPORT_SKIP, NULL)                             \
	X(counters, counter_rows, "samples of counters", REPORT_SKIP, NULL)                        \
	X(variables, variable_rows, "tensors on the device", REPORT_SKIP, NULL)                    \
	X(variable_tiles, variable_tiles, "where those lie", REPORT_SKIP, NULL)                    \
	X(tile_memory, tile_memory, "memory of each tile by category", REPORT_SKIP, NULL)          \
	X(liveness, liveness_rows, "live bytes by program step", REPORT_SKIP, NULL)                \
	X(tensors, tensor_rows, "outfed tensors", REPORT_SKIP, NULL)                               \
	X(tensor_tiers, tensor_tiers, "how much of each tensor is kept", REPORT_SKIP, NULL)        \
	X(tensor_stats, tensor_stat_rows, "statistics of each outfed tensor", REPORT_SKIP, NULL)   \
	X(tensor_histograms, tensor_histogram_rows, "histograms of those", REPORT_SKIP, NULL)      \
	X(tensor_epochs, tensor_epoch_rows, "the outfeed callback's table", REPORT_SKIP, NULL)     \
	X(captures, capture_rows, "kept tensors (data as its size)", REPORT_SKIP, NULL)            \
	X(metrics, metric_rows, "training metrics", REPORT_SKIP, NULL)                             \
	X(health_rules, health_rule_rows, "the health rules in force", REPORT_SKIP, NULL)          \
	X(health, health_rows, "rules broken", REPORT_SKIP, NULL)                                  \
	X(first_nonfinite, first_nonfinite_rows, "where bad numbers began", REPORT_SKIP, NULL)     \
	X(nonfinite_trail, nonfinite_trail, "the tensors that led there", REPORT_SKIP, NULL)       \
	X(overhead, overhead_rows, "what recording cost, by commit", REPORT_SKIP, NULL)            \
	X(time_split, time_split_rows, "where each IPU's and worker's time went", REPORT_SKIP,     \
	  NULL)                                                                                    \
	X(stage_sums, stage_sums, "stage timings summed by stage and phase", REPORT_SKIP, NULL)    \
	X(bubble_sums, bubble_sums, "bubbles summed by schedule", REPORT_SKIP, NULL)               \
	X(execution_sums, execution_sums, "executions summed by epoch", REPORT_SKIP, NULL)         \
	X(metric_sums, metric_sums, "each metric's last value and range", REPORT_SKIP, NULL)       \
	X(health_sums, health_sums, "rules broken: how often, and the first hit", REPORT_SKIP,     \
	  NULL)                                                                                    \
	X(overhead_sums, overhead_sums, "what recording cost in all", REPORT_SKIP, NULL)           \
	X(tensor_sums, tensor_sums, "each tensor's statistics: first, last, range", REPORT_SKIP,   \
	  NULL)                                                                                    \
	X(devices, device_rows, "GPUs and other accelerators", REPORT_SKIP, NULL)                  \
	X(kernels, kernel_rows, "what ran on them", REPORT_SKIP, NULL)                             \
	X(launches, launch_rows, "the calls that started kernels and copies", REPORT_SKIP, NULL)   \
	X(copies, copy_rows, "copies of memory", REPORT_SKIP, NULL)                                \
	X(critical_path, critical_rows, "the edges of each step's critical path", REPORT_SKIP,     \
	  NULL)                                                                                    \
	X(ranges, range_rows, "what the program named: NVTX, record_function", REPORT_SKIP, NULL)  \
	X(memory_events, memory_event_rows, "allocations and releases", REPORT_SKIP, NULL)

struct report_view {
	const char *name, *usage;
	const char *sql;       /* all rows */
	const char *sql_count; /* number of rows */
	/* Rows from :at on. If key is set, :at is the first value of that column, otherwise a
	 * number of rows to skip. Used to read a growing file in short transactions. */
	const char *sql_from, *key;
};

const struct report_view *report_views(int *count);
const struct report_view *report_view_find(const char *name); /* NULL: none */

/* Stream all rows of @view (at most @limit; 0: all): memory does not grow with the rows. A file
 * that is being written is read in short transactions; rows that arrive meanwhile may or may not be
 * included. CSV and JSON only: text needs the whole table to size its columns. */
enum status report_view_stream(const struct report_view *view, struct prof_db *db,
			       const struct report_render_params *params, int64_t limit, FILE *out,
			       struct err *err);

#endif /* REPORT_VIEWS_H */
