/*
 * The part of the summary that says how whole the file is: its state, why writing ended where it
 * failed, how far an execution came that did not end, and what there are no rows of.
 *
 * Threading: none. Ownership: texts are the summary's arena's.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "reports/table/report_internal.h"
#include "reports/summary/report_summary.h"

/* ---- the state ------------------------------------------------------------------------------- */

static enum status missing_failure(struct report_summary *out, struct prof_db *db, struct err *err)
{
	char failure[512];

	if (!prof_db_meta(db, "failure", failure, sizeof(failure)))
		return ST_OK;
	out->failure = arena_strdup(&out->arena, failure);
	return out->failure ? ST_OK : err_nomem(err);
}

static const char *state_of_complete(struct report_summary *out, bool repaired)
{
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

enum status report__summary_state(struct report_summary *out, struct prof_db *db, struct err *err)
{
	const bool complete = prof_db_state(db) == PROF_COMPLETE;
	char repaired[64];
	enum status status;

	out->path = arena_strdup(&out->arena, prof_db_path(db));
	if (!out->path)
		return err_nomem(err);
	status = missing_failure(out, db, err);
	if (status != ST_OK)
		return status;
	if (complete) {
		out->whole = !prof_db_meta(db, "repaired", repaired, sizeof(repaired));
		out->state = state_of_complete(out, !out->whole);
	} else {
		out->state = state_of_incomplete(out, db);
	}
	return out->state ? ST_OK : err_nomem(err);
}

/* ---- what is missing ------------------------------------------------------------------------- */

/* Where the host was last, unless that execution has ended: they are numbered in order. Rows of the
 * device, which may be ahead, stand between those of the host: some rows back one is found. */
static const char sql_reached[] =
	"SELECT c.epoch, c.execution, c.weight_update, c.step FROM "
	"(SELECT row_id, clock, context_id FROM stage_timing_rows ORDER BY row_id DESC "
	"LIMIT 10000) s JOIN contexts c ON c.context_id = s.context_id WHERE s.clock = 0 "
	"ORDER BY s.row_id DESC LIMIT 1";
static const char sql_ended[] = "SELECT execution FROM execution_rows ORDER BY row_id DESC LIMIT 1";

/* The row of @sql, its first @count columns; *@found false: there is none. */
static enum status missing_row(struct prof_db *db, const char *sql, int64_t *out, int count,
			       bool *found, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql, err);

	*found = prof_query_next(query, &status, err);
	for (int i = 0; i < count && *found; i++)
		out[i] = prof_column_int(query, i);
	prof_query_close(query);
	return status;
}

static enum status missing_reached(struct report_summary *out, struct prof_db *db, struct err *err)
{
	struct report_reached *reached = &out->reached;
	int64_t place[4] = {0}, ended = IPS_NULL; /* below all: none */
	bool known, some;
	enum status status = missing_row(db, sql_reached, place, 4, &known, err);

	if (status == ST_OK)
		status = missing_row(db, sql_ended, &ended, 1, &some, err);
	if (status != ST_OK || !known || place[1] <= ended)
		return status;
	*reached = (struct report_reached){true, place[0], place[1], place[2], place[3]};
	return ST_OK;
}

static enum status missing_parts(struct report_summary *out, struct err *err)
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

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		if (parts[i].there)
			continue;
		out->absent = out->absent ? arena_printf(&out->arena, "%s, %s", out->absent,
							 parts[i].name)
					  : parts[i].name;
		if (!out->absent)
			return err_nomem(err);
	}
	return ST_OK;
}

enum status report__summary_missing(struct report_summary *out, struct prof_db *db, struct err *err)
{
	const bool empty = out->spans == 0 && out->executions == 0;
	enum status status = ST_OK;

	if (!out->whole)
		status = missing_reached(out, db, err);
	if (status == ST_OK && (empty || !out->whole))
		status = missing_parts(out, err);
	return status;
}
