/*
 * Every named report, in one array.
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
	const char *path;   /* as given */
	struct prof_db *db; /* NULL for an entry without one */
	struct report_render_params render;
	const char *reevaluate; /* of the report `health`: see report_health_rules(); or NULL */
	struct report_choice choice;
	int64_t limit; /* rows; 0: all; REPORT_LIMIT_DEFAULT: as the format has it */
	FILE *out;
};
#define REPORT_LIMIT_DEFAULT INT64_MIN
#define REPORT_TEXT_LIMIT    1000 /* rows of a text table unless asked otherwise */

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

/* The entries one after the other, by group; NULL past the end. */
const struct report_entry *report_entry_at(int at, enum report_group *group);

/*
 * The entry called @name; unknown: ST_NOTFOUND with the nearest.
 *
 * A word that is a report's and a view's means the report. "view:NAME" always means the view.
 */
enum status report_entry_find(const struct report_entry **out, const char *name, struct err *err);

/* What the entries run. */
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

/* Does this entry know --columns, --sort, --where and --sql? */
bool report_entry_selects(const struct report_entry *entry);

/* Write or, where --sql asks for that, print a query as @request has it. */
struct report_source;
enum status report_run_source(const struct report_source *source,
			      const struct report_request *request, struct err *err);

#endif /* REPORT_REGISTRY_H */
