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

static enum status read_failure(struct report_summary *out, struct prof_db *db, struct err *err)
{
	char failure[512];

	if (!prof_db_meta(db, "failure", failure, sizeof(failure)))
		return ST_OK;
	out->failure = arena_strdup(&out->arena, failure);
	return out->failure ? ST_OK : err_nomem(err);
}

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

enum status report__summary_state(struct report_summary *out, struct prof_db *db, struct err *err)
{
	const bool complete = prof_db_state(db) == PROF_COMPLETE;
	char repaired[64], gaps[256];
	enum status status;

	out->path = arena_strdup(&out->arena, prof_db_path(db));
	if (!out->path)
		return err_nomem(err);
	out->note = prof_db_note(db);
	status = read_failure(out, db, err);
	if (status != ST_OK)
		return status;
	if (complete) {
		out->whole = !prof_db_meta(db, "repaired", repaired, sizeof(repaired));
		prof_db_meta(db, "gaps", gaps, sizeof(gaps));
		out->state = state_of_complete(out, !out->whole, gaps);
	} else {
		out->state = state_of_incomplete(out, db);
	}
	return out->state ? ST_OK : err_nomem(err);
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

/* Read the first @count columns of the first row of @sql; *@found false: no row. */
static enum status read_one_row(struct prof_db *db, const char *sql, int64_t *out, int count,
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

static enum status find_reached(struct report_summary *out, struct prof_db *db, struct err *err)
{
	struct report_reached *reached = &out->reached;
	int64_t position[4] = {0}, ended = IPS_NULL; /* IPS_NULL is less than every number */
	bool known, some;
	enum status status = read_one_row(db, sql_reached, position, 4, &known, err);

	if (status == ST_OK)
		status = read_one_row(db, sql_ended, &ended, 1, &some, err);
	if (status != ST_OK || !known || position[1] <= ended)
		return status;
	*reached =
		(struct report_reached){true, position[0], position[1], position[2], position[3]};
	return ST_OK;
}

static enum status list_absent(struct report_summary *out, struct err *err)
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
		status = find_reached(out, db, err);
	if (status == ST_OK && (empty || !out->whole))
		status = list_absent(out, err);
	return status;
}
