/*
 * Shared by the files of the insights: the facts, which are read once, and adding an insight.
 *
 * report_insights_facts.c is what detectors call, report_insights_<topic>.c detect insights, and
 * report_insights.c runs them.
 */
#ifndef REPORT_INSIGHTS_INTERNAL_H
#define REPORT_INSIGHTS_INTERNAL_H

#include <stdbool.h>

#include "reports/insights/report_insights.h"
#include "reports/summary/report_summary.h"
#include "reports/whatif/report_whatif.h"

/* The limit of what-if; a larger number in a file is ignored. */
#define INSIGHT_MICROBATCHES_MAX (1 << 20)
#define INSIGHT_NAME             160 /* bytes of a name in a sentence */

/* Requirements of an insight; bits. */
enum insight_needs {
	INSIGHT_ANYTHING = 0,
	INSIGHT_TRAINING = 1 << 0,    /* a run of ipu-train */
	INSIGHT_PIPELINE = 1 << 1,    /* more than one stage */
	INSIGHT_DEVICE = 1 << 2,      /* simulated times */
	INSIGHT_TRACE = 1 << 3,       /* device steps of a training execution */
	INSIGHT_WHATIF = 1 << 4,      /* the what-if engine is available */
	INSIGHT_MEMORY = 1 << 5,      /* memory of tiles */
	INSIGHT_FOREIGN = 1 << 6,     /* spans of a program other than ipu-train */
	INSIGHT_ACCELERATOR = 1 << 7, /* kernels or copies of GPUs or other accelerators */
	INSIGHT_NEEDS = 8
};

/* Options of the run file that insights refer to. */
struct insight_options {
	bool known;
	int64_t steps_per_execution; /* 0: "epoch"; IPS_NULL: not set */
	int64_t prefetch_depth, io_tiles;
	bool recompute, trains; /* trains: the run file asks for training */
	bool decodes;           /* images are decoded on demand */
};

/* Training of a stage on one clock. */
struct insight_stage {
	int64_t stage, ipu; /* ipu IPS_NULL: none */
	double work_ns, update_ns, cpu_ns;
	int64_t microbatches;
};

/* Shares of an IPU's training time on one clock. */
enum insight_part {
	INSIGHT_COMPUTE,
	INSIGHT_EXCHANGE,
	INSIGHT_SYNC,
	INSIGHT_HOST_IO,
	INSIGHT_IDLE,
	INSIGHT_PARTS
};

struct insight_time {
	int64_t ipu; /* IPS_NULL: the host without IPUs */
	double share[INSIGHT_PARTS];
};

/* Cycles of the training's trace, over all IPUs and steps of at least one execution. */
struct insight_trace {
	double begin, middle, end; /* of stream copies */
	double compute, balanced;  /* of compute sets with a known balance; balanced: x balance */
	double all;
};

struct insight_memory {
	int64_t ipu, tile, bytes, capacity; /* the fullest tile */
	int64_t tiles, tiles_over;          /* tiles_over: tiles that exceed their memory */
	int64_t peak_bytes, peak_step;      /* of its liveness; IPS_NULL: unknown */
	int64_t always_live;                /* part of the peak */
	const char *peak_program;           /* NULL: unknown */
	int64_t recompute_bytes;            /* in FIFOs that recomputation would avoid */
};

struct insight_facts {
	struct prof_db *db;
	struct err *err;             /* the first failure: every later step returns at once */
	struct report_insight spare; /* what report__insight_add() returns after a failure */
	struct report_summary summary;
	struct insight_options options;
	int has;                      /* available enum insight_needs */
	struct report_whatif *whatif; /* NULL: unavailable, or not opened yet */
	bool whatif_opened;

	struct insight_stage *stage[2]; /* [0] host, [1] device */
	int stage_count[2];
	struct insight_time *time[2];
	int time_count[2];
	struct insight_trace trace;
	struct insight_memory *memory; /* by IPU, first replica only */
	int memory_count;
	struct report_insights *out; /* its arena owns all arrays */
};

/* ---- reading facts --------------------------------------------------------------------------- */

/* Options, stages, shares of time and the trace. */
void report__insight_read(struct insight_facts *facts);
void report__insight_memory(struct insight_facts *facts);
void report__insight_accelerators(struct insight_facts *facts);

/* Open what-if, once. It plans the run again, which takes most of the time of all insights, so only
 * pipelines and insights that need it call this. */
void report__insight_whatif(struct insight_facts *facts);

/* Read the rows of @sql. Return false if there are none; then *@table is empty. */
bool report__insight_rows(struct insight_facts *facts, struct report_table *table, const char *sql);
/* Allocate @count items in the insights' arena, at least one; NULL: out of memory. */
void *report__insight_alloc(struct insight_facts *facts, int64_t count, size_t size);

/* Queries whose text is also shown to the user. */
extern const char report__insight_sql_time[], report__insight_sql_trace[],
	report__insight_sql_stages[], report__insight_sql_bubbles[];

/* Cells of a table; NaN, IPS_NULL or NULL if the cell has no such value. */
double report__insight_real(const struct report_table *table, int64_t row, int column);
int64_t report__insight_int(const struct report_table *table, int64_t row, int column);
const char *report__insight_word(const struct report_table *table, int64_t row, int column);

/* ---- adding an insight ----------------------------------------------------------------------- */

/* Add an insight on the run, with unknown gain. Valid until the next call. */
struct report_insight *report__insight_add(struct insight_facts *facts, const char *id,
					   enum report_insight_severity severity, const char *view,
					   const char *keys, const char *sql);
/* Make the insight one on the @kind ("ipu", "stage") with @number, also in its keys. */
void report__insight_subject(struct insight_facts *facts, struct report_insight *insight,
			     const char *kind, int64_t number);
void report__insight_number(struct report_insight *insight, const char *name, double value,
			    enum report_quantity quantity);

/* Format a text in the insights' arena. */
const char *report__insight_text(struct insight_facts *facts, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The IPU that spends most of its time on @clock (0: host) on @part; NULL: none does. */
const struct insight_time *report__insight_most(const struct insight_facts *facts, int clock,
						enum insight_part part);
/* The stage with the most work on @clock, and the work of all stages; NULL: there is none. */
const struct insight_stage *report__insight_slowest(const struct insight_facts *facts, int clock,
						    double *all_ns);

/* Predict the run with @change. Return false if the change is illegal, does not fit into memory, or
 * cannot be predicted. */
bool report__insight_predict(struct insight_facts *facts, const struct report_whatif_change *change,
			     struct report_whatif_prediction *out);
/* The share of a step's time that a prediction saves. */
double report__insight_saved(const struct insight_facts *facts,
			     const struct report_whatif_prediction *predicted);
/* Set the gain of an insight whose remedy is predicted. */
void report__insight_gain(const struct insight_facts *facts, struct report_insight *insight,
			  const struct report_whatif_prediction *predicted);

/* ---- detectors: each adds an insight only if it applies -------------------------------------- */

typedef void (*insight_fn)(struct insight_facts *facts);

#define INSIGHT_MAP(X)                                                                             \
	X(writer_failed, INSIGHT_ANYTHING)                                                         \
	X(killed, INSIGHT_ANYTHING)                                                                \
	X(first_nonfinite, INSIGHT_ANYTHING)                                                       \
	X(loss_nonfinite, INSIGHT_ANYTHING)                                                        \
	X(out_of_memory, INSIGHT_MEMORY)                                                           \
	X(rule_broken, INSIGHT_ANYTHING)                                                           \
	X(lost_events, INSIGHT_ANYTHING)                                                           \
	X(engine_run, INSIGHT_DEVICE)                                                              \
	X(ramps, INSIGHT_PIPELINE)                                                                 \
	X(slow_stage, INSIGHT_PIPELINE | INSIGHT_DEVICE)                                           \
	X(other_schedule, INSIGHT_PIPELINE | INSIGHT_WHATIF)                                       \
	X(one_ipu, INSIGHT_PIPELINE | INSIGHT_WHATIF)                                              \
	X(idle_ipu, INSIGHT_PIPELINE | INSIGHT_DEVICE)                                             \
	X(stream_copies, INSIGHT_DEVICE)                                                           \
	X(communication, INSIGHT_DEVICE)                                                           \
	X(weight_update, INSIGHT_TRAINING)                                                         \
	X(operation, INSIGHT_DEVICE)                                                               \
	X(tile_balance, INSIGHT_TRACE)                                                             \
	X(tile_memory, INSIGHT_MEMORY)                                                             \
	X(recomputation, INSIGHT_MEMORY | INSIGHT_PIPELINE)                                        \
	X(host_waits, INSIGHT_PIPELINE)                                                            \
	X(host_data, INSIGHT_TRAINING)                                                             \
	X(slow_rank, INSIGHT_ANYTHING)                                                             \
	X(small_buckets, INSIGHT_TRAINING)                                                         \
	X(busy_machine, INSIGHT_TRAINING)                                                          \
	X(tiers_lowered, INSIGHT_ANYTHING)                                                         \
	X(recording_cost, INSIGHT_ANYTHING)                                                        \
	X(device_idle, INSIGHT_ACCELERATOR)                                                        \
	X(device_copies, INSIGHT_ACCELERATOR)                                                      \
	X(exposed_communication, INSIGHT_ACCELERATOR)                                              \
	X(short_kernels, INSIGHT_ACCELERATOR)                                                      \
	X(hot_kernel, INSIGHT_ACCELERATOR)                                                         \
	X(critical_path, INSIGHT_ACCELERATOR)                                                      \
	X(hot_span, INSIGHT_FOREIGN)                                                               \
	X(oversubscribed, INSIGHT_TRAINING)                                                        \
	X(first_execution, INSIGHT_TRAINING)                                                       \
	X(memory_peak, INSIGHT_MEMORY)                                                             \
	X(no_trace, INSIGHT_DEVICE)                                                                \
	X(host_only, INSIGHT_TRAINING)                                                             \
	X(still_recording, INSIGHT_ANYTHING)                                                       \
	X(repaired, INSIGHT_ANYTHING)                                                              \
	X(nothing, INSIGHT_ANYTHING)

#define INSIGHT_DECLARE(id, needs) void report__insight_##id(struct insight_facts *facts);
INSIGHT_MAP(INSIGHT_DECLARE)
#undef INSIGHT_DECLARE

#endif /* REPORT_INSIGHTS_INTERNAL_H */
