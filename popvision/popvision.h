/*
 * The files beside profile.db for readers of Graphcore's profiles: graph.json and execution.json,
 * whose paths docs/json.md lists, and debug.cbor.
 *
 * All are generated from the database only: the same database gives the same bytes. They are
 * streamed, in memory that does not grow with the run, to a temporary file that is then renamed:
 * an old file stays until the new one is complete. Threading: none.
 *
 * At the end: how our own programs open a recorded run.
 */
#ifndef POPVISION_H
#define POPVISION_H

#include <ipuscope/report.h>
#include <stdbool.h>

#include "common/err.h"
#include "profiler/prof_db.h"

#define POPVISION_ALL_REPLICAS (-1) /* as in profiler.replicaToProfile */

/* Write what is known once a model is compiled. */
enum status popvision_graph(struct ips_report *report, const char *path, struct err *err);

/* Write the device's work in the traced executions, of @replica or of all. */
enum status popvision_execution(struct ips_report *report, const char *path, int64_t replica,
				struct err *err);

/* Write the layer of each operation and the operation of each program. */
enum status popvision_debug(struct ips_report *report, const char *path, struct err *err);

/* Selection of files in a folder. */
struct popvision_files {
	bool graph, execution, debug;
	int64_t replica; /* of execution.json, or POPVISION_ALL_REPLICAS */
};

/*
 * Write the files selected by @wanted to the report directory @directory, from its profile.db: the
 * first function once the model's rows are committed, the second once the last execution's are.
 * Other files are not touched. Return the first failure; the other files are still written.
 */
enum status popvision_compiled(const char *directory, const struct popvision_files *wanted,
			       struct err *err);
enum status popvision_executed(const char *directory, const struct popvision_files *wanted,
			       struct err *err);

/* The files by number, from 0: the name ("graph.json"; NULL past the end), and a function that
 * writes the file to @path. */
const char *popvision_file_name(size_t number);
enum status popvision_file_write(size_t number, struct ips_report *report, const char *path,
				 int64_t replica, struct err *err);

/* ---- opening a recorded run ------------------------------------------------------------------ */

/*
 * How our own programs open a recorded run: through ipuscope/report.h as foreign programs do, with
 * access to the database for data that this header does not offer.
 *
 * Threading and ownership: as ipuscope/report.h says. The report owns the database.
 */

/* ips_report_open() with an err. On failure *@out is NULL. */
enum status report_public_open(struct ips_report **out, const char *path, struct err *err);

/* Never NULL; valid until ips_report_close(). */
struct prof_db *report_public_db(struct ips_report *report);

#endif /* POPVISION_H */
