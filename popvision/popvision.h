/*
 * The files that stand beside profile.db for readers of Graphcore's profiles: graph.json and
 * execution.json, whose paths docs/json.md lists, and debug.cbor.
 *
 * All are made of the database alone: the same database gives the same bytes. They are written as a
 * stream, in memory that does not grow with the run, to a temporary beside their place and renamed:
 * whole or not at all; what was there stays until then. Threading: none.
 */
#ifndef POPVISION_H
#define POPVISION_H

#include <stdbool.h>

#include "common/err.h"
#include "popvision/public/report_public.h"

#define POPVISION_ALL_REPLICAS (-1) /* as profiler.replicaToProfile has it */

/* What is known once a model is compiled. */
enum status popvision_graph(struct ips_report *report, const char *path, struct err *err);

/* What the device did in the executions that were traced: of @replica, or of all. */
enum status popvision_execution(struct ips_report *report, const char *path, int64_t replica,
				struct err *err);

/* Which layer each operation came from, and which operation each program. */
enum status popvision_debug(struct ips_report *report, const char *path, struct err *err);

/* The files in a folder: which of them are wanted, and of which replica. */
struct popvision_files {
	bool graph, execution, debug;
	int64_t replica; /* of execution.json; POPVISION_ALL_REPLICAS */
};

/*
 * Into the report directory @directory, from its profile.db, the files that @wanted asks for: once
 * the model's rows are committed, and once the last execution's are. Files that are not asked for
 * are left alone. The first failure is returned, and the other files are written all the same.
 */
enum status popvision_compiled(const char *directory, const struct popvision_files *wanted,
			       struct err *err);
enum status popvision_executed(const char *directory, const struct popvision_files *wanted,
			       struct err *err);

/* The files by number, from 0: the name ("graph.json"; NULL: there are no more), and the file
 * itself, written to @path. */
const char *popvision_file_name(size_t number);
enum status popvision_file_write(size_t number, struct ips_report *report, const char *path,
				 int64_t replica, struct err *err);

#endif /* POPVISION_H */
