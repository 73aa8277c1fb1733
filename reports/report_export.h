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

struct report_export_request {
	const char *path; /* of the report, as given */
	struct prof_db *db;
	const char *keys; /* a shell pattern of tensor keys; NULL: all */
	bool steps;
	FILE *out; /* for people: what was written */
};

struct report_export {
	const char *name, *usage;
	const char *file; /* where it goes unless the request says otherwise */
	/* Write to @path, and say to request->out what was written. */
	enum status (*run)(const struct report_export_request *request, const char *path,
			   struct err *err);
};

const struct report_export *report_exports(int *count);

/* NumPy's .npz: an array per captured tensor. */
enum status report_export_npz(const struct report_export_request *request, const char *path,
			      struct err *err);

#endif /* REPORT_EXPORT_H */
