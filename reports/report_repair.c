/*
 * `repair`: finish a file whose writer died. Threading: none. Ownership: nothing is kept.
 */
#include "reports/report_registry.h"

#include <errno.h>
#include <string.h>

#include "profiler/prof_repair.h"

enum status report_run_repair(const struct report_entry *entry,
			      const struct report_request *request, struct err *err)
{
	bool done;
	enum status status = prof_repair(request->path, &done, err);

	(void)entry;
	if (status != ST_OK)
		return status;
	fprintf(request->out, "%s: %s\n", request->path,
		done ? "repaired: the file is complete now" : "complete already, nothing to do");
	if (fflush(request->out))
		return err_set(err, ST_IO, "write: %s", strerror(errno));
	return ST_OK;
}
