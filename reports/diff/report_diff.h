/*
 * Two runs beside each other, aligned by structure: setting, stage, operation, IPU and category of
 * memory, metric, tensor, name of span; and the first place where their numbers part.
 *
 * One struct, computed once, for `ipu-report diff` and the viewer. Bounded by what the runs have
 * different names for, not by their lengths; the rows of tensors and spans are read once each.
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

/* A value as a run has it. Unknown: known false. A setting is a text. */
struct report_diff_value {
	bool known;
	double number;
	const char *text; /* NULL: a number */
};

struct report_diff_row {
	const char *section; /* "totals", "stages", ... */
	const char *key;     /* "host F 0", "Dense_128/kernel:0_grad" */
	const char *name;    /* the value's: "mean_ns" */
	enum report_quantity quantity;
	enum report_diff_better better;
	struct report_diff_value source, target;
	bool in_source, in_target; /* is @key there at all? */
	bool measured;             /* a time of the host, which is never the same twice */
	bool further; /* another number of what the row before is of: gates look at that */
};

/* target - source; NaN where either is unknown or a text. */
double report_diff_amount(const struct report_diff_row *row);
/* That over the larger of the two magnitudes, as PopVision does: 1.5 to 4.3 is 65 %; 0 where both
 * are 0, NaN where unknown. */
double report_diff_fraction(const struct report_diff_row *row);
bool report_diff_same(const struct report_diff_row *row);

/* What a number comes to beside another of the same name, in a word: "equal"; "same", where what
 * differs is below what is printed; "faster" and "slower" of times and cycles, "better" and "worse"
 * of what else is @better lower or higher, a number that became none included; else "changed". */
const char *report_verdict(double source, double target, enum report_quantity quantity,
			   enum report_diff_better better);
/* Where one run alone has it "only source" or "only target"; of texts "same" or "differs". */
const char *report_diff_verdict(const struct report_diff_row *row);
#define REPORT_ONLY_SOURCE "only source"
#define REPORT_ONLY_TARGET "only target"

/* Is the target worse by more than @gate of the larger value? Where either is not known: no. */
bool report_diff_regressed(const struct report_diff_row *row, double gate);

/* The first number of a tensor or metric, in order of execution, that the runs have different. */
struct report_diff_part {
	bool known;
	const char *what; /* "tensor", "metric", "capture" */
	const char *key, *layer, *kind, *mode, *phase;
	const char *column; /* "l2", "value"; of a capture NULL */
	int64_t epoch, weight_update, step, microbatch, replica; /* IPS_NULL: none */
	int64_t element;       /* of a capture: the first that differs; else IPS_NULL */
	double source, target; /* NaN: not a number, or none */
};

struct report_diff {
	struct report_diff_row *rows;
	size_t count, capacity;
	struct report_diff_part part;
	/* Rows of tensors, captures and metrics of steps: both have them, those differ, one has
	 * them. */
	int64_t compared, parted, only_source, only_target;
	enum prof_state state[2];
	bool alive[2];          /* their writers are */
	const char *weights[2]; /* the digests of the weights at the end; NULL: not known */
	struct arena arena;
};

/* The names of the sections, in order. */
const char *const *report_diff_sections(size_t *count);

/* @sections: those wanted, separated by commas, or NULL: all. Unknown: ST_INVALID. */
enum status report_diff_get(struct report_diff *out, struct prof_db *source, struct prof_db *target,
			    const char *sections, struct err *err);
void report_diff_free(struct report_diff *diff); /* accepts a zeroed struct */

/* The comparison in a line, of what both have: "Interleaved: device 12.8 % faster, bubble 55.2 to
 * 47.3 %, the same weights". Percentages of times are the source's. "" where both have nothing. */
#define REPORT_GLANCE_SIZE 256
const char *report_diff_glance(const struct report_diff *diff, char out[REPORT_GLANCE_SIZE]);

/* Nothing differs that was compared: rows and parting alike. What was measured on the host is left
 * out. */
bool report_diff_equal(const struct report_diff *diff);

#endif /* REPORT_DIFF_H */
