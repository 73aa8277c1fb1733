/*
 * What the files of the insights share: the facts that are read once, and adding an insight.
 *
 * report_insights_facts.c reads, report_insights_<topic>.c look.
 */
#ifndef REPORT_INSIGHTS_INTERNAL_H
#define REPORT_INSIGHTS_INTERNAL_H

#include <stdbool.h>

#include "reports/insights/report_insights.h"
#include "reports/summary/report_summary.h"
#include "reports/whatif/report_whatif.h"

/* What what-if takes; a file that says more is not believed. */
#define INSIGHT_MICROBATCHES_MAX (1 << 20)

/* What an insight cannot do without; bits. */
enum insight_needs {
	INSIGHT_ANYTHING = 0,
	INSIGHT_TRAINING = 1 << 0, /* a run of ipu-train */
	INSIGHT_PIPELINE = 1 << 1, /* more than one stage */
	INSIGHT_DEVICE = 1 << 2,   /* simulated times */
	INSIGHT_TRACE = 1 << 3,    /* device steps of a training execution */
	INSIGHT_WHATIF = 1 << 4,   /* the engine of what-if can be asked */
	INSIGHT_MEMORY = 1 << 5,   /* memory of tiles */
	INSIGHT_FOREIGN = 1 << 6,  /* spans, and no run of ipu-train */
	INSIGHT_NEEDS = 7
};

/* The run file's own words, where they say something. */
struct insight_options {
	bool known;
	int64_t steps_per_execution; /* 0: "epoch"; IPS_NULL: not said */
	int64_t prefetch_depth, io_tiles;
	bool recompute, trains; /* trains: it asks for training */
	bool decodes;           /* images are decoded as they are needed */
};

/* A stage's training on one clock. */
struct insight_stage {
	int64_t stage, ipu; /* ipu IPS_NULL: none */
	double work_ns, update_ns, cpu_ns;
	int64_t microbatches;
};

/* Shares of an IPU's time in training, on one clock. */
struct insight_time {
	int64_t ipu; /* IPS_NULL: the host without IPUs */
	double compute, exchange, sync, host_io, idle;
	double total_ns; /* of the rows read */
};

/* Cycles of the training's trace, all IPUs and steps of an execution or more. */
struct insight_trace {
	double begin, middle, end; /* of stream copies */
	double compute, balanced;  /* of compute sets with a known balance; the same times it */
	double all;
};

struct insight_memory {
	int64_t ipu, tile, bytes, capacity; /* the fullest tile */
	int64_t tiles, tiles_over;          /* those that need more than they have */
	int64_t peak_bytes, peak_step;      /* of its liveness; IPS_NULL */
	int64_t always_live;                /* of the peak */
	const char *peak_program;           /* NULL: unknown */
	int64_t recompute_bytes;            /* FIFOs hold that, and would not with recomputation */
};

struct insight_facts {
	struct prof_db *db;
	struct report_summary summary;
	struct insight_options options;
	int has;                      /* enum insight_needs */
	struct report_whatif *whatif; /* NULL: it cannot be asked, or was not */
	bool whatif_asked;

	struct insight_stage *stage[2]; /* [1] device */
	int stage_count[2];
	struct insight_time *time[2];
	int time_count[2];
	struct insight_trace trace;
	struct insight_memory *memory; /* by IPU of the first replica */
	int memory_count;
	struct report_insights *out; /* its arena owns all of these */
};

/* ---- reading --------------------------------------------------------------------------------- */

enum status report__insight_facts(struct insight_facts *facts, struct prof_db *db, struct err *err);
void report__insight_facts_free(struct insight_facts *facts);
enum status report__insight_memory(struct insight_facts *facts, struct err *err);

/* Open what-if, once. It plans the run again, which takes most of the time of all insights, so only
 * pipelines and insights that need it ask. */
enum status report__insight_whatif(struct insight_facts *facts, struct err *err);

/* Queries that are shown as well as run. */
extern const char report__insight_sql_time[], report__insight_sql_trace[],
	report__insight_sql_stages[], report__insight_sql_bubbles[];

/* Cells of a table: NaN, IPS_NULL and NULL where there is no such value. */
double report__insight_real(const struct report_table *table, int64_t row, int column);
int64_t report__insight_int(const struct report_table *table, int64_t row, int column);
const char *report__insight_word(const struct report_table *table, int64_t row, int column);

/* ---- adding ---------------------------------------------------------------------------------- */

/* A new insight, its gain unknown; NULL: no memory. Valid until the next. */
struct report_insight *report__insight_add(struct insight_facts *facts, const char *id,
					   enum report_insight_severity severity);
void report__insight_number(struct report_insight *insight, const char *name, double value,
			    enum report_quantity quantity);

/* Texts of the insights' arena. NULL: no memory; the sentence must be checked at the end. */
const char *report__insight_text(struct insight_facts *facts, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Measured beside what @change would give. false: it is not legal, does not fit the memory, or is
 * not known. */
bool report__insight_predict(struct insight_facts *facts, const struct report_whatif_change *change,
			     struct report_whatif_prediction *out);
void report__insight_gain(struct report_insight *insight,
			  const struct report_whatif_prediction *measured,
			  const struct report_whatif_prediction *predicted);

/* ---- looking: each adds nothing where there is nothing to say -------------------------------- */

typedef enum status (*insight_fn)(struct insight_facts *facts, struct err *err);

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
	X(hot_span, INSIGHT_FOREIGN)                                                               \
	X(oversubscribed, INSIGHT_TRAINING)                                                        \
	X(first_execution, INSIGHT_TRAINING)                                                       \
	X(memory_peak, INSIGHT_MEMORY)                                                             \
	X(no_trace, INSIGHT_DEVICE)                                                                \
	X(host_only, INSIGHT_TRAINING)                                                             \
	X(still_recording, INSIGHT_ANYTHING)                                                       \
	X(repaired, INSIGHT_ANYTHING)                                                              \
	X(nothing, INSIGHT_ANYTHING)

#define INSIGHT_DECLARE(id, needs)                                                                 \
	enum status report__insight_##id(struct insight_facts *facts, struct err *err);
INSIGHT_MAP(INSIGHT_DECLARE)
#undef INSIGHT_DECLARE

#endif /* REPORT_INSIGHTS_INTERNAL_H */
