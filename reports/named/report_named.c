/*
 * Running a named report. Threading: none. Ownership: definitions are literals.
 */
#include "reports/named/report_named.h"

#include <stdio.h>
#include <string.h>

#include "common/str.h"
#include "reports/table/report_select.h"

const char *report_named_groupings(const struct report_named *named, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (int i = 0; i < REPORT_GROUPINGS && named->groupings[i].by; i++) {
		int length = snprintf(out + used, size - used, "%s%s", i ? " " : "",
				      named->groupings[i].by);

		if (length < 0 || (size_t)length >= size - used)
			break;
		used += (size_t)length;
	}
	return out;
}

static enum status named_grouping(const struct report_grouping **out,
				  const struct report_named *named, const char *by, struct err *err)
{
	char all[256];

	*out = &named->groupings[0];
	if (!by)
		return ST_OK;
	if (!named->groupings[0].by)
		return err_set(err, ST_INVALID, "--by: `%s` has one grouping only",
			       named->entry.name);
	for (int i = 0; i < REPORT_GROUPINGS && named->groupings[i].by; i++) {
		*out = &named->groupings[i];
		if (!strcmp((*out)->by, by))
			return ST_OK;
	}
	return err_set(err, ST_INVALID, "--by: `%s` has no grouping \"%s\" (one of: %s)",
		       named->entry.name, by, report_named_groupings(named, all, sizeof(all)));
}

enum status report_run_named(const struct report_entry *entry, const struct report_request *request,
			     struct err *err)
{
	const struct report_named *named = (const struct report_named *)entry;
	const struct report_grouping *grouping;
	enum status status = named_grouping(&grouping, named, request->choice.by, err);
	struct report_source source;

	if (status != ST_OK)
		return status;
	if (request->reevaluate)
		return report_run_reevaluate(request, err);
	source = (struct report_source){.name = entry->name,
					.sql = grouping->sql,
					.columns = grouping->columns,
					.sort = grouping->sort,
					.none = named->none};
	return report_run_source(&source, request, err);
}
