/*
 * What every report says of a recording that did not come to its end.
 *
 * Threading: none. Ownership: the sentence is the caller's buffer, or a literal.
 */
#include <stdio.h>

#include "common/err.h"
#include "reports/table/report_internal.h"

const char *report__unfinished(struct prof_db *db, char out[REPORT_UNFINISHED_SIZE])
{
	char failure[ERR_TEXT_SIZE], repaired[64];

	if (prof_db_state(db) == PROF_COMPLETE &&
	    !prof_db_meta(db, "repaired", repaired, sizeof(repaired)))
		return NULL;
	if (prof_db_meta(db, "failure", failure, sizeof(failure))) {
		snprintf(out, REPORT_UNFINISHED_SIZE,
			 "Recording failed (%.500s): what came after is missing.", failure);
		return out;
	}
	if (prof_db_state(db) != PROF_COMPLETE && prof_db_writer_alive(db))
		return "The run is still being recorded: there will be more.";
	return "The run was killed: what it had not yet written is missing.";
}
