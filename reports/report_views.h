/*
 * The views of the contract as reports: their names, what a row is, and the queries behind them.
 */
#ifndef REPORT_VIEWS_H
#define REPORT_VIEWS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "profiler/prof_db.h"
#include "reports/report_render.h"

/* X(view, what a row is, how to read on from :at, the column that :at is a value of or NULL). */
#define REPORT_SKIP " LIMIT -1 OFFSET :at"
#define REPORT_VIEW_MAP(X)                                                                         \
	X(meta, "facts about the run", REPORT_SKIP, NULL)                                          \
	X(executions, "every Engine::run", REPORT_SKIP, NULL)                                      \
	X(layers, "the model's Keras layers", REPORT_SKIP, NULL)                                   \
	X(operations, "the planned operations", REPORT_SKIP, NULL)                                 \
	X(plans, "how the operations were planned", REPORT_SKIP, NULL)                             \
	X(programs, "the program tree", REPORT_SKIP, NULL)                                         \
	X(compute_sets, "the compute sets", REPORT_SKIP, NULL)                                     \
	X(device_steps, "the steps of the execution trace, by IPU", REPORT_SKIP, NULL)             \
	X(stage_timings, "each phase of each micro-batch on each stage", REPORT_SKIP, NULL)        \
	X(bubbles, "the pipeline bubble of each weight update", REPORT_SKIP, NULL)                 \
	X(tracks, "the lanes of the timeline", REPORT_SKIP, NULL)                                  \
	X(spans, "what took time, on which lane", " WHERE span_id >= :at ORDER BY span_id",        \
	  "span_id")                                                                               \
	X(span_args, "arguments of spans", REPORT_SKIP, NULL)                                      \
	X(instants, "moments", REPORT_SKIP, NULL)                                                  \
	X(flows, "arrows between spans", REPORT_SKIP, NULL)                                        \
	X(counters, "samples of counters", REPORT_SKIP, NULL)                                      \
	X(variables, "tensors on the device", REPORT_SKIP, NULL)                                   \
	X(variable_tiles, "where those lie", REPORT_SKIP, NULL)                                    \
	X(tile_memory, "memory of each tile by category", REPORT_SKIP, NULL)                       \
	X(liveness, "live bytes by program step", REPORT_SKIP, NULL)                               \
	X(tensors, "outfed tensors", REPORT_SKIP, NULL)                                            \
	X(tensor_stats, "statistics of each outfed tensor", REPORT_SKIP, NULL)                     \
	X(tensor_histograms, "histograms of those", REPORT_SKIP, NULL)                             \
	X(tensor_epochs, "the outfeed callback's table", REPORT_SKIP, NULL)                        \
	X(captures, "kept tensors (data as its size)", REPORT_SKIP, NULL)                          \
	X(metrics, "training metrics", REPORT_SKIP, NULL)                                          \
	X(health_rules, "the health rules in force", REPORT_SKIP, NULL)                            \
	X(health, "rules broken", REPORT_SKIP, NULL)                                               \
	X(first_nonfinite, "where bad numbers began", REPORT_SKIP, NULL)                           \
	X(overhead, "what recording cost, by commit", REPORT_SKIP, NULL)                           \
	X(time_split, "where each IPU's and worker's time went", REPORT_SKIP, NULL)

struct report_view {
	const char *name, *usage;
	const char *sql;       /* all rows */
	const char *sql_count; /* how many */
	/* From row :at on; where key is set :at is the first value of that column, else a number of
	 * rows to skip. For reading a growing file in short transactions. */
	const char *sql_from, *key;
};

const struct report_view *report_views(int *count);
const struct report_view *report_view_find(const char *name); /* NULL: none */

/* Write all rows of @view (at most @limit; 0: all), one at a time: memory does not grow with the
 * rows. While the file is being written it is read in short transactions; rows that arrive
 * meanwhile may or may not be among them. Not for text, which needs the whole table to find its
 * columns. */
enum status report_view_stream(const struct report_view *view, struct prof_db *db,
			       const struct report_render_params *params, int64_t limit, FILE *out,
			       struct err *err);

#endif /* REPORT_VIEWS_H */
