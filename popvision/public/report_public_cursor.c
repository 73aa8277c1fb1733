/*
 * Cursors of the public report: steps of a run, and variables on tiles.
 *
 * Threading and ownership: as ipuscope/report.h says. A query is closed at its last row, so a
 * cursor that was read to its end holds no lock on the database.
 */
#include "common/mem.h"
#include "popvision/public/report_public_internal.h"

/* ---- common to all cursors ------------------------------------------------------------------- */

enum status report_public__cursor_open(void **out, size_t size, struct ips_report *report,
				       const char *sql, struct err *err)
{
	struct report_public__cursor *cursor = mem_calloc(1, size);
	enum status status;

	*out = NULL;
	if (!cursor)
		return err_nomem(err);
	cursor->report = report;
	status = prof_query_open(&cursor->query, report->db, sql, err);
	if (status != ST_OK) {
		mem_free(cursor);
		return err_prefix(err, "%s", prof_db_path(report->db));
	}
	*out = cursor;
	return ST_OK;
}

void report_public__cursor_stop(struct report_public__cursor *cursor)
{
	prof_query_close(cursor->query);
	cursor->query = NULL;
}

bool report_public__cursor_next(struct report_public__cursor *cursor,
				const struct report_public__field *fields, size_t count, void *item)
{
	struct err *err = &cursor->err;
	enum status status;
	bool row = false;

	if (!cursor->query)
		return false;
	status = prof_query_step(cursor->query, &row, err);
	if (status == ST_OK && row)
		status =
			report_public__row(cursor->report, cursor->query, fields, count, item, err);
	if (status == ST_OK && row)
		return true;
	if (status != ST_OK)
		err_prefix(err, "%s", prof_db_path(cursor->report->db));
	err->status = status;
	report_public__status(cursor->report, status, err, NULL, 0);
	report_public__cursor_stop(cursor);
	return false;
}

enum status report_public__cursor_failure(const struct report_public__cursor *cursor,
					  struct err *err)
{
	*err = cursor->err;
	return cursor->err.status;
}

int report_public__cursor_close(struct report_public__cursor *cursor)
{
	const int status = (int)cursor->err.status;

	prof_query_close(cursor->query);
	mem_free(cursor);
	return status;
}

/* ---- steps ----------------------------------------------------------------------------------- */

struct ips_report_steps {
	struct report_public__cursor cursor;
	struct ips_report_step step;
};

#define STEP(name, member) PUBLIC_FIELD(step, name, member)

static const struct report_public__field step_fields[] = {
	STEP(rank, INT),
	STEP(execution, INT),
	STEP(mode, MODE),
	STEP(epoch, INT),
	STEP(weight_update, INT),
	STEP(step, INT),
	STEP(microbatch, INT),
	STEP(replica, INT),
	STEP(ipu, INT),
	STEP(stage, INT),
	STEP(phase, PHASE),
	STEP(trace_step, INT),
	STEP(program_id, INT),
	STEP(kind, KIND),
	STEP(type, TEXT),
	STEP(name, TEXT),
	STEP(operation, TEXT),
	STEP(cycles, INT),
	STEP(cycles_from, INT),
	STEP(cycles_to, INT),
	STEP(start_ns, INT),
	STEP(dur_ns, INT),
	STEP(cycles_overlapped, INT),
	STEP(active_tiles, INT),
	STEP(tile_balance, REAL),
	STEP(active_tile_balance, REAL),
	STEP(data_in, INT),
	STEP(data_out, INT),
};

/* In the view's order: runs, and within each its trace's steps. Sorting would buffer all rows. */
static const char steps_sql[] =
	"SELECT rank, execution, mode, epoch, weight_update, step, microbatch, replica, ipu, "
	"stage, phase, trace_step, program_id, type, type, name, operation, cycles, start_cycle, "
	"start_cycle + cycles, start_ns, dur_ns, cycles_overlapped, active_tiles, tile_balance, "
	"active_tile_balance, bytes_in, bytes_out FROM device_steps "
	"WHERE (:execution IS NULL OR execution = :execution) AND (:ipu IS NULL OR ipu = :ipu) "
	"AND (:replica IS NULL OR replica = :replica) "
	"AND (:weight_update IS NULL OR weight_update = :weight_update)";

int ips_report_steps_open(struct ips_report *report, struct ips_report_steps **out,
			  const struct ips_report_step_filter *filter, char *message, size_t size)
{
	const struct ips_report_step_filter all = ips_report_step_filter_all();
	struct err err = {ST_OK, ""};
	struct prof_query *query;
	enum status status;
	void *cursor;

	if (!out)
		return report_public__null_argument("out", message, size);
	*out = NULL;
	if (!report)
		return report_public__null_argument("report", message, size);
	status = report_public__cursor_open(&cursor, sizeof(**out), report, steps_sql, &err);
	if (status != ST_OK)
		return report_public__status(report, status, &err, message, size);
	if (!filter)
		filter = &all;
	*out = cursor;
	query = (*out)->cursor.query;
	prof_query_int(query, ":execution", filter->execution);
	prof_query_int(query, ":ipu", filter->ipu);
	prof_query_int(query, ":replica", filter->replica);
	prof_query_int(query, ":weight_update", filter->weight_update);
	return report_public__status(report, ST_OK, &err, message, size);
}

const struct ips_report_step *ips_report_steps_next(struct ips_report_steps *cursor)
{
	struct ips_report_step *step;

	if (!cursor)
		return NULL;
	step = &cursor->step;
	if (!report_public__cursor_next(&cursor->cursor, step_fields, ARRAY_LEN(step_fields), step))
		return NULL;
	step->program = report_public__program_index(cursor->cursor.report, step->program_id);
	return step;
}

int ips_report_steps_close(struct ips_report_steps *cursor)
{
	return !cursor ? 0 : report_public__cursor_close(&cursor->cursor);
}

/* ---- variables on tiles ---------------------------------------------------------------------- */

struct ips_report_lowered_variables {
	struct report_public__cursor cursor;
	struct ips_report_lowered_variable row;
};

#define LOWERED(name) PUBLIC_FIELD(lowered_variable, name, INT)

static const struct report_public__field lowered_fields[] = {LOWERED(variable_id), LOWERED(ipu),
							     LOWERED(tile), LOWERED(bytes)};

/* The view can use an index on variable or tile only if the query has an equality for it.
 * [one variable][one tile] */
#define LOWERED_SQL(where)                                                                         \
	"SELECT variable_id, ipu, tile, bytes FROM variable_tiles "                                \
	"WHERE (:ipu IS NULL OR ipu = :ipu)" where

static const char *const lowered_sql[2][2] = {
	{LOWERED_SQL(""), LOWERED_SQL(" AND tile = :tile")},
	{LOWERED_SQL(" AND variable_id = :variable"),
	 LOWERED_SQL(" AND variable_id = :variable AND tile = :tile")},
};

int ips_report_lowered_variables_open(struct ips_report *report,
				      struct ips_report_lowered_variables **out,
				      int64_t variable_id, int64_t ipu, int64_t tile, char *message,
				      size_t size)
{
	const bool one = variable_id != IPS_NULL, here = tile != IPS_NULL;
	struct err err = {ST_OK, ""};
	enum status status;
	void *cursor;

	if (!out)
		return report_public__null_argument("out", message, size);
	*out = NULL;
	if (!report)
		return report_public__null_argument("report", message, size);
	status = report_public__cursor_open(&cursor, sizeof(**out), report, lowered_sql[one][here],
					    &err);
	if (status != ST_OK)
		return report_public__status(report, status, &err, message, size);
	*out = cursor;
	prof_query_int((*out)->cursor.query, ":ipu", ipu);
	if (one)
		prof_query_int((*out)->cursor.query, ":variable", variable_id);
	if (here)
		prof_query_int((*out)->cursor.query, ":tile", tile);
	return report_public__status(report, ST_OK, &err, message, size);
}

const struct ips_report_lowered_variable *
ips_report_lowered_variables_next(struct ips_report_lowered_variables *cursor)
{
	struct ips_report_lowered_variable *row;

	if (!cursor)
		return NULL;
	row = &cursor->row;
	if (!report_public__cursor_next(&cursor->cursor, lowered_fields, ARRAY_LEN(lowered_fields),
					row))
		return NULL;
	row->variable = report_public__variable_index(cursor->cursor.report, row->variable_id);
	return row;
}

int ips_report_lowered_variables_close(struct ips_report_lowered_variables *cursor)
{
	return !cursor ? 0 : report_public__cursor_close(&cursor->cursor);
}
