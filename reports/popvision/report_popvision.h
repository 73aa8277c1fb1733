/*
 * The files that stand beside profile.db for readers of Graphcore's profiles: graph.json and
 * execution.json, whose paths docs/json.md lists, and debug.cbor.
 *
 * All are made of the database alone: the same database gives the same bytes. They are written as a
 * stream, in memory that does not grow with the run, to a temporary beside their place and renamed:
 * whole or not at all; what was there stays until then. Threading: none.
 */
#ifndef REPORT_POPVISION_H
#define REPORT_POPVISION_H

#include "common/err.h"
#include "reports/auto/report_auto.h"
#include "reports/export/report_export.h"
#include "reports/public/report_public.h"

#define REPORT_ALL_REPLICAS (-1) /* as report_options.replica_to_profile has it */

/* What is known once a model is compiled. */
enum status report_popvision_graph(struct ips_report *report, const char *path, struct err *err);

/* What the device did in the executions that were traced: of @replica, or of all. */
enum status report_popvision_execution(struct ips_report *report, const char *path, int64_t replica,
				       struct err *err);

/* Which layer each operation came from, and which operation each program. */
enum status report_popvision_debug(struct ips_report *report, const char *path, struct err *err);

/*
 * Into the report directory @directory, from its profile.db, the files that @options ask for: once
 * the model's rows are committed, and once the last execution's are. Files that are not asked for
 * are left alone. The first failure is returned, and the other files are written all the same.
 */
enum status report_popvision_compiled(const char *directory, const struct report_options *options,
				      struct err *err);
enum status report_popvision_executed(const char *directory, const struct report_options *options,
				      struct err *err);

/* `export popvision`: all three into the folder @path, made where it is missing; of the replica
 * that the run was asked for. */
enum status report_export_popvision(const struct report_export_request *request, const char *path,
				    struct err *err);

#endif /* REPORT_POPVISION_H */
