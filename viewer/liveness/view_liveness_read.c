/*
 * Reading the live bytes of all program steps, and looking them up.
 *
 * Threading: the session's worker; look-ups from both. Ownership: a report's arrays are its own.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "viewer/liveness/view_liveness_internal.h"

static const char sql_counts[] = "SELECT (SELECT count(*) FROM liveness), "
				 "(SELECT count(*) FROM variables)";
static const char sql_steps[] =
	"SELECT ipu, program_step, program_id, always_live_bytes, not_always_live_bytes "
	"FROM liveness";
static const char sql_capacity[] =
	"SELECT ipu, sum(capacity) FROM (SELECT ipu, tile, max(capacity) AS capacity "
	"FROM tile_memory GROUP BY ipu, tile) GROUP BY ipu";

void view__live_report_fini(struct view_live_report *report)
{
	mem_free(report->steps);
	mem_free(report->curves);
	memset(report, 0, sizeof(*report));
}

/* ---- reading --------------------------------------------------------------------------------- */

static enum status view_live_counts(struct prof_db *db, int64_t *rows, int64_t *variables,
				    struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql_counts, err);

	*rows = *variables = 0;
	if (prof_query_next(query, &status, err)) {
		*rows = prof_column_int(query, 0);
		*variables = prof_column_int(query, 1);
	}
	prof_query_close(query);
	return status;
}

/* Bytes and steps of which sums and the one after are numbers, too, whatever the file holds. */
static int64_t view_sane(int64_t value)
{
	return value < 0 ? 0 : value > INT64_MAX / 4 ? INT64_MAX / 4 : value;
}

static enum status view_live_steps(struct view_live_report *report, struct prof_db *db,
				   struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql_steps, err);

	report->count = 0;
	report->cut = false;
	while (prof_query_next(query, &status, err)) {
		if (report->count == VIEW_LIVE_STEPS) {
			report->cut = true;
			break;
		}
		if (prof_column_type(query, 1) != PROF_INT)
			continue;
		if (mem_grow(&report->steps, &report->capacity, report->count + 1,
			     sizeof(*report->steps))) {
			status = err_nomem(err);
			break;
		}
		report->steps[report->count++] = (struct view_live_step){
			prof_column_int(query, 0), view_sane(prof_column_int(query, 1)),
			prof_column_int(query, 2), view_sane(prof_column_int(query, 3)),
			view_sane(prof_column_int(query, 4))};
	}
	prof_query_close(query);
	return status;
}

static int view_by_step(const void *a, const void *b)
{
	const struct view_live_step *x = a, *y = b;

	return SORTED_BY(x, y, ipu, step);
}

/* They are written in that order. */
static void view_live_sort(struct view_live_report *report)
{
	for (size_t i = 1; i < report->count; i++)
		if (view_by_step(&report->steps[i - 1], &report->steps[i]) > 0) {
			qsort(report->steps, report->count, sizeof(*report->steps), view_by_step);
			return;
		}
}

/* Its last step, just added. */
static void view_live_peaks(struct view_live_curve *curve)
{
	const struct view_live_step *steps = curve->steps, *last = &steps[curve->count - 1];

	if (last->rest > steps[curve->peak[0]].rest)
		curve->peak[0] = curve->count - 1;
	if (last->rest + last->always > steps[curve->peak[1]].rest + steps[curve->peak[1]].always)
		curve->peak[1] = curve->count - 1;
}

static enum status view_live_curves(struct view_live_report *report, struct err *err)
{
	struct view_live_curve *curve = NULL;

	report->curve_count = 0;
	for (size_t i = 0; i < report->count; i++) {
		const struct view_live_step *step = &report->steps[i];

		if (!curve || curve->ipu != step->ipu) {
			if (mem_grow(&report->curves, &report->curve_capacity,
				     report->curve_count + 1, sizeof(*report->curves))) {
				report->curve_count = 0;
				return err_nomem(err);
			}
			curve = &report->curves[report->curve_count++];
			*curve = (struct view_live_curve){
				.ipu = step->ipu, .steps = step, .capacity = IPS_NULL};
		}
		curve->count++;
		view_live_peaks(curve);
	}
	return ST_OK;
}

static enum status view_live_capacity(struct view_live_report *report, struct prof_db *db,
				      struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql_capacity, err);

	while (prof_query_next(query, &status, err))
		for (size_t i = 0; i < report->curve_count; i++)
			if (report->curves[i].ipu == prof_column_int(query, 0))
				report->curves[i].capacity = prof_column_int(query, 1);
	prof_query_close(query);
	return status;
}

static enum status view_live_report(struct view_live_report *report, struct prof_db *db,
				    bool *changed, struct err *err)
{
	int64_t rows, variables;
	enum status status = view_live_counts(db, &rows, &variables, err);

	/* A plan is written at once and never changed. */
	if (status != ST_OK || (rows == report->rows && variables == report->variables))
		return status;
	*changed = true;
	report->rows = 0;
	report->curve_count = 0;
	status = view_live_steps(report, db, err);
	if (status != ST_OK)
		return status;
	view_live_sort(report);
	status = view_live_curves(report, err);
	if (status == ST_OK)
		status = view_live_capacity(report, db, err);
	if (status == ST_OK) {
		report->rows = rows;
		report->variables = variables;
	}
	return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int view_by_number(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return SORTED_ORDER(x, y);
}

static enum status view_live_ipus(struct view_liveness *live, struct err *err)
{
	const int64_t shown = live->ipu >= 0 && (size_t)live->ipu < live->ipu_count
				      ? live->ipus[live->ipu]
				      : IPS_NULL;
	size_t count = 0;

	live->ipu_count = 0;
	for (int r = 0; r < 2; r++)
		for (size_t i = 0; i < live->report[r].curve_count; i++) {
			if (r == 1 &&
			    view__live_curve(&live->report[0], live->report[1].curves[i].ipu))
				continue;
			if (mem_grow(&live->ipus, &live->ipu_capacity, count + 1,
				     sizeof(*live->ipus)))
				return err_nomem(err);
			live->ipus[count++] = live->report[r].curves[i].ipu;
		}
	if (count > 0)
		qsort(live->ipus, count, sizeof(*live->ipus), view_by_number);
	live->ipu_count = count;
	if (live->ipu != VIEW_LIVE_ALL) {
		live->ipu = 0;
		for (size_t i = 0; i < count; i++)
			if (live->ipus[i] == shown)
				live->ipu = (int)i;
	}
	return ST_OK;
}

enum status view__live_read(struct view_liveness *live, struct view_context *context,
			    struct err *err)
{
	struct prof_db *const dbs[2] = {context->source->db,
					context->target ? context->target->db : NULL};
	bool changed = false;
	enum status status = ST_OK;

	live->compared = context->target != NULL;
	for (int r = 0; r < 2 && status == ST_OK; r++) {
		if (view_cancelled(context))
			return err_set(err, ST_INTERRUPTED, "stopped");
		if (dbs[r])
			status = view_live_report(&live->report[r], dbs[r], &changed, err);
	}
	if (status == ST_OK && changed)
		live->listed = false;
	/* Also after a failure: the list names no curve that is gone. */
	return status == ST_OK ? view_live_ipus(live, err) : status;
}

/* ---- looking up ------------------------------------------------------------------------------ */

const struct view_live_curve *view__live_curve(const struct view_live_report *report, int64_t ipu)
{
	for (size_t i = 0; i < report->curve_count; i++)
		if (report->curves[i].ipu == ipu)
			return &report->curves[i];
	return NULL;
}

const struct view_live_step *view__live_at(const struct view_live_curve *curve, int64_t step)
{
	size_t at;

	if (step > curve->steps[curve->count - 1].step)
		return NULL;
	at = step == INT64_MAX ? curve->count
			       : sorted_place(curve->steps, curve->count, sizeof(*curve->steps),
					      offsetof(struct view_live_step, step), step + 1);
	return at > 0 ? &curve->steps[at - 1] : NULL;
}

bool view__live_shown(const struct view_liveness *live, int64_t ipu)
{
	return live->ipu == VIEW_LIVE_ALL ||
	       ((size_t)live->ipu < live->ipu_count && live->ipus[live->ipu] == ipu);
}
