/*
 * The part of the summary on completeness: the state of the file, why writing failed, the last
 * progress of an execution that did not end, and tables without rows.
 *
 * Threading: none. Ownership: texts belong to the summary's arena.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "reports/table/report_internal.h"
#include "reports/summary/report_summary.h"

/* ---- the state ------------------------------------------------------------------------------- */

/* @gaps: what is missing because the disk was full for a while; empty: nothing. */
static const char *state_of_complete(struct report_summary *out, bool repaired, const char *gaps)
{
	if (!repaired && gaps[0] != 0)
		return arena_printf(&out->arena, "complete with gaps: %s", gaps);
	if (!repaired)
		return "complete";
	if (!out->failure)
		return "complete (repaired after its writer died)";
	return arena_printf(&out->arena, "complete (repaired after writing failed: %s)",
			    out->failure);
}

static const char *state_of_incomplete(struct report_summary *out, struct prof_db *db)
{
	if (out->failure)
		return arena_printf(&out->arena,
				    "failed: %s; `ipu-report %s repair` finishes the file",
				    out->failure, out->path);
	out->live = prof_db_writer_alive(db);
	if (!out->live)
		return arena_printf(&out->arena,
				    "killed: the writer died; "
				    "`ipu-report %s repair` finishes the file",
				    out->path);
	return prof_db_state(db) == PROF_CLOSING ? "closing: the writer finishes the file"
						 : "recording: the run goes on";
}

void report__summary_state(struct report_summary *out, struct prof_db *db, struct err *err)
{
	char failure[512], repaired[64], gaps[256];
	const bool failed = prof_db_meta(db, "failure", failure, sizeof(failure));

	out->note = prof_db_note(db);
	out->path = arena_strdup(&out->arena, prof_db_path(db));
	out->failure = failed ? arena_strdup(&out->arena, failure) : NULL;
	if (!out->path || (failed && !out->failure)) {
		err_nomem(err);
		return;
	}
	if (prof_db_state(db) == PROF_COMPLETE) {
		out->whole = !prof_db_meta(db, "repaired", repaired, sizeof(repaired));
		prof_db_meta(db, "gaps", gaps, sizeof(gaps));
		out->state = state_of_complete(out, !out->whole, gaps);
	} else {
		out->state = state_of_incomplete(out, db);
	}
	if (!out->state)
		err_nomem(err);
}

/* ---- missing data ---------------------------------------------------------------------------- */

/* The host's last position. Compared with the last ended execution: executions are numbered in
 * order. Rows of the device, which may be ahead, are interleaved with those of the host, hence the
 * search over the last rows. */
static const char sql_reached[] =
	"SELECT c.epoch, c.execution, c.weight_update, c.step FROM "
	"(SELECT row_id, clock, context_id FROM stage_timing_rows ORDER BY row_id DESC "
	"LIMIT 10000) s JOIN contexts c ON c.context_id = s.context_id WHERE s.clock = 0 "
	"ORDER BY s.row_id DESC LIMIT 1";
static const char sql_ended[] = "SELECT execution FROM execution_rows ORDER BY row_id DESC LIMIT 1";

static void find_reached(struct report_summary *out, struct prof_db *db, struct err *err)
{
	struct prof_query *query;
	int64_t ended; /* IPS_NULL, which is less than every number: none has */

	if (err_stuck(err) || prof_db_number(db, sql_ended, &ended, err) != ST_OK)
		return;
	prof_query_open(&query, db, sql_reached, err);
	if (prof_query_next(query, &err->status, err) && prof_column_int(query, 1) > ended)
		out->reached = (struct report_reached){
			true, prof_column_int(query, 0), prof_column_int(query, 1),
			prof_column_int(query, 2), prof_column_int(query, 3)};
	prof_query_close(query);
}

static void list_absent(struct report_summary *out, struct err *err)
{
	const struct {
		const char *name;
		bool there;
	} parts[] = {
		{"spans", out->spans > 0},
		{"executions", out->executions > 0},
		{"stages", out->stages > 0},
		{"bubbles", out->bubble[0].known || out->bubble[1].known},
		{"metrics", out->loss_nan || out->evaluate_loss_nan || !isnan(out->loss) ||
				    !isnan(out->accuracy) || !isnan(out->evaluate_loss) ||
				    !isnan(out->evaluate_accuracy)},
		{"statistics", out->tensor_rows > 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(parts) && !err_stuck(err); i++) {
		if (parts[i].there)
			continue;
		out->absent = out->absent ? arena_printf(&out->arena, "%s, %s", out->absent,
							 parts[i].name)
					  : parts[i].name;
		if (!out->absent)
			err_nomem(err);
	}
}

void report__summary_missing(struct report_summary *out, struct prof_db *db, struct err *err)
{
	if (!out->whole)
		find_reached(out, db, err);
	if (!out->whole || (out->spans == 0 && out->executions == 0))
		list_absent(out, err);
}
