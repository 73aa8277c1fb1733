/*
 * `export FORMAT`: what a run recorded, as a file for other programs.
 *
 * Threading: none. A file is written beside its place and then renamed: whole or not at all.
 */
#ifndef REPORT_EXPORT_H
#define REPORT_EXPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "common/err.h"
#include "profiler/prof_db.h"

/* What some formats understand and others do not. */
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
	const char *path; /* of the report, as given */
	struct prof_db *db;
	const char *keys; /* a shell pattern of tensor keys; NULL: all */
	bool steps;
	int64_t from_ns, to_ns;           /* all: IPS_NULL, INT64_MAX */
	int64_t execution;                /* IPS_NULL: all */
	int64_t weight_update;            /* IPS_NULL: the format's choice */
	int clock;                        /* -1: both, or the format's choice */
	bool live;                        /* it is being recorded */
	const char *unfinished;           /* what it lacks, a sentence; NULL: it is whole */
	struct report_progress *progress; /* NULL: nobody watches or interrupts */
	FILE *out;                        /* for people: what was written */
};

struct report_export {
	const char *name, *usage;
	const char *file; /* where it goes unless the request says otherwise */
	unsigned options; /* a bit for each of enum report_export_option that it understands */
	bool text;        /* may go to the standard output */
	/* Write to @path ("-": the standard output), and say to request->out what was written. */
	enum status (*run)(const struct report_export_request *request, const char *path,
			   struct err *err);
};

const struct report_export *report_exports(int *count);

/* NumPy's .npz: an array per captured tensor. */
enum status report_export_npz(const struct report_export_request *request, const char *path,
			      struct err *err);

/* Chrome's trace JSON: every span, instant, flow, counter sample and device step. */
enum status report_export_chrome(const struct report_export_request *request, const char *path,
				 struct err *err);

/* speedscope's own file: the spans of each track. */
enum status report_export_speedscope(const struct report_export_request *request, const char *path,
				     struct err *err);

/* Folded stacks: "track;outer;inner ns", a line for each stack of spans, with its own time. */
enum status report_export_folded(const struct report_export_request *request, const char *path,
				 struct err *err);

/* PyTorch's schedule CSV: a line for each IPU of a pipeline, a cell for each piece of work. */
enum status report_export_torch_csv(const struct report_export_request *request, const char *path,
				    struct err *err);

/* graph.json, execution.json and debug.cbor into the folder @path, made where it is missing; of the
 * replica that the run was asked for. */
enum status report_export_popvision(const struct report_export_request *request, const char *path,
				    struct err *err);

/* One page of HTML: charts and tables, without scripts or network. */
enum status report_export_html(const struct report_export_request *request, const char *path,
			       struct err *err);

/* ---- for formats ----------------------------------------------------------------------------- */

/* @done of @total (0: unknown) are written. ST_INTERRUPTED when somebody wants it to end: called
 * often from the first byte on, or never. */
enum status report_export_tick(const struct report_export_request *request, int64_t done,
			       int64_t total, struct err *err);

/* What became of @path: "PATH: WHAT", and a line of its own for each note. */
enum status report_export_tell(const struct report_export_request *request, const char *path,
			       const char *what, const char *notes, struct err *err);

#endif /* REPORT_EXPORT_H */
