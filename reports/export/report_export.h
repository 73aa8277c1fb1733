/*
 * `export FORMAT`: write what a run recorded to a file for other programs.
 *
 * Threading: none. A file is written to a temporary name and then renamed: it is complete or
 * absent.
 */
#ifndef REPORT_EXPORT_H
#define REPORT_EXPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "common/err.h"
#include "common/str.h"
#include "profiler/prof_db.h"

/* Options that only some formats support. */
enum report_export_option {
	REPORT_EXPORT_KEYS,
	REPORT_EXPORT_STEPS,
	REPORT_EXPORT_WINDOW, /* --from, --to */
	REPORT_EXPORT_EXECUTION,
	REPORT_EXPORT_CLOCK,
	REPORT_EXPORT_WEIGHT_UPDATE,
	REPORT_EXPORT_OPTIONS
};

struct report_progress;

struct report_export_request {
	const char *path; /* of the report, as given on the command line */
	struct prof_db *db;
	const char *keys; /* a shell pattern of tensor keys; NULL: all */
	bool steps;
	int64_t from_ns, to_ns;           /* all: IPS_NULL, INT64_MAX */
	int64_t execution;                /* IPS_NULL: all */
	int64_t weight_update;            /* IPS_NULL: the format's choice */
	int clock;                        /* -1: both, or the format's choice */
	bool live;                        /* the run is being recorded */
	const char *unfinished;           /* sentence on missing data; NULL: none is missing */
	struct report_progress *progress; /* NULL: no progress, no interruption */
	FILE *out;                        /* for messages */
};

struct report_export {
	const char *name, *usage;
	const char *file; /* default output */
	unsigned options; /* a bit for each supported enum report_export_option */
	bool text;        /* may go to the standard output */
	/* Write to @path ("-": the standard output), and report to request->out what was
	 * written. */
	enum status (*run)(const struct report_export_request *request, const char *path,
			   struct err *err);
};

/* NumPy's .npz: one array per captured tensor. */
enum status report_export_npz(const struct report_export_request *request, const char *path,
			      struct err *err);

/* Chrome's trace JSON: every span, instant, flow, counter sample and device step. */
enum status report_export_chrome(const struct report_export_request *request, const char *path,
				 struct err *err);

/* speedscope's own format: the spans of each track. */
enum status report_export_speedscope(const struct report_export_request *request, const char *path,
				     struct err *err);

/* Folded stacks: one line "track;outer;inner ns" per stack of spans, with its self time. */
enum status report_export_folded(const struct report_export_request *request, const char *path,
				 struct err *err);

/* PyTorch's schedule CSV: one line per IPU of a pipeline, one cell per action. */
enum status report_export_torch_csv(const struct report_export_request *request, const char *path,
				    struct err *err);

/* graph.json, execution.json and debug.cbor in the folder @path, which is created if missing; of
 * the replica that the run selected. */
enum status report_export_popvision(const struct report_export_request *request, const char *path,
				    struct err *err);

/* One HTML page: charts and tables, without scripts or network access. */
enum status report_export_html(const struct report_export_request *request, const char *path,
			       struct err *err);

/* ---- helpers of the formats ------------------------------------------------------------------ */

/* Report progress: @done of @total (0: unknown). Fails with ST_INTERRUPTED if the user cancelled;
 * formats call it often from the first byte on. */
enum status report_export_tick(const struct report_export_request *request, int64_t done,
			       int64_t total, struct err *err);

/* Report the result: "PATH: " and the text, then the lines of @notes, which it frees (NULL: none).
 * Does nothing after an earlier failure, which is in @err. */
enum status report_export_print_result(const struct report_export_request *request,
				       const char *path, struct str *notes, struct err *err,
				       const char *format, ...)
	__attribute__((format(printf, 5, 6)));

#endif /* REPORT_EXPORT_H */
