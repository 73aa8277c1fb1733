/*
 * What-if predictions: the time, the bubble and the memory of a recorded training under another
 * schedule, split, number of micro-batches, replicas or target, or with any other key of its run
 * file changed.
 *
 * For the device clock, the recorded run file is patched and planned again by the code of `ipu-plan
 * model` (model/plan/plan_run.h); without a change this gives the recorded cycles. For the host
 * clock, the measured mean times of stages are rearranged. docs/what-if.md has details.
 *
 * The recording is read once; predictions do not read the database. Operations are planned once per
 * target. Threading: one thread at a time. Ownership: the caller owns the recording; texts of a
 * prediction live as long as the recording, or are part of the prediction.
 */
#ifndef REPORT_WHATIF_H
#define REPORT_WHATIF_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "ipu/ipu_schedule.h"
#include "profiler/prof_db.h"
#include "reports/table/report_table.h"

#define REPORT_WHATIF_SPLIT_SIZE 256
#define REPORT_WHATIF_FLAGS_SIZE 512

enum report_whatif_clock {
	REPORT_WHATIF_DEVICE,
	REPORT_WHATIF_HOST
};

/* Assumptions behind a figure. Bits of a set; report_whatif_assumption() returns their texts. */
enum report_whatif_assumption {
	REPORT_WHATIF_NO_EXECUTION_HOST,
	REPORT_WHATIF_STEPS_SUITED,
	REPORT_WHATIF_PLAN_DIFFERS,
	REPORT_WHATIF_HOST_MEANS,
	REPORT_WHATIF_HOST_WAITS,
	REPORT_WHATIF_HOST_CORES,
	REPORT_WHATIF_HOST_HALF,
	REPORT_WHATIF_RANKS_ALIKE,
	REPORT_WHATIF_RANKS_NETWORK,
	REPORT_WHATIF_RANKS_SUMS,
	REPORT_WHATIF_ASSUMPTIONS
};

/* Return the text of an assumption, one sentence. */
const char *report_whatif_assumption(enum report_whatif_assumption assumption);

/* A network with a link for each instance. */
struct report_whatif_network {
	bool recorded;      /* the bandwidth is to be fitted */
	double bits_ns;     /* bandwidth of a link, each way: bits per ns, which are Gbit/s */
	double latency_ns;  /* of a message, one way */
	double overhead_ns; /* that a message takes its sender, and its receiver */
};

/* Parse "25Gbit,20us" or, with the overhead, "25Gbit,20us,1us"; "recorded" instead of a bandwidth
 * leaves that to report_whatif_fit_network(), and may stand alone. */
enum status report_whatif_network_parse(struct report_whatif_network *out, const char *text,
					struct err *err);

/*
 * The changes; zeros and NULLs mean as recorded. Changes can be combined. Each stands for keys of
 * the run file; `words` may contain any key.
 */
struct report_whatif_change {
	const char *schedule; /* a name of ipu_schedule.h */
	int64_t microbatches; /* per weight update and replica: steps_per_replica */
	int64_t replicas;
	const char *target; /* a name of ipu_target.h, or "bow" */
	int stages;         /* with split "auto"; NULL then means "auto", too */
	const char *split;  /* "auto"; a stage for each layer, "0,0,1"; or the layers that begin the
			     * stages after the first, "Dense_128,Dense_10" */
	int chunks;         /* 1f1b-interleaved: stages per IPU; 0: 2 */
	int instances;      /* on the host's clock: ranks, each with the replicas it had */
	struct report_whatif_network network; /* of the instances */
	int count;                            /* of words */
	char **words;                         /* flags and keys of the run file, as for ipu-train */
};

struct report_whatif_prediction {
	enum ipu_schedule_kind schedule;
	bool pipelined; /* false: one stage, no schedule */
	int stages;
	int64_t microbatches, replicas, batch;
	const char *target;                   /* NULL: the host */
	char split[REPORT_WHATIF_SPLIT_SIZE]; /* the layers that begin stages, if the split
					       * differs; else "" */
	char flags[REPORT_WHATIF_FLAGS_SIZE]; /* shell arguments of ipu-train for this run; "":
						 those of the recorded run, or too long */
	int64_t run_ns;        /* one weight update: G micro-batches and the update */
	double step_ns;        /* run / G: one micro-batch, which Keras counts as a step */
	int64_t update_ns;     /* part of run_ns: the optimizer, on the slowest stage */
	double samples_second; /* over all replicas */
	/* Over F and B, by the definitions of ipu_schedule.h; NaN if not recorded. */
	int64_t makespan_ns, busy_ns;
	double idle_fraction, bubble_rate, bubble_over_ideal;
	int slowest;        /* stage with the longest F + B */
	int64_t slowest_ns; /* its F + B */
	/* Of the fullest IPU and tile; 0 on the host clock. */
	int64_t memory_ipu_bytes, memory_tile_bytes;
	bool memory_fits; /* every tile fits its memory; true if unknown */
	/* With instances; else 0. */
	int instances;
	int64_t exposed_ns;   /* part of run_ns: waited for other instances */
	int64_t link_ns;      /* for which an update's messages occupy an instance's link, each way;
			       * 0 if measured */
	uint32_t assumptions; /* bits 1u << enum report_whatif_assumption */
};

struct report_whatif;

/*
 * Read the inputs of predictions. ST_NOTFOUND: the recording lacks a run file, training, device
 * times or a finished execution; the error names which.
 */
enum status report_whatif_open(struct report_whatif **out, struct prof_db *db,
			       enum report_whatif_clock clock, struct err *err);
void report_whatif_close(struct report_whatif *whatif); /* accepts NULL */

/* Read from the same database what the change `instances` needs; on the host's clock. */
enum status report_whatif_read_ranks(struct report_whatif *whatif, struct prof_db *db,
				     struct err *err);

/* Set the bandwidth with which the recorded ranks would have waited as long as they did. */
enum status report_whatif_fit_network(struct report_whatif_network *network,
				      const struct report_whatif *whatif, struct err *err);

/* The recorded run; its memory figures are planned. */
const struct report_whatif_prediction *report_whatif_measured(const struct report_whatif *whatif);

/* ST_INVALID or ST_NOTFOUND: the change is not legal; the error has the rule and the
 * alternatives. */
enum status report_whatif_predict(struct report_whatif_prediction *out,
				  const struct report_whatif *whatif,
				  const struct report_whatif_change *change, struct err *err);

/* ---- predictions beside the measured run, as a table ----------------------------------------- */

/* A row: a prediction, or why there is none. */
struct report_whatif_row {
	bool measured;
	char change[64]; /* "schedule 1f1b"; "": not from report_whatif_row_at() */
	struct report_whatif_prediction prediction; /* if none: the requested change */
	char why_not[ERR_TEXT_SIZE];                /* "": there is a prediction */
};

#define REPORT_WHATIF_ROWS_MAX (IPU_SCHEDULE_KINDS + 12)

/* Compute row @at of the default list: the measured run, every schedule, half and twice the
 * micro-batches, other splits, half and twice the stages, other targets. An illegal change is a row
 * with the reason. *@more false: there is no such row. */
enum status report_whatif_row_at(struct report_whatif_row *out, const struct report_whatif *whatif,
				 int at, bool *more, struct err *err);

/* Columns that show instances. */
#define REPORT_WHATIF_INSTANCES                                                                    \
	"kind,instances,replicas,weight_update_ns,exposed_ns,samples_second,speedup,"              \
	"efficiency"

/* @columns: names in order, "a,b,c"; "all"; NULL: the default columns of text. Texts are copied. */
enum status report_whatif_table(struct report_table *out, const struct report_whatif_row *rows,
				int count, const char *columns, struct err *err);

#endif /* REPORT_WHATIF_H */
