/*
 * The registry of all named reports.
 */
#ifndef REPORT_REGISTRY_H
#define REPORT_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "profiler/prof_db.h"
#include "reports/table/report_select.h"
#include "reports/table/report_render.h"

struct report_request {
	const char *path;   /* as given on the command line */
	struct prof_db *db; /* NULL if the entry needs no database */
	struct report_render_params render;
	const char *reevaluate; /* for the report `health`: see report_health_rules(); or NULL */
	struct report_choice choice;
	int64_t limit; /* rows; 0: all; REPORT_LIMIT_DEFAULT: the format's default */
	FILE *out;
};
#define REPORT_LIMIT_DEFAULT INT64_MIN
#define REPORT_TEXT_LIMIT    1000 /* default row limit of a text table */

enum report_needs {
	REPORT_NEEDS_DB,
	REPORT_NEEDS_PATH,
	REPORT_NEEDS_NOTHING
};

struct report_entry {
	const char *name, *usage;
	enum report_needs needs;
	enum status (*run)(const struct report_entry *entry, const struct report_request *request,
			   struct err *err);
};

enum report_group {
	REPORT_GROUP_REPORTS,
	REPORT_GROUP_VIEWS
};

/* Return entry @at in the order of groups, or NULL past the end. */
const struct report_entry *report_entry_at(int at, enum report_group *group);

/*
 * Look up the entry @name. Unknown: ST_NOTFOUND with the nearest name.
 *
 * If a report and a view share a name, the report wins. "view:NAME" always selects the view.
 */
enum status report_entry_find(const struct report_entry **out, const char *name, struct err *err);

/* The functions that the entries run. */
enum status report_run_summary(const struct report_entry *entry,
			       const struct report_request *request, struct err *err);
enum status report_run_insights(const struct report_entry *entry,
				const struct report_request *request, struct err *err);
enum status report_run_list(const struct report_entry *entry, const struct report_request *request,
			    struct err *err);
enum status report_run_repair(const struct report_entry *entry,
			      const struct report_request *request, struct err *err);
enum status report_run_reevaluate(const struct report_request *request, struct err *err);
enum status report_run_view(const struct report_entry *entry, const struct report_request *request,
			    struct err *err);

/* Return true if the entry supports --columns, --sort, --where and --sql. */
bool report_entry_selects(const struct report_entry *entry);

#endif /* REPORT_REGISTRY_H */
