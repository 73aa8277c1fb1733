/*
 * From the screen Liveness to others, and from these to a step or a variable.
 *
 * Threading: places and offers on the terminal's thread, going on the session's worker.
 */
#include <stdio.h>

#include "viewer/liveness/view_liveness_internal.h"

/* The program of the step, where it is one IPU's. */
static int64_t view_live_program(const struct view_liveness *live, int64_t ipu)
{
	const struct view_live_curve *curve =
		ipu != IPS_NULL ? view__live_curve(&live->report[0], ipu) : NULL;
	const struct view_live_step *at = curve ? view__live_at(curve, live->cursor) : NULL;

	return at ? at->program_id : live->facts[0].program_id;
}

bool view__live_place(const void *state, const struct view_context *context, struct view_place *out)
{
	const struct view_liveness *live = state;
	const struct report_cell *cell;

	(void)context;
	view_place_clear(out);
	if (live->ipu_count == 0)
		return false;
	out->program_step = live->cursor;
	if (live->ipu != VIEW_LIVE_ALL)
		out->ipu = live->ipus[live->ipu];
	cell = view_grid_cell(&live->grid, "ipu");
	if (live->show != VIEW_LIVE_CHART && cell && cell->type == PROF_INT)
		out->ipu = cell->integer;
	out->program_id = view_live_program(live, out->ipu);
	if (live->show == VIEW_LIVE_CHART)
		return true;
	cell = view_grid_cell(&live->grid, "variable_id");
	if (cell && cell->type == PROF_INT)
		out->variable_id = cell->integer;
	cell = view_grid_cell(&live->grid, "layer");
	if (cell && cell->type == PROF_TEXT &&
	    (live->show == VIEW_LIVE_VARIABLES || cell->text[0] != '('))
		view_place_text(out->layer, cell->text);
	return true;
}

bool view__live_offers(const struct view_place *place, char *out, size_t size)
{
	if (place->variable_id != IPS_NULL)
		snprintf(out, size, "when the variable %lld is live",
			 (long long)place->variable_id);
	else if (place->program_step != IPS_NULL)
		snprintf(out, size, "what is live at program step %lld",
			 (long long)place->program_step);
	else if (place->program_id != IPS_NULL)
		snprintf(out, size, "what is live in program %lld", (long long)place->program_id);
	else if (place->operation[0])
		snprintf(out, size, "what is live in %s", place->operation);
	else
		return false;
	return true;
}

/* ---- going there ----------------------------------------------------------------------------- */

static void view_live_show_ipu(struct view_liveness *live, int64_t ipu)
{
	for (size_t i = 0; i < live->ipu_count && ipu != IPS_NULL; i++)
		if (live->ipus[i] == ipu && live->ipu != VIEW_LIVE_ALL)
			live->ipu = (int)i;
}

/* The first row of a statement on what @place says: IPU, and steps from and to. */
struct view_live_found {
	bool found;
	int64_t ipu, from, to; /* IPS_NULL: always live */
};

static enum status view_live_find(struct prof_db *db, const char *sql,
				  const struct view_place *place, struct view_live_found *out,
				  struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql, err);

	*out = (struct view_live_found){false, IPS_NULL, IPS_NULL, IPS_NULL};
	if (place->variable_id != IPS_NULL)
		prof_query_int(query, ":variable_id", place->variable_id);
	else if (place->program_id != IPS_NULL)
		prof_query_int(query, ":program_id", place->program_id);
	else
		prof_query_text(query, ":operation", place->operation);
	if (prof_query_next(query, &status, err))
		*out = (struct view_live_found){true, prof_column_int(query, 0),
						prof_column_int(query, 1),
						prof_column_int(query, 2)};
	prof_query_close(query);
	return status;
}

static enum status view_live_go_variable(struct view_liveness *live, struct prof_db *db,
					 const struct view_place *place, struct err *err)
{
	struct view_live_found found;
	enum status status =
		view_live_find(db,
			       "SELECT ipu, first_program_step, last_program_step FROM variables "
			       "WHERE variable_id = :variable_id",
			       place, &found, err);
	int64_t step = place->program_step != IPS_NULL ? place->program_step : live->cursor;

	if (status != ST_OK)
		return status;
	if (!found.found)
		return err_set(err, ST_NOTFOUND, "there is no variable %lld",
			       (long long)place->variable_id);
	view_live_show_ipu(live, found.ipu);
	if (found.from != IPS_NULL && (step < found.from || step > found.to))
		step = found.from;
	live->show = VIEW_LIVE_VARIABLES;
	live->group = VIEW_LIVE_BOTH;
	live->wanted = place->variable_id;
	view__live_clamp(live);
	view__live_to(live, step);
	return ST_OK;
}

/* Of several steps the one with the most bytes. */
static enum status view_live_go_program(struct view_liveness *live, struct prof_db *db,
					const struct view_place *place, struct err *err)
{
	static const char by_program[] =
		"SELECT ipu, program_step, program_step FROM liveness "
		"WHERE program_id = :program_id ORDER BY not_always_live_bytes DESC LIMIT 1";
	static const char by_operation[] =
		"SELECT ipu, program_step, program_step FROM liveness WHERE program_id IN "
		"(SELECT program_id FROM programs WHERE operation = :operation) "
		"ORDER BY not_always_live_bytes DESC LIMIT 1";
	const char *sql = place->program_id != IPS_NULL ? by_program : by_operation;
	struct view_live_found found = {0};
	struct view_place operation = *place;
	enum status status = view_live_find(db, sql, place, &found, err);

	/* A program that is no step may be of an operation that has some. */
	operation.program_id = IPS_NULL;
	if (status == ST_OK && !found.found && sql == by_program && place->operation[0])
		status = view_live_find(db, by_operation, &operation, &found, err);
	if (status != ST_OK)
		return status;
	if (!found.found)
		return err_set(err, ST_NOTFOUND, "no program step is of that program");
	view_live_show_ipu(live, found.ipu);
	view__live_clamp(live);
	view__live_to(live, found.from);
	return ST_OK;
}

enum status view__live_go(void *state, struct view_context *context, const struct view_place *place,
			  struct err *err)
{
	struct view_liveness *live = state;

	if (live->ipu_count == 0 || !context->source->db)
		return err_set(err, ST_NOTFOUND, "no liveness was recorded");
	live->listed = false;
	if (place->variable_id != IPS_NULL)
		return view_live_go_variable(live, context->source->db, place, err);
	if (place->program_step == IPS_NULL)
		return view_live_go_program(live, context->source->db, place, err);
	view_live_show_ipu(live, place->ipu);
	view__live_clamp(live);
	if (place->program_step < live->extent.from || place->program_step >= live->extent.to)
		return err_set(err, ST_NOTFOUND, "there is no program step %lld",
			       (long long)place->program_step);
	view__live_to(live, place->program_step);
	return ST_OK;
}
