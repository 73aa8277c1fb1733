/*
 * The Operations screen: costs of the compiled program's operations by the cost model, by
 * operation, layer, kind, or stage and phase.
 *
 * Threading: the session's. Ownership: view_operations_internal.h.
 */
#include "viewer/operations/view_operations_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/minmax.h"

#define DETAILS_FROM 17 /* least rows of the body with details below the table */
#define LOWER_LEAST  5

/* ---- loading --------------------------------------------------------------------------------- */

/* Compute all areas, relative to the body. */
static void operations_layout(struct view_operations *screen, const struct view_context *context)
{
	struct view_rect rest = {0, 1, context->body.width, context->body.height - 1};
	const int wanted = screen->details.height;
	struct view_split split = {.upper = rest};
	struct view_sides sides;
	int bars = rest.width / 3;

	screen->heading = (struct view_rect){0, 0, rest.width, 1};
	if (context->whole && wanted > 0)
		split = view_split_rows(rest, (int)screen->grid.count + 1, 1);
	else if (rest.height + 1 >= DETAILS_FROM && wanted > 0)
		split = view_split_rows(
			rest,
			rest.height - 1 -
				min(wanted + (rest.width < VIEW_OPERATIONS_TWO_FROM),
				    screen->closer ? rest.height * 3 / 4 : rest.height / 2),
			LOWER_LEAST);
	else if (screen->closer && wanted > 0)
		split = (struct view_split){
			.heading = {0, 1, rest.width, 1},
			.lower = {0, 2, rest.width, rest.height - 1},
		};
	bars = bars < 18 ? 18 : min(bars, context->target ? 100 : 60);
	sides = view_split_sides(split.upper, screen->parts == VIEW_NO_PARTS ? 0 : bars, 21);
	screen->table = sides.left;
	screen->bars = sides.right;
	screen->line = split.heading;
	screen->lower = split.lower;
}

static enum status operations_load(void *state, struct view_context *context, bool news,
				   struct err *err)
{
	struct view_operations *screen = state;
	struct err own;

	err = err_start(err, &own);
	if (news || !screen->sql.length)
		view__operations_read(screen, context, err);
	view__operations_detail(screen, context, err);
	if (err_stuck(err) ||
	    view_blocks_fit(&screen->details, context->body.width, LOWER_LEAST, err) != ST_OK)
		return err->status;
	operations_layout(screen, context);
	view_grid_layout(&screen->grid, screen->table);
	return view_blocks_fit(&screen->details, context->body.width, screen->lower.height, err);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Query the rows again after the statement has changed. */
static enum view_answer operations_query_again(struct view_operations *screen)
{
	str_clear(&screen->sql);
	screen->details.scroll = 0;
	return VIEW_LOAD;
}

/* Return true if not all lines of the details are visible. */
static bool operations_is_cut(const struct view_operations *screen)
{
	return screen->details.height > screen->lower.height;
}

/* List the operations of a sum; enlarge or shrink the details of an operation. */
static enum view_answer operations_enter(struct view_operations *screen)
{
	struct str condition = {0};

	if (screen->way == VIEW_BY_OPERATION) {
		screen->closer = !screen->closer && operations_is_cut(screen);
		return VIEW_LOAD;
	}
	if (view__operations_condition(screen, &condition, screen->inside_name,
				       sizeof(screen->inside_name)) &&
	    !condition.failed && condition.length < sizeof(screen->inside)) {
		str_copy(screen->inside, sizeof(screen->inside), condition.text);
		screen->way = VIEW_BY_OPERATION;
		screen->grid.at = 0;
	}
	str_free(&condition);
	return operations_query_again(screen);
}

static enum view_answer operations_request(void *state, struct view_context *context,
					   enum view_request request)
{
	struct view_operations *screen = state;
	enum view_answer answer = VIEW_UNHANDLED;

	switch (request) {
	case VIEW_VIEW_REQUEST:
	case VIEW_VIEW_BACK_REQUEST:
		screen->way = (enum view_operations_way)view_next_choice(
			(int)screen->way, VIEW_OPERATIONS_WAYS, request);
		screen->grid.at = 0;
		return operations_query_again(screen);
	case VIEW_BREAKDOWN_REQUEST: {
		static const char *const names[] = {
			[VIEW_NO_PARTS] = "no breakdown",
			[VIEW_PARTS_SCALED] = "compute, exchange and sync, as long as they take",
			[VIEW_PARTS_EVEN] = "compute, exchange and sync, as shares of the row",
		};

		screen->parts = (enum view_operations_parts)(((int)screen->parts + 1) %
							     VIEW_OPERATIONS_PARTS);
		view_message(context, names[screen->parts], NULL);
		return VIEW_LOAD;
	}
	case VIEW_SELECT_REQUEST:
		screen->stage = screen->stage < screen->last ? screen->stage + 1 : -1;
		if (screen->stage < 0)
			view_message(context, "all stages", NULL);
		else
			view_messagef(context, "only stage %lld of %lld", (long long)screen->stage,
				      (long long)screen->last + 1);
		return operations_query_again(screen);
	case VIEW_UNIT_REQUEST:
		if (isnan(screen->clock_hz)) {
			view_message(context, "the recording does not know the clock: cycles only",
				     NULL);
			return VIEW_DRAW;
		}
		screen->ns = !screen->ns;
		view_message(context, screen->ns ? "simulated times" : "simulated cycles", NULL);
		return operations_query_again(screen);
	case VIEW_ENTER_REQUEST:
		return operations_enter(screen);
	default:
		break;
	}
	if (screen->table.height == 0)
		answer = view_blocks_request(&screen->details, screen->lower.height, request);
	if (answer == VIEW_UNHANDLED)
		answer = view_grid_request(&screen->grid, request);
	if (answer == VIEW_UNHANDLED && request == VIEW_BACK_REQUEST) {
		if (screen->closer) {
			screen->closer = false;
			return VIEW_LOAD;
		}
		if (!screen->inside[0])
			return VIEW_UNHANDLED;
		screen->inside[0] = screen->inside_name[0] = '\0';
		return operations_query_again(screen);
	}
	return answer == VIEW_UNHANDLED ? answer : VIEW_LOAD;
}

static enum view_answer operations_click(void *state, struct view_context *context, int x, int y)
{
	struct view_operations *screen = state;

	(void)context;
	return view_grid_click(&screen->grid, x, y) == VIEW_DRAW ? VIEW_LOAD : VIEW_UNHANDLED;
}

static void operations_status(const void *state, const struct view_context *context, char *out,
			      size_t size)
{
	const struct view_operations *screen = state;

	(void)context;
	view_grid_status(&screen->grid, out, size);
	if (screen->stage >= 0)
		view_append(out, size, ", stage %lld", (long long)screen->stage);
	if (screen->inside[0])
		view_append(out, size, ", of %s (Esc: all)", screen->inside_name);
}

static int operations_height(const void *state, const struct view_context *context)
{
	const struct view_operations *screen = state;

	(void)context;
	return 3 + (int)screen->grid.count + screen->details.height;
}

/* ---- places ---------------------------------------------------------------------------------- */

static bool operations_current_place(const void *state, struct view_place *out)
{
	const struct view_operations *screen = state;

	view_place_clear(out);
	if (screen->grid.count == 0)
		return false;
	view_grid_place(&screen->grid, "operation,layer,phase,stage", "", out);
	if (out->layer[0] == '(') /* belongs to no layer */
		out->layer[0] = '\0';
	return true;
}

static bool operations_offers(const struct view_place *place, char *out, size_t size)
{
	if (place->operation[0])
		snprintf(out, size, "the operation %s", place->operation);
	else if (place->layer[0])
		snprintf(out, size, "operations of %s", place->layer);
	else if (place->stage != IPS_NULL)
		snprintf(out, size, "operations of stage %lld%s%s", (long long)place->stage,
			 place->phase[0] ? " in phase " : "", place->phase);
	else
		return false;
	return true;
}

/* Show the operations of a stage, and move to the first one of the place's phase. */
static enum status operations_go_stage(struct view_operations *screen, struct view_context *context,
				       const struct view_place *place, struct err *err)
{
	enum status status;

	screen->stage = place->stage;
	screen->grid.at = 0;
	status = operations_load(screen, context, true, err);
	if (status != ST_OK)
		return status;
	if (screen->grid.count == 0) {
		screen->stage = -1;
		str_clear(&screen->sql);
		return err_set(err, ST_NOTFOUND, "no operation of stage %lld has been recorded",
			       (long long)place->stage);
	}
	if (place->phase[0])
		(void)view_grid_go(&screen->grid, "phase", place->phase, 0);
	return ST_OK;
}

static enum status operations_go(void *state, struct view_context *context,
				 const struct view_place *place, struct err *err)
{
	struct view_operations *screen = state;
	const bool layer = place->layer[0] != '\0', operation = place->operation[0] || !layer;
	const char *name = operation ? place->operation : place->layer;
	enum status status;

	screen->way = operation || !name[0] ? VIEW_BY_OPERATION : VIEW_BY_LAYER;
	screen->stage = -1;
	screen->inside[0] = screen->inside_name[0] = '\0';
	if (!name[0])
		return operations_go_stage(screen, context, place, err);
	status = operations_load(screen, context, true, err);
	if (status != ST_OK)
		return status;
	if (!view_grid_go(&screen->grid, operation ? "operation" : "layer", name, 0))
		return err_set(err, ST_NOTFOUND, "no operation %s%s has been recorded",
			       operation ? "" : "of ", name);
	return ST_OK;
}

static void operations_query(const void *state, const struct view_context *context, struct str *out)
{
	const struct view_operations *screen = state;

	(void)context;
	str_addf(out, "%s;\n", str_peek(&screen->sql));
	str_add(out, str_peek(&screen->more));
}

/* ---- life ------------------------------------------------------------------------------------ */

static void operations_init(void *state)
{
	struct view_operations *screen = state;

	screen->grid.sort = -1;
	screen->stage = screen->last = -1;
	screen->clock_hz = (double)NAN;
}

static void operations_fini(void *state)
{
	struct view_operations *screen = state;

	view_grid_fini(&screen->grid);
	view_blocks_fini(&screen->details);
	str_free(&screen->sql);
	str_free(&screen->more);
}

static const char *operations_word(const void *state, enum view_request request)
{
	const struct view_operations *screen = state;

	if (screen->grid.table.row_count == 0)
		return "";
	switch (request) {
	case VIEW_ENTER_REQUEST:
		return screen->way != VIEW_BY_OPERATION ? NULL
		       : screen->closer                 ? "list"
		       : operations_is_cut(screen)      ? "details"
							: "";
	case VIEW_BREAKDOWN_REQUEST:
		return "bars";
	case VIEW_SELECT_REQUEST:
		return screen->last > 0 ? "stage" : "";
	default:
		return NULL;
	}
}

const struct view_screen_ops view_operations_ops = {
	.name = "operations",
	.title = "Operations",
	.brief = "Ops",
	.key = '6',
	.where = VIEW_ON_OPERATIONS,
	.least_ns = 2000 * UINT64_C(1000000),
	.size = sizeof(struct view_operations),
	.init = operations_init,
	.fini = operations_fini,
	.grid = view_state_grid,
	.load = operations_load,
	.draw = view__operations_draw,
	.request = operations_request,
	.word = operations_word,
	.status = operations_status,
	.height = operations_height,
	.place = operations_current_place,
	.offers = operations_offers,
	.go = operations_go,
	.query = operations_query,
	.click = operations_click,
};
