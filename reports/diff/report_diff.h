/*
 * Compare two runs, aligned by structure: setting, stage, operation, IPU and category of memory,
 * metric, tensor, name of span; and find the first place where their numbers differ.
 *
 * One struct, computed once, for `ipu-report diff` and the viewer. Its size is bounded by the
 * number of different names in the runs, not by their lengths; the rows of tensors and spans are
 * read once each.
 */
#ifndef REPORT_DIFF_H
#define REPORT_DIFF_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/err.h"
#include "profiler/prof_db.h"
#include "reports/table/report_table.h"

enum report_diff_better {
	REPORT_DIFF_NEITHER, /* a difference is neither good nor bad */
	REPORT_DIFF_LOWER,
	REPORT_DIFF_HIGHER
};

/* A value in one run. Unknown: known is false. Settings are texts. */
struct report_diff_value {
	bool known;
	double number;
	const char *text; /* NULL: a number */
};

struct report_diff_row {
	const char *section; /* "totals", "stages", ... */
	const char *key;     /* "host F 0", "Dense_128/kernel:0_grad" */
	const char *name;    /* name of the value: "mean_ns" */
	enum report_quantity quantity;
	enum report_diff_better better;
	struct report_diff_value source, target;
	bool in_source, in_target; /* whether the run has @key */
	bool measured;             /* a time of the host, which varies from run to run */
	bool further;              /* a secondary value of the key: ignored by gates */
};

/* target - source; NaN if either is unknown or a text. */
double report_diff_amount(const struct report_diff_row *row);
/* The difference over the larger magnitude, as in PopVision: 1.5 to 4.3 is 65 %; 0 if both are 0,
 * NaN if unknown. */
double report_diff_fraction(const struct report_diff_row *row);
bool report_diff_same(const struct report_diff_row *row);

/* Judge a change of a number in one word: "equal"; "same" if the difference is below what is
 * printed; "faster" or "slower" for times and cycles, "better" or "worse" for other values with
 * @better lower or higher, also if a number became non-finite; otherwise "changed". */
const char *report_verdict(double source, double target, enum report_quantity quantity,
			   enum report_diff_better better);
/* The same for a row; "only source" or "only target" if one run lacks it; "same" or "differs" for
 * texts. */
const char *report_diff_verdict(const struct report_diff_row *row);
#define REPORT_ONLY_SOURCE "only source"
#define REPORT_ONLY_TARGET "only target"

/* Return true if the target is worse by more than @gate of the larger value; false if either is
 * unknown. */
bool report_diff_regressed(const struct report_diff_row *row, double gate);

/* The first number of a tensor or metric, in order of execution, in which the runs differ. */
struct report_diff_part {
	bool known;
	const char *what; /* "tensor", "metric", "capture" */
	const char *key, *layer, *kind, *mode, *phase;
	const char *column; /* "l2", "value"; NULL for a capture */
	int64_t epoch, weight_update, step, microbatch, replica; /* IPS_NULL: none */
	int64_t element;       /* of a capture: the first that differs; else IPS_NULL */
	double source, target; /* NaN: not a number, or missing */
};

struct report_diff {
	struct report_diff_row *rows;
	size_t count, capacity;
	struct report_diff_part part;
	/* Numbers of rows of tensors, captures and metrics of steps: in both runs, different, in
	 * one run only. */
	int64_t compared, parted, only_source, only_target;
	bool numbers; /* whether these were looked at: the section tensors is selected */
	enum prof_state state[2];
	bool alive[2];          /* whether the run's writer is alive */
	const char *weights[2]; /* digests of the final weights; NULL: unknown */
	struct arena arena;
};

/* The names of the sections, in order. */
const char *const *report_diff_sections(size_t *count);

/* @sections: the selected ones, separated by commas; NULL: all. Unknown: ST_INVALID. */
enum status report_diff_get(struct report_diff *out, struct prof_db *source, struct prof_db *target,
			    const char *sections, struct err *err);
void report_diff_free(struct report_diff *diff); /* accepts a zeroed struct */

/* Summarize the comparison in one line: "Interleaved: device 12.8 % faster, bubble 55.2 to 47.3 %,
 * the same weights". Percentages of times refer to the source. "" if the runs share no data. */
#define REPORT_GLANCE_SIZE 256
const char *report_diff_glance(const struct report_diff *diff, char out[REPORT_GLANCE_SIZE]);

/* Return true if no compared row differs, and no tensor or metric. Host measurements are
 * ignored. */
bool report_diff_equal(const struct report_diff *diff);

/* ---- the parts of a comparison --------------------------------------------------------------- */

/* Append a zeroed row; NULL after a failure, which is in @err. */
struct report_diff_row *report__diff_add(struct report_diff *diff, struct err *err);

/* Compare rows of tensors and metrics in order of execution. Fill the part, the counts and the
 * section "tensors". This and the next do nothing after an earlier failure. */
void report__diff_part(struct report_diff *diff, struct prof_db *source, struct prof_db *target,
		       struct err *err);

/* Fill the section "spans". */
void report__diff_spans(struct report_diff *diff, struct prof_db *source, struct prof_db *target,
			struct err *err);

#endif /* REPORT_DIFF_H */
