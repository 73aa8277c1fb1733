/*
 * A damaged database through the reports: the first byte chooses one.
 */
#include <stdio.h>
#include <string.h>

#include "fuzz_target.h"
#include "reports/report_registry.h"
#include "support/damaged_database.h"

#define ROWS_MOST 200

/* Reports and views that read the database: not what repairs it or lists names. */
static const struct report_entry *entry_of(int at)
{
	enum report_group group;
	const struct report_entry *entry;
	int count = 0;

	while ((entry = report_entry_at(count, &group)))
		count++;
	entry = report_entry_at(at % count, &group);
	return entry->needs == REPORT_NEEDS_DB ? entry : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct report_request request = {.limit = ROWS_MOST,
					 .render = {.width = 80, .tool = "fuzz"}};
	const struct report_entry *entry = size < 2 ? NULL : entry_of(data[0]);
	struct err err;

	if (!entry)
		return 0;
	request.path = damaged_database(data + 2, size - 2);
	if (!request.path || prof_db_open(&request.db, request.path, &err) != ST_OK)
		return 0;
	request.render.format = (enum report_format)(data[1] % 3);
	request.out = fopen("/dev/null", "w");
	if (request.out) {
		entry->run(entry, &request, &err);
		fclose(request.out);
	}
	prof_db_close(request.db);
	return 0;
}
